//! Charts by their path: folders and `.tgz`.

use super::manifest;
use crate::support::charts::{Chart, Upstream, failure_reasons};
use crate::support::http::get;
use crate::support::images::sha256;
use crate::support::peers::{landfall_serve, own_registry};
use crate::support::{Place, helm, run};
use serde_json::json;
use std::fs;

/// Writes the chart `app` 1.2.3 to `charts/app`, with a template that names `image`.
fn chart_folder(place: &Place, image: &str) {
    let more = "apiVersion: v2\nname: app\nversion: 1.2.3\nappVersion: \"9.1\"\n";
    place.write("charts/app/Chart.yaml", more);
    let template =
        format!("kind: Pod\nspec:\n  containers:\n  - {{name: a, image: \"{image}\"}}\n");
    place.write("charts/app/templates/pod.yaml", template);
    place.write("charts/app/.helmignore", "*.swp\nci/\n");
    place.write("charts/app/values.yaml.swp", "left over");
    place.write("charts/app/ci/values.yaml", "left out");
}

#[test]
fn a_chart_of_a_folder_is_packed_locked_searched_and_delivered() {
    let up = Upstream::new();
    let place = &up.place;
    let image = up.image("team/app", "v1");
    chart_folder(place, &image);
    up.manifest(&json!([{"path": "charts/app", "images": "discover"}]), "");
    up.lock(0, &[]);
    let lock = place.read("landfall.lock");
    assert!(
        lock.contains("- name: helm+local:charts/app:1.2.3\n"),
        "{lock}"
    );
    assert!(
        lock.contains("  url: local:charts/app-1.2.3.tgz\n  path: charts/app\n"),
        "{lock}"
    );
    assert!(lock.contains(&image), "{lock}");
    up.lock(0, &[]);
    assert_eq!(place.read("landfall.lock"), lock);

    // another machine packs the folder next to the lock
    place.ok(&["pull", "--store", "new"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    place.ok(&["verify", "b.tar.zst", "--lock", "landfall.lock"]);
    let registry = own_registry();
    place.ok(&["push", "b.tar.zst", "--to", &registry.address]);
    let server = landfall_serve(place, &["b.tar.zst"]);
    let archive = get(&server.address, "/files/local/charts/app-1.2.3.tgz").body;
    assert!(lock.contains(&sha256(&archive)));
    assert_eq!(get(&server.address, "/charts/app-1.2.3.tgz").body, archive);
    place.write("app.tgz", &archive);
    let listed = run(place.clean("tar").args(["-tzf", "app.tgz"]));
    let listed = String::from_utf8(listed).unwrap();
    assert_eq!(
        listed,
        "app/.helmignore\napp/Chart.yaml\napp/templates/pod.yaml\n"
    );
    place.ok(&["export", "charts", "-o", "out"]);
    let hosts = place.json(0, &["egress"]).to_string();
    assert!(!hosts.contains("local:"), "{hosts}");

    if let Some(helm) = helm::helm() {
        let rendered = run(helm::command(place, helm).args(["template", "r", "app.tgz"]));
        assert!(String::from_utf8(rendered).unwrap().contains(&image));
    }

    place.write("charts/app/values.yaml", "a: 1\n");
    let report = place.json(3, &["pull", "--store", "third"]);
    let why = failure_reasons(&report);
    assert!(
        why.contains("charts/app changed after it was locked"),
        "{why}"
    );
    place.printed(4, &["lock", "-f", "m.yaml", "--check"]);
}

#[test]
fn a_chart_archive_is_carried_byte_for_byte_and_its_dependencies_are_locked() {
    let up = Upstream::new();
    let place = &up.place;
    let sub = Chart::new("sub", "0.1.0", "", &[]);
    up.repository(std::slice::from_ref(&sub));
    let more = format!(
        "dependencies: [{{name: sub, version: 0.x, repository: \"{}\"}}]\n",
        up.repo()
    );
    let app = Chart::new("app", "1.0.0", &more, &[]);
    place.write("app-1.0.0.tgz", &app.archive);
    up.manifest(
        &json!([{"path": "app-1.0.0.tgz", "digest": app.digest()}]),
        "",
    );
    up.lock(0, &[]);
    let lock = place.read("landfall.lock");
    assert!(lock.contains("- name: helm+local:app:1.0.0\n"), "{lock}");
    assert!(
        lock.contains(&format!("  digest: {}\n", app.digest())),
        "{lock}"
    );
    assert!(
        lock.contains(&format!("/sub:0.1.0\n  digest: {}\n", sub.digest())),
        "{lock}"
    );
    place.ok(&["pull", "--store", "new"]);
    up.manifest(
        &json!([{"path": "app-1.0.0.tgz", "digest": sub.digest()}]),
        "",
    );
    let report = up.lock(3, &[]);
    assert!(
        failure_reasons(&report).contains("the manifest requires"),
        "{report}"
    );
}

#[test]
fn equal_chart_paths_and_bad_charts_are_reported() {
    let place = Place::new();
    for name in ["one", "two"] {
        let yaml = format!("apiVersion: v2\nname: app\nversion: 1.2.3\ndescription: {name}\n");
        place.write(&format!("{name}/app/Chart.yaml"), yaml);
        let body = format!("metadata: {{name: {name}}}\ncharts:\n- path: app\n");
        manifest(&place, &format!("{name}/m.yaml"), &body);
    }
    place.ok(&["lock", "-f", "one/m.yaml", "two/m.yaml"]);
    let lock = place.read("landfall.lock");
    for name in ["one", "two"] {
        assert!(
            lock.contains(&format!("- name: helm+local:{name}/app:1.2.3\n")),
            "{lock}"
        );
    }
    place.ok(&["pull", "--store", "new"]);

    place.write("m/none/values.yaml", "");
    place.write(
        "m/range/Chart.yaml",
        "apiVersion: v2\nname: app\nversion: latest\n",
    );
    place.write("m/file", "text");
    for (entry, why) in [
        ("{path: none}", "Chart.yaml"),
        ("{path: range}", "its version must be exact"),
        ("{path: file}", "not a readable .tgz"),
        ("{path: ../one/app}", "not a path below this manifest"),
        (
            "{path: range, repo: \"https://h\"}",
            "one of `ref`, `repo` and `path`",
        ),
        ("{path: range, version: 1.2.3}", "`version` does not apply"),
    ] {
        manifest(&place, "m/m.yaml", &format!("charts:\n- {entry}\n"));
        let text = place.printed(2, &["lock", "-f", "m/m.yaml"]);
        assert!(text.contains(why), "{entry}: {text}");
    }
    place.write(
        "m/bad/Chart.yaml",
        "apiVersion: v2\nname: app\nversion: 1.2.3\n",
    );
    place.write("m/bad/.helmignore", "a/**/b\n");
    manifest(&place, "m/m.yaml", "charts:\n- path: bad\n");
    let text = place.printed(1, &["lock", "-f", "m/m.yaml", "--lock", "new.lock"]);
    assert!(text.contains(".helmignore: the pattern a/**/b"), "{text}");
    fs::write(place.path("m/bad/.helmignore"), "").unwrap();
    let depends = "apiVersion: v2\nname: app\nversion: 1.2.3\n\
                   dependencies: [{name: c, version: 1.x, repository: \"file://../c\"}]\n";
    place.write("m/bad/Chart.yaml", depends);
    let text = place.printed(1, &["lock", "-f", "m/m.yaml", "--lock", "new.lock"]);
    assert!(
        text.contains("its dependency c 1.x") && text.contains("helm dependency"),
        "{text}"
    );
}
