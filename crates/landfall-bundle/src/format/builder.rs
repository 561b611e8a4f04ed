//! The builder of one frame. Content of a stored frame is read right where its raw blocks stand, so
//! that it is not copied once more.

use super::buffers::Buffers;
use super::form::Form;
use super::stored::{
    BLOCK, BLOCK_HEAD, CHECKSUM, HEAD, block_header, checksum, head, stored_place,
};
use std::io::{self, Read};
use xxhash_rust::xxh64::Xxh64;
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

/// What zstd writes itself for a frame with checksum and without content size: magic, descriptor,
/// window.
const ZSTD_HEAD: usize = 6;

/// The content of one frame, at most [`super::stored::CHUNK`] bytes; of a stored one, the frame
/// itself.
pub(crate) struct FrameBuilder {
    form: Form,
    size: usize,
    bytes: Vec<u8>,
}

impl FrameBuilder {
    /// A builder for `size` bytes of content, which are still to come. It uses the buffer `bytes`,
    /// whatever is in it.
    pub(crate) fn new(form: Form, size: usize, mut bytes: Vec<u8>) -> FrameBuilder {
        let length = match form {
            Form::Stored => HEAD + size.div_ceil(BLOCK) * BLOCK_HEAD + size + CHECKSUM,
            Form::Compressed => size,
        };
        match length <= bytes.len() {
            true => bytes.truncate(length),
            // memory that is cleared already: `resize` writes it byte by byte in a debug build
            false => bytes = vec![0; length],
        }
        FrameBuilder { form, size, bytes }
    }

    /// A builder that holds `content`.
    pub(crate) fn of(form: Form, content: &[u8]) -> FrameBuilder {
        let mut builder = FrameBuilder::new(form, content.len(), Vec::new());
        for (from, block) in (0..).step_by(BLOCK).zip(content.chunks(BLOCK)) {
            builder.block(from).copy_from_slice(block);
        }
        builder
    }

    /// Reads the content, and shows it to `seen` run by run.
    ///
    /// # Errors
    /// Those of `source`; `UnexpectedEof` where it ends too early.
    pub(crate) fn fill(
        &mut self,
        source: &mut dyn Read,
        mut seen: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        for from in (0..self.size).step_by(BLOCK) {
            let block = self.block(from);
            source.read_exact(block)?;
            seen(block);
        }
        Ok(())
    }

    /// Bytes of content.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Where the content from `from` on stands, up to the end of its block.
    fn block(&mut self, from: usize) -> &mut [u8] {
        let length = BLOCK.min(self.size - from);
        let at = match self.form {
            Form::Stored => stored_place(from as u64).0 as usize,
            Form::Compressed => from,
        };
        &mut self.bytes[at..at + length]
    }

    /// The frame. A buffer that is no longer needed goes to `spare`.
    ///
    /// # Errors
    /// Those of zstd.
    pub(crate) fn frame(self, level: i32, spare: &Buffers) -> io::Result<Vec<u8>> {
        match self.form {
            Form::Stored => Ok(self.stored()),
            Form::Compressed => {
                let frame = compressed(level, &self.bytes);
                spare.give(self.bytes);
                frame
            }
        }
    }

    /// The frame of raw blocks.
    pub(super) fn stored(mut self) -> Vec<u8> {
        let mut hasher = Xxh64::new(0);
        let end = self.bytes.len() - CHECKSUM;
        self.bytes[..HEAD].copy_from_slice(&head(self.size));
        let blocks = self.bytes[HEAD..end].chunks_mut(BLOCK + BLOCK_HEAD);
        for (from, block) in (0..).step_by(BLOCK).zip(blocks) {
            let (head, content) = block.split_at_mut(BLOCK_HEAD);
            head.copy_from_slice(&block_header(self.size, from));
            hasher.update(content);
        }
        self.bytes[end..].copy_from_slice(&checksum(&hasher));
        self.bytes
    }
}

/// A frame of compressed blocks. Every frame has a context of its own, so its bytes depend on
/// content, level and zstd's version alone. zstd leaves out the window where it writes a content
/// size that fits into it; so its header goes without a size and is replaced by ours.
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
