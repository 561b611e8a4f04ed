//! Artifacts that Flux's OCIRepository and sources of Argo CD pull from a registry.

use super::candidate_collector::{CandidateCollector, text_start};
use super::image_position::ImagePosition;
use super::node_position::MappingContents;
use crate::audit::candidate::ImageCandidate;
use crate::audit::inventory::Inventory;
use crate::gitops_source::{GitopsSource, SourceVersion};
use landfall_model::{ChartVersion, ChartVersionRange};

pub(super) struct GitopsPosition;

impl ImagePosition for GitopsPosition {
    fn references<'d>(
        &self,
        reader: &mut CandidateCollector<'d, '_>,
        members: &MappingContents<'d>,
        _taken: &[usize],
    ) -> Vec<usize> {
        // charts in keys of their own have another position
        let source = GitopsSource::of(members.entries).filter(|source| source.chart.is_none());
        let Some(source) = source else {
            return Vec::new();
        };
        let (written, why_not) = match source.version {
            SourceVersion::Prefix => return Vec::new(),
            SourceVersion::Range(range) => newest_in(range, &source, reader.inventory),
            SourceVersion::Tag(_) | SourceVersion::Digest(..) => (source.reference(), None),
        };
        reader.found.push(ImageCandidate {
            at: text_start(source.address),
            path: reader.path.clone(),
            written,
            sure: true,
            in_container: false,
            is_chart: source.is_chart,
            why_not,
        });
        vec![source.at]
    }
}

/// The reference with the newest locked tag in `range`, or the repository and the reason why there
/// is none.
fn newest_in(
    range: &str,
    source: &GitopsSource<'_>,
    inventory: &Inventory<'_>,
) -> (String, Option<String>) {
    let repository = source.repository();
    let tags = inventory.tags(&repository);
    if tags.is_empty() {
        return (repository, None);
    }
    let Ok(versions) = range.parse::<ChartVersionRange>() else {
        return (
            repository,
            Some(format!("'{range}' is not a range of versions")),
        );
    };
    let in_range = tags.iter().filter_map(|tag| {
        let version: ChartVersion = tag.parse().ok()?;
        versions.has(&version).then_some((version, tag))
    });
    match in_range.max_by(|(one, _), (other, _)| one.cmp(other)) {
        Some((_, tag)) => (format!("{repository}:{tag}"), None),
        None => {
            let why = format!("no locked tag is in the range {range}: {}", tags.join(", "));
            (repository, Some(why))
        }
    }
}
