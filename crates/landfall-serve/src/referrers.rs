//! The referrers API (distribution-spec "Listing Referrers"): what refers to a manifest, page by
//! page.

use super::repository::pushed_names;
use super::response::{ApiError, Response, bytes, set};
use super::route::query;
use super::state::State;
use axum::http::StatusCode;
use axum::http::header::{HeaderName, LINK};
use landfall_content::BlobRead;
use landfall_model::{Descriptor, Digest, media_type};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Bound;

const FILTERS: HeaderName = HeaderName::from_static("oci-filters-applied");
/// A page ends with the entry that fills so many bytes: entries have the annotations of their
/// manifests.
const PAGE_BYTES: usize = 256 << 10;
/// Entries that a page looks at, at most, for those that the filter lets through.
const PAGE_LOOKS: usize = 1000;

/// Where an entry is.
enum Place<'a> {
    /// In a bundle.
    Held(&'a RawValue),
    /// Pushed to the repository of this name.
    Pushed(String),
}

/// An index of entries, whose annotations are passed on as they are.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Index<'a> {
    schema_version: u8,
    media_type: &'a str,
    manifests: Vec<Cow<'a, RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Typed {
    artifact_type: Option<String>,
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
    let count = query(asked, "n")
        .map(|n| number(n).ok_or_else(wrong))
        .transpose()?;
    let places = places(state, name, subject, query(asked, "ns").as_deref())?;
    let last = query(asked, "last").unwrap_or_default();
    let mut rest = places
        .range::<str, _>((Bound::Excluded(last.as_str()), Bound::Unbounded))
        .peekable();
    let (mut entries, mut length, mut seen) = (Vec::new(), 0, None);
    for _ in 0..PAGE_LOOKS {
        if length >= PAGE_BYTES || entries.len() >= count.unwrap_or(usize::MAX) {
            break;
        }
        let Some((hex, place)) = rest.next() else {
            break;
        };
        seen = Some(hex);
        let entry = match (place, &state.writable) {
            (Place::Held(entry), _) => Some(Cow::Borrowed(*entry)),
            (Place::Pushed(name), Some(store)) => store
                .referrer(name, subject, hex)
                .map_err(ApiError::disk)?
                .map(Cow::Owned),
            (Place::Pushed(_), None) => None,
        };
        let fits = |entry: &Cow<'_, RawValue>| match &filter {
            None => true,
            Some(kind) => serde_json::from_str::<Typed>(entry.get())
                .is_ok_and(|entry| entry.artifact_type.as_ref() == Some(kind)),
        };
        if let Some(entry) = entry.filter(fits) {
            length += entry.get().len();
            entries.push(entry);
        }
    }
    let index = Index {
        schema_version: 2,
        media_type: media_type::OCI_INDEX,
        manifests: entries,
    };
    let index =
        serde_json::to_vec(&index).map_err(|error| ApiError::internal(error.to_string()))?;
    let mut response = bytes(StatusCode::OK, media_type::OCI_INDEX, index);
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
            &format!(
                "</v2/{name}/referrers/{subject}?{}>; rel=\"next\"",
                next.finish()
            ),
        );
    }
    Ok(response)
}

/// The places of all entries, by the hex digits of their digests.
fn places<'a>(
    state: &'a State,
    name: &str,
    subject: &Digest,
    ns: Option<&str>,
) -> Result<BTreeMap<String, Place<'a>>, ApiError> {
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
            places.insert(referrer.digest.hex(), Place::Held(&referrer.entry));
        }
    }
    Ok(places)
}
