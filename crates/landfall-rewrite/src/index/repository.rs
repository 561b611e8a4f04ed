//! The locked images of one repository, and which of them a reference refers to.

use super::locked_names::ReferencedItem;
use super::tag_list::listed;
use landfall_model::Destination;
use landfall_model::{Digest, ImageRef};
use std::collections::{BTreeMap, BTreeSet};

/// Repositories by their full name.
pub(super) type RepositoryMap = BTreeMap<String, IndexedRepository>;

/// A repository with locked images.
#[derive(Debug, Clone)]
pub(super) struct IndexedRepository {
    pub(super) name: String,
    pub(super) images: Vec<IndexedImage>,
}

/// A locked image in the index.
#[derive(Debug, Clone)]
pub(super) struct IndexedImage {
    name: ImageRef,
    pub(super) digest: Digest,
    /// The digests of the index, the trimmed index and their manifests.
    digests: BTreeSet<Digest>,
    /// The destinations of the image; references are changed to the first one. Empty if the site
    /// has an empty list for the image. In a reverse index, an image under its delivered name has
    /// its upstream repository as the only destination; under its upstream name it has none.
    pub(super) to: Vec<Destination>,
}

impl IndexedImage {
    pub(super) fn new(image: ReferencedItem<'_>, to: Vec<Destination>) -> IndexedImage {
        let digests = image.digests().cloned().collect();
        IndexedImage {
            name: image.name().clone(),
            digest: image.digest().clone(),
            digests,
            to,
        }
    }
}

/// The parts of a reference that select an image of a repository.
pub(super) struct ReferenceQuery<'a> {
    pub(super) tag: Option<&'a str>,
    pub(super) digest: Option<&'a Digest>,
    pub(super) with_host: bool,
}

/// The reason why a reference without a tag does not select one destination.
pub(super) struct AmbiguousReference(pub(super) String);

/// Adds `image` to the repository `name`.
pub(super) fn add(repositories: &mut RepositoryMap, name: String, image: IndexedImage) {
    let entry = repositories
        .entry(name.clone())
        .or_insert_with(|| IndexedRepository {
            name,
            images: Vec::new(),
        });
    entry.images.push(image);
}

impl IndexedRepository {
    /// The selected image, and the name of its item or, if the reference has neither tag nor
    /// digest, the name of its repository. A reference with a host, but with neither tag nor
    /// digest, selects the first image if all images have the same destination.
    pub(super) fn find(
        &self,
        query: &ReferenceQuery<'_>,
    ) -> Option<Result<(String, &IndexedImage), AmbiguousReference>> {
        let image = match (query.digest, query.tag) {
            (Some(digest), _) => self
                .images
                .iter()
                .find(|image| image.digests.contains(digest))?,
            (None, Some(tag)) => self
                .images
                .iter()
                .find(|image| image.name.tag.as_deref() == Some(tag))?,
            (None, None) if query.with_host => {
                let first = self.images.first()?;
                if self
                    .images
                    .iter()
                    .any(|image| image.to.first() != first.to.first())
                {
                    let why = format!("its tags ({}) have different destinations", self.listed());
                    return Some(Err(AmbiguousReference(why)));
                }
                return Some(Ok((first.name.name(), first)));
            }
            (None, None) => return None,
        };
        Some(Ok((image.name.to_string(), image)))
    }

    /// Lists the locked tags and digests for a message.
    pub(super) fn listed(&self) -> String {
        listed(self.images.iter().map(|image| (&image.name, &image.digest)))
    }
}
