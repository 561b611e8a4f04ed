//! `landfall render helm-values` on real charts. `LANDFALL_HELM_CHARTS=DIR` names a folder of
//! charts that have their dependencies in `charts/`. helm renders each chart without and with the
//! overlay.

use crate::support::Place;
use crate::support::helm::{command, helm, real_charts};
use crate::support::images::lock_of;
use crate::support::library::ImageRef;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const TO: &str = "172.20.0.2:5000";

#[test]
fn helm_renders_real_charts_with_the_overlay() {
    let Some(charts) = real_charts() else { return };
    let Some(helm) = helm() else { return };
    let mut before = 0;
    let mut stay = 0;
    let mut unlisted = Vec::new();
    let mut wrong = Vec::new();
    for chart in &charts {
        let name = chart.file_name().unwrap().to_string_lossy();
        let old = match template(helm, chart, None) {
            Ok(text) => references(&text),
            Err(why) => {
                println!("{name}: helm does not render it: {why}");
                continue;
            }
        };
        let (report, new) = with_overlay(helm, chart, &old);
        let new = new.unwrap_or_else(|why| panic!("{name}: helm refuses the overlay: {why}"));
        let (there, left): (Vec<&String>, Vec<&String>) =
            new.iter().partition(|one| one.starts_with(TO));
        let goals: BTreeSet<String> = old.iter().map(|one| at_site(one)).collect();
        wrong.extend(
            there
                .iter()
                .filter(|one| !goals.contains(&at_site(one)))
                .map(|one| format!("{name}: {one}")),
        );
        let listed = listed(&report);
        let is_listed = |one: &String| listed.contains(&one.parse::<ImageRef>().unwrap().name());
        unlisted.extend(
            left.iter()
                .filter(|one| !is_listed(one))
                .map(|one| format!("{name}: {one}")),
        );
        if !left.is_empty() {
            println!("{name}: {} of {} stay: {left:?}", left.len(), old.len());
        }
        (before, stay) = (before + old.len(), stay + left.len());
    }
    println!(
        "{} charts: {stay} of {before} references stay at other registries",
        charts.len()
    );
    assert!(before > 0, "helm renders no reference");
    assert_eq!(
        (wrong, unlisted),
        (Vec::<String>::new(), Vec::<String>::new()),
        "references with a wrong name; unchanged references that no report lists"
    );
}

/// The output of helm for a chart.
fn template(helm: &Path, chart: &Path, values: Option<&Path>) -> Result<String, String> {
    let place = Place::new();
    let mut template = command(&place, helm);
    template
        .args(["template", "release"])
        .arg(chart)
        .args(["--kube-version", "1.34.0"]);
    template.args(
        values
            .into_iter()
            .flat_map(|values| [Path::new("--values"), values]),
    );
    let output = template.output().unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Writes the overlay for a chart, with a lock that has `images`. Returns the report, and the
/// references that helm renders with the overlay.
fn with_overlay(
    helm: &Path,
    chart: &Path,
    images: &BTreeSet<String>,
) -> (Value, Result<BTreeSet<String>, String>) {
    let place = Place::new();
    let images: Vec<&str> = images.iter().map(String::as_str).collect();
    place.write("landfall.lock", lock_of(&images));
    let mut command = place.command();
    command.args(["render", "helm-values"]).arg(chart);
    let run = command
        .args(["--to", TO, "-o", "overlay.yaml", "--output", "json"])
        .output()
        .unwrap();
    let report = serde_json::from_slice(&run.stdout).unwrap();
    let overlay = place.path("overlay.yaml");
    let text = template(
        helm,
        chart,
        Some(&overlay)
            .filter(|path| path.is_file())
            .map(PathBuf::as_path),
    );
    (report, text.map(|text| references(&text)))
}

/// The images in rendered manifests: full names with a tag or digest, and the values of `image`.
fn references(text: &str) -> BTreeSet<String> {
    let is_crd = |document: &&str| document.contains("\nkind: CustomResourceDefinition\n");
    let lines = text
        .split("\n---")
        .filter(|document| !is_crd(document))
        .flat_map(str::lines);
    let lines = lines.map(str::trim).filter(|line| !line.starts_with('#'));
    lines
        .flat_map(|line| {
            let image = line
                .trim_start_matches("- ")
                .strip_prefix("image:")
                .map(str::trim);
            let words = line.split(|c: char| c.is_whitespace() || "\"'`,;()[]{}".contains(c));
            words.filter_map(move |word| {
                let word = word.rsplit('=').next()?.trim_end_matches(['.', ':']);
                // a word that has neither `/` nor `:` may be only a part of a reference
                let is_image = word.contains(['/', ':'])
                    && image.is_some_and(|image| image.trim_matches(['"', '\'']) == word);
                let host = word.split_once('/').map(|(host, _)| host);
                let has_host = host.is_some_and(|host| host.contains('.') && !word.contains("://"));
                let reference: ImageRef = word.parse().ok()?;
                let full = has_host && reference.is_pinned() && !word.starts_with('.');
                let name = reference.to_string();
                (full || is_image).then(|| {
                    if reference.is_pinned() {
                        name
                    } else {
                        format!("{name}:latest")
                    }
                })
            })
        })
        .collect()
}

/// The name of an image without its host, which is its name below the private registry.
fn at_site(name: &str) -> String {
    name.split_once('/').unwrap().1.to_owned()
}

/// The repositories that a report lists as missing or undecided.
fn listed(report: &Value) -> BTreeSet<String> {
    let lists = ["missing", "undecided"]
        .iter()
        .filter_map(|list| report[list].as_array())
        .flatten();
    let references = lists.filter_map(|one| one["reference"].as_str()?.parse::<ImageRef>().ok());
    references.map(|reference| reference.name()).collect()
}
