//! `landfall pack`: packs the items of a lock into one bundle.

use crate::cli::help::man::all_pages;
use crate::cli::shared::bundle_flags::LockArgs;
use crate::cli::shared::bundle_report::{
    MAX_MISSING, SerialFlags, dry_run, note_whole_file, outcome, pack_report, paths, report_bundle,
    signed_lines, signer, volume_lines,
};
use crate::cli::shared::context::run_blocking;
use crate::cli::shared::failed_items::shortened;
use crate::cli::shared::image_facts::ImageSignatures;
use crate::cli::shared::input_file::OpenedFile;
use crate::cli::shared::listing::count;
use crate::cli::shared::open_bundle::{self, BundleRequirements, object};
use crate::cli::shared::output_file::{check_folder, result_stdout};
use crate::cli::shared::patch_report::PatchReport;
use crate::cli::shared::store_location::open_existing;
use crate::cli::shared::{CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport};
use crate::client::{BundleUpload, DeliveredBundles};
use clap::{Args, Command};
use landfall_bundle as bundle;
use landfall_bundle::tar_header::{END, encode, padding};
use landfall_bundle::{PackOptions, PackPlan, Packaging, PackedBundle, VolumeSize};
use landfall_content::bucket::Bucket;
use landfall_content::store::DiskStore;
use landfall_content::{
    BlobChain, BlobRead, BlobStore, EntryPart, LockEntry, present_blobs, unique_blobs,
};
use landfall_item::lockfile::{FILE_NAME, Lock};
use landfall_model::report::{EntryKind, ItemStatus, TransferSide, count_of, shell_word};
use landfall_model::sign::PublicKey;
use landfall_model::{Descriptor, human_size, sum_sizes, today};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The bundle that is written unless `--out` names another one.
const BUNDLE: &str = "bundle.tar.zst";

/// Pack the items of a lock into one bundle file
#[derive(Args)]
pub(crate) struct PackCommand {
    #[command(flatten)]
    lock: LockArgs,
    /// The bundle to write: a file, s3://…, or - for stdout [default: bundle.tar.zst]
    #[arg(short, long, value_name = "BUNDLE|-")]
    out: Option<PathBuf>,
    /// Leave out what this bundle, lock or push receipt contains (if repeated: what all of them
    /// contain)
    #[arg(long, value_name = "BUNDLE|LOCK|RECEIPT", conflicts_with = "like")]
    since: Vec<PathBuf>,
    /// Replace changed layers and files by patches, which rebuild them from older versions in
    /// --since or in this bundle
    #[arg(long, conflicts_with = "like")]
    patches: bool,
    /// The zstd compression level for content that is not compressed yet
    #[arg(long, value_name = "1-19", default_value_t = 3,
        value_parser = clap::value_parser!(i32).range(1..=19))]
    level: i32,
    /// Split the bundle into volumes BUNDLE.0001, BUNDLE.0002, …. 4.7G is 4.7 × 10^9 bytes, 4GiB is
    /// 4 × 2^30
    #[arg(long, value_name = "SIZE|dvd|bd|fat32")]
    volume_size: Option<VolumeSize>,
    /// Put this program, or the one at PATH, next to the bundle, with a README for the receiver
    /// (BUNDLE.README.txt) and the manual pages (BUNDLE.man.tar) (may be repeated)
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true,
        default_missing_value = "")]
    include_self: Vec<OsString>,
    /// Sign the bundle with this OpenSSH key: a private key file without a passphrase, or, if the
    /// private key is in the SSH agent, the public key or its file
    #[arg(long, value_name = "KEY")]
    sign: Option<String>,
    #[command(flatten)]
    serial: SerialFlags,
    #[command(flatten)]
    like: RepackFlags,
    /// Pack a partial bundle if items are missing; the bundle records what it lacks
    #[arg(long)]
    allow_partial: bool,
    /// Show what would be packed and how much space it needs, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// Adds each entry to the index of the store if the store has all its parts. If several shards
/// pulled an entry, none of them could add it, because each had only some of its parts.
fn record_complete(
    store: &dyn BlobStore,
    held: impl Iterator<Item = LockEntry>,
) -> Result<(), CliError> {
    // The plan has checked stored parts. Parts that are derived from the lock may be missing if no
    // pull filled the store.
    let is_there = |part: &EntryPart| {
        let Descriptor { digest, size, .. } = &part.descriptor;
        part.is_stored() || matches!(store.stat(digest), Ok(Some(found)) if found == *size)
    };
    Ok(store.record_complete(&mut held.filter(|entry| entry.parts.iter().all(is_there)))?)
}

impl PackCommand {
    /// `command` returns the clap definition of all verbs, for the manual pages next to the bundle.
    pub(crate) fn run(
        self,
        context: &Context,
        command: fn() -> Command,
    ) -> Result<VerbOutcome, CliError> {
        if !self.like.like.is_empty() {
            let store = open_existing(&context.store_dir()?)?;
            let lock = self.lock.named().map(Path::to_path_buf);
            return context.run(self.like.run(self.out, lock, store, context));
        }
        let lock = self.lock()?.load(context)?;
        let out = self.out.clone().unwrap_or_else(|| BUNDLE.into());
        let mut delivered = DeliveredBundles::default();
        let mut bases = Vec::new();
        let mut signatures: Vec<Arc<dyn BlobRead>> = Vec::new();
        for path in &self.since {
            let opened = OpenedFile::open(context, path)?;
            if let OpenedFile::Bundle(bundle) = &opened {
                signatures.push(Arc::new(bundle.clone()));
            }
            if self.patches {
                opened.add_to(&mut delivered)?;
            }
            bases.push(opened.into_base());
        }
        let site = context.site.clone();
        let signer = signer(self.sign.as_deref())?;
        let progress = Arc::clone(&context.progress);
        let page = Arc::clone(&context.page);
        let is_verbose = context.global.verbose > 0;
        let to_stdout = out == Path::new("-") && !self.dry_run;
        let stdout = to_stdout.then(|| self.stdout(context)).transpose()?;
        let object = self.object(context, &out)?;
        if object.is_none() && !self.dry_run && out != Path::new("-") && self.volume_size.is_none()
        {
            check_folder("the bundle", &out)?;
        }
        let object = object.filter(|_| !self.dry_run);
        let store = context.store()?;
        // the signatures of a delta may be in its bases
        signatures.insert(0, store.clone());
        let signatures: Arc<dyn BlobRead> = Arc::new(BlobChain(signatures));
        let mut packaging = Packaging {
            volume_size: self.volume_size,
            tools: self.tools()?,
            documents: Vec::new(),
            signer,
        };
        context.run(async move {
            let upload = object
                .map(|(bucket, name)| BundleUpload::begin(&bucket, &name, &lock))
                .transpose()?;
            // The guard stays in this task, where Ctrl-C drops it and so aborts the upload.
            let (upload, _abort_on_drop) = upload.unzip();
            run_blocking("packing", move || {
                // Hashes blobs that were not verified yet, on all cores and with progress. The plan
                // then finds them verified.
                present_blobs(&*store, unique_blobs(lock.each_entry()), false, &*progress)?;
                page.set_content(&lock, Some(&*store));
                let mut plan = PackPlan::delta(&lock, &*store, &bases, today())?;
                plan.serial = self.serial.serial_of(&lock)?;
                let report = |status| pack_report(&lock, &plan, status);
                if !self.allow_partial
                    && let Err(error) = plan.check_complete()
                {
                    return Err(CliError::from(error).with_report(report(ItemStatus::Present)));
                }
                // An empty bundle is useless, even with --allow-partial.
                if plan.items.is_empty() && !plan.missing.is_empty() {
                    let failure = CliError::failed("the store has nothing that the lock names");
                    return Err(failure
                        .on(TransferSide::Source)
                        .with_help("run `landfall pull` first")
                        .with_report(report(ItemStatus::Present)));
                }
                let packed: BTreeSet<(EntryKind, String)> = plan
                    .included_entries(&lock)
                    .map(|entry| (entry.kind, entry.name))
                    .collect();
                let mut accepted = lock.clone();
                accepted.retain(|item| packed.contains(&(item.kind(), item.name().into_owned())));
                ImageSignatures::verify(site.as_ref(), &accepted, signatures)?;
                let mut about = self.delta_lines(&plan);
                let mut patches = None;
                if self.patches {
                    let blobs: Arc<dyn BlobRead> = store.clone();
                    let summary = delivered.patch(&mut plan, &lock, &blobs, &bases, &*progress)?;
                    let report = PatchReport::new(&plan, &lock, &summary, false);
                    about += &report.lines(is_verbose);
                    patches = Some(ReportMember::Patches(report));
                }
                let report = |status| {
                    let mut report = pack_report(&lock, &plan, status);
                    patches.into_iter().for_each(|member| report.add(member));
                    report
                };
                if self.dry_run {
                    return dry_run(&plan, &out, report(ItemStatus::Skipped), &about);
                }
                // The plan of a delta does not check omitted blobs, which the store may lack.
                if bases.is_empty() {
                    record_complete(&*store, plan.included_entries(&lock))?;
                }
                if !packaging.tools.is_empty() {
                    packaging.documents = documents(&plan, &out, &packaging, command())?;
                }
                let options = PackOptions { level: self.level };
                let signer = packaging.signer.as_deref();
                let written = match (stdout, upload) {
                    (Some(stdout), _) => {
                        bundle::write_to(&plan, &*store, stdout, options, signer, &*progress)?
                    }
                    (None, Some(upload)) => {
                        upload.write(&plan, &*store, &out, options, signer, &*progress)?
                    }
                    (None, None) => bundle::write_packaged(
                        &plan, &*store, &out, options, &packaging, &*progress,
                    )?,
                };
                note_whole_file(&out, self.volume_size.is_some(), &*progress);
                let keys: Vec<_> = packaging
                    .signer
                    .iter()
                    .map(|signer| signer.key().clone())
                    .collect();
                let mut outcome = self.done(
                    &plan,
                    &out,
                    &written,
                    &keys,
                    report(ItemStatus::Done),
                    &about,
                );
                if to_stdout {
                    // Stdout contains the bundle, so the text goes to stderr.
                    progress.note(std::mem::take(&mut outcome.text).trim_end());
                }
                Ok(outcome)
            })
            .await?
        })
    }

    /// The named lock. Fails if `--out` is not given and the file does not exist: it was probably
    /// meant as the name of the bundle.
    fn lock(&self) -> Result<&LockArgs, CliError> {
        let absent = self
            .lock
            .argument()
            .filter(|place| self.out.is_none() && !place.exists());
        match absent {
            Some(place) => {
                let place = place.display();
                Err(
                    CliError::usage(format!("there is no lock {place}")).with_help(format!(
                        "to write a bundle with this name: landfall pack -o {place}"
                    )),
                )
            }
            None => Ok(&self.lock),
        }
    }

    fn stdout(&self, context: &Context) -> Result<File, CliError> {
        self.refuse_files("-o - writes the bundle to stdout")?;
        result_stdout(context, "the bundle")
    }

    /// The object that `out` names, if it is in an object store.
    fn object(&self, context: &Context, out: &Path) -> Result<Option<(Bucket, String)>, CliError> {
        let object = object(context, out)?;
        if object.is_some() {
            self.refuse_files("a bundle in an object store is one object")?;
        }
        Ok(object)
    }

    /// Refuses flags that write files next to the bundle.
    fn refuse_files(&self, why: &str) -> Result<(), CliError> {
        if self.volume_size.is_none() && self.include_self.is_empty() {
            return Ok(());
        }
        Err(CliError::usage(format!(
            "{why}, so --volume-size and --include-self cannot be used"
        )))
    }

    /// The programs to put next to the bundle.
    fn tools(&self) -> Result<Vec<PathBuf>, CliError> {
        let own = || {
            std::env::current_exe().map_err(|error| {
                CliError::failed(format!(
                    "cannot find this program: {error}; name it with --include-self=PATH"
                ))
            })
        };
        let tools = self.include_self.iter();
        tools
            .map(|path| {
                if path.is_empty() {
                    own()
                } else {
                    Ok(path.into())
                }
            })
            .collect()
    }

    /// The lines about a delta: the content that it omits, and the bases that it needs.
    fn delta_lines(&self, plan: &PackPlan) -> String {
        match (self.since.is_empty(), plan.omitted.len()) {
            (true, _) => String::new(),
            (false, 0) => {
                "  left out          nothing: no layer or file is in all bases of --since\n".into()
            }
            (false, count) => {
                let bytes = sum_sizes(plan.omitted.iter().map(|blob| blob.size));
                let bases: Vec<String> = plan.bases.iter().map(ToString::to_string).collect();
                format!(
                    "  left out          {} ({})\n  needs             {}\n",
                    count_of(count, "blob"),
                    human_size(bytes),
                    bases.join("\n  or                ")
                )
            }
        }
    }

    fn done(
        &self,
        plan: &PackPlan,
        out: &Path,
        written: &PackedBundle,
        keys: &[PublicKey],
        mut report: VerbReport,
        about: &str,
    ) -> VerbOutcome {
        let mut text = format!("packed {} into {}\n", count(&plan.items), out.display());
        text += &report_bundle(&mut report, plan, out, written, keys);
        text += &signed_lines(keys);
        text += about;
        text += &volume_lines(written, self.volume_size.is_some());
        if !written.beside.is_empty() {
            text += &format!(
                "  next to it        {}\n",
                paths(&written.beside).join(", ")
            );
        }
        outcome(plan, report, &text)
    }
}

/// The flags that name a volume to pack again.
#[derive(Args)]
pub(crate) struct RepackFlags {
    /// A split bundle with a lost or damaged volume. If its volumes are in several folders, repeat
    /// the flag with each folder, or with one volume of each
    #[arg(long, value_name = "BUNDLE", requires = "only_volume",
          conflicts_with_all = ["volume_size", "include_self", "level", "allow_partial",
            "dry_run", "sign", "serial"])]
    pub(crate) like: Vec<PathBuf>,
    /// The number of the volume of --like to pack again; it is written next to the other volumes,
    /// or next to --out
    #[arg(long, value_name = "N", requires = "like",
        value_parser = clap::value_parser!(u16).range(1..=999))]
    only_volume: Option<u16>,
}

impl RepackFlags {
    pub(crate) async fn run(
        self,
        out: Option<PathBuf>,
        lock: Option<PathBuf>,
        store: DiskStore,
        context: &Context,
    ) -> Result<VerbOutcome, CliError> {
        let Some(number) = self.only_volume.filter(|_| !self.like.is_empty()) else {
            return Err(CliError::usage(
                "--like and --only-volume must be used together",
            ));
        };
        let like = self.like;
        if context.has_signers() {
            let requirements = BundleRequirements {
                allow_partial: true,
                takes_rest: true,
                ..BundleRequirements::default()
            };
            open_bundle::open(context, &like, &requirements)?;
        }
        let progress = Arc::clone(&context.progress);
        let (path, bytes) = run_blocking("packing", move || {
            let lock = || {
                let path = lock.as_deref().unwrap_or(Path::new(FILE_NAME));
                Lock::load(path)
            };
            bundle::write_volume(
                &like,
                number.into(),
                out.as_deref(),
                lock,
                &store,
                &*progress,
            )
        })
        .await??;
        let mut report = VerbReport::default();
        report.add(ReportMember::Volume {
            path: path.display().to_string(),
            bytes,
        });
        let text = format!(
            "packed {} again, {} ({bytes} bytes)\n",
            path.display(),
            human_size(bytes)
        );
        Ok(VerbOutcome::new(report, text, Exit::Done))
    }
}

/// The files next to the bundle `out`: for each, the suffix that is added to the name of the
/// bundle, and the content.
pub(crate) fn documents(
    plan: &PackPlan,
    out: &Path,
    packaging: &Packaging,
    command: Command,
) -> Result<Vec<(String, Vec<u8>)>, CliError> {
    let pages = manual_pages(command).map_err(|error| {
        CliError::failed(format!(
            "cannot write the manual pages next to {}: {error}",
            out.display()
        ))
    })?;
    let readme = readme(plan, out, packaging).into_bytes();
    Ok(vec![
        (".README.txt".into(), readme),
        (".man.tar".into(), pages),
    ])
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The README: the commands for this bundle, in the order in which they are needed.
fn readme(plan: &PackPlan, out: &Path, packaging: &Packaging) -> String {
    let bundle = shell_word(&file_name(out));
    let program = packaging
        .tools
        .first()
        .map_or_else(|| "landfall".to_owned(), |tool| file_name(tool));
    // The program is next to the bundle, and probably not in PATH.
    let run = format!("./{}", shell_word(&program));
    let partial = if plan.missing.is_empty() {
        ""
    } else {
        " --allow-partial"
    };
    let (bases, base_flag) = if plan.bases.is_empty() {
        ("", "")
    } else {
        (" BASE", " --base BASE")
    };
    let mut text = format!(
        "{} - a bundle of landfall\n\nIt contains {}. Lock fingerprint: {}\n\
         Replace REGISTRY with your registry, such as 172.20.0.2:5000 or \
         registry.example.com/mirror.\n",
        file_name(out),
        count(&plan.items),
        plan.fingerprint,
    );
    if packaging.tools.len() > 1 {
        let programs: Vec<String> = packaging.tools.iter().map(|tool| file_name(tool)).collect();
        let _ = writeln!(
            text,
            "There are also programs for other machines: {}.",
            programs.join(", ")
        );
    }
    if packaging.volume_size.is_some() {
        let _ = writeln!(
            text,
            "The bundle is split into volumes {bundle}.0001, {bundle}.0002, … All of them are \
             needed."
        );
    }
    if !plan.bases.is_empty() {
        text += "It omits what an earlier bundle contains. Replace BASE with that bundle; a \
                 registry with its content needs no BASE.\n";
    }
    if !plan.missing.is_empty() {
        text += "It lacks:\n";
        shortened(plan.missing.iter().map(ToString::to_string), MAX_MISSING)
            .for_each(|line| text += &format!("  {line}\n"));
    }
    let _ = write!(
        text,
        "\n0. Check the files, without landfall:\n\n    sha256sum -c {bundle}.sha256sums\n\n\
         1. Verify that it is the approved bundle:\n\n    \
         {run} verify {bundle} --expect {}{partial}\n",
        plan.fingerprint
    );
    if let Some(signer) = &packaging.signer {
        let _ = write!(
            text,
            "\n   It is signed by {}. To check the signature, with the file of allowed signers \
             that you received:\n\n    {run} verify {bundle} --allowed-signers FILE{partial}\n",
            signer.key()
        );
    }
    let _ = write!(
        text,
        "\n2. Push it into a registry:\n\n    {run} push {bundle}{bases} --to REGISTRY{partial}\n\n\
         3. Or serve it as a registry, without any other program:\n\n    \
         {run} serve {bundle}{bases} --listen 0.0.0.0:5000{partial}\n\n\
         4. Or export images for nodes that load a file (ctr, nerdctl, k3s, RKE2; docker and \
         podman: add --format docker --platform linux/amd64):\n\n    \
         {run} export images {bundle}{base_flag} -o images.tar{partial}\n\n\
         5. Point manifests at the registry:\n\n    \
         {run} rewrite FILE-OR-FOLDER --bundle {bundle} --to REGISTRY --diff{partial}\n\n\
         More: {run} ls {bundle} lists its content, {run} help lists the commands and the pages of \
         the manual.\nManual pages: tar xf {bundle}.man.tar && man -M man landfall-push\n"
    );
    text
}

/// A tar archive of the manual pages in `man/man1`.
fn manual_pages(mut command: Command) -> std::io::Result<Vec<u8>> {
    command.build();
    let mut pages = all_pages(&command)?;
    // Sorted, so that the same release writes the same bytes.
    pages.sort();
    let mut tar = Vec::new();
    for (name, page) in pages {
        tar.extend(encode(&format!("man/man1/{name}"), page.len() as u64));
        tar.extend(&page);
        tar.resize(tar.len() + padding(page.len() as u64), 0);
    }
    tar.extend(END);
    Ok(tar)
}
