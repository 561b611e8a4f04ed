//! Names that changed since manuals were written: shown by `lock`, `egress` and `doctor`, and never
//! recorded in the lock.

use crate::support::faults::{Content, Faults};
use crate::support::{Place, need};
use serde_json::Value;

/// A place with a manifest of old names, most of which its upstream lacks.
fn place_of_old_names() -> (Place, Faults) {
    let mut content = Content::default();
    let image = content.image("registry.k8s.io/pause", "linux/amd64", &[(7, 64)]);
    let index = content.index("registry.k8s.io/pause", &[image]);
    content.tag("registry.k8s.io/pause", "3.10", &index);
    let upstream = Faults::new(content);
    let place = Place::new();
    place.write(
        "old.yaml",
        "apiVersion: landfall/v1\nkind: Manifest\nimages:\n- registry.k8s.io/pause:3.10\n- k8s.gcr.io/pause:3.1\n\
         - gcr.io/google_containers/hyperkube-amd64:v1.16.2\n- gcr.io/google_containers/gone:v1\n\
         - quay.io/coreos/kube-rbac-proxy:v0.4.1\n- quay.io/team/gone:v1\n\
         - projects.registry.vmware.com/tkg/pause:3.4.1\n\
         files:\n- url: https://storage.googleapis.com/kubernetes-release/release/v1.16.2/kubelet\n\
         endpoints:\n- {host: apt.kubernetes.io, port: 443, why: KubeOne, from: [seed-cluster-node]}\n\
         - {host: vcenter.example.com, port: 443, why: machines}\n",
    );
    let mirrors: String = [
        "registry.k8s.io",
        "k8s.gcr.io",
        "gcr.io",
        "quay.io",
        "projects.registry.vmware.com",
        "storage.googleapis.com",
    ]
    .map(|host| {
        format!(
            "  {host}: {{mirror: \"http://{}/{host}\"}}\n",
            upstream.address
        )
    })
    .concat();
    place.write(
        "site.yaml",
        format!("apiVersion: landfall/v1\nkind: Site\nupstreams:\n{mirrors}"),
    );
    (place, upstream)
}

#[test]
fn a_failed_lock_names_the_successors_of_old_names() {
    if !need(&["gzip"]) {
        return;
    }
    let (place, _upstream) = place_of_old_names();
    let lock = ["lock", "-f", "old.yaml", "--site", "site.yaml"];
    let report = place.json(3, &lock);
    let changed = report["changedNames"].as_array().unwrap();
    let says: Vec<&str> = changed
        .iter()
        .map(|row| row["says"].as_str().unwrap())
        .collect();
    let frozen = changed.iter().find(|row| row["name"] == "k8s.gcr.io");
    assert_eq!(
        frozen.unwrap()["replacement"],
        "registry.k8s.io",
        "{report:#}"
    );
    // one for each name, and none for quay.io/team/gone and for the item that was found
    let expected = [
        "gcr.io/google_containers gets no new images (2020-07-13); write registry.k8s.io",
        "gcr.io/google_containers/hyperkube-amd64 ended with Kubernetes 1.19 (2020-08-26); the \
         control plane has an image for each component, and dl.k8s.io has the kubelet",
        "k8s.gcr.io was frozen (2023-04-03); write registry.k8s.io",
        "projects.registry.vmware.com moved (2024-06-19); write projects.packages.broadcom.com",
        "quay.io/coreos/kube-rbac-proxy is not updated any more (2020-08-26); write \
         quay.io/brancz/kube-rbac-proxy",
        "storage.googleapis.com/kubernetes-release moved (2023-06-09); write dl.k8s.io",
    ];
    assert_eq!(says, expected);
    let recorded = place.read("landfall.lock");
    assert!(!recorded.contains("was frozen"), "{recorded}");
    let printed = place.landfall().args(lock).assert().code(3);
    let printed = String::from_utf8_lossy(&printed.get_output().stdout).into_owned();
    for words in expected {
        assert!(
            printed.contains(&format!("note: {words}, see https://")),
            "{words}: {printed}"
        );
    }
}

#[test]
fn a_failed_pull_names_the_successors_of_old_names() {
    if !need(&["gzip"]) {
        return;
    }
    let (place, _upstream) = place_of_old_names();
    let manifest =
        "apiVersion: landfall/v1\nkind: Manifest\nimages: [registry.k8s.io/pause:3.10]\n";
    place.write("one.yaml", manifest);
    let site = ["--site", "site.yaml"];
    place.ok(&[&["lock", "-f", "one.yaml", "--store", "other"], &site[..]].concat());
    let lock = place.read("landfall.lock");
    place.write(
        "landfall.lock",
        lock.replace("registry.k8s.io", "k8s.gcr.io"),
    );
    for into in [&["--store", "s"][..], &["--store", "s", "--bundle", "B"]] {
        let report = place.json(1, &[&["pull"], into, &site].concat());
        let says = &report["changedNames"][0]["says"];
        let expected = "k8s.gcr.io was frozen (2023-04-03); write registry.k8s.io";
        assert_eq!(says, expected, "{report:#}");
    }
}

#[test]
fn egress_and_doctor_note_old_names_of_items_and_endpoints() {
    if !need(&["gzip"]) {
        return;
    }
    let (place, _upstream) = place_of_old_names();
    let site = ["--site", "site.yaml"];
    place.json(3, &[&["lock", "-f", "old.yaml"], &site[..]].concat());
    let expected = [
        "apt.kubernetes.io was removed (2024-03-04); write pkgs.k8s.io",
        "k8s.gcr.io was frozen (2023-04-03); write registry.k8s.io, see https://kubernetes.io/blog/",
        "projects.registry.vmware.com moved",
    ];
    let report = place.json(0, &[&["egress"], &site[..]].concat());
    let notes = report["egress"]["notes"].as_array().unwrap();
    for words in expected {
        let is_noted = |note: &Value| note.as_str().unwrap().starts_with(words);
        assert_eq!(
            notes.iter().filter(|note| is_noted(note)).count(),
            1,
            "{words}: {notes:#?}"
        );
    }
    assert!(
        notes.iter().any(|note| note
            .as_str()
            .unwrap()
            .starts_with("vcenter.example.com is an example")),
        "{notes:#?}"
    );
    // the list of a role has the notes about its hosts
    let role = ["egress", "--role", "seed-cluster-node"];
    let report = place.json(0, &[&role, &site[..]].concat());
    let notes = report["egress"]["notes"].to_string();
    assert!(
        notes.contains(expected[0]) && !notes.contains(expected[1]),
        "{notes}"
    );
    // 4 because the endpoint does not exist
    place.set("no_proxy", "*");
    let report = place.json(4, &[&["doctor"], &site[..]].concat());
    let targets = report["targets"].as_array().unwrap();
    let endpoints = targets
        .iter()
        .find(|target| target["target"] == "endpoints");
    let fix = endpoints.unwrap()["checks"][0]["fix"].as_str().unwrap();
    assert!(
        fix.starts_with(expected[0]),
        "not to be allowed at a firewall: {fix}"
    );
    let changed = targets
        .iter()
        .find(|target| target["target"] == "changed names");
    let checks = changed.unwrap_or_else(|| panic!("{report}"))["checks"]
        .as_array()
        .unwrap();
    for words in expected {
        let check = checks
            .iter()
            .find(|check| check["says"].as_str().unwrap().starts_with(words))
            .unwrap_or_else(|| panic!("{words}: {checks:#?}"));
        assert!(
            check["verdict"] == "note" && check["source"].as_str().unwrap().starts_with("https://"),
            "{check}"
        );
    }
}
