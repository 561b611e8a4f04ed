//! The platforms, and the table that lists them. Similar platforms share a file, such as CRI-O and
//! Podman in `registries_conf`.

mod apt;
mod capi;
mod containerd;
mod docker;
mod giantswarm;
mod git;
mod helm_values;
mod k0s;
mod kubeadm;
mod kubeone;
mod kubermatic;
mod kubernetes;
mod kubespray;
mod kustomize;
mod kyverno;
mod node;
mod openshift;
mod registries_conf;
mod registries_yaml;
mod serve;
mod systemd;
mod talos;
mod tkg;
mod tofu;
mod trivy;
mod yum;

use crate::platform::RenderPlatform;

/// Every platform, in the order in which the command line lists them.
pub const PLATFORMS: &[&dyn RenderPlatform] = &[
    &helm_values::HelmValues,
    &systemd::NoProxyList,
    &containerd::ContainerdPlatform,
    &registries_conf::CRIO,
    &registries_conf::PODMAN,
    &docker::DockerPlatform,
    &registries_yaml::K3S,
    &registries_yaml::RKE2,
    &k0s::K0sPlatform,
    &systemd::KUBELET,
    &systemd::SYSTEMD,
    &kubeadm::KubeadmPlatform,
    &node::NodePlatform,
    &kubespray::KubesprayPlatform,
    &talos::TalosPlatform,
    &kustomize::KustomizePlatform,
    &kyverno::KyvernoPlatform,
    &openshift::OpenShiftPlatform,
    &kubermatic::KubermaticPlatform,
    &kubeone::KubeOnePlatform,
    &tkg::TkgPlatform,
    &giantswarm::GiantSwarmPlatform,
    &capi::CapiPlatform,
    &apt::AptPlatform,
    &yum::YumPlatform,
    &trivy::TrivyPlatform,
    &git::GitPlatform,
    &tofu::TofuPlatform,
    &serve::ServePlatform,
    &kubernetes::KubernetesPlatform,
];
