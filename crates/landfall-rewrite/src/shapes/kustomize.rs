//! The `images` of a kustomization. The `name` of each must match the image in the bases, and is
//! not itself a reference to change.

use crate::index::ReferenceLookup;
use crate::occurrence::ReferenceMeaning;
use crate::role::ReferenceRole;
use crate::walk::{MappingContext, OccurrenceCollector, ReferenceShape};
use crate::yaml::{position_of, value_of};

pub(super) struct KustomizeShape;

impl ReferenceShape for KustomizeShape {
    fn references<'s>(
        &self,
        collector: &mut OccurrenceCollector<'_, 's>,
        members: &MappingContext<'s>,
        _taken: &[usize],
    ) -> Vec<usize> {
        let MappingContext {
            entries, around, ..
        } = members;
        // applies only to items of the list `images`
        if around.above != Some("images") || around.key.is_some() {
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
}
