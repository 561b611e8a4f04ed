//! A year of refreshes: an upstream changes in twelve rounds, and the private registry gets only
//! the delta of each round.

use super::moved;
use super::upstream::Upstream;
use crate::support::faults::{Content, Faults, RequestKind, Settings};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const MANIFEST: &str = "\
# The far side's software. Reviewed on the first Monday of each month (v1.0.0 was the first).
vars:
  cluster: {value: v1.0.0, update: minor, from: \"URL/cluster.txt\"}   # moves with its binaries
  tools: &tools {value: '1.0.0', update: \"~1\"}    # `tools` of one team
images:
  - REG/cluster/server:${cluster}          # all of the cluster
  - 'REG/cluster/agent:${cluster}'
  - ref: REG/team/tools:${tools}
  - {ref: \"REG/base/os:stable\", update: digest}     # rebuilt every week

  - REG/plain/app:v1 # nobody moves this one
files:
- url: URL/${cluster}/installer
  checksum: \"${url}.sha256\"   # carried too
";

/// The text of the manifest with these versions.
fn expected(up: &Upstream, cluster: &str, tools: &str) -> String {
    let text = MANIFEST.replacen("value: v1.0.0", &format!("value: {cluster}"), 1);
    let text = text.replacen("value: '1.0.0'", &format!("value: '{tools}'"), 1);
    up.here(&format!(
        "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\n{text}"
    ))
}

/// The flags that omit the content of the private registry from a bundle: `sent.lock` is the lock
/// of the last push.
const SINCE: [&str; 2] = ["--since", "sent.lock"];

/// The upstream on the connected side, and the registry on the disconnected side.
struct Year {
    up: Upstream,
    far: Faults,
    round: usize,
}

impl Year {
    fn cluster(&self, version: &str, seed: u64) {
        self.up.put_platforms(
            "cluster/server",
            version,
            seed,
            &["linux/amd64", "linux/arm64"],
        );
        self.up.put("cluster/agent", version, seed + 1);
        self.up
            .checked_file(&format!("{version}/installer"), seed + 2);
        self.up.file("cluster.txt", format!("{version}\n"));
    }

    /// Refreshes, and pushes the delta to the private registry. If `kill_after` is given, a first
    /// refresh is killed after this many transferred bytes.
    fn round(
        &mut self,
        cluster: &str,
        tools: &str,
        kill_after: Option<usize>,
        more: &[&str],
    ) -> Value {
        self.round += 1;
        let out = format!("delta-{}", self.round);
        let args = [&["-o", &out][..], &SINCE, more].concat();
        let control = kill_after.map(|after| self.killed(&args, after));
        let report = self.up.run(0, "refresh", &args);
        let what = format!("round {}: {report:#}", self.round);
        assert_eq!(
            self.up.place.read("m.yaml"),
            expected(&self.up, cluster, tools),
            "{what}"
        );
        assert!(report["bundle"]["digest"].is_string(), "{what}");
        if let Some(control) = control {
            for file in ["m.yaml", "landfall.lock", &out] {
                let control = std::fs::read(control.join(file)).unwrap();
                assert!(
                    self.up.place.read_bytes(file) == control,
                    "a kill changed {file}, {what}"
                );
            }
        }
        self.deliver(&out);
        report
    }

    /// Runs a refresh to its end in a copy of the folder. Then kills a refresh in the folder itself
    /// after this many transferred bytes. Returns the copy.
    fn killed(&self, args: &[&str], after: usize) -> std::path::PathBuf {
        let control = self.up.place.path(format!("control-{}", self.round));
        copy(
            self.up.place.dir(),
            &control,
            &["m.yaml", "landfall.lock", "sent.lock", "store"],
        );
        let mut whole = self.up.place.command();
        whole
            .current_dir(&control)
            .args(self.up.args("refresh", args))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        assert!(whole.status().unwrap().success());
        self.up.faults.set(Settings {
            pace: Some((500, Duration::from_millis(20))),
            ..Settings::default()
        });
        let before = self.up.faults.moved();
        let mut child = self.up.place.command();
        let mut child = child
            .args(self.up.args("refresh", args))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while self.up.faults.moved() - before < after && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(300));
        }
        assert!(
            child.try_wait().unwrap().is_none(),
            "round {}: the refresh ended before it was killed",
            self.round
        );
        child.kill().unwrap();
        child.wait().unwrap();
        self.up.faults.set(Settings::default());
        control
    }

    /// Pushes a delta; a full bundle must then have nothing to add.
    fn deliver(&self, delta: &str) {
        let far = self.far.address.as_str();
        let to = ["--to", far, "--plain-http", far];
        self.up
            .place
            .json(0, &[&["push", delta, "--move-tags"], &to[..]].concat());
        let lock = self.up.place.read("landfall.lock");
        self.up.place.write("sent.lock", &lock);
        self.up.place.ok(&[
            "pull",
            "--store",
            "store",
            "--plain-http",
            &self.up.faults.address,
        ]);
        self.up
            .place
            .ok(&["pack", "--store", "store", "-o", "full"]);
        self.far.set_faults([]);
        let report = self
            .up
            .place
            .json(0, &[&["push", "full", "--recheck"], &to[..]].concat());
        let written = self
            .far
            .seen()
            .into_iter()
            .filter(|seen| !matches!(seen.method.as_str(), "GET" | "HEAD"));
        // every push adds its lock to the list of delivered locks
        let written = written.filter(|seen| !seen.path.contains("/landfall/locks/"));
        let written: Vec<String> = written
            .map(|seen| format!("{} {}", seen.method, seen.target))
            .collect();
        assert_eq!(
            written,
            Vec::<String>::new(),
            "round {}: {report:#}",
            self.round
        );
        assert_eq!(
            report["totals"]["done"], 0,
            "round {}: {report:#}",
            self.round
        );
    }

    /// Runs a round without new content. It must report notices of these kinds, and request no
    /// manifests, blobs or lists of referrers.
    fn quiet(&mut self, expected_kinds: Value) {
        self.round += 1;
        let before = (
            self.up.place.read("m.yaml"),
            self.up.place.read("landfall.lock"),
        );
        let out = format!("delta-{}", self.round);
        let report = self
            .up
            .run(0, "refresh", &[&["-o", &out][..], &SINCE].concat());
        let what = format!("round {}: {report:#}", self.round);
        let kinds: Vec<&Value> = report["notices"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["kind"])
            .collect();
        assert_eq!(json!(kinds), expected_kinds, "{what}");
        assert!(
            !self.up.place.path(&out).exists() && report.get("bundle").is_none(),
            "{what}"
        );
        let moved = [
            RequestKind::Manifest,
            RequestKind::Blob,
            RequestKind::Referrers,
        ]
        .map(|on| self.up.found(on));
        assert_eq!(moved, [0, 0, 0], "{what}");
        assert_eq!(
            (
                self.up.place.read("m.yaml"),
                self.up.place.read("landfall.lock")
            ),
            before,
            "{what}"
        );
    }
}

/// Copies files and folders by name.
fn copy(from: &Path, to: &Path, names: &[&str]) {
    std::fs::create_dir_all(to).unwrap();
    for name in names {
        let from = from.join(name);
        let to = to.join(name);
        match from.is_dir() {
            false => drop(std::fs::copy(from, to).unwrap()),
            true => {
                let below: Vec<String> = std::fs::read_dir(&from)
                    .unwrap()
                    .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                    .collect();
                copy(
                    &from,
                    &to,
                    &below.iter().map(String::as_str).collect::<Vec<_>>(),
                );
            }
        }
    }
}

#[test]
fn the_deltas_of_twelve_rounds_give_the_same_registry_as_a_full_bundle() {
    let mut year = Year {
        up: Upstream::new(),
        far: Faults::new(Content::default()),
        round: 0,
    };
    year.cluster("v1.0.0", 10);
    year.up.put("team/tools", "1.0.0", 20);
    year.up.put("base/os", "stable", 30);
    year.up.put("plain/app", "v1", 40);
    year.up.manifest(MANIFEST);
    year.up.place.write("sent.lock", "version: 1\n");
    // 1: everything is new
    year.round("v1.0.0", "1.0.0", None, &[]);
    // 2: a version with all its items
    year.cluster("v1.0.1", 50);
    year.round("v1.0.1", "1.0.0", None, &[]);
    // 3: nothing changes
    year.quiet(json!([]));
    // 4: a tag moves, as its policy allows
    year.up.put("base/os", "stable", 31);
    let report = year.round("v1.0.1", "1.0.0", None, &[]);
    assert_eq!(report["notices"][0]["taken"], true);
    // 5: a new version with an additional platform; the first refresh is killed
    year.up
        .put_platforms("team/tools", "1.1.0", 60, &["linux/amd64", "linux/arm64"]);
    year.round("v1.0.1", "1.1.0", Some(4000), &[]);
    // 6: a pinned tag is pushed again
    year.up.put("plain/app", "v1", 41);
    year.quiet(json!(["moved"]));
    // 7: a platform is added to a tag that may move; the first refresh is killed
    year.up
        .put_platforms("base/os", "stable", 31, &["linux/amd64", "linux/arm64"]);
    year.round("v1.0.1", "1.1.0", Some(3000), &[]);
    // 8: the pinned image is removed upstream, but is in the store
    year.up.remove("plain/app", "v1");
    year.quiet(json!(["gone"]));
    // 9: signatures are added
    year.up.sign("team/tools", "1.1.0");
    let report = year.round("v1.0.1", "1.1.0", None, &["--referrers"]);
    assert_eq!(
        report["changes"][0]["newReferrers"]
            .as_array()
            .unwrap()
            .len(),
        1,
        "{report:#}"
    );
    // 10: a version with a missing item is held back
    year.up.put("cluster/server", "v1.2.0", 70);
    year.up.file("cluster.txt", "v1.2.0\n");
    year.quiet(json!(["gone", "newer"]));
    // 11: the missing item and a major version that no policy allows are added; the first refresh
    // is killed
    year.cluster("v1.2.0", 70);
    year.up.put("team/tools", "2.0.0", 80);
    let report = year.round("v1.2.0", "1.1.0", Some(9000), &[]);
    assert_eq!(
        moved(&report),
        Vec::new(),
        "the killed run had written the manifest"
    );
    // 12: a version is added while another tag moves
    year.up.put("team/tools", "1.1.1", 90);
    year.up.put("base/os", "stable", 33);
    year.round("v1.2.0", "1.1.1", None, &[]);
}
