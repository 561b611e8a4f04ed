//! Registries, download sites and settings that changed after manuals were written: the names that
//! replace old ones, each with its date and source. `lock`, `egress`, `doctor` and `render` read
//! this table, and the manual prints it.

use super::{ImageRef, without_scheme};
use std::collections::BTreeMap;

/// A name that changed: a host, or the beginning of a repository or URL without its scheme.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangedName {
    /// The old name, or the name of a setting.
    pub name: &'static str,
    /// The name to write instead.
    pub replacement: Option<&'static str>,
    /// Whether both names serve the same repositories.
    is_alias: bool,
    /// What happened, as the predicate of a sentence about `name`.
    pub what: &'static str,
    /// A further fact, as a clause.
    pub detail: Option<&'static str>,
    /// The date of the change, or of the source if the source does not say when it happened.
    pub date: &'static str,
    /// The URL of the announcement or documentation.
    pub source: &'static str,
}

/// The address of the DNS cache on nodes of KKP, which its list for NO_PROXY contains.
pub const NODE_LOCAL_DNS: ChangedName = changed(
    "169.254.20.10",
    None,
    "belongs to KKP's list for NO_PROXY: it is the DNS cache on each node",
    "2026-08-21",
    "https://docs.kubermatic.com/kubermatic/main/tutorials-howtos/networking/httpproxy/",
);

/// The expose strategy of KKP that does not work through a proxy.
pub const TUNNELING: ChangedName = changed(
    "Tunneling",
    None,
    "is not supported where worker nodes reach the control plane through a corporate proxy",
    "2026-08-21",
    "https://docs.kubermatic.com/kubermatic/main/tutorials-howtos/networking/expose-strategies/",
);

const LEGACY_PACKAGES: &str = "https://github.com/kubernetes/release/issues/3485";
const FOLDERS: &str = "it has a repository for each minor release, such as \
                       core:/stable:/v1.35/deb/ and core:/stable:/v1.35/rpm/";
/// Images of Google's own projects are still served: gcr.io survived Google Container Registry.
const FLIP: &str = "https://github.com/kubernetes/k8s.io/pull/1014";
const FROZEN: &str = "gets no new images";

/// All changed names, sorted. Of several that match, the longest counts.
pub const CHANGED_NAMES: &[ChangedName] = &[
    NODE_LOCAL_DNS,
    TUNNELING,
    changed(
        "apt.kubernetes.io",
        Some("pkgs.k8s.io"),
        "was removed",
        "2024-03-04",
        LEGACY_PACKAGES,
    )
    .with(FOLDERS),
    changed(
        "gcr.io/google-containers",
        Some("registry.k8s.io"),
        FROZEN,
        "2020-07-13",
        FLIP,
    ),
    changed(
        "gcr.io/google_containers",
        Some("registry.k8s.io"),
        FROZEN,
        "2020-07-13",
        FLIP,
    ),
    changed(
        "gcr.io/google_containers/hyperkube-amd64",
        None,
        "ended with Kubernetes 1.19",
        "2020-08-26",
        "https://github.com/kubernetes/kubernetes/pull/88676",
    )
    .with("the control plane has an image for each component, and dl.k8s.io has the kubelet"),
    changed(
        "gcr.io/google_containers/k8s-dns-node-cache",
        Some("registry.k8s.io/dns/k8s-dns-node-cache"),
        FROZEN,
        "2020-07-13",
        FLIP,
    ),
    changed(
        "gcr.io/kubebuilder/kube-rbac-proxy",
        Some("quay.io/brancz/kube-rbac-proxy"),
        "ended with Google Container Registry",
        "2025-03-18",
        "https://github.com/kubernetes-sigs/kubebuilder/discussions/3907",
    ),
    ChangedName {
        is_alias: true,
        ..changed(
            "k8s.gcr.io",
            Some("registry.k8s.io"),
            "was frozen",
            "2023-04-03",
            "https://kubernetes.io/blog/2023/02/06/k8s-gcr-io-freeze-announcement/",
        )
    },
    changed(
        "packages.cloud.google.com",
        Some("pkgs.k8s.io"),
        "has no packages of Kubernetes any more",
        "2024-03-04",
        LEGACY_PACKAGES,
    )
    .with(FOLDERS),
    changed(
        "projects.registry.vmware.com",
        Some("projects.packages.broadcom.com"),
        "moved",
        "2024-06-19",
        "https://github.com/vmware/vks-image-builder/issues/75",
    ),
    changed(
        "quay.io/coreos/container-linux-update-operator",
        Some("ghcr.io/flatcar/flatcar-linux-update-operator"),
        "ended with CoreOS Container Linux",
        "2020-05-26",
        "https://www.flatcar.org/blog/2020/02/flatcar-container-linux-enters-new-era-after-coreos-end-of-life-announcement/",
    )
    .with("Flatcar continues CoreOS Container Linux"),
    changed(
        "quay.io/coreos/flannel",
        Some("ghcr.io/flannel-io/flannel"),
        "moved",
        "2025-01-12",
        "https://github.com/flannel-io/flannel/issues/2161",
    )
    .with("it has v0.26.4 and newer, and docker.io/flannel/flannel older ones"),
    changed(
        "quay.io/coreos/kube-rbac-proxy",
        Some("quay.io/brancz/kube-rbac-proxy"),
        "is not updated any more",
        "2020-08-26",
        "https://github.com/kubermatic/kubermatic/pull/5791",
    ),
    changed(
        "raw.githubusercontent.com/kubermatic/machine-controller",
        None,
        "has no health-monitor.sh any more",
        "2024-04-30",
        "https://github.com/kubermatic/machine-controller/pull/1789",
    )
    .with("the profiles of operating-system-manager contain it"),
    changed(
        "storage.googleapis.com/kubernetes-release",
        Some("dl.k8s.io"),
        "moved",
        "2023-06-09",
        "https://kubernetes.io/blog/2023/06/09/dl-adopt-cdn/",
    ),
    changed(
        "yum.kubernetes.io",
        Some("pkgs.k8s.io"),
        "was removed",
        "2024-03-04",
        LEGACY_PACKAGES,
    )
    .with(FOLDERS),
];

const fn changed(
    name: &'static str,
    replacement: Option<&'static str>,
    what: &'static str,
    date: &'static str,
    source: &'static str,
) -> ChangedName {
    ChangedName {
        name,
        replacement,
        is_alias: false,
        what,
        detail: None,
        date,
        source,
    }
}

impl ChangedName {
    /// Adds the detail.
    const fn with(self, detail: &'static str) -> ChangedName {
        ChangedName {
            detail: Some(detail),
            ..self
        }
    }

    /// Returns the row for an image, a URL or a host.
    pub fn of(written: &str) -> Option<&'static ChangedName> {
        let name = without_scheme(written);
        let matches = |row: &&ChangedName| {
            name.strip_prefix(row.name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':', '@', ' ']))
        };
        CHANGED_NAMES
            .iter()
            .filter(matches)
            .max_by_key(|row| row.name.len())
    }

    /// Returns the rows for these images, URLs and hosts, each once, sorted by name.
    pub fn among<T: AsRef<str>>(written: impl IntoIterator<Item = T>) -> Vec<&'static ChangedName> {
        let rows = written
            .into_iter()
            .filter_map(|written| ChangedName::of(written.as_ref()));
        let rows: BTreeMap<&str, &ChangedName> = rows.map(|row| (row.name, row)).collect();
        rows.into_values().collect()
    }

    /// Returns what changed and what to write instead, in one line.
    pub fn summary(&self) -> String {
        let ChangedName {
            name, what, date, ..
        } = self;
        let instead = self
            .replacement
            .map(|replacement| format!("; write {replacement}"));
        let detail = self.detail.map(|detail| format!("; {detail}"));
        format!(
            "{name} {what} ({date}){}{}",
            instead.unwrap_or_default(),
            detail.unwrap_or_default()
        )
    }

    /// The summary, with its source.
    pub fn note(&self) -> String {
        format!("{}, see {}", self.summary(), self.source)
    }
}

/// Returns the other hosts that serve the same repositories as `host`.
pub fn alias_hosts(host: &str) -> impl Iterator<Item = &'static str> {
    CHANGED_NAMES
        .iter()
        .filter(|row| row.is_alias)
        .filter_map(move |row| match row.replacement {
            Some(replacement) if row.name == host => Some(replacement),
            Some(replacement) if replacement == host => Some(row.name),
            _ => None,
        })
}

/// Returns `registry/repository` of `reference`, followed by its names at alias hosts.
pub fn reference_names(reference: &ImageRef) -> impl Iterator<Item = String> {
    let others =
        alias_hosts(&reference.registry).map(|alias| format!("{alias}/{}", reference.repository));
    std::iter::once(reference.name()).chain(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_have_dates_and_sources() {
        assert!(CHANGED_NAMES.is_sorted_by_key(|row| row.name));
        for row in CHANGED_NAMES {
            assert!(row.source.starts_with("https://"), "{row:?}");
            assert!(row.date.parse::<jiff::civil::Date>().is_ok(), "{row:?}");
            let aliases: Vec<_> = alias_hosts(row.name).collect();
            let expected = row.replacement.filter(|_| row.is_alias);
            assert_eq!(aliases, expected.as_slice(), "{row:?}");
        }
        assert_eq!(
            alias_hosts("registry.k8s.io").collect::<Vec<_>>(),
            ["k8s.gcr.io"]
        );
    }

    #[test]
    fn the_longest_name_on_whole_components_counts() {
        let found = |name: &str| ChangedName::of(name).map(|row| row.name);
        for (name, row) in [
            ("k8s.gcr.io/pause:3.1", Some("k8s.gcr.io")),
            (
                "gcr.io/google_containers/hyperkube-amd64:v1.16.2",
                Some("gcr.io/google_containers/hyperkube-amd64"),
            ),
            (
                "gcr.io/google_containers/pause:3.1",
                Some("gcr.io/google_containers"),
            ),
            (
                "https://apt.kubernetes.io/dists/x",
                Some("apt.kubernetes.io"),
            ),
            ("apt.kubernetes.io:443", Some("apt.kubernetes.io")),
            (
                "quay.io/coreos/flannel@sha256:0",
                Some("quay.io/coreos/flannel"),
            ),
            ("quay.io/coreos/flannel-cni:v1", None),
            ("quay.io/coreos/etcd:v1", None),
            ("storage.googleapis.com", None),
            ("registry.k8s.io/pause:3.1", None),
        ] {
            assert_eq!(found(name), row, "{name}");
        }
    }
}
