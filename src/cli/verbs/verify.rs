//! `landfall verify`: checks that a bundle is intact, and that it is the approved one.

use crate::cli::shared::bundle_with_bases::{
    BundleWithBases, base_lines, omitted_size, patched_size,
};
use crate::cli::shared::context::run_blocking;
use crate::cli::shared::failed_items::item_line;
use crate::cli::shared::image_facts::ImageSignatures;
use crate::cli::shared::listing::{count, lines, unique_bytes};
use crate::cli::shared::open_bundle::{self, AcceptedBundle, BundleRequirements, put_first};
use crate::cli::shared::shard::{ShardFlag, part_prefix, report_shard};
use crate::cli::shared::verb_report::RepositoryRow;
use crate::cli::shared::{CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport};
use clap::Args;
use landfall_bundle as bundle;
use landfall_bundle::{Bundle, Serial, volume_locations};
use landfall_content::{BlobRead, LockEntry, ShardEntry, missing_blobs};
use landfall_item::lockfile::{Lock, losses};
use landfall_item::{LockedGitRepository, LockedItem};
use landfall_model::report::{ItemStatus, Progress, ReportItem, count_of};
use landfall_model::{Digest, Limits, Shard, human_size};
use std::path::PathBuf;
use std::sync::Arc;

/// Check a bundle's bytes, signatures and approval
///
/// The packs of git repositories must have every object that the refs need. If a delta omits packs
/// of a repository, they are checked only if the bases are given.
#[derive(Args)]
pub(crate) struct VerifyCommand {
    /// The bundle. If its volumes are in several folders, name one volume in each
    /// folder, or the folders
    #[arg(value_name = "BUNDLE", required_unless_present = "named")]
    bundle: Option<PathBuf>,
    /// Bases of a delta: also check them, and that they have everything that the delta omits
    #[arg(value_name = "BASE")]
    bases: Vec<PathBuf>,
    /// The bundle, instead of the first argument
    #[arg(long = "bundle", value_name = "BUNDLE")]
    named: Option<PathBuf>,
    /// The allowed signers, in the format of OpenSSH [default: signers of the site]
    #[arg(long, value_name = "FILE")]
    allowed_signers: Option<PathBuf>,
    /// The bundle digest or lock fingerprint that the bundle must have
    #[arg(long, value_name = "sha256:…")]
    expect: Option<Digest>,
    /// The lock that the bundle must have
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// Accept a partial bundle
    #[arg(long)]
    allow_partial: bool,
    #[command(flatten)]
    shard: ShardFlag,
}

impl VerifyCommand {
    pub(crate) fn run(mut self, context: &Context) -> Result<VerbOutcome, CliError> {
        put_first(self.named.take(), &mut self.bundle, &mut self.bases);
        let locations = volume_locations(self.bundle.take().unwrap_or_default(), &mut self.bases);
        let shard = self.shard.get()?;
        let lock = open_bundle::lock_fingerprints(self.lock.as_deref())?;
        let requirements = BundleRequirements {
            expect: self.expect.as_slice(),
            lock: &lock,
            signers: self.allowed_signers.as_deref(),
            allow_partial: self.allow_partial,
            ..BundleRequirements::default()
        };
        // Bundle content that is read here is unverified until the checks below have run.
        let accepted = open_bundle::open(context, &locations, &requirements)?;
        let chain = self.with_bases(context, accepted.bundle.clone())?;
        let progress = Arc::clone(&context.progress);
        // If the lock cannot be read, the check below reports the damage.
        if context.page.is_wanted
            && let Ok(held) = accepted.bundle.available_lock()
        {
            context.page.set_content(&held, Some(&accepted.bundle));
        }
        let site = context.site.clone();
        let limits = context.limits;
        context.run(async move {
            run_blocking("the check", move || {
                for bundle in std::iter::once(&chain.bundle).chain(&chain.bases) {
                    bundle::verify_shard(bundle, shard, &*progress)?;
                }
                let lock = accepted.bundle.available_lock()?;
                let git = if shard.is_first() {
                    chain.prove_recipes(&*progress)?;
                    GitObjects::verify(&lock, &chain.blobs, limits, &*progress)?
                } else {
                    GitObjects::default()
                };
                let signatures =
                    ImageSignatures::verify(site.as_ref(), &lock, chain.blobs.clone())?;
                self.outcome(&accepted, shard, &git, &signatures)
            })
            .await?
        })
    }

    /// The bundle with its bases. Named bases must have the content that the bundle omits.
    fn with_bases(&self, context: &Context, bundle: Bundle) -> Result<BundleWithBases, CliError> {
        let chain = BundleWithBases::new(context, bundle, &self.bases, None, false)?;
        if !self.bases.is_empty() {
            chain.check_complete(&chain.bundle.entries()?)?;
        }
        Ok(chain)
    }

    fn outcome(
        &self,
        accepted: &AcceptedBundle,
        shard: Shard,
        git: &GitObjects,
        signatures: &ImageSignatures,
    ) -> Result<VerbOutcome, CliError> {
        let bundle = &accepted.bundle;
        let own = bundle::shard_parts(bundle, shard)?;
        let mut report = VerbReport::of(own.iter().map(ShardEntry::item).collect());
        let entries: Vec<LockEntry> = own.into_iter().map(|own| own.entry).collect();
        let runner = report_shard(&self.shard, shard, &mut report);
        let part_prefix = part_prefix(shard);
        let count = count(&report.items);
        let losses = losses(&bundle.available_lock()?);
        let loss_lines: Vec<String> = losses.iter().map(item_line).collect();
        report.items.extend(losses);
        report.add(accepted.report_member());
        signatures.add_to(&mut report);
        git.add_to(&mut report);
        let partial = match bundle.partial().len() {
            0 => String::new(),
            lost => format!(", partial: it lacks {} of the lock", count_of(lost, "item")),
        };
        let origin = match (accepted.signed_by_text(), bundle.signatures().is_empty()) {
            (Some(signers), _) => signers,
            (None, true) => "origin not proven (not signed)".into(),
            (None, false) => {
                "origin not proven (signed; --allowed-signers FILE checks by whom)".to_owned()
            }
        };
        let serial = bundle.serial();
        let serial = serial.map(|Serial { series, number }| {
            format!("  series            {series}, number {number}\n")
        });
        let text = format!(
            "{runner}{}: {}consistent, {origin}{partial}\n  bundle digest     {}\n  lock \
             fingerprint  {}\n{}{}{}{}  {part_prefix}{}, {}\n{}",
            accepted.path.display(),
            if shard.is_only() { "" } else { "its part is " },
            bundle.digest(),
            bundle.fingerprint(),
            serial.unwrap_or_default(),
            signatures.lines(),
            git.lines(),
            self.delta_lines(bundle, shard),
            count,
            human_size(unique_bytes(&entries)),
            lines(&loss_lines),
        );
        Ok(VerbOutcome::new(report, text, Exit::Done))
    }

    /// The lines about content that the bundle omits or has as patches, and about the bases.
    fn delta_lines(&self, bundle: &Bundle, shard: Shard) -> String {
        self.omission_lines(bundle) + &self.recipe_lines(bundle, shard)
    }

    /// The lines about the patches of a bundle.
    fn recipe_lines(&self, bundle: &Bundle, shard: Shard) -> String {
        if !bundle.has_recipes() {
            return String::new();
        }
        let is_proven = bundle.references().is_empty() || !self.bases.is_empty();
        if is_proven {
            let rebuilt = if shard.is_first() {
                "all rebuilt"
            } else {
                "rebuilt by the first shard only"
            };
            format!("  patched           {}, {rebuilt}\n", patched_size(bundle))
        } else {
            let needs = if bundle.omitted().is_empty() {
                base_lines(bundle)
            } else {
                String::new()
            };
            format!(
                "  patched           {}, not rebuilt without a base\n{needs}",
                patched_size(bundle)
            )
        }
    }

    fn omission_lines(&self, bundle: &Bundle) -> String {
        match (bundle.omitted().is_empty(), self.bases.is_empty()) {
            (true, _) => String::new(),
            (false, true) => format!(
                "  left out          {}\n{}",
                omitted_size(bundle),
                base_lines(bundle)
            ),
            (false, false) => format!(
                "  left out          {}, all in its bases\n",
                omitted_size(bundle)
            ),
        }
    }
}

/// The git repositories of a lock, by whether their objects were checked.
#[derive(Default)]
struct GitObjects {
    /// The names of the repositories whose packs have everything that their refs need.
    complete: Vec<String>,
    /// The names of the repositories whose packs are not all present.
    unchecked: Vec<String>,
}

impl GitObjects {
    /// Reads the packs of all repositories in `lock` from `blobs`, one repository after the other.
    /// Refuses the lock if an object is missing or not valid.
    fn verify(
        lock: &Lock,
        blobs: &Arc<dyn BlobRead>,
        limits: Limits,
        progress: &dyn Progress,
    ) -> Result<GitObjects, CliError> {
        let mut objects = GitObjects::default();
        if lock.git.is_empty() {
            return Ok(objects);
        }
        let mut failed = Vec::new();
        progress.begin("check git", lock.git.len() as u64, 0);
        for repository in &lock.git {
            let name = repository.name.clone();
            if has_packs(repository, &**blobs)? {
                match repository.verify_objects(&lock.git, blobs, limits) {
                    Ok(()) => objects.complete.push(name),
                    Err(error) => failed.push(ReportItem {
                        status: ItemStatus::Failed,
                        reason: Some(error.to_string()),
                        ..LockedItem::Git(repository).entry().item()
                    }),
                }
            } else {
                objects.unchecked.push(name);
            }
            progress.item(&repository.name);
        }
        progress.end();
        if failed.is_empty() {
            return Ok(objects);
        }
        Err(incomplete(failed))
    }

    /// The lines of text mode; empty if there are no repositories.
    fn lines(&self) -> String {
        let mut lines = String::new();
        if !self.complete.is_empty() {
            let count = count_of(self.complete.len(), "repository");
            lines += &format!("  git               {count} complete\n");
        }
        for name in &self.unchecked {
            lines += &format!("  not checked       {name}: not all of its packs are here\n");
        }
        lines
    }

    /// Adds the member `repositories` to a report, if there are any repositories.
    fn add_to(&self, report: &mut VerbReport) {
        let complete = self.complete.iter().map(|name| (name, true));
        let all = complete.chain(self.unchecked.iter().map(|name| (name, false)));
        let rows: Vec<_> = all
            .map(|(name, checked)| RepositoryRow {
                name: name.clone(),
                checked,
            })
            .collect();
        if !rows.is_empty() {
            report.add(ReportMember::Repositories(rows));
        }
    }
}

/// Whether all packs of a repository are present. A delta or a partial bundle may lack some.
fn has_packs(repository: &LockedGitRepository, blobs: &dyn BlobRead) -> Result<bool, CliError> {
    let entry = LockedItem::Git(repository).entry();
    let missing = missing_blobs([&entry], blobs);
    let missing = missing.map_err(|error| CliError::refused(error.to_string()))?;
    let is_missing = |digest: &Digest| missing.iter().any(|one| one.blob.digest == *digest);
    Ok(!repository.packs.iter().any(|pack| is_missing(&pack.digest)))
}

fn incomplete(failed: Vec<ReportItem>) -> CliError {
    let verb = if failed.len() == 1 { "is" } else { "are" };
    let head = format!(
        "{} {verb} not complete",
        count_of(failed.len(), "git repository")
    );
    CliError::refused_items(head, failed).with_help(
        "the transfer did not damage the bundle: lock the repository again, and pack a new bundle",
    )
}
