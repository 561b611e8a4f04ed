//! Errors of reading and writing a bundle.

use crate::format::damage::{Damage, Loss};
use crate::recipe::ScratchError;
use landfall_content::ContentError;
use landfall_content::bucket::BucketLocation;
use landfall_model::{Failure, TransferSide};
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// Why a bundle cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
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
    /// The content of an item cannot be read.
    #[error("{source}; run `landfall pull` again")]
    Content {
        /// The name of the item.
        item: String,
        /// The error that caused the failure.
        source: ContentError,
    },
    /// Any other failure.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// What to do with a bundle that comes from a pipe.
const NO_PIPE: &str =
    "a bundle is read from its end, so it cannot come from a pipe; write it to a file first";

impl BundleError {
    /// Returns a function that turns an I/O error into a failure to open the bundle at `path`.
    pub(crate) fn open(path: &Path) -> impl Fn(io::Error) -> Failure {
        move |error| {
            let message = format!("cannot open the bundle {}: {error}", path.display());
            // In an object store, the object exists: it was found before. So reading it failed.
            if path.to_str().is_some_and(BucketLocation::has_scheme) {
                Failure::failed(message).on(TransferSide::Source)
            } else if path == Path::new("-") {
                Failure::usage(message).with_help(NO_PIPE)
            } else {
                Failure::usage(message)
            }
        }
    }

    /// Returns a function that turns an I/O error into a failure to write `path`.
    pub(crate) fn write(path: &Path) -> impl Fn(io::Error) -> BundleError + Copy {
        move |error| {
            let help = match error.kind() {
                io::ErrorKind::FileTooLarge => Some(
                    "the file system allows no larger file (FAT32: 4 GiB); `landfall pack \
                     --volume-size fat32` splits a bundle",
                ),
                io::ErrorKind::Unsupported => Some(
                    "the file system may not rename files, such as a mounted bucket; `landfall \
                     pack` writes to stdout with `-o -`, to a bucket with `-o s3://BUCKET/NAME`",
                ),
                _ => None,
            };
            let failure = Failure::write(path, error);
            match help {
                Some(help) => failure.with_help(help),
                None => failure,
            }
            .into()
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

    /// The failure to write a bundle whose `what` is longer than its readers accept.
    pub(crate) fn too_large(path: &Path, what: &str, bytes: u64, limit: u64) -> BundleError {
        let path = path.display();
        Failure::usage(format!(
            "cannot write {path}: its {what} would have {bytes} bytes, but readers accept at most \
             {limit}; put fewer items into one bundle"
        ))
        .into()
    }

    /// The failure to write a bundle that another process writes.
    pub(crate) fn busy(path: &Path) -> BundleError {
        let path = path.display();
        Failure::failed(format!(
            "{path} is being written by another process; wait for it, or choose another name"
        ))
        .on(TransferSide::Destination)
        .into()
    }

    /// The failure to sign the bundle or the checksums at `path`.
    pub(crate) fn sign(path: &Path) -> impl Fn(Failure) -> BundleError {
        move |error| {
            Failure::failed(format!("cannot sign {}: {error}", path.display()))
                .on(TransferSide::Destination)
                .into()
        }
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

pub(crate) fn loss_lines(loss: Option<&Loss>) -> String {
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

/// One indented line for each item. A long list is cut, and ends with the number of omitted items.
pub(crate) fn lines(items: &[impl fmt::Display]) -> String {
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

impl From<BundleError> for Failure {
    fn from(error: BundleError) -> Failure {
        let message = error.to_string();
        match error {
            BundleError::Damaged { .. } | BundleError::Missing { .. } => Failure::refused(message),
            BundleError::Content { item, .. } => Failure::failed(message)
                .on(TransferSide::Source)
                .about(item),
            BundleError::Failed(failure) => failure,
        }
    }
}
