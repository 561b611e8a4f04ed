//! Packages for tests.

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use std::io::Write;

/// A zip archive of `files`, each a name and its content. A name that ends with `/` is a folder;
/// all others are executable files. Content of more than 100 bytes is compressed.
///
/// # Panics
/// If compressing in memory fails.
pub fn zip_package(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    let mut directory = Vec::new();
    for (name, content) in files {
        let mut crc = Crc::new();
        crc.update(content);
        let (method, packed) = if content.len() > 100 {
            (8_u16, deflated(content))
        } else {
            (0, content.to_vec())
        };
        let offset = archive.len() as u32;
        // the fields that both headers have, from the flags to the length of the extra field
        let mut common = Vec::new();
        for number in [0, method, 0, 0x21] {
            common.extend(number.to_le_bytes());
        }
        for number in [crc.sum(), packed.len() as u32, content.len() as u32] {
            common.extend(number.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        common.extend(0_u16.to_le_bytes());
        archive.extend(b"PK\x03\x04\x14\0");
        archive.extend(&common);
        archive.extend(name.as_bytes());
        archive.extend(&packed);
        directory.extend(b"PK\x01\x02\x14\x03\x14\0");
        directory.extend(&common);
        // no comment, the first disk, no internal attributes
        directory.extend([0; 6]);
        let kind: u32 = if name.ends_with('/') {
            0o4_0755
        } else {
            0o10_0755
        };
        directory.extend((kind << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let count = (files.len() as u16).to_le_bytes();
    let offset = archive.len() as u32;
    archive.extend(&directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend(count);
    archive.extend(count);
    archive.extend((directory.len() as u32).to_le_bytes());
    archive.extend(offset.to_le_bytes());
    archive.extend([0; 2]);
    archive
}

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).expect("memory can be written");
    encoder.finish().expect("memory can be written")
}
