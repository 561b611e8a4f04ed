//! The `images` transformer of a kustomization: what replaces an image of the bases.

use super::claim::Claim;
use super::enclosing::Members;
use super::position::Position;
use super::reader::{Reader, start_of};
use crate::yaml::text;

pub(super) struct Kustomize;

impl Position for Kustomize {
    fn references<'d>(
        &self,
        reader: &mut Reader<'d, '_>,
        members: &Members<'d>,
        _taken: &[usize],
    ) -> Vec<usize> {
        let Members { entries, around } = members;
        let in_images =
            matches!(&reader.path[..], [.., list, _] if list == "images") && around.key.is_none();
        let part = |key: &str| text(entries, key);
        let (name, new_name) = (part("name"), part("newName"));
        if !in_images || name.is_none() || [new_name, part("newTag"), part("digest")] == [None; 3] {
            return Vec::new();
        }
        let mut written = new_name.or(name).unwrap_or_default().to_owned();
        written.extend(part("newTag").map(|tag| format!(":{tag}")));
        written.extend(part("digest").map(|digest| format!("@{digest}")));
        if let Some(at) = entries.first().and_then(|(key, _)| start_of(key)) {
            reader.add(
                at,
                Claim {
                    written: &written,
                    sure: true,
                    in_container: false,
                },
            );
        }
        (0..entries.len()).collect()
    }
}
