//! Audits one text: reads it in its format, finds its URLs, and scans everything else.

use super::finding::{AuditFinding, unless_ambiguous};
use super::page::{code_blocks, is_page};
use super::{dockerfile, git_coverage, node_list, urls};
use crate::inventory::{Inventory, LockCoverage};
use crate::occurrence::{Occurrence, ReferenceMeaning, ReferenceRole};
use crate::scan::{scan, scan_documents};
use crate::scan_result::TextSyntax;
use crate::walk::{ImageCandidate, candidates_in_lines};
use landfall_model::document::LineIndex;
use landfall_model::{ImageRef, has_host};
use std::collections::BTreeSet;
use std::path::Path;

/// Finds the images, charts, URLs and git repositories that `text` names, in the order of the text.
/// `name`, the name of the file, decides how the text is read.
pub fn audit(name: &Path, text: &str, inventory: &Inventory<'_>) -> Vec<AuditFinding> {
    let lines = LineIndex::new(text);
    let syntax = TextSyntax::of(name);
    let mut git = Vec::new();
    if git_coverage::is_terraform(name) {
        git = git_coverage::in_terraform(text);
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
    } else if let Some(list) = node_list::candidates(text).or_else(|| candidates(text)) {
        (list, words())
    } else if syntax == TextSyntax::Text {
        let mut candidates = candidates_in_lines(text);
        if is_page(name) {
            candidates.extend(page_candidates(text));
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

/// The references of a plain list: one per line, `#` begins a comment. `None` if `text` is not such
/// a list: every line must be a reference with a path or tag, and at least one of them must have a
/// tag, a digest or a host, because paths of files look like short names of images.
pub(super) fn candidates(text: &str) -> Option<Vec<ImageCandidate>> {
    let text_start = text.len() - text.trim_start_matches('\u{feff}').len();
    let (found, has_sure) = references(text, text_start)?;
    has_sure.then_some(found)
}

/// The references in the code blocks of a page in Markdown that are such lists. One list with a
/// tag, a digest or a host is enough for all of them.
pub(super) fn page_candidates(text: &str) -> Vec<ImageCandidate> {
    let lists = code_blocks(text)
        .into_iter()
        .filter_map(|block| references(&text[..block.end], block.start));
    let lists: Vec<_> = lists.collect();
    let has_sure = lists.iter().any(|(_, has_sure)| *has_sure);
    let found = lists.into_iter().flat_map(|(found, _)| found);
    found.filter(|_| has_sure).collect()
}

/// The references of `text` from the byte `text_start` on, and whether one of them has a tag, a
/// digest or a host. `None` if a line is not a reference.
fn references(text: &str, text_start: usize) -> Option<(Vec<ImageCandidate>, bool)> {
    let mut found = Vec::new();
    let mut has_sure = false;
    let mut end = text_start;
    for line in text[text_start..].split_inclusive('\n') {
        let start = end + line.len() - line.trim_start().len();
        end += line.len();
        let written = line.split('#').next().unwrap_or_default().trim();
        if written.is_empty() {
            continue;
        }
        let reference = written.parse::<ImageRef>().ok()?;
        let is_sure = reference.is_pinned() || has_host(written);
        if !is_sure && !written.contains('/') {
            return None;
        }
        has_sure |= is_sure;
        found.extend(ImageCandidate::all(start, &[], written, true, true));
    }
    Some((found, has_sure))
}
