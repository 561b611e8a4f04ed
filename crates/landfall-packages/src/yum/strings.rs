//! Texts of a repository, each kept once.

use std::hash::{BuildHasher, RandomState};

/// The id of a string in a [`StringPool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TextId(u32);

impl TextId {
    /// Its number: texts have those from 0 on.
    pub(super) fn number(self) -> usize {
        self.0 as usize
    }
}

/// Texts, each once: a repository says the same names and versions a million times.
#[derive(Debug)]
pub(super) struct StringPool {
    bytes: String,
    /// The end of each string, as an offset in bytes.
    ends: Vec<usize>,
    /// Open addressing: the number of a text and 1; 0 is a free place.
    table: Vec<u32>,
    hasher: RandomState,
}

impl StringPool {
    pub(super) const EMPTY: TextId = TextId(0);

    /// Returns a pool that holds only the empty string.
    pub(super) fn new() -> StringPool {
        let table = vec![0; 1 << 12];
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

    /// `text`, if it is there.
    pub(super) fn find(&self, text: &str) -> Option<TextId> {
        match self.table[self.place(text)] {
            0 => None,
            found => Some(TextId(found - 1)),
        }
    }

    /// `text`, which is there now.
    pub(super) fn add(&mut self, text: &str) -> TextId {
        if (self.ends.len() + 1) * 2 > self.table.len() {
            self.grow();
        }
        let place = self.place(text);
        if self.table[place] == 0 {
            self.bytes.push_str(text);
            self.ends.push(self.bytes.len());
            self.table[place] = self.ends.len() as u32;
        }
        TextId(self.table[place] - 1)
    }

    /// Where `text` stands in the table, or belongs.
    fn place(&self, text: &str) -> usize {
        let mask = self.table.len() - 1;
        let mut place = self.hasher.hash_one(text) as usize & mask;
        while self.table[place] != 0 && self.get(TextId(self.table[place] - 1)) != text {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        self.table = vec![0; self.table.len() * 2];
        let mask = self.table.len() - 1;
        for number in 0..self.ends.len() {
            let mut place = self.hasher.hash_one(self.get(TextId(number as u32))) as usize & mask;
            while self.table[place] != 0 {
                place = (place + 1) & mask;
            }
            self.table[place] = number as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_kept_once() {
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
