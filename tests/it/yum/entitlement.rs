//! Repositories that require a client certificate, such as those of RHEL.

use crate::support::apt::locked;
use crate::support::charts::failure_reasons;
use crate::support::peers::nginx_with;
use crate::support::pki::Authority;
use crate::support::yum::YumUpstream;
use crate::support::{Place, free_port, need};
use std::fs;

/// A block that `subscription-manager` writes after the certificate, in the same file.
const ENTITLEMENT: &str = "-----BEGIN ENTITLEMENT DATA-----\neJzt\n-----END ENTITLEMENT DATA-----\n\
    -----BEGIN RSA SIGNATURE-----\nAAAA\n-----END RSA SIGNATURE-----\n";

/// The site and the manifest of the guide, for the server at `host`.
fn of_the_guide(place: &Place, host: &str) {
    let page = include_str!("../../../docs/how-to/packages.md");
    let section = page
        .split("### RHEL with a client certificate")
        .nth(1)
        .unwrap();
    let blocks: Vec<&str> = section
        .split("```yaml\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap())
        .collect();
    let site = blocks[0].replace("cdn.redhat.com", &format!("\"{host}\""));
    place.write("site.yaml", site);
    let manifest = blocks[1]
        .replace("cdn.redhat.com", host)
        .replace("{rpms: node.rpms}", "none")
        .replace("\"@container-tools\"", "app");
    place.write("m.yaml", manifest);
}

#[test]
fn a_repository_that_requires_a_client_certificate_is_locked_and_pulled() {
    let Some(up) = YumUpstream::new() else { return };
    if !need(&["nginx"]) {
        return;
    }
    let place = &up.place;
    up.build(&[("app", "1", "", &["/usr/share/app/app"])]);
    up.index("gz");
    // the second repository of the guide is the same one
    let root = place.path("cdn/content/dist/rhel9/9/x86_64");
    for folder in ["baseos", "appstream"] {
        fs::create_dir_all(root.join(folder)).unwrap();
        std::os::unix::fs::symlink(place.path("up/r"), root.join(folder).join("os")).unwrap();
    }
    let authority = Authority::new(place, "entitlement-authority");
    let (certificate, key) = authority.issue(place, &["127.0.0.1"]);
    let address = format!("127.0.0.1:{}", free_port());
    let _server = nginx_with(&format!(
        "listen {address} ssl; ssl_certificate {}; ssl_certificate_key {}; \
         ssl_client_certificate {}; ssl_verify_client on; root {};",
        certificate.display(),
        key.display(),
        authority.pem.display(),
        place.path("cdn").display()
    ));
    of_the_guide(place, &address);
    let (client, client_key) = authority.issue(place, &["consumer.test"]);
    let client = fs::read_to_string(client).unwrap() + ENTITLEMENT;
    place.write("entitlement/rhel.pem", client);
    place.write("entitlement/rhel-key.pem", fs::read(client_key).unwrap());
    place.write(
        "entitlement/redhat-uep.pem",
        fs::read(&authority.pem).unwrap(),
    );
    place.write("keys/redhat.asc", up.signer.public());

    place.ok(&["lock", "-f", "m.yaml", "--site", "site.yaml"]);
    let lock = place.read("landfall.lock");
    assert_eq!(locked(&lock), ["app 1-1"]);
    assert!(!lock.contains("entitlement"), "{lock}");
    place.ok(&["pull", "--site", "site.yaml"]);
    place.ok(&["pack", "-o", "b"]);
    place.ok(&["verify", "b"]);

    // without the certificate, nginx answers 400; with half of it, the site is an error
    let site = place.read("site.yaml");
    let without = |keys: &[&str]| {
        let lines = site
            .lines()
            .filter(|line| !keys.iter().any(|key| line.contains(key)));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    place.write("none.yaml", without(&["clientCert", "clientKey"]));
    let lock = ["lock", "-f", "m.yaml", "--lock", "new.lock", "--site"];
    let report = place.json(1, &[&lock[..], &["none.yaml"]].concat());
    let why = failure_reasons(&report);
    assert!(why.contains("400") && why.contains("clientCert"), "{why}");
    place.write("half.yaml", without(&["clientKey"]));
    let report = place.json(2, &[&lock[..], &["half.yaml"]].concat());
    let why = report["error"]["message"].to_string();
    assert!(
        why.contains("half.yaml:5:")
            && why.contains("has only one of `clientCert` and `clientKey`"),
        "{why}"
    );
    // a certificate of another authority
    let other = Authority::new(place, "other-authority");
    let (client, client_key) = other.issue(place, &["other.test"]);
    place.write("entitlement/rhel.pem", fs::read(client).unwrap());
    place.write("entitlement/rhel-key.pem", fs::read(client_key).unwrap());
    let report = place.json(1, &[&lock[..], &["site.yaml"]].concat());
    let why = failure_reasons(&report);
    assert!(why.contains("400"), "{why}");
}
