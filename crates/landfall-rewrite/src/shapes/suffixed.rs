//! Repositories that get a suffix, each with a digest of its own: `repository` beside
//! `genericDigest` is that of `<repository>-generic` (Cilium's operator).

use crate::edit::Edit;
use crate::index::{Lookup, ReferenceIndex};
use crate::occurrence::{Meaning, Occurrence};
use crate::role::Role;
use crate::suffixed::{Suffixed, SuffixedReference};
use crate::walk::{Collector, Members, Shape};
use landfall_model::Destination;

pub(super) struct SuffixedRepository;

impl Shape for SuffixedRepository {
    fn references<'s>(
        &self,
        collector: &mut Collector<'_, 's>,
        members: &Members<'s>,
        taken: &[usize],
    ) -> Vec<usize> {
        let Some(found) = SuffixedReference::of(members.entries, collector.document) else {
            return Vec::new();
        };
        let Some(scalar) = members.entries[found.repository.0].1.scalar() else {
            return Vec::new();
        };
        if found.parts.iter().any(|at| taken.contains(at)) {
            return Vec::new();
        }
        let Some(meaning) = meaning(&found, collector.settings.index) else {
            return Vec::new();
        };
        let start = scalar.value.len() - scalar.value.trim_start().len();
        let mut occurrence = Occurrence::new(start, found.repository.1, Role::Repository, meaning);
        match &occurrence.meaning {
            Meaning::Known { .. } if collector.document.is_shared(scalar) => {
                occurrence.leave("it is shared with other places by an anchor");
            }
            Meaning::Known { to, .. } => {
                let span = start..start + found.repository.1.len();
                occurrence.edits.push(Edit {
                    span,
                    bytes: to.clone(),
                });
            }
            _ => {}
        }
        collector.add_in_value(scalar, vec![occurrence], members.around.keep);
        found.parts
    }
}

/// What the repository means: where all that is locked of it goes to, without the suffix. `None`
/// where nothing is.
fn meaning(found: &SuffixedReference<'_>, index: &ReferenceIndex) -> Option<Meaning> {
    let mut bases: Vec<(String, String)> = Vec::new();
    let mut settled = None;
    for Suffixed { suffix, whole } in &found.references {
        match index.lookup(whole, Role::Repository, false) {
            Lookup::Unknown => {}
            Lookup::Settled(item) => settled = settled.or(Some(Meaning::Settled { item })),
            Lookup::Left(why) => return Some(Meaning::Left { why }),
            Lookup::Known(replacement) => {
                let to = replacement.to.as_ref().map(Destination::to_string)?;
                let base = to.strip_suffix(suffix.as_str()).map(str::to_owned);
                let Some(base) = base else {
                    let why = format!(
                        "{} goes to {to}, which does not end in {suffix}",
                        replacement.item
                    );
                    return Some(Meaning::Left { why });
                };
                bases.push((base, replacement.item));
            }
        }
    }
    let Some((to, item)) = bases.first().cloned() else {
        return settled;
    };
    match bases.iter().all(|(base, _)| *base == to) {
        true => Some(Meaning::Known {
            item,
            to,
            reaches: Vec::new(),
        }),
        false => Some(Meaning::left("its images go to different places")),
    }
}
