//! Unusual responses, accounts and tokens, hosts that do not answer, and limits of manifests.

mod accounts;
mod answers;
mod headers;
mod hosts;
mod in_transit;
mod manifest_limits;

use crate::support::Place;
use serde_json::Value;

/// Writes a manifest with these sections.
fn manifest(place: &Place, sections: &str) {
    place.write(
        "m.yaml",
        format!("apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\n{sections}"),
    );
}

/// The reason of each item in the order of the report; empty if there is none. The report must have
/// items.
fn reasons(report: &Value) -> Vec<&str> {
    let items = report["items"].as_array().unwrap();
    assert!(!items.is_empty(), "{report:#}");
    items
        .iter()
        .map(|item| item["reason"].as_str().unwrap_or_default())
        .collect()
}
