//! `push --prune`: its flags, what it keeps, and how its result is told.

use crate::cli::shared::opened_file::OpenedFile;
use crate::cli::shared::{CliError, Context, Exit, VerbOutcome, input_file};
use crate::client::Client;
use crate::push::{Needed, Pruned, PrunedManifest, prune};
use clap::Args;
use landfall_content::write_file;
use landfall_item::lockfile::Lock;
use landfall_model::document::{read_input, read_text_input};
use landfall_model::report::{TransferSide, count_of};
use landfall_model::{DestinationMap, human_size, is_repository};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Flags of `push --prune`.
#[derive(Args)]
#[command(next_help_heading = "Prune the registry")]
pub(crate) struct PruneFlags {
    /// Afterwards list what of the registry nobody needs any more: neither what was pushed, nor
    /// --keep, nor --keep-last
    #[arg(long, conflicts_with = "shard")]
    prune: bool,
    /// Remove what --prune lists
    #[arg(long, requires = "prune")]
    delete: bool,
    /// A repository to look into, or @FILE with a name a line; nothing is removed elsewhere (may be
    /// repeated)
    #[arg(long = "repository", value_name = "NAME|@FILE", requires = "prune")]
    repositories: Vec<String>,
    /// Keep what this names: a lock, bundle or receipt, or what `kubectl get pods -A -o json`
    /// prints (may be repeated)
    #[arg(long, value_name = "FILE", requires = "prune")]
    keep: Vec<PathBuf>,
    /// Keep the N newest tags of each repository too, by the numbers in them
    #[arg(long, value_name = "N", requires = "prune", default_value_t = 0)]
    keep_last: usize,
}

/// What is to be looked into, and what stays.
pub(crate) struct PrunePlan {
    repositories: Vec<String>,
    needed: Needed,
    keep_last: usize,
    delete: bool,
}

impl PruneFlags {
    /// Whether anything is asked for.
    pub(crate) fn is_wanted(&self) -> bool {
        self.prune
    }

    /// What is to be done beside the push of `lock`. With `dry_run` nothing is removed.
    ///
    /// # Errors
    /// When no repository is named, or a file is none of those that say what stays (exit 2).
    pub(crate) fn plan(
        &self,
        context: &Context,
        lock: &Lock,
        mapping: &DestinationMap,
        dry_run: bool,
    ) -> Result<PrunePlan, CliError> {
        let mut needed = Needed::default();
        needed.lock(lock, mapping);
        for path in &self.keep {
            keep(context, path, &mut needed, mapping)?;
        }
        let repositories = self.repositories()?;
        if repositories.is_empty() {
            let known: Vec<&str> = needed.repositories().into_iter().collect();
            return Err(CliError::usage(format!(
                "--prune looks only into repositories that are named: add --repository NAME for each, or --repository \
                 @FILE with a name a line. What is kept stands in\n  {}",
                known.join("\n  ")
            )));
        }
        Ok(PrunePlan {
            repositories,
            needed,
            keep_last: self.keep_last,
            delete: self.delete && !dry_run,
        })
    }

    fn repositories(&self) -> Result<Vec<String>, CliError> {
        let mut names = BTreeSet::new();
        for given in &self.repositories {
            let Some(path) = given.strip_prefix('@') else {
                names.insert(given.clone());
                continue;
            };
            let text = read_text_input(path)
                .map_err(|error| CliError::usage(format!("cannot read {path}: {error}")))?;
            let lines = text
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty() && !line.starts_with('#'));
            names.extend(lines.map(str::to_owned));
        }
        match names.iter().find(|name| !is_repository(name)) {
            Some(bad) => Err(CliError::usage(format!(
                "'{bad}' is no name of a repository: give it without the registry and without a tag"
            ))),
            None => Ok(names.into_iter().collect()),
        }
    }
}

/// Keeps what the file at `path` names.
fn keep(
    context: &Context,
    path: &Path,
    needed: &mut Needed,
    mapping: &DestinationMap,
) -> Result<(), CliError> {
    if let Some(dump) = pods(path) {
        return match needed.pods(&dump, mapping) {
            0 => Err(CliError::usage(format!(
                "{} names no image of a pod",
                path.display()
            ))),
            _ => Ok(()),
        };
    }
    match OpenedFile::open(context, path)? {
        // of a partial bundle too: what it lacks may stand there
        OpenedFile::Bundle(bundle) => needed.lock(&bundle.lock()?, mapping),
        OpenedFile::Lock(lock) => needed.lock(&lock, mapping),
        OpenedFile::Receipt(receipt) if receipt.registry == mapping.target().registry => {
            needed.receipt(&receipt)
        }
        OpenedFile::Receipt(receipt) => {
            return Err(CliError::usage(format!(
                "{} is the receipt of a push to {}, and this is {}",
                path.display(),
                receipt.registry,
                mapping.target().registry
            )));
        }
    }
    Ok(())
}

/// What `kubectl` printed, where the file is that: a JSON document with a kind.
fn pods(path: &Path) -> Option<Value> {
    let bytes = read_input(path)
        .ok()
        .filter(|bytes| bytes.trim_ascii_start().first() == Some(&b'{'))?;
    let dump: Value = serde_json::from_slice(&bytes).ok()?;
    dump.get("kind")
        .and(dump.get("apiVersion"))
        .is_some()
        .then_some(dump)
}

impl PrunePlan {
    /// Does it after the push that `outcome` is of, and adds to `outcome` what came of it. After a
    /// push that did not deliver all, nothing is removed.
    ///
    /// # Errors
    /// When the registry cannot be reached, or removes nothing.
    pub(crate) async fn run(
        &self,
        client: &Client,
        mapping: &DestinationMap,
        receipts: &BTreeSet<PathBuf>,
        mut outcome: VerbOutcome,
    ) -> Result<VerbOutcome, CliError> {
        if outcome.exit != Exit::Done {
            outcome.text += "nothing is pruned, as not everything was delivered\n";
            return Ok(outcome);
        }
        let registry = &mapping.target().registry;
        let how = (self.keep_last, self.delete);
        let pruned = prune(
            registry,
            &self.repositories,
            &self.needed,
            how,
            client.sessions(),
        )
        .await;
        let traffic = client.report(Vec::new());
        outcome.report.requests = traffic.requests;
        outcome.report.bytes_transferred = traffic.bytes_transferred;
        outcome.report.hosts = traffic.hosts;
        let pruned = match pruned {
            Ok(pruned) => pruned,
            Err(error) => {
                let failure = CliError::new(Exit::Partial, format!("delivered, but {error}"));
                return Err(failure
                    .on(TransferSide::Destination)
                    .with_report(outcome.report));
            }
        };
        let members = json!({
            "deleted": self.delete, "repositories": pruned.repositories, "manifests": pruned.gone, "bytes": pruned.bytes,
        });
        outcome.report.extra.insert("pruned".into(), members);
        outcome.text += &self.text(&pruned);
        if pruned
            .repositories
            .iter()
            .any(|looked| looked.why.is_some())
        {
            outcome.exit = Exit::Partial;
        }
        if self.delete {
            for path in receipts {
                note(path, &pruned.gone)?;
            }
        }
        Ok(outcome)
    }

    fn text(&self, pruned: &Pruned) -> String {
        let mut text = String::new();
        for looked in &pruned.repositories {
            if let Some(why) = &looked.why {
                let _ = writeln!(text, "left     {}: {why}", looked.repository);
            }
        }
        for gone in &pruned.gone {
            let tags = match &gone.tags[..] {
                [] => "(no tag)".to_owned(),
                tags => tags.join(", "),
            };
            let _ = writeln!(
                text,
                "prune    {} {} {tags}",
                gone.repository,
                gone.digest.short(12)
            );
        }
        let kept: usize = pruned.repositories.iter().map(|looked| looked.kept).sum();
        let _ = writeln!(
            text,
            "{} {} of {}, {}; {} stay{}",
            if self.delete {
                "removed"
            } else {
                "would remove"
            },
            count_of(pruned.gone.len(), "manifest"),
            match pruned.repositories.len() {
                1 => "1 repository".to_owned(),
                count => format!("{count} repositories"),
            },
            human_size(pruned.bytes),
            count_of(kept, "tag"),
            match (self.delete, pruned.gone.is_empty()) {
                (_, true) => "",
                (true, false) => ". The registry frees the room at its next garbage collection",
                (false, false) => ". --delete removes them",
            }
        );
        text
    }
}

/// Writes into a receipt that was just written what was removed.
fn note(path: &Path, gone: &[PrunedManifest]) -> Result<(), CliError> {
    let mut receipt = input_file::receipt(path)?;
    receipt.pruned = gone.to_vec();
    let text = serde_json::to_string_pretty(&receipt).unwrap_or_default() + "\n";
    write_file(path, text.as_bytes()).map_err(|error| {
        let message = format!(
            "removed, but cannot write the receipt {}: {error}",
            path.display()
        );
        CliError::new(Exit::Partial, message)
    })
}
