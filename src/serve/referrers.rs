//! The referrers API (distribution-spec "Listing Referrers"): what refers to a manifest, page by page.

use super::repository::pushed_names;
use super::response::{ApiError, Response, bytes, set};
use super::route::query;
use super::state::State;
use crate::content::BlobRead;
use crate::model::{Descriptor, Digest, media_type};
use axum::http::StatusCode;
use axum::http::header::{HeaderName, LINK};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Bound;

const FILTERS: HeaderName = HeaderName::from_static("oci-filters-applied");
/// A page ends with the entry that fills so many bytes: entries have the annotations of their manifests.
const PAGE_BYTES: usize = 1 << 20;
/// Entries that a page looks at, at most, for those that the filter lets through.
const PAGE_LOOKS: usize = 1000;

/// Where an entry is.
enum Place {
    /// In a bundle.
    Held(Value),
    /// Pushed to the repository of this name.
    Pushed(String),
}

/// The page that the query `asked` asks for: an index of entries, sorted by digest, each once.
pub(super) fn page(
    state: &State,
    name: &str,
    subject: &Digest,
    asked: Option<&str>,
) -> Result<Response, ApiError> {
    let filter = query(asked, "artifactType").filter(|filter| !filter.is_empty());
    let number = |n: String| n.parse::<usize>().ok().filter(|n| *n > 0);
    let wrong = || ApiError::bad("PAGINATION_NUMBER_INVALID", "n must be a number above 0");
    let count = query(asked, "n").map(|n| number(n).ok_or_else(wrong)).transpose()?;
    let places = places(state, name, subject, query(asked, "ns").as_deref())?;
    let last = query(asked, "last").unwrap_or_default();
    let mut rest = places.range::<str, _>((Bound::Excluded(last.as_str()), Bound::Unbounded)).peekable();
    let (mut entries, mut length, mut seen) = (Vec::new(), 0, None);
    for _ in 0..PAGE_LOOKS {
        if length >= PAGE_BYTES || entries.len() >= count.unwrap_or(usize::MAX) {
            break;
        }
        let Some((hex, place)) = rest.next() else { break };
        seen = Some(hex);
        let entry = match (place, &state.writable) {
            (Place::Held(entry), _) => Some(entry.clone()),
            (Place::Pushed(name), Some(store)) => {
                store.referrer(name, subject, hex).map_err(ApiError::disk)?
            }
            (Place::Pushed(_), None) => None,
        };
        let fits = |entry: &Value| filter.as_ref().is_none_or(|kind| entry["artifactType"] == *kind.as_str());
        if let Some(entry) = entry.filter(fits) {
            length += entry.to_string().len();
            entries.push(entry);
        }
    }
    let index = json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": entries});
    let mut response = bytes(StatusCode::OK, media_type::OCI_INDEX, index.to_string().into_bytes());
    if filter.is_some() {
        set(&mut response, FILTERS, "artifactType");
    }
    if let (Some(last), Some(_)) = (seen, rest.peek()) {
        let mut next = url::form_urlencoded::Serializer::new(String::new());
        for key in ["n", "ns", "artifactType"] {
            if let Some(value) = query(asked, key) {
                next.append_pair(key, &value);
            }
        }
        next.append_pair("last", last);
        set(
            &mut response,
            LINK,
            &format!("</v2/{name}/referrers/{subject}?{}>; rel=\"next\"", next.finish()),
        );
    }
    Ok(response)
}

/// The places of all entries, by the hex digits of their digests.
fn places(
    state: &State,
    name: &str,
    subject: &Digest,
    ns: Option<&str>,
) -> Result<BTreeMap<String, Place>, ApiError> {
    let mut places = BTreeMap::new();
    if let Some(store) = &state.writable {
        for name in pushed_names(name, ns) {
            for hex in store.referrers(&name, subject).map_err(ApiError::disk)? {
                places.insert(hex, Place::Pushed(name.clone()));
            }
        }
    }
    for repository in state.bundles.repositories(name, ns) {
        let read = |descriptor: &Descriptor| match state.blobs.stat(&descriptor.digest)? {
            Some(size) if size <= state.limits.manifest_bytes as u64 => {
                Ok(Some(state.blobs.read(descriptor)?))
            }
            _ => Ok(None),
        };
        for referrer in repository.referrers(subject, read)? {
            if let Some(digest) = referrer.entry["digest"].as_str() {
                let hex = digest.split_once(':').map_or(digest, |(_, hex)| hex);
                places.insert(hex.to_owned(), Place::Held(referrer.entry.clone()));
            }
        }
    }
    Ok(places)
}
