//! `kubermatic`: the configuration of KKP, the datacenters of a Seed, certificates, profiles of
//! machines, and the node settings of releases up to 2.12.
//!
//! This file has the settings, the list of files, and the `KubermaticConfiguration`.
//!
//! - `seed.rs`: the Seed, and the datacenters of old releases.
//! - `profile.rs`: profiles of operating-system-manager, and the first steps of their machines.

mod profile;
mod seed;

use self::profile::{PACKAGES, PROFILES, profiles};
use self::seed::{DATACENTER, SEED, datacenters, seed};
use super::yum::PACKAGE_SET;
use crate::kubernetes_objects::{document, metadata, object, secret, some};
use crate::node_registry::{NodeRegistry, separate_accounts_note};
use crate::platform::{
    BasicCredentials, PlatformSetting, RenderPlatform, RenderRequest, RenderedConfig, SITE_CLUSTER,
};
use crate::proxy::{NoProxyDialect, NoProxyEntries, ProxyAddress};
use crate::render::SANDBOX;
use crate::rendered_file::RenderedFile;
use crate::signature_policy::PACKAGES_KEY;
use landfall_model::{Consumer, Failure, ImageRef, NODE_LOCAL_DNS};
use serde_json::{Value, json};

// The settings of the platform and the list of its files.

const VERSION: PlatformSetting = PlatformSetting::new(
    "version",
    "RELEASE",
    "The release of KKP; 2.12 for releases whose node settings are in datacenters.yaml",
)
.one_of(&["current", "2.12"]);

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "kubermatic",
    about: "KKP: KubermaticConfiguration, Seed, certificates, operating system profiles",
    details: "The files contain the values that landfall computes from the site and the \
              lock; merge them into your own files. A repository is set if the lock has \
              its image. \
              With --osp, profiles of operating-system-manager are pointed at the site: \
              locked URLs are replaced by those of the file server, and machines trust the \
              site's certificate authorities and install the locked packages.",
    inputs: &[PROFILES, PACKAGES_KEY],
    settings: &[
        VERSION,
        SEED,
        DATACENTER,
        SANDBOX,
        PACKAGES,
        PACKAGE_SET,
        SITE_CLUSTER,
    ],
    consumer: Some(Consumer::Kubermatic),
    aliases: &["kkp"],
    has_proxy_part: true,
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let registry = request.registry()?;
    let mut notes: Vec<String> = registry.client_note("KKP").into_iter().collect();
    let proxy = KubermaticProxy::of(request, &mut notes)?;
    let has_account = proxy.as_ref().is_some_and(|proxy| proxy.has_account);
    let mut files = Vec::new();
    if request.settings.get(VERSION.key) == Some("2.12") {
        if !request.paths(PROFILES.name).is_empty() {
            return Err(Failure::usage(
                "--osp: KKP 2.12 has no operating-system-manager",
            ));
        }
        let text = document(&datacenters(
            request,
            &registry,
            proxy.as_ref(),
            &mut notes,
        )?);
        files.push(RenderedFile::new("datacenters.yaml", text).secret(has_account));
        return Ok(RenderedConfig::of_files(files, notes));
    }
    let account = registry.own_account()?;
    let text = document(&configuration(
        request,
        &registry,
        account.as_ref(),
        proxy.as_ref(),
    ));
    files.push(
        RenderedFile::new("kubermatic-configuration.yaml", text)
            .secret(has_account || account.is_some()),
    );
    let authorities = authorities(request, &registry)?;
    let profiles = profiles(request, &authorities)?;
    let text = document(&seed(
        request,
        &registry,
        proxy.as_ref(),
        &profiles,
        &mut notes,
    )?);
    files.push(RenderedFile::new("kubermatic-seed.yaml", text).secret(has_account));
    if registry.ca.is_some() && profiles.is_empty() {
        notes.push(
            "machines of user clusters trust the registry's certificate authority only with a \
             profile: name yours with --osp FILE"
                .into(),
        );
    }
    for profile in profiles {
        files.push(profile.file);
        notes.extend(profile.notes);
    }
    if !authorities.is_empty() {
        files.push(RenderedFile::new(
            "ca-bundle.yaml",
            document(&ca_bundle(authorities)),
        ));
        notes.push(
            "KKP trusts only the certificate authorities in ca-bundle: add those of other \
             hosts to which it connects"
                .into(),
        );
    }
    notes.extend(separate_accounts_note(request, &registry)?);
    if let Some(account) = &account {
        if charts_at(request).is_some() {
            let text = document(&chart_account(&registry.auth_file(account)));
            files.push(RenderedFile::new("helm-credentials.yaml", text).secret(true));
        }
        let text = document(&registry_credentials(&registry.auth_file(account)));
        files.push(RenderedFile::new("registry-credentials.yaml", text).secret(true));
        notes.push(
            "registry-credentials.yaml is for each user cluster: reference it in its Cluster \
             as spec.imagePullSecret (name registry-credentials, namespace kube-system), so \
             that nodes pull with that account"
                .into(),
        );
    }
    Ok(RenderedConfig::of_files(files, notes))
}

/// Returns the certificate authorities of the registry and of the proxy.
fn authorities(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
) -> Result<String, Failure> {
    let proxy = request.proxy()?.and_then(|proxy| proxy.ca);
    Ok(registry.ca.clone().into_iter().chain(proxy).collect())
}

fn ca_bundle(authorities: String) -> Value {
    let data = json!({"ca-bundle.pem": authorities});
    let metadata = metadata("ca-bundle", Some(NAMESPACE));
    object("v1", "ConfigMap", metadata, ("data", data))
}

/// Returns the Secret of a user cluster from which operating-system-manager configures the
/// credentials of containerd.
fn registry_credentials(auth_file: &str) -> Value {
    let metadata = metadata("registry-credentials", Some("kube-system"));
    docker_config(metadata, auth_file)
}

// The `KubermaticConfiguration`: the repositories of KKP's images and charts, the proxy and the
// certificate authorities.

/// The image of KKP's controllers, in the enterprise and the community edition.
const KUBERMATIC: [&str; 2] = [
    "quay.io/kubermatic/kubermatic-ee",
    "quay.io/kubermatic/kubermatic",
];

/// The image of the dashboard, which contains the API of KKP too.
const DASHBOARD: [&str; 2] = [
    "quay.io/kubermatic/dashboard-ee",
    "quay.io/kubermatic/dashboard",
];

/// Returns the configuration. `account` is the account at the registry, if the registry requires
/// one. The repository of an image is written only if the lock has the image. Images that the lock
/// lacks keep their upstream defaults.
pub(super) fn configuration(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
    account: Option<&BasicCredentials>,
    proxy: Option<&KubermaticProxy>,
) -> Value {
    let target = request.target.map(|_| request.mapping.target().to_string());
    let kubermatic = repository(request, &KUBERMATIC);
    let dashboard = repository(request, &DASHBOARD);
    let charts = charts_at(request);
    // KKP pulls charts with these settings, which it has for both lists of applications
    let [plain_http, skip_verify] = [registry.plain_http, registry.skip_verify]
        .map(|is_set| (charts.is_some() && is_set).then_some(true));
    let config_file = charts.as_ref().and(account);
    let config_file =
        config_file.map(|_| json!({"name": CHART_ACCOUNT, "key": ".dockerconfigjson"}));
    let dnat_controller = ["quay.io/kubermatic/kubeletdnat-controller"];
    let user_cluster = some(json!({
        "overwriteRegistry": target,
        "kubermaticDockerRepository": at_registry(request, &KUBERMATIC),
        "dnatControllerDockerRepository": at_registry(request, &dnat_controller),
        "etcdLauncherDockerRepository": at_registry(request, &["quay.io/kubermatic/etcd-launcher"]),
        "addons": repository(request, &["quay.io/kubermatic/addons"]),
        "systemApplications": some(json!({
            "helmRepository": charts,
            "helmRegistryConfigFile": config_file,
            "plainHTTP": plain_http,
            "insecureSkipTLSVerify": skip_verify,
        })),
        "applications": some(json!({
            "plainHTTP": plain_http,
            "insecureSkipTLSVerify": skip_verify,
        })),
    }));
    let catalog = some(json!({
        "defaultApplicationCatalog": some(json!({
            "helmRepository": charts,
            "helmRegistryConfigFile": config_file,
        })),
    }));
    // KKP's operator adds these entries itself
    let added = [
        "127.0.0.1/8",
        "127.0.0.1",
        "localhost",
        ".local",
        "kubernetes",
        ".default",
        ".svc",
    ];
    let proxy = proxy.map(|proxy| {
        json!({
            "http": proxy.http,
            "https": proxy.https,
            "noProxy": no_proxy(request).list_without(NoProxyDialect::Dotted, &added),
        })
    });
    let ca_bundle = registry.ca.as_ref();
    let ca_bundle = ca_bundle.map(|_| json!({"kind": "ConfigMap", "name": "ca-bundle"}));
    let spec = json!({
        // not a reference to a Secret, but the text of an auth file
        "imagePullSecret": account.map(|account| registry.auth_file(account)),
        "caBundle": ca_bundle,
        "proxy": proxy,
        "api": dashboard,
        "ui": dashboard,
        "masterController": kubermatic,
        "seedController": kubermatic,
        "webhook": kubermatic,
        "userCluster": user_cluster,
        "applications": catalog,
    });
    object(
        "kubermatic.k8c.io/v1",
        "KubermaticConfiguration",
        metadata("kubermatic", Some(NAMESPACE)),
        ("spec", spec),
    )
}

/// The repositories of the charts of KKP's applications: since 2.28, and before.
const CHARTS: [&str; 2] = [
    "quay.io/kubermatic-mirror/helm-charts",
    "quay.io/kubermatic/helm-charts",
];

/// The name of the Secret with the account for charts.
const CHART_ACCOUNT: &str = "helm-registry-credentials";

/// Returns the repository of KKP's application charts at the registry, if the lock has any.
fn charts_at(request: &RenderRequest<'_>) -> Option<String> {
    let charts = request
        .lock
        .charts
        .iter()
        .map(|chart| &chart.name.reference);
    let names: Vec<String> = request.images().chain(charts).map(ImageRef::name).collect();
    let is_locked = |folder: &&&str| {
        let below = format!("{folder}/");
        names.iter().any(|name| name.starts_with(&below))
    };
    let folder: ImageRef = CHARTS.iter().find(is_locked)?.parse().ok()?;
    let destination = request.mapping.destinations(&folder).into_iter().next()?;
    Some(format!("oci://{destination}"))
}

/// Returns the Secret with the account for charts. KKP copies Secrets with this annotation to the
/// seed clusters.
fn chart_account(auth_file: &str) -> Value {
    let metadata = json!({
        "name": CHART_ACCOUNT,
        "namespace": NAMESPACE,
        "annotations": {"apps.kubermatic.k8c.io/secret-type": "helm"},
    });
    docker_config(metadata, auth_file)
}

fn docker_config(metadata: Value, auth_file: &str) -> Value {
    let kind = Some("kubernetes.io/dockerconfigjson");
    secret(metadata, kind, json!({".dockerconfigjson": auth_file}))
}

// The values for all objects of KKP: the proxy, and image names at the registry.

/// The namespace in which KKP runs.
pub(super) const NAMESPACE: &str = "kubermatic";

/// The proxy settings of KKP.
pub(super) struct KubermaticProxy {
    pub(super) http: Option<String>,
    pub(super) https: Option<String>,
    /// The proxy of nodes. KKP has one field for both schemes.
    pub(super) node_proxy: String,
    pub(super) has_account: bool,
}

impl KubermaticProxy {
    pub(super) fn of(
        request: &RenderRequest<'_>,
        notes: &mut Vec<String>,
    ) -> Result<Option<KubermaticProxy>, Failure> {
        let Some(proxy) = request.proxy()? else {
            return Ok(None);
        };
        let [http, https] =
            [&proxy.http, &proxy.https].map(|one| one.as_ref().map(ProxyAddress::url));
        let Some(node_proxy) = https.clone().or_else(|| http.clone()) else {
            return Ok(None);
        };
        if http.as_ref().is_some_and(|http| *http != node_proxy) {
            notes.push("a Seed has one proxy for both schemes: the proxy for https is used".into());
        }
        let has_account = proxy.has_account();
        Ok(Some(KubermaticProxy {
            http,
            https,
            node_proxy,
            has_account,
        }))
    }
}

/// Returns the entries of NO_PROXY, with the DNS cache of KKP's nodes.
pub(super) fn no_proxy(request: &RenderRequest<'_>) -> NoProxyEntries {
    request.no_proxy().with(NODE_LOCAL_DNS.name)
}

/// Returns the destination of the first of these repositories that the lock contains.
pub(super) fn at_registry(request: &RenderRequest<'_>, repositories: &[&str]) -> Option<String> {
    let locked = repositories
        .iter()
        .find_map(|name| request.images().find(|image| image.name() == **name));
    let destination = request.mapping.destinations(locked?).into_iter().next()?;
    Some(destination.to_string())
}

/// Returns a mapping whose `dockerRepository` is the name from [`at_registry`].
pub(super) fn repository(request: &RenderRequest<'_>, repositories: &[&str]) -> Option<Value> {
    at_registry(request, repositories).map(|name| json!({"dockerRepository": name}))
}
