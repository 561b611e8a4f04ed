//! Reading an object by ranges, as bundles and stores in an object store or behind a URL are read.

use crate::atomic_file::FileStamp;
use landfall_model::Digest;
use std::fmt::Debug;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::sync::Arc;

/// An object that is read by ranges. Reading fails if the object is replaced after it was opened.
pub trait RangeRead: Debug + Send + Sync {
    /// Returns the URL of the object, for messages.
    fn url(&self) -> &str;

    /// Returns the size of the object in bytes.
    fn size(&self) -> u64;

    /// Returns the identifier of this version of the object: its etag, or its modification time.
    fn version(&self) -> &str;

    /// Requests the bytes of `range`.
    ///
    /// # Errors
    /// If the request fails, or the object was replaced.
    fn open(&self, range: Range<u64>) -> io::Result<Box<dyn Read + Send>>;

    /// Returns a stamp like that of a file: the version is hashed into the inode and the
    /// modification time.
    fn file_stamp(&self) -> FileStamp {
        let version = Digest::sha256(self.version().as_bytes()).hex();
        let number =
            |from: usize| u64::from_str_radix(&version[from..from + 16], 16).unwrap_or_default();
        FileStamp {
            // the journals of verified content compare stamps of files and objects alike
            inode: number(0),
            mtime: (number(16) as i64, 0),
            size: self.size(),
        }
    }
}

/// The maximum number of consecutive requests that return no new byte.
const ATTEMPTS: u32 = 4;

/// Reads a range in order. If a response breaks off, the rest is requested; a request that fails is
/// not retried here, because the transport has done that.
pub struct RangeReader {
    object: Arc<dyn RangeRead>,
    range: Range<u64>,
    response: Option<Box<dyn Read + Send>>,
    attempts: u32,
}

impl RangeReader {
    /// Returns a reader for `range`, which sends its first request when it is read.
    pub fn new(object: Arc<dyn RangeRead>, range: Range<u64>) -> RangeReader {
        RangeReader {
            object,
            range,
            response: None,
            attempts: ATTEMPTS,
        }
    }

    /// Returns a reader for `range`, whose first request was sent already and has this `response`.
    pub(crate) fn continuing(
        object: Arc<dyn RangeRead>,
        range: Range<u64>,
        response: Box<dyn Read + Send>,
    ) -> RangeReader {
        RangeReader {
            response: Some(response),
            ..RangeReader::new(object, range)
        }
    }

    /// Like [`RangeReader::new`], but sends the first request now.
    ///
    /// # Errors
    /// If the request fails.
    pub fn begin(object: Arc<dyn RangeRead>, range: Range<u64>) -> io::Result<RangeReader> {
        let mut reader = RangeReader::new(object, range);
        if !reader.range.is_empty() {
            reader.response = Some(reader.object.open(reader.range.clone())?);
        }
        Ok(reader)
    }

    /// Reads from the current response. A response that ends before the range does is an error.
    fn read_response(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.response {
            Some(response) => response.read(buffer)?,
            None => 0,
        };
        if count == 0 {
            let message = "the response ended too early";
            return Err(io::Error::new(ErrorKind::UnexpectedEof, message));
        }
        Ok(count)
    }
}

impl Read for RangeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let limit = (self.range.end - self.range.start).min(buffer.len() as u64) as usize;
        if limit == 0 {
            return Ok(0);
        }
        loop {
            if self.response.is_none() {
                self.response = Some(self.object.open(self.range.clone())?);
            }
            match self.read_response(&mut buffer[..limit]) {
                Ok(count) => {
                    self.range.start += count as u64;
                    // a response that makes progress may break off any number of times
                    self.attempts = ATTEMPTS;
                    return Ok(count);
                }
                Err(error) if self.attempts <= 1 => return Err(error),
                Err(_) => {
                    self.response = None;
                    self.attempts -= 1;
                }
            }
        }
    }
}

/// An object in memory, for tests. It records its requests and can cut off responses.
#[cfg(any(test, feature = "testkit"))]
#[derive(Debug, Default)]
pub struct MemoryObject {
    /// The content of the object.
    pub bytes: Vec<u8>,
    /// The ranges that were requested since the last call of [`MemoryObject::requests`].
    pub requests: std::sync::Mutex<Vec<Range<u64>>>,
    /// How many bytes each response has at most; 0 for no limit.
    pub cut: u64,
    /// Whether another object has replaced it, so that requests fail.
    pub replaced: std::sync::Mutex<bool>,
}

#[cfg(any(test, feature = "testkit"))]
impl MemoryObject {
    /// Returns an object whose responses are complete.
    pub fn of(bytes: &[u8]) -> MemoryObject {
        MemoryObject {
            bytes: bytes.to_vec(),
            ..MemoryObject::default()
        }
    }

    /// Returns the ranges that were requested since the last call.
    pub fn requests(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut landfall_model::locked(&self.requests))
    }
}

#[cfg(any(test, feature = "testkit"))]
impl RangeRead for MemoryObject {
    fn url(&self) -> &'static str {
        "s3://bucket/b.tar.zst"
    }

    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn version(&self) -> &'static str {
        "\"1\""
    }

    fn open(&self, range: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
        if *landfall_model::locked(&self.replaced) {
            return Err(io::Error::other("it was replaced"));
        }
        landfall_model::locked(&self.requests).push(range.clone());
        let answer = io::Cursor::new(self.bytes[range.start as usize..range.end as usize].to_vec());
        let limit = if self.cut == 0 { u64::MAX } else { self.cut };
        Ok(Box::new(answer.take(limit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_broken_response_is_resumed_and_a_replaced_object_is_an_error() {
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
        assert_eq!(object.requests(), [5..95, 35..95, 65..95]);
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
