//! Reads one document.

use super::reader::Reader;
use crate::yaml::node::Document;
use std::ops::Range;

#[allow(
    clippy::option_option,
    reason = "outside: it is plain; inside: there is one"
)]
/// The document of the `part` of `source` (see `parts`), if there is one in it.
pub(in crate::yaml) fn read<'a>(
    source: &'a str,
    part: &Range<usize>,
) -> Option<Option<Document<'a>>> {
    let text = &source[..part.end];
    if !is_printable(&source[part.clone()]) {
        return None;
    }
    let mut reader = Reader::new(text, part.start);
    let marked =
        reader.bytes[part.clone()].starts_with(b"---") && reader.is_blank_at(part.start + 3);
    if marked {
        reader.at += 3;
        reader.end_line()?;
    } else {
        reader.next_line()?;
    }
    if reader.column < 0 {
        // the other reader finds the end of an empty document
        return (!marked).then_some(None);
    }
    let root = reader.node(reader.column, -1)?;
    Some(Some(Document {
        root: Some(root),
        ..Document::default()
    }))
}

/// Whether YAML reads every character as itself, and lines end with `\n` alone.
fn is_printable(text: &str) -> bool {
    let ascii = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    let is_other = |c: char| matches!(c, '\u{85}' | '\u{a0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..);
    // without a branch, the processor takes many bytes at a time
    text.bytes().fold(true, |all, byte| all & ascii(byte))
        || text.chars().all(|c| {
            if c.is_ascii() {
                ascii(c as u8)
            } else {
                is_other(c)
            }
        })
}
