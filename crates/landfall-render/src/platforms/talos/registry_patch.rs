//! The patches for the registry: mirrors, trust and installer, and the credentials.

use super::super::containerd::mirror_url;
use super::machine_config::{TalosVersion, machine, patch, talos_document};
use crate::credentials::BasicCredentials;
use crate::error::RenderError;
use crate::host_mirrors::HostMirror;
use crate::kubernetes_objects::{map, optional, some_map, texts};
use crate::node_registry::{ClientCertificate, NodeRegistry};
use crate::rendered_file::RenderedFile;
use crate::request::RenderRequest;
use landfall_model::ImageRef;
use serde_yaml::{Mapping, Value};
use std::collections::BTreeMap;

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
    let image = optional(installer.map(ToString::to_string));
    let mut documents = Vec::new();
    let mut registries = Value::Null;
    if version < TalosVersion::V1_12 {
        let mirrors: Mapping = mirrors
            .iter()
            .map(|(host, mirrors)| {
                let mirror = machine_mirror(mirrors, registry, skip_fallback);
                (mirrored_host(host).into(), mirror)
            })
            .collect();
        registries = map([
            ("mirrors", mirrors.into()),
            ("config", some_map([(own, some_map([("tls", tls)]))])),
        ]);
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
        install = some_map([("image", image)]);
    } else if !image.is_null() {
        let fields = map([("installer", map([("image", image)]))]);
        documents.push(talos_document("UnattendedInstallConfig", None, fields));
    }
    documents.extend(machine(some_map([
        ("registries", registries),
        ("install", install),
    ])));
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
        map([
            ("url", mirror_url(mirror, registry).into()),
            ("overridePath", optional(has_path)),
        ])
    };
    let endpoints: Vec<Value> = mirrors.iter().map(endpoint).collect();
    map([
        ("endpoints", endpoints.into()),
        ("skipFallback", optional(skip_fallback.then_some(true))),
    ])
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
    map([
        ("endpoints", texts(mirrors.iter().map(endpoint))),
        ("overridePath", optional(has_path.then_some(true))),
        ("skipFallback", optional(skip_fallback.then_some(true))),
    ])
}

/// Returns the TLS settings of the registry, or null with plain HTTP: Talos refuses them then.
fn registry_tls(registry: &NodeRegistry<'_>, version: TalosVersion) -> Value {
    if registry.plain_http {
        return Value::Null;
    }
    some_map([
        (
            "ca",
            optional(registry.ca.as_deref().map(|ca| version.pem(ca))),
        ),
        (
            "insecureSkipVerify",
            optional(registry.skip_verify.then_some(true)),
        ),
    ])
}

/// Returns the patch with the account and the client certificate, if the site has one of them.
/// Machine configurations cannot refer to secrets, so these two have a file of their own.
pub(super) fn credentials_file(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
) -> Result<Option<RenderedFile>, RenderError> {
    let version = TalosVersion::of(request);
    let own = registry.target.registry.as_str();
    let account = registry.account(&request.mapping.target().prefix)?;
    let auth = account.map_or(Value::Null, |BasicCredentials { username, password }| {
        map([("username", username.into()), ("password", password.into())])
    });
    let certificate_key = if version < TalosVersion::V1_12 {
        "crt"
    } else {
        "cert"
    };
    let client = registry.client.as_ref().filter(|_| !registry.plain_http);
    let tls = client.map_or(Value::Null, |ClientCertificate { certificate, key }| {
        let identity = map([
            (certificate_key, version.pem(certificate)),
            ("key", version.pem(key)),
        ]);
        map([("clientIdentity", identity)])
    });
    let mut documents = Vec::new();
    if version < TalosVersion::V1_12 {
        let config = some_map([("auth", auth), ("tls", tls)]);
        let registries = some_map([("config", some_map([(own, config)]))]);
        documents.extend(machine(some_map([("registries", registries)])));
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
