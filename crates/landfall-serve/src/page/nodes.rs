//! The page at `/nodes`: the configuration with which nodes fetch images and files from this server
//! by their original names and URLs.

use super::{MAX_CONTENT, PageFrame};
use crate::NodeGuide;
use crate::catalog::{BundleCatalog, BundleListing};
use askama::Template;
use landfall_model::report::{EntryKind, count_of, escape_html};

/// The number of host names in a line of `/etc/hosts`.
const HOSTS_PER_LINE: usize = 8;
/// The maximum number of lines for `/etc/hosts`.
const MAX_HOST_LINES: usize = 100;
/// The maximum length of a DNS name (RFC 1035, section 2.3.4).
const MAX_HOST_NAME: usize = 253;

#[derive(Template)]
#[template(path = "nodes.html")]
struct NodesPage<'a> {
    frame: PageFrame<'a>,
    has_files: bool,
    files_url: String,
    /// The host names of files, several on a line, as far as they fit.
    host_lines: Vec<String>,
    /// The number of host names for which the page has no room.
    omitted_hosts: usize,
    charts_url: Option<String>,
    /// The guides, and whether each fits on the page.
    guides: Vec<(NodeGuide, bool)>,
}

/// Renders the page with as many guides as fit.
pub(super) fn render_nodes(
    frame: PageFrame<'_>,
    bundles: &BundleCatalog,
    guides: Vec<NodeGuide>,
) -> askama::Result<String> {
    let charts_url = if bundles.charts.is_empty() {
        None
    } else {
        Some(frame.address.url("/charts"))
    };
    let (host_lines, omitted_hosts) = host_lines(bundles.files.hosts());
    // a site may have any number of guides of any length
    let mut room = MAX_CONTENT.saturating_sub(host_lines.iter().map(String::len).sum());
    let sections = guides.into_iter().map(|guide| {
        let length = guide_length(&guide);
        let is_shown = length <= room;
        if is_shown {
            room -= length;
        }
        (guide, is_shown)
    });
    let page = NodesPage {
        frame,
        has_files: !bundles.files.is_empty(),
        files_url: frame.address.url("/files/HOST/PATH"),
        host_lines,
        omitted_hosts,
        charts_url,
        guides: sections.collect(),
    };
    page.render()
}

/// The names of `hosts` without their ports, as lines for `/etc/hosts`, and the number of names for
/// which there are no lines left. `hosts` must be sorted. Omits IPv6 addresses, which `/etc/hosts`
/// cannot redirect, and texts that are too long for a host name: a lock may contain any text.
fn host_lines<'a>(hosts: impl IntoIterator<Item = &'a str>) -> (Vec<String>, usize) {
    let mut names: Vec<&str> = hosts
        .into_iter()
        .map(|host| host.split(':').next().unwrap_or(host))
        .filter(|name| name.len() <= MAX_HOST_NAME && !name.starts_with('['))
        .collect();
    // the hosts are sorted, so most hosts that differ only in their ports follow each other
    names.dedup();
    let lines = names.chunks(HOSTS_PER_LINE).map(|names| names.join(" "));
    let lines = lines.take(MAX_HOST_LINES).collect();
    (
        lines,
        names.len().saturating_sub(MAX_HOST_LINES * HOSTS_PER_LINE),
    )
}

/// The length of a guide's files and notes on the page, in bytes.
fn guide_length(guide: &NodeGuide) -> usize {
    let files = guide.files.iter().flat_map(|(path, text)| [path, text]);
    files
        .chain(&guide.notes)
        .map(|text| escape_html(text).len())
        .sum()
}

// The page at `/changes`: how each bundle differs from an older one.

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
    /// For each change: its word, the kind and name of the item, and its digests.
    rows: Vec<(&'static str, EntryKind, String, String)>,
    /// The number of changes that do not fit on the page.
    more: usize,
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
            let name: String = change.name.chars().take(MAX_NAME).collect();
            let length = escape_html(&name).len() + ROW_MARKUP;
            // rows are shown in order, without gaps, so that the number of further changes is right
            if length > room {
                break;
            }
            room -= length;
            let digests = change.digests.iter().flatten();
            let digests: Vec<String> = digests.map(|digest| digest.short(12)).collect();
            rows.push((change.change, change.kind, name, digests.join(" → ")));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_hosts_are_bounded() {
        let lines = |hosts: &[&str]| host_lines(hosts.iter().copied());
        assert_eq!(
            lines(&["[fd00::1]:80", "a.test", "b.test:80", "b.test:81"]),
            (vec!["a.test b.test".to_owned()], 0)
        );
        let long = "a".repeat(1 << 20);
        assert_eq!(lines(&["a.test", &long]), (vec!["a.test".to_owned()], 0));
        let many: Vec<String> = (0..10_000)
            .map(|number| format!("h{number}.test"))
            .collect();
        let (lines, omitted) = host_lines(many.iter().map(String::as_str));
        assert_eq!((lines.len(), omitted), (MAX_HOST_LINES, 9200));
    }
}
