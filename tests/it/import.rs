//! `landfall import FORMAT`: converts lists of other tools to manifests.

use crate::support::charts::Chart;
use crate::support::faults::{Content, Faults};
use crate::support::peers::own_registry;
use crate::support::{Images, Place, need};

#[test]
fn a_list_becomes_a_manifest_and_entries_that_cannot_be_imported_are_reported() {
    let place = Place::new();
    place.write("a.txt", "# RKE2\nquay.io/x/app:v1\nnginx:1.27\n");
    place.write("b.txt", "quay.io/x/app:v1\nquay.io/x/more:v2\n");
    let printed = place.ok(&[
        "import",
        "images-txt",
        "a.txt",
        "b.txt",
        "-o",
        "out",
        "--name",
        "both",
    ]);
    assert!(
        printed.contains("wrote out/manifest.yaml with 3 entries"),
        "{printed}"
    );
    let manifest = place.read("out/manifest.yaml");
    for words in [
        "metadata: {name: both}",
        "  - docker.io/library/nginx:1.27\n",
        "  - quay.io/x/more:v2\n",
    ] {
        assert!(manifest.contains(words), "{manifest}");
    }
    // no existing file is replaced
    place
        .landfall()
        .args(["import", "images-txt", "a.txt", "-o", "out"])
        .assert()
        .code(2);
    assert_eq!(place.read("out/manifest.yaml"), manifest);

    let hauler = "apiVersion: content.hauler.cattle.io/v1\nkind: Images\nspec: {images: [{name: 'quay.io/x/app:v1'}]}\n---\n\
                  apiVersion: content.hauler.cattle.io/v1\nkind: Charts\nspec: {charts: [{name: c, repoURL: 'https://c.test'}]}\n";
    place.write("hauler.yaml", hauler);
    let report = place.json(3, &["import", "hauler", "hauler.yaml", "-o", "h"]);
    let left = report["notCarried"][0].as_str().unwrap();
    assert!(
        left.starts_with(
            "hauler.yaml: document 2, Charts, charts[0]: chart https://c.test c: it has no version"
        ),
        "{left}"
    );
    assert!(
        place
            .read("h/manifest.yaml")
            .contains("# Not imported:\n#   hauler.yaml: document 2"),
        "{report:#}"
    );

    place.write("pod.yaml", "kind: Pod\n");
    for (format, file, exit, words) in [
        ("hauler", "pod.yaml", 2, "this is not a file of Hauler"),
        ("zarf", "nowhere.yaml", 2, "cannot read nowhere.yaml"),
        ("oc-mirror-mapping", "b.txt", 2, "line 1 has no `=`"),
        ("images-txt", "empty.txt", 2, "this list contains no images"),
        (
            "zarf",
            "package.yaml",
            1,
            "contains nothing that a manifest can express, so nothing was written",
        ),
    ] {
        place.write("empty.txt", "# nothing\n");
        place.write(
            "package.yaml",
            "kind: ZarfPackageConfig\ncomponents: [{name: c, repos: ['https://g.test/r']}]\n",
        );
        let assert = place
            .landfall()
            .args(["import", format, file, "-o", "none"])
            .assert()
            .code(exit);
        let output = assert.get_output();
        let printed =
            String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
        assert!(
            printed.contains(words) && !place.path("none").exists(),
            "{format}: {printed}"
        );
    }
    let locked = place
        .command()
        .args(["lock", "-f", "package.yaml"])
        .output();
    let printed = String::from_utf8(locked.unwrap().stderr).unwrap();
    assert!(
        printed.contains("create one from this file: landfall import zarf package.yaml"),
        "{printed}"
    );
}

/// `docker images … > list.txt` of Windows PowerShell writes UTF-16.
#[test]
fn a_list_in_utf16_is_read() {
    let place = Place::new();
    let text = "\u{feff}nginx:1.27\r\nquay.io/x/app:v1\r\n";
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    place.write("list.txt", bytes);
    let printed = place.ok(&["import", "images-txt", "list.txt", "-o", "out"]);
    assert!(printed.contains("with 2 entries"), "{printed}");
    place.ok(&["init", "list.txt", "-o", "kit"]);
    let manifest = place.read("kit/manifest.yaml");
    assert!(manifest.contains("format: images-txt"), "{manifest}");
}

#[test]
fn a_list_is_read_from_a_pipe() {
    let place = Place::new();
    let list = "registry.k8s.io/kube-apiserver:v1.35.8\nregistry.k8s.io/pause:3.10.1\n";
    place
        .landfall()
        .args(["import", "kubeadm", "-", "-o", "out"])
        .write_stdin(list)
        .assert()
        .code(0);
    assert!(
        place
            .read("out/manifest.yaml")
            .contains("# Written by `landfall import kubeadm` from -.")
    );
    let json = r#"{"kind": "Images", "images": ["registry.k8s.io/pause:3.10.1"]}"#;
    let run = place
        .landfall()
        .args(["import", "kubeadm", "-", "--dry-run"])
        .write_stdin(json)
        .assert()
        .code(0);
    let shown = String::from_utf8_lossy(&run.get_output().stdout).into_owned();
    assert!(
        shown.ends_with("images:\n  - registry.k8s.io/pause:3.10.1\n"),
        "{shown}"
    );
}

#[test]
fn an_exported_list_equals_the_imported_one() {
    let place = Place::new();
    let mut content = Content::default();
    let mut digests = Vec::new();
    for (repository, tag) in [("x/app", "v1"), ("library/busybox", "1.37")] {
        let image = content.image(repository, "linux/amd64", &[(1, 64)]);
        content.tag(repository, tag, &image);
        digests.push(image["digest"].as_str().unwrap().to_owned());
    }
    let up = Faults::new(content);
    let host = &up.address;
    let app = format!("{host}/x/app");
    let busybox = format!("{host}/library/busybox");
    let one = &digests[0];
    let two = &digests[1];
    let imgpkg = |repository: &str, digest: &str, tag: &str| {
        format!(
            "- image: \"{repository}@{digest}\"\n  annotations:\n    kbld.carvel.dev/id: \"{repository}:{tag}\"\n"
        )
    };
    for (format, list) in [
        ("images-txt", format!("{busybox}:1.37\n{app}:v1\n")),
        ("images-txt", format!("{busybox}:1.37@{two}\n{app}@{one}\n")),
        (
            "hauler",
            format!(
                "apiVersion: content.hauler.cattle.io/v1\nkind: Images\nmetadata: {{name: images}}\nspec:\n  images:\n    \
                 - name: \"{busybox}:1.37\"\n    - name: \"{app}:v1\"\n      platform: linux/amd64\n"
            ),
        ),
        (
            "skopeo-sync",
            format!(
                "\"{host}\":\n  images:\n    \"library/busybox\": [\"1.37\"]\n    \"x/app\": [\"{one}\"]\n"
            ),
        ),
        (
            "regsync",
            format!(
                "version: 1\nsync:\n  - source: \"{app}:v1\"\n    target: \"mirror.test/x/app:v1\"\n    type: image\n    \
                 platform: linux/amd64\n"
            ),
        ),
        (
            "zarf",
            format!(
                "kind: ZarfPackageConfig\nmetadata:\n  name: imported\n  architecture: amd64\ncomponents:\n  - name: \
                 imported\n    required: true\n    images:\n      - \"{busybox}:1.37\"\n      - \"{app}:v1\"\n"
            ),
        ),
        (
            "imgpkg-lock",
            format!(
                "apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: ImagesLock\nimages:\n{}{}",
                imgpkg(&busybox, two, "1.37"),
                imgpkg(&app, one, "v1")
            ),
        ),
    ] {
        place.write("list", &list);
        let _ = std::fs::remove_dir_all(place.path("made"));
        place.ok(&["import", format, "list", "-o", "made"]);
        let plain = ["--plain-http", host.as_str()];
        place.ok(&[
            &["lock", "-f", "made/manifest.yaml", "--store", "s"],
            &plain[..],
        ]
        .concat());
        let back = place.ok(&["export", format, "--to", "mirror.test"]);
        assert_eq!(back, list, "{format}");
    }
    let table = place.ok(&["export", "sources", "-o", "table.tsv"]);
    assert!(
        table.contains("wrote table.tsv")
            && place.read("table.tsv").contains(&format!("\t{two}\t"))
    );
}

#[test]
fn the_table_of_sources_has_the_known_licences() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let layer = images.layer(&[("a", b"a")]);
    let mut image: serde_json::Value = images.image("linux/amd64", std::slice::from_ref(&layer));
    let mut document: serde_json::Value =
        serde_json::from_slice(&images.bytes(image["digest"].as_str().unwrap())).unwrap();
    document["annotations"] =
        serde_json::json!({"org.opencontainers.image.licenses": "Apache-2.0\tOR MIT"});
    image = images.blob(
        image["mediaType"].as_str().unwrap(),
        document.to_string().as_bytes(),
    );
    let registry = own_registry();
    images.push(&registry.address, "x/app", "v1", &image);
    images.push(
        &registry.address,
        "x/bare",
        "v1",
        &images.image("linux/amd64", &[layer]),
    );
    let chart = Chart::new(
        "c",
        "1.0.0",
        "annotations: {artifacthub.io/license: MPL-2.0}\n",
        &[],
    );
    chart.push(&images, &registry.address, "charts/c");
    let host = &registry.address;
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\nimages: ['{host}/x/app:v1', '{host}/x/bare:v1']\ncharts: ['oci://{host}/charts/c:1.0.0']\n"
        ),
    );
    place.ok(&["lock", "-f", "m.yaml", "--store", "s"]);
    let licences = |table: &str| -> Vec<String> {
        let cells = table
            .lines()
            .map(|line| line.split('\t').collect::<Vec<_>>());
        let rows = cells.map(|cells| {
            assert_eq!(cells.len(), 6, "{cells:?}");
            cells[5].to_owned()
        });
        rows.collect()
    };
    // without a store, the licences are unknown; no store is created
    assert_eq!(
        licences(&place.ok(&["export", "sources", "--store", "none"])),
        ["licence", "", "", ""]
    );
    assert!(!place.path("none").exists());
    place.ok(&["pull", "--store", "s"]);
    place.ok(&["pack", "--store", "s", "-o", "b.tar.zst"]);
    for from in [["--store", "s"], ["--bundle", "b.tar.zst"]] {
        let table = place.ok(&[&["export", "sources"], &from[..]].concat());
        assert_eq!(
            licences(&table),
            ["licence", "Apache-2.0 OR MIT", "", "MPL-2.0"],
            "{table}"
        );
    }
}

#[test]
fn a_dry_run_reports_what_a_site_cannot_express() {
    let place = Place::new();
    place.write(
        "c.yaml",
        "CLUSTER_NAME: c\nCLUSTER_PLAN: dev\nTKG_HTTP_PROXY: http://me:secret@p.test:3128\n",
    );
    let notes = [
        "the site does not contain the credentials of the proxy",
        "a site has no setting for CLUSTER_PLAN",
    ];
    let dry_run = ["import", "tkg", "c.yaml", "-o", "out", "--dry-run"];
    let site = place.ok(&dry_run);
    let report = place.json(0, &dry_run);
    assert!(!place.path("out").exists());
    for (at, note) in notes.iter().enumerate() {
        assert!(site.contains(&format!("\n# note: {note}")), "{site}");
        let listed = report["notes"][at].as_str().unwrap();
        assert!(listed.starts_with(note), "{report:#}");
    }
    let report = place.json(0, &dry_run[..5]);
    assert_eq!(report["notes"].as_array().unwrap().len(), 2);
    assert_eq!(place.read("out/site.yaml"), site);
}
