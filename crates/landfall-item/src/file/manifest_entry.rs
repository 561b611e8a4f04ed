//! A file in a manifest, and how it expands to requests.

use super::resolvable::{Checksum, FileRequest};
use crate::ManifestEntry;
use crate::item_kind::{EntryFields, EntryReader, ManifestResult, USERINFO, digest_of};
use crate::local::local_places;
use landfall_model::document::{SourceSpan, fill_own_url};
use landfall_model::sign::FileKey;
use landfall_model::{Failure, FolderPacking, has_userinfo, is_path_below};
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

/// A plain file in a manifest.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileEntry {
    /// An http or https URL. An entry has either `url` or `path`.
    pub url: Option<String>,
    /// A file or a folder next to the manifest, relative to the folder of the manifest. Each file
    /// of a folder is an item. `*`, `?` and `**` match several files.
    pub path: Option<String>,
    /// Carries the folder at `path` as one file.
    #[serde(rename = "as")]
    pub packing: Option<FolderPacking>,
    /// `sha256:<hex>`, `sha512:<hex>`, or the URL of a checksum file. `${url}` is replaced by
    /// `url`.
    pub checksum: Option<String>,
    /// Other URLs at which clients request the file.
    pub also: Vec<String>,
    /// The permission bits that an export sets, in octal, as in "0755".
    pub mode: Option<String>,
    /// URLs of signatures and certificates that are carried with the file. Each belongs to the file
    /// or to its checksum file. `${url}` is replaced by `url`.
    pub signatures: Vec<String>,
    /// A file with a public key of minisign, OpenSSH or OpenPGP, or with allowed signers of
    /// OpenSSH. The key must verify one of the signatures.
    pub key: Option<String>,
    /// The members that an export extracts from the archive, to paths below the archive's folder.
    pub unpack: Vec<String>,
}

impl ManifestEntry for FileEntry {
    type Request = FileRequest;

    fn add_fields<'e>(&'e mut self, fields: &mut EntryFields<'_, 'e>) {
        fields.add("url", &mut self.url);
        fields.add("path", &mut self.path);
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
        reader: EntryReader<'_>,
    ) -> ManifestResult<Vec<(FileRequest, SourceSpan)>> {
        let written_url = match (&self.url, &self.path) {
            (Some(url), None) => url,
            (None, Some(path)) => return self.local_requests(path, reader),
            (Some(_), Some(_)) => {
                let at = reader.at("path");
                let help = "remove one of them; `also` names other URLs of a local file";
                return Err(at.fault("a file has either `url` or `path`", Some(help)));
            }
            (None, None) => {
                let help = "add `url: https://…`, or `path:` with a file next to this manifest";
                let at = reader.here();
                return Err(at.fault("this file has no `url` and no `path`", Some(help)));
            }
        };
        if self.packing.is_some() {
            let at = reader.at("as");
            let help = Some("remove it; it is for a folder that `path` names");
            return Err(at.fault("`as` does not apply to a URL", help));
        }
        let at = reader.at("url");
        let url = url_of(written_url, &at)?;
        let checksum = self.checksum.as_ref();
        let checksum = checksum
            .map(|text| checksum_of(&fill_own_url(text, &url), &reader.at("checksum")))
            .transpose()?;
        let also = self.other_urls(&url, reader)?;
        let mode = self.mode(reader)?;
        let mut signatures = Vec::new();
        for (index, text) in self.signatures.iter().enumerate() {
            let at = reader.item_at("signatures", index);
            signatures.push(url_of(&fill_own_url(text, &url), &at)?);
        }
        self.check_members(reader)?;
        let request = FileRequest {
            url,
            local: None,
            checksum,
            also,
            mode,
            signatures,
            key: key_of(self, reader)?,
            unpack: self.unpack.clone(),
            at: at.location(),
        };
        Ok(vec![(request, at)])
    }
}

impl FileEntry {
    /// The requests for the files at `path`, next to the manifest.
    fn local_requests(
        &self,
        path: &str,
        reader: EntryReader<'_>,
    ) -> ManifestResult<Vec<(FileRequest, SourceSpan)>> {
        let at = reader.at("path");
        for (key, is_set) in [
            ("signatures", !self.signatures.is_empty()),
            ("key", self.key.is_some()),
        ] {
            if is_set {
                let message = format!("`{key}` does not apply to a local file");
                let help = "remove it; `checksum: sha256:<hex>` pins the content";
                let at = reader.at(key);
                return Err(at.fault(message, Some(help)));
            }
        }
        let checksum = match &self.checksum {
            Some(text) => {
                let at = reader.at("checksum");
                match checksum_of(text, &at)? {
                    digest @ Checksum::Digest(_) => Some(digest),
                    Checksum::Sidecar(_) => {
                        let help = Some("write sha256:<hex> or sha512:<hex>");
                        return Err(at.fault("a local file has no checksum file", help));
                    }
                }
            }
            None => None,
        };
        let also = self.other_urls("", reader)?;
        let mode = self.mode(reader)?;
        self.check_members(reader)?;
        let places = local_places(path, self.packing, &at, reader)?;
        for (key, is_set) in [("checksum", checksum.is_some()), ("also", !also.is_empty())] {
            if is_set && places.len() > 1 {
                let message = format!("`{key}` applies to one file, and {path} names several");
                let help = Some("write an entry for each file");
                return Err(reader.at(key).fault(message, help));
            }
        }
        let requests = places.into_iter().map(|(name, place)| {
            let request = FileRequest {
                url: name,
                local: Some(place),
                checksum: checksum.clone(),
                also: also.clone(),
                mode: mode.clone(),
                signatures: Vec::new(),
                key: None,
                unpack: self.unpack.clone(),
                at: at.location(),
            };
            (request, at.clone())
        });
        Ok(requests.collect())
    }

    /// The URLs of `also`, sorted. `url` is the file's own URL.
    fn other_urls(&self, url: &str, reader: EntryReader<'_>) -> ManifestResult<Vec<String>> {
        let mut also = Vec::new();
        for (index, text) in self.also.iter().enumerate() {
            let at = reader.item_at("also", index);
            let other = url_of(text, &at)?;
            if other == url || also.contains(&other) {
                let message = format!("{other} is already a URL of this file");
                return Err(at.fault(message, Some("remove it")));
            }
            also.push(other);
        }
        also.sort();
        Ok(also)
    }

    fn mode(&self, reader: EntryReader<'_>) -> ManifestResult<Option<String>> {
        let mode = self.mode.as_ref();
        mode.map(|text| mode_of(text, &reader.at("mode")))
            .transpose()
    }

    /// Checks the paths of `unpack`.
    fn check_members(&self, reader: EntryReader<'_>) -> ManifestResult<()> {
        let mut members = self.unpack.iter().enumerate();
        members.try_for_each(|(index, text)| check_member(text, &reader.item_at("unpack", index)))
    }
}

/// Parses a URL and returns its normal form, which is the file's name in the lock.
pub(crate) fn url_of(text: &str, span: &SourceSpan) -> ManifestResult<String> {
    file_url(text)
        .map(Into::into)
        .map_err(|error| span.fault(error.to_string(), error.help.as_deref()))
}

/// Parses the URL of a file.
pub(crate) fn file_url(text: &str) -> Result<Url, Failure> {
    let error = |message: &str, help: &str| Failure::usage(message).with_help(help);
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
            return Err(span.fault(format!("`{text}` is not a checksum"), Some(help)));
        }
    };
    Err(span.fault(message, Some(&help)))
}

/// Reads the key of `entry`.
fn key_of(entry: &FileEntry, reader: EntryReader<'_>) -> ManifestResult<Option<FileKey>> {
    let Some(path) = &entry.key else {
        return Ok(None);
    };
    let at = reader.at("key");
    let key = FileKey::parse(path, &reader.read_file(path, &at)?)
        .map_err(|error| at.fault(format!("{path}: {error}"), None))?;
    if entry.signatures.is_empty() {
        let help = "add the URL of the signature, as in signatures: [\"${url}.minisig\"]";
        return Err(at.fault("a key needs a signature that it can verify", Some(help)));
    }
    Ok(Some(key))
}

/// Checks the path of a member of an archive.
fn check_member(text: &str, span: &SourceSpan) -> ManifestResult<()> {
    if !is_member_path(text) {
        let help = "write the path as `tar -t` lists it, without a leading ./, as in bin/kubelet";
        return Err(span.fault(format!("`{text}` is not a path in an archive"), Some(help)));
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
        let help = Some("write octal permission bits, as in \"0755\"");
        return Err(span.fault(format!("`{text}` is not a file mode"), help));
    }
    Ok(format!("{text:0>4}"))
}
