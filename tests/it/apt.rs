//! Packages of apt: from a signed repository to a lock, a bundle, a registry, a server and a folder, and from there to apt.

use crate::support::apt::{Apt, AptUpstream, Deb, deb, files};
use crate::support::http::request;
use crate::support::peers::own_registry;
use crate::support::{landfall_serve, run};

/// A repository with an application, what it needs, and much else.
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
fn packages_go_all_the_way_with_what_they_need() {
    let Some(up) = upstream() else { return };
    let place = &up.place;
    up.wants("stable", "app", ", base: none");
    up.lock(0, &[]);
    let all = ["app 1.0-1", "app-data 2~rc1", "base-files 12", "libapp2 1:1.2+b1", "mta-b 1", "tool 3"];
    assert_eq!(up.locked(), all);
    let lock = place.read("landfall.lock");
    assert!(lock.contains(&format!("- name: apt:{}/dists/stable\n", up.url())), "{lock}");
    assert!(lock.contains("dists/stable/main/i18n/Translation-en.xz"), "{lock}");

    // what is unchanged is asked for by nobody, and what `--refresh` asks for has not moved
    let before = up.server.requests("\"");
    up.lock(0, &[]);
    assert_eq!(up.server.requests("\""), before);
    let refreshed = up.lock(0, &["--refresh"]);
    assert_eq!((refreshed["totals"]["present"].as_u64(), place.read("landfall.lock")), (Some(1), lock));

    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    place.ok(&["verify", "b", "--lock", "landfall.lock"]);
    let listed = place.ok(&["ls", "b"]);
    assert!(listed.contains("1 package") && listed.contains("/dists/stable"), "{listed}");

    // the registry holds them, and a server offers them from there
    let there = own_registry();
    place.ok(&["push", "b", "--to", &there.address]);
    let again = place.json(0, &["push", "b", "--to", &there.address]);
    assert_eq!(again["totals"]["present"], 1, "{again}");
    let host = up.server.address.clone();
    let deb = format!("{host}/r/pool/stable/libapp2_1.2%2bb1_amd64.deb");
    let bytes = place.read_bytes("up/r/pool/stable/libapp2_1.2+b1_amd64.deb");
    for (arguments, what) in [(vec!["b"], "a bundle"), (vec!["--from", there.address.as_str()], "a registry")]
    {
        let server = landfall_serve(place, &arguments);
        let get = |at: &str| request("GET", &server.address, at, &[], b"");
        for folder in ["apt", "files"] {
            assert_eq!(get(&format!("/{folder}/{deb}")).body, bytes, "{what}");
        }
        let by_host =
            request("GET", &server.address, "/r/pool/stable/tool_3_amd64.deb", &[("Host", &host)], b"");
        assert_eq!(by_host.status, 200, "{what}");
        assert_eq!(get(&format!("/apt/{host}/r/pool/stable/extra_1_amd64.deb")).status, 404);

        // apt takes them from there alone, under the key of the repository
        let key = place.path("key.asc");
        let source =
            format!("deb [signed-by={}] http://{}/apt/{host}/r stable main\n", key.display(), server.address);
        let apt = Apt::new(place, &format!("apt-{}", arguments.len()), &source, "");
        run(&mut apt.get(place, &["update"]));
        assert_eq!(apt.simulate(place, false, &["app"]).unwrap(), all);
        run(&mut apt.get(place, &["install", "--yes", "--download-only", "--no-install-recommends", "app"]));
        let fetched = files(&apt.root.join("cache/archives"));
        assert_eq!(fetched.iter().filter(|name| name.ends_with(".deb")).count(), all.len(), "{fetched:?}");
    }

    // and so does a folder
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
fn a_flat_repository_and_what_machines_have_besides() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    up.build(
        "core:/v1.30/deb",
        &[
            deb("kubelet", "1.30.1-1.1", "Depends: kubernetes-cni (>= 1.2), libc6 (>= 2.34), mount\n"),
            deb("kubernetes-cni", "1.4.0-1.1", ""),
        ],
    );
    up.flat("core:/v1.30/deb", "");
    let url = format!("{}/core:/v1.30/deb", up.url());
    up.manifest(&format!("url: '{url}', suite: /, key: key.asc, install: ['kubelet=1.30.1-*']"));
    let report = up.lock(0, &[]);
    assert_eq!(up.locked(), ["kubelet 1.30.1-1.1", "kubernetes-cni 1.4.0-1.1"], "{report}");
    let lock = place.read("landfall.lock");
    assert!(lock.contains("  expected:\n  - \"libc6 (>= 2.34)\"\n  - mount\n"), "{lock}");
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    let server = landfall_serve(place, &["b"]);
    let at = format!("http://{}/apt/{}/r/core:/v1.30/deb", server.address, up.server.address);
    let source = format!("deb [signed-by={}] {at} /\n", place.path("key.asc").display());
    let status = "Package: libc6\nStatus: install ok installed\nVersion: 2.36\nArchitecture: amd64\nMaintainer: n\n\n\
                  Package: mount\nStatus: install ok installed\nVersion: 1\nArchitecture: amd64\nMaintainer: n\n\n";
    let apt = Apt::new(place, "apt", &source, status);
    run(&mut apt.get(place, &["update"]));
    run(&mut apt.get(place, &["install", "--yes", "--download-only", "kubelet"]));

    // with a base that has not what is needed, it is refused with the reason
    up.manifest(&format!("url: '{url}', suite: /, key: key.asc, install: [kubelet], base: none"));
    let refused = up.lock(1, &["--lock", "none.lock"]);
    let why = refused["items"][0]["reason"].as_str().unwrap();
    assert!(why.contains("kubelet 1.30.1-1.1 needs libc6 (>= 2.34), which no source offers"), "{why}");
}
