//! `kubeone`: the parts of a `KubeOneCluster` that point at the registry and the proxy.

use crate::model::Consumer;
use crate::render::error::RenderError;
use crate::render::file::RenderedFile;
use crate::render::host_paths::host_paths;
use crate::render::kubernetes::{document, map, optional, texts};
use crate::render::no_proxy::Dialect;
use crate::render::platform::{Output, Platform, Rendered, Spec, Writes};
use crate::render::request::Request;
use crate::render::settings::Setting;
use crate::render::site_proxy::ProxyAddress;
use crate::render::site_registry::SiteRegistry;
use serde_yaml::{Mapping, Value};

pub(super) struct KubeOne;

const VIA: Setting = Setting {
    key: "via",
    value_name: "WAY",
    help: "How nodes come to the registry: overwrite (names are changed), mirrors (containerd asks the registry), or auto: \
           overwrite where the registry speaks TLS and wants no account",
    default: Some("auto"),
    choices: &["auto", "overwrite", "mirrors"],
};

impl Platform for KubeOne {
    fn spec(&self) -> &'static Spec {
        &Spec {
            name: "kubeone",
            about: "KubeOne: the registry, certificates and proxy of a KubeOneCluster",
            details: "KubeOne asks an overwritten registry over TLS and without an account; containerd's mirrors can do \
                      without TLS, and with an account.",
            inputs: &[],
            settings: &[VIA],
            consumer: Some(Consumer::Kubeone),
            reads_lock: true,
            writes: Writes::Files { not_into: None },
        }
    }

    fn render(&self, request: &Request<'_>) -> Result<Rendered, RenderError> {
        let registry = request.registry()?;
        let account = registry.account(&request.mapping.target().prefix)?;
        let plain_or_account = registry.plain_http || account.is_some();
        let by_name = match request.settings.get(VIA.key) {
            Some("overwrite") if registry.plain_http => {
                let why = "KubeOne asks an overwritten registry over TLS alone, and this one speaks plain http; \
                           use --set via=mirrors";
                return Err(RenderError::Refused(why.into()));
            }
            Some("overwrite") if account.is_some() => {
                let why = "KubeOne asks an overwritten registry without an account, and the site names one; use --set via=mirrors";
                return Err(RenderError::Refused(why.into()));
            }
            Some("overwrite") => true,
            Some("mirrors") => false,
            _ => !plain_or_account,
        };
        let mut notes = Vec::new();
        let registry_configuration = match by_name {
            true => map([("overwriteRegistry", request.mapping.target().to_string().into())]),
            false => Value::Null,
        };
        let containerd =
            if by_name { Value::Null } else { mirrors(request, &registry, account.clone(), &mut notes) };
        let mut secret = account.is_some() && !by_name;
        let mut proxy_value = Value::Null;
        if let Some(proxy) = request.proxy()? {
            secret |= proxy.has_account();
            let url = |one: &Option<ProxyAddress>| optional(one.as_ref().map(ProxyAddress::url));
            // KubeOne puts these before the list itself
            let added = ["127.0.0.1/8", "127.0.0.1", "localhost"];
            proxy_value = map([
                ("http", url(&proxy.http)),
                ("https", url(&proxy.https)),
                ("noProxy", request.no_proxy().list_without(Dialect::Bare, &added).into()),
            ]);
        }
        let cluster = map([
            ("apiVersion", "kubeone.k8c.io/v1beta2".into()),
            ("kind", "KubeOneCluster".into()),
            ("registryConfiguration", registry_configuration),
            ("containerRuntime", containerd),
            ("caBundle", optional(registry.ca.as_deref())),
            ("proxy", proxy_value),
            // nodes reach no repository of packages, so KubeOne does not set one up
            (
                "systemPackages",
                if request.upstream_fallback() {
                    Value::Null
                } else {
                    map([("configureRepositories", false.into())])
                },
            ),
        ]);
        notes.push("merge it into your KubeOneCluster: --into kubeone.yaml".to_owned());
        let files = vec![RenderedFile::new("kubeone.yaml", document(&cluster)).secret(secret)];
        Ok(Rendered { output: Output::Files(files), notes, ..Rendered::default() })
    }
}

/// containerd's mirrors as `KubeOne` writes them.
fn mirrors(
    request: &Request<'_>,
    registry: &SiteRegistry<'_>,
    account: Option<(String, String)>,
    notes: &mut Vec<String>,
) -> Value {
    let mut hosts = Mapping::new();
    for (host, paths) in host_paths(request) {
        let (url, with_path) = match paths.prefix.as_str() {
            "" => (registry.url(), Value::Null),
            prefix => (format!("{}/v2/{prefix}", registry.url()), true.into()),
        };
        for (repository, path) in &paths.others {
            notes.push(format!(
                "{host}/{repository} is at {path}, which a mirror of {host} cannot say: write that name with `landfall rewrite`"
            ));
        }
        hosts.insert(host.into(), map([("mirrors", texts([url])), ("overridePath", with_path)]));
    }
    let auth = account.map_or(Value::Null, |(user, password)| {
        map([("username", user.into()), ("password", password.into())])
    });
    let tls = if registry.skip_verify { map([("insecureSkipVerify", true.into())]) } else { Value::Null };
    let own = map([("mirrors", texts([registry.url()])), ("tlsConfig", tls), ("auth", auth)]);
    hosts.insert(registry.target.registry.as_str().into(), own);
    map([("containerd", map([("registries", Value::Mapping(hosts))]))])
}
