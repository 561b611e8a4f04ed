//! A bundle under way: one file, or volumes that are cut at frame edges, each as long as its size allows.

use super::frame;
use super::volumes::{self, MAX_VOLUMES};
use crate::model::{Algorithm, Hasher};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// How many bytes are written before they are brought to disk.
const FLUSH: u64 = 16 << 20;

/// What frames are put into, one after the other.
pub(super) struct Out {
    /// Bytes put so far, over all volumes.
    pub end: u64,
    file: Arc<File>,
    /// Where the file begins in the bundle.
    start: u64,
    flush: Option<SyncSender<Arc<File>>>,
    flushed: u64,
    cut: Option<Cut>,
}

/// Volumes, and what must be known of them at the end.
struct Cut {
    base: PathBuf,
    size: u64,
    starts: Vec<u64>,
    /// Of each volume that is full: hex, or nothing where it was written to afterwards.
    sums: Vec<Option<String>>,
    hasher: Hasher,
    /// Lengths of what cannot be cut.
    units: Vec<u64>,
    /// Whether the size has turned out too small, so that nothing more is written.
    counting: bool,
}

impl Out {
    /// Goes on in `file`, `end` bytes of which are written. Whenever there is much that is not on disk yet,
    /// `flush` is sent the file.
    pub(super) fn file(file: Arc<File>, end: u64, flush: Option<SyncSender<Arc<File>>>) -> Out {
        Out { end, file, start: 0, flush, flushed: end, cut: None }
    }

    /// Begins volumes of `base` that have at most `size` bytes.
    pub(super) fn volumes(base: &Path, size: u64, flush: SyncSender<Arc<File>>) -> io::Result<Out> {
        let cut = Cut {
            base: base.into(),
            size,
            starts: vec![0],
            sums: Vec::new(),
            hasher: Hasher::new(Algorithm::Sha256),
            units: Vec::new(),
            counting: false,
        };
        let file = Arc::new(File::create(volumes::path(base, 1))?);
        Ok(Out { cut: Some(cut), ..Out::file(file, 0, Some(flush)) })
    }

    /// Writes nothing from here on, where that many bytes cannot fit into volumes of this size.
    pub(super) fn expect(&mut self, bytes: u64) {
        if let Some(cut) = &mut self.cut {
            cut.counting = bytes / MAX_VOLUMES as u64 > cut.size;
        }
    }

    /// Appends frames. A volume ends before one of them.
    pub(super) fn put(&mut self, frames: &[u8]) -> io::Result<()> {
        if self.cut.is_none() {
            return self.append(frames);
        }
        let mut rest = frames;
        while !rest.is_empty() {
            let (frame, later) = frame::split(rest).unwrap_or((rest, &[]));
            if self.make_room(frame.len() as u64)? {
                self.append(frame)?;
            } else {
                self.end += frame.len() as u64;
            }
            rest = later;
        }
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.end - self.start)?;
        if let Some(cut) = &mut self.cut {
            cut.hasher.update(bytes);
        }
        self.end += bytes.len() as u64;
        if self.end - self.flushed >= FLUSH {
            self.flush();
        }
        Ok(())
    }

    fn flush(&mut self) {
        self.flushed = self.end;
        if let Some(flush) = &self.flush {
            // a flusher that has failed tells why at the end
            let _ = flush.send(self.file.clone());
        }
    }

    /// Begins another volume if so many bytes do not fit into this one. `false` where they fit nowhere.
    fn make_room(&mut self, length: u64) -> io::Result<bool> {
        let Some(cut) = &mut self.cut else { return Ok(true) };
        cut.units.push(length);
        let is_full = self.end - self.start + length > cut.size;
        cut.counting |= length > cut.size || is_full && cut.starts.len() == MAX_VOLUMES;
        if is_full && !cut.counting {
            let hasher = std::mem::replace(&mut cut.hasher, Hasher::new(Algorithm::Sha256));
            cut.sums.push(Some(hasher.finish().hex()));
            cut.starts.push(self.end);
            let next = File::create(volumes::path(&cut.base, cut.starts.len()))?;
            self.flush();
            (self.file, self.start) = (Arc::new(next), self.end);
        }
        Ok(self.cut.as_ref().is_none_or(|cut| !cut.counting))
    }

    /// Writes `bytes` over what was put at `at`.
    pub(super) fn put_back(&mut self, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
        let Some(cut) = &mut self.cut else { return self.file.write_all_at(bytes, at) };
        if cut.counting {
            return Ok(());
        }
        cut.sums.resize(cut.starts.len(), None);
        while !bytes.is_empty() {
            let index = cut.starts.partition_point(|start| *start <= at) - 1;
            let left = cut.starts.get(index + 1).map_or(u64::MAX, |end| end - at);
            let (now, later) = bytes.split_at(left.min(bytes.len() as u64) as usize);
            let file = File::options().write(true).open(volumes::path(&cut.base, index + 1))?;
            file.write_all_at(now, at - cut.starts[index])?;
            file.sync_all()?;
            cut.sums[index] = None;
            (bytes, at) = (later, at + now.len() as u64);
        }
        Ok(())
    }

    /// Lets the flusher go: nothing more is put.
    pub(super) fn close(&mut self) {
        self.flush = None;
    }

    /// Brings the end to disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// The SHA-256 of each volume in hex; nothing where there is one file.
    pub(super) fn sums(&self) -> io::Result<Vec<String>> {
        let Some(cut) = &self.cut else { return Ok(Vec::new()) };
        let sum = |index: usize| match cut.sums.get(index) {
            Some(Some(sum)) => Ok(sum.clone()),
            _ => hash(&volumes::path(&cut.base, index + 1)),
        };
        (0..cut.starts.len()).map(sum).collect()
    }

    /// The smallest size of volumes that fits, where this one has turned out too small.
    pub(super) fn smallest(&self) -> Option<u64> {
        let cut = self.cut.as_ref().filter(|cut| cut.counting)?;
        Some(smallest(&cut.units, MAX_VOLUMES))
    }
}

/// The smallest size of volumes, at most `most` of them, that `units` fit into in this order.
fn smallest(units: &[u64], most: usize) -> u64 {
    let fits = |size: u64| {
        let (mut volumes, mut filled) = (1, 0);
        for unit in units {
            if filled + unit > size {
                (volumes, filled) = (volumes + 1, 0);
            }
            filled += unit;
        }
        volumes <= most
    };
    let (mut low, mut high) = (units.iter().copied().max().unwrap_or(0), units.iter().sum());
    while low < high {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle + 1 }
    }
    high
}

/// The SHA-256 of a file, in hex.
pub(super) fn hash(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish().hex()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn the_smallest_size_that_fits_is_found() {
        assert_eq!(smallest(&[5, 5, 5, 5], 2), 10);
        assert_eq!(smallest(&[5, 5, 5, 5], 3), 10);
        assert_eq!(smallest(&[5, 5, 5, 5], 4), 5);
        assert_eq!(smallest(&[1, 1, 9, 1, 1], 3), 9);
        assert_eq!(smallest(&[1, 1, 9, 1, 1], 2), 11);
        assert_eq!(smallest(&[7], 999), 7);
    }

    #[test]
    fn volumes_end_at_frames_and_what_is_put_back_may_lie_in_two() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("B.partial");
        let (flush, _flushed) = sync_channel(100);
        let mut out = Out::volumes(&base, 64, flush).unwrap();
        let frames: Vec<Vec<u8>> =
            [10, 20, 30, 5].iter().map(|len| frame::stored(&vec![b'x'; *len])).collect();
        out.put(&frames.concat()).unwrap();
        let mut bytes = frames.concat();
        assert_eq!(out.end, bytes.len() as u64);
        out.put_back(b"0123456789", 60).unwrap();
        bytes[60..70].copy_from_slice(b"0123456789");
        let files: Vec<_> = (1..=3).map(|number| fs::read(volumes::path(&base, number)).unwrap()).collect();
        assert_eq!(files.iter().map(Vec::len).collect::<Vec<_>>(), [27 + 37, 47, 22]);
        assert_eq!(files.concat(), bytes);
        let sums = out.sums().unwrap();
        for (file, sum) in files.iter().zip(&sums) {
            assert_eq!(*sum, crate::model::Digest::sha256(file).hex());
        }
        assert_eq!((sums.len(), out.smallest()), (3, None));
        // a frame that is longer than a volume may be
        out.put(&frame::stored(&[0; 100])).unwrap();
        assert_eq!((out.smallest(), out.end), (Some(117), 133 + 117));
        assert!(!volumes::path(&base, 4).exists());
    }
}
