//! `landfall pull`.

use crate::bundle::{PackOptions, PackPlan};
use crate::cli::shared::archives::{FromArchives, tell_taken, tell_there};
use crate::cli::shared::listing::count_kinds;
use crate::cli::shared::packed::{self, SerialFlags};
use crate::cli::shared::room::{room_of, tell_room};
use crate::cli::shared::shard::{ShardFlag, its_part, tell_shard};
use crate::cli::shared::summary::{good_of_all, loss_lines, lost_count};
use crate::cli::shared::{Context, Failure, Outcome, input_file};
use crate::client::{BundleOptions, PulledBundle};
use crate::content::{held, stored_once};
use crate::lockfile::{FILE_NAME, Lock};
use crate::model::{Descriptor, LAYOUT_FILE, Shard, human_size, today};
use crate::pull::Share;
use crate::report::{Item, Progress, Report, Status};
use crate::store::Disk;
use clap::Args;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Fetch everything that the lock names into the store, or straight into a bundle
#[derive(Args)]
pub(crate) struct Pull {
    /// The lock
    #[arg(long, value_name = "FILE", default_value = FILE_NAME)]
    lock: PathBuf,
    /// Fetch straight into this bundle, in place of the store; what the store has is taken from it
    #[arg(long, value_name = "BUNDLE", conflicts_with = "shard")]
    bundle: Option<PathBuf>,
    /// zstd's level for what is not compressed yet
    #[arg(long, value_name = "1-19", default_value_t = 3, requires = "bundle", value_parser = clap::value_parser!(i32).range(1..=19))]
    level: i32,
    /// Sign the bundle, as `pack --sign`
    #[arg(long, value_name = "KEY", requires = "bundle")]
    sign: Option<String>,
    #[command(flatten)]
    serial: SerialFlags,
    #[command(flatten)]
    from: FromArchives,
    #[command(flatten)]
    shard: ShardFlag,
    /// Hash everything in the store again, whatever its journal says
    #[arg(long)]
    rehash: bool,
    /// Say what is there and what would be fetched, and fetch nothing
    #[arg(long)]
    dry_run: bool,
}

impl Pull {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let lock = input_file::lock(&self.lock)?;
        let dir = context.store_dir()?;
        let shard = self.shard.get()?;
        match &self.bundle {
            Some(out) => self.to_bundle(context, &lock, &dir, out),
            None if self.dry_run => self.dry(&lock, shard, store(&dir)?.as_ref(), &dir, &*context.progress),
            None => self.to_store(context, &lock, shard, &dir),
        }
    }

    fn to_store(&self, context: &Context, lock: &Lock, shard: Shard, dir: &Path) -> Result<Outcome, Failure> {
        context.run(async {
            let client = context.client_of(shard, &self.from.from)?;
            let store = Disk::open(dir)?;
            let items = client.pull(lock, &store, self.rehash).await;
            client.remember_hosts(&store, "pull");
            let items = items?;
            context.shown.lock(lock, Some(&store));
            let mut report = client.report(items);
            let mut text = tell_taken(&mut report, &client) + &loss_lines(&report.items);
            text += &tell_shard(&self.shard, shard, &mut report);
            text += &closing_line(&report, shard, dir);
            Ok(Outcome::of(report, text))
        })
    }

    fn to_bundle(&self, context: &Context, lock: &Lock, dir: &Path, out: &Path) -> Result<Outcome, Failure> {
        let mut plan = PackPlan::wanted(lock, today());
        plan.serial = self.serial.of(lock)?;
        let plan = Arc::new(plan);
        if let Err(error) = plan.check_whole() {
            let report = Box::new(packed::pack_report(lock, &plan, Status::Skipped));
            return Err(Failure { report, ..error.into() });
        }
        let store = store(dir)?;
        let signer = packed::signer(self.sign.as_deref())?;
        if self.dry_run {
            return packed::dry_run(&plan, out, packed::pack_report(lock, &plan, Status::Skipped), "");
        }
        context.run(async {
            let client = context.client_from(&self.from.from)?;
            let pack = PackOptions { level: self.level };
            let options = BundleOptions { store: store.clone(), pack, signer, rehash: self.rehash };
            let pulled = client.pull_bundle(lock, plan.clone(), out, options).await;
            if let Some(store) = &store {
                client.remember_hosts(store, "pull");
            }
            let PulledBundle { items, packed, keys } = pulled?;
            context.shown.lock(lock, None);
            let mut report = client.report(items);
            let mut text = tell_taken(&mut report, &client) + &loss_lines(&report.items);
            text += &closing_line(&report, Shard::default(), out);
            match packed {
                Some(written) => {
                    text += &packed::bundle_lines(&plan, &written);
                    text.extend(keys.iter().map(|key| format!("  signed by         {key}\n")));
                    report.extra.insert("bundle".into(), packed::bundle_member(&plan, out, &written, &keys));
                }
                None => {
                    let out = out.display();
                    let _ = writeln!(
                        text,
                        "no bundle was made; what came stays in {out}.partial, and another run goes on from there"
                    );
                }
            }
            Ok(Outcome::of(report, text))
        })
    }

    /// What a pull into the store would do.
    fn dry(
        &self,
        lock: &Lock,
        shard: Shard,
        store: Option<&Disk>,
        dir: &Path,
        progress: &dyn Progress,
    ) -> Result<Outcome, Failure> {
        let share = Share::new(lock, shard);
        let (mut items, mut wanted) = (Vec::new(), BTreeMap::new());
        if let Some(store) = store {
            held(store, stored_once(share.each_entry()), false, progress)?;
        }
        for own in share.each() {
            let mut status = Status::Present;
            for blob in own.entry.parts.iter().map(|part| &part.descriptor) {
                if !store.map_or(Ok(false), |store| store.has(&blob.digest, blob.size))? {
                    status = Status::Skipped;
                    wanted.insert(blob.digest.clone(), blob.clone());
                }
            }
            items.push(Item { status, ..own.item() });
        }
        items.extend(share.losses());
        let bytes = wanted.values().map(|blob: &Descriptor| blob.size).sum();
        let room = match store {
            Some(store) => store.room(wanted.values().map(|blob| (&blob.digest, blob.size)))?,
            None => room_of(dir, bytes)?,
        };
        let mut report = Report { items, ..Report::default() };
        let room = tell_room(&mut report, &room);
        let totals = report.totals();
        let archives = tell_there(&mut report, &self.from, wanted)?;
        let runner = tell_shard(&self.shard, shard, &mut report);
        let text = format!(
            "{}{archives}{runner}would pull {}{} into {}{}: {} there, {} to come\n{room}",
            loss_lines(&share.losses()),
            its_part(shard),
            count_kinds(&report.items),
            dir.display(),
            lost_count(&totals),
            totals.present,
            human_size(bytes)
        );
        Ok(Outcome::of(report, text))
    }
}

/// The store in this folder, if there is one.
fn store(dir: &Path) -> Result<Option<Disk>, Failure> {
    Ok(dir.join(LAYOUT_FILE).exists().then(|| Disk::open(dir)).transpose()?)
}

fn closing_line(report: &Report, shard: Shard, into: &Path) -> String {
    let totals = report.totals();
    format!(
        "pulled {}{} into {}{}: {} new, {} there, {} in {} requests\n",
        its_part(shard),
        good_of_all(&report.items),
        into.display(),
        lost_count(&totals),
        totals.done,
        totals.present,
        human_size(totals.bytes_transferred),
        totals.requests
    )
}
