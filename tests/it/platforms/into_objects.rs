//! Merges with `--into` into objects of each platform as people have them: nothing that a person
//! wrote is lost, and what differs is refused unless it is a fact of the site.

use super::{CERTIFICATE, entries, place};
use crate::support::Place;
use serde_yaml::Value;

/// Facts of the site: the addresses of its registry and proxy.
const FACTS: [&str; 2] = ["registry.corp.example", "10.0.0.1:3128"];

const SITE: &str = "registry: {address: registry.corp.example, ca: ca.crt}
consumers: [tkg, kubermatic, kubeone, kubeadm, k3s, rke2, capi, openshift, kustomize]
proxy:
  http: http://10.0.0.1:3128
  https: http://10.0.0.1:3128
  noProxy: {cluster: {podCIDR: 100.96.0.0/11, serviceCIDR: 100.64.0.0/13, domain: cluster.local}}
clusters: [{name: blue, namespace: prod}]
";

/// From the template of Cluster API's provider for vSphere.
const VSPHERE: &str = r#"apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlane
metadata: {name: blue-control-plane, namespace: prod}
spec:
  kubeadmConfigSpec:
    clusterConfiguration:
      controllerManager:
        extraArgs:
          cloud-provider: external
    files:
    - content: |
        apiVersion: v1
        kind: Pod
        metadata:
          name: kube-vip
        spec:
          containers:
          - args:
            - manager
            env:
            - name: vip_arp
              value: "true"
            image: ghcr.io/kube-vip/kube-vip:v0.6.4
      owner: root:root
      path: /etc/kubernetes/manifests/kube-vip.yaml
      permissions: "0644"
    initConfiguration:
      nodeRegistration:
        criSocket: /var/run/containerd/containerd.sock
        kubeletExtraArgs:
          cloud-provider: external
        name: '{{ ds.meta_data.hostname }}'
    joinConfiguration:
      nodeRegistration:
        criSocket: /var/run/containerd/containerd.sock
        name: '{{ ds.meta_data.hostname }}'
    preKubeadmCommands:
    - hostnamectl set-hostname "{{ ds.meta_data.hostname }}"
    - mkdir -p /etc/pre-kubeadm-commands
    users:
    - name: capv
      sudo: ALL=(ALL) NOPASSWD:ALL
  machineTemplate:
    infrastructureRef:
      kind: VSphereMachineTemplate
      name: blue
  replicas: 3
  version: v1.30.0
"#;

const KUBERMATIC: &str = "apiVersion: kubermatic.k8c.io/v1
kind: KubermaticConfiguration
metadata: {name: kubermatic, namespace: kubermatic}
spec:
  ingress:
    domain: kkp.corp.example
    certificateIssuer: {kind: ClusterIssuer, name: letsencrypt-prod}
  auth: {clientID: kubermatic, tokenIssuer: https://kkp.corp.example/dex}
  featureGates: {OIDCKubeCfgEndpoint: true}
  proxy: {http: http://old.corp.example:8080, noProxy: 'vc.corp.example'}
  userCluster: {overwriteRegistry: old.corp.example}
---
apiVersion: kubermatic.k8c.io/v1
kind: Seed
metadata: {name: europe, namespace: kubermatic}
spec:
  country: DE
  kubeconfig: {name: kubeconfig-europe, namespace: kubermatic, fieldPath: kubeconfig}
  datacenters:
    dc-1:
      country: DE
      spec: {vsphere: {endpoint: https://vc.corp.example, datacenter: dc0, templates: {ubuntu: t}}}
      node: {noProxy: vc.corp.example, insecureRegistries: [old.corp.example]}
";

const KUBEONE: &str = "apiVersion: kubeone.k8c.io/v1beta2
kind: KubeOneCluster
name: blue
versions: {kubernetes: '1.33.4'}
cloudProvider: {vsphere: {}, cloudConfig: \"[Global]\\nserver = vc.corp.example\\n\"}
controlPlane:
  hosts:
  - {publicAddress: 10.1.0.1, sshUsername: root, taints: []}
apiEndpoint: {host: api.corp.example, port: 6443}
clusterNetwork: {podSubnet: 10.244.0.0/16}
addons: {enable: true, path: ./addons}
proxy: {http: http://old.corp.example:8080, noProxy: vc.corp.example}
";

const KUBEADM: &str = "apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration: {criSocket: unix:///run/containerd/containerd.sock, taints: []}
patches: {directory: /etc/mine}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: blue
controlPlaneEndpoint: api.corp.example:6443
imageRepository: registry.k8s.io
etcd:
  external:
    endpoints: [https://10.0.0.9:2379]
    caFile: /etc/etcd/ca.crt
apiServer:
  certSANs: [api.corp.example]
";

const APP: &str = "apiVersion: application.giantswarm.io/v1alpha1
kind: App
metadata:
  name: blue
  namespace: prod
  labels:
    app-operator.giantswarm.io/version: 0.0.0
spec:
  name: cluster-aws
  namespace: prod
  version: 0.76.1 # the latest version currently
  catalog: cluster
  config:
    configMap:
      name: \"\"
      namespace: \"\"
    secret:
      name: \"\"
      namespace: \"\"
  kubeConfig:
    inCluster: true
  userConfig:
    configMap:
      name: mycluster-userconfig
      namespace: prod
";

const REGISTRIES: &str = "mirrors:
  docker.io:
    endpoint:
    - https://cache.corp.example
  \"*\":
    endpoint: [https://other.corp.example]
configs:
  cache.corp.example:
    auth: {username: mine, password: hush}
";

fn corp() -> Place {
    let place = place(SITE, &["projects.registry.vmware.com/tkg/pause:3.9"]);
    place.write("ca.crt", CERTIFICATE);
    place
}

/// Runs `landfall render PLATFORM --into mine.yaml` with these arguments.
fn into(place: &Place, exit: i32, args: &[&str]) -> String {
    let run = place
        .command()
        .args(
            [
                &["render"],
                args,
                &["--site", "site.yaml", "--into", "mine.yaml"],
            ]
            .concat(),
        )
        .output()
        .unwrap();
    let printed =
        String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(exit), "{args:?}: {printed}");
    printed
}

fn documents(text: &str) -> Vec<Value> {
    serde_yaml::Deserializer::from_str(text)
        .map(|one| serde::Deserialize::deserialize(one).unwrap())
        .collect()
}

/// Asserts that `new` has everything that `old` has: the same keys and items, and the same scalars
/// except facts of the site and NO_PROXY lists with further entries.
fn keeps(old: &Value, new: &Value, path: &str) {
    match (old, new) {
        (Value::Mapping(old), Value::Mapping(new)) => {
            for (key, value) in old {
                let path = format!("{path}.{}", key.as_str().unwrap_or("?"));
                let new = new.get(key);
                keeps(
                    value,
                    new.unwrap_or_else(|| panic!("{path} is lost")),
                    &path,
                );
            }
        }
        (Value::Sequence(old), Value::Sequence(new)) => {
            let identity = |item: &Value| {
                let keys = ["name", "path"]
                    .iter()
                    .find_map(|key| item.get(key).cloned());
                keys.unwrap_or_else(|| item.clone())
            };
            let mut rest = new.iter();
            for item in old {
                let path = format!("{path}[{:?}]", identity(item));
                let found = rest.find(|other| identity(other) == identity(item));
                keeps(
                    item,
                    found.unwrap_or_else(|| panic!("{path} is lost")),
                    &path,
                );
            }
        }
        (Value::String(old), Value::String(new)) if path.ends_with("oProxy") => {
            assert!(entries(old).is_subset(&entries(new)), "{path}: {new}");
        }
        (old, new) => {
            let is_fact = |text: &str| FACTS.iter().any(|fact| text.contains(fact));
            let is_empty = old.as_str().is_some_and(str::is_empty);
            assert!(
                old == new || is_empty || new.as_str().is_some_and(is_fact),
                "{path}: {old:?} became {new:?}"
            );
        }
    }
}

#[test]
fn objects_of_each_platform_keep_what_people_wrote() {
    let place = corp();
    for (args, old) in [
        (&["capi"][..], VSPHERE),
        (&["tkg"], VSPHERE),
        (&["kubermatic"], KUBERMATIC),
        (&["kubeone"], KUBEONE),
        (&["kubeadm"], KUBEADM),
        (&["giantswarm"], APP),
    ] {
        place.write("mine.yaml", old);
        let diff = into(&place, 0, &[args, &["--diff"]].concat());
        assert_eq!(place.read("mine.yaml"), old, "--diff writes nothing");
        // a removed line only sets a key again
        let key = |line: &str| {
            line[1..]
                .split([':', '='])
                .next()
                .unwrap()
                .trim()
                .to_owned()
        };
        let lines = |start: &str, head: &str| -> Vec<String> {
            let lines = diff.lines();
            lines
                .filter(|line| line.starts_with(start) && !line.starts_with(head))
                .map(key)
                .collect()
        };
        let added = lines("+", "+++");
        assert!(!added.is_empty(), "{args:?}: {diff}");
        for removed in lines("-", "---") {
            assert!(added.contains(&removed), "{args:?}: {removed} in {diff}");
        }
        into(&place, 0, args);
        let new = place.read("mine.yaml");
        for (old, new) in documents(old).iter().zip(documents(&new)) {
            keeps(old, &new, args[0]);
        }
        assert!(into(&place, 0, args).contains("is up to date"), "{args:?}");
    }
    // files without a kind are merged by their names
    for (platform, file) in [("k3s", "registries.yaml"), ("rke2", "registries.yaml")] {
        place.write(file, REGISTRIES);
        place.ok(&["render", platform, "--site", "site.yaml", "--into", file]);
        let new = documents(&place.read(file)).remove(0);
        keeps(&documents(REGISTRIES)[0], &new, platform);
        assert!(
            !new["mirrors"]["registry.corp.example"].is_null(),
            "{new:?}"
        );
    }
}

/// A cluster of TKG 1 has no `ClusterClass`: Cluster API refuses a topology without one.
#[test]
fn only_clusters_with_a_topology_get_its_variables() {
    let place = corp();
    let merged = |topology: &str| {
        let cluster = "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: blue}\n\
                       spec:\n  paused: false\n";
        place.write("mine.yaml", format!("{cluster}{topology}---\n{VSPHERE}"));
        into(&place, 0, &["tkg"]);
        documents(&place.read("mine.yaml")).remove(0)["spec"]["topology"].clone()
    };
    assert!(merged("").is_null());
    let topology = "  topology:\n    class: tkg-vsphere-default-v1.2.0\n    variables:\n    \
                    - name: vcenter\n      value: {server: vcenter.test}\n";
    let variables = merged(topology)["variables"].clone();
    let names = variables.as_sequence().unwrap().iter();
    let names: Vec<_> = names.map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["vcenter", "imageRepository", "proxy", "trust"]);
    assert_eq!(variables[0]["value"]["server"], "vcenter.test");
}

/// The control plane of a `ClusterClass` is a template. The apiVersion of the file is kept.
#[test]
fn the_templates_of_a_cluster_class_get_the_files_of_machines() {
    let place = corp();
    let template = |group: &str, kind: &str, spec: &str| {
        format!(
            "apiVersion: {group}.cluster.x-k8s.io/v1beta2\nkind: {kind}\n\
             metadata: {{name: quick-start-{group}}}\nspec:\n  template:\n    spec:\n{spec}"
        )
    };
    let control = template(
        "controlplane",
        "KubeadmControlPlaneTemplate",
        "      kubeadmConfigSpec:\n        initConfiguration:\n          nodeRegistration: {}\n",
    );
    let worker = template(
        "bootstrap",
        "KubeadmConfigTemplate",
        "      joinConfiguration:\n        nodeRegistration: {}\n",
    );
    // a machine pool has no template
    let pool = "kind: KubeadmConfig\nmetadata: {name: pool}\nspec:\n  format: cloud-config\n";
    place.write("mine.yaml", format!("{control}---\n{worker}---\n{pool}"));
    into(&place, 0, &["capi"]);
    let new = documents(&place.read("mine.yaml"));
    assert_eq!(
        new[0]["apiVersion"],
        "controlplane.cluster.x-k8s.io/v1beta2"
    );
    let worker = &new[1]["spec"]["template"]["spec"];
    let control = &new[0]["spec"]["template"]["spec"]["kubeadmConfigSpec"];
    let paths = |spec: &Value| -> Vec<String> {
        let files = spec["files"].as_sequence().unwrap().iter();
        let paths = files.map(|file| file["path"].as_str().unwrap().to_owned());
        paths.collect()
    };
    assert!(!paths(worker).is_empty(), "{worker:?}");
    assert!(paths(control).starts_with(&paths(worker)), "{control:?}");
    assert_eq!(new[2]["spec"]["files"], worker["files"]);
    assert_eq!(control["preKubeadmCommands"], worker["preKubeadmCommands"]);
    assert_eq!(
        control["initConfiguration"]["patches"]["directory"],
        "/etc/kubernetes/patches"
    );
    assert!(into(&place, 0, &["capi"]).contains("is up to date"));
}

#[test]
fn names_folders_and_switches_are_replaced_only_with_replace() {
    let place = corp();
    let worker =
        "kind: KubeadmConfigTemplate\nmetadata: {name: blue-md-0}\nspec: {template: {spec: ";
    let control = "kind: KubeadmControlPlane\nmetadata: {name: blue-control-plane}\nspec: {kubeadmConfigSpec: ";
    for (args, text, path) in [
        (
            &["giantswarm"][..],
            APP.replacen("name: \"\"", "name: my-values", 1),
            "spec.config.configMap.name: it has another value than \"blue-cluster-values\"",
        ),
        (
            &["capi"],
            format!("{control}{{joinConfiguration: {{patches: {{directory: /etc/mine}}}}}}}}\n"),
            "joinConfiguration.patches.directory: it has another value than \"/etc/kubernetes/patches\"",
        ),
        (
            &["tkg"],
            VSPHERE.replacen("'{{ ds.meta_data.hostname }}'", "'{{ local_hostname }}'", 1),
            "initConfiguration.nodeRegistration.name: it has another value",
        ),
        (
            // the Secret of cluster-apps-operator
            &["capi"],
            format!(
                "{worker}{{files: [{{path: /etc/systemd/system/containerd.service.d/http-proxy.conf, \
                 contentFrom: {{secret: {{name: blue-systemd-proxy, key: containerdProxy}}}}}}]}}}}}}\n"
            ),
            "contentFrom.secret.name: it has another value than \"blue-landfall\"",
        ),
        (
            &["kubermatic"],
            "kind: KubermaticConfiguration\nspec: {caBundle: {kind: ConfigMap, name: mine}}\n".into(),
            "spec.caBundle.name: it has another value than \"ca-bundle\"",
        ),
        (
            &["kubeone"],
            "kind: KubeOneCluster\nsystemPackages: {configureRepositories: true}\n".into(),
            "systemPackages.configureRepositories: it has another value than \"false\"",
        ),
        (
            &["kubeadm"],
            "kind: ClusterConfiguration\ndns: {imageTag: v1.9.9}\netcd: {local: {dataDir: /mine}}\nkubernetesVersion: v1.30.0\n".into(),
            "kubernetesVersion: it has another value than \"v1.33.4\"",
        ),
    ] {
        let images: &[&str] = match args {
            ["kubeadm"] => &["registry.k8s.io/kube-apiserver:v1.33.4"],
            _ => &["projects.registry.vmware.com/tkg/pause:3.9"],
        };
        place.write("landfall.lock", super::lock(images));
        place.write("mine.yaml", &text);
        for more in [&[][..], &["--diff"]] {
            let printed = into(&place, 2, &[args, more].concat());
            assert!(printed.contains(path) && printed.contains("--replace"), "{printed}");
        }
        assert_eq!(place.read("mine.yaml"), text);
        into(&place, 0, &[args, &["--replace"]].concat());
        assert_ne!(place.read("mine.yaml"), text);
    }
}

/// `kubectl get secret A,B -o yaml` prints one list. Each of its Secrets is merged in place, and
/// all spellings of NO_PROXY in a Secret agree.
#[test]
fn objects_in_a_list_are_merged_and_spellings_of_no_proxy_agree() {
    let place = corp();
    let values =
        "no_proxy: vc.corp.example\n      cluster:\n        proxy: {noProxy: s3.corp.example}";
    let old = format!(
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {{name: blue-cluster-values, namespace: prod}}\n  \
         stringData:\n    values: |\n      {values}\n- apiVersion: v1\n  kind: Secret\n  metadata: {{name: mine}}   # ours\n  data: {{a: eA==}}\n"
    );
    place.write("mine.yaml", &old);
    into(&place, 0, &["giantswarm"]);
    let new = place.read("mine.yaml");
    keeps_lines(&old, &new, &["no_proxy", "proxy:"]);
    let list = documents(&new).remove(0);
    let values = documents(list["items"][0]["stringData"]["values"].as_str().unwrap()).remove(0);
    let common = values["no_proxy"].as_str().unwrap();
    for host in [
        "vc.corp.example",
        "s3.corp.example",
        "registry.corp.example",
        "svc",
    ] {
        assert!(entries(common).contains(host), "{host}: {common}");
    }
    assert_eq!(values["cluster"]["proxy"]["noProxy"], common);
    let variable = values["env"]
        .as_sequence()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "NO_PROXY");
    assert_eq!(variable.unwrap()["value"], common);
    assert!(into(&place, 0, &["giantswarm"]).contains("is up to date"));
}

/// Asserts that `new` has all lines of `old`, except those that begin with one of `set`.
fn keeps_lines(old: &str, new: &str, set: &[&str]) {
    for line in old.lines() {
        let is_set = set.iter().any(|start| line.trim_start().starts_with(start));
        assert!(
            is_set || new.lines().any(|there| there == line),
            "{line} is lost:\n{new}"
        );
    }
}

/// The kubelet connects to the cloud only with an in-tree provider.
#[test]
fn the_kubelet_gets_the_proxy_only_on_request() {
    let place = corp();
    for (set, has_kubelet) in [("external", false), ("in-tree", true)] {
        for platform in ["capi", "giantswarm"] {
            let set = format!("cloud-provider={set}");
            let args = [
                "render",
                platform,
                "--site",
                "site.yaml",
                "--set",
                &set,
                "-o",
                "out",
            ];
            place.ok(&args);
            let files = super::files(&place.path("out"));
            let names_kubelet = files
                .values()
                .any(|text| text.contains("kubelet.service.d"));
            assert_eq!(names_kubelet, has_kubelet, "{platform} {set}");
            std::fs::remove_dir_all(place.path("out")).unwrap();
        }
    }
}

/// Each cluster has its own part of NO_PROXY, and the site's for what it leaves out.
#[test]
fn each_cluster_has_its_own_no_proxy() {
    let place = corp();
    let site = SITE.replace(
        "clusters: [{name: blue, namespace: prod}]",
        "clusters:\n\
         - {name: blue, namespace: prod, podCIDR: 10.1.0.0/16, controlPlaneEndpoint: \"10.0.1.1:6443\"}\n\
         - {name: green, namespace: test, serviceCIDR: 10.2.0.0/16, domain: green.local}",
    );
    place.write(
        "site.yaml",
        format!("apiVersion: landfall/v1\nkind: Site\n{site}"),
    );
    place.ok(&["render", "giantswarm", "--site", "site.yaml", "-o", "out"]);
    let list = |file: &str| {
        let secret = documents(&place.read(file)).remove(0);
        let values = documents(secret["stringData"]["values"].as_str().unwrap()).remove(0);
        let list = values["cluster"]["proxy"]["noProxy"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(values["no_proxy"], list);
        list
    };
    let rest = "svc,127.0.0.1,localhost,registry.corp.example";
    let blue = format!("cluster.local,100.64.0.0/13,10.1.0.0/16,10.0.1.1,{rest}");
    let green = format!("green.local,10.2.0.0/16,100.96.0.0/11,{rest}");
    assert_eq!(list("out/blue/cluster-values.yaml"), blue);
    assert_eq!(list("out/green/cluster-values.yaml"), green);
    // the drop-ins of the same cluster agree
    assert!(
        place
            .read("out/green/systemd-proxy.yaml")
            .contains(&format!("NO_PROXY={green}\""))
    );
    // one cluster by its name
    let set = ["--set", "cluster=green", "--set", "namespace=test"];
    place.ok(&[
        &["render", "giantswarm", "--site", "site.yaml", "-o", "one"],
        &set[..],
    ]
    .concat());
    assert_eq!(list("one/cluster-values.yaml"), green);
    // a platform without clusters has the site's part
    let common = place.ok(&["render", "no-proxy", "--site", "site.yaml"]);
    assert!(
        common.contains("100.96.0.0/11") && !common.contains("10.1.0.0/16"),
        "{common}"
    );
    // an ineffective entry is refused with its key
    place.write(
        "site.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Site\n{}",
            site.replace("10.1.0.0/16", "\"10.1.\"")
        ),
    );
    std::fs::remove_dir_all(place.path("out")).unwrap();
    let printed = super::refused(&place, 2, &["giantswarm"]);
    assert!(
        printed.contains("'10.1.' in clusters.blue.podCIDR of the site"),
        "{printed}"
    );
}

const TWO_CLUSTERS: &str = "clusters:
- {name: blue, namespace: prod, podCIDR: 10.1.0.0/16}
- {name: green, namespace: test, podCIDR: 10.2.0.0/16}
";

fn two_clusters() -> Place {
    let place = corp();
    let site = SITE.replace("clusters: [{name: blue, namespace: prod}]\n", TWO_CLUSTERS);
    place.write(
        "site.yaml",
        format!("apiVersion: landfall/v1\nkind: Site\n{site}"),
    );
    place
}

/// An object belongs to the cluster that its label or its name says, and gets what is rendered for
/// this cluster.
#[test]
fn objects_of_several_clusters_get_the_values_of_their_own_cluster() {
    let place = two_clusters();
    let app = |name: &str, more: &str| {
        format!("kind: App\nmetadata: {{name: {name}{more}}}\nspec: {{catalog: mine}}\n")
    };
    let old = format!(
        "{}---\n{}",
        app("blue-ingress", ""),
        app("ingress", ", labels: {giantswarm.io/cluster: green}")
    );
    place.write("mine.yaml", &old);
    let printed = into(&place, 0, &["giantswarm"]);
    assert!(
        printed.contains("the file has no counterpart of 20 of the 22 rendered documents"),
        "{printed}"
    );
    assert_eq!(printed.matches("counterpart").count(), 1, "{printed}");
    let names: Vec<Value> = documents(&place.read("mine.yaml"))
        .iter()
        .map(|app| app["spec"]["config"]["secret"]["name"].clone())
        .collect();
    assert_eq!(names, ["blue-cluster-values", "green-cluster-values"]);
    // a cluster that the user names does not change objects of another one
    let both = app("green-ingress", "");
    place.write("mine.yaml", &both);
    let set = [
        "giantswarm",
        "--set",
        "cluster=blue",
        "--set",
        "namespace=prod",
    ];
    let printed = into(&place, 2, &set);
    assert!(
        printed.contains("has no document to merge into"),
        "{printed}"
    );
    assert_eq!(place.read("mine.yaml"), both);
}

/// A platform with one set of files has the site's own NO_PROXY unless a cluster is named: by the
/// user, or by the file of `--into`.
#[test]
fn one_set_of_files_has_the_no_proxy_of_the_named_cluster() {
    let place = two_clusters();
    let site = ["--site", "site.yaml"];
    let run = |args: &[&str]| place.json(0, &[&["render"], args, &site].concat());
    let note = "not those of the clusters blue, green; --set cluster=NAME";
    let printed = String::from_utf8_lossy(
        &place
            .command()
            .args([&["render", "no-proxy"], &site[..]].concat())
            .output()
            .unwrap()
            .stderr,
    )
    .into_owned();
    assert!(printed.contains(note), "{printed}");
    for (platform, file) in [
        (
            "systemd",
            "etc/systemd/system/containerd.service.d/http-proxy.conf",
        ),
        (
            "containerd",
            "etc/systemd/system/containerd.service.d/http-proxy.conf",
        ),
        ("crio", "etc/systemd/system/crio.service.d/http-proxy.conf"),
        (
            "docker",
            "etc/systemd/system/docker.service.d/http-proxy.conf",
        ),
        (
            "k0s",
            "etc/systemd/system/k0sworker.service.d/http-proxy.conf",
        ),
        ("k3s", "etc/default/k3s"),
        ("talos", "proxy.yaml"),
        ("kyverno", "inject-proxy.yaml"),
        ("kubeone", "kubeone-cluster.yaml"),
        ("kubermatic", "kubermatic-configuration.yaml"),
        ("openshift", "proxy.yaml"),
    ] {
        let set = ["--set", "cluster=green", "-o", platform];
        run(&[&[platform], &set[..]].concat());
        let text = place.read(&format!("{platform}/{file}"));
        assert!(
            text.contains("10.2.0.0/16") && !text.contains("100.96.0.0/11"),
            "{platform}: {text}"
        );
    }
    let message = super::refused(&place, 2, &["systemd", "--set", "cluster=red"]);
    assert!(
        message.contains("the clusters of the site are blue, green"),
        "{message}"
    );
    place.write("mine.yaml", KUBEONE);
    let printed = into(&place, 0, &["kubeone"]);
    assert!(!printed.contains("clusters"), "{printed}");
    let proxy = &documents(&place.read("mine.yaml"))[0]["proxy"];
    assert!(
        entries(proxy["noProxy"].as_str().unwrap()).contains("10.1.0.0/16"),
        "{proxy:?}"
    );
}

/// The site's proxy has no account, but the file has one for it: the account stays. A path below
/// the site's registry is the decision of a person too.
#[test]
fn accounts_at_the_same_proxy_and_paths_at_the_same_registry_are_kept() {
    let place = corp();
    let account = "http://me:hush@10.0.0.1:3128";
    let cluster = format!(
        "kind: KubeOneCluster\nname: blue\nproxy: {{http: {account}, https: http://10.0.0.1:3128/}}\n"
    );
    place.write("mine.yaml", &cluster);
    into(&place, 0, &["kubeone"]);
    let new = documents(&place.read("mine.yaml")).remove(0);
    assert_eq!(new["proxy"]["http"], account);
    assert_eq!(new["proxy"]["https"], "http://10.0.0.1:3128/");
    // another proxy is another fact, and the account is not its own
    place.write("mine.yaml", cluster.replace("10.0.0.1", "10.0.0.9"));
    into(&place, 0, &["kubeone"]);
    let new = documents(&place.read("mine.yaml")).remove(0);
    assert_eq!(new["proxy"]["http"], "http://10.0.0.1:3128");

    let machines = format!(
        "kind: KubeadmControlPlane\nmetadata: {{name: blue-control-plane, namespace: prod}}\nspec:\n  kubeadmConfigSpec:\n    \
         files:\n    - path: /etc/systemd/system/containerd.service.d/http-proxy.conf\n      content: |\n        \
         [Service]\n        Environment=\"HTTP_PROXY={account}\"\n    preKubeadmCommands:\n    - export HTTP_PROXY='{account}'\n"
    );
    place.write("mine.yaml", &machines);
    into(&place, 0, &["tkg"]);
    let new = place.read("mine.yaml");
    keeps_lines(&machines, &new, &[]);
    assert_eq!(new.matches("HTTP_PROXY=").count(), 3, "{new}");

    let path = "kind: KubeOneCluster\nregistryConfiguration: {overwriteRegistry: registry.corp.example/team}\n";
    place.write("mine.yaml", path);
    let printed = into(&place, 2, &["kubeone"]);
    assert!(
        printed.contains("overwriteRegistry: it has another value than \"registry.corp.example\""),
        "{printed}"
    );
    assert_eq!(place.read("mine.yaml"), path);
    into(&place, 0, &["kubeone", "--replace"]);
}
