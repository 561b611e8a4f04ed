//! Commands do not replace files that people or other commands wrote, unless `--replace` is given.
//! They replace their own earlier output.

use crate::platforms::{files, lock, place};
use crate::support::Place;
use crate::support::images::sha256;
use crate::support::peers::file_server;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const KUBERNETES: [&str; 4] = [
    "registry.k8s.io/kube-apiserver:v1.35.8",
    "registry.k8s.io/pause:3.10.1",
    "registry.k8s.io/coredns/coredns:v1.13.1",
    "registry.k8s.io/etcd:3.6.6-0",
];

/// Asserts that a command keeps a file of a person, replaces it with `--replace`, and replaces its
/// own output again after `change`.
fn keeps_and_replaces(place: &Place, file: &str, code: i32, args: &[&str], change: &dyn Fn()) {
    place.write(file, "mine\n");
    let printed = place.printed(2, args);
    assert!(
        printed.contains(&format!("{file} exists, and this command did not write it"))
            && printed.contains("add --replace"),
        "{args:?}: {printed}"
    );
    assert_eq!(place.read(file), "mine\n", "{args:?}");
    place.printed(code, &[args, &["--replace"]].concat());
    let first = place.read_bytes(file);
    assert_ne!(first, b"mine\n", "{args:?}");
    place.printed(code, args);
    assert_eq!(place.read_bytes(file), first, "{args:?}");
    change();
    place.printed(code, args);
    assert_ne!(place.read_bytes(file), first, "{args:?}");
}

#[test]
fn render_keeps_the_manifests_of_the_catalogue() {
    let place = Place::new();
    place.ok(&["init", "--from", "kubeadm", "-o", "kit"]);
    let manifests = files(&place.path("kit"));
    place.write("landfall.lock", lock(&KUBERNETES));
    let args = ["render", "kubeadm", "--site", "kit/site.yaml", "-o", "kit"];
    let printed = place.ok(&args);
    assert!(printed.contains("kit/kubeadm-config.yaml"), "{printed}");
    let written = files(&place.path("kit"));
    for (path, text) in &manifests {
        assert_eq!(&written[path], text, "{}", path.display());
    }
    assert_eq!(written.len(), manifests.len() + 1);
    // no platform writes a file with the path of a manifest of the catalogue: both folders have a
    // folder for each system or platform
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let paths = |folder: &str| -> BTreeSet<PathBuf> {
        let paths = files(&root.join(folder)).into_keys();
        paths.map(|path| path.iter().skip(1).collect()).collect()
    };
    let manifests = paths("manifests");
    assert!(manifests.contains(Path::new("kubeone.yaml")));
    let rendered = paths("tests/data/platforms");
    assert!(rendered.contains(Path::new("kubeone-cluster.yaml")));
    let both: Vec<_> = rendered.intersection(&manifests).collect();
    assert!(both.is_empty(), "{both:?}");
}

#[test]
fn rendered_files_replace_only_rendered_files() {
    let place = place("", &KUBERNETES);
    let site = |address: &str| {
        let site = format!(
            "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"{address}\", plainHTTP: true}}\n\
             consumers: [kubeadm]\n"
        );
        place.write("site.yaml", site);
    };
    let moved = || site("mirror.test:5000");
    for (platform, file) in [
        ("kubeadm", "out/kubeadm-config.yaml"),
        (
            "containerd",
            "out/etc/containerd/certs.d/registry.k8s.io/hosts.toml",
        ),
        // JSON has no comments
        ("docker", "out/etc/docker/daemon.json"),
        ("no-proxy", "out/no-proxy"),
    ] {
        site("172.20.0.2:5000");
        fs::create_dir_all(place.path("out")).unwrap();
        let out = if platform == "no-proxy" { file } else { "out" };
        let args = ["render", platform, "--site", "site.yaml", "-o", out];
        keeps_and_replaces(&place, file, 0, &args, &moved);
        // nothing is written if one file is refused
        place.write(file, "mine\n");
        if platform != "containerd" {
            continue;
        }
        fs::remove_file(place.path("out/config-2.x.toml")).unwrap();
        place.printed(2, &args);
        assert!(!place.path("out/config-2.x.toml").exists());
    }
    // the output of another platform is not replaced either
    place.write(
        "out/kubeadm-config.yaml",
        "# Written by `landfall render kubeadm2`; render it again instead of editing it.\n",
    );
    let args = ["render", "kubeadm", "--site", "site.yaml", "-o", "out"];
    place.printed(2, &args);
    // a file with the new content is not replaced
    fs::remove_dir_all(place.path("out")).unwrap();
    let docker = ["render", "docker", "--site", "site.yaml", "-o", "out"];
    place.ok(&docker);
    fs::remove_file(place.path("out/.landfall-files")).unwrap();
    place.ok(&docker);
    assert!(!place.path("out/.landfall-files").exists());
}

#[test]
fn drafts_that_were_edited_are_kept() {
    let place = Place::new();
    let pods = |tag: &str| {
        place.write("pods.yaml", format!("image: quay.io/x/app:{tag}\n"));
    };
    place.write("landfall.lock", lock(&KUBERNETES));
    for args in [
        &["discover", "pods.yaml", "-o", "draft.yaml"][..],
        &["audit", "pods.yaml", "--missing", "draft.yaml"],
    ] {
        pods("v1");
        let code = if args[0] == "audit" { 4 } else { 0 };
        keeps_and_replaces(&place, "draft.yaml", code, args, &|| pods("v2"));
        let draft = place.read("draft.yaml");
        // the draft can be locked
        assert!(draft.contains("- quay.io/x/app:v2"), "{draft}");
        let edited = draft.replace("app:v2", "app:v3");
        place.write("draft.yaml", &edited);
        place.printed(2, args);
        assert_eq!(place.read("draft.yaml"), edited);
        place.printed(code, &[args, &["--replace"]].concat());
        assert_eq!(place.read("draft.yaml"), draft);
    }
}

#[test]
fn lists_and_reports_replace_only_lists_and_reports() {
    let place = Place::new();
    let locks = |images: &[&str]| {
        place.write("landfall.lock", lock(images));
    };
    for format in [
        "images-txt",
        "hauler",
        "skopeo-sync",
        "regsync",
        "zarf",
        "imgpkg-lock",
        "sources",
    ] {
        locks(&KUBERNETES);
        let mut args = vec!["export", format, "-o", "list"];
        if format == "regsync" {
            args.extend(["--to", "172.20.0.2:5000"]);
        }
        let code = if format == "zarf" { 3 } else { 0 };
        keeps_and_replaces(&place, "list", code, &args, &|| locks(&KUBERNETES[..2]));
    }
    // the list of another format is not replaced
    place.printed(2, &["export", "hauler", "-o", "list"]);
    for file in ["report.json", "report.html"] {
        place.write(file, "mine\n");
        let args = ["ls", "--lock", "landfall.lock", "--report", file];
        let printed = place.printed(2, &args);
        assert!(
            printed.contains("name another file for --report"),
            "{printed}"
        );
        assert_eq!(place.read(file), "mine\n");
        // a command that fails before it begins does not replace it either
        place.printed(2, &[&args[..], &["--site", "none.yaml"]].concat());
        assert_eq!(place.read(file), "mine\n");
        place.write(file, "");
        place.printed(0, &args);
        place.printed(
            0,
            &["diff", "landfall.lock", "landfall.lock", "--report", file],
        );
        assert!(place.read(file).contains("diff"), "{}", place.read(file));
    }
    // a push is refused before its first request
    place.write("receipt.json", "mine\n");
    let push = ["push", "--to", "127.0.0.1:9", "--receipt", "receipt.json"];
    let printed = place.printed(2, &push);
    assert!(
        printed.contains("name another file for the receipt"),
        "{printed}"
    );
    place.write("man/landfall-lock.1", "mine\n");
    place.printed(2, &["man", "-o", "man"]);
    assert!(!place.path("man/landfall.1").exists());
    place.printed(0, &["man", "-o", "man", "--replace"]);
    place.printed(0, &["man", "-o", "man"]);
}

#[test]
fn content_replaces_only_content_of_landfall() {
    let place = Place::new();
    let server = file_server(&place.path("www"));
    let manifest = |text: &str| {
        place.write("www/a.sh", text);
        let url = format!("{}/a.sh", server.url());
        place.write(
            "m.yaml",
            format!(
                "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\nfiles:\n\
                 - {{url: \"{url}\", checksum: \"{}\"}}\n",
                sha256(text.as_bytes())
            ),
        );
        place.ok(&["lock", "-f", "m.yaml", "--store", "s"]);
        place.ok(&["pull", "--store", "s"]);
    };
    manifest("one\n");
    let args = ["export", "files", "--store", "s", "-o", "out"];
    let file = &format!("out/{}/a.sh", server.address);
    keeps_and_replaces(&place, file, 0, &args, &|| manifest("two\n"));
    assert_eq!(place.read(file), "two\n");

    place.write("B", "mine\n");
    place.write("V.0001", "mine\n");
    for (args, file) in [
        (&["pack", "--store", "s", "-o", "B"][..], "B"),
        (
            &["pack", "--store", "s", "-o", "V", "--volume-size", "60000"],
            "V.0001",
        ),
        (&["pull", "--store", "s", "--bundle", "B"], "B"),
    ] {
        // a dry run refuses it too, except for volumes, whose number it does not know
        let dry_run = [args, &["--dry-run"]].concat();
        let runs = [args, &dry_run[..]];
        let count = if file == "B" { 2 } else { 1 };
        for args in &runs[..count] {
            let printed = place.printed(2, args);
            assert!(
                printed.contains(&format!("{file} exists and is not a bundle")),
                "{printed}"
            );
        }
        assert_eq!(place.read(file), "mine\n");
    }
    for file in ["S.sha256sums", "S.sha256sums.sig"] {
        place.write(file, "mine\n");
        for flags in [&["--volume-size", "60000"][..], &["--include-self"]] {
            let pack = ["pack", "--store", "s", "-o", "S"];
            let printed = place.printed(2, &[&pack, flags].concat());
            assert!(
                printed.contains(&format!(
                    "{file} exists and has no checksums of this bundle"
                )),
                "{printed}"
            );
        }
        assert_eq!(place.read(file), "mine\n");
        fs::remove_file(place.path(file)).unwrap();
    }
    let left: Vec<String> = fs::read_dir(place.dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(['B', 'S', 'V']))
        .filter(|name| name != "B" && name != "V.0001")
        .collect();
    assert_eq!(left, [""; 0]);
    // the checksums of an older bundle with the name are replaced, whatever characters it has
    for name in ["D", r"odd\name", "line\nbreak"] {
        for size in ["60000", "5000"] {
            place.ok(&["pack", "--store", "s", "-o", name, "--volume-size", size]);
        }
    }
    let rebuild = ["pack", "--store", "s", "--like", "D", "--only-volume", "1"];
    let printed = place.printed(2, &[&rebuild[..], &["-o", "V"]].concat());
    assert!(
        printed.contains("V.0001 exists and is not a bundle"),
        "{printed}"
    );
    assert_eq!(place.read("V.0001"), "mine\n");
    place.write("D.0001", "damaged");
    place.printed(0, &rebuild);
    // a report does not replace the result or the log of its own command
    for (more, verify) in [
        (&["-o", "R"][..], &["verify", "R"][..]),
        (&["-o", "other", "--log", "R"], &["log", "verify", "R"]),
    ] {
        let pack = [&["pack", "--store", "s", "--report", "R"], more].concat();
        let printed = place.printed(1, &pack);
        assert!(
            printed.contains("R exists and is not a report"),
            "{printed}"
        );
        place.printed(0, verify);
        fs::remove_file(place.path("R")).unwrap();
    }
    fs::remove_file(place.path("B")).unwrap();
    for text in ["two\n", "three\n"] {
        manifest(text);
        place.ok(&["pack", "--store", "s", "-o", "B"]);
    }
    for (verb, file) in [("sbom", "sbom.json"), ("report", "page.html")] {
        let args = [verb, "B", "-o", file];
        keeps_and_replaces(&place, file, 0, &args, &|| {
            manifest(verb);
            place.ok(&["pack", "--store", "s", "-o", "B"]);
        });
    }
}

#[test]
fn rewritten_files_replace_only_rewritten_files() {
    let place = Place::new();
    place.write("landfall.lock", lock(&KUBERNETES));
    let pods = |text: &str| {
        place.write(
            "pods/pod.yaml",
            format!("image: {}\n# {text}\n", KUBERNETES[1]),
        );
        place.write("pods/README.md", text);
    };
    pods("one");
    place.write("out/README.md", "mine\n");
    let args = ["rewrite", "pods", "-o", "out", "--to", "172.20.0.2:5000"];
    keeps_and_replaces(&place, "out/pod.yaml", 0, &args, &|| pods("two"));
    assert_eq!(place.read("out/README.md"), "mine\n");
    // a file with the new content is not replaced
    fs::remove_file(place.path("out/.landfall-files")).unwrap();
    place.printed(0, &args);
}
