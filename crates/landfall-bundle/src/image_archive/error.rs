//! Why there is no archive.

use landfall_content::ContentError;
use std::collections::BTreeMap;
use std::fmt;
use std::io;

/// Why there is no archive.
#[derive(Debug, thiserror::Error)]
pub enum ImageArchiveError {
    /// Images that the format cannot hold, or that are not for the platforms asked for.
    #[error("{0}")]
    Unfit(Unfit),
    /// A part of an image cannot be read.
    #[error(transparent)]
    Content(ContentError),
    /// The archive cannot be written.
    #[error("{0}")]
    Write(io::Error),
}

/// Images that do not fit, by what is in the way: the sentence that holds for all of them.
#[derive(Debug, Default)]
pub struct Unfit(BTreeMap<&'static str, Vec<String>>);

impl Unfit {
    /// Adds an image: what is in its way, and what it has.
    pub(super) fn add(&mut self, why: &'static str, name: &str, what: &str) {
        self.0
            .entry(why)
            .or_default()
            .push(format!("{name}: {what}"));
    }

    /// All of them as an error, if there are any.
    pub(super) fn refuse(self) -> Result<(), ImageArchiveError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(ImageArchiveError::Unfit(self))
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (why, images)) in self.0.iter().enumerate() {
            write!(f, "{}{why}:", if at == 0 { "" } else { "\n" })?;
            images
                .iter()
                .try_for_each(|image| write!(f, "\n  {image}"))?;
        }
        Ok(())
    }
}
