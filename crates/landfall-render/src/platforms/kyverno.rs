//! `kyverno`: policies that point the images of all pods at the registry and add the proxy.

use super::kyverno_cel;
use crate::kubernetes_objects::{document, metadata, object};
use crate::node_registry::{host_paths, join_path};
use crate::platform::{
    PlatformSetting, RenderPlatform, RenderRequest, RenderedConfig, SITE_CLUSTER,
};
use crate::proxy::{NoProxyDialect, PodProxy, env};
use crate::rendered_file::RenderedFile;
use crate::signature_policy::{IMAGE_KEY, image_key};
use landfall_model::{Consumer, Failure};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "kyverno",
    about: "Kyverno: policies that replace registries and inject the proxy, in containers \
            of every kind",
    details: "Names at the registry, tags and digests are not changed. The proxy is not \
              injected into pods in kube-system and kyverno, or into pods with the \
              annotation landfall/inject-proxy: exclude.",
    settings: &[FORM, IMAGE_KEY, SITE_CLUSTER],
    consumer: Some(Consumer::Kyverno),
    has_proxy_part: true,
    ..RenderPlatform::new(render)
};

/// Selects the kinds of the policies.
const FORM: PlatformSetting = PlatformSetting::new(
    "form",
    "FORM",
    "The kinds: ClusterPolicy, which Kyverno 1.20 and later refuse, or MutatingPolicy and \
           ImageValidatingPolicy (cel), for 1.17 and later",
)
.one_of(&["cluster-policy", "cel"]);

/// The policies in one form.
pub(super) struct Policies {
    /// Replaces registries.
    pub(super) replace: fn(&RenderRequest<'_>) -> Value,
    /// Adds the proxy variables.
    pub(super) inject: fn(&PodProxy) -> Value,
    /// Admits images of the registry only if this key signed them.
    pub(super) verify: fn(&RenderRequest<'_>, &str) -> Value,
}

const CLUSTER_POLICIES: Policies = Policies {
    replace,
    inject,
    verify,
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let is_cel = request.settings.get(FORM.key) == Some("cel");
    let policies = if is_cel {
        kyverno_cel::POLICIES
    } else {
        CLUSTER_POLICIES
    };
    let mut files = Vec::new();
    if request.target.is_some() {
        let text = document(&(policies.replace)(request));
        files.push(RenderedFile::new("replace-registries.yaml", text));
    }
    if let Some(proxy) = PodProxy::of(request, NoProxyDialect::Bare)? {
        let text = document(&(policies.inject)(&proxy));
        files.push(RenderedFile::new("inject-proxy.yaml", text).secret(proxy.has_account));
    }
    if let Some(key) = image_key(&request.settings)? {
        if request.target.is_none() {
            let why = "--set image-key needs the registry whose images it verifies: add \
                       registry.address to the site";
            return Err(Failure::usage(why));
        }
        let text = document(&(policies.verify)(request, &key));
        files.push(RenderedFile::new("verify-images.yaml", text));
    }
    let mut notes = Vec::new();
    if !is_cel {
        let note = "Kyverno 1.20 and later refuse these policies; for 1.17 and later, use --set \
                    form=cel";
        notes.push(note.to_owned());
    }
    Ok(RenderedConfig::of_files(files, notes))
}

/// Returns the policy that admits images of the registry only if the key signed them. Kyverno
/// verifies images after other policies have replaced their registries.
fn verify(request: &RenderRequest<'_>, public_key: &str) -> Value {
    let keys = json!({
        "publicKeys": public_key,
        // the site's signatures are not in a transparency log
        "rekor": {"ignoreTlog": true},
        "ctlog": {"ignoreSCT": true},
    });
    let registry = &request.mapping.target().registry;
    let rule = json!({
        "name": "signed-for-the-site",
        "match": pods(),
        "verifyImages": [{
            "imageReferences": [format!("{registry}/*")],
            "failureAction": "Enforce",
            "attestors": [{"count": 1, "entries": [{"keys": keys}]}],
        }],
    });
    policy("landfall-verify-images", vec![rule])
}

/// The lists of containers in a pod.
pub(super) const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

fn policy(name: &str, rules: Vec<Value>) -> Value {
    let spec = json!({"background": false, "rules": rules});
    let metadata = metadata(name, None);
    object("kyverno.io/v1", "ClusterPolicy", metadata, ("spec", spec))
}

fn pods() -> Value {
    json!({"any": [resources("Pod", &["CREATE", "UPDATE"])]})
}

fn resources(kind: &str, operations: &[&str]) -> Value {
    json!({"resources": {"kinds": [kind], "operations": operations}})
}

/// Returns the policy that replaces registries. It has one rule for each repository with its own
/// path, and one for all other repositories of a host, unless it is the registry itself: the policy
/// sees a pod at each update, and the new names must stay.
fn replace(request: &RenderRequest<'_>) -> Value {
    let own = &request.mapping.target().registry;
    let mut rules = Vec::new();
    let mut names = RuleNames::default();
    for (host, paths) in host_paths(request) {
        for (index, (repository, path)) in paths.others.iter().enumerate() {
            let conditions = [
                ("registry", "Equals", json!(host)),
                ("path", "AnyIn", json!(spellings(&host, repository))),
            ];
            rules.push(rule(
                &names.unique(&format!("{}-{}", label(&host), index + 1)),
                &conditions,
                &format!("{own}/{path}"),
            ));
        }
        if host == *own {
            continue;
        }
        // all repositories of the host except those with a rule of their own
        let mut rest = vec![("registry", "Equals", json!(host))];
        if !paths.others.is_empty() {
            let others = paths.others.iter();
            let others = others.flat_map(|(repository, _)| spellings(&host, repository));
            rest.push(("path", "AnyNotIn", others.collect()));
        }
        let path = join_path(&paths.prefix, path_of(&host));
        let name = names.unique(&label(&host));
        rules.push(rule(&name, &rest, &format!("{own}/{path}")));
    }
    policy("landfall-replace-registries", rules)
}

/// The path of an image in Kyverno's variables. Kyverno does not normalize it: `nginx` is not
/// `library/nginx`.
fn path_of(host: &str) -> &'static str {
    match host {
        "docker.io" => {
            "{{ contains(image.path, '/') && image.path || join('', ['library/', image.path]) }}"
        }
        _ => "{{ image.path }}",
    }
}

/// Returns the spellings of the path of `repository`.
fn spellings<'r>(host: &str, repository: &'r str) -> Vec<&'r str> {
    let short = repository
        .strip_prefix("library/")
        .filter(|_| host == "docker.io");
    std::iter::once(repository).chain(short).collect()
}

/// The names of a policy's rules. They must be unique.
#[derive(Default)]
struct RuleNames(BTreeSet<String>);

impl RuleNames {
    /// Returns `name`, with a number if another rule has this name: the hosts `a.b` and `a-b` have
    /// the same label.
    fn unique(&mut self, name: &str) -> String {
        let mut free = name.to_owned();
        let mut number = 1;
        while !self.0.insert(free.clone()) {
            number += 1;
            free = format!("{name}-{number}");
        }
        free
    }
}

/// Returns a host as a part of the name of a rule.
fn label(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    host.replace(|c: char| !c.is_ascii_alphanumeric(), "-")
}

/// Returns a rule for images that match `conditions`: it changes their repository to `to` and keeps
/// their tags and digests. A condition is a part of the image, an operator and a value.
///
/// Conditions use Kyverno's parsed image, not a regular expression over its text: the expressions
/// in common examples do not match a registry with a port or a hyphen.
fn rule(name: &str, conditions: &[(&str, &str, Value)], to: &str) -> Value {
    let each = |list: &&str| {
        let image = format!("images.{list}.\"{{{{ element.name }}}}\"");
        let all: Value = conditions
            .iter()
            .map(|(part, operator, value)| {
                json!({
                    "key": format!("{{{{ image.{part} }}}}"),
                    "operator": operator,
                    "value": value,
                })
            })
            .collect();
        let new_image = format!(
            "{to}{{{{ image.tag && join('', [':', image.tag]) || '' }}}}{{{{ image.digest && \
             join('', ['@', image.digest]) || '' }}}}"
        );
        json!({
            // a pod need not have init or ephemeral containers
            "list": format!("request.object.spec.{list} || `[]`"),
            "context": [{"name": "image", "variable": {"jmesPath": image}}],
            "preconditions": {"all": all},
            "patchStrategicMerge": {
                "spec": {(*list): [{"name": "{{ element.name }}", "image": new_image}]},
            },
        })
    };
    let each: Value = LISTS.iter().map(each).collect();
    json!({"name": name, "match": pods(), "mutate": {"foreach": each}})
}

/// Returns the policy that adds the proxy variables to all new containers. Kubernetes refuses every
/// update of a pod that changes the variables of its containers, and drops such a change from an
/// update that adds an ephemeral container.
fn inject(proxy: &PodProxy) -> Value {
    // `(name): "*"` matches each element of the list; if the list is empty, nothing is added
    let each = json!([{"(name)": "*", "env": env(&proxy.variables())}]);
    let lists: Value = LISTS.into_iter().map(|list| (list, each.clone())).collect();
    let rule = json!({
        "name": "proxy-variables",
        "match": {"any": [
            resources("Pod", &["CREATE"]),
            resources("Pod/ephemeralcontainers", &["UPDATE"]),
        ]},
        "exclude": {"any": [
            {"resources": {"namespaces": ["kube-system", "kyverno"]}},
            {"resources": {"annotations": {"landfall/inject-proxy": "exclude"}}},
        ]},
        "mutate": {"patchStrategicMerge": {"spec": lists}},
    });
    policy("landfall-inject-proxy", vec![rule])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rules_differ() {
        let mut names = RuleNames::default();
        let hosts = ["a-b", "a.b", "a.b:2", "a_b"];
        assert_eq!(
            hosts.map(|host| names.unique(&label(host))),
            ["a-b", "a-b-2", "a-b-2-2", "a-b-3"]
        );
    }
}
