//! Lines for people: one a host, then what is not known yet.

use crate::egress::Egress;

pub(super) fn write(egress: &Egress) -> String {
    let width = egress.hosts.iter().map(|row| row.address().len()).max().unwrap_or(0);
    let mut text = String::new();
    for row in &egress.hosts {
        let change = row.change.map(|change| format!("{change:7}  ")).unwrap_or_default();
        let found = row.reach.map(|reach| format!("{reach:7}  ")).unwrap_or_default();
        let mut line = format!(
            "{change}{found}{:width$}  {:5}  {:9}  {}",
            row.address(),
            row.scheme,
            row.known,
            row.why.join("; ")
        );
        if !row.from.is_empty() {
            line += &format!(" (from {})", row.from.join(", "));
        }
        if let Some(via) = &row.via {
            line += &format!(" (through {via})");
        }
        if let Some(reason) = &row.reason {
            line += &format!("\n         {reason}");
        }
        text += &(line + "\n");
    }
    text.extend(egress.notes.iter().map(|note| format!("note: {note}\n")));
    text
}
