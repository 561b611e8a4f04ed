//! `kubeone`: the URLs of binaries for releases up to 1.4 (all of them or none), and the paths of
//! mirrors.

use super::{CERTIFICATE, place, refused};
use crate::support::library::Digest;
use serde_yaml::Value;

const SITE: &str = "registry: {address: registry.corp.example}\nfiles: http://files.corp.example:8080\nconsumers: [kubeone]\n";

const FILES: [&str; 4] = [
    "https://dl.k8s.io/v1.22.17/bin/linux/amd64/kubectl",
    "https://dl.k8s.io/v1.22.17/bin/linux/arm64/kubectl",
    "https://dl.k8s.io/v1.22.17/kubernetes-node-linux-amd64.tar.gz",
    "https://github.com/containernetworking/plugins/releases/download/v0.8.7/cni-plugins-linux-amd64-v0.8.7.tgz",
];

fn lock(files: &[&str]) -> String {
    let digest = Digest::sha256(b"x");
    let line = |url: &&str| format!("- {{name: \"{url}\", digest: {digest}, size: 1}}\n");
    format!(
        "{}files:\n{}",
        super::lock(&["registry.k8s.io/pause:3.5"]),
        files.iter().map(line).collect::<String>()
    )
}

#[test]
fn an_old_cluster_gets_the_urls_of_its_binaries() {
    let place = place(SITE, &[]);
    place.write("landfall.lock", lock(&FILES));
    let render = [
        "render",
        "kubeone",
        "--set",
        "api=v1beta1",
        "--site",
        "site.yaml",
        "-o",
        "out",
    ];
    place.ok(&render);
    let cluster: Value = serde_yaml::from_str(&place.read("out/kubeone-cluster.yaml")).unwrap();
    assert_eq!(cluster["apiVersion"], Value::from("kubeone.io/v1beta1"));
    assert_eq!(
        cluster["registryConfiguration"]["overwriteRegistry"],
        Value::from("registry.corp.example")
    );
    for (asset, file) in [
        ("kubectl", FILES[0]),
        ("nodeBinaries", FILES[2]),
        ("cni", FILES[3]),
    ] {
        let at_site = file.replace("https://", "http://files.corp.example:8080/");
        assert_eq!(
            cluster["assetConfiguration"][asset]["url"],
            Value::from(at_site)
        );
    }
    // KubeOne refuses a configuration with only two of the three URLs, so none of them is written
    place.write("landfall.lock", lock(&FILES[..3]));
    let printed = place.ok(&render);
    assert!(
        printed.contains("the lock does not have an archive of CNI plugins"),
        "{printed}"
    );
    assert!(
        !place
            .read("out/kubeone-cluster.yaml")
            .contains("assetConfiguration")
    );
}

#[test]
fn an_old_cluster_cannot_use_an_account() {
    let place = place(
        &SITE.replace("example}", "example, credentials: {file: account}}"),
        &[],
    );
    place.write("account", "a:b\n");
    let printed = refused(&place, 4, &["kubeone", "--set", "api=v1beta1"]);
    assert!(printed.contains("use --set api=v1beta2"), "{printed}");
}

#[test]
fn components_trust_the_authorities_of_registry_and_proxy() {
    let proxy = "proxy: {http: \"http://p.test\", ca: proxy.crt}\n";
    for (site, has_registry) in [
        (
            format!(
                "registry: {{address: registry.test, ca: ca.crt}}\nconsumers: [kubeone]\n{proxy}"
            ),
            true,
        ),
        (proxy.to_owned(), false),
    ] {
        let place = place(&site, &["registry.k8s.io/pause:3.10"]);
        place.write("ca.crt", CERTIFICATE);
        let other = CERTIFICATE.replace("b25l", "dHdv");
        place.write("proxy.crt", &other);
        let printed = place.ok(&["render", "kubeone", "--site", "site.yaml", "-o", "out"]);
        let cluster: Value = serde_yaml::from_str(&place.read("out/kubeone-cluster.yaml")).unwrap();
        let own = if has_registry { CERTIFICATE } else { "" };
        assert_eq!(cluster["caBundle"], format!("{own}{other}"));
        let note = "does not make nodes trust the registry's certificate authority";
        assert_eq!(printed.contains(note), has_registry, "{printed}");
        assert!(printed.contains("trust only the certificate authorities in caBundle"));
    }
}

#[test]
fn a_registry_that_is_not_verified_is_a_mirror_or_insecure() {
    let cluster = |site: &str, args: &[&str]| -> Value {
        let site = format!("registry: {{{site}, skipVerify: true}}\nconsumers: [kubeone]\n");
        let place = place(&site, &["registry.k8s.io/pause:3.10"]);
        let render = ["render", "kubeone", "--site", "site.yaml", "-o", "out"];
        place.ok(&[&render, args].concat());
        serde_yaml::from_str(&place.read("out/kubeone-cluster.yaml")).unwrap()
    };
    let by_mirrors = cluster("address: registry.test/mirror", &[]);
    assert!(by_mirrors["registryConfiguration"].is_null());
    let mirror = &by_mirrors["containerRuntime"]["containerd"]["registries"]["registry.k8s.io"];
    assert_eq!(mirror["tlsConfig"]["insecureSkipVerify"], Value::Bool(true));
    for set in ["via=overwrite", "api=v1beta1"] {
        let by_name = cluster("address: registry.test", &["--set", set]);
        let registry = &by_name["registryConfiguration"];
        assert_eq!(registry["insecureRegistry"], Value::Bool(true), "{set}");
    }
    // KubeOne would put the path before `/v2`
    let site =
        "registry: {address: registry.test/mirror, skipVerify: true}\nconsumers: [kubeone]\n";
    let place = place(site, &["registry.k8s.io/pause:3.10"]);
    let printed = refused(&place, 4, &["kubeone", "--set", "via=overwrite"]);
    assert!(printed.contains("use --set via=mirrors"), "{printed}");
}

/// `paths` maps the old host to a folder. At first, the lock has the image only under the new host.
#[test]
fn a_mirror_has_the_path_of_the_images() {
    let site = "registry: {address: \"172.20.0.2:5000\", paths: {k8s.gcr.io: kubernetes}}\nconsumers: [kubeone]\n";
    let place = place(site, &["registry.k8s.io/pause:3.10"]);
    place.ok(&[
        "render",
        "kubeone",
        "--set",
        "via=mirrors",
        "--site",
        "site.yaml",
        "-o",
        "out",
    ]);
    let mirrors = |host: &str| -> Value {
        let cluster: Value = serde_yaml::from_str(&place.read("out/kubeone-cluster.yaml")).unwrap();
        cluster["containerRuntime"]["containerd"]["registries"][host].clone()
    };
    for host in ["k8s.gcr.io", "registry.k8s.io"] {
        assert_eq!(
            mirrors(host)["mirrors"][0],
            Value::from("https://172.20.0.2:5000"),
            "{host}"
        );
        assert!(mirrors(host)["overridePath"].is_null());
    }
    // with both names in the lock, both paths are mirrors
    place.write(
        "landfall.lock",
        super::lock(&["k8s.gcr.io/pause:3.1", "registry.k8s.io/pause:3.10"]),
    );
    place.ok(&[
        "render",
        "kubeone",
        "--set",
        "via=mirrors",
        "--site",
        "site.yaml",
        "-o",
        "out",
    ]);
    let old = mirrors("k8s.gcr.io");
    let urls: Vec<&str> = old["mirrors"]
        .as_sequence()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(
        urls,
        [
            "https://172.20.0.2:5000/v2/kubernetes",
            "https://172.20.0.2:5000/v2"
        ]
    );
    assert_eq!(old["overridePath"], Value::Bool(true));
}
