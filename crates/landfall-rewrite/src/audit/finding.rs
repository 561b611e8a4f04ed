//! Findings of an audit: what a text names, its position, and whether the lock contains it.

use crate::inventory::{Inventory, LockCoverage};
use crate::walk::ImageCandidate;
use landfall_model::document::LineIndex;
use landfall_model::{ImageRef, has_host, redact_reference};
use serde::Serialize;

/// An image, chart, URL, package or git repository that a text names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditFinding {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The keys that lead to the value, `[n]` for list items. Empty if the text is not a document.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "serialize_path"
    )]
    pub path: Vec<String>,
    /// The package manager, if the finding is a package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manager: Option<&'static str>,
    /// The git repository, if the finding is one.
    #[serde(rename = "git", skip_serializing_if = "Option::is_none")]
    pub repository: Option<NamedRepository>,
    /// The reference or URL as written. The parts of a split reference are joined.
    pub reference: String,
    /// Whether the lock contains it.
    #[serde(flatten)]
    pub coverage: LockCoverage,
}

/// A git repository that a document uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedRepository {
    /// The http or https URL.
    pub url: String,
    /// The branch, tag, commit or range of versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// An [`AuditFinding`] and its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileFinding {
    /// The path of the file; in an archive, the path of the archive and the path inside.
    pub file: String,
    /// The finding in this file.
    #[serde(flatten)]
    pub finding: AuditFinding,
}

impl FileFinding {
    /// Formats one line of a report: position, `word`, reference and reason.
    pub fn line(&self, word: &str) -> String {
        let AuditFinding {
            line,
            column,
            path,
            manager,
            reference,
            coverage,
            ..
        } = &self.finding;
        let why = match coverage {
            LockCoverage::Missing { why, .. }
            | LockCoverage::Ambiguous { why, .. }
            | LockCoverage::Undecided { why } => why,
            LockCoverage::Held { item } => item,
        };
        let path = if path.is_empty() {
            String::new()
        } else {
            format!("{}: ", dotted(path))
        };
        let manager = manager.map(|by| format!("{by} ")).unwrap_or_default();
        format!(
            "{}:{line}:{column}: {word} {path}{manager}{reference}: {why}",
            self.file
        )
    }
}

/// Formats a path of keys as `helm --set` reads it.
pub fn dotted(path: &[String]) -> String {
    path.iter()
        .enumerate()
        .fold(String::new(), |out, (at, key)| {
            let item = key.starts_with('[') && key.ends_with(']');
            let dot = if at == 0 || item { "" } else { "." };
            out + dot + &key.replace('.', "\\.")
        })
}

fn serialize_path<S: serde::Serializer>(path: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&dotted(path))
}

impl ImageCandidate {
    /// Looks the candidate up in the lock.
    pub(super) fn decide(self, inventory: &Inventory<'_>, lines: &LineIndex<'_>) -> AuditFinding {
        let coverage = match (self.why_not, self.written.parse::<ImageRef>()) {
            (Some(why), _) => LockCoverage::Undecided { why },
            (None, Err(error)) => LockCoverage::Undecided {
                why: error.to_string(),
            },
            (None, Ok(reference)) => match inventory.decide(&reference, self.in_container) {
                LockCoverage::Missing { .. } if !self.sure => LockCoverage::Undecided {
                    why: "it has neither a host nor a tag, so perhaps it is not an image".into(),
                },
                LockCoverage::Missing { why, .. } if self.is_chart => {
                    let why = format!("{why}; it is a chart, so add it to `charts`");
                    LockCoverage::Missing {
                        name: None,
                        url: None,
                        why,
                    }
                }
                // without a tag, a container pulls `latest`, and a chart is pulled in its newest
                // version
                coverage if self.in_container || self.is_chart => coverage,
                coverage => unless_ambiguous(coverage, &self.written, &reference),
            },
        };
        let (line, column) = lines.line_column(self.at);
        AuditFinding {
            line,
            column,
            path: self.path,
            manager: None,
            repository: None,
            reference: redact_reference(&self.written),
            coverage,
        }
    }
}

/// Returns `coverage`, or `Ambiguous` if the lock has `reference`, but its text `written` has no
/// host, no tag and no digest.
pub(super) fn unless_ambiguous(
    coverage: LockCoverage,
    written: &str,
    reference: &ImageRef,
) -> LockCoverage {
    let item = match coverage {
        LockCoverage::Held { item } if !reference.is_pinned() && !has_host(written) => item,
        coverage => return coverage,
    };
    let why = format!(
        "the lock has {item}, but this reference names neither a host nor a tag: `landfall \
         rewrite` leaves it, and a pod would pull it from {}; write the host or the tag",
        reference.registry
    );
    LockCoverage::Ambiguous { item, why }
}
