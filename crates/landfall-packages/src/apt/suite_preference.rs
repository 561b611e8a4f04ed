//! Requests of the form `name/suite`: apt takes the package from that suite, and also its
//! dependencies if the other candidates cannot satisfy them on the machine as it is.

use super::marking::{MarkedVersion, Marking};
use super::offer::{AptPackageId, AptRelation, AptVersionId, ArchQualifier};
use super::relation::VersionOperator;

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
