//! Git repositories that documents of Argo CD, Flux and Kustomize use.

use crate::git_source::{GitSource, GitUse};
use crate::inventory::Inventory;
use crate::walk::{MappingContext, NodeStep, ReferenceCollector, ReferenceRule, start_of};
use crate::yaml::{YamlEntry, YamlMapping, YamlNode, YamlSequence, text_of, value_of};
use std::path::Path;

/// The lists of a kustomization whose items may be in git.
const KUSTOMIZE_LISTS: [&str; 3] = ["resources", "bases", "components"];
/// The keys with the version of a repository in documents of Argo CD.
const ARGO_REVISIONS: [&str; 2] = ["targetRevision", "revision"];
/// The keys of `spec.ref` of Flux's `GitRepository`. The first one that is present counts.
const FLUX_REVISIONS: [&str; 5] = ["commit", "name", "semver", "tag", "branch"];

pub(super) struct GitSourceRule;

impl ReferenceRule for GitSourceRule {
    fn candidates<'s>(
        &self,
        collector: &mut ReferenceCollector<'_, 's>,
        _inventory: &Inventory<'_>,
        members: &MappingContext<'s>,
        _taken: &[usize],
    ) -> Vec<usize> {
        // documents within texts are objects of another cluster or examples
        let Some(file) = collector.file else {
            return Vec::new();
        };
        let entries = members.entries;
        match collector.path[..] {
            [] if is_kustomization(file, entries) => add_items(collector, entries),
            [NodeStep::Key("spec")] if is_flux(collector) => add_repository(
                collector,
                entries,
                "url",
                match value_of(entries, "ref") {
                    Some(YamlNode::Mapping(reference)) => {
                        first_text(&reference.entries, &FLUX_REVISIONS)
                    }
                    // Flux's default
                    _ => Some("master"),
                },
            ),
            _ => {}
        }
        // with `chart`, `repoURL` is a chart repository
        if text_of(entries, "repoURL").is_some() && value_of(entries, "chart").is_none() {
            let revision = first_text(entries, &ARGO_REVISIONS);
            add_repository(collector, entries, "repoURL", revision);
        }
        Vec::new()
    }
}

/// Whether the root of a document of `file` has the entries of a kustomization.
fn is_kustomization(file: &Path, entries: &[YamlEntry<'_>]) -> bool {
    let version = text_of(entries, "apiVersion").unwrap_or_default();
    match text_of(entries, "kind") {
        Some("Kustomization" | "Component") => version.starts_with("kustomize.config.k8s.io/"),
        None => {
            let stem = file.file_stem().unwrap_or_default();
            stem.eq_ignore_ascii_case("kustomization")
        }
        Some(_) => false,
    }
}

/// Whether the document is a `GitRepository` of Flux.
fn is_flux(collector: &ReferenceCollector<'_, '_>) -> bool {
    let Some(YamlNode::Mapping(YamlMapping { entries, .. })) = &collector.document.root else {
        return false;
    };
    text_of(entries, "kind") == Some("GitRepository")
}

fn first_text<'s>(entries: &'s [YamlEntry<'s>], keys: &[&str]) -> Option<&'s str> {
    keys.iter().find_map(|key| text_of(entries, key))
}

/// Adds the repositories that the items of a kustomization name.
fn add_items(collector: &mut ReferenceCollector<'_, '_>, entries: &[YamlEntry<'_>]) {
    for list in KUSTOMIZE_LISTS {
        let Some(YamlNode::Sequence(YamlSequence { items, .. })) = value_of(entries, list) else {
            continue;
        };
        for (at, node) in items.iter().enumerate() {
            if let Some(text) = node.scalar().and_then(|scalar| scalar.text())
                && let Some(source) = GitSource::parse(text.trim())
                && let Some(start) = start_of(node)
            {
                let path = vec![list.to_owned(), NodeStep::Item(at).to_string()];
                collector.add_git_use(GitUse::of_source(start, path, text.trim(), &source));
            }
        }
    }
}

/// Adds the repository that the value of `key` names, with its `revision`.
fn add_repository(
    collector: &mut ReferenceCollector<'_, '_>,
    entries: &[YamlEntry<'_>],
    key: &'static str,
    revision: Option<&str>,
) {
    let Some(node) = value_of(entries, key) else {
        return;
    };
    let Some(written) = text_of(entries, key).map(str::trim) else {
        return;
    };
    let (Some(source), Some(at)) = (GitSource::of_repository(written), start_of(node)) else {
        return;
    };
    let mut path = collector.path_texts();
    path.push(key.to_owned());
    collector.add_git_use(GitUse {
        at,
        path,
        written: written.to_owned(),
        url: source.url,
        revision: revision.map(|text| text.trim().to_owned()),
        form: source.form,
        is_source: false,
    });
}
