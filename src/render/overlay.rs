//! An overlay of Helm values that points charts at the site: the image keys of the charts' defaults, and nothing else.
//!
//! The defaults of a chart and its subcharts are combined as Helm does and rewritten like any other document; what
//! differs afterwards is the overlay.

use super::error::RenderError;
use crate::rewrite::audit::{
    Coverage, FileFinding, Finding, Inventory, audit, dotted, fill_template_defaults, in_chart,
};
use crate::rewrite::{Chart, Meaning, Options, Syntax, coalesce, rewrite, values_of};
use serde::Serialize;
use serde_yaml::{Mapping, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// Values to lay over a chart's defaults.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    /// The values.
    pub(super) values: Mapping,
    /// The same key by key.
    pub(super) keys: Vec<Key>,
    /// Images that are not in the overlay: missing from the lock, or undecided.
    pub(super) open: Vec<FileFinding>,
    /// Locked items that the charts name.
    pub(super) held: Vec<String>,
}

/// A key of an overlay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Key {
    /// The path of the key, as in `helm --set`.
    pub(super) path: String,
    /// The value in the charts, or in the user's values.
    pub(super) from: String,
    /// The value in the overlay.
    pub(super) to: String,
    /// Whether it is a list: Helm takes a list as a whole, so all of it is in the overlay.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) list: bool,
}

/// The overlay for `charts`, installed with the values `user` as well. `registry` is where all items go.
///
/// # Errors
/// When two charts need different values under one key.
pub(super) fn overlay(
    charts: &[Chart],
    user: &Mapping,
    inventory: &Inventory<'_>,
    registry: &str,
) -> Result<Overlay, RenderError> {
    let mut all = Overlay::default();
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    for chart in charts {
        let one = overlay_of(chart, user, inventory, registry)?;
        for key in &one.keys {
            let same = all.keys.iter().find(|other| other.path == key.path);
            if let (Some(other), Some(first)) = (same, owners.get(&key.path))
                && other.to != key.to
            {
                let (first, second) = ((*first).to_owned(), chart.name.clone());
                return Err(RenderError::Clash { first, second, path: key.path.clone() });
            }
            owners.entry(key.path.clone()).or_insert(&chart.name);
        }
        coalesce(&mut all.values, &one.values);
        all.keys.extend(one.keys);
        all.open.extend(one.open);
        all.held.extend(one.held);
    }
    all.keys.sort_by(|a, b| a.path.cmp(&b.path));
    all.keys.dedup();
    all.held.sort();
    all.held.dedup();
    Ok(all)
}

fn overlay_of(
    chart: &Chart,
    user: &Mapping,
    inventory: &Inventory<'_>,
    registry: &str,
) -> Result<Overlay, RenderError> {
    let name = || chart.name.clone();
    let mut values = chart.effective(user);
    let globals = fill_template_defaults(chart, &mut values, inventory);
    let text =
        serde_yaml::to_string(&values).map_err(|source| RenderError::Values { chart: name(), source })?;
    let rewritten = rewrite(&text, Syntax::Document, inventory.index(), Options::default());
    let mut new = values_of(&chart.name, &rewritten.text)?;
    if new != values {
        for path in &globals {
            at_mut(&mut new, path).into_iter().for_each(|value| *value = registry.into());
        }
    }
    let mut overlay = Overlay::default();
    overlay.values = differing(&values, &new, &mut Vec::new(), &mut overlay.keys);
    let left = |finding: &Finding| {
        rewritten.scan.found.iter().find_map(|one| match &one.meaning {
            Meaning::Left { why } if (one.line, one.column) == (finding.line, finding.column) => {
                Some(why.clone())
            }
            _ => None,
        })
    };
    for finding in audit(Path::new("values.yaml"), &text, inventory) {
        let left = left(&finding);
        let mut placed = in_chart(chart, &values, finding);
        if let (Coverage::Held { .. }, Some(why)) = (&placed.finding.coverage, left) {
            placed.finding.coverage = Coverage::Undecided { why };
        }
        match &placed.finding.coverage {
            Coverage::Held { item } => overlay.held.push(item.clone()),
            // a URL of a file is nothing that a chart's images are made of
            _ if placed.finding.reference.contains("://") => {}
            _ => overlay.open.push(placed),
        }
    }
    Ok(overlay)
}

fn at_mut<'v>(values: &'v mut Mapping, path: &[String]) -> Option<&'v mut Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().fold(values.get_mut(first), |value, key| value?.get_mut(key))
}

/// What `new` has other than `old`: the same keys are in both.
fn differing(old: &Mapping, new: &Mapping, path: &mut Vec<String>, keys: &mut Vec<Key>) -> Mapping {
    let mut out = Mapping::new();
    for (key, value) in new {
        let Some(before) = old.get(key).filter(|before| *before != value) else { continue };
        path.push(key.as_str().unwrap_or_default().to_owned());
        match (before, value) {
            (Value::Mapping(before), Value::Mapping(value)) => {
                out.insert(key.clone(), differing(before, value, path, keys).into());
            }
            _ => {
                out.insert(key.clone(), value.clone());
                let list = value.is_sequence();
                keys.push(Key { path: dotted(path), from: shown(before), to: shown(value), list });
            }
        }
        path.pop();
    }
    out
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}
