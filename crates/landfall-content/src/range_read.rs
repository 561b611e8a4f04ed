//! Bytes elsewhere that are read by ranges: an object in an object store.

use super::file_stamp::FileStamp;
use landfall_model::Digest;
use std::fmt::Debug;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::sync::Arc;

/// An object that is read by ranges, and stays what it was when it was opened.
pub trait RangeRead: Debug + Send + Sync {
    /// Where it is, as people write it.
    fn url(&self) -> &str;

    /// Its size in bytes.
    fn size(&self) -> u64;

    /// What tells whether it is still the same object: its etag, or when it was written.
    fn version(&self) -> &str;

    /// The bytes of `range`, in their order, by one request.
    ///
    /// # Errors
    /// When they cannot be had, as when another object has taken its place.
    fn open(&self, range: Range<u64>) -> io::Result<Box<dyn Read + Send>>;

    /// How it looks, in place of the look of a file.
    fn file_stamp(&self) -> FileStamp {
        let version = Digest::sha256(self.version().as_bytes()).hex();
        let number =
            |from: usize| u64::from_str_radix(&version[from..from + 16], 16).unwrap_or_default();
        FileStamp {
            inode: number(0),
            mtime: (number(16) as i64, 0),
            size: self.size(),
        }
    }
}

/// How often a range is asked for while nothing new of it comes.
const ATTEMPTS: u32 = 4;

/// Reads a range in order. Where an answer breaks off, the rest is asked for; a request that fails
/// is not sent again here.
pub struct RangeReader {
    object: Arc<dyn RangeRead>,
    range: Range<u64>,
    answer: Option<Box<dyn Read + Send>>,
    attempts: u32,
}

impl RangeReader {
    /// Reads `range` of the object.
    pub fn new(object: Arc<dyn RangeRead>, range: Range<u64>) -> RangeReader {
        RangeReader {
            object,
            range,
            answer: None,
            attempts: ATTEMPTS,
        }
    }

    /// As [`RangeReader::new`], with the first request sent now.
    ///
    /// # Errors
    /// When it fails.
    pub fn begin(object: Arc<dyn RangeRead>, range: Range<u64>) -> io::Result<RangeReader> {
        let mut reader = RangeReader::new(object, range);
        if !reader.range.is_empty() {
            reader.answer = Some(reader.object.open(reader.range.clone())?);
        }
        Ok(reader)
    }

    fn some_of(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self
            .answer
            .as_mut()
            .map_or(Ok(0), |answer| answer.read(buffer))?
        {
            0 => Err(io::Error::new(
                ErrorKind::UnexpectedEof,
                "the answer ended too early",
            )),
            count => Ok(count),
        }
    }
}

impl Read for RangeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = (self.range.end - self.range.start).min(buffer.len() as u64) as usize;
        if most == 0 {
            return Ok(0);
        }
        loop {
            if self.answer.is_none() {
                self.answer = Some(self.object.open(self.range.clone())?);
            }
            match self.some_of(&mut buffer[..most]) {
                Ok(count) => {
                    self.range.start += count as u64;
                    self.attempts = ATTEMPTS;
                    return Ok(count);
                }
                Err(error) if self.attempts <= 1 => return Err(error),
                Err(_) => (self.answer, self.attempts) = (None, self.attempts - 1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryObject;

    #[test]
    fn an_answer_that_breaks_off_is_resumed_and_one_that_brings_nothing_ends() {
        let bytes: Vec<u8> = (0..100).collect();
        let object = Arc::new(MemoryObject {
            cut: 30,
            ..MemoryObject::of(&bytes)
        });
        let mut read = Vec::new();
        RangeReader::new(object.clone(), 5..95)
            .read_to_end(&mut read)
            .unwrap();
        assert_eq!(read, &bytes[5..95]);
        assert_eq!(object.asked(), [5..95, 35..95, 65..95]);
        *object.replaced.lock().unwrap() = true;
        let error = RangeReader::new(object, 0..10)
            .read(&mut [0; 10])
            .unwrap_err();
        assert_eq!(error.to_string(), "it was replaced");
        let nothing = Arc::new(MemoryObject::of(b""));
        assert_eq!(
            RangeReader::new(nothing, 0..0).read(&mut [0; 10]).unwrap(),
            0
        );
    }
}
