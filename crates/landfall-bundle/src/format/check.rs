//! Checks of a contents index that need no frame: names, offsets, lengths, and the bases of a
//! delta.

use super::base_name::BaseName;
use super::check_recipes::check_recipes;
use super::content_form::ContentForm;
use super::contents::ContentsIndex;
use super::damage::Damage;
use super::entry::TarEntry;
use super::frame::MAX_FRAME;
use super::frame_table::{FrameTable, ROW};
use super::header;
use super::names::{CONTENTS, DELTA, FRAMES, LAYOUT, LOCK};
use super::stored::{CHUNK, stored_len};
use landfall_model::Digest;
use landfall_model::is_repository;
use std::collections::HashSet;

impl ContentsIndex {
    /// Checks everything that needs no frame. The entries must belong to a bundle and be contiguous
    /// in the file. The content of this index must begin at `index_at`, after the frame table.
    pub fn check(&self, index_at: u64) -> Result<(), Damage> {
        let locks = self.locks.iter().map(|lock| lock.name.as_str());
        let mut required = LAYOUT.into_iter().chain([LOCK]);
        let has_required = required.all(|name| self.entries.iter().any(|entry| entry.name == name));
        if !locks.eq([LOCK]) || !has_required {
            let why = "it lacks entries that every bundle has";
            return Err(Damage::new(CONTENTS, index_at, why));
        }
        check_bases(self).map_err(|why| Damage::new(CONTENTS, index_at, why))?;
        check_recipes(self).map_err(|why| Damage::new(CONTENTS, index_at, why))?;
        let mut seen = HashSet::new();
        let mut end = 0;
        let mut frame = 0;
        for entry in &self.entries {
            let damage = |why: &str| Damage::new(&entry.name, entry.offset, why);
            if !entry.is_blob() && !is_own_name(&entry.name) {
                return Err(damage("it is not an entry of a bundle"));
            }
            // tools disagree about which of two entries with the same name they unpack
            if !seen.insert(&entry.name) {
                return Err(damage("it is listed twice"));
            }
            // a gap could hide bytes that are never verified, and a frame must not belong to two
            // entries
            if (entry.offset, entry.frame) != (end, frame) {
                return Err(damage(&format!(
                    "it must begin at byte {end}, with frame {frame}"
                )));
            }
            // offsets come from the file, so their sums may overflow
            let next = if entry.has_length() {
                end.checked_add(entry.length)
            } else {
                None
            };
            end = next.ok_or_else(|| damage("the contents index gives it an impossible length"))?;
            frame += TarEntry::frame_count(entry.size);
        }
        let FrameTable {
            offset,
            size,
            hashes,
        } = &self.frames;
        if (*offset, Some(*size)) != (end, frame.checked_mul(ROW as u64)) {
            let why = "the frame table is not after the last entry, or lacks a row for a frame";
            return Err(Damage::new(CONTENTS, index_at, why));
        }
        if hashes.len() as u64 != FrameTable::frame_count(*size) {
            let why = "it lists too few or too many hashes of the frame table";
            return Err(Damage::new(CONTENTS, index_at, why));
        }
        // the index's own header is one stored frame of one tar block
        let next = self
            .frames
            .end()
            .and_then(|end| end.checked_add(stored_len(header::BLOCK as u64)));
        if next != Some(index_at) {
            let why = "it does not begin right after the frame table";
            return Err(Damage::new(CONTENTS, index_at, why));
        }
        Ok(())
    }
}

/// Whether an entry that is not a blob may have this name: a name of the OCI layout, or one of
/// landfall's own. Those begin with `landfall-` or `landfall.`; unknown ones are accepted, because
/// later releases may add entries. The index lists neither the frame table nor itself.
fn is_own_name(name: &str) -> bool {
    let own = name
        .strip_prefix("landfall-")
        .or_else(|| name.strip_prefix("landfall."));
    let is_unlisted = [FRAMES, CONTENTS].contains(&name);
    // names of up to 100 bytes fit into a plain tar header
    LAYOUT.contains(&name)
        || !is_unlisted
            && name.len() <= 100
            && own.is_some_and(|rest| {
                rest.bytes()
                    .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'))
            })
}

impl TarEntry {
    /// Whether the length is possible, given name, size and form.
    fn has_length(&self) -> bool {
        let overhead = [header::encoded_len(&self.name), header::padding(self.size)];
        let overhead: u64 = overhead
            .map(|length| stored_len(length as u64))
            .iter()
            .sum();
        // no file is that large, and sums with such a size could overflow
        if self.size > 1 << 60 {
            return false;
        }
        let content = self.length.checked_sub(overhead);
        content.is_some_and(|content| match self.form {
            ContentForm::Stored => content == stored_len(self.size),
            ContentForm::Compressed => {
                let frames = self.size.div_ceil(CHUNK as u64);
                (frames..=frames * MAX_FRAME as u64).contains(&content)
            }
        })
    }
}

/// Checks the bases of a delta in the index.
fn check_bases(contents: &ContentsIndex) -> Result<(), String> {
    let ContentsIndex {
        requires,
        bases,
        omitted,
        references,
        entries,
        ..
    } = contents;
    let needs_none = omitted.is_empty() && references.is_empty();
    if requires.iter().any(|word| word == DELTA) == needs_none || bases.is_empty() != needs_none {
        return Err("its bases, omitted blobs and required features contradict each other".into());
    }
    if !omitted.is_sorted_by(|a, b| a.digest < b.digest) {
        return Err("its list of omitted blobs is not sorted, or names a blob twice".into());
    }
    let inside: HashSet<&Digest> = if omitted.is_empty() {
        HashSet::new()
    } else {
        entries.iter().map(|entry| &entry.digest).collect()
    };
    if let Some(both) = omitted.iter().find(|blob| inside.contains(&blob.digest)) {
        return Err(format!(
            "it lists {} as omitted but contains it",
            both.digest
        ));
    }
    let named = bases.iter().filter_map(|base| match base {
        BaseName::Receipt { repositories, .. } => Some(repositories.values()),
        BaseName::Bundle { .. } | BaseName::Lock { .. } => None,
    });
    // the names become parts of URLs when a push mounts the omitted blobs
    match named
        .flatten()
        .find(|repository| !is_repository(repository))
    {
        Some(bad) => Err(format!("'{bad}' is not a valid repository name")),
        None => Ok(()),
    }
}
