//! Referrers, which are manifests with a subject, and the tags by which registries and cosign list
//! them (distribution-spec "Listing Referrers", "Referrers Tag Schema").

use crate::json::{JsonText, from_json, without_bom};
use crate::{Algorithm, Descriptor, Digest, ManifestError, media_type};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeSet;

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

/// The entries of an index, as text.
#[derive(Deserialize)]
struct RawList<'a> {
    #[serde(borrow)]
    manifests: &'a RawValue,
}

/// Adds `entries` to the list of referrers `old`: appends the missing ones, and completes those
/// that `old` has without an artifact type, annotations or size. All other bytes of its entries
/// stay unchanged. Returns `None` if there is nothing to add. Without `old`, starts with an empty
/// list.
///
/// # Errors
/// Fails if `old` is not an index.
pub fn merge_referrers(
    old: Option<&[u8]>,
    entries: &[Value],
) -> Result<Option<Vec<u8>>, ManifestError> {
    let json = |error: serde_json::Error| ManifestError::Json(error.to_string());
    let empty = json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": []});
    let empty = empty.to_string();
    let old = std::str::from_utf8(without_bom(old.unwrap_or(empty.as_bytes())))
        .map_err(|error| ManifestError::Json(error.to_string()))?;
    let raw: RawList<'_> = serde_json::from_str(old).map_err(json)?;
    let list = raw.manifests.get();
    // tools written in Go write an empty list as `null`
    let known: Option<Vec<&RawValue>> = serde_json::from_str(list).map_err(json)?;
    let known = known.unwrap_or_default();
    let mut merged: Vec<String> = known.iter().map(|entry| entry.get().to_owned()).collect();
    let parsed: Vec<Value> = known
        .iter()
        .map(|entry| serde_json::from_str(entry.get()).unwrap_or_default())
        .collect();
    let mut is_changed = false;
    for entry in entries {
        let same = |known: &Value| known.get("digest") == entry.get("digest");
        match parsed.iter().position(same) {
            Some(at) => {
                if let Some(complete) = completed(&parsed[at], entry) {
                    merged[at] = complete.to_string();
                    is_changed = true;
                }
            }
            None => {
                merged.push(entry.to_string());
                is_changed = true;
            }
        }
    }
    if !is_changed {
        return Ok(None);
    }
    // `list` is a part of `old`
    let start = list.as_ptr() as usize - old.as_ptr() as usize;
    let (before, after) = (&old[..start], &old[start + list.len()..]);
    Ok(Some(
        format!("{before}[{}]{after}", merged.join(",")).into_bytes(),
    ))
}

/// The entry `known` of a list with the members of `whole` that it lacks; `None` if it has all.
fn completed(known: &Value, whole: &Value) -> Option<Value> {
    let mut entry = known.clone();
    for key in ["artifactType", "annotations", "size"] {
        if let Some(value) = whole.get(key)
            && is_absent(known.get(key))
        {
            entry[key] = value.clone();
        }
    }
    (entry != *known).then_some(entry)
}

/// The entries of the list of referrers `list` that lack both their type and their annotations, as
/// those of some tools do: clients cannot find them by their type.
pub fn bare_referrers(list: &[u8]) -> BTreeSet<Digest> {
    let list: Value = from_json(list).unwrap_or_default();
    let entries = list.get("manifests").and_then(Value::as_array);
    let bare = entries.into_iter().flatten().filter(|entry| {
        is_absent(entry.get("artifactType")) && is_absent(entry.get("annotations"))
    });
    bare.filter_map(|entry| entry.get("digest")?.as_str()?.parse().ok())
        .collect()
}

fn is_absent(member: Option<&Value>) -> bool {
    match member {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_artifact_or_config_type_and_annotations_up_to_their_limit() {
        let subject = Digest::sha256(b"subject");
        let descriptor = Descriptor::new(Digest::sha256(b"m"), 1, media_type::OCI_MANIFEST);
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

    #[test]
    fn an_entry_without_type_and_annotations_is_completed_and_others_stay_byte_for_byte() {
        let other = "{ \"digest\":\"sha256:o\",  \"size\" : 1e2, \"artifactType\":\"x\\u002fy\" }";
        let old = format!(
            "{{\"x\": 1.0, \"manifests\": [ {other} , {{\"digest\":\"sha256:a\",\"annotations\":null,\"mine\":1}}],\n \"y\":2}}"
        );
        let whole = json!({"mediaType": "m", "digest": "sha256:a", "size": 7,
            "artifactType": "application/a", "annotations": {"k": "v"}});
        let merged = merge_referrers(Some(old.as_bytes()), std::slice::from_ref(&whole))
            .unwrap()
            .unwrap();
        let text = String::from_utf8(merged.clone()).unwrap();
        assert!(
            text.contains(other)
                && text.starts_with("{\"x\": 1.0, ")
                && text.ends_with(",\n \"y\":2}"),
            "{text}"
        );
        let list: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            list["manifests"][1],
            json!({"digest": "sha256:a", "annotations": {"k": "v"},
            "mine": 1, "artifactType": "application/a", "size": 7})
        );
        assert_eq!(
            merge_referrers(Some(&merged), std::slice::from_ref(&whole)).unwrap(),
            None
        );
        // what another tool wrote is not replaced
        let theirs = json!({"digest": "sha256:a", "size": 7, "artifactType": "theirs", "annotations": {"o": "1"}});
        let list = json!({"manifests": [theirs]}).to_string();
        assert_eq!(
            merge_referrers(Some(list.as_bytes()), &[whole]).unwrap(),
            None
        );
        let digest = Digest::sha256(b"x");
        let bare = json!({"manifests": [{"digest": digest, "artifactType": ""}]}).to_string();
        assert_eq!(bare_referrers(bare.as_bytes()), BTreeSet::from([digest]));
    }
}
