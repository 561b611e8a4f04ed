//! An object in memory that is read by ranges, for tests.

use crate::RangeRead;
use landfall_model::locked;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Mutex;

/// An object in memory that records its requests and can cut off responses.
#[derive(Debug, Default)]
pub struct MemoryObject {
    /// The content of the object.
    pub bytes: Vec<u8>,
    /// The ranges that were requested since the last call of [`MemoryObject::requests`].
    pub requests: Mutex<Vec<Range<u64>>>,
    /// How many bytes each response has at most; 0 for no limit.
    pub cut: u64,
    /// Whether another object has replaced it, so that requests fail.
    pub replaced: Mutex<bool>,
}

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
        std::mem::take(&mut locked(&self.requests))
    }
}

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
        if *locked(&self.replaced) {
            return Err(io::Error::other("it was replaced"));
        }
        locked(&self.requests).push(range.clone());
        let answer = io::Cursor::new(self.bytes[range.start as usize..range.end as usize].to_vec());
        let limit = if self.cut == 0 { u64::MAX } else { self.cut };
        Ok(Box::new(answer.take(limit)))
    }
}
