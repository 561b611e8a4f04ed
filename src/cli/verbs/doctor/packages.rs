//! `landfall doctor packages`: simulates the installation of carried packages on a node.

use crate::cli::shared::bundle_flags::ContentFlags;
use crate::cli::shared::{CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport};
use crate::doctor::{NodeList, simulate_install};
use clap::Args;
use landfall_model::document::read_input;
use landfall_model::report::{EntryKind, ItemStatus};
use landfall_model::{Failure, Limits};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Simulate installing the packages on a node
///
/// Reads the packages of the node and the indexes in the bundle, and selects packages as apt or dnf
/// would. Shows what is missing and what would be replaced. Exits with 4 if the node would request
/// a package that the bundle lacks, or if a package set cannot be installed. --status checks only
/// apt sets, and --rpms only yum sets.
#[derive(Args)]
pub(crate) struct DoctorPackages {
    /// A copy of the node's /var/lib/dpkg/status
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "rpms",
        conflicts_with = "rpms"
    )]
    status: Option<PathBuf>,
    /// The output of `rpm -qa` on the node, preferably in the format that `landfall help packages`
    /// shows for the key `base`
    #[arg(long, value_name = "FILE")]
    rpms: Option<PathBuf>,
    #[command(flatten)]
    content: ContentFlags,
}

impl DoctorPackages {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        let list = self.list()?;
        let (lock, blobs) = self
            .content
            .open(context, |entry| entry.kind == EntryKind::Package)?;
        let sets: Vec<_> = lock
            .packages
            .iter()
            .filter(|set| list.is_for(set))
            .collect();
        if sets.is_empty() {
            let system = if self.rpms.is_some() { "yum" } else { "apt" };
            return Err(CliError::usage(format!(
                "the lock has no {system} packages to compare with {list}"
            )));
        }
        let mut report = VerbReport::default();
        let mut text = String::new();
        let mut replaced = Vec::new();
        for set in sets {
            let done = simulate_install(set, &*blobs, &list, &Limits::default())
                .map_err(|error| CliError::failed(format!("{}: {error}", set.name)))?;
            let count = |wanted| {
                done.items
                    .iter()
                    .filter(|item| item.status == wanted)
                    .count()
            };
            let _ = match count(ItemStatus::Failed) {
                0 => {
                    let all = done.items.len();
                    let missing = count(ItemStatus::Missing);
                    writeln!(
                        text,
                        "{}: {all} to be installed, {missing} of them missing",
                        set.name
                    )
                }
                _ => writeln!(text, "{}: cannot be installed", set.name),
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
        report.add(ReportMember::Replaced(replaced));
        let is_good = report
            .items
            .iter()
            .all(|item| item.status == ItemStatus::Present);
        Ok(VerbOutcome::new(
            report,
            text,
            if is_good { Exit::Done } else { Exit::Refused },
        ))
    }

    /// Reads the list of packages that are installed on the node.
    fn list(&self) -> Result<NodeList, CliError> {
        let (path, list): (_, fn(String) -> NodeList) = match (&self.status, &self.rpms) {
            (Some(path), _) => (path, NodeList::Status),
            (None, Some(path)) => (path, NodeList::Rpms),
            (None, None) => {
                return Err(CliError::usage(
                    "name the packages of the node with --status or --rpms",
                ));
            }
        };
        let bytes = read_input(path).map_err(|error| Failure::read(path, error))?;
        let list = list(String::from_utf8_lossy(&bytes).into_owned());
        match list.fault() {
            Some(fault) => Err(CliError::usage(format!("{} {fault}", path.display()))),
            None => Ok(list),
        }
    }
}
