//! Audits one text: reads it in its format, finds its URLs, and scans everything else.

use super::decision::unless_ambiguous;
use super::finding::AuditFinding;
use super::page::is_page;
use super::{dockerfile, git_uses, node_list, reference_list, urls};
use crate::inventory::{Inventory, LockCoverage};
use crate::occurrence::{Occurrence, ReferenceMeaning};
use crate::role::ReferenceRole;
use crate::scan::{scan, scan_documents};
use crate::syntax::TextSyntax;
use crate::walk::candidates_in_lines;
use landfall_model::ImageRef;
use landfall_model::document::LineIndex;
use std::collections::BTreeSet;
use std::path::Path;

/// Finds the images, charts, URLs and git repositories that `text` names, in the order of the text.
/// `name`, the name of the file, decides how the text is read.
pub fn audit(name: &Path, text: &str, inventory: &Inventory<'_>) -> Vec<AuditFinding> {
    let lines = LineIndex::new(text);
    let syntax = TextSyntax::of(name);
    let mut git = Vec::new();
    if git_uses::is_terraform(name) {
        git = git_uses::in_terraform(text);
    }
    let is_thorough = inventory.is_thorough;
    let words = || {
        if is_thorough {
            scan(text, syntax, inventory.index()).found
        } else {
            Vec::new()
        }
    };
    let (candidates, scanned) = if dockerfile::is_dockerfile(name) {
        (dockerfile::candidates(text), words())
    } else if let Some(list) =
        node_list::candidates(text).or_else(|| reference_list::candidates(text))
    {
        (list, words())
    } else if syntax == TextSyntax::Text {
        let mut candidates = candidates_in_lines(text);
        if is_page(name) {
            candidates.extend(reference_list::page_candidates(text));
        }
        (candidates, words())
    } else {
        let (scan, documents) = scan_documents(name, text, inventory, is_thorough);
        let candidates = match documents {
            Some(documents) => {
                git.extend(documents.git_uses);
                documents.candidates
            }
            None => candidates_in_lines(text),
        };
        (candidates, scan.found)
    };
    let mut found: Vec<AuditFinding> = candidates
        .into_iter()
        .map(|candidate| candidate.decide(inventory, &lines))
        .collect();
    let git: Vec<AuditFinding> = git
        .into_iter()
        .map(|one| one.decide(inventory, &lines))
        .collect();
    // the URL of a source may begin after its scheme `git::`
    let in_sources: BTreeSet<(usize, usize)> = git
        .iter()
        .flat_map(|one| {
            let url = one.reference.find("http").unwrap_or_default();
            [(one.line, one.column), (one.line, one.column + url)]
        })
        .collect();
    let urls = urls::findings(text, &lines, inventory).into_iter();
    found.extend(urls.filter(|one| !in_sources.contains(&(one.line, one.column))));
    found.extend(git);
    let positions: BTreeSet<_> = found.iter().map(|one| (one.line, one.column)).collect();
    let written: BTreeSet<_> = found
        .iter()
        .map(|one| (one.line, one.reference.clone()))
        .collect();
    // a finding has more information than an occurrence, so it replaces an occurrence at the same
    // position or with the same text on the same line
    let rest = scanned.into_iter().filter(|one| {
        !positions.contains(&(one.line, one.column))
            && !written.contains(&(one.line, one.written.clone()))
    });
    found.extend(rest.filter_map(|one| of_occurrence(one, inventory)));
    found.sort_by_key(|finding| (finding.line, finding.column));
    found
}

/// The finding for an occurrence outside the positions that are searched for images: a locked item,
/// a reference in encoded content, a literal, or a full name in a text.
fn of_occurrence(occurrence: Occurrence, inventory: &Inventory<'_>) -> Option<AuditFinding> {
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
    let decided = || Some(inventory.decide(reference.as_ref()?, role == ReferenceRole::Container));
    let coverage = match meaning {
        // URLs were searched in the whole text already
        _ if role == ReferenceRole::Url && inside.is_none() => return None,
        ReferenceMeaning::Known { item, .. } | ReferenceMeaning::Settled { item: Some(item) } => {
            LockCoverage::Held { item }
        }
        ReferenceMeaning::Settled { item: None } => decided()?,
        ReferenceMeaning::Left { why } => match (decided(), &reference) {
            (Some(coverage), Some(reference)) if role != ReferenceRole::Container => {
                unless_ambiguous(coverage, &written, reference)
            }
            (coverage, _) => coverage.unwrap_or(LockCoverage::Undecided { why }),
        },
        ReferenceMeaning::Unknown if inside.is_some() && role.is_image() => decided()?,
        ReferenceMeaning::Unknown if role == ReferenceRole::Literal => decided()?,
        // a reference that is a whole value was already a candidate
        ReferenceMeaning::Unknown
            if role == ReferenceRole::Text && inventory.is_full_name(&written) =>
        {
            match decided()? {
                LockCoverage::Missing { why, .. } => LockCoverage::Undecided {
                    why: format!(
                        "{why}; it is a word in a text, so perhaps it is not pulled as an image"
                    ),
                },
                coverage => coverage,
            }
        }
        ReferenceMeaning::Unknown | ReferenceMeaning::Undecided { .. } => return None,
    };
    let reference = inside.map_or(written.clone(), |inside| format!("{written} ({inside})"));
    Some(AuditFinding {
        line,
        column,
        path: Vec::new(),
        manager: None,
        repository: None,
        reference,
        coverage,
    })
}
