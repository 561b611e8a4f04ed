//! The table of list formats. A new format is a file beside this one, its `mod` line, and a row here.

use super::format::Format;
use super::{images_txt, kkp};

/// All formats, in the order of the JSON schema.
pub(in super::super) const FORMATS: &[Format] = &[images_txt::FORMAT, kkp::FORMAT];
