//! Formats a table for spreadsheets (RFC 4180). The columns are always the same, so that programs
//! can rely on them.

use crate::egress::Egress;
use landfall_model::report::csv_line;

pub(super) fn write(egress: &Egress) -> String {
    const HEAD: [&str; 10] = [
        "change", "host", "port", "scheme", "known", "why", "from", "via", "reach", "reason",
    ];
    let mut text = csv_line(HEAD);
    for row in &egress.hosts {
        let fields = [
            row.change
                .map(|change| change.to_string())
                .unwrap_or_default(),
            row.host.to_string(),
            row.port.to_string(),
            row.scheme.clone(),
            row.known.to_string(),
            row.why.join("; "),
            row.from.join(" "),
            row.via.clone().unwrap_or_default(),
            row.reach.map(|reach| reach.to_string()).unwrap_or_default(),
            row.reason.clone().unwrap_or_default(),
        ];
        text += &csv_line(fields);
    }
    text
}
