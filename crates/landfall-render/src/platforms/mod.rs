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
mod kyverno_cel;
mod nerdctl;
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
pub const PLATFORMS: &[&RenderPlatform] = &[
    &helm_values::PLATFORM,
    &systemd::NO_PROXY,
    &containerd::PLATFORM,
    &registries_conf::CRIO,
    &registries_conf::PODMAN,
    &docker::PLATFORM,
    &nerdctl::PLATFORM,
    &registries_yaml::K3S,
    &registries_yaml::RKE2,
    &k0s::PLATFORM,
    &systemd::KUBELET,
    &systemd::SYSTEMD,
    &kubeadm::PLATFORM,
    &node::PLATFORM,
    &kubespray::PLATFORM,
    &talos::PLATFORM,
    &kustomize::PLATFORM,
    &kyverno::PLATFORM,
    &openshift::PLATFORM,
    &kubermatic::PLATFORM,
    &kubeone::PLATFORM,
    &tkg::PLATFORM,
    &giantswarm::PLATFORM,
    &capi::PLATFORM,
    &apt::PLATFORM,
    &yum::PLATFORM,
    &trivy::PLATFORM,
    &git::PLATFORM,
    &tofu::PLATFORM,
    &serve::PLATFORM,
    &kubernetes::PLATFORM,
];
