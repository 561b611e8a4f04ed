//! A bundle in an object store. The last MiB is kept in memory. A small read of earlier bytes
//! fetches a whole window, since related small pieces are close to each other.

use crate::format::stored::ReadAt;
use landfall_content::{FileStamp, RangeRead, RangeReader};
use landfall_model::locked;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// The bytes at the end that are read on opening: in most bundles the index, and the frame table
/// before it.
const END: u64 = 1 << 20;
/// The bytes that are requested at once for a small read.
const WINDOW: u64 = 1 << 20;
/// The number of cached windows.
const KEPT: usize = 8;
/// The size in bytes of the largest read that uses windows.
pub(super) const LITTLE: u64 = 256 << 10;

/// An object with its end in memory.
#[derive(Debug)]
pub(super) struct ObjectPart {
    object: Arc<dyn RangeRead>,
    end: Vec<u8>,
    /// The windows that were fetched last, each with its number.
    windows: Mutex<VecDeque<(u64, Arc<Vec<u8>>)>>,
}

impl ObjectPart {
    /// Reads the end of the object.
    pub(super) fn open(object: Arc<dyn RangeRead>) -> io::Result<ObjectPart> {
        let size = object.size();
        let end = read(&object, size - size.min(END)..size)?;
        Ok(ObjectPart {
            object,
            end,
            windows: Mutex::default(),
        })
    }

    /// The stamp of the object, which changes when it is replaced.
    pub(super) fn file_stamp(&self) -> FileStamp {
        self.object.file_stamp()
    }

    /// Reads `range` in order; one request suffices unless a response is interrupted.
    pub(super) fn reader(&self, range: Range<u64>) -> RangeReader {
        RangeReader::new(self.object.clone(), range)
    }

    /// The offset at which the part in memory begins.
    pub(super) fn end(&self) -> u64 {
        self.object.size() - self.end.len() as u64
    }

    fn window(&self, number: u64) -> io::Result<Arc<Vec<u8>>> {
        if let Some((_, window)) = locked(&self.windows).iter().find(|(of, _)| *of == number) {
            return Ok(window.clone());
        }
        let from = number * WINDOW;
        // unlocked during the request, so that other threads can use the cached windows
        let window = Arc::new(read(&self.object, from..self.end().min(from + WINDOW))?);
        let mut windows = locked(&self.windows);
        // the newest window is at the front, so the oldest is dropped
        windows.truncate(KEPT - 1);
        windows.push_front((number, window.clone()));
        Ok(window)
    }
}

fn read(object: &Arc<dyn RangeRead>, range: Range<u64>) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    RangeReader::new(object.clone(), range).read_exact(&mut bytes)?;
    Ok(bytes)
}

impl ReadAt for ObjectPart {
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        let to = at + buffer.len() as u64;
        // one request without windows: for a long read, and for a read that crosses into the end
        if at < self.end() && (to > self.end() || to - at > LITTLE) {
            return self.reader(at..to).read_exact(buffer);
        }
        if let Some(inside) = at.checked_sub(self.end()) {
            return (&self.end[inside as usize..]).read_exact(buffer);
        }
        let mut filled = 0;
        while filled < buffer.len() {
            let at = at + filled as u64;
            let window = self.window(at / WINDOW)?;
            filled += (&window[(at % WINDOW) as usize..]).read(&mut buffer[filled..])?;
        }
        Ok(())
    }
}
