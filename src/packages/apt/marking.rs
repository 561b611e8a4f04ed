//! What apt does when it marks a package for installation, with all that this needs: depth first, in the order of the
//! relations, and of alternatives the first that works. The far side's apt chooses by the same rules, so what it would take is
//! what is carried. Named after apt's `pkgDepCache::MarkInstall`, as of apt 2.6.

use super::reason::{Reason, Reasons};
use super::universe::{MultiArch, Package, Relation, RelationKind, Universe, Version};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// How deep packages may need each other; apt's own bound.
const DEPTH: u32 = 3000;

/// What is settled before anything is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Whether what is recommended is taken too.
    pub(crate) recommends: bool,
    /// Whether the machine is taken to have what no source offers.
    pub(crate) expects_rest: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Keep,
    Install,
    Delete,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    current: Option<Version>,
    candidate: Option<Version>,
    /// What is there in the end.
    install: Option<Version>,
    mode: Mode,
    is_protected: bool,
    /// Whether it is wanted for itself.
    is_asked: bool,
}

/// The state of every package.
pub(super) struct Marking<'u, 't> {
    universe: &'u Universe<'t>,
    settings: Settings,
    states: Vec<State>,
    pub(super) reasons: Reasons,
}

/// Which version of a package counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Current,
    Candidate,
    Install,
}

impl State {
    fn version(&self, which: Which) -> Option<Version> {
        match which {
            Which::Current => self.current,
            Which::Candidate => self.candidate,
            Which::Install => self.install,
        }
    }
}

impl Relation<'_> {
    fn is_negative(&self) -> bool {
        matches!(self.kind, RelationKind::Conflicts | RelationKind::Breaks)
    }

    fn is_critical(&self) -> bool {
        self.kind != RelationKind::Recommends
    }
}

impl<'u, 't> Marking<'u, 't> {
    pub(super) fn new(universe: &'u Universe<'t>, settings: Settings) -> Marking<'u, 't> {
        let states = (0..universe.packages.len()).map(|package| {
            let current = universe.packages[package].current;
            let candidate = universe.candidate(package as Package);
            State { current, candidate, install: current, ..State::default() }
        });
        Marking { universe, settings, states: states.collect(), reasons: Reasons::default() }
    }

    /// Makes `version` the one that is taken of its package, if any is.
    pub(super) fn prefer(&mut self, version: Version) {
        let package = self.universe.offer_of(version).package;
        self.state(package).candidate = Some(version);
    }

    /// As [`prefer`](Self::prefer), and of what it needs takes versions of the same source where others do not do.
    pub(super) fn prefer_with_needs(&mut self, version: Version, mut depth: u32) {
        self.prefer(version);
        depth += 1;
        let source = self.universe.offer_of(version).source;
        let groups: Vec<&'u [Relation<'t>]> = self.groups(version).collect();
        for group in groups {
            let is_met = |which| !self.matching(group, version, which).is_empty();
            if group[0].is_negative() || !group[0].is_critical() || is_met(Which::Candidate) || depth > 64 {
                continue;
            }
            let own = self.architecture(version);
            let other = group.iter().find_map(|relation| {
                let packages = self.universe.packages_of(relation.name).iter();
                let mut versions =
                    packages.flat_map(|at| &self.universe.packages[*at as usize].versions).copied();
                versions.find(|other| {
                    self.universe.offer_of(*other).source == source
                        && self.universe.fulfils(relation, own, *other)
                })
            });
            if let Some(other) = other {
                self.prefer_with_needs(other, depth);
            }
        }
    }

    /// Marks a package that is asked for, without what it needs.
    pub(super) fn ask(&mut self, package: Package) {
        self.state(package).is_protected = true;
        self.state(package).is_asked = true;
        self.install(package, false, 0, true);
    }

    /// Marks what a package needs that is asked for.
    pub(super) fn complete(&mut self, package: Package) {
        self.install(package, true, 0, true);
    }

    /// What is there in the end.
    pub(super) fn installed(&self, package: Package) -> Option<Version> {
        self.states[package as usize].install
    }

    /// The packages that are there in the end and lack something, or must not be together.
    pub(super) fn broken(&self) -> Vec<Package> {
        let changed = |package: &Package| {
            let state = &self.states[*package as usize];
            state.install.is_some() && (state.install != state.current || !self.was_broken(*package))
        };
        (0..self.states.len() as Package)
            .filter(changed)
            .filter(|package| self.is_broken(*package, false))
            .collect()
    }

    /// The first relation of what is there of `package` that does not hold, critical ones alone.
    pub(super) fn unmet(&self, package: Package) -> Option<&'u [Relation<'t>]> {
        let version = self.states[package as usize].install?;
        self.groups(version)
            .find(|group| group[0].is_critical() && !self.is_met(group, version, Which::Install))
    }

    /// What the machine must have for `version`, as no source offers it.
    pub(super) fn expected(&self, version: Version) -> Vec<&'u [Relation<'t>]> {
        let critical = self.groups(version).filter(|group| group[0].is_critical() && !group[0].is_negative());
        critical.filter(|group| self.is_expected(group)).collect()
    }

    /// What is new in the end, and needed by something that is asked for.
    pub(super) fn needed(&self) -> Vec<Version> {
        let asked =
            (0..self.states.len() as Package).filter(|package| self.states[*package as usize].is_asked);
        let had = (0..self.states.len() as Package)
            .filter(|package| self.states[*package as usize].current.is_some());
        let mut next: Vec<Package> = asked.chain(had).collect();
        let mut seen: BTreeSet<Package> = next.iter().copied().collect();
        let mut needed = Vec::new();
        while let Some(package) = next.pop() {
            let state = &self.states[package as usize];
            let Some(version) = state.install else { continue };
            if state.current != Some(version) {
                needed.push(version);
            }
            let is_needed = |group: &&[Relation<'t>]| !group[0].is_negative() && self.counts(&group[0]);
            for group in self.groups(version).filter(is_needed) {
                for other in self.matching(group, version, Which::Install) {
                    let other = self.universe.offer_of(other).package;
                    if seen.insert(other) {
                        next.push(other);
                    }
                }
            }
        }
        needed.sort_unstable();
        needed
    }

    fn state(&mut self, package: Package) -> &mut State {
        &mut self.states[package as usize]
    }

    fn state_of(&self, version: Version) -> &State {
        &self.states[self.universe.offer_of(version).package as usize]
    }

    fn architecture(&self, version: Version) -> u8 {
        self.universe.packages[self.universe.offer_of(version).package as usize].arch
    }

    /// The relations of a version, alternatives together.
    fn groups(&self, version: Version) -> impl Iterator<Item = &'u [Relation<'t>]> + use<'u, 't> {
        let universe: &'u Universe<'t> = self.universe;
        universe.relations_of(version).chunk_by(|relation, _| relation.or)
    }

    fn counts(&self, relation: &Relation<'_>) -> bool {
        relation.is_critical() || self.settings.recommends
    }

    fn is_expected(&self, group: &[Relation<'_>]) -> bool {
        self.settings.expects_rest && group.iter().all(|relation| !self.universe.has(relation.name))
    }

    /// The versions of `which` that a relation of `parent` means.
    fn matching(&self, group: &[Relation<'t>], parent: Version, which: Which) -> Vec<Version> {
        let own = self.architecture(parent);
        let name = self.universe.packages[self.universe.offer_of(parent).package as usize].name;
        let mut found = Vec::new();
        for relation in group {
            let packages = self.universe.packages_of(relation.name).iter();
            let real = packages.filter_map(|package| self.states[*package as usize].version(which));
            let provided = self.universe.providers_of(relation.name).map(|provide| provide.by);
            let provided = provided.filter(|by| self.state_of(*by).version(which) == Some(*by));
            for version in real.chain(provided) {
                let other = self.universe.packages[self.universe.offer_of(version).package as usize].name;
                let is_self = relation.is_negative() && other == name;
                if !is_self && !found.contains(&version) && self.universe.fulfils(relation, own, version) {
                    found.push(version);
                }
            }
        }
        found
    }

    fn is_met(&self, group: &[Relation<'t>], parent: Version, which: Which) -> bool {
        let is_there = !self.matching(group, parent, which).is_empty();
        if group[0].is_negative() { !is_there } else { is_there || self.is_expected(group) }
    }

    fn is_broken(&self, package: Package, with_recommends: bool) -> bool {
        let Some(version) = self.states[package as usize].install else { return false };
        let counts =
            |group: &&[Relation<'t>]| group[0].is_critical() || (with_recommends && self.counts(&group[0]));
        self.groups(version).filter(counts).any(|group| !self.is_met(group, version, Which::Install))
            || !self.other_architectures(package, version, Which::Install).is_empty()
    }

    fn was_broken(&self, package: Package) -> bool {
        let Some(version) = self.states[package as usize].current else { return false };
        let mut critical = self.groups(version).filter(|group| group[0].is_critical());
        critical.any(|group| !self.is_met(group, version, Which::Current))
    }

    /// What of the same name on other architectures cannot be beside `version`.
    fn other_architectures(&self, package: Package, version: Version, which: Which) -> Vec<Version> {
        let offer = self.universe.offer_of(version);
        let same = |other: &Version| {
            let other = self.universe.offer_of(*other);
            [offer, other].iter().all(|one| one.multi_arch == MultiArch::Same)
                && other.version == offer.version
        };
        let name = self.universe.packages[package as usize].name;
        let others = self.universe.packages_of(name).iter().filter(|other| **other != package);
        let others = others.filter_map(|other| self.states[*other as usize].version(which));
        others.filter(|other| !same(other)).collect()
    }

    /// The versions that can fulfil a relation, in apt's order.
    fn solutions(&self, group: &[Relation<'t>], parent: Version, which: Which) -> Vec<Version> {
        let (mut upgrades, mut others) = (Vec::new(), Vec::new());
        for relation in group {
            let mut found = self.matching(std::slice::from_ref(relation), parent, which);
            found.sort_by(|a, b| self.order(relation, *a, *b));
            for version in found {
                let list = if self.state_of(version).current.is_some() { &mut upgrades } else { &mut others };
                if !list.contains(&version) {
                    list.push(version);
                }
            }
        }
        upgrades.append(&mut others);
        if !group[0].is_negative() {
            upgrades.retain(|version| {
                let state = self.state_of(*version);
                let is_out =
                    state.mode == Mode::Delete || (state.mode == Mode::Keep && state.current.is_none());
                !(state.is_protected && is_out)
            });
        }
        upgrades
    }

    /// Which of two versions that fulfil `relation` apt prefers.
    fn order(&self, relation: &Relation<'_>, a: Version, b: Version) -> Ordering {
        let [of_a, of_b] = [a, b].map(|version| self.universe.offer_of(version));
        let [state_a, state_b] = [a, b].map(|version| *self.state_of(version));
        let [known_a, known_b] = [of_a, of_b].map(|offer| &self.universe.packages[offer.package as usize]);
        let first = |a: bool, b: bool| b.cmp(&a);
        let has_sibling = |version: Version| {
            let offer = self.universe.offer_of(version);
            let name = self.universe.packages[offer.package as usize].name;
            let mut packages = self.universe.packages_of(name).iter();
            offer.multi_arch == MultiArch::Same
                && packages.any(|package| self.states[*package as usize].current.is_some())
        };
        let number = |package: Package| (self.universe.packages[package as usize].name, package);
        first(state_a.is_protected, state_b.is_protected)
            .then_with(|| first(has_sibling(a), has_sibling(b)))
            .then_with(|| first(state_a.current.is_some(), state_b.current.is_some()))
            .then_with(|| first(known_a.name == relation.name, known_b.name == relation.name))
            .then_with(|| first(of_a.is_essential, of_b.is_essential))
            .then_with(|| first(of_a.is_important, of_b.is_important))
            .then_with(|| known_a.arch.cmp(&known_b.arch))
            .then_with(|| of_a.priority.cmp(&of_b.priority))
            .then_with(|| number(of_b.package).cmp(&number(of_a.package)))
    }

    fn may_change(&self, package: Package, mode: Mode, depth: u32, is_user: bool) -> bool {
        let state = &self.states[package as usize];
        if depth > DEPTH || self.universe.packages[package as usize].versions.is_empty() {
            return false;
        }
        let is_vital = || {
            let offer = state.current.map(|version| self.universe.offer_of(version));
            mode == Mode::Delete && offer.is_some_and(|offer| offer.is_essential || offer.is_important)
        };
        is_user || state.mode == mode || !(state.is_protected || is_vital())
    }

    fn keep(&mut self, package: Package, depth: u32, is_user: bool) -> bool {
        if !self.may_change(package, Mode::Keep, depth, is_user) {
            return false;
        }
        let state = self.state(package);
        (state.mode, state.install) = (Mode::Keep, state.current);
        true
    }

    fn may_delete(&self, package: Package, depth: u32) -> bool {
        let state = &self.states[package as usize];
        let is_asked = state.current.is_none() && state.install.is_some() && state.is_asked;
        self.may_change(package, Mode::Delete, depth, false) && !is_asked
    }

    fn delete(&mut self, package: Package, depth: u32) -> bool {
        if self.states[package as usize].mode == Mode::Delete
            || self.states[package as usize].install.is_none()
        {
            return self.may_change(package, Mode::Delete, depth, false);
        }
        if !self.may_delete(package, depth) {
            return false;
        }
        let state = self.state(package);
        state.mode = if state.current.is_none() { Mode::Keep } else { Mode::Delete };
        state.install = None;
        true
    }

    fn discard_candidate(&mut self, package: Package) {
        let state = self.state(package);
        state.candidate = state.install;
    }

    fn discard_install(&mut self, package: Package) {
        let state = self.state(package);
        if state.mode == Mode::Keep && state.install == state.candidate && state.candidate == state.current {
            return;
        }
        (state.install, state.mode) = (state.current, Mode::Keep);
        self.discard_candidate(package);
    }

    fn change(&mut self, package: Package) {
        let state = self.state(package);
        if state.is_protected && state.install == state.candidate {
            return;
        }
        state.install = state.candidate;
        state.mode = if state.candidate == state.current { Mode::Keep } else { Mode::Install };
    }

    /// Whether each relation of the candidate can be fulfilled by some candidate. If not, it is no candidate any more.
    fn can_install(&mut self, package: Package, with_needs: bool, is_user: bool) -> bool {
        let state = self.states[package as usize];
        let Some(candidate) = state.candidate else { return false };
        if !(is_user || state.mode == Mode::Install && state.install == Some(candidate)) {
            let others = self.other_architectures(package, candidate, Which::Install);
            if let (Some(other), true) = (
                others.first(),
                self.universe.offer_of(candidate).multi_arch == MultiArch::Same
                    && state.current != Some(candidate),
            ) {
                self.reasons.set(package, Reason::OtherArchitecture(*other));
                return false;
            }
        }
        if !with_needs || state.current == Some(candidate) {
            return true;
        }
        let unmet = self.groups(candidate).find(|group| {
            let can = |which| self.is_met(group, candidate, which);
            group[0].is_critical()
                && !group[0].is_negative()
                && !can(Which::Install)
                && !can(Which::Candidate)
        });
        let Some(unmet) = unmet else { return true };
        self.reasons.set(package, Reason::unmet(candidate, unmet));
        if !state.is_protected {
            let state = self.state(package);
            state.candidate = state.current;
            if state.mode != Mode::Delete {
                (state.mode, state.install) = (Mode::Keep, state.current);
            }
        }
        false
    }

    /// Marks `package` for installation; with its needs, unless they are asked for later. Returns whether that worked.
    fn install(&mut self, package: Package, with_needs: bool, depth: u32, is_user: bool) -> bool {
        let state = self.states[package as usize];
        let stays = state.is_protected
            && state.mode == Mode::Keep
            && state.candidate.is_some()
            && state.candidate == state.current;
        if !stays && !self.may_change(package, Mode::Install, depth, is_user) {
            return false;
        }
        let Some(candidate) = state.candidate else { return false };
        if !state.is_protected && !self.is_broken(package, true) {
            if state.current == Some(candidate) {
                return state.install.is_some() || self.keep(package, depth + 1, is_user);
            }
            if state.mode == Mode::Install {
                return true;
            }
        }
        if !self.can_install(package, with_needs, is_user) {
            return false;
        }
        if is_user {
            self.change(package);
        }
        let fails_early = !state.is_protected && !is_user;
        let mut has_failed = false;
        let (mut needs, mut upgrades, mut removals) = (Vec::new(), Vec::new(), Vec::new());
        if with_needs {
            let mut against = Vec::new();
            for group in self.groups(candidate) {
                if self.is_met(group, candidate, Which::Install) && !state.is_protected
                    || !self.counts(&group[0])
                {
                    continue;
                }
                if group[0].is_negative() { against.push(group) } else { needs.push(group) }
            }
            let cleared =
                self.clear(package, candidate, &against, depth, is_user, &mut upgrades, &mut removals);
            if !cleared {
                if fails_early {
                    return false;
                }
                has_failed = true;
            }
            self.collect_dependents(package, candidate, &mut upgrades);
        }
        if !is_user {
            self.change(package);
        }
        if !with_needs {
            return !has_failed;
        }
        self.state(package).is_protected = true;
        let worked = self.bring_needs(
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
        if !worked && fails_early {
            self.discard_install(package);
            return false;
        }
        worked && !has_failed
    }

    #[allow(clippy::too_many_arguments, reason = "the state of one step of the recursion")]
    fn bring_needs(
        &mut self,
        package: Package,
        candidate: Version,
        needs: &[&'u [Relation<'t>]],
        upgrades: &[Package],
        removals: &[Package],
        depth: u32,
        is_user: bool,
        is_protected: bool,
    ) -> bool {
        let goes_on = is_protected || is_user;
        self.upgrade_siblings(package, candidate, depth);
        let mut worked = true;
        for other in upgrades {
            let is_marked = self.states[*other as usize].mode == Mode::Install;
            if is_marked || self.install(*other, true, depth + 1, false) {
                continue;
            }
            if !self.delete(*other, depth + 1) {
                self.reasons.set(package, Reason::Holds(*other));
                worked = false;
                if !goes_on {
                    return false;
                }
            } else if is_protected {
                self.state(*other).is_protected = true;
            }
        }
        for group in needs {
            if !self.bring(package, candidate, group, depth, is_protected) {
                worked = false;
                if !goes_on {
                    return false;
                }
            }
        }
        for other in removals {
            worked &= self.delete(*other, depth);
        }
        worked
    }

    /// Fulfils one relation.
    fn bring(
        &mut self,
        package: Package,
        parent: Version,
        group: &[Relation<'t>],
        depth: u32,
        is_protected: bool,
    ) -> bool {
        let is_critical = group[0].is_critical();
        if self.is_met(group, parent, Which::Install) {
            if !is_protected || !is_critical {
                return true;
            }
            let mut all = self.matching(group, parent, Which::Candidate);
            all.extend(self.matching(group, parent, Which::Current));
            all.sort_unstable();
            all.dedup();
            let [only] = all[..] else { return true };
            let only = self.universe.offer_of(only).package;
            if self.states[only as usize].is_protected {
                return true;
            }
            self.state(only).is_protected = true;
            return self.install(only, true, depth + 1, false);
        }
        let current = self.states[package as usize].current;
        if let Some(current) = current.filter(|_| !is_critical)
            && !self.is_new_or_was_met(current, &group[0])
        {
            return true;
        }
        let solutions = self.solutions(group, parent, Which::Candidate);
        for solution in &solutions {
            let other = self.universe.offer_of(*solution).package;
            if self.states[other as usize].candidate != Some(*solution) {
                continue;
            }
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
            let tried = solutions.iter().map(|version| self.universe.offer_of(*version).package).collect();
            self.reasons.set(package, Reason::Needs(parent, group[0].name, tried));
        }
        !is_critical
    }

    /// Whether a recommendation is new with an upgrade, or was met before it.
    fn is_new_or_was_met(&self, current: Version, wanted: &Relation<'t>) -> bool {
        let mut is_new = true;
        for group in self.groups(current).filter(|group| !group[0].is_critical() && self.counts(&group[0])) {
            if group.iter().any(|relation| relation.name == wanted.name) {
                is_new = false;
                if self.is_met(group, current, Which::Current) {
                    return true;
                }
            }
        }
        is_new
    }

    /// Takes out of the way what `candidate` must not be beside.
    #[allow(clippy::too_many_arguments, reason = "the state of one step of the recursion")]
    fn clear(
        &mut self,
        package: Package,
        candidate: Version,
        against: &[&'u [Relation<'t>]],
        depth: u32,
        is_user: bool,
        upgrades: &mut Vec<Package>,
        removals: &mut Vec<Package>,
    ) -> bool {
        let is_protected = self.states[package as usize].is_protected;
        let mut bad = Vec::new();
        for group in against {
            let mut failed = None;
            for version in self.solutions(group, candidate, Which::Candidate) {
                let other = self.universe.offer_of(version).package;
                let state = self.states[other as usize];
                if state.candidate != Some(version) {
                    continue;
                }
                if state.current == Some(version) {
                    if !self.remove(other, is_protected, depth, removals) {
                        failed = Some(version);
                    }
                } else if state.mode == Mode::Install && !self.keep(other, depth, false) {
                    failed = Some(version);
                } else if is_protected {
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
                for version in self.solutions(group, candidate, Which::Current) {
                    let other = self.universe.offer_of(version).package;
                    let state = self.states[other as usize];
                    if state.candidate.is_some() && state.candidate != Some(version) && !bad.contains(&other)
                    {
                        upgrades.push(other);
                    } else if state.candidate != state.current
                        && !self.remove(other, is_protected, depth, removals)
                    {
                        failed = Some(version);
                    }
                }
            }
            if let Some(version) = failed {
                self.reasons.set(package, Reason::Conflicts(candidate, version));
                return false;
            }
        }
        true
    }

    fn remove(
        &mut self,
        package: Package,
        is_protected: bool,
        depth: u32,
        removals: &mut Vec<Package>,
    ) -> bool {
        let is_deleted = self.states[package as usize].mode == Mode::Delete;
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

    /// Installed packages that need the installed version of what is replaced, and not the new one.
    fn collect_dependents(&self, package: Package, candidate: Version, upgrades: &mut Vec<Package>) {
        let Some(current) = self.states[package as usize].current.filter(|current| *current != candidate)
        else {
            return;
        };
        for (other, state) in self.states.iter().enumerate() {
            let (Some(parent), other) = (state.current, other as Package) else { continue };
            if state.mode == Mode::Install || upgrades.contains(&other) || other == package {
                continue;
            }
            let own = self.architecture(parent);
            let mut relations = self.universe.relations_of(parent).iter();
            let depends = relations.any(|relation| {
                self.counts(relation)
                    && !relation.is_negative()
                    && self.universe.fulfils(relation, own, current)
                    && !self.universe.fulfils(relation, own, candidate)
            });
            if depends {
                upgrades.push(other);
            }
        }
    }

    /// Installed packages of the same source follow to the same version of it.
    fn upgrade_siblings(&mut self, package: Package, candidate: Version, depth: u32) {
        let siblings: Vec<Package> = self
            .universe
            .siblings_of(candidate)
            .filter(|version| {
                let state = self.state_of(*version);
                let is_marked = state.mode == Mode::Install && state.install == Some(*version);
                state.current.is_some_and(|current| current != *version)
                    && state.candidate == Some(*version)
                    && !is_marked
            })
            .map(|version| self.universe.offer_of(version).package)
            .filter(|other| *other != package)
            .collect();
        for with_needs in [false, true] {
            for other in &siblings {
                self.install(*other, with_needs, depth + 1, false);
            }
        }
    }
}
