//! `k3s` and `rke2`: a registries.yaml, the switch that disables upstream, and the proxy.

use crate::kubernetes_objects::{document, some};
use crate::node_registry::{
    HostPaths, NodeRegistry, host_paths, join_path, separate_accounts_note,
};
use crate::platform::{RenderPlatform, RenderRequest, RenderedConfig, SITE_CLUSTER};
use crate::proxy::{NoProxyDialect, PodProxy};
use crate::rendered_file::{RenderedFile, quoted_string};
use landfall_model::{Consumer, Failure};
use serde_json::{Map, Value, json};

pub(super) static K3S: RenderPlatform = RenderPlatform {
    name: "k3s",
    about: "k3s: registries.yaml, no default endpoints, the proxy",
    details: DETAILS,
    settings: &[SITE_CLUSTER],
    consumer: Some(Consumer::K3s),
    has_proxy_part: true,
    ..RenderPlatform::new(|request| render("k3s", request))
};

pub(super) static RKE2: RenderPlatform = RenderPlatform {
    name: "rke2",
    about: "RKE2: registries.yaml, no default endpoints, the proxy",
    details: DETAILS,
    settings: &[SITE_CLUSTER],
    consumer: Some(Consumer::Rke2),
    has_proxy_part: true,
    ..RenderPlatform::new(|request| render("rke2", request))
};

const DETAILS: &str = "Paths in the output folder are the paths on a node. Archives of `landfall \
                       export images` in agent/images are loaded before any image is pulled.";

/// Renders the files of the distribution `name`.
fn render(name: &str, request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let mut services = environment(name, request)?;
    if request.target.is_none() {
        return Ok(RenderedConfig::of_files(services, Vec::new()));
    }
    let registry = request.registry()?;
    let folder = format!("etc/rancher/{name}");
    let (configs, secret) = configs(&registry, &folder)?;
    let registries = json!({"mirrors": mirrors(request, &registry), "configs": configs});
    let mut files = vec![
        RenderedFile::new(format!("{folder}/registries.yaml"), document(&registries))
            .secret(secret),
    ];
    files.extend(registry.trust(&format!("{folder}/certs.d")));
    // without this setting, the upstream host is always tried last, with the original names
    if !request.upstream_fallback() {
        let text = "disable-default-registry-endpoint: true\n";
        files.push(RenderedFile::new(
            format!("{folder}/config.yaml.d/50-landfall.yaml"),
            text,
        ));
    }
    files.append(&mut services);
    let mut notes = vec![format!(
        "without a registry, nodes can load an archive of `landfall export images` from \
         /var/lib/rancher/{name}/agent/images"
    )];
    // containerd/containerd#10055
    if registry.target.registry.starts_with('[') {
        notes.push(format!(
            "up to 1.31.5, {name} has containerd 1.x, which ignores a mirror at an IPv6 address; \
             for these releases, give {} a host name and set registry.address to that name",
            registry.target.registry
        ));
    }
    notes.extend(separate_accounts_note(request, &registry)?);
    Ok(RenderedConfig::of_files(files, notes))
}

/// Returns the environment of the services of `name`, with the proxy if the site has one.
fn environment(name: &str, request: &RenderRequest<'_>) -> Result<Vec<RenderedFile>, Failure> {
    let Some(proxy) = PodProxy::of(request, NoProxyDialect::Bare)? else {
        return Ok(Vec::new());
    };
    let services = if name == "k3s" {
        ["k3s", "k3s-agent"]
    } else {
        ["rke2-server", "rke2-agent"]
    };
    let line = |(name, value): &(&str, String)| format!("{name}={}\n", quoted_string(value));
    let text: String = proxy.variables().iter().map(line).collect();
    let file = |service| {
        RenderedFile::new(format!("etc/default/{service}"), text.clone())
            .mode(0o600)
            .secret(proxy.has_account)
    };
    Ok(services.map(file).into())
}

/// Returns every host with the registry as its endpoint, and the rewrites of names.
fn mirrors(request: &RenderRequest<'_>, registry: &NodeRegistry<'_>) -> Value {
    let url = registry.url();
    let mut mirrors = Map::new();
    for (host, paths) in host_paths(request) {
        let mirror = json!({"endpoint": [url], "rewrite": rewrites(&paths)});
        mirrors.insert(host, mirror);
    }
    let own = registry.target.registry.clone();
    mirrors.insert(own, json!({"endpoint": [url]}));
    mirrors.into()
}

/// Returns the rewrites of repositories. No two expressions match the same repository, because the
/// order in which the expressions are tried is not defined.
fn rewrites(paths: &HostPaths) -> Value {
    if paths.is_plain() {
        return Value::Null;
    }
    let rules: Vec<(String, String)> = if paths.others.is_empty() {
        vec![("^(.*)$".to_owned(), join_path(&paths.prefix, "$1"))]
    } else {
        // one expression for each locked repository: a general expression would also match the
        // repositories with their own paths
        let usual = paths
            .usual
            .iter()
            .map(|repository| (exactly(repository), join_path(&paths.prefix, repository)));
        let others = paths
            .others
            .iter()
            .map(|(repository, path)| (exactly(repository), path.clone()));
        usual.chain(others).collect()
    };
    rules.into_iter().collect()
}

fn exactly(repository: &str) -> String {
    format!("^{}$", repository.replace('.', r"\."))
}

/// Returns the connection settings of the registry, and whether they contain credentials.
fn configs(registry: &NodeRegistry<'_>, folder: &str) -> Result<(Value, bool), Failure> {
    let file = |name: &str| format!("/{folder}/certs.d/{name}");
    let client = registry.client.as_ref();
    let tls = some(json!({
        "ca_file": registry.ca.as_ref().map(|_| file("ca.crt")),
        "cert_file": client.map(|_| file("client.cert")),
        "key_file": client.map(|_| file("client.key")),
        "insecure_skip_verify": registry.skip_verify.then_some(true),
    }));
    let account = registry.own_account()?;
    let secret = account.is_some();
    let config = some(json!({"auth": account, "tls": tls}));
    let configs = some(json!({(registry.target.registry.as_str()): config}));
    Ok((configs, secret))
}
