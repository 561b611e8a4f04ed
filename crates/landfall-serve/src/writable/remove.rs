//! Removal: tags, manifests and blobs that a client deletes, and the sweep of blobs that no
//! manifest names any more.
//!
//! A removal reads the links of the manifests first, while pushes continue. Then it locks the store
//! and reads only manifests that were pushed meanwhile, so that pushes wait only briefly.

use super::quota::WritableStoreError;
use super::{RepositoryLinks, WritableStore};
use landfall_content::if_exists;
use landfall_model::Digest;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime};
use std::{fs, io};

/// The result of a sweep.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SweepResult {
    pub(crate) removed: Vec<Digest>,
    /// Whether unreferenced blobs were kept because a push in progress may rely on them.
    pub(crate) has_kept_recent: bool,
}

impl WritableStore {
    /// Removes a tag, but not its manifest. Returns whether the tag existed.
    pub(crate) fn delete_tag(&self, name: &str, tag: &str) -> io::Result<bool> {
        let existed = if_exists(fs::remove_file(self.tag_path(name, tag)))?.is_some();
        self.disk.sync_folder(&self.tags_folder(name))?;
        Ok(existed)
    }

    /// Removes a manifest with its tags from the repository. For an index, also removes its
    /// children that have no tag and are not in another index of the repository, unless they were
    /// pushed again within `age`: the push of an index that needs them may be in progress. Returns
    /// whether the manifest existed.
    pub(crate) fn delete_manifest(
        &self,
        name: &str,
        digest: &Digest,
        age: Duration,
    ) -> io::Result<bool> {
        let _removal = self.begin_removal();
        // without the lock, because a repository may have many manifests
        let known = self.links(name, RepositoryLinks::new())?;
        let _exclusive = self.lock_blobs();
        if self.manifest(name, digest)?.is_none() {
            return Ok(false);
        }
        // with the lock, only manifests that were pushed meanwhile are read
        let links = self.links(name, known)?;
        let mut tags: BTreeMap<Digest, Vec<String>> = BTreeMap::new();
        for tag in self.tags(name)?.unwrap_or_default() {
            if let Some(tagged) = self.tag(name, &tag)? {
                tags.entry(tagged).or_default().push(tag);
            }
        }
        let pushed = self.pushed_at(name, digest)?;
        let is_pushed_again = |child: &Digest| {
            let again = self.pushed_at(name, child).ok().filter(|at| *at > pushed);
            // an age that cannot be computed (a clock that was set back) keeps the child
            again.is_some_and(|at| at.elapsed().map_or(true, |elapsed| elapsed < age))
        };
        let manifests = removed_with(digest, &links, &tags, is_pushed_again);
        let tags = tags.get(digest).map_or(&[][..], Vec::as_slice);
        self.unlink(name, tags, &manifests, &links)?;
        Ok(true)
    }

    /// When the manifest was last pushed to the repository.
    fn pushed_at(&self, name: &str, digest: &Digest) -> io::Result<SystemTime> {
        fs::metadata(self.manifest_path(name, digest))?.modified()
    }

    /// Removes tags, and then manifests. Each folder is synced once.
    fn unlink(
        &self,
        name: &str,
        tags: &[String],
        manifests: &[&Digest],
        links: &RepositoryLinks,
    ) -> io::Result<()> {
        for tag in tags {
            if_exists(fs::remove_file(self.tag_path(name, tag)))?;
        }
        // after a crash, no tag on disk may point to a missing manifest
        self.disk.sync_folder(&self.tags_folder(name))?;
        let mut folders = BTreeSet::new();
        for digest in manifests {
            let mut paths = vec![self.manifest_path(name, digest)];
            if let Some(subject) = links.get(digest).and_then(|links| links.subject.as_ref()) {
                paths.push(self.referrers_folder(name, subject).join(digest.hex()));
            }
            for path in paths {
                if_exists(fs::remove_file(&path))?;
                folders.extend(path.parent().map(Path::to_path_buf));
            }
        }
        for folder in folders {
            self.disk.sync_folder(&folder)?;
        }
        Ok(())
    }

    /// Removes a blob, unless a manifest needs it. Returns whether it existed.
    pub(crate) fn delete_blob(&self, digest: &Digest) -> Result<bool, WritableStoreError> {
        let _removal = self.begin_removal();
        // without the lock, because reading all manifests may take long
        let known = self.all_links(BTreeMap::new())?;
        let _exclusive = self.lock_blobs();
        for (repository, links) in self.all_links(known)? {
            for (manifest, links) in links {
                if manifest == *digest || links.needs.binary_search(digest).is_ok() {
                    return Err(WritableStoreError::InUse {
                        digest: digest.clone(),
                        manifest,
                        repository,
                    });
                }
            }
        }
        Ok(self.blobs.remove(digest)?)
    }

    /// Removes the blobs that no manifest names and that no push within `age` can rely on.
    pub(crate) fn sweep(&self, age: Duration) -> io::Result<SweepResult> {
        let _removal = self.begin_removal();
        let known = self.all_links(BTreeMap::new())?;
        let _exclusive = self.lock_blobs();
        let links = self.all_links(known)?;
        let mut named = BTreeSet::new();
        for (manifest, links) in links.values().flatten() {
            // manifests are stored as blobs, too
            named.insert(manifest);
            named.extend(&links.needs);
        }
        let mut result = SweepResult::default();
        for (digest, metadata) in self.blobs.all()? {
            if named.contains(&digest) {
                continue;
            }
            // an age that cannot be computed (a clock that was set back) keeps the blob
            let is_old = metadata
                .modified()?
                .elapsed()
                .is_ok_and(|elapsed| elapsed >= age);
            // protected if a client has learned within `age` that the blob is here: its push may
            // rely on it
            if is_old && self.blobs.remove_unprotected(&digest, age)? {
                result.removed.push(digest);
            } else {
                result.has_kept_recent = true;
            }
        }
        Ok(result)
    }
}

/// Returns the manifest. For an index, also returns the manifests below it that are in the
/// repository, have no tag, are not referenced by a remaining manifest, and are not in use
/// according to `is_in_use`.
fn removed_with<'a>(
    digest: &'a Digest,
    links: &'a RepositoryLinks,
    tags: &BTreeMap<Digest, Vec<String>>,
    is_in_use: impl Fn(&Digest) -> bool,
) -> Vec<&'a Digest> {
    let mut uses: BTreeMap<&Digest, usize> = BTreeMap::new();
    for needed in links.values().flat_map(|links| &links.needs) {
        *uses.entry(needed).or_default() += 1;
    }
    let mut removed = vec![digest];
    let mut next = 0;
    while let Some(manifest) = removed.get(next).copied() {
        next += 1;
        let Some(links_of_manifest) = links.get(manifest) else {
            continue;
        };
        for child in &links_of_manifest.needs {
            let left = uses.entry(child).or_default();
            // an index that is removed too no longer counts as a use of its children
            *left = left.saturating_sub(1);
            if *left == 0
                && links.contains_key(child)
                && !tags.contains_key(child)
                && !is_in_use(child)
            {
                removed.push(child);
            }
        }
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writable::IncomingBlob;
    use landfall_content::BlobRead;
    use landfall_model::{Algorithm, Descriptor, media_type, read_referrer};
    use serde_json::{Value, json};

    const HOUR: Duration = Duration::from_hours(1);

    fn incoming(store: &WritableStore, bytes: &[u8]) -> IncomingBlob {
        let mut incoming = store.blobs.begin(Algorithm::Sha256).unwrap();
        incoming.write(bytes).unwrap();
        incoming
    }

    fn blob(store: &WritableStore, bytes: &[u8]) -> Descriptor {
        let digest = Digest::sha256(bytes);
        store.blobs.keep(incoming(store, bytes), &digest).unwrap();
        Descriptor::new(digest, bytes.len() as u64, media_type::OCTETS)
    }

    fn put(
        store: &WritableStore,
        name: &str,
        tags: &[&str],
        kind: &str,
        document: &Value,
    ) -> Descriptor {
        let bytes = serde_json::to_vec(document).unwrap();
        let digest = Digest::sha256(&bytes);
        let size = bytes.len() as u64;
        let descriptor = Descriptor::new(digest, size, kind);
        let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let referrer = read_referrer(&bytes, &descriptor);
        store
            .put_manifest(
                name,
                &tags,
                &descriptor,
                referrer.as_ref(),
                incoming(store, &bytes),
            )
            .unwrap();
        descriptor
    }

    fn image(store: &WritableStore, name: &str, tags: &[&str], layer: &[u8]) -> Descriptor {
        let config = blob(store, b"{}");
        let layer = blob(store, layer);
        let document = json!({"schemaVersion": 2, "mediaType": media_type::OCI_MANIFEST,
            "config": config, "layers": [layer]});
        put(store, name, tags, media_type::OCI_MANIFEST, &document)
    }

    fn index(
        store: &WritableStore,
        name: &str,
        tags: &[&str],
        children: &[&Descriptor],
    ) -> Descriptor {
        let document =
            json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": children});
        put(store, name, tags, media_type::OCI_INDEX, &document)
    }

    fn store(dir: &Path) -> WritableStore {
        WritableStore::open(dir, None).unwrap()
    }

    fn has(store: &WritableStore, digest: &Digest) -> bool {
        store.blobs.stat(digest).unwrap().is_some()
    }

    #[test]
    fn deleting_an_index_deletes_unreferenced_children_and_the_sweep_removes_their_blobs() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let [a, b, c] = [b"a", b"b", b"c"].map(|layer| image(&store, "x", &[], layer));
        image(&store, "x", &["c"], b"c");
        image(&store, "y", &["v1"], b"a");
        let first = index(&store, "x", &["v1", "latest"], &[&a, &b, &c]);
        let second = index(&store, "x", &["v2"], &[&b]);
        assert!(store.delete_manifest("x", &first.digest, HOUR).unwrap());
        assert!(
            !store.delete_manifest("x", &first.digest, HOUR).unwrap(),
            "it is gone"
        );
        assert_eq!(store.tags("x").unwrap().unwrap(), ["c", "v2"]);
        let there = |digest: &Digest| store.manifest("x", digest).unwrap().is_some();
        assert_eq!(
            [&a, &b, &c].map(|one| there(&one.digest)),
            [false, true, true]
        );
        assert_eq!(
            store.sweep(HOUR).unwrap().removed,
            [],
            "a push may rely on the blobs"
        );
        let swept = store.sweep(Duration::ZERO).unwrap();
        assert_eq!(
            (swept.removed, swept.has_kept_recent),
            (vec![first.digest], false),
            "repository y still has a"
        );
        assert!(store.delete_manifest("x", &second.digest, HOUR).unwrap());
        let used = store.quota().used();
        store.sweep(Duration::ZERO).unwrap();
        assert!(!has(&store, &b.digest) && !has(&store, &Digest::sha256(b"b")));
        assert!(has(&store, &Digest::sha256(b"a")) && has(&store, &Digest::sha256(b"c")));
        assert_eq!(store.quota().used(), used - second.size - b.size - 1);
        drop(store);
        assert_eq!(
            self::store(dir.path()).quota().used(),
            used - second.size - b.size - 1,
            "counted anew"
        );
    }

    #[test]
    fn deleting_an_index_keeps_a_child_that_was_pushed_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        for (age, is_kept) in [(HOUR, true), (Duration::ZERO, false)] {
            let [a, b] = [b"a", b"b"].map(|layer| image(&store, "x", &[], layer));
            let first = index(&store, "x", &["v1"], &[&a, &b]);
            // file times have the resolution of the system's clock ticks
            std::thread::sleep(Duration::from_millis(30));
            // the beginning of the push of another index
            image(&store, "x", &[], b"a");
            assert!(store.delete_manifest("x", &first.digest, age).unwrap());
            let there = |digest: &Digest| store.manifest("x", digest).unwrap().is_some();
            assert_eq!([&a, &b].map(|one| there(&one.digest)), [is_kept, false]);
            let second = index(&store, "x", &["v2"], &[&a]);
            assert!(store.delete_manifest("x", &second.digest, age).unwrap());
        }
    }

    #[test]
    fn a_blob_that_a_manifest_references_is_not_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let image = image(&store, "x", &["v1"], b"layer");
        let layer = Digest::sha256(b"layer");
        let refused = store.delete_blob(&layer).unwrap_err().to_string();
        assert!(
            refused.contains("of x; delete the manifest")
                && refused.contains(&image.digest.to_string())
        );
        assert!(store.delete_tag("x", "v1").unwrap() && !store.delete_tag("x", "v1").unwrap());
        assert!(
            store.delete_blob(&layer).is_err(),
            "the manifest is still there by its digest"
        );
        store.delete_manifest("x", &image.digest, HOUR).unwrap();
        assert!(store.delete_blob(&layer).unwrap() && !store.delete_blob(&layer).unwrap());
    }

    #[test]
    fn a_referrer_whose_manifest_is_gone_is_not_listed() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let subject = image(&store, "x", &[], b"a");
        let about = json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": [],
            "subject": subject});
        let referrer = put(&store, "x", &[], media_type::OCI_INDEX, &about);
        let is_listed = || {
            let hex = referrer.digest.hex();
            let entry = store.referrer("x", &subject.digest, &hex).unwrap();
            entry.is_some()
        };
        assert!(is_listed());
        // as after a crash between the removal of the manifest and that of the entry
        fs::remove_file(store.manifest_path("x", &referrer.digest)).unwrap();
        assert!(!is_listed());
    }

    /// How often this thread has read from files so far.
    fn reads() -> u64 {
        let counts = fs::read_to_string("/proc/thread-self/io").unwrap();
        let line = counts
            .lines()
            .find_map(|line| line.strip_prefix("syscr: "))
            .unwrap();
        line.parse().unwrap()
    }

    #[test]
    fn deleting_an_index_does_not_read_all_manifests_for_each_child() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let children: Vec<Descriptor> = (0..100_u8)
            .map(|layer| image(&store, "x", &[], &[layer]))
            .collect();
        let about = json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": [],
            "subject": children[0]});
        let referrer = put(&store, "x", &[], media_type::OCI_INDEX, &about);
        let index = index(&store, "x", &["v1"], &children.iter().collect::<Vec<_>>());
        let before = reads();
        assert!(store.delete_manifest("x", &index.digest, HOUR).unwrap());
        let count = reads() - before;
        assert!(count < 20 * 102, "{count} reads for 102 manifests");
        assert_eq!(
            store.manifests("x").unwrap(),
            std::slice::from_ref(&referrer.digest)
        );
        assert_eq!(store.referrers("x", &children[0].digest).unwrap().len(), 1);
        assert!(store.delete_manifest("x", &referrer.digest, HOUR).unwrap());
        assert_eq!(store.referrers("x", &children[0].digest).unwrap().len(), 0);
    }
}
