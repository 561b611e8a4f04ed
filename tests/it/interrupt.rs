//! Ctrl-C: a command ends with 130 even while it hashes, and the next run completes the store.

use crate::support::faults::{Rig, Settings};
use crate::support::process::Guard;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Whether the process has the file open.
pub(crate) fn has_open(pid: u32, file: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    open.filter_map(|link| fs::read_link(link.path()).ok())
        .any(|target| target == file)
}

#[test]
fn a_command_that_is_interrupted_while_hashing_ends_with_130() {
    let rig = Rig::new();
    rig.set_faults([]);
    let digest = rig.lock.files[0].digest.hex();
    let blob = rig.store("first").join("blobs/sha256").join(digest);
    let up = rig.up.address.clone();
    let down = rig.down.address.clone();
    let verbs: [&[&str]; 8] = [
        &["pull"],
        &["pull", "--rehash"],
        &["pull", "--dry-run"],
        &["pull", "--bundle", "B"],
        &["pack", "-o", "B"],
        &["push", "--to", &down],
        &["mirror", "--lock", "landfall.lock", "--to", &down],
        &["export", "files", "-o", "out"],
    ];
    for verb in verbs {
        // a sparse file, which takes minutes to hash
        fs::File::create(&blob).unwrap().set_len(1 << 38).unwrap();
        let mut command = rig.place.command();
        command.args(verb).args([
            "--store",
            "stores/first",
            "--plain-http",
            &up,
            "--plain-http",
            &down,
        ]);
        let mut guard = Guard::start(command);
        let pid = guard.pid();
        let blob = blob.canonicalize().unwrap();
        guard.wait_until("an open blob", || has_open(pid, &blob));
        guard.signal("INT");
        let printed = guard.log();
        assert_eq!(guard.wait(), Some(130), "{verb:?}: {printed}");
    }
    fs::remove_file(&blob).unwrap();
    rig.place
        .ok(&["pull", "--store", "stores/first", "--plain-http", &up]);
    rig.assert_same("first", "another run");
}

#[test]
fn an_interrupted_command_reports_the_contacted_hosts() {
    let rig = Rig::of(20);
    rig.set_faults([]);
    rig.up.set(Settings {
        pace: Some((1000, Duration::from_millis(20))),
        ..Settings::default()
    });
    let mut command = rig.place.command();
    command.args(["pull", "--store", "new", "--report", "report.json"]);
    command.args(["--plain-http", &rig.up.address]);
    let before = rig.up.moved();
    let mut guard = Guard::start(command);
    guard.wait_until("content", || rig.up.moved() > before + 20_000);
    guard.signal("INT");
    let printed = guard.log();
    assert_eq!(guard.wait(), Some(130), "{printed}");
    let report: Value = serde_json::from_str(&rig.place.read("report.json")).unwrap();
    let hosts = report["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 1, "{report:#}");
    assert!(hosts[0]["requests"].as_u64() > Some(0), "{report:#}");
}
