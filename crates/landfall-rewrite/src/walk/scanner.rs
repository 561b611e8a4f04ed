//! The scanner decides how a text is read, and how deeply texts within texts are read.

use super::node_context::Collects;
use super::rule::ReferenceRule;
use super::walker::{self, DocumentScan};
use crate::role::ReferenceRole;
use crate::scan_result::{ReadAs, ScanResult};
use crate::settings::ScanSettings;
use crate::syntax::TextSyntax;
use crate::text::{self, TextLines};

const OCCURRENCES: Collects = Collects {
    occurrences: true,
    candidates: false,
};

/// Scans texts, and the texts within their values.
#[derive(Clone, Copy)]
pub(crate) struct ReferenceScanner<'i> {
    pub settings: ScanSettings<'i>,
    /// The rules, in their order.
    pub rules: &'static [&'static dyn ReferenceRule],
}

impl ReferenceScanner<'_> {
    /// Finds the occurrences in `text`, which is nested in `depth` other texts. With the edits
    /// applied, the text still has the same meaning, except for the changed references.
    pub(crate) fn scan(&self, text: &str, syntax: TextSyntax, depth: usize) -> ScanResult {
        match syntax {
            TextSyntax::Document => self.read(text, depth, OCCURRENCES).0,
            TextSyntax::Text if self.settings.may_report(text) => self.words(text),
            TextSyntax::Text => ScanResult::nothing(),
        }
    }

    /// Finds what `collects` says in `text`, which is nested in `depth` other texts: as documents,
    /// or else the occurrences word by word. The second value is `None` if the text is not YAML or
    /// was not read as YAML.
    pub(crate) fn read(
        &self,
        text: &str,
        depth: usize,
        collects: Collects,
    ) -> (ScanResult, Option<DocumentScan>) {
        let searched = collects.occurrences && self.settings.may_report(text);
        let collects = Collects {
            // each level of texts within texts is parsed again, so deeper texts are read word by
            // word
            occurrences: searched && depth < self.settings.limits.embedded_depth,
            ..collects
        };
        let mut documents = None;
        if collects.occurrences || collects.candidates {
            documents = walker::read(self, text, depth, collects);
        }
        let occurrences = documents
            .as_mut()
            .and_then(|documents| documents.occurrences.take());
        let result = match occurrences {
            Some(result) => result,
            None if searched => self.words(text),
            None => ScanResult::nothing(),
        };
        (result, documents)
    }

    /// Finds the occurrences in `text` word by word.
    fn words(&self, text: &str) -> ScanResult {
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
