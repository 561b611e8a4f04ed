//! The response of the referrers API (distribution-spec "Listing Referrers").

use super::response::{Response, bytes, set};
use super::route::query;
use crate::model::media_type;
use axum::http::StatusCode;
use axum::http::header::HeaderName;
use serde_json::{Value, json};

const FILTERS: HeaderName = HeaderName::from_static("oci-filters-applied");

/// The response: an index of `entries`, sorted, each digest once, filtered by the `artifactType` of the query `asked`.
pub(super) fn response(mut entries: Vec<Value>, asked: Option<&str>) -> Response {
    let digest = |entry: &Value| entry["digest"].as_str().map(str::to_owned);
    entries.sort_by_key(digest);
    entries.dedup_by_key(|entry| digest(entry));
    let filter = query(asked, "artifactType").filter(|filter| !filter.is_empty());
    if let Some(filter) = &filter {
        entries.retain(|entry| entry["artifactType"] == *filter.as_str());
    }
    let index = json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": entries});
    let mut response = bytes(StatusCode::OK, media_type::OCI_INDEX, index.to_string().into_bytes());
    if filter.is_some() {
        set(&mut response, FILTERS, "artifactType");
    }
    response
}
