//! The trait of the positions. Each position is one row of the table.

use super::candidate_collector::CandidateCollector;
use super::image_claim::ImageClaim;
use super::node_position::{MappingContents, NodePosition};
use crate::audit::inventory::Inventory;
use crate::yaml::YamlNode;

/// A position at which images are named. The walk calls every method where it applies; a position
/// implements those that it needs.
pub(super) trait ImagePosition: Sync {
    /// Reads the images whose parts are several entries of a mapping. Returns the indexes of these
    /// entries, so that their values are not read again. `taken` are the indexes that earlier
    /// positions returned, sorted.
    fn references<'d>(
        &self,
        _reader: &mut CandidateCollector<'d, '_>,
        _members: &MappingContents<'d>,
        _taken: &[usize],
    ) -> Vec<usize> {
        Vec::new()
    }

    /// Sets in `child` the properties of the value of the key `child.key` in `members`.
    fn entry<'d>(
        &self,
        _members: &MappingContents<'d>,
        _value: &'d YamlNode<'d>,
        _child: &mut NodePosition<'d>,
    ) {
    }

    /// Sets in `child` the properties of an item of the list under the key `list`, after the item
    /// `previous`.
    fn item<'d>(
        &self,
        _list: Option<&str>,
        _previous: Option<&'d YamlNode<'d>>,
        _child: &mut NodePosition<'d>,
    ) {
    }

    /// The image that the text of a scalar names.
    fn scalar<'t>(
        &self,
        _text: &'t str,
        _around: &NodePosition<'_>,
        _inventory: &Inventory<'_>,
    ) -> Option<ImageClaim<'t>> {
        None
    }
}
