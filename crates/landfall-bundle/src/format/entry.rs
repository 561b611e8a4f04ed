//! One entry of the tar as the contents index lists it, and what each of its frames holds.

use super::form::Form;
use super::frame::MAX_FRAME;
use super::hash::Hash;
use super::stored::{CHUNK, stored_len};
use super::{frame, header};
use landfall_model::{Digest, MediaType};
use serde::{Deserialize, Serialize};

/// One entry of the tar, as the contents index lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TarEntry {
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
    /// File bytes of all its frames: one with the tar header, one for each MiB of content begun,
    /// and one with the padding to 512 bytes where there is some. The first and the last of these
    /// are stored.
    pub length: u64,
    /// The row of the frame table that its first frame has; those of the others follow.
    pub frame: u64,
}

/// One frame of an entry: where it is, and its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryFrame {
    /// Its number in the entry.
    pub index: usize,
    /// Its offset in the file.
    pub offset: u64,
    /// Its length in the file, in bytes.
    pub length: usize,
    /// SHA-256 of these bytes.
    pub hash: Hash,
}

impl TarEntry {
    /// How many content bytes the frame at `index` holds.
    pub fn content_len(&self, index: usize) -> usize {
        let chunks = self.size.div_ceil(CHUNK as u64);
        match index as u64 {
            0 => header::encoded_len(&self.name),
            n if n < chunks => CHUNK,
            n if n == chunks => (self.size - (n - 1) * CHUNK as u64) as usize,
            _ => header::padding(self.size),
        }
    }

    /// The form of the frame at `index`.
    pub fn form_of(&self, index: usize) -> Form {
        if self.is_content(index) {
            self.form
        } else {
            Form::Stored
        }
    }

    /// Whether the frame at `index` holds a piece of the content.
    pub fn is_content(&self, index: usize) -> bool {
        (1..=self.size.div_ceil(CHUNK as u64)).contains(&(index as u64))
    }

    /// How many frames an entry of this size has.
    pub fn frame_count(size: u64) -> u64 {
        1 + size.div_ceil(CHUNK as u64) + u64::from(header::padding(size) > 0)
    }

    /// Whether the entry is a blob of the layout.
    pub fn is_blob(&self) -> bool {
        self.name == self.digest.layout_path()
    }

    /// The offset after its last frame.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// The offset of the first frame of its content.
    pub fn content_offset(&self) -> u64 {
        self.offset + stored_len(header::encoded_len(&self.name) as u64)
    }

    /// The frame at `index`, if it can be what rows of the frame table say: it has this hash, and
    /// lies `from` here `to` there.
    pub fn frame(
        &self,
        index: usize,
        from: u64,
        to: u64,
        hash: Hash,
    ) -> Result<EntryFrame, String> {
        let is_inside = self.offset <= from && from < to && to <= self.end();
        let (is_first, is_last) = (
            index == 0,
            index as u64 + 1 == TarEntry::frame_count(self.size),
        );
        let length = to.saturating_sub(from);
        let has_length = match self.form_of(index) {
            Form::Stored => length == stored_len(self.content_len(index) as u64),
            Form::Compressed => length <= MAX_FRAME as u64,
        };
        let ends = is_first == (from == self.offset) && is_last == (to == self.end());
        match is_inside && has_length && ends {
            true => Ok(EntryFrame {
                index,
                offset: from,
                length: length as usize,
                hash,
            }),
            false => Err(format!(
                "the frame table gives frame {index} a place that cannot be"
            )),
        }
    }

    /// The content of `frame`, if these `bytes` have the right hash.
    pub fn content(&self, frame: &EntryFrame, bytes: &[u8]) -> Result<Vec<u8>, String> {
        if Hash::of(bytes) != frame.hash {
            return Err("its bytes do not have the hash that the frame table gives them".into());
        }
        self.decoded(frame, bytes)
    }

    /// The content of `frame`, if the frame's own checksum is right.
    pub fn decoded(&self, frame: &EntryFrame, bytes: &[u8]) -> Result<Vec<u8>, String> {
        frame::decode(
            self.form_of(frame.index),
            bytes,
            self.content_len(frame.index),
        )
    }

    /// Returns the content of the frame at `index` if it is what must stand there, as far as that
    /// follows from name and size: the tar header and the padding.
    pub fn check_content(&self, index: usize, content: Vec<u8>) -> Result<Vec<u8>, String> {
        if index == 0 && content != header::encode(&self.name, self.size) {
            return Err("its tar header is not what the contents index says".into());
        }
        if index > 0 && !self.is_content(index) && content.iter().any(|&byte| byte != 0) {
            return Err("its padding is not empty".into());
        }
        Ok(content)
    }
}
