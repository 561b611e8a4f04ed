//! The text and the report about a bundle that was written or, in a dry run, would be written.

use super::failed_items::shortened;
use super::listing::{count, lines, table};
use super::open_bundle::is_remote;
use super::verb_report::{BundleMember, SerialMember, SignerRow, WrittenFiles};
use super::{CliError, Exit, ReportMember, VerbOutcome, VerbReport};
use crate::client::{missing_items, unnamed_series};
use clap::Args;
use landfall_bundle::{PackPlan, PackedBundle, Serial, check_bundle_path};
use landfall_content::{DiskSpace, parent_folder};
use landfall_item::lockfile::{Lock, losses};
use landfall_model::human_size;
use landfall_model::report::{ItemStatus, Progress, ReportItem, TransferSide};
use landfall_model::sign::{PublicKey, Signer};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The maximum number of missing items that are listed.
pub(crate) const MAX_MISSING: usize = 30;

/// Loads the key of `--sign KEY`.
pub(crate) fn signer(key: Option<&str>) -> Result<Option<Arc<Signer>>, CliError> {
    let agent = landfall_os::agent_path(std::env::var_os("SSH_AUTH_SOCK"));
    Ok(key
        .map(|key| Signer::load(key, agent.as_deref()))
        .transpose()?
        .map(Arc::new))
}

/// The flags for the number of a bundle in its series. A site refuses a bundle if its number is
/// lower than that of the last one.
#[derive(Args)]
pub(crate) struct SerialFlags {
    /// The number of the bundle in its series; a site refuses a number that is lower than the last
    /// one that it received
    #[arg(long, value_name = "N")]
    pub(crate) serial: Option<u64>,
    /// The name of the series [default: metadata.name of the manifest]
    #[arg(long, value_name = "NAME", requires = "serial")]
    series: Option<String>,
}

impl SerialFlags {
    pub(crate) fn series(&self) -> Option<String> {
        self.series.clone()
    }

    /// Whether there is a number, but neither a name for the series nor the `name` of a manifest.
    pub(crate) fn lacks_series(&self, name: Option<&str>) -> bool {
        self.serial.is_some() && self.series.is_none() && name.is_none()
    }

    /// The number of the bundle, and the name of its series; `None` without `--serial`.
    pub(crate) fn serial_of(&self, lock: &Lock) -> Result<Option<Serial>, CliError> {
        let Some(number) = self.serial else {
            return Ok(None);
        };
        let series = self
            .series
            .clone()
            .or_else(|| lock.name.clone())
            .ok_or_else(unnamed_series)?;
        Ok(Some(Serial { series, number }))
    }
}

/// The outcome of a dry run: what would be packed, how much space that needs, and the lines `more`.
pub(crate) fn dry_run(
    plan: &PackPlan,
    out: &Path,
    mut report: VerbReport,
    more: &str,
) -> Result<VerbOutcome, CliError> {
    check_bundle_path(out)?;
    let needed = plan.needed_bytes();
    // An object store does not report its free space.
    let space = if is_remote(out) {
        let size = human_size(needed);
        format!("  needs at most     {size} ({needed} bytes)\n")
    } else {
        report_disk_space(&mut report, &disk_space_for(parent_folder(out), needed)?)
    };
    let text = format!(
        "{}would pack {} into {}\n  lock fingerprint  {}\n{space}{more}",
        table(&plan.items),
        count(&plan.items),
        out.display(),
        plan.fingerprint,
    );
    Ok(outcome(plan, report, &text))
}

/// Adds a bundle that was written to the report. Returns the lines about it. `keys` are the keys
/// that signed the bundle.
pub(crate) fn report_bundle(
    report: &mut VerbReport,
    plan: &PackPlan,
    out: &Path,
    written: &PackedBundle,
    keys: &[PublicKey],
) -> String {
    let missing = plan.missing.iter();
    let signers: Vec<_> = keys.iter().map(|key| SignerRow::new(key, None)).collect();
    report.add(ReportMember::Bundle(Box::new(BundleMember {
        path: out.display().to_string(),
        digest: written.digest.clone(),
        lock: plan.fingerprint.clone(),
        bytes: written.bytes,
        content_bytes: Some(plan.content_bytes()),
        partial: missing.map(|missing| missing.item.clone()).collect(),
        bases: plan.bases.clone(),
        omitted: plan.omitted.clone(),
        recipes: plan.recipes.clone(),
        references: plan.references.clone(),
        written: Some(WrittenFiles {
            files: paths(&written.files),
            beside: paths(&written.beside),
            removed: paths(&written.removed),
        }),
        signed: !keys.is_empty(),
        signatures: None,
        signer: signers.first().cloned(),
        signers: Some(signers),
        serial: SerialMember::new(plan.serial.clone()),
    })));
    let content = plan.content_bytes();
    let serial = plan.serial.as_ref();
    let serial = serial.map(|serial| {
        format!(
            "  series            {}, number {}\n",
            serial.series, serial.number
        )
    });
    format!(
        "  bundle digest     {}\n  lock fingerprint  {}\n  size              {}{}\n{}",
        written.digest,
        plan.fingerprint,
        human_size(written.bytes),
        size_ratio(written.bytes, content),
        serial.unwrap_or_default(),
    )
}

/// The lines about the keys that signed a bundle.
pub(crate) fn signed_lines(keys: &[PublicKey]) -> String {
    let lines = keys.iter();
    lines
        .map(|key| format!("  signed by         {key}\n"))
        .collect()
}

/// The size relative to the content: `, 41% of the content (1.2 GB)`. A bundle that is larger, as
/// a small delta with its index and lock, only has the size of the content.
fn size_ratio(bytes: u64, content: u64) -> String {
    let size = human_size(content);
    if bytes > content {
        return format!(", for {size} of content");
    }
    let percent = (bytes as f64 * 100.0 / content.max(1) as f64).ceil();
    format!(", {percent}% of the content ({size})")
}

/// The lines about the volumes of a split bundle, and about removed volumes of an older bundle.
pub(crate) fn volume_lines(written: &PackedBundle, is_split: bool) -> String {
    let mut lines = String::new();
    if is_split {
        lines += &format!(
            "  volumes           {}\n",
            first_to_last(&paths(&written.files))
        );
    }
    if !written.removed.is_empty() {
        let removed = first_to_last(&paths(&written.removed));
        lines += &format!("  removed           {removed}, from an older bundle with this name\n");
    }
    lines
}

/// Prints a note if an unsplit bundle of an earlier run hides the volumes.
pub(crate) fn note_whole_file(out: &Path, is_split: bool, progress: &dyn Progress) {
    if is_split && out.is_file() {
        progress.note(&format!(
            "note: there is also a file {}; commands with this name read it, not the volumes",
            out.display()
        ));
    }
}

/// The paths for messages and reports.
pub(crate) fn paths(files: &[PathBuf]) -> Vec<String> {
    files
        .iter()
        .map(|file| file.display().to_string())
        .collect()
}

/// The number of names, the first and the last: `12: B.0001 to B.0012`.
pub(crate) fn first_to_last(names: &[String]) -> String {
    match names {
        [first, .., last] => format!("{}: {first} to {last}", names.len()),
        few => format!("{}: {}", few.len(), few.concat()),
    }
}

/// The outcome: exit 0, or 3 for a partial bundle.
pub(crate) fn outcome(plan: &PackPlan, report: VerbReport, text: &str) -> VerbOutcome {
    let (exit, lost) = match plan.missing.len() {
        0 => (Exit::Done, String::new()),
        _ => {
            let missing = shortened(plan.missing.iter().map(ToString::to_string), MAX_MISSING);
            let missing = lines(&missing.collect::<Vec<_>>());
            (
                Exit::Partial,
                format!("the bundle is partial, because these items are missing:\n{missing}"),
            )
        }
    };
    VerbOutcome::new(report, text.to_owned() + &lost, exit)
}

/// The report: every item of the plan with `status`, the missing items, and the items whose loss
/// the manifest accepts.
pub(crate) fn pack_report(lock: &Lock, plan: &PackPlan, status: ItemStatus) -> VerbReport {
    let mut items: Vec<ReportItem> = plan
        .items
        .iter()
        .map(|item| ReportItem {
            status,
            ..item.clone()
        })
        .collect();
    items.extend(missing_items(plan));
    items.extend(
        losses(lock)
            .into_iter()
            .filter(|item| item.status == ItemStatus::Skipped),
    );
    VerbReport::of(items)
}

// The disk space that a command needs, and the free space, for dry runs.

/// The `needed` bytes, and the free space in `folder` or in the folder where it would be created.
pub(crate) fn disk_space_for(folder: &Path, needed: u64) -> Result<DiskSpace, CliError> {
    DiskSpace::measure(folder, needed).map_err(|error| {
        let message = format!(
            "cannot read the free space of {}: {error}",
            folder.display()
        );
        CliError::failed(message).on(TransferSide::Destination)
    })
}

/// Adds the space to the report of a dry run, and returns the line about it.
pub(crate) fn report_disk_space(report: &mut VerbReport, room: &DiskSpace) -> String {
    report.add(ReportMember::NeededBytes(room.needed));
    if let Some(free) = room.free {
        report.add(ReportMember::AvailableBytes(free));
    }
    let needed = human_size(room.needed);
    let free = room.shown_free();
    let enough = if room.is_enough() { "" } else { ": not enough" };
    let folder = room.folder.display();
    format!(
        "  needs at most     {needed} ({} bytes); {folder} has {free} free{enough}\n",
        room.needed
    )
}

#[cfg(test)]
mod tests {
    use super::size_ratio;

    #[test]
    fn a_ratio_is_shown_only_if_the_bundle_is_smaller_than_its_content() {
        for (bytes, content, expected) in [
            (410, 1_000, ", 41% of the content (1.0 kB)"),
            (1_000, 1_000, ", 100% of the content (1.0 kB)"),
            (2_992, 1_000, ", for 1.0 kB of content"),
            (900, 0, ", for 0 B of content"),
        ] {
            assert_eq!(size_ratio(bytes, content), expected);
        }
    }
}
