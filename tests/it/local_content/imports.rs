//! Local content in the lists of Hauler and Zarf.

use crate::support::Place;
use crate::support::images::{Images, sha256};

/// A place with a script, a chart and an image archive, which is an OCI layout.
fn content() -> Place {
    let place = Place::new();
    place.write("scripts/setup.sh", "#!/bin/sh\n");
    place.write(
        "charts/app/Chart.yaml",
        "apiVersion: v2\nname: app\nversion: 1.2.3\n",
    );
    let mut images = Images::new(place.path("build/layout"));
    let layer = images.layer(&[("bin/app", b"app")]);
    let image = images.image("linux/amd64", &[layer]);
    images.tag("1.4", &image);
    place
}

#[test]
fn local_files_and_charts_of_hauler_are_imported() {
    let place = content();
    place.write(
        "hauler.yaml",
        "apiVersion: content.hauler.cattle.io/v1\nkind: Files\n\
         spec: {files: [{path: scripts/setup.sh}, {path: ./gone.sh}, {path: ../up.sh}]}\n---\n\
         apiVersion: content.hauler.cattle.io/v1\nkind: Charts\n\
         spec: {charts: [{name: app, repoURL: charts}]}\n",
    );
    let text = place.printed(3, &["import", "hauler", "hauler.yaml"]);
    assert!(
        text.contains("./gone.sh: the folder of the manifest does not have it"),
        "{text}"
    );
    assert!(text.contains("../up.sh: it is not a path below"), "{text}");
    let made = place.read("manifest.yaml");
    assert!(
        made.contains("files:\n  - path: \"scripts/setup.sh\"\n"),
        "{made}"
    );
    assert!(
        made.contains("charts:\n  - {path: \"charts/app\"}\n"),
        "{made}"
    );
    place.ok(&["lock", "-f", "manifest.yaml"]);
    let lock = place.read("landfall.lock");
    assert!(lock.contains("name: local:scripts/setup.sh\n"), "{lock}");
    assert!(
        lock.contains("name: helm+local:charts/app:1.2.3\n"),
        "{lock}"
    );
}

#[test]
fn local_files_charts_and_image_archives_of_zarf_are_imported() {
    let place = content();
    let sum = sha256(b"#!/bin/sh\n");
    let sum = &sum["sha256:".len()..];
    place.write(
        "package/zarf.yaml",
        format!(
            "kind: ZarfPackageConfig\nmetadata: {{name: p}}\ncomponents:\n- name: c\n  \
             files: [{{source: scripts/setup.sh, shasum: '{sum}', executable: true}}]\n  \
             charts: [{{name: mine, localPath: charts/app, version: 1.2.3}}]\n  \
             imageArchives: [{{path: build/layout, images: ['registry.example.com/app:1.4']}}]\n"
        ),
    );
    let import = ["import", "zarf", "package/zarf.yaml"];
    place.ok(&import);
    let made = place.read("manifest.yaml");
    for words in [
        "images:\n  - {ref: \"registry.example.com/app:1.4\", archive: \"build/layout\"}\n",
        &format!(
            "  - path: \"scripts/setup.sh\"\n    checksum: sha256:{sum}\n    mode: \"0755\"\n"
        ),
        "  - {path: \"charts/app\"}\n",
    ] {
        assert!(made.contains(words), "{words}: {made}");
    }
    let locked = place.json(0, &["lock", "-f", "manifest.yaml"]);
    assert_eq!(locked["totals"]["requests"], 0, "{locked}");
    // another folder has none of it
    place.printed(1, &[&import[..], &["-o", "package"]].concat());
}
