//! Conflicts of a package that is going to be installed: which packages must be removed or
//! upgraded.

use super::marking::{MarkMode, MarkedVersion, Marking};
use super::offer::{AptPackageId, AptRelation, AptVersionId};
use super::reason::BrokenReason;

impl<'u, 't> Marking<'u, 't> {
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
        against: &[&'u [AptRelation<'t>]],
        depth: u32,
        is_user: bool,
        upgrades: &mut Vec<AptPackageId>,
        removals: &mut Vec<AptPackageId>,
    ) -> bool {
        let is_protected = self.states[package as usize].is_protected;
        // packages whose candidates conflict: an upgrade of these does not help
        let mut bad = Vec::new();
        for group in against {
            let mut failed = None;
            // first the candidates that conflict, then the installed versions
            for version in self.solutions(group, candidate, MarkedVersion::Candidate) {
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
                    bad.push(other);
                }
                if failed.is_some() && !is_protected && !is_user {
                    break;
                }
            }
            if failed.is_none() || is_protected || is_user {
                for version in self.solutions(group, candidate, MarkedVersion::Current) {
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
                self.reasons
                    .set(package, BrokenReason::Conflicts(candidate, version));
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
        for (other, state) in self.states.iter().enumerate() {
            let (Some(parent), other) = (state.current, other as AptPackageId) else {
                continue;
            };
            if state.mode == MarkMode::Install || upgrades.contains(&other) || other == package {
                continue;
            }
            let own = self.architecture(parent);
            let mut relations = self.universe.relations_of(parent).iter();
            // like apt, ignores relations that name a virtual package which `package` provides
            let depends = relations.any(|relation| {
                self.is_followed(relation)
                    && !relation.is_negative()
                    && self.target(relation, own) == Some(package)
                    && self.universe.fulfils(relation, own, current)
                    && !self.universe.fulfils(relation, own, candidate)
            });
            if depends {
                upgrades.push(other);
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
        let siblings: Vec<AptPackageId> = self
            .universe
            .siblings_of(candidate)
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
