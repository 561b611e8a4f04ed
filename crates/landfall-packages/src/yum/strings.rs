//! An interner for the texts of repositories: equal texts are stored once and have one id.

use std::hash::{BuildHasher, RandomState};

/// The id of a string in a [`StringPool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TextId(u32);

impl TextId {
    /// Returns the position of the text in the order in which texts were added.
    pub(super) fn number(self) -> usize {
        self.0 as usize
    }
}

/// The distinct texts of repositories, which repeat the same names and versions a million times.
#[derive(Debug)]
pub(super) struct StringPool {
    /// All texts, one after the other.
    bytes: String,
    /// The end of each text, as an offset in bytes.
    ends: Vec<usize>,
    /// A hash table with open addressing: the id of a text plus 1, or 0 for a free slot.
    table: Vec<u32>,
    /// Randomly seeded, because the texts are untrusted: a repository cannot make them collide.
    hasher: RandomState,
}

impl StringPool {
    pub(super) const EMPTY: TextId = TextId(0);

    /// Returns a pool that holds only the empty string.
    pub(super) fn new() -> StringPool {
        let table = vec![0; 1 << 12];
        // the empty string is id 0: relations without a version use it
        let mut strings = StringPool {
            bytes: String::new(),
            ends: Vec::new(),
            table,
            hasher: RandomState::new(),
        };
        strings.add("");
        strings
    }

    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, text: TextId) -> &str {
        let start = text
            .number()
            .checked_sub(1)
            .map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[text.number()]]
    }

    /// Returns the id of `text`, if it was added before.
    pub(super) fn find(&self, text: &str) -> Option<TextId> {
        match self.table[self.slot(text)] {
            0 => None,
            found => Some(TextId(found - 1)),
        }
    }

    /// Returns the id of `text`, which is added if it is new.
    pub(super) fn add(&mut self, text: &str) -> TextId {
        // at most half full, so that searches for a free slot stay short
        if (self.ends.len() + 1) * 2 > self.table.len() {
            self.grow();
        }
        let slot = self.slot(text);
        if self.table[slot] == 0 {
            self.bytes.push_str(text);
            self.ends.push(self.bytes.len());
            self.table[slot] = self.ends.len() as u32;
        }
        TextId(self.table[slot] - 1)
    }

    /// Returns the slot of `text` in the table, or the free slot for it.
    fn slot(&self, text: &str) -> usize {
        // the length of the table is a power of two
        let mask = self.table.len() - 1;
        let mut slot = self.hasher.hash_one(text) as usize & mask;
        while self.table[slot] != 0 && self.get(TextId(self.table[slot] - 1)) != text {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        // slots depend on the length of the table, so every text gets a new one
        self.table = vec![0; self.table.len() * 2];
        let mask = self.table.len() - 1;
        for number in 0..self.ends.len() {
            let mut slot = self.hasher.hash_one(self.get(TextId(number as u32))) as usize & mask;
            while self.table[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.table[slot] = number as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_one_id() {
        let mut strings = StringPool::new();
        let texts: Vec<String> = (0..10_000)
            .map(|n| format!("libfoo.so.{n}()(64bit)"))
            .collect();
        let first: Vec<TextId> = texts.iter().map(|text| strings.add(text)).collect();
        let again: Vec<TextId> = texts.iter().map(|text| strings.add(text)).collect();
        assert_eq!(first, again);
        assert_eq!(strings.count(), 10_001);
        assert!(
            texts
                .iter()
                .zip(&first)
                .all(|(text, id)| strings.get(*id) == text)
        );
        assert_eq!(strings.find("libfoo.so.77()(64bit)"), Some(first[77]));
        assert_eq!(
            (strings.find("no"), strings.find("")),
            (None, Some(StringPool::EMPTY))
        );
    }
}
