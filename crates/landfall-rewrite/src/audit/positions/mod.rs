//! The table of positions: where images are named in YAML and JSON documents, whether a lock knows
//! them or not. Each position is one file and one row.

mod charts;
mod claim;
mod containers;
mod enclosing;
mod flags;
mod full_names;
mod image_keys;
mod kustomize;
mod node_images;
mod pod_status;
mod position;
mod reader;
mod split;
mod suffixed;
mod variables;
mod walker;

use super::candidate::Candidate;
use super::inventory::Inventory;
use crate::yaml::Document;
use position::Position;

/// Every position. Where several claim the entries of a mapping, or a value, the first one gets
/// them.
const POSITIONS: &[&dyn Position] = &[
    &pod_status::PodStatus,
    &node_images::NodeImages,
    &kustomize::Kustomize,
    &charts::Charts,
    &suffixed::SuffixedRepository,
    &split::Split,
    &containers::Containers,
    &variables::Variables,
    &flags::FlagValues,
    &image_keys::ImageKeys,
    &flags::ImageFlags,
    &full_names::FullNames,
];

/// Every value of `documents`, whose text is `source`, that names an image, or may, in the order of
/// the text. `depth` is how many more levels of texts within texts are read.
pub(super) fn candidates(
    documents: &[Document<'_>],
    source: &str,
    inventory: &Inventory<'_>,
    depth: usize,
) -> Vec<Candidate> {
    walker::candidates(POSITIONS, documents, source, inventory, depth)
}
