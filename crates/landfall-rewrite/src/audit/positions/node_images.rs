//! The images of a node: `crictl images -o json`. An image stands there with its tags and its
//! digests apart.

use super::claim::Claim;
use super::enclosing::Members;
use super::position::Position;
use super::reader::{Reader, text_start};
use crate::yaml::{Node, Scalar};
use landfall_model::ImageRef;

const TAGS: &str = "repoTags";
const DIGESTS: &str = "repoDigests";

pub(super) struct NodeImages;

impl Position for NodeImages {
    fn references<'d>(
        &self,
        reader: &mut Reader<'d, '_>,
        members: &Members<'d>,
        _taken: &[usize],
    ) -> Vec<usize> {
        let at = |key: &str| {
            members
                .entries
                .iter()
                .position(|(name, _)| name.scalar().is_some_and(|name| name.value == key))
        };
        let (Some(tags), Some(digests)) = (at(TAGS), at(DIGESTS)) else {
            return Vec::new();
        };
        let mut tagged = references(&members.entries[tags].1);
        for (scalar, image) in references(&members.entries[digests].1) {
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

fn add(reader: &mut Reader<'_, '_>, scalar: &Scalar<'_>, image: &ImageRef) {
    reader.add(
        text_start(scalar),
        Claim {
            written: &image.to_string(),
            sure: true,
            in_container: true,
        },
    );
}

/// The references of a list of texts.
fn references<'d>(node: &'d Node<'d>) -> Vec<(&'d Scalar<'d>, ImageRef)> {
    let Node::Sequence(items, _) = node else {
        return Vec::new();
    };
    let one = |item: &'d Node<'d>| {
        let scalar = item.scalar()?;
        Some((scalar, scalar.text()?.parse().ok()?))
    };
    items.iter().filter_map(one).collect()
}
