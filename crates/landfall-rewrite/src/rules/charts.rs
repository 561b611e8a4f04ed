//! Rules for charts that controllers and other tools install: Argo CD, Flux, k3s, k0s, Fleet,
//! Kustomize, KubeOne, KKP, Cluster API, Sveltos, Helmfile, Skaffold, Ansible, vendir,
//! kapp-controller, Pulumi, KubeVela and Crossplane's provider-helm.

use crate::index::is_pinned;
use crate::inventory::{HelmRepositories, Inventory};
use crate::text::{OCI, has_placeholder};
use crate::walk::{
    HAS_PLACEHOLDER, ImageCandidate, MappingContext, NodeStep, ReferenceCollector, start_of,
    text_start,
};
use crate::yaml::{
    YamlEntry, YamlNode, YamlScalar, documents, entries_of, items_of, position_of, text_entry,
    text_of, value_of,
};
use landfall_item::ChartName;
use landfall_model::is_web_url;
use std::collections::BTreeMap;

/// The keys of one mapping that name a chart.
struct ChartKeys {
    /// The key of the repository, or of a mapping that has it as `url` or `repo`.
    repository: &'static str,
    name: &'static str,
    /// The first one that is present counts.
    version: &'static [&'static str],
    /// The key of the mapping, or of the list that contains it. Below other keys, the repository
    /// must be in a registry, because a web address may be that of anything.
    below: Option<&'static str>,
}

/// The keys of each tool.
const CHART_KEYS: [ChartKeys; 14] = [
    // Kustomize
    ChartKeys {
        below: Some("helmCharts"),
        ..keys("repo", "name", &["version"])
    },
    // Crossplane's provider-helm
    ChartKeys {
        below: Some("chart"),
        ..keys("repository", "name", &["version"])
    },
    // vendir and kapp-controller
    ChartKeys {
        below: Some("helmChart"),
        ..keys("repository", "name", &["version"])
    },
    // KKP's ApplicationDefinition
    keys("url", "chartName", &["chartVersion"]),
    // Argo CD, and KubeOne's `helmReleases`
    keys("repoURL", "chart", &["targetRevision", "version"]),
    // components of KubeVela
    keys("url", "chart", &["version"]),
    // `HelmChartProxy` of Cluster API
    keys("repoURL", "chartName", &["version"]),
    // Sveltos
    keys("repositoryURL", "chartName", &["chartVersion"]),
    // k3s and Fleet
    keys("repo", "chart", &["version"]),
    // k0s, for a chart in a registry
    keys("", "chartname", &["version"]),
    // Skaffold
    keys("repo", "remoteChart", &["version"]),
    // Ansible
    keys("chart_repo_url", "chart_ref", &["chart_version"]),
    // Pulumi
    keys("repositoryOpts", "chart", &["version"]),
    keys("fetchOpts", "chart", &["version"]),
];

const fn keys(
    repository: &'static str,
    name: &'static str,
    version: &'static [&'static str],
) -> ChartKeys {
    ChartKeys {
        repository,
        name,
        version,
        below: None,
    }
}

/// A chart in keys of one mapping.
pub(super) struct NamedChart<'s> {
    /// The position and the value of the entry with the repository. `None` if the name is an
    /// address in a registry, which ends in the name of the chart.
    pub(super) repository: Option<(usize, &'s YamlScalar<'s>)>,
    pub(super) name: (usize, &'s YamlScalar<'s>),
    pub(super) version: Option<&'s YamlScalar<'s>>,
    /// Whether a repository without a scheme is in a registry.
    needs_no_scheme: bool,
}

impl<'s> NamedChart<'s> {
    /// The chart that a mapping names, if it names one.
    pub(super) fn of(members: &MappingContext<'s>) -> Option<NamedChart<'s>> {
        CHART_KEYS.iter().find_map(|keys| keys.chart(members))
    }

    pub(super) fn name_text(&self) -> &'s str {
        self.name.1.value.trim()
    }

    /// Whether the repository is in a registry.
    pub(super) fn is_in_registry(&self) -> bool {
        self.repository.is_none_or(|(_, repository)| {
            let repository = repository.value.trim();
            repository.starts_with(OCI) || self.needs_no_scheme && !repository.contains("://")
        })
    }
}

impl ChartKeys {
    fn chart<'s>(&self, members: &MappingContext<'s>) -> Option<NamedChart<'s>> {
        let MappingContext {
            entries, around, ..
        } = members;
        let name = text_entry(entries, self.name)?;
        let version = self.version.iter().find_map(|key| text_entry(entries, key));
        let is_address = name.1.value.trim().starts_with(OCI) && self.below.is_none();
        let repository = text_entry(entries, self.repository)
            .or_else(|| nested_repository(entries, self.repository))
            .filter(|_| !is_address);
        let is_below = self.below.is_none_or(|below| {
            around.key == Some(below) || (around.key.is_none() && around.above == Some(below))
        });
        let is_chart = match repository {
            None => is_address,
            // the dependencies of a Chart.yaml must match its Chart.lock
            Some(_) if around.above == Some("dependencies") => false,
            // in a component of KubeVela, it is a folder of this repository
            Some(_) if text_of(entries, "repoType") == Some("git") => false,
            Some((_, repository)) => is_below || repository.value.trim().starts_with(OCI),
        };
        is_chart.then_some(NamedChart {
            repository,
            name,
            version: version.map(|(_, version)| version),
            needs_no_scheme: self.repository == "repoURL",
        })
    }
}

/// The position of the mapping `key`, and the repository in it.
fn nested_repository<'s>(
    entries: &'s [YamlEntry<'s>],
    key: &str,
) -> Option<(usize, &'s YamlScalar<'s>)> {
    let at = position_of(entries, key)?;
    let inner = entries[at].value.entries();
    let mut keys = ["url", "repo"].iter();
    let (_, repository) = keys.find_map(|key| text_entry(inner, key))?;
    Some((at, repository))
}

const RANGE: &str = "it does not name one version of a chart; write the locked version";

const ELSEWHERE: &str =
    "its repository is named in another object, and no locked chart has this name and version";

/// A chart that a document installs, as an audit looks it up.
pub(crate) struct InstalledChart<'d> {
    /// Empty if another object names the repository.
    pub(crate) repository: String,
    pub(crate) chart: &'d str,
    pub(crate) version: Option<&'d str>,
}

/// Charts whose repository, name and version have keys of their own, and charts without a version.
pub(super) fn chart_candidates<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    inventory: &Inventory<'_>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    let found = match NamedChart::of(members) {
        Some(named) => named.installed(),
        None => referring_chart(inventory, members),
    };
    let Some((chart, address, positions)) = found else {
        return Vec::new();
    };
    collector.add_candidate(chart.candidate(text_start(address), inventory));
    positions
}

/// A chart, the value that is reported for it, and the positions of its entries.
type FoundChart<'s> = (InstalledChart<'s>, &'s YamlScalar<'s>, Vec<usize>);

impl<'s> NamedChart<'s> {
    /// The chart, unless `gitops_candidates` reads it.
    fn installed(&self) -> Option<FoundChart<'s>> {
        let (name_at, name) = self.name;
        let (repository, address, positions) = match self.repository {
            Some((at, address)) => (address.value.trim(), address, vec![at, name_at]),
            None if self.version.is_some()
                || is_pinned(self.name_text().trim_start_matches(OCI)) =>
            {
                return None;
            }
            None => ("", name, vec![name_at]),
        };
        let chart = InstalledChart {
            repository: repository.to_owned(),
            chart: self.name_text(),
            version: self.version.map(|version| version.value.trim()),
        };
        Some((chart, address, positions))
    }
}

/// Lists whose items name a chart as `REPOSITORY/CHART`, and the key of that name.
const LISTS: [(&str, &str); 2] = [
    // Helmfile
    ("releases", "chart"),
    // k0s
    ("charts", "chartname"),
];

/// The charts of Helmfile and k0s, whose repositories are in the list `repositories` beside theirs.
pub(super) fn listed_charts<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    inventory: &Inventory<'_>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    let mut repositories = BTreeMap::new();
    for item in items_of(members.entries, "repositories") {
        let entries = item.entries();
        if let (Some(name), Some(url)) = (text_of(entries, "name"), text_of(entries, "url")) {
            // of repositories with one name, the first one counts
            repositories.entry(name).or_insert(url.trim());
        }
    }
    if repositories.is_empty() {
        return Vec::new();
    }
    for (list, key) in LISTS {
        collector.path.push(NodeStep::Key(list));
        for (at, item) in items_of(members.entries, list).iter().enumerate() {
            if let Some((start, chart)) = listed_chart(item, key, &repositories) {
                collector.path.push(NodeStep::Item(at));
                collector.add_candidate(chart.candidate(start, inventory));
                collector.path.pop();
            }
        }
        collector.path.pop();
    }
    Vec::new()
}

/// The chart of the list item `item` in one of `repositories`, and the offset of its name.
fn listed_chart<'s>(
    item: &'s YamlNode<'s>,
    key: &str,
    repositories: &BTreeMap<&str, &str>,
) -> Option<(usize, InstalledChart<'s>)> {
    let entries = item.entries();
    let (at, name) = text_entry(entries, key)?;
    let (repository, chart) = name.value.trim().split_once('/')?;
    let chart = InstalledChart {
        repository: (*repositories.get(repository)?).to_owned(),
        chart,
        version: text_of(entries, "version").map(str::trim),
    };
    Some((start_of(&entries[at].value)?, chart))
}

/// Adds the repositories of charts that the documents of `text` define for Flux.
pub(crate) fn add_helm_repositories(text: &str, found: &mut HelmRepositories) {
    const KIND: &str = "HelmRepository";
    if !text.contains(KIND) {
        return;
    }
    for document in documents(text).flatten() {
        let root = document.entries();
        // `kubectl get -o yaml` prints a list
        let items = items_of(root, "items").iter().map(YamlNode::entries);
        for object in std::iter::once(root).chain(items) {
            if text_of(object, "kind") == Some(KIND)
                && let Some(name) = text_of(entries_of(object, "metadata"), "name")
                && let Some(url) = text_of(entries_of(object, "spec"), "url")
            {
                let url = Some(url.trim().trim_end_matches('/').to_owned());
                let known = found.entry(name.to_owned()).or_insert_with(|| url.clone());
                if *known != url {
                    *known = None;
                }
            }
        }
    }
}

/// The chart of Flux's `HelmRelease`, whose repository is another object. Unless the lock has a
/// chart of this name and version, the repository is that of the audited files.
fn referring_chart<'s>(
    inventory: &Inventory<'_>,
    members: &MappingContext<'s>,
) -> Option<FoundChart<'s>> {
    let entries = members.entries;
    let (at, name) = text_entry(entries, "chart")?;
    let Some(YamlNode::Mapping(source)) = value_of(entries, "sourceRef") else {
        return None;
    };
    // a chart in a GitRepository or Bucket is a folder of that source
    let kind = text_of(&source.entries, "kind");
    if text_of(entries, "url").is_some() || kind.is_some_and(|kind| kind != "HelmRepository") {
        return None;
    }
    let version = text_entry(entries, "version");
    let mut chart = InstalledChart {
        repository: String::new(),
        chart: name.value.trim(),
        version: version.map(|(_, version)| version.value.trim()),
    };
    let is_locked = chart
        .version
        .is_some_and(|version| inventory.chart_named(chart.chart, version).is_some());
    if !is_locked
        && let Some(name) = text_of(&source.entries, "name")
        && let Some(url) = inventory.helm_repository(name)
    {
        url.clone_into(&mut chart.repository);
    }
    let positions = std::iter::once(at).chain(version.map(|(at, _)| at));
    Some((chart, name, positions.collect()))
}

impl InstalledChart<'_> {
    /// The candidate at the byte `at`.
    pub(crate) fn candidate(&self, at: usize, inventory: &Inventory<'_>) -> ImageCandidate {
        match self.name(inventory) {
            Ok((written, chart)) => ImageCandidate {
                is_chart: true,
                chart,
                ..ImageCandidate::certain(at, written)
            },
            Err(reason) => {
                let version = self.version.unwrap_or_default();
                let written = format!("{} {version}", self.chart).trim().to_owned();
                ImageCandidate {
                    is_chart: true,
                    ..ImageCandidate::undecided(at, written, reason)
                }
            }
        }
    }

    /// The reference of the chart, and its name unless the lock has the chart. An error is the
    /// reason why it has no reference.
    fn name(&self, inventory: &Inventory<'_>) -> Result<(String, Option<ChartName>), &'static str> {
        let parts = [&*self.repository, self.chart].into_iter();
        if parts.chain(self.version).any(has_placeholder) {
            return Err(HAS_PLACEHOLDER);
        }
        let Some(version) = self.version else {
            // without a version, the newest one is installed
            return Err(RANGE);
        };
        if self.repository.is_empty() {
            let locked = inventory.chart_named(self.chart, version);
            return Ok((locked.ok_or(ELSEWHERE)?, None));
        }
        let name = if is_web_url(&self.repository) {
            // Sveltos writes its own name of the repository before that of the chart
            let chart = self.chart.rsplit('/').next().unwrap_or(self.chart);
            ChartName::in_repository(&self.repository, chart, version)
        } else {
            let repository = self
                .repository
                .trim_start_matches(OCI)
                .trim_end_matches('/');
            ChartName::try_from(format!("{OCI}{repository}/{}:{version}", self.chart))
        };
        let name = name.map_err(|_| RANGE)?;
        Ok((name.reference.to_string(), Some(name)))
    }
}

#[cfg(test)]
mod tests {
    use crate::audit::{Inventory, audit};
    use landfall_item::lockfile::Lock;
    use std::path::Path;

    fn audited(text: &str) -> Vec<(String, bool)> {
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let found = audit(Path::new("f.yaml"), text, &inventory).into_iter();
        found
            .map(|one| (one.reference, one.coverage.is_missing()))
            .collect()
    }

    #[test]
    fn charts_in_keys_of_their_own_are_found() {
        for text in [
            "helmReleases: [{chart: d, repoURL: 'oci://quay.io/c', version: 1.10.0}]",
            "helm: {url: 'oci://quay.io/c', chartName: d, chartVersion: 1.10.0}",
            "kubernetes.core.helm: {chart_repo_url: 'oci://quay.io/c', chart_ref: d, chart_version: 1.10.0}",
            "kubernetes.core.helm: {chart_ref: 'oci://quay.io/c/d', chart_version: 1.10.0}",
            "releases: [{repo: 'oci://quay.io/c', remoteChart: d, version: 1.10.0}]",
            "releases: [{remoteChart: 'oci://quay.io/c/d', version: 1.10.0}]",
            "chart: {repository: 'oci://quay.io/c', name: d, version: 1.10.0}",
            "spec: {repoURL: 'oci://quay.io/c', chartName: d, version: 1.10.0}",
            "helmCharts: [{repositoryURL: 'oci://quay.io/c', chartName: d, chartVersion: 1.10.0}]",
            "charts: [{chartname: 'oci://quay.io/c/d', version: 1.10.0}]",
            "helmChart: {name: d, version: 1.10.0, repository: {url: 'oci://quay.io/c'}}",
            "properties: {repoType: oci, url: 'oci://quay.io/c', chart: d, version: 1.10.0}",
            "properties: {chart: d, version: 1.10.0, fetchOpts: {repo: 'oci://quay.io/c'}}",
            "repositories: [{name: c, url: quay.io/c, oci: true}]\nreleases: [{chart: c/d, version: 1.10.0}]",
        ] {
            assert_eq!(
                audited(text),
                [("quay.io/c/d:1.10.0".into(), true)],
                "{text}"
            );
        }
        for text in [
            "x: {chart_repo_url: 'https://h.test/c', chart_ref: d, chart_version: 1.10.0}",
            "chart: {repository: 'https://h.test/c', name: d, version: 1.10.0}",
            "spec: {repoURL: 'https://h.test/c', chartName: d, version: 1.10.0}",
            "helmChart: {name: d, version: 1.10.0, repository: {url: 'https://h.test/c'}}",
            "properties: {chart: d, version: 1.10.0, repositoryOpts: {repo: 'https://h.test/c'}}",
            "properties: {repoType: helm, url: 'https://h.test/c', chart: d, version: 1.10.0}",
            "helmCharts: [{repositoryURL: 'https://h.test', chartName: c/d, chartVersion: 1.10.0}]",
            "helm: {repositories: [{name: c, url: 'https://h.test/c'}], charts: [{chartname: c/d, version: 1.10.0}]}",
            "repositories: [{name: c, url: 'https://h.test/c'}]\nreleases: [{chart: c/d, version: 1.10.0}]",
        ] {
            let found = audited(text);
            assert!(found.len() == 1 && found[0].1, "{text}: {found:?}");
        }
    }

    #[test]
    fn a_chart_without_one_version_is_undecided_and_other_mappings_are_no_charts() {
        for text in [
            "releases: [{chart: 'oci://quay.io/c/d'}]",
            "x: {chart_repo_url: 'https://h.test/c', chart_ref: d}",
            "repositories: [{name: c, url: 'https://h.test/c'}]\nreleases: [{chart: c/d}]",
            "source: {repoURL: 'https://h.test/${P}', chart: d, targetRevision: 1.10.0}",
            "source: {repoURL: 'https://${H}/c', chart: d, targetRevision: 1.10.0}",
            "spec: {chart: d, sourceRef: {kind: HelmRepository, name: x}}",
        ] {
            let found = audited(text);
            assert!(found.len() == 1 && !found[0].1, "{text}: {found:?}");
        }
        for text in [
            "releases: [{chart: ./c/d, version: 1.10.0}, {chart: c/d, version: 1.10.0}]",
            "x: {repository: 'https://h.test/c', name: d, version: 1.10.0}",
            "x: {repo: 'https://h.test/c', name: d, version: 1.10.0}",
            "{repository: {url: 'https://h.test/c'}, name: d, version: 1.10.0}",
            "spec: {chart: ./c/d, sourceRef: {kind: GitRepository, name: x}}",
        ] {
            assert_eq!(audited(text), [], "{text}");
        }
    }
}
