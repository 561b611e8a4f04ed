//! apt packages: from a signed repository to a lock, a bundle, a registry, a server and a folder,
//! and from there to apt.

use crate::support::apt::{Apt, AptUpstream, Deb, deb, files};
use crate::support::charts::{Signer, failure_reasons};
use crate::support::http::request;
use crate::support::peers::own_registry;
use crate::support::{landfall_serve, run};
use std::fs;

/// A repository with an application, its dependencies, and other packages.
fn upstream() -> Option<AptUpstream> {
    let up = AptUpstream::new()?;
    up.build(
        "pool/stable",
        &[
            deb(
                "app",
                "1.0-1",
                "Pre-Depends: base-files\nDepends: libapp2 (>= 1.2~), app-data, mailer\nRecommends: extra\n",
            ),
            deb("libapp2", "1:1.2+b1", "Multi-Arch: same\n"),
            deb("libapp2", "1:1.1", "Multi-Arch: same\n"),
            Deb { arch: "all", ..deb("app-data", "2~rc1", "Depends: tool:any\n") },
            deb("tool", "3", "Multi-Arch: allowed\n"),
            deb("mta-a", "1", "Provides: mailer\nPriority: extra\n"),
            deb("mta-b", "1", "Provides: mailer\nPriority: standard\n"),
            deb("extra", "1", ""),
            deb("base-files", "12", "Essential: yes\n"),
            deb("other", "1", "Depends: app\n"),
        ],
    );
    up.suite("stable", "Acquire-By-Hash: yes\n");
    Some(up)
}

#[test]
fn packages_and_their_dependencies_are_locked_packed_and_downloaded_by_apt() {
    let Some(up) = upstream() else { return };
    let place = &up.place;
    up.wants("stable", "app", ", base: none");
    up.lock(0, &[]);
    let all = [
        "app 1.0-1",
        "app-data 2~rc1",
        "base-files 12",
        "libapp2 1:1.2+b1",
        "mta-b 1",
        "tool 3",
    ];
    assert_eq!(up.locked(), all);
    let lock = place.read("landfall.lock");
    assert!(
        lock.contains(&format!("- name: apt:{}/dists/stable\n", up.url())),
        "{lock}"
    );
    assert!(
        lock.contains("dists/stable/main/i18n/Translation-en.xz"),
        "{lock}"
    );

    // unchanged entries send no request, and `--refresh` finds nothing new
    let before = up.server.requests("\"");
    up.lock(0, &[]);
    assert_eq!(up.server.requests("\""), before);
    let refreshed = up.lock(0, &["--refresh"]);
    assert_eq!(
        (
            refreshed["totals"]["present"].as_u64(),
            place.read("landfall.lock")
        ),
        (Some(1), lock)
    );

    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    place.ok(&["verify", "b", "--lock", "landfall.lock"]);
    let listed = place.ok(&["ls", "b"]);
    assert!(
        listed.contains("1 set of 6 packages") && listed.contains("/dists/stable"),
        "{listed}"
    );

    // a registry receives the packages; they are served from the bundle and from that registry
    let there = own_registry();
    place.ok(&["push", "b", "--to", &there.address]);
    let again = place.json(0, &["push", "b", "--to", &there.address]);
    assert_eq!(again["totals"]["present"], 1, "{again}");
    let host = up.server.address.clone();
    let deb = format!("{host}/r/pool/stable/libapp2_1.2%2bb1_amd64.deb");
    let bytes = place.read_bytes("up/r/pool/stable/libapp2_1.2+b1_amd64.deb");
    for (arguments, what) in [
        (vec!["b"], "a bundle"),
        (vec!["--from", there.address.as_str()], "a registry"),
    ] {
        let server = landfall_serve(place, &arguments);
        let get = |at: &str| request("GET", &server.address, at, &[], b"");
        for folder in ["apt", "files"] {
            assert_eq!(get(&format!("/{folder}/{deb}")).body, bytes, "{what}");
        }
        let by_host = request(
            "GET",
            &server.address,
            "/r/pool/stable/tool_3_amd64.deb",
            &[("Host", &host)],
            b"",
        );
        assert_eq!(by_host.status, 200, "{what}");
        assert_eq!(
            get(&format!("/apt/{host}/r/pool/stable/extra_1_amd64.deb")).status,
            404
        );

        // apt selects and downloads the packages from this server alone, with the key of the
        // repository
        let key = place.path("key.asc");
        let source = format!(
            "deb [signed-by={}] http://{}/apt/{host}/r stable main\n",
            key.display(),
            server.address
        );
        let apt = Apt::new(place, &format!("apt-{}", arguments.len()), &source, "");
        run(&mut apt.get(place, &["update"]));
        assert_eq!(apt.simulate(place, false, &["app"]).unwrap(), all);
        run(&mut apt.get(
            place,
            &[
                "install",
                "--yes",
                "--download-only",
                "--no-install-recommends",
                "app",
            ],
        ));
        let fetched = files(&apt.root.join("cache/archives"));
        assert_eq!(
            fetched.iter().filter(|name| name.ends_with(".deb")).count(),
            all.len(),
            "{fetched:?}"
        );
    }

    // apt selects the same packages from an exported folder
    place.ok(&["export", "apt", "--bundle", "b", "-o", "out"]);
    let folder = place.path(format!("out/{host}/r"));
    let source = format!(
        "deb [signed-by={}] file:{} stable main\n",
        place.path("key.asc").display(),
        folder.display()
    );
    let apt = Apt::new(place, "apt-folder", &source, "");
    run(&mut apt.get(place, &["update"]));
    assert_eq!(apt.simulate(place, false, &["app"]).unwrap(), all);
}

#[test]
fn flat_repositories_and_installed_packages_are_supported() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    up.build(
        "core:/v1.30/deb",
        &[
            deb(
                "kubelet",
                "1.30.1-1.1",
                "Depends: kubernetes-cni (>= 1.2), libc6 (>= 2.34), mount\n",
            ),
            deb("kubernetes-cni", "1.4.0-1.1", ""),
        ],
    );
    up.flat("core:/v1.30/deb", "");
    let url = format!("{}/core:/v1.30/deb", up.url());
    up.manifest(&format!(
        "url: '{url}', suite: /, key: key.asc, install: ['kubelet=1.30.1-*']"
    ));
    let report = up.lock(0, &[]);
    assert_eq!(
        up.locked(),
        ["kubelet 1.30.1-1.1", "kubernetes-cni 1.4.0-1.1"],
        "{report}"
    );
    let lock = place.read("landfall.lock");
    assert!(
        lock.contains("  expected:\n  - \"libc6 (>= 2.34)\"\n  - mount\n"),
        "{lock}"
    );
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    let server = landfall_serve(place, &["b"]);
    let at = format!(
        "http://{}/apt/{}/r/core:/v1.30/deb",
        server.address, up.server.address
    );
    let source = format!(
        "deb [signed-by={}] {at} /\n",
        place.path("key.asc").display()
    );
    let status = "Package: libc6\nStatus: install ok installed\nVersion: 2.36\nArchitecture: amd64\nMaintainer: n\n\n\
                  Package: mount\nStatus: install ok installed\nVersion: 1\nArchitecture: amd64\nMaintainer: n\n\n";
    let apt = Apt::new(place, "apt", &source, status);
    run(&mut apt.get(place, &["update"]));
    run(&mut apt.get(place, &["install", "--yes", "--download-only", "kubelet"]));

    // if the base and the sources lack a dependency, the set is refused with the reason
    up.manifest(&format!(
        "url: '{url}', suite: /, key: key.asc, install: [kubelet], base: none"
    ));
    let refused = up.lock(1, &["--lock", "none.lock"]);
    let why = refused["items"][0]["reason"].as_str().unwrap();
    assert!(
        why.contains("kubelet 1.30.1-1.1 needs libc6 (>= 2.34), which no source offers"),
        "{why}"
    );
}

#[test]
fn installed_packages_are_replaced_by_requested_ones() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    let daemon = "Provides: time-daemon\nConflicts: time-daemon\n";
    up.build(
        "pool/stable",
        &[
            deb("chrony", "4.3", daemon),
            deb("timesyncd", "252.39", daemon),
            deb("needs-chrony", "1", "Depends: chrony\n"),
            deb("old-style", "1", "Conflicts: timesyncd\n"),
            deb("vital-style", "1", "Conflicts: vital\n"),
            deb("vital", "2", ""),
        ],
    );
    up.suite("stable", "");
    let source = format!(
        "deb [signed-by={}] {} stable main\n",
        place.path("key.asc").display(),
        up.url()
    );
    let installed = |name: &str, version: &str, rest: &str| {
        format!(
            "Package: {name}\nStatus: install ok installed\nVersion: {version}\nArchitecture: amd64\n\
             Maintainer: n\n{rest}\n"
        )
    };
    // upstream has a newer version of `timesyncd` than the machine, or the same version
    for version in ["252.38", "252.39"] {
        let status =
            installed("timesyncd", version, daemon) + &installed("vital", "1", "Essential: yes\n");
        place.write("status", &status);
        let apt = Apt::new(place, &format!("apt-{version}"), &source, &status);
        run(&mut apt.get(place, &["update"]));
        for package in ["chrony", "needs-chrony", "old-style"] {
            up.wants("stable", package, ", base: {status: status}");
            up.lock(0, &[]);
            assert_eq!(
                up.locked(),
                apt.simulate(place, false, &[package]).unwrap(),
                "{package} {version}"
            );
        }
        up.wants("stable", "vital-style", ", base: {status: status}");
        let refused = up.lock(1, &["--lock", "refused.lock"]);
        assert_eq!(
            refused["items"][0]["reason"],
            "vital-style 1 conflicts with vital"
        );
        apt.simulate(place, false, &["vital-style"]).unwrap_err();
    }
}

/// The reasons why `lock` fails after `spoil` changed the suite `stable`. Asserts that no package
/// is locked.
fn refused(up: &AptUpstream, what: &str, spoil: impl FnOnce(&std::path::Path)) -> String {
    let root = up.place.path("up/r/dists/stable");
    let kept = up.place.path("kept");
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        let _ = fs::remove_dir_all(to);
        run(std::process::Command::new("cp").arg("-a").arg(from).arg(to));
    };
    copy(&root, &kept);
    spoil(&root);
    let store = format!("store-{}", what.replace(' ', "-"));
    let report = up.lock(1, &["--store", &store, "--lock", "hostile.lock"]);
    copy(&kept, &root);
    let lock = fs::read_to_string(up.place.path("hostile.lock")).unwrap_or_default();
    assert!(!lock.contains("packages:"), "{what}: {lock}");
    failure_reasons(&report)
}

/// The releases of archives and snapshots are not renewed.
#[test]
fn an_expired_release_is_locked_only_if_its_source_says_so() {
    let Some(up) = upstream() else { return };
    let text = up.place.read("up/r/dists/stable/Release");
    up.sign(
        "dists/stable",
        &format!("Valid-Until: Sat, 01 Jan 2022 00:00:00 UTC\n{text}"),
    );
    up.wants("stable", "app", ", base: none");
    let why = failure_reasons(&up.lock(1, &[]));
    assert!(why.contains("write `checkValidUntil: false`"), "{why}");
    up.wants("stable", "app", ", base: none, checkValidUntil: true");
    assert_eq!(failure_reasons(&up.lock(1, &[])), why);
    up.wants("stable", "app", ", base: none, checkValidUntil: false");
    up.lock(0, &[]);
    up.place.ok(&["pull"]);
    // `render apt` writes a source that accepts it, too
    let lock = up.place.read("landfall.lock");
    assert!(lock.contains("validUntil: "), "{lock}");
}

#[test]
fn hostile_repositories_are_refused_and_not_locked() {
    let Some(up) = upstream() else { return };
    up.wants("stable", "app", ", base: none");
    let index = |root: &std::path::Path| root.join("main/binary-amd64/Packages.xz");
    let by_hash = |root: &std::path::Path| {
        let bytes = fs::read(index(root)).unwrap();
        let hex = crate::support::images::sha256_hex(&bytes);
        root.join("main/binary-amd64/by-hash/SHA256").join(hex)
    };
    let signed = |up: &AptUpstream, change: &dyn Fn(&str) -> String| {
        let text = up.place.read("up/r/dists/stable/Release");
        up.sign("dists/stable", &change(&text));
    };
    // index files that differ from their digests in the release
    let why = refused(&up, "swapped", |root| {
        let path = by_hash(root);
        let other = fs::read(root.join("main/binary-i386/Packages.xz")).unwrap();
        fs::write(&path, other).unwrap();
    });
    assert!(
        why.contains("main/binary-amd64/Packages.xz: ") && why.contains("its bytes are sha256:"),
        "{why}"
    );
    let why = refused(&up, "truncated", |root| {
        let path = by_hash(root);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    });
    assert!(why.contains("main/binary-amd64/Packages.xz: "), "{why}");
    let why = refused(&up, "oversized", |root| {
        let path = by_hash(root);
        fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
    });
    assert!(why.contains("main/binary-amd64/Packages.xz: "), "{why}");
    // releases that are changed, signed by another key, weak or expired
    let why = refused(&up, "changed", |root| {
        let text = fs::read_to_string(root.join("InRelease")).unwrap();
        fs::write(
            root.join("InRelease"),
            text.replace("Suite: stable", "Suite: stabla"),
        )
        .unwrap();
    });
    assert!(
        why.contains("InRelease: it has no valid signature by"),
        "{why}"
    );
    let why = refused(&up, "another key", |root| {
        let other = Signer::new(&up.place, "other");
        let text = fs::read_to_string(root.join("Release")).unwrap();
        fs::write(root.join("InRelease"), other.sign(&text)).unwrap();
    });
    assert!(why.contains("another key made it"), "{why}");
    let why = refused(&up, "a detached signature by another key", |root| {
        let other = Signer::new(&up.place, "third");
        let text = fs::read_to_string(root.join("Release")).unwrap();
        fs::remove_file(root.join("InRelease")).unwrap();
        fs::write(root.join("Release.gpg"), other.detached(&text)).unwrap();
    });
    assert!(
        why.contains("Release.gpg: it has no valid signature by"),
        "{why}"
    );
    let why = refused(&up, "weak", |_| {
        signed(&up, &|text| text.split("SHA1:").next().unwrap().to_owned());
    });
    assert!(why.contains("only MD5 or SHA-1"), "{why}");
    let why = refused(&up, "expired", |_| {
        signed(&up, &|text| {
            format!("Valid-Until: Sat, 01 Jan 2022 00:00:00 UTC\n{text}")
        });
    });
    assert!(why.contains("expired at 2022-01-01T00:00:00Z"), "{why}");
    // signed indexes with invalid content
    let bad_index = |what: &str, spoil: &dyn Fn(&str) -> String| {
        refused(&up, what, |root| {
            let text = fs::read_to_string(root.join("main/binary-amd64/Packages")).unwrap();
            up.index(
                "dists/stable/main/binary-amd64",
                "Packages",
                spoil(&text).as_bytes(),
            );
            up.release(
                "dists/stable",
                "Suite: stable\nComponents: main\nArchitectures: amd64\n",
            );
        })
    };
    let why = bad_index("leads out", &|text| {
        text.replace("pool/stable/tool_3", "../../etc/tool_3")
    });
    assert!(
        why.contains("tool 3 (amd64)") && why.contains("leads above the host"),
        "{why}"
    );
    let without_sums = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with("SHA"));
        lines.fold(String::new(), |all, line| all + line + "\n")
    };
    let why = bad_index("weak packages", &without_sums);
    assert!(
        why.contains("has no SHA-256 or SHA-512 in its index"),
        "{why}"
    );
    // a decompression bomb: unpacking stops at the size that the release states
    let why = refused(&up, "bomb", |root| {
        let folder = root.join("main/binary-amd64");
        let plain = fs::read(folder.join("Packages")).unwrap();
        up.index(
            "dists/stable/main/binary-amd64",
            "Packages",
            &vec![b'\n'; 64 << 20],
        );
        fs::write(folder.join("Packages"), plain).unwrap();
        up.release(
            "dists/stable",
            "Suite: stable\nComponents: main\nArchitectures: amd64\n",
        );
    });
    assert!(why.contains("Packages.xz unpacks to more than"), "{why}");

    // the unchanged repository is locked; then pull refuses a package with another digest
    up.lock(0, &[]);
    let path = up.place.path("up/r/pool/stable/tool_3_amd64.deb");
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    let pulled = up.place.json(1, &["pull"]);
    let why = failure_reasons(&pulled);
    assert!(
        why.contains("/pool/stable/tool_3_amd64.deb: source: ")
            && why.contains("`landfall lock --refresh`"),
        "{why}"
    );
}

#[test]
fn sets_that_share_a_source_read_it_once_and_refuse_an_older_release() {
    let Some(up) = upstream() else { return };
    let source = format!(
        "url: '{}', suite: stable, components: [main], key: key.asc",
        up.url()
    );
    let set = |name: &str| format!("- apt: {{name: {name}, {source}, install: [{name}]}}\n");
    let head = "apiVersion: landfall/v1\nkind: Manifest\npackages:\n";
    up.place
        .write("m.yaml", format!("{head}{}{}", set("extra"), set("tool")));
    up.suite("stable", "Date: Sat, 14 Nov 2026 00:00:00 UTC\n");
    let old = up.place.read_bytes("up/r/dists/stable/InRelease");
    up.suite(
        "stable",
        "Date: Sun, 15 Nov 2026 00:00:00 UTC\nValid-Until: Fri, 01 Jan 2100 00:00:00 UTC\n",
    );
    up.lock(0, &[]);
    assert_eq!(up.server.requests("GET /r/dists/stable/InRelease "), 1);
    assert_eq!(up.locked(), ["extra 1", "tool 3"]);
    let lock = up.place.read("landfall.lock");
    assert!(
        lock.contains("date: \"2026-11-15T00:00:00Z\"\n    validUntil: \"2100-01-01T00:00:00Z\"\n"),
        "{lock}"
    );
    up.place.write("up/r/dists/stable/InRelease", old);
    let refreshed = up.lock(1, &["--refresh"]);
    let older = "older than 2026-11-15T00:00:00Z in the lock";
    let reasons = refreshed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["reason"].to_string());
    assert_eq!(
        reasons.filter(|why| why.contains(older)).count(),
        2,
        "{refreshed}"
    );
    assert!(
        up.place
            .read("landfall.lock")
            .contains("date: \"2026-11-15T00:00:00Z\"")
    );
}

#[test]
fn apt_with_the_rendered_sources_downloads_mirrored_packages() {
    let Some(up) = upstream() else { return };
    let place = &up.place;
    up.suite(
        "stable",
        "Valid-Until: Fri, 01 Jan 2100 00:00:00 UTC\nAcquire-By-Hash: yes\n",
    );
    up.wants("stable", "app", ", base: none");
    up.lock(0, &[]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    let server = landfall_serve(place, &["b"]);
    let url = format!("url=http://{}/apt", server.address);
    place.ok(&[
        "render",
        "apt",
        "--bundle",
        "b",
        "--to",
        "172.20.0.2:5000",
        "--set",
        &url,
        "-o",
        "node",
    ]);
    let sources = place.read("node/etc/apt/landfall.sources.d/landfall.sources");
    assert!(sources.contains("\nCheck-Valid-Until: no\n"), "{sources}");
    let settings = place.read("node/etc/apt/apt.conf.d/99landfall");
    assert!(
        settings.contains("Dir::Etc::sourceparts \"/etc/apt/landfall.sources.d\";"),
        "{settings}"
    );
    assert!(
        settings.contains("APT::Install-Recommends \"false\";"),
        "{settings}"
    );
    // on a machine, the folder `node` is copied to `/`; here, the path of the key is adapted
    let here = sources.replace(
        "Signed-By: /",
        &format!("Signed-By: {}/", place.path("node").display()),
    );
    let apt = Apt::new(place, "apt", &here, "");
    run(&mut apt.get(place, &["update"]));
    run(&mut apt.get(
        place,
        &[
            "install",
            "--yes",
            "--download-only",
            "--no-install-recommends",
            "app",
        ],
    ));
    // with `others=stay`, the rendered sources are written beside those of the machine; the URLs in
    // the rendered sources begin with `files` of the site
    place.write("site.yaml", "apiVersion: landfall/v1\nkind: Site\nregistry: {address: \"172.20.0.2:5000\"}\nfiles: http://172.20.0.2:8080/files\n");
    place.ok(&[
        "render",
        "apt",
        "--bundle",
        "b",
        "--site",
        "site.yaml",
        "--set",
        "others=stay",
        "-o",
        "beside",
    ]);
    let sources = place.read("beside/etc/apt/sources.list.d/landfall.sources");
    assert!(
        sources.contains("\nURIs: http://172.20.0.2:8080/files/127.0.0.1:"),
        "{sources}"
    );
}

#[test]
fn doctor_simulates_the_installation_on_a_node() {
    let Some(up) = upstream() else { return };
    let place = &up.place;
    up.wants("stable", "app", ", base: none");
    up.lock(0, &[]);
    place.ok(&["pull"]);
    let status = |packages: &[(&str, &str, &str)]| {
        packages.iter().fold(String::new(), |all, (name, version, more)| {
            format!("{all}Package: {name}\nStatus: install ok installed\nVersion: {version}\nArchitecture: amd64\n{more}\n")
        })
    };
    // a package that is installed in the locked version is not listed; an older version is replaced
    place.write(
        "node",
        status(&[
            ("tool", "3", "Multi-Arch: allowed\n"),
            ("libapp2", "1.1", "Multi-Arch: same\n"),
        ]),
    );
    let printed = place.json(
        0,
        &[
            "doctor",
            "packages",
            "--status",
            "node",
            "--lock",
            "landfall.lock",
        ],
    );
    let names: Vec<&str> = printed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"libapp2 1:1.2+b1") && names.contains(&"app 1.0-1"),
        "{printed}"
    );
    assert!(
        !names.iter().any(|name| name.starts_with("tool ")),
        "{printed}"
    );
    assert_eq!(
        printed["replaced"],
        serde_json::json!(["libapp2 1.1 → 1:1.2+b1"]),
        "{printed}"
    );
    // a node that already has another provider of `mailer`
    place.write(
        "node",
        status(&[
            ("mta-a", "0", "Provides: mailer\n"),
            ("needy", "1", "Depends: mta-a (>= 1)\n"),
        ]),
    );
    let ok = place.json(0, &["doctor", "packages", "--status", "node"]);
    assert!(
        ok["items"]
            .as_array()
            .unwrap()
            .iter()
            .all(|item| item["status"] == "present"),
        "{ok}"
    );
    // the lock is for machines that have all dependencies; the machine `bare` lacks four of them
    up.wants("stable", "app", ", base: {status: node}");
    let full = [
        ("app-data", "2~rc1", ""),
        ("base-files", "12", ""),
        ("libapp2", "1:1.2+b1", ""),
        ("mta-b", "1", "Provides: mailer\n"),
        ("tool", "3", "Multi-Arch: allowed\n"),
    ];
    place.write("node", status(&full));
    up.lock(0, &["--lock", "small.lock"]);
    assert_eq!(
        crate::support::apt::locked(&place.read("small.lock")),
        ["app 1.0-1"]
    );
    place.ok(&["pull", "--lock", "small.lock"]);
    place.write("bare", status(&[("base-files", "12", "")]));
    let printed = place.json(
        4,
        &[
            "doctor",
            "packages",
            "--status",
            "bare",
            "--lock",
            "small.lock",
        ],
    );
    let missing: Vec<&str> = printed["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["status"] == "missing")
        .map(|item| item["name"].as_str().unwrap())
        .collect();
    assert_eq!(missing.len(), 4, "{printed}");
    assert!(
        missing.contains(&"libapp2 1:1.2+b1") && missing.contains(&"tool 3"),
        "{printed}"
    );
}

#[test]
fn doctor_knows_a_suite_by_both_of_its_names() {
    let Some(up) = upstream() else { return };
    let place = &up.place;
    up.release(
        "dists/stable",
        "Origin: test\nSuite: stable\nCodename: test\nArchitectures: amd64 i386\nComponents: main\n",
    );
    place.write(
        "node",
        "Package: base-files\nStatus: install ok installed\nVersion: 12\nArchitecture: amd64\n",
    );
    for suite in ["stable", "test"] {
        up.wants("stable", &format!("app/{suite}"), ", base: none");
        up.lock(0, &[]);
        place.ok(&["pull"]);
        place.json(0, &["doctor", "packages", "--status", "node"]);
    }
}

#[test]
fn a_package_is_not_mistaken_for_one_of_another_architecture() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    let foreign = |name, fields| Deb {
        arch: "i386",
        ..deb(name, "1", fields)
    };
    up.build(
        "pool/stable",
        &[
            deb("app", "1", "Depends: libx\n"),
            deb("libx", "1", "Multi-Arch: same\n"),
            foreign("game", "Depends: libx\n"),
            foreign("libx", "Multi-Arch: same\n"),
        ],
    );
    up.suite("stable", "");
    let status = |name: &str, arch: &str| {
        format!("Package: {name}\nStatus: install ok installed\nVersion: 1\nArchitecture: {arch}\n")
    };
    place.write("node", status("libx", "i386") + "Multi-Arch: same\n\n");
    up.wants(
        "stable",
        "app, 'game:i386'",
        ", architectures: [amd64, i386], base: {status: node}",
    );
    up.lock(0, &[]);
    assert_eq!(up.locked(), ["app 1", "game 1", "libx 1"]);
    place.ok(&["pull"]);
    place.write("bare", status("dpkg", "amd64") + "\n");
    let printed = place.json(4, &["doctor", "packages", "--status", "bare"]);
    let missing = printed["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["status"] == "missing");
    let missing: Vec<&str> = missing.map(|item| item["name"].as_str().unwrap()).collect();
    assert_eq!(missing, ["libx:i386 1"], "{printed}");
}

/// The index targets that apt-file, command-not-found and appstream configure.
const TARGETS: [(&str, &str); 3] = [
    ("Contents-deb", "$(COMPONENT)/Contents-$(ARCHITECTURE)"),
    ("CNF", "$(COMPONENT)/cnf/Commands-$(NATIVE_ARCHITECTURE)"),
    (
        "DEP-11",
        "$(COMPONENT)/dep11/Components-$(NATIVE_ARCHITECTURE).yml",
    ),
];

#[test]
fn an_entry_selects_optional_indexes_by_the_names_of_apt_targets() {
    let Some(up) = upstream() else { return };
    let place = &up.place;
    let folder = "dists/stable/main";
    for arch in ["amd64", "all", "i386"] {
        up.index(folder, &format!("Contents-{arch}"), b"bin/app admin/app\n");
    }
    up.index(
        &format!("{folder}/i18n"),
        "Translation-de",
        b"Package: none\n",
    );
    up.index(&format!("{folder}/cnf"), "Commands-amd64", b"name: app\n");
    up.index(
        &format!("{folder}/dep11"),
        "Components-amd64.yml",
        b"---\nFile: DEP-11\n",
    );
    up.suite("stable", "Acquire-By-Hash: yes\n");

    let wants = |more: &str| up.wants("stable", "app", &format!(", base: none{more}"));
    let indexes = || {
        let lock = place.read("landfall.lock");
        let paths = lock
            .lines()
            .filter_map(|line| line.trim_end_matches('"').split_once(" dists/stable/main/"));
        let names = paths
            .map(|(_, path)| path.to_owned())
            .filter(|path| !path.starts_with("binary-"));
        names.collect::<Vec<_>>().join(" ")
    };
    let target = |(name, path): (&str, &str)| {
        let key = format!("Acquire::IndexTargets::deb::{name}::");
        let options = [
            format!("{key}MetaKey={path}"),
            format!("{key}ShortDescription=of {name}"),
            format!("{key}Description=of {name}"),
        ];
        options
            .into_iter()
            .flat_map(|option| ["-o".to_owned(), option])
            .collect::<Vec<_>>()
    };
    // runs `apt-get update` with `TARGETS`; returns whether it succeeded, its lists and its stderr
    let update = |name: &str, source: &str| {
        let apt = Apt::new(place, name, source, "");
        let mut get = apt.get(place, &["update", "--error-on=any"]);
        get.args(["-o", "Acquire::Languages=de,en"])
            .args(TARGETS.into_iter().flat_map(target));
        let output = get.output().unwrap();
        let lists = files(&apt.root.join("state/lists")).join(" ");
        (
            output.status.success(),
            lists,
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let serve_bundle = |bundle: &str| {
        place.ok(&["pull"]);
        place.ok(&["pack", "-o", bundle]);
        landfall_serve(place, &[bundle])
    };
    let host = up.server.address.clone();
    let source = |server: &str| {
        format!(
            "deb [signed-by={}] http://{server}/apt/{host}/r stable main\n",
            place.path("key.asc").display()
        )
    };

    // the release lists indexes that are not mirrored, and apt fails
    wants("");
    up.lock(0, &[]);
    assert_eq!(indexes(), "i18n/Translation-en.xz");
    let server = serve_bundle("b1");
    let (is_good, _, printed) = update("apt-without", &source(&server.address));
    assert!(!is_good && printed.contains("404"), "{printed}");
    // with the rendered sources, apt does not request these indexes
    let rendered = |out: &str, server: &str| {
        let url = format!("url=http://{server}/apt");
        place.ok(&[
            "render",
            "apt",
            "--to",
            "r.test:5000",
            "--set",
            &url,
            "-o",
            out,
        ]);
        let sources = place.read(&format!(
            "{out}/etc/apt/landfall.sources.d/landfall.sources"
        ));
        let key = format!("Signed-By: {}\n", place.path("key.asc").display());
        let lines = sources
            .lines()
            .filter(|line| !line.starts_with("Signed-By: "));
        lines.map(|line| format!("{line}\n")).collect::<String>() + &key
    };
    let (is_good, lists, printed) = update("apt-rendered", &rendered("r1", &server.address));
    assert!(
        is_good && lists.contains("Packages") && !lists.contains("Contents"),
        "{lists} {printed}"
    );

    // requested indexes are mirrored, and a lock without them is outdated
    wants(", targets: [DEP-11, CNF, Contents-deb, DEP-11-icons, Translation-de, Translation-en]");
    up.lock(0, &[]);
    assert_eq!(
        indexes(),
        "Contents-amd64.xz cnf/Commands-amd64.xz dep11/Components-amd64.yml.xz i18n/Translation-de.xz i18n/Translation-en.xz"
    );
    let server = serve_bundle("b2");
    let sources = [source(&server.address), rendered("r2", &server.address)];
    assert!(
        sources[1].contains(
            "Targets: Packages Translations CNF Contents-deb DEP-11 DEP-11-icons\nLanguages: en de\n"
        ),
        "{}",
        sources[1]
    );
    for (at, source) in sources.iter().enumerate() {
        let (is_good, lists, printed) = update(&format!("apt-with-{at}"), source);
        assert!(is_good, "{printed}");
        for name in [
            "Contents-amd64",
            "Translation-de",
            "Commands-amd64",
            "Components-amd64.yml",
        ] {
            assert!(lists.contains(name), "{name}: {lists}");
        }
    }

    wants(", targets: [dep11]");
    let printed = up.lock(2, &[]).to_string();
    assert!(
        printed.contains("`dep11` is not a target of apt") && printed.contains("Contents-deb"),
        "{printed}"
    );
    wants(", targets: [CNF], index: trimmed");
    let printed = up.lock(2, &[]).to_string();
    assert!(
        printed.contains("contains only packages and descriptions"),
        "{printed}"
    );
}
