//! `capi`: patches of the kubeadm objects of Cluster API. The files of machines come from a Secret,
//! so that no other object contains credentials.

use super::containerd::{FOLDER, hosts, other_accounts, unreadable};
use super::systemd::{DropInForm, drop_in};
use super::yum::{MachinePackages, PACKAGE_SET};
use crate::kubernetes_objects::{
    document, kubeadm_config, kubeadm_config_template, kubeadm_control_plane,
    kubeadm_control_plane_template, metadata, secret,
};
use crate::platform::{
    CLOUD_PROVIDER, CLUSTER, NAMESPACE, PlatformSetting, RenderPlatform, RenderRequest,
    RenderedConfig,
};
use crate::proxy::{NoProxyDialect, PATCHES, PodProxy, static_pod_patches};
use crate::rendered_file::RenderedFile;
use crate::signature_policy::PACKAGES_KEY;
use landfall_model::{Consumer, Failure};
use serde_json::{Value, json};

const CONTROL_PLANE: PlatformSetting = PlatformSetting::new(
    "control-plane",
    "NAME",
    "The KubeadmControlPlane [default: CLUSTER-control-plane]",
);

const WORKERS: PlatformSetting = PlatformSetting::new(
    "workers",
    "NAME",
    "The KubeadmConfigTemplate [default: CLUSTER-md-0]",
);

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "capi",
    about: "Cluster API: patches of KubeadmControlPlane and KubeadmConfigTemplate, and \
            the Secret of their files",
    details: "Apply the Secret first: Cluster API does not create machines before it \
              exists.",
    inputs: &[PACKAGES_KEY],
    settings: &[
        CLUSTER,
        NAMESPACE,
        CONTROL_PLANE,
        WORKERS,
        CLOUD_PROVIDER,
        PACKAGE_SET,
    ],
    consumer: Some(Consumer::Capi),
    has_proxy_part: true,
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let settings = &request.settings;
    let cluster = settings.need(CLUSTER.key)?;
    let namespace = settings.get(NAMESPACE.key).unwrap_or("default");
    let object_name = |key, suffix: &str| -> Result<String, Failure> {
        let given = settings.object_name(key)?;
        Ok(given.map_or_else(|| format!("{cluster}-{suffix}"), str::to_owned))
    };

    let mut workers = Vec::new();
    let mut notes = Vec::new();
    if request.target.is_some() {
        let registry = request.registry()?;
        workers.extend(hosts(request, &registry, true, FOLDER)?);
        notes.extend(other_accounts(request, &registry, true)?);
        notes.extend(unreadable(request, &registry)?);
    }
    for service in settings.proxied_services() {
        workers.extend(drop_in(service, DropInForm::SixVariables, request)?);
    }
    workers.extend(MachinePackages::of(request)?.source_files(cluster, |_| true, &mut notes));
    // only the control plane has static pods
    let mut control_plane = workers.clone();
    if let Some(proxy) = PodProxy::of(request, NoProxyDialect::Bare)? {
        control_plane.extend(static_pod_patches(&proxy.variables(), proxy.has_account));
    }
    let name = format!("{cluster}-landfall");
    let control_plane_name = object_name(CONTROL_PLANE.key, "control-plane")?;
    let has = |kind: &str| request.existing.iter().any(|object| object["kind"] == kind);
    // the objects of a ClusterClass are templates
    let is_class = has("KubeadmControlPlaneTemplate") && !has("KubeadmControlPlane");
    let control_plane_form: fn(Value, Value) -> Value = if is_class {
        kubeadm_control_plane_template
    } else {
        kubeadm_control_plane
    };
    let control_plane_object = control_plane_form(
        metadata(&control_plane_name, Some(namespace)),
        kubeadm_spec(&control_plane, &name),
    );
    let workers_object = kubeadm_config_template(
        metadata(&object_name(WORKERS.key, "md-0")?, Some(namespace)),
        kubeadm_spec(&workers, &name),
    );
    let has_secret = control_plane.iter().any(|file| file.secret);
    let texts = control_plane
        .iter()
        .map(|file| (key(&file.path), file.text.as_str()))
        .collect();
    let mut files = vec![
        RenderedFile::new(
            "secret.yaml",
            document(&secret(metadata(&name, Some(namespace)), None, texts)),
        )
        .secret(has_secret),
        RenderedFile::new(
            "kubeadm-control-plane.yaml",
            document(&control_plane_object),
        ),
        RenderedFile::new("kubeadm-config-template.yaml", document(&workers_object)),
    ];
    // a machine pool has no template
    if has("KubeadmConfig") {
        let metadata = metadata(&object_name(WORKERS.key, "mp-0")?, Some(namespace));
        let pool = kubeadm_config(metadata, kubeadm_spec(&workers, &name));
        files.push(RenderedFile::new("kubeadm-config.yaml", document(&pool)));
    }
    Ok(RenderedConfig::of_files(files, notes))
}

/// Returns the key in a Secret for the file at `path`. A key must not contain `/`.
fn key(path: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    path.replace('/', ".")
        .replace(|c: char| !is_allowed(c), "_")
}

/// Returns a kubeadm configuration whose `files` come from the Secret `name`. If `files` contains
/// patches of static pods, the configuration has the sections that apply them.
fn kubeadm_spec(files: &[RenderedFile], name: &str) -> Value {
    let has_patches = files
        .iter()
        .any(|file| format!("/{}", file.path).starts_with(PATCHES));
    let join = has_patches.then(|| json!({"patches": {"directory": PATCHES}}));
    let files: Value = files
        .iter()
        .map(|file| file_from(&file.path, file.mode, name, &key(&file.path)))
        .collect();
    json!({
        "initConfiguration": join,
        "joinConfiguration": join,
        "files": files,
        // before kubeadm pulls its first image
        "preKubeadmCommands": ["systemctl daemon-reload", "systemctl restart containerd"],
    })
}

/// Returns a file of a machine with the content of one key of a Secret. `path` is the path on the
/// node without the leading `/`.
pub(super) fn file_from(path: &str, mode: u32, secret: &str, key: &str) -> Value {
    json!({
        "path": format!("/{path}"),
        "owner": "root:root",
        "permissions": format!("{mode:04o}"),
        "contentFrom": {"secret": {"name": secret, "key": key}},
    })
}
