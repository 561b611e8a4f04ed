//! Requests for packages: the words of `dnf install`, in which `@NAME` stands for the packages of a
//! group or of a module's profile.

use super::groups::{GroupPackage, Groups};
use super::modules::{ActiveModules, ModuleRequest, Modules};
use super::pool::Pool;
use std::collections::{BTreeMap, BTreeSet};

/// A request for one package, or for the packages that a word with wildcards names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageRequest {
    /// The request as messages name it: the word, or the group or module and the package.
    pub(super) label: String,
    pub(super) wanted: WantedPackages,
}

/// The packages that satisfy a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WantedPackages {
    /// Those that the word names, in any form that `dnf install` accepts.
    Word(String),
    /// Those that a group names.
    OfGroup(GroupPackage),
    /// Those with this name, and one of these as `name-epoch:version-release.arch`. If none of them
    /// exists, those with this name.
    OfModule(String, BTreeSet<String>),
}

impl From<&str> for PackageRequest {
    /// The request that a word without `@` makes.
    fn from(word: &str) -> PackageRequest {
        PackageRequest {
            label: word.to_owned(),
            wanted: WantedPackages::Word(word.to_owned()),
        }
    }
}

/// The requests of a list of words.
#[derive(Debug, Default)]
pub(super) struct ExpandedRequests {
    pub(super) requests: Vec<PackageRequest>,
    /// The packages that no source has, by the group that lists them.
    pub(super) skipped: BTreeMap<String, BTreeSet<String>>,
    /// Why some of the words name no group, module or profile.
    pub(super) reasons: Vec<String>,
}

/// The requests of `install`, in the order in which dnf makes them: those of modules, those of
/// packages, and those of groups. `requested` are the requests for modules, which are active.
/// `hotfixes` says for each source whether module streams hide none of its packages.
pub(super) fn expand(
    install: &[String],
    requested: &[ModuleRequest<'_>],
    (modules, active): (&Modules, &ActiveModules),
    (groups, hotfixes): (&Groups, &[bool]),
    pool: &Pool,
) -> ExpandedRequests {
    let mut expanded = ExpandedRequests::default();
    for request in requested {
        match modules.profile_packages(request, active) {
            Ok((names, artifacts)) => {
                let mut artifacts: BTreeSet<String> =
                    artifacts.into_iter().map(str::to_owned).collect();
                // as in dnf, hotfixes can replace the packages of a stream
                let fixes = pool.ids().filter(|id| {
                    let source = pool.package(*id).source.map(usize::from);
                    let is_hotfix = source.and_then(|source| hotfixes.get(source)) == Some(&true);
                    is_hotfix && names.contains(pool.name(*id))
                });
                artifacts.extend(fixes.map(|id| pool.full_name(id)));
                expanded
                    .requests
                    .extend(names.into_iter().map(|name| PackageRequest {
                        label: format!("@{}: {name}", request.word),
                        wanted: WantedPackages::OfModule(name.to_owned(), artifacts.clone()),
                    }));
            }
            Err(why) => expanded.reasons.push(why),
        }
    }
    let is_module = |word: &str| requested.iter().any(|request| request.word == word);
    let group_words: Vec<&str> = install
        .iter()
        .filter_map(|word| word.strip_prefix('@'))
        .collect();
    let words = install.iter().filter(|word| !word.starts_with('@'));
    expanded
        .requests
        .extend(words.map(|word| PackageRequest::from(word.as_str())));
    // one pass over the packages, because the pool has no index yet
    let mut names: BTreeSet<&str> = BTreeSet::new();
    if !group_words.is_empty() {
        names.extend(pool.ids().map(|id| pool.name(id)));
    }
    for word in group_words.into_iter().filter(|word| !is_module(word)) {
        match groups.packages(word) {
            Ok(packages) => {
                for package in packages {
                    let name = &package.name;
                    if names.contains(name.as_str()) {
                        expanded.requests.push(PackageRequest {
                            label: format!("@{word}: {name}"),
                            wanted: WantedPackages::OfGroup(package),
                        });
                    } else if package.requires.is_none() {
                        let skipped = expanded.skipped.entry(word.to_owned()).or_default();
                        skipped.insert(package.name);
                    }
                }
            }
            Err(why) => expanded.reasons.push(why),
        }
    }
    expanded
}
