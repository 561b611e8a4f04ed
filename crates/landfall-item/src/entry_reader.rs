//! The context in which the entries of one manifest are read.

use landfall_model::document::{Diagnostic, ManifestVars, SourceSpan, SourceText, YamlNode};
use landfall_model::{Digest, DigestError, Platform, has_userinfo};
use std::rc::Rc;
use url::Url;

/// A value of a manifest, or an error with its position.
pub type ManifestResult<T> = Result<T, Box<Diagnostic>>;

/// The context in which the entries of one manifest are read: its text, its variables and its
/// defaults.
#[derive(Debug)]
pub struct EntryContext<'a> {
    /// The text of the manifest, for positions in messages.
    pub text: &'a Rc<SourceText>,
    /// The variables of the manifest.
    pub vars: ManifestVars,
    /// The platforms of its images, sorted; empty means all.
    pub platforms: Vec<Platform>,
    /// Whether the referrers of its images are carried.
    pub referrers: bool,
}

impl EntryContext<'_> {
    /// The position of `node` in the manifest.
    pub fn here(&self, node: &YamlNode<'_>) -> SourceSpan {
        SourceSpan::new(self.text, node.span())
    }
}

/// Parses a digest that a manifest contains.
pub(super) fn digest_of(text: &str, span: &SourceSpan) -> ManifestResult<Digest> {
    text.parse()
        .map_err(|error: DigestError| span.fault(error.to_string(), None))
}

/// Refuses a URL with a user name or a password: manifest and lock are not secret.
pub(super) fn without_account(url: &Url, span: &SourceSpan) -> ManifestResult<()> {
    if !has_userinfo(url) {
        return Ok(());
    }
    let help =
        "take it out of the URL, and name the source of credentials in the site file (`upstreams`)";
    let message =
        "a URL must not hold a user name or password: manifest and lock are for everybody";
    Err(span.fault(message, Some(help.into())))
}
