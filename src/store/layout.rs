//! The documents of an OCI image layout: `oci-layout` and `index.json` (image-layout.md).

use crate::model::{Descriptor, Digest, media_type};
use crate::source::Entry;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The content of `oci-layout`.
pub const OCI_LAYOUT: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;
/// Annotation that carries a name in `index.json`.
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// Names and what they stand at: the content of `index.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayoutIndex {
    names: BTreeMap<String, (Descriptor, Option<String>)>,
}

impl LayoutIndex {
    /// Reads `index.json`; entries without a name are passed over.
    ///
    /// # Errors
    /// When it is no JSON.
    pub fn parse(bytes: &[u8]) -> Result<LayoutIndex, serde_json::Error> {
        let value: Value = serde_json::from_slice(bytes)?;
        let children = value.get("manifests").and_then(Value::as_array).cloned().unwrap_or_default();
        let names = children.iter().filter_map(|child| {
            let name = child.get("annotations")?.get(REF_NAME)?.as_str()?.to_owned();
            let artifact = child.get("artifactType").and_then(Value::as_str).map(str::to_owned);
            Some((name, (serde_json::from_value(child.clone()).ok()?, artifact)))
        });
        Ok(LayoutIndex { names: names.collect() })
    }

    /// Adds or replaces the entries' names.
    pub fn add<'a>(&mut self, entries: impl IntoIterator<Item = &'a Entry>) {
        for entry in entries {
            let artifact =
                (entry.kind == crate::report::Kind::File).then(|| media_type::LANDFALL_FILE.to_owned());
            self.names.insert(entry.layout_name.clone(), (entry.top.clone(), artifact));
        }
    }

    /// Drops the names that stand at none of `keep`.
    pub(super) fn retain(&mut self, keep: &BTreeSet<Digest>) {
        self.names.retain(|_, (top, _)| keep.contains(&top.digest));
    }

    /// The document, sorted by name: equal content gives equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let manifests: Vec<Value> = self
            .names
            .iter()
            .map(|(name, (top, artifact))| {
                let mut child = json!({"mediaType": top.media_type, "digest": top.digest, "size": top.size});
                if let Some(artifact) = artifact {
                    child["artifactType"] = json!(artifact);
                }
                child["annotations"] = json!({REF_NAME: name});
                child
            })
            .collect();
        let index = json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": manifests});
        index.to_string().into_bytes()
    }
}
