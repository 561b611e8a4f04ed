//! The files of machines of existing clusters, and the commands that run before kubeadm.

use super::cluster::{ClusterNames, TkgRepository};
use crate::error::RenderError;
use crate::kubernetes_objects::{map, metadata, node_file, texts};
use crate::platforms::systemd::{DropInForm, drop_in};
use crate::pod_proxy::PodProxy;
use crate::request::RenderRequest;
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
    ) -> Result<ClusterMachines, RenderError> {
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
