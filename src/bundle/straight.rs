//! A bundle straight from upstream, with no second copy of a stored blob. The lock alone says where stored
//! blobs lie, so they go to their places in `OUT.partial` while they arrive, in any order ([`super::arrive`], [`super::ground`]).
//! What must be compressed comes after them, and passes through a spool ([`super::squeeze`]). Journal and spool
//! lie in `OUT.partial.work`. The file is the one that [`super::write`] makes from a store.

use super::contents::{Contents, Frame, PackOptions};
use super::journal::{self, Journal};
use super::locator;
use super::out::Out;
use super::parcel::publish;
use super::plan::{Content, Piece};
use super::previous::Previous;
use super::squeeze::Squeezed;
use super::sums::with;
use super::write::{Written, claim, empty_contents, finish, room};
use super::{Bundle, Error, Form, Plan, frame, header, sign, verify};
use crate::content::ContentError;
use crate::model::Digest;
use crate::report::Progress;
use crate::sign::{PublicKey, Signature, Signer};
use crate::store::Disk;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A bundle that is being made straight from upstream. Clones share it.
#[derive(Debug, Clone)]
pub struct Straight(pub(super) Arc<Inner>);

/// How the making of a bundle begins.
#[derive(Debug)]
pub enum Begun {
    /// It is there already, and sound; signed by this key, where it is signed.
    There(Written, Option<PublicKey>),
    /// It is to be made, or to be gone on with.
    Open(Straight),
}

pub(super) struct Inner {
    pub plan: Arc<Plan>,
    pub options: PackOptions,
    out: PathBuf,
    pub path: PathBuf,
    pub file: Arc<File>,
    signer: Option<Arc<Signer>>,
    pub journal: Journal,
    pub spool: Disk,
    pub store: Option<Disk>,
    /// What an earlier bundle of this name has.
    pub old: Option<Bundle>,
    /// What was fetched for another lock.
    pub previous: Option<Previous>,
    /// The index, with nothing in it that is not known from the lock, and the offsets of stored entries.
    pub contents: Contents,
    /// The place of the first compressed entry.
    pub compressed: usize,
    pub places: HashMap<Digest, usize>,
    /// Indexes that others are trimmed from, and these.
    pub untrimmed: HashMap<Digest, Vec<usize>>,
    pub stored: Mutex<HashMap<usize, Vec<Frame>>>,
    squeezed: Mutex<Squeezed>,
    pub arrivals: (Mutex<Arrivals>, Condvar),
}

/// What has come of the content that must be compressed.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    pub here: HashSet<Digest>,
    /// Nothing more comes.
    pub closed: bool,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

/// The folder beside the partial file at `path` that holds its journal and its spool.
fn work_folder(path: &Path) -> PathBuf {
    with(path, ".work")
}

/// Removes what an unfinished bundle left beside its partial file at `path`, if there is something.
pub(super) fn clear(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(work_folder(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Where the layout of `plan` puts things: the offsets of the entries that come before the compressed ones, of
/// the locator, and of the first compressed entry.
fn layout(plan: &Plan, compressed: usize, front: usize) -> (Vec<u64>, u64, u64) {
    let (mut at, mut locator, mut starts) = (0, 0, Vec::new());
    for (index, piece) in plan.pieces[..compressed].iter().enumerate() {
        if index == front {
            locator = at;
            at += locator::SPAN as u64;
        }
        starts.push(at);
        let size = piece.descriptor.size;
        let around = [header::encoded_len(&piece.name), header::padding(size)];
        at += around.map(|length| frame::stored_len(length as u64)).iter().sum::<u64>()
            + frame::stored_len(size);
    }
    if compressed == front {
        locator = at;
        at += locator::SPAN as u64;
    }
    (starts, locator, at)
}

impl Straight {
    /// Begins the bundle of `plan` at `out`, or goes on with what an earlier run left in `OUT.partial`. What
    /// `store` has is not fetched, nor what an earlier bundle at `out` or an unfinished one for another lock has. In
    /// the end `signer` signs it.
    ///
    /// # Errors
    /// When another process is at it, there is not enough room, or the files cannot be made.
    pub fn begin(
        plan: Arc<Plan>,
        store: Option<Disk>,
        out: &Path,
        options: PackOptions,
        signer: Option<Arc<Signer>>,
        progress: &dyn Progress,
    ) -> Result<Begun, Error> {
        let (path, mut file) = claim(out)?;
        let work = work_folder(&path);
        let failed = |source| Error::Write { path: path.clone(), source };
        let mut contents = empty_contents(&plan, options);
        let old = Bundle::open(out).ok();
        if let Some(old) = &old
            && out.is_file()
            && same(old.contents(), &contents)
            && let key = old.signature().and_then(|text| Some(Signature::parse(text).ok()?.key().clone()))
            && signer.as_ref().is_none_or(|signer| key.as_ref() == Some(signer.key()))
            && verify(old, progress).is_ok()
        {
            fs::remove_file(&path).and_then(|()| clear(&path)).map_err(failed)?;
            return Ok(Begun::There(written(old.digest(), old.bytes(), out), key));
        }
        fs::create_dir_all(&work).map_err(failed)?;
        let journal_path = work.join("journal");
        let of = format!("landfall {} level {} lock {}", contents.landfall, options.level, plan.fingerprint);
        match journal::read(&journal_path).map_err(failed)? {
            Some((first, _)) if first == of => {}
            Some(_) => {
                Previous::set_aside(&path, &journal_path, &work).map_err(failed)?;
                file = claim(out)?.1;
            }
            None => file.set_len(0).map_err(failed)?,
        }
        let front = contents.front_len();
        let compressed = plan.pieces[front..].iter().position(|piece| piece.form == Form::Compressed);
        let compressed = compressed.map_or(plan.pieces.len(), |place| front + place);
        let (starts, locator, end) = layout(&plan, compressed, front);
        contents.locator = locator;
        contents.entries.iter_mut().zip(starts).for_each(|(entry, start)| entry.offset = start);
        let blobs = plan.pieces.iter().enumerate().skip(front);
        let mut untrimmed: HashMap<Digest, Vec<usize>> = HashMap::new();
        for (place, piece) in blobs.clone() {
            if let Content::Trimmed { of, .. } = &piece.content {
                untrimmed.entry(of.digest.clone()).or_default().push(place);
            }
        }
        let inner = Inner {
            options,
            out: out.into(),
            journal: Journal::open(&journal_path, &of).map_err(failed)?,
            spool: Disk::open(&work.join("spool")).map_err(|error| failed(io::Error::other(error)))?,
            store,
            old,
            previous: Previous::open(&work),
            compressed,
            places: blobs.map(|(place, piece)| (piece.descriptor.digest.clone(), place)).collect(),
            untrimmed,
            stored: Mutex::default(),
            squeezed: Mutex::new(Squeezed { frames: Vec::new(), end }),
            arrivals: Default::default(),
            contents,
            plan,
            path,
            file: file.into(),
            signer,
        };
        inner.check_room()?;
        inner.recover();
        Ok(Begun::Open(Straight(Arc::new(inner))))
    }

    /// Nothing more comes: [`Straight::squeeze`] may end.
    pub fn close(&self) {
        self.0.arrivals.0.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.0.arrivals.1.notify_all();
    }

    /// Closes the bundle, and gives it its name.
    ///
    /// # Errors
    /// When something has not come, or the file cannot be written.
    pub fn finish(&self) -> Result<Written, Error> {
        let inner = &*self.0;
        let failed = |source| Error::Write { path: inner.out.clone(), source };
        let mut contents = inner.contents.clone();
        let missing = |piece: &Piece| Error::Content {
            item: piece.item.clone(),
            source: ContentError::Missing { digest: piece.descriptor.digest.clone() },
        };
        let stored = inner.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let squeezed = inner.squeezed();
        let mut at = 0;
        for (place, (entry, piece)) in contents.entries.iter_mut().zip(&inner.plan.pieces).enumerate() {
            if place >= inner.compressed {
                let frames = squeezed.frames.get(place - inner.compressed).ok_or_else(|| missing(piece))?;
                entry.frames.clone_from(frames);
                entry.offset = at.max(contents.locator + locator::SPAN as u64);
            } else {
                entry.frames = match &piece.content {
                    Content::Bytes(_) => Vec::new(),
                    _ => stored.get(&place).cloned().ok_or_else(|| missing(piece))?,
                };
                inner.surround(piece, entry.offset, &mut entry.frames).map_err(failed)?;
            }
            at = entry.offset + entry.frames.iter().map(|frame| u64::from(frame.0)).sum::<u64>();
        }
        let mut out = Out::file(inner.file.clone(), squeezed.end, None);
        let signature = inner.signer.as_ref().map(|signer| sign::sign(signer, &contents, &inner.out));
        let locator = finish(&contents, signature.transpose()?.as_deref(), &mut out).map_err(failed)?;
        out.put_back(&locator.frames().concat(), contents.locator).map_err(failed)?;
        inner.file.set_len(out.end).and_then(|()| inner.file.sync_all()).map_err(failed)?;
        publish(&inner.path, &inner.out, &[], &[], None).map_err(failed)?;
        clear(&inner.path).map_err(failed)?;
        Ok(written(&locator.sha256, out.end, &inner.out))
    }
}

fn written(digest: &Digest, bytes: u64, out: &Path) -> Written {
    Written { digest: digest.clone(), bytes, files: vec![out.into()], beside: Vec::new() }
}

/// Whether an index is of the same bundle as one that is still empty.
fn same(one: &Contents, empty: &Contents) -> bool {
    (&one.landfall, one.options, &one.requires, &one.locks, &one.partial)
        == (&empty.landfall, empty.options, &empty.requires, &empty.locks, &empty.partial)
}

impl Inner {
    pub(super) fn squeezed(&self) -> MutexGuard<'_, Squeezed> {
        self.squeezed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses to begin where there is less room than what is not there yet may need: in the end, and while the
    /// largest compressed entry is both in the spool and in the file.
    fn check_room(&self) -> Result<(), Error> {
        let compressed = &self.plan.pieces[self.compressed..];
        let largest = compressed.iter().map(|piece| piece.descriptor.size).max().unwrap_or(0);
        let taken = self.file.metadata().map_or(0, |data| data.blocks() * 512)
            + self.previous.as_ref().map_or(0, Previous::taken);
        room((self.plan.needed_bytes() + largest).saturating_sub(taken), &self.out)
    }

    /// Writes the tar header and the padding of a stored entry at `at`, and its content where that follows from
    /// the plan. `frames` has the frames of other content, and then all.
    fn surround(&self, piece: &Piece, mut at: u64, frames: &mut Vec<Frame>) -> io::Result<()> {
        let size = piece.descriptor.size;
        let mut all = Vec::with_capacity(frames.len() + 2);
        let put = |content: &[u8], at: &mut u64, all: &mut Vec<Frame>| {
            let frame = frame::stored(content);
            self.file.write_all_at(&frame, *at)?;
            *at += frame.len() as u64;
            all.push(Frame::of(&frame));
            io::Result::Ok(())
        };
        put(&header::encode(&piece.name, size), &mut at, &mut all)?;
        if let Content::Bytes(bytes) = &piece.content {
            bytes.chunks(frame::CHUNK).try_for_each(|chunk| put(chunk, &mut at, &mut all))?;
        }
        at += frames.iter().map(|frame| u64::from(frame.0)).sum::<u64>();
        all.append(frames);
        if header::padding(size) > 0 {
            put(&vec![0; header::padding(size)], &mut at, &mut all)?;
        }
        *frames = all;
        Ok(())
    }
}
