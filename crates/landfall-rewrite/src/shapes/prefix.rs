//! Prefixes that several references share: kubeadm's `imageRepository`, `global.imageRegistry`,
//! Istio's `hub`, `overwriteRegistry`.

use crate::edit::Edit;
use crate::index::{Lookup, ReferenceIndex, Replacement};
use crate::occurrence::{Meaning, Occurrence};
use crate::reference_parts::Part;
use crate::role::Role;
use crate::split_reference::SplitReference;
use crate::walk::{Collector, Members, Shape};
use crate::yaml::{Document, Entry, Scalar, value};
use landfall_model::Destination;

/// What kubeadm appends to `imageRepository`, without CoreDNS, which is special (kubernetes,
/// cmd/kubeadm/app/images).
const KUBEADM: [&str; 6] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "pause",
    "etcd",
];

pub(super) struct Prefix;

impl Shape for Prefix {
    fn references<'s>(
        &self,
        collector: &mut Collector<'_, 's>,
        members: &Members<'s>,
        taken: &[usize],
    ) -> Vec<usize> {
        let mut found = in_two_parts(collector, members);
        for (at, (key, node)) in members
            .entries
            .iter()
            .enumerate()
            .filter(|(at, _)| !taken.contains(at))
        {
            let (Some(key), Some(scalar)) = (key.scalar(), node.scalar()) else {
                continue;
            };
            let Some(text) = scalar.text().map(str::trim) else {
                continue;
            };
            let is_part = || is_part(at, members, collector.document);
            let lookup = lookup(collector.settings.index, members, &key.value, text, is_part);
            if let Some(occurrence) = occurrence(scalar, text, lookup) {
                add(collector, scalar, occurrence);
                found.push(at);
            }
        }
        found
    }
}

/// `defaultImageRegistry` and `defaultImageRepository`: a prefix in two parts (Strimzi). Returns
/// where they stand, if it is known.
fn in_two_parts<'s>(collector: &mut Collector<'_, 's>, members: &Members<'s>) -> Vec<usize> {
    let find = |name: &str| {
        let is_it = |(key, _): &Entry<'_>| key.scalar().is_some_and(|key| key.value == name);
        let at = members.entries.iter().position(is_it)?;
        Some((at, members.entries[at].1.scalar()?)).filter(|(_, scalar)| scalar.text().is_some())
    };
    let (Some((first, registry)), Some((second, repository))) =
        (find("defaultImageRegistry"), find("defaultImageRepository"))
    else {
        return Vec::new();
    };
    let text = format!("{}/{}", registry.value.trim(), repository.value.trim());
    let occurrence = |meaning| Occurrence::new(registry.span.start, &*text, Role::Prefix, meaning);
    let meaning = match collector.settings.index.lookup_prefix(&text, &[]) {
        Lookup::Unknown => return Vec::new(),
        Lookup::Settled(item) => Meaning::Settled { item },
        Lookup::Left(why) => Meaning::Left { why },
        Lookup::Known(_)
            if [registry, repository]
                .iter()
                .any(|part| collector.document.is_shared(part)) =>
        {
            Meaning::left("it is shared with other places by an anchor")
        }
        Lookup::Known(replacement) => match replacement
            .to
            .clone()
            .filter(|to| !to.repository.is_empty())
        {
            Some(to) => {
                let meaning = Meaning::Known {
                    item: replacement.item,
                    to: to.to_string(),
                    reaches: vec![],
                };
                let parts = vec![(registry, to.registry), (repository, to.repository)];
                match collector.add_in_parts(occurrence(meaning), parts) {
                    Ok(()) => return vec![first, second],
                    Err(why) => Meaning::left(why),
                }
            }
            None => Meaning::left(
                "it goes to a registry without a path, which cannot be written in two parts",
            ),
        },
    };
    collector.add(&members.entries[first].1, &text, Role::Prefix, meaning);
    vec![first, second]
}

/// What the prefix `text` under `key` means; unknown where the key is not that of a prefix, and
/// where `is_part` says that it belongs to one reference alone.
fn lookup(
    index: &ReferenceIndex,
    members: &Members<'_>,
    key: &str,
    text: &str,
    is_part: impl Fn() -> bool,
) -> Lookup {
    let Members {
        entries, around, ..
    } = members;
    match key {
        // kubeadm's DNS and etcd: `<imageRepository>/coredns:<imageTag>`
        "imageRepository" if matches!(around.key, Some("dns" | "local")) => {
            let name = if around.key == Some("dns") {
                "coredns"
            } else {
                "etcd"
            };
            component(index, text, name, value(entries, "imageTag"))
        }
        "imageRepository" if value(entries, "imageTag").is_none() => cluster(index, text),
        "imageRegistry" | "overwriteRegistry" | "hub" | "image-registry" | "imageHub"
            if !has_repository(entries) && !is_part() =>
        {
            index.lookup_prefix(text, &[])
        }
        _ => Lookup::Unknown,
    }
}

/// The occurrence of the prefix `text`, the value of `scalar`; `None` where it is unknown.
fn occurrence(scalar: &Scalar<'_>, text: &str, lookup: Lookup) -> Option<Occurrence> {
    let occurrence = |meaning| Occurrence::new(0, text, Role::Prefix, meaning);
    Some(match lookup {
        Lookup::Unknown => return None,
        Lookup::Settled(item) => occurrence(Meaning::Settled { item }),
        Lookup::Left(why) => occurrence(Meaning::Left { why }),
        Lookup::Known(replacement) => {
            let slash = if text.ends_with('/') { "/" } else { "" };
            let to = format!("{}{slash}", base(&replacement));
            let start = scalar.value.len() - scalar.value.trim_start().len();
            let edits = vec![Edit {
                span: start..start + text.len(),
                bytes: to.clone(),
            }];
            let meaning = Meaning::Known {
                item: replacement.item,
                to,
                reaches: vec![],
            };
            Occurrence {
                edits,
                ..occurrence(meaning)
            }
        }
    })
}

fn add<'s>(collector: &mut Collector<'_, 's>, scalar: &'s Scalar<'s>, mut occurrence: Occurrence) {
    if collector.document.is_shared(scalar) && occurrence.is_change() {
        occurrence.leave("it is shared with other places by an anchor");
    }
    collector.add_in_value(scalar, vec![occurrence], None);
}

/// Whether the entry `at` is the registry of a reference in parts.
fn is_part<'s>(at: usize, members: &Members<'s>, document: &'s Document<'s>) -> bool {
    let Members {
        entries, around, ..
    } = members;
    let references = SplitReference::all(entries, around.key, document);
    references
        .iter()
        .any(|(group, _)| group.get(&Part::Registry) == Some(&at))
}

/// Whether a repository stands beside it, so that the two are a reference in parts.
fn has_repository(entries: &[Entry<'_>]) -> bool {
    let mut keys = entries
        .iter()
        .filter_map(|(key, _)| key.scalar())
        .map(|key| key.value.to_ascii_lowercase());
    keys.any(|key| key.ends_with("repository") || key.ends_with("repo"))
}

/// The destination of `replacement`, without a slash at its end.
fn base(replacement: &Replacement) -> String {
    let to = replacement
        .to
        .as_ref()
        .map(Destination::to_string)
        .unwrap_or_default();
    to.trim_end_matches('/').to_owned()
}

/// The registry of a whole cluster. kubeadm asks for `<registry>/coredns` where the registry is not
/// its own.
fn cluster(index: &ReferenceIndex, text: &str) -> Lookup {
    let lookup = match index.lookup_prefix(text, &KUBEADM) {
        Lookup::Unknown => index.lookup_prefix(text, &[]),
        lookup => lookup,
    };
    let Lookup::Known(replacement) = &lookup else {
        return lookup;
    };
    let to = format!("{}/coredns", base(replacement));
    let source = format!("{}/coredns/coredns", replacement.item);
    match index.goes_to(&source, &to) {
        Some(false) => Lookup::Left(format!(
            "kubeadm will ask for {to}, and {source} does not go there; add `{source}: [coredns/coredns, coredns]` \
             to registry.paths"
        )),
        _ => lookup,
    }
}

/// The repository of one component, whose last path component is `name`.
fn component(index: &ReferenceIndex, text: &str, name: &str, tag: Option<&str>) -> Lookup {
    let whole = match tag {
        Some(tag) if !tag.is_empty() => format!("{}/{name}:{tag}", text.trim_end_matches('/')),
        _ => format!("{}/{name}", text.trim_end_matches('/')),
    };
    let mut replacement = match index.lookup(&whole, Role::Repository, false) {
        Lookup::Known(replacement) => replacement,
        lookup => return lookup,
    };
    let to = replacement
        .to
        .as_ref()
        .map(Destination::to_string)
        .unwrap_or_default();
    let Some(base) = to
        .strip_suffix(name)
        .and_then(|base| base.strip_suffix('/'))
    else {
        return Lookup::Left(format!(
            "{} goes to {to}, which does not end in /{name}",
            replacement.item
        ));
    };
    let (registry, repository) = base.split_once('/').unwrap_or((base, ""));
    replacement.to = Some(Destination {
        registry: registry.into(),
        repository: repository.into(),
    });
    Lookup::Known(replacement)
}
