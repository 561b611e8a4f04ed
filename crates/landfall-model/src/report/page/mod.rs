//! A report as one self-contained HTML page.
//!
//! The page can be opened from a file and printed, and works without scripts; its script only
//! searches the tables and zooms into the treemap. `page.html` and `treemap.html` are its
//! templates: askama escapes every value, and the Content-Security-Policy of the page forbids
//! loading anything.
//!
//! This file has the whole page, and the content that it is made from.
//!
//! - `sections.rs`: the sections of the page, with their tables.
//! - `treemap.rs`: the content as rectangles in proportion to sizes, and which items share blobs.

mod sections;
mod treemap;

use self::sections::{Section, SectionBody, sections};
use self::treemap::{AREA, BlobUsage};
use crate::report::{EntryKind, ErrorInfo, RunReport, RunStatus, count_of};
use crate::{Digest, human_size, sum_sizes};
use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// A page with at least this number of rows has a search.
const MIN_SEARCHED_ROWS: usize = 20;

#[derive(Template)]
#[template(path = "page.html")]
struct PageTemplate<'p> {
    heading: String,
    status: RunStatus,
    version: &'static str,
    /// The numbers at the top of the page, with their labels.
    key_figures: Vec<(String, String)>,
    error: Option<&'p ErrorInfo>,
    facts: &'p [(String, String)],
    has_search: bool,
    sections: Vec<Section>,
    style: (&'static str, String),
    script: (&'static str, String),
}

/// A style or script within the page, with the hash by which the Content-Security-Policy allows it.
fn inline(text: &'static str) -> (&'static str, String) {
    (
        text,
        STANDARD.encode(Digest::sha256(text.as_bytes()).bytes()),
    )
}

/// Returns the page as HTML. Equal pages have equal bytes.
pub fn render(page: &ReportPage) -> String {
    let usage = BlobUsage::new(&page.contents);
    let sections = sections(page, &usage);
    let template = PageTemplate {
        heading: match &page.bundle {
            Some(name) => format!("Bundle {name}"),
            None => format!("landfall {}", page.command),
        },
        status: page.status,
        version: env!("CARGO_PKG_VERSION"),
        key_figures: key_figures(page, &usage),
        error: page.error.as_ref(),
        facts: &page.facts,
        has_search: sections.iter().map(Section::rows).sum::<usize>() >= MIN_SEARCHED_ROWS,
        sections,
        style: inline(include_str!("style.css")),
        script: inline(include_str!("script.js")),
    };
    // askama drops the line feed at the end of a template
    format!("{template}\n")
}

fn key_figures(page: &ReportPage, usage: &BlobUsage<'_>) -> Vec<(String, String)> {
    let totals = page.report.totals();
    let mut figures = Vec::new();
    let mut add = |value: String, label: &str| figures.push((value, label.to_owned()));
    add(totals.items.to_string(), "items");
    let counts = [
        (totals.done, "done"),
        (totals.present, "present"),
        (totals.failed, "failed"),
        (totals.missing, "missing"),
    ];
    // a bundle was not run, so its items have no outcome
    if page.bundle.is_none() {
        for (count, label) in counts.into_iter().filter(|(count, _)| *count > 0) {
            add(count.to_string(), label);
        }
    }
    if !page.contents.is_empty() {
        let blobs = page.contents.iter().flat_map(|item| &item.blobs);
        let all = sum_sizes(blobs.map(|(_, size)| *size));
        let unique = usage.unique_bytes();
        add(human_size(unique), "content, each layer once");
        if all > unique {
            add(human_size(all - unique), "saved by shared layers");
        }
    }
    if totals.requests > 0 {
        let requests = count_of(totals.requests as usize, "request");
        add(
            human_size(totals.bytes_transferred),
            &format!("moved in {requests}"),
        );
    }
    if let Some(seconds) = page.seconds {
        add(format!("{seconds:.1} s"), "total time");
    }
    figures
}

/// The content of a report page: the report of a run or of a bundle, with the content of its items.
pub struct ReportPage {
    /// The command that was run.
    pub command: String,
    /// The name of the bundle if the page is about a bundle instead of a command.
    pub bundle: Option<String>,
    /// How the run ended, as in `status` of the JSON document.
    pub status: RunStatus,
    /// The error that ended the run.
    pub error: Option<ErrorInfo>,
    /// The items and hosts that the page shows.
    pub report: RunReport,
    /// The members of the JSON document that the page shows as lists.
    pub members: Map<String, Value>,
    /// The content of the items.
    pub contents: Vec<ItemContent>,
    /// Labelled values about the whole run or bundle, such as digests and signatures.
    pub facts: Vec<(String, String)>,
    /// The phases of the run, in order.
    pub phases: Vec<RunPhase>,
    /// The duration of the run in seconds, or `None` if no command was run.
    pub seconds: Option<f64>,
}

/// The content of one item.
#[derive(Debug, Clone)]
pub struct ItemContent {
    /// The kind of the item.
    pub kind: EntryKind,
    /// The name of the item in the lock.
    pub name: String,
    /// The group of the item in the treemap: its host and, for an image, the namespace.
    pub group: String,
    /// All blobs and manifests of the item, each once, with their sizes in bytes.
    pub blobs: Vec<(Digest, u64)>,
    /// The platforms of an image.
    pub platforms: Vec<String>,
    /// The kinds of artifacts that refer to the item, each with its count.
    pub attached: Vec<(String, usize)>,
    /// The verified signers of the item.
    pub signed_by: Vec<String>,
    /// The licences that the image declares.
    pub licences: Option<String>,
    /// The creation time that the image declares.
    pub created: Option<String>,
    /// The packages of a package set.
    pub packages: Vec<PackageRow>,
}

/// A package of a package set.
#[derive(Debug, Clone)]
pub struct PackageRow {
    /// The name, without version and architecture.
    pub name: String,
    /// The version, as its repository writes it.
    pub version: String,
    /// The architecture, in the words of the distribution.
    pub arch: String,
    /// The size of the package file in bytes.
    pub size: u64,
}

/// One phase of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPhase {
    /// The name of the phase, such as `pull`.
    pub name: String,
    /// The number of items in the phase.
    pub items: u64,
    /// The number of bytes that the phase expected; 0 if unknown.
    pub bytes: u64,
    /// How long the phase took, in seconds.
    pub seconds: f64,
}

#[cfg(test)]
mod tests {
    use super::{ItemContent, PackageRow, *};
    use crate::report::{HostUse, ItemStatus, ReportItem, TransferSide};
    use serde_json::json;

    const EVIL: &str =
        "</title></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'\u{202e}&";

    fn page(items: usize, name: &dyn Fn(usize) -> String) -> ReportPage {
        let base = (Digest::sha256(b"base"), 40 << 20);
        let contents = (0..items).map(|at| ItemContent {
            kind: EntryKind::Image,
            name: name(at),
            group: format!("r{}.test/{}", at % 7, name(at % 3)),
            blobs: vec![
                base.clone(),
                (
                    Digest::sha256(at.to_string().as_bytes()),
                    1000 * (at as u64 + 1),
                ),
            ],
            platforms: vec!["linux/amd64".into()],
            attached: vec![("signature".into(), 2)],
            signed_by: vec![name(0)],
            licences: Some(name(0)),
            created: None,
            packages: vec![PackageRow {
                name: name(at),
                version: name(0),
                arch: name(1),
                size: 1,
            }],
        });
        let contents: Vec<ItemContent> = contents.collect();
        let item = |one: &ItemContent| ReportItem {
            digest: Some(one.blobs[1].0.clone()),
            bytes: Some(40 << 20),
            ..ReportItem::new(
                one.kind,
                one.name.clone(),
                ItemStatus::Failed,
                Some(one.name.clone()),
            )
        };
        let host = HostUse {
            host: name(0),
            port: 443,
            scheme: "https".into(),
            origin: None,
            via: None,
            bytes: 1,
            requests: 1,
            why: name(0),
            named_by: Vec::new(),
            answered: true,
        };
        let report = RunReport {
            items: contents.iter().map(item).collect(),
            hosts: vec![host],
            ..RunReport::default()
        };
        let moved = json!([{"at": name(0), "from": "sha256:00", "to": name(0)}]);
        let error = ErrorInfo {
            side: Some(TransferSide::Source),
            item: Some(name(0)),
            message: name(0),
        };
        ReportPage {
            command: "push".into(),
            bundle: None,
            status: RunStatus::Partial,
            error: Some(error),
            report,
            members: Map::from_iter([("moved".to_owned(), moved)]),
            contents,
            facts: vec![(name(0), name(0))],
            phases: Vec::new(),
            seconds: Some(1.0),
        }
    }

    #[test]
    fn nothing_from_outside_is_markup() {
        let html = render(&page(3, &|at| format!("{EVIL}{at}")));
        // the script of the page is the only one, and nothing else is active
        assert_eq!(
            (
                html.matches("<script").count(),
                html.matches("</script").count()
            ),
            (1, 1)
        );
        for bad in ["<img", "<IMG", "\u{202e}", " onerror=alert(2)>\""] {
            assert!(!html.contains(bad), "{bad}");
        }
        assert!(html.contains("&lt;script&gt;alert(1)"));
        // every attribute value ends where it should
        assert!(!html.contains("\"'&") && html.matches("</svg>").count() == 1);
    }

    #[test]
    fn the_page_loads_nothing_and_has_no_inline_styles_or_handlers() {
        let html = render(&page(3, &|at| format!("q.io/a{at}:1")));
        assert!(html.contains("default-src 'none'"));
        for bad in ["http://", "https://cdn", "url(", "@import", "src="] {
            assert!(!html.contains(bad), "{bad}");
        }
        assert!(
            !html.contains(" style=") && !html.contains(" onclick="),
            "the policy would refuse them"
        );
        assert_eq!(html, render(&page(3, &|at| format!("q.io/a{at}:1"))));
    }

    #[test]
    fn a_thousand_items_are_drawn_and_shared_layers_have_a_group() {
        let html = render(&page(1000, &|at| format!("q.io/team/a{at}:1")));
        assert!(
            html.contains("shared by several\n41.9 MB"),
            "{}",
            &html[..2000]
        );
        assert!(html.contains("1000 × "), "the base layer");
        assert!(html.len() < 2 << 20, "{}", html.len());
    }

    #[test]
    fn sizes_beyond_64_bits_in_total_are_drawn() {
        let mut page = page(3, &|at| format!("q.io/a{at}:1"));
        for (digest, size) in page.contents.iter_mut().flat_map(|item| &mut item.blobs) {
            *size = if *digest == Digest::sha256(b"base") {
                1 << 53
            } else {
                u64::MAX / 2
            };
        }
        assert!(render(&page).contains(&human_size(u64::MAX)));
    }
}
