//! Looks up the referrers of an image, level by level: those of the index, of each locked manifest,
//! and of each referrer.

use super::locked::{LockedImage, LockedReferrer};
use super::manifests::{ImageManifest, add_children_first, blobs_of, fetch_below, is_manifest};
use super::referrer_search::{
    FoundReferrer, PreviousReferrers, ReferrerSearch, too_many_referrers,
};
use crate::resolver::{LostReferrer, ResolveError, Resolver};
use landfall_model::{ChildManifest, Digest, Manifest};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the image with its referrers looked up again, or without any if `is_requested` is false.
/// A referrer that exists and cannot be read is left out; it is recorded as a loss of `item`, the
/// name of the image or chart in the lock.
///
/// If `image` has its referrers from an earlier look-up, the registry is not queried again for the
/// referrers of a child or referrer that had none. Otherwise a nightly run would send a request for
/// each child of each image. Tags that a repository lists are always searched. If an earlier run
/// lost referrers of `item`, the registry is queried for all of them.
///
/// Fails if the look-up itself fails, so that it is not known which referrers there are.
pub(super) async fn look_up(
    resolver: &Resolver,
    item: &str,
    image: &LockedImage,
    is_requested: bool,
) -> Result<LockedImage, ResolveError> {
    let found = try_look_up(resolver, item, image, is_requested).await;
    found.map_err(failed_look_up)
}

/// Like [`look_up`] for an image that was just resolved. If the registry does not answer the
/// look-up, the image is returned without referrers, and the failure is recorded as a loss: it does
/// not affect the image, unless a rule requires a signature.
pub(super) async fn look_up_new(
    resolver: &Resolver,
    image: &LockedImage,
    is_requested: bool,
) -> Result<LockedImage, ResolveError> {
    let item = image.name.to_string();
    let cause = match try_look_up(resolver, &item, image, is_requested).await {
        Ok(found) => return Ok(found),
        Err(cause) => cause,
    };
    let is_refused = cause.is_gone || cause.is_temporary;
    let cause = failed_look_up(cause);
    // the limits of landfall are not the registry's failure
    if !is_refused || resolver.signatures.applies_to(&image.name) {
        return Err(cause);
    }
    resolver.note_once(&format!("{item}: {cause}"));
    let lost = LostReferrer {
        reference: format!("referrers of {}", image.digest),
        cause,
    };
    resolver.lost_referrers.record(&item, vec![lost]);
    Ok(LockedImage {
        referrers: Some(Vec::new()),
        referrer_blobs: Vec::new(),
        ..image.clone()
    })
}

/// The error of a look-up. The image itself was found, so it must not be treated as deleted
/// upstream.
fn failed_look_up(cause: ResolveError) -> ResolveError {
    let cause = cause.about("its signatures and other referrers");
    ResolveError {
        message: cause.message + "; `referrers: false` in the manifest omits them",
        is_gone: false,
        is_for_other_platforms: false,
        ..cause
    }
}

async fn try_look_up(
    resolver: &Resolver,
    item: &str,
    image: &LockedImage,
    is_requested: bool,
) -> Result<LockedImage, ResolveError> {
    let bare = LockedImage {
        referrers: None,
        referrer_blobs: Vec::new(),
        ..image.clone()
    };
    if !is_requested {
        resolver.lost_referrers.record(item, Vec::new());
        return Ok(bare);
    }
    let known = PreviousReferrers::new(image, resolver.lost_referrers.must_retry(item));
    let (found, lost) = search(resolver, bare, &known).await?;
    for LostReferrer { reference, cause } in &lost {
        resolver.note_once(&format!(
            "{item}: the referrer {reference} cannot be read and is left out: {cause}"
        ));
    }
    resolver.lost_referrers.record(item, lost);
    Ok(found)
}

/// A referrer with all its tags. If a referrer is an index, each manifest below it is also a node,
/// without tags.
struct ReferrerNode {
    fetched: ImageManifest,
    tags: BTreeSet<String>,
}

impl ReferrerNode {
    fn new(fetched: ImageManifest) -> ReferrerNode {
        ReferrerNode {
            fetched,
            tags: BTreeSet::new(),
        }
    }
}

/// Searches for referrers level by level. The first level consists of the manifests of `image`.
async fn search(
    resolver: &Resolver,
    image: LockedImage,
    known: &PreviousReferrers<'_>,
) -> Result<(LockedImage, Vec<LostReferrer>), ResolveError> {
    let own: Vec<Digest> = image
        .manifests_in_order()
        .map(|manifest| manifest.digest)
        .collect();
    let repository = ReferrerSearch::new(resolver, &image.name, known, own.len()).await?;
    let limits = resolver.limits();
    let mut seen: BTreeSet<Digest> = own.iter().cloned().collect();
    let mut nodes: BTreeMap<Digest, ReferrerNode> = BTreeMap::new();
    // The top is looked up before the others: its response shows whether the registry has the
    // referrers API, so that not every request has to find out.
    let mut level: Vec<Digest> = own.into_iter().rev().collect();
    // after the allowed levels, one more pass shows that nothing refers to the last level
    for _ in 0..=limits.index_depth {
        let Some((first, others)) = level.split_first() else {
            break;
        };
        let mut found_referrers = repository.find(first).await?;
        let others = others.iter().map(|subject| repository.find(subject));
        for found in futures_util::future::try_join_all(others).await? {
            found_referrers.extend(found);
        }
        // referrers may have referrers of their own, which are the next level
        level = Vec::new();
        for FoundReferrer { fetched, tag } in found_referrers {
            let digest = fetched.descriptor.digest.clone();
            // a referrer may be an index, such as one signature for each platform
            let children = match &fetched.manifest {
                Manifest::Index(children) if !seen.contains(&digest) => children.clone(),
                _ => Vec::new(),
            };
            let children: Vec<&ChildManifest> = children.iter().collect();
            let below =
                fetch_below(resolver, &image.name, &children, &seen, &repository.budget).await;
            let below = match below {
                Ok(below) => below,
                Err(cause) => {
                    repository.lose(tag.unwrap_or_else(|| digest.to_string()), cause)?;
                    continue;
                }
            };
            // one manifest may be found by several tags, and by the referrers API
            let node = nodes
                .entry(digest.clone())
                .or_insert_with(|| ReferrerNode::new(fetched));
            node.tags.extend(tag);
            if seen.insert(digest.clone()) {
                level.push(digest);
            }
            for (digest, fetched) in below {
                if seen.insert(digest.clone()) {
                    level.push(digest.clone());
                    nodes.insert(digest, ReferrerNode::new(fetched));
                }
            }
            if nodes.len() > limits.referrers {
                return Err(too_many_referrers(limits.referrers));
            }
        }
    }
    if !level.is_empty() {
        return Err(format!(
            "they refer to each other in a chain of more than {}",
            limits.index_depth
        )
        .into());
    }
    let lost = repository.into_lost();
    Ok((attach(image, &nodes), lost))
}

/// Adds the referrers to the image: children before parents, otherwise by digest and tag.
fn attach(image: LockedImage, nodes: &BTreeMap<Digest, ReferrerNode>) -> LockedImage {
    let mut seen = BTreeSet::from([image.digest.clone()]);
    let mut ordered = Vec::new();
    let find = |digest: &Digest| Some(&nodes.get(digest)?.fetched);
    for digest in nodes.keys() {
        add_children_first(digest, &find, &mut seen, &mut ordered);
    }
    let mut referrers = Vec::new();
    for fetched in ordered {
        let descriptor = fetched.descriptor.clone();
        let bare = LockedReferrer {
            digest: descriptor.digest,
            size: descriptor.size,
            media_type: descriptor.media_type,
            tag: None,
            subject: fetched.subject.clone(),
        };
        // the lock has one record for each tag, or one without a tag
        let before = referrers.len();
        let tags = nodes.get(&bare.digest).into_iter();
        referrers.extend(tags.flat_map(|node| &node.tags).map(|tag| LockedReferrer {
            tag: Some(tag.clone()),
            ..bare.clone()
        }));
        if referrers.len() == before {
            referrers.push(bare);
        }
    }
    let is_fetched =
        |child: &ChildManifest| is_manifest(child) || nodes.contains_key(&child.descriptor.digest);
    let manifests = nodes.values().map(|node| &node.fetched.manifest);
    let mut blobs = blobs_of(manifests, is_fetched, &[]);
    // not a binary search: a lock that was edited by hand may not be sorted
    let own: BTreeSet<&Digest> = image.blobs.iter().map(|blob| &blob.digest).collect();
    blobs.retain(|blob| !own.contains(&blob.digest));
    LockedImage {
        referrers: Some(referrers),
        referrer_blobs: blobs,
        ..image
    }
}

#[cfg(test)]
mod tests {
    use super::super::referrer_search::parse;
    use super::super::testing::Memory;
    use super::*;
    use landfall_content::BlobRead;
    use landfall_content::registry::FetchedManifest;
    use serde_json::json;

    #[test]
    fn blobs_of_the_image_are_not_repeated_even_if_they_are_not_sorted() {
        let mut memory = Memory::default();
        let mut blobs = Vec::new();
        let mut nodes = BTreeMap::new();
        for name in ["a", "b", "c", "d"] {
            let (top, own) = memory.manifest(name, &json!({}));
            blobs.extend(own);
            let bytes = memory.read(&top).unwrap();
            let raw = FetchedManifest {
                bytes: bytes.into(),
                content_type: Some(top.media_type.to_string()),
                digest: top.digest.clone(),
            };
            nodes.insert(top.digest, ReferrerNode::new(parse(raw).unwrap()));
        }
        blobs.sort_by(|a, b| b.digest.cmp(&a.digest));
        let image = LockedImage {
            blobs,
            ..LockedImage::new("h.test/app:v1".parse().unwrap(), memory.put(b"top", "x/y"))
        };
        let attached = attach(image, &nodes);
        assert_eq!(attached.referrers.map(|found| found.len()), Some(4));
        assert_eq!(attached.referrer_blobs, []);
    }
}
