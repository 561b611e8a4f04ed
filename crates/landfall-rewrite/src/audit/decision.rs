//! Looks up candidates in the lock.

use super::finding::AuditFinding;
use crate::inventory::{Inventory, LockCoverage};
use crate::walk::ImageCandidate;
use landfall_model::document::LineIndex;
use landfall_model::{ImageRef, has_host, redact_reference};

impl ImageCandidate {
    /// Looks the candidate up in the lock.
    pub(super) fn decide(self, inventory: &Inventory<'_>, lines: &LineIndex<'_>) -> AuditFinding {
        let coverage = match (self.why_not, self.written.parse::<ImageRef>()) {
            (Some(why), _) => LockCoverage::Undecided { why },
            (None, Err(error)) => LockCoverage::Undecided {
                why: error.to_string(),
            },
            (None, Ok(reference)) => match inventory.decide(&reference, self.in_container) {
                LockCoverage::Missing { .. } if !self.sure => LockCoverage::Undecided {
                    why: "it has neither a host nor a tag, so perhaps it is not an image".into(),
                },
                LockCoverage::Missing { why, .. } if self.is_chart => {
                    let why = format!("{why}; it is a chart, so add it to `charts`");
                    LockCoverage::Missing {
                        name: None,
                        url: None,
                        why,
                    }
                }
                // without a tag, a container pulls `latest`, and a chart is pulled in its newest
                // version
                coverage if self.in_container || self.is_chart => coverage,
                coverage => unless_ambiguous(coverage, &self.written, &reference),
            },
        };
        let (line, column) = lines.line_column(self.at);
        AuditFinding {
            line,
            column,
            path: self.path,
            manager: None,
            repository: None,
            reference: redact_reference(&self.written),
            coverage,
        }
    }
}

/// Returns `coverage`, or `Ambiguous` if the lock has `reference`, but its text `written` has no
/// host, no tag and no digest.
pub(super) fn unless_ambiguous(
    coverage: LockCoverage,
    written: &str,
    reference: &ImageRef,
) -> LockCoverage {
    let item = match coverage {
        LockCoverage::Held { item } if !reference.is_pinned() && !has_host(written) => item,
        coverage => return coverage,
    };
    let why = format!(
        "the lock has {item}, but this reference names neither a host nor a tag: `landfall \
         rewrite` leaves it, and a pod would pull it from {}; write the host or the tag",
        reference.registry
    );
    LockCoverage::Ambiguous { item, why }
}
