//! `landfall init` and `landfall discover`: a first manifest and a first site.

use crate::support::peers::own_registry;
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use crate::support::{Images, Place, need};
use serde_json::json;

const PODS: &str = "spec:\n  nodeSelector: {kubernetes.io/arch: arm64}\n  containers:\n  - image: quay.io/x/app:v1\n  \
                    - image: quay.io/x/moves:latest\n";

/// Asserts that `lock` finds no error in a manifest.
fn loads(place: &Place, manifest: &str) {
    // the proxy does not answer, so a valid manifest is loaded, but no item is resolved
    let site = "apiVersion: landfall/v1\nkind: Site\nproxy: {https: \"http://127.0.0.1:9\", http: \"http://127.0.0.1:9\"}\n";
    place.write("nowhere.yaml", site);
    let report = place.json(
        1,
        &[
            "lock",
            "-f",
            manifest,
            "--store",
            "s",
            "--lock",
            "none.lock",
            "--site",
            "nowhere.yaml",
            "--jobs",
            "1",
        ],
    );
    assert!(report["totals"]["missing"].as_u64() > Some(0), "{report:#}");
}

#[test]
fn init_writes_a_manifest_and_a_site_that_are_valid() {
    let place = Place::new();
    place.write("pods/a.yaml", PODS);
    place.write("lists/rke2.txt", "# RKE2\nquay.io/x/app:v1\n");
    let found = json!({"level": "info", "msg": "Image found", "source-image": "quay.io/x/app:v1"});
    let end = json!({"level": "info", "msg": "Finished", "all-image-count": 1});
    place.write("kkp.log", format!("{found}\n{end}\n"));
    for (from, folder, words) in [
        (&[][..], "nothing", &["- registry.k8s.io/pause:3.10.1"][..]),
        (
            &["lists/rke2.txt"],
            "list",
            &["{format: images-txt, file: \"../lists/rke2.txt\"}"],
        ),
        (
            &["kkp.log"],
            "log",
            &["{format: kkp, file: \"../kkp.log\"}"],
        ),
        (
            &["pods"],
            "tree",
            &[
                "- quay.io/x/app:v1  # pods/a.yaml:4",
                "# - quay.io/x/moves:latest",
            ],
        ),
        (
            &["pods/a.yaml", "--platform", "linux/amd64"],
            "flag",
            &["\nplatforms: [linux/amd64]  #"],
        ),
    ] {
        let message = place.printed(
            0,
            &[
                &["init"],
                from,
                &["-o", folder, "--to", "172.20.0.2:5000/k"],
            ]
            .concat(),
        );
        let next =
            format!("next: landfall lock -f {folder}/manifest.yaml --site {folder}/site.yaml\n");
        assert!(message.ends_with(&next), "{folder}: {message}");
        assert!(
            message.contains(&format!(
                "wrote {folder}/manifest.yaml and {folder}/site.yaml"
            )),
            "{message}"
        );
        let manifest = place.read(&format!("{folder}/manifest.yaml"));
        for words in words {
            assert!(manifest.contains(words), "{words}: {manifest}");
        }
        let platforms = match folder {
            "tree" => "\nplatforms: [linux/arm64]  # from node selectors in pods/a.yaml:2; ",
            "flag" => "\nplatforms: [linux/amd64]  # of all images here; ",
            _ => "\n# platforms: [linux/amd64]  # of all images here; the default is all platforms",
        };
        assert!(manifest.contains(platforms), "{folder}: {manifest}");
        loads(&place, &format!("{folder}/manifest.yaml"));
        // the site is valid, too
        let site = format!("{folder}/site.yaml");
        place.write("app.yaml", "image: quay.io/x/app:v1\n");
        place.write("l.lock", "version: 1\n...\n");
        let audit = place.printed(
            4,
            &["audit", "app.yaml", "--lock", "l.lock", "--site", &site],
        );
        assert!(audit.contains("1 missing"), "{audit}");
    }
    // without `-o`, the files are written to the current folder
    place.printed(0, &["init"]);
    assert!(
        place.read("manifest.yaml").contains("kind: Manifest")
            && place.read("site.yaml").contains("# registry:")
    );
}

#[test]
fn init_keeps_existing_files_and_writes_all_or_nothing() {
    let place = Place::new();
    place.write("mine/site.yaml", "mine");
    let message = place.printed(2, &["init", "-o", "mine"]);
    assert!(
        message.contains(
            "mine/site.yaml already exists and was left unchanged\nhelp: name another folder with -o DIR"
        ),
        "{message}"
    );
    assert!(place.read("mine/site.yaml") == "mine" && !place.path("mine/manifest.yaml").exists());
    let is_untouched = || !place.path("new").exists();
    place.write(
        "cut.log",
        json!({"msg": "Image found", "source-image": "quay.io/x/app:v1"}).to_string(),
    );
    place.write(
        "typo.txt",
        "quay.io/x/app:v1\nquay.io/x/b:v 1\nquay.io/x/c:1\n",
    );
    place.write("moves.yaml", "image: quay.io/x/app:latest\n");
    place.write("zarf.yaml", "kind: ZarfPackageConfig\ncomponents: []\n");
    place.write("empty/readme.md", "");
    place.write("l.lock", "version: 1\nimages: []\n...\n");
    for (from, exit, words) in [
        ("nowhere", 2, "cannot read nowhere"),
        ("cut.log", 2, "cut.log:1:"),
        ("typo.txt", 2, "typo.txt:2:1"),
        ("l.lock", 2, "l.lock is already a lock"),
        ("empty", 2, "nothing to read was found"),
        (
            "moves.yaml",
            1,
            "names no image with a version, so nothing was written",
        ),
        ("zarf.yaml", 1, "landfall import zarf zarf.yaml"),
    ] {
        let message = place.printed(exit, &["init", from, "-o", "new"]);
        assert!(
            message.contains(words) && is_untouched(),
            "{from}: {message}"
        );
    }
    let shown = place.printed(0, &["init", "-o", "new", "--dry-run"]);
    assert!(
        shown.contains("kind: Manifest") && shown.contains("kind: Site") && is_untouched(),
        "{shown}"
    );
    place.write("file", "");
    assert!(
        place
            .printed(1, &["init", "-o", "file/below"])
            .contains("cannot write file/below")
    );
}

#[test]
fn the_command_that_init_prints_locks_its_manifest() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let registry = own_registry();
    let image = images.image("linux/amd64", &[images.layer(&[("b", b"1")])]);
    images.push(&registry.address, "app", "v1", &image);
    place.write("my list.txt", format!("{}/app:v1\n", registry.address));
    let report = place.json(0, &["init", "my list.txt", "-o", "a place"]);
    let next = report["next"].as_str().unwrap();
    assert_eq!(
        next,
        "landfall lock -f 'a place/manifest.yaml' --site 'a place/site.yaml'"
    );
    let mut shell = place.clean("sh");
    shell.args(["-c", &next.replacen("landfall", "\"$LANDFALL\"", 1)]);
    crate::support::run(shell.env("LANDFALL", env!("CARGO_BIN_EXE_landfall")));
    assert!(place.read("landfall.lock").contains("/app:v1"));
}

#[test]
fn discover_drafts_platforms() {
    let place = Place::new();
    place.write("a.yaml", PODS);
    place.write("b.yaml", PODS.replace("arm64", "amd64"));
    place.write("c.yaml", "image: quay.io/x/app:v1\n");
    let draft = |args: &[&str]| place.printed(0, &[&["discover"], args].concat());
    let both = draft(&["a.yaml", "b.yaml"]);
    assert!(
        both.contains(
            "\nplatforms: [linux/amd64, linux/arm64]  # from node selectors in b.yaml:2 and 1 more; "
        ),
        "{both}"
    );
    // a pod with this affinity runs on either, so an image may lack one of them
    place.write(
        "d.yaml",
        "nodeAffinity: {x: [{key: kubernetes.io/arch, operator: In, values: [amd64, ppc64le]}]}\n",
    );
    let either = draft(&["a.yaml", "d.yaml"]);
    let platforms = "\nplatforms: [\"linux/amd64?\", linux/arm64, \"linux/ppc64le?\"]  # from node";
    assert!(either.contains(platforms), "{either}");
    assert!(
        draft(&["a.yaml", "--platform", "linux/s390x"])
            .contains("\nplatforms: [linux/s390x]  # of all")
    );
    assert!(
        draft(&["c.yaml"])
            .contains("\n# platforms: [linux/amd64]  # of all images here; the default is all")
    );
}

/// A proxy is the only way out, and `init` asked for it: the next step goes through it. A command
/// that does not name the site says so.
#[test]
fn the_next_step_uses_the_proxy_of_the_site() {
    let place = Place::new();
    let proxy = ReverseProxy::new("", |_| ProxyAction::status(403));
    place.write("list.txt", "quay.io/a/app:v1\n");
    let report = place.json(0, &["init", "list.txt", "-o", "kit"]);
    let next = report["next"].as_str().unwrap();
    let site = place.read("kit/site.yaml");
    assert!(!site.contains("\nproxy:"), "{site}");
    let address = &proxy.address;
    let rules = format!("\nproxy: {{http: \"http://{address}\", https: \"http://{address}\"}}\n");
    place.write("kit/site.yaml", site + &rules);
    place.printed(1, &next.split(' ').skip(1).collect::<Vec<_>>());
    assert!(!proxy.requests().is_empty(), "{next}");
    let note = "kit/site.yaml is not used; add --site kit/site.yaml";
    for manifest in ["kit", "kit/manifest.yaml"] {
        let egress = ["egress", "-f", manifest, "--store", "store"];
        assert!(place.printed(0, &egress).contains(note), "{manifest}");
        let with_site = [&egress[..], &["--site", "kit/site.yaml"]].concat();
        assert!(!place.printed(0, &with_site).contains("is not used"));
    }
    // all shipped systems have a site
    let listed = place.json(0, &["init", "--list"]);
    for system in listed["systems"].as_array().unwrap() {
        let name = system["name"].as_str().unwrap();
        let report = place.json(0, &["init", "--from", name, "-o", name]);
        let expected = format!("landfall lock -f {name} --site {name}/site.yaml");
        assert_eq!(report["next"], expected);
        assert!(place.path(format!("{name}/site.yaml")).exists());
    }
}
