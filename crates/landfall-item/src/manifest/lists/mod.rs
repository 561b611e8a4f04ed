//! Reads image lists of other tools. Each format is a file here and a row of [`FORMATS`].

mod images_txt;
mod kkp;
#[cfg(test)]
mod testing;

use landfall_model::document::{Diagnostic, SourceSpan, SourceText};
use std::rc::Rc;

/// All formats, in the order of the JSON schema.
pub(super) const FORMATS: &[ImageListFormat] = &[images_txt::FORMAT, kkp::FORMAT];

/// The format with this name.
pub(super) fn format_named(name: &str) -> Option<&'static ImageListFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

/// Detects the format of a text.
pub(super) fn format_of(text: &str) -> Option<&'static ImageListFormat> {
    FORMATS.iter().find(|format| (format.is)(text))
}

/// The name of the list format of a text, if it looks like an image list.
pub fn list_format(text: &str) -> Option<&'static str> {
    format_of(text).map(|format| format.name)
}

/// The image references in the order of the list, each with its position.
type ListedImages = Vec<(String, SourceSpan)>;

/// A format of image lists that `lists:` of a manifest accepts.
#[derive(Debug)]
pub(super) struct ImageListFormat {
    /// The name of the format in a manifest.
    pub(super) name: &'static str,
    /// The description in the JSON schema.
    pub(super) about: &'static str,
    /// Whether a file that is not a manifest looks like this format.
    is: fn(&str) -> bool,
    /// Reads the image references, each with its position.
    references: fn(&Rc<SourceText>) -> Result<ListedImages, Box<Diagnostic>>,
    /// The message and the help for a list without an image.
    if_empty: (&'static str, &'static str),
}

impl ImageListFormat {
    /// Reads the references in `text`, in their order. Fails if there is none.
    pub(super) fn read(&self, text: &Rc<SourceText>) -> Result<ListedImages, Box<Diagnostic>> {
        let found = (self.references)(text)?;
        if found.is_empty() {
            let (message, help) = self.if_empty;
            return Err(SourceSpan::new(text, 0..0).fault(message, Some(help)));
        }
        Ok(found)
    }
}

/// The lines of `text`, trimmed, each with the offset of its first byte.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut next = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = next;
        next += line.len();
        let begin = line.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        (start + line.len() - begin.len(), begin.trim_end())
    })
}
