//! What is attached to an image: signatures, attestations, SBOMs.

use landfall_content::BlobRead;
use landfall_model::{Descriptor, media_type, read_referrer};
use std::collections::BTreeMap;

/// The largest manifest that is read for its word, in bytes: those of signatures and the like are
/// small.
const READ: u64 = 256 << 10;

/// A manifest that refers to an image.
#[derive(Debug, Clone)]
pub(in super::super) struct Attached {
    pub(in super::super) descriptor: Descriptor,
    /// Its tag, where cosign's convention gives it one.
    pub(in super::super) tag: Option<String>,
}

/// Words for them with their number, such as `signature` and 2.
pub(super) fn words(attached: &[Attached], blobs: &dyn BlobRead) -> BTreeMap<String, usize> {
    let mut words = BTreeMap::new();
    for one in attached {
        // an index has others below it, which stand here too
        if !media_type::is_index(&one.descriptor.media_type) {
            *words.entry(word(one, blobs)).or_default() += 1;
        }
    }
    words
}

fn word(one: &Attached, blobs: &dyn BlobRead) -> String {
    let by_tag = one
        .tag
        .as_deref()
        .and_then(|tag| tag.rsplit_once('.'))
        .map(|(_, ending)| ending);
    match by_tag {
        Some("sig") => return "signature".into(),
        Some("att") => return "attestation".into(),
        Some("sbom") => return "SBOM".into(),
        _ => {}
    }
    let bytes = (one.descriptor.size <= READ)
        .then(|| blobs.read(&one.descriptor).ok())
        .flatten();
    let entry = bytes.and_then(|bytes| read_referrer(&bytes, &one.descriptor));
    let kind = entry.and_then(|found| found.entry["artifactType"].as_str().map(str::to_owned));
    by_type(kind.as_deref().unwrap_or_default())
}

fn by_type(artifact_type: &str) -> String {
    let has = |words: &[&str]| words.iter().any(|word| artifact_type.contains(word));
    match () {
        () if has(&["spdx", "cyclonedx", "sbom"]) => "SBOM".into(),
        () if has(&["notary.signature", "cosign.simplesigning", "signature"]) => "signature".into(),
        () if has(&["sigstore.bundle"]) => "signature or attestation".into(),
        () if has(&["in-toto", "dsse", "attestation", "provenance"]) => "attestation".into(),
        () if artifact_type.is_empty() => "referrer".into(),
        () => artifact_type.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifact_types_have_words() {
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
            assert_eq!(by_type(kind), word, "{kind}");
        }
    }
}
