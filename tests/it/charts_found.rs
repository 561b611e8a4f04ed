//! Compares the images that `images: discover` finds in real charts with those that helm renders
//! with the default values. `LANDFALL_HELM_CHARTS=DIR` names a folder of charts, each with its
//! dependencies in `charts/`.

use crate::support::charts::{Chart, repository};
use crate::support::helm::{command, helm, real_charts};
use crate::support::library::ImageRef;
use crate::support::peers::file_server;
use crate::support::{Place, run};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn images_in_real_charts_are_found_or_reported_as_open() {
    let Some(charts) = real_charts() else { return };
    let Some(helm) = helm() else { return };
    let mut ran = 0;
    let mut hit = 0;
    let mut found_all = 0;
    let mut count = 0;
    let mut silent = Vec::new();
    for chart in &charts {
        let name = chart.file_name().unwrap().to_string_lossy().into_owned();
        let place = Place::new();
        let Some((truth, packed)) = rendered(&place, helm, chart) else {
            println!("{name}: helm does not render it");
            continue;
        };
        let (found, open) = discovered(&place, packed);
        let hits = truth.intersection(&found).count();
        println!(
            "{name}: {hits} of {} found, {} more, {open} open; lacks {:?}; more {:?}",
            truth.len(),
            found.len() - hits,
            truth.difference(&found).collect::<Vec<_>>(),
            found.difference(&truth).collect::<Vec<_>>()
        );
        if hits < truth.len() && open == 0 {
            silent.push(name);
        }
        (ran, hit, found_all, count) = (
            ran + truth.len(),
            hit + hits,
            found_all + found.len(),
            count + 1,
        );
    }
    println!(
        "{count} charts: {hit} of {ran} images that helm renders are found; landfall found {found_all} in total"
    );
    assert!(ran > 0 && hit * 10 >= ran * 8, "{hit} of {ran}");
    assert!(
        silent.is_empty(),
        "charts with missed images and no open references: {silent:?}"
    );
}

/// The images that helm renders with the default values of the chart, and the packed chart.
fn rendered(place: &Place, helm: &Path, chart: &Path) -> Option<(BTreeSet<String>, Chart)> {
    let mut template = command(place, helm);
    template.args(["template", "x"]).arg(chart).args([
        "--kube-version",
        "1.34.0",
        "--include-crds",
    ]);
    let output = template.output().unwrap();
    output.status.success().then_some(())?;
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text
        .lines()
        .filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("image:"));
    let image = |word: &str| {
        word.trim()
            .trim_matches(['"', '\''])
            .parse::<ImageRef>()
            .ok()
    };
    let truth = words
        .filter_map(image)
        .filter(ImageRef::is_pinned)
        .map(|image| image.to_string());
    let truth: BTreeSet<String> = truth.collect();
    run(command(place, helm)
        .arg("package")
        .arg(chart)
        .args(["-d", "packed"]));
    let archive = std::fs::read_dir(place.path("packed"))
        .unwrap()
        .next()?
        .unwrap();
    let file = archive.file_name().into_string().unwrap();
    let yaml = String::from_utf8(run(command(place, helm)
        .args(["show", "chart"])
        .arg(archive.path())))
    .unwrap();
    let says = |key: &str| {
        yaml.lines()
            .find_map(|line| line.strip_prefix(key))
            .unwrap()
            .trim()
            .trim_matches('"')
    };
    let chart = Chart::new(says("name:"), says("version:"), "", &[]);
    assert_eq!(file, chart.file());
    Some((
        truth,
        Chart {
            archive: std::fs::read(archive.path()).unwrap(),
            ..chart
        },
    ))
}

/// The images that landfall finds, and the number of open references.
fn discovered(place: &Place, chart: Chart) -> (BTreeSet<String>, usize) {
    repository(place, "up/charts", "", std::slice::from_ref(&chart));
    let files = file_server(&place.path("up"));
    let wanted = json!([{"repo": format!("{}/charts", files.url()), "name": chart.name, "version": chart.version,
        "images": "discover"}]);
    // the proxy makes all registries unreachable: only the charts are locked
    place.write(
        "m.yaml",
        format!("apiVersion: landfall/v1\nkind: Manifest\nreferrers: false\ncharts: {wanted}\n"),
    );
    place.write(
        "site.yaml",
        "apiVersion: landfall/v1\nkind: Site\nproxy: {http: \"http://127.0.0.1:9\", https: \"http://127.0.0.1:9\", noProxy: {installation: [127.0.0.0/8]}}\n",
    );
    let _ = place
        .command()
        .args(["lock", "-f", "m.yaml", "--site", "site.yaml"])
        .output()
        .unwrap();
    let lock = place.read("landfall.lock");
    let lines = |start: &'static str| {
        lock.lines()
            .filter_map(move |line| line.strip_prefix(start))
    };
    let found = lines("  - {name: ")
        .filter_map(|line| Some(line.split_once(", at: ")?.0.trim_matches('"').to_owned()));
    (found.collect(), lines("  - {reference: ").count())
}
