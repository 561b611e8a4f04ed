//! What a file is that somebody names, told where it is not what the verb takes.

use crate::cli::shared::CliError;
use crate::push::Receipt;
use landfall_bundle::{self as bundle, is_split};
use landfall_item::lockfile::Lock;
use landfall_item::manifest;
use landfall_item::manifest::MergedManifest;
use landfall_model::config::Site;
use landfall_model::document::{open_input, read_input};
use landfall_model::{Platform, TargetRegistry, has_host};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Endings of files that people name, which no registry's name has.
const FILE_ENDINGS: [&str; 10] = [
    "bundle", "zst", "tar", "tgz", "gz", "lock", "json", "yaml", "yml", "txt",
];

/// How much of a file is looked at, in bytes.
const LOOK: u64 = 64 << 10;

/// What landfall knows files to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileKind {
    Manifest,
    Site,
    Lock,
    Receipt,
    Bundle,
    /// A list in the format of this name.
    List(&'static str),
    /// A text with the marks that git leaves where two changes meet.
    Conflict,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Manifest => "a manifest",
            FileKind::Site => "a site",
            FileKind::Lock => "a lock",
            FileKind::Receipt => "the receipt of a push",
            FileKind::Bundle => "a bundle",
            FileKind::List(_) => "a list of images",
            FileKind::Conflict => "a text in which git left a conflict",
        })
    }
}

impl FileKind {
    /// What the file at `path` is by its looks.
    fn of(path: &Path) -> Option<FileKind> {
        let mut bytes = Vec::new();
        open_input(path)
            .and_then(|file| file.take(LOOK).read_to_end(&mut bytes))
            .ok()?;
        if bytes.starts_with(&zstd::zstd_safe::MAGICNUMBER.to_le_bytes()) {
            return Some(FileKind::Bundle);
        }
        let text = match std::str::from_utf8(&bytes) {
            Ok(text) => text,
            // the last character may be cut
            Err(error) if error.error_len().is_none() => {
                std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
            }
            Err(_) => return None,
        };
        let text = text.trim_start_matches('\u{feff}');
        let has = |start: &str| text.lines().any(|line| line.starts_with(start));
        if has("<<<<<<< ") && has(">>>>>>> ") {
            return Some(FileKind::Conflict);
        }
        let value = |key: &str| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            line.map(|value| value.trim().trim_matches(['"', '\'']))
        };
        match (value("apiVersion"), value("kind")) {
            (Some(version), Some("Manifest")) if version.starts_with("landfall/") => {
                Some(FileKind::Manifest)
            }
            (Some(version), Some("Site")) if version.starts_with("landfall/") => {
                Some(FileKind::Site)
            }
            (Some(_), _) => None,
            _ if value("version").is_some() && (has("images:") || has("files:")) => {
                Some(FileKind::Lock)
            }
            _ if text.starts_with("# landfall.lock") => Some(FileKind::Lock),
            _ if text.trim_start().starts_with('{')
                && text.contains("\"registry\"")
                && text.contains("\"lock\"") =>
            {
                Some(FileKind::Receipt)
            }
            _ => manifest::list_format(text).map(FileKind::List),
        }
    }

    /// What people do with such a file.
    fn use_of(self) -> &'static str {
        match self {
            FileKind::Manifest | FileKind::List(_) => "`landfall lock -f` makes a lock of it",
            FileKind::Site => "it is named with --site",
            FileKind::Lock => {
                "it is named with --lock; `landfall pack` makes a bundle of what it names"
            }
            FileKind::Receipt => "`landfall pack --since` and `landfall diff` take it",
            FileKind::Bundle => {
                "`landfall verify`, `ls`, `push` and `serve` take it, other verbs with --bundle"
            }
            FileKind::Conflict => "settle it first; a lock is written anew by `landfall lock`",
        }
    }
}

/// `error`, or what the file is where it is something else that landfall knows.
fn instead(wanted: FileKind, path: &Path, error: impl Into<CliError>) -> CliError {
    // a list may stand for a manifest
    let fits = |found| {
        found == wanted || matches!((wanted, found), (FileKind::Manifest, FileKind::List(_)))
    };
    match FileKind::of(path).filter(|found| !fits(*found)) {
        Some(found) => CliError::usage(format!(
            "{} is {found}, not {wanted}; {}",
            path.display(),
            found.use_of()
        )),
        None => error.into(),
    }
}

/// The format of the list of images at `path`; `None` where it is something that `landfall
/// discover` reads.
pub(crate) fn list_format(path: &Path) -> Result<Option<&'static str>, CliError> {
    match FileKind::of(path) {
        None => Ok(None),
        Some(FileKind::List(format)) => Ok(Some(format)),
        Some(found) => {
            let message = format!(
                "{} is {found}, and there is no need to begin; {}",
                path.display(),
                found.use_of()
            );
            Err(CliError::usage(message))
        }
    }
}

/// Whether the file at `path` looks like a manifest.
pub(crate) fn is_manifest(path: &Path) -> bool {
    FileKind::of(path) == Some(FileKind::Manifest)
}

/// Whether the file at `path` looks like a lock.
pub(crate) fn is_lock(path: &Path) -> bool {
    FileKind::of(path) == Some(FileKind::Lock)
}

/// The registry that `place` names: no file is there, and it has the form `HOST:PORT[/PREFIX]` or
/// `HOST.DOMAIN[/PREFIX]`.
pub(crate) fn registry(place: &Path) -> Option<TargetRegistry> {
    let is_host = |text: &&str| !text.contains("://") && has_host(&format!("{text}/x"));
    let text = place.to_str().filter(is_host).filter(|_| !place.exists())?;
    let ending = place
        .extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default();
    // a name with the ending of a file is a file that is not there
    let is_file = !text.contains(':') && FILE_ENDINGS.contains(&ending);
    if is_file || is_split(&[place.to_path_buf()]) {
        None
    } else {
        text.parse().ok()
    }
}

/// Reads the lock at `path`.
pub(crate) fn lock(path: &Path) -> Result<Lock, CliError> {
    lock_and_text(path).map(|(lock, _)| lock)
}

/// Reads the lock at `path`; with its text, as it stands there.
pub(crate) fn lock_and_text(path: &Path) -> Result<(Lock, String), CliError> {
    Lock::load_with_text(path).map_err(|error| instead(FileKind::Lock, path, error))
}

/// Reads the site at `path`.
pub(crate) fn site(path: &Path) -> Result<Site, CliError> {
    Site::load(path).map_err(|error| instead(FileKind::Site, path, error))
}

/// Reads the manifests and plain lists at `paths`; `platforms` are for the lists.
pub(crate) fn manifests(
    paths: &[PathBuf],
    platforms: &[Platform],
) -> Result<MergedManifest, CliError> {
    manifest::load_for(paths, platforms).map_err(|error| {
        let path = error.path().to_path_buf();
        instead(FileKind::Manifest, &path, error)
    })
}

/// Reads the receipt at `path`.
pub(crate) fn receipt(path: &Path) -> Result<Receipt, CliError> {
    let cannot =
        |why: String| CliError::usage(format!("cannot read the receipt {}: {why}", path.display()));
    let bytes = read_input(path).map_err(|error| cannot(error.to_string()))?;
    let receipt: Receipt = serde_json::from_slice(&bytes)
        .map_err(|error| cannot(format!("it is no receipt of a push: {error}")))?;
    match receipt.version {
        1 => Ok(receipt),
        version => Err(cannot(format!(
            "it has version {version}, this landfall reads version 1"
        ))),
    }
}

/// Why the bundle at `places` cannot be opened, which is no bundle perhaps.
pub(crate) fn no_bundle(places: &[PathBuf], error: bundle::BundleError) -> CliError {
    match places {
        [path] if !is_split(places) => instead(FileKind::Bundle, path, error),
        _ => error.into(),
    }
}
