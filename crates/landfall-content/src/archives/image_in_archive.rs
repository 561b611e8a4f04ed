//! One image in an archive of another tool: an OCI layout, or a docker archive, whose manifest is
//! generated from its config and layers.

use super::image_names::ArchiveIndexEntry;
use super::import_blobs::import_member;
use super::members::ArchiveMember;
use super::source_archive::{SourceArchive, digest_of_name};
use crate::LocalStore;
use landfall_model::document::GzipReader;
use landfall_model::report::Progress;
use landfall_model::{
    Algorithm, Descriptor, Digest, HashedStream, ImageRef, JsonText, Limits, digest_of, media_type,
};
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Read};
use std::path::Path;

/// An image whose manifests and blobs are in an archive.
#[derive(Debug)]
pub struct ImageInArchive {
    pub(super) archive: SourceArchive,
    /// The index or manifest of the image.
    pub top: Descriptor,
    /// The paths of the blobs in the archive. They may lie: bytes are verified when they are read.
    members: BTreeMap<Digest, String>,
    /// The manifest of an image from a docker archive, which has none.
    generated: Option<Vec<u8>>,
}

/// An entry of the `manifest.json` of a docker archive (moby, image/spec/v1.2.md).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerArchiveImage {
    config: String,
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    repo_tags: Vec<String>,
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    layers: Vec<String>,
}

/// The part of an image's config that lists the layers.
#[derive(Deserialize)]
struct ConfigLayers {
    rootfs: RootFs,
}

#[derive(Deserialize)]
struct RootFs {
    diff_ids: Vec<Digest>,
}

/// The files of an archive.
#[derive(Default)]
struct ArchiveListing {
    /// The paths by digest, for paths that contain one.
    members: BTreeMap<Digest, String>,
    /// `index.json` of an OCI layout and `manifest.json` of a docker archive, with their folders.
    index: Option<(String, Vec<u8>)>,
    docker: Option<(String, Vec<u8>)>,
}

impl ImageInArchive {
    /// Finds the image `name` in the archive at `path`. If the archive has only one image, that
    /// image is used, whatever its name in the archive is.
    ///
    /// # Errors
    /// If the archive cannot be read, or which images it has instead.
    pub fn open(path: &Path, name: &ImageRef, limits: &Limits) -> Result<ImageInArchive, String> {
        let archive = SourceArchive::open(path).map_err(|error| error.to_string())?;
        let mut listing = ArchiveListing::default();
        archive
            .members(&mut |member| listing.add(member, limits))
            .map_err(unreadable)?;
        let ArchiveListing {
            members,
            index,
            docker,
        } = listing;
        match (index, docker) {
            (Some((_, bytes)), _) => {
                let top = top_of_index(&bytes, name)?;
                Ok(ImageInArchive {
                    archive,
                    top,
                    members,
                    generated: None,
                })
            }
            (None, Some((folder, bytes))) => {
                let image = docker_image(&bytes, name)?;
                ImageInArchive::of_docker(archive, &folder, &image, limits)
            }
            (None, None) => Err("it has neither the index.json of an OCI layout nor the \
                                 manifest.json of a docker archive"
                .into()),
        }
    }

    /// Generates the manifest of an image of a docker archive. Each layer must have the digest that
    /// the config lists.
    fn of_docker(
        archive: SourceArchive,
        folder: &str,
        image: &DockerArchiveImage,
        limits: &Limits,
    ) -> Result<ImageInArchive, String> {
        let config_path = format!("{folder}{}", image.config);
        let limit = limits.document_bytes as u64;
        let mut config = None;
        // what each layer file is: the digest and size of its bytes, and that of the unpacked layer
        let mut files: BTreeMap<String, (Descriptor, Digest)> = BTreeMap::new();
        let layers = image.layers.iter();
        let layer_paths: Vec<String> = layers.map(|layer| format!("{folder}{layer}")).collect();
        let wanted: BTreeSet<&String> = layer_paths.iter().collect();
        let read = archive.members(&mut |member| {
            if member.path == config_path {
                config = Some(read_document(member, limit)?);
            } else if wanted.contains(&member.path) {
                files.insert(member.path.clone(), layer_of(member)?);
            }
            Ok(())
        });
        read.map_err(unreadable)?;
        let config = config.ok_or_else(|| format!("it lacks the config {}", image.config))?;
        let ConfigLayers { rootfs } = serde_json::from_slice(&config)
            .map_err(|error| format!("{} is not the config of an image: {error}", image.config))?;
        if rootfs.diff_ids.len() != layer_paths.len() {
            return Err(format!(
                "its config lists {} layers, and manifest.json lists {}",
                rootfs.diff_ids.len(),
                layer_paths.len()
            ));
        }
        let mut members = BTreeMap::new();
        let mut layers = Vec::new();
        // docker writes a repeated layer as a link to its first file
        let unpacked = files.iter().map(|(path, (_, unpacked))| (unpacked, path));
        let unpacked: BTreeMap<&Digest, &String> = unpacked.collect();
        for (path, diff_id) in layer_paths.iter().zip(&rootfs.diff_ids) {
            let by_digest = || files.get_key_value(*unpacked.get(diff_id)?);
            let (path, (layer, unpacked)) = files
                .get_key_value(path)
                .or_else(by_digest)
                .ok_or_else(|| format!("it lacks the layer {path}"))?;
            if unpacked != diff_id {
                return Err(format!(
                    "its config lists the layer {diff_id}, but {path} has {unpacked}"
                ));
            }
            members.insert(layer.digest.clone(), path.clone());
            layers.push(layer.clone());
        }
        let config_blob = Descriptor::of(&config, media_type::OCI_CONFIG);
        members.insert(config_blob.digest.clone(), config_path);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": media_type::OCI_MANIFEST,
            "config": config_blob,
            "layers": layers,
        });
        let manifest = manifest.to_string().into_bytes();
        Ok(ImageInArchive {
            archive,
            top: Descriptor::of(&manifest, media_type::OCI_MANIFEST),
            members,
            generated: Some(manifest),
        })
    }

    /// The content of `blob` if it is the manifest of an image from a docker archive.
    pub(super) fn generated_manifest(&self, blob: &Descriptor) -> Option<&[u8]> {
        let generated = self.generated.as_deref();
        generated.filter(|_| self.top.digest == blob.digest)
    }

    /// The path of `blob` in the archive.
    pub(super) fn member_of(&self, blob: &Descriptor) -> Option<&str> {
        self.members.get(&blob.digest).map(String::as_str)
    }

    /// Copies blobs and manifests of the image into `store`, in one pass through the archive.
    ///
    /// # Errors
    /// If the archive lacks one of them or has other bytes, or the store cannot be written.
    pub fn import(
        &self,
        blobs: &[Descriptor],
        store: &dyn LocalStore,
        progress: &dyn Progress,
    ) -> Result<(), String> {
        let lacks = |blob: &Descriptor| format!("it lacks {}", blob.digest);
        let mut wanted: BTreeMap<&str, &Descriptor> = BTreeMap::new();
        for blob in blobs {
            if let Some(manifest) = self.generated_manifest(blob) {
                store
                    .put(blob, manifest)
                    .map_err(|error| error.to_string())?;
                continue;
            }
            let path = self.member_of(blob).ok_or_else(|| lacks(blob))?;
            wanted.insert(path, blob);
        }
        let mut failed = None;
        let read = self.archive.members(&mut |member| {
            let Some((path, blob)) = wanted.remove_entry(&*member.path) else {
                return Ok(());
            };
            match import_member(member, blob, store, progress) {
                Ok(Ok(())) => store.mark_present(blob),
                Ok(Err(error)) => {
                    failed.get_or_insert(format!("{path}: {error}"));
                }
                Err(error) => {
                    failed.get_or_insert(format!("{path}: cannot be read: {error}"));
                }
            }
            Ok(())
        });
        read.map_err(unreadable)?;
        match (failed, wanted.into_values().next()) {
            (Some(why), _) => Err(why),
            (None, Some(blob)) => Err(lacks(blob)),
            (None, None) => Ok(()),
        }
    }
}

fn unreadable(error: io::Error) -> String {
    format!("it cannot be read: {error}")
}

impl ArchiveListing {
    fn add(&mut self, member: &mut ArchiveMember<'_>, limits: &Limits) -> io::Result<()> {
        let path = member.path.clone();
        let (folder, name) = match path.rfind('/') {
            Some(at) => path.split_at(at + 1),
            None => ("", &*path),
        };
        let document = match name {
            "index.json" => &mut self.index,
            "manifest.json" => &mut self.docker,
            _ => {
                if let Some(digest) = digest_of_name(&path) {
                    self.members.entry(digest).or_insert(path);
                }
                return Ok(());
            }
        };
        // a layout inside a layout is content; the outer one counts
        let depth = |folder: &str| folder.matches('/').count();
        if document
            .as_ref()
            .is_none_or(|(known, _)| depth(folder) < depth(known))
        {
            let bytes = read_document(member, limits.manifest_bytes as u64)?;
            *document = Some((folder.to_owned(), bytes));
        }
        Ok(())
    }
}

/// Reads a small member into memory.
fn read_document(member: &mut ArchiveMember<'_>, limit: u64) -> io::Result<Vec<u8>> {
    if member.size > limit {
        return Err(io::Error::other(format!(
            "{} has more than {limit} bytes",
            member.path
        )));
    }
    let mut bytes = Vec::new();
    member.reader.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Hashes a layer of a docker archive. Returns its descriptor and the digest of its unpacked tar.
fn layer_of(member: &mut ArchiveMember<'_>) -> io::Result<(Descriptor, Digest)> {
    let mut first = Vec::new();
    (&mut *member.reader).take(2).read_to_end(&mut first)?;
    let is_gzip = first == [0x1f, 0x8b];
    let whole = (&*first).chain(&mut *member.reader);
    let mut stream = HashedStream::new(whole, Algorithm::Sha256);
    let unpacked = if is_gzip {
        let compressed = BufReader::new(&mut stream);
        let unpacked = digest_of(&mut GzipReader::new(compressed), Algorithm::Sha256)?;
        // the decoder stops before trailing zeros
        io::copy(&mut stream, &mut io::sink())?;
        Some(unpacked)
    } else {
        io::copy(&mut stream, &mut io::sink())?;
        None
    };
    let (_, digest) = stream.finish();
    let layer = Descriptor::new(
        digest.clone(),
        member.size,
        if is_gzip { LAYER_GZIP } else { LAYER },
    );
    Ok((layer, unpacked.unwrap_or(digest)))
}

/// The media types of layers (image-spec, layer.md).
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The descriptor of the image `name` in an index.json.
fn top_of_index(bytes: &[u8], name: &ImageRef) -> Result<Descriptor, String> {
    let text = String::from_utf8_lossy(bytes);
    let entries = match JsonText::new(&text).members(["manifests"]) {
        Ok([entries]) => entries.and_then(JsonText::elements).unwrap_or_default(),
        Err(error) => return Err(format!("its index.json is invalid: {error}")),
    };
    let entries = entries.into_iter().filter_map(ArchiveIndexEntry::read);
    let images = entries.filter(ArchiveIndexEntry::is_image);
    let images = images.map(|entry| (entry.names(), entry.descriptor));
    chosen(images.collect(), name)
}

/// The image `name` in a manifest.json.
fn docker_image(bytes: &[u8], name: &ImageRef) -> Result<DockerArchiveImage, String> {
    let images: Vec<DockerArchiveImage> = serde_json::from_slice(bytes)
        .map_err(|error| format!("its manifest.json is invalid: {error}"))?;
    let images = images.into_iter();
    let images = images.map(|image| (image.repo_tags.clone(), image));
    chosen(images.collect(), name)
}

/// The image called `name`, or the only image.
fn chosen<T>(mut images: Vec<(Vec<String>, T)>, name: &ImageRef) -> Result<T, String> {
    if images.len() == 1 {
        return images.pop().map(|(_, image)| image).ok_or_else(String::new);
    }
    let is_name = |text: &String| text.parse::<ImageRef>().is_ok_and(|image| image == *name);
    let at = images
        .iter()
        .position(|(names, _)| names.iter().any(is_name));
    match at {
        Some(at) => Ok(images.swap_remove(at).1),
        None if images.is_empty() => Err("it has no image".into()),
        None => {
            let names: Vec<String> = images.into_iter().flat_map(|(names, _)| names).collect();
            Err(format!(
                "it has several images, and none is named {name}: {}",
                names.join(", ")
            ))
        }
    }
}
