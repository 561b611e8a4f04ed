//! `landfall pull --bundle` downloads directly into a bundle. The bundle has the same bytes as one
//! that `pull` and `pack` make.

use crate::support::faults::{Fault, FaultKind, RequestKind, Rig, Settings, quick_and_wide};
use crate::support::images::{noise, sha256};
use crate::support::library::Digest;
use crate::support::{need, rounds, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The scale of the content: the largest blob has a few MB, and so several frames.
const SCALE: usize = 100;

struct Upstream {
    rig: Rig,
    /// The bundle that `pack` writes for the lock after a `pull` into a store.
    wanted: Vec<u8>,
}

impl Upstream {
    fn new() -> Upstream {
        let rig = Rig::of(SCALE);
        rig.place
            .ok(&["pack", "--store", "stores/first", "-o", "wanted.tar.zst"]);
        let wanted = fs::read(rig.place.path("wanted.tar.zst")).unwrap();
        rig.set_faults([]);
        Upstream { rig, wanted }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.rig.place.path(name)
    }

    /// Runs `pull --bundle OUT` without a store, and returns the JSON report.
    fn pull(&self, exit: i32, out: &str, more: &[&str]) -> Value {
        self.rig.place.json(
            exit,
            &[&["pull", "--store", "none", "--bundle", out][..], more].concat(),
        )
    }

    fn command(&self, out: &str) -> Command {
        let mut command = self.rig.place.command();
        command.args([
            "pull",
            "--store",
            "none",
            "--progress",
            "none",
            "--bundle",
            out,
        ]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Asserts that the bundle has the expected bytes, and that no file `OUT.*` is next to it.
    fn assert_made(&self, out: &str, what: &str) {
        let path = self.path(out);
        assert!(
            fs::read(&path).unwrap() == self.wanted,
            "{what}: the bytes differ from those of pull and pack"
        );
        let folder = fs::read_dir(path.parent().unwrap()).unwrap().flatten();
        let beside: Vec<_> = folder
            .map(|file| file.file_name().to_string_lossy().into_owned())
            .collect();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let left: Vec<_> = beside
            .iter()
            .filter(|other| other.starts_with(&format!("{name}.")))
            .collect();
        assert!(left.is_empty(), "{what}: {left:?} are left");
    }

    /// How many bytes of each blob and file the upstream sent, by path.
    fn sent(&self) -> BTreeMap<String, usize> {
        self.rig.up.settle();
        let mut sent = BTreeMap::new();
        for seen in self
            .rig
            .up
            .seen()
            .iter()
            .filter(|seen| matches!(seen.on, Some(RequestKind::Blob | RequestKind::File)))
        {
            *sent.entry(seen.path.clone()).or_default() += seen.sent;
        }
        sent
    }

    /// The disk usage of the unfinished bundle `out`, in bytes, without its work folder.
    fn on_disk(&self, out: &str) -> usize {
        let partial = self.path(&format!("{out}.partial"));
        if partial.exists() {
            disk_usage(&partial) as usize
        } else {
            0
        }
    }

    /// The size of the content at a path of the upstream.
    fn size(&self, path: &str) -> usize {
        self.rig.up.content(|content| {
            let blob = content.any_blob(path.rsplit('/').next().unwrap());
            blob.or_else(|| content.files.get(path).cloned())
                .unwrap()
                .len()
        })
    }
}

fn status<'a>(report: &'a Value, name: &str) -> &'a str {
    let items = report["items"].as_array().unwrap();
    items
        .iter()
        .find(|item| item["name"].as_str().unwrap().contains(name))
        .unwrap()["status"]
        .as_str()
        .unwrap()
}

fn total(sent: &BTreeMap<String, usize>) -> usize {
    sent.values().sum()
}

fn disk_usage(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::symlink_metadata(path).unwrap();
    let below = fs::read_dir(path).into_iter().flatten().flatten();
    metadata.blocks() * 512 + below.map(|entry| disk_usage(&entry.path())).sum::<u64>()
}

#[test]
fn pull_into_a_bundle_gives_the_bytes_of_pull_and_pack() {
    let up = Upstream::new();
    let report = up.pull(0, "out.tar.zst", &["--jobs", "3"]);
    up.assert_made("out.tar.zst", "at once");
    assert_eq!(report["totals"]["done"], 3, "{report:#}");
    let verified = up.rig.place.json(0, &["verify", "out.tar.zst"]);
    assert_eq!(
        verified["bundle"]["digest"], report["bundle"]["digest"],
        "{verified:#}"
    );
    for (path, sent) in up.sent() {
        assert_eq!(sent, up.size(&path), "{path} was not fetched exactly once");
    }
    assert!(!up.path("none").exists(), "a store was created");
    // a second pull finds the bundle, and sends no request
    up.rig.set_faults([]);
    let again = up.pull(0, "out.tar.zst", &[]);
    assert_eq!(
        (&again["totals"]["present"], &again["totals"]["requests"]),
        (&3.into(), &0.into()),
        "{again:#}"
    );
    assert_eq!(again["bundle"], report["bundle"]);
    up.assert_made("out.tar.zst", "again");
    // with another compression level, the bundle differs, and the pull reuses the content of the
    // existing bundle
    up.rig.place.ok(&[
        "pack",
        "--store",
        "stores/first",
        "-o",
        "nine.tar.zst",
        "--level",
        "9",
    ]);
    up.pull(0, "out.tar.zst", &["--level", "9"]);
    assert_eq!(
        fs::read(up.path("out.tar.zst")).unwrap(),
        fs::read(up.path("nine.tar.zst")).unwrap()
    );
    assert_eq!(
        up.sent().values().sum::<usize>(),
        0,
        "{}",
        up.rig.up.shown()
    );
}

#[test]
fn existing_volumes_are_joined_into_one_bundle() {
    let up = Upstream::new();
    let pack = [
        "pack",
        "--store",
        "stores/first",
        "-o",
        "out.tar.zst",
        "--volume-size",
        "2M",
    ];
    up.rig.place.ok(&pack);
    up.pull(0, "out.tar.zst", &[]);
    assert!(fs::read(up.path("out.tar.zst")).unwrap() == up.wanted);
    assert!(up.rig.up.seen().is_empty(), "{}", up.rig.up.shown());
}

#[test]
fn a_second_pull_signs_the_bundle_without_a_download() {
    if !need(&["ssh-keygen"]) {
        return;
    }
    let up = Upstream::new();
    run(up
        .rig
        .place
        .clean("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f", "key"]));
    let unsigned = up.pull(0, "out.tar.zst", &[]);
    up.rig.set_faults([]);
    let signed = up.pull(0, "out.tar.zst", &["--sign", "key"]);
    assert_eq!(
        up.sent().values().sum::<usize>(),
        0,
        "{}",
        up.rig.up.shown()
    );
    assert_eq!(
        (&unsigned["bundle"]["signed"], &signed["bundle"]["signed"]),
        (&false.into(), &true.into())
    );
    assert_eq!(unsigned["bundle"]["digest"], signed["bundle"]["digest"]);
    up.rig.place.ok(&[
        "pack",
        "--store",
        "stores/first",
        "-o",
        "wanted.tar.zst",
        "--sign",
        "key",
    ]);
    assert!(
        fs::read(up.path("out.tar.zst")).unwrap() == fs::read(up.path("wanted.tar.zst")).unwrap()
    );
    // a pull without --sign keeps the signature of an existing bundle
    let again = up.pull(0, "out.tar.zst", &[]);
    assert_eq!(
        (&again["bundle"]["signer"], &again["totals"]["present"]),
        (&signed["bundle"]["signer"], &3.into())
    );
}

#[test]
fn content_of_the_store_is_not_downloaded() {
    let up = Upstream::new();
    let lock = up.rig.place.read("landfall.lock");
    let report = up.rig.place.json(
        0,
        &["pull", "--store", "stores/first", "--bundle", "out.tar.zst"],
    );
    up.assert_made("out.tar.zst", "from the store");
    assert_eq!(report["totals"]["requests"], 0, "{}", up.rig.up.shown());
    // half of the store is missing, and some of the other blobs are damaged without a change of
    // their file times
    let blobs = up.path("stores/first/blobs/sha256");
    let mut files: Vec<_> = fs::read_dir(&blobs)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    for file in files.iter().step_by(2) {
        fs::remove_file(file).unwrap();
    }
    for file in files.iter().skip(1).step_by(4) {
        let modified = fs::metadata(file).unwrap().modified().unwrap();
        let mut damaged = fs::read(file).unwrap();
        damaged[0] ^= 1;
        fs::write(file, damaged).unwrap();
        fs::File::options()
            .write(true)
            .open(file)
            .unwrap()
            .set_modified(modified)
            .unwrap();
    }
    fs::remove_file(up.path("out.tar.zst")).unwrap();
    up.rig.place.json(
        0,
        &[
            "pull",
            "--store",
            "stores/first",
            "--bundle",
            "out.tar.zst",
            "--rehash",
        ],
    );
    up.assert_made("out.tar.zst", "from half of the store");
    assert_eq!(up.rig.place.read("landfall.lock"), lock);
}

#[test]
fn a_copied_store_is_hashed_with_progress_before_it_is_used() {
    let up = Upstream::new();
    let verified = up.path("stores/first/.landfall/verified");
    let blobs = fs::read_to_string(&verified).unwrap().lines().count();
    for out in [
        &["pack", "-o", "out.tar.zst"],
        &["pull", "--bundle", "out.tar.zst"],
    ] {
        // as in a copied store, whose files have other inodes, no recorded hash applies
        fs::remove_file(&verified).unwrap();
        let mut command = up.rig.place.command();
        let output = command
            .args(out)
            .args(["--store", "stores/first", "--progress", "plain"])
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        let checked = printed
            .lines()
            .find_map(|line| line.strip_prefix("check: "))
            .unwrap_or_else(|| panic!("{printed}"));
        let hashed = fs::read_to_string(&verified).unwrap().lines().count();
        let all = checked.split_once('/').unwrap().0.parse::<usize>().unwrap();
        assert!(
            all > 5 && all == hashed && all <= blobs,
            "{out:?}: {all} of {hashed}, {blobs}: {printed}"
        );
        up.assert_made("out.tar.zst", "from a copied store");
        fs::remove_file(up.path("out.tar.zst")).unwrap();
    }
}

#[test]
fn damaged_content_of_the_store_is_not_used() {
    let up = Upstream::new();
    // only hashing can detect this damage
    let largest = noise(1, 40_000 * SCALE);
    let file = up
        .path("stores/first/blobs/sha256")
        .join(&sha256(&largest)[7..]);
    let modified = fs::metadata(&file).unwrap().modified().unwrap();
    let mut bad = largest;
    bad[1_500_000] ^= 1;
    fs::write(&file, bad).unwrap();
    fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_modified(modified)
        .unwrap();
    up.rig.place.json(
        0,
        &["pull", "--store", "stores/first", "--bundle", "out.tar.zst"],
    );
    up.assert_made("out.tar.zst", "with a damaged store");
}

#[test]
fn if_an_item_is_missing_no_bundle_is_written_and_the_downloads_are_kept() {
    let up = Upstream::new();
    up.rig
        .set_faults([Fault::always(RequestKind::File, FaultKind::Status(404))]);
    let report = up.pull(3, "out.tar.zst", &[]);
    assert_eq!(
        (status(&report, "team/app"), status(&report, "tool.bin")),
        ("done", "failed"),
        "{report:#}"
    );
    assert!(!up.path("out.tar.zst").exists() && up.path("out.tar.zst.partial").exists());
    assert!(
        report.get("bundle").is_none_or(Value::is_null),
        "{report:#}"
    );
    up.rig.set_faults([]);
    let report = up.pull(0, "out.tar.zst", &[]);
    up.assert_made("out.tar.zst", "after the missing file was downloaded");
    assert_eq!(
        (status(&report, "team/app"), status(&report, "tool.bin")),
        ("present", "done"),
        "{report:#}"
    );
    let images = up
        .rig
        .up
        .seen()
        .iter()
        .filter(|seen| seen.on == Some(RequestKind::Blob))
        .count();
    assert_eq!(images, 0, "{}", up.rig.up.shown());

    // an incomplete lock is refused before anything is downloaded
    let lock = up.rig.place.read("landfall.lock");
    let lost = "unresolved:\n- {kind: file, name: \"http://h/gone\", cause: gone}\n";
    up.rig.place.write(
        "landfall.lock",
        lock.replace("\n...\n", &format!("\n{lost}...\n")),
    );
    up.rig.set_faults([]);
    let report = up.pull(3, "lost.tar.zst", &[]);
    assert_eq!(
        (status(&report, "gone"), &report["totals"]["requests"]),
        ("missing", &0.into()),
        "{report:#}"
    );
    assert!(!up.path("lost.tar.zst.partial").exists());
}

#[test]
fn a_pull_of_another_lock_reuses_the_partial_bundle() {
    let up = Upstream::new();
    let whole = up.rig.place.read("landfall.lock");
    // an earlier lock has one image fewer and one more file, which is missing upstream
    let mut lock = up.rig.lock.clone();
    lock.images.remove(0);
    lock.files[0].sidecars.clear();
    let mut gone = lock.files[0].clone();
    gone.name = gone.name.replace("tool.bin", "gone.bin");
    gone.digest = Digest::sha256(b"gone");
    lock.files.push(gone);
    up.rig.place.write("landfall.lock", lock.to_text());
    up.pull(3, "out.tar.zst", &[]);
    up.rig.place.write("landfall.lock", whole);
    up.rig.set_faults([]);
    up.pull(0, "out.tar.zst", &[]);
    up.assert_made("out.tar.zst", "for another lock");
    let base = sha256(&noise(1, 40_000 * SCALE));
    let again: Vec<_> = up
        .sent()
        .into_keys()
        .filter(|path| path.ends_with(&base))
        .collect();
    assert!(again.is_empty(), "{again:?} was fetched again");
}

#[test]
fn a_pull_over_several_connections_gives_the_same_bundle_despite_faults() {
    let mut rig = Rig::of(SCALE);
    rig.limits = quick_and_wide();
    rig.limits.parallel_share = 200_000;
    rig.limits.journal_step = 100_000;
    let wanted = fs::read(rig.place.path("first.bundle")).unwrap();
    let faults = |number: usize| {
        let at = 40_000 + 331_777 * (number % 13);
        match number % 5 {
            0 => vec![],
            1 => vec![Fault::once(RequestKind::Blob, FaultKind::Cut(at)).skip(number % 3)],
            2 => vec![Fault::always(RequestKind::Blob, FaultKind::Cut(at))],
            3 => vec![
                Fault::once(RequestKind::Blob, FaultKind::Corrupt).skip(number % 4),
                Fault::once(RequestKind::File, FaultKind::Cut(at)),
            ],
            _ => vec![
                Fault::once(RequestKind::Blob, FaultKind::RangeLies),
                Fault::once(RequestKind::Blob, FaultKind::RangeDropped).skip(1),
            ],
        }
    };
    let mut wide = 0;
    for number in 0..rounds(10) {
        let out = rig.place.path(format!("wide-{number}.tar.zst"));
        rig.set_faults(faults(number));
        let mut items = rig.pull_bundle(&out);
        let is_faulty = !faults(number).is_empty();
        // after a fault, a request with a range may resume a blob, so only rounds without faults
        // count
        if !is_faulty {
            let seen = rig.up.seen();
            wide += seen.iter().filter(|seen| seen.range.is_some()).count();
        }
        assert_eq!(rig.up.met() > 0, is_faulty, "round {number}");
        if !out.exists() {
            assert!(is_faulty, "round {number}: {items:?}");
            rig.set_faults([]);
            items = rig.pull_bundle(&out);
        }
        assert!(
            fs::read(&out).unwrap() == wanted,
            "round {number}: {items:?}\n{}",
            rig.up.shown()
        );
    }
    assert!(wide > 0, "no blob was downloaded over several connections");
}

/// Runs the command, and kills it once the upstream has sent `after` bytes. Returns whether the
/// command was still running.
fn kill(up: &Upstream, out: &str, after: usize) -> bool {
    let before = up.rig.up.moved();
    let mut child = up.command(out).spawn().unwrap();
    let mut alive = true;
    while alive && up.rig.up.moved() - before < after {
        std::thread::sleep(Duration::from_micros(500));
        alive = child.try_wait().unwrap().is_none();
    }
    let _ = child.kill();
    child.wait().unwrap();
    // what was sent to the killed process is counted before the next process starts
    up.rig.up.settle();
    alive
}

#[test]
fn a_pull_into_a_bundle_is_resumed_after_a_kill_at_any_moment() {
    const FRAME: usize = 1 << 20;
    let up = Upstream::new();
    let pace = Some((64_000, Duration::from_millis(3)));
    up.rig.up.set(Settings {
        pace,
        ..Settings::default()
    });
    let before = up.rig.up.moved();
    up.pull(0, "whole.tar.zst", &[]);
    let bytes = up.rig.up.moved() - before;
    let large = up.sent().values().filter(|size| **size > 100_000).count();
    let kills = rounds(12);
    let mut met = 0;
    let mut kept = 0;
    for number in 0..kills {
        let out = format!("killed-{number}.tar.zst");
        up.rig.set_faults([]);
        // the fractional parts of multiples of the golden ratio are evenly distributed
        let first = (number as f64 * 0.618_033_988_75).fract();
        let times = [first, (first * 7.0).fract() * (1.0 - first)];
        let hit = times
            .iter()
            .filter(|part| kill(&up, &out, (bytes as f64 * *part) as usize))
            .count();
        met += usize::from(hit > 0);
        let on_disk = up.on_disk(&out);
        kept += usize::from(on_disk > 0);
        let before = total(&up.sent());
        up.pull(0, &out, &[]);
        up.assert_made(&out, &out);
        // of what was on disk, only the incomplete frame of each large blob is sent again
        let sent = total(&up.sent()) - before;
        assert!(
            sent + on_disk <= bytes + large * FRAME,
            "{out}: {sent} bytes sent, and {on_disk} on disk\n{}",
            up.rig.up.shown()
        );
        fs::remove_file(up.path(&out)).unwrap();
    }
    assert!(kept > 0, "no killed process left content");
    assert!(
        met * 2 > kills,
        "only {met} of {kills} rounds met a running process"
    );
}

#[test]
fn content_of_the_partial_file_is_not_downloaded_again() {
    let up = Upstream::new();
    let base = sha256(&noise(1, 40_000 * SCALE));
    // the download of the largest blob breaks off after its third frame, and further requests for
    // this blob are refused
    let cut = Fault::always(RequestKind::Blob, FaultKind::Cut(3_300_000)).at(&base);
    let deny = Fault::always(RequestKind::Blob, FaultKind::Status(403))
        .at(&base)
        .skip(1);
    up.rig.set_faults([deny, cut]);
    up.pull(3, "out.tar.zst", &[]);
    up.rig.set_faults([]);
    up.pull(0, "out.tar.zst", &[]);
    up.assert_made("out.tar.zst", "after a cut");
    let requests: Vec<_> = up
        .rig
        .up
        .seen()
        .into_iter()
        .filter(|seen| seen.on == Some(RequestKind::Blob))
        .collect();
    assert!(
        requests.iter().all(|seen| seen.path.ends_with(&base)),
        "{}",
        up.rig.up.shown()
    );
    let ranges: Vec<_> = requests
        .iter()
        .map(|seen| seen.range.unwrap_or(0))
        .collect();
    assert!(
        ranges.iter().all(|from| *from >= 3_000_000),
        "{}",
        up.rig.up.shown()
    );
}

#[test]
fn a_damaged_partial_file_is_detected() {
    let up = Upstream::new();
    let partial = up.path("out.tar.zst.partial");
    let rest = [Fault::always(RequestKind::File, FaultKind::Status(404))];
    type Damage = fn(&mut fs::File, &Path);
    let damages: [(&str, Damage); 5] = [
        ("a bit", |file, _| {
            file.seek(SeekFrom::Start(2_000_000)).unwrap();
            let mut byte = [0];
            file.read_exact(&mut byte).unwrap();
            file.seek(SeekFrom::Start(2_000_000)).unwrap();
            file.write_all(&[byte[0] ^ 4]).unwrap();
        }),
        ("cut", |file, _| file.set_len(3_000_000).unwrap()),
        ("emptied", |file, _| file.set_len(0).unwrap()),
        ("no journal", |_, work| {
            fs::remove_file(work.join("journal")).unwrap()
        }),
        ("a journal with wrong content", |_, work| {
            let journal = work.join("journal");
            let journal_text = fs::read_to_string(&journal)
                .unwrap()
                .replace(" packed ", " packed 1")
                .replace(" has 0 ", " has 0 99");
            fs::write(journal, journal_text + "not a line\nsha256:00 has 1").unwrap();
        }),
    ];
    for (what, damage) in damages {
        up.rig.set_faults(rest.clone());
        up.pull(3, "out.tar.zst", &[]);
        let mut file = fs::File::options()
            .read(true)
            .write(true)
            .open(&partial)
            .unwrap();
        damage(&mut file, &up.path("out.tar.zst.partial.work"));
        up.rig.set_faults([]);
        up.pull(0, "out.tar.zst", &[]);
        up.assert_made("out.tar.zst", what);
        fs::remove_file(up.path("out.tar.zst")).unwrap();
    }
}

#[test]
fn a_bundle_that_does_not_fit_on_the_disk_leaves_no_file() {
    let up = Upstream::new();
    up.rig.place.write(
        "huge.lock",
        format!(
            "version: 1\nfiles:\n- name: https://files.example/huge\n  digest: {}\n  \
             size: 9007199254740991\n...\n",
            sha256(b"huge")
        ),
    );
    let refuse = || {
        let refused = up.pull(1, "B", &["--lock", "huge.lock"]);
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("the bundle may need"), "{message}");
    };
    refuse();
    for name in ["B", "B.partial", "B.partial.work"] {
        assert!(!up.path(name).exists(), "{name}");
    }
    // what an earlier run has downloaded is kept
    fs::create_dir(up.path("B.partial.work")).unwrap();
    refuse();
    assert!(up.path("B.partial").exists() && up.path("B.partial.work").exists());
}

#[test]
fn two_processes_do_not_write_the_same_bundle() {
    let up = Upstream::new();
    up.rig.set_faults([Fault::once(
        RequestKind::Blob,
        FaultKind::Hold(Duration::from_hours(1)),
    )]);
    let mut first = up.command("out.tar.zst").spawn().unwrap();
    while up.rig.up.met() == 0 {
        assert!(first.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(1));
    }
    let report = up.pull(1, "out.tar.zst", &[]);
    let message = report["error"]["message"].as_str().unwrap();
    assert!(message.contains("another process"), "{message}");
    first.kill().unwrap();
    first.wait().unwrap();
    up.pull(0, "out.tar.zst", &[]);
    up.assert_made("out.tar.zst", "after the first");
}

#[test]
fn a_dry_run_downloads_nothing() {
    let up = Upstream::new();
    let report = up.pull(0, "out.tar.zst", &["--dry-run"]);
    assert!(
        report["needed_bytes"].as_u64().unwrap() >= up.wanted.len() as u64,
        "{report:#}"
    );
    assert_eq!(
        (&report["totals"]["skipped"], &report["totals"]["requests"]),
        (&3.into(), &0.into())
    );
    let store = up
        .rig
        .place
        .json(0, &["pull", "--store", "stores/first", "--dry-run"]);
    assert_eq!(
        (&store["totals"]["present"], &store["needed_bytes"]),
        (&3.into(), &0.into()),
        "{store:#}"
    );
    let empty = up
        .rig
        .place
        .json(0, &["pull", "--store", "none", "--dry-run"]);
    assert_eq!(empty["totals"]["skipped"], 3, "{empty:#}");
    assert!(up.rig.up.seen().is_empty() && !up.path("none").exists());
    assert!(!up.path("out.tar.zst.partial").exists());
}

#[test]
fn a_dry_run_reports_what_archives_have() {
    let up = Upstream::new();
    let archives = |report: &Value| {
        let one = &report["archives"][0];
        (one["blobs"].as_u64(), one["bytes"].as_u64())
    };
    let dry = up.pull(0, "out.tar.zst", &["--from", "wanted.tar.zst", "--dry-run"]);
    let printed = |from: &[&str]| {
        let plan = [
            "pull",
            "--store",
            "none",
            "--bundle",
            "out.tar.zst",
            "--dry-run",
        ];
        up.rig.place.ok(&[&plan[..], from].concat())
    };
    let nothing = "to download       at most 0 B\n";
    assert!(printed(&["--from", "wanted.tar.zst"]).contains(nothing));
    assert!(!printed(&[]).contains(nothing));
    assert!(up.rig.up.seen().is_empty());
    let real = up.pull(0, "out.tar.zst", &["--from", "wanted.tar.zst"]);
    assert_eq!(archives(&dry), archives(&real), "{dry:#}");
    assert!(archives(&dry).0.unwrap() > 0, "{dry:#}");
    // the earlier bundle has everything
    assert!(printed(&[]).contains(nothing));
    // an archive that does not exist
    up.pull(2, "new.tar.zst", &["--from", "none.tar", "--dry-run"]);
}

#[test]
fn the_work_folder_contains_no_copies_of_layers() {
    let up = Upstream::new();
    up.rig
        .set_faults([Fault::always(RequestKind::File, FaultKind::Status(404))]);
    up.pull(3, "out.tar.zst", &[]);
    let partial = up.path("out.tar.zst.partial");
    let work = up.path("out.tar.zst.partial.work");
    // apart from the journal, the folder has only manifests and configs; the layers have some MB
    let spool = disk_usage(&work);
    assert!(
        spool < 500_000,
        "{spool} bytes in addition to a partial file of {}",
        disk_usage(&partial)
    );
    // packing to the same name also removes the partial file
    up.rig
        .place
        .ok(&["pack", "--store", "stores/first", "-o", "out.tar.zst"]);
    up.assert_made("out.tar.zst", "packed to the same name");
}
