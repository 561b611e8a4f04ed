//! The images of a chart: what it says of them itself, its values as they count, its templates and CRDs as texts; or what
//! helm renders of it.

use super::finding::{Coverage, FileFinding, Finding};
use super::inventory::Inventory;
use super::template_defaults::fill_template_defaults;
use super::text::audit;
use super::tree::{audit_text, in_chart};
use crate::model::{ImageRef, names_host};
use crate::rewrite::chart::Chart;
use serde_yaml::Mapping;
use std::path::Path;

/// Folders of a chart whose documents are for whoever works on it.
const NOT_INSTALLED: [&str; 5] = ["/ci/", "/tests/", "/examples/", "/docs/", "/hack/"];

/// What `chart` names with the values `user`. `rendered` is what helm makes of it: then its values and templates are not
/// read, as they are in that.
///
/// # Errors
/// When its values cannot be written as YAML.
pub(crate) fn chart_images(
    mut chart: Chart,
    user: &Mapping,
    rendered: Option<&str>,
    inventory: &Inventory<'_>,
) -> Result<Vec<FileFinding>, serde_yaml::Error> {
    chart.take_tags_from_templates();
    let mut values = chart.effective(user);
    let mut found: Vec<FileFinding> = Vec::new();
    let name = chart.name.clone();
    for (file, image) in chart.said_images(&values) {
        found.extend(audit_text(&file, &format!("image: {image}\n"), inventory).into_iter().map(|placed| {
            let finding = Finding { line: 1, column: 1, path: Vec::new(), ..placed.finding };
            FileFinding { finding, ..placed }
        }));
    }
    let texts = chart.installed_documents(&values);
    if let Some(rendered) = rendered {
        found.extend(audit_text(&format!("{name} (rendered)"), rendered, inventory));
        return Ok(images_alone(found));
    }
    let documents: Vec<(String, String)> = texts.into_iter().cloned().collect();
    fill_template_defaults(&chart, &mut values, inventory);
    let text = serde_yaml::to_string(&values)?;
    let of_values = audit(Path::new("values.yaml"), &text, inventory);
    let mut paths: Vec<Vec<String>> = Vec::new();
    for finding in of_values {
        if matches!(finding.coverage, Coverage::Missing { .. }) {
            paths.push(finding.path.clone());
        }
        // what is switched off is not installed
        if chart.off(&finding.path, &values).is_none() {
            found.push(in_chart(&chart, &values, finding));
        }
    }
    let helpers: String = chart.helpers().into_iter().map(|text| format!("{text}\n")).collect();
    for (file, text) in &documents {
        if NOT_INSTALLED.iter().any(|folder| file.contains(folder) && !file.contains("/templates/")) {
            continue;
        }
        if text.contains("kind: CustomResourceDefinition") {
            found.extend(of_schema(file, text, inventory));
        }
        found.extend(of_flags(file, text, inventory));
        let of_text = audit_text(file, text, inventory).into_iter();
        found.extend(of_text.filter(|placed| !is_made_of(&placed.finding, &paths, &helpers)));
    }
    Ok(images_alone(found))
}

/// The full names of images behind a flag or a key that speaks of an image, in a template, which may be no YAML:
/// `--sidecar-image=quay.io/x/y:v1`.
fn of_flags(file: &str, text: &str, inventory: &Inventory<'_>) -> Vec<FileFinding> {
    let ends = |c: char| c.is_whitespace() || "\"'`,[]{}()".contains(c);
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#')) {
        for word in line.split(ends) {
            let Some((flag, value)) = word.split_once('=') else { continue };
            let is_flag = flag.starts_with('-') && flag.to_ascii_lowercase().contains("image");
            found.extend(full_name(file, (at, line), value, inventory).filter(|_| is_flag));
        }
    }
    found
}

/// The finding for `value`, which stands in this line, where it is the full name of an image.
fn full_name(
    file: &str,
    (at, line): (usize, &str),
    value: &str,
    inventory: &Inventory<'_>,
) -> Option<FileFinding> {
    let image = value.parse::<ImageRef>().ok().filter(|image| image.is_pinned() && names_host(value))?;
    let (column, reference) = (line.find(value).unwrap_or_default() + 1, value.to_owned());
    let coverage = inventory.decide(&image, false);
    let finding = Finding { line: at + 1, column, path: Vec::new(), reference, coverage };
    Some(FileFinding { file: file.to_owned(), finding })
}

/// The defaults in a schema that are full names of images: who makes such an object gets them.
fn of_schema(file: &str, text: &str, inventory: &Inventory<'_>) -> Vec<FileFinding> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let Some(value) = line.trim_start().strip_prefix("default:") else { continue };
        let value = value.trim().trim_matches(['"', '\'']);
        found.extend(full_name(file, (at, line), value, inventory));
    }
    found
}

/// Whether what a template puts together is made of values in which images were found.
fn is_made_of(finding: &Finding, paths: &[Vec<String>], helpers: &str) -> bool {
    let Coverage::Undecided { .. } = finding.coverage else { return false };
    let written = &finding.reference;
    let of_values = |text| str::split(text, ".Values.").skip(1).map(word).collect::<Vec<&str>>();
    let mut named = of_values(written);
    if named.is_empty() {
        // a helper of the chart puts it together
        let helper = written.split('"').nth(1).unwrap_or_default();
        let defined = helpers
            .split("define ")
            .find(|text| text.trim_start_matches('"').starts_with(&format!("{helper}\"")));
        named = of_values(defined.filter(|_| !helper.is_empty()).unwrap_or_default());
    }
    match named.is_empty() {
        true => written.contains("{{") && !paths.is_empty(),
        false => named.iter().any(|path| {
            let keys: Vec<&str> = path.split('.').collect();
            let lies = |known: &Vec<String>| {
                let at = (0..known.len()).find(|at| known[*at] == keys[0]);
                at.is_some_and(|at| {
                    let common = keys.iter().zip(&known[at..]).take_while(|(a, b)| *a == b).count();
                    common + 1 >= keys.len() || common == known.len() - at
                })
            };
            paths.iter().any(lies)
        }),
    }
}

/// The path at the beginning of `text`.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c))).unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// Without URLs, which are no images.
fn images_alone(found: Vec<FileFinding>) -> Vec<FileFinding> {
    found.into_iter().filter(|placed| !placed.finding.reference.contains("://")).collect()
}
