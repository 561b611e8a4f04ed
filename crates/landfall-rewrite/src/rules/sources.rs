//! Rules for what documents of Argo CD, Flux, Kustomize, k3s, KubeOne and KKP install from elsewhere:
//! charts, git repositories and artifacts of a registry.

use crate::git_source::{GitSource, GitUse, GitopsSource, SourceVersion};
use crate::index::{ReferenceLookup, ReferenceReplacement, replaced};
use crate::inventory::Inventory;
use crate::occurrence::{Occurrence, ReferenceMeaning, ReferenceRole};
use crate::walk::{
    ImageCandidate, MappingContext, NodeStep, ReferenceCollector, start_of, text_start,
};
use crate::yaml::{
    YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence, position_of, text_of, value_of,
};
use landfall_item::ChartName;
use landfall_model::{ChartVersion, ChartVersionRange, is_web_url};
use std::path::Path;

const RANGE: &str = "it does not name one version of a chart; write the locked version";

const ELSEWHERE: &str =
    "its repository is named in another object, and no locked chart has this name and version";

/// A chart that a document installs in a cluster.
struct InstalledChart<'d> {
    /// The keys that name the chart. Their values are not read again, and the finding is at the
    /// value of the first key.
    keys: [&'static str; 2],
    /// Empty if another object names the repository.
    repository: &'d str,
    chart: &'d str,
    version: Option<&'d str>,
}

/// Charts that Argo CD, Flux, k3s, Kustomize, KubeOne and KKP install: repository, name and version
/// in keys of their own.
pub(super) fn chart_candidates<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    inventory: &Inventory<'_>,
    members: &MappingContext<'s>,
    _taken: &[usize],
) -> Vec<usize> {
    let Some(chart) = installed_chart(members) else {
        return Vec::new();
    };
    let Some(at) = value_of(members.entries, chart.keys[0]).and_then(start_of) else {
        return Vec::new();
    };
    collector.add_candidate(chart.candidate(at, inventory));
    chart
        .keys
        .iter()
        .filter_map(|key| position_of(members.entries, key))
        .collect()
}

/// The chart that a mapping installs, if it installs one.
fn installed_chart<'d>(members: &MappingContext<'d>) -> Option<InstalledChart<'d>> {
    let entries = members.entries;
    let part = |key: &str| {
        let text = text_of(entries, key)?.trim();
        (!text.is_empty()).then_some(text)
    };
    // Kustomize's `helmCharts`
    if members.around.key.is_none() && members.around.above == Some("helmCharts") {
        return Some(InstalledChart {
            keys: ["repo", "name"],
            repository: part("repo")?,
            chart: part("name")?,
            version: part("version"),
        });
    }
    // Kubermatic's ApplicationDefinition
    if let (Some(repository), Some(chart)) = (part("url"), part("chartName")) {
        return Some(InstalledChart {
            keys: ["url", "chartName"],
            repository,
            chart,
            version: part("chartVersion"),
        });
    }
    // `gitops_candidates` reads an address with the name of the chart
    let chart = part("chart").filter(|chart| !chart.starts_with("oci://"))?;
    // Argo CD's source, and KubeOne's `helmReleases`
    if let Some(repository) = part("repoURL") {
        return Some(InstalledChart {
            keys: ["repoURL", "chart"],
            repository,
            chart,
            version: part("targetRevision").or_else(|| part("version")),
        });
    }
    // k3s's HelmChart
    if let Some(repository) = part("repo") {
        return Some(InstalledChart {
            keys: ["repo", "chart"],
            repository,
            chart,
            version: part("version"),
        });
    }
    // Flux's HelmRelease
    let has_source = matches!(value_of(entries, "sourceRef"), Some(YamlNode::Mapping(_)));
    (part("url").is_none() && has_source).then(|| InstalledChart {
        keys: ["chart", "version"],
        repository: "",
        chart,
        version: part("version"),
    })
}

impl InstalledChart<'_> {
    /// The candidate at the byte `at`.
    fn candidate(&self, at: usize, inventory: &Inventory<'_>) -> ImageCandidate {
        let result = self.reference(inventory);
        let (written, why_not) = match result {
            Ok(reference) => (reference, None),
            Err(reason) => {
                let version = self.version.unwrap_or_default();
                let written = format!("{} {version}", self.chart).trim().to_owned();
                (written, Some(reason.to_owned()))
            }
        };
        ImageCandidate {
            is_chart: true,
            why_not,
            ..ImageCandidate::certain(at, written)
        }
    }

    /// The reference of the chart. An error is the reason why there is none.
    fn reference(&self, inventory: &Inventory<'_>) -> Result<String, &'static str> {
        let Some(version) = self.version else {
            // without a version, the newest one is installed
            return Err(RANGE);
        };
        if self.repository.is_empty() {
            let locked = inventory.chart_named(self.chart, version);
            return locked.ok_or(ELSEWHERE);
        }
        let name = if is_web_url(self.repository) {
            ChartName::in_repository(self.repository, self.chart, version)
        } else {
            let repository = self
                .repository
                .trim_start_matches("oci://")
                .trim_end_matches('/');
            ChartName::try_from(format!("oci://{repository}/{}:{version}", self.chart))
        };
        match name {
            Ok(name) => Ok(name.reference.to_string()),
            Err(_) => Err(RANGE),
        }
    }
}

/// The lists of a kustomization whose items may be in git.
const KUSTOMIZE_LISTS: [&str; 3] = ["resources", "bases", "components"];

/// The keys with the version of a repository in documents of Argo CD.
const ARGO_REVISIONS: [&str; 2] = ["targetRevision", "revision"];

/// The keys of `spec.ref` of Flux's `GitRepository`. The first one that is present counts.
const FLUX_REVISIONS: [&str; 5] = ["commit", "name", "semver", "tag", "branch"];

/// Git repositories that documents of Argo CD, Flux and Kustomize use.
pub(super) fn git_sources<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    _inventory: &Inventory<'_>,
    members: &MappingContext<'s>,
    _taken: &[usize],
) -> Vec<usize> {
    // documents within texts are objects of another cluster or examples
    let Some(file) = collector.file else {
        return Vec::new();
    };
    let entries = members.entries;
    match collector.path[..] {
        [] if is_kustomization(file, entries) => add_items(collector, entries),
        [NodeStep::Key("spec")] if is_flux(collector) => add_repository(
            collector,
            entries,
            "url",
            match value_of(entries, "ref") {
                Some(YamlNode::Mapping(reference)) => {
                    first_text(&reference.entries, &FLUX_REVISIONS)
                }
                // Flux's default
                _ => Some("master"),
            },
        ),
        _ => {}
    }
    // with `chart`, `repoURL` is a chart repository
    if text_of(entries, "repoURL").is_some() && value_of(entries, "chart").is_none() {
        let revision = first_text(entries, &ARGO_REVISIONS);
        add_repository(collector, entries, "repoURL", revision);
    }
    Vec::new()
}

/// Whether the root of a document of `file` has the entries of a kustomization.
fn is_kustomization(file: &Path, entries: &[YamlEntry<'_>]) -> bool {
    let version = text_of(entries, "apiVersion").unwrap_or_default();
    match text_of(entries, "kind") {
        Some("Kustomization" | "Component") => version.starts_with("kustomize.config.k8s.io/"),
        None => {
            let stem = file.file_stem().unwrap_or_default();
            stem.eq_ignore_ascii_case("kustomization")
        }
        Some(_) => false,
    }
}

/// Whether the document is a `GitRepository` of Flux.
fn is_flux(collector: &ReferenceCollector<'_, '_>) -> bool {
    let Some(YamlNode::Mapping(YamlMapping { entries, .. })) = &collector.document.root else {
        return false;
    };
    text_of(entries, "kind") == Some("GitRepository")
}

fn first_text<'s>(entries: &'s [YamlEntry<'s>], keys: &[&str]) -> Option<&'s str> {
    keys.iter().find_map(|key| text_of(entries, key))
}

/// Adds the repositories that the items of a kustomization name.
fn add_items(collector: &mut ReferenceCollector<'_, '_>, entries: &[YamlEntry<'_>]) {
    for list in KUSTOMIZE_LISTS {
        let Some(YamlNode::Sequence(YamlSequence { items, .. })) = value_of(entries, list) else {
            continue;
        };
        for (at, node) in items.iter().enumerate() {
            if let Some(text) = node.scalar().and_then(|scalar| scalar.text())
                && let Some(source) = GitSource::parse(text.trim())
                && let Some(start) = start_of(node)
            {
                let path = vec![list.to_owned(), NodeStep::Item(at).to_string()];
                collector.add_git_use(GitUse::of_source(start, path, text.trim(), &source));
            }
        }
    }
}

/// Adds the repository that the value of `key` names, with its `revision`.
fn add_repository(
    collector: &mut ReferenceCollector<'_, '_>,
    entries: &[YamlEntry<'_>],
    key: &'static str,
    revision: Option<&str>,
) {
    let Some(node) = value_of(entries, key) else {
        return;
    };
    let Some(written) = text_of(entries, key).map(str::trim) else {
        return;
    };
    let (Some(source), Some(at)) = (GitSource::of_repository(written), start_of(node)) else {
        return;
    };
    let mut path = collector.path_texts();
    path.push(key.to_owned());
    collector.add_git_use(GitUse {
        at,
        path,
        written: written.to_owned(),
        url: source.url,
        revision: revision.map(|text| text.trim().to_owned()),
        form: source.form,
        is_source: false,
    });
}

/// Sources that GitOps controllers pull from a registry: an address and a version in keys of their
/// own.
pub(super) fn gitops_references<'s>(
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

/// Like [`gitops_references`], for candidates.
pub(super) fn gitops_candidates<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    inventory: &Inventory<'_>,
    members: &MappingContext<'s>,
    _taken: &[usize],
) -> Vec<usize> {
    // a source that names its chart in a separate key is handled by `chart_candidates`
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
        is_chart: source.is_chart,
        why_not,
        ..ImageCandidate::certain(text_start(source.address), written)
    });
    vec![source.at]
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
                let to = new_reference(source, &reference, &replacement);
                let meaning = ReferenceMeaning::known(replacement.item, to);
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
            Some(chart) => replacement.without_end(&to, &format!("/{chart}"))?,
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
    use crate::audit::{Inventory, audit};
    use crate::tests::{becomes, stays};
    use landfall_item::lockfile::Lock;
    use landfall_model::Digest;
    use std::path::Path;

    #[test]
    fn charts_of_kubeone_and_kkp_are_found() {
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        for text in [
            "helmReleases: [{chart: d, repoURL: 'oci://quay.io/c', version: 1.10.0}]",
            "helm: {url: 'oci://quay.io/c', chartName: d, chartVersion: 1.10.0}",
        ] {
            let found = audit(Path::new("f.yaml"), text, &inventory);
            let references: Vec<&str> = found.iter().map(|one| &*one.reference).collect();
            assert_eq!(references, ["quay.io/c/d:1.10.0"], "{found:?}");
            assert!(found[0].coverage.is_missing(), "{found:?}");
        }
    }

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
        // k3s and Fleet, and Kustomize
        for version in ["1.10", "1.x"] {
            becomes(
                &format!("spec: {{chart: oci://quay.io/c/d, version: {version}}}"),
                &format!("spec: {{chart: oci://r:5/p/c/d, version: {version}}}"),
            );
            becomes(
                &format!("helmCharts: [{{name: d, repo: oci://quay.io/c, version: {version}}}]"),
                &format!("helmCharts: [{{name: d, repo: oci://r:5/p/c, version: {version}}}]"),
            );
        }
        // KubeOne and KKP
        becomes(
            "helmReleases: [{chart: d, repoURL: oci://quay.io/c, version: 1.10}]",
            "helmReleases: [{chart: d, repoURL: oci://r:5/p/c, version: 1.10}]",
        );
        becomes(
            "helm: {url: oci://quay.io/c, chartName: d, chartVersion: 1.10}",
            "helm: {url: oci://r:5/p/c, chartName: d, chartVersion: 1.10}",
        );
        stays(
            "helm: {chart: oci://quay.io/a/b, version: v2}",
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
