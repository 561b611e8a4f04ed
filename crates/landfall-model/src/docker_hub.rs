//! Docker Hub and its host names.

/// The host of Docker Hub in references.
pub(crate) const HUB: &str = "docker.io";

/// Returns the host that references use for `host`: `docker.io` for each name of Docker Hub.
pub fn canonical_host(host: &str) -> &str {
    if matches!(host, "index.docker.io" | "registry-1.docker.io") {
        HUB
    } else {
        host
    }
}
