//! Finds the files that scripts, Dockerfiles, cloud-init and units fetch and that the lock lacks.
//! Other URLs are considered links, unless they concern a locked file.

use super::finding::{AuditFinding, FileFinding};
use super::machine::{MachineInstall, fetches_in};
use super::urls;
use crate::inventory::{Inventory, LockCoverage};
use landfall_model::redact_urls;
use std::collections::BTreeSet;
use std::path::Path;

/// Finds the files that `text`, the content of `file`, fetches, except at the positions of `found`.
pub(super) fn findings(
    file: &str,
    text: &str,
    inventory: &Inventory<'_>,
    found: &[FileFinding],
) -> Vec<FileFinding> {
    // without a lock, a draft has these files already
    if inventory.is_empty() {
        return Vec::new();
    }
    let positions: BTreeSet<(&str, usize, usize)> = found
        .iter()
        .map(|one| (&*one.file, one.finding.line, one.finding.column))
        .collect();
    let mut fetched = fetches_in(Path::new(file), text);
    fetched.retain(|one| !positions.contains(&(&*one.file(file), one.line, one.column)));
    let findings = fetched.into_iter().filter_map(|placed| {
        let file = placed.file(file);
        let (url, why) = match placed.install {
            MachineInstall::File(url) => (url, "a command fetches it, and the lock lacks it"),
            MachineInstall::Unclear(url) => {
                let why = MachineInstall::why_unclear(&url);
                (url, why)
            }
            MachineInstall::Package(..) | MachineInstall::OpenPackage(..) => return None,
        };
        let coverage = urls::whole(&url, false, inventory)
            .unwrap_or_else(|| LockCoverage::Undecided { why: why.into() });
        let finding = AuditFinding {
            line: placed.line,
            column: placed.column,
            path: Vec::new(),
            manager: None,
            repository: None,
            reference: redact_urls(&url),
            coverage,
        };
        Some(FileFinding { file, finding })
    });
    findings.collect()
}
