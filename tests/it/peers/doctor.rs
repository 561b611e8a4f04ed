//! `landfall doctor`: every step is explained, the failing one is named, and no secret is shown.

use crate::support::interceptor::Interceptor;
use crate::support::netns::Network;
use crate::support::peers::{self, docker_registry, docker_registry_config, docker_registry_with};
use crate::support::pki::Authority;
use crate::support::process::Guard;
use crate::support::squid::{NEEDS, PASSWORD, PROXY, SERVER, Squid, USER};
use crate::support::{Place, free_port, need};
use serde_json::Value;
use std::path::Path;

/// The verdict and the text of the check `name` of the first target.
fn check<'a>(report: &'a Value, name: &str) -> (&'a str, &'a str) {
    let checks = report["targets"][0]["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["check"] == name);
    let check = check.unwrap_or_else(|| panic!("no check {name}: {report:#}"));
    (
        check["verdict"].as_str().unwrap(),
        check["says"].as_str().unwrap(),
    )
}

fn doctor(place: &Place, exit: i32, args: &[&str]) -> Value {
    place.json(exit, &[&["doctor"], args].concat())
}

#[test]
fn authentication_and_detected_plain_http_are_reported() {
    if !need(&["docker-registry"]) {
        return;
    }
    let place = Place::new();
    let open = docker_registry();
    let report = doctor(&place, 0, &[&open.address]);
    assert_eq!(
        check(&report, "proxy"),
        ("ok", "directly: no proxy is set for this scheme")
    );
    assert_eq!(check(&report, "tls").0, "note", "{report:#}");
    assert!(
        check(&report, "tls")
            .1
            .contains("found by probing: no credentials are sent"),
        "{report:#}"
    );
    assert_eq!(
        check(&report, "sign-in"),
        ("ok", "not required; no account is configured for this host")
    );

    let passwords = place.write(
        "htpasswd",
        "u:$2y$05$LATlS73W.R.eF7/IR5XdVuCOgj9GGLqQcaRji6lexBxUk5Ho27Wry\n",
    );
    let guarded = docker_registry_with(&format!(
        "auth: {{htpasswd: {{realm: r, path: {passwords:?}}}}}"
    ));
    let host = guarded.address.as_str();
    let report = doctor(&place, 0, &[host, "--plain-http", host]);
    assert_eq!(
        check(&report, "sign-in"),
        ("note", "Basic; no account is configured for this host")
    );
    let account = |password: &str| {
        let config =
            format!(r#"{{"auths": {{"{host}": {{"username": "u", "password": "{password}"}}}}}}"#);
        place.write("home/.docker/config.json", config)
    };
    let config = account("p@ss:word");
    let report = doctor(&place, 0, &[host, "--plain-http", host]);
    let taken = format!(
        "Basic; account 'u' from {}, which was accepted",
        config.display()
    );
    assert_eq!(check(&report, "sign-in"), ("ok", taken.as_str()));
    assert_eq!(report["status"], "done");
    // for a wrong password, the verdict is `no` with a fix, and the password is tried once
    account("hush");
    let before = guarded.requests("401");
    let report = doctor(&place, 4, &[host, "--plain-http", host]);
    let (verdict, says) = check(&report, "sign-in");
    assert!(
        verdict == "no" && says.contains("tried: ") && says.contains("was refused"),
        "{says}"
    );
    assert_eq!(
        guarded.requests("401") - before,
        3,
        "a request without an account, one for the challenge, and one with the account"
    );
    assert!(
        report["targets"][0]["checks"]
            .to_string()
            .contains("correct the account"),
        "{report:#}"
    );
    assert!(!report.to_string().contains("hush"), "{report:#}");
}

#[test]
fn an_unreachable_host_gets_the_verdict_no() {
    let place = Place::new();
    let nothing = format!("http://127.0.0.1:{}/x", free_port());
    let report = doctor(&place, 4, &[&nothing]);
    assert_eq!(report["status"], "refused");
    let (verdict, says) = check(&report, "connection");
    assert!(verdict == "no" && says.contains("refused"), "{says}");
    // the same steps for a registry whose scheme is found by probing
    let report = doctor(&place, 4, &[&format!("127.0.0.1:{}", free_port())]);
    assert_eq!(check(&report, "name").0, "ok", "{report:#}");
    let (verdict, says) = check(&report, "connection");
    assert!(
        verdict == "no" && says.contains("refused") && !says.contains("landfall doctor"),
        "{says}"
    );
    let report = doctor(&place, 4, &["https://landfall.invalid/x"]);
    assert_eq!(check(&report, "name").0, "no");
    // a password in a URL is refused
    let run = place
        .command()
        .args(["doctor", "https://u:hush@a.test/"])
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(2));
}

#[test]
fn redirects_and_token_realms_are_reported() {
    if !need(&["nginx", "docker-registry"]) {
        return;
    }
    let place = Place::new();
    place.write("www/f", "file");
    let files = peers::nginx(&place.path("www"));
    let moved = Interceptor::saying(&format!(
        "HTTP/1.1 302 Found\r\nLocation: http://{}/f?sig=hush\r\nContent-Length: 0\r\n\r\n",
        files.address
    ));
    let url = format!("http://{}/f?sig=hush", moved.address);
    let report = doctor(&place, 0, &[&url]);
    assert_eq!(
        check(&report, "redirects"),
        (
            "note",
            format!("redirects to {}; allow these hosts too", files.address).as_str()
        )
    );
    assert!(!report.to_string().contains("hush"), "{report:#}");
    let bearer = Interceptor::saying(
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"https://auth.test/token?x=1\",service=\"s\"\r\n\
         Content-Length: 0\r\n\r\n",
    );
    let report = doctor(
        &place,
        0,
        &[&bearer.address, "--plain-http", &bearer.address],
    );
    let says =
        "Bearer tokens from https://auth.test/token?…; no account is configured for this host";
    assert_eq!(check(&report, "sign-in"), ("ok", says));
}

/// A registry on loopback with TLS and a certificate of `authority`.
fn secured(place: &Place, authority: &Authority, address: &str) -> Guard {
    let (certificate, key) = authority.issue(place, &["127.0.0.1", "registry.test"]);
    let tls = format!(
        "http: {{addr: \"{address}\", tls: {{certificate: {certificate:?}, key: {key:?}}}}}"
    );
    let mut command = place.clean("docker-registry");
    command
        .arg("serve")
        .arg(docker_registry_config(place, address, &tls));
    let mut guard = Guard::start(command);
    guard.wait_for_http(address.parse().unwrap());
    guard
}

#[test]
fn certificates_and_their_issuers_are_reported() {
    if !need(&["docker-registry"]) {
        return;
    }
    let place = Place::new();
    let authority = Authority::new(&place, "Corp Root");
    let address = format!("127.0.0.1:{}", free_port());
    let _registry = secured(&place, &authority, &address);
    let site = |keys: &str| {
        let registry = format!("registry: {{address: \"{address}\"{keys}}}\n");
        place.write(
            "site.yaml",
            format!("apiVersion: landfall/v1\nkind: Site\n{registry}"),
        );
    };
    let report = doctor(&place, 4, &[&address]);
    let (verdict, says) = check(&report, "tls");
    assert!(
        verdict == "no" && says.contains("issued by 'CN=Corp Root', which is not trusted here"),
        "{says}"
    );
    site(&format!(", ca: {:?}", authority.pem));
    let report = doctor(&place, 0, &[&address, "--site", "site.yaml"]);
    let (verdict, says) = check(&report, "tls");
    assert!(
        verdict == "ok" && says.starts_with("TLS 1.3; issued by 'CN=Corp Root', until "),
        "{says}"
    );
    assert!(
        says.ends_with(&format!("trusted by {}", authority.pem.display())),
        "{says}"
    );
    site(", skipVerify: true");
    let report = doctor(&place, 0, &[&address, "--site", "site.yaml"]);
    assert_eq!(check(&report, "tls").0, "note");
    assert!(check(&report, "tls").1.contains("skipVerify"), "{report:#}");
}

#[test]
fn misleading_no_proxy_entries_and_variables_are_reported() {
    let place = Place::new();
    let run = |exit: i32, variables: &[(&str, &str)]| {
        let mut command = place.command();
        let run = command
            .args(["doctor"])
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        assert_eq!(
            run.status.code(),
            Some(exit),
            "{}",
            String::from_utf8_lossy(&run.stderr)
        );
        String::from_utf8(run.stdout).unwrap()
    };
    assert_eq!(
        run(0, &[]),
        "proxy\n  ok    proxy       no proxy is configured\n"
    );
    let printed = run(
        4,
        &[("NO_PROXY", "172.20.,.svc"), ("no_proxy", "172.20.,.svc")],
    );
    assert!(
        printed.contains("  NO    172.20.: landfall, containerd, kubelet ignore it: the beginning of an address matches nothing; instead: 172.20.0.0/16\n"),
        "{printed}"
    );
    assert!(
        printed.contains("  note  .svc: curl, requests, urllib also match the name itself"),
        "{printed}"
    );
    let printed = run(0, &[("NO_PROXY", "172.20.0.0/16")]);
    assert!(
        printed.contains(
            "  note  NO_PROXY: wget, apt read only no_proxy; instead: set no_proxy too\n"
        ),
        "{printed}"
    );
    assert!(
        printed.contains("  note  172.20.0.0/16: wget, apt, urllib ignore ranges"),
        "{printed}"
    );

    let site = "apiVersion: landfall/v1\nkind: Site\nproxy: {noProxy: {installation: [\"*.corp.test\"]}}\n";
    place.write("site.yaml", site);
    let report = doctor(&place, 0, &["--site", "site.yaml"]);
    assert_eq!(report["lint"][0]["about"], "*.corp.test");
    assert_eq!(report["lint"][0]["instead"], ".corp.test");
    assert_eq!(
        report["lint"][0]["source"],
        "proxy.noProxy.installation of the site"
    );

    let site = "apiVersion: landfall/v1\nkind: Site\n\
                proxy: {noProxy: {cluster: {serviceCIDR: \"10.96.0.0/12, fd00::/112\"}}}\n\
                clusters: [{name: blue, podCIDR: \"10.112.\"}]\n";
    place.write("site.yaml", site);
    let report = doctor(&place, 4, &["--site", "site.yaml"]);
    let lint = report["lint"].as_array().unwrap();
    let wrong: Vec<&Value> = lint.iter().filter(|one| one["verdict"] == "no").collect();
    assert_eq!(wrong.len(), 1, "{lint:#?}");
    assert_eq!(wrong[0]["about"], "10.112.");
    assert_eq!(
        wrong[0]["source"],
        "NO_PROXY of blue as `landfall render` composes it"
    );
    assert!(!report["lint"].to_string().contains("the space before it"));
}

#[test]
fn each_step_through_squid_is_reported() {
    if !need(&NEEDS) {
        return;
    }
    let Some(network) = Network::behind_proxy() else {
        return;
    };
    let place = Place::new();
    let authority = Authority::new(&place, "Corp Root");
    let (certificate, key) = authority.issue(&place, &["registry.test"]);
    let address = format!("{SERVER}:443");
    let tls = format!(
        "http: {{addr: \"{address}\", tls: {{certificate: {certificate:?}, key: {key:?}}}}}"
    );
    let mut command = place.clean("docker-registry");
    command
        .arg("serve")
        .arg(docker_registry_config(&place, &address, &tls));
    let _registry = network.serve("server", &command, &address);
    let squid = Squid::start(&network, &place, &["registry.test"], true);

    let run = |exit: i32, proxy: &str, args: &[&str]| -> Value {
        let mut command = place.command();
        command
            .args(["doctor", "--output", "json"])
            .args(args)
            .env("HTTPS_PROXY", proxy);
        let run = network.on("client", &command).output().unwrap();
        let out = String::from_utf8_lossy(&run.stdout);
        let err = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(exit), "{out}\n{err}");
        assert!(
            !out.contains(PASSWORD) && !err.contains(PASSWORD),
            "{out}\n{err}"
        );
        serde_json::from_str(&out).unwrap()
    };
    let proxy = format!("http://{USER}:{PASSWORD}@{PROXY}");
    let site = |ca: &Path| {
        let upstreams = format!("upstreams:\n  registry.test: {{ca: {ca:?}}}\n");
        place.write(
            "site.yaml",
            format!("apiVersion: landfall/v1\nkind: Site\n{upstreams}"),
        );
    };
    site(&authority.pem);
    let report = run(0, &proxy, &["registry.test", "--site", "site.yaml"]);
    assert_eq!(
        check(&report, "name").0,
        "note",
        "the client cannot resolve the name: {report:#}"
    );
    let says = format!(
        "through {PROXY} with account '{USER}' from HTTPS_PROXY, by HTTPS_PROXY; no exception covers the host"
    );
    assert_eq!(check(&report, "proxy"), ("ok", says.as_str()));
    assert_eq!(
        check(&report, "connection"),
        ("ok", format!("{PROXY} opened a tunnel (CONNECT)").as_str())
    );
    assert_eq!(check(&report, "tls").0, "ok");
    assert_eq!(check(&report, "answer").0, "ok");

    let report = run(4, &proxy, &["registry.test"]);
    assert!(
        check(&report, "tls")
            .1
            .contains(&format!("if the proxy {PROXY} intercepts TLS")),
        "{report:#}"
    );
    let report = run(4, &proxy, &["denied.test"]);
    assert!(
        check(&report, "connection")
            .1
            .contains("it is not on the proxy's allow-list"),
        "{report:#}"
    );

    // a wrong password is sent once, whatever the number of targets
    let before = squid.log().len();
    let wrong = format!("http://{USER}:hush@{PROXY}");
    let report = run(4, &wrong, &["registry.test", "denied.test", "files.test"]);
    assert!(!report.to_string().contains("hush"), "{report:#}");
    assert!(
        check(&report, "connection")
            .1
            .contains(&format!("refused account '{USER}' from HTTPS_PROXY"))
    );
    assert_eq!(squid.log().len(), before + 1, "{:#?}", squid.log());
}
