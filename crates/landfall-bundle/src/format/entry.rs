//! An entry of the tar, as the contents index lists it, and the content of each of its frames.

use super::frame::{self, FrameHash, MAX_FRAME};
use super::header;
use super::stored::{CHUNK, ContentForm, stored_len};
use landfall_model::{Digest, MediaType};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// An entry of the tar, as the contents index lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TarEntry {
    /// The path in the tar.
    pub name: String,
    /// The digest of the content.
    pub digest: Digest,
    /// The size of the content in bytes.
    pub size: u64,
    /// The media type of the content.
    pub media_type: MediaType,
    /// How the frames encode the content.
    pub form: ContentForm,
    /// The file offset of the first frame.
    pub offset: u64,
    /// The length of all its frames in the file: one with the tar header, one for each MiB of
    /// content, and one with the padding to 512 bytes, if any. Header and padding are always
    /// stored.
    pub length: u64,
    /// The row of its first frame in the frame table; the rows of the other frames follow.
    pub frame: u64,
}

/// A frame of an entry: its location and hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryFrame {
    /// The number of the frame in the entry.
    pub index: usize,
    /// The file offset of the frame.
    pub offset: u64,
    /// The length of the frame in the file, in bytes.
    pub length: usize,
    /// SHA-256 of the bytes of the frame.
    pub hash: FrameHash,
}

impl TarEntry {
    /// The number of bytes that the frame at `index` decodes to.
    pub(crate) fn content_len(&self, index: usize) -> usize {
        let chunks = self.size.div_ceil(CHUNK as u64);
        match index as u64 {
            0 => header::encoded_len(&self.name),
            n if n < chunks => CHUNK,
            // the last frame with content may be shorter
            n if n == chunks => (self.size - (n - 1) * CHUNK as u64) as usize,
            _ => header::padding(self.size),
        }
    }

    /// The form of the frame at `index`: header and padding are always stored.
    pub(crate) fn form_of(&self, index: usize) -> ContentForm {
        if self.is_content(index) {
            self.form
        } else {
            ContentForm::Stored
        }
    }

    /// Whether the frame at `index` contains content, not the header or padding.
    pub fn is_content(&self, index: usize) -> bool {
        (1..=self.size.div_ceil(CHUNK as u64)).contains(&(index as u64))
    }

    /// The number of frames of an entry with this size.
    pub(crate) fn frame_count(size: u64) -> u64 {
        1 + size.div_ceil(CHUNK as u64) + u64::from(header::padding(size) > 0)
    }

    /// Whether the entry is a blob of the OCI layout.
    pub fn is_blob(&self) -> bool {
        self.name == self.digest.layout_path()
    }

    /// The rows of its frames in the frame table.
    pub fn rows(&self) -> Range<u64> {
        self.frame..self.frame + TarEntry::frame_count(self.size)
    }

    /// The file offset after its last frame.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// The file offset of the first frame with content.
    pub fn content_offset(&self) -> u64 {
        self.offset + stored_len(header::encoded_len(&self.name) as u64)
    }

    /// The frame at `index` with this hash and these offsets, which are from rows of the frame
    /// table. Fails if the frame at `index` cannot have these offsets.
    pub fn frame(
        &self,
        index: usize,
        from: u64,
        to: u64,
        hash: FrameHash,
    ) -> Result<EntryFrame, String> {
        let is_inside = self.offset <= from && from < to && to <= self.end();
        let is_first = index == 0;
        let is_last = index as u64 + 1 == TarEntry::frame_count(self.size);
        // offsets come from the frame table, which may be damaged
        let length = to.saturating_sub(from);
        let has_length = match self.form_of(index) {
            ContentForm::Stored => length == stored_len(self.content_len(index) as u64),
            ContentForm::Compressed => length <= MAX_FRAME as u64,
        };
        // the first frame, and no other, begins where the entry begins; the last frame, and no
        // other, ends where the entry ends
        let ends = is_first == (from == self.offset) && is_last == (to == self.end());
        if !(is_inside && has_length && ends) {
            return Err(format!(
                "the frame table has an impossible offset or length for frame {index}"
            ));
        }
        Ok(EntryFrame {
            index,
            offset: from,
            length: length as usize,
            hash,
        })
    }

    /// Decodes `bytes` of `frame`, after comparing their hash.
    pub fn content(&self, frame: &EntryFrame, bytes: &[u8]) -> Result<Vec<u8>, String> {
        if FrameHash::of(bytes) != frame.hash {
            return Err("its bytes do not have the hash in the frame table".into());
        }
        self.decoded(frame, bytes)
    }

    /// Decodes `bytes` of `frame`, comparing only the frame's own checksum.
    pub fn decoded(&self, frame: &EntryFrame, bytes: &[u8]) -> Result<Vec<u8>, String> {
        frame::decode(
            self.form_of(frame.index),
            bytes,
            self.content_len(frame.index),
        )
    }

    /// Returns the content of the frame at `index`, after comparing tar header and padding with
    /// what name and size require.
    pub fn check_content(&self, index: usize, content: Vec<u8>) -> Result<Vec<u8>, String> {
        if index == 0 && content != header::encode(&self.name, self.size) {
            return Err("its tar header does not match the contents index".into());
        }
        // other tools ignore the padding, so bytes could be hidden there
        if index > 0 && !self.is_content(index) && content.iter().any(|&byte| byte != 0) {
            return Err("its padding is not empty".into());
        }
        Ok(content)
    }
}
