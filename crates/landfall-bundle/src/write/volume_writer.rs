//! Writes the bytes of a bundle in one pass: to one file, to a stream, to volumes that are split
//! between frames, or to a single volume.

use crate::format::frame;
use crate::format::names::{MAX_VOLUMES, TAIL, volume_path};
use landfall_model::{Algorithm, Hasher, sum_sizes};
use landfall_os::FileExt;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// The number of bytes that are written before they are synced to disk.
const FLUSH: u64 = 16 << 20;

/// Writes the frames of a bundle one after the other.
pub(crate) struct VolumeWriter<'a> {
    /// The number of bytes appended so far, over all volumes.
    pub end: u64,
    out: VolumeOutput<'a>,
    /// The offset of the current file in the bundle.
    start: u64,
    flush: Option<SyncSender<Arc<File>>>,
    flushed: u64,
    target: VolumeTarget,
}

/// The destination of the bytes.
enum VolumeOutput<'a> {
    File(Arc<File>),
    /// A pipe, a file that is written in order, or an upload.
    Stream(&'a mut (dyn Write + Send)),
}

enum VolumeTarget {
    /// The whole bundle is written to one file or stream.
    Whole,
    /// The current file is the last volume so far.
    Volumes(Box<OpenVolumes>),
    /// The file is one volume, which ends at this offset; the bytes of other volumes are discarded.
    Only { end: u64, cuts_frame: bool },
}

/// The volumes that are being written.
struct OpenVolumes {
    base: PathBuf,
    size: u64,
    starts: Vec<u64>,
    /// The SHA-256 of each full volume in hex digits.
    sums: Vec<String>,
    hasher: Hasher,
    /// The lengths of the units that must not be split.
    units: Vec<u64>,
    /// Whether `size` turned out to be too small. Nothing more is written then; the units are only
    /// counted, to find a size that fits.
    counting: bool,
}

impl<'a> VolumeWriter<'a> {
    /// Continues `file` after `end` bytes. The file is sent to `flush` whenever `FLUSH` more bytes
    /// were written.
    pub(crate) fn file(
        file: Arc<File>,
        end: u64,
        flush: Option<SyncSender<Arc<File>>>,
    ) -> VolumeWriter<'a> {
        VolumeWriter::whole(VolumeOutput::File(file), end, flush)
    }

    /// Writes the whole bundle to a stream.
    pub(crate) fn stream(out: &'a mut (dyn Write + Send)) -> VolumeWriter<'a> {
        VolumeWriter::whole(VolumeOutput::Stream(out), 0, None)
    }

    fn whole(
        out: VolumeOutput<'a>,
        end: u64,
        flush: Option<SyncSender<Arc<File>>>,
    ) -> VolumeWriter<'a> {
        VolumeWriter {
            end,
            out,
            start: 0,
            flush,
            flushed: end,
            target: VolumeTarget::Whole,
        }
    }

    /// Writes volumes of `base` with at most `size` bytes each.
    pub(crate) fn volumes(
        base: &Path,
        size: u64,
        flush: SyncSender<Arc<File>>,
    ) -> io::Result<VolumeWriter<'a>> {
        let volumes = OpenVolumes {
            base: base.into(),
            size,
            starts: vec![0],
            sums: Vec::new(),
            hasher: Hasher::new(Algorithm::Sha256),
            units: Vec::new(),
            counting: false,
        };
        let file = Arc::new(File::create(volume_path(base, 1))?);
        let target = VolumeTarget::Volumes(Box::new(volumes));
        Ok(VolumeWriter {
            target,
            ..VolumeWriter::file(file, 0, Some(flush))
        })
    }

    /// Writes only one volume, which has this byte range of the bundle.
    pub(crate) fn only(file: File, part: Range<u64>) -> VolumeWriter<'a> {
        let target = VolumeTarget::Only {
            end: part.end,
            cuts_frame: false,
        };
        VolumeWriter {
            start: part.start,
            target,
            ..VolumeWriter::file(file.into(), 0, None)
        }
    }

    /// Announces the minimum size of the bundle, so that nothing is written if the bundle cannot
    /// fit into volumes of the requested size.
    pub(crate) fn expect(&mut self, bytes: u64) {
        if let VolumeTarget::Volumes(volumes) = &mut self.target {
            volumes.counting = bytes / MAX_VOLUMES as u64 > volumes.size;
        }
    }

    /// Appends frames; a new volume may begin before any of them.
    pub(crate) fn append(&mut self, frames: &[u8]) -> io::Result<()> {
        if matches!(self.target, VolumeTarget::Whole) {
            return self.write(frames);
        }
        let mut rest = frames;
        while !rest.is_empty() {
            // volumes end between frames, so that each can be verified without its neighbours
            let (frame, later) = frame::split(rest).unwrap_or((rest, &[]));
            self.append_unit(frame, frame.len() as u64)?;
            rest = later;
        }
        Ok(())
    }

    /// Appends the end of the tar, signatures and footer. They are in one volume, with room for
    /// more signatures.
    pub(crate) fn append_tail(&mut self, tar_end: &[u8], tail: &[u8]) -> io::Result<()> {
        let tail = [tar_end, tail].concat();
        // one unit, because a reader finds the footer only if it is complete
        self.append_unit(&tail, (tail.len() as u64).max(TAIL))
    }

    /// Appends bytes that must be in one volume. If the current volume has less than `room` bytes
    /// left, a new one is begun.
    fn append_unit(&mut self, bytes: &[u8], room: u64) -> io::Result<()> {
        if self.admit_unit(bytes.len() as u64, room)? {
            self.write(bytes)
        } else {
            self.end += bytes.len() as u64;
            Ok(())
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.out {
            VolumeOutput::Stream(out) => out.write_all(bytes)?,
            VolumeOutput::File(file) => file.write_all_at(bytes, self.end - self.start)?,
        }
        if let VolumeTarget::Volumes(volumes) = &mut self.target {
            volumes.hasher.update(bytes);
        }
        self.end += bytes.len() as u64;
        // the flusher syncs the file in the background, so that encoding does not wait for the disk
        if self.end - self.flushed >= FLUSH {
            self.flush();
        }
        Ok(())
    }

    fn flush(&mut self) {
        self.flushed = self.end;
        if let (Some(flush), VolumeOutput::File(file)) = (&self.flush, &self.out) {
            // a flusher that has failed reports its error at the end
            let _ = flush.send(file.clone());
        }
    }

    /// Returns whether to write the next unit, which has this length. Begins a new volume if the
    /// current one has less than `room` bytes left.
    fn admit_unit(&mut self, length: u64, room: u64) -> io::Result<bool> {
        let volumes = match &mut self.target {
            VolumeTarget::Whole => return Ok(true),
            VolumeTarget::Only { end, cuts_frame } => {
                let next = self.end + length;
                let inside = self.end >= self.start && next <= *end;
                *cuts_frame |= !inside && self.end < *end && next > self.start;
                return Ok(inside);
            }
            VolumeTarget::Volumes(volumes) => volumes,
        };
        volumes.units.push(room);
        let is_full = self.end - self.start + room > volumes.size;
        // if the unit does not fit, nothing more is written; this unit and later ones are only
        // counted, so that the error can name a size that fits
        volumes.counting |= room > volumes.size || is_full && volumes.starts.len() == MAX_VOLUMES;
        let takes = !volumes.counting;
        if is_full && takes {
            let hasher = std::mem::replace(&mut volumes.hasher, Hasher::new(Algorithm::Sha256));
            // hashed while it is written, so that no volume is read again
            volumes.sums.push(hasher.finish().hex());
            volumes.starts.push(self.end);
            let next = File::create(volume_path(&volumes.base, volumes.starts.len()))?;
            self.flush();
            (self.out, self.start) = (VolumeOutput::File(next.into()), self.end);
        }
        Ok(takes)
    }

    /// Whether a frame crosses a boundary of the single volume.
    pub(crate) fn cuts_frame(&self) -> bool {
        matches!(
            self.target,
            VolumeTarget::Only {
                cuts_frame: true,
                ..
            }
        )
    }

    /// Releases the flusher, after everything was appended.
    pub(crate) fn close(&mut self) {
        self.flush = None;
    }

    /// Syncs the current file to disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match &self.out {
            VolumeOutput::File(file) => file.sync_all(),
            VolumeOutput::Stream(_) => Ok(()),
        }
    }

    /// The SHA-256 of each volume in hex digits; empty for one file.
    pub(crate) fn sums(self) -> Vec<String> {
        match self.target {
            VolumeTarget::Volumes(volumes) => {
                let OpenVolumes {
                    mut sums, hasher, ..
                } = *volumes;
                sums.push(hasher.finish().hex());
                sums
            }
            _ => Vec::new(),
        }
    }

    /// The smallest volume size that fits, if the requested one is too small.
    pub(crate) fn smallest(&self) -> Option<u64> {
        match &self.target {
            VolumeTarget::Volumes(volumes) if volumes.counting => {
                Some(smallest(&volumes.units, MAX_VOLUMES))
            }
            _ => None,
        }
    }
}

/// The number of volumes of `size` bytes that `units` need in this order.
fn volume_count(units: &[u64], size: u64) -> usize {
    let mut volumes = 1;
    let mut filled = 0_u64;
    for unit in units {
        if filled.saturating_add(*unit) > size {
            volumes += 1;
            filled = 0;
        }
        filled = filled.saturating_add(*unit);
    }
    volumes
}

/// The smallest size with which `units` fit into at most `limit` volumes in this order.
fn smallest(units: &[u64], limit: usize) -> u64 {
    let mut low = units.iter().copied().max().unwrap_or(0);
    let mut high = sum_sizes(units.iter().copied());
    // a binary search, because a larger size never needs more volumes
    while low < high {
        let middle = low + (high - low) / 2;
        if volume_count(units, middle) <= limit {
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
        assert_eq!(smallest(&[1 << 63; 3], 2), u64::MAX);
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
        // this frame is longer than a volume may be
        let (flush, _flushed) = sync_channel(100);
        let mut out = VolumeWriter::volumes(&base, 64, flush).unwrap();
        out.append(&frame::stored(&[0; 100])).unwrap();
        assert_eq!((out.smallest(), out.end), (Some(117), 117));
        assert!(!volume_path(&base, 4).exists());
    }
}
