//! Formats a Markdown table for a firewall ticket.

use crate::egress::Egress;
use crate::egress::host::EgressHost;
use landfall_model::report::{markdown_code, markdown_row, markdown_text};

/// A column: its heading and the function that returns its cell. A column whose cells are all empty
/// is omitted.
type Column = (&'static str, fn(&EgressHost) -> String);

const COLUMNS: [Column; 10] = [
    ("change", |row| {
        row.change
            .map(|change| change.to_string())
            .unwrap_or_default()
    }),
    ("host", |row| markdown_code(&row.host.to_string())),
    ("port", |row| row.port.to_string()),
    ("scheme", |row| markdown_text(&row.scheme)),
    ("known", |row| row.known.to_string()),
    ("why", |row| markdown_text(&row.why.join("; "))),
    ("from", |row| markdown_text(&row.from.join(", "))),
    ("through", |row| {
        markdown_text(row.via.as_deref().unwrap_or_default())
    }),
    ("probe", |row| {
        row.reach.map(|reach| reach.to_string()).unwrap_or_default()
    }),
    ("reason", |row| {
        markdown_text(row.reason.as_deref().unwrap_or_default())
    }),
];

pub(super) fn write(egress: &Egress) -> String {
    let mut table = String::new();
    let used = COLUMNS
        .iter()
        .filter(|(_, cell)| egress.hosts.iter().any(|row| !cell(row).is_empty()));
    let used: Vec<&Column> = used.collect();
    if !used.is_empty() {
        let headings: Vec<&str> = used.iter().map(|(heading, _)| *heading).collect();
        table += &markdown_row(&headings);
        table += &markdown_row(&vec!["---"; used.len()]);
    }
    for row in &egress.hosts {
        let cells: Vec<String> = used.iter().map(|(_, cell)| cell(row)).collect();
        table += &markdown_row(&cells);
    }
    if !egress.notes.is_empty() {
        table.push('\n');
    }
    table.extend(
        egress
            .notes
            .iter()
            .map(|note| format!("- {}\n", markdown_text(note))),
    );
    table
}
