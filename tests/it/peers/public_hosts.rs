//! Hosts with public addresses, reached without a proxy: their responses cannot redirect to private
//! addresses.

use crate::support::netns::{Network, OPERATOR};
use crate::support::peers::nginx_command;
use crate::support::{Place, need};
use std::process::Command;

#[test]
fn redirects_from_public_to_private_addresses_are_refused() {
    if !need(&["nginx"]) {
        return;
    }
    let Some(network) = Network::new() else {
        return;
    };
    let mut add = Command::new("ip");
    add.args(["addr", "add", "203.0.113.9/32", "dev", "eth0"]);
    assert!(network.on("operator", &add).status().unwrap().success());
    let inside = format!("{OPERATOR}:8080");
    let serve = |directives: &str, address: &str| {
        let place = Place::new();
        let guard = network.serve(
            "operator",
            &nginx_command(&place, directives, address),
            address,
        );
        (guard, place)
    };
    let redirects = format!(
        "location /address {{ return 302 http://{inside}/x; }} location /name {{ return 302 http://localhost:8080/x; }}"
    );
    let _servers = [
        serve("location / { return 200 inside; }", &inside),
        serve(&redirects, "203.0.113.9:80"),
        serve(&redirects, &format!("{OPERATOR}:8081")),
    ];
    let place = Place::new();
    let lock = |url: &str, exit: i32, more: &[&str]| {
        place.write(
            "m.yaml",
            format!("apiVersion: landfall/v1\nkind: Manifest\nfiles: [{{url: '{url}'}}]\n"),
        );
        let mut command = place.command();
        command
            .args([
                "lock",
                "-f",
                "m.yaml",
                "--store",
                "store",
                "--refresh",
                "--progress",
                "none",
            ])
            .args(more);
        let run = network.on("operator", &command).output().unwrap();
        let printed = format!(
            "{}{}",
            String::from_utf8_lossy(&run.stdout),
            String::from_utf8_lossy(&run.stderr)
        );
        assert_eq!(run.status.code(), Some(exit), "{url}: {printed}");
        printed
    };
    for (path, address) in [("address", OPERATOR), ("name", "127.0.0.1")] {
        let printed = lock(&format!("http://203.0.113.9/{path}"), 1, &[]);
        assert!(
            printed.contains("203.0.113.9:80, a public host, leads to"),
            "{printed}"
        );
        assert!(
            printed.contains("add `privateTargets: [")
                && (printed.contains(address) || printed.contains("::1")),
            "{printed}"
        );
    }
    lock(&format!("http://{OPERATOR}:8081/address"), 0, &[]);
    place.write(
        "site.yaml",
        "apiVersion: landfall/v1\nkind: Site\nprivateTargets: [172.20.0.0/24]\n",
    );
    lock("http://203.0.113.9/address", 0, &["--site", "site.yaml"]);
    let printed = lock("http://203.0.113.9/name", 1, &["--site", "site.yaml"]);
    assert!(printed.contains("leads to localhost:8080"), "{printed}");
    // an entry that matches nothing is reported before any request
    place.write(
        "site.yaml",
        "apiVersion: landfall/v1\nkind: Site\nprivateTargets: [172.20.]\n",
    );
    let printed = lock("http://203.0.113.9/address", 2, &["--site", "site.yaml"]);
    assert!(
        printed.contains(
            "'172.20.' in privateTargets of the site matches no host; write 172.20.0.0/16"
        ),
        "{printed}"
    );
}
