//! Errors of reading and writing a bundle.

use crate::format::damage::{Damage, Loss};
use crate::format::names::OmittedItem;
use crate::recipe::ScratchError;
use landfall_content::ContentError;
use landfall_item::lockfile::LockError;
use landfall_model::{human_size, sign};
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// Why a bundle cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The bundle cannot be opened.
    #[error("cannot open the bundle {path}: {source}")]
    Open {
        /// The path of the bundle.
        path: PathBuf,
        /// The error that the system returned.
        source: io::Error,
    },
    /// The file is damaged, or not a bundle.
    #[error(
        "{path} is damaged{}\n{}{}",
        copy_advice(loss.as_ref()),
        lines(damage),
        loss_lines(loss.as_ref())
    )]
    Damaged {
        /// The path of the bundle.
        path: PathBuf,
        /// What is damaged, in the order of the bundle.
        damage: Vec<Damage>,
        /// The consequences; `None` if they were not determined.
        loss: Option<Loss>,
    },
    /// Volumes of the bundle are missing.
    #[error(
        "{path} is incomplete: {} missing; put all volumes into one folder, or name each \
         folder{}",
        names_with_verb(volumes),
        loss_lines(loss.as_ref())
    )]
    Missing {
        /// The path of the bundle.
        path: PathBuf,
        /// The names of the missing volumes.
        volumes: Vec<String>,
        /// The consequences; `None` if they were not determined.
        loss: Option<Loss>,
    },
    /// Volumes are missing, damaged, or belong to another bundle.
    #[error("{path} has missing or damaged volumes\n{}{}", lines(bad), loss_lines(loss.as_ref()))]
    Volumes {
        /// The path of the bundle.
        path: PathBuf,
        /// Each bad volume with its problem.
        bad: Vec<String>,
        /// The consequences; `None` if they were not determined.
        loss: Option<Loss>,
    },
    /// The bundle has no volume with the requested number.
    #[error("{path} has {}; there is no volume {number}", volume_count(*count))]
    NoVolume {
        /// The path of the bundle.
        path: PathBuf,
        /// The number that was requested.
        number: usize,
        /// The number of volumes of the bundle.
        count: usize,
    },
    /// The format of the bundle is newer than this landfall.
    #[error("{path} needs a newer landfall: {what}")]
    Newer {
        /// The path of the bundle.
        path: PathBuf,
        /// What this release does not support.
        what: String,
    },
    /// Items are missing, and a partial bundle is not allowed.
    #[error(
        "{} would be missing from the bundle; run `landfall lock` and `landfall pull` again, or \
         pack what is available with --allow-partial\n{}",
        item_count(missing.len()),
        lines(missing)
    )]
    Incomplete {
        /// The items that are missing.
        missing: Vec<OmittedItem>,
    },
    /// The content of an item cannot be read.
    #[error("{source}; run `landfall pull` again")]
    Content {
        /// The name of the item.
        item: String,
        /// The error that caused the failure.
        source: ContentError,
    },
    /// The index of an image cannot be trimmed as the lock says.
    #[error("{why}; run `landfall lock` again")]
    Trim {
        /// The name of the image.
        item: String,
        /// The error that caused the failure.
        why: String,
    },
    /// The disk has too little free space.
    #[error(
        "{folder} has {} free ({available} bytes), the bundle may need {} ({needed} bytes); make \
         room or write it elsewhere",
        human_size(*available),
        human_size(*needed)
    )]
    Space {
        /// The folder of the bundle.
        folder: PathBuf,
        /// The bytes that the bundle may need.
        needed: u64,
        /// The number of free bytes.
        available: u64,
    },
    /// The bundle would exceed a limit of its readers.
    #[error(
        "cannot write {path}: its {what} would have {bytes} bytes, but readers accept at most \
         {limit}; put fewer items into one bundle"
    )]
    TooLarge {
        /// The path of the bundle.
        path: PathBuf,
        /// The part that is too large.
        what: &'static str,
        /// The size of the part in bytes.
        bytes: u64,
        /// The largest accepted size in bytes.
        limit: u64,
    },
    /// The bundle would have too many volumes, or a frame does not fit into a volume.
    #[error(
        "volumes of {size} bytes are too small: a bundle has at most {limit} volumes, and no frame \
         is split; use --volume-size {smallest} or more"
    )]
    VolumeSize {
        /// The requested size in bytes.
        size: u64,
        /// The maximum number of volumes.
        limit: usize,
        /// The smallest size in bytes that fits.
        smallest: u64,
    },
    /// A single volume cannot be rebuilt.
    #[error("cannot rebuild {volume}: {why}")]
    Volume {
        /// The name of the volume.
        volume: String,
        /// The error that caused the failure.
        why: String,
    },
    /// A single volume cannot be rebuilt: it contained the lock, and no other lock is available.
    #[error(
        "cannot rebuild {volume}: it contained the lock; name the lock with --lock FILE\n{source}"
    )]
    VolumeLock {
        /// The name of the volume.
        volume: String,
        /// Why the lock cannot be read.
        source: Box<LockError>,
    },
    /// A program or document cannot be placed next to the bundle.
    #[error("cannot write {path} next to the bundle: {why}")]
    Tool {
        /// The path of the program or document.
        path: PathBuf,
        /// The error that caused the failure.
        why: String,
    },
    /// Another process is writing the same bundle.
    #[error("{path} is being written by another process; wait for it, or choose another name")]
    Busy {
        /// The path of the bundle.
        path: PathBuf,
    },
    /// The bundle has no signature, but one is required.
    #[error(
        "{path} is not signed; sign it with the key of an allowed signer: \
         `landfall sign {path} --key KEY`"
    )]
    NotSigned {
        /// The path of the bundle.
        path: PathBuf,
    },
    /// The only signature is not accepted.
    #[error("cannot accept the signature of {path}: {source}")]
    Signature {
        /// The path of the bundle.
        path: PathBuf,
        /// Why the signature is not accepted.
        source: Box<sign::SignatureError>,
    },
    /// Fewer signers signed the bundle than the site requires.
    #[error(
        "{path} is signed by {count} of the allowed signers, and {at_least} are needed; add a \
         signature with `landfall sign {path} --key KEY`{}",
        refused_lines(refused)
    )]
    Signers {
        /// The path of the bundle.
        path: PathBuf,
        /// The required number of signers.
        at_least: usize,
        /// The number of allowed signers who signed.
        count: usize,
        /// Why further signatures do not count.
        refused: Vec<String>,
    },
    /// The bundle cannot be signed.
    #[error("cannot sign {path}: {source}")]
    Sign {
        /// The path of the bundle.
        path: PathBuf,
        /// The error that caused the failure.
        source: Box<sign::SignatureError>,
    },
    /// The bundle cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The path of the bundle.
        path: PathBuf,
        /// The error that the system returned.
        source: io::Error,
    },
}

impl BundleError {
    /// Returns a function that turns an I/O error into a failure to write `path`.
    pub(crate) fn write(path: &Path) -> impl Fn(io::Error) -> BundleError + Copy {
        move |source| BundleError::Write {
            path: path.into(),
            source,
        }
    }

    /// Returns a function that turns an error of content into a failure to read `item`, or to write
    /// a temporary file for it.
    pub(crate) fn content(item: &str) -> impl Fn(ContentError) -> BundleError + Copy {
        move |source| match ScratchError::cause_of(&source) {
            Some(scratch) => BundleError::write(scratch.folder())(scratch.system_error()),
            None => BundleError::Content {
                item: item.to_owned(),
                source,
            },
        }
    }
}

fn item_count(items: usize) -> String {
    if items == 1 {
        "1 item".into()
    } else {
        format!("{items} items")
    }
}

fn volume_count(volumes: usize) -> String {
    if volumes == 1 {
        "1 volume".into()
    } else {
        format!("{volumes} volumes")
    }
}

/// The advice to copy the bundle again; empty if `loss` contains its own advice.
fn copy_advice(loss: Option<&Loss>) -> &'static str {
    if loss.is_some() {
        ""
    } else {
        "; copy it again from the machine that packed it"
    }
}

fn loss_lines(loss: Option<&Loss>) -> String {
    match loss {
        Some(loss) => format!("\n{loss}"),
        None => String::new(),
    }
}

/// `B.0002 is`, `B.0002 and B.0003 are`.
fn names_with_verb(names: &[String]) -> String {
    match names {
        [one] => format!("{one} is"),
        [some @ .., last] => format!("{} and {last} are", some.join(", ")),
        [] => "nothing is".into(),
    }
}

fn refused_lines(refused: &[String]) -> String {
    if refused.is_empty() {
        String::new()
    } else {
        format!("\n{}", lines(refused))
    }
}

/// One indented line for each item. A long list is cut, and ends with the number of omitted items.
fn lines(items: &[impl fmt::Display]) -> String {
    const MAX_LINES: usize = 30;
    // "and 1 more" would be as long as the line that it replaces
    let count = if items.len() > MAX_LINES + 1 {
        MAX_LINES
    } else {
        items.len()
    };
    let mut lines: Vec<String> = items[..count]
        .iter()
        .map(|item| format!("  {item}"))
        .collect();
    if count < items.len() {
        lines.push(format!(
            "  … and {} more; `--report FILE` writes all of them",
            items.len() - count
        ));
    }
    lines.join("\n")
}
