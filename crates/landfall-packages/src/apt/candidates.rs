//! Finds the versions that satisfy a relation, and apt's candidate version of a package.

use super::offer::{
    AptPackageId, AptRelation, AptVersion, AptVersionId, ArchQualifier, MultiArch, RelationKind,
};
use super::relation::VersionOperator;
use super::universe::Universe;
use super::version::compare;

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
