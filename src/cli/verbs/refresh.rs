//! `landfall refresh`: update, lock, pull and pack as one command for a scheduled job. Its state is
//! git and the store.

use crate::cli::shared::bases::Given;
use crate::cli::shared::failing;
use crate::cli::shared::lock_output::Old;
use crate::cli::shared::losses::loss_lines;
use crate::cli::shared::package_changes::{add_changelogs, package_tables};
use crate::cli::shared::packed::{
    SerialFlags, bundle_lines, bundle_member, note_whole_file, pack_report, signer, volume_lines,
};
use crate::cli::shared::remote::{Upload, object, remote};
use crate::cli::shared::room::check_output;
use crate::cli::shared::store_place::{StorePlace, open_objects};
use crate::cli::shared::summary::{good_of_all, lost_count};
use crate::cli::shared::updating::{self, UpdateFlags, counted};
use crate::cli::shared::{Context, Exit, Failure, Outcome};
use crate::client::Client;
use crate::lock::Locked;
use crate::update::Updated;
use clap::Args;
use landfall_bundle::{
    self as bundle, BaseName, Bundle, PackOptions, PackPlan, Packaging, VolumeSize,
};
use landfall_content::Store;
use landfall_content::bucket::Bucket;
use landfall_content::store::Disk;
use landfall_item::lockfile::Lock;
use landfall_model::report::{ItemStatus, ReportItem, RunReport, code, count_of};
use landfall_model::sign::Signer;
use landfall_model::{Digest, human_size, today};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// Update, lock, pull and pack what is new: one command for a scheduled job
///
/// It can be run again at any time, and does the rest. Where nothing is new, it writes nothing.
#[derive(Args)]
pub(crate) struct Refresh {
    #[command(flatten)]
    update: UpdateFlags,
    /// The bundle to write, where something is new
    #[arg(short, long, value_name = "BUNDLE")]
    out: PathBuf,
    /// Leave out what this bundle, lock or receipt of a push has (repeated: what all of them have)
    #[arg(long, value_name = "BUNDLE|LOCK|RECEIPT")]
    since: Vec<PathBuf>,
    /// zstd's level for what is not compressed yet
    #[arg(long, value_name = "1-19", default_value_t = 3, value_parser = clap::value_parser!(i32).range(1..=19))]
    level: i32,
    /// Split it into volumes, as `pack --volume-size`
    #[arg(long, value_name = "SIZE|dvd|bd|fat32")]
    volume_size: Option<VolumeSize>,
    /// Sign the bundle, as `pack --sign`
    #[arg(long, value_name = "KEY")]
    sign: Option<String>,
    #[command(flatten)]
    serial: SerialFlags,
    /// Ask for the digest of each image too whose tags are listed for newer versions: one request
    /// more, by which a push of the same tag is seen
    #[arg(long)]
    digests: bool,
    /// Pack what is there where something is missing; the bundle says what it lacks
    #[arg(long)]
    allow_partial: bool,
    /// Show what would change and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// What is known of a run when it ends.
struct Done {
    updated: Updated,
    locked: Locked,
    /// What was pulled, where something was.
    pulled: Option<Vec<ReportItem>>,
    /// What was written of manifests and lock.
    files: Vec<PathBuf>,
    packed: Option<Packed>,
}

/// What came of the bundle.
struct Packed {
    lines: String,
    /// Of the report.
    member: Option<serde_json::Value>,
    /// One for each thing that it lacks.
    lost: Vec<ReportItem>,
}

impl Refresh {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        // what cannot be read or written is found before anything is asked
        let signer = signer(self.sign.as_deref())?;
        let object = self.object(context)?;
        let has = self
            .since
            .iter()
            .map(|path| Ok(fingerprint(&Given::open(context, path)?)));
        let has = has.collect::<Result<Vec<_>, Failure>>()?;
        context.run(async {
            let client = context.client()?;
            let memory = Disk::open(&context.memory_dir()?)?;
            let planned = self.update.plan(&client, &memory, self.digests).await;
            client.remember_hosts(&memory, "refresh");
            let (updated, old) = planned?;
            if self.dry_run {
                return Ok(Self::dry(&updated, client.report(updated.items())));
            }
            let work = self.work(
                (&client, context),
                &memory,
                (updated, old),
                &has,
                (object, signer),
            );
            let done = Box::pin(work).await;
            client.remember_hosts(&memory, "refresh");
            Self::finish(done?, &client, &memory)
        })
    }

    /// The object that the bundle is to be, where `--out` names one; else a file can be written
    /// there.
    fn object(&self, context: &Context) -> Result<Option<(Bucket, String)>, Failure> {
        let object = object(context, &self.out)?;
        match (&object, &self.volume_size) {
            (None, _) => check_output("the bundle", &self.out)?,
            (Some(_), None) => {}
            (Some(_), Some(_)) => {
                let words = "in an object store the bundle is one object: leave --volume-size out";
                return Err(Failure::usage(words));
            }
        }
        Ok(object)
    }

    async fn work(
        &self,
        (client, context): (&Client, &Context),
        memory: &Disk,
        (updated, old): (Updated, Option<Old>),
        has: &[Option<Digest>],
        (object, signer): (Option<(Bucket, String)>, Option<Arc<Signer>>),
    ) -> Result<Done, Failure> {
        UpdateFlags::write_manifests(&updated, context)?;
        let (locked, is_new) = self
            .update
            .write_lock((client, context), &updated, old.as_ref(), memory)
            .await?;
        let mut files: Vec<PathBuf> = updated.files().into_iter().cloned().collect();
        files.extend(is_new.then(|| self.update.lock.clone()));
        context.shown.lock(&locked.lock, Some(memory));
        let mut done = Done {
            updated,
            locked,
            pulled: None,
            files,
            packed: None,
        };
        if done.locked.lock.items().next().is_none()
            || self.is_carried(context, &done.locked.lock, has)
        {
            return Ok(done);
        }
        let store: Arc<dyn Store> = match context.store_place()? {
            StorePlace::Folder(_) => Arc::new(memory.clone()),
            StorePlace::Bucket(location) => open_objects(client, &location)?,
        };
        let lock = &done.locked.lock;
        done.pulled = Some(
            client
                .pull_to(lock, store.clone(), false, &BTreeSet::new())
                .await?,
        );
        let changes = &mut done.locked.changes;
        tokio::task::block_in_place(|| add_changelogs(context, changes, lock, memory));
        done.packed = Some(
            self.pack(lock.clone(), store, (object, signer), context)
                .await?,
        );
        Ok(done)
    }

    /// Whether the far side has all that `lock` names, or the bundle is there already.
    fn is_carried(&self, context: &Context, lock: &Lock, has: &[Option<Digest>]) -> bool {
        let wanted = lock.fingerprint();
        if !has.is_empty() && has.iter().all(|one| one.as_ref() == Some(&wanted)) {
            return true;
        }
        let remote = remote(context, &self.out);
        let opened = remote.map(|bundle| bundle.or_else(|| Bundle::open(&self.out).ok()));
        let Ok(Some(bundle)) = opened else {
            return false;
        };
        let bases: BTreeSet<Digest> = bundle
            .bases()
            .iter()
            .map(|base| lock_of(base).clone())
            .collect();
        let given: BTreeSet<Digest> = has.iter().flatten().cloned().collect();
        bundle.fingerprint() == &wanted && bundle.partial().is_empty() && bases == given
    }

    /// Packs the bundle. Where something is missing and that is not allowed, there is none.
    async fn pack(
        &self,
        lock: Lock,
        store: Arc<dyn Store>,
        (object, signer): (Option<(Bucket, String)>, Option<Arc<Signer>>),
        context: &Context,
    ) -> Result<Packed, Failure> {
        let bases = self
            .since
            .iter()
            .map(|path| Ok(Given::open(context, path)?.base()));
        let bases = bases.collect::<Result<Vec<_>, Failure>>()?;
        let serial = self.serial.of(&lock)?;
        let (out, level, allow_partial) = (self.out.clone(), self.level, self.allow_partial);
        let volume_size = self.volume_size;
        let progress = Arc::clone(&context.progress);
        let upload = object
            .map(|(bucket, name)| Upload::begin(&bucket, &name, &lock))
            .transpose()?;
        let (upload, _given_up) = upload.unzip();
        let work = tokio::task::spawn_blocking(move || {
            let mut plan = PackPlan::since(&lock, &*store, &bases, today())?;
            plan.serial = serial;
            let lost = pack_report(&lock, &plan, ItemStatus::Done).items;
            let lost: Vec<ReportItem> = lost
                .into_iter()
                .filter(|item| item.status == ItemStatus::Missing)
                .collect();
            if plan.items.is_empty() || (!lost.is_empty() && !allow_partial) {
                let lines = "no bundle was made, as something is missing; --allow-partial makes one without that\n";
                return Ok(Packed {
                    lines: lines.into(),
                    member: None,
                    lost,
                });
            }
            let keys: Vec<_> = signer.iter().map(|signer| signer.key().clone()).collect();
            let (options, packaging) = (
                PackOptions { level },
                Packaging {
                    volume_size,
                    signer,
                    ..Packaging::default()
                },
            );
            let written = match upload {
                Some(upload) => {
                    let signer = packaging.signer.as_deref();
                    upload.write(&plan, &*store, &out, options, signer, &*progress)?
                }
                None => {
                    bundle::write_packaged(&plan, &*store, &out, options, &packaging, &*progress)?
                }
            };
            note_whole_file(&out, volume_size.is_some(), &*progress);
            let omitted: u64 = plan.omitted.iter().map(|blob| blob.size).sum();
            let mut lines = format!(
                "packed {}\n{}",
                out.display(),
                bundle_lines(&plan, &written)
            );
            lines += &volume_lines(&written, volume_size.is_some());
            lines.extend(
                keys.iter()
                    .map(|key| format!("  signed by         {key}\n")),
            );
            if !bases.is_empty() {
                lines += &format!("  left out          {}\n", human_size(omitted));
            }
            Ok(Packed {
                lines,
                member: Some(bundle_member(&plan, &out, &written, &keys)),
                lost,
            })
        });
        work.await
            .map_err(|error| Failure::new(Exit::Failed, format!("packing stopped: {error}")))?
    }

    fn finish(done: Done, client: &Client, memory: &Disk) -> Result<Outcome, Failure> {
        let Done {
            updated,
            locked,
            pulled,
            files,
            packed,
        } = done;
        let mut items = locked.items.clone();
        for pulled in pulled
            .into_iter()
            .flatten()
            .chain(packed.iter().flat_map(|packed| packed.lost.clone()))
        {
            join(&mut items, pulled);
        }
        updated.fail(&mut items);
        failing::remember(memory, &mut items, today())?;
        let mut report = client.report(items);
        updating::tell(&mut report, &updated);
        report.extra.insert("changes".into(), json!(locked.changes));
        report
            .extra
            .insert("endpointChanges".into(), json!(locked.endpoints));
        report
            .extra
            .insert("lock".into(), json!(locked.lock.fingerprint()));
        if let Some(member) = packed.as_ref().and_then(|packed| packed.member.clone()) {
            report.extra.insert("bundle".into(), member);
        }
        let nothing_new = files.is_empty() && packed.is_none();
        let mut lines = updating::lines(&updated);
        if !nothing_new {
            lines.extend(updating::lock_lines(&locked));
        }
        let mut text: String = lines.into_iter().map(|line| line + "\n").collect();
        text += &loss_lines(&report.items);
        if !files.is_empty() {
            let counted = good_of_all(&report.items);
            let names = updating::names(&files.iter().collect::<Vec<_>>());
            text += &format!("wrote {names}: {counted}{}\n", lost_count(&report.totals()));
        }
        text += packed.as_ref().map_or("", |packed| &packed.lines);
        if nothing_new {
            text += match report.has_losses() {
                false => "unchanged\n",
                true => "nothing new as far as it could be asked; nothing is written\n",
            };
        }
        let markdown = Self::markdown(&updated, &locked, &report, nothing_new);
        let mut outcome = Outcome {
            markdown: Some(markdown),
            ..Outcome::of(report, text)
        };
        if outcome.exit == Exit::Failed && packed.is_some_and(|packed| packed.member.is_some()) {
            outcome.exit = Exit::Partial;
        }
        Ok(outcome)
    }

    fn markdown(
        updated: &Updated,
        locked: &Locked,
        report: &RunReport,
        nothing_new: bool,
    ) -> String {
        let counted = match (nothing_new, &counted(updated)[..]) {
            (true, "") => "unchanged".to_owned(),
            (false, "") => {
                // as `diff` and the page count: a version that replaces another is one change
                let changes = locked
                    .changes
                    .iter()
                    .filter(|change| change.replaced_by.is_none());
                let count = changes.count() + locked.endpoints.len();
                format!("{} in the lock", count_of(count, "change"))
            }
            (_, counted) => counted.to_owned(),
        };
        let bundle = match report.extra.get("bundle") {
            Some(bundle) => {
                format!(
                    "; the bundle has {}",
                    human_size(bundle["bytes"].as_u64().unwrap_or_default())
                )
            }
            None => String::new(),
        };
        let mut summary = format!("**{counted}**{bundle}");
        if report.has_losses() && !report.extra.contains_key("bundle") {
            let lost = lost_count(&report.totals());
            summary = format!(
                "**No bundle was made**{}\n\n{summary}",
                lost.replacen(", ", ": ", 1)
            );
        }
        summary += &updating::gone(updated, &locked.changes);
        let mut document = updating::markdown(&summary, updated, report);
        package_tables(&mut document, &locked.changes);
        document.line(&format!(
            "Lock fingerprint {}",
            code(&locked.lock.fingerprint().to_string())
        ));
        document.finish()
    }

    fn dry(updated: &Updated, mut report: RunReport) -> Outcome {
        updating::tell(&mut report, updated);
        let mut text: String = updating::lines(updated)
            .into_iter()
            .map(|line| line + "\n")
            .collect();
        text += &loss_lines(&report.items);
        text += &match updated.files()[..] {
            [] => "would write no manifest\n".to_owned(),
            ref files => format!(
                "would write {}, the lock and the bundle\n",
                updating::names(files)
            ),
        };
        let markdown = updating::markdown("**dry run**", updated, &report).finish();
        Outcome {
            markdown: Some(markdown),
            ..Outcome::of(report, text)
        }
    }
}

/// Joins what became of an item in a later step with what is known of it: the worse counts.
fn join(items: &mut Vec<ReportItem>, later: ReportItem) {
    let is_lost = |status| matches!(status, ItemStatus::Failed | ItemStatus::Missing);
    match items
        .iter_mut()
        .find(|item| (item.kind, &item.name) == (later.kind, &later.name))
    {
        None => items.push(later),
        Some(item) if is_lost(item.status) => {}
        Some(item) if later.status == ItemStatus::Present => {
            item.bytes = later.bytes.or(item.bytes)
        }
        Some(item) => *item = later,
    }
}

/// The fingerprint of the lock of which the far side has everything; `None` for a bundle that lacks
/// something.
fn fingerprint(given: &Given) -> Option<Digest> {
    match given {
        Given::Bundle(bundle) => {
            Some(bundle.fingerprint().clone()).filter(|_| bundle.partial().is_empty())
        }
        Given::Lock(lock) => Some(lock.fingerprint()),
        Given::Receipt(receipt) => Some(receipt.lock.clone()),
    }
}

fn lock_of(base: &BaseName) -> &Digest {
    match base {
        BaseName::Bundle { lock, .. }
        | BaseName::Lock { lock }
        | BaseName::Receipt { lock, .. } => lock,
    }
}
