//! Trust: a docker-registry whose certificate is trusted only if a setting names its authority;
//! client certificates; `skipVerify`.

use crate::support::peers::{Server, docker_registry, docker_registry_config, nginx_with_tls};
use crate::support::pki::{Authority, self_signed};
use crate::support::process::Guard;
use crate::support::{Images, Place, free_port, need};
use serde_json::Value;
use std::path::{Path, PathBuf};

struct Secured {
    place: Place,
    authority: Authority,
    address: String,
    _guard: Guard,
    _open: Server,
}

/// A registry on loopback with TLS and its own authority, and a second registry with the image that
/// the tests mirror to the first. With `clients`, the first registry requires client certificates
/// of the same authority.
fn secured(clients: bool) -> Secured {
    let place = Place::new();
    let authority = Authority::new(&place, "Throw-away CA");
    let own = authority.issue(&place, &["127.0.0.1"]);
    let wanted = if clients {
        format!(", clientcas: [{:?}]", authority.pem)
    } else {
        String::new()
    };
    started(place, authority, own, &wanted)
}

/// Like [`secured`], with the certificate and key `own`, and `wanted` as further TLS settings of
/// docker-registry.
fn started(place: Place, authority: Authority, own: (PathBuf, PathBuf), wanted: &str) -> Secured {
    let (certificate, key) = own;
    let address = format!("127.0.0.1:{}", free_port());
    let tls = format!("{{certificate: {certificate:?}, key: {key:?}{wanted}}}");
    let config = docker_registry_config(
        &place,
        &address,
        &format!("http: {{addr: \"{address}\", tls: {tls}}}"),
    );
    let mut command = place.clean("docker-registry");
    command.arg("serve").arg(config);
    let mut guard = Guard::start(command);
    guard.wait_for_http(address.parse().unwrap());
    let open = docker_registry();
    let images = Images::new(place.path("layout"));
    let image = images.image("linux/amd64", &[images.layer(&[("app", b"app")])]);
    images.push(&open.address, "team/app", "v1", &image);
    let head = "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: m}\n";
    place.write(
        "m.yaml",
        format!("{head}images: [\"{}/team/app:v1\"]\n", open.address),
    );
    Secured {
        place,
        authority,
        address,
        _guard: guard,
        _open: open,
    }
}

impl Secured {
    /// Mirrors the image to the registry, with these keys under the site's `registry`. Returns the
    /// exit code, the report and stderr.
    fn mirror(&self, keys: &str) -> (Option<i32>, Value, String) {
        let address = &self.address;
        let site = format!(
            "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"{address}\"{keys}}}\n"
        );
        self.place.write("conf/site.yaml", site);
        let mut command = self.place.command();
        command.args([
            "mirror",
            "-f",
            "m.yaml",
            "--site",
            "conf/site.yaml",
            "--output",
            "json",
        ]);
        let run = command.output().unwrap();
        let printed = String::from_utf8_lossy(&run.stderr).into_owned();
        (
            run.status.code(),
            serde_json::from_slice(&run.stdout).unwrap_or_default(),
            printed,
        )
    }

    /// Asserts that mirroring succeeds with these keys. Returns stderr.
    fn works(&self, keys: &str) -> String {
        let (code, report, printed) = self.mirror(keys);
        assert_eq!(code, Some(0), "{keys}: {printed}\n{report:#}");
        printed
    }

    /// Asserts that mirroring fails with these keys. Returns the error's message.
    fn fails(&self, keys: &str) -> String {
        let (code, report, printed) = self.mirror(keys);
        assert_eq!(code, Some(1), "{keys}: {printed}\n{report:#}");
        assert_eq!(report["error"]["side"], "destination", "{report:#}");
        report["error"]["message"].as_str().unwrap().to_owned()
    }

    /// Writes a file to the folder of the registry in the user's certs.d.
    fn put(&self, name: &str, from: &Path) {
        let path = format!("home/.config/containers/certs.d/{}/{name}", self.address);
        self.place.write(&path, std::fs::read(from).unwrap());
    }
}

#[test]
fn an_unknown_authority_is_named_and_can_be_configured() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    let registry = secured(false);
    let message = registry.fails("");
    assert!(
        message
            .contains("its certificate is issued by 'CN=Throw-away CA', which is not trusted here"),
        "{message}"
    );
    let place = format!("/etc/containers/certs.d/{}/ca.crt", registry.address);
    assert!(
        message.contains("add `ca: FILE.pem` to the site") && message.contains(&place),
        "{message}"
    );

    let ca = format!(", ca: {:?}", registry.authority.pem);
    let printed = registry.works(&ca);
    assert!(!printed.contains("warning"), "{printed}");
    // another authority is not accepted, and a file without a certificate is named
    let other = Authority::new(&registry.place, "Other CA");
    assert!(
        registry
            .fails(&format!(", ca: {:?}", other.pem))
            .contains("CN=Throw-away CA")
    );
    registry.place.write("conf/none.pem", "");
    let (code, report, _) = registry.mirror(", ca: none.pem");
    let message = report["error"]["message"].as_str().unwrap();
    assert!(
        code == Some(2) && message.contains("conf/none.pem contains no certificate"),
        "{message}"
    );
    assert!(
        message.starts_with("registry.ca of conf/site.yaml: "),
        "{message}"
    );

    // skipVerify: only if configured, and never silently
    let printed = registry.works(", skipVerify: true");
    let warning = format!(
        "warning: the certificate of {} is not checked (skipVerify)",
        registry.address
    );
    assert!(printed.contains(&warning), "{printed}");

    registry.put("corp.crt", &registry.authority.pem);
    registry.works("");
}

#[test]
fn the_certificates_of_the_system_are_not_needed() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    let registry = secured(false);
    let none = registry.place.write("none.pem", "");
    let doctor = |keys: &str, roots: &Path| {
        let address = &registry.address;
        let site = format!(
            "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"{address}\"{keys}}}\n"
        );
        registry.place.write("site.yaml", site);
        let mut command = registry.place.command();
        command
            .args(["doctor", address, "--site", "site.yaml"])
            .env("SSL_CERT_FILE", roots);
        let run = command.output().unwrap();
        (run.status.code(), String::from_utf8(run.stdout).unwrap())
    };
    let (code, printed) = doctor("", &none);
    let words = "SSL_CERT_FILE is set, but names no certificate authorities";
    assert!(code == Some(4) && printed.contains(words), "{printed}");
    let other = Authority::new(&registry.place, "Other CA");
    let [other, own] = [&other.pem, &registry.authority.pem].map(|pem| {
        let pem = std::fs::read_to_string(pem).unwrap();
        pem.trim().to_owned()
    });
    // joined without a line break
    let joined = registry.place.write("joined.pem", other + &own);
    let (code, printed) = doctor("", &joined);
    assert!(code == Some(0), "{printed}");
    let (code, printed) = doctor(&format!(", ca: {:?}", registry.authority.pem), &none);
    assert!(
        code == Some(0) && printed.contains("trusted by"),
        "{printed}"
    );
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    let mut registry = secured(false);
    registry.address = registry.address.replace("127.0.0.1", "localhost");
    let message = registry.fails(&format!(", ca: {:?}", registry.authority.pem));
    assert!(message.contains("is refused: it is for "), "{message}");
}

/// Most guides on private registries recommend `openssl req -x509`, which makes the certificate its
/// own authority.
#[test]
fn a_self_signed_certificate_is_accepted_if_configured() {
    if !need(&["docker-registry", "gzip", "openssl"]) {
        return;
    }
    let place = Place::new();
    let authority = Authority::new(&place, "Throw-away CA");
    let loopback = ["-addext", "subjectAltName=IP:127.0.0.1"];
    let own = self_signed(&place, "own", "/CN=registry", &loopback);
    let other = self_signed(&place, "other", "/CN=registry", &loopback);
    let registry = started(place, authority, own.clone(), "");
    let message = registry.fails("");
    assert!(
        message.contains("self-signed ('CN=registry') and not trusted here"),
        "{message}"
    );
    assert!(
        registry
            .fails(&format!(", ca: {:?}", other.0))
            .contains("not trusted here")
    );
    registry.works(&format!(", ca: {:?}", own.0));
    drop(registry);

    // a self-signed certificate is valid only for its own names
    let place = Place::new();
    let authority = Authority::new(&place, "Throw-away CA");
    let names = ["-addext", "subjectAltName=DNS:registry.test,IP:127.0.0.9"];
    let elsewhere = self_signed(&place, "elsewhere", "/CN=registry", &names);
    let registry = started(place, authority, elsewhere.clone(), "");
    let message = registry.fails(&format!(", ca: {:?}", elsewhere.0));
    assert!(
        message.contains("is refused") && message.contains("127.0.0.9"),
        "{message}"
    );
}

#[test]
fn client_certificates_are_read_from_the_site_and_from_certs_d() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    let registry = secured(true);
    let (certificate, key) = registry.authority.issue(&registry.place, &["client.test"]);
    let ca = format!(", ca: {:?}", registry.authority.pem);
    let message = registry.fails(&ca);
    assert!(
        message.contains("it requires a client certificate"),
        "{message}"
    );
    assert!(
        message.contains("name clientCert and clientKey under registry or upstreams"),
        "{message}"
    );
    registry.works(&format!(
        "{ca}, clientCert: {certificate:?}, clientKey: {key:?}"
    ));

    registry.put("ca.crt", &registry.authority.pem);
    registry.put("client.cert", &certificate);
    // a certificate without its key is an error, and the missing file is named
    let message = registry.fails("");
    assert!(
        message.contains("certs.d") && message.contains("client.key"),
        "{message}"
    );
    registry.put("client.key", &key);
    registry.works("");
}

/// A server behind a proxy that ends TLS redirects to http, because it does not know of TLS.
/// Before, this was refused.
#[test]
fn a_redirect_to_http_of_the_same_server_stays_on_https() {
    if !need(&["nginx"]) {
        return;
    }
    let place = Place::new();
    let authority = Authority::new(&place, "Throw-away CA");
    let address = format!("127.0.0.1:{}", free_port());
    let directives = "default_type text/plain;\n\
         location = /old { return 301 http://$http_host/new; }\n\
         location = /new { return 200 content; }\n\
         location = /plain { return 301 http://$http_host/plain; }";
    let _nginx = nginx_with_tls(&authority, &address, directives);
    let ca = authority.pem.display();
    place.write(
        "site.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Site\nupstreams: {{'{address}': {{ca: '{ca}'}}}}\n"
        ),
    );
    let lock = |exit, name: &str| {
        let url = format!("https://{address}/{name}");
        place.write(
            "m.yaml",
            format!("apiVersion: landfall/v1\nkind: Manifest\nfiles:\n- {{url: '{url}'}}\n"),
        );
        place.json(exit, &["lock", "-f", "m.yaml", "--site", "site.yaml"])
    };
    lock(0, "old");
    let report = lock(1, "plain").to_string();
    assert!(report.contains("from https to http; refused"), "{report}");
}
