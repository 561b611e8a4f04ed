//! `push --prune`: lists the manifests of a registry that nothing needs any more. With `--delete`,
//! it deletes them.

use crate::cli::shared::input_file::{self, OpenedFile};
use crate::cli::shared::{CliError, Context, Exit, ReportMember, VerbOutcome};
use crate::client::Client;
use crate::push::{Needed, Pruned, PrunedManifest, prune};
use clap::Args;
use landfall_content::write_file;
use landfall_item::lockfile::Lock;
use landfall_model::document::read_input;
use landfall_model::report::{TransferSide, count_of};
use landfall_model::{DestinationMap, human_size, is_repository};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The flags of `push --prune`.
#[derive(Args)]
#[command(next_help_heading = "Prune the registry")]
pub(crate) struct PruneFlags {
    /// After the push, list the manifests of the registry that are needed neither by the push nor
    /// by --keep or --keep-last
    #[arg(long, conflicts_with = "shard")]
    pub(crate) prune: bool,
    /// Delete what --prune lists
    #[arg(long, requires = "prune")]
    delete: bool,
    /// A repository to prune, with the prefix of --to, or @FILE with one name per line; no other
    /// repository is changed (may be repeated)
    #[arg(long = "repository", value_name = "NAME|@FILE", requires = "prune")]
    repositories: Vec<String>,
    /// Keep what this lock, bundle, receipt or output of `kubectl get pods -A -o json` names (may
    /// be repeated)
    #[arg(long, value_name = "FILE", requires = "prune")]
    keep: Vec<PathBuf>,
    /// Also keep the N newest tags of each form (v#.#.#, #.#-alpine) in each repository, by the
    /// numbers in them
    #[arg(long, value_name = "N", requires = "prune", default_value_t = 0)]
    keep_last: usize,
}

/// The repositories to prune, and the content to keep.
pub(crate) struct PrunePlan {
    repositories: Vec<String>,
    needed: Needed,
    keep_last: usize,
    delete: bool,
}

impl PruneFlags {
    /// Plans the pruning after a push of `lock`. With `dry_run` nothing is deleted.
    pub(crate) fn plan(
        &self,
        context: &Context,
        lock: &Lock,
        mapping: &DestinationMap,
        dry_run: bool,
    ) -> Result<PrunePlan, CliError> {
        let mut needed = Needed::default();
        needed.keep_lock(lock, mapping);
        for path in &self.keep {
            keep(context, path, &mut needed, mapping)?;
        }
        let repositories = self.repositories()?;
        if repositories.is_empty() {
            let known: Vec<&str> = needed.repositories().into_iter().collect();
            let message = format!(
                "--prune changes only repositories that are named. The kept images are in\n  {}",
                known.join("\n  ")
            );
            return Err(CliError::usage(message).with_help(
                "add --repository NAME for each repository to prune, or --repository @FILE with \
                 one name per line",
            ));
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
            let text = input_file::text(path)?;
            let lines = text
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty() && !line.starts_with('#'));
            names.extend(lines.map(str::to_owned));
        }
        match names.iter().find(|name| !is_repository(name)) {
            Some(bad) => {
                let message = format!("'{bad}' is not a valid repository name");
                Err(CliError::usage(message).with_help("omit the registry and the tag"))
            }
            None => Ok(names.into_iter().collect()),
        }
    }
}

/// Keeps everything that the file at `path` names.
fn keep(
    context: &Context,
    path: &Path,
    needed: &mut Needed,
    mapping: &DestinationMap,
) -> Result<(), CliError> {
    if let Some(dump) = kubectl_output(path) {
        return match needed.keep_pods(&dump, mapping) {
            0 => Err(CliError::usage(format!(
                "{} contains no image of a pod",
                path.display()
            ))),
            _ => Ok(()),
        };
    }
    match OpenedFile::open(context, path)? {
        // Even for a partial bundle, the items of the complete lock are kept: the registry may have
        // items that the bundle lacks.
        OpenedFile::Bundle(bundle) => needed.keep_lock(&bundle.lock()?, mapping),
        OpenedFile::Lock(lock) => needed.keep_lock(&lock, mapping),
        OpenedFile::Receipt(receipt) if receipt.registry == mapping.target().registry => {
            needed.keep_receipt(&receipt)
        }
        OpenedFile::Receipt(receipt) => {
            return Err(CliError::usage(format!(
                "{} is the receipt of a push to {}, not to {}",
                path.display(),
                receipt.registry,
                mapping.target().registry
            )));
        }
    }
    Ok(())
}

/// Reads the output of `kubectl`: a JSON document with `apiVersion` and `kind`. `None` for any
/// other file.
fn kubectl_output(path: &Path) -> Option<Value> {
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
    /// Prunes after the push that returned `outcome`, and adds the result to it. If the push failed
    /// for some items, nothing is listed or deleted: the manifests that these items replace may
    /// still be needed.
    pub(crate) async fn run(
        &self,
        client: &Client,
        mapping: &DestinationMap,
        receipts: &BTreeSet<PathBuf>,
        mut outcome: VerbOutcome,
    ) -> Result<VerbOutcome, CliError> {
        if outcome.exit != Exit::Done {
            outcome.text += "nothing was pruned, because not everything was pushed\n";
            return Ok(outcome);
        }
        let registry = &mapping.target().registry;
        let pruned = prune(
            registry,
            &self.repositories,
            &self.needed,
            self.keep_last,
            self.delete,
            client.sessions(),
        )
        .await;
        // The totals of the client include the push.
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
        outcome.report.add(ReportMember::Pruned {
            deleted: self.delete,
            repositories: pruned.repositories.clone(),
            manifests: pruned.gone.clone(),
            bytes: pruned.bytes,
        });
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
                if let Err(error) = record_pruned(path, &pruned.gone) {
                    // the report has the deleted manifests
                    return Err(error.with_report(outcome.report));
                }
            }
        }
        Ok(outcome)
    }

    fn text(&self, pruned: &Pruned) -> String {
        let mut text = String::new();
        for looked in &pruned.repositories {
            if let Some(why) = &looked.why {
                let _ = writeln!(text, "skipped  {}: {why}", looked.repository);
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
            "{} {} of {}{}; {} kept{}",
            if self.delete {
                "deleted"
            } else {
                "would delete"
            },
            count_of(pruned.gone.len(), "manifest"),
            count_of(pruned.repositories.len(), "repository"),
            pruned
                .bytes
                .map_or_else(String::new, |bytes| format!(", {}", human_size(bytes))),
            count_of(kept, "tag"),
            if pruned.gone.is_empty() {
                ""
            } else if self.delete {
                ". The registry frees the space at its next garbage collection"
            } else {
                ". --delete deletes them"
            }
        );
        text
    }
}

/// Records the deleted manifests in a receipt of this push.
fn record_pruned(path: &Path, gone: &[PrunedManifest]) -> Result<(), CliError> {
    let mut receipt = input_file::receipt(path)?;
    receipt.pruned = gone.to_vec();
    let text = serde_json::to_string_pretty(&receipt).unwrap_or_default() + "\n";
    write_file(path, text.as_bytes()).map_err(|error| {
        let message = format!(
            "deleted, but cannot write the receipt {}: {error}",
            path.display()
        );
        CliError::new(Exit::Partial, message)
    })
}
