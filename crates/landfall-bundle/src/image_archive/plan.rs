//! What goes into an archive; found out before its first byte.

use super::docker::{self, Saved};
use super::error::{ImageArchiveError, Unfit};
use super::image::ArchivedImage;
use super::layout;
use super::names::{Names, names};
use landfall_content::{BlobRead, ContentError};
use landfall_item::lockfile::Lock;
use landfall_item::{LockedImage, ReadError, Selection, SelectionError};
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_model::{
    Descriptor, DestinationMap, Digest, INDEX_FILE, LAYOUT_FILE, OCI_LAYOUT, Platform,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The form of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageArchiveFormat {
    /// An OCI image layout; an image may have several platforms.
    Oci,
    /// The same with one platform of each image, and `manifest.json`.
    Docker,
}

/// What is asked for.
pub struct ImageArchiveOptions<'a> {
    /// The form.
    pub format: ImageArchiveFormat,
    /// The wanted platforms; empty means all that the lock has.
    pub platforms: &'a [Platform],
    /// Whose destinations are names too.
    pub mapping: Option<&'a DestinationMap>,
}

/// An index that stands in the archive without what was left out.
#[derive(Debug, Serialize)]
pub struct Trim {
    name: String,
    from: Digest,
    to: Digest,
}

/// Everything that an archive is made of.
pub struct ImageArchive {
    /// The images, in the lock's order.
    pub images: Vec<ArchivedImage>,
    /// Images that are not whole in the content at hand.
    pub lost: Vec<ReportItem>,
    /// Indexes that have another digest than in the lock.
    pub trimmed: Vec<Trim>,
    /// Files that follow from the lock, by name, in the order in which they are written.
    pub(super) computed: Vec<(String, Vec<u8>)>,
    /// Blobs, by digest.
    pub(super) blobs: BTreeMap<Digest, u64>,
}

/// An image as it goes in.
struct Planned {
    selection: Selection,
    docker: Option<Saved>,
}

/// Why an image does not go in.
enum Unplanned {
    /// The sentence, and what the image has.
    Unfit(&'static str, String),
    /// Its content is not at hand.
    Lost(ItemStatus, String),
}

impl ImageArchive {
    /// Plans the archive of the images of `lock`, whose content is in `blobs`.
    ///
    /// # Errors
    /// All images that the format cannot hold, or that are not for the platforms.
    pub fn plan(
        lock: &Lock,
        blobs: &dyn BlobRead,
        asked: &ImageArchiveOptions<'_>,
    ) -> Result<ImageArchive, ImageArchiveError> {
        let mut archive = ImageArchive {
            images: Vec::new(),
            lost: Vec::new(),
            trimmed: Vec::new(),
            computed: Vec::new(),
            blobs: BTreeMap::new(),
        };
        let mut indexes: BTreeMap<Digest, Vec<u8>> = BTreeMap::new();
        let mut unfit = Unfit::default();
        for image in &lock.images {
            let (name, digest) = (image.name.to_string(), image.digest.clone());
            let Names { tags, digests } = names(image, asked.mapping);
            match planned(image, blobs, asked, &tags) {
                Ok(Planned {
                    selection:
                        Selection {
                            top,
                            trimmed,
                            parts,
                        },
                    docker,
                }) => {
                    let own = trimmed.as_ref().map_or(0, |bytes| bytes.len() as u64);
                    let bytes = own + parts.iter().map(|part| part.size).sum::<u64>();
                    if let Some(bytes) = trimmed {
                        let trim = Trim {
                            name: name.clone(),
                            from: digest.clone(),
                            to: top.digest.clone(),
                        };
                        archive.trimmed.push(trim);
                        indexes.insert(top.digest.clone(), bytes);
                    }
                    archive
                        .blobs
                        .extend(parts.into_iter().map(|part| (part.digest, part.size)));
                    let names = tags.into_iter().chain(digests).collect();
                    archive.images.push(ArchivedImage {
                        name,
                        digest,
                        names,
                        bytes,
                        top,
                        docker,
                    });
                }
                Err(Unplanned::Unfit(why, what)) => unfit.add(why, &name, &what),
                Err(Unplanned::Lost(status, reason)) => archive.lost.push(ReportItem {
                    kind: EntryKind::Image,
                    name,
                    digest: Some(digest),
                    bytes: None,
                    packages: 0,
                    status,
                    reason: Some(reason),
                }),
            }
        }
        unfit.refuse()?;
        archive
            .computed
            .push((LAYOUT_FILE.into(), OCI_LAYOUT.into()));
        archive
            .computed
            .push((INDEX_FILE.into(), layout::index(&archive.images)));
        if asked.format == ImageArchiveFormat::Docker {
            let saved: Vec<&Saved> = archive
                .images
                .iter()
                .filter_map(|image| image.docker.as_ref())
                .collect();
            archive
                .computed
                .push((docker::MANIFEST_FILE.into(), docker::manifest(&saved)));
        }
        indexes.retain(|digest, _| !archive.blobs.contains_key(digest));
        let indexes = indexes
            .into_iter()
            .map(|(digest, bytes)| (digest.layout_path(), bytes));
        archive.computed.extend(indexes);
        Ok(archive)
    }
}

/// What of `image` goes in, all of it at hand.
fn planned(
    image: &LockedImage,
    blobs: &dyn BlobRead,
    asked: &ImageArchiveOptions<'_>,
    tags: &BTreeSet<String>,
) -> Result<Planned, Unplanned> {
    let planned = match asked.format {
        ImageArchiveFormat::Oci => Planned {
            selection: image.select(blobs, asked.platforms)?,
            docker: None,
        },
        ImageArchiveFormat::Docker => {
            let one = image.select_one(blobs, asked.platforms.first())?;
            if let Some(kind) = docker::strange_layer(&one) {
                let why = "docker takes no layers of such a type; take --format oci, or lock without these";
                return Err(Unplanned::Unfit(why, kind.into()));
            }
            let docker = Some(Saved::of(&one, tags.iter().cloned()));
            let mut parts = vec![one.manifest.clone(), one.config];
            for layer in one.layers {
                if !parts.iter().any(|part| part.digest == layer.digest) {
                    parts.push(layer);
                }
            }
            Planned {
                selection: Selection {
                    top: one.manifest,
                    trimmed: None,
                    parts,
                },
                docker,
            }
        }
    };
    for Descriptor { digest, size, .. } in &planned.selection.parts {
        match blobs.stat(digest) {
            Ok(Some(found)) if found == *size => {}
            Ok(Some(_)) => {
                return Err(lost(ContentError::Damaged {
                    digest: digest.clone(),
                }));
            }
            Ok(None) => {
                return Err(lost(ContentError::Missing {
                    digest: digest.clone(),
                }));
            }
            Err(error) => return Err(lost(error)),
        }
    }
    Ok(planned)
}

fn lost(error: ContentError) -> Unplanned {
    let status = if matches!(error, ContentError::Missing { .. }) {
        ItemStatus::Missing
    } else {
        ItemStatus::Failed
    };
    Unplanned::Lost(status, error.to_string())
}

impl From<SelectionError> for Unplanned {
    fn from(error: SelectionError) -> Unplanned {
        match error {
            SelectionError::Read(ReadError::Content(error)) => lost(error),
            SelectionError::Read(ReadError::TooLarge(_) | ReadError::Manifest { .. })
            | SelectionError::Trimmed(_) => Unplanned::Lost(ItemStatus::Failed, error.to_string()),
            SelectionError::Lacks(lacks) => Unplanned::Unfit(
                "these images are not for all that --platform asks for",
                lacks.to_string(),
            ),
            SelectionError::Several(platforms) => Unplanned::Unfit(
                "a docker archive holds one platform of each image; choose it with --platform, or take --format oci",
                platforms.join(", "),
            ),
            SelectionError::NoImage(_) => Unplanned::Unfit(
                "docker takes container images alone; take --format oci, or lock without these",
                error.to_string(),
            ),
        }
    }
}
