//! The documents of a repository, element by element.

use super::error::YumError;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use std::borrow::Cow;
use std::io::BufRead;

/// What comes next in a document. Names are without their prefixes.
pub(super) enum XmlEvent<'a> {
    Start(&'a XmlElement<'a>),
    /// The element of this name ends, with this text since the last start or end.
    End(&'a str, &'a str),
}

/// The start of an element.
pub(super) struct XmlElement<'a> {
    start: &'a BytesStart<'a>,
    what: &'static str,
}

impl XmlElement<'_> {
    /// Its name, without the prefix.
    pub(super) fn name(&self) -> &str {
        local(self.start.name().into_inner())
    }

    /// Shows each attribute to `each`: its name, with its prefix, and its value.
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

    /// The value of the attribute `name`.
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

/// Calls `visit` for each start and end of an element in `reader`, and stops at its first error.
/// `what` names the document in messages.
pub(super) fn walk(
    reader: impl BufRead,
    what: &'static str,
    visit: &mut dyn FnMut(XmlEvent<'_>) -> Result<(), YumError>,
) -> Result<(), YumError> {
    let mut reader = Reader::from_reader(reader);
    let (mut buffer, mut text) = (Vec::new(), String::new());
    let (mut depth, mut elements) = (0_usize, 0_usize);
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Text(part)) => text.push_str(&part),
            Ok(Event::CData(part)) => text.push_str(&part),
            Ok(Event::GeneralRef(part)) => {
                let unknown = || {
                    YumError::malformed(what, format!("it refers to '&{};'", part.escape_default()))
                };
                text.push(referred(&part).ok_or_else(unknown)?);
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
                visit(XmlEvent::End(local(start.name().into_inner()), ""))?;
                text.clear();
            }
            Ok(Event::End(end)) => {
                depth = depth.saturating_sub(1);
                visit(XmlEvent::End(local(end.name().into_inner()), text.trim()))?;
                text.clear();
            }
            Ok(Event::Eof) if depth > 0 || elements == 0 => {
                return Err(YumError::malformed(what, "it ends in the middle"));
            }
            Ok(Event::Eof) => return Ok(()),
            Ok(_) => {}
            Err(quick_xml::Error::Io(error)) => {
                return Err(std::io::Error::new(error.kind(), error.to_string()).into());
            }
            Err(error) => return Err(YumError::malformed(what, error)),
        }
    }
}

fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, name)| name)
}

/// The character that a reference means, where XML itself knows it.
fn referred(part: &BytesRef<'_>) -> Option<char> {
    match &**part {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => part.resolve_char_ref().ok()?,
    }
}
