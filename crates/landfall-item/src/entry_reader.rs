//! The context in which the entries of one manifest are read.

use landfall_model::document::{
    Diagnostic, ManifestVars, SourceSpan, SourceText, TemplateField, YamlNode, read_input,
};
use landfall_model::sign::OpenPgpKeys;
use landfall_model::{Digest, DigestError, MinimumAge, Platform, has_userinfo};
use std::path::Path;
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
    /// The default platforms of entries, sorted; empty means all.
    pub platforms: Vec<Platform>,
    /// Whether the referrers of images are carried by default.
    pub referrers: bool,
    /// The default minimum age of new versions.
    pub min_age: Option<MinimumAge>,
}

impl EntryContext<'_> {
    /// The position of `node` in the manifest.
    pub fn here(&self, node: &YamlNode<'_>) -> SourceSpan {
        SourceSpan::new(self.text, node.span())
    }

    /// The position of the item with this index in the list `key` of `node`.
    pub(super) fn item_at(&self, node: &YamlNode<'_>, key: &str, index: usize) -> SourceSpan {
        self.here(node.get(key).item(index))
    }

    /// The value `text` of `key` of `node`, as a field that may use variables.
    pub(super) fn field<'e>(
        &self,
        node: &YamlNode<'_>,
        key: &str,
        text: &'e str,
    ) -> TemplateField<'e> {
        TemplateField::new(text, self.here(node.get(key)))
    }

    /// The items `texts` of the list `key` of `node`, as fields that may use variables.
    pub(super) fn list_fields<'e>(
        &self,
        node: &YamlNode<'_>,
        key: &str,
        texts: &'e [String],
    ) -> Vec<TemplateField<'e>> {
        texts
            .iter()
            .enumerate()
            .map(|(index, text)| TemplateField::new(text, self.item_at(node, key, index)))
            .collect()
    }

    /// Reads a small file whose path is relative to the folder of the manifest.
    pub(super) fn read_file(&self, path: &str, at: &SourceSpan) -> ManifestResult<Vec<u8>> {
        let path = Path::new(&self.text.file)
            .parent()
            .unwrap_or(Path::new(""))
            .join(path);
        read_input(&path).map_err(|error| {
            at.fault(
                format!("cannot read {}: {error}", path.display()),
                Some("the path is relative to the folder of this manifest".into()),
            )
        })
    }

    /// Reads a file with OpenPGP public keys, whose path is relative to the folder of the manifest.
    pub(super) fn read_keys(&self, path: &str, at: &SourceSpan) -> ManifestResult<OpenPgpKeys> {
        OpenPgpKeys::parse(&self.read_file(path, at)?)
            .map_err(|error| at.fault(format!("{path}: {error}"), None))
    }
}

/// Parses a digest that a manifest contains.
pub(super) fn digest_of(text: &str, span: &SourceSpan) -> ManifestResult<Digest> {
    text.parse()
        .map_err(|error: DigestError| span.fault(error.to_string(), None))
}

/// The message and the help for a URL with a user name or a password.
pub(super) const USERINFO: (&str, &str) = (
    "a URL must not contain a user name or password: manifests and locks are not secret",
    "remove it from the URL, and configure credentials in the site file (`upstreams`)",
);

/// Rejects a URL with a user name or a password.
pub(super) fn check_no_userinfo(url: &Url, span: &SourceSpan) -> ManifestResult<()> {
    if !has_userinfo(url) {
        return Ok(());
    }
    let (message, help) = USERINFO;
    Err(span.fault(message, Some(help.into())))
}
