//! How a file is read, by its name: as a document or as words.

use std::path::Path;

/// How a text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// As YAML where it is YAML or JSON with a mapping or list in it; otherwise word by word.
    Document,
    /// Word by word: scripts, templates, TOML, INI, Dockerfiles.
    Text,
}

/// Endings of files that are not documents although some parse as YAML.
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

impl Syntax {
    /// The syntax of the file at `path`, by its name.
    pub fn of(path: &Path) -> Syntax {
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
        if text { Syntax::Text } else { Syntax::Document }
    }
}
