//! The files of a `.tgz`, read into memory. Nothing is ever extracted to disk.
//!
//! Charts come from anywhere, so an archive may be hostile. The threats, and the defence against each:
//!
//! - **Bombs.** The unpacked size and the number of members are bounded ([`Limits`]), headers included.
//! - **Names** that lead elsewhere, or hold control characters. Names are labels only; still, absolute ones
//!   and `..` are refused.
//! - **Links and devices.** They have no content here, and are skipped.
//! - **Two members of one name**: one tool would read the first, another the last. They are refused.

use crate::model::Limits;
use flate2::read::MultiGzDecoder;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Component, Path};

/// Files by their path in an archive or folder, with `/` between components.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    /// It is not a gzip or a tar, or it is cut short.
    #[error("not a readable .tgz: {0}")]
    Read(#[from] io::Error),
    /// It is larger than the limits allow.
    #[error("it unpacks to more than {0} bytes, or to more than {1} files")]
    Large(u64, usize),
    /// A name that leads out of the archive.
    #[error("it holds a file that is called '{0}'")]
    Name(String),
    /// Two files have one name.
    #[error("it holds '{0}' twice")]
    Twice(String),
}

/// The regular files of the gzip-compressed tar `bytes`.
///
/// # Errors
/// When it is not such an archive, exceeds `limits`, or has names that no honest archive has.
pub(crate) fn unpack(bytes: &[u8], limits: &Limits) -> Result<Files, ArchiveError> {
    let large = || ArchiveError::Large(limits.archive_bytes, limits.archive_files);
    // one byte more than is allowed: an end at the bound would look like a truncated archive
    let mut source = MultiGzDecoder::new(bytes).take(limits.archive_bytes + 1);
    let mut files = Files::new();
    let mut members = 0;
    let outcome = read_all(&mut source, &mut files, &mut members, limits.archive_files);
    if source.limit() == 0 || members > limits.archive_files {
        return Err(large());
    }
    outcome.map(|()| files)
}

fn read_all(
    source: &mut impl Read,
    files: &mut Files,
    members: &mut usize,
    most: usize,
) -> Result<(), ArchiveError> {
    for entry in tar::Archive::new(&mut *source).entries()? {
        let mut entry = entry?;
        *members += 1;
        if *members > most {
            return Ok(());
        }
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = name_of(&entry.path_bytes())?;
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        if files.insert(name.clone(), content).is_some() {
            return Err(ArchiveError::Twice(name));
        }
    }
    // the end of the tar is not that of the gzip, which has the checksum
    io::copy(source, &mut io::sink())?;
    Ok(())
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
        let files = unpack(&tgz(members), &Limits::default());
        files.map(|files| files.into_keys().collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn files_by_name_and_nothing_else() {
        let found = names(&[("./a/b", b'0', b"x"), ("a/", b'5', b""), ("a/l", b'2', b""), ("c", b'0', b"")]);
        assert_eq!(found.unwrap(), ["a/b", "c"]);
    }

    #[test]
    fn names_that_no_honest_archive_has() {
        for bad in ["/etc/passwd", "../x", "a/../../x", "a\\..\\b", "."] {
            assert!(names(&[(bad, b'0', b"x")]).unwrap_err().contains("is called"), "{bad}");
        }
        assert!(names(&[("a", b'0', b"1"), ("./a", b'0', b"2")]).unwrap_err().contains("'a' twice"));
    }

    #[test]
    fn bombs_and_truncated_archives() {
        let limits = Limits { archive_bytes: 1 << 20, archive_files: 3, ..Limits::default() };
        let big = vec![0; 1 << 20];
        let error = |bytes: &[u8]| unpack(bytes, &limits).unwrap_err();
        assert!(matches!(error(&tgz(&[("a", b'0', &big)])), ArchiveError::Large(..)));
        // also in a member that is not a file, such as an extended header
        assert!(matches!(error(&tgz(&[("a", b'x', &big), ("b", b'0', b"")])), ArchiveError::Large(..)));
        let many: Vec<Member<'_>> = ["a", "b", "c", "d"].map(|name| (name, b'0', &b""[..])).to_vec();
        assert!(matches!(error(&tgz(&many)), ArchiveError::Large(..)));
        let whole = tgz(&[("a", b'0', b"some text")]);
        assert!(matches!(error(&whole[..whole.len() - 12]), ArchiveError::Read(_)));
        assert!(matches!(error(b"plain text"), ArchiveError::Read(_)));
    }
}
