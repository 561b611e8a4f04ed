//! What resolving works with: registries and web servers, and the store that saves asking twice.

use crate::manifest::WantedImage;
use crate::model::{Descriptor, Digest, ImageRef, Limits};
use crate::registry::{RawManifest, Sessions};
use crate::report::Progress;
use crate::store::{Blobs, Disk};
use futures_util::StreamExt;
use std::sync::Arc;

/// Resolves names to digests.
pub struct Resolver {
    sessions: Arc<Sessions>,
    disk: Disk,
    progress: Arc<dyn Progress>,
}

impl Resolver {
    /// A resolver that keeps what it fetches in `disk`, so that `pull` need not ask again.
    pub fn new(sessions: Arc<Sessions>, disk: Disk, progress: Arc<dyn Progress>) -> Resolver {
        Resolver { sessions, disk, progress }
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    pub(super) fn disk(&self) -> &Disk {
        &self.disk
    }

    pub(super) fn progress(&self) -> &dyn Progress {
        &*self.progress
    }

    pub(super) fn limits(&self) -> &Limits {
        self.sessions.transport().limits()
    }

    /// Keeps a small piece for `pull`. A store that cannot take it is no reason to fail here: `pull`
    /// will say so.
    pub(super) fn keep(&self, descriptor: &Descriptor, bytes: &[u8]) {
        if let Err(error) = self.disk.put(descriptor, bytes) {
            self.progress.note(&format!("not kept for pull: {error}"));
        }
    }

    /// A manifest by tag or digest; one by digest comes from the store where it is there.
    pub(super) async fn manifest(
        &self,
        name: &ImageRef,
        reference: &str,
        known: Option<&Descriptor>,
    ) -> Result<RawManifest, String> {
        if let Some(descriptor) = known
            && self.disk.has(&descriptor.digest, descriptor.size).unwrap_or(false)
            && let Ok(bytes) = self.disk.read(descriptor)
        {
            let content_type = Some(descriptor.media_type.clone());
            return Ok(RawManifest { bytes: bytes.into(), content_type, digest: descriptor.digest.clone() });
        }
        let session = self.sessions.upstream(&name.registry).await.map_err(|error| error.to_string())?;
        let raw = session.manifest(&name.repository, reference).await.map_err(|error| error.to_string())?;
        let descriptor = Descriptor {
            digest: raw.digest.clone(),
            size: raw.bytes.len() as u64,
            media_type: raw.content_type.clone().unwrap_or_default(),
        };
        self.keep(&descriptor, &raw.bytes);
        Ok(raw)
    }

    /// The digest at which an image's tag stands upstream now.
    pub(super) async fn head(&self, wanted: &WantedImage) -> Result<Option<Digest>, String> {
        let Some(tag) = &wanted.name.tag else { return Ok(wanted.name.digest.clone()) };
        let session =
            self.sessions.upstream(&wanted.name.registry).await.map_err(|error| error.to_string())?;
        session.head_manifest(&wanted.name.repository, tag, false).await.map_err(|error| error.to_string())
    }

    /// A blob that is read, such as a config: checked, and kept for `pull`.
    pub(super) async fn small_blob(&self, name: &ImageRef, blob: &Descriptor) -> Result<Vec<u8>, String> {
        if self.disk.has(&blob.digest, blob.size).unwrap_or(false) {
            return self.disk.read(blob).map_err(|error| error.to_string());
        }
        let limit = self.limits().document_bytes as u64;
        if blob.size > limit {
            return Err(format!("its config has {} bytes, more than {limit}", blob.size));
        }
        let session = self.sessions.upstream(&name.registry).await.map_err(|error| error.to_string())?;
        let (_, mut stream) =
            session.blob(&name.repository, &blob.digest, 0).await.map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        while let Some(piece) = stream.next().await {
            bytes.extend_from_slice(&piece.map_err(|error| error.to_string())?);
            if bytes.len() as u64 > blob.size {
                break;
            }
        }
        if bytes.len() as u64 != blob.size || !blob.digest.matches(&bytes) {
            return Err(format!("the bytes that came are not {}", blob.digest));
        }
        self.keep(blob, &bytes);
        Ok(bytes)
    }
}
