//! Collects the references and candidates of a document, and maps edits of values to edits of
//! bytes.

use super::candidate::{ImageCandidate, ImageClaim};
use super::node_context::NodeStep;
use crate::edit::{self, SpanEdit};
use crate::git_source::GitUse;
use crate::occurrence::{Occurrence, ReferenceMeaning};
use crate::role::ReferenceRole;
use crate::settings::ScanSettings;
use crate::source_map::SourceMap;
use crate::yaml::{
    ScalarStyle, YamlDocument, YamlMapping, YamlNode, YamlScalar, YamlSequence, stays_plain,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

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
    pub(super) collected: &'e mut CollectedReferences,
}

impl<'s> ReferenceCollector<'_, 's> {
    /// The keys that lead to the current node, as texts.
    pub(crate) fn path_texts(&self) -> Vec<String> {
        self.path.iter().map(NodeStep::to_string).collect()
    }

    /// Adds the images that `claim` names at the byte `at`.
    pub(crate) fn add_claim(&mut self, at: usize, claim: ImageClaim<'_>) {
        let ImageClaim {
            written,
            sure,
            in_container,
        } = claim;
        let path = self.path_texts();
        let all = ImageCandidate::all(at, &path, written, sure, in_container);
        self.collected.candidates.extend(all);
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
        let new = edit::apply(&in_order, &scalar.value, 0..scalar.value.len());
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
