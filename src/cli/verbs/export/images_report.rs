//! The text and the report about an exported image archive, also in a dry run.

use crate::cli::shared::failed_items::item_lines;
use landfall_bundle::image_archive::ImageArchive;
use landfall_item::LockedImage;
use landfall_item::lockfile::Lock;
use landfall_model::human_size;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem, RunReport, count_of};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// The report: the images in the archive, and the items that are `lost`. If the archive is not
/// written, `skipped` is the reason that the report states for the images.
pub(crate) fn report(
    archive: &ImageArchive,
    lost: &[ReportItem],
    skipped: Option<&str>,
) -> RunReport {
    let items = archive.images.iter().map(|image| ReportItem {
        kind: EntryKind::Image,
        name: image.name.clone(),
        digest: Some(image.digest.clone()),
        bytes: Some(image.bytes),
        packages: 0,
        status: if skipped.is_none() {
            ItemStatus::Done
        } else {
            ItemStatus::Skipped
        },
        reason: skipped.map(str::to_owned),
    });
    let mut report = RunReport {
        items: items.chain(lost.iter().cloned()).collect(),
        ..RunReport::default()
    };
    report
        .extra
        .insert("trimmed".into(), json!(archive.trimmed));
    report
}

/// The member `archive` of a report.
pub(crate) fn member(archive: &ImageArchive, path: &Path, format: Option<&str>) -> Value {
    let images = archive.images.iter();
    let images = images
        .map(|image| json!({"name": image.name, "digest": image.top.digest, "names": image.names}));
    json!({
        "path": path.display().to_string(), "format": format, "bytes": archive.size(),
        "images": images.collect::<Vec<_>>(),
    })
}

/// The lines about an archive.
pub(crate) fn text(
    archive: &ImageArchive,
    lost: &[ReportItem],
    path: &Path,
    is_dry: bool,
    lock: &Lock,
    is_oci: bool,
) -> String {
    let mut text = item_lines(lost);
    let names: usize = archive.images.iter().map(|image| image.names.len()).sum();
    let _ = writeln!(
        text,
        "{} {} under {} to {} ({})",
        if is_dry { "would export" } else { "exported" },
        count_of(archive.images.len(), "image"),
        count_of(names, "name"),
        path.display(),
        human_size(archive.size())
    );
    if is_oci {
        text +=
            "  loads in          ctr, nerdctl, k3s, RKE2; for docker and podman: --format docker\n";
    }
    if !archive.trimmed.is_empty() {
        let _ = writeln!(
            text,
            "  trimmed           {} to the exported platforms; --report lists the new digests",
            count_of(archive.trimmed.len(), "image")
        );
    }
    let referrers: usize = lock.images.iter().map(detached_referrers).sum();
    if referrers > 0 {
        let _ = writeln!(
            text,
            "  left out          {} (signatures, SBOMs, attestations), which no runtime loads; \
             `push` uploads them",
            count_of(referrers, "referrer")
        );
    }
    text
}

/// The number of referrers of an image that are not in its own index.
fn detached_referrers(image: &LockedImage) -> usize {
    image
        .referrers
        .iter()
        .flatten()
        .filter(|referrer| {
            let mut children = image.manifests.iter();
            !children.any(|child| child.digest == referrer.digest)
        })
        .count()
}
