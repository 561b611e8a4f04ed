//! Referrers: what a manifest says of its subject (distribution-spec "Listing Referrers").

use super::name::query;
use super::reply::{Reply, bytes, set};
use crate::model::{Descriptor, Digest, media_type};
use axum::http::StatusCode;
use axum::http::header::HeaderName;
use serde::Deserialize;
use serde_json::{Map, Value, json};

const FILTERS: HeaderName = HeaderName::from_static("oci-filters-applied");

/// A manifest that refers to another one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Referrer {
    pub(super) subject: Digest,
    /// Its descriptor as it stands in the answer.
    pub(super) entry: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    subject: Option<Named>,
    artifact_type: Option<String>,
    config: Option<Typed>,
    annotations: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Named {
    digest: Digest,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Typed {
    media_type: Option<String>,
}

/// Reads the manifest `bytes`; gives nothing for one without a subject.
pub(super) fn read(bytes: &[u8], descriptor: &Descriptor) -> Option<Referrer> {
    let raw: Raw = serde_json::from_slice(bytes).ok()?;
    let subject = raw.subject?.digest;
    let mut entry = json!({
        "mediaType": descriptor.media_type,
        "digest": descriptor.digest,
        "size": descriptor.size,
    });
    let kind = raw.artifact_type.filter(|kind| !kind.is_empty());
    if let Some(kind) = kind.or_else(|| raw.config.and_then(|config| config.media_type)) {
        entry["artifactType"] = kind.into();
    }
    if let Some(annotations) = raw.annotations {
        entry["annotations"] = annotations.into();
    }
    Some(Referrer { subject, entry })
}

/// The answer: an index of `entries`, each digest once and sorted, filtered as `asked` (a query) says.
pub(super) fn reply(mut entries: Vec<Value>, asked: Option<&str>) -> Reply {
    let digest = |entry: &Value| entry["digest"].as_str().map(str::to_owned);
    entries.sort_by_key(digest);
    entries.dedup_by_key(|entry| digest(entry));
    let filter = query(asked, "artifactType").filter(|filter| !filter.is_empty());
    if let Some(filter) = &filter {
        entries.retain(|entry| entry["artifactType"] == *filter.as_str());
    }
    let index = json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": entries});
    let mut reply = bytes(StatusCode::OK, media_type::OCI_INDEX, index.to_string().into_bytes());
    if filter.is_some() {
        set(&mut reply, FILTERS, "artifactType");
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_config_stands_in_for_a_missing_artifact_type() {
        let subject = Digest::sha256(b"subject");
        let descriptor =
            Descriptor { digest: Digest::sha256(b"m"), size: 1, media_type: media_type::OCI_MANIFEST.into() };
        let manifest = |more: &str| {
            format!(
                r#"{{"subject":{{"digest":"{subject}"}},"config":{{"mediaType":"application/c"}}{more}}}"#
            )
        };
        let of = |text: String| read(text.as_bytes(), &descriptor).unwrap().entry;
        assert_eq!(of(manifest(""))["artifactType"], "application/c");
        let entry = of(manifest(r#","artifactType":"application/a","annotations":{"k":"v"}"#));
        assert_eq!(
            (&entry["artifactType"], &entry["annotations"]["k"]),
            (&json!("application/a"), &json!("v"))
        );
        assert_eq!(read(br#"{"config":{}}"#, &descriptor), None);
        assert_eq!(read(b"no json", &descriptor), None);
    }
}
