//! Invalid yum repositories are refused, each with its message.

use super::upstream;
use crate::support::charts::{Signer, failure_reasons};
use crate::support::images::sha256_hex;
use crate::support::rpm_repository;
use crate::support::unchecked::pack_unchecked;
use crate::support::yum::YumUpstream;

#[test]
fn hostile_repositories_are_refused_and_not_locked() {
    let Some(up) = YumUpstream::new() else { return };
    let place = &up.place;
    let root = place.path("up/r");
    let other = Signer::new(place, "other");
    let good = "a: requires b\nb";
    let read = |name: &str| place.read(&format!("up/r/repodata/{name}"));
    let swap = |name: &str, from: &str, to: &str| {
        let text = read(name);
        assert!(text.contains(from), "{from} in {text}");
        place.write(&format!("up/r/repodata/{name}"), text.replace(from, to));
    };
    let primary = |from: &str, to: &str| {
        let text = rpm_repository::primary(good);
        assert!(text.contains(from), "{from} in {text}");
        rpm_repository::write_primary(&root, &text.replace(from, to));
    };
    let packed = || place.read_bytes("up/r/repodata/primary.xml.gz");
    let digest = |bytes: &[u8]| sha256_hex(bytes);
    type Fault<'a> = (&'a str, Box<dyn Fn() + 'a>, bool, &'a str);
    let faults: Vec<Fault<'_>> = vec![
        (
            "repomd.xml changed after it was signed",
            Box::new(|| swap("repomd.xml", "<revision>1", "<revision>2")),
            false,
            "no valid signature",
        ),
        (
            "signed by another key",
            Box::new(|| {
                drop(place.write(
                    "up/r/repodata/repomd.xml.asc",
                    other.detached(&read("repomd.xml")),
                ));
            }),
            false,
            "no valid signature",
        ),
        (
            "no signature",
            Box::new(|| drop(place.write("up/r/repodata/repomd.xml.asc", "hello"))),
            false,
            "contains no OpenPGP signature",
        ),
        (
            "a swapped primary index",
            Box::new(|| drop(place.write("up/r/repodata/primary.xml.gz", vec![7; packed().len()]))),
            true,
            "its bytes are sha256:",
        ),
        (
            "a truncated primary index",
            Box::new(|| {
                drop(place.write(
                    "up/r/repodata/primary.xml.gz",
                    &packed()[..packed().len() / 2],
                ))
            }),
            true,
            "its bytes are sha256:",
        ),
        (
            "a primary index with further bytes",
            Box::new(|| {
                drop(place.write(
                    "up/r/repodata/primary.xml.gz",
                    [packed(), vec![0; 9000]].concat(),
                ));
            }),
            true,
            "the response is larger than the limit of ",
        ),
        (
            "a bomb",
            Box::new(|| {
                let size = rpm_repository::primary(good).len();
                rpm_repository::write_primary(
                    &root,
                    &(rpm_repository::primary(good) + &" ".repeat(8 << 20)),
                );
                let real = size + (8 << 20);
                swap(
                    "repomd.xml",
                    &format!("<open-size>{real}<"),
                    &format!("<open-size>{size}<"),
                );
            }),
            true,
            "unpacks to more than",
        ),
        (
            "an absurd size",
            Box::new(|| {
                let open = rpm_repository::primary(good).len();
                swap(
                    "repomd.xml",
                    &format!("<open-size>{open}<"),
                    "<open-size>99999999999999<",
                );
            }),
            true,
            "more than",
        ),
        (
            "another open-checksum",
            Box::new(|| {
                let open = digest(rpm_repository::primary(good).as_bytes());
                swap("repomd.xml", &open, &"0".repeat(64));
            }),
            true,
            "does not match the open-checksum in repomd.xml",
        ),
        (
            "only SHA-1",
            Box::new(|| {
                swap(
                    "repomd.xml",
                    "<checksum type=\"sha256\"",
                    "<checksum type=\"sha1\"",
                )
            }),
            true,
            "only sha256 and sha512 are accepted",
        ),
        (
            "an index outside of the repository",
            Box::new(|| {
                swap(
                    "repomd.xml",
                    "href=\"repodata/primary",
                    "href=\"../../primary",
                )
            }),
            true,
            "leads above the host",
        ),
        (
            "an unsupported compression",
            Box::new(|| swap("repomd.xml", "primary.xml.gz", "primary.xml.zck")),
            true,
            "is not supported",
        ),
        (
            "a package outside of the repository",
            Box::new(|| primary("Packages/b-1", "../../b-1")),
            true,
            "leads above the host",
        ),
        (
            "a package at another base URL",
            Box::new(|| {
                primary(
                    "<location href=\"Packages/b-1",
                    "<location xml:base=\"https://x.example\" href=\"b-1",
                );
            }),
            true,
            "on another host than the repository",
        ),
        (
            "a package by SHA-1",
            Box::new(|| {
                primary(
                    "<checksum type=\"sha256\" pkgid=\"YES\">",
                    "<checksum type=\"sha\" pkgid=\"YES\">",
                );
            }),
            true,
            "cannot be verified",
        ),
        (
            "a package without bytes",
            Box::new(|| primary("<size package=\"100\"", "<size package=\"0\"")),
            true,
            "its index has no size of a",
        ),
        (
            "an index that is cut in the middle",
            Box::new(|| {
                rpm_repository::write_primary(&root, &rpm_repository::primary(good)[..700])
            }),
            true,
            "primary index",
        ),
        (
            "another document",
            Box::new(|| {
                drop(place.write(
                    "up/r/repodata/repomd.xml",
                    "<html><body>log in</body></html>",
                ))
            }),
            true,
            "repomd.xml",
        ),
    ];
    for (number, (name, fault, sign, words)) in faults.iter().enumerate() {
        rpm_repository::write(&root, good);
        up.sign();
        up.wants("install: [a], base: none");
        fault();
        if *sign {
            up.sign();
        }
        let lock = format!("{number}.lock");
        let store = format!("store-{number}");
        let why = failure_reasons(&up.lock(1, &["--lock", &lock, "--store", &store]));
        assert!(why.contains(words), "{name}: {why}");
        let text = if place.path(&lock).exists() {
            place.read(&lock)
        } else {
            String::new()
        };
        assert!(!text.contains("sources:"), "{name}: {text}");
    }
}

#[test]
fn a_package_with_changed_bytes_or_a_signature_by_another_key_is_refused() {
    let Some(up) = upstream() else { return };
    let place = &up.place;
    up.wants("install: [libapp], base: none");
    up.lock(0, &[]);
    // one bit of the file is changed
    let path = "up/r/Packages/libapp-1.2-1.noarch.rpm";
    let good = place.read_bytes(path);
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    place.write(path, &bad);
    let why = failure_reasons(&place.json(1, &["pull"]));
    assert!(why.contains("digest") || why.contains("sha256:"), "{why}");

    // the package is signed by another key, and the repository lists its new digest
    place.write(path, good);
    let other = Signer::new(place, "other");
    other.sign_packages(&[place.path(path)]);
    up.index_again("gz");
    up.lock(0, &["--refresh"]);
    for _ in 0..2 {
        let why = failure_reasons(&place.json(1, &["pull"]));
        assert!(
            why.contains("libapp-1.2-1.noarch.rpm: it has no valid signature"),
            "{why}"
        );
    }
    // once the manifest has the other key as well, `lock` without --refresh adds it to the lock
    let key = place.read_bytes("key.asc");
    place.write("key.asc", [&key[..], &other.public()].concat());
    up.lock(0, &[]);
    place.ok(&["pull"]);
    place.write("key.asc", key);
    up.lock(0, &[]);
    // refused packages stay in the store, but are neither packed nor pulled into a bundle
    let why = failure_reasons(&place.json(3, &["pack", "-o", "b"]));
    assert!(
        why.contains("libapp-1.2-1.noarch.rpm: it has no valid signature"),
        "{why}"
    );
    // a bundle that somebody packed without this check is refused
    pack_unchecked(place, "forged");
    let verified = place.json(4, &["verify", "forged", "--lock", "landfall.lock"]);
    assert!(
        verified
            .to_string()
            .contains("libapp-1.2-1.noarch.rpm: it has no valid signature"),
        "{verified}"
    );
    for _ in 0..2 {
        let why = failure_reasons(&place.json(1, &["pull", "--bundle", "b"]));
        assert!(
            why.contains("libapp-1.2-1.noarch.rpm: it has no valid signature"),
            "{why}"
        );
        assert!(!place.path("b").exists());
        let left = place.landfall().args(["ls", "b.partial"]).output().unwrap();
        assert!(!left.status.success(), "a refused package is not packed");
    }
    // after the package is signed correctly again, the same command succeeds
    up.signer.sign_packages(&[place.path(path)]);
    up.index_again("gz");
    up.lock(0, &["--refresh"]);
    place.ok(&["pull", "--bundle", "b"]);
    place.ok(&["verify", "b", "--lock", "landfall.lock"]);
}
