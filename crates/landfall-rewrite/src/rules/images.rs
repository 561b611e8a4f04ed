//! Rules for values that are images: by the name of their key, in containers and their status, in
//! plans of upgrades, in environment variables and arguments, in lists of a node, and by the value
//! itself.

use crate::index::{ReferenceLookup, is_pinned, pin, replaced};
use crate::inventory::Inventory;
use crate::occurrence::{Occurrence, ReferenceMeaning, ReferenceRole};
use crate::walk::{
    ImageCandidate, ImageClaim, MAX_NAME_BYTES, MappingContext, NodeContext, NodeStep,
    ReferenceCollector, is_list, text_start,
};
use crate::yaml::{YamlNode, YamlScalar, position_of, text_entry, text_of, value_of};
use landfall_model::{Digest, ImageRef, has_host};
use std::collections::BTreeMap;

/// Marks values whose key ends in `image`.
pub(super) fn mark_image_key(
    _members: &MappingContext<'_>,
    _value: &YamlNode<'_>,
    child: &mut NodeContext<'_>,
) {
    if child.role == ReferenceRole::Value && child.key.is_some_and(is_image_key) {
        child.role = ReferenceRole::Image;
    }
}

/// Claims the value of a key, variable or flag that is named after an image.
pub(super) fn claim_named_image<'t>(
    text: &'t str,
    around: &NodeContext<'_>,
    _inventory: &Inventory<'_>,
) -> Option<ImageClaim<'t>> {
    let in_container = around.is_of_container();
    let name = around.name()?;
    let is_switch = matches!(text, "true" | "false");
    // `imageK8S`, `image_name`: other values of such keys have no path and tag
    let is_path = || name.to_ascii_lowercase().contains("image") && text.contains('/');
    let is_image = is_image_name(name)
        || (is_list_name(name) && is_list(text))
        || (is_path() && is_pinned(text));
    (is_image && !is_switch).then_some(ImageClaim {
        written: text,
        sure: in_container,
        in_container,
    })
}

/// Whether a key, variable or flag is named after several images: `STRIMZI_KAFKA_IMAGES`.
pub(super) fn is_list_name(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with("images")
}

/// Whether a key, variable or flag is named after an image: `image`, `sandboxImage`,
/// `RELATED_IMAGE_X`, `X_IMAGE_REPOSITORY`.
pub(super) fn is_image_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("image")
        || name.starts_with("related_image_")
        || ["_image_ref", "_image_and_"]
            .iter()
            .any(|word| name.contains(word))
        || is_repository_name(&name)
}

/// Whether a variable or a parameter of Helm is the repository of an image: `X_IMAGE_REPOSITORY`,
/// `x.image.repository`.
fn is_repository_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["image_repository", "image.repository"]
        .iter()
        .any(|end| name.ends_with(end))
}

fn is_image_key(key: &str) -> bool {
    let key = key.as_bytes();
    let word = b"image";
    key.len()
        .checked_sub(word.len())
        .is_some_and(|start| key[start..].eq_ignore_ascii_case(word))
}

// Containers of pods, workflows and Compose: an `image` without a tag means `latest`.

/// Keys of lists whose items are containers, or are treated like containers.
const LISTS: [&str; 7] = [
    "containers",
    "initContainers",
    "ephemeralContainers",
    "steps",
    "sidecars",
    // Drone
    "services",
    // CircleCI
    "docker",
];

/// Keys of mappings that are containers (Argo Workflows, Tekton).
const SINGLE: [&str; 3] = ["container", "script", "stepTemplate"];

/// Keys of mappings whose values are containers (Compose, Woodpecker).
const MAPPINGS: [&str; 4] = ["services", "steps", "pipeline", "clone"];

/// Marks the images in containers, and containers under a key of their own.
pub(super) fn mark_container_entry(
    members: &MappingContext<'_>,
    value: &YamlNode<'_>,
    child: &mut NodeContext<'_>,
) {
    let around = &members.around;
    match value {
        YamlNode::Scalar(_) | YamlNode::Alias(_) => match child.key {
            Some("image") if around.container => child.role = ReferenceRole::Container,
            // the image of an image volume
            Some("reference") if around.key == Some("image") => {
                child.role = ReferenceRole::Container;
                child.read_as = Some("image");
            }
            _ => {}
        },
        _ => child.container = is_container(child.key, around.key, around.container),
    }
}

/// Marks the items of lists of containers.
pub(super) fn mark_container(
    list: &NodeContext<'_>,
    _previous: Option<&YamlNode<'_>>,
    child: &mut NodeContext<'_>,
) {
    child.container = list.key.is_some_and(|key| LISTS.contains(&key));
}

/// Whether the mapping under `key` is a container. The mapping that contains it is under `above`;
/// `in_container` says whether that mapping is a container itself.
fn is_container(key: Option<&str>, above: Option<&str>, in_container: bool) -> bool {
    above.is_some_and(|above| MAPPINGS.contains(&above))
        || key.is_some_and(|key| SINGLE.contains(&key) && !in_container)
}

/// The image of a service of Compose that also builds it, unless the lock has it: the name is that
/// of the result.
pub(super) fn built_image<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    inventory: &Inventory<'_>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    let is_service = members.around.above == Some("services");
    if !is_service || value_of(members.entries, "build").is_none() {
        return Vec::new();
    }
    let Some((at, image)) = text_entry(members.entries, "image") else {
        return Vec::new();
    };
    let written = image.value.trim();
    if inventory.has_image(written) {
        return Vec::new();
    }
    collector.path.push(NodeStep::Key("image"));
    let why = "its service builds it, so it is not pulled";
    let start = text_start(image);
    collector.add_candidate(ImageCandidate::undecided(start, written.to_owned(), why));
    collector.path.pop();
    vec![at]
}

/// Keys of lists in the status of a pod.
const STATUSES: [&str; 3] = [
    "containerStatuses",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
];

/// The running images in the status of a pod, by digest.
pub(super) fn pod_status<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    inventory: &Inventory<'_>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    if !members.around.status {
        return Vec::new();
    }
    add(collector, inventory, members);
    // nothing else in the status is read: `image` is the same image, by its tag
    (0..members.entries.len()).collect()
}

/// Marks the items of lists of statuses.
pub(super) fn mark_pod_status(
    list: &NodeContext<'_>,
    _previous: Option<&YamlNode<'_>>,
    child: &mut NodeContext<'_>,
) {
    child.status = list.key.is_some_and(|key| STATUSES.contains(&key));
}

fn add(
    collector: &mut ReferenceCollector<'_, '_>,
    inventory: &Inventory<'_>,
    members: &MappingContext<'_>,
) {
    let Some(scalar) = value_of(members.entries, "imageID").and_then(YamlNode::scalar) else {
        return;
    };
    let Some(id) = scalar.text() else { return };
    let id = ["docker-pullable://", "docker://"]
        .iter()
        .find_map(|head| id.strip_prefix(head))
        .unwrap_or(id);
    let image = text_of(members.entries, "image").unwrap_or_default();
    let at = text_start(scalar);
    if let Ok(config) = id.parse::<Digest>() {
        let (written, why_not) = match inventory.with_config(&config) {
            Some(name) => (name.to_string(), None),
            None => {
                let why =
                    "the runtime only reports the digest of its config, which is not in the lock";
                (format!("{image} ({id})"), Some(why.to_owned()))
            }
        };
        return collector.add_candidate(ImageCandidate {
            in_container: true,
            why_not,
            ..ImageCandidate::certain(at, written)
        });
    }
    let Ok(ran) = id.parse::<ImageRef>() else {
        return;
    };
    // `imageID` has the digest that runs; `image` has the tag that was requested
    let requested = image
        .parse::<ImageRef>()
        .ok()
        .filter(|requested| requested.name() == ran.name());
    let tag = requested.and_then(|requested| requested.tag);
    let written = ImageRef {
        tag: tag.or(ran.tag.clone()),
        ..ran
    }
    .to_string();
    collector.add_claim(at, ImageClaim::of_container(&written));
}

/// The group of Crossplane's packages.
const PACKAGES: &str = "pkg.crossplane.io/";

/// The package of Crossplane without a host. Crossplane adds its own default registry, so the name
/// is not that of an image at Docker Hub.
pub(super) fn package_without_host<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    _inventory: &Inventory<'_>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    if collector.path[..] != [NodeStep::Key("spec")] {
        return Vec::new();
    }
    let Some((at, package)) = text_entry(members.entries, "package") else {
        return Vec::new();
    };
    let written = package.value.trim();
    if has_host(written) || !collector.head().api_version.starts_with(PACKAGES) {
        return Vec::new();
    }
    let why = "Crossplane adds its default registry to a package without a host; write the host";
    let start = text_start(package);
    collector.add_candidate(ImageCandidate::undecided(start, written.to_owned(), why));
    vec![at]
}

/// The group of the plans of Rancher's system-upgrade-controller.
const PLANS: &str = "upgrade.cattle.io/";

/// The image without a tag in the `upgrade` or `prepare` of a plan: the position of its entry, its
/// value, and the reference with the tag that the controller makes of the plan's `version`.
fn plan_image<'s>(
    collector: &ReferenceCollector<'_, 's>,
    members: &MappingContext<'s>,
) -> Option<(usize, &'s YamlScalar<'s>, String)> {
    let around = &members.around;
    let is_in_spec = collector.path.len() == 2 && around.above == Some("spec");
    if !(is_in_spec && matches!(around.key, Some("upgrade" | "prepare"))) {
        return None;
    }
    let head = collector.head();
    let is_plan = head.kind == "Plan" && head.api_version.starts_with(PLANS);
    let version = head.spec_version.filter(|_| is_plan)?;
    let (at, image) = text_entry(members.entries, "image")?;
    let name = image.value.trim();
    // a tag cannot contain the `+` of a version
    let whole = format!("{name}:{}", version.trim().replace('+', "-"));
    pin(name).is_empty().then_some((at, image, whole))
}

/// The images of plans, whose tag is the version of the plan.
pub(super) fn plan_references<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    let Some((at, image, whole)) = plan_image(collector, members) else {
        return Vec::new();
    };
    let role = ReferenceRole::Repository;
    let meaning = match collector.settings.index.lookup(&whole, role, false) {
        ReferenceLookup::Unknown => return Vec::new(),
        ReferenceLookup::Settled(item) => ReferenceMeaning::Settled(item),
        ReferenceLookup::Left(why) => ReferenceMeaning::Left(why),
        ReferenceLookup::Known(_) if collector.document.is_shared(image) => {
            ReferenceMeaning::left("other values share it by an anchor")
        }
        ReferenceLookup::Known(replacement) => {
            let new = replaced(&whole, &replacement);
            let to = new[..new.len() - pin(&new).len()].to_owned();
            let meaning = ReferenceMeaning::known(replacement.item, new);
            let occurrence = Occurrence::new(image.span.start, &*whole, role, meaning);
            match collector.add_in_parts(occurrence, vec![(image, to)]) {
                Ok(()) => return vec![at],
                Err(why) => ReferenceMeaning::left(why),
            }
        }
    };
    collector.add(&members.entries[at].value, &whole, role, meaning);
    vec![at]
}

/// Like [`plan_references`], for candidates.
pub(super) fn plan_candidates<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    _inventory: &Inventory<'_>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    let Some((at, image, whole)) = plan_image(collector, members) else {
        return Vec::new();
    };
    collector.path.push(NodeStep::Key("image"));
    collector.add_claim(text_start(image), ImageClaim::new(&whole, true));
    collector.path.pop();
    vec![at]
}

/// Marks the values of environment variables and parameters that are named after an image, and of
/// JSON patches whose path ends in such a key: `{name: RELATED_IMAGE_X, value: …}`,
/// `{name: git-image, default: …}`, `{op: replace, path: /spec/image, value: …}`.
pub(super) fn mark_variable(
    members: &MappingContext<'_>,
    _value: &YamlNode<'_>,
    child: &mut NodeContext<'_>,
) {
    if !matches!(child.key, Some("value" | "default")) {
        return;
    }
    let Some(name) = members.name.or_else(|| patched_key(members)) else {
        return;
    };
    if child.role == ReferenceRole::Value {
        if is_image_key(name) {
            child.role = ReferenceRole::Image;
        } else if is_repository_name(name) {
            child.role = ReferenceRole::Repository;
        }
    }
    if is_image_name(name) {
        child.read_as = Some("image");
    } else if is_list_name(name) {
        child.read_as = Some("images");
    } else if name.to_ascii_lowercase().contains("image") {
        // like such a key, whose value is an image if it has a path and a tag
        child.read_as = Some("image_name");
    }
}

/// The last key of the `path` of a JSON patch (RFC 6902).
fn patched_key<'s>(members: &MappingContext<'s>) -> Option<&'s str> {
    members.value("op")?;
    let path = members.value("path")?.scalar()?.text()?;
    let path = Some(path).filter(|path| path.len() <= MAX_NAME_BYTES)?;
    path.rsplit('/').next()
}

/// Claims references with a tag or digest below a key that is named after several images, and in a
/// list below one that is named after an image: `system_images: {etcd: rancher/etcd:v3}`,
/// `images: [redis:7]`, `image: [redis:7]`.
pub(super) fn claim_below_images<'t>(
    text: &'t str,
    around: &NodeContext<'_>,
    _inventory: &Inventory<'_>,
) -> Option<ImageClaim<'t>> {
    let is_in_list = around.key.is_none();
    around
        .above
        .filter(|above| is_list_name(above) || (is_in_list && is_image_key(above)))?;
    is_pinned(text).then_some(ImageClaim::new(text, false))
}

/// Marks the `name` of an item in a list of images, if it has a tag or digest: Hauler's
/// `images: [{name: redis:7}]`.
pub(super) fn mark_listed_image(
    members: &MappingContext<'_>,
    value: &YamlNode<'_>,
    child: &mut NodeContext<'_>,
) {
    let around = &members.around;
    let is_listed = around.key.is_none() && around.above.is_some_and(is_list_name);
    if !is_listed || child.key != Some("name") {
        return;
    }
    let text = value.scalar().and_then(|scalar| scalar.text());
    if text.is_some_and(is_pinned) {
        child.read_as = Some("image");
    }
}

/// The argument `--x-image=REF`.
pub(super) fn claim_flag<'t>(
    text: &'t str,
    _around: &NodeContext<'_>,
    _inventory: &Inventory<'_>,
) -> Option<ImageClaim<'t>> {
    let (flag, written) = text
        .split_once('=')
        .filter(|(flag, _)| flag.starts_with('-'))?;
    let is_image = flag.to_ascii_lowercase().contains("image");
    is_image.then_some(ImageClaim::new(written, false))
}

/// The assignment `X_IMAGE=REF`, as in a list of environment variables.
pub(super) fn claim_assignment<'t>(
    text: &'t str,
    _around: &NodeContext<'_>,
    _inventory: &Inventory<'_>,
) -> Option<ImageClaim<'t>> {
    let (name, written) = text.split_once('=')?;
    let is_variable = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_image = is_variable && is_image_name(name) && is_pinned(written);
    is_image.then_some(ImageClaim::new(written, true))
}

/// The argument `--x-image`, followed by the item REF.
pub(super) fn mark_flag_value(
    list: &NodeContext<'_>,
    previous: Option<&YamlNode<'_>>,
    child: &mut NodeContext<'_>,
) {
    if list.collects.candidates && previous.is_some_and(is_image_flag) {
        child.read_as = Some("image");
    }
}

/// Whether an argument is a flag that is named after an image, and whose value is the next item.
fn is_image_flag(node: &YamlNode<'_>) -> bool {
    let text = node.scalar().map(|scalar| scalar.value.trim());
    text.is_some_and(|text| text.starts_with('-') && !text.contains('=') && is_image_name(text))
}

/// Marks `dockerRepository` of Kubermatic (KKP): a repository whose tag is KKP's own version.
pub(super) fn mark_kubermatic_repository(
    _members: &MappingContext<'_>,
    _value: &YamlNode<'_>,
    child: &mut NodeContext<'_>,
) {
    if child.key == Some("dockerRepository") {
        child.role = ReferenceRole::Repository;
    }
}

/// The keys of the tags and of the digests of an image, as crictl, podman and docker write them.
const TAGS_AND_DIGESTS: [[&str; 2]; 3] = [
    ["repoTags", "repoDigests"],
    ["Names", "RepoDigests"],
    ["RepoTags", "RepoDigests"],
];

/// The images of a node in the output of `crictl images -o json`, `podman images --format json` and
/// `docker inspect`, which list tags and digests separately.
pub(super) fn node_images<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    _inventory: &Inventory<'_>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    let found = TAGS_AND_DIGESTS.iter().find_map(|[tags, digests]| {
        let tags = position_of(members.entries, tags)?;
        Some((tags, position_of(members.entries, digests)?))
    });
    let Some((tags, digests)) = found else {
        return Vec::new();
    };
    let mut tagged: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for (scalar, image) in references(&members.entries[tags].value) {
        let of_name = tagged.entry(image.name()).or_default();
        of_name.push((scalar, image));
    }
    for (scalar, image) in references(&members.entries[digests].value) {
        let names = tagged.remove(&image.name()).unwrap_or_default();
        if names.is_empty() {
            add_listed(collector, scalar, &image);
        }
        for (scalar, one) in names {
            add_listed(
                collector,
                scalar,
                &ImageRef {
                    digest: image.digest.clone(),
                    ..one
                },
            );
        }
    }
    let rest = tagged.into_values().flatten();
    rest.for_each(|(scalar, image)| add_listed(collector, scalar, &image));
    vec![tags, digests]
}

fn add_listed(
    collector: &mut ReferenceCollector<'_, '_>,
    scalar: &YamlScalar<'_>,
    image: &ImageRef,
) {
    let image = image.to_string();
    collector.add_claim(text_start(scalar), ImageClaim::of_container(&image));
}

/// The references in a list of scalars.
fn references<'d>(node: &'d YamlNode<'d>) -> Vec<(&'d YamlScalar<'d>, ImageRef)> {
    let scalars = node.items().iter().filter_map(YamlNode::scalar);
    scalars
        .filter_map(|scalar| Some((scalar, scalar.text()?.parse().ok()?)))
        .collect()
}

/// Claims full names in values that no earlier function claims. A full name has a tag or digest,
/// and its host is certainly a registry. The `tags` of a build are names that it pushes.
pub(super) fn claim_full_name<'t>(
    text: &'t str,
    around: &NodeContext<'_>,
    inventory: &Inventory<'_>,
) -> Option<ImageClaim<'t>> {
    if around.key.or(around.above) == Some("tags") {
        return None;
    }
    let value = text
        .split_once('=')
        .filter(|(flag, _)| flag.starts_with('-'))
        .map(|(_, value)| value);
    let written = value.unwrap_or(text);
    let is_image = inventory.is_full_name(written);
    is_image.then_some(ImageClaim::new(written, true))
}
