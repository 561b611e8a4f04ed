//! The `h1:` hash of a package. It covers the names and contents of the files, but not the form of
//! the archive (golang.org/x/mod/sumdb/dirhash, `HashZip`).

use super::kind::{LockedProvider, LockedProviderPackage};
use super::zip_directory::{ZipArchive, ZipMember, member_fault, unreadable};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Crc;
use flate2::read::DeflateDecoder;
use landfall_content::BlobRead;
use landfall_model::{Algorithm, Digest, Failure, Hasher, Limits, read_chunks};
use std::collections::BTreeMap;
use std::io::Read;

/// The hash of the files in the archive `digest`, which has `size` bytes. Every member is unpacked
/// and compared with its checksum in the archive.
pub(super) fn package_hash(
    blobs: &dyn BlobRead,
    digest: &Digest,
    size: u64,
    limits: &Limits,
) -> Result<String, Failure> {
    let archive = ZipArchive {
        blobs,
        digest,
        size,
    };
    let mut lines = BTreeMap::new();
    for member in archive.members(limits)? {
        let hash = member_hash(&archive, &member)?;
        lines.insert(member.name, hash);
    }
    let mut all = Hasher::new(Algorithm::Sha256);
    for (name, hash) in &lines {
        all.update(format!("{}  {name}\n", hash.hex()).as_bytes());
    }
    Ok(format!("h1:{}", STANDARD.encode(all.finish().bytes())))
}

/// Computes the `h1:` hash of each package in `blobs` and compares it with `h1` in the lock: no
/// digest covers that field. Returns one sentence for each package that has another hash or cannot
/// be hashed.
pub(crate) fn hash_faults(provider: &LockedProvider, blobs: &dyn BlobRead) -> Vec<String> {
    let mut faults = Vec::new();
    for package in &provider.packages {
        let LockedProviderPackage {
            platform,
            digest,
            size,
            h1,
            ..
        } = package;
        // packages that are missing or have another size are reported elsewhere
        if !matches!(blobs.stat(digest), Ok(Some(found)) if found == *size) {
            continue;
        }
        match package_hash(blobs, digest, *size, &Limits::DEFAULT) {
            Ok(found) if found == *h1 => {}
            Ok(found) => faults.push(format!(
                "the package for {platform} has the hash {found}, but the lock has {h1}"
            )),
            Err(error) => faults.push(format!("the package for {platform}: {error}")),
        }
    }
    faults
}

fn member_hash(archive: &ZipArchive<'_>, member: &ZipMember) -> Result<Digest, Failure> {
    let packed = archive.open(member)?;
    let content: Box<dyn Read> = if member.is_deflated {
        Box::new(DeflateDecoder::new(packed))
    } else {
        packed
    };
    // one byte more, to notice content that is longer than the directory says
    let mut content = content.take(member.size + 1);
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let mut crc = Crc::new();
    read_chunks(&mut content, |chunk| {
        hasher.update(chunk);
        crc.update(chunk);
    })
    .map_err(unreadable)?;
    let unread = content.limit();
    if unread != 1 || crc.sum() != member.crc32 {
        return Err(member_fault(
            &member.name,
            "has content that does not match its size and checksum",
        ));
    }
    Ok(hasher.finish())
}

/// Reads any bytes as a package.
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub fn fuzz(bytes: &[u8]) {
    let digest = Digest::sha256(bytes);
    let blobs = landfall_content::MemoryBlobs(BTreeMap::from([(
        digest.clone(),
        bytes::Bytes::copy_from_slice(bytes),
    )]));
    let limits = Limits {
        provider_unpacked_bytes: 1 << 20,
        ..Limits::DEFAULT
    };
    // only a panic or too much memory is a bug
    let _ = package_hash(&blobs, &digest, bytes.len() as u64, &limits);
}

#[cfg(test)]
mod tests {
    use super::super::testing::zip_package;
    use super::*;
    use landfall_content::MemoryBlobs;

    const BINARY: &str = "terraform-provider-random_v1.0.0";

    fn hash_within(archive: &[u8], limits: &Limits) -> Result<String, Failure> {
        let digest = Digest::sha256(archive);
        let content = bytes::Bytes::copy_from_slice(archive);
        let blobs = MemoryBlobs(BTreeMap::from([(digest.clone(), content)]));
        package_hash(&blobs, &digest, archive.len() as u64, limits)
    }

    fn hash(archive: &[u8]) -> Result<String, Failure> {
        hash_within(archive, &Limits::DEFAULT)
    }

    fn package() -> Vec<u8> {
        zip_package(&[
            (BINARY, b"#!/bin/sh\n"),
            ("docs/", b""),
            ("docs/a", b""),
            ("LICENSE", &b"text ".repeat(100)),
        ])
    }

    /// The offset of the central directory.
    fn directory_of(archive: &[u8]) -> usize {
        let mut windows = archive.windows(4);
        windows.position(|bytes| bytes == b"PK\x01\x02").unwrap()
    }

    #[test]
    fn the_hash_is_that_of_the_sorted_files() {
        // computed by another implementation, as dirhash.HashZip describes it
        let expected = "h1:tqpeIKmTFlMm+EPYQfAgkR6WJTk2mdLoVd7anfJ9VxA=";
        assert_eq!(hash(&package()).unwrap(), expected);
        // a comment at the end of the archive does not change the hash
        let mut commented = package();
        let len = commented.len();
        commented[len - 2] = 3;
        commented.extend(b"abc");
        assert_eq!(hash(&commented).unwrap(), expected);
    }

    #[test]
    fn unsafe_ambiguous_and_unsupported_archives_are_refused() {
        let one = |name: &str| zip_package(&[(name, b"x")]);
        for name in [
            "../x", "/x", "a/../x", "a//x", ".", "a\\x", "c:x", "a\nb", "", "a/./b",
        ] {
            let why = hash(&one(name)).unwrap_err().to_string();
            assert!(why.contains("unsafe"), "{name}: {why}");
        }
        let twice = zip_package(&[("a", b"x"), ("a", b"y")]);
        assert!(hash(&twice).unwrap_err().to_string().contains("twice"));
        let good = package();
        let directory = directory_of(&good);
        let end = good.len() - 22;
        // each change is one byte: its position, its new value, and a word of the error
        for (at, value, word) in [
            (0, b'Q', "another header"),
            (6, 1, "another header"),
            (8, 8, "another header"),
            (14, 1, "another header"),
            (18, 1, "another header"),
            (22, 1, "another header"),
            (30, b'X', "another header"),
            (30 + BINARY.len(), b'!', "checksum"),
            (directory, b'Q', "directory is not valid"),
            (directory + 8, 1, "encrypted"),
            (directory + 10, 12, "compression"),
            (directory + 20, 11, "two sizes"),
            (directory + 28, 255, "directory is not valid"),
            (directory + 41, 0xa1, "not a regular file"),
            (directory + 42, 1, "unlisted bytes"),
            (directory + 46 + BINARY.len() + 42, 0, "overlaps"),
            (end, b'Q', "no directory at its end"),
            (end + 4, 1, "several parts"),
            (end + 8, 3, "several parts"),
            (end + 16, 1, "not before its end"),
        ] {
            let mut bad = good.clone();
            bad[at] = value;
            let why = hash(&bad).unwrap_err().to_string();
            assert!(why.contains(word), "{at}: {why}");
        }
        for len in [0, 21, end, good.len() - 1] {
            assert!(hash(&good[..len]).is_err(), "cut at {len}");
        }
        // Unix attributes are checked even if the archive names macOS or FAT as its system
        for system in [0, 3, 19] {
            let mut link = good.clone();
            (link[directory + 5], link[directory + 41]) = (system, 0xa1);
            let why = hash(&link).unwrap_err().to_string();
            assert!(why.contains("not a regular file"), "{system}: {why}");
        }
        let mut preceded = b"#!/bin/sh\n".to_vec();
        preceded.extend(&good);
        assert!(hash(&preceded).is_err(), "something before the archive");
    }

    #[test]
    fn only_data_descriptors_are_allowed_between_members() {
        let plain = zip_package(&[("a", b"x")]);
        let directory = directory_of(&plain);
        let sums = plain[14..26].to_vec();
        // inserts `bytes`, and corrects the offsets of the member and of the directory
        let with = |at: usize, bytes: &[u8]| {
            let mut archive = plain.clone();
            let end = archive.len() - 22;
            if at == 0 {
                archive[directory + 42] += bytes.len() as u8;
            }
            archive[end + 16] += bytes.len() as u8;
            archive.splice(at..at, bytes.iter().copied());
            archive
        };
        let why = hash(&with(0, b"PK")).unwrap_err().to_string();
        assert!(why.contains("unlisted bytes"), "{why}");
        let why = hash(&with(directory, b"PK")).unwrap_err().to_string();
        assert!(why.contains("does not end"), "{why}");

        let signed = [b"PK\x07\x08", &sums[..]].concat();
        for descriptor in [&sums, &signed] {
            for has_zeros in [false, true] {
                let mut described = with(directory, descriptor);
                described[6] = 8;
                if has_zeros {
                    described[14..26].fill(0);
                }
                assert_eq!(hash(&described).unwrap(), hash(&plain).unwrap());
                described[directory + descriptor.len() - 1] ^= 1;
                let why = hash(&described).unwrap_err().to_string();
                assert!(why.contains("data descriptor"), "{why}");
            }
        }
    }

    #[test]
    fn packages_that_exceed_a_limit_are_refused() {
        let limits = Limits {
            provider_unpacked_bytes: 1000,
            archive_files: 4,
            ..Limits::DEFAULT
        };
        assert!(hash_within(&package(), &limits).is_ok());
        let large = zip_package(&[("bomb", &[0; 1001])]);
        let why = hash_within(&large, &limits).unwrap_err().to_string();
        assert!(why.contains("1000 unpacked bytes"), "{why}");
        let many = zip_package(&[("a", b""), ("b", b""), ("c", b""), ("d", b""), ("e", b"")]);
        let why = hash_within(&many, &limits).unwrap_err().to_string();
        assert!(why.contains("4 members"), "{why}");
        // headers that understate the size of their member
        let mut small = large.clone();
        let directory = directory_of(&small);
        for at in [22, directory + 24] {
            small[at..at + 4].copy_from_slice(&9_u32.to_le_bytes());
        }
        let why = hash_within(&small, &limits).unwrap_err().to_string();
        assert!(why.contains("checksum"), "{why}");
    }
}
