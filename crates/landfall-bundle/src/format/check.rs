//! Checks of a contents index that need no frame: names, offsets, lengths, and the bases of a
//! delta.

use super::base_name::BaseName;
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
    /// Checks that the entries belong to a bundle and are contiguous in the file, up to this index,
    /// which begins at `index_at`.
    pub fn check(&self, index_at: u64) -> Result<(), Damage> {
        let damage = |why: &str| Damage::new(CONTENTS, index_at, why);
        let named = |name: &str| self.entries.iter().any(|entry| entry.name == name);
        let locks = self.locks.iter().map(|lock| lock.name.as_str());
        if !locks.eq([LOCK]) || !LAYOUT.into_iter().chain([LOCK]).all(named) {
            return Err(damage("it lacks entries that every bundle has"));
        }
        check_bases(self).map_err(|why| damage(&why))?;
        let mut seen = HashSet::new();
        let mut end = 0;
        let mut frame = 0;
        for entry in &self.entries {
            let damage = |why: &str| Damage::new(&entry.name, entry.offset, why);
            if !entry.is_blob() && !is_own_name(&entry.name) {
                return Err(damage("it is not an entry of a bundle"));
            }
            if !seen.insert(&entry.name) {
                return Err(damage("it is listed twice"));
            }
            if (entry.offset, entry.frame) != (end, frame) {
                return Err(damage(&format!(
                    "it must begin at byte {end}, with frame {frame}"
                )));
            }
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
            return Err(damage(
                "the frame table does not have its place, or a row for each frame",
            ));
        }
        if hashes.len() as u64 != FrameTable::frame_count(*size) {
            return Err(damage(
                "it lists too few or too many hashes of the frame table",
            ));
        }
        // the index's own header is one stored frame of one tar block
        let next = self
            .frames
            .end()
            .and_then(|end| end.checked_add(stored_len(header::BLOCK as u64)));
        if next != Some(index_at) {
            return Err(damage("it does not stand right after the frame table"));
        }
        Ok(())
    }
}

/// Whether an entry that is not a blob may have this name: those of the OCI layout, and landfall's
/// own. Later releases may add entries with names of their own, which this reader ignores.
fn is_own_name(name: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    let own = name
        .strip_prefix("landfall-")
        .or_else(|| name.strip_prefix("landfall."));
    let is_known = [FRAMES, CONTENTS].contains(&name);
    LAYOUT.contains(&name)
        || !is_known && name.len() <= 100 && own.is_some_and(|rest| rest.bytes().all(is_plain))
}

impl TarEntry {
    /// Whether the length is possible, given name, size and form.
    fn has_length(&self) -> bool {
        let around = [header::encoded_len(&self.name), header::padding(self.size)];
        let around: u64 = around.map(|length| stored_len(length as u64)).iter().sum();
        // larger than any file; computing with it could overflow
        if self.size > 1 << 60 {
            return false;
        }
        let content = self.length.checked_sub(around);
        content.is_some_and(|content| match self.form {
            ContentForm::Stored => content == stored_len(self.size),
            ContentForm::Compressed => {
                let frames = self.size.div_ceil(CHUNK as u64);
                (frames..=frames * MAX_FRAME as u64).contains(&content)
            }
        })
    }
}

/// Checks what the index says about the bases of a delta.
fn check_bases(contents: &ContentsIndex) -> Result<(), String> {
    let ContentsIndex {
        requires,
        bases,
        omitted,
        entries,
        ..
    } = contents;
    if requires.iter().any(|word| word == DELTA) == omitted.is_empty()
        || bases.is_empty() != omitted.is_empty()
    {
        return Err("what it says of its bases does not fit together".into());
    }
    if !omitted.is_sorted_by(|a, b| a.digest < b.digest) {
        return Err("its list of omitted items is not sorted, or names an item twice".into());
    }
    let inside: HashSet<&Digest> = if omitted.is_empty() {
        HashSet::new()
    } else {
        entries.iter().map(|entry| &entry.digest).collect()
    };
    if let Some(both) = omitted.iter().find(|blob| inside.contains(&blob.digest)) {
        return Err(format!("it leaves out {} and has it", both.digest));
    }
    let named = bases.iter().filter_map(|base| match base {
        BaseName::Receipt { repositories, .. } => Some(repositories.values()),
        BaseName::Bundle { .. } | BaseName::Lock { .. } => None,
    });
    match named
        .flatten()
        .find(|repository| !is_repository(repository))
    {
        Some(bad) => Err(format!("'{bad}' is no repository")),
        None => Ok(()),
    }
}
