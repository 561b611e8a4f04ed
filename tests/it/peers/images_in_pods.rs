//! Image names in pods: kustomize with the rendered component, Kyverno with the rendered policies.

use crate::platforms::place;
use crate::support::programs::{LargeGoProgram, go_install};
use crate::support::{Place, run};
use serde_yaml::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const SITE: &str = "registry:
  address: 172.20.0.2:5000/mirror
  plainHTTP: true
  paths: {docker.io/library/redis: cache, quay.io/prometheus: monitoring}
consumers: [kubeadm]
proxy: {http: \"http://10.0.0.1:3128\", https: \"http://10.0.0.1:3128\"}
";

const IMAGES: [&str; 6] = [
    "docker.io/library/nginx:1.27",
    "docker.io/library/redis:7",
    "localhost:5001/team/a-b/app:v1",
    "quay.io/prometheus/node-exporter:v1.9.0",
    "registry.k8s.io/kube-apiserver:v1.33.4",
    "us-docker.pkg.dev/project/image:v1",
];

/// Kyverno's command line.
pub(crate) const KYVERNO: LargeGoProgram = LargeGoProgram {
    variable: "LANDFALL_KYVERNO",
    module: "github.com/kyverno/kyverno@v1.19.1",
    path: "cmd/cli/kubectl-kyverno",
    go: "1.26.6",
    replace: "replace k8s.io/pod-security-admission => github.com/kyverno/pod-security-admission \
              v0.0.0-20251031094455-46f20778634f",
    experiment: "",
};

const DIGEST: &str = "@sha256:4a1c4a1c4a1c4a1c4a1c4a1c4a1c4a1c4a1c4a1c4a1c4a1c4a1c4a1c4a1c4a1c";

/// Images of a pod, each with the expected result. A final `@` is replaced by [`DIGEST`].
const WRITTEN: [(&str, &str); 12] = [
    ("nginx:1.27", "172.20.0.2:5000/mirror/library/nginx:1.27"),
    (
        "docker.io/library/nginx:1.27",
        "172.20.0.2:5000/mirror/library/nginx:1.27",
    ),
    ("docker.io/nginx@", "172.20.0.2:5000/mirror/library/nginx@"),
    ("redis:7", "172.20.0.2:5000/mirror/cache:7"),
    (
        "docker.io/library/redis:7",
        "172.20.0.2:5000/mirror/cache:7",
    ),
    (
        "localhost:5001/team/a-b/app:v1",
        "172.20.0.2:5000/mirror/team/a-b/app:v1",
    ),
    (
        "quay.io/prometheus/node-exporter:v1.9.0@",
        "172.20.0.2:5000/mirror/monitoring/node-exporter:v1.9.0@",
    ),
    (
        "k8s.gcr.io/kube-apiserver:v1.33.4",
        "172.20.0.2:5000/mirror/kube-apiserver:v1.33.4",
    ),
    (
        "us-docker.pkg.dev/project/image:v1",
        "172.20.0.2:5000/mirror/project/image:v1",
    ),
    (
        "172.20.0.2:5000/mirror/library/nginx:1.27",
        "172.20.0.2:5000/mirror/library/nginx:1.27",
    ),
    ("172.20.0.2:5000/team/app:2", "172.20.0.2:5000/team/app:2"),
    (
        "other.example.com:5000/nginx:1.27",
        "other.example.com:5000/nginx:1.27",
    ),
];

fn with_digest(image: &str) -> String {
    image
        .strip_suffix('@')
        .map_or(image.to_owned(), |name| format!("{name}{DIGEST}"))
}

/// A pod with every image of [`WRITTEN`] in each of these lists.
fn pod(lists: &[&str], namespace: &str, annotation: &str) -> String {
    let containers = |list: &&str| {
        let each = WRITTEN.iter().enumerate();
        let each = each.map(|(at, (image, _))| {
            format!(
                "  - {{name: {}-{at}, image: {:?}}}\n",
                &list[..1],
                with_digest(image)
            )
        });
        format!("  {list}:\n{}", each.collect::<String>())
    };
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: many, namespace: {namespace}, annotations: {{{annotation}}}}}\nspec:\n{}",
        lists.iter().map(containers).collect::<String>()
    )
}

/// Asserts that each list of the pod has the rewritten images.
fn assert_images(pod: &Value, lists: &[&str]) {
    for list in lists {
        let containers = pod["spec"][*list]
            .as_sequence()
            .unwrap_or_else(|| panic!("no {list}: {pod:?}"));
        let images: BTreeMap<&str, &str> = containers
            .iter()
            .map(|one| {
                (
                    one["name"].as_str().unwrap(),
                    one["image"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(images.len(), WRITTEN.len(), "{list}");
        for (at, (written, becomes)) in WRITTEN.iter().enumerate() {
            let name = format!("{}-{at}", &list[..1]);
            assert_eq!(images[&*name], with_digest(becomes), "{written} in {list}");
        }
    }
}

fn rendered(platform: &[&str]) -> Place {
    let place = place(SITE, &IMAGES);
    let site = ["--site", "site.yaml", "-o", "out"];
    place.ok(&[&["render"], platform, &site].concat());
    place
}

#[test]
fn the_kustomize_component_renames_images_in_containers_and_init_containers() {
    let Some(kustomize) = go_install("sigs.k8s.io/kustomize/kustomize/v5@v5.7.1") else {
        return;
    };
    let place = rendered(&["kustomize"]);
    let lists = ["containers", "initContainers"];
    place.write("app/pod.yaml", pod(&lists, "shop", ""));
    place.write(
        "app/kustomization.yaml",
        "resources: [pod.yaml]\ncomponents: [../out]\n",
    );
    let build = |folder: &str| {
        let built = run(place.clean(&kustomize).args(["build", folder]));
        String::from_utf8(built).unwrap()
    };
    let built = build("app");
    assert_images(&serde_yaml::from_str(&built).unwrap(), &lists);
    // a second run changes nothing
    place.write("again/pod.yaml", &built);
    place.write(
        "again/kustomization.yaml",
        "resources: [pod.yaml]\ncomponents: [../out]\n",
    );
    assert_eq!(build("again"), built);
}

#[test]
fn the_kyverno_policies_rewrite_images_and_add_the_proxy() {
    if let Some(kyverno) = KYVERNO.find() {
        assert_policies(&kyverno, "form=cluster-policy");
    }
}

#[test]
fn the_kyverno_policies_in_cel_rewrite_images_and_add_the_proxy() {
    if let Some(kyverno) = KYVERNO.find() {
        assert_policies(&kyverno, "form=cel");
    }
}

/// Applies the policies of this form to pods.
fn assert_policies(kyverno: &Path, form: &str) {
    let place = rendered(&["kyverno", "--set", form]);
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let apply = |policy: &str, pod: &str| -> Value {
        place.write("pod.yaml", pod);
        let _ = std::fs::remove_dir_all(place.path("mutated"));
        std::fs::create_dir(place.path("mutated")).unwrap();
        let policy = format!("out/{policy}.yaml");
        let mut command: Command = place.clean(kyverno);
        run(command.args(["apply", &policy, "--resource", "pod.yaml", "-o", "mutated"]));
        let files = crate::platforms::files(&place.path("mutated"));
        let text = files
            .values()
            .next()
            .unwrap_or_else(|| panic!("nothing is written by {policy}"));
        serde_yaml::from_str(text.split("\n---").next().unwrap()).unwrap()
    };
    let mutated = apply("replace-registries", &pod(&lists, "shop", ""));
    assert_images(&mutated, &lists);
    let again = serde_yaml::to_string(&mutated).unwrap();
    assert_eq!(apply("replace-registries", &again), mutated);
    // lists that a pod lacks are not added
    let alone = apply("replace-registries", &pod(&["containers"], "shop", ""));
    assert_images(&alone, &["containers"]);
    assert!(alone["spec"].as_mapping().unwrap().len() == 1, "{alone:?}");

    let variables = |pod: &Value, list: &str| -> Vec<usize> {
        let containers = pod["spec"][list].as_sequence().unwrap();
        containers
            .iter()
            .map(|one| one["env"].as_sequence().map_or(0, Vec::len))
            .collect()
    };
    let injected = apply("inject-proxy", &pod(&lists, "shop", ""));
    for list in lists {
        assert_eq!(variables(&injected, list), [6; WRITTEN.len()], "{list}");
    }
    let alone = apply("inject-proxy", &pod(&["containers"], "shop", ""));
    assert!(alone["spec"].as_mapping().unwrap().len() == 1, "{alone:?}");
    for (namespace, annotation) in [
        ("kube-system", ""),
        ("shop", "landfall/inject-proxy: exclude"),
    ] {
        let left = apply("inject-proxy", &pod(&["containers"], namespace, annotation));
        assert_eq!(
            variables(&left, "containers"),
            [0; WRITTEN.len()],
            "{namespace}"
        );
    }
}
