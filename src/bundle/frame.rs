//! zstd frames (RFC 8878) of at most 1 MiB of content. All begin alike: never single-segment, window
//! 1 MiB, content size in four bytes, XXH64 checksum at the end.

use super::Form;
use super::contents::{Frame, Hash};
use super::draft::Draft;
use sha2::{Digest as _, Sha256};
use std::io;
use xxhash_rust::xxh64::Xxh64;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{CParameter, find_frame_compressed_size};

/// Most content in one frame, in bytes. Longer content is cut here; only the last piece is shorter.
pub(super) const CHUNK: usize = 1 << 20;
/// No frame is longer than this: content that does not shrink, and the block headers that zstd may add.
pub(super) const MAX_FRAME: usize = CHUNK + CHUNK / 128;
/// Most content in one raw block (RFC 8878 §3.1.1.2.4).
pub(super) const BLOCK: usize = 128 << 10;
/// Magic number; descriptor 0x84 (content size in 4 bytes, checksum); window 2^20 (§3.1.1.1).
const PREFIX: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0x84, 0x50];
/// Length of the frame header: the prefix and the content size.
pub(super) const HEAD: usize = PREFIX.len() + 4;
/// What zstd writes itself for a frame with checksum and without content size: magic, descriptor, window.
const ZSTD_HEAD: usize = 6;

/// File bytes of `content` bytes in stored frames.
pub(super) fn stored_len(content: u64) -> u64 {
    let one = |content: u64| HEAD as u64 + 3 * content.div_ceil(BLOCK as u64).max(1) + content + 4;
    let rest = content % CHUNK as u64;
    content / CHUNK as u64 * one(CHUNK as u64) + if rest > 0 { one(rest) } else { 0 }
}

/// Where a byte of content lies in stored frames that follow one another, and how many bytes of its raw
/// block there are from there on.
pub(super) fn stored_place(content: u64) -> (u64, usize) {
    let (frame, inside) = (content / CHUNK as u64, content % CHUNK as u64);
    let block = inside / BLOCK as u64;
    let at = frame * stored_len(CHUNK as u64) + HEAD as u64 + 3 * (block + 1) + inside;
    (at, BLOCK - (inside % BLOCK as u64) as usize)
}

/// One frame of `content`, which is not longer than [`CHUNK`].
pub(super) fn encode(form: Form, level: i32, content: &[u8]) -> io::Result<Vec<u8>> {
    match form {
        Form::Stored => Ok(stored(content)),
        Form::Compressed => compressed(level, content),
    }
}

/// A frame of raw blocks.
pub(super) fn stored(content: &[u8]) -> Vec<u8> {
    Draft::of(Form::Stored, content).stored()
}

/// The header of the raw block that begins at `from` in a frame of `content` bytes.
pub(super) fn block_header(content: usize, from: usize) -> [u8; 3] {
    let block = BLOCK.min(content - from);
    // Last_Block in bit 0, Block_Type 0 (raw) in bits 1 and 2, Block_Size above
    let [low, middle, high, _] = ((block as u32) << 3 | u32::from(from + block == content)).to_le_bytes();
    [low, middle, high]
}

/// Stored frames of content that passes in pieces of any length: their hashes, and what stands around the
/// content.
pub(super) struct Passing {
    size: u64,
    at: u64,
    checksum: Xxh64,
    hash: Sha256,
}

/// A frame whose content has passed.
pub(super) struct Passed {
    pub frame: Frame,
    /// The bytes around its content, each with its place after the first byte of the first frame.
    pub around: Vec<(u64, Vec<u8>)>,
}

impl Passing {
    /// For content of `size` bytes.
    pub(super) fn new(size: u64) -> Passing {
        Passing { size, at: 0, checksum: Xxh64::new(0), hash: Sha256::new() }
    }

    /// How much has passed.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Takes in the next bytes; gives the frames that end in them.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) -> Vec<Passed> {
        let mut passed = Vec::new();
        while !bytes.is_empty() && self.at < self.size {
            let inside = (self.at % CHUNK as u64) as usize;
            let begin = self.at - inside as u64;
            let content = (self.size - begin).min(CHUNK as u64) as usize;
            if inside == 0 {
                self.hash.update(head(content));
            }
            if inside.is_multiple_of(BLOCK) {
                self.hash.update(block_header(content, inside));
            }
            let run = bytes.len().min(BLOCK - inside % BLOCK).min(content - inside);
            let (piece, rest) = bytes.split_at(run);
            self.hash.update(piece);
            self.checksum.update(piece);
            self.at += run as u64;
            bytes = rest;
            if inside + run == content {
                passed.push(self.end(begin, content));
            }
        }
        passed
    }

    fn end(&mut self, begin: u64, content: usize) -> Passed {
        let checksum = (self.checksum.digest() as u32).to_le_bytes();
        self.checksum.reset(0);
        self.hash.update(checksum);
        let at = stored_len(begin);
        let blocks = (0..content).step_by(BLOCK).map(|from| {
            let mut before = Vec::new();
            if from == 0 {
                before.extend(head(content));
            }
            before.extend(block_header(content, from));
            (stored_place(begin + from as u64).0 - before.len() as u64, before)
        });
        let length = stored_len(content as u64);
        let around = blocks.chain([(at + length - 4, checksum.to_vec())]).collect();
        Passed { frame: Frame(length as u32, Hash(self.hash.finalize_reset().into())), around }
    }
}

/// A frame of compressed blocks. Every frame has a context of its own, so its bytes depend on content,
/// level and zstd's version alone. zstd leaves out the window where it writes a content size that
/// fits into it; so its header goes without a size and is replaced by ours.
pub(super) fn compressed(level: i32, content: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressor = Compressor::new(level)?;
    compressor.set_parameter(CParameter::WindowLog(20))?;
    compressor.set_parameter(CParameter::ContentSizeFlag(false))?;
    compressor.set_parameter(CParameter::ChecksumFlag(true))?;
    let frame = compressor.compress(content)?;
    let mut out = Vec::with_capacity(frame.len() + HEAD - ZSTD_HEAD);
    out.extend(head(content.len()));
    out.extend(&frame[ZSTD_HEAD..]);
    Ok(out)
}

/// The header of a frame of `content` bytes.
pub(super) fn head(content: usize) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    let (prefix, size) = head.split_at_mut(PREFIX.len());
    prefix.copy_from_slice(&PREFIX);
    size.copy_from_slice(&(content as u32).to_le_bytes());
    head
}

/// The content of a frame that must hold `size` bytes of it, and nothing else.
pub(super) fn decode(form: Form, frame: &[u8], size: usize) -> Result<Vec<u8>, String> {
    if size > CHUNK || !frame.starts_with(&head(size)) {
        return Err(format!("no frame of {size} bytes stands here"));
    }
    match form {
        Form::Stored => {
            let blocks = &frame[HEAD..frame.len().max(HEAD + 4) - 4];
            let content =
                blocks.chunks(BLOCK + 3).filter_map(|block| block.get(3..)).collect::<Vec<_>>().concat();
            if content.len() == size && stored(&content) == frame {
                Ok(content)
            } else {
                Err("the frame is not made of raw blocks with the right checksum".into())
            }
        }
        Form::Compressed => {
            let whole = find_frame_compressed_size(frame) == Ok(frame.len());
            let content = Decompressor::new().and_then(|mut zstd| zstd.decompress(frame, size));
            match content {
                Ok(content) if whole && content.len() == size => Ok(content),
                Ok(_) => Err("the frame holds something else than its header says".into()),
                Err(error) => Err(format!("the frame cannot be decompressed: {error}")),
            }
        }
    }
}

/// The first frame of `bytes`, and what follows it.
pub(super) fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(find_frame_compressed_size(bytes).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(len: usize) -> Vec<u8> {
        (0..len as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
    }

    #[test]
    fn both_forms_read_back_and_are_ordinary_zstd() {
        for len in [1, 2, 511, 512, BLOCK - 1, BLOCK, BLOCK + 1, CHUNK - 1, CHUNK] {
            for content in [noise(len), vec![b'x'; len]] {
                for form in [Form::Stored, Form::Compressed] {
                    let frame = encode(form, 3, &content).unwrap();
                    assert!(frame.starts_with(&PREFIX) && frame.len() <= MAX_FRAME);
                    assert_eq!(decode(form, &frame, len).unwrap(), content);
                    assert_eq!(zstd::stream::decode_all(&frame[..]).unwrap(), content);
                    if form == Form::Stored {
                        assert_eq!(frame.len() as u64, stored_len(len as u64));
                    }
                }
            }
        }
        assert_eq!(stored_len(CHUNK as u64 + 1), stored_len(CHUNK as u64) + stored_len(1));
        assert_eq!(stored_len(0), 0);
    }

    #[test]
    fn bytes_of_stored_content_lie_where_they_are_said_to() {
        let content = noise(2 * CHUNK + BLOCK + 5);
        let file: Vec<u8> = content.chunks(CHUNK).flat_map(stored).collect();
        let mut read: Vec<u8> = Vec::new();
        while read.len() < content.len() {
            let (at, run) = stored_place(read.len() as u64);
            let count = run.min(content.len() - read.len());
            read.extend(&file[at as usize..at as usize + count]);
        }
        assert_eq!(read, content);
        assert_eq!(stored_place(BLOCK as u64 + 7), (HEAD as u64 + 6 + BLOCK as u64 + 7, BLOCK - 7));
    }

    #[test]
    fn content_that_passes_in_pieces_makes_the_same_frames() {
        for len in [0, 1, BLOCK, BLOCK + 1, CHUNK, CHUNK + 1, 2 * CHUNK + BLOCK + 5] {
            let content = noise(len);
            let wanted: Vec<u8> = content.chunks(CHUNK).flat_map(stored).collect();
            let hashes: Vec<Frame> = content
                .chunks(CHUNK)
                .map(|chunk| (stored(chunk).len() as u32, Hash::of(&stored(chunk))))
                .map(|(length, hash)| Frame(length, hash))
                .collect();
            for step in [len.max(1), 7919, 300_000] {
                let mut file = vec![0; wanted.len()];
                let mut passing = Passing::new(len as u64);
                let mut passed = Vec::new();
                for piece in content.chunks(step) {
                    let (from, mut done) = (passing.at(), 0);
                    while done < piece.len() {
                        let (at, run) = stored_place(from + done as u64);
                        let count = run.min(piece.len() - done);
                        file[at as usize..at as usize + count].copy_from_slice(&piece[done..done + count]);
                        done += count;
                    }
                    passed.extend(passing.pass(piece));
                }
                for (at, bytes) in passed.iter().flat_map(|passed| &passed.around) {
                    file[*at as usize..*at as usize + bytes.len()].copy_from_slice(bytes);
                }
                assert!(file == wanted, "{len} in {step}");
                assert_eq!(passed.iter().map(|passed| passed.frame).collect::<Vec<_>>(), hashes);
            }
        }
    }

    #[test]
    fn a_frame_that_says_something_else_is_refused() {
        let content = noise(70_000);
        for form in [Form::Stored, Form::Compressed] {
            let frame = encode(form, 3, &content).unwrap();
            assert!(decode(form, &frame, 69_999).is_err());
            assert!(decode(form, &frame[..frame.len() - 1], 70_000).is_err());
            assert!(decode(form, &[&frame[..], &frame[..]].concat(), 70_000).is_err());
            assert!(decode(form, &frame[..4], 70_000).is_err());
            for at in [0, 4, 5, 6, 9, 10, 11, 12, 500, frame.len() - 1] {
                let mut bad = frame.clone();
                bad[at] ^= 1;
                assert!(decode(form, &bad, 70_000).is_err(), "{form:?} {at}");
            }
        }
    }

    #[test]
    fn a_bomb_is_not_blown_up() {
        let mut frame = compressed(3, &vec![0; CHUNK]).unwrap();
        frame[6..10].copy_from_slice(&100u32.to_le_bytes());
        assert!(decode(Form::Compressed, &frame, 100).is_err());
    }
}
