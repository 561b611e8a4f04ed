//! Signs the images of a lock for the destination, in both forms of cosign: a Sigstore bundle as
//! one more referrer, and a signature at the `.sig` tag, appended to the signatures of upstream.
//! `push` delivers both like referrers from upstream.

use landfall_content::{BlobChain, BlobRead, ContentError, MemoryBlobs};
use landfall_item::lockfile::Lock;
use landfall_item::{LockedImage, LockedReferrer};
use landfall_model::config::ReferrerPolicy;
use landfall_model::media_type::{OCI_CONFIG, OCI_EMPTY, OCI_MANIFEST};
use landfall_model::{Descriptor, DestinationMap, Digest, cosign_tags, from_json};
use landfall_signature::{BUNDLE_TYPE, ImageSigningKey, SIMPLE_SIGNING};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A lock with the new signatures of its images, and its content.
pub(crate) struct SignedImages {
    pub(crate) lock: Lock,
    /// The manifests and blobs of the new signatures.
    pub(crate) made: BTreeSet<Digest>,
    pub(crate) blobs: Arc<dyn BlobRead>,
}

/// Signs all images of `lock`, whose content is in `blobs`, for their destinations. Fails if a
/// manifest with upstream's signatures cannot be read. If upstream's referrers are skipped, its
/// signatures are not repeated.
pub(crate) fn sign_images(
    mut lock: Lock,
    blobs: Arc<dyn BlobRead>,
    mapping: &DestinationMap,
    key: &ImageSigningKey,
    referrers: ReferrerPolicy,
) -> Result<SignedImages, ContentError> {
    let mut made = MemoryBlobs::default();
    for image in &mut lock.images {
        add_bundle(image, key, &mut made);
        if let Some(tag) = cosign_tags(&image.digest).into_iter().next() {
            let upstream = (referrers != ReferrerPolicy::Skip).then_some(&*blobs);
            add_to_tag(image, tag, upstream, mapping, key, &mut made)?;
        }
    }
    Ok(SignedImages {
        lock,
        made: made.0.keys().cloned().collect(),
        blobs: Arc::new(BlobChain(vec![Arc::new(made), blobs])),
    })
}

/// Adds a Sigstore bundle as a referrer.
fn add_bundle(image: &mut LockedImage, key: &ImageSigningKey, made: &mut MemoryBlobs) {
    let config = made.put(b"{}".to_vec(), OCI_EMPTY);
    let bundle = made.put(key.bundle(&image.digest), BUNDLE_TYPE);
    // no time of creation, so that signing again gives the same digest
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "artifactType": BUNDLE_TYPE,
        "config": json_of(&config),
        "layers": [json_of(&bundle)],
        "subject": json_of(&image.descriptor()),
        "annotations": {
            "dev.sigstore.bundle.content": "dsse-envelope",
            "dev.sigstore.bundle.predicateType": "https://sigstore.dev/cosign/sign/v1",
        },
    });
    let manifest = made.put(manifest.to_string().into_bytes(), OCI_MANIFEST);
    let subject = Some(image.digest.clone());
    let referrers = image.referrers.get_or_insert_default();
    referrers.push(referrer(manifest, None, subject));
    add_blobs(image, [config, bundle]);
}

/// Adds a signature for each destination to the manifest at cosign's `.sig` tag. `upstream` is the
/// content with upstream's signatures, if they are kept.
fn add_to_tag(
    image: &mut LockedImage,
    tag: String,
    upstream: Option<&dyn BlobRead>,
    mapping: &DestinationMap,
    key: &ImageSigningKey,
    made: &mut MemoryBlobs,
) -> Result<(), ContentError> {
    let config = made.put(
        br#"{"architecture":"","os":"","rootfs":{"type":"layers","diff_ids":[]}}"#.to_vec(),
        OCI_CONFIG,
    );
    let mut manifest = json!({
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": json_of(&config),
        "layers": [],
    });
    let referrers = image.referrers.get_or_insert_default();
    let known = referrers
        .iter()
        .position(|one| one.tag.as_ref() == Some(&tag));
    if let (Some(at), Some(blobs)) = (known, upstream) {
        let bytes = blobs.read(&referrers.remove(at).descriptor())?;
        // anything other than a manifest with layers is replaced, since no client can read it
        if let Ok(upstream) = from_json::<Value>(&bytes)
            && upstream["layers"].is_array()
        {
            manifest = upstream;
        }
    }
    let mut added = vec![config];
    for destination in mapping.destinations(&image.name) {
        let payload = ImageSigningKey::payload(&image.digest, &destination.to_string());
        let signature = key.sign(&payload);
        let payload = made.put(payload, SIMPLE_SIGNING);
        let mut layer = json_of(&payload);
        layer["annotations"] = json!({"dev.cosignproject.cosign/signature": signature});
        added.push(payload);
        if let Some(layers) = manifest["layers"].as_array_mut()
            && !layers.contains(&layer)
        {
            layers.push(layer);
        }
    }
    let manifest = made.put(manifest.to_string().into_bytes(), OCI_MANIFEST);
    let referrers = image.referrers.get_or_insert_default();
    referrers.push(referrer(manifest, Some(tag), None));
    add_blobs(image, added);
    Ok(())
}

fn referrer(manifest: Descriptor, tag: Option<String>, subject: Option<Digest>) -> LockedReferrer {
    LockedReferrer {
        digest: manifest.digest,
        size: manifest.size,
        media_type: manifest.media_type,
        tag,
        subject,
    }
}

/// Inserts blobs into the image's referrer blobs, which are sorted by digest, except those that are
/// among the image's own blobs.
fn add_blobs(image: &mut LockedImage, blobs: impl IntoIterator<Item = Descriptor>) {
    for blob in blobs {
        let is_own = image.blobs.iter().any(|own| own.digest == blob.digest);
        let known = &mut image.referrer_blobs;
        let at = known.binary_search_by(|other| other.digest.cmp(&blob.digest));
        if let (Err(at), false) = (at, is_own) {
            known.insert(at, blob);
        }
    }
}

fn json_of(descriptor: &Descriptor) -> Value {
    json!({
        "mediaType": descriptor.media_type,
        "digest": descriptor.digest,
        "size": descriptor.size,
    })
}
