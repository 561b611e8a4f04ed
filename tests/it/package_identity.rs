//! Packages and releases that a repository offers under a wrong name, version or suite.

use crate::support::Place;
use crate::support::apt::{AptUpstream, deb};
use crate::support::charts::failure_reasons;
use crate::support::rpm_repository;
use crate::support::run;
use crate::support::unchecked::pack_unchecked;
use crate::support::yum::YumUpstream;
use std::process::Command;

/// Asserts that `pull`, `pack` and `verify` refuse the locked package, each with `why`.
fn assert_refused(place: &Place, why: &str) {
    let assert_fails = |exit, args: &[&str]| {
        let report = place.json(exit, args).to_string();
        assert!(report.contains(why), "{args:?}: {report}");
    };
    assert_fails(1, &["pull"]);
    assert_fails(3, &["pack", "-o", "b"]);
    pack_unchecked(place, "forged");
    assert_fails(4, &["verify", "forged", "--lock", "landfall.lock"]);
}

/// An unsigned index or a mirror may offer an old signed package as a new one, or one package as
/// another.
#[test]
fn a_signed_rpm_is_refused_under_another_name_version_or_architecture() {
    let Some(up) = YumUpstream::new() else { return };
    let place = &up.place;
    up.build(&[("lib", "1.2", "", &["/usr/share/lib/lib"])]);
    up.index("gz");
    let mut find = Command::new("sh");
    find.current_dir(place.path("up/r"))
        .args(["-c", "zcat repodata/*-primary.xml.gz; rm -r repodata"]);
    let primary = String::from_utf8(run(&mut find)).unwrap();
    for (from, to, install, index, file) in [
        (
            "ver=\"1.2\" rel=\"1\"/>",
            "ver=\"9.9\" rel=\"1\"/>",
            "lib",
            "lib 9.9-1 noarch",
            "lib 1.2-1 noarch",
        ),
        (
            "<name>lib</name>",
            "<name>tool</name>",
            "tool",
            "tool 1.2-1 noarch",
            "lib 1.2-1 noarch",
        ),
        (
            "<arch>noarch</arch>",
            "<arch>x86_64</arch>",
            "lib",
            "lib 1.2-1 x86_64",
            "lib 1.2-1 noarch",
        ),
        (
            "epoch=\"0\" ver",
            "epoch=\"1\" ver",
            "lib",
            "lib 1:1.2-1 noarch",
            "lib 1.2-1 noarch",
        ),
    ] {
        assert!(primary.contains(from), "{from} in {primary}");
        rpm_repository::write_primary(&place.path("up/r"), &primary.replace(from, to));
        up.wants(&format!("install: [{install}], base: none"));
        up.lock(0, &["--refresh"]);
        let wanted = format!("its index offers it as {index}, but the file is {file}");
        assert_refused(place, &wanted);
    }
    rpm_repository::write_primary(&place.path("up/r"), &primary);
    up.wants("install: [lib], base: none");
    up.lock(0, &["--refresh"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    place.ok(&["verify", "b", "--lock", "landfall.lock"]);
}

#[test]
fn a_deb_is_refused_under_another_name_version_or_architecture() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    up.build("pool/stable", &[deb("app", "1:1.2-3", "")]);
    up.suite("stable", "");
    let folder = "dists/stable/main/binary-amd64";
    let index = place.read(&format!("up/r/{folder}/Packages"));
    let head = "Suite: stable\nCodename: stable\nArchitectures: amd64 i386\nComponents: main\n";
    for (from, to, install, offered) in [
        (
            "Version: 1:1.2-3",
            "Version: 1:9-1",
            "app",
            "app 1:9-1 amd64",
        ),
        (
            "Package: app",
            "Package: tool",
            "tool",
            "tool 1:1.2-3 amd64",
        ),
        (
            "Architecture: amd64",
            "Architecture: all",
            "app",
            "app 1:1.2-3 all",
        ),
    ] {
        assert!(index.contains(from), "{from} in {index}");
        up.index(folder, "Packages", index.replace(from, to).as_bytes());
        up.release("dists/stable", head);
        up.wants("stable", install, ", base: none");
        up.lock(0, &["--refresh"]);
        let wanted = format!("its index offers it as {offered}, but the file is app 1:1.2-3 amd64");
        assert_refused(place, &wanted);
    }
    up.index(folder, "Packages", index.as_bytes());
    up.release("dists/stable", head);
    up.wants("stable", "app", ", base: none");
    up.lock(0, &["--refresh"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    place.ok(&["verify", "b", "--lock", "landfall.lock"]);
}

/// One key signs all suites of a repository, so a valid signature does not prove the suite.
#[test]
fn the_release_of_another_suite_is_refused() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    for (suite, version) in [("bookworm", "1"), ("trixie", "2")] {
        up.build(&format!("pool/{suite}"), &[deb("app", version, "")]);
        up.suite(suite, "");
    }
    up.wants("bookworm", "app", ", base: none");
    up.lock(0, &[]);
    let lock = place.read("landfall.lock");
    let dists = place.path("up/r/dists");
    run(Command::new("cp")
        .current_dir(&dists)
        .args(["-a", "trixie", "mirrored"]));
    run(Command::new("sh")
        .current_dir(&dists)
        .args(["-c", "rm -r bookworm; cp -a trixie bookworm"]));
    let why = failure_reasons(&up.lock(1, &["--refresh"]));
    assert!(
        why.contains("InRelease is the release of trixie or trixie, not of bookworm"),
        "{why}"
    );
    assert!(
        why.contains("write `codename: trixie` in its source"),
        "{why}"
    );
    assert_eq!(place.read("landfall.lock"), lock, "the earlier pin is kept");
    // the release with a detached signature is checked too
    std::fs::remove_file(dists.join("bookworm/InRelease")).unwrap();
    let why = failure_reasons(&up.lock(1, &["--refresh"]));
    assert!(
        why.contains("dists/bookworm/Release is the release of trixie"),
        "{why}"
    );

    // if a mirror has its own suite names, the manifest declares the codename of the release
    up.wants("mirrored", "app", ", base: none");
    assert!(failure_reasons(&up.lock(1, &[])).contains("not of mirrored"));
    up.wants("mirrored", "app", ", base: none, codename: trixie");
    up.lock(0, &[]);
    assert_eq!(up.locked(), ["app 2"]);
    up.wants("mirrored", "app", ", base: none, codename: bookworm");
    assert!(failure_reasons(&up.lock(1, &["--refresh"])).contains("not of bookworm"));
}
