//! The hosts that well-known registries and download sites use in addition to their own, as their
//! operators document them. These hosts are predictions for locks that nobody has pulled yet.

use super::pattern::EgressPattern;
use url::Url;

/// A registry or download site whose further hosts are documented.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KnownService {
    /// The host that is contacted first. If it begins with `*.`, it matches every name below.
    host: &'static str,
    /// The text that the path of a URL must contain; empty if any path matches.
    path: &'static str,
    /// The host that issues tokens, if it is another one.
    pub(super) tokens: Option<&'static str>,
    /// The hosts of the content. They may begin with `*.`. If there are none, everything comes from
    /// the first host.
    pub(super) content: &'static [&'static str],
    /// The URL of the operator's documentation.
    pub(super) source: &'static str,
    /// A note about facts that the list of hosts cannot express.
    pub(super) note: Option<&'static str>,
}

const QUAY_CONTENT: &[&str] = &[
    "cdn.quay.io",
    "cdn01.quay.io",
    "cdn02.quay.io",
    "cdn03.quay.io",
    "cdn04.quay.io",
    "cdn05.quay.io",
    "cdn06.quay.io",
];

const GITHUB_RELEASES: &[&str] = &[
    "objects.githubusercontent.com",
    "release-assets.githubusercontent.com",
];

/// Manifests come from a regional Artifact Registry, and blobs from the content delivery network.
const KUBERNETES_CONTENT: &[&str] = &["*.pkg.dev", "cdn.registry.k8s.io"];

const RED_HAT: &str = "https://access.redhat.com/articles/7084334";
const GITHUB: &str = "https://docs.github.com/en/actions/reference/runners/self-hosted-runners";
/// Says how to list the domain names of GitHub, of which `*.githubusercontent.com` is one.
const GITHUB_NAMES: &str = "https://docs.github.com/en/get-started/using-github/allowing-access-to-githubs-services-from-a-restricted-network";
const GOOGLE: &str = "https://docs.cloud.google.com/kubernetes-engine/distributed-cloud/bare-metal/docs/installing/proxy";
const KUBERNETES_REGISTRY: &str = "https://github.com/kubernetes/k8s.io/pull/9865";
const KUBERNETES_IN_AWS: Option<&str> = Some(
    "machines in AWS may get content from \
     prod-registry-k8s-io-REGION.s3.dualstack.REGION.amazonaws.com",
);

/// The services, sorted by host.
pub(super) const SERVICES: &[KnownService] = &[
    // the second host is that of registries with dedicated data endpoints
    service(
        "*.azurecr.io",
        &["*.blob.core.windows.net", "*.data.azurecr.io"],
        "https://learn.microsoft.com/en-us/azure/container-registry/container-registry-endpoint-reference",
    ),
    service("*.gcr.io", &["storage.googleapis.com"], GOOGLE),
    service("*.pkg.dev", &["storage.googleapis.com"], GOOGLE),
    service(
        "cgr.dev",
        &["9236a389bd48b984df91adc1bc924620.r2.cloudflarestorage.com"],
        "https://edu.chainguard.dev/chainguard/containers/registry/network-requirements/",
    ),
    // the redirect to cdn.dl.k8s.io ended in February 2026
    service(
        "dl.k8s.io",
        &[],
        "https://github.com/kubernetes/k8s.io/issues/9161",
    ),
    service("gcr.io", &["storage.googleapis.com"], GOOGLE),
    service("get.helm.sh", &[], "https://helm.sh/blog/get-helm-sh/"),
    service("ghcr.io", &["pkg-containers.githubusercontent.com"], GITHUB),
    KnownService {
        path: "/archive/",
        ..service("github.com", &["codeload.github.com"], GITHUB)
    },
    KnownService {
        path: "/info/lfs",
        ..service(
            "github.com",
            &["github-cloud.githubusercontent.com"],
            GITHUB,
        )
    },
    KnownService {
        path: "/raw/",
        ..service("github.com", &["raw.githubusercontent.com"], GITHUB_NAMES)
    },
    KnownService {
        path: "/releases/download/",
        ..service("github.com", GITHUB_RELEASES, GITHUB)
    },
    KnownService {
        path: "/releases/latest/download/",
        ..service("github.com", GITHUB_RELEASES, GITHUB)
    },
    service(
        "huggingface.co",
        &["*.hf.co"],
        "https://huggingface.co/docs/hub/models-downloading",
    ),
    KnownService {
        note: KUBERNETES_IN_AWS,
        ..service(
            "k8s.gcr.io",
            &["*.pkg.dev", "cdn.registry.k8s.io", "registry.k8s.io"],
            "https://kubernetes.io/blog/2023/03/10/image-registry-redirect/",
        )
    },
    service(
        "mcr.microsoft.com",
        &["*.data.mcr.microsoft.com"],
        "https://github.com/microsoft/containerregistry/blob/main/docs/mcr-endpoints-guidance.md",
    ),
    service(
        "pkgs.k8s.io",
        &["prod-cdn.packages.k8s.io"],
        "https://github.com/kubernetes/k8s.io/pull/5518",
    ),
    service(
        "public.ecr.aws",
        &[
            "d2glxqk2uabbnd.cloudfront.net",
            "d5l0dvt14r5h8.cloudfront.net",
        ],
        "https://anywhere.eks.amazonaws.com/docs/getting-started/",
    ),
    service("quay.io", QUAY_CONTENT, RED_HAT),
    service("raw.githubusercontent.com", &[], GITHUB_NAMES),
    KnownService {
        tokens: Some("auth.docker.io"),
        ..service(
            "registry-1.docker.io",
            &[
                "docker-images-prod.6aa30f8b08e16409b46e0173d6de2f56.r2.cloudflarestorage.com",
                "production.cloudflare.docker.com",
                "production.cloudfront.docker.com",
            ],
            "https://docs.docker.com/desktop/setup/allow-list/",
        )
    },
    service("registry.access.redhat.com", QUAY_CONTENT, RED_HAT),
    KnownService {
        tokens: Some("gitlab.com"),
        ..service(
            "registry.gitlab.com",
            &["cdn.registry.gitlab-static.net", "storage.googleapis.com"],
            "https://docs.gitlab.com/user/gitlab_com/",
        )
    },
    KnownService {
        note: KUBERNETES_IN_AWS,
        ..service("registry.k8s.io", KUBERNETES_CONTENT, KUBERNETES_REGISTRY)
    },
    service("registry.redhat.io", QUAY_CONTENT, RED_HAT),
];

const fn service(
    host: &'static str,
    content: &'static [&'static str],
    source: &'static str,
) -> KnownService {
    KnownService {
        host,
        path: "",
        tokens: None,
        content,
        source,
        note: None,
    }
}

/// The services at the URL of a registry or file. Wildcards are ignored if a service has exactly
/// this host.
pub(super) fn services_at(url: &Url) -> impl Iterator<Item = &'static KnownService> {
    let host = url.host_str().unwrap_or_default();
    let is_exact = SERVICES.iter().any(|service| service.host == host);
    let matches = move |service: &&KnownService| match EgressPattern::declared(service.host) {
        Ok(EgressPattern::Below(name)) => {
            !is_exact
                && host
                    .strip_suffix(&*name)
                    .is_some_and(|below| below.ends_with('.'))
        }
        Ok(EgressPattern::Name(name)) => name == host,
        Ok(EgressPattern::Address(_)) | Err(_) => false,
    };
    SERVICES
        .iter()
        .filter(matches)
        .filter(|service| url.path().contains(service.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(url: &str) -> Vec<&'static str> {
        let url = Url::parse(url).unwrap();
        let services = services_at(&url);
        services
            .flat_map(|service| service.tokens.iter().chain(service.content))
            .copied()
            .collect()
    }

    #[test]
    fn every_service_has_valid_hosts_and_an_https_source() {
        let keys: Vec<_> = SERVICES.iter().map(|row| (row.host, row.path)).collect();
        assert!(keys.is_sorted(), "{keys:?}");
        for KnownService {
            host,
            tokens,
            content,
            source,
            ..
        } in SERVICES
        {
            for host in tokens.iter().chain(*content).chain([host]) {
                let pattern = EgressPattern::declared(host).unwrap();
                assert!(!matches!(pattern, EgressPattern::Address(_)), "{host}");
            }
            assert!(
                Url::parse(source).is_ok_and(|url| url.scheme() == "https"),
                "{source}"
            );
        }
    }

    #[test]
    fn a_service_is_found_by_its_host_and_path() {
        assert_eq!(
            hosts("https://k8s.gcr.io/"),
            ["*.pkg.dev", "cdn.registry.k8s.io", "registry.k8s.io"]
        );
        assert_eq!(
            hosts("https://registry.k8s.io/"),
            ["*.pkg.dev", "cdn.registry.k8s.io"]
        );
        // these services use no further hosts
        for alone in [
            "https://dl.k8s.io/v1.33.4/x",
            "https://get.helm.sh/x",
            "https://raw.githubusercontent.com/a/b/main/x",
        ] {
            assert_eq!(hosts(alone).len(), 0, "{alone}");
        }
        for google in [
            "https://eu.gcr.io/",
            "https://gcr.io/",
            "https://us-docker.pkg.dev/",
        ] {
            assert_eq!(hosts(google), ["storage.googleapis.com"], "{google}");
        }
        for (url, host) in [
            (
                "https://github.com/a/b/archive/v1.tar.gz",
                Some("codeload.github.com"),
            ),
            (
                "https://github.com/a/b/releases/download/v1/x",
                Some("objects.githubusercontent.com"),
            ),
            (
                "https://github.com/a/b/releases/latest/download/x",
                Some("objects.githubusercontent.com"),
            ),
            (
                "https://github.com/a/b.git/info/lfs",
                Some("github-cloud.githubusercontent.com"),
            ),
            ("https://github.com/a/b.git", None),
            ("https://team.azurecr.io/", Some("*.blob.core.windows.net")),
            (
                "https://pkgs.k8s.io/core:/stable:/v1.33/deb/Packages",
                Some("prod-cdn.packages.k8s.io"),
            ),
            ("https://registry.gitlab.com/", Some("gitlab.com")),
            (
                "https://huggingface.co/a/b/resolve/main/model.safetensors",
                Some("*.hf.co"),
            ),
            (
                "https://github.com/a/b/raw/main/x",
                Some("raw.githubusercontent.com"),
            ),
            ("https://notquay.io/", None),
            ("https://pkg.dev/", None),
            ("https://10.0.0.1/", None),
        ] {
            assert_eq!(hosts(url).first().copied(), host, "{url}");
        }
    }
}
