//! The trait that each rule about the references of documents implements.

use super::candidate::ImageClaim;
use super::collector::ReferenceCollector;
use super::node_context::{Collects, MappingContext, NodeContext};
use super::scanner::ReferenceScanner;
use crate::inventory::Inventory;
use crate::scan_result::ScanResult;
use crate::yaml::YamlNode;

/// A rule about the references of documents: a shape in which they are written, a position at which
/// images are named, or values that are left alone. Each rule is one file in `rules/` and one row
/// of the table in that folder. The walk calls every method where it applies; a rule implements
/// those that it needs.
pub(crate) trait ReferenceRule: Sync {
    /// What is not collected in the document with this root.
    fn skips(&self, _root: &YamlNode<'_>) -> Collects {
        Collects::default()
    }

    /// Whether a mapping is a Secret.
    fn is_secret(&self, _members: &MappingContext<'_>) -> bool {
        false
    }

    /// The reason why nothing in a mapping may be changed, if there is one.
    fn keeps(&self, _members: &MappingContext<'_>) -> Option<&'static str> {
        None
    }

    /// Collects the known references whose meaning depends on several entries of a mapping: split
    /// references and prefixes. Returns the indexes of the entries that are references or parts of
    /// them, so that their values are not read again. `taken` are the indexes that earlier rules
    /// returned, sorted.
    fn references<'s>(
        &self,
        _collector: &mut ReferenceCollector<'_, 's>,
        _members: &MappingContext<'s>,
        _taken: &[usize],
    ) -> Vec<usize> {
        Vec::new()
    }

    /// Like `references`, for candidates: the images whose parts are several entries of a mapping,
    /// whether the lock contains them or not.
    fn candidates<'s>(
        &self,
        _collector: &mut ReferenceCollector<'_, 's>,
        _inventory: &Inventory<'_>,
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

    /// Sets in `child` the properties of an item of `list`, after the item `previous`.
    fn item<'s>(
        &self,
        _list: &NodeContext<'s>,
        _previous: Option<&'s YamlNode<'s>>,
        _child: &mut NodeContext<'s>,
    ) {
    }

    /// The candidate that the text of a scalar is.
    fn claim<'t>(
        &self,
        _text: &'t str,
        _around: &NodeContext<'_>,
        _inventory: &Inventory<'_>,
    ) -> Option<ImageClaim<'t>> {
        None
    }

    /// Decodes and scans `value`. `depth` is the number of texts in which the document is nested,
    /// and `encoded` says whether the document declares the value as encoded. `None` if this rule
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
