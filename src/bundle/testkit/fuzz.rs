//! What the fuzz targets in `fuzz/` call, and a stable run of the same in `cargo test`. Whatever bytes come, nothing
//! panics, nothing is allocated beyond its bound, and no content is handed out under a wrong digest.
#![allow(missing_docs, clippy::unwrap_used)]

use super::sample::{Packed, packed};
use crate::bundle::format::contents::Contents;
use crate::bundle::format::entry::TarEntry;
use crate::bundle::format::footer::Footer;
use crate::bundle::format::signatures;
use crate::bundle::{Bundle, verify};
use crate::content::BlobRead;
use crate::report::Silent;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Reads `bytes` as a bundle.
pub fn reader(bytes: &[u8]) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    read_all(file.path());
}

/// Reads `bytes` as a footer, and as a list of signatures; what is one is written back as the same bytes.
pub fn footer(bytes: &[u8]) {
    if let Some(footer) = Footer::parse(bytes) {
        assert_eq!(footer.to_bytes(), bytes);
        let _ = footer.bundle_len();
    }
    if let Some(texts) = signatures::parse(bytes) {
        assert_eq!(signatures::to_frame(&texts), bytes);
    }
}

/// Reads `bytes` as the contents index of a bundle that is good in all else, with a frame table and a footer that fit.
pub fn index(bytes: &[u8]) {
    let Ok(contents) = serde_json::from_slice::<Contents>(bytes) else { return };
    let again: Contents = serde_json::from_slice(&contents.to_bytes().unwrap()).unwrap();
    assert_eq!(again, contents);
    // what cannot be written by anybody need not be read
    let frames = contents.entries.iter().map(|entry| TarEntry::frame_count(entry.size));
    if contents.entries.is_empty() || contents.locks.is_empty() || frames.sum::<u64>() > 1 << 16 {
        return;
    }
    let packed = packed();
    let (good, rows) = packed.opened();
    let is_lie = contents.frames != good.frames;
    packed.seal(contents, &rows, good.frames.offset, is_lie, &[]);
    read_all(&packed.path);
}

/// Opens it; reads every blob, and verifies.
fn read_all(path: &Path) {
    let Ok(bundle) = Bundle::open(path) else { return };
    assert!(bundle.bytes() <= fs::metadata(path).unwrap().len());
    let mut all_good = true;
    for entry in bundle.contents().entries.iter().filter(|entry| entry.is_blob()) {
        for reader in [bundle.open(&entry.digest, 0), bundle.open_whole(&entry.digest)] {
            let mut content = Vec::new();
            match reader.unwrap().read_to_end(&mut content) {
                Ok(_) => assert!(entry.digest.matches(&content), "{}", entry.name),
                Err(_) => all_good = false,
            }
        }
        let mut rest = Vec::new();
        let _ = bundle.open(&entry.digest, entry.size / 2).unwrap().read_to_end(&mut rest);
        assert!(rest.len() as u64 <= entry.size - entry.size / 2);
    }
    let _ = bundle.lock();
    assert!(verify(&bundle, &Silent).is_err() || all_good, "verified, and not readable");
}

/// Good input for each target, to begin with.
pub fn seeds() -> [Vec<u8>; 3] {
    let packed: Packed = packed();
    let bundle = Bundle::open(&packed.path).unwrap();
    let footer = bundle.0.index.footer.to_bytes();
    [fs::read(&packed.path).unwrap(), footer, bundle.contents().to_bytes().unwrap()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Numbers that are the same in every run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % end.max(1)
        }
    }

    /// One to four changes as a fuzzer makes them.
    fn mutate(seed: &[u8], numbers: &mut Numbers) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..=numbers.below(4) {
            let at = numbers.below(bytes.len());
            let end = (at + 1 + numbers.below(64)).min(bytes.len());
            match numbers.below(8) {
                0 if !bytes.is_empty() => bytes[at] ^= 1 << numbers.below(8),
                1 if !bytes.is_empty() => {
                    bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'0', b'9', b'"'][numbers.below(8)];
                }
                2 => bytes.truncate(at),
                3 => drop(bytes.drain(at.min(end)..end)),
                4 => {
                    let copy = bytes[at.min(end)..end].to_vec();
                    let to = numbers.below(bytes.len() + 1);
                    bytes.splice(to..to, copy);
                }
                5 => {
                    // a run of digits becomes another number
                    let digit = bytes[at.min(bytes.len())..].iter().position(u8::is_ascii_digit);
                    if let Some(from) = digit.map(|offset| at + offset) {
                        let length = bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                        let numbers_of_note =
                            ["0", "1", "17", "1048576", "4294967295", "18446744073709551615"];
                        let number = numbers_of_note[numbers.below(6)].bytes();
                        bytes.splice(from..from + length, number);
                    }
                }
                6 => bytes.extend(vec![0; numbers.below(300)]),
                _ => bytes[at.min(end)..end].reverse(),
            }
        }
        bytes
    }

    /// `FUZZ_SECONDS` for each target; without it, a few hundred inputs.
    fn run(target: fn(&[u8]), seed: &[u8], number: u64) {
        let seconds = std::env::var("FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
        let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let mut numbers = Numbers(number);
        target(seed);
        target(b"");
        let mut round = 0;
        while end.map_or(round < 300, |end| Instant::now() < end) {
            let input = mutate(seed, &mut numbers);
            let done = std::panic::catch_unwind(|| target(&input));
            assert!(done.is_ok(), "input {round}: {:?}", String::from_utf8_lossy(&input));
            round += 1;
        }
    }

    #[test]
    fn no_bundle_does_harm() {
        run(reader, &seeds()[0], 1);
    }

    #[test]
    fn no_footer_does_harm() {
        run(footer, &seeds()[1], 2);
    }

    #[test]
    fn no_index_does_harm() {
        run(index, &seeds()[2], 3);
    }
}
