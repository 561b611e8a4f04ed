//! The table of the positions at which YAML and JSON documents name images, whether the lock
//! contains them or not. Each position is one row; its code is in a file of this folder.

mod candidate_collector;
mod charts;
mod containers;
mod flags;
mod full_names;
mod gitops;
mod image_claim;
mod image_keys;
mod image_position;
mod kustomize;
mod node_images;
mod node_position;
mod pod_status;
mod split;
mod suffixed;
mod variables;
mod walker;

use super::candidate::ImageCandidate;
use super::inventory::Inventory;
use crate::yaml::YamlDocument;
pub(super) use candidate_collector::start_of;
use image_position::ImagePosition;

/// Every position. If several claim an entry of a mapping or a value, the first one gets it.
const POSITIONS: &[&dyn ImagePosition] = &[
    &pod_status::PodStatusPosition,
    &node_images::NodeImagePosition,
    &kustomize::KustomizePosition,
    &charts::ChartPosition,
    &gitops::GitopsPosition,
    &suffixed::SuffixedPosition,
    &split::SplitPosition,
    &containers::ContainerPosition,
    &variables::VariablePosition,
    &flags::FlagValuePosition,
    &image_keys::ImageKeyPosition,
    &flags::ImageFlagPosition,
    &full_names::FullNamePosition,
];

/// Finds every value of `document`, a part of `source`, that names an image, certainly or possibly.
/// `depth` is the number of further levels of texts within texts to read.
pub(super) fn candidates(
    document: &YamlDocument<'_>,
    source: &str,
    inventory: &Inventory<'_>,
    depth: usize,
) -> Vec<ImageCandidate> {
    walker::candidates(POSITIONS, document, source, inventory, depth)
}
