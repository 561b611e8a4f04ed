//! Writes one lock in all list formats.

use super::{EXPORT_FORMATS, ExportInput, ExportedList};
use crate::lockfile::{AcceptedLoss, Lock};
use crate::{LockedFile, LockedImage, LockedTrimmedIndex};
use landfall_model::report::EntryKind;
use landfall_model::{Descriptor, DestinationMap, Digest};
use std::collections::BTreeMap;

fn lock() -> Lock {
    let image = |name: &str, platforms: &[&str]| {
        let top = Descriptor::new(
            Digest::sha256(b"a"),
            1,
            String::from("application/vnd.oci.image.index.v1+json"),
        );
        let mut image = LockedImage::new(name.parse().unwrap(), top);
        image.platforms = platforms.iter().map(|one| one.parse().unwrap()).collect();
        image.trimmed = Some(LockedTrimmedIndex {
            digest: Digest::sha256(b"t"),
            size: 0,
        });
        image
    };
    let mut file = LockedFile::new("https://dl.k8s.io/v1/kubelet", Digest::sha256(b"f"), 7);
    file.mode = Some("0755".into());
    Lock {
        version: 1,
        images: vec![
            image("docker.io/library/nginx:1.27", &["linux/amd64"]),
            image("quay.io/x/y:v1", &["linux/amd64", "linux/arm64"]),
        ],
        files: vec![file],
        ..Lock::default()
    }
}

fn listed(name: &str, digests: bool) -> ExportedList {
    list_of(&lock(), name, digests)
}

fn list_of(lock: &Lock, name: &str, digests: bool) -> ExportedList {
    let mapping = DestinationMap::to("172.20.0.2:5000/p".parse().unwrap());
    let format = EXPORT_FORMATS
        .iter()
        .find(|format| format.name == name)
        .unwrap();
    (format.write)(&ExportInput {
        lock,
        mapping: Some(&mapping),
        digests,
        licences: BTreeMap::new(),
    })
}

#[test]
fn a_file_next_to_the_manifest_is_in_no_list_of_another_tool() {
    let mut lock = lock();
    lock.files = vec![LockedFile::new("local:setup.sh", Digest::sha256(b"l"), 1)];
    for name in ["hauler", "zarf"] {
        let list = list_of(&lock, name, false);
        assert!(!list.text.contains("setup.sh"), "{name}: {}", list.text);
        assert!(!list.text.contains("files:"), "{name}: {}", list.text);
        let left = list.left.contains(&"file local:setup.sh".to_owned());
        assert!(left, "{name}: {:?}", list.left);
    }
    let sources = list_of(&lock, "sources", false).text;
    assert!(sources.contains("\tlocal\t"), "{sources}");
}

#[test]
fn an_image_of_an_archive_is_in_no_list_of_another_tool() {
    let mut lock = lock();
    lock.images[0].archive = Some("build/nginx.tar".into());
    for name in [
        "hauler",
        "zarf",
        "images-txt",
        "skopeo-sync",
        "regsync",
        "imgpkg-lock",
    ] {
        let list = list_of(&lock, name, false);
        assert!(
            !list.text.contains("library/nginx"),
            "{name}: {}",
            list.text
        );
        assert!(list.text.contains("quay.io"), "{name}: {}", list.text);
        let left = "image docker.io/library/nginx:1.27".to_owned();
        assert!(list.left.contains(&left), "{name}: {:?}", list.left);
    }
    let sources = list_of(&lock, "sources", false).text;
    assert!(sources.contains("library/nginx"), "{sources}");
}

#[test]
fn a_lock_is_written_as_the_lists_of_other_tools() {
    let a = Digest::sha256(b"a");
    let f = Digest::sha256(b"f");
    let hex = f.to_string().replace("sha256:", "");
    let begin = "apiVersion: content.hauler.cattle.io/v1\nkind:";
    for (name, text) in [
        (
            "images-txt",
            "docker.io/library/nginx:1.27\nquay.io/x/y:v1\n".to_owned(),
        ),
        (
            "hauler",
            format!(
                "{begin} Images\nmetadata: {{name: images}}\nspec:\n  images:\n    - name: \
                 \"docker.io/library/nginx:1.27\"\n      \
                 platform: linux/amd64\n    - name: \"quay.io/x/y:v1\"\n---\n{begin} \
                                                      Files\nmetadata: {{name: files}}\nspec:\n  \
                 files:\n    - path: \"https://dl.k8s.io/v1/kubelet\"\n"
            ),
        ),
        (
            "skopeo-sync",
            "\"docker.io\":\n  images:\n    \"library/nginx\": [\"1.27\"]\n\"quay.io\":\n  \
             images:\n    \"x/y\": [\"v1\"]\n"
                .to_owned(),
        ),
        (
            "regsync",
            "version: 1\nsync:\n  - source: \"docker.io/library/nginx:1.27\"\n    target: \
             \"172.20.0.2:5000/p/library/nginx:1.27\"\n    type: image\n    platform: \
               linux/amd64\n  - source: \
             \"quay.io/x/y:v1\"\n    target: \"172.20.0.2:5000/p/x/y:v1\"\n    type: image\n    \
               platforms: [linux/amd64, \
             linux/arm64]\n"
                .to_owned(),
        ),
        (
            "zarf",
            format!(
                "kind: ZarfPackageConfig\nmetadata:\n  name: landfall\ncomponents:\n  - name: \
                 landfall\n    required: true\n    \
                 images:\n      - \"docker.io/library/nginx:1.27\"\n      - \"quay.io/x/y:v1\"\n    files:\n      - source: \
                 \"https://dl.k8s.io/v1/kubelet\"\n        shasum: {hex}\n        target: \
                   \"dl.k8s.io/v1/kubelet\"\n        \
                 executable: true\n"
            ),
        ),
        (
            "imgpkg-lock",
            format!(
                "apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: ImagesLock\nimages:\n- image: \
                 \"docker.io/library/nginx@{a}\"\n  annotations:\n    kbld.carvel.dev/id: \
                   \"docker.io/library/nginx:1.27\"\n- \
                 image: \"quay.io/x/y@{a}\"\n  annotations:\n    kbld.carvel.dev/id: \
                          \"quay.io/x/y:v1\"\n"
            ),
        ),
        (
            "sources",
            format!(
                "kind\tname\tdigest\tbytes\torigin\tlicence\nimage\tdocker.io/library/nginx:1.27\t{a}\t1\tdocker.io\t\
                 \nimage\tquay.io/x/y:v1\t{a}\t1\tquay.io\t\nfile\thttps://dl.k8s.io/v1/kubelet\t{f}\t648\t\
                 dl.k8s.io\t\n"
            ),
        ),
    ] {
        assert_eq!(listed(name, false).text, text, "{name}");
    }
    assert!(
        listed("images-txt", true)
            .text
            .contains(&format!("quay.io/x/y:v1@{a}\n"))
    );
    assert!(
        listed("skopeo-sync", true)
            .text
            .contains(&format!("\"x/y\": [\"{a}\"]"))
    );
}

#[test]
fn items_that_a_format_cannot_contain_are_reported() {
    let file = "file https://dl.k8s.io/v1/kubelet";
    assert_eq!(listed("regsync", false).left, [file]);
    for name in ["images-txt", "skopeo-sync", "imgpkg-lock"] {
        assert_eq!(
            listed(name, false).left,
            [
                file,
                "platforms linux/amd64 of docker.io/library/nginx:1.27",
                "platforms linux/amd64, linux/arm64 of quay.io/x/y:v1"
            ],
            "{name}"
        );
    }
    // the registry has no other platforms
    let mut all_platforms = lock();
    all_platforms.files.clear();
    all_platforms.images[0].trimmed = None;
    all_platforms.images.truncate(1);
    for format in EXPORT_FORMATS {
        let left = list_of(&all_platforms, format.name, false).left;
        assert!(left.is_empty(), "{}: {left:?}", format.name);
    }
    // Zarf has one architecture
    all_platforms.images[0].platforms.clear();
    assert!(!list_of(&all_platforms, "zarf", false).left.is_empty());
    assert_eq!(listed("sources", false).left, [""; 0]);
    let hauler = listed("hauler", false).left.join("\n");
    assert!(
        hauler.contains("platforms linux/amd64, linux/arm64 of quay.io/x/y:v1"),
        "{hauler}"
    );
    assert!(
        hauler.contains("checksum of https://dl.k8s.io/v1/kubelet"),
        "{hauler}"
    );
    assert!(listed("zarf", false).left[0].starts_with("platforms: Zarf carries one architecture"));
}

#[test]
fn text_of_a_lock_cannot_forge_cells_or_keys() {
    let mut forged = lock();
    forged.missing.push(AcceptedLoss {
        kind: EntryKind::File,
        name: "https://h.test/a\nimage\tquay.io/x/z:v1".into(),
        reason: "gone\r\nimage\tquay.io/x/y:v2\u{85}\u{2028}x".into(),
        until: "2030-01-01".into(),
    });
    let text = list_of(&forged, "sources", false).text;
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows.len(), 5, "{text}");
    for row in rows {
        assert_eq!(row.matches('\t').count(), 5, "{row}");
    }
    assert!(!text.contains(['\r', '\u{85}', '\u{2028}']), "{text:?}");

    // a variant is any text without a slash
    let strange = "linux/arm64/v8]\nx: [y";
    forged.images[0].platforms = vec![strange.parse().unwrap()];
    for name in ["regsync", "hauler"] {
        let text = list_of(&forged, name, false).text;
        let documents = text.split("---\n").map(|text| {
            let value: serde_json::Value = serde_yaml::from_str(text).unwrap();
            value
        });
        let documents: Vec<serde_json::Value> = documents.collect();
        let platform = match name {
            "regsync" => &documents[0]["sync"][0]["platform"],
            _ => &documents[0]["spec"]["images"][0]["platform"],
        };
        assert_eq!(platform, strange, "{name}");
    }
    let both = ["linux/arm", strange].map(|platform| platform.parse().unwrap());
    forged.images[0].platforms = both.into();
    let text = list_of(&forged, "regsync", false).text;
    let regsync: serde_json::Value = serde_yaml::from_str(&text).unwrap();
    assert_eq!(regsync["sync"][0]["platforms"][1], strange);
}
