//! Artifacts of Flux and Argo CD: carried like images, and referenced by the rewritten objects.

use crate::support::images::{OCI_EMPTY, OCI_GZIP, OCI_MANIFEST, gzip, tarball};
use crate::support::peers::own_registry;
use crate::support::programs::go_program;
use crate::support::{Images, Place, http, landfall_serve, need, run};
use serde_json::{Value, json};

const FLUX_CONFIG: &str = "application/vnd.cncf.flux.config.v1+json";
const FLUX_CONTENT: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";

/// An artifact as `flux push artifact` makes it: a config that names no platform, and one layer.
fn flux_artifact(images: &Images) -> Value {
    let config = images.blob(FLUX_CONFIG, b"{\"created\":\"2024-01-02T03:04:05Z\"}");
    artifact(images, FLUX_CONTENT, json!({"config": config}))
}

/// An artifact as `oras push` makes it for Argo CD.
fn argo_artifact(images: &Images) -> Value {
    let config = images.blob(OCI_EMPTY, b"{}");
    let kind = "application/vnd.unknown.artifact.v1";
    artifact(
        images,
        OCI_GZIP,
        json!({"config": config, "artifactType": kind}),
    )
}

/// An artifact with Kubernetes objects as its only layer.
fn artifact(images: &Images, layer: &str, more: Value) -> Value {
    let objects = gzip(&tarball(&[("app.yaml", b"kind: ConfigMap\n")]));
    let mut manifest = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "layers": [images.blob(layer, &objects)],
        "annotations": {"org.opencontainers.image.revision": "main@sha1:1"},
    });
    for (key, value) in more.as_object().unwrap() {
        manifest[key] = value.clone();
    }
    images.blob(OCI_MANIFEST, &serde_json::to_vec_pretty(&manifest).unwrap())
}

/// `OCIRepository` objects of Flux and an Application of Argo CD for the artifacts at `registry`.
fn objects(registry: &str, digest: &str) -> String {
    format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {{name: app}}\n\
         spec: {{interval: 5m, url: 'oci://{registry}/org/flux/app', ref: {{tag: 6.5.0}}}}\n---\n\
         apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {{name: range}}\n\
         spec: {{interval: 5m, url: 'oci://{registry}/org/flux/app', ref: {{semver: '6.x'}}}}\n---\n\
         apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: app}}\nspec:\n  source:\n    \
         repoURL: oci://{registry}/org/argo\n    targetRevision: {digest}\n    path: .\n"
    )
}

#[test]
fn artifacts_of_flux_and_argo_cd_are_carried_and_their_objects_rewritten() {
    if !need(&["gzip"]) {
        return;
    }
    let upstream = own_registry();
    let site = own_registry();
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let flux = flux_artifact(&images);
    let argo = argo_artifact(&images);
    images.push(&upstream.address, "org/flux/app", "6.5.0", &flux);
    images.push(&upstream.address, "org/argo", "1.0.0", &argo);
    let from = &upstream.address;
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\nplatforms: [linux/amd64]\nimages:\n\
             - {from}/org/flux/app:6.5.0\n- {from}/org/argo:1.0.0\n"
        ),
    );
    for command in [
        &["lock", "-f", "m.yaml"][..],
        &["pull"],
        &["pack", "-o", "b.tar.zst"],
        &["verify", "b.tar.zst"],
        &["push", "b.tar.zst", "--to", &site.address],
    ] {
        place.ok(command);
    }
    let digest = argo["digest"].as_str().unwrap();
    place.write("apps.yaml", objects(from, digest));
    place.ok(&["audit", "apps.yaml"]);
    let rewritten = place.ok(&["rewrite", "apps.yaml", "--to", &site.address]);
    assert_eq!(rewritten, objects(&site.address, digest));
    place.write("there.yaml", &rewritten);
    place.ok(&["audit", "there.yaml", "--to", &site.address]);

    // a controller finds the same bytes at the registry, and at a server of the bundle
    let served = landfall_serve(&place, &["b.tar.zst"]);
    for (repository, reference, artifact) in [
        ("org/flux/app", "6.5.0", &flux),
        ("org/argo", digest, &argo),
    ] {
        let bytes = images.bytes(artifact["digest"].as_str().unwrap());
        let manifest: Value = serde_json::from_slice(&bytes).unwrap();
        let layer = manifest["layers"][0]["digest"].as_str().unwrap();
        for server in [&site.address, &served.address] {
            let found = http::manifest(server, repository, reference);
            assert_eq!((found.status, found.body), (200, bytes.clone()), "{server}");
            let blob = http::get(server, &format!("/v2/{repository}/blobs/{layer}"));
            assert_eq!((blob.status, blob.body), (200, images.bytes(layer)));
        }
    }
    let tags = http::get(&site.address, "/v2/org/flux/app/tags/list");
    assert_eq!(
        tags.json()["tags"],
        json!(["6.5.0"]),
        "a controller resolves a version range with this list"
    );
}

/// Flux's own client reads the artifact at the registry and at a server of the bundle.
#[test]
fn flux_pulls_a_mirrored_artifact() {
    let (true, Some(program)) = (need(&["gzip"]), go_program("gitops-clients")) else {
        return;
    };
    let upstream = own_registry();
    let site = own_registry();
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let artifact = flux_artifact(&images);
    images.push(&upstream.address, "org/flux/app", "6.5.0", &artifact);
    let from = &upstream.address;
    let text = format!(
        "apiVersion: landfall/v1\nkind: Manifest\nimages: [\"{from}/org/flux/app:6.5.0\"]\n"
    );
    place.write("m.yaml", text);
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    place.ok(&["push", "b.tar.zst", "--to", &site.address]);
    drop(upstream);
    let served = landfall_serve(&place, &["b.tar.zst"]);
    let digest = artifact["digest"].as_str().unwrap();
    for (folder, server) in [("one", &site.address), ("two", &served.address)] {
        let mut command = place.clean(&program);
        let reference = format!("{server}/org/flux/app:6.5.0");
        let printed = run(command.args(["artifact", &reference, folder]));
        let expected = format!("{server}/org/flux/app@{digest} main@sha1:1\n");
        assert_eq!(String::from_utf8(printed).unwrap(), expected);
        assert_eq!(
            place.read(&format!("{folder}/app.yaml")),
            "kind: ConfigMap\n"
        );
    }
}

#[test]
fn an_audit_lists_artifacts_that_the_lock_lacks() {
    let place = Place::new();
    let digest = |n: u8| format!("sha256:{}", format!("{n:02x}").repeat(32));
    let media_type = OCI_MANIFEST;
    place.write(
        "landfall.lock",
        format!(
            "version: 1\nimages:\n- {{name: 'ghcr.io/org/app:6.5.0', digest: '{}', mediaType: {media_type}, size: 7, \
             blobs: ['{} 9 {FLUX_CONFIG}']}}\n",
            digest(1),
            digest(2)
        ),
    );
    let one = digest(1);
    let other = digest(3);
    for (spec, status, word) in [
        (
            json!({"url": "oci://ghcr.io/org/app", "ref": {"digest": one}}),
            "held",
            "",
        ),
        (
            json!({"url": "oci://ghcr.io/org/app", "ref": {"semver": ">=6.0.0"}}),
            "held",
            "ghcr.io/org/app",
        ),
        (
            json!({"url": "oci://ghcr.io/org/app", "ref": {"semver": ">=7"}}),
            "undecided",
            "no locked tag",
        ),
        (
            json!({"url": "oci://ghcr.io/org/app", "ref": {"tag": "7.0.0"}}),
            "missing",
            "only as 6.5.0",
        ),
        (
            json!({"url": "oci://ghcr.io/org/app", "ref": {"digest": other}}),
            "missing",
            "other digests",
        ),
        (
            json!({"url": "oci://ghcr.io/org/none", "ref": {"tag": "1"}}),
            "missing",
            "\"not in the lock\"",
        ),
        (
            json!({"url": "oci://ghcr.io/org/none", "ref": {"tag": "1.0.0"},
                   "layerSelector": {"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip"}}),
            "missing",
            "add it to `charts`",
        ),
        (
            json!({"source": {"repoURL": "oci://ghcr.io/org/app", "targetRevision": "6.5.0"}}),
            "held",
            "",
        ),
        (
            json!({"source": {"repoURL": "oci://ghcr.io/org/none", "targetRevision": "1.0.0"}}),
            "missing",
            "",
        ),
        // charts of k3s and Fleet, and of Kustomize
        (
            json!({"chart": "oci://ghcr.io/org/app", "version": "6.5.0"}),
            "held",
            "",
        ),
        (
            json!({"chart": "oci://ghcr.io/org/app", "version": "7.0.0"}),
            "missing",
            "only as 6.5.0; it is a chart",
        ),
        (
            json!({"helmCharts": [{"name": "app", "repo": "oci://ghcr.io/org", "version": "6.5.0"}]}),
            "held",
            "",
        ),
        (
            json!({"helmCharts": [{"name": "app", "repo": "https://charts.test", "version": "1.0.0"}]}),
            "missing",
            "charts.test/app:1.0.0",
        ),
    ] {
        place.write("app.yaml", json!({"spec": spec}).to_string());
        let exit = if status == "missing" { 4 } else { 0 };
        let report = place.json(exit, &["audit", "app.yaml"]);
        let found = report[status].to_string();
        assert!(
            report[status]
                .as_array()
                .is_some_and(|found| found.len() == 1)
                && found.contains(word),
            "{spec}: {report}"
        );
    }
    // `--missing` writes a manifest that lists missing artifacts under `images`, and charts
    place.write(
        "app.yaml",
        "spec: {url: 'oci://ghcr.io/org/none', ref: {tag: 1.0.0}}\n---\n\
         spec: {chart: 'oci://ghcr.io/org/app', version: 7.0.0}\n",
    );
    let report = place.json(4, &["audit", "app.yaml", "--missing", "missing.yaml"]);
    let missing = place.read("missing.yaml");
    assert!(missing.contains("  - ghcr.io/org/none:1.0.0  # app.yaml:1\n"));
    assert!(missing.contains("  - {ref: \"oci://ghcr.io/org/app:7.0.0\"}  # app.yaml:3\n"));
    assert_eq!(report["missing"][1]["chart"], "oci://ghcr.io/org/app:7.0.0");
}
