//! Collects items from files of other tools, and writes them as a manifest.

use crate::chart::ChartName;
use crate::file::file_url;
use crate::manifest::draft::head;
use crate::text::{self, in_quotes};
use landfall_model::document::{Diagnostic, SourceText};
use landfall_model::report::one_line;
use landfall_model::{
    Digest, ImageRef, Platform, ReferenceError, VersionSelection, has_host, is_path_below,
    is_web_url,
};
use serde_yaml::Mapping;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
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
    /// The position `at` in this file, such as `images[2]`. An empty text means the whole file.
    pub(super) fn at<'s>(&'s self, at: &'s str) -> ImportPosition<'s> {
        ImportPosition { source: self, at }
    }

    /// The text, prepared for messages with positions.
    pub(super) fn plain(&self) -> Rc<SourceText> {
        SourceText::plain(self.file.clone(), self.text.clone())
    }

    /// The error for a file that is not `what`, such as "a package of Zarf".
    pub(super) fn format_error(&self, what: &str, help: &str) -> Box<Diagnostic> {
        Box::new(Diagnostic {
            file: self.file.clone(),
            text: self.text.clone(),
            span: 0..0,
            message: format!("this is not {what}"),
            help: Some(help.into()),
        })
    }
}

/// A position in a file of another tool. It displays as in messages: `FILE: POSITION`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImportPosition<'s> {
    pub(super) source: &'s ImportSource,
    at: &'s str,
}

impl ImportPosition<'_> {
    /// The text of the position `key` below this one.
    pub(super) fn below(self, key: impl fmt::Display) -> String {
        let separator = match self.at {
            "" => "",
            // a label such as `component NAME`, not a key
            label if label.contains(' ') => ", ",
            _ => ".",
        };
        format!("{}{separator}{key}", self.at)
    }

    /// The name of the file.
    pub(super) fn file(self) -> String {
        self.source.file.clone()
    }
}

impl fmt::Display for ImportPosition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.at.is_empty() {
            "the file"
        } else {
            self.at
        };
        write!(f, "{}: {at}", self.source.file)
    }
}

/// A chart that the other tool's list names.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImportedChart<'s> {
    /// `oci://registry/path`, with or without the name of the chart, or the URL of an HTTP
    /// repository.
    pub(super) repository: &'s str,
    pub(super) name: &'s str,
    /// The version; empty if the list names none, so that the chart cannot be imported.
    pub(super) version: &'s str,
    /// Whether the tool also mirrors the images in the chart.
    pub(super) has_images: bool,
    /// The values with which the tool renders the chart.
    pub(super) values: Option<&'s Mapping>,
}

/// The checksum and the mode of a file that the other tool's list names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ImportedFile {
    checksum: Option<String>,
    mode: Option<&'static str>,
}

/// A repository, and the rule that selects its tags.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ImportedSelector {
    pub(super) repository: String,
    /// A range of versions, or a pattern.
    pub(super) select: String,
    /// Tags that are not selected, or patterns of them.
    pub(super) except: Vec<String>,
    /// How many of the newest tags are selected; all of them if it is missing.
    pub(super) newest: Option<NonZeroUsize>,
}

/// The platforms of an image. `None` means all.
type ImportedPlatforms = Option<BTreeSet<String>>;

/// Returns the platforms of both entries. If one of them names no platforms, all are needed.
fn merged(one: ImportedPlatforms, two: ImportedPlatforms) -> ImportedPlatforms {
    Some(one?.union(&two?).cloned().collect())
}

/// The items that were read from lists of other tools.
#[derive(Debug, Default)]
pub struct ImportedItems {
    /// Images by name without a digest, then by digest.
    images: BTreeMap<String, BTreeMap<Option<Digest>, ImportedPlatforms>>,
    /// Rules that select the tags of a repository.
    selectors: BTreeMap<ImportedSelector, ImportedPlatforms>,
    files: BTreeMap<String, ImportedFile>,
    /// The charts, as lines of a manifest.
    charts: BTreeSet<String>,
    /// The archives of images, by the references of the images.
    archives: BTreeMap<String, String>,
    /// The folder for which the manifest is written, in which local content must be.
    folder: PathBuf,
    /// The folder of the file that is read now, relative to `folder`. Empty for the imported files
    /// themselves.
    below: String,
    /// Items that a manifest cannot express, one line each.
    pub not_imported: Vec<String>,
    /// Settings that a manifest cannot express, and assumptions of the import, one line each.
    pub notes: Vec<String>,
}

impl ImportedItems {
    /// No items yet, for a manifest in `folder`.
    pub fn for_folder(folder: &Path) -> ImportedItems {
        ImportedItems {
            folder: folder.into(),
            ..ImportedItems::default()
        }
    }

    /// Whether there are rules that select tags or versions, which `landfall update` applies.
    pub fn has_rules(&self) -> bool {
        !self.selectors.is_empty() || self.charts.iter().any(|chart| chart.contains(", select: "))
    }

    /// The path `text` of a local file or folder, as a manifest in the folder writes it. Otherwise,
    /// records that the item is not imported.
    fn local_path(&mut self, at: ImportPosition<'_>, text: &str) -> Option<String> {
        let path = text.trim_start_matches("./").trim_end_matches('/');
        let path = &if self.below.is_empty() {
            path.to_owned()
        } else {
            joined(&self.below, path)
        };
        // a manifest would read these as patterns and variables
        let is_plain = !path.contains(['*', '?', '\\', '$']) && !path.contains(char::is_control);
        if !is_path_below(path) || !is_plain {
            self.not_imported(
                at,
                text,
                "it is not a path below the folder of the manifest",
            );
            return None;
        }
        if !self.folder.join(path).exists() {
            let why = "the folder of the manifest does not have it; write the manifest into the \
                       folder of the imported file with -o";
            self.not_imported(at, text, why);
            return None;
        }
        Some(path.to_owned())
    }

    /// Adds the image `reference` of the local `archive`.
    pub(super) fn archived_image(
        &mut self,
        at: ImportPosition<'_>,
        archive: &str,
        reference: &str,
    ) {
        let Some(archive) = self.local_path(at, archive) else {
            return;
        };
        match reference.parse::<ImageRef>() {
            Ok(image) if image.tag.is_some() && image.digest.is_none() => {
                self.archives.insert(image.to_string(), archive);
            }
            _ => self.not_imported(
                at,
                reference,
                "an image of an archive needs a name with a tag",
            ),
        }
    }

    /// Adds the chart at the local `path`. `has_images` means that the tool also mirrors the images
    /// in it.
    pub(super) fn local_chart(&mut self, at: ImportPosition<'_>, path: &str, has_images: bool) {
        let images = if has_images { ", images: discover" } else { "" };
        let path = self.local_path(at, path);
        self.charts
            .extend(path.map(|path| format!("{{path: {}{images}}}", in_quotes(&path))));
    }

    /// Runs `read` for a file in the folder `path`, relative to the folder of the file that is read
    /// now, so that local content is found in that folder.
    pub(super) fn in_folder(&mut self, path: &str, read: impl FnOnce(&mut ImportedItems)) {
        let below = joined(&self.below, path);
        let before = std::mem::replace(&mut self.below, below);
        read(self);
        self.below = before;
    }

    /// Adds the image `reference` for `platforms`; empty means all.
    pub(super) fn image(&mut self, at: ImportPosition<'_>, reference: &str, platforms: &[String]) {
        let reference = reference.trim();
        let mut image: ImageRef = match reference.parse() {
            Ok(image) => image,
            Err(error) => {
                let error: ReferenceError = error;
                return self.not_imported(at, reference, &error.to_string());
            }
        };
        // other tools add a missing tag themselves; in a manifest, the tag is required
        if !image.is_pinned() {
            image.tag = Some("latest".into());
            self.note(at, &format!("{reference}: no tag, so `latest` is used"));
        }
        let platforms = self.platforms(at, reference, platforms);
        let digest = image.digest.take();
        let name = image.to_string();
        self.images
            .entry(name)
            .or_default()
            .entry(digest)
            .and_modify(|before| *before = merged(before.take(), platforms.clone()))
            .or_insert(platforms);
    }

    /// Adds the tags that `selector` selects. A rule that a manifest cannot express is not
    /// imported.
    pub(super) fn select(
        &mut self,
        at: ImportPosition<'_>,
        selector: ImportedSelector,
        platforms: &[String],
    ) {
        let select = without_hyphens(&selector.select);
        let selector = ImportedSelector { select, ..selector };
        let ImportedSelector {
            repository,
            select,
            except,
            ..
        } = &selector;
        let name: Result<ImageRef, ReferenceError> = repository.parse();
        let checked = name.map_err(|error| error.to_string()).and_then(|name| {
            let mut selection = VersionSelection::new(select).map_err(|error| error.to_string())?;
            for text in except {
                selection.exclude(text).map_err(|error| error.to_string())?;
            }
            let mut texts = [select, repository].into_iter().chain(except);
            if name.is_pinned() || texts.any(|text| text.contains("${")) {
                return Err("list the tags that you need".into());
            }
            Ok((name, selection.names_build()))
        });
        let (name, names_build) = match checked {
            Ok(checked) => checked,
            Err(why) => {
                return self.not_imported(
                    at,
                    repository,
                    &format!("tags by the rule {select}: {why}"),
                );
            }
        };
        if names_build {
            // other tools read any suffix as a pre-release, which such a range allows
            let but = "tags with a suffix such as -alpine are not selected; add a pattern for them";
            self.note(at, &format!("{repository}: by the rule {select}, {but}"));
        }
        let platforms = self.platforms(at, repository, platforms);
        let selector = ImportedSelector {
            repository: name.to_string(),
            ..selector
        };
        self.selectors
            .entry(selector)
            .and_modify(|before| *before = merged(before.take(), platforms.clone()))
            .or_insert(platforms);
    }

    /// The known ones of `platforms`, for the image or repository `name`. Notes the others.
    fn platforms(
        &mut self,
        at: ImportPosition<'_>,
        name: &str,
        platforms: &[String],
    ) -> ImportedPlatforms {
        let (known, unknown): (Vec<&String>, Vec<&String>) = platforms
            .iter()
            .partition(|platform| platform.parse::<Platform>().is_ok());
        for platform in &unknown {
            self.note(
                at,
                &format!("{name}: the platform {platform} is not known to landfall"),
            );
        }
        if known.is_empty() {
            if !unknown.is_empty() {
                self.note(at, &format!("{name}: all its platforms are imported"));
            }
            return None;
        }
        Some(known.into_iter().cloned().collect())
    }

    /// Adds a file at `url`, which may be a local path, with its SHA-256 in hex if it is known.
    pub(super) fn file(
        &mut self,
        at: ImportPosition<'_>,
        url: &str,
        sha256: Option<&str>,
        executable: bool,
    ) {
        let is_web = is_web_url(url);
        let local;
        let url = if is_web {
            url
        } else if url.contains("://") {
            let why = "landfall mirrors only local files and files with http and https URLs";
            return self.not_imported(at, url, why);
        } else {
            let Some(path) = self.local_path(at, url) else {
                return;
            };
            local = path;
            &*local
        };
        let path = url
            .split_once("://")
            .and_then(|(_, rest)| rest.split_once('/'))
            .map(|(_, path)| path);
        if is_web && path.is_none_or(|path| path.is_empty() || path.ends_with('/')) {
            return self.not_imported(at, url, "this is the URL of a folder");
        }
        if let Some(problem) = file_url(url).err().filter(|_| is_web) {
            return self.not_imported(at, url, &problem.message);
        }
        let checksum = sha256.map(|hex| format!("sha256:{hex}"));
        if let Some(bad) = checksum
            .as_ref()
            .filter(|text| text.parse::<Digest>().is_err())
        {
            return self.not_imported(at, url, &format!("{bad} is not a checksum"));
        }
        let entry = ImportedFile {
            checksum,
            mode: executable.then_some("0755"),
        };
        if self.files.get(url).is_some_and(|before| *before != entry) {
            return self.not_imported(
                at,
                url,
                "it is listed twice, with different checksums or modes",
            );
        }
        self.files.insert(url.to_owned(), entry);
    }

    /// Adds a chart.
    pub(super) fn chart(
        &mut self,
        at: ImportPosition<'_>,
        ImportedChart {
            repository,
            name,
            version,
            has_images,
            values,
        }: ImportedChart<'_>,
    ) {
        let is_oci = repository.starts_with("oci://");
        let folder = repository.trim_end_matches('/');
        let chart = if is_oci && !name.is_empty() && !folder.ends_with(&format!("/{name}")) {
            format!("{folder}/{name}")
        } else {
            folder.to_owned()
        };
        let label = if is_oci {
            chart.clone()
        } else {
            format!("{folder} {name}").trim().to_owned()
        };
        if version.is_empty() {
            return self.not_imported(at, &format!("chart {label}"), "it has no version");
        }
        let version = &*without_hyphens(version);
        if !is_oci && !is_web_url(folder) {
            let why = "its repository is neither oci:// nor http(s)://";
            return self.not_imported(at, &format!("chart {label} {version}"), why);
        }
        if [&chart, name, version]
            .iter()
            .any(|text| text.contains("${"))
        {
            let why = "a manifest would read `${` as the beginning of a variable";
            return self.not_imported(at, &format!("chart {label} {version}"), why);
        }
        let reference = format!("{chart}:{version}");
        let named = |version: &str| {
            if is_oci {
                ChartName::try_from(format!("{chart}:{version}"))
            } else {
                ChartName::in_repository(folder, name, version)
            }
        };
        let checked = named(version);
        // other tools accept a range, and take the newest version in it
        let is_range =
            checked.is_err() && named("0.0.0").is_ok() && VersionSelection::new(version).is_ok();
        if let Err(error) = checked.as_ref()
            && !is_range
        {
            return self.not_imported(at, &format!("chart {label} {version}"), error);
        }
        let is_short = is_oci && !is_range;
        let source = if is_range {
            let (folder, name) = match chart.rsplit_once('/') {
                Some(parts) if is_oci => parts,
                _ => (folder, name),
            };
            let [folder, name, version] = [folder, name, version].map(in_quotes);
            format!("repo: {folder}, name: {name}, select: {version}, newest: 1")
        } else if is_oci {
            format!("ref: {}", in_quotes(&reference))
        } else {
            let [folder, name, version] = [folder, name, version].map(in_quotes);
            format!("repo: {folder}, name: {name}, version: {version}")
        };
        let values = values.and_then(|values| {
            let values = serde_json::to_string(values).ok();
            let values = values.filter(|values| !values.contains("${"));
            if values.is_none() {
                self.note(at, &format!("chart {label}: its `values` are not imported"));
            }
            values
        });
        self.charts.insert(match (has_images, values) {
            (false, _) if is_short => in_quotes(&reference),
            (false, _) => format!("{{{source}}}"),
            (true, None) => format!("{{{source}, images: discover}}"),
            (true, Some(values)) => {
                format!("{{{source}, images: discover, values: [{values}]}}")
            }
        });
    }

    /// Records an item that a manifest cannot express, and why.
    pub(super) fn not_imported(&mut self, at: ImportPosition<'_>, what: &str, why: &str) {
        self.not_imported.push(format!("{at}: {what}: {why}"));
    }

    /// Records a setting that a manifest cannot express, or an assumption of the import.
    pub(super) fn note(&mut self, at: ImportPosition<'_>, what: &str) {
        self.notes.push(format!("{at}: {what}"));
    }

    /// The number of entries in the manifest.
    pub fn entries(&self) -> usize {
        self.lines().len()
            + self.selectors.len()
            + self.archives.len()
            + self.files.len()
            + self.charts.len()
    }

    /// The references of the images, as the manifest writes them.
    #[cfg(test)]
    pub(super) fn images(&self) -> Vec<String> {
        self.lines().into_keys().collect()
    }

    /// The references with their platforms. A name with several digests is listed once for each
    /// digest.
    fn lines(&self) -> BTreeMap<String, ImportedPlatforms> {
        let mut lines: BTreeMap<String, ImportedPlatforms> = BTreeMap::new();
        for (name, digests) in &self.images {
            for (digest, platforms) in digests {
                let reference = match digest {
                    None => name.clone(),
                    Some(digest) if digests.len() == 1 => format!("{name}@{digest}"),
                    // a manifest must not have one tag with several digests
                    Some(digest) => {
                        let bare = name
                            .parse::<ImageRef>()
                            .map(|image| image.at_digest(digest).to_string());
                        bare.unwrap_or_else(|_| format!("{name}@{digest}"))
                    }
                };
                // two names may have the same digest in one repository
                lines
                    .entry(reference)
                    .and_modify(|before| *before = merged(before.take(), platforms.clone()))
                    .or_insert_with(|| platforms.clone());
            }
        }
        lines
    }
}

/// A range of versions with bounds in place of hyphens: `1.2 - 1.4` is `>=1.2 <=1.4`. Other ranges,
/// versions and patterns stay as they are.
fn without_hyphens(range: &str) -> String {
    let alternative = |text: &str| match text.split_whitespace().collect::<Vec<&str>>()[..] {
        [from, "-", to] => format!(">={from} <={to}"),
        _ => text.to_owned(),
    };
    let alternatives: Vec<String> = range.split("||").map(alternative).collect();
    alternatives.join("||")
}

/// `path` as seen from the folder that contains the folder `below`, without `.` and `..` where
/// possible.
fn joined(below: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    // an absolute path stays one
    let below = if path.starts_with('/') { "" } else { below };
    for part in below.split('/').chain(path.split('/')) {
        match part {
            "." => {}
            "" if !parts.is_empty() || !path.starts_with('/') => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The list `key` as the next key of a mapping in braces; nothing if it is empty.
fn list<'t>(key: &str, texts: impl IntoIterator<Item = &'t String>) -> String {
    let texts: Vec<String> = texts.into_iter().map(|one| text::quoted(one)).collect();
    if texts.is_empty() {
        return String::new();
    }
    format!(", {key}: [{}]", texts.join(", "))
}

/// Appends `lines` as comments below the comment `title`.
fn write_comments(text: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n# {title}");
    for line in lines {
        let _ = writeln!(text, "#   {}", one_line(line));
    }
}

/// `reference`, with `host` in front if the reference has no host.
pub(super) fn at_host(host: &str, reference: &str) -> String {
    if host.is_empty() || has_host(reference) {
        reference.to_owned()
    } else {
        format!("{host}/{reference}")
    }
}

/// Writes the manifest called `name` with the items `imported`; `title` is the first comment.
pub fn manifest_of(imported: &ImportedItems, name: &str, title: &str) -> String {
    let mut text = head(name, title);
    write_comments(&mut text, "Not imported:", &imported.not_imported);
    write_comments(
        &mut text,
        "Settings that were not imported, and assumptions:",
        &imported.notes,
    );
    let lines = imported.lines();
    if !lines.is_empty() || !imported.selectors.is_empty() || !imported.archives.is_empty() {
        text += "\nimages:\n";
    }
    for (reference, platforms) in lines {
        let _ = match platforms {
            // an IPv6 host starts with `[`, which would start a YAML list
            None if reference.starts_with('[') => writeln!(text, "  - \"{reference}\""),
            None => writeln!(text, "  - {reference}"),
            Some(platforms) => writeln!(
                text,
                "  - {{ref: \"{reference}\"{}}}",
                list("platforms", &platforms)
            ),
        };
    }
    if !imported.selectors.is_empty() {
        text += "  # `landfall update` selects the tags of these, and writes them here\n";
    }
    for (selector, platforms) in &imported.selectors {
        let newest = selector.newest;
        let newest = newest.map_or_else(String::new, |newest| format!(", newest: {newest}"));
        let _ = writeln!(
            text,
            "  - {{repo: {}, select: {}{newest}{}{}}}",
            in_quotes(&selector.repository),
            in_quotes(&selector.select),
            list("except", &selector.except),
            list("platforms", platforms.iter().flatten()),
        );
    }
    for (reference, archive) in &imported.archives {
        let [reference, archive] = [reference, archive].map(|text| in_quotes(text));
        let _ = writeln!(text, "  - {{ref: {reference}, archive: {archive}}}");
    }
    if !imported.files.is_empty() {
        text += "\nfiles:\n";
    }
    for (url, entry) in &imported.files {
        // a manifest would read `${` as the beginning of a variable
        let key = if is_web_url(url) { "url" } else { "path" };
        let _ = writeln!(text, "  - {key}: {}", in_quotes(&url.replace("${", "$%7B")));
        if let Some(checksum) = &entry.checksum {
            let _ = writeln!(text, "    checksum: {checksum}");
        }
        if let Some(mode) = &entry.mode {
            let _ = writeln!(text, "    mode: \"{mode}\"");
        }
    }
    if !imported.charts.is_empty() {
        text += "\ncharts:\n";
    }
    for chart in &imported.charts {
        let _ = writeln!(text, "  - {chart}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: ImportSource = ImportSource {
        file: String::new(),
        text: String::new(),
    };

    #[test]
    fn names_of_one_digest_share_their_platforms() {
        let [one, two] = ["1", "2"].map(|text| Digest::sha256(text.as_bytes()));
        let mut imported = ImportedItems::default();
        for (reference, platforms) in [
            (format!("h.test/x@{one}"), &["linux/amd64"][..]),
            (format!("h.test/x:1@{one}"), &["linux/arm64"]),
            (format!("h.test/x:1@{two}"), &["local\n", "linux/s390x"]),
            (format!("h.test/x:2@{two}"), &["local\n"]),
        ] {
            let platforms: Vec<String> = platforms.iter().map(|&one| one.to_owned()).collect();
            imported.image(SOURCE.at(""), &reference, &platforms);
        }
        let made = manifest_of(&imported, "n", "t");
        let both = "platforms: [linux/amd64, linux/arm64]";
        assert!(
            made.contains(&format!("h.test/x@{one}\", {both}")),
            "{made}"
        );
        assert!(made.contains(&format!("h.test/x@{two}\", platforms: [linux/s390x]")));
        assert!(made.contains(&format!("  - h.test/x:2@{two}\n")), "{made}");
        assert_eq!(imported.entries(), 3);
        // otherwise nobody would notice that more platforms are mirrored than the file lists
        let notes = imported.notes.join("\n");
        assert_eq!(
            notes.matches("all its platforms are imported").count(),
            1,
            "{notes}"
        );
    }

    #[test]
    fn a_chart_with_the_beginning_of_a_variable_is_not_imported() {
        let mut imported = ImportedItems::default();
        for (repository, name, version) in [
            ("https://h.test/${x}", "c", "1.0.0"),
            ("https://h.test", "c", "${v}"),
            ("oci://h.test/charts", "${c", "1.0.0"),
        ] {
            let chart = ImportedChart {
                repository,
                name,
                version,
                has_images: false,
                values: None,
            };
            imported.chart(SOURCE.at(""), chart);
        }
        assert_eq!((imported.entries(), imported.not_imported.len()), (0, 3));
    }
}
