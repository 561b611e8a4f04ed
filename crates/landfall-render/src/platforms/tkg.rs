//! `tkg`: clusters of Tanzu Kubernetes Grid behind the proxy, with images from the site's registry.

use super::systemd::{DropInForm, drop_in};
use crate::kubernetes_objects::{
    document, kubeadm_config_template, kubeadm_control_plane, metadata, node_file, object, secret,
    some,
};
use crate::platform::{
    CLUSTER, NAMESPACE, PlatformSetting, RenderPlatform, RenderRequest, RenderedConfig, wrong_value,
};
use crate::proxy::{NoProxyDialect, PodProxy};
use crate::rendered_file::{RenderedFile, quoted_string};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use landfall_model::report::shell_quoted;
use landfall_model::{Consumer, Failure, ImageRef};
use serde_json::{Value, json};

// The settings of the platform, the list of its files, and the variables of a cluster's
// configuration.

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "tkg",
    about: "TKG: the variables of a cluster's configuration, and the objects that TKG \
            makes from them",
    details: "cluster-config.yaml is the input of TKG for new clusters. The other files \
              are what TKG makes from it, for existing clusters: the variables of a cluster \
              of TKG 2 (cluster.yaml), or the machines' files and commands of older ones, \
              and the Secrets of CPI, CSI, kapp-controller and the configuration itself.",
    settings: &[CLUSTER, NAMESPACE, SOURCE],
    consumer: Some(Consumer::Tkg),
    works_without_lock: true,
    has_proxy_part: true,
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let names = ClusterNames {
        cluster: request.settings.need(CLUSTER.key)?,
        namespace: request.settings.get(NAMESPACE.key).unwrap_or("default"),
    };
    let repository = request
        .target
        .map(|_| TkgRepository::of(request))
        .transpose()?;
    let repository = repository.as_ref();
    let proxy = proxy(request)?;
    let proxy_ca = request
        .proxy()?
        .and_then(|proxy| proxy.ca)
        .unwrap_or_default();
    let own = repository.map_or("", |repository| &repository.ca);
    let authorities = format!("{own}{proxy_ca}");
    // TKG uses the authority of the proxy in place of that of the registry, so it gets both
    let behind_proxy = (!proxy_ca.is_empty()).then_some(&*authorities);
    let variables = variables(repository, proxy.as_ref(), behind_proxy);
    let secret = proxy.as_ref().is_some_and(|proxy| proxy.has_account);
    let file = |name: &str, text: String| RenderedFile::new(name, text).secret(secret);
    let topology = topology(repository, proxy.as_ref(), behind_proxy);
    let machines = ClusterMachines::of(request, repository, proxy.as_ref(), behind_proxy)?;
    let mut files = vec![
        file("cluster-config.yaml", lines(&variables)),
        file(
            "config-values.yaml",
            document(&config_values(&names, &variables)),
        ),
        file(
            "kubeadm-control-plane.yaml",
            document(&machines.control_plane(&names)),
        ),
        file(
            "kubeadm-config-template.yaml",
            document(&machines.workers(&names)),
        ),
    ];
    // a cluster without a topology, as in TKG 1, must not get one
    let is_old = |object: &serde_yaml::Value| {
        object["kind"] == "Cluster" && object["spec"]["topology"].is_null()
    };
    if !request.existing.iter().any(is_old) {
        files.push(file("cluster.yaml", document(&names.cluster_of(topology))));
    }
    if let Some(proxy) = &proxy {
        files.extend([
            file(
                "vsphere-cpi-addon.yaml",
                document(&vsphere(&names, "cpi", "cloud-provider", proxy)),
            ),
            file(
                "vsphere-csi-addon.yaml",
                document(&vsphere(&names, "csi", "csi", proxy)),
            ),
        ]);
    }
    if let Some(kapp) = kapp_controller(&names, repository, proxy.as_ref(), &authorities) {
        files.push(file("kapp-controller-addon.yaml", document(&kapp)));
    }
    let mut notes = repository
        .map(|repository| repository.notes.clone())
        .unwrap_or_default();
    notes.extend(proxy.and_then(|proxy| proxy.percent_note("TKG")));
    Ok(RenderedConfig::of_files(files, notes))
}

/// Returns the proxy. Fails if TKG would refuse it.
fn proxy(request: &RenderRequest<'_>) -> Result<Option<PodProxy>, Failure> {
    let written = request.site.and_then(|site| site.proxy.as_ref());
    // when TKG creates a cluster, http_proxy.yaml asserts that both proxies are set, or neither
    if written.is_some_and(|proxy| proxy.http.is_some() != proxy.https.is_some()) {
        return Err(Failure::usage(
            "TKG needs both proxies or none; set both proxy.http and proxy.https, or remove both",
        ));
    }
    let proxy = PodProxy::of(request, NoProxyDialect::Dotted)?;
    // `*` is an error anywhere in the list (tanzu-framework, tkg/client/validate.go)
    if proxy
        .as_ref()
        .is_some_and(|proxy| proxy.no_proxy.contains('*'))
    {
        return Err(Failure::usage(
            "TKG refuses '*' in NO_PROXY; write .example.com for *.example.com",
        ));
    }
    Ok(proxy)
}

/// The name of a variable and its value, a text or a boolean.
type TopologyVariable = (&'static str, Value);

/// Returns the variables of a cluster configuration, with their values for the site.
/// `behind_proxy` are the authorities that machines trust if the proxy has one of its own.
fn variables(
    repository: Option<&TkgRepository>,
    proxy: Option<&PodProxy>,
    behind_proxy: Option<&str>,
) -> Vec<TopologyVariable> {
    let mut variables: Vec<TopologyVariable> = Vec::new();
    if let Some(repository) = repository {
        variables.extend([
            ("TKG_CUSTOM_IMAGE_REPOSITORY", json!(repository.name)),
            (
                "TKG_CUSTOM_IMAGE_REPOSITORY_SKIP_TLS_VERIFY",
                json!(repository.skip_verify),
            ),
            (
                "TKG_CUSTOM_IMAGE_REPOSITORY_CA_CERTIFICATE",
                // TKG expects the PEM text in base64
                json!(STANDARD.encode(&repository.ca)),
            ),
        ]);
    }
    if let Some(proxy) = proxy {
        variables.extend([
            // required by TKG besides the URLs (validate.go)
            ("TKG_HTTP_PROXY_ENABLED", json!(true)),
            ("TKG_HTTP_PROXY", json!(proxy.http)),
            ("TKG_HTTPS_PROXY", json!(proxy.https)),
            ("TKG_NO_PROXY", json!(proxy.no_proxy)),
        ]);
    }
    variables.extend(behind_proxy.map(|pem| ("TKG_PROXY_CA_CERT", STANDARD.encode(pem).into())));
    variables
}

/// Returns the variables of TKG's `ClusterClass`, as TKG sets them
/// (`config_variable_association.star` of tanzu-framework). Since TKG 2, Cluster API makes the
/// objects of machines from them, and undoes other changes of these objects.
fn topology(
    repository: Option<&TkgRepository>,
    proxy: Option<&PodProxy>,
    behind_proxy: Option<&str>,
) -> Value {
    let own = repository.filter(|repository| !repository.ca.is_empty());
    let trusted = match (behind_proxy, own) {
        (Some(pem), _) => Some(("proxy", pem)),
        (None, Some(repository)) => Some(("imageRepository", &*repository.ca)),
        (None, None) => None,
    };
    let mut variables = Vec::new();
    let mut add = |name: &str, value: Value| variables.push(json!({"name": name, "value": value}));
    if let Some(repository) = repository {
        let validation = repository.skip_verify.then_some(false);
        add(
            "imageRepository",
            json!({"host": repository.name, "tlsCertificateValidation": validation}),
        );
        // without an authority, tlsCertificateValidation has no effect on containerd
        if repository.skip_verify && trusted.is_none() {
            let registry = json!({"host": repository.host(), "skipTlsVerify": true});
            add("additionalImageRegistries", json!([registry]));
        }
    }
    if let Some(proxy) = proxy {
        add(
            "proxy",
            json!({
                "httpProxy": proxy.http,
                "httpsProxy": proxy.https,
                "noProxy": proxy.no_proxy.split(',').collect::<Value>(),
            }),
        );
    }
    if let Some((name, pem)) = trusted {
        let authority = json!({"name": name, "data": STANDARD.encode(pem)});
        add("trust", json!({"additionalTrustedCAs": [authority]}));
    }
    json!({"variables": variables})
}

/// Formats the variables as a file.
fn lines(variables: &[TopologyVariable]) -> String {
    variables
        .iter()
        .map(|(name, text)| format!("{name}: {}\n", variable_value(text)))
        .collect()
}

fn variable_value(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), quoted_string)
}

/// Returns `text` as a YAML string, which is quoted if it would be read as another type.
fn yaml_text(text: &str) -> String {
    document(&text.into()).trim().to_owned()
}

/// Returns the Secret in which TKG stores the configuration of a cluster.
fn config_values(names: &ClusterNames<'_>, variables: &[TopologyVariable]) -> Value {
    let values = format!(
        "CLUSTER_NAME: {}\nNAMESPACE: {}\n{}",
        yaml_text(names.cluster),
        yaml_text(names.namespace),
        lines(variables)
    );
    let metadata = json!({
        "labels": {
            "clusterctl.cluster.x-k8s.io/move": "",
            "tkg.tanzu.vmware.com/cluster-name": names.cluster,
        },
        "name": format!("{}-config-values", names.cluster),
        "namespace": names.namespace,
    });
    let kind = Some("addons.cluster.x-k8s.io/resource-set");
    secret(metadata, kind, json!({"value": values}))
}

/// The upstream repository of TKG's images.
pub(super) const SOURCE: PlatformSetting = PlatformSetting::new(
    "source",
    "REPOSITORY",
    "The upstream repository of TKG's images",
)
.with_default("projects.registry.vmware.com/tkg");

/// The names of the cluster.
pub(super) struct ClusterNames<'n> {
    pub(super) cluster: &'n str,
    pub(super) namespace: &'n str,
}

impl ClusterNames<'_> {
    /// Returns the `Cluster` of Cluster API with this topology.
    fn cluster_of(&self, topology: Value) -> Value {
        object(
            "cluster.x-k8s.io/v1beta1",
            "Cluster",
            metadata(self.cluster, Some(self.namespace)),
            ("spec", json!({"topology": topology})),
        )
    }
}

/// The repository from which TKG pulls its images.
pub(super) struct TkgRepository {
    /// The repository without a scheme: `host[:port]/path`.
    pub(super) name: String,
    pub(super) skip_verify: bool,
    /// The certificates of its authority; empty if the site has none.
    pub(super) ca: String,
    pub(super) notes: Vec<String>,
}

impl TkgRepository {
    /// Returns the repository of the site.
    pub(super) fn of(request: &RenderRequest<'_>) -> Result<TkgRepository, Failure> {
        let registry = request.registry()?;
        if registry.plain_http {
            let why = "TKG pulls images only over https; give the registry a certificate, and add \
                       registry.ca to the site";
            return Err(Failure::usage(why));
        }
        let source = request.settings.need(SOURCE.key)?;
        let pause: ImageRef = format!("{source}/pause").parse().map_err(|_| {
            let why = "it must be a repository, such as projects.registry.vmware.com/tkg";
            wrong_value(SOURCE.key, source, why)
        })?;
        // TKG appends `/pause` and other names to one repository, so the repository of `pause`
        // shows the prefix
        let destinations = request.mapping.destinations(&pause);
        let Some(destination) = destinations.first() else {
            return Err(Failure::usage(format!(
                "{pause} has no destination; change registry.paths"
            )));
        };
        let name = format!("{}/{}", destination.registry, destination.repository);
        let name = name.strip_suffix("/pause").ok_or_else(|| {
            let why = format!(
                "TKG appends image names to one repository, and {name} does not end in /pause; \
                 change registry.paths"
            );
            Failure::usage(why)
        })?;
        let mut notes: Vec<String> = registry.client_note("TKG").into_iter().collect();
        // without a lock, it is unknown which images the registry has
        let has_images = request.images().next().is_some();
        if has_images && !request.images().any(|image| image.name() == pause.name()) {
            notes.push(format!(
                "the lock has no {}, which every node pulls",
                pause.name()
            ));
        }
        if registry.has_any_account() {
            notes.push(
                "TKG does not support an account for the registry: nodes pull without one".into(),
            );
        }
        let ca = registry.ca.clone().unwrap_or_default();
        if name.starts_with('[') && (registry.skip_verify || !ca.is_empty()) {
            let why = "containerd on TKG's machines does not start if the name of a table contains \
                       an IPv6 address, and the TLS settings of the registry need such a table; \
                       give the registry a name, and write the name as registry.address";
            return Err(Failure::usage(why));
        }
        Ok(TkgRepository {
            name: name.to_owned(),
            skip_verify: registry.skip_verify,
            ca,
            notes,
        })
    }

    /// Returns the host and port of the registry.
    pub(super) fn host(&self) -> &str {
        self.name.split('/').next().unwrap_or(&self.name)
    }

    /// Returns the TLS settings of containerd for the registry, in the form that TKG itself writes.
    pub(super) fn trust(&self) -> Option<String> {
        let host = self.host();
        let key = match (self.skip_verify, self.ca.is_empty()) {
            (true, _) => "insecure_skip_verify = true".to_owned(),
            (false, false) => format!("ca_file = \"{}\"", self.ca_path()),
            (false, true) => return None,
        };
        Some(format!(
            "[plugins.\"io.containerd.grpc.v1.cri\".registry.configs.\"{host}\".tls]\\n  {key}\\n"
        ))
    }

    /// Returns the path of the registry's certificate authority on machines.
    pub(super) fn ca_path(&self) -> String {
        format!("/etc/containerd/{}.crt", self.host())
    }
}

// The files of machines of existing clusters, and the commands that run before kubeadm.

/// The path of the authorities that machines behind a proxy trust.
const TRUSTED: &str = "/etc/ssl/certs/tkg-custom-ca.pem";

/// Returns the commands with which TKG makes the programs of Photon OS, Ubuntu and Amazon Linux
/// trust the authorities in [`TRUSTED`] (`http_proxy_ca_cert.yaml` of tanzu-framework).
fn trust_commands() -> [String; 3] {
    let photon = "rehash_ca_certificates.sh";
    let ubuntu = "update-ca-certificates";
    let amazon = "update-ca-trust";
    [
        format!("! which {photon} 2>/dev/null || {photon}"),
        format!(
            "! which {ubuntu} 2>/dev/null || (mv {TRUSTED} \
             /usr/local/share/ca-certificates/tkg-custom-ca.crt && {ubuntu})"
        ),
        format!(
            "! which {amazon} 2>/dev/null || ({amazon} force-enable && mv {TRUSTED} \
             /etc/pki/ca-trust/source/anchors/tkg-custom-ca.crt && {amazon} extract)"
        ),
    ]
}

/// The files of the machines of a cluster, and the commands that run before kubeadm.
pub(super) struct ClusterMachines {
    /// The repository of kubeadm's images, if it is the site's.
    repository: Option<String>,
    files: Vec<Value>,
    commands: Vec<String>,
}

impl ClusterMachines {
    /// Returns the files and commands of machines that use this repository and proxy, and trust
    /// the authorities `behind_proxy`.
    pub(super) fn of(
        request: &RenderRequest<'_>,
        repository: Option<&TkgRepository>,
        proxy: Option<&PodProxy>,
        behind_proxy: Option<&str>,
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
        files.extend(behind_proxy.map(|pem| node_file(TRUSTED, 0o444, pem)));
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
        if behind_proxy.is_some() {
            commands.extend(trust_commands());
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
            files,
            commands,
        })
    }

    /// Returns the configuration of machines. `images` is the section with the repositories of
    /// kubeadm's images. `init` says whether a machine may create the cluster. cloud-init replaces
    /// `ds.meta_data.hostname` by the name of the machine.
    fn spec(&self, images: Option<Value>, init: bool) -> Value {
        let node = json!({"nodeRegistration": {"name": "{{ ds.meta_data.hostname }}"}});
        json!({
            "clusterConfiguration": images,
            "initConfiguration": init.then_some(&node),
            "joinConfiguration": node,
            "files": self.files,
            "preKubeadmCommands": self.commands,
        })
    }

    /// Returns the patch of the control plane.
    pub(super) fn control_plane(&self, names: &ClusterNames<'_>) -> Value {
        let images = self.repository.as_ref().map(|repository| {
            let images = json!({"imageRepository": repository});
            json!({"imageRepository": repository, "dns": images, "etcd": {"local": images}})
        });
        let name = format!("{}-control-plane", names.cluster);
        let metadata = metadata(&name, Some(names.namespace));
        kubeadm_control_plane(metadata, self.spec(images, true))
    }

    /// Returns the patch of the workers.
    pub(super) fn workers(&self, names: &ClusterNames<'_>) -> Value {
        let name = format!("{}-md-0", names.cluster);
        let metadata = metadata(&name, Some(names.namespace));
        kubeadm_config_template(metadata, self.spec(None, false))
    }
}

/// The comments that ytt requires before the values of an addon.
const HEADER: &str = "#@data/values\n#@overlay/match-child-defaults missing_ok=True\n---\n";

/// Returns the Secret with the values of the cloud provider (`cpi`) or storage (`csi`) of vSphere.
pub(super) fn vsphere(names: &ClusterNames<'_>, part: &str, kind: &str, proxy: &PodProxy) -> Value {
    let metadata = addon_metadata(names, &format!("vsphere-{part}"), kind);
    let values = match part {
        "cpi" => json!({"vsphereCPI": proxy.lower_case_values()}),
        _ => json!({"vsphereCSI": proxy.lower_case_values()}),
    };
    addon(metadata, &values)
}

/// Returns the Secret with the values of kapp-controller: the proxy, and the TLS settings for the
/// repository and for hosts behind the proxy, whose `authorities` it trusts. The names of these
/// values differ from those of other addons. Returns `None` if there are no values.
pub(super) fn kapp_controller(
    names: &ClusterNames<'_>,
    repository: Option<&TkgRepository>,
    proxy: Option<&PodProxy>,
    authorities: &str,
) -> Option<Value> {
    let skip_verify = repository.filter(|repository| repository.skip_verify);
    let config = some(json!({
        "caCerts": Some(authorities).filter(|all| !all.is_empty()),
        "httpProxy": proxy.map(|proxy| &proxy.http),
        "httpsProxy": proxy.map(|proxy| &proxy.https),
        "noProxy": proxy.map(|proxy| &proxy.no_proxy),
        "dangerousSkipTLSVerify": skip_verify.map(TkgRepository::host),
    }));
    if config.is_null() {
        return None;
    }
    let values = json!({"kappController": {
        "namespace": "tkg-system",
        "createNamespace": true,
        "globalNamespace": "tanzu-package-repo-global",
        "image": repository.map(|repository| json!({"repository": repository.name})),
        "config": config,
    }});
    let mut metadata = addon_metadata(names, "kapp-controller", "addons-management");
    metadata["annotations"]["tkg.tanzu.vmware.com/remote-app"] = "true".into();
    metadata["labels"]["clusterctl.cluster.x-k8s.io/move"] = "".into();
    Some(addon(metadata, &values))
}

/// Returns the Secret of an addon with these values.
fn addon(metadata: Value, values: &Value) -> Value {
    let text = format!("{HEADER}{}", document(values));
    let kind = Some("tkg.tanzu.vmware.com/addon");
    secret(metadata, kind, json!({"values.yaml": text}))
}

/// Returns the metadata by which TKG finds the Secret of an addon.
fn addon_metadata(names: &ClusterNames<'_>, addon: &str, kind: &str) -> Value {
    json!({
        "annotations": {"tkg.tanzu.vmware.com/addon-type": format!("{kind}/{addon}")},
        "labels": {
            "tkg.tanzu.vmware.com/addon-name": addon,
            "tkg.tanzu.vmware.com/cluster-name": names.cluster,
        },
        "name": format!("{}-{addon}-addon", names.cluster),
        "namespace": names.namespace,
    })
}
