//! A table for spreadsheets (RFC 4180): the same columns in every list.

use crate::egress::Egress;
use landfall_model::report::csv_line;

pub(super) fn write(egress: &Egress) -> String {
    const HEAD: [&str; 10] = [
        "change", "host", "port", "scheme", "known", "why", "from", "via", "reach", "reason",
    ];
    let mut text = csv_line(HEAD);
    for row in &egress.hosts {
        let word = |word: Option<String>| word.unwrap_or_default();
        let fields = [
            word(row.change.map(|change| change.to_string())),
            row.host.to_string(),
            row.port.to_string(),
            row.scheme.clone(),
            row.known.to_string(),
            row.why.join("; "),
            row.from.join(" "),
            word(row.via.clone()),
            word(row.reach.map(|reach| reach.to_string())),
            word(row.reason.clone()),
        ];
        text += &csv_line(fields);
    }
    text
}
