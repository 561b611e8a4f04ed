//! Finds references and URLs in texts without structure. A word is a reference only if nothing
//! before or after it could belong to the reference.

mod dockerfile;
#[cfg(test)]
mod dockerfile_tests;
mod joined_text;
mod meaning;
#[cfg(test)]
mod pattern_tests;
mod placeholder;
mod secrets;
mod shell_variables;
#[cfg(test)]
mod tests;
mod url;
mod word_scan;

pub(super) use self::dockerfile::{ImageWord, images};
pub(super) use self::joined_text::JoinedText;
pub(super) use self::placeholder::{has_placeholder, reference_at};
pub use self::secrets::secrets;
pub(crate) use self::shell_variables::ShellVariables;
pub(super) use self::url::{UrlWord, is_assigned};
pub(super) use self::word_scan::{CRD_SCHEMA, MIRROR_SET, SCHEMES, TextLines, scan};
