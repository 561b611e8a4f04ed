//! The settings of KKP that follow from the site: its proxy, and the names of images.

use crate::error::RenderError;
use crate::kubernetes_objects::{map, optional};
use crate::node_proxy::ProxyAddress;
use crate::request::RenderRequest;
use serde_yaml::Value;

/// The namespace in which KKP runs.
pub(super) const NAMESPACE: &str = "kubermatic";

/// The proxy settings of KKP.
pub(super) struct KubermaticProxy {
    pub(super) http: Value,
    pub(super) https: Value,
    /// The proxy of nodes, for which KKP has one field for both schemes.
    pub(super) one: String,
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
        let Some(one) = https.clone().or_else(|| http.clone()) else {
            return Ok(None);
        };
        if http.as_ref().is_some_and(|http| *http != one) {
            notes.push("a Seed has one proxy for both schemes: it has the one of https".into());
        }
        let has_account = proxy.has_account();
        let [http, https] = [http, https].map(optional);
        Ok(Some(KubermaticProxy {
            http,
            https,
            one,
            has_account,
        }))
    }
}

/// Returns the name at the registry of the first of these repositories that is in the lock.
pub(super) fn at_registry(request: &RenderRequest<'_>, repositories: &[&str]) -> Value {
    let find = |name: &&str| request.images().find(|image| image.name() == **name);
    let found = repositories.iter().find_map(find);
    let place = found.and_then(|image| request.mapping.destinations(image).into_iter().next());
    optional(place.map(|place| place.to_string()))
}

/// Returns `key` with that name, if the image is in the lock.
pub(super) fn repository(request: &RenderRequest<'_>, repositories: &[&str]) -> Value {
    match at_registry(request, repositories) {
        Value::Null => Value::Null,
        place => map([("dockerRepository", place)]),
    }
}
