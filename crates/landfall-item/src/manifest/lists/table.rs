//! The formats that `lists` of a manifest reads. To add one, write a file next to this one, its
//! `mod` line, and a row here.

use super::format::ImageListFormat;
use super::{images_txt, kkp};

/// All formats, in the order of the JSON schema.
pub(in super::super) const FORMATS: &[ImageListFormat] = &[images_txt::FORMAT, kkp::FORMAT];

/// The format with this name.
pub(in super::super) fn format_named(name: &str) -> Option<&'static ImageListFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

/// Detects the format of a text.
pub(in super::super) fn format_of(text: &str) -> Option<&'static ImageListFormat> {
    FORMATS.iter().find(|format| (format.is)(text))
}

/// The name of the list format of a text, if it looks like an image list.
pub fn list_format(text: &str) -> Option<&'static str> {
    format_of(text).map(|format| format.name)
}
