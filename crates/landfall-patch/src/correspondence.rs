//! Selects for each new file the file of a base to compare it with.

use crate::listing::{ListedFile, Listing};

/// A file of a base: the number of the base, and the number of the file in its listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BaseFile {
    pub(crate) base: usize,
    pub(crate) file: usize,
}

/// How a new file relates to the files of the bases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counterpart {
    /// A base has a file with equal content.
    Equal(BaseFile),
    /// A base has a file that is probably an older version.
    Similar(BaseFile),
    /// No file of the bases is worth a comparison.
    None,
}

/// The files of all bases by content and by name. Earlier bases are preferred.
pub(crate) struct Correspondence<'a> {
    listings: Vec<&'a Listing>,
    by_content: FileIndex,
    by_path: FileIndex,
    by_path_without_digits: FileIndex,
    by_name_without_digits: FileIndex,
}

/// Finds a file by a hash. A sorted list needs a third of the memory of a hash table.
struct FileIndex {
    /// The hash and number of each file, counted over all bases.
    entries: Vec<(u64, u32)>,
}

impl FileIndex {
    /// An index of the files for which `hash` returns a hash.
    fn new(listings: &[&Listing], hash: impl Fn(&ListedFile) -> Option<u64>) -> FileIndex {
        let files = listings.iter().flat_map(|listing| &listing.files);
        let mut entries: Vec<(u64, u32)> = (0..)
            .zip(files)
            .filter_map(|(number, file)| Some((hash(file)?, number)))
            .collect();
        entries.sort_unstable();
        // keeps the first of the files with equal hashes
        entries.dedup_by_key(|(hash, _)| *hash);
        FileIndex { entries }
    }

    /// The number of the first file with this hash.
    fn find(&self, hash: u64) -> Option<u32> {
        let entries = &self.entries;
        let found = entries.binary_search_by_key(&hash, |(hash, _)| *hash);
        found.ok().map(|index| entries[index].1)
    }
}

/// The first bytes of a SHA-256, as a hash.
fn start_of(sha256: [u8; 32]) -> u64 {
    sha256
        .first_chunk()
        .map_or(0, |start| u64::from_le_bytes(*start))
}

impl<'a> Correspondence<'a> {
    pub(crate) fn new(listings: Vec<&'a Listing>) -> Correspondence<'a> {
        // folders, links and empty files have no content to compare
        let has_content = |file: &ListedFile| file.content > 0;
        Correspondence {
            by_content: FileIndex::new(&listings, |file| file.sha256.map(start_of)),
            by_path: FileIndex::new(&listings, |file| Some(file.path)),
            by_path_without_digits: FileIndex::new(&listings, |file| {
                has_content(file).then_some(file.path_without_digits)
            }),
            by_name_without_digits: FileIndex::new(&listings, |file| {
                has_content(file).then_some(file.name_without_digits)
            }),
            listings,
        }
    }

    pub(crate) fn counterpart(&self, new: &ListedFile) -> Counterpart {
        let of_same_path = self.place(self.by_path.find(new.path));
        if let Some(place) = of_same_path
            && new.sha256.is_some()
            && self.file(place).sha256 == new.sha256
        {
            return Counterpart::Equal(place);
        }
        let of_same_content = new
            .sha256
            .and_then(|sha256| self.place(self.by_content.find(start_of(sha256))))
            .filter(|place| self.file(*place).sha256 == new.sha256);
        // all empty files have equal content; the file at the same path has the most similar
        // headers
        if new.content > 0
            && let Some(place) = of_same_content
        {
            return Counterpart::Equal(place);
        }
        of_same_path
            .filter(|place| self.file(*place).content > 0 || new.content == 0)
            .or_else(|| {
                let hash = new.path_without_digits;
                self.place(self.by_path_without_digits.find(hash))
            })
            .or_else(|| {
                let hash = new.name_without_digits;
                self.place(self.by_name_without_digits.find(hash))
            })
            .map_or(Counterpart::None, Counterpart::Similar)
    }

    /// The file with this number among all files of all bases.
    fn place(&self, number: Option<u32>) -> Option<BaseFile> {
        let mut file = number? as usize;
        for (base, listing) in self.listings.iter().enumerate() {
            if file < listing.files.len() {
                return Some(BaseFile { base, file });
            }
            file -= listing.files.len();
        }
        None
    }

    pub(crate) fn file(&self, place: BaseFile) -> &ListedFile {
        &self.listings[place.base].files[place.file]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tar of files with these names and contents.
    fn listing(files: &[(&str, &str)]) -> Listing {
        let mut archive = tar::Builder::new(Vec::new());
        for (name, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_cksum();
            archive
                .append_data(&mut header, name, content.as_bytes())
                .unwrap();
        }
        Listing::read(&archive.into_inner().unwrap()[..]).unwrap()
    }

    #[test]
    fn counterparts_are_found_by_content_then_by_path_then_by_name() {
        let bases = [
            listing(&[("bin/a", "one"), ("lib/x.so.1", "x"), ("empty", "")]),
            listing(&[("bin/b", "two"), ("bin/c", "one"), ("opt/tool-2", "tool")]),
        ];
        let correspondence = Correspondence::new(bases.iter().collect());
        let new = listing(&[
            ("bin/c", "one"),
            ("bin/d", "one"),
            ("bin/b", "changed"),
            ("lib/x.so.2", "y"),
            ("else/tool-3", "z"),
            ("empty", ""),
            ("unknown", "u"),
        ]);
        let found: Vec<Counterpart> = new.files[..7]
            .iter()
            .map(|file| correspondence.counterpart(file))
            .collect();
        let place = |base, file| BaseFile { base, file };
        let expected = [
            Counterpart::Equal(place(1, 1)),
            Counterpart::Equal(place(0, 0)),
            Counterpart::Similar(place(1, 0)),
            Counterpart::Similar(place(0, 1)),
            Counterpart::Similar(place(1, 2)),
            Counterpart::Equal(place(0, 2)),
            Counterpart::None,
        ];
        assert_eq!(found, expected);
    }
}
