//! The table of list formats. A new format is a file beside this one, its `mod` line, and a row
//! here.

use super::format::ImageListFormat;
use super::{images_txt, kkp};

/// All formats, in the order of the JSON schema.
pub(in super::super) const FORMATS: &[ImageListFormat] = &[images_txt::FORMAT, kkp::FORMAT];

/// The format of this name.
pub(in super::super) fn format_named(name: &str) -> Option<&'static ImageListFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The format that a text has, by its looks.
pub(in super::super) fn format_of(text: &str) -> Option<&'static ImageListFormat> {
    FORMATS.iter().find(|format| (format.is)(text))
}

/// The name of the format of a text that looks like a list of images.
pub fn list_format(text: &str) -> Option<&'static str> {
    format_of(text).map(|format| format.name)
}
