//! What can go wrong with a bundle.

use super::Lost;
use crate::content::ContentError;
use crate::model::human_size;
use crate::sign;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// A place in a bundle that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Which entry of the tar, or which other part of the file.
    pub entry: String,
    /// Where in the bundle, in bytes, counted over all its volumes.
    pub offset: u64,
    /// Name of the volume that has this byte, where the bundle is split.
    pub volume: Option<String>,
    /// What is wrong.
    pub why: String,
}

impl Fault {
    pub(super) fn new(entry: impl Into<String>, offset: u64, why: impl Into<String>) -> Fault {
        Fault { entry: entry.into(), offset, volume: None, why: why.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.entry, self.offset)?;
        if let Some(volume) = &self.volume {
            write!(f, " (in {volume})")?;
        }
        write!(f, ": {}", self.why)
    }
}

impl std::error::Error for Fault {}

/// Why a bundle cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bundle cannot be opened.
    #[error("cannot open the bundle {path}: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// It is no bundle, or a damaged one.
    #[error("{path} is damaged; copy it again from where it was packed\n{}", lines(faults))]
    Unsound {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        faults: Vec<Fault>,
    },
    /// Volumes of it are not there.
    #[error(
        "{path} is not all there: {} missing; put them beside the others, or rebuild one where the bundle was \
         packed with `landfall pack --like {path} --only-volume N`",
        are(volumes)
    )]
    Missing {
        /// The bundle.
        path: PathBuf,
        /// The names of the volumes.
        volumes: Vec<String>,
    },
    /// Volumes are missing, damaged, or of another bundle.
    #[error("{path} is not sound; copy these volumes again from where it was packed\n{}", lines(bad))]
    Volumes {
        /// The bundle.
        path: PathBuf,
        /// The volumes, and what is wrong with each.
        bad: Vec<String>,
    },
    /// Its format is newer than this landfall.
    #[error("{path} needs a newer landfall: {what}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// What is not known.
        what: String,
    },
    /// The store lacks something, and nobody allowed a partial bundle.
    #[error(
        "{} would be missing from the bundle; run `landfall lock` and `landfall pull` again, or pack what is \
         there with --allow-partial\n{}", count(lost.len()), lines(lost)
    )]
    Incomplete {
        /// What would be missing.
        lost: Vec<Lost>,
    },
    /// The content of an item cannot be read.
    #[error("{source}; run `landfall pull` again")]
    Content {
        /// Name of the item.
        item: String,
        /// What happened.
        source: ContentError,
    },
    /// The index of an item cannot be trimmed as the lock says.
    #[error("{why}; run `landfall lock` again")]
    Trim {
        /// Name of the item.
        item: String,
        /// What happened.
        why: String,
    },
    /// There is not enough room.
    #[error(
        "{folder} has {} free ({available} bytes), the bundle may need {} ({needed} bytes); make room or \
         write it elsewhere", human_size(*available), human_size(*needed)
    )]
    Space {
        /// The folder that the bundle was to stand in.
        folder: PathBuf,
        /// How much it may need, in bytes.
        needed: u64,
        /// How much is free, in bytes.
        available: u64,
    },
    /// The bundle would have too many volumes, or one of them no room for what cannot be cut.
    #[error(
        "volumes of {size} bytes are too small for this bundle: there may be {most} at most, and none is cut \
         inside of a frame; the smallest size that fits is --volume-size {smallest}"
    )]
    VolumeSize {
        /// What was asked for, in bytes.
        size: u64,
        /// How many volumes there may be.
        most: usize,
        /// What fits, in bytes.
        smallest: u64,
    },
    /// A volume cannot be packed once more.
    #[error("cannot rebuild {volume}: {why}")]
    Rebuild {
        /// Its name.
        volume: String,
        /// Why not.
        why: String,
    },
    /// A file cannot be put beside the bundle.
    #[error("cannot put {path} beside the bundle: {why}")]
    Tool {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// Another process is writing the same bundle.
    #[error("{path} is being written by another process; wait for it, or choose another name")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// It is not signed, where that is asked for.
    #[error("{path} is not signed; pack it with --sign KEY, where KEY is of an allowed signer")]
    NotSigned {
        /// The file.
        path: PathBuf,
    },
    /// Its signature is not one that is taken.
    #[error("{path}: its signature is not accepted: {source}")]
    Signature {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<sign::Error>,
    },
    /// It cannot be signed.
    #[error("cannot sign {path}: {source}")]
    Sign {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<sign::Error>,
    },
    /// The bundle cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

fn count(items: usize) -> String {
    if items == 1 { "1 item".into() } else { format!("{items} items") }
}

/// `B.0002 is`, `B.0002 and B.0003 are`.
fn are(names: &[String]) -> String {
    match names {
        [one] => format!("{one} is"),
        [some @ .., last] => format!("{} and {last} are", some.join(", ")),
        [] => "nothing is".into(),
    }
}

fn lines(of: &[impl fmt::Display]) -> String {
    of.iter().map(|one| format!("  {one}")).collect::<Vec<_>>().join("\n")
}
