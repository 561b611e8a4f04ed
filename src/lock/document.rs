//! The lock document: its types, its reader, and its writer (sorted, one fact a line, small diffs).

use crate::document::{self, Diagnostic};
use crate::model::{Descriptor, Digest, ImageRef, Platform};
use crate::report::Kind;
use serde::Deserialize;
use std::fmt::Write as _;
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
    pub media_type: String,
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
    /// Signatures, attestations and other referrers.
    #[serde(default)]
    pub referrers: Vec<Referrer>,
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
    pub media_type: String,
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

/// A manifest that refers to the image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Referrer {
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// Its media type.
    pub media_type: String,
    /// Its tag, where it is kept by the cosign tag convention.
    #[serde(default)]
    pub tag: Option<String>,
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
        let lock: Lock = document::read(file, text)?;
        if lock.version != 1 {
            return Err(LockError::Version { path: file.into(), found: lock.version });
        }
        lock.check().map_err(|why| LockError::Content { path: file.into(), why })?;
        Ok(lock)
    }

    /// A lock may come in a bundle from the other side of a gap: sizes must be ones that can be added up,
    /// and URLs ones whose host can be a folder.
    fn check(&self) -> Result<(), String> {
        let images = self.images.iter().flat_map(|image| {
            let manifests = image.manifests.iter().map(|child| child.size);
            let blobs = image.blobs.iter().map(|blob| blob.size);
            let rest = image.trimmed.iter().map(|t| t.size).chain(image.referrers.iter().map(|r| r.size));
            manifests.chain(blobs).chain(rest).chain([image.size])
        });
        let files =
            self.files.iter().flat_map(|file| file.sidecars.iter().map(|s| s.size).chain([file.size]));
        if let Some(size) = images.chain(files).find(|size| *size > LARGEST) {
            return Err(format!("nothing has {size} bytes"));
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
        let mut lock = self.clone();
        lock.images.sort_by(|a, b| a.name.cmp(&b.name));
        lock.files.sort_by(|a, b| a.name.cmp(&b.name));
        lock.missing.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        lock.unresolved.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        let mut out = String::from("# landfall.lock, written by `landfall lock`\nversion: 1\n");
        section(&mut out, "images", &lock.images, write_image);
        section(&mut out, "files", &lock.files, write_file);
        section(&mut out, "missing", &lock.missing, |out, lost| {
            let _ = writeln!(
                out,
                "- {{kind: {}, name: {}, reason: {}, until: {}}}",
                lost.kind,
                quoted(&lost.name),
                quoted(&lost.reason),
                quoted(&lost.until)
            );
        });
        section(&mut out, "unresolved", &lock.unresolved, |out, item| {
            let (name, cause) = (quoted(&item.name), quoted(&item.cause));
            let _ = writeln!(out, "- {{kind: {}, name: {name}, cause: {cause}}}", item.kind);
        });
        out
    }

    /// SHA-256 of the lock's text: what a change board approves.
    pub fn fingerprint(&self) -> Digest {
        Digest::sha256(self.to_text().as_bytes())
    }
}

/// Largest size of one piece, in bytes: 8 PiB, what a JSON number holds exactly.
const LARGEST: u64 = 1 << 53;

/// Whether it is an http or https URL with a host that can be the name of a folder.
fn is_file_url(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url
                .host_str()
                .is_some_and(|host| !host.is_empty() && !host.starts_with('.') && !host.contains('/'))
    })
}

fn section<T>(out: &mut String, title: &str, items: &[T], write: impl Fn(&mut String, &T)) {
    if !items.is_empty() {
        let _ = writeln!(out, "{title}:");
        items.iter().for_each(|item| write(out, item));
    }
}

fn write_image(out: &mut String, image: &Image) {
    let _ = writeln!(out, "- name: {}", quoted(&image.name.to_string()));
    if !image.platforms.is_empty() {
        let platforms: Vec<String> = image.platforms.iter().map(Platform::to_string).collect();
        let _ = writeln!(out, "  platforms: [{}]", platforms.join(", "));
    }
    if let Some(pin) = &image.pin {
        let _ = writeln!(out, "  pin: {pin}");
    }
    let _ = writeln!(out, "  digest: {}", image.digest);
    let _ = writeln!(out, "  mediaType: {}\n  size: {}", quoted(&image.media_type), image.size);
    if let Some(platform) = &image.platform {
        let _ = writeln!(out, "  platform: {platform}");
    }
    if !image.manifests.is_empty() {
        let _ = writeln!(out, "  manifests:");
    }
    for child in &image.manifests {
        let kind = quoted(&child.media_type);
        let _ = write!(out, "  - {{digest: {}, size: {}, mediaType: {kind}", child.digest, child.size);
        let platform = child.platform.as_ref().map(|platform| format!(", platform: {}", quoted(platform)));
        let _ = writeln!(out, "{}}}", platform.unwrap_or_default());
    }
    if !image.blobs.is_empty() {
        let _ = writeln!(out, "  blobs:");
    }
    for blob in &image.blobs {
        let line = format!("{} {} {}", blob.digest, blob.size, blob.media_type);
        let _ = writeln!(out, "  - {}", quoted(&line));
    }
    if let Some(trimmed) = &image.trimmed {
        let _ = writeln!(out, "  trimmed: {{digest: {}, size: {}}}", trimmed.digest, trimmed.size);
    }
    if !image.referrers.is_empty() {
        let _ = writeln!(out, "  referrers:");
    }
    for referrer in &image.referrers {
        let kind = quoted(&referrer.media_type);
        let tag = referrer.tag.as_ref().map(|tag| format!(", tag: {}", quoted(tag))).unwrap_or_default();
        let (digest, size) = (&referrer.digest, referrer.size);
        let _ = writeln!(out, "  - {{digest: {digest}, size: {size}, mediaType: {kind}{tag}}}");
    }
}

fn write_file(out: &mut String, file: &File) {
    let _ = writeln!(out, "- name: {}\n  digest: {}\n  size: {}", quoted(&file.name), file.digest, file.size);
    if let Some(checksum) = &file.checksum {
        let _ = writeln!(out, "  checksum: {}", quoted(checksum));
    }
    if !file.sidecars.is_empty() {
        let _ = writeln!(out, "  sidecars:");
    }
    for sidecar in &file.sidecars {
        let url = quoted(&sidecar.url);
        let _ = writeln!(out, "  - {{url: {url}, digest: {}, size: {}}}", sidecar.digest, sidecar.size);
    }
    if !file.also.is_empty() {
        let _ = writeln!(out, "  also:");
    }
    for url in &file.also {
        let _ = writeln!(out, "  - {}", quoted(url));
    }
    if let Some(mode) = &file.mode {
        let _ = writeln!(out, "  mode: {}", quoted(mode));
    }
}

/// A YAML scalar: plain where that is safe in block and flow context, else a JSON string.
fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/+-@%~=&;() ".contains(&byte);
    let safe = text.bytes().enumerate().all(|(at, byte)| {
        plain(byte) || (byte == b':' && text.as_bytes().get(at + 1).is_some_and(|&next| next != b' '))
    });
    let starts_well = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    let word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let reserved = word.contains(&text.to_ascii_lowercase().as_str());
    if safe && starts_well && !reserved && !text.ends_with(' ') {
        text.into()
    } else {
        serde_json::to_string(text).unwrap_or_default()
    }
}

fn read_blobs<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Vec<Descriptor>, D::Error> {
    let lines = Vec::<String>::deserialize(source)?;
    lines.iter().map(|line| read_blob(line).map_err(serde::de::Error::custom)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> Digest {
        Digest::sha256(text.as_bytes())
    }

    fn sample() -> Lock {
        let kind = "application/vnd.oci.image.manifest.v1+json".to_owned();
        Lock {
            version: 1,
            images: vec![Image {
                name: "quay.io/prometheus/node-exporter:v1.9.0".parse().unwrap(),
                platforms: vec!["linux/amd64".parse().unwrap()],
                pin: Some(digest("index")),
                digest: digest("index"),
                media_type: "application/vnd.oci.image.index.v1+json".into(),
                size: 1841,
                platform: None,
                manifests: vec![LockedManifest {
                    digest: digest("child"),
                    size: 1023,
                    media_type: kind.clone(),
                    platform: Some("linux/amd64".into()),
                }],
                blobs: vec![Descriptor {
                    digest: digest("layer"),
                    size: 7,
                    media_type: "application/vnd.oci.image.layer.v1.tar+gzip".into(),
                }],
                trimmed: Some(Trimmed { digest: digest("trimmed"), size: 702 }),
                referrers: vec![Referrer {
                    digest: digest("sig"),
                    size: 812,
                    media_type: kind,
                    tag: Some("sha256-4a.sig".into()),
                }],
            }],
            files: vec![File {
                name: "https://dl.k8s.io/kubelet?x=1#y, z".into(),
                digest: digest("kubelet"),
                size: 1,
                checksum: Some("https://dl.k8s.io/kubelet.sha256".into()),
                sidecars: vec![Sidecar {
                    url: "https://dl.k8s.io/kubelet.sha256".into(),
                    digest: digest("s"),
                    size: 64,
                }],
                also: vec!["https://dl.k8s.io/other".into()],
                mode: Some("0755".into()),
            }],
            missing: vec![Accepted {
                kind: Kind::Image,
                name: "quay.io/gone/app:v1".into(),
                reason: "removed: upstream, \"really\"".into(),
                until: "2027-01-31".into(),
            }],
            unresolved: vec![Unresolved {
                kind: Kind::File,
                name: "https://x/y".into(),
                cause: "404 {not found}".into(),
            }],
        }
    }

    #[test]
    fn what_is_written_reads_back_and_writes_the_same() {
        let lock = sample();
        let text = lock.to_text();
        let again = Lock::parse("landfall.lock", &text).unwrap();
        assert_eq!(again, lock);
        assert_eq!(again.to_text(), text);
    }

    #[test]
    fn strange_scalars_are_quoted() {
        for text in ["0755", "a: b", "x #y", "", "true", "- a", "{a}", "a, b", "é", "a\nb", " a", "a "] {
            let document = format!("k: {}\nf: {{k: {}}}", quoted(text), quoted(text));
            let value: serde_json::Value = serde_yaml::from_str(&document).unwrap();
            assert_eq!(value["k"], text);
            assert_eq!(value["f"]["k"], text);
        }
    }

    #[test]
    fn what_no_lock_says_is_refused() {
        let mut lock = sample();
        lock.files[0].also = vec!["http://../x".into()];
        assert!(Lock::parse("l", &lock.to_text()).unwrap_err().to_string().contains("http://../x"));
        lock.files[0].also = vec!["ftp://a/x".into()];
        assert!(Lock::parse("l", &lock.to_text()).is_err());
        let mut lock = sample();
        lock.images[0].blobs[0].size = u64::MAX;
        assert!(Lock::parse("l", &lock.to_text()).unwrap_err().to_string().contains("bytes"));
    }

    #[test]
    fn a_newer_version_and_bad_lines_are_refused() {
        assert!(matches!(Lock::parse("l", "version: 2"), Err(LockError::Version { found: 2, .. })));
        assert!(Lock::parse("l", "version: 1\nbogus: 1").unwrap_err().to_string().contains("bogus"));
    }
}
