//! What a scan is asked and what it returns: its settings, the syntax of a text, and the references
//! in it.

use crate::index::ReferenceIndex;
use crate::inputs::is_document;
use crate::inventory::Inventory;
use crate::occurrence::{self, Occurrence, SpanEdit};
use crate::text::ShellVariables;
use landfall_model::Limits;
use landfall_model::document::LineIndex;
use serde::Serialize;
use std::ops::Range;
use std::path::Path;

/// The way in which a text was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadAs {
    /// As YAML, which includes JSON.
    Yaml,
    /// Word by word, as text.
    Text,
    /// Not at all, because it contains no word of the lock.
    Nothing,
}

/// The findings of a scan, in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanResult {
    /// The references that were found.
    pub found: Vec<Occurrence>,
    /// The way in which the text was read.
    pub read_as: ReadAs,
    /// The byte ranges of values in Secrets, which must not be printed.
    pub secrets: Vec<Range<usize>>,
}

impl ScanResult {
    /// The result for a text that was not read.
    pub fn nothing() -> ScanResult {
        ScanResult {
            found: Vec::new(),
            read_as: ReadAs::Nothing,
            secrets: Vec::new(),
        }
    }

    /// The edits of all references, in the order of the text.
    pub fn edits(&self) -> Vec<&SpanEdit> {
        sorted_edits(&self.found)
    }

    /// Sorts the occurrences by offset, and sets their lines and columns in `text`.
    pub fn with_lines(mut self, text: &str) -> ScanResult {
        self.found.sort_by_key(|occurrence| occurrence.at);
        if !self.found.is_empty() {
            let lines = LineIndex::new(text);
            for occurrence in &mut self.found {
                (occurrence.line, occurrence.column) = lines.line_column(occurrence.at);
            }
        }
        self
    }

    /// Truncates references in Secrets at the first template call, because a literal in the call
    /// may be a password.
    pub fn without_secret_literals(mut self) -> ScanResult {
        self.secrets.sort_by_key(|secret| secret.start);
        let mut secrets = self.secrets.iter().peekable();
        let mut end = 0;
        for occurrence in &mut self.found {
            while let Some(secret) = secrets.next_if(|secret| secret.start <= occurrence.at) {
                end = end.max(secret.end);
            }
            if occurrence.at < end
                && let Some(call) = occurrence.written.find("{{")
            {
                occurrence.written.truncate(call + 2);
                occurrence.written.push('…');
            }
        }
        self
    }

    /// Applies all edits to `text`.
    pub fn apply(&self, text: &str) -> String {
        occurrence::apply(&self.edits(), text, 0..text.len())
    }
}

/// The edits of all occurrences, in the order of the text.
pub(crate) fn sorted_edits(found: &[Occurrence]) -> Vec<&SpanEdit> {
    let mut edits: Vec<_> = found
        .iter()
        .flat_map(|occurrence| &occurrence.edits)
        .collect();
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    edits
}

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

// The options of a rewrite.

/// The changes that a rewrite makes in addition to the names of known references.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RewriteOptions {
    /// Rewrite references in comments too.
    pub comments: bool,
    /// Add the locked digest to references that have only a tag.
    pub pin: bool,
}

/// The way in which a text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextSyntax {
    /// As YAML if it is YAML or JSON with a mapping or list in it, otherwise word by word.
    Document,
    /// Word by word: scripts, templates, TOML, INI, Dockerfiles.
    Text,
}

/// Endings of files that are not documents, although some of them parse as YAML.
const TEXTS: [&str; 20] = [
    "sh",
    "bash",
    "zsh",
    "toml",
    "ini",
    "cfg",
    "conf",
    "env",
    "tpl",
    "gotmpl",
    "tmpl",
    "service",
    "container",
    "properties",
    "txt",
    "mk",
    "just",
    "ps1",
    "md",
    "dockerfile",
];

/// Beginnings of the names of such files without an ending.
const TEXT_NAMES: [&str; 6] = [
    "dockerfile",
    "containerfile",
    "kubefile",
    "makefile",
    "justfile",
    ".env",
];

/// Endings of templates. Before one of them, a name may have the ending of a document.
const TEMPLATES: [&str; 3] = [".gotmpl", ".tmpl", ".tpl"];

impl TextSyntax {
    /// The syntax of the file at `path`, by its name. A template of a document, such as
    /// `values.yaml.gotmpl`, is a document if it can be read as one.
    pub fn of(path: &Path) -> TextSyntax {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_ascii_lowercase();
        let mut templates = TEMPLATES.iter();
        let result = templates.find_map(|ending| name.strip_suffix(ending));
        if result.is_some_and(|result| is_document(Path::new(result))) {
            return TextSyntax::Document;
        }
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        let text =
            TEXTS.contains(&ending) || TEXT_NAMES.iter().any(|start| name.starts_with(start));
        if text {
            TextSyntax::Text
        } else {
            TextSyntax::Document
        }
    }
}
