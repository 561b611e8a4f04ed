//! What can go wrong when a bundle is written or read.

use super::format::damage::Damage;
use super::format::loss::Loss;
use super::format::names::MissingItem;
use landfall_content::ContentError;
use landfall_item::lockfile::LockError;
use landfall_model::human_size;
use landfall_model::sign;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a bundle cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The bundle cannot be opened.
    #[error("cannot open the bundle {path}: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// It is no bundle, or it is damaged.
    #[error("{path} is damaged{}\n{}{}", again(loss.as_ref()), lines(damage), told(loss.as_ref()))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        damage: Vec<Damage>,
        /// What that means, where it was looked for.
        loss: Option<Loss>,
    },
    /// Volumes of it are missing.
    #[error(
        "{path} is not all there: {} missing; put all volumes into one folder, or name each folder{}",
        are(volumes),
        told(loss.as_ref())
    )]
    Missing {
        /// The bundle.
        path: PathBuf,
        /// The names of the volumes.
        volumes: Vec<String>,
        /// What that means, where it was looked for.
        loss: Option<Loss>,
    },
    /// Volumes are missing, damaged, or of another bundle.
    #[error("{path} is not sound\n{}{}", lines(bad), told(loss.as_ref()))]
    Volumes {
        /// The bundle.
        path: PathBuf,
        /// The volumes, and what is wrong with each.
        bad: Vec<String>,
        /// What that means.
        loss: Option<Loss>,
    },
    /// It has fewer volumes than the number that was asked for.
    #[error("{path} has {}; there is no volume {number}", counted(*count))]
    NoVolume {
        /// The bundle.
        path: PathBuf,
        /// The number that was asked for.
        number: usize,
        /// How many volumes it has.
        count: usize,
    },
    /// Its format is newer than this landfall.
    #[error("{path} needs a newer landfall: {what}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// What this release does not know.
        what: String,
    },
    /// Items are missing, and a partial bundle is not allowed.
    #[error(
        "{} would be missing from the bundle; run `landfall lock` and `landfall pull` again, or pack what is \
         there with --allow-partial\n{}", count(missing.len()), lines(missing)
    )]
    Incomplete {
        /// The items.
        missing: Vec<MissingItem>,
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
    /// It would be larger than a reader takes.
    #[error(
        "{path} would be refused by whoever opens it: its {what} would have {bytes} bytes, and {most} are read; carry less \
         in one bundle"
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What of it is too large.
        what: &'static str,
        /// How large that would be, in bytes.
        bytes: u64,
        /// How large it may be, in bytes.
        most: u64,
    },
    /// The bundle would have too many volumes, or a volume has no room for a frame.
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
    /// A single volume cannot be packed again.
    #[error("cannot rebuild {volume}: {why}")]
    Volume {
        /// Its name.
        volume: String,
        /// Why not.
        why: String,
    },
    /// A single volume cannot be packed again: it held the lock, and no other lock is there.
    #[error("cannot rebuild {volume}: the lock was in it; name it with --lock FILE\n{source}")]
    VolumeLock {
        /// Its name.
        volume: String,
        /// Why the lock cannot be read.
        source: Box<LockError>,
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
    /// It is not signed, where a signature is required.
    #[error(
        "{path} is not signed; add a signature with `landfall sign {path} --key KEY`, where KEY is of an allowed signer"
    )]
    NotSigned {
        /// The file.
        path: PathBuf,
    },
    /// Its signature is not accepted.
    #[error("{path}: its signature is not accepted: {source}")]
    Signature {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<sign::SignatureError>,
    },
    /// Fewer signed it than the site asks for.
    #[error(
        "{path} is signed by {count} of the allowed signers, and {at_least} are needed; let others sign it with `landfall sign \
         {path} --key KEY`{}",
        after(refused)
    )]
    Signers {
        /// The file.
        path: PathBuf,
        /// How many are needed.
        at_least: usize,
        /// How many signed.
        count: usize,
        /// Why other signatures do not count.
        refused: Vec<String>,
    },
    /// It cannot be signed.
    #[error("cannot sign {path}: {source}")]
    Sign {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<sign::SignatureError>,
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
    if items == 1 {
        "1 item".into()
    } else {
        format!("{items} items")
    }
}

fn counted(volumes: usize) -> String {
    if volumes == 1 {
        "1 volume".into()
    } else {
        format!("{volumes} volumes")
    }
}

/// Advice that is part of a loss, where there is one.
fn again(loss: Option<&Loss>) -> &'static str {
    if loss.is_some() {
        ""
    } else {
        "; copy it again from where it was packed"
    }
}

fn told(loss: Option<&Loss>) -> String {
    loss.map(|loss| format!("\n{loss}")).unwrap_or_default()
}

/// `B.0002 is`, `B.0002 and B.0003 are`.
fn are(names: &[String]) -> String {
    match names {
        [one] => format!("{one} is"),
        [some @ .., last] => format!("{} and {last} are", some.join(", ")),
        [] => "nothing is".into(),
    }
}

fn after(of: &[impl fmt::Display]) -> String {
    if of.is_empty() {
        String::new()
    } else {
        format!("\n{}", lines(of))
    }
}

/// One indented line each; of a long list the first, and how many more there are.
fn lines(of: &[impl fmt::Display]) -> String {
    const MOST: usize = 30;
    let shown = if of.len() > MOST + 1 { MOST } else { of.len() };
    let mut lines: Vec<String> = of[..shown].iter().map(|one| format!("  {one}")).collect();
    if shown < of.len() {
        lines.push(format!(
            "  … and {} more; `--report FILE` writes all of them",
            of.len() - shown
        ));
    }
    lines.join("\n")
}
