//! Metadata of a suite that names what is carried of it and nothing else: indexes cut from those of
//! the repository, and a release of them. Equal content gives equal bytes.

use super::paragraph::{Paragraph, paragraphs};
use super::release::AptRelease;
use crate::{COMPRESSIONS, PackagesError};
use jiff::Timestamp;
use landfall_model::Digest;
use std::collections::{BTreeMap, BTreeSet};

/// What a release says of a suite as a whole, by which machines know it and prefer it.
const KEPT: [&str; 7] = [
    "Origin",
    "Label",
    "Suite",
    "Version",
    "Codename",
    "NotAutomatic",
    "ButAutomaticUpgrades",
];

/// A suite of what is carried, while it is put together. Several locks may carry parts of one
/// suite.
#[derive(Debug, Default)]
pub struct TrimmedSuite {
    /// What the newest release says, and when it was made.
    head: String,
    date: Option<Timestamp>,
    architectures: BTreeSet<String>,
    components: BTreeSet<String>,
    /// The paragraphs of each index, by its path below the folder of the release.
    indexes: BTreeMap<String, BTreeSet<String>>,
    /// Sums of the descriptions of what is carried, by which translations name them.
    descriptions: BTreeSet<String>,
}

impl TrimmedSuite {
    /// Adds what the release `text` says, of which these components and architectures are carried.
    /// `name` is for messages.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn add_release(
        &mut self,
        name: &str,
        text: &str,
        components: &[String],
        architectures: &[String],
    ) -> Result<(), PackagesError> {
        let release = AptRelease::parse(name, text)?;
        self.components.extend(components.iter().cloned());
        self.architectures.extend(architectures.iter().cloned());
        if release.has_index_of_all {
            self.architectures.insert("all".into());
        }
        if self.head.is_empty() || release.date > self.date {
            self.date = release.date;
            let fields = paragraphs(text).next().map(|paragraph| {
                let field = |name| Some((name, paragraph.field(name)?.lines().next()?));
                let fields = KEPT.into_iter().filter_map(field);
                fields
                    .map(|(name, value)| format!("{name}: {value}\n"))
                    .collect()
            });
            self.head = fields.unwrap_or_default();
        }
        Ok(())
    }

    /// Adds those packages of the index `text` that are `carried`: their digests by their paths.
    /// The paths that it has.
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
            let path = path.strip_prefix("./").unwrap_or(path);
            if carried
                .get(path)
                .is_some_and(|digest| has_sum(paragraph, digest))
            {
                found.insert(path);
                self.descriptions
                    .extend(paragraph.field("Description-md5").map(str::to_owned));
                index.insert(paragraph.to_text());
            }
        }
        found
    }

    /// Adds those descriptions of the index `text` that are of packages added before.
    pub fn add_descriptions(&mut self, path: &str, text: &str) {
        let own = paragraphs(text).filter(|paragraph| {
            paragraph
                .field("Description-md5")
                .is_some_and(|sum| self.descriptions.contains(sum))
        });
        let own: BTreeSet<String> = own.map(Paragraph::to_text).collect();
        if !own.is_empty() {
            self.indexes.entry(path.to_owned()).or_default().extend(own);
        }
    }

    /// When the newest of its releases was made.
    pub fn date(&self) -> Option<Timestamp> {
        self.date
    }

    /// The release, which says that it was made at `date`, and the indexes by their paths beside
    /// it.
    pub fn files(&self, date: Timestamp) -> (String, BTreeMap<String, String>) {
        let indexes: BTreeMap<String, String> = self
            .indexes
            .iter()
            .map(|(path, paragraphs)| {
                let paragraphs: Vec<&str> = paragraphs.iter().map(String::as_str).collect();
                (path.clone(), paragraphs.join("\n"))
            })
            .collect();
        let words = |all: &BTreeSet<String>| all.iter().cloned().collect::<Vec<_>>().join(" ");
        let mut text = self.head.clone();
        text += &format!("Date: {}\n", date.strftime("%a, %d %b %Y %H:%M:%S UTC"));
        text += &format!("Architectures: {}\n", words(&self.architectures));
        if !self.components.is_empty() {
            text += &format!("Components: {}\n", words(&self.components));
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

/// The path of an index without the ending of its compression.
pub fn plain_path(path: &str) -> &str {
    let endings = COMPRESSIONS.iter().filter(|(ending, _)| !ending.is_empty());
    endings
        .into_iter()
        .find_map(|(ending, _)| path.strip_suffix(ending))
        .unwrap_or(path)
}

fn has_sum(paragraph: Paragraph<'_>, digest: &Digest) -> bool {
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
    fn a_suite_has_what_is_carried_and_is_the_same_each_time() {
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
                    "its digest is another"
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
            &[("pool/a.deb", &a)],
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
        let (_, again) = make([first, second]);
        assert_eq!(files, again);
        assert_eq!(plain_path("main/binary-amd64/Packages.xz"), path);
    }
}
