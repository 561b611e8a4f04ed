//! What can be checked of a contents index without reading a frame: names, places, lengths, and the bases of a delta.

use super::base::BaseName;
use super::contents::Contents;
use super::damage::Damage;
use super::entry::TarEntry;
use super::form::Form;
use super::frame::MAX_FRAME;
use super::hash::Frame;
use super::header;
use super::locator::{self, Locator};
use super::names::{CONTENTS, DELTA, LAYOUT, LOCATOR, LOCK};
use super::stored::stored_len;
use crate::model::Digest;
use crate::model::is_repository;
use std::collections::HashSet;

impl Contents {
    /// Checks that the entries are those of a bundle and lie in the file without a gap, up to the index.
    pub(crate) fn check(&self, locator_at: u64, locator: &Locator) -> Result<(), Damage> {
        let damage = |why: &str| Damage::new(CONTENTS, locator.offset, why);
        let front_len = self.front_len();
        let names = self.entries.iter().map(|entry| entry.name.as_str());
        let locks = self.locks.iter().map(|lock| lock.name.as_str());
        if !locks.eq([LOCK]) || !names.take(front_len).eq(LAYOUT.into_iter().chain([LOCK])) {
            return Err(damage("it does not begin with the entries that every bundle has"));
        }
        if self.locator != locator_at {
            return Err(damage("it gives the locator another place"));
        }
        check_bases(self).map_err(|why| damage(&why))?;
        let mut seen = HashSet::new();
        let mut end = 0;
        for (index, entry) in self.entries.iter().enumerate() {
            let damage = |why: String| Damage::new(&entry.name, entry.offset, why);
            if index >= front_len && !entry.is_blob() {
                return Err(damage("it is no entry of a bundle".into()));
            }
            if !seen.insert(&entry.name) {
                return Err(damage("it is there twice".into()));
            }
            if entry.offset != end {
                return Err(damage(format!("it must begin at byte {end}")));
            }
            end = entry.check().map_err(damage)?;
            if index + 1 == front_len {
                if end != locator_at {
                    return Err(Damage::new(LOCATOR, locator_at, format!("it must begin at byte {end}")));
                }
                end += locator::SPAN as u64;
            }
        }
        // the index's own header is one stored frame of one tar block
        if end.checked_add(stored_len(header::BLOCK as u64)) != Some(locator.offset) {
            return Err(damage("it does not stand right after the last entry"));
        }
        Ok(())
    }
}

impl TarEntry {
    /// Checks everything that can be checked without reading the frames; returns the offset after it.
    fn check(&self) -> Result<u64, String> {
        if TarEntry::frame_count(self.size) != self.frames.len() as u64 {
            return Err("the contents index lists too few or too many frames for its size".into());
        }
        let mut end = self.offset;
        for (index, Frame(length, _)) in self.frames.iter().enumerate() {
            let exact = stored_len(self.content_len(index) as u64);
            let good = match self.form_of(index) {
                Form::Stored => u64::from(*length) == exact,
                Form::Compressed => *length as usize <= MAX_FRAME,
            };
            if !good {
                return Err(format!("the contents index gives frame {index} a length that cannot be"));
            }
            end = end.checked_add(u64::from(*length)).ok_or("it would end behind the end of all files")?;
        }
        Ok(end)
    }
}

/// Checks what an index says of its bases.
fn check_bases(contents: &Contents) -> Result<(), String> {
    let Contents { requires, bases, omitted, entries, .. } = contents;
    if requires.iter().any(|word| word == DELTA) == omitted.is_empty()
        || bases.is_empty() != omitted.is_empty()
    {
        return Err("what it says of its bases does not fit together".into());
    }
    if !omitted.is_sorted_by(|a, b| a.digest < b.digest) {
        return Err("what it leaves out is not sorted, or is there twice".into());
    }
    let inside: HashSet<&Digest> = match omitted.is_empty() {
        true => HashSet::new(),
        false => entries.iter().map(|entry| &entry.digest).collect(),
    };
    if let Some(both) = omitted.iter().find(|blob| inside.contains(&blob.digest)) {
        return Err(format!("it leaves out {} and has it", both.digest));
    }
    let named = bases.iter().filter_map(|base| match base {
        BaseName::Receipt { repositories, .. } => Some(repositories.values()),
        BaseName::Bundle { .. } | BaseName::Lock { .. } => None,
    });
    match named.flatten().find(|repository| !is_repository(repository)) {
        Some(bad) => Err(format!("'{bad}' is no repository")),
        None => Ok(()),
    }
}
