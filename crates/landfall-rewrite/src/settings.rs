//! The settings of a scan.

use super::index::ReferenceIndex;
use super::options::Options;
use landfall_model::Limits;

/// The settings of a scan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings<'i> {
    pub index: &'i ReferenceIndex,
    pub options: Options,
    /// Whether references that are not in the index are reported too.
    pub report_unknown: bool,
    pub limits: Limits,
}

impl Settings<'_> {
    /// Whether `text` may contain something to report. If not, it is not read any further.
    pub(crate) fn may_report(&self, text: &str) -> bool {
        self.report_unknown || self.index.may_be_in(text)
    }
}
