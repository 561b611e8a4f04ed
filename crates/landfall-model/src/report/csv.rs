//! Lines of CSV (RFC 4180) that spreadsheets open safely.

use super::escape::one_line;

/// One line of CSV with its line end.
pub fn csv_line<T: AsRef<str>>(fields: impl IntoIterator<Item = T>) -> String {
    let fields: Vec<String> = fields
        .into_iter()
        .map(|field| quoted(field.as_ref()))
        .collect();
    fields.join(",") + "\r\n"
}

/// A field, quoted if needed. A spreadsheet would evaluate one that begins with a sign as a
/// formula, and skips blanks before it.
fn quoted(field: &str) -> String {
    let field = one_line(field);
    let is_formula = field.trim_start().starts_with(['=', '+', '-', '@']);
    let field = if is_formula {
        format!("'{field}")
    } else {
        field
    };
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field,
    }
}
