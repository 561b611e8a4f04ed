//! Modules and settings of the kernel that Kubernetes needs.

use super::machine_files::MachineFiles;
use crate::doctor::steps::DiagnosisSteps;
use landfall_model::AddressRange;

const MODULES: &str = "/proc/modules";
const FILE_SYSTEMS: &str = "/proc/filesystems";
const IP_FORWARD: &str = "/proc/sys/net/ipv4/ip_forward";
const FORWARD_V6: &str = "/proc/sys/net/ipv6/conf/all/forwarding";
const BRIDGE: &str = "/proc/sys/net/bridge/bridge-nf-call-iptables";
const CONNTRACK: &str = "/proc/sys/net/netfilter/nf_conntrack_max";

fn has_word(files: &MachineFiles, path: &str, word: &str) -> bool {
    let text = files.read(path).unwrap_or_default();
    text.split_whitespace().any(|found| found == word)
}

/// Checks the module of connection tracking; `check_programs` checks the program.
pub(super) fn check_conntrack(files: &MachineFiles, steps: &mut DiagnosisSteps) {
    if files.exists(CONNTRACK) || has_word(files, MODULES, "nf_conntrack") {
        steps.ok("conntrack", "the kernel tracks connections");
    } else if !files.lacks(MODULES, "conntrack", steps) {
        let says = "nf_conntrack is not loaded yet; kube-proxy loads it with its first rule";
        steps.note("conntrack", says);
        steps.fix("run modprobe nf_conntrack; if it fails, install the modules of the kernel");
    }
}

/// Checks the modules of containerd's snapshots and of bridges.
pub(super) fn check_modules(files: &MachineFiles, steps: &mut DiagnosisSteps) {
    let load = "load it at every start (/etc/modules-load.d, as install.sh of `landfall render \
                node` does); if modprobe fails, install the modules of the kernel";
    if has_word(files, FILE_SYSTEMS, "overlay") || has_word(files, MODULES, "overlay") {
        steps.ok("modules", "overlay is loaded");
    } else if !files.lacks(FILE_SYSTEMS, "modules", steps) {
        let says = "overlay is not loaded: containerd cannot unpack images";
        steps.no("modules", says);
        steps.fix(load);
    }
    if files.exists(BRIDGE) || has_word(files, MODULES, "br_netfilter") {
        steps.ok("modules", "br_netfilter is loaded");
    } else if !files.lacks(MODULES, "modules", steps) {
        let says = "br_netfilter is not loaded: rules for services do not apply to pods on a \
                    bridge, and Flannel does not start";
        steps.no("modules", says);
        steps.fix(load);
    }
}

/// Checks the settings that kubeadm and networks need. `services` are the ranges of services.
pub(super) fn check_sysctls(
    files: &MachineFiles,
    services: &[(&str, AddressRange)],
    steps: &mut DiagnosisSteps,
) {
    let no_forwarding = "kubeadm refuses the node, and pods reach no other node";
    let bridge = "rules for services do not apply to pods on a bridge";
    let of_v6 = services.iter().any(|(_, range)| range.is_v6());
    let keys = [
        ("net.ipv4.ip_forward", IP_FORWARD, no_forwarding),
        ("net.bridge.bridge-nf-call-iptables", BRIDGE, bridge),
    ];
    let forward_v6 = ("net.ipv6.conf.all.forwarding", FORWARD_V6, no_forwarding);
    for (key, path, why) in keys.into_iter().chain(of_v6.then_some(forward_v6)) {
        match files.read(path).as_deref().map(str::trim) {
            Some("1") => steps.ok("sysctl", format!("{key} is 1")),
            Some(value) => {
                steps.no("sysctl", format!("{key} is {value}: {why}"));
                steps.fix(format!(
                    "sysctl -w {key}=1, and in /etc/sysctl.d, as install.sh of `landfall render \
                     node` does"
                ));
            }
            // without the module, which has a line of its own, there is no such setting
            None if path == BRIDGE => {}
            None => {
                files.lacks(path, "sysctl", steps);
            }
        }
    }
}
