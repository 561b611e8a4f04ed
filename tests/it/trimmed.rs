//! `index: trimmed`: metadata of only the mirrored packages, signed by the site. apt reads it from
//! a server, and dnf from a folder.

use crate::support::apt::{Apt, AptUpstream, Deb, deb};
use crate::support::http::request;
use crate::support::peers::own_registry;
use crate::support::yum::{YumUpstream, dnf};
use crate::support::{landfall_serve, run};
use std::fs;

const KEY: &[u8] = include_bytes!("../data/packages/site-key.asc");
const LOCKED_KEY: &[u8] = include_bytes!("../data/packages/site-key-locked.asc");

#[test]
fn apt_accepts_trimmed_metadata_signed_by_the_site() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    up.build(
        "pool/stable",
        &[
            deb("app", "1", "Depends: lib (>= 1)\n"),
            Deb {
                arch: "all",
                ..deb("lib", "1:2+b1", "")
            },
            deb("lib", "0.1", ""),
            deb("other", "1", ""),
        ],
    );
    up.suite(
        "stable",
        "Acquire-By-Hash: yes\nValid-Until: Fri, 01 Jan 2100 00:00:00 UTC\n",
    );
    up.build(
        "flat",
        &[
            deb("vendor", "1", "Depends: app\n"),
            deb("unasked", "1", ""),
        ],
    );
    up.flat("flat", "Origin: vendor\n");
    let url = up.url();
    let wants = |more: &str| {
        let stable = format!("{{url: '{url}', suite: stable, components: [main], key: key.asc}}");
        let flat = format!("{{url: '{url}/flat', suite: /, key: key.asc}}");
        up.manifest(&format!(
            "sources: [{stable}, {flat}], install: [vendor], base: none{more}"
        ));
    };
    wants("");
    up.lock(0, &[]);
    let signed = place.read("landfall.lock");
    // adding `index: trimmed` to a locked entry sends no request to upstream
    let before = up.server.requests("\"");
    wants(", index: trimmed");
    up.lock(0, &[]);
    let lock = place.read("landfall.lock");
    assert_eq!(lock.replace("  index: trimmed\n", ""), signed);
    assert!(up.server.requests("\"") == before && lock != signed);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    place.ok(&["verify", "b", "--lock", "landfall.lock"]);

    place.write("site.asc", KEY);
    let message = place.printed(2, &["export", "apt", "b", "-o", "no"]);
    assert!(message.contains("--packages-key FILE"), "{message}");
    for out in ["one", "two"] {
        place.ok(&[
            "export",
            "apt",
            "b",
            "-o",
            out,
            "--packages-key",
            "site.asc",
        ]);
    }
    let host = up.server.address.clone();
    let suite = format!("{host}/r/dists/stable");
    let release = place.read(&format!("one/{suite}/InRelease"));
    assert_eq!(
        release,
        place.read(&format!("two/{suite}/InRelease")),
        "equal locks must give equal bytes"
    );
    let packages = place.read(&format!("one/{suite}/main/binary-amd64/Packages"));
    let names: Vec<&str> = packages
        .lines()
        .filter_map(|line| line.strip_prefix("Package: "))
        .collect();
    assert_eq!(names, ["app", "lib"], "{packages}");
    assert!(
        packages.contains("Version: 1:2+b1\n") && !release.contains("Valid-Until"),
        "{release}"
    );
    let mut all = run(std::process::Command::new("find")
        .arg(place.path("one"))
        .args(["-type", "f", "-not", "-name", ".landfall-files"]));
    all.retain(|byte| *byte == b'\n');
    assert_eq!(
        all.len(),
        3 + 2 * 2,
        "three packages, and a release and an index of each suite"
    );
    let flat = place.read(&format!("one/{host}/r/flat/Packages"));
    assert!(
        flat.contains("Package: vendor\n") && !flat.contains("unasked"),
        "{flat}"
    );

    // the server offers the same metadata, from the bundle and from a registry
    let there = own_registry();
    place.ok(&["push", "b", "--to", &there.address]);
    let serve =
        |from: &[&str]| landfall_serve(place, &[from, &["--packages-key", "site.asc"]].concat());
    let server = serve(&["--from", &there.address]);
    let get = |at: &str, own: &str| request("GET", &server.address, at, &[("Host", own)], b"");
    assert_eq!(
        get(&format!("/apt/{suite}/InRelease"), "x").body,
        release.as_bytes()
    );
    assert_eq!(
        get("/r/dists/stable/InRelease", &host).body,
        release.as_bytes()
    );
    assert_eq!(get(&format!("/apt/{suite}/Release"), "x").status, 404);
    drop(server);
    let server = serve(&["b"]);
    let url = format!("url=http://{}/apt", server.address);
    let render = [
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
    ];
    let message = place.printed(2, &render);
    assert!(message.contains("--packages-key FILE"), "{message}");
    place.ok(&[&render[..], &["--packages-key", "site.asc"]].concat());
    let sources = place.read("node/etc/apt/landfall.sources.d/landfall.sources");
    assert!(
        sources.contains("Signed-By: /etc/apt/keyrings/landfall-site.asc"),
        "{sources}"
    );
    assert!(
        place
            .read("node/etc/apt/keyrings/landfall-site.asc")
            .contains("PUBLIC KEY BLOCK")
    );
    let node = place.path("node");
    let here = sources.replace("Signed-By: /", &format!("Signed-By: {}/", node.display()));
    let apt = Apt::new(place, "apt", &here, "");
    run(&mut apt.get(place, &["update"]));
    run(&mut apt.get(place, &["install", "--yes", "--download-only", "vendor"]));
    let other = apt
        .get(place, &["install", "--simulate", "other"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(
        !other.status.success() && told.contains("Unable to locate package other"),
        "{told}"
    );
    // the key of the repository is not valid for trimmed metadata
    let vendor = here.replace("node/etc/apt/keyrings/landfall-site.asc", "key.asc");
    let refused = Apt::new(place, "refused", &vendor, "")
        .get(place, &["update"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && told.contains("NO_PUBKEY"),
        "{told}"
    );

    // entries with the same repository must have the same `index`
    let entry = |more: &str| {
        let url = up.url();
        format!(
            "- apt: {{url: '{url}', suite: stable, components: [main], key: key.asc, install: [app], {more}}}\n"
        )
    };
    let head = "apiVersion: landfall/v1\nkind: Manifest\npackages:\n";
    place.write(
        "m.yaml",
        format!(
            "{head}{}{}",
            entry("name: one, index: trimmed"),
            entry("name: two")
        ),
    );
    up.lock(0, &["--lock", "both.lock"]);
    let both = [
        "export",
        "apt",
        "--lock",
        "both.lock",
        "-o",
        "no",
        "--packages-key",
        "site.asc",
    ];
    let message = place.printed(1, &both);
    assert!(
        message.contains("apt:two") && message.contains("write the same `index` for both"),
        "{message}"
    );
}

#[test]
fn dnf_accepts_trimmed_metadata_signed_by_the_site() {
    let Some(up) = YumUpstream::new() else { return };
    let place = &up.place;
    up.build(&[
        (
            "app",
            "2",
            "Requires: /usr/share/lib/lib\nRequires: lib >= 1\n",
            &["/usr/share/app/app"],
        ),
        ("lib", "1", "", &["/usr/share/lib/lib"]),
        ("other", "1", "", &["/usr/share/other/other"]),
    ]);
    up.index("gz");
    up.wants("install: [app], base: none, index: trimmed");
    up.lock(0, &[]);
    place.ok(&["pull"]);
    place.write("site.asc", LOCKED_KEY);
    const EXPORT: [&str; 6] = ["export", "yum", "-o", "out", "--packages-key", "site.asc"];
    let locked = place.printed(2, &EXPORT);
    assert!(locked.contains("LANDFALL_PACKAGES_PASSPHRASE"), "{locked}");
    let export = || {
        run(place
            .command()
            .env("LANDFALL_PACKAGES_PASSPHRASE", "secret")
            .args(EXPORT))
    };
    export();
    let folder = format!("out/{}/r", up.server.address);
    let [repomd, signature] =
        ["", ".asc"].map(|end| place.read(&format!("{folder}/repodata/repomd.xml{end}")));
    export();
    assert_eq!(
        signature,
        place.read(&format!("{folder}/repodata/repomd.xml.asc"))
    );
    let primary = repomd
        .split("href=\"")
        .find_map(|rest| rest.split_once("-primary.xml\""))
        .unwrap()
        .0;
    let primary = place.read(&format!("{folder}/{primary}-primary.xml"));
    assert!(
        primary.contains("<name>lib</name>") && !primary.contains("<name>other</name>"),
        "{primary}"
    );

    // dnf checks the metadata with the site's key, and the packages with the vendor's
    place.write(
        "site.yaml",
        "apiVersion: landfall/v1\nkind: Site\nfiles: http://172.20.0.2/yum\n",
    );
    place.ok(&[
        "render",
        "yum",
        "--site",
        "site.yaml",
        "--to",
        "172.20.0.2:5000",
        "-o",
        "node",
        "--packages-key",
        "site.asc",
    ]);
    let repositories = place.path("node/etc/yum.repos.d");
    let file = fs::read_dir(&repositories)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("gpgcheck=1\nrepo_gpgcheck=1\n"), "{text}");
    let keys = format!("file://{}/etc/", place.path("node").display());
    let files = format!(
        "baseurl=file://{}/{}",
        place.path("out").display(),
        up.server.address
    );
    let here = text.replace("file:///etc/", &keys).replace(
        &format!("baseurl=http://172.20.0.2/yum/{}", up.server.address),
        &files,
    );
    fs::write(&file, here).unwrap();
    let mut install = dnf(place, "installed", "file:///nowhere", "enabled=0\n");
    install.arg(format!("--setopt=reposdir={}", repositories.display()));
    run(install.args(["--assumeyes", "install", "app"]));
    assert!(place.path("installed/root/usr/share/lib/lib").exists());

    // dnf refuses metadata that was changed after it was signed
    let changed = repomd.replace("<open-size>", "<open-size> ");
    place.write(&format!("{folder}/repodata/repomd.xml"), changed);
    let mut refused = dnf(place, "refused", "file:///nowhere", "enabled=0\n");
    refused.arg(format!("--setopt=reposdir={}", repositories.display()));
    let refused = refused.args(["--assumeyes", "makecache"]).output().unwrap();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && told.contains("GPG signature verification error"),
        "{told}"
    );
}
