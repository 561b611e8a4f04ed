//! Trivy scans an image at the private registry with a delivered database, as `render trivy`
//! configures it.

use crate::support::images::{OCI_MANIFEST, gzip, tarball};
use crate::support::peers::{Server, docker_registry};
use crate::support::programs::{LargeGoProgram, go_program};
use crate::support::{Images, Place, need, run};
use serde_json::{Value, json};
use std::path::Path;

const TRIVY: LargeGoProgram = LargeGoProgram {
    variable: "LANDFALL_TRIVY",
    module: "github.com/aquasecurity/trivy@v0.74.0",
    path: "cmd/trivy",
    go: "1.26.3",
    replace: "",
    experiment: "jsonv2",
};

const LAYER: &str = "application/vnd.aquasec.trivy.db.layer.v1.tar+gzip";

/// An Alpine package in the format of `lib/apk/db/installed`.
const INSTALLED: &str = "P:demo\nV:1.0.0-r0\nA:x86_64\no:demo\nL:MIT\n\n";

const RELEASE: &str = "ID=alpine\nVERSION_ID=3.20.0\nPRETTY_NAME=\"Alpine Linux v3.20\"\n";

/// Publishes a database with one vulnerability, as Trivy's own pipeline does.
fn publish_database(place: &Place, images: &Images, upstream: &Server, program: &Path, id: &str) {
    let file = place.path("trivy.db");
    let _ = std::fs::remove_file(&file);
    run(place
        .clean(program)
        .arg(&file)
        .args(["alpine 3.20", "demo", "1.0.1-r0", id]));
    // Trivy requests a new database only when this one is out of date
    let metadata = json!({
        "Version": 2,
        "NextUpdate": "2099-01-01T00:00:00Z",
        "UpdatedAt": "2026-01-01T00:00:00Z",
        "DownloadedAt": "0001-01-01T00:00:00Z",
    });
    let archive = tarball(&[
        ("trivy.db", &std::fs::read(&file).unwrap()),
        ("metadata.json", metadata.to_string().as_bytes()),
    ]);
    let mut layer = images.blob(LAYER, &gzip(&archive));
    layer["annotations"] = json!({"org.opencontainers.image.title": "db.tar.gz"});
    let config = images.blob("application/vnd.aquasec.trivy.config.v1+json", b"{}");
    let manifest = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": [layer],
    });
    let manifest = images.blob(OCI_MANIFEST, manifest.to_string().as_bytes());
    images.push(&upstream.address, "aquasecurity/trivy-db", "2", &manifest);
}

/// The IDs of the vulnerabilities that Trivy finds in `image`. Asserts that all are in the package
/// `demo`.
fn findings(place: &Place, trivy: &Path, image: &str) -> Vec<String> {
    let scan = place
        .clean(trivy)
        .args(["--config", "machine/etc/trivy/trivy.yaml", "image"])
        .args(["--format", "json", "--scanners", "vuln"])
        // the folder is deleted after each scan, so each scan downloads the database
        .args(["--cache-dir", "trivy-cache", image])
        .current_dir(place.dir())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&scan.stderr);
    println!("{told}");
    assert!(scan.status.success(), "{told}");
    std::fs::remove_dir_all(place.path("trivy-cache")).unwrap();
    let report: Value = serde_json::from_slice(&scan.stdout).unwrap();
    let results = report["Results"].as_array().unwrap().iter();
    let found = results.filter_map(|result| result["Vulnerabilities"].as_array().cloned());
    found
        .flatten()
        .map(|one| {
            let text = |key: &str| one[key].as_str().unwrap().to_owned();
            assert_eq!(text("PkgName"), "demo");
            text("VulnerabilityID")
        })
        .collect()
}

#[test]
fn trivy_scans_with_the_delivered_database() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    let Some(trivy) = TRIVY.find() else {
        return;
    };
    let Some(program) = go_program("trivy-db") else {
        return;
    };
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let upstream = docker_registry();
    let target = docker_registry();
    let layer = images.layer(&[
        ("etc/os-release", RELEASE.as_bytes()),
        ("etc/alpine-release", b"3.20.0\n"),
        ("lib/apk/db/installed", INSTALLED.as_bytes()),
    ]);
    let image = images.image("linux/amd64", &[layer]);
    images.push(&upstream.address, "team/app", "v1", &image);
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\nimages:\n- {0}/team/app:v1\n- {{ref: \
             \"{0}/aquasecurity/trivy-db:2\", update: digest}}\n",
            upstream.address
        ),
    );
    place.write(
        "site.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"{}/mirror\", plainHTTP: \
             true}}\n",
            target.address
        ),
    );
    let name = format!("{}/team/app:v1", upstream.address);
    for night in ["CVE-2026-0001", "CVE-2026-0002"] {
        publish_database(&place, &images, &upstream, &program, night);
        let refresh = [
            "refresh", "-f", "m.yaml", "-o", "bundle", "--store", "store",
        ];
        place.ok(&refresh);
        place.ok(&["push", "bundle", "--site", "site.yaml", "--move-tags"]);
        let render = ["render", "trivy", "--site", "site.yaml", "-o", "machine"];
        place.ok(&render);
        let mirrored = format!("{}/mirror/team/app:v1", target.address);
        // by the name at the registry, and by the name upstream
        for image in [&mirrored, &name] {
            assert_eq!(findings(&place, &trivy, image), [night], "{image}");
        }
    }
    // Trivy requested the database and the image from the registry, and nothing from upstream
    let by_trivy = |server: &Server, path: &str| {
        let log = server.log();
        let lines = log.lines().filter(|line| line.contains("trivy/"));
        lines.filter(|line| line.contains(path)).count()
    };
    for path in ["/v2/mirror/aquasecurity/trivy-db/", "/v2/mirror/team/app/"] {
        assert!(by_trivy(&target, path) > 0, "{path}: {}", target.log());
    }
    assert_eq!(by_trivy(&upstream, ""), 0, "{}", upstream.log());
}
