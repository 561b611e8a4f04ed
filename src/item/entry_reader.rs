//! The context in which the entries of one manifest are read.

use crate::document::{Diagnostic, Node, SourceSpan, SourceText, Vars};
use crate::model::{Digest, DigestError, Platform};
use std::rc::Rc;

/// A value of a manifest, or what is wrong with it and where.
pub(crate) type Checked<T> = Result<T, Box<Diagnostic>>;

/// The context in which the entries of one manifest are read: its text, its variables and its defaults.
#[derive(Debug)]
pub struct EntryReader<'a> {
    /// The manifest.
    pub text: &'a Rc<SourceText>,
    /// Its variables.
    pub vars: Vars,
    /// The platforms of its images, sorted; empty means all.
    pub platforms: Vec<Platform>,
    /// Whether the referrers of its images are carried.
    pub referrers: bool,
}

impl EntryReader<'_> {
    /// The place of `node` in the manifest.
    pub fn here(&self, node: &Node) -> SourceSpan {
        SourceSpan::new(self.text, node.span())
    }
}

/// `text` as a digest.
pub(super) fn digest_of(text: &str, span: &SourceSpan) -> Checked<Digest> {
    text.parse().map_err(|error: DigestError| span.fault(error.to_string(), None))
}
