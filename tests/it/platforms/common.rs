//! Common to all platforms: the list, settings, stale files, modes, NO_PROXY, and merges with
//! `--into`.

use super::place;
use std::os::unix::fs::PermissionsExt;

const PROXY: &str = "registry: {address: \"172.20.0.2:5000\"}\n\
                     proxy: {http: \"http://10.0.0.1:3128\", https: \"http://10.0.0.1:3128\"}\n";

#[test]
fn the_list_and_its_json_have_the_same_platforms() {
    let place = place("", &[]);
    let printed = place.ok(&["render", "--list"]);
    assert!(
        printed
            .lines()
            .any(|line| line.starts_with("no-proxy ") && line.contains("NO_PROXY")),
        "{printed}"
    );
    let platforms = place.json(0, &["render", "--list"])["platforms"].clone();
    let platforms = platforms.as_object().unwrap();
    assert_eq!(platforms.len(), printed.lines().count());
    for line in printed.lines() {
        let (name, about) = line.split_once(' ').unwrap();
        assert_eq!(platforms[name], about.trim(), "{line}");
    }
}

#[test]
fn a_wrong_setting_is_refused_with_a_hint() {
    let place = place(PROXY, &[]);
    for (set, words) in [
        (
            "from=tkg",
            "did you mean 'form'? (it takes form, cluster, services)",
        ),
        ("form=tgk", "it must be one of giantswarm, tkg"),
        ("form", "write --set KEY=VALUE"),
        ("services=a/../b", "it must be a list of services"),
    ] {
        let args = [
            "render",
            "systemd",
            "--site",
            "site.yaml",
            "-o",
            "out",
            "--set",
            set,
        ];
        let printed = place.stderr(2, &args);
        assert!(printed.contains(words), "{set}: {printed}");
    }
    assert!(!place.path("out").exists());
}

#[test]
fn files_of_an_earlier_run_are_reported_and_kept() {
    let place = place(PROXY, &[]);
    let render = |args: &[&str]| {
        place.json(
            0,
            &[&["render"], args, &["--site", "site.yaml", "-o", "out"]].concat(),
        )
    };
    let both = ["systemd", "--set", "services=containerd,kubelet"];
    render(&both);
    render(&["kubelet", "--set", "form=tkg"]);
    place.write("out/etc/mine.conf", "# mine\n");
    let kubelet = "out/etc/systemd/system/kubelet.service.d/http-proxy.conf";
    let report = render(&["systemd"]);
    assert_eq!(report["stale"], serde_json::json!([kubelet]));
    assert!(place.path(kubelet).exists());
    // a run that writes the kubelet's file again reports nothing
    assert_eq!(render(&both)["stale"], serde_json::json!([]));
}

#[test]
fn a_secret_file_that_replaces_a_public_file_gets_mode_0600() {
    let place = place(&PROXY.replace("http://10", "http://u:p%40w@10"), &[]);
    let path = place.write(
        "out/etc/systemd/system/kubelet.service.d/http-proxy.conf",
        "# Written by `landfall render kubelet`; render it again instead of editing it.\nold\n",
    );
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let report = place.json(
        0,
        &[
            "render",
            "kubelet",
            "--set",
            "form=tkg",
            "--site",
            "site.yaml",
            "-o",
            "out",
        ],
    );
    assert_eq!(report["files"][0]["secret"], true);
    assert_eq!(report["files"][0]["mode"], "0600");
    let report = place.json(
        0,
        &["render", "kubelet", "--site", "site.yaml", "-o", "out"],
    );
    assert_eq!(report["files"][0]["secret"], true);
    let mode = std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let printed = place.ok(&["render", "kubelet", "--site", "site.yaml", "-o", "out"]);
    assert!(
        printed.contains("holds credentials")
            && !printed.contains("p@w")
            && !printed.contains("p%40w"),
        "{printed}"
    );
}

#[test]
fn no_proxy_lists_the_no_proxy_entries_and_the_hosts_of_the_site() {
    let site = "registry: {address: \"172.20.0.2:5000\"}\nfiles: \"http://files.corp:8080\"\n\
                proxy: {http: \"http://p:1\", noProxy: {installation: [a.test], cluster: {domain: cluster.local}}}\n";
    let place = place(site, &[]);
    let run =
        |args: &[&str]| place.ok(&[&["render", "no-proxy", "--site", "site.yaml"], args].concat());
    assert_eq!(
        run(&[]),
        "cluster.local,a.test,svc,127.0.0.1,localhost,172.20.0.2,files.corp\n"
    );
    assert!(run(&["--set", "form=dotted"]).starts_with(".svc.cluster.local,a.test,.svc,"));
    assert!(run(&["--set", "form=portable"]).contains("a.test,.a.test,svc,.svc,"));
}

#[test]
fn into_is_refused_for_a_platform_without_yaml_files() {
    let place = place(PROXY, &[]);
    place.write("mine.yaml", "a: 1\n");
    let args = [
        "render",
        "systemd",
        "--site",
        "site.yaml",
        "--into",
        "mine.yaml",
    ];
    let printed = place.stderr(2, &args);
    assert!(
        printed.contains("--into: a drop-in is a separate file and not YAML"),
        "{printed}"
    );
    assert_eq!(place.read("mine.yaml"), "a: 1\n");
}

const MINE: &str = "\
# of this cluster; do not lose
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
networking: {podSubnet: 10.244.0.0/16}   # as Calico has it
etcd:
  local:
    # on a disk of its own
    dataDir: /srv/etcd
---
kind: InitConfiguration
apiVersion: kubeadm.k8s.io/v1beta4
";

#[test]
fn merging_sets_keys_and_keeps_every_line() {
    let images = [
        "registry.k8s.io/coredns/coredns:v1.12.0",
        "registry.k8s.io/etcd:3.5.21-0",
        "registry.k8s.io/kube-apiserver:v1.33.4",
    ];
    let place = place(
        "registry: {address: r.test}\nconsumers: [kubeadm]\n",
        &images,
    );
    place.write("mine.yaml", MINE);
    let render = || {
        place.json(
            0,
            &[
                "render",
                "kubeadm",
                "--site",
                "site.yaml",
                "--into",
                "mine.yaml",
            ],
        )
    };
    let report = render();
    let merged = place.read("mine.yaml");
    let mut lines = merged.lines();
    for line in MINE.lines() {
        assert!(
            lines.any(|there| there == line),
            "{line} is missing or out of order:\n{merged}"
        );
    }
    let first = serde_yaml::Deserializer::from_str(&merged).next().unwrap();
    let document: serde_json::Value = serde::Deserialize::deserialize(first).unwrap();
    assert_eq!(document["imageRepository"], "r.test");
    let etcd = &document["etcd"]["local"];
    assert_eq!(
        (&etcd["dataDir"], &etcd["imageTag"]),
        (&"/srv/etcd".into(), &"3.5.21-0".into())
    );
    assert_eq!(
        (&report["files"][0]["file"], &report["files"][0]["secret"]),
        (&"mine.yaml".into(), &false.into())
    );
    // a second merge changes nothing
    render();
    assert_eq!(place.read("mine.yaml"), merged);
    // a file without a document of a rendered kind is refused, and not changed
    place.write("mine.yaml", "kind: Other\n");
    let printed = place.stderr(
        2,
        &[
            "render",
            "kubeadm",
            "--site",
            "site.yaml",
            "--into",
            "mine.yaml",
        ],
    );
    assert!(
        printed.contains("has no document to merge into"),
        "{printed}"
    );
    assert_eq!(place.read("mine.yaml"), "kind: Other\n");
}

#[test]
fn blanks_in_the_list_of_searched_hosts_are_ignored() {
    let place = place(
        "registry: {address: r.test}\n",
        &["docker.io/library/nginx:1.27"],
    );
    place.ok(&[
        "render",
        "podman",
        "--site",
        "site.yaml",
        "--set",
        "search=docker.io, quay.io,",
        "-o",
        "out",
    ]);
    let text = place.read("out/etc/containers/registries.conf.d/50-landfall.conf");
    assert!(
        text.contains("unqualified-search-registries = [\"docker.io\", \"quay.io\"]\n"),
        "{text}"
    );
}

#[test]
fn names_at_the_registry_are_not_mapped_again_if_images_of_its_host_are_locked() {
    for plain in [false, true] {
        let place = place(
            &format!("registry: {{address: r.test/mirror, plainHTTP: {plain}}}\n"),
            &["docker.io/library/nginx:1.27", "r.test/dev/app:1"],
        );
        place.ok(&["render", "podman", "--site", "site.yaml", "-o", "out"]);
        let text = place.read("out/etc/containers/registries.conf.d/50-landfall.conf");
        for (prefix, location) in [
            ("docker.io", "r.test/mirror"),
            ("r.test/dev/app", "r.test/mirror/dev/app"),
        ] {
            let entry = format!("[[registry]]\nprefix = \"{prefix}\"\nlocation = \"{location}\"\n");
            assert_eq!(text.matches(&entry).count(), 1, "{prefix}: {text}");
        }
        let own = "[[registry]]\nlocation = \"r.test\"\ninsecure = true\n";
        assert_eq!(text.contains(own), plain, "{text}");
        let entries = text.matches("[[registry]]").count();
        assert_eq!(entries, 2 + usize::from(plain), "{text}");
    }
}

/// With `keepHost`, the image of the registry's own host and the delivered images have different
/// paths.
#[test]
fn only_locked_images_of_the_registrys_own_host_are_mapped() {
    let place = place(
        "registry: {address: r.test, keepHost: true}\n",
        &["docker.io/library/nginx:1.27", "r.test/dev/app:1"],
    );
    for (platform, file) in [
        (
            "podman",
            "etc/containers/registries.conf.d/50-landfall.conf",
        ),
        ("openshift", "image-digest-mirror-set.yaml"),
        ("openshift", "image-tag-mirror-set.yaml"),
        ("kyverno", "replace-registries.yaml"),
    ] {
        place.ok(&["render", platform, "--site", "site.yaml", "-o", platform]);
        let text = place.read(&format!("{platform}/{file}"));
        // a path for the whole host would change the delivered r.test/docker.io/library/nginx too
        assert!(
            text.contains("r.test/r.test/dev/app") && !text.contains("r.test/r.test/{{"),
            "{file}: {text}"
        );
        assert!(
            !text.lines().any(|line| line.ends_with("r.test/r.test")
                || line.ends_with("source: r.test")
                || line.ends_with("\"r.test/r.test\"")),
            "{file}: {text}"
        );
    }
}

#[test]
fn kyverno_does_not_replace_a_name_at_the_registry_again() {
    let place = place(
        "registry: {address: r.test/mirror}\n",
        &["docker.io/library/nginx:1.27", "r.test/dev/app:1"],
    );
    place.ok(&["render", "kyverno", "--site", "site.yaml", "-o", "out"]);
    let text = place.read("out/replace-registries.yaml");
    for part in ["value: r.test", "- dev/app", "image: r.test/mirror/dev/app"] {
        assert_eq!(
            text.matches(part).count(),
            3,
            "once for each list of containers: {text}"
        );
    }
    let cel = ["render", "kyverno", "--set", "form=cel"];
    place.ok(&[&cel[..], &["--site", "site.yaml", "-o", "cel"]].concat());
    let text = place.read("cel/replace-registries.yaml");
    assert!(
        text.contains("\"r.test/dev/app\": \"r.test/mirror/dev/app\"")
            && !text.contains("\"r.test\""),
        "{text}"
    );
}
