//! Writes the images of a lock as one archive that container runtimes can load.
//!
//! [`ImageArchive::plan`] selects the images and their names, and finds all images that cannot be
//! archived. [`ImageArchive::write`] streams the archive. Both formats are an OCI image layout in a
//! tar: [`ImageArchiveFormat::Oci`] has indexes of several platforms,
//! [`ImageArchiveFormat::Docker`] has one manifest of each image, and also `manifest.json` as
//! `docker save` writes it.

use crate::read::volume_set::begins_with;
use crate::tar_header::{END, encode, encoded_len, padding};
use landfall_content::{BlobRead, ContentError, CopyError, copy_checked};
use landfall_item::lockfile::Lock;
use landfall_item::{LockedImage, OneManifest, ReadError, Selection, SelectionError};
use landfall_model::report::{EntryKind, ItemStatus, Progress, ReportItem};
use landfall_model::{
    Descriptor, DestinationMap, Digest, Failure, INDEX_FILE, LAYOUT_FILE, OCI_LAYOUT, Platform,
    media_type, sum_sizes,
};
use serde::Serialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Write;
use std::path::Path;

/// The format of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageArchiveFormat {
    /// An OCI image layout. An image may have several platforms.
    Oci,
    /// An OCI image layout with one platform of each image, and docker's `manifest.json`.
    Docker,
}

/// The options of an image archive.
pub struct ImageArchiveOptions<'a> {
    /// The format of the archive.
    pub format: ImageArchiveFormat,
    /// The platforms to include, at most one in docker's format; empty means all platforms in the
    /// lock.
    pub platforms: &'a [Platform],
    /// The destinations whose names the images get in addition to their source names.
    pub mapping: Option<&'a DestinationMap>,
}

/// An index that was trimmed to the platforms in the archive.
#[derive(Debug, Clone, Serialize)]
pub struct TrimmedImageIndex {
    name: String,
    from: Digest,
    to: Digest,
}

/// The planned content of an archive.
pub struct ImageArchive {
    /// The images, in the order of the lock.
    pub images: Vec<ArchivedImage>,
    /// Images whose content is missing or cannot be read.
    pub lost: Vec<ReportItem>,
    /// Indexes that were trimmed, so that their digest differs from the one in the lock.
    pub trimmed: Vec<TrimmedImageIndex>,
    /// The computed files, which are not blobs of the source, in the order of the archive.
    computed: Vec<(String, Vec<u8>)>,
    /// The blobs, with their sizes in bytes.
    blobs: BTreeMap<Digest, u64>,
}

/// Why an image is not included.
enum SkippedImage {
    /// The format or the options exclude it: the reason, and a detail about the image.
    Unfit(&'static str, String),
    /// Its content is missing or cannot be read.
    Lost(ItemStatus, String),
}

impl ImageArchive {
    /// Plans an archive of the images in `lock` from the content in `blobs`.
    ///
    /// # Errors
    /// If the format does not support an image, or an image lacks the requested platforms; the
    /// error lists all such images.
    pub fn plan(
        lock: &Lock,
        blobs: &dyn BlobRead,
        options: &ImageArchiveOptions<'_>,
    ) -> Result<ImageArchive, Failure> {
        let mut archive = ImageArchive {
            images: Vec::new(),
            lost: Vec::new(),
            trimmed: Vec::new(),
            computed: Vec::new(),
            blobs: BTreeMap::new(),
        };
        let mut indexes: BTreeMap<Digest, Vec<u8>> = BTreeMap::new();
        let mut unfit = UnfitImages::default();
        for image in &lock.images {
            let name = image.name.to_string();
            let digest = image.digest.clone();
            let [tags, digests] = names(image, options.mapping);
            match planned(image, blobs, options, &tags) {
                Ok((selection, docker)) => {
                    let Selection {
                        top,
                        trimmed,
                        parts,
                    } = selection;
                    // the trimmed index is computed, so it is not among the parts
                    let own = trimmed.as_ref().map_or(0, |bytes| bytes.len() as u64);
                    let sizes = parts.iter().map(|part| part.size);
                    let bytes = sum_sizes(sizes.chain([own]));
                    if let Some(bytes) = trimmed {
                        let trim = TrimmedImageIndex {
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
                Err(SkippedImage::Unfit(why, what)) => unfit.add(why, &name, &what),
                Err(SkippedImage::Lost(status, reason)) => archive.lost.push(ReportItem {
                    digest: Some(digest),
                    ..ReportItem::new(EntryKind::Image, name, status, Some(reason))
                }),
            }
        }
        // all unfit images in one error, before the first byte is written
        unfit.refuse()?;
        archive
            .computed
            .push((LAYOUT_FILE.into(), OCI_LAYOUT.into()));
        archive
            .computed
            .push((INDEX_FILE.into(), index(&archive.images)));
        if options.format == ImageArchiveFormat::Docker {
            let saved: Vec<&DockerImage> = archive
                .images
                .iter()
                .filter_map(|image| image.docker.as_ref())
                .collect();
            archive
                .computed
                .push((MANIFEST_FILE.into(), manifest(&saved)));
        }
        // a trimmed index may equal the index of another image, which is among the blobs already
        indexes.retain(|digest, _| !archive.blobs.contains_key(digest));
        let indexes = indexes
            .into_iter()
            .map(|(digest, bytes)| (digest.layout_path(), bytes));
        archive.computed.extend(indexes);
        Ok(archive)
    }
}

/// Selects the parts of `image` to include, and checks that they are available. In docker archives,
/// the image also has a record.
fn planned(
    image: &LockedImage,
    blobs: &dyn BlobRead,
    options: &ImageArchiveOptions<'_>,
    tags: &BTreeSet<String>,
) -> Result<(Selection, Option<DockerImage>), SkippedImage> {
    let planned = match options.format {
        ImageArchiveFormat::Oci => (image.select(blobs, options.platforms)?, None),
        ImageArchiveFormat::Docker => {
            // an archive in docker's format has one platform of each image
            let one = image.select_one(blobs, options.platforms.first())?;
            if let Some(kind) = unsupported_layer_type(&one) {
                let why = "docker does not accept layers of this type; use --format oci, or lock \
                           without these images";
                return Err(SkippedImage::Unfit(why, kind.into()));
            }
            let docker = Some(DockerImage::of(&one, tags.iter().cloned()));
            let mut parts = vec![one.manifest.clone(), one.config];
            for layer in one.layers {
                // an image may have the same layer twice, but the archive contains it once
                if !parts.iter().any(|part| part.digest == layer.digest) {
                    parts.push(layer);
                }
            }
            let selection = Selection {
                top: one.manifest,
                trimmed: None,
                parts,
            };
            (selection, docker)
        }
    };
    for Descriptor { digest, size, .. } in &planned.0.parts {
        match blobs.stat(digest) {
            Ok(Some(found)) if found == *size => {}
            Ok(Some(_)) => {
                return Err(lost(ContentError::damaged(digest)));
            }
            Ok(None) => return Err(lost(ContentError::missing(digest))),
            Err(error) => return Err(lost(error)),
        }
    }
    Ok(planned)
}

fn lost(error: impl Into<ReadError>) -> SkippedImage {
    let error = error.into();
    let status = if error.is_missing {
        ItemStatus::Missing
    } else {
        ItemStatus::Failed
    };
    SkippedImage::Lost(status, error.to_string())
}

impl From<SelectionError> for SkippedImage {
    fn from(error: SelectionError) -> SkippedImage {
        match error {
            SelectionError::Read(error) => lost(error),
            SelectionError::MissingPlatforms(lacks) => SkippedImage::Unfit(
                "these images lack platforms that --platform names",
                lacks.to_string(),
            ),
            SelectionError::Several(platforms) => SkippedImage::Unfit(
                "a docker archive contains one platform of each image; choose it with --platform, \
                 or use --format oci",
                platforms.join(", "),
            ),
            SelectionError::NotAnImage(_) => SkippedImage::Unfit(
                "docker accepts only container images; use --format oci, or lock without these \
                 items",
                error.to_string(),
            ),
        }
    }
}

/// An image in an archive.
#[derive(Debug)]
pub struct ArchivedImage {
    /// The name in the lock.
    pub name: String,
    /// The digest in the lock.
    pub digest: Digest,
    /// All names of the image in the archive.
    pub names: BTreeSet<String>,
    /// The size of its content in the archive, in bytes.
    pub bytes: u64,
    /// The manifest or index that the names point to.
    pub top: Descriptor,
    /// Its record in `manifest.json`; only in docker archives.
    docker: Option<DockerImage>,
}

/// The names of `image` at its source registry, and with a `mapping` also at its destinations:
/// those in the form `repository:tag`, and those with the digest in the lock, `repository@digest`,
/// so that a node that loaded the archive resolves references with a digest, too.
fn names(image: &LockedImage, mapping: Option<&DestinationMap>) -> [BTreeSet<String>; 2] {
    let there = mapping
        .map(|mapping| mapping.destinations(&image.name))
        .unwrap_or_default();
    let mut repositories = vec![image.name.name()];
    repositories.extend(there.iter().map(ToString::to_string));
    let tag = image.destination_tag();
    [format!(":{tag}"), format!("@{}", image.digest)].map(|end| {
        repositories
            .iter()
            .map(|repository| format!("{repository}{end}"))
            .collect()
    })
}

/// The images that cannot be archived, grouped by the reason.
#[derive(Debug, Default)]
struct UnfitImages(BTreeMap<&'static str, Vec<String>>);

impl UnfitImages {
    /// Adds an image with the reason and a detail about the image.
    fn add(&mut self, why: &'static str, name: &str, what: &str) {
        self.0
            .entry(why)
            .or_default()
            .push(format!("{name}: {what}"));
    }

    /// Fails if any image was added.
    fn refuse(self) -> Result<(), Failure> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Failure::usage(self.to_string()))
        }
    }
}

impl fmt::Display for UnfitImages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (why, images)) in self.0.iter().enumerate() {
            write!(f, "{}{why}:", if at == 0 { "" } else { "\n" })?;
            images
                .iter()
                .try_for_each(|image| write!(f, "\n  {image}"))?;
        }
        Ok(())
    }
}

impl ImageArchive {
    /// Size of the archive in bytes.
    pub fn size(&self) -> u64 {
        let computed = self
            .computed
            .iter()
            .map(|(name, bytes)| member(name, bytes.len() as u64));
        let blobs = self
            .blobs
            .iter()
            .map(|(digest, size)| member(&digest.layout_path(), *size));
        sum_sizes(computed.chain(blobs).chain([END.len() as u64]))
    }

    /// The size of all blobs in bytes, which is the total of the progress.
    pub fn blob_bytes(&self) -> u64 {
        sum_sizes(self.blobs.values().copied())
    }

    /// Writes the archive to `out`, from the same content that it was planned from. Each blob is
    /// verified while it is copied; a damaged one leaves the archive without its end.
    ///
    /// # Errors
    /// If content cannot be read or is damaged, and if `out` fails.
    pub fn write(
        &self,
        blobs: &dyn BlobRead,
        out: &mut dyn Write,
        progress: &dyn Progress,
    ) -> Result<(), CopyError> {
        for (name, bytes) in &self.computed {
            let parts = [
                &encode(name, bytes.len() as u64),
                &bytes[..],
                zero_padding(bytes.len() as u64),
            ];
            parts
                .into_iter()
                .try_for_each(|part| out.write_all(part))
                .map_err(CopyError::Write)?;
        }
        for (digest, size) in &self.blobs {
            out.write_all(&encode(&digest.layout_path(), *size))
                .map_err(CopyError::Write)?;
            copy_checked(blobs, digest, *size, |piece| {
                progress.bytes(piece.len() as u64);
                out.write_all(piece)
            })?;
            out.write_all(zero_padding(*size))
                .map_err(CopyError::Write)?;
        }
        // written last, so that an archive that was cut off is not a complete tar
        out.write_all(&END)
            .and_then(|()| out.flush())
            .map_err(CopyError::Write)
    }
}

/// Whether the file at `path` begins like an archive that [`ImageArchive::write`] writes. Archives
/// of other programs have other times or modes in the header of their first member.
pub fn is_image_archive(path: &Path) -> bool {
    let mut first = encode(LAYOUT_FILE, OCI_LAYOUT.len() as u64);
    first.extend(OCI_LAYOUT);
    begins_with(path, &first)
}

fn zero_padding(size: u64) -> &'static [u8] {
    &END[..padding(size)]
}

/// The size of a member in the tar, with header and padding.
fn member(name: &str, size: u64) -> u64 {
    encoded_len(name) as u64 + size + padding(size) as u64
}

// `index.json`: the names in an archive, and the manifests that they point to (image-spec,
// image-layout.md).

/// Serializes `index.json`, sorted by name. containerd and tools built on it read the name from the
/// first annotation, podman and skopeo from the second; some tools fall back to the other one.
fn index(images: &[ArchivedImage]) -> Vec<u8> {
    let mut names: BTreeMap<&str, &Descriptor> = BTreeMap::new();
    for image in images {
        for name in &image.names {
            names.entry(name).or_insert(&image.top);
        }
    }
    let manifests = names.iter().map(|(name, top)| {
        json!({
            "mediaType": top.media_type, "digest": top.digest, "size": top.size,
            "annotations": {
                "io.containerd.image.name": name,
                "org.opencontainers.image.ref.name": name,
            },
        })
    });
    let manifests: Vec<_> = manifests.collect();
    let index =
        json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": manifests});
    index.to_string().into_bytes()
}

/// The name of the file in the archive.
const MANIFEST_FILE: &str = "manifest.json";

/// The layer types that every docker version accepts: tar, and tar with gzip.
const LAYERS: [&str; 8] = [
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.docker.image.rootfs.foreign.diff.tar",
    "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
];

/// The record of an image in `manifest.json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DockerImage {
    config: String,
    repo_tags: Vec<String>,
    layers: Vec<String>,
}

impl DockerImage {
    /// The record of an image with these tags.
    fn of(one: &OneManifest, tags: impl IntoIterator<Item = String>) -> DockerImage {
        DockerImage {
            config: one.config.digest.layout_path(),
            repo_tags: tags.into_iter().collect(),
            layers: one
                .layers
                .iter()
                .map(|layer| layer.digest.layout_path())
                .collect(),
        }
    }
}

/// The media type of the first layer that not every docker version accepts.
fn unsupported_layer_type(one: &OneManifest) -> Option<&str> {
    let types = one.layers.iter().map(|layer| &*layer.media_type);
    types.into_iter().find(|kind| !LAYERS.contains(kind))
}

/// Serializes `manifest.json` with these images.
fn manifest(images: &[&DockerImage]) -> Vec<u8> {
    // serializing plain strings cannot fail
    serde_json::to_vec(images).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_its_source_names_and_those_at_all_destinations() {
        let digest = Digest::sha256(b"top");
        let top = Descriptor::new(digest.clone(), 3, "t");
        let image = LockedImage::new("registry.k8s.io/pause:3.10".parse().unwrap(), top.clone());
        let mapping = DestinationMap::to("172.20.0.2:5000/pre".parse().unwrap());
        let reference_names = |image: &LockedImage, mapping| {
            names(image, mapping)
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
        };
        assert_eq!(
            reference_names(&image, Some(&mapping)),
            [
                "172.20.0.2:5000/pre/pause:3.10".to_owned(),
                "registry.k8s.io/pause:3.10".to_owned(),
                format!("172.20.0.2:5000/pre/pause@{digest}"),
                format!("registry.k8s.io/pause@{digest}"),
            ]
        );
        let bare = LockedImage::new(format!("quay.io/a/b@{digest}").parse().unwrap(), top);
        let tag = format!("quay.io/a/b:digest-{}", digest.short(12));
        assert_eq!(
            reference_names(&bare, None),
            [tag, format!("quay.io/a/b@{digest}")]
        );
    }
}
