//! What pushed manifests name: the blobs and manifests that they need, and their subjects.

use super::store::WritableStore;
use landfall_content::BlobRead;
use landfall_model::Digest;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;

/// What one manifest names. A manifest never changes, so neither does this.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// Config and layers, or children; sorted, each once.
    pub(super) needs: Vec<Digest>,
    pub(super) subject: Option<Digest>,
}

/// What each manifest of a repository names.
pub(super) type RepositoryLinks = BTreeMap<Digest, Links>;

#[derive(Deserialize)]
struct Raw {
    manifests: Option<Vec<Named>>,
    config: Option<Named>,
    layers: Option<Vec<Named>>,
    subject: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    digest: Digest,
}

impl Links {
    fn read(bytes: &[u8]) -> serde_json::Result<Links> {
        let raw: Raw = serde_json::from_slice(bytes)?;
        let lists = [raw.manifests, raw.layers].into_iter().flatten().flatten();
        let mut needs: Vec<Digest> = lists.chain(raw.config).map(|named| named.digest).collect();
        needs.sort();
        needs.dedup();
        needs.shrink_to_fit();
        Ok(Links {
            needs,
            subject: raw.subject.map(|subject| subject.digest),
        })
    }
}

impl WritableStore {
    /// What the manifests of the repository name that are there now. Those in `known` are not read
    /// again.
    ///
    /// # Errors
    /// When the disk or a manifest cannot be read.
    pub(super) fn links(
        &self,
        name: &str,
        mut known: RepositoryLinks,
    ) -> io::Result<RepositoryLinks> {
        let mut links = RepositoryLinks::new();
        for digest in self.manifests(name)? {
            let found = match known.remove(&digest) {
                Some(found) => found,
                None => self.read_links(name, &digest)?,
            };
            links.insert(digest, found);
        }
        Ok(links)
    }

    /// The same for all repositories, by their names.
    ///
    /// # Errors
    /// When the disk or a manifest cannot be read.
    pub(super) fn all_links(
        &self,
        mut known: BTreeMap<String, RepositoryLinks>,
    ) -> io::Result<BTreeMap<String, RepositoryLinks>> {
        let names = self.repositories()?.into_iter();
        let read = names.map(|name| {
            let links = self.links(&name, known.remove(&name).unwrap_or_default())?;
            Ok((name, links))
        });
        read.collect()
    }

    fn read_links(&self, name: &str, digest: &Digest) -> io::Result<Links> {
        let Some(descriptor) = self.manifest(name, digest)? else {
            return Ok(Links::default());
        };
        let bytes = self.blobs.read(&descriptor).map_err(io::Error::other)?;
        Links::read(&bytes).map_err(|error| io::Error::other(format!("{name}@{digest}: {error}")))
    }
}
