//! Finds locked items that have different content at one URL.

use super::document::Lock;
use landfall_model::Digest;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Two items with different content at one URL, such as two sets of packages that were locked from
/// different states of one repository.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{first} and {second} have different content at {url}: `serve` offers only one of them, and \
     `export` refuses both; lock both from the same state with `landfall lock --refresh`"
)]
pub struct UrlConflict {
    /// The URL.
    pub url: String,
    /// The name of the first item in the lock.
    pub first: String,
    /// The name of the second item in the lock.
    pub second: String,
}

/// The conflicts in `lock`, one for each pair of items.
pub fn url_conflicts(lock: &Lock) -> Vec<UrlConflict> {
    let mut owners: BTreeMap<Cow<'_, str>, (&Digest, Cow<'_, str>)> = BTreeMap::new();
    let mut conflicts: BTreeMap<(String, String), String> = BTreeMap::new();
    for item in lock.items() {
        for file in item.files() {
            for url in file.urls {
                match owners.entry(url) {
                    Entry::Vacant(entry) => drop(entry.insert((file.digest, item.name()))),
                    Entry::Occupied(entry) => {
                        let (digest, owner) = entry.get();
                        let name = item.name();
                        if *digest != file.digest && *owner != name {
                            let pair = (owner.to_string(), name.into_owned());
                            let url = entry.key();
                            conflicts.entry(pair).or_insert_with(|| url.to_string());
                        }
                    }
                }
            }
        }
    }
    conflicts
        .into_iter()
        .map(|((first, second), url)| UrlConflict { url, first, second })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LockedFile;

    #[test]
    fn items_with_different_content_at_one_url_are_found() {
        let shared = ["https://h.test/x", "https://h.test/y"];
        let file = |name: &str, content: &[u8]| LockedFile {
            also: shared.map(str::to_owned).to_vec(),
            ..LockedFile::new(name, Digest::sha256(content), 1)
        };
        let lock = Lock {
            files: vec![
                file("https://h.test/a", b"1"),
                file("https://h.test/b", b"1"),
                file("https://h.test/c", b"2"),
            ],
            ..Lock::default()
        };
        let conflict = UrlConflict {
            url: shared[0].into(),
            first: "https://h.test/a".into(),
            second: "https://h.test/c".into(),
        };
        assert_eq!(url_conflicts(&lock), [conflict]);
    }
}
