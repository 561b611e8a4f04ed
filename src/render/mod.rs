//! SET IT UP. What `landfall render` writes: configuration that makes others use the site. Each platform is one file
//! and one row.

mod asked;
mod capi;
mod containerd;
mod docker;
mod error;
mod file;
mod folder;
mod giantswarm;
mod helm_values;
mod host_paths;
mod into;
mod kubeadm;
mod kubeone;
mod kubermatic;
mod kubernetes;
mod kustomize;
mod kyverno;
mod mirrors;
mod no_proxy;
mod no_proxy_list;
mod openshift;
mod overlay;
mod pem;
mod platform;
mod pod_proxy;
mod quote;
mod registries_conf;
mod registries_yaml;
mod request;
mod run;
mod serve;
mod settings;
mod site_proxy;
mod site_registry;
mod static_pods;
mod systemd;
mod tkg;

pub(crate) use error::RenderError;
pub(crate) use file::RenderedFile;
pub(crate) use folder::{left_behind, write};
pub(crate) use into::into;
pub(crate) use no_proxy::{Dialect, NoProxy};
pub(crate) use platform::{Flag, Input, Output, Platform, Spec, Writes};
pub(crate) use request::Request;
pub(crate) use run::run;
pub(crate) use settings::Settings;

/// Every platform, in the order in which the command line lists them.
pub(crate) const PLATFORMS: &[&dyn Platform] = &[
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
    &serve::Serve,
];
