//! What a shape of reference does. Each shape is one file in `shapes/` and one row of the table
//! there.

use super::collector::Collector;
use super::surroundings::{Members, Surroundings};
use crate::scan_result::ScanResult;
use crate::scanner::Scanner;
use crate::yaml::Node;

/// A shape of reference in a document, or something that a document says about its values. The walk
/// calls every method at its place; a shape implements those that it needs.
pub(crate) trait Shape: Sync {
    /// Whether the document with this root is not read at all.
    fn skips(&self, _root: &Node<'_>) -> bool {
        false
    }

    /// Whether a mapping is a Secret.
    fn is_secret(&self, _members: &Members<'_>) -> bool {
        false
    }

    /// Why nothing in a mapping may be changed, if so.
    fn keeps(&self, _members: &Members<'_>) -> Option<&'static str> {
        None
    }

    /// Collects the references that are spread over several entries of a mapping. Returns the
    /// indexes of these entries: their values are not read again. `taken` are those of earlier
    /// shapes.
    fn references<'s>(
        &self,
        _collector: &mut Collector<'_, 's>,
        _members: &Members<'s>,
        _taken: &[usize],
    ) -> Vec<usize> {
        Vec::new()
    }

    /// Says what is special about the value under a key: `below.key` in the mapping `members`.
    fn entry<'s>(
        &self,
        _members: &Members<'s>,
        _value: &'s Node<'s>,
        _below: &mut Surroundings<'s>,
    ) {
    }

    /// Says what is special about the items of a list.
    fn items<'s>(&self, _list: &Surroundings<'s>, _below: &mut Surroundings<'s>) {}

    /// What is in `value`, which is nested in `depth` texts, where this shape can decode it.
    /// `encoded` says that the document declares it encoded.
    fn decode(
        &self,
        _scanner: &Scanner<'_>,
        _value: &str,
        _encoded: bool,
        _depth: usize,
    ) -> Option<ScanResult> {
        None
    }
}
