//! The content of the fault registry: in memory, except for an optional folder of files.

use crate::support::images::{noise, sha256};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

pub use crate::support::images::{OCI_CONFIG, OCI_EMPTY, OCI_GZIP, OCI_INDEX, OCI_MANIFEST};

type Bytes = Arc<Vec<u8>>;

/// The content of a test server: repositories, blobs and files.
#[derive(Clone, Default)]
pub struct Content {
    /// Blobs by repository and digest.
    pub blobs: BTreeMap<(String, String), Bytes>,
    /// Manifests by repository and digest: media type and bytes.
    pub manifests: BTreeMap<(String, String), (String, Bytes)>,
    /// Digests by repository and tag.
    pub tags: BTreeMap<(String, String), String>,
    /// Plain files by path.
    pub files: BTreeMap<String, Bytes>,
    /// A folder whose files are served as well.
    pub folder: Option<PathBuf>,
}

impl Content {
    pub fn blob(&mut self, repository: &str, media_type: &str, bytes: Vec<u8>) -> Value {
        let digest = sha256(&bytes);
        let size = bytes.len();
        self.blobs
            .insert((repository.into(), digest.clone()), Arc::new(bytes));
        json!({"mediaType": media_type, "digest": digest, "size": size})
    }

    pub fn manifest(&mut self, repository: &str, media_type: &str, document: &Value) -> Value {
        let bytes = serde_json::to_vec_pretty(document).unwrap();
        let digest = sha256(&bytes);
        let size = bytes.len();
        self.manifests.insert(
            (repository.into(), digest.clone()),
            (media_type.to_owned(), Arc::new(bytes)),
        );
        json!({"mediaType": media_type, "digest": digest, "size": size})
    }

    pub fn tag(&mut self, repository: &str, tag: &str, descriptor: &Value) {
        let digest = descriptor["digest"].as_str().unwrap().to_owned();
        self.tags.insert((repository.into(), tag.into()), digest);
    }

    /// A one-platform image whose layers are noise with these seeds and sizes.
    pub fn image(&mut self, repository: &str, platform: &str, layers: &[(u64, usize)]) -> Value {
        let layers: Vec<Value> = layers
            .iter()
            .map(|(seed, size)| self.blob(repository, OCI_GZIP, noise(*seed, *size)))
            .collect();
        let (os, architecture) = platform.split_once('/').unwrap();
        let config = json!({
            "os": os, "architecture": architecture, "config": {},
            "rootfs": {"type": "layers", "diff_ids": layers.iter().map(|l| l["digest"].clone()).collect::<Vec<_>>()},
        });
        let config = self.blob(repository, OCI_CONFIG, config.to_string().into_bytes());
        let document = json!({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": layers,
        });
        let mut descriptor = self.manifest(repository, OCI_MANIFEST, &document);
        descriptor["platform"] = json!({"os": os, "architecture": architecture});
        descriptor
    }

    /// An index over images in the same repository.
    pub fn index(&mut self, repository: &str, children: &[Value]) -> Value {
        let document = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": children});
        self.manifest(repository, OCI_INDEX, &document)
    }

    /// An artifact with an optional subject, which is a manifest in the same repository.
    pub fn artifact(&mut self, repository: &str, text: &str, subject: Option<&Value>) -> Value {
        let config = self.blob(repository, OCI_EMPTY, b"{}".to_vec());
        let layer = self.blob(repository, "text/plain", text.as_bytes().to_vec());
        let mut document = json!({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": "text/plain", "config": config,
            "layers": [layer],
        });
        if let Some(subject) = subject {
            document["subject"] = subject.clone();
        }
        self.manifest(repository, OCI_MANIFEST, &document)
    }

    /// The bytes of a file in the folder, by its path in a URL.
    pub fn in_folder(&self, path: &str) -> Option<Vec<u8>> {
        let path = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
        std::fs::read(self.folder.as_ref()?.join(path.trim_start_matches('/'))).ok()
    }

    /// Removes a manifest with the tags that point to it, or a tag.
    pub fn forget(&mut self, repository: &str, digest: &str) {
        self.tags
            .remove(&(repository.to_owned(), digest.to_owned()));
        self.manifests
            .remove(&(repository.to_owned(), digest.to_owned()));
        self.tags
            .retain(|(own, _), at| own != repository || at != digest);
    }

    /// The bytes of a blob, from any repository.
    pub fn any_blob(&self, digest: &str) -> Option<Bytes> {
        self.blobs
            .iter()
            .find(|((_, own), _)| own == digest)
            .map(|(_, bytes)| bytes.clone())
    }

    /// The digests of the blobs that `manifest` refers to and `repository` lacks.
    pub fn lacking_blobs(&self, repository: &str, manifest: &Value) -> Vec<String> {
        let layers = manifest["layers"].as_array().into_iter().flatten();
        let blobs = layers.chain(manifest.get("config"));
        lacking(repository, blobs, |key| self.blobs.contains_key(key))
    }

    /// The digests of the manifests that the index `manifest` lists and `repository` lacks.
    pub fn lacking_children(&self, repository: &str, manifest: &Value) -> Vec<String> {
        let children = manifest["manifests"].as_array().into_iter().flatten();
        lacking(repository, children, |key| self.manifests.contains_key(key))
    }
}

/// The digests of descriptors whose content `repository` lacks.
fn lacking<'a>(
    repository: &str,
    descriptors: impl Iterator<Item = &'a Value>,
    has: impl Fn(&(String, String)) -> bool,
) -> Vec<String> {
    let digests = descriptors.map(|one| one["digest"].as_str().unwrap_or("").to_lowercase());
    digests
        .filter(|digest| !has(&(repository.to_owned(), digest.clone())))
        .collect()
}
