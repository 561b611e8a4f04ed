//! Merges the fields of two requests for the same item.

use std::fmt::Display;

/// Two requests for one item that have different values of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldConflict {
    /// The name of the field in messages.
    pub field: &'static str,
    /// The value in the first request.
    pub first: String,
    /// The value in the second request.
    pub second: String,
}

impl FieldConflict {
    /// Refuses two values of `field` that differ.
    pub(super) fn check_equal<V: PartialEq>(
        field: &'static str,
        first: &V,
        second: &V,
        shown: impl Fn(&V) -> String,
    ) -> Result<(), FieldConflict> {
        if first == second {
            return Ok(());
        }
        Err(FieldConflict {
            field,
            first: shown(first),
            second: shown(second),
        })
    }
}

/// Sets `first` to `second` if only `second` has a value. Refuses two values that differ.
#[allow(
    clippy::ref_option,
    reason = "it is a field of what `first` belongs to"
)]
pub(super) fn merge_option<V: Clone + PartialEq + Display>(
    field: &'static str,
    first: &mut Option<V>,
    second: &Option<V>,
) -> Result<(), FieldConflict> {
    match (&*first, second) {
        (Some(a), Some(b)) => FieldConflict::check_equal(field, a, b, V::to_string),
        (None, Some(b)) => {
            *first = Some(b.clone());
            Ok(())
        }
        (_, None) => Ok(()),
    }
}
