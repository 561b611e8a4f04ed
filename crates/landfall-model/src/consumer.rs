//! Who asks the site's registry for images, and by which names.

use super::ImageRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Who asks the site's registry for images.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Consumer {
    /// Mirrors of containerd.
    Containerd,
    /// CRI-O with a registries.conf.
    Crio,
    /// podman, skopeo and buildah with a registries.conf.
    Podman,
    /// The docker daemon with `registry-mirrors`.
    Docker,
    /// k3s with a registries.yaml.
    K3s,
    /// RKE2 with a registries.yaml.
    Rke2,
    /// kubeadm with an `imageRepository`.
    Kubeadm,
    /// kustomize with `images`.
    Kustomize,
    /// Policies of Kyverno.
    Kyverno,
    /// `OpenShift` with mirror sets.
    Openshift,
    /// KKP with `overwriteRegistry`.
    Kubermatic,
    /// `KubeOne` with `overwriteRegistry`.
    Kubeone,
    /// TKG with a custom image repository.
    Tkg,
    /// Giant Swarm's clusters, whose nodes run containerd.
    Giantswarm,
    /// Cluster API with kubeadm's objects, on nodes with containerd.
    Capi,
}

/// What is known about the places of one image, as paths below the target's prefix.
pub(super) struct Places<'p> {
    /// Its paths by the rules of the site, without consumers.
    pub(super) named: &'p [String],
    /// The path that a whole host goes to.
    pub(super) of_host: &'p dyn Fn(&str) -> String,
}

/// How the paths follow that a consumer asks for.
type Asks = fn(&ImageRef, &Places<'_>) -> Vec<String>;

impl Consumer {
    /// Its word in the site and on the command line, and how it names images: one row each.
    fn row(self) -> (&'static str, Asks) {
        match self {
            Consumer::Containerd => ("containerd", behind_a_prefix),
            Consumer::Crio => ("crio", by_any_name),
            Consumer::Podman => ("podman", by_any_name),
            Consumer::Docker => ("docker", of_the_hub),
            Consumer::K3s => ("k3s", by_any_name),
            Consumer::Rke2 => ("rke2", by_any_name),
            Consumer::Kubeadm => ("kubeadm", of_kubeadm),
            Consumer::Kustomize => ("kustomize", by_any_name),
            Consumer::Kyverno => ("kyverno", by_any_name),
            Consumer::Openshift => ("openshift", by_any_name),
            Consumer::Kubermatic => ("kubermatic", without_the_host),
            Consumer::Kubeone => ("kubeone", of_kubeone),
            Consumer::Tkg => ("tkg", without_the_host),
            Consumer::Giantswarm => ("giantswarm", behind_a_prefix),
            Consumer::Capi => ("capi", behind_a_prefix),
        }
    }

    /// The paths that it asks for where it wants `image`.
    pub(super) fn asks(self, image: &ImageRef, places: &Places<'_>) -> Vec<String> {
        self.row().1(image, places)
    }
}

impl fmt::Display for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().0)
    }
}

/// Its configuration gives each image the name that it has at the registry.
fn by_any_name(_: &ImageRef, places: &Places<'_>) -> Vec<String> {
    places.named.iter().take(1).cloned().collect()
}

/// The host is replaced, and the path stays.
fn without_the_host(image: &ImageRef, _: &Places<'_>) -> Vec<String> {
    vec![image.repository.clone()]
}

/// A path is put before the image's, and none is taken away.
fn behind_a_prefix(image: &ImageRef, places: &Places<'_>) -> Vec<String> {
    let ends = |path: &&String| path_prefix(path, &image.repository).is_some();
    vec![
        places
            .named
            .iter()
            .find(ends)
            .unwrap_or(&image.repository)
            .clone(),
    ]
}

/// Images of Docker Hub are asked for by their paths; of others the name is written out.
fn of_the_hub(image: &ImageRef, places: &Places<'_>) -> Vec<String> {
    match image.registry.as_str() {
        "docker.io" => without_the_host(image, places),
        _ => by_any_name(image, places),
    }
}

/// What stands before `repository` in `path`; `None` where `path` does not end so.
pub fn path_prefix<'p>(path: &'p str, repository: &str) -> Option<&'p str> {
    let before = path.strip_suffix(repository)?;
    if before.is_empty() {
        Some("")
    } else {
        before.strip_suffix('/')
    }
}

/// The host of the images that kubeadm starts clusters from.
const KUBERNETES: &str = "registry.k8s.io";

/// These images by the last part of their paths.
const OF_KUBEADM: [&str; 7] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "pause",
    "etcd",
    "coredns/coredns",
];

/// Kubernetes' own images below one repository, CoreDNS without the folder that it has upstream; of
/// others the name is written out.
fn of_kubeadm(image: &ImageRef, places: &Places<'_>) -> Vec<String> {
    let is_kubernetes = [KUBERNETES, "k8s.gcr.io"].contains(&image.registry.as_str());
    if !is_kubernetes || !OF_KUBEADM.contains(&image.repository.as_str()) {
        return by_any_name(image, places);
    }
    let name = image.repository.rsplit('/').next().unwrap_or_default();
    match (places.of_host)(KUBERNETES) {
        repository if repository.is_empty() => vec![name.to_owned()],
        repository => vec![format!("{repository}/{name}")],
    }
}

/// As KKP; kubeadm gets the registry as its repository.
fn of_kubeone(image: &ImageRef, places: &Places<'_>) -> Vec<String> {
    let at_the_root = Places {
        named: &[],
        of_host: &|_| String::new(),
    };
    let mut asked = without_the_host(image, places);
    asked.extend(of_kubeadm(image, &at_the_root));
    asked
}
