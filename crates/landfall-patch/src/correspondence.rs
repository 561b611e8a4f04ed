//! Selects the file of the bases that a new file is compared with.

use crate::listing::{ListedFile, Listing};
use std::collections::HashMap;

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
    by_content: HashMap<[u8; 32], BaseFile>,
    by_path: HashMap<u64, BaseFile>,
    by_path_without_digits: HashMap<u64, BaseFile>,
    by_name_without_digits: HashMap<u64, BaseFile>,
}

impl<'a> Correspondence<'a> {
    pub(crate) fn new(listings: Vec<&'a Listing>) -> Correspondence<'a> {
        let mut found = Correspondence {
            listings: Vec::new(),
            by_content: HashMap::new(),
            by_path: HashMap::new(),
            by_path_without_digits: HashMap::new(),
            by_name_without_digits: HashMap::new(),
        };
        for (base, listing) in listings.iter().enumerate() {
            for (file, listed) in listing.files.iter().enumerate() {
                let place = BaseFile { base, file };
                if let Some(sha256) = listed.sha256 {
                    found.by_content.entry(sha256).or_insert(place);
                }
                found.by_path.entry(listed.path).or_insert(place);
                // folders and links have nothing to compare
                if listed.content > 0 {
                    found
                        .by_path_without_digits
                        .entry(listed.path_without_digits)
                        .or_insert(place);
                    found
                        .by_name_without_digits
                        .entry(listed.name_without_digits)
                        .or_insert(place);
                }
            }
        }
        found.listings = listings;
        found
    }

    pub(crate) fn counterpart(&self, new: &ListedFile) -> Counterpart {
        let of_same_path = self.by_path.get(&new.path).copied();
        if let Some(place) = of_same_path
            && new.sha256.is_some()
            && self.file(place).sha256 == new.sha256
        {
            return Counterpart::Equal(place);
        }
        let of_same_content = new
            .sha256
            .and_then(|sha256| self.by_content.get(&sha256))
            .copied();
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
                self.by_path_without_digits
                    .get(&new.path_without_digits)
                    .copied()
            })
            .or_else(|| {
                self.by_name_without_digits
                    .get(&new.name_without_digits)
                    .copied()
            })
            .map_or(Counterpart::None, Counterpart::Similar)
    }

    pub(crate) fn file(&self, place: BaseFile) -> &ListedFile {
        &self.listings[place.base].files[place.file]
    }
}
