//! The items that manifests and lists expand to.

use super::*;
use landfall_model::report::EntryKind;

#[test]
fn positions_are_computed_in_linear_time() {
    landfall_model::document::growth::assert_linear(500, |count| {
        let images: String = (0..count)
            .map(|n| format!("- quay.io/team/app{n}:v1\n"))
            .collect();
        assert_eq!(
            wanted(&format!("images:\n{images}")).requests.images.len(),
            count
        );
    });
}

#[test]
fn files_of_editors_and_file_managers_are_not_manifests() {
    let folder = folder(&[
        ("m.yaml", "images: [a:1]"),
        ("._m.yaml", "apiVersion: \0\u{5}"),
    ]);
    std::os::unix::fs::symlink("me@host.1234", folder.path().join(".#m.yaml")).unwrap();
    assert_eq!(
        names(&load_files(folder.path(), &[""]).unwrap()),
        ["docker.io/library/a:1"]
    );
    // a dangling link is reported
    std::os::unix::fs::symlink("gone.yaml", folder.path().join("n.yaml")).unwrap();
    assert!(
        load_files(folder.path(), &[""])
            .unwrap_err()
            .contains("n.yaml")
    );
}

#[test]
fn a_pipe_without_a_writer_is_refused() {
    let folder = folder(&[("m.yaml", "images: [a:1]")]);
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("p.yaml"), mode).unwrap();
    for named in ["p.yaml", ""] {
        assert!(
            load_files(folder.path(), &[named])
                .unwrap_err()
                .contains("not a regular file")
        );
    }
}

#[test]
fn the_last_day_of_a_missing_item_may_be_a_variable() {
    let lost = |day: &str| {
        format!("vars: {{d: \"{day}\"}}\nmissing: [{{ref: \"a:1\", reason: r, until: \"${{d}}\"}}]")
    };
    assert_eq!(wanted(&lost("2027-01-31")).missing[0].until, "2027-01-31");
    assert!(brief(&lost("soon")).contains("`soon` is not a date"));
}

#[test]
fn a_manifest_with_images_files_lists_and_endpoints_is_expanded() {
    let pin = digest("node-exporter");
    let list = "docker.io/rancher/rke2-runtime:v1\nquay.io/example/unused:v3\n";
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
    let platforms = |index: usize| {
        wanted.requests.images[index]
            .platforms
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(platforms(0), ["linux/amd64", "linux/arm64"]);
    assert_eq!(platforms(1), ["linux/amd64"]);
    let exporter = &wanted.requests.images[1];
    assert_eq!(
        (
            exporter.pin.as_ref(),
            exporter.update.as_ref().map(|rule| &*rule.policy)
        ),
        (Some(&pin), Some("~1.9"))
    );
    let listed = &wanted.requests.images[0].at;
    assert!(listed.file.ends_with("lists/rke2.txt"));
    assert_eq!((listed.line, listed.column), (1, 1));
    assert_eq!((exporter.at.line, exporter.at.column), (12, 10));
    let file = &wanted.requests.files[1];
    assert_eq!(
        file.checksum.as_ref().unwrap().to_string(),
        format!("{base}/arm64/kubelet.sha256")
    );
    assert_eq!(
        file.also,
        ["https://dl.k8s.io/v1.33.4/bin/linux/arm64/kubelet"]
    );
    assert_eq!(file.mode.as_deref(), Some("0755"));
    assert_eq!(wanted.missing[0].name, "quay.io/gone/app:v1");
    assert_eq!(wanted.endpoints[0].port, 443);
}

#[test]
fn each_combination_of_the_variables_used_is_an_item() {
    let body = "vars: {a: [x, y], b: ['1', '2'], unused: [p, q]}\nimages: ['${a}/${a}:${b}']\n\
                endpoints: [{host: '${a}.example.com', port: 1, why: w}]\n";
    let wanted = wanted(body);
    assert_eq!(
        names(&wanted),
        [
            "docker.io/x/x:1",
            "docker.io/x/x:2",
            "docker.io/y/y:1",
            "docker.io/y/y:2"
        ]
    );
    let hosts: Vec<_> = wanted
        .endpoints
        .iter()
        .map(|end| end.host.as_str())
        .collect();
    assert_eq!(hosts, ["x.example.com", "y.example.com"]);
}

#[test]
fn variables_are_replaced_in_platforms_and_values_of_charts() {
    let body = "vars: {a: amd64, p: prod, v: '1.2'}\ncharts:\n  - ref: oci://e.org/c:1.0.0\n    \
                images: discover\n    platforms: ['linux/${a}']\n    \
                values: ['${p}.yaml', {image: {tags: ['v${v}']}, on: true}]\n";
    let folder = folder(&[("m.yaml", body), ("prod.yaml", "apiVersion: '${v}'\n")]);
    let wanted = load_files(folder.path(), &["m.yaml"]).unwrap();
    let chart = &wanted.requests.charts[0];
    assert_eq!(chart.platforms[0].to_string(), "linux/amd64");
    let values = &chart.discover.as_ref().unwrap().values;
    assert_eq!(
        values[..],
        [
            "apiVersion: '${v}'\n",
            r#"{"image":{"tags":["v1.2"]},"on":true}"#
        ],
        "a file is read as it is"
    );
}

/// Helm, Flux and Hauler write charts of registries as a repository, a name and a version.
#[test]
fn a_chart_of_a_registry_may_be_written_in_parts() {
    let parts =
        "vars: {v: 1.2.3}\ncharts: [{repo: 'oci://r.org/charts/', name: app, version: '${v}'}]";
    let whole = "charts: ['oci://r.org/charts/app:1.2.3']";
    let [parts, whole] = [parts, whole].map(|text| wanted(text).requests.charts[0].name.clone());
    assert_eq!(parts, whole);
}

#[test]
fn a_variable_is_not_an_item_of_its_source() {
    let body = "vars:\n  \
                chart: {value: 1.0.0, update: minor, from: {repo: 'https://e.org', chart: c}}\n  \
                text: {value: v1.0.0, update: minor, from: 'https://e.org/x.txt'}\n  \
                tags: {value: v1.0.0, update: minor, from: e.org/image}\nimages: ['a:1']\n";
    let folder = folder(&[("m.yaml", body)]);
    let found = updatable_versions(&[folder.path().join("m.yaml")], &FileOverrides::default());
    let found = found.unwrap();
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|one| one.kind == EntryKind::Variable));
}

/// JSON is YAML, in which keys may have quotes.
#[test]
fn the_versions_of_a_manifest_in_json_are_updatable() {
    let image = r#"{"ref": "q.io/a:1.2.3", "update": "minor"}"#;
    let json =
        format!(r#"{{"apiVersion": "landfall/v1", "kind": "Manifest", "images": [{image}]}}"#);
    let folder = folder(&[("m.yaml", json.as_str()), ("list.txt", "q.io/b:1\n")]);
    let paths = ["m.yaml", "list.txt"].map(|name| folder.path().join(name));
    let found = updatable_versions(&paths, &FileOverrides::default()).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].current, "1.2.3");
}

#[test]
fn the_key_of_a_file_may_use_variables() {
    let body = "vars: {k: gone}\nfiles: [{url: 'https://e.org/x', key: '${k}.pub', \
                signatures: ['${url}.minisig']}]";
    let message = brief(body);
    assert!(message.contains("cannot read gone.pub"), "{message}");
}

#[test]
fn a_digest_pins_a_tag_or_is_part_of_the_name() {
    let a = digest("a");
    let b = digest("b");
    let body = format!("images: ['q.io/a:1@{a}', 'q.io/b@{b}', {{ref: q.io/c, digest: '{b}'}}]");
    let wanted = wanted(&body);
    assert_eq!(
        names(&wanted),
        [
            "q.io/a:1".to_owned(),
            format!("q.io/b@{b}"),
            format!("q.io/c@{b}")
        ]
    );
    let pins: Vec<_> = wanted
        .requests
        .images
        .iter()
        .map(|image| image.pin.clone())
        .collect();
    assert_eq!(pins, [Some(a.clone()), None, None]);
    let wrong = brief(&format!("images: [{{ref: 'q.io/a:1@{a}', digest: '{b}'}}]"));
    assert!(wrong.contains("differs from the one in `ref`"), "{wrong}");
}

#[test]
fn empty_sections_are_accepted_if_another_section_has_entries() {
    let one = wanted("images: [a:1]\nfiles:\n# - later\n");
    assert_eq!(names(&one), ["docker.io/library/a:1"]);
    // a manifest without any entry is reported: the entries were probably forgotten
    assert!(brief("images:\nfiles:\n# - later\n").contains("this manifest contains no items"));
}

#[test]
fn exclusions_remove_repositories_references_and_urls() {
    let body = "images: [a/b:1, a/b:2, a/bc:1, d:1]\nfiles: [{url: 'https://e.org/x'}]\n\
                exclude: ['a/b:2', d, 'https://e.org/x']\n";
    assert_eq!(
        names(&wanted(body)),
        ["docker.io/a/b:1", "docker.io/a/bc:1"]
    );
}

#[test]
fn the_reference_of_a_chart_may_end_with_its_digest() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let reference = format!("oci://r.test/app:1.0.0+b@{digest}");
    for entry in [
        format!("'{reference}'"),
        format!("{{ref: '{reference}'}}"),
        format!("{{ref: '{reference}', digest: '{digest}'}}"),
        format!("{{ref: 'oci://r.test/app:1.0.0+b', digest: '{digest}'}}"),
    ] {
        let folder = folder(&[("m.yaml", &format!("charts: [{entry}]"))]);
        let wanted = load_files(folder.path(), &["m.yaml"]).unwrap();
        let chart = &wanted.requests.charts[0];
        assert_eq!(
            chart.name.to_string(),
            "oci://r.test/app:1.0.0+b",
            "{entry}"
        );
        assert_eq!(chart.pin, Some(digest.parse().unwrap()), "{entry}");
    }
    let other = format!("sha256:{}", "b".repeat(64));
    for (entry, message) in [
        (
            format!("{{ref: '{reference}', digest: '{other}'}}"),
            "this digest differs from the one in `ref`",
        ),
        ("'oci://r.test/app:1.0.0@sha256:abc'".into(), "digest"),
        (
            format!("'oci://r.test/app@{digest}'"),
            "its version is missing",
        ),
    ] {
        let folder = folder(&[("m.yaml", &format!("charts: [{entry}]"))]);
        let fault = load_files(folder.path(), &["m.yaml"]).unwrap_err();
        assert!(fault.contains(message), "{entry}: {fault}");
    }
}

#[test]
fn platforms_of_a_chart_come_from_the_file_that_discovers_its_images() {
    let folder = folder(&[
        ("a.yaml", "charts: ['oci://r.test/app:1.0.0']"),
        (
            "b.yaml",
            "charts: [{ref: 'oci://r.test/app:1.0.0', images: discover, platforms: [linux/arm64], \
             referrers: false}]",
        ),
    ]);
    for files in [["a.yaml", "b.yaml"], ["b.yaml", "a.yaml"]] {
        let merged = load_files(folder.path(), &files).unwrap();
        let [chart] = &merged.requests.charts[..] else {
            panic!("{:?}", merged.requests.charts);
        };
        assert!(chart.discover.is_some() && !chart.referrers, "{files:?}");
        assert_eq!(chart.platforms, ["linux/arm64".parse().unwrap()]);
    }
}

#[test]
fn equal_items_of_several_files_and_lists_are_merged() {
    let pin = digest("a");
    let folder = folder(&[
        (
            "b.yaml",
            &format!(
                "images: ['a:1@{pin}']\nlists: [{{format: images-txt, file: l.txt}}]\nendpoints: \
                 [{{host: e.org, port: 443, why: two}}, {{host: r.org, port: 22, why: w, from: [b, a, b]}}]"
            ),
        ),
        (
            "a.yaml",
            "images: [a:1, b:1]\nfiles: \
             [{url: 'https://e.org/x', also: ['https://f.org/x']}]\nendpoints: [{host: E.org, port: 443, why: one, from: [a]}, {host: r.org, port: 22, why: w, from: [c]}]",
        ),
        (
            "c.yaml",
            "files: [{url: 'https://e.org/x', also: ['https://d.org/x'], mode: '755'}]",
        ),
        ("l.txt", "a:1\nb:1\na:1\n"),
    ]);
    let wanted = load_files(folder.path(), &["b.yaml", "a.yaml", "c.yaml"]).unwrap();
    assert_eq!(
        names(&wanted),
        [
            "docker.io/library/a:1",
            "docker.io/library/b:1",
            "https://e.org/x"
        ]
    );
    assert_eq!(wanted.requests.images[0].pin, Some(pin));
    assert_eq!(
        wanted.requests.files[0].also,
        ["https://d.org/x", "https://f.org/x"]
    );
    assert_eq!(wanted.requests.files[0].mode.as_deref(), Some("0755"));
    let endpoints: Vec<_> = wanted
        .endpoints
        .iter()
        .map(|end| (&*end.why, end.from.join(",")))
        .collect();
    assert_eq!(
        endpoints,
        [("one; two", String::new()), ("w", "a,b,c".into())],
        "no roles means all machines; otherwise the roles are joined"
    );

    let other_order = load_files(folder.path(), &["c.yaml", "a.yaml", "b.yaml"]).unwrap();
    assert_eq!(names(&other_order), names(&wanted));
    assert_eq!(
        other_order.requests.images[0].pin,
        wanted.requests.images[0].pin
    );
    assert_eq!(other_order.endpoints, wanted.endpoints);
    assert_eq!(
        load_files(folder.path(), &[""]).unwrap().requests.files[0].also,
        wanted.requests.files[0].also
    );
}

#[test]
fn referrers_are_requested_unless_file_or_image_disables_them() {
    let of = |body: &str| -> Vec<bool> {
        wanted(body)
            .requests
            .images
            .iter()
            .map(|image| image.referrers)
            .collect()
    };
    let images = "images: [\"q.io/a:1\", {ref: \"q.io/b:1\", referrers: false}, \
                  {ref: \"q.io/c:1\", referrers: true}]\n";
    assert_eq!(of(images), [true, false, true]);
    assert_eq!(
        of(&format!("referrers: false\n{images}")),
        [false, false, true]
    );
    let folder = folder(&[
        ("a.yaml", "images: [\"q.io/a:1\"]\n"),
        (
            "b.yaml",
            "referrers: false\nlists: [{format: images-txt, file: l.txt}]\n",
        ),
        ("l.txt", "q.io/a:1\n"),
        ("c.yaml", "referrers: false\nimages: [\"q.io/a:1\"]\n"),
    ]);
    // an entry overrides lists in any order, but not another entry
    for files in [["a.yaml", "b.yaml"], ["b.yaml", "a.yaml"]] {
        let merged = load_files(folder.path(), &files).unwrap();
        assert!(merged.requests.images[0].referrers, "{files:?}");
    }
    let error = load_files(folder.path(), &["a.yaml", "c.yaml"]).unwrap_err();
    assert!(
        error.contains("the `referrers` of q.io/a:1 is false here, but true at a.yaml:3:"),
        "{error}"
    );
}

#[test]
fn manifests_in_a_folder_are_read_and_a_site_is_skipped() {
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
    std::fs::write(folder.path().join("empty.yaml"), "\n").unwrap();
    let load = |name: &str| load_files(folder.path(), &[name]);
    assert_eq!(
        names(&load("all").unwrap()),
        ["docker.io/library/a:1", "docker.io/library/b:1"]
    );
    assert!(load("none").unwrap_err().contains("contains no manifest"));
    assert!(
        load("none/site.yaml")
            .unwrap_err()
            .contains("2:7: error: this is a Site, not a Manifest")
    );
    assert!(
        load("typo")
            .unwrap_err()
            .contains("did you mean `Manifest`?")
    );
    assert!(
        load("pod.yaml")
            .unwrap_err()
            .contains("1:13: error: this is not a landfall manifest")
    );
    assert!(
        load("newer.yaml")
            .unwrap_err()
            .contains("use a newer release, or write `apiVersion: landfall/v1`")
    );
    assert!(
        load("empty.yaml")
            .unwrap_err()
            .contains("the file is empty")
    );
    assert!(
        load("values.yaml")
            .unwrap_err()
            .contains("it has no `apiVersion`")
    );
    assert!(
        load("gone.yaml")
            .unwrap_err()
            .starts_with("cannot read gone.yaml: No such file")
    );
}
