//! Reads input files. If a file is of another kind than expected, the error says what it is.

use super::open_bundle::is_remote;
use super::{CliError, Context, open_bundle};
use crate::client::DeliveredBundles;
use crate::push::Receipt;
use landfall_bundle as bundle;
use landfall_bundle::{Bundle, DeltaBase, is_split};
use landfall_item::lockfile::Lock;
use landfall_item::manifest::{self, FileOverrides, MergedManifest};
use landfall_model::config::Site;
use landfall_model::document::{open_input, read_input, read_text_input, utf16_units};
use landfall_model::{Digest, Failure, PlatformRequest, TargetRegistry, has_host};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Extensions of input files. An argument with one of them and without a port is a file and not a
/// host name, even if no such file exists.
const FILE_ENDINGS: [&str; 10] = [
    "bundle", "zst", "tar", "tgz", "gz", "lock", "json", "yaml", "yml", "txt",
];

/// The number of bytes of a file that are read to recognize it.
const SAMPLE_BYTES: u64 = 64 << 10;

/// The kinds of input files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
enum FileKind {
    #[display("a manifest")]
    Manifest,
    #[display("a site")]
    Site,
    #[display("a lock")]
    Lock,
    #[display("a push receipt")]
    Receipt,
    #[display("a bundle")]
    Bundle,
    /// A list of images, with the name of its format.
    #[display("a list of images")]
    List(&'static str),
    /// A text with conflict markers of git.
    #[display("a file with merge conflicts")]
    Conflict,
}

impl FileKind {
    /// Recognizes the file at `path` by its first bytes.
    fn recognize(path: &Path) -> Option<FileKind> {
        let mut bytes = Vec::new();
        open_input(path)
            .and_then(|file| file.take(SAMPLE_BYTES).read_to_end(&mut bytes))
            .ok()?;
        if bytes.starts_with(&zstd::zstd_safe::MAGICNUMBER.to_le_bytes()) {
            return Some(FileKind::Bundle);
        }
        let utf16 = utf16_units(&bytes).map(|units| String::from_utf16_lossy(&units));
        let text = match (&utf16, std::str::from_utf8(&bytes)) {
            (Some(text), _) => text,
            (None, Ok(text)) => text,
            // The end of the sample may be within a character.
            (None, Err(error)) if error.error_len().is_none() => {
                std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
            }
            (None, Err(_)) => return None,
        };
        let text = text.trim_start_matches('\u{feff}');
        let has = |start: &str| text.lines().any(|line| line.starts_with(start));
        // Checked first, because a file with conflict markers also looks like its former kind.
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
            // Any other document with an apiVersion is of Kubernetes or another tool.
            (Some(_), _) => None,
            _ if value("version").is_some() && (has("images:") || has("files:")) => {
                Some(FileKind::Lock)
            }
            _ if text.starts_with("# landfall.lock") => Some(FileKind::Lock),
            // Recognized by its keys, because the sample of a long receipt is not valid JSON.
            _ if text.trim_start().starts_with('{')
                && text.contains("\"registry\"")
                && text.contains("\"lock\"") =>
            {
                Some(FileKind::Receipt)
            }
            _ => manifest::list_format(text).map(FileKind::List),
        }
    }

    /// The help for a user who names a file of this kind for another purpose.
    fn usage(self) -> &'static str {
        match self {
            FileKind::Manifest | FileKind::List(_) => {
                "`landfall lock -f` reads it; `egress`, `mirror`, `refresh` and `update` have -f too"
            }
            FileKind::Site => "name it with --site",
            FileKind::Lock => "name it with --lock; `landfall pack` packs a bundle from it",
            FileKind::Receipt => "`landfall pack --since` and `landfall diff` read it",
            FileKind::Bundle => {
                "`landfall verify`, `ls`, `push` and `serve` read it, other verbs with --bundle"
            }
            FileKind::Conflict => "resolve them first; `landfall lock` writes a new lock",
        }
    }
}

/// The error for a file that cannot be read as `wanted`. If the file is of another kind, the
/// message says so; otherwise `error` is returned.
fn wrong_kind(wanted: FileKind, path: &Path, error: impl Into<CliError>) -> CliError {
    // A list of images is accepted as a manifest.
    let fits = |found| {
        found == wanted || matches!((wanted, found), (FileKind::Manifest, FileKind::List(_)))
    };
    match FileKind::recognize(path).filter(|found| !fits(*found)) {
        Some(found) => CliError::usage(format!("{} is {found}, not {wanted}", path.display()))
            .with_help(found.usage()),
        None => error.into(),
    }
}

/// The error for a file that a verb does not read, if it is one of the files of landfall.
pub(crate) fn unread(path: &Path) -> Option<CliError> {
    let found = FileKind::recognize(path)?;
    let message = format!("{} is {found}, which is not checked here", path.display());
    Some(CliError::usage(message).with_help(found.usage()))
}

/// The format of the list of images at `path`. Returns `None` if the kind of the file is unknown,
/// as for all files that `landfall discover` reads. A manifest or another file of landfall is an
/// error, because it needs no `init`.
pub(crate) fn list_format(path: &Path) -> Result<Option<&'static str>, CliError> {
    match FileKind::recognize(path) {
        None => Ok(None),
        Some(FileKind::List(format)) => Ok(Some(format)),
        Some(found) => {
            let message = format!("{} is already {found}", path.display());
            Err(CliError::usage(message).with_help(found.usage()))
        }
    }
}

/// Whether the file at `path` looks like a manifest.
pub(crate) fn is_manifest(path: &Path) -> bool {
    FileKind::recognize(path) == Some(FileKind::Manifest)
}

/// Whether the file at `path` looks like a lock.
pub(crate) fn is_lock(path: &Path) -> bool {
    FileKind::recognize(path) == Some(FileKind::Lock)
}

/// The registry that an argument names, if the argument has the form `HOST:PORT[/PREFIX]` or
/// `HOST.DOMAIN[/PREFIX]` and no file has this name.
pub(crate) fn registry(place: &Path) -> Option<TargetRegistry> {
    // `has_host` expects a reference, so a path is appended.
    let text = place
        .to_str()
        .filter(|text| !text.contains("://") && has_host(&format!("{text}/x")))
        .filter(|_| !place.exists())?;
    let ending = place
        .extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default();
    // `app.yaml` looks like a host name, but is a file that is missing.
    let is_file = !text.contains(':') && FILE_ENDINGS.contains(&ending);
    if is_file || is_split(&[place.to_path_buf()]) {
        None
    } else {
        text.parse().ok()
    }
}

/// Refuses an argument that is neither a file nor an object: a registry with a scheme, as in
/// `oci://172.20.0.2:5000`.
pub(crate) fn refuse_url(argument: &Path) -> Result<(), CliError> {
    let text = argument.to_str().unwrap_or_default();
    if !text.contains("://") || is_remote(argument) {
        return Ok(());
    }
    match text.parse::<TargetRegistry>() {
        Ok(_) => Ok(()),
        Err(why) => Err(CliError::usage(why.to_string())),
    }
}

/// Reads the lock at `path`.
pub(crate) fn lock(path: &Path) -> Result<Lock, CliError> {
    lock_and_text(path).map(|(lock, _)| lock)
}

/// Reads the lock at `path`, and its text.
pub(crate) fn lock_and_text(path: &Path) -> Result<(Lock, String), CliError> {
    Lock::load_with_text(path).map_err(|error| wrong_kind(FileKind::Lock, path, error))
}

/// Reads the site at `path`.
pub(crate) fn site(path: &Path) -> Result<Site, CliError> {
    Site::load(path).map_err(|error| wrong_kind(FileKind::Site, path, error))
}

/// Returns the `site.yaml` beside the first of these manifests and folders that has one. A user who
/// names no site may not know that it is not read.
pub(crate) fn site_beside(paths: &[PathBuf]) -> Option<String> {
    let site = |path: &PathBuf| {
        let folder = if path.is_dir() { path } else { path.parent()? };
        let site = folder.join("site.yaml");
        (FileKind::recognize(&site) == Some(FileKind::Site)).then(|| site.display().to_string())
    };
    paths.iter().find_map(site)
}

/// Reads the manifests and plain lists at `paths`; `platforms` are for the lists. Entries with
/// `select` may have no versions yet.
pub(crate) fn manifests(
    paths: &[PathBuf],
    platforms: &[PlatformRequest],
) -> Result<MergedManifest, CliError> {
    manifest::load_edited(paths, platforms, &FileOverrides::new()).map_err(|error| {
        let path = error.path.clone();
        wrong_kind(FileKind::Manifest, &path, error)
    })
}

/// The manifest files at `paths`, including those in folders, with their digests.
pub(crate) fn manifest_digests(paths: &[PathBuf]) -> Result<Vec<(PathBuf, Digest)>, CliError> {
    let mut found = Vec::new();
    for path in paths {
        let files = if path.is_dir() {
            manifest::manifest_files(std::slice::from_ref(path))?
        } else {
            vec![path.clone()]
        };
        for file in files {
            let digest = digest(&file)?;
            found.push((file, digest));
        }
    }
    Ok(found)
}

/// Reads the text of the file at `path`.
pub(crate) fn text(path: impl AsRef<Path>) -> Result<String, Failure> {
    read_text_input(&path).map_err(|error| Failure::read(path, error))
}

/// The digest of the file at `path`.
pub(crate) fn digest(path: &Path) -> Result<Digest, CliError> {
    let bytes = read_input(path).map_err(|error| Failure::read(path, error))?;
    Ok(Digest::sha256(&bytes))
}

/// Reads the receipt at `path`.
pub(crate) fn receipt(path: &Path) -> Result<Receipt, CliError> {
    let cannot =
        |why: String| CliError::usage(format!("cannot read the receipt {}: {why}", path.display()));
    let bytes = read_input(path).map_err(|error| cannot(error.to_string()))?;
    let receipt: Receipt = serde_json::from_slice(&bytes)
        .map_err(|error| cannot(format!("not a push receipt: {error}")))?;
    match receipt.version {
        1 => Ok(receipt),
        version => Err(cannot(format!(
            "its version is {version}, and this release reads version 1"
        ))),
    }
}

/// The error for a bundle that cannot be opened, or is another kind of file.
pub(crate) fn bundle_error(locations: &[PathBuf], error: bundle::BundleError) -> CliError {
    match locations {
        [path] if !is_split(locations) => wrong_kind(FileKind::Bundle, path, error),
        _ => error.into(),
    }
}

/// An input file. Its content decides which kind it is.
pub(crate) enum OpenedFile {
    Bundle(Bundle),
    Lock(Lock),
    Receipt(Receipt),
}

impl OpenedFile {
    /// Opens the file at `path`, or the object that it names. A bundle must be signed by the
    /// signers of the site.
    pub(crate) fn open(context: &Context, path: &Path) -> Result<OpenedFile, CliError> {
        let opened = OpenedFile::open_base(context, path)?;
        if let OpenedFile::Bundle(bundle) = &opened {
            open_bundle::signed_by(context, bundle, None)?;
        }
        Ok(opened)
    }

    /// Like [`open`](Self::open), without checking the signatures of a bundle. See
    /// [`open_bundle::open_base`].
    pub(crate) fn open_base(context: &Context, path: &Path) -> Result<OpenedFile, CliError> {
        let paths = [path.to_path_buf()];
        let bundle = || open_bundle::open_base(context, &paths).map(OpenedFile::Bundle);
        if is_remote(path) || is_split(&paths) {
            return bundle();
        }
        let mut start = Vec::new();
        open_input(path)
            .and_then(|file| file.take(4).read_to_end(&mut start))
            .map_err(|error| Failure::read(path, error))?;
        // A lock is text, perhaps with a byte order mark. A file that is not text was meant as a
        // bundle, perhaps a damaged one: opening it gives the better error. A bundle starts with
        // the magic number of zstd, which is not UTF-8.
        let is_text = match str::from_utf8(&start) {
            Ok(text) => !text.is_empty(),
            // the four bytes may end within a character
            Err(error) => error.error_len().is_none(),
        };
        if !is_text {
            return bundle();
        }
        if start.trim_ascii_start().first() == Some(&b'{') {
            let receipt = receipt(path)?;
            context.record_input("receipt", path)?;
            return Ok(OpenedFile::Receipt(receipt));
        }
        Ok(OpenedFile::Lock(context.read_lock(path)?))
    }

    /// The bundle. It is an error if the file is something else; the message calls the file
    /// `path`.
    pub(crate) fn into_bundle(self, path: &Path) -> Result<Bundle, CliError> {
        let path = path.display();
        match self {
            OpenedFile::Bundle(bundle) => Ok(bundle),
            OpenedFile::Lock(_) => Err(CliError::usage(format!(
                "{path} is a lock, which has no content; name the bundle that was packed from it"
            ))),
            OpenedFile::Receipt(_) => Err(CliError::usage(format!(
                "{path} is a push receipt, which only a push can use; name the bundle that was \
                 pushed"
            ))),
        }
    }

    /// Adds to `delivered` the content that the owner of this file has. A receipt lists blobs
    /// without the items that need them, so it adds nothing.
    pub(crate) fn add_to(&self, delivered: &mut DeliveredBundles) -> Result<(), CliError> {
        match self {
            OpenedFile::Bundle(bundle) => {
                delivered.locks.push(bundle.available_lock()?);
                delivered.bundles.push(bundle.clone());
            }
            OpenedFile::Lock(lock) => delivered.locks.push(lock.clone()),
            OpenedFile::Receipt(_) => {}
        }
        Ok(())
    }

    /// The names of the items in a receipt; `None` for a bundle or a lock.
    pub(crate) fn pushed_items(&self) -> Option<BTreeSet<String>> {
        match self {
            OpenedFile::Receipt(receipt) => {
                let names = receipt.items.iter().map(|item| item.name.clone());
                Some(names.collect())
            }
            _ => None,
        }
    }

    /// The base for a delta that is packed against this file.
    pub(crate) fn into_base(self) -> DeltaBase {
        match self {
            OpenedFile::Bundle(bundle) => bundle.as_base(),
            OpenedFile::Lock(lock) => DeltaBase::lock(&lock),
            OpenedFile::Receipt(receipt) => {
                DeltaBase::receipt(receipt.lock, receipt.registry, receipt.blobs)
            }
        }
    }

    /// The fingerprint of the lock, if the owner of this file has all content of the lock; `None`
    /// for a partial bundle.
    pub(crate) fn complete_lock(&self) -> Option<Digest> {
        match self {
            OpenedFile::Bundle(bundle) if !bundle.partial().is_empty() => None,
            OpenedFile::Bundle(bundle) => Some(bundle.fingerprint().clone()),
            OpenedFile::Lock(lock) => Some(lock.fingerprint()),
            OpenedFile::Receipt(receipt) => Some(receipt.lock.clone()),
        }
    }
}
