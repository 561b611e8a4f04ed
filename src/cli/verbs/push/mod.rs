//! `landfall push`: uploads a bundle, or the store, to a registry.

mod prune;

use self::prune::PruneFlags;
use crate::cli::shared::bundle_with_bases::{BundleWithBases, optional_store};
use crate::cli::shared::context::run_blocking;
use crate::cli::shared::delivery_flags::DeliveryFlags;
use crate::cli::shared::failed_items::item_lines;
use crate::cli::shared::finish::is_planned;
use crate::cli::shared::image_facts::ImageSignatures;
use crate::cli::shared::open_bundle::{self, BundleRequirements, SeriesHistory, put_first};
use crate::cli::shared::{CliError, Context, ReportMember, VerbOutcome, VerbReport, input_file};
use crate::push::{GitTarget, Omitted, PushOptions, SignedImages, sign_images};
use clap::Args;
use landfall_bundle as bundle;
use landfall_bundle::{Bundle, Serial, volume_locations};
use landfall_content::BlobRead;
use landfall_item::lockfile::{FILE_NAME, Lock, losses};
use landfall_model::report::{EntryCount, EntryKind, ReportItem};
use landfall_model::{Digest, redact_urls};
use landfall_signature::ImageSigningKey;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use url::Url;

/// Upload a bundle, or the store, to a registry
#[derive(Args)]
pub(crate) struct PushCommand {
    /// The bundle; without it, the content of --lock in the store. If its volumes are in several
    /// folders, name one volume in each folder, or the folders
    bundle: Option<PathBuf>,
    /// The registry, instead of --to, and the bases of a delta: bundles and push receipts. A base
    /// may be omitted if the registry already has its content
    #[arg(value_name = "REGISTRY|BASE")]
    bases: Vec<PathBuf>,
    /// The bundle, instead of the first argument
    #[arg(long = "bundle", value_name = "BUNDLE")]
    named: Option<PathBuf>,
    /// Also use the store for content that a delta omits
    #[arg(long)]
    with_store: bool,
    /// The lock that the bundle must have; without a bundle, the lock whose content in the store is
    /// pushed [default: landfall.lock]
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// The bundle digest or lock fingerprint that the bundle must have; without a bundle, the
    /// fingerprint that the lock must have
    #[arg(long, value_name = "sha256:…")]
    expect: Option<Digest>,
    /// Accept a partial bundle
    #[arg(long)]
    allow_partial: bool,
    /// Accept a bundle that is older than the last one of its series in the receipt of the site or
    /// of --receipt
    #[arg(long)]
    allow_older: bool,
    #[command(flatten)]
    signing: ImageSigningFlags,
    /// Push the git repositories to the git server at this URL instead of a registry. Each keeps
    /// its upstream path below the URL
    #[arg(long, value_name = "URL",
        conflicts_with_all = ["to", "receipt", "shard", "prune", "sign_images", "recheck",
            "all_or_nothing", "create_projects", "referrers", "skip_kinds"])]
    git_to: Option<Url>,
    #[command(flatten)]
    delivery: DeliveryFlags,
    #[command(flatten)]
    pruning: PruneFlags,
}

struct PushSource {
    lock: Lock,
    blobs: Arc<dyn BlobRead>,
    /// The blobs that the push looks up at the registry: those that no source has, and those that
    /// recipes use.
    omitted: Omitted,
    /// The complete lock, if the bundle is partial and `--prune` is given: items that the bundle
    /// lacks must not be pruned.
    whole: Option<Lock>,
    /// The fingerprint of the complete lock, which is the one that was approved.
    fingerprint: Digest,
    /// The bundle, for the report.
    bundle: Option<ReportMember>,
    serial: Option<Serial>,
    /// The bundle, if it is split and `--allow-partial` is not given: all its volumes are verified
    /// before anything is uploaded.
    volumes: Option<Bundle>,
}

impl PushCommand {
    pub(crate) fn run(mut self, context: &Context) -> Result<VerbOutcome, CliError> {
        put_first(self.named.take(), &mut self.bundle, &mut self.bases);
        // `push BUNDLE REGISTRY`: the registry may be an argument instead of a value of `--to`
        self.delivery.take_registry(&mut self.bases);
        for base in &self.bases {
            input_file::refuse_url(base)?;
        }
        if let Some(to) = self.bundle.as_deref().and_then(input_file::registry) {
            return Err(CliError::usage(format!("{to} is a registry, not a bundle"))
                .with_help(format!("name both: landfall push BUNDLE --to {to}")));
        }
        let locations = self
            .bundle
            .clone()
            // Removes the other volumes of the bundle from the bases.
            .map(|bundle| volume_locations(bundle, &mut self.bases));
        if let Some(url) = self.git_to.take() {
            return self.push_to_git(context, locations.as_deref(), url);
        }
        let mapping = self.delivery.mapping(context)?;
        let shard = self.delivery.shard.get()?;
        // the receipt of the last push, so that an older bundle of the series is refused
        let history =
            SeriesHistory::load(context, self.delivery.receipt.as_deref(), self.allow_older)?;
        let PushSource {
            lock,
            blobs,
            omitted,
            whole,
            fingerprint,
            bundle,
            serial,
            volumes,
        } = match &locations {
            Some(locations) => self.bundle_source(context, locations, &history)?,
            None => self.store_source(context)?,
        };
        let signatures = ImageSignatures::verify(context.site.as_ref(), &lock, blobs.clone())?;
        let delivery = self.delivery.options(context);
        // with `--sign-images`, the new signatures become referrers of the images in the lock
        let SignedImages { lock, made, blobs } =
            match self.signing.key()? {
                Some(key) => sign_images(lock, blobs, &mapping, &key, delivery.referrers).map_err(
                    |error| CliError::refused(format!("a signature cannot be read: {error}")),
                )?,
                None => SignedImages {
                    lock,
                    made: BTreeSet::new(),
                    blobs,
                },
            };
        let dry_run = self.delivery.dry_run;
        // planned before the push, so that bad arguments of `--prune` stop it
        let prune = || {
            self.pruning
                .plan(context, whole.as_ref().unwrap_or(&lock), &mapping, dry_run)
        };
        let prune = self.pruning.prune.then(prune).transpose()?;
        context.page.set_content(&lock, Some(&*blobs));
        let mut result = context.run(async {
            let client = context.client_for_lock(Path::new(FILE_NAME), shard, &[])?;
            // Damage in a bundle stops the push. From a store, or with --allow-partial, only the
            // damaged items fail.
            let stop_at_damage = self.bundle.is_some() && !self.allow_partial;
            let options = PushOptions {
                stop_at_damage,
                own_signatures: made,
                ..delivery
            };
            // Verifying reads every volume, so a dry run first finds out whether the registry
            // lacks anything. If the dry run fails, so does the push, with the better error.
            if let Some(volumes) = volumes.filter(|_| !options.dry_run) {
                let dry_run = PushOptions {
                    dry_run: true,
                    ..options.clone()
                };
                let pushed = client
                    .push(&lock, blobs.clone(), &omitted, &mapping, dry_run)
                    .await;
                if pushed.is_ok_and(|pushed| pushed.items.iter().any(is_planned)) {
                    check_volumes(volumes, context).await?;
                }
            }
            let pushing = client.push(&lock, blobs, &omitted, &mapping, options);
            let series = history.after(serial.as_ref());
            let delivering =
                self.delivery
                    .run(context, &client, &fingerprint, &series, &mapping, pushing);
            let outcome = Box::pin(delivering).await?;
            match prune {
                Some(prune) => {
                    Box::pin(prune.run(
                        &client,
                        &mapping,
                        &self.delivery.receipts(context),
                        outcome,
                    ))
                    .await
                }
                None => Ok(outcome),
            }
        });
        let report = match &mut result {
            Ok(outcome) => {
                outcome.text += &signatures.lines();
                &mut outcome.report
            }
            Err(failure) => &mut failure.report,
        };
        signatures.add_to(report);
        bundle.into_iter().for_each(|member| report.add(member));
        result
    }

    /// Pushes the git repositories to the git server at `url`.
    fn push_to_git(
        &self,
        context: &Context,
        locations: Option<&[PathBuf]>,
        url: Url,
    ) -> Result<VerbOutcome, CliError> {
        if let Some(registry) = &self.delivery.to {
            let message =
                format!("--git-to pushes to a git server, not to the registry {registry}");
            return Err(CliError::usage(message)
                .with_help("omit the registry, or push to it with a command of its own"));
        }
        let history = SeriesHistory::load(context, None, self.allow_older)?;
        let PushSource {
            lock,
            blobs,
            fingerprint,
            bundle,
            ..
        } = match locations {
            Some(locations) => self.bundle_source(context, locations, &history)?,
            None => self.store_source(context)?,
        };
        let mut delivered = lock.clone();
        delivered.retain(|item| item.kind() == EntryKind::Git);
        let signatures = ImageSignatures::verify(context.site.as_ref(), &delivered, blobs.clone())?;
        let target = GitTarget {
            move_refs: self.delivery.move_tags,
            dry_run: self.delivery.dry_run,
            url,
        };
        context.run(async {
            let client = context.client()?;
            let mut items = client.push_git(&lock, blobs, &target).await?;
            let lost = losses(&lock).into_iter();
            items.extend(lost.filter(|item| item.kind == EntryKind::Git));
            let mut report = VerbReport::from(client.report(items));
            let to = redact_urls(target.url.as_str());
            report.add(ReportMember::To(to.clone()));
            report.add(ReportMember::Lock(fingerprint));
            signatures.add_to(&mut report);
            bundle.into_iter().for_each(|member| report.add(member));
            let (dry, others): (Vec<&ReportItem>, Vec<&ReportItem>) =
                report.items.iter().partition(|item| is_planned(item));
            let mut text = String::new();
            for ReportItem { name, reason, .. } in dry {
                text += &format!("{name} {}\n", reason.as_deref().unwrap_or_default());
            }
            text += &item_lines(others.into_iter().filter(|item| item.reason.is_some()));
            let totals = report.totals();
            text += &format!(
                "{} at {to}: {} changed, {} up to date, {} not pushed\n",
                EntryCount::from_items(EntryKind::Git, &report.items),
                totals.done,
                totals.present,
                totals.items - totals.done - totals.present
            );
            Ok(VerbOutcome::of_run(target.dry_run, report, text))
        })
    }

    /// A bundle as the source.
    fn bundle_source(
        &self,
        context: &Context,
        locations: &[PathBuf],
        history: &SeriesHistory,
    ) -> Result<PushSource, CliError> {
        let lock = open_bundle::lock_fingerprints(self.lock.as_deref())?;
        let expect = self.expect.as_slice();
        let allow_partial = self.allow_partial;
        let requirements = BundleRequirements {
            expect,
            lock: &lock,
            allow_partial,
            takes_rest: allow_partial,
            history: Some(history),
            ..BundleRequirements::default()
        };
        let accepted = open_bundle::open(context, locations, &requirements)?;
        let lock = accepted.bundle.available_lock()?;
        let bundle = Some(accepted.report_member());
        let fingerprint = accepted.bundle.fingerprint().clone();
        let serial = accepted.bundle.serial();
        let is_partial = !accepted.bundle.partial().is_empty();
        let whole = (self.pruning.prune && is_partial).then(|| accepted.bundle.lock());
        let whole = whole.transpose()?;
        let volumes =
            Some(accepted.bundle.clone()).filter(|bundle| bundle.is_split() && !allow_partial);
        let chain = BundleWithBases::new(
            context,
            accepted.bundle,
            &self.bases,
            optional_store(context, self.with_store)?,
            true,
        )?;
        let omitted = chain.omitted(&lock.entries())?;
        Ok(PushSource {
            whole,
            lock,
            blobs: chain.blobs,
            omitted,
            fingerprint,
            bundle,
            serial,
            volumes,
        })
    }

    /// The store as the source.
    fn store_source(&self, context: &Context) -> Result<PushSource, CliError> {
        let path = self.lock.as_deref().unwrap_or(Path::new(FILE_NAME));
        let lock = context.read_lock(path)?;
        let fingerprint = lock.fingerprint();
        if let Some(expect) = self
            .expect
            .as_ref()
            .filter(|expect| **expect != fingerprint)
        {
            return Err(CliError::refused(format!(
                "{} does not match --expect\n  expected          {expect}\n  lock fingerprint  \
                 {fingerprint}",
                path.display()
            )));
        }
        let blobs = context.store()?;
        let omitted = Omitted::default();
        Ok(PushSource {
            whole: None,
            lock,
            blobs,
            omitted,
            fingerprint,
            bundle: None,
            serial: None,
            volumes: None,
        })
    }
}

/// Verifies all volumes, so that nothing of a damaged set is uploaded.
async fn check_volumes(volumes: Bundle, context: &Context) -> Result<(), CliError> {
    let progress = Arc::clone(&context.progress);
    run_blocking("the check", move || bundle::verify(&volumes, &*progress)).await??;
    Ok(())
}

/// The environment variable with the password of the key. cosign reads it too.
const PASSWORD: &str = "COSIGN_PASSWORD";

#[derive(Args)]
struct ImageSigningFlags {
    /// Sign the delivered images with this private key, so that `cosign verify --key` accepts them
    /// at the registry: ECDSA P-256 in PEM (PKCS#8), or a key of `cosign generate-key-pair`, whose
    /// password is read from `COSIGN_PASSWORD`
    #[arg(long, value_name = "KEY")]
    sign_images: Option<PathBuf>,
    /// Read the password of the key from the first line of this file
    #[arg(long, value_name = "FILE", requires = "sign_images")]
    sign_images_password: Option<PathBuf>,
}

impl ImageSigningFlags {
    /// Loads the key, if one is named.
    fn key(&self) -> Result<Option<ImageSigningKey>, CliError> {
        let Some(path) = &self.sign_images else {
            return Ok(None);
        };
        let shown = path.display();
        let pem = input_file::text(path)?;
        let password = self.password()?;
        let password = password.as_ref().map(String::as_bytes);
        let key = ImageSigningKey::from_pem(&pem, password).map_err(|mut failure| {
            failure.message = format!("{shown} cannot sign images: {failure}");
            failure
        })?;
        Ok(Some(key))
    }

    fn password(&self) -> Result<Option<String>, CliError> {
        let Some(path) = &self.sign_images_password else {
            return Ok(std::env::var(PASSWORD).ok());
        };
        let text = input_file::text(path)?;
        Ok(Some(text.lines().next().unwrap_or_default().to_owned()))
    }
}
