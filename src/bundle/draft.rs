//! A frame under way. A stored one is read where its raw blocks stand, so that content is not moved once more.

use super::Form;
use super::frame::{BLOCK, HEAD, block_header, compressed, head};
use super::pipeline::Buffers;
use std::io::{self, Read};
use xxhash_rust::xxh64::Xxh64;

/// Bytes of a raw block's header.
const BLOCK_HEAD: usize = 3;

/// The content of one frame, which is not longer than [`super::frame::CHUNK`]; of a stored one the frame itself.
pub(super) struct Draft {
    form: Form,
    size: usize,
    bytes: Vec<u8>,
}

impl Draft {
    /// Of `size` bytes of content, which are still to come, in `bytes`, whatever is in there.
    pub(super) fn new(form: Form, size: usize, mut bytes: Vec<u8>) -> Draft {
        let length = match form {
            Form::Stored => HEAD + size.div_ceil(BLOCK) * BLOCK_HEAD + size + 4,
            Form::Compressed => size,
        };
        bytes.resize(length, 0);
        Draft { form, size, bytes }
    }

    /// The same of content that is here.
    pub(super) fn of(form: Form, content: &[u8]) -> Draft {
        let mut draft = Draft::new(form, content.len(), Vec::new());
        for (from, block) in (0..).step_by(BLOCK).zip(content.chunks(BLOCK)) {
            draft.block(from).copy_from_slice(block);
        }
        draft
    }

    /// Reads the content, and shows it to `seen` run by run.
    ///
    /// # Errors
    /// Those of `source`; `UnexpectedEof` where it ends too early.
    pub(super) fn fill(&mut self, source: &mut dyn Read, mut seen: impl FnMut(&[u8])) -> io::Result<()> {
        for from in (0..self.size).step_by(BLOCK) {
            let block = self.block(from);
            source.read_exact(block)?;
            seen(block);
        }
        Ok(())
    }

    /// Bytes of content.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Where the content from `from` on stands, up to the end of its block.
    fn block(&mut self, from: usize) -> &mut [u8] {
        let length = BLOCK.min(self.size - from);
        let at = match self.form {
            Form::Stored => HEAD + from / BLOCK * (BLOCK + BLOCK_HEAD) + BLOCK_HEAD,
            Form::Compressed => from,
        };
        &mut self.bytes[at..at + length]
    }

    /// The frame. A buffer that is no longer needed goes to `spare`.
    ///
    /// # Errors
    /// Those of zstd.
    pub(super) fn frame(self, level: i32, spare: &Buffers) -> io::Result<Vec<u8>> {
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
        let mut checksum = Xxh64::new(0);
        let end = self.bytes.len() - 4;
        self.bytes[..HEAD].copy_from_slice(&head(self.size));
        let blocks = self.bytes[HEAD..end].chunks_mut(BLOCK + BLOCK_HEAD);
        for (from, block) in (0..).step_by(BLOCK).zip(blocks) {
            let (head, content) = block.split_at_mut(BLOCK_HEAD);
            head.copy_from_slice(&block_header(self.size, from));
            checksum.update(content);
        }
        self.bytes[end..].copy_from_slice(&(checksum.digest() as u32).to_le_bytes());
        self.bytes
    }
}
