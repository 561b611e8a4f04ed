//! `helm-values`: Helm values that point charts at the site.

use super::helm_overlay::values_error;
use super::helm_overlay::{ChartOverlay, overlay};
use crate::platform::{
    InputFlag, OutputForm, OverlayDetails, PlatformInput, PlatformSpec, RenderPlatform,
    RenderedConfig, RenderedOutput,
};
use crate::rendered_file::header;
use crate::request::RenderRequest;
use landfall_model::document::read_text_input;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem, one_line};
use landfall_model::{Failure, Limits};
use landfall_rewrite::audit::{FileFinding, Inventory, LockCoverage};
use landfall_rewrite::{HelmChart, coalesce, values_of, values_text};
use serde_yaml::Mapping;
use std::path::PathBuf;

pub(super) struct HelmValues;

impl RenderPlatform for HelmValues {
    fn spec(&self) -> &'static PlatformSpec {
        &PlatformSpec {
            name: "helm-values",
            about: "Values for Helm that point charts at the site: only their image keys",
            details: "Reads the default values of the charts and their subcharts; helm is not \
                      needed.",
            inputs: &[
                PlatformInput {
                    name: "charts",
                    flag: InputFlag::Arguments,
                    value_name: "CHART",
                    help: "Charts: a folder with a Chart.yaml, a .tgz, or the name of a locked \
                           chart",
                },
                PlatformInput {
                    name: "values",
                    flag: InputFlag::Short('f'),
                    value_name: "FILE",
                    help: "Your own values, which override those of the charts (may be repeated; \
                           later files override earlier ones). The files are not changed",
                },
            ],
            settings: &[],
            consumer: None,
            reads_lock: true,
            writes: OutputForm::Text {
                out: "Where to write the values [default: stdout]",
            },
        }
    }

    fn render(&self, request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
        let charts = request
            .paths("charts")
            .iter()
            .map(|path| HelmChart::load(path, request.limits))
            .collect::<Result<Vec<_>, _>>()?;
        let user = user_values(request.paths("values"), request.limits)?;
        let inventory = Inventory::new(request.lock, Some(request.mapping), None, request.today);
        let target = request.mapping.target();
        let overlay = overlay(&charts, &user, &inventory, &target.registry)?;
        let text = document(&charts, &overlay, &target.to_string())?;
        Ok(rendered(text, &overlay))
    }
}

/// Reads the values of the user; later files override earlier ones.
fn user_values(paths: &[PathBuf], limits: &Limits) -> Result<Mapping, Failure> {
    let mut user = Mapping::new();
    for path in paths {
        let text = read_text_input(path).map_err(|error| Failure::read(path, error))?;
        if text.len() > limits.document_bytes {
            return Err(Failure::usage(format!(
                "{} is too large for a values file",
                path.display()
            )));
        }
        let mut next = values_of(
            &path.display().to_string(),
            text.trim_start_matches('\u{feff}'),
        )?;
        // values of earlier files are kept if the later file does not set them
        coalesce(&mut next, &user);
        user = next;
    }
    Ok(user)
}

/// Formats the overlay as a file.
fn document(charts: &[HelmChart], overlay: &ChartOverlay, to: &str) -> Result<String, Failure> {
    let names: Vec<String> = charts
        .iter()
        .map(|chart| {
            format!("{} {}", chart.name, chart.version)
                .trim()
                .to_owned()
        })
        .collect();
    let names = names.join(", ");
    let values = values_text(&overlay.values).map_err(|error| values_error(&names, &error))?;
    let head = one_line(&names);
    Ok(format!(
        "# Images of {head} at {to}.\n{}{values}",
        header("landfall render helm-values")
    ))
}

/// Returns the overlay, written as `text`, with its changes and notes.
fn rendered(text: String, overlay: &ChartOverlay) -> RenderedConfig {
    let (missing, undecided): (Vec<&FileFinding>, Vec<&FileFinding>) = overlay
        .open
        .iter()
        .partition(|open| matches!(open.finding.coverage, LockCoverage::Missing { .. }));
    let changes = overlay
        .keys
        .iter()
        .map(|key| format!("{}: {} -> {}", key.path, key.from, key.to));
    let lists = overlay.keys.iter().filter(|key| key.list);
    let mut notes: Vec<String> = lists
        .map(|key| {
            format!(
                "{}: Helm replaces a list as a whole, so the overlay contains all of it",
                key.path
            )
        })
        .collect();
    let insecure = overlay
        .keys
        .iter()
        .filter(|key| key.path.ends_with("global.security.allowInsecureImages"));
    notes.extend(insecure.map(|key| {
        format!(
            "{}: set to true, because the chart otherwise refuses images of another registry than \
             its own",
            key.path
        )
    }));
    notes.extend(missing.iter().map(|open| open.line("missing")));
    notes.extend(undecided.iter().map(|open| open.line("undecided")));
    notes.push(format!(
        "{} keys for {} locked images; {} missing, {} undecided",
        overlay.keys.len(),
        overlay.held.len(),
        missing.len(),
        undecided.len()
    ));
    let failure = match (
        overlay.held.is_empty() && overlay.keys.is_empty(),
        overlay.open.is_empty(),
    ) {
        (false, _) => None,
        (true, false) => Some("none of the charts' images is in the lock"),
        (true, true) => Some("no image was found in the charts' values"),
    };
    RenderedConfig {
        output: RenderedOutput::Text(text),
        changes: changes.collect(),
        notes,
        items: items(overlay, &missing),
        overlay: Some(OverlayDetails {
            keys: overlay.keys.clone(),
            missing: missing.into_iter().cloned().collect(),
            undecided: undecided.into_iter().cloned().collect(),
            values: overlay.values.clone(),
        }),
        failure,
        ..RenderedConfig::default()
    }
}

fn items(overlay: &ChartOverlay, missing: &[&FileFinding]) -> Vec<ReportItem> {
    let held = overlay
        .held
        .iter()
        .map(|name| image_item(name.clone(), ItemStatus::Done, None));
    let missing = missing.iter().map(|open| {
        let reason = Some(open.line("missing"));
        image_item(open.finding.reference.clone(), ItemStatus::Missing, reason)
    });
    held.chain(missing).collect()
}

fn image_item(name: String, status: ItemStatus, reason: Option<String>) -> ReportItem {
    ReportItem {
        kind: EntryKind::Image,
        name,
        digest: None,
        bytes: None,
        packages: 0,
        status,
        reason,
    }
}
