//! The lock that a verb writes, and what stands in its place before.

use super::{Context, Exit, Failure, input_file};
use landfall_content::{create, replace};
use landfall_item::lockfile::Lock;
use landfall_model::Digest;
use std::path::Path;

/// What stands at the path of the lock before anything is resolved.
pub(crate) struct Old {
    /// The lock.
    pub(crate) lock: Lock,
    /// The digest of the file: what somebody else writes meanwhile is not overwritten.
    file: Digest,
}

impl Old {
    /// Reads it; `None` where there is none.
    ///
    /// # Errors
    /// When it is no lock.
    pub(crate) fn load(path: &Path) -> Result<Option<Old>, Failure> {
        if !path.exists() {
            return Ok(None);
        }
        let file = Digest::sha256(&std::fs::read(path).unwrap_or_default());
        Ok(Some(Old {
            lock: input_file::lock(path)?,
            file,
        }))
    }

    /// Writes `lock` in the place of the old one. Returns whether it differs.
    ///
    /// # Errors
    /// When it cannot be written, or somebody else wrote there meanwhile.
    pub(crate) fn replace(
        old: Option<&Old>,
        path: &Path,
        lock: &Lock,
        context: &Context,
    ) -> Result<bool, Failure> {
        let text = lock.to_text();
        let written = match old {
            Some(old) if old.lock.to_text() == text => return Ok(false),
            Some(old) => replace(path, |now| Digest::sha256(now) == old.file, text.as_bytes()),
            None => create(path, text.as_bytes()).map(|()| Vec::new()),
        };
        let lost = written.map_err(|error| {
            Failure::new(
                Exit::Failed,
                format!("cannot write {}: {error}", path.display()),
            )
        })?;
        lost.iter().for_each(|lost| {
            context
                .progress
                .note(&format!("{}: lost {lost}", path.display()))
        });
        Ok(true)
    }
}
