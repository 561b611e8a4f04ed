//! Reads the bytes of a bundle from one file, from volumes (`B.0001` … `B.0999`, which form one
//! file when joined), or from ranges of an object. Callers see contiguous bytes; only messages name
//! a volume.

use super::volume_set::VolumeSet;
use crate::error::BundleError;
use crate::format::damage::Damage;
use crate::format::names::file_name;
use crate::format::stored::ReadAt;
use landfall_content::{FileRun, FileStamp, RangeRead, RangeReader};
use landfall_model::document::open_input;
use landfall_model::{locked, unpoisoned};
use landfall_os::FileExt;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The maximum number of volumes that are open at the same time: a bundle may have more volumes
/// than a process may open files.
const MAX_OPEN: usize = 16;

/// Reads the bytes of a bundle. Any number of threads may read.
#[derive(Debug)]
pub struct VolumeReader {
    parts: Vec<VolumePart>,
    are_volumes: bool,
    /// The most recently used files, by the index of their part.
    open: Mutex<VecDeque<(usize, Arc<File>)>>,
}

#[derive(Debug)]
struct VolumePart {
    path: PathBuf,
    start: u64,
    length: u64,
    medium: Medium,
}

/// The storage of a part.
#[derive(Debug)]
enum Medium {
    /// A file, with its stamp when the bundle was opened.
    File(FileStamp),
    Object(ObjectPart),
    /// A missing volume; reading it fails.
    Lost,
}

impl VolumeReader {
    /// Opens the bundle at `locations`: a file, or volumes as [`VolumeSet::of`] finds them. The
    /// error names all missing volumes.
    pub fn open(locations: &[PathBuf]) -> Result<VolumeReader, BundleError> {
        let path = locations.first().cloned().unwrap_or_default();
        let set = VolumeSet::of(locations).map_err(BundleError::open(&path))?;
        let Some(set) = set else {
            return VolumeReader::over(vec![path], false);
        };
        let missing = set.missing();
        if !missing.is_empty() {
            let volumes = missing.into_iter().map(|number| set.name(number)).collect();
            return Err(BundleError::Missing {
                path,
                volumes,
                loss: None,
            });
        }
        VolumeReader::over(set.found.values().cloned().collect(), true)
    }

    /// Reads these files as one, in this order.
    pub fn over(paths: Vec<PathBuf>, are_volumes: bool) -> Result<VolumeReader, BundleError> {
        let mut parts = Vec::with_capacity(paths.len());
        let mut open = VecDeque::new();
        let mut start = 0;
        for path in paths {
            let file = open_input(&path).and_then(|file| {
                // a folder can be opened, but not read
                if file.metadata()?.is_file() {
                    let file_stamp = FileStamp::of(&file)?;
                    Ok((file, file_stamp))
                } else {
                    Err(io::Error::other("it is not a regular file"))
                }
            });
            let (file, stamp) = file.map_err(BundleError::open(&path))?;
            // the first files stay open; the others are opened again when they are read
            if open.len() < MAX_OPEN {
                open.push_back((parts.len(), Arc::new(file)));
            }
            parts.push(VolumePart {
                path,
                start,
                length: stamp.size,
                medium: Medium::File(stamp),
            });
            start += stamp.size;
        }
        Ok(VolumeReader {
            parts,
            are_volumes,
            open: Mutex::new(open),
        })
    }

    /// Reads an object. Its end, with footer and index, is read immediately.
    pub fn of_object(object: Arc<dyn RangeRead>) -> Result<VolumeReader, BundleError> {
        let path = PathBuf::from(object.url());
        let length = object.size();
        let part = ObjectPart::open(object).map_err(BundleError::open(&path))?;
        let part = VolumePart {
            path,
            start: 0,
            length,
            medium: Medium::Object(part),
        };
        Ok(VolumeReader {
            parts: vec![part],
            are_volumes: false,
            open: Mutex::default(),
        })
    }

    /// Whether the bytes are fetched with requests, so that long reads are better than many short
    /// ones.
    pub fn is_remote(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part.medium, Medium::Object(_)))
    }

    /// A reader for `range`, and the offset at which it stops: the end of `range` or of the object
    /// that contains its first byte. `None` for local files, short ranges, and ranges in memory,
    /// which are better read on demand.
    pub fn reader(&self, range: Range<u64>) -> Option<(u64, RangeReader)> {
        let VolumePart {
            start,
            length,
            medium: Medium::Object(object),
            ..
        } = self.parts.get(self.part_at(range.start))?
        else {
            return None;
        };
        let end = range.end.min(start + length);
        let is_long = range.start + LITTLE < end && range.start < start + object.end();
        is_long.then(|| (end, object.reader(range.start - start..end - start)))
    }

    /// Inserts a gap of `length` bytes before the file at `index`, for the missing volume `path`.
    pub(crate) fn with_gap(mut self, index: usize, length: u64, path: PathBuf) -> VolumeReader {
        let start = self.start(index);
        // the open files are listed by the index of their part, and the parts after the gap get new
        // indexes
        unpoisoned(self.open.get_mut()).clear();
        self.parts[index..]
            .iter_mut()
            .for_each(|part| part.start += length);
        self.parts.insert(
            index,
            VolumePart {
                path,
                start,
                length,
                medium: Medium::Lost,
            },
        );
        self
    }

    /// The offset of the file at `index`, or the total length if there is no such file.
    pub fn start(&self, index: usize) -> u64 {
        self.parts
            .get(index)
            .map_or(self.length(), |part| part.start)
    }

    /// The last file and its offset.
    pub fn last(&self) -> (PathBuf, u64) {
        self.parts
            .last()
            .map(|part| (part.path.clone(), part.start))
            .unwrap_or_default()
    }

    /// The total length in bytes.
    pub fn length(&self) -> u64 {
        self.parts.last().map_or(0, |last| last.start + last.length)
    }

    /// The bytes at offset `at` as a run of their file: `length` bytes, or fewer at the end of the
    /// file.
    pub fn run(&self, at: u64, length: usize) -> io::Result<FileRun> {
        let (index, part, left) = self.find_part(at)?;
        Ok(FileRun {
            file: self.file(index)?,
            at: at - part.start,
            length: left.min(length as u64),
        })
    }

    /// The stamps of the files that contain the `length` bytes at offset `at`.
    pub fn file_stamps(&self, at: u64, length: u64) -> io::Result<Vec<FileStamp>> {
        let last = self.part_at(at + length.saturating_sub(1));
        (self.part_at(at)..=last)
            .map(|index| match &self.parts[index].medium {
                Medium::Object(object) => Ok(object.file_stamp()),
                Medium::File(_) | Medium::Lost => FileStamp::of(&*self.file(index)?),
            })
            .collect()
    }

    /// The name of the volume with the byte at offset `at`; `None` if the bundle is one file.
    pub fn volume(&self, at: u64) -> Option<String> {
        let part = self
            .parts
            .get(self.part_at(at))
            .filter(|_| self.are_volumes)?;
        Some(file_name(&part.path))
    }

    /// The number of the volume with the byte at offset `at`; `None` if the bundle is one file.
    pub(crate) fn volume_number(&self, at: u64) -> Option<usize> {
        self.are_volumes.then(|| self.part_at(at) + 1)
    }

    /// The end offset of each volume except the last, with the name of the next volume.
    pub fn ends(&self) -> impl Iterator<Item = (u64, String)> + '_ {
        self.parts
            .iter()
            .skip(1)
            .map(|part| (part.start, file_name(&part.path)))
    }

    /// Adds the name of the volume to the damage.
    pub fn locate(&self, damage: Damage) -> Damage {
        Damage {
            volume: self.volume(damage.offset),
            ..damage
        }
    }

    /// The index of the part with the byte at offset `at`, the part, and the number of its bytes
    /// from that offset on.
    fn find_part(&self, at: u64) -> io::Result<(usize, &VolumePart, u64)> {
        let index = self.part_at(at);
        let part = self.parts.get(index).ok_or(io::ErrorKind::UnexpectedEof)?;
        let left = (part.start + part.length)
            .checked_sub(at)
            .filter(|left| *left > 0);
        Ok((index, part, left.ok_or(io::ErrorKind::UnexpectedEof)?))
    }

    /// The index of the part with the byte at offset `at`; the last part if the offset is past the
    /// end.
    fn part_at(&self, at: u64) -> usize {
        // an empty part has the same offset as the next part, and only the next part has the byte
        self.parts
            .partition_point(|part| part.start <= at)
            .saturating_sub(1)
    }

    /// Opens the file at `index` again. Fails if it was replaced by a file of another bundle, whose
    /// frames have valid checksums too.
    fn open_again(&self, index: usize) -> io::Result<File> {
        let Medium::File(before) = &self.parts[index].medium else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let file = open_input(&self.parts[index].path)?;
        let now = FileStamp::of(&file)?;
        // FAT file systems, as on many USB sticks, may give a file another inode number
        let is_unchanged = (now.size, now.mtime) == (before.size, before.mtime);
        // a signature changes the end of the last volume
        let is_last = index + 1 == self.parts.len();
        if is_unchanged || (is_last && now.inode == before.inode) {
            return Ok(file);
        }
        Err(io::Error::other(
            "it has changed since the bundle was opened",
        ))
    }

    fn file(&self, index: usize) -> io::Result<Arc<File>> {
        let mut open = locked(&self.open);
        // a file that is used moves to the end, so the file at the front is the least recently used
        if let Some(position) = open.iter().position(|(part, _)| *part == index) {
            let found = open[position].1.clone();
            if position + 1 < open.len()
                && let Some(used) = open.remove(position)
            {
                open.push_back(used);
            }
            return Ok(found);
        }
        let file = Arc::new(self.open_again(index)?);
        if open.len() >= MAX_OPEN {
            open.pop_front();
        }
        open.push_back((index, file.clone()));
        Ok(file)
    }
}

impl ReadAt for VolumeReader {
    fn read_exact_at(&self, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            let (index, part, left) = self.find_part(at)?;
            // a read may cross the boundary between two volumes
            let (now, later) = buffer.split_at_mut(left.min(buffer.len() as u64) as usize);
            let read = match &part.medium {
                Medium::Object(object) => object.read_exact_at(now, at - part.start),
                Medium::File(_) | Medium::Lost => self
                    .file(index)
                    .and_then(|file| FileExt::read_exact_at(&*file, now, at - part.start)),
            };
            // a bad disc causes a read error, and the user must know which disc it is
            read.map_err(|error| match self.volume(at) {
                Some(volume) => io::Error::new(error.kind(), format!("{volume}: {error}")),
                None => error,
            })?;
            at += now.len() as u64;
            buffer = later;
        }
        Ok(())
    }
}

impl ReadAt for File {
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buffer, at)
    }
}

// A bundle in an object store. The last MiB is kept in memory. A small read of earlier bytes
// fetches a whole window, since related small pieces are close to each other.

/// The bytes at the end that are read on opening: in most bundles the index, and the frame table
/// before it.
const END: u64 = 1 << 20;
/// The bytes that are requested at once for a small read.
const WINDOW: u64 = 1 << 20;
/// The number of cached windows.
const KEPT: usize = 8;
/// The size in bytes of the largest read that uses windows.
const LITTLE: u64 = 256 << 10;

/// An object with its end in memory.
#[derive(Debug)]
struct ObjectPart {
    object: Arc<dyn RangeRead>,
    end: Vec<u8>,
    /// The windows that were fetched last, each with its number.
    windows: Mutex<VecDeque<(u64, Arc<Vec<u8>>)>>,
}

impl ObjectPart {
    /// Reads the end of the object.
    fn open(object: Arc<dyn RangeRead>) -> io::Result<ObjectPart> {
        let size = object.size();
        let end = read_range(&object, size - size.min(END)..size)?;
        Ok(ObjectPart {
            object,
            end,
            windows: Mutex::default(),
        })
    }

    /// The stamp of the object, which changes when it is replaced.
    fn file_stamp(&self) -> FileStamp {
        self.object.file_stamp()
    }

    /// Reads `range` in order; one request suffices unless a response is interrupted.
    fn reader(&self, range: Range<u64>) -> RangeReader {
        RangeReader::new(self.object.clone(), range)
    }

    /// The offset at which the part in memory begins.
    fn end(&self) -> u64 {
        self.object.size() - self.end.len() as u64
    }

    fn window(&self, number: u64) -> io::Result<Arc<Vec<u8>>> {
        if let Some((_, window)) = locked(&self.windows).iter().find(|(of, _)| *of == number) {
            return Ok(window.clone());
        }
        let from = number * WINDOW;
        // unlocked during the request, so that other threads can use the cached windows
        let window = Arc::new(read_range(
            &self.object,
            from..self.end().min(from + WINDOW),
        )?);
        let mut windows = locked(&self.windows);
        // the newest window is at the front, so the oldest is dropped
        windows.truncate(KEPT - 1);
        windows.push_front((number, window.clone()));
        Ok(window)
    }
}

fn read_range(object: &Arc<dyn RangeRead>, range: Range<u64>) -> io::Result<Vec<u8>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::names::volume_path;

    #[test]
    fn reads_cross_volume_boundaries() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("B");
        let bytes: Vec<u8> = (0..200u8).collect();
        // more volumes than the reader keeps open, one of them empty
        let paths: Vec<PathBuf> = (0..=20)
            .map(|number| volume_path(&base, number + 1))
            .collect();
        for (path, piece) in paths.iter().zip(bytes.chunks(10).chain([&[][..]])) {
            std::fs::write(path, piece).unwrap();
        }
        let medium = VolumeReader::open(std::slice::from_ref(&base)).unwrap();
        assert_eq!(medium.length(), 200);
        for (at, length) in [
            (0, 200),
            (0, 0),
            (9, 2),
            (10, 10),
            (195, 5),
            (55, 100),
            (3, 1),
        ] {
            assert_eq!(
                medium.bytes_at(at, length).unwrap(),
                bytes[at as usize..][..length]
            );
        }
        let past = medium.bytes_at(195, 6).unwrap_err();
        assert_eq!(past.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(medium.volume(39).as_deref(), Some("B.0004"));
        assert_eq!(medium.volume(40).as_deref(), Some("B.0005"));
        assert_eq!(
            VolumeReader::over(vec![paths[0].clone()], false)
                .unwrap()
                .volume(3),
            None
        );
    }
}
