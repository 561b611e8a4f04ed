//! Audits one text: the reader that fits it, its URLs, and what a scan finds beyond that.

use super::candidate::unless_ambiguous;
use super::finding::{Coverage, Finding};
use super::inventory::Inventory;
use super::{dockerfile, list, node_list, positions, template, urls};
use crate::occurrence::{Meaning, Occurrence};
use crate::role::Role;
use crate::scan::scan;
use crate::syntax::Syntax;
use crate::yaml;
use landfall_model::document::LineIndex;
use landfall_model::{ImageRef, Limits};
use std::collections::BTreeSet;
use std::path::Path;

/// Everything that `text` names, in its order. `name` is the file's: it says how it is read.
pub fn audit(name: &Path, text: &str, inventory: &Inventory<'_>) -> Vec<Finding> {
    let lines = LineIndex::new(text);
    let depth = Limits::default().embedded_depth;
    let syntax = Syntax::of(name);
    let candidates = match dockerfile::is_dockerfile(name) {
        true => dockerfile::candidates(text),
        false => match node_list::candidates(text).or_else(|| list::candidates(text)) {
            Some(list) => list,
            None if syntax == Syntax::Text => template::candidates(text),
            None => match yaml::documents(text).collect::<Result<Vec<_>, _>>() {
                Ok(documents) => positions::candidates(&documents, text, inventory, depth),
                Err(_) => template::candidates(text),
            },
        },
    };
    let mut found: Vec<Finding> = candidates
        .into_iter()
        .map(|candidate| candidate.decide(inventory, &lines))
        .collect();
    found.extend(urls::findings(text, &lines, inventory));
    let places: BTreeSet<_> = found.iter().map(|one| (one.line, one.column)).collect();
    let written: BTreeSet<_> = found
        .iter()
        .map(|one| (one.line, one.reference.clone()))
        .collect();
    let scanned = if inventory.is_thorough {
        scan(text, syntax, inventory.index()).found
    } else {
        Vec::new()
    };
    let rest = scanned.into_iter().filter(|one| {
        !places.contains(&(one.line, one.column))
            && !written.contains(&(one.line, one.written.clone()))
    });
    found.extend(rest.filter_map(|one| of_occurrence(one, inventory)));
    found.sort_by_key(|finding| (finding.line, finding.column));
    found
}

/// The finding for what a scan found where no image is looked for: something of the lock, or
/// something encoded.
fn of_occurrence(occurrence: Occurrence, inventory: &Inventory<'_>) -> Option<Finding> {
    let Occurrence {
        line,
        column,
        inside,
        written,
        role,
        meaning,
        ..
    } = occurrence;
    let reference = written.parse::<ImageRef>().ok();
    let decided = || Some(inventory.decide(reference.as_ref()?, role == Role::Container));
    let coverage = match meaning {
        // URLs are looked for in all of the text; a prefix is none of the items
        _ if role == Role::Url && inside.is_none() => return None,
        Meaning::Known { item, .. } | Meaning::Settled { item: Some(item) } => {
            Coverage::Held { item }
        }
        Meaning::Settled { item: None } => decided()?,
        Meaning::Left { why } => match (decided(), &reference) {
            (Some(coverage), Some(reference)) if role != Role::Container => {
                unless_ambiguous(coverage, &written, reference)
            }
            (coverage, _) => coverage.unwrap_or(Coverage::Undecided { why }),
        },
        Meaning::Unknown if inside.is_some() && role.is_image() => decided()?,
        Meaning::Unknown if role == Role::Literal => decided()?,
        // as a whole value it is a candidate, where it is an image
        Meaning::Unknown if role == Role::Text && inventory.is_full_name(&written) => {
            match decided()? {
                Coverage::Missing { why, .. } => Coverage::Undecided {
                    why: format!(
                        "{why}; it is a word of a text, so it may be no image that is pulled"
                    ),
                },
                coverage => coverage,
            }
        }
        Meaning::Unknown | Meaning::Undecided { .. } => return None,
    };
    let reference = inside.map_or(written.clone(), |inside| format!("{written} ({inside})"));
    Some(Finding {
        line,
        column,
        path: Vec::new(),
        manager: None,
        reference,
        coverage,
    })
}
