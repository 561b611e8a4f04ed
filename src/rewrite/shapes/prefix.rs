//! Beginnings that several references have in common: kubeadm's `imageRepository`, `global.imageRegistry`,
//! Istio's `hub`, `overwriteRegistry`.

use crate::model::Destination;
use crate::rewrite::findings::{Finding, Meaning, Splice};
use crate::rewrite::known::{Position, Verdict};
use crate::rewrite::walk::{Context, Entries, Walk, value};
use crate::rewrite::yaml::Scalar;

/// What kubeadm puts after `imageRepository`; CoreDNS is told apart (kubernetes, cmd/kubeadm/app/images).
const KUBEADM: [&str; 6] =
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "pause", "etcd"];

/// Deals with the prefixes of a mapping; gives the places of the entries that are prefixes.
pub(in crate::rewrite) fn prefixes<'s>(
    walk: &mut Walk<'_, 's>,
    entries: &'s Entries<'s>,
    context: Context<'s>,
    taken: &[usize],
) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, (key, node)) in entries.iter().enumerate().filter(|(at, _)| !taken.contains(at)) {
        let (Some(key), Some(scalar)) = (key.scalar(), node.scalar()) else { continue };
        let Some(text) = scalar.text().map(str::trim) else { continue };
        let verdict = match &*key.value {
            // kubeadm's DNS and etcd: `<imageRepository>/coredns:<imageTag>`
            "imageRepository" if matches!(context.key, Some("dns" | "local")) => {
                let name = if context.key == Some("dns") { "coredns" } else { "etcd" };
                component(walk, text, name, value(entries, "imageTag"))
            }
            "imageRepository" if value(entries, "imageTag").is_none() => cluster(walk, text),
            "imageRegistry" | "overwriteRegistry" | "hub" | "image-registry" | "imageHub"
                if !has_repository(entries) =>
            {
                walk.engine.known.lookup_prefix(text, &[])
            }
            _ => continue,
        };
        let finding = |meaning| Finding::new(0, text, Position::Prefix, meaning);
        let finding = match verdict {
            Verdict::Unknown => continue,
            Verdict::Settled(item) => finding(Meaning::Settled { item }),
            Verdict::Left(why) => finding(Meaning::Left { why }),
            Verdict::Known(meant) => {
                let place = meant.to.as_ref().map(Destination::to_string).unwrap_or_default();
                let slash = if text.ends_with('/') { "/" } else { "" };
                let to = format!("{}{slash}", place.trim_end_matches('/'));
                let start = scalar.value.len() - scalar.value.trim_start().len();
                let splices = vec![Splice { span: start..start + text.len(), bytes: to.clone() }];
                let meaning = Meaning::Known { item: meant.item, to, reaches: vec![] };
                Finding { splices, ..finding(meaning) }
            }
        };
        lift(walk, scalar, finding);
        found.push(at);
    }
    found
}

/// Whether a repository stands beside it, so that the two are a reference in parts.
fn has_repository(entries: &Entries<'_>) -> bool {
    let keys = entries.iter().filter_map(|(key, _)| key.scalar()).map(|key| key.value.to_ascii_lowercase());
    keys.into_iter().any(|key| key.ends_with("repository") || key.ends_with("repo"))
}

fn lift<'s>(walk: &mut Walk<'_, 's>, scalar: &'s Scalar<'s>, mut finding: Finding) {
    if walk.document.is_shared(scalar) && finding.is_change() {
        finding.leave("it is shared with other places by an anchor");
    }
    walk.lift(scalar, vec![finding], None);
}

/// The registry of a whole cluster. kubeadm asks for `<registry>/coredns` where the registry is not its own.
fn cluster(walk: &Walk<'_, '_>, text: &str) -> Verdict {
    let known = walk.engine.known;
    let verdict = match known.lookup_prefix(text, &KUBEADM) {
        Verdict::Unknown => known.lookup_prefix(text, &[]),
        verdict => verdict,
    };
    let Verdict::Known(meant) = &verdict else { return verdict };
    let place = meant.to.as_ref().map(Destination::to_string).unwrap_or_default();
    let place = format!("{}/coredns", place.trim_end_matches('/'));
    let source = format!("{}/coredns/coredns", meant.item);
    match known.goes_to(&source, &place) {
        Some(false) => Verdict::Left(format!(
            "kubeadm will ask for {place}, and {source} does not go there; add `{source}: [coredns/coredns, coredns]` \
             to registry.paths"
        )),
        _ => verdict,
    }
}

/// The repository of one component, of which the last part of the name is fixed.
fn component(walk: &Walk<'_, '_>, text: &str, name: &str, tag: Option<&str>) -> Verdict {
    let whole = match tag {
        Some(tag) if !tag.is_empty() => format!("{}/{name}:{tag}", text.trim_end_matches('/')),
        _ => format!("{}/{name}", text.trim_end_matches('/')),
    };
    match walk.engine.known.lookup(&whole, Position::Repository, false) {
        Verdict::Known(mut meant) => {
            let place = meant.to.as_ref().map(Destination::to_string).unwrap_or_default();
            let Some(base) = place.strip_suffix(name).and_then(|base| base.strip_suffix('/')) else {
                return Verdict::Left(format!(
                    "{} goes to {place}, which does not end in /{name}",
                    meant.item
                ));
            };
            let (registry, repository) = base.split_once('/').unwrap_or((base, ""));
            meant.to = Some(Destination { registry: registry.into(), repository: repository.into() });
            Verdict::Known(meant)
        }
        verdict => verdict,
    }
}
