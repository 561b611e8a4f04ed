//! Detects the format of an archive: a folder, or a tar that may be compressed.

use super::members::{ArchiveMember, for_each_in_folder, for_each_in_tar};
use landfall_model::document::{GzipReader, open_input};
use landfall_model::{Digest, Failure};
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

/// An archive or layout that another tool made.
#[derive(Debug, Clone)]
pub struct SourceArchive {
    path: PathBuf,
    format: SourceArchiveFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SourceArchiveFormat {
    Folder,
    Tar,
    Gzip,
    Zstd,
}

/// The offset of the magic `ustar` in the header of a tar (POSIX.1, pax).
const TAR_MAGIC_OFFSET: usize = 257;

impl SourceArchive {
    /// Detects the format of the archive at `path` by its first bytes.
    ///
    /// # Errors
    /// If it cannot be opened, or has another format.
    pub fn open(path: &Path) -> Result<SourceArchive, Failure> {
        let format = read_format(path).map_err(|error| Failure::read(path, error))?;
        let format = format.ok_or_else(|| {
            Failure::usage(format!(
                "{} is not an archive that landfall can read (a folder, or a tar, also with gzip \
                 or zstd); unpack it into a folder and name the folder",
                path.display()
            ))
        })?;
        Ok(SourceArchive {
            path: path.into(),
            format,
        })
    }

    /// Returns the path of the archive.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `each` with every regular file: in the order of the tar, or by name in a folder. Fails
    /// if the archive cannot be read to its end, or `each` fails.
    pub(super) fn members(
        &self,
        each: &mut dyn FnMut(&mut ArchiveMember<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.format == SourceArchiveFormat::Folder {
            return for_each_in_folder(&self.path, each);
        }
        let mut file = open_input(&self.path)?;
        match self.format {
            SourceArchiveFormat::Gzip => for_each_in_tar(
                tar::Archive::new(GzipReader::new(BufReader::new(file))).entries()?,
                each,
            ),
            SourceArchiveFormat::Zstd => for_each_in_tar(
                tar::Archive::new(zstd::Decoder::new(file)?).entries()?,
                each,
            ),
            _ => {
                file.rewind()?;
                // in an uncompressed tar, members that are not wanted are skipped by seeking
                for_each_in_tar(tar::Archive::new(file).entries_with_seek()?, each)
            }
        }
    }
}

/// Returns the format of a file or folder, or `None` if it is not known.
fn read_format(path: &Path) -> io::Result<Option<SourceArchiveFormat>> {
    if std::fs::metadata(path)?.is_dir() {
        return Ok(Some(SourceArchiveFormat::Folder));
    }
    let mut first = Vec::new();
    // the magic of a tar is in its first block of 512 bytes
    open_input(path)?.take(512).read_to_end(&mut first)?;
    Ok(detect_format(&first))
}

/// Whether a zstd stream may begin with this magic number: that of a frame, or of a skippable frame
/// (RFC 8878, 3.1.2).
fn begins_zstd(number: u32) -> bool {
    number == zstd::zstd_safe::MAGICNUMBER || number & 0xffff_fff0 == 0x184d_2a50
}

fn detect_format(first: &[u8]) -> Option<SourceArchiveFormat> {
    match first {
        [0x1f, 0x8b, ..] => Some(SourceArchiveFormat::Gzip),
        [a, b, c, d, ..] if begins_zstd(u32::from_le_bytes([*a, *b, *c, *d])) => {
            Some(SourceArchiveFormat::Zstd)
        }
        _ => first
            .get(TAR_MAGIC_OFFSET..)?
            .starts_with(b"ustar")
            .then_some(SourceArchiveFormat::Tar),
    }
}

// Recognizes digests and uncompressed layers by the names of members.

/// Returns the digest in the name of a member: `blobs/sha256/<hex>` in OCI layouts, in any folder;
/// `<hex>`, `<hex>.tar`, `<hex>.json`, `sha256:<hex>` and `<hex>.tar.gz` in docker archives of
/// skopeo and crane, and in `dir:` of skopeo.
pub(super) fn digest_of_name(path: &str) -> Option<Digest> {
    // read from the end, because tools put the layout into folders with various names
    let mut parts = path.rsplit('/');
    let name = parts.next()?;
    if let (Some(algorithm), Some("blobs")) = (parts.next(), parts.next())
        && let Ok(digest) = format!("{algorithm}:{name}").parse()
    {
        return Some(digest);
    }
    // the names in docker archives contain no algorithm; all docker archives use SHA-256
    let name = name.strip_prefix("sha256:").unwrap_or(name);
    let endings = [".tar.gz", ".tar", ".json"];
    let hex = endings
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .unwrap_or(name);
    // only the file name may be a digest: docker archives name folders by the IDs of layers
    (hex.len() == 64).then(|| format!("sha256:{hex}").parse().ok())?
}

/// Whether a member is an uncompressed layer of a docker archive: `<id>/layer.tar` or `<hex>.tar`.
/// In the registry, the same layer is compressed and has another digest.
pub(super) fn is_unpacked_layer(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name == "layer.tar" || (name.ends_with(".tar") && digest_of_name(path).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_detected_by_the_first_bytes() {
        let mut tar = vec![0; 512];
        tar[TAR_MAGIC_OFFSET..TAR_MAGIC_OFFSET + 5].copy_from_slice(b"ustar");
        assert_eq!(detect_format(&tar), Some(SourceArchiveFormat::Tar));
        assert_eq!(
            detect_format(&[0x1f, 0x8b, 8]),
            Some(SourceArchiveFormat::Gzip)
        );
        assert_eq!(
            detect_format(&[0x28, 0xb5, 0x2f, 0xfd]),
            Some(SourceArchiveFormat::Zstd)
        );
        assert_eq!(
            detect_format(&[0x5e, 0x2a, 0x4d, 0x18]),
            Some(SourceArchiveFormat::Zstd)
        );
        for other in [&b"\xfd7zXZ\0"[..], b"BZh9", b"PK\x03\x04", b"", b"{}"] {
            assert_eq!(detect_format(other), None);
        }
    }

    #[test]
    fn an_unknown_format_is_an_error_with_advice() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.zip");
        std::fs::write(&path, "PK").unwrap();
        let message = SourceArchive::open(&path).unwrap_err().to_string();
        assert!(
            message.contains("a.zip is not an archive")
                && message.contains("unpack it into a folder"),
            "{message}"
        );
        assert!(
            SourceArchive::open(&dir.path().join("none"))
                .unwrap_err()
                .to_string()
                .contains("cannot read")
        );
        assert_eq!(
            SourceArchive::open(dir.path()).unwrap().format,
            SourceArchiveFormat::Folder
        );
        let pipe = dir.path().join("pipe");
        let kind = rustix::fs::FileType::Fifo;
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        assert!(
            SourceArchive::open(&pipe)
                .unwrap_err()
                .to_string()
                .contains("a named pipe")
        );
    }

    #[test]
    fn digests_are_recognized_in_the_names_that_tools_write() {
        let hex = "ab".repeat(32);
        let digest: Digest = format!("sha256:{hex}").parse().unwrap();
        for name in [
            format!("blobs/sha256/{hex}"),
            format!("images/blobs/sha256/{hex}"),
            format!("{hex}.tar.gz"),
            format!("sha256:{hex}"),
            format!("{hex}.json"),
            format!("{hex}.tar"),
            hex.clone(),
        ] {
            assert_eq!(digest_of_name(&name), Some(digest.clone()), "{name}");
        }
        for name in [
            "index.json",
            "manifest.json",
            "oci-layout",
            "blobs/sha256/x",
            "repositories",
            "a.tar",
        ] {
            assert_eq!(digest_of_name(name), None, "{name}");
        }
        assert!(
            is_unpacked_layer(&format!("{hex}/layer.tar"))
                && is_unpacked_layer(&format!("{hex}.tar"))
        );
        assert!(
            !is_unpacked_layer(&format!("{hex}.tar.gz")) && !is_unpacked_layer("components/a.tar")
        );
    }
}
