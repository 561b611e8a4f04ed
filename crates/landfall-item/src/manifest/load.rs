//! Reads manifests from files and folders into a [`MergedManifest`].

use super::import::import_format_of;
use super::lists::{ImageListFormat, format_of};
use super::merge::ExpandedManifest;
use super::schema::{ListEntry, ListFormat, ManifestDocument};
use super::{MergedManifest, check, merge};
use crate::ManifestResult;
use landfall_model::document::{
    self, Diagnostic, ReadAll, SourceSpan, SourceText, is_leftover, nearest, read_text_input,
};
use landfall_model::{Failure, PlatformRequest};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Why manifests cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct LoadManifestError {
    message: String,
    /// The first file or folder with an error; empty if the error is about none.
    pub path: PathBuf,
}

impl LoadManifestError {
    fn new(path: impl Into<PathBuf>, message: impl ToString) -> LoadManifestError {
        LoadManifestError {
            message: message.to_string(),
            path: path.into(),
        }
    }

    fn open(path: &Path, source: std::io::Error) -> LoadManifestError {
        let message = format!("cannot read {}: {source}", path.display());
        LoadManifestError::new(path, message)
    }
}

/// The keys that identify a document.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DocumentHead {
    api_version: Option<String>,
    kind: Option<String>,
}

const API_VERSION: &str = "landfall/v1";
const KIND: &str = "Manifest";
/// Keys whose text is for people and may contain line breaks.
const PROSE: [&str; 2] = ["why", "reason"];
/// Other kinds of landfall documents that a folder of manifests may contain.
const OTHER_KINDS: [&str; 1] = ["Site"];

/// Reads and merges the manifests at `paths`. A file without `apiVersion` and `kind` may be a plain
/// list: an image list of another tool, in one of the formats of `lists:`. In a folder, the
/// `*.yaml` and `*.yml` files are read, but not those in subfolders, and landfall documents of
/// other kinds are skipped. The order of `paths` only affects positions in messages.
///
/// # Errors
/// If a file or folder cannot be read, a folder contains no manifest, or a file contains an error.
pub fn load(paths: &[PathBuf]) -> Result<MergedManifest, LoadManifestError> {
    let manifest = load_edited(paths, &[], &FileOverrides::default())?;
    manifest.check_versions()?;
    Ok(manifest)
}

impl MergedManifest {
    /// Checks that each entry with `select` has versions.
    ///
    /// # Errors
    /// Names the first entry that has none.
    pub fn check_versions(&self) -> Result<(), LoadManifestError> {
        match self.unselected.first() {
            Some((name, at)) => {
                let message = format!(
                    "{at}: {name} has no versions yet: `landfall update` selects them and writes \
                     them here"
                );
                Err(LoadManifestError::new(&at.file, message))
            }
            None => Ok(()),
        }
    }
}

/// Contents that override those of manifests and lists on disk, by path.
pub type FileOverrides = BTreeMap<PathBuf, String>;

/// Like [`load`], with some files overridden, and entries with `select` that have no versions yet.
/// `update` tries a new version this way before it writes the file. `platforms` are requested for
/// the images of plain lists, which cannot name platforms themselves.
///
/// # Errors
/// As for [`load`], and if platforms are given without a plain list.
pub fn load_edited(
    paths: &[PathBuf],
    platforms: &[PlatformRequest],
    edited: &FileOverrides,
) -> Result<MergedManifest, LoadManifestError> {
    let mut all = Vec::new();
    let mut faults = ManifestFaults::default();
    let mut lists = 0;
    for path in paths {
        let before = all.len();
        for file in files_at(path, edited)? {
            if let Some(format) = file.list {
                all.push(check::plain_list(
                    format,
                    &file.text,
                    platforms.to_vec(),
                    &mut faults,
                ));
                lists += 1;
            } else {
                let parsed = parse(&file, path.is_dir(), edited, &mut faults);
                all.extend(faults.take(parsed).flatten().map(|parsed| parsed.requests));
            }
        }
        if path.is_dir() && all.len() == before && faults.is_empty() {
            let message = format!(
                "{} contains no manifest: landfall looks for *.yaml and *.yml files with \
                 `kind: Manifest`, but not in subfolders",
                path.display()
            );
            return Err(LoadManifestError::new(path, message));
        }
    }
    if lists == 0 && !platforms.is_empty() {
        return Err(LoadManifestError::new(
            "",
            "--platform applies only to image lists, but none is given; write `platforms:` in the \
             manifest",
        ));
    }
    // entries with errors are not in `all`, which would cause misleading errors when merging
    let merged = if faults.is_empty() {
        merge::merge(all, &mut faults)
    } else {
        MergedManifest::default()
    };
    faults.unless_any(merged)
}

/// The text of the file at `path`, overridden or read from disk.
fn edited_or_read(path: &Path, edited: &FileOverrides) -> std::io::Result<String> {
    match edited.get(path) {
        Some(text) => Ok(text.clone()),
        None => read_text_input(path),
    }
}

/// The text of the manifest at `path`, overridden or read from disk.
///
/// # Errors
/// If it cannot be read.
pub fn text_of(path: &Path, edited: &FileOverrides) -> Result<String, LoadManifestError> {
    edited_or_read(path, edited).map_err(|source| LoadManifestError::open(path, source))
}

/// A file that is read as a manifest.
struct ManifestFile {
    path: PathBuf,
    text: Rc<SourceText>,
    /// Its format, if it is a plain list of images.
    list: Option<&'static ImageListFormat>,
}

/// The file at `path`, or the YAML files of the folder there.
fn files_at(path: &Path, edited: &FileOverrides) -> Result<Vec<ManifestFile>, LoadManifestError> {
    let is_folder = path.is_dir();
    let files = if is_folder {
        yaml_files(path)?
    } else {
        vec![path.into()]
    };
    let read = files.into_iter().map(|path| {
        let text = text_of(&path, edited)?;
        // editors on Windows add a byte order mark
        let text = text.trim_start_matches('\u{feff}').to_owned();
        let name = path.display().to_string();
        let list = plain_list_format(&text).filter(|_| !is_folder);
        let text = match list {
            Some(_) => SourceText::plain(name, text),
            None => SourceText::yaml(name, text),
        };
        Ok(ManifestFile { path, text, list })
    });
    read.collect()
}

/// The format of a file that is given in place of a manifest, if it is a plain list.
fn plain_list_format(text: &str) -> Option<&'static ImageListFormat> {
    // a landfall document with an error must not be mistaken for a list
    if is_document(text) {
        None
    } else {
        format_of(text)
    }
}

/// Whether a text looks like a landfall document, even if it is not valid YAML.
fn is_document(text: &str) -> bool {
    text.lines()
        .any(|line| line.starts_with("apiVersion:") || line.starts_with("kind:"))
}

/// The YAML files of a folder, sorted.
fn yaml_files(path: &Path) -> Result<Vec<PathBuf>, LoadManifestError> {
    let mut files = Vec::new();
    let entries =
        std::fs::read_dir(path).map_err(|source| LoadManifestError::open(path, source))?;
    for entry in entries {
        let entry = entry.map_err(|source| LoadManifestError::open(path, source))?;
        let file = entry.path();
        let is_yaml = file
            .extension()
            .is_some_and(|ending| ending == "yaml" || ending == "yml");
        if is_yaml && !file.is_dir() && !is_leftover(&file) {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// One manifest: its text, the parsed document, and its requests.
pub(super) struct ParsedManifest {
    pub(super) path: PathBuf,
    pub(super) text: Rc<SourceText>,
    pub(super) document: ManifestDocument,
    pub(super) requests: ExpandedManifest,
}

/// Parses the manifests in `paths`, including those in folders. Skips plain lists.
pub(super) fn each(
    paths: &[PathBuf],
    edited: &FileOverrides,
) -> Result<Vec<ParsedManifest>, LoadManifestError> {
    let mut all = Vec::new();
    let mut faults = ManifestFaults::default();
    for path in paths {
        for file in files_at(path, edited)? {
            if file.list.is_none() {
                let parsed = parse(&file, path.is_dir(), edited, &mut faults);
                all.extend(faults.take(parsed).flatten());
            }
        }
    }
    faults.unless_any(all)
}

/// The manifest files in `paths`, including those in folders.
///
/// # Errors
/// If a file or folder cannot be read, or a manifest contains an error.
pub fn manifest_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, LoadManifestError> {
    Ok(each(paths, &FileOverrides::default())?
        .into_iter()
        .map(|read| read.path)
        .collect())
}

/// Parses one manifest. Returns `None` if the document is invalid and its errors were added to
/// `faults`, or, with `may_be_other`, if it is another kind of landfall document.
fn parse(
    file: &ManifestFile,
    may_be_other: bool,
    edited: &FileOverrides,
    faults: &mut ManifestFaults,
) -> ManifestResult<Option<ParsedManifest>> {
    // The head is read first, so that a document of another kind is not reported key by key.
    let head: ReadAll<DocumentHead> = document::read_all(&file.text);
    let is_manifest = head
        .value
        .map(|head| is_manifest(&head, &file.text, may_be_other))
        .transpose()?;
    if is_manifest == Some(false) {
        return Ok(None);
    }
    for fault in document::control_characters(&file.text.file, &file.text.text, &PROSE) {
        faults.push(fault);
    }
    let ReadAll {
        value,
        text,
        faults: document_faults,
    } = document::read_all::<ManifestDocument>(&file.text);
    for fault in document_faults {
        faults.push(fault);
    }
    let (Some(document), text) = (value, &text) else {
        return Ok(None);
    };
    let base = file.path.parent().unwrap_or(Path::new(""));
    let lists: Vec<(ListFormat, Rc<SourceText>)> = document
        .lists
        .iter()
        .enumerate()
        .filter_map(|(index, list)| {
            let at = SourceSpan::new(text, text.root.get("lists").item(index).get("file").span());
            faults.take(read_list(list, base, edited, &at))
        })
        .collect();
    let was_valid = faults.is_empty();
    let items = check::check(&document, text, &lists, faults)?;
    // entries with errors are not in `items`: do not also report that the manifest has no items
    if was_valid && faults.is_empty() && items.is_empty() {
        let help =
            "add `images:`, `files:`, `charts:`, `packages:`, `git:`, `providers:` or `lists:`";
        let start = SourceSpan::new(text, 0..0);
        return Err(start.fault("this manifest contains no items", Some(help)));
    }
    Ok(Some(ParsedManifest {
        path: file.path.clone(),
        text: text.clone(),
        document,
        requests: items,
    }))
}

/// Reads the file of `list`, whose path is relative to the folder `base`.
fn read_list(
    list: &ListEntry,
    base: &Path,
    edited: &FileOverrides,
    at: &SourceSpan,
) -> Result<(ListFormat, Rc<SourceText>), Box<Diagnostic>> {
    let path = base.join(&list.file);
    let content = edited_or_read(&path, edited).map_err(|error| {
        at.fault(
            format!("cannot read {}: {error}", path.display()),
            Some("the path is relative to the folder of this manifest"),
        )
    })?;
    Ok((
        list.format,
        SourceText::plain(path.display().to_string(), content),
    ))
}

/// Whether the document is a manifest. Any other document is an error, except another kind of
/// landfall document if `may_be_other` is set.
fn is_manifest(
    head: &DocumentHead,
    text: &Rc<SourceText>,
    may_be_other: bool,
) -> Result<bool, Box<Diagnostic>> {
    let at = |key: &str| SourceSpan::new(text, text.root.get(key).span());
    let start = SourceSpan::new(text, 0..0);
    let create = import_format_of(&text.text)
        .map_or_else(|| "init".to_owned(), |format| format!("import {format}"));
    let help = Some(format!(
        "a manifest begins with `apiVersion: {API_VERSION}` and `kind: {KIND}`; to create one from \
         this file: landfall {create} {}",
        text.file
    ));
    match head.api_version.as_deref() {
        Some(API_VERSION) => {}
        Some(other) => {
            let at = at("apiVersion");
            if other.starts_with("landfall/") {
                let message = format!("this release of landfall reads {API_VERSION}, not {other}");
                let help = format!("use a newer release, or write `apiVersion: {API_VERSION}`");
                return Err(at.fault(message, Some(&help)));
            }
            let message = format!("this is not a landfall manifest: its apiVersion is `{other}`");
            return Err(at.fault(message, help.as_deref()));
        }
        None if text.text.trim().is_empty() => {
            let help = "`landfall init -o DIR` writes a first manifest";
            return Err(start.fault("the file is empty", Some(help)));
        }
        None => {
            return Err(start.fault(
                "this is not a manifest: it has no `apiVersion`",
                help.as_deref(),
            ));
        }
    }
    match head.kind.as_deref() {
        Some(KIND) => Ok(true),
        Some(other) if OTHER_KINDS.contains(&other) => {
            if may_be_other {
                Ok(false)
            } else {
                let flag = other.to_lowercase();
                Err(at("kind").fault(
                    format!("this is a {other}, not a {KIND}"),
                    Some(&format!("pass it with --{flag}")),
                ))
            }
        }
        Some(other) => {
            let known = std::iter::once(KIND).chain(OTHER_KINDS);
            let help = nearest(other, known)
                .map(|near| format!("did you mean `{near}`?"))
                .or(help);
            Err(at("kind").fault(
                format!("`{other}` is not a kind of landfall document"),
                help.as_deref(),
            ))
        }
        None => Err(start.fault("this is not a manifest: it has no `kind`", help.as_deref())),
    }
}

// Collects the errors in manifests, so that all are reported together.

/// How many errors are kept. The number is limited because each error contains the text of its
/// file.
const MAX_FAULTS: usize = 20;

/// The errors in manifests, in the order of the files.
#[derive(Debug, Default)]
pub(super) struct ManifestFaults {
    first: Vec<Diagnostic>,
    /// The number of errors that were not kept.
    more: usize,
}

impl ManifestFaults {
    pub(super) fn push(&mut self, fault: Diagnostic) {
        if self.first.len() < MAX_FAULTS {
            self.first.push(fault);
        } else {
            self.more += 1;
        }
    }

    /// The value, or `None` after recording the error.
    pub(super) fn take<T>(&mut self, value: Result<T, Box<Diagnostic>>) -> Option<T> {
        value.map_err(|fault| self.push(*fault)).ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// The value, or the error about all that was found.
    fn unless_any<T>(self, value: T) -> Result<T, LoadManifestError> {
        match self.first.first() {
            Some(first) => Err(LoadManifestError::new(&*first.file, &self)),
            None => Ok(value),
        }
    }
}

impl fmt::Display for ManifestFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // keys are checked before values, but people read a file from top to bottom
        let mut first: Vec<&Diagnostic> = self.first.iter().collect();
        let rank = |fault: &Diagnostic| self.first.iter().position(|one| one.file == fault.file);
        first.sort_by_cached_key(|fault| (rank(fault), fault.line_column()));
        let first: Vec<String> = first.iter().map(ToString::to_string).collect();
        f.write_str(&first.join("\n\n"))?;
        match self.more {
            0 => Ok(()),
            1 => f.write_str("\n\nand 1 more error"),
            more => write!(f, "\n\nand {more} more errors"),
        }
    }
}

impl From<LoadManifestError> for Failure {
    fn from(error: LoadManifestError) -> Failure {
        Failure::usage(error.to_string())
    }
}
