//! The reading half of the distribution API: manifests, blobs, tags, referrers, catalogue.

use super::app::App;
use super::catalogue::by_host;
use super::name::{Reference, Route, is_repository, query};
use super::referrers;
use super::reply::{Problem, Reply, bytes, set};
use crate::model::{Descriptor, Digest, media_type};
use axum::http::header::LINK;
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use serde_json::json;
use std::collections::BTreeSet;
use std::io;

/// Answers a GET or HEAD.
pub(super) fn read(app: &App, parts: &Parts, route: &Route) -> Result<Reply, Problem> {
    let asked = parts.uri.query();
    let ns = query(asked, "ns");
    let ns = ns.as_deref();
    let head = parts.method == Method::HEAD;
    match route {
        Route::Version => Ok(bytes(StatusCode::OK, "application/json", b"{}".to_vec())),
        Route::Catalog => {
            let mut names: BTreeSet<String> = app.catalogue.names().cloned().collect();
            if let Some(pushed) = &app.pushed {
                names.extend(pushed.names().map_err(disk)?);
            }
            let (names, link) = page(names, "/v2/_catalog", asked)?;
            Ok(listing(json!({"repositories": names}), link))
        }
        Route::Tags(name) => {
            let tags = tags(app, name, ns)?;
            let (tags, link) = page(tags, &format!("/v2/{name}/tags/list"), asked)?;
            Ok(listing(json!({"name": name, "tags": tags}), link))
        }
        Route::Manifest(name, reference) => {
            let descriptor = manifest(app, name, reference, ns)?;
            app.contents.reply(&descriptor.digest, &descriptor.media_type, &parts.headers, head).map_err(
                |problem| match problem.code {
                    "BLOB_UNKNOWN" => Problem::not_found(
                        "MANIFEST_UNKNOWN",
                        format!("the bundle names {} but does not hold it: it is partial", descriptor.digest),
                    ),
                    _ => problem,
                },
            )
        }
        Route::Blob(_, digest) => app.contents.reply(digest, media_type::OCTETS, &parts.headers, head),
        Route::Referrers(name, subject) => Ok(referrers::reply(referring(app, name, subject, ns)?, asked)),
        Route::Uploads(_) | Route::Upload(..) => Err(Problem::method("this is for pushing")),
    }
}

/// The manifest that `reference` means in the repository: of the bundles first, then of what was pushed.
fn manifest(app: &App, name: &str, reference: &Reference, ns: Option<&str>) -> Result<Descriptor, Problem> {
    let repositories = app.catalogue.repositories(name, ns);
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
    let mut known = !repositories.is_empty();
    if let Some(pushed) = &app.pushed {
        for name in pushed_names(name, ns) {
            let digest = match reference {
                Reference::Tag(tag) => pushed.tag(&name, tag).map_err(disk)?,
                Reference::Digest(digest) => Some(digest.clone()),
                Reference::Neither(_) => None,
            };
            let found = digest.map(|digest| pushed.manifest(&name, &digest)).transpose().map_err(disk)?;
            if let Some(descriptor) = found.flatten() {
                return Ok(descriptor);
            }
            known |= pushed.tags(&name).map_err(disk)?.is_some();
        }
    }
    let of = ns.map(|ns| format!(" of {ns}")).unwrap_or_default();
    Err(match (known, reference) {
        (false, _) => Problem::not_found("NAME_UNKNOWN", format!("there is no repository {name}{of} here")),
        (true, Reference::Tag(text) | Reference::Neither(text)) => {
            Problem::not_found("MANIFEST_UNKNOWN", format!("{name}{of} has no tag '{text}' here"))
        }
        (true, Reference::Digest(digest)) => {
            Problem::not_found("MANIFEST_UNKNOWN", format!("{name}{of} has no manifest {digest} here"))
        }
    })
}

fn tags(app: &App, name: &str, ns: Option<&str>) -> Result<BTreeSet<String>, Problem> {
    let repositories = app.catalogue.repositories(name, ns);
    let mut known = !repositories.is_empty();
    let mut tags: BTreeSet<String> =
        repositories.iter().flat_map(|repository| repository.tags().cloned()).collect();
    if let Some(pushed) = &app.pushed {
        for name in pushed_names(name, ns) {
            let more = pushed.tags(&name).map_err(disk)?;
            known |= more.is_some();
            tags.extend(more.into_iter().flatten());
        }
    }
    if known {
        Ok(tags)
    } else {
        Err(Problem::not_found("NAME_UNKNOWN", format!("there is no repository {name} here")))
    }
}

fn referring(
    app: &App,
    name: &str,
    subject: &Digest,
    ns: Option<&str>,
) -> Result<Vec<serde_json::Value>, Problem> {
    let mut entries = Vec::new();
    for repository in app.catalogue.repositories(name, ns) {
        let read = |descriptor: &Descriptor| match app.contents.find(&descriptor.digest) {
            Ok((place, size)) if size <= app.limits.manifest_bytes as u64 => {
                Ok(Some(place.read(descriptor)?))
            }
            Ok(_) | Err(crate::content::ContentError::Missing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        };
        entries.extend(repository.referrers(subject, read)?.iter().map(|referrer| referrer.entry.clone()));
    }
    if let Some(pushed) = &app.pushed {
        for name in pushed_names(name, ns) {
            entries.extend(pushed.referrers(&name, subject).map_err(disk)?);
        }
    }
    Ok(entries)
}

/// Under which names something may have been pushed that is asked for as `name` of `ns`: with the host in
/// front, or plainly, as into any registry that stands in for others.
fn pushed_names(name: &str, ns: Option<&str>) -> Vec<String> {
    let full = ns.map(|host| by_host(&host.to_ascii_lowercase(), name)).filter(|full| is_repository(full));
    full.into_iter().chain([name.to_owned()]).collect()
}

/// The part of `names` that `n` and `last` ask for, and the link to the next one.
fn page(
    names: BTreeSet<String>,
    path: &str,
    asked: Option<&str>,
) -> Result<(Vec<String>, Option<String>), Problem> {
    let last = query(asked, "last").unwrap_or_default();
    let count = query(asked, "n").map(|n| n.parse::<usize>()).transpose();
    let count = count.map_err(|_| Problem::bad("PAGINATION_NUMBER_INVALID", "n must be a number"))?;
    let count = count.unwrap_or(usize::MAX);
    let mut rest = names.into_iter().filter(|name| *name > last);
    let shown: Vec<String> = rest.by_ref().take(count).collect();
    let link = shown.last().filter(|_| rest.next().is_some()).map(|last| {
        let mut next = url::form_urlencoded::Serializer::new(String::new());
        next.append_pair("n", &count.to_string()).append_pair("last", last);
        if let Some(ns) = query(asked, "ns") {
            next.append_pair("ns", &ns);
        }
        format!("<{path}?{}>; rel=\"next\"", next.finish())
    });
    Ok((shown, link))
}

fn listing(document: serde_json::Value, link: Option<String>) -> Reply {
    let mut reply = bytes(StatusCode::OK, "application/json", document.to_string().into_bytes());
    if let Some(link) = link {
        set(&mut reply, LINK, &link);
    }
    reply
}

pub(super) fn disk(error: io::Error) -> Problem {
    Problem::internal(format!("the folder of --writable cannot be used: {error}"))
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
        assert_eq!(page(names.clone(), "/", Some("n=0")).unwrap(), (vec![], None));
        assert_eq!(page(names.clone(), "/", Some("n=5")).unwrap().1, None);
        assert_eq!(page(names.clone(), "/", Some("last=zz")).unwrap(), (vec![], None));
        assert!(page(names, "/", Some("n=-1")).is_err());
    }
}
