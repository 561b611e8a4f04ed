//! The state of every package while apt's choice is made: what is installed, what could be, and
//! what will be.

use super::offer::{AptPackageId, AptRelation, AptVersionId, ArchQualifier, RelationKind};
use super::reason::BrokenReasons;
use super::universe::Universe;
use std::collections::BTreeSet;

/// How deep packages may need each other; apt's own bound.
const DEPTH: u32 = 3000;

/// Options for the selection of packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AptSettings {
    /// Whether to install recommended packages too (`APT::Install-Recommends`).
    pub recommends: bool,
    /// Whether dependencies that no source offers are assumed to be installed.
    pub expects_rest: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum MarkMode {
    #[default]
    Keep,
    Install,
    Delete,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PackageMark {
    pub(super) current: Option<AptVersionId>,
    pub(super) candidate: Option<AptVersionId>,
    /// The version that is installed after all changes; `None` if it is removed.
    pub(super) install: Option<AptVersionId>,
    pub(super) mode: MarkMode,
    pub(super) is_protected: bool,
    /// Whether the package was requested by name.
    pub(super) is_asked: bool,
}

/// The state of the selection: one [`PackageMark`] for each package.
pub(super) struct Marking<'u, 't> {
    pub(super) universe: &'u Universe<'t>,
    pub(super) settings: AptSettings,
    pub(super) states: Vec<PackageMark>,
    pub(super) reasons: BrokenReasons,
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
        Marking {
            universe,
            settings,
            states: states.collect(),
            reasons: BrokenReasons::default(),
        }
    }

    /// Makes `version` the one that is taken of its package, if any is.
    pub(super) fn prefer(&mut self, version: AptVersionId) {
        let package = self.universe.offer_of(version).package;
        self.state(package).candidate = Some(version);
    }

    /// Marks a package that is asked for, without what it needs.
    pub(super) fn ask(&mut self, package: AptPackageId) {
        self.state(package).is_protected = true;
        self.state(package).is_asked = true;
        self.install(package, false, 0, true);
    }

    /// Marks what a package needs that is asked for.
    pub(super) fn complete(&mut self, package: AptPackageId) {
        self.install(package, true, 0, true);
    }

    /// What is there in the end.
    pub(super) fn installed(&self, package: AptPackageId) -> Option<AptVersionId> {
        self.states[package as usize].install
    }

    /// The packages that are there in the end and lack something, or must not be together.
    pub(super) fn broken(&self) -> Vec<AptPackageId> {
        let changed = |package: &AptPackageId| {
            let state = &self.states[*package as usize];
            state.install.is_some()
                && (state.install != state.current || !self.was_broken(*package))
        };
        (0..self.states.len() as AptPackageId)
            .filter(changed)
            .filter(|package| self.is_broken(*package, false))
            .collect()
    }

    /// The first relation of what is there of `package` that does not hold, critical ones alone.
    pub(super) fn unmet(&self, package: AptPackageId) -> Option<&'u [AptRelation<'t>]> {
        let version = self.states[package as usize].install?;
        self.groups(version).find(|group| {
            group[0].is_critical() && !self.is_met(group, version, MarkedVersion::Install)
        })
    }

    /// What the machine must have for `version`, as no source offers it.
    pub(super) fn expected(&self, version: AptVersionId) -> Vec<&'u [AptRelation<'t>]> {
        let critical = self
            .groups(version)
            .filter(|group| group[0].is_critical() && !group[0].is_negative());
        critical.filter(|group| self.is_expected(group)).collect()
    }

    /// What is new in the end, and needed by something that is asked for.
    pub(super) fn needed(&self) -> Vec<AptVersionId> {
        let asked = (0..self.states.len() as AptPackageId)
            .filter(|package| self.states[*package as usize].is_asked);
        let had = (0..self.states.len() as AptPackageId)
            .filter(|package| self.states[*package as usize].current.is_some());
        let mut next: Vec<AptPackageId> = asked.chain(had).collect();
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
            // what is recommended or suggested is not removed again, whether it would be taken for
            // that or not
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

    /// The packages that are there in the end, with their versions.
    pub(super) fn there(&self) -> impl Iterator<Item = (AptPackageId, AptVersionId)> {
        let all = self.states.iter().enumerate();
        all.filter_map(|(package, state)| Some((package as AptPackageId, state.install?)))
    }

    /// The package that a relation of a package of the architecture `own` names, where some source
    /// has it.
    pub(super) fn target(&self, relation: &AptRelation<'_>, own: u8) -> Option<AptPackageId> {
        let arch = match relation.arch {
            ArchQualifier::This(arch) => arch,
            ArchQualifier::Own | ArchQualifier::Any => own,
        };
        let known = |package: &AptPackageId| &self.universe.packages[*package as usize];
        let mut packages = self.universe.packages_of(relation.name).iter().copied();
        packages.find(|package| known(package).arch == arch && !known(package).versions.is_empty())
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

    /// The relations of a version, alternatives together.
    pub(super) fn groups(
        &self,
        version: AptVersionId,
    ) -> impl Iterator<Item = &'u [AptRelation<'t>]> + use<'u, 't> {
        let universe: &'u Universe<'t> = self.universe;
        universe
            .relations_of(version)
            .chunk_by(|relation, _| relation.or)
    }

    pub(super) fn counts(&self, relation: &AptRelation<'_>) -> bool {
        relation.is_critical()
            || (self.settings.recommends && relation.kind == RelationKind::Recommends)
    }

    pub(super) fn is_expected(&self, group: &[AptRelation<'_>]) -> bool {
        self.settings.expects_rest
            && group
                .iter()
                .all(|relation| !self.universe.has(relation.name))
    }

    pub(super) fn may_change(
        &self,
        package: AptPackageId,
        mode: MarkMode,
        depth: u32,
        is_user: bool,
    ) -> bool {
        let state = &self.states[package as usize];
        if depth > DEPTH || self.universe.packages[package as usize].versions.is_empty() {
            return false;
        }
        let is_vital = || mode == MarkMode::Delete && self.universe.is_vital(package);
        is_user || state.mode == mode || !(state.is_protected || is_vital())
    }

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
        let is_asked = state.current.is_none() && state.install.is_some() && state.is_asked;
        self.may_change(package, MarkMode::Delete, depth, false) && !is_asked
    }

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
        state.mode = if state.current.is_none() {
            MarkMode::Keep
        } else {
            MarkMode::Delete
        };
        state.install = None;
        true
    }

    pub(super) fn discard_candidate(&mut self, package: AptPackageId) {
        let state = self.state(package);
        state.candidate = state.install;
    }

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

    pub(super) fn change(&mut self, package: AptPackageId) {
        let state = self.state(package);
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
