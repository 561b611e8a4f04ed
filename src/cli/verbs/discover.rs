//! `landfall discover`: a first manifest, from what is there already.

use crate::cli::shared::result_file::write_result;
use crate::cli::shared::wishes::wishes;
use crate::cli::shared::{Context, Exit, Failure, Outcome};
use crate::lockfile::Lock;
use crate::manifest::{DraftItem, draft};
use crate::model::today;
use crate::report::{Item, Kind, Report, Status};
use crate::rewrite::audit::{Coverage, Helm, Inventory, discover};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Draft a manifest from Kubernetes manifests, charts, Dockerfiles and lists
///
/// Charts are rendered by `helm template` where a helm is on PATH, and read as they are where not.
#[derive(Args)]
pub(crate) struct Discover {
    /// Files, folders or charts
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Values for the charts, as for helm (may be repeated)
    #[arg(short = 'f', long, value_name = "FILE")]
    values: Vec<PathBuf>,
    /// Read charts as they are, also where there is a helm
    #[arg(long, conflicts_with = "values")]
    no_helm: bool,
    /// The manifest's metadata.name
    #[arg(long, value_name = "NAME", default_value = "discovered", value_parser = name)]
    name: String,
    /// Where to write the manifest [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

fn name(text: &str) -> Result<String, String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match text.chars().all(is_word) && text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => Ok(text.to_owned()),
        false => Err("letters, digits, - _ and . are allowed, and a letter comes first".into()),
    }
}

impl Discover {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let helm = match self.no_helm {
            true => None,
            false => Helm::find(std::env::var_os("PATH").as_deref(), &self.values),
        };
        if helm.is_none() && !self.values.is_empty() {
            return Err(Failure::usage("there is no helm on PATH, and without it values are not read"));
        }
        // nothing is held: all that is found is wanted
        let (nothing, today) = (Lock::default(), today().to_string());
        let inventory = Inventory::new(&nothing, None, None, &today);
        let found = discover(&self.paths, &inventory, &context.limits, helm.as_ref())?;
        if found.read == 0 && found.unread.is_empty() {
            return Err(Failure::usage(
                "there is nothing to read in what was named: no YAML, JSON, Dockerfile or chart",
            ));
        }
        let wishes = wishes(found.found.iter());
        let title = "Drafted by `landfall discover`. Read it, pin what is commented, and keep it in git.";
        let (text, entries) = draft(&self.name, title, &wishes);

        let undecided = found.found.iter();
        let undecided =
            undecided.filter(|placed| matches!(placed.finding.coverage, Coverage::Undecided { .. }));
        let mut lines: Vec<String> = undecided.clone().map(|placed| placed.line("undecided")).collect();
        lines.extend(found.unread.iter().map(|unread| format!("{}: {}", unread.file, unread.why)));
        lines.push(format!("{entries} entries from {} files and charts", found.read));
        let images = wishes.iter().filter_map(|wish| match &wish.what {
            DraftItem::Image(image) => Some(image.to_string()),
            _ => None,
        });
        let mut images: Vec<String> = images.collect();
        images.sort();
        images.dedup();
        let items = images.into_iter().map(|name| Item {
            kind: Kind::Image,
            name,
            digest: None,
            bytes: None,
            status: Status::Done,
            reason: None,
        });
        let mut report = Report { items: items.collect(), ..Report::default() };
        let members = [
            ("manifest", json!(text)),
            ("undecided", json!(undecided.collect::<Vec<_>>())),
            ("unread", json!(found.unread)),
            ("helm", json!(helm.as_ref().map(|helm| helm.program.display().to_string()))),
        ];
        report.extra.extend(members.map(|(name, list)| (name.to_owned(), list)));
        let exit = match (found.unread.is_empty(), found.read) {
            (true, _) => Exit::Done,
            (false, 0) => {
                let failure = Failure::new(Exit::Failed, lines.join("\n"));
                return Err(Failure { report: report.into(), ..failure });
            }
            (false, _) => Exit::Partial,
        };
        let text = write_result(text, self.out.as_deref(), &lines, context)?;
        Ok(Outcome { report, text, exit })
    }
}
