//! Charts that Argo CD, Flux and k3s install: repository, name and version in keys of their own.

use crate::inventory::Inventory;
use crate::walk::{ImageCandidate, MappingContext, ReferenceCollector, ReferenceRule, start_of};
use crate::yaml::{YamlEntry, YamlNode, position_of, text_of, value_of};
use landfall_item::ChartName;
use landfall_model::is_web_url;

pub(super) struct ChartRule;

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

impl ReferenceRule for ChartRule {
    fn candidates<'s>(
        &self,
        collector: &mut ReferenceCollector<'_, 's>,
        inventory: &Inventory<'_>,
        members: &MappingContext<'s>,
        _taken: &[usize],
    ) -> Vec<usize> {
        let Some(chart) = installed_chart(members.entries) else {
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
}

/// The chart that a mapping installs, if it installs one.
fn installed_chart<'d>(entries: &'d [YamlEntry<'d>]) -> Option<InstalledChart<'d>> {
    let part = |key: &str| {
        let text = text_of(entries, key)?.trim();
        (!text.is_empty()).then_some(text)
    };
    let chart = part("chart")?;
    // Argo CD's source
    if let Some(repository) = part("repoURL") {
        return Some(InstalledChart {
            keys: ["repoURL", "chart"],
            repository,
            chart,
            version: part("targetRevision"),
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
            at,
            path: Vec::new(),
            written,
            sure: true,
            in_container: false,
            is_chart: true,
            why_not,
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
