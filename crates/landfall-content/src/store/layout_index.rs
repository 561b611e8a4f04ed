//! `index.json`, the index of an OCI image layout (image-layout.md).

use crate::LockEntry;
use landfall_model::{Descriptor, Digest, media_type};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    schema_version: u32,
    media_type: &'a str,
    manifests: Vec<Named<'a>>,
}

/// An entry as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Named<'a> {
    media_type: &'a str,
    digest: &'a Digest,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_type: Option<&'a str>,
    annotations: Annotations<'a>,
}

#[derive(Serialize)]
struct Annotations<'a> {
    #[serde(rename = "org.opencontainers.image.ref.name")]
    name: &'a str,
}

/// An entry as it is read; `None` where it has no name, or is no descriptor.
#[derive(Deserialize)]
#[serde(from = "Value")]
struct Child(Option<(String, (Descriptor, Option<String>))>);

impl From<Value> for Child {
    fn from(child: Value) -> Child {
        let read = |child: Value| {
            let name = child
                .get("annotations")?
                .get("org.opencontainers.image.ref.name")?
                .as_str()?
                .to_owned();
            let artifact = child
                .get("artifactType")
                .and_then(Value::as_str)
                .map(str::to_owned);
            Some((name, (serde_json::from_value(child).ok()?, artifact)))
        };
        Child(read(child))
    }
}

/// Names and what they stand at: the content of `index.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayoutIndex {
    names: BTreeMap<String, (Descriptor, Option<String>)>,
}

impl LayoutIndex {
    /// Reads `index.json`; entries without a name are skipped.
    ///
    /// # Errors
    /// When it is no JSON.
    pub fn parse(bytes: &[u8]) -> Result<LayoutIndex, serde_json::Error> {
        #[derive(Deserialize)]
        struct Found {
            #[serde(default)]
            manifests: Vec<Child>,
        }
        let found: Found = serde_json::from_slice(bytes)?;
        Ok(LayoutIndex {
            names: found
                .manifests
                .into_iter()
                .filter_map(|child| child.0)
                .collect(),
        })
    }

    /// Adds or replaces the entries' names.
    pub fn add(&mut self, entries: impl IntoIterator<Item = impl Borrow<LockEntry>>) {
        for entry in entries {
            let entry = entry.borrow();
            let artifact = entry.artifact_type.map(str::to_owned);
            self.names
                .insert(entry.layout_name.clone(), (entry.top.clone(), artifact));
        }
    }

    /// Drops the names that stand at none of `keep`.
    pub(super) fn retain(&mut self, keep: &BTreeSet<Digest>) {
        self.names.retain(|_, (top, _)| keep.contains(&top.digest));
    }

    /// The document, sorted by name: equal content gives equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let manifests = self.names.iter().map(|(name, (top, artifact))| Named {
            media_type: &top.media_type,
            digest: &top.digest,
            size: top.size,
            artifact_type: artifact.as_deref(),
            annotations: Annotations { name },
        });
        let manifests = manifests.collect();
        let document = Document {
            schema_version: 2,
            media_type: media_type::OCI_INDEX,
            manifests,
        };
        // texts and numbers, which nothing can be wrong with
        serde_json::to_vec(&document).unwrap_or_default()
    }
}
