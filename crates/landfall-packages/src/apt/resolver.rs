//! apt's problem resolver, for packages that are broken after marking. It visits the planned
//! packages in the order of their scores, keeps, upgrades or removes the weaker side of each broken
//! relation, and repeats that until nothing changes. The code follows `pkgProblemResolver` of apt
//! 2.6.

use super::install::remove_repeated;
use super::marking::{MarkMode, MarkedVersion, Marking};
use super::relation::compare;
use super::universe::{AptPackageId, AptRelation, AptVersionId, RelationKind};

/// The maximum number of rounds over all packages, as in apt.
const ROUNDS: usize = 20;

/// What happens to a package if none of the alternatives of its dependency helped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unwind {
    Remove,
    Keep,
}

/// A package that must be changed to make a relation hold, the relation, and the version that has
/// the relation.
type Obstacle<'r, 't> = (AptPackageId, &'r [AptRelation<'t>], AptVersionId);

/// The state of the problem resolver, in addition to the marks of the packages.
struct Resolution {
    scores: Vec<i64>,
    /// For each package, whether it was marked for installation before the resolver started.
    was_marked: Vec<bool>,
    /// For each package, whether its upgrade may still be tried. Each upgrade is tried only once.
    may_upgrade: Vec<bool>,
    /// For each package, whether it is new and no other package needs it.
    is_garbage: Vec<bool>,
    round: usize,
    has_changed: bool,
}

impl<'u, 't> Marking<'u, 't> {
    /// Whether the resolver may run. It does not repair a machine: if any installed package is
    /// broken already, a selection that needs the resolver is rejected.
    pub(super) fn can_resolve(&self) -> bool {
        (0..self.states.len() as AptPackageId).all(|package| !self.was_broken(package))
    }

    /// Resolves broken packages. Those that are still broken afterwards cannot be installed.
    pub(super) fn resolve(&mut self) {
        let count = self.states.len() as AptPackageId;
        // first, installed packages that marking broke are upgraded, which may be enough
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
        let mut resolution = Resolution {
            scores: self.scores(),
            was_marked: self
                .states
                .iter()
                .map(|state| state.mode == MarkMode::Install)
                .collect(),
            may_upgrade: vec![true; self.states.len()],
            is_garbage: self
                .states
                .iter()
                .map(|state| {
                    state.install.is_some_and(|version| {
                        state.current.is_none() && needed.binary_search(&version).is_err()
                    })
                })
                .collect(),
            round: 0,
            has_changed: true,
        };
        // packages with equal scores stay in the order of the indexes; apt uses the order of a hash
        // table instead, a known difference
        let mut order: Vec<AptPackageId> = (0..count).collect();
        order.sort_by_key(|package| std::cmp::Reverse(resolution.scores[*package as usize]));
        while resolution.has_changed && resolution.round < ROUNDS {
            resolution.has_changed = false;
            for package in &order {
                self.resolve_package(&mut resolution, *package);
            }
            resolution.round += 1;
        }
    }

    /// If a broken package would be kept, tries to upgrade it. Returns whether it is upgraded.
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
        self.planned_versions()
            .filter(|(package, _)| self.is_broken(*package, false))
            .count()
    }

    /// Resolves the broken relations of one package.
    fn resolve_package(&mut self, resolution: &mut Resolution, package: AptPackageId) {
        self.reinstate(resolution, package);
        let Some(version) = self
            .planned_version(package)
            .filter(|_| self.is_broken(package, false))
        else {
            return;
        };
        let mut obstacles: Vec<Obstacle<'u, 't>> = Vec::new();
        for group in self.groups(version).filter(|group| group[0].is_critical()) {
            let before = obstacles.len();
            let mut unwind = Unwind::Remove;
            // `is_open`: the relation has several alternatives, and none has helped so far
            let mut is_open = group.len() > 1;
            let mut is_done = false;
            for relation in group {
                if self.is_met(group, version, MarkedVersion::Install) {
                    is_open = false;
                    break;
                }
                let targets = self.all_targets(relation, version);
                let is_free =
                    !self.states[package as usize].is_protected && !relation.is_negative();
                if targets.is_empty() && is_free && !self.was_broken(package) {
                    // nothing satisfies this alternative: the next one is tried; if the relation
                    // has only one alternative, the planned change of the package is undone
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
                    self.keep_or_delete(package, is_open, &mut unwind);
                    resolution.has_changed = true;
                    true
                } else {
                    self.resolve_relation(
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
        // if the package was removed meanwhile, its obstacles need not be cleared
        if self.planned_version(package).is_some() {
            obstacles
                .iter()
                .for_each(|obstacle| self.clear_obstacle(resolution, package, *obstacle));
        }
    }

    /// Retries an upgrade that was planned by marking and undone by the resolver. The upgrade is
    /// undone again if it breaks anything.
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
        // once only: otherwise each round could undo and redo the upgrade
        let before = self.broken_count();
        resolution.was_marked[package as usize] = false;
        resolution.may_upgrade[package as usize] = false;
        self.install(package, false, 0, false);
        if self.is_broken(package, false) || before < self.broken_count() {
            self.keep(package, 0, false);
        }
    }

    /// Resolves one alternative of a relation of `package`. `targets` are the versions that satisfy
    /// the alternative or, for a conflict, violate it. Returns whether the package itself was
    /// changed.
    #[allow(clippy::too_many_arguments, reason = "the state of one step")]
    fn resolve_relation(
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
        let alone = std::slice::from_ref(relation);
        let was_met = self.is_met(alone, version, MarkedVersion::Current);
        for target in targets {
            let other = self.universe.offer_of(*target).package;
            // a conflict with a version that is not planned does no harm
            if relation.is_negative() && self.planned_version(other) != Some(*target) {
                continue;
            }
            let [own_score, score] = [package, other].map(|one| resolution.scores[one as usize]);
            // if the score of the other package is not lower, or the installed packages do not
            // satisfy the dependency, the package itself is changed; if it is protected, the other
            // package is upgraded
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
            // `Breaks` usually names older versions, so an upgrade of the other package is enough
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

    /// Changes a package instead of `other`: keeps, upgrades or removes the package, or installs
    /// the package that `relation` names.
    fn change_self(
        &mut self,
        resolution: &mut Resolution,
        (package, version): (AptPackageId, AptVersionId),
        relation: &AptRelation<'t>,
        other: AptPackageId,
        is_open: bool,
        unwind: &mut Unwind,
    ) {
        if self.keep_if_unbroken(package, is_open, unwind) || self.upgrade(resolution, package) {
            return;
        }
        if !is_open || resolution.is_garbage[package as usize] {
            self.delete(package, 0);
            let [own_score, score] = [package, other].map(|one| resolution.scores[one as usize]);
            // in later rounds the package gets the higher score of both, so that it is not the
            // weaker side again
            if resolution.round > 1 {
                resolution.scores[package as usize] = own_score.max(score);
            }
            return;
        }
        let target = self.target(relation, self.architecture(version));
        let new_target = target.filter(|target| {
            let state = &self.states[*target as usize];
            state.current.is_none() && state.mode != MarkMode::Delete && state.candidate.is_some()
        });
        if let Some(target) = new_target {
            // an alternative that is broken, or breaks more packages than it repairs, is undone
            let before = self.broken_count();
            self.install(target, true, 1, false);
            if self.is_broken(target, false) || self.broken_count() > before {
                self.delete(target, 1);
            }
        }
    }

    /// Keeps the installed version of a package. Returns whether the package is unbroken
    /// afterwards. In that case, if the relation has several alternatives (`is_open`) and the
    /// package was marked for installation, marks it again while the alternatives are tried.
    fn keep_if_unbroken(
        &mut self,
        package: AptPackageId,
        is_open: bool,
        unwind: &mut Unwind,
    ) -> bool {
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

    /// Keeps the installed version of a package whose dependency nothing satisfies. If the package
    /// is broken then, and the dependency has no other alternative, removes the package.
    fn keep_or_delete(&mut self, package: AptPackageId, is_open: bool, unwind: &mut Unwind) {
        if !self.keep_if_unbroken(package, is_open, unwind) && !is_open {
            self.delete(package, 0);
        }
    }

    /// Installs the candidate of a package. If dependencies of the candidate do not hold then,
    /// upgrades the packages that they name, recursively. Returns whether that worked. If a
    /// dependency cannot be satisfied, the package is kept or removed.
    fn upgrade(&mut self, resolution: &mut Resolution, package: AptPackageId) -> bool {
        let state = self.states[package as usize];
        // cleared during the recursion, so that a circular dependency ends
        let may = std::mem::replace(&mut resolution.may_upgrade[package as usize], false);
        if !may || !self.is_upgradable(package) || state.is_requested {
            resolution.may_upgrade[package as usize] = may;
            return false;
        }
        if !self.install(package, false, 0, false) {
            return false;
        }
        let Some(version) = self.planned_version(package) else {
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

    /// Whether a package has a candidate, and is not installed or has an older installed version.
    fn is_upgradable(&self, package: AptPackageId) -> bool {
        let state = &self.states[package as usize];
        let Some(candidate) = state.candidate else {
            return false;
        };
        state.current.is_none_or(|current| {
            let [new, old] =
                [candidate, current].map(|version| self.universe.offer_of(version).version);
            compare(new, old).is_gt()
        })
    }

    /// Clears the obstacle `other` of `package`: keeps the installed version of `other` if the
    /// relation holds with the installed versions; otherwise, if the relation is a conflict,
    /// deletes `other`.
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

    /// Returns all versions that satisfy a relation of `parent`, including those that are not
    /// candidates.
    fn all_targets(&self, relation: &AptRelation<'t>, parent: AptVersionId) -> Vec<AptVersionId> {
        let universe = self.universe;
        let own = self.architecture(parent);
        let packages = universe.packages_of(relation.name).iter();
        let real = packages
            .flat_map(|package| &universe.packages[*package as usize].versions)
            .copied()
            .filter(|version| universe.is_named(relation, own, *version));
        // apt lists the providers in reverse order of reading
        let provided: Vec<AptVersionId> = universe
            .providers_of(relation.name)
            .filter(|provide| universe.is_provided(relation, own, provide))
            .map(|provide| provide.by)
            .collect();
        let mut found: Vec<AptVersionId> = real.chain(provided.into_iter().rev()).collect();
        let name = universe.name_of(parent);
        found.retain(|version| !relation.is_negative() || universe.name_of(*version) != name);
        remove_repeated(&mut found);
        found
    }

    /// Returns the package that a relation names. If no package has that name, returns the provider
    /// of the name that apt read last, but never `parent`.
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

// The scores by which apt's problem resolver decides between conflicting packages. They depend on
// the priority of a package and on the packages that depend on it.

/// The scores of the priorities, from `required` to `extra`. All scores in this file are those of
/// apt.
const PRIORITIES: [i64; 5] = [3, 2, 1, -1, -2];
/// The score of essential and protected packages before scores are inherited.
const ESSENTIAL: i64 = 100;
/// The score of installed packages that a source still offers.
const NOT_OBSOLETE: i64 = 1;
const REQUESTED: i64 = 10_000;
/// The additional score of essential and protected packages, which is not inherited.
const ESSENTIAL_AGAIN: i64 = 5_000;

impl Marking<'_, '_> {
    /// Returns the score of every package. Of two conflicting packages, apt keeps the one with the
    /// higher score.
    pub(super) fn scores(&self) -> Vec<i64> {
        let universe = self.universe;
        let mut scores = vec![0; self.states.len()];
        let planned: Vec<(AptPackageId, AptVersionId)> = self.planned_versions().collect();
        for (package, version) in &planned {
            scores[*package as usize] += self.own_score(*package, *version);
            let own = self.architecture(*version);
            let own_name = universe.packages[*package as usize].name;
            for relation in universe.relations_of(*version) {
                let points = match relation.kind {
                    RelationKind::PreDepends | RelationKind::Depends | RelationKind::Recommends => {
                        1
                    }
                    RelationKind::Conflicts | RelationKind::Breaks => -1,
                    RelationKind::Suggests => continue,
                };
                let mut scored: Vec<AptPackageId> = self
                    .matching(
                        std::slice::from_ref(relation),
                        *version,
                        MarkedVersion::Install,
                    )
                    .into_iter()
                    .map(|version| universe.offer_of(version).package)
                    .collect();
                // a relation without a version counts even if the package that it names is not
                // planned
                if relation.version.is_empty() {
                    // a package that conflicts with its own name does not conflict with itself
                    scored.extend(self.target(relation, own).filter(|target| {
                        !relation.is_negative()
                            || universe.packages[*target as usize].name != own_name
                    }));
                }
                scored.sort_unstable();
                scored.dedup();
                scored
                    .iter()
                    .for_each(|package| scores[*package as usize] += points);
            }
        }
        self.inherit_scores(&planned, &mut scores);
        // these scores are added last, so that dependencies do not inherit them
        for package in 0..scores.len() as AptPackageId {
            let score = &mut scores[package as usize];
            if self.states[package as usize].is_requested {
                *score += REQUESTED;
            }
            if universe.is_vital(package) {
                *score += ESSENTIAL_AGAIN;
            }
        }
        scores
    }

    /// Returns the score of a package without its relations.
    fn own_score(&self, package: AptPackageId, version: AptVersionId) -> i64 {
        let universe = self.universe;
        let offer = universe.offer_of(version);
        // a version that no source offers has the lowest priority
        let priority = if offer.source.is_some() {
            usize::from(offer.priority)
        } else {
            PRIORITIES.len()
        };
        let mut score = PRIORITIES[priority.clamp(1, PRIORITIES.len()) - 1];
        if universe.is_vital(package) {
            score += ESSENTIAL;
        }
        let state = &self.states[package as usize];
        if state.current.is_some()
            && state
                .candidate
                .is_some_and(|candidate| universe.offer_of(candidate).source.is_some())
        {
            score += NOT_OBSOLETE;
        }
        score
    }

    /// Adds to each package the positive scores of the packages that depend on its name. The
    /// score that a name inherited is then added to the packages that provide it.
    fn inherit_scores(&self, planned: &[(AptPackageId, AptVersionId)], scores: &mut [i64]) {
        let universe = self.universe;
        // the scores before inheritance, so that the order of the packages does not matter
        let old = scores.to_vec();
        for (package, version) in planned {
            let from = old[*package as usize];
            let own = self.architecture(*version);
            for relation in universe.relations_of(*version).iter().filter(|_| from > 0) {
                let is_dependency =
                    !relation.is_negative() && relation.kind != RelationKind::Suggests;
                let target = self.target(relation, own).filter(|_| is_dependency);
                if let Some(target) =
                    target.filter(|target| self.planned_version(*target).is_some())
                {
                    scores[target as usize] += from;
                }
            }
        }
        for package in 0..old.len() {
            let transfer = (scores[package] - old[package]).abs();
            if transfer == 0 {
                continue;
            }
            let mut providers: Vec<AptPackageId> = universe
                .providers_of(universe.packages[package].name)
                .filter(|provide| self.state_of(provide.by).install == Some(provide.by))
                .map(|provide| universe.offer_of(provide.by).package)
                .collect();
            providers.sort_unstable();
            providers.dedup();
            providers
                .iter()
                .for_each(|provider| scores[*provider as usize] += transfer);
        }
    }
}
