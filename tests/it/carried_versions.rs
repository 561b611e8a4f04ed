//! With the files of `render apt` and `render yum`, apt and dnf select the mirrored version of a
//! package, although the signed index has a newer one.

use crate::support::apt::{Apt, AptUpstream, deb};
use crate::support::yum::{YumUpstream, dnf};
use crate::support::{Place, landfall_serve, rpm_repository, run, shown};
use std::fs;

/// The rendered sources at `path`. The paths of their keys are replaced by paths in the folder
/// `node`.
fn sources(place: &Place, path: &str) -> String {
    place.read(path).replace(
        "Signed-By: /",
        &format!("Signed-By: {}/", place.path("node").display()),
    )
}

#[test]
fn apt_selects_the_pinned_version_and_sees_only_mirrored_packages() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    up.build(
        "pool/stable",
        &[
            deb("app", "1:1.0+b1~x", "Depends: lib (>= 1)\n"),
            deb("app", "1:2.0", "Depends: lib (>= 1)\n"),
            deb("lib", "1", ""),
            deb("lib", "2", ""),
            deb("other", "1", ""),
        ],
    );
    up.suite("stable", "");
    up.wants("stable", "\"app=1:1.0+b1~x\", lib=1", ", base: none");
    up.lock(0, &[]);
    assert_eq!(up.locked(), ["app 1:1.0+b1~x", "lib 1"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    let server = landfall_serve(place, &["b"]);
    // `files` in the site is the URL of the server, which has the packages
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: r.test}}\nfiles: 'http://{}'\n",
        server.address
    );
    place.write("site.yaml", site);
    let render = ["render", "apt", "--bundle", "b", "--site", "site.yaml"];
    place.ok(&[&render[..], &["-o", "node"]].concat());
    let written = sources(place, "node/etc/apt/landfall.sources.d/landfall.sources");
    let get = |apt: &Apt, words: &[&str]| apt.get(place, words).output().unwrap();
    let install = ["install", "--yes", "--download-only", "app"];

    // without the preferences, apt selects the newest version in the index; it is not mirrored
    let plain = Apt::new(place, "plain", &written, "");
    run(&mut plain.get(place, &["update"]));
    let newest = get(&plain, &install);
    assert!(!newest.status.success());
    let message = shown(&newest);
    assert!(
        message.contains("app_2.0") || message.contains("Status code: 404"),
        "{message}"
    );

    let preferences = "etc/apt/preferences.d/landfall.pref";
    let prefer = |apt: &Apt, from: &str| {
        fs::copy(
            place.path(format!("{from}/{preferences}")),
            apt.root.join("etc/preferences/landfall.pref"),
        )
        .unwrap();
    };
    let apt = Apt::new(place, "apt", &written, "");
    prefer(&apt, "node");
    run(&mut apt.get(place, &["update"]));
    assert_eq!(
        apt.simulate(place, false, &["app"]).unwrap(),
        ["app 1:1.0+b1~x", "lib 1"]
    );
    run(&mut apt.get(place, &install));
    let message = shown(&get(&apt, &["install", "--simulate", "other"]));
    assert!(message.contains("no installation candidate"), "{message}");

    // a newer installed version is kept, and an older one is upgraded to the mirrored version
    let status = |version: &str| {
        format!(
            "Package: lib\nStatus: install ok installed\nVersion: {version}\nArchitecture: amd64\n"
        )
    };
    for (installed, expected) in [
        ("0.5", &["app 1:1.0+b1~x", "lib 1"][..]),
        ("3", &["app 1:1.0+b1~x"]),
    ] {
        fs::write(apt.root.join("status"), status(installed)).unwrap();
        assert_eq!(
            apt.simulate(place, false, &["app", "lib"]).unwrap(),
            expected,
            "{installed}"
        );
    }

    // if the machine keeps its other sources, no package is hidden, because these sources may have
    // the same host as the rendered ones
    place.ok(&[&render[..], &["-o", "beside", "--set", "others=stay"]].concat());
    assert!(
        !place
            .read(&format!("beside/{preferences}"))
            .contains("Pin-Priority: -1")
    );
    let beside = Apt::new(place, "apt-beside", &written, "");
    prefer(&beside, "beside");
    run(&mut beside.get(place, &["update"]));
    assert_eq!(
        beside.simulate(place, false, &["app"]).unwrap(),
        ["app 1:1.0+b1~x", "lib 1"]
    );
}

#[test]
fn dnf_installs_the_pinned_version_and_sees_only_mirrored_packages() {
    let Some(up) = YumUpstream::new() else { return };
    let place = &up.place;
    up.build(&[
        (
            "app",
            "1",
            "Epoch: 2\nRequires: lib >= 1\n",
            &["/usr/share/app/app"],
        ),
        (
            "app",
            "2",
            "Epoch: 2\nRequires: lib >= 1\n",
            &["/usr/share/app/app"],
        ),
        ("lib", "1", "", &["/usr/share/lib/lib"]),
        ("lib", "2", "", &["/usr/share/lib/lib"]),
        ("other", "1", "", &["/usr/share/other/other"]),
    ]);
    up.index("gz");
    up.wants("install: [app-1, lib-1], base: none");
    up.lock(0, &[]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    let server = landfall_serve(place, &["b"]);
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nfiles: 'http://{}'\n",
        server.address
    );
    place.write("site.yaml", site);
    place.ok(&[
        "render",
        "yum",
        "--site",
        "site.yaml",
        "--to",
        "r.test",
        "-o",
        "node",
    ]);
    let repositories = place.path("node/etc/yum.repos.d");
    let file = fs::read_dir(&repositories)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let keys = format!("file://{}/etc/", place.path("node").display());
    let text = fs::read_to_string(&file)
        .unwrap()
        .replace("file:///etc/", &keys);
    assert!(
        text.ends_with("includepkgs=\n app-2:1-1.noarch\n lib-1-1.noarch\n"),
        "{text}"
    );
    let ask = |name: &str, text: &str, words: &[&str]| {
        fs::write(&file, text).unwrap();
        let mut dnf = dnf(place, name, "file:///nowhere", "enabled=0\n");
        dnf.arg(format!("--setopt=reposdir={}", repositories.display()));
        dnf.args(["--assumeyes", "install"])
            .args(words)
            .output()
            .unwrap()
    };
    // without `includepkgs`, dnf selects the newest version in the metadata; it is not mirrored
    let without = ask(
        "plain",
        text.split("includepkgs=").next().unwrap(),
        &["app"],
    );
    assert!(
        !without.status.success() && shown(&without).contains("Status code: 404"),
        "{}",
        shown(&without)
    );

    let with = ask("carried", &text, &["app"]);
    assert!(with.status.success(), "{}", shown(&with));
    assert_eq!(
        fs::read_to_string(place.path("carried/root/usr/share/app/app")).unwrap(),
        "app 1\n"
    );
    assert_eq!(
        fs::read_to_string(place.path("carried/root/usr/share/lib/lib")).unwrap(),
        "lib 1\n"
    );
    let other = ask("other", &text, &["other"]);
    assert!(
        !other.status.success() && !shown(&other).contains("Status code: 404"),
        "{}",
        shown(&other)
    );

    // of the second source, nothing is carried; `excludepkgs` is not known to yum of RHEL 7
    rpm_repository::write(&place.path("up/s"), "unused");
    let (one, two) = (up.url(), format!("{}/s", up.server.url()));
    place.write(
        "two.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\npackages:\n\
             - yum: {{install: [app-1], base: none, sources: [{{url: '{one}', key: key.asc}}, {{url: '{two}', key: key.asc}}]}}\n"
        ),
    );
    place.ok(&["lock", "-f", "two.yaml", "--lock", "two.lock"]);
    place.ok(&[
        "render",
        "yum",
        "--site",
        "site.yaml",
        "--to",
        "r.test",
        "--lock",
        "two.lock",
        "-o",
        "two",
    ]);
    let rendered: String = fs::read_dir(place.path("two/etc/yum.repos.d"))
        .unwrap()
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    assert_eq!(rendered.matches("\nexclude=*\n").count(), 1, "{rendered}");
    let unused = ask("unused", &(text + "exclude=*\n"), &["app"]);
    assert!(!unused.status.success(), "{}", shown(&unused));
}
