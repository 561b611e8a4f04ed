//! The hosts of items that are not locked, because that failed or because there is no lock yet:
//! their names contain the host that `lock` requests, which a firewall may refuse.

use super::host::SourceKind;
use super::pattern::EgressPattern;
use super::url_source;
use landfall_content::registry::RegistrySessions;
use landfall_item::lockfile::{Lock, UnresolvedItem};
use landfall_item::manifest::{MergedManifest, UpdatableVersion};
use landfall_item::{ChartName, VersionSource};
use landfall_model::ImageRef;
use landfall_model::document::VersionsFrom;
use landfall_model::report::EntryKind;
use std::collections::BTreeSet;
use url::Url;

/// What `landfall update` requests besides the items of manifests.
#[derive(Debug, Default)]
pub(crate) struct UpdateSources {
    /// The versions with an update policy, each with its source.
    pub(crate) versions: Vec<UpdatableVersion>,
    /// The URLs of lists and of TUF repositories.
    pub(crate) urls: Vec<String>,
}

/// Returns a lock in which every item of the manifests is unresolved, and every source of
/// `landfall update` is an item too.
pub(crate) fn unresolved_lock(manifest: &MergedManifest, updates: UpdateSources) -> Lock {
    let item = |kind, name: String| UnresolvedItem {
        kind,
        name,
        cause: "not requested yet".into(),
    };
    let mut lock = Lock {
        endpoints: manifest.endpoints.clone(),
        ..Lock::default()
    };
    let mut urls = BTreeSet::new();
    for summary in manifest.requests.summaries() {
        urls.extend(summary.further_urls.iter().map(|url| (*url).to_owned()));
        if !summary.is_local {
            lock.unresolved.push(item(summary.kind, summary.name));
        }
    }
    for version in updates.versions {
        match version.versions {
            Ok(VersionSource::Tags { image, .. }) => {
                lock.unresolved
                    .push(item(EntryKind::Image, image.to_string()));
            }
            Ok(VersionSource::Provider(address)) => {
                urls.insert(format!("https://{}/", address.host));
            }
            Ok(VersionSource::Chart(chart)) => {
                urls.insert(chart.repo);
            }
            Ok(VersionSource::GitTags(url)) => {
                urls.insert(url);
            }
            Ok(VersionSource::Document(from)) => {
                urls.insert(match from {
                    VersionsFrom::Text(url) => url,
                    VersionsFrom::Json(json) => json.url,
                    VersionsFrom::Chart(chart) => chart.repo,
                });
            }
            // the package repositories are those of an item
            Ok(VersionSource::Packages(_)) | Err(_) => {}
        }
    }
    urls.extend(updates.urls);
    let urls = urls.into_iter().map(|url| item(EntryKind::File, url));
    lock.unresolved.extend(urls);
    lock
}

/// The host that `lock` requests for an item: its URL, which may be that of a mirror, its name and
/// its kind. Returns `None` if the name of the item contains no host.
pub(super) fn unresolved_source(
    item: &UnresolvedItem,
    sessions: &RegistrySessions,
) -> Option<(Url, String, SourceKind)> {
    let (url, name, kind) = match NamedSource::of(item)? {
        NamedSource::Registry(name) => {
            let url = sessions.expected_url(&name).ok()?;
            (url, name, SourceKind::Registry)
        }
        NamedSource::Url(url, kind) => url_source(&url, kind, sessions).ok()?,
    };
    // the item has failed already, so a host that no rule can contain is not an error
    EgressPattern::exact(url.host_str()?).ok()?;
    Some((url, name, kind))
}

/// The source that the name of an item contains.
#[derive(Debug, PartialEq, Eq)]
enum NamedSource {
    /// A registry, as references write it.
    Registry(String),
    Url(String, SourceKind),
}

impl NamedSource {
    fn of(item: &UnresolvedItem) -> Option<NamedSource> {
        let name = &item.name;
        match item.kind {
            EntryKind::Image => Some(NamedSource::Registry(
                name.parse::<ImageRef>().ok()?.registry,
            )),
            EntryKind::Chart => {
                let chart = ChartName::try_from(name.clone()).ok()?;
                Some(match chart.repository {
                    Some(url) => NamedSource::Url(url, SourceKind::Index),
                    None => NamedSource::Registry(chart.reference.registry),
                })
            }
            EntryKind::Provider => {
                let (_, address) = name.split_once(':')?;
                let host = address.split('/').next()?;
                Some(NamedSource::Url(
                    format!("https://{host}/"),
                    SourceKind::Index,
                ))
            }
            _ => {
                // names of packages and git repositories have a prefix, such as `apt:` or `git+`
                let (before, _) = name.split_once("://")?;
                let scheme = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next()?;
                let start = before.len() - scheme.len();
                Some(NamedSource::Url(
                    name[start..].to_owned(),
                    SourceKind::Files,
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_all_kinds_contain_their_hosts() {
        let source = |kind, name: &str| {
            NamedSource::of(&UnresolvedItem {
                kind,
                name: name.into(),
                cause: "403".into(),
            })
        };
        let registry = |host: &str| Some(NamedSource::Registry(host.into()));
        let url = |url: &str, kind| Some(NamedSource::Url(url.into(), kind));
        assert_eq!(
            source(EntryKind::Image, "quay.io/a/b:1"),
            registry("quay.io")
        );
        assert_eq!(
            source(EntryKind::Chart, "oci://quay.io/charts/app:1.2.3"),
            registry("quay.io")
        );
        assert_eq!(
            source(EntryKind::Chart, "helm+https://charts.test/x/app:1.2.3"),
            url("https://charts.test/x", SourceKind::Index)
        );
        assert_eq!(
            source(EntryKind::Provider, "provider:registry.test/a/b:1.2.3"),
            url("https://registry.test/", SourceKind::Index)
        );
        for (kind, name, wanted) in [
            (
                EntryKind::File,
                "https://dl.test/?of=http://x",
                "https://dl.test/?of=http://x",
            ),
            (
                EntryKind::Package,
                "apt:https://apt.test/dists/jammy",
                "https://apt.test/dists/jammy",
            ),
            (
                EntryKind::Git,
                "git+http://git.test:3000/a.git",
                "http://git.test:3000/a.git",
            ),
        ] {
            assert_eq!(source(kind, name), url(wanted, SourceKind::Files));
        }
        assert_eq!(source(EntryKind::Package, "tools of the nodes"), None);
    }
}
