//! `landfall ls`: what is in a bundle or a lock.

use super::listing::{count, item, line, lines, platforms, unique_bytes};
use super::{Exit, Failure, Outcome};
use crate::bundle::{Bundle, is_split};
use crate::lock::Lock;
use crate::model::human_size;
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
            extra["bundle"] = json!({
                "path": self.file.display().to_string(), "digest": bundle.digest(), "bytes": bundle.bytes(),
                "partial": bundle.partial(),
            });
        }
        text += &format!("lock fingerprint  {fingerprint}\n");
        let lost: Vec<String> = match &bundle {
            Some(bundle) => {
                bundle.partial().iter().map(|lost| format!("{} {}", lost.kind, lost.name)).collect()
            }
            None => {
                let unresolved = lock.unresolved.iter();
                unresolved.map(|lost| format!("{} {}: {}", lost.kind, lost.name, lost.cause)).collect()
            }
        };
        if !lost.is_empty() {
            text += &format!("partial; it lacks\n{}", lines(&lost));
        }
        let mut report = Report {
            items: entries.iter().map(|entry| item(entry, Status::Present)).collect(),
            ..Report::default()
        };
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
