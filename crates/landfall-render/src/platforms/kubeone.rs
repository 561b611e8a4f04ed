//! `kubeone`: the parts of a `KubeOneCluster` that point at the registry and the proxy.

use crate::kubernetes_objects::document;
use crate::node_registry::{NodeRegistry, separate_accounts_note};
use crate::platform::{
    BasicCredentials, PlatformSetting, RenderPlatform, RenderRequest, RenderedConfig, SITE_CLUSTER,
};
use crate::proxy::{NoProxyDialect, ProxyAddress};
use crate::rendered_file::RenderedFile;
use landfall_model::{Consumer, Failure, without_scheme};
use serde_json::{Map, Value, json};

const VIA: PlatformSetting = PlatformSetting::new(
    "via",
    "WAY",
    "How nodes use the registry: overwrite (image names are changed), mirrors (containerd \
           pulls from the registry), or auto (overwrite with v1beta1, or if nodes verify the \
           registry's certificate and need no account; otherwise mirrors)",
)
.one_of(&["auto", "overwrite", "mirrors"]);

const API: PlatformSetting = PlatformSetting::new(
    "api",
    "VERSION",
    "The version of KubeOneCluster: v1beta1 is for releases up to 1.4, which support URLs of \
           binaries",
)
.one_of(&["v1beta2", "v1beta1"]);

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "kubeone",
    about: "KubeOne: the registry, certificates and proxy of a KubeOneCluster",
    details: "KubeOne uses an overwritten registry only over TLS and without an account; \
              containerd's mirrors support plain HTTP and accounts.",
    settings: &[VIA, API, SITE_CLUSTER],
    consumer: Some(Consumer::Kubeone),
    has_proxy_part: true,
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let is_old = request.settings.get(API.key) == Some("v1beta1");
    let mut notes = Vec::new();
    let mut parts = RegistryParts::default();
    if request.target.is_some() {
        parts = registry_parts(request, is_old, &mut notes)?;
    }
    let mut secret = parts.secret;
    let mut authorities = parts.authorities;
    let mut proxy_value = None;
    if let Some(proxy) = request.proxy()? {
        secret |= proxy.has_account();
        authorities.extend(proxy.ca);
        // KubeOne adds these entries itself (`defaults.go`)
        let added = ["127.0.0.1/8", "127.0.0.1", "localhost"];
        proxy_value = Some(json!({
            "http": proxy.http.as_ref().map(ProxyAddress::url),
            "https": proxy.https.as_ref().map(ProxyAddress::url),
            "noProxy": request.no_proxy().list_without(NoProxyDialect::Bare, &added),
        }));
    }
    let api_version = if is_old {
        "kubeone.io/v1beta1"
    } else {
        "kubeone.k8c.io/v1beta2"
    };
    let cluster = json!({
        "apiVersion": api_version,
        "kind": "KubeOneCluster",
        "registryConfiguration": parts.registry_configuration,
        "containerRuntime": parts.container_runtime,
        "assetConfiguration": parts.asset_configuration,
        "caBundle": Some(&authorities).filter(|all| !all.is_empty()),
        "proxy": proxy_value,
        "systemPackages": parts.system_packages,
    });
    if !authorities.is_empty() {
        notes.push(
            "KubeOne's components trust only the certificate authorities in caBundle: add those of \
             other hosts to which they connect"
                .to_owned(),
        );
    }
    if request.existing.is_empty() {
        notes.push("merge it into your KubeOneCluster: --into FILE".to_owned());
    }
    let files = vec![RenderedFile::new("kubeone-cluster.yaml", document(&cluster)).secret(secret)];
    Ok(RenderedConfig::of_files(files, notes))
}

/// The parts of a `KubeOneCluster` that name the registry and what else replaces upstream.
#[derive(Default)]
struct RegistryParts {
    registry_configuration: Value,
    container_runtime: Value,
    asset_configuration: Value,
    authorities: String,
    system_packages: Value,
    secret: bool,
}

fn registry_parts(
    request: &RenderRequest<'_>,
    is_old: bool,
    notes: &mut Vec<String>,
) -> Result<RegistryParts, Failure> {
    let registry = request.registry()?;
    let account = registry.own_account()?;
    let by_name = by_name(request, is_old, &registry, account.is_some())?;
    let mut parts = RegistryParts {
        secret: account.is_some() && !by_name,
        authorities: registry.ca.clone().unwrap_or_default(),
        ..RegistryParts::default()
    };
    if by_name {
        parts.registry_configuration = json!({
            "overwriteRegistry": request.mapping.target().to_string(),
            "insecureRegistry": registry.is_insecure().then_some(true),
        });
    } else {
        parts.container_runtime = mirrors(request, &registry, account, notes)?;
    }
    if is_old {
        parts.asset_configuration = assets(request, notes);
    }
    // if upstream must not be used, nodes cannot reach the package repositories that KubeOne would
    // set up
    if !request.upstream_fallback() {
        parts.system_packages = json!({"configureRepositories": false});
    }
    if registry.ca.is_some() && !registry.is_insecure() {
        notes.push(
            "KubeOne does not make nodes trust the registry's certificate authority: add it to the \
             trusted certificates of their operating system first"
                .to_owned(),
        );
    }
    notes.extend(registry.client_note("KubeOne"));
    notes.extend(separate_accounts_note(request, &registry)?);
    Ok(parts)
}

/// Whether image names are changed. Otherwise the registry is a mirror in containerd.
fn by_name(
    request: &RenderRequest<'_>,
    is_old: bool,
    registry: &NodeRegistry<'_>,
    account: bool,
) -> Result<bool, Failure> {
    let refused = |why: &str| Err(Failure::refused(why));
    let has_path = !registry.target.prefix.is_empty();
    match (request.settings.get(VIA.key), is_old) {
        (Some("mirrors"), true) => refused(
            "v1beta1 does not support mirrors of containerd; use --set via=overwrite, or \
             api=v1beta2",
        ),
        (_, true) if account => refused(
            "KubeOne uses an overwritten registry without an account, and the site has one; use \
             --set api=v1beta2",
        ),
        (_, true) => Ok(true),
        (Some("overwrite"), false) if registry.plain_http => refused(
            "KubeOne uses an overwritten registry only over TLS, and this one speaks plain HTTP; \
             use --set via=mirrors",
        ),
        (Some("overwrite"), false) if account => refused(
            "KubeOne uses an overwritten registry without an account, and the site has one; use \
             --set via=mirrors",
        ),
        // the hosts.toml that KubeOne writes for it has the path of the registry before `/v2`
        (Some("overwrite"), false) if registry.skip_verify && has_path => refused(
            "KubeOne cannot skip the verification of an overwritten registry with a path; use \
             --set via=mirrors",
        ),
        (Some("overwrite"), false) => Ok(true),
        (Some("mirrors"), false) => Ok(false),
        _ => Ok(!registry.is_insecure() && !account),
    }
}

/// A binary that machines download, and how it is recognized by its file name.
struct KubeOneAsset {
    key: &'static str,
    what: &'static str,
    is_it: fn(&str) -> bool,
}

const ASSETS: [KubeOneAsset; 3] = [
    KubeOneAsset {
        key: "cni",
        what: "an archive of CNI plugins for amd64",
        is_it: |name| {
            name.starts_with("cni-plugins-") && name.contains("amd64") && name.ends_with(".tgz")
        },
    },
    KubeOneAsset {
        key: "nodeBinaries",
        what: "kubernetes-node-linux-amd64.tar.gz",
        is_it: |name| name == "kubernetes-node-linux-amd64.tar.gz",
    },
    KubeOneAsset {
        key: "kubectl",
        what: "a kubectl for linux/amd64",
        is_it: |name| name == "kubectl",
    },
];

/// Returns the URLs of the binaries for machines: all three or none, as `KubeOne` requires.
fn assets(request: &RenderRequest<'_>, notes: &mut Vec<String>) -> Value {
    let mut assets = Map::new();
    for KubeOneAsset { key, what, is_it } in ASSETS {
        let is_it = |url: &&str| {
            // a binary for another system or architecture may have the same name
            let for_others = url.contains("/bin/") && !url.contains("/linux/amd64/");
            !for_others && is_it(url.rsplit('/').next().unwrap_or_default())
        };
        let locked = request.lock.files.iter().map(|file| file.name.as_str());
        match (
            &locked.filter(is_it).collect::<Vec<_>>()[..],
            request.file_server(),
        ) {
            (&[url], Some(files)) => {
                let url = format!("{files}/{}", without_scheme(url));
                assets.insert(key.into(), json!({"url": url}));
            }
            (_, None) => {
                let why =
                    "assetConfiguration needs a file server: add `files: http://…` to the site";
                notes.push(why.into());
            }
            ([], _) => notes.push(format!("assetConfiguration: the lock does not have {what}")),
            (several, _) => {
                notes.push(format!(
                    "assetConfiguration needs {what}; the lock has several: {}",
                    several.join(", ")
                ));
            }
        }
    }
    notes.dedup();
    if assets.len() == ASSETS.len() {
        return assets.into();
    }
    notes.push(
        "KubeOne accepts an assetConfiguration only with all of cni, nodeBinaries and kubectl, so \
         none is written"
            .into(),
    );
    Value::Null
}

/// Returns the mirrors for containerd in the notation of `KubeOne`.
fn mirrors(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
    account: Option<BasicCredentials>,
    notes: &mut Vec<String>,
) -> Result<Value, Failure> {
    let mut hosts = Map::new();
    // KubeOne applies the TLS settings of a host to its mirrors
    let skip_verify = registry.skip_verify;
    let tls = skip_verify.then(|| json!({"insecureSkipVerify": true}));
    let own = &registry.target.registry;
    for (host, host_mirrors) in crate::node_registry::host_mirrors(request)? {
        // images of hosts that are not in the lock come from upstream; the registry's own entry is
        // added below with its account
        if host == *own || host == "_default" {
            continue;
        }
        // `overridePath` applies to all mirrors of a host, so if one has a path, all need `/v2`
        let has_paths = host_mirrors.iter().any(|mirror| !mirror.prefix.is_empty());
        let urls: Value = host_mirrors
            .iter()
            .map(|mirror| match (has_paths, mirror.prefix.as_str()) {
                (false, _) => registry.url(),
                (true, "") => format!("{}/v2", registry.url()),
                (true, prefix) => format!("{}/v2/{prefix}", registry.url()),
            })
            .collect();
        let with_path = has_paths.then_some(true);
        let entry = json!({"mirrors": urls, "overridePath": with_path, "tlsConfig": tls});
        hosts.insert(host, entry);
    }
    notes.extend(request.fallback_note("KubeOne"));
    let own_entry = json!({"mirrors": [registry.url()], "tlsConfig": tls, "auth": account});
    hosts.insert(own.clone(), own_entry);
    Ok(json!({"containerd": {"registries": hosts}}))
}
