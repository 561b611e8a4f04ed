//! The tables of a page. Each is left out where it would be empty.

use super::data::{ItemContent, PackageRow, ReportPage, RunPhase, Sharing};
use crate::human_size;
use crate::report::escape_html;
use crate::report::{EntryKind, ItemStatus, ReportItem};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

/// A cell of a table.
enum Cell {
    /// Words.
    Text(String),
    /// A name.
    Code(String),
    /// A digest, which stays on one line.
    Hash(String),
    /// A number or size.
    Number(String),
    /// A status.
    Status(ItemStatus),
}
use Cell::{Code, Hash, Number, Text};

/// A part of the page, with its heading.
pub(super) struct Section {
    /// Its heading.
    pub(super) heading: String,
    /// How many rows it has.
    pub(super) rows: usize,
    /// What stands below the heading; nothing, where the section is left out.
    pub(super) body: String,
}

impl Cell {
    fn is_empty(&self) -> bool {
        match self {
            Text(text) | Code(text) | Hash(text) | Number(text) => text.is_empty(),
            Cell::Status(_) => false,
        }
    }
}

/// The fewest characters of a text that gets a column of some width.
const LONG_TEXT: usize = 40;

/// A table. Columns that begin with `#` hold numbers; those without anything in them are left out,
/// so that names have room.
fn table(heading: &str, columns: &[&str], rows: Vec<Vec<Cell>>) -> Section {
    let has = |at: usize| {
        rows.iter()
            .any(|row| row.get(at).is_some_and(|cell| !cell.is_empty()))
    };
    let shown: Vec<bool> = (0..columns.len()).map(has).collect();
    let mut section = Section {
        heading: heading.to_owned(),
        rows: rows.len(),
        body: String::new(),
    };
    if rows.is_empty() {
        return section;
    }
    let mut out = "<div class=\"scroll\"><table><thead><tr>".to_owned();
    for (column, _) in columns.iter().zip(&shown).filter(|(_, shown)| **shown) {
        let _ = match column.strip_prefix('#') {
            Some(column) => write!(out, "<th class=\"num\">{}</th>", escape_html(column)),
            None => write!(out, "<th>{}</th>", escape_html(column)),
        };
    }
    out += "</tr></thead><tbody>\n";
    for row in rows {
        out += "<tr>";
        for (cell, _) in row.into_iter().zip(&shown).filter(|(_, shown)| **shown) {
            let _ = match cell {
                Hash(text) => write!(out, "<td class=\"hash\">{}</td>", escape_html(&text)),
                Text(text) if text.chars().count() >= LONG_TEXT => {
                    write!(out, "<td class=\"long\">{}</td>", escape_html(&text))
                }
                Text(text) => write!(out, "<td>{}</td>", escape_html(&text)),
                Code(text) => write!(out, "<td class=\"code\">{}</td>", escape_html(&text)),
                Number(text) => write!(out, "<td class=\"num\">{}</td>", escape_html(&text)),
                Cell::Status(status) => {
                    let word = word(status);
                    write!(out, "<td class=\"{word}\">{word}</td>")
                }
            };
        }
        out += "</tr>\n";
    }
    section.body = out + "</tbody></table></div>\n";
    section
}

fn word(status: ItemStatus) -> &'static str {
    match status {
        ItemStatus::Done => "done",
        ItemStatus::Present => "present",
        ItemStatus::Skipped => "skipped",
        ItemStatus::Missing => "missing",
        ItemStatus::Failed => "failed",
    }
}

/// What failed, is missing, or was left out.
pub(super) fn losses(items: &[ReportItem]) -> Section {
    let lost = items
        .iter()
        .filter(|item| !matches!(item.status, ItemStatus::Done | ItemStatus::Present));
    let row = |item: &ReportItem| {
        let reason = item.reason.clone().unwrap_or_default();
        vec![
            Cell::Status(item.status),
            Text(item.kind.to_string()),
            Code(item.name.clone()),
            Text(reason),
        ]
    };
    table(
        "Failed, missing or left out",
        &["status", "kind", "name", "why"],
        lost.map(row).collect(),
    )
}

/// Every item with its content.
pub(super) fn items(page: &ReportPage, sharing: &Sharing<'_>) -> Section {
    let content: HashMap<(EntryKind, &str), &ItemContent> = page
        .carried
        .iter()
        .map(|one| ((one.kind, one.name.as_str()), one))
        .collect();
    let row = |item: &ReportItem| {
        let carried = content.get(&(item.kind, item.name.as_str()));
        let own = carried
            .map(|one| human_size(sharing.own_bytes(one)))
            .unwrap_or_default();
        let attached = carried.map(|one| counts(&one.attached)).unwrap_or_default();
        let platforms = carried
            .map(|one| one.platforms.join(", "))
            .unwrap_or_default();
        let licences = carried
            .and_then(|one| one.licences.clone())
            .unwrap_or_default();
        vec![
            Code(item.name.clone()),
            Hash(
                item.digest
                    .as_ref()
                    .map(|digest| digest.short(12))
                    .unwrap_or_default(),
            ),
            Number(item.bytes.map(human_size).unwrap_or_default()),
            Number(own),
            Text(platforms),
            Text(attached),
            Text(licences),
            Cell::Status(item.status),
        ]
    };
    let columns = [
        "name",
        "digest",
        "#size",
        "#its own",
        "platforms",
        "carried with it",
        "licences",
        "status",
    ];
    table(
        "Items",
        &columns,
        page.report.items.iter().map(row).collect(),
    )
}

fn counts(attached: &[(String, usize)]) -> String {
    let words = attached.iter().map(|(what, count)| match count {
        1 => what.clone(),
        count => format!("{count} {what}s"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The packages of each set of packages.
pub(super) fn packages(carried: &[ItemContent]) -> Section {
    let rows = carried.iter().flat_map(|set| {
        set.packages.iter().map(|package| {
            let PackageRow {
                name,
                version,
                arch,
                size,
            } = package;
            let size = Number(human_size(*size));
            vec![
                Code(name.clone()),
                Code(version.clone()),
                Text(arch.clone()),
                size,
                Code(set.name.clone()),
            ]
        })
    });
    table(
        "Packages",
        &["name", "version", "architecture", "#size", "in"],
        rows.collect(),
    )
}

/// Blobs that several items have.
pub(super) fn shared(carried: &[ItemContent], sharing: &Sharing<'_>) -> Section {
    const SHOWN: usize = 50;
    let all = sharing.shared();
    let row = |(digest, size, users): &(&crate::Digest, u64, &[usize])| {
        let names: Vec<&str> = users
            .iter()
            .take(4)
            .map(|at| carried[*at].name.as_str())
            .collect();
        let more = match users.len() - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let saved = size.saturating_mul(users.len() as u64 - 1);
        vec![
            Hash(digest.short(12)),
            Number(human_size(*size)),
            Number(users.len().to_string()),
            Number(human_size(saved)),
            Text(names.join(", ") + &more),
        ]
    };
    let heading = match all.len() > SHOWN {
        true => format!("Shared layers: the {SHOWN} of {} that save most", all.len()),
        false => "Shared layers".to_owned(),
    };
    let columns = ["digest", "#size", "#items", "#saved", "in"];
    table(
        &heading,
        &columns,
        all.iter().take(SHOWN).map(row).collect(),
    )
}

/// Licences, and how many items say that they have them.
pub(super) fn licences(carried: &[ItemContent]) -> Section {
    let mut licences: BTreeMap<&str, usize> = BTreeMap::new();
    for one in carried.iter().filter_map(|one| one.licences.as_deref()) {
        *licences.entry(one).or_default() += 1;
    }
    let silent = carried
        .iter()
        .filter(|one| one.kind == EntryKind::Image && one.licences.is_none())
        .count();
    let mut rows: Vec<Vec<Cell>> = licences
        .into_iter()
        .map(|(licence, count)| vec![Text(licence.to_owned()), Number(count.to_string())])
        .collect();
    if !rows.is_empty() && silent > 0 {
        rows.push(vec![
            Text("(the image does not say)".into()),
            Number(silent.to_string()),
        ]);
    }
    table(
        "Licences, as the images name them",
        &["licence", "#images"],
        rows,
    )
}

/// Hosts contacted.
pub(super) fn hosts(page: &ReportPage) -> Section {
    let row = |host: &crate::report::HostUse| {
        vec![
            Code(format!("{}://{}:{}", host.scheme, host.host, host.port)),
            Text(host.why.clone()),
            Text(host.origin.clone().unwrap_or_default()),
            Code(host.via.clone().unwrap_or_default()),
            Number(host.requests.to_string()),
            Number(human_size(host.bytes)),
        ]
    };
    let columns = [
        "host",
        "what for",
        "in place of",
        "through",
        "#requests",
        "#bytes",
    ];
    table(
        "Hosts contacted",
        &columns,
        page.report.hosts.iter().map(row).collect(),
    )
}

/// The phases of the run.
pub(super) fn timings(phases: &[RunPhase]) -> Section {
    let row = |phase: &RunPhase| {
        let rate = match phase.bytes {
            0 => String::new(),
            bytes => format!(
                "{}/s",
                human_size((bytes as f64 / phase.seconds.max(0.001)) as u64)
            ),
        };
        let bytes = if phase.bytes == 0 {
            String::new()
        } else {
            human_size(phase.bytes)
        };
        let seconds = Number(format!("{:.1} s", phase.seconds));
        vec![
            Text(phase.what.clone()),
            Number(phase.items.to_string()),
            Number(bytes),
            seconds,
            Number(rate),
        ]
    };
    table(
        "Timings",
        &["phase", "#items", "#bytes", "#time", "#rate"],
        phases.iter().map(row).collect(),
    )
}

/// The columns of a list: the member of a row, and the title.
type Columns = &'static [(&'static str, &'static str)];

/// The members of a report that are lists of rows, each with its heading and columns: a name, and
/// what is shown of it.
const LISTS: [(&str, &str, Columns); 10] = [
    (
        "notices",
        "What upstream says about itself",
        &[("kind", "kind"), ("name", "name"), ("message", "message")],
    ),
    (
        "problems",
        "In the way",
        &[("kind", "kind"), ("at", "at"), ("message", "message")],
    ),
    (
        "updates",
        "Newer versions",
        &[
            ("name", "name"),
            ("from", "from"),
            ("to", "to"),
            ("policy", "policy"),
            ("at", "at"),
        ],
    ),
    (
        "changes",
        "Changes",
        &[
            ("change", "change"),
            ("name", "name"),
            ("version", "version"),
            ("replaces", "in place of"),
            ("from", "from"),
            ("to", "to"),
            ("newBytes", "#new"),
        ],
    ),
    (
        "endpointChanges",
        "Changes of endpoints",
        &[
            ("change", "change"),
            ("host", "host"),
            ("port", "port"),
            ("why", "what for"),
        ],
    ),
    (
        "hostChanges",
        "Changes of hosts",
        &[
            ("change", "change"),
            ("host", "host"),
            ("port", "port"),
            ("why", "what for"),
        ],
    ),
    (
        "moved",
        "Tags that moved at the registry",
        &[("at", "at"), ("from", "from"), ("to", "to")],
    ),
    (
        "trimmed",
        "Trimmed indexes",
        &[("name", "name"), ("from", "from"), ("to", "to")],
    ),
    (
        "standings",
        "At the registry",
        &[
            ("state", "state"),
            ("at", "at"),
            ("name", "name"),
            ("stands", "stands at"),
            ("wanted", "wanted"),
            ("why", "why"),
        ],
    ),
    (
        "removed",
        "Removed",
        &[("what", "what"), ("digest", "digest"), ("bytes", "#bytes")],
    ),
];

/// The lists of the report, as far as it has them.
pub(super) fn lists(page: &ReportPage) -> Vec<Section> {
    let extra = &page.report.extra;
    let mut out = Vec::new();
    for (member, heading, columns) in LISTS {
        let rows = extra
            .get(member)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let rows = rows.filter(|row| row["state"] != "there" && row["replacedBy"].is_null());
        out.push(listed(heading, columns, rows.collect()));
    }
    if let Some(pruned) = extra.get("pruned") {
        let heading = if pruned["deleted"] == true {
            "Pruned"
        } else {
            "Would be pruned"
        };
        let columns = [
            ("repository", "repository"),
            ("digest", "digest"),
            ("tags", "tags"),
        ];
        let rows = pruned["manifests"]
            .as_array()
            .into_iter()
            .flatten()
            .collect();
        out.push(listed(heading, &columns, rows));
    }
    out
}

/// A table of those columns that some row has.
fn listed(heading: &str, columns: &[(&str, &str)], rows: Vec<&Value>) -> Section {
    let has = |member: &str| rows.iter().any(|row| !row[member].is_null());
    let columns: Vec<_> = columns.iter().filter(|(member, _)| has(member)).collect();
    let cells = |row: &&Value| -> Vec<Cell> {
        let cell = |(member, title): &&(&str, &str)| cell(&row[*member], title.starts_with('#'));
        columns.iter().map(cell).collect()
    };
    let titles: Vec<&str> = columns.iter().map(|(_, title)| *title).collect();
    table(heading, &titles, rows.iter().map(cells).collect())
}

fn cell(value: &Value, is_size: bool) -> Cell {
    match value {
        Value::Null => Text(String::new()),
        Value::Number(number) if is_size => {
            Number(number.as_u64().map(human_size).unwrap_or_default())
        }
        Value::String(text) => match text.strip_prefix("sha256:") {
            Some(hex) => Hash(hex.chars().take(12).collect()),
            None if text.contains([' ', '\n']) => Text(text.clone()),
            None => Code(text.clone()),
        },
        Value::Array(list) => {
            let words: Vec<String> = list
                .iter()
                .map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned))
                .collect();
            Text(words.join(", "))
        }
        other => Text(other.to_string()),
    }
}
