//! The state of every package during the selection: its installed version, its candidate, and the
//! version after all changes.

use super::reason::{BrokenReason, BrokenReasons};
use super::universe::{
    AptPackageId, AptRelation, AptVersionId, ArchQualifier, RelationKind, Universe,
};
use std::collections::{BTreeSet, HashMap};

/// The maximum depth of dependencies, which is apt's own limit.
const DEPTH: u32 = 3000;

/// Options for the selection of packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AptSettings {
    /// Whether to install recommended packages too (`APT::Install-Recommends`).
    pub recommends: bool,
    /// Whether dependencies that no source offers are assumed to be installed.
    pub expects_rest: bool,
}

/// The planned change of a package.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum MarkMode {
    #[default]
    Keep,
    Install,
    Delete,
}

/// The state of a package.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PackageMark {
    /// The version that is installed on the machine.
    pub(super) current: Option<AptVersionId>,
    /// The version that would be installed or upgraded to.
    pub(super) candidate: Option<AptVersionId>,
    /// The version that is installed after all changes; `None` if it is removed.
    pub(super) install: Option<AptVersionId>,
    pub(super) mode: MarkMode,
    /// Whether only the user may change the mode.
    pub(super) is_protected: bool,
    /// Whether the package was requested by name.
    pub(super) is_requested: bool,
}

/// The state of the selection: one [`PackageMark`] for each package.
pub(super) struct Marking<'u, 't> {
    pub(super) universe: &'u Universe<'t>,
    pub(super) settings: AptSettings,
    pub(super) states: Vec<PackageMark>,
    pub(super) reasons: BrokenReasons,
    /// The versions of installed packages by the source package and version that they were built
    /// from, each in the order of their packages.
    siblings: HashMap<(&'t str, &'t str), Vec<AptVersionId>>,
    /// For each package, the installed packages that depend on it by its name, in their order, each
    /// with the relation.
    dependents: HashMap<AptPackageId, Vec<(AptPackageId, &'u AptRelation<'t>)>>,
}

/// What a candidate cannot be installed together with.
#[derive(Clone, Copy)]
pub(super) enum AptExclusion<'u, 't> {
    /// The packages that this relation, `Conflicts` or `Breaks`, names.
    Relation(&'u [AptRelation<'t>]),
    /// The packages of the same name for other architectures, unless they are equal and
    /// `Multi-Arch: same`.
    OtherArchitectures,
}

/// Selects one of the versions in a [`PackageMark`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkedVersion {
    Current,
    Candidate,
    Install,
}

impl PackageMark {
    pub(super) fn version(&self, which: MarkedVersion) -> Option<AptVersionId> {
        match which {
            MarkedVersion::Current => self.current,
            MarkedVersion::Candidate => self.candidate,
            MarkedVersion::Install => self.install,
        }
    }
}

impl AptRelation<'_> {
    pub(super) fn is_negative(&self) -> bool {
        matches!(self.kind, RelationKind::Conflicts | RelationKind::Breaks)
    }

    pub(super) fn is_critical(&self) -> bool {
        !matches!(self.kind, RelationKind::Recommends | RelationKind::Suggests)
    }
}

impl<'u, 't> Marking<'u, 't> {
    pub(super) fn new(universe: &'u Universe<'t>, settings: AptSettings) -> Marking<'u, 't> {
        // at first, everything that is installed is kept
        let states = (0..universe.packages.len()).map(|package| {
            let current = universe.packages[package].current;
            let candidate = universe.candidate(package as AptPackageId);
            PackageMark {
                current,
                candidate,
                install: current,
                ..PackageMark::default()
            }
        });
        let mut marking = Marking {
            universe,
            settings,
            states: states.collect(),
            reasons: BrokenReasons::default(),
            siblings: HashMap::new(),
            dependents: HashMap::new(),
        };
        marking.index_installed();
        marking
    }

    /// Fills the tables of the installed packages, so that an upgrade does not visit all of them.
    fn index_installed(&mut self) {
        let universe: &'u Universe<'t> = self.universe;
        for (package, known) in universe.packages.iter().enumerate() {
            let Some(current) = known.current else {
                continue;
            };
            for version in &known.versions {
                let built_from = universe.offer_of(*version).built_from;
                self.siblings.entry(built_from).or_default().push(*version);
            }
            for relation in universe.relations_of(current) {
                // like apt, ignores relations that name a virtual package
                if self.is_followed(relation)
                    && !relation.is_negative()
                    && let Some(target) = self.target(relation, known.arch)
                {
                    let dependents = self.dependents.entry(target).or_default();
                    dependents.push((package as AptPackageId, relation));
                }
            }
        }
    }

    /// Makes `version` the candidate of its package.
    pub(super) fn set_candidate(&mut self, version: AptVersionId) {
        let package = self.universe.offer_of(version).package;
        self.state(package).candidate = Some(version);
    }

    /// Marks a requested package for installation, without its dependencies.
    pub(super) fn mark_requested(&mut self, package: AptPackageId) {
        self.state(package).is_protected = true;
        self.state(package).is_requested = true;
        self.install(package, false, 0, true);
    }

    /// Marks the dependencies of a requested package.
    pub(super) fn mark_dependencies(&mut self, package: AptPackageId) {
        self.install(package, true, 0, true);
    }

    /// Returns the version of a package that is installed after all changes.
    pub(super) fn planned_version(&self, package: AptPackageId) -> Option<AptVersionId> {
        self.states[package as usize].install
    }

    /// Returns the packages with a critical relation that does not hold after all changes.
    pub(super) fn broken(&self) -> Vec<AptPackageId> {
        (0..self.states.len() as AptPackageId)
            .filter(|package| {
                let state = &self.states[*package as usize];
                // an installed package that was broken before is not the fault of this selection
                state.install.is_some()
                    && (state.install != state.current || !self.was_broken(*package))
            })
            .filter(|package| self.is_broken(*package, false))
            .collect()
    }

    /// Returns the first violated critical relation of the planned version of `package`.
    pub(super) fn unmet(&self, package: AptPackageId) -> Option<&'u [AptRelation<'t>]> {
        let version = self.states[package as usize].install?;
        self.groups(version).find(|group| {
            group[0].is_critical() && !self.is_met(group, version, MarkedVersion::Install)
        })
    }

    /// Returns the dependencies of `version` that count as installed because no source offers them.
    pub(super) fn expected(&self, version: AptVersionId) -> Vec<&'u [AptRelation<'t>]> {
        self.groups(version)
            .filter(|group| group[0].is_critical() && !group[0].is_negative())
            .filter(|group| self.is_expected(group))
            .collect()
    }

    /// Returns the new versions of requested and installed packages, and of the packages that they
    /// need. Omits versions that were marked for a package that was later rejected.
    pub(super) fn needed(&self) -> Vec<AptVersionId> {
        let requested = (0..self.states.len() as AptPackageId)
            .filter(|package| self.states[*package as usize].is_requested);
        let installed = (0..self.states.len() as AptPackageId)
            .filter(|package| self.states[*package as usize].current.is_some());
        // follows the dependencies that are satisfied after all changes
        let mut next: Vec<AptPackageId> = requested.chain(installed).collect();
        let mut seen: BTreeSet<AptPackageId> = next.iter().copied().collect();
        let mut needed = Vec::new();
        while let Some(package) = next.pop() {
            let state = &self.states[package as usize];
            let Some(version) = state.install else {
                continue;
            };
            if state.current != Some(version) {
                needed.push(version);
            }
            // apt keeps a marked package that another one recommends or suggests, even if
            // recommendations are not installed
            for group in self.groups(version).filter(|group| !group[0].is_negative()) {
                for other in self.matching(group, version, MarkedVersion::Install) {
                    let other = self.universe.offer_of(other).package;
                    if seen.insert(other) {
                        next.push(other);
                    }
                }
            }
        }
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    /// Iterates over the packages that are installed after all changes, with their versions.
    pub(super) fn planned_versions(&self) -> impl Iterator<Item = (AptPackageId, AptVersionId)> {
        let all = self.states.iter().enumerate();
        all.filter_map(|(package, state)| Some((package as AptPackageId, state.install?)))
    }

    /// Returns the package that `relation` names. `own` is the architecture of the package that has
    /// the relation.
    pub(super) fn target(&self, relation: &AptRelation<'_>, own: u8) -> Option<AptPackageId> {
        let arch = match relation.arch {
            ArchQualifier::This(arch) => arch,
            ArchQualifier::Own | ArchQualifier::Any => own,
        };
        let mut packages = self.universe.packages_of(relation.name).iter().copied();
        packages.find(|package| self.universe.packages[*package as usize].arch == arch)
    }

    pub(super) fn state(&mut self, package: AptPackageId) -> &mut PackageMark {
        &mut self.states[package as usize]
    }

    pub(super) fn state_of(&self, version: AptVersionId) -> &PackageMark {
        &self.states[self.universe.offer_of(version).package as usize]
    }

    pub(super) fn architecture(&self, version: AptVersionId) -> u8 {
        self.universe.packages[self.universe.offer_of(version).package as usize].arch
    }

    /// Iterates over the relations of a version, each with all its alternatives.
    pub(super) fn groups(
        &self,
        version: AptVersionId,
    ) -> impl Iterator<Item = &'u [AptRelation<'t>]> + use<'u, 't> {
        let universe: &'u Universe<'t> = self.universe;
        universe
            .relations_of(version)
            .chunk_by(|relation, _| relation.or)
    }

    /// Whether a relation affects the selection: a critical one always does, `Recommends` if the
    /// settings say so, `Suggests` never.
    pub(super) fn is_followed(&self, relation: &AptRelation<'_>) -> bool {
        relation.is_critical()
            || (self.settings.recommends && relation.kind == RelationKind::Recommends)
    }

    /// Whether a dependency counts as installed, because no source offers any of its alternatives.
    pub(super) fn is_expected(&self, group: &[AptRelation<'_>]) -> bool {
        self.settings.expects_rest
            && group
                .iter()
                .all(|relation| !self.universe.is_offered(relation.name))
    }

    /// Whether the mode of a package may be changed to `mode`. `is_user` is set for requested
    /// packages.
    pub(super) fn may_change(
        &self,
        package: AptPackageId,
        mode: MarkMode,
        depth: u32,
        is_user: bool,
    ) -> bool {
        let state = &self.states[package as usize];
        if depth > DEPTH {
            return false;
        }
        is_user
            || state.mode == mode
            || !(state.is_protected || mode == MarkMode::Delete && self.universe.is_vital(package))
    }

    /// Keeps the installed version of a package, or leaves it uninstalled. Returns whether that is
    /// allowed.
    pub(super) fn keep(&mut self, package: AptPackageId, depth: u32, is_user: bool) -> bool {
        if !self.may_change(package, MarkMode::Keep, depth, is_user) {
            return false;
        }
        let state = self.state(package);
        (state.mode, state.install) = (MarkMode::Keep, state.current);
        true
    }

    pub(super) fn may_delete(&self, package: AptPackageId, depth: u32) -> bool {
        let state = &self.states[package as usize];
        let is_new_request =
            state.current.is_none() && state.install.is_some() && state.is_requested;
        self.may_change(package, MarkMode::Delete, depth, false) && !is_new_request
    }

    /// Marks a package for removal. Returns whether that is allowed.
    pub(super) fn delete(&mut self, package: AptPackageId, depth: u32) -> bool {
        if self.states[package as usize].mode == MarkMode::Delete
            || self.states[package as usize].install.is_none()
        {
            return self.may_change(package, MarkMode::Delete, depth, false);
        }
        if !self.may_delete(package, depth) {
            return false;
        }
        let state = self.state(package);
        // a package that is not installed has nothing to delete
        state.mode = if state.current.is_none() {
            MarkMode::Keep
        } else {
            MarkMode::Delete
        };
        state.install = None;
        true
    }

    /// Makes the planned version the candidate, so that no other version is tried.
    pub(super) fn discard_candidate(&mut self, package: AptPackageId) {
        let state = self.state(package);
        state.candidate = state.install;
    }

    /// Reverts the mark for installation, and discards the candidate.
    pub(super) fn discard_install(&mut self, package: AptPackageId) {
        let state = self.state(package);
        if state.mode == MarkMode::Keep
            && state.install == state.candidate
            && state.candidate == state.current
        {
            return;
        }
        (state.install, state.mode) = (state.current, MarkMode::Keep);
        self.discard_candidate(package);
    }

    /// Plans the candidate of a package for installation.
    pub(super) fn apply_candidate(&mut self, package: AptPackageId) {
        let state = self.state(package);
        // already planned
        if state.is_protected && state.install == state.candidate {
            return;
        }
        state.install = state.candidate;
        state.mode = if state.candidate == state.current {
            MarkMode::Keep
        } else {
            MarkMode::Install
        };
    }
}

impl<'u, 't> Marking<'u, 't> {
    /// The versions that `exclusion` excludes for `candidate`, a version of `package`.
    fn excluded(
        &self,
        exclusion: AptExclusion<'_, 't>,
        package: AptPackageId,
        candidate: AptVersionId,
        which: MarkedVersion,
    ) -> Vec<AptVersionId> {
        match exclusion {
            AptExclusion::Relation(group) => self.solutions(group, candidate, which),
            AptExclusion::OtherArchitectures => self.other_architectures(package, candidate, which),
        }
    }

    /// Resolves `against`, the conflicts of `candidate`, which is a version of `package`. Collects
    /// in `upgrades` the packages that must be upgraded, and in `removals` those that must be
    /// removed. If `package` is protected, packages are removed at once instead. Returns whether
    /// all conflicts can be resolved.
    #[allow(
        clippy::too_many_arguments,
        reason = "the state of one step of the recursion"
    )]
    pub(super) fn resolve_conflicts(
        &mut self,
        package: AptPackageId,
        candidate: AptVersionId,
        against: &[AptExclusion<'u, 't>],
        depth: u32,
        is_user: bool,
        upgrades: &mut Vec<AptPackageId>,
        removals: &mut Vec<AptPackageId>,
    ) -> bool {
        let is_protected = self.states[package as usize].is_protected;
        // packages whose candidates conflict: an upgrade of these does not help
        let mut bad = BTreeSet::new();
        for exclusion in against {
            let mut failed = None;
            // first the candidates that conflict, then the installed versions
            let which = MarkedVersion::Candidate;
            for version in self.excluded(*exclusion, package, candidate, which) {
                let other = self.universe.offer_of(version).package;
                let state = self.states[other as usize];
                if state.candidate != Some(version) {
                    continue;
                }
                if state.current == Some(version) {
                    if !self.remove_conflicting(other, is_protected, depth, removals) {
                        failed = Some(version);
                    }
                } else if state.mode == MarkMode::Install && !self.keep(other, depth, false) {
                    failed = Some(version);
                } else if is_protected {
                    // the candidate is discarded: otherwise, a package that is marked later could
                    // install it
                    self.discard_candidate(other);
                    if state.current.is_none() {
                        self.state(other).is_protected = true;
                    }
                } else {
                    bad.insert(other);
                }
                if failed.is_some() && !is_protected && !is_user {
                    break;
                }
            }
            if failed.is_none() || is_protected || is_user {
                let which = MarkedVersion::Current;
                for version in self.excluded(*exclusion, package, candidate, which) {
                    let other = self.universe.offer_of(version).package;
                    let state = self.states[other as usize];
                    if state.candidate.is_some()
                        && state.candidate != Some(version)
                        && !bad.contains(&other)
                    {
                        // the candidate does not conflict
                        upgrades.push(other);
                    } else if state.candidate != state.current
                        && !self.remove_conflicting(other, is_protected, depth, removals)
                    {
                        failed = Some(version);
                    }
                }
            }
            if let Some(version) = failed {
                let reason = match exclusion {
                    AptExclusion::Relation(_) => BrokenReason::Conflicts(candidate, version),
                    AptExclusion::OtherArchitectures => BrokenReason::OtherArchitecture(version),
                };
                self.reasons.set(package, reason);
                return false;
            }
        }
        true
    }

    /// Removes a conflicting package: at once if the package to install `is_protected`, otherwise
    /// later, through `removals`. Returns whether it may be removed.
    fn remove_conflicting(
        &mut self,
        package: AptPackageId,
        is_protected: bool,
        depth: u32,
        removals: &mut Vec<AptPackageId>,
    ) -> bool {
        let is_deleted = self.states[package as usize].mode == MarkMode::Delete;
        if !is_protected {
            let may = is_deleted || self.may_delete(package, depth);
            if may && !is_deleted {
                removals.push(package);
            }
            return may;
        }
        if !is_deleted && !self.delete(package, depth + 1) {
            return false;
        }
        self.discard_candidate(package);
        self.state(package).is_protected = true;
        true
    }

    /// Adds to `upgrades` each installed package with a dependency that the installed version of
    /// `package` satisfies, but `candidate` does not.
    pub(super) fn collect_dependents(
        &self,
        package: AptPackageId,
        candidate: AptVersionId,
        upgrades: &mut Vec<AptPackageId>,
    ) {
        let Some(current) = self.states[package as usize]
            .current
            .filter(|current| *current != candidate)
        else {
            return;
        };
        let known: BTreeSet<AptPackageId> = upgrades.iter().copied().collect();
        for (other, relation) in self.dependents.get(&package).into_iter().flatten() {
            let state = &self.states[*other as usize];
            let own = self.universe.packages[*other as usize].arch;
            // the relations of one package are adjacent
            let is_known = known.contains(other) || upgrades.last() == Some(other);
            if state.mode != MarkMode::Install
                && !is_known
                && *other != package
                && self.universe.fulfils(relation, own, current)
                && !self.universe.fulfils(relation, own, candidate)
            {
                upgrades.push(*other);
            }
        }
    }

    /// Upgrades the installed packages whose candidates were built from the same source version as
    /// `candidate`.
    pub(super) fn upgrade_siblings(
        &mut self,
        package: AptPackageId,
        candidate: AptVersionId,
        depth: u32,
    ) {
        let built_from = self.universe.offer_of(candidate).built_from;
        let siblings = self.siblings.get(&built_from).into_iter().flatten();
        let siblings: Vec<AptPackageId> = siblings
            .copied()
            .filter(|version| {
                let state = self.state_of(*version);
                let is_marked = state.mode == MarkMode::Install && state.install == Some(*version);
                state.current.is_some_and(|current| current != *version)
                    && state.candidate == Some(*version)
                    && !is_marked
            })
            .map(|version| self.universe.offer_of(version).package)
            .filter(|other| *other != package)
            .collect();
        // all of them are marked before any dependency, because they may depend on each other
        for with_needs in [false, true] {
            for other in &siblings {
                self.install(*other, with_needs, depth + 1, false);
            }
        }
    }
}
