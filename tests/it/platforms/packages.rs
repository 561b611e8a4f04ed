//! Platforms that configure machines include the package sources that `render apt` and `render yum`
//! write.

use super::kubermatic::files as files_of_profile;
use super::{files, place};
use crate::support::Place;
use serde_yaml::Value;
use std::collections::BTreeMap;

const SITE: &str = "registry: {address: r.test}\nfiles: http://files.test/up\n";
const APT: &str = "etc/apt/landfall.sources.d/landfall.sources";
const YUM: &str = "etc/dnf/dnf.conf";

/// A folder with a lock of an apt set and a yum set, the output of `render apt` in `apt`, and that
/// of `render yum` in `yum`.
fn machines() -> Place {
    let place = place(SITE, &[]);
    place.write(
        "landfall.lock",
        include_str!("../../data/packages/machines.lock"),
    );
    place.ok(&["render", "apt", "--site", "site.yaml", "-o", "apt"]);
    place.ok(&[
        "render",
        "yum",
        "--set",
        "others=off",
        "--site",
        "site.yaml",
        "-o",
        "yum",
    ]);
    place
}

/// The files below `folder` by their paths on a machine, without the lines that name the command.
fn on_machine(place: &Place, folder: &str) -> BTreeMap<String, String> {
    let made = files(&place.path(folder));
    let without = |text: String| match text.split_once('\n') {
        Some((first, rest)) if first.starts_with("# Written by") => rest.to_owned(),
        _ => text,
    };
    made.into_iter()
        .map(|(path, text)| (format!("/{}", path.display()), without(text)))
        .collect()
}

#[test]
fn machines_of_cluster_api_use_the_selected_package_set() {
    let place = machines();
    let render = |set: &[&str]| {
        let args = [
            "render",
            "capi",
            "--set",
            "cluster=blue",
            "--site",
            "site.yaml",
            "-o",
            "out",
        ];
        let printed = place.ok(&[&args, set].concat());
        let read = |file: &str| {
            serde_yaml::from_str::<Value>(&place.read(&format!("out/{file}"))).unwrap()
        };
        let texts = read("secret.yaml")["stringData"].clone();
        let workers =
            read("kubeadm-config-template.yaml")["spec"]["template"]["spec"]["files"].clone();
        let control =
            read("kubeadm-control-plane.yaml")["spec"]["kubeadmConfigSpec"]["files"].clone();
        let file = |file: &Value| {
            let key = &file["contentFrom"]["secret"]["key"];
            (
                file["path"].as_str().unwrap().to_owned(),
                texts[key].as_str().unwrap().to_owned(),
            )
        };
        let by_path = |list: &Value| {
            list.as_sequence()
                .unwrap()
                .iter()
                .map(file)
                .collect::<BTreeMap<_, _>>()
        };
        assert_eq!(by_path(&workers), by_path(&control));
        (printed, by_path(&workers))
    };
    for (set, other) in [("apt", "yum"), ("yum", "apt")] {
        let (_, there) = render(&["--set", &format!("package-set={set}:nodes")]);
        let expected = on_machine(&place, set);
        assert!(expected.len() >= 3, "{expected:?}");
        for (path, text) in expected {
            assert_eq!(there[&path], text, "{path}");
        }
        assert!(
            on_machine(&place, other)
                .keys()
                .all(|path| !there.contains_key(path)),
            "{there:?}"
        );
    }
    let (printed, there) = render(&[]);
    assert!(
        printed.contains(
            "blue: the lock has several sets of packages, and machines use only one; select it \
             with --set package-set=NAME (apt:nodes, yum:nodes)"
        ),
        "{printed}"
    );
    assert!(!there.contains_key(&format!("/{APT}")), "{there:?}");
    let wrong = [
        "render",
        "capi",
        "--set",
        "cluster=b",
        "--set",
        "package-set=apt:x",
        "-o",
        "out",
        "--site",
        "site.yaml",
    ];
    let printed = place.stderr(2, &wrong);
    assert!(
        printed.contains("the lock has apt:nodes, yum:nodes"),
        "{printed}"
    );
}

#[test]
fn profiles_of_kkp_use_the_package_set_of_their_operating_system() {
    let place = machines();
    place.write(
        "site.yaml",
        place.read("site.yaml") + "consumers: [kubermatic]\n",
    );
    let profile = include_str!("../../data/osp-example.yaml");
    let render = |system: &str| {
        place.write(
            "osp.yaml",
            profile.replace("osName: \"ubuntu\"", &format!("osName: {system}")),
        );
        place.ok(&[
            "render",
            "kubermatic",
            "--osp",
            "osp.yaml",
            "--site",
            "site.yaml",
            "-o",
            "out",
        ])
    };
    for (system, set, other) in [("ubuntu", "apt", YUM), ("rockylinux", "yum", APT)] {
        let printed = render(system);
        let there = files_of_profile(&place, "osp-example-landfall", "bootstrapConfig");
        for (path, text) in on_machine(&place, set) {
            assert_eq!(there[&path], text, "{system} {path}");
        }
        assert!(!there.contains_key(&format!("/{other}")), "{there:?}");
        assert!(!printed.contains("installs packages"), "{printed}");
    }
    // no set matches Flatcar, so its packages come from other sources
    let printed = render("flatcar");
    assert!(
        printed.contains("osp-example installs packages"),
        "{printed}"
    );
    assert!(
        !place
            .read("out/osp-example-landfall.yaml")
            .contains("landfall.sources")
    );
    // without a file server in the site, machines cannot use the packages
    place.write(
        "site.yaml",
        place
            .read("site.yaml")
            .replace("files: http://files.test/up\n", ""),
    );
    let printed = render("ubuntu");
    assert!(
        printed.contains("machines have no URL for the packages of apt:nodes; add `files:"),
        "{printed}"
    );
}

/// The configuration of a machine may have a proxy for all hosts.
#[test]
fn package_managers_connect_directly_to_hosts_in_no_proxy() {
    let place = machines();
    let settings = "etc/apt/apt.conf.d/99landfall";
    let repository = |folder: &str| {
        let made = files(&place.path(format!("{folder}/etc/landfall/yum.repos.d")));
        made.into_values().next().unwrap()
    };
    assert!(!place.read(&format!("apt/{settings}")).contains("Proxy"));
    assert!(!repository("yum").contains("proxy"));
    let proxy = "proxy: {http: \"http://p.test:3128\", noProxy: {installation: [10.0.0.0/8]}}\n";
    place.write("site.yaml", place.read("site.yaml") + proxy);
    for (url, expected) in [
        (
            "http://files.test/up",
            Some("\nAcquire::http::Proxy::files.test \"DIRECT\";\n"),
        ),
        (
            "https://10.1.2.3:8443",
            Some("\nAcquire::https::Proxy::10.1.2.3 \"DIRECT\";\n"),
        ),
        ("http://elsewhere.test", None),
    ] {
        let url = format!("url={url}");
        let args = ["render", "apt", "--site", "site.yaml", "--set", &url];
        place.ok(&[&args[..], &["-o", "apt"]].concat());
        let text = place.read(&format!("apt/{settings}"));
        match expected {
            Some(line) => assert!(text.contains(line), "{text}"),
            None => assert!(!text.contains("Proxy"), "{text}"),
        }
    }
    let args = [
        "render",
        "yum",
        "--site",
        "site.yaml",
        "--set",
        "others=off",
    ];
    place.ok(&[&args[..], &["-o", "yum"]].concat());
    let text = repository("yum");
    assert!(text.contains("\nproxy=_none_\n"), "{text}");
}
