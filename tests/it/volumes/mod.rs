//! Bundles in volumes: packing, joining, checking, damage, rebuilding, and the included program.

mod discs;
mod site;
use crate::support::images::{OCI_MANIFEST, noise};
use crate::support::library::Digest;
use crate::support::{need, rounds, run, spread_kills};
use serde_json::{Value, json};
use site::Site;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn joined(volumes: &[PathBuf]) -> Vec<u8> {
    volumes
        .iter()
        .flat_map(|path| fs::read(path).unwrap())
        .collect()
}

#[test]
fn volumes_are_the_bundle_split_at_frames() {
    if !need(&["sha256sum", "zstd", "tar", "cmp"]) {
        return;
    }
    let site = Site::new();
    let whole = site.pack("B.tar.zst", &[]);
    let split = site.pack("V", &["--volume-size", "1100000"]);
    assert_eq!(split["bundle"]["digest"], whole["bundle"]["digest"]);
    assert_eq!(split["bundle"]["bytes"], whole["bundle"]["bytes"]);
    let volumes = site.volumes("V");
    assert_eq!(volumes.len(), 2);
    assert_eq!(split["bundle"]["files"], json!(["V.0001", "V.0002"]));
    assert_eq!(split["bundle"]["beside"], json!(["V.sha256sums"]));
    // common tools can check and join the volumes
    site.sh("cat V.0* | cmp - B.tar.zst");
    assert_eq!(
        site.sh("sha256sum -c V.sha256sums"),
        "V.0001: OK\nV.0002: OK\n"
    );
    site.sh("zstd -tq V.0001 && zstd -tq V.0002");
    let listed = site.sh("cat V.0* | tar --zstd -t");
    assert!(listed.contains("landfall-contents.json"), "{listed}");
    for name in ["V", "V.0001", "V.0002", "./V", "./V.0002"] {
        let verified = site.place.json(0, &["verify", name]);
        assert_eq!(
            verified["bundle"]["digest"], whole["bundle"]["digest"],
            "{name}"
        );
        let listed = site.place.json(0, &["ls", name]);
        assert_eq!(
            listed["bundle"]["bytes"], whole["bundle"]["bytes"],
            "{name}"
        );
    }
    site.place
        .ok(&["export", "files", "--bundle", "V", "-o", "out"]);
    for (name, bytes) in &site.files {
        assert!(
            fs::read(site.place.path("out/files.example").join(name)).unwrap() == *bytes,
            "{name}"
        );
    }
    let left: Vec<_> = site
        .names()
        .into_iter()
        .filter(|name| name.contains("partial"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
    // a file with this name takes precedence over the volumes
    fs::write(site.place.path("V"), "no bundle").unwrap();
    assert_eq!(site.place.json(4, &["verify", "V"])["status"], "refused");
    site.place.json(0, &["verify", "V.0001"]);
}

#[test]
fn skopeo_reads_joined_volumes_and_the_python_reader_reads_volumes() {
    let site = Site::new();
    site.split("V", "1100000");
    if need(&["skopeo"]) {
        site.sh("cat V.0* > J.tar.zst");
        let raw = run(site.place.clean("skopeo").args([
            "inspect",
            "--raw",
            "oci-archive:J.tar.zst:quay.io/example/app:v1",
        ]));
        assert!(String::from_utf8(raw).unwrap().contains(OCI_MANIFEST));
    }
    if need(&["python3", "zstd"]) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/read-bundle.py");
        let read = |args: &[&str]| run(site.place.clean("python3").arg(script).args(args));
        let bytes = noise(100, 1_200_000);
        assert!(read(&["V", &Digest::sha256(&bytes).to_string()]) == bytes);
        let listed = String::from_utf8(read(&["V"])).unwrap();
        assert!(listed.contains("landfall.lock"), "{listed}");
    }
}

#[test]
fn all_missing_or_damaged_volumes_are_named() {
    let site = Site::small();
    let volumes = site.split("V", "20k");
    assert!(volumes.len() > 8, "{}", volumes.len());
    let good: Vec<Vec<u8>> = volumes.iter().map(|path| fs::read(path).unwrap()).collect();
    let restore = || {
        volumes
            .iter()
            .zip(&good)
            .for_each(|(path, bytes)| fs::write(path, bytes).unwrap())
    };
    let last = volumes.len();
    let called = |number: usize| format!("V.{number:04}");

    // volume 5 is missing, and also the first one, the third one, or the last one, which only the
    // checksums list
    for lost in [1, 3, last] {
        fs::remove_file(&volumes[lost - 1]).unwrap();
        fs::remove_file(&volumes[4]).unwrap();
        let verbs: [&[&str]; 6] = [
            &["verify", "V"],
            &["ls", "V"],
            &["push", "V", "--to", "127.0.0.1:1"],
            &["serve", "V", "--listen", "127.0.0.1:0"],
            &[
                "rewrite",
                "landfall.lock",
                "--bundle",
                "V",
                "--to",
                "127.0.0.1:1",
            ],
            &["export", "files", "--bundle", "V.0002", "-o", "out"],
        ];
        for verb in verbs {
            let printed = site.refused(verb);
            for number in 1..=last {
                let missing = number == lost || number == 5;
                assert_eq!(
                    printed.contains(&called(number)),
                    missing,
                    "{verb:?} {number}: {printed}"
                );
            }
        }
        restore();
    }

    // one or two volumes are truncated, too long, from another bundle, or have a flipped bit
    let other = Site::of(5000, &[9_000, 7_000, 300]);
    let foreign = other.split("V", "20k");
    let damage: [(&str, &dyn Fn(usize)); 4] = [
        ("truncated", &|n| {
            fs::write(&volumes[n - 1], &good[n - 1][..good[n - 1].len() / 2]).unwrap()
        }),
        ("longer", &|n| {
            fs::write(&volumes[n - 1], [&good[n - 1][..], b"x"].concat()).unwrap()
        }),
        ("foreign", &|n| {
            fs::write(&volumes[n - 1], fs::read(&foreign[n - 1]).unwrap()).unwrap()
        }),
        ("flipped", &|n| {
            let mut bytes = good[n - 1].clone();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 16;
            fs::write(&volumes[n - 1], bytes).unwrap();
        }),
    ];
    for (what, damage) in damage {
        for (first, second) in [(2, 6), (1, last), (4, 4), (last, last), (1, 1)] {
            damage(first);
            damage(second);
            let printed = site.refused(&["verify", "V"]);
            for number in 1..=last {
                let bad = number == first || number == second;
                assert_eq!(
                    printed.contains(&called(number)),
                    bad,
                    "{what} {first} {second} {number}: {printed}"
                );
            }
            restore();
        }
    }
    // damaged and missing at once
    fs::remove_file(&volumes[1]).unwrap();
    fs::write(&volumes[5], b"").unwrap();
    let printed = site.refused(&["verify", "V"]);
    assert!(
        printed.contains("V.0002: it is missing") && printed.contains("V.0006: "),
        "{printed}"
    );
    restore();
    // without the checksums, the volumes with a flipped bit are still identified
    fs::remove_file(site.place.path("V.sha256sums")).unwrap();
    for number in [2, 7] {
        let mut bytes = good[number - 1].clone();
        bytes[1000] ^= 1;
        fs::write(&volumes[number - 1], bytes).unwrap();
    }
    let printed = site.refused(&["verify", "V"]);
    assert!(
        printed.contains("(in V.0002)")
            && printed.contains("(in V.0007)")
            && !printed.contains("V.0003"),
        "{printed}"
    );
    restore();
    for number in 1..=last {
        fs::copy(&foreign[number - 1], &volumes[number - 1]).unwrap();
        site.refused(&["verify", "V"]);
        restore();
    }
    // a volume after the last one is refused
    fs::copy(&volumes[0], site.place.path(called(last + 1))).unwrap();
    let printed = site.refused(&["verify", "V"]);
    assert!(
        printed.contains(&format!(
            "{} and later volumes do not belong to it",
            called(last + 1)
        )),
        "{printed}"
    );
}

#[test]
fn every_damaged_volume_of_one_large_blob_is_named() {
    let site = Site::new();
    let volumes = site.split("V", "1100000");
    // the blob is damaged in two of its frames, which are in two volumes
    for (path, at) in volumes.iter().zip([900_000, 10_000]) {
        let mut bytes = fs::read(path).unwrap();
        bytes[at] ^= 1;
        fs::write(path, bytes).unwrap();
    }
    let printed = site.refused(&["verify", "V"]);
    assert!(
        printed.contains("(in V.0001)") && printed.contains("(in V.0002)"),
        "{printed}"
    );
}

#[test]
fn three_hundred_volumes_are_checked_with_few_open_files() {
    let site = Site::wide(rounds(310), 60_000);
    let whole = site.pack("B", &[]);
    let size = whole["bundle"]["bytes"].as_u64().unwrap() / 310;
    let volumes = site.split("V", &size.to_string());
    assert!(volumes.len() >= 300, "{}", volumes.len());
    assert!(joined(&volumes) == fs::read(site.place.path("B")).unwrap());
    // only a few files are open at a time
    let verified = site.sh(&format!(
        "ulimit -n 60; {} verify V --output json",
        env!("CARGO_BIN_EXE_landfall")
    ));
    let verified: Value = serde_json::from_str(&verified).unwrap();
    assert_eq!(verified["bundle"]["digest"], whole["bundle"]["digest"]);
    fs::remove_file(&volumes[122]).unwrap();
    fs::remove_file(&volumes[299]).unwrap();
    let printed = site.refused(&["ls", "V"]);
    assert!(
        printed.contains("V.0123 and V.0300 are missing"),
        "{printed}"
    );
}

#[test]
fn a_file_system_with_small_files_gets_volumes() {
    let site = Site::small();
    let landfall = env!("CARGO_BIN_EXE_landfall");
    // as FAT32, which refuses to let a file grow beyond 4 GiB
    let refused = site.sh(&format!(
        "trap '' XFSZ; ulimit -f 64; {landfall} pack -o B 2>&1 && exit 1; echo"
    ));
    for part in ["File too large", "FAT32", "--volume-size fat32"] {
        assert!(refused.contains(part), "{refused}");
    }
    site.pack("V", &["--volume-size", "fat32"]);
}

#[test]
fn a_volume_size_that_is_too_small_is_refused_with_the_minimum() {
    let site = Site::small();
    let before = site.names();
    let smallest = |size: &str| {
        let report = site
            .place
            .json(2, &["pack", "-o", "V", "--volume-size", size]);
        let printed = report["error"]["message"].as_str().unwrap().to_owned();
        assert_eq!(site.names(), before, "{printed}");
        let size = printed.rsplit("--volume-size ").next().unwrap();
        size.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    // every size that is too small for the longest frame is refused with the same minimum
    let longest = smallest("4096");
    assert_eq!(smallest("5000"), longest);
    assert_eq!(smallest(&(longest - 1).to_string()), longest);
    let volumes = site.split("V", &longest.to_string());
    assert!(
        !volumes.is_empty()
            && volumes
                .iter()
                .all(|path| path.metadata().unwrap().len() <= longest)
    );
    site.place.json(0, &["verify", "V"]);
    // sizes below 4096 bytes and invalid sizes are refused before the store is read
    for bad in ["0", "10", "4095", "cd", "4Q"] {
        site.place
            .landfall()
            .args(["pack", "-o", "V", "--store", "empty", "--volume-size", bad])
            .assert()
            .code(2);
    }
}

#[test]
fn more_than_999_volumes_are_refused() {
    let site = Site::wide(1100, 130_000);
    let report = site
        .place
        .json(2, &["pack", "-o", "V", "--volume-size", "140000"]);
    let printed = report["error"]["message"].as_str().unwrap();
    let smallest: u64 = printed
        .rsplit("--volume-size ")
        .next()
        .and_then(|size| size.split(' ').next())
        .unwrap()
        .parse()
        .unwrap();
    assert!(printed.contains("999") && smallest > 140_000, "{printed}");
    assert!(site.volumes("V").is_empty());
    let volumes = site.split("V", &smallest.to_string());
    assert!((500..=999).contains(&volumes.len()), "{}", volumes.len());
    site.place.json(0, &["verify", "V"]);
    let refused = site.place.json(
        2,
        &[
            "pack",
            "-o",
            "W",
            "--volume-size",
            &(smallest - 1).to_string(),
        ],
    );
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .ends_with(&format!("--volume-size {smallest} or more")),
        "{refused}"
    );
}

#[test]
fn a_shorter_set_removes_volumes_of_a_longer_one() {
    let site = Site::small();
    let long = site.split("V", "18k").len();
    // files that a killed run left
    site.place.write("V.partial", "");
    site.place.write("V.partial.0001", "left over");
    site.place.write("V.partial.0700", "left over");
    site.place
        .write("V.sha256sums.sig", "a signature over other checksums");
    let volumes = site.split("V", "40k");
    assert!(volumes.len() < long && !site.names().contains(&format!("V.{long:04}")));
    site.place.json(0, &["verify", "V"]);
    assert_eq!(site.sh("sha256sum -c --quiet V.sha256sums"), "");
    let expected: BTreeSet<String> = (1..=volumes.len())
        .map(|number| format!("V.{number:04}"))
        .collect();
    let mine = site
        .names()
        .into_iter()
        .filter(|name| name.starts_with("V."));
    assert_eq!(
        mine.collect::<BTreeSet<_>>(),
        &expected | &BTreeSet::from(["V.sha256sums".into()])
    );

    // after a kill between the renames, the set is reported as incomplete, and another run repairs
    // it
    fs::rename(&volumes[0], site.place.path("V.partial.0001")).unwrap();
    fs::remove_file(site.place.path("V.sha256sums")).unwrap();
    assert!(site.refused(&["verify", "V"]).contains("V.0001 is missing"));
    site.split("V", "40k");
    site.place.json(0, &["verify", "V"]);
    assert!(!site.names().iter().any(|name| name.contains("partial")));

    // with a damaged store, the old volumes are kept
    let (_, bytes) = &site.files[1];
    let blob = site
        .place
        .path("home/.cache/landfall/store")
        .join(Digest::sha256(bytes).layout_path());
    fs::write(&blob, vec![b'x'; bytes.len()]).unwrap();
    let before = joined(&site.volumes("V"));
    site.place
        .json(3, &["pack", "-o", "V", "--volume-size", "18k"]);
    assert!(joined(&site.volumes("V")) == before);
    assert!(!site.names().iter().any(|name| name.contains("partial")));
}

#[test]
fn another_run_recovers_from_a_kill_at_any_moment() {
    let site = Site::wide(300, 12_000);
    let expected = {
        let volumes = site.split("V", "60k");
        joined(&volumes)
    };
    let written = || -> usize {
        let names = site.names().into_iter();
        let partial = names.filter(|name| name.contains("partial"));
        // a file may be renamed after it was listed
        let sizes = partial.filter_map(|name| fs::metadata(site.place.path(name)).ok());
        sizes.map(|file| file.len() as usize).sum()
    };
    spread_kills(rounds(6), expected.len(), |round, after| {
        let mut pack = site.place.command();
        pack.args([
            "pack",
            "-o",
            "V",
            "--progress",
            "none",
            "--volume-size",
            if round % 2 == 0 { "110k" } else { "60k" },
        ]);
        let mut child = pack.spawn().unwrap();
        let mut alive = true;
        while alive && written() < after {
            std::thread::sleep(std::time::Duration::from_micros(500));
            alive = child.try_wait().unwrap().is_none();
        }
        let _ = child.kill();
        child.wait().unwrap();
        // the files are a complete bundle, or recognizably incomplete
        let verified = site
            .place
            .command()
            .args(["verify", "V", "--progress", "none"])
            .output()
            .unwrap();
        assert!(
            [0, 4].contains(&verified.status.code().unwrap()),
            "{verified:?}"
        );
        let volumes = site.split("V", "60k");
        assert!(joined(&volumes) == expected, "round {round}");
        assert!(!site.names().iter().any(|name| name.contains("partial")));
        alive
    });
}

#[test]
fn a_volume_without_the_index_is_rebuilt_from_the_others_and_the_store() {
    let site = Site::small();
    let volumes = site.split("V", "20k");
    let last = volumes.len();
    // a rebuild reads the options from the bundle, and also the lock if another volume contains it
    site.pack("W", &["--volume-size", "20k", "--level", "9"]);
    let mut sets = vec!["V", "W"];
    if need(&["ssh-keygen"]) {
        site.sh("ssh-keygen -q -t ed25519 -N '' -f key");
        site.pack("S", &["--volume-size", "20k", "--sign", "key"]);
        sets.push("S");
    }
    fs::rename(
        site.place.path("landfall.lock"),
        site.place.path("the.lock"),
    )
    .unwrap();
    let index: BTreeSet<usize> = {
        // the volumes with the index cannot be rebuilt: a rebuild of any volume needs the index
        let bytes: Vec<Vec<u8>> = volumes.iter().map(|path| fs::read(path).unwrap()).collect();
        let name = b"landfall-contents.json";
        let begins = bytes
            .iter()
            .rposition(|bytes| bytes.windows(name.len()).any(|part| part == name))
            .unwrap();
        (begins + 1..=last).collect()
    };
    let mut rebuilt = 0;
    let mut refused = 0;
    let mut needed = BTreeSet::new();
    for set in &sets {
        for (path, number) in site.volumes(set).iter().zip(1..) {
            let good = fs::read(path).unwrap();
            // volumes with an even number are lost, the others are damaged
            if number % 2 == 0 {
                fs::remove_file(path).unwrap();
            } else {
                fs::write(path, b"damaged").unwrap();
            }
            let number_text = number.to_string();
            let args = ["pack", "--like", set, "--only-volume", &number_text];
            let mut run = site.place.command();
            run.args(args).args(["--output", "json"]);
            let without = run.output().unwrap();
            if String::from_utf8_lossy(&without.stdout).contains("it contained the lock") {
                assert_eq!(without.status.code(), Some(4), "{without:?}");
                needed.insert((set, number));
                run.args(["--lock", "the.lock"]);
            }
            let output = run.output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            if output.status.success() {
                assert!(fs::read(path).unwrap() == good, "{set} {number}");
                assert!(*set != "V" || !index.contains(&number), "{set} {number}");
                rebuilt += 1;
            } else {
                assert!(
                    output.status.code() == Some(4) && printed.contains("contents index"),
                    "{number} {printed}"
                );
                assert!(index.contains(&number), "{set} {number}: {printed}");
                refused += 1;
                fs::write(path, good).unwrap();
            }
            assert!(!site.names().iter().any(|name| name.contains("partial")));
        }
        site.place.json(0, &["verify", set]);
    }
    assert!(
        needed.len() == sets.len(),
        "one volume of each set contains the lock: {needed:?}"
    );
    assert!(
        rebuilt > last && refused >= 2,
        "{rebuilt} rebuilt, {refused} refused"
    );
}

#[test]
fn a_volume_that_cannot_be_rebuilt_is_kept_and_the_reason_reported() {
    let site = Site::small();
    let volumes = site.split("V", "20k");
    let good = fs::read(&volumes[2]).unwrap();
    let like = |number: &'static str| ["pack", "--like", "V", "--only-volume", number];
    // the volume is written to another folder, which lacks the other volumes
    fs::create_dir(site.place.path("out")).unwrap();
    site.place.ok(&[&like("3")[..], &["-o", "out/V"]].concat());
    assert!(fs::read(site.place.path("out/V.0003")).unwrap() == good);
    // another volume is missing
    fs::remove_file(&volumes[5]).unwrap();
    let printed = site.refused(&like("3"));
    assert!(
        printed.contains("cannot rebuild V.0003") && printed.contains("V.0006"),
        "{printed}"
    );
    let report = site.place.json(0, &like("6"));
    assert_eq!(
        report["volume"],
        json!({"path": "V.0006", "bytes": fs::metadata(&volumes[5]).unwrap().len()})
    );
    // a rebuilt volume gets the bundle's signatures and serial number, so these flags are refused
    for more in [["--sign", "key"], ["--serial", "2"]] {
        let mut repack = site.place.landfall();
        let refused = repack
            .args([&like("2")[..], &more].concat())
            .assert()
            .code(2);
        let printed = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(printed.contains("cannot be used with"), "{printed}");
    }
    // a number that the bundle does not have
    let beyond = (volumes.len() + 1).to_string();
    let report = site
        .place
        .json(2, &["pack", "--like", "V", "--only-volume", &beyond]);
    let printed = report["error"]["message"].as_str().unwrap();
    assert_eq!(
        printed,
        format!(
            "V has {} volumes; there is no volume {beyond}",
            volumes.len()
        )
    );
    // another volume is damaged
    let whole = fs::read(&volumes[1]).unwrap();
    fs::write(&volumes[1], &whole[..whole.len() - 7]).unwrap();
    let printed = site.refused(&like("3"));
    assert!(
        printed.contains("V.0003") && fs::read(&volumes[2]).unwrap() == good,
        "{printed}"
    );
    fs::write(&volumes[1], whole).unwrap();
    // the store lacks the content of the volume
    let held: Vec<_> = site
        .files
        .iter()
        .filter(|(_, bytes)| good.windows(64).any(|part| part == &bytes[..64]))
        .collect();
    assert!(!held.is_empty());
    for (_, bytes) in held {
        let path = site
            .place
            .path("home/.cache/landfall/store")
            .join(Digest::sha256(bytes).layout_path());
        fs::remove_file(path).unwrap();
    }
    let report = site.place.json(1, &like("3"));
    assert!(
        report["error"]["message"]
            .as_str()
            .unwrap()
            .contains("landfall pull"),
        "{report}"
    );
    assert!(fs::read(&volumes[2]).unwrap() == good);
    site.place
        .landfall()
        .args(["pack", "--like", "V"])
        .assert()
        .code(2);
    site.place
        .landfall()
        .args(["pack", "--only-volume", "3", "-o", "V"])
        .assert()
        .code(2);
}

#[test]
fn the_included_program_does_not_change_the_digest() {
    if !need(&["sha256sum"]) {
        return;
    }
    let site = Site::small();
    let bare = site.pack("A", &[]);
    assert!(!site.names().contains("A.sha256sums"));
    let tool = site
        .place
        .write("tools/other-arch", "#!/bin/sh\necho it runs\n");
    let tool = format!("--include-self={}", tool.display());
    for (name, more) in [("B", &[][..]), ("V", &["--volume-size", "40k"])] {
        let report = site.pack(name, &[&["--include-self", &tool], more].concat());
        assert_eq!(report["bundle"]["digest"], bare["bundle"]["digest"]);
        let sums = format!("{name}.sha256sums");
        let documents = [".README.txt", ".man.tar"].map(|ending| format!("{name}{ending}"));
        assert_eq!(
            report["bundle"]["beside"],
            json!(["landfall", "other-arch", documents[0], documents[1], sums])
        );
        let listed = site.sh(&format!("sha256sum -c {sums}"));
        assert!(
            listed.contains("landfall: OK") && listed.contains("other-arch: OK"),
            "{listed}"
        );
        assert!(
            listed.contains(&format!("{name}: OK")) || listed.contains("V.0001: OK"),
            "{listed}"
        );
        assert_eq!(site.sh("./other-arch"), "it runs\n");
        let version = run(Command::new(env!("CARGO_BIN_EXE_landfall")).arg("--version"));
        assert_eq!(
            run(Command::new(site.place.path("landfall")).arg("--version")),
            version
        );
        site.place.json(0, &["verify", name]);
    }
    // packing again without the program removes the checksums and documents of the previous bundle
    fs::write(site.place.path("B.sha256sums.sig"), "a signature").unwrap();
    site.pack("B", &["--level", "9"]);
    assert!(
        !site.names().iter().any(|name| name.starts_with("B.")),
        "{:?}",
        site.names()
    );

    let before = site.names();
    for (path, why) in [
        ("--include-self=absent", "absent"),
        ("--include-self=tools", "plain file"),
        ("--include-self=V", "V"),
    ] {
        let args = ["pack", "-o", "C", path];
        let report = site.place.json(2, &args);
        assert!(
            report["error"]["message"].as_str().unwrap().contains(why),
            "{report}"
        );
    }
    let twice = site.place.json(2, &["pack", "-o", "C", &tool, &tool]);
    assert!(
        twice["error"]["message"]
            .as_str()
            .unwrap()
            .contains("taken"),
        "{twice}"
    );
    let own = site
        .place
        .json(2, &["pack", "-o", "tools/other-arch", &tool]);
    assert!(
        own["error"]["message"]
            .as_str()
            .unwrap()
            .contains("is not a bundle"),
        "{own}"
    );
    assert_eq!(site.names(), before);
}
