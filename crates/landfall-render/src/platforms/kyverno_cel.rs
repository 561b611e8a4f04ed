//! `kyverno` with `form=cel`: the same policies as `MutatingPolicy` and `ImageValidatingPolicy`.
//! They match only pods: the pods of a Deployment are changed when they are admitted.
//!
//! The expressions are the same at every site, and need only functions that Kubernetes has too. The
//! facts of the site are in a variable, which is JSON: JSON is a part of CEL.

use super::kyverno::{LISTS, Policies};
use crate::kubernetes_objects::{metadata, object};
use crate::node_registry::{host_paths, join_path};
use crate::platform::RenderRequest;
use crate::proxy::{PodProxy, env};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) const POLICIES: Policies = Policies {
    replace,
    inject,
    verify,
};

/// The version of the policies. Kyverno has it since 1.17.
const API_VERSION: &str = "policies.kyverno.io/v1";

/// Replaces the registries of the containers in `LIST`. A name without a host is one of Docker Hub,
/// whose official images are in `library`. The longest prefix in `names` is replaced: the whole
/// repository, or its host.
const REPLACE: &str = "object.spec.?LIST.orValue([]).map(container, container.image)
.map(image, image.matches('^([^/]*[.:A-Z][^/]*|localhost)/') ? image : 'docker.io/' + image)
.map(image, image.matches('^docker[.]io/[^/]+$') ? image.replace('/', '/library/', 1) : image)
.map(image, [image.find('^[^/]+/[^:@]+'), image.find('^[^/]+')]
  .filter(name, name in variables.names)
  .map(name, variables.names[name] + image.substring(name.size())))
.transformList(at, names, names.size() > 0, JSONPatch{op: 'replace',
  path: '/spec/LIST/' + string(at) + '/image', value: names[0]})";

/// Sets the proxy variables of the containers in `LIST`. Those of a container that is there already
/// cannot be changed.
const INJECT: &str = "object.spec.?LIST.orValue([]).transformList(at, container,
  request.operation == 'CREATE'
    || !oldObject.spec.?LIST.orValue([]).exists(old, old.name == container.name),
  JSONPatch{op: 'add', path: '/spec/LIST/' + string(at) + '/env',
    value: variables.proxy + container.?env.orValue([])
      .filter(own, !variables.proxy.exists(one, one.name == own.name))})";

/// Whether the key signed all images that the policy matches. `images` has no others.
const VERIFY: &str = "(images.initContainers + images.containers + images.ephemeralContainers)
.all(image, verifyImageSignatures(image, [attestors.site]) > 0)";

/// Returns the policy that replaces registries. Its variable has the name at the registry of each
/// repository with its own path, and of each host, unless it is the registry itself.
fn replace(request: &RenderRequest<'_>) -> Value {
    let own = &request.mapping.target().registry;
    let mut names = BTreeMap::new();
    for (host, paths) in host_paths(request) {
        for (repository, path) in &paths.others {
            names.insert(format!("{host}/{repository}"), format!("{own}/{path}"));
        }
        if host != *own {
            names.insert(host, join_path(own, &paths.prefix));
        }
    }
    let spec = json!({
        "evaluation": admission_only(),
        "matchConstraints": {"resourceRules": [pods()]},
        "variables": [variable("names", &json!(names))],
        "mutations": mutations(REPLACE),
    });
    policy("MutatingPolicy", "landfall-replace-registries", spec)
}

/// Returns the policy that adds the proxy variables to all new containers.
fn inject(proxy: &PodProxy) -> Value {
    let excluded = json!({
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": ["kube-system", "kyverno"],
    });
    let not_annotated = json!({
        "name": "not-excluded",
        "expression": "object.metadata.?annotations[?'landfall/inject-proxy'].orValue('') \
                       != 'exclude'",
    });
    let spec = json!({
        "evaluation": admission_only(),
        "matchConstraints": {
            "namespaceSelector": {"matchExpressions": [excluded]},
            "resourceRules": [
                resources(&["CREATE"], &["pods"]),
                resources(&["UPDATE"], &["pods/ephemeralcontainers"]),
            ],
        },
        "matchConditions": [not_annotated],
        "variables": [variable("proxy", &env(&proxy.variables()))],
        "mutations": mutations(INJECT),
    });
    policy("MutatingPolicy", "landfall-inject-proxy", spec)
}

/// Returns the policy that admits images of the registry only if the key signed them. Kyverno first
/// adds the digests of images, which the policy demands.
fn verify(request: &RenderRequest<'_>, public_key: &str) -> Value {
    let cosign = json!({
        "key": {"data": public_key},
        // the site's signatures are not in a transparency log
        "ctlog": {"insecureIgnoreTlog": true, "insecureIgnoreSCT": true},
    });
    let prefix = json!(format!("{}/", request.mapping.target().registry));
    let spec = json!({
        "evaluation": admission_only(),
        "validationActions": ["Deny"],
        "matchConstraints": {"resourceRules": [pods()]},
        // not a glob, in which the brackets of an IPv6 address are a class of characters
        "matchImageReferences": [{"expression": format!("ref.startsWith({prefix})")}],
        "attestors": [{"name": "site", "cosign": cosign}],
        "validations": [{
            "expression": VERIFY,
            "message": "an image of the registry is not signed with the site's key",
        }],
    });
    policy("ImageValidatingPolicy", "landfall-verify-images", spec)
}

fn policy(kind: &str, name: &str, spec: Value) -> Value {
    object(API_VERSION, kind, metadata(name, None), ("spec", spec))
}

fn admission_only() -> Value {
    json!({"background": {"enabled": false}})
}

fn pods() -> Value {
    resources(&["CREATE", "UPDATE"], &["pods", "pods/ephemeralcontainers"])
}

fn resources(operations: &[&str], resources: &[&str]) -> Value {
    json!({
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": operations,
        "resources": resources,
    })
}

fn variable(name: &str, value: &Value) -> Value {
    json!({"name": name, "expression": format!("{value:#}")})
}

/// Returns a mutation for each list of containers, whose name replaces `LIST` in `expression`.
fn mutations(expression: &str) -> Value {
    let mutation = |list: &&str| {
        json!({
            "patchType": "JSONPatch",
            "jsonPatch": {"expression": expression.replace("LIST", list)},
        })
    };
    LISTS.iter().map(mutation).collect()
}
