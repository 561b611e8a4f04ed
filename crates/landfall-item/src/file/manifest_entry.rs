//! A file in a manifest, and how it expands to requests.

use super::resolvable::{Checksum, FileRequest};
use crate::ManifestEntry;
use crate::item_kind::{EntryContext, EntryFields, ManifestResult, USERINFO, digest_of};
use landfall_model::document::{SourceSpan, YamlNode, fill_own_url};
use landfall_model::sign::FileKey;
use landfall_model::{has_userinfo, is_path_below};
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

/// A plain file in a manifest.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// An http or https URL.
    pub url: String,
    /// `sha256:<hex>`, `sha512:<hex>`, or the URL of a checksum file. `${url}` is replaced by
    /// `url`.
    #[serde(default)]
    pub checksum: Option<String>,
    /// Other URLs at which clients request the file.
    #[serde(default)]
    pub also: Vec<String>,
    /// The permission bits that an export sets, in octal, as in "0755".
    #[serde(default)]
    pub mode: Option<String>,
    /// URLs of signatures and certificates that are carried with the file. Each belongs to the file
    /// or to its checksum file. `${url}` is replaced by `url`.
    #[serde(default)]
    pub signatures: Vec<String>,
    /// A file with a public key of minisign, OpenSSH or OpenPGP, or with allowed signers of
    /// OpenSSH. The key must verify one of the signatures.
    #[serde(default)]
    pub key: Option<String>,
    /// The members that an export extracts from the archive, to paths below the archive's folder.
    #[serde(default)]
    pub unpack: Vec<String>,
}

impl ManifestEntry for FileEntry {
    type Request = FileRequest;

    fn add_fields<'e>(&'e mut self, fields: &mut EntryFields<'_, 'e>) {
        fields.add("url", [&mut self.url]);
        fields.with_own_url(|fields| fields.add("checksum", &mut self.checksum));
        fields.add("mode", &mut self.mode);
        fields.add_list("also", &mut self.also);
        fields.with_own_url(|fields| fields.add_list("signatures", &mut self.signatures));
        fields.add_list("unpack", &mut self.unpack);
        fields.add("key", &mut self.key);
    }

    fn requests(
        &self,
        _written: &FileEntry,
        node: &YamlNode<'_>,
        reader: &EntryContext<'_>,
    ) -> ManifestResult<Vec<(FileRequest, SourceSpan)>> {
        let at = reader.here(node.get("url"));
        let url = url_of(&self.url, &at)?;
        let checksum = match &self.checksum {
            Some(text) => {
                let at = reader.here(node.get("checksum"));
                Some(checksum_of(&fill_own_url(text, &url), &at)?)
            }
            None => None,
        };
        let mut also = Vec::new();
        for (index, text) in self.also.iter().enumerate() {
            let at = reader.item_at(node, "also", index);
            let other = url_of(text, &at)?;
            if other == url || also.contains(&other) {
                let message = format!("{other} is already a URL of this file");
                return Err(at.fault(message, Some("remove it".into())));
            }
            also.push(other);
        }
        also.sort();
        let mode = match &self.mode {
            Some(text) => Some(mode_of(text, &reader.here(node.get("mode")))?),
            None => None,
        };
        let mut signatures = Vec::new();
        for (index, text) in self.signatures.iter().enumerate() {
            let at = reader.item_at(node, "signatures", index);
            signatures.push(url_of(&fill_own_url(text, &url), &at)?);
        }
        for (index, text) in self.unpack.iter().enumerate() {
            check_member(text, &reader.item_at(node, "unpack", index))?;
        }
        let request = FileRequest {
            url,
            checksum,
            also,
            mode,
            signatures,
            key: key_of(self, node, reader)?,
            unpack: self.unpack.clone(),
            at: at.location(),
        };
        Ok(vec![(request, at)])
    }
}

/// Parses a URL and returns its normal form, which is the file's name in the lock.
pub(crate) fn url_of(text: &str, span: &SourceSpan) -> ManifestResult<String> {
    match file_url(text) {
        Ok(url) => Ok(url.into()),
        Err(FileUrlError { message, help }) => Err(span.fault(message, Some(help.into()))),
    }
}

/// Why a text is not the URL of a file.
pub(crate) struct FileUrlError {
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

/// Parses the URL of a file.
pub(crate) fn file_url(text: &str) -> Result<Url, FileUrlError> {
    let error = |message: &str, help: &'static str| FileUrlError {
        message: message.into(),
        help,
    };
    // the URL parser would drop line breaks and encode spaces, and so accept a mistyped URL
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        let message = "this URL contains white space";
        return Err(error(message, "write a space as %20"));
    }
    let url = Url::parse(text).map_err(|why| {
        let message = format!("this is not a URL: {why}");
        error(&message, "write it as https://host/path")
    })?;
    // `host:443/path` parses as a URL with the scheme `host`
    if !text.contains("://") {
        return Err(error("this is not a URL", "begin it with https://"));
    }
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = url.scheme();
        let help = match scheme {
            "docker" | "oci" => "list images under `images`, and charts under `charts`",
            _ => "name an http or https URL of the file",
        };
        let message = format!("files are downloaded over http or https, not over {scheme}");
        return Err(error(&message, help));
    }
    if has_userinfo(&url) {
        return Err(error(USERINFO.0, USERINFO.1));
    }
    // a fragment is never sent to the server, so one file could have several names
    if url.fragment().is_some() {
        let message = "the URL of a file must not contain a `#` part";
        return Err(error(message, "remove it"));
    }
    if url.path().ends_with('/') {
        let message = "this URL is that of a folder";
        return Err(error(message, "list each file with its own URL"));
    }
    Ok(url)
}

fn checksum_of(text: &str, span: &SourceSpan) -> ManifestResult<Checksum> {
    if text.contains("://") {
        return url_of(text, span).map(Checksum::Sidecar);
    }
    if text.contains(':') {
        return digest_of(text, span).map(Checksum::Digest);
    }
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (message, help) = match text.len() {
        64 if is_hex => ("the algorithm is missing", format!("write sha256:{text}")),
        128 if is_hex => ("the algorithm is missing", format!("write sha512:{text}")),
        _ => {
            let help = "write sha256:<hex>, sha512:<hex>, or the URL of a checksum file, as in \
                        ${url}.sha256";
            return Err(span.fault(format!("`{text}` is not a checksum"), Some(help.into())));
        }
    };
    Err(span.fault(message, Some(help)))
}

/// Reads the key of `entry`.
fn key_of(
    entry: &FileEntry,
    node: &YamlNode<'_>,
    reader: &EntryContext<'_>,
) -> ManifestResult<Option<FileKey>> {
    let Some(path) = &entry.key else {
        return Ok(None);
    };
    let at = reader.here(node.get("key"));
    let key = FileKey::parse(path, &reader.read_file(path, &at)?)
        .map_err(|error| at.fault(format!("{path}: {error}"), None))?;
    if entry.signatures.is_empty() {
        let help = "add the URL of the signature, as in signatures: [\"${url}.minisig\"]";
        return Err(at.fault(
            "a key needs a signature that it can verify",
            Some(help.into()),
        ));
    }
    Ok(Some(key))
}

/// Checks the path of a member of an archive.
fn check_member(text: &str, span: &SourceSpan) -> ManifestResult<()> {
    if !is_member_path(text) {
        let help = "write the path as `tar -t` lists it, without a leading ./, as in bin/kubelet";
        return Err(span.fault(
            format!("`{text}` is not a path in an archive"),
            Some(help.into()),
        ));
    }
    Ok(())
}

/// Whether `text` is the path of a member of an archive. An export writes the member below the
/// folder of the archive, so the path must not lead out of that folder.
pub(super) fn is_member_path(text: &str) -> bool {
    is_path_below(text) && !text.contains(['\\', '\0'])
}

/// The mode, as four octal digits.
fn mode_of(text: &str, span: &SourceSpan) -> ManifestResult<String> {
    let is_octal =
        (3..=4).contains(&text.len()) && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    if !is_octal {
        let help = Some("write octal permission bits, as in \"0755\"".into());
        return Err(span.fault(format!("`{text}` is not a file mode"), help));
    }
    Ok(format!("{text:0>4}"))
}
