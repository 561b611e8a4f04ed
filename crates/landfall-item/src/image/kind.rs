//! A locked image as an item.

use super::locked::LockedImage;
use super::manifest_entry::ImageEntry;
use super::request::ImageRequest;
use super::{manifest_entry, parts, text, verify};
use crate::text::oversize;
use crate::{
    AuditedItem, Exclusion, ItemIdentity, ItemKind, LockedItem, ManifestResult, PushedItem,
    ServedItem, verified_signatures,
};
use landfall_content::{BlobRead, LockEntry};
use landfall_model::document::SourceSpan;
use landfall_model::report::EntryKind;
use landfall_model::sign::SignatureTime;
use landfall_model::{
    Destination, DestinationMap, Digest, ImageRef, Platform, ReferenceError, host_component,
};
use landfall_signature::{RuleSubject, SignaturePolicy, VerifiedSignature};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

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

    /// The digests of the index, its children and the trimmed index.
    fn digests(&self) -> Vec<&Digest> {
        let children = self.manifests.iter().map(|child| &child.digest);
        children
            .chain([&self.digest])
            .chain(self.trimmed.iter().map(|trimmed| &trimmed.digest))
            .collect()
    }

    fn platforms(&self) -> Option<BTreeSet<String>> {
        let children = self
            .manifests
            .iter()
            .filter_map(|manifest| manifest.platform.clone());
        let own = self.platform.as_ref().map(Platform::to_string);
        // attestations of BuildKit are children with the platform `unknown/unknown`
        let platforms = children
            .chain(own)
            .filter(|platform| !platform.starts_with("unknown"));
        Some(platforms.collect())
    }

    fn has_blob(&self, digest: &Digest) -> bool {
        self.blobs.iter().any(|blob| blob.digest == *digest)
    }
}

impl ServedItem for LockedImage {
    /// The repository with the source host before it; a port is written as `host_5001`.
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

    /// Sizes must be plausible, and the tags of referrers must have the form that cosign uses, so
    /// that they fit into a path and are not the tag of an image.
    fn implausibility(&self) -> Option<String> {
        let mut sizes = vec![self.size];
        sizes.extend(self.manifests.iter().map(|child| child.size));
        sizes.extend(self.blobs.iter().map(|blob| blob.size));
        sizes.extend(self.referrer_blobs.iter().map(|blob| blob.size));
        sizes.extend(self.trimmed.iter().map(|trimmed| trimmed.size));
        let referrers = self.referrers.as_deref().unwrap_or_default();
        sizes.extend(referrers.iter().map(|referrer| referrer.size));
        if let Some(fault) = oversize(sizes) {
            return Some(fault);
        }
        let tag = referrers
            .iter()
            .filter_map(|referrer| referrer.tag.as_ref())
            .find(|tag| !is_referrer_tag(tag))?;
        Some(format!("'{tag}' is not a tag of cosign"))
    }

    fn entry(&self) -> LockEntry {
        parts::entry(self)
    }

    fn signature_subject(&self) -> Option<RuleSubject> {
        Some((&self.name).into())
    }

    fn recorded_signatures(&self) -> &[VerifiedSignature] {
        &self.verified
    }

    fn verify_signatures(
        &self,
        policy: &SignaturePolicy,
        blobs: &Arc<dyn BlobRead>,
        _time: SignatureTime,
    ) -> Result<Vec<VerifiedSignature>, String> {
        let verified = verified_signatures(self, policy, &**blobs);
        verified.map_err(|error| error.to_string())
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

    fn parse_name(text: &str, span: &SourceSpan) -> ManifestResult<String> {
        Ok(manifest_entry::reference_of(text, span)?.0.to_string())
    }

    fn parse_exclusion(text: &str, span: &SourceSpan) -> ManifestResult<Exclusion> {
        text.parse()
            .map(Exclusion::Reference)
            .map_err(|error: ReferenceError| {
                let help = "write a repository, as in quay.io/example/app, a full reference, or a \
                        file's URL";
                span.fault(error.to_string(), Some(help.into()))
            })
    }
}

/// Whether `text` is a tag of the form `sha256-<hex>.<ending>`. The length of the hex part and its
/// digits are not checked.
fn is_referrer_tag(text: &str) -> bool {
    // 128 is the maximum length of a tag in the distribution specification
    text.len() <= 128
        && text
            .strip_prefix("sha256-")
            .is_some_and(|rest| rest.contains('.'))
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
}
