//! Makes all sections of the page.

use super::treemap::{BlobUsage, GroupBox, treemap};
use super::{ItemContent, ReportPage, RunPhase};
use crate::human_size;
use crate::report::{EntryKind, HostUse, ItemStatus, ReportItem, and_more};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// The sections that are not empty. Failed, missing and skipped items are first, because they need
/// attention.
pub(super) fn sections(page: &ReportPage, usage: &BlobUsage<'_>) -> Vec<Section> {
    let mut sections = vec![
        losses(&page.report.items),
        Section {
            heading: "Sizes".into(),
            body: SectionBody::Treemap(treemap(&page.contents, usage)),
        },
    ];
    sections.extend(list_sections(&page.members));
    sections.extend(pruned_section(&page.members));
    sections.extend([
        items(page, usage),
        packages(&page.contents),
        shared_layers(&page.contents, usage),
        licences(&page.contents),
        hosts(&page.report.hosts),
        timings(&page.phases),
    ]);
    sections.retain(|section| !section.is_empty());
    sections
}

fn losses(items: &[ReportItem]) -> Section {
    let columns = ["status", "kind", "name", "reason"];
    let rows = items
        .iter()
        .filter(|item| !item.status.is_success())
        .map(|item| {
            vec![
                TableCell::status(item.status),
                TableCell::text(item.kind.to_string()),
                TableCell::code(&item.name),
                TableCell::text(item.reason.clone().unwrap_or_default()),
            ]
        });
    Section::table("Failed, missing or skipped", &columns, rows)
}

fn items(page: &ReportPage, usage: &BlobUsage<'_>) -> Section {
    let columns = [
        "name",
        "digest",
        "size",
        "unique",
        "platforms",
        "attached",
        "licences",
        "status",
    ];
    let contents: HashMap<(EntryKind, &str), &ItemContent> = page
        .contents
        .iter()
        .map(|content| ((content.kind, content.name.as_str()), content))
        .collect();
    let rows = page.report.items.iter().map(|item| {
        let content = contents.get(&(item.kind, item.name.as_str())).copied();
        item_row(item, content, usage)
    });
    Section::table("Items", &columns, rows)
}

fn item_row(
    item: &ReportItem,
    content: Option<&ItemContent>,
    usage: &BlobUsage<'_>,
) -> Vec<TableCell> {
    let digest = item.digest.as_ref().map(|digest| digest.short(12));
    let platforms = content.map(|content| content.platforms.join(", "));
    let attached = content.map(attached_documents);
    let licences = content.and_then(|content| content.licences.clone());
    vec![
        TableCell::code(&item.name),
        TableCell::digest(digest.unwrap_or_default()),
        TableCell::size(item.bytes),
        TableCell::size(content.map(|content| usage.unshared_bytes(content))),
        TableCell::text(platforms.unwrap_or_default()),
        TableCell::text(attached.unwrap_or_default()),
        TableCell::text(licences.unwrap_or_default()),
        TableCell::status(item.status),
    ]
}

/// The kinds of artifacts that refer to the item, and its verified signers.
fn attached_documents(content: &ItemContent) -> String {
    let counts = content.attached.iter().map(|(kind, count)| match count {
        1 => kind.clone(),
        count => format!("{count} {kind}s"),
    });
    let signers = content
        .signed_by
        .iter()
        .map(|signer| format!("signed by {signer}"));
    counts.chain(signers).collect::<Vec<_>>().join(", ")
}

fn packages(contents: &[ItemContent]) -> Section {
    let columns = ["name", "version", "architecture", "size", "package set"];
    let mut rows = Vec::new();
    for set in contents {
        rows.extend(set.packages.iter().map(|package| {
            vec![
                TableCell::code(&package.name),
                TableCell::code(&package.version),
                TableCell::text(&package.arch),
                TableCell::size(package.size),
                TableCell::code(&set.name),
            ]
        }));
    }
    Section::table("Packages", &columns, rows)
}

fn shared_layers(contents: &[ItemContent], usage: &BlobUsage<'_>) -> Section {
    const MAX_ROWS: usize = 50;
    const MAX_NAMES: usize = 4;
    let columns = ["digest", "size", "items", "saved", "used by"];
    let blobs = usage.shared();
    let rows = blobs.iter().take(MAX_ROWS).map(|blob| {
        let named = blob.items.iter().take(MAX_NAMES);
        let names: Vec<&str> = named.map(|index| contents[*index].name.as_str()).collect();
        let others = blob.items.len().saturating_sub(MAX_NAMES);
        let users = names.join(", ") + &and_more(others);
        vec![
            TableCell::digest(blob.digest.short(12)),
            TableCell::size(blob.size),
            TableCell::number(blob.items.len()),
            TableCell::size(blob.saved()),
            TableCell::text(users),
        ]
    });
    let heading = match blobs.len() {
        ..=MAX_ROWS => "Shared layers".to_owned(),
        count => format!("Shared layers: the {MAX_ROWS} of {count} that save most"),
    };
    Section::table(heading, &columns, rows)
}

fn licences(contents: &[ItemContent]) -> Section {
    let columns = ["licence", "images"];
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for licences in contents.iter().filter_map(|item| item.licences.as_deref()) {
        *counts.entry(licences).or_default() += 1;
    }
    let undeclared = contents
        .iter()
        .filter(|item| item.kind == EntryKind::Image && item.licences.is_none())
        .count();
    let mut rows: Vec<Vec<TableCell>> = counts
        .into_iter()
        .map(|(licence, count)| vec![TableCell::text(licence), TableCell::number(count)])
        .collect();
    if !rows.is_empty() && undeclared > 0 {
        rows.push(vec![
            TableCell::text("(not declared)"),
            TableCell::number(undeclared),
        ]);
    }
    Section::table("Licences declared by the images", &columns, rows)
}

fn hosts(hosts: &[HostUse]) -> Section {
    let columns = ["host", "purpose", "mirror of", "proxy", "requests", "bytes"];
    let rows = hosts.iter().map(|host| {
        vec![
            TableCell::code(format!("{}://{}:{}", host.scheme, host.host, host.port)),
            TableCell::text(&host.why),
            TableCell::text(host.origin.clone().unwrap_or_default()),
            TableCell::code(host.via.clone().unwrap_or_default()),
            TableCell::number(host.requests),
            TableCell::size(host.bytes),
        ]
    });
    Section::table("Hosts contacted", &columns, rows)
}

fn timings(phases: &[RunPhase]) -> Section {
    let columns = ["phase", "items", "bytes", "time", "rate"];
    let rows = phases.iter().map(|phase| {
        let bytes = (phase.bytes > 0).then_some(phase.bytes);
        // a phase may end within the resolution of the clock
        let rate = bytes.map(|bytes| bytes as f64 / phase.seconds.max(0.001));
        let mut rate = TableCell::size(rate.map(|rate| rate as u64));
        if bytes.is_some() {
            rate.text += "/s";
        }
        vec![
            TableCell::text(&phase.name),
            TableCell::number(phase.items),
            TableCell::size(bytes),
            TableCell::number(format!("{:.1} s", phase.seconds)),
            rate,
        ]
    });
    Section::table("Timings", &columns, rows)
}

/// A section of the page.
pub(super) struct Section {
    pub(super) heading: String,
    pub(super) body: SectionBody,
}

/// The content of a section below its heading.
pub(super) enum SectionBody {
    Table {
        /// The title of each column, and whether the column has numbers, which are aligned right.
        columns: Vec<(&'static str, bool)>,
        rows: Vec<Vec<TableCell>>,
    },
    Treemap(Vec<GroupBox>),
}

impl Section {
    /// A table of `rows`, which have a cell for each of `columns`. Columns without values are left
    /// out, to leave space for names.
    fn table(
        heading: impl Into<String>,
        columns: &[&'static str],
        rows: impl IntoIterator<Item = Vec<TableCell>>,
    ) -> Section {
        let mut rows: Vec<Vec<TableCell>> = rows.into_iter().collect();
        let has = |index: usize, is_such: fn(&TableCell) -> bool| {
            rows.iter().any(|row| is_such(&row[index]))
        };
        let is_used: Vec<bool> = (0..columns.len())
            .map(|index| has(index, |cell| !cell.text.is_empty()))
            .collect();
        let used = columns.iter().enumerate().filter(|(at, _)| is_used[*at]);
        let columns = used
            .map(|(at, title)| (*title, has(at, |cell| cell.class == NUMBER)))
            .collect();
        for row in &mut rows {
            let mut is_used = is_used.iter();
            row.retain(|_| is_used.next() == Some(&true));
        }
        Section {
            heading: heading.into(),
            body: SectionBody::Table { columns, rows },
        }
    }

    /// The number of rows of a table; 0 for a treemap.
    pub(super) fn rows(&self) -> usize {
        match &self.body {
            SectionBody::Table { rows, .. } => rows.len(),
            SectionBody::Treemap(_) => 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match &self.body {
            SectionBody::Table { rows, .. } => rows.is_empty(),
            SectionBody::Treemap(groups) => groups.is_empty(),
        }
    }
}

/// A cell with its class in `style.css`.
pub(super) struct TableCell {
    pub(super) class: &'static str,
    pub(super) text: String,
}

/// The class of numbers and sizes.
const NUMBER: &str = "num";

/// A text of at least this many characters gives its column a minimum width.
const LONG_TEXT: usize = 40;

impl TableCell {
    pub(super) fn text(text: impl Into<String>) -> TableCell {
        let text = text.into();
        let is_long = text.chars().count() >= LONG_TEXT;
        let class = if is_long { "long" } else { "" };
        TableCell { class, text }
    }

    /// A name, in the font of code.
    pub(super) fn code(text: impl Into<String>) -> TableCell {
        TableCell {
            class: "code",
            text: text.into(),
        }
    }

    /// A digest, which stays on one line.
    pub(super) fn digest(text: impl Into<String>) -> TableCell {
        TableCell {
            class: "hash",
            text: text.into(),
        }
    }

    pub(super) fn number(text: impl ToString) -> TableCell {
        TableCell {
            class: NUMBER,
            text: text.to_string(),
        }
    }

    /// A size in bytes; empty if it is unknown.
    pub(super) fn size(bytes: impl Into<Option<u64>>) -> TableCell {
        TableCell::number(bytes.into().map(human_size).unwrap_or_default())
    }

    pub(super) fn status(status: ItemStatus) -> TableCell {
        TableCell {
            class: status.word(),
            text: status.word().to_owned(),
        }
    }
}

// The sections for the lists that single commands add to a report, such as `changes` or `updates`.

/// The members that become sections: the member, the heading, and the columns, separated by commas.
/// A column is the member of a row that has the value, and its title if that is different. Columns
/// of `bytes` and `newBytes` have sizes.
const REPORT_LISTS: &[(&str, &str, &str)] = &[
    ("notices", "Notices about upstream", "kind, name, message"),
    ("problems", "Problems", "kind, at, message"),
    ("updates", "Newer versions", "name, from, to, policy, at"),
    (
        "changes",
        "Changes",
        "change, name, version, replaces, from: previous digest, to: digest, newBytes: new",
    ),
    (
        "endpointChanges",
        "Changed endpoints",
        "change, host, port, why: purpose",
    ),
    (
        "hostChanges",
        "Changed hosts",
        "change, host, port, why: purpose",
    ),
    (
        "moved",
        "Tags that moved at the registry",
        "at: tag, from: previous digest, to: digest",
    ),
    (
        "trimmed",
        "Trimmed indexes",
        "name, from: original digest, to: digest",
    ),
    (
        "standings",
        "Tags at the registry",
        "state, at: tag, name, stands: current digest, wanted: wanted digest, why: reason",
    ),
    (
        "records",
        "Commands in the evidence log",
        "time, command, status, registry, version: landfall",
    ),
    ("removed", "Removed", "what, digest, bytes: size"),
];

/// A section for each of [`REPORT_LISTS`]. It is empty if its list is not among the members of the
/// document.
pub(super) fn list_sections(members: &Map<String, Value>) -> impl Iterator<Item = Section> {
    REPORT_LISTS.iter().map(|(member, heading, columns)| {
        let rows = members.get(*member).and_then(Value::as_array);
        // tags that are already correct are left out, and so are replaced items: the row of the
        // replacing item names them
        let rows = rows
            .into_iter()
            .flatten()
            .filter(|row| row["state"] != "there" && row["replacedBy"].is_null());
        list_section(heading, columns, rows)
    })
}

/// The section for the manifests that `push --prune` deleted or would delete.
pub(super) fn pruned_section(members: &Map<String, Value>) -> Option<Section> {
    let pruned = members.get("pruned")?;
    let heading = if pruned["deleted"] == true {
        "Pruned"
    } else {
        "To be pruned"
    };
    let manifests = pruned["manifests"].as_array().into_iter().flatten();
    Some(list_section(heading, "repository, digest, tags", manifests))
}

fn list_section<'v>(
    heading: &str,
    columns: &'static str,
    rows: impl Iterator<Item = &'v Value>,
) -> Section {
    let columns = columns
        .split(", ")
        .map(|column| column.split_once(": ").unwrap_or((column, column)));
    let (members, columns): (Vec<&str>, Vec<&str>) = columns.unzip();
    let rows = rows.map(|row| {
        let cells = members.iter().map(|member| {
            let is_size = matches!(*member, "bytes" | "newBytes");
            cell(&row[*member], is_size)
        });
        cells.collect()
    });
    Section::table(heading, &columns, rows)
}

fn cell(value: &Value, is_size: bool) -> TableCell {
    match value {
        Value::Null => TableCell::text(""),
        Value::Number(number) if is_size => TableCell::size(number.as_u64()),
        Value::String(text) => match text.strip_prefix("sha256:") {
            Some(hex) => TableCell::digest(hex.chars().take(12).collect::<String>()),
            None if text.contains([' ', '\n']) => TableCell::text(text),
            None => TableCell::code(text),
        },
        Value::Array(values) => {
            let words: Vec<String> = values
                .iter()
                .map(|value| {
                    value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned)
                })
                .collect();
            TableCell::text(words.join(", "))
        }
        other => TableCell::text(other.to_string()),
    }
}
