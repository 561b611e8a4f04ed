//! Refreshes: update, lock, pull and pack in one command that can be run again at any time.

use super::moved;
use super::upstream::Upstream;
use crate::report_page::sound;
use crate::support::faults::{Fault, FaultKind, RequestKind};
use crate::support::peers::own_registry;
use crate::support::{need, run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

/// An upstream, and a manifest with four images: with the policies patch and digest, without a
/// policy, and with a variable whose policy is minor.
fn upstream() -> Upstream {
    let up = Upstream::new();
    for (repository, tag) in [("a", "1.0.0"), ("b", "stable"), ("c", "v1"), ("d", "2.0.0")] {
        up.put(repository, tag, u64::from(repository.as_bytes()[0]));
    }
    up.manifest(
        "vars: {d: {value: 2.0.0, update: minor}}\nimages:\n- {ref: 'REG/a:1.0.0', update: patch}\n\
         - {ref: 'REG/b:stable', update: digest}\n- REG/c:v1\n- 'REG/d:${d}'\n",
    );
    up
}

/// The modification time of each file below a folder.
fn times(folder: &Path) -> BTreeMap<String, SystemTime> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        // the home folder and the files `lock` and `in-use` are not content
        let is_content =
            !path.ends_with("home") && !path.ends_with("lock") && !path.ends_with("in-use");
        match path.is_dir() {
            true if is_content => all.extend(times(&path)),
            false if is_content => {
                all.insert(
                    path.display().to_string(),
                    path.metadata().unwrap().modified().unwrap(),
                );
            }
            _ => {}
        }
    }
    all
}

#[test]
fn if_nothing_is_new_a_refresh_sends_one_request_per_image() {
    let up = upstream();
    let first = up.run(0, "refresh", &["-o", "b1"]);
    assert!(first["bundle"]["digest"].is_string(), "{first:#}");
    up.place.ok(&["verify", "b1", "--lock", "landfall.lock"]);
    up.run(0, "refresh", &["-o", "b1"]);
    let before = times(up.place.dir());
    for since in [&[][..], &["--since", "landfall.lock"], &["--since", "b1"]] {
        let out = if since.is_empty() { "b1" } else { "b2" };
        let report = up.run(0, "refresh", &[&["-o", out], since].concat());
        assert_eq!(
            report["totals"]["requests"],
            4,
            "{since:?}: {:?}",
            up.faults.shown()
        );
        assert_eq!(
            (up.count(RequestKind::Manifest), up.count(RequestKind::Blob)),
            (0, 0)
        );
        assert!(
            report.get("bundle").is_none() && moved(&report).is_empty(),
            "{report:#}"
        );
    }
    assert_eq!(times(up.place.dir()), before);
    let printed = up
        .place
        .ok(&up.args("refresh", &["-o", "b2", "--since", "landfall.lock"]));
    assert_eq!(printed, "unchanged\n");
}

#[test]
fn a_serial_without_a_series_is_refused_before_anything_is_written() {
    let up = upstream();
    let manifest = up.place.read("m.yaml").replace("metadata: {name: t}\n", "");
    up.place.write("m.yaml", &manifest);
    let report = up.run(2, "refresh", &["-o", "b", "--serial", "5"]);
    let error = report["error"]["message"].as_str().unwrap_or_default();
    assert!(error.contains("its series has no name"), "{report:#}");
    assert_eq!(up.place.read("m.yaml"), manifest);
    assert!(!up.place.path("landfall.lock").exists());
    assert_eq!(up.count(RequestKind::Blob), 0);
}

#[test]
fn a_bundle_without_the_requested_signature_is_packed_again() {
    if !need(&["ssh-keygen"]) {
        return;
    }
    let up = upstream();
    let mut keygen = up.place.clean("ssh-keygen");
    run(keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", "key"]));
    up.run(0, "refresh", &["-o", "b"]);
    for (flags, is_unchanged) in [
        (&["-o", "b", "--sign", "key"][..], false),
        (&["-o", "b", "--sign", "key"], true),
        (&["-o", "b"], true),
    ] {
        let printed = up.place.ok(&up.args("refresh", flags));
        assert_eq!(
            printed == "unchanged\n",
            is_unchanged,
            "{flags:?}: {printed}"
        );
    }
    let key = up.place.read("key.pub");
    up.place.write("allowed", format!("me {key}"));
    up.place
        .ok(&["verify", "b", "--allowed-signers", "allowed"]);
}

#[test]
fn a_truncated_bundle_or_one_with_a_damaged_end_is_packed_again() {
    let up = upstream();
    up.run(0, "refresh", &["-o", "b"]);
    let whole = up.place.read_bytes("b");
    let mut damaged = whole.clone();
    let at = damaged.len() - 20;
    damaged[at] ^= 1;
    for broken in [
        &whole[..whole.len() - 1],
        &whole[..whole.len() / 2],
        &damaged,
    ] {
        up.place.write("b", broken);
        let printed = up.place.ok(&up.args("refresh", &["-o", "b"]));
        assert_ne!(printed, "unchanged\n");
        assert!(up.place.read_bytes("b") == whole, "{printed}");
    }
}

#[test]
fn a_bundle_with_another_serial_or_series_is_packed_again() {
    let up = upstream();
    for (flags, is_unchanged) in [
        ("-o b", false),
        ("-o b --serial 4", false),
        ("-o b --serial 4", true),
        ("-o b", true),
        ("-o b --serial 5", false),
        ("-o b --serial 5 --series u", false),
    ] {
        let flags: Vec<&str> = flags.split(' ').collect();
        let report = up.run(0, "refresh", &flags);
        assert_eq!(report["bundle"].is_null(), is_unchanged, "{flags:?}");
    }
}

#[test]
fn a_receipt_without_an_item_is_not_a_complete_delivery() {
    let up = upstream();
    up.run(0, "refresh", &["-o", "b1"]);
    let site = own_registry();
    let to = &site.address;
    up.place.ok(&[
        "push",
        "b1",
        "--to",
        to,
        "--plain-http",
        to,
        "--receipt",
        "r.json",
    ]);
    let since = ["-o", "d1", "--since", "r.json"];
    let report = up.run(0, "refresh", &since);
    assert!(report.get("bundle").is_none(), "{report:#}");
    // as after a push that failed for one image
    let mut receipt: Value = serde_json::from_str(&up.place.read("r.json")).unwrap();
    receipt["items"].as_array_mut().unwrap().remove(0);
    up.place.write("r.json", receipt.to_string());
    let report = up.run(0, "refresh", &since);
    assert!(report["bundle"]["digest"].is_string(), "{report:#}");
}

#[test]
fn a_bundle_that_omits_nothing_is_not_packed_again() {
    let up = upstream();
    up.place.write("sent.lock", "version: 1\n...\n");
    let flags = ["-o", "b1", "--since", "sent.lock"];
    let first = up.run(0, "refresh", &flags);
    assert!(first["bundle"]["digest"].is_string(), "{first:#}");
    let second = up.run(0, "refresh", &flags);
    assert!(second.get("bundle").is_none(), "{second:#}");
}

#[test]
fn a_delta_since_a_partial_bundle_is_not_packed_again() {
    let up = upstream();
    up.manifest("images: [REG/a:1.0.0, REG/none:v1]\n");
    up.run(3, "refresh", &["-o", "b1", "--allow-partial"]);
    up.put("none", "v1", 5);
    let flags = ["-o", "d1", "--since", "b1"];
    let first = up.run(0, "refresh", &flags);
    assert!(first["bundle"]["bases"][0].is_object(), "{first:#}");
    let second = up.run(0, "refresh", &flags);
    assert!(second.get("bundle").is_none(), "{second:#}");
    // two bundles of the same lock that lack different items are different bases
    for (bundle, lost) in [("b2", "/none/"), ("b3", "/a/")] {
        let refused = Fault::always(RequestKind::Blob, FaultKind::Status(403)).at(lost);
        up.faults.set_faults([refused]);
        let registry = &up.faults.address;
        let pull = ["pull", "--plain-http", registry, "--store", bundle];
        up.place.json(3, &pull);
        let out = format!("{bundle}.tar.zst");
        let pack = ["pack", "--store", bundle, "-o", &out, "--allow-partial"];
        up.place.json(3, &pack);
        let report = up.run(0, "refresh", &["-o", "d2", "--since", &out]);
        assert!(report["bundle"]["digest"].is_string(), "{out}: {report:#}");
    }
}

#[test]
fn a_bundle_that_omits_nothing_because_its_bases_differ_is_not_packed_again() {
    let up = Upstream::new();
    for name in ["x", "y"] {
        up.file(name, name);
        up.manifest(&format!("files: [{{url: URL/{name}}}]\n"));
        let lock = format!("{name}.lock");
        up.run(0, "lock", &["--lock", &lock]);
    }
    up.manifest("files: [{url: URL/x}, {url: URL/y}]\n");
    let flags = ["-o", "b1", "--since", "x.lock", "--since", "y.lock"];
    let first = up.run(0, "refresh", &flags);
    assert_eq!(first["bundle"]["bases"], json!([]), "{first:#}");
    let second = up.run(0, "refresh", &flags);
    assert!(second.get("bundle").is_none(), "{second:#}");
}

#[test]
fn new_content_becomes_a_delta() {
    let up = upstream();
    up.run(0, "refresh", &["-o", "b1"]);
    up.place.write("sent.lock", up.place.read("landfall.lock"));
    up.put("a", "1.0.1", 9);
    up.put("d", "2.1.0", 10);
    up.put("b", "stable", 11);
    let report = up.run(0, "refresh", &["-o", "d2", "--since", "sent.lock"]);
    let names: Vec<String> = moved(&report).into_iter().map(|(_, to)| to).collect();
    assert_eq!(names, ["2.1.0", "1.0.1"], "{report:#}");
    assert_eq!(report["notices"][0]["taken"], true);
    assert_eq!(report["changes"].as_array().unwrap().len(), 5, "{report:#}");
    let omitted = report["bundle"]["omitted"].as_array().unwrap().len();
    assert_eq!(
        omitted, 2,
        "the base layer and the unchanged layer: {report:#}"
    );
    up.place.ok(&["verify", "d2", "b1"]);
    // if the bundle is missing, as after a kill before packing, another run writes it again
    let made = up.place.read_bytes("d2");
    std::fs::remove_file(up.place.path("d2")).unwrap();
    up.run(0, "refresh", &["-o", "d2", "--since", "sent.lock"]);
    assert!(up.place.read_bytes("d2") == made);
    // if the bundle exists, another run does not write it again
    let report = up.run(0, "refresh", &["-o", "d2", "--since", "sent.lock"]);
    assert!(report.get("bundle").is_none(), "{report:#}");
}

#[test]
fn failing_items_are_listed_with_their_first_day_and_allow_partial_packs_the_other_items() {
    let up = upstream();
    up.manifest("images: [REG/a:1.0.0, REG/none:v1]\n");
    up.place.set("LANDFALL_TEST_CLOCK", "2026-01-31T23:00:00Z");
    let report = up.run(3, "refresh", &["-o", "b1"]);
    let since = "(failing since 2026-01-31)";
    assert!(report["items"].to_string().contains(since), "{report:#}");
    assert!(
        !up.place.path("b1").exists(),
        "no bundle is written without --allow-partial"
    );
    assert!(up.place.read("landfall.lock").contains("/a:1.0.0"));
    // the store remembers the first day
    up.place.set("LANDFALL_TEST_CLOCK", "2026-02-02T01:00:00Z");
    let report = up.run(3, "refresh", &["-o", "b1", "--allow-partial"]);
    assert!(report["items"].to_string().contains(since), "{report:#}");
    assert_eq!(
        report["bundle"]["partial"].as_array().unwrap().len(),
        1,
        "{report:#}"
    );
    up.place.json(4, &["verify", "b1"]);
    // upstream now has the item
    up.put("none", "v1", 5);
    up.run(0, "refresh", &["-o", "b1"]);
    up.place.ok(&["verify", "b1"]);
    // if nothing is new, failed items are not reported as unchanged
    up.faults.set_faults([
        Fault::always(RequestKind::ManifestHead, FaultKind::Status(403)).at("/none/"),
    ]);
    let failing = up
        .place
        .command()
        .args(up.args("refresh", &["-o", "b1"]))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&failing.stdout).into_owned();
    assert!(
        failing.status.code() == Some(3) && printed.ends_with("nothing was written\n"),
        "{printed}"
    );
    // if upstream fails, the pins are kept, and the content of the store is packed
    std::fs::remove_file(up.place.path("b1")).unwrap();
    up.faults.set_faults([
        Fault::always(RequestKind::ManifestHead, FaultKind::Status(403)).at("/none/"),
    ]);
    let report = up.place.json(3, &up.args("refresh", &["-o", "b1"]));
    assert!(report["bundle"]["digest"].is_string(), "{report:#}");
}

#[test]
fn a_number_without_a_series_is_refused_and_the_contacted_hosts_are_reported() {
    let up = upstream();
    let manifest = up.place.read("m.yaml");
    up.place
        .write("m.yaml", manifest.replace("metadata: {name: t}\n", ""));
    for more in [&["--dry-run"][..], &[][..]] {
        let flags = [&["-o", "b1", "--serial", "1"][..], more].concat();
        let report = up.run(2, "refresh", &flags);
        let requests = report["totals"]["requests"].as_u64().unwrap();
        let hosts = report["hosts"].as_array().unwrap();
        assert!(requests > 0 && !hosts.is_empty(), "{report:#}");
    }
}

#[test]
fn a_lock_that_was_not_written_is_neither_reported_nor_packed() {
    let up = upstream();
    up.run(0, "lock", &[]);
    let lock = up.place.read("landfall.lock");
    up.manifest("images: ['REG/gone:v1']\n");
    for (verb, more) in [("refresh", &["-o", "b1"][..]), ("update", &[][..])] {
        let report = up.run(1, verb, more);
        assert!(
            report.get("lock").is_none() && report.get("bundle").is_none(),
            "{report:#}"
        );
    }
    assert_eq!(up.place.read("landfall.lock"), lock);
}

#[test]
fn the_flag_digests_reports_a_tag_that_was_pushed_again_under_a_version_policy() {
    let up = upstream();
    up.run(0, "refresh", &["-o", "b1"]);
    up.put("a", "1.0.0", 77);
    let lock = up.place.read("landfall.lock");
    let report = up.run(0, "refresh", &["-o", "b1", "--digests"]);
    let notice = &report["notices"][0];
    assert_eq!(
        (&notice["kind"], &notice["taken"]),
        (&json!("moved"), &json!(false)),
        "{report:#}"
    );
    assert!(
        notice["name"].as_str().unwrap().ends_with("/a:1.0.0"),
        "{report:#}"
    );
    assert_eq!(
        report["totals"]["requests"], 6,
        "one more request for each of the two images whose tags are listed: {report:#}"
    );
    assert_eq!(
        up.place.read("landfall.lock"),
        lock,
        "the moved tag is reported, but not updated"
    );
}

#[test]
fn refresh_splits_the_bundle_with_volume_size() {
    let up = upstream();
    let report = up.run(0, "refresh", &["-o", "b1", "--volume-size", "64KiB"]);
    let files = report["bundle"]["files"].as_array().unwrap();
    assert!(files.len() > 1 && files[0] == "b1.0001", "{report:#}");
    assert!(!up.place.path("b1").exists());
    up.place.ok(&["verify", "b1", "--lock", "landfall.lock"]);
    // existing content is not written again
    let printed = up
        .place
        .ok(&up.args("refresh", &["-o", "b1", "--volume-size", "64KiB"]));
    assert_eq!(printed, "unchanged\n");
    // volumes that are too large are packed again, and so is a bundle in another form
    let count = |more: &[&str]| {
        let report = up.run(0, "refresh", &[&["-o", "b1"][..], more].concat());
        let bundle = report.get("bundle")?;
        Some(bundle["files"].as_array().unwrap().len())
    };
    let smaller = ["--volume-size", "24KiB"];
    assert!(count(&smaller) > Some(files.len()));
    assert_eq!(count(&[]), Some(1));
    assert_eq!(count(&[]), None);
    assert!(count(&smaller) > Some(files.len()));
    assert_eq!(count(&smaller), None);
}

#[test]
fn the_html_report_of_a_refresh_has_all_sections() {
    let up = upstream();
    up.run(0, "refresh", &["-o", "b1"]);
    up.put("a", "1.0.1", 9);
    up.put("c", "v1", 10);
    up.place.ok(&up.args(
        "refresh",
        &["-o", "b2", "--since", "b1", "--report", "page.html"],
    ));
    let page = up.place.read("page.html");
    sound(&page);
    for part in [
        "<title>landfall refresh: ",
        ">Newer versions</h2>",
        ">Changes</h2>",
        ">Notices about upstream</h2>",
        "its digest changed from",
        ">Hosts contacted</h2>",
        ">Timings</h2>",
        "needs",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn an_update_reports_changed_endpoints_like_a_refresh() {
    let up = upstream();
    up.run(0, "lock", &[]);
    for (verb, host) in [("update", "a.test"), ("refresh", "b.test")] {
        up.manifest(&format!(
            "images: [REG/c:v1]\nendpoints: [{{host: {host}, port: 443, why: test}}]\n"
        ));
        let more: &[&str] = if verb == "refresh" {
            &["-o", "b1"]
        } else {
            &[]
        };
        let report = up.run(0, verb, more);
        let changes = report["endpointChanges"].as_array().unwrap();
        let added = changes.iter().find(|one| one["change"] == "added");
        assert_eq!(added.unwrap()["host"], host, "{report:#}");
    }
}
