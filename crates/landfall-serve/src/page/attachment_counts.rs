//! The numbers of signatures, attestations and SBOMs that are attached to an image.

use crate::catalog::AttachedManifest;
use landfall_content::BlobRead;
use landfall_model::{Descriptor, media_type, read_referrer};
use std::collections::BTreeMap;

/// The maximum size in bytes of a manifest that is read for its artifact type. Manifests of
/// signatures are small.
const MAX_MANIFEST: u64 = 256 << 10;

/// The number of attached manifests of each kind. Keys are words for kinds, such as `signature`.
pub(super) fn attachment_counts(
    attached: &[AttachedManifest],
    blobs: &dyn BlobRead,
) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for manifest in attached {
        // an index only groups other manifests, which are listed themselves
        if !media_type::is_index(&manifest.descriptor.media_type) {
            *counts.entry(attachment_word(manifest, blobs)).or_default() += 1;
        }
    }
    counts
}

fn attachment_word(manifest: &AttachedManifest, blobs: &dyn BlobRead) -> String {
    let suffix = manifest
        .tag
        .as_deref()
        .and_then(|tag| tag.rsplit_once('.'))
        .map(|(_, suffix)| suffix);
    match suffix {
        Some("sig") => "signature".into(),
        Some("att") => "attestation".into(),
        Some("sbom") => "SBOM".into(),
        _ => {
            let artifact_type = artifact_type(&manifest.descriptor, blobs);
            word_for_type(artifact_type.as_deref().unwrap_or_default())
        }
    }
}

/// The artifact type of a manifest, if it can be read.
fn artifact_type(descriptor: &Descriptor, blobs: &dyn BlobRead) -> Option<String> {
    if descriptor.size > MAX_MANIFEST {
        return None;
    }
    let bytes = blobs.read(descriptor).ok()?;
    let referrer = read_referrer(&bytes, descriptor)?;
    referrer.entry["artifactType"].as_str().map(str::to_owned)
}

fn word_for_type(artifact_type: &str) -> String {
    let known = TYPE_WORDS
        .iter()
        .find(|(_, parts)| parts.iter().any(|part| artifact_type.contains(part)));
    match known {
        Some((word, _)) => (*word).into(),
        None if artifact_type.is_empty() => "referrer".into(),
        None => artifact_type.into(),
    }
}

/// The words of the page, each with the parts of artifact types that select it. The first match
/// wins.
const TYPE_WORDS: [(&str, &[&str]); 4] = [
    ("SBOM", &["spdx", "cyclonedx", "sbom"]),
    (
        "signature",
        &["notary.signature", "cosign.simplesigning", "signature"],
    ),
    // a Sigstore bundle contains a signature or an attestation, and its type does not say which
    ("signature or attestation", &["sigstore.bundle"]),
    (
        "attestation",
        &["in-toto", "dsse", "attestation", "provenance"],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifact_types_are_described() {
        for (kind, word) in [
            ("application/vnd.cncf.notary.signature", "signature"),
            ("application/spdx+json", "SBOM"),
            ("application/vnd.cyclonedx+json", "SBOM"),
            ("application/vnd.in-toto+json", "attestation"),
            (
                "application/vnd.dev.sigstore.bundle.v0.3+json",
                "signature or attestation",
            ),
            ("application/x.other", "application/x.other"),
            ("", "referrer"),
        ] {
            assert_eq!(word_for_type(kind), word, "{kind}");
        }
    }
}
