//! `talos`: patches of the machine configuration with mirrors, certificates, account, proxy and
//! installer.

use super::containerd::{mirror_url, other_accounts};
use crate::kubernetes_objects::{document, some, with};
use crate::node_registry::{ClientCertificate, HostMirror, NodeRegistry, host_mirrors};
use crate::platform::{
    OutputForm, PlatformSetting, RenderPlatform, RenderRequest, RenderedConfig, SITE_CLUSTER,
};
use crate::proxy::{NoProxyDialect, PodProxy};
use crate::render::named_or_only_image;
use crate::rendered_file::RenderedFile;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landfall_model::{Consumer, Failure, ImageRef};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const INSTALLER: PlatformSetting = PlatformSetting::new(
    "installer",
    "IMAGE",
    "The locked installer image, if the lock has several",
);

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "talos",
    about: "Talos: patches of the machine configuration with mirrors, certificates, \
            account, proxy, installer",
    details: "talosctl merges the files into a machine configuration: `talosctl gen \
              config … --config-patch @registry.yaml`, with a --config-patch for each file.",
    settings: &[VERSION, INSTALLER, SITE_CLUSTER],
    consumer: Some(Consumer::Talos),
    writes: OutputForm::Files {
        not_into: Some(
            "talosctl merges patches: write them with -o DIR, then run `talosctl \
             machineconfig patch FILE --patch @DIR/registry.yaml`",
        ),
    },
    has_proxy_part: true,
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    if request.target.is_none() {
        let files = proxy_file(request)?.into_iter().collect();
        return Ok(RenderedConfig::of_files(files, Vec::new()));
    }
    let registry = request.registry()?;
    let mut notes = Vec::new();
    let mirrors = host_mirrors(request)?;
    let installer = installer_image(request, &mut notes)?;
    let mut files = vec![RenderedFile::new(
        "registry.yaml",
        patch(&registry_documents(request, &registry, &mirrors, installer)),
    )];
    files.extend(credentials_file(request, &registry)?);
    files.extend(proxy_file(request)?);
    notes.extend(other_accounts(request, &registry, false)?);
    Ok(RenderedConfig::of_files(files, notes))
}

/// Returns the locked installer, or `None` with a reason in `notes`.
fn installer_image<'r>(
    request: &RenderRequest<'r>,
    notes: &mut Vec<String>,
) -> Result<Option<&'r ImageRef>, Failure> {
    let none = "the lock has no installer image: set the installer in the machine configuration";
    let several = "the patch has no installer";
    named_or_only_image(request, INSTALLER.key, is_installer, [none, several], notes)
}

/// Whether `image` is an installer from a release (`siderolabs/installer`) or from the Image
/// Factory (`metal-installer/SCHEMATIC`).
fn is_installer(image: &ImageRef) -> bool {
    image.repository.split('/').any(|part| {
        let name = part.strip_suffix("-secureboot").unwrap_or(part);
        name == "installer" || name.ends_with("-installer")
    })
}

/// Returns the patch with the proxy and its certificate authorities, if the site has a proxy.
fn proxy_file(request: &RenderRequest<'_>) -> Result<Option<RenderedFile>, Failure> {
    let Some(proxy) = PodProxy::of(request, NoProxyDialect::Bare)? else {
        return Ok(None);
    };
    // the names in Talos' documentation; its services are written in Go, which reads the names in
    // lower and in upper case
    let variables = proxy.lower_case_values();
    let mut documents = if TalosVersion::of(request) < TalosVersion::V1_13 {
        vec![json!({"machine": {"env": variables}})]
    } else {
        let fields = json!({"variables": variables});
        vec![talos_document("EnvironmentConfig", None, fields)]
    };
    if let Some(ca) = request.proxy()?.and_then(|proxy| proxy.ca) {
        let fields = json!({"certificates": ca});
        let name = Some("landfall-proxy-ca");
        documents.push(talos_document("TrustedRootsConfig", name, fields));
    }
    Ok(Some(
        RenderedFile::new("proxy.yaml", patch(&documents)).secret(proxy.has_account),
    ))
}

/// Returns the mirrors, the trust in the registry, and the installer. The installer has its
/// upstream name, because Talos pulls it through the mirrors.
pub(super) fn registry_documents(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
    mirrors: &BTreeMap<String, Vec<HostMirror>>,
    installer: Option<&ImageRef>,
) -> Vec<Value> {
    let version = TalosVersion::of(request);
    let own = registry.target.registry.as_str();
    let skip_fallback = !request.upstream_fallback();
    let tls = registry_tls(registry, version);
    let image = installer.map(ToString::to_string);
    let mut documents = Vec::new();
    let mut registries = Value::Null;
    if version < TalosVersion::V1_12 {
        let mirrors: Value = mirrors
            .iter()
            .map(|(host, mirrors)| {
                let mirror = machine_mirror(mirrors, registry, skip_fallback);
                (mirrored_host(host), mirror)
            })
            .collect();
        let config = some(json!({(own): some(json!({"tls": tls}))}));
        registries = json!({"mirrors": mirrors, "config": config});
    } else {
        documents.extend(mirrors.iter().map(|(host, mirrors)| {
            let fields = mirror_fields(mirrors, registry, skip_fallback);
            talos_document("RegistryMirrorConfig", Some(mirrored_host(host)), fields)
        }));
        if !tls.is_null() {
            documents.push(talos_document("RegistryTLSConfig", Some(own), tls));
        }
    }
    let mut install = Value::Null;
    if version < TalosVersion::V1_14 {
        install = some(json!({"image": image}));
    } else if image.is_some() {
        let fields = json!({"installer": {"image": image}});
        documents.push(talos_document("UnattendedInstallConfig", None, fields));
    }
    let section = some(json!({"registries": registries, "install": install}));
    documents.extend(machine(section));
    documents
}

/// Returns the name under which Talos mirrors a host; `*` means all other hosts.
fn mirrored_host(host: &str) -> &str {
    if host == "_default" { "*" } else { host }
}

/// Returns the fields of a `RegistryMirrorConfig`.
fn mirror_fields(
    mirrors: &[HostMirror],
    registry: &NodeRegistry<'_>,
    skip_fallback: bool,
) -> Value {
    let endpoint = |mirror: &HostMirror| {
        let has_path = (!mirror.prefix.is_empty()).then_some(true);
        json!({"url": mirror_url(mirror, registry), "overridePath": has_path})
    };
    let endpoints: Value = mirrors.iter().map(endpoint).collect();
    json!({"endpoints": endpoints, "skipFallback": skip_fallback.then_some(true)})
}

/// Returns an entry of `machine.registries.mirrors`, where `overridePath` applies to all endpoints.
fn machine_mirror(
    mirrors: &[HostMirror],
    registry: &NodeRegistry<'_>,
    skip_fallback: bool,
) -> Value {
    let has_path = mirrors.iter().any(|mirror| !mirror.prefix.is_empty());
    let endpoint = |mirror: &HostMirror| {
        let url = mirror_url(mirror, registry);
        if has_path && mirror.prefix.is_empty() {
            format!("{url}/v2")
        } else {
            url
        }
    };
    let endpoints: Value = mirrors.iter().map(endpoint).collect();
    json!({
        "endpoints": endpoints,
        "overridePath": has_path.then_some(true),
        "skipFallback": skip_fallback.then_some(true),
    })
}

/// Returns the TLS settings of the registry, or null with plain HTTP: Talos refuses them then.
fn registry_tls(registry: &NodeRegistry<'_>, version: TalosVersion) -> Value {
    if registry.plain_http {
        return Value::Null;
    }
    some(json!({
        "ca": registry.ca.as_deref().map(|ca| version.pem(ca)),
        "insecureSkipVerify": registry.skip_verify.then_some(true),
    }))
}

/// Returns the patch with the account and the client certificate, if the site has one of them.
/// Machine configurations cannot refer to secrets, so these two have a file of their own.
pub(super) fn credentials_file(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
) -> Result<Option<RenderedFile>, Failure> {
    let version = TalosVersion::of(request);
    let own = registry.target.registry.as_str();
    let auth = json!(registry.own_account()?);
    let certificate_key = if version < TalosVersion::V1_12 {
        "crt"
    } else {
        "cert"
    };
    let client = registry.client.as_ref().filter(|_| !registry.plain_http);
    let tls = client.map_or(Value::Null, |ClientCertificate { certificate, key }| {
        let [certificate, key] = [certificate, key].map(|pem| version.pem(pem));
        json!({"clientIdentity": {(certificate_key): certificate, "key": key}})
    });
    let mut documents = Vec::new();
    if version < TalosVersion::V1_12 {
        let config = some(json!({"auth": auth, "tls": tls}));
        let config = some(json!({(own): config}));
        let registries = some(json!({"config": config}));
        documents.extend(machine(some(json!({"registries": registries}))));
    } else {
        for (kind, fields) in [("RegistryAuthConfig", auth), ("RegistryTLSConfig", tls)] {
            if !fields.is_null() {
                documents.push(talos_document(kind, Some(own), fields));
            }
        }
    }
    Ok((!documents.is_empty())
        .then(|| RenderedFile::new("credentials.yaml", patch(&documents)).secret(true)))
}

pub(super) const VERSION: PlatformSetting = PlatformSetting {
    key: "version",
    value_name: "VERSION",
    help: "The release of Talos; use 1.11 for 1.9 and 1.10 too",
    default: Some("1.13"),
    choices: &["1.11", "1.12", "1.13", "1.14"],
};

/// The releases with different forms of the machine configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TalosVersion {
    /// Everything is below `machine`, and certificates are base64.
    V1_11,
    /// Registries have documents of their own.
    V1_12,
    /// The environment has a document of its own.
    V1_13,
    /// The installation has a document of its own.
    V1_14,
}

impl TalosVersion {
    pub(super) fn of(request: &RenderRequest<'_>) -> TalosVersion {
        match request.settings.get(VERSION.key) {
            Some("1.11") => TalosVersion::V1_11,
            Some("1.12") => TalosVersion::V1_12,
            Some("1.14") => TalosVersion::V1_14,
            _ => TalosVersion::V1_13,
        }
    }

    /// Encodes a certificate or key as this release expects it.
    pub(super) fn pem(self, pem: &str) -> String {
        if self < TalosVersion::V1_12 {
            STANDARD.encode(pem)
        } else {
            pem.to_owned()
        }
    }
}

/// Joins the documents of a patch.
pub(super) fn patch(documents: &[Value]) -> String {
    let documents: Vec<String> = documents.iter().map(document).collect();
    documents.join("---\n")
}

/// Returns a document of the machine configuration with the entries of `fields`.
pub(super) fn talos_document(kind: &str, name: Option<&str>, fields: Value) -> Value {
    with(
        json!({"apiVersion": "v1alpha1", "kind": kind, "name": name}),
        fields,
    )
}

/// Returns the document with the section `machine`, unless the section is null.
pub(super) fn machine(section: Value) -> Option<Value> {
    (!section.is_null()).then(|| json!({"machine": section}))
}
