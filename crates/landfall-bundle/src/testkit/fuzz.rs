//! Fuzz targets that read arbitrary bytes as bundles: no allocation exceeds its bound, and no
//! content is returned under a wrong digest.

#![allow(
    clippy::unwrap_used,
    reason = "a fuzz target panics when it finds a bug"
)]

use super::sample::{Packed, packed};
use crate::format::contents::ContentsIndex;
use crate::format::entry::TarEntry;
use crate::format::footer::{self, Footer};
use crate::{Bundle, verify};
use landfall_content::BlobRead;
use landfall_model::report::SilentProgress;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Reads `bytes` as a bundle.
pub fn reader(bytes: &[u8]) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    read_all(file.path());
}

/// Reads `bytes` as a footer, and as a list of signatures. If they are valid, writing them returns
/// the same bytes.
pub fn footer(bytes: &[u8]) {
    if let Some(footer) = Footer::parse(bytes) {
        assert_eq!(footer.to_bytes(), bytes);
        let _ = footer.bundle_len();
    }
    if let Some(texts) = footer::parse(bytes) {
        assert_eq!(footer::to_frame(&texts), bytes);
    }
}

/// Reads `bytes` as the contents index of a bundle that is otherwise valid, with a matching frame
/// table and footer.
pub fn index(bytes: &[u8]) {
    let Ok(contents) = serde_json::from_slice::<ContentsIndex>(bytes) else {
        return;
    };
    let again: ContentsIndex = serde_json::from_slice(&contents.to_bytes().unwrap()).unwrap();
    assert_eq!(again, contents);
    // `pack` never writes an index without entries or locks, and very many frames take too long
    let frames = contents
        .entries
        .iter()
        .map(|entry| TarEntry::frame_count(entry.size));
    if contents.entries.is_empty() || contents.locks.is_empty() || frames.sum::<u64>() > 1 << 16 {
        return;
    }
    let packed = packed();
    let (good, rows) = packed.opened();
    let is_lie = contents.frames != good.frames;
    packed.seal(contents, &rows, good.frames.offset, is_lie, &[]);
    read_all(&packed.path);
}

/// Opens the bundle at `path`, reads every blob, and verifies the bundle.
fn read_all(path: &Path) {
    let Ok(bundle) = Bundle::open(path) else {
        return;
    };
    assert!(bundle.bytes() <= fs::metadata(path).unwrap().len());
    let mut all_good = true;
    for entry in bundle
        .contents()
        .entries
        .iter()
        .filter(|entry| entry.is_blob())
    {
        for reader in [
            bundle.open(&entry.digest, 0),
            bundle.open_whole(&entry.digest),
        ] {
            let mut content = Vec::new();
            match reader.unwrap().read_to_end(&mut content) {
                Ok(_) => assert!(entry.digest.matches(&content), "{}", entry.name),
                Err(_) => all_good = false,
            }
        }
        let mut rest = Vec::new();
        let _ = bundle
            .open(&entry.digest, entry.size / 2)
            .unwrap()
            .read_to_end(&mut rest);
        assert!(rest.len() as u64 <= entry.size - entry.size / 2);
    }
    let _ = bundle.lock();
    assert!(
        verify(&bundle, &SilentProgress).is_err() || all_good,
        "verification succeeded, but a blob is not readable"
    );
}

/// A good bundle, its footer and its contents index.
pub fn seeds() -> [Vec<u8>; 3] {
    let packed: Packed = packed();
    let bundle = Bundle::open(&packed.path).unwrap();
    let footer = bundle.0.index.footer.to_bytes();
    [
        fs::read(&packed.path).unwrap(),
        footer,
        bundle.contents().to_bytes().unwrap(),
    ]
}
