//! Proxy settings for static pods. The kubelet starts them from files that kubeadm writes, so
//! admission webhooks do not see them, and kubeadm must patch them.

use super::kubernetes_objects::{document, map};
use super::rendered_file::RenderedFile;
use serde_yaml::Value;

/// The folder for kubeadm patches on a node.
pub(super) const PATCHES: &str = "/etc/kubernetes/patches";

/// Returns patches that add these variables to the static pods of the API server, the controller
/// manager and the scheduler. The paths of the patches are the paths on a node without the leading
/// `/`.
pub(super) fn static_pod_patches(
    variables: &[(&'static str, String)],
    secret: bool,
) -> Vec<RenderedFile> {
    [
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
    ]
    .map(|pod| {
        let container = map([("name", pod.into()), ("env", env(variables))]);
        let patch = map([("spec", map([("containers", vec![container].into())]))]);
        let path = format!("{}/{pod}0+strategic.yaml", PATCHES.trim_start_matches('/'));
        RenderedFile::new(path, document(&patch))
            .mode(0o600)
            .secret(secret)
    })
    .into()
}

/// Returns variables as the `env` of a container.
pub(super) fn env(variables: &[(&'static str, String)]) -> Value {
    variables
        .iter()
        .map(|(name, value): &(&str, String)| {
            map([("name", (*name).into()), ("value", value.as_str().into())])
        })
        .collect::<Vec<_>>()
        .into()
}
