//! Finds and reads the contents index, starting from the end of the file.

use super::volume_reader::VolumeReader;
use crate::error::BundleError;
use crate::format::contents::{ContentsIndex, max_index_length};
use crate::format::damage::Damage;
use crate::format::footer::{self, Footer};
use crate::format::frame::{self, FrameHash, FrameTable, ROW};
use crate::format::names::{CONTENTS, DELTA, FRAMES, RECIPE};
use crate::format::stored::{CHUNK, ContentForm, ReadAt, stored_len};
use landfall_model::{Failure, Limits, locked};
use serde::Deserialize;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The contents index of a bundle, with footer and signatures.
#[derive(Debug)]
pub struct BundleIndex {
    pub contents: ContentsIndex,
    pub footer: Footer,
    /// The armored signatures, which are not verified.
    pub signatures: Vec<String>,
}

/// Reads the footer at the end of the last volume, and checks that the bundle has the length that
/// the footer implies.
pub(crate) fn read_footer(volumes: &VolumeReader) -> Result<Footer, Damage> {
    let length = volumes.length();
    let found = footer_ending_at(volumes, length)?;
    if let Some(footer) = &found
        && footer.bundle_len() == Some(length)
    {
        return Ok(footer.clone());
    }
    // volumes of another bundle may follow, for example on a disc that was used twice
    if let Some((end, next)) = volumes
        .ends()
        .find(|(end, _)| is_complete_at(volumes, *end))
    {
        let why = format!("the bundle ends here; {next} and later volumes do not belong to it");
        return Err(Damage::new("footer", end, why));
    }
    let why = match found {
        Some(_) => format!("it belongs to a bundle whose length is not {length} bytes"),
        None => "the file does not end like a bundle: it is incomplete, or not a landfall bundle"
            .to_owned(),
    };
    let at = length.saturating_sub(footer::LEN as u64);
    Err(Damage::new("footer", at, why))
}

/// The footer that ends at `end`, if there is one.
pub(crate) fn footer_ending_at(volumes: &VolumeReader, end: u64) -> Result<Option<Footer>, Damage> {
    let at = end.saturating_sub(footer::LEN as u64);
    let bytes = volumes.bytes_at(at, (end - at) as usize);
    let bytes = bytes.map_err(|error| Damage::unread("footer", at, &error))?;
    Ok(Footer::parse(&bytes))
}

/// Whether a complete bundle ends at `end`.
fn is_complete_at(volumes: &VolumeReader, end: u64) -> bool {
    footer_ending_at(volumes, end)
        .is_ok_and(|footer| footer.is_some_and(|footer| footer.bundle_len() == Some(end)))
}

impl BundleIndex {
    /// Reads the contents index that `footer` points to; `damaged` turns damage into an error.
    pub fn read(
        path: &Path,
        volumes: &VolumeReader,
        footer: Footer,
        damaged: impl Fn(Damage) -> BundleError,
    ) -> Result<BundleIndex, BundleError> {
        let bytes = read_index(volumes, &footer).map_err(&damaged)?;
        let contents = parse(path, &bytes, |why| {
            damaged(Damage::new(CONTENTS, footer.offset, why))
        })?;
        // freed before the signatures are read: an index of many items is large
        drop(bytes);
        contents.check(footer.offset).map_err(&damaged)?;
        let signatures = read_signatures(volumes, &footer).map_err(&damaged)?;
        Ok(BundleIndex {
            contents,
            footer,
            signatures,
        })
    }
}

/// Reads and verifies the bytes of the contents index.
pub(crate) fn read_index(volumes: &VolumeReader, footer: &Footer) -> Result<Vec<u8>, Damage> {
    let damage = |why: &str| Damage::new(CONTENTS, footer.offset, why);
    let limit = max_index_length(volumes.length(), &Limits::default());
    if footer.size > limit || footer.length > limit {
        let why = format!("it is longer than the {limit} bytes that landfall reads");
        return Err(damage(&why));
    }
    let frames = volumes.bytes_at(footer.offset, footer.length as usize);
    let frames = frames.map_err(|error| Damage::unread(CONTENTS, footer.offset, &error))?;
    if FrameHash::of(&frames) != footer.frames {
        return Err(damage("its bytes do not have the hash in the footer"));
    }
    let index = decode(&frames, footer.size).map_err(|why| damage(&why))?;
    if !footer.sha256.matches(&index) {
        return Err(damage("it does not have the hash in the footer"));
    }
    Ok(index)
}

/// Decodes the frames of a contents index of `size` bytes.
fn decode(frames: &[u8], size: u64) -> Result<Vec<u8>, String> {
    let mut index = Vec::new();
    let mut rest = frames;
    while (index.len() as u64) < size {
        let content = (size - index.len() as u64).min(CHUNK as u64) as usize;
        let (first, others) = frame::split(rest).ok_or("it ends early")?;
        index.extend(frame::decode(ContentForm::Compressed, first, content)?);
        rest = others;
    }
    if rest.is_empty() {
        Ok(index)
    } else {
        Err("it is longer than its footer says".into())
    }
}

/// Reads the signatures, without verifying them.
fn read_signatures(volumes: &VolumeReader, footer: &Footer) -> Result<Vec<String>, Damage> {
    // cannot underflow: the footer's sum of all lengths was compared with the file
    let at = volumes.length() - footer::LEN as u64 - footer.signed;
    let damage = |why: &str| Damage::new("signatures", at, why);
    let limit = Limits::default().signatures_bytes;
    if footer.signed > limit {
        let why = format!("they are longer than the {limit} bytes that landfall reads");
        return Err(damage(&why));
    }
    let frame = volumes.bytes_at(at, footer.signed as usize);
    let frame = frame.map_err(|error| Damage::unread("signatures", at, &error))?;
    if FrameHash::of(&frame) != footer.signatures {
        return Err(damage("their bytes do not have the hash in the footer"));
    }
    footer::parse(&frame).ok_or_else(|| damage("they are not a list of signatures"))
}

/// Parses a contents index, after checking that this release supports its version and features.
fn parse(
    path: &Path,
    index: &[u8],
    damaged: impl Fn(String) -> BundleError,
) -> Result<ContentsIndex, BundleError> {
    #[derive(Deserialize)]
    struct FormatHead {
        version: u32,
        #[serde(default)]
        requires: Vec<String>,
    }
    let newer = |what: String| {
        let path = path.display();
        let message = format!("{path} needs a newer landfall: {what}");
        Err(Failure::refused(message).into())
    };
    // the version first: a newer index may not have the fields of this release
    let head: FormatHead =
        serde_json::from_slice(index).map_err(|error| damaged(error.to_string()))?;
    if head.version != 1 {
        return newer(format!(
            "its format has version {}, this landfall reads version 1",
            head.version
        ));
    }
    let unknown: Vec<String> = head
        .requires
        .into_iter()
        .filter(|word| ![DELTA, RECIPE].contains(&word.as_str()))
        .collect();
    if !unknown.is_empty() {
        return newer(format!("it uses {}", unknown.join(", ")));
    }
    let mut contents: ContentsIndex =
        serde_json::from_slice(index).map_err(|error| damaged(error.to_string()))?;
    contents.entries.shrink_to_fit();
    if contents.locks.len() > 1 {
        return newer(format!("it has {} locks", contents.locks.len()));
    }
    Ok(contents)
}

/// The number of cached pieces of the table. Each has at most 1 MiB, with the rows for about 25 GiB
/// of content.
const KEPT: usize = 4;

/// The frame table of an open bundle. Any number of threads may read.
#[derive(Debug)]
pub struct FrameRows {
    table: FrameTable,
    kept: Mutex<VecDeque<(usize, Arc<Vec<u8>>)>>,
}

impl FrameRows {
    /// Returns a reader for the rows of this table, without cached pieces.
    pub fn new(table: FrameTable) -> FrameRows {
        FrameRows {
            table,
            kept: Mutex::default(),
        }
    }

    /// Offset and hash of the frame with this number.
    pub fn row(&self, volumes: &VolumeReader, number: u64) -> Result<(u64, FrameHash), Damage> {
        let mut row = [0; ROW];
        let mut filled = 0;
        while filled < ROW {
            let at = number * ROW as u64 + filled as u64;
            // a row may be split between two pieces
            let piece = self.piece(volumes, (at / CHUNK as u64) as usize)?;
            let from = (at % CHUNK as u64) as usize;
            let bytes = piece.get(from..).unwrap_or_default();
            let count = bytes.len().min(ROW - filled);
            if count == 0 {
                return Err(Damage::new(
                    FRAMES,
                    self.table.offset,
                    "it has no row for a frame",
                ));
            }
            row[filled..filled + count].copy_from_slice(&bytes[..count]);
            filled += count;
        }
        Ok(frame::parse(&row))
    }

    fn piece(&self, volumes: &VolumeReader, number: usize) -> Result<Arc<Vec<u8>>, Damage> {
        // locked while a piece is read: threads that read in order need the same piece next
        let mut kept = locked(&self.kept);
        if let Some((_, piece)) = kept.iter().find(|(of, _)| *of == number) {
            return Ok(piece.clone());
        }
        let piece = Arc::new(self.frame(volumes, number + 1)?);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back((number, piece.clone()));
        Ok(piece)
    }

    /// The content of one frame of the table's entry: the tar header, a piece of the table, or the
    /// padding.
    pub fn frame(&self, volumes: &VolumeReader, index: usize) -> Result<Vec<u8>, Damage> {
        let frame = self
            .table
            .frame(index)
            .ok_or_else(|| Damage::new(FRAMES, self.table.offset, "it has too few frames"))?;
        let bytes = volumes.bytes_at(frame.offset, stored_len(frame.content as u64) as usize);
        let bytes = bytes.map_err(|error| Damage::unread(FRAMES, frame.offset, &error))?;
        if FrameHash::of(&bytes) != frame.hash {
            let why = "its bytes do not have the hash in the contents index";
            return Err(Damage::new(FRAMES, frame.offset, why));
        }
        frame::decode(ContentForm::Stored, &bytes, frame.content)
            .map_err(|why| Damage::new(FRAMES, frame.offset, why))
    }
}
