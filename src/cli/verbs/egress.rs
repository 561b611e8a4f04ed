//! `landfall egress`: which hosts the connected side must reach.

use crate::cli::shared::bases::Given;
use crate::cli::shared::{Context, Exit, Failure, Outcome, input_file};
use crate::egress::{FORMATS, Record, diff, needed, probe, read_list, remember};
use clap::Args;
use clap::builder::PossibleValuesParser;
use landfall_content::store::Disk;
use landfall_item::lockfile::{FILE_NAME, Lock};
use landfall_model::Limits;
use serde_json::json;
use std::path::{Path, PathBuf};

/// List the hosts that the firewall must let through for a lock, for a ticket or as rules
///
/// What earlier runs of lock, pull and mirror with this store contacted is `observed`; what only
/// the lock names is `predicted`; endpoints of the manifests are `declared`. Exit 4 where --probe
/// is refused something.
#[derive(Args)]
pub(crate) struct Egress {
    /// The lock, or a bundle whose lock is read [default: landfall.lock]
    #[arg(value_name = "LOCK|BUNDLE")]
    place: Option<PathBuf>,
    /// The lock, in place of the argument
    #[arg(long, value_name = "FILE", conflicts_with = "place")]
    lock: Option<PathBuf>,
    /// Ask each host for one token, one manifest and one first byte, through redirects; go on after
    /// refusals
    #[arg(long)]
    probe: bool,
    /// Show only what is added since this lock, or since a list of `--format json`, and what is
    /// removed
    #[arg(long, value_name = "LOCK|LIST")]
    diff: Option<PathBuf>,
    /// How the list is written
    #[arg(long, default_value = "text", value_parser = PossibleValuesParser::new(FORMATS.iter().map(|format| {
        clap::builder::PossibleValue::new(format.name).help(format.about)
    })))]
    format: String,
}

impl Egress {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let format = FORMATS
            .iter()
            .find(|format| format.name == self.format)
            .unwrap_or(&FORMATS[0]);
        if format.is_policy && self.diff.is_some() {
            let words = format!(
                "a policy names all hosts: leave --diff out, or --format {}",
                format.name
            );
            return Err(Failure::usage(words));
        }
        let lock = self.lock(context)?;
        let old = self.diff.as_deref().map(Old::load).transpose()?;
        // a refusal is an answer here, and another attempt only makes people wait
        let limits = if self.probe {
            Limits {
                attempts: 1,
                ..context.limits
            }
        } else {
            context.limits
        };
        context.run(async {
            let client = context.client_with(limits)?;
            let store = context.memory_dir()?;
            let sessions = client.shared_sessions();
            let probed = if self.probe {
                Some(probe(&lock, &sessions).await?)
            } else {
                None
            };
            let mut report = client.report(Vec::new());
            if probed.is_some() {
                remember(&Disk::open(&store)?, &report.hosts, "probe")?;
            }
            let record = Record::load(&store)?;
            let mut list = needed(&lock, &record, &sessions)?;
            if let Some(probed) = &probed {
                probed.apply(&mut list.hosts, &report.hosts);
                list.notes.extend(probed.notes.iter().cloned());
            }
            if let Some(old) = old {
                let old = match old {
                    Old::Lock(lock) => needed(&lock, &record, &sessions)?.hosts,
                    Old::List(hosts) => hosts,
                };
                list.hosts = diff(old, list.hosts);
            }
            report.extra.insert("egress".into(), json!(list));
            let is_good = probed.is_none_or(|probed| probed.is_good());
            let exit = if is_good { Exit::Done } else { Exit::Refused };
            let outcome = Outcome::new(report, (format.write)(&list), exit);
            Ok(if format.name == "text" {
                outcome
            } else {
                outcome.document()
            })
        })
    }
}

impl Egress {
    fn lock(&self, context: &Context) -> Result<Lock, Failure> {
        let Some(place) = &self.place else {
            return input_file::lock(self.lock.as_deref().unwrap_or(Path::new(FILE_NAME)));
        };
        match Given::open(context, place)? {
            Given::Lock(lock) => Ok(lock),
            other => Ok(other.bundle(place)?.lock()?),
        }
    }
}

/// What a list is compared with.
enum Old {
    Lock(Box<Lock>),
    List(Vec<crate::egress::EgressHost>),
}

impl Old {
    fn load(path: &Path) -> Result<Old, Failure> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        match read_list(&text) {
            Some(hosts) => Ok(Old::List(hosts)),
            None => Ok(Old::Lock(Box::new(input_file::lock(path)?))),
        }
    }
}
