//! Several runners share one lock with `--shard`: each runner transfers its part once, a killed
//! runner is run again, and the result equals that of a single run.

use crate::support::dice::Dice;
use crate::support::faults::{Content, RequestKind, Rig, Settings};
use crate::support::images::sha256;
use crate::support::library::{Digest, assign_shards, transfer_cost};
use crate::support::object_store::{BUCKET, ObjectStore};
use crate::support::{Place, free_listener, rounds};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SHARDS: usize = 8;

/// The command that pulls the shard `number` into `store`.
fn pull(rig: &Rig, store: &str, number: usize) -> Command {
    let mut command = rig.place.command();
    command.args([
        "pull",
        "--store",
        store,
        "--output",
        "json",
        "--progress",
        "none",
        "--shard",
    ]);
    command
        .arg(format!("{number}/{SHARDS}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn report(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{printed}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn names(report: &Value) -> BTreeSet<String> {
    let items = report["items"].as_array().unwrap().iter();
    items
        .map(|item| item["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Maps each digest of the lock to the number of the shard that transfers it.
fn owners(rig: &Rig) -> BTreeMap<Digest, usize> {
    let parts = rig.lock.each_entry().flat_map(|entry| entry.parts);
    let costs: BTreeMap<Digest, u64> = parts
        .map(|part| (part.descriptor.digest, transfer_cost(part.descriptor.size)))
        .collect();
    assign_shards(costs, SHARDS).into_iter().collect()
}

/// The items that are incomplete in the store `stores/shards`.
fn lacking(rig: &Rig) -> BTreeSet<String> {
    let store = rig.store("shards").join("blobs/sha256");
    let lacking = rig.lock.each_entry().filter(|entry| {
        entry
            .parts
            .iter()
            .any(|part| part.is_stored() && !store.join(part.descriptor.digest.hex()).exists())
    });
    lacking.map(|entry| entry.name).collect()
}

/// The number of requests for each blob, manifest and file, by its digest.
fn requests_by_digest(rig: &Rig) -> BTreeMap<Digest, usize> {
    let mut counts = BTreeMap::new();
    for seen in rig.up.seen() {
        let digest = match seen.on {
            Some(RequestKind::Blob | RequestKind::Manifest) => {
                seen.path.rsplit('/').next().unwrap().to_owned()
            }
            Some(RequestKind::File) => rig.up.content(|content| sha256(&content.files[&seen.path])),
            _ => continue,
        };
        *counts.entry(digest.parse().unwrap()).or_default() += 1;
    }
    counts
}

/// Kills the runners in `kills`. Each is killed once the given share of all content was
/// transferred, or when all runners that are not in `kills` have ended. Returns the runners that
/// are not in `kills`.
fn kill(
    mut running: BTreeMap<usize, Child>,
    kills: &[(usize, f64)],
    moved: impl Fn() -> f64,
) -> BTreeMap<usize, Child> {
    let mut kills = kills.to_vec();
    while !kills.is_empty() {
        let share = moved();
        let mut others = running
            .iter_mut()
            .filter(|(number, _)| !kills.iter().any(|(one, _)| one == *number));
        let all_done = others.all(|(_, child)| child.try_wait().unwrap().is_some());
        kills.retain(|(number, at)| {
            let is_time = share >= *at || all_done;
            if is_time {
                let mut child = running.remove(number).unwrap();
                let _ = child.kill();
                child.wait().unwrap();
            }
            !is_time
        });
        std::thread::sleep(Duration::from_micros(500));
    }
    running
}

#[test]
fn eight_shards_pull_everything_once_and_killed_shards_run_again() {
    let rig = Rig::of(4);
    let whole = rig.up.moved();
    // transfers are slow, so that shards are killed during a transfer and leave partial content
    rig.up.set(Settings {
        pace: Some((8000, Duration::from_millis(8))),
        ..Settings::default()
    });
    rig.set_faults([]);
    let before = rig.up.moved();
    // shard 7 never gets an answer from upstream, so it has transferred nothing when it is killed
    let mute = free_listener();
    let up = &rig.up.address;
    let address = mute.local_addr().unwrap();
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nupstreams: {{\"{up}\": {{mirror: \"http://{address}\"}}}}\n"
    );
    rig.place.write("mute.yaml", site);
    let begin = |number: usize| {
        let mut command = pull(&rig, "stores/shards", number);
        let command = if number == 7 {
            command.args(["--site", "mute.yaml"])
        } else {
            &mut command
        };
        (number, command.spawn().unwrap())
    };
    let kills = [(7, 0.1), (2, 0.35), (5, 0.6)];
    let killed = kills.map(|(number, _)| number);
    let running = kill((1..=SHARDS).map(begin).collect(), &kills, || {
        (rig.up.moved() - before) as f64 / whole as f64
    });
    let whole_bytes: BTreeMap<String, u64> = rig
        .lock
        .each_entry()
        .map(|entry| (entry.name.clone(), entry.size()))
        .collect();
    for (number, child) in running {
        let report = report(child);
        assert_eq!(
            report["shard"],
            serde_json::json!({"number": number, "of": SHARDS})
        );
        for item in report["items"].as_array().unwrap() {
            let is_whole =
                item["bytes"].as_u64() == whole_bytes.get(item["name"].as_str().unwrap()).copied();
            let reported = item["reason"]
                .as_str()
                .is_some_and(|why| why.ends_with("other shards have the rest"));
            assert!(is_whole != reported, "shard {number}: {item:#}");
        }
    }
    rig.up.wait_for_closed_connections();

    // missing items are detected and reported, and the layout lists only complete ones
    let missing = lacking(&rig);
    assert!(
        !missing.is_empty(),
        "the shard that was never answered transferred nothing"
    );
    let refused = rig.place.json(
        3,
        &["pack", "--store", "stores/shards", "-o", "early.bundle"],
    );
    assert_eq!(refused["status"], "refused");
    let items = refused["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["status"] == "missing");
    let reported: BTreeSet<String> = items
        .map(|item| item["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(reported, missing, "{refused:#}");
    let index: Value = serde_json::from_str(&rig.place.read("stores/shards/index.json")).unwrap();
    for named in index["manifests"].as_array().unwrap() {
        let name = named["annotations"]["org.opencontainers.image.ref.name"]
            .as_str()
            .unwrap();
        assert!(
            !missing.iter().any(|missing| missing.ends_with(name)),
            "{name} is listed and incomplete"
        );
    }

    for number in &killed {
        report(pull(&rig, "stores/shards", *number).spawn().unwrap());
    }
    let owners = owners(&rig);
    let counts = requests_by_digest(&rig);
    for (digest, owner) in &owners {
        // content that is computed from the lock is never requested
        let times = counts.get(digest).copied().unwrap_or_default();
        let limit = if killed.contains(owner) { 2 } else { 1 };
        assert!(
            times <= limit,
            "{digest} of shard {owner} was requested {times} times\n{}",
            rig.up.shown()
        );
    }
    assert!(
        counts.keys().all(|digest| owners.contains_key(digest)),
        "{counts:?}"
    );

    rig.assert_same("shards", "eight shards");
    rig.place
        .ok(&["pack", "--store", "stores/shards", "-o", "shards.tar.zst"]);
    rig.place
        .ok(&["pack", "--store", "stores/first", "-o", "single.tar.zst"]);
    assert!(rig.place.read_bytes("shards.tar.zst") == rig.place.read_bytes("single.tar.zst"));
    assert_eq!(
        rig.place.read("stores/shards/index.json"),
        rig.place.read("stores/first/index.json")
    );
    let text = rig
        .place
        .ok(&["pull", "--store", "stores/shards", "--shard", "2/8"]);
    assert!(
        text.starts_with("shard 2/8: pulled its part of ") && text.contains("0 B in 0 requests"),
        "{text}"
    );
}

#[test]
fn eight_shards_upload_everything_once_although_some_are_killed() {
    let rig = Rig::of(250);
    let whole = rig.up.moved();
    let owners = owners(&rig);
    rig.up.set(Settings {
        pace: Some((250_000, Duration::from_millis(4))),
        ..Settings::default()
    });
    rig.place
        .ok(&["pack", "--store", "stores/first", "-o", "single.tar.zst"]);
    let single = rig.place.read_bytes("single.tar.zst");
    let seed = std::env::var("PROPTEST_RNG_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(17);
    let mut dice = Dice(seed);
    for round in 0..rounds(2) {
        let objects = ObjectStore::start();
        objects.introduce_to(&rig.place);
        rig.set_faults([]);
        let before = rig.up.moved();
        let store = format!("s3://{BUCKET}/fleet");
        let mut numbers: Vec<usize> = (1..=SHARDS).collect();
        let kills = [(); 3].map(|()| {
            let number = numbers.remove(dice.roll(numbers.len()));
            (number, dice.roll(100) as f64 / 100.0)
        });
        let what = format!("seed {seed}, round {round}, kills {kills:?}");
        let running =
            (1..=SHARDS).map(|number| (number, pull(&rig, &store, number).spawn().unwrap()));
        let others = kill(running.collect(), &kills, || {
            (rig.up.moved() - before) as f64 / whole as f64
        });
        others.into_values().for_each(|child| drop(report(child)));
        for (number, _) in kills {
            report(pull(&rig, &store, number).spawn().unwrap());
        }
        // the number of requests for each digest and kind of request: an upload of a whole object,
        // an upload of one part, or the completion of an upload in parts
        let mut sent: BTreeMap<(Digest, String), usize> = BTreeMap::new();
        for request in objects.requests() {
            let Some(digest) = request.key.strip_prefix("fleet/blobs/") else {
                continue;
            };
            let digest: Digest = digest.replace('/', ":").parse().unwrap();
            let part = request
                .query
                .split('&')
                .find(|word| word.starts_with("partNumber="));
            let kind = match (request.method.as_str(), part) {
                ("PUT", Some(part)) => part.to_owned(),
                ("PUT", None) => "whole".to_owned(),
                ("POST", _) if request.query.contains("uploadId=") => "completed".to_owned(),
                _ => continue,
            };
            *sent.entry((digest, kind)).or_default() += 1;
        }
        assert!(
            sent.keys().any(|(_, kind)| kind == "completed"),
            "at least one object is uploaded in parts"
        );
        for ((digest, kind), times) in &sent {
            let owner = owners[digest];
            let limit = if kills.iter().any(|(number, _)| *number == owner) {
                2
            } else {
                1
            };
            assert!(
                *times <= limit,
                "{what}: {kind} of {digest}, of shard {owner}, was sent {times} times"
            );
        }
        let uploaded: BTreeSet<Digest> = sent.into_keys().map(|(digest, _)| digest).collect();
        let parts = rig.lock.each_entry().flat_map(|entry| entry.parts);
        let wanted: BTreeSet<Digest> = parts
            .filter_map(|part| part.is_stored().then_some(part.descriptor.digest))
            .collect();
        assert!(uploaded.is_superset(&wanted), "{what}");
        rig.place
            .ok(&["pack", "--store", &store, "-o", "shards.tar.zst"]);
        assert!(
            rig.place.read_bytes("shards.tar.zst") == single,
            "{what}: the bundle differs from that of a single run"
        );
    }
}

#[test]
fn shards_of_push_and_mirror_deliver_each_item_once_and_shards_of_verify_split_a_bundle() {
    let rig = Rig::new();
    let to = rig.down.address.clone();
    let all: BTreeSet<String> = rig.lock.each_entry().map(|entry| entry.name).collect();
    for args in [
        [
            "push",
            "--store",
            "stores/first",
            "--lock",
            "landfall.lock",
            "--to",
            &to,
        ],
        [
            "mirror",
            "--store",
            "stores/mirrored",
            "--lock",
            "landfall.lock",
            "--to",
            &to,
        ],
    ] {
        rig.down.content(|content| *content = Content::default());
        rig.set_faults([]);
        let mut delivered = Vec::new();
        // shard 1, which writes the list of delivered locks, runs neither first nor last
        for number in [3, 1, 2] {
            let report = rig.place.json(
                0,
                &[&args[..], &["--shard", &format!("{number}/3")]].concat(),
            );
            assert_eq!(report["shard"]["number"], number);
            delivered.extend(names(&report));
        }
        delivered.sort();
        assert_eq!(
            delivered,
            Vec::from_iter(all.clone()),
            "each item belongs to one shard"
        );
        rig.assert_arrived(args[0]);
        let mut sent = BTreeSet::new();
        for seen in rig
            .down
            .seen()
            .iter()
            .filter(|seen| seen.on == Some(RequestKind::Upload))
        {
            let repository = seen.path.split("/blobs/").next().unwrap().to_owned();
            let is_first = seen.digest.is_none() || sent.insert((repository, seen.digest.clone()));
            assert!(
                is_first,
                "{} was sent twice\n{}",
                seen.path,
                rig.down.shown()
            );
        }
        let lists = rig.down.seen();
        let lists = lists.iter().filter(|seen| {
            seen.method == "PUT" && seen.path.ends_with("/landfall/locks/manifests/latest")
        });
        assert_eq!(lists.count(), 1, "{}", rig.down.shown());
    }

    let verify = |bundle: &str, number: usize| {
        let mut command = rig.place.command();
        command.args([
            "verify",
            bundle,
            "--shard",
            &format!("{number}/3"),
            "--progress",
            "none",
        ]);
        let output = command.output().unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    for number in 1..=3 {
        let (code, printed) = verify("first.bundle", number);
        let begins = format!("shard {number}/3: first.bundle: its part is consistent, ");
        assert!(
            code == 0 && printed.starts_with(&begins) && printed.contains("its part of "),
            "{printed}"
        );
    }
    let mut bytes = rig.place.read_bytes("first.bundle");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    rig.place.write("damaged.bundle", bytes);
    let mut codes = [1, 2, 3].map(|number| verify("damaged.bundle", number).0);
    codes.sort_unstable();
    assert_eq!(codes, [0, 0, 4], "only one shard contains the damage");
}

#[test]
fn environment_variables_alone_select_no_shard() {
    let place = Place::new();
    place.write("landfall.lock", "version: 1\n");
    let run = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = place.command();
        let output = command
            .args(args)
            .args(["--progress", "none"])
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        (output.status.code().unwrap(), printed)
    };
    let ci = [
        ("JOB_COMPLETION_INDEX", "1"),
        ("LANDFALL_SHARDS", "4"),
        ("LANDFALL_SHARD", "2/4"),
    ];
    let (code, printed) = run(&["pull", "--store", "s"], &ci);
    assert!(code == 0 && !printed.contains("shard"), "{printed}");
    let (code, printed) = run(&["pull", "--store", "s", "--shard", "auto"], &ci);
    assert!(
        code == 0 && printed.contains("shard 2/4: pulled its part of nothing"),
        "{printed}"
    );
    for (args, words) in [
        (
            &["pull", "--shard", "0/8"][..],
            "'0/8' is not a shard: write I/N",
        ),
        (
            &["pull", "--shard", "auto"],
            "no environment variable names the shard",
        ),
        (
            &["pull", "--shard", "1/2", "--bundle", "b"],
            "cannot be used with",
        ),
        (
            &["mirror", "-f", "m.yaml", "--to", "r.test", "--shard", "1/2"],
            "--shard needs one lock that all runners share",
        ),
        (
            &["push", "--to", "r.test", "--shard", "1/2", "--receipt", "r"],
            "cannot be used with",
        ),
        (
            &["push", "--to", "r.test", "--shard", "1/2", "--prune"],
            "cannot be used with",
        ),
        (
            &[
                "push",
                "--to",
                "r.test",
                "--shard",
                "1/2",
                "--all-or-nothing",
            ],
            "cannot be used with",
        ),
    ] {
        let (code, printed) = run(args, &[]);
        assert!(code == 2 && printed.contains(words), "{args:?}: {printed}");
    }
}
