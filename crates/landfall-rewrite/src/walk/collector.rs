//! Collects the references of a document, and maps edits of values to edits of bytes.

use crate::edit::{self, SpanEdit};
use crate::occurrence::{Occurrence, ReferenceMeaning};
use crate::role::ReferenceRole;
use crate::settings::ScanSettings;
use crate::source_map::SourceMap;
use crate::yaml::{ScalarStyle, YamlDocument, YamlNode, YamlScalar, stays_plain};
use std::collections::BTreeMap;
use std::ops::Range;

const UNMAPPED: &str = "its notation is too complex to change a part of it";

/// The findings in one part of a stream.
#[derive(Default)]
pub(super) struct CollectedOccurrences {
    pub(super) found: Vec<Occurrence>,
    /// The byte ranges of values in Secrets.
    pub(super) secrets: Vec<Range<usize>>,
    /// Whether there is a Secret, whose comments may contain values.
    pub(super) has_secret: bool,
    /// Whether an alias is a value of a Secret, so that any anchored node may be this value.
    pub(super) has_shared_secret: bool,
    /// The new values of scalars that change, by the offset of the first byte of the scalar.
    pub(super) changed: BTreeMap<usize, String>,
}

/// Collects the occurrences of one document.
pub(crate) struct OccurrenceCollector<'e, 's> {
    pub(crate) settings: &'e ScanSettings<'e>,
    pub(crate) document: &'s YamlDocument<'s>,
    pub(super) source: &'s str,
    pub(super) collected: &'e mut CollectedOccurrences,
}

impl<'s> OccurrenceCollector<'_, 's> {
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
