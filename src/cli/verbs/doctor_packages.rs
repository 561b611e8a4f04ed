//! `landfall doctor packages`: whether what is carried can be installed on a node.

use crate::cli::shared::exported_from::ExportedFrom;
use crate::cli::shared::{Context, Exit, Failure, Outcome};
use crate::doctor::{NodeList, rehearse};
use clap::Args;
use landfall_model::Limits;
use landfall_model::document::read_input;
use landfall_model::report::{EntryKind, ItemStatus, RunReport};
use serde_json::json;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Install the carried packages in thought on a node: what is missing, and what would be replaced
///
/// Reads what the node has and the carried indexes, and chooses as the node's apt or dnf would.
/// Exit 4 where the node would ask for a package that is not carried, or the set cannot be
/// installed on it. Sets of the other kind are left alone.
#[derive(Args)]
pub(crate) struct Packages {
    /// A copy of the node's /var/lib/dpkg/status
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "rpms",
        conflicts_with = "rpms"
    )]
    status: Option<PathBuf>,
    /// The output of the node's `rpm -qa`, best in the form that `landfall help packages` shows for
    /// `base`
    #[arg(long, value_name = "FILE")]
    rpms: Option<PathBuf>,
    #[command(flatten)]
    carried: ExportedFrom,
}

impl Packages {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let list = self.list()?;
        let (lock, blobs) = self
            .carried
            .open(context, |entry| entry.kind == EntryKind::Package)?;
        let sets: Vec<_> = lock
            .packages
            .iter()
            .filter(|set| list.is_for(set))
            .collect();
        if sets.is_empty() {
            let system = if self.rpms.is_some() { "yum" } else { "apt" };
            return Err(Failure::usage(format!(
                "the lock names no packages of {system}, and this is {list}"
            )));
        }
        let (mut report, mut text, mut replaced) =
            (RunReport::default(), String::new(), Vec::new());
        for set in sets {
            let done = rehearse(set, &*blobs, &list, &Limits::default())
                .map_err(|error| Failure::new(Exit::Failed, format!("{}: {error}", set.name)))?;
            let count = |wanted| {
                done.items
                    .iter()
                    .filter(|item| item.status == wanted)
                    .count()
            };
            let _ = match count(ItemStatus::Failed) {
                0 => {
                    let (all, missing) = (done.items.len(), count(ItemStatus::Missing));
                    writeln!(
                        text,
                        "{}: {all} to be installed, all carried but {missing}",
                        set.name
                    )
                }
                _ => writeln!(text, "{}: it cannot be installed", set.name),
            };
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
        let is_good = report
            .items
            .iter()
            .all(|item| item.status == ItemStatus::Present);
        Ok(Outcome::new(
            report,
            text,
            if is_good { Exit::Done } else { Exit::Refused },
        ))
    }

    /// What the node has.
    fn list(&self) -> Result<NodeList, Failure> {
        let (path, list): (_, fn(String) -> NodeList) = match (&self.status, &self.rpms) {
            (Some(path), _) => (path, NodeList::Status),
            (None, Some(path)) => (path, NodeList::Rpms),
            (None, None) => {
                return Err(Failure::usage(
                    "name what the node has by --status or --rpms",
                ));
            }
        };
        let bytes = read_input(path)
            .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
        let list = list(String::from_utf8_lossy(&bytes).into_owned());
        match list.fault() {
            Some(fault) => Err(Failure::usage(format!("{} {fault}", path.display()))),
            None => Ok(list),
        }
    }
}
