//! The trait that each shape of reference implements. Each shape is one file in `shapes/` and one
//! row of the table in that folder.

use super::collector::OccurrenceCollector;
use super::node_context::{MappingContext, NodeContext};
use crate::scan_result::ScanResult;
use crate::scanner::ReferenceScanner;
use crate::yaml::YamlNode;

/// A shape of reference in a document, or a rule about the values of a document. The walk calls
/// every method where it applies; a shape implements those that it needs.
pub(crate) trait ReferenceShape: Sync {
    /// Whether the document with this root is skipped.
    fn skips(&self, _root: &YamlNode<'_>) -> bool {
        false
    }

    /// Whether a mapping is a Secret.
    fn is_secret(&self, _members: &MappingContext<'_>) -> bool {
        false
    }

    /// The reason why nothing in a mapping may be changed, if there is one.
    fn keeps(&self, _members: &MappingContext<'_>) -> Option<&'static str> {
        None
    }

    /// Collects the references whose meaning depends on several entries of a mapping: split
    /// references and prefixes. Returns the indexes of the entries that are references or parts of
    /// them, so that their values are not read again. `taken` are the indexes that earlier shapes
    /// returned, sorted.
    fn references<'s>(
        &self,
        _collector: &mut OccurrenceCollector<'_, 's>,
        _members: &MappingContext<'s>,
        _taken: &[usize],
    ) -> Vec<usize> {
        Vec::new()
    }

    /// Sets properties in `child`, the context of `value`. The key of `value` in `members` is
    /// `child.key`.
    fn entry<'s>(
        &self,
        _members: &MappingContext<'s>,
        _value: &'s YamlNode<'s>,
        _child: &mut NodeContext<'s>,
    ) {
    }

    /// Sets in `child` the properties of the items of a list.
    fn items<'s>(&self, _list: &NodeContext<'s>, _child: &mut NodeContext<'s>) {}

    /// Decodes and scans `value`. `depth` is the number of texts in which the document is nested,
    /// and `encoded` says whether the document declares the value as encoded. `None` if this shape
    /// cannot decode it.
    fn decode(
        &self,
        _scanner: &ReferenceScanner<'_>,
        _value: &str,
        _encoded: bool,
        _depth: usize,
    ) -> Option<ScanResult> {
        None
    }
}
