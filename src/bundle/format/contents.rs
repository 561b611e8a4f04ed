//! The contents index: every entry of the bundle and every frame, with place, length and hash.

use super::base::BaseName;
use super::entry::TarEntry;
use super::names::{ItemName, LAYOUT};
use super::stored::CHUNK;
use crate::model::{Descriptor, Digest};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// The contents index, in the order of its members. A reader ignores members that it does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Version of the format; 1.
    pub version: u32,
    /// Release of landfall that packed it.
    pub landfall: String,
    /// Options that change the bytes.
    pub options: PackOptions,
    /// What a reader must know to use it: `delta`, or nothing.
    pub requires: Vec<String>,
    /// The locks inside; one in a bundle of this release.
    pub locks: Vec<LockName>,
    /// Items of the lock that are not in the bundle. Empty when it is complete.
    pub partial: Vec<ItemName>,
    /// Bases of a delta: each has all of `omitted`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<BaseName>,
    /// Blobs that a delta leaves out, by digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<Descriptor>,
    /// File offset of the locator's entry, which is not among `entries`: it names this index's hash.
    pub locator: u64,
    /// All other entries that stand before this index, by position in the file.
    pub entries: Vec<TarEntry>,
}

/// Options that change a bundle's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackOptions {
    /// zstd's level for what is compressed.
    pub level: i32,
}

impl Default for PackOptions {
    fn default() -> PackOptions {
        PackOptions { level: 3 }
    }
}

/// A lock inside a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockName {
    /// The entry that holds it.
    pub name: String,
    /// SHA-256 of its text.
    pub fingerprint: Digest,
}

impl Contents {
    /// The index as bytes. Equal indexes give equal bytes.
    pub(crate) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.chunks(|chunk| {
            bytes.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Hands out the same bytes, [`CHUNK`] at a time.
    pub(crate) fn chunks(&self, hand: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut chunks = Chunks { chunk: Vec::with_capacity(CHUNK), hand };
        serde_json::to_writer(&mut chunks, self)?;
        chunks.write_all(b"\n")?;
        chunks.flush()
    }

    /// How many entries stand before the locator.
    pub(crate) fn front_len(&self) -> usize {
        (LAYOUT.len() + self.locks.len()).min(self.entries.len())
    }
}

/// Hands out what is written to it in pieces of one size, and at last the rest.
struct Chunks<F> {
    chunk: Vec<u8>,
    hand: F,
}

impl<F: FnMut(&[u8]) -> io::Result<()>> Write for Chunks<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(CHUNK - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..taken]);
        if self.chunk.len() == CHUNK {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.chunk.is_empty() {
            (self.hand)(&self.chunk)?;
            self.chunk.clear();
        }
        Ok(())
    }
}
