//! Routes and name servers of a node. In a network without a gateway, there is no route to the
//! services, no interface that a network could choose, and often no name server.

use super::machine_files::MachineFiles;
use crate::doctor::CheckStatus::Ok;
use crate::doctor::steps::DiagnosisSteps;
use landfall_model::AddressRange;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const ROUTES: &str = "/proc/net/route";
const ROUTES_V6: &str = "/proc/net/ipv6_route";
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// The name servers behind the local one of systemd-resolved, which kubeadm gives to the kubelet.
const RESOLVED: &str = "/run/systemd/resolve/resolv.conf";

/// `RTF_UP` and `RTF_REJECT` of `linux/route.h`.
const UP: u32 = 0x1;
const REJECT: u32 = 0x200;

/// A route of the kernel.
struct KernelRoute {
    range: AddressRange,
    interface: String,
}

fn routes(files: &MachineFiles) -> Vec<KernelRoute> {
    let v4 = files.read(ROUTES).unwrap_or_default();
    let v6 = files.read(ROUTES_V6).unwrap_or_default();
    let v4 = v4.lines().skip(1).filter_map(route_v4);
    v4.chain(v6.lines().filter_map(route_v6)).collect()
}

/// A line `eth0 00000000 0100A8C0 0003 0 0 0 00000000 …`: destination and mask are little endian.
fn route_v4(line: &str) -> Option<KernelRoute> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
    let flags = number(3)?;
    let bits = number(7)?.swap_bytes().count_ones();
    let network = Ipv4Addr::from(number(1)?.swap_bytes());
    let range = AddressRange::new(network.into(), bits);
    (flags & UP != 0 && flags & REJECT == 0).then(|| KernelRoute {
        range,
        interface: fields[0].to_owned(),
    })
}

/// A line `DESTINATION BITS SOURCE BITS NEXT METRIC REFERENCES USES FLAGS INTERFACE`.
fn route_v6(line: &str) -> Option<KernelRoute> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let network = Ipv6Addr::from(u128::from_str_radix(fields.first()?, 16).ok()?);
    let bits = u32::from_str_radix(fields.get(1)?, 16).ok()?;
    let flags = u32::from_str_radix(fields.get(8)?, 16).ok()?;
    let interface = (*fields.get(9)?).to_owned();
    let is_used = flags & UP != 0 && flags & REJECT == 0 && interface != "lo";
    is_used.then(|| KernelRoute {
        range: AddressRange::new(network.into(), bits),
        interface,
    })
}

/// Checks that packets to services leave the machine, where rules of kube-proxy replace their
/// destination. `services` are the ranges of services, each with its text.
pub(super) fn check_routes(
    files: &MachineFiles,
    services: &[(&str, AddressRange)],
    steps: &mut DiagnosisSteps,
) {
    let routes = routes(files);
    for &(written, range) in services {
        let path = if range.is_v6() { ROUTES_V6 } else { ROUTES };
        if files.lacks(path, "route", steps) {
            return;
        }
        check_service_route(&routes, written, range, steps);
    }
    if !routes.iter().any(|route| route.range.is_everything()) {
        let says = "no default route, from which kubeadm takes the address of the node, and \
                    networks such as Flannel their interface";
        steps.note("interface", says);
        steps.fix(
            "name them: localAPIEndpoint.advertiseAddress of InitConfiguration, the node's name in \
             /etc/hosts, and the interface of the network (Flannel: --iface=INTERFACE)",
        );
    }
}

fn check_service_route(
    routes: &[KernelRoute],
    written: &str,
    services: AddressRange,
    steps: &mut DiagnosisSteps,
) {
    match routes.iter().find(|route| route.range.contains(services)) {
        Some(KernelRoute { range, interface }) => {
            let kind = if range.is_everything() {
                "the default route"
            } else {
                "a route"
            };
            let says = format!("the services {written} have {kind} over {interface}");
            steps.add("route", Ok, says, json!({"interface": interface}));
        }
        None => {
            let says = format!(
                "no route to the services {written}: pods and the kubelet get `network is \
                 unreachable` instead of the API server"
            );
            steps.no("route", says);
            steps.fix(format!(
                "ip route add {written} dev INTERFACE, at every start (landfall render node --set \
                 interface=INTERFACE), or add a default route"
            ));
        }
    }
}

fn name_servers(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next())?
    });
    lines.map(str::to_owned).collect()
}

fn is_local(server: &str) -> bool {
    let address = server.split('%').next().unwrap_or(server);
    address
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_loopback())
}

/// Checks the name servers to which CoreDNS forwards.
pub(super) fn check_name_servers(files: &MachineFiles, steps: &mut DiagnosisSteps) {
    if files.lacks(RESOLV_CONF, "name server", steps) {
        return;
    }
    let servers = name_servers(&files.read(RESOLV_CONF).unwrap_or_default());
    let fix = "add one to /etc/resolv.conf, which need not answer (landfall render node --set \
               nameserver=ADDRESS), or remove `forward` from the Corefile of CoreDNS";
    if servers.is_empty() {
        let says = format!("{RESOLV_CONF} has no name server: CoreDNS does not start");
        steps.no("name server", says);
        steps.fix(fix);
        return;
    }
    if !servers.iter().all(|server| is_local(server)) {
        let says = format!("CoreDNS forwards to {}", servers.join(", "));
        steps.add("name server", Ok, says, json!({"servers": servers}));
        return;
    }
    let behind = name_servers(&files.read(RESOLVED).unwrap_or_default());
    if behind.iter().any(|server| !is_local(server)) {
        let says = format!("CoreDNS forwards to {}, from {RESOLVED}", behind.join(", "));
        steps.add("name server", Ok, says, json!({"servers": behind}));
    } else {
        let says = format!(
            "{RESOLV_CONF} names only the machine itself ({}): CoreDNS forwards to itself and stops",
            servers.join(", ")
        );
        steps.no("name server", says);
        steps.fix(fix);
    }
}
