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

/// Returns a field, quoted if needed.
fn quoted(field: &str) -> String {
    let field = one_line(field);
    // spreadsheets evaluate a field that begins with such a sign, even after blanks, as a formula
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
