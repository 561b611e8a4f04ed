//! The whole page.

use super::data::{ReportPage, Sharing};
use super::picture::picture;
use super::sections::{Section, hosts, items, licences, lists, losses, packages, shared, timings};
use crate::report::{count_of, escape_html};
use crate::{Digest, human_size, unhex};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The fewest rows of a page with a search.
const SEARCHED: usize = 20;

/// The page as HTML. The same page gives the same bytes.
pub fn render(page: &ReportPage) -> String {
    let sharing = Sharing::of(&page.carried);
    let status = page.status.word();
    let heading = match &page.bundle {
        Some(name) => format!("Bundle {name}"),
        None => format!("landfall {}", page.command),
    };
    let title = format!("{heading}: {status}");
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'\">\n<title>{}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n",
        allowed(STYLE),
        allowed(SCRIPT),
        escape_html(&title)
    );
    let _ = writeln!(
        out,
        "<h1>{} <span class=\"{status}\">{status}</span></h1>\n<p class=\"soft\">landfall {}</p>",
        escape_html(&heading),
        env!("CARGO_PKG_VERSION")
    );
    out += &sums(page, &sharing);
    if let Some(error) = &page.error {
        let item = error
            .item
            .as_ref()
            .map(|item| format!("{item}: "))
            .unwrap_or_default();
        let _ = writeln!(
            out,
            "<pre>{}</pre>",
            escape_html(&format!("{item}{}", error.message))
        );
    }
    if !page.facts.is_empty() {
        out += "<dl>\n";
        for (name, value) in &page.facts {
            let _ = writeln!(
                out,
                "<dt>{}</dt><dd><code>{}</code></dd>",
                escape_html(name),
                escape_html(value)
            );
        }
        out += "</dl>\n";
    }
    let sections = sections(page, &sharing);
    out += "<nav>";
    for (at, section) in sections.iter().enumerate() {
        let rows = if section.rows > 0 {
            format!(" {}", section.rows)
        } else {
            String::new()
        };
        let _ = write!(
            out,
            "<a href=\"#part-{at}\">{}</a>{rows} ",
            escape_html(&section.heading)
        );
    }
    out += "</nav>\n";
    if sections.iter().map(|section| section.rows).sum::<usize>() >= SEARCHED {
        // the script shows it
        out += "<label class=\"find\" hidden>Search <input id=\"find\" type=\"search\" autocomplete=\"off\"> <span id=\"found\" class=\"soft\"></span></label>\n";
    }
    for (at, section) in sections.iter().enumerate() {
        let _ = write!(
            out,
            "<h2 id=\"part-{at}\">{}</h2>\n{}",
            escape_html(&section.heading),
            section.body
        );
    }
    let _ = write!(out, "<script>{SCRIPT}</script>\n</body>\n</html>\n");
    out
}

/// What the page has below its sums, what needs attention first.
fn sections(page: &ReportPage, sharing: &Sharing<'_>) -> Vec<Section> {
    let picture = picture(&page.carried, sharing);
    let about = "<p class=\"soft\">Each item by the bytes that it alone brings; what several have stands by itself. <span \
                 id=\"zoom-help\" class=\"help\" hidden>A click or Enter enlarges a group, and once more or Escape goes \
                 back.</span></p>\n";
    let body = if picture.is_empty() {
        String::new()
    } else {
        about.to_owned() + &picture
    };
    let mut sections = vec![
        losses(&page.report.items),
        Section {
            heading: "Sizes".into(),
            rows: 0,
            body,
        },
    ];
    sections.extend(lists(page));
    sections.extend([
        items(page, sharing),
        packages(&page.carried),
        shared(&page.carried, sharing),
        licences(&page.carried),
        hosts(page),
        timings(&page.phases),
    ]);
    sections.retain(|section| !section.body.is_empty());
    sections
}

/// The sums at the top.
fn sums(page: &ReportPage, sharing: &Sharing<'_>) -> String {
    let totals = page.report.totals();
    let mut sums: Vec<(String, String)> = vec![(totals.items.to_string(), "items".into())];
    let counts = [
        (totals.done, "done"),
        (totals.present, "present"),
        (totals.failed, "failed"),
        (totals.missing, "missing"),
    ];
    sums.extend(
        counts
            .iter()
            .filter(|(count, _)| *count > 0 && page.bundle.is_none())
            .map(|(count, word)| (count.to_string(), (*word).into())),
    );
    if !page.carried.is_empty() {
        let all: u64 = page
            .carried
            .iter()
            .flat_map(|one| &one.blobs)
            .map(|(_, size)| size)
            .sum();
        let unique = sharing.bytes();
        sums.push((human_size(unique), "content, each layer once".into()));
        if all > unique {
            sums.push((human_size(all - unique), "saved by shared layers".into()));
        }
    }
    if totals.requests > 0 {
        sums.push((
            human_size(totals.bytes_transferred),
            format!("moved in {}", count_of(totals.requests as usize, "request")),
        ));
    }
    sums.extend(
        page.seconds
            .map(|seconds| (format!("{seconds:.1} s"), "in all".into())),
    );
    let mut out = "<ul class=\"sums\">\n".to_owned();
    for (value, name) in sums {
        let _ = writeln!(
            out,
            "<li><b>{}</b>{}</li>",
            escape_html(&value),
            escape_html(&name)
        );
    }
    out + "</ul>\n"
}

/// The hash by which a browser may use a style or script that stands in the page.
fn allowed(text: &str) -> String {
    STANDARD.encode(unhex::<32>(&Digest::sha256(text.as_bytes()).hex()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::page::{ItemContent, PackageRow};
    use crate::report::{
        EntryKind, ErrorInfo, HostUse, ItemStatus, ReportItem, RunReport, RunStatus, TransferSide,
    };
    use serde_json::json;

    const EVIL: &str =
        "</title></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'\u{202e}&";

    fn page(items: usize, name: &dyn Fn(usize) -> String) -> ReportPage {
        let base = (Digest::sha256(b"base"), 40 << 20);
        let carried = (0..items).map(|at| ItemContent {
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
            licences: Some(name(0)),
            created: None,
            packages: vec![PackageRow {
                name: name(at),
                version: name(0),
                arch: name(1),
                size: 1,
            }],
        });
        let carried: Vec<ItemContent> = carried.collect();
        let item = |one: &ItemContent| ReportItem {
            kind: one.kind,
            name: one.name.clone(),
            digest: Some(one.blobs[1].0.clone()),
            bytes: Some(40 << 20),
            packages: 0,
            status: ItemStatus::Failed,
            reason: Some(one.name.clone()),
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
        };
        let mut report = RunReport {
            items: carried.iter().map(item).collect(),
            hosts: vec![host],
            ..RunReport::default()
        };
        report.extra.insert(
            "moved".into(),
            json!([{"at": name(0), "from": "sha256:00", "to": name(0)}]),
        );
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
            carried,
            facts: vec![(name(0), name(0))],
            phases: Vec::new(),
            seconds: Some(1.0),
        }
    }

    #[test]
    fn nothing_from_outside_is_markup() {
        let html = render(&page(3, &|at| format!("{EVIL}{at}")));
        // our own script and style, and nothing else that begins an element which does something
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
    fn the_page_loads_nothing_and_allows_only_its_own_script() {
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
    fn a_thousand_items_are_drawn_and_shared_layers_stand_by_themselves() {
        let html = render(&page(1000, &|at| format!("q.io/team/a{at}:1")));
        assert!(
            html.contains("shared by several\n41.9 MB"),
            "{}",
            &html[..2000]
        );
        assert!(html.contains("1000 × "), "the base layer");
        assert!(html.len() < 2 << 20, "{}", html.len());
    }
}
