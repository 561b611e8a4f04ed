//! Completes the values of a chart as templates usually do: with `global.imageTag` or `appVersion`
//! as the default tag, `global.imageRegistry` in place of all registries, and a default registry
//! for images that name none.

use crate::chart::{HelmChart, plain};
use crate::inventory::Inventory;
use crate::split_reference::{PartKind, is_prefix_of, part};
use landfall_model::{ImageRef, has_host};
use serde_yaml::{Mapping, Value};
use std::collections::BTreeMap;

/// The defaults that were applied to the values of a chart. Each path is a list of keys.
#[derive(Debug, Default)]
pub struct TemplateDefaults {
    /// The paths of registries that apply to several images: `global.imageRegistry`,
    /// `global.image.registry`, `registry`.
    pub registries: Vec<Vec<String>>,
    /// Whether some of these registries are put before the names of all images (Rancher).
    pub is_before_all: bool,
    /// The paths at which the default registry was filled into an image.
    pub inherited: Vec<Vec<String>>,
    /// The default tags, usually from `appVersion`, that are not locked: the template may use
    /// another tag. Each is the path of its key, with the first locked image of the repository.
    pub other_tags: Vec<(Vec<String>, ImageRef)>,
}

/// Completes `values`, the effective values of `chart`, so that every image in them has the name by
/// which the templates pull it.
pub fn fill_template_defaults(
    chart: &HelmChart,
    values: &mut Mapping,
    inventory: &Inventory<'_>,
) -> TemplateDefaults {
    let mut filler = DefaultFiller {
        inventory,
        path: Vec::new(),
        filled: TemplateDefaults::default(),
    };
    filler.chart(chart, values, InheritedDefaults::default());
    filler.filled
}

struct DefaultFiller<'a> {
    inventory: &'a Inventory<'a>,
    path: Vec<String>,
    filled: TemplateDefaults,
}

/// What a chart inherits from its parent or sets for all its images.
#[derive(Debug, Clone, Default)]
struct InheritedDefaults {
    /// The registry that replaces all others.
    global: Option<String>,
    /// The registry of images that have none of their own.
    default: Option<String>,
    /// Istio's `global.hub`, a registry like `default`.
    hub: Option<String>,
    /// `global.imageTag`, the tag of images that have none of their own.
    image_tag: Option<String>,
    /// `global.tag`, a tag like `image_tag`.
    tag: Option<String>,
    /// Whether the parent has a registry that Rancher's templates put before all names.
    is_prefixed: bool,
}

/// The defaults within a chart.
#[derive(Clone, Copy)]
struct ChartScope<'a> {
    registries: &'a InheritedDefaults,
    /// Istio's registry of images whose name has no slash.
    hub: Option<&'a str>,
    version: Option<&'a str>,
}

impl DefaultFiller<'_> {
    fn chart(&mut self, chart: &HelmChart, values: &mut Mapping, above: InheritedDefaults) {
        let global = self.registry(values, &["global", "imageRegistry"]);
        // in ingress-nginx, this is the default registry; in other charts, it is the registry of
        // all images. In those charts, it can be treated as a default too, because images with a
        // registry of their own have the same registry.
        let shared = self.registry(values, &["global", "image", "registry"]);
        let before_all = if above.is_prefixed {
            None
        } else {
            self.registry_before_all(chart, values)
        };
        let own = own_registry(values);
        let tag = values.get("tag").and_then(plain).filter(|_| own.is_some());
        // the globals of a parent override those of a subchart
        let for_subcharts = InheritedDefaults {
            global: above.global.or(global),
            is_prefixed: above.is_prefixed || before_all.is_some(),
            default: above.default.or(shared).or(before_all),
            hub: above
                .hub
                .or_else(|| registry_at(values, &["global", "hub"])),
            image_tag: above
                .image_tag
                .or_else(|| text_at(values, &["global", "imageTag"])),
            tag: above.tag.or_else(|| text_at(values, &["global", "tag"])),
        };
        // a parent may set these for other charts
        let if_used = |value: &Option<String>, key: &str| value.clone().filter(|_| chart.uses(key));
        let hub = if_used(&for_subcharts.hub, ".global.hub");
        let default = own
            .as_ref()
            .map(|(registry, _)| registry.clone())
            .or_else(|| for_subcharts.default.clone())
            .or_else(|| hub.clone());
        let registries = InheritedDefaults {
            default,
            ..for_subcharts.clone()
        };
        let version = tag
            .or_else(|| if_used(&for_subcharts.image_tag, ".global.imageTag"))
            .or_else(|| if_used(&for_subcharts.tag, ".global.tag"))
            .or_else(|| chart.default_tag());
        let scope = ChartScope {
            registries: &registries,
            hub: hub.as_deref(),
            version: version.as_deref(),
        };
        let inherited = self.filled.inherited.len();
        self.references(values, scope, false);
        for (key, value) in values
            .iter_mut()
            .filter_map(|(key, value)| Some((key.as_str()?, value)))
        {
            self.path.push(key.to_owned());
            match (chart.subcharts.iter().find(|chart| chart.key == key), value) {
                (Some(chart), Value::Mapping(values)) => {
                    self.chart(chart, values, for_subcharts.clone())
                }
                (_, value) => self.value(value, scope, is_image(key)),
            }
            self.path.pop();
        }
        if let Some((_, path)) = own
            && self.filled.inherited.len() > inherited
        {
            self.record_registry(path);
        }
    }

    /// Returns the registry at `path` of a chart's `values`, and records its path.
    fn registry(&mut self, values: &Mapping, path: &[&str]) -> Option<String> {
        let registry = registry_at(values, path)?;
        self.record_registry(path);
        Some(registry)
    }

    /// Records that the registry at `path` of a chart's values applies to several images.
    fn record_registry(&mut self, path: &[&str]) {
        let path = path.iter().map(|key| (*key).to_owned());
        let path = self.path.iter().cloned().chain(path).collect();
        self.filled.registries.push(path);
    }

    /// Returns the registry that the templates of Rancher's charts put before the names of all
    /// images, and records its paths. If its keys are empty, the images are those of Docker Hub,
    /// and the registry is filled in.
    ///
    /// `None` if the chart has no such key, or if a value names a host: the templates would put the
    /// registry before that host.
    fn registry_before_all(&mut self, chart: &HelmChart, values: &mut Mapping) -> Option<String> {
        const KEYS: [&[&str]; 3] = [
            &["global", "cattle", "systemDefaultRegistry"],
            &["global", "systemDefaultRegistry"],
            &["systemDefaultRegistry"],
        ];
        let mut templates = chart.documents().into_iter().chain(chart.helpers());
        let keys: Vec<_> = KEYS
            .into_iter()
            .filter(|path| {
                at(values, path).is_some_and(|value| value.is_null() || value.is_string())
            })
            .collect();
        if keys.is_empty()
            || !has_only_names(values)
            || !templates.any(|(_, text)| text.contains("systemDefaultRegistry"))
        {
            return None;
        }
        let set = keys.iter().find_map(|path| registry_at(values, path));
        let registry = set.unwrap_or_else(|| "docker.io".into());
        self.filled.is_before_all = true;
        for path in keys {
            self.record_registry(path);
            if let Some(value) = at_mut(values, path) {
                *value = registry.as_str().into();
            }
        }
        Some(registry)
    }

    fn value(&mut self, value: &mut Value, scope: ChartScope<'_>, under_image: bool) {
        match value {
            Value::Sequence(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.path.push(format!("[{at}]"));
                    self.value(item, scope, under_image);
                    self.path.pop();
                }
            }
            Value::Mapping(values) => {
                self.references(values, scope, under_image);
                for (key, value) in values
                    .iter_mut()
                    .filter_map(|(key, value)| Some((key.as_str()?, value)))
                {
                    self.path.push(key.to_owned());
                    self.value(value, scope, is_image(key));
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    /// Completes the references of a mapping.
    fn references(&mut self, values: &mut Mapping, scope: ChartScope<'_>, under_image: bool) {
        if let (Some(hub), Some(tag)) = (scope.hub, scope.version)
            && !["hub", "tag"].iter().any(|key| values.contains_key(*key))
            && let Some(Value::String(image)) = values.get_mut("image")
            && !image.is_empty()
            && !image.contains(['/', ':', '@', '{'])
        {
            *image = format!("{hub}/{image}:{tag}");
        }
        let mut groups: BTreeMap<String, BTreeMap<PartKind, String>> = BTreeMap::new();
        for key in values.keys().filter_map(Value::as_str) {
            if let Some((stem, part)) = part(key) {
                groups.entry(stem).or_default().insert(part, key.to_owned());
            }
        }
        // Kyverno's key for the registry of an image that has none of its own
        let default = groups
            .remove("default")
            .and_then(|mut keys| keys.remove(&PartKind::Registry));
        if let (Some(key), Some(keys)) = (default, groups.get_mut(""))
            && part_text(values, keys, PartKind::Registry).is_none()
        {
            keys.insert(PartKind::Registry, key);
        }
        // Cilium's key that disables the digest
        let no_digest = values.get("useDigest") == Some(&Value::Bool(false));
        for (stem, mut keys) in groups {
            add_image(values, &stem, &mut keys);
            if stem.is_empty() && (under_image || keys.contains_key(&PartKind::Registry)) {
                // without a registry of the chart, it is not known where the image is
                if scope.registries.default.is_some() {
                    add_name(values, &mut keys);
                }
                add_version(values, &mut keys);
            }
            let Some(repository) = part_text(values, &keys, PartKind::Repository) else {
                continue;
            };
            if let Some(key) = keys.get(&PartKind::Digest).filter(|_| no_digest) {
                values.insert(key.as_str().into(), Value::Null);
            }
            let has_registry_key = keys.contains_key(&PartKind::Registry);
            let is_image = under_image
                || has_registry_key
                || keys.contains_key(&PartKind::Tag)
                || stem.contains("image");
            self.fill_registry(values, &keys, scope.registries, is_image, &repository);
            let has_digest = part_text(values, &keys, PartKind::Digest).is_some();
            let is_pinned = repository
                .parse::<ImageRef>()
                .map_or(true, |reference| reference.is_pinned());
            // the tag of `dockerRepository` is the version of KKP (Kubermatic) itself
            if is_pinned || has_digest || !is_image || stem == "docker" {
                continue;
            }
            let registry = values
                .get(key_of(&keys, PartKind::Registry))
                .and_then(plain);
            let base = match registry {
                Some(host) => format!("{host}/{repository}"),
                None => repository,
            };
            self.fill_tag(values, &keys, &base, scope.version);
        }
    }

    /// Fills in the inherited registry of the image `repository`, unless its own applies.
    fn fill_registry(
        &mut self,
        values: &mut Mapping,
        keys: &BTreeMap<PartKind, String>,
        registries: &InheritedDefaults,
        is_image: bool,
        repository: &str,
    ) {
        let has_key = keys.contains_key(&PartKind::Registry);
        let key = key_of(keys, PartKind::Registry);
        if let Some(registry) = registries
            .global
            .as_ref()
            .filter(|_| has_key || !has_host(repository))
        {
            values.insert(key.into(), registry.as_str().into());
            return;
        }
        let has_own = has_host(repository) || values.get(&*key).and_then(plain).is_some();
        let in_list = self.path.iter().any(|key| key.starts_with('['));
        if let Some(registry) = registries
            .default
            .as_ref()
            .filter(|_| is_image && !has_own && !in_list)
        {
            values.insert(key.as_str().into(), registry.as_str().into());
            self.filled
                .inherited
                .push([&self.path[..], &[key]].concat());
        }
    }

    /// Fills in the tag of the image `base`: its own tag or else `version`. If this tag is not
    /// locked, a locked tag that adds a suffix to it is used, because templates append suffixes.
    fn fill_tag(
        &mut self,
        values: &mut Mapping,
        keys: &BTreeMap<PartKind, String>,
        base: &str,
        version: Option<&str>,
    ) {
        let key = key_of(keys, PartKind::Tag);
        let own = values.get(&*key).and_then(plain);
        let Some(version) = own.as_deref().or(version) else {
            return;
        };
        let tag = if own.is_some() {
            self.locked_tag(base, &[version.to_owned()])
        } else {
            self.locked_tag(base, &versions(version))
        };
        if let Some(tag) = tag {
            values.insert(key.into(), tag.into());
        } else if own.is_none() {
            values.insert(key.as_str().into(), version.into());
            let other = self
                .inventory
                .tags(base)
                .first()
                .map(|tag| format!("{base}:{tag}"));
            let locked = other.and_then(|other| other.parse().ok());
            let path = [&self.path[..], &[key]].concat();
            self.filled
                .other_tags
                .extend(locked.map(|locked| (path, locked)));
        }
    }

    /// The locked tag of the image `base` that is one of `versions`, or begins with one of them and
    /// `-`.
    fn locked_tag(&self, base: &str, versions: &[String]) -> Option<String> {
        let tags = self.inventory.tags(base);
        let exact = versions
            .iter()
            .find(|version| tags.contains(&version.as_str()));
        if let Some(exact) = exact {
            return Some(exact.clone());
        }
        let longer = tags.iter().find(|tag| {
            versions
                .iter()
                .any(|version| tag.starts_with(&format!("{version}-")))
        })?;
        Some((*longer).to_owned())
    }
}

/// Makes the key `image` the repository of a reference that has a tag but no repository. If the
/// value of `repository` is the prefix of the name in `image`, `repository` becomes the registry,
/// and `image` the repository.
fn add_image(values: &Mapping, stem: &str, keys: &mut BTreeMap<PartKind, String>) {
    let text = |key: &str| values.get(key).and_then(plain);
    let Some(image) = values.get("image").and_then(Value::as_str) else {
        return;
    };
    let prefix = keys
        .get(&PartKind::Repository)
        .filter(|_| stem.is_empty() && !keys.contains_key(&PartKind::Registry));
    match prefix
        .filter(|key| is_prefix_of(&text(key).unwrap_or_default(), image))
        .cloned()
    {
        Some(key) => {
            keys.extend([
                (PartKind::Registry, key),
                (PartKind::Repository, "image".into()),
            ]);
            if text("version").is_some() {
                keys.entry(PartKind::Tag)
                    .or_insert_with(|| "version".into());
            }
        }
        None if ["", "image"].contains(&stem) && keys.contains_key(&PartKind::Tag) => {
            keys.entry(PartKind::Repository)
                .or_insert_with(|| "image".into());
        }
        None => {}
    }
}

/// Makes the key `name` the repository of an image that has a tag but no repository.
fn add_name(values: &Mapping, keys: &mut BTreeMap<PartKind, String>) {
    if part_text(values, keys, PartKind::Repository).is_none()
        && keys.contains_key(&PartKind::Tag)
        && values.get("name").and_then(plain).is_some()
    {
        keys.insert(PartKind::Repository, "name".into());
    }
}

/// Makes the key `version` the tag of a repository that has neither tag nor digest.
fn add_version(values: &Mapping, keys: &mut BTreeMap<PartKind, String>) {
    let has_version = values.get("version").and_then(plain).is_some();
    let has = |part: PartKind| keys.contains_key(&part);
    if has_version && has(PartKind::Repository) && !has(PartKind::Digest) {
        keys.entry(PartKind::Tag)
            .or_insert_with(|| "version".into());
    }
}

/// The registry at `path` of `values`.
fn registry_at(values: &Mapping, path: &[&str]) -> Option<String> {
    text_at(values, path).filter(|text| has_host(&format!("{text}/x")))
}

/// The registry of the images of a chart that have none of their own, and its path: the `registry`
/// of the chart, or that of a mapping `image` that names no image.
fn own_registry(values: &Mapping) -> Option<(String, &'static [&'static str])> {
    const CHART: &[&str] = &["registry"];
    const IMAGE: &[&str] = &["image", "registry"];
    let names_image = |values: &Mapping| {
        let mut keys = ["repository", "image", "name"].iter();
        keys.any(|key| values.get(*key).and_then(plain).is_some())
    };
    if let Some(registry) = registry_at(values, CHART).filter(|_| !names_image(values)) {
        return Some((registry, CHART));
    }
    let image = values.get("image").and_then(Value::as_mapping)?;
    // without a host, it is an account of Docker Hub
    let registry = text_at(values, IMAGE).filter(|text| !text.contains("://"))?;
    (!names_image(image)).then_some((registry, IMAGE))
}

/// The text at `path` of `values`.
fn text_at(values: &Mapping, path: &[&str]) -> Option<String> {
    at(values, path).and_then(plain)
}

fn at<'v>(values: &'v Mapping, path: &[&str]) -> Option<&'v Value> {
    let (first, rest) = path.split_first()?;
    rest.iter()
        .fold(values.get(*first), |value, key| value?.get(*key))
}

fn at_mut<'v>(values: &'v mut Mapping, path: &[&str]) -> Option<&'v mut Value> {
    let (first, rest) = path.split_first()?;
    rest.iter()
        .fold(values.get_mut(*first), |value, key| value?.get_mut(*key))
}

/// Whether all images in `values` are split references whose repositories name no host, and none of
/// them is in a list.
fn has_only_names(values: &Mapping) -> bool {
    values.iter().all(|(key, value)| {
        let key = key.as_str().unwrap_or_default();
        let names_repository = matches!(part(key), Some((_, PartKind::Repository)));
        match value {
            Value::String(name) if names_repository => !has_host(name),
            Value::String(text) => {
                let is_image = key.to_ascii_lowercase().ends_with("image");
                !is_image || text.is_empty() || text.contains("{{")
            }
            Value::Mapping(values) => has_only_names(values),
            Value::Sequence(items) => items.iter().all(has_no_repository),
            _ => true,
        }
    })
}

/// Whether an item of a list neither is nor contains a split reference.
fn has_no_repository(item: &Value) -> bool {
    match item {
        Value::Sequence(items) => items.iter().all(has_no_repository),
        Value::Mapping(values) => values.iter().all(|(key, value)| {
            let part = key.as_str().and_then(part);
            !matches!(part, Some((_, PartKind::Repository))) && has_no_repository(value)
        }),
        _ => true,
    }
}

/// The tags that templates make from `version`: often they add a `v`, or remove it.
fn versions(version: &str) -> [String; 2] {
    let other = version
        .strip_prefix('v')
        .map_or_else(|| format!("v{version}"), str::to_owned);
    [version.to_owned(), other]
}

/// The key of the registry or tag in `keys` or, if there is none, the key that it would have.
fn key_of(keys: &BTreeMap<PartKind, String>, part: PartKind) -> String {
    let word = match part {
        PartKind::Registry => "registry",
        _ => "tag",
    };
    keys.get(&part).cloned().unwrap_or_else(|| like(keys, word))
}

/// The text of a part of the image with these `keys`, if it is not empty.
fn part_text(
    values: &Mapping,
    keys: &BTreeMap<PartKind, String>,
    part: PartKind,
) -> Option<String> {
    plain(values.get(keys.get(&part)?)?)
}

fn is_image(key: &str) -> bool {
    key.to_ascii_lowercase().contains("image")
}

/// The key of another part in the style of the repository's key: `imageTag` for `imageRepository`.
fn like(keys: &BTreeMap<PartKind, String>, word: &str) -> String {
    let repository = keys
        .get(&PartKind::Repository)
        .map(String::as_str)
        .unwrap_or_default();
    let lower = repository.to_ascii_lowercase();
    let beginning = lower
        .strip_suffix("repository")
        .or_else(|| lower.strip_suffix("repo"));
    let beginning = &repository[..beginning.map_or(0, str::len)];
    let capital = repository[beginning.len()..].starts_with('R');
    let word = if capital {
        word[..1].to_ascii_uppercase() + &word[1..]
    } else {
        word.to_owned()
    };
    format!("{beginning}{word}")
}

// Reads the actions `{{ … }}` of Go templates: the values, variables, helpers and texts in them.

/// The content of each `{{ … }}`, except `if`, `else`, `end` and comments.
pub(super) fn actions(text: &str) -> impl Iterator<Item = &str> {
    let inside = text
        .split("{{")
        .skip(1)
        .map(|rest| rest.split("}}").next().unwrap_or(rest));
    let inside = inside.map(|action| action.trim_matches(['-', ' ', '\t', '\n']));
    inside.filter(|action| {
        !["if ", "else", "end", "/*"]
            .iter()
            .any(|word| action.starts_with(word))
    })
}

/// The paths after each `.Values.`.
pub(super) fn value_paths(action: &str) -> impl Iterator<Item = &str> {
    action.split(".Values.").skip(1).map(|rest| {
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c)))
            .unwrap_or(rest.len());
        rest[..end].trim_end_matches('.')
    })
}

/// Whether an action only inserts values, without a default or a helper.
pub(super) fn is_value_alone(action: &str) -> bool {
    const HARMLESS: [&str; 8] = ["|", "quote", "trim", "toString", "tpl", ".", "$", "toYaml"];
    words(action).all(|word| {
        word.starts_with(".Values.") || word.starts_with("$.Values.") || HARMLESS.contains(&word)
    })
}

/// The names of the helpers that an action calls.
pub(super) fn calls(action: &str) -> impl Iterator<Item = &str> {
    let included = action.split("include ").skip(1);
    let called = action.split("template ").skip(1);
    included
        .chain(called)
        .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
}

/// The quoted texts of an action.
pub(super) fn literals(action: &str) -> impl Iterator<Item = &str> {
    action.split('"').skip(1).step_by(2)
}

/// The variables that an action reads: `$image` in `$image.tag`.
pub(super) fn variables(action: &str) -> impl Iterator<Item = &str> {
    words(action).filter_map(|word| {
        let name = word.strip_prefix('$')?.split('.').next()?;
        (!name.is_empty()).then(|| &word[..=name.len()])
    })
}

/// The expressions that `text` assigns to a variable.
pub(super) fn assignments<'t>(text: &'t str, variable: &str) -> impl Iterator<Item = &'t str> {
    text.match_indices(variable).filter_map(move |(at, _)| {
        let rest = text[at + variable.len()..].trim_start();
        let value = rest.strip_prefix(":=").or_else(|| rest.strip_prefix('='))?;
        value.split("}}").next()
    })
}

/// The words of an action, without parentheses.
pub(super) fn words(action: &str) -> impl Iterator<Item = &str> {
    action
        .split(|c: char| c.is_whitespace() || "()".contains(c))
        .filter(|word| !word.is_empty())
}

/// The keys of a word that is a field of the current object (`.`), not of the values, the chart or
/// the release.
pub(super) fn field_keys(word: &str) -> Option<Vec<&str>> {
    const ROOT_OBJECTS: [&str; 6] = [
        "Values",
        "Chart",
        "Release",
        "Capabilities",
        "Template",
        "Files",
    ];
    let keys: Vec<&str> = word.strip_prefix('.')?.split('.').collect();
    (!keys[0].is_empty() && !ROOT_OBJECTS.contains(&keys[0])).then_some(keys)
}

/// The text without its comments, which may contain example calls of helpers.
pub(super) fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once("*/").map_or("", |(_, rest)| rest)
    })
}
