//! `landfall lock`.

use crate::cli::shared::listing::count_kinds;
use crate::cli::shared::summary::{change_line, item_line};
use crate::cli::shared::{Context, Exit, Failure, Outcome};
use crate::content::{refuse_special, sync_folder, temporary_in};
use crate::item::Pins;
use crate::lock::Locked;
use crate::lockfile::{FILE_NAME, Lock};
use crate::manifest;
use crate::report::{Item, Report, Status};
use crate::store::Disk;
use clap::Args;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Resolve everything that manifests ask for to digests, and write the lock
#[derive(Args)]
pub(crate) struct LockVerb {
    /// A manifest, or a folder of manifests (may be repeated)
    #[arg(short = 'f', long = "file", value_name = "MANIFEST|DIR", required = true, num_args = 1..)]
    manifests: Vec<PathBuf>,
    /// The lock
    #[arg(long, value_name = "FILE", default_value = FILE_NAME)]
    lock: PathBuf,
    /// Compare with upstream and write nothing; exit 4 if something moved
    #[arg(long)]
    check: bool,
    /// Ask for every tag again, also where the manifest is unchanged
    #[arg(long, conflicts_with = "check")]
    refresh: bool,
    /// Show what would change and write nothing
    #[arg(long)]
    dry_run: bool,
}

impl LockVerb {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let wanted = manifest::load(&self.manifests)?;
        let old = if self.lock.exists() { Some(Lock::load(&self.lock)?) } else { None };
        if self.check && old.is_none() {
            let path = self.lock.display();
            return Err(Failure::usage(format!(
                "there is no {path} to check; write it first, without --check"
            )));
        }
        let pins = if self.check || self.refresh { Pins::Refresh } else { Pins::Keep };
        context.run(async {
            let client = context.client()?;
            let store = Disk::open(&context.store_dir()?)?;
            let locked = client.lock(&wanted, old.as_ref(), pins, &store).await;
            let report = client.report(locked.items.clone());
            self.finish(locked, old.as_ref(), report)
        })
    }

    fn finish(&self, locked: Locked, old: Option<&Lock>, mut report: Report) -> Result<Outcome, Failure> {
        let mut text = String::new();
        let lock = &locked.lock;
        report.extra.insert("lock".into(), serde_json::json!(lock.fingerprint()));
        report.extra.insert("changes".into(), serde_json::json!(locked.changes));
        for change in &locked.changes {
            let _ = writeln!(text, "{}", change_line(change));
        }
        for item in report.items.iter().filter(|item| !matches!(item.status, Status::Done | Status::Present))
        {
            let _ = writeln!(text, "{}", item_line(item));
        }
        let writes = !self.check && !self.dry_run;
        if writes {
            write(&self.lock, &lock.to_text(), old)?;
        }
        let moved = locked.changes.len();
        let verb = match (self.check, moved) {
            (true, 0) => "nothing moved: checked",
            (true, _) => "something moved: checked",
            (false, _) if writes => "locked",
            (false, _) => "would lock",
        };
        let counted: Vec<Item> = report.items.iter().filter(|item| item.digest.is_some()).cloned().collect();
        let path = self.lock.display();
        let _ =
            writeln!(text, "{verb} {} in {path}, fingerprint {}", count_kinds(&counted), lock.fingerprint());
        let mut outcome = Outcome::of(report, text);
        if self.check && !locked.changes.is_empty() {
            outcome.exit = Exit::Refused;
        }
        Ok(outcome)
    }
}

fn write(path: &Path, text: &str, old: Option<&Lock>) -> Result<(), Failure> {
    if old.is_some_and(|old| old.to_text() == text) {
        return Ok(());
    }
    let failed = |error: std::io::Error| {
        Failure::new(Exit::Failed, format!("cannot write {}: {error}", path.display()))
    };
    // a link to a lock stays one
    let target = if path.is_symlink() { path.canonicalize().map_err(failed)? } else { path.into() };
    refuse_special(&target).map_err(failed)?;
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = temporary_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    if let Ok(old) = target.metadata() {
        file.as_file().set_permissions(old.permissions()).map_err(failed)?;
    }
    file.as_file().sync_all().map_err(failed)?;
    file.persist(&target).map_err(|error| failed(error.error))?;
    sync_folder(folder).map_err(failed)
}
