//! The files of a stream: those of a tar archive, or the stream itself.

use crate::PatchError;
use ring::digest::{Context, SHA256};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};

/// The maximum number of files of a listing: 6 MB of memory. The content after them counts as one
/// file.
const MAX_FILES: usize = 1 << 16;

/// The maximum size of an extended header (a long path or attributes) that is read into memory. The
/// bytes from a larger header on count as one file.
const MAX_EXTENDED_HEADER: u64 = 1 << 20;

/// The files of a plain stream in order. They cover it without gaps.
#[derive(Debug, Default)]
pub struct Listing {
    pub(crate) files: Vec<ListedFile>,
}

/// A file of a tar archive with the headers before it and the padding after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedFile {
    /// The offset of its first header in the stream.
    pub(crate) offset: u64,
    /// The length of its headers.
    pub(crate) header: u64,
    /// The length of its content.
    pub(crate) content: u64,
    /// The length of the padding, up to the headers of the next file or the end of the stream.
    pub(crate) padding: u64,
    /// SHA-256 of the content; `None` for bytes that are not a file of an archive.
    pub(crate) sha256: Option<[u8; 32]>,
    /// The hash of the path.
    pub(crate) path: u64,
    /// The hash of the path without its digits. `libssl.so.3.0.13` and its older version
    /// `libssl.so.3.0.11` have the same hash.
    pub(crate) path_without_digits: u64,
    /// The hash of the path's last component without its digits.
    pub(crate) name_without_digits: u64,
}

impl ListedFile {
    /// The length of headers, content and padding.
    pub(crate) fn length(&self) -> u64 {
        self.header + self.content + self.padding
    }

    /// The offset of the content in the stream.
    pub(crate) fn content_offset(&self) -> u64 {
        self.offset + self.header
    }
}

impl Listing {
    /// Lists the files of `plain`, which is read to its end. A stream that is not a tar archive
    /// counts as one file, and so do the bytes after the last complete file of an archive.
    ///
    /// # Errors
    /// If `plain` cannot be read.
    pub fn read(plain: impl Read) -> Result<Listing, PatchError> {
        let failed = PatchError::reading("a plain stream");
        let mut input = CountingReader {
            inner: plain,
            count: 0,
            error: None,
        };
        let mut files = Vec::new();
        // the offset after the last complete file
        let mut end = 0;
        let mut archive = tar::Archive::new(&mut input);
        // an error below means that the stream is not a tar archive from that offset on
        if let Ok(entries) = archive.entries() {
            // the path in the extended headers before a file
            let mut extended = None;
            // raw: otherwise the tar crate reads extended headers into memory without a limit
            for entry in entries.raw(true) {
                let Ok(mut entry) = entry else { break };
                let kind = entry.header().entry_type();
                if kind.is_gnu_sparse() || files.len() == MAX_FILES {
                    break;
                }
                if kind.is_gnu_longname()
                    || kind.is_gnu_longlink()
                    || kind.is_pax_local_extensions()
                {
                    match extended_path(&mut entry, kind) {
                        Ok(path) => extended = path.or(extended),
                        Err(_) => break,
                    }
                    continue;
                }
                let start = entry.raw_file_position();
                let path = extended
                    .take()
                    .unwrap_or_else(|| entry.header().path_bytes().into_owned());
                let Ok((content, sha256)) = hash(&mut entry) else {
                    break;
                };
                let padding = content.next_multiple_of(512) - content;
                files.push(ListedFile::new(
                    end,
                    start - end,
                    content,
                    padding,
                    Some(sha256),
                    &path,
                ));
                end = start + content + padding;
            }
        }
        if let Some(error) = input.error.take() {
            return Err(failed(error));
        }
        // count the rest of the stream; the padding of the last file may be missing
        io::copy(&mut input, &mut io::sink()).map_err(failed)?;
        let total = input.count;
        while files
            .last()
            .is_some_and(|last| last.offset + last.header + last.content > total)
        {
            files.pop();
        }
        if let Some(last) = files.last_mut() {
            last.padding = last
                .padding
                .min(total - last.offset - last.header - last.content);
        }
        end = files.last().map_or(0, |last| last.offset + last.length());
        if end < total {
            let rest = total - end;
            // a stream that is not an archive has the empty name, so it is compared with a base
            // that is not an archive either
            let name: &[u8] = if files.is_empty() { b"" } else { b"\0end" };
            files.push(ListedFile::new(end, 0, rest, 0, None, name));
        }
        Ok(Listing { files })
    }
}

impl Listing {
    /// Returns the share (0 to 1) of the files' content that `base` has too. A file counts fully if
    /// `base` has its content, and half if `base` only has its path, compared without digits.
    pub fn similarity(&self, base: &Listing) -> f64 {
        let contents: HashSet<[u8; 32]> =
            base.files.iter().filter_map(|file| file.sha256).collect();
        let paths: HashSet<u64> = base
            .files
            .iter()
            .map(|file| file.path_without_digits)
            .collect();
        let mut total = 0;
        let mut common = 0.0;
        for file in &self.files {
            total += file.content;
            if file.sha256.is_some_and(|sha256| contents.contains(&sha256)) {
                common += file.content as f64;
            } else if paths.contains(&file.path_without_digits) {
                common += file.content as f64 / 2.0;
            }
        }
        common / total.max(1) as f64
    }
}

impl ListedFile {
    fn new(
        offset: u64,
        header: u64,
        content: u64,
        padding: u64,
        sha256: Option<[u8; 32]>,
        path: &[u8],
    ) -> ListedFile {
        let path = path.strip_prefix(b"./").unwrap_or(path);
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let without_digits = |bytes: &[u8]| -> Vec<u8> {
            bytes
                .iter()
                .copied()
                .filter(|byte| !byte.is_ascii_digit())
                .collect()
        };
        ListedFile {
            offset,
            header,
            content,
            padding,
            sha256,
            path: hash_of(path),
            path_without_digits: hash_of(&without_digits(path)),
            name_without_digits: hash_of(&without_digits(name)),
        }
    }
}

/// The path in an extended header of the kind `kind`, if it has one. For archives that are read as
/// raw entries, because otherwise the tar crate reads extended headers into memory without a limit.
///
/// # Errors
/// If the header cannot be read, has more than 1 MiB, or contains the size of the next file: raw
/// entries ignore that size, so the end of the file would be wrong.
pub fn extended_path(header: &mut impl Read, kind: tar::EntryType) -> io::Result<Option<Vec<u8>>> {
    let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut text = Vec::new();
    // one byte more than allowed, to detect a header that is too long
    let limited = &mut header.take(MAX_EXTENDED_HEADER + 1);
    limited.read_to_end(&mut text)?;
    if text.len() as u64 > MAX_EXTENDED_HEADER {
        return Err(refused("an extended header has more than 1 MiB"));
    }
    if kind.is_gnu_longlink() {
        return Ok(None);
    }
    if kind.is_gnu_longname() {
        text.truncate(
            text.iter()
                .position(|byte| *byte == 0)
                .unwrap_or(text.len()),
        );
        return Ok(Some(text));
    }
    let mut path = None;
    for record in tar::PaxExtensions::new(&text) {
        let record = record?;
        match record.key_bytes() {
            // the size is not in the plain header
            b"size" => return Err(refused("a member has more than 8 GiB")),
            b"path" => path = Some(record.value_bytes().to_vec()),
            _ => {}
        }
    }
    Ok(path)
}

/// A hash that is only compared within a process.
fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// The length and the SHA-256 of all bytes of `input`.
fn hash(input: &mut impl Read) -> io::Result<(u64, [u8; 32])> {
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; 64 << 10];
    let mut length = 0;
    loop {
        let count = input.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        context.update(&buffer[..count]);
        length += count as u64;
    }
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(context.finish().as_ref());
    Ok((length, sha256))
}

/// Counts the bytes of `inner`, and distinguishes its errors from those of the tar format.
struct CountingReader<R> {
    inner: R,
    count: u64,
    error: Option<io::Error>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buffer) {
            Ok(count) => {
                self.count += count as u64;
                Ok(count)
            }
            Err(error) => {
                let kind = error.kind();
                if kind != io::ErrorKind::Interrupted {
                    self.error = Some(error);
                }
                Err(kind.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(name: &str, long_name: usize) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::GNULongName);
        header.set_size(long_name as u64);
        header.set_cksum();
        let text: Vec<u8> = name.bytes().cycle().take(long_name).collect();
        tar.append(&header, &text[..]).unwrap();
        let mut header = tar::Header::new_gnu();
        header.set_path("short").unwrap();
        header.set_size(7);
        header.set_cksum();
        tar.append(&header, &b"content"[..]).unwrap();
        tar.into_inner().unwrap()
    }

    #[test]
    fn a_long_path_belongs_to_the_file_after_it() {
        let [one, other] = ["lib-1/a", "lib-2/b"].map(|name| {
            let bytes = archive(name, 300);
            let listing = Listing::read(&bytes[..]).unwrap();
            // the file, and the end of the archive
            assert_eq!(listing.files.len(), 2);
            let length: u64 = listing.files.iter().map(ListedFile::length).sum();
            assert_eq!(length, bytes.len() as u64);
            listing.files[0].clone()
        });
        assert_eq!(
            (one.offset, one.header, one.content),
            (0, 512 + 512 + 512, 7)
        );
        assert_ne!(one.path_without_digits, other.path_without_digits);
    }

    #[test]
    fn an_archive_is_not_listed_beyond_an_extended_header_that_is_too_long() {
        let bytes = archive("a", 2 << 20);
        let listing = Listing::read(&bytes[..]).unwrap();
        assert_eq!(listing.files.len(), 1);
        assert_eq!(listing.files[0].length(), bytes.len() as u64);
        assert_eq!(listing.files[0].sha256, None);
    }
}
