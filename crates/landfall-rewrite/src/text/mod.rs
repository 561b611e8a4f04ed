//! Texts without structure: references and URLs as exact words.

mod comments;
mod dockerfile;
#[cfg(test)]
mod dockerfile_tests;
mod kept;
mod key;
mod kinds;
mod meaning;
mod neighbours;
#[cfg(test)]
mod pattern_tests;
mod placeholder;
mod places;
mod secrets;
#[cfg(test)]
mod tests;
mod url;
mod word;
mod words;

pub(super) use dockerfile::{ImageWord, images};
pub(super) use kept::{CRD_SCHEMA, MIRROR_SET};
pub(super) use placeholder::reference_at;
pub use secrets::secrets;
pub(super) use word::SCHEMES;
pub(super) use words::{Lines, scan};
