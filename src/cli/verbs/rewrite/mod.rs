//! `landfall rewrite`: change references to locked images and files so that they point to the
//! destination.

mod kustomize;
mod not_locked;
mod report;

use crate::cli::shared::lock_flags::LockFlags;
use crate::cli::shared::locked_charts::locked_charts;
use crate::cli::shared::unified_diff::DiffReader;
use crate::cli::shared::{CliError, Context, Exit, VerbOutcome, input_file, unified_diff};
use clap::Args;
use landfall_item::lockfile::collision;
use landfall_model::{Digest, TargetRegistry, today};
use landfall_rewrite::audit::{Inventory, audit_inputs, audit_text};
use landfall_rewrite::{
    self as rewrite, ChartArchiveError, InputContent, InputFile, ReferenceIndex, RewriteError,
    RewriteOptions, RewrittenText, TextSyntax,
};
use not_locked::NotLocked;
use report::{RewriteMode, RewrittenInput};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread;

/// Change references to locked images and files so that they point to the destination
///
/// Only references that the lock knows are changed; every other byte stays.
#[derive(Args)]
pub(crate) struct RewriteCommand {
    /// Files, charts (a folder, a .tgz, or the name of a locked one), folders, or - for stdin
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The registry to point to [default: registry.address of the site]
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    to: Option<TargetRegistry>,
    /// The file server that URLs of locked files are pointed to; any URL that answers
    /// /<host>/<path> [default: files of the site]
    #[arg(long, value_name = "URL")]
    files: Option<String>,
    #[command(flatten)]
    locked: LockFlags,
    /// The receipt of the push: digests that it replaced are replaced in references, too
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    /// The way back: from the destination to the locked names
    #[arg(long, conflicts_with = "pin")]
    reverse: bool,
    /// Add the locked digest to references that have a tag alone
    #[arg(long)]
    pin: bool,
    /// Change references in comments, too
    #[arg(long)]
    comments: bool,
    #[command(flatten)]
    modes: OutputFlags,
}

/// Where the result goes; stdout without any of these.
#[derive(Args)]
#[group(multiple = false)]
struct OutputFlags {
    /// Replace the files
    #[arg(short, long)]
    in_place: bool,
    /// Change nothing; list what would be changed and exit with 4 if there is anything, or if an
    /// image is named with neither a host nor a tag
    #[arg(long)]
    check: bool,
    /// Change nothing; print a unified diff, with the values of Secrets masked
    #[arg(long)]
    diff: bool,
    /// Change nothing; print a kustomize component whose `images` do the same for containers
    #[arg(long, conflicts_with_all = ["pin", "reverse"])]
    kustomize: bool,
    /// Write the files to this folder, changed or not
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl OutputFlags {
    fn mode(&self) -> RewriteMode<'_> {
        match (
            &self.out,
            self.in_place,
            self.check,
            self.diff,
            self.kustomize,
        ) {
            (Some(out), ..) => RewriteMode::Out(out),
            (_, true, ..) => RewriteMode::InPlace,
            (_, _, true, ..) => RewriteMode::Check,
            (_, _, _, true, _) => RewriteMode::Diff,
            (_, _, _, _, true) => RewriteMode::Kustomize,
            _ => RewriteMode::Stdout,
        }
    }
}

impl RewriteCommand {
    pub(crate) fn run(mut self, context: &Context) -> Result<VerbOutcome, CliError> {
        let (lock, paths) = self.locked.load_beside(context, &self.paths)?;
        if paths.is_empty() {
            return Err(CliError::usage(
                "what is to be rewritten? name files or folders beside the bundle",
            ));
        }
        let flags = self.locked.words(&self.paths);
        let charts = locked_charts(paths, &lock, (&self.locked, &self.paths), context)?;
        if charts.has_any() && self.modes.in_place {
            return Err(CliError::usage(
                "a locked chart stays as it is; name a folder for the rewritten one with -o DIR",
            ));
        }
        self.paths.clone_from(&charts.paths);
        let inputs = self.inputs()?;
        let stdin = if is_stdin(&self.paths[0]) {
            Some(read_stdin()?)
        } else {
            None
        };
        let stdin = stdin.as_deref();
        let mapping = context.mapping(self.to.as_ref())?;
        if let Some(collision) = collision(&mapping, &lock) {
            return Err(CliError::usage(collision.to_string()));
        }
        let mut index = if self.reverse {
            ReferenceIndex::reverse(&lock, &mapping)
        } else {
            ReferenceIndex::new(&lock, &mapping)
        };
        let files = self
            .files
            .as_ref()
            .or(context.site.as_ref().and_then(|site| site.files.as_ref()));
        if let Some(base) = files {
            index = index.with_files(base);
        }
        index = index.with_replaced(self.replaced()?);
        let options = RewriteOptions {
            comments: self.comments,
            pin: self.pin,
        };
        let mut text = String::new();
        let reader = DiffReader::of_stdout(context);
        let mut rewrite = || -> Vec<RewrittenInput> {
            let inputs = inputs.iter();
            inputs
                .filter_map(|input| self.one(input, stdin, &index, options, reader, &mut text))
                .collect()
        };
        let today = today().to_string();
        let inventory = Inventory::new(&lock, Some(&mapping), files.map(String::as_str), &today)
            .beside_rewrite();
        let audit = || match stdin.map(str::from_utf8) {
            Some(text) => audit_text("<stdin>", text.unwrap_or_default(), &inventory),
            None => audit_inputs(&inputs, &inventory, &context.limits).found,
        };
        let (done, found) = match (self.reverse, self.modes.in_place) {
            (true, _) => (rewrite(), None),
            // as the files are before they are replaced
            (false, true) => {
                let found = audit();
                (rewrite(), Some(found))
            }
            (false, false) => thread::scope(|scope| {
                let auditing = scope.spawn(audit);
                let done = rewrite();
                (
                    done,
                    Some(
                        auditing
                            .join()
                            .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                    ),
                )
            }),
        };
        if done.is_empty() {
            return Err(CliError::usage(
                "there is no file to look at in what was named; `landfall help --page rewrite` says which are",
            ));
        }
        let not_locked = found.map(|found| NotLocked::of(&found, &self.audit(context, flags)));
        report::outcome(context, self.modes.mode(), &done, not_locked.as_ref(), text)
    }

    /// The words of the audit of the same files against the same lock.
    fn audit(&self, context: &Context, lock: Vec<String>) -> Vec<String> {
        let paths = self.paths.iter().map(|path| path.display().to_string());
        let flag = |name: &str, value: Option<String>| value.map(|value| [name.to_owned(), value]);
        let to = flag("--to", self.to.as_ref().map(ToString::to_string));
        let site = flag(
            "--site",
            context
                .global
                .site
                .as_ref()
                .map(|site| site.display().to_string()),
        );
        let words = ["landfall", "audit"]
            .map(str::to_owned)
            .into_iter()
            .chain(paths)
            .chain(lock);
        words
            .chain(to.into_iter().flatten())
            .chain(site.into_iter().flatten())
            .collect()
    }

    /// The digests that stand at the registry in place of locked ones; the other way round on the
    /// way back.
    fn replaced(&self) -> Result<Vec<(Digest, Digest)>, CliError> {
        let Some(path) = &self.receipt else {
            return Ok(Vec::new());
        };
        let pairs = input_file::receipt(path)?
            .items
            .into_iter()
            .filter_map(|item| Some((item.trimmed_from?, item.digest)));
        Ok(pairs
            .map(|(old, new)| if self.reverse { (new, old) } else { (old, new) })
            .collect())
    }

    fn inputs(&self) -> Result<Vec<InputFile>, CliError> {
        let stdin = self.paths.iter().filter(|path| is_stdin(path)).count();
        let mode = self.modes.mode();
        if stdin > 0 && matches!(mode, RewriteMode::InPlace | RewriteMode::Out(_)) {
            return Err(CliError::usage(
                "- (stdin) goes to stdout; leave --in-place and --out away",
            ));
        }
        let out = self.modes.out.as_deref();
        let inputs = match stdin {
            0 => rewrite::inputs(&self.paths, out)?,
            _ if self.paths.len() == 1 => vec![InputFile {
                path: "-".into(),
                relative: "-".into(),
                named: true,
            }],
            _ => return Err(CliError::usage("- (stdin) stands alone")),
        };
        if mode == RewriteMode::Stdout && (self.paths.len() > 1 || self.paths[0].is_dir()) {
            return Err(CliError::usage(
                "only one file goes to stdout; for several files or a folder say what to do with them: \
                 --in-place, --check, --diff, --kustomize or --out DIR",
            ));
        }
        if mode == RewriteMode::Stdout && inputs.iter().any(InputFile::is_archive) {
            return Err(CliError::usage(
                "a chart's archive does not go to stdout; name a folder for it with --out DIR",
            ));
        }
        Ok(inputs)
    }

    /// Rewrites one file; `None` where it is nothing to look at. What goes to stdout is added to
    /// `text`.
    fn one(
        &self,
        input: &InputFile,
        stdin: Option<&[u8]>,
        index: &ReferenceIndex,
        options: RewriteOptions,
        reader: DiffReader,
        text: &mut String,
    ) -> Option<RewrittenInput> {
        let name = if is_stdin(&input.path) {
            "<stdin>".into()
        } else {
            input.path.display().to_string()
        };
        let mode = self.modes.mode();
        let mut lost = Vec::new();
        let mut write = |old: &[u8], new: &[u8]| -> Result<(), RewriteError> {
            match mode {
                RewriteMode::Out(out) => rewrite::write_to(out, input, new)?,
                RewriteMode::InPlace if new != old => {
                    lost = rewrite::write_in_place(&input.path, old, new)?
                }
                _ => {}
            }
            Ok(())
        };
        let mut attempt = || -> Result<Option<Vec<RewrittenText>>, RewriteError> {
            let mut members = match read(input, stdin)? {
                InputContent::Other => return Ok(None),
                InputContent::Text(old) => {
                    let new = rewrite::rewrite(&old, TextSyntax::of(&input.path), index, options);
                    write(old.as_bytes(), new.text.as_bytes())?;
                    vec![RewrittenText {
                        path: name.clone(),
                        old,
                        new,
                    }]
                }
                InputContent::Archive(old) => match rewrite::rewrite_chart(&old, index, options) {
                    // other archives lie in folders, too
                    Err(ChartArchiveError::NoChart) if !input.named => return Ok(None),
                    done => {
                        let done = done?;
                        write(&old, &done.bytes)?;
                        let inside = |member: RewrittenText| RewrittenText {
                            path: format!("{name}/{}", member.path),
                            ..member
                        };
                        done.members.into_iter().map(inside).collect()
                    }
                },
            };
            for member in &mut members {
                // of a large file, no more than is needed is held
                let new = std::mem::take(&mut member.new.text);
                match mode {
                    RewriteMode::Stdout => *text = new,
                    RewriteMode::Diff => text.push_str(&unified_diff::diff(member, reader)),
                    RewriteMode::Out(_)
                    | RewriteMode::InPlace
                    | RewriteMode::Check
                    | RewriteMode::Kustomize => {}
                }
                member.old = String::new();
            }
            Ok(Some(members))
        };
        let result = attempt().transpose()?;
        Some(RewrittenInput { name, result, lost })
    }
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn read(input: &InputFile, stdin: Option<&[u8]>) -> Result<InputContent, RewriteError> {
    let Some(bytes) = stdin else {
        return rewrite::read(input);
    };
    String::from_utf8(bytes.to_vec())
        .map(InputContent::Text)
        .map_err(|_| RewriteError::Encoding)
}

fn read_stdin() -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| CliError::new(Exit::Failed, format!("cannot read <stdin>: {error}")))?;
    Ok(bytes)
}
