//! An object in memory that is read by ranges, for tests.

use crate::RangeRead;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// An object in memory that counts what is asked of it, and may break answers off.
#[derive(Debug, Default)]
pub struct MemoryObject {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The ranges that were asked for.
    pub asked: Mutex<Vec<Range<u64>>>,
    /// How many bytes of each answer come; all of them where it is 0.
    pub cut: u64,
    /// Whether another object has its place.
    pub replaced: Mutex<bool>,
}

impl MemoryObject {
    /// One that answers whole.
    pub fn of(bytes: &[u8]) -> MemoryObject {
        MemoryObject {
            bytes: bytes.to_vec(),
            ..MemoryObject::default()
        }
    }

    /// The ranges that were asked for since this was asked last.
    pub fn asked(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner))
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
        if *self.replaced.lock().unwrap_or_else(PoisonError::into_inner) {
            return Err(io::Error::other("it was replaced"));
        }
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(range.clone());
        let answer = io::Cursor::new(self.bytes[range.start as usize..range.end as usize].to_vec());
        let most = if self.cut == 0 { u64::MAX } else { self.cut };
        Ok(Box::new(answer.take(most)))
    }
}
