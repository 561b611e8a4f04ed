//! Collects items from files of other tools, and writes them as a manifest.

use crate::manifest::draft::head;
use landfall_model::document::{Diagnostic, SourceText};
use landfall_model::report::one_line;
use landfall_model::{Digest, ImageRef, Platform, has_host};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

/// A file of another tool.
#[derive(Debug)]
pub struct ImportSource {
    /// The file name, for messages.
    pub file: String,
    /// The content of the file.
    pub text: String,
}

impl ImportSource {
    /// The text, prepared for messages with positions.
    pub(super) fn plain(&self) -> Rc<SourceText> {
        SourceText::plain(self.file.clone(), self.text.clone())
    }

    /// The error that the file does not have the given format.
    pub(super) fn is_no(&self, what: &str, help: &str) -> Box<Diagnostic> {
        Box::new(Diagnostic {
            file: self.file.clone(),
            text: self.text.clone(),
            span: 0..0,
            message: format!("this is no {what}"),
            help: Some(help.into()),
        })
    }
}

/// A plain file that the other tool's list names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ImportedFile {
    checksum: Option<String>,
    mode: Option<&'static str>,
}

/// The platforms of an image; `None` means all.
type ImportedPlatforms = Option<BTreeSet<String>>;

/// The items that were read from lists of other tools.
#[derive(Debug, Default)]
pub struct ImportedItems {
    /// Images by name without a digest, then by digest.
    images: BTreeMap<String, BTreeMap<Option<Digest>, ImportedPlatforms>>,
    files: BTreeMap<String, ImportedFile>,
    /// Charts, as manifest entries.
    charts: BTreeSet<String>,
    /// Items that a manifest cannot express, one line each.
    pub left: Vec<String>,
    /// Settings that a manifest cannot express, one line each.
    pub notes: Vec<String>,
}

impl ImportedItems {
    /// Adds an image, which is `written` in `source` at `at`, for `platforms`; empty means all.
    pub(super) fn image(
        &mut self,
        source: &ImportSource,
        at: &str,
        written: &str,
        platforms: &[String],
    ) {
        let written = written.trim();
        let parsed = written.parse::<ImageRef>();
        let Ok(mut image) = parsed else {
            let why = parsed
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            return self.leave(source, at, written, &why);
        };
        if !image.is_pinned() {
            image.tag = Some("latest".into());
            self.note(source, at, &format!("{written}: no tag, so latest"));
        }
        let (known, unknown): (Vec<&String>, Vec<&String>) = platforms
            .iter()
            .partition(|platform| platform.parse::<Platform>().is_ok());
        for platform in &unknown {
            self.note(
                source,
                at,
                &format!("{written}: platform {platform}, which is none that landfall knows"),
            );
        }
        let wanted: ImportedPlatforms = if known.is_empty() {
            None
        } else {
            Some(known.into_iter().cloned().collect())
        };
        let digest = image.digest.take();
        let name = image.to_string();
        self.images
            .entry(name)
            .or_default()
            .entry(digest)
            .and_modify(|before| {
                *before = match (before.take(), wanted.clone()) {
                    (Some(one), Some(two)) => Some(one.union(&two).cloned().collect()),
                    _ => None,
                }
            })
            .or_insert(wanted);
    }

    /// Adds a file at `url`, with its SHA-256 in hex if it is known.
    pub(super) fn file(
        &mut self,
        source: &ImportSource,
        at: &str,
        url: &str,
        sha256: Option<&str>,
        executable: bool,
    ) {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return self.leave(source, at, url, "only http and https are carried");
        }
        let path = url
            .split_once("://")
            .and_then(|(_, rest)| rest.split_once('/'))
            .map(|(_, path)| path);
        if path.is_none_or(|path| path.is_empty() || path.ends_with('/')) {
            return self.leave(source, at, url, "this URL names a folder, and no file");
        }
        let checksum = sha256.map(|hex| format!("sha256:{hex}"));
        if let Some(bad) = checksum
            .as_ref()
            .filter(|text| text.parse::<Digest>().is_err())
        {
            return self.leave(source, at, url, &format!("{bad} is no checksum"));
        }
        let entry = ImportedFile {
            checksum,
            mode: executable.then_some("0755"),
        };
        if self.files.get(url).is_some_and(|before| *before != entry) {
            return self.leave(
                source,
                at,
                url,
                "it stands there twice, with another checksum or mode",
            );
        }
        self.files.insert(url.to_owned(), entry);
    }

    /// Adds the chart `name` of a repository: `oci://registry/path`, with or without the name, or a
    /// URL.
    pub(super) fn chart(
        &mut self,
        source: &ImportSource,
        at: &str,
        repository: &str,
        name: &str,
        version: &str,
    ) {
        let is_oci = repository.starts_with("oci://");
        let folder = repository.trim_end_matches('/');
        let chart = if is_oci && !name.is_empty() && !folder.ends_with(&format!("/{name}")) {
            format!("{folder}/{name}")
        } else {
            folder.to_owned()
        };
        let shown = if is_oci {
            chart.clone()
        } else {
            format!("{folder} {name}").trim().to_owned()
        };
        if version.is_empty() {
            return self.leave(source, at, &format!("chart {shown}"), "it has no version");
        }
        if !is_oci && !folder.starts_with("http://") && !folder.starts_with("https://") {
            let why = "it is in no registry and no repository";
            return self.leave(source, at, &format!("chart {shown} {version}"), why);
        }
        let text = |value: &str| serde_json::Value::from(value).to_string();
        self.charts.insert(if is_oci {
            text(&format!("{chart}:{version}"))
        } else {
            format!(
                "{{repo: {}, name: {}, version: {}}}",
                text(folder),
                text(name),
                text(version)
            )
        });
    }

    /// Records an item that a manifest cannot express, and why.
    pub(super) fn leave(&mut self, source: &ImportSource, at: &str, what: &str, why: &str) {
        self.left
            .push(format!("{}: {}: {what}: {why}", source.file, place(at)));
    }

    /// Records a setting that a manifest cannot express.
    pub(super) fn note(&mut self, source: &ImportSource, at: &str, what: &str) {
        self.notes
            .push(format!("{}: {}: {what}", source.file, place(at)));
    }

    /// The number of entries in the manifest.
    pub fn entries(&self) -> usize {
        self.images.values().map(BTreeMap::len).sum::<usize>()
            + self.files.len()
            + self.charts.len()
    }

    /// The names of the images, as the manifest writes them.
    #[cfg(test)]
    pub(super) fn images(&self) -> Vec<String> {
        self.lines()
            .into_iter()
            .map(|(reference, _)| reference)
            .collect()
    }

    /// The references with their platforms. A name with several digests is listed once for each
    /// digest.
    fn lines(&self) -> Vec<(String, &ImportedPlatforms)> {
        let mut lines = Vec::new();
        for (name, digests) in &self.images {
            for (digest, platforms) in digests {
                let reference = match digest {
                    None => name.clone(),
                    Some(digest) if digests.len() == 1 => format!("{name}@{digest}"),
                    Some(digest) => {
                        let bare = name
                            .parse::<ImageRef>()
                            .map(|image| image.at_digest(digest).to_string());
                        bare.unwrap_or_else(|_| format!("{name}@{digest}"))
                    }
                };
                lines.push((reference, platforms));
            }
        }
        lines.sort();
        lines.dedup_by(|a, b| a.0 == b.0);
        lines
    }
}

/// The position of a text in the file.
fn place(at: &str) -> &str {
    if at.is_empty() { "the file" } else { at }
}

/// The reference `written`, with `host` in front if it names none.
pub(super) fn at_host(host: &str, written: &str) -> String {
    if host.is_empty() || has_host(written) {
        written.to_owned()
    } else {
        format!("{host}/{written}")
    }
}

/// Writes the manifest called `name` with the items `imported`; `title` is the first comment.
pub fn manifest_of(imported: &ImportedItems, name: &str, title: &str) -> String {
    let mut text = head(name, title);
    let told = |text: &mut String, what: &str, lines: &[String]| {
        if !lines.is_empty() {
            let _ = writeln!(text, "\n# {what}");
            lines.iter().for_each(|line| {
                let _ = writeln!(text, "#   {}", one_line(line));
            });
        }
    };
    told(&mut text, "Not carried over:", &imported.left);
    told(
        &mut text,
        "Settings that have no place here:",
        &imported.notes,
    );
    let lines = imported.lines();
    if !lines.is_empty() {
        text += "\nimages:\n";
    }
    for (reference, platforms) in lines {
        let _ = match platforms {
            None if reference.starts_with('[') => writeln!(text, "  - \"{reference}\""),
            None => writeln!(text, "  - {reference}"),
            Some(platforms) => {
                let platforms: Vec<&str> = platforms.iter().map(String::as_str).collect();
                writeln!(
                    text,
                    "  - {{ref: \"{reference}\", platforms: [{}]}}",
                    platforms.join(", ")
                )
            }
        };
    }
    if !imported.files.is_empty() {
        text += "\nfiles:\n";
    }
    for (url, entry) in &imported.files {
        let _ = writeln!(
            text,
            "  - url: {}",
            serde_json::Value::from(url.replace("${", "$%7B"))
        );
        let _ = entry
            .checksum
            .iter()
            .try_for_each(|checksum| writeln!(text, "    checksum: {checksum}"));
        let _ = entry
            .mode
            .iter()
            .try_for_each(|mode| writeln!(text, "    mode: \"{mode}\""));
    }
    if !imported.charts.is_empty() {
        text += "\ncharts:\n";
    }
    imported
        .charts
        .iter()
        .for_each(|chart| text += &format!("  - {chart}\n"));
    text
}
