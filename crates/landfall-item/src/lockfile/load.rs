//! Reads, checks and writes locks.

use super::document::Lock;
use super::error::LockError;
use super::text;
use crate::LockedItem;
use landfall_model::document;
use landfall_model::document::read_text_input;
use landfall_model::{Algorithm, Digest, Hasher};
use std::path::Path;

impl Lock {
    /// Parses a lock. `file` is its name in messages.
    ///
    /// # Errors
    /// If the text is not a valid lock, or its version is not 1.
    pub fn parse(file: &str, text: &str) -> Result<Lock, LockError> {
        // a byte order mark would hide a truncated lock, or a key in the first line
        let text = text.trim_start_matches('\u{feff}');
        let lock: Lock = match text::read(text) {
            Some(lock) => lock,
            None if text::is_truncated(text) => {
                return Err(LockError::Truncated { path: file.into() });
            }
            // edited by hand or damaged: read the whole document, for messages with a position
            None => document::read(file, text)?,
        };
        if lock.version != 1 {
            return Err(LockError::Version {
                path: file.into(),
                found: lock.version,
            });
        }
        let implausible = lock.items().find_map(LockedItem::implausibility);
        let duplicate = lock.duplicate_name();
        // later stages find items by name, and would use the wrong one of two
        match implausible.or_else(|| duplicate.map(|name| format!("{name} is listed twice"))) {
            Some(why) => Err(LockError::Content {
                path: file.into(),
                why,
            }),
            None => Ok(lock),
        }
    }

    /// Reads the lock at `path`.
    ///
    /// # Errors
    /// As for [`Lock::parse`], and if the file cannot be read.
    pub fn load(path: &Path) -> Result<Lock, LockError> {
        Lock::load_with_text(path).map(|(lock, _)| lock)
    }

    /// Like [`Lock::load`], with the text of the file.
    ///
    /// # Errors
    /// As for [`Lock::load`].
    pub fn load_with_text(path: &Path) -> Result<(Lock, String), LockError> {
        let text = read_text_input(path).map_err(|source| LockError::Open {
            path: path.into(),
            source,
        })?;
        let lock = Lock::parse(&path.display().to_string(), &text)?;
        Ok((lock, text))
    }

    /// The lock as text. Equal locks give equal text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // writing to a String does not fail
        let _ = text::write(self, &mut text);
        text
    }

    /// SHA-256 of the lock's text. Approvals of a change refer to it.
    pub fn fingerprint(&self) -> Digest {
        // hashed as it is written, since the text of a large lock may have many megabytes
        let mut hasher = Hasher::new(Algorithm::Sha256);
        let _ = text::write(self, &mut hasher);
        hasher.finish()
    }
}
