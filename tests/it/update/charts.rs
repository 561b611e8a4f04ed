//! Charts with their own update policy. Their versions come from the index of a repository or the
//! tags of a registry.

use super::moved;
use super::upstream::Upstream;
use crate::support::charts::{Chart, repository};
use crate::support::faults::{Fault, FaultKind, RequestKind};
use crate::support::images::{Images, sha256};
use crate::support::need;

/// Adds these versions of the chart `app` to two HTTP repositories and a registry; `more` is added
/// to their Chart.yaml.
pub(super) fn publish(up: &Upstream, versions: &[&str], more: &str) {
    let images = Images::new(up.place.path("layout"));
    let charts: Vec<Chart> = versions
        .iter()
        .map(|version| Chart::new("app", version, more, &[("values.yaml", "a: 1\n")]))
        .collect();
    repository(&up.place, "charts", "", &charts);
    for folder in ["charts", "same"] {
        up.file(
            &format!("{folder}/index.yaml"),
            up.place.read("charts/index.yaml"),
        );
        charts.iter().for_each(|chart| {
            up.file(&format!("{folder}/{}", chart.file()), chart.archive.clone())
        });
    }
    for chart in &charts {
        chart.push(&images, &up.faults.address, "team/charts/app");
    }
}

#[test]
fn a_chart_is_updated_by_its_own_policy() {
    if !need(&["gzip"]) {
        return;
    }
    let up = Upstream::new();
    publish(&up, &["1.0.0"], "");
    let digest = sha256(&up.place.read_bytes("charts/app-1.0.0.tgz"));
    let text = up.manifest(&format!(
        "charts:\n- {{repo: URL/charts, name: app, version: '1.0.0', update: patch}}  # 1.0.0 at first\n\
         - ref: oci://REG/team/charts/app:1.0.0 # the same\n  update: \"^1\"\n\
         - {{repo: URL/same/, name: app, version: 1.0.0, digest: \"{digest}\", update: patch}}\n"
    ));
    up.run(0, "update", &[]);
    publish(&up, &["1.0.0", "1.0.2", "1.1.0"], "");
    let report = up.run(0, "update", &[]);
    let names = [
        (up.here("URL/charts/app"), "1.0.2".into()),
        (up.here("oci://REG/team/charts/app"), "1.1.0".into()),
        (up.here("URL/same/app"), "1.0.2".into()),
    ];
    assert_eq!(moved(&report), names, "{report:#}");
    let new = sha256(&up.place.read_bytes("charts/app-1.0.2.tgz"));
    let expected = text
        .replacen("version: '1.0.0'", "version: '1.0.2'", 1)
        .replacen("app:1.0.0", "app:1.1.0", 1)
        .replacen("version: 1.0.0, digest", "version: 1.0.2, digest", 1)
        .replacen(&digest, &new, 1);
    assert_eq!(up.place.read("m.yaml"), expected);
    let lock = up.place.read("landfall.lock");
    assert!(
        lock.contains("/charts/app:1.0.2") && lock.contains("team/charts/app:1.1.0"),
        "{lock}"
    );
    assert!(!lock.contains("1.0.0"), "{lock}");

    // a check reports archives that were replaced
    publish(&up, &["1.0.2", "1.1.0"], "description: again\n");
    let report = up.run(4, "update", &["--check"]);
    let printed: Vec<(&str, &str)> = report["notices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["kind"].as_str().unwrap(), one["name"].as_str().unwrap()))
        .collect();
    let names = [
        "helm+URL/charts/app:1.0.2",
        "helm+URL/same/app:1.0.2",
        "oci://REG/team/charts/app:1.1.0",
    ]
    .map(|name| up.here(name));
    assert_eq!(
        printed,
        names.each_ref().map(|name| ("moved", &**name)),
        "{report:#}"
    );
    assert_eq!(up.place.read("m.yaml"), expected, "a check writes nothing");

    up.manifest(
        "vars: {v: 1.0.2}\ncharts: [{repo: URL/charts, name: app, version: '${v}', update: patch}]\n",
    );
    let message = up.run(2, "update", &[])["error"]["message"].to_string();
    assert!(
        message.contains("the version of this chart is in a variable"),
        "{message}"
    );
}

#[test]
fn a_chart_keeps_several_versions() {
    if !need(&["gzip"]) {
        return;
    }
    let up = Upstream::new();
    publish(&up, &["1.0.0", "1.1.0", "1.2.0"], "");
    let oci = |version: &str| {
        format!(
            "{{ref: 'oci://REG/team/charts/app:{version}', update: {{policy: minor, keep: 2}}}}"
        )
    };
    let http = |version: &str| {
        format!(
            "- repo: URL/charts\n  name: app\n  version: {version}\n  update: {{policy: minor, keep: 2}}\n"
        )
    };
    for (written, expected) in [
        (
            format!("charts: [{}]\n", oci("1.1.0")),
            format!("charts: [{}, {}]\n", oci("1.1.0"), oci("1.2.0")),
        ),
        (
            format!("charts:\n{}", http("1.1.0")),
            format!("charts:\n{}{}", http("1.1.0"), http("1.2.0")),
        ),
    ] {
        let text = up.manifest(&written);
        up.run(0, "update", &[]);
        let expected = text.replacen(&up.here(&written), &up.here(&expected), 1);
        assert_eq!(up.place.read("m.yaml"), expected);
        let lock = up.place.read("landfall.lock");
        assert!(
            lock.contains("app:1.1.0") && lock.contains("app:1.2.0"),
            "{lock}"
        );
    }
}

/// The tags of a repository may also be those of images, or of another form of the chart.
#[test]
fn a_tag_that_is_not_that_of_a_chart_is_held() {
    if !need(&["gzip"]) {
        return;
    }
    let up = Upstream::new();
    publish(&up, &["1.0.0", "1.1.0"], "");
    up.put("team/charts/app", "1.2.0", 1);
    let text = up.manifest("charts: [{ref: 'oci://REG/team/charts/app:1.0.0', update: minor}]\n");
    let report = up.run(0, "update", &[]);
    let name = up.here("oci://REG/team/charts/app");
    assert_eq!(moved(&report), [(name, "1.1.0".into())], "{report:#}");
    assert_eq!(
        up.place.read("m.yaml"),
        text.replace("app:1.0.0", "app:1.1.0")
    );
    let held = &report["updates"][0]["held"][0];
    assert_eq!(held["version"], "1.2.0", "{report:#}");
    let why = held["why"].as_str().unwrap();
    assert!(why.contains("not of a chart"), "{why}");
}

/// Like images, charts may be pinned as `name:version@digest`. The digest moves with the version.
#[test]
fn the_digest_in_the_reference_of_a_chart_is_replaced() {
    if !need(&["gzip"]) {
        return;
    }
    let up = Upstream::new();
    publish(&up, &["1.0.0", "1.1.0"], "");
    let digest = |tag: &str| {
        up.faults.content(|content| {
            content.tags[&("team/charts/app".to_owned(), tag.to_owned())].clone()
        })
    };
    let (old, new) = (digest("1.0.0"), digest("1.1.0"));
    let text = up.manifest(&format!(
        "charts:\n- {{ref: 'oci://REG/team/charts/app:1.0.0@{old}', update: minor}} # pinned\n"
    ));
    up.run(0, "lock", &[]);
    up.run(0, "update", &[]);
    let expected = text.replace("1.0.0", "1.1.0").replace(&old, &new);
    assert_eq!(up.place.read("m.yaml"), expected);
    assert!(
        up.place
            .read("landfall.lock")
            .contains(&format!("pin: {new}"))
    );
    up.manifest(&format!(
        "charts: ['oci://REG/team/charts/app:1.0.0@{new}']\n"
    ));
    let report = up.run(1, "lock", &["--lock", "other.lock"]);
    assert!(
        report.to_string().contains("but the manifest requires"),
        "{report:#}"
    );
}

/// What was looked up for the age of a chart is what is locked, although its tag moves between the
/// look-up and the lock.
#[test]
fn the_chart_whose_age_was_checked_is_locked() {
    if !need(&["gzip"]) {
        return;
    }
    let up = Upstream::new();
    publish(&up, &["1.0.0"], "");
    up.manifest("minAge: 7d\ncharts: [{ref: 'oci://REG/team/charts/app:1.0.0', update: patch}]\n");
    up.day(0);
    up.run(0, "update", &[]);
    publish(&up, &["1.0.1"], "");
    let images = Images::new(up.place.path("other"));
    let fresh = Chart::new("app", "1.0.1", "description: fresh\n", &[]);
    let digest_of = |tag: &str| {
        let key = ("team/charts/app".to_owned(), tag.to_owned());
        up.faults.content(|content| content.tags[&key].clone())
    };
    let waited_for = digest_of("1.0.1");
    fresh.push(&images, &up.faults.address, "team/charts/app");
    let other = digest_of("1.0.1");
    assert_ne!(waited_for, other);
    up.faults.content(|content| {
        let key = |tag: &str| ("team/charts/app".to_owned(), tag.to_owned());
        content.tags.insert(key("1.0.1"), waited_for.clone());
        content.tags.insert(key("other"), other.clone());
    });
    up.run(0, "update", &[]);
    up.day(8);
    // a GET of the tag gets another chart than the HEAD before it
    let moving = Fault {
        at: "/team/charts/app/manifests/1.0.1".into(),
        times: usize::MAX,
        ..Fault::once(RequestKind::Manifest, FaultKind::Moving)
    };
    up.faults.set_faults([moving]);
    up.place.json(0, &up.args("update", &[]));
    let lock = up.place.read("landfall.lock");
    assert!(
        lock.contains(&waited_for) && !lock.contains(&other),
        "{lock}"
    );
}
