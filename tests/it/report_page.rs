//! HTML reports: of a bundle, and of commands that transfer or check content.

use crate::support::Place;
use crate::support::faults::Rig;
use crate::support::images::{Images, OCI_CONFIG, OCI_INDEX, OCI_MANIFEST, noise};
use crate::support::need;
use crate::support::peers::own_registry;
use serde_json::json;

/// Asserts that a page has one script, loads nothing, and closes the elements that are listed
/// below.
pub fn sound(page: &str) {
    assert!(
        page.starts_with("<!doctype html>\n<html lang=\"en\">"),
        "{}",
        &page[..200]
    );
    assert!(page.ends_with("</body>\n</html>\n"));
    assert!(page.contains("default-src 'none'") && page.contains("prefers-color-scheme:dark"));
    assert_eq!(page.matches("<script").count(), 1);
    for element in [
        "table", "tr", "td", "h2", "nav", "a", "g", "svg", "ul", "li", "dl", "p", "title",
    ] {
        let open = page.matches(&format!("<{element}>")).count()
            + page.matches(&format!("<{element} ")).count();
        assert_eq!(
            open,
            page.matches(&format!("</{element}>")).count(),
            "{element}"
        );
    }
    for loads in [" src=", "url(", "<link", "<iframe", "@import", " style="] {
        assert!(!page.contains(loads), "{loads}");
    }
}

#[test]
fn commands_that_transfer_or_check_content_write_an_html_report() {
    let rig = Rig::new();
    rig.set_faults([]);
    let place = &rig.place;
    let up = &rig.up.address;
    let down = &rig.down.address;
    let page = |exit: i32, line: &str| {
        let line = line.replace("UP", up).replace("DOWN", down);
        let args: Vec<&str> = line
            .split(' ')
            .chain(["--store", "s", "--report", "page.html"])
            .collect();
        place.landfall().args(&args).assert().code(exit);
        let page = place.read("page.html");
        sound(&page);
        assert!(
            page.contains(&format!("<title>landfall {}: ", args[0])),
            "{line}"
        );
        page
    };
    let locked = page(0, "lock -f m.yaml --lock l --plain-http UP");
    assert!(
        locked.contains("Hosts contacted") && locked.contains("shared by several"),
        "{locked}"
    );
    let pulled = page(0, "pull --lock l --plain-http UP");
    for part in [
        ">Timings</h2>",
        "Shared layers",
        "team/app:v1",
        "<svg id=\"map\"",
        "moved in ",
    ] {
        assert!(pulled.contains(part), "{part}");
    }
    page(0, "pack --lock l -o b");
    let pushed = page(0, "push b --to DOWN --plain-http DOWN");
    assert!(
        pushed.contains("delivered to") && pushed.contains(down),
        "{pushed}"
    );
    page(
        0,
        "mirror --lock l --to DOWN/again --plain-http UP --plain-http DOWN",
    );
    page(0, "verify b");
    page(0, "status b --to DOWN --plain-http DOWN");
    // failures are on the page too
    let failed = page(1, "push b --to 127.0.0.1:1");
    assert!(
        failed.contains("<span class=\"failed\">failed</span>") && failed.contains("<pre>"),
        "{failed}"
    );
}

#[test]
fn the_page_of_a_bundle_is_one_file_and_reproducible() {
    let rig = Rig::new();
    rig.set_faults([]);
    let place = &rig.place;
    let store = ["--store", "s", "--plain-http", &rig.up.address];
    for line in [
        &["lock", "-f", "m.yaml", "--lock", "l"][..],
        &["pull", "--lock", "l"],
    ] {
        place.ok(&[line, &store].concat());
    }
    place.ok(&["pack", "--lock", "l", "-o", "b", "--store", "s"]);
    place.ok(&["report", "b", "-o", "page.html"]);
    let page = place.read("page.html");
    sound(&page);
    for part in [
        "bundle digest",
        "shared by several",
        "team/app:v1",
        "signature",
        "tool.bin",
        "linux/arm64",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(place.ok(&["report", "b"]), page);
    let since = place.ok(&["report", "b", "--since", "l"]);
    assert!(!since.contains(">Changes</h2>"), "nothing changed");
    place.write("none.lock", "version: 1\n...\n");
    let since = place.ok(&["report", "b", "--since", "none.lock"]);
    assert!(
        since.contains(">Changes</h2>") && since.contains(">added<"),
        "{since}"
    );
}

#[test]
fn image_metadata_is_shown_as_escaped_text() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let upstream = own_registry();
    let images = Images::new(place.path("layout"));
    let evil = "MIT</td><script>alert(1)</script>";
    let layer = images.layer(&[("app", &noise(1, 3000))]);
    let config = json!({"os": "linux", "architecture": "amd64", "created": "2024-01-02T03:04:05Z",
        "config": {"Labels": {"org.opencontainers.image.licenses": evil}},
        "rootfs": {"type": "layers", "diff_ids": []}});
    let config = images.blob(OCI_CONFIG, config.to_string().as_bytes());
    let manifest =
        json!({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": [layer]});
    let mut image = images.blob(OCI_MANIFEST, manifest.to_string().as_bytes());
    image["platform"] = json!({"os": "linux", "architecture": "amd64"});
    let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [image]});
    images.push(
        &upstream.address,
        "old",
        "v1",
        &images.blob(OCI_INDEX, index.to_string().as_bytes()),
    );
    let head = "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\nimages: ";
    place.write(
        "m.yaml",
        format!("{head}[\"{}/old:v1\"]\n", upstream.address),
    );
    for line in [
        &["lock", "-f", "m.yaml"][..],
        &["pull"],
        &["pack", "-o", "b"],
    ] {
        place.ok(&[line, &["--store", "s"]].concat());
    }
    let page = place.ok(&["report", "b", "--older-than", "26w"]);
    sound(&page);
    assert!(
        page.contains("MIT&lt;/td&gt;&lt;script&gt;alert(1)"),
        "{page}"
    );
    assert!(
        page.contains("built on 2024-01-02, more than 26w ago"),
        "{page}"
    );
    let report = place.json(0, &["report", "b", "--older-than", "100y"]);
    assert_eq!(report["notices"], json!([]));
    let bad = place
        .landfall()
        .args(["report", "b", "--older-than", "1m"])
        .assert()
        .code(2);
    assert!(String::from_utf8_lossy(&bad.get_output().stderr).contains("as in 90d, 26w or 1y"));
}

#[test]
fn a_moved_tag_is_a_notice() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let upstream = own_registry();
    let images = Images::new(place.path("layout"));
    let push = |seed| {
        let image = images.image(
            "linux/amd64",
            &[images.layer(&[("app", &noise(seed, 3000))])],
        );
        images.push(&upstream.address, "app", "v1", &image);
    };
    push(1);
    let head = "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\nimages: ";
    place.write(
        "m.yaml",
        format!("{head}[\"{}/app:v1\"]\n", upstream.address),
    );
    place.ok(&["lock", "-f", "m.yaml", "--store", "s"]);
    push(2);
    let report = place.json(4, &["lock", "-f", "m.yaml", "--store", "s", "--check"]);
    assert_eq!(report["notices"][0]["kind"], "moved", "{report:#}");
    assert!(
        report["notices"][0]["message"]
            .as_str()
            .unwrap()
            .contains("its digest changed from"),
        "{report:#}"
    );
}
