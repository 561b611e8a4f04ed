//! Minimum ages: the waiting time of a version begins with the first run that sees the version.

use super::moved;
use super::upstream::Upstream;
use crate::support::charts::{Chart, repository};
use crate::support::faults::{Fault, FaultKind, RequestKind, Settings};
use crate::support::need;
use crate::support::providers::ProviderFiles;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const SIGHTS: &str = "landfall.lock.seen";

fn noon(day: i64) -> Timestamp {
    let first: Timestamp = "2026-11-01T12:00:00Z".parse().unwrap();
    first + SignedDuration::from_hours(24 * day)
}

impl Upstream {
    /// Sets the machine's clock to noon of day `machine`. The servers send noon of day `servers` as
    /// `Date`, or no `Date` if `servers` is `None`.
    fn set_clocks(&self, machine: i64, servers: Option<i64>) {
        let time = noon(machine).to_string();
        self.place.set("LANDFALL_TEST_CLOCK", &time);
        self.faults.set(Settings {
            clock_days: servers.map(|servers| servers - machine),
            ..Settings::default()
        });
    }

    /// Sets both clocks to noon of this day.
    pub(super) fn day(&self, day: i64) {
        self.set_clocks(day, Some(day));
    }
}

/// The versions that wait: the name, the version, and the time until which it waits.
fn waiting(report: &Value) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for moved in report["updates"].as_array().unwrap() {
        for waiting in moved["waiting"].as_array().unwrap() {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            found.push((
                text(&moved["name"]),
                text(&waiting["version"]),
                text(&waiting["until"]),
            ));
        }
    }
    found
}

#[test]
fn the_wait_of_a_version_begins_with_the_run_that_first_sees_it() {
    let up = Upstream::new();
    up.put("a", "1.0.0", 1);
    let text = up.manifest(
        "minAge: 7d # for all\nimages:\n- {ref: 'REG/a:1.0.0', update: patch}   # waits\n",
    );
    up.day(0);
    up.run(0, "update", &[]);
    assert!(!up.place.path(SIGHTS).exists(), "nothing waits");
    up.put("a", "1.0.1", 2);
    // a check and a dry run write nothing, and a waiting version does not make a check fail
    let report = up.run(0, "update", &["--check"]);
    assert_eq!(waiting(&report).len(), 1, "{report:#}");
    up.run(0, "update", &["--dry-run"]);
    assert!(!up.place.path(SIGHTS).exists());
    let report = up.run(0, "update", &[]);
    let name = up.here("REG/a");
    let until = noon(7).to_string();
    assert_eq!(
        waiting(&report),
        [(name.clone(), "1.0.1".into(), until.clone())]
    );
    let first_seen = &report["updates"][0]["waiting"][0]["firstSeen"];
    assert_eq!(*first_seen, noon(0).to_string(), "{report:#}");
    assert_eq!(up.place.read("m.yaml"), text);
    let sights = up.place.read(SIGHTS);
    assert!(
        sights.contains(&format!("\n{name} 1.0.1 {}\n", noon(0))),
        "{sights}"
    );
    up.day(6);
    let said = up.place.ok(&up.args("update", &[]));
    let line = format!(
        "waits    {name} 1.0.1 (m.yaml:6:9): first seen {}, can be used from {until}\n",
        noon(0)
    );
    assert!(said.contains(&line), "{said}");
    assert_eq!(up.place.read(SIGHTS), sights);
    let page = up.place.ok(&up.args("update", &["--output", "markdown"]));
    assert!(page.contains("waiting for the minimum age"), "{page}");
    up.day(7);
    up.run(4, "update", &["--check"]);
    let report = up.run(0, "update", &[]);
    assert_eq!(moved(&report), [(name, "1.0.1".into())]);
    assert_eq!(waiting(&report), []);
    assert_eq!(
        up.place.read("m.yaml"),
        text.replacen("a:1.0.0", "a:1.0.1", 1)
    );
}

#[test]
fn an_urgent_version_does_not_wait() {
    let up = Upstream::new();
    up.put("a", "1.0.0", 1);
    up.put("b", "stable", 2);
    up.manifest(
        "minAge: 2w\nimages:\n- {ref: 'REG/a:1.0.0', update: patch}\n- {ref: 'REG/b:stable', update: digest}\n",
    );
    up.day(0);
    up.place.ok(&up.args("lock", &[]));
    up.put("a", "1.0.1", 3);
    up.put("a", "1.1.0", 3);
    let digest = up.put("b", "stable", 4);
    let report = up.run(0, "update", &[]);
    assert_eq!(report["notices"][0]["until"], noon(14).to_string());
    let name = up.here("REG/a");
    // `--urgent` does not override the policy, and its name and version must match
    for other in ["REG/a=1.1.0", "REG/aa=1.0.1", "REG/a=1.0.10"].map(|text| up.here(text)) {
        let said = up.place.ok(&up.args("update", &["--urgent", &other]));
        assert!(
            said.contains(&format!("unused   --urgent {other}: ")),
            "{said}"
        );
    }
    let urgent = [
        format!("{name}=1.0.1"),
        format!("{}={digest}", up.here("REG/b:stable")),
    ];
    let report = up.run(
        0,
        "update",
        &["--urgent", &urgent[0], "--urgent", &urgent[1]],
    );
    assert_eq!(moved(&report), [(name, "1.0.1".into())]);
    let taken = &report["notices"].as_array().unwrap()[0];
    assert_eq!((&taken["taken"], taken.get("until")), (&json!(true), None));
    assert!(up.place.read("landfall.lock").contains(&digest));
    up.place
        .landfall()
        .args(up.args("update", &["--urgent", "a"]))
        .assert()
        .code(2);
}

#[test]
fn an_urgent_digest_that_is_old_enough_counts_as_used() {
    let up = Upstream::new();
    up.put("a", "1.0.0", 1);
    up.put("b", "stable", 2);
    up.place.write("list.txt", up.here("REG/a:1.0.0\n"));
    up.file("list.txt", up.here("REG/a:1.0.0\n"));
    up.manifest(
        "minAge: 7d\nimages: [{ref: 'REG/b:stable', update: digest}]\n\
         lists: [{format: images-txt, file: list.txt, from: URL/list.txt}]\n",
    );
    up.day(0);
    up.place.ok(&up.args("lock", &[]));
    up.put("a", "1.0.1", 3);
    up.file("list.txt", up.here("REG/a:1.0.1\n"));
    let digest = up.put("b", "stable", 4);
    let report = up.run(0, "update", &[]);
    let (list, version, _) = &waiting(&report)[0];
    let urgent = [
        format!("{list}={version}"),
        format!("{}={digest}", up.here("REG/b:stable")),
    ];
    up.day(8);
    let said = up
        .place
        .ok(&up.args("update", &["--urgent", &urgent[0], "--urgent", &urgent[1]]));
    assert!(!said.contains("unused"), "{said}");
    assert_eq!(up.place.read("list.txt"), up.here("REG/a:1.0.1\n"));
    assert!(up.place.read("landfall.lock").contains(&digest));
}

#[test]
fn the_wait_starts_again_if_the_tag_moves() {
    let up = Upstream::new();
    up.put("a", "1.0.0", 1);
    up.put("b", "stable", 2);
    up.manifest(
        "minAge: 7d\nimages:\n- {ref: 'REG/a:1.0.0', update: patch}\n- {ref: 'REG/b:stable', update: {policy: digest, minAge: 3d}}\n",
    );
    up.day(0);
    up.place.ok(&up.args("lock", &[]));
    let lock = up.place.read("landfall.lock");
    up.put("a", "1.0.1", 3);
    up.put("b", "stable", 4);
    up.run(0, "update", &[]);
    up.day(2);
    up.put("a", "1.0.1", 5);
    up.put("b", "stable", 6);
    up.run(0, "update", &[]);
    assert_eq!(up.place.read("landfall.lock"), lock);
    // 1.0.1 was first seen 8 days ago, but its present content only 6 days ago
    up.day(8);
    let report = up.run(0, "update", &[]);
    assert_eq!(moved(&report), [], "{report:#}");
    assert_eq!(waiting(&report)[0].2, noon(9).to_string());
    let taken = &report["notices"].as_array().unwrap()[0];
    assert_eq!(taken["taken"], true, "{report:#}");
    // the tag moves again between the runs of day 8 and day 9, so its wait starts on day 9
    up.put("a", "1.0.1", 7);
    up.day(9);
    let report = up.run(0, "update", &[]);
    assert_eq!(waiting(&report)[0].2, noon(16).to_string());
    up.day(16);
    let report = up.run(0, "update", &[]);
    assert_eq!(moved(&report).len(), 1, "{report:#}");
}

#[test]
fn a_variable_waits_for_all_its_items_and_gets_the_newest_version_that_is_old_enough() {
    let up = Upstream::new();
    let put = |version: &str, seed| {
        up.put("k/api", version, seed);
        up.checked_file(&format!("{version}/kubelet"), seed);
    };
    put("v1.0.0", 1);
    up.file("stable.txt", "v1.0.0\n");
    up.manifest(
        "vars: {k: {value: v1.0.0, update: {policy: minor, minAge: 48h}, from: 'URL/stable.txt'}}\n\
         images: ['REG/k/api:${k}']\nfiles: [{url: 'URL/${k}/kubelet', checksum: '${url}.sha256'}]\n",
    );
    up.day(0);
    put("v1.0.1", 2);
    up.file("stable.txt", "v1.0.1\n");
    up.run(0, "update", &[]);
    // the newest version lacks its image for a day, so its content was first seen on day 2
    up.day(1);
    up.checked_file("v1.1.0/kubelet", 3);
    up.file("stable.txt", "v1.0.1\nv1.1.0\n");
    let report = up.run(0, "update", &[]);
    assert_eq!(waiting(&report).len(), 2, "{report:#}");
    up.day(2);
    put("v1.1.0", 3);
    let report = up.run(0, "update", &[]);
    assert_eq!(moved(&report), [("k".into(), "v1.0.1".into())]);
    assert_eq!(waiting(&report)[0].1, "v1.1.0");
    up.day(3);
    let report = up.run(0, "update", &[]);
    assert_eq!(waiting(&report)[0].2, noon(4).to_string(), "{report:#}");
    up.day(4);
    let report = up.run(0, "update", &[]);
    assert_eq!(moved(&report), [("k".into(), "v1.1.0".into())]);
}

#[test]
fn updating_a_version_does_not_update_lists_that_wait_or_are_not_selected() {
    let up = Upstream::new();
    for (tag, seed) in [("1.0.0", 1), ("1.0.1", 2), ("1.0.2", 3)] {
        up.put("a", tag, seed);
    }
    let list = up.here("REG/a:1.0.0\n");
    up.file("list.txt", list.as_str());
    up.place.write("list.txt", list.as_str());
    up.manifest(
        "minAge: 7d\nimages: [{ref: 'REG/a:1.0.1', update: {policy: patch, minAge: 0d}}]\n\
         lists: [{format: images-txt, file: list.txt, from: URL/list.txt}]\n",
    );
    up.day(0);
    up.place.ok(&up.args("lock", &[]));
    up.file("list.txt", up.here("REG/a:1.0.0\nREG/a:1.0.1\n"));
    let image = up.here("REG/a");
    let report = up.run(0, "update", &["--only", &image]);
    assert_eq!(moved(&report), [(image, "1.0.2".into())], "{report:#}");
    assert_eq!(up.place.read("list.txt"), list, "it is not selected");
    up.put("a", "1.0.3", 4);
    let report = up.run(0, "update", &[]);
    assert_eq!(moved(&report).len(), 1, "{report:#}");
    assert_eq!(waiting(&report).len(), 1, "{report:#}");
    assert_eq!(up.place.read("list.txt"), list, "it waits");
}

#[test]
fn after_a_failed_look_up_the_version_is_recorded_and_its_age_counts_from_its_content() {
    let up = Upstream::new();
    up.put("a", "1.0.0", 1);
    up.put("a", "1.0.1", 2);
    up.manifest("images: [{ref: 'REG/a:1.0.0', update: {policy: patch, minAge: 1d}}]\n");
    up.day(0);
    up.place.ok(&up.args("lock", &[]));
    up.faults
        .set_faults([Fault::always(RequestKind::ManifestHead, FaultKind::Status(403)).at("1.0.1")]);
    let report = up.place.json(3, &up.args("update", &[]));
    let item = &report["items"][1];
    assert!(
        item["status"] == "failed" && item["reason"].as_str().unwrap().contains("403"),
        "{report:#}"
    );
    assert!(up.place.read(SIGHTS).contains(" 1.0.1 2026-11-01"));
    // no content was seen on day 0, so the age of the version counts from day 1
    up.day(1);
    let report = up.run(0, "update", &[]);
    assert_eq!(waiting(&report)[0].2, noon(2).to_string());
    // --only keeps the records of items that it does not select
    let sights = up.place.read(SIGHTS);
    up.run(0, "update", &["--only", "nothing"]);
    assert_eq!(up.place.read(SIGHTS), sights);
    // a file with a merge conflict is an error, and not treated as empty
    up.place.write(SIGHTS, format!("<<<<<<< ours\n{sights}"));
    let refused = up.run(2, "update", &[]);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("landfall.lock.seen: line 1"), "{message}");
}

/// A source of versions, and the minimum age of its versions in days.
struct Simulated {
    name: &'static str,
    age: i64,
    /// The days on which versions are published: 1.0.0, 1.0.1, …
    days: &'static [i64],
}

impl Simulated {
    /// The patch number in the manifest after the run on `day`: that of the newest version that was
    /// seen at least `age` days before.
    fn expected(&self, day: i64) -> usize {
        let taken = (0..=day).map(|on| {
            // a clock that is behind delays the updates on this day
            let now = on + wrong_by(on).min(0);
            let seen = |published: i64| match published {
                // a version that is first seen while the clock is ahead counts from the next run
                _ if wrong_by(published) > 0 => published + 1,
                _ => published,
            };
            let old_enough = |(_, published): &(usize, &i64)| {
                **published == 0 || (**published <= on && seen(**published) + self.age <= now)
            };
            let mut all = self.days.iter().enumerate();
            let newest = match self.age {
                0 => all.rfind(|(_, published)| **published <= on),
                _ => all.rfind(old_enough),
            };
            newest.unwrap().0
        });
        taken.max().unwrap()
    }
}

/// The days on which the clock of the machine is wrong, and by how many days it is ahead, or behind
/// if negative.
const WRONG_CLOCKS: [(i64, i64); 5] = [(4, 200), (9, -3000), (13, 6), (14, -2), (22, 1)];

fn wrong_by(day: i64) -> i64 {
    let wrong = WRONG_CLOCKS.iter().find(|(on, _)| *on == day);
    wrong.map_or(0, |(_, error)| *error)
}

#[test]
fn no_version_is_updated_too_early_in_thirty_days_with_wrong_clocks() {
    let sources = [
        Simulated {
            name: "slow",
            age: 7,
            days: &[0, 1, 12],
        },
        Simulated {
            name: "daily",
            age: 2,
            days: &[0, 3, 4, 5, 6, 7, 8, 9, 13, 14, 15],
        },
        Simulated {
            name: "none",
            age: 0,
            days: &[0, 2, 22],
        },
        Simulated {
            name: "wrong",
            age: 3,
            days: &[0, 4, 9, 14],
        },
    ];
    let up = Upstream::new();
    let mut text = "minAge: 7d\nimages:\n".to_owned();
    for source in &sources {
        let own = match source.age {
            7 => "patch".to_owned(),
            age => format!("{{policy: patch, minAge: {age}d}}"),
        };
        text += &format!(
            "# {}\n- {{ref: 'REG/{}:1.0.0', update: {own}}}\n",
            source.name, source.name
        );
    }
    let text = up.manifest(&text);
    for day in 0..30 {
        let mut published = false;
        for (seed, source) in (1..).zip(&sources) {
            for (at, _) in source.days.iter().enumerate().filter(|(_, on)| **on == day) {
                up.put(source.name, &format!("1.0.{at}"), seed * 100 + at as u64);
                published |= source.age > 0 && at > 0;
            }
        }
        let wrong = wrong_by(day);
        up.set_clocks(day + wrong, Some(day));
        let before = up
            .place
            .path(SIGHTS)
            .exists()
            .then(|| up.place.read(SIGHTS));
        let out = format!("bundle-{day}");
        let report = up.run(
            0,
            "refresh",
            &["-o", &out, "--since", "landfall.lock"][..if day == 0 { 2 } else { 4 }],
        );
        let mut expected = text.clone();
        for source in &sources {
            let at = source.expected(day);
            expected = expected.replace(
                &format!("{}:1.0.0", source.name),
                &format!("{}:1.0.{at}", source.name),
            );
        }
        assert_eq!(up.place.read("m.yaml"), expected, "day {day}: {report:#}");
        let told = report["notices"]
            .to_string()
            .contains("the clock of this machine is");
        let waits = !waiting(&report).is_empty();
        assert!(told == (wrong != 0) || !waits, "day {day}: {report:#}");
        if !published && wrong == 0 {
            let after = up
                .place
                .path(SIGHTS)
                .exists()
                .then(|| up.place.read(SIGHTS));
            let healed = report["notices"].to_string().contains("\"clock\"");
            assert!(
                after == before || healed,
                "day {day}: the file changed without a new version"
            );
        }
    }
}

#[test]
fn a_killed_refresh_keeps_the_times_at_which_versions_were_first_seen() {
    let up = Upstream::new();
    up.put("a", "1.0.0", 1);
    up.put("c", "1.0.0", 2);
    up.manifest(
        "images:\n- {ref: 'REG/a:1.0.0', update: {policy: patch, minAge: 7d}}\n- {ref: 'REG/c:1.0.0', update: patch}\n",
    );
    up.day(0);
    up.run(0, "refresh", &["-o", "b1"]);
    up.put("a", "1.0.1", 3);
    up.put("c", "1.0.1", 4);
    // killed as soon as the manifest has changed, which is after `landfall.lock.seen` was written
    up.faults.set(Settings {
        clock_days: Some(0),
        pace: Some((100, std::time::Duration::from_millis(20))),
        ..Settings::default()
    });
    let mut child = up
        .place
        .command()
        .args(up.args("refresh", &["-o", "b2"]))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !up.place.read("m.yaml").contains("c:1.0.1") {
        assert!(
            child.try_wait().unwrap().is_none(),
            "the refresh ended before it changed the manifest"
        );
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(
        child.try_wait().unwrap().is_none(),
        "the refresh ended before it was killed"
    );
    assert!(!up.place.path("b2").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let sights = up.place.read(SIGHTS);
    assert!(sights.contains("/a 1.0.1 2026-11-01"), "{sights}");
    up.day(7);
    let report = up.run(0, "refresh", &["-o", "b2"]);
    assert_eq!(moved(&report), [(up.here("REG/a"), "1.0.1".into())]);
}

/// Before, the tag was resolved again after its age was checked, so an image that nobody had waited
/// for was locked.
#[test]
fn the_digest_whose_age_was_checked_is_locked() {
    let up = Upstream::new();
    up.put("a", "1.0.0", 1);
    up.manifest("minAge: 7d\nimages: [{ref: 'REG/a:1.0.0', update: patch}]\n");
    up.day(0);
    up.run(0, "update", &[]);
    let waited_for = up.put("a", "1.0.1", 2);
    let fresh = up.put("a", "other", 3);
    up.run(0, "update", &[]);
    up.day(8);
    // a GET of the tag gets another image than the HEAD before it
    let moving = Fault {
        at: "/a/manifests/1.0.1".into(),
        times: usize::MAX,
        ..Fault::once(RequestKind::Manifest, FaultKind::Moving)
    };
    up.faults.set_faults([moving]);
    up.place.json(0, &up.args("update", &[]));
    let lock = up.place.read("landfall.lock");
    assert!(
        lock.contains(&waited_for) && !lock.contains(&fresh),
        "{lock}"
    );
}

/// Adds the version `version` of the chart `app` to the HTTP repository, next to `1.0.0`.
fn publish_chart(up: &Upstream, version: &str, values: &str) -> Chart {
    let of = |version, values| Chart::new("app", version, "", &[("values.yaml", values)]);
    let charts = [of("1.0.0", "a: 1\n"), of(version, values)];
    repository(&up.place, "charts", "", &charts);
    let index = up.place.read("charts/index.yaml");
    up.file("charts/index.yaml", index);
    for chart in &charts {
        up.file(&format!("charts/{}", chart.file()), chart.archive.clone());
    }
    charts[1].clone()
}

#[test]
fn the_age_of_a_chart_in_an_http_repository_belongs_to_its_digest() {
    if !need(&["gzip"]) {
        return;
    }
    let up = Upstream::new();
    publish_chart(&up, "1.0.0", "a: 1\n");
    up.manifest(
        "minAge: 7d\ncharts: [{repo: URL/charts, name: app, version: '1.0.0', update: patch}]\n",
    );
    up.day(0);
    up.run(0, "update", &[]);
    publish_chart(&up, "1.0.1", "a: 2\n");
    let report = up.run(0, "update", &[]);
    assert_eq!(waiting(&report)[0].2, noon(7).to_string(), "{report:#}");
    // other content under the same version starts the wait again
    up.day(6);
    publish_chart(&up, "1.0.1", "a: 3\n");
    up.run(0, "update", &[]);
    up.day(8);
    let report = up.run(0, "update", &[]);
    assert_eq!(waiting(&report)[0].2, noon(13).to_string(), "{report:#}");
    assert_eq!(moved(&report), []);
    // an archive that differs from the index is not locked
    up.day(13);
    let other = Chart::new("app", "1.0.1", "", &[("values.yaml", "a: 4\n")]);
    up.file("charts/app-1.0.1.tgz", other.archive);
    let lock = up.place.read("landfall.lock");
    let output = up.place.command().args(up.args("update", &[])).output();
    assert_ne!(output.unwrap().status.code(), Some(0));
    assert_eq!(up.place.read("landfall.lock"), lock);
    let waited_for = publish_chart(&up, "1.0.1", "a: 3\n");
    up.run(0, "lock", &[]);
    assert!(
        up.place
            .read("landfall.lock")
            .contains(&waited_for.digest())
    );
}

#[test]
fn a_version_of_a_provider_waits_from_its_first_sight() {
    let up = Upstream::new();
    let publish = |versions: &[&str]| {
        let mut files = ProviderFiles::new();
        for version in versions {
            files.publish(version, &["linux_amd64"]);
        }
        for path in walk(&files.root()) {
            let name = path
                .strip_prefix(files.root())
                .unwrap()
                .display()
                .to_string();
            up.file(&name, std::fs::read(&path).unwrap());
        }
    };
    publish(&["1.0.0"]);
    up.manifest(
        "minAge: 7d\nproviders: [{source: registry.test/acme/random, version: 1.0.0, update: patch}]\n",
    );
    let mirror = up.here("URL");
    up.place.write(
        "site.yaml",
        format!("apiVersion: landfall/v1\nkind: Site\nupstreams: {{registry.test: {{mirror: '{mirror}'}}}}\n"),
    );
    let site = ["--site", "site.yaml"];
    up.day(0);
    up.run(0, "update", &site);
    publish(&["1.0.0", "1.0.1"]);
    up.run(0, "update", &site);
    up.day(6);
    let report = up.run(0, "update", &site);
    assert_eq!(waiting(&report)[0].2, noon(7).to_string(), "{report:#}");
    assert_eq!(moved(&report), []);
    up.day(7);
    let report = up.run(0, "update", &site);
    assert_eq!(moved(&report).len(), 1, "{report:#}");
    assert!(up.place.read("landfall.lock").contains("1.0.1"));
}

/// All files below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => walk(&path),
            false => vec![path],
        })
        .collect()
}
