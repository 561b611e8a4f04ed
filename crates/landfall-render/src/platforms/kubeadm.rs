//! `kubeadm`: a `ClusterConfiguration` whose images come from the registry.

use crate::kubernetes_objects::document;
use crate::platform::{PlatformSetting, RenderPlatform, RenderRequest, RenderedConfig};
use crate::rendered_file::RenderedFile;
use landfall_model::{Consumer, Failure};
use serde_json::json;
use std::collections::BTreeSet;

const VERSION: PlatformSetting = PlatformSetting {
    key: "version",
    value_name: "VERSION",
    help: "The version of kubeadm's API",
    default: Some("v1beta4"),
    choices: &["v1beta3", "v1beta4"],
};

/// The upstream host of kubeadm's images.
const UPSTREAM: &str = "registry.k8s.io";

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "kubeadm",
    about: "kubeadm: a ClusterConfiguration with the registry as its imageRepository",
    details: "The versions of Kubernetes, CoreDNS and etcd are those in the lock, if it \
              has exactly one of each. Nodes need the registry's certificates and account, \
              which `landfall render containerd` writes.",
    settings: &[VERSION],
    consumer: Some(Consumer::Kubeadm),
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let version = request.settings.need(VERSION.key)?;
    let destination = request
        .mapping
        .own_destination(&request.mapping.host_path(UPSTREAM));
    let repository = destination.to_string().trim_end_matches('/').to_owned();
    let mut notes = Vec::new();
    let mut tag = |name: &str| {
        let found = tags(request, name);
        match &found[..] {
            [tag] => Some(tag.clone()),
            [] => {
                notes.push(format!(
                    "the lock has no {UPSTREAM}/{name}: kubeadm chooses its version"
                ));
                None
            }
            several => {
                notes.push(format!(
                    "the lock has several versions of {name} ({}): kubeadm chooses one",
                    several.join(", ")
                ));
                None
            }
        }
    };
    let kubernetes = tag("kube-apiserver");
    // Upstream, CoreDNS is at `coredns/coredns`. kubeadm adds the folder only if the repository
    // is registry.k8s.io (`GetDNSImage` in its images.go), and otherwise pulls `coredns`.
    let dns = json!({"imageRepository": repository, "imageTag": tag("coredns/coredns")});
    // kubeadm accepts only one of `etcd.local` and `etcd.external`
    let is_external = request
        .existing
        .iter()
        .any(|document| !document["etcd"]["external"].is_null());
    let etcd = (!is_external)
        .then(|| json!({"local": {"imageRepository": repository, "imageTag": tag("etcd")}}));
    if tags(request, "pause").is_empty() {
        notes.push(format!(
            "the lock has no {UPSTREAM}/pause: every pod needs it"
        ));
    }
    let configuration = json!({
        "apiVersion": format!("kubeadm.k8s.io/{version}"),
        "kind": "ClusterConfiguration",
        "kubernetesVersion": kubernetes,
        "imageRepository": repository,
        "dns": dns,
        "etcd": etcd,
    });
    let files = vec![RenderedFile::new(
        "kubeadm-config.yaml",
        document(&configuration),
    )];
    Ok(RenderedConfig::of_files(files, notes))
}

/// Returns the locked tags of the Kubernetes image `name`, each once: an image may be locked under
/// both names of its host.
fn tags(request: &RenderRequest<'_>, name: &str) -> Vec<String> {
    let tags: BTreeSet<String> = request
        .images()
        .filter(|image| {
            // k8s.gcr.io is the former name of the host
            [UPSTREAM, "k8s.gcr.io"].contains(&image.registry.as_str()) && image.repository == name
        })
        .filter_map(|image| image.tag.clone())
        .collect();
    tags.into_iter().collect()
}
