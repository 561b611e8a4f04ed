//! The settings of the platform, the list of its files, and the variables of a cluster's
//! configuration.

use super::machines::{ClusterMachines, kapp_controller, vsphere};
use crate::kubernetes_objects::{document, map, secret};
use crate::no_proxy::NoProxyDialect;
use crate::node_proxy::PodProxy;
use crate::platform::{OutputForm, PlatformSpec, RenderPlatform, RenderedConfig, RenderedOutput};
use crate::rendered_file::{RenderedFile, quoted_string};
use crate::request::RenderRequest;
use crate::settings::wrong_value;
use crate::settings::{CLUSTER, NAMESPACE, PlatformSetting};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use landfall_model::{Consumer, Failure, ImageRef};
use serde_yaml::Value;

pub(in crate::platforms) struct TkgPlatform;

impl RenderPlatform for TkgPlatform {
    fn spec(&self) -> &'static PlatformSpec {
        &PlatformSpec {
            name: "tkg",
            about: "TKG: the variables of a cluster's configuration, and the objects that TKG \
                    makes from them",
            details: "cluster-config.yaml is the input of TKG for new clusters. The other files \
                      are what TKG makes from it, for existing clusters: the machines' files and \
                      commands, and the Secrets of CPI, CSI, kapp-controller and the configuration \
                      itself.",
            inputs: &[],
            settings: &[CLUSTER, NAMESPACE, SOURCE],
            consumer: Some(Consumer::Tkg),
            reads_lock: true,
            writes: OutputForm::Files { not_into: None },
        }
    }

    fn works_without_lock(&self) -> bool {
        true
    }

    fn has_proxy_part(&self) -> bool {
        true
    }

    fn render(&self, request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
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
        let variables = variables(repository, proxy.as_ref());
        let secret = proxy.as_ref().is_some_and(|proxy| proxy.has_account);
        let file = |name: &str, text: String| RenderedFile::new(name, text).secret(secret);
        let machines = ClusterMachines::of(request, repository, proxy.as_ref())?;
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
        let proxy_ca = request
            .proxy()?
            .and_then(|proxy| proxy.ca)
            .unwrap_or_default();
        if let Some(kapp) = kapp_controller(&names, repository, proxy.as_ref(), &proxy_ca) {
            files.push(file("kapp-controller-addon.yaml", document(&kapp)));
        }
        let notes = repository
            .map(|repository| repository.notes.clone())
            .unwrap_or_default();
        Ok(RenderedConfig {
            output: RenderedOutput::Files(files),
            notes,
            ..RenderedConfig::default()
        })
    }
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
fn variables(
    repository: Option<&TkgRepository>,
    proxy: Option<&PodProxy>,
) -> Vec<TopologyVariable> {
    let mut variables: Vec<TopologyVariable> = Vec::new();
    if let Some(repository) = repository {
        variables.extend([
            (
                "TKG_CUSTOM_IMAGE_REPOSITORY",
                repository.name.as_str().into(),
            ),
            (
                "TKG_CUSTOM_IMAGE_REPOSITORY_SKIP_TLS_VERIFY",
                repository.skip_verify.into(),
            ),
            (
                "TKG_CUSTOM_IMAGE_REPOSITORY_CA_CERTIFICATE",
                // TKG expects the PEM text in base64
                STANDARD.encode(&repository.ca).into(),
            ),
        ]);
    }
    if let Some(proxy) = proxy {
        variables.extend([
            // required by TKG besides the URLs (validate.go)
            ("TKG_HTTP_PROXY_ENABLED", true.into()),
            ("TKG_HTTP_PROXY", proxy.http.as_str().into()),
            ("TKG_HTTPS_PROXY", proxy.https.as_str().into()),
            ("TKG_NO_PROXY", proxy.no_proxy.as_str().into()),
        ]);
    }
    variables
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
        .map_or_else(|| document(value).trim().to_owned(), quoted_string)
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
    let labels = map([
        ("clusterctl.cluster.x-k8s.io/move", "".into()),
        ("tkg.tanzu.vmware.com/cluster-name", names.cluster.into()),
    ]);
    let name = format!("{}-config-values", names.cluster);
    let metadata = map([
        ("labels", labels),
        ("name", name.into()),
        ("namespace", names.namespace.into()),
    ]);
    secret(
        metadata,
        Some("addons.cluster.x-k8s.io/resource-set"),
        &[("value", &values)],
    )
}

/// The upstream repository of TKG's images.
pub(super) const SOURCE: PlatformSetting = PlatformSetting {
    key: "source",
    value_name: "REPOSITORY",
    help: "The upstream repository of TKG's images",
    default: Some("projects.registry.vmware.com/tkg"),
    choices: &[],
};

/// The names of the cluster.
pub(super) struct ClusterNames<'n> {
    pub(super) cluster: &'n str,
    pub(super) namespace: &'n str,
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
        let mut notes = Vec::new();
        // without a lock, it is unknown which images the registry has
        let has_images = request.images().next().is_some();
        if has_images && !request.images().any(|image| image.name() == pause.name()) {
            notes.push(format!(
                "the lock has no {}, which every node pulls",
                pause.name()
            ));
        }
        if registry.has_account() || registry.has_accounts_of_paths() {
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
