//! Helpers for the tests of the formats.

use super::ImageListFormat;
use landfall_model::document::{SourceSpan, SourceText};

/// Each reference as `line:column reference [text at that position]`.
pub(super) fn read_text(format: &ImageListFormat, text: &str) -> Result<Vec<String>, String> {
    let text = SourceText::plain("list".into(), text.into());
    let show = |(reference, span): (String, SourceSpan)| {
        let at = span.location();
        format!("{}:{} {reference} [{}]", at.line, at.column, span.written())
    };
    format
        .read(&text)
        .map(|found| found.into_iter().map(show).collect())
        .map_err(|e| e.to_string())
}
