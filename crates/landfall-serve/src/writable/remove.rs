//! Removing: tags, manifests and blobs that a client deletes, and the sweep of blobs that nothing
//! names any more.

use super::disk::{optional, sync};
use super::error::KeepError;
use super::links::{Links, RepositoryLinks};
use super::store::WritableStore;
use landfall_model::Digest;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
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

    /// Removes a manifest from the repository, with its tags; of an index also those of its
    /// children that have no tag and that no other index of the repository names. Returns whether
    /// it was there.
    ///
    /// # Errors
    /// When the disk cannot be read or written.
    pub(in super::super) fn delete_manifest(
        &self,
        name: &str,
        digest: &Digest,
    ) -> io::Result<bool> {
        let _turn = self.begin_removal();
        // pushes go on while all manifests are read, and wait only for what was pushed meanwhile
        let known = self.links(name, RepositoryLinks::new())?;
        let _alone = self.hold_alone();
        if self.manifest(name, digest)?.is_none() {
            return Ok(false);
        }
        let links = self.links(name, known)?;
        let mut tags: BTreeMap<Digest, Vec<String>> = BTreeMap::new();
        for tag in self.tags(name)?.unwrap_or_default() {
            if let Some(tagged) = self.tag(name, &tag)? {
                tags.entry(tagged).or_default().push(tag);
            }
        }
        let gone = removed_with(digest, &links, &tags);
        self.unlink(name, tags.get(digest).into_iter().flatten(), &gone, &links)?;
        Ok(true)
    }

    /// Removes these tags, and then these manifests. Each folder is brought to disk once.
    fn unlink<'a>(
        &self,
        name: &str,
        tags: impl Iterator<Item = &'a String>,
        manifests: &[&Digest],
        links: &RepositoryLinks,
    ) -> io::Result<()> {
        let folder = self.repository(name).join("_tags");
        for tag in tags {
            optional(fs::remove_file(folder.join(tag)))?;
        }
        // no tag must be on disk whose manifest is not
        sync(&folder)?;
        let mut folders = BTreeSet::new();
        for digest in manifests {
            let subject = links.get(digest).and_then(|links| links.subject.as_ref());
            let listed = subject.map(|subject| self.referrers_of(name, subject).join(digest.hex()));
            for path in listed.into_iter().chain([self.manifest_path(name, digest)]) {
                optional(fs::remove_file(&path))?;
                folders.extend(path.parent().map(Path::to_path_buf));
            }
        }
        folders.iter().try_for_each(|folder| sync(folder))
    }

    /// Removes a blob. Returns whether it was there.
    ///
    /// # Errors
    /// When a manifest needs it, or the disk cannot be read or written.
    pub(in super::super) fn delete_blob(&self, digest: &Digest) -> Result<bool, KeepError> {
        let _turn = self.begin_removal();
        let known = self.all_links(BTreeMap::new())?;
        let _alone = self.hold_alone();
        for (repository, links) in self.all_links(known)? {
            let needed = |(manifest, links): &(&Digest, &Links)| {
                *manifest == digest || links.needs.binary_search(digest).is_ok()
            };
            if let Some((manifest, _)) = links.iter().find(needed) {
                let (digest, manifest) = (digest.clone(), manifest.clone());
                return Err(KeepError::Needed {
                    digest,
                    manifest,
                    repository,
                });
            }
        }
        Ok(self.blobs.remove(digest)?)
    }

    /// Removes the blobs that nothing names, and that no push of the last `age` can count on.
    ///
    /// # Errors
    /// When the disk cannot be read or written.
    pub(in super::super) fn sweep(&self, age: Duration) -> io::Result<Swept> {
        let _turn = self.begin_removal();
        let known = self.all_links(BTreeMap::new())?;
        let _alone = self.hold_alone();
        let links = self.all_links(known)?;
        let all = || links.values().flatten();
        let named: BTreeSet<&Digest> = all()
            .flat_map(|(manifest, links)| links.needs.iter().chain([manifest]))
            .collect();
        let mut swept = Swept::default();
        for (digest, data) in self.blobs.all()? {
            if named.contains(&digest) {
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
}

/// The manifest, and of an index those below it that are there, have no tag, and are named by
/// nothing that stays.
fn removed_with<'a>(
    digest: &'a Digest,
    links: &'a RepositoryLinks,
    tags: &BTreeMap<Digest, Vec<String>>,
) -> Vec<&'a Digest> {
    let mut uses: BTreeMap<&Digest, usize> = BTreeMap::new();
    for named in links.values().flat_map(|links| &links.needs) {
        *uses.entry(named).or_default() += 1;
    }
    let (mut gone, mut at) = (vec![digest], 0);
    while let Some(next) = gone.get(at).copied() {
        for child in links.get(next).into_iter().flat_map(|links| &links.needs) {
            let left = uses.entry(child).or_default();
            *left = left.saturating_sub(1);
            if *left == 0 && links.contains_key(child) && !tags.contains_key(child) {
                gone.push(child);
            }
        }
        at += 1;
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writable::IncomingBlob;
    use landfall_content::BlobRead;
    use landfall_model::{Algorithm, Descriptor, media_type, read_referrer};
    use serde_json::{Value, json};

    fn incoming(store: &WritableStore, bytes: &[u8]) -> IncomingBlob {
        let mut incoming = store.blobs.begin(Algorithm::Sha256).unwrap();
        incoming.write(bytes).unwrap();
        incoming
    }

    fn blob(store: &WritableStore, bytes: &[u8]) -> Descriptor {
        let digest = Digest::sha256(bytes);
        store.blobs.keep(incoming(store, bytes), &digest).unwrap();
        Descriptor {
            digest,
            size: bytes.len() as u64,
            media_type: media_type::OCTETS.into(),
        }
    }

    fn put(
        store: &WritableStore,
        name: &str,
        tags: &[&str],
        kind: &str,
        document: &Value,
    ) -> Descriptor {
        let bytes = serde_json::to_vec(document).unwrap();
        let (digest, size) = (Digest::sha256(&bytes), bytes.len() as u64);
        let descriptor = Descriptor {
            digest,
            size,
            media_type: kind.into(),
        };
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
        let (config, layer) = (blob(store, b"{}"), blob(store, layer));
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
    fn an_index_goes_with_the_children_that_nothing_else_needs_and_the_sweep_takes_their_blobs() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let [a, b, c] = [b"a", b"b", b"c"].map(|layer| image(&store, "x", &[], layer));
        image(&store, "x", &["c"], b"c");
        image(&store, "y", &["v1"], b"a");
        let first = index(&store, "x", &["v1", "latest"], &[&a, &b, &c]);
        let second = index(&store, "x", &["v2"], &[&b]);
        assert!(store.delete_manifest("x", &first.digest).unwrap());
        assert!(
            !store.delete_manifest("x", &first.digest).unwrap(),
            "it is gone"
        );
        assert_eq!(store.tags("x").unwrap().unwrap(), ["c", "v2"]);
        let there = |digest: &Digest| store.manifest("x", digest).unwrap().is_some();
        assert_eq!(
            [&a, &b, &c].map(|one| there(&one.digest)),
            [false, true, true]
        );
        assert_eq!(
            store.sweep(Duration::from_hours(1)).unwrap().removed,
            [],
            "a push may count on it"
        );
        let swept = store.sweep(Duration::ZERO).unwrap();
        assert_eq!(
            (swept.removed, swept.later),
            (vec![first.digest], false),
            "the other repository has a"
        );
        assert!(store.delete_manifest("x", &second.digest).unwrap());
        let used = store.room().used();
        store.sweep(Duration::ZERO).unwrap();
        assert!(!has(&store, &b.digest) && !has(&store, &Digest::sha256(b"b")));
        assert!(has(&store, &Digest::sha256(b"a")) && has(&store, &Digest::sha256(b"c")));
        assert_eq!(store.room().used(), used - second.size - b.size - 1);
        drop(store);
        assert_eq!(
            self::store(dir.path()).room().used(),
            used - second.size - b.size - 1,
            "counted anew"
        );
    }

    #[test]
    fn a_blob_that_a_manifest_names_is_not_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let image = image(&store, "x", &["v1"], b"layer");
        let layer = Digest::sha256(b"layer");
        let refused = store.delete_blob(&layer).unwrap_err().to_string();
        assert!(
            refused.contains("x has the manifest") && refused.contains(&image.digest.to_string())
        );
        assert!(store.delete_tag("x", "v1").unwrap() && !store.delete_tag("x", "v1").unwrap());
        assert!(
            store.delete_blob(&layer).is_err(),
            "the manifest is still there by its digest"
        );
        store.delete_manifest("x", &image.digest).unwrap();
        assert!(store.delete_blob(&layer).unwrap() && !store.delete_blob(&layer).unwrap());
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
    fn an_index_with_many_children_is_deleted_in_one_pass_over_the_manifests() {
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
        assert!(store.delete_manifest("x", &index.digest).unwrap());
        let count = reads() - before;
        assert!(count < 20 * 102, "{count} reads for 102 manifests");
        assert_eq!(
            store.manifests("x").unwrap(),
            std::slice::from_ref(&referrer.digest)
        );
        assert_eq!(store.referrers("x", &children[0].digest).unwrap().len(), 1);
        assert!(store.delete_manifest("x", &referrer.digest).unwrap());
        assert_eq!(store.referrers("x", &children[0].digest).unwrap().len(), 0);
    }
}
