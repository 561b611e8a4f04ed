//! An image as an item: what everybody else asks of it, and how it is locked.

use super::locked::LockedImage;
use super::manifest_entry::{self, ImageEntry};
use super::request::ImageRequest;
use super::{parts, referrers, resolve, text, verify};
use crate::lockfile::Lock;
use crate::resolver::ResolveError;
use crate::text::oversize;
use crate::{
    AuditedItem, EntryPathStep, EntryReader, Exclusion, FieldConflict, ItemIdentity, ItemKind,
    ItemRequest, LockedItem, ManifestEntry, ManifestResult, MovableVersion, PinPolicy, PushedItem,
    ResolvableRequest, ResolveOutcome, Resolver, ServedItem, UpdatableEntry, UpdatableRequest,
    UpstreamStatus,
};
use landfall_content::{BlobRead, LockEntry};
use landfall_model::document::{SourceLocation, SourceSpan, YamlNode};
use landfall_model::report::EntryKind;
use landfall_model::sign::SignatureTime;
use landfall_model::{
    Destination, DestinationMap, Digest, ImageRef, Platform, ReferenceError, host_component,
};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

impl ItemIdentity for LockedImage {
    fn kind(&self) -> EntryKind {
        EntryKind::Image
    }

    fn name(&self) -> Cow<'_, str> {
        self.name.to_string().into()
    }

    fn digest(&self) -> &Digest {
        &self.digest
    }

    fn source(&self) -> String {
        self.name.name()
    }
}

impl PushedItem for LockedImage {
    fn destinations(&self, mapping: &DestinationMap) -> Vec<Destination> {
        mapping.destinations(&self.name)
    }

    fn referrer_tags(&self) -> Vec<(&str, &Digest)> {
        let tagged = self.referrers.iter().flatten();
        tagged
            .filter_map(|referrer| Some((referrer.tag.as_deref()?, &referrer.digest)))
            .collect()
    }

    fn tag(&self) -> String {
        self.destination_tag()
    }
}

impl AuditedItem for LockedImage {
    fn reference(&self) -> Option<&ImageRef> {
        Some(&self.name)
    }

    /// Those of the index, its children and the trimmed index.
    fn digests(&self) -> Vec<&Digest> {
        let children = self.manifests.iter().map(|child| &child.digest);
        children
            .chain([&self.digest])
            .chain(self.trimmed.iter().map(|trimmed| &trimmed.digest))
            .collect()
    }

    fn platforms(&self) -> Option<BTreeSet<String>> {
        let below = self
            .manifests
            .iter()
            .filter_map(|manifest| manifest.platform.clone());
        let own = self.platform.as_ref().map(Platform::to_string);
        Some(
            below
                .chain(own)
                .filter(|platform| !platform.starts_with("unknown"))
                .collect(),
        )
    }

    fn has_blob(&self, digest: &Digest) -> bool {
        self.blobs.iter().any(|blob| blob.digest == *digest)
    }
}

impl ServedItem for LockedImage {
    /// With the source host in front; a port as `host_5001`.
    fn own_repository(&self) -> String {
        format!(
            "{}/{}",
            host_component(&self.name.registry),
            self.name.repository
        )
    }

    fn is_served_from_registry(&self) -> bool {
        false
    }
}

impl LockedItem for LockedImage {
    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        text::write(self, out)
    }

    /// The sum of all sizes must fit, and the tags of referrers must fit into a path and be no tag
    /// of an image.
    fn implausibility(&self) -> Option<String> {
        let manifests = self.manifests.iter().map(|child| child.size);
        let blobs = self
            .blobs
            .iter()
            .chain(&self.referrer_blobs)
            .map(|blob| blob.size);
        let referrers = || self.referrers.iter().flatten();
        let rest = self
            .trimmed
            .iter()
            .map(|trimmed| trimmed.size)
            .chain(referrers().map(|one| one.size));
        let tag = || {
            let tag = referrers()
                .filter_map(|one| one.tag.as_ref())
                .find(|tag| !is_referrer_tag(tag))?;
            Some(format!("'{tag}' is no tag that cosign gives"))
        };
        oversize(manifests.chain(blobs).chain(rest).chain([self.size])).or_else(tag)
    }

    fn entry(&self) -> LockEntry {
        parts::entry(self)
    }

    fn contradictions(&self, blobs: &dyn BlobRead, _time: SignatureTime) -> Vec<String> {
        verify::contradictions(self, blobs)
    }
}

impl ItemKind for LockedImage {
    const KIND: EntryKind = EntryKind::Image;
    const SECTION: &'static str = "images";
    type Name = ImageRef;
    type Request = ImageRequest;
    type Entry = ImageEntry;

    fn is_name(text: &str) -> bool {
        !text.contains("://")
    }

    fn key(&self) -> &ImageRef {
        &self.name
    }

    fn section(lock: &Lock) -> &[LockedImage] {
        &lock.images
    }

    fn section_mut(lock: &mut Lock) -> &mut Vec<LockedImage> {
        &mut lock.images
    }

    fn parse_name(text: &str, span: &SourceSpan) -> ManifestResult<String> {
        Ok(manifest_entry::reference_of(text, span)?.0.to_string())
    }

    fn parse_exclusion(text: &str, span: &SourceSpan) -> ManifestResult<Exclusion> {
        text.parse().map(Exclusion::Reference).map_err(|error: ReferenceError| {
            let help = "write a repository, as in quay.io/example/app, a full reference, or a file's URL";
            span.fault(error.to_string(), Some(help.into()))
        })
    }
}

impl ManifestEntry for ImageEntry {
    type Request = ImageRequest;

    fn expand(
        &self,
        node: &YamlNode<'_>,
        reader: &EntryReader<'_>,
    ) -> ManifestResult<Vec<(ImageRequest, SourceSpan)>> {
        manifest_entry::read(self, node, reader)
    }
}

impl UpdatableEntry for ImageEntry {
    fn movable_versions(&self) -> Vec<MovableVersion<'_>> {
        moving(self).into_iter().collect()
    }
}

impl ItemRequest for ImageRequest {
    type Name = ImageRef;

    fn name(&self) -> &ImageRef {
        &self.name
    }

    fn is_excluded_by(&self, exclusion: &Exclusion) -> bool {
        exclusion.has(&self.name, self.pin.as_ref())
    }

    fn name_like(&self, exclusion: &Exclusion) -> Option<String> {
        exclusion.alike(&self.name)
    }

    fn merge(&mut self, other: &ImageRequest) -> Result<(), FieldConflict> {
        self.join(other)
    }
}

impl ResolvableRequest for ImageRequest {
    type Item = LockedImage;
    const CONCURRENCY: usize = 2;

    async fn resolve(
        &self,
        resolver: &Resolver,
        old: Option<&LockedImage>,
        pins: PinPolicy,
    ) -> ResolveOutcome<LockedImage> {
        let archived = resolver.archives().has(&self.name);
        // an archive says nothing of what refers to its images: it is looked up when upstream is
        // asked again
        let unasked = ImageRequest {
            referrers: false,
            ..self.clone()
        };
        let request = if archived { &unasked } else { self };
        let same =
            |old: &&LockedImage| old.platforms == request.platforms && old.pin == request.pin;
        if let Some(old) = old.filter(same) {
            match pins {
                PinPolicy::Keep if archived || old.referrers.is_some() == request.referrers => {
                    return ResolveOutcome::Kept(old.clone());
                }
                PinPolicy::Keep | PinPolicy::Referrers => {
                    return find_referrers(resolver, request, old).await;
                }
                // nobody has read what a store remembers: it counts as far as its manifests say the
                // same
                PinPolicy::Recall if !verify::contradictions(old, resolver.disk()).is_empty() => {}
                PinPolicy::Refresh | PinPolicy::Recall => {
                    match resolve::head(resolver, &request.name).await {
                        Ok(Some(digest)) if digest == old.digest => {
                            return find_referrers(resolver, request, old).await;
                        }
                        Ok(Some(_)) => {}
                        _ if pins == PinPolicy::Recall => {}
                        Ok(None) => return ResolveOutcome::Gone(old.clone()),
                        Err(cause) => return ResolveOutcome::Failed(Some(old.clone()), cause),
                    }
                }
            }
        }
        // other platforms of the same name stay at the digest that is locked: a moved tag is not
        // taken
        let locked = old
            .filter(|_| {
                matches!(pins, PinPolicy::Keep | PinPolicy::Referrers) && request.pin.is_none()
            })
            .map(|old| old.digest.to_string());
        // a tag is asked for although a digest is demanded: upstream must answer with that digest
        let own = || {
            request
                .name
                .tag
                .clone()
                .or_else(|| request.name.digest.as_ref().map(Digest::to_string))
        };
        let reference = locked.or_else(own).unwrap_or_else(|| "latest".into());
        match resolve::resolve(resolver, request, &reference).await {
            Ok(image) => ResolveOutcome::New(image),
            Err(cause) => ResolveOutcome::Failed(old.filter(same).cloned(), cause),
        }
    }

    async fn check_upstream(resolver: &Resolver, old: &LockedImage) -> Result<(), ResolveError> {
        let ImageRef {
            registry,
            repository,
            ..
        } = &old.name;
        let session = resolver.sessions().upstream(registry).await?;
        match session
            .head_manifest(repository, &old.digest.to_string(), false)
            .await?
        {
            Some(_) => Ok(()),
            None => Err(ResolveError::gone()),
        }
    }
}

impl UpdatableRequest for ImageRequest {
    fn update_policy(&self) -> Option<&str> {
        self.update.as_deref()
    }

    fn tagged_reference(&self) -> Option<&ImageRef> {
        Some(&self.name).filter(|name| name.tag.is_some())
    }

    fn demanded_digest(&self) -> Option<(&Digest, &SourceLocation)> {
        Some((self.pin.as_ref()?, &self.at))
    }

    async fn upstream_status(&self, resolver: &Resolver) -> Result<UpstreamStatus, ResolveError> {
        let ImageRef {
            registry,
            repository,
            ..
        } = &self.name;
        let session = resolver.sessions().upstream(registry).await?;
        let digest = self.name.digest.as_ref().map(Digest::to_string);
        let reference = self.name.tag.clone().or(digest).unwrap_or_default();
        let stand = match session
            .head_manifest(repository, &reference, false)
            .await
            .map_err(ResolveError::from)
        {
            Ok(None) => UpstreamStatus::Gone,
            Err(cause) if cause.is_gone => UpstreamStatus::Gone,
            found => UpstreamStatus::Present {
                digest: found?,
                size: None,
            },
        };
        Ok(stand)
    }
}

/// The tag of `entry`, where a policy may move it.
fn moving(entry: &ImageEntry) -> Option<MovableVersion<'_>> {
    let ImageEntry::Full(image) = entry else {
        return None;
    };
    let (policy, text) = (image.update.as_deref()?, image.r#ref.as_str());
    let version = manifest_entry::tag_of(text)?;
    // a slice of `text`
    let start = version.as_ptr() as usize - text.as_ptr() as usize;
    let version = start..start + version.len();
    let name = text[..start - 1].to_owned();
    Some(MovableVersion {
        policy,
        name,
        item_key: "ref",
        path: vec![EntryPathStep::Key("ref")],
        text,
        version,
    })
}

/// The image of which only the referrers are asked for.
async fn find_referrers(
    resolver: &Resolver,
    wish: &ImageRequest,
    old: &LockedImage,
) -> ResolveOutcome<LockedImage> {
    match referrers::look_up(resolver, old, wish.referrers).await {
        Ok(image) if image == *old => ResolveOutcome::Kept(image),
        Ok(image) => ResolveOutcome::New(image),
        Err(cause) => ResolveOutcome::Failed(Some(old.clone()), cause),
    }
}

/// Whether it has the form `sha256-<hex>.<ending>`; the length of the hex does not matter.
fn is_referrer_tag(text: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let rest = text
        .strip_prefix("sha256-")
        .and_then(|rest| rest.split_once('.'));
    text.len() <= 128 && text.bytes().all(good) && rest.is_some()
}
