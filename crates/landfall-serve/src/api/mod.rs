//! The handlers of the distribution API: reading, pushing and deleting.

mod blob_upload;
mod deletion;
mod manifest_upload;
mod referrers;

use self::referrers::referrers_page;
use crate::catalog::pushed_names;
use crate::response::{RequestError, ServerResponse, response_with_body, set_header};
use crate::route::{ManifestReference, RequestHosts, Route, query_value};
use crate::state::ServerState;
use http::StatusCode;
use http::header::LINK;
use http::request::Parts;
use landfall_content::BlobRead;
use landfall_model::{Descriptor, Digest, media_type};
use serde_json::json;
use std::collections::BTreeSet;

pub(crate) use self::blob_upload::{begin_upload, resume_upload};
pub(crate) use self::deletion::{clean_up, delete_blob, delete_manifest};
pub(crate) use self::manifest_upload::put_manifest;

/// How a GET or HEAD is answered.
pub(crate) enum ReadResult {
    /// With a response that is complete.
    Response(ServerResponse),
    /// With a blob or manifest.
    Blob { digest: Digest, media_type: String },
}

/// Handles GET and HEAD. A client that reaches this server under the name of a source host gets
/// the same response as a client that passes that host as containerd's parameter `ns`.
pub(crate) fn read(
    state: &ServerState,
    parts: &Parts,
    hosts: &RequestHosts,
    route: &Route,
) -> Result<ReadResult, RequestError> {
    let query = parts.uri.query();
    let ns = query_value(query, "ns")
        .or_else(|| hosts.host_of_images(&state.bundles).map(str::to_owned));
    let ns = ns.as_deref();
    match route {
        Route::Version => Ok(ReadResult::Response(json_response(json!({}), None))),
        Route::Catalog => {
            // a sorted set: a repository may be in a bundle and in the store, and pages need an
            // order
            let mut names: BTreeSet<String> = state.bundles.repository_names().cloned().collect();
            if let Some(store) = &state.writable {
                names.extend(store.repositories().map_err(RequestError::disk)?);
            }
            let (names, link) = paginate(names, "/v2/_catalog", query)?;
            let document = json!({"repositories": names});
            Ok(ReadResult::Response(json_response(document, link)))
        }
        Route::Tags(name) => {
            let tags = repository_tags(state, name, ns)?;
            let (tags, link) = paginate(tags, &format!("/v2/{name}/tags/list"), query)?;
            let document = json!({"name": name, "tags": tags});
            Ok(ReadResult::Response(json_response(document, link)))
        }
        Route::Manifest(name, reference) => {
            let descriptor = find_manifest(state, name, reference, ns)?;
            // the lock of a partial bundle names manifests that the bundle lacks
            if state.blobs.stat(&descriptor.digest)?.is_none() {
                return Err(RequestError::not_found(
                    "MANIFEST_UNKNOWN",
                    format!(
                        "the bundle is partial: it lacks the manifest {}",
                        descriptor.digest
                    ),
                ));
            }
            Ok(ReadResult::Blob {
                media_type: safe_media_type(&descriptor.media_type).to_owned(),
                digest: descriptor.digest,
            })
        }
        Route::Blob(_, digest) => {
            if let Some(store) = &state.writable {
                // a client that learns that the blob is here may skip pushing it
                store.blobs.protect(digest);
            }
            Ok(ReadResult::Blob {
                digest: digest.clone(),
                media_type: media_type::OCTETS.into(),
            })
        }
        Route::Referrers(name, subject) => Ok(ReadResult::Response(referrers_page(
            state, name, subject, ns, query,
        )?)),
        Route::Uploads(_) | Route::Upload(..) => Err(RequestError::method_not_allowed(
            "this resource is for pushing",
        )),
    }
}

/// The `Content-Type` of a manifest. An old lock or folder for pushes may contain any media type,
/// but no response may cause a browser to render a manifest.
fn safe_media_type(media_type: &str) -> &str {
    if media_type::may_be_manifest(media_type) {
        media_type
    } else {
        media_type::OCTETS
    }
}

/// Whether the server has a manifest of this name, with its content.
pub(crate) fn has_manifest(
    state: &ServerState,
    name: &str,
    reference: &ManifestReference,
    ns: Option<&str>,
) -> bool {
    let found = find_manifest(state, name, reference, ns);
    found.is_ok_and(|found| matches!(state.blobs.stat(&found.digest), Ok(Some(_))))
}

/// Resolves `reference` in the repository: first in the bundles; then, if it is a digest, in the
/// bundles that were served before; last in the pushed content.
fn find_manifest(
    state: &ServerState,
    name: &str,
    reference: &ManifestReference,
    ns: Option<&str>,
) -> Result<Descriptor, RequestError> {
    let repositories = state.bundles.repositories(name, ns);
    for repository in &repositories {
        let descriptor = match reference {
            ManifestReference::Tag(tag) => repository.tag(tag)?,
            ManifestReference::Digest(digest) => repository.manifest(digest),
            ManifestReference::Invalid(_) => None,
        };
        if let Some(descriptor) = descriptor {
            return Ok(descriptor.clone());
        }
    }
    // a client that resolved a tag before a refresh still pulls the old digest
    if let ManifestReference::Digest(digest) = reference {
        for repository in state.earlier.repositories(name, ns) {
            if let Some(descriptor) = repository.manifest(digest) {
                return Ok(descriptor.clone());
            }
        }
    }
    // the API has different errors for an unknown repository and an unknown manifest
    let mut is_known = !repositories.is_empty();
    if let Some(store) = &state.writable {
        for name in pushed_names(name, ns) {
            let digest = match reference {
                ManifestReference::Tag(tag) => store.tag(&name, tag).map_err(RequestError::disk)?,
                ManifestReference::Digest(digest) => Some(digest.clone()),
                ManifestReference::Invalid(_) => None,
            };
            if let Some(digest) = digest
                && let Some(descriptor) =
                    store.manifest(&name, &digest).map_err(RequestError::disk)?
            {
                return Ok(descriptor);
            }
            is_known |= store.tags(&name).map_err(RequestError::disk)?.is_some();
        }
    }
    Err(manifest_not_found(name, reference, ns, is_known))
}

fn manifest_not_found(
    name: &str,
    reference: &ManifestReference,
    ns: Option<&str>,
    is_known: bool,
) -> RequestError {
    let name = match ns {
        Some(ns) => format!("{name} of {ns}"),
        None => name.to_owned(),
    };
    if !is_known {
        return unknown_repository(&name);
    }
    let message = match reference {
        ManifestReference::Tag(tag) | ManifestReference::Invalid(tag) => {
            format!("{name} has no tag '{tag}' here")
        }
        ManifestReference::Digest(digest) => format!("{name} has no manifest {digest} here"),
    };
    RequestError::not_found("MANIFEST_UNKNOWN", message)
}

fn unknown_repository(name: &str) -> RequestError {
    RequestError::not_found(
        "NAME_UNKNOWN",
        format!("there is no repository {name} here"),
    )
}

/// The tags of a repository, in the bundles and in the pushed content.
fn repository_tags(
    state: &ServerState,
    name: &str,
    ns: Option<&str>,
) -> Result<BTreeSet<String>, RequestError> {
    let repositories = state.bundles.repositories(name, ns);
    let mut is_known = !repositories.is_empty();
    let mut tags: BTreeSet<String> = repositories
        .iter()
        .flat_map(|repository| repository.tags().cloned())
        .collect();
    if let Some(store) = &state.writable {
        for name in pushed_names(name, ns) {
            if let Some(pushed) = store.tags(&name).map_err(RequestError::disk)? {
                is_known = true;
                tags.extend(pushed);
            }
        }
    }
    if is_known {
        Ok(tags)
    } else {
        Err(unknown_repository(name))
    }
}

/// The page of `names` that the query parameters `n` and `last` request, and the link to the next
/// page.
fn paginate(
    names: BTreeSet<String>,
    path: &str,
    query: Option<&str>,
) -> Result<(Vec<String>, Option<String>), RequestError> {
    let last = query_value(query, "last").unwrap_or_default();
    let count = match query_value(query, "n") {
        None => usize::MAX,
        Some(n) => n.parse().map_err(|_| {
            RequestError::bad_request("PAGINATION_NUMBER_INVALID", "n must be a number")
        })?,
    };
    let mut rest = names.into_iter().filter(|name| *name > last);
    let page: Vec<String> = rest.by_ref().take(count).collect();
    // one name more than requested, so that the last page has no link to an empty one
    let has_more = rest.next().is_some();
    let Some(last) = page.last().filter(|_| has_more) else {
        return Ok((page, None));
    };
    let mut next = url::form_urlencoded::Serializer::new(String::new());
    next.append_pair("n", &count.to_string())
        .append_pair("last", last);
    // without `ns`, the next page could list another repository
    if let Some(ns) = query_value(query, "ns") {
        next.append_pair("ns", &ns);
    }
    let link = format!("<{path}?{}>; rel=\"next\"", next.finish());
    Ok((page, Some(link)))
}

fn json_response(document: serde_json::Value, link: Option<String>) -> ServerResponse {
    let body = document.to_string().into_bytes();
    let mut response = response_with_body(StatusCode::OK, "application/json", body);
    if let Some(link) = link {
        set_header(&mut response, LINK, &link);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_cover_all_names_in_order() {
        let names: BTreeSet<String> = ["a", "b", "c", "d", "e"].map(String::from).into();
        let mut seen = Vec::new();
        let mut query = "n=2&ns=quay.io".to_owned();
        loop {
            let (page, link) = paginate(names.clone(), "/v2/x/tags/list", Some(&query)).unwrap();
            seen.extend(page);
            let Some(link) = link else { break };
            assert!(
                link.starts_with("</v2/x/tags/list?n=2&last=") && link.contains("&ns=quay.io>"),
                "{link}"
            );
            query = link[link.find('?').unwrap() + 1..link.find('>').unwrap()].to_owned();
        }
        assert_eq!(seen, ["a", "b", "c", "d", "e"]);
        let all = paginate(names.clone(), "/", None).unwrap();
        assert_eq!((all.0.len(), all.1), (5, None));
        assert_eq!(
            paginate(names.clone(), "/", Some("n=0")).unwrap(),
            (vec![], None)
        );
        assert_eq!(paginate(names.clone(), "/", Some("n=5")).unwrap().1, None);
        assert_eq!(
            paginate(names.clone(), "/", Some("last=zz")).unwrap(),
            (vec![], None)
        );
        assert!(paginate(names, "/", Some("n=-1")).is_err());
    }
}
