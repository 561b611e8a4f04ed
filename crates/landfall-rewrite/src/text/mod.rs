//! Finds references and URLs in texts without structure. A word is a reference only if nothing
//! before or after it could belong to the reference.

mod comments;
mod dockerfile;
mod dockerfile_instructions;
#[cfg(test)]
mod dockerfile_tests;
mod document_kinds;
mod git_source_url;
mod joined_text;
mod kept_documents;
mod line_key;
mod meaning;
mod neighbouring_lines;
#[cfg(test)]
mod pattern_tests;
mod placeholder;
mod secrets;
mod shell_variables;
#[cfg(test)]
mod tests;
mod text_marks;
mod url;
mod word;
mod word_scan;

pub(super) use dockerfile::{ImageWord, images};
pub(super) use joined_text::JoinedText;
pub(super) use kept_documents::{CRD_SCHEMA, MIRROR_SET};
pub(super) use placeholder::{has_placeholder, reference_at};
pub use secrets::secrets;
pub(crate) use shell_variables::ShellVariables;
pub(super) use url::{UrlWord, is_assigned};
pub(super) use word::SCHEMES;
pub(super) use word_scan::{TextLines, scan};
