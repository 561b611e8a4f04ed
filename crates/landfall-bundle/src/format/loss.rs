//! The consequences of damage: the affected items, and how to repair the bundle.

use super::names::ItemName;
use std::fmt;

/// The consequences of damage for the items of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loss {
    /// The items that need the damaged or missing content; `None` if they cannot be determined.
    pub items: Option<Vec<ItemName>>,
    /// Whether all other items are readable.
    pub has_rest: bool,
    /// How to repair the bundle, with the command.
    pub repair: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.items.as_deref() {
            Some([]) => f.write_str("no item needs the damaged or missing content")?,
            Some(items) => {
                f.write_str("affected:")?;
                items
                    .iter()
                    .try_for_each(|item| write!(f, "\n  {} {}", item.kind, item.name))?;
                if self.has_rest {
                    f.write_str(
                        "\nall other items are complete: push and serve accept them with \
                         --allow-partial",
                    )?;
                }
            }
            None => f.write_str(
                "affected: unknown, since the lock or the contents index cannot be read",
            )?,
        }
        if self.repair.is_empty() {
            Ok(())
        } else {
            write!(f, "\n{}", self.repair)
        }
    }
}
