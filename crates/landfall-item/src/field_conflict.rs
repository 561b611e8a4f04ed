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
    /// Rejects two values of `field` that differ. `describe` writes a value for messages.
    pub(super) fn check_equal<V: PartialEq>(
        field: &'static str,
        first: &V,
        second: &V,
        describe: impl Fn(&V) -> String,
    ) -> Result<(), FieldConflict> {
        if first == second {
            return Ok(());
        }
        Err(FieldConflict {
            field,
            first: describe(first),
            second: describe(second),
        })
    }
}

/// Sets `first` to `second` if only `second` has a value. Rejects two values that differ.
#[allow(
    clippy::ref_option,
    reason = "callers pass the same field of two requests"
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
