//! The `images` transformer of a kustomization: `name` is what the bases call the image, and no
//! reference.

use crate::index::Lookup;
use crate::occurrence::Meaning;
use crate::role::Role;
use crate::walk::{Collector, Members, Shape};
use crate::yaml::member;

pub(super) struct Kustomize;

impl Shape for Kustomize {
    fn references<'s>(
        &self,
        collector: &mut Collector<'_, 's>,
        members: &Members<'s>,
        _taken: &[usize],
    ) -> Vec<usize> {
        let Members {
            entries, around, ..
        } = members;
        if around.above != Some("images") || around.key.is_some() {
            return Vec::new();
        }
        let has = |name: &str| member(entries, name).is_some();
        let Some(at) = entries
            .iter()
            .position(|(key, _)| key.scalar().is_some_and(|key| key.value == "name"))
        else {
            return Vec::new();
        };
        if !(has("newName") || has("newTag") || has("digest")) {
            return Vec::new();
        }
        let name = &entries[at].1;
        let text = name
            .scalar()
            .map(|scalar| &*scalar.value)
            .unwrap_or_default();
        let lookup = collector
            .settings
            .index
            .lookup(text, Role::Repository, false);
        if !has("newName") && !matches!(lookup, Lookup::Unknown | Lookup::Settled(_)) {
            let why = "kustomize finds images of the bases by this name; rewrite what `kustomize build` prints";
            collector.add(name, text, Role::Repository, Meaning::left(why));
        }
        vec![at]
    }
}
