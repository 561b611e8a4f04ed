//! `giantswarm`: the proxy of Giant Swarm clusters, for cluster-apps-operator, charts and machines,
//! and the mirrors of their machines.

use super::capi::file_from;
use super::containerd::{mirror_url, other_accounts};
use super::systemd::{DropInForm, drop_in};
use crate::kubernetes_objects::{document, metadata, object, secret, some, with};
use crate::node_registry::{NodeRegistry, host_mirrors};
use crate::platform::{
    BasicCredentials, CLOUD_PROVIDER, CLUSTER, NAMESPACE, PlatformSetting, RenderPlatform,
    RenderRequest, RenderedConfig,
};
use crate::proxy::{NoProxyDialect, PATCHES, PodProxy, env, static_pod_patches};
use crate::rendered_file::{RenderedFile, quoted_string};
use landfall_model::{Consumer, Failure, without_scheme};
use serde_json::{Map, Value, json};

const APP: PlatformSetting = PlatformSetting::new(
    "app",
    "NAME",
    "Write a complete App with this name instead of the part to add to your own App; \
           requires catalog and version",
);

const CATALOG: PlatformSetting = PlatformSetting::new("catalog", "NAME", "The catalog of the App");

const VERSION: PlatformSetting =
    PlatformSetting::new("version", "VERSION", "The version of the App");

const TARGET_NAMESPACE: PlatformSetting = PlatformSetting::new(
    "target-namespace",
    "NAME",
    "The namespace of the workload cluster in which the App is installed [default: the name \
           of the App]",
);

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "giantswarm",
    about: "Giant Swarm: the values of a cluster's chart, and the proxy for \
            cluster-apps-operator, apps, machines, and the bootstrap",
    details: "The drop-ins and the pods get the same NO_PROXY. The values of the chart \
              have the registry as the mirror of each host in the lock.",
    settings: &[
        CLUSTER,
        NAMESPACE,
        CLOUD_PROVIDER,
        APP,
        CATALOG,
        VERSION,
        TARGET_NAMESPACE,
    ],
    consumer: Some(Consumer::Giantswarm),
    needs_registry: false,
    works_without_lock: true,
    has_proxy_part: true,
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let cluster = request.settings.need(CLUSTER.key)?;
    let namespace = request.settings.need(NAMESPACE.key)?;
    let mut notes = Vec::new();
    let proxy = PodProxy::of(request, NoProxyDialect::Bare)?;
    let chart_files = cluster_chart(request, [cluster, namespace], proxy.as_ref(), &mut notes)?;
    let Some(proxy) = proxy else {
        if chart_files.is_empty() {
            return Err(Failure::usage(
                "the site has no proxy, and there are no images for a registry to mirror; add \
                 proxy.http and proxy.https to the site, or name a lock with --lock",
            ));
        }
        return Ok(RenderedConfig::of_files(chart_files, notes));
    };
    let values_name = format!("{cluster}-cluster-values");
    // this drop-in contains the NO_PROXY of the cluster; the drop-in that
    // cluster-apps-operator writes contains only the NO_PROXY of the installation
    let drop_ins = drop_in("containerd", DropInForm::SixVariables, request)?;
    let text = drop_ins.map(|file| file.text).unwrap_or_default();
    let proxy_name = format!("{cluster}-systemd-proxy");
    let secret_of = |name: &str, key: &str, text: &str| {
        let metadata = metadata(name, Some(namespace));
        document(&secret(metadata, None, json!({(key): text})))
    };
    let chart = json!({"proxy": proxy.chart_values()});
    let mut all = vec![
        (
            "secret-values.yaml.patch",
            installation(&proxy, &request.no_proxy().of_installation()),
        ),
        (
            "cluster-values.yaml",
            secret_of(&values_name, "values", &document(&cluster_values(&proxy))),
        ),
        (
            "systemd-proxy.yaml",
            secret_of(&proxy_name, "containerdProxy", &text),
        ),
        (
            "bootstrap/cert-manager.yaml",
            document(&cert_manager(&proxy)),
        ),
        (
            "bootstrap/chart-operator.yaml",
            document(&json!({"cluster": chart})),
        ),
        (
            "bootstrap/kyverno-policies-connectivity.yaml",
            document(&json!({"proxy": {"enabled": true}, "cluster": chart})),
        ),
    ];
    let patches = static_pod_patches(&proxy.variables(), proxy.has_account);
    let texts = patches
        .iter()
        .map(|file| (file_name(&file.path), file.text.as_str()))
        .collect();
    let patches_name = format!("{cluster}-static-pods-proxy");
    let patches_metadata = metadata(&patches_name, Some(namespace));
    all.push((
        "static-pods-proxy.yaml",
        document(&secret(patches_metadata, None, texts)),
    ));
    let mut written: Vec<RenderedFile> = all
        .into_iter()
        .map(|(path, text)| RenderedFile::new(path, text).secret(proxy.has_account))
        .collect();
    written.push(RenderedFile::new(
        "app.yaml",
        document(&app(request, cluster, namespace)?),
    ));

    let of_service = |service: &&str| {
        let path = format!("etc/systemd/system/{service}.service.d/http-proxy.conf");
        file_from(&path, 0o600, &proxy_name, "containerdProxy")
    };
    let of_patch =
        |file: &RenderedFile| file_from(&file.path, 0o600, &patches_name, &file_name(&file.path));
    let services = request.settings.proxied_services().iter();
    let machine_files: Value = services
        .map(of_service)
        .chain(patches.iter().map(of_patch))
        .collect();
    let join = json!({"patches": {"directory": PATCHES}});
    let machines = json!({
        "initConfiguration": join,
        "joinConfiguration": join,
        "files": machine_files,
    });
    written.push(RenderedFile::new(
        "kubeadm-config-spec.yaml",
        document(&machines),
    ));
    written.extend(chart_files);
    notes.extend(proxy.percent_note("cluster-apps-operator"));
    Ok(RenderedConfig::of_files(written, notes))
}

/// Returns the values of `cluster-PROVIDER`, the chart that makes a cluster: the proxy, and the
/// registry as the mirror of the hosts in the lock. A Secret has the authority of the registry.
/// Returns no file if the site has neither a proxy nor images at a registry.
fn cluster_chart(
    request: &RenderRequest<'_>,
    [cluster, namespace]: [&str; 2],
    proxy: Option<&PodProxy>,
    notes: &mut Vec<String>,
) -> Result<Vec<RenderedFile>, Failure> {
    let mut files = Vec::new();
    let mut has_account = proxy.is_some_and(|proxy| proxy.has_account);
    let mut registries = Value::Null;
    let mut machine_files = Value::Null;
    if request.target.is_some() && request.images().next().is_some() {
        let registry = request.registry()?;
        registries = container_registries(request, &registry, &mut has_account)?;
        if let Some(ca) = registry.ca.as_ref().filter(|_| !registry.is_insecure()) {
            let name = format!("{cluster}-registry-ca");
            let object = secret(
                metadata(&name, Some(namespace)),
                None,
                json!({"ca.pem": ca}),
            );
            files.push(RenderedFile::new("registry-ca.yaml", document(&object)));
            // containerd is written in Go, which reads all files of this folder
            let path = "etc/ssl/certs/landfall-registry.pem";
            machine_files = json!([file_from(path, 0o644, &name, "ca.pem")]);
        }
        notes.extend(request.fallback_note("the chart of the cluster"));
        if registry.plain_http && registry.has_any_account() {
            notes.push(
                "the chart of the cluster writes the account of a registry for https only, so \
                 containerd pulls without it over plain http"
                    .into(),
            );
        }
        notes.extend(registry.client_note("the chart of the cluster"));
        notes.extend(other_accounts(request, &registry, true)?);
    }
    let proxy = proxy.map(|proxy| {
        json!({
            "enabled": true,
            "httpProxy": proxy.http,
            "httpsProxy": proxy.https,
            "noProxy": proxy.no_proxy,
        })
    });
    if proxy.is_none() && registries.is_null() {
        return Ok(files);
    }
    let containerd = some(json!({"containerRegistries": registries}));
    let advanced = some(json!({"files": machine_files}));
    let internal = some(json!({"advancedConfiguration": advanced}));
    let values = json!({
        "global": {
            "connectivity": some(json!({"proxy": proxy})),
            "components": some(json!({"containerd": containerd})),
        },
        "cluster": some(json!({"internal": internal})),
    });
    let file = RenderedFile::new("cluster-chart-values.yaml", document(&values));
    files.push(file.secret(has_account));
    Ok(files)
}

/// Returns the mirrors of each host. Sets `has_account` if one of them has an account.
fn container_registries(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
    has_account: &mut bool,
) -> Result<Value, Failure> {
    let mut hosts = Map::new();
    for (host, mirrors) in host_mirrors(request)? {
        // the chart names the upstream of every host, and this is the name of no host
        if host == "_default" {
            continue;
        }
        let mut endpoints = Vec::new();
        for mirror in &mirrors {
            let account = registry.account(&mirror.repository)?;
            *has_account |= account.is_some();
            let account = account.map(|BasicCredentials { username, password }| {
                json!({"username": username, "password": password})
            });
            let url = mirror_url(mirror, registry);
            let set = |is_set: bool| is_set.then_some(true);
            endpoints.push(json!({
                "endpoint": without_scheme(&url),
                "insecure": set(registry.plain_http),
                "overridePath": set(!mirror.prefix.is_empty()),
                "skipVerify": set(registry.skip_verify && !registry.plain_http),
                "credentials": account,
            }));
        }
        hosts.insert(host, endpoints.into());
    }
    Ok(hosts.into())
}

/// Returns the key in a Secret for the patch at `path`: its file name. A key must not contain `+`.
fn file_name(path: &str) -> String {
    path.rsplit('/')
        .next()
        .unwrap_or_default()
        .replace('+', ".")
}

/// Returns the values of cluster-apps-operator for the configuration repository of the
/// installation, with only the installation's part of NO_PROXY.
fn installation(proxy: &PodProxy, no_proxy: &str) -> String {
    let http = quoted_string(&proxy.http);
    let https = quoted_string(&proxy.https);
    format!(
        "proxy:\n  noProxy: {}\n  http: {http}\n  https: {https}\n",
        quoted_string(no_proxy)
    )
}

/// Returns the values for the apps of the cluster, in the three spellings that charts read.
/// cluster-apps-operator writes the same values.
fn cluster_values(proxy: &PodProxy) -> Value {
    let [http, https, no_proxy] = [&proxy.http, &proxy.https, &proxy.no_proxy].map(String::as_str);
    let variables = [
        ("NO_PROXY", no_proxy),
        ("HTTP_PROXY", http),
        ("HTTPS_PROXY", https),
    ]
    .map(|(name, value)| (name, value.to_owned()));
    json!({
        // for cert-manager, whose upstream chart reads these keys
        "no_proxy": no_proxy,
        "http_proxy": http,
        "https_proxy": https,
        "cluster": {"proxy": proxy.chart_values()},
        "env": env(&variables),
    })
}

/// Returns the values of cert-manager during bootstrap, with the keys that its chart and the parent
/// chart read.
fn cert_manager(proxy: &PodProxy) -> Value {
    with(
        proxy.lower_case_values(),
        json!({"proxy": proxy.chart_values()}),
    )
}

/// Returns an App that reads the values of the cluster. Without the setting `app`, returns only the
/// part to add to the user's own App.
fn app(request: &RenderRequest<'_>, cluster: &str, namespace: &str) -> Result<Value, Failure> {
    let source = metadata(&format!("{cluster}-cluster-values"), Some(namespace));
    let config = json!({"configMap": source, "secret": source});
    let app = |metadata: Value, spec: Value| {
        let version = "application.giantswarm.io/v1alpha1";
        object(version, "App", metadata, ("spec", spec))
    };
    let Some(name) = request.settings.object_name(APP.key)? else {
        if let Some(setting) = [CATALOG, VERSION, TARGET_NAMESPACE]
            .iter()
            .find(|one| request.settings.get(one.key).is_some())
        {
            let why = format!(
                "--set {} applies only to a whole App: add --set app=NAME",
                setting.key
            );
            return Err(Failure::usage(why));
        }
        return Ok(app(Value::Null, json!({"config": config})));
    };
    // the App's name contains the name of the cluster, because several clusters of an organization
    // may have the same App
    let own = json!({
        "name": format!("{cluster}-{name}"),
        "namespace": namespace,
        "labels": {
            "app-operator.giantswarm.io/version": "0.0.0",
            "giantswarm.io/cluster": cluster,
        },
    });
    let secret = metadata(&format!("{cluster}-kubeconfig"), Some(namespace));
    let spec = json!({
        "catalog": request.settings.need(CATALOG.key)?,
        "name": name,
        "namespace": request.settings.get(TARGET_NAMESPACE.key).unwrap_or(name),
        "version": request.settings.need(VERSION.key)?,
        "kubeConfig": {"inCluster": false, "secret": secret},
        "config": config,
    });
    Ok(app(own, spec))
}
