//! Programs, swap, cgroups, disk space and the proxy of containerd.

use super::machine_files::MachineFiles;
use crate::doctor::CheckStatus::{No, Note, Ok};
use crate::doctor::containerd_lint::{self, ContainerdFile};
use crate::doctor::steps::DiagnosisSteps;
use landfall_model::document::objects;
use serde_json::json;
use std::collections::BTreeMap;

pub(super) const CONTAINERD_CONFIG: &str = "/etc/containerd/config.toml";
/// The configuration of the kubelet, which kubeadm writes.
const KUBELET_CONFIG: &str = "/var/lib/kubelet/config.yaml";
const MOUNTS: &str = "/proc/mounts";
const SWAPS: &str = "/proc/swaps";
const INIT: &str = "/proc/1/comm";

/// The programs without which `kubeadm init` or the kubelet stops, and those that they call for
/// some tasks.
const REQUIRED: [&str; 9] = [
    "containerd",
    "runc",
    "kubelet",
    "kubeadm",
    "conntrack",
    "ip",
    "iptables",
    "mount",
    "nsenter",
];
const USEFUL: [&str; 4] = ["crictl", "ethtool", "socat", "tc"];

/// Checks that the machine has the programs of a node.
pub(super) fn check_programs(files: &MachineFiles, steps: &mut DiagnosisSteps) {
    if files.lacks("programs", "programs", steps) {
        return;
    }
    let missing = |names: &[&'static str]| {
        let missing = names
            .iter()
            .filter(|name| files.has_program(name) == Some(false));
        missing.copied().collect::<Vec<_>>()
    };
    let required = missing(&REQUIRED);
    if required.is_empty() {
        steps.ok("programs", format!("{} are installed", REQUIRED.join(", ")));
    } else {
        let says = format!("missing: {}", required.join(", "));
        steps.add("programs", No, says, json!({"missing": required}));
        steps.fix(
            "add their packages or files to the manifest, as `landfall init --from kubeadm` has \
             them, and run install.sh of `landfall render node`",
        );
    }
    let useful = missing(&USEFUL);
    if !useful.is_empty() {
        let says = format!("missing, for some tasks only: {}", useful.join(", "));
        steps.add("programs", Note, says, json!({"missing": useful}));
        steps.fix("add their packages to the manifest if the cluster needs them");
    }
}

/// A value of the kubelet's configuration.
fn kubelet_value(files: &MachineFiles, key: &str) -> Option<String> {
    let documents = objects(&files.read(KUBELET_CONFIG)?).ok()?;
    let (_, document) = documents.into_iter().next()?;
    match document.get(key)? {
        serde_yaml::Value::Bool(value) => Some(value.to_string()),
        value => value.as_str().map(str::to_owned),
    }
}

/// Checks that the kubelet starts beside swap.
pub(super) fn check_swap(files: &MachineFiles, steps: &mut DiagnosisSteps) {
    if files.lacks(SWAPS, "swap", steps) {
        return;
    }
    let swaps = files.read(SWAPS).unwrap_or_default();
    if swaps.lines().count() < 2 {
        steps.ok("swap", "off");
    } else if kubelet_value(files, "failSwapOn").as_deref() == Some("false") {
        steps.ok("swap", "on, which the kubelet's failSwapOn: false allows");
    } else {
        steps.no("swap", "on: the kubelet does not start");
        steps.fix(
            "swapoff -a, and remove the swap lines from /etc/fstab, or set failSwapOn: false in \
             KubeletConfiguration",
        );
    }
}

/// Checks the cgroup drivers of containerd and the kubelet against the init of the machine.
pub(super) fn check_cgroups(
    files: &MachineFiles,
    configs: &[ContainerdFile],
    steps: &mut DiagnosisSteps,
) {
    let mounts = files.read(MOUNTS).unwrap_or_default();
    let types: Vec<&str> = mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let path = fields.next()?;
            path.starts_with("/sys/fs/cgroup").then(|| fields.next())?
        })
        .collect();
    if types.contains(&"cgroup") {
        let is_allowed = kubelet_value(files, "failCgroupV1").as_deref() == Some("false");
        let says = "cgroup v1, with which the kubelet of Kubernetes 1.35 and newer does not start";
        let allowed = if is_allowed {
            " unless failCgroupV1 is false, as here"
        } else {
            ""
        };
        steps.add(
            "cgroup",
            Note,
            format!("{says}{allowed}"),
            json!({"version": 1}),
        );
        if !is_allowed {
            steps.fix(
                "start the machine with systemd.unified_cgroup_hierarchy=1, or set failCgroupV1: \
                 false in KubeletConfiguration",
            );
        }
    } else if types.contains(&"cgroup2") {
        steps.add("cgroup", Ok, "cgroup v2", json!({"version": 2}));
    } else {
        files.lacks(MOUNTS, "cgroup", steps);
    }
    if configs.is_empty() || files.lacks(INIT, "cgroup", steps) {
        return;
    }
    let init = files.read(INIT).unwrap_or_default();
    let of_init = if init.trim() == "systemd" {
        "systemd"
    } else {
        "cgroupfs"
    };
    let of_containerd = if containerd_lint::has_systemd_cgroup(configs) {
        "systemd"
    } else {
        "cgroupfs"
    };
    let of_kubelet = kubelet_value(files, "cgroupDriver");
    let facts = json!({"init": init.trim(), "containerd": of_containerd, "kubelet": of_kubelet});
    if of_containerd != of_init {
        let says = format!(
            "the init is {}, and containerd manages cgroups by {of_containerd}: {}",
            init.trim(),
            if of_init == "systemd" {
                "containerd 1.x puts pods outside of kubepods.slice, and with 2.x the kubelet \
                 adopts cgroupfs, so two programs manage one tree"
            } else {
                "containers do not start"
            }
        );
        steps.add("cgroup", No, says, facts);
        steps.fix(format!(
            "SystemdCgroup = {} in the options of runc in {CONTAINERD_CONFIG}, as `landfall render \
             node` writes it, and restart containerd",
            of_init == "systemd"
        ));
    } else if of_kubelet
        .as_deref()
        .is_some_and(|kubelet| kubelet != of_containerd)
    {
        let kubelet = of_kubelet.unwrap_or_default();
        let says = format!(
            "the kubelet's cgroup driver is {kubelet}, and that of containerd {of_containerd}"
        );
        steps.add("cgroup", No, says, facts);
        steps.fix(format!(
            "cgroupDriver: {of_containerd} in {KUBELET_CONFIG}, and restart the kubelet"
        ));
    } else {
        let says = format!("containerd and the init use {of_containerd}");
        steps.add("cgroup", Ok, says, facts);
    }
}

/// The percentage of free space below which the kubelet evicts pods, and below which it deletes
/// images.
const EVICTION: u64 = 10;
const IMAGE_DELETION: u64 = 15;

/// Checks the free space of the folders of containerd, kubelet and etcd.
pub(super) fn check_space(files: &MachineFiles, steps: &mut DiagnosisSteps) {
    if files.lacks("df", "space", steps) {
        return;
    }
    let table = files.free_space().unwrap_or_default();
    let mut seen = Vec::new();
    for folder in ["/var/lib/containerd", "/var/lib/kubelet", "/var/lib/etcd"] {
        let Some((mount, total, free)) = file_system(&table, folder) else {
            continue;
        };
        if seen.contains(&mount) {
            continue;
        }
        seen.push(mount);
        let percent = free
            .saturating_mul(100)
            .checked_div(total)
            .unwrap_or_default();
        let verdict = match percent {
            ..EVICTION => No,
            EVICTION..IMAGE_DELETION => Note,
            _ => Ok,
        };
        let effect = match verdict {
            No => ": the kubelet evicts pods",
            Note => ": the kubelet deletes images, which must be pulled again",
            Ok => "",
        };
        let size = landfall_model::human_size(free.saturating_mul(1024));
        let says = format!("{mount} ({folder}) has {size} free, {percent} %{effect}");
        steps.add(
            "space",
            verdict,
            says,
            json!({"mount": mount, "percent": percent}),
        );
        if verdict != Ok {
            steps.fix(format!(
                "free space there, or mount a larger disk at {folder}"
            ));
        }
    }
}

/// The file system of `folder` in the output of `df -Pk`: where it is mounted, its size and its
/// free space.
fn file_system<'t>(table: &'t str, folder: &str) -> Option<(&'t str, u64, u64)> {
    let lines = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, total, _, free, _, mount] = fields[..] else {
            return None;
        };
        let rest = folder.strip_prefix(mount.trim_end_matches('/'));
        let is_above = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        is_above.then_some((mount, total.parse().ok()?, free.parse().ok()?))
    });
    lines.max_by_key(|(mount, ..)| mount.len())
}

/// The proxy variables in the drop-ins of containerd, by their names in upper case.
pub(crate) fn node_proxy(files: &MachineFiles) -> BTreeMap<String, String> {
    let folder = "/etc/systemd/system/containerd.service.d";
    let mut variables = BTreeMap::new();
    let names = files.names_in(folder).into_iter();
    // systemd reads no other files
    for name in names.filter(|name| name.ends_with(".conf")) {
        let text = files.read(&format!("{folder}/{name}")).unwrap_or_default();
        add_environment(&text, &mut variables);
    }
    variables
}

/// Adds the variables that a unit of systemd sets, by their names in upper case.
fn add_environment(unit: &str, variables: &mut BTreeMap<String, String>) {
    let values = unit.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "Environment").then_some(value)
    });
    for value in values {
        let words = unquoted_words(value);
        if words.is_empty() {
            // an empty value resets the list (systemd.exec(5))
            variables.clear();
        }
        let pairs = words.iter().filter_map(|word| word.split_once('='));
        variables.extend(
            pairs.map(|(name, value)| (name.to_ascii_uppercase(), value.replace("%%", "%"))),
        );
    }
}

/// The words of a value, without their quotes (systemd.syntax(7)).
fn unquoted_words(value: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            _ if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            _ if c.is_whitespace() && quote.is_none() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_has_a_folder() {
        let table = "Filesystem 1024-blocks Used Available Capacity Mounted on\n\
                     /dev/a 100 50 50 50% /\n/dev/b 200 20 180 10% /var/lib\n\
                     /dev/c 9 9 0 100% /var/lib/con\n";
        assert_eq!(
            file_system(table, "/var/lib/containerd"),
            Some(("/var/lib", 200, 180))
        );
        assert_eq!(file_system(table, "/srv"), Some(("/", 100, 50)));
        assert_eq!(file_system("", "/srv"), None);
    }

    #[test]
    fn variables_of_a_drop_in_are_read_as_systemd_reads_them() {
        for (unit, expected) in [
            // as in older pages of Docker
            (
                "[Service]\nEnvironment=\"HTTP_PROXY=http://p:3128/\" \"NO_PROXY=localhost,a.b\"\n",
                &[
                    ("HTTP_PROXY", "http://p:3128/"),
                    ("NO_PROXY", "localhost,a.b"),
                ][..],
            ),
            (
                "Environment = https_proxy=http://p:1 'no_proxy=a b'",
                &[("HTTPS_PROXY", "http://p:1"), ("NO_PROXY", "a b")],
            ),
            (
                r#"Environment="HTTP_PROXY=http://a%%40b:c\\d\"e@p:1""#,
                &[("HTTP_PROXY", r#"http://a%40b:c\d"e@p:1"#)],
            ),
            (
                "Environment=HTTP_PROXY=x\nEnvironment=\n# Environment=A=b\nEnvironment=NO_PROXY=c\n",
                &[("NO_PROXY", "c")],
            ),
        ] {
            let mut variables = BTreeMap::new();
            add_environment(unit, &mut variables);
            let found = variables.iter().map(|(name, value)| (&**name, &**value));
            assert_eq!(found.collect::<Vec<_>>(), expected, "{unit}");
        }
    }
}
