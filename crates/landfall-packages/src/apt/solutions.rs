//! Which versions fulfil a relation, and in which order apt takes them.

use super::marking::{MarkMode, MarkedVersion, Marking};
use super::offer::{AptPackageId, AptRelation, AptVersionId, MultiArch};
use std::cmp::Ordering;

impl<'t> Marking<'_, 't> {
    /// The versions of `which` that a relation of `parent` means.
    pub(super) fn matching(
        &self,
        group: &[AptRelation<'t>],
        parent: AptVersionId,
        which: MarkedVersion,
    ) -> Vec<AptVersionId> {
        let own = self.architecture(parent);
        let name = self.universe.packages[self.universe.offer_of(parent).package as usize].name;
        let mut found = Vec::new();
        for relation in group {
            let packages = self.universe.packages_of(relation.name).iter();
            let real = packages.filter_map(|package| self.states[*package as usize].version(which));
            let provided = self
                .universe
                .providers_of(relation.name)
                .map(|provide| provide.by);
            let provided = provided.filter(|by| self.state_of(*by).version(which) == Some(*by));
            for version in real.chain(provided) {
                let other =
                    self.universe.packages[self.universe.offer_of(version).package as usize].name;
                let is_self = relation.is_negative() && other == name;
                if !is_self
                    && !found.contains(&version)
                    && self.universe.fulfils(relation, own, version)
                {
                    found.push(version);
                }
            }
        }
        found
    }

    pub(super) fn is_met(
        &self,
        group: &[AptRelation<'t>],
        parent: AptVersionId,
        which: MarkedVersion,
    ) -> bool {
        let is_there = !self.matching(group, parent, which).is_empty();
        if group[0].is_negative() {
            !is_there
        } else {
            is_there || self.is_expected(group)
        }
    }

    pub(super) fn is_broken(&self, package: AptPackageId, with_recommends: bool) -> bool {
        let Some(version) = self.states[package as usize].install else {
            return false;
        };
        let counts = |group: &&[AptRelation<'t>]| {
            group[0].is_critical() || (with_recommends && self.counts(&group[0]))
        };
        self.groups(version)
            .filter(counts)
            .any(|group| !self.is_met(group, version, MarkedVersion::Install))
            || !self
                .other_architectures(package, version, MarkedVersion::Install)
                .is_empty()
    }

    pub(super) fn was_broken(&self, package: AptPackageId) -> bool {
        let Some(version) = self.states[package as usize].current else {
            return false;
        };
        let mut critical = self.groups(version).filter(|group| group[0].is_critical());
        critical.any(|group| !self.is_met(group, version, MarkedVersion::Current))
    }

    /// What of the same name on other architectures cannot be beside `version`.
    pub(super) fn other_architectures(
        &self,
        package: AptPackageId,
        version: AptVersionId,
        which: MarkedVersion,
    ) -> Vec<AptVersionId> {
        let offer = self.universe.offer_of(version);
        let same = |other: &AptVersionId| {
            let other = self.universe.offer_of(*other);
            [offer, other]
                .iter()
                .all(|one| one.multi_arch == MultiArch::Same)
                && other.version == offer.version
        };
        let name = self.universe.packages[package as usize].name;
        let others = self
            .universe
            .packages_of(name)
            .iter()
            .filter(|other| **other != package);
        let others = others.filter_map(|other| self.states[*other as usize].version(which));
        others.filter(|other| !same(other)).collect()
    }

    /// The versions that can fulfil a relation, in apt's order.
    pub(super) fn solutions(
        &self,
        group: &[AptRelation<'t>],
        parent: AptVersionId,
        which: MarkedVersion,
    ) -> Vec<AptVersionId> {
        let (mut upgrades, mut others) = (Vec::new(), Vec::new());
        for relation in group {
            let mut found = self.matching(std::slice::from_ref(relation), parent, which);
            found.sort_by(|a, b| self.order(relation, *a, *b));
            for version in found {
                let list = if self.state_of(version).current.is_some() {
                    &mut upgrades
                } else {
                    &mut others
                };
                if !list.contains(&version) {
                    list.push(version);
                }
            }
        }
        upgrades.append(&mut others);
        if !group[0].is_negative() {
            upgrades.retain(|version| {
                let state = self.state_of(*version);
                let is_out = state.mode == MarkMode::Delete
                    || (state.mode == MarkMode::Keep && state.current.is_none());
                !(state.is_protected && is_out)
            });
        }
        upgrades
    }

    /// Which of two versions that fulfil `relation` apt prefers.
    pub(super) fn order(
        &self,
        relation: &AptRelation<'_>,
        a: AptVersionId,
        b: AptVersionId,
    ) -> Ordering {
        let [of_a, of_b] = [a, b].map(|version| self.universe.offer_of(version));
        let [state_a, state_b] = [a, b].map(|version| *self.state_of(version));
        let [known_a, known_b] =
            [of_a, of_b].map(|offer| &self.universe.packages[offer.package as usize]);
        let first = |a: bool, b: bool| b.cmp(&a);
        let has_sibling = |version: AptVersionId| {
            let offer = self.universe.offer_of(version);
            let name = self.universe.packages[offer.package as usize].name;
            let mut packages = self.universe.packages_of(name).iter();
            offer.multi_arch == MultiArch::Same
                && packages.any(|package| self.states[*package as usize].current.is_some())
        };
        let number =
            |package: AptPackageId| (self.universe.packages[package as usize].name, package);
        first(state_a.is_protected, state_b.is_protected)
            .then_with(|| first(has_sibling(a), has_sibling(b)))
            .then_with(|| first(state_a.current.is_some(), state_b.current.is_some()))
            .then_with(|| first(known_a.name == relation.name, known_b.name == relation.name))
            .then_with(|| {
                first(
                    self.universe.is_essential(of_a.package),
                    self.universe.is_essential(of_b.package),
                )
            })
            .then_with(|| {
                first(
                    self.universe.is_important(of_a.package),
                    self.universe.is_important(of_b.package),
                )
            })
            .then_with(|| known_a.arch.cmp(&known_b.arch))
            .then_with(|| of_a.priority.cmp(&of_b.priority))
            .then_with(|| number(of_b.package).cmp(&number(of_a.package)))
    }
}
