//! `openshift`: mirror sets for pulls by digest and by tag, the trust in the registry, and the
//! cluster-wide proxy.

use crate::kubernetes_objects::{document, is_object_name, metadata, object, some};
use crate::node_registry::registry_locations;
use crate::platform::{RenderPlatform, RenderRequest, RenderedConfig, SITE_CLUSTER};
use crate::proxy::{NoProxyDialect, ProxyAddress};
use crate::rendered_file::RenderedFile;
use landfall_model::{Consumer, Failure};
use serde_json::{Value, json};
use std::net::IpAddr;

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "openshift",
    about: "OpenShift: ImageDigestMirrorSet and ImageTagMirrorSet, the trust in the registry, and \
            the proxy",
    details: "Nodes restart their container runtime when a mirror set is applied, and reboot one \
              after the other when the proxy changes.",
    settings: &[SITE_CLUSTER],
    consumer: Some(Consumer::Openshift),
    has_proxy_part: true,
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let mut files = Vec::new();
    let mut notes = Vec::new();
    if request.target.is_some() {
        files = registry_files(request, &mut notes)?;
    }
    files.extend(proxy_files(request, &mut notes)?);
    Ok(RenderedConfig::of_files(files, notes))
}

/// Returns the mirror sets, and the objects that make nodes trust the registry.
fn registry_files(
    request: &RenderRequest<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<RenderedFile>, Failure> {
    let registry = request.registry()?;
    registry.refuse_ipv6("nodes of OpenShift")?;
    let own = &registry.target.registry;
    let policy = if request.upstream_fallback() {
        "AllowContactingSource"
    } else {
        "NeverContactSource"
    };
    // an ImageDigestMirrorSet applies only to pulls by digest, an ImageTagMirrorSet only to
    // pulls by tag, so both are written
    let sources = registry_locations(request);
    let set = |kind: &str, key: &str| {
        let mirror = |(source, location): &(String, String)| {
            json!({
                "source": source,
                "mirrors": [location],
                "mirrorSourcePolicy": policy,
            })
        };
        let list: Value = sources.iter().map(mirror).collect();
        config_object(kind, "landfall", json!({(key): list}))
    };
    let mut files = vec![
        RenderedFile::new(
            "image-digest-mirror-set.yaml",
            set("ImageDigestMirrorSet", "imageDigestMirrors"),
        ),
        RenderedFile::new(
            "image-tag-mirror-set.yaml",
            set("ImageTagMirrorSet", "imageTagMirrors"),
        ),
    ];
    if let Some(ca) = &registry.ca {
        // a key of a ConfigMap cannot contain `:`, so the port follows two dots
        let key = own.replace(':', "..");
        let authorities = config_map("landfall-registry-ca", &key, ca);
        files.push(RenderedFile::new("registry-ca.yaml", authorities));
    }
    let trusted = registry.ca.as_ref();
    let trusted = trusted.map(|_| json!({"name": "landfall-registry-ca"}));
    let insecure = registry.is_insecure();
    let insecure = insecure.then(|| json!({"insecureRegistries": [own]}));
    let spec = some(json!({"additionalTrustedCA": trusted, "registrySources": insecure}));
    if !spec.is_null() {
        let config = config_object("Image", "cluster", spec);
        files.push(RenderedFile::new("image-config.yaml", config));
    }
    notes.extend(registry.client_note("OpenShift"));
    if registry.has_any_account() {
        notes.push(
            "add the registry's account to the cluster's pull secret: `oc set data \
             secret/pull-secret -n openshift-config`"
                .to_owned(),
        );
    }
    Ok(files)
}

/// The ConfigMap with the proxy's authority, in the namespace `openshift-config`. Early releases
/// accept no other name.
const AUTHORITIES: &str = "user-ca-bundle";

/// Returns the cluster-wide proxy, and its authority. The network operator ignores the whole proxy
/// if one of its values is invalid (`proxyconfig/validation.go`), so such a value is refused.
fn proxy_files(
    request: &RenderRequest<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<RenderedFile>, Failure> {
    let Some(proxy) = request.proxy()? else {
        return Ok(Vec::new());
    };
    let http = proxy.http.as_ref().map(ProxyAddress::url);
    if http.as_ref().is_some_and(|url| !url.starts_with("http://")) {
        return Err(Failure::usage(
            "OpenShift accepts only a proxy with http:// for http targets; change proxy.http of \
             the site",
        ));
    }
    // the operator adds these entries itself
    let added = ["svc", "127.0.0.1", "localhost"];
    let entries = request.no_proxy().entries(NoProxyDialect::Bare);
    let entries = entries
        .iter()
        .filter(|entry| !added.contains(&entry.as_str()))
        .map(|entry| no_proxy_entry(entry))
        .collect::<Result<Vec<_>, _>>()?
        .join(",");
    let spec = json!({
        "httpProxy": http,
        "httpsProxy": proxy.https.as_ref().map(ProxyAddress::url),
        "noProxy": Some(entries).filter(|all| !all.is_empty()),
        "trustedCA": proxy.ca.as_ref().map(|_| json!({"name": AUTHORITIES})),
    });
    let object = config_object("Proxy", "cluster", spec);
    let mut files = vec![RenderedFile::new("proxy.yaml", object).secret(proxy.has_account())];
    if let Some(ca) = &proxy.ca {
        let name = format!("{AUTHORITIES}.yaml");
        let authorities = config_map(AUTHORITIES, "ca-bundle.crt", ca);
        files.push(RenderedFile::new(name, authorities));
        if request.existing.is_empty() {
            notes.push(format!(
                "if the cluster has a ConfigMap {AUTHORITIES}, merge into it with --into FILE \
                 instead of replacing its certificates"
            ));
        }
    }
    Ok(files)
}

/// Returns an entry of NO_PROXY in the form that the network operator accepts: a range, or a name
/// in lower case that may begin with a dot. An IPv4 address is a name too.
fn no_proxy_entry(entry: &str) -> Result<String, Failure> {
    if let Ok(IpAddr::V6(address)) = entry.parse() {
        return Ok(format!("{address}/128"));
    }
    // `*.example.com` means the same as `.example.com`
    let name = entry.strip_prefix('*').unwrap_or(entry).to_lowercase();
    if entry.contains('/') || is_object_name(name.strip_prefix('.').unwrap_or(&name)) {
        return Ok(name);
    }
    Err(Failure::usage(format!(
        "OpenShift accepts only names, addresses and ranges in NO_PROXY, and not '{entry}'; change \
         proxy.noProxy of the site"
    )))
}

/// Returns a ConfigMap from which the cluster's configuration takes certificates.
fn config_map(name: &str, key: &str, certificates: &str) -> String {
    let metadata = metadata(name, Some("openshift-config"));
    let data = json!({(key): certificates});
    document(&object("v1", "ConfigMap", metadata, ("data", data)))
}

/// Returns an object of the cluster's configuration.
fn config_object(kind: &str, name: &str, spec: Value) -> String {
    let metadata = metadata(name, None);
    document(&object(
        "config.openshift.io/v1",
        kind,
        metadata,
        ("spec", spec),
    ))
}
