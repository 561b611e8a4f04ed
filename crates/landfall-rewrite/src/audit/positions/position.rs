//! What a position does. Each is one file and one row of the table.

use super::claim::Claim;
use super::enclosing::{Enclosing, Members};
use super::reader::Reader;
use crate::audit::inventory::Inventory;
use crate::yaml::Node;

/// A position at which images are named. The walk calls every method at its place; a position
/// implements those that it needs.
pub(super) trait Position: Sync {
    /// Reads the images that are spread over several entries of a mapping. Returns the indexes of
    /// these entries: their values are not read again. `taken` are those of earlier positions.
    fn references<'d>(
        &self,
        _reader: &mut Reader<'d, '_>,
        _members: &Members<'d>,
        _taken: &[usize],
    ) -> Vec<usize> {
        Vec::new()
    }

    /// Says what is special about the value under a key: `below.key` in the mapping `members`.
    fn entry<'d>(&self, _members: &Members<'d>, _value: &'d Node<'d>, _below: &mut Enclosing<'d>) {}

    /// Says what is special about an item of the list under the key `list`, after the item
    /// `previous`.
    fn item<'d>(
        &self,
        _list: Option<&str>,
        _previous: Option<&'d Node<'d>>,
        _below: &mut Enclosing<'d>,
    ) {
    }

    /// The image that the text of a scalar names here.
    fn scalar<'t>(
        &self,
        _text: &'t str,
        _around: &Enclosing<'_>,
        _inventory: &Inventory<'_>,
    ) -> Option<Claim<'t>> {
        None
    }
}
