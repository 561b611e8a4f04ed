//! zstd frames (RFC 8878) with at most 1 MiB of content. All headers have the same form: never
//! single-segment, window 1 MiB, content size in four bytes. An XXH64 checksum is at the end.

use super::builder::{FrameBuilder, compressed};
use super::content_form::ContentForm;
use super::stored::{self, CHUNK, head};
use std::io;
use zstd::bulk::Decompressor;
use zstd::zstd_safe::find_frame_compressed_size;

/// The maximum length of a frame: incompressible content with the block headers that zstd adds.
pub(crate) const MAX_FRAME: usize = CHUNK + CHUNK / 128;

/// Encodes one frame of `content`, which is at most [`CHUNK`] bytes long.
pub(crate) fn encode(form: ContentForm, level: i32, content: &[u8]) -> io::Result<Vec<u8>> {
    match form {
        ContentForm::Stored => Ok(stored(content)),
        ContentForm::Compressed => compressed(level, content),
    }
}

/// Encodes a frame of raw blocks.
pub(crate) fn stored(content: &[u8]) -> Vec<u8> {
    FrameBuilder::of(ContentForm::Stored, content).stored()
}

/// Decodes a frame that must contain exactly `size` bytes.
pub(crate) fn decode(form: ContentForm, frame: &[u8], size: usize) -> Result<Vec<u8>, String> {
    if size > CHUNK || !frame.starts_with(&head(size)) {
        return Err(format!("there is no frame of {size} bytes at this offset"));
    }
    match form {
        ContentForm::Stored => stored::decode(frame, size)
            .ok_or_else(|| "the frame is not made of raw blocks with the right checksum".into()),
        ContentForm::Compressed => {
            // the decompressor accepts bytes after the frame, in which anything could be hidden
            let whole = find_frame_compressed_size(frame) == Ok(frame.len());
            // `size` bounds the memory, whatever the frame declares
            let content = Decompressor::new().and_then(|mut zstd| zstd.decompress(frame, size));
            match content {
                Ok(content) if whole && content.len() == size => Ok(content),
                Ok(_) => Err("other bytes follow the frame".into()),
                Err(error) => Err(format!("the frame cannot be decompressed: {error}")),
            }
        }
    }
}

/// Splits `bytes` after the first frame.
pub(crate) fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(find_frame_compressed_size(bytes).ok()?)
}

#[cfg(test)]
mod tests {
    use super::super::stored::{BLOCK, stored_len};
    use super::*;

    fn noise(len: usize) -> Vec<u8> {
        (0..len as u64)
            .map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
            .collect()
    }

    #[test]
    fn frames_of_both_forms_are_ordinary_zstd_and_decode_to_their_content() {
        for len in [
            1,
            2,
            511,
            512,
            BLOCK - 1,
            BLOCK,
            BLOCK + 1,
            CHUNK - 1,
            CHUNK,
        ] {
            for content in [noise(len), vec![b'x'; len]] {
                for form in [ContentForm::Stored, ContentForm::Compressed] {
                    let frame = encode(form, 3, &content).unwrap();
                    assert!(frame.starts_with(&head(len)) && frame.len() <= MAX_FRAME);
                    assert_eq!(decode(form, &frame, len).unwrap(), content);
                    assert_eq!(zstd::stream::decode_all(&frame[..]).unwrap(), content);
                    if form == ContentForm::Stored {
                        assert_eq!(frame.len() as u64, stored_len(len as u64));
                    }
                }
            }
        }
    }

    #[test]
    fn a_changed_or_cut_frame_is_refused() {
        let content = noise(70_000);
        for form in [ContentForm::Stored, ContentForm::Compressed] {
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
    fn a_frame_that_decompresses_to_too_much_is_refused() {
        let mut frame = compressed(3, &vec![0; CHUNK]).unwrap();
        frame[6..10].copy_from_slice(&100u32.to_le_bytes());
        assert!(decode(ContentForm::Compressed, &frame, 100).is_err());
    }
}
