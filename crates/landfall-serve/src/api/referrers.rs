//! The referrers API (distribution-spec "Listing Referrers"): the manifests that refer to a
//! subject, in pages.

use crate::catalog::pushed_names;
use crate::response::{RequestError, ServerResponse, response_with_body, set_header};
use crate::route::query_value;
use crate::state::ServerState;
use http::StatusCode;
use http::header::{HeaderName, LINK};
use landfall_content::BlobRead;
use landfall_model::{Digest, JsonText, media_type};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Bound;

const FILTERS: HeaderName = HeaderName::from_static("oci-filters-applied");
/// A page ends when its entries have at least this many bytes: entries repeat the annotations of
/// their manifests, which may be large.
const PAGE_BYTES: usize = 256 << 10;
/// The maximum number of entries that one page examines: a filter may match few of them.
const MAX_EXAMINED: usize = 1000;

/// The location of a referrer's entry.
enum ReferrerSource<'a> {
    Bundle(&'a RawValue),
    /// Pushed to the repository with this name.
    Pushed(String),
}

/// An index of entries, whose annotations are passed on unchanged.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReferrersIndex<'a> {
    schema_version: u8,
    media_type: &'a str,
    manifests: Vec<Cow<'a, RawValue>>,
}

/// The page of referrers that `query` requests: an index of entries sorted by digest, each once.
/// `ns` is the source host of the repository.
pub(super) fn referrers_page(
    state: &ServerState,
    name: &str,
    subject: &Digest,
    ns: Option<&str>,
    query: Option<&str>,
) -> Result<ServerResponse, RequestError> {
    let artifact_type = query_value(query, "artifactType").filter(|filter| !filter.is_empty());
    let max_entries = max_entries(query)?;
    let sources = referrer_sources(state, name, subject, ns)?;
    let after = query_value(query, "last").unwrap_or_default();
    let mut rest = sources
        // continues after the last digest, not at a number: referrers may be added meanwhile
        .range::<str, _>((Bound::Excluded(after.as_str()), Bound::Unbounded))
        .peekable();
    let mut entries = Vec::new();
    let mut length = 0;
    let mut last = None;
    for _ in 0..MAX_EXAMINED {
        if length >= PAGE_BYTES || entries.len() >= max_entries {
            break;
        }
        let Some((hex, source)) = rest.next() else {
            break;
        };
        // the last examined entry, not the last listed one: a filter may match no entry of a page
        last = Some(hex);
        let Some(entry) = read_entry(state, subject, hex, source)? else {
            continue;
        };
        if let Some(artifact_type) = &artifact_type
            && !has_artifact_type(&entry, artifact_type)
        {
            continue;
        }
        length += entry.get().len();
        entries.push(entry);
    }
    let index = ReferrersIndex {
        schema_version: 2,
        media_type: media_type::OCI_INDEX,
        manifests: entries,
    };
    let index =
        serde_json::to_vec(&index).map_err(|error| RequestError::internal(error.to_string()))?;
    let mut response = response_with_body(StatusCode::OK, media_type::OCI_INDEX, index);
    if artifact_type.is_some() {
        // tells the client that it need not filter itself (distribution-spec "Listing Referrers")
        set_header(&mut response, FILTERS, "artifactType");
    }
    if let Some(last) = last
        && rest.peek().is_some()
    {
        let next = next_query(query, last);
        let link = format!("</v2/{name}/referrers/{subject}?{next}>; rel=\"next\"");
        set_header(&mut response, LINK, &link);
    }
    Ok(response)
}

/// The value of `n`. 0 is refused: a client would follow the links of empty pages forever.
fn max_entries(query: Option<&str>) -> Result<usize, RequestError> {
    let Some(n) = query_value(query, "n") else {
        return Ok(usize::MAX);
    };
    match n.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(RequestError::bad_request(
            "PAGINATION_NUMBER_INVALID",
            "n must be a number above 0",
        )),
    }
}

/// The query of the page after `last`.
fn next_query(query: Option<&str>, last: &str) -> String {
    let mut next = url::form_urlencoded::Serializer::new(String::new());
    for key in ["n", "ns", "artifactType"] {
        if let Some(value) = query_value(query, key) {
            next.append_pair(key, &value);
        }
    }
    next.append_pair("last", last);
    next.finish()
}

/// The entry of a referrer; `None` if it was deleted meanwhile.
fn read_entry<'a>(
    state: &ServerState,
    subject: &Digest,
    hex: &str,
    source: &ReferrerSource<'a>,
) -> Result<Option<Cow<'a, RawValue>>, RequestError> {
    match (source, &state.writable) {
        (ReferrerSource::Bundle(entry), _) => Ok(Some(Cow::Borrowed(*entry))),
        (ReferrerSource::Pushed(name), Some(store)) => {
            let entry = store
                .referrer(name, subject, hex)
                .map_err(RequestError::disk)?;
            Ok(entry.map(Cow::Owned))
        }
        (ReferrerSource::Pushed(_), None) => Ok(None),
    }
}

fn has_artifact_type(entry: &RawValue, artifact_type: &str) -> bool {
    let [found] = JsonText::new(entry.get()).members_if_object(["artifactType"]);
    found.and_then(JsonText::string).as_deref() == Some(artifact_type)
}

/// All referrers of the subject, by the hex digits of their digests. An entry of a bundle replaces
/// a pushed one.
fn referrer_sources<'a>(
    state: &'a ServerState,
    name: &str,
    subject: &Digest,
    ns: Option<&str>,
) -> Result<BTreeMap<String, ReferrerSource<'a>>, RequestError> {
    let mut sources = BTreeMap::new();
    if let Some(store) = &state.writable {
        for name in pushed_names(name, ns) {
            let referrers = store
                .referrers(&name, subject)
                .map_err(RequestError::disk)?;
            for hex in referrers {
                sources.insert(hex, ReferrerSource::Pushed(name.clone()));
            }
        }
    }
    // inserted last, so that entries of bundles replace pushed ones
    for repository in state.bundles.repositories(name, ns) {
        let referrers = repository.referrers(subject, |descriptor| {
            match state.blobs.stat(&descriptor.digest)? {
                Some(size) if size <= state.limits.manifest_bytes as u64 => {
                    Ok(Some(state.blobs.read(descriptor)?))
                }
                // missing from a partial bundle, or too large to be read into memory
                _ => Ok(None),
            }
        })?;
        for referrer in referrers {
            let source = ReferrerSource::Bundle(&referrer.entry);
            sources.insert(referrer.digest.hex(), source);
        }
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use crate::testing::{get, image, memory, start_at_site};
    use crate::{ServedBundle, ServedContent};
    use landfall_item::LockedReferrer;
    use landfall_item::lockfile::Lock;
    use landfall_model::{Digest, media_type};
    use std::sync::Arc;

    /// The content of a server: an image of quay.io, and a manifest that refers to it.
    fn served() -> ServedContent {
        let config = format!(
            "{{\"mediaType\":\"m\",\"digest\":\"{}\",\"size\":2}}",
            Digest::sha256(b"{}")
        );
        let head = format!(
            "{{\"schemaVersion\":2,\"mediaType\":\"{}\",\"config\":{config},\"layers\":[]",
            media_type::OCI_MANIFEST
        );
        let subject = format!("{head}}}").into_bytes();
        let mut image = image("quay.io/x/app:1", &subject);
        let referrer = format!(
            "{head},\"subject\":{{\"mediaType\":\"{}\",\"digest\":\"{}\",\"size\":{}}}}}",
            media_type::OCI_MANIFEST,
            image.digest,
            subject.len()
        )
        .into_bytes();
        image.referrers = Some(vec![LockedReferrer {
            digest: Digest::sha256(&referrer),
            size: referrer.len() as u64,
            media_type: media_type::OCI_MANIFEST.into(),
            tag: None,
            subject: Some(image.digest.clone()),
        }]);
        let blobs = Arc::new(memory(&[&subject, &referrer]));
        let bundle = ServedBundle {
            changes: None,
            registry: None,
            name: "b".into(),
            digest: None,
            missing: Vec::new(),
            signatures: Vec::new(),
            lock: Lock {
                version: 1,
                images: vec![image],
                ..Lock::default()
            },
            blobs: blobs.clone(),
        };
        ServedContent {
            bundles: vec![bundle],
            content: vec![blobs],
            ..ServedContent::default()
        }
    }

    #[test]
    fn referrers_are_found_by_the_host_of_the_request() {
        let site = "apiVersion: landfall/v1\nkind: Site\n\
                    registry: {address: 'r:5', paths: {quay.io: q}}\n";
        let server = start_at_site(site, served);
        let subject = served().bundles[0].lock.images[0].digest.clone();
        for (target, count) in [
            (format!("/v2/q/x/app/referrers/{subject}"), 1),
            (format!("/v2/x/app/referrers/{subject}?ns=quay.io"), 1),
            (format!("/v2/q/x/app/referrers/{subject}?ns=quay.io"), 1),
            (format!("/v2/q/x/app/referrers/{subject}?ns=ghcr.io"), 0),
            (format!("http://quay.io/v2/x/app/referrers/{subject}"), 1),
            (format!("http://ghcr.io/v2/x/app/referrers/{subject}"), 0),
        ] {
            let (status, body) = get(&server.address, &target, "");
            let body = String::from_utf8(body).unwrap();
            assert_eq!(status, 200, "{target}: {body}");
            assert_eq!(
                body.matches("\"digest\"").count(),
                count,
                "{target}: {body}"
            );
        }
    }
}
