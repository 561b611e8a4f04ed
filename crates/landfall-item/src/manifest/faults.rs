//! Collects the errors in manifests, so that all are reported together.

use landfall_model::document::Diagnostic;
use std::fmt;
use std::path::Path;

/// How many errors are kept. The number is limited because each error contains the text of its
/// file.
const MAX_FAULTS: usize = 20;

/// The errors in manifests, in the order of the files.
#[derive(Debug, Default)]
pub struct ManifestFaults {
    first: Vec<Diagnostic>,
    /// The number of errors that were not kept.
    more: usize,
}

impl ManifestFaults {
    pub(super) fn push(&mut self, fault: Diagnostic) {
        if self.first.len() < MAX_FAULTS {
            self.first.push(fault);
        } else {
            self.more += 1;
        }
    }

    /// The value, or `None` after recording the error.
    pub(super) fn take<T>(&mut self, value: Result<T, Box<Diagnostic>>) -> Option<T> {
        value.map_err(|fault| self.push(*fault)).ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// The file of the first error.
    pub fn first_file(&self) -> Option<&Path> {
        self.first.first().map(|fault| Path::new(&fault.file))
    }
}

impl fmt::Display for ManifestFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first: Vec<String> = self.first.iter().map(ToString::to_string).collect();
        f.write_str(&first.join("\n\n"))?;
        match self.more {
            0 => Ok(()),
            1 => f.write_str("\n\nand 1 more error"),
            more => write!(f, "\n\nand {more} more errors"),
        }
    }
}

impl std::error::Error for ManifestFaults {}
