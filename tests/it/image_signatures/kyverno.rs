//! Runs Kyverno's engine with the rendered policy on images that `push --sign-images` signed, and
//! on other images.

use crate::peers::images_in_pods::KYVERNO;
use crate::support::peers::{Server, docker_registry};
use crate::support::pki::key_pair;
use crate::support::sigstore::{lock, push_image};
use crate::support::{Images, Place, need};
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
    for (repository, sign) in [
        ("team/signed", &["--sign-images", "site.pem"][..]),
        ("team/other", &["--sign-images", "other.pem"]),
        ("team/unsigned", &[]),
    ] {
        push_image(&images, &upstream.address, repository);
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
    place.ok(&[
        "render",
        "kyverno",
        "--site",
        "site.yaml",
        "--lock",
        "team-signed.lock",
        "--set",
        "image-key=site.pub",
        "-o",
        "out",
    ]);
    let verify = &["out/verify-images.yaml"][..];
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
    let both = ["out/replace-registries.yaml", "out/verify-images.yaml"];
    let name = format!("{}/team/signed:v1", upstream.address);
    let output = apply(&place, &kyverno, &both, &name);
    assert!(output.status.success());
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains(", fail: 0"), "{told}");
}
