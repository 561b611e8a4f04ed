//! How a request for an image is merged, resolved and updated.

use super::locked::LockedImage;
use super::request::{BundleImages, ImageRequest};
use super::{listed, referrers, resolve, signatures, verify};
use crate::text::{FieldConflict, merge_option};
use crate::{
    DependencyRequest, Exclusion, ItemRequest, PinPolicy, ResolveError, ResolveOutcome, Resolver,
};
use jiff::Timestamp;
use landfall_model::document::{SourceLocation, UpdateRule};
use landfall_model::report::EntryKind;
use landfall_model::{Digest, ImageRef, PlatformRequest};
use std::collections::BTreeSet;

impl ItemRequest for ImageRequest {
    type Name = ImageRef;
    type Item = LockedImage;
    // resolving an image requests its manifest, then its children, then its referrers
    const CONCURRENCY: usize = 2;

    fn name(&self) -> &ImageRef {
        &self.name
    }

    fn is_local(&self) -> bool {
        self.archive.is_some()
    }

    fn is_excluded_by(&self, exclusion: &Exclusion) -> bool {
        exclusion.matches(&self.name, self.pin.as_ref())
    }

    fn name_like(&self, exclusion: &Exclusion) -> Option<String> {
        exclusion.write_alike(&self.name)
    }

    fn may_find(&self, exclusion: &Exclusion) -> bool {
        self.listed != BundleImages::Omitted && matches!(exclusion, Exclusion::Reference(_))
    }

    fn merge(&mut self, other: &ImageRequest) -> Result<(), FieldConflict> {
        merge_option("archive", &mut self.archive, &other.archive)?;
        merge_option("digest", &mut self.pin, &other.pin)?;
        check_equal_platforms(&self.platforms, &other.platforms)?;
        check_equal_referrers(self.referrers, other.referrers)?;
        if self.listed == BundleImages::Omitted {
            self.listed = other.listed;
        }
        merge_option("update policy", &mut self.update, &other.update)
    }

    /// Lists contain neither platforms nor referrers: theirs are defaults of a manifest.
    fn merge_listed(&mut self, listed: &ImageRequest) -> Result<(), FieldConflict> {
        merge_option("digest", &mut self.pin, &listed.pin)
    }

    async fn resolve(
        &self,
        resolver: &Resolver,
        old: Option<&LockedImage>,
        pins: PinPolicy,
    ) -> ResolveOutcome<LockedImage> {
        if let Some(place) = &self.archive {
            let found = resolve::resolve_archived(resolver, self, place).await;
            let outcome = ResolveOutcome::of(found, old);
            return listed::complete(resolver, self, outcome).await;
        }
        // an image that came from an archive before is another one now
        let old = old.filter(|old| old.archive.is_none());
        let policy = &resolver.signatures;
        // if the lock records no accepted signature, the image may have been signed since then
        let is_unverified = old.is_some_and(|old| !policy.accepts(&self.name, &old.verified));
        let search = if is_unverified && pins == PinPolicy::Keep {
            PinPolicy::Referrers
        } else {
            pins
        };
        let outcome = self.resolve_content(resolver, old, search).await;
        let outcome = listed::complete(resolver, self, outcome).await;
        signatures::verify_outcome(resolver, outcome, old, search).await
    }

    fn dependencies(&self, image: &LockedImage) -> Vec<DependencyRequest> {
        let Some(listed) = self.listed.of_members() else {
            return Vec::new();
        };
        let members = image.lists.iter().map(|name| ImageRequest {
            name: name.clone(),
            archive: None,
            pin: None,
            update: None,
            listed,
            ..self.clone()
        });
        members.map(DependencyRequest::Image).collect()
    }

    async fn check_upstream(resolver: &Resolver, old: &LockedImage) -> Result<(), ResolveError> {
        let digest = old.digest.to_string();
        resolver.head_manifest(&old.name, &digest).await.map(drop)
    }

    fn update_rule(&self) -> Option<&UpdateRule> {
        self.update.as_ref()
    }

    fn tagged_reference(&self) -> Option<&ImageRef> {
        Some(&self.name).filter(|name| name.tag.is_some() && self.archive.is_none())
    }

    fn demanded_digest(&self) -> Option<(&Digest, &SourceLocation)> {
        Some((self.pin.as_ref()?, &self.at))
    }

    async fn look_up(
        &self,
        resolver: &Resolver,
    ) -> Result<(Option<Digest>, Option<u64>), ResolveError> {
        let digest = self.name.digest.as_ref().map(Digest::to_string);
        let reference = self.name.tag.clone().or(digest).unwrap_or_default();
        let digest = resolver.head_manifest(&self.name, &reference).await?;
        Ok((Some(digest), None))
    }

    async fn check_content(
        &self,
        resolver: &Resolver,
        digest: Option<&Digest>,
    ) -> Result<(), ResolveError> {
        let Some(digest) = digest else {
            return Ok(());
        };
        resolve::check_content(resolver, self, digest).await?;
        // fails if the image does not meet a rule for signatures
        self.logged_since(resolver, digest).await.map(drop)
    }

    async fn logged_since(
        &self,
        resolver: &Resolver,
        digest: &Digest,
    ) -> Result<Option<Timestamp>, ResolveError> {
        signatures::logged_since(resolver, &self.name, digest).await
    }
}

/// Rejects two requests with different platforms.
pub(crate) fn check_equal_platforms(
    first: &[PlatformRequest],
    second: &[PlatformRequest],
) -> Result<(), FieldConflict> {
    FieldConflict::check_equal("list of platforms", &first, &second, |platforms| {
        describe_platforms(platforms)
    })
}

/// Rejects two requests of which only one carries referrers.
pub(crate) fn check_equal_referrers(first: bool, second: bool) -> Result<(), FieldConflict> {
    FieldConflict::check_equal("`referrers`", &first, &second, bool::to_string)
}

fn describe_platforms(platforms: &[PlatformRequest]) -> String {
    if platforms.is_empty() {
        return "all".into();
    }
    let texts: Vec<String> = platforms.iter().map(PlatformRequest::to_string).collect();
    texts.join(", ")
}

impl ImageRequest {
    /// Whether the platforms of `old` are the result of this request.
    fn has_platforms_of(&self, old: &LockedImage) -> bool {
        let requested: BTreeSet<_> = self.platforms.iter().map(|one| &one.platform).collect();
        let locked: BTreeSet<_> = old.platforms.iter().chain(&old.lacks).collect();
        let required = self.platforms.iter().filter(|one| !one.optional);
        requested == locked
            && required
                .map(|one| &one.platform)
                .all(|one| !old.lacks.contains(one))
    }

    /// Resolves the image and its referrers without verifying signatures.
    async fn resolve_content(
        &self,
        resolver: &Resolver,
        old: Option<&LockedImage>,
        pins: PinPolicy,
    ) -> ResolveOutcome<LockedImage> {
        let archived = resolver.archives.has(&self.name);
        // An archive does not contain the referrers of its images. A later run without the archive
        // looks them up.
        let without_referrers = ImageRequest {
            referrers: false,
            ..self.clone()
        };
        let request = if archived { &without_referrers } else { self };
        let matching = old.filter(|old| request.has_platforms_of(old) && old.pin == request.pin);
        // the index may have an attestation now that it lacked: its children are fetched again
        let lacks_attestation = resolver
            .lost_referrers
            .lacks_attestation(&self.name.to_string());
        if let Some(old) = matching.filter(|_| !lacks_attestation) {
            match pins {
                PinPolicy::Keep
                    if archived
                        || (old.referrers.is_some() == request.referrers
                            && !resolver.lost_referrers.must_retry(&self.name.to_string())) =>
                {
                    return ResolveOutcome::Kept(old.clone());
                }
                PinPolicy::Keep | PinPolicy::Referrers => {
                    return find_referrers(resolver, request, old).await;
                }
                // The lock in a store was not reviewed by anyone, so it counts only if the stored
                // manifests agree with it.
                PinPolicy::Recall if !verify::contradictions(old, &resolver.disk).is_empty() => {}
                PinPolicy::Refresh | PinPolicy::Recall => {
                    match resolve::upstream_digest(resolver, &request.name).await {
                        Ok(Some(digest)) if digest == old.digest => {
                            let found = find_referrers(resolver, request, old).await;
                            match found {
                                // without a lock of the user, there is no old pin to keep
                                ResolveOutcome::Failed(..) if pins == PinPolicy::Recall => {}
                                found => return found,
                            }
                        }
                        Ok(Some(_)) => {}
                        _ if pins == PinPolicy::Recall => {}
                        Ok(None) => return ResolveOutcome::Gone(old.clone()),
                        Err(cause) => return ResolveOutcome::Failed(Some(old.clone()), cause),
                    }
                }
            }
        }
        // If only the platforms changed, the digest stays the same: a moved tag is not accepted
        // silently.
        let locked = old
            .filter(|_| pins.keeps() && request.pin.is_none())
            .map(|old| old.digest.to_string());
        // A tag that moved after the update looked it up has another digest, which was not checked.
        let looked_up = || {
            let name = request.name.to_string();
            resolver
                .looked_up(EntryKind::Image, &name)
                .map(Digest::to_string)
        };
        // The tag is requested even if the manifest requires a digest: upstream must answer with
        // that digest.
        let reference = locked
            .or_else(looked_up)
            .or_else(|| request.name.tag.clone())
            .or_else(|| request.name.digest.as_ref().map(Digest::to_string))
            .unwrap_or_else(|| "latest".into());
        match resolve::resolve(resolver, request, &reference).await {
            Ok(image) => ResolveOutcome::New(image),
            Err(cause) => ResolveOutcome::Failed(matching.cloned(), cause),
        }
    }
}

/// Looks up the referrers of an image again, and nothing else.
async fn find_referrers(
    resolver: &Resolver,
    request: &ImageRequest,
    old: &LockedImage,
) -> ResolveOutcome<LockedImage> {
    let item = old.name.to_string();
    let found = referrers::look_up(resolver, &item, old, request.referrers).await;
    ResolveOutcome::of(found, Some(old))
}
