//! Consumers of the site's registry, and the repositories that they request.

use crate::ImageRef;
use crate::media_type::HUB;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A consumer of the site's registry: a program or platform that requests images there.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[derive(derive_more::Display)]
#[display(rename_all = "lowercase")]
pub enum Consumer {
    /// containerd with a `hosts.toml` for each mirrored registry.
    Containerd,
    /// CRI-O with mirrors in a registries.conf.
    Crio,
    /// podman, skopeo and buildah with mirrors in a registries.conf.
    Podman,
    /// The docker daemon with `registry-mirrors`.
    Docker,
    /// k3s with mirrors in its registries.yaml.
    K3s,
    /// RKE2 with mirrors in its registries.yaml.
    Rke2,
    /// kubeadm, which pulls its images from one `imageRepository`.
    Kubeadm,
    /// kustomize, which renames images by its list `images`.
    Kustomize,
    /// Kyverno, whose policies rewrite the images of pods.
    Kyverno,
    /// `OpenShift` with its mirror sets.
    Openshift,
    /// KKP, which replaces the host of its images by `overwriteRegistry`.
    Kubermatic,
    /// `KubeOne`, which replaces the host of its images by `overwriteRegistry`.
    Kubeone,
    /// TKG with a custom image repository.
    Tkg,
    /// Giant Swarm's clusters, whose nodes run containerd.
    Giantswarm,
    /// Cluster API with kubeadm's objects, on nodes with containerd.
    Capi,
    /// Talos, whose machine configuration has mirrors for containerd.
    Talos,
    /// k0s, which reads a `hosts.toml` for each mirrored registry.
    K0s,
    /// Kubespray, which has a variable for each registry of its images.
    Kubespray,
}

/// The paths of one image by the rules of the site, below the prefix of the target.
pub(super) struct SitePaths<'p> {
    /// The paths of the image, without the paths that consumers add.
    pub(super) image: &'p [String],
    /// Returns the path below which the images of a host are.
    pub(super) host: &'p dyn Fn(&str) -> String,
}

impl Consumer {
    /// The paths that this consumer requests for `image`.
    pub(super) fn requested_paths(self, image: &ImageRef, site: &SitePaths<'_>) -> Vec<String> {
        let requested_paths = match self {
            Consumer::Containerd
            | Consumer::Giantswarm
            | Consumer::Capi
            | Consumer::Talos
            | Consumer::K0s => prefixed_path,
            Consumer::Crio
            | Consumer::Podman
            | Consumer::K3s
            | Consumer::Rke2
            | Consumer::Kustomize
            | Consumer::Kyverno
            | Consumer::Openshift => configured_path,
            Consumer::Docker => docker_path,
            Consumer::Kubeadm => kubeadm_path,
            Consumer::Kubermatic | Consumer::Tkg => source_path,
            Consumer::Kubeone => kubeone_paths,
            Consumer::Kubespray => kubespray_path,
        };
        requested_paths(image, site)
    }
}

/// The consumer's configuration can name any path, so the first path by the rules of the site is
/// enough.
fn configured_path(_: &ImageRef, site: &SitePaths<'_>) -> Vec<String> {
    site.image.iter().take(1).cloned().collect()
}

/// The consumer replaces the host and keeps the path.
fn source_path(image: &ImageRef, _: &SitePaths<'_>) -> Vec<String> {
    vec![image.repository.clone()]
}

/// The consumer can add a prefix to the path of the image, but cannot shorten the path.
fn prefixed_path(image: &ImageRef, site: &SitePaths<'_>) -> Vec<String> {
    let mut paths = site.image.iter();
    let prefixed = paths.find(|path| path_prefix(path, &image.repository).is_some());
    vec![prefixed.unwrap_or(&image.repository).clone()]
}

/// The docker daemon uses mirrors only for Docker Hub. References to all other images must name the
/// site's registry.
fn docker_path(image: &ImageRef, site: &SitePaths<'_>) -> Vec<String> {
    if image.registry == HUB {
        source_path(image, site)
    } else {
        configured_path(image, site)
    }
}

/// Returns the path before `repository` in `path`, or `None` if `path` does not end with it.
pub fn path_prefix<'p>(path: &'p str, repository: &str) -> Option<&'p str> {
    let before = path.strip_suffix(repository)?;
    if before.is_empty() {
        Some("")
    } else {
        before.strip_suffix('/')
    }
}

/// The host from which kubeadm pulls its images by default.
const KUBERNETES: &str = "registry.k8s.io";

/// The repositories of kubeadm's images at [`KUBERNETES`].
const KUBEADM_IMAGES: [&str; 7] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "pause",
    "etcd",
    "coredns/coredns",
];

/// kubeadm requests its images directly below `imageRepository`, including CoreDNS, which is in a
/// subfolder upstream. All other images can have any path, because users write it into their YAML.
fn kubeadm_path(image: &ImageRef, site: &SitePaths<'_>) -> Vec<String> {
    let is_kubernetes = [KUBERNETES, "k8s.gcr.io"].contains(&image.registry.as_str());
    if !is_kubernetes || !KUBEADM_IMAGES.contains(&image.repository.as_str()) {
        return configured_path(image, site);
    }
    let name = image.repository.rsplit('/').next().unwrap_or_default();
    let repository = (site.host)(KUBERNETES);
    if repository.is_empty() {
        vec![name.to_owned()]
    } else {
        vec![format!("{repository}/{name}")]
    }
}

/// The registries of Kubespray's images, each with the variable that replaces it
/// (`roles/kubespray_defaults/defaults/main/download.yml` of Kubespray).
pub const KUBESPRAY_REGISTRIES: [(&str, &str); 5] = [
    (KUBERNETES, "kube_image_repo"),
    ("gcr.io", "gcr_image_repo"),
    (HUB, "docker_image_repo"),
    ("quay.io", "quay_image_repo"),
    ("ghcr.io", "github_image_repo"),
];

/// Kubespray replaces the host of its images by one path for each host in
/// [`KUBESPRAY_REGISTRIES`]. containerd's mirrors serve the images of all other hosts.
fn kubespray_path(image: &ImageRef, site: &SitePaths<'_>) -> Vec<String> {
    let has_variable = |(host, _): &(&str, &str)| *host == image.registry;
    if !KUBESPRAY_REGISTRIES.iter().any(has_variable) {
        return prefixed_path(image, site);
    }
    match (site.host)(&image.registry).as_str() {
        "" => source_path(image, site),
        path => vec![format!("{path}/{}", image.repository)],
    }
}

/// `KubeOne` replaces the host, and passes the registry without a path to kubeadm as
/// `imageRepository`.
fn kubeone_paths(image: &ImageRef, site: &SitePaths<'_>) -> Vec<String> {
    let registry_root = SitePaths {
        image: &[],
        host: &|_| String::new(),
    };
    let mut paths = source_path(image, site);
    paths.extend(kubeadm_path(image, &registry_root));
    paths
}
