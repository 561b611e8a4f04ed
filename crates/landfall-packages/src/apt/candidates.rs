//! Which versions fulfil a relation, and which one of a package apt would take.

use super::offer::{
    AptPackageId, AptRelation, AptVersion, AptVersionId, ArchQualifier, MultiArch, RelationKind,
};
use super::relation::VersionOperator;
use super::universe::Universe;
use super::version::compare;

impl Universe<'_> {
    /// Whether `version` fulfils `relation` of a package of the architecture `own`.
    pub fn fulfils(&self, relation: &AptRelation<'_>, own: u8, version: AptVersionId) -> bool {
        let offer = &self.versions[version as usize];
        let known = &self.packages[offer.package as usize];
        if !Self::fits_architecture(relation, own, offer, known.arch) {
            return false;
        }
        let allows = |version: &str| relation.op.allows(version, relation.version);
        if known.name == relation.name && allows(offer.version) {
            return true;
        }
        self.provides_of(version).iter().any(|provide| {
            provide.name == relation.name
                && (relation.op == VersionOperator::Any
                    || (!provide.version.is_empty() && allows(provide.version)))
        })
    }

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

    /// The version that apt would take of `package`: of those with the highest preference the
    /// highest version.
    pub fn candidate(&self, package: AptPackageId) -> Option<AptVersionId> {
        let known = &self.packages[package as usize];
        let pin = |version: &AptVersionId| {
            let of_source = self
                .sources_of(*version)
                .map(|source| self.pins[source as usize])
                .max();
            // apt_preferences(5): an installed version has the priority 100
            let of_current = (known.current == Some(*version)).then_some(100);
            of_source.max(of_current).unwrap_or(0)
        };
        let best = known
            .versions
            .iter()
            .copied()
            .map(|version| (pin(&version), version));
        // apt goes back to a lower version only for preferences of more than 1000
        let above = |version: &AptVersionId| {
            known.current.is_none_or(|current| {
                compare(
                    self.versions[*version as usize].version,
                    self.versions[current as usize].version,
                )
                .is_ge()
            })
        };
        let best = best.filter(|(pin, version)| *pin > 0 && above(version));
        best.reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, version)| version)
    }
}
