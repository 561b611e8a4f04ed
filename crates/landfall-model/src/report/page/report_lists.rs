//! The sections for the lists that single commands add to a report, such as `changes` or `updates`.

use super::section::Section;
use super::table::{Table, TableCell, TableColumn};
use serde_json::{Map, Value};

/// A list of a report that becomes a section.
struct ReportList {
    /// The member of the report.
    member: &'static str,
    heading: &'static str,
    columns: &'static [ListColumn],
}

/// A column of the section of a [`ReportList`].
struct ListColumn {
    /// The member of a row that has the value.
    member: &'static str,
    title: &'static str,
    /// Whether the values are sizes in bytes.
    is_size: bool,
}

const fn column(member: &'static str, title: &'static str) -> ListColumn {
    ListColumn {
        member,
        title,
        is_size: false,
    }
}

const fn size_column(member: &'static str, title: &'static str) -> ListColumn {
    ListColumn {
        member,
        title,
        is_size: true,
    }
}

const REPORT_LISTS: &[ReportList] = &[
    ReportList {
        member: "notices",
        heading: "Notices about upstream",
        columns: &[
            column("kind", "kind"),
            column("name", "name"),
            column("message", "message"),
        ],
    },
    ReportList {
        member: "problems",
        heading: "Problems",
        columns: &[
            column("kind", "kind"),
            column("at", "at"),
            column("message", "message"),
        ],
    },
    ReportList {
        member: "updates",
        heading: "Newer versions",
        columns: &[
            column("name", "name"),
            column("from", "from"),
            column("to", "to"),
            column("policy", "policy"),
            column("at", "at"),
        ],
    },
    ReportList {
        member: "changes",
        heading: "Changes",
        columns: &[
            column("change", "change"),
            column("name", "name"),
            column("version", "version"),
            column("replaces", "replaces"),
            column("from", "previous digest"),
            column("to", "digest"),
            size_column("newBytes", "new"),
        ],
    },
    ReportList {
        member: "endpointChanges",
        heading: "Changed endpoints",
        columns: &[
            column("change", "change"),
            column("host", "host"),
            column("port", "port"),
            column("why", "purpose"),
        ],
    },
    ReportList {
        member: "hostChanges",
        heading: "Changed hosts",
        columns: &[
            column("change", "change"),
            column("host", "host"),
            column("port", "port"),
            column("why", "purpose"),
        ],
    },
    ReportList {
        member: "moved",
        heading: "Tags that moved at the registry",
        columns: &[
            column("at", "tag"),
            column("from", "previous digest"),
            column("to", "digest"),
        ],
    },
    ReportList {
        member: "trimmed",
        heading: "Trimmed indexes",
        columns: &[
            column("name", "name"),
            column("from", "original digest"),
            column("to", "digest"),
        ],
    },
    ReportList {
        member: "standings",
        heading: "Tags at the registry",
        columns: &[
            column("state", "state"),
            column("at", "tag"),
            column("name", "name"),
            column("stands", "current digest"),
            column("wanted", "wanted digest"),
            column("why", "reason"),
        ],
    },
    ReportList {
        member: "records",
        heading: "Commands in the evidence log",
        columns: &[
            column("time", "time"),
            column("command", "command"),
            column("status", "status"),
            column("registry", "registry"),
            column("version", "landfall"),
        ],
    },
    ReportList {
        member: "removed",
        heading: "Removed",
        columns: &[
            column("what", "what"),
            column("digest", "digest"),
            size_column("bytes", "size"),
        ],
    },
];

/// A section for each of [`REPORT_LISTS`]. `extra` has the members that the command added to the
/// report; a section is empty if its list is not among them.
pub(super) fn list_sections(extra: &Map<String, Value>) -> impl Iterator<Item = Section> {
    REPORT_LISTS.iter().map(|list| {
        let rows = extra.get(list.member).and_then(Value::as_array);
        // tags that are already correct are left out, and so are replaced items: the row of the
        // replacing item names them
        let rows = rows
            .into_iter()
            .flatten()
            .filter(|row| row["state"] != "there" && row["replacedBy"].is_null());
        list_section(list.heading, list.columns, rows)
    })
}

/// The section for the manifests that `push --prune` deleted or would delete.
pub(super) fn pruned_section(extra: &Map<String, Value>) -> Option<Section> {
    let pruned = extra.get("pruned")?;
    let heading = if pruned["deleted"] == true {
        "Pruned"
    } else {
        "To be pruned"
    };
    let columns = [
        column("repository", "repository"),
        column("digest", "digest"),
        column("tags", "tags"),
    ];
    let manifests = pruned["manifests"].as_array().into_iter().flatten();
    Some(list_section(heading, &columns, manifests))
}

fn list_section<'v>(
    heading: &str,
    columns: &[ListColumn],
    rows: impl Iterator<Item = &'v Value>,
) -> Section {
    let table_columns: Vec<TableColumn> = columns
        .iter()
        .map(|column| TableColumn {
            title: column.title,
            is_number: column.is_size,
        })
        .collect();
    let rows = rows
        .map(|row| {
            columns
                .iter()
                .map(|column| cell(&row[column.member], column.is_size))
                .collect()
        })
        .collect();
    Section::table(heading, Table::new(&table_columns, rows))
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
