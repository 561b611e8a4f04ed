//! Charts that Argo CD, Flux and k3s are told to install: a repository, a name and a version in
//! keys of their own.

use super::enclosing::Members;
use super::position::Position;
use super::reader::{Reader, start_of};
use crate::audit::candidate::Candidate;
use crate::yaml::{Node, text};
use landfall_item::ChartName;

pub(super) struct Charts;

const RANGE: &str = "it names no one version of a chart; write the version that is locked";
const ELSEWHERE: &str =
    "its repository is named in another object, and no locked chart has this name and version";

impl Position for Charts {
    fn references<'d>(
        &self,
        reader: &mut Reader<'d, '_>,
        members: &Members<'d>,
        _taken: &[usize],
    ) -> Vec<usize> {
        let entries = members.entries;
        let part = |key: &str| {
            text(entries, key)
                .map(str::trim)
                .filter(|text| !text.is_empty())
        };
        let value = |key: &str| {
            entries
                .iter()
                .find(|(name, _)| name.scalar().is_some_and(|name| name.value == key))
        };
        let is_mapping =
            |key: &str| value(key).is_some_and(|(_, value)| matches!(value, Node::Mapping(..)));
        let tag = || match value("ref") {
            Some((_, Node::Mapping(entries, _))) => text(entries, "tag"),
            _ => None,
        };
        // Argo CD's source, k3s's HelmChart, Flux's OCIRepository and HelmRelease
        let (keys, repository, chart, version) =
            match (part("repoURL"), part("repo"), part("url"), part("chart")) {
                (Some(url), _, _, Some(chart)) => {
                    (["repoURL", "chart"], url, chart, part("targetRevision"))
                }
                (_, Some(url), _, Some(chart)) => (["repo", "chart"], url, chart, part("version")),
                (_, _, Some(url), None) if url.starts_with("oci://") && tag().is_some() => {
                    let (repository, chart) = url.rsplit_once('/').unwrap_or_default();
                    (["url", "ref"], repository, chart, tag())
                }
                (None, None, None, Some(chart)) if is_mapping("sourceRef") => {
                    (["chart", "version"], "", chart, part("version"))
                }
                _ => return Vec::new(),
            };
        let Some(at) = value(keys[0]).and_then(|(_, value)| start_of(value)) else {
            return Vec::new();
        };
        reader
            .found
            .push(candidate(at, reader, (repository, chart, version)));
        let is_key = |key: &Node<'_>| key.scalar().is_some_and(|key| keys.contains(&&*key.value));
        (0..entries.len())
            .filter(|at| is_key(&entries[*at].0))
            .collect()
    }
}

fn candidate(
    at: usize,
    reader: &Reader<'_, '_>,
    (repository, chart, version): (&str, &str, Option<&str>),
) -> Candidate {
    let one = |written: String, why_not: Option<&str>| Candidate {
        at,
        path: reader.path.clone(),
        written,
        sure: true,
        in_container: false,
        is_chart: true,
        why_not: why_not.map(str::to_owned),
    };
    let shown = format!("{chart} {}", version.unwrap_or_default());
    let (Some(version), false) = (version, repository.is_empty()) else {
        let held = version.and_then(|version| reader.inventory.chart_named(chart, version));
        return held.map_or_else(
            || one(shown.trim().into(), Some(ELSEWHERE)),
            |held| one(held, None),
        );
    };
    let is_http = repository.starts_with("http://") || repository.starts_with("https://");
    let name = match is_http {
        true => ChartName::in_repository(repository, chart, version),
        false => {
            let place = repository
                .trim_start_matches("oci://")
                .trim_end_matches('/');
            ChartName::try_from(format!("oci://{place}/{chart}:{version}"))
        }
    };
    name.map_or_else(
        |_| one(shown, Some(RANGE)),
        |name| one(name.reference.to_string(), None),
    )
}
