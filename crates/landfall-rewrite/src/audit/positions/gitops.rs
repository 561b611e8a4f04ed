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
        // a source that names its chart in a separate key is handled by `ChartPosition`
        let source = GitopsSource::of(members.entries).filter(|source| source.chart.is_none());
        let Some(source) = source else {
            return Vec::new();
        };
        let (written, why_not) = match source.version {
            SourceVersion::Prefix => return Vec::new(),
            SourceVersion::Range(range) => with_range(range, &source, reader.inventory),
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
