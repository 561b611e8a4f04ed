//! `landfall doctor node`: copies of the files of a good node, and each finding in copies of a bad
//! one; and the node itself, with the trust of its containerd.

use crate::platforms::place;
use crate::support::faults::{Content, Faults};
use crate::support::pki::Authority;
use crate::support::{Place, landfall_serve, need, skip, test_name};
use serde_json::Value;
use std::process::Command;

const SITE: &str =
    "registry: {address: \"172.20.0.2:5000\", plainHTTP: true}\nconsumers: [containerd]\n";
const IMAGES: [&str; 3] = [
    "quay.io/team/app:v1",
    "registry.k8s.io/kube-proxy:v1.35.8",
    "registry.k8s.io/pause:3.10.1",
];

const ROUTES: &str =
    "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n";
/// Routes to everything by a gateway, to the services 10.96.0.0/12, and to 172.20.0.0/24.
const DEFAULT_ROUTE: &str = "eth0\t00000000\t010014AC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n";
const SERVICE_ROUTE: &str = "eth1\t0000600A\t00000000\t0001\t0\t0\t0\t0000F0FF\t0\t0\t0\n";
const LOCAL_ROUTE: &str = "eth0\t000014AC\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
const DF: &str = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/a 1000000 100000 900000 10% /\n";
const CGROUP: &str = "
[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.runc.options]
SystemdCgroup = true
";

/// A folder `node` with copies of the files of a good node.
fn good_node() -> Place {
    let place = place(SITE, &IMAGES);
    place.ok(&["render", "containerd", "--site", "site.yaml", "-o", "node"]);
    let config = place.read("node/config-2.x.toml");
    let programs = "/usr/local/bin/containerd\n/usr/local/sbin/runc\n/usr/local/bin/kubelet\n\
                    /usr/local/bin/kubeadm\n/usr/sbin/conntrack\n/usr/sbin/ip\n/usr/sbin/iptables\n\
                    /usr/bin/mount\n/usr/bin/nsenter\n/usr/local/bin/crictl\n/usr/sbin/ethtool\n\
                    /usr/bin/socat\n/usr/sbin/tc\n";
    for (path, text) in [
        (
            "proc/net/route",
            &*format!("{ROUTES}{DEFAULT_ROUTE}{LOCAL_ROUTE}"),
        ),
        ("etc/resolv.conf", "nameserver 172.20.0.2\n"),
        ("programs", programs),
        (
            "proc/modules",
            "nf_conntrack 1 0 - Live 0x0\nbr_netfilter 1 0 - Live 0x0\n",
        ),
        ("proc/filesystems", "nodev\toverlay\n"),
        ("proc/sys/net/ipv4/ip_forward", "1\n"),
        ("proc/sys/net/bridge/bridge-nf-call-iptables", "1\n"),
        ("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n"),
        ("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
        ("proc/1/comm", "systemd\n"),
        ("df", DF),
        ("clock", "1796000000\nDate: Mon, 30 Nov 2026 00:53:21 GMT\n"),
        (
            "var/lib/kubelet/config.yaml",
            "kind: KubeletConfiguration\ncgroupDriver: systemd\n",
        ),
        ("etc/containerd/config.toml", &*(config + CGROUP)),
    ] {
        place.write(&format!("node/{path}"), text);
    }
    place
}

/// Runs `doctor node` on the copies. Returns all steps.
fn steps(place: &Place, exit: i32, more: &[&str]) -> Vec<Value> {
    let args = [
        "doctor",
        "node",
        "--from-files",
        "node",
        "--site",
        "site.yaml",
    ];
    let report = place.json(exit, &[&args, more].concat());
    let targets = report["targets"].as_array().unwrap().clone();
    let steps = targets
        .iter()
        .flat_map(|target| target["checks"].as_array().unwrap().clone());
    steps.collect()
}

fn find<'s>(steps: &'s [Value], check: &str, words: &str) -> &'s Value {
    let is_it =
        |step: &&Value| step["check"] == check && step["says"].as_str().unwrap().contains(words);
    let found = steps.iter().find(is_it);
    found.unwrap_or_else(|| panic!("no step {check} with '{words}': {steps:#?}"))
}

#[test]
fn a_good_node_has_no_finding() {
    let place = good_node();
    let steps = steps(&place, 0, &[]);
    for step in &steps {
        assert_eq!(step["verdict"], "ok", "{step}");
    }
    assert_eq!(find(&steps, "route", "default route")["interface"], "eth0");
    let host = find(
        &steps,
        "host",
        "registry.k8s.io (2 images): http://172.20.0.2:5000, by ",
    );
    assert_eq!(host["mirrors"][0], "http://172.20.0.2:5000/");
    assert_eq!(host["images"], 2);
    let shown = place.ok(&[
        "doctor",
        "node",
        "--from-files",
        "node",
        "--site",
        "site.yaml",
    ]);
    assert!(
        shown.contains("\n  ok    cgroup      containerd and the init use systemd\n"),
        "{shown}"
    );
}

/// A change of a good node, and the finding: the path, its new content (`None`: no such file), the
/// check, its verdict, and words of the text and of the fix.
type Finding = (
    &'static str,
    Option<&'static str>,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const FINDINGS: &[Finding] = &[
    (
        "etc/resolv.conf",
        Some("# none\n"),
        "name server",
        "no",
        "CoreDNS does not start",
        "--set nameserver=",
    ),
    (
        "etc/resolv.conf",
        Some("nameserver 127.0.0.53\n"),
        "name server",
        "no",
        "forwards to itself",
        "--set nameserver=",
    ),
    (
        "etc/resolv.conf",
        None,
        "name server",
        "note",
        "was not collected",
        "landfall help node",
    ),
    (
        "programs",
        Some("/usr/bin/containerd\n"),
        "programs",
        "no",
        "missing: runc, kubelet, kubeadm, conntrack",
        "landfall init --from kubeadm",
    ),
    (
        "proc/modules",
        Some("nf_conntrack 1\n"),
        "sysctl",
        "ok",
        "bridge-nf-call-iptables is 1",
        "",
    ),
    (
        "proc/filesystems",
        Some("\text4\n"),
        "modules",
        "no",
        "overlay is not loaded",
        "modules-load.d",
    ),
    (
        "proc/sys/net/ipv4/ip_forward",
        Some("0\n"),
        "sysctl",
        "no",
        "ip_forward is 0",
        "sysctl -w net.ipv4.ip_forward=1",
    ),
    (
        "proc/sys/net/bridge/bridge-nf-call-iptables",
        Some("0\n"),
        "sysctl",
        "no",
        "bridge-nf-call-iptables is 0",
        "sysctl -w",
    ),
    (
        "proc/swaps",
        Some("Filename\n/dev/b partition 1 0 -2\n"),
        "swap",
        "no",
        "the kubelet does not start",
        "swapoff -a",
    ),
    (
        "proc/mounts",
        Some("tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n"),
        "cgroup",
        "note",
        "cgroup v1",
        "failCgroupV1: false",
    ),
    (
        "proc/1/comm",
        Some("init\n"),
        "cgroup",
        "no",
        "the init is init",
        "SystemdCgroup = false",
    ),
    (
        "var/lib/kubelet/config.yaml",
        Some("cgroupDriver: cgroupfs\n"),
        "cgroup",
        "no",
        "the kubelet's cgroup driver is cgroupfs",
        "cgroupDriver: systemd",
    ),
    (
        "df",
        Some("F B U A C M\n/dev/a 1000 950 50 95% /\n"),
        "space",
        "no",
        "5 %: the kubelet evicts pods",
        "larger disk",
    ),
    (
        "df",
        Some("F B U A C M\n/dev/a 1000 880 120 88% /\n"),
        "space",
        "note",
        "deletes images",
        "larger disk",
    ),
    (
        "clock",
        Some("1796000000\ndate: Mon, 30 Nov 2026 01:53:21 GMT\n"),
        "clock",
        "no",
        "differs by ",
        "time service",
    ),
    (
        "clock",
        Some("1796000000\n"),
        "clock",
        "note",
        "no server to compare",
        "registry",
    ),
    (
        "etc/containerd/config.toml",
        None,
        "config_path",
        "note",
        "was not collected",
        "landfall help node",
    ),
    (
        "etc/containerd/config.toml",
        Some(
            "version = 3\n[plugins.\"io.containerd.cri.v1.images\".registry]\nconfig_path = \"/etc/containerd/certs.d\"\n",
        ),
        "cgroup",
        "no",
        "the kubelet adopts cgroupfs",
        "SystemdCgroup = true",
    ),
    (
        "etc/containerd/config.toml",
        Some(
            "version = 3\n[plugins.\"io.containerd.cri.v1.images\".registry]\nconfig_path = \"/etc/a:/etc/b\"\n",
        ),
        "config_path",
        "no",
        "reads no hosts.toml",
        "name one folder",
    ),
    (
        "etc/containerd/config.toml",
        Some(
            "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry]\nconfig_path = \"/etc/containerd/certs.d\"\n[plugins.\"io.containerd.grpc.v1.cri\".registry.mirrors.\"docker.io\"]\nendpoint = [\"https://r.test\"]\n",
        ),
        "mirrors",
        "no",
        "registry.mirrors beside config_path",
        "remove registry.mirrors",
    ),
    (
        "etc/containerd/certs.d/registry.k8s.io/hosts.toml",
        Some("[host.\"http://172.20.0.2:5000\"]\n"),
        "host",
        "note",
        "then registry.k8s.io itself",
        "`server`",
    ),
    (
        "etc/containerd/certs.d/registry.k8s.io/hosts.toml",
        Some("server = [\n"),
        "host",
        "no",
        "is not valid TOML",
        "install.sh",
    ),
    (
        "etc/containerd/certs.d/registry.k8s.io/hosts.toml",
        Some("server = \"https://172.20.0.2:5000\"\nca = \"../lost/ca.crt\"\n"),
        "host",
        "no",
        "/etc/containerd/certs.d/lost/ca.crt, which does not exist",
        "install.sh",
    ),
    (
        "etc/containerd/certs.d/registry.k8s.io/hosts.toml",
        Some("server = \"https://other.test\"\n"),
        "host",
        "note",
        "the registry of the site is 172.20.0.2:5000, not other.test",
        "registry.address",
    ),
    (
        "etc/containerd/certs.d/registry.k8s.io/hosts.toml",
        Some("server = \"http://172.20.0.2:5000/v2/other\"\noverride_path = true\n"),
        "image",
        "no",
        "is requested as 172.20.0.2:5000/other/kube-proxy",
        "consumers: [containerd]",
    ),
];

#[test]
fn each_finding_has_a_verdict_and_a_fix() {
    for (path, text, check, verdict, words, fix) in FINDINGS {
        println!("{path}: {check} {words}");
        let place = good_node();
        match text {
            Some(text) => drop(place.write(&format!("node/{path}"), text)),
            None => std::fs::remove_file(place.path(format!("node/{path}"))).unwrap(),
        }
        let exit = if *verdict == "no" { 4 } else { 0 };
        let steps = steps(&place, exit, &[]);
        let step = find(&steps, check, words);
        assert_eq!(step["verdict"], *verdict, "{step}");
        let told = step["fix"].as_str().unwrap_or_default();
        assert!(told.contains(fix), "{step}");
        // nothing is wrong without a fix
        for step in &steps {
            assert_eq!(step["verdict"] == "ok", step["fix"].is_null(), "{step}");
        }
    }
}

#[test]
fn a_network_without_a_gateway_needs_a_route_to_the_services() {
    let place = good_node();
    let route = |routes: &str| {
        place.write(
            "node/proc/net/route",
            format!("{ROUTES}{LOCAL_ROUTE}{routes}"),
        )
    };
    route("");
    let found = steps(&place, 4, &[]);
    let step = find(&found, "route", "network is unreachable");
    assert!(
        step["fix"]
            .as_str()
            .unwrap()
            .contains("ip route add 10.96.0.0/12 dev"),
        "{step}"
    );
    let step = find(&found, "interface", "Flannel");
    assert!(
        step["fix"].as_str().unwrap().contains("advertiseAddress"),
        "{step}"
    );
    route(SERVICE_ROUTE);
    assert_eq!(
        find(&steps(&place, 0, &[]), "route", "a route over eth1")["verdict"],
        "ok"
    );
    // a part of another service network has no route
    find(
        &steps(&place, 4, &["--service-cidr", "10.64.0.0/10"]),
        "route",
        "10.64.0.0/10",
    );
    let v6 = "fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000400 00000001 00000000 00000001     eth0\n";
    place.write("node/proc/net/ipv6_route", v6);
    find(
        &steps(&place, 0, &["--service-cidr", "fd00::/108"]),
        "route",
        "a route over eth0",
    );
    find(
        &steps(&place, 4, &["--service-cidr", "fd01::/108"]),
        "route",
        "no route",
    );
    for (value, exit, verdict) in [("0\n", 4, "no"), ("1\n", 0, "ok")] {
        place.write("node/proc/sys/net/ipv6/conf/all/forwarding", value);
        let found = steps(&place, exit, &["--service-cidr", "fd00::/108"]);
        let step = find(&found, "sysctl", "net.ipv6.conf.all.forwarding");
        assert_eq!(step["verdict"], verdict, "{step}");
    }
    let both = steps(&place, 4, &["--service-cidr", "10.96.0.0/12, fd01::/108"]);
    find(&both, "route", "the services 10.96.0.0/12 have a route");
    find(&both, "route", "no route to the services fd01::/108");
    let interface = both.iter().filter(|step| step["check"] == "interface");
    assert_eq!(interface.count(), 1, "{both:#?}");
    let site = place.read("site.yaml");
    place.write(
        "site.yaml",
        format!("{site}clusters: [{{name: blue, serviceCIDR: 10.112.0.0/16}}]\n"),
    );
    find(&steps(&place, 4, &[]), "route", "10.112.0.0/16");
    for wrong in ["10.96.0.0", "10.96.0.0/33"] {
        place
            .landfall()
            .args([
                "doctor",
                "node",
                "--from-files",
                "node",
                "--service-cidr",
                wrong,
            ])
            .assert()
            .code(2);
    }
    place
        .landfall()
        .args(["doctor", "node", "--from-files", "nowhere"])
        .assert()
        .code(2);
}

#[test]
fn a_node_without_hosts_toml_asks_upstream() {
    let place = good_node();
    std::fs::remove_dir_all(place.path("node/etc/containerd/certs.d")).unwrap();
    let found = steps(&place, 4, &[]);
    let step = find(&found, "host", "containerd asks quay.io itself");
    assert!(
        step["fix"].as_str().unwrap().contains("landfall render"),
        "{step}"
    );
    // without a lock, the hosts are those of the node
    let place = good_node();
    std::fs::remove_file(place.path("landfall.lock")).unwrap();
    find(
        &steps(&place, 0, &[]),
        "host",
        "172.20.0.2:5000: http://172.20.0.2:5000",
    );
}

#[test]
fn imports_of_a_copied_configuration_are_read_from_the_copies() {
    let place = good_node();
    let config = place
        .read("node/etc/containerd/config.toml")
        .replace(CGROUP, "");
    let imports = "imports = [\"/etc/containerd/conf.d/*.toml\"]\n";
    place.write(
        "node/etc/containerd/config.toml",
        config.replace("version = 3\n", &format!("version = 3\n{imports}")),
    );
    place.write(
        "node/etc/containerd/conf.d/own.toml",
        format!("version = 3\n{CGROUP}"),
    );
    find(
        &steps(&place, 0, &[]),
        "cgroup",
        "containerd and the init use systemd",
    );
}

/// Whether this machine lets a test replace `/etc/containerd` for one process.
fn can_replace_configuration() -> bool {
    let probe = Command::new("unshare")
        .args(["--mount", "mount", "-t", "tmpfs", "none", "/etc/containerd"])
        .output();
    let can = probe.is_ok_and(|ran| ran.status.success());
    if !can {
        skip(
            &test_name(),
            "this machine has no /etc/containerd that a test may replace",
        );
    }
    can
}

#[test]
fn the_node_reaches_its_registry_with_the_trust_of_containerd() {
    if !cfg!(target_os = "linux") || !need(&["unshare", "mount"]) || !can_replace_configuration() {
        return;
    }
    let place = Place::new();
    let authority = Authority::new(&place, "site-ca");
    let (cert, key) = authority.issue(&place, &["localhost"]);
    let [cert, key] = [cert, key].map(|path| path.display().to_string());
    let server = landfall_serve(
        &place,
        &["--writable", "w", "--tls-cert", &cert, "--tls-key", &key],
    );
    let port = server.address.rsplit(':').next().unwrap();
    let address = format!("localhost:{port}");
    let site = |ca: &str| {
        let text = format!(
            "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"{address}\"{ca}}}\n"
        );
        place.write("site.yaml", text);
        place.write("landfall.lock", "version: 1\n");
        let _ = std::fs::remove_dir_all(place.path("node"));
        place.ok(&["render", "containerd", "--site", "site.yaml", "-o", "node"]);
        place.write(
            "node/etc/containerd/config.toml",
            place.read("node/config-2.x.toml"),
        );
        let mut shell = place.clean("unshare");
        let script = format!(
            "mount --bind node/etc/containerd /etc/containerd && exec {} doctor node --output json",
            env!("CARGO_BIN_EXE_landfall")
        );
        let ran = shell
            .args(["--mount", "sh", "-ec", &script])
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&ran.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&ran.stderr)));
        let targets = report["targets"].as_array().unwrap().clone();
        assert_eq!(targets[0]["target"], "node");
        let of_registry = targets
            .iter()
            .find(|target| target["target"] == format!("https://{address}/v2/"))
            .unwrap();
        let clock = targets
            .iter()
            .find(|target| target["target"] == "clock")
            .unwrap();
        (
            of_registry["checks"].as_array().unwrap().clone(),
            clock["checks"][0].clone(),
        )
    };
    let (checks, clock) = site(", ca: site-ca/ca.pem");
    assert!(
        checks.iter().all(|step| step["verdict"] != "no"),
        "{checks:?}"
    );
    assert_eq!(clock["verdict"], "ok", "{clock}");
    let (checks, _) = site("");
    let step = find(&checks, "tls", "not trusted");
    assert_eq!(step["verdict"], "no");
    assert!(
        step["fix"].as_str().unwrap().contains("registry.ca"),
        "{step}"
    );
}

#[test]
fn the_documented_command_collects_the_files_of_a_node() {
    if !cfg!(target_os = "linux") || !need(&["dash", "sed", "df", "curl"]) {
        return;
    }
    let page = include_str!("../../docs/how-to/platforms/node.md");
    let command = page
        .lines()
        .find(|line| line.starts_with("mkdir node"))
        .unwrap();
    let server = Faults::new(Content::default());
    let url = format!("http://{}/v2/", server.address);
    let command = command.replace("https://172.20.0.2:5000/v2/", &url);
    let place = Place::new();
    let ran = place.clean("dash").args(["-c", &command]).output().unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let ran = place
        .command()
        .args(["doctor", "node", "--from-files", "node", "--output", "json"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let targets = report["targets"].as_array().unwrap();
    let checks: Vec<&Value> = targets
        .iter()
        .flat_map(|target| target["checks"].as_array().unwrap())
        .collect();
    for check in ["route", "name server", "programs", "swap", "space", "clock"] {
        let step = checks.iter().find(|step| step["check"] == check).unwrap();
        let says = step["says"].as_str().unwrap();
        assert!(!says.contains("was not collected"), "{step}");
    }
}

/// The account may be in the configuration of containerd too (`auth=config`), and the client's key
/// is beside the hosts.toml.
#[test]
fn the_documented_command_leaves_out_accounts_and_private_keys() {
    if !need(&["dash", "sed"]) {
        return;
    }
    let page = include_str!("../../docs/how-to/platforms/node.md");
    let (_, rest) = page.split_once("sed '").unwrap();
    let (filter, _) = rest.split_once(" \"$f\"").unwrap();
    let place = Place::new();
    place.write(
        "file",
        "server = \"https://r.test\"\nAuthorization = [\"Basic c2VjcmV0\"]\n\
         authorization = \"Basic c2VjcmV0\"\n[configs.r.auth]\n\
         username = \"u\"\npassword = \"secret\"\n  auth = \"c2VjcmV0\"\nidentitytoken = \"secret\"\n\
         r = {auth = {username = \"u\", password = \"secret\"}}\nq = {auth = {auth = 'c2VjcmV0'}}\n\
         -----BEGIN EC PRIVATE KEY-----\n\
         secret\n-----END EC PRIVATE KEY-----\nlast\n",
    );
    let mut shell = place.clean("dash");
    let ran = shell.args(["-c", &format!("sed '{filter} file")]).output();
    assert_eq!(
        String::from_utf8(ran.unwrap().stdout).unwrap(),
        "server = \"https://r.test\"\n[configs.r.auth]\nusername = \"u\"\nlast\n"
    );
}
