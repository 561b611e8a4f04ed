//! Arguments without flags, files of another kind than expected, and locks older than manifests.

use super::{run, run_with};
use crate::support::Place;
use crate::support::faults::Rig;

#[test]
fn a_file_is_named_with_or_without_its_flag() {
    let rig = Rig::new();
    rig.set_faults([]);
    run_with(
        &rig,
        &[
            (
                "lock",
                2,
                &[
                    "no manifest is named",
                    "name one, as in -f manifest.yaml",
                    "landfall init",
                ],
            ),
            (
                "lock m.yaml --lock new.lock --plain-http UP",
                0,
                &["locked 2 images, 1 file in new.lock"],
            ),
            (
                "lock m.yaml --check --lock new.lock --plain-http UP",
                0,
                &["nothing changed"],
            ),
            (
                "pull new.lock --store s --plain-http UP",
                0,
                &["pulled 2 images, 1 file"],
            ),
            ("pull new.lock --lock new.lock", 2, &["cannot be used with"]),
            (
                "pack new.lock -o by-place --store s",
                0,
                &["packed 2 images and 1 file into by-place"],
            ),
            (
                "pack --store s",
                0,
                &["packed 2 images and 1 file into bundle.tar.zst"],
            ),
            (
                "pack other.tar.zst --store s",
                2,
                &[
                    "there is no lock other.tar.zst",
                    "landfall pack -o other.tar.zst",
                ],
            ),
            (
                "pack by-place --store s",
                2,
                &["by-place is a bundle, not a lock"],
            ),
            ("egress new.lock --store s", 0, &["127.0.0.1"]),
            ("egress by-place --store s", 0, &["127.0.0.1"]),
            ("export sources by-place", 0, &["UP/team/app:v1"]),
            ("export sources new.lock --store s", 0, &["UP/team/app:v1"]),
            (
                "export images-txt by-place",
                3,
                &["UP/team/app:v1", "!@sha256:"],
            ),
            (
                "export images-txt by-place --digests",
                3,
                &["UP/team/app:v1@sha256:"],
            ),
            (
                "export files new.lock --store s -o files --dry-run",
                0,
                &["tool.bin would be written"],
            ),
            (
                "push by-place DOWN --plain-http DOWN",
                0,
                &["delivered 2 images, 1 file to DOWN"],
            ),
            (
                "push DOWN",
                2,
                &[
                    "DOWN is a registry, not a bundle",
                    "landfall push BUNDLE --to DOWN",
                ],
            ),
            (
                "push by-place base.bundle --to DOWN --plain-http DOWN",
                2,
                &["base.bundle"],
            ),
            (
                "status by-place DOWN --plain-http DOWN",
                0,
                &["3 of 3 there"],
            ),
            (
                "status new.lock DOWN --plain-http DOWN",
                0,
                &["3 of 3 there"],
            ),
            ("status DOWN --plain-http DOWN", 0, &["3 of 3 there"]),
            (
                "mirror m.yaml DOWN/again --plain-http UP --plain-http DOWN",
                0,
                &["to DOWN/again"],
            ),
            (
                "mirror m.yaml --lock new.lock --to DOWN",
                2,
                &["name manifests or a lock, not both"],
            ),
            (
                "mirror --lock new.lock --platform linux/amd64 --to DOWN",
                2,
                &["cannot be used with"],
            ),
            (
                "update m.yaml --lock new.lock --check --plain-http UP",
                0,
                &[],
            ),
        ],
    );
}

#[test]
fn a_file_that_is_not_a_manifest_gets_a_hint() {
    let place = Place::new();
    place.write(
        "values.yaml",
        "image:\n  repository: quay.io/team/app\n  tag: v1.0\nreplicas: 1\n",
    );
    place.write(
        "pod.yaml",
        "spec:\n  containers:\n  - image: nginx\n  - image: quay.io/a/b:1.0\n  - image: quay.io/a/c:latest\n  - image: '{{ .x }}'\n",
    );
    run(
        &place,
        &[],
        &[
            (
                "lock -f values.yaml",
                2,
                &[
                    "values.yaml:1:1: error: this is not a manifest",
                    "landfall init values.yaml",
                ],
            ),
            ("lock values.yaml", 2, &["landfall init values.yaml"]),
            (
                "init values.yaml -o a",
                0,
                &[
                    "1 entry from 1 file or chart\n",
                    "next: landfall lock -f a/manifest.yaml",
                ],
            ),
            (
                "init pod.yaml -o b",
                0,
                &[
                    "commented out: docker.io/library/nginx (pod.yaml:3; no tag: write a version or a digest)",
                    "commented out: quay.io/a/c:latest (pod.yaml:5; the tag may move: write a version or a digest)",
                    "1 entry from 1 file or chart, 3 commented out",
                ],
            ),
        ],
    );
}

#[test]
fn a_lock_that_is_older_than_its_manifest_gets_a_note() {
    let rig = Rig::new();
    rig.set_faults([]);
    let place = &rig.place;
    run_with(
        &rig,
        &[
            ("lock m.yaml --plain-http UP", 0, &[]),
            ("pull --store s --plain-http UP", 0, &["!older than"]),
        ],
    );
    let more = place
        .read("m.yaml")
        .replace("images: [", "images: [quay.io/team/new:v1, ");
    assert_ne!(more, place.read("m.yaml"));
    place.write("m.yaml", more);
    // a manifest with another name does not belong to this lock
    place.write(
        "other.yaml",
        "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: another}\nimages: ['quay.io/a/b:1']\n",
    );
    let note =
        "note: landfall.lock lacks quay.io/team/new:v1 of m.yaml; `landfall lock -f m.yaml --lock";
    run_with(
        &rig,
        &[
            ("pull --store s --plain-http UP", 0, &[note, "!other.yaml"]),
            ("pack -o b --store s", 0, &[note, "!other.yaml"]),
        ],
    );
}
