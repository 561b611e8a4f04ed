//! `kubermatic`: profiles of operating-system-manager, rewritten for the site, and the settings of
//! nodes. `tests/data/osp-example.yaml` has the structure of a real profile.

use super::{golden, place, refused};
use crate::support::Place;
use serde_yaml::Value;

const SITE: &str = "registry:
  address: registry.corp.example/mirror
  ca: ca.crt
files: https://files.corp.example/up
consumers: [kubermatic]
proxy: {https: \"http://10.0.0.1:3128\"}
";

const KUBELETS: [&str; 2] = [
    "https://dl.k8s.io/release/v1.33.4/bin/linux/amd64/kubelet",
    "https://dl.k8s.io/release/v1.33.4/bin/linux/arm64/kubelet",
];

/// A folder with the profile, a site with a private authority, and a lock of the image and the
/// files that the profile downloads.
fn site() -> Place {
    let place = place(SITE, &["quay.io/kubermatic/util:2.0"]);
    let digest = crate::support::library::Digest::sha256(b"x");
    let file = |url: &str| {
        format!(
            "- name: {url}\n  digest: {digest}\n  size: 1\n  sidecars: [{{url: {url}.sha256, digest: {digest}, size: 64}}]\n"
        )
    };
    let files: String = KUBELETS.into_iter().map(file).collect();
    place.write(
        "landfall.lock",
        place.read("landfall.lock") + "files:\n" + &files,
    );
    let certificate =
        |text| format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
    place.write("ca.crt", certificate("b25l") + &certificate("dHdv"));
    place.write("osp.yaml", include_str!("../../data/osp-example.yaml"));
    place
}

/// The charts of the catalogue are below `kubermatic-mirror`, those of old releases below
/// `kubermatic`.
#[test]
fn kkp_takes_the_charts_of_applications_from_the_registry() {
    let digest = crate::support::library::Digest::sha256(b"x");
    for (folder, other) in [("kubermatic-mirror", "kubermatic"), ("kubermatic", "team")] {
        let site = "registry:\n  address: \"172.20.0.2:5000\"\n  plainHTTP: true\n  \
                    credentials: {file: account}\nconsumers: [kubermatic]\n";
        let place = place(site, &["quay.io/kubermatic/kubermatic:v2.30.0"]);
        place.write("account", "puller:hush\n");
        let chart = |folder: &str| {
            format!(
                "- name: oci://quay.io/{folder}/helm-charts/cilium:1.19.4\n  digest: {digest}\n  \
                 mediaType: application/vnd.oci.image.manifest.v1+json\n  size: 7\n  blobs:\n  \
                 - {digest} 9 application/vnd.cncf.helm.chart.content.v1.tar+gzip\n  \
                 apiVersion: v2\n"
            )
        };
        let charts = format!("charts:\n{}{}", chart(folder), chart(other));
        place.write("landfall.lock", place.read("landfall.lock") + &charts);
        place.ok(&["render", "kubermatic", "--site", "site.yaml", "-o", "out"]);
        let read = |file: &str| -> Value {
            let document = serde_yaml::from_str(&place.read(&format!("out/{file}"))).unwrap();
            super::assert_published(&document, file);
            document
        };
        let configuration = read("kubermatic-configuration.yaml");
        let spec = &configuration["spec"];
        let system = &spec["userCluster"]["systemApplications"];
        let catalog = &spec["applications"]["defaultApplicationCatalog"];
        for settings in [system, catalog] {
            let repository = format!("oci://172.20.0.2:5000/{folder}/helm-charts");
            assert_eq!(settings["helmRepository"], repository);
            assert_eq!(
                settings["helmRegistryConfigFile"]["name"],
                "helm-registry-credentials"
            );
        }
        for settings in [system, &spec["userCluster"]["applications"]] {
            assert_eq!(settings["plainHTTP"], true);
            assert!(settings["insecureSkipTLSVerify"].is_null());
        }
        let secret = read("helm-credentials.yaml");
        assert_eq!(secret["metadata"]["name"], "helm-registry-credentials");
        let kind = &secret["metadata"]["annotations"]["apps.kubermatic.k8c.io/secret-type"];
        assert_eq!(*kind, "helm");
    }
}

/// The content of each file, by its path, in the phase `phase` of the profile `out/NAME.yaml`.
pub fn files(place: &Place, name: &str, phase: &str) -> std::collections::BTreeMap<String, String> {
    let profile: Value = serde_yaml::from_str(&place.read(&format!("out/{name}.yaml"))).unwrap();
    let files = profile["spec"][phase]["files"]
        .as_sequence()
        .unwrap()
        .clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    files
        .iter()
        .map(|file| {
            (
                text(&file["path"]),
                text(&file["content"]["inline"]["data"]),
            )
        })
        .collect()
}

/// The host of every URL outside of comments and `Documentation=` lines.
fn hosts(text: &str) -> Vec<String> {
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#') && !line.contains("Documentation="));
    let urls = code.flat_map(|line| line.split("://").skip(1).map(str::to_owned));
    let hosts = urls.map(|rest| rest.split(['/', ':']).next().unwrap().to_owned());
    // in the script that changes sources, the host is a pattern that begins with `(`; the URLs of
    // sockets have no host
    hosts
        .filter(|host| !host.is_empty() && !host.starts_with('('))
        .collect()
}

#[test]
fn a_profile_becomes_a_custom_profile_of_the_site() {
    let place = site();
    golden(
        &place,
        "kubermatic-osp",
        &["kubermatic", "--osp", "osp.yaml"],
    );
    let old = place.read("osp.yaml");
    let new = place.read("out/osp-example-landfall.yaml");
    // every line is kept except those with a kind, a name, a namespace, a version, or a locked URL
    // or image
    let mut lines = new.lines();
    for line in old.lines() {
        let is_new = [
            "kind: Op",
            "  name: osp-",
            "  namespace:",
            "  version:",
            "kube_base_url=\"",
            "ctr images",
        ]
        .iter()
        .any(|start| line.trim_start().starts_with(start.trim_start()));
        assert!(
            is_new || lines.any(|there| there == line),
            "{line} is missing or out of order:\n{new}"
        );
    }
    let seed: Value = serde_yaml::from_str(&place.read("out/kubermatic-seed.yaml")).unwrap();
    let of_datacenter =
        &seed["spec"]["datacenters"]["datacenter"]["spec"]["operatingSystemProfiles"];
    assert_eq!(of_datacenter["ubuntu"], Value::from("osp-example-landfall"));
    let profile: Value = serde_yaml::from_str(&new).unwrap();
    assert_eq!(profile["metadata"]["namespace"], Value::from("kubermatic"));
    // KKP ignores a changed profile unless its version is new
    let version = |place: &Place| {
        let text = place.read("out/osp-example-landfall.yaml");
        let profile: Value = serde_yaml::from_str(&text).unwrap();
        profile["spec"]["version"].as_str().unwrap().to_owned()
    };
    let first = version(&place);
    assert!(first.starts_with("v1.2.3+landfall."), "{first}");
    let render = [
        "render",
        "kubermatic",
        "--osp",
        "osp.yaml",
        "--site",
        "site.yaml",
        "-o",
        "out",
    ];
    place.ok(&render);
    assert_eq!(version(&place), first);
    place.write(
        "site.yaml",
        place.read("site.yaml").replace("files.corp", "other.corp"),
    );
    place.ok(&render);
    assert_ne!(version(&place), first);
}

#[test]
fn a_profile_whose_packages_are_mirrored_contains_only_hosts_of_the_site() {
    let place = site();
    let packages = "packages=download.docker.com,archive.ubuntu.com,security.ubuntu.com";
    let args = [
        "render",
        "kubermatic",
        "--osp",
        "osp.yaml",
        "--set",
        packages,
        "--site",
        "site.yaml",
        "-o",
        "out",
    ];
    let message = place.ok(&args);
    assert!(
        !message.contains("osp-example downloads") && !message.contains("installs packages"),
        "{message}"
    );
    let text = place.read("out/osp-example-landfall.yaml");
    for host in hosts(&text) {
        assert!(
            ["files.corp.example", "127.0.0.1"].contains(&&*host),
            "{host} in:\n{text}"
        );
    }
    assert!(
        text.contains(
            "https://files.corp.example/up/download.docker.com/linux/$(lsb_release -si | tr"
        ),
        "{text}"
    );
    // an audit reports only the URLs of packages, which are not in the lock; `rewrite --check`
    // finds no original name
    let missing = |exit: i32| -> Vec<String> {
        let audit = place.json(
            exit,
            &[
                "audit",
                "out/osp-example-landfall.yaml",
                "--site",
                "site.yaml",
            ],
        );
        let items = audit["items"].as_array().unwrap().clone();
        let missing = items.iter().filter(|item| item["status"] == "missing");
        missing
            .map(|item| item["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let at_site = missing(4);
    assert!(
        at_site
            .iter()
            .all(|url| url.contains(".docker.com/") || url.contains(".ubuntu.com/")),
        "{at_site:?}"
    );
    place.json(
        0,
        &[
            "rewrite",
            "out/osp-example-landfall.yaml",
            "--check",
            "--site",
            "site.yaml",
        ],
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
    ]);
    assert!(missing(0).is_empty());
}

/// Runs `use-site.sh`, which machines run before their bootstrap script, with the folder `root` as
/// the root of the file system.
#[test]
fn machines_get_the_package_sources_and_authorities_of_the_site() {
    let place = site();
    // a domain and its subdomain, and the domain of the file server
    let packages = "packages=ubuntu.com,archive.ubuntu.com,dl.rockylinux.org,corp.example";
    place.ok(&[
        "render",
        "kubermatic",
        "--osp",
        "osp.yaml",
        "--set",
        packages,
        "--site",
        "site.yaml",
        "-o",
        "out",
    ]);
    let files = files(&place, "osp-example-landfall", "bootstrapConfig");
    let root = place.path("root").display().to_string();
    for (path, text) in &files {
        let path = path.strip_prefix('/').unwrap();
        place.write(
            &format!("root/{path}"),
            text.replace("/etc/", &format!("{root}/etc/")),
        );
    }
    assert_eq!(
        files["/etc/systemd/system/bootstrap.service.d/50-landfall.conf"],
        "[Service]\nExecStartPre=/opt/landfall/use-site.sh\n"
    );
    let certificate = &files["/usr/local/share/ca-certificates/landfall-2.crt"];
    assert!(
        certificate.contains("dHdv") && !certificate.contains("b25l"),
        "{certificate}"
    );
    place.write(
        "root/etc/apt/sources.list",
        "deb http://eu.archive.ubuntu.com/ubuntu noble main\ndeb http://ppa.test/x noble main\n\
         deb http://apt.corp.example/y noble main\n# http://archive.ubuntu.com/a http://dl.rockylinux.org/b\n",
    );
    place.write(
        "root/etc/yum.repos.d/base.repo",
        "[base]\nmirrorlist=https://mirrors.rockylinux.org/mirrorlist?repo=x\n#baseurl=http://dl.rockylinux.org/$contentdir/\n",
    );
    place.write(
        "root/etc/yum.repos.d/mine.repo",
        "[mine]\nmirrorlist=https://mine.test/x\n",
    );
    place.write("bin/update-ca-certificates", "#!/bin/sh\necho trusted\n");
    let script = place
        .path("root/opt/landfall/use-site.sh")
        .display()
        .to_string();
    let command = format!("chmod +x bin/*; PATH=$PWD/bin:$PATH; sh {script}; sh {script}");
    let mut shell = place.clean("sh");
    let printed = crate::support::run(shell.args(["-ec", &command]));
    assert_eq!(String::from_utf8_lossy(&printed), "trusted\ntrusted\n");
    assert_eq!(
        place.read("root/etc/apt/sources.list"),
        "deb https://files.corp.example/up/archive.ubuntu.com/ubuntu noble main\ndeb http://ppa.test/x noble main\n\
         deb https://files.corp.example/up/corp.example/y noble main\n\
         # https://files.corp.example/up/archive.ubuntu.com/a https://files.corp.example/up/dl.rockylinux.org/b\n"
    );
    let base = place.read("root/etc/yum.repos.d/base.repo");
    assert!(base.contains("\n#mirrorlist=https://mirrors"), "{base}");
    assert!(
        base.contains("\nbaseurl=https://files.corp.example/up/dl.rockylinux.org/$contentdir/\n"),
        "{base}"
    );
    assert_eq!(
        place.read("root/etc/yum.repos.d/mine.repo"),
        "[mine]\nmirrorlist=https://mine.test/x\n"
    );
}

#[test]
fn files_that_are_not_profiles_are_refused() {
    let place = site();
    place.write("pod.yaml", "kind: Pod\n");
    place.write(
        "up.yaml",
        "kind: OperatingSystemProfile\nmetadata: {name: ../up}\n",
    );
    let capital = place
        .read("osp.yaml")
        .replace("name: osp-example", "name: Osp-Example");
    place.write("capital.yaml", capital);
    for (args, words) in [
        (
            &["kubermatic", "--osp", "pod.yaml"][..],
            "pod.yaml is not one OperatingSystemProfile",
        ),
        (
            &["kubermatic", "--osp", "up.yaml"],
            "its metadata.name is not a valid name",
        ),
        (
            &["kubermatic", "--osp", "capital.yaml"],
            "only lower-case letters, digits, - and .",
        ),
        (
            &["kubermatic", "--set", "seed=Europe"],
            "seed cannot be 'Europe': the name of an object has",
        ),
        (
            &["kubermatic", "--osp", "osp.yaml", "--osp", "osp.yaml"],
            "another --osp also has the name",
        ),
        (
            &[
                "kubermatic",
                "--osp",
                "osp.yaml",
                "--set",
                "packages=https://a.test",
            ],
            "without schemes and paths",
        ),
        (
            &["kubermatic", "--osp", "osp.yaml", "--set", "version=2.12"],
            "has no operating-system-manager",
        ),
    ] {
        let message = refused(&place, 2, args);
        assert!(message.contains(words), "{message}");
    }
}

/// Releases of operating-system-manager before May 2026 set `override_path` for all mirrors of a
/// host if one has the parameter.
#[test]
fn all_mirrors_of_a_host_have_a_path_if_one_has() {
    let site = "registry:\n  address: r.test\n  paths: {k8s.gcr.io: kubernetes}\n\
                consumers: [kubermatic]\n";
    let place = place(
        site,
        &["k8s.gcr.io/pause:3.1", "registry.k8s.io/kube-proxy:v1.33.4"],
    );
    place.ok(&["render", "kubermatic", "--site", "site.yaml", "-o", "out"]);
    let seed: Value = serde_yaml::from_str(&place.read("out/kubermatic-seed.yaml")).unwrap();
    let node = &seed["spec"]["datacenters"]["datacenter"]["node"];
    let registries = &node["containerdRegistryMirrors"]["registries"];
    let mirrors = |host: &str| registries[host]["mirrors"].as_sequence().unwrap().clone();
    assert_eq!(
        mirrors("k8s.gcr.io"),
        [
            "https://r.test/v2/kubernetes?kubermatic=override_path%3Dtrue",
            "https://r.test/v2?kubermatic=override_path%3Dtrue",
        ]
    );
    assert_eq!(mirrors("registry.k8s.io"), ["https://r.test"]);
}

/// KKP and `KubeOne` configure for each host whether the certificates of the host's mirrors are
/// verified.
#[test]
fn skip_verify_is_set_for_mirrored_hosts() {
    let images = ["quay.io/kubermatic/util:2.0"];
    let place = place(
        "registry: {address: r.test, skipVerify: true}\nconsumers: [kubeone]\n",
        &images,
    );
    let render = |args: &[&str]| {
        place.ok(&[&["render"], args, &["--site", "site.yaml", "-o", "out"]].concat())
    };
    let message = render(&["kubermatic"]);
    assert!(message.contains("KKP cannot turn that off"), "{message}");
    let seed: Value = serde_yaml::from_str(&place.read("out/kubermatic-seed.yaml")).unwrap();
    let node = &seed["spec"]["datacenters"]["datacenter"]["node"];
    let insecure: Vec<&str> = node["insecureRegistries"]
        .as_sequence()
        .unwrap()
        .iter()
        .map(|host| host.as_str().unwrap())
        .collect();
    assert!(
        insecure.contains(&"quay.io") && insecure.contains(&"r.test"),
        "{insecure:?}"
    );
    render(&["kubeone", "--set", "via=mirrors"]);
    let cluster: Value = serde_yaml::from_str(&place.read("out/kubeone-cluster.yaml")).unwrap();
    let registries = &cluster["containerRuntime"]["containerd"]["registries"];
    assert_eq!(
        registries["quay.io"]["tlsConfig"]["insecureSkipVerify"],
        Value::Bool(true)
    );
}

#[test]
fn the_account_of_nodes_is_written_to_a_secret() {
    let place = place(
        "registry: {address: r.test, credentials: {file: account}}\nconsumers: [kubermatic]\n",
        &[],
    );
    place.write("account", "puller:hush\n");
    let message = place.ok(&["render", "kubermatic", "--site", "site.yaml", "-o", "out"]);
    assert!(
        message.contains("registry-credentials.yaml (0600, holds credentials)"),
        "{message}"
    );
    let secret: Value = serde_yaml::from_str(&place.read("out/registry-credentials.yaml")).unwrap();
    assert_eq!(secret["type"], "kubernetes.io/dockerconfigjson");
    let accounts: Value =
        serde_yaml::from_str(secret["stringData"][".dockerconfigjson"].as_str().unwrap()).unwrap();
    assert_eq!(accounts["auths"]["r.test"]["auth"], "cHVsbGVyOmh1c2g=");
}
