//! The settings of a scan.

use super::index::ReferenceIndex;
use super::options::Options;
use crate::model::Limits;

/// The settings of a scan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings<'i> {
    pub(crate) index: &'i ReferenceIndex,
    pub(crate) options: Options,
    /// Whether references that are not in the index are reported too.
    pub(crate) report_unknown: bool,
    pub(crate) limits: Limits,
}

impl Settings<'_> {
    /// Whether `text` may contain something to report. If not, it is not read any further.
    pub(crate) fn may_report(&self, text: &str) -> bool {
        self.report_unknown || self.index.may_be_in(text)
    }
}
