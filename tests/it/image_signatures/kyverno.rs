//! Runs Kyverno's engine with the rendered policy on images that `push --sign-images` signed, and
//! on other images.

use crate::peers::images_in_pods::KYVERNO;
use crate::support::images::digest;
use crate::support::peers::{Server, docker_registry};
use crate::support::pki::key_pair;
use crate::support::sigstore::{lock, push_image};
use crate::support::{Images, Place, need};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

/// Applies policies to a pod with this image.
fn apply(place: &Place, kyverno: &Path, policies: &[&str], image: &str) -> Output {
    place.write(
        "pod.yaml",
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: app, namespace: shop}}\nspec:\n  \
             containers:\n  - {{name: app, image: \"{image}\"}}\n"
        ),
    );
    let mut command = place.clean(kyverno);
    command
        .arg("apply")
        .args(policies)
        .args(["--resource", "pod.yaml", "--registry"]);
    let output = command.output().unwrap();
    println!(
        "{image}:\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Renders the policies that demand the signature of `site.pub` to the folder of this form.
fn render(place: &Place, form: &str) {
    place.ok(&[
        "render",
        "kyverno",
        "--site",
        "site.yaml",
        "--lock",
        "team-signed.lock",
        "--set",
        "image-key=site.pub",
        "--set",
        &format!("form={form}"),
        "-o",
        form,
    ]);
}

/// Delivers the image `REPOSITORY:v1` to `target`, signed with these flags.
fn deliver(place: &Place, target: &Server, upstream: &Server, repository: &str, sign: &[&str]) {
    let name = repository.replace('/', "-");
    let manifest = format!("images: [{}/{repository}:v1]\n", upstream.address);
    assert_eq!(lock(place, &name, &manifest).0, 0);
    let lock = format!("{name}.lock");
    let bundle = format!("{name}.bundle");
    place.ok(&["pull", "--lock", &lock, "--store", "store"]);
    place.ok(&["pack", "--lock", &lock, "--store", "store", "-o", &bundle]);
    let to = format!("{}/mirror", target.address);
    place.ok(&[&["push", &bundle, "--to", &to], sign].concat());
}

#[test]
fn kyverno_admits_images_with_the_sites_signature_and_refuses_others() {
    if !need(&["docker-registry", "openssl", "gzip"]) {
        return;
    }
    let Some(kyverno) = KYVERNO.find() else {
        return;
    };
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let upstream = docker_registry();
    let target = docker_registry();
    key_pair(&place, "site", "P-256");
    key_pair(&place, "other", "P-256");
    let mut digests = BTreeMap::from([("team/missing", format!("sha256:{}", "0".repeat(64)))]);
    for (repository, sign) in [
        ("team/signed", &["--sign-images", "site.pem"][..]),
        ("team/other", &["--sign-images", "other.pem"]),
        ("team/unsigned", &[]),
    ] {
        let image = push_image(&images, &upstream.address, repository);
        digests.insert(repository, digest(&image).to_owned());
        deliver(&place, &target, &upstream, repository, sign);
    }
    place.write(
        "site.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"{}/mirror\", plainHTTP: \
             true}}\n",
            target.address
        ),
    );
    render(&place, "cluster-policy");
    let verify = &["cluster-policy/verify-images.yaml"][..];
    let mirrored = |repository: &str| format!("{}/mirror/{repository}:v1", target.address);
    for (repository, is_admitted) in [
        ("team/signed", true),
        ("team/other", false),
        ("team/unsigned", false),
        ("team/missing", false),
    ] {
        let output = apply(&place, &kyverno, verify, &mirrored(repository));
        let told = String::from_utf8_lossy(&output.stdout);
        // the policy has a rule for the signature, and one for the digest that Kyverno then adds
        let has = |count: &str| told.contains(count);
        assert_eq!(has("fail: 0"), is_admitted, "{repository}: {told}");
        assert!(!has("pass: 0, fail: 0"), "{repository}: {told}");
        assert_eq!(output.status.success(), is_admitted, "{repository}");
    }
    // if a pod uses the upstream name of the image, its registry is replaced first
    let both = [
        "cluster-policy/replace-registries.yaml",
        "cluster-policy/verify-images.yaml",
    ];
    let name = format!("{}/team/signed:v1", upstream.address);
    let output = apply(&place, &kyverno, &both, &name);
    assert!(output.status.success());
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains(", fail: 0"), "{told}");
    render(&place, "cel");
    let verify = &["cel/verify-images.yaml"][..];
    for (repository, digest) in &digests {
        let image = format!("{}@{digest}", mirrored(repository));
        let output = apply(&place, &kyverno, verify, &image);
        let told = String::from_utf8_lossy(&output.stdout);
        let is_admitted = *repository == "team/signed";
        assert_eq!(output.status.success(), is_admitted, "{repository}: {told}");
        assert_eq!(
            told.contains("pass: 1"),
            is_admitted,
            "{repository}: {told}"
        );
    }
    // in a cluster, a webhook adds the digest first
    let output = apply(&place, &kyverno, verify, &mirrored("team/signed"));
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("does not have a digest"), "{told}");
}
