//! `landfall render helm-values` on one small chart for each way in which real charts compose the
//! reference of an image.

use crate::support::Place;
use crate::support::images::lock_of;
use serde_json::{Value, json};

/// The images of the lock.
const IMAGES: [&str; 14] = [
    "docker.io/bitnami/nginx:1.29",
    "docker.io/longhornio/ui:v1",
    "docker.io/neuvector/controller:5.6.0",
    "docker.io/library/busybox:1.28",
    "nvcr.io/nvidia/gpu-operator:v25",
    "nvcr.io/nvidia/cloud-native/dcgm:4.2",
    "quay.io/cilium/operator-generic:v1.19@sha256:0db4ca4e06969d8904ee036617795d0e9c3228cf7b8d902ba74fc2bb98d2d665",
    "quay.io/prometheus/node-exporter:v1.9.0-distroless",
    "quay.io/strimzi/kafka:1.2.0-kafka-4.2.0",
    "quay.io/strimzi/kafka-bridge:1.1.0",
    "quay.io/strimzi/operator:1.2.0",
    "reg.kyverno.io/kyverno/kyverno:v1.15",
    "registry.k8s.io/ingress-nginx/controller:v1.15",
    "registry.k8s.io/kubectl:v1.34.0",
];

/// The report of `render helm-values` on a chart with these default values and this template.
fn rendered(exit: i32, values: &str, template: &str) -> Value {
    let place = Place::new();
    place.write("landfall.lock", lock_of(&IMAGES));
    place.write(
        "c/Chart.yaml",
        "apiVersion: v2\nname: c\nversion: 1.0.0\nappVersion: 1.9.0\n",
    );
    place.write("c/values.yaml", values);
    place.write("c/templates/t.yaml", template);
    place.json(
        exit,
        &["render", "helm-values", "c", "--to", "r.example:5000/p"],
    )
}

/// The overlay for a chart with these default values. Asserts exit code 0: no image is
/// missing from the lock.
fn overlay(values: &str) -> Value {
    rendered(0, values, "")["values"].clone()
}

/// Every entry in a list of a report, as `path reference | why`.
fn finding_lines(report: &Value, list: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |one: &Value| {
        format!(
            "{} {} | {}",
            text(&one["path"]),
            text(&one["reference"]),
            text(&one["why"])
        )
    };
    report[list].as_array().unwrap().iter().map(line).collect()
}

#[test]
fn charts_of_bitnami_get_the_flag_that_allows_other_registries() {
    let image = "image: {registry: docker.io, repository: bitnami/nginx, tag: '1.29'}\n";
    let report = rendered(
        0,
        &format!("global: {{security: {{allowInsecureImages: false}}}}\n{image}"),
        "",
    );
    assert_eq!(
        report["values"],
        json!({
            "global": {"security": {"allowInsecureImages": true}},
            "image": {"registry": "r.example:5000", "repository": "p/bitnami/nginx"},
        })
    );
    assert_eq!(
        report["keys"][0]["path"],
        "global.security.allowInsecureImages"
    );
    // a flag that the chart lacks is not added, and the flag is not set if no image is changed
    assert_eq!(overlay(image)["global"], Value::Null);
    let report = rendered(
        1,
        "global: {security: {allowInsecureImages: false}}\nimage: quay.io/not/there:1\n",
        "",
    );
    assert_eq!(report["keys"], json!([]));
}

#[test]
fn the_prefix_of_strimzi_images_is_split_over_two_keys() {
    let values = "defaultImageRegistry: quay.io\ndefaultImageRepository: strimzi\ndefaultImageTag: 1.2.0\n\
                  image: {registry: '', repository: '', name: operator, tag: ''}\n\
                  kafkaBridge: {image: {registry: '', repository: '', name: kafka-bridge, tag: 1.1.0}}\n";
    let report = rendered(0, values, "");
    let expected =
        json!({"defaultImageRegistry": "r.example:5000", "defaultImageRepository": "p/strimzi"});
    assert_eq!(report["values"], expected);
    assert_eq!(
        report["items"].as_array().unwrap().len(),
        3,
        "each image that is locked below the prefix must be an item: {report}"
    );
}

#[test]
fn the_suffix_that_cilium_appends_to_the_operator_is_considered() {
    let digest = IMAGES[6].split_once('@').unwrap().1;
    let operator = format!(
        "operator: {{image: {{repository: quay.io/cilium/operator, tag: v1.19, genericDigest: '{digest}', \
         awsDigest: 'sha256:{}', useDigest: true, suffix: ''}}}}\n",
        "0".repeat(64)
    );
    let expected =
        json!({"operator": {"image": {"repository": "r.example:5000/p/cilium/operator"}}});
    assert_eq!(overlay(&operator), expected);
    let report = rendered(
        1,
        &operator
            .replace("v1.19", "v1.20")
            .replace(digest, &digest.replace('0', "1")),
        "",
    );
    assert_eq!(finding_lines(&report, "missing").len(), 2, "{report}");
}

#[test]
fn images_may_be_split_into_repository_and_name() {
    let values = "operator: {repository: nvcr.io/nvidia, image: gpu-operator, version: v25}\n\
                  dcgm: {repository: nvcr.io/nvidia/cloud-native, image: dcgm, version: '4.2'}\n";
    assert_eq!(
        overlay(values),
        json!({
            "operator": {"repository": "r.example:5000/p/nvidia"},
            "dcgm": {"repository": "r.example:5000/p/nvidia/cloud-native"},
        })
    );
}

#[test]
fn default_registries_apply_to_images_without_a_registry() {
    // ingress-nginx
    let values = "global: {image: {registry: registry.k8s.io}}\n\
                  controller: {image: {image: ingress-nginx/controller, tag: v1.15}}\n";
    let expected = json!({
        "global": {"image": {"registry": "r.example:5000"}},
        "controller": {"image": {"image": "p/ingress-nginx/controller"}},
    });
    assert_eq!(overlay(values), expected);
    // NeuVector, which has a default tag, too
    let values = "registry: docker.io\ntag: 5.6.0\ncontroller: {image: {repository: neuvector/controller, hash: ''}}\n";
    let expected = json!({"registry": "r.example:5000", "controller": {"image": {"repository": "p/neuvector/controller"}}});
    assert_eq!(overlay(values), expected);
    // Kyverno
    let values = "image: {registry: ~, defaultRegistry: reg.kyverno.io, repository: kyverno/kyverno, tag: v1.15}\n";
    let expected =
        json!({"image": {"defaultRegistry": "r.example:5000", "repository": "p/kyverno/kyverno"}});
    assert_eq!(overlay(values), expected);
    // a registry key that no image uses is left unchanged
    let values = "registry: docker.io\nimage: {repository: docker.io/longhornio/ui, tag: v1}\n";
    assert_eq!(
        overlay(values),
        json!({"image": {"repository": "r.example:5000/p/longhornio/ui"}})
    );
}

/// Templates of Rancher, RKE2, Longhorn and others put one registry before the names of all images,
/// also before a name that has a registry already.
#[test]
fn the_registry_before_all_names_is_set_instead_of_each_name() {
    let template = "image: {{ .Values.global.cattle.systemDefaultRegistry }}/{{ .Values.ui.image.repository }}\n";
    let ui = "ui: {image: {repository: longhornio/ui, tag: v1}}\n";
    let site = "r.example:5000";
    // Rancher puts the registry before names of its own, so it gets the path, too
    let with_path = "r.example:5000/p";
    for global in [
        "global: {cattle: {systemDefaultRegistry: ''}}\n",
        "global: {cattle: {systemDefaultRegistry: docker.io}}\n",
    ] {
        let report = rendered(0, &format!("{global}{ui}"), template);
        let expected = json!({"global": {"cattle": {"systemDefaultRegistry": with_path}}});
        assert_eq!(report["values"], expected, "{global}");
    }
    // at its destination, the name of an official image has another path than in the values
    let official = format!(
        "global: {{cattle: {{systemDefaultRegistry: ''}}}}\n{ui}db: {{image: {{repository: busybox, tag: \"1.28\"}}}}\n"
    );
    let report = rendered(0, &official, template);
    let expected = json!({
        "global": {"cattle": {"systemDefaultRegistry": site}},
        "ui": {"image": {"repository": "p/longhornio/ui"}},
        "db": {"image": {"repository": "p/library/busybox"}},
    });
    assert_eq!(report["values"], expected);
    // Rancher's monitoring, whose templates use either registry
    let both = "global: {cattle: {systemDefaultRegistry: ''}, imageRegistry: docker.io}\n";
    let values = &rendered(0, &format!("{both}{ui}"), template)["values"];
    let expected = json!({"cattle": {"systemDefaultRegistry": site}, "imageRegistry": site});
    assert_eq!(values["global"], expected);
    assert_eq!(values["ui"]["image"]["repository"], "p/longhornio/ui");
    // NeuVector, with a registry of its own
    let neuvector = "global: {systemDefaultRegistry: ''}\nregistry: docker.io\n\
                     controller: {image: {repository: neuvector/controller, tag: 5.6.0}}\n";
    assert_eq!(
        rendered(0, neuvector, template)["values"],
        json!({
            "global": {"systemDefaultRegistry": with_path},
            "registry": with_path,
        })
    );
    // a registry before a host would make a wrong name, and so would one that no template uses
    let empty = "global: {cattle: {systemDefaultRegistry: ''}}\n";
    let whole = json!({"image": {"repository": "r.example:5000/p/longhornio/ui"}});
    let host =
        format!("{empty}{ui}kubectl: {{repository: registry.k8s.io/kubectl, tag: v1.34.0}}\n");
    let list = format!("{empty}{ui}more: [{{x: {{repository: longhornio/ui, tag: v1}}}}]\n");
    for (values, template) in [
        (&*host, template),
        (&list, template),
        (&format!("{empty}{ui}"), ""),
    ] {
        let overlay = &rendered(0, values, template)["values"];
        assert_eq!((&overlay["global"], &overlay["ui"]), (&Value::Null, &whole));
    }
}

#[test]
fn tags_may_be_composed_by_a_template() {
    // `-distroless` is appended to the tag, or to appVersion
    for tag in ["v1.9.0", "''"] {
        let values = format!(
            "image: {{repository: quay.io/prometheus/node-exporter, tag: {tag}, distroless: true}}\n"
        );
        let expected =
            json!({"image": {"repository": "r.example:5000/p/prometheus/node-exporter"}});
        assert_eq!(overlay(&values), expected);
    }
    // the chart takes the tag from the version of the cluster: the overlay contains the repository,
    // and the report lists the image as missing
    let report = rendered(
        3,
        "image: {repository: registry.k8s.io/kubectl, tag: ''}\n",
        "",
    );
    assert_eq!(
        report["values"],
        json!({"image": {"repository": "r.example:5000/p/kubectl"}})
    );
    let why = "image.repository registry.k8s.io/kubectl:1.9.0 | the lock has this repository only as v1.34.0";
    assert_eq!(finding_lines(&report, "missing"), [why]);
}

#[test]
fn references_written_in_templates_are_reported() {
    let template = "{{- if .Values.x }}\nspec:\n  containers:\n  - image: busybox:1.28\n  - image: quay.io/not/there:1\n  \
                    - image: {{ .Values.image }}\n{{- end }}\n";
    let report = rendered(3, "image: docker.io/longhornio/ui:v1\n", template);
    assert_eq!(
        report["values"],
        json!({"image": "r.example:5000/p/longhornio/ui:v1"})
    );
    let there = report["undecided"].as_array().unwrap();
    assert_eq!(
        (there.len(), &there[0]["file"], &there[0]["line"]),
        (1, &"c/templates/t.yaml".into(), &4.into())
    );
    assert!(
        finding_lines(&report, "undecided")[0]
            .contains("busybox:1.28 | it is written in a template"),
        "{report}"
    );
    assert_eq!(
        finding_lines(&report, "missing"),
        [" quay.io/not/there:1 | not in the lock"]
    );
}

#[test]
fn an_empty_overlay_is_an_error() {
    let report = rendered(1, "replicas: 1\n", "");
    let message = report["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("no image was found in the charts' values\n0 keys for 0 locked images"),
        "{message}"
    );
    let message = rendered(1, "image: '{{ .Values.x }}'\n", "")["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        message.starts_with("none of the charts' images is in the lock"),
        "{message}"
    );
}

/// The behaviour of helm 3.22 was tried: a template reads these values as
/// `index .Values "false" "image"`.
#[test]
fn words_of_yaml_1_1_are_the_keys_that_helm_reads() {
    let image = "docker.io/longhornio/ui:v1";
    let at_site = json!({"image": "r.example:5000/p/longhornio/ui:v1"});
    for (word, key) in [("off", "false"), ("No", "false"), ("yes", "true")] {
        let report = rendered(0, &format!("a: 1\n{word}:\n  image: {image}\n"), "");
        assert_eq!(report["values"], json!({key: at_site}));
        assert_eq!(report["keys"][0]["path"], format!("{key}.image"));
    }
    // a quoted word is a text; the overlay quotes it too
    let quoted = overlay(&format!("\"off\": {{image: '{image}'}}\n"));
    assert_eq!(quoted, json!({"off": at_site}));
}
