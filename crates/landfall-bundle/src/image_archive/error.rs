//! Errors of an image archive.

use landfall_content::ContentError;
use std::collections::BTreeMap;
use std::fmt;
use std::io;

/// Errors of an image archive.
#[derive(Debug, thiserror::Error)]
pub enum ImageArchiveError {
    /// Images that the format does not support, or that do not have the requested platforms.
    #[error("{0}")]
    Unfit(UnfitImages),
    /// The content of an image cannot be read.
    #[error(transparent)]
    Content(ContentError),
    /// The archive cannot be written.
    #[error("{0}")]
    Write(io::Error),
}

/// The images that cannot be archived, grouped by the reason.
#[derive(Debug, Default)]
pub struct UnfitImages(BTreeMap<&'static str, Vec<String>>);

impl UnfitImages {
    /// Adds an image with the reason and a detail about the image.
    pub(super) fn add(&mut self, why: &'static str, name: &str, what: &str) {
        self.0
            .entry(why)
            .or_default()
            .push(format!("{name}: {what}"));
    }

    /// Fails if any image was added.
    pub(super) fn refuse(self) -> Result<(), ImageArchiveError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(ImageArchiveError::Unfit(self))
        }
    }
}

impl fmt::Display for UnfitImages {
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
