//! What a chart's templates make of its values: the tag that is `appVersion` where none is written,
//! the registry that `global.imageRegistry` puts in place of all others, and the one that counts
//! where an image has none.

use super::inventory::Inventory;
use crate::chart::{Chart, plain};
use crate::reference_parts::{Part, is_prefix_of, part};
use landfall_model::{ImageRef, has_host};
use serde_yaml::{Mapping, Value};
use std::collections::BTreeMap;

/// What was filled in, by paths of keys.
#[derive(Debug, Default)]
pub struct TemplateDefaults {
    /// Registries that count for several images: `global.imageRegistry`, `global.image.registry`,
    /// `registry`.
    pub registries: Vec<Vec<String>>,
    /// Registries that stand only above the image that they were filled into.
    pub inherited: Vec<Vec<String>>,
    /// Tags by `appVersion` that are not locked: the template may have another one in mind.
    pub other_tags: Vec<OtherTag>,
}

/// A tag that is not locked, in a repository that has a locked one.
#[derive(Debug)]
pub struct OtherTag {
    /// The path of its key.
    pub path: Vec<String>,
    /// The locked image.
    pub locked: ImageRef,
}

/// Fills in `values`, the effective values of `chart`, what its templates would: so that every
/// image in them reads as it is pulled.
pub fn fill_template_defaults(
    chart: &Chart,
    values: &mut Mapping,
    inventory: &Inventory<'_>,
) -> TemplateDefaults {
    let mut filler = Filler {
        inventory,
        path: Vec::new(),
        filled: TemplateDefaults::default(),
    };
    filler.chart(chart, values, Registries::default());
    filler.filled
}

struct Filler<'a> {
    inventory: &'a Inventory<'a>,
    path: Vec<String>,
    filled: TemplateDefaults,
}

/// The registries that a chart has from its parent.
#[derive(Debug, Clone, Default)]
struct Registries {
    /// It counts in place of all others.
    global: Option<String>,
    /// It counts where an image has none.
    default: Option<String>,
}

/// What counts in a chart.
#[derive(Clone, Copy)]
struct Scope<'a> {
    registries: &'a Registries,
    version: Option<&'a str>,
}

impl Filler<'_> {
    fn chart(&mut self, chart: &Chart, values: &mut Mapping, above: Registries) {
        let global = self.registry(values, &["global", "imageRegistry"]);
        // it counts where an image has none (ingress-nginx), or for all; then those that have one
        // have the same
        let shared = self.registry(values, &["global", "image", "registry"]);
        let has_image = ["repository", "image", "name"]
            .iter()
            .any(|key| values.contains_key(*key));
        let own = if has_image {
            None
        } else {
            registry_at(values, &["registry"])
        };
        let tag = values.get("tag").and_then(plain).filter(|_| own.is_some());
        // a parent's globals win
        let below = Registries {
            global: above.global.or(global),
            default: above.default.or(shared),
        };
        let default = own.clone().or_else(|| below.default.clone());
        let registries = Registries {
            default,
            ..below.clone()
        };
        let version = tag.as_deref().or(chart.app_version.as_deref());
        let scope = Scope {
            registries: &registries,
            version,
        };
        let inherited = self.filled.inherited.len();
        self.references(values, scope, false);
        for (key, value) in values
            .iter_mut()
            .filter_map(|(key, value)| Some((key.as_str()?, value)))
        {
            self.path.push(key.to_owned());
            match (chart.subcharts.iter().find(|chart| chart.key == key), value) {
                (Some(chart), Value::Mapping(values)) => self.chart(chart, values, below.clone()),
                (_, value) => self.value(value, scope, is_image(key)),
            }
            self.path.pop();
        }
        if own.is_some() && self.filled.inherited.len() > inherited {
            self.filled
                .registries
                .push([&self.path[..], &["registry".into()]].concat());
        }
    }

    /// The registry at `path` of a chart's `values`. It is noted.
    fn registry(&mut self, values: &Mapping, path: &[&str]) -> Option<String> {
        let registry = registry_at(values, path)?;
        let path = path.iter().map(|key| (*key).to_owned());
        self.filled
            .registries
            .push(self.path.iter().cloned().chain(path).collect());
        Some(registry)
    }

    fn value(&mut self, value: &mut Value, scope: Scope<'_>, under_image: bool) {
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

    /// Completes the references whose parts are keys of this mapping.
    fn references(&mut self, values: &mut Mapping, scope: Scope<'_>, under_image: bool) {
        let mut groups: BTreeMap<String, BTreeMap<Part, String>> = BTreeMap::new();
        for key in values.keys().filter_map(Value::as_str) {
            if let Some((stem, part)) = part(key) {
                groups.entry(stem).or_default().insert(part, key.to_owned());
            }
        }
        // Kyverno's key for the registry of an image that has none
        let default = groups
            .remove("default")
            .and_then(|mut keys| keys.remove(&Part::Registry));
        if let (Some(key), Some(keys)) = (default, groups.get_mut("")) {
            let has_own = keys
                .get(&Part::Registry)
                .and_then(|key| plain(values.get(key)?))
                .is_some();
            if !has_own {
                keys.insert(Part::Registry, key);
            }
        }
        // Cilium's way to leave a digest out
        let no_digest = values.get("useDigest") == Some(&Value::Bool(false));
        for (stem, mut keys) in groups {
            add_image(values, &stem, &mut keys);
            let Some(repository) = keys
                .get(&Part::Repository)
                .and_then(|key| plain(values.get(key)?))
            else {
                continue;
            };
            if let Some(key) = keys.get(&Part::Digest).filter(|_| no_digest) {
                values.insert(key.as_str().into(), Value::Null);
            }
            let has_registry_key = keys.contains_key(&Part::Registry);
            let is_image = under_image
                || has_registry_key
                || keys.contains_key(&Part::Tag)
                || stem.contains("image");
            self.fill_registry(values, &keys, scope.registries, is_image, &repository);
            let has = |part: Part| {
                keys.get(&part)
                    .and_then(|key| plain(values.get(key)?))
                    .is_some()
            };
            let is_pinned = repository
                .parse::<ImageRef>()
                .map_or(true, |reference| reference.is_pinned());
            // `dockerRepository` has KKP's own version
            if is_pinned || has(Part::Digest) || !is_image || stem == "docker" {
                continue;
            }
            let registry = values.get(key_of(&keys, Part::Registry)).and_then(plain);
            let base = match registry {
                Some(host) => format!("{host}/{repository}"),
                None => repository,
            };
            self.fill_tag(values, &keys, &base, scope.version);
        }
    }

    /// Fills in the registry that counts for the image `repository`, where it is not its own.
    fn fill_registry(
        &mut self,
        values: &mut Mapping,
        keys: &BTreeMap<Part, String>,
        registries: &Registries,
        is_image: bool,
        repository: &str,
    ) {
        let has_key = keys.contains_key(&Part::Registry);
        let key = key_of(keys, Part::Registry);
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

    /// Fills in the tag of the image `base`: what counts is `version` where it has none, and what
    /// is locked where the template puts more behind it.
    fn fill_tag(
        &mut self,
        values: &mut Mapping,
        keys: &BTreeMap<Part, String>,
        base: &str,
        version: Option<&str>,
    ) {
        let key = key_of(keys, Part::Tag);
        let own = values.get(&*key).and_then(plain);
        let Some(version) = own.as_deref().or(version) else {
            return;
        };
        let tag = match own.is_some() {
            true => self.locked_tag(base, &[version.to_owned()]),
            false => self.locked_tag(base, &versions(version)),
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
                .extend(locked.map(|locked| OtherTag { path, locked }));
        }
    }

    /// The locked tag of the image `base` that is one of `versions`, or begins with it.
    fn locked_tag(&self, base: &str, versions: &[String]) -> Option<String> {
        let tags = self.inventory.tags(base);
        let exact = versions
            .iter()
            .find(|version| tags.contains(&version.as_str()));
        let longer = || {
            let is_longer = |tag: &&&str| {
                versions
                    .iter()
                    .any(|one| tag.starts_with(&format!("{one}-")))
            };
            tags.iter().find(is_longer).map(|tag| (*tag).to_owned())
        };
        exact.cloned().or_else(longer)
    }
}

/// Adds to the `keys` of a reference what `image` beside them is.
fn add_image(values: &Mapping, stem: &str, keys: &mut BTreeMap<Part, String>) {
    let text = |key: &str| values.get(key).and_then(plain);
    let Some(image) = values.get("image").and_then(Value::as_str) else {
        return;
    };
    let prefix = keys
        .get(&Part::Repository)
        .filter(|_| stem.is_empty() && !keys.contains_key(&Part::Registry));
    match prefix
        .filter(|key| is_prefix_of(&text(key).unwrap_or_default(), image))
        .cloned()
    {
        Some(key) => {
            keys.extend([(Part::Registry, key), (Part::Repository, "image".into())]);
            if text("version").is_some() {
                keys.entry(Part::Tag).or_insert_with(|| "version".into());
            }
        }
        None if ["", "image"].contains(&stem) && keys.contains_key(&Part::Tag) => {
            keys.entry(Part::Repository)
                .or_insert_with(|| "image".into());
        }
        None => {}
    }
}

/// The registry at `path` of `values`.
fn registry_at(values: &Mapping, path: &[&str]) -> Option<String> {
    let (first, rest) = path.split_first()?;
    let value = rest
        .iter()
        .fold(values.get(*first), |value, key| value?.get(*key));
    value
        .and_then(plain)
        .filter(|text| has_host(&format!("{text}/x")))
}

/// `version` as templates make a tag of it: often they put a `v` before it, or take it away.
fn versions(version: &str) -> [String; 2] {
    let other = version
        .strip_prefix('v')
        .map_or_else(|| format!("v{version}"), str::to_owned);
    [version.to_owned(), other]
}

/// The key of a part, or what it would be called.
fn key_of(keys: &BTreeMap<Part, String>, part: Part) -> String {
    let word = match part {
        Part::Registry => "registry",
        _ => "tag",
    };
    keys.get(&part).cloned().unwrap_or_else(|| like(keys, word))
}

fn is_image(key: &str) -> bool {
    key.to_ascii_lowercase().contains("image")
}

/// The key of another part, spelled as the repository's: `imageRepository`, `imageTag`.
fn like(keys: &BTreeMap<Part, String>, word: &str) -> String {
    let repository = keys
        .get(&Part::Repository)
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
