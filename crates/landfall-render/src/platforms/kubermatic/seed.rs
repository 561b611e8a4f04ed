//! A Seed with the node settings of its datacenters, and the datacenters.yaml of releases up to
//! 2.12.

use super::profile::{self, MachineProfile};
use super::{KubermaticProxy, NAMESPACE, at_registry, no_proxy, repository};
use crate::kubernetes_objects::{metadata, object, some};
use crate::node_registry::{NodeRegistry, host_mirrors, join_path};
use crate::platform::{PlatformSetting, RenderRequest, wrong_value};
use crate::proxy::NoProxyDialect;
use crate::render::sandbox_image;
use landfall_model::Failure;
use serde_json::{Map, Value, json};
use serde_yaml::Mapping;

pub(super) const SEED: PlatformSetting =
    PlatformSetting::new("seed", "NAME", "The Seed whose datacenters are configured")
        .with_default("seed");

pub(super) const DATACENTER: PlatformSetting = PlatformSetting::new(
    "datacenter",
    "NAME,...",
    "The datacenters of the Seed [default: those of the Seed in the file of --into, or \
           `datacenter`]",
);

/// Returns the Seed with the settings of its nodes, which use `profiles`.
pub(super) fn seed(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
    proxy: Option<&KubermaticProxy>,
    profiles: &[MachineProfile],
    notes: &mut Vec<String>,
) -> Result<Value, Failure> {
    let http_proxy = proxy.map(|proxy| &proxy.node_proxy);
    let no_proxy = proxy.map(|_| no_proxy(request).list(NoProxyDialect::Dotted));
    let own = &registry.target.registry;
    let mut registries = Map::new();
    let mirrors = request.target.map(|_| host_mirrors(request)).transpose()?;
    for (host, mirrors) in mirrors.unwrap_or_default() {
        // containerd uses https for a host without a scheme, so a registry with plain HTTP is
        // listed as its own `http://` mirror
        if host == *own && !registry.plain_http {
            continue;
        }
        // the mirrors pass through a Go map, so machines try them in alphabetical order
        if mirrors.len() > 1 {
            notes.push(format!(
                "KKP sorts the mirrors of {host}, so machines do not try them in the order of the \
                 site"
            ));
        }
        // operating-system-manager sets `override_path` because of this parameter; before May 2026,
        // it then does so for all mirrors of the host
        let has_paths = mirrors.iter().any(|mirror| !mirror.prefix.is_empty());
        let urls = mirrors.iter().map(|mirror| {
            let path = join_path("v2", &mirror.prefix);
            if has_paths {
                format!("{}/{path}?kubermatic=override_path%3Dtrue", registry.url())
            } else {
                registry.url()
            }
        });
        registries.insert(host, json!({"mirrors": urls.collect::<Value>()}));
    }
    notes.extend(request.target.and(request.fallback_note("KKP")));
    // the TLS settings of a host apply to its mirrors
    let hosts = registries
        .keys()
        .filter(|host| registry.skip_verify && *host != own);
    let insecure: Vec<&String> = [own].into_iter().chain(hosts).collect();
    let pause = match request.target {
        Some(_) => sandbox_image(request, notes)?,
        None => None,
    };
    let mirrors = request.target.map(|_| json!({"registries": registries}));
    let node = json!({
        "httpProxy": http_proxy,
        "noProxy": no_proxy,
        "insecureRegistries": registry.is_insecure().then_some(insecure),
        "pauseImage": pause,
        "containerdRegistryMirrors": mirrors,
    });
    let profile_settings = profile::default_profiles(profiles, notes);
    let datacenters = each_datacenter(request, &node, &profile_settings)?;
    let node_port_proxy = some(json!({
        "envoy": repository(request, &["docker.io/envoyproxy/envoy"]),
        "envoyManager": repository(request, &["quay.io/kubermatic/nodeport-proxy"]),
        "updater": repository(request, &["quay.io/kubermatic/nodeport-proxy"]),
    }));
    let spec = json!({
        "proxySettings": some(json!({"httpProxy": http_proxy, "noProxy": no_proxy})),
        "nodeportProxy": node_port_proxy,
        "datacenters": datacenters,
    });
    let name = request.settings.object_name(SEED.key)?.unwrap_or_default();
    let metadata = metadata(name, Some(NAMESPACE));
    Ok(object(
        "kubermatic.k8c.io/v1",
        "Seed",
        metadata,
        ("spec", spec),
    ))
}

/// Returns the datacenters of the Seed, each with these node settings and this specification.
fn each_datacenter(
    request: &RenderRequest<'_>,
    node: &Value,
    spec: &Value,
) -> Result<Value, Failure> {
    let datacenter = json!({"node": node, "spec": spec});
    let names = names(request)?.into_iter();
    let all = names.map(|name| (name, datacenter.clone()));
    Ok(some(all.collect()))
}

/// Returns the datacenters to configure: those that the user named, those of the Seed in the file
/// of `--into`, or `datacenter`. Fails if that Seed lacks a datacenter that the user named: KKP
/// refuses a datacenter without a provider, so landfall cannot add it.
fn names(request: &RenderRequest<'_>) -> Result<Vec<String>, Failure> {
    let seeds: Vec<&serde_yaml::Value> = request
        .existing
        .iter()
        .filter(|document| is_seed(document))
        .collect();
    let existing: Vec<String> = seeds
        .iter()
        .flat_map(|seed| {
            let datacenters = seed
                .get("spec")
                // datacenters.yaml of old releases has datacenters at the top level
                .unwrap_or(seed)
                .get("datacenters")
                .and_then(serde_yaml::Value::as_mapping);
            datacenters.into_iter().flat_map(Mapping::keys)
        })
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    let Some(given) = request.settings.get(DATACENTER.key) else {
        return Ok(if seeds.is_empty() {
            vec!["datacenter".to_owned()]
        } else {
            existing
        });
    };
    let names: Vec<String> = given
        .split(',')
        .map(|name| name.trim().to_owned())
        .collect();
    let why = match names
        .iter()
        .find(|name| !seeds.is_empty() && !existing.contains(name))
    {
        None => return Ok(names),
        Some(name) if existing.is_empty() => {
            format!(
                "the Seed of --into has no datacenter; add {name} to it first, with its provider"
            )
        }
        Some(name) => format!(
            "the Seed of --into has no datacenter {name}, only {}; add {name} first, with \
             its provider",
            existing.join(", ")
        ),
    };
    Err(wrong_value(DATACENTER.key, given, why))
}

/// Whether a document is a Seed, or the datacenters of one.
fn is_seed(document: &serde_yaml::Value) -> bool {
    match document.get("kind") {
        Some(kind) => kind == "Seed",
        None => document.get("datacenters").is_some(),
    }
}

/// Returns the node settings that releases up to 2.12 read from datacenters.yaml.
pub(super) fn datacenters(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
    proxy: Option<&KubermaticProxy>,
    notes: &mut Vec<String>,
) -> Result<Value, Failure> {
    // machine-controller appends the tag itself, and exits with an error if the name has one
    let hyperkube = at_registry(
        request,
        &[
            "k8s.gcr.io/hyperkube-amd64",
            "gcr.io/google_containers/hyperkube-amd64",
            "gcr.io/google-containers/hyperkube-amd64",
        ],
    );
    // The documentation of these releases always lists the registry as insecure, since they cannot
    // give machines a certificate authority. An insecure registry is used without verification of
    // its certificate, so landfall lists the registry only if the site says that it uses plain HTTP
    // or disables that verification.
    let insecure = registry.is_insecure();
    let insecure = insecure.then_some([&registry.target.registry]);
    if insecure.is_none() && registry.ca.is_some() {
        notes.push(
            "machines of user clusters trust the registry's certificate authority only if the \
             image of their operating system contains it"
                .into(),
        );
    }
    let node = json!({
        "http_proxy": proxy.map(|proxy| &proxy.node_proxy),
        "no_proxy": proxy.map(|_| no_proxy(request).list(NoProxyDialect::Dotted)),
        "insecure_registries": insecure,
        "pause_image": sandbox_image(request, notes)?,
        "hyperkube_image": hyperkube,
    });
    let datacenters = each_datacenter(request, &node, &Value::Null)?;
    Ok(json!({"datacenters": datacenters}))
}
