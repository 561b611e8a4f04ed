//! The images of a node in the output of `crictl images -o json`, which lists tags and digests
//! separately.

use super::candidate_collector::{CandidateCollector, text_start};
use super::image_claim::ImageClaim;
use super::image_position::ImagePosition;
use super::node_position::MappingContents;
use crate::yaml::{YamlNode, YamlScalar, YamlSequence, position_of};
use landfall_model::ImageRef;

const TAGS: &str = "repoTags";
const DIGESTS: &str = "repoDigests";

pub(super) struct NodeImagePosition;

impl ImagePosition for NodeImagePosition {
    fn references<'d>(
        &self,
        reader: &mut CandidateCollector<'d, '_>,
        members: &MappingContents<'d>,
        _taken: &[usize],
    ) -> Vec<usize> {
        let tags = position_of(members.entries, TAGS);
        let digests = position_of(members.entries, DIGESTS);
        let (Some(tags), Some(digests)) = (tags, digests) else {
            return Vec::new();
        };
        let mut tagged = references(&members.entries[tags].value);
        for (scalar, image) in references(&members.entries[digests].value) {
            let names = tagged
                .extract_if(.., |(_, one)| one.name() == image.name())
                .collect::<Vec<_>>();
            if names.is_empty() {
                add(reader, scalar, &image);
            }
            for (scalar, one) in names {
                add(
                    reader,
                    scalar,
                    &ImageRef {
                        digest: image.digest.clone(),
                        ..one
                    },
                );
            }
        }
        tagged
            .iter()
            .for_each(|(scalar, image)| add(reader, scalar, image));
        vec![tags, digests]
    }
}

fn add(reader: &mut CandidateCollector<'_, '_>, scalar: &YamlScalar<'_>, image: &ImageRef) {
    reader.add(
        text_start(scalar),
        ImageClaim {
            written: &image.to_string(),
            sure: true,
            in_container: true,
        },
    );
}

/// The references in a list of scalars.
fn references<'d>(node: &'d YamlNode<'d>) -> Vec<(&'d YamlScalar<'d>, ImageRef)> {
    let YamlNode::Sequence(YamlSequence { items, .. }) = node else {
        return Vec::new();
    };
    let scalars = items.iter().filter_map(YamlNode::scalar);
    scalars
        .filter_map(|scalar| Some((scalar, scalar.text()?.parse().ok()?)))
        .collect()
}
