//! The `images` of a kustomization. The `name` of each must match the image in the bases, and is
//! not itself a reference to change.

use crate::index::ReferenceLookup;
use crate::inventory::Inventory;
use crate::occurrence::{ReferenceMeaning, ReferenceRole};
use crate::walk::{
    ImageClaim, MappingContext, NodeContext, ReferenceCollector, ReferenceRule, start_of,
};
use crate::yaml::{position_of, text_of, value_of};

pub(super) struct KustomizeRule;

impl ReferenceRule for KustomizeRule {
    fn references<'s>(
        &self,
        collector: &mut ReferenceCollector<'_, 's>,
        members: &MappingContext<'s>,
        _taken: &[usize],
    ) -> Vec<usize> {
        let MappingContext {
            entries, around, ..
        } = members;
        if !is_in_images(around) {
            return Vec::new();
        }
        let has = |name: &str| value_of(entries, name).is_some();
        let Some(at) = position_of(entries, "name") else {
            return Vec::new();
        };
        // without any of these keys, this is another list named `images`
        if !(has("newName") || has("newTag") || has("digest")) {
            return Vec::new();
        }
        let name = &entries[at].value;
        let text = name
            .scalar()
            .map(|scalar| &*scalar.value)
            .unwrap_or_default();
        let lookup = collector
            .settings
            .index
            .lookup(text, ReferenceRole::Repository, false);
        if !has("newName")
            && !matches!(
                lookup,
                ReferenceLookup::Unknown | ReferenceLookup::Settled(_)
            )
        {
            let why = "kustomize finds images of the bases by this name; \
                       rewrite the output of `kustomize build`";
            collector.add(
                name,
                text,
                ReferenceRole::Repository,
                ReferenceMeaning::left(why),
            );
        }
        vec![at]
    }

    fn candidates<'s>(
        &self,
        collector: &mut ReferenceCollector<'_, 's>,
        _inventory: &Inventory<'_>,
        members: &MappingContext<'s>,
        _taken: &[usize],
    ) -> Vec<usize> {
        let MappingContext {
            entries, around, ..
        } = members;
        let part = |key: &str| text_of(entries, key);
        let name = part("name");
        let new_name = part("newName");
        if !is_in_images(around)
            || name.is_none()
            || [new_name, part("newTag"), part("digest")] == [None; 3]
        {
            return Vec::new();
        }
        let mut written = new_name.or(name).unwrap_or_default().to_owned();
        written.extend(part("newTag").map(|tag| format!(":{tag}")));
        written.extend(part("digest").map(|digest| format!("@{digest}")));
        if let Some(at) = entries.first().and_then(|entry| start_of(&entry.key)) {
            collector.add_claim(
                at,
                ImageClaim {
                    written: &written,
                    sure: true,
                    in_container: false,
                },
            );
        }
        (0..entries.len()).collect()
    }
}

/// Whether a node is an item of the list `images`.
fn is_in_images(around: &NodeContext<'_>) -> bool {
    around.above == Some("images") && around.key.is_none()
}
