//! Tar headers: POSIX ustar with fixed metadata, a PAX path for names over 100 bytes, and a
//! base-256 size from 8 GiB up. Go's archive/tar, GNU tar and Python's tarfile read both
//! extensions.

use super::stored::stored_len;
use tar::{EntryType, Header};

/// Size of a tar block in bytes.
pub const BLOCK: usize = 512;
/// The end of a tar archive: two blocks of zeros.
pub const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// The tar headers of a regular file: 512 bytes, or at least 1536 with a PAX path.
pub fn encode(name: &str, size: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(3 * BLOCK);
    if name.len() > 100 {
        let record = pax_path(name);
        out.extend(block(b"pax", record.len() as u64, EntryType::XHeader));
        out.extend(record.as_bytes());
        out.resize(out.len() + padding(record.len() as u64), 0);
    }
    out.extend(block(
        &name.as_bytes()[..name.len().min(100)],
        size,
        EntryType::Regular,
    ));
    out
}

/// Length of [`encode`]'s result for `name`.
pub(crate) fn encoded_len(name: &str) -> usize {
    if name.len() > 100 {
        2 * BLOCK + pax_path(name).len().next_multiple_of(BLOCK)
    } else {
        BLOCK
    }
}

fn block(name: &[u8], size: u64, kind: EntryType) -> [u8; BLOCK] {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    // fixed, because the bytes of a bundle must not depend on the machine or the user
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(size);
    header.set_entry_type(kind);
    header.set_cksum();
    *header.as_bytes()
}

/// `LENGTH path=NAME\n`, where LENGTH counts itself (POSIX pax, "pax Extended Header").
fn pax_path(name: &str) -> String {
    let rest = format!(" path={name}\n");
    // computed twice, because its own digits may make the length one digit longer
    let mut length = rest.len() + rest.len().to_string().len();
    length = rest.len() + length.to_string().len();
    format!("{length}{rest}")
}

/// The length of the stored frames around the content of an entry: its header and its padding.
pub(crate) fn frames_around(name: &str, size: u64) -> u64 {
    stored_len(encoded_len(name) as u64) + stored_len(padding(size) as u64)
}

/// The number of padding bytes after `size` bytes of content.
pub fn padding(size: u64) -> usize {
    (BLOCK - (size % BLOCK as u64) as usize) % BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn names_and_sizes_are_read_as_they_were_written() {
        let long = format!("blobs/sha512/{}", "a".repeat(128));
        for (name, size) in [
            ("oci-layout", 0),
            (long.as_str(), 5),
            ("big", 9 << 30),
            (&long, 1 << 40),
        ] {
            let bytes = encode(name, size);
            assert_eq!((bytes.len(), bytes.len() % BLOCK), (encoded_len(name), 0));
            let mut archive = tar::Archive::new(bytes.chain(std::io::repeat(0)));
            let entry = archive.entries().unwrap().next().unwrap().unwrap();
            assert_eq!(entry.path_bytes(), name.as_bytes());
            assert_eq!(entry.size(), size);
            assert_eq!(
                (
                    entry.header().mtime().unwrap(),
                    entry.header().mode().unwrap()
                ),
                (0, 0o644)
            );
        }
    }

    #[test]
    fn a_pax_record_counts_itself() {
        for len in 80..120 {
            let record = pax_path(&"n".repeat(len));
            assert!(
                record.starts_with(&format!("{} path=", record.len())),
                "{record}"
            );
        }
    }
}
