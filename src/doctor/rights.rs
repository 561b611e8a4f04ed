//! Checks the rights of the account at the private registry: starts and cancels an upload, uploads
//! and deletes an index with missing children, and sends a small and a large body to uploads that
//! are cancelled.

use super::CheckStatus;
use super::steps::DiagnosisSteps;
use landfall_content::registry::{RegistrySession, SparseIndexSupport};
use landfall_http::{ErrorKind, HttpError};
use landfall_item::lockfile::Lock;
use landfall_model::{DestinationMap, Digest};
use serde_json::json;
use std::collections::BTreeMap;

/// The private registry, and the items of a lock that are delivered there.
#[derive(Debug)]
pub(super) struct PrivateRegistry {
    host: String,
    /// One item for each first component of the repositories: registries grant rights by component.
    places: Vec<ItemDestination>,
    is_read_only: bool,
}

/// The destination of one item.
#[derive(Debug)]
struct ItemDestination {
    repository: String,
    tag: String,
    digest: Digest,
}

impl PrivateRegistry {
    pub(super) fn new(
        lock: Option<&Lock>,
        mapping: &DestinationMap,
        is_read_only: bool,
    ) -> PrivateRegistry {
        let mut places: BTreeMap<String, ItemDestination> = BTreeMap::new();
        for item in lock.iter().flat_map(|lock| lock.items()) {
            for destination in item.destinations(mapping) {
                let repository = destination.repository;
                let project = repository.split('/').next().unwrap_or_default().to_owned();
                places.entry(project).or_insert_with(|| ItemDestination {
                    repository,
                    tag: item.tag(),
                    digest: item.digest().clone(),
                });
            }
        }
        let host = mapping.target().registry.clone();
        PrivateRegistry {
            host,
            places: places.into_values().collect(),
            is_read_only,
        }
    }

    pub(super) fn is_at(&self, host: &str) -> bool {
        self.host == host
    }
}

/// Adds the steps about the rights at the private registry.
pub(super) async fn check_rights(
    session: &RegistrySession,
    private: &PrivateRegistry,
    steps: &mut DiagnosisSteps,
) {
    let Some(first) = private.places.first() else {
        let says = "not tried: it needs a locked item, and no lock with items is named";
        steps.note("push", says);
        return steps.fix("name a lock with --lock FILE");
    };
    check_item(session, first, steps).await;
    check_referrers(session, first, steps).await;
    if private.is_read_only {
        let says = "the right to push, indexes with missing children and body sizes were not tried \
                    (--read-only)";
        return steps.note("push", says);
    }
    let before = steps.0.len();
    for place in &private.places {
        check_push(session, place, steps).await;
        // A registry that requires no sign-in treats all repositories alike.
        if session.is_anonymous() {
            break;
        }
    }
    // The next checks upload too: without the right to push they would fail for that reason.
    if steps.0[before..]
        .iter()
        .all(|step| step.verdict == CheckStatus::Ok)
    {
        check_sparse_index(session, first, steps).await;
        check_body_sizes(session, first, steps).await;
    }
}

async fn check_item(
    session: &RegistrySession,
    place: &ItemDestination,
    steps: &mut DiagnosisSteps,
) {
    let name = format!("{}/{}:{}", session.host(), place.repository, place.tag);
    match session
        .head_manifest(&place.repository, &place.tag, false)
        .await
    {
        Ok(Some(digest)) if digest == place.digest => {
            steps.ok("item", format!("{name} has the locked digest"));
        }
        Ok(Some(digest)) => {
            let says = format!(
                "{name} has the digest {digest}, not the locked {}",
                place.digest
            );
            steps.note("item", says);
            steps.fix("push the bundle, unless a trimmed index or a newer lock is intended");
        }
        Ok(None) => {
            steps.note("item", format!("{name} does not exist"));
            steps.fix("push the bundle");
        }
        Err(error) => {
            steps.no("item", format!("cannot look up {name}: {error}"));
            steps.fix("use an account that may read there");
        }
    }
}

async fn check_referrers(
    session: &RegistrySession,
    place: &ItemDestination,
    steps: &mut DiagnosisSteps,
) {
    let repository = &place.repository;
    match session.referrers(repository, &place.digest, false).await {
        Ok(Some(_)) => steps.ok("referrers", "the registry has the referrers API"),
        Ok(None) => {
            let says = "the registry has no referrers API (push then keeps the list under a tag), \
                        or the repository does not exist yet";
            steps.note("referrers", says);
        }
        Err(error) => steps.note("referrers", format!("cannot list referrers: {error}")),
    }
}

async fn check_push(
    session: &RegistrySession,
    place: &ItemDestination,
    steps: &mut DiagnosisSteps,
) {
    let repository = format!("{}/{}", session.host(), place.repository);
    let (verdict, says) = match session.check_push(&place.repository).await {
        Ok(()) => (
            CheckStatus::Ok,
            format!("an upload to {repository} was started and cancelled"),
        ),
        Err(error) => (
            CheckStatus::No,
            format!("cannot start an upload to {repository}: {error}"),
        ),
    };
    let facts = json!({"repository": place.repository});
    steps.add("push", verdict, says, facts);
}

async fn check_sparse_index(
    session: &RegistrySession,
    place: &ItemDestination,
    steps: &mut DiagnosisSteps,
) {
    match session.accepts_sparse_index(&place.repository).await {
        Ok(SparseIndexSupport::Accepted) => {
            steps.ok(
                "index",
                "accepts an index with missing children; the test index was deleted",
            );
        }
        Ok(SparseIndexSupport::AcceptedAndKept(bytes)) => {
            let says = format!(
                "accepts an index with missing children; the test index cannot be deleted, and \
                 stays in {} without a tag ({bytes} bytes)",
                place.repository
            );
            steps.note("index", says);
        }
        Ok(SparseIndexSupport::Refused) => {
            let says = "refuses an index with missing children: push uploads the trimmed index, or \
                        fails with `index: exact`";
            steps.note("index", says);
            steps.fix("lock all platforms if the digest of the index must not change");
        }
        Err(error) => steps.note(
            "index",
            format!("cannot test an index with missing children: {error}"),
        ),
    }
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

const RAISE_LIMIT: &str = "raise the limit of the proxy in front of the registry, such as \
                           client_max_body_size of nginx (0: no limit)";

/// Whether the size of a body may have caused `error`, which is not status 413: some proxies close
/// the connection instead of sending 413.
fn may_be_too_large(error: &HttpError) -> bool {
    error.kind == ErrorKind::Network
}

/// Sends bodies of the chunk sizes that a push uses after a host refused a layer.
async fn check_body_sizes(
    session: &RegistrySession,
    place: &ItemDestination,
    steps: &mut DiagnosisSteps,
) {
    let [large, small] = session.chunk_sizes();
    let mut passed = None;
    // The small size first, since a host that refuses it refuses the large one too.
    for size in [small, large] {
        let Ok(bytes) = usize::try_from(size) else {
            return;
        };
        match session.accepts_body(&place.repository, bytes).await {
            Ok(true) => passed = Some(size),
            Ok(false) => {
                let (verdict, then) = match passed {
                    Some(passed) => (
                        CheckStatus::Note,
                        format!("push uploads larger blobs in chunks of {}", mib(passed)),
                    ),
                    None => (CheckStatus::No, "push uploads no smaller chunks".to_owned()),
                };
                steps.say(
                    "body",
                    verdict,
                    format!("a body of {} is refused (413): {then}", mib(size)),
                );
                return steps.fix(RAISE_LIMIT);
            }
            Err(error) => {
                let says = format!("cannot test a body of {}: {error}", mib(size));
                steps.note("body", says);
                if may_be_too_large(&error) {
                    steps.fix(RAISE_LIMIT);
                }
                return;
            }
        }
    }
    let says = format!(
        "a body of {} passes; larger ones were not tried",
        mib(large)
    );
    steps.ok("body", says);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_network_error_may_mean_that_a_body_is_too_large() {
        for (kind, expected) in [
            (ErrorKind::Network, true),
            (ErrorKind::Denied, false),
            (ErrorKind::Status(500), false),
            (ErrorKind::Proxy(407), false),
            (ErrorKind::Invalid, false),
        ] {
            let error = HttpError::new(kind, "failed");
            assert_eq!(may_be_too_large(&error), expected, "{error:?}");
        }
    }
}
