//! Counts with their noun.

use std::fmt::Display;

/// `1 blob`, `2 blobs`.
pub(crate) fn count_of(count: usize, what: impl Display) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
