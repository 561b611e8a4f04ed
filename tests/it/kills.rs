//! Commands are killed with `kill -9` at many positions and run again. The result is the same as
//! without a kill, and no complete blob is transferred again.

use crate::support::faults::{Content, RequestKind, Rig, Settings};
use crate::support::{rounds, spread_kills};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A rig with 800 kB of content, whose transfer takes about 200 ms.
pub fn slow() -> Rig {
    let rig = Rig::of(8);
    let pace = Some((16_000, Duration::from_millis(6)));
    for faults in [&rig.up, &rig.down] {
        faults.set(Settings {
            pace,
            ..Settings::default()
        });
    }
    rig
}

fn command(rig: &Rig, args: &[&str]) -> Command {
    let mut command = rig.place.command();
    command
        .args(args)
        .args(["--lock", "landfall.lock", "--progress", "none"]);
    for faults in [&rig.up, &rig.down] {
        command.args(["--plain-http", &faults.address]);
    }
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The number of body bytes that the servers transferred.
pub fn moved(rig: &Rig) -> usize {
    rig.up.moved() + rig.down.moved()
}

/// Runs the command, and kills it once `after` bytes were transferred. Returns whether the command
/// was still running.
pub fn kill(rig: &Rig, mut command: Command, after: usize) -> bool {
    let before = moved(rig);
    let mut child = command.spawn().unwrap();
    let mut alive = true;
    while alive && moved(rig) - before < after {
        std::thread::sleep(Duration::from_micros(500));
        alive = child.try_wait().unwrap().is_none();
    }
    let _ = child.kill();
    child.wait().unwrap();
    rig.up.wait_for_closed_connections();
    rig.down.wait_for_closed_connections();
    alive
}

pub fn finish(mut command: Command, what: &str) {
    let output = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {printed}");
}

/// The blobs of a store by digest: `None` if complete, or the number of bytes so far.
pub fn blob_progress(store: &Path) -> BTreeMap<String, Option<u64>> {
    let list = |folder: &str| {
        std::fs::read_dir(store.join(folder))
            .into_iter()
            .flatten()
            .flatten()
    };
    let name = |file: &std::fs::DirEntry| file.file_name().to_string_lossy().into_owned();
    let partial = list(".landfall/partial").map(|file| {
        let digest = name(&file).replacen('-', ":", 1);
        (digest, Some(file.metadata().unwrap().len()))
    });
    let whole = list("blobs/sha256").map(|file| (format!("sha256:{}", name(&file)), None));
    partial.chain(whole).collect()
}

/// Asserts that `gc` lists every file that a kill left in a store.
fn assert_gc_names_all(rig: &Rig, store: &str) {
    rig.place.write("empty.lock", "version: 1\n");
    let store = format!("stores/{store}");
    let report = rig.place.json(
        0,
        &["gc", "--dry-run", "--lock", "empty.lock", "--store", &store],
    );
    let own = ["oci-layout", "index.json", "verified", "in-use", "lock"];
    let files = walk(&rig.place.path(&store))
        .into_iter()
        .filter(|name| !own.contains(&name.as_str()));
    assert_eq!(
        report["removed"].as_array().unwrap().len(),
        files.count(),
        "{store}: {report:#}"
    );
    assert!(
        report["strange"].as_array().unwrap().is_empty(),
        "{store}: {report:#}"
    );
}

/// The names of all files under a folder.
fn walk(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let under = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => walk(&entry.path()),
        false => vec![entry.file_name().to_string_lossy().into_owned()],
    };
    entries.flat_map(under).collect()
}

/// Asserts that complete blobs were not requested again, and that partial ones were requested only
/// from the first missing byte.
pub fn assert_resumed(rig: &Rig, stood: &BTreeMap<String, Option<u64>>, what: &str) {
    // files are requested by their URLs, and blobs by their digests
    let files: BTreeMap<&str, String> = rig
        .lock
        .files
        .iter()
        .map(|file| {
            let name = file.name.rsplit('/').next().unwrap();
            (name, file.digest.to_string())
        })
        .collect();
    for seen in rig.up.seen() {
        let end = seen.path.rsplit('/').next().unwrap();
        let digest = match seen.on {
            Some(RequestKind::Blob) => end,
            Some(RequestKind::File) if files.contains_key(end) => &files[end],
            _ => continue,
        };
        match stood.get(digest) {
            None | Some(Some(0)) => {}
            Some(Some(some)) => {
                assert_eq!(
                    seen.range,
                    Some(*some as usize),
                    "{what}: {digest}\n{}",
                    rig.up.shown()
                );
            }
            Some(None) => panic!("{what}: {digest} was complete\n{}", rig.up.shown()),
        }
    }
}

/// The number of bytes that `work` transfers.
fn measured(rig: &Rig, work: impl FnOnce()) -> usize {
    let before = moved(rig);
    work();
    moved(rig) - before
}

#[test]
fn a_killed_pull_is_resumed() {
    let rig = slow();
    let pull = |store: &str| command(&rig, &["pull", "--store", &format!("stores/{store}")]);
    let bytes = measured(&rig, || finish(pull("whole"), "whole"));
    let mut whole = 0;
    let mut partial = 0;
    spread_kills(rounds(12), bytes, |number, after| {
        let store = format!("killed-{number}");
        let met = kill(&rig, pull(&store), after);
        let stood = blob_progress(&rig.store(&store));
        whole += stood.values().filter(|some| some.is_none()).count();
        if rig.store(&store).exists() {
            assert_gc_names_all(&rig, &store);
        }
        partial += stood
            .values()
            .filter(|some| some.is_some_and(|some| some > 0))
            .count();
        rig.set_faults([]);
        finish(pull(&store), &store);
        assert_resumed(&rig, &stood, &store);
        rig.assert_same(&store, &store);
        met
    });
    assert!(
        whole > 0 && partial > 0,
        "the kills left {whole} whole and {partial} partial blobs"
    );
}

#[test]
fn a_killed_push_is_resumed() {
    let rig = slow();
    let to = rig.down.address.clone();
    let push = || command(&rig, &["push", "--store", "stores/first", "--to", &to]);
    let bytes = measured(&rig, || finish(push(), "whole"));
    spread_kills(rounds(12), bytes, |number, after| {
        let what = format!("push {number}");
        rig.down.content(|content| *content = Content::default());
        let met = kill(&rig, push(), after);
        let stood: BTreeSet<_> = rig
            .down
            .content(|content| content.blobs.keys().cloned().collect());
        rig.set_faults([]);
        finish(push(), &what);
        for seen in rig
            .down
            .seen()
            .iter()
            .filter(|seen| seen.on == Some(RequestKind::Upload))
        {
            let repository = seen
                .path
                .strip_prefix("/v2/")
                .unwrap()
                .split("/blobs/")
                .next()
                .unwrap();
            let key = (repository.to_owned(), seen.digest.clone().unwrap());
            assert!(
                !stood.contains(&key),
                "{what}: {key:?} was complete\n{}",
                rig.down.shown()
            );
        }
        rig.assert_arrived(&what);
        met
    });
}

#[test]
fn a_killed_mirror_is_resumed() {
    let rig = slow();
    let to = rig.down.address.clone();
    let mirror = |store: &str| {
        command(
            &rig,
            &["mirror", "--store", &format!("stores/{store}"), "--to", &to],
        )
    };
    let bytes = measured(&rig, || finish(mirror("whole"), "whole"));
    spread_kills(rounds(12), bytes, |number, after| {
        let store = format!("mirrored-{number}");
        rig.down.content(|content| *content = Content::default());
        let met = kill(&rig, mirror(&store), after);
        let stood = blob_progress(&rig.store(&store));
        rig.set_faults([]);
        finish(mirror(&store), &store);
        assert_resumed(&rig, &stood, &store);
        rig.assert_arrived(&store);
        rig.assert_same(&store, &store);
        met
    });
}
