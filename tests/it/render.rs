//! `landfall render helm-values`: image references of charts and their subcharts, changed to the
//! private registry.

use crate::support::images::{gzip, tarball};
use crate::support::{Place, need};
use std::path::Path;

const IMAGES: [&str; 8] = [
    "docker.io/fluent/fluent-bit:3.2.4",
    "docker.io/library/nginx:1.27",
    "ghcr.io/dexidp/dex:v2.42.0",
    "quay.io/kubermatic/kubermatic:v2.26.2",
    "quay.io/prometheus/node-exporter:v1.9.0",
    "registry.k8s.io/coredns/coredns:v1.11.3",
    "registry.k8s.io/metrics-server/metrics-server:v0.7.2",
    "registry.k8s.io/pause:3.10.1",
];

/// A folder with the lock, and a copy of `tests/data/charts/platform` in the folder `platform`.
fn place() -> Place {
    let place = Place::new();
    place.write("landfall.lock", crate::platforms::lock(&IMAGES));
    for (name, content) in chart() {
        place.write(&format!("platform/{name}"), content);
    }
    place
}

/// The files of the chart, by their path in it.
fn chart() -> Vec<(String, Vec<u8>)> {
    fn walk(folder: &Path, prefix: &str, found: &mut Vec<(String, Vec<u8>)>) {
        let mut entries: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        entries.sort();
        for path in entries {
            let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
            match path.is_dir() {
                true => walk(&path, &format!("{name}/"), found),
                false => found.push((name, std::fs::read(&path).unwrap())),
            }
        }
    }
    let mut found = Vec::new();
    walk(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/charts/platform"),
        "",
        &mut found,
    );
    found
}

/// A `.tgz` with these files below `top`.
fn tgz(top: &str, files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let named: Vec<(String, &[u8])> = files
        .iter()
        .map(|(name, content)| (format!("{top}/{name}"), &content[..]))
        .collect();
    gzip(&tarball(
        &named
            .iter()
            .map(|(name, content)| (name.as_str(), *content))
            .collect::<Vec<_>>(),
    ))
}

const TO: [&str; 2] = ["--to", "172.20.0.2:5000"];

const OVERLAY: &str = "\
# Images of platform 2.26.2 at 172.20.0.2:5000.
# Written by `landfall render helm-values`; render it again instead of editing it.
operator:
  image:
    repository: 172.20.0.2:5000/kubermatic/kubermatic
userCluster:
  kubermaticDockerRepository: 172.20.0.2:5000/kubermatic/kubermatic
nodeExporter:
  image:
    registry: 172.20.0.2:5000
webhook:
  image: 172.20.0.2:5000/library/nginx:1.27
dns:
  imageRepository: 172.20.0.2:5000/coredns/coredns
extraArgs:
- --log-level=info
- 172.20.0.2:5000/prometheus/node-exporter:v1.9.0
audit-log:
  fluentbit:
    image:
      registry: 172.20.0.2:5000
dex:
  image:
    repository: 172.20.0.2:5000/dexidp/dex
logging:
  fluentbit:
    image:
      registry: 172.20.0.2:5000
metrics:
  image:
    repository: 172.20.0.2:5000/metrics-server/metrics-server
";

#[test]
fn the_overlay_has_only_the_image_keys_of_charts_and_subcharts() {
    let place = place();
    let report = place.json(
        3,
        &[
            &["render", "helm-values", "platform", "-o", "overlay.yaml"][..],
            &TO,
        ]
        .concat(),
    );
    assert_eq!(place.read("overlay.yaml"), OVERLAY);
    let finding_lines = |list: &str| -> Vec<String> {
        let all = report[list].as_array().unwrap().iter();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        all.map(|one| {
            format!(
                "{}:{} {} {}",
                text(&one["file"]),
                one["line"],
                text(&one["path"]),
                text(&one["why"])
            )
        })
        .collect()
    };
    // images of a disabled chart are not reported as missing
    assert_eq!(
        finding_lines("missing"),
        [
            "platform/values.yaml:21 telemetry.image.repository not in the lock",
            "platform/charts/logs/values.yaml:4 logging.shipper.image.repository not in the lock",
        ]
    );
    assert_eq!(
        finding_lines("undecided"),
        [
            "platform/charts/logs/values.yaml:4 audit-log.shipper.image.repository its chart is disabled by audit-log.enabled"
        ]
    );
    let keys: Vec<&str> = report["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| key["path"].as_str().unwrap())
        .collect();
    assert!(
        keys.contains(&"dex.image.repository") && keys.contains(&"extraArgs"),
        "{keys:?}"
    );
    assert_eq!(report["status"], "partial");
}

#[test]
fn a_chart_archive_with_nested_archives_gives_the_same_overlay() {
    if !need(&["gzip"]) {
        return;
    }
    let place = place();
    let (subs, mut rest): (Vec<_>, Vec<_>) = chart()
        .into_iter()
        .partition(|(name, _)| name.starts_with("charts/logs/"));
    let below =
        |(name, content): (String, Vec<u8>)| (name["charts/logs/".len()..].to_owned(), content);
    rest.push((
        "charts/logs-1.0.0.tgz".into(),
        tgz("logs", &subs.into_iter().map(below).collect::<Vec<_>>()),
    ));
    place.write("platform-2.26.2.tgz", tgz("platform", &rest));
    let run = place
        .command()
        .args(["render", "helm-values", "platform-2.26.2.tgz"])
        .args(TO)
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(3));
    assert_eq!(String::from_utf8(run.stdout).unwrap(), OVERLAY);
    let finding_lines = String::from_utf8(run.stderr).unwrap();
    let line = "platform-2.26.2.tgz/charts/logs-1.0.0.tgz/values.yaml:4:44: missing logging.shipper.image.repository";
    assert!(finding_lines.contains(line), "{finding_lines}");
}

#[test]
fn the_prefix_is_part_of_the_repository_and_paths_apply() {
    let place = place();
    place.write(
        "site.yaml",
        "apiVersion: landfall/v1\nkind: Site\nregistry: {address: \"r.example:5000/p\", paths: {ghcr.io/dexidp: auth}}\n",
    );
    let report = place.json(
        3,
        &["render", "helm-values", "platform", "--site", "site.yaml"],
    );
    assert_eq!(
        report["values"]["dex"]["image"]["repository"],
        "r.example:5000/p/auth/dex"
    );
    let exporter = &report["values"]["nodeExporter"]["image"];
    assert_eq!(
        (&exporter["registry"], &exporter["repository"]),
        (
            &"r.example:5000".into(),
            &"p/prometheus/node-exporter".into()
        )
    );
}

#[test]
fn values_of_the_user_take_precedence_and_are_kept() {
    let place = place();
    let mine = "dex: {image: {tag: v2.43.0}}   # mine\nextraArgs: []\ntelemetry: {image: {repository: quay.io/prometheus/node-exporter, tag: v1.9.0}}\n";
    place.write("mine.yaml", mine);
    let report = place.json(
        3,
        &[
            &["render", "helm-values", "platform", "-f", "mine.yaml"][..],
            &TO,
        ]
        .concat(),
    );
    let values = &report["values"];
    let missing = report["missing"].as_array().unwrap();
    assert!(
        values["dex"].is_null() && values["extraArgs"].is_null(),
        "{values}"
    );
    assert_eq!(
        values["telemetry"]["image"]["repository"],
        "172.20.0.2:5000/prometheus/node-exporter"
    );
    assert!(
        missing
            .iter()
            .any(|one| one["why"] == "the lock has this repository only as v2.42.0"),
        "{missing:?}"
    );
    assert_eq!(place.read("mine.yaml"), mine);
}

#[test]
fn a_global_registry_takes_precedence() {
    let place = place();
    let metadata = "apiVersion: v2\nname: bit\nversion: 1.0.0\nappVersion: 3.2.4\n";
    place.write("bit/Chart.yaml", metadata);
    let values = "global: {imageRegistry: \"HOST\"}\nimage: {registry: gcr.io, repository: fluent/fluent-bit, tag: ''}\n\
                  other: {image: {repository: library/nginx, tag: '1.27'}}\nfull: {image: {repository: quay.io/prometheus/node-exporter, tag: v1.9.0}}\n";
    place.write("bit/values.yaml", values.replace("HOST", "docker.io"));
    let report = place.json(0, &[&["render", "helm-values", "bit"][..], &TO].concat());
    assert_eq!(
        report["values"],
        serde_json::json!({
            "global": {"imageRegistry": "172.20.0.2:5000"},
            "image": {"registry": "172.20.0.2:5000"},
            "other": {"image": {"registry": "172.20.0.2:5000"}},
            "full": {"image": {"repository": "172.20.0.2:5000/prometheus/node-exporter"}},
        })
    );
    // without a global registry, the registry next to the repository is used, so the reference
    // names another image
    place.write("bit/values.yaml", values.replace("HOST", ""));
    let report = place.json(3, &[&["render", "helm-values", "bit"][..], &TO].concat());
    assert_eq!(
        report["missing"][0]["reference"],
        "gcr.io/fluent/fluent-bit:3.2.4"
    );
    assert_eq!(report["values"]["global"], serde_json::Value::Null);
}

#[test]
fn a_dependency_that_the_chart_does_not_contain_is_listed() {
    let place = place();
    let dependencies = "dependencies:\n- {name: cache, version: 1.0.0, repository: https://h/c}\n\
                        - {name: extra, version: 1.0.0, repository: https://h/c, condition: extra.enabled}\n";
    place.write(
        "bit/Chart.yaml",
        format!("apiVersion: v2\nname: bit\nversion: 1.0.0\n{dependencies}"),
    );
    place.write(
        "bit/values.yaml",
        "image: {repository: quay.io/prometheus/node-exporter, tag: v1.9.0}\nextra: {enabled: false}\n",
    );
    let rendered = place
        .landfall()
        .args(["render", "helm-values", "bit"])
        .args(TO)
        .assert()
        .code(0);
    let notes = String::from_utf8_lossy(&rendered.get_output().stderr).into_owned();
    assert!(
        notes.contains("bit/charts/cache: its images are not in the overlay")
            && notes.contains("helm dependency build")
            && !notes.contains("charts/extra"),
        "{notes}"
    );
}

#[test]
fn several_charts_share_one_overlay_unless_they_conflict() {
    let place = place();
    for (name, repository, tag) in [
        ("one", "ghcr.io/dexidp/dex", "v2.42.0"),
        ("two", "registry.k8s.io/pause", "3.10.1"),
    ] {
        place.write(
            &format!("{name}/Chart.yaml"),
            format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n"),
        );
        place.write(
            &format!("{name}/values.yaml"),
            format!("{name}: {{image: {{repository: {repository}, tag: {tag}}}}}\n"),
        );
    }
    let report = place.json(
        0,
        &[&["render", "helm-values", "one", "two"][..], &TO].concat(),
    );
    assert_eq!(
        report["values"]["one"]["image"]["repository"],
        "172.20.0.2:5000/dexidp/dex"
    );
    assert_eq!(
        report["values"]["two"]["image"]["repository"],
        "172.20.0.2:5000/pause"
    );
    for (name, repository, tag) in [
        ("one", "ghcr.io/dexidp/dex", "v2.42.0"),
        ("two", "registry.k8s.io/pause", "3.10.1"),
    ] {
        place.write(
            &format!("{name}/values.yaml"),
            format!("image: {{repository: {repository}, tag: {tag}}}\n"),
        );
    }
    let report = place.json(
        2,
        &[&["render", "helm-values", "one", "two"][..], &TO].concat(),
    );
    let message = report["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("one and two both have image.repository"),
        "{message}"
    );
}

#[test]
fn a_file_that_is_not_a_chart_is_refused() {
    if !need(&["gzip"]) {
        return;
    }
    let place = place();
    place.write("empty/values.yaml", "a: 1\n");
    place.write(
        "escape.tgz",
        tgz("a\\..\\..", &[("Chart.yaml".into(), b"name: x\n".to_vec())]),
    );
    place.write("broken/Chart.yaml", "name: x\nversion: 1\n");
    place.write("broken/values.yaml", "a: [\n");
    std::fs::create_dir(place.path("round")).unwrap();
    place.write("round/Chart.yaml", "name: x\nversion: 1\n");
    std::fs::create_dir(place.path("round/charts")).unwrap();
    std::os::unix::fs::symlink("..", place.path("round/charts/round")).unwrap();
    for (chart, why) in [
        ("none", "cannot read none"),
        ("empty", "it has no Chart.yaml"),
        ("escape.tgz", "it contains a file with the unsafe name"),
        ("landfall.lock", "not a readable .tgz"),
        ("broken", "broken/values.yaml:2:1"),
        ("round", "nested deeper than 8"),
    ] {
        let report = place.json(2, &[&["render", "helm-values", chart][..], &TO].concat());
        let message = report["error"]["message"].as_str().unwrap();
        assert!(message.contains(why), "{chart}: {message}");
    }
}

#[test]
fn a_chart_without_locked_images_fails_and_writes_nothing() {
    let place = place();
    place.write("landfall.lock", "version: 1\n");
    place.json(
        1,
        &[
            &["render", "helm-values", "platform", "-o", "overlay.yaml"][..],
            &TO,
        ]
        .concat(),
    );
    assert!(!place.path("overlay.yaml").exists());
}
