//! Reading a bundle by offset. Nothing is ever extracted to a path that the bundle names.
//!
//! A bundle comes from the other side of a gap, so whoever made or carried it may be hostile. What is
//! feared, and what stands against it:
//!
//! - **Changed, swapped or truncated bytes.** Every frame's hash is checked before the frame is decoded,
//!   and so before a byte of it is handed out. The hash is of the frame as it lies in the file: not one
//!   bit of it is free. The index's hash stands in the locator, and is the bundle digest.
//! - **An index that lies.** Then every frame may fit. A blob that is read from its beginning is hashed
//!   on the way, and its last piece is not handed out if its digest is wrong. Who packed the bundle is
//!   not known from the index; that needs the digest, the lock's fingerprint or a signature.
//! - **Volumes** that are missing, or of another bundle. Whatever the files, what is read is one run of bytes
//!   under the same checks. The checksums beside them are not trusted: they only help to name the bad one.
//! - **Names**: absolute, `..`, links, devices, duplicates, names for other tools to trip over. Only the
//!   names of the layout, the lock and `blobs/ALGORITHM/HEX` may stand in the index, once each. What
//!   the tar headers say is never used here; `verify` compares each with the one that must be there.
//! - **Offsets and lengths** that overlap, leave gaps for smuggled bytes, overflow, or reach behind the
//!   end. Entries must lie one after the other from byte 0 to the index, stored frames have the one
//!   length that follows from the size, and the file must end where the index says.
//! - **Bombs.** A frame declares at most 1 MiB of content, and the decoder stops there. Nothing is allocated
//!   by a declared length before the file has shown as many bytes; the index has a bound ([`Limits`]).
//! - **The seek table and the frames' own sizes.** Readers trust the index alone; `verify` compares them.
//! - **A lock that is not the one the blobs were packed for.** Its fingerprint is in the index; `verify`
//!   plans the bundle again from the lock and compares, and compares the lock with what the manifests say.
//! - **A signature** that is missing, swapped, of another key, or for another purpose. It is over the whole index,
//!   and says nothing until [`Bundle::signed_by`] has compared it with the keys that are allowed.
//! - **Newer formats** that would be misread. Their version or `requires` names what this release lacks.

use super::contents::{Contents, Hash, ItemName, Record};
use super::locator::{self, Locator};
use super::medium::Medium;
use super::whole::WholeReader;
use super::{BaseName, CONTENTS, DELTA, Error, Fault, Form, LOCATOR, frame, header, sign, tail};
use crate::content::Entry;
use crate::content::{BlobRead, ContentError};
use crate::item;
use crate::lockfile::{Lock, Unresolved};
use crate::model::{Descriptor, Digest, Hasher, Limits};
use crate::report::Kind;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most entries that may stand before the locator.
const MAX_FRONT: usize = 64;

/// An opened bundle. Clones share the file; any number of threads may read.
#[derive(Debug, Clone)]
pub struct Bundle(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub path: PathBuf,
    pub medium: Medium,
    pub contents: Contents,
    pub locator: Locator,
    /// Sizes of the index's own frames.
    pub index_frames: Vec<tail::Sizes>,
    /// The signature's text, as it stands in its entry.
    pub signature: Option<Vec<u8>>,
    /// The places of all blobs, by digest.
    blobs: Vec<usize>,
}

impl Bundle {
    /// Opens the bundle at `path`: reads its locator, its contents index and its signature, and nothing else. The
    /// signature is not checked. `path` is the file; or where it is split, its name without a number, or any one
    /// of its volumes.
    ///
    /// # Errors
    /// When it cannot be read, volumes are missing, it is no bundle, is damaged in these parts, has not the length that it must
    /// have, or needs a newer landfall.
    pub fn open(path: &Path) -> Result<Bundle, Error> {
        let medium = Medium::open(path)?;
        let unsound = |fault: Fault| {
            // until the index is known, a volume that is cut short looks like damage in those after it
            let hint = match medium.volume(0) {
                Some(_) => {
                    "; if a volume was cut short or is another bundle's, `landfall verify` tells which"
                }
                None => "",
            };
            let fault = Fault { why: format!("{}{hint}", fault.why), ..medium.place(fault) };
            Error::Unsound { path: path.into(), faults: vec![fault] }
        };
        let (locator_at, locator) = find_locator(&medium).map_err(unsound)?;
        let (index, index_frames) = read_index(&medium, &locator).map_err(unsound)?;
        let contents = parse(path, &medium, &locator, &index)?;
        contents.check(locator_at, &locator).map_err(unsound)?;
        let after = locator.offset + locator.length;
        let tail_len = |signature| tail::tail_len(&contents, index_frames.len(), locator.size, signature);
        let (mut end, mut signature) = (after + tail_len(None), None);
        let length = medium.length();
        if length > end {
            let at = after + frame::stored_len(header::padding(locator.size) as u64);
            signature = sign::read(&medium, at).map_err(unsound)?;
            end = after + tail_len(signature.as_ref().map(|text| text.len() as u64));
        }
        if length != end {
            let why = match medium.surplus(end) {
                None => format!("the bundle must have {end} bytes, it has {length}"),
                Some(volume) => {
                    format!("the bundle ends here; {volume} and what follows do not belong to it")
                }
            };
            return Err(unsound(Fault::new("end of the file", length.min(end), why)));
        }
        let entries = &contents.entries;
        let mut blobs: Vec<usize> = (0..entries.len()).filter(|place| entries[*place].is_blob()).collect();
        blobs.sort_by(|a, b| entries[*a].digest.cmp(&entries[*b].digest));
        let path = path.into();
        Ok(Bundle(Arc::new(Inner { path, medium, contents, locator, index_frames, signature, blobs })))
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The bundle digest: SHA-256 of the contents index.
    pub fn digest(&self) -> &Digest {
        &self.0.locator.sha256
    }

    /// The lock's fingerprint as the index names it. [`Bundle::lock`] checks it.
    pub fn fingerprint(&self) -> &Digest {
        &self.0.contents.locks[0].fingerprint
    }

    /// The contents index.
    pub fn contents(&self) -> &Contents {
        &self.0.contents
    }

    /// Items of the lock that are not inside. Empty when the bundle is whole.
    pub fn partial(&self) -> &[ItemName] {
        &self.0.contents.partial
    }

    /// The bases of a delta, each of which has all that it leaves out. Empty where the bundle is none.
    pub fn bases(&self) -> &[BaseName] {
        &self.0.contents.bases
    }

    /// BlobRead that its items need and that a delta leaves out. Empty where the bundle is none.
    pub fn omitted(&self) -> &[Descriptor] {
        &self.0.contents.omitted
    }

    /// Size in bytes, of all volumes together.
    pub fn bytes(&self) -> u64 {
        let Inner { contents, locator, index_frames, signature, .. } = &*self.0;
        let signature = signature.as_ref().map(|text| text.len() as u64);
        let tail = tail::tail_len(contents, index_frames.len(), locator.size, signature);
        locator.offset + locator.length + tail
    }

    /// The lock inside, less the items that the bundle lacks: these are among its unresolved ones.
    ///
    /// # Errors
    /// As [`Bundle::lock`].
    pub fn held(&self) -> Result<Lock, Error> {
        let mut lock = self.lock()?;
        let lacks =
            |kind, name: &str| self.partial().iter().any(|item| item.kind == kind && item.name == name);
        lock.images.retain(|image| !lacks(Kind::Image, &image.name.to_string()));
        lock.files.retain(|file| !lacks(Kind::File, &file.name));
        for ItemName { kind, name } in self.partial() {
            let told = lock.unresolved.iter().map(|lost| (lost.kind, &lost.name));
            let mut told = told.chain(lock.missing.iter().map(|lost| (lost.kind, &lost.name)));
            if !told.any(|lost| lost == (*kind, name)) {
                let cause = "the bundle lacks it".into();
                lock.unresolved.push(Unresolved { kind: *kind, name: name.clone(), cause });
            }
        }
        Ok(lock)
    }

    /// The lock inside.
    ///
    /// # Errors
    /// When it cannot be read, or is not the one that the index names.
    pub fn lock(&self) -> Result<Lock, Error> {
        let Inner { contents, path, medium, .. } = &*self.0;
        let place = contents.front_len() - contents.locks.len();
        let entry = &contents.entries[place];
        let fault = |why: String| Error::Unsound {
            path: path.clone(),
            faults: vec![medium.place(Fault::new(&entry.name, entry.offset, why))],
        };
        let limit = Limits::default().contents_bytes as u64;
        let mut text = String::new();
        self.reader(place, 0)
            .take(limit)
            .read_to_string(&mut text)
            .map_err(|error| fault(error.to_string()))?;
        let another = || fault("it is not the lock that the contents index names".into());
        // before it is parsed: who changed the lock must have made the index too
        if Digest::sha256(text.as_bytes()) != *self.fingerprint() {
            return Err(another());
        }
        let lock = Lock::parse(&format!("{}:{}", path.display(), entry.name), &text)
            .map_err(|error| fault(error.to_string()))?;
        if lock.fingerprint() != *self.fingerprint() {
            return Err(another());
        }
        Ok(lock)
    }

    /// The items of the lock that are inside, taken apart, by name: images, then files.
    ///
    /// # Errors
    /// As [`Bundle::lock`].
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        let lost: BTreeSet<_> = self.partial().iter().map(|item| (item.kind, &item.name)).collect();
        let mut entries = item::entries(&self.lock()?);
        entries.retain(|entry| !lost.contains(&(entry.kind, &entry.name)));
        Ok(entries)
    }

    fn reader(&self, place: usize, offset: u64) -> FrameReader {
        let entry = &self.0.contents.entries[place];
        let offset = offset.min(entry.size);
        let next = 1 + (offset / frame::CHUNK as u64) as usize;
        let before: u64 = entry.frames[..next].iter().map(|frame| u64::from(frame.0)).sum();
        FrameReader {
            bundle: Arc::clone(&self.0),
            place,
            next,
            at: entry.offset + before,
            skip: (offset % frame::CHUNK as u64) as usize,
            piece: io::Cursor::default(),
            hasher: (offset == 0).then(|| Hasher::new(entry.digest.algorithm())),
        }
    }
}

impl Inner {
    /// The place of a blob among the entries.
    fn place(&self, digest: &Digest) -> Option<usize> {
        let entries = &self.contents.entries;
        let found = self.blobs.binary_search_by(|place| entries[*place].digest.cmp(digest));
        found.ok().map(|at| self.blobs[at])
    }

    /// `length` bytes from `at` on.
    pub(super) fn bytes_at(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        self.medium.bytes_at(at, length)
    }
}

impl Record {
    /// The content of the frame at `index`, whose bytes are `bytes`, if they have the right hash.
    pub(super) fn content(&self, index: usize, bytes: &[u8]) -> Result<Vec<u8>, String> {
        if Hash::of(bytes) != self.frames[index].1 {
            return Err("its bytes do not have the hash that the contents index gives them".into());
        }
        frame::decode(self.form_of(index), bytes, self.content_len(index))
    }
}

impl BlobRead for Bundle {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        Ok(self.0.place(digest).map(|place| self.0.contents.entries[place].size))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let missing = || ContentError::Missing { digest: digest.clone() };
        let place = self.0.place(digest).ok_or_else(missing)?;
        Ok(Box::new(self.reader(place, offset)))
    }

    fn open_whole(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentError> {
        match self.0.place(digest) {
            Some(place) if self.0.contents.entries[place].form == Form::Stored => {
                Ok(Box::new(WholeReader::new(Arc::clone(&self.0), place)))
            }
            _ => self.open(digest, 0),
        }
    }
}

/// Reads one entry frame by frame.
struct FrameReader {
    bundle: Arc<Inner>,
    place: usize,
    /// The next frame to read, and where it is.
    next: usize,
    at: u64,
    /// Bytes of that frame's content to leave out.
    skip: usize,
    piece: io::Cursor<Vec<u8>>,
    /// Where the whole is read.
    hasher: Option<Hasher>,
}

impl FrameReader {
    fn load(&mut self) -> io::Result<()> {
        let entry = &self.bundle.contents.entries[self.place];
        let at = self.at;
        let damaged = |why| {
            let fault = self.bundle.medium.place(Fault::new(&entry.name, at, why));
            io::Error::new(io::ErrorKind::InvalidData, fault.to_string())
        };
        if entry.is_content(self.next) {
            let length = entry.frames[self.next].0;
            let bytes = self.bundle.bytes_at(self.at, length as usize)?;
            let content = entry.content(self.next, &bytes).map_err(damaged)?;
            if let Some(hasher) = &mut self.hasher {
                hasher.update(&content);
            }
            self.piece = io::Cursor::new(content);
            self.piece.set_position(std::mem::take(&mut self.skip) as u64);
            self.next += 1;
            self.at += u64::from(length);
        }
        if !entry.is_content(self.next)
            && self.hasher.take().is_some_and(|hasher| hasher.finish() != entry.digest)
        {
            self.piece = io::Cursor::default();
            return Err(damaged(format!("its content does not have the digest {}", entry.digest)));
        }
        Ok(())
    }
}

impl Read for FrameReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.position() == self.piece.get_ref().len() as u64 && !buffer.is_empty() {
            self.load()?;
        }
        self.piece.read(buffer)
    }
}

/// Walks over the first entries, whose lengths follow from their tar headers, to the locator.
pub(super) fn find_locator(medium: &Medium) -> Result<(u64, Locator), Fault> {
    let mut at = 0;
    for _ in 0..=MAX_FRONT {
        let fault = |why: &str| match at {
            0 => {
                Fault::new("first entry", at, format!("{why}; this is no landfall bundle, or not all of one"))
            }
            _ => Fault::new("an entry before the locator", at, why),
        };
        let bytes = medium.bytes_at(at, frame::stored_len(header::BLOCK as u64) as usize);
        let bytes = bytes.map_err(|error| fault(&format!("cannot be read: {error}")))?;
        let block = frame::decode(Form::Stored, &bytes, header::BLOCK).map_err(|why| fault(&why))?;
        let (name, size) = header::decode(&block).ok_or_else(|| fault("the tar header is damaged"))?;
        if name == LOCATOR {
            let span = medium.bytes_at(at, locator::SPAN);
            let span = span.map_err(|error| Fault::new(LOCATOR, at, format!("cannot be read: {error}")))?;
            let locator = Locator::parse(&span).ok_or_else(|| Fault::new(LOCATOR, at, "damaged"))?;
            return Ok((at, locator));
        }
        if size >= 1 << 40 {
            return Err(fault("no entry of this size may stand here"));
        }
        at += bytes.len() as u64 + frame::stored_len(size) + frame::stored_len(header::padding(size) as u64);
    }
    Err(Fault::new(LOCATOR, at, "it is not where it must be"))
}

/// Reads the contents index, and tells the sizes of its frames.
pub(super) fn read_index(medium: &Medium, locator: &Locator) -> Result<(Vec<u8>, Vec<tail::Sizes>), Fault> {
    let fault = |why: String| Fault::new(CONTENTS, locator.offset, why);
    let limit = Limits::default().contents_bytes as u64;
    let end = locator.offset.checked_add(locator.length);
    let length = medium.length();
    if end.is_none_or(|end| end > length) {
        return Err(fault("the file ends before it; it is not all there".into()));
    }
    // an honest index is shorter than what it lists: each entry has a header of 512 bytes
    let limit = limit.min((4 << 20) + length);
    if locator.size > limit || locator.length > limit {
        return Err(fault(format!("it is longer than the {limit} bytes that landfall reads")));
    }
    let frames = medium.bytes_at(locator.offset, locator.length as usize);
    let frames = frames.map_err(|error| fault(format!("cannot be read: {error}")))?;
    if Hash::of(&frames) != locator.frames {
        return Err(fault("its bytes do not have the hash that the locator gives them".into()));
    }
    let (mut index, mut sizes, mut rest) = (Vec::new(), Vec::new(), &frames[..]);
    while (index.len() as u64) < locator.size {
        let size = (locator.size - index.len() as u64).min(frame::CHUNK as u64) as usize;
        let (first, others) = frame::split(rest).ok_or_else(|| fault("it ends early".into()))?;
        index.extend(frame::decode(Form::Compressed, first, size).map_err(fault)?);
        sizes.push((first.len() as u32, size as u32));
        rest = others;
    }
    if !rest.is_empty() || !locator.sha256.matches(&index) {
        return Err(fault("it does not have the hash that the locator gives it".into()));
    }
    Ok((index, sizes))
}

pub(super) fn parse(
    path: &Path,
    medium: &Medium,
    locator: &Locator,
    index: &[u8],
) -> Result<Contents, Error> {
    #[derive(Deserialize)]
    struct Head {
        version: u32,
        #[serde(default)]
        requires: Vec<String>,
    }
    let newer = |what| Err(Error::Newer { path: path.into(), what });
    let fault = |error: serde_json::Error| Error::Unsound {
        path: path.into(),
        faults: vec![medium.place(Fault::new(CONTENTS, locator.offset, error.to_string()))],
    };
    let head: Head = serde_json::from_slice(index).map_err(fault)?;
    if head.version != 1 {
        return newer(format!("its format has version {}, this one reads version 1", head.version));
    }
    let unknown: Vec<String> = head.requires.into_iter().filter(|word| word != DELTA).collect();
    if !unknown.is_empty() {
        return newer(format!("it uses {}", unknown.join(", ")));
    }
    let mut contents: Contents = serde_json::from_slice(index).map_err(fault)?;
    contents.entries.shrink_to_fit();
    if contents.locks.len() > 1 {
        return newer(format!("it has {} locks", contents.locks.len()));
    }
    Ok(contents)
}
