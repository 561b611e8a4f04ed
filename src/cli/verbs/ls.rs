//! `landfall ls`: lists the content of a bundle or a lock.

use crate::cli::shared::bundle_with_bases::{base_lines, omitted_size, patched_size, unreadable};
use crate::cli::shared::failed_items::item_line;
use crate::cli::shared::input_file::OpenedFile;
use crate::cli::shared::listing::{count, line, lines, platforms, referrer_counts, unique_bytes};
use crate::cli::shared::{
    CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport, open_bundle,
};
use clap::Args;
use landfall_bundle::{BlobRecipe, Bundle, volume_locations};
use landfall_content::{BlobRead, LockEntry, MissingBlob, missing_blobs};
use landfall_item::lockfile::losses;
use landfall_model::report::{ItemStatus, ReportItem, count_of};
use landfall_model::sign::Signature;
use landfall_model::{Digest, human_size};
use serde_json::json;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

/// List the content of a bundle or lock
#[derive(Args)]
pub(crate) struct LsCommand {
    /// The bundle or the lock
    #[arg(value_name = "BUNDLE|LOCK", required_unless_present_any = ["bundle", "lock"])]
    file: Option<PathBuf>,
    /// If the volumes of the bundle are in several folders: one volume in each further folder, or
    /// the folder itself
    #[arg(value_name = "VOLUME|FOLDER", conflicts_with_all = ["bundle", "lock"])]
    more: Vec<PathBuf>,
    /// The bundle, instead of the argument
    #[arg(long, value_name = "BUNDLE", conflicts_with_all = ["file", "lock"])]
    bundle: Option<PathBuf>,
    /// The lock, instead of the argument
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    lock: Option<PathBuf>,
}

impl LsCommand {
    pub(crate) fn run(mut self, context: &Context) -> Result<VerbOutcome, CliError> {
        let file = self.file.or(self.bundle).or(self.lock).unwrap_or_default();
        let locations = volume_locations(file.clone(), &mut self.more);
        if let Some(other) = self.more.first() {
            let other = other.display();
            let file = file.display();
            return Err(CliError::usage(format!(
                "{other} contains no volume of {file}; ls lists one bundle at a time"
            )));
        }
        let given = match locations.len() {
            1 => OpenedFile::open(context, &file)?,
            _ => OpenedFile::Bundle(open_bundle::open_any(context, &locations)?),
        };
        let (bundle, lock, entries) = match given {
            OpenedFile::Bundle(bundle) => {
                let lock = bundle.lock()?;
                let entries = bundle.entries()?;
                (Some(bundle), lock, entries)
            }
            OpenedFile::Lock(lock) => {
                let entries = lock.entries();
                (None, lock, entries)
            }
            OpenedFile::Receipt(_) => {
                let file = file.display();
                return Err(CliError::usage(format!(
                    "{file} is a push receipt; ls lists bundles and locks"
                )));
            }
        };
        let platforms = platforms(&lock);
        let platforms_of = |name: &str| {
            let platforms = platforms.get(name).into_iter().flatten();
            platforms.cloned().collect::<Vec<_>>().join(",")
        };
        let about = |item: &ReportItem| match item.packages {
            0 => platforms_of(&item.name),
            packages => count_of(packages, "package"),
        };
        let mut items: Vec<ReportItem> = entries.iter().map(LockEntry::item).collect();
        let referrers: BTreeMap<String, BTreeMap<&str, usize>> = entries
            .iter()
            .filter(|entry| !entry.referrers.is_empty())
            .map(|entry| {
                (
                    entry.name.clone(),
                    referrer_counts(entry, bundle.as_ref().map(|bundle| bundle as &dyn BlobRead)),
                )
            })
            .collect();
        let referrers_line = |item: &ReportItem| match referrers.get(&*item.name) {
            Some(counts) => {
                let counts = counts.iter().map(|(what, count)| count_of(*count, what));
                format!("       with {}\n", counts.collect::<Vec<_>>().join(", "))
            }
            None => String::new(),
        };
        let listed: String = items
            .iter()
            .map(|item| line(item, &about(item)) + &referrers_line(item))
            .collect();
        let mut text = format!(
            "{listed}{}, {}\n",
            count(&items),
            human_size(unique_bytes(&entries))
        );
        for endpoint in &lock.endpoints {
            let from = if endpoint.from.is_empty() {
                String::new()
            } else {
                format!(" (from {})", endpoint.from.join(", "))
            };
            text += &format!("endpoint          {endpoint}: {}{from}\n", endpoint.why);
        }
        let fingerprint = match &bundle {
            Some(bundle) => bundle.fingerprint().clone(),
            None => lock.fingerprint(),
        };
        let mut report = VerbReport::default();
        report.add(ReportMember::Lock(fingerprint.clone()));
        let by_name = platforms
            .iter()
            .map(|(name, all)| (name.clone(), json!(all)));
        report.add(ReportMember::Platforms(by_name.collect()));
        report.add(ReportMember::Referrers(referrers));
        report.add(ReportMember::Endpoints(lock.endpoints.clone()));
        if let Some(bundle) = &bundle {
            text += &lines_about_bases(bundle, &entries)?;
            text += &format!("bundle digest     {}\n", bundle.digest());
            let signed_by = open_bundle::signed_by(context, bundle, None)?;
            report.add(open_bundle::report_member(
                &file,
                bundle,
                signed_by.as_deref(),
            ));
            text += &match signed_by {
                Some(by) => by
                    .iter()
                    .map(|by| format!("signed by         {by}\n"))
                    .collect(),
                None => unchecked_signatures(bundle),
            };
        }
        text += &format!("lock fingerprint  {fingerprint}\n");
        // In the available lock of a partial bundle, the items that the bundle lacks are
        // unresolved.
        let held = bundle
            .as_ref()
            .map(Bundle::available_lock)
            .transpose()?
            .unwrap_or(lock);
        let losses = losses(&held);
        let lines_with = |of: ItemStatus| {
            lines(
                &losses
                    .iter()
                    .filter(|item| item.status == of)
                    .map(item_line)
                    .collect::<Vec<_>>(),
            )
        };
        text += &lines_with(ItemStatus::Skipped);
        if losses.iter().any(|item| item.status == ItemStatus::Missing) {
            text += &format!("partial; it lacks\n{}", lines_with(ItemStatus::Missing));
        }
        items.extend(losses);
        report.items = items;
        Ok(VerbOutcome::new(report, text, Exit::Done))
    }
}

/// The lines about signatures that were not checked.
fn unchecked_signatures(bundle: &Bundle) -> String {
    let lines = bundle
        .signatures()
        .iter()
        .map(|text| match Signature::parse(text.as_bytes()) {
            Ok(signature) => {
                format!(
                    "signature         {} (not checked; use verify --allowed-signers FILE)\n",
                    signature.key()
                )
            }
            Err(error) => format!("signature         cannot be read: {error}\n"),
        });
    if bundle.signatures().is_empty() {
        "signature         none\n".into()
    } else {
        lines.collect()
    }
}

/// The lines about content that the bundle does not contain as it is: each blob that it omits or
/// has a patch for, the items that need the blob, and the bases.
fn lines_about_bases(bundle: &Bundle, entries: &[LockEntry]) -> Result<String, CliError> {
    let omitted: HashSet<&Digest> = bundle.omitted().iter().map(|blob| &blob.digest).collect();
    let recipes = &bundle.contents().recipes;
    let recipes: HashMap<&Digest, &BlobRecipe> = recipes
        .iter()
        .map(|recipe| (&recipe.blob.digest, recipe))
        .collect();
    let mut left_out = String::new();
    let mut patched = String::new();
    let mut lacking = Vec::new();
    if !omitted.is_empty() || !recipes.is_empty() {
        lacking = missing_blobs(entries, bundle).map_err(unreadable)?;
    }
    for MissingBlob { blob, items } in &lacking {
        let digest = blob.digest.short(12);
        let size = human_size(blob.size);
        let line = format!("  {digest}  {size:>8}  for {}", items.join(", "));
        if omitted.contains(&blob.digest) {
            left_out += &format!("{line}\n");
        } else if let Some(recipe) = recipes.get(&blob.digest) {
            patched += &format!("{line}: {}\n", patch_text(bundle, recipe));
        }
    }
    if !omitted.is_empty() {
        left_out.insert_str(
            0,
            &format!("a delta, which omits {}\n", omitted_size(bundle)),
        );
    }
    if bundle.has_recipes() {
        patched.insert_str(0, &format!("patches of {}\n", patched_size(bundle)));
    }
    Ok(left_out + &patched + &base_lines(bundle))
}

/// `18 kB of patch, from 8d5e957f2978 of q.test/app:1`: the size of a patch, and the blobs that it
/// needs, each with the image or path that has it.
fn patch_text(bundle: &Bundle, recipe: &BlobRecipe) -> String {
    let mut entries = bundle.contents().entries.iter();
    let entry = entries.find(|entry| entry.name == recipe.entry);
    let size = human_size(entry.map_or(0, |entry| entry.size));
    let from = recipe.from.iter().map(|base| {
        let mut references = bundle.references().iter();
        let reference = references.find(|one| one.blob.digest == *base);
        match reference.and_then(|one| one.image.as_ref().or(one.path.as_ref())) {
            Some(name) => format!("{} of {name}", base.short(12)),
            None => base.short(12),
        }
    });
    let from: Vec<String> = from.collect();
    match &from[..] {
        [] => format!("{size} of patch"),
        from => format!("{size} of patch, from {}", from.join(" and ")),
    }
}
