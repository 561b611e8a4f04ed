//! `kubespray`: group variables that point nodes at the site's registry and file server, and set
//! the proxy.

use super::containerd::{mirror_url, other_accounts};
use crate::kubernetes_objects::{document, some};
use crate::node_registry::{
    HostMirror, NodeRegistry, host_mirrors, registry_locations, separate_accounts_note,
};
use crate::platform::{
    BasicCredentials, OutputForm, PlatformSetting, RenderPlatform, RenderRequest, RenderedConfig,
};
use crate::proxy::{NoProxyDialect, PodProxy};
use crate::rendered_file::RenderedFile;
use landfall_model::{Consumer, Failure, KUBESPRAY_REGISTRIES};
use serde_json::{Map, Value, json};

/// The folder of the variables in an inventory.
const VARIABLES: &str = "group_vars/all";

/// The folder of the certificates on nodes.
const CERTIFICATES: &str = "etc/ssl/landfall";

/// Selects the runtime whose mirrors are written.
const MANAGER: PlatformSetting = PlatformSetting::new(
    "container-manager",
    "RUNTIME",
    "The runtime of nodes, as in Kubespray's container_manager",
)
.one_of(&["containerd", "crio"]);

/// The variable with the account of the registry.
const ACCOUNT: &str = "landfall_registry_account";

/// The variables with the URLs of file servers, and the host that each URL replaces
/// (`roles/kubespray_defaults/defaults/main/download.yml` of Kubespray).
const FILE_SERVERS: [(&str, &str); 4] = [
    ("github_url", "github.com"),
    ("dl_k8s_io_url", "dl.k8s.io"),
    ("storage_googleapis_url", "storage.googleapis.com"),
    ("get_helm_url", "get.helm.sh"),
];

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "kubespray",
    about: "Kubespray: certificates, and group variables for the registry, the file server \
            and the proxy",
    details: "Copy group_vars/all to the inventory. Nodes need the files below node/ \
              before Kubespray runs; their paths in that folder are the paths on a node.",
    settings: &[MANAGER],
    consumer: Some(Consumer::Kubespray),
    writes: OutputForm::Files {
        not_into: Some(
            "Ansible reads every file in group_vars/all, so write the files with -o DIR",
        ),
    },
    has_proxy_part: true,
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let mut variables = Map::new();
    let mut secrets = Map::new();
    let mut files = Vec::new();
    let mut notes = Vec::new();
    if request.target.is_some() {
        add_registry(
            request,
            &mut variables,
            &mut secrets,
            &mut files,
            &mut notes,
        )?;
    }
    if let Some(proxy) = PodProxy::of(request, NoProxyDialect::Bare)? {
        notes.extend(proxy.percent_note("Kubespray"));
        let urls = if proxy.has_account {
            &mut secrets
        } else {
            &mut variables
        };
        urls.insert("http_proxy".into(), proxy.http.into());
        urls.insert("https_proxy".into(), proxy.https.into());
        // Kubespray adds the nodes and the ranges of the cluster
        let direct = request.no_proxy().of_installation();
        variables.insert("additional_no_proxy".into(), direct.into());
        if let Some(ca) = request.proxy()?.and_then(|proxy| proxy.ca) {
            let path = format!("{CERTIFICATES}/proxy-ca.crt");
            variables.insert("https_proxy_cert_file".into(), format!("/{path}").into());
            files.push(RenderedFile::new(format!("node/{path}"), ca));
        }
        // the packages come from the site, without the proxy
        if !request.lock.packages.is_empty() {
            variables.insert("skip_http_proxy_on_os_packages".into(), true.into());
        }
    }
    files.push(RenderedFile::new(
        format!("{VARIABLES}/landfall.yml"),
        document(&variables.into()),
    ));
    if !secrets.is_empty() {
        let path = format!("{VARIABLES}/landfall-credentials.yml");
        files.push(RenderedFile::new(path, document(&secrets.into())).secret(true));
        notes.push(format!(
            "encrypt {VARIABLES}/landfall-credentials.yml with `ansible-vault encrypt`"
        ));
    }
    Ok(RenderedConfig::of_files(files, notes))
}

/// Adds the variables and files for the registry and the file server.
fn add_registry(
    request: &RenderRequest<'_>,
    variables: &mut Map<String, Value>,
    secrets: &mut Map<String, Value>,
    files: &mut Vec<RenderedFile>,
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    let registry = request.registry()?;
    for (host, variable) in KUBESPRAY_REGISTRIES {
        let path = request.mapping.host_path(host);
        let destination = request.mapping.own_destination(&path).to_string();
        variables.insert(variable.into(), destination.trim_end_matches('/').into());
    }
    match request.file_server() {
        Some(url) => variables.extend(
            FILE_SERVERS.map(|(variable, host)| (variable.into(), format!("{url}/{host}").into())),
        ),
        None => notes.push(
            "the site has no file server, so nodes download files from upstream; add `files: \
             http://HOST:PORT` to it"
                .into(),
        ),
    }
    let account = registry.own_account()?;
    if request.settings.get(MANAGER.key) == Some("crio") {
        registry.refuse_ipv6("CRI-O")?;
        let own = registry.target.registry.as_str();
        variables.insert(
            "crio_registries".into(),
            crio_registries(request, &registry),
        );
        if let Some(BasicCredentials { username, password }) = account {
            let account = json!({"registry": own, "username": username, "password": password});
            secrets.insert("crio_registry_auth".into(), json!([account]));
        }
        files.extend(registry.trust(&format!("node/etc/containers/certs.d/{own}")));
        notes.extend(separate_accounts_note(request, &registry)?);
        return Ok(());
    }
    variables.insert(
        "containerd_registries_mirrors".into(),
        mirrors(request, &registry, account.is_some())?,
    );
    if let Some(account) = account {
        secrets.insert(ACCOUNT.into(), account.encoded().into());
    }
    files.extend(registry.trust(&format!("node/{CERTIFICATES}")));
    notes.extend(other_accounts(request, &registry, false)?);
    Ok(())
}

/// Returns the locations of hosts and repositories, from which Kubespray writes a registries.conf
/// for each.
fn crio_registries(request: &RenderRequest<'_>, registry: &NodeRegistry<'_>) -> Value {
    let is_insecure = registry.is_insecure();
    let locations = registry_locations(request).into_iter();
    let mut list: Vec<Value> = locations
        .map(|(prefix, location)| {
            if !request.upstream_fallback() {
                return json!({"prefix": prefix, "location": location, "insecure": is_insecure});
            }
            let host = prefix.split('/').next().unwrap_or_default();
            json!({
                "prefix": prefix,
                "location": prefix,
                "insecure": request.is_plain_upstream(host),
                "mirrors": [{"location": location, "insecure": is_insecure}],
            })
        })
        .collect();
    if is_insecure {
        list.push(json!({"location": registry.target.registry, "insecure": true}));
    }
    list.into()
}

/// Returns the mirrors of containerd, from which Kubespray writes a hosts.toml for each host.
fn mirrors(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
    has_account: bool,
) -> Result<Value, Failure> {
    let own = registry.target.registry.as_str();
    let list = host_mirrors(request)?.into_iter().map(|(host, mirrors)| {
        let is_upstream = host != own && host != "_default";
        let server = if request.upstream_fallback() && is_upstream {
            request.upstream_url(&host)
        } else {
            registry.url()
        };
        let list: Value = mirrors
            .iter()
            .map(|mirror| one_mirror(mirror, registry, has_account))
            .collect();
        json!({"prefix": host, "server": server, "mirrors": list})
    });
    Ok(list.collect())
}

/// Returns a mirror of a host. With a key for TLS, containerd tries TLS first, even if the registry
/// has plain HTTP.
fn one_mirror(mirror: &HostMirror, registry: &NodeRegistry<'_>, has_account: bool) -> Value {
    let file = |name: &str| format!("/{CERTIFICATES}/{name}");
    let has_tls = !registry.plain_http;
    let ca = registry.ca.as_ref().filter(|_| has_tls);
    let client = registry.client.as_ref().filter(|_| has_tls);
    let client = client.map(|_| [[file("client.cert"), file("client.key")]]);
    let skip_verify = (has_tls && registry.skip_verify).then_some(true);
    let header = has_account.then(|| format!("Basic {{{{ {ACCOUNT} }}}}"));
    json!({
        "host": mirror_url(mirror, registry),
        "capabilities": ["pull", "resolve"],
        "override_path": !mirror.prefix.is_empty(),
        "ca": ca.map(|_| [file("ca.crt")]),
        "client": client,
        "skip_verify": skip_verify,
        "header": some(json!({"Authorization": header})),
    })
}
