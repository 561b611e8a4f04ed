//! Collects the references and candidates of a document, and maps edits of values to edits of
//! bytes.

use super::NodeStep;
use crate::git_source::GitUse;
use crate::index::{has_certain_host, is_pinned};
use crate::occurrence::{self, Occurrence, ReferenceMeaning, ReferenceRole, SpanEdit};
use crate::scan_result::{ScanSettings, sorted_edits};
use crate::source_map::SourceMap;
use crate::text::{SCHEMES, has_placeholder, reference_at};
use crate::yaml::{
    self, ParseFingerprint, ScalarStyle, YamlDocument, YamlMapping, YamlNode, YamlScalar,
    YamlSequence, entries_of, stays_plain, text_of,
};
use landfall_item::ChartName;
use landfall_model::{ImageRef, Limits, has_host, redact_reference};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

/// The maximum length of all keys of a path together, and of one of them. Without it, each image
/// below a key of a megabyte would take a megabyte.
const MAX_PATH_BYTES: usize = 4 << 10;

const MAX_KEY_BYTES: usize = 1 << 10;

const UNMAPPED: &str = "its notation is too complex to change a part of it";

/// The findings in one part of a stream.
#[derive(Default)]
pub(super) struct CollectedReferences {
    pub(super) found: Vec<Occurrence>,
    pub(super) candidates: Vec<ImageCandidate>,
    pub(super) git_uses: Vec<GitUse>,
    /// The byte ranges of values in Secrets.
    pub(super) secrets: Vec<Range<usize>>,
    /// Whether there is a Secret, whose comments may contain values.
    pub(super) has_secret: bool,
    /// Whether an alias is a value of a Secret, so that any anchored node may be this value.
    pub(super) has_shared_secret: bool,
    /// The new values of scalars that change, by the offset of the first byte of the scalar.
    pub(super) changed: BTreeMap<usize, String>,
}

/// Collects the references of one document.
pub(crate) struct ReferenceCollector<'e, 's> {
    pub(crate) settings: &'e ScanSettings<'e>,
    pub(crate) document: &'s YamlDocument<'s>,
    pub(super) source: &'s str,
    /// The name of the file; `None` for documents within texts.
    pub(crate) file: Option<&'e Path>,
    /// The steps that lead to the current node.
    pub(crate) path: Vec<NodeStep<'s>>,
    /// The parts of names that different mappings may have, after their first use.
    pub(crate) distant_parts: OnceCell<DistantParts<'s>>,
    /// The entries near the root, after their first use.
    pub(super) head: OnceCell<DocumentHead<'s>>,
    pub(super) collected: &'e mut CollectedReferences,
}

/// Entries near the root of a document that rules need for mappings below it. A key such as `spec`
/// may be repeated, so a search for each mapping would take quadratic time.
pub(crate) struct DocumentHead<'s> {
    /// Empty if there is none.
    pub(crate) api_version: &'s str,
    /// Empty if there is none.
    pub(crate) kind: &'s str,
    /// The `version` in `spec`.
    pub(crate) spec_version: Option<&'s str>,
}

/// Texts of a document that may be parts of one name, although they are in different mappings.
#[derive(Default)]
pub(crate) struct DistantParts<'s> {
    /// Registries, each with or without a path.
    pub(crate) prefixes: BTreeSet<&'s str>,
    /// The ends of names of locked images, each once.
    pub(crate) names: Vec<&'s str>,
}

impl<'s> ReferenceCollector<'_, 's> {
    /// The entries near the root of the document.
    pub(crate) fn head(&self) -> &DocumentHead<'s> {
        self.head.get_or_init(|| {
            let root = self.document.entries();
            DocumentHead {
                api_version: text_of(root, "apiVersion").unwrap_or_default(),
                kind: text_of(root, "kind").unwrap_or_default(),
                spec_version: text_of(entries_of(root, "spec"), "version"),
            }
        })
    }

    /// The keys that lead to the current node, as texts. Very long ones are cut off.
    pub(crate) fn path_texts(&self) -> Vec<String> {
        let mut left = MAX_PATH_BYTES;
        let texts = self.path.iter().map(|step| {
            let text = match step {
                NodeStep::Key(key) => {
                    key[..key.floor_char_boundary(left.min(MAX_KEY_BYTES))].to_owned()
                }
                NodeStep::Item(_) => step.to_string(),
            };
            left = left.saturating_sub(text.len());
            text
        });
        texts.collect()
    }

    /// Adds the images that `claim` names at the byte `at`.
    pub(crate) fn add_claim(&mut self, at: usize, claim: ImageClaim<'_>) {
        for candidate in ImageCandidate::all(at, claim) {
            self.add_candidate(candidate);
        }
    }

    /// Adds `candidate`, whose path is set to that of the current node.
    pub(crate) fn add_candidate(&mut self, candidate: ImageCandidate) {
        let path = self.path_texts();
        self.collected
            .candidates
            .push(ImageCandidate { path, ..candidate });
    }

    /// Adds the use of a git repository.
    pub(crate) fn add_git_use(&mut self, used: GitUse) {
        self.collected.git_uses.push(used);
    }

    /// Adds the candidates `inner`, which were found in the value of `scalar`.
    pub(super) fn add_inner(&mut self, scalar: &YamlScalar<'_>, inner: Vec<ImageCandidate>) {
        if inner.is_empty() {
            return;
        }
        let source_map = SourceMap::of(self.source, scalar);
        let path = self.path_texts();
        let candidates = inner.into_iter().map(|inner| ImageCandidate {
            at: source_map
                .as_ref()
                .and_then(|source_map| source_map.offset(inner.at))
                .unwrap_or_else(|| text_start(scalar)),
            path: [&path[..], &inner.path].concat(),
            ..inner
        });
        self.collected.candidates.extend(candidates);
    }

    /// Adds an occurrence at `node`, without edits.
    pub(crate) fn add(
        &mut self,
        node: &YamlNode<'_>,
        written: &str,
        role: ReferenceRole,
        meaning: ReferenceMeaning,
    ) {
        self.collected
            .found
            .push(Occurrence::new(node.span().start, written, role, meaning));
    }

    /// Adds occurrences in the value of `scalar`. Their offsets and edits are relative to the
    /// value. `keep` is the reason why nothing may be changed, if there is one.
    pub(crate) fn add_in_value(
        &mut self,
        scalar: &YamlScalar<'_>,
        mut found: Vec<Occurrence>,
        keep: Option<&str>,
    ) {
        // in a value that must not be changed, references that are not locked are not reported
        found
            .retain(|occurrence| keep.is_none() || occurrence.meaning != ReferenceMeaning::Unknown);
        if found.is_empty() {
            return;
        }
        let source_map = SourceMap::of(self.source, scalar);
        let mut changes: Vec<SpanEdit> = Vec::new();
        let mut in_source = Vec::with_capacity(found.len());
        // one edit may make several changes, such as those in encoded content: only the first of
        // them has the edit, and if it is impossible, none of them is made
        let mut impossible: Option<&str> = None;
        for mut occurrence in found {
            let at = source_map
                .as_ref()
                .and_then(|source_map| source_map.offset(occurrence.at));
            occurrence.at = at.unwrap_or(scalar.span.start);
            let edits = std::mem::take(&mut occurrence.edits);
            let shares_edit = edits.is_empty() && occurrence.is_change();
            let mapped: Result<Vec<SpanEdit>, &str> = edits
                .iter()
                .map(|edit| match (&source_map, keep) {
                    (_, Some(why)) => Err(why),
                    (None, None) => Err(UNMAPPED),
                    (Some(source_map), None) => source_map.edit(self.source, edit),
                })
                .collect();
            match mapped {
                Ok(mapped) => {
                    impossible = impossible.filter(|_| mapped.is_empty());
                    occurrence.edits = mapped;
                    changes.extend(edits);
                }
                Err(why) => {
                    impossible = Some(why);
                    occurrence.leave(why);
                }
            }
            if let Some(why) = impossible.filter(|_| shares_edit) {
                occurrence.leave(why);
            }
            if let Some(why) = keep.filter(|_| occurrence.is_change()) {
                occurrence.leave(why);
            }
            in_source.push(occurrence);
        }
        self.change(scalar, &changes, &mut in_source);
        self.collected.found.extend(in_source);
    }

    /// Adds `occurrence`, and changes each scalar of `parts` to the new text that is given with it.
    /// An error is the reason why that is impossible.
    pub(crate) fn add_in_parts(
        &mut self,
        mut occurrence: Occurrence,
        parts: Vec<(&'s YamlScalar<'s>, String)>,
    ) -> Result<(), &'static str> {
        let mut changed = Vec::new();
        for (scalar, bytes) in parts {
            let source_map = SourceMap::of(self.source, scalar).ok_or(UNMAPPED)?;
            let start = scalar.value.len() - scalar.value.trim_start().len();
            let change = SpanEdit {
                span: start..start + scalar.value.trim().len(),
                bytes,
            };
            let edit = source_map.edit(self.source, &change)?;
            let (value, quoted) = self.quoted(scalar, &[change])?;
            occurrence.edits.push(quoted.unwrap_or(edit));
            changed.push((scalar.span.start, value));
        }
        self.collected.changed.extend(changed);
        self.collected.found.push(occurrence);
        Ok(())
    }

    /// Records the new value of `scalar`. If the value needs quotes, one edit replaces all others.
    fn change(&mut self, scalar: &YamlScalar<'_>, changes: &[SpanEdit], found: &mut [Occurrence]) {
        if changes.is_empty() {
            return;
        }
        match self.quoted(scalar, changes) {
            Ok((new, edit)) => {
                if let Some(edit) = edit {
                    let mut edits = vec![edit];
                    let changed = found
                        .iter_mut()
                        .filter(|occurrence| !occurrence.edits.is_empty());
                    changed.for_each(|occurrence| occurrence.edits = std::mem::take(&mut edits));
                }
                self.collected.changed.insert(scalar.span.start, new);
            }
            Err(why) => found
                .iter_mut()
                .filter(|one| one.is_change())
                .for_each(|one| one.leave(why)),
        }
    }

    /// The new value of `scalar`. If the value needs quotes that the scalar lacks, also one edit
    /// that replaces the whole scalar.
    fn quoted(
        &self,
        scalar: &YamlScalar<'_>,
        changes: &[SpanEdit],
    ) -> Result<(String, Option<SpanEdit>), &'static str> {
        // references may be found in an order that differs from the order in the text
        let mut in_order: Vec<&SpanEdit> = changes.iter().collect();
        in_order.sort_by_key(|edit| edit.span.start);
        let new = occurrence::apply(&in_order, &scalar.value, 0..scalar.value.len());
        if scalar.style != ScalarStyle::Plain || stays_plain(&scalar.value, &new) {
            return Ok((new, None));
        }
        // to quote a folded or escaped text, all of it would have to be written again
        if self.source.get(scalar.span.clone()) != Some(&*scalar.value) || new.contains(['"', '\\'])
        {
            return Err("the new value would need quotes");
        }
        let bytes = format!("\"{new}\"");
        Ok((
            new,
            Some(SpanEdit {
                span: scalar.span.clone(),
                bytes,
            }),
        ))
    }
}

/// The offset of the text of a scalar, after its opening quote.
pub(crate) fn text_start(scalar: &YamlScalar<'_>) -> usize {
    let quoted = matches!(
        scalar.style,
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted
    );
    scalar.span.start + usize::from(quoted)
}

/// The offset of the first text in a node; `None` for an empty collection.
pub(crate) fn start_of(node: &YamlNode<'_>) -> Option<usize> {
    match node {
        YamlNode::Scalar(scalar) => Some(text_start(scalar)),
        YamlNode::Alias(alias) => Some(alias.span.start),
        YamlNode::Sequence(YamlSequence { items, .. }) => items.first().and_then(start_of),
        YamlNode::Mapping(YamlMapping { entries, .. }) => {
            entries.first().and_then(|entry| start_of(&entry.key))
        }
    }
}

/// A value that names an image, certainly or possibly.
#[derive(Debug)]
pub(crate) struct ImageCandidate {
    /// The offset of its first byte in the text.
    pub(crate) at: usize,
    pub(crate) path: Vec<String>,
    pub(crate) written: String,
    /// Whether it is certainly an image, by its position or by its form.
    pub(crate) sure: bool,
    /// Whether a container uses the image, so that a name without a tag means `latest`.
    pub(crate) in_container: bool,
    /// Whether it is a chart.
    pub(crate) is_chart: bool,
    /// The name of the chart, if its repository and one version are known.
    pub(crate) chart: Option<ChartName>,
    /// The reason why the reference cannot be looked up, if there is one.
    pub(crate) why_not: Option<String>,
}

/// A text that a rule reads as an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImageClaim<'t> {
    pub(crate) written: &'t str,
    /// Whether it is certainly an image, even if it does not look like a reference.
    pub(crate) sure: bool,
    /// Whether a container uses the image, so that a name without a tag means `latest`.
    pub(crate) in_container: bool,
}

impl<'t> ImageClaim<'t> {
    /// A text that no container uses.
    pub(crate) fn new(written: &'t str, sure: bool) -> ImageClaim<'t> {
        ImageClaim {
            written,
            sure,
            in_container: false,
        }
    }

    /// The image of a container.
    pub(crate) fn of_container(written: &'t str) -> ImageClaim<'t> {
        ImageClaim {
            in_container: true,
            ..ImageClaim::new(written, true)
        }
    }
}

/// The reason why a value with a placeholder is not looked up.
pub(crate) const HAS_PLACEHOLDER: &str =
    "it contains a placeholder; render it first, then audit the result";

impl ImageCandidate {
    /// A value that is certainly an image, and of no container.
    pub(crate) fn certain(at: usize, written: String) -> ImageCandidate {
        ImageCandidate {
            at,
            path: Vec::new(),
            written,
            sure: true,
            in_container: false,
            is_chart: false,
            chart: None,
            why_not: None,
        }
    }

    /// A value that is certainly an image, but cannot be looked up for the reason `why`.
    pub(crate) fn undecided(at: usize, written: String, why: &str) -> ImageCandidate {
        ImageCandidate {
            why_not: Some(why.to_owned()),
            ..ImageCandidate::certain(at, written)
        }
    }

    /// The images of the list `text`. `None` if it is not a list of images.
    pub(crate) fn of_list(text: &str) -> Option<Vec<ImageCandidate>> {
        let one = |(at, word)| ImageCandidate::new(at, ImageClaim::new(word, true));
        Some(list(text)?.into_iter().filter_map(one).collect())
    }

    /// The images in the text of `claim`, which begins at the byte `at`: one image, the images of a
    /// list, or the literals in a template call.
    pub(crate) fn all(at: usize, claim: ImageClaim<'_>) -> Vec<ImageCandidate> {
        let several = |words: Vec<(usize, &str)>| -> Vec<ImageCandidate> {
            let one = |(start, written)| {
                let one = ImageClaim {
                    written,
                    sure: true,
                    ..claim
                };
                ImageCandidate::new(at + start, one)
            };
            words.into_iter().filter_map(one).collect()
        };
        if claim.written.contains("{{") {
            let literals = several(literals(claim.written));
            if !literals.is_empty() {
                return literals;
            }
        } else if let Some(words) = list(claim.written) {
            return several(words);
        }
        ImageCandidate::new(at, claim).into_iter().collect()
    }

    /// `None` if the value is certainly not an image.
    fn new(at: usize, claim: ImageClaim<'_>) -> Option<ImageCandidate> {
        let ImageClaim {
            written,
            sure,
            in_container,
        } = claim;
        let scheme = SCHEMES
            .iter()
            .find_map(|scheme| Some((scheme, written.strip_prefix(scheme)?)));
        let rest = scheme.and_then(|(_, rest)| rest.strip_prefix("://"));
        let (at, written) = rest.map_or((at, written), |rest| {
            (at + written.len() - rest.len(), rest)
        });
        let candidate = |written: &str, sure, why_not: Option<&str>| {
            Some(ImageCandidate {
                sure,
                in_container,
                why_not: why_not.map(str::to_owned),
                ..ImageCandidate::certain(at, written.to_owned())
            })
        };
        let max_bytes = Limits::default().reference_bytes;
        if has_placeholder(written) || written.contains("<<") || written.starts_with('$') {
            return candidate(
                reference_at(written, max_bytes),
                sure,
                Some(HAS_PLACEHOLDER),
            );
        }
        match written.parse::<ImageRef>() {
            Ok(reference) => candidate(
                written,
                sure || reference.is_pinned() || has_certain_host(written),
                None,
            ),
            Err(error) if sure => {
                // parsed again without its secrets, because the message quotes the text
                let shown = redact_reference(written).parse::<ImageRef>();
                let why = shown.err().unwrap_or(error).to_string();
                let written = &written[..written.floor_char_boundary(max_bytes)];
                candidate(written, true, Some(&why))
            }
            Err(_) => None,
        }
    }
}

/// The quoted literals of `text` that are pinned references with a path, with their offsets.
fn literals(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut start = 0;
    // each quote ends a piece, which is a literal if the same quote precedes it
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

/// Whether `text` is a list of references, or one pinned reference with a host.
pub(crate) fn is_list(text: &str) -> bool {
    list(text).is_some() || (has_host(text) && is_pinned(text))
}

/// The references of a list, with their offsets: words separated by blanks, line breaks or commas,
/// each optionally with a name (`4.2.0=REF`). `None` if `text` is one word without a name, or if a
/// word is not a pinned reference.
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

// Proves that edits of bytes are the intended changes of values.

/// Whether a part of `source`, with the edits of `found` applied, reads as before except for the
/// new values in `changed`. Each key of `changed` is the offset of the first byte of the scalar.
pub(super) fn reads_as_intended(
    source: &str,
    part: &Range<usize>,
    found: &[Occurrence],
    changed: &BTreeMap<usize, String>,
) -> bool {
    let mut fingerprint = ParseFingerprint::default();
    let documents = yaml::documents_in(source, part.clone()).flatten();
    documents.for_each(|document| fingerprint.add(&document, changed));
    let mut new = occurrence::apply(&sorted_edits(found), source, part.clone());
    let end = new.len();
    // the next document marker must still begin a line: an edit could have swallowed the newline
    new.push_str(&source[part.end..source.len().min(part.end + "---".len())]);
    fingerprint.matches(&new, end)
}
