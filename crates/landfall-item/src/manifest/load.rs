//! Reads the files and folders that the command line names into [`MergedManifest`].

use super::expanded_manifest::ExpandedManifest;
use super::faults::ManifestFaults;
use super::lists::format_of;
use super::schema::{ListEntry, ListFormat, ManifestDocument};
use super::{MergedManifest, check, merge};
use crate::ManifestResult;
use landfall_model::Platform;
use landfall_model::document::{
    self, Diagnostic, ReadAll, SourceSpan, SourceText, is_leftover, nearest, read_text_input,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Why manifests cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadManifestError {
    /// A file or folder cannot be read.
    #[error("cannot read {path}: {source}")]
    Open {
        /// The path of the file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A folder has no manifest.
    #[error(
        "there is no manifest in {0}: it is searched for *.yaml and *.yml with `kind: Manifest`, \
         folders below it are not"
    )]
    NoManifest(PathBuf),
    /// Platforms are given where every image comes from a manifest.
    #[error(
        "--platform is for plain lists, and none is given here: a manifest names its own with \
         `platforms:`"
    )]
    NoList,
    /// The manifests contain errors.
    #[error(transparent)]
    Documents(ManifestFaults),
}

impl LoadManifestError {
    /// The file or folder that it is about first.
    pub fn path(&self) -> &Path {
        match self {
            LoadManifestError::Open { path, .. } | LoadManifestError::NoManifest(path) => path,
            LoadManifestError::Documents(faults) => faults.first_file().unwrap_or(Path::new("")),
            LoadManifestError::NoList => Path::new(""),
        }
    }
}

/// The keys that say what a document is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DocumentHead {
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    kind: Option<String>,
}

const API_VERSION: &str = "landfall/v1";
const KIND: &str = "Manifest";
/// Keys whose texts are for people, and may have several lines.
const PROSE: [&str; 2] = ["why", "reason"];
/// Other documents of landfall that a folder may have beside manifests.
const OTHER_KINDS: [&str; 1] = ["Site"];

/// Reads and merges the manifests at `paths`. A file without `apiVersion` may be a list of images
/// of another tool, in one of the formats of `lists:`. In a folder it reads every `*.yaml` and
/// `*.yml`, but not those in folders below it, and skips other documents of landfall. The order of
/// `paths` changes nothing but places.
///
/// # Errors
/// If a file or folder cannot be read, a folder has no manifest, or a file has an error.
pub fn load(paths: &[PathBuf]) -> Result<MergedManifest, LoadManifestError> {
    load_for(paths, &[])
}

/// As [`load`], with the platforms for the images of plain lists, which cannot name any themselves.
///
/// # Errors
/// As [`load`], and when platforms are given, and no plain list.
pub fn load_for(
    paths: &[PathBuf],
    platforms: &[Platform],
) -> Result<MergedManifest, LoadManifestError> {
    load_edited(paths, platforms, &FileOverrides::default())
}

/// Texts that stand in place of those of files: of manifests and of lists.
pub type FileOverrides = BTreeMap<PathBuf, String>;

/// As [`load_for`], with these texts in place of the files'.
///
/// # Errors
/// As there.
pub fn load_edited(
    paths: &[PathBuf],
    platforms: &[Platform],
    edited: &FileOverrides,
) -> Result<MergedManifest, LoadManifestError> {
    let (mut all, mut faults) = (Vec::new(), ManifestFaults::default());
    let mut lists = 0;
    for path in paths {
        if !path.is_dir() {
            let (name, content) = (path.display().to_string(), content(path, edited)?);
            let format = if is_document(&content) {
                None
            } else {
                format_of(&content)
            };
            if let Some(format) = format {
                let list = SourceText::plain(name, content);
                all.push(check::plain_list(
                    format,
                    &list,
                    platforms.to_vec(),
                    &mut faults,
                ));
                lists += 1;
                continue;
            }
            let read = read(
                path,
                &SourceText::yaml(name, content),
                false,
                edited,
                &mut faults,
            );
            all.extend(faults.take(read).flatten().map(|read| read.requests));
            continue;
        }
        let before = all.len();
        for file in folder(path)? {
            let text = SourceText::yaml(file.display().to_string(), content(&file, edited)?);
            let read = read(&file, &text, true, edited, &mut faults);
            all.extend(faults.take(read).flatten().map(|read| read.requests));
        }
        if all.len() == before && faults.is_empty() {
            return Err(LoadManifestError::NoManifest(path.clone()));
        }
    }
    if lists == 0 && !platforms.is_empty() {
        return Err(LoadManifestError::NoList);
    }
    // what is missing because of a fault would be a fault itself
    let wanted = if faults.is_empty() {
        merge::merge(all, &mut faults)
    } else {
        MergedManifest::default()
    };
    if faults.is_empty() {
        Ok(wanted)
    } else {
        Err(LoadManifestError::Documents(faults))
    }
}

/// The content of a file, without the byte order mark that editors on Windows begin it with.
fn content(path: &Path, edited: &FileOverrides) -> Result<String, LoadManifestError> {
    let open = |source| LoadManifestError::Open {
        path: path.into(),
        source,
    };
    let content = match edited.get(path) {
        Some(text) => text.clone(),
        None => read_text_input(path).map_err(open)?,
    };
    Ok(content.trim_start_matches('\u{feff}').to_owned())
}

/// Whether a text means to be a document of landfall.
fn is_document(text: &str) -> bool {
    text.lines()
        .any(|line| line.starts_with("apiVersion:") || line.starts_with("kind:"))
}

/// The YAML files of a folder, sorted.
fn folder(path: &Path) -> Result<Vec<PathBuf>, LoadManifestError> {
    let open = |source| LoadManifestError::Open {
        path: path.into(),
        source,
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(open)? {
        let file = entry.map_err(open)?.path();
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

/// One manifest: its text, what people wrote, and what that asks for.
pub(super) struct ParsedManifest {
    pub(super) path: PathBuf,
    pub(super) text: Rc<SourceText>,
    pub(super) document: ManifestDocument,
    pub(super) requests: ExpandedManifest,
}

/// Reads the manifests among `paths`; those in folders too, and no plain lists.
pub(super) fn each(
    paths: &[PathBuf],
    edited: &FileOverrides,
) -> Result<Vec<ParsedManifest>, LoadManifestError> {
    let (mut all, mut faults) = (Vec::new(), ManifestFaults::default());
    for path in paths {
        let is_folder = path.is_dir();
        for file in if is_folder {
            folder(path)?
        } else {
            vec![path.clone()]
        } {
            let content = content(&file, edited)?;
            if !is_folder && !is_document(&content) {
                continue;
            }
            let text = SourceText::yaml(file.display().to_string(), content);
            let read = read(&file, &text, is_folder, edited, &mut faults);
            all.extend(faults.take(read).flatten());
        }
    }
    if faults.is_empty() {
        Ok(all)
    } else {
        Err(LoadManifestError::Documents(faults))
    }
}

/// The manifests among `paths`, those in folders too.
///
/// # Errors
/// As [`load_for`].
pub fn manifest_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, LoadManifestError> {
    Ok(each(paths, &FileOverrides::default())?
        .into_iter()
        .map(|read| read.path)
        .collect())
}

/// Reads one manifest; `None` for another document of landfall, if `may_be_other` allows that.
fn read(
    path: &Path,
    text: &Rc<SourceText>,
    may_be_other: bool,
    edited: &FileOverrides,
    faults: &mut ManifestFaults,
) -> ManifestResult<Option<ParsedManifest>> {
    let head: ReadAll<DocumentHead> = document::read_all(text);
    let is_manifest = head
        .value
        .map(|head| is_manifest(&head, text, may_be_other))
        .transpose()?;
    if is_manifest == Some(false) {
        return Ok(None);
    }
    document::control_characters(&text.file, &text.text, &PROSE)
        .into_iter()
        .for_each(|fault| faults.push(fault));
    let ReadAll {
        value,
        text,
        faults: of_document,
    } = document::read_all::<ManifestDocument>(text);
    of_document.into_iter().for_each(|fault| faults.push(fault));
    let (Some(document), text) = (value, &text) else {
        return Ok(None);
    };
    let base = path.parent().unwrap_or(Path::new(""));
    let lists: Vec<(ListFormat, Rc<SourceText>)> = document
        .lists
        .iter()
        .enumerate()
        .filter_map(|(index, list)| {
            let at = SourceSpan::new(text, text.root.get("lists").item(index).get("file").span());
            faults.take(read_list(list, base, edited, &at))
        })
        .collect();
    let before = faults.is_empty();
    let items = check::check(&document, text, &lists, faults)?;
    if before && faults.is_empty() && items.is_empty() {
        let help = Some("write `images:`, `files:`, `charts:`, `packages:` or `lists:`".into());
        return Err(SourceSpan::new(text, 0..0).fault("this manifest asks for nothing", help));
    }
    Ok(Some(ParsedManifest {
        path: path.into(),
        text: text.clone(),
        document,
        requests: items,
    }))
}

fn read_list(
    list: &ListEntry,
    base: &Path,
    edited: &FileOverrides,
    at: &SourceSpan,
) -> Result<(ListFormat, Rc<SourceText>), Box<Diagnostic>> {
    let path = base.join(&list.file);
    let read = || match edited.get(&path) {
        Some(text) => Ok(text.clone()),
        None => read_text_input(&path),
    };
    let content = read().map_err(|error| {
        let help = "the path starts from the folder of this manifest".into();
        at.fault(
            format!("cannot read {}: {error}", path.display()),
            Some(help),
        )
    })?;
    Ok((
        list.format,
        SourceText::plain(path.display().to_string(), content),
    ))
}

/// Whether the document is a manifest. If `may_be_other`, another document of landfall is no error.
fn is_manifest(
    head: &DocumentHead,
    text: &Rc<SourceText>,
    may_be_other: bool,
) -> Result<bool, Box<Diagnostic>> {
    let at = |key: &str| SourceSpan::new(text, text.root.get(key).span());
    let begin = Some(format!(
        "to write a manifest of what this file names: landfall init {}; a manifest begins with \
         `apiVersion: \
         {API_VERSION}` and `kind: {KIND}`",
        text.file
    ));
    match head.api_version.as_deref() {
        Some(API_VERSION) => {}
        Some(other) => {
            let message = if other.starts_with("landfall/") {
                format!("this release of landfall reads {API_VERSION}, not {other}")
            } else {
                format!("this is no manifest of landfall: its apiVersion is `{other}`")
            };
            return Err(at("apiVersion").fault(message, begin));
        }
        None => {
            let start = SourceSpan::new(text, 0..0);
            return Err(start.fault("this is no manifest: it has no `apiVersion`", begin));
        }
    }
    match head.kind.as_deref() {
        Some(KIND) => Ok(true),
        Some(other) if OTHER_KINDS.contains(&other) => {
            if may_be_other {
                Ok(false)
            } else {
                let help = Some(format!(
                    "a {} is named with --{}",
                    other.to_lowercase(),
                    other.to_lowercase()
                ));
                Err(at("kind").fault(format!("this is a {other}, not a {KIND}"), help))
            }
        }
        Some(other) => {
            let known = std::iter::once(KIND).chain(OTHER_KINDS);
            let help = nearest(other, known)
                .map(|near| format!("did you mean `{near}`?"))
                .or(begin);
            Err(at("kind").fault(
                format!("`{other}` is no kind of document that landfall knows"),
                help,
            ))
        }
        None => {
            Err(SourceSpan::new(text, 0..0).fault("this is no manifest: it has no `kind`", begin))
        }
    }
}
