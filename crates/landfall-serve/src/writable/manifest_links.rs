//! The references of pushed manifests: blobs or child manifests, and subjects.

use super::store::WritableStore;
use landfall_content::BlobRead;
use landfall_model::{Digest, JsonText};
use std::collections::BTreeMap;
use std::io;

/// The references of one manifest. They never change, because a manifest never changes.
#[derive(Debug, Default)]
pub(super) struct ManifestLinks {
    /// Config and layers, or children; sorted, without duplicates.
    pub(super) needs: Vec<Digest>,
    pub(super) subject: Option<Digest>,
}

/// The references of each manifest in a repository.
pub(super) type RepositoryLinks = BTreeMap<Digest, ManifestLinks>;

impl ManifestLinks {
    /// Reads the links of a manifest of any type. Members that are not links may have any value.
    fn parse(bytes: &[u8]) -> serde_json::Result<ManifestLinks> {
        let text = String::from_utf8_lossy(bytes);
        let [manifests, config, layers, blobs, subject] =
            JsonText::new(&text).members(["manifests", "config", "layers", "blobs", "subject"])?;
        let lists = [manifests, layers, blobs].into_iter().flatten();
        let listed = lists.filter_map(JsonText::elements).flatten();
        let mut needs: Vec<Digest> = listed.chain(config).filter_map(digest_in).collect();
        needs.sort();
        needs.dedup();
        // the links of all manifests are in memory at once
        needs.shrink_to_fit();
        Ok(ManifestLinks {
            needs,
            subject: subject.and_then(digest_in),
        })
    }
}

fn digest_in(descriptor: JsonText<'_>) -> Option<Digest> {
    let [digest] = descriptor.members_if_object(["digest"]);
    digest?.string()?.parse().ok()
}

impl WritableStore {
    /// The links of the manifests that are in the repository now. Those in `known` are not read
    /// again.
    pub(super) fn links(
        &self,
        name: &str,
        mut known: RepositoryLinks,
    ) -> io::Result<RepositoryLinks> {
        let mut links = RepositoryLinks::new();
        for digest in self.manifests(name)? {
            let of_manifest = match known.remove(&digest) {
                // a manifest never changes, so links that were read without the lock are still
                // valid
                Some(of_manifest) => of_manifest,
                None => self.read_links(name, &digest)?,
            };
            links.insert(digest, of_manifest);
        }
        Ok(links)
    }

    /// Like [`WritableStore::links`], for all repositories by their names.
    pub(super) fn all_links(
        &self,
        mut known: BTreeMap<String, RepositoryLinks>,
    ) -> io::Result<BTreeMap<String, RepositoryLinks>> {
        let mut all = BTreeMap::new();
        for name in self.repositories()? {
            let links = self.links(&name, known.remove(&name).unwrap_or_default())?;
            all.insert(name, links);
        }
        Ok(all)
    }

    fn read_links(&self, name: &str, digest: &Digest) -> io::Result<ManifestLinks> {
        let Some(descriptor) = self.manifest(name, digest)? else {
            return Ok(ManifestLinks::default());
        };
        let bytes = self.blobs.read(&descriptor).map_err(io::Error::other)?;
        ManifestLinks::parse(&bytes)
            .map_err(|error| io::Error::other(format!("{name}@{digest}: {error}")))
    }
}
