//! Two locked items that would get one name at the destination.

use crate::lockfile::{File, Image, Lock};
use crate::model::{Digest, ImageRef, Mapping, file_tag};
use std::collections::BTreeMap;

/// Two digests that would get one name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{place} would be two things: {first} ({first_digest}) and {second} ({second_digest}); give one of \
     them a path of its own in the site file, under registry.paths:\n    {mend}"
)]
pub struct Collision {
    /// `registry/repository:tag` at the destination.
    pub place: String,
    /// One locked name.
    pub first: String,
    /// Its digest.
    pub first_digest: Digest,
    /// The other locked name.
    pub second: String,
    /// Its digest.
    pub second_digest: Digest,
    /// The line to add.
    pub mend: String,
}

/// The first two items of `lock` that would get one name with two digests, if there are any.
pub fn collision(mapping: &Mapping, lock: &Lock) -> Option<Collision> {
    let images = lock.images.iter().flat_map(|image: &Image| {
        let tag = image.destination_tag();
        mapping
            .image(&image.name)
            .into_iter()
            .map(move |place| (format!("{place}:{tag}"), image.name.to_string(), &image.digest))
    });
    let files = lock.files.iter().map(|file: &File| {
        (format!("{}:{}", mapping.file(&file.name), file_tag(&file.digest)), file.name.clone(), &file.digest)
    });
    let mut taken: BTreeMap<String, (String, &Digest)> = BTreeMap::new();
    for (place, name, digest) in images.chain(files) {
        match taken.get(&place) {
            Some((first, first_digest)) if *first_digest != digest => {
                let source = name.parse::<ImageRef>().map_or(name.clone(), |name| name.name());
                return Some(Collision {
                    mend: format!("{source}: {}", source.replace(':', "_")),
                    place,
                    first: first.clone(),
                    first_digest: (*first_digest).clone(),
                    second: name,
                    second_digest: digest.clone(),
                });
            }
            Some(_) => {}
            None => {
                taken.insert(place, (name, digest));
            }
        }
    }
    None
}
