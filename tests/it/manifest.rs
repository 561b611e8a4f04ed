//! The shipped manifests and site, the example in the manifest reference, and `landfall schema`.

use crate::support::library::{MergedManifest, Site, destination_map, load_manifests};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("manifests")
        .join(name)
}

fn wanted(path: PathBuf) -> MergedManifest {
    load_manifests(&[path]).unwrap_or_else(|error| panic!("{error}"))
}

fn names(wanted: &MergedManifest) -> Vec<String> {
    wanted
        .requests
        .images
        .iter()
        .map(|image| image.name.to_string())
        .collect()
}

fn landfall(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_landfall"))
        .args(arguments)
        .env_clear()
        .output()
        .unwrap()
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = landfall(arguments);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn quickstart_is_pinned_for_two_platforms() {
    let wanted = wanted(shipped("quickstart.yaml"));
    assert_eq!(
        names(&wanted),
        [
            "registry.k8s.io/coredns/coredns:v1.12.0",
            "registry.k8s.io/pause:3.10.1"
        ]
    );
    assert!(
        wanted
            .requests
            .images
            .iter()
            .all(|image| image.platforms.len() == 2)
    );
    let kubectl = &wanted.requests.files[1];
    assert_eq!(
        kubectl.url,
        "https://dl.k8s.io/release/v1.33.4/bin/linux/arm64/kubectl"
    );
    assert_eq!(
        kubectl.checksum.as_ref().unwrap().to_string(),
        format!("{}.sha256", kubectl.url)
    );
    assert_eq!(
        kubectl.also,
        ["https://dl.k8s.io/v1.33.4/bin/linux/arm64/kubectl"]
    );
    let archive = "https://github.com/containernetworking/plugins/releases/download/v1.9.1";
    assert_eq!(
        wanted.requests.files[2].url,
        format!("{archive}/cni-plugins-linux-amd64-v1.9.1.tgz")
    );
    assert_eq!(wanted.requests.files.len(), 4);
}

/// The page is "Kubermatic Proxy Whitelisting" of 2019-09-13. The lists below repeat what it names.
#[test]
fn worker_node_2019_has_everything_on_the_whitelisting_page() {
    let wanted = wanted(shipped("kubermatic/worker-node-2019.yaml"));
    let repositories: std::collections::BTreeSet<String> = wanted
        .requests
        .images
        .iter()
        .map(|image| image.name.name())
        .collect();
    let named = [
        "docker.io/calico/node",
        "docker.io/coredns/coredns",
        "docker.io/fluent/fluent-bit",
        "gcr.io/google_containers/hyperkube-amd64",
        "gcr.io/google_containers/k8s-dns-node-cache",
        "k8s.gcr.io/pause",
        "quay.io/coreos/container-linux-update-operator",
        "quay.io/coreos/flannel",
        "quay.io/coreos/kube-rbac-proxy",
        "quay.io/kubermatic/util",
        "quay.io/prometheus/node-exporter",
    ];
    assert_eq!(repositories.into_iter().collect::<Vec<_>>(), named);
    assert!(names(&wanted).contains(&"gcr.io/google_containers/hyperkube-amd64:v1.14.8".into()));
    let begins = |start: &str| {
        wanted
            .requests
            .files
            .iter()
            .filter(|file| file.url.starts_with(start))
            .count()
    };
    assert_eq!(
        begins("https://storage.googleapis.com/kubernetes-release/release/v1."),
        3
    );
    assert_eq!(
        begins("https://github.com/containernetworking/plugins/releases/"),
        1
    );
    let monitor = "https://raw.githubusercontent.com/kubermatic/machine-controller/\
                   8b5b66e4910a6228dfaecccaa0a3b05ec4902f8e/pkg/userdata/scripts/health-monitor.sh";
    assert_eq!(begins(monitor), 1);
    let hosts: Vec<&str> = wanted
        .endpoints
        .iter()
        .map(|end| end.host.as_str())
        .collect();
    assert_eq!(
        hosts,
        [
            "apt.kubernetes.io",
            "download.docker.com",
            "ec2.eu-central-1.amazonaws.com",
            "github.com",
            "iam.amazonaws.com",
            "packages.cloud.google.com",
            "raw.githubusercontent.com",
            "s3.eu-central-1.amazonaws.com",
            "storage.googleapis.com",
        ]
    );
}

#[test]
fn the_shipped_site_gives_the_destinations_of_the_whitelisting_page() {
    let site = Site::load(&shipped("kubermatic/site.yaml")).unwrap();
    let address = site.registry.as_ref().unwrap().address.parse().unwrap();
    let mapping = destination_map(address, Some(&site));
    let goes = |name: &str| -> Vec<String> {
        mapping
            .destinations(&name.parse().unwrap())
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    // the first destination is used for rewriting; the others are for the consumers of the site
    let pause = goes("k8s.gcr.io/pause:3.1");
    assert_eq!(
        pause,
        ["172.20.0.2:5000/kubernetes/pause", "172.20.0.2:5000/pause"]
    );
    // the mapping applies to the name that the manifest of today locks, too
    assert_eq!(goes("registry.k8s.io/pause:3.10.1"), pause);
    assert_ne!(
        goes("registry.k8s.io/kube-proxy:v1.35.7")[0],
        "172.20.0.2:5000/kubernetes/kube-proxy"
    );
    let hyperkube = goes("gcr.io/google_containers/hyperkube-amd64:v1.14.8");
    assert_eq!(hyperkube[0], "172.20.0.2:5000/kubernetes/hyperkube-amd64");
    assert_eq!(
        hyperkube[1..],
        ["172.20.0.2:5000/google_containers/hyperkube-amd64"]
    );
    assert_eq!(
        goes("registry.k8s.io/coredns/coredns:v1.12.0"),
        ["172.20.0.2:5000/coredns/coredns", "172.20.0.2:5000/coredns"]
    );
    let no_proxy = &site.proxy.as_ref().unwrap().no_proxy;
    assert_eq!(
        no_proxy.cluster.as_ref().unwrap().pod_cidr.as_deref(),
        Some("100.96.0.0/11")
    );
}

#[test]
fn a_folder_with_a_manifest_and_a_site_loads_the_manifest() {
    assert_eq!(
        names(&wanted(shipped("tkg"))),
        names(&wanted(shipped("tkg/tkg.yaml")))
    );
}

#[test]
fn the_example_of_the_reference_loads() {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/manifest.md");
    let text = std::fs::read_to_string(reference).unwrap();
    let example = text
        .split("```yaml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("example.yaml");
    std::fs::write(&path, example).unwrap();
    let wanted = wanted(path);
    assert_eq!(
        (
            wanted.requests.images.len(),
            wanted.requests.files.len(),
            wanted.missing.len()
        ),
        (2, 2, 1)
    );
}

/// Returns the heading under which the manifest reference documents a definition of the schema.
fn section_of(definition: &str) -> &'static str {
    match definition {
        "" | "Metadata" | "EndpointEntry" => "Keys",
        "MovingVar" | "JsonVersions" | "ChartVersions" => "Variables",
        "UpdateRules" => "Update rules",
        "List" => "Lists",
        "Missing" => "Accepted losses",
        "SignatureRule" | "KeylessSigner" | "UpdatedTrustedRoot" | "ProvenanceRule" => {
            "Image signatures"
        }
        "FullImage" => "Images",
        "FileEntry" => "Files",
        "FullChart" => "Charts",
        "PackageEntry" | "AptEntry" | "AptSourceEntry" | "ListedBase" | "YumEntry"
        | "YumSourceEntry" | "ListedRpms" => "Packages",
        "GitEntry" | "GitVerification" => "Git repositories",
        "ProviderEntry" => "Providers",
        other => panic!("which section of the reference documents {other}?"),
    }
}

#[test]
fn the_reference_documents_every_key_of_the_schema_in_the_right_section() {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/manifest.md");
    let text = std::fs::read_to_string(reference).unwrap();
    let schema = json(&["schema"]);
    let definitions = schema["$defs"].as_object().unwrap();
    let named = definitions.iter().map(|(name, part)| (&**name, part));
    let mut count = 0;
    for (definition, part) in std::iter::once(("", &schema)).chain(named) {
        let keys = part["properties"].as_object().into_iter().flatten();
        for (key, _) in keys {
            count += 1;
            let heading = format!("\n## {}\n", section_of(definition));
            let (_, section) = text.split_once(&heading).unwrap();
            let section = section.split("\n## ").next().unwrap();
            let forms = [
                format!("`{key}`"),
                format!("`{key}."),
                format!(".{key}`"),
                format!("{key}:"),
            ];
            assert!(
                forms.iter().any(|form| section.contains(form)),
                "{key} of {definition} is not in{heading}"
            );
        }
    }
    assert!(count > 100, "only {count} keys were found");
}

#[test]
fn the_manifest_schema_refuses_unknown_keys_and_names_the_required_keys() {
    let manifest = json(&["schema", "manifest"]);
    assert_eq!(manifest, json(&["schema"]));
    assert_eq!(
        manifest["required"],
        serde_json::json!(["apiVersion", "kind"])
    );
    assert_eq!(manifest["additionalProperties"], false);
    assert_eq!(
        manifest["$defs"]["FullImage"]["anyOf"],
        serde_json::json!([{"required": ["ref"]}, {"required": ["repo", "select"]}])
    );
    assert!(manifest["properties"]["charts"].is_object());
    let site = json(&["schema", "site"]);
    assert!(site["properties"].get("registry").is_some());
    assert_eq!(landfall(&["schema", "lock"]).status.code(), Some(2));
}

#[test]
fn empty_environment_variables_count_as_unset() {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_landfall"));
        command
            .args(arguments)
            .env_clear()
            .env("LANDFALL_SITE", "")
            .env("LANDFALL_STORE", "");
        command.output().unwrap().status.code()
    };
    assert_eq!(run(&["schema"]), Some(0));
    assert_eq!(run(&["schema", "--site", ""]), Some(2));
}
