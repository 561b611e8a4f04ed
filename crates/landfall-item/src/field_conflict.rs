//! Joins two wishes of one name.

use std::fmt::Display;

/// Two different values of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldConflict {
    /// The field, as a message names it.
    pub field: &'static str,
    /// The value of the first wish.
    pub first: String,
    /// The value of the second one.
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

/// Takes from `second` what `first` lacks.
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
