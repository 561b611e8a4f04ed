//! A small bundle for tests and fuzz targets, and functions that forge its parts.
#![allow(clippy::unwrap_used, reason = "a failure ends the test")]

use crate::format::contents::ContentsIndex;
use crate::format::footer::{self, Footer};
use crate::format::frame::{self, FrameHash, FrameTable, ROW};
use crate::format::header;
use crate::format::names::CONTENTS;
#[cfg(test)]
use crate::format::names::volume_path;
#[cfg(test)]
use crate::format::stored::stored_len;
use crate::format::stored::{CHUNK, ContentForm};
#[cfg(test)]
use crate::verify;
use crate::{Bundle, BundleError, PackOptions, PackPlan, Packaging, PackedBundle, write_packaged};
use landfall_content::{BlobRead, ContentError};
use landfall_item::lockfile::Lock;
use landfall_item::{LockedFile, LockedImage};
use landfall_model::report::SilentProgress;
use landfall_model::{Descriptor, Digest, media_type};
use landfall_os::FileExt;
use std::collections::HashMap;
use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

/// Content in memory. `sizes` overrides the sizes that [`BlobRead::stat`] returns.
#[derive(Default)]
pub(super) struct Memory {
    pub blobs: HashMap<Digest, Vec<u8>>,
    pub sizes: HashMap<Digest, u64>,
}

impl Memory {
    pub(super) fn put(&mut self, bytes: &[u8], kind: &str) -> Descriptor {
        let digest = Digest::sha256(bytes);
        self.blobs.insert(digest.clone(), bytes.into());
        Descriptor::new(digest, bytes.len() as u64, kind)
    }
}

impl BlobRead for Memory {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        let real = || self.blobs.get(digest).map(|bytes| bytes.len() as u64);
        Ok(self.sizes.get(digest).copied().or_else(real))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let bytes = self
            .blobs
            .get(digest)
            .ok_or_else(|| ContentError::Missing {
                digest: digest.clone(),
            })?;
        Ok(Box::new(Cursor::new(bytes[offset as usize..].to_vec())))
    }
}

/// One image of one platform, and one file.
pub(super) fn sample() -> (Memory, Lock) {
    let mut memory = Memory::default();
    let layer = memory.put(
        &b"layer".repeat(300),
        "application/vnd.oci.image.layer.v1.tar+gzip",
    );
    let config = memory.put(br#"{"os":"linux"}"#, media_type::OCI_CONFIG);
    let manifest =
        serde_json::json!({"schemaVersion": 2, "config": config, "layers": [layer]}).to_string();
    let top = memory.put(manifest.as_bytes(), media_type::OCI_MANIFEST);
    let file = memory.put(&b"plain file ".repeat(100), media_type::OCTETS);
    let image = LockedImage {
        blobs: vec![config, layer],
        ..LockedImage::new("h.example/app:1".parse().unwrap(), top)
    };
    let file = LockedFile::new("https://h.example/tool", file.digest, file.size);
    (
        memory,
        Lock {
            version: 1,
            images: vec![image],
            files: vec![file],
            ..Lock::default()
        },
    )
}

pub(super) fn today() -> jiff::civil::Date {
    jiff::civil::date(2026, 11, 20)
}

/// A bundle in its own folder. Dropping this value removes the folder.
pub struct Packed {
    pub(super) _dir: tempfile::TempDir,
    /// The file with the bundle.
    pub path: PathBuf,
}

pub(super) fn packed() -> Packed {
    let (memory, lock) = sample();
    packed_from(&memory, &lock)
}

pub(super) fn packed_from(memory: &Memory, lock: &Lock) -> Packed {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("B");
    let plan = PackPlan::new(lock, memory, today()).unwrap();
    write(&plan, memory, &path).unwrap();
    Packed { _dir: dir, path }
}

/// Returns `len` bytes that do not compress, the same ones each time.
pub fn noise(len: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Returns a forged bundle. Its lock names `locked`, as a layer of the image `h.example/app:1` and
/// as the file `layer.tgz`. Its frames contain `carried` instead, which has the same size, and the
/// frame table matches these frames.
pub fn forged_bundle(locked: &[u8], carried: &[u8]) -> (Packed, Lock) {
    let (mut memory, mut lock) = sample();
    let layer = memory.put(locked, "application/vnd.oci.image.layer.v1.tar+gzip");
    let config = lock.images[0].blobs[0].clone();
    let manifest =
        serde_json::json!({"schemaVersion": 2, "config": config, "layers": [layer]}).to_string();
    let top = memory.put(manifest.as_bytes(), media_type::OCI_MANIFEST);
    let digest = layer.digest.clone();
    lock.files = vec![LockedFile::new(
        "https://h.example/layer.tgz",
        layer.digest.clone(),
        layer.size,
    )];
    lock.images[0] = LockedImage {
        blobs: vec![config, layer],
        ..LockedImage::new("h.example/app:1".parse().unwrap(), top)
    };
    let packed = packed_from(&memory, &lock);
    packed.reseal(|contents, rows| {
        let entry = contents
            .entries
            .iter()
            .find(|entry| entry.digest == digest)
            .unwrap();
        assert_eq!(entry.form, ContentForm::Stored);
        let file = fs::File::options().write(true).open(&packed.path).unwrap();
        for (row, chunk) in rows[entry.frame as usize + 1..]
            .iter_mut()
            .zip(carried.chunks(CHUNK))
        {
            let frame = frame::stored(chunk);
            file.write_all_at(&frame, row.0).unwrap();
            row.1 = FrameHash::of(&frame);
        }
    });
    (packed, lock)
}

impl Packed {
    /// Returns the problems that verification reports; empty if the bundle is intact.
    #[cfg(test)]
    pub(super) fn problems(&self) -> String {
        match Bundle::open(&self.path).and_then(|bundle| verify(&bundle, &SilentProgress)) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    /// Lets `change` modify the index and the rows of the frame table, and writes a matching end of
    /// the bundle.
    pub(super) fn reseal(&self, change: impl FnOnce(&mut ContentsIndex, &mut Rows)) {
        let (mut contents, mut rows) = self.opened();
        let table = contents.frames.clone();
        change(&mut contents, &mut rows);
        let is_lie = contents.frames != table;
        self.seal(contents, &rows, table.offset, is_lie, &[]);
    }

    /// Writes the bundle again as the three volumes of a bundle `V`. The second volume has the
    /// bytes in the range `second`. Returns the path of `V`.
    #[cfg(test)]
    pub(super) fn split(&self, second: std::ops::Range<u64>) -> PathBuf {
        let base = self.path.with_file_name("V");
        let bytes = fs::read(&self.path).unwrap();
        let (start, end) = (second.start as usize, second.end as usize);
        let volumes = [&bytes[..start], &bytes[start..end], &bytes[end..]];
        for (number, volume) in (1..).zip(volumes) {
            fs::write(volume_path(&base, number), volume).unwrap();
        }
        base
    }

    /// The index and the rows of the frame table.
    pub(super) fn opened(&self) -> (ContentsIndex, Rows) {
        let bundle = Bundle::open(&self.path).unwrap();
        let contents = bundle.contents().clone();
        let count = contents.frames.size / ROW as u64;
        let rows = (0..count).map(|number| bundle.0.rows.row(&bundle.0.volumes, number).unwrap());
        (contents, rows.collect())
    }

    /// Truncates the file at `end`, and appends a frame table of `rows`, the index `contents`, the
    /// `signatures`, and a footer. Corrects the description of the table in the index, unless the
    /// description was forged (`is_lie`).
    pub(super) fn seal(
        &self,
        mut contents: ContentsIndex,
        rows: &Rows,
        end: u64,
        is_lie: bool,
        signatures: &[String],
    ) {
        let file = fs::File::options().write(true).open(&self.path).unwrap();
        file.set_len(end).unwrap();
        let table: Vec<u8> = rows
            .iter()
            .flat_map(|(offset, hash)| frame::row(*offset, *hash))
            .collect();
        let frames: Vec<Vec<u8>> = frame::pieces(&table)
            .map(|piece| frame::stored(&piece))
            .collect();
        if !is_lie {
            let hashes = frames.iter().map(|frame| FrameHash::of(frame)).collect();
            contents.frames = FrameTable {
                offset: end,
                size: table.len() as u64,
                hashes,
            };
        }
        let index = contents.to_bytes().unwrap();
        let size = index.len() as u64;
        let mut bytes = [
            frames.concat(),
            frame::stored(&header::encode(CONTENTS, size)),
        ]
        .concat();
        let offset = end + bytes.len() as u64;
        let chunks = index
            .chunks(CHUNK)
            .map(|chunk| frame::encode(ContentForm::Compressed, 3, chunk).unwrap());
        let frames = chunks.collect::<Vec<_>>().concat();
        bytes.extend(&frames);
        for piece in [vec![0; header::padding(size)], header::END.to_vec()] {
            bytes.extend(if piece.is_empty() {
                Vec::new()
            } else {
                frame::stored(&piece)
            });
        }
        let list = footer::to_frame(signatures);
        bytes.extend(&list);
        let footer = Footer {
            offset,
            length: frames.len() as u64,
            frames: FrameHash::of(&frames),
            size,
            sha256: Digest::sha256(&index),
            signed: list.len() as u64,
            signatures: FrameHash::of(&list),
        };
        file.write_all_at(&[bytes, footer.to_bytes()].concat(), end)
            .unwrap();
    }

    /// Changes the content of a stored entry that has one frame of content, and writes a matching
    /// frame and hash. The size must stay the same.
    #[cfg(test)]
    pub(super) fn replace(&self, entry_index: usize, change: impl FnOnce(&mut Vec<u8>)) {
        self.reseal(|contents, rows| {
            let entry = &contents.entries[entry_index];
            let row = &mut rows[entry.frame as usize + 1];
            let bytes = fs::read(&self.path).unwrap();
            let old = &bytes[row.0 as usize..][..stored_len(entry.size) as usize];
            let mut content = frame::decode(ContentForm::Stored, old, entry.size as usize).unwrap();
            change(&mut content);
            let new = frame::stored(&content);
            row.1 = FrameHash::of(&new);
            let file = fs::File::options().write(true).open(&self.path).unwrap();
            file.write_all_at(&new, row.0).unwrap();
        });
    }
}

/// The rows of a frame table.
pub(super) type Rows = Vec<(u64, FrameHash)>;

/// The position of the first blob with this form among the entries.
#[cfg(test)]
pub(super) fn blob(contents: &ContentsIndex, form: ContentForm) -> usize {
    contents
        .entries
        .iter()
        .position(|entry| entry.is_blob() && entry.form == form)
        .unwrap()
}

/// Writes the bundle of `plan` to `out`. Every blob's digest is checked on the way. The index of
/// the bundle lists the missing items of `plan`.
///
/// # Errors
/// If there is not enough space, if content is damaged or missing, or if the file cannot be
/// written. In these cases, `out` is left unchanged.
pub(super) fn write(
    plan: &PackPlan,
    blobs: &dyn BlobRead,
    out: &Path,
) -> Result<PackedBundle, BundleError> {
    let options = PackOptions::default();
    let packaging = Packaging::default();
    write_packaged(plan, blobs, out, options, &packaging, &SilentProgress)
}
