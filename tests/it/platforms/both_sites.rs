//! The platforms for nodes and clusters at two sites: one without a prefix and without an account,
//! and one with a prefix, a private authority, an account, and a proxy with an account.

use super::{CERTIFICATE, golden, place, refused};
use crate::support::Place;
use crate::support::library::Digest;

const IMAGES: &[&str] = &[
    "docker.io/calico/node:v3.28.0",
    "docker.io/library/nginx:1.27",
    "quay.io/kubermatic/kubermatic:v2.27.0",
    "quay.io/prometheus/node-exporter:v1.9.0",
    "registry.k8s.io/coredns/coredns:v1.12.0",
    "registry.k8s.io/etcd:3.5.21-0",
    "registry.k8s.io/kube-apiserver:v1.33.4",
    "registry.k8s.io/pause:3.10",
];

pub(super) const ROOT: &str = "registry: {address: \"172.20.0.2:5000\", plainHTTP: true}\nfiles: \"http://172.20.0.2:8080\"\n\
                    consumers: [kubeadm, kubeone]\n";

const CORP: &str = "registry:
  address: registry.corp.example/mirror
  ca: ca.crt
  credentials: {file: account}
  paths: {quay.io/prometheus: monitoring}
consumers: [containerd, kubeadm, kubeone, kubermatic, giantswarm, capi, tkg]
clusters: [{name: blue, namespace: org-blue}]
proxy:
  http: http://10.0.0.1:3128
  https: http://10.0.0.1:3128
  credentials: {file: proxy-account}
  noProxy:
    installation: [10.0.0.0/8, corp.example]
    cluster: {podCIDR: 10.244.0.0/16, serviceCIDR: 10.96.0.0/12, domain: cluster.local, controlPlaneEndpoint: 10.0.0.9}
";

fn corp() -> Place {
    corp_with(IMAGES)
}

pub(super) fn corp_with(images: &[&str]) -> Place {
    let place = place(CORP, images);
    place.write(
        "ca.crt",
        "-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n",
    );
    place.write("account", "puller:pa:ss\"w\n");
    place.write("proxy-account", "me:p@ss 100%\n");
    place
}

macro_rules! platforms {
    ($($test:ident: $platform:literal),* $(,)?) => {$(
        mod $test {
            #[test]
            fn matches_the_golden_files_at_the_root() {
                let place = super::place(super::ROOT, super::IMAGES);
                super::golden(&place, concat!($platform, "-root"), &[$platform]);
            }

            #[test]
            fn matches_the_golden_files_with_prefix_authority_and_accounts() {
                super::golden(&super::corp(), concat!($platform, "-corp"), &[$platform]);
            }
        }
    )*};
}

platforms! {
    containerd: "containerd",
    crio: "crio",
    podman: "podman",
    nerdctl: "nerdctl",
    k3s: "k3s",
    rke2: "rke2",
    k0s: "k0s",
    kubeadm: "kubeadm",
    kubespray: "kubespray",
    talos: "talos",
    kustomize: "kustomize",
    kyverno: "kyverno",
    openshift: "openshift",
    kubermatic: "kubermatic",
    kubeone: "kubeone",
    serve: "serve",
}

/// These platforms write a folder for each cluster, so only the site with clusters is used.
#[test]
fn platforms_of_clusters_match_the_golden_files() {
    for platform in ["giantswarm", "capi", "tkg"] {
        golden(&corp(), &format!("{platform}-corp"), &[platform]);
    }
}

#[test]
fn kyverno_policies_in_cel_match_the_golden_files() {
    let place = corp();
    place.write(
        "site.pub",
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----\n",
    );
    let settings = ["--set", "form=cel", "--set", "image-key=site.pub"];
    let args = [&["kyverno"], &settings[..]].concat();
    golden(&place, "kyverno-cel", &args);
}

#[test]
fn clusters_with_the_same_name_are_refused() {
    let clusters = "clusters: [{name: a, namespace: n}, {name: a, namespace: m}]\n";
    let printed = refused(&place(&format!("{ROOT}{clusters}"), IMAGES), 2, &["capi"]);
    assert!(
        printed.contains("two clusters of the site are named a"),
        "{printed}"
    );
}

#[test]
fn docker_supports_only_a_mirror_of_docker_hub_at_the_root() {
    golden(&place(ROOT, IMAGES), "docker-root", &["docker"]);
    let printed = refused(&corp(), 4, &["docker"]);
    assert!(
        printed.contains("does not accept mirrors with a path"),
        "{printed}"
    );
}

#[test]
fn the_note_of_docker_counts_images_of_other_registries() {
    let images = ["nginx:1.27", "quay.io/a/b:v1"];
    let place = place(ROOT, &images);
    let printed = place.ok(&["render", "docker", "--site", "site.yaml", "-o", "out"]);
    let note = "1 image is not from Docker Hub: the daemon finds it only by its name at";
    assert!(printed.contains(note), "{printed}");
}

#[test]
fn a_server_listens_at_all_addresses_at_the_port_of_the_registry() {
    for (registry, listen) in [
        ("address: r.test", "0.0.0.0:443"),
        ("address: r.test, plainHTTP: true", "0.0.0.0:80"),
        ("address: \"[fd00::2]:5000\"", "[::]:5000"),
        ("address: \"[fd00::2]\"", "[::]:443"),
    ] {
        let place = place(&format!("registry: {{{registry}}}\n"), IMAGES);
        place.ok(&["render", "serve", "--site", "site.yaml", "-o", "out"]);
        let environment = place.read("out/etc/landfall/serve.env");
        let listen = format!("--listen {listen}\n");
        assert!(environment.contains(&listen), "{environment}");
    }
}

#[test]
fn a_server_needs_neither_a_registry_nor_a_site() {
    let place = place(ROOT, IMAGES);
    place.ok(&["render", "serve", "-o", "out"]);
    let environment = place.read("out/etc/landfall/serve.env");
    let line = "LANDFALL_SERVE=/srv/landfall/release.tar.zst --listen 0.0.0.0:5000\n";
    assert!(environment.ends_with(line), "{environment}");
    assert!(!environment.contains("LANDFALL_SITE"), "{environment}");
    place.write("proxy.yaml", "apiVersion: landfall/v1\nkind: Site\n");
    place.ok(&["render", "serve", "--site", "proxy.yaml", "-o", "out"]);
    let environment = place.read("out/etc/landfall/serve.env");
    let site = "LANDFALL_SITE=/etc/landfall/site.yaml\n";
    assert!(
        environment.ends_with(&format!("{line}{site}")),
        "{environment}"
    );
}

#[test]
fn arguments_of_the_server_with_blanks_are_quoted_for_systemd() {
    let place = place(ROOT, IMAGES);
    let render = ["serve", "--set", "tls=/etc/land fall", "--set"];
    let args = [&["render"], &render[..], &["bundle=/srv/my bundle.tar"]].concat();
    place.ok(&[&args[..], &["--site", "site.yaml", "-o", "out"]].concat());
    let environment = place.read("out/etc/landfall/serve.env");
    let line = "LANDFALL_SERVE='\"/srv/my bundle.tar\" --listen 0.0.0.0:5000 --tls-cert \
                \"/etc/land fall/tls.crt\" --tls-key \"/etc/land fall/tls.key\"'\n";
    assert!(environment.contains(line), "{environment}");
    let place = super::place(ROOT, IMAGES);
    for (bundle, words) in [
        ("bundle=/srv/a'b.tar", "does not pass quotes"),
        ("bundle=/srv/a\tb.tar", "must be a single line of text"),
        ("bundle=/srv/a\nX=y", "must be a single line of text"),
        // with these, the service would not start
        ("bundle=a.tar.zst", "write the whole path"),
        ("bundle=/home/me/a.tar.zst", "hides /home"),
        ("tls=/root/tls", "hides /home"),
        ("listen=5000", "write ADDRESS:PORT"),
        ("listen=:5000", "write ADDRESS:PORT"),
        ("listen=https://0.0.0.0:443", "https needs a certificate"),
        ("listen=0.0.0.0:http", "write ADDRESS:PORT"),
    ] {
        let told = refused(&place, 2, &["serve", "--set", bundle]);
        assert!(told.contains(words), "{told}");
    }
    let render = ["serve", "--set", "tls=/etc/tls", "--set"];
    let listen = ["listen=https://0.0.0.0:443", "-o", "out"];
    place.ok(&[&["render"], &render[..], &listen].concat());
    let unit = place.read("out/etc/systemd/system/landfall.service.d/port.conf");
    assert!(unit.contains("CAP_NET_BIND_SERVICE"), "{unit}");
}

#[test]
fn an_image_locked_under_both_names_of_its_host_has_one_version() {
    let [old, new] = ["k8s.gcr.io/etcd:3.5.9-0", "registry.k8s.io/etcd:3.5.9-0"];
    let place = place(ROOT, &[]);
    let digest = |name: &str| Digest::sha256(name.as_bytes()).to_string();
    let lock = super::lock(&[old, new]).replace(&digest(old), &digest(new));
    place.write("landfall.lock", lock);
    let printed = place.ok(&["render", "kubeadm", "--site", "site.yaml", "-o", "out"]);
    assert!(!printed.contains("several versions"), "{printed}");
    let text = place.read("out/kubeadm-config.yaml");
    assert!(text.contains("imageTag: 3.5.9-0\n"), "{text}");
}

#[test]
fn inexpressible_settings_are_refused_with_an_alternative() {
    let place = place(
        &format!("{ROOT}proxy: {{http: \"http://10.0.0.1:1\"}}\n"),
        IMAGES,
    );
    for (exit, args, words) in [
        (2, &["tkg", "--set", "cluster=a"][..], "only over https"),
        (
            4,
            &["kubeone", "--set", "via=overwrite"],
            "use --set via=mirrors",
        ),
    ] {
        let printed = refused(&place, exit, args);
        assert!(printed.contains(words), "{printed}");
    }
    // containers/image reads no reference with brackets
    let site = "registry: {address: \"[fd00::2]:5000\", ca: ca.crt}\n";
    let place = super::place(site, IMAGES);
    place.write("ca.crt", CERTIFICATE);
    for platform in ["openshift", "crio", "podman"] {
        let printed = refused(&place, 4, &[platform]);
        assert!(
            printed.contains("give the registry a host name"),
            "{platform}: {printed}"
        );
    }
    // containerd 1.x, which TKG has, does not start if the name of a table contains this address
    let site = "registry: {address: \"[fd00::2]:5000\", skipVerify: true}\n";
    let printed = refused(
        &super::place(site, IMAGES),
        2,
        &["tkg", "--set", "cluster=a"],
    );
    assert!(
        printed.contains("does not start if the name of a table contains an IPv6 address"),
        "{printed}"
    );
}

/// The network operator ignores the whole proxy if one value is invalid.
#[test]
fn openshift_gets_only_a_proxy_that_its_operator_accepts() {
    let site = |http: &str, entry: &str| {
        let text = format!(
            "registry: {{address: r.test}}\n\
             proxy: {{http: \"{http}\", ca: ca.crt, noProxy: {{installation: [\"{entry}\"]}}}}\n"
        );
        let place = place(&text, IMAGES);
        place.write("ca.crt", CERTIFICATE);
        place
    };
    for (entry, written) in [
        ("fd00::5", "fd00::5/128"),
        ("fd00::/8", "fd00::/8"),
        ("10.1.2.3", "10.1.2.3"),
        ("Corp.example", "corp.example"),
        ("*.corp.example", ".corp.example"),
    ] {
        let place = site("http://p.test:3128", entry);
        let printed = place.ok(&["render", "openshift", "--site", "site.yaml", "-o", "out"]);
        assert!(
            printed.contains("if the cluster has a ConfigMap user-ca-bundle, merge into it"),
            "{printed}"
        );
        let read = |file: &str| {
            serde_yaml::from_str::<serde_yaml::Value>(&place.read(&format!("out/{file}"))).unwrap()
        };
        let spec = read("proxy.yaml")["spec"].clone();
        assert_eq!(spec["httpProxy"], "http://p.test:3128");
        assert_eq!(spec["noProxy"], format!("{written},r.test").as_str());
        let authorities = read("user-ca-bundle.yaml");
        assert_eq!(spec["trustedCA"]["name"], authorities["metadata"]["name"]);
        assert_eq!(authorities["data"]["ca-bundle.crt"], CERTIFICATE);
    }
    for (http, entry, words) in [
        ("https://p.test:3128", "a.test", "only a proxy with http://"),
        ("http://p.test:3128", "a.test:8080", "not 'a.test:8080'"),
    ] {
        let printed = refused(&site(http, entry), 2, &["openshift"]);
        assert!(printed.contains(words), "{printed}");
    }
}

#[test]
fn a_repository_locked_under_both_names_of_a_host_has_both_destinations() {
    let site = "registry:\n  address: 172.20.0.2:5000\n  plainHTTP: true\n  paths: {k8s.gcr.io: kubernetes}\n";
    let place = place(
        site,
        &["k8s.gcr.io/pause:3.1", "registry.k8s.io/pause:3.10"],
    );
    let render = |platform| place.ok(&["render", platform, "--site", "site.yaml", "-o", "out"]);
    for platform in ["podman", "kustomize", "openshift"] {
        render(platform);
    }
    let conf = place.read("out/etc/containers/registries.conf.d/50-landfall.conf");
    assert!(
        !conf.contains("registry.k8s.io/pause") && conf.contains("172.20.0.2:5000/kubernetes"),
        "{conf}"
    );
    let sets = place.read("out/image-tag-mirror-set.yaml");
    assert!(!sets.contains("registry.k8s.io/pause"), "{sets}");
    let images = place.read("out/kustomization.yaml");
    assert!(
        images.contains("- name: registry.k8s.io/pause\n  newName: 172.20.0.2:5000/pause\n"),
        "{images}"
    );
    assert!(
        images.contains("- name: k8s.gcr.io/pause\n  newName: 172.20.0.2:5000/kubernetes/pause\n"),
        "{images}"
    );
}
