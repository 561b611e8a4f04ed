//! A small bundle for tests and fuzz targets, and the tools of somebody who lies.
#![allow(clippy::unwrap_used)]

use crate::bundle::format::contents::Contents;
use crate::bundle::format::form::Form;
use crate::bundle::format::hash::Hash;
use crate::bundle::format::stored::stored_len;
use crate::bundle::format::{frame, header};
use crate::bundle::write::fill::finish;
use crate::bundle::write::volume_writer::VolumeWriter;
use crate::bundle::*;
use crate::content::{BlobRead, ContentError};
use crate::item::{File, Image};
use crate::lockfile::Lock;
use crate::model::{Descriptor, Digest, media_type};
use crate::report::{Progress, Silent};
use std::collections::HashMap;
use std::fs;
use std::io::{Cursor, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Content in memory; sizes can be faked.
#[derive(Default)]
pub(super) struct Memory {
    pub blobs: HashMap<Digest, Vec<u8>>,
    pub sizes: HashMap<Digest, u64>,
}

impl Memory {
    pub(super) fn put(&mut self, bytes: &[u8], kind: &str) -> Descriptor {
        let digest = Digest::sha256(bytes);
        self.blobs.insert(digest.clone(), bytes.into());
        Descriptor { digest, size: bytes.len() as u64, media_type: kind.into() }
    }
}

impl BlobRead for Memory {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        let real = || self.blobs.get(digest).map(|bytes| bytes.len() as u64);
        Ok(self.sizes.get(digest).copied().or_else(real))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let bytes = self.blobs.get(digest).ok_or_else(|| ContentError::Missing { digest: digest.clone() })?;
        Ok(Box::new(Cursor::new(bytes[offset as usize..].to_vec())))
    }
}

/// One image of one platform, and one file.
pub(super) fn sample() -> (Memory, Lock) {
    let mut memory = Memory::default();
    let layer = memory.put(&b"layer".repeat(300), "application/vnd.oci.image.layer.v1.tar+gzip");
    let config = memory.put(br#"{"os":"linux"}"#, media_type::OCI_CONFIG);
    let manifest = serde_json::json!({"schemaVersion": 2, "config": config, "layers": [layer]}).to_string();
    let top = memory.put(manifest.as_bytes(), media_type::OCI_MANIFEST);
    let file = memory.put(&b"plain file ".repeat(100), media_type::OCTETS);
    let image = Image { blobs: vec![config, layer], ..Image::new("h.example/app:1".parse().unwrap(), top) };
    let file = File::new("https://h.example/tool", file.digest, file.size);
    (memory, Lock { version: 1, images: vec![image], files: vec![file], ..Lock::default() })
}

pub(super) fn today() -> jiff::civil::Date {
    jiff::civil::date(2026, 11, 20)
}

pub(crate) struct Packed {
    pub _dir: tempfile::TempDir,
    pub path: PathBuf,
}

pub(super) fn packed() -> Packed {
    let (memory, lock) = sample();
    packed_from(&memory, &lock)
}

fn packed_from(memory: &Memory, lock: &Lock) -> Packed {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("B");
    let plan = PackPlan::new(lock, memory, today()).unwrap();
    write(&plan, memory, &path, PackOptions { level: 3 }, &Silent).unwrap();
    Packed { _dir: dir, path }
}

/// A bundle with the lock of an image `h.example/app:1` that has the layer `honest`, which is the file `layer.tgz` too,
/// and with `lie` in its place, which has the same size: in frames and an index that fit it.
#[cfg(test)]
pub(crate) fn lying(honest: &[u8], lie: &[u8]) -> (Packed, Lock) {
    let (mut memory, mut lock) = sample();
    let layer = memory.put(honest, "application/vnd.oci.image.layer.v1.tar+gzip");
    let config = lock.images[0].blobs[0].clone();
    let manifest = serde_json::json!({"schemaVersion": 2, "config": config, "layers": [layer]}).to_string();
    let top = memory.put(manifest.as_bytes(), media_type::OCI_MANIFEST);
    let digest = layer.digest.clone();
    lock.files = vec![File::new("https://h.example/layer.tgz", layer.digest.clone(), layer.size)];
    lock.images[0] =
        Image { blobs: vec![config, layer], ..Image::new("h.example/app:1".parse().unwrap(), top) };
    let packed = packed_from(&memory, &lock);
    packed.reseal(|contents| {
        let entry = contents.entries.iter_mut().find(|entry| entry.digest == digest).unwrap();
        assert_eq!(entry.form, Form::Stored);
        let mut at = entry.offset + u64::from(entry.frames[0].0);
        let file = fs::File::options().write(true).open(&packed.path).unwrap();
        for (listed, chunk) in entry.frames[1..].iter_mut().zip(lie.chunks(1 << 20)) {
            let frame = frame::stored(chunk);
            file.write_all_at(&frame, at).unwrap();
            at += u64::from(listed.0);
            listed.1 = Hash::of(&frame);
        }
    });
    (packed, lock)
}

impl Packed {
    /// What verification finds; empty where the bundle is sound.
    pub(super) fn problems(&self) -> String {
        match Bundle::open(&self.path).and_then(|bundle| verify(&bundle, &Silent)) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    /// Lets a liar change the index, and makes locator and tail fit.
    pub(super) fn reseal(&self, lie: impl FnOnce(&mut Contents)) {
        let bundle = Bundle::open(&self.path).unwrap();
        let mut contents = bundle.contents().clone();
        lie(&mut contents);
        self.seal(&contents, bundle.contents().locator, index_at(&bundle));
    }

    /// Ends the file at `end` with this index, and puts the locator where it was.
    pub(super) fn seal(&self, contents: &Contents, locator_at: u64, end: u64) {
        self.seal_signed(contents, None, locator_at, end);
    }

    pub(super) fn seal_signed(
        &self,
        contents: &Contents,
        signature: Option<&[u8]>,
        locator_at: u64,
        end: u64,
    ) {
        let file = fs::File::options().write(true).open(&self.path).unwrap();
        file.set_len(end).unwrap();
        let mut out = VolumeWriter::file(file.into(), end, None);
        let locator = finish(contents, signature, &mut out).unwrap();
        out.overwrite(&locator.frames().concat(), locator_at).unwrap();
    }

    /// Puts other content of the same size into an entry, with frames that fit.
    pub(super) fn replace(&self, place: usize, change: impl FnOnce(&mut Vec<u8>)) {
        self.reseal(|contents| {
            let entry = &mut contents.entries[place];
            assert_eq!((entry.form, entry.frames.len() > 1), (Form::Stored, true));
            let at = entry.offset + u64::from(entry.frames[0].0);
            let bytes = fs::read(&self.path).unwrap();
            let old = &bytes[at as usize..][..entry.frames[1].0 as usize];
            let mut content = frame::decode(Form::Stored, old, entry.size as usize).unwrap();
            change(&mut content);
            let new = frame::stored(&content);
            entry.frames[1].1 = Hash::of(&new);
            let file = fs::File::options().write(true).open(&self.path).unwrap();
            file.write_all_at(&new, at).unwrap();
        });
    }
}

/// Where the entry of the index begins.
pub(super) fn index_at(bundle: &Bundle) -> u64 {
    bundle.0.index.locator.offset - stored_len(header::BLOCK as u64)
}

/// The first entry with this form that is a blob.
pub(super) fn blob(contents: &Contents, form: Form) -> usize {
    contents.entries.iter().position(|entry| entry.is_blob() && entry.form == form).unwrap()
}

/// Writes the bundle of `plan` to `out`. Every blob's digest is checked on the way. Items that `plan` misses are
/// named inside the bundle.
///
/// # Errors
/// When there is not enough room, content is damaged or gone, or the file cannot be written. Then
/// nothing stands at `out` that did not stand there before.
pub(super) fn write(
    plan: &PackPlan,
    blobs: &dyn BlobRead,
    out: &Path,
    options: PackOptions,
    progress: &dyn Progress,
) -> Result<PackedBundle, Error> {
    write_packaged(plan, blobs, out, options, &Packaging::default(), progress)
}
