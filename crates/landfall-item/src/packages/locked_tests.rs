//! Modified sets of packages in a lock are rejected.

use super::kind;
use super::locked::{LockedPackage, LockedPackageSet, PackageIndex, PackageSource};
use super::resolvable::OfferedIndex;
use crate::lock_yaml::write_item;
use crate::lockfile::Lock;
use landfall_model::Digest;

pub(super) fn set() -> LockedPackageSet {
    let package = LockedPackage {
        digest: Digest::sha256(b"package"),
        size: 7,
        name: "tool".into(),
        version: "1:2.0~rc1-1".into(),
        arch: "amd64".into(),
        path: "pool/tool_2.0_amd64.deb".into(),
        url: "https://h.test/r/pool/tool_2.0_amd64.deb".into(),
    };
    let index = PackageIndex {
        digest: Digest::sha256(b"index"),
        size: 5,
        path: "dists/s/InRelease".into(),
        url: "https://h.test/r/dists/s/InRelease".into(),
    };
    let source = PackageSource {
        url: "https://h.test/r".into(),
        suite: "s".into(),
        components: vec!["main".into()],
        targets: vec!["Packages".into()],
        signed_by: "ABCD".into(),
        key: "-----BEGIN PGP PUBLIC KEY BLOCK-----\n".into(),
        indexes: vec![index],
        packages: vec![package],
        ..PackageSource::default()
    };
    LockedPackageSet {
        name: "apt:x".into(),
        digest: Digest::sha256(b""),
        architectures: vec!["amd64".into()],
        install: vec!["tool".into()],
        modules: Vec::new(),
        recommends: false,
        index: OfferedIndex::default(),
        base: Vec::new(),
        expected: Vec::new(),
        sources: vec![source],
    }
}

/// Reads a lock with `set` and its correct digest, so that only its other fields can be wrong.
fn read(mut set: LockedPackageSet) -> Result<Lock, String> {
    set.digest = kind::digest(&set);
    let mut text = "version: 1\npackages:\n".to_owned();
    write_item(&set, &mut text).unwrap();
    Lock::parse("l", &text).map_err(|error| error.to_string())
}

/// Applies `change` to a valid set, and returns the error for a lock with the changed set.
fn changed(change: impl FnOnce(&mut LockedPackageSet)) -> String {
    let mut set = set();
    change(&mut set);
    read(set).unwrap_err()
}

fn package(set: &mut LockedPackageSet) -> &mut LockedPackage {
    &mut set.sources[0].packages[0]
}

#[test]
fn a_lock_with_a_valid_set_is_read_and_a_changed_one_is_refused() {
    let lock = read(set()).unwrap();
    assert_eq!(lock.packages[0].sources, set().sources);
    let error = Lock::parse("l", &lock.to_text().replace("amd64.deb", "amd65.deb")).unwrap_err();
    assert!(
        error.to_string().contains("but its other fields have"),
        "{error}"
    );
}

#[test]
fn paths_that_leave_their_source_are_refused() {
    let long = "x".repeat(1024);
    let paths = [
        "../../etc/passwd",
        "/etc/passwd",
        "pool/../../x",
        "pool/",
        "https://u@h.test/x",
        "..\\x",
        "",
        &long,
    ];
    for path in paths {
        let of_package = changed(|set| package(set).path = path.into());
        let of_index = changed(|set| set.sources[0].indexes[0].path = path.into());
        for message in [of_package, of_index] {
            assert!(
                message.contains(&format!(
                    "'{path}' is not where a file of a repository can be"
                )),
                "{path:?}: {message}"
            );
        }
    }
    let message = changed(|set| package(set).path = "a\n\u{1b}[2J".into());
    assert!(
        message.contains("'a\\n\\u{1b}[2J' is not where a file of a repository can be"),
        "{message}"
    );
}

/// Names, versions and suites become words in the sources and preferences files of machines.
#[test]
fn texts_that_are_not_a_single_word_are_refused() {
    type Field = fn(&mut LockedPackageSet) -> &mut String;
    let words: [Field; 7] = [
        |set| &mut package(set).name,
        |set| &mut package(set).version,
        |set| &mut package(set).arch,
        |set| &mut set.sources[0].suite,
        |set| &mut set.sources[0].components[0],
        |set| &mut set.sources[0].targets[0],
        |set| &mut set.architectures[0],
    ];
    for (at, field) in words.into_iter().enumerate() {
        for bad in [
            "x\nPin-Priority:",
            "x\ty",
            "x\u{a0}y",
            "x\u{0}",
            "x\u{1b}[2J",
        ] {
            let message = changed(|set| *field(set) = bad.into());
            assert!(
                message.contains("is not a valid name"),
                "{at} {bad:?}: {message}"
            );
            assert!(!message.contains(|c: char| c.is_control()), "{message:?}");
        }
    }
    for (at, field) in words[..3].iter().enumerate() {
        let message = changed(|set| *field(set) = String::new());
        assert!(
            message.contains("'' is not a valid name"),
            "{at}: {message}"
        );
        // a package's line in the lock has six words, the last of which may contain spaces
        let message = changed(|set| *field(set) = "x y".into());
        assert!(
            message.contains("but its other fields have"),
            "{at}: {message}"
        );
    }
}

#[test]
fn invalid_urls_and_keys_that_are_not_ascii_are_refused() {
    for url in [
        "ftp://h.test/r",
        "file:///etc",
        "h.test/r",
        "http://../r",
        "http://h.test/r http://other.test/r",
    ] {
        let message = changed(|set| set.sources[0].url = url.into());
        assert!(
            message.contains(&format!("'{url}' is not an http or https URL")),
            "{message}"
        );
        let message = changed(|set| set.sources[0].snapshot = Some(url.into()));
        assert!(
            message.contains(&format!("'{url}' is not an http or https URL")),
            "{message}"
        );
    }
    let message = changed(|set| set.sources[0].key = "-----BEGIN \u{e9}\n".into());
    assert!(message.contains("is not an armored key"), "{message}");
}

/// The fingerprint becomes the name of a file on machines.
#[test]
fn fingerprints_that_are_not_hex_digits_are_refused() {
    for bad in [
        "/../../../../tmp/x",
        "..",
        "",
        "AB\nCD",
        "AB CD",
        "AB or CD",
        "ABCG",
        "\u{661}",
    ] {
        let message = changed(|set| set.sources[0].signed_by = bad.into());
        assert!(message.contains("' is not a fingerprint"), "{message}");
        assert!(!message.contains(|c: char| c.is_control()), "{message:?}");
    }
    let yum = |signer: &str| {
        let mut set = set();
        set.name = "yum:x".into();
        set.sources[0].signed_by = signer.into();
        read(set)
    };
    assert!(yum("ABCD or 0123abcd").is_ok());
    for bad in [
        "ABCD or ../x",
        "ABCD or ",
        " or ",
        "ABCD or EF or",
        "AB  or CD",
    ] {
        let message = yum(bad).unwrap_err();
        assert!(message.contains("' is not a fingerprint"), "{message}");
    }
}
