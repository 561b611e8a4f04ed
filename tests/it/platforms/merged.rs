//! Merges with `--into` into the user's files, which contain Secrets with accounts, ordered
//! commands or the files of machines. Existing content is kept.

use super::{CERTIFICATE, files, place, refused};
use crate::support::Place;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_yaml::Value;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

const TKG: &str = "registry: {address: registry.corp.example, ca: ca.crt}
consumers: [tkg, kubermatic]
proxy:
  http: http://10.0.0.1:3128
  https: http://10.0.0.1:3128
  noProxy: {cluster: {podCIDR: 100.96.0.0/11, serviceCIDR: 100.64.0.0/13, domain: cluster.local}}
clusters: [{name: blue, namespace: prod}]
";

const OTHER: &str = "-----BEGIN CERTIFICATE-----\ndHdv\n-----END CERTIFICATE-----\n";

fn tkg() -> Place {
    let place = place(TKG, &["projects.registry.vmware.com/tkg/pause:3.9"]);
    place.write("ca.crt", CERTIFICATE);
    place
}

fn merge(place: &Place, platform: &str, more: &[&str]) -> String {
    place.ok(&[
        &[
            "render",
            platform,
            "--site",
            "site.yaml",
            "--into",
            "mine.yaml",
        ],
        more,
    ]
    .concat())
}

/// Runs a merge into `mine.yaml`, which must fail with exit code 2. Returns its stderr.
fn refused_merge(place: &Place, platform: &str, more: &[&str]) -> String {
    let args = [
        &[
            "render",
            platform,
            "--site",
            "site.yaml",
            "--into",
            "mine.yaml",
        ],
        more,
    ]
    .concat();
    place.stderr(2, &args)
}

/// Asserts that every line of `old` is in `new`, in the same order, except those that begin with
/// one of `set`.
fn keeps(old: &str, new: &str, set: &[&str]) {
    let mut lines = new.lines();
    for line in old.lines() {
        let is_set = set.iter().any(|start| line.trim_start().starts_with(start));
        assert!(
            is_set || lines.any(|there| there == line),
            "{line} is missing or out of order:\n{new}"
        );
    }
}

/// The values of the CPI addon as users of vSphere write them.
const CPI: &str = "\
#@data/values
#@overlay/match-child-defaults missing_ok=True
---
vsphereCPI:
  server: vc.corp.example   # ours
  datacenter: /dc0
  username: svc-cpi@corp.example
  password: 'hush: hush'
  no_proxy: vc.corp.example
";

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

fn cpi_secret(values: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: blue-vsphere-cpi-addon\n  namespace: prod\n\
         stringData:\n  values.yaml: |\n{}type: tkg.tanzu.vmware.com/addon\n",
        indented(values)
    )
}

#[test]
fn a_secret_of_an_addon_keeps_the_account_of_vcenter() {
    let place = tkg();
    let old = cpi_secret(CPI);
    place.write("mine.yaml", &old);
    let diff = merge(&place, "tkg", &["--diff"]);
    assert_eq!(place.read("mine.yaml"), old, "--diff writes nothing");
    assert!(
        !diff.contains("hush") && !diff.contains("svc-cpi"),
        "{diff}"
    );
    assert!(
        diff.contains("\n       password: ***\n")
            && diff.contains("\n+      http_proxy: *** (changed)\n"),
        "{diff}"
    );
    let message = merge(&place, "tkg", &[]);
    assert!(
        message.contains("mine.yaml: stringData.values.yaml: vsphereCPI.http_proxy"),
        "{message}"
    );
    let new = place.read("mine.yaml");
    keeps(&old, &new, &["no_proxy:"]);
    let secret: Value = serde_yaml::from_str(&new).unwrap();
    let values: Value =
        serde_yaml::from_str(secret["stringData"]["values.yaml"].as_str().unwrap()).unwrap();
    let values = &values["vsphereCPI"];
    assert_eq!(values["password"], Value::from("hush: hush"));
    assert_eq!(values["https_proxy"], Value::from("http://10.0.0.1:3128"));
    assert!(
        values["no_proxy"]
            .as_str()
            .unwrap()
            .starts_with("vc.corp.example,.svc.cluster.local,"),
        "{values:?}"
    );
    assert!(merge(&place, "tkg", &[]).contains("is up to date"));
    assert_eq!(place.read("mine.yaml"), new);
}

/// The Secret is in the form that `kubectl get -o yaml` prints.
#[test]
fn a_secret_with_data_gets_no_string_data() {
    let place = tkg();
    let old = format!(
        "apiVersion: v1\ndata:\n  values.yaml: {}\nkind: Secret\nmetadata:\n  name: blue-vsphere-cpi-addon\n  namespace: prod\n",
        STANDARD.encode(CPI)
    );
    place.write("mine.yaml", &old);
    let diff = merge(&place, "tkg", &["--diff"]);
    assert!(
        diff.contains("+++ b/mine.yaml (data.values.yaml, decoded)"),
        "{diff}"
    );
    assert!(
        diff.contains("\n+  http_proxy: *** (changed)\n") && !diff.contains("hush"),
        "{diff}"
    );
    merge(&place, "tkg", &[]);
    let new = place.read("mine.yaml");
    keeps(&old, &new, &["values.yaml:"]);
    let secret: Value = serde_yaml::from_str(&new).unwrap();
    assert!(secret["stringData"].is_null(), "{new}");
    let values = STANDARD
        .decode(secret["data"]["values.yaml"].as_str().unwrap())
        .unwrap();
    let values = String::from_utf8(values).unwrap();
    keeps(CPI, &values, &["no_proxy:"]);
    assert!(
        values.contains("\n  http_proxy: http://10.0.0.1:3128\n"),
        "{values}"
    );
}

#[test]
fn cluster_values_of_giant_swarm_keep_the_settings_of_the_provider() {
    let site = "proxy: {http: \"http://10.0.0.1:3128\", https: \"http://10.0.0.1:3128\"}\n\
                clusters: [{name: blue, namespace: org-blue}]\n";
    let place = place(site, &[]);
    let old = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: blue-cluster-values\n  namespace: org-blue\nstringData:\n  \
               values: |\n    global:\n      basicAuthSecret:\n        refreshToken: hush\n      vcdConfig:\n        org: ours\n    \
               cluster:\n      private: true\n";
    place.write("mine.yaml", old);
    merge(&place, "giantswarm", &[]);
    let new = place.read("mine.yaml");
    keeps(old, &new, &[]);
    let secret: Value = serde_yaml::from_str(&new).unwrap();
    let values: Value =
        serde_yaml::from_str(secret["stringData"]["values"].as_str().unwrap()).unwrap();
    assert_eq!(
        values["cluster"]["proxy"]["http"],
        Value::from("http://10.0.0.1:3128")
    );
    assert_eq!(
        values["global"]["basicAuthSecret"]["refreshToken"],
        Value::from("hush")
    );
    // nothing is merged into a Secret with another name
    let other = old.replace("blue-cluster-values", "green-cluster-values");
    place.write("mine.yaml", &other);
    refused_merge(&place, "giantswarm", &[]);
    assert_eq!(place.read("mine.yaml"), other);
}

/// A template of machines with the files and commands that TKG itself generates for a cluster
/// behind a proxy, and with those of the user.
const WORKERS: &str = "\
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: blue-md-0, namespace: prod}
spec:
  template:
    spec:
      files:
      - content: |
          [Service]
          Environment=\"HTTP_PROXY=http://old:1\"
          Environment=\"NO_PROXY=vc.corp.example\"
          LimitNOFILE=1048576
        owner: root:root
        path: /etc/systemd/system/containerd.service.d/http-proxy.conf
        permissions: \"0640\"
      - path: /etc/containerd/registry.corp.example.crt
        content: OTHER
        encoding: base64
      preKubeadmCommands:
      - hostname \"{{ ds.meta_data.hostname }}\"
      - echo \"::1         ipv6-localhost ipv6-loopback\" >/etc/hosts
      # ours, before anything is pulled
      - mount /dev/sdb /var/lib/containerd
      - systemctl start containerd
      - export NO_PROXY='vc.corp.example'
      - systemctl restart containerd
      - touch /run/ready
      users:
      - name: capv
";

#[test]
fn commands_are_inserted_in_the_required_order() {
    let place = tkg();
    let old = WORKERS.replace("OTHER", &STANDARD.encode(OTHER));
    place.write("mine.yaml", &old);
    merge(&place, "tkg", &[]);
    let new = place.read("mine.yaml");
    let set = [
        "Environment=\"HTTP_PROXY",
        "Environment=\"NO_PROXY",
        "content:",
        "- content:",
        "- export NO_PROXY",
    ];
    keeps(&old, &new, &set);
    let document: Value = serde_yaml::from_str(&new).unwrap();
    let spec = &document["spec"]["template"]["spec"];
    let commands: Vec<&str> = spec["preKubeadmCommands"]
        .as_sequence()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap())
        .collect();
    let at = |start: &str| {
        commands
            .iter()
            .position(|one| one.starts_with(start))
            .unwrap_or_else(|| panic!("{start}: {commands:#?}"))
    };
    let order = [
        "mount ",
        "systemctl stop",
        "systemctl start",
        "export NO_PROXY",
        "sed -i",
        "grep -qF",
        "systemctl restart",
        "touch ",
    ];
    assert!(order.map(at).is_sorted(), "{commands:#?}");
    assert_eq!(commands.last(), Some(&"touch /run/ready"));
    assert_eq!(
        commands
            .iter()
            .filter(|one| one.starts_with("systemctl restart"))
            .count(),
        1,
        "{commands:#?}"
    );
    assert!(
        commands[at("export NO_PROXY")]
            .starts_with("export NO_PROXY='vc.corp.example,.svc.cluster.local,")
    );
    let file = |path: &str| {
        let files = spec["files"].as_sequence().unwrap();
        files
            .iter()
            .find(|file| file["path"] == path)
            .unwrap_or_else(|| panic!("{path}: {files:?}"))
            .clone()
    };
    let drop_in = file("/etc/systemd/system/containerd.service.d/http-proxy.conf");
    let unit = drop_in["content"].as_str().unwrap().to_owned();
    assert!(
        unit.contains("LimitNOFILE=1048576\n") && unit.contains("HTTPS_PROXY=http://10.0.0.1:3128"),
        "{unit}"
    );
    assert!(
        unit.contains("NO_PROXY=vc.corp.example,.svc.cluster.local,"),
        "{unit}"
    );
    // the file declares base64 content, and contains both certificates
    let authority = file("/etc/containerd/registry.corp.example.crt");
    let content = STANDARD
        .decode(authority["content"].as_str().unwrap())
        .unwrap();
    assert_eq!(
        String::from_utf8(content).unwrap(),
        OTHER.to_owned() + CERTIFICATE
    );
    assert!(merge(&place, "tkg", &[]).contains("is up to date"));
}

/// A merge into a list with `start` and `restart` but without `stop` once left containerd stopped.
#[test]
fn existing_commands_in_another_order_are_refused() {
    let place = tkg();
    let commands = "kind: KubeadmConfigTemplate\nmetadata: {name: blue-md-0, namespace: prod}\nspec:\n  template:\n    spec:\n      \
                    preKubeadmCommands:\n      - systemctl start containerd\n      - systemctl restart containerd\n";
    place.write("mine.yaml", commands);
    merge(&place, "tkg", &[]);
    let document: Value = serde_yaml::from_str(&place.read("mine.yaml")).unwrap();
    let list = document["spec"]["template"]["spec"]["preKubeadmCommands"]
        .as_sequence()
        .unwrap()
        .clone();
    assert_eq!(
        list.last(),
        Some(&Value::from("systemctl restart containerd"))
    );
    let crossed = commands.replace(
        "      - systemctl start containerd\n",
        "      - sed -i 's|\".*/pause|\"old.test/pause|' /etc/containerd/config.toml\n      - export HTTPS_PROXY=x\n      \
         - export HTTP_PROXY=x\n      - hostname \"{{ ds.meta_data.hostname }}\"\n",
    );
    place.write("mine.yaml", &crossed);
    let printed = refused_merge(&place, "tkg", &[]);
    assert!(
        printed.contains("preKubeadmCommands has some of these items in another order"),
        "{printed}"
    );
    assert!(
        printed.contains("- \"systemctl stop containerd\"\n") && place.read("mine.yaml") == crossed,
        "{printed}"
    );
}

#[test]
fn a_text_that_cannot_be_merged_is_refused_without_replace() {
    let place = tkg();
    // a ytt template, which is not YAML until ytt has rendered it
    let old = cpi_secret(
        "#@ load(\"@ytt:data\", \"data\")\n#@data/values\n---\nvsphereCPI:\n  {{ mine }}\n  x\n",
    );
    place.write("mine.yaml", &old);
    let printed = refused_merge(&place, "tkg", &[]);
    assert_eq!(place.read("mine.yaml"), old);
    for part in [
        "mine.yaml: existing content would be removed",
        "stringData.values.yaml: it is not a YAML mapping",
        "--replace",
        "--diff",
    ] {
        assert!(printed.contains(part), "{printed}");
    }
    let diff = merge(&place, "tkg", &["--replace", "--diff"]);
    assert!(
        diff.contains("\n-      ***\n") && !diff.contains("mine }}"),
        "{diff}"
    );
    merge(&place, "tkg", &["--replace"]);
    let secret: Value = serde_yaml::from_str(&place.read("mine.yaml")).unwrap();
    assert!(
        secret["stringData"]["values.yaml"]
            .as_str()
            .unwrap()
            .contains("http_proxy")
    );
    // `--diff` needs `--into`, and `--replace` needs that or `-o`
    for flags in [&["-o", "out", "--diff"][..], &["--replace"]] {
        let run = place
            .command()
            .args(["render", "tkg", "--site", "site.yaml"])
            .args(flags)
            .output()
            .unwrap();
        assert_eq!(run.status.code(), Some(2), "{flags:?}");
    }
}

#[test]
fn accounts_and_authorities_of_other_hosts_are_kept() {
    let site = "registry: {address: r.test, ca: ca.crt, credentials: {file: account}}\nconsumers: [kubermatic]\n";
    let place = place(site, &[]);
    place.write("ca.crt", CERTIFICATE);
    place.write("account", "puller:secret\n");
    let old = format!(
        "apiVersion: kubermatic.k8c.io/v1\nkind: KubermaticConfiguration\nmetadata: {{name: kubermatic, namespace: kubermatic}}\n\
         spec:\n  imagePullSecret: |\n    {{\n      \"auths\": {{\n        \"quay.io\": {{\"auth\": \"aHVzaA==\"}}\n      }}\n    }}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: ca-bundle, namespace: kubermatic}}\ndata:\n  ca-bundle.pem: |\n{}",
        indented(OTHER)
    );
    let file = place.write("mine.yaml", &old);
    std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    // the mode in the report, which must equal the mode of the file after the run
    let reported_mode = |more: &[&str]| {
        let args = [
            "render",
            "kubermatic",
            "--site",
            "site.yaml",
            "--into",
            "mine.yaml",
        ];
        let report = place.json(0, &[&args[..], more].concat());
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            report["files"][0]["mode"],
            format!("{mode:04o}"),
            "{report:#}"
        );
        mode
    };
    assert_eq!(reported_mode(&["--diff"]), 0o644);
    let diff = merge(&place, "kubermatic", &["--diff"]);
    assert!(
        !diff.contains("aHVzaA==") && !diff.contains("cHVsbGVyOnNlY3JldA=="),
        "{diff}"
    );
    assert_eq!(reported_mode(&[]), 0o600);
    assert_eq!(reported_mode(&[]), 0o600, "up to date");
    let new = place.read("mine.yaml");
    let documents: Vec<Value> = serde_yaml::Deserializer::from_str(&new)
        .map(|one| serde::Deserialize::deserialize(one).unwrap())
        .collect();
    let accounts: Value =
        serde_yaml::from_str(documents[0]["spec"]["imagePullSecret"].as_str().unwrap()).unwrap();
    assert_eq!(
        accounts["auths"]["quay.io"]["auth"],
        Value::from("aHVzaA==")
    );
    assert_eq!(
        accounts["auths"]["r.test"]["auth"],
        Value::from("cHVsbGVyOnNlY3JldA==")
    );
    assert_eq!(
        documents[1]["data"]["ca-bundle.pem"],
        Value::from(OTHER.to_owned() + CERTIFICATE)
    );
}

/// A Seed as the CRD requires it: each datacenter has a `spec`.
#[test]
fn existing_datacenters_of_a_seed_are_configured_and_none_is_added() {
    let place = tkg();
    let old = "apiVersion: kubermatic.k8c.io/v1\nkind: Seed\nmetadata: {name: europe, namespace: kubermatic}\nspec:\n  datacenters:\n    \
               dc-1:\n      country: DE\n      spec: {vsphere: {datacenter: dc0}}\n      node: {noProxy: mine.test}\n    \
               dc-2:\n      spec: {bringyourown: {}}\n";
    place.write("mine.yaml", old);
    let datacenters = || -> Value {
        let seed: Value = serde_yaml::from_str(&place.read("mine.yaml")).unwrap();
        seed["spec"]["datacenters"].clone()
    };
    merge(&place, "kubermatic", &["--set", "datacenter=dc-1"]);
    assert!(datacenters()["dc-2"]["node"].is_null());
    merge(&place, "kubermatic", &[]);
    let all = datacenters();
    let names: Vec<&str> = all
        .as_mapping()
        .unwrap()
        .keys()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(names, ["dc-1", "dc-2"]);
    for (name, datacenter) in all.as_mapping().unwrap() {
        assert!(datacenter["spec"].is_mapping(), "{name:?}");
        assert_eq!(
            datacenter["node"]["httpProxy"],
            Value::from("http://10.0.0.1:3128")
        );
    }
    assert!(
        all["dc-1"]["node"]["noProxy"]
            .as_str()
            .unwrap()
            .starts_with("mine.test,"),
        "{all:?}"
    );
    keeps(old, &place.read("mine.yaml"), &["node: {noProxy"]);
    let printed = refused_merge(&place, "kubermatic", &["--set", "datacenter=dc-3"]);
    assert!(
        printed.contains("no datacenter dc-3, only dc-1, dc-2"),
        "{printed}"
    );
    // without --into, the seed has a placeholder as its datacenter
    let message = place.ok(&["render", "kubermatic", "--site", "site.yaml", "-o", "out"]);
    assert!(
        message.contains("seed.yaml")
            && place
                .read("out/kubermatic-seed.yaml")
                .contains("\n    datacenter:\n")
    );
}

#[test]
fn platforms_that_need_no_registry_or_lock_work_without_them() {
    let proxy = "proxy: {http: \"http://10.0.0.1:3128\", https: \"http://10.0.0.1:3128\", noProxy: {installation: [a.test]}}\n";
    let place = place(proxy, &[]);
    std::fs::remove_file(place.path("landfall.lock")).unwrap();
    for (platform, set) in [
        ("systemd", &[][..]),
        ("kubelet", &[]),
        ("containerd", &[]),
        ("crio", &[]),
        ("docker", &[]),
        ("k3s", &[]),
        ("rke2", &[]),
        ("k0s", &[]),
        ("kubespray", &[]),
        ("talos", &[]),
        ("kyverno", &[]),
        ("kyverno", &["--set", "form=cel"]),
        ("kubermatic", &[]),
        ("kubeone", &[]),
        ("openshift", &[]),
        ("tkg", &["--set", "cluster=a"]),
        ("capi", &["--set", "cluster=a"]),
        (
            "giantswarm",
            &["--set", "cluster=a", "--set", "namespace=b"],
        ),
    ] {
        place.ok(&[
            &["render", platform, "--site", "site.yaml", "-o", platform],
            set,
        ]
        .concat());
        // only the proxy is configured, and no registry without a name
        for (path, text) in files(&place.path(platform)) {
            assert!(
                !text
                    .replace("nodeRegistration", "")
                    .to_lowercase()
                    .contains("registr")
                    && !text.contains("https://\n"),
                "{platform} {}: {text}",
                path.display()
            );
            let has_proxy = text.contains("10.0.0.1:3128") || path.ends_with("app.yaml");
            let has_files =
                text.contains("kind: Kubeadm") || path.starts_with("kubeadm-config-spec.yaml");
            assert!(
                has_proxy || has_files,
                "{platform} {}: {text}",
                path.display()
            );
        }
    }
    let unit = place.read("systemd/etc/systemd/system/containerd.service.d/http-proxy.conf");
    assert!(
        unit.contains("Environment=\"NO_PROXY=a.test,svc,127.0.0.1,localhost\"\n"),
        "{unit}"
    );
    assert_eq!(
        place.ok(&["render", "no-proxy", "--site", "site.yaml"]),
        "a.test,svc,127.0.0.1,localhost\n"
    );
    let message = refused(&place, 2, &["kubeadm"]);
    assert!(
        message.contains("no lock is named")
            || message.contains("no destination registry is named"),
        "{message}"
    );
    place.write(
        "site.yaml",
        format!("apiVersion: landfall/v1\nkind: Site\n{proxy}"),
    );
    place.write(
        "k.pub",
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----\n",
    );
    let message = refused(&place, 2, &["kyverno", "--set", "image-key=k.pub"]);
    assert!(message.contains("image-key"), "{message}");
    // a TKG site with a registry needs no lock
    place.write(
        "site.yaml",
        format!("apiVersion: landfall/v1\nkind: Site\n{TKG}"),
    );
    place.write("ca.crt", CERTIFICATE);
    let message = place.ok(&["render", "tkg", "--site", "site.yaml", "-o", "tkg"]);
    assert!(
        message.contains(
            "no lock was read, so landfall did not check that the registry has the images"
        ),
        "{message}"
    );
    let variables = place.read("tkg/blue/cluster-config.yaml");
    assert!(
        variables.contains("TKG_CUSTOM_IMAGE_REPOSITORY: \"registry.corp.example/tkg\"\n"),
        "{variables}"
    );
}
