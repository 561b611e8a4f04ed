//! Formats the JSON document that `--diff` reads (see [`crate::egress::read_list`]).

use crate::egress::Egress;

pub(super) fn write(egress: &Egress) -> String {
    serde_json::to_string_pretty(egress).unwrap_or_default() + "\n"
}
