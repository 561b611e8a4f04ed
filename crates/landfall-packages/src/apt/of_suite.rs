//! `name/suite` as apt takes it: the package from that suite, and with it what it needs, where what
//! would be taken else does not do as the machine is now.

use super::marking::{MarkedVersion, Marking};
use super::offer::{AptPackageId, AptRelation, AptVersionId, ArchQualifier};
use super::relation::VersionOperator;

/// How deep packages may need each other here.
const DEPTH: usize = 300;
/// How many packages are looked at, at the most. Alternatives that fail one after the other are no
/// more than a few.
const LOOKS: u32 = 100_000;

/// The suite that a package is asked for of, and what was looked at for it.
pub(super) struct SuitePreference<'a> {
    has: &'a dyn Fn(AptVersionId) -> bool,
    /// The packages whose version of the suite is taken, the one that is asked for first.
    changed: Vec<AptPackageId>,
    looks: u32,
}

impl SuitePreference<'_> {
    /// `has` tells the versions of the suite.
    pub(super) fn new(has: &dyn Fn(AptVersionId) -> bool) -> SuitePreference<'_> {
        SuitePreference {
            has,
            changed: Vec::new(),
            looks: 0,
        }
    }
}

impl<'t> Marking<'_, 't> {
    /// Makes `version` the one that is taken of its package, and of what it needs the versions of
    /// the suite where that must be. Returns whether all that it needs can be had so; where not,
    /// apt looks no further, and what was taken so far stays.
    pub(super) fn prefer_of_suite(
        &mut self,
        version: AptVersionId,
        suite: &mut SuitePreference<'_>,
    ) -> bool {
        self.prefer(version);
        suite.changed.push(self.universe.offer_of(version).package);
        suite.looks += 1;
        let before = suite.changed.len();
        for group in self.groups(version) {
            let counts = !group[0].is_negative() && self.counts(&group[0]);
            if !counts || before > DEPTH || suite.looks > LOOKS || self.does(group, version) {
                continue;
            }
            if !self.take_of_suite(group, version, suite) && group[0].is_critical() {
                suite.changed.truncate(before);
                return false;
            }
        }
        true
    }

    /// Takes the first alternative of `group` that the suite has.
    fn take_of_suite(
        &mut self,
        group: &[AptRelation<'t>],
        parent: AptVersionId,
        suite: &mut SuitePreference<'_>,
    ) -> bool {
        for (at, relation) in group.iter().enumerate() {
            let versions = self
                .meant(relation, parent)
                .map(|package| (package, self.versions_of(package)));
            let found = versions.and_then(|(package, versions)| {
                Some((
                    package,
                    versions
                        .iter()
                        .copied()
                        .find(|version| (suite.has)(*version))?,
                ))
            });
            let own = self.architecture(parent);
            // another version is no help where any would do
            let helps = |version| {
                relation.op != VersionOperator::Any && self.universe.fulfils(relation, own, version)
            };
            let Some((package, version)) = found.filter(|(_, version)| helps(*version)) else {
                continue;
            };
            let before = self.states[package as usize].candidate;
            if before == Some(version) && suite.changed.contains(&package) {
                return true;
            }
            if self.prefer_of_suite(version, suite) {
                return true;
            }
            if at + 1 < group.len() {
                self.state(package).candidate = before;
                suite.changed.pop();
            }
        }
        false
    }

    /// Whether what is taken now fulfils one of the alternatives: it is installed, or could be
    /// without anything else.
    fn does(&self, group: &[AptRelation<'t>], parent: AptVersionId) -> bool {
        let own = self.architecture(parent);
        let fulfils = |relation: &AptRelation<'t>, version: Option<AptVersionId>| {
            version.is_some_and(|version| self.universe.fulfils(relation, own, version))
        };
        group.iter().any(|relation| {
            let state = self
                .meant(relation, parent)
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
            if relation.op == VersionOperator::Any && providers.peek().is_some() {
                return providers.any(|by| {
                    self.state_of(by).version(MarkedVersion::Candidate) == Some(by)
                        && self.is_ready(by)
                });
            }
            fulfils(relation, candidate) && candidate.is_some_and(|version| self.is_ready(version))
        }) || self.is_expected(group)
    }

    /// Whether all that `version` needs is installed, and nothing that it must not be beside.
    fn is_ready(&self, version: AptVersionId) -> bool {
        let mut critical = self.groups(version).filter(|group| group[0].is_critical());
        self.settings.expects_rest
            || critical.all(|group| self.is_met(group, version, MarkedVersion::Current))
    }

    fn versions_of(&self, package: AptPackageId) -> &[AptVersionId] {
        &self.universe.packages[package as usize].versions
    }

    /// The package that a relation names, on the architecture that it means.
    fn meant(&self, relation: &AptRelation<'t>, parent: AptVersionId) -> Option<AptPackageId> {
        let own = match relation.arch {
            ArchQualifier::This(arch) => arch,
            _ => self.architecture(parent),
        };
        let packages = self.universe.packages_of(relation.name).iter().copied();
        let offered = packages.filter(|package| !self.versions_of(*package).is_empty());
        offered.min_by_key(|package| self.universe.packages[*package as usize].arch != own)
    }
}
