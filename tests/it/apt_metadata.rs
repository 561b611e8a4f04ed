//! apt metadata that its repository replaces before a pull, or while `lock` reads it; and the pin
//! of an entry that cannot be resolved.

use crate::support::apt::{Apt, AptUpstream, deb, locked};
use crate::support::charts::{Signer, failure_reasons};
use crate::support::library::Digest;
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use crate::support::{landfall_serve, need, run};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Copies the folder `from` of `up` to `to`.
fn copy(up: &AptUpstream, from: &str, to: &str) {
    run(Command::new("cp")
        .arg("-a")
        .arg(up.place.path(from))
        .arg(up.place.path(to)));
}

/// Writes a manifest for the suite `stable` at `url`.
fn wants(up: &AptUpstream, url: &str, more: &str) {
    up.manifest(&format!(
        "url: '{url}', suite: stable, components: [main], key: key.asc, {more}"
    ));
}

#[test]
fn replaced_metadata_is_read_from_the_store_that_locked_it() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    up.build("pool/stable", &[deb("app", "1", "")]);
    up.suite("stable", "Date: Sat, 14 Nov 2026 00:00:00 UTC\n");
    up.wants("stable", "app", ", base: none");
    let locking = place
        .command()
        .args(["lock", "-f", "m.yaml"])
        .output()
        .unwrap();
    let note = "replaces its metadata when it changes, and names no snapshots: after a change, \
                `landfall pull` works only with the store of this lock";
    assert!(
        String::from_utf8_lossy(&locking.stderr).contains(note),
        "{locking:?}"
    );

    // only the release is signed again
    up.suite("stable", "Date: Sun, 15 Nov 2026 00:00:00 UTC\n");
    let refused = place.json(1, &["pull", "--store", "other"]);
    let why = failure_reasons(&refused);
    assert!(
        why.contains("/dists/stable/InRelease: source: ")
            && why.contains("pull with the store that `landfall lock` used (`--store DIR`")
            && why.contains("`landfall lock --refresh`"),
        "{why}"
    );
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    // after `landfall lock --refresh`, which the message names, a pull with another store works
    up.lock(0, &["--refresh", "--store", "third"]);
    place.ok(&["pull", "--store", "other"]);
}

#[test]
fn a_detached_signature_that_apt_refuses_is_reported() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    up.build("pool/stable", &[deb("app", "1", "")]);
    up.suite("stable", "Date: Sat, 14 Nov 2026 00:00:00 UTC\n");
    up.wants("stable", "app", ", base: none");
    let suite = place.path("up/r/dists/stable");
    std::fs::remove_file(suite.join("InRelease")).unwrap();
    let is_noted = |name: &str| {
        let names = [format!("{name}.lock"), format!("{name}.store")];
        let locking = place
            .command()
            .args(["lock", "-f", "m.yaml", "--lock", &names[0], "--store"])
            .arg(&names[1])
            .output()
            .unwrap();
        assert!(locking.status.success(), "{locking:?}");
        String::from_utf8_lossy(&locking.stderr)
            .contains("apt refuses its dists/stable/Release.gpg")
    };
    assert!(!is_noted("armored"));
    let mut dearmor = place.clean("gpg");
    dearmor.args(["--batch", "--dearmor", "--output"]);
    run(dearmor
        .arg(suite.join("binary"))
        .arg(suite.join("Release.gpg")));
    std::fs::rename(suite.join("binary"), suite.join("Release.gpg")).unwrap();
    assert!(is_noted("binary"));
}

/// gpg accepts a key that only SHA-1 certifies, but apt of Debian 13 has refused such keys since
/// February 2026.
#[test]
fn keys_that_machines_refuse_now_or_soon_are_reported() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    up.build("pool/stable", &[deb("app", "1", "")]);
    up.suite("stable", "Date: Sat, 14 Nov 2026 00:00:00 UTC\n");
    place.write("gpg-weak/gpg.conf", "cert-digest-algo SHA1\n");
    let notes = |key: &str| {
        up.manifest(&format!(
            "url: '{}', suite: stable, components: [main], key: {key}, install: [app], base: none",
            up.url()
        ));
        let locking = place
            .command()
            .args(["lock", "-f", "m.yaml", "--refresh"])
            .output()
            .unwrap();
        assert!(locking.status.success(), "{locking:?}");
        String::from_utf8_lossy(&locking.stderr).into_owned()
    };
    let text = place.read("up/r/dists/stable/Release");
    let reported = |signer: &Signer| {
        place.write("other.asc", signer.public());
        place.write("up/r/dists/stable/InRelease", signer.sign(&text));
        notes("other.asc")
    };
    let current = notes("key.asc");
    assert!(!current.contains("the key"), "{current}");
    let weak = reported(&Signer::rsa(place, "weak"));
    assert!(weak.contains("is certified only with SHA-1"), "{weak}");
    let expiring = reported(&Signer::expiring(place, "expiring"));
    assert!(
        expiring.contains("expires at ") && !expiring.contains("SHA-1"),
        "{expiring}"
    );
}

/// A `Homepage` field with `hashes` digests. Each digest makes a compressed index at least 32 bytes
/// longer.
fn homepage(hashes: u8) -> String {
    let hashes: String = (0..hashes).map(|n| Digest::sha256(&[n]).hex()).collect();
    format!("Homepage: http://example.com/{hashes}\n")
}

#[test]
fn replaced_metadata_is_fetched_from_the_snapshot() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    // every snapshot has the content of the folder `kept`
    let middle = ReverseProxy::new(&up.server.address, |request| {
        match request.target.strip_prefix("/snapshots/") {
            Some(rest) => ProxyAction::As(format!("/kept/{}", rest.split_once('/').unwrap().1)),
            None => ProxyAction::Pass,
        }
    });
    up.build(
        "pool/stable",
        &[
            deb("app", "1", &format!("Depends: lib\n{}", homepage(2))),
            deb("lib", "1", ""),
        ],
    );
    let more = format!(
        "Date: Sat, 14 Nov 2026 00:00:00 UTC\nAcquire-By-Hash: yes\n\
         Snapshots: http://{}/snapshots/@SNAPSHOTID@/\n",
        middle.address
    );
    up.suite("stable", &more);
    copy(&up, "up/r", "up/kept");
    wants(
        &up,
        &format!("http://{}/r", middle.address),
        "install: [app], base: none",
    );
    up.lock(0, &[]);
    let lock = place.read("landfall.lock");
    // the time in the URL is half an hour after the date of the release, so that all machines lock
    // the same snapshot
    let snapshot = format!(
        "    snapshot: http://{}/snapshots/20261114T003000Z\n",
        middle.address
    );
    assert!(lock.contains(&snapshot), "{lock}");
    let snapshot_requests = middle.count("GET", "/snapshots/");
    up.lock(0, &["--refresh"]);
    assert_eq!(
        (
            place.read("landfall.lock"),
            middle.count("GET", "/snapshots/")
        ),
        (lock, snapshot_requests)
    );

    // the release, the indexes (also those in `by-hash`) and the package `app` are replaced; the
    // new indexes are shorter than the locked ones, then longer
    for (store, hashes) in [("shorter", 0), ("longer", 4)] {
        run(Command::new("rm")
            .arg("-rf")
            .args(["up/r/dists", "up/r/pool/stable/app_1_amd64.deb"].map(|path| place.path(path))));
        up.build(
            "pool/stable",
            &[deb(
                "app",
                "2",
                &format!("Depends: lib\n{}", homepage(hashes)),
            )],
        );
        up.suite("stable", &more.replace("14 Nov", "15 Nov"));
        place.ok(&["pull", "--store", store]);
        let bundle = format!("{store}.bundle");
        place.ok(&["pack", "--store", store, "-o", &bundle]);
        place.ok(&["verify", &bundle, "--lock", "landfall.lock"]);
    }
    let from_snapshot = |package: &str| {
        let path = format!("/snapshots/20261114T003000Z/pool/stable/{package}");
        middle.count("GET", &path)
    };
    assert_eq!(
        (
            from_snapshot("app_1_amd64.deb"),
            from_snapshot("lib_1_amd64.deb")
        ),
        (2, 0)
    );
    // content that both the source and the snapshot lack is reported for both
    run(Command::new("rm").arg(place.path("up/kept/pool/stable/app_1_amd64.deb")));
    let why = failure_reasons(&place.json(1, &["pull", "--store", "third"]));
    assert!(
        why.contains("/r/pool/stable/app_1_amd64.deb: source: "),
        "{why}"
    );
    assert!(
        why.contains("/snapshots/20261114T003000Z/pool/stable/app_1_amd64.deb: "),
        "{why}"
    );
}

#[test]
fn a_mirror_that_changes_during_a_read_is_read_again() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    up.build("pool/stable", &[deb("app", "1", "")]);
    up.suite("stable", "Date: Sat, 14 Nov 2026 00:00:00 UTC\n");
    copy(&up, "up/r", "up/old");
    up.build("pool/stable", &[deb("app", "2", "")]);
    up.suite("stable", "Date: Sun, 15 Nov 2026 00:00:00 UTC\n");
    let upstream = up.server.address.clone();
    let first = |names: &'static [&'static str], times: usize| {
        let attempts = AtomicUsize::new(0);
        ReverseProxy::new(&upstream, move |request| {
            match request.target.strip_prefix("/r/") {
                Some(rest) if names.iter().any(|name| rest.ends_with(name)) => {
                    match attempts.fetch_add(1, Ordering::Relaxed) < times {
                        true => ProxyAction::As(format!("/old/{rest}")),
                        false => ProxyAction::Pass,
                    }
                }
                _ => ProxyAction::Pass,
            }
        })
    };
    let lock = |middle: &ReverseProxy, exit: i32, name: &str| {
        wants(
            &up,
            &format!("http://{}/r", middle.address),
            "install: [app], base: none",
        );
        let name = format!("{name}.lock");
        let report = up.lock(
            exit,
            &["--lock", &name, "--store", &format!("{name}.store")],
        );
        (
            report,
            std::fs::read_to_string(place.path(&name)).unwrap_or_default(),
        )
    };
    // the first read returns the old release
    let middle = first(&["/InRelease"], 1);
    let (_, text) = lock(&middle, 0, "inrelease");
    assert_eq!(
        (
            crate::support::apt::locked(&text),
            middle.count("GET", "/InRelease")
        ),
        (vec!["app 2".into()], 2)
    );
    // a permanently inconsistent mirror is not read forever
    let middle = first(&["/InRelease"], 100);
    let (report, _) = lock(&middle, 1, "stays");
    assert!(
        failure_reasons(&report).contains("Packages.xz: "),
        "{report}"
    );
    assert_eq!(middle.count("GET", "/InRelease"), 2);
    // the first read returns the old Release, which the new detached signature does not match
    std::fs::remove_file(place.path("up/r/dists/stable/InRelease")).unwrap();
    let middle = first(&["/Release"], 1);
    let (_, text) = lock(&middle, 0, "release");
    assert_eq!(crate::support::apt::locked(&text), ["app 2"]);
    assert_eq!(
        middle
            .requests()
            .iter()
            .filter(|request| request.target.ends_with("/Release"))
            .count(),
        2
    );
    // a release that is not signed at all
    std::fs::remove_file(place.path("up/r/dists/stable/Release.gpg")).unwrap();
    let (report, _) = lock(&first(&["/Release"], 0), 1, "unsigned");
    assert!(
        failure_reasons(&report)
            .contains("it is not signed: it has a Release, but neither InRelease nor"),
        "{report}"
    );
}

#[test]
fn a_failing_entry_keeps_its_pin_although_its_manifest_text_changed() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    up.build("pool/stable", &[deb("app", "1", ""), deb("tool", "1", "")]);
    up.suite("stable", "");
    let source = format!("url: '{}', suite: stable, components: [main]", up.url());
    let entry = |name: &str, key: &str, install: &str| {
        format!("- apt: {{name: {name}, {source}, key: {key}, base: none, install: [{install}]}}\n")
    };
    let head = "apiVersion: landfall/v1\nkind: Manifest\npackages:\n";
    place.write(
        "m.yaml",
        format!(
            "{head}{}{}",
            entry("a", "key.asc", "app"),
            entry("b", "key.asc", "tool")
        ),
    );
    up.lock(0, &[]);
    let before = place.read("landfall.lock");
    let changed = format!(
        "{head}{}{}",
        entry("a", "key.asc", "app, gone"),
        entry("b", "key.asc", "tool")
    );
    place.write("m.yaml", changed);
    let why = failure_reasons(&up.lock(3, &[]));
    assert!(
        why.contains(
            "no source has gone; the lock has the set of an earlier version of this entry; the old \
             pin is kept"
        ),
        "{why}"
    );
    assert_eq!(place.read("landfall.lock"), before);
    // if the manifest names another key, the old pin is not kept
    let other = crate::support::charts::Signer::new(place, "other");
    place.write("other.asc", other.public());
    place.write(
        "m.yaml",
        format!(
            "{head}{}{}",
            entry("a", "other.asc", "app"),
            entry("b", "key.asc", "tool")
        ),
    );
    up.lock(3, &[]);
    assert_eq!(up.locked(), ["tool 1"]);
}

/// Signs the Release file of the suite `stable` again after `edit`.
fn edit_release(up: &AptUpstream, edit: impl Fn(&str) -> String) {
    let text = up.place.read("up/r/dists/stable/Release");
    up.sign("dists/stable", &edit(&text));
}

#[test]
fn odd_entries_of_a_release_matter_only_if_they_are_used() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    up.build("pool/stable", &[deb("app", "1", "")]);
    let suite = || up.suite("stable", "Date: Sat, 14 Nov 2026 00:00:00 UTC\n");
    suite();
    up.wants("stable", "app", ", base: none");
    let zeros = "0".repeat(64);
    let odd = format!(" zz 1 main/odd\n {zeros} many main/odd2\n {zeros} main/odd3\n");
    edit_release(&up, |text| {
        text.replace("SHA256:\n", &format!("SHA256:\n{odd}"))
            .replace("Date: Sat, 14 Nov", "Date: Xyz, 99 Nov")
    });
    up.lock(0, &[]);
    place.ok(&["pull"]);
    // the next form of a translation is carried, as apt downloads it
    let translation =
        |form: &str| place.path(format!("up/r/dists/stable/main/i18n/Translation-en{form}"));
    suite();
    std::fs::remove_file(translation(".xz")).unwrap();
    up.lock(0, &["--lock", "gz.lock", "--store", "gz"]);
    let lock = place.read("gz.lock");
    assert!(
        lock.contains("Translation-en.gz") && !lock.contains("Translation-en.xz"),
        "{lock}"
    );
    place.ok(&["pull", "--lock", "gz.lock", "--store", "other"]);
    // without any form, `apt-get update` fails on machines
    for form in ["", ".gz"] {
        std::fs::remove_file(translation(form)).unwrap();
    }
    let why = failure_reasons(&up.lock(1, &["--lock", "two.lock", "--store", "third"]));
    assert!(why.contains("Translation-en"), "{why}");
    // the line of an index that is needed
    suite();
    edit_release(&up, |text| {
        let is_packages = |line: &str| line.ends_with("main/binary-amd64/Packages.xz");
        let lines = text
            .lines()
            .filter(|line| !line.contains("main/binary-amd64/Packages") || is_packages(line));
        let lines = lines.map(|line| match line.rsplit_once(' ') {
            Some((_, path)) if is_packages(line) => format!(" zz 7 {path}\n"),
            _ => format!("{line}\n"),
        });
        lines.collect()
    });
    let why = failure_reasons(&up.lock(1, &["--lock", "two.lock"]));
    assert!(why.contains("'zz' is not a sha256 digest"), "{why}");
    let page = "<html><head><title>Blocked</title></head></html>";
    place.write("up/r/dists/stable/InRelease", page);
    let why = failure_reasons(&up.lock(1, &["--lock", "two.lock"]));
    assert!(
        why.contains("an HTML page, titled 'Blocked', was sent"),
        "{why}"
    );
}

#[test]
fn bz2_and_lzma_indexes_are_read_and_carried() {
    let Some(up) = AptUpstream::new() else { return };
    if !need(&["bzip2", "lzma"]) {
        return;
    }
    let place = &up.place;
    up.build(
        "pool/stable",
        &[deb("app", "1", "Depends: lib\n"), deb("lib", "1", "")],
    );
    up.wants("stable", "app", ", base: none");
    let release = "Suite: stable\nArchitectures: amd64 i386\nComponents: main\n";
    for (program, form) in [("bzip2", "bz2"), ("lzma", "lzma")] {
        up.suite("stable", "");
        for index in ["binary-amd64/Packages", "binary-i386/Packages"] {
            let path = place.path(format!("up/r/dists/stable/main/{index}"));
            run(Command::new(program).args(["--keep", "--force"]).arg(&path));
            for other in ["gz", "xz", "bz2"].iter().filter(|other| **other != form) {
                // the first round leaves no file of the second
                let _ = std::fs::remove_file(format!("{}.{other}", path.display()));
            }
        }
        // the release names the uncompressed indexes, which the server lacks, as apt requires
        up.release("dists/stable", release);
        for arch in ["amd64", "i386"] {
            let plain = format!("up/r/dists/stable/main/binary-{arch}/Packages");
            std::fs::remove_file(place.path(plain)).unwrap();
        }
        let [lock, store, bundle] = ["lock", "store", "bundle"].map(|it| format!("{form}.{it}"));
        up.lock(0, &["--lock", &lock, "--store", &store]);
        let text = place.read(&lock);
        assert!(text.contains(&format!("Packages.{form}")), "{text}");
        assert_eq!(locked(&text), ["app 1", "lib 1"], "{form}");
        place.ok(&["pull", "--lock", &lock, "--store", &store]);
        place.ok(&["pack", "--lock", &lock, "--store", &store, "-o", &bundle]);
        place.ok(&["verify", &bundle]);
        let server = landfall_serve(place, &[&bundle]);
        // each server has its own port
        let url = up.server.url().replace("http://", "");
        let sources = format!(
            "deb [signed-by={}] http://{}/apt/{url}/r stable main\n",
            place.path("key.asc").display(),
            server.address,
        );
        let apt = Apt::new(place, form, &sources, "");
        run(&mut apt.get(place, &["update"]));
        assert_eq!(
            apt.simulate(place, false, &["app"]),
            Ok(vec!["app 1".to_owned(), "lib 1".to_owned()]),
            "{form}"
        );
    }
}

/// A change of the text of a Release file.
type ReleaseEdit = fn(&str) -> String;

/// Repositories in the wild are written by many tools. What apt reads, landfall reads.
#[test]
fn odd_forms_of_a_release_are_read_as_by_apt() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    up.build("pool/stable", &[deb("app", "1", "")]);
    let edits: [(&str, ReleaseEdit); 9] = [
        ("crlf", |text| text.replace('\n', "\r\n")),
        ("upper-case", |text| {
            let upper = |line: &str| match line.split_once(' ') {
                Some(("", _)) => line
                    .to_ascii_uppercase()
                    .replace("MAIN/BINARY", "main/binary"),
                _ => line.to_owned(),
            };
            let is_sum = |line: &str| line.starts_with(' ') && line.ends_with("amd64/Packages");
            let lines = text.lines().map(|line| match is_sum(line) {
                true => upper(line).replace("AMD64/PACKAGES", "amd64/Packages"),
                false => line.to_owned(),
            });
            lines.fold(String::new(), |all, line| all + &line + "\n")
        }),
        ("tabs", |text| {
            let lines = text.lines().map(|line| match line.strip_prefix(' ') {
                Some(rest) => format!("\t{}  ", rest.replace(' ', "\t ")),
                None => format!("{line} \t"),
            });
            lines.fold(String::new(), |all, line| all + &line + "\n")
        }),
        ("lower-case", |text| {
            let lines = text.lines().map(|line| match line.split_once(':') {
                Some((key, value)) if !line.starts_with(' ') => {
                    format!("{}:{value}", key.to_ascii_lowercase())
                }
                _ => line.to_owned(),
            });
            lines.fold(String::new(), |all, line| all + &line + "\n")
        }),
        ("no-space", |text| text.replace(": ", ":")),
        ("blank-line", |text| format!("\n{text}\n\n")),
        ("comment", |text| format!("# a comment\n{text}")),
        ("bom", |text| format!("\u{feff}{text}")),
        ("by-hash", |text| {
            text.replace("Codename", "Acquire-By-Hash: yes\nCodename")
        }),
    ];
    let mut different = Vec::new();
    for (name, edit) in edits {
        up.suite("stable", "");
        edit_release(&up, edit);
        if name == "by-hash" {
            for folder in ["binary-amd64", "binary-i386", "i18n"] {
                let folder = format!("up/r/dists/stable/main/{folder}/by-hash");
                let _ = std::fs::remove_dir_all(place.path(&folder));
            }
        }
        let source = format!(
            "deb [signed-by={}] {} stable main\n",
            place.path("key.asc").display(),
            up.url()
        );
        let apt = Apt::new(place, name, &source, "");
        let update = apt.get(place, &["update"]).output().unwrap();
        let by_apt = update.status.success() && apt.simulate(place, false, &["app"]).is_ok();
        up.wants("stable", "app", ", base: none");
        let (lock, store) = (format!("{name}.lock"), format!("s-{name}"));
        let lock = ["lock", "-f", "m.yaml", "--lock", &lock, "--store", &store];
        let output = place.landfall().args(lock).output().unwrap();
        let by_landfall = output.status.success();
        if by_apt && !by_landfall {
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            different.push(format!("{name}: apt {by_apt}, landfall: {words}"));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}
