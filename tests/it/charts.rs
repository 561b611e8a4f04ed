//! Charts: from registries and HTTP repositories to a lock, a bundle, a registry and a repository
//! again.

use crate::support::charts::{Chart, HELM_CONFIG, Signer, Upstream, failure_reasons};
use crate::support::faults::{Content, Fault, FaultKind, Faults, RequestKind};
use crate::support::http::{ACCEPT, request};
use crate::support::images::sha256;
use crate::support::peers::own_registry;
use crate::support::{landfall_serve, need};
use serde_json::{Value, json};

#[test]
fn charts_from_repositories_and_registries_are_locked_packed_and_pushed() {
    let up = Upstream::new();
    let place = &up.place;
    let app = Chart::new(
        "app",
        "1.2.3+b",
        "description: \"a: b\"\n",
        &[("values.yaml", "a: 1\n")],
    );
    let app = Chart {
        provenance: Some(b"signed\n".to_vec()),
        ..app
    };
    up.repository(std::slice::from_ref(&app));
    let more = Chart::new("more", "2.0.0", "", &[("values.yaml", "b: 1\n")]);
    let more = Chart {
        provenance: Some(b"signed too\n".to_vec()),
        ..more
    };
    let manifest = more.push(&up.images, &up.registry.address, "team/charts/more");
    let oci = format!("oci://{}/team/charts/more:2.0.0", up.registry.address);
    up.manifest(
        &json!([oci, {"repo": up.repo(), "name": "app", "version": "1.2.3+b"}]),
        "",
    );
    up.lock(0, &[]);
    let lock = place.read("landfall.lock");
    let name = format!("helm+{}/app:1.2.3+b", up.repo());
    assert!(
        lock.contains(&format!("- name: {name}\n  digest: {}\n", app.digest())),
        "{lock}"
    );
    assert!(
        lock.contains(&format!(
            "- name: {oci}\n  digest: {}\n",
            manifest["digest"].as_str().unwrap()
        )),
        "{lock}"
    );
    assert!(
        lock.contains("\n  provenance: {url: ") && lock.contains("\n  appVersion: \"9.1\"\n"),
        "{lock}"
    );

    // unchanged entries send no request, and `--refresh` finds nothing new
    let before = up.requests();
    up.lock(0, &[]);
    assert_eq!(up.requests(), before);
    let refreshed = up.lock(0, &["--refresh"]);
    assert_eq!(
        (
            refreshed["totals"]["present"].as_u64(),
            place.read("landfall.lock")
        ),
        (Some(2), lock)
    );

    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    place.ok(&["verify", "b", "--lock", "landfall.lock"]);
    let listed = place.ok(&["ls", "b"]);
    assert!(
        listed.contains("2 charts") && listed.contains(&name),
        "{listed}"
    );

    // a registry receives the charts in Helm's format
    let there = own_registry();
    place.ok(&["push", "b", "--to", &there.address]);
    let accept = [("Accept", ACCEPT)];
    let got = |at: &str| request("GET", &there.address, at, &accept, b"");
    let wrapped = got("/v2/charts/app/manifests/1.2.3_b").json();
    assert_eq!(wrapped["config"]["mediaType"], HELM_CONFIG);
    assert_eq!(wrapped["layers"][0]["digest"], app.digest());
    let config = got(&format!(
        "/v2/charts/app/blobs/{}",
        wrapped["config"]["digest"].as_str().unwrap()
    ))
    .json();
    assert_eq!(
        config,
        json!({"name": "app", "version": "1.2.3+b", "apiVersion": "v2", "appVersion": "9.1"})
    );
    let carried = got("/v2/team/charts/more/manifests/2.0.0").body;
    assert_eq!(
        carried,
        up.images.bytes(manifest["digest"].as_str().unwrap()),
        "byte for byte"
    );
    let again = place.json(0, &["push", "b", "--to", &there.address]);
    assert_eq!(again["totals"]["present"], 2, "{again}");

    // the served chart repository has the charts, too
    let server = landfall_serve(place, &["b"]);
    let get = |at: &str| request("GET", &server.address, at, &[], b"");
    let index = get("/charts/index.yaml").text();
    let read: Value = parsed_index(&index);
    let entry = &read["entries"]["app"][0];
    assert_eq!(
        (&entry["urls"][0], &entry["description"]),
        (&json!("app-1.2.3+b.tgz"), &json!("a: b")),
        "{index}"
    );
    assert_eq!(
        format!("sha256:{}", entry["digest"].as_str().unwrap()),
        app.digest()
    );
    for (file, content) in [
        ("app-1.2.3+b.tgz", &app.archive),
        ("app-1.2.3%2Bb.tgz.prov", app.provenance.as_ref().unwrap()),
        ("more-2.0.0.tgz", &more.archive),
        ("more-2.0.0.tgz.prov", more.provenance.as_ref().unwrap()),
    ] {
        assert_eq!(&get(&format!("/charts/{file}")).body, content, "{file}");
    }
    assert_eq!(get("/charts/none-1.0.0.tgz").status, 404);
    place.ok(&["export", "charts", "--bundle", "b", "-o", "out"]);
    assert_eq!(place.read("out/index.yaml"), index);
    assert_eq!(place.read_bytes("out/app-1.2.3+b.tgz"), app.archive);
    assert_eq!(place.read_bytes("out/more-2.0.0.tgz.prov"), b"signed too\n");

    // the entries of other archives stay, and those of earlier exports if the content is gone
    place.write("out/old-1.0.0.tgz", "old");
    let old = r#"{"name":"old","urls":["old-1.0.0.tgz"],"version":"1.0.0"}"#;
    let both = format!("{index}  \"old\":\n  - {old}\n");
    place.write("out/index.yaml", &both);
    place.write("empty.lock", "version: 1\n");
    place.ok(&["pull", "empty.lock", "--store", "none"]);
    for content in [["--bundle", "b"], ["--store", "none"]] {
        place.ok(&[&["export", "charts", "-o", "out"][..], &content].concat());
        assert_eq!(place.read("out/index.yaml"), both, "{content:?}");
    }
}

/// Parses the served index: after two lines, each name and each entry is one line of JSON.
fn parsed_index(index: &str) -> Value {
    let mut entries = serde_json::Map::new();
    let mut name = String::new();
    for line in index.lines().skip(2) {
        match line.trim_start().strip_prefix("- ") {
            Some(entry) => {
                let entry: Value = serde_json::from_str(entry).unwrap();
                let all = entries.entry(name.clone()).or_insert_with(|| json!([]));
                all.as_array_mut().unwrap().push(entry);
            }
            None => name = serde_json::from_str(line.trim().trim_end_matches(':')).unwrap(),
        }
    }
    json!({"entries": entries})
}

#[test]
fn odd_values_of_an_index_do_not_hide_a_chart() {
    let up = Upstream::new();
    let app = Chart::new("app", "1.0.0", "", &[]);
    up.manifest(
        &json!([{"repo": up.repo(), "name": "app", "version": "1.0.0"}]),
        "",
    );
    up.repository(std::slice::from_ref(&app));
    let good = up.place.read("up/charts/index.yaml");
    let url = "    - app-1.0.0.tgz\n";
    for (from, to) in [
        // the first URLs are not those of an archive, or do not have it
        (url, format!("    - file:///x\n    - gone.tgz\n{url}")),
        // other content, another type, and a list in one line
        (url, format!("    - index.yaml\n    - 7\n{url}")),
        (url, "      app-1.0.0.tgz\n".to_owned()),
        // helm compares no digest
        ("digest: ", "digest: 00".to_owned()),
        ("digest: ", "digest: []\n    other: ".to_owned()),
        // another version and another chart are not YAML
        (
            "  app:\n",
            "  app:\n  - version: 0.1.0\n    home: a: b\n".to_owned(),
        ),
        ("  app:\n", "  odd: {{\n  app:\n".to_owned()),
    ] {
        assert!(good.contains(from), "{good}");
        up.place
            .write("up/charts/index.yaml", good.replace(from, &to));
        let report = up.lock(0, &["--refresh", "--lock", "one.lock"]);
        let lock = up.place.read("one.lock");
        assert!(lock.contains(&app.digest()), "{to}: {report}");
    }
    let page = "<!DOCTYPE html><html><head><title>Log in</title></head></html>";
    up.place.write("up/charts/index.yaml", page);
    let why = failure_reasons(&up.lock(1, &["--lock", "two.lock"]));
    assert!(
        why.contains("an HTML page, titled 'Log in', was sent instead of"),
        "{why}"
    );
}

/// Public repositories list wrong digests: helm does not compare them.
#[test]
fn a_digest_in_the_manifest_overrides_a_wrong_one_in_the_index() {
    let up = Upstream::new();
    let app = Chart::new("app", "1.0.0", "", &[]);
    let published_again = Chart::new("app", "1.0.0", "", &[("values.yaml", "new: 1\n")]);
    up.repository(std::slice::from_ref(&app));
    up.place
        .write("up/charts/app-1.0.0.tgz", &published_again.archive);
    let pinned = |digest: &str| {
        let chart =
            json!([{"repo": up.repo(), "name": "app", "version": "1.0.0", "digest": digest}]);
        up.manifest(&chart, "");
    };
    pinned(&published_again.digest());
    let report = up.lock(0, &[]);
    let note = format!(
        "its repository lists {} instead of its digest",
        app.digest()
    );
    assert_eq!(report["items"][0]["reason"], note.as_str(), "{report:#}");
    let lock = up.place.read("landfall.lock");
    let lines = [
        format!("  pin: {}\n", published_again.digest()),
        format!("  digest: {}\n", published_again.digest()),
        format!("  listed: {}\n", app.digest()),
    ];
    assert!(lines.iter().all(|line| lock.contains(line)), "{lock}");
    // the pin is kept, also by a refresh, and pull and verify compare with it
    let again = up.lock(0, &["--refresh"]);
    assert_eq!(up.place.read("landfall.lock"), lock, "{again:#}");
    up.place.ok(&["pull", "--store", "store"]);
    up.place.ok(&["pack", "--store", "store", "-o", "b"]);
    up.place.ok(&["verify", "b"]);

    // a digest that is neither of the two is refused
    pinned(&Chart::new("app", "2.0.0", "", &[]).digest());
    let why = failure_reasons(&up.lock(1, &["--lock", "other.lock"]));
    assert!(
        why.contains("the manifest requires another digest")
            && why.contains(&published_again.digest()),
        "{why}"
    );
}

#[test]
fn a_hostile_repository_is_refused_and_a_changed_archive_is_reported() {
    let up = Upstream::new();
    let app = Chart::new("app", "1.0.0", "", &[]);
    let chart = json!([{"repo": up.repo(), "name": "app", "version": "1.0.0"}]);
    up.manifest(&chart, "");
    let index = |from: &str, to: &str| {
        let text = up.place.read("up/charts/index.yaml").replace(from, to);
        up.place.write("up/charts/index.yaml", text);
    };
    for (from, to, why) in [
        (
            "- app-1.0.0.tgz",
            "- file:///etc/passwd",
            "which is not a valid download URL",
        ),
        (
            "- app-1.0.0.tgz",
            "- https://u:p@h/app.tgz",
            "which is not a valid download URL",
        ),
        (
            "entries:\n",
            "entries: [[[[\n",
            "not a valid index of charts",
        ),
        (
            "version: 1.0.0",
            "version: v1.0.0",
            "calls this version v1.0.0",
        ),
        (
            "  app:\n",
            "  other:\n",
            "upstream does not have it: the repository has no chart app",
        ),
    ] {
        up.repository(std::slice::from_ref(&app));
        index(from, to);
        let report = up.lock(1, &[]);
        assert!(failure_reasons(&report).contains(why), "{to}: {report}");
    }
    // an archive that differs from the index, and one that claims another version
    up.repository(std::slice::from_ref(&app));
    let other = Chart::new("app", "9.9.9", "", &[]);
    up.place.write("up/charts/app-1.0.0.tgz", &other.archive);
    let refusal = failure_reasons(&up.lock(1, &[]));
    assert!(
        refusal.contains("names another digest")
            && refusal.contains(&app.digest())
            && refusal.contains(&other.digest())
            && refusal.contains("add its digest to the chart"),
        "{refusal}"
    );
    up.repository(&[Chart {
        version: "1.0.0".into(),
        ..other.clone()
    }]);
    assert!(failure_reasons(&up.lock(1, &[])).contains("says that it is app 9.9.9"));

    up.repository(std::slice::from_ref(&app));
    up.lock(0, &[]);
    let moved = Chart::new("app", "1.0.0", "", &[("values.yaml", "new: 1\n")]);
    up.repository(std::slice::from_ref(&moved));
    up.lock(0, &[]);
    assert!(
        up.place.read("landfall.lock").contains(&app.digest()),
        "the pin is kept"
    );
    assert_eq!(up.lock(4, &["--check"])["changes"][0]["kind"], "chart");
    up.lock(0, &["--refresh"]);
    assert!(up.place.read("landfall.lock").contains(&moved.digest()));
}

#[test]
fn a_provenance_that_is_published_later_is_locked_by_refresh() {
    let up = Upstream::new();
    let app = Chart::new("app", "1.0.0", "", &[]);
    up.manifest(
        &json!([{"repo": up.repo(), "name": "app", "version": "1.0.0"}]),
        "",
    );
    up.repository(std::slice::from_ref(&app));
    up.lock(0, &[]);
    for provenance in ["signed\n", "signed again\n"] {
        let signed = Chart {
            provenance: Some(provenance.into()),
            ..app.clone()
        };
        up.repository(std::slice::from_ref(&signed));
        up.lock(0, &["--refresh"]);
        let lock = up.place.read("landfall.lock");
        assert!(lock.contains(&sha256(provenance.as_bytes())), "{lock}");
    }
}

#[test]
fn provenance_is_checked_with_the_key_that_the_manifest_names() {
    if !need(&["gpg"]) {
        return;
    }
    let up = Upstream::new();
    let place = &up.place;
    let maker = Signer::new(place, "maker");
    let other = Signer::new(place, "other");
    place.write("keys/maker.asc", maker.public());
    place.write("keys/other.gpg", other.keyring());
    let app = Chart::new("app", "1.0.0", "", &[]).signed(&maker);
    let repo = up.repo();
    let registry = &up.registry.address;
    let oci = format!("oci://{registry}/charts/app:1.0.0");
    let demand = |key: &str| {
        let chart = json!([{"repo": repo, "name": "app", "version": "1.0.0", "key": key}, {"ref": oci, "key": key}]);
        up.manifest(&chart, "");
    };
    let publish = |chart: &Chart| {
        up.repository(std::slice::from_ref(chart));
        chart.push(&up.images, registry, "charts/app");
    };
    publish(&app);
    demand("keys/other.gpg");
    let report = up.lock(1, &[]);
    assert_eq!(
        failure_reasons(&report)
            .matches("another key made it, or the content was changed")
            .count(),
        2,
        "{report}"
    );
    demand("keys/maker.asc");
    up.lock(0, &[]);
    let lock = place.read("landfall.lock");
    assert_eq!(lock.matches("\n  signedBy: ").count(), 2, "{lock}");
    up.lock(0, &[]);
    assert_eq!(place.read("landfall.lock"), lock);

    // if the key in the manifest changes, the provenance is checked again
    demand("keys/other.gpg");
    assert!(failure_reasons(&up.lock(1, &[])).contains("another key made it"));

    std::fs::remove_file(place.path("landfall.lock")).unwrap();
    demand("keys/maker.asc");
    let changed = Chart {
        provenance: app.provenance.clone(),
        ..Chart::new("app", "1.0.0", "", &[("x", "y")])
    };
    publish(&changed);
    let report = up.lock(1, &[]);
    assert_eq!(
        failure_reasons(&report)
            .matches("signed for another archive")
            .count(),
        2,
        "{report}"
    );
    publish(&Chart {
        provenance: None,
        ..app
    });
    std::fs::remove_file(place.path("up/charts/app-1.0.0.tgz.prov")).unwrap();
    assert_eq!(
        failure_reasons(&up.lock(1, &[]))
            .matches("the chart has no provenance")
            .count(),
        2
    );
    demand("keys/none.asc");
    let wrong = up.lock(2, &[])["error"]["message"].to_string();
    assert!(
        wrong.contains("m.yaml:") && wrong.contains("cannot read keys/none.asc"),
        "{wrong}"
    );
}

#[test]
fn versions_of_a_dependency_are_found_in_a_long_list_of_tags() {
    let up = Upstream::new();
    let registry = Faults::new(Content::default());
    let address = &registry.address;
    registry.content(|content| {
        let image = content.image("charts/common", "linux/amd64", &[(1, 100)]);
        content.tag("charts/common", "image", &image);
    });
    for minor in 0..9 {
        let common = Chart::new("common", &format!("1.{minor}.0"), "", &[]);
        common.push(&up.images, address, "charts/common");
    }
    registry.set_faults([Fault::always(RequestKind::Tags, FaultKind::Pages(2))]);
    let dependencies = format!(
        "dependencies:\n- {{name: common, version: ^1, repository: \"oci://{address}/charts\"}}\n"
    );
    up.repository(&[Chart::new("app", "1.0.0", &dependencies, &[])]);
    // for the signatures of one image, only the first pages are worth reading
    up.manifest(
        &json!([{"repo": up.repo(), "name": "app", "version": "1.0.0"}]),
        &format!("images: [\"{address}/charts/common:image\"]"),
    );
    up.lock(0, &["--plain-http", address]);
    let lock = up.place.read("landfall.lock");
    let newest = format!("\n- name: oci://{address}/charts/common:1.8.0\n");
    assert!(lock.contains(&newest), "{lock}");
}

#[test]
fn a_dependency_with_one_version_needs_no_list_of_tags() {
    let up = Upstream::new();
    let registry = Faults::new(Content::default());
    let address = &registry.address;
    let common = Chart::new("common", "1.2.0+a", "", &[]);
    common.push(&up.images, address, "charts/common");
    let app = |version: &str| {
        let dependencies = format!(
            "dependencies:\n- {{name: common, version: {version}, repository: \"oci://{address}/charts\"}}\n"
        );
        up.repository(&[Chart::new("app", "1.0.0", &dependencies, &[])]);
        up.manifest(
            &json!([{"repo": up.repo(), "name": "app", "version": "1.0.0"}]),
            "images: []",
        );
    };
    for status in [403, 404, 405] {
        registry.set_faults([Fault::always(RequestKind::Tags, FaultKind::Status(status))]);
        app("1.2.0+a");
        up.lock(0, &["--plain-http", address]);
        let lock = up.place.read("landfall.lock");
        let locked = format!("\n- name: oci://{address}/charts/common:1.2.0+a\n");
        assert!(lock.contains(&locked), "{status}: {lock}");
        std::fs::remove_file(up.place.path("landfall.lock")).unwrap();
        for (version, exit) in [("^1", 1), ("1.3.0", 3)] {
            app(version);
            let report = up.lock(exit, &["--plain-http", address]);
            let reasons = failure_reasons(&report);
            assert!(reasons.contains("charts/common"), "{status}: {reasons}");
            let _ = std::fs::remove_file(up.place.path("landfall.lock"));
        }
    }
}

#[test]
fn dependencies_that_the_archive_lacks_are_locked_too() {
    let up = Upstream::new();
    let registry = &up.registry.address;
    let dependencies = format!(
        "dependencies:\n- {{name: redis, version: ~1.2, repository: \"{}\"}}\n- {{name: common, version: 2.x.x, \
         repository: \"oci://{registry}/charts\"}}\n- {{name: inside, version: 1.x}}\n",
        up.repo()
    );
    let inside = [(
        "charts/inside/Chart.yaml",
        "apiVersion: v2\nname: inside\nversion: 1.0.0\n",
    )];
    let app = Chart::new("app", "1.0.0", &dependencies, &inside);
    let redis = ["1.2.0", "1.2.5", "1.3.0"].map(|version| Chart::new("redis", version, "", &[]));
    up.repository(&[&[app][..], &redis].concat());
    for version in ["1.9.0", "2.0.0", "2.4.0-rc.1", "2.3.1"] {
        Chart::new("common", version, "", &[]).push(&up.images, registry, "charts/common");
    }
    up.manifest(
        &json!([{"repo": up.repo(), "name": "app", "version": "1.0.0"}]),
        "",
    );
    up.lock(0, &[]);
    let lock = up.place.read("landfall.lock");
    let redis = format!("helm+{}/redis:1.2.5", up.repo());
    let common = format!("oci://{registry}/charts/common:2.3.1");
    for name in [redis, common] {
        assert!(
            lock.contains(&format!("\n- name: {name}\n"))
                && lock.contains(&format!("\n  - {name}\n")),
            "{lock}"
        );
    }
    assert_eq!(lock.matches("\n- name: ").count(), 3, "{lock}");
    let before = up.requests();
    up.lock(0, &[]);
    assert_eq!(
        (up.requests(), up.place.read("landfall.lock")),
        (before, lock)
    );

    let lost = "dependencies: [{name: gone, version: 1.x, repository: \"@mine\"}]\n";
    up.repository(&[Chart::new("app", "2.0.0", lost, &[])]);
    up.manifest(
        &json!([{"repo": up.repo(), "name": "app", "version": "2.0.0"}]),
        "",
    );
    let report = up.lock(1, &[]);
    assert!(
        failure_reasons(&report).contains("its dependency gone 1.x of '@mine'"),
        "{report}"
    );
}

#[test]
fn images_of_a_chart_are_locked_with_their_positions() {
    let up = Upstream::new();
    let registry = up.registry.address.clone();
    for (repository, tag) in [
        ("x/said", "v1"),
        ("x/main", "v9.1"),
        ("x/sub", "3"),
        ("x/crd", "4"),
        ("x/arg", "5"),
        ("x/on", "6"),
        ("x/out", "7"),
    ] {
        up.image(repository, tag);
    }
    let printed = format!(
        "annotations:\n  artifacthub.io/images: |\n    - name: said\n      image: {registry}/x/said:v1\n"
    );
    let dependencies = "dependencies:\n- {name: sub, version: 1.0.0, condition: sub.enabled}\n- {name: idle, version: 1.0.0, condition: idle.enabled}\n";
    let values = format!(
        "image: {{registry: \"{registry}\", repository: x/main, tag: \"\"}}\nsub: {{enabled: true}}\nidle: {{enabled: false}}\n\
         extra: {{image: {{repository: \"{registry}/x/wrong\", tag: 1}}}}\nleft: {{image: \"{registry}/x/out:7\"}}\n"
    );
    let sub = format!("image: \"{registry}/x/sub:3\"\n");
    let off = format!("image: \"{registry}/x/off:1\"\n");
    let template = format!(
        "image: \"{{{{ .Values.image.repository }}}}:{{{{ .Values.image.tag | default (printf \"v%s\" .Chart.AppVersion) }}}}\"\n\
         args: [\"--helper-image={registry}/x/arg:5\"]\nother:\n  image: \"{{{{ .Values.nowhere.image }}}}\"\n"
    );
    let crd = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  default: \"{registry}/x/crd:4\"\n"
    );
    let files = [
        ("values.yaml", &*values),
        ("templates/d.yaml", &*template),
        ("crds/c.yaml", &*crd),
        (
            "charts/sub/Chart.yaml",
            "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
        ),
        ("charts/sub/values.yaml", &*sub),
        (
            "charts/idle/Chart.yaml",
            "apiVersion: v2\nname: idle\nversion: 1.0.0\n",
        ),
        ("charts/idle/values.yaml", &*off),
    ];
    up.repository(&[Chart::new(
        "app",
        "1.0.0",
        &format!("{printed}{dependencies}"),
        &files,
    )]);
    let mine = format!("extra: {{image: {{repository: \"{registry}/x/on\", tag: \"6\"}}}}\n");
    up.place.write("mine.yaml", mine);
    let chart = json!([{"repo": up.repo(), "name": "app", "version": "1.0.0", "images": "discover", "values": ["mine.yaml"]}]);
    up.manifest(&chart, &format!("exclude: [\"{registry}/x/out\"]"));
    let report = up.lock(0, &[]);
    let lock = up.place.read("landfall.lock");
    for (name, at) in [
        ("x/said:v1", "app/Chart.yaml"),
        ("x/main:v9.1", "app/values.yaml:1:"),
        ("x/sub:3", "app/charts/sub/values.yaml:1:"),
        ("x/crd:4", "app/crds/c.yaml:4:"),
        ("x/arg:5", "app/templates/d.yaml:2:"),
        ("x/on:6", "app/values.yaml:4:"),
    ] {
        let found = lock
            .lines()
            .find(|line| line.contains(&format!("{{name: \"{registry}/{name}\", at: ")));
        assert!(
            found.is_some_and(|line| line.contains(at)),
            "{name} at {at}: {found:?}\n{lock}"
        );
        assert!(
            lock.contains(&format!("\n- name: \"{registry}/{name}\"\n")),
            "{name}\n{lock}"
        );
    }
    assert_eq!(
        lock.matches("\n- name: ").count(),
        7,
        "six images and the chart\n{lock}"
    );
    assert!(
        lock.contains("{reference: \"{{ .Values.nowhere.image }}\", at: app/templates/d.yaml:4:"),
        "{lock}"
    );
    assert_eq!(
        report["open"][0]["reference"], "{{ .Values.nowhere.image }}",
        "{report}"
    );
    let before = up.requests();
    up.lock(0, &[]);
    assert_eq!(
        (up.requests(), up.place.read("landfall.lock")),
        (before, lock)
    );
}

#[test]
fn a_locked_chart_can_be_audited_and_rewritten_by_its_name() {
    let up = Upstream::new();
    let place = &up.place;
    let registry = &up.registry.address;
    let image = up.image("x/app", "v1");
    let (repository, tag) = image.rsplit_once(':').unwrap();
    let values = format!("image: {{repository: \"{repository}\", tag: {tag}}}\n");
    let app = Chart::new("app", "1.0.0", "", &[("values.yaml", &*values)]);
    up.repository(std::slice::from_ref(&app));
    let more = [("values.yaml", "image: quay.io/not/locked:v1\n")];
    Chart::new("more", "2.0.0", "", &more).push(&up.images, registry, "charts/more");
    let repo = up.repo();
    let oci = format!("oci://{registry}/charts");
    let charts = json!([{"repo": repo, "name": "app", "version": "1.0.0", "images": "discover"}, format!("{oci}/more:2.0.0")]);
    up.manifest(&charts, "");
    up.lock(0, &[]);
    place.ok(&["pull"]);

    let argo = format!("{registry}/charts");
    let sources = [
        (
            "argo",
            json!({"source": {"repoURL": repo, "chart": "app", "targetRevision": "1.0.0"}}),
            "held",
        ),
        (
            "argo-oci",
            json!({"sources": [{"repoURL": argo, "chart": "more", "targetRevision": "2.0.0"}]}),
            "held",
        ),
        (
            "argo-other",
            json!({"source": {"repoURL": repo, "chart": "app", "targetRevision": "1.0.1"}}),
            "missing",
        ),
        (
            "argo-range",
            json!({"source": {"repoURL": repo, "chart": "app", "targetRevision": "1.x"}}),
            "undecided",
        ),
        (
            "flux",
            json!({"chart": {"spec": {"chart": "app", "version": "1.0.0", "sourceRef": {"name": "r"}}}}),
            "held",
        ),
        (
            "flux-oci",
            json!({"url": format!("{oci}/more"), "ref": {"tag": "2.0.0"}}),
            "held",
        ),
        (
            "k3s",
            json!({"repo": repo, "chart": "gone", "version": "1.0.0"}),
            "missing",
        ),
    ];
    for (name, spec, status) in sources {
        place.write(
            "app.yaml",
            json!({"kind": "Application", "spec": spec}).to_string(),
        );
        let exit = if status == "missing" { 4 } else { 0 };
        let report = place.json(exit, &["audit", "app.yaml", "--lock", "landfall.lock"]);
        let found: Vec<&str> = ["held", "missing", "undecided"]
            .into_iter()
            .filter(|status| {
                report[*status]
                    .as_array()
                    .is_some_and(|found| !found.is_empty())
            })
            .collect();
        assert_eq!(found, [status], "{name}: {report}");
    }

    let overlay = place.ok(&[
        "render",
        "helm-values",
        "app",
        "--to",
        "172.20.0.2:5000",
        "--lock",
        "landfall.lock",
    ]);
    assert!(
        overlay.contains("repository: 172.20.0.2:5000/x/app"),
        "{overlay}"
    );
    place.ok(&[
        "rewrite",
        "app:1.0.0",
        "--to",
        "172.20.0.2:5000",
        "--lock",
        "landfall.lock",
        "-o",
        "new",
    ]);
    let new = std::fs::read(place.path("new/app-1.0.0.tgz")).unwrap();
    let text = String::from_utf8(crate::support::run(place.clean("tar").args([
        "-xzOf",
        "new/app-1.0.0.tgz",
        "app/values.yaml",
    ])));
    assert!(new != app.archive && text.unwrap().contains("172.20.0.2:5000/x/app"));
    for (name, help) in [
        ("aapp", "did you mean the chart app?"),
        ("zzzz", "the lock has charts such as app"),
    ] {
        let unknown = place
            .landfall()
            .args(["rewrite", name, "--to", "172.20.0.2:5000", "--lock"])
            .args(["landfall.lock", "-o", "new"])
            .assert()
            .code(2);
        let message = String::from_utf8_lossy(&unknown.get_output().stderr).into_owned();
        assert!(
            message.contains("the lock has no chart of this name") && message.contains(help),
            "{message}"
        );
    }
    // the audit command in the report of `rewrite` audits the same chart
    let to = ["--to", "172.20.0.2:5000", "--lock", "landfall.lock"];
    let report = place.json(
        0,
        &[&["rewrite", "more:2.0.0", "--check"], &to[..]].concat(),
    );
    let audit = report["unknown"]["audit"].as_str().unwrap();
    assert_eq!(
        audit,
        "landfall audit more:2.0.0 --lock landfall.lock --to 172.20.0.2:5000"
    );
    let files = report["files"].as_array().unwrap();
    let values = "more:2.0.0/more/values.yaml";
    assert!(files.iter().any(|one| one["file"] == values), "{report}");
    let words: Vec<&str> = audit.split(' ').skip(1).collect();
    let report = place.json(4, &words);
    let missing = &report["missing"][0]["file"];
    assert_eq!(missing, "more:2.0.0/values.yaml", "{report}");
    let refused = place.json(
        2,
        &[
            "rewrite",
            "app",
            "-i",
            "--to",
            "172.20.0.2:5000",
            "--lock",
            "landfall.lock",
        ],
    );
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("cannot be rewritten in place"),
        "{refused}"
    );
}
