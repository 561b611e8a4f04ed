//! The facts that registries reported about their repositories: the tags, and whether the registry
//! has the referrers API. So that the next run sends fewer requests, the store remembers which
//! repositories have the API, and which tag lists are too long, but not the tags.

use landfall_content::WriteError;
use landfall_content::registry::{ListedReferrers, ReferrersResponse, RegistrySession, TagList};
use landfall_content::store::DiskStore;
use landfall_http::{HttpError, OnceMap};
use landfall_model::{Digest, ImageRef, Limits, locked};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use tracing::debug;

/// The file in the store. It only saves requests: without it, every registry is queried again.
const FILE: &str = ".landfall/repositories";

/// How many tags of the cosign convention one manifest may have: signature, attestation and SBOM.
const COSIGN_TAGS: usize = 3;

/// The tags of a repository. `None` if they were not listed, or the list has too many pages.
pub(super) type RepositoryTags = Option<Arc<BTreeSet<String>>>;

/// The answer of a registry about the tags of a repository.
#[derive(Debug, Clone)]
struct TagListing {
    tags: RepositoryTags,
    /// The number of pages that were read, if the list has more.
    pages_above: Option<usize>,
}

/// The facts that a registry reported about one of its repositories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RepositoryFacts {
    /// Whether the registry has the referrers API for this repository; `None` if that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    referrers_api: Option<bool>,
    /// A number of pages that the tag list exceeds; `None` if the list was not requested, was read
    /// completely, or was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    tag_pages_above: Option<usize>,
}

/// The JSON document in [`FILE`].
#[derive(Default, Serialize, Deserialize)]
struct StoredFacts {
    version: u32,
    /// The facts by address and path, such as `quay.io:443/prometheus/alertmanager`.
    repositories: BTreeMap<String, RepositoryFacts>,
    /// For each namespace, the repository that was queried on its behalf in the last run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    probed: BTreeMap<String, String>,
}

#[derive(Default)]
struct KnownFacts {
    facts: BTreeMap<String, RepositoryFacts>,
    probed: BTreeMap<String, String>,
    /// The repositories about which this run learned something.
    changed: BTreeSet<String>,
    /// How many images of a repository are requested, by host and repository.
    requested_images: BTreeMap<(String, String), usize>,
}

impl KnownFacts {
    /// Whether the repository at `address` answered that it has no referrers API.
    fn is_without_api(&self, address: &str) -> bool {
        self.facts
            .get(address)
            .is_some_and(|facts| facts.referrers_api == Some(false))
    }
}

/// The facts that this run and earlier runs know about upstream repositories.
pub struct UpstreamRepositories {
    disk: DiskStore,
    /// The tags of repositories, by host and repository.
    listings: OnceMap<(String, String), TagListing>,
    /// All tags of repositories of which `listings` has too few pages.
    complete_listings: OnceMap<(String, String), TagListing>,
    /// Whether a namespace still lacks the referrers API, according to this run's answer for one of
    /// its repositories. By host and namespace.
    probes: OnceMap<String, bool>,
    state: Mutex<KnownFacts>,
}

impl UpstreamRepositories {
    /// Reads the facts that `disk` remembers.
    pub(super) fn new(disk: DiskStore) -> UpstreamRepositories {
        let written = std::fs::read(disk.dir().join(FILE)).map(|bytes| parse(&bytes));
        let StoredFacts {
            repositories: facts,
            probed,
            ..
        } = written.unwrap_or_default();
        let state = Mutex::new(KnownFacts {
            facts,
            probed,
            ..KnownFacts::default()
        });
        UpstreamRepositories {
            disk,
            listings: OnceMap::default(),
            complete_listings: OnceMap::default(),
            probes: OnceMap::default(),
            state,
        }
    }

    /// Stores the facts that this run learned, for use by the next run.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn remember(&self) -> Result<(), WriteError> {
        let state = self.state();
        if state.changed.is_empty() {
            return Ok(());
        }
        self.disk.edit(FILE, |old| {
            // another run may have written the file meanwhile: merge with it rather than replace it
            let StoredFacts {
                mut repositories,
                mut probed,
                ..
            } = parse(old);
            for name in &state.changed {
                match state
                    .facts
                    .get(name)
                    .filter(|facts| **facts != RepositoryFacts::default())
                {
                    Some(facts) => drop(repositories.insert(name.clone(), facts.clone())),
                    None => drop(repositories.remove(name)),
                }
            }
            probed.extend(state.probed.clone());
            probed.retain(|_, address| repositories.contains_key(address));
            let written = StoredFacts {
                version: 1,
                repositories,
                probed,
            };
            let mut bytes = serde_json::to_vec_pretty(&written).unwrap_or_default();
            bytes.push(b'\n');
            bytes
        })
    }

    /// Counts these images as requested. The more images of a repository are requested, the more
    /// pages of its tag list are worth reading.
    pub fn expect_images<'a>(&self, images: impl Iterator<Item = &'a ImageRef>) {
        let mut state = self.state();
        for image in images {
            *state.requested_images.entry(key_of(image)).or_default() += 1;
        }
    }

    /// How many pages of a repository's tag list are worth reading: no more than the requests for
    /// signature tags by name that the list replaces. Those are three for each of the image's
    /// `manifests`, or three for each requested image of the repository if that is more.
    pub(super) fn pages_worth_reading(
        &self,
        name: &ImageRef,
        manifests: usize,
        limits: &Limits,
    ) -> usize {
        let images = self
            .state()
            .requested_images
            .get(&key_of(name))
            .copied()
            .unwrap_or_default();
        // a listing is shared by all images of the repository; each has at least one manifest
        (COSIGN_TAGS * manifests.max(images)).min(limits.pages)
    }

    /// Whether the tag list had more than `pages` pages when it was last read. Reading it again
    /// would only cost requests.
    pub(super) fn has_more_pages_than(
        &self,
        session: &RegistrySession,
        name: &ImageRef,
        pages: usize,
    ) -> bool {
        let address = session.repository_address(&name.repository);
        let above = self
            .state()
            .facts
            .get(&address)
            .and_then(|facts| facts.tag_pages_above);
        above.is_some_and(|above| above >= pages)
    }

    /// All tags of an image's repository if its registry lists them in at most `pages` answers.
    /// Each repository is listed once per run, with the `pages` of the first caller.
    pub(super) async fn tags(
        &self,
        session: &RegistrySession,
        name: &ImageRef,
        pages: usize,
    ) -> Result<RepositoryTags, HttpError> {
        let listed = self.listing(session, name, pages).await?;
        Ok(listed.tags)
    }

    /// Like [`Self::tags`], but lists the repository again if an earlier caller read fewer pages
    /// than the list has.
    pub(super) async fn all_tags(
        &self,
        session: &RegistrySession,
        name: &ImageRef,
        pages: usize,
    ) -> Result<RepositoryTags, HttpError> {
        let mut listed = self.listing(session, name, pages).await?;
        if listed.pages_above.is_some_and(|above| above < pages) {
            listed = self
                .complete_listings
                .get_or_try_init(key_of(name), || self.list_tags(session, name, pages))
                .await?;
        }
        Ok(listed.tags)
    }

    async fn listing(
        &self,
        session: &RegistrySession,
        name: &ImageRef,
        pages: usize,
    ) -> Result<TagListing, HttpError> {
        self.listings
            .get_or_try_init(key_of(name), || self.list_tags(session, name, pages))
            .await
    }

    /// Requests the tags of an image's repository, at most `pages` pages of them.
    async fn list_tags(
        &self,
        session: &RegistrySession,
        name: &ImageRef,
        pages: usize,
    ) -> Result<TagListing, HttpError> {
        let (tags, pages_above) = match session.tag_list(&name.repository, pages).await? {
            TagList::Whole(tags) => (Some(Arc::new(tags)), None),
            TagList::LongerThan(pages) => (None, Some(pages)),
            TagList::Refused => (None, None),
        };
        let address = session.repository_address(&name.repository);
        self.update_facts(address, |facts| facts.tag_pages_above = pages_above);
        Ok(TagListing { tags, pages_above })
    }

    /// The tags of an image's repository, if this run has listed them.
    pub(super) fn listed_tags(&self, name: &ImageRef) -> RepositoryTags {
        self.listings.get(&key_of(name))?.tags
    }

    /// The manifests that refer to `subject` according to the referrers API, or `None` if the
    /// registry does not have it.
    ///
    /// A registry without the referrers API answers 404 for every subject. Querying each repository
    /// in each run would double the requests for an image whose tag did not move. So one repository
    /// of a namespace answers for the others if
    ///
    /// - each of the others answered in an earlier run that there is no API,
    /// - no repository of the same host is known to have the API (otherwise the host consists of
    ///   several services, or its 404 means something else), and
    /// - the repository that is queried in this run again answers that there is no API. If its
    ///   answer is a list, the registry got the API meanwhile, and every repository is queried.
    ///
    /// Each run queries a different repository, in case only some repositories of a namespace get
    /// the API.
    pub(super) async fn referrers(
        &self,
        session: &RegistrySession,
        repository: &str,
        subject: &Digest,
    ) -> Result<Option<ListedReferrers>, HttpError> {
        let address = session.repository_address(repository);
        if self.may_have_api(&address) {
            debug!(repository = %address, %subject, "asking the referrers API");
        } else if self.still_lacks_api(session, repository, subject).await? {
            debug!(repository = %address, %subject, "no referrers API, as an earlier run found");
            return Ok(None);
        }
        let response = self.request_referrers(session, repository, subject).await?;
        Ok(response.listed())
    }

    /// Whether the namespace of `repository`, which had no referrers API in an earlier run, still
    /// has none. One request in each run answers this for all its repositories.
    async fn still_lacks_api(
        &self,
        session: &RegistrySession,
        repository: &str,
        subject: &Digest,
    ) -> Result<bool, HttpError> {
        let address = session.repository_address(repository);
        let namespace = namespace_of(&address);
        let probe = async || {
            let probed = self.next_probe(session, namespace, repository);
            // A registry without the API answers 404 for every digest, so the subject need not be
            // in the repository that is queried.
            let response = self.request_referrers(session, &probed, subject).await;
            let probed = session.repository_address(&probed);
            if response.is_err() {
                // The error must not fail images of other repositories: those repositories are
                // queried themselves.
                self.update_facts(probed.clone(), |facts| facts.referrers_api = None);
            }
            self.state().probed.insert(namespace.to_owned(), probed);
            Ok::<_, HttpError>(matches!(response, Ok(ReferrersResponse::NoApi)))
        };
        let key = format!("{} {namespace}", session.repository_address(""));
        self.probes.get_or_try_init(key, probe).await
    }

    /// Requests the referrers of `subject`, and remembers whether the registry has the API.
    async fn request_referrers(
        &self,
        session: &RegistrySession,
        repository: &str,
        subject: &Digest,
    ) -> Result<ReferrersResponse, HttpError> {
        let response = session
            .referrers_response(repository, subject, false)
            .await?;
        let has_api = match &response {
            ReferrersResponse::Listed(_) => Some(true),
            ReferrersResponse::NoApi => Some(false),
            ReferrersResponse::NoList => None,
        };
        self.update_facts(session.repository_address(repository), |facts| {
            facts.referrers_api = has_api
        });
        Ok(response)
    }

    /// The repository that is queried on behalf of its namespace in this run: the next requested
    /// repository, in alphabetical order, after the repository of the last run. `own` if no
    /// requested repository qualifies.
    fn next_probe(&self, session: &RegistrySession, namespace: &str, own: &str) -> String {
        let state = self.state();
        let candidates: BTreeMap<String, &String> = state
            .requested_images
            .keys()
            .filter(|(host, _)| host == session.host())
            .map(|(_, name)| (session.repository_address(name), name))
            .filter(|(address, _)| {
                namespace_of(address) == namespace && state.is_without_api(address)
            })
            .collect();
        let last = state.probed.get(namespace);
        let next = candidates
            .iter()
            .find(|(address, _)| last.is_some_and(|last| last < *address));
        // after the last repository, start again with the first
        next.or(candidates.first_key_value())
            .map_or_else(|| own.to_owned(), |(_, name)| (*name).clone())
    }

    /// Whether a repository must be queried for referrers: no earlier response said that it lacks
    /// the API, or another repository of its host has the API.
    fn may_have_api(&self, address: &str) -> bool {
        let state = self.state();
        if !state.is_without_api(address) {
            return true;
        }
        let host = host_of(address);
        state
            .facts
            .range(host.to_owned()..)
            .take_while(|(other, _)| host_of(other) == host)
            .any(|(_, facts)| facts.referrers_api == Some(true))
    }

    /// Changes the facts about the repository at `address`.
    fn update_facts(&self, address: String, change: impl FnOnce(&mut RepositoryFacts)) {
        let mut state = self.state();
        change(state.facts.entry(address.clone()).or_default());
        state.changed.insert(address);
    }

    fn state(&self) -> MutexGuard<'_, KnownFacts> {
        locked(&self.state)
    }
}

/// The host and repository of an image.
fn key_of(name: &ImageRef) -> (String, String) {
    (name.registry.clone(), name.repository.clone())
}

/// Parses the file of facts; empty if it is damaged or of another version.
fn parse(bytes: &[u8]) -> StoredFacts {
    let written = serde_json::from_slice::<StoredFacts>(bytes).ok();
    written
        .filter(|written| written.version == 1)
        .unwrap_or_default()
}

/// `host:port/` of a repository's address.
fn host_of(address: &str) -> &str {
    address.split_inclusive('/').next().unwrap_or_default()
}

/// The host of a repository's address and, if the path has several components, the first of them:
/// an organization, a project, or another part by which a registry, a proxy cache or a load
/// balancer routes.
fn namespace_of(address: &str) -> &str {
    let host = host_of(address);
    match address[host.len()..].find('/') {
        Some(end) => &address[..=host.len() + end],
        None => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_the_first_part_of_a_path() {
        for (address, host, namespace) in [
            ("h:443/nginx", "h:443/", "h:443/"),
            ("h:443/library/nginx", "h:443/", "h:443/library/"),
            ("h:443/a/b/c", "h:443/", "h:443/a/"),
            ("[::1]:5000/a/b", "[::1]:5000/", "[::1]:5000/a/"),
        ] {
            assert_eq!((host_of(address), namespace_of(address)), (host, namespace));
        }
    }

    #[test]
    fn a_repository_lacks_the_api_if_it_said_so_and_no_other_of_its_host_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let disk = DiskStore::open(dir.path()).unwrap();
        let known = UpstreamRepositories::new(disk.clone());
        assert!(known.may_have_api("h:443/a/b"));
        known.update_facts("h:443/a/b".into(), |facts| {
            facts.referrers_api = Some(false)
        });
        known.update_facts("h:4430/a/b".into(), |facts| {
            facts.referrers_api = Some(true)
        });
        known.remember().unwrap();
        let known = UpstreamRepositories::new(disk.clone());
        assert!(!known.may_have_api("h:443/a/b") && known.may_have_api("h:443/a/c"));
        known.update_facts("h:443/z".into(), |facts| facts.referrers_api = Some(true));
        assert!(known.may_have_api("h:443/a/b"));
        // an inconclusive answer is not stored
        known.update_facts("h:443/z".into(), |facts| facts.referrers_api = None);
        known.remember().unwrap();
        let text = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
        assert!(
            text.contains("h:443/a/b") && !text.contains("h:443/z"),
            "{text}"
        );
    }
}
