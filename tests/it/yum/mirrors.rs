//! Sources of yum metadata: metalinks, lists of mirrors, and older copies.

use crate::support::apt::locked;
use crate::support::charts::failure_reasons;
use crate::support::images::sha256_hex;
use crate::support::peers::file_server;
use crate::support::rpm_repository;
use crate::support::yum::YumUpstream;

#[test]
fn a_metalink_identifies_the_right_repomd() {
    let Some(up) = YumUpstream::new() else { return };
    let place = &up.place;
    rpm_repository::write(&place.path("up/r"), "a");
    let mirror = format!("{}/mirror", up.server.url());
    let metalink = |digest: &str| {
        format!(
            "<metalink xmlns=\"http://www.metalinker.org/\"><files><file name=\"repomd.xml\"><verification>\
             <hash type=\"sha256\">{digest}</hash></verification><resources>\
             <url preference=\"100\">{mirror}/repodata/repomd.xml</url></resources></file></files></metalink>"
        )
    };
    let digest = sha256_hex(&place.read_bytes("up/r/repodata/repomd.xml"));
    place.write("up/metalink", metalink(&digest));
    up.wants(&format!(
        "metalink: '{}/metalink', install: [a], base: none",
        up.server.url()
    ));
    up.lock(0, &[]);
    let lock = place.read("landfall.lock");
    assert!(
        !lock.contains("/mirror") && !lock.contains("/metalink"),
        "{lock}"
    );
    assert_eq!(
        up.server.requests("GET /mirror/"),
        0,
        "the URL of the source precedes its mirrors"
    );
    place.write("up/metalink", metalink(&"0".repeat(64)));
    let why = failure_reasons(&up.lock(1, &["--refresh", "--lock", "other.lock"]));
    assert!(
        why.contains("none of its digests is that of repomd.xml"),
        "{why}"
    );
    // the mirror has the content that the metalink describes
    rpm_repository::write(&place.path("up/mirror"), "a 2");
    let newer = sha256_hex(&place.read_bytes("up/mirror/repodata/repomd.xml"));
    place.write("up/metalink", metalink(&newer));
    up.lock(0, &["--refresh"]);
    let lock = place.read("landfall.lock");
    assert!(
        locked(&lock) == ["a 2-1"] && !lock.contains("/mirror"),
        "{lock}"
    );
}

#[test]
fn the_next_mirror_is_used_if_one_fails() {
    let Some(up) = YumUpstream::new() else { return };
    let place = &up.place;
    rpm_repository::write(&place.path("up/r"), "a");
    up.sign();
    let base = up.server.url();
    let mirrors =
        format!("# a list\n{base}/$releasever/os\nrsync://h/r\n{base}/empty/\n{base}/r/\n");
    place.write("up/mirrors", mirrors);
    let manifest = |url: &str| {
        let entry = |name: &str| {
            format!(
                "- yum: {{name: {name}, url: '{url}', mirrorlist: '{base}/mirrors', key: key.asc, install: [a], base: none}}\n"
            )
        };
        let head = "apiVersion: landfall/v1\nkind: Manifest\npackages:\n";
        place.write("m.yaml", format!("{head}{}{}", entry("one"), entry("two")));
    };
    manifest(&format!("{base}/gone"));
    up.lock(0, &[]);
    let lock = place.read("landfall.lock");
    assert_eq!(locked(&lock), ["a 1-1", "a 1-1"]);
    assert!(
        !lock.contains("/mirrors") && !lock.contains("/r/"),
        "{lock}"
    );
    assert!(lock.contains(&format!("  - url: {base}/gone\n")), "{lock}");
    assert_eq!(
        up.server.requests("GET /mirrors "),
        1,
        "the list is requested once"
    );
    let requests_to = |folder: &str| {
        up.server
            .requests(&format!("GET /{folder}/repodata/repomd.xml "))
    };
    assert!(
        requests_to("gone") == requests_to("empty") && requests_to("empty") == requests_to("r"),
        "each URL before the working mirror gets as many requests as the working mirror"
    );

    // if one mirror has a changed index, the index is downloaded from the next mirror
    std::fs::create_dir_all(place.path("up/gone/repodata")).unwrap();
    for file in ["repomd.xml", "repomd.xml.asc"] {
        place.write(
            &format!("up/gone/repodata/{file}"),
            place.read_bytes(&format!("up/r/repodata/{file}")),
        );
    }
    place.write("up/gone/repodata/primary.xml.gz", "other bytes");
    up.lock(0, &["--lock", "again.lock", "--store", "again"]);
    assert_eq!(locked(&place.read("again.lock")), ["a 1-1", "a 1-1"]);

    // without a signature, the content of a mirror cannot be verified
    std::fs::remove_dir_all(place.path("up/gone")).unwrap();
    std::fs::remove_file(place.path("up/r/repodata/repomd.xml.asc")).unwrap();
    let why = failure_reasons(&up.lock(1, &["--lock", "no.lock"]));
    assert!(
        why.contains("it is not signed, and no metalink has its digest"),
        "{why}"
    );

    // a URL with a variable that only dnf can replace is refused
    manifest(&format!("{base}/$releasever/os"));
    let printed = place.stderr(2, &["lock", "-f", "m.yaml"]);
    assert!(
        printed.contains("`$releasever` is a variable of the package manager"),
        "{printed}"
    );
}

/// The lock names neither the list nor the mirrors.
#[test]
fn egress_lists_the_hosts_of_mirrors_for_the_lock() {
    let Some(up) = YumUpstream::new() else { return };
    let place = &up.place;
    rpm_repository::write(&place.path("up/r"), "a");
    up.sign();
    let [lists, mirror] = [(); 2].map(|()| file_server(&place.path("up")));
    place.write("up/mirrors", format!("{}/r\n", mirror.url()));
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\npackages:\n\
             - yum: {{url: '{}/gone', mirrorlist: '{}/mirrors', key: key.asc, install: [a], base: none}}\n",
            up.server.url(),
            lists.url()
        ),
    );
    up.lock(0, &[]);
    let report = place.json(0, &["egress"]);
    let hosts = report["egress"]["hosts"].as_array().unwrap();
    for server in [&up.server, &lists, &mirror] {
        let port: u16 = server.address.rsplit_once(':').unwrap().1.parse().unwrap();
        let is_listed = |host: &serde_json::Value| host["port"] == port;
        assert!(hosts.iter().any(is_listed), "{port}: {report}");
    }
}

#[test]
fn an_older_repomd_is_refused() {
    let Some(up) = YumUpstream::new() else { return };
    let place = &up.place;
    let write = |packages: &str, time: &str| {
        rpm_repository::write(&place.path("up/r"), packages);
        // a revision need not be a number
        let text = place
            .read("up/r/repodata/repomd.xml")
            .replace("<revision>1<", "<revision>9.4 beta<");
        place.write(
            "up/r/repodata/repomd.xml",
            text.replace("<timestamp>1<", &format!("<timestamp>{time}<")),
        );
        up.sign();
    };
    up.wants("install: [a], base: none");
    write("a 2", "1700000100");
    up.lock(0, &[]);
    let lock = place.read("landfall.lock");
    assert!(
        lock.contains("    date: \"2023-11-14T22:15:00Z\"\n"),
        "{lock}"
    );
    // correctly signed, but older
    write("a 1", "1700000000.5");
    let why = failure_reasons(&up.lock(1, &["--refresh"]));
    assert!(
        why.contains(
            "repomd.xml has the date 2023-11-14T22:13:20Z, older than 2023-11-14T22:15:00Z in the \
             lock"
        ),
        "{why}"
    );
    // an old repomd.xml with a new date, and without its signature
    write("a 1", "1700000200");
    std::fs::remove_file(place.path("up/r/repodata/repomd.xml.asc")).unwrap();
    let why = failure_reasons(&up.lock(1, &["--refresh"]));
    assert!(why.contains("it has no signature, but had one"), "{why}");
    assert_eq!(locked(&place.read("landfall.lock")), ["a 2-1"]);
    write("a 3", "1700000200");
    up.lock(0, &["--refresh"]);
    assert_eq!(locked(&place.read("landfall.lock")), ["a 3-1"]);
}
