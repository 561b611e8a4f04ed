//! `kubermatic`: KKP's configuration, a Seed's datacenters, the certificates; and the node settings of releases up to 2.12.

use super::operating_system_profile::{self, PACKAGES, PROFILES, Profile};
use crate::model::{Consumer, ImageRef};
use crate::render::error::RenderError;
use crate::render::file::RenderedFile;
use crate::render::kubernetes::{document, map, metadata, optional, secret, some_map, texts};
use crate::render::mirrors::mirrors;
use crate::render::no_proxy::Dialect;
use crate::render::platform::{Output, Platform, Rendered, Spec, Writes};
use crate::render::request::Request;
use crate::render::sandbox::{SANDBOX, sandbox};
use crate::render::settings::Setting;
use crate::render::site_proxy::ProxyAddress;
use crate::render::site_registry::SiteRegistry;
use serde_yaml::{Mapping, Value};

pub(super) struct Kubermatic;

const VERSION: Setting = Setting {
    key: "version",
    value_name: "RELEASE",
    help: "The release of KKP: 2.12 stands for releases whose node settings are in datacenters.yaml",
    default: Some("current"),
    choices: &["current", "2.12"],
};

const SEED: Setting = Setting {
    key: "seed",
    value_name: "NAME",
    help: "The Seed whose datacenters are set up",
    default: Some("seed"),
    choices: &[],
};

const DATACENTER: Setting = Setting {
    key: "datacenter",
    value_name: "NAME,...",
    help: "The datacenters of the Seed",
    default: Some("datacenter"),
    choices: &[],
};

/// The namespace of KKP.
const NAMESPACE: &str = "kubermatic";

impl Platform for Kubermatic {
    fn spec(&self) -> &'static Spec {
        &Spec {
            name: "kubermatic",
            about: "KKP: KubermaticConfiguration, Seed, certificates, operating system profiles",
            details: "The files hold what follows from the site and the lock, to be merged into yours. A repository stands in \
                      them where the lock has its image. With --osp, profiles of operating-system-manager are pointed at the \
                      site: URLs that the lock has go to the file server, and machines trust the site's authorities.",
            inputs: &[PROFILES],
            settings: &[VERSION, SEED, DATACENTER, SANDBOX, PACKAGES],
            consumer: Some(Consumer::Kubermatic),
            reads_lock: true,
            writes: Writes::Files { not_into: None },
        }
    }

    fn render(&self, request: &Request<'_>) -> Result<Rendered, RenderError> {
        let registry = request.registry()?;
        let mut notes = Vec::new();
        let proxy = Proxy::of(request, &mut notes)?;
        let has_account = proxy.as_ref().is_some_and(|proxy| proxy.has_account);
        let mut files = Vec::new();
        if request.settings.get(VERSION.key) == Some("2.12") {
            if !request.paths(PROFILES.name).is_empty() {
                return Err(RenderError::Site("--osp: KKP 2.12 has no operating-system-manager".into()));
            }
            let text = document(&datacenters(request, &registry, proxy.as_ref(), &mut notes)?);
            files.push(RenderedFile::new("datacenters.yaml", text).secret(has_account));
            return Ok(Rendered { output: Output::Files(files), notes, ..Rendered::default() });
        }
        let account = registry.account(&request.mapping.target().prefix)?;
        let text = document(&configuration(request, &registry, account.as_ref(), proxy.as_ref()));
        files.push(
            RenderedFile::new("kubermatic-configuration.yaml", text).secret(has_account || account.is_some()),
        );
        let authorities = authorities(request, &registry)?;
        let profiles = operating_system_profile::profiles(request, &authorities)?;
        let text = document(&seed(request, &registry, proxy.as_ref(), &profiles, &mut notes)?);
        files.push(RenderedFile::new("seed.yaml", text).secret(has_account));
        if registry.ca.is_some() && profiles.is_empty() {
            notes.push(
                "machines of user clusters trust the registry's authority by a profile alone: give yours with --osp FILE".into(),
            );
        }
        for Profile { file, notes: said, .. } in profiles {
            files.push(file);
            notes.extend(said);
        }
        if !authorities.is_empty() {
            files.push(RenderedFile::new("ca-bundle.yaml", document(&ca_bundle(authorities))));
            notes.push(
                "KKP trusts the authorities of ca-bundle alone: add those of other hosts that it talks to"
                    .into(),
            );
        }
        if let Some(account) = &account {
            let text = document(&registry_credentials(&registry.auth_file(account)));
            files.push(RenderedFile::new("registry-credentials.yaml", text).secret(true));
            notes.push(
                "registry-credentials.yaml is for each user cluster: its Cluster names it as spec.imagePullSecret (name \
                 registry-credentials, namespace kube-system), and nodes pull with that account"
                    .into(),
            );
        }
        Ok(Rendered { output: Output::Files(files), notes, ..Rendered::default() })
    }
}

/// The proxy as KKP is told of it.
struct Proxy {
    http: Value,
    https: Value,
    /// The one that nodes get: there is one field for both schemes.
    one: String,
    has_account: bool,
}

impl Proxy {
    fn of(request: &Request<'_>, notes: &mut Vec<String>) -> Result<Option<Proxy>, RenderError> {
        let Some(proxy) = request.proxy()? else { return Ok(None) };
        let [http, https] = [&proxy.http, &proxy.https].map(|one| one.as_ref().map(ProxyAddress::url));
        let Some(one) = https.clone().or_else(|| http.clone()) else { return Ok(None) };
        if http.as_ref().is_some_and(|http| *http != one) {
            notes.push("a Seed has one proxy for both schemes: it has the one of https".into());
        }
        let has_account = proxy.has_account();
        let [http, https] = [http, https].map(optional);
        Ok(Some(Proxy { http, https, one, has_account }))
    }
}

/// The name at the registry of the first of these repositories that the lock has.
fn at_registry(request: &Request<'_>, repositories: &[&str]) -> Value {
    let find = |name: &&str| request.images().find(|image| image.name() == **name);
    let found = repositories.iter().find_map(find);
    let place = found.and_then(|image| request.mapping.image(image).into_iter().next());
    optional(place.map(|place| place.to_string()))
}

/// `key` with that name, where the lock has the image.
fn repository(request: &Request<'_>, repositories: &[&str]) -> Value {
    match at_registry(request, repositories) {
        Value::Null => Value::Null,
        place => map([("dockerRepository", place)]),
    }
}

const KUBERMATIC: [&str; 2] = ["quay.io/kubermatic/kubermatic-ee", "quay.io/kubermatic/kubermatic"];

fn configuration(
    request: &Request<'_>,
    registry: &SiteRegistry<'_>,
    account: Option<&(String, String)>,
    proxy: Option<&Proxy>,
) -> Value {
    let target = request.mapping.target().to_string();
    let kubermatic = || repository(request, &KUBERMATIC);
    let pull_secret = optional(account.map(|account| registry.auth_file(account)));
    let charts = request.images().any(|image| image.name().starts_with("quay.io/kubermatic/helm-charts/"));
    let charts = charts.then(|| charts_at(request)).flatten();
    let user_cluster = map([
        ("overwriteRegistry", target.into()),
        ("kubermaticDockerRepository", at_registry(request, &KUBERMATIC)),
        (
            "dnatControllerDockerRepository",
            at_registry(request, &["quay.io/kubermatic/kubeletdnat-controller"]),
        ),
        ("etcdLauncherDockerRepository", at_registry(request, &["quay.io/kubermatic/etcd-launcher"])),
        ("addons", repository(request, &["quay.io/kubermatic/addons"])),
        (
            "systemApplications",
            match &charts {
                None => Value::Null,
                Some(charts) => map([
                    ("helmRepository", charts.as_str().into()),
                    ("plainHTTP", if registry.plain_http { true.into() } else { Value::Null }),
                    ("insecureSkipTLSVerify", if registry.skip_verify { true.into() } else { Value::Null }),
                ]),
            },
        ),
    ]);
    let catalog = charts.map_or(Value::Null, |charts| {
        map([("defaultApplicationCatalog", map([("helmRepository", charts.into())]))])
    });
    // KKP's operator puts these before the list itself
    let added = ["127.0.0.1/8", "127.0.0.1", "localhost", ".local", "kubernetes", ".default", ".svc"];
    let proxy = proxy.map_or(Value::Null, |proxy| {
        map([
            ("http", proxy.http.clone()),
            ("https", proxy.https.clone()),
            ("noProxy", request.no_proxy().list_without(Dialect::Dotted, &added).into()),
        ])
    });
    let has_ca = registry.ca.is_some();
    map([
        ("apiVersion", "kubermatic.k8c.io/v1".into()),
        ("kind", "KubermaticConfiguration".into()),
        ("metadata", metadata("kubermatic", Some(NAMESPACE))),
        (
            "spec",
            map([
                ("imagePullSecret", pull_secret),
                (
                    "caBundle",
                    if has_ca {
                        map([("kind", "ConfigMap".into()), ("name", "ca-bundle".into())])
                    } else {
                        Value::Null
                    },
                ),
                ("proxy", proxy),
                ("api", kubermatic()),
                (
                    "ui",
                    repository(request, &["quay.io/kubermatic/dashboard-ee", "quay.io/kubermatic/dashboard"]),
                ),
                ("masterController", kubermatic()),
                ("seedController", kubermatic()),
                ("webhook", kubermatic()),
                ("userCluster", user_cluster),
                ("applications", catalog),
            ]),
        ),
    ])
}

/// Where the charts of KKP's applications are.
fn charts_at(request: &Request<'_>) -> Option<String> {
    let charts: ImageRef = "quay.io/kubermatic/helm-charts".parse().ok()?;
    let place = request.mapping.image(&charts).into_iter().next()?;
    Some(format!("oci://{place}"))
}

fn seed(
    request: &Request<'_>,
    registry: &SiteRegistry<'_>,
    proxy: Option<&Proxy>,
    profiles: &[Profile],
    notes: &mut Vec<String>,
) -> Result<Value, RenderError> {
    let no_proxy = request.no_proxy().list(Dialect::Dotted);
    let settings = || {
        proxy
            .map_or([Value::Null, Value::Null], |proxy| [proxy.one.as_str().into(), no_proxy.as_str().into()])
    };
    let [http_proxy, list] = settings();
    let own = &registry.target.registry;
    let mut registries = Mapping::new();
    for (host, of_host) in mirrors(request)? {
        if host == *own && !registry.plain_http {
            continue;
        }
        if of_host.len() > 1 {
            notes.push(format!("KKP sorts the mirrors of {host}, which are to be asked in another order"));
        }
        let urls = of_host.iter().map(|mirror| match mirror.prefix.as_str() {
            "" => registry.url(),
            prefix => format!("{}/v2/{prefix}?kubermatic=override_path%3Dtrue", registry.url()),
        });
        registries.insert(host.into(), map([("mirrors", texts(urls))]));
    }
    if !request.upstream_fallback() {
        notes.push("containerd asks upstream for what the mirrors lack, and KKP cannot turn that off".into());
    }
    // what is said of a host holds for its mirrors
    let hosts =
        registries.keys().filter_map(Value::as_str).filter(|host| registry.skip_verify && host != own);
    let insecure: Vec<&str> = [own.as_str()].into_iter().chain(hosts).collect();
    let insecure = if registry.plain_http || registry.skip_verify { texts(insecure) } else { Value::Null };
    let node = map([
        ("httpProxy", http_proxy),
        ("noProxy", list),
        ("insecureRegistries", insecure),
        ("pauseImage", optional(sandbox(request, notes)?)),
        ("containerdRegistryMirrors", map([("registries", Value::Mapping(registries))])),
    ]);
    let datacenters = each_datacenter(request, &node, &operating_system_profile::chosen(profiles, notes))?;
    let [http_proxy, list] = settings();
    let proxy_settings =
        if proxy.is_some() { map([("httpProxy", http_proxy), ("noProxy", list)]) } else { Value::Null };
    let node_port_proxy = some_map([
        ("envoy", repository(request, &["docker.io/envoyproxy/envoy"])),
        ("envoyManager", repository(request, &["quay.io/kubermatic/nodeport-proxy"])),
        ("updater", repository(request, &["quay.io/kubermatic/nodeport-proxy"])),
    ]);
    Ok(map([
        ("apiVersion", "kubermatic.k8c.io/v1".into()),
        ("kind", "Seed".into()),
        ("metadata", metadata(request.settings.need(SEED.key)?, Some(NAMESPACE))),
        (
            "spec",
            map([
                ("proxySettings", proxy_settings),
                ("nodeportProxy", node_port_proxy),
                ("datacenters", datacenters),
            ]),
        ),
    ]))
}

/// The datacenters of the Seed, each with these node settings and this specification.
fn each_datacenter(request: &Request<'_>, node: &Value, spec: &Value) -> Result<Value, RenderError> {
    let names = request.settings.need(DATACENTER.key)?.split(',');
    let datacenter = map([("node", node.clone()), ("spec", spec.clone())]);
    Ok(Value::Mapping(names.map(|name| (name.trim().into(), datacenter.clone())).collect()))
}

/// The authorities of the registry and of the proxy.
fn authorities(request: &Request<'_>, registry: &SiteRegistry<'_>) -> Result<String, RenderError> {
    let proxy = request.proxy()?.and_then(|proxy| proxy.ca);
    Ok(registry.ca.clone().into_iter().chain(proxy).collect())
}

fn ca_bundle(authorities: String) -> Value {
    map([
        ("apiVersion", "v1".into()),
        ("kind", "ConfigMap".into()),
        ("metadata", metadata("ca-bundle", Some(NAMESPACE))),
        ("data", map([("ca-bundle.pem", authorities.into())])),
    ])
}

/// The Secret of a user cluster from which operating-system-manager gives containerd the account.
fn registry_credentials(auth_file: &str) -> Value {
    let metadata = metadata("registry-credentials", Some("kube-system"));
    secret(metadata, Some("kubernetes.io/dockerconfigjson"), &[(".dockerconfigjson", auth_file)])
}

/// The node settings that releases up to 2.12 read from datacenters.yaml.
fn datacenters(
    request: &Request<'_>,
    registry: &SiteRegistry<'_>,
    proxy: Option<&Proxy>,
    notes: &mut Vec<String>,
) -> Result<Value, RenderError> {
    // machine-controller puts the tag behind the name itself, and dies on one that is there
    let hyperkube = at_registry(
        request,
        &[
            "k8s.gcr.io/hyperkube-amd64",
            "gcr.io/google_containers/hyperkube-amd64",
            "gcr.io/google-containers/hyperkube-amd64",
        ],
    );
    let node = map([
        ("http_proxy", optional(proxy.map(|proxy| proxy.one.as_str()))),
        ("no_proxy", optional(proxy.map(|_| request.no_proxy().list(Dialect::Dotted)))),
        ("insecure_registries", texts([registry.target.registry.as_str()])),
        ("pause_image", optional(sandbox(request, notes)?)),
        ("hyperkube_image", hyperkube),
    ]);
    let datacenters = each_datacenter(request, &node, &Value::Null)?;
    Ok(map([("datacenters", datacenters)]))
}
