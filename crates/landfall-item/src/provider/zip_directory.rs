//! The members of a zip archive, by its central directory (PKWARE's APPNOTE.TXT, 4.3).
//!
//! Archives come from any registry, and programs read contradictory archives differently. So an
//! archive is accepted only if it has one meaning: the directory is at its end, members follow each
//! other without a gap, the two headers of each member agree, no name occurs twice or leads out of
//! a folder, and there are no links. Encrypted members, compression methods other than deflate, and
//! archives above 4 GiB are refused, since packages of providers do not need them.

use landfall_content::{BlobRead, ContentError};
use landfall_model::{Digest, Failure, Limits, is_path_below};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::io::{self, Read};

/// A member of a zip archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ZipMember {
    pub(super) name: String,
    /// Whether it is compressed by deflate; otherwise it is stored.
    pub(super) is_deflated: bool,
    pub(super) crc32: u32,
    /// The size in the archive in bytes.
    pub(super) packed: u64,
    /// The size of the content in bytes.
    pub(super) size: u64,
    /// The offset of its packed content in the archive.
    pub(super) at: u64,
}

impl ZipMember {
    /// The checksum and the sizes, as headers and data descriptors have them.
    fn sums(&self) -> [u8; 12] {
        let mut sums = [0; 12];
        // the sizes were read from 32 bits
        let numbers = [self.crc32, self.packed as u32, self.size as u32];
        for (bytes, number) in sums.chunks_exact_mut(4).zip(numbers) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        sums
    }
}

/// A zip archive that is one of `blobs`.
pub(super) struct ZipArchive<'b> {
    pub(super) blobs: &'b dyn BlobRead,
    pub(super) digest: &'b Digest,
    /// The size of the archive in bytes.
    pub(super) size: u64,
}

const END_BYTES: usize = 22;
const CENTRAL_BYTES: usize = 46;
const LOCAL_BYTES: usize = 30;
/// The longest comment at the end of an archive.
const COMMENT_BYTES: u64 = 0xffff;
/// The length of a data descriptor without its optional signature (4.3.9).
const DESCRIPTOR_BYTES: u64 = 12;
const DESCRIPTOR_SIGNATURE: &[u8] = b"PK\x07\x08";
const ENCRYPTED: u16 = 1;
/// The flag of a member whose checksum and sizes are in a data descriptor after its content. The
/// local header of the member may have zeros in their place.
const HAS_DESCRIPTOR: u16 = 8;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
const FILE_TYPE: u32 = 0o17_0000;
const FOLDER: u32 = 0o4_0000;
const REGULAR: u32 = 0o10_0000;

impl ZipArchive<'_> {
    /// The members in the order of the archive.
    pub(super) fn members(&self, limits: &Limits) -> Result<Vec<ZipMember>, Failure> {
        let (count, directory_at, size) = self.end(limits)?;
        let directory = self.bytes(directory_at, size)?;
        let mut rest = &directory[..];
        let mut members = Vec::new();
        let mut names = BTreeSet::new();
        let mut unpacked = 0_u64;
        for _ in 0..count {
            let (member, after) = central_member(rest)?;
            rest = after;
            if !names.insert(member.name.clone()) {
                return Err(member_fault(&member.name, "is in the archive twice"));
            }
            // cannot overflow: each size is below 4 GiB, and there are at most 65,535 members
            unpacked += member.size;
            members.push(member);
        }
        if !rest.is_empty() {
            return Err(not_accepted("its directory is longer than its members"));
        }
        if unpacked > limits.provider_unpacked_bytes {
            return Err(over_limit(limits.provider_unpacked_bytes, "unpacked bytes"));
        }
        members.sort_by_key(|member| member.at);
        let mut next = 0;
        for member in &mut members {
            let why = match member.at.cmp(&next) {
                Ordering::Less => "overlaps another member",
                // a program that reads the archive from its beginning would find other members
                Ordering::Greater => "has unlisted bytes before it",
                Ordering::Equal => {
                    next = self.locate_content(member)?;
                    continue;
                }
            };
            return Err(member_fault(&member.name, why));
        }
        if next != directory_at {
            return Err(not_accepted(
                "its last member does not end where its directory begins",
            ));
        }
        Ok(members)
    }

    /// Reads the record at the end of the archive (4.3.16). Returns the number of members, and the
    /// offset and the size of the central directory.
    fn end(&self, limits: &Limits) -> Result<(u16, u64, u64), Failure> {
        let len = self.size.min(END_BYTES as u64 + COMMENT_BYTES);
        let start = self.size - len;
        let tail = self.bytes(start, len)?;
        let is_end = |at: &usize| {
            let record = &tail[*at..];
            // the comment must reach the end of the file; if several records qualify, the last one
            // counts
            record.len() >= END_BYTES
                && record.starts_with(b"PK\x05\x06")
                && usize::from(u16_at(record, 20)) + END_BYTES == record.len()
        };
        let at = (0..=tail.len().saturating_sub(END_BYTES))
            .rev()
            .find(is_end);
        let at = at.ok_or_else(|| not_accepted("it has no directory at its end"))?;
        let record = &tail[at..];
        let count = u16_at(record, 10);
        let size = u64::from(u32_at(record, 12));
        let offset = u64::from(u32_at(record, 16));
        // the archive must be on one disk, with all members
        if u32_at(record, 4) != 0 || u16_at(record, 8) != count {
            return Err(not_accepted("it has several parts"));
        }
        // this also refuses zip64 archives, which have the maximum values in these fields
        if offset + size != start + at as u64 {
            return Err(not_accepted("its directory is not before its end record"));
        }
        if usize::from(count) > limits.archive_files {
            return Err(over_limit(limits.archive_files as u64, "members"));
        }
        if size > limits.document_bytes as u64 {
            return Err(over_limit(
                limits.document_bytes as u64,
                "bytes in its directory",
            ));
        }
        Ok((count, offset, size))
    }

    /// Sets `member.at`, which is the offset of the local header (4.3.7), to that of the content.
    /// Returns the offset after the member.
    fn locate_content(&self, member: &mut ZipMember) -> Result<u64, Failure> {
        let len = (LOCAL_BYTES + member.name.len()) as u64;
        if member.at + len > self.size {
            return Err(not_accepted("it is cut off"));
        }
        let header = self.bytes(member.at, len)?;
        let method = if member.is_deflated { DEFLATED } else { STORED };
        let flags = u16_at(&header, 6);
        let has_descriptor = flags & HAS_DESCRIPTOR != 0;
        let sums = member.sums();
        let is_same = header.starts_with(b"PK\x03\x04")
            && flags & ENCRYPTED == 0
            && u16_at(&header, 8) == method
            && (header[14..26] == sums || (has_descriptor && header[14..26] == [0; 12]))
            && usize::from(u16_at(&header, 26)) == member.name.len()
            && &header[LOCAL_BYTES..] == member.name.as_bytes();
        if !is_same {
            return Err(member_fault(
                &member.name,
                "has another header than the directory",
            ));
        }
        member.at += len + u64::from(u16_at(&header, 28));
        let end = member.at + member.packed;
        if !has_descriptor {
            return Ok(end);
        }
        let len = DESCRIPTOR_BYTES + DESCRIPTOR_SIGNATURE.len() as u64;
        // the directory follows, so a descriptor without a signature has enough bytes after it
        if end + len > self.size {
            return Err(not_accepted("it is cut off"));
        }
        let descriptor = self.bytes(end, len)?;
        if descriptor.strip_prefix(DESCRIPTOR_SIGNATURE) == Some(&sums[..]) {
            Ok(end + len)
        } else if descriptor.starts_with(&sums) {
            Ok(end + DESCRIPTOR_BYTES)
        } else {
            Err(member_fault(
                &member.name,
                "has another data descriptor than the directory",
            ))
        }
    }

    /// Opens the packed content of `member`.
    pub(super) fn open(&self, member: &ZipMember) -> Result<Box<dyn Read + Send>, Failure> {
        let content = self.blobs.open(self.digest, member.at).map_err(missing)?;
        Ok(Box::new(content.take(member.packed)))
    }

    fn bytes(&self, at: u64, len: u64) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        self.blobs
            .open(self.digest, at)
            .map_err(missing)?
            .take(len)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if bytes.len() as u64 != len {
            return Err(not_accepted("it is cut off"));
        }
        Ok(bytes)
    }
}

/// Reads the first member of a central directory (4.3.12). Its `at` is still the offset of the
/// local header.
fn central_member(directory: &[u8]) -> Result<(ZipMember, &[u8]), Failure> {
    let broken = || not_accepted("its directory is not valid");
    let Some((header, rest)) = directory.split_at_checked(CENTRAL_BYTES) else {
        return Err(broken());
    };
    let lengths = [28, 30, 32].map(|at| usize::from(u16_at(header, at)));
    let (Some(name), Some(rest)) = (
        rest.get(..lengths[0]),
        rest.get(lengths.iter().sum::<usize>()..),
    ) else {
        return Err(broken());
    };
    let Ok(name) = std::str::from_utf8(name) else {
        return Err(not_accepted("a name in it is not UTF-8"));
    };
    if !header.starts_with(b"PK\x01\x02") {
        return Err(broken());
    }
    let method = u16_at(header, 10);
    let mode = u32_at(header, 38) >> 16;
    let member = ZipMember {
        name: name.to_owned(),
        is_deflated: method == DEFLATED,
        crc32: u32_at(header, 16),
        packed: u64::from(u32_at(header, 20)),
        size: u64::from(u32_at(header, 24)),
        at: u64::from(u32_at(header, 42)),
    };
    let kind = mode & FILE_TYPE;
    let fault = if !is_safe_path(name) {
        Some("has a name that is unsafe in a folder")
    } else if u16_at(header, 8) & ENCRYPTED != 0 {
        Some("is encrypted")
    } else if !matches!(method, STORED | DEFLATED) {
        Some("has a compression method that landfall does not support")
    } else if method == STORED && member.packed != member.size {
        Some("has two sizes")
    } else if !matches!(kind, 0 | FOLDER | REGULAR) {
        // refused for every system (4.4.2), since programs differ in when they use these attributes
        Some("is not a regular file")
    } else if name.ends_with('/') && member.size != 0 {
        Some("is a folder with content")
    } else {
        None
    };
    match fault {
        Some(why) => Err(member_fault(name, why)),
        None => Ok((member, rest)),
    }
}

/// Whether a program that unpacks `name` into a folder writes nothing outside of it.
fn is_safe_path(name: &str) -> bool {
    let path = name.strip_suffix('/').unwrap_or(name);
    !name.contains(|c: char| c.is_control() || matches!(c, '\\' | ':')) && is_path_below(path)
}

/// The failure of an archive that is not a zip archive, or contradicts itself.
fn not_accepted(why: &str) -> Failure {
    Failure::failed(format!(
        "it is not a zip archive that landfall accepts: {why}"
    ))
}

/// The failure of the member `name`.
pub(super) fn member_fault(name: &str, why: &str) -> Failure {
    Failure::failed(format!("its member '{}' {why}", name.escape_debug()))
}

/// The failure of an archive that has too many members, or unpacks to too many bytes.
fn over_limit(limit: u64, what: &str) -> Failure {
    Failure::failed(format!("it exceeds the limit of {limit} {what}"))
}

/// The failure of an archive that cannot be read.
pub(super) fn unreadable(error: io::Error) -> Failure {
    Failure::failed(format!("it cannot be read: {error}"))
}

/// The failure of an archive that is missing from the store, or damaged.
fn missing(error: ContentError) -> Failure {
    Failure::failed(error.to_string())
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | (u32::from(u16_at(bytes, at + 2)) << 16)
}
