//! The signers that a site accepts for bundles.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The signers that may sign bundles.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SiteSigners {
    /// A file of allowed signers, one of which must sign; relative to the site file.
    File(PathBuf),
    /// A file of allowed signers, and how many of them must sign.
    AtLeast(SignersRule),
}

/// The signers that may sign bundles, and how many of them must sign.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SignersRule {
    /// File of allowed signers (OpenSSH format); relative to the site file.
    pub file: PathBuf,
    /// The number of different signers of the file that a bundle needs.
    pub at_least: NonZeroUsize,
}

impl SiteSigners {
    /// Returns the file of allowed signers, and how many of them must sign.
    pub fn rule(&self) -> (&Path, usize) {
        match self {
            SiteSigners::File(file) => (file, 1),
            SiteSigners::AtLeast(rule) => (&rule.file, rule.at_least.get()),
        }
    }
}
