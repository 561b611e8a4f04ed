//! Proxies: a real squid as the only route out, with and without authentication; proxies that
//! intercept TLS, that require unsupported authentication, or that are missing.

use crate::support::free_port;
use crate::support::interceptor::Interceptor;
use crate::support::netns::Network;
use crate::support::peers::{docker_registry, docker_registry_config, nginx_command};
use crate::support::pki::Authority;
use crate::support::process::Guard;
use crate::support::squid::{NEEDS, PASSWORD, PASSWORD_ENCODED, PROXY, SERVER, Squid, USER};
use crate::support::{Images, Place, need};
use serde_json::Value;
use std::process::Command;

/// The number of files on the file server.
const FILES: usize = 40;

/// A network in which squid is the only route from the client to a registry with TLS and a file
/// server.
pub(super) struct Outside {
    pub(super) place: Place,
    pub(super) network: Network,
    squid: Option<Squid>,
    _servers: [Guard; 2],
    _www: Place,
}

impl Outside {
    pub(super) fn new(allowed: &[&str], signed: bool) -> Option<Outside> {
        if !need(&NEEDS) || !need(&["nginx"]) {
            return None;
        }
        let network = Network::behind_proxy()?;
        let place = Place::new();
        let www = Place::new();
        let authority = Authority::new(&place, "Registry CA");
        let (certificate, key) = authority.issue(&place, &["registry.test", "denied.test"]);
        // the registry is filled on loopback, and then started again behind squid
        let images = Images::new(place.path("layout"));
        let image = images.image("linux/amd64", &[images.layer(&[("app", b"from afar")])]);
        {
            let address = format!("127.0.0.1:{}", free_port());
            let config = docker_registry_config(&place, &address, "");
            let mut registry = place.clean("docker-registry");
            let mut guard = Guard::start({
                registry.arg("serve").arg(config);
                registry
            });
            guard.wait_for_http(address.parse().unwrap());
            images.push(&address, "team/app", "v1", &image);
        }
        let address = format!("{SERVER}:443");
        let tls = format!("{{certificate: {certificate:?}, key: {key:?}}}");
        let config = docker_registry_config(
            &place,
            &address,
            &format!("http: {{addr: \"{address}\", tls: {tls}}}"),
        );
        let mut registry = place.clean("docker-registry");
        registry.arg("serve").arg(config);
        let registry = network.serve("server", &registry, &address);
        for n in 0..FILES {
            www.write(&format!("www/f{n}"), format!("file {n}"));
        }
        let files = format!("{SERVER}:80");
        let files = network.serve(
            "server",
            &nginx_command(
                &www,
                &format!("root {};", www.path("www").display()),
                &files,
            ),
            &files,
        );
        let squid = Squid::start(&network, &place, allowed, signed);
        let ca = authority.pem.display();
        place.write(
            "site.yaml",
            format!(
                "apiVersion: landfall/v1\nkind: Site\nupstreams:\n  registry.test: {{ca: {ca:?}}}\n",
                ca = ca.to_string()
            ),
        );
        let list: String = (0..FILES)
            .map(|n| format!("  - url: http://files.test/f{n}\n"))
            .collect();
        let head = "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: m}\n";
        place.write(
            "image.yaml",
            format!("{head}images: [\"registry.test/team/app:v1\"]\n"),
        );
        place.write("files.yaml", format!("{head}files:\n{list}"));
        Some(Outside {
            place,
            network,
            squid: Some(squid),
            _servers: [registry, files],
            _www: www,
        })
    }

    /// Stops squid, and starts another one at its address.
    pub(super) fn restart_squid(&mut self, start: impl FnOnce(&Network, &Place) -> Squid) {
        self.squid = None;
        self.squid = Some(start(&self.network, &self.place));
    }

    /// Waits until squid's log has `part`.
    pub(super) fn wait_for(&mut self, part: &str) {
        self.squid.as_mut().unwrap().wait_for(part);
    }

    /// The requests to squid; see [`Squid::log`].
    fn log(&self) -> Vec<String> {
        self.squid.as_ref().map(Squid::log).unwrap_or_default()
    }

    /// Runs landfall on the client with these variables, asserts the exit code, and returns the
    /// JSON report.
    pub(super) fn run(&self, exit: i32, variables: &[(&str, &str)], args: &[&str]) -> Value {
        let mut command = self.place.command();
        command
            .args(args)
            .args(["--output", "json", "--progress", "none", "--store", "store"]);
        command.envs(variables.iter().copied());
        document(exit, &mut self.network.on("client", &command))
    }
}

fn document(exit: i32, command: &mut Command) -> Value {
    let run = command.output().unwrap();
    let out = String::from_utf8_lossy(&run.stdout);
    let err = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(exit), "{command:?}\n{out}\n{err}");
    for secret in [PASSWORD, PASSWORD_ENCODED, "hush"] {
        assert!(
            !out.contains(secret) && !err.contains(secret),
            "{out}\n{err}"
        );
    }
    serde_json::from_str(&out).unwrap()
}

/// The reasons of all items, each once.
fn reasons(report: &Value) -> Vec<String> {
    let items = report["items"].as_array().unwrap();
    let mut reasons: Vec<String> = items
        .iter()
        .filter_map(|item| Some(item["reason"].as_str()?.to_owned()))
        .collect();
    reasons.sort();
    reasons.dedup();
    reasons
}

#[test]
fn everything_goes_through_squid() {
    let Some(outside) = Outside::new(&["registry.test", "files.test"], false) else {
        return;
    };
    let proxy = format!("http://{PROXY}");
    let upper = PROXY.to_owned();
    let variables = [
        ("https_proxy", proxy.as_str()),
        ("HTTP_PROXY", upper.as_str()),
    ];
    let lock = [
        "lock",
        "-f",
        "image.yaml",
        "-f",
        "files.yaml",
        "--site",
        "site.yaml",
    ];
    let one = ["lock", "-f", "image.yaml", "--site", "site.yaml"];
    outside.run(1, &[], &one);
    outside.run(
        1,
        &[variables.as_slice(), &[("NO_PROXY", ".test,*")]].concat(),
        &one,
    );
    assert!(outside.log().is_empty(), "{:?}", outside.log());
    let report = outside.run(0, &variables, &lock);
    assert_eq!(report["totals"]["items"], FILES + 1);
    outside.run(0, &variables, &["pull", "--site", "site.yaml"]);
    let mut hosts: Vec<(String, u64, String)> = report["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|host| {
            let text = |key: &str| host[key].as_str().unwrap_or("").to_owned();
            (text("host"), host["port"].as_u64().unwrap(), text("via"))
        })
        .collect();
    hosts.sort();
    let expected = [("files.test", 80), ("registry.test", 443)];
    assert_eq!(
        hosts,
        expected.map(|(host, port)| (host.to_owned(), port, PROXY.to_owned()))
    );
    let log = outside.log();
    assert!(
        log.iter()
            .any(|line| line.starts_with("200 CONNECT registry.test:443 ")),
        "{log:?}"
    );
}

#[test]
fn proxy_credentials_are_read_from_urls_and_a_file() {
    let Some(outside) = Outside::new(&["registry.test", "files.test"], true) else {
        return;
    };
    let lock = ["lock", "-f", "image.yaml", "-f", "files.yaml", "--refresh"];
    for written in [
        format!("http://{USER}:{PASSWORD}@{PROXY}"),
        format!("{USER}:{PASSWORD}@{PROXY}"),
        format!("http://{USER}:{PASSWORD_ENCODED}@{PROXY}/"),
    ] {
        let variables = [
            ("HTTPS_PROXY", written.as_str()),
            ("http_proxy", written.as_str()),
        ];
        let report = outside.run(
            0,
            &variables,
            &[&lock[..], &["--site", "site.yaml"]].concat(),
        );
        assert!(
            report["hosts"]
                .as_array()
                .unwrap()
                .iter()
                .all(|host| host["via"] == PROXY),
            "{report}"
        );
    }
    let account = outside
        .place
        .write("account", format!("{USER}:{PASSWORD}\n"));
    let site = outside.place.read("site.yaml");
    let proxy = format!(
        "proxy: {{http: \"http://{PROXY}\", https: \"http://{PROXY}\", credentials: {{file: {account:?}}}}}\n"
    );
    outside.place.write("proxied.yaml", site + &proxy);
    outside.run(
        0,
        &[("HTTPS_PROXY", "http://dead:1")],
        &[&lock[..], &["--site", "proxied.yaml"]].concat(),
    );
}

#[test]
fn a_wrong_password_is_sent_to_squid_once() {
    let Some(outside) = Outside::new(&["registry.test", "files.test"], true) else {
        return;
    };
    let wrong = format!("http://{USER}:hush@{PROXY}");
    let lines = |log: &[String]| log.iter().filter(|line| line.contains(" Basic")).count();
    for (count, (variable, manifest)) in
        [("HTTPS_PROXY", "image.yaml"), ("http_proxy", "files.yaml")]
            .into_iter()
            .enumerate()
    {
        let lock = [
            "lock",
            "-f",
            manifest,
            "--site",
            "site.yaml",
            "--jobs",
            "32",
        ];
        let report = outside.run(1, &[(variable, &wrong)], &lock);
        let [reason] = &reasons(&report)[..] else {
            panic!("{report:#}")
        };
        let expected = format!("the proxy {PROXY} refused account '{USER}' from {variable} (407)");
        assert!(reason.contains(&expected), "{reason}");
        assert_eq!(lines(&outside.log()), count + 1, "{:#?}", outside.log());
    }
    // without an account, the message explains where to configure one
    let report = outside.run(1, &[("https_proxy", PROXY)], &["lock", "-f", "image.yaml"]);
    let reason = &reasons(&report)[0];
    assert!(
        reason.contains("offered: Basic") && reason.contains("into https_proxy, or name them"),
        "{reason}"
    );
}

#[test]
fn requests_that_squid_refuses_or_cannot_forward_are_explained() {
    let Some(outside) = Outside::new(&["registry.test", "files.test"], false) else {
        return;
    };
    let variables = [("HTTPS_PROXY", PROXY), ("HTTP_PROXY", PROXY)];
    let head = "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: m}\n";
    for (line, expected) in [
        (
            "images: [\"denied.test/team/app:v1\"]",
            format!(
                "the proxy {PROXY} refuses denied.test:443 (403 Forbidden, ERR_ACCESS_DENIED 0): it is not on the proxy's allow-list"
            ),
        ),
        (
            "files: [{url: \"http://denied.test/f0\"}]",
            format!(
                "the proxy {PROXY} refuses denied.test:80 (403 Forbidden, ERR_ACCESS_DENIED 0): it is not on the proxy's allow-list"
            ),
        ),
        (
            "images: [\"registry.test:444/team/app:v1\"]",
            format!(
                "the proxy {PROXY} cannot reach registry.test:444 (503 Service Unavailable, ERR_CONNECT_FAIL 111): the target refuses the connection"
            ),
        ),
    ] {
        outside.place.write("m.yaml", format!("{head}{line}\n"));
        let report = outside.run(1, &variables, &["lock", "-f", "m.yaml"]);
        let [reason] = &reasons(&report)[..] else {
            panic!("{report:#}")
        };
        assert!(reason.contains(&expected), "{reason}");
    }
    // no proxy listens at the address
    let report = outside.run(
        1,
        &[("HTTPS_PROXY", "http://10.99.0.1:9")],
        &["lock", "-f", "image.yaml"],
    );
    let reason = &reasons(&report)[0];
    assert!(
        reason.contains("cannot connect to the proxy 10.99.0.1:9 (from HTTPS_PROXY)"),
        "{reason}"
    );
    assert!(reason.contains("refused"), "{reason}");
}

/// A folder with a manifest of one image at `registry.test`, which clients reach only through the
/// proxy of a test.
fn one_image() -> Place {
    let place = Place::new();
    let manifest = "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: m}\nimages: [\"registry.test/team/app:v1\"]\n";
    place.write("m.yaml", manifest);
    place
}

fn lock(place: &Place, exit: i32, proxy: &str, args: &[&str]) -> Value {
    let mut command = place.command();
    command
        .args([
            "lock",
            "-f",
            "m.yaml",
            "--output",
            "json",
            "--progress",
            "none",
        ])
        .args(args);
    document(exit, command.env("HTTPS_PROXY", proxy))
}

#[test]
fn a_proxy_that_intercepts_tls_is_named_and_can_be_trusted() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    let place = one_image();
    let registry = docker_registry();
    let images = Images::new(place.path("layout"));
    images.push(
        &registry.address,
        "team/app",
        "v1",
        &images.image("linux/amd64", &[images.layer(&[("a", b"a")])]),
    );
    let authority = Authority::new(&place, "Corp Proxy CA");
    let (certificate, key) = authority.issue(&place, &["registry.test"]);
    let proxy = Interceptor::new((&certificate, &key), &registry.address);
    let url = format!("http://{}", proxy.address);

    let reason = &reasons(&lock(&place, 1, &url, &[]))[0];
    assert!(
        reason.contains("issued by 'CN=Corp Proxy CA', which is not trusted here"),
        "{reason}"
    );
    assert!(
        reason.contains(&format!("if the proxy {} intercepts TLS", proxy.address)),
        "{reason}"
    );
    assert!(
        reason.contains("under proxy: `ca: FILE.pem` (together with http, https and noProxy"),
        "{reason}"
    );
    assert_eq!(
        proxy.heads().len(),
        1,
        "a request with a refused certificate is not retried"
    );

    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nproxy: {{https: {url:?}, ca: {:?}}}\n",
        authority.pem.display().to_string()
    );
    place.write("site.yaml", site);
    let report = lock(&place, 0, "http://127.0.0.1:9", &["--site", "site.yaml"]);
    assert_eq!(report["hosts"][0]["via"], proxy.address.as_str());
    // the authority is used only for connections through the proxy
    place.write(
        "site.yaml",
        place
            .read("site.yaml")
            .replace("ca: \"", "noProxy: {installation: [test]}, ca: \""),
    );
    let reason = &reasons(&lock(&place, 1, "", &["--refresh", "--site", "site.yaml"]))[0];
    assert!(!reason.contains("proxy"), "{reason}");
}

#[test]
fn unsupported_proxy_authentication_is_final_and_has_a_hint() {
    for account in ["", "user:hush@"] {
        let place = one_image();
        let proxy = Interceptor::saying(
            "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Negotiate\r\n\
             Proxy-Authenticate: NTLM\r\nContent-Length: 0\r\n\r\n",
        );
        let report = lock(
            &place,
            1,
            &format!("http://{account}{}", proxy.address),
            &[],
        );
        let reason = &reasons(&report)[0];
        assert!(
            reason.contains("(407; offered: Negotiate, NTLM; supported: Basic)"),
            "{reason}"
        );
        assert!(
            reason.contains("a local proxy such as cntlm or px"),
            "{reason}"
        );
        // the first request, and one without an account, whose response lists the offered schemes
        assert_eq!(proxy.heads().len(), 2, "{:?}", proxy.heads());
        let signed = proxy
            .heads()
            .iter()
            .filter(|head| head.contains("roxy-"))
            .count();
        assert_eq!(
            signed,
            usize::from(!account.is_empty()),
            "{:?}",
            proxy.heads()
        );
    }
}

#[test]
fn a_wrong_proxy_setting_is_reported_without_its_password() {
    let place = one_image();
    let report = lock(&place, 2, "socks5://user:hush@proxy.test:1080", &[]);
    let message = report["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("HTTPS_PROXY") && message.contains("not socks5://"),
        "{message}"
    );
}
