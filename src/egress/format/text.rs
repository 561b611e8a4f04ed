//! Formats lines for people: one line for each host, with a second line if the host has a reason,
//! then the notes about hosts that are not known yet.

use crate::egress::Egress;
use landfall_model::report::one_line;

pub(super) fn write(egress: &Egress) -> String {
    let width = egress
        .hosts
        .iter()
        .map(|row| row.address().len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for row in &egress.hosts {
        let change = row
            .change
            .map(|change| format!("{change:7}  "))
            .unwrap_or_default();
        let found = row
            .reach
            .map(|reach| format!("{reach:7}  "))
            .unwrap_or_default();
        let mut line = format!(
            "{change}{found}{:width$}  {:5}  {:9}  {}",
            row.address(),
            one_line(&row.scheme),
            row.known,
            one_line(&row.why.join("; "))
        );
        if !row.from.is_empty() {
            line += &format!(" (from {})", one_line(&row.from.join(", ")));
        }
        if let Some(via) = &row.via {
            line += &format!(" (through {})", one_line(via));
        }
        if let Some(reason) = &row.reason {
            line += &format!("\n         {}", one_line(reason));
        }
        text += &(line + "\n");
    }
    text.extend(
        egress
            .notes
            .iter()
            .map(|note| format!("note: {}\n", one_line(note))),
    );
    text
}
