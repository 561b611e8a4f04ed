//! The lock document: its types and its reader. See docs/lock.md.

use crate::document::{self, Diagnostic};
use crate::lockfile::text;
use crate::model::{Algorithm, Descriptor, Digest, Hasher, ImageRef, MediaType, Platform};
use crate::report::Kind;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The content of `landfall.lock`. Lists are sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// Version of the format; 1.
    pub version: u32,
    /// Images, each by a full canonical name.
    #[serde(default)]
    pub images: Vec<Image>,
    /// Plain files, each by URL.
    #[serde(default)]
    pub files: Vec<File>,
    /// Losses that the manifest accepts.
    #[serde(default)]
    pub missing: Vec<Accepted>,
    /// Items that could not be resolved, with the cause. Whatever is made from such a lock is partial.
    #[serde(default)]
    pub unresolved: Vec<Unresolved>,
}

/// A locked image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Image {
    /// `registry/repository:tag`, or `registry/repository@digest` where the manifest names no tag.
    pub name: ImageRef,
    /// Platforms that the manifest asks for; empty means all.
    #[serde(default)]
    pub platforms: Vec<Platform>,
    /// Digest that the manifest demands.
    #[serde(default)]
    pub pin: Option<Digest>,
    /// Digest of the index, or of the manifest where there is no index.
    pub digest: Digest,
    /// Media type of the same.
    pub media_type: MediaType,
    /// Size of the same, in bytes.
    pub size: u64,
    /// Platform of an image without an index.
    #[serde(default)]
    pub platform: Option<Platform>,
    /// Wanted manifests below the index, children before parents. Empty where there is no index.
    #[serde(default)]
    pub manifests: Vec<LockedManifest>,
    /// Configs and layers of all the manifests, once each, sorted by digest.
    #[serde(default, deserialize_with = "read_blobs")]
    pub blobs: Vec<Descriptor>,
    /// The index without the children that `platforms` leaves out, where it leaves some out.
    #[serde(default)]
    pub trimmed: Option<Trimmed>,
    /// Signatures, attestations and other manifests that refer to it: children before parents. `None`
    /// where they were not looked up.
    #[serde(default)]
    pub referrers: Option<Vec<Referrer>>,
    /// Configs and layers of the referrers that are not among `blobs`, once each, sorted by digest.
    #[serde(default, deserialize_with = "read_blobs")]
    pub referrer_blobs: Vec<Descriptor>,
}

impl Image {
    /// An image of which nothing is known but what its name stands for.
    pub fn new(name: ImageRef, top: Descriptor) -> Image {
        let Descriptor { digest, size, media_type } = top;
        Image {
            name,
            platforms: Vec::new(),
            pin: None,
            digest,
            media_type,
            size,
            platform: None,
            manifests: Vec::new(),
            blobs: Vec::new(),
            trimmed: None,
            referrers: None,
            referrer_blobs: Vec::new(),
        }
    }
}

/// A manifest under an index.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LockedManifest {
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// Its media type.
    pub media_type: MediaType,
    /// Its platform as the index names it; absent for artifacts and nested indexes.
    #[serde(default)]
    pub platform: Option<String>,
}

/// An index by the trimming rule ([`crate::model::trim_index`]).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trimmed {
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// A manifest that refers to the image, to a manifest of it, or to another referrer; or one that stands
/// under an index that does. That last kind has neither tag nor subject.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Referrer {
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// Its media type.
    pub media_type: MediaType,
    /// Its tag, where it is kept by the cosign tag convention.
    #[serde(default)]
    pub tag: Option<String>,
    /// The manifest that it says it refers to.
    #[serde(default)]
    pub subject: Option<Digest>,
}

/// A locked plain file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The URL.
    pub name: String,
    /// SHA-256 of the content.
    pub digest: Digest,
    /// Size in bytes.
    pub size: u64,
    /// What the manifest checks it against: a digest, or a sidecar's URL.
    #[serde(default)]
    pub checksum: Option<String>,
    /// Checksum files, carried byte for byte.
    #[serde(default)]
    pub sidecars: Vec<Sidecar>,
    /// Other URLs that it answers to.
    #[serde(default)]
    pub also: Vec<String>,
    /// Permission bits for exports, octal text such as `0755`.
    #[serde(default)]
    pub mode: Option<String>,
}

impl File {
    /// A file that is checked against nothing else.
    pub fn new(name: impl Into<String>, digest: Digest, size: u64) -> File {
        let name = name.into();
        File { name, digest, size, checksum: None, sidecars: Vec::new(), also: Vec::new(), mode: None }
    }
}

/// A checksum file that travels with a [`File`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sidecar {
    /// Its URL.
    pub url: String,
    /// SHA-256 of its content.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// A loss that the manifest accepts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// What kind of item.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Why it is accepted.
    pub reason: String,
    /// Last day on which it is accepted, `YYYY-MM-DD`.
    pub until: String,
}

/// An item that could not be resolved.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unresolved {
    /// What kind of item.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Why.
    pub cause: String,
}

/// Why a lock cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The file cannot be read.
    #[error(
        "cannot read the lock {path}: {source}; write one with `landfall lock -f MANIFEST --lock {path}`"
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// It is no lock.
    #[error(transparent)]
    Document(#[from] Box<Diagnostic>),
    /// It says something that no lock of landfall's says.
    #[error("{path}: {why}; write the lock anew with `landfall lock`")]
    Content {
        /// The file.
        path: String,
        /// What it says.
        why: String,
    },
    /// Its version is newer than this landfall.
    #[error(
        "{path}: lock version {found} is not known to this landfall (it reads version 1); use a newer landfall"
    )]
    Version {
        /// The file.
        path: String,
        /// The version found.
        found: u32,
    },
}

impl Referrer {
    /// Digest, size and media type.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor { digest: self.digest.clone(), size: self.size, media_type: self.media_type.clone() }
    }
}

impl Image {
    /// The descriptor of the top: the index, or the only manifest.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor { digest: self.digest.clone(), size: self.size, media_type: self.media_type.clone() }
    }

    /// The trimmed index as a descriptor, where there is one. Its media type is the index's.
    pub fn trimmed_descriptor(&self) -> Option<Descriptor> {
        self.trimmed.as_ref().map(|trimmed| Descriptor {
            digest: trimmed.digest.clone(),
            size: trimmed.size,
            media_type: self.media_type.clone(),
        })
    }

    /// Every manifest of the image in the order in which a registry takes them: children before
    /// parents, the top last. The trimmed index is not among them.
    pub fn manifests_in_order(&self) -> impl Iterator<Item = Descriptor> + '_ {
        let children = self.manifests.iter().map(|child| Descriptor {
            digest: child.digest.clone(),
            size: child.size,
            media_type: child.media_type.clone(),
        });
        children.chain(std::iter::once(self.descriptor()))
    }

    /// The tag to give it at a destination: its own, or `digest-<first 12 hex>` for an image that is
    /// locked by digest alone, so that a registry's clean-up leaves it.
    pub fn destination_tag(&self) -> String {
        match &self.name.tag {
            Some(tag) => tag.clone(),
            None => format!("digest-{}", self.digest.short(12)),
        }
    }
}

impl Lock {
    /// Reads a lock from text. `file` is its name for messages.
    ///
    /// # Errors
    /// When the text is no lock, or one of a newer version.
    pub fn parse(file: &str, text: &str) -> Result<Lock, LockError> {
        let lock: Lock = match text::read(text) {
            Some(lock) => lock,
            // not as it was written: every word counts, and its place
            None => document::read(file, text)?,
        };
        if lock.version != 1 {
            return Err(LockError::Version { path: file.into(), found: lock.version });
        }
        lock.check().map_err(|why| LockError::Content { path: file.into(), why })?;
        Ok(lock)
    }

    /// A lock may come in a bundle from the other side of a gap: sizes must be ones that can be added up,
    /// referrers' tags such that they fit into a path and are no tag of an image, and URLs ones whose host can be a folder.
    fn check(&self) -> Result<(), String> {
        let images = self.images.iter().flat_map(|image| {
            let manifests = image.manifests.iter().map(|child| child.size);
            let blobs = image.blobs.iter().chain(&image.referrer_blobs).map(|blob| blob.size);
            let rest =
                image.trimmed.iter().map(|t| t.size).chain(image.referrers.iter().flatten().map(|r| r.size));
            manifests.chain(blobs).chain(rest).chain([image.size])
        });
        let files =
            self.files.iter().flat_map(|file| file.sidecars.iter().map(|s| s.size).chain([file.size]));
        if let Some(size) = images.chain(files).find(|size| *size > LARGEST) {
            return Err(format!("nothing has {size} bytes"));
        }
        let referrers = self.images.iter().flat_map(|image| image.referrers.iter().flatten());
        if let Some(tag) = referrers.filter_map(|one| one.tag.as_ref()).find(|tag| !is_referrer_tag(tag)) {
            return Err(format!("'{tag}' is no tag that cosign gives"));
        }
        let urls = self.files.iter().flat_map(|file| {
            let sidecars = file.sidecars.iter().map(|sidecar| &sidecar.url);
            std::iter::once(&file.name).chain(&file.also).chain(sidecars)
        });
        match urls.into_iter().find(|url| !is_file_url(url)) {
            Some(url) => Err(format!("'{url}' is no http or https URL of a file")),
            None => Ok(()),
        }
    }

    /// Reads the lock at `path`.
    ///
    /// # Errors
    /// As [`Lock::parse`], and when the file cannot be read.
    pub fn load(path: &Path) -> Result<Lock, LockError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| LockError::Open { path: path.into(), source })?;
        Lock::parse(&path.display().to_string(), &text)
    }

    /// The lock as text. Equal locks give equal text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // a String takes everything
        let _ = text::write(self, &mut text);
        text
    }

    /// SHA-256 of the lock's text: what a change board approves.
    pub fn fingerprint(&self) -> Digest {
        let mut hasher = Hasher::new(Algorithm::Sha256);
        let _ = text::write(self, &mut hasher);
        hasher.finish()
    }
}

/// Largest size of one piece, in bytes: 8 PiB, what a JSON number holds exactly.
const LARGEST: u64 = 1 << 53;

/// Whether it has the form `sha256-<hex>.<ending>`; how long the hex is, does not matter.
fn is_referrer_tag(text: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let rest = text.strip_prefix("sha256-").and_then(|rest| rest.split_once('.'));
    text.len() <= 128 && text.bytes().all(good) && rest.is_some()
}

/// Whether it is an http or https URL with a host that can be the name of a folder.
fn is_file_url(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url
                .host_str()
                .is_some_and(|host| !host.is_empty() && !host.starts_with('.') && !host.contains('/'))
    })
}

fn read_blobs<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Vec<Descriptor>, D::Error> {
    let lines = Vec::<String>::deserialize(source)?;
    // as long as it is, where collecting would leave room for more
    let mut blobs = Vec::with_capacity(lines.len());
    for line in lines {
        blobs.push(read_blob(&line).map_err(serde::de::Error::custom)?);
    }
    Ok(blobs)
}

fn read_blob(line: &str) -> Result<Descriptor, String> {
    let wrong = || format!("blob '{line}' is not of the form 'digest size mediaType'");
    let mut words = line.splitn(3, ' ');
    let (Some(digest), Some(size), Some(kind)) = (words.next(), words.next(), words.next()) else {
        return Err(wrong());
    };
    Ok(Descriptor {
        digest: digest.parse().map_err(|error: crate::model::DigestError| error.to_string())?,
        size: size.parse().map_err(|_| wrong())?,
        media_type: kind.into(),
    })
}
