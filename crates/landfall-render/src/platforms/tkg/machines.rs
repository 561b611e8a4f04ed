//! The files of machines of existing clusters, and the commands that run before kubeadm.

use super::platform::{ClusterNames, TkgRepository};
use crate::kubernetes_objects::{
    document, map, metadata, node_file, optional, secret, some_map, texts,
};
use crate::node_proxy::PodProxy;
use crate::platforms::systemd::{DropInForm, drop_in};
use crate::request::RenderRequest;
use landfall_model::Failure;
use landfall_model::report::shell_quoted;
use serde_yaml::{Mapping, Value};

/// The files of the machines of a cluster, and the commands that run before kubeadm.
pub(super) struct ClusterMachines {
    /// The repository of kubeadm's images, if it is the site's.
    repository: Option<String>,
    files: Value,
    commands: Vec<String>,
}

impl ClusterMachines {
    /// Returns the files and commands of machines that use this repository and proxy.
    pub(super) fn of(
        request: &RenderRequest<'_>,
        repository: Option<&TkgRepository>,
        proxy: Option<&PodProxy>,
    ) -> Result<ClusterMachines, Failure> {
        let mut files = Vec::new();
        for service in ["containerd", "kubelet"] {
            if let Some(file) = drop_in(service, DropInForm::Tkg, request)? {
                // TKG writes the file with this mode, whether it contains credentials or not
                files.push(node_file(&format!("/{}", file.path), 0o640, &file.text));
            }
        }
        if let Some(repository) = repository.filter(|repository| !repository.ca.is_empty()) {
            files.push(node_file(&repository.ca_path(), 0o644, &repository.ca));
        }
        let mut commands: Vec<String> = [
            r#"hostname "{{ ds.meta_data.hostname }}""#,
            r#"echo "::1         ipv6-localhost ipv6-loopback" >/etc/hosts"#,
            r#"echo "127.0.0.1   localhost" >>/etc/hosts"#,
            r#"echo "127.0.0.1   {{ ds.meta_data.hostname }}" >>/etc/hosts"#,
            r#"echo "{{ ds.meta_data.hostname }}" >/etc/hostname"#,
            "systemctl daemon-reload",
            "systemctl stop containerd",
            "systemctl start containerd",
        ]
        .map(str::to_owned)
        .into();
        if let Some(proxy) = proxy {
            let variables = [
                ("HTTP_PROXY", &proxy.http),
                ("HTTPS_PROXY", &proxy.https),
                ("NO_PROXY", &proxy.no_proxy),
            ];
            commands.extend(
                variables.map(|(name, value)| format!("export {name}={}", shell_quoted(value))),
            );
        }
        if let Some(repository) = repository {
            // the pattern ends at `pause`, so the tag in the file is kept; TKG runs the same
            // command
            let pause = format!(r#"s|".*/pause|"{}/pause|"#, repository.name);
            commands.push(format!(
                "sed -i {} /etc/containerd/config.toml",
                shell_quoted(&pause)
            ));
            if let Some(trust) = repository.trust() {
                // a machine image may have the table already, and TOML forbids a second one
                let table =
                    shell_quoted(&format!(".registry.configs.\"{}\".tls]", repository.host()));
                let config = "/etc/containerd/config.toml";
                commands.push(format!(
                    "grep -qF {table} {config} || printf {} >> {config}",
                    shell_quoted(&format!("\\n{trust}"))
                ));
            }
        }
        commands.push("systemctl restart containerd".to_owned());
        Ok(ClusterMachines {
            repository: repository.map(|repository| repository.name.clone()),
            files: files.into(),
            commands,
        })
    }

    /// Returns the common part of all machines. cloud-init replaces `ds.meta_data.hostname` by the
    /// name of the machine.
    fn spec(&self, joins: &[&str]) -> Vec<(Value, Value)> {
        let node = map([(
            "nodeRegistration",
            map([("name", "{{ ds.meta_data.hostname }}".into())]),
        )]);
        let mut spec: Vec<(Value, Value)> = joins
            .iter()
            .map(|join| ((*join).into(), node.clone()))
            .collect();
        spec.push(("files".into(), self.files.clone()));
        spec.push((
            "preKubeadmCommands".into(),
            texts(self.commands.iter().cloned()),
        ));
        spec
    }

    /// Returns the patch of the control plane.
    pub(super) fn control_plane(&self, names: &ClusterNames<'_>) -> Value {
        let mut spec = Mapping::new();
        if let Some(repository) = &self.repository {
            let images = || map([("imageRepository", repository.as_str().into())]);
            let cluster = map([
                ("imageRepository", repository.as_str().into()),
                ("dns", images()),
                ("etcd", map([("local", images())])),
            ]);
            spec.insert("clusterConfiguration".into(), cluster);
        }
        spec.extend(self.spec(&["initConfiguration", "joinConfiguration"]));
        map([
            ("apiVersion", "controlplane.cluster.x-k8s.io/v1beta1".into()),
            ("kind", "KubeadmControlPlane".into()),
            (
                "metadata",
                metadata(
                    &format!("{}-control-plane", names.cluster),
                    Some(names.namespace),
                ),
            ),
            ("spec", map([("kubeadmConfigSpec", Value::Mapping(spec))])),
        ])
    }

    /// Returns the patch of the workers.
    pub(super) fn workers(&self, names: &ClusterNames<'_>) -> Value {
        let spec = self.spec(&["joinConfiguration"]).into_iter().collect();
        map([
            ("apiVersion", "bootstrap.cluster.x-k8s.io/v1beta1".into()),
            ("kind", "KubeadmConfigTemplate".into()),
            (
                "metadata",
                metadata(&format!("{}-md-0", names.cluster), Some(names.namespace)),
            ),
            (
                "spec",
                map([("template", map([("spec", Value::Mapping(spec))]))]),
            ),
        ])
    }
}

/// The type of the Secrets of TKG addons.
const ADDON: Option<&str> = Some("tkg.tanzu.vmware.com/addon");

/// The comments that ytt requires before the values of an addon.
const HEADER: &str = "#@data/values\n#@overlay/match-child-defaults missing_ok=True\n---\n";

/// Returns the Secret with the values of the cloud provider (`cpi`) or storage (`csi`) of vSphere.
pub(super) fn vsphere(names: &ClusterNames<'_>, part: &str, kind: &str, proxy: &PodProxy) -> Value {
    let addon = format!("vsphere-{part}");
    let metadata = addon_metadata(names, &addon, kind, &[]);
    let values = document(&map([(
        match part {
            "cpi" => "vsphereCPI",
            _ => "vsphereCSI",
        },
        map([
            ("http_proxy", proxy.http.as_str().into()),
            ("https_proxy", proxy.https.as_str().into()),
            ("no_proxy", proxy.no_proxy.as_str().into()),
        ]),
    )]));
    secret(
        metadata,
        ADDON,
        &[("values.yaml", &format!("{HEADER}{values}"))],
    )
}

/// Returns the Secret with the values of kapp-controller: the proxy, and the TLS settings for the
/// repository and for hosts behind the proxy. The names of these values differ from those of other
/// addons. Returns `None` if there are no values.
pub(super) fn kapp_controller(
    names: &ClusterNames<'_>,
    repository: Option<&TkgRepository>,
    proxy: Option<&PodProxy>,
    proxy_ca: &str,
) -> Option<Value> {
    let own = repository.map_or("", |repository| &repository.ca);
    let authorities = format!("{own}{proxy_ca}");
    let skip_verify = repository.filter(|repository| repository.skip_verify);
    let config = some_map([
        (
            "caCerts",
            optional_text(Some(&authorities).filter(|all| !all.is_empty())),
        ),
        ("httpProxy", optional_text(proxy.map(|proxy| &proxy.http))),
        ("httpsProxy", optional_text(proxy.map(|proxy| &proxy.https))),
        ("noProxy", optional_text(proxy.map(|proxy| &proxy.no_proxy))),
        (
            "dangerousSkipTLSVerify",
            optional(skip_verify.map(TkgRepository::host)),
        ),
    ]);
    if config.is_null() {
        return None;
    }
    let values = document(&map([(
        "kappController",
        map([
            ("namespace", "tkg-system".into()),
            ("createNamespace", true.into()),
            ("globalNamespace", "tanzu-package-repo-global".into()),
            (
                "image",
                some_map([(
                    "repository",
                    optional(repository.map(|repository| repository.name.as_str())),
                )]),
            ),
            ("config", config),
        ]),
    )]));
    let metadata = addon_metadata(
        names,
        "kapp-controller",
        "addons-management",
        &[
            ("annotations", "tkg.tanzu.vmware.com/remote-app", "true"),
            ("labels", "clusterctl.cluster.x-k8s.io/move", ""),
        ],
    );
    Some(secret(
        metadata,
        ADDON,
        &[("values.yaml", &format!("{HEADER}{values}"))],
    ))
}

fn optional_text(value: Option<&String>) -> Value {
    optional(value.map(String::as_str))
}

/// Returns the metadata by which TKG finds the Secret of an addon. `more` lists further members,
/// each with its section, key and value.
fn addon_metadata(
    names: &ClusterNames<'_>,
    addon: &str,
    kind: &str,
    more: &[(&str, &str, &str)],
) -> Value {
    let mut metadata = map([
        (
            "annotations",
            map([(
                "tkg.tanzu.vmware.com/addon-type",
                format!("{kind}/{addon}").into(),
            )]),
        ),
        (
            "labels",
            map([
                ("tkg.tanzu.vmware.com/addon-name", addon.into()),
                ("tkg.tanzu.vmware.com/cluster-name", names.cluster.into()),
            ]),
        ),
        ("name", format!("{}-{addon}-addon", names.cluster).into()),
        ("namespace", names.namespace.into()),
    ]);
    for (section, key, value) in more {
        if let Some(Value::Mapping(section)) = metadata.get_mut(*section) {
            section.insert((*key).into(), (*value).into());
        }
    }
    metadata
}
