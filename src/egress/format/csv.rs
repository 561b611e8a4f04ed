//! A table for spreadsheets (RFC 4180): the same columns in every list.

use crate::egress::Egress;

pub(super) fn write(egress: &Egress) -> String {
    let mut text = "change,host,port,scheme,known,why,from,via,reach,reason\r\n".to_owned();
    for row in &egress.hosts {
        let word = |word: Option<String>| word.unwrap_or_default();
        let fields = [
            word(row.change.map(|change| change.to_string())),
            row.host.clone(),
            row.port.to_string(),
            row.scheme.clone(),
            row.known.to_string(),
            row.why.join("; "),
            row.from.join(" "),
            word(row.via.clone()),
            word(row.reach.map(|reach| reach.to_string())),
            word(row.reason.clone()),
        ];
        text += &(fields.map(|field| quoted(&field)).join(",") + "\r\n");
    }
    text
}

/// A field, quoted where it must be. A spreadsheet would take one that begins with a sign for a formula.
fn quoted(field: &str) -> String {
    let field = if field.starts_with(['=', '+', '-', '@']) { format!("'{field}") } else { field.to_owned() };
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field,
    }
}
