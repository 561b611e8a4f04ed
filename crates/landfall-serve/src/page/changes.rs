//! The page at `/changes`: how each bundle differs from an older one.

use super::page_frame::{MAX_CONTENT, PageFrame};
use crate::BundleChange;
use crate::catalog::BundleListing;
use askama::Template;
use landfall_model::report::{EntryKind, count_of, escape_html};

/// The maximum number of characters of a name that are shown.
const MAX_NAME: usize = 500;
/// The approximate number of bytes of a row in `changes.html` without its name.
const ROW_MARKUP: usize = 150;

#[derive(Template)]
#[template(path = "changes.html")]
struct ChangesPage<'a> {
    frame: PageFrame<'a>,
    sections: Vec<ChangesSection<'a>>,
}

struct ChangesSection<'a> {
    name: &'a str,
    since: &'a str,
    count: String,
    rows: Vec<ChangeRow>,
    /// The number of changes that do not fit on the page.
    more: usize,
}

struct ChangeRow {
    change: &'static str,
    kind: EntryKind,
    name: String,
    digests: String,
}

/// Renders the page: the newest bundle first, as many changes as fit.
pub(super) fn render_changes(
    frame: PageFrame<'_>,
    listings: &[BundleListing],
) -> askama::Result<String> {
    let mut room = MAX_CONTENT;
    let mut sections = Vec::new();
    for bundle in listings.iter().rev() {
        let Some(known) = &bundle.changes else {
            continue;
        };
        let mut rows = Vec::new();
        for change in &known.changes {
            let row = ChangeRow::new(change);
            let length = escape_html(&row.name).len() + ROW_MARKUP;
            // rows are shown in order, without gaps, so that the number of further changes is right
            if length > room {
                break;
            }
            room -= length;
            rows.push(row);
        }
        let more = known.changes.len() - rows.len();
        sections.push(ChangesSection {
            name: &bundle.name,
            since: &known.since,
            count: count_of(known.changes.len(), "change"),
            rows,
            more,
        });
        // older bundles are not shown: the page is full
        if more > 0 {
            break;
        }
    }
    ChangesPage { frame, sections }.render()
}

impl ChangeRow {
    fn new(change: &BundleChange) -> ChangeRow {
        let digests: Vec<String> = change
            .digests
            .iter()
            .flatten()
            .map(|digest| digest.short(12))
            .collect();
        ChangeRow {
            change: change.change,
            kind: change.kind,
            name: change.name.chars().take(MAX_NAME).collect(),
            digests: digests.join(" → "),
        }
    }
}
