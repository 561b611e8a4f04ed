//! JSON documents of other tools. Some of them, mostly on Windows, write a byte order mark at the
//! start, which JSON parsers refuse.

use serde::Deserialize;

/// The document without a byte order mark at its start.
pub fn without_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Parses a JSON document that another tool wrote.
///
/// # Errors
/// If it is not JSON of this type.
pub fn from_json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(without_bom(bytes))
}
