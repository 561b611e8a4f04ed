//! Facts about public registries: their hosts, and names that no image has.

use landfall_model::ImageRef;

/// Whether `host` is a public registry or is named like one.
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
        || ["registry.", "docker."]
            .iter()
            .any(|beginning| name.starts_with(beginning))
}

/// The reason why no registry has an image of this name, if that is certain.
pub(super) fn why_impossible(reference: &ImageRef) -> Option<&'static str> {
    // in these registries, all images are below the name of an owner
    const OWNED: [&str; 5] = [
        "quay.io",
        "ghcr.io",
        "gcr.io",
        "public.ecr.aws",
        "registry.gitlab.com",
    ];
    let ImageRef {
        registry,
        repository,
        ..
    } = reference;
    match repository.strip_prefix("library/") {
        Some(name) if registry == "docker.io" && name.contains('.') => {
            Some("it is the name of a host, and its path is added elsewhere")
        }
        _ if OWNED.contains(&registry.as_str()) && !repository.contains('/') => Some(
            "all images of this registry have at least two path components; the second is added \
             elsewhere",
        ),
        _ => None,
    }
}
