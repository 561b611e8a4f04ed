//! Locking: kept pins, moved tags, missing platforms, checksums of files.

use crate::support::faults::{Fault, FaultKind, RequestKind, Rig};
use crate::support::images::{noise, sha256, sha256_hex};
use crate::support::library::{Algorithm, Digest};
use crate::support::peers::{Server, file_server, own_registry};
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use crate::support::{Images, Place, need};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const NEEDS: [&str; 1] = ["gzip"];

/// A registry with `app:v1` (two platforms) and `single:v1` (only amd64).
struct Site {
    place: Place,
    registry: Server,
    images: Images,
}

impl Site {
    fn new() -> Site {
        let place = Place::new();
        let images = Images::new(place.path("layout"));
        let site = Site {
            place,
            registry: own_registry(),
            images,
        };
        site.put("v1", 1);
        let single = site
            .images
            .image("linux/amd64", &[site.images.layer(&[("single", b"1")])]);
        site.images
            .push(&site.registry.address, "single", "v1", &single);
        site
    }

    /// Pushes an image with the content of `seed` to `app:TAG`, and returns its digest.
    fn put(&self, tag: &str, seed: u64) -> String {
        let layer = |n| self.images.layer(&[("app", &noise(seed * 10 + n, 2000))]);
        let index = self.images.index(&[
            self.images.image("linux/amd64", &[layer(1)]),
            self.images.image("linux/arm64", &[layer(2)]),
        ]);
        self.images.push(&self.registry.address, "app", tag, &index);
        index["digest"].as_str().unwrap().to_owned()
    }

    fn manifest(&self, body: &str) {
        let head = "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\n";
        self.place.write(
            "m.yaml",
            format!("{head}{}", body.replace("REG", &self.registry.address)),
        );
    }

    fn lock(&self, exit: i32, more: &[&str]) -> Value {
        self.place.json(
            exit,
            &[&["lock", "-f", "m.yaml", "--store", "store"], more].concat(),
        )
    }
}

#[test]
fn a_pin_is_kept_until_a_refresh() {
    if !need(&NEEDS) {
        return;
    }
    let site = Site::new();
    site.manifest("images: [REG/app:v1]\n");
    assert_eq!(site.lock(2, &["--check"])["error"]["side"], "input");
    site.lock(0, &[]);
    let first = site.place.read("landfall.lock");
    let moved = site.put("v1", 2);

    let kept = site.lock(0, &[]);
    assert_eq!(
        (&kept["totals"]["requests"], &kept["changes"]),
        (&0.into(), &serde_json::json!([]))
    );
    assert_eq!(site.place.read("landfall.lock"), first);

    let drift = site.lock(4, &["--check"]);
    assert_eq!(drift["status"], "refused");
    let change = &drift["changes"][0];
    assert_eq!(
        (&change["change"], &change["to"]),
        (&"moved".into(), &moved.as_str().into()),
        "{drift:#}"
    );
    assert_eq!(
        site.place.read("landfall.lock"),
        first,
        "--check writes nothing"
    );

    // if only the platforms change, the tag is not resolved again
    site.manifest("platforms: [linux/amd64]\nimages: [REG/app:v1]\n");
    let narrowed = site.lock(0, &[]);
    assert_eq!(narrowed["changes"][0]["change"], "changed", "{narrowed:#}");

    let refreshed = site.lock(0, &["--refresh"]);
    assert_eq!(refreshed["changes"][0]["to"], moved.as_str());
    assert!(site.place.read("landfall.lock").contains(&moved));
    assert_eq!(site.lock(0, &["--check"])["changes"], serde_json::json!([]));
}

#[test]
fn a_lock_contains_endpoints_and_their_changes_are_reported() {
    if !need(&NEEDS) {
        return;
    }
    let site = Site::new();
    site.manifest("images: [REG/app:v1]\n");
    site.lock(0, &[]);
    site.manifest(
        "images: [REG/app:v1]\nvars: {region: eu-1}\nendpoints:\n\
         - {host: vcenter.test, port: 443, why: machines, from: [seed-cluster-node]}\n\
         - {host: 's3.${region}.test', port: 443, why: backups}\n",
    );
    let drift = site.lock(4, &["--check"]);
    assert_eq!(drift["endpointChanges"][0]["change"], "added", "{drift:#}");
    site.place
        .write("old.lock", site.place.read("landfall.lock"));
    site.lock(0, &[]);
    let lock = site.place.read("landfall.lock");
    let lines = "endpoints:\n- {host: s3.eu-1.test, port: 443, why: backups}\n\
                 - {host: vcenter.test, port: 443, why: machines, from: [seed-cluster-node]}\n...\n";
    assert!(lock.ends_with(lines), "{lock}");
    assert_eq!(
        site.lock(0, &["--check"])["endpointChanges"],
        serde_json::json!([])
    );

    let listed = site.place.ok(&["ls", "landfall.lock"]);
    assert!(
        listed.contains("endpoint          vcenter.test:443: machines (from seed-cluster-node)\n"),
        "{listed}"
    );
    let differ = site.place.ok(&["diff", "landfall.lock", "old.lock"]);
    assert!(
        differ.contains("removed  endpoint s3.eu-1.test:443: backups\n"),
        "{differ}"
    );
}

#[test]
fn unresolved_items_are_recorded_with_exit_3() {
    if !need(&NEEDS) {
        return;
    }
    let site = Site::new();
    site.manifest(
        "images:\n- {ref: \"REG/app:v1\", platforms: [linux/amd64, linux/s390x]}\n\
         - {ref: \"REG/single:v1\", platforms: [linux/arm64]}\n- REG/gone:v1\n- REG/lost:v1\n- REG/late:v1\n\
         - {ref: \"REG/app:v1.1\", digest: \"sha256:0000000000000000000000000000000000000000000000000000000000000000\"}\n\
         missing:\n- {ref: \"REG/lost:v1\", reason: removed upstream, until: 2999-01-31}\n\
         - {ref: \"REG/late:v1\", reason: removed upstream, until: 2020-01-31}\n",
    );
    site.put("v1.1", 3);
    let report = site.lock(1, &[]);
    let reason = |name: &str| {
        let items = report["items"].as_array().unwrap();
        let item = items
            .iter()
            .find(|item| item["name"].as_str().unwrap().ends_with(name))
            .unwrap();
        (
            item["status"].as_str().unwrap().to_owned(),
            item["reason"].as_str().unwrap_or_default().to_owned(),
        )
    };
    let (status, why) = reason("app:v1");
    assert!(
        status == "missing" && why.contains("no linux/s390x, only linux/amd64, linux/arm64"),
        "{why}"
    );
    assert!(
        reason("single:v1")
            .1
            .contains("only for linux/amd64, not for linux/arm64")
    );
    assert!(reason("gone:v1").1.contains("404"));
    assert_eq!(reason("lost:v1").0, "skipped");
    assert_eq!(
        reason("late:v1").0,
        "missing",
        "a missing item is accepted only until its date"
    );
    assert!(
        reason("app:v1.1")
            .1
            .contains("the manifest requires sha256:0000"),
        "{}",
        reason("app:v1.1").1
    );

    site.manifest("images: [REG/app:v1, REG/gone:v1]\n");
    let report = site.lock(3, &[]);
    assert_eq!(report["status"], "partial");
    let lock = site.place.read("landfall.lock");
    assert!(
        lock.contains("unresolved:") && lock.contains("upstream does not have it"),
        "{lock}"
    );
    // commands that use this lock report the missing items, too
    site.place.json(3, &["pull", "--store", "store"]);
    site.place.json(3, &["pack", "--store", "store", "-o", "b"]);
    assert!(
        !site.place.path("b").exists(),
        "`pack` refuses to write a partial bundle"
    );
    // if nothing can be locked, the lock stays, so no item is removed from it
    site.manifest("images: [REG/gone:v9]\n");
    let report = site.lock(1, &[]);
    assert!(
        !report["changes"].to_string().contains("removed"),
        "{report}"
    );
    assert_eq!(site.place.read("landfall.lock"), lock);
}

#[test]
fn an_image_may_lack_an_optional_platform() {
    if !need(&NEEDS) {
        return;
    }
    let site = Site::new();
    let windows = site.images.index(&[site
        .images
        .image("windows/amd64", &[site.images.layer(&[("w", b"1")])])]);
    let address = &site.registry.address;
    site.images.push(address, "windows", "v1", &windows);
    site.place.write(
        "list.txt",
        format!("{address}/app:v1\n{address}/single:v1\n{address}/windows:v1\n"),
    );
    let list = "lists: [{format: images-txt, file: list.txt}]\n";
    // without a question mark, each platform is required of all images of a list
    site.manifest(&format!("platforms: [linux/amd64, linux/arm64]\n{list}"));
    let report = site.lock(3, &[]);
    let reasons = report["items"].to_string();
    assert!(
        reasons.contains(
            "only for linux/amd64, not for linux/arm64; give this image its own \
                          `platforms:`, or mark a platform that images may lack with `?`"
        ),
        "{report:#}"
    );
    // the hint is followed: an entry of the manifest overrides the list
    let own = "images:\n- {ref: \"REG/single:v1\", platforms: [linux/amd64]}\n\
               - {ref: \"REG/windows:v1\", platforms: []}\n";
    site.manifest(&format!(
        "platforms: [linux/amd64, linux/arm64]\n{own}{list}"
    ));
    assert_eq!(site.lock(0, &[])["status"], "done");
    let lock = site.place.read("landfall.lock");
    assert_eq!(
        lock.matches("platforms: [linux/amd64]\n").count(),
        1,
        "{lock}"
    );
    assert!(!lock.contains("lacks:"), "{lock}");

    std::fs::remove_file(site.place.path("landfall.lock")).unwrap();
    site.manifest(&format!("platforms: [linux/amd64?, linux/arm64?]\n{list}"));
    let report = site.lock(0, &[]);
    let items = report["items"].as_array().unwrap();
    let of = |name: &str| {
        let mut items = items.iter();
        items
            .find(|item| item["name"].as_str().unwrap().contains(name))
            .unwrap()
    };
    assert_eq!(of("/windows:")["status"], "skipped", "{report:#}");
    assert_eq!(of("/windows:")["reason"], "it is only for windows/amd64");
    assert_eq!(of("/single:")["status"], "done");
    assert!(
        of("/single:")["reason"]
            .as_str()
            .unwrap()
            .contains("it has no linux/arm64"),
        "{report:#}"
    );
    let lock = site.place.read("landfall.lock");
    assert!(!lock.contains("windows"), "{lock}");
    assert!(
        lock.contains("  platforms: [linux/amd64]\n  lacks: [linux/arm64]\n")
            && lock.contains("  platforms: [linux/amd64, linux/arm64]\n"),
        "{lock}"
    );
    // the pins are kept, and the lock does not change; only the skipped image is looked up
    let again = site.lock(0, &[]);
    assert_eq!(again["changes"], serde_json::json!([]), "{again:#}");
    assert_eq!(site.place.read("landfall.lock"), lock);
    site.place.ok(&["pull", "--store", "store"]);
    site.place.ok(&["pack", "--store", "store", "-o", "b"]);
    let verified = site.place.ok(&["verify", "b"]);
    assert!(verified.contains("consistent"), "{verified}");

    // a platform that becomes required is missing
    site.manifest("platforms: [linux/amd64, linux/arm64]\nimages: [REG/single:v1]\n");
    let report = site.lock(1, &[]);
    assert!(
        report.to_string().contains("not for linux/arm64"),
        "{report:#}"
    );
}

#[test]
fn the_old_pin_is_kept_if_upstream_fails() {
    if !need(&NEEDS) {
        return;
    }
    let site = Site::new();
    site.manifest("images: [REG/app:v1, REG/single:v1]\n");
    site.lock(0, &[]);
    let first = site.place.read("landfall.lock");
    let address = site.registry.address.clone();
    let Site {
        place,
        registry,
        images: _,
    } = site;
    drop(registry);
    let report = place.json(
        1,
        &[
            "lock",
            "-f",
            "m.yaml",
            "--store",
            "store",
            "--refresh",
            "--plain-http",
            &address,
        ],
    );
    assert!(
        report["items"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("the old pin is kept"),
        "{report:#}"
    );
    assert_eq!(place.read("landfall.lock"), first);
}

#[test]
fn a_pin_is_replaced_if_its_item_is_declared_missing_and_upstream_lacks_it() {
    if !need(&NEEDS) {
        return;
    }
    let site = Site::new();
    let files = site.place.path("files");
    std::fs::create_dir_all(&files).unwrap();
    std::fs::write(files.join("tool"), b"tool").unwrap();
    let server = file_server(&files);
    let base = format!("http://{}", server.address);
    let single = format!("{}/single:v1", site.registry.address);
    let wanted =
        format!("images: [REG/app:v1, REG/single:v1]\nfiles: [{{url: \"{base}/tool\"}}]\n");
    let until = |day: &str| {
        format!(
            "{wanted}missing:\n- {{ref: \"REG/single:v1\", reason: removed, until: {day}}}\n\
             - {{ref: \"{base}/tool\", reason: removed, until: {day}}}\n"
        )
    };
    site.manifest(&wanted);
    let report = site.lock(0, &[]);
    let first = site.place.read("landfall.lock");
    // items that are declared missing but still exist keep their pins
    site.manifest(&until("2999-01-31"));
    site.lock(0, &[]);
    assert_eq!(site.place.read("landfall.lock"), first);

    let item = report["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["name"] == single.as_str());
    site.registry
        .forget("single", item.unwrap()["digest"].as_str().unwrap());
    std::fs::remove_file(files.join("tool")).unwrap();
    let report = site.lock(0, &[]);
    let skipped = report["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["status"] == "skipped");
    assert_eq!(skipped.count(), 2, "{report:#}");
    assert_eq!(report["changes"].as_array().unwrap().len(), 2, "{report:#}");
    let lock = site.place.read("landfall.lock");
    assert!(
        lock.contains("missing:\n") && lock.matches("reason: removed").count() == 2,
        "{lock}"
    );
    assert!(!lock.contains(&format!("- name: {single}")), "{lock}");
    site.place.json(0, &["pull", "--store", "other"]);

    site.place.write("landfall.lock", &first);
    site.manifest(&until("2020-01-31"));
    site.lock(3, &[]);
}

#[test]
fn a_declared_loss_is_accepted_only_if_upstream_lacks_the_item() {
    let rig = Rig::new();
    let name = |repository: &str| format!("{}/{repository}:v1", rig.up.address);
    let wanted = rig.place.read("m.yaml");
    let accepted = format!(
        "{wanted}missing: [{{ref: \"{}\", reason: removed, until: 2999-01-31}}]\n",
        name("team/tool")
    );
    rig.place.write("accepted.yaml", accepted);
    let lock = |exit: i32, file: &str, more: &[&str]| {
        let args = [
            "lock",
            "-f",
            "accepted.yaml",
            "--lock",
            file,
            "--store",
            "new",
            "--plain-http",
            &rig.up.address,
        ];
        let report = rig.place.json(exit, &[&args[..], more].concat());
        let items = report["items"].as_array().unwrap().clone();
        let item = items
            .into_iter()
            .find(|item| item["name"] == name("team/tool").as_str())
            .unwrap();
        let reason = item["reason"].as_str().unwrap_or_default().to_owned();
        (item["status"].as_str().unwrap().to_owned(), reason)
    };
    let faults_of = |what: &FaultKind| {
        [RequestKind::Manifest, RequestKind::ManifestHead]
            .map(|on| Fault::always(on, what.clone()).at("team/tool"))
    };
    for what in [
        FaultKind::Status(403),
        FaultKind::Status(501),
        FaultKind::HangUp,
    ] {
        rig.set_faults(faults_of(&what));
        let (status, reason) = lock(3, "new.lock", &[]);
        assert_eq!(status, "missing", "{what:?}: {reason}");
        assert!(
            reason.contains("`missing:` applies only to items that upstream reports as not"),
            "{reason}"
        );
        let text = rig.place.read("new.lock");
        assert!(
            text.contains("unresolved:") && !text.contains("missing:"),
            "{what:?}: {text}"
        );
        std::fs::remove_file(rig.place.path("new.lock")).unwrap();
        // a pin that cannot be checked is kept, and the report says so
        rig.place.write("old.lock", rig.place.read("landfall.lock"));
        let (status, reason) = lock(3, "old.lock", &[]);
        assert!(
            status == "failed" && reason.contains("the old pin is kept"),
            "{what:?}: {status} {reason}"
        );
        assert_eq!(
            rig.place.read("old.lock"),
            rig.place.read("landfall.lock"),
            "{what:?}"
        );
    }
    for status in [404, 410] {
        rig.set_faults(faults_of(&FaultKind::Status(status)));
        assert_eq!(lock(0, "new.lock", &[]).0, "skipped", "{status}");
        rig.place.write("old.lock", rig.place.read("landfall.lock"));
        assert_eq!(lock(0, "old.lock", &[]).0, "skipped", "{status}");
    }
}

#[test]
fn a_lock_keeps_its_symbolic_link_and_its_mode() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    if !need(&NEEDS) {
        return;
    }
    let site = Site::new();
    site.manifest("images: [REG/single:v1]\n");
    site.place.write("kept/real.lock", "version: 1\n");
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(site.place.path("kept/real.lock"), mode(0o660)).unwrap();
    symlink("kept/real.lock", site.place.path("landfall.lock")).unwrap();
    site.lock(0, &[]);
    assert!(site.place.path("landfall.lock").is_symlink());
    assert!(site.place.read("kept/real.lock").contains("single:v1"));
    let kept = std::fs::metadata(site.place.path("kept/real.lock"))
        .unwrap()
        .permissions();
    assert_eq!(kept.mode() & 0o777, 0o660);
}

#[test]
fn a_concurrent_edit_of_the_lock_is_not_overwritten() {
    for before in [Some("version: 1\n"), None] {
        let place = Place::new();
        if let Some(before) = before {
            place.write("landfall.lock", before);
        }
        let lock = place.path("landfall.lock");
        let upstream = ReverseProxy::new("", move |_| {
            std::fs::write(&lock, "version: 1\n# by hand\n").unwrap();
            ProxyAction::Bytes(b"x".to_vec())
        });
        place.write("m.yaml", manifest_of_file(&upstream.address));
        let report = place.json(1, &["lock", "-f", "m.yaml", "--store", "store"]);
        assert_eq!(upstream.requests().len(), 1);
        let printed = report["error"]["message"].as_str().unwrap();
        assert!(
            printed.contains("it was changed after it was read"),
            "{report:#}"
        );
        assert_eq!(place.read("landfall.lock"), "version: 1\n# by hand\n");
    }
}

#[test]
fn a_concurrent_edit_of_a_lock_that_stays_the_same_is_noticed() {
    let place = Place::new();
    let lock = place.path("landfall.lock");
    let is_edited = Arc::new(AtomicBool::new(false));
    let edits = is_edited.clone();
    let upstream = ReverseProxy::new("", move |_| {
        if edits.load(Ordering::Relaxed) {
            std::fs::write(&lock, "version: 1\n# by hand\n").unwrap();
        }
        ProxyAction::Bytes(b"x".to_vec())
    });
    place.write("m.yaml", manifest_of_file(&upstream.address));
    let args = ["lock", "--refresh", "-f", "m.yaml", "--store", "store"];
    place.json(0, &args);
    is_edited.store(true, Ordering::Relaxed);
    let report = place.json(1, &args);
    assert_eq!(upstream.requests().len(), 2);
    let printed = report["error"]["message"].as_str().unwrap();
    assert!(
        printed.contains("it was changed after it was read"),
        "{report:#}"
    );
}

/// A manifest with the file `x` of the server at `address`.
fn manifest_of_file(address: &str) -> String {
    format!(
        "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\nfiles: [{{url: \"http://{address}/x\"}}]\n"
    )
}

/// Before, the file was missing. `MinIO` hashes its programs under the names of their releases.
#[test]
fn the_only_digest_next_to_a_file_applies_whatever_name_it_has() {
    let place = Place::new();
    let content = noise(7, 5000);
    let line = format!(
        "{} mc.RELEASE.2025-08-13T08-35-41Z\n",
        sha256(&content).replace("sha256:", "")
    );
    place.write("www/mc", &content);
    place.write("www/mc.sha256sum", &line);
    place.write("www/SHA256SUMS", &line);
    let server = file_server(&place.path("www"));
    let url = server.url();
    let lock = |exit, checksum: &str, lock: &str| {
        place.write(
            "m.yaml",
            format!(
                "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\nfiles:\n\
                 - {{url: {url}/mc, checksum: \"{checksum}\"}}\n"
            ),
        );
        place.json(
            exit,
            &["lock", "-f", "m.yaml", "--store", "store", "--lock", lock],
        )
    };
    let report = lock(0, "${url}.sha256sum", "own.lock");
    assert_eq!(report["items"][0]["digest"], sha256(&content));
    // a list must name the file
    let report = lock(1, &format!("{url}/SHA256SUMS"), "list.lock");
    assert!(report.to_string().contains("not 'mc'"), "{report:#}");
}

#[test]
fn checksums_of_files_are_read_from_files_lists_and_literals() {
    let place = Place::new();
    let content = noise(7, 5000);
    let hex = sha256_hex(&content);
    let sha512 = Digest::compute(Algorithm::Sha512, &content);
    for name in [
        "bare", "named", "list", "plain", "literal", "long", "wrong", "page", "text",
    ] {
        place.write(&format!("www/{name}.tgz"), &content);
    }
    place.write("www/bare.tgz.sha256", &hex);
    place.write("www/named.tgz.sha256", format!("{hex}  named.tgz\n"));
    place.write(
        "www/SHA256SUMS",
        format!("{}  other.tgz\n{hex} *list.tgz\n", "0".repeat(64)),
    );
    place.write("www/wrong.tgz.sha256", "0".repeat(64));
    place.write("www/page.tgz.sha256", "<html>not found</html>");
    place.write("www/text.tgz.sha256", "not found");
    let server = file_server(&place.path("www"));
    let url = server.url();
    let manifest = format!(
        "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\nfiles:\n\
         - {{url: {url}/bare.tgz, checksum: \"${{url}}.sha256\", mode: \"0755\"}}\n\
         - {{url: {url}/named.tgz, checksum: \"${{url}}.sha256\"}}\n\
         - {{url: {url}/list.tgz, checksum: {url}/SHA256SUMS}}\n- {{url: {url}/plain.tgz}}\n\
         - {{url: {url}/literal.tgz, checksum: \"sha256:{hex}\"}}\n- {{url: {url}/long.tgz, checksum: \"{sha512}\"}}\n"
    );
    place.write("m.yaml", &manifest);
    let report = place.json(0, &["lock", "-f", "m.yaml", "--store", "store"]);
    let digests = report["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["digest"].as_str().unwrap());
    assert!(
        digests.clone().count() == 6 && digests.clone().all(|digest| digest == sha256(&content))
    );
    let before = server.requests("GET /bare.tgz ");
    assert_eq!(before, 0, "a known checksum makes the download unnecessary");
    place.json(0, &["pull", "--store", "store"]);

    place.write(
        "m.yaml",
        format!("{manifest}- {{url: {url}/wrong.tgz, checksum: \"${{url}}.sha256\"}}\n- {{url: {url}/page.tgz, checksum: \"${{url}}.sha256\"}}\n- {{url: {url}/text.tgz, checksum: \"${{url}}.sha256\"}}\n- {{url: {url}/none.tgz}}\n"),
    );
    let report = place.json(3, &["lock", "-f", "m.yaml", "--store", "store"]);
    let text = report.to_string();
    assert!(
        text.contains("contains no SHA-256 or SHA-512 digest")
            && text.contains("page.tgz.sha256: an HTML page was sent instead of the file")
            && text.contains("none.tgz: answered 404"),
        "{text}"
    );
    // the wrong checksum is detected during the download
    let report = place.json(3, &["pull", "--store", "store"]);
    let failed: Vec<&Value> = report["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["status"] == "failed")
        .collect();
    assert_eq!(failed.len(), 1, "{report:#}");
    assert!(
        failed[0]["reason"]
            .as_str()
            .unwrap()
            .contains("received wrong bytes: expected sha256:0000")
    );
}

#[test]
fn a_part_of_a_file_is_not_locked_as_the_file() {
    // a cache that stores the response to a range
    let cache = ReverseProxy::new("", |request| {
        let size = if request.target == "/whole" { 3 } else { 9 };
        let range = ("Content-Range".to_owned(), format!("bytes 0-2/{size}"));
        let status = if request.target == "/part-200" {
            200
        } else {
            206
        };
        ProxyAction::Answer(status, vec![range], "abc".into())
    });
    let place = Place::new();
    let url = |name: &str| format!("http://{}/{name}", cache.address);
    let files = ["part", "part-200", "whole"].map(|name| format!("- {{url: \"{}\"}}\n", url(name)));
    let manifest = "apiVersion: landfall/v1\nkind: Manifest\nfiles:\n";
    place.write("m.yaml", manifest.to_owned() + &files.concat());
    let report = place.json(3, &["lock", "-f", "m.yaml"]);
    let items = report["items"].as_array().unwrap();
    let item = |name: &str| items.iter().find(|item| item["name"] == url(name)).unwrap();
    assert_eq!(item("whole")["status"], "done", "{report:#}");
    for part in ["part", "part-200"] {
        let reason = item(part)["reason"].as_str().unwrap();
        assert!(
            reason.contains("answered with a part of the file"),
            "{reason}"
        );
    }
}
