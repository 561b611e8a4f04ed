//! `index.json`, the index of an OCI image layout (image-layout.md).

use super::disk_content::io;
use super::disk_store::DiskStore;
use crate::{LockEntry, WriteError, if_exists};
use landfall_model::{Descriptor, Digest, media_type};
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

/// The annotation with the name of an entry.
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// An entry of `index.json` that was read: its name, descriptor and artifact type. `None` if it has
/// no name or is not a descriptor.
#[derive(Deserialize)]
#[serde(from = "Value")]
struct IndexEntry(Option<(String, (Descriptor, Option<String>))>);

impl From<Value> for IndexEntry {
    fn from(child: Value) -> IndexEntry {
        IndexEntry(parse_entry(child))
    }
}

/// Returns the name of an entry, its descriptor and its artifact type.
fn parse_entry(child: Value) -> Option<(String, (Descriptor, Option<String>))> {
    let name = child
        .get("annotations")?
        .get(REF_NAME)?
        .as_str()?
        .to_owned();
    let artifact = child
        .get("artifactType")
        .and_then(Value::as_str)
        .map(str::to_owned);
    Some((name, (serde_json::from_value(child).ok()?, artifact)))
}

/// The content of `index.json`: the manifest of each name, with its artifact type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayoutIndex {
    names: BTreeMap<String, (Descriptor, Option<String>)>,
}

impl LayoutIndex {
    /// Parses `index.json`. Ignores entries that have no name or are not descriptors.
    ///
    /// # Errors
    /// If it is not a JSON object, or its `manifests` are not a list.
    pub fn parse(bytes: &[u8]) -> Result<LayoutIndex, serde_json::Error> {
        #[derive(Deserialize)]
        struct ParsedIndex {
            #[serde(default)]
            manifests: Vec<IndexEntry>,
        }
        let found: ParsedIndex = serde_json::from_slice(bytes)?;
        Ok(LayoutIndex {
            names: found
                .manifests
                .into_iter()
                // other tools may have written entries without a name, which are dropped at the
                // next write
                .filter_map(|child| child.0)
                .collect(),
        })
    }

    /// Adds the names of the entries. A name that exists already then refers to the new manifest.
    pub fn add(&mut self, entries: impl IntoIterator<Item = impl Borrow<LockEntry>>) {
        for entry in entries {
            let entry = entry.borrow();
            let artifact = entry.artifact_type.map(str::to_owned);
            self.names
                .insert(entry.layout_name.clone(), (entry.top.clone(), artifact));
        }
    }

    /// Removes the names of manifests that are not in `keep`.
    pub(super) fn retain(&mut self, keep: &BTreeSet<Digest>) {
        self.names.retain(|_, (top, _)| keep.contains(&top.digest));
    }

    /// Returns the JSON, sorted by name, so that equal indexes have equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let manifests = self.names.iter().map(|(name, (top, artifact))| {
            let mut entry = json!({
                "mediaType": top.media_type,
                "digest": top.digest,
                "size": top.size,
            });
            if let Some(artifact) = artifact {
                entry["artifactType"] = artifact.as_str().into();
            }
            entry["annotations"] = json!({REF_NAME: name});
            entry
        });
        let document = json!({
            "schemaVersion": 2,
            "mediaType": media_type::OCI_INDEX,
            "manifests": manifests.collect::<Vec<_>>(),
        });
        document.to_string().into_bytes()
    }
}

// Small files with landfall's own state in the store. Each is replaced atomically, and only one
// process edits them at a time.

impl DiskStore {
    /// Replaces a state file in one step.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), WriteError> {
        self.replace(&self.dir().join(name), content)
    }

    /// Edits a state file in one step. `edit` receives the old content, empty if the file is
    /// missing.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn edit(&self, name: &str, edit: impl FnOnce(&[u8]) -> Vec<u8>) -> Result<(), WriteError> {
        let _guard = self.guard()?;
        let path = self.dir().join(name);
        let old = if_exists(std::fs::read(&path)).map_err(io("read", &path))?;
        let old = old.unwrap_or_default();
        let new = edit(&old);
        if new == old {
            Ok(())
        } else {
            self.replace(&path, &new)
        }
    }

    /// Creates a file of the layout. Another process may have created it since it was found to be
    /// missing, and may have added names to it, so an existing file is kept.
    pub(super) fn create(&self, name: &str, content: Vec<u8>) -> Result<(), WriteError> {
        self.edit(name, |old| {
            if old.is_empty() {
                content
            } else {
                old.to_vec()
            }
        })
    }

    /// Locks the state files against other processes while a state file is read, edited and
    /// written. Dropping the returned file releases the lock.
    pub(super) fn guard(&self) -> Result<File, WriteError> {
        let path = self.dir().join(".landfall/lock");
        // a file of its own, because state files are replaced and a lock on them would be lost
        let file = File::create(&path).map_err(io("open", &path))?;
        file.lock().map_err(io("lock", &path))?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::INDEX_FILE;

    #[test]
    fn a_process_that_creates_a_store_keeps_the_index_of_another() {
        let dir = tempfile::tempdir().unwrap();
        let store = DiskStore::open(dir.path()).unwrap();
        let index = dir.path().join(INDEX_FILE);
        std::fs::write(&index, "names of another process").unwrap();
        // as if the file had been missing when it was looked up
        let empty = b"{}".to_vec();
        store.create(INDEX_FILE, empty.clone()).unwrap();
        assert_eq!(std::fs::read(&index).unwrap(), b"names of another process");
        std::fs::remove_file(&index).unwrap();
        store.create(INDEX_FILE, empty.clone()).unwrap();
        assert_eq!(std::fs::read(&index).unwrap(), empty);
    }
}
