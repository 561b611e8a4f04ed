//! `landfall egress --format squid`: a real squid with the rendered list allows exactly the listed
//! hosts.

use super::proxy::Outside;
use crate::support::squid::{PROXY, SERVER, Squid};

#[test]
fn squid_with_the_rendered_list_allows_exactly_the_listed_hosts() {
    let Some(mut outside) = Outside::new(&["registry.test", "files.test"], false) else {
        return;
    };
    let proxy = format!("http://{PROXY}");
    let variables = [
        ("https_proxy", proxy.as_str()),
        ("http_proxy", proxy.as_str()),
    ];
    let endpoints = "endpoints:\n- {host: '*.corp.test', port: 8443, why: below}\n\
                     - {host: 203.0.113.2, port: 8444, why: an address}\n- {host: 'fd00::7', port: 8444, why: v6}\n";
    let image = outside.place.read("image.yaml");
    outside
        .place
        .write("image.yaml", format!("{image}{endpoints}"));
    outside.run(
        0,
        &variables,
        &[
            "lock",
            "-f",
            "image.yaml",
            "-f",
            "files.yaml",
            "--site",
            "site.yaml",
        ],
    );
    let mut egress = outside.place.command();
    egress.args([
        "egress",
        "--format",
        "squid",
        "--store",
        "store",
        "--site",
        "site.yaml",
    ]);
    egress.envs(variables);
    let rendered = outside.network.on("client", &egress).output().unwrap();
    let rules = String::from_utf8(rendered.stdout).unwrap();
    assert!(
        rendered.status.success() && rules.ends_with("http_access deny all\n"),
        "{rules}"
    );
    outside.restart_squid(|network, place| Squid::with_rules(network, place, &rules, false));

    // everything in the lock can be pulled
    outside.run(0, &variables, &["pull", "--site", "site.yaml"]);
    // the status of squid's response: for an https URL to CONNECT, for an http URL to the request
    // itself. 503 means that squid allows the target, but cannot connect to it
    let status_of = |url: &str| {
        let mut curl = outside.place.clean("curl");
        curl.args([
            "-sk",
            "-o",
            "/dev/null",
            "-x",
            &proxy,
            "-w",
            "%{http_connect} %{http_code}",
            url,
        ]);
        let out = outside.network.on("client", &curl).output().unwrap().stdout;
        let out = String::from_utf8(out).unwrap();
        let (connect, code) = out.split_once(' ').unwrap();
        if url.starts_with("https") {
            connect.to_owned()
        } else {
            code.to_owned()
        }
    };
    for (url, answer) in [
        ("https://registry.test/v2/", "200"),
        ("http://files.test/f1", "200"),
        ("https://a.corp.test:8443/", "503"),
        ("https://a.b.corp.test:8443/", "503"),
        (&format!("https://{SERVER}:8444/"), "503"),
        ("https://[fd00::7]:8444/", "503"),
        // names, ports and methods that are not listed
        ("https://denied.test/", "403"),
        ("http://registry.test/", "403"),
        ("http://registry.test:443/", "403"),
        ("https://registry.test:8443/", "403"),
        ("https://files.test/", "403"),
        ("https://files.test:80/", "403"),
        ("https://corp.test:8443/", "403"),
        ("https://xcorp.test:8443/", "403"),
        ("https://a.corp.test/", "403"),
        (&format!("https://{SERVER}/"), "403"),
        // the name is not listed with this port, but resolves to an address that is
        ("https://registry.test:8444/", "403"),
    ] {
        assert_eq!(status_of(url), answer, "{url}\n{rules}");
    }

    // a squid that allows less: the probe reports the refused host
    outside.restart_squid(|network, place| Squid::start(network, place, &["registry.test"], false));
    let report = outside.run(4, &variables, &["egress", "--probe", "--site", "site.yaml"]);
    let rows = report["egress"]["hosts"].as_array().unwrap();
    let found = |host: &str| rows.iter().find(|row| row["host"] == host).unwrap();
    assert_eq!(found("registry.test")["reach"], "reached", "{report:#}");
    assert_eq!(found("files.test")["reach"], "refused", "{report:#}");
    let reason = found("files.test")["reason"].as_str().unwrap();
    assert!(
        reason.contains("ask its operator to allow files.test:80"),
        "{reason}"
    );
    assert_eq!(found("files.test")["via"], PROXY);
}
