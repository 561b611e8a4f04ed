//! Every verb that reads the content of a bundle reads a delta together with its bases.

use crate::support::charts::{Chart, Upstream};
use serde_json::json;

/// A place with the bundle `base`, which has a chart, and a delta that omits the chart. The store
/// is in the folder `full`.
fn delta() -> Upstream {
    let up = Upstream::new();
    let values = [
        ("values.yaml", "image: quay.io/x/app:v1\n"),
        ("templates/pod.yaml", "image: {{ .Values.image }}\n"),
    ];
    let licence = "annotations: {artifacthub.io/license: EUPL-1.2}\n";
    let app = Chart::new("app", "1.2.3", licence, &values);
    let more = |version: &str| Chart::new("more", version, "", &[]);
    up.repository(&[app, more("1.0.0"), more("2.0.0")]);
    let charts = |version: &str| {
        json!([
            {"repo": up.repo(), "name": "app", "version": "1.2.3"},
            {"repo": up.repo(), "name": "more", "version": version},
        ])
    };
    for (version, args) in [
        ("1.0.0", &["-o", "base"][..]),
        ("2.0.0", &["-o", "delta", "--since", "base"]),
    ] {
        up.manifest(&charts(version), "");
        up.place.ok(&["lock", "-f", "m.yaml", "--store", "full"]);
        up.place.ok(&["pull", "--store", "full"]);
        up.place.ok(&[&["pack", "--store", "full"], args].concat());
    }
    std::fs::remove_file(up.place.path("landfall.lock")).unwrap();
    up
}

#[test]
fn verbs_that_read_content_take_the_bases_of_a_delta() {
    let up = delta();
    let place = &up.place;
    place.write("deploy/pod.yaml", "image: quay.io/x/app:v1\n");
    let to = ["--to", "172.20.0.2:5000"];
    let bundle = ["--bundle", "delta"];
    // the lock has no image, so nothing can be rendered: the chart was read
    for (exit, args) in [
        (
            1,
            [&["render", "helm-values", "app"][..], &bundle, &to].concat(),
        ),
        (4, [&["audit", "app"][..], &bundle].concat()),
        (
            0,
            [&["rewrite", "app", "-o", "out"][..], &bundle, &to].concat(),
        ),
        (4, vec!["audit", "app", "delta"]),
    ] {
        let alone = place.command().args(&args).output().unwrap();
        let message = String::from_utf8_lossy(&alone.stderr).into_owned();
        assert_eq!(alone.status.code(), Some(1), "{args:?}: {message}");
        assert!(message.contains("the chart "), "{args:?}: {message}");
        for more in [
            &["--base", "base"][..],
            &["--with-store", "--store", "full"],
        ] {
            let args = [&args, more].concat();
            let run = place.command().args(&args).output().unwrap();
            let message = String::from_utf8_lossy(&run.stderr).into_owned();
            assert_eq!(run.status.code(), Some(exit), "{args:?}: {message}");
            assert!(!message.contains("the chart "), "{args:?}: {message}");
        }
    }
    // the licence is in the chart, which the delta omits
    let sources = |more: &[&str]| {
        let args = [&["export", "sources", "delta", "--store", "none"], more].concat();
        place.ok(&args).contains("EUPL-1.2")
    };
    assert!(!sources(&[]) && sources(&["--base", "base"]));
    for verb in ["sbom", "report"] {
        place.ok(&[verb, "delta", "--base", "base", "-o", "document"]);
        std::fs::remove_file(place.path("document")).unwrap();
    }
    let message = place
        .command()
        .args(["audit", "deploy", "--base", "base"])
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&message.stderr).into_owned();
    assert!(
        message.contains("--base and --with-store are for a delta"),
        "{message}"
    );
}
