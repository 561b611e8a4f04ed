//! The form of content: stored or compressed. Media type and name determine it, never a trial
//! compression, so that the lock determines the offset of every stored blob.

use serde::{Deserialize, Serialize};

/// How the frames of an entry encode its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentForm {
    /// In raw blocks: the content is already compressed or encrypted.
    Stored,
    /// In blocks compressed with zstd.
    Compressed,
}

/// A media type that ends with one of these words means compressed or encrypted content:
/// `…tar+gzip`, `…tar.gzip`, `application/x-xz`.
const TYPES: [&str; 12] = [
    "gzip",
    "gz",
    "tgz",
    "zstd",
    "zst",
    "xz",
    "bzip2",
    "zip",
    "lzma",
    "lz4",
    "br",
    "encrypted",
];

/// The file name suffixes of compressed or encrypted content.
const NAMES: [&str; 24] = [
    ".gz", ".tgz", ".zst", ".tzst", ".xz", ".txz", ".bz2", ".tbz2", ".tbz", ".lzma", ".lz", ".lz4",
    ".br", ".zip", ".7z", ".rar", ".jar", ".whl", ".deb", ".rpm", ".apk", ".drpm", ".gpg", ".age",
];

impl ContentForm {
    /// The form of content with this media type and, for a file, this URL.
    pub fn of(media_type: &str, url: Option<&str>) -> ContentForm {
        let kind = media_type.split(';').next().unwrap_or(media_type).trim();
        // the last word names the outermost encoding
        let word = kind.rsplit(['+', '.', '-', '/']).next().unwrap_or(kind);
        let path = url.map(|url| {
            url.split(['?', '#'])
                .next()
                .unwrap_or(url)
                .to_ascii_lowercase()
        });
        let dense = TYPES.iter().any(|known| word.eq_ignore_ascii_case(known))
            || path.is_some_and(|path| NAMES.iter().any(|end| path.ends_with(end)));
        if dense {
            ContentForm::Stored
        } else {
            ContentForm::Compressed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_type_and_name_determine_the_form() {
        for stored in [
            "application/vnd.oci.image.layer.v1.tar+gzip",
            "application/vnd.oci.image.layer.v1.tar+zstd",
            "application/vnd.docker.image.rootfs.diff.tar.gzip",
            "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
            "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
            "application/vnd.oci.image.layer.v1.tar+gzip+encrypted",
            "application/x-xz",
            "application/zip; charset=binary",
        ] {
            assert_eq!(
                ContentForm::of(stored, None),
                ContentForm::Stored,
                "{stored}"
            );
        }
        for compressed in [
            "application/vnd.oci.image.layer.v1.tar",
            "application/vnd.oci.image.manifest.v1+json",
            "application/octet-stream",
            "",
        ] {
            assert_eq!(
                ContentForm::of(compressed, None),
                ContentForm::Compressed,
                "{compressed}"
            );
        }
        let octets = "application/octet-stream";
        for url in [
            "https://h/a.tar.gz",
            "https://h/A.TGZ?x=1#y",
            "https://h/p_1_amd64.deb",
        ] {
            assert_eq!(
                ContentForm::of(octets, Some(url)),
                ContentForm::Stored,
                "{url}"
            );
        }
        for url in [
            "https://h/kubelet",
            "https://h/a.tgz.sha256",
            "https://h/?f=a.tgz",
        ] {
            assert_eq!(
                ContentForm::of(octets, Some(url)),
                ContentForm::Compressed,
                "{url}"
            );
        }
    }
}
