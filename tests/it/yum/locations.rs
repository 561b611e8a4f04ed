//! Packages that are not below the folder of their repository: locations with several `../`, as
//! those of Amazon Linux, and URLs (`xml:base`).

use super::{ALL, upstream};
use crate::support::charts::failure_reasons;
use crate::support::http::request;
use crate::support::peers::{file_server, own_registry};
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use crate::support::yum::{YumUpstream, dnf, planned};
use crate::support::{Place, landfall_serve, run};
use std::fs;
use std::process::Command;

const REPOSITORY: &str = "core/mirrors/guid/x86_64";
const LOCKED_KEY: &[u8] = include_bytes!("../../data/packages/site-key-locked.asc");

/// Moves the packages of `up` to `up/TO`, and writes signed metadata of the repository that names
/// them as `createrepo_c OPTIONS` does.
fn move_packages(up: &YumUpstream, to: &str, options: &[&str]) {
    let place = &up.place;
    let (from, to) = (place.path("up/r/Packages"), place.path(format!("up/{to}")));
    let repository = place.path(format!("up/{REPOSITORY}"));
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::create_dir_all(&repository).unwrap();
    fs::rename(from, &to).unwrap();
    let mut create = Command::new("createrepo_c");
    create.args(["--quiet", "--no-database", "--general-compress-type=gz"]);
    run(create
        .arg("--outputdir")
        .arg(repository)
        .args(options)
        .arg(to));
    sign(up);
}

fn sign(up: &YumUpstream) {
    let list = format!("up/{REPOSITORY}/repodata/repomd.xml");
    let signature = up.signer.detached(&up.place.read(&list));
    up.place.write(&format!("{list}.asc"), signature);
}

fn wants(up: &YumUpstream, fields: &str) {
    let url = format!("{}/{REPOSITORY}", up.server.url());
    let head = "apiVersion: landfall/v1\nkind: Manifest\npackages:\n";
    let entry = format!("- yum: {{url: '{url}', key: key.asc, base: none, {fields}}}\n");
    up.place.write("m.yaml", format!("{head}{entry}"));
}

/// What dnf installs from the repository below `url`.
fn installed(place: &Place, name: &str, url: &str, more: &str) -> Vec<String> {
    let mut dnf = dnf(place, name, &format!("{url}/{REPOSITORY}"), more);
    let output = dnf
        .args(["--assumeyes", "install", "app"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(
        place
            .path(format!("{name}/root/usr/share/libapp/lib"))
            .exists()
    );
    planned(&output.stdout)
}

#[test]
fn locations_with_several_dots_are_mirrored_for_an_unmodified_dnf() {
    let Some(up) = upstream() else { return };
    let place = &up.place;
    // a package whose name needs an encoded path
    let odd = "blob store+%2B/ab12";
    move_packages(
        &up,
        odd,
        &["--location-prefix", &format!("../../../../{odd}/")],
    );
    wants(&up, "install: [app]");
    up.lock(0, &[]);
    let lock = place.read("landfall.lock");
    assert!(
        lock.contains(&format!(" ../../../../{odd}/app-2-1.noarch.rpm")),
        "{lock}"
    );
    place.ok(&["pull"]);
    // `+` is sent as `%2B` first, since S3 reads a plain one as a blank
    assert_eq!(up.server.requests("/blob%20store%2B%252B/ab12/app-2"), 1);
    assert_eq!(up.server.requests("/blob%20store+"), 0);
    place.ok(&["pack", "-o", "b"]);
    place.ok(&["verify", "b", "--lock", "landfall.lock"]);
    let there = own_registry();
    place.ok(&["push", "b", "--to", &there.address]);
    place.ok(&[
        "status",
        "--lock",
        "landfall.lock",
        "--registry",
        &there.address,
    ]);
    let host = &up.server.address;
    for (name, arguments) in [
        ("from-bundle", vec!["b"]),
        ("from-registry", vec!["--from", &there.address]),
    ] {
        let server = landfall_serve(place, &arguments);
        let url = format!("http://{}/yum/{host}", server.address);
        assert_eq!(
            installed(place, name, &url, "gpgcheck=0\n").len(),
            ALL.len()
        );
        // apt sends such paths as they are
        let plain = "/../../../../blob%20store%2B%252B/ab12/app-2-1.noarch.rpm";
        let at = format!("/yum/{host}/{REPOSITORY}{plain}");
        let answer = request("GET", &server.address, &at, &[], b"");
        assert_eq!(answer.status, 200, "{at}");
    }
    place.ok(&["export", "yum", "--bundle", "b", "-o", "out"]);
    let folder = format!("file://{}", place.path(format!("out/{host}")).display());
    assert_eq!(
        installed(place, "out-root", &folder, "gpgcheck=0\n").len(),
        ALL.len()
    );
}

/// Servers differ in how they read `+` in a path: S3 reads it as a blank, and some servers do not
/// decode `%2B`.
#[test]
fn a_path_with_a_plus_is_found_in_either_form() {
    let Some(up) = upstream() else { return };
    let place = &up.place;
    let odd = "pool/g++";
    move_packages(
        &up,
        odd,
        &["--location-prefix", &format!("../../../../{odd}/")],
    );
    for (refused, accepted) in [("g%2B%2B", "g++"), ("g++", "g%2B%2B")] {
        let front = ReverseProxy::new(&up.server.address, move |request| {
            if request.target.contains(refused) {
                ProxyAction::status(404)
            } else {
                // the server behind the proxy decodes
                ProxyAction::As(request.target.replace('+', "%2B"))
            }
        });
        let head = "apiVersion: landfall/v1\nkind: Manifest\npackages:\n";
        let url = format!("http://{}/{REPOSITORY}", front.address);
        let entry = format!("- yum: {{url: '{url}', key: key.asc, base: none, install: [app]}}\n");
        place.write("m.yaml", format!("{head}{entry}"));
        up.lock(0, &[]);
        let store = format!("store-{}", refused.len());
        place.ok(&["pull", "--store", &store]);
        assert_eq!(front.count("GET", accepted), ALL.len(), "{accepted}");
        let in_vain = front.count("GET", refused);
        // the encoded form is first, until the host was seen to take the other one only
        assert_eq!(in_vain > 0, refused.contains('%'), "{in_vain}");
    }
}

#[test]
fn a_location_above_the_host_is_refused_for_that_package_only() {
    let Some(up) = upstream() else { return };
    let place = &up.place;
    move_packages(&up, "blob", &["--location-prefix", "../../../../../blob/"]);
    wants(&up, "install: [app]");
    let why = failure_reasons(&up.lock(1, &[]));
    assert!(why.contains("leads above the host"), "{why}");
    // only one package is outside
    let primary = |up: &YumUpstream| -> String {
        let mut all = fs::read_dir(up.place.path(format!("up/{REPOSITORY}/repodata"))).unwrap();
        let path = all.find_map(|one| {
            let path = one.unwrap().path();
            path.display()
                .to_string()
                .ends_with("primary.xml.gz")
                .then_some(path)
        });
        let text = run(Command::new("zcat").arg(path.unwrap()));
        String::from_utf8(text).unwrap()
    };
    let text = primary(&up).replace("../../../../../blob/", "../../../../blob/");
    let text = text.replace("blob/other-1-1", "../blob/other-1-1");
    assert!(text.contains("../blob/other-1-1"), "{text}");
    crate::support::rpm_repository::write_primary(&place.path(format!("up/{REPOSITORY}")), &text);
    sign(&up);
    up.lock(0, &[]);
    wants(&up, "install: [other]");
    let why = failure_reasons(&up.lock(1, &["--lock", "other.lock"]));
    assert!(
        why.contains("other 1-1 (noarch) cannot be mirrored") && why.contains("above the host"),
        "{why}"
    );
}

#[test]
fn packages_at_urls_are_mirrored_from_hosts_that_the_manifest_names() {
    let Some(up) = upstream() else { return };
    let place = &up.place;
    // another host has the packages
    let cdn = file_server(&place.path("cdn"));
    move_packages(&up, "blob", &["--baseurl", &format!("{}/all/", cdn.url())]);
    fs::create_dir_all(place.path("cdn")).unwrap();
    fs::rename(place.path("up/blob"), place.path("cdn/all")).unwrap();
    wants(&up, "install: [app]");
    let why = failure_reasons(&up.lock(1, &[]));
    let help = format!("write `hosts: [\"{}\"]` in its source", cdn.address);
    assert!(why.contains(&help), "{why}");
    assert_eq!(cdn.requests("\""), 0, "nothing is requested from that host");
    wants(&up, "hosts: ['http://x'], install: [app]");
    place
        .landfall()
        .args(["lock", "-f", "m.yaml"])
        .assert()
        .code(2);
    wants(
        &up,
        &format!("hosts: ['{}'], install: [app], index: trimmed", cdn.address),
    );
    up.lock(0, &[]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    place.write("site.asc", LOCKED_KEY);
    let key = ["--packages-key", "site.asc"];
    let mut export = place.command();
    export.env("LANDFALL_PACKAGES_PASSPHRASE", "secret");
    run(export
        .args(["export", "yum", "--bundle", "b", "-o", "out"])
        .args(key));
    let folder = format!(
        "file://{}",
        place.path(format!("out/{}", up.server.address)).display()
    );
    let before = cdn.requests("\"");
    assert_eq!(
        installed(place, "trimmed", &folder, "gpgcheck=0\n").len(),
        ALL.len()
    );
    assert_eq!(cdn.requests("\""), before, "dnf asks no other host");
    // with the signed metadata, dnf asks the host of the URLs, which `lock` says
    wants(&up, &format!("hosts: ['{}'], install: [app]", cdn.address));
    let lock = place
        .landfall()
        .args(["lock", "-f", "m.yaml", "--lock", "signed.lock"])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&lock.stderr).into_owned();
    let note = format!(
        "URLs of packages (9), which dnf requests from {}",
        cdn.address
    );
    assert!(printed.contains(&note), "{printed}");
}

#[test]
fn odd_entries_of_the_metadata_matter_only_if_they_are_used() {
    let Some(up) = upstream() else { return };
    let place = &up.place;
    move_packages(&up, "blob", &["--location-prefix", "../../../../blob/"]);
    let list = format!("up/{REPOSITORY}/repodata/repomd.xml");
    let good = place.read(&list);
    let data = |kind: &str, sum: &str| {
        format!(
            "<data type=\"{kind}\"><checksum type=\"md5\">{sum}</checksum>\
             <location href=\"repodata/{kind}\"/></data></repomd>"
        )
    };
    let strong = |kind: &str| data(kind, &"0".repeat(64)).replace("md5", "sha256");
    let lock = |exit: i32, text: String, lock: &str| {
        place.write(&list, text);
        sign(&up);
        up.lock(exit, &["--lock", lock])
    };
    wants(&up, "install: [app]");
    // sizes that are not numbers; a kind that dnf does not need, forged or absent
    let mut odd = good
        .replace("<size>", "<size>x")
        .replace("<open-size>", "<open-size>x");
    for entry in [
        data("odd", "1"),
        strong("productid"),
        "<data/></repomd>".to_owned(),
    ] {
        odd = odd.replace("</repomd>", &entry);
    }
    lock(0, odd, "landfall.lock");
    place.ok(&["pull"]);
    assert!(!place.read("landfall.lock").contains("productid"));
    // dnf fails without these
    let why = failure_reasons(&lock(
        1,
        good.replace("</repomd>", &data("updateinfo", "1")),
        "a.lock",
    ));
    assert!(
        why.contains("the index 'updateinfo', which dnf needs") && why.contains("md5 checksum"),
        "{why}"
    );
    let page = "<html><title>Down</title></html>";
    place.write(&list, page);
    let why = failure_reasons(&up.lock(1, &["--lock", "a.lock"]));
    assert!(
        why.contains("an HTML page, titled 'Down', was sent"),
        "{why}"
    );
}
