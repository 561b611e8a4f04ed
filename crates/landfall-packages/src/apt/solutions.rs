//! The versions that satisfy a relation, in the order in which apt tries them.

use super::marking::{MarkMode, MarkedVersion, Marking};
use super::relation::VersionOperator;
use super::universe::{
    AptPackageId, AptRelation, AptVersion, AptVersionId, ArchQualifier, MultiArch, RelationKind,
    Universe,
};
use super::version::compare;
use std::cmp::Ordering;

impl<'t> Marking<'_, 't> {
    /// Returns the versions that satisfy any alternative of a relation of `parent` or, for a
    /// conflict, those that conflict. `which` selects the installed versions, the candidates or the
    /// planned versions.
    pub(super) fn matching(
        &self,
        group: &[AptRelation<'t>],
        parent: AptVersionId,
        which: MarkedVersion,
    ) -> Vec<AptVersionId> {
        let own = self.architecture(parent);
        let name = self.universe.name_of(parent);
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
                // a package never conflicts with itself or a virtual package of its own name
                let is_self = relation.is_negative() && self.universe.name_of(version) == name;
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

    /// Whether a relation of `parent` holds with the versions that `which` selects.
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

    /// Whether a critical relation of the planned version of a package does not hold, or a planned
    /// version for another architecture excludes it. With `with_recommends`, recommendations that
    /// affect the selection must hold too.
    pub(super) fn is_broken(&self, package: AptPackageId, with_recommends: bool) -> bool {
        let Some(version) = self.states[package as usize].install else {
            return false;
        };
        self.groups(version)
            .filter(|group| {
                group[0].is_critical() || (with_recommends && self.is_followed(&group[0]))
            })
            .any(|group| !self.is_met(group, version, MarkedVersion::Install))
            || !self
                .other_architectures(package, version, MarkedVersion::Install)
                .is_empty()
    }

    /// Whether a critical relation of the installed version of a package does not hold on the
    /// machine as it is.
    pub(super) fn was_broken(&self, package: AptPackageId) -> bool {
        let Some(version) = self.states[package as usize].current else {
            return false;
        };
        let mut critical = self.groups(version).filter(|group| group[0].is_critical());
        critical.any(|group| !self.is_met(group, version, MarkedVersion::Current))
    }

    /// Returns the versions of the same name and of another architecture that cannot be installed
    /// together with `version`: all except those with the same version number, if both are
    /// `Multi-Arch: same`.
    pub(super) fn other_architectures(
        &self,
        package: AptPackageId,
        version: AptVersionId,
        which: MarkedVersion,
    ) -> Vec<AptVersionId> {
        let offer = self.universe.offer_of(version);
        let name = self.universe.packages[package as usize].name;
        self.universe
            .packages_of(name)
            .iter()
            .filter(|other| **other != package)
            .filter_map(|other| self.states[*other as usize].version(which))
            .filter(|other| {
                let other = self.universe.offer_of(*other);
                let is_same = [offer, other]
                    .iter()
                    .all(|one| one.multi_arch == MultiArch::Same);
                !is_same || other.version != offer.version
            })
            .collect()
    }

    /// Returns the versions that can satisfy a relation, in apt's order: upgrades of installed
    /// packages before new ones.
    pub(super) fn solutions(
        &self,
        group: &[AptRelation<'t>],
        parent: AptVersionId,
        which: MarkedVersion,
    ) -> Vec<AptVersionId> {
        let mut upgrades = Vec::new();
        let mut others = Vec::new();
        // alternatives stay in their order; only the versions of each are sorted
        for relation in group {
            let mut found = self.matching(std::slice::from_ref(relation), parent, which);
            found.sort_by(|a, b| self.compare_solutions(relation, *a, *b));
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
                // a protected package that is to be absent cannot become a solution
                let state = self.state_of(*version);
                let is_absent = state.mode == MarkMode::Delete
                    || (state.mode == MarkMode::Keep && state.current.is_none());
                !(state.is_protected && is_absent)
            });
        }
        upgrades
    }

    /// Orders two versions that satisfy `relation`, the preferred one first.
    fn compare_solutions(
        &self,
        relation: &AptRelation<'_>,
        a: AptVersionId,
        b: AptVersionId,
    ) -> Ordering {
        let [of_a, of_b] = [a, b].map(|version| self.universe.offer_of(version));
        let [state_a, state_b] = [a, b].map(|version| *self.state_of(version));
        let [known_a, known_b] =
            [of_a, of_b].map(|offer| &self.universe.packages[offer.package as usize]);
        true_first(state_a.is_protected, state_b.is_protected)
            .then_with(|| true_first(self.has_sibling(a), self.has_sibling(b)))
            .then_with(|| true_first(state_a.current.is_some(), state_b.current.is_some()))
            // a package with this name precedes a package that only provides the name
            .then_with(|| true_first(known_a.name == relation.name, known_b.name == relation.name))
            .then_with(|| {
                true_first(
                    self.universe.is_essential(of_a.package),
                    self.universe.is_essential(of_b.package),
                )
            })
            .then_with(|| {
                true_first(
                    self.universe.is_important(of_a.package),
                    self.universe.is_important(of_b.package),
                )
            })
            // the native architecture and the priority `required` have the lowest numbers
            .then_with(|| known_a.arch.cmp(&known_b.arch))
            .then_with(|| of_a.priority.cmp(&of_b.priority))
            // if all of these are equal, apt prefers the package whose name it read last
            .then_with(|| (known_b.name, of_b.package).cmp(&(known_a.name, of_a.package)))
    }

    /// Whether the package is `Multi-Arch: same` and installed for some architecture.
    fn has_sibling(&self, version: AptVersionId) -> bool {
        let offer = self.universe.offer_of(version);
        let name = self.universe.name_of(version);
        let mut packages = self.universe.packages_of(name).iter();
        offer.multi_arch == MultiArch::Same
            && packages.any(|package| self.states[*package as usize].current.is_some())
    }
}

fn true_first(a: bool, b: bool) -> Ordering {
    b.cmp(&a)
}

impl Universe<'_> {
    /// Whether `version` satisfies `relation`, by its name or by a name that it provides. `own` is
    /// the architecture of the package that has the relation.
    pub fn fulfils(&self, relation: &AptRelation<'_>, own: u8, version: AptVersionId) -> bool {
        let offer = &self.versions[version as usize];
        let known = &self.packages[offer.package as usize];
        if !Self::fits_architecture(relation, own, offer, known.arch) {
            return false;
        }
        if known.name == relation.name && relation.op.allows(offer.version, relation.version) {
            return true;
        }
        // Debian Policy 7.5: a virtual package without a version satisfies no versioned relation
        self.provides_of(version).iter().any(|provide| {
            provide.name == relation.name
                && (relation.op == VersionOperator::Any
                    || (!provide.version.is_empty()
                        && relation.op.allows(provide.version, relation.version)))
        })
    }

    /// Whether `offer`, a version of the architecture `arch`, may satisfy `relation`
    /// (wiki.debian.org/Multiarch). `own` is the architecture of the package that has the relation.
    fn fits_architecture(
        relation: &AptRelation<'_>,
        own: u8,
        offer: &AptVersion<'_>,
        arch: u8,
    ) -> bool {
        if matches!(
            relation.kind,
            RelationKind::Conflicts | RelationKind::Breaks
        ) {
            // without a qualifier, a conflict applies to the package of every architecture
            return !matches!(relation.arch, ArchQualifier::This(wanted) if wanted != arch);
        }
        match relation.arch {
            ArchQualifier::Own => arch == own || offer.multi_arch == MultiArch::Foreign,
            ArchQualifier::Any => {
                matches!(offer.multi_arch, MultiArch::Allowed | MultiArch::Foreign)
            }
            ArchQualifier::This(wanted) => arch == wanted,
        }
    }

    /// Returns the version of `package` that apt would install: the highest version among those
    /// with the highest pin priority.
    pub fn candidate(&self, package: AptPackageId) -> Option<AptVersionId> {
        let known = &self.packages[package as usize];
        // apt downgrades only for priorities of at least 1000, which no source has here
        let is_downgrade = |version: AptVersionId| {
            known.current.is_some_and(|current| {
                compare(
                    self.versions[version as usize].version,
                    self.versions[current as usize].version,
                )
                .is_lt()
            })
        };
        known
            .versions
            .iter()
            .map(|version| (self.pin_of(*version, known.current), *version))
            .filter(|(pin, version)| *pin > 0 && !is_downgrade(*version))
            // versions are sorted, so the first of equal priority is the highest
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, version)| version)
    }

    /// Returns the pin priority of a version: the highest of its sources, and at least 100 if the
    /// version is installed (`current`).
    fn pin_of(&self, version: AptVersionId, current: Option<AptVersionId>) -> i16 {
        let of_sources = self
            .sources_of(version)
            .map(|source| self.pins[source as usize])
            .max();
        // apt_preferences(5): an installed version has the priority 100
        let of_current = (current == Some(version)).then_some(100);
        of_sources.max(of_current).unwrap_or(0)
    }
}
