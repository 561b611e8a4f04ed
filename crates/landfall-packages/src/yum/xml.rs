//! Reads the XML documents of a repository element by element, without a tree in memory.

use super::error::YumError;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use std::borrow::Cow;
use std::io::BufRead;

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
    ) -> Result<(), YumError> {
        for attribute in self.start.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| YumError::malformed(self.what, error))?;
            let value = attribute.normalized_value(XmlVersion::Explicit1_0);
            each(
                attribute.key.into_inner(),
                value.map_err(|error| YumError::malformed(self.what, error))?,
            );
        }
        Ok(())
    }

    /// Returns the value of the attribute `name`.
    pub(super) fn attribute(&self, name: &str) -> Result<Option<String>, YumError> {
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
    visit: &mut dyn FnMut(XmlEvent<'_>) -> Result<(), YumError>,
) -> Result<(), YumError> {
    let mut reader = Reader::from_reader(reader);
    let mut buffer = Vec::new();
    let mut text = String::new();
    let mut depth = 0_usize;
    let mut elements = 0_usize;
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            // text, CDATA and references are separate events; one text can consist of all of them
            Ok(Event::Text(part)) => text.push_str(&part),
            Ok(Event::CData(part)) => text.push_str(&part),
            // entities that the document declares itself are not supported
            Ok(Event::GeneralRef(part)) => {
                text.push(resolve_reference(&part).ok_or_else(|| {
                    YumError::malformed(
                        what,
                        format!("unknown entity '&{};'", part.escape_default()),
                    )
                })?);
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
                return Err(YumError::malformed(what, "it is truncated"));
            }
            Ok(Event::Eof) => return Ok(()),
            Ok(_) => {}
            // an error of the reader, such as too much unpacked content, is not an error of the XML
            Err(quick_xml::Error::Io(error)) => {
                return Err(std::io::Error::new(error.kind(), error.to_string()).into());
            }
            Err(error) => return Err(YumError::malformed(what, error)),
        }
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
