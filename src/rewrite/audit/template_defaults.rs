//! What a chart's templates make of its values: the tag that is `appVersion` where none is written, and
//! the registry that `global.imageRegistry` puts in place of all others.

use super::finding::Coverage;
use super::inventory::Inventory;
use crate::model::{ImageRef, names_host};
use crate::rewrite::chart::{Chart, plain};
use crate::rewrite::reference_parts::{Part, part};
use serde_yaml::{Mapping, Value};
use std::collections::BTreeMap;

/// Fills in `values`, the effective values of `chart`, what its templates would: so that every image in
/// them reads as it is pulled. Gives the paths of the `global.imageRegistry` keys that count.
pub(crate) fn fill_template_defaults(
    chart: &Chart,
    values: &mut Mapping,
    inventory: &Inventory<'_>,
) -> Vec<Vec<String>> {
    let mut filler = Filler { inventory, path: Vec::new(), globals: Vec::new() };
    filler.chart(chart, values, None);
    filler.globals
}

struct Filler<'a> {
    inventory: &'a Inventory<'a>,
    path: Vec<String>,
    globals: Vec<Vec<String>>,
}

/// What counts in a chart.
#[derive(Clone, Copy)]
struct Scope<'a> {
    registry: Option<&'a str>,
    app_version: Option<&'a str>,
}

impl Filler<'_> {
    fn chart(&mut self, chart: &Chart, values: &mut Mapping, above: Option<&str>) {
        let own = values.get("global").and_then(|global| global.get("imageRegistry")).and_then(plain);
        // a parent's globals win
        if own.is_some() {
            self.globals.push([&self.path[..], &["global".into(), "imageRegistry".into()]].concat());
        }
        let registry = above.map(str::to_owned).or(own);
        let scope = Scope { registry: registry.as_deref(), app_version: chart.app_version.as_deref() };
        self.references(values, scope, false);
        for (key, value) in values.iter_mut().filter_map(|(key, value)| Some((key.as_str()?, value))) {
            self.path.push(key.to_owned());
            match (chart.subcharts.iter().find(|chart| chart.key == key), value) {
                (Some(chart), Value::Mapping(values)) => self.chart(chart, values, scope.registry),
                (_, value) => self.value(value, scope, is_image(key)),
            }
            self.path.pop();
        }
    }

    fn value(&mut self, value: &mut Value, scope: Scope<'_>, under_image: bool) {
        match value {
            Value::Sequence(items) => items.iter_mut().for_each(|item| self.value(item, scope, under_image)),
            Value::Mapping(values) => {
                self.references(values, scope, under_image);
                for (key, value) in values.iter_mut() {
                    self.value(value, scope, key.as_str().is_some_and(is_image));
                }
            }
            _ => {}
        }
    }

    /// Completes the references whose parts are keys of this mapping.
    fn references(&self, values: &mut Mapping, scope: Scope<'_>, under_image: bool) {
        let mut groups: BTreeMap<String, BTreeMap<Part, String>> = BTreeMap::new();
        for key in values.keys().filter_map(Value::as_str) {
            if let Some((stem, part)) = part(key) {
                groups.entry(stem).or_default().insert(part, key.to_owned());
            }
        }
        // Cilium's way to leave a digest out
        let no_digest = values.get("useDigest") == Some(&Value::Bool(false));
        for (stem, mut keys) in groups {
            let image =
                ["", "image"].contains(&stem.as_str()) && values.get("image").is_some_and(Value::is_string);
            if image && keys.contains_key(&Part::Tag) {
                keys.entry(Part::Repository).or_insert_with(|| "image".into());
            }
            let Some(repository) = keys.get(&Part::Repository).and_then(|key| plain(values.get(key)?)) else {
                continue;
            };
            if let Some(key) = keys.get(&Part::Digest).filter(|_| no_digest) {
                values.insert(key.as_str().into(), Value::Null);
            }
            let sibling =
                |part: Part, word: &str| keys.get(&part).cloned().unwrap_or_else(|| like(&keys, word));
            let has_registry_key = keys.contains_key(&Part::Registry);
            if let Some(registry) = scope.registry.filter(|_| has_registry_key || !names_host(&repository)) {
                values.insert(sibling(Part::Registry, "registry").into(), registry.into());
            }
            let has = |part: Part| keys.get(&part).and_then(|key| plain(values.get(key)?)).is_some();
            let is_pinned = repository.parse::<ImageRef>().map_or(true, |reference| reference.is_pinned());
            let is_image =
                under_image || has_registry_key || keys.contains_key(&Part::Tag) || stem.contains("image");
            // `dockerRepository` has KKP's own version
            if is_pinned || has(Part::Tag) || has(Part::Digest) || !is_image || stem == "docker" {
                continue;
            }
            if let Some(version) = scope.app_version {
                let registry = values.get(sibling(Part::Registry, "registry")).and_then(plain);
                let base = registry.map(|host| format!("{host}/{repository}")).unwrap_or(repository);
                values.insert(sibling(Part::Tag, "tag").into(), self.tag(&base, version).into());
            }
        }
    }

    /// The tag by `appVersion`: templates often put a `v` before it, or take it away.
    fn tag(&self, base: &str, version: &str) -> String {
        let other = version.strip_prefix('v').map_or_else(|| format!("v{version}"), str::to_owned);
        let held = |tag: &&String| {
            let reference = format!("{base}:{tag}").parse::<ImageRef>();
            reference.is_ok_and(|name| matches!(self.inventory.decide(&name, true), Coverage::Held { .. }))
        };
        let versions = [version.to_owned(), other];
        versions.iter().find(held).unwrap_or(&versions[0]).clone()
    }
}

fn is_image(key: &str) -> bool {
    key.to_ascii_lowercase().contains("image")
}

/// The key of another part, spelled as the repository's: `imageRepository`, `imageTag`.
fn like(keys: &BTreeMap<Part, String>, word: &str) -> String {
    let repository = keys.get(&Part::Repository).map(String::as_str).unwrap_or_default();
    let lower = repository.to_ascii_lowercase();
    let beginning = lower.strip_suffix("repository").or_else(|| lower.strip_suffix("repo"));
    let beginning = &repository[..beginning.map_or(0, str::len)];
    let capital = repository[beginning.len()..].starts_with('R');
    let word = if capital { word[..1].to_ascii_uppercase() + &word[1..] } else { word.to_owned() };
    format!("{beginning}{word}")
}
