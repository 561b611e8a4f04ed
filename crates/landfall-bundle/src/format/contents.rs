//! The contents index: every entry of the bundle, and the location of the frame table, which has
//! the hash of every frame.

use super::blob_recipe::{BlobRecipe, BlobReference};
use super::entry::TarEntry;
use super::frame::{FrameBuffers, FrameTable};
use super::names::{BaseName, ItemName};
use super::stored::{
    BLOCK, BLOCK_HEAD, CHECKSUM, ContentForm, HEAD, block_header, checksum, head, stored_position,
};
use landfall_model::{Descriptor, Digest, Limits};
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use xxhash_rust::xxh64::Xxh64;
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

/// The contents index. The order of the fields is the order in the JSON. A reader ignores unknown
/// members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentsIndex {
    /// The version of the format: 1.
    pub version: u32,
    /// The release of landfall that packed the bundle.
    pub landfall: String,
    /// The options that affect the bytes of the bundle.
    pub options: PackOptions,
    /// Features that a reader must support: `delta`, `recipe`, both, or none.
    pub requires: Vec<String>,
    /// The name of the series that the bundle belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// The number of the bundle in its series: a later bundle has a higher number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<u64>,
    /// The locks in the bundle; this release writes exactly one.
    pub locks: Vec<LockName>,
    /// The items of the lock that the bundle lacks. Empty if the bundle is complete.
    pub partial: Vec<ItemName>,
    /// The bases of a delta. Each of them contains all omitted blobs and all references.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<BaseName>,
    /// The blobs that a delta omits, sorted by digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<Descriptor>,
    /// The blobs that the bundle has recipes for, sorted by digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipes: Vec<BlobRecipe>,
    /// The blobs that recipes use, and that the bundle neither contains nor has recipes for, sorted
    /// by digest. Each base has all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<BlobReference>,
    /// The frame table, which is an entry of its own between `entries` and this index.
    pub frames: FrameTable,
    /// All other entries, in the order of the file.
    pub entries: Vec<TarEntry>,
}

/// The position of a bundle in a series. A site that accepted a bundle refuses earlier ones of the
/// series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serial {
    /// The name of the series.
    pub series: String,
    /// The number of the bundle in its series; a later bundle has a higher number.
    pub number: u64,
}

/// The options that affect the bytes of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackOptions {
    /// The compression level of zstd.
    pub level: i32,
}

impl Default for PackOptions {
    fn default() -> PackOptions {
        // another default would give other bytes for the same lock
        PackOptions { level: 3 }
    }
}

/// A lock in a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockName {
    /// The name of the entry with the lock.
    pub name: String,
    /// SHA-256 of the text of the lock.
    pub fingerprint: Digest,
}

/// The maximum length of a contents index, in bytes, if the bundle has `bundle_length` bytes. It
/// bounds the memory that a hostile bundle can make a reader allocate. In the index, an entry is
/// shorter than its tar header of 512 bytes in the bundle. The blobs that a delta omits have no tar
/// header; their list may use the 64 MiB.
pub(crate) fn max_index_length(bundle_length: u64, limits: &Limits) -> u64 {
    (limits.contents_bytes as u64).min(bundle_length.saturating_add(64 << 20))
}

impl ContentsIndex {
    /// Serializes the index. Equal indexes have equal bytes.
    pub fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)?;
        // a line feed at the end, for tools that print the index
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// The position of the lock in `entries`.
    pub(crate) fn lock_index(&self) -> Option<usize> {
        // the format allows several locks; this release writes and reads one
        let name = &self.locks.first()?.name;
        self.entries.iter().position(|entry| entry.name == *name)
    }
}

// Builds one frame. The content of a stored frame is read directly to the offsets of its raw
// blocks, which saves a copy.

/// The length of the header that zstd writes for a frame with a checksum but without a content
/// size: magic number, descriptor, window.
const ZSTD_HEAD: usize = 6;

/// The content of one frame, at most [`super::stored::CHUNK`] bytes. For a stored frame, the buffer
/// is the frame itself.
pub(crate) struct FrameBuilder {
    form: ContentForm,
    size: usize,
    bytes: Vec<u8>,
}

impl FrameBuilder {
    /// A builder for `size` bytes of content, which [`FrameBuilder::fill`] reads. It reuses the
    /// buffer `bytes`.
    pub(crate) fn new(form: ContentForm, size: usize, mut bytes: Vec<u8>) -> FrameBuilder {
        // a stored frame is built in the buffer that is written; a compressed one in another buffer
        let length = match form {
            ContentForm::Stored => HEAD + size.div_ceil(BLOCK) * BLOCK_HEAD + size + CHECKSUM,
            ContentForm::Compressed => size,
        };
        if length <= bytes.len() {
            bytes.truncate(length);
        } else {
            // `vec!` gets memory that the system has cleared; `resize` would write it byte by byte
            // in a debug build
            bytes = vec![0; length];
        }
        FrameBuilder { form, size, bytes }
    }

    /// A builder that contains `content`.
    pub(crate) fn of(form: ContentForm, content: &[u8]) -> FrameBuilder {
        let mut builder = FrameBuilder::new(form, content.len(), Vec::new());
        for (from, block) in (0..).step_by(BLOCK).zip(content.chunks(BLOCK)) {
            builder.block(from).copy_from_slice(block);
        }
        builder
    }

    /// Reads the content from `source` and passes it to `seen` block by block. Fails with
    /// `UnexpectedEof` if the source ends too early.
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

    /// The number of content bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The part of the buffer for the content from `from` on, up to the end of its block.
    fn block(&mut self, from: usize) -> &mut [u8] {
        let length = BLOCK.min(self.size - from);
        let at = match self.form {
            ContentForm::Stored => stored_position(from as u64).0 as usize,
            ContentForm::Compressed => from,
        };
        &mut self.bytes[at..at + length]
    }

    /// Encodes the frame. A buffer that is no longer needed is returned to `spare`.
    pub(crate) fn frame(self, level: i32, spare: &FrameBuffers) -> io::Result<Vec<u8>> {
        match self.form {
            ContentForm::Stored => Ok(self.stored()),
            ContentForm::Compressed => {
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

/// A frame of compressed blocks. Every frame has a compression context of its own, so that its
/// bytes depend only on content, level and zstd's version. zstd omits the window from a header with
/// a content size. Therefore this function requests a header without a size, and replaces that
/// header.
pub(super) fn compressed(level: i32, content: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressor = Compressor::new(level)?;
    // the window of the fixed frame header: readers need at most 1 MiB for it
    compressor.set_parameter(CParameter::WindowLog(20))?;
    compressor.set_parameter(CParameter::ContentSizeFlag(false))?;
    compressor.set_parameter(CParameter::ChecksumFlag(true))?;
    let frame = compressor.compress(content)?;
    let mut out = Vec::with_capacity(frame.len() + HEAD - ZSTD_HEAD);
    out.extend(head(content.len()));
    out.extend(&frame[ZSTD_HEAD..]);
    Ok(out)
}
