//! `landfall doctor --role`: the table of required ports in each format, and the route of each
//! probe.

use super::preflight::{locked, step, steps};
use crate::support::netns::Network;
use crate::support::peers::nginx_command;
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use crate::support::{Place, need};
use serde_json::Value;

/// A proxy that answers every request with success, also CONNECT, and connects to nothing.
fn proxy_that_accepts_everything() -> ReverseProxy {
    ReverseProxy::new("127.0.0.1:1", |_| ProxyAction::status(200))
}

#[test]
fn ports_of_a_role_are_probed_without_the_proxy() {
    let place = Place::new();
    let proxy = proxy_that_accepts_everything();
    place.set("HTTPS_PROXY", &format!("http://{}", proxy.address));
    let tunnel = [
        "doctor",
        "--role",
        "user-cluster-node",
        "--expose",
        "Tunneling",
        "--set",
    ];
    // an unknown name: a direct probe fails in DNS
    let report = place.json(
        4,
        &[&tunnel[..], &["seed-nodeport-proxy=nodes.invalid"]].concat(),
    );
    let [verdict, says, fix] = steps(&report, "port").remove(0);
    assert!(
        verdict == "no"
            && says.contains("nodes.invalid:6443")
            && says.contains("cannot be resolved"),
        "{says}"
    );
    assert!(
        !says.contains("127.0.0.1") && fix.contains("DNS"),
        "{says} {fix}"
    );
    let nodes = [
        "doctor",
        "--role",
        "user-cluster-node",
        "--expose",
        "NodePort",
        "--set",
    ];
    let report = place.json(
        4,
        &[&nodes[..], &["seed-nodeport-proxy=nodes.invalid"]].concat(),
    );
    let [verdict, says, fix] = step(&report, "port");
    assert!(
        verdict == "no" && says.contains("cannot be resolved") && fix.contains("DNS"),
        "{says} {fix}"
    );
    assert_eq!(
        proxy.requests().len(),
        0,
        "no port of a role is requested from the proxy"
    );
}

#[test]
fn the_check_of_an_endpoint_behind_a_proxy_names_the_proxy() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let _upstream = locked(
        &place,
        "endpoints:\n- {host: vcenter.invalid, port: 443, why: machines}\n",
    );
    let proxy = proxy_that_accepts_everything();
    place.set("HTTPS_PROXY", &format!("http://{}", proxy.address));
    let report = place.json(0, &["doctor", "--role", "seed-cluster-node"]);
    let [verdict, says, _] = step(&report, "port");
    assert_eq!(verdict, "ok");
    assert!(
        says.starts_with(&format!(
            "the proxy {} opens a tunnel to vcenter.invalid:443",
            proxy.address
        )),
        "{says}"
    );
    // a proxy that refuses, one that cannot connect, and a missing one
    for (status, words) in [
        (403, "allow vcenter.invalid:443 at the proxy"),
        (503, "let the proxy 127"),
    ] {
        let refusing = ReverseProxy::new("127.0.0.1:1", move |_| ProxyAction::status(status));
        place.set("HTTPS_PROXY", &format!("http://{}", refusing.address));
        let [verdict, says, fix] = step(
            &place.json(4, &["doctor", "--role", "seed-cluster-node"]),
            "port",
        );
        assert!(
            verdict == "no" && says.contains("through the proxy 127."),
            "{says}"
        );
        assert!(fix.contains(words) && !fix.contains("firewall"), "{fix}");
    }
    place.set("HTTPS_PROXY", "http://127.77.3.1:3128");
    let [verdict, says, fix] = step(
        &place.json(4, &["doctor", "--role", "seed-cluster-node"]),
        "port",
    );
    assert!(
        verdict == "no" && says.contains("cannot connect to the proxy 127.77.3.1:3128"),
        "{says}"
    );
    assert!(
        fix.contains("start the proxy") && !fix.contains("firewall"),
        "{fix}"
    );
}

#[test]
fn the_api_of_a_cloud_provider_is_reached_through_the_proxy() {
    let place = Place::new();
    let proxy = proxy_that_accepts_everything();
    place.set("HTTPS_PROXY", &format!("http://{}", proxy.address));
    for role in ["seed-cluster-node", "provisioning-host"] {
        let set = "cloud-provider-api=ec2.cloud.invalid:443";
        let report = place.json(0, &["doctor", "--role", role, "--set", set]);
        let [verdict, says, _] = step(&report, "port");
        assert!(
            verdict == "ok" && says.contains("opens a tunnel to ec2.cloud.invalid:443"),
            "{says}"
        );
    }
    // an exception of the rules applies, as for every other client
    place.set("NO_PROXY", ".cloud.invalid");
    let set = "cloud-provider-api=ec2.cloud.invalid:443";
    let report = place.json(4, &["doctor", "--role", "seed-cluster-node", "--set", set]);
    let checks = report["targets"][0]["checks"].as_array().unwrap();
    let port = checks
        .iter()
        .find(|check| check["check"] == "port")
        .unwrap();
    assert!(
        port["reason"]
            .as_str()
            .unwrap()
            .contains("cannot be resolved")
            && port["to"] == "cloud-provider-api"
            && port["why"]
                .as_str()
                .unwrap()
                .contains("machines, load balancers"),
        "{port}"
    );
}

#[test]
fn example_names_of_shipped_sites_do_not_fail() {
    let place = Place::new();
    place.ok(&["init", "--from", "kubermatic", "-o", "kkp"]);
    // the addresses of the sample do not exist here
    let text = place.read("kkp/site.yaml");
    let names = text.split("\nnames:\n").nth(1).unwrap();
    let kept = |names: &str| format!("apiVersion: landfall/v1\nkind: Site\nnames:\n{names}");
    place.write("site.yaml", kept(names));
    place.write(
        "landfall.lock",
        "version: 1\nendpoints:\n- host: vcenter.example.com\n  port: 443\n  why: machines\n",
    );
    place.set("no_proxy", "*");
    let report = place.json(0, &["doctor", "--site", "site.yaml"]);
    let says = |check: &str| -> Vec<String> {
        steps(&report, check)
            .into_iter()
            .map(|[_, says, _]| says)
            .collect()
    };
    let found = says("name");
    for name in [
        "kubermatic.example.com is an example",
        "*.seed.kubermatic.example.com (looked up as landfall-doctor.seed.kubermatic.example.com) is",
        "*.azure-seed.",
        "*.openstack-dc-seed.",
        "*.vsphere-dc-seed.",
        "*.cluster-1.",
    ] {
        assert!(
            found.iter().any(|says| says.starts_with(name)),
            "{name}: {found:#?}"
        );
    }
    assert!(says("port")[0].starts_with("vcenter.example.com:443 is an example"));
    let certificates = says("certificate");
    assert!(
        certificates
            .iter()
            .any(|says| says.contains("kibana.kubermatic.example.com"))
            && !certificates.iter().any(|says| says.contains("*.seed.")),
        "an empty list of certificates means none: {certificates:#?}"
    );
    place.write("site.yaml", kept("- kkp.corp.invalid\n"));
    place.json(4, &["doctor", "--site", "site.yaml"]);
}

#[test]
fn a_dead_proxy_does_not_affect_port_probes() {
    if !need(&["nginx", "curl"]) {
        return;
    }
    let Some(network) = Network::new() else {
        return;
    };
    let place = Place::new();
    let nginx = nginx_command(&place, "listen 172.20.0.2:8088;", "172.20.0.2:6443");
    let _nginx = network.serve("registry", &nginx, "172.20.0.2:6443");
    let ask = |address: &str| {
        let mut doctor = place.command();
        doctor.args([
            "doctor",
            "--role",
            "user-cluster-node",
            "--expose",
            "Tunneling",
            "--output",
            "json",
        ]);
        doctor.args(["--set", &format!("seed-nodeport-proxy={address}")]);
        doctor.env("HTTPS_PROXY", "http://172.20.0.10:3128");
        let run = network.on("node", &doctor).output().unwrap();
        let report: Value = serde_json::from_slice(&run.stdout).unwrap();
        (run.status.code(), steps(&report, "port"))
    };
    let (exit, found) = ask("172.20.0.2");
    assert!(
        exit == Some(0) && found.len() == 2 && found[0][1].contains("172.20.0.2:6443 is open"),
        "{found:?}"
    );
    let (exit, found) = ask("172.20.0.10");
    assert!(
        exit == Some(4) && found[0][1].starts_with("nothing listens at 172.20.0.10:6443"),
        "{found:?}"
    );
}

#[test]
fn without_addresses_the_table_is_printed_and_nothing_is_probed() {
    let place = Place::new();
    let text = place.ok(&["doctor", "--role", "user-cluster-node"]);
    for words in [
        "6443",
        "8088",
        "30000-32767",
        "TCP",
        "seed-nodeport-proxy",
        "NodePort or LoadBalancer  API of user clusters, and Konnectivity",
        "connections between the nodes of a cluster (CNI",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(
        text.contains("nothing was probed: no connection of this role can be tested yet"),
        "{text}"
    );
    let text = place.ok(&["doctor", "--role", "kkp-user"]);
    assert!(
        !text.contains("CNI") && text.contains("no address is known"),
        "{text}"
    );
    let report = place.json(0, &["doctor", "--role", "kkp-user"]);
    let untested = &report["targets"][0]["checks"][0];
    assert_eq!(
        [&untested["to"], &untested["why"], &untested["reason"]],
        [
            "master-ingress",
            "the dashboard (a browser)",
            "no address is known"
        ]
    );
    let report = place.json(0, &["doctor", "--role", "all", "--expose", "Tunneling"]);
    let ports = report["ports"].as_array().unwrap();
    let of = |role: &str| ports.iter().filter(|row| row["role"] == role).count();
    assert!(
        of("kkp-user") == 2 && of("provisioning-host") == 3 && of("user-cluster-node") == 2,
        "{ports:#?}"
    );
    let lines: Vec<_> = steps(&report, "not tried")
        .into_iter()
        .map(|[_, says, _]| says)
        .collect();
    assert!(
        lines
            .iter()
            .any(|says| says.starts_with("nothing was probed: these are the ports of all"))
            && lines.iter().any(|says| says.starts_with(
                "Tunneling is not supported where worker nodes reach the control plane through a"
            )),
        "{lines:?}"
    );
    // if something is probed, the note `nothing was probed` is absent
    let args = [
        "doctor",
        "--role",
        "kkp-user",
        "--set",
        "master-ingress=127.77.4.1:1",
    ];
    let lines = steps(&place.json(4, &args), "not tried");
    assert!(
        !lines
            .iter()
            .any(|[_, says, _]| says.contains("nothing was probed")),
        "{lines:?}"
    );
}

#[test]
fn the_table_has_formats_for_tickets_and_clusters() {
    let place = Place::new();
    let set = [
        "--set",
        "seed-nodeport-proxy=10.0.0.5",
        "--set",
        "master-ingress=kkp.test",
    ];
    let form = |name: &str| {
        place.ok(&[
            &["doctor", "--role", "kkp-user", "--format", name],
            &set[..],
        ]
        .concat())
    };
    assert_eq!(
        form("csv"),
        "role,port,mark,protocol,from,to,address,strategy,why\r\n\
         kkp-user,443,*,TCP,a browser,master-ingress,kkp.test,any,the dashboard\r\n\
         kkp-user,6443,,TCP,kubectl,seed-nodeport-proxy,10.0.0.5,Tunneling,API of user clusters\r\n\
         kkp-user,30000-32767,**,TCP,kubectl,seed-nodeport-proxy,10.0.0.5,NodePort or LoadBalancer,API of user clusters\r\n"
    );
    let markdown = form("markdown");
    assert!(
        markdown.starts_with(
            "| role | port | mark | protocol | from | to | address | strategy | why |\n| --- |"
        ),
        "{markdown}"
    );
    assert!(
        markdown.contains(
            "| kkp-user | 443 | \\* | TCP | a browser | master-ingress | kkp.test | any |"
        ),
        "{markdown}"
    );
    let legend = "\\*\\*: the default range of ports of NodePort services";
    assert!(markdown.contains(legend), "{markdown}");
    let text = form("text");
    assert!(
        text.starts_with("role      port         mark  protocol  from")
            && text.ends_with(
                "*  an installation may use another port\n\
                 ** the default range of ports of NodePort services\n"
            ),
        "{text}"
    );
    // ports of the site have no mark
    let own = place.json(
        0,
        &[
            "doctor",
            "--role",
            "kkp-user",
            "--expose",
            "NodePort",
            "--set",
            "nodeport-range=31000-31099",
            "--set",
            "master-ingress=kkp.test:8443",
            "--format",
            "csv",
        ],
    );
    let ports = own["ports"].as_array().unwrap();
    assert!(
        ports.len() == 2 && ports.iter().all(|row| row.get("mark").is_none()),
        "{ports:#?}"
    );
    assert_eq!(ports[1]["strategy"], "NodePort or LoadBalancer");
    let policy: serde_yaml::Value = serde_yaml::from_str(&form("networkpolicy")).unwrap();
    assert_eq!(policy["kind"], "NetworkPolicy");
    assert_eq!(
        policy["spec"]["podSelector"]["matchLabels"]["landfall-role"],
        "kkp-user"
    );
    let rules = policy["spec"]["egress"].as_sequence().unwrap();
    let dashboard = &rules[1];
    assert!(
        dashboard["ports"][0]["port"] == 443 && dashboard.get("to").is_none(),
        "a name: {dashboard:?}"
    );
    let nodes = &rules[3];
    assert!(
        nodes["ports"][0]["port"] == 30000 && nodes["ports"][0]["endPort"] == 32767,
        "{nodes:?}"
    );
    assert_eq!(nodes["to"][0]["ipBlock"]["cidr"], "10.0.0.5/32");
    // if a port is unknown, a comment in the policy lists it, and no rule allows it
    let policy = place.ok(&[
        "doctor",
        "--role",
        "seed-cluster-node",
        "--format",
        "networkpolicy",
    ]);
    assert!(
        policy.contains(
            "NOT ALLOWED: name its port with --set; seed-cluster-node: the provider's/TCP"
        ),
        "{policy}"
    );
    place
        .landfall()
        .args(["doctor", "--format", "csv"])
        .assert()
        .code(2);
}

#[test]
fn the_short_name_of_kkp_and_the_page_of_ports_are_known() {
    let place = Place::new();
    let ports = place.ok(&["help", "ports"]);
    assert!(ports.starts_with("# Ports of KKP\n"), "{ports}");
    assert_eq!(
        place.ok(&["help", "kkp"]),
        place.ok(&["help", "kubermatic"])
    );
    let run = place.landfall().args(["render", "kkp"]).assert().code(2);
    let says = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(says.contains("Usage: landfall render kubermatic"), "{says}");
}
