//! `landfall export images`: writes an image archive for container runtimes.

use crate::cli::shared::bundle_flags::ContentFlags;
use crate::cli::shared::context::run_blocking;
use crate::cli::shared::failed_items::item_lines;
use crate::cli::shared::image_facts::ImageFacts;
use crate::cli::shared::output_file::{ReplaceFlag, check_folder, result_stdout};
use crate::cli::shared::verb_report::ArchivedImageRow;
use crate::cli::shared::{CliError, Context, ReportMember, VerbOutcome, VerbReport};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use landfall_bundle::image_archive::{
    ImageArchive, ImageArchiveFormat, ImageArchiveOptions, is_image_archive,
};
use landfall_content::{AtomicFile, BlobRead, CopyError, OutputGuard, refuse_special};
use landfall_item::lockfile::{Lock, collision, losses};
use landfall_item::{ChartArchive, LockedImage, LockedItem};
use landfall_model::document::{ArchiveBudget, unpack, yaml};
use landfall_model::report::{EntryKind, ItemStatus, Progress, ReportItem, TransferSide, count_of};
use landfall_model::{DestinationMap, Failure, Limits, Platform, TargetRegistry, human_size};
use landfall_os::Blocking;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the archive if `--out` is a folder.
const ARCHIVE: &str = "landfall-images.tar";
/// Extensions of compressed files. Programs that load archives may choose a decompressor by them.
const COMPRESSED: [&str; 8] = ["gz", "tgz", "zst", "tzst", "xz", "txz", "bz2", "lz4"];

/// The reason that is reported for images without a problem if other images prevent the export.
const NOT_WRITTEN: &str = "not written, because other images are missing";

/// Write the images as one archive for container runtimes
///
/// ctr, nerdctl, k3s and RKE2 load it. docker and podman need --format docker.
#[derive(Args)]
pub(crate) struct ExportImages {
    #[command(flatten)]
    content: ContentFlags,
    /// The tar archive to write, a folder for landfall-images.tar, or - for stdout
    #[arg(short, long, value_name = "FILE|DIR|-")]
    out: PathBuf,
    #[command(flatten)]
    replace: ReplaceFlag,
    /// The format of the archive
    #[arg(long, value_enum, default_value_t = ArchiveFormat::Oci)]
    format: ArchiveFormat,
    /// Export only this platform of each image, as in linux/amd64 (may be repeated for oci)
    /// [default: all]
    #[arg(long, value_name = "PLATFORM")]
    platform: Vec<Platform>,
    /// Also add the names of the images at this registry [default: registry.address of the site]
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    to: Option<TargetRegistry>,
    /// Show what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// The format of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ArchiveFormat {
    /// An OCI image layout for ctr, nerdctl, k3s, RKE2 and skopeo, but not for docker and podman
    Oci,
    /// The format of `docker save`, with one platform: for docker, podman and all programs that
    /// load the format oci
    Docker,
}

/// The destination of the archive.
enum ArchiveOutput {
    Stdout(File),
    /// Removes the temporary file when dropped.
    File(AtomicFile),
    /// Nothing is written: a dry run.
    Nowhere,
}

impl ExportImages {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        if self.format == ArchiveFormat::Docker && self.platform.len() > 1 {
            return Err(CliError::usage(
                "a docker archive has one platform per image: give one --platform, or use \
                 --format oci",
            ));
        }
        let path = self.path()?;
        let place = self.place(context, &path)?;
        let mapping = self.mapping(context)?;
        let (lock, blobs) = self
            .content
            .open(context, |entry| entry.kind == EntryKind::Image)?;
        // If two images had the same name, a runtime would keep only the one that it loads last.
        if let Some(collision) = mapping
            .as_ref()
            .and_then(|mapping| collision(mapping, &lock))
        {
            return Err(CliError::usage(collision));
        }
        let progress = Arc::clone(&context.progress);
        context.run(async move {
            // The output stays in this task: Ctrl-C drops it, which removes the temporary file.
            let out = place.file().map_err(|error| Failure::write(&path, error))?;
            let to = path.clone();
            let is_stdout = matches!(place, ArchiveOutput::Stdout(_));
            let notes = Arc::clone(&progress);
            let mut outcome = run_blocking("exporting", move || {
                self.export(&lock, &*blobs, mapping.as_ref(), &to, out, &*progress)
            })
            .await??;
            if let ArchiveOutput::File(under_way) = place {
                under_way
                    .finish()
                    .map_err(|error| Failure::write(&path, error))?;
            }
            // Stdout contains the archive, so the text goes to stderr.
            if is_stdout {
                notes.note(std::mem::take(&mut outcome.text).trim_end());
            }
            Ok(outcome)
        })
    }

    /// The path of the archive, or `-`.
    fn path(&self) -> Result<PathBuf, CliError> {
        let ending = self.out.extension().and_then(|ending| ending.to_str());
        match ending.filter(|ending| COMPRESSED.contains(ending)) {
            _ if self.out.is_dir() => Ok(self.out.join(ARCHIVE)),
            None => Ok(self.out.clone()),
            Some(ending) => Err(CliError::usage(format!(
                "{}: the archive is not compressed, since its layers are; programs that load it \
                 may trust the extension .{ending}",
                self.out.display()
            ))
            .with_help("use the extension .tar, or compress the output of -o -")),
        }
    }

    fn place(&self, context: &Context, path: &Path) -> Result<ArchiveOutput, CliError> {
        let is_stdout = path == Path::new("-");
        if !is_stdout {
            refuse_special(path).map_err(|error| Failure::write(path, error))?;
            let mut guard = OutputGuard::new(self.replace.replaces);
            guard.check(path, is_image_archive);
            guard.finish()?;
        }
        if self.dry_run {
            return Ok(ArchiveOutput::Nowhere);
        }
        if is_stdout {
            let stdout = result_stdout(context, "the archive")?;
            return Ok(ArchiveOutput::Stdout(stdout));
        }
        check_folder("the archive", path)?;
        let file = AtomicFile::begin(path).map_err(|error| Failure::write(path, error))?;
        Ok(ArchiveOutput::File(file))
    }

    /// The mapping to `--to` or to the registry of the site. Its destinations are added as names of
    /// the images.
    fn mapping(&self, context: &Context) -> Result<Option<DestinationMap>, CliError> {
        let is_known = self.to.is_some() || context.site_target()?.is_some();
        is_known
            .then(|| context.mapping(self.to.as_ref()))
            .transpose()
    }

    fn export(
        &self,
        lock: &Lock,
        blobs: &dyn BlobRead,
        mapping: Option<&DestinationMap>,
        path: &Path,
        out: Option<File>,
        progress: &dyn Progress,
    ) -> Result<VerbOutcome, CliError> {
        let format = match self.format {
            ArchiveFormat::Oci => ImageArchiveFormat::Oci,
            ArchiveFormat::Docker => ImageArchiveFormat::Docker,
        };
        let options = ImageArchiveOptions {
            format,
            platforms: &self.platform,
            mapping,
        };
        let archive = ImageArchive::plan(lock, blobs, &options)?;
        let lost: Vec<ReportItem> = losses(lock)
            .into_iter()
            .filter(|item| item.kind == EntryKind::Image)
            .collect();
        let lost = [lost, archive.lost.clone()].concat();
        let bad = || {
            lost.iter()
                .filter(|item| item.status != ItemStatus::Skipped)
        };
        if archive.images.is_empty() && bad().next().is_none() {
            let accepted = item_lines(&lost);
            let message = format!("the lock contains no images\n{accepted}");
            let report = report(&archive, &lost, Some(NOT_WRITTEN));
            return Err(CliError::usage(message.trim_end()).with_report(report));
        }
        if archive.images.is_empty() || (bad().next().is_some() && !self.content.allow_partial) {
            let lines = item_lines(bad()).trim_end().replace('\n', "\n  ");
            let message = format!(
                "nothing was written, because {} missing:\n  {lines}",
                if bad().count() == 1 {
                    "an image is"
                } else {
                    "images are"
                }
            );
            let report = report(&archive, &lost, Some(NOT_WRITTEN));
            let help = if archive.images.is_empty() {
                "`landfall pull` downloads them into the store"
            } else {
                "`landfall pull` downloads them into the store; --allow-partial exports the others"
            };
            return Err(CliError::failed(message)
                .with_help(help)
                .with_report(report)
                .on(TransferSide::Source));
        }
        let skipped = out.is_none().then_some("would be written");
        let mut report = report(&archive, &lost, skipped);
        let format = self.format.to_possible_value();
        let format = format.as_ref().map(PossibleValue::get_name);
        report.add(member(&archive, path, format));
        if let Some(out) = out {
            progress.begin("export", archive.images.len() as u64, archive.blob_bytes());
            let written = archive
                .write(blobs, &mut Blocking(&out), progress)
                .and_then(|()| sync(&out).map_err(CopyError::Write));
            archive
                .images
                .iter()
                .for_each(|image| progress.item(&image.name));
            progress.end();
            written.map_err(|error| match error {
                CopyError::Write(error) => Failure::write(path, error),
                CopyError::Content(error) => {
                    Failure::failed(error.to_string()).on(TransferSide::Source)
                }
            })?;
            report.bytes_transferred = archive.size();
        }
        let text = text(
            &archive,
            &lost,
            path,
            self.dry_run,
            lock,
            self.format == ArchiveFormat::Oci,
        );
        Ok(VerbOutcome::of_run(self.dry_run, report, text))
    }
}

impl ArchiveOutput {
    /// A second handle to the output, for the thread that writes; `None` for a dry run.
    fn file(&self) -> io::Result<Option<File>> {
        match self {
            ArchiveOutput::Stdout(file) => file.try_clone().map(Some),
            ArchiveOutput::File(under_way) => under_way.file().try_clone().map(Some),
            ArchiveOutput::Nowhere => Ok(None),
        }
    }
}

/// Flushes the archive to disk. A pipe cannot be flushed.
fn sync(out: &File) -> io::Result<()> {
    let is_file = out.metadata()?.is_file();
    if is_file { out.sync_all() } else { Ok(()) }
}

/// The report: the images in the archive, and the items that are `lost`. If the archive is not
/// written, `skipped` is the reason that the report states for the images.
pub(crate) fn report(
    archive: &ImageArchive,
    lost: &[ReportItem],
    skipped: Option<&str>,
) -> VerbReport {
    let items = archive.images.iter().map(|image| ReportItem {
        digest: Some(image.digest.clone()),
        bytes: Some(image.bytes),
        ..ReportItem::new(
            EntryKind::Image,
            image.name.clone(),
            if skipped.is_none() {
                ItemStatus::Done
            } else {
                ItemStatus::Skipped
            },
            skipped.map(str::to_owned),
        )
    });
    let mut report = VerbReport::of(items.chain(lost.iter().cloned()).collect());
    report.add(ReportMember::TrimmedInArchive(archive.trimmed.clone()));
    report
}

/// The member `archive` of a report.
pub(crate) fn member(archive: &ImageArchive, path: &Path, format: Option<&str>) -> ReportMember {
    let images = archive.images.iter().map(|image| ArchivedImageRow {
        name: image.name.clone(),
        digest: image.top.digest.clone(),
        names: image.names.clone(),
    });
    ReportMember::Archive {
        path: path.display().to_string(),
        format: format.map(str::to_owned),
        bytes: archive.size(),
        images: images.collect(),
    }
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

// The licences of locked images and charts, as far as their content is available.

/// The annotation with the licence of a chart, as Artifact Hub reads it.
const OF_CHARTS: &str = "artifacthub.io/license";

/// Returns the licences of the items that declare one, by the name of the item. Images declare it
/// in annotations or labels, charts in the annotations of Chart.yaml. Content that `blobs` lacks is
/// skipped.
pub(crate) fn licences(lock: &Lock, blobs: &dyn BlobRead) -> BTreeMap<String, String> {
    let licence = |item: LockedItem<'_>| match item {
        LockedItem::Chart(chart) => of_chart(&chart.archive()?, blobs),
        LockedItem::Image(_) => ImageFacts::of(&item.entry(), blobs).licences,
        _ => None,
    };
    lock.items()
        .filter_map(|item| Some((item.name().into_owned(), licence(item)?)))
        .collect()
}

fn of_chart(chart: &ChartArchive, blobs: &dyn BlobRead) -> Option<String> {
    let limits = Limits::default();
    if chart.archive.size > limits.archive_bytes {
        return None;
    }
    let files = unpack(
        &blobs.read(&chart.archive).ok()?,
        &mut ArchiveBudget::new(&limits),
    )
    .ok()?;
    // Subcharts in the folder `charts` have a Chart.yaml too.
    let is_its_own = |path: &&String| path.split('/').count() == 2 && path.ends_with("/Chart.yaml");
    let text = &files[files.keys().find(is_its_own)?];
    let metadata: Value = yaml::from_slice(text).ok()?;
    Some(
        metadata
            .get("annotations")?
            .get(OF_CHARTS)?
            .as_str()?
            .to_owned(),
    )
}
