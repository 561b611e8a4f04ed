//! Entries with `select`: `update` writes the versions that a rule selects, and `lock` needs them.

use super::charts::publish;
use super::moved;
use super::upstream::Upstream;
use crate::support::need;
use serde_json::{Value, json};

fn refusal(report: &Value) -> String {
    report["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn update_writes_the_newest_versions_that_a_rule_selects() {
    let up = Upstream::new();
    let tags = [
        "v1.7.0",
        "v1.8.0",
        "v1.8.2",
        "v1.9.0",
        "v1.9.1",
        "v1.9.1-debug",
        "v2.0.0",
        "latest",
    ];
    for (seed, tag) in (1..).zip(tags) {
        up.put("team/exporter", tag, seed);
    }
    for (written, expected) in [
        (
            "- {repo: REG/team/exporter, select: \">=1.8 <2\", newest: 3}  # metrics\n",
            "- {repo: REG/team/exporter, tags: [v1.9.1, v1.9.0, v1.8.2], select: \">=1.8 <2\", newest: 3}  # metrics\n",
        ),
        (
            "- repo: REG/team/exporter\n  newest: 2 # two\n  select: '>=1.8 <2' # a rule\n  except: [v1.9.1]\n",
            "- repo: REG/team/exporter\n  newest: 2 # two\n  tags: [v1.9.0, v1.8.2]\n  select: '>=1.8 <2' # a rule\n  except: [v1.9.1]\n",
        ),
        (
            "- select: {policy: '^v(\\d+)\\.(\\d+)\\.(\\d+)-debug$'}\r\n  repo: REG/team/exporter\r\n",
            "- tags: [v1.9.1-debug]\r\n  select: {policy: '^v(\\d+)\\.(\\d+)\\.(\\d+)-debug$'}\r\n  repo: REG/team/exporter\r\n",
        ),
        (
            "- {repo: REG/team/exporter, tags: [], select: ~1.7, platforms: [linux/amd64]}\n",
            "- {repo: REG/team/exporter, tags: [v1.7.0], select: ~1.7, platforms: [linux/amd64]}\n",
        ),
        (
            "- repo: REG/team/exporter\n  select: \"*\"\n  newest: 1\n  tags:\n  - v1.9.1 # now\n  - v1.9.0\n",
            "- repo: REG/team/exporter\n  select: \"*\"\n  newest: 1\n  tags:\n  - v2.0.0 # now\n",
        ),
    ] {
        let text = up.manifest(&format!("images:\n{written}"));
        let report = up.run(0, "update", &[]);
        let after = up.place.read("m.yaml");
        assert_eq!(after, text.replace(&up.here(written), &up.here(expected)));
        let to = report["updates"][0]["to"].as_str().unwrap();
        let lock = up.place.read("landfall.lock");
        for tag in tags {
            let is_selected = to.split(", ").any(|one| one == tag);
            let is_locked = lock.contains(&format!("/team/exporter:{tag}\"\n"));
            assert_eq!(is_locked, is_selected, "{tag}: {lock}");
        }
        // a second run has nothing to do, and `lock` accepts what `update` wrote
        let again = up.run(0, "update", &[]);
        assert_eq!((moved(&again), &again["changes"]), (vec![], &json!([])));
        up.run(0, "lock", &["--check"]);
    }
}

#[test]
fn a_selection_follows_upstream() {
    let up = Upstream::new();
    for (seed, tag) in (1..).zip(["1.0.0", "1.1.0"]) {
        up.put("a", tag, seed);
    }
    let text = up.manifest("images: [{repo: REG/a, select: ^1, newest: 2}]\n");
    up.place.set("LANDFALL_TEST_CLOCK", "2026-11-01T12:00:00Z");
    up.run(0, "update", &[]);
    let text = text.replace("select", "tags: [\"1.1.0\", \"1.0.0\"], select");
    assert_eq!(up.place.read("m.yaml"), text);
    up.put("a", "1.2.0", 3);
    let report = up.run(0, "update", &[]);
    assert_eq!(moved(&report)[0].1, "1.2.0, 1.1.0");
    let text = text.replace("\"1.1.0\", \"1.0.0\"", "\"1.2.0\", \"1.1.0\"");
    assert_eq!(up.place.read("m.yaml"), text);
    // a version that upstream removed makes room for an older one
    up.remove("a", "1.1.0");
    up.run(0, "update", &[]);
    let text = text.replace("1.1.0", "1.0.0");
    assert_eq!(up.place.read("m.yaml"), text);
    // with a minimum age, a new version waits
    let text = text.replace("select: ^1", "select: {policy: ^1, minAge: 2d}");
    up.place.write("m.yaml", &text);
    up.put("a", "1.3.0", 4);
    let report = up.run(0, "update", &[]);
    assert_eq!(report["updates"][0]["waiting"][0]["version"], "1.3.0");
    assert_eq!(up.place.read("m.yaml"), text);
    up.place.set("LANDFALL_TEST_CLOCK", "2026-11-03T12:00:01Z");
    let report = up.run(0, "update", &[]);
    assert_eq!(moved(&report)[0].1, "1.3.0, 1.2.0");
}

#[test]
fn charts_of_registries_and_of_http_repositories_are_selected() {
    if !need(&["gzip"]) {
        return;
    }
    let up = Upstream::new();
    publish(&up, &["1.0.0", "1.1.0", "1.2.0", "2.0.0"], "");
    for repo in ["oci://REG/team/charts", "URL/charts"] {
        let written = format!("{{repo: '{repo}', name: app, select: ^1, newest: 2}}");
        let text = up.manifest(&format!("charts: [{written}]\n"));
        up.run(0, "update", &[]);
        let expected = text.replace("select", "versions: [\"1.2.0\", \"1.1.0\"], select");
        assert_eq!(up.place.read("m.yaml"), expected);
        let lock = up.place.read("landfall.lock");
        assert!(
            lock.contains("app:1.2.0") && lock.contains("app:1.1.0"),
            "{lock}"
        );
        assert!(
            !lock.contains("app:1.0.0") && !lock.contains("app:2.0.0"),
            "{lock}"
        );
    }
}

#[test]
fn a_rule_without_versions_is_not_locked_and_one_that_matches_nothing_fails() {
    let up = Upstream::new();
    up.put("a", "1.0.0", 1);
    let text = up.manifest("images:\n- {repo: REG/a, select: ^2}\n- REG/a:1.0.0\n");
    let refused = refusal(&up.run(2, "lock", &[]));
    assert!(
        refused.contains("m.yaml:5:") && refused.contains("`landfall update` selects them"),
        "{refused}"
    );
    let report = up.run(3, "update", &[]);
    let failed = report["items"].as_array().unwrap().iter();
    let mut failed = failed.filter(|item| item["status"] == "failed");
    let reason = failed.next().unwrap()["reason"].as_str().unwrap();
    assert!(
        reason.contains("no version matches `select: ^2`"),
        "{report:#}"
    );
    assert_eq!(up.place.read("m.yaml"), text);
}

#[test]
fn wrong_rules_are_refused_with_their_position() {
    let up = Upstream::new();
    for (entry, words) in [
        (
            "{repo: REG/a, select: minor}",
            "selects nothing without a current version",
        ),
        (
            "{repo: REG/a, select: '^v('}",
            "is not a regular expression",
        ),
        (
            "{repo: REG/a, select: '*', except: ['^(']}",
            "is not a regular expression",
        ),
        ("{repo: 'REG/a:1', select: '*'}", "is not a repository"),
        ("{repo: REG/a}", "needs `ref`, or `repo` and `select`"),
        (
            "{ref: 'REG/a:1', repo: REG/a, select: '*'}",
            "needs `ref`, or `repo` and `select`",
        ),
        (
            "{ref: 'REG/a:1', select: '*'}",
            "`ref` cannot be combined with `select`",
        ),
        (
            "{ref: 'REG/a:1', tags: [v1]}",
            "`tags` has no effect without `select`",
        ),
        (
            "{repo: REG/a, select: '*', update: minor}",
            "`update` cannot be combined with `select`",
        ),
        (
            "{repo: REG/a, select: {policy: '*', keep: 2}}",
            "write `newest`",
        ),
        ("{repo: REG/a, select: '*', newest: 0}", "m.yaml:4:"),
        (
            "{platforms: [linux/amd64]}",
            "needs `ref`, or `repo` and `select`",
        ),
        (
            "{repo: 'REG/${x}', select: '*'}",
            "a variable with a list of values",
        ),
    ] {
        up.manifest(&format!("images: [{entry}]\nvars: {{x: [a, b]}}\n"));
        let report = up.run(2, "update", &[]);
        let error = &report["error"];
        let said = format!(
            "{} {}",
            refusal(&report),
            error["help"].as_str().unwrap_or_default()
        );
        assert!(
            said.contains("m.yaml:4:") && said.contains(words),
            "{entry}: {said}"
        );
    }
}
