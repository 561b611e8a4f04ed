//! The packages of a set in printed counts, the SBOM, and the HTML report.

use crate::report_page::sound;
use crate::support::apt::{AptUpstream, deb};
use crate::support::images::sha256;
use crate::support::yum::YumUpstream;
use serde_json::{Value, json};

/// The component of this name.
fn component<'d>(document: &'d Value, name: &str) -> &'d Value {
    let mut all = document["components"].as_array().unwrap().iter();
    all.find(|component| component["name"] == name)
        .unwrap_or_else(|| panic!("{name}: {document:#}"))
}

/// The names of the components that `reference` depends on.
fn depends_on(document: &Value, reference: &Value) -> Vec<String> {
    let mut all = document["dependencies"].as_array().unwrap().iter();
    let found = all.find(|one| one["ref"] == *reference).unwrap();
    let name = |on: &Value| {
        let mut all = document["components"].as_array().unwrap().iter();
        all.find(|component| component["bom-ref"] == *on).unwrap()["name"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    found["dependsOn"]
        .as_array()
        .unwrap()
        .iter()
        .map(name)
        .collect()
}

#[test]
fn packages_of_yum_are_counted_and_listed_one_by_one() {
    let Some(up) = YumUpstream::new() else { return };
    let place = &up.place;
    up.build(&[
        (
            "app",
            "2",
            "Epoch: 1\nRequires: lib++\nLicense: GPLv2+ and <MIT>\nVendor: Red Hat, Inc.\n",
            &["/usr/share/app/a"],
        ),
        ("lib++", "1.0~rc1", "", &["/usr/share/lib/l"]),
    ]);
    up.index("gz");
    up.wants("name: nodes, install: [app], base: none");
    // the JSON document counts entries of the lock
    assert_eq!(up.lock(0, &[])["totals"]["items"], 1);
    let locked = place.ok(&["lock", "-f", "m.yaml", "--refresh"]);
    assert!(
        locked.contains("locked 1 set of 2 packages in landfall.lock"),
        "{locked}"
    );
    let pulled = place.ok(&["pull", "--dry-run"]);
    assert!(
        pulled.contains("would pull 1 set of 2 packages into"),
        "{pulled}"
    );
    let pulled = place.ok(&["pull"]);
    assert!(
        pulled.contains("pulled 1 set of 2 packages into"),
        "{pulled}"
    );
    let packed = place.ok(&["pack", "-o", "b"]);
    assert!(
        packed.contains("packed 0 images, 0 files and 1 set of 2 packages into b"),
        "{packed}"
    );
    let listed = place.ok(&["ls", "b"]);
    assert!(listed.contains("yum:nodes  2 packages\n"), "{listed}");
    assert!(
        listed.contains("0 images, 0 files and 1 set of 2 packages, "),
        "{listed}"
    );
    assert_eq!(
        place.json(0, &["ls", "b"])["items"][0].get("packages"),
        None,
        "the items of the JSON document list no packages"
    );

    // a set that cannot be locked counts as one set
    up.wants("name: nodes, install: [gone], base: none");
    let refused = place
        .landfall()
        .args(["lock", "-f", "m.yaml", "--lock", "none.lock"])
        .assert()
        .code(1);
    let refused = String::from_utf8_lossy(&refused.get_output().stdout).into_owned();
    assert!(
        refused.contains("nothing could be locked: 0 of 1 set of packages"),
        "{refused}"
    );

    let document: Value = serde_json::from_str(&place.ok(&["sbom", "b"])).unwrap();
    let app = component(&document, "app");
    let digest = sha256(&place.read_bytes("up/r/Packages/app-2-1.noarch.rpm"));
    let url = format!("{}/Packages/app-2-1.noarch.rpm", up.url());
    let port = up
        .url()
        .split(':')
        .nth(2)
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    let at = format!("repository_url=http:%2F%2F127.0.0.1:{port}%2Fr");
    assert_eq!(
        *app,
        json!({
            "type": "library",
            "bom-ref": format!("{url}@{digest}"),
            "name": "app",
            "version": "1:2-1",
            "publisher": "Red Hat, Inc.",
            "purl": format!("pkg:rpm/redhat/app@2-1?arch=noarch&epoch=1&{at}"),
            "hashes": [{"alg": "SHA-256", "content": digest["sha256:".len()..]}],
            "licenses": [{"license": {"name": "GPLv2+ and <MIT>"}}],
            "properties": app["properties"],
            "externalReferences": [{"type": "distribution", "url": url}],
        })
    );
    // a package without a vendor has the host of its repository as namespace
    let purl = format!("pkg:rpm/127.0.0.1/lib%2B%2B@1.0~rc1-1?arch=noarch&{at}");
    assert_eq!(component(&document, "lib++")["purl"], purl);
    let set = component(&document, "yum:nodes");
    assert_eq!(
        (&set["type"], set.get("purl"), set.get("externalReferences")),
        (&json!("data"), None, None)
    );
    assert_eq!(
        depends_on(&document, &document["metadata"]["component"]["bom-ref"]),
        ["yum:nodes"]
    );
    assert_eq!(depends_on(&document, &json!("yum:nodes")), ["app", "lib++"]);
    let printed = place.ok(&["sbom", "b", "-o", "b.cdx.json"]);
    assert!(
        printed.contains("3 components; no image has an SBOM of its own"),
        "{printed}"
    );

    let page = place.ok(&["report", "b"]);
    sound(&page);
    let section = page
        .split(">Packages")
        .nth(2)
        .unwrap_or_else(|| panic!("{page}"));
    let row = "<td class=\"code\">app</td><td class=\"code\">1:2-1</td><td>noarch</td>";
    assert!(
        section.contains(row) && section.contains("yum:nodes"),
        "{section}"
    );
}

#[test]
fn packages_of_apt_are_named_by_their_distribution() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    up.build(
        "pool/stable",
        &[
            deb("app", "1:1.0-1+b1", "Depends: libapp\n"),
            deb("libapp", "2", ""),
        ],
    );
    up.suite("stable", "");
    up.wants("stable", "app", ", base: none");
    up.lock(0, &[]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    let document: Value = serde_json::from_str(&place.ok(&["sbom", "b"])).unwrap();
    let app = component(&document, "app");
    let purl = app["purl"].as_str().unwrap();
    assert!(
        purl.starts_with("pkg:deb/test/app@1:1.0-1%2Bb1?arch=amd64&distro=stable&repository_url="),
        "{purl}"
    );
    assert_eq!(
        (&app["version"], app.get("licenses")),
        (&json!("1:1.0-1+b1"), None)
    );
    let set = &document["metadata"]["component"]["bom-ref"];
    let [set] = &depends_on(&document, set)[..] else {
        panic!("{document:#}")
    };
    assert_eq!(depends_on(&document, &json!(set)), ["app", "libapp"]);
    let page = place.ok(&["report", "b"]);
    assert!(page.contains("<td class=\"code\">libapp</td>"), "{page}");
}
