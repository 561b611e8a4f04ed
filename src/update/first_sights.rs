//! The file that remembers when this project first saw each version and each digest. It is kept in
//! git next to the lock. It is sorted and has one line for each first sight, so that the lines of
//! two branches can be merged.

use jiff::{SignedDuration, Timestamp};
use landfall_model::MinimumAge;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const HEAD: &str =
    "# When this project first saw each version. Written by landfall; keep it in git.";

/// How long an unused line is kept after the wait: a version may be missing from a list for a
/// while, and must not wait from the beginning when it is back. The file does not have the time of
/// the last use, because a run without news must not change the file.
const KEPT_UNUSED: SignedDuration = SignedDuration::from_hours(24 * 30);

/// The key of a first sight: a version in the source that lists it, or a digest under the name of
/// an item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, derive_more::Display)]
#[display("{subject} {version}")]
pub(crate) struct SightKey {
    subject: String,
    version: String,
}

impl SightKey {
    pub(crate) fn new(subject: impl AsRef<str>, version: impl AsRef<str>) -> SightKey {
        SightKey {
            subject: without_spaces(subject.as_ref()),
            version: without_spaces(version.as_ref()),
        }
    }
}

/// Escapes the spaces, control characters and `%` of `text` as in a URL, because a space separates
/// the fields of a line.
fn without_spaces(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() || c == '%' {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                let _ = write!(escaped, "%{byte:02X}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// When this project first saw each version and each digest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FirstSights(BTreeMap<SightKey, Timestamp>);

impl FirstSights {
    /// The path of the file that belongs to the lock at `lock`.
    pub(crate) fn path_beside(lock: &Path) -> PathBuf {
        let mut path = lock.as_os_str().to_owned();
        path.push(".seen");
        path.into()
    }

    /// Parses the text of the file. If a version is listed twice, the earlier time counts.
    pub(crate) fn parse(text: &str) -> Result<FirstSights, String> {
        let mut sights = FirstSights::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fields: Vec<&str> = line.split(' ').collect();
            let time = fields.last().and_then(|time| time.parse().ok());
            match (&fields[..], time) {
                ([subject, version, _], Some(time)) => sights.add_earlier(
                    SightKey {
                        subject: (*subject).to_owned(),
                        version: (*version).to_owned(),
                    },
                    time,
                ),
                _ => {
                    let number = index + 1;
                    let line: String = line.chars().take(100).collect();
                    return Err(format!(
                        "line {number} is not `NAME VERSION TIME`: {line}\nhelp: after a merge \
                         conflict, keep the lines of both sides"
                    ));
                }
            }
        }
        Ok(sights)
    }

    /// The text of the file.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for (key, time) in &self.0 {
            let _ = writeln!(text, "{key} {time}");
        }
        text
    }

    pub(crate) fn get(&self, key: &SightKey) -> Option<Timestamp> {
        self.0.get(key).copied()
    }

    pub(crate) fn set(&mut self, key: SightKey, time: Timestamp) {
        self.0.insert(key, time);
    }

    /// The latest time of all.
    pub(crate) fn latest(&self) -> Option<Timestamp> {
        self.0.values().max().copied()
    }

    /// Adds the sights of another run. If both have a sight, the earlier time counts.
    pub(crate) fn merge(&mut self, other: &FirstSights) {
        for (key, time) in &other.0 {
            self.add_earlier(key.clone(), *time);
        }
    }

    fn add_earlier(&mut self, key: SightKey, time: Timestamp) {
        let known = self.0.entry(key).or_insert(time);
        *known = time.min(*known);
    }

    /// Removes the sights that are not `used` and whose wait ended more than [`KEPT_UNUSED`] before
    /// `now`. `longest` is the longest minimum age: the file does not say which age applies to a
    /// sight.
    pub(crate) fn prune(
        &mut self,
        used: &BTreeSet<SightKey>,
        longest: Option<&MinimumAge>,
        now: Timestamp,
    ) {
        self.0.retain(|key, time| {
            let wait_end = longest.map_or(*time, |age| age.end(*time));
            used.contains(key) || now.duration_since(wait_end) <= KEPT_UNUSED
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_has_one_sorted_line_for_each_version() {
        let mut sights = FirstSights::default();
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let key = SightKey::new("https://u/a b.json#x[]", "1.0.1");
        sights.set(SightKey::new("r/b", "1.0.1"), time("2026-11-25T10:00:00Z"));
        sights.set(key.clone(), time("2026-11-26T10:00:00Z"));
        let text = "https://u/a%20b.json#x[] 1.0.1 2026-11-26T10:00:00Z\n\
                    r/b 1.0.1 2026-11-25T10:00:00Z\n";
        assert_eq!(sights.to_text(), format!("{HEAD}\n{text}"));
        // the lines of a merge: the earlier sight counts, and the order has no meaning
        let merged = format!("r/b 1.0.1 2026-11-24T10:00:00Z\r\n\n# text\n{text}");
        let merged = FirstSights::parse(&merged).unwrap();
        assert_eq!(merged.get(&key), sights.get(&key));
        let first = merged.get(&SightKey::new("r/b", "1.0.1"));
        assert_eq!(first, Some(time("2026-11-24T10:00:00Z")));
        for bad in ["<<<<<<< ours", "a 1 yesterday", "a 2026-11-24T10:00:00Z"] {
            let error = FirstSights::parse(&format!("\n{bad}\n")).unwrap_err();
            let line = format!("line 2 is not `NAME VERSION TIME`: {bad}\nhelp: ");
            assert!(error.starts_with(&line), "{error}");
        }
    }

    #[test]
    fn unused_lines_are_kept_for_a_month_after_the_wait() {
        let now: Timestamp = "2026-11-25T10:00:00Z".parse().unwrap();
        let used = BTreeSet::from([SightKey::new("used", "1")]);
        for (longest, days) in [(None, 0), (Some("2w"), 14), (Some("45d"), 45)] {
            let longest: Option<MinimumAge> = longest.map(|age| age.parse().unwrap());
            let mut sights = FirstSights::default();
            for (name, age) in [("a", 31 + days), ("b", 30 + days), ("used", 400)] {
                let time = now - SignedDuration::from_hours(24 * age);
                sights.set(SightKey::new(name, "1"), time);
            }
            sights.prune(&used, longest.as_ref(), now);
            let left: Vec<&str> = sights.0.keys().map(|key| &*key.subject).collect();
            assert_eq!(left, ["b", "used"], "{longest:?}");
        }
    }

    fn any_sights() -> impl Strategy<Value = FirstSights> {
        let sight = ("[ab% \u{a0}ä]{1,3}", "[12]{1,2}", 0..2_000_000_000_i64);
        proptest::collection::vec(sight, 0..12).prop_map(|lines| {
            let mut sights = FirstSights::default();
            for (subject, version, second) in lines {
                let time = Timestamp::from_second(second).unwrap();
                sights.set(SightKey::new(subject, version), time);
            }
            sights
        })
    }

    proptest! {
        #[test]
        fn written_sights_are_read_back(sights in any_sights()) {
            prop_assert_eq!(FirstSights::parse(&sights.to_text()), Ok(sights));
        }

        #[test]
        fn a_merge_does_not_depend_on_its_order(one in any_sights(), other in any_sights()) {
            let mut a = one.clone();
            let mut b = other.clone();
            a.merge(&other);
            b.merge(&one);
            prop_assert_eq!(&a, &b);
            // a union of the lines, as git makes it, gives the same sights
            let union = FirstSights::parse(&(one.to_text() + &other.to_text()));
            prop_assert_eq!(union, Ok(a));
        }
    }
}
