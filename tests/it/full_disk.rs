//! A full disk: a clear error, an intact store, and another run that continues.

use crate::support::faults::{Fault, FaultKind, RequestKind, Rig};
use crate::support::git::{GitServer, history};
use crate::support::{Place, need, skip, test_name};
use std::process::Command;
use std::time::Duration;

/// Runs a script in its own mount namespace, in which `small` is a tmpfs of this many KiB. If this
/// machine allows no such mount, returns `None`, and the test counts as skipped.
fn on_small_disk(place: &Place, kib: usize, script: &str) -> Option<String> {
    let mount = "mount -t tmpfs -o size=1m none /tmp";
    let possible = Command::new("unshare")
        .args(["-m", "sh", "-c", mount])
        .output();
    if !possible.is_ok_and(|output| output.status.success()) {
        skip(&test_name(), "this machine allows no mount of a tmpfs");
        return None;
    }
    std::fs::create_dir_all(place.path("small")).unwrap();
    let script = format!("set -u\nmount -t tmpfs -o size={kib}k none small || exit 99\n{script}");
    let mut command = place.clean("unshare");
    command
        .args(["-m", "sh", "-c", &script])
        .env("LANDFALL", env!("CARGO_BIN_EXE_landfall"));
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    Some(printed)
}

#[test]
fn a_pull_to_a_full_disk_is_resumed_after_space_is_freed() {
    if !need(&["unshare", "mount", "sha256sum"]) {
        return;
    }
    let rig = Rig::of(8);
    rig.set_faults([Fault::always(
        RequestKind::Blob,
        FaultKind::Drip(8000, Duration::from_millis(10)),
    )]);
    let pull = format!(
        "$LANDFALL pull --store small/store --plain-http {} --progress none",
        rig.up.address
    );
    let script = format!(
        "(until find small/store/.landfall/partial -type f -size +1k 2>&1 | grep -q partial/s; do sleep 0.01; done\n\
         head -c 900000 /dev/zero > small/filler) 2>/dev/null &\n\
         {pull}; echo \"exit $?\"; wait; rm small/filler\n\
         (cd small/store/blobs/sha256 && for f in *; do echo \"$f  $f\" | sha256sum -c --quiet || exit 1; done) || exit 1\n\
         echo 'the written content is intact'\n\
         find small/store/blobs small/store/.landfall/partial -type f -printf 'stood %s %f\\n'\n\
         mount -o remount,size=16m small || exit 1\n\
         {pull}; echo \"again $?\"\n\
         cp -r small/store stores/grown"
    );
    let Some(printed) = on_small_disk(&rig.place, 1200, &script) else {
        return;
    };
    for words in [
        "No space left on device",
        "free some space and run it again to resume",
        "the written content is intact",
        "again 0",
    ] {
        assert!(printed.contains(words), "{words}:\n{printed}");
    }
    assert!(
        printed.contains("exit 3\n") || printed.contains("exit 1\n"),
        "{printed}"
    );
    assert_eq!(
        printed.matches("No space left on device").count(),
        1,
        "the cause is not reported exactly once: {printed}"
    );
    rig.assert_same("grown", &printed);
    // complete blobs are not requested again, and partial ones only from their end
    let mut partial = 0;
    for line in printed
        .lines()
        .filter_map(|line| line.strip_prefix("stood "))
    {
        let (size, name) = line.split_once(' ').unwrap();
        let (size, hex): (usize, _) = (size.parse().unwrap(), name.trim_start_matches("sha256-"));
        let seen = rig.up.seen();
        // a file is requested by its URL, everything else by its digest
        let file = rig.lock.files.iter().find(|file| file.digest.hex() == hex);
        let (on, end) = file.map_or((RequestKind::Blob, hex), |file| {
            (RequestKind::File, last_component(&file.name))
        });
        let mine = seen
            .iter()
            .filter(|seen| seen.on == Some(on) && seen.path.ends_with(end));
        let ranges: Vec<_> = mine.map(|seen| seen.range).collect();
        match (name.starts_with("sha256-"), size) {
            (true, 0) => {}
            (true, _) => {
                partial += 1;
                assert!(
                    ranges.contains(&Some(size)),
                    "{line}: {ranges:?}\n{}",
                    rig.up.shown()
                );
            }
            (false, _) => assert!(ranges.len() <= 1, "{line}: {ranges:?}\n{}", rig.up.shown()),
        }
    }
    assert!(partial > 0, "no partial blob was left: {printed}");
}

fn last_component(url: &str) -> &str {
    url.rsplit('/').next().unwrap()
}

#[test]
fn a_store_without_room_is_refused_before_the_first_byte() {
    if !need(&["unshare", "mount"]) {
        return;
    }
    let rig = Rig::of(8);
    rig.set_faults([]);
    let requests_before = rig.up.seen().len();
    let script = format!(
        "$LANDFALL pull --store small/store --plain-http {} --progress none; echo \"exit $?\"",
        rig.up.address
    );
    let Some(printed) = on_small_disk(&rig.place, 500, &script) else {
        return;
    };
    let words = "destination: store: it needs at most 805 kB in small/store, which has 492 kB free; make room there, or \
                 name another store with --store DIR";
    assert!(
        printed.contains(words) && printed.contains("exit 1\n"),
        "{printed}"
    );
    assert_eq!(rig.up.seen().len(), requests_before, "{}", rig.up.shown());
}

/// A tmpfs without limit has no blocks, like many file systems in user space.
#[test]
fn a_file_system_that_does_not_say_its_free_space_is_written_to() {
    if !need(&["unshare", "mount"]) {
        return;
    }
    let rig = Rig::of(8);
    rig.set_faults([]);
    let script = format!(
        "$LANDFALL pull --store small/store --plain-http {} --progress none; echo \"exit $?\"\n\
         $LANDFALL pack --store small/store -o small/b.tar.zst --dry-run; echo \"dry $?\"\n\
         $LANDFALL pack --store small/store -o small/b.tar.zst; echo \"packed $?\"",
        rig.up.address
    );
    let Some(printed) = on_small_disk(&rig.place, 0, &script) else {
        return;
    };
    for words in [
        "exit 0\n",
        "small has unknown space free\n",
        "dry 0\n",
        "packed 0\n",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
}

#[test]
fn a_push_to_a_full_disk_gets_507_and_leaves_its_room_to_others() {
    if !need(&["unshare", "mount", "curl", "sha256sum"]) {
        return;
    }
    let place = Place::new();
    let script = "$LANDFALL serve --writable small/pushed --listen 127.0.0.1:0 > out & server=$!\n\
         until grep -q '^serving' out; do sleep 0.01; done\n\
         url=$(cut -d' ' -f3 out)\n\
         head -c 3000000 /dev/zero > large; head -c 500000 large > part\n\
         send() { curl -s -w ' got %{http_code}\\n' --data-binary \"$@\"; }\n\
         post() { send @$1 \"$url/v2/a/blobs/uploads/?digest=sha256:$(sha256sum < $1 | cut -c-64)\"; }\n\
         begun=$(curl -si -X POST $url/v2/a/blobs/uploads/ | tr -d '\\r' | sed -n 's/^location: //p')\n\
         post large; send @large -X PATCH $url$begun; post part\n\
         kill $server; wait $server";
    let Some(printed) = on_small_disk(&place, 1200, script) else {
        return;
    };
    let codes: Vec<&str> = printed
        .lines()
        .filter_map(|line| line.split_once("got "))
        .map(|(_, code)| code)
        .collect();
    assert_eq!(codes, ["507", "507", "201"], "{printed}");
    assert!(printed.contains("No space left on device"), "{printed}");
}

#[test]
fn a_bundle_that_cannot_be_begun_on_a_full_disk_leaves_no_file() {
    if !need(&["unshare", "mount"]) {
        return;
    }
    let rig = Rig::of(8);
    rig.set_faults([]);
    let script = format!(
        "head -c 200000 /dev/zero > small/filler 2> /dev/null\n\
         $LANDFALL pull --bundle small/b --store none --plain-http {} --progress none\n\
         echo \"exit $?\"; ls -A small",
        rig.up.address
    );
    let Some(printed) = on_small_disk(&rig.place, 100, &script) else {
        return;
    };
    assert!(
        printed.contains("exit 1\n") && printed.contains("filler"),
        "{printed}"
    );
    // the message names `small/b.partial`, and a list of the folder would have it at its beginning
    assert!(!printed.contains("\nb.partial"), "{printed}");
}

#[test]
fn errors_of_a_full_disk_do_not_name_temporary_files() {
    if !need(&["unshare", "mount"]) {
        return;
    }
    let rig = Rig::of(8);
    let script = "head -c 200000 /dev/zero > small/filler 2> /dev/null\n\
         for args in 'pull --store small/store' 'ls landfall.lock --report small/report.json'; do\n\
         $LANDFALL $args --progress none > /dev/null; echo \"exit $?\"; done";
    let Some(printed) = on_small_disk(&rig.place, 100, script) else {
        return;
    };
    assert_eq!(
        printed
            .matches("No space left on device (os error 28)")
            .count(),
        2,
        "{printed}"
    );
    assert!(
        !printed.contains(".tmp") && !printed.contains(".landfall-"),
        "{printed}"
    );
}

#[test]
fn a_full_disk_leaves_the_old_bundle_and_no_partial_one() {
    if !need(&["unshare", "mount"]) {
        return;
    }
    let rig = Rig::of(8);
    let script = "$LANDFALL pack --store stores/first -o whole --progress none > /dev/null\n\
         head -c 4096 whole > small/b; cp small/b old\n\
         $LANDFALL pack --store stores/first -o small/b --level 1 --progress none; echo \"exit $?\"\n\
         ls -A small; cmp small/b old && echo 'an older bundle'\n\
         mount -o remount,size=16m small || exit 1\n\
         $LANDFALL pack --store stores/first -o small/b --level 1 --progress none && $LANDFALL verify small/b";
    let Some(printed) = on_small_disk(&rig.place, 300, script) else {
        return;
    };
    assert!(
        printed.contains("exit 1\nb\nan older bundle\n"),
        "{printed}"
    );
    assert!(
        printed.contains("make room or write it elsewhere")
            && printed.contains(&rig.bundle.to_string()),
        "{printed}"
    );
}

#[test]
fn a_small_pack_that_unpacks_to_more_than_the_free_space_is_refused_before_it_is_written() {
    let Some(server) = GitServer::new().filter(|_| need(&["unshare", "mount"])) else {
        return;
    };
    let repository = server.create("a.git");
    let zeros = "\0".repeat(12 << 20);
    let large = format!(
        "commit refs/heads/main\ncommitter a <a> 1700000000 +0000\ndata 0\n\
         M 644 inline zeros\ndata {}\n{zeros}\n",
        zeros.len()
    );
    server.import(&repository, &(history("main", 0, 2) + &large));
    let place = Place::new();
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\ngit:\n- {{url: \"{}\", ref: main}}\n",
            server.url("a.git")
        ),
    );
    let script = "$LANDFALL lock -f m.yaml --store small/store; echo \"exit $?\"";
    let Some(printed) = on_small_disk(&place, 6 << 10, script) else {
        return;
    };
    for words in [
        "exit 1",
        "the pack: it has at least 12",
        "small/store has",
        "free some space",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
}
