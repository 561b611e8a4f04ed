//! Decides by the name of a file whether it is read as a document or word by word.

use std::path::Path;

/// The way in which a text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextSyntax {
    /// As YAML if it is YAML or JSON with a mapping or list in it, otherwise word by word.
    Document,
    /// Word by word: scripts, templates, TOML, INI, Dockerfiles.
    Text,
}

/// Endings of files that are not documents, although some of them parse as YAML.
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

impl TextSyntax {
    /// The syntax of the file at `path`, by its name.
    pub fn of(path: &Path) -> TextSyntax {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_ascii_lowercase();
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        let text = TEXTS.contains(&ending)
            || ["dockerfile", "containerfile", "makefile", ".env"]
                .iter()
                .any(|start| name.starts_with(start));
        if text {
            TextSyntax::Text
        } else {
            TextSyntax::Document
        }
    }
}
