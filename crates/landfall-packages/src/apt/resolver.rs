//! What apt does where marking left something broken: it goes through what is there by its scores,
//! keeps, upgrades or removes the weaker side of each broken relation, and does so again while that
//! changes anything. As `pkgProblemResolver` of apt 2.6.

use super::marking::{MarkMode, MarkedVersion, Marking};
use super::offer::{AptPackageId, AptRelation, AptVersionId, RelationKind};

/// How often apt goes through all packages.
const ROUNDS: usize = 20;

/// What is settled in the end for the package of a group of alternatives of which none helped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unwind {
    Remove,
    Keep,
}

/// A package that stands in the way, and the relation that says so.
type Obstacle<'r, 't> = (AptPackageId, &'r [AptRelation<'t>], AptVersionId);

/// The state of the problem resolver beside that of the packages.
struct Resolution {
    scores: Vec<i64>,
    /// What was marked for installation before.
    was_marked: Vec<bool>,
    /// What may still be upgraded to mend something.
    may_upgrade: Vec<bool>,
    /// Packages that no other package needs, by package id.
    is_garbage: Vec<bool>,
    round: usize,
    has_changed: bool,
}

impl<'u, 't> Marking<'u, 't> {
    /// Whether apt would settle anything here: not where something that is installed lacks
    /// something already.
    pub(super) fn can_resolve(&self) -> bool {
        (0..self.states.len() as AptPackageId).all(|package| !self.was_broken(package))
    }

    /// Settles what is broken. What is broken after that cannot be installed.
    pub(super) fn resolve(&mut self) {
        let count = self.states.len() as AptPackageId;
        // what marking broke and a newer version mends
        loop {
            let mut is_changed = false;
            for package in 0..count {
                is_changed |= self.upgrade_broken(package);
            }
            if !is_changed {
                break;
            }
        }
        if self.broken_count() == 0 {
            return;
        }
        let needed = self.needed();
        let is_garbage = |package: AptPackageId| {
            let state = &self.states[package as usize];
            state
                .install
                .is_some_and(|version| state.current.is_none() && !needed.contains(&version))
        };
        let mut resolution = Resolution {
            scores: self.scores(),
            was_marked: self
                .states
                .iter()
                .map(|state| state.mode == MarkMode::Install)
                .collect(),
            may_upgrade: vec![true; self.states.len()],
            is_garbage: (0..count).map(is_garbage).collect(),
            round: 0,
            has_changed: true,
        };
        let mut order: Vec<AptPackageId> = (0..count).collect();
        order.sort_by_key(|package| std::cmp::Reverse(resolution.scores[*package as usize]));
        while resolution.has_changed && resolution.round < ROUNDS {
            resolution.has_changed = false;
            for package in &order {
                self.settle(&mut resolution, *package);
            }
            resolution.round += 1;
        }
    }

    /// Marks a package that is kept and broken. Returns whether it is upgraded by that.
    fn upgrade_broken(&mut self, package: AptPackageId) -> bool {
        if self.states[package as usize].mode == MarkMode::Install
            || !self.is_broken(package, false)
        {
            return false;
        }
        self.install(package, false, 0, false);
        self.states[package as usize].mode == MarkMode::Install
    }

    fn broken_count(&self) -> usize {
        self.there()
            .filter(|(package, _)| self.is_broken(*package, false))
            .count()
    }

    /// Looks at one package, and settles its relations that do not hold.
    fn settle(&mut self, resolution: &mut Resolution, package: AptPackageId) {
        self.reinstate(resolution, package);
        let Some(version) = self
            .installed(package)
            .filter(|_| self.is_broken(package, false))
        else {
            return;
        };
        let mut obstacles: Vec<Obstacle<'u, 't>> = Vec::new();
        for group in self.groups(version).filter(|group| group[0].is_critical()) {
            let before = obstacles.len();
            let mut unwind = Unwind::Remove;
            let (mut is_open, mut is_done) = (group.len() > 1, false);
            for relation in group {
                if self.is_met(group, version, MarkedVersion::Install) {
                    is_open = false;
                    break;
                }
                let targets = self.all_targets(relation, version);
                let is_free =
                    !self.states[package as usize].is_protected && !relation.is_negative();
                if targets.is_empty() && is_free && !self.was_broken(package) {
                    if is_open {
                        continue;
                    }
                    resolution.has_changed = true;
                    self.keep(package, 0, false);
                    is_done = true;
                    break;
                }
                let parent = (package, version);
                is_done = if targets.is_empty() && is_free {
                    self.give_up(package, is_open, &mut unwind);
                    resolution.has_changed = true;
                    true
                } else {
                    self.settle_relation(
                        resolution,
                        parent,
                        group,
                        relation,
                        &targets,
                        &mut unwind,
                        &mut obstacles,
                    )
                };
            }
            if is_open && before == obstacles.len() {
                if unwind == Unwind::Keep {
                    self.keep(package, 0, false);
                    resolution.has_changed = true;
                } else if !self.states[package as usize].is_protected {
                    self.delete(package, 0);
                    resolution.has_changed = true;
                }
            }
            if is_done && group.len() == 1 {
                break;
            }
        }
        if self.installed(package).is_some() {
            obstacles
                .iter()
                .for_each(|obstacle| self.clear_obstacle(resolution, package, *obstacle));
        }
    }

    /// Tries the candidate of a package that was to be upgraded and is not any more.
    fn reinstate(&mut self, resolution: &mut Resolution, package: AptPackageId) {
        let state = self.states[package as usize];
        let was_upgraded = state.current.is_some() && resolution.was_marked[package as usize];
        if state.candidate == state.install
            || state.install.is_none()
            || !was_upgraded
            || state.is_protected
        {
            return;
        }
        let before = self.broken_count();
        resolution.was_marked[package as usize] = false;
        resolution.may_upgrade[package as usize] = false;
        self.install(package, false, 0, false);
        if self.is_broken(package, false) || before < self.broken_count() {
            self.keep(package, 0, false);
        }
    }

    /// Settles one alternative of a relation of `parent` with the versions `targets`. Returns
    /// whether the package is settled.
    #[allow(clippy::too_many_arguments, reason = "the state of one step")]
    fn settle_relation(
        &mut self,
        resolution: &mut Resolution,
        (package, version): (AptPackageId, AptVersionId),
        group: &'u [AptRelation<'t>],
        relation: &AptRelation<'t>,
        targets: &[AptVersionId],
        unwind: &mut Unwind,
        obstacles: &mut Vec<Obstacle<'u, 't>>,
    ) -> bool {
        let is_open = group.len() > 1;
        for target in targets {
            let other = self.universe.offer_of(*target).package;
            if relation.is_negative() && self.installed(other) != Some(*target) {
                continue;
            }
            let was_met = self.is_met(
                std::slice::from_ref(relation),
                version,
                MarkedVersion::Current,
            );
            let [own_score, score] = [package, other].map(|one| resolution.scores[one as usize]);
            if own_score <= score || (!was_met && !relation.is_negative()) {
                if !self.states[package as usize].is_protected {
                    self.change_self(
                        resolution,
                        (package, version),
                        relation,
                        other,
                        is_open,
                        unwind,
                    );
                    resolution.has_changed = true;
                    return true;
                }
                if self.upgrade(resolution, other) {
                    resolution.scores[other as usize] = score.min(own_score);
                    return false;
                }
                continue;
            }
            if relation.kind == RelationKind::Breaks
                && self.is_met(group, version, MarkedVersion::Candidate)
            {
                self.install(other, false, 0, false);
                continue;
            }
            let state = &self.states[other as usize];
            if state.is_protected && state.mode != MarkMode::Delete {
                continue;
            }
            obstacles.push((other, group, version));
            if !relation.is_negative() {
                return false;
            }
        }
        false
    }

    /// Changes a package rather than `other`, which counts for more: it is kept, upgraded or
    /// removed, or gets another alternative.
    fn change_self(
        &mut self,
        resolution: &mut Resolution,
        (package, version): (AptPackageId, AptVersionId),
        relation: &AptRelation<'t>,
        other: AptPackageId,
        is_open: bool,
        unwind: &mut Unwind,
    ) {
        if self.keep_if_whole(package, is_open, unwind) || self.upgrade(resolution, package) {
            return;
        }
        if !is_open || resolution.is_garbage[package as usize] {
            self.delete(package, 0);
            let [own_score, score] = [package, other].map(|one| resolution.scores[one as usize]);
            if resolution.round > 1 {
                resolution.scores[package as usize] = own_score.max(score);
            }
            return;
        }
        let target = self.target(relation, self.architecture(version));
        let is_new = |target: &AptPackageId| {
            let state = &self.states[*target as usize];
            state.current.is_none() && state.mode != MarkMode::Delete && state.candidate.is_some()
        };
        if let Some(target) = target.filter(is_new) {
            let before = self.broken_count();
            self.install(target, true, 1, false);
            if self.is_broken(target, false) || self.broken_count() > before {
                self.delete(target, 1);
            }
        }
    }

    /// Keeps what is installed of a package. Returns whether that is whole; of alternatives the
    /// others are tried too.
    fn keep_if_whole(&mut self, package: AptPackageId, is_open: bool, unwind: &mut Unwind) -> bool {
        let was_marked = self.states[package as usize].mode == MarkMode::Install;
        self.keep(package, 0, false);
        if self.is_broken(package, false) {
            return false;
        }
        *unwind = Unwind::Keep;
        if is_open && was_marked {
            self.install(package, false, 0, false);
        }
        true
    }

    /// Settles a package that needs what nothing is.
    fn give_up(&mut self, package: AptPackageId, is_open: bool, unwind: &mut Unwind) {
        if !self.keep_if_whole(package, is_open, unwind) && !is_open {
            self.delete(package, 0);
        }
    }

    /// Upgrades a package, with what that needs by newer versions alone. Returns whether that
    /// worked.
    fn upgrade(&mut self, resolution: &mut Resolution, package: AptPackageId) -> bool {
        let state = self.states[package as usize];
        let may = std::mem::replace(&mut resolution.may_upgrade[package as usize], false);
        if !may || !self.is_upgradable(package) || state.is_asked {
            resolution.may_upgrade[package as usize] = may;
            return false;
        }
        if !self.install(package, false, 0, false) {
            return false;
        }
        let Some(version) = self.installed(package) else {
            return false;
        };
        let own = self.architecture(version);
        let mut has_failed = false;
        for group in self.groups(version).filter(|group| group[0].is_critical()) {
            for relation in group {
                if self.is_met(group, version, MarkedVersion::Install) {
                    break;
                }
                let target = self.smart_target(relation, own, package);
                let is_protected =
                    target.is_some_and(|target| self.states[target as usize].is_protected);
                if !is_protected
                    && self.is_met(
                        std::slice::from_ref(relation),
                        version,
                        MarkedVersion::Candidate,
                    )
                {
                    has_failed = !target.is_some_and(|target| self.upgrade(resolution, target));
                    if !has_failed {
                        break;
                    }
                } else if !is_protected && relation.is_negative() {
                    break;
                } else {
                    has_failed = true;
                }
            }
            if has_failed {
                break;
            }
        }
        if has_failed {
            if state.mode == MarkMode::Keep {
                self.keep(package, 0, false);
            } else {
                self.delete(package, 0);
            }
        }
        !has_failed
    }

    /// Whether its candidate is newer than what is installed.
    fn is_upgradable(&self, package: AptPackageId) -> bool {
        let state = &self.states[package as usize];
        let text = |version: AptVersionId| self.universe.offer_of(version).version;
        state.candidate.is_some_and(|candidate| {
            let is_newer =
                |current| super::version::compare(text(candidate), text(current)).is_gt();
            state.current.is_none_or(is_newer)
        })
    }

    /// Removes what stands in the way of `package`, or keeps what is installed of it.
    fn clear_obstacle(
        &mut self,
        resolution: &mut Resolution,
        package: AptPackageId,
        (other, group, version): Obstacle<'u, 't>,
    ) {
        let is_cleared = if self.is_met(group, version, MarkedVersion::Current) {
            self.keep(other, 0, false)
        } else {
            group[0].is_negative() && self.delete(other, 0)
        };
        let [own_score, score] = [package, other].map(|one| resolution.scores[one as usize]);
        if (!is_cleared || resolution.round > 1) && own_score > score {
            resolution.scores[other as usize] = own_score;
            resolution.has_changed = true;
        }
        resolution.has_changed |= is_cleared;
    }

    /// All versions that fulfil a relation of `parent`, whether they are candidates or not.
    fn all_targets(&self, relation: &AptRelation<'t>, parent: AptVersionId) -> Vec<AptVersionId> {
        let universe = self.universe;
        let own = self.architecture(parent);
        let name = |version: AptVersionId| {
            universe.packages[universe.offer_of(version).package as usize].name
        };
        let packages = universe.packages_of(relation.name).iter();
        let real = packages.flat_map(|package| {
            universe.packages[*package as usize]
                .versions
                .iter()
                .copied()
        });
        // apt has the last that was read first
        let provided: Vec<AptVersionId> = universe
            .providers_of(relation.name)
            .map(|provide| provide.by)
            .collect();
        let mut found = Vec::new();
        for version in real.chain(provided.into_iter().rev()) {
            let is_self = relation.is_negative() && name(version) == name(parent);
            if !is_self && !found.contains(&version) && universe.fulfils(relation, own, version) {
                found.push(version);
            }
        }
        found
    }

    /// The package that a relation names; where only others provide the name, the first of those.
    fn smart_target(
        &self,
        relation: &AptRelation<'t>,
        own: u8,
        parent: AptPackageId,
    ) -> Option<AptPackageId> {
        let universe = self.universe;
        self.target(relation, own).or_else(|| {
            let all: Vec<AptPackageId> = universe
                .providers_of(relation.name)
                .map(|provide| universe.offer_of(provide.by).package)
                .collect();
            all.into_iter().rev().find(|package| *package != parent)
        })
    }
}
