//! The `KubermaticConfiguration`: the repositories of KKP's images and charts, the proxy and the
//! certificate authorities.

use crate::kubernetes_objects::{map, metadata, optional, some_map};
use crate::no_proxy::{NoProxyDialect, NoProxyEntries};
use crate::node_proxy::ProxyAddress;
use crate::node_registry::NodeRegistry;
use crate::request::{BasicCredentials, RenderRequest};
use landfall_model::{Failure, ImageRef, NODE_LOCAL_DNS};
use serde_yaml::Value;

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
    let kubermatic = || repository(request, &KUBERMATIC);
    // the field is not a reference to a Secret, but the text of an auth file
    let pull_secret = optional(account.map(|account| registry.auth_file(account)));
    let has_charts = request
        .images()
        .any(|image| image.name().starts_with("quay.io/kubermatic/helm-charts/"));
    let charts = has_charts.then(|| charts_at(request)).flatten();
    let user_cluster = some_map([
        ("overwriteRegistry", optional(target)),
        (
            "kubermaticDockerRepository",
            at_registry(request, &KUBERMATIC),
        ),
        (
            "dnatControllerDockerRepository",
            at_registry(request, &["quay.io/kubermatic/kubeletdnat-controller"]),
        ),
        (
            "etcdLauncherDockerRepository",
            at_registry(request, &["quay.io/kubermatic/etcd-launcher"]),
        ),
        (
            "addons",
            repository(request, &["quay.io/kubermatic/addons"]),
        ),
        (
            "systemApplications",
            match &charts {
                None => Value::Null,
                Some(charts) => map([
                    ("helmRepository", charts.as_str().into()),
                    (
                        "plainHTTP",
                        if registry.plain_http {
                            true.into()
                        } else {
                            Value::Null
                        },
                    ),
                    (
                        "insecureSkipTLSVerify",
                        if registry.skip_verify {
                            true.into()
                        } else {
                            Value::Null
                        },
                    ),
                ]),
            },
        ),
    ]);
    let catalog = charts.map_or(Value::Null, |charts| {
        map([(
            "defaultApplicationCatalog",
            map([("helmRepository", charts.into())]),
        )])
    });
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
    let proxy = proxy.map_or(Value::Null, |proxy| {
        map([
            ("http", proxy.http.clone()),
            ("https", proxy.https.clone()),
            (
                "noProxy",
                no_proxy(request)
                    .list_without(NoProxyDialect::Dotted, &added)
                    .into(),
            ),
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
                ("api", repository(request, &DASHBOARD)),
                ("ui", repository(request, &DASHBOARD)),
                ("masterController", kubermatic()),
                ("seedController", kubermatic()),
                ("webhook", kubermatic()),
                ("userCluster", user_cluster),
                ("applications", catalog),
            ]),
        ),
    ])
}

/// Returns the repository of KKP's application charts.
fn charts_at(request: &RenderRequest<'_>) -> Option<String> {
    let charts: ImageRef = "quay.io/kubermatic/helm-charts".parse().ok()?;
    let destination = request.mapping.destinations(&charts).into_iter().next()?;
    Some(format!("oci://{destination}"))
}

// The values for all objects of KKP: the proxy, and image names at the registry.

/// The namespace in which KKP runs.
pub(super) const NAMESPACE: &str = "kubermatic";

/// The proxy settings of KKP.
pub(super) struct KubermaticProxy {
    pub(super) http: Value,
    pub(super) https: Value,
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
        let [http, https] = [http, https].map(optional);
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

/// Returns the destination of the first of these repositories that the lock contains, or null.
pub(super) fn at_registry(request: &RenderRequest<'_>, repositories: &[&str]) -> Value {
    let locked = repositories
        .iter()
        .find_map(|name| request.images().find(|image| image.name() == **name));
    let destination =
        locked.and_then(|image| request.mapping.destinations(image).into_iter().next());
    optional(destination.map(|destination| destination.to_string()))
}

/// Returns a mapping whose `dockerRepository` is the name from [`at_registry`], or null.
pub(super) fn repository(request: &RenderRequest<'_>, repositories: &[&str]) -> Value {
    match at_registry(request, repositories) {
        Value::Null => Value::Null,
        name => map([("dockerRepository", name)]),
    }
}
