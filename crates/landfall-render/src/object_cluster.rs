//! The cluster of the site to which an object in a file belongs.

use landfall_model::config::SiteCluster;
use serde_yaml::Value;

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
    use landfall_model::document::documents;

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
