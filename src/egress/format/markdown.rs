//! A table for a firewall ticket.

use crate::egress::Egress;
use crate::egress::host::EgressHost;

/// A column: its heading, and its cell, which is empty in all rows where the column is left out.
type Column = (&'static str, fn(&EgressHost) -> String);

const COLUMNS: [Column; 10] = [
    ("change", |row| row.change.map(|change| change.to_string()).unwrap_or_default()),
    ("host", |row| format!("`{}`", row.host)),
    ("port", |row| row.port.to_string()),
    ("scheme", |row| row.scheme.clone()),
    ("known", |row| row.known.to_string()),
    ("why", |row| row.why.join("; ")),
    ("from", |row| row.from.join(", ")),
    ("through", |row| row.via.clone().unwrap_or_default()),
    ("probe", |row| row.reach.map(|reach| reach.to_string()).unwrap_or_default()),
    ("reason", |row| row.reason.clone().unwrap_or_default()),
];

pub(super) fn write(egress: &Egress) -> String {
    let mut text = String::new();
    let used = COLUMNS.iter().filter(|(_, cell)| egress.hosts.iter().any(|row| !cell(row).is_empty()));
    let used: Vec<&Column> = used.collect();
    let mut line = |cells: Vec<String>| text += &format!("| {} |\n", cells.join(" | "));
    if !used.is_empty() {
        line(used.iter().map(|(heading, _)| (*heading).to_owned()).collect());
        line(used.iter().map(|_| "---".to_owned()).collect());
    }
    for row in &egress.hosts {
        line(used.iter().map(|(_, cell)| escaped(&cell(row))).collect());
    }
    if !egress.notes.is_empty() {
        text.push('\n');
    }
    text.extend(egress.notes.iter().map(|note| format!("- {}\n", escaped(note))));
    text
}

fn escaped(cell: &str) -> String {
    cell.replace('|', "\\|").replace(['\n', '\r'], " ")
}
