//! Removing: tags, manifests and blobs that a client deletes, and the sweep of blobs that nothing names any more.

use super::disk::{optional, sync};
use super::error::KeepError;
use super::store::WritableStore;
use crate::content::BlobRead;
use crate::model::{Descriptor, Digest, Manifest, referring};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::time::Duration;

/// What a sweep did.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Swept {
    /// What was removed.
    pub(in super::super) removed: Vec<Digest>,
    /// Whether there are blobs that nothing names, but that may be part of a push under way.
    pub(in super::super) later: bool,
}

impl WritableStore {
    /// Removes a tag. What it stood for stays. Returns whether it was there.
    ///
    /// # Errors
    /// When the disk cannot be written.
    pub(in super::super) fn delete_tag(&self, name: &str, tag: &str) -> io::Result<bool> {
        let tags = self.repository(name).join("_tags");
        let was_there = optional(fs::remove_file(tags.join(tag)))?.is_some();
        sync(&tags)?;
        Ok(was_there)
    }

    /// Removes a manifest from the repository, with its tags; of an index also those of its children that have no tag
    /// and that no other index of the repository names. Returns whether it was there.
    ///
    /// # Errors
    /// When the disk cannot be read or written.
    pub(in super::super) fn delete_manifest(&self, name: &str, digest: &Digest) -> io::Result<bool> {
        let _alone = self.hold_alone();
        if self.manifest(name, digest)?.is_none() {
            return Ok(false);
        }
        let mut open = vec![digest.clone()];
        while let Some(digest) = open.pop() {
            let children = self.named_by(name, &digest)?;
            self.remove_manifest(name, &digest)?;
            let mut needed: BTreeSet<Digest> = BTreeSet::new();
            for tag in self.tags(name)?.unwrap_or_default() {
                needed.extend(self.tag(name, &tag)?);
            }
            for other in self.manifests(name)? {
                needed.extend(self.named_by(name, &other)?);
            }
            let there = self.manifests(name)?.into_iter().collect::<BTreeSet<Digest>>();
            open.extend(
                children.into_iter().filter(|child| there.contains(child) && !needed.contains(child)),
            );
        }
        Ok(true)
    }

    fn remove_manifest(&self, name: &str, digest: &Digest) -> io::Result<()> {
        for tag in self.tags(name)?.unwrap_or_default() {
            if self.tag(name, &tag)?.as_ref() == Some(digest) {
                self.delete_tag(name, &tag)?;
            }
        }
        if let Some((descriptor, bytes)) = self.manifest_bytes(name, digest)?
            && let Some(referrer) = referring(&bytes, &descriptor)
        {
            let folder = self.referrers_of(name, &referrer.subject);
            optional(fs::remove_file(folder.join(digest.hex())))?;
            sync(&folder)?;
        }
        let path = self.manifest_path(name, digest);
        optional(fs::remove_file(&path))?;
        sync(path.parent().unwrap_or(&path))
    }

    /// Removes a blob. Returns whether it was there.
    ///
    /// # Errors
    /// When a manifest needs it, or the disk cannot be read or written.
    pub(in super::super) fn delete_blob(&self, digest: &Digest) -> Result<bool, KeepError> {
        let _alone = self.hold_alone();
        if let Some((repository, manifest)) = self.named()?.remove(digest) {
            return Err(KeepError::Needed { digest: digest.clone(), manifest, repository });
        }
        Ok(self.blobs.remove(digest)?)
    }

    /// Removes the blobs that nothing names, and that no push of the last `age` can count on.
    ///
    /// # Errors
    /// When the disk cannot be read or written.
    pub(in super::super) fn sweep(&self, age: Duration) -> io::Result<Swept> {
        let _alone = self.hold_alone();
        let named = self.named()?;
        let mut swept = Swept::default();
        for (digest, data) in self.blobs.all()? {
            if named.contains_key(&digest) {
                continue;
            }
            let is_old = data.modified()?.elapsed().is_ok_and(|since| since >= age);
            if is_old && self.blobs.remove_untold(&digest, age)? {
                swept.removed.push(digest);
            } else {
                swept.later = true;
            }
        }
        Ok(swept)
    }

    /// All that the manifests of all repositories name, themselves too: each with a manifest that names it.
    fn named(&self) -> io::Result<BTreeMap<Digest, (String, Digest)>> {
        let mut named = BTreeMap::new();
        for name in self.repositories()? {
            for manifest in self.manifests(&name)? {
                for digest in self.named_by(&name, &manifest)?.into_iter().chain([manifest.clone()]) {
                    named.entry(digest).or_insert_with(|| (name.clone(), manifest.clone()));
                }
            }
        }
        Ok(named)
    }

    /// What a manifest names: config and layers, or children.
    fn named_by(&self, name: &str, manifest: &Digest) -> io::Result<Vec<Digest>> {
        let Some((descriptor, bytes)) = self.manifest_bytes(name, manifest)? else { return Ok(Vec::new()) };
        let parsed = Manifest::parse(&bytes, Some(&descriptor.media_type)).map_err(io::Error::other)?;
        Ok(match parsed.0 {
            Manifest::Index(children) => children.into_iter().map(|child| child.descriptor.digest).collect(),
            Manifest::Image { config, layers, .. } => {
                std::iter::once(config).chain(layers).map(|blob| blob.digest).collect()
            }
        })
    }

    fn manifest_bytes(&self, name: &str, digest: &Digest) -> io::Result<Option<(Descriptor, Vec<u8>)>> {
        let Some(descriptor) = self.manifest(name, digest)? else { return Ok(None) };
        let bytes = self.blobs.read(&descriptor).map_err(io::Error::other)?;
        Ok(Some((descriptor, bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Algorithm, media_type};
    use serde_json::{Value, json};
    use std::path::Path;

    fn blob(store: &WritableStore, bytes: &[u8]) -> Descriptor {
        let digest = Digest::sha256(bytes);
        let mut incoming = store.blobs.begin(Algorithm::Sha256).unwrap();
        incoming.write(bytes).unwrap();
        store.blobs.keep(incoming, &digest).unwrap();
        Descriptor { digest, size: bytes.len() as u64, media_type: media_type::OCTETS.into() }
    }

    fn put(store: &WritableStore, name: &str, tags: &[&str], kind: &str, document: &Value) -> Descriptor {
        let bytes = serde_json::to_vec(document).unwrap();
        let (digest, size) = (Digest::sha256(&bytes), bytes.len() as u64);
        let descriptor = Descriptor { digest, size, media_type: kind.into() };
        let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let referrer = referring(&bytes, &descriptor);
        store.put_manifest(name, &tags, &descriptor, referrer.as_ref(), &bytes).unwrap();
        descriptor
    }

    fn image(store: &WritableStore, name: &str, tags: &[&str], layer: &[u8]) -> Descriptor {
        let (config, layer) = (blob(store, b"{}"), blob(store, layer));
        let document = json!({"schemaVersion": 2, "mediaType": media_type::OCI_MANIFEST,
            "config": config, "layers": [layer]});
        put(store, name, tags, media_type::OCI_MANIFEST, &document)
    }

    fn index(store: &WritableStore, name: &str, tags: &[&str], children: &[&Descriptor]) -> Descriptor {
        let document = json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": children});
        put(store, name, tags, media_type::OCI_INDEX, &document)
    }

    fn store(dir: &Path) -> WritableStore {
        WritableStore::open(dir, None).unwrap()
    }

    fn has(store: &WritableStore, digest: &Digest) -> bool {
        store.blobs.stat(digest).unwrap().is_some()
    }

    #[test]
    fn an_index_goes_with_the_children_that_nothing_else_needs_and_the_sweep_takes_their_blobs() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let [a, b, c] = [b"a", b"b", b"c"].map(|layer| image(&store, "x", &[], layer));
        image(&store, "x", &["c"], b"c");
        image(&store, "y", &["v1"], b"a");
        let first = index(&store, "x", &["v1", "latest"], &[&a, &b, &c]);
        let second = index(&store, "x", &["v2"], &[&b]);
        assert!(store.delete_manifest("x", &first.digest).unwrap());
        assert!(!store.delete_manifest("x", &first.digest).unwrap(), "it is gone");
        assert_eq!(store.tags("x").unwrap().unwrap(), ["c", "v2"]);
        let there = |digest: &Digest| store.manifest("x", digest).unwrap().is_some();
        assert_eq!([&a, &b, &c].map(|one| there(&one.digest)), [false, true, true]);
        assert_eq!(store.sweep(Duration::from_hours(1)).unwrap().removed, [], "a push may count on it");
        let swept = store.sweep(Duration::ZERO).unwrap();
        assert_eq!((swept.removed, swept.later), (vec![first.digest], false), "the other repository has a");
        assert!(store.delete_manifest("x", &second.digest).unwrap());
        let used = store.room().used();
        store.sweep(Duration::ZERO).unwrap();
        assert!(!has(&store, &b.digest) && !has(&store, &Digest::sha256(b"b")));
        assert!(has(&store, &Digest::sha256(b"a")) && has(&store, &Digest::sha256(b"c")));
        assert_eq!(store.room().used(), used - second.size - b.size - 1);
        drop(store);
        assert_eq!(self::store(dir.path()).room().used(), used - second.size - b.size - 1, "counted anew");
    }

    #[test]
    fn a_blob_that_a_manifest_names_is_not_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let image = image(&store, "x", &["v1"], b"layer");
        let layer = Digest::sha256(b"layer");
        let refused = store.delete_blob(&layer).unwrap_err().to_string();
        assert!(refused.contains("x has the manifest") && refused.contains(&image.digest.to_string()));
        assert!(store.delete_tag("x", "v1").unwrap() && !store.delete_tag("x", "v1").unwrap());
        assert!(store.delete_blob(&layer).is_err(), "the manifest is still there by its digest");
        store.delete_manifest("x", &image.digest).unwrap();
        assert!(store.delete_blob(&layer).unwrap() && !store.delete_blob(&layer).unwrap());
    }
}
