//! `landfall gc`: the store without what no lock needs.

use crate::cli::shared::{Context, Exit, Failure, Outcome, input_file};
use crate::lockfile::FILE_NAME;
use crate::model::{LAYOUT_FILE, human_size};
use crate::report::{Report, escape};
use crate::store::{Swept, gc};
use clap::Args;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Remove from the store what none of these locks needs
#[derive(Args)]
pub(crate) struct Gc {
    /// A lock whose content stays; name every lock that this store serves (may be repeated)
    #[arg(long = "lock", value_name = "FILE", num_args = 1.., default_value = FILE_NAME)]
    locks: Vec<PathBuf>,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

impl Gc {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let mut keep = BTreeSet::new();
        for path in &self.locks {
            let parts = input_file::lock(path)?.entries().into_iter().flat_map(|entry| entry.parts);
            keep.extend(parts.map(|part| part.descriptor.digest));
        }
        let dir = context.store_dir()?;
        if !dir.join(LAYOUT_FILE).exists() {
            return Err(Failure::usage(format!("{} is no store; name one with --store DIR", dir.display())));
        }
        let swept = gc(&dir, &keep, self.dry_run)?;
        let mut report = Report::default();
        report.extra.insert("removed".into(), json!(swept.removed));
        report.extra.insert("kept".into(), json!({"blobs": swept.kept, "bytes": swept.kept_bytes}));
        let strange: Vec<_> = swept.strange.iter().map(|path| path.display().to_string()).collect();
        report.extra.insert("strange".into(), json!(strange));
        Ok(Outcome::new(report, escape(&self.text(&swept)), Exit::Done))
    }

    fn text(&self, swept: &Swept) -> String {
        let mut text = String::new();
        for removed in &swept.removed {
            let (what, digest) = (removed.what.to_string(), &removed.digest);
            let _ = writeln!(text, "{what:<10} {digest}  {:>8}", human_size(removed.bytes));
        }
        for path in &swept.strange {
            let _ = writeln!(text, "left, as it is none of the store's: {}", path.display());
        }
        let bytes = swept.removed.iter().map(|removed| removed.bytes).sum();
        let _ = writeln!(
            text,
            "{} {} files, {}; {} blobs stay, {}",
            if self.dry_run { "would remove" } else { "removed" },
            swept.removed.len(),
            human_size(bytes),
            swept.kept,
            human_size(swept.kept_bytes)
        );
        text
    }
}
