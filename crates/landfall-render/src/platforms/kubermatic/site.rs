//! The values for all objects of KKP: the proxy, and image names at the registry.

use crate::error::RenderError;
use crate::kubernetes_objects::{map, optional};
use crate::no_proxy::NoProxyEntries;
use crate::node_proxy::ProxyAddress;
use crate::request::RenderRequest;
use landfall_model::NODE_LOCAL_DNS;
use serde_yaml::Value;

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
    ) -> Result<Option<KubermaticProxy>, RenderError> {
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
