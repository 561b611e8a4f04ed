//! Updates: versions are updated by their policies if upstream has all items that use them, and no
//! other byte changes.

mod age;
mod aliases;
mod charts;
mod ci;
mod keep;
mod log_time;
mod property;
mod refresh;
mod scanners;
mod select;
mod trust_roots;
mod upstream;
mod year;

use crate::support::faults::{Fault, FaultKind, RequestKind};
use serde_json::{Value, json};
use upstream::Upstream;

/// The updated versions: name and new version.
fn moved(report: &Value) -> Vec<(String, String)> {
    let moves = report["updates"].as_array().unwrap().iter();
    let moved = moves.filter_map(|one| {
        Some((
            one["name"].as_str()?.to_owned(),
            one["to"].as_str()?.to_owned(),
        ))
    });
    moved.collect()
}

#[test]
fn versions_are_updated_within_their_policies_and_no_other_byte_changes() {
    let up = Upstream::new();
    for tag in [
        "v1.9.0",
        "v1.9.3",
        "v1.9.10",
        "v1.10.0",
        "v1.9.11-rc.1",
        "latest",
    ] {
        up.put("team/exporter", tag, 1);
    }
    for version in ["v1.33.4", "v1.33.5", "v1.34.0"] {
        up.put("team/proxy", version, 2);
        up.checked_file(&format!("{version}/kubelet"), 3);
    }
    up.file("stable-1.33.txt", "v1.33.5\n");
    let text = up.manifest(
        "# the cluster\nvars:\n  kubernetes: {value: v1.33.4, update: patch, from: \"URL/stable-1.33.txt\"}  # v1.33.4 as of today\n\
         images:\n  - REG/team/proxy:${kubernetes}   # with the cluster\n  - ref: \"REG/team/exporter:v1.9.0\"\n    \
         update: \"~1.9\" # not v1.9.0 for ever\n\n\nfiles:\n  - url: URL/${kubernetes}/kubelet\n    checksum: ${url}.sha256\n# end\n",
    );
    up.place.ok(&up.args("lock", &[]));
    let report = up.run(0, "update", &[]);
    let exporter = up.here("REG/team/exporter");
    assert_eq!(
        moved(&report),
        [
            ("kubernetes".into(), "v1.33.5".into()),
            (exporter, "v1.9.10".into())
        ]
    );
    let expected =
        text.replacen("v1.33.4", "v1.33.5", 1)
            .replacen("exporter:v1.9.0", "exporter:v1.9.10", 1);
    assert_eq!(up.place.read("m.yaml"), expected);
    let lock = up.place.read("landfall.lock");
    for name in [
        "team/proxy:v1.33.5",
        "team/exporter:v1.9.10",
        "v1.33.5/kubelet",
    ] {
        assert!(lock.contains(name), "{name}: {lock}");
    }
    assert!(
        !lock.contains("v1.33.4") && !lock.contains("v1.9.0"),
        "{lock}"
    );

    // a second run has nothing to do and writes nothing
    let report = up.run(0, "update", &[]);
    assert_eq!(
        (moved(&report), &report["changes"]),
        (Vec::new(), &json!([]))
    );
    assert_eq!(
        (up.place.read("m.yaml"), up.place.read("landfall.lock")),
        (expected, lock)
    );
}

#[test]
fn a_variable_is_updated_only_if_upstream_has_every_item_that_uses_it() {
    let up = Upstream::new();
    for version in ["1.0.0", "1.0.1", "1.0.2", "1.0.3"] {
        up.put("a", version, 1);
    }
    for version in ["1.0.0", "1.0.1", "1.0.3"] {
        up.put("b", version, 2);
    }
    for version in ["1.0.0", "1.0.1", "1.0.2"] {
        up.file(&format!("{version}/tool"), version);
    }
    up.manifest(
        "vars: {v: {value: 1.0.0, update: patch}}\nimages: ['REG/a:${v}', 'REG/b:${v}']\nfiles: [{url: 'URL/${v}/tool'}]\n",
    );
    let report = up.run(0, "update", &[]);
    assert_eq!(moved(&report), [("v".into(), "1.0.1".into())]);
    let held = &report["updates"][0]["held"];
    let why = |at: usize| held[at]["why"].as_str().unwrap();
    assert_eq!(
        (held[0]["version"].as_str(), held[1]["version"].as_str()),
        (Some("1.0.3"), Some("1.0.2"))
    );
    assert!(
        why(0).contains("/files/1.0.3/tool") && why(1).contains("/b:1.0.2"),
        "{held:#}"
    );

    // if the lookup fails, no lower version is used
    up.put("b", "1.0.2", 2);
    up.faults.set_faults([
        Fault::always(RequestKind::ManifestHead, FaultKind::Status(500)).at("/b/manifests/1.0.2"),
        Fault::always(RequestKind::Manifest, FaultKind::Status(500)).at("/b/manifests/1.0.2"),
    ]);
    let report = up.place.json(3, &up.args("update", &[]));
    assert_eq!(moved(&report), Vec::new(), "{report:#}");
    assert!(report.to_string().contains("/b:1.0.2"), "{report:#}");
}

/// A tag may be pushed before all its platforms, or be that of something else.
#[test]
fn a_version_that_cannot_be_locked_is_held_and_the_next_lower_one_is_used() {
    let up = Upstream::new();
    for (tag, platforms) in [
        ("1.0.0", &["linux/amd64", "linux/arm64"][..]),
        ("1.0.1", &["linux/amd64"]),
        ("1.0.2", &["linux/arm64"]),
    ] {
        for repository in ["a", "shared"] {
            up.put_platforms(repository, tag, 1, platforms);
        }
        let minor = tag.replace("1.0.", "1.") + ".0";
        up.put_platforms("kept", &minor, 1, platforms);
        up.put("b", tag, 2);
    }
    up.faults.content(|content| {
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let garbage = content.manifest("b", kind, &json!(["not a manifest"]));
        content.tag("b", "1.0.3", &garbage);
    });
    let text = up.manifest(
        "vars: {v: {value: 1.0.0, update: patch}}\nplatforms: [linux/amd64]\nimages:\n\
         - {ref: 'REG/a:1.0.0', update: patch}\n- {ref: 'REG/b:1.0.0', update: patch}\n\
         - 'REG/shared:${v}'\n\
         - {ref: 'REG/kept:1.0.0', update: {policy: minor, keep: 2}}\n",
    );
    let report = up.run(0, "update", &[]);
    let held = |name: &str| {
        let updates = report["updates"].as_array().unwrap();
        let update = updates.iter().find(|one| one["name"] == *name);
        update.unwrap()["held"].as_array().unwrap().clone()
    };
    let text = text
        .replace("/a:1.0.0", "/a:1.0.1")
        .replace("/b:1.0.0", "/b:1.0.2");
    let text = text.replace("value: 1.0.0", "value: 1.0.1");
    let found = up.place.read("m.yaml");
    assert!(
        found.starts_with(text.split("- {ref: 'REG/kept").next().unwrap()),
        "{found}"
    );
    assert!(
        found.contains("/kept:1.0.0'") && found.contains("/kept:1.1.0'"),
        "{found}"
    );
    assert!(!found.contains("/kept:1.2.0"), "{found}");
    for (name, version) in [("REG/a", "1.0.2"), ("v", "1.0.2"), ("REG/kept", "1.2.0")] {
        let [held] = &held(&up.here(name))[..] else {
            panic!("{name}: {report:#}");
        };
        assert_eq!(held["version"], version, "{name}");
        let why = held["why"].as_str().unwrap();
        assert!(
            why.contains("it is only for linux/arm64, not for linux/amd64"),
            "{name}: {why}"
        );
    }
    let [held] = &held(&up.here("REG/b"))[..] else {
        panic!("{report:#}");
    };
    assert_eq!(held["version"], "1.0.3");
    // everything that the manifest now names is locked
    let lock = up.place.read("landfall.lock");
    for name in [
        "/a:1.0.1",
        "/b:1.0.2",
        "/shared:1.0.1",
        "/kept:1.0.0",
        "/kept:1.1.0",
    ] {
        assert!(lock.contains(name), "{name}: {lock}");
    }

    // an image without an index: its config names the platform
    up.faults.content(|content| {
        let image = content.image("a", "linux/arm64", &[(9, 900)]);
        content.tag("a", "1.0.9", &image);
    });
    let report = up.run(4, "update", &["--check"]);
    assert_eq!(moved(&report), [], "{report:#}");
    assert!(report.to_string().contains("1.0.9"), "{report:#}");
}

/// A source may list any number of versions that upstream does not have.
#[test]
fn only_the_newest_of_many_unavailable_versions_are_tried() {
    let up = Upstream::new();
    up.file("1.0.0/tool", "1.0.0");
    up.file("1.0.5/tool", "1.0.5");
    let list: String = (1..60_000).map(|patch| format!("1.0.{patch}\n")).collect();
    up.file("versions.txt", list);
    let vars = "vars: {v: {value: 1.0.0, update: patch, from: \"URL/versions.txt\"}}\n";
    up.manifest(&format!("{vars}files: [{{url: 'URL/${{v}}/tool'}}]\n"));
    let report = up.run(0, "update", &[]);
    assert_eq!(moved(&report), Vec::new());
    let held = report["updates"][0]["held"].as_array().unwrap();
    let versions: Vec<&str> = held
        .iter()
        .map(|one| one["version"].as_str().unwrap())
        .collect();
    let newest: Vec<String> = (0..=50)
        .map(|less| format!("1.0.{}", 59_999 - less))
        .collect();
    assert_eq!(versions, newest);
    let why = held.last().unwrap()["why"].as_str().unwrap();
    assert!(
        why.contains("not tried: the 50 newest cannot be used (59949 remain)"),
        "{why}"
    );
    let tried = up
        .faults
        .seen()
        .iter()
        .filter(|seen| seen.path.ends_with("/tool"))
        .count();
    assert!(tried <= 2 * 51, "{tried} requests");
}

#[test]
fn check_exits_with_4_if_a_version_is_newer_or_a_tag_is_moved_or_gone() {
    let up = Upstream::new();
    up.put("a", "1.0.0", 1);
    up.put("moving", "v1", 2);
    up.put("going", "v1", 3);
    let body = "images:\n- {ref: 'REG/a:1.0.0', update: patch}\n- REG/moving:v1\n- REG/going:v1\n";
    let text = up.manifest(body);
    up.run(0, "update", &[]);
    let lock = up.place.read("landfall.lock");
    assert_eq!(up.run(0, "update", &["--check"])["status"], "done");

    up.put("a", "1.0.1", 4);
    assert_eq!(moved(&up.run(4, "update", &["--check"])).len(), 1);
    assert_eq!(
        moved(&up.run(0, "update", &["--check", "--only", "*/moving*"])).len(),
        0
    );
    // a pattern that matches nothing is reported
    let only = ["--dry-run", "--only", "*/moving*", "--only", "mistyped"];
    let printed = up.place.ok(&up.args("update", &only));
    assert!(
        printed.contains("unused   --only mistyped: nothing that can be updated or checked ")
            && !printed.contains("--only */moving*"),
        "{printed}"
    );
    up.faults
        .content(|content| content.tags.retain(|(_, tag), _| tag != "1.0.1"));

    up.put("moving", "v1", 5);
    let report = up.run(4, "update", &["--check"]);
    let notice = &report["notices"][0];
    assert_eq!(
        (&notice["kind"], &notice["taken"]),
        (&json!("moved"), &json!(false)),
        "{report:#}"
    );
    assert!(
        notice["from"].is_string() && notice["to"].is_string(),
        "{report:#}"
    );
    let message = notice["message"].as_str().unwrap();
    assert!(
        message.ends_with(": not updated; `update: digest` updates it"),
        "{message}"
    );
    // without `update: digest`, a moved tag is not updated
    up.run(0, "update", &[]);
    assert_eq!(up.place.read("landfall.lock"), lock);

    up.remove("going", "v1");
    let report = up.run(4, "update", &["--check", "--only", "*going*"]);
    assert_eq!(report["notices"][0]["kind"], "gone");
    let message = |report: &Value| report["notices"][0]["message"].as_str().unwrap().to_owned();
    assert!(message(&report).ends_with(": the old pin is kept"));
    up.place.write("empty.lock", "version: 1\n...\n");
    let only = ["--check", "--only", "*going*", "--lock", "empty.lock"];
    assert!(message(&up.run(4, "update", &only)).ends_with(": it was never locked"));
    up.run(0, "update", &[]);
    assert_eq!(
        (up.place.read("landfall.lock"), up.place.read("m.yaml")),
        (lock, text)
    );
}

#[test]
fn the_digest_policy_updates_moved_tags() {
    let up = Upstream::new();
    let [first, second] = [1, 2].map(|seed| up.put("base", "stable", seed));
    up.put("base", "stable", 1);
    let also = up.put("pinned", "v1", 1);
    let other = up.put("both", "1.0.0", 1);
    let text = up.manifest(&format!(
        "images:\n- {{ref: REG/base:stable, update: digest}} # {first}\n- ref: REG/pinned:v1@{also}\n  update: digest\n\
         - ref: REG/both:1.0.0\n  digest: \"{other}\" # {other}\n  update: patch\n"
    ));
    up.run(0, "update", &[]);
    up.put("base", "stable", 2);
    let pinned = up.put("pinned", "v1", 3);
    let both = up.put("both", "1.0.1", 4);
    let report = up.run(0, "update", &[]);
    let taken = report["notices"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["taken"] == true);
    assert_eq!(taken.count(), 2, "{report:#}");
    let expected = text.replace(&format!("v1@{also}"), &format!("v1@{pinned}"));
    let expected = expected.replace("both:1.0.0", "both:1.0.1").replacen(
        &format!("\"{other}\""),
        &format!("\"{both}\""),
        1,
    );
    assert_eq!(up.place.read("m.yaml"), expected);
    let lock = up.place.read("landfall.lock");
    for digest in [&second, &pinned, &both] {
        assert!(lock.contains(digest.as_str()), "{digest}: {lock}");
    }
    assert!(!lock.contains(&first), "{lock}");
}

#[test]
fn versions_are_read_from_texts_json_charts_and_tags_while_lists_are_updated_from_urls() {
    let up = Upstream::new();
    for tag in ["1.0.0", "1.1.0"] {
        up.put("a", tag, 1);
    }
    for version in ["v1.0.0", "v1.1.0"] {
        for name in ["text", "json", "keys", "chart", "tags"] {
            up.file(&format!("{name}/{version}"), version);
        }
    }
    up.file("versions.txt", "\u{feff}1.1.0\r\n1.0.0\n<html>\n");
    up.file(
        "releases.json",
        r#"[{"tag_name": "v1.1.0"}, {"tag_name": "v1.0.0"}, {"tag_name": "v2.0.0"}]"#,
    );
    up.file("keys.json", r#"{"versions": {"1.0.0": {}, "1.1.0": {}}}"#);
    up.file(
        "charts/index.yaml",
        "apiVersion: v1\nentries:\n  c:\n  - {version: 1.1.0, name: c}\n  - {version: 1.0.0}\n",
    );
    up.file("v1.0.0/images.txt", up.here("REG/a:1.0.0\n"));
    up.file("v1.1.0/images.txt", up.here("# new\nREG/a:1.1.0\n"));
    up.place.write("lists/images.txt", up.here("REG/a:1.0.0\n"));
    let names = ["text", "json", "keys", "chart", "tags"];
    let files: String = names
        .iter()
        .map(|name| format!("- url: URL/{name}/${{{name}}}\n"))
        .collect();
    up.manifest(&format!(
        "vars:\n  text: {{value: v1.0.0, update: minor, from: URL/versions.txt}}\n  \
         json: {{value: v1.0.0, update: minor, from: {{url: URL/releases.json, path: '[].tag_name'}}}}\n  \
         keys: {{value: v1.0.0, update: minor, from: {{url: URL/keys.json, path: 'versions{{}}'}}}}\n  \
         chart: {{value: v1.0.0, update: minor, from: {{repo: URL/charts, chart: c}}}}\n  \
         tags: {{value: v1.0.0, update: minor, from: REG/b}}\n\
         lists: [{{format: images-txt, file: lists/images.txt, from: 'URL/${{text}}/images.txt'}}]\nfiles:\n{files}"
    ));
    up.put("b", "v1.1.0", 1);
    let report = up.run(0, "update", &[]);
    let all: Vec<String> = moved(&report)
        .into_iter()
        .map(|(name, to)| format!("{name} {to}"))
        .collect();
    assert_eq!(
        all,
        [
            "text v1.1.0",
            "json v1.1.0",
            "keys v1.1.0",
            "chart v1.1.0",
            "tags v1.1.0"
        ],
        "{report:#}"
    );
    assert_eq!(
        up.place.read("lists/images.txt"),
        up.here("# new\nREG/a:1.1.0\n"),
        "the list is updated with its variable"
    );
    assert!(up.place.read("landfall.lock").contains("/a:1.1.0"));
    // the list itself changes at its source
    up.file("v1.1.0/images.txt", up.here("REG/a:1.1.0\nREG/a:1.0.0\n"));
    let report = up.run(0, "update", &[]);
    assert_eq!(moved(&report).len(), 1, "{report:#}");
    assert_eq!(
        up.place.read("lists/images.txt"),
        up.here("REG/a:1.1.0\nREG/a:1.0.0\n")
    );
    // an HTML page is not accepted as a list
    up.file("v1.1.0/images.txt", "<html>sign in</html>");
    let report = up.run(3, "update", &[]);
    assert!(report.to_string().contains("images.txt"), "{report:#}");
    assert_eq!(
        up.place.read("lists/images.txt"),
        up.here("REG/a:1.1.0\nREG/a:1.0.0\n")
    );
}

#[test]
fn failed_updates_are_reported_as_errors_with_a_position_or_as_failed_items() {
    let up = Upstream::new();
    up.put("a", "1.0.0", 1);
    for (body, part) in [
        (
            "images: [{ref: 'REG/a:1.0.0', update: sometimes}]\n",
            "`sometimes` is not an update policy",
        ),
        (
            "images: [{ref: 'REG/a:1.0.0', update: '^v(\\d+$'}]\n",
            "is not a regular expression",
        ),
        (
            "vars: {v: {value: 1.0.0, update: digest}}\nimages: ['REG/a:${v}']\n",
            "a variable has no digest",
        ),
        (
            "vars: {v: {value: 1.0.0, updat: patch}}\nimages: ['REG/a:${v}']\n",
            "the variable `v` is not valid",
        ),
        (
            "vars: {v: 1.0.0}\nimages: [{ref: 'REG/a:${v}', update: patch}]\n",
            "is in a variable",
        ),
    ] {
        up.manifest(body);
        let report = up.run(2, "update", &[]);
        let message = report["error"]["message"].as_str().unwrap();
        assert!(
            message.contains(part) && message.starts_with("m.yaml:"),
            "{body}: {message}"
        );
    }
    for (body, part) in [
        (
            "vars: {v: {value: 1.0.0, update: patch}}\nimages: ['REG/a:1.0.0']\nfiles: [{url: 'URL/${v}'}]\n",
            "add `from:`",
        ),
        (
            "images: [{ref: 'REG/a:latest', update: patch}]\n",
            "contains no number",
        ),
        (
            "images: [{ref: 'REG/a:1.0.0', update: '^v(\\d+)$'}]\n",
            "does not match",
        ),
        (
            "vars: {v: {value: 1.0.0, update: patch, from: URL/none.txt}}\nimages: ['REG/a:${v}']\n",
            "404",
        ),
        (
            "vars: {v: {value: 1.0.0, update: patch, from: URL/text.txt}}\nimages: ['REG/a:${v}']\n",
            "has no line that is a version",
        ),
    ] {
        up.put("a", "latest", 1);
        up.file("1.0.0", "x");
        up.file("text.txt", "not published yet\n");
        up.manifest(body);
        let report = up.run(3, "update", &[]);
        assert!(
            report["items"].to_string().contains(part),
            "{part}: {report:#}"
        );
        // a variable is not counted as a file or an image
        let items = report["items"].as_array().unwrap().iter();
        let variables = items.filter(|item| item["name"].as_str().unwrap().starts_with("v ("));
        for variable in variables {
            assert_eq!(variable["kind"], "variable", "{report:#}");
        }
    }
    // values with YAML escapes are left unchanged
    up.put("a", "1.0.1", 1);
    let text = up.manifest("images: [{ref: \"REG/a:1.0\\x2e0\", update: patch}]\n");
    let report = up.run(0, "update", &[]);
    assert!(
        report["updates"][0]["held"][0]["why"]
            .as_str()
            .unwrap()
            .contains("escapes"),
        "{report:#}"
    );
    assert_eq!(up.place.read("m.yaml"), text);
}

#[test]
fn the_plan_can_be_printed_as_markdown_and_annotations() {
    let up = Upstream::new();
    for tag in ["1.0.0", "1.0.1", "1.0.2"] {
        up.put("a", tag, 1);
    }
    up.put("b", "1.0.0", 1);
    up.put("b", "1.0.1", 1);
    let text = up.manifest(
        "vars:\n  v: {value: 1.0.0, update: patch}\nimages: ['REG/a:${v}', 'REG/b:${v}', 'REG/c:1']\n",
    );
    let dry = ["--dry-run", "--progress", "none", "--output"];
    let run = up
        .place
        .command()
        .args(up.args("update", &dry))
        .arg("markdown")
        .output()
        .unwrap();
    let shown = String::from_utf8(run.stdout).unwrap();
    assert!(
        shown.contains("<summary>newer versions: 1</summary>"),
        "{shown}"
    );
    assert!(
        shown.contains("| `v` | `1.0.0` | `1.0.1` | patch | m.yaml:5:14 |"),
        "{shown}"
    );
    assert!(
        shown.contains("held back: 1") && shown.contains("b:1.0.2"),
        "{shown}"
    );
    let mut github = up.place.command();
    let run = github
        .args(up.args("update", &dry))
        .arg("github")
        .env("GITHUB_STEP_SUMMARY", "summary.md")
        .output()
        .unwrap();
    let stdout = String::from_utf8(run.stdout).unwrap();
    assert!(
        stdout.contains("::notice file=m.yaml,line=5,col=14,title=v::1.0.0 -> 1.0.1\n"),
        "{stdout}"
    );
    assert!(
        stdout.contains("::warning file=m.yaml,line=5,col=14,title=v::1.0.2 is held back: "),
        "{stdout}"
    );
    assert!(
        stdout.contains("::error title=image ") && stdout.contains("/c%3A1::"),
        "{stdout}"
    );
    assert!(up.place.read("summary.md").contains("newer versions: 1"));
    assert_eq!(up.place.read("m.yaml"), text, "a dry run writes nothing");
    assert!(!up.place.path("landfall.lock").exists());
}
