//! Tests of [`load`]: what is made of files and folders, and what is said of faults in them.

use super::*;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const HEAD: &str = "apiVersion: landfall/v1\nkind: Manifest\n";

/// A folder with these files; `*.yaml` gets the head of a manifest where it has none.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let bare = name.ends_with(".yaml") && !text.contains("apiVersion");
        std::fs::write(path, if bare { format!("{HEAD}{text}") } else { (*text).into() }).unwrap();
    }
    folder
}

fn load_files(folder: &Path, names: &[&str]) -> Result<Wanted, String> {
    let paths: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
    let prefix = format!("{}/", folder.display());
    load(&paths).map_err(|error| error.to_string().replace(&prefix, ""))
}

/// What one manifest with this body wants.
fn wanted(body: &str) -> Wanted {
    let folder = folder(&[("m.yaml", body)]);
    load_files(folder.path(), &["m.yaml"]).unwrap_or_else(|error| panic!("{error}"))
}

/// What is said of one manifest with this body. The body begins in line 3.
fn fault(body: &str) -> String {
    let folder = folder(&[("m.yaml", body)]);
    load_files(folder.path(), &["m.yaml"]).unwrap_err()
}

/// The first line of what is said, and the mend.
fn brief(body: &str) -> String {
    let fault = fault(body);
    let help = fault.split_once("= help: ").map(|(_, help)| format!(" | {help}"));
    format!("{}{}", fault.lines().next().unwrap(), help.unwrap_or_default())
}

fn names(wanted: &Wanted) -> Vec<String> {
    let images = wanted.images.iter().map(|image| image.name.to_string());
    images.chain(wanted.files.iter().map(|file| file.url.clone())).collect()
}

fn digest(text: &str) -> crate::model::Digest {
    crate::model::Digest::sha256(text.as_bytes())
}

#[test]
fn the_designs_example_is_expanded() {
    let (pin, list) =
        (digest("node-exporter"), "docker.io/rancher/rke2-runtime:v1\nquay.io/example/unused:v3\n");
    let body = format!(
        r#"metadata: {{name: kubermatic-worker-node}}
vars: {{kubernetes: v1.33.4, cni: v1.9.1, arch: [amd64, arm64]}}
platforms: [linux/arm64, linux/amd64]
lists:
  - {{format: images-txt, file: lists/rke2.txt}}
exclude: [quay.io/example/unused]
missing: [{{ref: "quay.io/gone/app:v1", reason: removed upstream, until: 2027-01-31}}]
images:
  - registry.k8s.io/pause:3.10.1
  - ref: quay.io/prometheus/node-exporter:v1.9.0
    digest: {pin}
    platforms: [linux/amd64]
    update: "~1.9"
files:
  - url: https://dl.k8s.io/release/${{kubernetes}}/bin/linux/${{arch}}/kubelet
    checksum: "${{url}}.sha256"
    also: ["https://dl.k8s.io/${{kubernetes}}/bin/linux/${{arch}}/kubelet"]
    mode: 0755
endpoints:
  - {{host: ec2.eu-central-1.amazonaws.com, port: 443, why: "machine-controller creates instances"}}
"#
    );
    let folder = folder(&[("m.yaml", &body), ("lists/rke2.txt", list)]);
    let wanted = load_files(folder.path(), &["m.yaml"]).unwrap();
    let base = "https://dl.k8s.io/release/v1.33.4/bin/linux";
    assert_eq!(
        names(&wanted),
        [
            "docker.io/rancher/rke2-runtime:v1".to_owned(),
            "quay.io/prometheus/node-exporter:v1.9.0".into(),
            "registry.k8s.io/pause:3.10.1".into(),
            format!("{base}/amd64/kubelet"),
            format!("{base}/arm64/kubelet"),
        ]
    );
    let platforms =
        |index: usize| wanted.images[index].platforms.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(platforms(0), ["linux/amd64", "linux/arm64"]);
    assert_eq!(platforms(1), ["linux/amd64"]);
    let exporter = &wanted.images[1];
    assert_eq!((exporter.pin.as_ref(), exporter.update.as_deref()), (Some(&pin), Some("~1.9")));
    let listed = &wanted.images[0].at;
    assert!(listed.file.ends_with("lists/rke2.txt"));
    assert_eq!((listed.line, listed.column), (1, 1));
    assert_eq!((exporter.at.line, exporter.at.column), (12, 10));
    let file = &wanted.files[1];
    assert_eq!(file.checksum.as_ref().unwrap().to_string(), format!("{base}/arm64/kubelet.sha256"));
    assert_eq!(file.also, ["https://dl.k8s.io/v1.33.4/bin/linux/arm64/kubelet"]);
    assert_eq!(file.mode.as_deref(), Some("0755"));
    assert_eq!(wanted.missing[0].name, "quay.io/gone/app:v1");
    assert_eq!(wanted.endpoints[0].port, 443);
}

#[test]
fn each_combination_of_the_variables_used_is_an_item() {
    let body = "vars: {a: [x, y], b: ['1', '2'], unused: [p, q]}\nimages: ['${a}/${a}:${b}']\n\
                endpoints: [{host: '${a}.example.com', port: 1, why: w}]\n";
    let wanted = wanted(body);
    assert_eq!(names(&wanted), ["docker.io/x/x:1", "docker.io/x/x:2", "docker.io/y/y:1", "docker.io/y/y:2"]);
    let hosts: Vec<_> = wanted.endpoints.iter().map(|end| end.host.as_str()).collect();
    assert_eq!(hosts, ["x.example.com", "y.example.com"]);
}

#[test]
fn tag_and_digest_are_name_and_pin() {
    let (a, b) = (digest("a"), digest("b"));
    let body = format!("images: ['q.io/a:1@{a}', 'q.io/b@{b}', {{ref: q.io/c, digest: '{b}'}}]");
    let wanted = wanted(&body);
    assert_eq!(names(&wanted), ["q.io/a:1".to_owned(), format!("q.io/b@{b}"), format!("q.io/c@{b}")]);
    let pins: Vec<_> = wanted.images.iter().map(|image| image.pin.clone()).collect();
    assert_eq!(pins, [Some(a.clone()), None, None]);
    let wrong = brief(&format!("images: [{{ref: 'q.io/a:1@{a}', digest: '{b}'}}]"));
    assert!(wrong.contains("not the one in `ref`"), "{wrong}");
}

#[test]
fn empty_sections_are_nothing() {
    let wanted = wanted("images:\nfiles:\n# - later\n");
    assert_eq!(wanted, Wanted::default());
}

#[test]
fn a_fault_shows_place_line_and_mend() {
    assert_eq!(
        fault("platforms: [linux/amd64]\nimages:\n  - registry.k8s.io/pause:3.10.1\n  - quay.io/a/b\n"),
        "\
m.yaml:6:5: error: `quay.io/a/b` names no version
  |
6 |   - quay.io/a/b
  |     ^^^^^^^^^^^
  |
  = help: add the tag or digest, as in quay.io/a/b:v1.2.3"
    );
    assert_eq!(
        fault("images: []\nfiles:\n- url: https://e.org/x\n  checksums: sha256:0\n"),
        "\
m.yaml:6:3: error: unknown key `checksums`
  |
6 |   checksums: sha256:0
  |   ^^^^^^^^^
  |
  = help: did you mean `checksum`?"
    );
    assert_eq!(
        fault("vars: {kubernetes: v1.33.4}\nfiles:\n- url: \"https://e.org/${kuberntes}/x\"\n"),
        "\
m.yaml:5:23: error: the variable `kuberntes` is not known
  |
5 | - url: \"https://e.org/${kuberntes}/x\"
  |                       ^^^^^^^^^^^^
  |
  = help: did you mean `${kubernetes}`?"
    );
}

#[test]
fn faults_of_variables() {
    assert_eq!(
        brief("vars: {a: 1.30}"),
        "m.yaml:3:11: error: YAML reads `1.30` as a number, and so may change it | quote it: \"1.30\""
    );
    assert!(brief("vars: {a: [x, true]}").contains("3:15: error: YAML reads `true` as a truth value"));
    assert!(brief("vars: {a: []}").contains("3:11: error: the variable `a` has no value"));
    assert!(brief("vars: {a: }").contains("error: the variable `a` has no value"));
    assert!(brief("vars: {a: [x, x]}").contains("3:15: error: `x` stands in `a` twice"));
    assert!(brief("vars: {a: {b: c}}").contains("a text or a list of texts"));
    assert!(brief("vars: {url: x}").contains("3:8: error: `${url}` stands for"));
    assert!(brief("vars: {a: '${b}', b: c}").contains("cannot be made of other variables"));
    assert!(brief("vars: {'a b': c}").contains("3:8: error: `a b` is no name"));
    assert!(brief("vars: {a: b, a: c}").contains("3:14: error: the key `a` stands twice"));
    assert!(brief("images: ['a:${x']").contains("3:13: error: a `${` without its `}`"));
    assert!(brief("files: [{url: 'https://e.org/${url}'}]").contains("`checksum` only"));
    assert!(brief("images: ['a:${x}']").contains("set it in this file, as in `vars: {x: …}`"));
    let many = format!(
        "vars: {{{}}}",
        ["a", "b", "c", "d", "e"].map(|v| format!("{v}: [p,q,r,s,t,u,v]")).join(", ")
    );
    assert!(
        brief(&format!("{many}\nimages: ['x:${{a}}${{b}}${{c}}${{d}}${{e}}']")).contains("too many items")
    );
}

#[test]
fn faults_of_images() {
    assert!(brief("images: ['https://quay.io/a:1']").contains("without a scheme"));
    assert!(
        brief("images: [a:1]\nplatforms: [linux/x86_64]")
            .contains("4:13: error: 'linux/x86_64' is no platform")
    );
    assert!(brief("images: [{ref: a:1, platforms: [linus/amd64]}]").contains("3:33: error: 'linus/amd64'"));
    assert!(brief("images: [{ref: a:1, digest: sha256:00}]").contains("3:29: error: digest 'sha256:00'"));
    assert!(brief("images: [{digest: sha256:00}]").contains("the key `ref` is missing here"));
    assert!(brief("images: [[a]]").contains("this should be an image reference, or a mapping with `ref`"));
    assert_eq!(
        brief("images:\n- a:1\n- docker.io/library/a:1\n"),
        "m.yaml:5:3: error: docker.io/library/a:1 stands in this file twice; first at m.yaml:4:3 | take one of the two out"
    );
    assert!(
        brief("vars: {p: [linux/amd64, linux/arm64]}\nimages: [{ref: a:1, platforms: ['${p}']}]")
            .contains("this entry gives docker.io/library/a:1 more than once")
    );
}

#[test]
fn faults_of_files() {
    let file = |more: &str| brief(&format!("files: [{{url: 'https://e.org/x'{more}}}]"));
    assert!(brief("files: [{url: 'ftp://e.org/x'}]").contains("over http and https, not over ftp"));
    assert!(brief("files: [{url: e.org/x}]").contains("this is no URL"));
    assert!(brief("files: [{url: 'https://e.org/x/'}]").contains("names a folder"));
    assert!(brief("files: [{url: 'https://e.org/x#y'}]").contains("no `#` part"));
    assert!(brief("files: [{url: 'https://e.org/x y'}]").contains("white space"));
    assert!(file(", checksum: 'md5:00'").contains("algorithm that is not supported"));
    assert!(
        file(&format!(", checksum: '{}'", digest("x").hex())).contains(&format!("write {}", digest("x")))
    );
    assert!(file(", checksum: x").contains("is no checksum"));
    assert!(file(", mode: '0799'").contains("3:40: error: `0799` is no mode"));
    assert!(file(", also: ['https://E.org/x']").contains("answers to https://e.org/x already"));
    let twice =
        brief("files: [{url: 'https://e.org/x', also: ['https://e.org/z']}, {url: 'https://e.org/z'}]");
    assert!(
        twice.contains("https://e.org/z stands for this file and for https://e.org/x at m.yaml:3:15"),
        "{twice}"
    );
}

#[test]
fn a_password_in_a_url_is_refused_and_not_shown() {
    let fault = fault("vars: {t: s3cret}\nfiles: [{url: 'https://joe:s3cr3t@e.org/x'}]\n");
    assert!(fault.contains("m.yaml:4:15: error: a URL must not hold a user name or password"), "{fault}");
    assert!(fault.contains("https://***@e.org/x") && !fault.contains("s3cr3t"), "{fault}");
}

#[test]
fn faults_of_the_other_sections() {
    let lost = |until: &str| brief(&format!("missing: [{{ref: a:1, reason: r, until: {until}}}]"));
    for until in ["2027-02-30", "31.01.2027", "2027-1-31", "20270131", "2027-01-31T00:00"] {
        assert!(lost(until).contains("is no date | write the last day"), "{}", lost(until));
    }
    assert!(brief("missing: [{ref: a, reason: r, until: 2027-01-31}]").contains("names no version"));
    assert!(
        brief("missing: [{ref: a:1, reason: ' ', until: 2027-01-31}]").contains("3:30: error: this is empty")
    );
    let end =
        |host: &str, port: &str| brief(&format!("endpoints: [{{host: '{host}', port: {port}, why: w}}]"));
    assert!(end("https://e.org", "443").contains("write the host alone"));
    assert!(end("e.org:443", "443").contains("no host name"));
    assert!(end("e.org", "0").contains("0 is no port"));
    assert!(end("e.org", "70000").contains("this should be a whole number"));
    assert_eq!(
        brief("images: [quay.io/example/app:1]\nexclude: [quay.io/example/ap]"),
        "m.yaml:4:11: error: nothing here is named quay.io/example/ap, so this leaves nothing out \
         | did you mean quay.io/example/app? Else take it out"
    );
    assert!(
        brief("images: [quay.io/example/app:1]\nexclude: [quay.io/example]")
            .contains("a prefix is not enough")
    );
    assert!(brief("charts: []").contains("3:1: error: this release of landfall does not know `charts` yet"));
    assert!(brief("image: []").contains("3:1: error: unknown key `image` | did you mean `images`?"));
    assert!(brief("lists: [{format: images.txt, file: x}]").contains("did you mean `images-txt`?"));
    assert!(
        brief("lists: [{format: kkp, file: gone.log}]")
            .contains("3:29: error: cannot read gone.log: No such file")
    );
}

#[test]
fn exclusions_take_out_repositories_references_and_urls() {
    let body = "images: [a/b:1, a/b:2, a/bc:1, d:1]\nfiles: [{url: 'https://e.org/x'}]\n\
                exclude: ['a/b:2', d, 'https://e.org/x']\n";
    assert_eq!(names(&wanted(body)), ["docker.io/a/b:1", "docker.io/a/bc:1"]);
}

#[test]
fn faults_in_a_list_have_its_own_lines() {
    let folder = folder(&[
        ("m.yaml", "lists: [{format: images-txt, file: lists/a.txt}]"),
        ("lists/a.txt", "# list\r\n\r\nquay.io/a/b\r\n"),
    ]);
    let fault = load_files(folder.path(), &["m.yaml"]).unwrap_err();
    assert!(fault.starts_with("lists/a.txt:3:1: error: `quay.io/a/b` names no version"), "{fault}");
}

#[test]
fn equal_items_of_several_files_and_lists_merge() {
    let pin = digest("a");
    let folder = folder(&[
        (
            "b.yaml",
            &format!(
                "images: ['a:1@{pin}']\nlists: [{{format: images-txt, file: l.txt}}]\nendpoints: [{{host: e.org, port: 443, why: two}}]"
            ),
        ),
        (
            "a.yaml",
            "images: [a:1, b:1]\nfiles: [{url: 'https://e.org/x', also: ['https://f.org/x']}]\nendpoints: [{host: E.org, port: 443, why: one}]",
        ),
        ("c.yaml", "files: [{url: 'https://e.org/x', also: ['https://d.org/x'], mode: '755'}]"),
        ("l.txt", "a:1\nb:1\na:1\n"),
    ]);
    let wanted = load_files(folder.path(), &["b.yaml", "a.yaml", "c.yaml"]).unwrap();
    assert_eq!(names(&wanted), ["docker.io/library/a:1", "docker.io/library/b:1", "https://e.org/x"]);
    assert_eq!(wanted.images[0].pin, Some(pin));
    assert_eq!(wanted.files[0].also, ["https://d.org/x", "https://f.org/x"]);
    assert_eq!(wanted.files[0].mode.as_deref(), Some("0755"));
    assert_eq!(wanted.endpoints.len(), 1);
    assert_eq!(wanted.endpoints[0].why, "one; two");

    let other_order = load_files(folder.path(), &["c.yaml", "a.yaml", "b.yaml"]).unwrap();
    assert_eq!(names(&other_order), names(&wanted));
    assert_eq!(other_order.images[0].pin, wanted.images[0].pin);
    assert_eq!(other_order.endpoints, wanted.endpoints);
    assert_eq!(load_files(folder.path(), &[""]).unwrap().files[0].also, wanted.files[0].also);
}

#[test]
fn contradictions_name_both_places() {
    let (a, b) = (digest("a"), digest("b"));
    let clash = |first: &str, second: &str| {
        let folder = folder(&[("a.yaml", first), ("b.yaml", second)]);
        load_files(folder.path(), &["a.yaml", "b.yaml"]).unwrap_err().lines().next().unwrap().to_owned()
    };
    assert_eq!(
        clash(&format!("images: ['x:1@{a}']"), &format!("images: ['x:1@{b}']")),
        format!(
            "b.yaml:3:10: error: the digest of docker.io/library/x:1 is {b} here, but {a} at a.yaml:3:10"
        )
    );
    assert_eq!(
        clash("images: [x:1]", "platforms: [linux/amd64]\nimages: [x:1]"),
        "b.yaml:4:10: error: the list of platforms of docker.io/library/x:1 is linux/amd64 here, but all at a.yaml:3:10"
    );
    let file = |more: &str| format!("files: [{{url: 'https://e.org/x', {more}}}]");
    assert!(clash(&file(&format!("checksum: '{a}'")), &file("checksum: '${url}.sha256'")).contains(
        &format!("the checksum of https://e.org/x is https://e.org/x.sha256 here, but {a} at a.yaml:3:15")
    ));
    assert!(clash(&file("mode: '0755'"), &file("mode: '0644'")).contains("is 0644 here, but 0755 at"));
    let lost = |until: &str| format!("missing: [{{ref: x:1, reason: r, until: {until}}}]");
    assert!(clash(&lost("2027-01-31"), &lost("2028-01-31")).contains("is 2028-01-31 here, but 2027-01-31"));
}

#[test]
fn referrers_are_wanted_unless_file_or_image_says_otherwise() {
    let of = |body: &str| -> Vec<bool> { wanted(body).images.iter().map(|image| image.referrers).collect() };
    let images = "images: [\"q.io/a:1\", {ref: \"q.io/b:1\", referrers: false}, {ref: \"q.io/c:1\", referrers: true}]\n";
    assert_eq!(of(images), [true, false, true]);
    assert_eq!(of(&format!("referrers: false\n{images}")), [false, false, true]);
    let folder = folder(&[
        ("a.yaml", "images: [\"q.io/a:1\"]\n"),
        ("b.yaml", "referrers: false\nlists: [{format: images-txt, file: l.txt}]\n"),
        ("l.txt", "q.io/a:1\n"),
    ]);
    let error = load_files(folder.path(), &["a.yaml", "b.yaml"]).unwrap_err();
    assert!(error.contains("the `referrers` of q.io/a:1 is false here, but true at a.yaml:3:"), "{error}");
}

#[test]
fn an_item_twice_in_one_file_is_found_behind_another_file() {
    let folder = folder(&[("a.yaml", "images: [x:1]"), ("b.yaml", "images: [x:1, x:1]")]);
    let fault = load_files(folder.path(), &["a.yaml", "b.yaml"]).unwrap_err();
    assert!(
        fault.starts_with(
            "b.yaml:3:15: error: docker.io/library/x:1 stands in this file twice; first at b.yaml:3:10"
        ),
        "{fault}"
    );
    assert_eq!(names(&load_files(folder.path(), &["a.yaml", "a.yaml"]).unwrap()).len(), 1);
}

#[test]
fn a_folder_gives_its_manifests_and_passes_over_a_site() {
    let site = "apiVersion: landfall/v1\nkind: Site\n";
    let folder = folder(&[
        ("all/b.yaml", "images: [b:1]"),
        ("all/a.yml", &format!("{HEAD}images: [a:1]")),
        ("all/site.yaml", site),
        ("all/notes.txt", "no YAML"),
        ("all/below/c.yaml", "images: [c:1]"),
        ("none/site.yaml", site),
        ("typo/m.yaml", "apiVersion: landfall/v1\nkind: Manifset\n"),
        ("pod.yaml", "apiVersion: v1\nkind: Pod\n"),
        ("newer.yaml", "apiVersion: landfall/v2\nkind: Manifest\n"),
        ("values.yaml", "apiVersion:\nimage: x\n"),
    ]);
    let load = |name: &str| load_files(folder.path(), &[name]);
    assert_eq!(names(&load("all").unwrap()), ["docker.io/library/a:1", "docker.io/library/b:1"]);
    assert!(load("none").unwrap_err().contains("there is no manifest in"));
    assert!(load("none/site.yaml").unwrap_err().contains("2:7: error: this is a Site, not a Manifest"));
    assert!(load("typo").unwrap_err().contains("did you mean `Manifest`?"));
    assert!(load("pod.yaml").unwrap_err().contains("1:13: error: this is no manifest of landfall"));
    assert!(load("newer.yaml").unwrap_err().contains("reads landfall/v1, not landfall/v2"));
    assert!(load("values.yaml").unwrap_err().contains("it has no `apiVersion`"));
    assert!(load("gone.yaml").unwrap_err().starts_with("cannot read gone.yaml: No such file"));
}
