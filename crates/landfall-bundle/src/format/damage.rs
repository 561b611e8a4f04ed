//! Damage in a bundle.

use super::names::ItemName;
use std::{fmt, io};

/// Damage at one offset of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Damage {
    /// The name of the entry, or of another part of the file.
    pub entry: String,
    /// The offset in the bundle in bytes, counted over all its volumes.
    pub offset: u64,
    /// The name of the volume with this offset, if the bundle is split.
    pub volume: Option<String>,
    /// What is wrong at this offset.
    pub why: String,
    /// Whether the bytes could not be read, so that their content is unknown.
    pub is_unread: bool,
}

impl Damage {
    pub fn new(entry: impl Into<String>, offset: u64, why: impl Into<String>) -> Damage {
        Damage {
            entry: entry.into(),
            offset,
            volume: None,
            why: why.into(),
            is_unread: false,
        }
    }

    pub fn unread(entry: impl Into<String>, offset: u64, error: &io::Error) -> Damage {
        Damage {
            is_unread: true,
            ..Damage::new(entry, offset, format!("cannot be read: {error}"))
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.entry, self.offset)?;
        // the offset counts over all volumes, so the user needs the name of the right file
        if let Some(volume) = &self.volume {
            write!(f, " (in {volume})")?;
        }
        write!(f, ": {}", self.why)
    }
}

impl std::error::Error for Damage {}

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
