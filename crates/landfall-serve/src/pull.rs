//! The reading half of the distribution API: manifests, blobs, tags, referrers, and the catalog of
//! repositories.

use super::origin::Hosts;
use super::referrers;
use super::repository::pushed_names;
use super::response::{ApiError, Response, bytes, set};
use super::route::{Reference, Route, query};
use super::state::State;
use axum::http::StatusCode;
use axum::http::header::LINK;
use axum::http::request::Parts;
use landfall_content::BlobRead;
use landfall_model::{Descriptor, Digest, media_type};
use serde_json::json;
use std::collections::BTreeSet;

/// What a GET or HEAD asks for.
pub(super) enum Answer {
    /// A response that is whole.
    Ready(Response),
    /// A blob or a manifest, with its media type.
    Content(Digest, String),
}

/// Answers a GET or HEAD. A client that reaches this server by the name of a source host asks as
/// one that names it by containerd's parameter.
pub(super) fn read(
    state: &State,
    parts: &Parts,
    hosts: &Hosts,
    route: &Route,
) -> Result<Answer, ApiError> {
    let asked = parts.uri.query();
    let ns = query(asked, "ns").or_else(|| hosts.of_images(state).map(str::to_owned));
    let ns = ns.as_deref();
    match route {
        Route::Version => Ok(Answer::Ready(bytes(
            StatusCode::OK,
            "application/json",
            b"{}".to_vec(),
        ))),
        Route::Catalog => {
            let mut names: BTreeSet<String> = state.bundles.repository_names().cloned().collect();
            if let Some(store) = &state.writable {
                names.extend(store.repositories().map_err(ApiError::disk)?);
            }
            let (names, link) = page(names, "/v2/_catalog", asked)?;
            Ok(Answer::Ready(listing(json!({"repositories": names}), link)))
        }
        Route::Tags(name) => {
            let tags = tags(state, name, ns)?;
            let (tags, link) = page(tags, &format!("/v2/{name}/tags/list"), asked)?;
            Ok(Answer::Ready(listing(
                json!({"name": name, "tags": tags}),
                link,
            )))
        }
        Route::Manifest(name, reference) => {
            let descriptor = manifest(state, name, reference, ns)?;
            match state.blobs.stat(&descriptor.digest)? {
                Some(_) => {
                    let kind = sent_type(&descriptor.media_type).to_owned();
                    Ok(Answer::Content(descriptor.digest, kind))
                }
                None => Err(ApiError::not_found(
                    "MANIFEST_UNKNOWN",
                    format!(
                        "the bundle names {} but does not hold it: it is partial",
                        descriptor.digest
                    ),
                )),
            }
        }
        Route::Blob(_, digest) => {
            if let Some(store) = &state.writable {
                // a push may leave out what it is told to be here
                store.blobs.tell(digest);
            }
            Ok(Answer::Content(digest.clone(), media_type::OCTETS.into()))
        }
        Route::Referrers(name, subject) => {
            Ok(Answer::Ready(referrers::page(state, name, subject, asked)?))
        }
        Route::Uploads(_) | Route::Upload(..) => Err(ApiError::method("this is for pushing")),
    }
}

/// The `Content-Type` of a manifest. An old lock or folder for pushes may name any media type,
/// which its author chose: one that is no manifest's is not passed on to browsers.
fn sent_type(media_type: &str) -> &str {
    if media_type::is_manifest(media_type) {
        media_type
    } else {
        media_type::OCTETS
    }
}

/// The manifest that `reference` names in the repository: in the bundles first, then among what was
/// pushed.
fn manifest(
    state: &State,
    name: &str,
    reference: &Reference,
    ns: Option<&str>,
) -> Result<Descriptor, ApiError> {
    let repositories = state.bundles.repositories(name, ns);
    for repository in &repositories {
        let held = match reference {
            Reference::Tag(tag) => repository.tag(tag)?,
            Reference::Digest(digest) => repository.manifest(digest),
            Reference::Neither(_) => None,
        };
        if let Some(descriptor) = held {
            return Ok(descriptor.clone());
        }
    }
    let earlier = state.earlier.repositories(name, ns);
    if let Reference::Digest(digest) = reference
        && let Some(held) = earlier
            .iter()
            .find_map(|repository| repository.manifest(digest))
    {
        return Ok(held.clone());
    }
    let mut known = !repositories.is_empty();
    if let Some(store) = &state.writable {
        for name in pushed_names(name, ns) {
            let digest = match reference {
                Reference::Tag(tag) => store.tag(&name, tag).map_err(ApiError::disk)?,
                Reference::Digest(digest) => Some(digest.clone()),
                Reference::Neither(_) => None,
            };
            let found = digest
                .map(|digest| store.manifest(&name, &digest))
                .transpose()
                .map_err(ApiError::disk)?;
            if let Some(descriptor) = found.flatten() {
                return Ok(descriptor);
            }
            known |= store.tags(&name).map_err(ApiError::disk)?.is_some();
        }
    }
    let of = ns.map(|ns| format!(" of {ns}")).unwrap_or_default();
    Err(match (known, reference) {
        (false, _) => ApiError::not_found(
            "NAME_UNKNOWN",
            format!("there is no repository {name}{of} here"),
        ),
        (true, Reference::Tag(text) | Reference::Neither(text)) => ApiError::not_found(
            "MANIFEST_UNKNOWN",
            format!("{name}{of} has no tag '{text}' here"),
        ),
        (true, Reference::Digest(digest)) => ApiError::not_found(
            "MANIFEST_UNKNOWN",
            format!("{name}{of} has no manifest {digest} here"),
        ),
    })
}

fn tags(state: &State, name: &str, ns: Option<&str>) -> Result<BTreeSet<String>, ApiError> {
    let repositories = state.bundles.repositories(name, ns);
    let mut known = !repositories.is_empty();
    let mut tags: BTreeSet<String> = repositories
        .iter()
        .flat_map(|repository| repository.tags().cloned())
        .collect();
    if let Some(store) = &state.writable {
        for name in pushed_names(name, ns) {
            let more = store.tags(&name).map_err(ApiError::disk)?;
            known |= more.is_some();
            tags.extend(more.into_iter().flatten());
        }
    }
    if known {
        Ok(tags)
    } else {
        Err(ApiError::not_found(
            "NAME_UNKNOWN",
            format!("there is no repository {name} here"),
        ))
    }
}

/// The page of `names` that the query's `n` and `last` ask for, and the link to the next page.
fn page(
    names: BTreeSet<String>,
    path: &str,
    asked: Option<&str>,
) -> Result<(Vec<String>, Option<String>), ApiError> {
    let last = query(asked, "last").unwrap_or_default();
    let count = query(asked, "n").map(|n| n.parse::<usize>()).transpose();
    let count =
        count.map_err(|_| ApiError::bad("PAGINATION_NUMBER_INVALID", "n must be a number"))?;
    let count = count.unwrap_or(usize::MAX);
    let mut rest = names.into_iter().filter(|name| *name > last);
    let shown: Vec<String> = rest.by_ref().take(count).collect();
    let link = shown.last().filter(|_| rest.next().is_some()).map(|last| {
        let mut next = url::form_urlencoded::Serializer::new(String::new());
        next.append_pair("n", &count.to_string())
            .append_pair("last", last);
        if let Some(ns) = query(asked, "ns") {
            next.append_pair("ns", &ns);
        }
        format!("<{path}?{}>; rel=\"next\"", next.finish())
    });
    Ok((shown, link))
}

fn listing(document: serde_json::Value, link: Option<String>) -> Response {
    let mut response = bytes(
        StatusCode::OK,
        "application/json",
        document.to_string().into_bytes(),
    );
    if let Some(link) = link {
        set(&mut response, LINK, &link);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_on_each_other_to_the_end() {
        let names: BTreeSet<String> = ["a", "b", "c", "d", "e"].map(String::from).into();
        let mut seen = Vec::new();
        let mut asked = "n=2&ns=quay.io".to_owned();
        loop {
            let (shown, link) = page(names.clone(), "/v2/x/tags/list", Some(&asked)).unwrap();
            seen.extend(shown);
            let Some(link) = link else { break };
            assert!(
                link.starts_with("</v2/x/tags/list?n=2&last=") && link.contains("&ns=quay.io>"),
                "{link}"
            );
            asked = link[link.find('?').unwrap() + 1..link.find('>').unwrap()].to_owned();
        }
        assert_eq!(seen, ["a", "b", "c", "d", "e"]);
        let all = page(names.clone(), "/", None).unwrap();
        assert_eq!((all.0.len(), all.1), (5, None));
        assert_eq!(
            page(names.clone(), "/", Some("n=0")).unwrap(),
            (vec![], None)
        );
        assert_eq!(page(names.clone(), "/", Some("n=5")).unwrap().1, None);
        assert_eq!(
            page(names.clone(), "/", Some("last=zz")).unwrap(),
            (vec![], None)
        );
        assert!(page(names, "/", Some("n=-1")).is_err());
    }
}
