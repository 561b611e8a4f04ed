//! The settings of a scan.

use super::index::ReferenceIndex;
use super::inventory::Inventory;
use super::options::RewriteOptions;
use super::text::ShellVariables;
use landfall_model::Limits;
use std::path::Path;

/// The settings of a scan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanSettings<'i> {
    pub index: &'i ReferenceIndex,
    pub options: RewriteOptions,
    /// Whether references that the lock does not contain are reported too.
    pub report_unknown: bool,
    pub limits: Limits,
    /// The shell variables of the whole text.
    pub variables: &'i ShellVariables<'i>,
    /// The lock, if candidates are collected.
    pub inventory: Option<&'i Inventory<'i>>,
    /// The name of the file, if it decides what its documents are.
    pub file: Option<&'i Path>,
}

impl ScanSettings<'_> {
    /// Whether `text` may contain something to report. If not, it need not be read.
    pub(crate) fn may_report(&self, text: &str) -> bool {
        self.report_unknown || self.index.may_be_in(text)
    }
}
