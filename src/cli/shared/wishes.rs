//! Drafts of manifests from what an audit found.

use crate::manifest::{Wanting, Wish};
use crate::rewrite::audit::{Coverage, FileFinding};

/// The entries of a draft: every finding that the lock does not hold.
pub(crate) fn wishes<'p>(found: impl Iterator<Item = &'p FileFinding>) -> Vec<Wish> {
    found.filter_map(wish).collect()
}

fn wish(file_finding: &FileFinding) -> Option<Wish> {
    let finding = &file_finding.finding;
    let at = format!("{}:{}", file_finding.file, finding.line);
    let written = || finding.reference.clone();
    let what = match &finding.coverage {
        Coverage::Held { .. } => return None,
        Coverage::Missing { name: Some(name), .. } => Wanting::Image(name.clone()),
        Coverage::Missing { url: Some(url), .. } => Wanting::Url(url.clone()),
        Coverage::Missing { why, .. } => {
            Wanting::Unclear(written(), format!("{why}; write its name upstream"))
        }
        Coverage::Undecided { why } => Wanting::Unclear(written(), why.clone()),
    };
    Some(Wish { what, at })
}
