//! Hosts that are container registries beyond doubt.

/// Whether `host` is a public registry, or is named like one.
pub(super) fn is_registry(host: &str) -> bool {
    const HOSTS: [&str; 11] = [
        "docker.io",
        "gcr.io",
        "ghcr.io",
        "k8s.gcr.io",
        "mcr.microsoft.com",
        "nvcr.io",
        "public.ecr.aws",
        "quay.io",
        "registry.access.redhat.com",
        "registry.gitlab.com",
        "registry.redhat.io",
    ];
    const ENDINGS: [&str; 4] = [".gcr.io", ".pkg.dev", ".azurecr.io", ".amazonaws.com"];
    let name = host.split(':').next().unwrap_or(host);
    HOSTS.contains(&name)
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || ["registry.", "docker."].iter().any(|beginning| name.starts_with(beginning))
}
