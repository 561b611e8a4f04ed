//! Looks up the referrers of an image, level by level: those of the index, of each locked manifest,
//! and of each referrer.

use super::locked::{LockedImage, LockedReferrer};
use super::manifests::{ImageManifest, blobs_of, fetch_below, is_manifest};
use super::referrer_search::{
    FoundReferrer, PreviousReferrers, ReferrerSearch, too_many_referrers,
};
use crate::resolver::{ResolveError, Resolver};
use landfall_model::{ChildManifest, Descriptor, Digest, Manifest};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the image with its referrers looked up again, or without any if `is_requested` is false.
///
/// If `image` has its referrers from an earlier look-up, the registry is not queried again for the
/// referrers of a child or referrer that had none. Otherwise a nightly run would send a request for
/// each child of each image. Tags that a repository lists are always searched.
pub(super) async fn look_up(
    resolver: &Resolver,
    image: &LockedImage,
    is_requested: bool,
) -> Result<LockedImage, ResolveError> {
    let bare = LockedImage {
        referrers: None,
        referrer_blobs: Vec::new(),
        ..image.clone()
    };
    if !is_requested {
        return Ok(bare);
    }
    let known = PreviousReferrers::new(image);
    search(resolver, bare, &known).await.map_err(|cause| {
        let ResolveError {
            recorded,
            message,
            is_temporary,
            ..
        } = cause.about("its signatures and other referrers");
        let message = format!("{message}; `referrers: false` in the manifest omits them");
        // the image itself was found, so it must not be treated as deleted upstream
        ResolveError {
            recorded,
            message,
            is_gone: false,
            is_temporary,
        }
    })
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
) -> Result<LockedImage, ResolveError> {
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
            let children: Vec<&ChildManifest> =
                children.iter().filter(|child| is_manifest(child)).collect();
            let below =
                fetch_below(resolver, &image.name, &children, &seen, &repository.budget).await?;
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
    Ok(attach(image, &nodes))
}

/// Adds the referrers to the image: children before parents, otherwise by digest and tag.
fn attach(image: LockedImage, nodes: &BTreeMap<Digest, ReferrerNode>) -> LockedImage {
    fn visit(
        digest: &Digest,
        nodes: &BTreeMap<Digest, ReferrerNode>,
        seen: &mut BTreeSet<Digest>,
        out: &mut Vec<LockedReferrer>,
    ) {
        let Some(node) = nodes.get(digest).filter(|_| seen.insert(digest.clone())) else {
            return;
        };
        if let Manifest::Index(children) = &node.fetched.manifest {
            for child in children {
                visit(&child.descriptor.digest, nodes, seen, out);
            }
        }
        let Descriptor {
            digest,
            size,
            media_type,
        } = node.fetched.descriptor.clone();
        let subject = node.fetched.subject.clone();
        let bare = LockedReferrer {
            digest,
            size,
            media_type,
            tag: None,
            subject,
        };
        // the lock has one record for each tag, or one without a tag
        if node.tags.is_empty() {
            out.push(bare.clone());
        }
        out.extend(node.tags.iter().map(|tag| LockedReferrer {
            tag: Some(tag.clone()),
            ..bare.clone()
        }));
    }
    let mut seen = BTreeSet::from([image.digest.clone()]);
    let mut referrers = Vec::new();
    for digest in nodes.keys() {
        visit(digest, nodes, &mut seen, &mut referrers);
    }
    let mut blobs = blobs_of(nodes.values().map(|node| &node.fetched.manifest), &[]);
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
