//! The locked images of one repository, and which of them a reference asks for.

use super::listing::listed;
use super::locked::ReferencedItem;
use landfall_model::Destination;
use landfall_model::{Digest, ImageRef};
use std::collections::{BTreeMap, BTreeSet};

/// Repositories by name.
pub(super) type Repositories = BTreeMap<String, Repository>;

/// One repository with locked images.
#[derive(Debug, Clone)]
pub(super) struct Repository {
    pub(super) name: String,
    pub(super) images: Vec<IndexedImage>,
}

/// A locked image in the index.
#[derive(Debug, Clone)]
pub(super) struct IndexedImage {
    name: ImageRef,
    pub(super) digest: Digest,
    /// Those of the index, the trimmed index and its manifests.
    digests: BTreeSet<Digest>,
    /// Its destinations; the first one is written. Empty where the site gives it an empty list.
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

/// What a reference asks for within its repository.
pub(super) struct Asked<'a> {
    pub(super) tag: Option<&'a str>,
    pub(super) digest: Option<&'a Digest>,
    pub(super) with_host: bool,
}

/// The tags of a repository have different destinations.
pub(super) struct Ambiguous(pub(super) String);

/// Adds `image` to the repository `name`.
pub(super) fn add(repositories: &mut Repositories, name: String, image: IndexedImage) {
    let entry = repositories
        .entry(name.clone())
        .or_insert_with(|| Repository {
            name,
            images: Vec::new(),
        });
    entry.images.push(image);
}

impl Repository {
    /// The image that is asked for, with the name of the item; the first image of the repository
    /// where only the repository is asked for. An error where that cannot be decided.
    pub(super) fn find(
        &self,
        asked: &Asked<'_>,
    ) -> Option<Result<(String, &IndexedImage), Ambiguous>> {
        let image = match (asked.digest, asked.tag) {
            (Some(digest), _) => self
                .images
                .iter()
                .find(|image| image.digests.contains(digest))?,
            (None, Some(tag)) => self
                .images
                .iter()
                .find(|image| image.name.tag.as_deref() == Some(tag))?,
            (None, None) if asked.with_host => {
                let first = self.images.first()?;
                if self
                    .images
                    .iter()
                    .any(|image| image.to.first() != first.to.first())
                {
                    let why = format!("its tags ({}) go to different places", self.listed());
                    return Some(Err(Ambiguous(why)));
                }
                return Some(Ok((first.name.name(), first)));
            }
            (None, None) => return None,
        };
        Some(Ok((image.name.to_string(), image)))
    }

    /// The locked tags and digests, for messages.
    pub(super) fn listed(&self) -> String {
        listed(self.images.iter().map(|image| (&image.name, &image.digest)))
    }
}
