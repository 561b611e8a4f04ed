//! `landfall render`: configuration that makes others use the site. One variant a platform.

use crate::cli::shared::findings::{hand_over, shown};
use crate::cli::shared::lock_flags::Locked;
use crate::cli::shared::{Context, Exit, Failure, Outcome};
use crate::item::collision;
use crate::model::{Limits, Target, today};
use crate::render::{Overlay, helm_values};
use crate::report::{Item, Kind, Report, Side, Status, escape};
use crate::rewrite::audit::{Coverage, FileFinding, Inventory};
use crate::rewrite::{Chart, coalesce, values_of};
use clap::{Args, Subcommand};
use serde_json::json;
use serde_yaml::Mapping;
use std::path::PathBuf;

/// Write configuration that makes others use the site's registry
#[derive(Args)]
pub(crate) struct Render {
    #[command(subcommand)]
    platform: Platform,
}

/// One variant a platform.
#[derive(Subcommand)]
enum Platform {
    HelmValues(HelmValues),
}

impl Render {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        match self.platform {
            Platform::HelmValues(platform) => platform.run(context),
        }
    }
}

/// Values for Helm that point charts at the site: their image keys, and nothing else
///
/// The defaults of the charts and their subcharts are read as they are; helm is not needed.
#[derive(Args)]
struct HelmValues {
    /// Charts: a folder with a Chart.yaml, or a .tgz
    #[arg(required = true, value_name = "CHART")]
    charts: Vec<PathBuf>,
    /// Your own values, which win over the charts' (may be repeated; the last wins). They are read only
    #[arg(short = 'f', long, value_name = "FILE")]
    values: Vec<PathBuf>,
    /// The registry to point to [default: registry.address of the site]
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    to: Option<Target>,
    #[command(flatten)]
    locked: Locked,
    /// Where to write the values [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl HelmValues {
    fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let load = |path: &PathBuf| Chart::load(path, &context.limits);
        let charts = self.charts.iter().map(load).collect::<Result<Vec<_>, _>>()?;
        let user = user_values(&self.values, &context.limits)?;
        let lock = self.locked.load(context)?;
        let mapping = context.mapping(self.to.as_ref())?;
        if let Some(collision) = collision(&mapping, &lock) {
            return Err(Failure::usage(collision.to_string()));
        }
        let today = today().to_string();
        let inventory = Inventory::new(&lock, Some(&mapping), None, &today);
        let overlay = helm_values(&charts, &user, &inventory, &mapping.target().registry)?;
        self.outcome(context, &charts, &overlay, &mapping.target().to_string())
    }

    fn outcome(
        &self,
        context: &Context,
        charts: &[Chart],
        overlay: &Overlay,
        to: &str,
    ) -> Result<Outcome, Failure> {
        let values = document(charts, overlay, to)?;
        let (missing, undecided): (Vec<&FileFinding>, Vec<&FileFinding>) =
            overlay.open.iter().partition(|open| matches!(open.finding.coverage, Coverage::Missing { .. }));
        let mut lines: Vec<String> = Vec::new();
        if self.out.is_some() {
            lines.extend(overlay.keys.iter().map(|key| format!("{}: {} -> {}", key.path, key.from, key.to)));
        }
        let lists = overlay.keys.iter().filter(|key| key.list);
        lines.extend(lists.map(|key| {
            format!("{}: Helm takes a list as a whole, so all of it is in the overlay", key.path)
        }));
        lines.extend(missing.iter().map(|open| shown("missing", open)));
        lines.extend(undecided.iter().map(|open| shown("undecided", open)));
        lines.push(format!(
            "{} keys for {} locked images; {} missing, {} undecided",
            overlay.keys.len(),
            overlay.held.len(),
            missing.len(),
            undecided.len()
        ));
        let mut report = Report { items: items(overlay, &missing), ..Report::default() };
        let members = [
            ("keys", json!(overlay.keys)),
            ("missing", json!(missing)),
            ("undecided", json!(undecided)),
            ("values", json!(overlay.values)),
        ];
        report.extra.extend(members.map(|(name, list)| (name.to_owned(), list)));
        if !missing.is_empty() && overlay.held.is_empty() {
            let message = format!("none of the charts' images is in the lock\n{}", lines.join("\n"));
            let failure = Failure::new(Exit::Failed, message).on(Side::Input);
            return Err(Failure { report: report.into(), ..failure });
        }
        let text = hand_over(values, self.out.as_deref(), &lines, context)?;
        Ok(Outcome::of(report, text))
    }
}

/// The user's values, the last file winning.
fn user_values(paths: &[PathBuf], limits: &Limits) -> Result<Mapping, Failure> {
    let mut user = Mapping::new();
    for path in paths {
        let cannot = |error| Failure::usage(format!("cannot read {}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(cannot)?;
        if text.len() > limits.document_bytes {
            return Err(Failure::usage(format!("{} is too large for values", path.display())));
        }
        let mut next = values_of(&path.display().to_string(), text.trim_start_matches('\u{feff}'))?;
        coalesce(&mut next, &user);
        user = next;
    }
    Ok(user)
}

/// The overlay as a file.
fn document(charts: &[Chart], overlay: &Overlay, to: &str) -> Result<String, Failure> {
    let names: Vec<String> =
        charts.iter().map(|chart| format!("{} {}", chart.name, chart.version).trim().to_owned()).collect();
    let values = serde_yaml::to_string(&overlay.values);
    let values = values.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    let head = escape(&names.join(", ")).replace('\n', " ");
    Ok(format!(
        "# Images of {head} at {to}.\n# Written by `landfall render helm-values`; make it anew rather than edit it.\n{values}"
    ))
}

fn items(overlay: &Overlay, missing: &[&FileFinding]) -> Vec<Item> {
    let item = |name: String, status, reason| Item {
        kind: Kind::Image,
        name,
        digest: None,
        bytes: None,
        status,
        reason,
    };
    let held = overlay.held.iter().map(|name| item(name.clone(), Status::Done, None));
    let missing = missing.iter().map(|open| {
        let reason = Some(shown("missing", open));
        item(open.finding.reference.clone(), Status::Missing, reason)
    });
    held.chain(missing).collect()
}
