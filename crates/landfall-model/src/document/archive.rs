//! The files of a `.tgz`, read into memory. Nothing is ever extracted to disk.
//!
//! Charts come from anywhere, so an archive may be hostile. The threats, and the defence against
//! each:
//!
//! - **Bombs.** The unpacked size and the number of members are bounded ([`ArchiveBudget`]),
//!   headers included. Archives in an archive share its budget.
//! - **Names** that lead elsewhere, or hold control characters. Names are labels only; still,
//!   absolute ones and `..` are refused.
//! - **Links and devices.** They have no content here, and are skipped.
//! - **Two members of one name**: one tool would read the first, another the last. They are
//!   refused.

use crate::Limits;
use flate2::read::MultiGzDecoder;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Component, Path};

/// Files by their path in an archive or folder, with `/` between components.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It is not a gzip or a tar, or it is cut short.
    #[error("not a readable .tgz: {0}")]
    Read(#[from] io::Error),
    /// It is larger than the limits allow.
    #[error(
        "with the archives in it, it unpacks to more than {0} bytes, or to more than {1} files"
    )]
    Large(u64, usize),
    /// A name that leads out of the archive.
    #[error("it holds a file that is called '{0}'")]
    Name(String),
    /// Two files have one name.
    #[error("it holds '{0}' twice")]
    Twice(String),
}

/// What an archive, with all archives in it, may still unpack to.
#[derive(Debug, Clone)]
pub struct ArchiveBudget {
    bytes: u64,
    members: usize,
    /// Both before anything was unpacked, for messages.
    most: (u64, usize),
}

impl ArchiveBudget {
    /// The budget of one archive from outside.
    pub fn new(limits: &Limits) -> ArchiveBudget {
        let most = (limits.archive_bytes, limits.archive_files);
        ArchiveBudget {
            bytes: most.0,
            members: most.1,
            most,
        }
    }

    /// Takes `bytes` that are held beside what is unpacked, such as a copy of it.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn take(&mut self, bytes: u64) -> Result<(), ArchiveError> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(|| self.large())?;
        Ok(())
    }

    /// Calls `each` for the members of the gzip-compressed tar `bytes`, headers that belong to
    /// others too if `raw` makes entries of them.
    ///
    /// # Errors
    /// When it is not such an archive, or unpacks to more than is left; and where `each` fails.
    pub fn members<E: From<ArchiveError> + From<io::Error>>(
        &mut self,
        bytes: &[u8],
        form: TarForm,
        mut each: impl FnMut(&mut tar::Entry<'_, &mut io::Take<MultiGzDecoder<&[u8]>>>) -> Result<(), E>,
    ) -> Result<(), E> {
        // one byte more than is allowed: an end at the bound would look like a truncated archive
        let mut source = MultiGzDecoder::new(bytes).take(self.bytes + 1);
        let (mut seen, most) = (0, self.members);
        let mut read = || {
            for entry in tar::Archive::new(&mut source)
                .entries()?
                .raw(form == TarForm::Headers)
            {
                seen += 1;
                if seen > most {
                    break;
                }
                each(&mut entry?)?;
            }
            Ok(())
        };
        // the end of the tar is not that of the gzip, which has the checksum
        let outcome: Result<(), E> = read();
        let outcome = outcome.and_then(|()| Ok(io::copy(&mut source, &mut io::sink()).map(drop)?));
        let (used, is_over) = (self.bytes + 1 - source.limit(), source.limit() == 0);
        // what could not be read has been unpacked all the same
        self.bytes = self.bytes.saturating_sub(used);
        self.members = self.members.saturating_sub(seen);
        if is_over || seen > most {
            return Err(self.large().into());
        }
        outcome
    }

    fn large(&self) -> ArchiveError {
        ArchiveError::Large(self.most.0, self.most.1)
    }
}

/// Which entries of a tar are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TarForm {
    /// Members, with the names that their extended headers give them.
    Members,
    /// Every header as an entry of its own.
    Headers,
}

/// The regular files of the gzip-compressed tar `bytes`, which are taken from `budget`.
///
/// # Errors
/// When it is not such an archive, exceeds the budget, or has names that no honest archive has.
pub fn unpack(bytes: &[u8], budget: &mut ArchiveBudget) -> Result<Files, ArchiveError> {
    let mut files = Files::new();
    budget.members(bytes, TarForm::Members, |entry| {
        if !entry.header().entry_type().is_file() {
            return Ok(());
        }
        let name = name_of(&entry.path_bytes())?;
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        match files.insert(name.clone(), content) {
            None => Ok(()),
            Some(_) => Err(ArchiveError::Twice(name)),
        }
    })?;
    Ok(files)
}

fn name_of(bytes: &[u8]) -> Result<String, ArchiveError> {
    let bad = || ArchiveError::Name(String::from_utf8_lossy(bytes).escape_default().to_string());
    let text = std::str::from_utf8(bytes).map_err(|_| bad())?;
    if text.contains(char::is_control) {
        return Err(bad());
    }
    let mut parts = Vec::new();
    for component in Path::new(text).components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str().ok_or_else(bad)?),
            Component::CurDir => {}
            _ => return Err(bad()),
        }
    }
    match parts.is_empty() || text.contains(['\\', '\0']) {
        true => Err(bad()),
        false => Ok(parts.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A member: name, type, content.
    type Member<'a> = (&'a str, u8, &'a [u8]);

    fn tgz(members: &[Member<'_>]) -> Vec<u8> {
        let mut tar = Vec::new();
        for (name, kind, content) in members {
            let mut header = tar::Header::new_gnu();
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(tar::EntryType::new(*kind));
            header.set_size(content.len() as u64);
            header.set_cksum();
            tar.extend_from_slice(header.as_bytes());
            tar.extend_from_slice(content);
            tar.resize(tar.len().next_multiple_of(512), 0);
        }
        tar.extend_from_slice(&[0; 1024]);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gzip.write_all(&tar).unwrap();
        gzip.finish().unwrap()
    }

    fn names(members: &[Member<'_>]) -> Result<Vec<String>, String> {
        let files = unpack(&tgz(members), &mut ArchiveBudget::new(&Limits::default()));
        files
            .map(|files| files.into_keys().collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn files_by_name_and_nothing_else() {
        let found = names(&[
            ("./a/b", b'0', b"x"),
            ("a/", b'5', b""),
            ("a/l", b'2', b""),
            ("c", b'0', b""),
        ]);
        assert_eq!(found.unwrap(), ["a/b", "c"]);
    }

    #[test]
    fn names_that_no_honest_archive_has() {
        for bad in ["/etc/passwd", "../x", "a/../../x", "a\\..\\b", "."] {
            assert!(
                names(&[(bad, b'0', b"x")])
                    .unwrap_err()
                    .contains("is called"),
                "{bad}"
            );
        }
        assert!(
            names(&[("a", b'0', b"1"), ("./a", b'0', b"2")])
                .unwrap_err()
                .contains("'a' twice")
        );
    }

    #[test]
    fn bombs_and_truncated_archives() {
        let limits = Limits {
            archive_bytes: 1 << 20,
            archive_files: 3,
            ..Limits::default()
        };
        let big = vec![0; 1 << 20];
        let error = |bytes: &[u8]| unpack(bytes, &mut ArchiveBudget::new(&limits)).unwrap_err();
        assert!(matches!(
            error(&tgz(&[("a", b'0', &big)])),
            ArchiveError::Large(..)
        ));
        // also in a member that is not a file, such as an extended header
        assert!(matches!(
            error(&tgz(&[("a", b'x', &big), ("b", b'0', b"")])),
            ArchiveError::Large(..)
        ));
        let many: Vec<Member<'_>> = ["a", "b", "c", "d"]
            .map(|name| (name, b'0', &b""[..]))
            .to_vec();
        assert!(matches!(error(&tgz(&many)), ArchiveError::Large(..)));
        let whole = tgz(&[("a", b'0', b"some text")]);
        assert!(matches!(
            error(&whole[..whole.len() - 12]),
            ArchiveError::Read(_)
        ));
        assert!(matches!(error(b"plain text"), ArchiveError::Read(_)));
    }

    #[test]
    fn archives_share_a_budget_also_where_one_cannot_be_read() {
        let limits = Limits {
            archive_bytes: 1 << 20,
            archive_files: 5,
            ..Limits::default()
        };
        let large = |budget: &mut ArchiveBudget, bytes: &[u8]| {
            matches!(
                unpack(bytes, budget),
                Err(ArchiveError::Large(1_048_576, 5))
            )
        };
        let third = tgz(&[("a", b'0', &vec![0; 400 << 10])]);
        let mut budget = ArchiveBudget::new(&limits);
        assert!(unpack(&third, &mut budget).is_ok() && unpack(&third, &mut budget).is_ok());
        assert!(large(&mut budget, &third));
        let mut budget = ArchiveBudget::new(&limits);
        let cut = &third[..third.len() - 12];
        assert!(unpack(cut, &mut budget).is_err() && unpack(cut, &mut budget).is_err());
        assert!(large(&mut budget, &third), "what is damaged counts too");
        let mut budget = ArchiveBudget::new(&limits);
        let two = tgz(&[("a", b'0', b""), ("b", b'0', b"")]);
        assert!(unpack(&two, &mut budget).is_ok() && unpack(&two, &mut budget).is_ok());
        assert!(large(&mut budget, &two));
        let mut budget = ArchiveBudget::new(&limits);
        assert!(budget.take(1 << 20).is_ok() && budget.take(1).is_err());
    }
}
