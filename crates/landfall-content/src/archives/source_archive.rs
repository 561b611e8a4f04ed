//! What stands at a path: a folder, or a tar in one of the forms that tools write.

use super::error::SourceArchiveError;
use super::members::{ArchiveMember, in_folder, in_tar};
use flate2::read::MultiGzDecoder;
use landfall_model::document::open_input;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

/// An archive or a layout of another tool.
#[derive(Debug, Clone)]
pub struct SourceArchive {
    path: PathBuf,
    form: ArchiveFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArchiveFormat {
    Folder,
    Tar,
    Gzip,
    Zstd,
}

/// Bytes of a tar's header up to its magic, which is `ustar` in all that write one.
const MAGIC_AT: usize = 257;

impl SourceArchive {
    /// The archive at `path`, told by its first bytes.
    ///
    /// # Errors
    /// When it cannot be opened, or is something else.
    pub fn open(path: &Path) -> Result<SourceArchive, SourceArchiveError> {
        let failed = |source| SourceArchiveError::Open {
            path: path.into(),
            source,
        };
        let form = match std::fs::metadata(path).map_err(failed)?.is_dir() {
            true => Some(ArchiveFormat::Folder),
            false => {
                let mut first = Vec::new();
                open_input(path)
                    .map_err(failed)?
                    .take(512)
                    .read_to_end(&mut first)
                    .map_err(failed)?;
                form_of(&first)
            }
        };
        let form = form.ok_or_else(|| SourceArchiveError::Unknown { path: path.into() })?;
        Ok(SourceArchive {
            path: path.into(),
            form,
        })
    }

    /// Where it stands.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Shows every regular file of it to `each`, in its order; that of a folder is by name.
    ///
    /// # Errors
    /// When it cannot be read to its end, and where `each` fails.
    pub(super) fn members(
        &self,
        each: &mut dyn FnMut(&mut ArchiveMember<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.form == ArchiveFormat::Folder {
            return in_folder(&self.path, each);
        }
        let mut file = open_input(&self.path)?;
        match self.form {
            ArchiveFormat::Gzip => in_tar(
                tar::Archive::new(MultiGzDecoder::new(BufReader::new(file))).entries()?,
                each,
            ),
            ArchiveFormat::Zstd => in_tar(
                tar::Archive::new(zstd::Decoder::new(file)?).entries()?,
                each,
            ),
            _ => {
                file.rewind()?;
                // what is not wanted is jumped over
                in_tar(tar::Archive::new(file).entries_with_seek()?, each)
            }
        }
    }
}

fn form_of(first: &[u8]) -> Option<ArchiveFormat> {
    let is_skippable = |number: u32| number & 0xffff_fff0 == 0x184d_2a50;
    match first {
        [0x1f, 0x8b, ..] => Some(ArchiveFormat::Gzip),
        [a, b, c, d, ..]
            if u32::from_le_bytes([*a, *b, *c, *d]) == zstd::zstd_safe::MAGICNUMBER
                || is_skippable(u32::from_le_bytes([*a, *b, *c, *d])) =>
        {
            Some(ArchiveFormat::Zstd)
        }
        _ => first
            .get(MAGIC_AT..)?
            .starts_with(b"ustar")
            .then_some(ArchiveFormat::Tar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_told_by_its_first_bytes() {
        let mut tar = vec![0; 512];
        tar[MAGIC_AT..MAGIC_AT + 5].copy_from_slice(b"ustar");
        assert_eq!(form_of(&tar), Some(ArchiveFormat::Tar));
        assert_eq!(form_of(&[0x1f, 0x8b, 8]), Some(ArchiveFormat::Gzip));
        assert_eq!(
            form_of(&[0x28, 0xb5, 0x2f, 0xfd]),
            Some(ArchiveFormat::Zstd)
        );
        assert_eq!(
            form_of(&[0x5e, 0x2a, 0x4d, 0x18]),
            Some(ArchiveFormat::Zstd)
        );
        for other in [&b"\xfd7zXZ\0"[..], b"BZh9", b"PK\x03\x04", b"", b"{}"] {
            assert_eq!(form_of(other), None);
        }
    }

    #[test]
    fn what_is_no_archive_is_named_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.zip");
        std::fs::write(&path, "PK").unwrap();
        let told = SourceArchive::open(&path).unwrap_err().to_string();
        assert!(
            told.contains("a.zip is no archive") && told.contains("unpack it into a folder"),
            "{told}"
        );
        assert!(
            SourceArchive::open(&dir.path().join("none"))
                .unwrap_err()
                .to_string()
                .contains("cannot read")
        );
        assert_eq!(
            SourceArchive::open(dir.path()).unwrap().form,
            ArchiveFormat::Folder
        );
        let pipe = dir.path().join("pipe");
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        assert!(
            SourceArchive::open(&pipe)
                .unwrap_err()
                .to_string()
                .contains("a named pipe")
        );
    }
}
