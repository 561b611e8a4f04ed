//! Candidates: values that name an image, or may.

use super::finding::{Coverage, Finding};
use super::inventory::Inventory;
use crate::text::{SCHEMES, reference_at};
use landfall_model::document::LineIndex;
use landfall_model::{ImageRef, Limits, has_host};

/// A value that names an image, or may.
#[derive(Debug)]
pub(super) struct Candidate {
    /// The offset of its first byte.
    pub(super) at: usize,
    pub(super) path: Vec<String>,
    pub(super) written: String,
    /// It is an image beyond doubt: by where it stands, or by how it looks.
    pub(super) sure: bool,
    /// Without a tag it means `latest`.
    pub(super) in_container: bool,
    /// It is a chart.
    pub(super) is_chart: bool,
    /// Why it is not to be looked up.
    pub(super) why_not: Option<String>,
}

/// Why what is made of a placeholder is not looked up.
pub(super) const MADE: &str = "it is made of a placeholder; audit what comes out of it";

/// What stands in place of a value that is made elsewhere.
const PLACEHOLDERS: [&str; 5] = ["{{", "${", "$(", "__", "<<"];

impl Candidate {
    /// The images of the list `text`; `None` where it is none.
    pub(super) fn of_list(text: &str) -> Option<Vec<Candidate>> {
        let one = |(at, word)| Candidate::new(at, Vec::new(), word, true, false);
        Some(list(text)?.into_iter().filter_map(one).collect())
    }

    /// What `written`, which stands at the byte `at`, names: one image; those of a list; or the
    /// literals in the call of a template.
    pub(super) fn all(
        at: usize,
        path: &[String],
        written: &str,
        sure: bool,
        in_container: bool,
    ) -> Vec<Candidate> {
        let several = |words: Vec<(usize, &str)>| -> Vec<Candidate> {
            let one =
                |(start, word)| Candidate::new(at + start, path.to_vec(), word, true, in_container);
            words.into_iter().filter_map(one).collect()
        };
        if written.contains("{{") {
            let literals = several(literals(written));
            if !literals.is_empty() {
                return literals;
            }
        } else if let Some(words) = list(written) {
            return several(words);
        }
        Candidate::new(at, path.to_vec(), written, sure, in_container)
            .into_iter()
            .collect()
    }

    /// `None` where the value is surely no image.
    fn new(
        at: usize,
        path: Vec<String>,
        written: &str,
        sure: bool,
        in_container: bool,
    ) -> Option<Candidate> {
        let scheme = SCHEMES
            .iter()
            .find_map(|scheme| Some((scheme, written.strip_prefix(scheme)?)));
        let rest = scheme.and_then(|(_, rest)| rest.strip_prefix("://"));
        let (at, written) = rest.map_or((at, written), |rest| {
            (at + written.len() - rest.len(), rest)
        });
        let candidate = |written: &str, sure, why_not: Option<&str>| {
            let (written, why_not) = (written.to_owned(), why_not.map(str::to_owned));
            Some(Candidate {
                at,
                path,
                written,
                sure,
                in_container,
                is_chart: false,
                why_not,
            })
        };
        let most = Limits::default().reference_bytes;
        if PLACEHOLDERS.iter().any(|mark| written.contains(mark)) || written.starts_with('$') {
            return candidate(reference_at(written, most), sure, Some(MADE));
        }
        match written.parse::<ImageRef>() {
            Ok(reference) => candidate(
                written,
                sure || reference.is_pinned() || has_host(written),
                None,
            ),
            Err(error) if sure => candidate(
                &written[..written.floor_char_boundary(most)],
                true,
                Some(&error.to_string()),
            ),
            Err(_) => None,
        }
    }

    pub(super) fn decide(self, inventory: &Inventory<'_>, lines: &LineIndex<'_>) -> Finding {
        let coverage = match (self.why_not, self.written.parse::<ImageRef>()) {
            (Some(why), _) => Coverage::Undecided { why },
            (None, Err(error)) => Coverage::Undecided {
                why: error.to_string(),
            },
            (None, Ok(reference)) => match inventory.decide(&reference, self.in_container) {
                Coverage::Missing { .. } if !self.sure => Coverage::Undecided {
                    why: "it has neither a host nor a tag, so it may be any word".into(),
                },
                Coverage::Missing { why, .. } if self.is_chart => {
                    let why = format!("{why}; it is a chart, to be named under `charts`");
                    Coverage::Missing {
                        name: None,
                        url: None,
                        why,
                    }
                }
                // without a tag, a container pulls `latest`, and a chart its newest version
                coverage if self.in_container || self.is_chart => coverage,
                coverage => unless_ambiguous(coverage, &self.written, &reference),
            },
        };
        let (line, column) = lines.line_column(self.at);
        Finding {
            line,
            column,
            path: self.path,
            manager: None,
            reference: self.written,
            coverage,
        }
    }
}

/// `coverage` of `reference`, unless what is `written` names neither a host nor a tag: then it may
/// be the held item.
pub(super) fn unless_ambiguous(
    coverage: Coverage,
    written: &str,
    reference: &ImageRef,
) -> Coverage {
    let item = match coverage {
        Coverage::Held { item } if !reference.is_pinned() && !has_host(written) => item,
        coverage => return coverage,
    };
    let why = format!(
        "the lock has {item}, but this names neither a host nor a tag: `landfall rewrite` leaves it, and a pod would pull \
         it from {}; write the host or the tag",
        reference.registry
    );
    Coverage::Ambiguous { item, why }
}

/// The quoted literals of `text` that are pinned references with a path, each with its offset.
fn literals(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut start = 0;
    // each quote ends a piece; the piece is a literal if one stands before it, too
    for (at, quote) in text.match_indices(['"', '\'', '`']) {
        let piece = &text[start..at];
        let is_open = text[..start].ends_with(quote);
        if is_open && piece.contains('/') && is_pinned(piece) {
            found.push((start, piece));
        }
        start = at + quote.len();
    }
    found
}

/// Whether `text` is a list of references, or one with its host.
pub(super) fn is_list(text: &str) -> bool {
    list(text).is_some() || (has_host(text) && is_pinned(text))
}

/// The references of a list: words apart by blanks, lines or commas, each perhaps with a name
/// before it (`4.2.0=REF`). `None` where `text` is one word, or one of its words is no pinned
/// reference.
fn list(text: &str) -> Option<Vec<(usize, &str)>> {
    let mut found = Vec::new();
    let mut at = 0;
    for word in text.split_inclusive(|c: char| c.is_whitespace() || c == ',') {
        let name = word.trim_end_matches(|c: char| c.is_whitespace() || c == ',');
        if !name.is_empty() {
            let start = name.rfind('=').map_or(0, |equals| equals + 1);
            is_pinned(&name[start..]).then(|| found.push((at + start, &name[start..])))?;
        }
        at += word.len();
    }
    (found.len() > 1 || found.first().is_some_and(|(start, _)| *start > 0)).then_some(found)
}

fn is_pinned(text: &str) -> bool {
    text.parse::<ImageRef>()
        .is_ok_and(|reference| reference.is_pinned())
}
