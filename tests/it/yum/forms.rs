//! Forms of `repomd.xml` that many tools write. What dnf reads, landfall reads.

use crate::support::charts::Signer;
use crate::support::rpm_repository;
use crate::support::yum::{YumUpstream, dnf, planned};

/// A change of the text of `repomd.xml`, with the URL of the repository.
type Edit = fn(&str, &str) -> String;

#[test]
fn odd_forms_of_repomd_are_read_as_by_dnf() {
    let Some(up) = YumUpstream::new() else { return };
    let place = &up.place;
    rpm_repository::write(&place.path("up/r"), "a");
    let list = "up/r/repodata/repomd.xml";
    let good = place.read(list);
    let edits: [(&str, Edit); 11] = [
        ("crlf", |text, _| text.replace('\n', "\r\n")),
        ("bom", |text, _| format!("\u{feff}{text}")),
        ("blank", |text, _| format!("{text}\n\n<!-- end -->\n")),
        ("url", |text, url| {
            text.replace("href=\"repodata/", &format!("href=\"{url}/repodata/"))
        }),
        ("upper-url", |text, url| {
            let url = url.replace("http://", "HTTP://");
            text.replace("href=\"repodata/", &format!("href=\"{url}/repodata/"))
        }),
        ("slash", |text, _| {
            text.replace("href=\"repodata/", "href=\"/repodata/")
        }),
        ("dot", |text, _| {
            text.replace("href=\"repodata/", "href=\"./repodata/")
        }),
        ("double", |text, _| {
            text.replace("href=\"repodata/", "href=\"repodata//")
        }),
        ("upper-type", |text, _| {
            text.replace("type=\"sha256\"", "type=\"SHA256\"")
        }),
        ("spaces", |text, _| {
            let text = text.replace(
                "<checksum type=\"sha256\">",
                "<checksum type=\"sha256\">\n ",
            );
            text.replace("</checksum>", " \n</checksum>")
        }),
        ("no-open", |text, _| {
            let lines = text
                .replace("<open-", "\n<open-")
                .replace("</open-checksum>", "</open-checksum>\n");
            let lines = lines.replace("</open-size>", "</open-size>\n");
            let kept = lines
                .lines()
                .filter(|line| !line.trim().starts_with("<open-"));
            kept.fold(String::new(), |all, line| all + line + "\n")
        }),
    ];
    let mut different = Vec::new();
    for (name, edit) in edits {
        place.write(list, edit(&good, &up.url()));
        let mut install = dnf(place, &format!("dnf-{name}"), &up.url(), "gpgcheck=0\n");
        let output = install
            .args(["--assumeno", "install", "a"])
            .output()
            .unwrap();
        let by_dnf = planned(&output.stdout);
        up.wants("install: [a], base: none");
        let (lock, store) = (format!("{name}.lock"), format!("s-{name}"));
        let lock = ["lock", "-f", "m.yaml", "--lock", &lock, "--store", &store];
        let by_landfall = place.landfall().args(lock).output().unwrap();
        if !by_dnf.is_empty() && !by_landfall.status.success() {
            let words = String::from_utf8_lossy(&by_landfall.stderr).into_owned();
            different.push(format!("{name}: dnf {by_dnf:?}, landfall: {words}"));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

/// rpm of RHEL 9 cannot import such a key.
#[test]
fn a_key_that_only_sha1_certifies_is_reported() {
    let Some(up) = YumUpstream::new() else { return };
    let place = &up.place;
    rpm_repository::write(&place.path("up/r"), "a");
    up.wants("install: [a], base: none");
    let is_noted = || {
        let locking = place
            .command()
            .args(["lock", "-f", "m.yaml", "--refresh"])
            .output()
            .unwrap();
        assert!(locking.status.success(), "{locking:?}");
        String::from_utf8_lossy(&locking.stderr).contains("is certified only with SHA-1")
    };
    assert!(!is_noted());
    place.write("gpg-weak/gpg.conf", "cert-digest-algo SHA1\n");
    let weak = Signer::new(place, "weak");
    let both = [place.read_bytes("key.asc"), weak.public()].concat();
    place.write("key.asc", both);
    assert!(is_noted());
}
