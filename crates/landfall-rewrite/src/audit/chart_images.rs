//! The images of a chart: what it says of them itself, its values as they count, its templates and
//! CRDs as texts; or what helm renders of it.

use super::candidate::MADE;
use super::finding::{Coverage, FileFinding, Finding};
use super::inventory::Inventory;
use super::made_of::{Sources, is_of_image};
use super::template_defaults::fill_template_defaults;
use super::text::audit;
use super::tree::{audit_text, in_chart};
use crate::chart::{Chart, Installed};
use crate::text::reference_at;
use landfall_model::{ImageRef, Limits, has_host};
use serde_yaml::Mapping;
use std::path::Path;

/// Folders of a chart whose documents are for whoever works on it.
const NOT_INSTALLED: [&str; 5] = ["/ci/", "/tests/", "/examples/", "/docs/", "/hack/"];

/// What `chart` names with the values `user`. `rendered` is what helm makes of it: then its values
/// and templates are not read, as they are in that.
///
/// # Errors
/// When its values cannot be written as YAML.
pub fn chart_images(
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
        found.extend(
            audit_text(&file, &format!("image: {image}\n"), inventory)
                .into_iter()
                .map(|placed| {
                    let finding = Finding {
                        line: 1,
                        column: 1,
                        path: Vec::new(),
                        ..placed.finding
                    };
                    FileFinding { finding, ..placed }
                }),
        );
    }
    if let Some(rendered) = rendered {
        found.extend(audit_text(
            &format!("{name} (rendered)"),
            rendered,
            inventory,
        ));
        return Ok(images_alone(found));
    }
    fill_template_defaults(&chart, &mut values, inventory);
    let text = serde_yaml::to_string(&values)?;
    let mut named: Vec<Vec<String>> = Vec::new();
    for finding in audit(Path::new("values.yaml"), &text, inventory) {
        named.push(finding.path.clone());
        // what is switched off is not installed
        if chart.off(&finding.path, &values).is_none() {
            found.push(in_chart(&chart, &values, finding));
        }
    }
    let templates = chart.installed(&values);
    let helpers = chart.helpers().into_iter().map(|(_, text)| &**text);
    let sources = Sources::new(&values, named, &templates, helpers);
    for template in &templates {
        let Installed { file, text, .. } = template;
        if NOT_INSTALLED
            .iter()
            .any(|folder| file.contains(folder) && !file.contains("/templates/"))
        {
            continue;
        }
        if text.contains("kind: CustomResourceDefinition") {
            found.extend(of_schema(file, text, inventory));
        }
        let of_text = of_flags(file, text, inventory)
            .into_iter()
            .chain(audit_text(file, text, inventory));
        found.extend(of_text.filter(|placed| !sources.decide(&placed.finding, template)));
    }
    Ok(images_alone(found))
}

/// The images behind a flag or a variable of the environment that speaks of an image, in a
/// template, which may be no YAML: `--sidecar-image=quay.io/x/y:v1`. Full names, and what is made
/// of placeholders.
fn of_flags(file: &str, text: &str, inventory: &Inventory<'_>) -> Vec<FileFinding> {
    let ends = |c: char| c.is_whitespace() || "\"'`,[]{}()".contains(c);
    let mut found = Vec::new();
    let mut variable = false;
    for (at, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with('#'))
    {
        let mut values: Vec<&str> = Vec::new();
        for (equals, _) in line.match_indices('=') {
            let flag = line[..equals].rsplit(ends).next().unwrap_or_default();
            if flag.starts_with('-') && is_of_image(&[flag]) {
                values.push(&line[equals + 1..]);
            }
        }
        let (key, value) = line
            .trim_start()
            .trim_start_matches("- ")
            .split_once(':')
            .unwrap_or_default();
        if key == "value" && variable {
            values.push(value.trim_start().trim_start_matches(['"', '\'']));
        }
        variable = key == "name" && value.trim_end_matches(['"', '\'']).ends_with("IMAGE");
        for value in values {
            let made = reference_at(value, Limits::default().reference_bytes);
            let word = value.split(ends).next().unwrap_or_default();
            match made.contains("{{") {
                true => found.push(placed(
                    file,
                    (at, line),
                    made,
                    Coverage::Undecided { why: MADE.into() },
                )),
                false => found.extend(full_name(file, (at, line), word, inventory)),
            }
        }
    }
    found
}

fn placed(file: &str, (at, line): (usize, &str), value: &str, coverage: Coverage) -> FileFinding {
    let column = line.find(value).unwrap_or_default() + 1;
    let finding = Finding {
        line: at + 1,
        column,
        path: Vec::new(),
        manager: None,
        reference: value.to_owned(),
        coverage,
    };
    FileFinding {
        file: file.to_owned(),
        finding,
    }
}

/// The finding for `value`, which stands in this line, where it is the full name of an image.
fn full_name(
    file: &str,
    (at, line): (usize, &str),
    value: &str,
    inventory: &Inventory<'_>,
) -> Option<FileFinding> {
    let image = value
        .parse::<ImageRef>()
        .ok()
        .filter(|image| image.is_pinned() && has_host(value))?;
    Some(placed(
        file,
        (at, line),
        value,
        inventory.decide(&image, false),
    ))
}

/// The defaults in a schema that are full names of images: who makes such an object gets them.
fn of_schema(file: &str, text: &str, inventory: &Inventory<'_>) -> Vec<FileFinding> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let Some(value) = line.trim_start().strip_prefix("default:") else {
            continue;
        };
        let value = value.trim().trim_matches(['"', '\'']);
        found.extend(full_name(file, (at, line), value, inventory));
    }
    found
}

/// Without URLs, which are no images.
fn images_alone(found: Vec<FileFinding>) -> Vec<FileFinding> {
    found
        .into_iter()
        .filter(|placed| !placed.finding.reference.contains("://"))
        .collect()
}
