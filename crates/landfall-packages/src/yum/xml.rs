//! Reads the XML documents of a repository element by element, without a tree in memory.

use super::metadata::{malformed, unreadable};
use landfall_model::Failure;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, BufRead, Read};

/// The maximum depth of nested elements. The parser keeps the name of each open element, and the
/// indexes of repositories have a depth of five.
pub(super) const MAX_DEPTH: usize = 64;

/// The maximum size in bytes of a tag, and of the text between two tags. The parser keeps one of
/// each.
const MAX_PART: usize = 16 << 20;

/// The start or end of an element. Names are without their namespace prefixes.
pub(super) enum XmlEvent<'a> {
    Start(&'a XmlElement<'a>),
    /// The name of an element that ends, and its text since the last start or end of any element.
    End(&'a str, &'a str),
}

/// The start of an element.
pub(super) struct XmlElement<'a> {
    start: &'a BytesStart<'a>,
    what: &'static str,
}

impl XmlElement<'_> {
    /// Returns the name without its namespace prefix.
    pub(super) fn name(&self) -> &str {
        local_name(self.start.name().into_inner())
    }

    /// Calls `each` with the name (including its prefix) and the value of each attribute.
    pub(super) fn attributes(
        &self,
        mut each: impl FnMut(&str, Cow<'_, str>),
    ) -> Result<(), Failure> {
        for attribute in self.start.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| malformed(self.what, error))?;
            let value = attribute.normalized_value(XmlVersion::Explicit1_0);
            each(
                attribute.key.into_inner(),
                value.map_err(|error| malformed(self.what, error))?,
            );
        }
        Ok(())
    }

    /// Returns the value of the attribute `name`.
    pub(super) fn attribute(&self, name: &str) -> Result<Option<String>, Failure> {
        let mut found = None;
        self.attributes(|key, value| {
            if key == name {
                found = Some(value.into_owned());
            }
        })?;
        Ok(found)
    }
}

/// Calls `visit` for each start and end of an element in `reader`. Stops at the first error of
/// `visit` or of the XML. `what` names the document in messages.
pub(super) fn walk(
    reader: impl BufRead,
    what: &'static str,
    visit: &mut dyn FnMut(XmlEvent<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let left = Cell::new(MAX_PART);
    let mut reader = Reader::from_reader(LimitedReader {
        reader,
        left: &left,
    });
    let mut buffer = Vec::new();
    let mut text = String::new();
    let mut depth = 0_usize;
    let mut elements = 0_usize;
    loop {
        buffer.clear();
        // one text can consist of many events
        left.set(MAX_PART.saturating_sub(text.len()));
        match reader.read_event_into(&mut buffer) {
            // text, CDATA and references are separate events; one text can consist of all of them
            Ok(Event::Text(part)) => text.push_str(&part),
            Ok(Event::CData(part)) => text.push_str(&part),
            // entities that the document declares itself are not supported
            Ok(Event::GeneralRef(part)) => {
                text.push(resolve_reference(&part).ok_or_else(|| {
                    malformed(
                        what,
                        format!("unknown entity '&{};'", part.escape_default()),
                    )
                })?);
            }
            Ok(Event::Start(_)) if depth >= MAX_DEPTH => {
                let why = format!("its elements are nested more than {MAX_DEPTH} times");
                return Err(malformed(what, why));
            }
            Ok(Event::Start(start)) => {
                (depth, elements) = (depth + 1, elements + 1);
                text.clear();
                visit(XmlEvent::Start(&XmlElement {
                    start: &start,
                    what,
                }))?;
            }
            Ok(Event::Empty(start)) => {
                elements += 1;
                visit(XmlEvent::Start(&XmlElement {
                    start: &start,
                    what,
                }))?;
                visit(XmlEvent::End(local_name(start.name().into_inner()), ""))?;
                text.clear();
            }
            Ok(Event::End(end)) => {
                depth = depth.saturating_sub(1);
                visit(XmlEvent::End(
                    local_name(end.name().into_inner()),
                    text.trim(),
                ))?;
                text.clear();
            }
            // the parser accepts a document with open elements, or without any element
            Ok(Event::Eof) if depth > 0 || elements == 0 => {
                return Err(malformed(what, "it is truncated"));
            }
            Ok(Event::Eof) => return Ok(()),
            Ok(_) => {}
            // an error of the reader, such as too much unpacked content, is not an error of the XML
            Err(quick_xml::Error::Io(error)) => return Err(unreadable(error)),
            Err(error) => return Err(malformed(what, error)),
        }
    }
}

/// Reads at most `left` bytes until `left` is set again.
struct LimitedReader<'l, R> {
    reader: R,
    left: &'l Cell<usize>,
}

impl<R: Read> Read for LimitedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

impl<R: BufRead> BufRead for LimitedReader<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let left = self.left.get();
        let bytes = self.reader.fill_buf()?;
        if left == 0 && !bytes.is_empty() {
            let why = format!("a tag or text in it has more than {MAX_PART} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(&bytes[..bytes.len().min(left)])
    }

    fn consume(&mut self, count: usize) {
        self.left.set(self.left.get().saturating_sub(count));
        self.reader.consume(count);
    }
}

fn local_name(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, name)| name)
}

/// Returns the character of a reference: a predefined entity of XML, or a character reference.
fn resolve_reference(part: &BytesRef<'_>) -> Option<char> {
    match &**part {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => part.resolve_char_ref().ok()?,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    /// The error for a document, or an empty text. Also returns the number of bytes that were read.
    fn outcome(document: &[u8]) -> (String, usize) {
        let mut rest = document;
        let reader = BufReader::with_capacity(1000, &mut rest);
        let result = walk(reader, "document", &mut |_| Ok(()));
        let error = result.err().map(|error| error.to_string());
        (error.unwrap_or_default(), document.len() - rest.len())
    }

    #[test]
    fn nested_elements_are_limited_in_number() {
        let nested = |depth: usize| "<a>".repeat(depth) + &"</a>".repeat(depth);
        assert_eq!(outcome(nested(MAX_DEPTH).as_bytes()).0, "");
        let (error, read) = outcome(nested(1 << 20).as_bytes());
        assert!(error.contains("nested more than 64 times"), "{error}");
        assert!(read <= 2000, "{read}");
        // many elements one after the other are not nested
        let flat = format!("<a>{}</a>", "<b></b><c/>".repeat(10_000));
        assert_eq!(outcome(flat.as_bytes()).0, "");
    }

    #[test]
    fn tags_and_texts_are_limited_in_size() {
        let text = |length: usize| {
            format!(
                "<a>{}&amp;{}</a>",
                "x".repeat(length / 2),
                "y".repeat(length / 2)
            )
        };
        assert_eq!(outcome(text(MAX_PART - 100).as_bytes()).0, "");
        let comment = format!("<!--{}-->x<b/>", "c".repeat(100_000));
        let comments = format!("<a>{}</a>", comment.repeat(400));
        assert_eq!(outcome(comments.as_bytes()).0, "");
        for document in [
            text(4 * MAX_PART),
            format!(
                "<a>{}</a>",
                format!("&amp;{}", "x".repeat(1000)).repeat(40_000)
            ),
            format!("<a b=\"{}\"/>", "x".repeat(3 * MAX_PART)),
            format!("<a><![CDATA[{}]]></a>", "x".repeat(3 * MAX_PART)),
            format!("<{}/>", "x".repeat(3 * MAX_PART)),
        ] {
            let (error, read) = outcome(document.as_bytes());
            assert!(error.contains("has more than 16777216 bytes"), "{error}");
            assert!(read <= 7 * MAX_PART, "{read}");
        }
    }
}
