//! The images of a node in the output of `crictl images -o json`, which lists tags and digests
//! separately.

use crate::inventory::Inventory;
use crate::walk::{ImageClaim, MappingContext, ReferenceCollector, ReferenceRule, text_start};
use crate::yaml::{YamlNode, YamlScalar, YamlSequence, position_of};
use landfall_model::ImageRef;

const TAGS: &str = "repoTags";
const DIGESTS: &str = "repoDigests";

pub(super) struct NodeImageRule;

impl ReferenceRule for NodeImageRule {
    fn candidates<'s>(
        &self,
        collector: &mut ReferenceCollector<'_, 's>,
        _inventory: &Inventory<'_>,
        members: &MappingContext<'s>,
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
                add(collector, scalar, &image);
            }
            for (scalar, one) in names {
                add(
                    collector,
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
            .for_each(|(scalar, image)| add(collector, scalar, image));
        vec![tags, digests]
    }
}

fn add(collector: &mut ReferenceCollector<'_, '_>, scalar: &YamlScalar<'_>, image: &ImageRef) {
    collector.add_claim(
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
