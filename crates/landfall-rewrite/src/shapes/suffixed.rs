//! Repositories to which a suffix is appended, with one digest for each suffix: `genericDigest`
//! next to `repository` is the digest of `<repository>-generic` (Cilium's operator).

use crate::edit::SpanEdit;
use crate::index::{ReferenceIndex, ReferenceLookup};
use crate::occurrence::{Occurrence, ReferenceMeaning};
use crate::role::ReferenceRole;
use crate::suffixed::{SuffixedImage, SuffixedReference};
use crate::walk::{MappingContext, OccurrenceCollector, ReferenceShape};
use landfall_model::Destination;

pub(super) struct SuffixedShape;

impl ReferenceShape for SuffixedShape {
    fn references<'s>(
        &self,
        collector: &mut OccurrenceCollector<'_, 's>,
        members: &MappingContext<'s>,
        taken: &[usize],
    ) -> Vec<usize> {
        let Some(found) = SuffixedReference::of(members.entries, collector.document) else {
            return Vec::new();
        };
        let Some(scalar) = members.entries[found.repository.0].value.scalar() else {
            return Vec::new();
        };
        if found.parts.iter().any(|at| taken.binary_search(at).is_ok()) {
            return Vec::new();
        }
        let Some(meaning) = meaning(&found, collector.settings.index) else {
            return Vec::new();
        };
        let start = scalar.value.len() - scalar.value.trim_start().len();
        let edit = match &meaning {
            ReferenceMeaning::Known { to, .. } => Some(SpanEdit {
                span: start..start + found.repository.1.len(),
                bytes: to.clone(),
            }),
            _ => None,
        };
        let mut occurrence = Occurrence::new(
            start,
            found.repository.1,
            ReferenceRole::Repository,
            meaning,
        );
        occurrence.edits.extend(edit);
        if occurrence.is_change() && collector.document.is_shared(scalar) {
            occurrence.leave("other values share it by an anchor");
        }
        collector.add_in_value(scalar, vec![occurrence], members.around.keep);
        found.parts
    }
}

/// The meaning of the repository: the common destination of its locked images, without the suffix.
/// `None` if the lock has none of them.
fn meaning(found: &SuffixedReference<'_>, index: &ReferenceIndex) -> Option<ReferenceMeaning> {
    let mut bases: Vec<(String, String)> = Vec::new();
    let mut settled = None;
    for SuffixedImage { suffix, whole } in &found.references {
        match index.lookup(whole, ReferenceRole::Repository, false) {
            ReferenceLookup::Unknown => {}
            ReferenceLookup::Settled(item) => {
                settled = settled.or(Some(ReferenceMeaning::Settled { item }))
            }
            ReferenceLookup::Left(why) => return Some(ReferenceMeaning::Left { why }),
            ReferenceLookup::Known(replacement) => {
                let to = replacement.to.as_ref().map(Destination::to_string)?;
                let base = to.strip_suffix(suffix.as_str()).map(str::to_owned);
                let Some(base) = base else {
                    let why = format!(
                        "the destination of {} is {to}, which does not end in {suffix}",
                        replacement.item
                    );
                    return Some(ReferenceMeaning::Left { why });
                };
                bases.push((base, replacement.item));
            }
        }
    }
    let Some((to, item)) = bases.first().cloned() else {
        return settled;
    };
    if bases.iter().any(|(base, _)| *base != to) {
        let why = "its images have different destinations";
        return Some(ReferenceMeaning::left(why));
    }
    Some(ReferenceMeaning::Known {
        item,
        to,
        reaches: Vec::new(),
    })
}
