//! Texts without structure: references and URLs as exact words.

mod comments;
mod secrets;
mod url;
mod words;

pub(super) use secrets::secrets;
pub(super) use words::{Lines, scan};
