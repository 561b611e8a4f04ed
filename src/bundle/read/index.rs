//! Finding and reading the contents index.

use super::header::read_header;
use super::volume_reader::VolumeReader;
use crate::bundle::error::Error;
use crate::bundle::format::contents::Contents;
use crate::bundle::format::damage::Damage;
use crate::bundle::format::form::Form;
use crate::bundle::format::hash::Hash;
use crate::bundle::format::locator::{self, Locator};
use crate::bundle::format::names::{CONTENTS, DELTA, LOCATOR};
use crate::bundle::format::stored::{CHUNK, stored_len};
use crate::bundle::format::trailer::{Sizes, trailer_len};
use crate::bundle::format::{frame, header};
use crate::model::Limits;
use serde::Deserialize;
use std::path::Path;

/// Most entries that may stand before the locator.
const MAX_FRONT: usize = 64;

/// A contents index, and how it stands in the file.
#[derive(Debug)]
pub(crate) struct Index {
    pub contents: Contents,
    pub locator: Locator,
    /// Sizes of its own frames.
    pub frames: Vec<Sizes>,
}

impl Index {
    /// Reads the index of the bundle at `path`; `damaged` makes an error of what is wrong with it.
    pub(crate) fn read(
        path: &Path,
        volumes: &VolumeReader,
        damaged: impl Fn(Damage) -> Error,
    ) -> Result<Index, Error> {
        let (locator_at, locator) = find_locator(volumes).map_err(&damaged)?;
        let (bytes, frames) = read_index(volumes, &locator).map_err(&damaged)?;
        let index = Index::parse(path, volumes, (locator, bytes, frames))?;
        index.contents.check(locator_at, &index.locator).map_err(&damaged)?;
        Ok(index)
    }

    /// Parses the index that the locator points at: its bytes, and the sizes of its frames.
    pub(crate) fn parse(
        path: &Path,
        volumes: &VolumeReader,
        (locator, bytes, frames): (Locator, Vec<u8>, Vec<Sizes>),
    ) -> Result<Index, Error> {
        Ok(Index { contents: parse(path, volumes, &locator, &bytes)?, locator, frames })
    }

    /// Where it ends, its padding included; a signature may follow.
    pub(crate) fn end(&self) -> u64 {
        let padding = header::padding(self.locator.size) as u64;
        self.locator.offset + self.locator.length + stored_len(padding)
    }

    /// How many bytes the bundle must have with this signature, of all volumes together.
    pub(crate) fn bundle_len(&self, signature: Option<&[u8]>) -> u64 {
        let signature = signature.map(|text| text.len() as u64);
        let trailer = trailer_len(&self.contents, self.frames.len(), self.locator.size, signature);
        self.locator.offset + self.locator.length + trailer
    }
}

/// Finds the locator: walks over the first entries, whose lengths follow from their tar headers.
fn find_locator(volumes: &VolumeReader) -> Result<(u64, Locator), Damage> {
    let mut at = 0;
    for _ in 0..=MAX_FRONT {
        let damage = |why: &str| match at {
            0 => Damage::new(
                "first entry",
                at,
                format!("{why}; this is no landfall bundle, or not all of one"),
            ),
            _ => Damage::new("an entry before the locator", at, why),
        };
        let (name, size) = read_header(volumes, at).map_err(|why| damage(&why))?;
        if name == LOCATOR {
            let span = volumes.bytes_at(at, locator::SPAN);
            let span = span.map_err(|error| Damage::new(LOCATOR, at, format!("cannot be read: {error}")))?;
            let locator = Locator::parse(&span).ok_or_else(|| Damage::new(LOCATOR, at, "damaged"))?;
            return Ok((at, locator));
        }
        if size >= 1 << 40 {
            return Err(damage("no entry of this size may stand here"));
        }
        at += stored_len(header::BLOCK as u64) + stored_len(size) + stored_len(header::padding(size) as u64);
    }
    Err(Damage::new(LOCATOR, at, "it is not where it must be"))
}

/// Reads the contents index; returns its bytes, and the sizes of its frames.
pub(crate) fn read_index(volumes: &VolumeReader, locator: &Locator) -> Result<(Vec<u8>, Vec<Sizes>), Damage> {
    let damage = |why: String| Damage::new(CONTENTS, locator.offset, why);
    let limit = Limits::default().contents_bytes as u64;
    let end = locator.offset.checked_add(locator.length);
    let length = volumes.length();
    if end.is_none_or(|end| end > length) {
        return Err(damage("the file ends before it; it is not all there".into()));
    }
    // an honest index is shorter than what it lists: each entry has a header of 512 bytes
    let limit = limit.min((4 << 20) + length);
    if locator.size > limit || locator.length > limit {
        return Err(damage(format!("it is longer than the {limit} bytes that landfall reads")));
    }
    let frames = volumes.bytes_at(locator.offset, locator.length as usize);
    let frames = frames.map_err(|error| damage(format!("cannot be read: {error}")))?;
    if Hash::of(&frames) != locator.frames {
        return Err(damage("its bytes do not have the hash that the locator gives them".into()));
    }
    let (index, sizes) = decode(&frames, locator.size).map_err(damage)?;
    if !locator.sha256.matches(&index) {
        return Err(damage("it does not have the hash that the locator gives it".into()));
    }
    Ok((index, sizes))
}

/// The `size` bytes of a contents index that these frames hold, and the sizes of the frames.
pub(crate) fn decode(frames: &[u8], size: u64) -> Result<(Vec<u8>, Vec<Sizes>), String> {
    let (mut index, mut sizes, mut rest) = (Vec::new(), Vec::new(), frames);
    while (index.len() as u64) < size {
        let content = (size - index.len() as u64).min(CHUNK as u64) as usize;
        let (first, others) = frame::split(rest).ok_or("it ends early")?;
        index.extend(frame::decode(Form::Compressed, first, content)?);
        sizes.push((first.len() as u32, content as u32));
        rest = others;
    }
    if rest.is_empty() { Ok((index, sizes)) } else { Err("it ends late".into()) }
}

/// Parses the contents index of the bundle at `path`.
fn parse(path: &Path, volumes: &VolumeReader, locator: &Locator, index: &[u8]) -> Result<Contents, Error> {
    #[derive(Deserialize)]
    struct Head {
        version: u32,
        #[serde(default)]
        requires: Vec<String>,
    }
    let newer = |what| Err(Error::Newer { path: path.into(), what });
    let damage = |error: serde_json::Error| Error::Damaged {
        path: path.into(),
        damage: vec![volumes.place(Damage::new(CONTENTS, locator.offset, error.to_string()))],
    };
    let head: Head = serde_json::from_slice(index).map_err(damage)?;
    if head.version != 1 {
        return newer(format!("its format has version {}, this one reads version 1", head.version));
    }
    let unknown: Vec<String> = head.requires.into_iter().filter(|word| word != DELTA).collect();
    if !unknown.is_empty() {
        return newer(format!("it uses {}", unknown.join(", ")));
    }
    let mut contents: Contents = serde_json::from_slice(index).map_err(damage)?;
    contents.entries.shrink_to_fit();
    if contents.locks.len() > 1 {
        return newer(format!("it has {} locks", contents.locks.len()));
    }
    Ok(contents)
}
