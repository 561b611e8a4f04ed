//! `landfall rewrite`: the command on files.

use super::{
    DEPLOYMENT, IMAGES, KKP, Place, deployment, digest, err, lock, out, replaced,
    rewritten_deployment, rewritten_kkp,
};
use crate::support::library::Digest;
use crate::support::skip;
use std::fs;

#[test]
fn a_deployment_changes_only_in_its_references() {
    let place = Place::new(&[("d.yaml", &deployment())]);
    let output = place.run(&["d.yaml"], 0);
    assert_eq!(out(&output), rewritten_deployment());
    assert!(
        err(&output).contains("d.yaml:27:25: left quay.io/prometheus/node-exporter:v1.8.0"),
        "{}",
        err(&output)
    );
    assert!(
        err(&output).contains("d.yaml:29:24: left quay.io/prometheus/node-exporter: without a tag")
    );
    assert!(!err(&output).contains("never/heard"));
}

/// A script composes URLs from a folder: the folder is reported, at any depth above locked files.
#[test]
fn folders_of_locked_files_in_scripts_are_left() {
    let script = "#!/bin/sh\nBASE=https://dl.k8s.io/release/\ncurl -LO $BASE/v1.33.4/x\n\
                  # see https://dl.k8s.io/ and https://dl.k8s.io/other/\n";
    let kubelet = "https://dl.k8s.io/release/v1.33.4/bin/linux/amd64/kubelet";
    let file = format!(
        "files:\n- {{name: \"{kubelet}\", digest: \"{}\", size: 9}}\n",
        digest("k")
    );
    let locked = lock(&IMAGES) + &file;
    let place = Place::new(&[("s.sh", script), ("landfall.lock", &locked)]);
    let printed = err(&place.run(&["s.sh"], 0));
    assert!(
        printed
            .contains("s.sh:2:6: left https://dl.k8s.io/release/: it is a folder of locked files"),
        "{printed}"
    );
    assert_eq!(printed.matches("folder of locked").count(), 1, "{printed}");
}

#[test]
fn the_note_that_nothing_is_known_is_one_line() {
    let place = Place::new(&[("v.yaml", "image: never/heard:v1\n")]);
    let output = place.run(&["v.yaml", "--check"], 0);
    let printed = out(&output) + &err(&output);
    assert!(
        printed.contains("usual for Helm values: the references are defaults"),
        "{printed}"
    );
    assert!(!printed.contains("\\n"), "{printed}");
}

/// A chart may have a file with such a name.
#[test]
fn the_name_of_a_file_begins_no_line() {
    let name = "x\ndone: 3 images\ny.yaml";
    let text = "image: quay.io/prometheus/node-exporter:v1.8.0\n";
    let place = Place::new(&[(name, text)]);
    for mode in ["--check", "--diff"] {
        let output = place.run(&[name, mode], 0);
        let printed = out(&output) + &err(&output);
        assert!(printed.contains("left quay.io/"), "{printed}");
        let is_forged = printed.lines().any(|line| line.starts_with("done:"));
        assert!(!is_forged, "{printed}");
    }
}

#[test]
fn kkp_values_with_references_in_parts_are_rewritten() {
    let place = Place::new(&[("values.yaml", KKP)]);
    let output = place.run(&["values.yaml"], 0);
    assert_eq!(out(&output), rewritten_kkp());
    let left = "values.yaml:33:19: left quay.io/brancz/kube-rbac-proxy:v0.18.0: \
                the lock has this repository only as v0.19.0";
    assert!(err(&output).contains(left), "{}", err(&output));
}

#[test]
fn the_rewritten_names_match_the_kubermatic_whitelisting_page() {
    let node = "pause_image: \"k8s.gcr.io/pause:3.1\"\nhyperkube_image: \"gcr.io/google_containers/hyperkube-amd64\"\n";
    let place = Place::new(&[("datacenters.yaml", node)]);
    assert_eq!(
        out(&place.run(&["datacenters.yaml"], 0)),
        "pause_image: \"172.20.0.2:5000/kubernetes/pause:3.1\"\n\
         hyperkube_image: \"172.20.0.2:5000/kubernetes/hyperkube-amd64\"\n"
    );
    let to = place.run(&["datacenters.yaml", "--to", "harbor.example:8443/lib"], 0);
    assert!(out(&to).contains("\"harbor.example:8443/lib/kubernetes/pause:3.1\""));
}

#[test]
fn a_target_that_yaml_would_misread_is_quoted() {
    let place = Place::new(&[(
        "x.yaml",
        "a: k8s.gcr.io/pause:3.1\nb: 'k8s.gcr.io/pause:3.1'\n",
    )]);
    assert_eq!(
        out(&place.run(&["x.yaml", "--to", "[fd00::1]:5000"], 0)),
        "a: \"[fd00::1]:5000/kubernetes/pause:3.1\"\nb: '[fd00::1]:5000/kubernetes/pause:3.1'\n"
    );
}

#[test]
fn stdin_is_rewritten_only_to_stdout() {
    let place = Place::new(&[]);
    let output = place
        .command(&["-", "--to", "r:5000"])
        .write_stdin("- k8s.gcr.io/pause:3.1")
        .output()
        .unwrap();
    assert_eq!(out(&output), "- r:5000/pause:3.1");
    place.run(&["-", "--in-place"], 2);
    place.run(&["-", "site.yaml", "--check"], 2);
}

#[test]
fn line_endings_and_byte_order_mark_are_kept() {
    let text = "\u{feff}# é\r\nimage: 'k8s.gcr.io/pause:3.1'\r\nother: [nginx:1.27,\t\"é\"]\r\n";
    let place = Place::new(&[("x.yaml", text)]);
    let expected = replaced(
        text,
        &[
            ("k8s.gcr.io/pause", "172.20.0.2:5000/kubernetes/pause"),
            ("nginx:1.27", "172.20.0.2:5000/library/nginx:1.27"),
        ],
    );
    let report = place.json(&["x.yaml"], 0);
    assert_eq!(report["text"], expected);
    let places: Vec<_> = report["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (&c["line"], &c["column"]))
        .collect();
    assert_eq!(places, [(&2.into(), &9.into()), (&3.into(), &9.into())]);
}

#[test]
fn in_place_keeps_mode_and_owner_and_a_second_run_writes_nothing() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let place = Place::new(&[
        ("t/d.yaml", &deployment()),
        ("t/v/values.yml", KKP),
        ("t/.git/x.yaml", DEPLOYMENT),
    ]);
    place.put("outside.yaml", "image: k8s.gcr.io/pause:3.1\n");
    std::os::unix::fs::symlink("../outside.yaml", place.path("t/link.yaml")).unwrap();
    std::os::unix::fs::symlink("v/values.yml", place.path("t/values.yaml")).unwrap();
    // only root may change the owner; if another user runs the test, the owner stays the same
    let _ = std::os::unix::fs::chown(place.path("t/d.yaml"), Some(1234), Some(4321));
    fs::set_permissions(place.path("t/d.yaml"), fs::Permissions::from_mode(0o640)).unwrap();
    let about = || {
        let about = fs::metadata(place.path("t/d.yaml")).unwrap();
        (about.mode(), about.uid(), about.gid())
    };
    let before = about();

    let output = place.run(&["t", "--in-place"], 0);
    assert_eq!(place.read("t/d.yaml"), rewritten_deployment());
    assert_eq!(place.read("t/v/values.yml"), rewritten_kkp());
    assert_eq!(about(), before);
    assert!(
        fs::symlink_metadata(place.path("t/values.yaml"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(place.read("t/.git/x.yaml"), DEPLOYMENT);
    assert_eq!(place.read("outside.yaml"), "image: k8s.gcr.io/pause:3.1\n");
    assert!(out(&output).contains(
        "t/d.yaml:16:36: k8s.gcr.io/pause:3.1 -> 172.20.0.2:5000/kubernetes/pause:3.1\n"
    ));

    let inode = || fs::metadata(place.path("t/d.yaml")).unwrap().ino();
    let before = inode();
    let again = place.json(&["t", "-i"], 0);
    assert_eq!(
        (again["changes"].as_array().unwrap().len(), inode()),
        (0, before)
    );
    assert_eq!(fs::read_dir(place.path("t")).unwrap().count(), 5);
}

#[test]
fn check_exits_with_4_if_a_reference_must_be_rewritten() {
    let place = Place::new(&[
        ("t/d.yaml", &deployment()),
        ("t/ok.json", r#"{"a": ["x", 1, null]}"#),
    ]);
    let output = place.run(&["t", "--check"], 4);
    assert!(
        out(&output).contains("t/d.yaml:19:26: nginx:1.27 -> 172.20.0.2:5000/library/nginx:1.27\n"),
        "{}",
        out(&output)
    );
    assert_eq!(place.read("t/d.yaml"), deployment());
    let report = place.json(&["t", "--check"], 4);
    assert_eq!(report["status"], "refused");
    let change = serde_json::json!({
        "file": "t/d.yaml", "line": 16, "column": 36, "from": "k8s.gcr.io/pause:3.1",
        "to": "172.20.0.2:5000/kubernetes/pause:3.1", "item": "k8s.gcr.io/pause:3.1", "position": "container",
    });
    assert_eq!(report["changes"][1], change);
    assert_eq!(
        report["left"][0]["reference"],
        "quay.io/prometheus/node-exporter:v1.8.0"
    );
    place.run(&["t", "--in-place"], 0);
    place.run(&["t", "--check"], 0);
}

#[test]
fn patch_with_the_diff_gives_the_rewritten_file() {
    let place = Place::new(&[("d.yaml", &deployment())]);
    let diff = out(&place.run(&["d.yaml", "--diff"], 0));
    assert!(
        diff.starts_with("--- a/d.yaml\n+++ b/d.yaml\n@@ "),
        "{diff}"
    );
    let lines = |sign: &str| -> Vec<String> {
        diff.lines()
            .skip(2)
            .filter_map(|line| line.strip_prefix(sign))
            .map(str::to_owned)
            .collect()
    };
    let old = deployment();
    let new = rewritten_deployment();
    let changed = old.lines().zip(new.lines()).filter(|(old, new)| old != new);
    let (removed, added): (Vec<&str>, Vec<&str>) = changed.unzip();
    assert_eq!(
        (lines("-"), lines("+")),
        (
            removed.iter().map(|l| (*l).to_owned()).collect(),
            added.iter().map(|l| (*l).to_owned()).collect()
        )
    );
    assert_eq!(place.read("d.yaml"), deployment());
    place.put("diff", &diff);
    let mut git = std::process::Command::new("git");
    // a git repository around the temporary folder is ignored
    git.env("GIT_CEILING_DIRECTORIES", place.0.path().parent().unwrap())
        .current_dir(place.0.path());
    let applied = git.args(["apply", "diff"]).status();
    match applied {
        Ok(status) => assert!(
            status.success() && place.read("d.yaml") == rewritten_deployment(),
            "{diff}"
        ),
        Err(_) => skip(
            "rewrite::command::patch_with_the_diff_gives_the_rewritten_file",
            "this machine has no git",
        ),
    }
}

#[test]
fn an_output_folder_is_complete_and_is_not_read_as_input() {
    let template = "image: {{ .Values.image }}:{{ .Values.tag }}\n";
    let files = [
        ("t/a/d.yaml", &*deployment()),
        ("t/plain.yml", "a: 1\n"),
        ("t/tpl.yaml", template),
    ];
    let place = Place::new(&files);
    for _ in 0..2 {
        let report = place.json(&["t", "-o", "t/out"], 0);
        assert_eq!(report["files"].as_array().unwrap().len(), 3);
    }
    assert_eq!(place.read("t/out/a/d.yaml"), rewritten_deployment());
    assert_eq!(place.read("t/out/plain.yml"), "a: 1\n");
    assert_eq!(place.read("t/out/tpl.yaml"), template);
    place.put("u/plain.yml", "b: 1\n");
    let clash = place.run(&["t", "u", "--out", "out"], 2);
    assert!(
        err(&clash).contains("t/plain.yml and u/plain.yml"),
        "{}",
        err(&clash)
    );
    assert!(err(&place.run(&["u", "--out", "./u/"], 2)).contains("--in-place"));
}

#[test]
fn templates_are_rewritten_word_by_word_and_files_that_are_not_utf8_are_reported() {
    let template = "a: 1\nimage: k8s.gcr.io/pause:3.1\nb: {{ x\n";
    let place = Place::new(&[
        ("t/tpl.yaml", template),
        ("t/x.yaml", "i: k8s.gcr.io/pause:3.1\n"),
    ]);
    fs::write(place.path("t/latin.yaml"), b"a: \xe9\n").unwrap();
    let rewritten = template.replace("k8s.gcr.io", "172.20.0.2:5000/kubernetes");
    assert_eq!(out(&place.run(&["t/tpl.yaml"], 0)), rewritten);
    let alone = place.run(&["t/latin.yaml"], 1);
    assert!(
        err(&alone).starts_with("landfall: t/latin.yaml: not UTF-8"),
        "{}",
        err(&alone)
    );
    assert_eq!(out(&alone), "");
    let some = place.run(&["t", "-i"], 3);
    assert!(
        err(&some).contains("t/latin.yaml: not UTF-8"),
        "{}",
        err(&some)
    );
    assert_eq!(place.read("t/tpl.yaml"), rewritten);
    assert_eq!(
        place.read("t/x.yaml"),
        "i: 172.20.0.2:5000/kubernetes/pause:3.1\n"
    );
    // the unread file may have references, so landfall does not say that no file has any
    place.put("t/tpl.yaml", "a: 1\n");
    place.put("t/x.yaml", "b: 1\n");
    let none = place.run(&["t", "-i"], 3);
    assert!(
        out(&none).starts_with("rewritten: 0 (in 0 of 3 files); 1 files not rewritten\n"),
        "{}",
        out(&none)
    );
}

#[test]
fn a_rewrite_that_changes_nothing_explains_why() {
    let place = Place::new(&[(
        "values.yaml",
        "dex:\n  ingress: {host: kubermatic.corp.example}\n",
    )]);
    for mode in ["--check", "--in-place", "--diff"] {
        let output = place.run(&["values.yaml", mode], 0);
        let printed = out(&output) + &err(&output);
        assert!(
            printed.contains("defaults in the charts"),
            "{mode}: {printed}"
        );
    }
}

const KUBELET: &str = "https://dl.k8s.io/v1.33.4/bin/linux/amd64/kubelet";

#[test]
fn urls_of_mirrored_files_are_rewritten_to_the_file_server() {
    let script = format!(
        "curl {KUBELET}\ncurl https://dl.k8s.io/$V/bin/linux/amd64/kubelet\ncurl https://x.example/y.tgz\n"
    );
    let place = Place::new(&[("s.sh", &script)]);
    let files = format!(
        "files: [{{name: '{KUBELET}', digest: {}, size: 1}}]\n",
        digest(KUBELET)
    );
    place.put("landfall.lock", &(lock(&IMAGES) + &files));
    let output = place.run(
        &[
            "s.sh",
            "--check",
            "--files",
            "http://172.20.0.2:8080/files/",
        ],
        4,
    );
    let to = KUBELET.replace("https://", "http://172.20.0.2:8080/files/");
    assert!(
        out(&output).contains(&format!("s.sh:1:6: {KUBELET} -> {to}\n")),
        "{}",
        out(&output)
    );
    assert!(out(&output).contains(&format!(
        "/$V/bin/linux/amd64/kubelet (a prefix; it can become {KUBELET})\n"
    )));
    let report = place.json(
        &["s.sh", "--check", "--files", "http://172.20.0.2:8080/files"],
        4,
    );
    assert_eq!(
        report["changes"][1]["reaches"],
        serde_json::json!([KUBELET])
    );
    // the site names no file server
    let none = place.run(&["s.sh", "--check"], 0);
    assert!(
        out(&none).contains("s.sh:1:6: left") && out(&none).contains("--files"),
        "{}",
        out(&none)
    );

    place.run(
        &["s.sh", "-i", "--files", "http://172.20.0.2:8080/files"],
        0,
    );
    place.run(
        &[
            "s.sh",
            "-i",
            "--files",
            "http://172.20.0.2:8080/files",
            "--reverse",
        ],
        0,
    );
    assert_eq!(place.read("s.sh"), script);
}

#[test]
fn a_reverse_rewrite_restores_the_file() {
    let text = "a: quay.io/prometheus/node-exporter:v1.9.0\nb: k8s.gcr.io/pause:3.1\n";
    let place = Place::new(&[("x.yaml", text)]);
    place.run(&["x.yaml", "-i"], 0);
    assert!(
        place
            .read("x.yaml")
            .contains("b: 172.20.0.2:5000/kubernetes/pause:3.1")
    );
    place.run(&["x.yaml", "-i", "--reverse"], 0);
    assert_eq!(place.read("x.yaml"), text);
    place.run(&["x.yaml", "--reverse", "--pin"], 2);
    let pinned = out(&place.run(&["x.yaml", "--pin"], 0));
    assert!(
        pinned.contains(&format!("pause:3.1@{}", digest("k8s.gcr.io/pause:3.1"))),
        "{pinned}"
    );
    let all = out(&place
        .command(&["-", "--comments"])
        .args(["--site", "site.yaml"])
        .write_stdin("# nginx:1.27")
        .output()
        .unwrap());
    assert_eq!(all, "# 172.20.0.2:5000/library/nginx:1.27");
}

/// A receipt of a push that replaced the digest `old` of node-exporter by `new`.
fn receipt(old: &Digest, new: &Digest) -> String {
    format!(
        r#"{{"version":1,"registry":"172.20.0.2:5000","lock":"{old}","items":[{{"name":"quay.io/prometheus/node-exporter:v1.9.0",
        "at":"prometheus/node-exporter:v1.9.0","digest":"{new}","trimmedFrom":"{old}"}}],"blobs":{{}}}}"#
    )
}

#[test]
fn the_digest_of_a_trimmed_index_is_read_from_the_receipt() {
    let old = digest("quay.io/prometheus/node-exporter:v1.9.0");
    let new = digest("trimmed");
    let place = Place::new(&[(
        "x.yaml",
        &format!("a: quay.io/prometheus/node-exporter@{old}\n"),
    )]);
    place.put("receipt.json", &receipt(&old, &new));
    let output = place.run(&["x.yaml", "--receipt", "receipt.json"], 0);
    assert_eq!(
        out(&output),
        format!("a: 172.20.0.2:5000/prometheus/node-exporter@{new}\n")
    );
    place.put("receipt.json", "{}");
    assert!(err(&place.run(&["x.yaml", "--receipt", "receipt.json"], 2)).contains("receipt.json"));
}

/// Kubernetes reports `ErrImagePull` if the registry has only the trimmed index.
#[test]
fn a_pin_to_an_index_that_may_be_trimmed_is_noted() {
    let name = "quay.io/prometheus/node-exporter:v1.9.0";
    let [old, new] = [digest(name), digest("trimmed")];
    let line = format!("- {{name: \"{name}\", digest: \"{old}\",");
    let locked = lock(&IMAGES);
    assert!(locked.contains(&line), "{locked}");
    let locked = locked.replace(
        &line,
        &format!("{line} platforms: [linux/amd64], trimmed: {{digest: \"{new}\", size: 1}},"),
    );
    let place = Place::new(&[
        ("x.yaml", &format!("image: {name}\n")),
        ("landfall.lock", &locked),
        ("receipt.json", &receipt(&old, &new)),
    ]);
    let noted = |args: &[&str]| {
        let printed = err(&place.run(&[&["x.yaml"], args].concat(), 0));
        printed.contains(&format!("the lock omits platforms of {name}: a registry"))
    };
    assert!(noted(&["--pin"]));
    assert!(!noted(&[]), "a tag is delivered for both");
    assert!(!noted(&["--pin", "--receipt", "receipt.json"]));
}

#[test]
fn a_kustomize_component_covers_what_kustomize_can_change() {
    let pod = "kind: Pod\nspec:\n  containers:\n  - image: nginx:1.27\n  - image: k8s.gcr.io/pause:3.1\n    args: [--x=nginx:1.27]\n\
               \x20 - image: quay.io/prometheus/node-exporter:v1.9.0\n  - image: quay.io/prometheus/node-exporter:v0\n";
    let place = Place::new(&[("t/pod.yaml", pod)]);
    let output = place.run(&["t", "--kustomize"], 0);
    let expected = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nimages:\n\
                    - name: \"k8s.gcr.io/pause\"\n  newName: \"172.20.0.2:5000/kubernetes/pause\"\n\
                    - name: \"nginx\"\n  newName: \"172.20.0.2:5000/library/nginx\"\n";
    assert_eq!(out(&output), expected);
    assert!(
        err(&output).contains("t/pod.yaml:6:16: kustomize cannot change nginx:1.27"),
        "{}",
        err(&output)
    );
    assert!(err(&output).contains("quay.io/prometheus/node-exporter is left out"));
}

#[test]
fn a_kustomize_component_sets_the_digest_of_a_trimmed_index() {
    let old = digest("quay.io/prometheus/node-exporter:v1.9.0");
    let new = digest("trimmed");
    let image = format!("quay.io/prometheus/node-exporter:v1.9.0@{old}");
    let pod = |more: &str| {
        format!("kind: Pod\nspec:\n  containers:\n  - image: {image}\n  - image: {image}\n{more}")
    };
    let place = Place::new(&[
        ("t/pod.yaml", &pod("")),
        ("receipt.json", &receipt(&old, &new)),
    ]);
    let arguments = ["t", "--kustomize", "--receipt", "receipt.json"];
    let entry = "images:\n- name: \"quay.io/prometheus/node-exporter\"\n  \
                 newName: \"172.20.0.2:5000/prometheus/node-exporter\"\n";
    let output = place.run(&arguments, 0);
    let expected = format!("{entry}  newTag: \"v1.9.0\"\n  digest: \"{new}\"\n");
    assert!(out(&output).ends_with(&expected), "{}", out(&output));
    assert!(!err(&output).contains("cannot change"), "{}", err(&output));
    // an entry of `images` applies to all references to the image, so it cannot set the digest only
    // for the references that have one
    place.put(
        "t/pod.yaml",
        &pod("  - image: quay.io/prometheus/node-exporter:v1.9.0\n"),
    );
    let output = place.run(&arguments, 0);
    assert!(out(&output).ends_with(entry), "{}", out(&output));
    for line in [4, 5] {
        let note = format!("t/pod.yaml:{line}:12: kustomize cannot change the digest of {image}");
        assert!(err(&output).contains(&note), "{}", err(&output));
    }
}

#[test]
fn charts_in_archives_are_rewritten() {
    let place = Place::new(&[
        ("c/Chart.yaml", "name: c\nversion: 1.0.0\n"),
        ("c/values.yaml", KKP),
        (
            "c/templates/d.yaml",
            "{{ if x }}\nimage: nginx:1.27\n{{ end }}\n",
        ),
        ("c/README.md", "nginx:1.27\n"),
    ]);
    let tar = |arguments: &[&str]| {
        let done = std::process::Command::new("tar")
            .args(arguments)
            .current_dir(place.path(""))
            .status()
            .unwrap();
        assert!(done.success());
    };
    tar(&["czf", "charts.tgz", "c"]);
    assert!(err(&place.run(&["charts.tgz"], 2)).contains("--out"));
    let output = place.run(&["charts.tgz", "-o", "new"], 0);
    assert!(
        out(&output).contains("charts.tgz/c/templates/d.yaml:2:8: nginx:1.27 -> "),
        "{}",
        out(&output)
    );
    place.run(&["charts.tgz", "-i"], 0);
    let bytes = |name: &str| fs::read(place.path(name)).unwrap();
    assert_eq!(bytes("charts.tgz"), bytes("new/charts.tgz"));
    fs::remove_dir_all(place.path("c")).unwrap();
    tar(&["xzf", "charts.tgz"]);
    assert_eq!(place.read("c/values.yaml"), rewritten_kkp());
    assert_eq!(place.read("c/README.md"), "nginx:1.27\n");
    place.run(&["charts.tgz", "--check"], 0);
    place.put("bad.tgz", "x");
    assert!(err(&place.run(&["bad.tgz", "--check"], 1)).contains("not a readable .tgz"));
}

#[test]
fn only_certain_files_of_a_folder_are_read() {
    let image = "nginx:1.27";
    let names = [
        "Dockerfile",
        "a.sh",
        "b.toml",
        "c.ini",
        "d.tpl",
        "user-data",
        "e.yaml",
        "kustomization",
    ];
    let place = Place::new(&[]);
    names
        .iter()
        .for_each(|name| place.put(&format!("t/{name}"), &format!("FROM {image}\n")));
    place.put("t/run", &format!("#!/bin/sh\nctr pull {image}\n"));
    let others = ["README.md", "images.txt", "x.go", "plain"];
    others
        .iter()
        .for_each(|name| place.put(&format!("t/{name}"), &format!("FROM {image}\n")));
    fs::write(place.path("t/binary.sh"), b"\0\x01nginx:1.27").unwrap();
    place.run(&["t", "-i"], 0);
    for name in names.iter().chain(&["run"]) {
        assert!(
            place
                .read(&format!("t/{name}"))
                .contains("172.20.0.2:5000/library/nginx:1.27"),
            "{name}"
        );
    }
    others.iter().for_each(|name| {
        assert_eq!(
            place.read(&format!("t/{name}")),
            format!("FROM {image}\n"),
            "{name}"
        )
    });
    assert_eq!(
        out(&place.run(&["t/x.go"], 0)),
        "FROM 172.20.0.2:5000/library/nginx:1.27\n"
    );
}

#[test]
fn wrong_use_is_refused() {
    let place = Place::new(&[("t/d.yaml", DEPLOYMENT)]);
    place.run(&["t"], 2);
    place.run(&["t/d.yaml", "site.yaml"], 2);
    place.run(&["gone.yaml", "--check"], 2);
    place.run(&["t", "--check", "--diff"], 2);
    place.put("empty/readme.md", "");
    place.run(&["empty", "--check"], 2);
    let no_target = place.command(&["t/d.yaml"]).output().unwrap();
    assert_eq!(no_target.status.code(), Some(2));
    fs::remove_file(place.path("landfall.lock")).unwrap();
    assert!(err(&place.run(&["t/d.yaml"], 2)).contains("--lock"));
}

#[test]
fn two_items_at_one_destination_are_refused() {
    let place = Place::new(&[("x.yaml", "a: 1\n")]);
    place.put(
        "l",
        &lock(&["quay.io/calico/node:v3.8.0", "docker.io/calico/node:v3.8.0"]),
    );
    let output = place.run(&["x.yaml", "--lock", "l"], 2);
    assert!(err(&output).contains("registry.paths"), "{}", err(&output));
}

#[test]
fn references_not_in_the_lock_are_counted_and_the_audit_command_is_printed() {
    let known = "image: nginx:1.27\n---\n";
    let unknown = "containers:\n- image: quay.io/never/heard:1\n- image: quay.io/never/heard:2\n";
    let place = Place::new(&[
        ("d.yaml", &format!("{known}{unknown}")),
        ("a tree/x.yaml", unknown),
        ("a tree/y.yaml", known),
        ("known.yaml", known),
    ]);
    let printed = |args: &[&str], exit: i32| {
        let output = place.run(args, exit);
        let [out, err] = [out(&output), err(&output)];
        format!("{out}{err}")
    };
    let audit = "to list them: landfall audit d.yaml --to r:5000 --site site.yaml\n";
    let to = ["--to", "r:5000"];
    let modes: [(&[&str], i32); 5] = [
        (&[], 0),
        (&["--check"], 4),
        (&["--diff"], 0),
        (&["-o", "out"], 0),
        (&["--in-place"], 0),
    ];
    for (mode, exit) in modes {
        let report = place.json(&[&["d.yaml"], mode, &to].concat(), exit);
        let command = "landfall audit d.yaml --to r:5000 --site site.yaml";
        assert_eq!(
            report["unknown"],
            serde_json::json!({"count": 2, "audit": command}),
            "{mode:?}"
        );
        place.put("d.yaml", &format!("{known}{unknown}"));
        let printed = printed(&[&["d.yaml"], mode, &to].concat(), exit);
        assert!(
            printed.contains("2 references are not in the lock; ") && printed.contains(audit),
            "{mode:?}: {printed}"
        );
        // the printed command lists the same number of references; replaced files are read with
        // their new content
        let audit = audit
            .trim()
            .strip_prefix("to list them: landfall ")
            .unwrap();
        let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_landfall"));
        let listed = command
            .env_clear()
            .current_dir(place.path(""))
            .args(audit.split(' '))
            .output()
            .unwrap();
        assert_eq!(listed.status.code(), Some(4), "{}", err(&listed));
        assert!(
            out(&listed).contains(", 2 missing, "),
            "{mode:?}: {}",
            out(&listed)
        );
        place.put("d.yaml", &format!("{known}{unknown}"));
    }
    // a second run does not count references that the first one wrote; the printed command quotes
    // the path for a shell
    for _ in 0..2 {
        let printed = printed(&["a tree", "-o", "a tree/out", "--to", "r:5000"], 0);
        assert!(
            printed.contains("2 references are not in the lock; ")
                && printed.contains("audit 'a tree' --to"),
            "{printed}"
        );
    }
    let stdin = place
        .command(&["-", "--to", "r:5000"])
        .write_stdin(unknown)
        .output()
        .unwrap();
    assert!(
        err(&stdin).contains(
            "2 references are not in the lock; to list them: landfall audit - --to r:5000"
        )
    );
    assert!(!printed(&["known.yaml"], 0).contains("not in the lock"));
    assert_eq!(place.json(&["known.yaml"], 0)["unknown"]["count"], 0);
    // a reverse rewrite reads names of the destination, so it does not count unknown references
    assert!(
        place
            .json(&["d.yaml", "--reverse"], 0)
            .get("unknown")
            .is_none()
    );
}
