//! `helm-values`: Helm values that point charts at the site.

use crate::platform::{
    InputFlag, OutputForm, OverlayDetails, OverlayKey, PlatformInput, RenderPlatform,
    RenderRequest, RenderedConfig, RenderedOutput,
};
use crate::rendered_file::header;
use landfall_model::document::read_text_input;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem, one_line};
use landfall_model::{Failure, Limits};
use landfall_rewrite::audit::{
    AuditFinding, FileFinding, Inventory, LockCoverage, TemplateDefaults, audit, audit_text,
    dotted, fill_template_defaults, in_chart,
};
use landfall_rewrite::{
    HelmChart, ReferenceMeaning, ReferenceRole, RewriteOptions, TextSyntax, coalesce, rewrite,
    values_of, values_text,
};
use serde_yaml::{Mapping, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
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
    writes: OutputForm::Text {
        out: "Where to write the values [default: stdout]",
    },
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
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
    notes.extend(overlay.absent.iter().map(|path| {
        format!(
            "{path}: its images are not in the overlay: Chart.yaml lists this dependency, but the \
             chart does not contain it; add it with `helm dependency build`"
        )
    }));
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
    ReportItem::new(EntryKind::Image, name, status, reason)
}

// Computes Helm values that point charts at the site. They contain only what must change
// in the charts' default values: images, registries, and `allowInsecureImages` of Bitnami's
// charts.
//
// The defaults of a chart and its subcharts are combined as Helm combines them, and rewritten like
// any other document. The overlay contains the values that differ afterwards.

/// Values that override the defaults of charts.
#[derive(Debug, Default)]
pub(super) struct ChartOverlay {
    /// The values as a mapping.
    pub(super) values: Mapping,
    /// The keys of `values` with their old and new values.
    pub(super) keys: Vec<OverlayKey>,
    /// Images that are not in the overlay: missing from the lock, or undecided.
    pub(super) open: Vec<FileFinding>,
    /// The locked items that the charts contain.
    pub(super) held: Vec<String>,
    /// The paths of dependencies that the charts do not contain.
    pub(super) absent: BTreeSet<String>,
}

/// Returns the overlay for `charts`, installed together with the values `user`. `registry` is the
/// host of the site's registry. Fails if two charts need different values under one key.
pub(super) fn overlay(
    charts: &[HelmChart],
    user: &Mapping,
    inventory: &Inventory<'_>,
    registry: &str,
) -> Result<ChartOverlay, Failure> {
    let mut all = ChartOverlay::default();
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    for chart in charts {
        let one = overlay_of(chart, user, inventory, registry)?;
        for key in &one.keys {
            // one overlay is used for all charts, so a key can have only one value
            let same = all.keys.iter().find(|other| other.path == key.path);
            if let (Some(other), Some(first)) = (same, owners.get(&key.path))
                && other.to != key.to
            {
                return Err(Failure::usage(format!(
                    "{first} and {} both have {}, with different images; render an overlay for \
                     each of them separately",
                    chart.name, key.path
                )));
            }
            owners.entry(key.path.clone()).or_insert(&chart.name);
        }
        coalesce(&mut all.values, &one.values);
        all.keys.extend(one.keys);
        all.open.extend(one.open);
        all.held.extend(one.held);
        all.absent.extend(one.absent);
    }
    all.keys.sort_by(|a, b| a.path.cmp(&b.path));
    all.keys.dedup();
    all.held.sort();
    all.held.dedup();
    Ok(all)
}

/// The failure of writing the values of `chart` as YAML.
pub(super) fn values_error(chart: &str, error: &serde_yaml::Error) -> Failure {
    Failure::usage(format!("the values of {chart}: {error}"))
}

fn overlay_of(
    chart: &HelmChart,
    user: &Mapping,
    inventory: &Inventory<'_>,
    registry: &str,
) -> Result<ChartOverlay, Failure> {
    let values_error = |error| values_error(&chart.name, &error);
    let mut values = chart.effective(user);
    let filled = fill_template_defaults(chart, &mut values, inventory);
    let text = serde_yaml::to_string(&values).map_err(values_error)?;
    // If the values have no tag and the default tag is not locked, a locked tag of the repository
    // is filled in, so that the reference is complete and its repository is rewritten.
    let mut old = values.clone();
    for (path, locked) in &filled.other_tags {
        let tag = locked.tag.as_deref().unwrap_or_default();
        at_mut(&mut old, path)
            .into_iter()
            .for_each(|value| *value = tag.into());
    }
    let old_text = values_text(&old).map_err(values_error)?;
    let rewritten = rewrite(
        &old_text,
        TextSyntax::Document,
        inventory.index(),
        RewriteOptions::default(),
    );
    let mut new = values_of(&chart.name, &rewritten.text)?;
    // Templates may put a registry before image names. This registry is changed only if images are
    // changed.
    if new != old {
        let registry = match path_before_all(&filled, &old, &new) {
            Some(path) => {
                restore_names(&filled, &old, &mut new);
                format!("{registry}/{path}")
            }
            None => registry.to_owned(),
        };
        for path in &filled.registries {
            let upstream = at_mut(&mut old, path)
                .and_then(|value| value.as_str())
                .unwrap_or_default();
            if !inventory.images_below(upstream).is_empty() {
                at_mut(&mut new, path)
                    .into_iter()
                    .for_each(|value| *value = registry.as_str().into());
            }
        }
        allow_other_registries(chart, &old, &mut new);
    }
    // A registry that was filled in from a mapping above the image is not a key of the image, so
    // it is not in the overlay.
    for path in &filled.inherited {
        let value = at_mut(&mut old, path).map(|value| value.clone());
        at_mut(&mut new, path)
            .into_iter()
            .zip(value)
            .for_each(|(new, old)| *new = old);
    }
    let mut overlay = ChartOverlay {
        absent: chart.missing_charts(&values),
        ..ChartOverlay::default()
    };
    overlay.values = differing(&old, &new, &mut Vec::new(), &mut overlay.keys);
    if !overlay.keys.is_empty() {
        overlay.held.extend(
            filled
                .other_tags
                .iter()
                .map(|(_, locked)| locked.to_string()),
        );
    }
    let found = &rewritten.scan.found;
    let prefixes = found
        .iter()
        .filter_map(|one| match (&one.meaning, one.role) {
            (ReferenceMeaning::Known { item, .. }, ReferenceRole::Prefix) => Some(item),
            _ => None,
        });
    let prefixes: Vec<&String> = prefixes.collect();
    overlay.held.extend(
        prefixes
            .iter()
            .flat_map(|prefix| inventory.images_below(prefix)),
    );
    // the reason why the rewriter left the reference of a finding unchanged, if it did
    let left = |finding: &AuditFinding| {
        found.iter().find_map(|one| match &one.meaning {
            ReferenceMeaning::Left(why)
                if (one.line, one.column) == (finding.line, finding.column) =>
            {
                Some(why.clone())
            }
            _ => None,
        })
    };
    for finding in audit(Path::new("values.yaml"), &text, inventory) {
        let left = left(&finding);
        let mut found = in_chart(chart, &values, finding);
        if let (LockCoverage::Held { .. } | LockCoverage::Ambiguous { .. }, Some(why)) =
            (&found.finding.coverage, left)
        {
            found.finding.coverage = LockCoverage::Undecided { why };
        }
        overlay.add(found, &prefixes);
    }
    overlay.open.extend(in_templates(chart, inventory));
    Ok(overlay)
}

impl ChartOverlay {
    /// Adds an image in the values of a chart. `prefixes` are the prefixes of images that the
    /// overlay changes.
    fn add(&mut self, found: FileFinding, prefixes: &[&String]) {
        let is_below = |prefix: &&String| {
            let whole = format!("{prefix}/{}", found.finding.reference);
            self.held.contains(&whole)
        };
        match &found.finding.coverage {
            // a prefix is not an image; the images below it were counted already
            LockCoverage::Held { item } if prefixes.contains(&item) => {}
            LockCoverage::Held { item } => self.held.push(item.clone()),
            // the URL of a file is not an image
            _ if found.finding.reference.contains("://") => {}
            // the name has no registry; a prefix in the overlay completes it
            _ if prefixes.iter().any(is_below) => {}
            _ => self.open.push(found),
        }
    }
}

/// The path that the rewrite put before the names of all images, if templates put a registry there.
/// The path then belongs to that registry, because Rancher puts it before names of its own, too.
/// `None` if there is no path, or not the same one for all images.
fn path_before_all(filled: &TemplateDefaults, old: &Mapping, new: &Mapping) -> Option<String> {
    let mut common = None;
    for path in filled.inherited.iter().filter(|_| filled.is_before_all) {
        for (_, before, after) in renamed(path, old, new) {
            let path = after.strip_suffix(before)?.strip_suffix('/')?;
            if *common.get_or_insert(path) != path {
                return None;
            }
        }
    }
    common.map(str::to_owned)
}

/// Restores the names of the images whose registry was filled in.
fn restore_names(filled: &TemplateDefaults, old: &Mapping, new: &mut Mapping) {
    for path in &filled.inherited {
        let names: Vec<(Vec<String>, String)> = renamed(path, old, new)
            .map(|(key, before, _)| {
                let above = &path[..path.len() - 1];
                ([above, &[key.to_owned()]].concat(), before.to_owned())
            })
            .collect();
        for (path, name) in names {
            at_mut(new, &path)
                .into_iter()
                .for_each(|value| *value = name.as_str().into());
        }
    }
}

/// The texts that a rewrite changed in the image whose registry is at `path`, except that registry:
/// each with its key and both texts.
fn renamed<'v>(
    path: &'v [String],
    old: &'v Mapping,
    new: &'v Mapping,
) -> impl Iterator<Item = (&'v str, &'v str, &'v str)> {
    let (registry, above) = path.split_last().unzip();
    let above = above.unwrap_or_default();
    let image = |values: &'v Mapping| {
        above
            .iter()
            .try_fold(values, |values, key| values.get(key)?.as_mapping())
    };
    let old = image(old).into_iter().flatten();
    let new = image(new);
    old.filter_map(move |(key, before)| {
        let after = new?.get(key)?.as_str()?;
        Some((key.as_str()?, before.as_str()?, after))
    })
    .filter(move |(key, before, after)| {
        before != after && registry.is_none_or(|registry| registry != key)
    })
}

/// Allows images of another registry in Bitnami charts, which otherwise fail to render. Does
/// nothing unless `global.security.allowInsecureImages` is `false` in the chart and the overlay
/// changes the chart's values.
fn allow_other_registries(chart: &HelmChart, old: &Mapping, new: &mut Mapping) {
    const KEY: [&str; 3] = ["global", "security", "allowInsecureImages"];
    let changes = old != new;
    for chart in &chart.subcharts {
        if let (Some(Value::Mapping(old)), Some(Value::Mapping(new))) =
            (old.get(&chart.key), new.get_mut(&chart.key))
        {
            allow_other_registries(chart, old, new);
        }
    }
    let path: Vec<String> = KEY.iter().map(|key| (*key).to_owned()).collect();
    if let Some(value) = at_mut(new, &path).filter(|value| changes && **value == Value::Bool(false))
    {
        *value = true.into();
    }
}

/// Finds the images that the templates and files of a chart and its subcharts contain literally.
/// Values cannot change these images.
fn in_templates(chart: &HelmChart, inventory: &Inventory<'_>) -> Vec<FileFinding> {
    let documents = chart
        .documents()
        .into_iter()
        .filter(|(file, _)| is_template(file));
    let found = documents.flat_map(|(file, text)| audit_text(file, text, inventory));
    found.filter_map(literal_reference).collect()
}

fn is_template(file: &str) -> bool {
    ["/templates/", "/files/"]
        .iter()
        .any(|folder| file.contains(folder))
}

/// Returns the finding if the reference is literal. A locked image becomes undecided, because
/// values cannot change it.
fn literal_reference(mut found: FileFinding) -> Option<FileFinding> {
    let finding = &mut found.finding;
    if finding.reference.contains("://") {
        return None;
    }
    match &finding.coverage {
        LockCoverage::Held { .. } | LockCoverage::Ambiguous { .. } => {
            let why = "it is written in a template, and no value changes it; rewrite the output of \
                       `helm template`";
            finding.coverage = LockCoverage::Undecided { why: why.into() };
            Some(found)
        }
        LockCoverage::Missing { .. } => Some(found),
        // the reference is made from values, and the values were searched
        LockCoverage::Undecided { .. } => None,
    }
}

fn at_mut<'v>(values: &'v mut Mapping, path: &[String]) -> Option<&'v mut Value> {
    let (first, rest) = path.split_first()?;
    rest.iter()
        .fold(values.get_mut(first), |value, key| value?.get_mut(key))
}

/// Returns the values of `new` that differ from `old`, which has the same keys. Each is added to
/// `keys` with its path.
fn differing(
    old: &Mapping,
    new: &Mapping,
    path: &mut Vec<String>,
    keys: &mut Vec<OverlayKey>,
) -> Mapping {
    let mut out = Mapping::new();
    for (key, value) in new {
        let Some(before) = old.get(key).filter(|before| *before != value) else {
            continue;
        };
        path.push(key.as_str().unwrap_or_default().to_owned());
        match (before, value) {
            (Value::Mapping(before), Value::Mapping(value)) => {
                out.insert(key.clone(), differing(before, value, path, keys).into());
            }
            _ => {
                out.insert(key.clone(), value.clone());
                let list = value.is_sequence();
                keys.push(OverlayKey {
                    path: dotted(path),
                    from: value_text(before),
                    to: value_text(value),
                    list,
                });
            }
        }
        path.pop();
    }
    out
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}
