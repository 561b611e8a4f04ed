//! Iterates over the files of a folder or tar. The archive may be hostile:
//!
//! - **Names** in a tar are labels: no file is opened or written by the name of a member.
//! - **Links and devices** are skipped, in folders too.
//! - **Extended headers** are read up to 64 KiB. Long names are ignored, because blobs have short
//!   names.
//! - **Decompression bombs** cost time but no memory: members are streamed.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest extended header that is searched for a size, in bytes.
const MAX_HEADER: u64 = 64 << 10;
/// How deep folders are searched. The deepest folder that tools create is `images/blobs/sha256/`,
/// below one or two other folders.
const MAX_DEPTH: usize = 6;

/// A regular file of an archive.
pub(super) struct ArchiveMember<'a> {
    /// The path, with `/` between components.
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) reader: &'a mut dyn Read,
}

/// Calls `each` with every regular file of a tar. Fails if the tar cannot be read to its end, or
/// `each` fails.
pub(super) fn for_each_in_tar<R: Read>(
    entries: tar::Entries<'_, R>,
    each: &mut dyn FnMut(&mut ArchiveMember<'_>) -> io::Result<()>,
) -> io::Result<()> {
    // raw, because otherwise the crate reads extended headers and long names into memory without a
    // limit
    for entry in entries.raw(true) {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        if kind.is_pax_local_extensions() {
            refuse_size_override(&mut entry)?;
            continue;
        }
        // a link could point out of the archive, so its target is never opened
        if !kind.is_file() {
            continue;
        }
        let path = String::from_utf8_lossy(&entry.header().path_bytes()).into_owned();
        let size = entry.header().entry_size()?;
        each(&mut ArchiveMember {
            path: path.trim_start_matches("./").to_owned(),
            size,
            reader: &mut entry,
        })?;
    }
    Ok(())
}

/// Refuses an extended header that is too long. Also refuses a header that overrides the size of
/// the next file: the plain header alone does not say where that file ends.
fn refuse_size_override(header: &mut impl Read) -> io::Result<()> {
    let mut text = Vec::new();
    // one byte more than allowed, to tell a header that is too long from one that just fits
    header.take(MAX_HEADER + 1).read_to_end(&mut text)?;
    // records are `LENGTH KEY=VALUE` (POSIX.1, pax Extended Header)
    let has_size = text.split(|byte| *byte == b'\n').any(|line| {
        let record = line
            .iter()
            .position(|byte| *byte == b' ')
            .map(|at| &line[at + 1..]);
        record.is_some_and(|record| record.starts_with(b"size="))
    });
    if has_size || text.len() as u64 > MAX_HEADER {
        let why = "a member has more than 8 GiB or a header that is too long; unpack the archive \
                   and name the folder";
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(())
}

/// Calls `each` with every regular file of a folder and its subfolders, sorted by name. Skips
/// hidden files and folders, and everything below [`MAX_DEPTH`] levels of folders. Fails if a file
/// or folder cannot be read, or `each` fails.
pub(super) fn for_each_in_folder(
    folder: &Path,
    each: &mut dyn FnMut(&mut ArchiveMember<'_>) -> io::Result<()>,
) -> io::Result<()> {
    walk(folder, "", MAX_DEPTH, each)
}

fn walk(
    folder: &Path,
    above: &str,
    depth: usize,
    each: &mut dyn FnMut(&mut ArchiveMember<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        // skip hidden files of tools, such as the journal and partial files of a store
        if !name.as_encoded_bytes().starts_with(b".") {
            names.push((name, entry.file_type()?));
        }
    }
    // sorted, because the order of a folder depends on its file system
    names.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, kind) in names {
        let at = folder.join(&name);
        // only a label: the file is opened by `name`, which need not be UTF-8
        let path = format!("{above}{}", name.to_string_lossy());
        // the type of the entry itself: `metadata` would follow a link, possibly in a circle
        if kind.is_dir() && depth > 0 {
            walk(&at, &format!("{path}/"), depth - 1, each)?;
        } else if kind.is_file() {
            let size = std::fs::metadata(&at)?.len();
            each(&mut ArchiveMember {
                path,
                size,
                reader: &mut LazyFile { at, file: None },
            })?;
        }
    }
    Ok(())
}

/// A file that is opened at its first read, because most members are not wanted.
struct LazyFile {
    at: PathBuf,
    file: Option<File>,
}

impl Read for LazyFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.read(buffer),
            none => none.insert(File::open(&self.at)?).read(buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    /// A header with its content, padded.
    fn member(name: &str, kind: u8, size: u64, content: &[u8]) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(tar::EntryType::new(kind));
        header.set_size(size);
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes
    }

    fn names(tar: &[u8]) -> io::Result<Vec<(String, u64)>> {
        let mut found = Vec::new();
        for_each_in_tar(tar::Archive::new(tar).entries()?, &mut |member| {
            found.push((member.path.clone(), member.size));
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn only_regular_files_of_a_tar_are_members() {
        let tar = [
            member("./a", b'0', 3, b"abc"),
            member("link", b'2', 0, b""),
            member("b/", b'5', 0, b""),
            member("x", b'x', 12, b"12 path=long"),
            member("c", b'0', 0, b""),
            vec![0; 1024],
        ];
        assert_eq!(
            names(&tar.concat()).unwrap(),
            [("a".to_owned(), 3), ("c".to_owned(), 0)]
        );
    }

    #[test]
    fn an_extended_header_that_has_a_size_or_is_too_long_is_refused() {
        let sized = [
            member("x", b'x', 20, b"20 size=12345678901\n"),
            member("a", b'0', 0, b""),
        ]
        .concat();
        assert!(
            names(&sized)
                .unwrap_err()
                .to_string()
                .contains("unpack the archive")
        );
        let long = vec![b'a'; 70 << 10];
        let bomb = [
            member("x", b'x', long.len() as u64, &long),
            member("a", b'0', 0, b""),
        ]
        .concat();
        assert!(names(&bomb).is_err());
        let cut = member("a", b'0', 5000, b"abc");
        assert!(names(&cut).is_err(), "a tar that is cut short");
    }

    #[test]
    fn files_of_a_folder_are_sorted_and_hidden_files_and_links_are_skipped() {
        let dir = tempfile::tempdir().unwrap();
        for path in [
            "blobs/sha256/b",
            "blobs/sha256/a",
            ".landfall/x",
            "index.json",
        ] {
            let at = dir.path().join(path);
            std::fs::create_dir_all(at.parent().unwrap()).unwrap();
            std::fs::write(at, path).unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        let latin1 = OsStr::from_bytes(b"\xe9t\xe9");
        std::fs::create_dir(dir.path().join(latin1)).unwrap();
        std::fs::write(dir.path().join(latin1).join(latin1), "x").unwrap();
        let mut found = Vec::new();
        for_each_in_folder(dir.path(), &mut |member| {
            let mut text = String::new();
            member.reader.read_to_string(&mut text)?;
            assert_eq!(text.len() as u64, member.size);
            found.push(member.path.clone());
            Ok(())
        })
        .unwrap();
        let not_utf8 = "\u{fffd}t\u{fffd}/\u{fffd}t\u{fffd}";
        assert_eq!(
            found,
            ["blobs/sha256/a", "blobs/sha256/b", "index.json", not_utf8]
        );
    }
}
