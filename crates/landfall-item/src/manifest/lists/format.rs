//! The type of list formats.

use landfall_model::document::Diagnostic;
use landfall_model::document::{SourceSpan, SourceText};
use std::rc::Rc;

/// The image references in the order of the list, each with its position.
pub(super) type ListedImages = Vec<(String, SourceSpan)>;

/// A format of image lists that `lists:` of a manifest accepts.
#[derive(Debug)]
pub(in super::super) struct ImageListFormat {
    /// The name of the format in a manifest.
    pub(in super::super) name: &'static str,
    /// The description in the JSON schema.
    pub(in super::super) about: &'static str,
    /// Whether a file that is not a manifest looks like this format.
    pub(super) is: fn(&str) -> bool,
    /// Reads the image references, each with its position.
    pub(super) references: fn(&Rc<SourceText>) -> Result<ListedImages, Box<Diagnostic>>,
    /// The message and the help for a list without an image.
    pub(super) if_empty: (&'static str, &'static str),
}

impl ImageListFormat {
    /// Reads the references in `text`, in their order. Fails if there is none.
    pub(in super::super) fn read(
        &self,
        text: &Rc<SourceText>,
    ) -> Result<ListedImages, Box<Diagnostic>> {
        let found = (self.references)(text)?;
        if found.is_empty() {
            let (message, help) = self.if_empty;
            return Err(SourceSpan::new(text, 0..0).fault(message, Some(help.into())));
        }
        Ok(found)
    }
}
