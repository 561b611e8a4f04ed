//! Helpers for the unit tests of this folder: content in memory, and generated manifests.

use landfall_content::{BlobRead, ContentError};
use landfall_model::media_type::{OCI_CONFIG, OCI_MANIFEST};
use landfall_model::{Descriptor, Digest};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{Cursor, Read};

/// Blobs in memory, by digest.
#[derive(Default)]
pub(super) struct Memory(HashMap<Digest, Vec<u8>>);

impl Memory {
    pub(super) fn put(&mut self, bytes: &[u8], kind: &str) -> Descriptor {
        let digest = Digest::sha256(bytes);
        self.0.insert(digest.clone(), bytes.into());
        Descriptor::new(digest, bytes.len() as u64, kind)
    }

    pub(super) fn json(&mut self, value: &Value, kind: &str) -> Descriptor {
        self.put(value.to_string().as_bytes(), kind)
    }

    /// A manifest with the further fields `more`, and its config and layer.
    pub(super) fn manifest(&mut self, name: &str, more: &Value) -> (Descriptor, Vec<Descriptor>) {
        let config = self.put(format!("{{\"for\":\"{name}\"}}").as_bytes(), OCI_CONFIG);
        let layer = self.put(name.as_bytes(), "application/layer.tar+gzip");
        let mut manifest = json!({"schemaVersion": 2, "config": config, "layers": [layer, layer]});
        manifest
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        (self.json(&manifest, OCI_MANIFEST), vec![config, layer])
    }
}

impl BlobRead for Memory {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        Ok(self.0.get(digest).map(|bytes| bytes.len() as u64))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let bytes = self.0.get(digest).ok_or_else(|| ContentError::Missing {
            digest: digest.clone(),
        })?;
        Ok(Box::new(Cursor::new(bytes[offset as usize..].to_vec())))
    }
}
