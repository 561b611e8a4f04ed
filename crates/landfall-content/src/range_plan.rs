//! Plans which of several connections fetches which range of a blob.

use crate::atomic_file::FileStamp;
use crate::{ByteRange, merge_ranges};
use landfall_model::Digest;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::sync::Arc;

/// The ranges of a blob that each connection fetches.
#[derive(Debug)]
pub(super) struct RangePlan {
    size: u64,
    /// The smallest range for a helper, in bytes.
    min_share: u64,
    /// The range that the first connection still has to fetch. Everything before it is hashed.
    pub(super) first: ByteRange,
    /// The range of each helper, by its number.
    pub(super) helpers: BTreeMap<u64, HelperRange>,
    /// The written ranges after the offset of the first connection.
    written: Vec<ByteRange>,
    /// The number of helpers so far.
    helper_count: u64,
}

/// The range of a helper. Its end becomes smaller when another helper takes the second half.
#[derive(Debug, Clone, Copy)]
pub(super) struct HelperRange {
    from: u64,
    at: u64,
    pub(super) end: u64,
}

/// The next step of the first connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FirstConnectionStep {
    /// Read and hash the bytes that helpers wrote, up to this offset.
    Absorb(u64),
    /// Wait for the helper that is at the offset.
    Wait,
    /// Fetch the range in [`RangePlan::first`].
    Fetch,
}

impl RangePlan {
    pub(super) fn new(size: u64, at: u64, written: Vec<ByteRange>, min_share: u64) -> RangePlan {
        RangePlan {
            size,
            min_share,
            first: (at, at),
            helpers: BTreeMap::new(),
            written,
            helper_count: 0,
        }
    }

    /// Returns the next step of the first connection at offset `at`. Sets `first` to the range to
    /// fetch, which is empty for the other steps.
    pub(super) fn next_step(&mut self, at: u64) -> FirstConnectionStep {
        self.first = (at, at);
        if let Some((_, to)) = self
            .written
            .iter()
            .find(|(from, to)| *from <= at && at < *to)
        {
            return FirstConnectionStep::Absorb(*to);
        }
        match self
            .helpers
            .values()
            .find(|work| work.from <= at && at < work.end)
        {
            // bytes are hashed while the helper still works, so that little is left to hash at the
            // end
            Some(work) if work.at > at => FirstConnectionStep::Absorb(work.at),
            Some(_) => FirstConnectionStep::Wait,
            None => {
                let assigned = self.assigned().into_iter().map(|(from, _)| from);
                self.first.1 = assigned
                    .filter(|from| *from > at)
                    .min()
                    .unwrap_or(self.size);
                FirstConnectionStep::Fetch
            }
        }
    }

    /// Returns the ranges that are written or belong to helpers.
    fn assigned(&self) -> Vec<ByteRange> {
        let helpers = self.helpers.values().map(|work| (work.from, work.end));
        self.written.iter().copied().chain(helpers).collect()
    }

    /// Returns the largest range for a new helper: a range that is not written and belongs to no
    /// connection, or the second half of what a connection still has to read. Returns `None` if
    /// that range is shorter than `min_share`.
    pub(super) fn largest_share(&self) -> Option<ByteRange> {
        let halves = self
            .helpers
            .values()
            .map(|work| (work.at, work.end))
            .chain([self.first])
            .map(|(at, end)| (at + (end - at).div_ceil(2), end));
        let mut assigned = self.assigned();
        // everything before the end of `first` is hashed or assigned to the first connection
        assigned.push((0, self.first.1));
        let assigned = merge_ranges(assigned);
        let ends = assigned
            .iter()
            .skip(1)
            .map(|(from, _)| *from)
            .chain([self.size]);
        let gaps = assigned.iter().map(|(_, to)| *to).zip(ends);
        halves
            .chain(gaps)
            .max_by_key(|(from, end)| end - from)
            .filter(|(from, end)| end - from >= self.min_share)
    }

    /// Adds a helper for the largest share. Returns its number and the offset where it begins.
    pub(super) fn add_helper(&mut self) -> Option<(u64, u64)> {
        let (from, end) = self.largest_share()?;
        // the share is the second half of the first connection's range, which now ends at `from`
        if self.first.0 < from && self.first.1 == end {
            self.first.1 = from;
        }
        if let Some(work) = self
            .helpers
            .values_mut()
            .find(|work| work.at < from && work.end == end)
        {
            work.end = from;
        }
        self.helper_count += 1;
        self.helpers.insert(
            self.helper_count,
            HelperRange {
                from,
                at: from,
                end,
            },
        );
        Some((self.helper_count, from))
    }

    /// Moves the first connection to `at`, but not past the end of its range. `at` is past that end
    /// if a helper has just taken the second half.
    pub(super) fn advance_first(&mut self, at: u64) {
        self.first.0 = at.min(self.first.1);
    }

    /// Moves a helper to `at`, but not past the end of its range.
    pub(super) fn advance_helper(&mut self, helper: u64, at: u64) {
        if let Some(work) = self.helpers.get_mut(&helper) {
            work.at = at.min(work.end);
        }
    }

    /// Removes a helper that has ended or failed. The bytes that it wrote count as written, and the
    /// rest of its range is free.
    pub(super) fn end_helper(&mut self, helper: u64) {
        if let Some(work) = self.helpers.remove(&helper) {
            self.written.push((work.from, work.at));
            self.written = merge_ranges(std::mem::take(&mut self.written));
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryObject;

    const M: u64 = 1 << 20;

    #[test]
    fn helpers_get_second_halves_and_unassigned_ranges() {
        let mut plan = RangePlan::new(128 * M, 0, vec![(96 * M, 112 * M)], 8 * M);
        assert_eq!(plan.next_step(0), FirstConnectionStep::Fetch);
        assert_eq!(plan.first, (0, 96 * M));
        assert_eq!(plan.add_helper(), Some((1, 48 * M)));
        assert_eq!(plan.first, (0, 48 * M));
        // half of 48 MiB twice, and 16 MiB at the end
        assert_eq!(
            plan.largest_share().map(|(from, end)| end - from),
            Some(24 * M)
        );
        let shares: Vec<u64> = std::iter::from_fn(|| plan.add_helper())
            .map(|(_, from)| from / M)
            .collect();
        assert!(shares.contains(&112), "{shares:?}");
        assert!(
            plan.largest_share()
                .is_none_or(|(from, end)| end - from >= 8 * M)
        );
        let mut all: Vec<ByteRange> = plan.assigned();
        all.push(plan.first);
        assert_eq!(merge_ranges(all), [(0, 128 * M)]);
    }

    #[test]
    fn the_first_connection_absorbs_ranges_written_by_helpers() {
        let mut plan = RangePlan::new(64 * M, 0, vec![], 8 * M);
        plan.next_step(0);
        let (helper, from) = plan.add_helper().unwrap();
        assert_eq!((from, plan.first.1), (32 * M, 32 * M));
        assert_eq!(plan.next_step(from), FirstConnectionStep::Wait);
        plan.advance_helper(helper, 40 * M);
        assert_eq!(plan.next_step(from), FirstConnectionStep::Absorb(40 * M));
        // the helper fails: its written bytes are kept, and the remaining ones are fetched
        plan.end_helper(helper);
        assert_eq!(plan.next_step(from), FirstConnectionStep::Absorb(40 * M));
        assert_eq!(
            (plan.next_step(40 * M), plan.first),
            (FirstConnectionStep::Fetch, (40 * M, 64 * M))
        );
    }

    /// If another helper takes the second half of a range while a piece is being received, the
    /// piece may end after the new end of the range.
    #[test]
    fn bytes_after_a_moved_end_are_not_counted() {
        let mut plan = RangePlan::new(64 * M, 0, vec![], 4 * M);
        plan.next_step(0);
        let (helper, from) = plan.add_helper().unwrap();
        let shares = [
            from,
            plan.add_helper().unwrap().1,
            plan.add_helper().unwrap().1,
        ];
        assert_eq!(shares, [32 * M, 16 * M, 48 * M]);
        plan.advance_first(17 * M);
        plan.advance_helper(helper, 50 * M);
        assert_eq!(plan.first, (16 * M, 16 * M));
        assert_eq!(plan.largest_share(), Some((56 * M, 64 * M)));
        plan.end_helper(helper);
        assert_eq!(plan.next_step(32 * M), FirstConnectionStep::Absorb(48 * M));
    }

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
