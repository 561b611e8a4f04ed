//! What damage means: which items it takes, and what mends it.

use super::names::ItemName;
use std::fmt;

/// What damage means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loss {
    /// The items that need what is lost, where that can be told.
    pub items: Option<Vec<ItemName>>,
    /// Whether all other items can be read.
    pub has_rest: bool,
    /// What to do, with the command to type.
    pub mend: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.items.as_deref() {
            Some([]) => f.write_str("no item needs what is lost there")?,
            Some(items) => {
                f.write_str("affected:")?;
                items.iter().try_for_each(|item| write!(f, "\n  {} {}", item.kind, item.name))?;
                if self.has_rest {
                    f.write_str("\nall others are whole: push and serve take them with --allow-partial")?;
                }
            }
            None => f.write_str(
                "affected: not known, as the lock or the contents index cannot be read without what is lost",
            )?,
        }
        if self.mend.is_empty() {
            Ok(())
        } else {
            write!(f, "\n{}", self.mend)
        }
    }
}
