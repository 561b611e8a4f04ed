//! Reads, checks and writes locks.

use super::document::Lock;
use super::text;
use crate::LockedItem;
use landfall_model::document::{self, read_text_input};
use landfall_model::{Algorithm, DestinationMap, Digest, Failure, Hasher};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

impl Lock {
    /// Parses a lock. `file` is its name in messages.
    ///
    /// # Errors
    /// If the text is not a valid lock, or its version is not 1.
    pub fn parse(file: &str, text: &str) -> Result<Lock, Failure> {
        // a byte order mark would hide a truncated lock, or a key in the first line
        let text = text.trim_start_matches('\u{feff}');
        let lock: Lock = match text::read(text) {
            Some(lock) => lock,
            None if text::is_truncated(text) => {
                return Err(Failure::usage(format!(
                    "{file} is truncated: a lock ends with the line `...`"
                ))
                .with_help("copy it again, or write it again with `landfall lock`"));
            }
            // edited by hand or damaged: read the whole document, for messages with a position
            None => {
                document::read(file, text).map_err(|error| Failure::usage(error.to_string()))?
            }
        };
        if lock.version != 1 {
            let found = lock.version;
            let help = match found {
                2.. => "use a newer landfall",
                _ => WRITE_AGAIN,
            };
            return Err(Failure::usage(format!(
                "{file}: lock version {found} is not known to this landfall, which reads version 1"
            ))
            .with_help(help));
        }
        let implausible = lock.items().find_map(LockedItem::implausibility);
        let duplicate = lock.duplicate_name();
        // later stages find items by name, and would use the wrong one of two
        match implausible.or_else(|| duplicate.map(|name| format!("{name} is listed twice"))) {
            Some(why) => Err(Failure::usage(format!("{file}: {why}")).with_help(WRITE_AGAIN)),
            None => Ok(lock),
        }
    }

    /// Reads the lock at `path`.
    ///
    /// # Errors
    /// As for [`Lock::parse`], and if the file cannot be read.
    pub fn load(path: &Path) -> Result<Lock, Failure> {
        Lock::load_with_text(path).map(|(lock, _)| lock)
    }

    /// Like [`Lock::load`], with the text of the file.
    ///
    /// # Errors
    /// As for [`Lock::load`].
    pub fn load_with_text(path: &Path) -> Result<(Lock, String), Failure> {
        let text = read_text_input(path).map_err(|error| {
            let path = path.display();
            Failure::usage(format!("cannot read the lock {path}: {error}")).with_help(format!(
                "run this in the folder of the lock, or name its path; `landfall lock -f MANIFEST \
                 --lock {path}` writes one"
            ))
        })?;
        let lock = Lock::parse(&path.display().to_string(), &text)?;
        Ok((lock, text))
    }

    /// The lock as text. Equal locks give equal text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // writing to a String does not fail
        let _ = text::write(self, &mut text);
        text
    }

    /// SHA-256 of the lock's text. Approvals of a change refer to it.
    pub fn fingerprint(&self) -> Digest {
        // hashed as it is written, since the text of a large lock may have many megabytes
        let mut hasher = Hasher::new(Algorithm::Sha256);
        let _ = text::write(self, &mut hasher);
        hasher.finish()
    }
}

const WRITE_AGAIN: &str = "write it again with `landfall lock`";

/// The first two items of `lock` that would have the same name but have different digests.
pub fn collision(mapping: &DestinationMap, lock: &Lock) -> Option<String> {
    let mut taken: BTreeMap<String, (LockedItem<'_>, &Digest)> = BTreeMap::new();
    for item in lock.items() {
        let own = item.tag();
        for place in item.destinations(mapping) {
            let referrers = item.referrer_tags();
            for (tag, digest) in referrers.into_iter().chain([(&*own, item.digest())]) {
                let place = format!("{place}:{tag}");
                match taken.get(&place) {
                    Some(&(first, first_digest)) => {
                        // two tags of one image share its signatures: the tag of a signature
                        // contains the digest of the image
                        let is_shared_referrer = tag != own && first.source() == item.source();
                        if first_digest != digest && !is_shared_referrer {
                            let first = (first, first_digest);
                            return Some(describe_collision(&place, first, (item, digest)));
                        }
                    }
                    None => drop(taken.insert(place, (item, digest))),
                }
            }
        }
    }
    None
}

fn describe_collision(
    place: &str,
    (first, first_digest): (LockedItem<'_>, &Digest),
    (second, second_digest): (LockedItem<'_>, &Digest),
) -> String {
    let source = second.source();
    format!(
        "{place} would be both {} ({first_digest}) and {} ({second_digest}); give one of them a \
         path of its own in the site file, under registry.paths:\n    {source}: {}",
        name_of(first, first_digest),
        name_of(second, second_digest),
        source.replace(':', "_")
    )
}

fn name_of(item: LockedItem<'_>, digest: &Digest) -> String {
    if item.digest() == digest {
        item.name().into_owned()
    } else {
        format!("a referrer of {}", item.name())
    }
}

/// The conflicts in `lock`, one for each pair of items.
pub fn url_conflicts(lock: &Lock) -> Vec<String> {
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
    let conflicts = conflicts.into_iter().map(|((first, second), url)| {
        format!(
            "{first} and {second} have different content at {url}: `serve` offers only one of \
             them, and `export` refuses both; lock both from the same state with `landfall lock \
             --refresh`"
        )
    });
    conflicts.collect()
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
        let [conflict] = &url_conflicts(&lock)[..] else {
            panic!("{:?}", url_conflicts(&lock));
        };
        let names = format!(
            "https://h.test/a and https://h.test/c have different content at {}: ",
            shared[0]
        );
        assert!(conflict.starts_with(&names), "{conflict}");
    }
}
