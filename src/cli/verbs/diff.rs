//! `landfall diff`: how two locks or bundles differ, and how much of the newer one is new.

use crate::cli::shared::bases::Given;
use crate::cli::shared::listing::count_of;
use crate::cli::shared::summary::{change_line, endpoint_line};
use crate::cli::shared::{Context, Exit, Failure, Outcome, open_bundle};
use crate::content::Entry;
use crate::lock;
use crate::lockfile::Lock;
use crate::model::{Digest, human_size};
use crate::report::{Report, escape};
use clap::Args;
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// Show how two locks or bundles differ, and how much a delta would carry
#[derive(Args)]
pub(crate) struct Diff {
    /// The older one
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The newer one
    #[arg(value_name = "NEW")]
    new: PathBuf,
}

impl Diff {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let ((old, from), (new, to)) = (held(context, &self.old)?, held(context, &self.new)?);
        let (old_entries, entries) = (old.entries(), new.entries());
        let had: HashSet<&Digest> = unique(&old_entries).into_keys().collect();
        let news = |entries: &[Entry]| {
            let unique = unique(entries).into_iter().filter(|(digest, _)| !had.contains(digest));
            unique.fold((0, 0), |(count, sum), (_, size)| (count + 1, sum + size))
        };
        let mut text = String::new();
        let mut changes = Vec::new();
        for change in lock::diff(&old, &new) {
            let is_it = |entry: &&Entry| (entry.kind, &entry.name) == (change.kind, &change.name);
            let (_, bytes) =
                entries.iter().find(is_it).map_or((0, 0), |entry| news(std::slice::from_ref(entry)));
            text += &match change.to {
                Some(_) => format!("{}  {} new\n", change_line(&change), human_size(bytes)),
                None => format!("{}\n", change_line(&change)),
            };
            let mut change = json!(change);
            change["newBytes"] = json!(bytes);
            changes.push(change);
        }
        let endpoints = lock::diff_endpoints(&old, &new);
        text.extend(endpoints.iter().map(|change| format!("{}\n", endpoint_line(change))));
        let (count, bytes) = news(&entries);
        let all: u64 = unique(&entries).values().sum();
        text += &format!(
            "{}; {} with {} are new, of {} in all\nold lock fingerprint  {from}\nnew lock fingerprint  {to}\n",
            count_of(changes.len() + endpoints.len(), "change"),
            count_of(count, "blob"),
            human_size(bytes),
            human_size(all),
        );
        let items = entries.iter().map(Entry::item).collect();
        let mut report = Report { items, ..Report::default() };
        report.extra.insert("changes".into(), changes.into());
        report.extra.insert("endpointChanges".into(), json!(endpoints));
        report
            .extra
            .insert("new".into(), json!({"lock": to, "blobs": count, "bytes": bytes, "all_bytes": all}));
        report.extra.insert("old".into(), json!({"lock": from}));
        Ok(Outcome::new(report, escape(&text), Exit::Done))
    }
}

/// The lock, or what a bundle holds of its lock; and the fingerprint of the whole lock.
fn held(context: &Context, path: &Path) -> Result<(Lock, Digest), Failure> {
    match Given::open(path)? {
        Given::Bundle(bundle) => {
            open_bundle::signed_by(context, &bundle, None)?;
            Ok((bundle.held()?, bundle.fingerprint().clone()))
        }
        Given::Lock(lock) => {
            let fingerprint = lock.fingerprint();
            Ok((lock, fingerprint))
        }
        Given::Receipt(_) => {
            let path = path.display();
            Err(Failure::usage(format!("{path} is the receipt of a push; diff compares bundles and locks")))
        }
    }
}

/// Everything under the entries, each digest once, with its size.
fn unique(entries: &[Entry]) -> BTreeMap<&Digest, u64> {
    let parts = entries.iter().flat_map(|entry| &entry.parts);
    parts.map(|part| (&part.descriptor.digest, part.descriptor.size)).collect()
}
