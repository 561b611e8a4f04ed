//! The table of list formats. A new format is a file beside this one, its `mod` line, and a row here.

use super::format::Format;
use super::{images_txt, kkp};

/// All formats, in the order of the JSON schema.
pub(in super::super) const FORMATS: &[Format] = &[images_txt::FORMAT, kkp::FORMAT];

/// The format that a text has, by its looks.
pub(in super::super) fn format_of(text: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| (format.is)(text))
}

/// Whether a text looks like a list of images.
pub(crate) fn is_list(text: &str) -> bool {
    format_of(text).is_some()
}
