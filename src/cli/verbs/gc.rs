//! `landfall gc`: removes from the store what no lock or bundle needs.

use crate::cli::shared::open_bundle::{self, open_object};
use crate::cli::shared::store_location::{StoreLocation, check_is_store};
use crate::cli::shared::{
    CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport, nonzero_count, nonzero_seconds,
};
use clap::Args;
use landfall_bundle::{Bundle, Serial};
use landfall_content::bucket::{BucketLocation, block_on};
use landfall_content::store::{
    BucketGc, BucketGcReport, DiskGc, DiskGcReport, ServedStore, SweptBlob,
};
use landfall_item::lockfile::{FILE_NAME, Lock};
use landfall_model::report::count_of;
use landfall_model::{Digest, Failure, human_size};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Remove from the store what no lock or bundle needs
///
/// Fails if another command uses a store on disk. An object store may be in use during the run: an
/// unused blob is marked first, and a later gc deletes it when the grace period is over and no lock
/// or run has claimed it since.
#[derive(Args)]
pub(crate) struct GcCommand {
    /// Keep the content of this lock; name every lock of this store (may be repeated) [default:
    /// landfall.lock]
    #[arg(long = "lock", value_name = "FILE", num_args = 1..)]
    locks: Vec<PathBuf>,
    /// Keep the content of this bundle, unless --keep-last excludes it (may be repeated)
    #[arg(long = "bundle", value_name = "BUNDLE", num_args = 1..)]
    bundles: Vec<PathBuf>,
    /// Keep only the last N bundles of each series, by serial number or, without one, by age
    #[arg(long, value_name = "N", requires = "bundles", value_parser = nonzero_count)]
    keep_last: Option<usize>,
    /// How long an unused blob is kept in an object store; must be longer than any run takes
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = nonzero_seconds)]
    grace: u64,
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

fn bundle_paths(bundles: &[Bundle]) -> Vec<String> {
    bundles
        .iter()
        .map(|bundle| bundle.path().display().to_string())
        .collect()
}

/// The time when the bundle at `path` was written.
fn written_at(context: &Context, path: &Path) -> Result<SystemTime, CliError> {
    if let Some(object) = open_object(context, path)? {
        return Ok(object.modified());
    }
    // A split bundle has no file with its own name.
    let first_volume = PathBuf::from(format!("{}.0001", path.display()));
    let look = std::fs::metadata(path).or_else(|_| std::fs::metadata(first_volume));
    look.and_then(|file| file.modified())
        .map_err(|error| Failure::read(path, error).into())
}

fn total_size(blobs: &[SweptBlob]) -> String {
    human_size(blobs.iter().map(|blob| blob.bytes).sum())
}

impl GcCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        let dir = match context.store_location()? {
            StoreLocation::Folder(dir) => dir,
            StoreLocation::Bucket(location) => {
                let published_store = context.published_store(context.limits)?;
                let (digests, _) = self.needed_content(context, published_store)?;
                return self.sweep_objects(context, &location, digests);
            }
        };
        check_is_store(&dir)?;
        let gc = DiskGc::begin(&dir, self.dry_run)?;
        let published_store = ServedStore::Disk(gc.store().clone());
        let (digests, [last, older]) = self.needed_content(context, published_store)?;
        let swept = gc.run(&digests)?;
        let mut report = VerbReport::default();
        let text = self.text(&swept);
        report.add(ReportMember::Bundles {
            kept: bundle_paths(&last),
            older: bundle_paths(&older),
        });
        report.add(ReportMember::Removed(swept.removed));
        report.add(ReportMember::Kept {
            blobs: swept.kept,
            bytes: swept.kept_bytes,
        });
        let strange: Vec<_> = swept
            .strange
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        report.add(ReportMember::Strange(strange));
        Ok(VerbOutcome::new(report, text, Exit::Done))
    }

    /// The content that the named locks and bundles and the servers of `published_store` need, the
    /// bundles whose content is kept, and older ones.
    fn needed_content(
        &self,
        context: &Context,
        published_store: ServedStore,
    ) -> Result<(BTreeSet<Digest>, [Vec<Bundle>; 2]), CliError> {
        let mut digests = BTreeSet::new();
        let mut add_needed = |lock: &Lock| digests.extend(lock.digests());
        for path in self.locks() {
            add_needed(&context.read_lock(path)?);
        }
        let (last, older) = self.last_bundles(context)?;
        for bundle in &last {
            add_needed(&bundle.lock()?);
        }
        // Servers of this store may be serving the published lock and the one before it.
        let served = block_on(async move { Ok(published_store.served().await) })??;
        if let Some((_, lock, before)) = served {
            for text in std::iter::once(&lock).chain(&before) {
                add_needed(&Lock::parse("the published lock", text)?);
            }
        }
        Ok((digests, [last, older]))
    }

    /// Collects garbage in an object store.
    fn sweep_objects(
        &self,
        context: &Context,
        location: &BucketLocation,
        keep: BTreeSet<Digest>,
    ) -> Result<VerbOutcome, CliError> {
        context.run(async {
            let client = context.client()?;
            let bucket = client.bucket(location)?;
            let names = |claim: &[u8]| {
                let lock = Lock::parse(FILE_NAME, std::str::from_utf8(claim).ok()?).ok()?;
                Some(lock.digests().collect())
            };
            let grace = Duration::from_secs(self.grace);
            let now = SystemTime::now();
            let dry_run = self.dry_run;
            let sweep = BucketGc {
                bucket: &bucket,
                keep,
                names: &names,
                grace,
                now,
                dry_run,
            };
            let collected = sweep.run().await?;
            let text = self.objects_text(&collected);
            let mut report = VerbReport::from(client.report(Vec::new()));
            report.add(ReportMember::RemovedBlobs(collected.deleted));
            report.add(ReportMember::Condemned(collected.condemned));
            report.add(ReportMember::Waiting(collected.waiting));
            report.add(ReportMember::Uploads(collected.uploads));
            report.add(ReportMember::Kept {
                blobs: collected.kept,
                bytes: collected.kept_bytes,
            });
            report.add(ReportMember::Claims(collected.claims));
            Ok(VerbOutcome::new(report, text, Exit::Done))
        })
    }

    fn objects_text(&self, collected: &BucketGcReport) -> String {
        let (deleted, condemned, aborted) = if self.dry_run {
            ("would delete", "would condemn", "would abort")
        } else {
            ("deleted", "condemned", "aborted")
        };
        let mut text = format!(
            "{deleted} {}, {}; {condemned} {}, {}; {} kept, {}\n",
            count_of(collected.deleted.len(), "blob"),
            total_size(&collected.deleted),
            collected.condemned.len(),
            total_size(&collected.condemned),
            count_of(collected.kept, "blob"),
            human_size(collected.kept_bytes)
        );
        if collected.condemned.len() + collected.waiting > 0 {
            text += "a gc after the grace period deletes condemned blobs\n";
        }
        if collected.uploads > 0 {
            let _ = writeln!(text, "{aborted} {}", count_of(collected.uploads, "upload"));
        }
        text
    }

    /// The locks that are named, or landfall.lock. If no bundle is named either, landfall.lock must
    /// exist: otherwise a gc in the wrong folder would remove everything.
    fn locks(&self) -> Vec<&Path> {
        let default = Path::new(FILE_NAME);
        let is_meant = self.locks.is_empty() && (self.bundles.is_empty() || default.exists());
        self.locks
            .iter()
            .map(PathBuf::as_path)
            .chain(is_meant.then_some(default))
            .collect()
    }

    /// The bundles to keep, and the older ones.
    fn last_bundles(&self, context: &Context) -> Result<(Vec<Bundle>, Vec<Bundle>), CliError> {
        let mut series: BTreeMap<Option<String>, Vec<(u64, SystemTime, Bundle)>> = BTreeMap::new();
        for path in &self.bundles {
            let bundle = open_bundle::open_any(context, std::slice::from_ref(path))?;
            let written = written_at(context, path)?;
            let (name, number) = match bundle.serial() {
                Some(Serial { series, number }) => (Some(series), number),
                None => (None, 0),
            };
            series
                .entry(name)
                .or_default()
                .push((number, written, bundle));
        }
        let mut last = Vec::new();
        let mut older = Vec::new();
        for mut bundles in series.into_values() {
            bundles.sort_by_key(|(number, written, _)| Reverse((*number, *written)));
            let mut bundles = bundles.into_iter().map(|(.., bundle)| bundle);
            last.extend(bundles.by_ref().take(self.keep_last.unwrap_or(usize::MAX)));
            older.extend(bundles);
        }
        Ok((last, older))
    }

    fn text(&self, swept: &DiskGcReport) -> String {
        let mut text = String::new();
        for removed in &swept.removed {
            let what = removed.what.to_string();
            let digest = &removed.digest;
            let _ = writeln!(
                text,
                "{what:<10} {digest}  {:>8}",
                human_size(removed.bytes)
            );
        }
        for path in &swept.strange {
            let _ = writeln!(
                text,
                "not removed, because it is not a file of the store: {}",
                path.display()
            );
        }
        let bytes = swept.removed.iter().map(|removed| removed.bytes).sum();
        let _ = writeln!(
            text,
            "{} {}, {}; {} kept, {}",
            if self.dry_run {
                "would remove"
            } else {
                "removed"
            },
            count_of(swept.removed.len(), "file"),
            human_size(bytes),
            count_of(swept.kept, "blob"),
            human_size(swept.kept_bytes)
        );
        text
    }
}
