//! Writing a bundle: into `OUT.partial` beside it, which gets its name when everything is on disk.

use super::contents::{Contents, Frame, Hash, LockName, PackOptions, Record};
use super::draft::Draft;
use super::locator::{self, Locator};
use super::out::Out;
use super::parcel::{Parcel, publish};
use super::pipeline::Buffers;
use super::plan::{Content, Piece};
use super::sums::with;
use super::volumes::{self, MAX_VOLUMES, VolumeSize, folder};
use super::{CONTENTS, DELTA, Error, Form, LOCK, Plan, frame, header, pipeline, sign, straight, tail};
use crate::content::{BlobRead, ContentError};
use crate::model::{Algorithm, Digest, Hasher, trim_index};
use crate::report::Progress;
use crate::sign::Signer;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// A bundle that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The bundle digest: SHA-256 of the contents index.
    pub digest: Digest,
    /// Its size in bytes, of all volumes together.
    pub bytes: u64,
    /// The files that it is made of: one, or its volumes.
    pub files: Vec<PathBuf>,
    /// What was put beside it: programs, then the checksums.
    pub beside: Vec<PathBuf>,
}

/// What the threads hand each other: one frame's content, then the frame.
pub(super) struct Work {
    /// Which piece; `None` for the locator.
    piece: Option<usize>,
    draft: Draft,
}

pub(super) struct Done {
    pub piece: Option<usize>,
    content: usize,
    pub frame: io::Result<(Vec<u8>, Hash)>,
}

/// Writes the bundle of `plan` to `out`. Every blob's digest is checked on the way. What `plan` has
/// lost is named inside the bundle.
///
/// # Errors
/// When there is not enough room, content is damaged or gone, or the file cannot be written. Then
/// nothing stands at `out` that did not stand there before.
pub fn write(
    plan: &Plan,
    blobs: &dyn BlobRead,
    out: &Path,
    options: PackOptions,
    progress: &dyn Progress,
) -> Result<Written, Error> {
    write_parcel(plan, blobs, out, options, &Parcel::default(), progress)
}

/// The same in volumes, with programs beside it, or signed: [`Parcel`] says how.
///
/// # Errors
/// As [`write`]; and when the volumes are too small, a program cannot be copied, or nothing can be signed.
pub fn write_parcel(
    plan: &Plan,
    blobs: &dyn BlobRead,
    out: &Path,
    options: PackOptions,
    parcel: &Parcel,
    progress: &dyn Progress,
) -> Result<Written, Error> {
    let (partial, file) = claim(out)?;
    // it is locked until the end
    let file = Arc::new(file);
    let failed = |source| Error::Write { path: out.into(), source };
    // what an unfinished `pull --bundle` left belongs to the file's old content
    file.set_len(0).and_then(|()| straight::clear(&partial)).map_err(failed)?;
    let fill = |flush| {
        // volumes lie beside the file, which then is but a lock
        let mut out = match parcel.volume_size {
            None => Out::file(file.clone(), 0, Some(flush)),
            Some(size) => Out::volumes(&partial, size.0, flush).map_err(failed)?,
        };
        out.expect(plan.stored_bytes());
        let written = fill(plan, blobs, &partial, &mut out, options, parcel.signer.as_deref(), progress)?;
        out.close();
        match (out.smallest(), parcel.volume_size) {
            (Some(smallest), Some(VolumeSize(size))) => {
                Err(Error::VolumeSize { size, most: MAX_VOLUMES, smallest })
            }
            _ => Ok((written, out)),
        }
    };
    let result = volumes::remove_all(&partial).map_err(failed).and_then(|()| {
        room(plan.needed_bytes(), out)?;
        let tools = parcel.tools(out)?;
        progress.begin("pack", plan.items.len() as u64, plan.content_bytes());
        let filled = flushing(fill);
        progress.end();
        filled.and_then(|((written, filled), flushed)| {
            let publish = || {
                flushed?;
                filled.sync()?;
                publish(&partial, out, &filled.sums()?, &tools, parcel.signer.as_deref())
            };
            let (files, beside) = publish().map_err(failed)?;
            Ok(Written { files, beside, ..written })
        })
    });
    if result.is_err() {
        // the first error is the one to tell; the next run reuses the files if they stay
        let _ = volumes::remove_all(&partial);
        let _ = fs::remove_file(&partial);
    }
    result
}

/// Opens or makes `OUT.partial`, and locks it against other processes.
pub(super) fn claim(out: &Path) -> Result<(PathBuf, File), Error> {
    let path = with(out, ".partial");
    let failed = |source| Error::Write { path: path.clone(), source };
    if out.is_dir() {
        return Err(Error::Write { path: out.into(), source: io::ErrorKind::IsADirectory.into() });
    }
    let file =
        File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Error::Busy { path }),
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    // another process may have finished and renamed it between open and lock
    let same = fs::metadata(&path).and_then(|named| Ok(named.ino() == file.metadata()?.ino()));
    if !same.unwrap_or(false) {
        return Err(Error::Busy { path });
    }
    Ok((path, file))
}

/// Refuses to begin where there is less room than `needed` bytes.
pub(super) fn room(needed: u64, out: &Path) -> Result<(), Error> {
    let folder = folder(out);
    let failed = |source: rustix::io::Errno| Error::Write { path: folder.into(), source: source.into() };
    let system = rustix::fs::statvfs(folder).map_err(failed)?;
    let available = system.f_bavail.saturating_mul(system.f_frsize);
    if needed > available { Err(Error::Space { folder: folder.into(), needed, available }) } else { Ok(()) }
}

/// Runs `work` beside a thread that brings the files that it is sent to disk. So progress is honest on a slow
/// disk, and little is left to wait for at the end.
fn flushing<T>(
    work: impl FnOnce(SyncSender<Arc<File>>) -> Result<T, Error>,
) -> Result<(T, io::Result<()>), Error> {
    thread::scope(|scope| {
        let (flush, wanted) = sync_channel::<Arc<File>>(1);
        let flusher = scope.spawn(move || wanted.into_iter().try_for_each(|file| file.sync_data()));
        let result = work(flush);
        let flushed = flusher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((result?, flushed))
    })
}

fn fill(
    plan: &Plan,
    blobs: &dyn BlobRead,
    path: &Path,
    out: &mut Out,
    options: PackOptions,
    signer: Option<&Signer>,
    progress: &dyn Progress,
) -> Result<Written, Error> {
    let failed = |source| Error::Write { path: path.into(), source };
    let (mut contents, buffers) = (empty_contents(plan, options), Buffers::default());
    pipeline::ordered(
        |hand| make(plan, blobs, &buffers, hand),
        encode(options.level, &buffers),
        |done: Done| {
            let (frame, hash) = done.frame.map_err(failed)?;
            match done.piece.map(|piece| (piece >= contents.front_len(), &mut contents.entries[piece])) {
                None => contents.locator = out.end,
                Some((is_blob, record)) => {
                    if record.frames.is_empty() {
                        record.offset = out.end;
                    }
                    record.frames.push(Frame(frame.len() as u32, hash));
                    if is_blob && record.is_content(record.frames.len() - 1) {
                        progress.bytes(done.content as u64);
                    }
                }
            }
            out.put(&frame).map_err(failed)?;
            if done.piece.is_none() {
                // its place is kept; the index is not known yet
                out.put(&[0; locator::SPAN][frame.len()..]).map_err(failed)?;
            }
            buffers.give(frame);
            Ok(())
        },
    )?;
    let signature = signer.map(|signer| sign::sign(signer, &contents, path)).transpose()?;
    let locator = finish(&contents, signature.as_deref(), out).map_err(failed)?;
    out.put_back(&locator.frames().concat(), contents.locator).map_err(failed)?;
    plan.items.iter().for_each(|item| progress.item(&item.name));
    Ok(Written { digest: locator.sha256, bytes: out.end, files: Vec::new(), beside: Vec::new() })
}

/// Makes a frame of its content.
pub(super) fn encode(level: i32, buffers: &Buffers) -> impl Fn(Work) -> Done + Sync {
    move |Work { piece, draft }: Work| {
        let content = draft.size();
        let frame = draft.frame(level, buffers).map(|frame| {
            let hash = Hash::of(&frame);
            (frame, hash)
        });
        Done { piece, content, frame }
    }
}

/// The index of a bundle of which nothing is written yet.
pub(super) fn empty_contents(plan: &Plan, options: PackOptions) -> Contents {
    let record = |piece: &Piece| Record {
        name: piece.name.clone(),
        digest: piece.descriptor.digest.clone(),
        size: piece.descriptor.size,
        media_type: piece.descriptor.media_type.clone(),
        form: piece.form,
        offset: 0,
        frames: Vec::new(),
    };
    Contents {
        version: 1,
        landfall: env!("CARGO_PKG_VERSION").into(),
        options,
        requires: if plan.omitted.is_empty() { Vec::new() } else { vec![DELTA.into()] },
        locks: vec![LockName { name: LOCK.into(), fingerprint: plan.fingerprint.clone() }],
        partial: plan.lost.iter().map(|lost| lost.item.clone()).collect(),
        bases: plan.bases.clone(),
        omitted: plan.omitted.clone(),
        locator: 0,
        entries: plan.pieces.iter().map(record).collect(),
    }
}

/// Hands out the content of every frame before the index, in order.
fn make(
    plan: &Plan,
    blobs: &dyn BlobRead,
    buffers: &Buffers,
    hand: &mut dyn FnMut(Work) -> bool,
) -> Result<(), Error> {
    let front_len = super::contents::FRONT.len() + 1;
    for (index, piece) in plan.pieces.iter().enumerate() {
        if index == front_len && !hand(locator_work()) || !make_piece(index, piece, blobs, buffers, hand)? {
            return Ok(());
        }
    }
    if plan.pieces.len() == front_len {
        hand(locator_work());
    }
    Ok(())
}

/// Hands out the content of the frames of one piece; `false` once nobody wants more.
pub(super) fn make_piece(
    index: usize,
    piece: &Piece,
    blobs: &dyn BlobRead,
    buffers: &Buffers,
    hand: &mut dyn FnMut(Work) -> bool,
) -> Result<bool, Error> {
    let at = Some(index);
    let size = piece.descriptor.size;
    let around = |content: &[u8]| Work { piece: at, draft: Draft::of(Form::Stored, content) };
    let mut go_on = hand(around(&header::encode(&piece.name, size)));
    let failed = |source| Error::Content { item: piece.item.clone(), source };
    let mut source = open(piece, blobs)?;
    let mut hasher = Hasher::new(piece.descriptor.digest.algorithm());
    let mut left = size;
    while left > 0 && go_on {
        let length = left.min(frame::CHUNK as u64);
        let mut draft = Draft::new(piece.form, length as usize, buffers.take());
        let read = draft.fill(&mut source, |content| hasher.update(content));
        read.map_err(|source| failed(read_error(piece, source)))?;
        left -= length;
        go_on = hand(Work { piece: at, draft });
    }
    if !go_on {
        return Ok(false);
    }
    let over = source.read(&mut [0]).map_err(|source| failed(read_error(piece, source)))?;
    if over > 0 || hasher.finish() != piece.descriptor.digest {
        return Err(failed(ContentError::Damaged { digest: piece.descriptor.digest.clone() }));
    }
    let padding = header::padding(size);
    Ok(padding == 0 || hand(around(&vec![0; padding])))
}

fn locator_work() -> Work {
    let content = header::encode(super::LOCATOR, Locator::contents()[1] as u64);
    Work { piece: None, draft: Draft::of(Form::Stored, &content) }
}

pub(super) fn read_error(piece: &Piece, source: io::Error) -> ContentError {
    let digest = piece.descriptor.digest.clone();
    match source.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => ContentError::Damaged { digest },
        _ => ContentError::Read { digest, source },
    }
}

pub(super) fn open(piece: &Piece, blobs: &dyn BlobRead) -> Result<Box<dyn Read + Send>, Error> {
    let failed = |source| Error::Content { item: piece.item.clone(), source };
    match &piece.content {
        Content::Bytes(bytes) => Ok(Box::new(io::Cursor::new(bytes.clone()))),
        Content::Store => blobs.open(&piece.descriptor.digest, 0).map_err(failed),
        Content::Trimmed { of, keep } => {
            let index = blobs.read(of).map_err(failed)?;
            let trimmed = trim_index(&index, keep)
                .map_err(|error| Error::Trim { item: piece.item.clone(), why: error.to_string() })?;
            Ok(Box::new(io::Cursor::new(trimmed)))
        }
    }
}

/// Writes the contents index and the tail; gives the locator, which has its place at the front.
pub(super) fn finish(contents: &Contents, signature: Option<&[u8]>, out: &mut Out) -> io::Result<Locator> {
    // twice, as its size stands before it: the whole text would take more memory than the index
    let (mut index, mut size) = (Hasher::new(Algorithm::Sha256), 0);
    contents.chunks(|chunk| {
        index.update(chunk);
        size += chunk.len() as u64;
        Ok(())
    })?;
    out.put(&frame::stored(&header::encode(CONTENTS, size)))?;
    let offset = out.end;
    let (mut sizes, mut frames) = (Vec::new(), Sha256::new());
    contents.chunks(|chunk| {
        let frame = frame::encode(Form::Compressed, contents.options.level, chunk)?;
        sizes.push((frame.len() as u32, chunk.len() as u32));
        frames.update(&frame);
        out.put(&frame)
    })?;
    let length = out.end - offset;
    out.put(&tail::tail(contents, &sizes, size, signature))?;
    Ok(Locator { offset, length, frames: Hash(frames.finalize().into()), size, sha256: index.finish() })
}
