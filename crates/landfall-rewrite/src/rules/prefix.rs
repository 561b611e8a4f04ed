//! Prefixes that several references share: kubeadm's `imageRepository`, `global.imageRegistry`,
//! Istio's `hub`, `overwriteRegistry`, and a `registry` or `repository` that completes names in
//! other mappings of the document (Datadog). Also the `images` of a kustomization.

use crate::index::{ReferenceIndex, ReferenceLookup, ReferenceReplacement, destination, pin};
use crate::inventory::Inventory;
use crate::occurrence::{Occurrence, ReferenceMeaning, ReferenceRole};
use crate::split_reference::{PartKind, SplitReference};
use crate::walk::{
    DistantParts, ImageClaim, MappingContext, NodeContext, NodeStep, ReferenceCollector, start_of,
};
use crate::yaml::{
    YamlDocument, YamlEntry, YamlNode, YamlScalar, entries_of, position_of, scalar_of, text_entry,
    text_of, value_of,
};
use landfall_model::Destination;
use std::collections::BTreeSet;

/// The names that kubeadm appends to `imageRepository` (cmd/kubeadm/app/images/images.go in
/// Kubernetes). CoreDNS is not among them, because its path depends on the registry.
const KUBEADM: [&str; 6] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "pause",
    "etcd",
];

/// The prefixes in a mapping.
pub(super) fn prefix_references<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    // Strimzi
    let keys = ["defaultImageRegistry", "defaultImageRepository"];
    let mut found = two_parts(collector, members, keys);
    found.extend(calico_registry(collector, members));
    let own = found.clone();
    let mut neighbours = None;
    for (at, YamlEntry { key, value: node }) in members.entries.iter().enumerate() {
        let (Some(key), Some(scalar)) = (key.scalar(), node.scalar()) else {
            continue;
        };
        let needs_names = NEEDS_NAMES.contains(&&*key.value);
        let is_taken = members.is_taken(at) || own.contains(&at);
        if !(needs_names || is_prefix_key(&key.value)) || is_taken {
            continue;
        }
        let Some(text) = scalar.text().map(str::trim) else {
            continue;
        };
        let neighbours =
            neighbours.get_or_insert_with(|| PrefixNeighbours::of(members, collector.document));
        let index = collector.settings.index;
        let is_part = || neighbours.parts.contains(&at) || neighbours.is_account;
        let lookup = if needs_names && (is_part() || distant_parts(collector).names.is_empty()) {
            // without names, every locked image below the prefix would count
            ReferenceLookup::Unknown
        } else if needs_names {
            index.lookup_prefix(text, &distant_parts(collector).names)
        } else {
            neighbours.lookup(index, at, &key.value, text)
        };
        if let Some(occurrence) = occurrence(scalar, text, lookup) {
            add(collector, scalar, occurrence);
            found.push(at);
        }
    }
    found
}

/// The folders that the operator of Calico appends to its registry, unless `imagePath` is set.
const CALICO_FOLDERS: [&str; 2] = ["calico", "tigera"];

/// Collects the `registry` of Calico's operator: of an `Installation`, or of the `installation` in
/// the values of its chart. The operator appends `imagePath`, or a folder of its own. Returns the
/// positions of the entries, unless the prefix is unknown.
fn calico_registry<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    let is_installation = match members.around.key {
        Some("installation") => true,
        Some("spec") => collector.path.len() == 1 && is_installation(collector),
        _ => false,
    };
    let registry = text_entry(members.entries, "registry").filter(|_| is_installation);
    let Some((at, registry)) = registry else {
        return Vec::new();
    };
    if text_entry(members.entries, "imagePath").is_some() {
        return two_parts(collector, members, ["registry", "imagePath"]);
    }
    let text = registry.value.trim();
    let lookup = calico(collector.settings.index, text);
    let Some(occurrence) = occurrence(registry, text, lookup) else {
        return Vec::new();
    };
    add(collector, registry, occurrence);
    vec![at]
}

/// Whether a document is an `Installation` of Calico's operator.
fn is_installation(collector: &ReferenceCollector<'_, '_>) -> bool {
    let head = collector.head();
    head.kind == "Installation" && head.api_version.starts_with("operator.tigera.io/")
}

/// Looks up the registry `text`, to which the operator appends a folder.
fn calico(index: &ReferenceIndex, text: &str) -> ReferenceLookup {
    let registry = text.trim_end_matches('/');
    let mut found = ReferenceLookup::Unknown;
    for folder in CALICO_FOLDERS {
        let lookup = index.lookup_prefix(&format!("{registry}/{folder}"), &[]);
        let next = match lookup {
            ReferenceLookup::Known(mut replacement) => {
                let to = base(&replacement);
                match replacement.without_end(&to, &format!("/{folder}")) {
                    Ok(base) => replacement.to = Some(destination(base)),
                    Err(why) => return ReferenceLookup::Left(why),
                }
                registry.clone_into(&mut replacement.item);
                ReferenceLookup::Known(replacement)
            }
            lookup => lookup,
        };
        found = match (found, next) {
            (found, ReferenceLookup::Unknown) => found,
            (ReferenceLookup::Unknown, next) => next,
            (found, next) if found == next => next,
            _ => return ReferenceLookup::left("its images have different destinations"),
        };
    }
    found
}

/// Collects a prefix whose registry and path are the values of `keys`. Returns the positions of the
/// entries, unless the prefix is unknown.
fn two_parts<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    members: &MappingContext<'s>,
    keys: [&str; 2],
) -> Vec<usize> {
    let [registry, repository] = keys.map(|key| text_entry(members.entries, key));
    let (Some((first, registry)), Some((second, repository))) = (registry, repository) else {
        return Vec::new();
    };
    let host = registry.value.trim();
    // the operator of Calico needs a slash at the end of the registry
    let slash = if host.ends_with('/') { "/" } else { "" };
    let host = host.trim_end_matches('/');
    let text = format!("{host}/{}", repository.value.trim());
    let occurrence =
        |meaning| Occurrence::new(registry.span.start, &*text, ReferenceRole::Prefix, meaning);
    let meaning = match collector.settings.index.lookup_prefix(&text, &[]) {
        ReferenceLookup::Unknown => return Vec::new(),
        ReferenceLookup::Settled(item) => ReferenceMeaning::Settled(item),
        ReferenceLookup::Left(why) => ReferenceMeaning::Left(why),
        ReferenceLookup::Known(_)
            if [registry, repository]
                .iter()
                .any(|part| collector.document.is_shared(part)) =>
        {
            ReferenceMeaning::left("other values share it by an anchor")
        }
        ReferenceLookup::Known(replacement) => match replacement
            .to
            .clone()
            .filter(|to| !to.repository.is_empty())
        {
            Some(to) => {
                let meaning = ReferenceMeaning::known(replacement.item, to.to_string());
                let address = format!("{}{slash}", to.registry);
                let parts = vec![(registry, address), (repository, to.repository)];
                match collector.add_in_parts(occurrence(meaning), parts) {
                    Ok(()) => return vec![first, second],
                    Err(why) => ReferenceMeaning::left(why),
                }
            }
            None => ReferenceMeaning::left(
                "its destination has no path, and so cannot be written in two parts",
            ),
        },
    };
    collector.add(
        &members.entries[first].value,
        &text,
        ReferenceRole::Prefix,
        meaning,
    );
    vec![first, second]
}

/// Whether the value of `key` may be a prefix.
fn is_prefix_key(key: &str) -> bool {
    matches!(
        key,
        "imageRepository"
            | "imageRegistry"
            | "overwriteRegistry"
            | "hub"
            | "image-registry"
            | "imageHub"
    )
}

/// The entries of a mapping that decide about its prefixes. They are searched once for all
/// prefixes, because a mapping may have a million prefixes.
struct PrefixNeighbours<'s> {
    /// The key of the mapping.
    under: Option<&'s str>,
    image_tag: Option<&'s str>,
    /// Whether the mapping has a repository, which forms a split reference with a registry.
    has_repository: bool,
    /// The positions of the entries that are the registry of a split reference.
    registries: BTreeSet<usize>,
    /// The positions of the entries that are one of several parts of a split reference.
    parts: BTreeSet<usize>,
    /// Whether the mapping is an account at a registry.
    is_account: bool,
    /// Whether CoreDNS has an `imageRepository` of its own, below `dns`.
    has_dns: bool,
}

impl<'s> PrefixNeighbours<'s> {
    fn of(members: &MappingContext<'s>, document: &'s YamlDocument<'s>) -> PrefixNeighbours<'s> {
        let entries = members.entries;
        let references = SplitReference::all(entries, members.around.key, document);
        let registries = references
            .iter()
            .filter_map(|(group, _)| group.get(&PartKind::Registry).copied());
        PrefixNeighbours {
            under: members.around.key,
            image_tag: scalar_of(entries, "imageTag"),
            has_repository: has_repository(entries),
            registries: registries.collect(),
            parts: references
                .iter()
                .filter(|(group, _)| group.len() > 1)
                .flat_map(|(group, _)| group.values().copied())
                .collect(),
            is_account: is_account(entries),
            has_dns: text_of(entries_of(entries, "dns"), "imageRepository").is_some(),
        }
    }

    /// Looks up the prefix `text`, the value of `key` in the entry `at`. The result is unknown if
    /// `key` does not name a prefix in this mapping, or if the entry is part of a split reference,
    /// such as an `imageRepository` beside an `imageTag`. The `imageRepository` of kubeadm's `dns`
    /// and `etcd.local` is looked up nevertheless.
    fn lookup(&self, index: &ReferenceIndex, at: usize, key: &str, text: &str) -> ReferenceLookup {
        match (key, self.under) {
            // the `dns` and `etcd.local` of kubeadm: `<imageRepository>/coredns:<imageTag>`
            ("imageRepository", Some("dns")) => component(index, text, "coredns", self.image_tag),
            ("imageRepository", Some("local")) => component(index, text, "etcd", self.image_tag),
            ("imageRepository", _) if self.image_tag.is_none() => {
                cluster(index, text, self.has_dns)
            }
            ("imageRepository", _) => ReferenceLookup::Unknown,
            _ if self.has_repository || self.registries.contains(&at) => ReferenceLookup::Unknown,
            _ => index.lookup_prefix(text, &[]),
        }
    }
}

// Finds the parts of names that are in different mappings of a document.

/// Keys whose value may be anything. It is a prefix if, with a name elsewhere in the document, it
/// forms the name of a locked image.
const NEEDS_NAMES: [&str; 2] = ["registry", "repository"];

/// Whether a mapping is an account at a registry, which is not a prefix.
fn is_account(entries: &[YamlEntry<'_>]) -> bool {
    let keys = ["username", "user", "password", "auth", "token"];
    keys.iter().any(|key| position_of(entries, key).is_some())
}

/// The prefixes and names in the document of `collector`.
pub(super) fn distant_parts<'c, 's>(
    collector: &'c ReferenceCollector<'_, 's>,
) -> &'c DistantParts<'s> {
    collector.distant_parts.get_or_init(|| {
        let mut parts = DistantParts::default();
        let nodes = collector.document.root.iter();
        for node in nodes.flat_map(YamlNode::descendants) {
            add_parts(node.entries(), collector.settings.index, &mut parts);
        }
        parts.names.sort_unstable();
        parts.names.dedup();
        parts
    })
}

/// Adds the prefixes in a mapping, and the names without a host that no locked image of Docker Hub
/// has.
fn add_parts<'s>(
    entries: &'s [YamlEntry<'s>],
    index: &ReferenceIndex,
    parts: &mut DistantParts<'s>,
) {
    // a mapping may have a million registries
    let mut of_account = None;
    for YamlEntry { key, value } in entries {
        let text = value.scalar().and_then(YamlScalar::text);
        let (Some(key), Some(text)) = (key.scalar(), text) else {
            continue;
        };
        let text = text.trim();
        let name = &text[..text.len() - pin(text).len()];
        if names_image(&key.value) && index.needs_prefix(name) {
            parts.names.push(name);
        } else if NEEDS_NAMES.contains(&&*key.value)
            && !*of_account.get_or_insert_with(|| is_account(entries))
        {
            parts.prefixes.insert(text);
        }
    }
}

/// Whether the value of `key` may be the name of an image.
fn names_image(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["image", "name", "repository"]
        .iter()
        .any(|end| key.ends_with(end))
}

/// The occurrence of the prefix `text`, the value of `scalar`. `None` if it is unknown.
fn occurrence(scalar: &YamlScalar<'_>, text: &str, lookup: ReferenceLookup) -> Option<Occurrence> {
    let occurrence = |meaning| Occurrence::new(0, text, ReferenceRole::Prefix, meaning);
    Some(match lookup {
        ReferenceLookup::Unknown => return None,
        ReferenceLookup::Settled(item) => occurrence(ReferenceMeaning::Settled(item)),
        ReferenceLookup::Left(why) => occurrence(ReferenceMeaning::Left(why)),
        ReferenceLookup::Known(replacement) => {
            let slash = if text.ends_with('/') { "/" } else { "" };
            let to = format!("{}{slash}", base(&replacement));
            let start = scalar.value.len() - scalar.value.trim_start().len();
            let meaning = ReferenceMeaning::known(replacement.item, &*to);
            occurrence(meaning).with_edit(start..start + text.len(), to)
        }
    })
}

fn add<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    scalar: &'s YamlScalar<'s>,
    mut occurrence: Occurrence,
) {
    if collector.document.is_shared(scalar) && occurrence.is_change() {
        occurrence.leave("other values share it by an anchor");
    }
    collector.add_in_value(scalar, vec![occurrence], None);
}

/// Whether a key names a repository.
fn has_repository(entries: &[YamlEntry<'_>]) -> bool {
    let mut keys = entries
        .iter()
        .filter_map(|YamlEntry { key, .. }| key.scalar())
        .map(|key| key.value.to_ascii_lowercase());
    keys.any(|key| key.ends_with("repository") || key.ends_with("repo"))
}

/// The destination of `replacement`, without a trailing slash.
fn base(replacement: &ReferenceReplacement) -> String {
    let to = replacement
        .to
        .as_ref()
        .map(Destination::to_string)
        .unwrap_or_default();
    to.trim_end_matches('/').to_owned()
}

/// Looks up the registry of a whole cluster. Upstream, CoreDNS is at `coredns/coredns`. kubeadm
/// pulls it from there only if the registry is registry.k8s.io, and otherwise pulls
/// `<registry>/coredns` (`GetDNSImage` in images.go), unless CoreDNS has a repository of its own.
fn cluster(index: &ReferenceIndex, text: &str, has_dns: bool) -> ReferenceLookup {
    // if the lock has no image of kubeadm, all locked images below the registry decide
    let lookup = match index.lookup_prefix(text, &KUBEADM) {
        ReferenceLookup::Unknown => index.lookup_prefix(text, &[]),
        lookup => lookup,
    };
    let ReferenceLookup::Known(replacement) = &lookup else {
        return lookup;
    };
    let to = format!("{}/coredns", base(replacement));
    let source = format!("{}/coredns/coredns", replacement.item);
    match index.is_delivered_to(&source, &to) {
        Some(false) if !has_dns => ReferenceLookup::Left(format!(
            "kubeadm will pull {to}, and {source} is not delivered there; \
             add `{source}: [coredns/coredns, coredns]` to registry.paths"
        )),
        _ => lookup,
    }
}

/// The image of one component of a cluster.
fn component_image(repository: &str, name: &str, tag: Option<&str>) -> String {
    let repository = repository.trim_end_matches('/');
    match tag {
        Some(tag) if !tag.is_empty() => format!("{repository}/{name}:{tag}"),
        _ => format!("{repository}/{name}"),
    }
}

/// Looks up the repository `<text>/<name>` of one component of a cluster.
fn component(index: &ReferenceIndex, text: &str, name: &str, tag: Option<&str>) -> ReferenceLookup {
    let whole = component_image(text, name, tag);
    let mut replacement = match index.lookup(&whole, ReferenceRole::Repository, false) {
        ReferenceLookup::Known(replacement) => replacement,
        lookup => return lookup,
    };
    let to = base(&replacement);
    // kubeadm appends the name itself
    let base = match replacement.without_end(&to, &format!("/{name}")) {
        Ok(base) => base,
        Err(why) => return ReferenceLookup::Left(why),
    };
    replacement.to = Some(destination(base));
    ReferenceLookup::Known(replacement)
}

/// The images of CoreDNS and etcd in a configuration of kubeadm.
pub(super) fn kubeadm_candidates<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    _inventory: &Inventory<'_>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    let entries = members.entries;
    let component = match (members.around.key, members.around.above) {
        (Some("dns"), Some("clusterConfiguration")) => "coredns",
        (Some("dns"), None) if collector.head().kind == "ClusterConfiguration" => "coredns",
        (Some("local"), Some("etcd")) => "etcd",
        _ => return Vec::new(),
    };
    let Some((at, repository)) = text_entry(entries, "imageRepository") else {
        return Vec::new();
    };
    let tag = scalar_of(entries, "imageTag");
    let written = component_image(repository.value.trim(), component, tag);
    if let Some(start) = start_of(&entries[at].value) {
        collector.path.push(NodeStep::Key("imageRepository"));
        collector.add_claim(start, ImageClaim::new(&written, true));
        collector.path.pop();
    }
    let tag = position_of(entries, "imageTag");
    [Some(at), tag].into_iter().flatten().collect()
}

/// Why the `name` of an item in the `images` of a kustomization is left unchanged.
pub(crate) const KUSTOMIZE_NAME: &str = "kustomize finds images of the bases by this name";

/// The `name` of an item in the `images` of a kustomization. It must match the image in the bases,
/// and is not itself a reference to change.
pub(super) fn kustomize_references<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    members: &MappingContext<'s>,
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
    let look_up = |text: &str| {
        let index = &collector.settings.index;
        index.lookup(text, ReferenceRole::Repository, false)
    };
    if !has("newName")
        && !matches!(
            look_up(text),
            ReferenceLookup::Unknown | ReferenceLookup::Settled(_)
        )
    {
        let tag = text_of(entries, "newTag").map(|tag| format!("{text}:{tag}"));
        let to = match tag.as_deref().map(look_up) {
            Some(ReferenceLookup::Known(ReferenceReplacement { to: Some(to), .. })) => {
                format!("newName: {to}")
            }
            _ => "newName".into(),
        };
        let why =
            format!("{KUSTOMIZE_NAME}; add `{to}`, or rewrite the output of `kustomize build`");
        collector.add(
            name,
            text,
            ReferenceRole::Repository,
            ReferenceMeaning::Left(why),
        );
    }
    vec![at]
}

/// The image that an item in the `images` of a kustomization selects.
pub(super) fn kustomize_candidates<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    _inventory: &Inventory<'_>,
    members: &MappingContext<'s>,
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
        collector.add_claim(at, ImageClaim::new(&written, true));
    }
    (0..entries.len()).collect()
}

/// Whether a node is an item of the list `images`.
fn is_in_images(around: &NodeContext<'_>) -> bool {
    around.above == Some("images") && around.key.is_none()
}

#[cfg(test)]
mod tests {
    use crate::tests::at_site;

    #[test]
    fn the_registry_of_calicos_operator_is_changed() {
        let names = ["docker.io/calico/node:v3", "docker.io/tigera/operator:v1"];
        let object = |spec: &str| {
            format!("apiVersion: operator.tigera.io/v1\nkind: Installation\nspec: {{{spec}}}\n")
        };
        let values = |spec: &str| format!("installation: {{{spec}}}\n");
        for (paths, before, after) in [
            ("", "registry: docker.io/", "registry: r:5/"),
            ("", "registry: docker.io", "registry: r:5"),
            (
                "docker.io: p/q",
                "registry: docker.io/",
                "registry: r:5/p/q/",
            ),
            (
                "docker.io: p",
                "registry: docker.io/, imagePath: calico",
                "registry: r:5/, imagePath: p/calico",
            ),
        ] {
            for of in [&object as &dyn Fn(&str) -> String, &values] {
                let (text, left) = at_site(&names, paths, &of(before));
                assert_eq!((text, &*left), (of(after), &[][..]), "{before}");
                let (text, left) = at_site(&names, paths, &of(after));
                assert_eq!((text, &*left), (of(after), &[][..]), "{before}");
            }
        }
        let apart = "docker.io/calico: a/calico, docker.io/tigera: b/tigera";
        for paths in [apart, "docker.io/calico: c"] {
            let before = object("registry: docker.io/");
            let (text, left) = at_site(&names, paths, &before);
            assert_eq!((text, left.len()), (before, 1), "{paths}");
        }
        for other in [
            "kind: Installation\nspec: {registry: docker.io/}\n",
            "installation: {registry: UseDefault}\n",
            "installation: {registry: quay.io/}\n",
        ] {
            assert_eq!(at_site(&names, "", other), (other.to_owned(), vec![]));
        }
    }
}
