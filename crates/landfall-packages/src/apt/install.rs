//! Marks a package and its dependencies for installation: depth first, in the order of the
//! relations, with the first alternative that works.
//!
//! On the machines, apt selects by the same rules, so it will request the carried packages. The
//! code follows `pkgDepCache::MarkInstall` of apt 2.6.

use super::marking::{MarkMode, MarkedVersion, Marking};
use super::reason::{BrokenReason, relation_text};
use super::universe::{AptPackageId, AptRelation, AptVersionId, MultiArch};

impl<'u, 't> Marking<'u, 't> {
    /// Whether the candidate of `package` can be installed. No planned version for another
    /// architecture may exclude it. If `with_needs` is set, a planned version or a candidate must
    /// satisfy each of its critical dependencies. If none satisfies one of them, the candidate is
    /// discarded, unless the package is protected.
    fn can_install(&mut self, package: AptPackageId, with_needs: bool, is_user: bool) -> bool {
        let state = self.states[package as usize];
        let Some(candidate) = state.candidate else {
            return false;
        };
        if !(is_user || state.mode == MarkMode::Install && state.install == Some(candidate)) {
            // packages with `Multi-Arch: same` must have one version for all architectures
            let others = self.other_architectures(package, candidate, MarkedVersion::Install);
            if let (Some(other), true) = (
                others.first(),
                self.universe.offer_of(candidate).multi_arch == MultiArch::Same
                    && state.current != Some(candidate),
            ) {
                self.reasons
                    .set(package, BrokenReason::OtherArchitecture(*other));
                return false;
            }
        }
        if !with_needs || state.current == Some(candidate) {
            return true;
        }
        let unmet = self.groups(candidate).find(|group| {
            group[0].is_critical()
                && !group[0].is_negative()
                && !self.is_met(group, candidate, MarkedVersion::Install)
                && !self.is_met(group, candidate, MarkedVersion::Candidate)
        });
        let Some(unmet) = unmet else { return true };
        self.reasons.set(
            package,
            BrokenReason::unmet(self.universe, candidate, unmet),
        );
        if !state.is_protected {
            let state = self.state(package);
            state.candidate = state.current;
            if state.mode != MarkMode::Delete {
                (state.mode, state.install) = (MarkMode::Keep, state.current);
            }
        }
        false
    }

    /// Marks the candidate of `package` for installation, and if `with_needs` is set, its
    /// dependencies. `is_user` is set for requested packages. Returns whether that worked.
    pub(super) fn install(
        &mut self,
        package: AptPackageId,
        with_needs: bool,
        depth: u32,
        is_user: bool,
    ) -> bool {
        let state = self.states[package as usize];
        let is_kept = state.is_protected
            && state.mode == MarkMode::Keep
            && state.candidate.is_some()
            && state.candidate == state.current;
        if !is_kept && !self.may_change(package, MarkMode::Install, depth, is_user) {
            return false;
        }
        let Some(candidate) = state.candidate else {
            return false;
        };
        // the candidate and everything that it needs are installed or marked already
        if !state.is_protected && !self.is_broken(package, true) {
            if state.current == Some(candidate) {
                return state.install.is_some() || self.keep(package, depth + 1, is_user);
            }
            if state.mode == MarkMode::Install {
                return true;
            }
        }
        if !self.can_install(package, with_needs, is_user) {
            return false;
        }
        // a requested package is planned even if its dependencies fail; the problem resolver then
        // looks for another way
        if is_user {
            self.apply_candidate(package);
        }
        let fails_early = !state.is_protected && !is_user;
        let mut has_failed = false;
        let mut needs = Vec::new();
        let mut upgrades = Vec::new();
        let mut removals = Vec::new();
        if with_needs {
            let mut against = Vec::new();
            for group in self.groups(candidate) {
                if self.is_met(group, candidate, MarkedVersion::Install) && !state.is_protected
                    || !self.is_followed(&group[0])
                {
                    continue;
                }
                if group[0].is_negative() {
                    against.push(group)
                } else {
                    needs.push(group)
                }
            }
            let cleared = self.resolve_conflicts(
                package,
                candidate,
                &against,
                depth,
                is_user,
                &mut upgrades,
                &mut removals,
            );
            if !cleared {
                if fails_early {
                    return false;
                }
                has_failed = true;
            }
            self.collect_dependents(package, candidate, &mut upgrades);
        }
        if !is_user {
            self.apply_candidate(package);
        }
        if !with_needs {
            return !has_failed;
        }
        // none of the dependencies may remove the package again
        self.state(package).is_protected = true;
        let worked = self.install_dependencies(
            package,
            candidate,
            &needs,
            &upgrades,
            &removals,
            depth,
            is_user,
            state.is_protected,
        );
        self.state(package).is_protected = state.is_protected;
        // the caller may try another alternative next, so the mark is removed
        if !worked && fails_early {
            self.discard_install(package);
            return false;
        }
        worked && !has_failed
    }

    /// Installs the dependencies `needs` of `candidate`, upgrades `upgrades` and deletes
    /// `removals`, all on behalf of `package`. Stops at the first failure, unless the package is
    /// protected or requested. Returns whether all of it worked.
    #[allow(
        clippy::too_many_arguments,
        reason = "the state of one step of the recursion"
    )]
    fn install_dependencies(
        &mut self,
        package: AptPackageId,
        candidate: AptVersionId,
        needs: &[&'u [AptRelation<'t>]],
        upgrades: &[AptPackageId],
        removals: &[AptPackageId],
        depth: u32,
        is_user: bool,
        is_protected: bool,
    ) -> bool {
        let continues_after_failure = is_protected || is_user;
        self.upgrade_siblings(package, candidate, depth);
        let mut worked = true;
        for other in upgrades {
            let is_marked = self.states[*other as usize].mode == MarkMode::Install;
            if is_marked || self.install(*other, true, depth + 1, false) {
                continue;
            }
            // a package that cannot be upgraded is removed, if that is allowed
            if !self.delete(*other, depth + 1) {
                self.reasons.set(package, BrokenReason::Holds(*other));
                worked = false;
                if !continues_after_failure {
                    return false;
                }
            } else if is_protected {
                self.state(*other).is_protected = true;
            }
        }
        for group in needs {
            if !self.install_dependency(package, candidate, group, depth, is_protected) {
                worked = false;
                if !continues_after_failure {
                    return false;
                }
            }
        }
        for other in removals {
            worked &= self.delete(*other, depth);
        }
        worked
    }

    /// Tries to install the alternatives of `group`, a dependency of `parent`, until one works.
    /// Returns true if one worked or the dependency is not critical.
    fn install_dependency(
        &mut self,
        package: AptPackageId,
        parent: AptVersionId,
        group: &[AptRelation<'t>],
        depth: u32,
        is_protected: bool,
    ) -> bool {
        let is_critical = group[0].is_critical();
        if self.is_met(group, parent, MarkedVersion::Install) {
            if !is_protected || !is_critical {
                return true;
            }
            let mut all = self.matching(group, parent, MarkedVersion::Candidate);
            all.extend(self.matching(group, parent, MarkedVersion::Current));
            all.sort_unstable();
            all.dedup();
            // if only one version satisfies a dependency of a protected package, that version is
            // as necessary as the package, so it is protected too
            let [only] = all[..] else { return true };
            let only = self.universe.offer_of(only).package;
            if self.states[only as usize].is_protected {
                return true;
            }
            self.state(only).is_protected = true;
            return self.install(only, true, depth + 1, false);
        }
        // if the installed version has the same recommendation and it was not satisfied, an upgrade
        // does not install the recommended package
        let current = self.states[package as usize].current;
        if let Some(current) = current.filter(|_| !is_critical)
            && !self.is_new_or_was_met(current, &group[0])
        {
            return true;
        }
        let solutions = self.solutions(group, parent, MarkedVersion::Candidate);
        for solution in &solutions {
            let other = self.universe.offer_of(*solution).package;
            // an alternative that failed before may have lost its candidate
            if self.states[other as usize].candidate != Some(*solution) {
                continue;
            }
            // the only solution is protected before its own dependencies are marked, because they
            // could remove it again
            if is_protected && is_critical && solutions.len() == 1 {
                if !self.install(other, false, depth + 1, false) {
                    continue;
                }
                self.state(other).is_protected = true;
            }
            if self.install(other, true, depth + 1, false) {
                return true;
            }
        }
        if is_critical {
            let tried = solutions
                .iter()
                .map(|version| self.universe.offer_of(*version).package)
                .collect();
            let needed = relation_text(self.universe, group);
            self.reasons
                .set(package, BrokenReason::Needs(parent, needed, tried));
        }
        !is_critical
    }

    /// Whether the installed version `current` lacks the recommendation `wanted`, or has it and it
    /// was satisfied.
    fn is_new_or_was_met(&self, current: AptVersionId, wanted: &AptRelation<'t>) -> bool {
        let mut is_new = true;
        for group in self
            .groups(current)
            .filter(|group| !group[0].is_critical() && self.is_followed(&group[0]))
        {
            if group.iter().any(|relation| relation.name == wanted.name) {
                is_new = false;
                if self.is_met(group, current, MarkedVersion::Current) {
                    return true;
                }
            }
        }
        is_new
    }
}
