//! Registry hosts that serve the same repositories under two names.

use super::ImageRef;

const ALIASES: [(&str, &str); 2] = [
    ("k8s.gcr.io", "registry.k8s.io"),
    ("registry.k8s.io", "k8s.gcr.io"),
];

/// Returns the other hosts that serve the same repositories as `host`.
pub fn alias_hosts(host: &str) -> impl Iterator<Item = &'static str> {
    ALIASES
        .iter()
        .filter(move |(known, _)| *known == host)
        .map(|(_, alias)| *alias)
}

/// Returns `registry/repository` of `reference`, followed by its names at alias hosts.
pub fn reference_names(reference: &ImageRef) -> impl Iterator<Item = String> {
    let others =
        alias_hosts(&reference.registry).map(|alias| format!("{alias}/{}", reference.repository));
    std::iter::once(reference.name()).chain(others)
}
