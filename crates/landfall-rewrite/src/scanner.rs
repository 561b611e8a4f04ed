//! The scanner: which reader a text gets, and how deep texts within texts are read.

use super::role::Role;
use super::scan_result::{ReadAs, ScanResult};
use super::settings::Settings;
use super::syntax::Syntax;
use super::text::{self, Lines};

/// Reads a document that is nested in so many texts; `None` where the text is not one.
pub(crate) type ReadDocument = fn(&Scanner<'_>, &str, usize) -> Option<ScanResult>;

/// Scans texts, and the texts within their values.
#[derive(Clone, Copy)]
pub(crate) struct Scanner<'i> {
    pub settings: Settings<'i>,
    /// Reads documents. It calls the scanner again for texts within values.
    pub read_document: ReadDocument,
}

impl Scanner<'_> {
    /// Scans `text`, which is nested in `depth` other texts. With the edits applied, it reads as
    /// before except for them.
    pub(crate) fn scan(&self, text: &str, syntax: Syntax, depth: usize) -> ScanResult {
        if !self.settings.may_report(text) {
            return ScanResult::nothing();
        }
        if syntax == Syntax::Document
            && depth < self.settings.limits.embedded_depth
            && let Some(result) = (self.read_document)(self, text, depth)
        {
            return result;
        }
        let secrets = text::secrets(text);
        ScanResult {
            found: text::scan(&self.settings, text, Lines::Many, Role::Text),
            read_as: ReadAs::Text,
            secrets,
        }
    }

    /// Scans the value of a scalar, nested `depth` deep: as a document where it is a `block` or
    /// looks like one, else word by word. `role` is that of the value as a whole.
    pub(crate) fn scan_value(
        &self,
        value: &str,
        block: bool,
        role: Role,
        depth: usize,
    ) -> ScanResult {
        let trimmed = value.trim();
        // `{{ call }}` is no JSON
        let flow = trimmed.starts_with(['{', '[']) && !trimmed.starts_with("{{");
        if block || flow || trimmed.contains('\n') {
            return self.scan(value, Syntax::Document, depth);
        }
        // most are prose
        if !self.settings.may_report(value) {
            return ScanResult::nothing();
        }
        let found = text::scan(&self.settings, value, Lines::One, role);
        ScanResult {
            found,
            read_as: ReadAs::Text,
            secrets: Vec::new(),
        }
    }
}
