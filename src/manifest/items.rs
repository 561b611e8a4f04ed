//! The items of one manifest, each with its place, before all manifests are merged.

use super::source_text::SourceSpan;
use super::{Endpoint, WantedFile, WantedImage};
use crate::lockfile::Accepted;
use crate::model::ImageRef;

/// The items of one manifest.
#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) images: Vec<Located<WantedImage>>,
    pub(super) files: Vec<Located<WantedFile>>,
    pub(super) missing: Vec<Located<Accepted>>,
    pub(super) endpoints: Vec<Located<Endpoint>>,
    pub(super) exclude: Vec<Located<Exclude>>,
}

/// An item with its place.
#[derive(Debug)]
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) span: SourceSpan,
    /// Whether it comes from another tool's list, which may name an item twice.
    pub(super) listed: bool,
}

/// What to leave out.
#[derive(Debug)]
pub(super) enum Exclude {
    /// A repository, or one reference of it where it has a tag or digest.
    Image(ImageRef),
    /// A file.
    Url(String),
}
