//! The entry point of the reader: reads one document.

use super::reader::SimpleReader;
use landfall_model::document::YamlDocument;
use std::ops::Range;

#[allow(
    clippy::option_option,
    reason = "outer: whether this reader can read it; inner: whether there is a document"
)]
/// Reads the document in the `part` of `source` (see `stream_parts`), if there is one.
pub(in crate::yaml) fn read<'a>(
    source: &'a str,
    part: &Range<usize>,
) -> Option<Option<YamlDocument<'a>>> {
    let text = &source[..part.end];
    if !is_printable(&source[part.clone()]) {
        return None;
    }
    let mut reader = SimpleReader::new(text, part.start);
    let marked =
        reader.bytes[part.clone()].starts_with(b"---") && reader.is_blank_at(part.start + 3);
    if marked {
        reader.at += 3;
        reader.end_line()?;
    } else {
        reader.next_line()?;
    }
    if reader.column < 0 {
        // the general parser knows where an empty document ends
        return (!marked).then_some(None);
    }
    let root = reader.node(reader.column, -1)?;
    Some(Some(YamlDocument::new(root)))
}

/// Whether YAML keeps every character unchanged, and all lines end with `\n`.
fn is_printable(text: &str) -> bool {
    let ascii = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    let is_other = |c: char| matches!(c, '\u{85}' | '\u{a0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..);
    // without a branch, the compiler makes this loop process many bytes at a time
    text.bytes().fold(true, |all, byte| all & ascii(byte))
        || text.chars().all(|c| {
            if c.is_ascii() {
                ascii(c as u8)
            } else {
                is_other(c)
            }
        })
}
