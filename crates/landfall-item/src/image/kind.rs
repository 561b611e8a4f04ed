//! An image as an item: what everybody else asks of it, and how it is locked.

use super::locked::Image;
use super::wish::WantedImage;
use super::written::{self, ImageEntry};
use super::{parts, referrers, resolve, text, verify};
use crate::resolver::Cause;
use crate::text::oversize;
use crate::{
    Checked, Contradiction, EntryReader, Exclude, Found, ItemKind, LockedItem, Moving, Pins,
    Resolver, Stand, Step,
};
use landfall_content::{BlobRead, LockEntry};
use landfall_model::document::{Location, Node, SourceSpan};
use landfall_model::report::EntryKind;
use landfall_model::sign::SignatureTime;
use landfall_model::{
    Destination, DestinationMap, Digest, ImageRef, Platform, ReferenceError, host_component,
};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

impl LockedItem for Image {
    fn kind(&self) -> EntryKind {
        EntryKind::Image
    }

    fn name(&self) -> Cow<'_, str> {
        self.name.to_string().into()
    }

    fn digest(&self) -> &Digest {
        &self.digest
    }

    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        text::write(self, out)
    }

    /// The sum of all sizes must fit, and the tags of referrers must fit into a path and be no tag
    /// of an image.
    fn fault(&self) -> Option<String> {
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

    /// With the source host in front; a port as `host_5001`.
    fn own_repository(&self) -> String {
        format!(
            "{}/{}",
            host_component(&self.name.registry),
            self.name.repository
        )
    }

    fn is_offered(&self) -> bool {
        false
    }

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

    fn contradictions(&self, blobs: &dyn BlobRead, _time: SignatureTime) -> Vec<String> {
        verify::contradictions(self, blobs)
    }
}

impl ItemKind for Image {
    const KIND: EntryKind = EntryKind::Image;
    const AT_ONCE: usize = 2;
    type Name = ImageRef;
    type Wish = WantedImage;
    type Written = ImageEntry;

    fn is_named(text: &str) -> bool {
        !text.contains("://")
    }

    fn key(&self) -> &ImageRef {
        &self.name
    }

    fn wished(wish: &WantedImage) -> &ImageRef {
        &wish.name
    }

    fn read(
        entry: &ImageEntry,
        node: &Node,
        reader: &EntryReader<'_>,
    ) -> Checked<Vec<(WantedImage, SourceSpan)>> {
        written::read(entry, node, reader)
    }

    fn name_of(text: &str, span: &SourceSpan) -> Checked<String> {
        Ok(written::reference_of(text, span)?.0.to_string())
    }

    fn exclusion(text: &str, span: &SourceSpan) -> Checked<Exclude> {
        text.parse().map(Exclude::Reference).map_err(|error: ReferenceError| {
            let help = "write a repository, as in quay.io/example/app, a full reference, or a file's URL";
            span.fault(error.to_string(), Some(help.into()))
        })
    }

    fn is_excluded(wish: &WantedImage, exclude: &Exclude) -> bool {
        exclude.has(&wish.name, wish.pin.as_ref())
    }

    fn alike(wish: &WantedImage, exclude: &Exclude) -> Option<String> {
        exclude.alike(&wish.name)
    }

    fn join(first: &mut WantedImage, second: &WantedImage) -> Result<(), Contradiction> {
        first.join(second)
    }

    async fn resolve(
        resolver: &Resolver,
        wish: &WantedImage,
        old: Option<&Image>,
        pins: Pins,
    ) -> Found<Image> {
        let archived = resolver.archives().has(&wish.name);
        // an archive says nothing of what refers to its images: it is looked up when upstream is
        // asked again
        let unasked = WantedImage {
            referrers: false,
            ..wish.clone()
        };
        let wish = if archived { &unasked } else { wish };
        let same = |old: &&Image| old.platforms == wish.platforms && old.pin == wish.pin;
        if let Some(old) = old.filter(same) {
            match pins {
                Pins::Keep if archived || old.referrers.is_some() == wish.referrers => {
                    return Found::Kept(old.clone());
                }
                Pins::Keep | Pins::Referrers => return find_referrers(resolver, wish, old).await,
                // nobody has read what a store remembers: it counts as far as its manifests say the
                // same
                Pins::Recall if !verify::contradictions(old, resolver.disk()).is_empty() => {}
                Pins::Refresh | Pins::Recall => match resolve::head(resolver, &wish.name).await {
                    Ok(Some(digest)) if digest == old.digest => {
                        return find_referrers(resolver, wish, old).await;
                    }
                    Ok(Some(_)) => {}
                    _ if pins == Pins::Recall => {}
                    Ok(None) => return Found::Gone(old.clone()),
                    Err(cause) => return Found::Lost(Some(old.clone()), cause),
                },
            }
        }
        // other platforms of the same name stay at the digest that is locked: a moved tag is not
        // taken
        let locked = old
            .filter(|_| matches!(pins, Pins::Keep | Pins::Referrers) && wish.pin.is_none())
            .map(|old| old.digest.to_string());
        // a tag is asked for although a digest is demanded: upstream must answer with that digest
        let own = || {
            wish.name
                .tag
                .clone()
                .or_else(|| wish.name.digest.as_ref().map(Digest::to_string))
        };
        let reference = locked.or_else(own).unwrap_or_else(|| "latest".into());
        match resolve::resolve(resolver, wish, &reference).await {
            Ok(image) => Found::New(image),
            Err(cause) => Found::Lost(old.filter(same).cloned(), cause),
        }
    }

    fn reference(entry: &ImageEntry) -> Option<&str> {
        match entry {
            ImageEntry::Short(text) => Some(text),
            ImageEntry::Full(image) => Some(&image.r#ref),
        }
    }

    fn moving(entry: &ImageEntry) -> Vec<Moving<'_>> {
        moving(entry).into_iter().collect()
    }

    fn policy(wish: &WantedImage) -> Option<&str> {
        wish.update.as_deref()
    }

    fn tagged(wish: &WantedImage) -> Option<&ImageRef> {
        Some(&wish.name).filter(|name| name.tag.is_some())
    }

    fn demanded(wish: &WantedImage) -> Option<(&Digest, &Location)> {
        Some((wish.pin.as_ref()?, &wish.at))
    }

    async fn stand(resolver: &Resolver, wish: &WantedImage) -> Result<Stand, Cause> {
        let ImageRef {
            registry,
            repository,
            ..
        } = &wish.name;
        let session = resolver.sessions().upstream(registry).await?;
        let digest = wish.name.digest.as_ref().map(Digest::to_string);
        let reference = wish.name.tag.clone().or(digest).unwrap_or_default();
        let stand = match session
            .head_manifest(repository, &reference, false)
            .await
            .map_err(Cause::from)
        {
            Ok(None) => Stand::Gone,
            Err(cause) if cause.is_gone => Stand::Gone,
            found => Stand::There {
                digest: found?,
                size: None,
            },
        };
        Ok(stand)
    }

    async fn is_upstream(resolver: &Resolver, old: &Image) -> Result<(), Cause> {
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
            None => Err(Cause::gone()),
        }
    }
}

/// The tag of `entry`, where a policy may move it.
fn moving(entry: &ImageEntry) -> Option<Moving<'_>> {
    let ImageEntry::Full(image) = entry else {
        return None;
    };
    let (policy, text) = (image.update.as_deref()?, image.r#ref.as_str());
    let version = written::tag_of(text)?;
    // a slice of `text`
    let start = version.as_ptr() as usize - text.as_ptr() as usize;
    let version = start..start + version.len();
    let name = text[..start - 1].to_owned();
    Some(Moving {
        policy,
        name,
        item_at: "ref",
        path: vec![Step::Key("ref")],
        text,
        version,
    })
}

/// The image of which only the referrers are asked for.
async fn find_referrers(resolver: &Resolver, wish: &WantedImage, old: &Image) -> Found<Image> {
    match referrers::look_up(resolver, old, wish.referrers).await {
        Ok(image) if image == *old => Found::Kept(image),
        Ok(image) => Found::New(image),
        Err(cause) => Found::Lost(Some(old.clone()), cause),
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
