//! The answer of the referrers API (distribution-spec "Listing Referrers").

use super::name::query;
use super::reply::{Reply, bytes, set};
use crate::model::media_type;
use axum::http::StatusCode;
use axum::http::header::HeaderName;
use serde_json::{Value, json};

const FILTERS: HeaderName = HeaderName::from_static("oci-filters-applied");

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
