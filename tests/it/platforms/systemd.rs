//! `systemd` and `kubelet`: drop-ins in both formats.

use super::{entries, environment, golden, place};
use crate::support::need;

const GIANT_SWARM: &str = "registry: {address: \"172.20.0.2:5000\"}
proxy:
  http: http://192.168.52.220:3128
  https: http://192.168.52.220:3128
  credentials: {file: account}
  noProxy:
    installation: [172.16.0.0/16, internal.corpdomain.net, example.com]
    cluster: {podCIDR: 100.96.0.0/11, serviceCIDR: 100.64.0.0/13, domain: cluster.local, controlPlaneEndpoint: 178.170.32.59}
";

const TKG: &str = "registry: {address: \"172.20.0.2:5000\"}
proxy:
  http: http://asdf
  https: https://asdf2
  noProxy: {cluster: {podCIDR: 100.96.0.0/11, serviceCIDR: 100.64.0.0/13, domain: cluster.local}}
";

#[test]
fn the_giant_swarm_format_has_six_variables_and_escapes_for_systemd() {
    let place = place(GIANT_SWARM, &[]);
    place.write("account", "my\\user:my 100%@\"Pass\"\n");
    let both = ["systemd", "--set", "services=containerd,kubelet"];
    golden(&place, "systemd-giantswarm", &both);
    let unit = place.read("out/etc/systemd/system/containerd.service.d/http-proxy.conf");
    let names: Vec<&str> = unit
        .lines()
        .filter_map(|line| Some(line.strip_prefix("Environment=\"")?.split_once('=')?.0))
        .collect();
    assert_eq!(
        names,
        [
            "HTTP_PROXY",
            "http_proxy",
            "HTTPS_PROXY",
            "https_proxy",
            "NO_PROXY",
            "no_proxy"
        ]
    );
    let shown = "cluster.local,100.64.0.0/13,100.96.0.0/11,178.170.32.59,172.16.0.0/16,internal.corpdomain.net,\
                 example.com,svc,127.0.0.1,localhost";
    let mut expected = entries(shown);
    // the private registry is excluded from the proxy too
    expected.insert("172.20.0.2".into());
    assert_eq!(entries(&environment(&unit)["NO_PROXY"]), expected);
}

#[test]
fn the_tkg_format_has_three_variables_and_a_kubelet_unit_below_usr_lib() {
    let place = place(TKG, &[]);
    let both = ["--set", "services=containerd,kubelet"];
    golden(
        &place,
        "systemd-tkg",
        &[&["systemd", "--set", "form=tkg"], &both[..]].concat(),
    );
    let unit = place.read("out/usr/lib/systemd/system/kubelet.service.d/http-proxy.conf");
    let variables = environment(&unit);
    assert_eq!(
        variables.keys().collect::<Vec<_>>(),
        ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"]
    );
    assert_eq!(
        (&*variables["HTTP_PROXY"], &*variables["HTTPS_PROXY"]),
        ("http://asdf", "https://asdf2")
    );
    let mut expected =
        entries(".svc.cluster.local,.svc,localhost,127.0.0.1,100.64.0.0/13,100.96.0.0/11");
    expected.insert("172.20.0.2".into());
    assert_eq!(entries(&variables["NO_PROXY"]), expected);
}

/// `systemd-analyze verify` always exits with 0, and reports dropped variables on stderr.
#[test]
fn systemd_reads_every_variable() {
    if !need(&["systemd-analyze"]) {
        return;
    }
    let place = place(GIANT_SWARM, &[]);
    place.write("account", "my\\user:100%A@\"Pa$$\"\n");
    let both = ["--set", "services=containerd,kubelet", "-o", "out"];
    place.ok(&[&["render", "systemd", "--site", "site.yaml"], &both[..]].concat());
    let units = place.path("out/etc/systemd/system");
    for service in ["containerd", "kubelet"] {
        place.write(
            &format!("out/etc/systemd/system/{service}.service"),
            "[Service]\nExecStart=/bin/true\n",
        );
        let mut verify = place.clean("systemd-analyze");
        verify
            .args(["verify", "--man=no"])
            .arg(units.join(format!("{service}.service")));
        let run = verify.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&run.stderr), "", "{service}");
    }
}
