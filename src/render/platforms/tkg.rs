//! `tkg`: Tanzu Kubernetes Grid's clusters behind the proxy, with images from the site's registry.

use super::systemd::{Form, drop_in};
use crate::model::{Consumer, ImageRef};
use crate::render::error::RenderError;
use crate::render::file::RenderedFile;
use crate::render::kubernetes::{document, map, metadata, node_file, secret, texts};
use crate::render::no_proxy::Dialect;
use crate::render::platform::{Output, Platform, Rendered, Spec, Writes};
use crate::render::pod_proxy::PodProxy;
use crate::render::quote::string;
use crate::render::request::Request;
use crate::render::settings::{CLUSTER, NAMESPACE, Setting};
use crate::report::shell_quoted;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_yaml::Value;

pub(super) struct Tkg;

/// The repository that TKG's images are in upstream.
const SOURCE: Setting = Setting {
    key: "source",
    value_name: "REPOSITORY",
    help: "Where TKG's images are upstream",
    default: Some("projects.registry.vmware.com/tkg"),
    choices: &[],
};

impl Platform for Tkg {
    fn spec(&self) -> &'static Spec {
        &Spec {
            name: "tkg",
            about: "TKG: the variables of a cluster's configuration, and the objects that they become",
            details: "cluster-config.yaml is what one gives to TKG. The other files are what TKG makes of it, for clusters \
                      that exist already: the machines' files and commands, and the Secrets of CPI, CSI, kapp-controller and \
                      of the configuration itself.",
            inputs: &[],
            settings: &[CLUSTER, NAMESPACE, SOURCE],
            consumer: Some(Consumer::Tkg),
            reads_lock: true,
            writes: Writes::Files { not_into: None },
        }
    }

    fn render(&self, request: &Request<'_>) -> Result<Rendered, RenderError> {
        let names = Names {
            cluster: request.settings.need(CLUSTER.key)?,
            namespace: request.settings.get(NAMESPACE.key).unwrap_or("default"),
        };
        let repository = Repository::of(request)?;
        let proxy = proxy(request)?;
        let variables = variables(&repository, proxy.as_ref());
        let secret = proxy.as_ref().is_some_and(|proxy| proxy.has_account);
        let file = |name: &str, text: String| RenderedFile::new(name, text).secret(secret);
        let machines = Machines::of(request, &repository, proxy.as_ref())?;
        let mut files = vec![
            file("cluster-config.yaml", lines(&variables)),
            file("config-values.yaml", document(&config_values(&names, &variables))),
            file("kubeadm-control-plane.yaml", document(&machines.control_plane(&names))),
            file("kubeadm-config-template.yaml", document(&machines.workers(&names))),
        ];
        if let Some(proxy) = &proxy {
            files.extend([
                file("vsphere-cpi-addon.yaml", document(&vsphere(&names, "cpi", "cloud-provider", proxy))),
                file("vsphere-csi-addon.yaml", document(&vsphere(&names, "csi", "csi", proxy))),
                file("kapp-controller-addon.yaml", document(&kapp_controller(&names, proxy))),
            ]);
        }
        let notes = repository.notes;
        Ok(Rendered { output: Output::Files(files), notes, ..Rendered::default() })
    }
}

/// The cluster whose objects are written.
struct Names<'n> {
    cluster: &'n str,
    namespace: &'n str,
}

/// The repository that TKG takes its images from.
struct Repository {
    /// `host[:port]/path`.
    name: String,
    skip_verify: bool,
    /// The authority's certificates; empty where the site has none.
    ca: String,
    notes: Vec<String>,
}

impl Repository {
    fn of(request: &Request<'_>) -> Result<Repository, RenderError> {
        let registry = request.registry()?;
        if registry.plain_http {
            let why = "TKG takes images over https alone; give the registry a certificate, and the site registry.ca";
            return Err(RenderError::Site(why.into()));
        }
        let source = request.settings.need(SOURCE.key)?;
        let pause: ImageRef = format!("{source}/pause").parse().map_err(|_| RenderError::Value {
            key: SOURCE.key.into(),
            value: source.into(),
            why: "it is a repository, as in projects.registry.vmware.com/tkg".into(),
        })?;
        let place = request.mapping.image(&pause).remove(0);
        let name = format!("{}/{}", place.registry, place.repository);
        let name = name.strip_suffix("/pause").ok_or_else(|| {
            let why = format!("TKG puts image names behind one repository, and {name} does not end in /pause; change registry.paths");
            RenderError::Site(why)
        })?;
        let mut notes = Vec::new();
        if !request.images().any(|image| image.name() == pause.name()) {
            notes.push(format!("the lock has no {}, which every node asks for", pause.name()));
        }
        if registry.has_account() {
            notes.push("TKG has no place for an account of the registry: nodes pull without one".into());
        }
        let ca = registry.ca.clone().unwrap_or_default();
        Ok(Repository { name: name.to_owned(), skip_verify: registry.skip_verify, ca, notes })
    }

    /// The registry: up to the first slash.
    fn host(&self) -> &str {
        self.name.split('/').next().unwrap_or(&self.name)
    }

    /// What containerd of TKG's machines is told of the registry's certificate, as TKG itself writes it.
    fn trust(&self) -> Option<String> {
        let host = self.host();
        let key = match (self.skip_verify, self.ca.is_empty()) {
            (true, _) => "insecure_skip_verify = true".to_owned(),
            (false, false) => format!("ca_file = \"{}\"", self.ca_path()),
            (false, true) => return None,
        };
        Some(format!("[plugins.\"io.containerd.grpc.v1.cri\".registry.configs.\"{host}\".tls]\\n  {key}\\n"))
    }

    fn ca_path(&self) -> String {
        format!("/etc/containerd/{}.crt", self.host())
    }
}

/// The proxy as TKG takes it.
fn proxy(request: &Request<'_>) -> Result<Option<PodProxy>, RenderError> {
    let written = request.site.and_then(|site| site.proxy.as_ref());
    if written.is_some_and(|proxy| proxy.http.is_some() != proxy.https.is_some()) {
        return Err(RenderError::Site(
            "TKG wants both proxies or none; add the other to proxy.http and proxy.https".into(),
        ));
    }
    let proxy = PodProxy::of(request, Dialect::Dotted)?;
    match proxy.as_ref().is_some_and(|proxy| proxy.no_proxy.contains('*')) {
        true => {
            Err(RenderError::Site("TKG refuses '*' in NO_PROXY; write .example.com for *.example.com".into()))
        }
        false => Ok(proxy),
    }
}

/// A value of a variable: a text or a switch.
type Variable = (&'static str, Value);

/// The variables of a cluster's configuration that follow from the site.
fn variables(repository: &Repository, proxy: Option<&PodProxy>) -> Vec<Variable> {
    let mut variables: Vec<Variable> = vec![
        ("TKG_CUSTOM_IMAGE_REPOSITORY", repository.name.as_str().into()),
        ("TKG_CUSTOM_IMAGE_REPOSITORY_SKIP_TLS_VERIFY", repository.skip_verify.into()),
        ("TKG_CUSTOM_IMAGE_REPOSITORY_CA_CERTIFICATE", STANDARD.encode(&repository.ca).into()),
    ];
    if let Some(proxy) = proxy {
        variables.extend([
            ("TKG_HTTP_PROXY_ENABLED", true.into()),
            ("TKG_HTTP_PROXY", proxy.http.as_str().into()),
            ("TKG_HTTPS_PROXY", proxy.https.as_str().into()),
            ("TKG_NO_PROXY", proxy.no_proxy.as_str().into()),
        ]);
    }
    variables
}

/// The variables as a file of their own.
fn lines(variables: &[Variable]) -> String {
    let value = |value: &Value| value.as_str().map_or_else(|| document(value).trim().to_owned(), string);
    variables.iter().map(|(name, text)| format!("{name}: {}\n", value(text))).collect()
}

/// The Secret in which TKG keeps a cluster's configuration.
fn config_values(names: &Names<'_>, variables: &[Variable]) -> Value {
    let values =
        format!("CLUSTER_NAME: {}\nNAMESPACE: {}\n{}", names.cluster, names.namespace, lines(variables));
    let labels = map([
        ("clusterctl.cluster.x-k8s.io/move", "".into()),
        ("tkg.tanzu.vmware.com/cluster-name", names.cluster.into()),
    ]);
    let name = format!("{}-config-values", names.cluster);
    let metadata = map([("labels", labels), ("name", name.into()), ("namespace", names.namespace.into())]);
    secret(metadata, Some("addons.cluster.x-k8s.io/resource-set"), &[("value", &values)])
}

/// The type of the Secrets that TKG's addons read.
const ADDON: Option<&str> = Some("tkg.tanzu.vmware.com/addon");

/// The values of vSphere's cloud provider (`cpi`) or storage (`csi`).
fn vsphere(names: &Names<'_>, part: &str, kind: &str, proxy: &PodProxy) -> Value {
    let addon = format!("vsphere-{part}");
    let metadata = map([
        ("annotations", map([("tkg.tanzu.vmware.com/addon-type", format!("{kind}/{addon}").into())])),
        (
            "labels",
            map([
                ("tkg.tanzu.vmware.com/addon-name", addon.as_str().into()),
                ("tkg.tanzu.vmware.com/cluster-name", names.cluster.into()),
            ]),
        ),
        ("name", format!("{}-{addon}-addon", names.cluster).into()),
        ("namespace", names.namespace.into()),
    ]);
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
    // ytt reads these comments; they belong before the document
    let values = format!("#@data/values\n#@overlay/match-child-defaults missing_ok=True\n---\n{values}");
    secret(metadata, ADDON, &[("values.yaml", &values)])
}

/// The values of kapp-controller, which spells them its own way.
fn kapp_controller(names: &Names<'_>, proxy: &PodProxy) -> Value {
    let config = map([
        ("httpProxy", proxy.http.as_str().into()),
        ("httpsProxy", proxy.https.as_str().into()),
        ("noProxy", proxy.no_proxy.as_str().into()),
    ]);
    let values = document(&map([(
        "kappController",
        map([
            ("namespace", "tkg-system".into()),
            ("createNamespace", true.into()),
            ("globalNamespace", "tanzu-package-repo-global".into()),
            ("config", config),
        ]),
    )]));
    let name = format!("{}-kapp-controller-addon", names.cluster);
    secret(metadata(&name, Some(names.namespace)), ADDON, &[("values.yaml", &values)])
}

/// What machines get: files, and commands before kubeadm.
struct Machines {
    files: Value,
    commands: Vec<String>,
}

impl Machines {
    fn of(
        request: &Request<'_>,
        repository: &Repository,
        proxy: Option<&PodProxy>,
    ) -> Result<Machines, RenderError> {
        let mut files = Vec::new();
        for service in ["containerd", "kubelet"] {
            if let Some(file) = drop_in(service, Form::Tkg, request)? {
                // on the node the file is the group's to read, with an account in it or without
                files.push(node_file(&format!("/{}", file.path), 0o640, &file.text));
            }
        }
        if !repository.ca.is_empty() {
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
            let variables =
                [("HTTP_PROXY", &proxy.http), ("HTTPS_PROXY", &proxy.https), ("NO_PROXY", &proxy.no_proxy)];
            commands.extend(variables.map(|(name, value)| format!("export {name}={}", shell_quoted(value))));
        }
        // every version's line keeps its tag
        let pause = format!(r#"s|".*/pause|"{}/pause|"#, repository.name);
        commands.push(format!("sed -i {} /etc/containerd/config.toml", shell_quoted(&pause)));
        if let Some(trust) = repository.trust() {
            let is_there = shell_quoted(&format!(".registry.configs.\"{}\".tls]", repository.host()));
            let config = "/etc/containerd/config.toml";
            commands.push(format!(
                "grep -qF {is_there} {config} || printf {} >> {config}",
                shell_quoted(&format!("\\n{trust}"))
            ));
        }
        commands.push("systemctl restart containerd".to_owned());
        Ok(Machines { files: files.into(), commands })
    }

    /// What both kinds of machines have, with cloud-init's name of the machine.
    fn spec(&self, joins: &[&str]) -> Vec<(Value, Value)> {
        let node = map([("nodeRegistration", map([("name", "{{ ds.meta_data.hostname }}".into())]))]);
        let mut spec: Vec<(Value, Value)> = joins.iter().map(|join| ((*join).into(), node.clone())).collect();
        spec.push(("files".into(), self.files.clone()));
        spec.push(("preKubeadmCommands".into(), texts(self.commands.iter().cloned())));
        spec
    }

    fn control_plane(&self, names: &Names<'_>) -> Value {
        let spec = self.spec(&["initConfiguration", "joinConfiguration"]).into_iter().collect();
        map([
            ("apiVersion", "controlplane.cluster.x-k8s.io/v1beta1".into()),
            ("kind", "KubeadmControlPlane".into()),
            ("metadata", metadata(&format!("{}-control-plane", names.cluster), Some(names.namespace))),
            ("spec", map([("kubeadmConfigSpec", Value::Mapping(spec))])),
        ])
    }

    fn workers(&self, names: &Names<'_>) -> Value {
        let spec = self.spec(&["joinConfiguration"]).into_iter().collect();
        map([
            ("apiVersion", "bootstrap.cluster.x-k8s.io/v1beta1".into()),
            ("kind", "KubeadmConfigTemplate".into()),
            ("metadata", metadata(&format!("{}-md-0", names.cluster), Some(names.namespace))),
            ("spec", map([("template", map([("spec", Value::Mapping(spec))]))])),
        ])
    }
}
