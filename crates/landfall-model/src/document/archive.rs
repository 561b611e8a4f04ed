//! Reads the files of a `.tgz`, such as a Helm chart and the charts in it, into memory. Nothing is
//! ever extracted to disk.
//!
//! Charts come from any server, so an archive may be hostile. The threats and the defences:
//!
//! - **Decompression bombs.** The unpacked size, headers included, and the number of members are
//!   limited ([`ArchiveBudget`]). Archives within an archive share its budget.
//! - **Path traversal** and control characters in names. Names are only labels here; still,
//!   absolute names, `..` and control characters are refused. A backslash is a separator, as it is
//!   for helm, since archives are also packed on Windows.
//! - **Links and devices** have no content here, and are skipped.
//! - **Two files with one name**: the last one counts, as for helm. Two files Chart.yaml are
//!   refused, since helm merges them.
//!
//! [`GzipReader`] also reads other files, as `gzip -d` does.

use crate::{Failure, Limits};
use flate2::bufread::GzDecoder;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::path::{Component, Path};

/// Files by their path in an archive or folder, with `/` between components.
pub type UnpackedFiles = BTreeMap<String, Vec<u8>>;

/// The failure of an archive that is not a gzipped tar, or is truncated. As in all failures of this
/// file, the message calls the archive "it".
pub fn unreadable_archive(error: io::Error) -> Failure {
    Failure::usage(format!("not a readable .tgz: {error}"))
}

/// How much an archive, with all archives in it, may still unpack to.
#[derive(Debug, Clone)]
pub struct ArchiveBudget {
    bytes: u64,
    members: usize,
    /// The initial `bytes`, for messages.
    max_bytes: u64,
    /// The initial `members`, for messages.
    max_members: usize,
}

impl ArchiveBudget {
    /// Returns the budget for one downloaded archive.
    pub fn new(limits: &Limits) -> ArchiveBudget {
        ArchiveBudget {
            bytes: limits.archive_bytes,
            members: limits.archive_files,
            max_bytes: limits.archive_bytes,
            max_members: limits.archive_files,
        }
    }

    /// Subtracts `bytes` that are held in memory in addition to the unpacked ones, such as a copy.
    ///
    /// # Errors
    /// Fails if fewer bytes are left.
    pub fn take(&mut self, bytes: u64) -> Result<(), Failure> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(|| self.large())?;
        Ok(())
    }

    /// Calls `each` for each entry that `form` selects in the gzipped tar `bytes`.
    ///
    /// # Errors
    /// Fails if `bytes` are not a gzipped tar, if they exceed the budget, or if `each` fails.
    pub fn members<E: From<Failure>>(
        &mut self,
        bytes: &[u8],
        form: TarForm,
        mut each: impl FnMut(&mut tar::Entry<'_, &mut io::Take<GzipReader<&[u8]>>>) -> Result<(), E>,
    ) -> Result<(), E> {
        // one byte more than the limit, to distinguish an archive that exceeds it from a truncated
        // one
        let mut source = GzipReader::new(bytes).take(self.bytes + 1);
        let max = self.members;
        let mut seen = 0;
        let mut read = || -> Result<(), E> {
            for entry in tar::Archive::new(&mut source)
                .entries()
                .map_err(unreadable_archive)?
                .raw(form == TarForm::Headers)
            {
                seen += 1;
                if seen > max {
                    return Ok(());
                }
                each(&mut entry.map_err(unreadable_archive)?)?;
            }
            // read to the end: the checksum of the gzip follows the end of the tar
            io::copy(&mut source, &mut io::sink()).map_err(unreadable_archive)?;
            Ok(())
        };
        let outcome = read();
        let is_exceeded = source.limit() == 0;
        // bytes that were unpacked before an error count too
        let used = self.bytes + 1 - source.limit();
        self.bytes = self.bytes.saturating_sub(used);
        self.members = self.members.saturating_sub(seen);
        if is_exceeded || seen > max {
            return Err(self.large().into());
        }
        outcome
    }

    /// The failure of an archive that exceeds a limit.
    fn large(&self) -> Failure {
        Failure::usage(format!(
            "with the archives in it, it unpacks to more than {} bytes, or to more than {} members",
            self.max_bytes, self.max_members
        ))
    }
}

/// Which entries of a tar are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TarForm {
    /// The members, with the names from their extended headers.
    Members,
    /// Every header, extended ones included, as an entry of its own.
    Headers,
}

/// Returns the regular files of the gzipped tar `bytes`, and subtracts the unpacked size and the
/// number of members from `budget`.
///
/// # Errors
/// Fails if `bytes` are not a gzipped tar or exceed the budget, or if a name is unsafe or repeated.
pub fn unpack(bytes: &[u8], budget: &mut ArchiveBudget) -> Result<UnpackedFiles, Failure> {
    unpack_members(bytes, budget, false)
}

/// Like [`unpack`]. If `is_chart` is set, returns only files in top-level folders, by their paths
/// below these.
fn unpack_members(
    bytes: &[u8],
    budget: &mut ArchiveBudget,
    is_chart: bool,
) -> Result<UnpackedFiles, Failure> {
    let mut files = UnpackedFiles::new();
    budget.members(bytes, TarForm::Members, |entry| {
        if !entry.header().entry_type().is_file() {
            return Ok(());
        }
        let member = safe_name(&entry.path_bytes())?;
        let name = match member.split_once('/') {
            Some((_, below)) if is_chart => below,
            None if is_chart => return Ok(()),
            _ => member.as_str(),
        };
        let mut content = Vec::new();
        entry
            .read_to_end(&mut content)
            .map_err(unreadable_archive)?;
        let is_metadata = name.rsplit('/').next() == Some("Chart.yaml");
        match files.insert(name.to_owned(), content) {
            Some(_) if is_metadata => Err(Failure::usage(format!(
                "it contains '{name}' twice, which helm would merge"
            ))),
            _ => Ok(()),
        }
    })?;
    Ok(files)
}

/// The name of a member, without `.` components.
fn safe_name(bytes: &[u8]) -> Result<String, Failure> {
    let bad = || {
        let name = String::from_utf8_lossy(bytes);
        Failure::usage(format!(
            "it contains a file with the unsafe name '{}'",
            name.escape_default()
        ))
    };
    let text = std::str::from_utf8(bytes).map_err(|_| bad())?;
    if text.contains(char::is_control) {
        return Err(bad());
    }
    let text = text.replace('\\', "/");
    let mut parts = Vec::new();
    for component in Path::new(&text).components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str().ok_or_else(bad)?),
            Component::CurDir => {}
            _ => return Err(bad()),
        }
    }
    if parts.is_empty() {
        return Err(bad());
    }
    Ok(parts.join("/"))
}

/// Unpacks the archive of a chart. Returns its files by their paths below its top-level folder.
///
/// # Errors
/// Fails as [`unpack`] does.
pub fn unpack_chart(archive: &[u8], budget: &mut ArchiveBudget) -> Result<UnpackedFiles, Failure> {
    // the top-level folder has the name of the chart, or any other name; for helm, files of several
    // folders are those of one chart, in the order of the archive
    unpack_members(archive, budget, true)
}

/// A chart that is bundled in another one: an archive or a folder.
pub enum BundledChart {
    /// The files of a folder.
    Folder(UnpackedFiles),
    /// A `.tgz`.
    Archive(Vec<u8>),
}

/// Returns the charts in the folder `charts/` of a chart with these files, each with the name of
/// its folder or archive: first the archives, then the folders.
pub fn bundled_charts(files: UnpackedFiles) -> Vec<(String, BundledChart)> {
    let mut folders = BTreeMap::<String, UnpackedFiles>::new();
    let mut all = Vec::new();
    for (name, content) in files {
        // Helm ignores names that begin with `_` or `.`
        let Some(below) = name
            .strip_prefix("charts/")
            .filter(|below| !below.starts_with(['_', '.']))
        else {
            continue;
        };
        match below.split_once('/') {
            Some((folder, rest)) => {
                folders
                    .entry(folder.to_owned())
                    .or_default()
                    .insert(rest.to_owned(), content);
            }
            None if below.ends_with(".tgz") => {
                all.push((below.to_owned(), BundledChart::Archive(content)));
            }
            None => {}
        }
    }
    // Helm ignores a folder without a Chart.yaml
    let folders = folders
        .into_iter()
        .filter(|(_, files)| files.contains_key("Chart.yaml"));
    all.extend(folders.map(|(name, files)| (name, BundledChart::Folder(files))));
    all
}

// Gzip, in which an archive and other files are packed.

/// The first byte of a member (RFC 1952, 2.3.1).
const MAGIC: u8 = 0x1f;

/// The unpacked content of a gzip file. Members that follow each other are one text, as parallel
/// compressors write them. What follows the last one is ignored, such as zeros that fill a block.
pub struct GzipReader<R>(Option<GzDecoder<R>>);

impl<R: BufRead> GzipReader<R> {
    /// Returns a reader of what `compressed` unpacks to.
    pub fn new(compressed: R) -> GzipReader<R> {
        GzipReader(Some(GzDecoder::new(compressed)))
    }
}

impl<R: BufRead> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let is_followed = member.get_mut().fill_buf()?.first() == Some(&MAGIC);
            let ended = self.0.take().filter(|_| is_followed);
            self.0 = ended.map(|ended| GzDecoder::new(ended.into_inner()));
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::{BufReader, Write};

    /// The name, type and content of a member.
    type TarMember<'a> = (&'a str, u8, &'a [u8]);

    fn tgz(members: &[TarMember<'_>]) -> Vec<u8> {
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
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(&tar).unwrap();
        gzip.finish().unwrap()
    }

    fn names(members: &[TarMember<'_>]) -> Result<Vec<String>, String> {
        let files = unpack(&tgz(members), &mut ArchiveBudget::new(&Limits::default()));
        files
            .map(|files| files.into_keys().collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn only_regular_files_are_unpacked() {
        let found = names(&[
            ("./a/b", b'0', b"x"),
            ("a/", b'5', b""),
            ("a/l", b'2', b""),
            ("c", b'0', b""),
        ]);
        assert_eq!(found.unwrap(), ["a/b", "c"]);
    }

    #[test]
    fn unsafe_names_and_repeated_metadata_are_refused() {
        for bad in ["/etc/passwd", "../x", "a/../../x", "a\\..\\b", "\\a", "."] {
            assert!(
                names(&[(bad, b'0', b"x")])
                    .unwrap_err()
                    .contains("unsafe name"),
                "{bad}"
            );
        }
        assert!(
            names(&[("a/Chart.yaml", b'0', b"1"), ("a\\Chart.yaml", b'0', b"2")])
                .unwrap_err()
                .contains("'a/Chart.yaml' twice")
        );
    }

    #[test]
    fn the_last_of_several_files_counts_and_a_backslash_is_a_separator() {
        let members: [TarMember<'_>; 3] = [
            ("a\\b", b'0', b"1"),
            ("./a/b", b'0', b"2"),
            ("a\\c", b'0', b"3"),
        ];
        let files = unpack(&tgz(&members), &mut ArchiveBudget::new(&Limits::default())).unwrap();
        let found: Vec<(&str, &[u8])> = files
            .iter()
            .map(|(name, text)| (&**name, &**text))
            .collect();
        assert_eq!(found, [("a/b", &b"2"[..]), ("a/c", b"3")]);
    }

    #[test]
    fn several_top_level_folders_are_one_chart() {
        let chart = |members: &[TarMember<'_>]| {
            unpack_chart(&tgz(members), &mut ArchiveBudget::new(&Limits::default()))
        };
        let files = chart(&[
            ("z/Chart.yaml", b'0', b"1"),
            ("z/a", b'0', b"2"),
            ("b/a", b'0', b"3"),
            ("c", b'0', b"4"),
        ]);
        let files = files.unwrap();
        assert_eq!(files["a"], b"3", "the last one in the archive");
        assert_eq!(files.len(), 2);
        let twice = chart(&[("z/Chart.yaml", b'0', b"1"), ("b/Chart.yaml", b'0', b"2")]);
        assert!(twice.unwrap_err().message.contains("'Chart.yaml' twice"));
    }

    #[test]
    fn bombs_and_truncated_archives_are_refused() {
        let limits = Limits {
            archive_bytes: 1 << 20,
            archive_files: 3,
            ..Limits::default()
        };
        let big = vec![0; 1 << 20];
        let budget = || ArchiveBudget::new(&limits);
        let error = |bytes: &[u8]| unpack(bytes, &mut budget()).unwrap_err();
        let is_unreadable =
            |bytes: &[u8]| error(bytes).message.starts_with("not a readable .tgz: ");
        assert_eq!(error(&tgz(&[("a", b'0', &big)])), budget().large());
        // also in a member that is not a file, such as an extended header
        assert_eq!(
            error(&tgz(&[("a", b'x', &big), ("b", b'0', b"")])),
            budget().large()
        );
        let many: Vec<TarMember<'_>> = ["a", "b", "c", "d"]
            .map(|name| (name, b'0', &b""[..]))
            .to_vec();
        assert_eq!(error(&tgz(&many)), budget().large());
        let whole = tgz(&[("a", b'0', b"some text")]);
        assert!(is_unreadable(&whole[..whole.len() - 12]));
        assert!(is_unreadable(b"plain text"));
    }

    #[test]
    fn archives_share_a_budget_even_if_one_cannot_be_read() {
        let limits = Limits {
            archive_bytes: 1 << 20,
            archive_files: 5,
            ..Limits::default()
        };
        let large = |budget: &mut ArchiveBudget, bytes: &[u8]| {
            let exceeded = "more than 1048576 bytes, or to more than 5 members";
            unpack(bytes, budget).is_err_and(|error| error.message.ends_with(exceeded))
        };
        let third = tgz(&[("a", b'0', &vec![0; 400 << 10])]);
        let mut budget = ArchiveBudget::new(&limits);
        assert!(unpack(&third, &mut budget).is_ok() && unpack(&third, &mut budget).is_ok());
        assert!(large(&mut budget, &third));
        let mut budget = ArchiveBudget::new(&limits);
        let cut = &third[..third.len() - 12];
        assert!(unpack(cut, &mut budget).is_err() && unpack(cut, &mut budget).is_err());
        assert!(large(&mut budget, &third), "a damaged archive counts too");
        let mut budget = ArchiveBudget::new(&limits);
        let two = tgz(&[("a", b'0', b""), ("b", b'0', b"")]);
        assert!(unpack(&two, &mut budget).is_ok() && unpack(&two, &mut budget).is_ok());
        assert!(large(&mut budget, &two));
        let mut budget = ArchiveBudget::new(&limits);
        assert!(budget.take(1 << 20).is_ok() && budget.take(1).is_err());
    }

    #[test]
    fn members_are_joined_and_what_follows_them_is_ignored() {
        let member = |text: &str| {
            let mut writer = GzEncoder::new(Vec::new(), Compression::fast());
            writer.write_all(text.as_bytes()).unwrap();
            writer.finish().unwrap()
        };
        let unpacked = |bytes: &[u8], piece: usize| {
            let mut text = String::new();
            GzipReader::new(BufReader::with_capacity(piece, bytes)).read_to_string(&mut text)?;
            io::Result::Ok(text)
        };
        let both = [member("one "), member("two")].concat();
        for piece in [1, 2, 7, 1 << 10] {
            for end in [&b""[..], &[0; 700], b"\n", b"signature"] {
                let bytes = [&both, end].concat();
                assert_eq!(unpacked(&bytes, piece).unwrap(), "one two");
            }
            for wrong in [
                &both[..both.len() - 1],
                &both[..9],
                &[&both[..], b"\x1f\x8b"].concat(),
                b"one",
            ] {
                unpacked(wrong, piece).unwrap_err();
            }
        }
    }
}
