//! Marks a package and its dependencies for installation: depth first, in the order of the
//! relations, with the first alternative that works.
//!
//! On the machines, apt selects by the same rules, so it will request the carried packages. The
//! code follows `pkgDepCache::MarkInstall` of apt 2.6.

use super::marking::{AptExclusion, MarkMode, MarkedVersion, Marking};
use super::reason::{BrokenReason, relation_text};
use super::relation::{VersionOperator, compare};
use super::universe::{
    AptPackageId, AptRelation, AptVersion, AptVersionId, ArchQualifier, MultiArch, ProvidedName,
    RelationKind, Universe,
};
use std::cmp::Ordering;
use std::collections::BTreeSet;

impl<'u, 't> Marking<'u, 't> {
    /// Whether the candidate of `package` can be installed. If `with_needs` is set, a planned
    /// version or a candidate must satisfy each of its critical dependencies. If none satisfies one
    /// of them, the candidate is discarded, unless the package is protected.
    fn can_install(&mut self, package: AptPackageId, with_needs: bool, is_user: bool) -> bool {
        let state = self.states[package as usize];
        let Some(candidate) = state.candidate else {
            return false;
        };
        let is_planned = state.mode == MarkMode::Install && state.install == Some(candidate);
        if !is_user
            && !is_planned
            && let Some(other) = self.candidate_of_other_architecture(package, candidate)
        {
            let reason = BrokenReason::OtherArchitecture(other);
            self.reasons.set(package, reason);
            return false;
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

    /// The candidate of an installed package for another architecture that has another version than
    /// `candidate`, if both are `Multi-Arch: same`, so that their versions cannot become equal.
    fn candidate_of_other_architecture(
        &self,
        package: AptPackageId,
        candidate: AptVersionId,
    ) -> Option<AptVersionId> {
        let offer = self.universe.offer_of(candidate);
        if offer.multi_arch != MultiArch::Same
            || self.states[package as usize].current == Some(candidate)
        {
            return None;
        }
        let name = self.universe.packages[package as usize].name;
        let others = self.universe.packages_of(name).iter();
        let others = others
            .filter(|other| **other != package)
            .map(|other| &self.states[*other as usize])
            .filter(|state| state.current.is_some());
        others.filter_map(|state| state.candidate).find(|other| {
            let other = self.universe.offer_of(*other);
            // a version that no source has any more may stay behind
            other.multi_arch == MultiArch::Same
                && other.version != offer.version
                && other.source.is_some()
        })
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
                    against.push(AptExclusion::Relation(group));
                } else {
                    needs.push(group);
                }
            }
            let others = self.other_architectures(package, candidate, MarkedVersion::Install);
            if state.is_protected || !others.is_empty() {
                against.push(AptExclusion::OtherArchitectures);
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

// The versions that satisfy a relation, in the order in which apt tries them.

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
        let mut found: Vec<AptVersionId> = self.each_matching(group, parent, which).collect();
        remove_repeated(&mut found);
        found
    }

    /// Iterates over the versions of [`matching`](Self::matching). A version may be repeated, for
    /// example if several alternatives match it.
    fn each_matching(
        &self,
        group: &[AptRelation<'t>],
        parent: AptVersionId,
        which: MarkedVersion,
    ) -> impl Iterator<Item = AptVersionId> {
        let own = self.architecture(parent);
        let name = self.universe.name_of(parent);
        group.iter().flat_map(move |relation| {
            let packages = self.universe.packages_of(relation.name).iter();
            let real = packages
                .filter_map(move |package| self.states[*package as usize].version(which))
                .filter(move |version| self.universe.is_named(relation, own, *version));
            let provided = self
                .universe
                .providers_of(relation.name)
                .filter(move |provide| {
                    self.state_of(provide.by).version(which) == Some(provide.by)
                        && self.universe.is_provided(relation, own, provide)
                })
                .map(|provide| provide.by);
            // a package never conflicts with itself or a virtual package of its own name
            real.chain(provided).filter(move |version| {
                !relation.is_negative() || self.universe.name_of(*version) != name
            })
        })
    }

    /// Whether a relation of `parent` holds with the versions that `which` selects.
    pub(super) fn is_met(
        &self,
        group: &[AptRelation<'t>],
        parent: AptVersionId,
        which: MarkedVersion,
    ) -> bool {
        let is_there = self.each_matching(group, parent, which).next().is_some();
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
                list.push(version);
            }
        }
        // several alternatives may match one version
        remove_repeated(&mut upgrades);
        remove_repeated(&mut others);
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

/// Keeps the first occurrence of each version. A name may have any number of providers, so the list
/// is not searched for each.
pub(super) fn remove_repeated(versions: &mut Vec<AptVersionId>) {
    if versions.len() > 1 {
        let mut seen = BTreeSet::new();
        versions.retain(|version| seen.insert(*version));
    }
}

fn true_first(a: bool, b: bool) -> Ordering {
    b.cmp(&a)
}

impl Universe<'_> {
    /// Whether `version` satisfies `relation`, by its name or by a name that it provides. `own` is
    /// the architecture of the package that has the relation.
    pub fn fulfils(&self, relation: &AptRelation<'_>, own: u8, version: AptVersionId) -> bool {
        let mut provides = self.provides_of(version).iter();
        self.is_named(relation, own, version)
            || provides.any(|provide| {
                provide.name == relation.name && self.is_provided(relation, own, provide)
            })
    }

    /// Whether `version` satisfies `relation` by its own name.
    pub(super) fn is_named(
        &self,
        relation: &AptRelation<'_>,
        own: u8,
        version: AptVersionId,
    ) -> bool {
        let offer = &self.versions[version as usize];
        let known = &self.packages[offer.package as usize];
        known.name == relation.name
            && Self::fits_architecture(relation, own, offer, known.arch)
            && relation.op.allows(offer.version, relation.version)
    }

    /// Whether `provide`, which has the name in `relation`, satisfies the relation.
    pub(super) fn is_provided(
        &self,
        relation: &AptRelation<'_>,
        own: u8,
        provide: &ProvidedName<'_>,
    ) -> bool {
        let offer = &self.versions[provide.by as usize];
        let known = &self.packages[offer.package as usize];
        // Debian Policy 7.5: a virtual package without a version satisfies no versioned relation
        Self::fits_architecture(relation, own, offer, known.arch)
            && (relation.op == VersionOperator::Any
                || (!provide.version.is_empty()
                    && relation.op.allows(provide.version, relation.version)))
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
            ArchQualifier::Any => offer.multi_arch == MultiArch::Allowed,
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

#[cfg(test)]
mod tests {
    use super::super::choose::choose;
    use super::super::marking::AptSettings;
    use super::super::reason::name_and_version;
    use super::*;
    use landfall_model::document::growth::assert_linear;

    const SETTINGS: AptSettings = AptSettings {
        recommends: false,
        expects_rest: false,
    };

    /// Calls `check` with the package `app` of the index `text`.
    fn check_app(text: &str, check: impl Fn(&Marking<'_, '_>, AptVersionId)) {
        let mut universe = Universe::new(&["amd64".to_owned()]);
        let source = universe.add_source(500);
        universe.add_index(source, text);
        let marking = Marking::new(&universe, SETTINGS);
        let app = universe.candidate(universe.find("app", None).unwrap());
        check(&marking, app.unwrap());
    }

    #[test]
    fn many_names_of_one_provider_are_found_in_linear_time() {
        assert_linear(2_000, |count| {
            let names: Vec<String> = (0..count).map(|number| format!("n{number}")).collect();
            let names = names.join(", ");
            let text = format!(
                "Package: app\nVersion: 1\nArchitecture: amd64\nDepends: {names}\n\n\
                 Package: all\nVersion: 1\nArchitecture: amd64\nProvides: {names}\n\n"
            );
            check_app(&text, |marking, app| {
                assert_eq!(marking.groups(app).count(), count);
                for group in marking.groups(app) {
                    assert!(marking.is_met(group, app, MarkedVersion::Candidate));
                }
            });
        });
    }

    #[test]
    fn many_providers_of_a_name_are_found_in_linear_time() {
        assert_linear(2_000, |count| {
            let mut text =
                "Package: app\nVersion: 1\nArchitecture: amd64\nDepends: x, x | y\n\n".to_owned();
            for number in 0..count {
                text += &format!(
                    "Package: p{number}\nVersion: 1\nArchitecture: amd64\nProvides: x, y\n\n"
                );
            }
            check_app(&text, |marking, app| {
                for group in marking.groups(app) {
                    let found = marking.matching(group, app, MarkedVersion::Candidate);
                    assert_eq!(found.len(), count);
                    let found = marking.solutions(group, app, MarkedVersion::Candidate);
                    assert_eq!(found.len(), count);
                }
            });
        });
    }

    #[test]
    fn packages_for_other_architectures_are_selected_as_by_apt() {
        let package = |name: &str, version: u8, arch: &str, fields: &str| {
            format!("Package: {name}\nVersion: {version}\nArchitecture: {arch}\n{fields}\n")
        };
        let same = "Multi-Arch: same\n";
        let index = [
            package("libx", 2, "amd64", same),
            package("libx", 2, "i386", same),
            package("app", 1, "amd64", "Depends: libx (>= 2)\n"),
            package("data", 1, "all", "Multi-Arch: foreign\n"),
            package("tool", 1, "amd64", "Depends: data:any\n"),
            package("shell", 1, "amd64", "Multi-Arch: allowed\n"),
            package("script", 1, "amd64", "Depends: shell:any\n"),
            package("main", 1, "amd64", "Recommends: extra:i386\n"),
            package("main", 1, "i386", "Provides: extra\n"),
        ];
        let status = ["amd64", "i386"].map(|arch| {
            package(
                "libx",
                1,
                arch,
                "Multi-Arch: same\nStatus: install ok installed\n",
            )
        });
        let (index, status) = (index.concat(), status.concat());
        let mut universe = Universe::new(&["amd64".to_owned(), "i386".to_owned()]);
        let source = universe.add_source(500);
        universe.add_index(source, &index);
        universe.add_installed(&status);
        let settings = AptSettings {
            recommends: true,
            ..SETTINGS
        };
        let selected = |name: &str| {
            let chosen = choose(&universe, &[], &[name.to_owned()], settings)?;
            let versions = chosen.versions.into_iter();
            let names = versions.map(|version| name_and_version(&universe, version));
            Ok::<_, String>(names.collect::<Vec<_>>())
        };
        // the library is upgraded for both architectures, because their versions must be equal
        let expected = ["libx 2", "libx:i386 2", "app 1"];
        assert_eq!(selected("app").unwrap(), expected);
        assert_eq!(selected("script").unwrap(), ["shell 1", "script 1"]);
        assert!(selected("tool").is_err());
        // a recommendation does not replace the requested package
        assert_eq!(selected("main").unwrap(), ["main 1"]);
    }

    #[test]
    fn many_providers_that_cannot_be_installed_take_linear_time() {
        assert_linear(2_000, |count| {
            let mut text =
                "Package: app\nVersion: 1\nArchitecture: amd64\nDepends: x\n\n".to_owned();
            for number in 0..count {
                text += &format!(
                    "Package: p{number}\nVersion: 1\nArchitecture: amd64\nProvides: x\n\
                     Conflicts: app\n\n"
                );
            }
            let mut universe = Universe::new(&["amd64".to_owned()]);
            let source = universe.add_source(500);
            universe.add_index(source, &text);
            let mut marking = Marking::new(&universe, SETTINGS);
            let app = universe.find("app", None).unwrap();
            marking.mark_requested(app);
            marking.mark_dependencies(app);
            assert_eq!(marking.broken(), [app]);
            marking.resolve();
            assert_eq!(marking.broken(), [app]);
        });
    }

    #[test]
    fn many_installed_packages_are_upgraded_in_linear_time() {
        assert_linear(2_000, |count| {
            let package = |number: usize, version: u8| {
                format!("Package: p{number}\nVersion: {version}\nArchitecture: amd64\n")
            };
            let others: Vec<String> = (1..count).map(|one| format!("p{one} (>= 2)")).collect();
            let mut old = String::new();
            let mut new = package(0, 2) + &format!("Depends: {}\n\n", others.join(", "));
            for number in 0..count {
                old += &(package(number, 1) + "Status: install ok installed\n\n");
                if number > 0 {
                    new += &(package(number, 2) + "\n");
                }
            }
            let mut universe = Universe::new(&["amd64".to_owned()]);
            let source = universe.add_source(500);
            universe.add_index(source, &new);
            universe.add_installed(&old);
            let mut marking = Marking::new(&universe, SETTINGS);
            let first = universe.find("p0", None).unwrap();
            marking.mark_requested(first);
            marking.mark_dependencies(first);
            assert!(marking.broken().is_empty());
            assert_eq!(marking.needed().len(), count);
        });
    }
}
