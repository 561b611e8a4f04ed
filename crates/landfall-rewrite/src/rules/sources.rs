//! Rules for what documents of GitOps controllers and other tools take from elsewhere: git
//! repositories, and artifacts and charts of a registry.

use super::charts::NamedChart;
use crate::git_source::{GitSource, GitUse};
use crate::index::{ReferenceLookup, ReferenceReplacement, replaced};
use crate::inventory::Inventory;
use crate::occurrence::{Occurrence, ReferenceMeaning, ReferenceRole};
use crate::text::OCI;
use crate::walk::{
    ImageCandidate, MappingContext, NodeStep, ReferenceCollector, start_of, text_start,
};
use crate::yaml::{
    YamlEntry, YamlNode, YamlScalar, entries_of, items_of, text_entry, text_of, value_of,
};
use landfall_item::ChartName;
use landfall_model::{ChartVersion, ChartVersionRange, Digest, ImageRef};
use std::path::Path;

/// The lists of a kustomization whose items may be in git.
const KUSTOMIZE_LISTS: [&str; 6] = [
    "resources",
    "bases",
    "components",
    "generators",
    "transformers",
    "validators",
];

/// The keys with the version of a repository in documents of Argo CD.
const ARGO_REVISIONS: [&str; 2] = ["targetRevision", "revision"];

/// The keys of `spec.ref` of Flux's `GitRepository`. The first one that is present counts.
const FLUX_REVISIONS: [&str; 5] = ["commit", "name", "semver", "tag", "branch"];

/// Git repositories that documents of Argo CD, Flux, Kustomize, vendir, kapp-controller and
/// KubeVela use.
pub(super) fn git_sources<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    _inventory: &Inventory<'_>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    // documents within texts are objects of another cluster or examples
    let Some(file) = collector.file else {
        return Vec::new();
    };
    let entries = members.entries;
    match collector.path[..] {
        [] if is_kustomization(file, entries) => add_items(collector, entries),
        [NodeStep::Key("spec")] if is_flux(collector) => {
            let revision = match value_of(entries, "ref") {
                Some(YamlNode::Mapping(reference)) => {
                    first_text(&reference.entries, &FLUX_REVISIONS)
                }
                // Flux's default
                _ => Some(("branch", "master")),
            };
            add_repository(collector, entries, "url", revision);
        }
        // lists of vendir and kapp-controller
        [
            ..,
            NodeStep::Key("contents" | "fetch"),
            NodeStep::Item(_),
            NodeStep::Key("git"),
        ] => {
            let semver = entries_of(entries_of(entries, "refSelection"), "semver");
            // vendir also accepts the name of a branch as git shows it
            let revision = text_of(entries, "ref")
                .map(|name| ("ref", name.trim().trim_start_matches("origin/")))
                .or_else(|| Some(("semver", text_of(semver, "constraints")?)));
            add_repository(collector, entries, "url", revision);
        }
        _ => {}
    }
    // with the name of a chart, `repoURL` is a chart repository
    let is_of_charts = ["chart", "chartName"]
        .iter()
        .any(|key| value_of(entries, key).is_some());
    if text_of(entries, "repoURL").is_some() && !is_of_charts {
        let revision = first_text(entries, &ARGO_REVISIONS);
        add_repository(collector, entries, "repoURL", revision);
    }
    // a component of KubeVela with a chart in git
    if text_of(entries, "repoType") == Some("git") {
        let branch = text_of(entries_of(entries, "git"), "branch");
        let revision = branch.map(|branch| ("branch", branch));
        add_repository(collector, entries, "url", revision);
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
    collector.head().kind == "GitRepository"
}

/// The first of `keys` that has a text, and the text.
fn first_text<'s>(
    entries: &'s [YamlEntry<'s>],
    keys: &[&'static str],
) -> Option<(&'static str, &'s str)> {
    let mut keys = keys.iter();
    keys.find_map(|key| Some((*key, text_of(entries, key)?)))
}

/// Adds the repositories that the items of a kustomization name.
fn add_items(collector: &mut ReferenceCollector<'_, '_>, entries: &[YamlEntry<'_>]) {
    for list in KUSTOMIZE_LISTS {
        for (at, node) in items_of(entries, list).iter().enumerate() {
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

/// Adds the repository that the value of `key` names, with the key and the text of its `revision`.
fn add_repository(
    collector: &mut ReferenceCollector<'_, '_>,
    entries: &[YamlEntry<'_>],
    key: &'static str,
    revision: Option<(&str, &str)>,
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
        revision: revision.map(|(_, text)| text.trim().to_owned()),
        is_range: revision.is_some_and(|(key, _)| key == "semver"),
        form: source.form,
        is_source: false,
    });
}

// Sources that controllers and other tools pull from a registry: Flux's OCIRepository and
// HelmRepository, repositories of Helmfile, the sources of an Argo CD Application, and charts.

/// A source in a registry, from the keys of one mapping.
struct GitopsSource<'s> {
    /// The position of the entry with the address.
    at: usize,
    /// The value with the address: `oci://registry/repository`, or without a scheme.
    address: &'s YamlScalar<'s>,
    /// The name of the chart, if there is one. The controller appends it to the address.
    chart: Option<&'s str>,
    version: SourceVersion<'s>,
    /// Whether the artifact is certainly a Helm chart.
    is_chart: bool,
}

/// The version that a source selects.
#[derive(Clone, Copy)]
enum SourceVersion<'s> {
    /// One tag.
    Tag(&'s str),
    /// One digest, and the scalar that contains it.
    Digest(&'s str, &'s YamlScalar<'s>),
    /// The newest tag in a range of versions.
    Range(&'s str),
    /// No version: the address is a prefix. Other objects select the charts below it.
    Prefix,
}

impl<'s> GitopsSource<'s> {
    /// The source in a mapping. `None` if the mapping is not a source, or the source is not in a
    /// registry.
    fn of(members: &MappingContext<'s>) -> Option<GitopsSource<'s>> {
        flux_source(members.entries)
            .or_else(|| chart_source(members))
            .or_else(|| argo_source(members.entries))
    }

    /// The text of the address, without blanks around it.
    fn written(&self) -> &'s str {
        self.address.value.trim()
    }

    /// The scheme of the address: `oci://` or empty.
    fn scheme(&self) -> &'static str {
        if self.written().starts_with(OCI) {
            OCI
        } else {
            ""
        }
    }

    /// The repository, without a scheme.
    fn repository(&self) -> String {
        let address = self.written().trim_start_matches(OCI);
        let address = address.trim_end_matches('/');
        match self.chart {
            Some(chart) => format!("{address}/{chart}"),
            None => address.to_owned(),
        }
    }

    /// The reference of the artifact, with its tag or digest if the version is one of these.
    fn reference(&self) -> String {
        let repository = self.repository();
        match self.version {
            SourceVersion::Tag(tag) => format!("{repository}:{tag}"),
            SourceVersion::Digest(digest, _) => format!("{repository}@{digest}"),
            SourceVersion::Range(_) | SourceVersion::Prefix => repository,
        }
    }
}

/// Flux's OCIRepository and HelmRepository (source.toolkit.fluxcd.io), and Helmfile's
/// `repositories`.
fn flux_source<'s>(entries: &'s [YamlEntry<'s>]) -> Option<GitopsSource<'s>> {
    let (at, address) = text_entry(entries, "url")?;
    let is_helmfile = text_of(entries, "oci") == Some("true");
    if !(is_helmfile || address.value.trim().starts_with(OCI)) {
        return None;
    }
    let version = match value_of(entries, "ref") {
        Some(YamlNode::Mapping(reference)) => version_in(&reference.entries)?,
        _ if is_helmfile || text_of(entries, "type") == Some("oci") => SourceVersion::Prefix,
        _ => return None,
    };
    let is_chart = text_of(entries_of(entries, "layerSelector"), "mediaType")
        .is_some_and(|media_type| media_type.contains(".helm.chart."));
    Some(GitopsSource {
        at,
        address,
        chart: None,
        version,
        is_chart,
    })
}

/// The version in the `ref` of an OCIRepository. `digest` overrides `semver`, which overrides `tag`
/// (OCIRepositoryRef).
fn version_in<'s>(reference: &'s [YamlEntry<'s>]) -> Option<SourceVersion<'s>> {
    if let Some((_, digest)) = text_entry(reference, "digest") {
        return Some(SourceVersion::Digest(digest.value.trim(), digest));
    }
    if let Some((_, range)) = text_entry(reference, "semver") {
        return Some(SourceVersion::Range(range.value.trim()));
    }
    let (_, tag) = text_entry(reference, "tag")?;
    Some(SourceVersion::Tag(tag.value.trim()))
}

/// A source of an Argo CD Application (argoproj.io) without a chart.
fn argo_source<'s>(entries: &'s [YamlEntry<'s>]) -> Option<GitopsSource<'s>> {
    let (at, address) = text_entry(entries, "repoURL")?;
    let (_, revision) = text_entry(entries, "targetRevision")?;
    let is_registry = address.value.trim().starts_with(OCI);
    is_registry.then(|| GitopsSource {
        at,
        address,
        chart: None,
        version: version_of(revision),
        is_chart: false,
    })
}

/// A chart in a registry. The address ends in its name, or the tool appends the name.
fn chart_source<'s>(members: &MappingContext<'s>) -> Option<GitopsSource<'s>> {
    let named = NamedChart::of(members)?;
    let version = version_of(named.version?);
    let ((at, address), chart) = match named.repository {
        None => (named.name, None),
        Some(repository) if named.is_in_registry() => (repository, Some(named.name_text())),
        Some(_) => return None,
    };
    Some(GitopsSource {
        at,
        address,
        chart,
        version,
        is_chart: true,
    })
}

fn version_of<'s>(scalar: &'s YamlScalar<'s>) -> SourceVersion<'s> {
    let text = scalar.value.trim();
    if text.parse::<Digest>().is_ok() {
        SourceVersion::Digest(text, scalar)
    } else if is_tag(text) {
        SourceVersion::Tag(text)
    } else {
        SourceVersion::Range(text)
    }
}

/// Whether `text` is a tag, and not a range of versions such as `1.x`.
fn is_tag(text: &str) -> bool {
    let is_range =
        text.parse::<ChartVersionRange>().is_ok() && text.parse::<ChartVersion>().is_err();
    !is_range && format!("h.invalid/r:{text}").parse::<ImageRef>().is_ok()
}

/// Sources that GitOps controllers pull from a registry: an address and a version in keys of their
/// own.
pub(super) fn gitops_references<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    let Some(source) = GitopsSource::of(members) else {
        return Vec::new();
    };
    if members.is_taken(source.at) || !decide(&source, members, collector) {
        return Vec::new();
    }
    vec![source.at]
}

/// Like [`gitops_references`], for candidates.
pub(super) fn gitops_candidates<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    inventory: &Inventory<'_>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    // a source that names its chart in a separate key is handled by `chart_candidates`
    let source = GitopsSource::of(members).filter(|source| source.chart.is_none());
    let Some(source) = source else {
        return Vec::new();
    };
    let (written, why_not) = match source.version {
        SourceVersion::Prefix => return Vec::new(),
        SourceVersion::Range(range) => with_range(range, &source, inventory),
        SourceVersion::Tag(_) | SourceVersion::Digest(..) => (source.reference(), None),
    };
    let chart = source.is_chart.then(|| format!("{OCI}{written}"));
    collector.add_candidate(ImageCandidate {
        is_chart: source.is_chart,
        chart: chart.and_then(|name| ChartName::try_from(name).ok()),
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
        ReferenceLookup::Settled(item) => ReferenceMeaning::Settled(item),
        ReferenceLookup::Left(why) => ReferenceMeaning::Left(why),
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
            Err(why) => ReferenceMeaning::Left(why),
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
    use landfall_model::document::growth::assert_linear;
    use std::path::Path;

    #[test]
    fn many_mappings_that_are_called_git_take_linear_time() {
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        assert_linear(2_000, |count| {
            let text: String = (0..count)
                .map(|at| format!("a{at}: {{git: {{}}}}\n"))
                .collect();
            assert_eq!(audit(Path::new("x.yaml"), &text, &inventory), []);
        });
    }

    #[test]
    fn git_sources_of_vendir_are_found_with_their_version() {
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        for (version, expected) in [
            ("ref: origin/main", Some("main")),
            ("ref: v1", Some("v1")),
            ("refSelection: {semver: {constraints: '>=1'}}", Some(">=1")),
            ("subPath: x", None),
        ] {
            let text = format!(
                "apiVersion: vendir.k14s.io/v1alpha1\n\
                 contents: [{{path: a, git: {{url: 'https://h.test/a.git', {version}}}}}]\n"
            );
            let found = audit(Path::new("vendir.yml"), &text, &inventory);
            let found = found.iter().filter_map(|one| one.repository.as_ref());
            let found: Vec<_> = found
                .map(|one| (&*one.url, one.revision.as_deref()))
                .collect();
            assert_eq!(found, [("https://h.test/a.git", expected)], "{text}");
        }
    }

    #[test]
    fn a_chart_of_kubevela_in_git_is_a_folder_of_the_repository() {
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let text = "properties: {repoType: git, url: 'https://h.test/a', chart: ./c, \
                    version: 1.10.0, git: {branch: v1}}\n";
        let found = audit(Path::new("app.yaml"), text, &inventory);
        let [found] = &found[..] else {
            panic!("not one reference: {found:?}");
        };
        let repository = found.repository.as_ref().unwrap();
        let found = (&*repository.url, repository.revision.as_deref());
        assert_eq!(found, ("https://h.test/a", Some("v1")));
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
        // Cluster API, Sveltos, k0s, vendir, Pulumi and KubeVela
        for source in [
            "spec: {repoURL: FROM, chartName: d, version: 1.10}",
            "helmCharts: [{repositoryURL: FROM, chartName: d, chartVersion: 1.10}]",
            "charts: [{chartname: FROM/d, version: 1.10}]",
            "helmChart: {name: d, version: 1.10, repository: {url: FROM}}",
            "properties: {chart: d, version: 1.10, repositoryOpts: {repo: FROM}}",
            "properties: {url: FROM, chart: d, version: 1.10}",
        ] {
            becomes(
                &source.replace("FROM", "oci://quay.io/c"),
                &source.replace("FROM", "oci://r:5/p/c"),
            );
        }
        // Ansible, Skaffold, Crossplane's provider-helm, and Helmfile
        for keys in [
            "chart_repo_url: URL, chart_ref",
            "repo: URL, remoteChart",
            "repository: URL, name",
        ] {
            let source = format!("chart: {{{keys}: d, VERSION: 1.10}}");
            let version = if keys.contains("_ref") {
                "chart_version"
            } else {
                "version"
            };
            let source = source.replace("VERSION", version);
            becomes(
                &source.replace("URL", "oci://quay.io/c"),
                &source.replace("URL", "oci://r:5/p/c"),
            );
        }
        for keys in ["chart_ref: URL, chart_version", "remoteChart: URL, version"] {
            becomes(
                &format!("x: {{{keys}: 1.10}}").replace("URL", "oci://quay.io/c/d"),
                &format!("x: {{{keys}: 1.10}}").replace("URL", "oci://r:5/p/c/d"),
            );
        }
        becomes(
            "repositories: [{name: c, url: quay.io/c, oci: true}]\nreleases: [{chart: c/d, version: 1.10}]",
            "repositories: [{name: c, url: r:5/p/c, oci: true}]\nreleases: [{chart: c/d, version: 1.10}]",
        );
        stays(
            "helm: {chart: oci://quay.io/a/b, version: v2}",
            "only as v1",
        );
        let dependencies = "dependencies: [{name: d, repository: oci://quay.io/c, version: 1.10}]";
        becomes(dependencies, dependencies);
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
