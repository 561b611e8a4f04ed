//! Lines of CSV (RFC 4180) that spreadsheets open safely.

use super::escape::one_line;

/// Formats one line of CSV, with its line end (CRLF).
pub fn csv_line<T: AsRef<str>>(fields: impl IntoIterator<Item = T>) -> String {
    let fields: Vec<String> = fields
        .into_iter()
        .map(|field| quoted(field.as_ref()))
        .collect();
    fields.join(",") + "\r\n"
}

/// Returns `field` on one line, quoted if needed, and marked as text if it looks like a formula.
fn quoted(field: &str) -> String {
    let field = one_line(field);
    // spreadsheets evaluate a field as a formula if it begins with one of these, even after blanks
    let is_formula = field.trim_start().starts_with(['=', '+', '-', '@']);
    let field = if is_formula {
        format!("'{field}")
    } else {
        field
    };
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field
    }
}
