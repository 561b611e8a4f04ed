//! What one manifest asks for, each value with its place, before all manifests are merged.

use super::source_text::SourceSpan;
use super::{Endpoint, WantedFile, WantedImage};
use crate::lockfile::Accepted;
use crate::model::ImageRef;

/// What one manifest asks for.
#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) images: Vec<Item<WantedImage>>,
    pub(super) files: Vec<Item<WantedFile>>,
    pub(super) missing: Vec<Item<Accepted>>,
    pub(super) endpoints: Vec<Item<Endpoint>>,
    pub(super) exclude: Vec<Item<Exclude>>,
}

/// A value with its place.
#[derive(Debug)]
pub(super) struct Item<T> {
    pub(super) value: T,
    pub(super) span: SourceSpan,
    /// Whether it comes from another tool's list, which may say a thing twice.
    pub(super) listed: bool,
}

/// What to leave out.
#[derive(Debug)]
pub(super) enum Exclude {
    /// A repository, or one reference of it where a tag or digest is written.
    Image(ImageRef),
    /// A file.
    Url(String),
}
