//! References that a pod would pull from the internet, and files that were already rewritten.

use super::run;
use crate::support::Place;
use crate::support::images::lock_of;

/// A folder with a lock of two images: kubectl from Docker Hub and node-exporter from Quay.
fn place() -> Place {
    let place = Place::new();
    let images = [
        "docker.io/bitnami/kubectl:1.31.0",
        "quay.io/prometheus/node-exporter:v1.9.0",
    ];
    place.write("landfall.lock", lock_of(&images));
    place
}

#[test]
fn an_audit_fails_for_a_locked_repository_without_host_and_tag() {
    let place = place();
    for (name, text) in [
        (
            "image.yaml",
            "kubectl:\n  image:\n    repository: bitnami/kubectl\n",
        ),
        ("other.yaml", "kubectl:\n  repository: bitnami/kubectl\n"),
        ("key.yaml", "sidecarImage: bitnami/kubectl\n"),
        (
            "tagged.yaml",
            "image: {repository: bitnami/kubectl, tag: 1.31.0}\n",
        ),
        (
            "hosted.yaml",
            "image: {repository: docker.io/bitnami/kubectl}\n",
        ),
        (
            "registry.yaml",
            "image: {registry: docker.io, repository: bitnami/kubectl}\n",
        ),
        (
            "kustomization.yaml",
            "images:\n- name: bitnami/kubectl\n  newTag: 1.31.0\n",
        ),
        ("words.yaml", "name: kubectl\ntitle: bitnami\n"),
        ("made.yaml", "image: {repository: '{{ .Values.x }}'}\n"),
    ] {
        place.write(name, text);
    }
    let ambiguous = "the lock has docker.io/bitnami/kubectl:1.31.0, but this reference names \
                     neither a host nor a tag";
    let check = "1 reference to a locked repository has neither a host nor a tag";
    run(
        &place,
        &[],
        &[
            (
                "audit image.yaml",
                4,
                &[
                    "image.yaml:3:17: undecided",
                    ambiguous,
                    "0 held, 0 missing, 1 undecided",
                ],
            ),
            ("audit other.yaml", 4, &[ambiguous, "1 undecided"]),
            ("audit key.yaml", 4, &[ambiguous, "1 undecided"]),
            ("audit tagged.yaml", 0, &["1 held, 0 missing, 0 undecided"]),
            ("audit hosted.yaml", 0, &["1 held"]),
            ("audit registry.yaml", 0, &["1 held"]),
            ("audit words.yaml", 0, &["0 held, 0 missing, 0 undecided"]),
            // a host in the name would no longer match the bases
            (
                "audit kustomization.yaml",
                4,
                &["add `newName`, or audit the output of `kustomize build`"],
            ),
            (
                "rewrite --check kustomization.yaml --to 172.20.0.2:5000",
                4,
                &["add `newName: 172.20.0.2:5000/bitnami/kubectl`"],
            ),
            // other undecided references do not cause exit 4
            ("audit made.yaml", 0, &["1 undecided"]),
            (
                "rewrite --check image.yaml --to 172.20.0.2:5000",
                4,
                &[check, "(in 0 of 1 file); 1 left"],
            ),
            (
                "rewrite --check other.yaml --to 172.20.0.2:5000",
                4,
                &[check],
            ),
            ("rewrite --check key.yaml --to 172.20.0.2:5000", 4, &[check]),
            (
                "rewrite --check words.yaml --to 172.20.0.2:5000",
                0,
                &["no reference here is in the lock"],
            ),
            ("rewrite image.yaml --to 172.20.0.2:5000", 0, &[check]),
        ],
    );
    let report = place.json(4, &["audit", "image.yaml"]);
    assert_eq!(report["undecided"][0]["status"], "undecided");
    assert_eq!(
        report["undecided"][0]["item"],
        "docker.io/bitnami/kubectl:1.31.0"
    );
}

#[test]
fn an_audit_of_rewritten_files_names_their_registry() {
    let place = place();
    place.write(
        "one.yaml",
        "image: 172.20.0.2:5000/bitnami/kubectl:1.31.0\n",
    );
    place.write(
        "two.yaml",
        "a: {image: 'reg.example.com/mirror/bitnami/kubectl:1.31.0'}\nb: {image: \
         'reg.example.com/mirror/prometheus/node-exporter:v1.9.0'}\nc: {image: 'reg.example.com/other/app:1'}\n",
    );
    let add = "if the images were pushed there, add --to";
    run(
        &place,
        &[],
        &[
            (
                "audit one.yaml",
                4,
                &[
                    "1 missing reference is the name of a locked image at 172.20.0.2:5000;",
                    add,
                ],
            ),
            (
                "audit one.yaml --to 172.20.0.2:5000",
                0,
                &["1 held", "!add --to"],
            ),
            (
                "audit two.yaml",
                4,
                &[
                    "2 missing references are names of locked images at reg.example.com/mirror;",
                    add,
                ],
            ),
            (
                "audit two.yaml --to reg.example.com/mirror",
                4,
                &["2 held, 1 missing", "!add --to"],
            ),
            // the hint also appears if `--to` names another registry
            (
                "audit one.yaml --to 172.20.0.3:5000",
                4,
                &["at 172.20.0.2:5000;", add],
            ),
        ],
    );
    assert_eq!(
        place.json(4, &["audit", "two.yaml"])["otherRegistries"][0],
        "reg.example.com/mirror"
    );
}
