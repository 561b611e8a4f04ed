//! Targets for packages of apt and yum, the metadata of their repositories, and OpenPGP signatures.

use super::charts::tar_of;
use jiff::Timestamp;
use landfall_model::Limits;
use landfall_model::sign::{OpenPgpKeys, OpenPgpSigner, SignatureTime};
use landfall_packages::{apt, yum};
use std::fs;

fn file(name: &str) -> Vec<u8> {
    fs::read(format!(
        "{}/tests/data/packages/{name}",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap()
}

/// A Debian package with a changelog: an `ar` archive with uncompressed members, so that mutations
/// change their content.
pub(super) fn deb_seeds() -> Vec<Vec<u8>> {
    let member = |name: &str, content: &[u8]| {
        let head = format!(
            "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            0,
            0,
            0,
            100_644,
            content.len()
        );
        let mut all = head.into_bytes();
        all.extend(content);
        // members of an `ar` archive begin at even offsets
        all.resize(all.len().next_multiple_of(2), b'\n');
        all
    };
    let control = tar_of(&[(
        "./control",
        b"Package: app\nVersion: 1.0-1\nArchitecture: amd64\nDepends: libc6\n",
    )]);
    let data = tar_of(&[(
        "./usr/share/doc/app/changelog",
        b"app (1.0-1) stable; urgency=low\n\n  * First.\n",
    )]);
    let members = [
        member("debian-binary", b"2.0\n"),
        member("control.tar", &control),
        member("data.tar", &data),
    ];
    vec![[b"!<arch>\n".to_vec(), members.concat()].concat()]
}

/// Reads the bytes as a package of Debian.
pub(super) fn deb(bytes: &[u8]) {
    let _ = apt::changelog(&mut &*bytes, "app");
    let _ = apt::package_identity(&mut &*bytes);
}

/// Two signed packages and an unsigned one, all built by rpmbuild.
pub(super) fn rpm_seeds() -> Vec<Vec<u8>> {
    ["signed.rpm", "signed-ed25519.rpm", "unsigned.rpm"]
        .map(file)
        .to_vec()
}

/// Reads the bytes as an RPM package, and checks its signature.
pub(super) fn rpm(bytes: &[u8]) {
    let keys = OpenPgpKeys::parse(&file("key.asc")).unwrap();
    let limits = Limits::default();
    let _ = yum::verify_package(bytes, &keys, SignatureTime::Now, &limits);
    let _ = yum::changelog(bytes, &limits);
}

/// A Release file and a Packages index.
pub(super) fn apt_seeds() -> Vec<Vec<u8>> {
    let digest = "0".repeat(64);
    let release = format!(
        "Origin: T\nSuite: stable\nCodename: t\nDate: Mon, 23 Nov 2026 00:00:00 UTC\nAcquire-By-Hash: yes\nArchitectures: amd64 all\nComponents: main\nSHA256:\n {digest} 100 main/binary-amd64/Packages\n"
    );
    let packages = format!(
        "Package: app\nVersion: 1:1.0-1~b\nArchitecture: amd64\nMulti-Arch: same\nDepends: a (>= 1) | b:any [amd64], c\nConflicts: d\nProvides: v (= 2)\nFilename: pool/a.deb\nSize: 10\nSHA256: {digest}\nDescription: x\n more\n\nPackage: a\nVersion: 2\nArchitecture: all\nEssential: yes\nFilename: pool/b.deb\nSize: 10\nSHA256: {digest}\n"
    );
    vec![release.into_bytes(), packages.into_bytes()]
}

/// Reads the text as a Release file, and as a Packages index from which packages are selected.
pub(super) fn apt(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = apt::AptRelease::parse("Release", &text);
    let mut universe = apt::Universe::new(&["amd64".into()]);
    let source = universe.add_source(500);
    universe.add_index(source, &text);
    let _ = apt::choose(
        &universe,
        &[vec!["t".into()]],
        &["app".into(), "a".into()],
        apt::AptSettings {
            recommends: true,
            expects_rest: true,
        },
    );
}

/// One example of each index of a yum repository.
pub(super) fn yum_seeds() -> Vec<Vec<u8>> {
    let digest = "0".repeat(64);
    let repomd = format!(
        "<?xml version=\"1.0\"?>\n<repomd><revision>1</revision><data type=\"primary\"><checksum type=\"sha256\">{digest}</checksum><open-checksum type=\"sha256\">{digest}</open-checksum><location href=\"repodata/p.xml.gz\"/><timestamp>1</timestamp><size>10</size><open-size>20</open-size></data></repomd>\n"
    );
    let primary = format!(
        "<metadata packages=\"1\"><package type=\"rpm\"><name>app</name><arch>x86_64</arch><version epoch=\"0\" ver=\"1\" rel=\"2\"/><checksum type=\"sha256\" pkgid=\"YES\">{digest}</checksum><size package=\"10\" installed=\"20\" archive=\"30\"/><location href=\"p/app.rpm\"/><format><rpm:provides><rpm:entry name=\"app\" flags=\"EQ\" epoch=\"0\" ver=\"1\" rel=\"2\"/></rpm:provides><rpm:requires><rpm:entry name=\"(a if b else c)\"/><rpm:entry name=\"/bin/sh\" pre=\"1\"/></rpm:requires><file>/usr/bin/app</file></format></package></metadata>\n"
    );
    let filelists = format!(
        "<filelists packages=\"1\"><package pkgid=\"{digest}\" name=\"app\" arch=\"x86_64\"><version epoch=\"0\" ver=\"1\" rel=\"2\"/><file>/bin/sh</file></package></filelists>\n"
    );
    let modules = "---\ndocument: modulemd\nversion: 2\ndata:\n  name: m\n  stream: \"1\"\n  artifacts:\n    rpms: [app-0:1-2.x86_64]\n---\ndocument: modulemd-defaults\nversion: 1\ndata: {module: m, stream: \"1\"}\n";
    let mirrors = format!(
        "<metalink><files><file name=\"repomd.xml\"><verification><hash type=\"sha256\">{digest}</hash></verification><resources><url protocol=\"https\">https://m.test/repodata/repomd.xml</url></resources></file></files></metalink>\n"
    );
    vec![
        repomd.into_bytes(),
        primary.into_bytes(),
        filelists.into_bytes(),
        modules.into(),
        mirrors.into_bytes(),
    ]
}

/// Reads the bytes as each kind of index of a yum repository.
pub(super) fn yum(bytes: &[u8]) {
    let _ = yum::Repomd::parse(bytes);
    let _ = yum::read_mirrors(bytes);
    yum::fuzz(bytes);
}

/// Keys, a signed text, and a signature of `content`. A key that [`openpgp`] does not trust signed
/// the text and `content`.
pub(super) fn openpgp_seeds() -> Vec<Vec<u8>> {
    let signer = OpenPgpSigner::parse(&file("site-key.asc"), None).unwrap();
    let text = signer
        .cleartext("Origin: T\n- dashed \n", Timestamp::now())
        .unwrap();
    let detached = signer.detached(b"content", Timestamp::now()).unwrap();
    vec![
        file("key.asc"),
        file("other.asc"),
        text.into_bytes(),
        detached.into_bytes(),
    ]
}

/// Reads the bytes as keys, as a signature and as signed text. Verification with the key
/// `other.asc` must always fail, because it signed nothing.
pub(super) fn openpgp(bytes: &[u8]) {
    let _ = OpenPgpKeys::parse(bytes);
    let keys = OpenPgpKeys::parse(&file("other.asc")).unwrap();
    assert!(
        keys.verify_detached(bytes, SignatureTime::Now, || Ok(&b"content"[..]))
            .is_err()
    );
    assert!(
        keys.verify(&String::from_utf8_lossy(bytes), SignatureTime::Now)
            .is_err()
    );
}
