//! Merges rendered documents into a file of the user (`--into`), with the facts of the site that it
//! may write over existing values, and the cluster of an object.

use crate::platform::RenderRequest;
use crate::rendered_file::RenderedFile;
use landfall_model::Failure;
use landfall_model::config::SiteCluster;
use landfall_model::document::{
    DecodedText, MergeError, MergeRules, SiteFacts, documents, merge, objects,
};
use serde_yaml::{Mapping, Value};
use std::path::Path;
use url::{Position, Url};

/// A file of the user into which rendered documents were merged.
#[derive(Debug, Default)]
pub struct MergedFile {
    /// The new content of the file.
    pub text: String,
    /// The values that were set, as dotted paths.
    pub changes: Vec<String>,
    /// Notes about counterparts of another name, and the number of rendered documents that have no
    /// counterpart in the file.
    pub notes: Vec<String>,
    /// Whether any of the values is a credential.
    pub secret: bool,
    /// The changed values that the file contains in base64.
    pub decoded: Vec<DecodedText>,
}

struct RenderedDocument {
    document: Value,
    /// The name of its file, without folders.
    file: String,
    /// The cluster for which it was rendered.
    cluster: Option<String>,
    secret: bool,
}

/// Returns a function that turns an error of a merge into the failure for the file at `path`.
pub(super) fn merge_error(path: &Path) -> impl Fn(MergeError) -> Failure + Copy {
    move |error| Failure::usage(format!("{}: {error}", path.display()))
}

/// Merges the documents in `files` into `text`, the content of the file at `path`.
///
/// Each rendered document is merged into the document of the same kind and name. If there is none,
/// a rendered document that is the only one of its kind is merged into the only document of that
/// kind, but not if it is a Secret or `ConfigMap`. A document without a kind is merged into the
/// only document without a kind. If several rendered documents have no kind, only those
/// from a file with the name of the user's file are merged. The items of a `List` are documents,
/// too. A document that belongs to one of `clusters` is a counterpart only of what is rendered for
/// this cluster. `rules` decide which existing values may be replaced.
///
/// # Errors
/// If the file is not YAML, has no counterpart for any document, cannot be edited, or would lose
/// content.
pub fn merge_into(
    path: &Path,
    text: &str,
    files: &[RenderedFile],
    clusters: &[SiteCluster],
    rules: MergeRules<'_>,
) -> Result<MergedFile, Failure> {
    let merge_error = merge_error(path);
    let (positions, existing): (Vec<_>, Vec<Value>) =
        objects(text).map_err(merge_error)?.into_iter().unzip();
    let mut rendered: Vec<RenderedDocument> = Vec::new();
    for made in files {
        let file = made.path.rsplit('/').next().unwrap_or_default();
        let each = documents(&made.text).map_err(merge_error)?.into_iter();
        rendered.extend(each.map(|document| RenderedDocument {
            document,
            file: file.into(),
            cluster: made.cluster.clone(),
            secret: made.secret,
        }));
    }
    let file = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let mut merged = MergedFile {
        text: text.into(),
        ..MergedFile::default()
    };
    let clusters: Vec<Option<&str>> = existing
        .iter()
        .map(|object| Some(cluster_of(object, clusters)?.name.as_str()))
        .collect();
    let mut missing = 0;
    for one in &rendered {
        let is_only = rendered
            .iter()
            .filter(|other| {
                kind(&other.document) == kind(&one.document) && other.cluster == one.cluster
            })
            .count()
            == 1;
        let candidates: Vec<(usize, &Value)> = existing
            .iter()
            .enumerate()
            .filter(|(at, _)| one.may_belong_to(clusters[*at]))
            .collect();
        let counterpart = match kind(&one.document) {
            // several rendered files without a kind, such as configuration of k3s, differ only by
            // their names
            None if !is_only && one.file != file => None,
            None => only_of_kind(&candidates, None),
            Some(_) => counterpart(&candidates, &one.document, is_only),
        };
        let (Some(at), Value::Mapping(values)) = (counterpart, &one.document) else {
            missing += 1;
            continue;
        };
        if let (Some(ours), Some(theirs)) = (name(&one.document), name(&existing[at]))
            && ours != theirs
        {
            merged.notes.push(format!(
                "{} is merged into {theirs}, the only one of its kind in the file",
                one.label()
            ));
        }
        let mut values = without_identity(values, &existing[at]);
        let is_secret = kind(&one.document) == Some("Secret");
        if is_secret {
            move_to_data(&mut values, &existing[at]);
        }
        let rules = MergeRules {
            base64: is_secret.then_some("data"),
            ..rules
        };
        // each merge keeps the number and order of the documents, so `at` stays valid
        let next = merge(&merged.text, positions[at], &values, rules).map_err(merge_error)?;
        merged.secret |= one.secret && !next.paths.is_empty();
        merged.text = next.text;
        merged.changes.extend(next.paths);
        merged.decoded.extend(next.decoded);
    }
    if missing == rendered.len() {
        let kinds: Vec<String> = rendered.iter().map(RenderedDocument::label).collect();
        return Err(Failure::usage(format!(
            "{} has no document to merge into; rendered: {}",
            path.display(),
            kinds.join(", ")
        )));
    }
    if missing > 0 {
        merged.notes.push(format!(
            "the file has no counterpart of {} of the {} rendered documents; -o DIR writes all",
            missing,
            rendered.len()
        ));
    }
    Ok(merged)
}

impl RenderedDocument {
    /// Whether a document of this cluster, if it belongs to one, can be the counterpart.
    fn may_belong_to(&self, cluster: Option<&str>) -> bool {
        match (self.cluster.as_deref(), cluster) {
            (Some(own), Some(other)) => own == other,
            _ => true,
        }
    }

    /// The kind and name for messages, or the file name of a document without a kind.
    fn label(&self) -> String {
        match (kind(&self.document), name(&self.document)) {
            (None, _) => self.file.clone(),
            (Some(kind), None) => kind.to_owned(),
            (Some(kind), Some(name)) => format!("{kind} {name}"),
        }
    }
}

fn kind(document: &Value) -> Option<&str> {
    document.get("kind")?.as_str()
}

fn name(document: &Value) -> Option<&str> {
    document.get("metadata")?.get("name")?.as_str()
}

/// Returns the index of the only document of this kind, if there is exactly one.
fn only_of_kind(candidates: &[(usize, &Value)], wanted: Option<&str>) -> Option<usize> {
    let mut all = candidates
        .iter()
        .filter(|(_, object)| kind(object) == wanted);
    match (all.next(), all.next()) {
        (Some((at, _)), None) => Some(*at),
        _ => None,
    }
}

fn namespace(document: &Value) -> Option<&str> {
    document.get("metadata")?.get("namespace")?.as_str()
}

/// Returns the index of the counterpart of `document` in the file: the document of the same kind
/// and name. If there is none and `is_only` is set, the counterpart is the only document of its
/// kind.
fn counterpart(candidates: &[(usize, &Value)], document: &Value, is_only: bool) -> Option<usize> {
    let named: Vec<&(usize, &Value)> = candidates
        .iter()
        .filter(|(_, object)| kind(object) == kind(document) && name(object) == name(document))
        .collect();
    match named[..] {
        [(at, _)] if name(document).is_some() => return Some(*at),
        // the namespace is compared only if several documents have the name
        [_, _, ..] if name(document).is_some() => {
            return named
                .iter()
                .find(|(_, object)| namespace(object) == namespace(document))
                .map(|(at, _)| *at);
        }
        _ => {}
    }
    // a Secret or ConfigMap of another name has another purpose
    let is_data =
        matches!(kind(document), Some("Secret" | "ConfigMap")) && name(document).is_some();
    only_of_kind(candidates, kind(document)).filter(|_| is_only && !is_data)
}

/// Moves texts from `stringData` to `data` if the Secret of the user has their keys in `data`.
/// Otherwise one key would be in both, and Kubernetes prefers `stringData`.
fn move_to_data(values: &mut Mapping, existing: &Value) {
    let has = |section: &str, key: &Value| {
        existing
            .get(section)
            .and_then(|section| section.get(key))
            .is_some()
    };
    let Some(Value::Mapping(texts)) = values.get_mut("stringData") else {
        return;
    };
    let keys: Vec<Value> = texts
        .keys()
        .filter(|key| has("data", key) && !has("stringData", key))
        .cloned()
        .collect();
    let moved: Mapping = keys
        .into_iter()
        .filter_map(|key| Some((key.clone(), texts.shift_remove(&key)?)))
        .collect();
    if texts.is_empty() {
        values.shift_remove("stringData");
    }
    if !moved.is_empty() {
        values.insert("data".into(), Value::Mapping(moved));
    }
}

/// Removes the rendered values that identify the object and that the user's document has as well,
/// so that the user's values are kept.
fn without_identity(values: &Mapping, existing: &Value) -> Mapping {
    let mut values = values.clone();
    for key in ["apiVersion", "kind"]
        .into_iter()
        .filter(|key| existing.get(key).is_some())
    {
        values.shift_remove(key);
    }
    if let (Some(Value::Mapping(metadata)), Some(existing)) =
        (values.get_mut("metadata"), existing.get("metadata"))
    {
        let has_name = existing.get("name").is_some();
        if has_name {
            metadata.shift_remove("name");
        }
        // an object without a namespace belongs to the one in which it is applied
        if has_name || existing.get("namespace").is_some() {
            metadata.shift_remove("namespace");
        }
    }
    values
}

// The facts of the site that `--into` may write over existing values.

/// Returns the facts of the site in `request`: the addresses of the registry, the file server and
/// the proxy, and the account at the registry. An account of the proxy is a part of its URL.
///
/// # Errors
/// If a certificate or credentials of the site cannot be read.
pub fn site_facts(request: &RenderRequest<'_>) -> Result<SiteFacts, Failure> {
    let mut facts = SiteFacts::default();
    if request.target.is_some() {
        let registry = request.registry()?;
        let account = registry.own_account()?;
        facts.parts.push(registry.target.registry);
        facts.wholes.extend(account.into_iter().flat_map(|account| {
            let encoded = account.encoded();
            [account.username, account.password, encoded]
        }));
    }
    let proxy = request.proxy()?.unwrap_or_default();
    let proxies = [proxy.http, proxy.https].into_iter().flatten();
    let urls = proxies.map(|proxy| proxy.url());
    let urls = urls.chain(request.file_server().map(str::to_owned));
    facts.parts.extend(urls.filter_map(|url| authority(&url)));
    Ok(facts)
}

/// Returns `host[:port]` of a URL.
fn authority(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let authority = &url[Position::BeforeHost..Position::AfterPort];
    url.has_host().then(|| authority.to_owned())
}

/// The labels with which Cluster API, Giant Swarm and TKG name the cluster of an object.
const LABELS: [&str; 3] = [
    "cluster.x-k8s.io/cluster-name",
    "giantswarm.io/cluster",
    "tkg.tanzu.vmware.com/cluster-name",
];

/// Returns the cluster of `clusters` to which `object` belongs: by its label, by the name of the
/// cluster that it configures, or by its own name, which is that of the cluster or begins with it.
/// Of several clusters, the one with the longest name is returned.
pub(crate) fn cluster_of<'s>(
    object: &Value,
    clusters: &'s [SiteCluster],
) -> Option<&'s SiteCluster> {
    let named = |name: &str| clusters.iter().find(|cluster| cluster.name == name);
    let metadata = object.get("metadata");
    let labels = metadata.and_then(|metadata| metadata.get("labels"));
    let label = LABELS
        .iter()
        .find_map(|label| labels?.get(label)?.as_str())
        // KubeOne has the name at the top
        .or_else(|| object.get("name")?.as_str().filter(|_| metadata.is_none()));
    if let Some(label) = label {
        return named(label);
    }
    let name = metadata?.get("name")?.as_str()?;
    let namespace = metadata?.get("namespace").and_then(Value::as_str);
    let is_own = |cluster: &&SiteCluster| {
        let rest = name.strip_prefix(cluster.name.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            && (namespace.is_none()
                || cluster.namespace.is_none()
                || namespace == cluster.namespace.as_deref())
    };
    clusters
        .iter()
        .filter(is_own)
        .max_by_key(|cluster| cluster.name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> RenderedFile {
        RenderedFile::new("a.yaml", text)
    }

    #[test]
    fn documents_are_merged_by_kind_and_name() {
        let text = "kind: A\nmetadata: {name: mine}\n---\nkind: B\nmetadata: {name: \
                x}\n---\nkind: B\nmetadata: {name: y}\n";
        let files = [
            file("kind: A\nmetadata: {name: theirs}\nspec: 1\n"),
            file("kind: B\nmetadata: {name: y}\nspec: 2\n---\nkind: C\nspec: 3\n").secret(true),
        ];
        let merged = merge_into(Path::new("f"), text, &files, &[], MergeRules::default()).unwrap();
        assert_eq!(
            merged.text,
            "kind: A\nmetadata: {name: mine}\nspec: 1\n---\nkind: B\nmetadata: {name: \
         x}\n---\nkind: B\nmetadata: {name: y}\nspec: 2\n"
        );
        let other = "A theirs is merged into mine, the only one of its kind in the file";
        assert_eq!(
            merged.notes,
            [
                other,
                "the file has no counterpart of 1 of the 3 rendered documents; -o DIR writes all"
            ]
        );
        assert!(merged.secret);
        // among rendered files without a kind, only the one with the name of the user's file is
        // merged
        let files = [
            RenderedFile::new("etc/a.yaml", "x: 1\n"),
            RenderedFile::new("etc/d/b.yaml", "w: 1\n"),
        ];
        let merged = merge_into(
            Path::new("mine/b.yaml"),
            "z: 1\n",
            &files,
            &[],
            MergeRules::default(),
        )
        .unwrap();
        assert_eq!((&*merged.text, merged.notes.len()), ("z: 1\nw: 1\n", 1));
        let error = merge_into(
            Path::new("mine.yaml"),
            "z: 1\n",
            &files,
            &[],
            MergeRules::default(),
        )
        .unwrap_err()
        .to_string();
        assert!(error.contains("a.yaml, b.yaml"), "{error}");
    }

    #[test]
    fn an_object_keeps_its_namespace_or_has_none() {
        let ours = [file(
            "kind: A\nmetadata: {name: a, namespace: default}\nspec: 1\n",
        )];
        for metadata in ["{name: a}", "{name: b}", "{name: a, namespace: n}"] {
            let mine = format!("kind: A\nmetadata: {metadata}\n");
            let merged =
                merge_into(Path::new("f"), &mine, &ours, &[], MergeRules::default()).unwrap();
            assert_eq!(merged.text, format!("{mine}spec: 1\n"));
        }
    }

    #[test]
    fn a_file_without_any_of_the_documents_is_refused() {
        let files = [
            file("kind: A\nmetadata: {name: theirs}\n"),
            file("kind: B\nmetadata: {name: y}\n---\nkind: C\n"),
        ];
        let error = merge_into(
            Path::new("f"),
            "kind: D\n",
            &files,
            &[],
            MergeRules::default(),
        )
        .unwrap_err()
        .to_string();
        assert!(error.contains("A theirs, B y, C"), "{error}");
    }

    #[test]
    fn a_secret_is_found_by_its_name_and_its_texts_stay_in_their_section() {
        let ours =
            file("kind: Secret\nmetadata: {name: a, namespace: n}\nstringData: {x: old, w: y z}\n");
        let mine = "kind: Secret\nmetadata: {name: b}\nstringData: {x: mine}\n";
        let error = merge_into(
            Path::new("f"),
            mine,
            std::slice::from_ref(&ours),
            &[],
            MergeRules::default(),
        )
        .unwrap_err()
        .to_string();
        assert!(error.contains("Secret a"), "{error}");
        // `b2xk` is `old` in base64
        let mine = "kind: Secret\nmetadata: {name: a, namespace: m}\ndata: {x: b2xk}\n---\n\
                kind: Secret\nmetadata: {name: a, namespace: n}\ndata: {x: b2xk, z: eg==}\n";
        let merged = merge_into(Path::new("f"), mine, &[ours], &[], MergeRules::default()).unwrap();
        let expected = mine.replace("z: eg==}", "z: eg==}\nstringData:\n  w: y z");
        assert_eq!(merged.text, expected);
    }

    #[test]
    fn an_object_names_its_cluster() {
        let read = |text: &str| documents(text).unwrap().remove(0);
        let clusters: Vec<SiteCluster> = serde_yaml::from_value(read(
            "[{name: blue, namespace: prod}, {name: blue-2}, {name: green, namespace: test}]",
        ))
        .unwrap();
        for (object, expected) in [
            ("metadata: {name: blue}", Some("blue")),
            ("metadata: {name: blue-app, namespace: prod}", Some("blue")),
            (
                "metadata: {name: blue-2-app, namespace: prod}",
                Some("blue-2"),
            ),
            ("metadata: {name: blueprint}", None),
            ("metadata: {name: green-app, namespace: prod}", None),
            (
                "metadata: {name: green-app, labels: {giantswarm.io/cluster: blue}}",
                Some("blue"),
            ),
            (
                "metadata: {name: blue, labels: {cluster.x-k8s.io/cluster-name: other}}",
                None,
            ),
            ("{kind: KubeOneCluster, name: green}", Some("green")),
            ("kind: App", None),
        ] {
            let found = cluster_of(&read(object), &clusters).map(|cluster| cluster.name.as_str());
            assert_eq!(found, expected, "{object}");
        }
    }
}
