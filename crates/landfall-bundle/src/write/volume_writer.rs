//! The writer of a bundle's bytes, in one pass: into one file, a stream, volumes that are cut at
//! frame edges, each as long as its size allows, or one volume alone.

use crate::format::files::{MAX_VOLUMES, volume_path};
use crate::format::frame;
use landfall_model::{Algorithm, Hasher};
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// How many bytes are written before they are synced to disk.
const FLUSH: u64 = 16 << 20;
/// How many bytes the last volume keeps free for the end of the tar, the signatures and the footer,
/// so that signatures can be added later.
const TAIL: u64 = 4 << 10;

/// Where the frames of a bundle are written, one after the other.
pub(crate) struct VolumeWriter<'a> {
    /// Bytes appended so far, over all volumes.
    pub end: u64,
    out: Out<'a>,
    /// Where the file begins in the bundle.
    start: u64,
    flush: Option<SyncSender<Arc<File>>>,
    flushed: u64,
    target: Target,
}

/// What takes the bytes.
enum Out<'a> {
    File(Arc<File>),
    /// A pipe, a file that is written like one, or an upload.
    Stream(&'a mut (dyn Write + Send)),
}

enum Target {
    /// The whole bundle is written to one place.
    Whole,
    /// The file is the last volume so far.
    Volumes(Box<Volumes>),
    /// The file is one volume, which ends here; the bytes of others are dropped.
    Only { end: u64, cuts_frame: bool },
}

/// Volumes, and what must be known of them at the end.
struct Volumes {
    base: PathBuf,
    size: u64,
    starts: Vec<u64>,
    /// The checksum of each volume that is full, in hex.
    sums: Vec<String>,
    hasher: Hasher,
    /// Lengths of what cannot be cut.
    units: Vec<u64>,
    /// Whether the size has turned out too small, so that nothing more is written.
    counting: bool,
}

impl<'a> VolumeWriter<'a> {
    /// Continues `file`, `end` bytes of which are written. It is sent to `flush` whenever there is
    /// much that is not on disk yet.
    pub(crate) fn file(
        file: Arc<File>,
        end: u64,
        flush: Option<SyncSender<Arc<File>>>,
    ) -> VolumeWriter<'a> {
        let out = Out::File(file);
        VolumeWriter {
            end,
            out,
            start: 0,
            flush,
            flushed: end,
            target: Target::Whole,
        }
    }

    /// Writes to what takes bytes in their order.
    pub(crate) fn stream(out: &'a mut (dyn Write + Send)) -> VolumeWriter<'a> {
        let (out, target) = (Out::Stream(out), Target::Whole);
        VolumeWriter {
            end: 0,
            out,
            start: 0,
            flush: None,
            flushed: 0,
            target,
        }
    }

    /// Begins volumes of `base` that have at most `size` bytes.
    pub(crate) fn volumes(
        base: &Path,
        size: u64,
        flush: SyncSender<Arc<File>>,
    ) -> io::Result<VolumeWriter<'a>> {
        let volumes = Volumes {
            base: base.into(),
            size,
            starts: vec![0],
            sums: Vec::new(),
            hasher: Hasher::new(Algorithm::Sha256),
            units: Vec::new(),
            counting: false,
        };
        let file = Arc::new(File::create(volume_path(base, 1))?);
        let target = Target::Volumes(Box::new(volumes));
        Ok(VolumeWriter {
            target,
            ..VolumeWriter::file(file, 0, Some(flush))
        })
    }

    /// Keeps the bytes of one volume, which has this part of the bundle, and drops the others.
    pub(crate) fn only(file: File, part: Range<u64>) -> VolumeWriter<'a> {
        let target = Target::Only {
            end: part.end,
            cuts_frame: false,
        };
        VolumeWriter {
            start: part.start,
            target,
            ..VolumeWriter::file(file.into(), 0, None)
        }
    }

    /// Stops writing where that many bytes cannot fit into volumes of this size.
    pub(crate) fn expect(&mut self, bytes: u64) {
        if let Target::Volumes(volumes) = &mut self.target {
            volumes.counting = bytes / MAX_VOLUMES as u64 > volumes.size;
        }
    }

    /// Appends frames. A volume ends before one of them.
    pub(crate) fn append(&mut self, frames: &[u8]) -> io::Result<()> {
        if matches!(self.target, Target::Whole) {
            return self.write(frames);
        }
        let mut rest = frames;
        while !rest.is_empty() {
            let (frame, later) = frame::split(rest).unwrap_or((rest, &[]));
            self.append_unit(frame, frame.len() as u64)?;
            rest = later;
        }
        Ok(())
    }

    /// Appends the end of the tar, and after it signatures and footer. They lie in one volume,
    /// which keeps room for more signatures.
    pub(crate) fn append_tail(&mut self, tar_end: &[u8], tail: &[u8]) -> io::Result<()> {
        let tail = [tar_end, tail].concat();
        self.append_unit(&tail, (tail.len() as u64).max(TAIL))
    }

    /// Appends bytes that no volume cuts, with room for `room` bytes.
    fn append_unit(&mut self, bytes: &[u8], room: u64) -> io::Result<()> {
        if self.takes(bytes.len() as u64, room)? {
            self.write(bytes)
        } else {
            self.end += bytes.len() as u64;
            Ok(())
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.out {
            Out::Stream(out) => out.write_all(bytes)?,
            Out::File(file) => file.write_all_at(bytes, self.end - self.start)?,
        }
        if let Target::Volumes(volumes) = &mut self.target {
            volumes.hasher.update(bytes);
        }
        self.end += bytes.len() as u64;
        if self.end - self.flushed >= FLUSH {
            self.flush();
        }
        Ok(())
    }

    fn flush(&mut self) {
        self.flushed = self.end;
        if let (Some(flush), Out::File(file)) = (&self.flush, &self.out) {
            // a flusher that has failed reports why at the end
            let _ = flush.send(file.clone());
        }
    }

    /// Whether the next unit, of this length, is written. Begins another volume if this one has no
    /// `room` for it.
    fn takes(&mut self, length: u64, room: u64) -> io::Result<bool> {
        let volumes = match &mut self.target {
            Target::Whole => return Ok(true),
            Target::Only { end, cuts_frame } => {
                let next = self.end + length;
                let inside = self.end >= self.start && next <= *end;
                *cuts_frame |= !inside && self.end < *end && next > self.start;
                return Ok(inside);
            }
            Target::Volumes(volumes) => volumes,
        };
        volumes.units.push(room);
        let is_full = self.end - self.start + room > volumes.size;
        volumes.counting |= room > volumes.size || is_full && volumes.starts.len() == MAX_VOLUMES;
        let takes = !volumes.counting;
        if is_full && takes {
            let hasher = std::mem::replace(&mut volumes.hasher, Hasher::new(Algorithm::Sha256));
            volumes.sums.push(hasher.finish().hex());
            volumes.starts.push(self.end);
            let next = File::create(volume_path(&volumes.base, volumes.starts.len()))?;
            self.flush();
            (self.out, self.start) = (Out::File(next.into()), self.end);
        }
        Ok(takes)
    }

    /// Whether a frame lies over the edge of the one volume that is kept.
    pub(crate) fn cuts_frame(&self) -> bool {
        matches!(
            self.target,
            Target::Only {
                cuts_frame: true,
                ..
            }
        )
    }

    /// Releases the flusher: nothing more is appended.
    pub(crate) fn close(&mut self) {
        self.flush = None;
    }

    /// Syncs the end to disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match &self.out {
            Out::File(file) => file.sync_all(),
            Out::Stream(_) => Ok(()),
        }
    }

    /// The SHA-256 of each volume in hex; nothing where there is one file.
    pub(crate) fn sums(self) -> Vec<String> {
        match self.target {
            Target::Volumes(volumes) => {
                let Volumes {
                    mut sums, hasher, ..
                } = *volumes;
                sums.push(hasher.finish().hex());
                sums
            }
            _ => Vec::new(),
        }
    }

    /// The smallest size of volumes that fits, where this one has turned out too small.
    pub(crate) fn smallest(&self) -> Option<u64> {
        match &self.target {
            Target::Volumes(volumes) if volumes.counting => {
                Some(smallest(&volumes.units, MAX_VOLUMES))
            }
            _ => None,
        }
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
        if fits(middle) {
            high = middle
        } else {
            low = middle + 1
        }
    }
    high
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
    fn volumes_end_at_frames_and_the_last_has_room_for_signatures() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("B.partial");
        let (flush, _flushed) = sync_channel(100);
        let size = TAIL + 10;
        let mut out = VolumeWriter::volumes(&base, size, flush).unwrap();
        let frames: Vec<Vec<u8>> = [3000, 1000, 1000, 10]
            .iter()
            .map(|len| frame::stored(&vec![b'x'; *len]))
            .collect();
        out.append(&frames.concat()).unwrap();
        out.append_tail(b"end", b"tail").unwrap();
        let bytes = [&frames.concat()[..], b"endtail"].concat();
        assert_eq!((out.end, out.smallest()), (bytes.len() as u64, None));
        let sums = out.sums();
        let files: Vec<_> = (1..=3)
            .map(|number| fs::read(volume_path(&base, number)).unwrap())
            .collect();
        assert_eq!(
            files.iter().map(Vec::len).collect::<Vec<_>>(),
            [3017 + 1017, 1017 + 27, 7]
        );
        assert_eq!(files.concat(), bytes);
        let expected: Vec<_> = files
            .iter()
            .map(|file| landfall_model::Digest::sha256(file).hex())
            .collect();
        assert_eq!(sums, expected);
        // a frame that is longer than a volume may be
        let (flush, _flushed) = sync_channel(100);
        let mut out = VolumeWriter::volumes(&base, 64, flush).unwrap();
        out.append(&frame::stored(&[0; 100])).unwrap();
        assert_eq!((out.smallest(), out.end), (Some(117), 117));
        assert!(!volume_path(&base, 4).exists());
    }
}
