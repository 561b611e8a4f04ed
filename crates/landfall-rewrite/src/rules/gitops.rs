//! Sources that GitOps controllers pull from a registry: an address and a version in keys of their
//! own.

use crate::edit::replaced;
use crate::gitops_source::{GitopsSource, SourceVersion};
use crate::index::{ReferenceLookup, ReferenceReplacement};
use crate::inventory::Inventory;
use crate::occurrence::{Occurrence, ReferenceMeaning, ReferenceRole};
use crate::walk::{ImageCandidate, MappingContext, ReferenceCollector, ReferenceRule, text_start};
use crate::yaml::YamlScalar;
use landfall_model::{ChartVersion, ChartVersionRange};

pub(super) struct GitopsRule;

impl ReferenceRule for GitopsRule {
    fn references<'s>(
        &self,
        collector: &mut ReferenceCollector<'_, 's>,
        members: &MappingContext<'s>,
        taken: &[usize],
    ) -> Vec<usize> {
        let Some(source) = GitopsSource::of(members.entries) else {
            return Vec::new();
        };
        if taken.binary_search(&source.at).is_ok() || !decide(&source, members, collector) {
            return Vec::new();
        }
        vec![source.at]
    }

    fn candidates<'s>(
        &self,
        collector: &mut ReferenceCollector<'_, 's>,
        inventory: &Inventory<'_>,
        members: &MappingContext<'s>,
        _taken: &[usize],
    ) -> Vec<usize> {
        // a source that names its chart in a separate key is handled by `ChartRule`
        let source = GitopsSource::of(members.entries).filter(|source| source.chart.is_none());
        let Some(source) = source else {
            return Vec::new();
        };
        let (written, why_not) = match source.version {
            SourceVersion::Prefix => return Vec::new(),
            SourceVersion::Range(range) => with_range(range, &source, inventory),
            SourceVersion::Tag(_) | SourceVersion::Digest(..) => (source.reference(), None),
        };
        collector.add_candidate(ImageCandidate {
            at: text_start(source.address),
            path: Vec::new(),
            written,
            sure: true,
            in_container: false,
            is_chart: source.is_chart,
            why_not,
        });
        vec![source.at]
    }
}

/// Rewrites or leaves `source` in `members`. Returns `false` if the lock does not contain it.
fn decide<'s>(
    source: &GitopsSource<'s>,
    members: &MappingContext<'s>,
    collector: &mut ReferenceCollector<'_, 's>,
) -> bool {
    let index = collector.settings.index;
    let reference = source.reference();
    let (role, lookup) = match source.version {
        SourceVersion::Prefix => (ReferenceRole::Prefix, index.lookup_prefix(&reference, &[])),
        _ => {
            let role = ReferenceRole::Repository;
            (role, index.lookup(&reference, role, false))
        }
    };
    let meaning = match lookup {
        ReferenceLookup::Unknown => return false,
        ReferenceLookup::Settled(item) => ReferenceMeaning::Settled { item },
        ReferenceLookup::Left(why) => ReferenceMeaning::Left { why },
        ReferenceLookup::Known(replacement) => match edits(source, &replacement, collector) {
            Ok(edits) => {
                let meaning = ReferenceMeaning::Known {
                    to: new_reference(source, &reference, &replacement),
                    item: replacement.item,
                    reaches: vec![],
                };
                let start = source.address.span.start;
                let occurrence = Occurrence::new(start, &*reference, role, meaning);
                match collector.add_in_parts(occurrence, edits) {
                    Ok(()) => return true,
                    Err(why) => ReferenceMeaning::left(why),
                }
            }
            Err(why) => ReferenceMeaning::Left { why },
        },
    };
    let node = &members.entries[source.at].value;
    collector.add(node, &reference, role, meaning);
    true
}

/// The reference that replaces `reference`, as reports show it.
fn new_reference(
    source: &GitopsSource<'_>,
    reference: &str,
    replacement: &ReferenceReplacement,
) -> String {
    match (source.version, &replacement.to) {
        // a registry without a path may end in a port, which is not a tag
        (SourceVersion::Prefix, Some(to)) => to.to_string().trim_end_matches('/').to_owned(),
        _ => replaced(reference, replacement),
    }
}

/// The scalars that change, each with its new text. An error is the reason why that is impossible.
fn edits<'s>(
    source: &GitopsSource<'s>,
    replacement: &ReferenceReplacement,
    collector: &ReferenceCollector<'_, 's>,
) -> Result<Vec<(&'s YamlScalar<'s>, String)>, String> {
    let mut edits = Vec::new();
    if let Some(to) = &replacement.to {
        let to = to.to_string();
        let address = match source.chart {
            // the controller appends the name itself
            Some(chart) => to
                .strip_suffix(chart)
                .and_then(|to| to.strip_suffix('/'))
                .ok_or_else(|| {
                    format!(
                        "the destination of {} is {to}, which does not end in /{chart}",
                        replacement.item
                    )
                })?,
            None => to.trim_end_matches('/'),
        };
        edits.push((source.address, format!("{}{address}", source.scheme())));
    }
    if let (Some(new), SourceVersion::Digest(_, scalar)) = (&replacement.digest, source.version) {
        edits.push((scalar, new.to_string()));
    }
    if edits
        .iter()
        .any(|(scalar, _)| collector.document.is_shared(scalar))
    {
        return Err("other values share a part of it by an anchor".into());
    }
    Ok(edits)
}

/// Returns the repository of a source with a range of versions. If the range is malformed, or the
/// repository has locked tags and none of them is in the range, also returns why the source is
/// undecided.
fn with_range(
    range: &str,
    source: &GitopsSource<'_>,
    inventory: &Inventory<'_>,
) -> (String, Option<String>) {
    let repository = source.repository();
    let tags = inventory.tags(&repository);
    let Ok(versions) = range.parse::<ChartVersionRange>() else {
        let why = format!("'{range}' is not a range of versions");
        return (repository, Some(why));
    };
    let is_in_range = |tag: &&str| {
        tag.parse::<ChartVersion>()
            .is_ok_and(|version| versions.has(&version))
    };
    // without a locked tag, the look-up of the repository decides
    if tags.is_empty() || tags.iter().any(is_in_range) {
        return (repository, None);
    }
    let why = format!("no locked tag is in the range {range}: {}", tags.join(", "));
    (repository, Some(why))
}

#[cfg(test)]
mod tests {
    use crate::tests::{becomes, stays};
    use landfall_model::Digest;

    #[test]
    fn sources_of_flux_are_looked_up_with_their_version() {
        let digest = Digest::sha256(b"quay.io/a/b:v1");
        for version in [
            "tag: v1",
            "semver: '>=1.0'",
            &format!("{{digest: '{digest}', tag: v9}}"),
        ] {
            let version = version.trim_matches(['{', '}']);
            becomes(
                &format!("spec: {{url: oci://quay.io/a/b, ref: {{{version}}}}}"),
                &format!("spec: {{url: oci://r:5/p/a/b, ref: {{{version}}}}}"),
            );
        }
        stays(
            "spec:\n  url: 'oci://quay.io/a/b' # x\n  ref:\n    tag: v2\n",
            "only as v1",
        );
        becomes(
            "spec: {type: oci, url: 'oci://quay.io/c'}",
            "spec: {type: oci, url: 'oci://r:5/p/c'}",
        );
        stays(
            "spec: {url: &u oci://quay.io/a/b, ref: {tag: v1}}\nc: *u\n",
            "anchor",
        );
    }

    #[test]
    fn sources_of_argo_cd_are_looked_up_with_their_revision() {
        let digest = Digest::sha256(b"quay.io/a/b:v1");
        for revision in ["v1".to_owned(), "1.x".to_owned(), format!("'{digest}'")] {
            becomes(
                &format!("source: {{repoURL: oci://quay.io/a/b, targetRevision: {revision}}}"),
                &format!("source: {{repoURL: oci://r:5/p/a/b, targetRevision: {revision}}}"),
            );
        }
        becomes(
            "sources:\n- repoURL: quay.io/c\n  chart: d\n  targetRevision: 1.10\n",
            "sources:\n- repoURL: r:5/p/c\n  chart: d\n  targetRevision: 1.10\n",
        );
        stays(
            "source: {repoURL: oci://quay.io/a/b, targetRevision: v2}",
            "only as v1",
        );
        // an artifact and a chart that are not locked, an HTTP repository, and a git repository
        for source in [
            "{repoURL: oci://quay.io/x/y, targetRevision: v1}",
            "{repoURL: quay.io/a, chart: x, targetRevision: v1}",
            "{repoURL: 'https://quay.io/a/b', targetRevision: v1}",
            "{repoURL: quay.io/a/b.git}",
        ] {
            becomes(&format!("source: {source}"), &format!("source: {source}"));
        }
    }
}
