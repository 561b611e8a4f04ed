//! Referrers, which are manifests with a subject, and the tags by which registries and cosign list
//! them (distribution-spec "Listing Referrers", "Referrers Tag Schema").

use super::json_members::JsonText;
use super::manifest::children_mut;
use super::{Algorithm, Descriptor, Digest, ManifestError, media_type};
use serde_json::{Value, json};

/// The maximum size of an entry's annotations in a list of referrers, in bytes of JSON.
/// Registries refuse lists of more than 4 MiB.
pub const ENTRY_ANNOTATIONS: usize = 1 << 20;

/// A manifest with a subject.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferrerManifest {
    /// The digest of the manifest that it refers to.
    pub subject: Digest,
    /// Its entry in a list of referrers: the descriptor with artifact type and annotations.
    pub entry: Value,
    /// Whether the entry lacks the annotations, because they exceed [`ENTRY_ANNOTATIONS`].
    pub is_abridged: bool,
}

/// Reads a manifest or index as a referrer. Returns `None` if it has no subject or is malformed.
///
/// Annotations whose values are not strings are left out of the entry: clients would reject a list
/// of referrers with such an entry as a whole.
pub fn read_referrer(bytes: &[u8], descriptor: &Descriptor) -> Option<ReferrerManifest> {
    let text = String::from_utf8_lossy(bytes);
    let [subject, artifact_type, config, annotations] = JsonText::new(&text).members_if_object([
        "subject",
        "artifactType",
        "config",
        "annotations",
    ]);
    let [subject] = subject?.members_if_object(["digest"]);
    let subject = subject?.string()?.parse().ok()?;
    let mut entry = json!({
        "mediaType": descriptor.media_type,
        "digest": descriptor.digest,
        "size": descriptor.size,
    });
    let config_type =
        || config.and_then(|config| config.members_if_object(["mediaType"])[0]?.string());
    if let Some(artifact_type) = artifact_type
        .and_then(JsonText::string)
        .or_else(config_type)
    {
        entry["artifactType"] = artifact_type.into();
    }
    let is_abridged = annotations.is_some_and(|text| text.len() > ENTRY_ANNOTATIONS);
    if let Some(annotations) = annotations.filter(|_| !is_abridged) {
        let annotations = annotations.string_members();
        if !annotations.is_empty() {
            entry["annotations"] = annotations.into();
        }
    }
    Some(ReferrerManifest {
        subject,
        entry,
        is_abridged,
    })
}

/// Returns the tag under which registries without a referrers API list the referrers of `subject`.
pub fn referrers_tag(subject: &Digest) -> String {
    format!("{}-{}", subject.algorithm().as_str(), subject.short(64))
}

/// The subject that is encoded in the tag of a list of referrers, or in a tag of cosign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaggedSubject {
    /// The digest of the subject, or as much of it as the tag contains.
    pub digest: String,
    /// Whether this is the tag of a list of referrers.
    pub is_list: bool,
}

/// Returns the subject in `tag` if it is the tag of a list of referrers, or a tag of cosign.
pub fn tagged_subject(tag: &str) -> Option<TaggedSubject> {
    let (algorithm, rest) = tag
        .split_once('-')
        .filter(|(name, _)| matches!(*name, "sha256" | "sha512"))?;
    let (hex, ending) = rest.split_at_checked(64)?;
    let is_hex = hex
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_hex || !matches!(ending, "" | ".sig" | ".att" | ".sbom") {
        return None;
    }
    Some(TaggedSubject {
        digest: format!("{algorithm}:{hex}"),
        is_list: ending.is_empty(),
    })
}

/// Returns the tags of cosign for the signature, the attestations and the SBOM of `subject`. A
/// digest that is too long for a tag has none.
pub fn cosign_tags(subject: &Digest) -> Vec<String> {
    match subject.algorithm() {
        Algorithm::Sha256 => [".sig", ".att", ".sbom"]
            .map(|ending| format!("{}{ending}", referrers_tag(subject)))
            .into(),
        Algorithm::Sha512 => Vec::new(),
    }
}

/// Appends the missing `entries` to the list of referrers `old`, whose entries stay unchanged.
/// Returns `None` if `old` contains all of them. Without `old`, starts with an empty list.
///
/// # Errors
/// Fails if `old` is not an index.
pub fn merge_referrers(
    old: Option<&[u8]>,
    entries: &[Value],
) -> Result<Option<Vec<u8>>, ManifestError> {
    let json = |error: serde_json::Error| ManifestError::Json(error.to_string());
    let mut index = match old {
        Some(bytes) => serde_json::from_slice(bytes).map_err(json)?,
        None => json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": []}),
    };
    let list = children_mut(&mut index)?;
    let before = list.len();
    for entry in entries {
        if !list.iter().any(|known| known["digest"] == entry["digest"]) {
            list.push(entry.clone());
        }
    }
    if list.len() == before {
        return Ok(None);
    }
    serde_json::to_vec(&index).map(Some).map_err(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_artifact_or_config_type_and_annotations_up_to_their_limit() {
        let subject = Digest::sha256(b"subject");
        let descriptor = Descriptor {
            digest: Digest::sha256(b"m"),
            size: 1,
            media_type: media_type::OCI_MANIFEST.into(),
        };
        let manifest = |more: &str| {
            format!(
                r#"{{"subject":{{"digest":"{subject}"}},"config":{{"mediaType":"application/c"}}{more}}}"#
            )
        };
        let of = |text: String| read_referrer(text.as_bytes(), &descriptor).unwrap().entry;
        assert_eq!(of(manifest(""))["artifactType"], "application/c");
        let entry = of(manifest(
            r#","artifactType":"application/a","annotations":{"k":"v"}"#,
        ));
        assert_eq!(
            (&entry["artifactType"], &entry["annotations"]["k"]),
            (&json!("application/a"), &json!("v"))
        );
        for (length, is_abridged) in [
            (ENTRY_ANNOTATIONS - 8, false),
            (ENTRY_ANNOTATIONS - 7, true),
        ] {
            let long = manifest(&format!(
                r#","annotations":{{"k":"{}"}}"#,
                "x".repeat(length)
            ));
            let found = read_referrer(long.as_bytes(), &descriptor).unwrap();
            assert_eq!(
                (found.is_abridged, found.entry["annotations"].is_null()),
                (is_abridged, is_abridged)
            );
        }
        let odd = of(manifest(
            r#","artifactType":7,"annotations":{"k":"v","n":1,"x":null}"#,
        ));
        assert_eq!(odd["artifactType"], "application/c");
        assert_eq!(odd["annotations"], json!({"k": "v"}));
        for annotations in ["[1]", "null", "{}", r#"{"n":1}"#] {
            let entry = of(manifest(&format!(r#","annotations":{annotations}"#)));
            assert!(entry.get("annotations").is_none(), "{annotations}");
        }
        assert_eq!(read_referrer(br#"{"config":{}}"#, &descriptor), None);
        assert_eq!(read_referrer(b"no json", &descriptor), None);
    }

    #[test]
    fn tags_are_made_from_the_digest_and_are_not_too_long() {
        let short = Digest::sha256(b"x");
        assert_eq!(referrers_tag(&short), format!("sha256-{}", short.hex()));
        assert_eq!(
            cosign_tags(&short)[1],
            format!("sha256-{}.att", short.hex())
        );
        let long = Digest::compute(Algorithm::Sha512, b"x");
        assert_eq!(
            referrers_tag(&long),
            format!("sha512-{}", &long.hex()[..64])
        );
        assert!(cosign_tags(&long).is_empty());
        for (tag, is_list) in [
            (referrers_tag(&short), true),
            (cosign_tags(&short)[0].clone(), false),
        ] {
            assert_eq!(
                tagged_subject(&tag),
                Some(TaggedSubject {
                    digest: short.to_string(),
                    is_list
                })
            );
        }
        for plain in [
            "sha256-abc",
            "v1",
            "sha256-",
            &format!("sha256-{}-x", short.hex()),
            "md5-x",
        ] {
            assert_eq!(tagged_subject(plain), None, "{plain}");
        }
    }

    #[test]
    fn a_referrers_list_keeps_its_entries_and_appends_new_ones() {
        let a = json!({"digest": "sha256:a", "x": 1});
        let b = json!({"digest": "sha256:b"});
        let first = merge_referrers(None, std::slice::from_ref(&a))
            .unwrap()
            .unwrap();
        assert_eq!(
            merge_referrers(Some(&first), std::slice::from_ref(&a)).unwrap(),
            None
        );
        let both =
            merge_referrers(Some(&first), &[json!({"digest": "sha256:a"}), b.clone()]).unwrap();
        let both: Value = serde_json::from_slice(&both.unwrap()).unwrap();
        assert_eq!(both["manifests"], json!([a, b]));
        assert!(merge_referrers(Some(br#"{"layers":[]}"#), &[b]).is_err());
    }
}
