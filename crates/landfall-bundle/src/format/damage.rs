//! Damage: a place in a bundle that is not as it must be.

use std::fmt;
use std::io;

/// A place in a bundle that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Which entry of the tar, or which other part of the file.
    pub entry: String,
    /// Where in the bundle, in bytes, counted over all its volumes.
    pub offset: u64,
    /// Name of the volume that has this byte, where the bundle is split.
    pub volume: Option<String>,
    /// What is wrong.
    pub why: String,
    /// Whether it could not be read, so that nobody knows what stands there.
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
        if let Some(volume) = &self.volume {
            write!(f, " (in {volume})")?;
        }
        write!(f, ": {}", self.why)
    }
}

impl std::error::Error for Damage {}
