//! Docker Hub, which has several names.

/// Docker Hub, as references name it.
pub(crate) const HUB: &str = "docker.io";

/// The name by which references know `host`: Docker Hub has several.
pub fn canonical_host(host: &str) -> &str {
    if matches!(host, "index.docker.io" | "registry-1.docker.io") {
        HUB
    } else {
        host
    }
}
