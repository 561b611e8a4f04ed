//! Reports names of a site, a lock or the command line that changed since manuals were written.

use super::steps::{Diagnosis, DiagnosisSteps};
use super::{CheckStatus, CheckTarget};
use landfall_item::lockfile::Lock;
use landfall_model::ChangedName;
use serde_json::json;

/// Reports the changed names among `targets` and in `lock`, or returns `None` if there are none.
pub(crate) fn changed_names(targets: &[CheckTarget], lock: Option<&Lock>) -> Option<Diagnosis> {
    let targets = targets.iter().map(ToString::to_string);
    let locked = lock.map(Lock::changed_names).unwrap_or_default();
    let locked = locked.into_iter().map(|row| row.name.to_owned());
    let mut steps = DiagnosisSteps::default();
    for row in ChangedName::among(targets.chain(locked)) {
        let facts = json!({
            "name": row.name, "replacement": row.replacement, "date": row.date,
            "source": row.source,
        });
        steps.add("changed", CheckStatus::Note, row.note(), facts);
    }
    (!steps.0.is_empty()).then(|| Diagnosis {
        target: "changed names".into(),
        checks: steps.0,
    })
}

#[cfg(test)]
mod tests {
    use landfall_model::CHANGED_NAMES;

    #[test]
    fn the_manual_lists_every_changed_name() {
        let page = include_str!("../../docs/reference/changed-names.md");
        let rows: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("| `"))
            .collect();
        assert_eq!(rows.len(), CHANGED_NAMES.len());
        for row in CHANGED_NAMES {
            let replacement = row
                .replacement
                .map_or("none".to_owned(), |replacement| format!("`{replacement}`"));
            let line = format!(
                "| `{}` | {} | {} | {replacement} | <{}> |",
                row.name, row.what, row.date, row.source
            );
            assert!(rows.contains(&line.as_str()), "{line}");
        }
    }
}
