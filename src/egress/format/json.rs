//! Formats the JSON document that `--diff` reads (see [`crate::egress::read_list`]).

use crate::egress::Egress;

pub(super) fn write(egress: &Egress) -> String {
    format!("{:#}\n", serde_json::json!(egress))
}
