//! One volume again, from the store and the other volumes.
//!
//! The contents index has the place, length and hash of every frame, so it is all that is needed beside the
//! content: every frame is compared with its hash before it is written. Where the lost volume holds
//! the index, nothing can tell what was in it, and the bundle must be packed again.

use super::contents::{Contents, Hash};
use super::locator::Locator;
use super::medium::Medium;
use super::out::hash;
use super::plan::{Content, Piece, Plan};
use super::read::{find_locator, parse, read_index};
use super::sums::{self, signature_path, sums_path, with};
use super::volumes::{self, folder, name};
use super::write::{open, read_error};
use super::{Bundle, CONTENTS, Error, Form, frame, header, sign, tail};
use crate::content::BlobRead;
use crate::lockfile::Lock;
use crate::model::{Digest, Limits};
use crate::report::Progress;
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Packs volume `number` of the split bundle `like` once more and puts it at its place beside `out`, which is
/// called as the bundle is. Content comes from `blobs`; the lock from the volumes where it is in one of
/// them, else from `lock`. Gives the volume's path and size.
///
/// # Errors
/// When other volumes are missing or damaged, the contents index is lost with it, the store lacks content,
/// or what comes out is not what it was.
pub fn rebuild(
    like: &Path,
    number: usize,
    out: Option<&Path>,
    lock: impl FnOnce() -> Result<Lock, String>,
    blobs: &dyn BlobRead,
    progress: &dyn Progress,
) -> Result<(PathBuf, u64), Error> {
    let base = volumes::base(like);
    let lost = name(&volumes::path(&base, number));
    let cannot = |why: String| Error::Rebuild { volume: lost.clone(), why };
    let rest = Rest::find(&base, number, cannot)?;
    let lock = match rest.lock() {
        Some(lock) => lock,
        None => lock().map_err(&cannot)?,
    };
    let fingerprint = &rest.contents.locks[0].fingerprint;
    if lock.fingerprint() != *fingerprint {
        return Err(cannot(format!(
            "the bundle was packed from the lock with fingerprint {fingerprint}, this one has {}",
            lock.fingerprint()
        )));
    }
    let plan = Plan::without(&lock, &rest.contents.partial.iter().cloned().collect::<BTreeSet<_>>());
    let path = volumes::path(out.unwrap_or(&base), number);
    let partial = with(&path, ".partial");
    let failed = |source| Error::Write { path: path.clone(), source };
    progress.begin("pack", 1, rest.end - rest.start);
    let written = File::create(&partial).map_err(failed).and_then(|file| {
        let mut window = Window { file, start: rest.start, end: rest.end, at: 0, progress };
        rest.write(&plan, blobs, &mut window).map_err(|error| match error {
            Broken::Content(error) => *error,
            Broken::Write(error) => failed(error),
            Broken::Other(why) => cannot(why),
        })?;
        window.file.sync_all().map_err(failed)?;
        let expected =
            sums::read(&base).into_iter().find(|(of, _)| volumes::number_of(&base, of) == Some(number));
        if let Some((_, expected)) = expected
            && hash(&partial).map_err(failed)? != expected
        {
            let sums = name(&sums_path(&base));
            return Err(cannot(format!(
                "what came out does not have the SHA-256 that {sums} gives it; a signature that was in it cannot be \
                 made again, so pack a signed bundle again with --sign"
            )));
        }
        fs::rename(&partial, &path).and_then(|()| File::open(folder(&path))?.sync_all()).map_err(failed)
    });
    progress.end();
    if written.is_err() {
        // the first error is the one to tell; the next run writes over it
        let _ = fs::remove_file(&partial);
    }
    written?;
    if out.is_none() {
        Bundle::open(&volumes::path(&base, 1))?;
    }
    Ok((path, rest.end - rest.start))
}

const LOST_END: &str = "what stood after the contents index is not known; a signature that was there cannot be made \
                        again, so pack a signed bundle again with --sign";

/// What is known from the other volumes.
struct Rest {
    before: Medium,
    after: Medium,
    contents: Contents,
    locator: Locator,
    /// The contents index's own frames, as they lie in the file.
    index: Vec<Vec<u8>>,
    sizes: Vec<tail::Sizes>,
    signature: Option<Vec<u8>>,
    /// Where the lost volume begins and ends in the bundle.
    start: u64,
    end: u64,
}

impl Rest {
    /// Reads the other volumes; `cannot` tells why the lost one cannot be rebuilt.
    fn find(base: &Path, number: usize, cannot: impl Fn(String) -> Error) -> Result<Rest, Error> {
        let numbers = volumes::numbers(base).map_err(|source| Error::Open { path: base.into(), source })?;
        let listed = sums::read(base).iter().filter_map(|(path, _)| volumes::number_of(base, path)).max();
        let last = numbers.iter().copied().max().max(listed).unwrap_or(0);
        let others = |from: usize, to: usize| {
            (from..=to).filter(|other| *other != number).map(|number| volumes::path(base, number))
        };
        let missing: Vec<_> =
            others(1, last.max(number)).filter(|path| !path.exists()).map(|path| name(&path)).collect();
        if !missing.is_empty() {
            let why = "the others are needed for it, and of these too are missing: ";
            return Err(cannot(format!("{why}{}", missing.join(", "))));
        }
        let before = Medium::over(others(1, number - 1).collect(), true)?;
        let after = Medium::over(others(number + 1, last).collect(), true)?;
        let locator = match before.length() {
            0 => None,
            // it may stand behind a very long lock
            _ => find_locator(&before).ok().map(|(_, locator)| locator),
        };
        let found = match &locator {
            Some(locator) if locator.offset + locator.length <= before.length() => {
                read_index(&before, locator).map(|(index, _)| (index, locator.offset, true)).ok()
            }
            _ => search(&after, locator.as_ref()).map(|(index, at)| (index, at, false)),
        };
        let Some((index, at, is_before)) = found else {
            let why = "the contents index lies in it, or in a volume that is damaged, and without it nobody knows \
                       what was there; pack the bundle again with the same lock and --volume-size, which gives the \
                       same bytes";
            return Err(cannot(why.into()));
        };
        let (medium, length) = if is_before { (&before, before.length()) } else { (&after, after.length()) };
        let read = frames(medium, at, length, index.len());
        let (frames, sizes) = read.ok_or_else(|| cannot("the contents index cannot be read".into()))?;
        let offset = |contents: &Contents| {
            let last = contents.entries.last()?;
            let length: u64 = last.frames.iter().map(|frame| u64::from(frame.0)).sum();
            last.offset.checked_add(length)?.checked_add(frame::stored_len(header::BLOCK as u64))
        };
        let joined = frames.concat();
        let mut locator = Locator {
            offset: at,
            length: joined.len() as u64,
            frames: Hash::of(&joined),
            size: index.len() as u64,
            sha256: Digest::sha256(&index),
        };
        let contents = parse(base, medium, &locator, &index)?;
        locator.offset = offset(&contents).ok_or_else(|| cannot("the contents index is damaged".into()))?;
        contents.check(contents.locator, &locator).map_err(|fault| cannot(fault.to_string()))?;
        let start = before.length();
        let padding = frame::stored_len(header::padding(locator.size) as u64);
        let signature =
            sign::read(medium, at + locator.length + padding).map_err(|fault| cannot(fault.to_string()))?;
        let has_tail = at + locator.length + padding + frame::stored_len(header::BLOCK as u64) <= length;
        if is_before && !has_tail && signature_path(base).exists() {
            return Err(cannot(LOST_END.into()));
        }
        let end = if is_before {
            let signed = signature.as_ref().map(|text| text.len() as u64);
            let tail = tail::tail_len(&contents, sizes.len(), locator.size, signed);
            let end = locator.offset + locator.length + tail;
            end.checked_sub(after.length())
        } else {
            locator.offset.checked_sub(at)
        };
        match end {
            Some(end) if end > start => {
                Ok(Rest { before, after, contents, locator, index: frames, sizes, signature, start, end })
            }
            _ => Err(cannot("the other volumes hold the whole bundle, or are not of one bundle".into())),
        }
    }

    /// The lock, where it is in another volume.
    fn lock(&self) -> Option<Lock> {
        let entry = &self.contents.entries[self.contents.front_len() - 1];
        let mut text = Vec::new();
        let mut at = entry.offset;
        for (index, frame) in entry.frames.iter().enumerate() {
            if entry.is_content(index) {
                let (medium, at) =
                    if at < self.end { (&self.before, at) } else { (&self.after, at - self.end) };
                let bytes = medium.bytes_at(at, frame.0 as usize).ok()?;
                text.extend(entry.content(index, &bytes).ok()?);
            }
            at += u64::from(frame.0);
        }
        Lock::parse(&entry.name, std::str::from_utf8(&text).ok()?).ok()
    }

    /// Writes all frames that lie in the window.
    fn write(&self, plan: &Plan, blobs: &dyn BlobRead, window: &mut Window<'_>) -> Result<(), Broken> {
        let contents = &self.contents;
        let pieces: HashMap<&str, &Piece> =
            plan.pieces.iter().map(|piece| (piece.name.as_str(), piece)).collect();
        for (place, entry) in contents.entries.iter().enumerate() {
            if place == contents.front_len() {
                self.locator(window)?;
            }
            let mut reader: Option<Box<dyn Read + Send>> = None;
            for (index, frame) in entry.frames.iter().enumerate() {
                window.put(u64::from(frame.0), || {
                    let piece = *pieces.get(entry.name.as_str()).ok_or_else(|| {
                        Broken::Other(format!("the lock does not ask for {}, which was in it", entry.name))
                    })?;
                    let content = match index {
                        0 => header::encode(&entry.name, entry.size),
                        _ if !entry.is_content(index) => vec![0; entry.content_len(index)],
                        _ => {
                            let mut content = vec![0; entry.content_len(index)];
                            let offset = (index as u64 - 1) * frame::CHUNK as u64;
                            let source = match &mut reader {
                                Some(reader) => reader,
                                none => none.insert(open_at(piece, blobs, offset).map_err(|error| Broken::Content(error.into()))?),
                            };
                            source.read_exact(&mut content).map_err(|source| {
                                let source = read_error(piece, source);
                                Broken::Content(Error::Content { item: piece.item.clone(), source }.into())
                            })?;
                            content
                        }
                    };
                    let form = entry.form_of(index);
                    let bytes = frame::encode(form, contents.options.level, &content).map_err(Broken::Write)?;
                    if Hash::of(&bytes) == frame.1 {
                        return Ok(bytes);
                    }
                    let why = match form {
                        Form::Stored => "what the store has of it is damaged; run `landfall pull` again".into(),
                        Form::Compressed => format!(
                            "what the store has of it is damaged, or landfall {}, which packed the bundle, compressed \
                             it otherwise than this landfall {}",
                            contents.landfall,
                            env!("CARGO_PKG_VERSION")
                        ),
                    };
                    Err(Broken::Other(format!("{}: {why}", entry.name)))
                })?;
            }
        }
        if contents.entries.len() == contents.front_len() {
            self.locator(window)?;
        }
        let header = frame::stored(&header::encode(CONTENTS, self.locator.size));
        let tail = tail::tail(contents, &self.sizes, self.locator.size, self.signature.as_deref());
        for frame in std::iter::once(&header).chain(&self.index) {
            window.put(frame.len() as u64, || Ok(frame.clone()))?;
        }
        let mut rest = &tail[..];
        while let Some((frame, later)) = frame::split(rest).filter(|(frame, _)| !frame.is_empty()) {
            window.put(frame.len() as u64, || Ok(frame.into()))?;
            rest = later;
        }
        if window.at < window.end {
            return Err(Broken::Other(LOST_END.into()));
        }
        Ok(())
    }

    fn locator(&self, window: &mut Window<'_>) -> Result<(), Broken> {
        self.locator.frames().into_iter().try_for_each(|frame| window.put(frame.len() as u64, || Ok(frame)))
    }
}

/// Why the frames of a volume cannot be made.
enum Broken {
    Content(Box<Error>),
    Write(io::Error),
    Other(String),
}

/// The part of the bundle that is written.
struct Window<'a> {
    file: File,
    start: u64,
    end: u64,
    at: u64,
    progress: &'a dyn Progress,
}

impl Window<'_> {
    /// Goes over a frame of so many bytes; writes it where it lies in the window.
    fn put(&mut self, length: u64, make: impl FnOnce() -> Result<Vec<u8>, Broken>) -> Result<(), Broken> {
        let (from, to) = (self.at, self.at + length);
        self.at = to;
        if to <= self.start || from >= self.end {
            return Ok(());
        }
        if from < self.start || to > self.end {
            let why = "it does not begin or end where a frame does, so a volume beside it is not whole";
            return Err(Broken::Other(why.into()));
        }
        self.file.write_all(&make()?).map_err(Broken::Write)?;
        self.progress.bytes(length);
        Ok(())
    }
}

/// The content of a piece from `offset` on.
fn open_at(piece: &Piece, blobs: &dyn BlobRead, offset: u64) -> Result<Box<dyn Read + Send>, Error> {
    let failed = |source| Error::Content { item: piece.item.clone(), source };
    if matches!(piece.content, Content::Store) {
        return blobs.open(&piece.descriptor.digest, offset).map_err(failed);
    }
    let mut source = open(piece, blobs)?;
    io::copy(&mut (&mut source).take(offset), &mut io::sink())
        .map_err(|source| failed(read_error(piece, source)))?;
    Ok(source)
}

/// Looks for the contents index from the end on: its tar header, and then whether it fits the locator, where
/// there is one. Gives the index and where its content begins.
fn search(medium: &Medium, locator: Option<&Locator>) -> Option<(Vec<u8>, u64)> {
    // the header is the same for all indexes up to its size, which stands at byte 124 (POSIX ustar)
    let whole = frame::stored(&header::encode(CONTENTS, 0));
    let mark = &whole[..whole.len() - 4 - header::BLOCK + 124];
    let limit = Limits::default().contents_bytes as u64;
    let mut end = medium.length();
    loop {
        let start = end.saturating_sub(1 << 20);
        let window = medium.bytes_at(start, (end - start) as usize).ok()?;
        let mut upto = window.len();
        while let Some(place) = window[..upto].windows(mark.len()).rposition(|bytes| bytes == mark) {
            let at = start + place as u64;
            let content = at + whole.len() as u64;
            let size = medium.bytes_at(at, whole.len()).ok().and_then(|bytes| {
                let block = frame::decode(Form::Stored, &bytes, header::BLOCK).ok()?;
                header::decode(&block).map(|(_, size)| size)
            });
            let size = size.filter(|size| *size <= limit).map(|size| size as usize);
            if let Some((frames, sizes)) =
                size.and_then(|size| frames(medium, content, medium.length(), size))
            {
                let decoded = frames.iter().zip(&sizes);
                let index: Result<Vec<_>, _> = decoded
                    .map(|(frame, size)| frame::decode(Form::Compressed, frame, size.1 as usize))
                    .collect();
                // a bundle may have a bundle inside
                let index = index.ok().map(|index| index.concat());
                let index = index.filter(|index| locator.is_none_or(|locator| locator.sha256.matches(index)));
                if let Some(index) = index {
                    return Some((index, content));
                }
            }
            upto = place + mark.len() - 1;
        }
        if start == 0 {
            return None;
        }
        end = start + mark.len() as u64 - 1;
    }
}

/// The compressed frames from `at` on that hold `size` bytes of content, and their sizes.
fn frames(medium: &Medium, mut at: u64, end: u64, size: usize) -> Option<(Vec<Vec<u8>>, Vec<tail::Sizes>)> {
    let (mut frames, mut sizes, mut left) = (Vec::new(), Vec::new(), size);
    while left > 0 {
        let content = left.min(frame::CHUNK);
        let most = end.checked_sub(at)?.min(frame::MAX_FRAME as u64);
        let bytes = medium.bytes_at(at, most as usize).ok()?;
        let (frame, _) = frame::split(&bytes)?;
        at += frame.len() as u64;
        sizes.push((frame.len() as u32, content as u32));
        frames.push(frame.to_vec());
        left -= content;
    }
    Some((frames, sizes))
}
