//! Collects the occurrences of a document, and turns edits of values into edits of bytes.

use crate::edit::{self, Edit};
use crate::occurrence::{Meaning, Occurrence};
use crate::role::Role;
use crate::settings::Settings;
use crate::source_map::SourceMap;
use crate::yaml::{Document, Node, Scalar, stays_plain};
use granit_parser::ScalarStyle;
use std::collections::BTreeMap;
use std::ops::Range;

const UNMAPPED: &str = "it is spelled in a way that cannot be taken apart";

/// What was collected from the documents of one part of a text.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) found: Vec<Occurrence>,
    /// The byte ranges of values in Secrets.
    pub(super) secrets: Vec<Range<usize>>,
    /// Whether there is a Secret: comments in it may hold values.
    pub(super) has_secret: bool,
    /// Whether an anchor is a value of a Secret, wherever it stands.
    pub(super) has_shared_secret: bool,
    /// The new values of scalars that change, by the first byte of the scalar.
    pub(super) changed: BTreeMap<usize, String>,
}

/// Collects the occurrences of one document.
pub(crate) struct Collector<'e, 's> {
    pub(crate) settings: &'e Settings<'e>,
    pub(crate) document: &'s Document<'s>,
    pub(super) source: &'s str,
    pub(super) collected: &'e mut Collected,
}

impl<'s> Collector<'_, 's> {
    /// Adds an occurrence at `node`, without edits.
    pub(crate) fn add(&mut self, node: &Node<'_>, written: &str, role: Role, meaning: Meaning) {
        self.collected
            .found
            .push(Occurrence::new(node.start(), written, role, meaning));
    }

    /// Adds occurrences in the value of `scalar`, whose offsets and edits are those of the value.
    /// `keep` says why nothing may be changed, if so.
    pub(crate) fn add_in_value(
        &mut self,
        scalar: &Scalar<'_>,
        mut found: Vec<Occurrence>,
        keep: Option<&str>,
    ) {
        // what the lock does not have is no concern of a place where nothing is changed
        found.retain(|occurrence| keep.is_none() || occurrence.meaning != Meaning::Unknown);
        if found.is_empty() {
            return;
        }
        let source_map = SourceMap::of(self.source, scalar);
        let mut changes: Vec<Edit> = Vec::new();
        let mut in_source = Vec::with_capacity(found.len());
        for mut occurrence in found {
            let at = source_map
                .as_ref()
                .and_then(|source_map| source_map.offset(occurrence.at));
            occurrence.at = at.unwrap_or(scalar.span.start);
            let edits = std::mem::take(&mut occurrence.edits);
            let mapped: Result<Vec<Edit>, &str> = edits
                .iter()
                .map(|edit| match (&source_map, keep) {
                    (_, Some(why)) => Err(why),
                    (None, None) => Err(UNMAPPED),
                    (Some(source_map), None) => source_map.edit(self.source, edit),
                })
                .collect();
            match mapped {
                Ok(mapped) => {
                    occurrence.edits = mapped;
                    changes.extend(edits);
                }
                Err(why) => occurrence.leave(why),
            }
            if let Some(why) = keep.filter(|_| occurrence.is_change()) {
                occurrence.leave(why);
            }
            in_source.push(occurrence);
        }
        self.change(scalar, &changes, &mut in_source);
        self.collected.found.extend(in_source);
    }

    /// Adds `occurrence`, whose change is a new text for each scalar of `parts`. An error says why
    /// that is impossible.
    pub(crate) fn add_in_parts(
        &mut self,
        mut occurrence: Occurrence,
        parts: Vec<(&'s Scalar<'s>, String)>,
    ) -> Result<(), &'static str> {
        let mut changed = Vec::new();
        for (scalar, bytes) in parts {
            let source_map = SourceMap::of(self.source, scalar).ok_or(UNMAPPED)?;
            let start = scalar.value.len() - scalar.value.trim_start().len();
            let change = Edit {
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

    /// Notes the new value of `scalar`, and quotes it where it needs that.
    fn change(&mut self, scalar: &Scalar<'_>, changes: &[Edit], found: &mut [Occurrence]) {
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

    /// The new value of `scalar`, and one edit in place of all `changes` where it needs quotes that
    /// it lacks.
    fn quoted(
        &self,
        scalar: &Scalar<'_>,
        changes: &[Edit],
    ) -> Result<(String, Option<Edit>), &'static str> {
        let mut in_order: Vec<&Edit> = changes.iter().collect();
        in_order.sort_by_key(|edit| edit.span.start);
        let new = edit::apply(&in_order, &scalar.value, 0..scalar.value.len());
        if scalar.style != ScalarStyle::Plain || stays_plain(&scalar.value, &new) {
            return Ok((new, None));
        }
        if self.source.get(scalar.span.clone()) != Some(&*scalar.value) || new.contains(['"', '\\'])
        {
            return Err("with it, the value would need quotes");
        }
        let bytes = format!("\"{new}\"");
        Ok((
            new,
            Some(Edit {
                span: scalar.span.clone(),
                bytes,
            }),
        ))
    }
}
