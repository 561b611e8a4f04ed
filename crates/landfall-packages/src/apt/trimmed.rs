//! Trimmed metadata of a suite: a release and indexes that list only the carried packages. The
//! fields and paragraphs are copied from the repository's metadata. Equal content gives equal
//! bytes.

use super::fields::{Paragraph, paragraphs};
use super::release::AptRelease;
use crate::COMPRESSIONS;
use jiff::Timestamp;
use landfall_model::{Digest, Failure};
use std::collections::{BTreeMap, BTreeSet};

/// The fields of a release that are copied: machines identify a suite by them, and derive its pin
/// priority from the last two.
const COPIED_FIELDS: [&str; 7] = [
    "Origin",
    "Label",
    "Suite",
    "Version",
    "Codename",
    "NotAutomatic",
    "ButAutomaticUpgrades",
];

/// Builds the trimmed metadata of a suite. Several locks may carry parts of one suite, so releases
/// and indexes can be added repeatedly.
#[derive(Debug, Default)]
pub struct TrimmedSuite {
    /// The copied fields of the newest release.
    head: String,
    /// The `Date` of the newest release.
    date: Option<Timestamp>,
    architectures: BTreeSet<String>,
    components: BTreeSet<String>,
    /// The paragraphs of each index by its path, relative to the release. The set removes
    /// duplicates from several locks and makes the order independent of the locks.
    indexes: BTreeMap<String, BTreeSet<String>>,
    /// The `Description-md5` of the carried packages. Translations refer to packages by it.
    descriptions: BTreeSet<String>,
}

impl TrimmedSuite {
    /// Adds the given components and architectures of the release `text`. `name` is for messages.
    ///
    /// # Errors
    /// If the release is malformed.
    pub fn add_release(
        &mut self,
        name: &str,
        text: &str,
        components: &[String],
        architectures: &[String],
    ) -> Result<(), Failure> {
        let release = AptRelease::parse(name, text)?;
        self.components.extend(components.iter().cloned());
        self.architectures.extend(architectures.iter().cloned());
        if release.has_index_of_all {
            self.architectures.insert("all".into());
        }
        if self.head.is_empty() || release.date > self.date {
            self.date = release.date;
            let fields = paragraphs(text).next().map(|paragraph| {
                COPIED_FIELDS
                    .into_iter()
                    // one line each: a continuation line could add a field to the new release
                    .filter_map(|name| Some((name, paragraph.field(name)?.lines().next()?)))
                    .map(|(name, value)| format!("{name}: {value}\n"))
                    .collect()
            });
            self.head = fields.unwrap_or_default();
        }
        Ok(())
    }

    /// Adds the packages of the index `text` that are `carried` (digests by path). Returns the
    /// paths of the packages that it added.
    pub fn add_packages<'t>(
        &mut self,
        path: &str,
        text: &'t str,
        carried: &BTreeMap<&str, &Digest>,
    ) -> BTreeSet<&'t str> {
        let mut found = BTreeSet::new();
        let index = self.indexes.entry(path.to_owned()).or_default();
        for paragraph in paragraphs(text) {
            let Some(path) = paragraph.field("Filename") else {
                continue;
            };
            // flat repositories write `./app.deb`; locks have the path without it
            let path = path.strip_prefix("./").unwrap_or(path);
            // another index may list other content at the same path
            if carried
                .get(path)
                .is_some_and(|digest| has_digest(paragraph, digest))
            {
                found.insert(path);
                self.descriptions
                    .extend(paragraph.field("Description-md5").map(str::to_owned));
                index.insert(paragraph.to_text());
            }
        }
        found
    }

    /// Adds the descriptions of the index `text` that belong to packages that were added before.
    pub fn add_descriptions(&mut self, path: &str, text: &str) {
        let carried: BTreeSet<String> = paragraphs(text)
            .filter(|paragraph| {
                paragraph
                    .field("Description-md5")
                    .is_some_and(|sum| self.descriptions.contains(sum))
            })
            .map(Paragraph::to_text)
            .collect();
        if !carried.is_empty() {
            self.indexes
                .entry(path.to_owned())
                .or_default()
                .extend(carried);
        }
    }

    /// Returns the `Date` of the newest release that was added.
    pub fn date(&self) -> Option<Timestamp> {
        self.date
    }

    /// Returns the text of the release, with `date` as its `Date`, and the indexes by path,
    /// relative to the release.
    pub fn files(&self, date: Timestamp) -> (String, BTreeMap<String, String>) {
        let indexes: BTreeMap<String, String> = self
            .indexes
            .iter()
            .map(|(path, paragraphs)| {
                let paragraphs: Vec<&str> = paragraphs.iter().map(String::as_str).collect();
                (path.clone(), paragraphs.join("\n"))
            })
            .collect();
        let mut text = self.head.clone();
        text += &format!("Date: {}\n", date.strftime("%a, %d %b %Y %H:%M:%S UTC"));
        text += &format!("Architectures: {}\n", join_words(&self.architectures));
        // a flat repository has no components
        if !self.components.is_empty() {
            text += &format!("Components: {}\n", join_words(&self.components));
        }
        text += "SHA256:\n";
        for (path, index) in &indexes {
            text += &format!(
                " {} {} {path}\n",
                Digest::sha256(index.as_bytes()).hex(),
                index.len()
            );
        }
        (text, indexes)
    }
}

fn join_words(words: &BTreeSet<String>) -> String {
    words.iter().cloned().collect::<Vec<_>>().join(" ")
}

/// Returns the path of an index without its compression suffix, such as `.xz`.
pub fn plain_path(path: &str) -> &str {
    COMPRESSIONS
        .iter()
        .filter(|(ending, _)| !ending.is_empty())
        .find_map(|(ending, _)| path.strip_suffix(ending))
        .unwrap_or(path)
}

fn has_digest(paragraph: Paragraph<'_>, digest: &Digest) -> bool {
    let sum = paragraph.field(&digest.algorithm().as_str().to_ascii_uppercase());
    sum.is_some_and(|sum| sum.eq_ignore_ascii_case(&digest.hex()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(date: &str) -> String {
        let sum = "a".repeat(64);
        format!(
            "Origin: Vendor\nSuite: stable\nCodename: jammy\nDate: {date}\nValid-Until: Mon, 16 Nov 2026 00:00:00 UTC\n\
             NotAutomatic: yes\nArchitectures: amd64 arm64\nComponents: main extra\nSHA256:\n {sum} 1 main/binary-amd64/Packages\n"
        )
    }

    fn stanza(name: &str, file: &str) -> String {
        let sum = Digest::sha256(file.as_bytes());
        format!(
            "Package: {name}\nFilename: {file}\nDescription-md5: md5-of-{name}\nSHA256: {}\n",
            sum.hex()
        )
    }

    #[test]
    fn a_suite_lists_the_carried_packages_and_is_reproducible() {
        let index = ["a", "b", "c"]
            .map(|name| stanza(name, &format!("pool/{name}.deb")))
            .join("\n");
        let [a, c, other] =
            ["pool/a.deb", "pool/c.deb", "x"].map(|text| Digest::sha256(text.as_bytes()));
        let path = "main/binary-amd64/Packages";
        let make = |sets: [&[(&str, &Digest)]; 2]| {
            let mut suite = TrimmedSuite::default();
            for (set, date) in sets.iter().zip([
                "Sat, 14 Nov 2026 00:00:00 UTC",
                "Sun, 15 Nov 2026 00:00:00 UTC",
            ]) {
                suite
                    .add_release(
                        "Release",
                        &release(date),
                        &["main".into()],
                        &["amd64".into()],
                    )
                    .unwrap();
                let found = suite.add_packages(path, &index, &set.iter().copied().collect());
                assert!(
                    found.iter().all(|path| *path != "pool/b.deb"),
                    "the lock has another digest for `pool/b.deb`"
                );
            }
            let text = |name| {
                format!("Package: {name}\nDescription-md5: md5-of-{name}\nDescription-en: {name}\n")
            };
            suite.add_descriptions(
                "main/i18n/Translation-en",
                &["a", "b", "c"].map(text).join("\n"),
            );
            suite.files(suite.date().unwrap())
        };
        let [first, second]: [&[(&str, &Digest)]; 2] = [
            &[("pool/c.deb", &c), ("pool/b.deb", &other)],
            &[("pool/c.deb", &c), ("pool/a.deb", &a)],
        ];
        let (release, files) = make([first, second]);
        let expected = [stanza("a", "pool/a.deb"), stanza("c", "pool/c.deb")].join("\n");
        assert_eq!(files[path], expected);
        assert!(!files["main/i18n/Translation-en"].contains("md5-of-b"));
        let sum = Digest::sha256(expected.as_bytes()).hex();
        assert!(
            release.starts_with(
                "Origin: Vendor\nSuite: stable\nCodename: jammy\nNotAutomatic: yes\nDate: Sun, 15 Nov 2026 00:00:00 UTC\n\
                 Architectures: amd64\nComponents: main\nSHA256:\n"
            ) && release.contains(&format!(" {sum} {} {path}\n", expected.len())),
            "{release}"
        );
        assert_eq!((release, files), make([second, first]));
        assert_eq!(plain_path("main/binary-amd64/Packages.xz"), path);
    }
}
