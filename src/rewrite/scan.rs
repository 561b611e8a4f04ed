//! The one scan: which engine reads a text, and how far into texts within texts.

use super::findings::{Findings, ReadAs};
use super::known::Known;
use super::{Options, text, walk};
use crate::model::Limits;
use std::path::Path;

/// How a text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// As YAML where it is YAML or JSON with a mapping or list in it; else word by word.
    Document,
    /// Word by word: scripts, templates, TOML, INI, Dockerfiles.
    Text,
}

/// Names of files that are no documents although they may read as such.
const TEXTS: [&str; 18] = [
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
    "properties",
    "txt",
    "mk",
    "ps1",
    "md",
    "dockerfile",
];

impl Kind {
    /// By the name of a file.
    pub fn of(path: &Path) -> Kind {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        let text = TEXTS.contains(&ending)
            || ["dockerfile", "containerfile", "makefile", ".env"]
                .iter()
                .any(|start| name.starts_with(start));
        if text { Kind::Text } else { Kind::Document }
    }
}

/// What a scan goes by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Engine<'k> {
    pub(super) known: &'k Known,
    pub(super) options: Options,
    /// Whether references that the lock has nothing to do with are told too.
    pub(super) all: bool,
    pub(super) limits: Limits,
}

/// Every reference in `text`, known or not: what `rewrite` changes and leaves, and beside that whatever
/// stands where an image does.
pub fn scan(text: &str, kind: Kind, known: &Known) -> Findings {
    let engine = Engine { known, options: Options::default(), all: true, limits: Limits::default() };
    engine.scan(text, kind, 0).placed(text)
}

impl Engine<'_> {
    /// What is in `text`, which stands in `depth` other texts. The result is proven: with the changes made, it
    /// reads as before but for these.
    pub(super) fn scan(&self, text: &str, kind: Kind, depth: usize) -> Findings {
        if !self.may_stand_in(text) {
            return Findings::nothing();
        }
        if kind == Kind::Document
            && depth < self.limits.embedded_depth
            && let Some(findings) = walk::walk(self, text, depth)
        {
            return findings;
        }
        let secrets = text::secrets(text);
        Findings { found: text::scan(self, text, Lines::Many), read_as: ReadAs::Text, secrets }
    }

    /// Whether `text` may have something in it that is to be told. What says no, is not read any further.
    pub(super) fn may_stand_in(&self, text: &str) -> bool {
        self.all || self.known.may_stand_in(text)
    }

    /// What is in the value of a scalar, `depth` texts deep: a document, where it is a `block` or looks like one, or
    /// words.
    pub(super) fn embedded(&self, value: &str, block: bool, depth: usize) -> Findings {
        if block || value.trim().contains('\n') || value.trim_start().starts_with(['{', '[']) {
            return self.scan(value, Kind::Document, depth);
        }
        // most are prose
        if !self.may_stand_in(value) {
            return Findings::nothing();
        }
        Findings { found: text::scan(self, value, Lines::One), read_as: ReadAs::Text, secrets: Vec::new() }
    }
}

/// Whether a text has lines, in which comments may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// A text of its own.
    Many,
    /// A word or sentence.
    One,
}
