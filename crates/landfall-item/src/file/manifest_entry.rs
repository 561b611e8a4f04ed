//! A file in a manifest, and how it expands to requests.

use super::request::{Checksum, FileRequest};
use crate::ManifestEntry;
use crate::entry_reader::without_account;
use crate::entry_reader::{EntryContext, ManifestResult, digest_of};
use landfall_model::document::{OWN_URL, SourceSpan, TemplateField, YamlNode, read_input};
use landfall_model::sign::FileKey;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;
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
    /// URLs of signatures and certificates of the file or its checksum file, which are carried with
    /// it. `${url}` is replaced by `url`.
    #[serde(default)]
    pub signatures: Vec<String>,
    /// A file with the public key that must have made one of the signatures: minisign, OpenSSH or
    /// OpenPGP.
    #[serde(default)]
    pub key: Option<String>,
    /// Members of the archive that an export extracts next to it.
    #[serde(default)]
    pub unpack: Vec<String>,
}

impl ManifestEntry for FileEntry {
    type Request = FileRequest;

    fn expand(
        &self,
        node: &YamlNode<'_>,
        reader: &EntryContext<'_>,
    ) -> ManifestResult<Vec<(FileRequest, SourceSpan)>> {
        read(self, node, reader)
    }
}

/// Expands `entry` to one request for each combination of its variables.
pub(super) fn read(
    entry: &FileEntry,
    node: &YamlNode<'_>,
    reader: &EntryContext<'_>,
) -> ManifestResult<Vec<(FileRequest, SourceSpan)>> {
    let at = reader.here(node.get("url"));
    let checksum_at = reader.here(node.get("checksum"));
    let mode_at = reader.here(node.get("mode"));
    let also_at = |index: usize| reader.here(node.get("also").item(index));
    let mut fields = vec![TemplateField::new(&entry.url, at.clone())];
    let checksum = entry.checksum.as_ref();
    fields.extend(checksum.map(|text| TemplateField {
        takes_url: true,
        ..TemplateField::new(text, checksum_at.clone())
    }));
    fields.extend(
        entry
            .mode
            .as_ref()
            .map(|text| TemplateField::new(text, mode_at.clone())),
    );
    fields.extend(
        entry
            .also
            .iter()
            .enumerate()
            .map(|(index, text)| TemplateField::new(text, also_at(index))),
    );
    let list_at = |key: &'static str, index: usize| reader.here(node.get(key).item(index));
    let signatures = entry.signatures.iter().enumerate();
    fields.extend(signatures.map(|(index, text)| TemplateField {
        takes_url: true,
        ..TemplateField::new(text, list_at("signatures", index))
    }));
    let members = entry.unpack.iter().enumerate();
    fields.extend(members.map(|(index, text)| TemplateField::new(text, list_at("unpack", index))));
    let key = entry
        .key
        .as_ref()
        .map(|path| key_of(path, &reader.here(node.get("key")), reader))
        .transpose()?;
    if key.is_some() && entry.signatures.is_empty() {
        let help = Some("name the signature too, as in signatures: [\"${url}.minisig\"]".into());
        return Err(reader
            .here(node.get("key"))
            .fault("there is no signature to check with this key", help));
    }
    let mut files = Vec::new();
    for binding in reader.vars.bindings(&fields)? {
        let url = url_of(&binding.fill(&entry.url), &at)?;
        let checksum = |text| checksum_of(&binding.with(OWN_URL, &url).fill(text), &checksum_at);
        let checksum = entry.checksum.as_deref().map(checksum).transpose()?;
        let mut also = Vec::new();
        for (index, text) in entry.also.iter().enumerate() {
            let other = url_of(&binding.fill(text), &also_at(index))?;
            if other == url || also.contains(&other) {
                let help = Some("take it out".into());
                return Err(
                    also_at(index).fault(format!("the file answers to {other} already"), help)
                );
            }
            also.push(other);
        }
        also.sort();
        let mode = entry
            .mode
            .as_ref()
            .map(|text| mode_of(&binding.fill(text), &mode_at))
            .transpose()?;
        let with_url = binding.with(OWN_URL, &url);
        let mut signatures = Vec::new();
        for (index, text) in entry.signatures.iter().enumerate() {
            signatures.push(url_of(&with_url.fill(text), &list_at("signatures", index))?);
        }
        let mut unpack = Vec::new();
        for (index, text) in entry.unpack.iter().enumerate() {
            unpack.push(member_of(&binding.fill(text), &list_at("unpack", index))?);
        }
        let key = key.clone();
        let at_here = at.location();
        let wanted = FileRequest {
            url,
            checksum,
            also,
            mode,
            signatures,
            key,
            unpack,
            at: at_here,
        };
        files.push((wanted, at.clone()));
    }
    Ok(files)
}

/// Parses a URL and returns its normal form.
pub(super) fn url_of(text: &str, span: &SourceSpan) -> ManifestResult<String> {
    let refuse = |message: String, help: &str| Err(span.fault(message, Some(help.into())));
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return refuse(
            "there is white space in this URL".into(),
            "write a blank as %20",
        );
    }
    let url = match Url::parse(text) {
        Ok(url) if text.contains("://") => url,
        Ok(_) => return refuse("this is no URL".into(), "begin it with https://"),
        Err(error) => {
            return refuse(
                format!("this is no URL: {error}"),
                "write it as https://host/path",
            );
        }
    };
    if !matches!(url.scheme(), "http" | "https") {
        return refuse(
            format!("files come over http and https, not over {}", url.scheme()),
            "list images under `images`",
        );
    }
    without_account(&url, span)?;
    if url.fragment().is_some() {
        return refuse("a URL of a file has no `#` part".into(), "take it out");
    }
    if url.path().ends_with('/') {
        return refuse(
            "this URL names a folder".into(),
            "name each file that is wanted",
        );
    }
    Ok(url.into())
}

fn checksum_of(text: &str, span: &SourceSpan) -> ManifestResult<Checksum> {
    if text.contains("://") {
        return url_of(text, span).map(Checksum::Sidecar);
    }
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match text.len() {
        64 if is_hex => Err(span.fault(
            "the algorithm is missing",
            Some(format!("write sha256:{text}")),
        )),
        128 if is_hex => Err(span.fault(
            "the algorithm is missing",
            Some(format!("write sha512:{text}")),
        )),
        _ if text.contains(':') => digest_of(text, span).map(Checksum::Digest),
        _ => {
            let help = "write sha256:<hex>, sha512:<hex>, or the URL of a checksum file, as in \
                        ${url}.sha256";
            Err(span.fault(format!("`{text}` is no checksum"), Some(help.into())))
        }
    }
}

/// Reads the key in the file at `path`, which is relative to the manifest.
fn key_of(path: &str, at: &SourceSpan, reader: &EntryContext<'_>) -> ManifestResult<FileKey> {
    let file = Path::new(&reader.text.file)
        .parent()
        .unwrap_or(Path::new(""))
        .join(path);
    let bytes = read_input(&file).map_err(|error| {
        let help = "the path starts from the folder of this manifest".into();
        at.fault(
            format!("cannot read {}: {error}", file.display()),
            Some(help),
        )
    })?;
    FileKey::parse(&bytes).map_err(|error| at.fault(format!("{path}: {error}"), None))
}

/// Checks the path of a member of an archive.
fn member_of(text: &str, span: &SourceSpan) -> ManifestResult<String> {
    let is_name = |part: &str| {
        !part.is_empty() && part != "." && part != ".." && !part.contains(['\\', '\0'])
    };
    if !text.split('/').all(is_name) {
        let help = Some(
            "write its path as `tar -t` shows it, without ./ before it, as in bin/kubelet".into(),
        );
        return Err(span.fault(format!("`{text}` is no path of a member"), help));
    }
    Ok(text.to_owned())
}

/// The mode, as four octal digits.
fn mode_of(text: &str, span: &SourceSpan) -> ManifestResult<String> {
    let is_octal =
        (3..=4).contains(&text.len()) && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    if !is_octal {
        let help = Some("write octal permission bits, as in \"0755\"".into());
        return Err(span.fault(format!("`{text}` is no mode"), help));
    }
    Ok(format!("{text:0>4}"))
}
