//! Variables and images with `keep`: several versions at once, the newest of each release line.

use super::moved;
use super::upstream::Upstream;
use serde_json::json;

const MANIFEST: &str = "\
vars:
  k:
    update: {policy: minor, keep: 3}   # what we support
    value:
      - v1.31.2   # the oldest
      - \"v1.32.1\"
      # the newest
      - v1.33.0
  arch: [amd64, arm64]
images:
  - 'REG/k/api:${k}'
files:
  - url: URL/${k}/${arch}/kubelet
";

fn put(up: &Upstream, version: &str, seed: u64) {
    up.put("k/api", version, seed);
    for arch in ["amd64", "arm64"] {
        up.file(&format!("{version}/{arch}/kubelet"), version);
    }
}

#[test]
fn a_variable_keeps_the_newest_patch_of_the_newest_minor_versions() {
    let up = Upstream::new();
    for (seed, version) in (1..).zip(["v1.30.9", "v1.31.2", "v1.32.1", "v1.33.0"]) {
        put(&up, version, seed);
    }
    let text = up.manifest(MANIFEST);
    up.place.ok(&up.args("lock", &[]));
    let report = up.run(0, "update", &[]);
    assert_eq!((moved(&report), &report["changes"]), (vec![], &json!([])));
    // patch versions are updated in place
    put(&up, "v1.31.5", 5);
    put(&up, "v1.33.1", 6);
    let report = up.run(0, "update", &[]);
    let list = "v1.31.5, v1.32.1, v1.33.1";
    assert_eq!(moved(&report), [("k".into(), list.into())]);
    let text = text
        .replace("v1.31.2", "v1.31.5")
        .replace("v1.33.0", "v1.33.1");
    assert_eq!(up.place.read("m.yaml"), text);
    // a new minor version waits until all its items exist; then it replaces the oldest one
    up.put("k/api", "v1.34.0", 7);
    let report = up.run(0, "update", &[]);
    assert_eq!(moved(&report), [], "{report:#}");
    let held = &report["updates"][0]["held"][0];
    assert!(held["why"].as_str().unwrap().contains("kubelet"), "{held}");
    put(&up, "v1.34.0", 7);
    up.run(0, "update", &[]);
    let text = text
        .replace("- v1.33.1", "- v1.34.0")
        .replace("\"v1.32.1\"", "\"v1.33.1\"")
        .replace("v1.31.5", "v1.32.1");
    assert_eq!(up.place.read("m.yaml"), text);
    let lock = up.place.read("landfall.lock");
    for version in ["v1.32.1", "v1.33.1", "v1.34.0"] {
        assert!(
            lock.contains(&format!("/{version}/arm64/kubelet")),
            "{lock}"
        );
    }
    assert!(!lock.contains("v1.31."), "{lock}");
    assert_eq!(moved(&up.run(0, "update", &["--only", "other"])), []);
}

#[test]
fn a_list_grows_and_shrinks_to_the_number_in_keep() {
    let up = Upstream::new();
    for tag in ["1.0.0", "1.1.0", "1.2.0", "1.2.1", "1.3.0", "2.0.0"] {
        up.put("a", tag, 1);
    }
    for (value, keep, expected) in [
        ("[1.2.0]", 2, "[1.2.1, 1.3.0]"),
        ("['1.3.0']", 9, "['1.0.0', '1.1.0', '1.2.1', '1.3.0']"),
        ("[1.3.0, 1.2.1, 1.1.0]", 2, "[1.3.0, 1.2.1]"),
        ("[1.2.1, 1.2.0]", 2, "[1.3.0, 1.2.1]"),
        ("[1.0.0, 1.1.0, 1.2.0, 1.3.0]", 1, "[1.3.0]"),
    ] {
        let written = |list: &str| {
            format!(
                "vars: {{a: {{value: {list}, update: {{policy: minor, keep: {keep}}}}}}} # {keep}\n\
                 images: ['REG/a:${{a}}']\n"
            )
        };
        let text = up.manifest(&written(value));
        up.run(0, "update", &["--lock", &format!("{keep}.lock")]);
        assert_eq!(up.place.read("m.yaml"), text.replacen(value, expected, 1));
    }
    // `keep` is refused with `policy: digest`, for git entries, for a variable that is not a list,
    // and if it is 0
    for (body, words) in [
        (
            "images: [{ref: 'REG/a:1.0.0', update: {policy: digest, keep: 2}}]\n",
            "`keep` needs a policy that moves versions",
        ),
        (
            "images: [{ref: 'REG/a:1.0.0', update: {policy: minor, keep: 0}}]\n",
            "m.yaml:4:",
        ),
        (
            "git: [{url: 'https://git.example.com/a.git', ref: v1.0.0, update: {policy: minor, keep: 2}}]\n",
            "`keep` applies to variables, images and charts only",
        ),
        (
            "vars: {a: {value: 1.0.0, update: {policy: minor, keep: 2}}}\nimages: ['REG/a:${a}']\n",
            "`keep` needs a list of values",
        ),
        (
            "vars: {a: {value: [1.0.0], update: {policy: minor, keep: 0}}}\nimages: ['REG/a:${a}']\n",
            "m.yaml:4:",
        ),
    ] {
        up.manifest(body);
        let refused = up.run(2, "update", &[]);
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{body}: {message}");
    }
}

#[test]
fn each_kept_version_waits_separately() {
    let up = Upstream::new();
    for tag in ["1.0.0", "1.1.0"] {
        up.put("a", tag, 1);
    }
    let text = up.manifest(
        "vars: {a: {value: [1.0.0, 1.1.0], update: {policy: minor, keep: 2, minAge: 3d}}}\nimages: ['REG/a:${a}']\n",
    );
    up.place.set("LANDFALL_TEST_CLOCK", "2026-11-01T12:00:00Z");
    up.put("a", "1.0.1", 2);
    up.run(0, "update", &[]);
    up.place.set("LANDFALL_TEST_CLOCK", "2026-11-02T12:00:00Z");
    up.put("a", "1.2.0", 3);
    let report = up.run(0, "update", &[]);
    assert_eq!(report["updates"][0]["waiting"].as_array().unwrap().len(), 2);
    assert_eq!(up.place.read("m.yaml"), text);
    up.place.set("LANDFALL_TEST_CLOCK", "2026-11-04T12:00:00Z");
    up.run(0, "update", &[]);
    let text = text.replace("[1.0.0, 1.1.0]", "[1.0.1, 1.1.0]");
    assert_eq!(up.place.read("m.yaml"), text);
    // an urgent version need not wait
    up.put("a", "1.1.1", 4);
    up.run(0, "update", &["--urgent", "a=1.1.1"]);
    let text = text.replace("[1.0.1, 1.1.0]", "[1.0.1, 1.1.1]");
    assert_eq!(up.place.read("m.yaml"), text);
    up.place.set("LANDFALL_TEST_CLOCK", "2026-11-05T12:00:00Z");
    up.run(0, "update", &[]);
    assert_eq!(
        up.place.read("m.yaml"),
        text.replace("[1.0.1, 1.1.1]", "[1.1.1, 1.2.0]")
    );
}

#[test]
fn an_image_keeps_several_versions_in_entries_of_their_own() {
    let up = Upstream::new();
    up.place.set("LANDFALL_TEST_CLOCK", "2026-11-01T12:00:00Z");
    let tags = ["v1.9.0", "v1.9.1", "v1.9.2"];
    let put = |(seed, tag): (u64, &str)| up.put("node-exporter", tag, seed);
    let digests: Vec<String> = (1..).zip(tags).map(put).collect();
    up.put("other", "1.0.0", 9);
    let entry = |tag: &str, digest: &str| {
        format!(
            "  - ref: REG/node-exporter:{tag}\n    digest: {digest}     # checked\n    \
             update: {{policy: patch, minAge: 7d, keep: 3}}\n"
        )
    };
    let other = |tag: &str| format!("  - {{ref: 'REG/other:{tag}', update: minor}}\n");
    let first = entry(tags[0], &digests[0]);
    let text = up.manifest(&format!("images:\n  # metrics\n{first}{}", other("1.0.0")));
    up.place.ok(&up.args("lock", &[]));
    let report = up.run(0, "update", &[]);
    let waiting = &report["updates"][0]["waiting"];
    assert_eq!(waiting.as_array().map(Vec::len), Some(2), "{report:#}");
    assert_eq!(up.place.read("m.yaml"), text);
    // an entry below the added entries is updated in the same run
    up.place.set("LANDFALL_TEST_CLOCK", "2026-11-08T12:00:00Z");
    up.put("other", "1.1.0", 8);
    let report = up.run(0, "update", &[]);
    let name = format!("{}/node-exporter", up.faults.address);
    let all = (name.clone(), tags.join(", "));
    assert!(moved(&report).contains(&all), "{report:#}");
    let added = entry(tags[1], &digests[1]) + &entry(tags[2], &digests[2]);
    let text = text.replacen(
        &up.here(&(first.clone() + &other("1.0.0"))),
        &up.here(&(first.clone() + &added + &other("1.1.0"))),
        1,
    );
    assert_eq!(up.place.read("m.yaml"), text);
    let lock = up.place.read("landfall.lock");
    for (tag, digest) in tags.iter().zip(&digests) {
        let locked = format!("- name: \"{name}:{tag}\"\n  pin: {digest}\n  digest: {digest}\n");
        assert!(lock.contains(&locked), "{lock}");
    }
    // the oldest entry is removed, and the new entry is a copy of another one
    let newest = up.put("node-exporter", "v1.9.3", 4);
    up.run(0, "update", &["--urgent", &format!("{name}=v1.9.3")]);
    let text = text.replacen(&up.here(&first), "", 1).replacen(
        &up.here(&added),
        &up.here(&(added + &entry("v1.9.3", &newest))),
        1,
    );
    assert_eq!(up.place.read("m.yaml"), text);
    assert_eq!(moved(&up.run(0, "update", &[])), []);
    up.place.ok(&up.args("lock", &["--check"]));
}

#[test]
fn entries_of_one_image_need_the_same_rule() {
    let up = Upstream::new();
    up.put("a", "1.0.0", 1);
    up.put("a", "1.1.0", 2);
    up.manifest(
        "images:\n- {ref: 'REG/a:1.0.0', update: {policy: minor, keep: 2}}\n\
         - {ref: 'REG/a:1.1.0', update: {policy: minor, keep: 3}}\n",
    );
    let report = up.run(3, "update", &[]);
    let reasons: Vec<&str> = report["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["reason"].as_str())
        .collect();
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains("the same `update`")),
        "{reasons:?}"
    );
}
