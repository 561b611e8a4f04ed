//! `landfall ls`: what is in a bundle or a lock.

use crate::bundle::Bundle;
use crate::cli::shared::bases::{Given, needs, omitted, unreadable};
use crate::cli::shared::listing::{count, line, lines, platforms, unique_bytes};
use crate::cli::shared::summary::item_line;
use crate::cli::shared::{Context, Exit, Failure, Outcome, open_bundle};
use crate::content::Entry;
use crate::content::missing_blobs;
use crate::lockfile::losses;
use crate::model::human_size;
use crate::report::{Item, Report, Status, escape};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// List what is in a bundle or a lock
#[derive(Args)]
pub(crate) struct Ls {
    /// The bundle or the lock
    #[arg(value_name = "BUNDLE|LOCK")]
    file: PathBuf,
}

impl Ls {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let (bundle, lock, entries) = match Given::open(&self.file)? {
            Given::Bundle(bundle) => {
                let (lock, entries) = (bundle.lock()?, bundle.entries()?);
                (Some(bundle), lock, entries)
            }
            Given::Lock(lock) => {
                let entries = lock.entries();
                (None, lock, entries)
            }
            Given::Receipt(_) => {
                let file = self.file.display();
                return Err(Failure::usage(format!(
                    "{file} is the receipt of a push; ls lists bundles and locks"
                )));
            }
        };
        let platforms = platforms(&lock);
        let platforms_of = |name: &str| {
            let platforms = platforms.get(name).into_iter().flatten();
            platforms.cloned().collect::<Vec<_>>().join(",")
        };
        let mut items: Vec<Item> = entries.iter().map(Entry::item).collect();
        let listed: String = items.iter().map(|item| line(item, &platforms_of(&item.name))).collect();
        let mut text = format!("{listed}{}, {}\n", count(&items), human_size(unique_bytes(&entries)));
        let fingerprint = match &bundle {
            Some(bundle) => bundle.fingerprint().clone(),
            None => lock.fingerprint(),
        };
        let mut extra = json!({"lock": fingerprint, "platforms": platforms});
        if let Some(bundle) = &bundle {
            text += &left_out(bundle, &entries)?;
            text += &format!("bundle digest     {}\n", bundle.digest());
            let signed_by = open_bundle::signed_by(context, bundle, None)?;
            extra["bundle"] = open_bundle::told(&self.file, bundle, signed_by.as_deref());
            text.extend(signed_by.iter().flatten().map(|by| format!("signed by         {by}\n")));
        }
        text += &format!("lock fingerprint  {fingerprint}\n");
        // what the bundle lacks is among the unresolved ones
        let held = bundle.as_ref().map(Bundle::held).transpose()?.unwrap_or(lock);
        let losses = losses(&held);
        let told = |of: Status| {
            lines(&losses.iter().filter(|item| item.status == of).map(item_line).collect::<Vec<_>>())
        };
        text += &told(Status::Skipped);
        if losses.iter().any(|item| item.status == Status::Missing) {
            text += &format!("partial; it lacks\n{}", told(Status::Missing));
        }
        items.extend(losses);
        let mut report = Report { items, ..Report::default() };
        if let serde_json::Value::Object(extra) = extra {
            report.extra = extra;
        }
        Ok(Outcome { report, text: escape(&text), exit: Exit::Done })
    }
}

/// What a delta leaves out: each blob, and what it is for.
fn left_out(bundle: &Bundle, entries: &[Entry]) -> Result<String, Failure> {
    if bundle.omitted().is_empty() {
        return Ok(String::new());
    }
    let mut text = format!("a delta: it leaves out {}\n", omitted(bundle));
    for lacking in missing_blobs(entries, bundle).map_err(unreadable)? {
        let (digest, size) = (lacking.blob.digest.short(12), human_size(lacking.blob.size));
        text += &format!("  {digest}  {size:>8}  for {}\n", lacking.items.join(", "));
    }
    Ok(text + &needs(bundle))
}
