//! `landfall audit`: references in all positions, compared with the lock.

use crate::support::images::noise;
use crate::support::library::Digest;
use crate::support::peers::own_registry;
use crate::support::{Images, Place, http, need};
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

const IMAGES: [&str; 6] = [
    "docker.io/library/nginx:1.27",
    "ghcr.io/dexidp/dex:v2.42.0",
    "k8s.gcr.io/pause:3.1",
    "quay.io/kubermatic/kubermatic:v2.26.2",
    "quay.io/prometheus/node-exporter:v1.9.0",
    "registry.k8s.io/coredns/coredns:v1.11.3",
];

const SITE: &str = "\
apiVersion: landfall/v1
kind: Site
registry:
  address: 172.20.0.2:5000
  paths: {k8s.gcr.io: kubernetes, registry.k8s.io/coredns/coredns: [coredns/coredns, coredns]}
files: http://172.20.0.2:8080/files
";

fn digest(name: &str) -> Digest {
    Digest::sha256(name.as_bytes())
}

pub fn place() -> Place {
    let place = Place::new();
    let images = IMAGES.map(|name| {
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let digest = digest(name);
        format!(
            "- {{name: \"{name}\", digest: \"{digest}\", mediaType: {kind}, size: 7, blobs: [\"{} 9 c\"]}}\n",
            Digest::sha256(format!("config of {name}").as_bytes())
        )
    });
    let kubelet = "https://dl.k8s.io/release/v1.33.4/bin/linux/amd64/kubelet";
    let also = "https://dl.k8s.io/v1.33.4/bin/linux/amd64/kubelet";
    let files = format!(
        "files:\n- {{name: \"{kubelet}\", digest: \"{}\", size: 9, also: [\"{also}\"]}}\n",
        digest("k")
    );
    let lost = "missing: [{kind: image, name: 'quay.io/gone/a:v1', reason: removed, until: 9999-01-31},\n\
                {kind: image, name: 'quay.io/gone/b:v1', reason: removed, until: 2020-01-31}]\n\
                unresolved: [{kind: image, name: 'quay.io/gone/c:v1', cause: '404'}]\n";
    place.write(
        "landfall.lock",
        format!("version: 1\nimages:\n{}{files}{lost}", images.concat()),
    );
    place.write("site.yaml", SITE);
    place
}

/// Returns each finding in `list` as `file:line:column reference | why`. If a finding has no `why`,
/// the item is in its place. The file name `f.yaml` is omitted.
fn finding_lines(report: &Value, list: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |one: &Value| {
        let file = text(&one["file"]);
        let file = if file == "f.yaml" {
            String::new()
        } else {
            format!("{file}:")
        };
        let why = if one["why"].is_null() {
            text(&one["item"])
        } else {
            text(&one["why"])
        };
        format!(
            "{file}{}:{} {} | {why}",
            one["line"],
            one["column"],
            text(&one["reference"])
        )
    };
    report[list].as_array().unwrap().iter().map(line).collect()
}

/// Audits `text` as f.yaml with the site.
fn audit(exit: i32, text: &str) -> Value {
    let place = place();
    place.write("f.yaml", text);
    place.json(exit, &["audit", "f.yaml", "--site", "site.yaml"])
}

fn missing(text: &str) -> Vec<String> {
    finding_lines(&audit(4, text), "missing")
}

#[test]
fn images_are_found_in_every_position() {
    let text = format!(
        "spec:\n  containers:\n  - image: quay.io/x/a:1\n  - image: nginx\n  initContainers: [{{image: 'quay.io/x/b:1'}}]\n  \
         ephemeralContainers: [{{image: quay.io/x/c}}]\n  volumes:\n  - image: {{reference: quay.io/x/d:1}}\n\
         args: [--config-reloader-image=quay.io/x/e:1, --proxy-image, x/f:2]\n\
         env:\n- {{name: RELATED_IMAGE_WEB, value: quay.io/x/g:1}}\n- {{name: SIDECAR_IMAGE, value: 'h:1'}}\n\
         sandboxImage: quay.io/x/i:1\nvalues: {{image: {{registry: quay.io, repository: x/j, tag: 1.5}}}}\n\
         dns: {{imageRepository: quay.io/x/k, imageTag: v1}}\nany: [quay.io/x/l:1, docker.io/x/m@{}]\n\
         ---\nkind: Kustomization\nimages:\n- {{name: nginx, newName: quay.io/x/n, newTag: v9}}\n- {{name: nginx, newTag: '1.28'}}\n",
        digest("m")
    );
    let new = "not in the lock";
    assert_eq!(
        missing(&text),
        [
            format!("3:12 quay.io/x/a:1 | {new}"),
            "4:12 nginx | without a tag it means latest; the lock has 1.27".into(),
            format!("5:29 quay.io/x/b:1 | {new}"),
            format!("6:33 quay.io/x/c | {new}"),
            format!("8:24 quay.io/x/d:1 | {new}"),
            format!("9:32 quay.io/x/e:1 | {new}"),
            format!("9:62 x/f:2 | {new}"),
            format!("11:36 quay.io/x/g:1 | {new}"),
            format!("12:33 h:1 | {new}"),
            format!("13:15 quay.io/x/i:1 | {new}"),
            format!("14:49 quay.io/x/j:1.5 | {new}"),
            format!("15:24 quay.io/x/k:v1 | {new}"),
            format!("16:7 quay.io/x/l:1 | {new}"),
            format!("16:22 docker.io/x/m@{} | {new}", digest("m")),
            format!("20:4 quay.io/x/n:v9 | {new}"),
            "21:4 nginx:1.28 | the lock has this repository only as 1.27".into(),
        ]
    );
}

#[test]
fn images_that_a_node_cannot_run_are_missing_for_its_platform() {
    let place = Place::new();
    let up = own_registry();
    let images = Images::new(place.path("layout"));
    let image =
        |platform: &str| images.image(platform, &[images.layer(&[("bin", platform.as_bytes())])]);
    let [amd64, arm64] = ["linux/amd64", "linux/arm64"].map(image);
    let both = images.index(&[amd64.clone(), arm64]);
    let one = images.index(std::slice::from_ref(&amd64));
    for (name, image) in [("both", &both), ("one", &one), ("single", &amd64)] {
        images.push(&up.address, name, "v1", image);
    }
    let address = &up.address;
    let names = ["both", "one", "single"].map(|name| format!("{address}/{name}:v1"));
    let lock = |platforms: &str| {
        let images = names
            .iter()
            .map(|name| format!("- \"{name}\"\n"))
            .collect::<String>();
        let head = "apiVersion: landfall/v1\nkind: Manifest\n";
        place.write("m.yaml", format!("{head}{platforms}images:\n{images}"));
        place.json(0, &["lock", "-f", "m.yaml"]);
    };
    let pods = names.iter().map(|name| format!("- image: {name}\n"));
    place.write(
        "pods.yaml",
        format!("containers:\n{}", pods.collect::<String>()),
    );
    let audit = |exit: i32, more: &[&str]| {
        let report = place.json(exit, &[&["audit", "pods.yaml"], more].concat());
        let missing = report["missing"].as_array().unwrap().iter();
        let missing = missing.map(|one| {
            let name = one["reference"]
                .as_str()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap();
            format!("{name}: {}", one["why"].as_str().unwrap())
        });
        missing.collect::<Vec<_>>()
    };
    let without =
        |name: &str| format!("{name}:v1: the lock has it for linux/amd64, not for linux/arm64");
    lock("platforms: [linux/amd64, \"linux/arm64?\"]\n");
    assert!(audit(0, &[]).is_empty());
    assert!(audit(0, &["--platform", "linux/amd64"]).is_empty());
    let arm64 = ["--platform", "linux/amd64", "--platform", "linux/arm64"];
    assert_eq!(audit(4, &arm64), [without("one"), without("single")]);
    // a platform that the manifest leaves out, although the image has it
    lock("platforms: [linux/amd64]\n");
    assert_eq!(
        audit(4, &arm64),
        [without("both"), without("one"), without("single")]
    );
    // all platforms of an index are carried; those of an image without an index are not known
    lock("");
    assert_eq!(audit(4, &arm64), [without("one")]);
    // the images are not written to a manifest of missing ones, because the lock has them
    audit(4, &[&arm64[..], &["--missing", "more.yaml"]].concat());
    assert!(
        !place.read("more.yaml").contains(":v1"),
        "{}",
        place.read("more.yaml")
    );
    let mut wrong = place.command();
    let wrong = wrong
        .args(["audit", "pods.yaml", "--platform", "arm"])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&wrong.stderr);
    assert!(
        wrong.status.code() == Some(2) && printed.contains("'arm'"),
        "{printed}"
    );
}

#[test]
fn documents_inside_documents_are_searched_up_to_a_limit() {
    let text = "kind: ConfigMap\ndata:\n  pod.yaml: |\n    containers:\n    - image: quay.io/x/a:1\n      args: ['--x-image=quay.io/x/b:1']\n  \
                run.sh: |\n    echo quay.io/x/no:1\nmetadata:\n  annotations:\n    pod: '{\"image\": \"quay.io/x/c:1\"}'\n    \
                kubectl.kubernetes.io/last-applied-configuration: '{\"image\": \"quay.io/x/old:1\"}'\n";
    let report = audit(4, text);
    let paths: Vec<&str> = report["missing"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["path"].as_str().unwrap())
        .collect();
    assert_eq!(
        paths,
        [
            "data.pod\\.yaml.containers[0].image",
            "data.pod\\.yaml.containers[0].args[0]",
            "metadata.annotations.pod.image",
        ]
    );
    assert_eq!(
        finding_lines(&report, "missing")[0],
        "5:14 quay.io/x/a:1 | not in the lock"
    );
    // texts that are nested deeper than the limit are not read as documents, only word by word
    let deep = |image: &str| {
        (0..40).fold(format!("image: {image}\n"), |inner, _| {
            format!(
                "a: |\n{}",
                inner
                    .lines()
                    .map(|line| format!(" {line}\n"))
                    .collect::<String>()
            )
        })
    };
    assert_eq!(
        finding_lines(&audit(0, &deep("x/a:1")), "missing"),
        Vec::<String>::new()
    );
    assert_eq!(
        finding_lines(&audit(4, &deep("quay.io/x/a:1")), "missing"),
        ["41:48 quay.io/x/a:1 | not in the lock"]
    );
}

#[test]
fn literals_in_template_calls_are_found() {
    let text = "image: '{{ Image \"quay.io/x/a:1\" }}'\nb: {{ Image \"quay.io/x/b:1\" | quote }}\ndata:\n  t: |\n    image: {{ default \"quay.io/x/c:1\" .c }}\n\
                image: '{{ Image \"docker.io/library/nginx:1.27\" }}'\nspec: {image: '{{ .Values.image }}'}\n";
    let report = audit(4, text);
    let new = "not in the lock";
    assert_eq!(
        finding_lines(&report, "missing"),
        [
            format!("1:19 quay.io/x/a:1 | {new}"),
            format!("2:14 quay.io/x/b:1 | {new}"),
            format!("5:24 quay.io/x/c:1 | {new}"),
        ]
    );
    assert_eq!(
        finding_lines(&report, "held"),
        ["6:19 docker.io/library/nginx:1.27 | docker.io/library/nginx:1.27"]
    );
    assert_eq!(finding_lines(&report, "undecided").len(), 1, "{report}");
}

#[test]
fn images_in_lists_templates_and_embedded_files_are_found() {
    let text = "\
env:
- name: STRIMZI_KAFKA_IMAGES
  value: |
    4.2.0=quay.io/x/kafka:1-4.2.0
    4.3.0=quay.io/x/kafka:1-4.3.0
- {name: SOME_IMAGES, value: 'reg.test/x/a:1, reg.test/x/b:1'}
- {name: RELATED_IMAGE_CHART, value: 'oci://quay.io/x/chart:1'}
args: [-images=prometheus=reg.test/x/c:1, '--images=reg.test/x/d:1,reg.test/x/e:1']
data:
  inject: |
    {{- if .x }}
    - image: busybox:1.28
    - image: {{ .y }}
    {{ end }}
  config.toml: |
    [plugins.\"io.containerd.grpc.v1.cri\"]
      sandbox_image = \"reg.test/x/pause:3.8\"
  run.sh: |
    echo 1
    docker pull quay.io/x/script:1
";
    let report = audit(4, text);
    let missing = finding_lines(&report, "missing");
    let new = "not in the lock";
    assert_eq!(
        missing,
        [
            format!("4:11 quay.io/x/kafka:1-4.2.0 | {new}"),
            format!("5:11 quay.io/x/kafka:1-4.3.0 | {new}"),
            format!("6:31 reg.test/x/a:1 | {new}"),
            format!("6:47 reg.test/x/b:1 | {new}"),
            format!("7:45 quay.io/x/chart:1 | {new}"),
            format!("8:27 reg.test/x/c:1 | {new}"),
            format!("8:53 reg.test/x/d:1 | {new}"),
            format!("8:68 reg.test/x/e:1 | {new}"),
            format!("12:14 busybox:1.28 | {new}"),
            format!("17:24 reg.test/x/pause:3.8 | {new}"),
        ]
    );
    let undecided = finding_lines(&report, "undecided");
    assert!(
        undecided[0].starts_with("13:14 {{ .y }} |"),
        "{undecided:?}"
    );
    assert!(
        undecided[1].starts_with("20:17 quay.io/x/script:1 | not in the lock; it is a word"),
        "{undecided:?}"
    );
    assert_eq!(undecided.len(), 2, "{undecided:?}");
}

#[test]
fn images_in_encoded_texts_and_scripts_are_found() {
    let encoded = base64("containers:\n- image: quay.io/x/hidden:1\n- image: nginx:1.27\n");
    let text = format!(
        "kind: Secret\ndata: {{pod: {encoded}}}\n---\nrun: |\n  docker pull quay.io/prometheus/node-exporter:v1.9.0\n  \
         docker pull quay.io/prometheus/node-exporter:v2\n"
    );
    let report = audit(4, &text);
    let references = |list: &str| -> Vec<String> {
        let all = report[list].as_array().unwrap().iter();
        all.map(|one| one["reference"].as_str().unwrap().to_owned())
            .collect()
    };
    let held = references("held");
    assert!(
        held.iter().any(|one| one.starts_with("nginx:1.27 (base64")),
        "{held:?}"
    );
    assert!(held.contains(&IMAGES[4].to_owned()), "{held:?}");
    let missing = references("missing");
    assert_eq!(missing.len(), 2, "{missing:?}");
    assert!(
        missing[0].starts_with("quay.io/x/hidden:1 (base64"),
        "{missing:?}"
    );
    assert_eq!(missing[1], "quay.io/prometheus/node-exporter:v2");
}

/// The keys are not at the beginning of a line, so the lines are not read as entries.
#[test]
fn images_after_keys_within_lines_of_texts_are_missing() {
    let place = place();
    place.write(
        "run.sh",
        "#!/bin/sh\nkubectl run a --image=quay.io/x/flag:1\nexport A_IMAGE=quay.io/x/variable:1 B=1\n\
         kubectl patch p -p '{\"spec\":{\"image\":\"quay.io/x/patch:1\"}}'\ndocker run quay.io/x/word:1\n",
    );
    // a catalogue of OLM as its server sends it
    let digest = format!("sha256:{}", "b".repeat(64));
    place.write(
        "catalog.json",
        format!(
            "{{\"schema\":\"olm.package\",\"name\":\"x\"}}\n\
             {{\"image\":\"quay.io/x/bundle:1\",\"relatedImages\":[{{\"image\":\"quay.io/x/r@{digest}\"}}]}}\n"
        ),
    );
    place.write(
        "pod.yaml",
        "command: [sh, -c, 'kubectl run a --image=quay.io/x/inner:1']\n",
    );
    let report = place.json(4, &["audit", "run.sh", "catalog.json", "pod.yaml"]);
    let new = "not in the lock";
    assert_eq!(
        finding_lines(&report, "missing"),
        [
            format!("run.sh:2:23 quay.io/x/flag:1 | {new}"),
            format!("run.sh:3:16 quay.io/x/variable:1 | {new}"),
            format!("run.sh:4:39 quay.io/x/patch:1 | {new}"),
            format!("catalog.json:2:11 quay.io/x/bundle:1 | {new}"),
            format!("catalog.json:2:58 quay.io/x/r@{digest} | {new}"),
            format!("pod.yaml:1:42 quay.io/x/inner:1 | {new}"),
        ]
    );
    let undecided = finding_lines(&report, "undecided");
    assert_eq!(undecided.len(), 1, "{undecided:?}");
    assert!(
        undecided[0].starts_with("run.sh:5:12 quay.io/x/word:1 | not in the lock; it is a word"),
        "{undecided:?}"
    );
}

fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[test]
fn texts_that_only_look_like_images_are_not_reported() {
    let quiet = "\
kind: CustomResourceDefinition
spec: {image: quay.io/x/a:1}
---
apiVersion: landfall/v1
kind: Manifest
images: [quay.io/x/a:1]
---
image: {enabled: true}
images: 3
logoImage: https://example.com/logo.png
host: example.com:8080
time: '12:30'
url: https://github.com/kubermatic/kubermatic
chart: {repository: 'https://charts.example/x', version: 1.0.0}
words: [nginx, redis, 'a:b', quay.io/a/b]
";
    let report = audit(0, quiet);
    assert_eq!(
        (
            finding_lines(&report, "missing"),
            finding_lines(&report, "undecided")
        ),
        (vec![], vec![])
    );
}

#[test]
fn destination_names_are_mapped_back() {
    let text = format!(
        "containers:\n- image: 172.20.0.2:5000/library/nginx:1.27\n- image: 172.20.0.2:5000/kubernetes/pause:3.1\n\
         - image: 172.20.0.2:5000/coredns:v1.11.3\n- image: registry.k8s.io/pause:3.1\n\
         - image: 172.20.0.2:5000/dexidp/dex:v1@{}\n\
         - image: 172.20.0.2:5000/library/nginx:1.28\n- image: 172.20.0.2:5000/other/app:1\n",
        digest(IMAGES[1])
    );
    let report = audit(4, &text);
    let held = finding_lines(&report, "held");
    let items: Vec<&str> = held
        .iter()
        .map(|line| line.split(" | ").nth(1).unwrap())
        .collect();
    assert_eq!(
        items,
        [IMAGES[0], IMAGES[2], IMAGES[5], IMAGES[2], IMAGES[1]]
    );
    assert_eq!(report["missing"][0]["name"], "docker.io/library/nginx:1.28");
    assert_eq!(
        report["missing"][1]["why"],
        "no locked image has this destination"
    );
    assert_eq!(report["missing"][1]["name"], Value::Null);
}

/// Before, the name of the component was not appended, and CoreDNS counted as missing.
#[test]
fn kubeadm_appends_the_names_of_coredns_and_etcd() {
    let dns = "dns: {imageRepository: registry.k8s.io/coredns, imageTag: v1.11.3}";
    let report = audit(
        4,
        &format!(
            "kind: ClusterConfiguration\n{dns}\netcd: {{local: {{imageRepository: quay.io/x, \
             imageTag: 3.5.1}}}}\n---\nspec: {{clusterConfiguration: {{{dns}}}}}\n"
        ),
    );
    assert_eq!(
        finding_lines(&report, "held"),
        [
            format!(
                "2:24 registry.k8s.io/coredns/coredns:v1.11.3 | {}",
                IMAGES[5]
            ),
            format!(
                "5:54 registry.k8s.io/coredns/coredns:v1.11.3 | {}",
                IMAGES[5]
            ),
        ]
    );
    assert_eq!(
        finding_lines(&report, "missing"),
        ["3:33 quay.io/x/etcd:3.5.1 | not in the lock"]
    );
}

#[test]
fn missing_references_and_placeholders_are_distinguished() {
    let report = audit(
        4,
        "containers:\n- image: quay.io/gone/a:v1\n- image: quay.io/gone/b:v1\n- image: quay.io/gone/c:v1\n\
         - image: ${REGISTRY}/x:1\n- image: '{{ .Values.image }}'\n- image: Not An Image\nx: {image: word}\n",
    );
    assert_eq!(
        finding_lines(&report, "missing"),
        [
            "3:10 quay.io/gone/b:v1 | the manifest accepts until 2020-01-31 that it is missing: removed",
            "4:10 quay.io/gone/c:v1 | the lock could not resolve it: 404",
        ]
    );
    let undecided = finding_lines(&report, "undecided");
    assert_eq!(undecided.len(), 5, "{undecided:?}");
    assert_eq!(
        undecided[0],
        "2:10 quay.io/gone/a:v1 | the manifest accepts until 9999-01-31 that it is missing: removed"
    );
    assert!(undecided[1].contains("placeholder") && undecided[2].contains("placeholder"));
    assert!(
        undecided[3].contains("not an image reference")
            && undecided[4].contains("perhaps it is not an image")
    );
}

#[test]
fn urls_of_mirrored_files_are_compared_with_the_lock() {
    let text = "\
script: |
  curl -L https://dl.k8s.io/release/v1.33.4/bin/linux/amd64/kubelet -o kubelet
  curl -L \"https://dl.k8s.io/v1.33.4/bin/linux/amd64/kubelet\"
  curl -L https://dl.k8s.io/release/v1.34.0/bin/linux/amd64/kubelet
  curl -L https://dl.k8s.io/release/$VERSION/bin/linux/amd64/kubelet
  curl http://172.20.0.2:8080/files/dl.k8s.io/v1.33.4/bin/linux/amd64/kubelet
  curl http://172.20.0.2:8080/files/example.com/tool
  # see https://dl.k8s.io/ and https://example.com/docs
";
    let report = audit(4, text);
    let kubelet = "https://dl.k8s.io/release/v1.33.4/bin/linux/amd64/kubelet";
    assert_eq!(finding_lines(&report, "held").len(), 3);
    assert_eq!(
        finding_lines(&report, "missing"),
        [
            format!(
                "4:11 https://dl.k8s.io/release/v1.34.0/bin/linux/amd64/kubelet | the lock has {kubelet}"
            ),
            "7:8 http://172.20.0.2:8080/files/example.com/tool | no locked file has this URL at the file server"
                .into(),
        ]
    );
    assert_eq!(report["missing"][1]["url"], "https://example.com/tool");
    let open = format!(
        "5:11 https://dl.k8s.io/release/$VERSION/bin/linux/amd64/kubelet | this file does not set all of its variables; \
         it can become {kubelet}"
    );
    assert_eq!(finding_lines(&report, "undecided"), [open]);
}

/// An install script sets the architecture in a `case`, and fetches programs in a loop.
#[test]
fn urls_with_several_values_are_held_if_all_of_them_are_locked() {
    let place = Place::new();
    let url =
        |arch: &str, name: &str| format!("https://dl.k8s.io/release/v1.33.4/bin/{arch}/{name}");
    let locked = |arches: &[&str]| {
        let mut files = String::new();
        for arch in arches {
            for name in ["kubeadm", "kubelet"] {
                let digest = Digest::sha256(name.as_bytes());
                let url = url(arch, name);
                files += &format!("- {{name: \"{url}\", digest: \"{digest}\", size: 7}}\n");
            }
        }
        place.write("landfall.lock", format!("version: 1\nfiles:\n{files}"));
    };
    place.write(
        "install.sh",
        "#!/bin/sh\nVERSION=v1.33.4\nARCH=\ncase \"$(uname -m)\" in\nx86_64) ARCH=amd64 ;;\n\
         aarch64) ARCH=arm64 ;;\nesac\nfor binary in kubeadm kubelet; do\n  \
         curl -LO \"https://dl.k8s.io/release/${VERSION}/bin/${ARCH}/${binary}\"\ndone\n",
    );
    locked(&["amd64", "arm64"]);
    let report = place.json(0, &["audit", "install.sh"]);
    assert_eq!(report["held"].as_array().unwrap().len(), 1, "{report:#}");
    assert_eq!(finding_lines(&report, "undecided"), [""; 0], "{report:#}");
    let files = [
        "--to",
        "172.20.0.2:5000",
        "--files",
        "http://172.20.0.2:8080",
    ];
    let rewrite = [&["rewrite", "install.sh", "--check"][..], &files].concat();
    let rewritten = place.json(4, &rewrite);
    assert_eq!(rewritten["left"], serde_json::json!([]), "{rewritten:#}");
    assert_eq!(rewritten["changes"].as_array().unwrap().len(), 1);
    // on a machine with another architecture, the script fails
    locked(&["amd64"]);
    let report = place.json(0, &["audit", "install.sh"]);
    assert_eq!(finding_lines(&report, "undecided").len(), 1, "{report:#}");
}

/// Variables that a script sets are filled in. `rewrite` reports the same URLs.
#[test]
fn urls_with_variables_of_a_script_are_decided() {
    let place = place();
    place.write(
        "install.sh",
        "#!/bin/sh\nVERSION=v1.33.4\nexport NEXT=\"v1.34.0\"\nBASE=https://dl.k8s.io/release\n\
         curl -LO https://dl.k8s.io/release/${VERSION}/bin/linux/${ARCH:-amd64}/kubelet\n\
         curl -LO \"https://dl.k8s.io/release/$NEXT/bin/linux/amd64/kubelet\"\n\
         curl -LO https://dl.k8s.io/release/$OTHER/bin/linux/amd64/kubelet\n\
         curl -LO $BASE/$VERSION/bin/linux/amd64/kubelet\n\
         curl -LO https://get.test/x/\ncurl -LO https://get.test/tool-$OTHER.tgz\ncurl -LO https://get.test/tool.tgz\n",
    );
    let report = place.json(4, &["audit", "install.sh"]);
    let kubelet = "https://dl.k8s.io/release/v1.33.4/bin/linux/amd64/kubelet";
    let held: Vec<_> = report["held"].as_array().unwrap().iter().collect();
    assert!(held.iter().all(|one| one["item"] == kubelet), "{report:#}");
    assert_eq!(held.len(), 2, "{report:#}");
    assert_eq!(
        finding_lines(&report, "missing"),
        [format!(
            "install.sh:6:11 https://dl.k8s.io/release/$NEXT/bin/linux/amd64/kubelet | the lock has {kubelet}"
        )]
    );
    let folder = "it is a folder of locked files, and the rest of the URL is added elsewhere";
    assert_eq!(
        finding_lines(&report, "undecided"),
        [
            format!("install.sh:4:6 https://dl.k8s.io/release | {folder}"),
            format!(
                "install.sh:7:10 https://dl.k8s.io/release/$OTHER/bin/linux/amd64/kubelet | this file does not \
                 set all of its variables; it can become {kubelet}"
            ),
            "install.sh:9:10 https://get.test/x/ | it is the URL of a folder".into(),
            "install.sh:10:10 https://get.test/tool-$OTHER.tgz | a part of this URL is defined elsewhere"
                .into(),
            "install.sh:11:10 https://get.test/tool.tgz | a command fetches it, and the lock lacks it".into(),
        ]
    );
    let files = [
        "--to",
        "r.test:5000",
        "--files",
        "http://172.20.0.2:8080/files",
    ];
    let rewrite = [&["rewrite", "install.sh", "--check"][..], &files].concat();
    let rewritten = place.json(4, &rewrite);
    let left: Vec<_> = rewritten["left"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["line"].as_u64().unwrap(), one["why"].as_str().unwrap()))
        .collect();
    let value = "https://dl.k8s.io/release/v1.34.0/bin/linux/amd64/kubelet";
    let unlocked = format!("with the variables of this file it is {value}, which the lock lacks");
    assert_eq!(left, [(4, folder), (6, &*unlocked)], "{rewritten:#}");
}

#[test]
fn images_in_dockerfiles_compose_files_templates_and_lists_are_found() {
    let place = place();
    place.write(
        "t/Dockerfile",
        "ARG VERSION=1.27\nFROM --platform=$BUILDPLATFORM nginx:${VERSION} AS build\nFROM build\nFROM scratch\n\
         COPY --from=quay.io/x/tools:1 /a /b\nRUN --mount=type=bind,from=quay.io/x/mount:1 true\nFROM ${BASE}\n",
    );
    place.write(
        "t/compose.yml",
        "x-web: &web {image: quay.io/x/web:1}\nservices:\n  a: {<<: *web}\n  b: {image: redis}\n",
    );
    place.write(
        "t/tpl.yaml",
        "a:\n{{- if .x }}\n  image: \"{{ .Values.i }}\"\n  - image: quay.io/x/fixed:1 # c\n{{ end }}\n",
    );
    place.write("t/notes.md", "image: quay.io/x/notes:1\n");
    place.write(
        "images.txt",
        "# one a line\nnginx:1.27\nquay.io/x/list:1   # new\n",
    );
    let report = place.json(4, &["audit", "t", "images.txt"]);
    assert_eq!(
        finding_lines(&report, "missing"),
        [
            "t/Dockerfile:5:13 quay.io/x/tools:1 | not in the lock",
            "t/Dockerfile:6:28 quay.io/x/mount:1 | not in the lock",
            "t/compose.yml:1:21 quay.io/x/web:1 | not in the lock",
            "t/compose.yml:4:14 redis | not in the lock",
            "t/tpl.yaml:4:12 quay.io/x/fixed:1 | not in the lock",
            "images.txt:3:1 quay.io/x/list:1 | not in the lock",
        ]
    );
    assert_eq!(finding_lines(&report, "undecided").len(), 2);
    assert_eq!(finding_lines(&report, "held").len(), 2);
}

/// The exit code and the stdout of `landfall ARGS` with `input` on stdin.
fn piped(place: &Place, args: &[&str], input: &str) -> (Option<i32>, String) {
    let mut command = place.command();
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

#[test]
fn images_of_running_pods_are_compared_with_the_lock() {
    let place = place();
    let pod = |image: &str, id: &str| {
        serde_json::json!({"kind": "Pod", "spec": {"containers": [{"name": "a", "image": image}]},
            "status": {"containerStatuses": [{"image": image, "imageID": id}]}})
    };
    let nginx = format!("docker.io/library/nginx@{}", digest(IMAGES[0]));
    let moved = format!(
        "docker-pullable://quay.io/kubermatic/kubermatic@{}",
        digest("moved")
    );
    let floating = format!("quay.io/x/app@{}", digest("app"));
    let config = |name: &str| Digest::sha256(format!("config of {name}").as_bytes()).to_string();
    let items = [
        pod("nginx:1.27", &nginx),
        pod("nginx:1.27", &nginx),
        pod("quay.io/kubermatic/kubermatic:v2.26.2", &moved),
        pod("quay.io/x/app:latest", &floating),
        pod("ghcr.io/dexidp/dex:v2.42.0", &config(IMAGES[1])),
        pod("ghcr.io/dexidp/dex:v2.42.0", &config("nothing")),
        pod("172.20.0.2:5000/kubernetes/pause:3.1", ""),
    ];
    let dump = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let args = [
        "audit",
        "-",
        "--site",
        "site.yaml",
        "--missing",
        "missing.yaml",
        "--output",
        "json",
    ];
    let (code, text) = piped(&place, &args, &dump);
    assert_eq!(code, Some(4));
    let report: Value = serde_json::from_str(&text).unwrap();
    let references = |list: &str| -> Vec<String> {
        let all = report[list].as_array().unwrap().iter();
        all.map(|one| one["reference"].as_str().unwrap().to_owned())
            .collect()
    };
    let moved = format!("quay.io/kubermatic/kubermatic:v2.26.2@{}", digest("moved"));
    let floating = format!("quay.io/x/app:latest@{}", digest("app"));
    assert_eq!(
        references("missing"),
        [moved.clone(), "quay.io/x/app:latest".into(), floating]
    );
    assert!(
        report["missing"][0]["why"]
            .as_str()
            .unwrap()
            .contains("the lock has v2.26.2 as sha256:")
    );
    assert_eq!(references("undecided").len(), 1);
    assert_eq!(references("held").len(), 9);
    // the manifest lists the digests that run; the reference to `latest` is commented out
    let manifest = place.read("missing.yaml");
    assert!(manifest.contains(&format!("  - {moved}  #")), "{manifest}");
    assert!(
        manifest.contains(&format!("  - quay.io/x/app@{}  #", digest("app"))),
        "{manifest}"
    );
    assert!(
        manifest.contains("  # - quay.io/x/app:latest  # <stdin>"),
        "{manifest}"
    );
    let (code, text) = piped(&place, &["audit", "-"], "nginx:1.27\nquay.io/x/y:1\n");
    assert_eq!(code, Some(4));
    assert!(
        text.starts_with("<stdin>:2:1: missing quay.io/x/y:1: not in the lock\n"),
        "{text}"
    );
}

#[test]
fn charts_are_read_as_charts() {
    let place = place();
    place.write(
        "c/Chart.yaml",
        "apiVersion: v2\nname: c\nversion: 1.0.0\nappVersion: 2.42.0\n",
    );
    place.write(
        "c/values.yaml",
        "image: {repository: ghcr.io/dexidp/dex, tag: ''}\nsub:\n  image: {tag: v1.9.0}\noff: {enabled: false}\n",
    );
    place.write(
        "c/charts/sub/Chart.yaml",
        "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
    );
    place.write(
        "c/charts/sub/values.yaml",
        "image:\n  repository: quay.io/prometheus/node-exporter\n  tag: v0\n",
    );
    let report = place.json(0, &["audit", "c"]);
    let held = finding_lines(&report, "held");
    assert_eq!(
        held,
        [
            format!(
                "c/values.yaml:1:21 ghcr.io/dexidp/dex:v2.42.0 | {}",
                IMAGES[1]
            ),
            format!(
                "c/charts/sub/values.yaml:2:15 quay.io/prometheus/node-exporter:v1.9.0 | {}",
                IMAGES[4]
            ),
        ]
    );
    // the chart named by its files alone, without a dependency that it lists
    let lacking = "name: c\nversion: 1.0.0\nappVersion: 2.42.0\ndependencies:\n- {name: more, version: 1.x}\n";
    place.write("c/Chart.yaml", lacking);
    let output = place
        .command()
        .current_dir(place.path("c"))
        .args(["audit", "Chart.yaml", "values.yaml"])
        .args(["--lock", "../landfall.lock", "--output", "json"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["held"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(report["unread"][0]["file"], "./charts/more", "{report}");
    place.write("c/charts/sub/values.yaml", "a: [\n");
    place.write("f.yaml", "image: nginx:1.27\n");
    let report = place.json(3, &["audit", "c", "f.yaml"]);
    assert!(
        report["unread"][0]["why"]
            .as_str()
            .unwrap()
            .contains("sub/values.yaml:2:1"),
        "{report}"
    );
    place.json(1, &["audit", "c"]);
}

#[test]
fn the_image_of_a_job_of_gitlab_is_found() {
    let report = audit(
        4,
        "build:\n  image:\n    name: x/helm:3.14\n    entrypoint: ['']\n",
    );
    assert_eq!(
        finding_lines(&report, "missing"),
        ["3:11 x/helm:3.14 | not in the lock"]
    );
}

/// As in charts of Artifactory and Clickhouse. The version of the chart is not that of the image.
#[test]
fn the_version_of_an_image_in_a_chart_is_its_tag() {
    let place = place();
    place.write(
        "c/Chart.yaml",
        "apiVersion: v2\nname: c\nversion: 1.0.0\nappVersion: 2.42.0\n",
    );
    place.write(
        "c/values.yaml",
        "filebeat: {image: {repository: quay.io/x/filebeat, version: 7.16.2}}\n\
         tabix: {image: x/tabix, imageVersion: stable}\nserver: {image: x/server, imageVersion: ~}\n",
    );
    let report = place.json(4, &["audit", "c"]);
    let missing = finding_lines(&report, "missing");
    let names: Vec<&str> = missing
        .iter()
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    assert_eq!(
        names,
        [
            "quay.io/x/filebeat:7.16.2",
            "x/tabix:stable",
            "x/server:2.42.0"
        ],
        "{report}"
    );
}

#[test]
fn missing_references_can_be_locked_and_are_then_found() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let upstream = own_registry();
    let images = Images::new(place.path("layout"));
    for (name, seed) in [("app", 1), ("other", 2)] {
        let image = images.image(
            "linux/amd64",
            &[images.layer(&[("app", &noise(seed, 3000))])],
        );
        images.push(&upstream.address, &format!("q/{name}"), "v1", &image);
    }
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nupstreams: {{quay.test: {{mirror: \"{}\"}}}}\n",
        upstream.url()
    );
    place.write("site.yaml", site);
    place.write("landfall.lock", "version: 1\n");
    place.write(
        "d.yaml",
        "containers:\n- image: quay.test/q/app:v1\n- image: quay.test/q/other:latest\n",
    );
    let site = ["--site", "site.yaml", "--store", "store"];
    place.json(
        4,
        &[&["audit", "d.yaml", "--missing", "more.yaml"][..], &site].concat(),
    );
    place.ok(&[
        &["lock", "-f", "more.yaml", "--lock", "more.lock"][..],
        &site,
    ]
    .concat());
    let report = place.json(
        4,
        &[&["audit", "d.yaml", "--lock", "more.lock"][..], &site].concat(),
    );
    assert_eq!(
        finding_lines(&report, "held"),
        ["d.yaml:2:10 quay.test/q/app:v1 | quay.test/q/app:v1"]
    );
    assert_eq!(finding_lines(&report, "missing").len(), 1);

    // the registry is queried too: first it is empty, then it is complete; then the tag moves, and
    // finally the locked manifest is deleted
    let registry = own_registry();
    let ask = [
        "audit",
        "--registry",
        &registry.address,
        "--lock",
        "more.lock",
    ];
    let report = place.json(4, &[&ask[..], &site].concat());
    let lack = &report["lacking"][0];
    assert_eq!(
        (&lack["item"], &lack["why"]),
        (&"quay.test/q/app:v1".into(), &"it is missing".into())
    );
    place.ok(&[
        &["mirror", "--lock", "more.lock", "--to", &registry.address][..],
        &site,
    ]
    .concat());
    let report = place.json(0, &[&ask[..], &site].concat());
    assert_eq!(report["lacking"], serde_json::json!([]));
    let other = images.image("linux/arm64", &[images.layer(&[("app", &noise(3, 3000))])]);
    images.push(&registry.address, "q/app", "v1", &other);
    let report = place.json(4, &[&ask[..], &site].concat());
    let moved = format!("the tag points to {}", other["digest"].as_str().unwrap());
    assert_eq!(report["lacking"][0]["why"], moved.as_str());
    let digest = lack["digest"].as_str().unwrap();
    let gone = http::request(
        "DELETE",
        &registry.address,
        &format!("/v2/q/app/manifests/{digest}"),
        &[],
        b"",
    );
    assert_eq!(gone.status, 202);
    let report = place.json(4, &[&ask[..], &site].concat());
    assert_eq!(
        (
            &report["lacking"][0]["digest"],
            report["lacking"].as_array().unwrap().len()
        ),
        (&digest.into(), 2)
    );
}

#[test]
fn schemas_that_helm_would_request_are_missing() {
    let place = place();
    place.write("c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n");
    let url = "https://k8s.test/_definitions.json";
    let schema = format!("{{\"properties\": {{\n \"a\": {{\"$ref\": \"{url}#/x\"}}}}}}\n");
    place.write("c/values.schema.json", &schema);
    let report = place.json(4, &["audit", "c", "--lock", "landfall.lock"]);
    let text = report.to_string();
    assert!(
        text.contains(url) && text.contains("helm --skip-schema-validation"),
        "{text}"
    );
    place.write("c/values.schema.json", schema.replace("$ref", "title"));
    place.ok(&["audit", "c", "--lock", "landfall.lock"]);
    // a locked schema can be served
    let lock = place.read("landfall.lock").replace(
        "files:\n",
        &format!(
            "files:\n- {{name: \"{url}\", digest: \"{}\", size: 9}}\n",
            digest("s")
        ),
    );
    place.write("landfall.lock", lock);
    place.write("c/values.schema.json", schema);
    place.ok(&["audit", "c", "--lock", "landfall.lock"]);
}
