//! Finds the files of a lock that make a machine a node, by their names.

use crate::platform::{RenderRequest, wrong_value};
use landfall_model::Failure;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The files of a lock that the script installs.
pub(super) struct NodeFiles {
    /// A line for each file: name, kind, target, architecture, SHA-256, path at the file server.
    pub items: String,
    /// The architectures that the lock has files for.
    pub architectures: Vec<String>,
    /// The version of containerd, if its archive is locked.
    pub containerd: Option<String>,
    /// The names for which the lock has no file.
    pub missing: Vec<&'static str>,
}

/// The architectures of releases, as the names of files have them.
const ARCHITECTURES: [&str; 5] = ["amd64", "arm64", "ppc64le", "s390x", "riscv64"];
/// The architecture of a file for all machines.
const ANY: &str = "any";

/// How and where the script installs a file. Programs are where the manual installations of
/// Kubernetes and containerd have them; units are in `/etc`, where they override those of packages.
const NAMES: [(&str, &str, &str); 10] = [
    ("containerd", "archive", "/usr/local"),
    ("runc", "program", "/usr/local/sbin/runc"),
    ("cni-plugins", "archive", "/opt/cni/bin"),
    ("crictl", "archive", "/usr/local/bin"),
    ("kubelet", "program", "/usr/local/bin/kubelet"),
    ("kubeadm", "program", "/usr/local/bin/kubeadm"),
    ("kubectl", "program", "/usr/local/bin/kubectl"),
    (
        "containerd.service",
        "unit",
        "/etc/systemd/system/containerd.service",
    ),
    (
        "kubelet.service",
        "unit",
        "/etc/systemd/system/kubelet.service",
    ),
    (
        "10-kubeadm.conf",
        "unit",
        "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf",
    ),
];

/// The files that have the version of Kubernetes.
const OF_KUBERNETES: [&str; 3] = ["kubelet", "kubeadm", "kubectl"];

/// What a file is, according to its URL: its name, its architecture, and the version in the name of
/// containerd's archive.
fn role(url: &str) -> Option<(&'static str, &str, Option<&str>)> {
    let mut components = url.rsplit(['/', ':']);
    let file = components.next()?;
    let folder = components.next().unwrap_or_default();
    let known = |word: &str| ARCHITECTURES.contains(&word);
    let found = |name, architecture, version| {
        let &(name, ..) = NAMES.iter().find(|(known, ..)| *known == name)?;
        Some((name, architecture, version))
    };
    // NAME-VERSION-linux-ARCHITECTURE.tar.gz
    let archive = |name: &str| {
        let rest = file.strip_prefix(name)?.strip_prefix('-')?;
        let (version, architecture) = rest.strip_suffix(".tar.gz")?.split_once("-linux-")?;
        let is_version = version
            .trim_start_matches('v')
            .starts_with(|c: char| c.is_ascii_digit());
        (is_version && known(architecture)).then_some((version, architecture))
    };
    if OF_KUBERNETES.contains(&file) && known(folder) {
        return found(file, folder, None);
    }
    if file.ends_with(".service") || file.ends_with(".conf") {
        return found(file, ANY, None);
    }
    if let Some(architecture) = file.strip_prefix("runc.").filter(|word| known(word)) {
        return found("runc", architecture, None);
    }
    if let Some(rest) = file.strip_prefix("cni-plugins-linux-") {
        let (architecture, version) = rest.strip_suffix(".tgz")?.split_once('-')?;
        return known(architecture)
            .then(|| found("cni-plugins", architecture, Some(version)))
            .flatten();
    }
    ["crictl", "containerd"].into_iter().find_map(|name| {
        let (version, architecture) = archive(name)?;
        found(name, architecture, Some(version))
    })
}

/// Returns the files of the lock for a node. `key` is the setting with the version of Kubernetes.
///
/// Fails if the lock has several files for one purpose, or a path that a script cannot name.
pub(super) fn chosen_files(request: &RenderRequest<'_>, key: &str) -> Result<NodeFiles, Failure> {
    let wanted = request.settings.get(key);
    let mut found: BTreeMap<(&str, &str), Vec<(&str, String)>> = BTreeMap::new();
    let mut containerd = None;
    for file in &request.lock.files {
        let Some((name, architecture, version)) = role(&file.name) else {
            continue;
        };
        let is_wanted = |version| file.name.split('/').any(|part| part == version);
        if OF_KUBERNETES.contains(&name) && wanted.is_some_and(|version| !is_wanted(version)) {
            continue;
        }
        if name == "containerd" {
            containerd = version.map(str::to_owned);
        }
        let sum = file.digest.hex();
        let files = found.entry((name, architecture)).or_default();
        files.push((&file.name, sum));
    }
    let mut items = String::new();
    let mut architectures = BTreeSet::new();
    for (name, kind, target) in NAMES {
        for (&(_, architecture), files) in found.iter().filter(|((own, _), _)| *own == name) {
            let [(url, sum)] = &files[..] else {
                let urls: Vec<&str> = files.iter().map(|(url, _)| *url).collect();
                let select = if OF_KUBERNETES.contains(&name) {
                    format!("select one with --set {key}=VERSION")
                } else {
                    "remove all but one from the manifest".to_owned()
                };
                return Err(Failure::refused(format!(
                    "the lock has several files for {name} ({architecture}): {}; {select}",
                    urls.join(", ")
                )));
            };
            let path = match url.split_once("://") {
                Some((_, path)) => path.to_owned(),
                None => url.replacen(':', "/", 1),
            };
            if path.contains(|c: char| c.is_whitespace() || c.is_control()) {
                return Err(Failure::refused(format!(
                    "{url}: the script cannot download a path with blanks"
                )));
            }
            if architecture != ANY {
                architectures.insert(architecture.to_owned());
            }
            let _ = writeln!(items, "{name} {kind} {target} {architecture} {sum} {path}");
        }
    }
    if let Some(version) = wanted.filter(|_| !found.keys().any(|(name, _)| *name == "kubelet")) {
        let why = "the lock has no kubelet of this version";
        return Err(wrong_value(key, version, why));
    }
    let missing = NAMES.iter().map(|(name, ..)| *name);
    let missing = missing.filter(|name| !found.keys().any(|(own, _)| own == name));
    Ok(NodeFiles {
        items,
        architectures: architectures.into_iter().collect(),
        containerd,
        missing: missing.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_recognized_by_their_names() {
        for (url, expected) in [
            (
                "https://dl.k8s.io/release/v1.35.8/bin/linux/arm64/kubelet",
                Some(("kubelet", "arm64")),
            ),
            (
                "https://dl.k8s.io/release/v1.35.8/bin/windows/kubelet",
                None,
            ),
            (
                "https://h.test/cni-plugins-linux-amd64-v1.9.1.tgz",
                Some(("cni-plugins", "amd64")),
            ),
            (
                "https://h.test/crictl-v1.35.0-linux-amd64.tar.gz",
                Some(("crictl", "amd64")),
            ),
            (
                "https://h.test/containerd-2.3.4-linux-amd64.tar.gz",
                Some(("containerd", "amd64")),
            ),
            (
                "https://h.test/containerd-static-2.3.4-linux-amd64.tar.gz",
                None,
            ),
            (
                "https://h.test/cri-containerd-1.7.0-linux-amd64.tar.gz",
                None,
            ),
            ("https://h.test/runc.amd64", Some(("runc", "amd64"))),
            ("https://h.test/runc.amd64.asc", None),
            (
                "https://h.test/containerd.service",
                Some(("containerd.service", ANY)),
            ),
            ("local:10-kubeadm.conf", Some(("10-kubeadm.conf", ANY))),
            (
                "local:units/10-kubeadm.conf",
                Some(("10-kubeadm.conf", ANY)),
            ),
            ("https://h.test/other.service", None),
        ] {
            let found = role(url).map(|(name, architecture, _)| (name, architecture));
            assert_eq!(found, expected, "{url}");
        }
    }
}
