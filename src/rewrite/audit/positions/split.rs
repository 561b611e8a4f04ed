//! References in parts: `registry`, `repository`, `tag` and `digest` as keys of one mapping.

use super::claim::Claim;
use super::enclosing::Members;
use super::position::Position;
use super::reader::Reader;
use crate::model::names_host;
use crate::rewrite::reference_parts::Part;
use crate::rewrite::split_reference::SplitReference;

pub(super) struct Split;

impl Position for Split {
    fn references<'d>(
        &self,
        reader: &mut Reader<'d, '_>,
        members: &Members<'d>,
        taken: &[usize],
    ) -> Vec<usize> {
        let Members { entries, around } = members;
        let mut done = Vec::new();
        for (group, reference) in SplitReference::all(entries, around.key, reader.document) {
            if group.values().any(|at| taken.contains(at)) {
                continue;
            }
            let in_image =
                |key: Option<&str>| key.is_some_and(|key| key.to_ascii_lowercase().contains("image"));
            let key = group.get(&Part::Repository).and_then(|at| entries[*at].0.scalar());
            let parts = [Part::Registry, Part::Tag, Part::Digest].iter().any(|part| group.contains_key(part));
            let sure = parts || in_image(around.key) || in_image(key.map(|key| &*key.value));
            if !(sure || names_host(&reference.whole)) {
                continue;
            }
            if let Some(location) = reader.location_of(reference.repository.0) {
                let key = key.map(|key| key.value.to_string());
                reader.path.extend(key.clone());
                reader.add(location, Claim { written: &reference.whole, sure, in_container: false });
                reader.path.truncate(reader.path.len() - usize::from(key.is_some()));
            }
            done.extend(group.values());
        }
        done
    }
}
