//! The location of a version in a manifest.

use super::load::ParsedManifest;
use crate::EntryPathStep;
use landfall_model::document::{SourceLocation, SourceSpan, YamlNode, anchored_scalar};
use serde_yaml::Value;
use std::ops::Range;

/// The location of a version in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VersionLocation {
    /// A variable's value, or the nth of its values.
    Var(String, Option<usize>),
    /// A scalar in the nth entry of a section, by the path from the entry.
    Entry(&'static str, usize, Vec<EntryPathStep>),
}

impl VersionLocation {
    /// The node at this location of a manifest.
    pub(super) fn node<'a>(&self, root: &'a YamlNode<'a>) -> &'a YamlNode<'a> {
        match self {
            VersionLocation::Var(name, index) => {
                let value = root.get("vars").get(name).get("value");
                index.map_or(value, |index| value.item(index))
            }
            VersionLocation::Entry(section, index, path) => {
                let entry = root.get(section).item(*index);
                path.iter().fold(entry, |node, step| match step {
                    EntryPathStep::Key(key) => node.get(key),
                    EntryPathStep::Index(at) => node.item(*at),
                })
            }
        }
    }

    /// The bytes of the scalar. For an alias, the bytes of the anchored scalar, because that text
    /// must be edited.
    pub(super) fn bytes(&self, body: &str, root: &YamlNode<'_>) -> Range<usize> {
        let span = self.node(root).span();
        match body.get(span.clone()) {
            Some(text) if text.starts_with('*') => anchored_scalar(body, &span).unwrap_or(span),
            _ => span,
        }
    }

    /// The line and column at which the [`bytes`](Self::bytes) begin.
    pub(super) fn position(&self, read: &ParsedManifest) -> SourceLocation {
        SourceSpan::new(&read.text, self.bytes(&read.text.text, &read.text.root)).location()
    }

    /// The scalar at this location of a parsed document.
    pub(super) fn read(&self, document: &Value) -> Option<String> {
        let value = match self {
            VersionLocation::Var(name, index) => {
                let value = document.get("vars")?.get(name.as_str())?.get("value")?;
                index.map_or(Some(value), |index| value.get(index))?
            }
            VersionLocation::Entry(section, index, path) => {
                let entry = document.get(*section)?.get(*index)?;
                path.iter().try_fold(entry, |value, step| match step {
                    EntryPathStep::Key(key) => value.get(*key),
                    EntryPathStep::Index(at) => value.get(*at),
                })?
            }
        };
        value.as_str().map(str::to_owned)
    }
}
