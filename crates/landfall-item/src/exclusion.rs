//! An entry of `exclude:` in a manifest.

use landfall_model::{Digest, ImageRef, is_same_host, is_same_url};
use std::fmt;

/// An entry of `exclude:` in a manifest: the items to omit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exclusion {
    /// All images of a repository, or one image if a tag or digest is written.
    Reference(ImageRef),
    /// The item with this URL or name.
    Url(String),
}

impl Exclusion {
    /// Whether the item with this URL or name is excluded.
    pub(super) fn matches_url(&self, name: &str) -> bool {
        matches!(self, Exclusion::Url(url) if is_same_url(url, name))
    }

    /// Whether `reference`, for which the manifest requires the digest `pin`, is excluded.
    pub(super) fn matches(&self, reference: &ImageRef, pin: Option<&Digest>) -> bool {
        let Exclusion::Reference(exclude) = self else {
            return false;
        };
        let digest = reference.digest.as_ref().or(pin);
        // an exclusion without a tag or digest matches every tag or digest
        is_same_host(&exclude.registry, &reference.registry)
            && exclude.repository == reference.repository
            && (exclude.tag.is_none() || exclude.tag == reference.tag)
            && (exclude.digest.is_none() || exclude.digest.as_ref() == digest)
    }

    /// `reference` in the form of this exclusion: a repository, or a full reference. `None` if this
    /// exclusion is a URL or name.
    pub(super) fn write_alike(&self, reference: &ImageRef) -> Option<String> {
        let Exclusion::Reference(exclude) = self else {
            return None;
        };
        Some(if exclude.is_pinned() {
            reference.to_string()
        } else {
            reference.name()
        })
    }
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exclusion::Reference(reference) if reference.is_pinned() => reference.fmt(f),
            Exclusion::Reference(repository) => f.write_str(&repository.name()),
            Exclusion::Url(url) => f.write_str(url),
        }
    }
}
