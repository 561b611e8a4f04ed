//! Inputs for tests that compare an encoder with digests of the real program's output, in
//! `tests/vectors`. `scripts/deflate-vectors` writes these digests: it runs [`write_inputs`] and
//! compresses the resulting files.

use super::Encoder;
use crate::bits::BitWriter;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Inputs whose names end in `flushed` are flushed each time this number of bytes was written, and
/// at their end.
const FLUSH_EVERY: usize = 10_007;
/// In a table, the input `most` means all inputs with fewer bytes than this, one after the other.
const SMALL: usize = 600_000;

/// A plain input with its name.
pub(crate) struct Input {
    /// The name in the tables.
    pub(crate) name: &'static str,
    pub(crate) plain: Vec<u8>,
}

impl Input {
    /// Adds an encoder's output to a digest.
    fn hash_stream(&self, encoder: &mut dyn Encoder, hash: &mut Sha256) {
        let mut out = BitWriter::default();
        let is_flushed = self.name.ends_with("flushed");
        if is_flushed && self.plain.is_empty() {
            encoder.flush(&mut out);
        }
        for piece in self.plain.chunks(FLUSH_EVERY) {
            encoder.write(piece, &mut out);
            if is_flushed {
                encoder.flush(&mut out);
            }
            hash.update(&out.bytes);
            out.bytes.clear();
        }
        encoder.finish(&mut out);
        hash.update(&out.bytes);
    }
}

/// Compares an encoder with a table whose lines have parameters, the name of an input, and the
/// digest of the output. `start` starts the encoder that the parameters name.
pub(crate) fn check(table: &str, start: impl Fn(&str) -> Box<dyn Encoder>) {
    check_lines(table, "", start);
}

/// Like [`check`], for the lines that begin with `prefix`, which is not part of the parameters.
pub(crate) fn check_lines(table: &str, prefix: &str, start: impl Fn(&str) -> Box<dyn Encoder>) {
    let inputs = inputs();
    let mut differing = Vec::new();
    let mut checked = 0;
    for line in table.lines().filter_map(|line| line.strip_prefix(prefix)) {
        let mut fields = line.rsplitn(3, ' ');
        let digest = fields.next().unwrap();
        let name = fields.next().unwrap();
        let parameters = fields.next().unwrap();
        let mut hash = Sha256::new();
        if name == "most" {
            for input in inputs.iter().filter(|input| input.plain.len() < SMALL) {
                input.hash_stream(start(parameters).as_mut(), &mut hash);
            }
        } else {
            let input = inputs.iter().find(|input| input.name == name).unwrap();
            input.hash_stream(start(parameters).as_mut(), &mut hash);
        }
        let mut found = String::new();
        for byte in hash.finalize() {
            write!(found, "{byte:02x}").unwrap();
        }
        if found != digest {
            differing.push(format!("{parameters} {name}"));
        }
        checked += 1;
    }
    assert!(checked > 0, "no line of the table was compared");
    assert!(differing.is_empty(), "other output for: {differing:#?}");
}

/// Pseudorandom numbers (`SplitMix64`), the same on all machines and in all versions.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Words of a small vocabulary; the first ones are the most frequent.
fn text(seed: u64, length: usize) -> Vec<u8> {
    let mut random = SplitMix(seed);
    let words: Vec<Vec<u8>> = (0..1500)
        .map(|_| {
            let letters = 1 + random.below(11);
            (0..letters)
                .map(|_| b'a' + random.below(26) as u8)
                .collect()
        })
        .collect();
    let mut plain = Vec::with_capacity(length + 20);
    while plain.len() < length {
        let limit = 1 + random.below(words.len());
        plain.extend(&words[random.below(limit)]);
        plain.push(if random.below(12) == 0 { b'\n' } else { b' ' });
    }
    plain.truncate(length);
    plain
}

/// Records with growing addresses, as in the tables of executable files.
fn records(seed: u64, length: usize) -> Vec<u8> {
    let mut random = SplitMix(seed);
    let mut plain = Vec::with_capacity(length + 24);
    let mut address = 0x40_0000_u64;
    while plain.len() < length {
        address += 16 * random.below(9) as u64;
        plain.extend(address.to_le_bytes());
        plain.extend([0, random.below(3) as u8, 0, 0]);
        plain.extend((random.below(100_000) as u32).to_le_bytes());
    }
    plain.truncate(length);
    plain
}

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut random = SplitMix(seed);
    (0..length).map(|_| random.next() as u8).collect()
}

/// Runs of 1 to 4,000 equal bytes.
fn runs(seed: u64, length: usize) -> Vec<u8> {
    let mut random = SplitMix(seed);
    let mut plain = Vec::with_capacity(length + 4000);
    while plain.len() < length {
        let longest = [3, 30, 300, 4000][random.below(4)];
        let end = plain.len() + 1 + random.below(longest);
        plain.resize(end, random.below(7) as u8);
    }
    plain.truncate(length);
    plain
}

/// Bytes whose frequencies halve from one to the next, so that Huffman codes reach their limit.
fn skewed(seed: u64, length: usize) -> Vec<u8> {
    let mut random = SplitMix(seed);
    (0..length)
        .map(|_| (random.next().trailing_zeros() * 7) as u8)
        .collect()
}

/// Copies of earlier bytes from all distances up to 40,000, with errors.
fn copies(seed: u64, length: usize) -> Vec<u8> {
    let mut random = SplitMix(seed);
    let mut plain = noise(seed + 1, 5000);
    while plain.len() < length {
        let distance = 1 + random.below(40_000.min(plain.len()));
        let errors = 4 + random.below(300);
        for _ in 0..=random.below(3000) {
            let copied = plain[plain.len() - distance];
            let is_error = random.below(errors) == 0;
            plain.push(if is_error {
                random.next() as u8
            } else {
                copied
            });
        }
    }
    plain.truncate(length);
    plain
}

/// Parts of all kinds, as in an archive.
fn mixed(seed: u64, length: usize) -> Vec<u8> {
    let mut random = SplitMix(seed);
    let mut plain = Vec::with_capacity(length + 40_000);
    while plain.len() < length {
        let make = [text, records, noise, runs, skewed, copies][random.below(6)];
        let part_length = 1 + random.below(40_000);
        plain.extend(make(seed + random.below(9) as u64, part_length));
        // archives pad to full blocks
        plain.resize(plain.len().next_multiple_of(512), 0);
    }
    plain.truncate(length);
    plain
}

/// All inputs of the tables.
pub(crate) fn inputs() -> Vec<Input> {
    let input = |name, plain| Input { name, plain };
    let mut inputs = vec![
        input("empty", Vec::new()),
        input("one", b"x".to_vec()),
        input("text-16", text(1, 16)),
        input("text-17", text(2, 17)),
        input("text-32", text(3, 32)),
        input("text-33", text(4, 33)),
        input("text-127", text(5, 127)),
        input("text-128", text(6, 128)),
        input("text-1000", text(7, 1000)),
        input("text-32768", text(8, 32_768)),
        input("text-65534", text(9, 65_534)),
        input("text-65535", text(10, 65_535)),
        input("text-65536", text(11, 65_536)),
        input("text-65551", text(12, 65_535 + 16)),
        input("text-65662", text(13, 65_535 + 127)),
        input("text-400000", text(14, 400_000)),
        input("records", records(15, 300_000)),
        input("noise", noise(16, 140_000)),
        input("runs", runs(17, 300_000)),
        input("skewed", skewed(18, 140_000)),
        input("copies", copies(19, 500_000)),
        input("mixed", mixed(20, 2_300_000)),
        input("zeros", vec![0; 1_000_000]),
        input("empty-flushed", Vec::new()),
        input("text-flushed", text(21, 61_000)),
        input("mixed-flushed", mixed(22, 300_000)),
    ];
    // the order in which a shell lists the files
    inputs.sort_unstable_by_key(|input| input.name);
    inputs
}

/// Writes all inputs into the folder that the environment variable `INPUTS` names.
#[test]
#[ignore = "scripts/deflate-vectors runs it"]
fn write_inputs() {
    let folder = std::path::PathBuf::from(std::env::var_os("INPUTS").unwrap());
    for input in inputs() {
        std::fs::write(folder.join(input.name), input.plain).unwrap();
    }
}
