//! Texts without structure: references and URLs as exact words.

mod comments;
mod placeholder;
mod secrets;
#[cfg(test)]
mod tests;
mod url;
mod words;

pub(super) use placeholder::reference_at;
pub(super) use secrets::secrets;
pub(super) use words::{Lines, SCHEMES, scan};
