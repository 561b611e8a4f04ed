//! Plain lists of references.

use super::candidate::Candidate;
use super::location::Location;
use crate::model::{ImageRef, names_host};

/// The references of a plain list: one per line, `#` begins a comment. `None` where `text` is not such a list.
pub(super) fn candidates(text: &str) -> Option<Vec<Candidate>> {
    let mut found = Vec::new();
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let written = line.split('#').next().unwrap_or_default().trim();
        if written.is_empty() {
            continue;
        }
        let reference = written.parse::<ImageRef>().ok();
        reference.filter(|reference| reference.is_pinned() || names_host(written))?;
        let column = line.len() - line.trim_start().len() + 1;
        found.extend(Candidate::new(Location { line: number + 1, column }, Vec::new(), written, true, true));
    }
    (!found.is_empty()).then_some(found)
}
