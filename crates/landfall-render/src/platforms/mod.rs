//! One file a platform, and the table of them.

mod apt;
mod capi;
mod containerd;
mod docker;
mod giantswarm;
mod helm_overlay;
mod helm_values;
mod kubeadm;
mod kubeone;
mod kubermatic;
mod kubernetes;
mod kustomize;
mod kyverno;
mod machine_packages;
mod no_proxy_list;
mod openshift;
mod registries_conf;
mod registries_yaml;
mod serve;
mod systemd;
mod tkg;
mod yum;

use super::platform::Platform;

/// Every platform, in the order in which the command line lists them.
pub const PLATFORMS: &[&dyn Platform] = &[
    &helm_values::HelmValues,
    &no_proxy_list::NoProxyList,
    &containerd::Containerd,
    &registries_conf::CRIO,
    &registries_conf::PODMAN,
    &docker::Docker,
    &registries_yaml::K3S,
    &registries_yaml::RKE2,
    &systemd::KUBELET,
    &systemd::SYSTEMD,
    &kubeadm::Kubeadm,
    &kustomize::Kustomize,
    &kyverno::Kyverno,
    &openshift::OpenShift,
    &kubermatic::Kubermatic,
    &kubeone::KubeOne,
    &tkg::Tkg,
    &giantswarm::GiantSwarm,
    &capi::Capi,
    &apt::Apt,
    &yum::Yum,
    &serve::Serve,
    &kubernetes::Kubernetes,
];
