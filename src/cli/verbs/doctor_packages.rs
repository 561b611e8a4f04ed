//! `landfall doctor packages`: whether what is carried can be installed on a node.

use crate::cli::shared::exported_from::ExportedFrom;
use crate::cli::shared::{Context, Exit, Failure, Outcome};
use crate::doctor::rehearse;
use crate::item::PackageSet;
use crate::model::Limits;
use crate::report::{Kind, Report, Status, escape};
use clap::Args;
use serde_json::json;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Install the carried packages in thought on a node: what is missing, and what would be replaced
///
/// Reads a copy of the node's /var/lib/dpkg/status and the carried indexes, and chooses as the node's apt would. Exit 4 where
/// the node would ask for a package that is not carried, or the set cannot be installed on it.
#[derive(Args)]
pub(crate) struct Packages {
    /// A copy of the node's /var/lib/dpkg/status
    #[arg(long, value_name = "FILE")]
    status: PathBuf,
    #[command(flatten)]
    carried: ExportedFrom,
}

impl Packages {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let status = std::fs::read(&self.status)
            .map_err(|error| Failure::usage(format!("cannot read {}: {error}", self.status.display())))?;
        let status = String::from_utf8_lossy(&status).into_owned();
        if !status.contains("Status: ") {
            let message = format!(
                "{} is no status file of dpkg; copy /var/lib/dpkg/status from the node",
                self.status.display()
            );
            return Err(Failure::usage(message));
        }
        let (lock, blobs) = self.carried.open(context, |entry| entry.kind == Kind::Package)?;
        let is_apt = |set: &&PackageSet| set.name.starts_with("apt:");
        if !lock.packages.iter().any(|set| is_apt(&set)) {
            return Err(Failure::usage("the lock names no packages of apt, and a status file is of dpkg"));
        }
        let (mut report, mut text, mut replaced) = (Report::default(), String::new(), Vec::new());
        for set in lock.packages.iter().filter(is_apt) {
            let done = rehearse(set, &*blobs, &status, &Limits::default())
                .map_err(|error| Failure::new(Exit::Failed, format!("{}: {error}", set.name)))?;
            let count = |wanted| done.items.iter().filter(|item| item.status == wanted).count();
            let _ = writeln!(
                text,
                "{}: {} to be installed, all carried but {}",
                set.name,
                done.items.len(),
                count(Status::Missing)
            );
            for item in &done.items {
                if let Some(reason) = &item.reason {
                    let _ = writeln!(text, "  {}: {reason}", item.name);
                }
            }
            for line in &done.replaced {
                let _ = writeln!(text, "  replaced: {line}");
            }
            report.items.extend(done.items);
            replaced.extend(done.replaced);
        }
        report.extra.insert("replaced".into(), json!(replaced));
        let is_good = report.items.iter().all(|item| item.status == Status::Present);
        Ok(Outcome::new(report, escape(&text), if is_good { Exit::Done } else { Exit::Refused }))
    }
}
