//! Differences between locks and receipts: versions up and down, new signatures and hosts, and
//! Markdown.

use crate::support::images::sha256;
use crate::support::peers::own_registry;
use crate::support::{Images, Place, need};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// A lock of images, each with a name, a seed for its digests, and a number of referrers: at most
/// a signature, an attestation and an SBOM.
fn lock(images: &[(String, u32, usize)]) -> String {
    let mut images = images.to_vec();
    images.sort();
    let mut text = "version: 1\nimages:\n".to_owned();
    for (name, seed, signed) in &images {
        let digest = |what: &str| sha256(format!("{what}{seed}").as_bytes());
        let _ = writeln!(
            text,
            "- name: {name}\n  digest: {}\n  mediaType: application/vnd.oci.image.manifest.v1+json\n  size: 9\n  \
             blobs:\n  - {} 1000 application/vnd.oci.image.layer.v1.tar+gzip",
            digest("top"),
            digest("layer"),
        );
        if *signed > 0 {
            text += "  referrers:\n";
        }
        for at in 0..*signed {
            let tag = format!(
                "sha256-{}.{}",
                &digest("top")["sha256:".len()..],
                ["sig", "att", "sbom"][at]
            );
            let _ = writeln!(
                text,
                "  - {{digest: {}, size: 5, mediaType: application/vnd.oci.image.manifest.v1+json, tag: {tag}}}",
                digest(&format!("signature{at}"))
            );
        }
    }
    text + "...\n"
}

fn images(of: &[(&str, u32, usize)]) -> String {
    lock(
        &of.iter()
            .map(|(name, seed, signed)| ((*name).to_owned(), *seed, *signed))
            .collect::<Vec<_>>(),
    )
}

fn change<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["changes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == name)
        .unwrap()
}

#[test]
fn diff_reports_versions_signatures_and_hosts() {
    let place = Place::new();
    let old = [
        ("q.test/down:2.0", 1, 0),
        ("q.test/gone:1", 2, 0),
        ("q.test/moved:1", 3, 0),
        ("q.test/signed:1", 4, 1),
        ("q.test/up:v1.9.0", 5, 0),
    ];
    let new = [
        ("new.test/come:1", 6, 0),
        ("q.test/down:1.10", 7, 0),
        ("q.test/moved:1", 8, 0),
        ("q.test/signed:1", 4, 3),
        ("q.test/up:v1.10.0", 9, 1),
    ];
    place.write("old.lock", images(&old));
    place.write("new.lock", images(&new));
    let report = place.json(0, &["diff", "old.lock", "new.lock"]);
    let up = change(&report, "q.test/up:v1.10.0");
    assert_eq!(
        (
            &up["change"],
            &up["replaces"],
            &up["version"],
            &up["newBytes"]
        ),
        (
            &json!("added"),
            &json!("q.test/up:v1.9.0"),
            &json!("up"),
            &json!(1014)
        )
    );
    assert_eq!(
        change(&report, "q.test/up:v1.9.0")["replacedBy"],
        "q.test/up:v1.10.0"
    );
    assert_eq!(change(&report, "q.test/down:1.10")["version"], "down");
    assert_eq!(change(&report, "q.test/moved:1")["change"], "moved");
    assert_eq!(
        change(&report, "q.test/signed:1")["newReferrers"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let hosts = report["hostChanges"].as_array().unwrap();
    assert_eq!(
        (hosts.len(), &hosts[0]["host"], &hosts[0]["change"]),
        (1, &json!("new.test"), &json!("added"))
    );

    let text = place.ok(&["diff", "old.lock", "new.lock"]);
    for part in [
        "up       q.test/up:v1.9.0 -> q.test/up:v1.10.0  1.0 kB new",
        "down     q.test/down:2.0 -> q.test/down:1.10",
        "moved    q.test/moved:1 ",
        "removed  q.test/gone:1\n",
        "added    host new.test:443",
        "6 changes: 1 moved, 1 up, 1 down, 1 added, 1 removed, 1 changed; ",
        "2 items with new signatures",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let markdown = place.ok(&["diff", "old.lock", "new.lock", "--output", "markdown"]);
    assert!(
        markdown.starts_with("**6 changes: 1 moved, 1 up"),
        "{markdown}"
    );
    for part in [
        "<summary>Moved: the same name, another digest: 1</summary>",
        "| `q.test/up:v1.9.0` | `q.test/up:v1.10.0` | 1.0 kB |",
        "| added | `new.test:443` |",
        "<summary>New signatures and other referrers: 2</summary>",
    ] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    let same = place.ok(&["diff", "old.lock", "old.lock", "--output", "markdown"]);
    assert!(
        same.starts_with("**0 changes; ") && !same.contains("<details>"),
        "{same}"
    );
}

#[test]
fn markdown_of_five_thousand_items_fits_a_pull_request() {
    let place = Place::new();
    let locked = |version: &str, seed| {
        let one = |at: u32| {
            (
                format!("registry.test/some/team/application-{at:04}:{version}"),
                at + seed,
                1,
            )
        };
        lock(&(0..5000).map(one).collect::<Vec<_>>())
    };
    place.write("old.lock", locked("v1.9.0", 0));
    place.write("new.lock", locked("v1.10.0", 10_000));
    let markdown = place.ok(&["diff", "old.lock", "new.lock", "--output", "markdown"]);
    assert!(markdown.len() < 60_000, "{}", markdown.len());
    assert!(
        markdown.contains("<summary>Newer versions: 5000</summary>"),
        "{}",
        &markdown[..500]
    );
    assert!(markdown.contains(" more; `--output json` lists all of them"));
}

#[test]
fn a_receipt_can_be_compared_like_a_lock() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let upstream = own_registry();
    let far = own_registry();
    let images = Images::new(place.path("layout"));
    let base = images.layer(&[("base", &crate::support::images::noise(1, 40_000))]);
    for (tag, seed) in [("v1.9", 2), ("v1.10", 3)] {
        let own = images.layer(&[("own", &crate::support::images::noise(seed, 5000))]);
        images.push(
            &upstream.address,
            "app",
            tag,
            &images.image("linux/amd64", &[base.clone(), own]),
        );
        let manifest = "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\nimages: ";
        place.write(
            "m.yaml",
            format!("{manifest}[\"{}/app:{tag}\"]\n", upstream.address),
        );
        place.ok(&[
            "lock",
            "-f",
            "m.yaml",
            "--lock",
            &format!("{tag}.lock"),
            "--store",
            "store",
        ]);
    }
    place.ok(&["pull", "--lock", "v1.9.lock", "--store", "store"]);
    let push = [
        "push",
        "--lock",
        "v1.9.lock",
        "--store",
        "store",
        "--to",
        &far.address,
        "--receipt",
        "r.json",
    ];
    place.ok(&push);
    let same = place.json(0, &["diff", "r.json", "v1.9.lock"]);
    assert_eq!(
        (&same["changes"], &same["old"]["of"]),
        (&json!([]), &json!("receipt"))
    );
    let report = place.json(0, &["diff", "r.json", "v1.10.lock"]);
    let name = format!("{}/app:v1.10", upstream.address);
    assert_eq!(change(&report, &name)["version"], "up");
    // only the blobs that the receipt lacks are counted, as in a delta since the receipt
    let bytes = report["new"]["bytes"].as_u64().unwrap();
    assert!((5000..10_000).contains(&bytes), "{report:#}");
    assert!(report["new"]["all_bytes"].as_u64() > Some(bytes));
    // in the other direction, the size is unknown: a receipt does not list the sizes of blobs
    let back = place.json(0, &["diff", "v1.10.lock", "r.json"]);
    let name = format!("{}/app:v1.9", upstream.address);
    assert_eq!(
        (&change(&back, &name)["version"], back["new"].get("bytes")),
        (&json!("down"), None)
    );
    assert_eq!(change(&back, &name).get("newBytes"), None, "{back:#}");
    assert_eq!(
        place.json(0, &["diff", "r.json", "r.json"])["changes"],
        json!([])
    );
}

#[test]
fn a_lock_may_begin_with_a_byte_order_mark_or_a_comment_that_is_not_ascii() {
    let place = Place::new();
    let text = images(&[("quay.io/a/b:v1", 1, 0)]);
    place.write("plain.lock", &text);
    for start in ["\u{feff}", "\u{feff}# a\n", "# ü\n", "#  ü\n"] {
        place.write("other.lock", format!("{start}{text}"));
        let report = place.json(0, &["diff", "plain.lock", "other.lock"]);
        assert_eq!(report["changes"], json!([]), "{report:#}");
    }
}
