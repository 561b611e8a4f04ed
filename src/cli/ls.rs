//! `landfall ls`: what is in a bundle or a lock.

use super::listing::{count, item, line, lines, platforms, unique_bytes};
use super::lock::lost;
use super::{Exit, Failure, Outcome, carried};
use crate::bundle::{Bundle, is_split};
use crate::lock::Lock;
use crate::model::human_size;
use crate::pull::losses;
use crate::report::{Report, Status, escape};
use crate::source;
use clap::Args;
use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// List what is in a bundle or a lock
#[derive(Args)]
pub(super) struct Ls {
    /// The bundle or the lock
    #[arg(value_name = "BUNDLE|LOCK")]
    file: PathBuf,
}

impl Ls {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let bundle =
            if is_split(&self.file) || is_zstd(&self.file)? { Some(Bundle::open(&self.file)?) } else { None };
        let (lock, entries) = match &bundle {
            Some(bundle) => (bundle.lock()?, bundle.entries()?),
            None => {
                let lock = Lock::load(&self.file)?;
                let entries = source::entries(&lock);
                (lock, entries)
            }
        };
        let platforms = platforms(&lock);
        let platforms_of = |name: &str| {
            let platforms = platforms.get(name).into_iter().flatten();
            platforms.cloned().collect::<Vec<_>>().join(",")
        };
        let listed: String = entries.iter().map(|entry| line(entry, &platforms_of(&entry.name))).collect();
        let mut text = format!("{listed}{}, {}\n", count(&entries), human_size(unique_bytes(&entries)));
        let fingerprint = lock.fingerprint();
        let mut extra = json!({"lock": fingerprint, "platforms": platforms});
        if let Some(bundle) = &bundle {
            text += &format!("bundle digest     {}\n", bundle.digest());
            extra["bundle"] = carried::told(&self.file, bundle, None);
        }
        text += &format!("lock fingerprint  {fingerprint}\n");
        // what the bundle lacks is among the unresolved ones
        let held = bundle.as_ref().map(Bundle::held).transpose()?.unwrap_or(lock);
        let losses = losses(&held);
        let told =
            |of: Status| lines(&losses.iter().filter(|item| item.status == of).map(lost).collect::<Vec<_>>());
        text += &told(Status::Skipped);
        if losses.iter().any(|item| item.status == Status::Missing) {
            text += &format!("partial; it lacks\n{}", told(Status::Missing));
        }
        let items = entries.iter().map(|entry| item(entry, Status::Present)).chain(losses).collect();
        let mut report = Report { items, ..Report::default() };
        if let serde_json::Value::Object(extra) = extra {
            report.extra = extra;
        }
        Ok(Outcome { report, text: escape(&text), exit: Exit::Done })
    }
}

/// Whether the file begins as every bundle does, or as no lock.
fn is_zstd(path: &Path) -> Result<bool, Failure> {
    let cannot = |error| Failure::usage(format!("cannot read {}: {error}", path.display()));
    let mut first = Vec::new();
    File::open(path).and_then(|file| file.take(4).read_to_end(&mut first)).map_err(cannot)?;
    // a lock is text; what is none is meant to be a bundle, perhaps a damaged one
    Ok(first.is_empty() || first == zstd::zstd_safe::MAGICNUMBER.to_le_bytes() || !first.is_ascii())
}
