//! The deliveries of a push, and the look-up of their tags: one HEAD for each destination tag. If
//! the tag is right, the image's referrers and the attestations in its index are looked up, too.

use super::preflight::Presence;
use super::referrers::has_all_referrers;
use super::state::PushOptions;
use landfall_content::registry::RegistrySession;
use landfall_content::{LockEntry, run_concurrently};
use landfall_http::{ErrorKind, HttpError};
use landfall_item::lockfile::{Lock, referrer_item};
use landfall_model::config::ReferrerPolicy;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_model::{
    Destination, DestinationMap, Digest, Shard, canonical_host, is_repository_component, sum_sizes,
    transfer_cost,
};
use landfall_signature::SignaturePolicy;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The delivery of one entry to one destination tag.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    /// The position of the entry in [`Lock::items`].
    pub entry: usize,
    pub destination: Destination,
    pub tag: String,
}

/// The state of a destination tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TagState {
    /// The tag does not exist.
    Nothing,
    /// The tag points to the digest in the lock.
    Whole,
    /// The tag points to the trimmed index in the lock.
    Trimmed,
    /// The tag points to this digest, that of the lock or of the trimmed index, and only referrers
    /// are missing.
    Unattached(Digest),
    /// The tag points to the digest or the trimmed index in the lock, but a manifest or blob of it
    /// that was looked up is missing.
    Bare,
    /// The tag points to another digest.
    Other(Digest),
}

/// The deliveries of `lock` without items of the kinds in `skipped`, in the lock's order.
pub(super) fn deliveries(
    lock: &Lock,
    mapping: &DestinationMap,
    skipped: &BTreeSet<EntryKind>,
) -> Vec<Delivery> {
    let items = lock.items().enumerate();
    let items = items.filter(|(_, item)| !skipped.contains(&item.kind()));
    let deliveries = items.flat_map(|(entry, item)| {
        let tag = item.tag();
        item.destinations(mapping)
            .into_iter()
            .map(move |destination| Delivery {
                entry,
                destination,
                tag: tag.clone(),
            })
    });
    deliveries.collect()
}

/// The deliveries that belong to this shard. All deliveries to a repository belong to one shard, so
/// that blobs that several of them contain are uploaded once.
pub(super) fn own_deliveries(all: Vec<Delivery>, lock: &Lock, shard: Shard) -> Vec<Delivery> {
    if shard.is_only() {
        return all;
    }
    let mut blobs: BTreeMap<&str, BTreeMap<Digest, u64>> = BTreeMap::new();
    for delivery in &all {
        let parts = lock
            .entry(delivery.entry)
            .parts
            .into_iter()
            .map(|part| part.descriptor);
        let costs = blobs.entry(&delivery.destination.repository).or_default();
        costs.extend(parts.map(|blob| (blob.digest, transfer_cost(blob.size))));
    }
    let costs = blobs
        .into_iter()
        .map(|(repository, blobs)| (repository.to_owned(), sum_sizes(blobs.into_values())));
    let own = shard.own(costs.collect::<Vec<_>>());
    all.into_iter()
        .filter(|delivery| own.contains(&delivery.destination.repository))
        .collect()
}

/// Sorts the deliveries of `todo` by the largest blob that no earlier delivery uploads, so that a
/// run does not wait at its end for a large upload that began late.
pub(super) fn biggest_first(lock: &Lock, deliveries: &[Delivery], todo: Vec<usize>) -> Vec<usize> {
    let mut seen = HashSet::new();
    let mut biggest_new = |at: usize| {
        let parts = lock.entry(deliveries[at].entry).parts.into_iter();
        let new = parts
            .map(|part| part.descriptor)
            .filter(|blob| seen.insert(blob.digest.clone()));
        new.map(|blob| blob.size).max()
    };
    let mut sized: Vec<_> = todo.into_iter().map(|at| (biggest_new(at), at)).collect();
    sized.sort_by_key(|(size, _)| Reverse(*size));
    sized.into_iter().map(|(_, at)| at).collect()
}

/// The content that is looked up at the registry.
#[derive(Debug, Clone, Copy)]
pub(super) struct LookupScope {
    /// Whether every manifest and blob of an item with the right tag is looked up.
    pub(super) parts: bool,
    /// Whether the account writes to the registry later in the run. Then a tag for which the
    /// registry answers 403 counts as absent.
    pub(super) writes: bool,
}

/// Looks up the state of each destination tag.
pub(super) async fn look_up_tags(
    session: &RegistrySession,
    lock: &Lock,
    deliveries: &[Delivery],
    jobs: usize,
    scope: LookupScope,
) -> Vec<Result<TagState, HttpError>> {
    let presence = Presence::new(session, true);
    let attestations = listed_attestations(lock);
    let look_up = async |at: usize| {
        let delivery = &deliveries[at];
        let entry = &lock.entry(delivery.entry);
        let repository = &delivery.destination.repository;
        // a registry has nothing under an invalid name; the preflight reports the name
        if fault(&delivery.destination).is_some() {
            return Ok(TagState::Nothing);
        }
        let found = session
            .head_manifest(repository, &delivery.tag, scope.writes)
            .await?;
        let Some(digest) = found else {
            return Ok(TagState::Nothing);
        };
        let is_trimmed = entry
            .trimmed()
            .is_some_and(|part| part.descriptor.digest == digest);
        let tag_state = if digest == entry.top.digest {
            TagState::Whole
        } else if is_trimmed {
            TagState::Trimmed
        } else {
            return Ok(TagState::Other(digest));
        };
        // referrers are not part of the image, so its digest says nothing about them
        let mut has_referrers = has_all_referrers(session, entry, repository, scope.writes).await?;
        // a registry that accepts missing children may have the index without an attestation
        if !scope.parts
            && let Some(listed) = attestations.get(&entry.top.digest)
            && presence.lacks_any(entry, repository, listed).await?
        {
            return Ok(TagState::Bare);
        }
        if scope.parts {
            match missing_parts(&presence, entry, delivery).await? {
                Some(missing) if missing.iter().all(|part| entry.is_of_referrers(part)) => {
                    has_referrers &= missing.is_empty();
                }
                _ => return Ok(TagState::Bare),
            }
        }
        if !has_referrers {
            return Ok(TagState::Unattached(digest));
        }
        Ok(tag_state)
    };
    let mut states = run_concurrently(deliveries.len(), jobs, &look_up).await;
    if session.has_false_404s() {
        let is_absent = |state: &Result<TagState, HttpError>| {
            matches!(state, Ok(TagState::Nothing | TagState::Unattached(_)))
        };
        let absent: Vec<usize> = (0..states.len())
            .filter(|at| is_absent(&states[*at]))
            .collect();
        let again = run_concurrently(absent.len(), jobs, |at| look_up(absent[at])).await;
        for (at, state) in absent.into_iter().zip(again) {
            states[at] = state;
        }
    }
    states
}

/// The attestations that the indexes of images list, by the digest of the index. Their platform is
/// unknown.
fn listed_attestations(lock: &Lock) -> HashMap<&Digest, Vec<&Digest>> {
    let mut attestations: HashMap<&Digest, Vec<&Digest>> = HashMap::new();
    for image in &lock.images {
        let is_unknown = |platform: &String| platform.split('/').any(|part| part == "unknown");
        let children = image.manifests.iter();
        let children = children.filter(|child| child.platform.as_ref().is_some_and(is_unknown));
        for child in children {
            let listed = attestations.entry(&image.digest).or_default();
            listed.push(&child.digest);
        }
    }
    attestations
}

/// The manifests and blobs of the entry that the repository lacks. If the registry answers a
/// look-up with a 4xx status that has no [`ErrorKind`] of its own, such as 405, returns `None`, and
/// the entry is delivered again.
async fn missing_parts<'e>(
    presence: &Presence<'_>,
    entry: &'e LockEntry,
    delivery: &Delivery,
) -> Result<Option<Vec<&'e Digest>>, HttpError> {
    match presence
        .missing(entry, &delivery.destination.repository)
        .await
    {
        Err(error) if matches!(error.kind, ErrorKind::Status(400..500)) => Ok(None),
        missing => missing.map(Some),
    }
}

/// The reason of referrers that are left out.
const NO_REFERRERS: &str = "referrers are skipped";
/// The reason of items whose kind is left out.
pub(super) const NOT_THIS_KIND: &str = "this kind is skipped";

/// Whether an item was left out on request.
pub(crate) fn is_left_out(item: &ReportItem) -> bool {
    let reason = item.reason.as_deref();
    item.status == ItemStatus::Skipped
        && reason.is_some_and(|reason| [NO_REFERRERS, NOT_THIS_KIND].contains(&reason))
}

/// The content that a push delivers, and the referrers that it leaves out.
pub(super) struct WantedContent<'a> {
    /// The lock without the referrers that are left out.
    pub(super) lock: Cow<'a, Lock>,
    /// Each referrer that is left out, as a skipped item.
    pub(super) skipped: Vec<ReportItem>,
}

/// Removes the referrers that the options leave out, except those that `demanded`, the rules of the
/// site, needs.
pub(super) fn wanted_content<'a>(
    lock: &'a Lock,
    options: &PushOptions,
    demanded: &SignaturePolicy,
) -> WantedContent<'a> {
    let mut skipped = Vec::new();
    if options.referrers != ReferrerPolicy::Skip {
        let lock = Cow::Borrowed(lock);
        return WantedContent { lock, skipped };
    }
    let mut kept = lock.clone();
    let images = kept.images.iter_mut().filter_map(|image| {
        let is_demanded = demanded.applies_to(&image.name);
        let name = image.name.to_string();
        (!is_demanded).then_some((name, &mut image.referrers, &mut image.referrer_blobs))
    });
    let charts = kept.charts.iter_mut().filter_map(|chart| {
        let is_demanded = demanded.applies_to(chart.rule_subject());
        let name = chart.name.to_string();
        (!is_demanded).then_some((name, &mut chart.referrers, &mut chart.referrer_blobs))
    });
    for (name, referrers, blobs) in images.chain(charts) {
        let is_own = |digest: &Digest| options.own_signatures.contains(digest);
        if let Some(referrers) = referrers {
            let removed = referrers.extract_if(.., |referrer| !is_own(&referrer.digest));
            skipped.extend(removed.map(|referrer| {
                let descriptor = referrer.descriptor();
                referrer_item(&name, &descriptor, ItemStatus::Skipped, NO_REFERRERS)
            }));
        }
        blobs.retain(|blob| is_own(&blob.digest));
    }
    WantedContent {
        lock: Cow::Owned(kept),
        skipped,
    }
}

// Rules of registries about the names of repositories.

/// The maximum length of `host/repository` in characters. Many clients refuse longer names
/// (distribution-spec, "Pulling manifests").
const MAX_NAME_CHARS: usize = 255;

/// Whether the host belongs to Amazon ECR, where a repository must be created before a push to it.
pub(super) fn is_ecr(registry: &str) -> bool {
    let host = registry.split(':').next().unwrap_or(registry);
    host.contains(".dkr.ecr")
        && (host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn"))
}

/// Whether the host is one of the names of Docker Hub.
pub(super) fn is_docker_hub(registry: &str) -> bool {
    canonical_host(registry) == "docker.io"
}

/// The first component of a repository: the project at Harbor, or the namespace at Docker Hub and
/// other registries.
pub(super) fn project(repository: &str) -> &str {
    repository.split('/').next().unwrap_or(repository)
}

/// The reason why this registry, or any registry, cannot have a repository of this name.
pub(super) fn fault(to: &Destination) -> Option<String> {
    let full = to.to_string();
    let length = full.chars().count();
    if length > MAX_NAME_CHARS {
        return Some(format!(
            "{full} has {length} characters, more than the maximum of {MAX_NAME_CHARS}; give it a \
             shorter path in the site, under registry.paths"
        ));
    }
    let bad = to
        .repository
        .split('/')
        .find(|component| !is_repository_component(component));
    if let Some(component) = bad {
        let why = match component {
            "" => "a component is empty".into(),
            _ if component.chars().any(char::is_uppercase) => {
                format!("'{component}' has upper case")
            }
            _ => {
                format!("'{component}' must be a-z and 0-9, separated by '.', '_', '__' or hyphens")
            }
        };
        return Some(format!(
            "{full} is not a valid repository name: {why}; give it another path in the site, under \
             registry.paths"
        ));
    }
    let components = to.repository.split('/').count();
    (is_docker_hub(&to.registry) && components != 2).then(|| {
        format!(
            "{full} has {components} components, and Docker Hub has only NAMESPACE/NAME: map it in \
             the site, under registry.paths"
        )
    })
}

/// The reason why Harbor cannot have a repository of this name.
pub(super) fn harbor_fault(to: &Destination) -> Option<String> {
    (!to.repository.contains('/')).then(|| {
        format!(
            "{to} has no project: Harbor requires PROJECT/NAME; put a project before all paths \
             with --to {}/PROJECT, or before this one in the site, under registry.paths",
            to.registry
        )
    })
}

/// The command that creates a repository at Amazon ECR.
pub(super) fn ecr_command(registry: &str, repository: &str) -> String {
    // ACCOUNT.dkr.ecr.REGION.amazonaws.com
    let region = registry.split('.').nth(3).unwrap_or("REGION");
    format!("aws ecr create-repository --region {region} --repository-name {repository}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_belongs_to_one_shard_and_each_delivery_is_made_once() {
        let image = |name: &str, tag: &str, size: u64| {
            let own = Digest::sha256(format!("{name}{tag}").as_bytes());
            let layer = Digest::sha256(name.as_bytes());
            format!(
                "- name: r.test/{name}:{tag}\n  digest: {own}\n  mediaType: m\n  size: 9\n  blobs:\n  - {layer} {size} l\n"
            )
        };
        let names = ["a", "b", "c", "d", "e"];
        let text: String = names
            .iter()
            .flat_map(|name| ["v1", "v2"].map(|tag| image(name, tag, 70_000_000)))
            .collect();
        let lock = Lock::parse("l", &format!("version: 1\nimages:\n{text}")).unwrap();
        let all = deliveries(
            &lock,
            &DestinationMap::to("far.test".parse().unwrap()),
            &BTreeSet::new(),
        );
        for count in [1, 2, 3, 7] {
            let mut delivered = Vec::new();
            let mut shards = BTreeMap::new();
            for number in 1..=count {
                let shard = Shard::new(number, count).unwrap();
                for delivery in own_deliveries(all.clone(), &lock, shard) {
                    let first = *shards
                        .entry(delivery.destination.repository)
                        .or_insert(number);
                    assert_eq!(first, number, "a repository belongs to one shard");
                    delivered.push(delivery.entry);
                }
            }
            delivered.sort_unstable();
            assert_eq!(delivered, (0..all.len()).collect::<Vec<_>>(), "{count}");
            assert_eq!(
                shards.values().collect::<HashSet<_>>().len(),
                count.min(names.len()),
                "no shard is empty, unless there are fewer repositories than shards"
            );
        }
    }

    #[test]
    fn the_delivery_that_uploads_the_largest_blob_begins_first() {
        let digest = |text: &str| Digest::sha256(text.as_bytes());
        // two images on each of two bases, and one without a base
        let images = [
            ("a", "base", 40),
            ("b", "base", 40),
            ("c", "other", 90),
            ("d", "other", 90),
            ("e", "own", 50),
        ];
        let image = |(name, layer, size): (&str, &str, u64)| {
            let own = digest(name);
            let layer = digest(layer);
            format!(
                "- name: r.test/{name}:v1\n  digest: {own}\n  mediaType: m\n  size: 9\n  blobs:\n  - {layer} {size} l\n"
            )
        };
        let text: String = images.into_iter().map(image).collect();
        let lock = Lock::parse("l", &format!("version: 1\nimages:\n{text}")).unwrap();
        let deliveries = deliveries(
            &lock,
            &DestinationMap::to("far.test".parse().unwrap()),
            &BTreeSet::new(),
        );
        let order = biggest_first(&lock, &deliveries, (0..images.len()).collect());
        let names: Vec<&str> = order.into_iter().map(|at| images[at].0).collect();
        assert_eq!(names, ["c", "e", "a", "b", "d"]);
    }

    fn place(registry: &str, repository: &str) -> Destination {
        Destination {
            registry: registry.into(),
            repository: repository.into(),
        }
    }

    #[test]
    fn names_that_no_registry_can_have() {
        for good in ["a", "a/b/c", "a-b/c__d/e.f", "a--b/0", "localhost_5001/a"] {
            assert_eq!(fault(&place("r:5000", good)), None, "{good}");
        }
        for (bad, why) in [
            ("A/b", "upper case"),
            ("a//b", "empty"),
            ("a/-b", "'-b'"),
            ("a_-b", "'a_-b'"),
            ("a..b", "'a..b'"),
            ("a___b", "'a___b'"),
            ("a/b.", "'b.'"),
            ("ä", "'ä'"),
        ] {
            let fault = fault(&place("r:5000", bad)).unwrap_or_default();
            assert!(fault.contains(why), "{bad}: {fault}");
        }
        assert_eq!(fault(&place("r:5000", &"a".repeat(248))), None);
        assert!(
            fault(&place("r:5000", &"a".repeat(249)))
                .is_some_and(|why| why.contains("256 characters"))
        );
    }

    #[test]
    fn names_that_some_registries_cannot_have() {
        assert!(
            fault(&place("docker.io", "a/b/c")).is_some_and(|why| why.contains("3 components"))
        );
        assert_eq!(fault(&place("docker.io", "a/b")), None);
        assert!(harbor_fault(&place("h", "pause")).is_some_and(|why| why.contains("PROJECT/NAME")));
        assert_eq!(harbor_fault(&place("h", "a/b")), None);
        let ecr = "123456789012.dkr.ecr.eu-central-1.amazonaws.com";
        assert!(
            is_ecr(ecr)
                && is_ecr("1.dkr.ecr.cn-north-1.amazonaws.com.cn")
                && !is_ecr("ecr.example.com")
        );
        assert_eq!(
            ecr_command(ecr, "a/b"),
            "aws ecr create-repository --region eu-central-1 --repository-name a/b"
        );
    }
}
