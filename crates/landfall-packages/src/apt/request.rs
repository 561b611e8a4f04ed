//! Install requests in the syntax of `apt-get install`: `name`, `name:arch`, `name=version`,
//! `name/suite`.

use super::marking::{MarkedVersion, Marking};
use super::relation::VersionOperator;
use super::universe::{AptPackageId, AptRelation, AptVersionId, ArchQualifier, Universe};
use landfall_model::report::and_more;
use landfall_model::{Wildcards, split_optional};
use std::ops::Range;

/// The maximum number of providers of a virtual package that a message lists.
const LISTED_PROVIDERS: usize = 10;

/// A parsed request for a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InstallRequest<'r> {
    name: &'r str,
    arch: Option<&'r str>,
    /// A version pattern, in which `*` matches any text.
    version: Option<&'r str>,
    suite: Option<&'r str>,
}

/// The package and version that an [`InstallRequest`] resolves to.
pub(super) struct ResolvedRequest {
    pub(super) package: AptPackageId,
    /// The requested version; `None` if the request names neither a version nor a suite.
    pub(super) version: Option<AptVersionId>,
    /// Whether the version was selected by its suite (`name/suite`).
    pub(super) is_of_suite: bool,
}

/// Whether `text` is a valid install request.
pub fn is_request(text: &str) -> bool {
    let request = InstallRequest::parse(text);
    is_package_name(request.name)
        && [request.arch, request.version, request.suite]
            .into_iter()
            .flatten()
            .all(|word| {
                !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || c.is_control())
            })
}

/// Debian Policy 5.6.1: lower case letters, digits, `+`, `-` and `.`, at least two characters, of
/// which the first is a letter or a digit.
fn is_package_name(text: &str) -> bool {
    text.len() > 1
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte)
        })
}

/// Returns the name in `text` (with its architecture, if any) and the byte range of its version;
/// `None` if it has no version, or the version is a pattern.
pub fn pinned_version(text: &str) -> Option<(&str, Range<usize>)> {
    let (name, version) = text.split_once('=').filter(|_| is_request(text))?;
    (!version.contains('*')).then_some((name, name.len() + 1..text.len()))
}

impl InstallRequest<'_> {
    pub(super) fn parse(text: &str) -> InstallRequest<'_> {
        let (text, version) = split_optional(text, '=');
        // `name=version` has no suite: a slash in front of `=` makes the name invalid
        let (text, suite) = match text.split_once('/').filter(|_| version.is_none()) {
            Some((text, suite)) => (text, Some(suite)),
            None => (text, None),
        };
        let (name, arch) = split_optional(text, ':');
        InstallRequest {
            name,
            arch,
            version,
            suite,
        }
    }

    /// Resolves the request in `universe`. For each source, `suites` has the names of its suite.
    pub(super) fn resolve(
        &self,
        universe: &Universe<'_>,
        suites: &[Vec<String>],
    ) -> Result<ResolvedRequest, String> {
        let name = self.name;
        // `any` is not an architecture: for `name:any`, apt selects the package `name` if it is
        // `Multi-Arch: allowed`
        let arch = self.arch.filter(|arch| *arch != "any");
        let package = match universe.find(name, arch) {
            Some(package) if arch == self.arch || universe.allows_any(package) => package,
            Some(_) => {
                return Err(format!(
                    "no source has {name} with `Multi-Arch: allowed`; request {name}"
                ));
            }
            None => self.only_provider(universe)?,
        };
        // versions are sorted, so the first match is the highest
        let all = &universe.packages[package as usize].versions;
        let version = if let Some(pattern) = self.version {
            let texts: Vec<&str> = all
                .iter()
                .map(|version| universe.offer_of(*version).version)
                .collect();
            let found = texts
                .iter()
                .position(|text| Wildcards::STAR.matches(pattern, text));
            let found = found.ok_or_else(|| {
                format!(
                    "no source has {name} {pattern}; the sources have {}",
                    texts.join(", ")
                )
            })?;
            Some(all[found])
        } else if let Some(suite) = self.suite {
            let found = all
                .iter()
                .find(|version| self.is_of_suite(universe, suites, **version));
            Some(*found.ok_or_else(|| format!("the suite {suite} has no {name}"))?)
        } else {
            None
        };
        Ok(ResolvedRequest {
            package,
            version,
            is_of_suite: self.version.is_none() && self.suite.is_some(),
        })
    }

    /// Whether one of the sources of a version has the requested suite.
    pub(super) fn is_of_suite(
        &self,
        universe: &Universe<'_>,
        suites: &[Vec<String>],
        version: AptVersionId,
    ) -> bool {
        // several suites may list one version: it belongs to each of them
        let mut names = universe
            .sources_of(version)
            .filter_map(|at| suites.get(at as usize))
            .flatten();
        self.suite
            .is_some_and(|suite| names.any(|name| name == suite))
    }

    /// Returns the only package that provides the requested name. If several do, apt does not
    /// choose one of them.
    fn only_provider(&self, universe: &Universe<'_>) -> Result<AptPackageId, String> {
        let name = self.name;
        let mut all = universe.providers_named(name);
        // a package with several versions provides the name several times
        all.sort_unstable();
        all.dedup();
        match all[..] {
            [only] => Ok(only),
            [] => Err(format!("no source has {name}")),
            _ => {
                let mut names: Vec<&str> = all
                    .iter()
                    .map(|package| universe.text(universe.packages[*package as usize].name))
                    .collect();
                names.sort_unstable();
                names.dedup();
                let few = names[..names.len().min(LISTED_PROVIDERS)].join(", ");
                let more = and_more(names.len().saturating_sub(LISTED_PROVIDERS));
                Err(format!(
                    "{name} is a virtual package, provided by {few}{more}; request one of them"
                ))
            }
        }
    }
}

// Requests of the form `name/suite`: apt takes the package from that suite, and also its
// dependencies if the other candidates cannot satisfy them on the machine as it is.

/// If more packages than this have been changed when a package is visited, its dependencies are not
/// followed. This limits the depth of the recursion.
const DEPTH: usize = 300;
/// The maximum number of visited packages. Alternatives that fail are visited again, so without a
/// limit a hostile index could make the search take exponential time.
const VISITS: u32 = 100_000;

/// The suite of a request, and the state of the search for it.
pub(super) struct SuitePreference<'a> {
    is_in_suite: &'a dyn Fn(AptVersionId) -> bool,
    /// The packages whose candidate is now from the suite, the requested one first.
    changed: Vec<AptPackageId>,
    visits: u32,
}

impl SuitePreference<'_> {
    pub(super) fn new(is_in_suite: &dyn Fn(AptVersionId) -> bool) -> SuitePreference<'_> {
        SuitePreference {
            is_in_suite,
            changed: Vec::new(),
            visits: 0,
        }
    }
}

impl<'t> Marking<'_, 't> {
    /// Makes `version` the candidate of its package. If the candidates do not satisfy a dependency
    /// of `version`, the suite's version of the needed package becomes the candidate of that
    /// package. Returns whether all critical dependencies can be satisfied. At the first one that
    /// cannot, apt stops and keeps the candidates that it has set so far.
    pub(super) fn prefer_from_suite(
        &mut self,
        version: AptVersionId,
        suite: &mut SuitePreference<'_>,
    ) -> bool {
        self.set_candidate(version);
        suite.changed.push(self.universe.offer_of(version).package);
        suite.visits += 1;
        let before = suite.changed.len();
        for group in self.groups(version) {
            let is_dependency = !group[0].is_negative() && self.is_followed(&group[0]);
            if !is_dependency
                || before > DEPTH
                || suite.visits > VISITS
                || self.candidates_satisfy(group, version)
            {
                continue;
            }
            if !self.prefer_alternative(group, version, suite) && group[0].is_critical() {
                suite.changed.truncate(before);
                return false;
            }
        }
        true
    }

    /// Prefers the first alternative of `group` that the suite can satisfy. Returns whether there
    /// is one.
    fn prefer_alternative(
        &mut self,
        group: &[AptRelation<'t>],
        parent: AptVersionId,
        suite: &mut SuitePreference<'_>,
    ) -> bool {
        for (at, relation) in group.iter().enumerate() {
            // a relation that any version satisfies does not need the version of the suite
            if relation.op == VersionOperator::Any {
                continue;
            }
            let own = self.architecture(parent);
            let Some(package) = self.named_package(relation, parent) else {
                continue;
            };
            let in_suite = self
                .versions_of(package)
                .iter()
                .copied()
                .find(|version| (suite.is_in_suite)(*version));
            let Some(version) =
                in_suite.filter(|version| self.universe.fulfils(relation, own, *version))
            else {
                continue;
            };
            let before = self.states[package as usize].candidate;
            // a circular dependency: the package is being visited already
            if before == Some(version) && suite.changed.contains(&package) {
                return true;
            }
            if self.prefer_from_suite(version, suite) {
                return true;
            }
            // like apt, keeps the candidate that was set for the last alternative
            if at + 1 < group.len() {
                self.state(package).candidate = before;
                suite.changed.pop();
            }
        }
        false
    }

    /// Whether an installed version or a candidate satisfies one of the alternatives. A candidate
    /// counts only if all its own dependencies are installed.
    fn candidates_satisfy(&self, group: &[AptRelation<'t>], parent: AptVersionId) -> bool {
        let own = self.architecture(parent);
        let fulfils = |relation: &AptRelation<'t>, version: Option<AptVersionId>| {
            version.is_some_and(|version| self.universe.fulfils(relation, own, version))
        };
        group.iter().any(|relation| {
            let state = self
                .named_package(relation, parent)
                .map(|package| self.states[package as usize]);
            let (current, candidate) =
                state.map_or((None, None), |state| (state.current, state.candidate));
            if fulfils(relation, current) {
                return true;
            }
            let mut providers = self
                .universe
                .providers_of(relation.name)
                .map(|provide| provide.by)
                .peekable();
            // any provider that is a candidate and is ready satisfies a virtual package
            if relation.op == VersionOperator::Any && providers.peek().is_some() {
                return providers.any(|by| {
                    self.state_of(by).version(MarkedVersion::Candidate) == Some(by)
                        && self.is_ready(by)
                });
            }
            fulfils(relation, candidate) && candidate.is_some_and(|version| self.is_ready(version))
        }) || self.is_expected(group)
    }

    /// Whether all dependencies of `version` are installed, and it conflicts with no installed
    /// package. With [`AptSettings::expects_rest`](super::marking::AptSettings), every version is
    /// ready.
    fn is_ready(&self, version: AptVersionId) -> bool {
        let mut critical = self.groups(version).filter(|group| group[0].is_critical());
        self.settings.expects_rest
            || critical.all(|group| self.is_met(group, version, MarkedVersion::Current))
    }

    fn versions_of(&self, package: AptPackageId) -> &[AptVersionId] {
        &self.universe.packages[package as usize].versions
    }

    /// Returns the package that a relation names: for the architecture that the relation requires,
    /// or for another one if no package of that name is for the required architecture.
    fn named_package(
        &self,
        relation: &AptRelation<'t>,
        parent: AptVersionId,
    ) -> Option<AptPackageId> {
        let own = match relation.arch {
            ArchQualifier::This(arch) => arch,
            _ => self.architecture(parent),
        };
        let packages = self.universe.packages_of(relation.name).iter().copied();
        let offered = packages.filter(|package| !self.versions_of(*package).is_empty());
        offered.min_by_key(|package| self.universe.packages[*package as usize].arch != own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_of_several_suites_belongs_to_each_and_has_their_highest_priority() {
        let text =
            |version: &str| format!("Package: app\nVersion: {version}\nArchitecture: amd64\n\n");
        let (backports, unstable) = (text("2"), text("3"));
        let stable = text("1") + &text("2");
        let mut universe = Universe::new(&["amd64".to_owned()]);
        for (pin, text) in [(100, &backports), (100, &unstable), (500, &stable)] {
            let source = universe.add_source(pin);
            universe.add_index(source, text);
        }
        let suites = ["backports", "unstable", "stable"].map(|name| vec![name.to_owned()]);
        let version = |request: &str| {
            let resolved = InstallRequest::parse(request)
                .resolve(&universe, &suites)
                .unwrap();
            let version = resolved
                .version
                .or_else(|| universe.candidate(resolved.package))
                .unwrap();
            universe.offer_of(version).version
        };
        assert_eq!(
            ["app", "app/stable", "app/backports", "app/unstable"].map(version),
            ["2", "2", "2", "3"]
        );
    }

    #[test]
    fn options_and_invalid_names_are_not_requests() {
        for good in ["app", "0ad:amd64", "g++=4:12.2", "lib.a-b/stable"] {
            assert!(is_request(good), "{good}");
        }
        for bad in [
            "-y", "--foo", "+app", ".app", "-y=1", "a", "App", "app=", "",
        ] {
            assert!(!is_request(bad), "{bad}");
        }
    }
}
