//! Verifies the signatures of an image: while it is locked, and later from a bundle or store alone.

use super::locked::LockedImage;
use super::manifests::{read_manifest, read_small};
use super::referrers;
use crate::resolver::{ResolveError, Resolver};
use crate::{PinPolicy, ReadError, ResolveOutcome};
use jiff::Timestamp;
use landfall_content::BlobRead;
use landfall_model::{Descriptor, Digest, Failure, ImageRef, JsonText, Limits, cosign_tags};
use landfall_signature::{
    SignatureDocument, SignatureFailure, SignatureFormat, SignaturePolicy, VerifiedSignature,
};
use std::collections::{BTreeMap, BTreeSet};
use tokio::task::JoinError;

/// Why an image, a chart or a file does not meet a policy.
#[derive(Debug, thiserror::Error)]
pub enum ItemSignatureError {
    /// A signature or checksum file cannot be read.
    #[error("a signature cannot be read: {0}")]
    Read(#[from] ReadError),
    /// The verification was interrupted.
    #[error("its signatures were not verified: {0}")]
    Interrupted(#[from] JoinError),
    /// The signatures do not meet the policy.
    #[error(transparent)]
    Policy(#[from] SignatureFailure),
    /// Any other reason.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl ItemSignatureError {
    /// The error of resolving the item. `places` says where signatures were searched.
    pub(crate) fn into_resolve_error(self, places: &str) -> ResolveError {
        match self {
            ItemSignatureError::Read(_) | ItemSignatureError::Interrupted(_) => {
                ResolveError::local(self.to_string())
            }
            ItemSignatureError::Policy(SignatureFailure::NotFound { .. }) => {
                ResolveError::from(format!("{self}{places}"))
            }
            _ => ResolveError::from(self.to_string()),
        }
    }
}

/// Verifies the signatures of `image`, which are read from `blobs`. Returns those that meet the
/// policy; empty if the image needs none. Fails if the image does not meet the policy, or a
/// signature cannot be read.
pub(crate) fn verified_signatures(
    image: &LockedImage,
    policy: &SignaturePolicy,
    blobs: &dyn BlobRead,
) -> Result<Vec<VerifiedSignature>, ItemSignatureError> {
    if !policy.applies_to(&image.name) {
        return Ok(Vec::new());
    }
    let (documents, unreadable) = signature_documents(image, blobs)?;
    let verified = policy.verify(&image.name, &image.digest, &documents);
    // the missing signature may be the one that cannot be read
    verified.map_err(|error| match unreadable {
        Some(unreadable) => unreadable.into(),
        None => error.into(),
    })
}

/// The signatures in the manifests that refer to the image itself, and the first reason why one of
/// them cannot be read.
fn signature_documents(
    image: &LockedImage,
    blobs: &dyn BlobRead,
) -> Result<(Vec<SignatureDocument>, Option<ReadError>), ItemSignatureError> {
    let mut documents = Vec::new();
    let (layers, mut unreadable) = signature_layers(image, blobs)?;
    for layer in layers {
        match read_small(blobs, &layer.descriptor) {
            Ok(bytes) => documents.push(SignatureDocument::new(
                layer.format,
                bytes,
                layer.annotations,
            )),
            Err(error) => {
                unreadable.get_or_insert(error);
            }
        }
    }
    Ok((documents, unreadable))
}

/// Replaces the verified signatures in `outcome` by those that meet the policy of `resolver`.
/// `old` is the image in the old lock. Without a rule for the image, nothing is requested.
pub(super) async fn verify_outcome(
    resolver: &Resolver,
    outcome: ResolveOutcome<LockedImage>,
    old: Option<&LockedImage>,
    pins: PinPolicy,
) -> ResolveOutcome<LockedImage> {
    let policy = &resolver.signatures;
    let accepted = |image: &LockedImage| policy.accepts(&image.name, &image.verified);
    let (image, is_kept) = match outcome.item_to_verify(accepted) {
        Ok(found) => found,
        Err(outcome) => return outcome,
    };
    // the record in the lock is enough only with `Keep`: `--refresh` and `--check` verify again
    let is_recorded = policy.applies_to(&image.name) && accepted(&image);
    if is_recorded && matches!(pins, PinPolicy::Keep) {
        return wrapped(image, is_kept);
    }
    match verify(resolver, &image.name.to_string(), &image).await {
        Ok(verified) => {
            let is_kept = is_kept && verified == image.verified;
            wrapped(LockedImage { verified, ..image }, is_kept)
        }
        Err(cause) => ResolveOutcome::unverified(old, accepted, &image.digest, cause),
    }
}

/// Looks up the referrers of `artifact` and verifies its signatures. `None` if no rule applies to
/// `artifact`. `item` is its name in the lock.
pub(crate) async fn find_signatures(
    resolver: &Resolver,
    item: &str,
    artifact: LockedImage,
) -> Result<Option<LockedImage>, ResolveError> {
    if !resolver.signatures.applies_to(&artifact.name) {
        return Ok(None);
    }
    let found = referrers::look_up(resolver, item, &artifact, true).await?;
    let verified = verify(resolver, item, &found).await?;
    Ok(Some(LockedImage { verified, ..found }))
}

/// Looks up the signatures of the image or chart `name` with this digest. Returns the earliest time
/// at which a transparency log recorded a signature that meets the policy of `resolver`; `None` if
/// no log did. If no rule matches the name, returns `None` without sending a request.
pub(crate) async fn logged_since(
    resolver: &Resolver,
    name: &ImageRef,
    digest: &Digest,
) -> Result<Option<Timestamp>, ResolveError> {
    let policy = &resolver.signatures;
    if !policy.applies_to(name) {
        return Ok(None);
    }
    // the digest is enough to find the signatures, so the top manifest is not fetched
    let top = Descriptor::new(digest.clone(), 0, String::new());
    let image = LockedImage::new(name.clone(), top);
    let item = image.name.to_string();
    let found = referrers::look_up(resolver, &item, &image, true).await?;
    download(resolver, &found).await?;
    let (documents, _) = signature_documents(&found, &resolver.disk).map_err(failure)?;
    policy
        .logged_since(name, digest, &documents)
        .map_err(|error| failure(error.into()))
}

fn wrapped(image: LockedImage, is_kept: bool) -> ResolveOutcome<LockedImage> {
    if is_kept {
        ResolveOutcome::Kept(image)
    } else {
        ResolveOutcome::New(image)
    }
}

/// Downloads the signatures of `image` and verifies them.
async fn verify(
    resolver: &Resolver,
    item: &str,
    image: &LockedImage,
) -> Result<Vec<VerifiedSignature>, ResolveError> {
    let policy = &resolver.signatures;
    if !policy.applies_to(&image.name) {
        return Ok(Vec::new());
    }
    let undelivered = download(resolver, image).await?;
    let verified = verified_signatures(image, policy, &resolver.disk);
    let verified = verified.map_err(|error| undelivered.unwrap_or_else(|| failure(error)));
    // the signature may be in a referrer that could not be read
    let lost = resolver.lost_referrers.of(item).unwrap_or_default();
    match (verified, lost.into_iter().next()) {
        (Err(error), Some(lost)) => Err(ResolveError {
            recorded: format!(
                "{}; {}: {}",
                error.recorded, lost.reference, lost.cause.recorded
            ),
            is_temporary: error.is_temporary || lost.cause.is_temporary,
            ..error.followed_by(&format!(
                "the referrer {} cannot be read: {}",
                lost.reference, lost.cause
            ))
        }),
        (verified, _) => verified,
    }
}

/// Downloads the signatures that the lock lists for `image`.
pub(crate) async fn download_locked(
    resolver: &Resolver,
    image: &LockedImage,
) -> Result<(), ResolveError> {
    // the lock does not say which signatures the image has
    if image.referrers.is_none() {
        return Ok(());
    }
    download(resolver, image).await?.map_or(Ok(()), Err)
}

/// Downloads the signatures of `image`. Returns the first reason why one of them cannot be
/// downloaded: the others may be enough.
async fn download(
    resolver: &Resolver,
    image: &LockedImage,
) -> Result<Option<ResolveError>, ResolveError> {
    for referrer in image.referrers.iter().flatten() {
        let descriptor = referrer.descriptor();
        let reference = descriptor.digest.to_string();
        resolver
            .manifest(&image.name, &reference, Some(&descriptor))
            .await?;
    }
    let (layers, _) = signature_layers(image, &resolver.disk).map_err(failure)?;
    let mut first = None;
    for layer in layers {
        if let Err(error) = resolver.small_blob(&image.name, &layer.descriptor).await {
            first.get_or_insert(error);
        }
    }
    Ok(first)
}

fn failure(error: ItemSignatureError) -> ResolveError {
    error.into_resolve_error(
        "; the referrers API, the referrers tag and cosign's tags were searched",
    )
}

/// A layer with a signature.
struct SignatureLayer {
    format: SignatureFormat,
    descriptor: Descriptor,
    annotations: BTreeMap<String, String>,
}

/// The layers with signatures in the manifests that refer to the image itself. Manifests that refer
/// to one of its platforms are skipped, since they sign another digest. Documents that are too
/// large to be read, such as the attested SBOM of a large image, are skipped as well. Also returns
/// the first reason why a manifest cannot be read.
fn signature_layers(
    image: &LockedImage,
    blobs: &dyn BlobRead,
) -> Result<(Vec<SignatureLayer>, Option<ReadError>), ItemSignatureError> {
    let Some(referrers) = &image.referrers else {
        return Err(Failure::failed(
            "its signatures were not looked up, because `referrers: false` is set or the image \
             comes from an archive",
        )
        .into());
    };
    let limits = Limits::default();
    let tags = cosign_tags(&image.digest);
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let mut unreadable = None;
    for referrer in referrers {
        let is_tagged = referrer.tag.as_ref().is_some_and(|tag| tags.contains(tag));
        let is_about_it = is_tagged || referrer.subject.as_ref() == Some(&image.digest);
        if !is_about_it || !seen.insert(&referrer.digest) {
            continue;
        }
        let bytes = match read_manifest(blobs, &referrer.descriptor()) {
            Ok((bytes, ..)) => bytes,
            Err(error) => {
                unreadable.get_or_insert(error);
                continue;
            }
        };
        found.extend(layers_in(&bytes, limits.manifest_bytes as u64));
        if found.len() > limits.image_signatures {
            return Err(Failure::failed(format!(
                "it has more than {} signatures and attestations",
                limits.image_signatures
            ))
            .into());
        }
    }
    Ok((found, unreadable))
}

/// The layers with signatures of a manifest, without those of more than `max` bytes.
fn layers_in(manifest: &[u8], max: u64) -> Vec<SignatureLayer> {
    let text = String::from_utf8_lossy(manifest);
    let [layers] = JsonText::new(&text).members_if_object(["layers"]);
    let layers = layers.and_then(JsonText::elements).unwrap_or_default();
    let signatures = layers.into_iter().filter_map(|layer| {
        let [kind, digest, size, annotations] =
            layer.members_if_object(["mediaType", "digest", "size", "annotations"]);
        let media_type = kind?.string()?;
        let descriptor = Descriptor::new(
            digest?.string()?.parse().ok()?,
            size?.unsigned().filter(|size| *size <= max)?,
            media_type.as_str(),
        );
        let annotations = annotations
            .map(JsonText::string_members)
            .unwrap_or_default();
        let annotations = annotations.into_iter();
        Some(SignatureLayer {
            format: SignatureFormat::of(&media_type)?,
            descriptor,
            annotations: annotations
                .filter_map(|(key, value)| Some((key, value.as_str()?.to_owned())))
                .collect(),
        })
    });
    signatures.collect()
}
