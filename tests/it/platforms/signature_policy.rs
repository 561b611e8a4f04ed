//! policy.json and registries.d of `landfall render podman` and `crio`, and the library of podman,
//! skopeo and CRI-O that reads them.

use super::{golden, place, refused};
use crate::support::peers::{docker_registry, own_registry};
use crate::support::pki::key_pair;
use crate::support::programs::go_program;
use crate::support::sigstore::{ImageSigner, Sigstore, lock, push_image};
use crate::support::{Images, Place, need};
use serde_json::Value;

const IMAGES: &[&str] = &[
    "quay.io/other/tool:v1",
    "quay.io/team/app:v1",
    "registry.k8s.io/pause:3.10.1",
];

/// A fixed public key, since the golden files contain the key.
const KEY: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEhyQCx0E9wQWSFI9ULGwy3BuRklnt
IqozONbbdbqz11hlRJy9c7SG+hdcFl9jE9uE/dwtuwU2MqU9T/cN0YkWww==
-----END PUBLIC KEY-----
";

const SITE: &str = "registry: {address: \"172.20.0.2:5000\"}\n";

#[test]
fn rules_of_the_site_become_a_policy() {
    let rules = "verify:\n- {match: \"quay.io/team/*\", keys: [team.pub]}\n- {match: \
                 \"registry.k8s.io/*\", none: not signed}\n";
    let place = place(&format!("{SITE}{rules}"), IMAGES);
    place.write("team.pub", KEY);
    golden(
        &place,
        "podman-policy",
        &["podman", "--set", "policy=rules"],
    );
    place.write("site.pub", KEY);
    let args = ["crio", "--set", "image-key=site.pub"];
    std::fs::remove_dir_all(place.path("out")).unwrap();
    golden(&place, "crio-image-key", &args);
}

#[test]
fn tags_with_different_rules_have_scopes_of_their_own() {
    let rules = "verify:\n- {match: \"quay.io/team/app:dev\", none: a test image}\n- {match: \
                 \"quay.io/team/*\", keys: [team.pub]}\n";
    let images = [
        "quay.io/team/app:dev",
        "quay.io/team/app:v1",
        "quay.io/team/other:v1",
    ];
    let place = place(&format!("{SITE}{rules}"), &images);
    place.write("team.pub", KEY);
    let render = ["render", "podman", "--site", "site.yaml", "-o", "out"];
    place.ok(&[&render[..], &["--set", "policy=rules"]].concat());
    let scopes = scopes(&place, "out");
    let lock = crate::support::library::Lock::parse("l", &place.read("landfall.lock")).unwrap();
    for name in ["quay.io/team/app", "172.20.0.2:5000/team/app"] {
        for (at, tag, kind) in [
            (0, "dev", "insecureAcceptAnything"),
            (1, "v1", "sigstoreSigned"),
        ] {
            let digest = &lock.images[at].digest;
            for scope in [format!("{name}:{tag}"), format!("{name}@{digest}")] {
                assert_eq!(scopes[&scope][0]["type"], kind, "{scope}: {scopes:#}");
            }
        }
        assert!(scopes.get(name).is_none(), "{scopes:#}");
    }
    assert_eq!(scopes["quay.io/team/other"][0]["type"], "sigstoreSigned");
    for host in ["quay.io", "172.20.0.2:5000"] {
        assert_eq!(scopes[host][0]["type"], "reject", "{scopes:#}");
    }
}

#[test]
fn rules_that_a_policy_cannot_express_need_the_key_of_the_site() {
    let site = |identity: &str, more: &str| {
        let rules = format!(
            "verify: [{{match: \"quay.io/team/*\", keyless: {{issuer: \"https://accounts.test\", \
             identity: \"{identity}\"}}, trustedRoot: root.json{more}}}]\n"
        );
        let place = place(&format!("{SITE}{rules}"), IMAGES);
        place.write("root.json", Sigstore::new().trusted_root());
        place
    };
    for (identity, more, why) in [
        ("*@example.test", "", "no patterns for identities"),
        ("https://git.test/org/app", "", "only has e-mail addresses"),
        (
            "release@example.test",
            ", attestation: {builder: b}",
            "no conditions on the provenance",
        ),
    ] {
        let place = site(identity, more);
        let told = refused(&place, 2, &["podman", "--set", "policy=rules"]);
        assert!(
            told.contains("the rule for quay.io/team/app:v1") && told.contains(why),
            "{told}"
        );
        place.write("site.pub", ImageSigner::with_key().public_pem());
        let both = ["--set", "policy=rules", "--set", "image-key=site.pub"];
        place.ok(&[
            &["render", "podman", "--site", "site.yaml", "-o", "out"],
            &both[..],
        ]
        .concat());
        let scopes = scopes(&place, "out");
        let identity = &scopes["quay.io/team/app"][0]["signedIdentity"];
        assert_eq!(identity["dockerRepository"], "172.20.0.2:5000/team/app");
    }
    let place = site("release@example.test", "");
    let render = ["render", "podman", "--site", "site.yaml", "-o", "out"];
    place.ok(&[&render[..], &["--set", "policy=rules"]].concat());
    let rule = &scopes(&place, "out")["quay.io/team/app"][0];
    assert_eq!(rule["fulcio"]["subjectEmail"], "release@example.test");
    assert!(rule["rekorPublicKeyData"].is_string(), "{rule}");
}

#[test]
fn a_policy_by_rules_needs_a_rule() {
    let place = place(SITE, IMAGES);
    place.write("site.pub", KEY);
    let rules = ["podman", "--set", "policy=rules"];
    let both = [&rules[..], &["--set", "image-key=site.pub"]].concat();
    for args in [&rules[..], &both] {
        let told = refused(&place, 2, args);
        assert!(told.contains("the site has no rules"), "{told}");
    }
}

fn scopes(place: &Place, out: &str) -> Value {
    let policy = place.read(&format!("{out}/etc/containers/policy.json"));
    let policy: Value = serde_json::from_str(&policy).unwrap();
    policy["transports"]["docker"].clone()
}

#[test]
fn the_library_of_podman_and_skopeo_accepts_only_images_that_the_site_signed() {
    if !need(&["skopeo", "docker-registry", "openssl", "gzip"]) {
        return;
    }
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let upstream = own_registry();
    let target = docker_registry();
    let address = &target.address;
    key_pair(&place, "site", "P-256");
    for (repository, bundle) in [("team/app", "b.tar.zst"), ("team/other", "c.tar.zst")] {
        push_image(&images, &upstream.address, repository);
        let manifest = format!("images: [{}/{repository}:v1]\n", upstream.address);
        assert_eq!(lock(&place, "landfall", &manifest).0, 0);
        place.ok(&["pull", "--store", "store"]);
        place.ok(&["pack", "--store", "store", "-o", bundle]);
    }
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"{address}\", plainHTTP: true}}\n"
    );
    place.write("site.yaml", site);
    let push = [
        "push",
        "b.tar.zst",
        "--site",
        "site.yaml",
        "--sign-images",
        "site.pem",
    ];
    place.ok(&push);
    // an image without a signature
    push_image(&images, address, "other/app");
    let render = [
        "render",
        "podman",
        "--site",
        "site.yaml",
        "--set",
        "image-key=site.pub",
    ];
    place.ok(&[&render[..], &["-o", "out"]].concat());
    let containers = place.path("out/etc/containers");
    let [policy, registries] = ["policy.json", "registries.d"].map(|name| containers.join(name));
    // a skopeo that was built without Sigstore can only show that an unsigned image is refused
    let unsigned = place
        .clean("skopeo")
        .arg("--policy")
        .arg(&policy)
        .arg("--registries.d")
        .arg(&registries)
        .args(["copy", "--src-tls-verify=false"])
        .arg(format!("docker://{address}/other/app:v1"))
        .arg(format!("dir:{}", place.path("copied").display()))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&unsigned.stderr);
    assert!(
        !unsigned.status.success() && told.contains("rejected"),
        "{told}"
    );
    let Some(client) = go_program("copy-by-policy") else {
        return;
    };
    // `team/other` is signed with a key that the policy does not name
    key_pair(&place, "other", "P-256");
    place.ok(&push
        .map(|word| {
            word.replace("site.pem", "other.pem")
                .replace("b.tar", "c.tar")
        })
        .each_ref()
        .map(|word| &**word));
    for (repository, is_allowed) in [
        ("team/app", true),
        ("team/other", false),
        ("other/app", false),
    ] {
        let copied = place
            .clean(&client)
            .arg(&policy)
            .arg(&registries)
            .arg(format!("{address}/{repository}:v1"))
            .arg(place.path(repository.replace('/', "-")))
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&copied.stderr);
        assert_eq!(copied.status.success(), is_allowed, "{repository}: {told}");
    }
}
