//! The contents index: every entry of the bundle and every frame, with place, length and hash.

use super::locator::{self, Locator};
use super::{BaseName, Fault, Form, LOCATOR, LOCK, delta, frame, header};
use crate::model::{Descriptor, Digest, MediaType, hex, unhex};
use crate::report::Kind;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

/// Names of the first two entries, which make the tar an OCI image layout.
pub(super) const FRONT: [&str; 2] = ["oci-layout", "index.json"];

/// The contents index, in the order of its members. A reader ignores members that it does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Version of the format; 1.
    pub version: u32,
    /// Release of landfall that packed it.
    pub landfall: String,
    /// Options that have an influence on the bytes.
    pub options: PackOptions,
    /// What a reader must know to use it: `delta`, or nothing.
    pub requires: Vec<String>,
    /// The locks inside; one in a bundle of this release.
    pub locks: Vec<LockName>,
    /// Items of the lock that are not in the bundle. Empty when it is whole.
    pub partial: Vec<ItemName>,
    /// Bases of a delta: each has all of `omitted`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<BaseName>,
    /// Blobs that a delta leaves out, by digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<Descriptor>,
    /// File offset of the locator's entry, which is not among `entries`: it names this index's hash.
    pub locator: u64,
    /// All other entries that stand before this index, by position.
    pub entries: Vec<Record>,
}

/// Options that have an influence on a bundle's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackOptions {
    /// zstd's level for what is compressed.
    pub level: i32,
}

/// A lock inside a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockName {
    /// The entry that holds it.
    pub name: String,
    /// SHA-256 of its text.
    pub fingerprint: Digest,
}

/// An item of a lock.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ItemName {
    /// What kind.
    pub kind: Kind,
    /// Its name in the lock.
    pub name: String,
}

/// One entry of the tar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Its name in the tar.
    pub name: String,
    /// Digest of its content.
    pub digest: Digest,
    /// Size of its content in bytes.
    pub size: u64,
    /// Media type of its content.
    pub media_type: MediaType,
    /// How its content stands in its frames.
    pub form: Form,
    /// File offset of its first frame.
    pub offset: u64,
    /// Its frames: one with the tar header, one for each MiB of content begun, and one with the padding
    /// to 512 bytes where there is some. The first and the last of these are stored.
    pub frames: Vec<Frame>,
}

/// One zstd frame: its length in the file, and the SHA-256 of these bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame(pub u32, pub Hash);

/// A SHA-256 of a part of a bundle, 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hash(pub(super) [u8; 32]);

impl Hash {
    /// The SHA-256 of `bytes`.
    pub fn of(bytes: &[u8]) -> Hash {
        Hash(Sha256::digest(bytes).into())
    }
}

impl Frame {
    /// The frame with these bytes.
    pub(super) fn of(bytes: &[u8]) -> Frame {
        Frame(bytes.len() as u32, Hash::of(bytes))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Hash {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Hash, Self::Err> {
        unhex(text).map(Hash).ok_or("a hash has 64 lower-case hex digits")
    }
}

impl TryFrom<String> for Hash {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Hash, Self::Error> {
        text.parse()
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> String {
        hash.to_string()
    }
}

impl Record {
    /// How many content bytes the frame at `index` holds.
    pub(super) fn content_len(&self, index: usize) -> usize {
        let chunks = self.size.div_ceil(frame::CHUNK as u64);
        match index as u64 {
            0 => header::encoded_len(&self.name),
            n if n < chunks => frame::CHUNK,
            n if n == chunks => (self.size - (n - 1) * frame::CHUNK as u64) as usize,
            _ => header::padding(self.size),
        }
    }

    /// The form of the frame at `index`.
    pub(super) fn form_of(&self, index: usize) -> Form {
        if self.is_content(index) { self.form } else { Form::Stored }
    }

    /// Whether the frame at `index` holds a piece of the content.
    pub(super) fn is_content(&self, index: usize) -> bool {
        (1..=self.size.div_ceil(frame::CHUNK as u64)).contains(&(index as u64))
    }

    /// How many frames an entry of this size has.
    pub(super) fn frame_count(size: u64) -> u64 {
        1 + size.div_ceil(frame::CHUNK as u64) + u64::from(header::padding(size) > 0)
    }

    /// Whether the entry is a blob of the layout.
    pub(super) fn is_blob(&self) -> bool {
        self.name == self.digest.layout_path()
    }

    /// Checks everything that can be checked without reading the frames; gives the offset after it.
    fn check(&self) -> Result<u64, String> {
        if Record::frame_count(self.size) != self.frames.len() as u64 {
            return Err("the contents index lists too few or too many frames for its size".into());
        }
        let mut end = self.offset;
        for (index, Frame(length, _)) in self.frames.iter().enumerate() {
            let exact = frame::stored_len(self.content_len(index) as u64);
            let good = match self.form_of(index) {
                Form::Stored => u64::from(*length) == exact,
                Form::Compressed => *length as usize <= frame::MAX_FRAME,
            };
            if !good {
                return Err(format!("the contents index gives frame {index} a length that cannot be"));
            }
            end = end.checked_add(u64::from(*length)).ok_or("it would end behind the end of all files")?;
        }
        Ok(end)
    }
}

impl Contents {
    /// The index as bytes. Equal indexes give equal bytes.
    pub(super) fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// The same, [`frame::CHUNK`] bytes at a time.
    pub(super) fn chunks(&self, hand: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut chunks = Chunks { chunk: Vec::with_capacity(frame::CHUNK), hand };
        serde_json::to_writer(&mut chunks, self)?;
        chunks.write_all(b"\n")?;
        chunks.flush()
    }

    /// Checks that the entries are those of a bundle and lie in the file without a gap, up to the index.
    pub(super) fn check(&self, locator_at: u64, locator: &Locator) -> Result<(), Fault> {
        let fault = |why: &str| Fault::new(super::CONTENTS, locator.offset, why);
        let front_len = self.front_len();
        let names = self.entries.iter().map(|entry| entry.name.as_str());
        let locks = self.locks.iter().map(|lock| lock.name.as_str());
        if !locks.eq([LOCK]) || !names.take(front_len).eq(FRONT.into_iter().chain([LOCK])) {
            return Err(fault("it does not begin with the entries that every bundle has"));
        }
        if self.locator != locator_at {
            return Err(fault("it gives the locator another place"));
        }
        delta::check(self).map_err(|why| fault(&why))?;
        let mut seen = HashSet::new();
        let mut end = 0;
        for (index, entry) in self.entries.iter().enumerate() {
            let fault = |why: String| Fault::new(&entry.name, entry.offset, why);
            if index >= front_len && !entry.is_blob() {
                return Err(fault("it is no entry of a bundle".into()));
            }
            if !seen.insert(&entry.name) {
                return Err(fault("it is there twice".into()));
            }
            if entry.offset != end {
                return Err(fault(format!("it must begin at byte {end}")));
            }
            end = entry.check().map_err(fault)?;
            if index + 1 == front_len {
                if end != locator_at {
                    return Err(Fault::new(LOCATOR, locator_at, format!("it must begin at byte {end}")));
                }
                end += locator::SPAN as u64;
            }
        }
        // the index's own header is one stored frame of one tar block
        if end.checked_add(frame::stored_len(header::BLOCK as u64)) != Some(locator.offset) {
            return Err(fault("it does not stand right after the last entry"));
        }
        Ok(())
    }

    /// How many entries stand before the locator.
    pub(super) fn front_len(&self) -> usize {
        (FRONT.len() + self.locks.len()).min(self.entries.len())
    }
}

/// Hands on what is written in pieces of one size, and at last the rest.
struct Chunks<F> {
    chunk: Vec<u8>,
    hand: F,
}

impl<F: FnMut(&[u8]) -> io::Result<()>> Write for Chunks<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(frame::CHUNK - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..taken]);
        if self.chunk.len() == frame::CHUNK {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_read_back() {
        let hash = Hash::of(b"abc");
        assert_eq!(hash.to_string(), Digest::sha256(b"abc").hex());
        assert_eq!(hash.to_string().parse(), Ok(hash));
        for bad in ["", "00", &"A".repeat(64), &"0".repeat(65), &"é".repeat(32)] {
            assert!(bad.parse::<Hash>().is_err(), "{bad}");
        }
    }
}
