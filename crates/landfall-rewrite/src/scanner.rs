//! The scanner decides how a text is read, and how deeply texts within texts are read.

use super::role::ReferenceRole;
use super::scan_result::{ReadAs, ScanResult};
use super::settings::ScanSettings;
use super::syntax::TextSyntax;
use super::text::{self, TextLines};

/// A function that reads a document nested in the given number of texts. It returns `None` if the
/// text is not a document.
pub(crate) type ReadDocument = fn(&ReferenceScanner<'_>, &str, usize) -> Option<ScanResult>;

/// Scans texts, and the texts within their values.
#[derive(Clone, Copy)]
pub(crate) struct ReferenceScanner<'i> {
    pub settings: ScanSettings<'i>,
    /// Reads documents. A function pointer, because `walk` imports the scanner and calls it again
    /// for texts within values.
    pub read_document: ReadDocument,
}

impl ReferenceScanner<'_> {
    /// Scans `text`, which is nested in `depth` other texts. With the edits applied, the text
    /// still has the same meaning, except for the changed references.
    pub(crate) fn scan(&self, text: &str, syntax: TextSyntax, depth: usize) -> ScanResult {
        if !self.settings.may_report(text) {
            return ScanResult::nothing();
        }
        // each level of texts within texts is parsed again, so deeper texts are read word by word
        if syntax == TextSyntax::Document
            && depth < self.settings.limits.embedded_depth
            && let Some(result) = (self.read_document)(self, text, depth)
        {
            return result;
        }
        let secrets = text::secrets(text);
        ScanResult {
            found: text::scan(&self.settings, text, TextLines::Many, ReferenceRole::Text),
            read_as: ReadAs::Text,
            secrets,
        }
    }

    /// Scans the value of a scalar, which is nested in `depth` texts: as a document if it is a
    /// block scalar (`block`) or looks like a document, else word by word. `role` is that of the
    /// whole value.
    pub(crate) fn scan_value(
        &self,
        value: &str,
        block: bool,
        role: ReferenceRole,
        depth: usize,
    ) -> ScanResult {
        let trimmed = value.trim();
        // `{{ call }}` is a template, not JSON
        let flow = trimmed.starts_with(['{', '[']) && !trimmed.starts_with("{{");
        if block || flow || trimmed.contains('\n') {
            return self.scan(value, TextSyntax::Document, depth);
        }
        // most values are prose, which need not be split into words
        if !self.settings.may_report(value) {
            return ScanResult::nothing();
        }
        let found = text::scan(&self.settings, value, TextLines::One, role);
        ScanResult {
            found,
            read_as: ReadAs::Text,
            secrets: Vec::new(),
        }
    }
}
