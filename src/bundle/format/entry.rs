//! One entry of the tar as the contents index lists it: its frames, and what each of them holds.

use super::form::Form;
use super::hash::{Frame, Hash};
use super::stored::CHUNK;
use super::{frame, header};
use crate::model::{Digest, MediaType};
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
    /// Its frames: one with the tar header, one for each MiB of content begun, and one with the padding
    /// to 512 bytes where there is some. The first and the last of these are stored.
    pub frames: Vec<Frame>,
}

impl TarEntry {
    /// How many content bytes the frame at `index` holds.
    pub(crate) fn content_len(&self, index: usize) -> usize {
        let chunks = self.size.div_ceil(CHUNK as u64);
        match index as u64 {
            0 => header::encoded_len(&self.name),
            n if n < chunks => CHUNK,
            n if n == chunks => (self.size - (n - 1) * CHUNK as u64) as usize,
            _ => header::padding(self.size),
        }
    }

    /// The form of the frame at `index`.
    pub(crate) fn form_of(&self, index: usize) -> Form {
        if self.is_content(index) { self.form } else { Form::Stored }
    }

    /// Whether the frame at `index` holds a piece of the content.
    pub(crate) fn is_content(&self, index: usize) -> bool {
        (1..=self.size.div_ceil(CHUNK as u64)).contains(&(index as u64))
    }

    /// How many frames an entry of this size has.
    pub(crate) fn frame_count(size: u64) -> u64 {
        1 + size.div_ceil(CHUNK as u64) + u64::from(header::padding(size) > 0)
    }

    /// Whether the entry is a blob of the layout.
    pub(crate) fn is_blob(&self) -> bool {
        self.name == self.digest.layout_path()
    }

    /// How many bytes its frames take in the file.
    pub(crate) fn file_len(&self) -> u64 {
        self.frames.iter().map(|frame| u64::from(frame.0)).sum()
    }

    /// The content of the frame at `index`, if the frame's `bytes` have the right hash.
    pub(crate) fn content(&self, index: usize, bytes: &[u8]) -> Result<Vec<u8>, String> {
        if Hash::of(bytes) != self.frames[index].1 {
            return Err("its bytes do not have the hash that the contents index gives them".into());
        }
        self.decoded(index, bytes)
    }

    /// The content of the frame at `index`, if the frame's own checksum is right.
    pub(crate) fn decoded(&self, index: usize, bytes: &[u8]) -> Result<Vec<u8>, String> {
        frame::decode(self.form_of(index), bytes, self.content_len(index))
    }

    /// Returns the content of the frame at `index` if it is what must stand there, as far as that follows from name
    /// and size: the tar header and the padding.
    pub(crate) fn check_content(&self, index: usize, content: Vec<u8>) -> Result<Vec<u8>, String> {
        if index == 0 && content != header::encode(&self.name, self.size) {
            return Err("its tar header is not what the contents index says".into());
        }
        if index > 0 && !self.is_content(index) && content.iter().any(|&byte| byte != 0) {
            return Err("its padding is not empty".into());
        }
        Ok(content)
    }
}
