//! `landfall rewrite`: points references to locked items at the private registry.

mod kustomize;
mod report;

use self::report::{NotLocked, RewriteMode, RewrittenInput, outcome};
use crate::cli::shared::bundle_flags::LockFlags;
use crate::cli::shared::locked_charts::{LockedCharts, locked_charts};
use crate::cli::shared::output_file::{ReplaceFlag, written_folder};
use crate::cli::shared::unified_diff::{self, DiffReader};
use crate::cli::shared::{CliError, Context, VerbOutcome, input_file};
use clap::Args;
use landfall_content::{OutputGuard, OutputRecord};
use landfall_item::lockfile::{Lock, collision};
use landfall_model::config::IndexPolicy;
use landfall_model::document::{TextEncoding, read_input};
use landfall_model::{Digest, TargetRegistry, has_scheme, today};
use landfall_os::Blocking;
use landfall_rewrite as rewrite;
use landfall_rewrite::audit::{Inventory, audit_inputs, audit_text};
use landfall_rewrite::{
    ChartError, InputContent, InputFile, ReferenceIndex, ReferenceMeaning, RewriteError,
    RewriteOptions, RewrittenText, TextSyntax,
};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread;

/// Point references at the private registry
///
/// Changes only references to items of the lock; all other bytes stay as they are. Without
/// --in-place, --out, --check, --diff or --kustomize, the result of one file is written to stdout.
#[derive(Args)]
pub(crate) struct RewriteCommand {
    /// Files, folders, charts (a folder, a .tgz, or the name of a locked chart), or - for stdin
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The registry that references point to [default: registry.address of the site]
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    to: Option<TargetRegistry>,
    /// The file server that URLs of locked files point to: any URL that serves /<host>/<path>
    /// [default: files of the site]
    #[arg(long, value_name = "URL", value_parser = file_server)]
    files: Option<String>,
    #[command(flatten)]
    locked: LockFlags,
    /// A push receipt: digests that the push replaced are also replaced in references
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    /// Rewrite in reverse: from names at the registry to the names in the lock
    #[arg(long, conflicts_with = "pin")]
    reverse: bool,
    /// Add the locked digest to references that have only a tag
    #[arg(long)]
    pin: bool,
    /// Also change references in comments
    #[arg(long)]
    comments: bool,
    #[command(flatten)]
    modes: OutputFlags,
    #[command(flatten)]
    replace: ReplaceFlag,
}

/// The destination of the result; without any of these flags, stdout.
#[derive(Args)]
#[group(multiple = false)]
struct OutputFlags {
    /// Replace the files
    #[arg(short, long)]
    in_place: bool,
    /// Change nothing, and list what would change. Exit with 4 if anything would change, or if an
    /// image has neither a host nor a tag
    #[arg(long)]
    check: bool,
    /// Change nothing, and print a unified diff in which values of Secrets and credentials in URLs
    /// are masked
    #[arg(long)]
    diff: bool,
    /// Change nothing, and print a kustomize component whose `images` change the images of
    /// containers and of image volumes. References that kustomize cannot change are listed
    #[arg(long, conflicts_with_all = ["pin", "reverse"])]
    kustomize: bool,
    /// Write all files that were read, changed or not, to this folder
    #[arg(short, long, value_name = "DIR", value_parser = written_folder())]
    out: Option<PathBuf>,
}

impl OutputFlags {
    fn mode(&self) -> RewriteMode<'_> {
        if let Some(out) = &self.out {
            RewriteMode::Out(out)
        } else if self.in_place {
            RewriteMode::InPlace
        } else if self.check {
            RewriteMode::Check
        } else if self.diff {
            RewriteMode::Diff
        } else if self.kustomize {
            RewriteMode::Kustomize
        } else {
            RewriteMode::Stdout
        }
    }
}

/// Parses the URL of a file server.
fn file_server(text: &str) -> Result<String, &'static str> {
    if has_scheme(text) {
        Ok(text.to_owned())
    } else {
        Err("write the scheme too, as in http://172.20.0.2:8080")
    }
}

impl RewriteCommand {
    pub(crate) fn run(mut self, context: &Context) -> Result<VerbOutcome, CliError> {
        let (lock, paths) = self.locked.load_with_paths(context, &self.paths)?;
        if paths.is_empty() {
            return Err(CliError::usage("no files to rewrite are named")
                .with_help("name files or folders in addition to the bundle"));
        }
        let flags = self.locked.as_arguments(&self.paths);
        let charts = locked_charts(paths, &lock, &self.locked, &self.paths, context)?;
        if charts.has_any() && self.modes.in_place {
            return Err(
                CliError::usage("a locked chart cannot be rewritten in place")
                    .with_help("add -o DIR for the rewritten chart"),
            );
        }
        self.paths.clone_from(&charts.paths);
        let inputs = self.inputs()?;
        let stdin = is_stdin(&self.paths[0]).then(read_stdin).transpose()?;
        let stdin = stdin.as_deref();
        let mapping = context.mapping(self.to.as_ref())?;
        if let Some(collision) = collision(&mapping, &lock) {
            return Err(CliError::usage(collision));
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
        index = index.with_replaced(self.replaced_digests()?);
        let record = self.claim(&inputs, &index)?;
        let mut text = String::new();
        let reader = DiffReader::of_stdout(context);
        let mut written: Vec<&Path> = Vec::new();
        let mut rewrite = || -> Vec<RewrittenInput> {
            let inputs = inputs.iter();
            inputs
                .filter_map(|input| {
                    let done =
                        self.rewrite_input(input, &charts, stdin, &index, reader, &mut text)?;
                    written.extend(done.result.is_ok().then_some(&*input.relative));
                    Some(done)
                })
                .collect()
        };
        let today = today().to_string();
        let inventory = Inventory::new(&lock, Some(&mapping), files.map(String::as_str), &today)
            .for_audit_with_rewrite();
        let audit = || match stdin.map(str::from_utf8) {
            Some(text) => audit_text("<stdin>", text.unwrap_or_default(), &inventory),
            None => audit_inputs(&inputs, &inventory, &context.limits).found,
        };
        let (done, found) = if self.reverse {
            (rewrite(), None)
        } else if self.modes.in_place {
            // The audit reads the files, so it must end before they are replaced.
            let found = audit();
            (rewrite(), Some(found))
        } else {
            // Without --in-place, no input file changes, so audit and rewrite run at the same time.
            thread::scope(|scope| {
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
            })
        };
        if let Some(record) = record {
            record.add(written)?;
        }
        if done.is_empty() {
            return Err(CliError::usage(
                "no file that can be rewritten was found; `landfall help --page rewrite` lists \
                 the formats",
            ));
        }
        self.note_trimmed(context, &lock, &done);
        let not_locked =
            found.map(|found| NotLocked::new(&found, &self.audit_command(context, &charts, flags)));
        outcome(context, self.modes.mode(), &done, not_locked.as_ref(), text)
    }

    /// Checks that no file of others in the folder of `--out` is replaced. Returns the record of
    /// that folder.
    fn claim(
        &self,
        inputs: &[InputFile],
        index: &ReferenceIndex,
    ) -> Result<Option<OutputRecord>, CliError> {
        let Some(out) = &self.modes.out else {
            return Ok(None);
        };
        let record = OutputRecord::read(out, "rewrite")?;
        let mut guard = OutputGuard::new(self.replace.replaces);
        for input in inputs.iter().filter(|input| !record.has(&input.relative)) {
            let path = out.join(&input.relative);
            let mut below = path.ancestors().take_while(|below| below != out);
            if below.any(Path::is_symlink) {
                // nothing is written through it; the error of this file says so
                continue;
            }
            guard.check(&path, |path| {
                self.result_bytes(input, index)
                    .is_none_or(|new| read_input(path).is_ok_and(|present| present == new))
            });
        }
        guard.finish()?;
        Ok(Some(record))
    }

    /// The content of the result of `input`; `None` if it is not written.
    fn result_bytes(&self, input: &InputFile, index: &ReferenceIndex) -> Option<Vec<u8>> {
        match rewrite::read(input).ok()? {
            InputContent::Other => None,
            InputContent::Text(old, encoding) => {
                let syntax = TextSyntax::of(&input.path);
                let new = rewrite::rewrite(&old, syntax, index, self.options());
                Some(encoding.encode(&new.text))
            }
            InputContent::Archive(old) => {
                let done = rewrite::rewrite_chart(&old, index, self.options()).ok()?;
                Some(done.bytes)
            }
        }
    }

    fn options(&self) -> RewriteOptions {
        RewriteOptions {
            comments: self.comments,
            pin: self.pin,
        }
    }

    /// Warns of references with the digest of an index that the push may have trimmed: without a
    /// receipt, it is not known whether the registry has this index or the trimmed one.
    fn note_trimmed(&self, context: &Context, lock: &Lock, done: &[RewrittenInput]) {
        let registry = context
            .site
            .as_ref()
            .and_then(|site| site.registry.as_ref());
        let is_exact = registry.is_some_and(|registry| registry.index == IndexPolicy::Exact);
        if self.reverse || self.receipt.is_some() || is_exact {
            return;
        }
        let trimmed = lock.images.iter().filter(|image| {
            let trimmed = image.trimmed.as_ref();
            trimmed.is_some_and(|trimmed| trimmed.digest != image.digest)
        });
        let named: Vec<String> = trimmed
            .filter(|image| is_pinned_to(&image.digest, done))
            .map(|image| image.name.to_string())
            .collect();
        if !named.is_empty() {
            context.progress.note(&format!(
                "the lock omits platforms of {}: a registry that refuses such an index has it with \
                 another digest; add --receipt FILE of the push, or the image may not be found",
                named.join(", ")
            ));
        }
    }

    /// The command line that audits the same files against the same lock.
    fn audit_command(
        &self,
        context: &Context,
        charts: &LockedCharts,
        lock: Vec<String>,
    ) -> Vec<String> {
        let paths = self
            .paths
            .iter()
            .map(|path| charts.shown(path.display().to_string()));
        let mut words = vec!["landfall".to_owned(), "audit".to_owned()];
        words.extend(paths.chain(lock));
        let mut add_flag = |name: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        };
        let global = &context.global;
        let store = global.store.as_ref().filter(|_| charts.has_any());
        add_flag("--store", store.map(|store| store.display().to_string()));
        add_flag("--to", self.to.as_ref().map(ToString::to_string));
        let site = global.site.as_ref();
        add_flag("--site", site.map(|site| site.display().to_string()));
        words
    }

    /// Pairs of a digest and the one that replaces it: pushing replaces locked digests, and
    /// `--reverse` restores them.
    fn replaced_digests(&self) -> Result<Vec<(Digest, Digest)>, CliError> {
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
                "- (stdin) is written to stdout, so --in-place and --out cannot be used",
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
            _ => {
                return Err(CliError::usage(
                    "- (stdin) cannot be combined with other paths",
                ));
            }
        };
        if mode == RewriteMode::Stdout && (self.paths.len() > 1 || self.paths[0].is_dir()) {
            return Err(CliError::usage("only one file can be written to stdout").with_help(
                "for several files or a folder, add --in-place, --check, --diff, --kustomize or \
                 --out DIR",
            ));
        }
        if mode == RewriteMode::Stdout && inputs.iter().any(InputFile::is_archive) {
            return Err(
                CliError::usage("a chart archive cannot be written to stdout")
                    .with_help("add --out DIR"),
            );
        }
        Ok(inputs)
    }

    /// Rewrites one file; `None` if its format cannot be rewritten. Adds the output for stdout to
    /// `text`.
    fn rewrite_input(
        &self,
        input: &InputFile,
        charts: &LockedCharts,
        stdin: Option<&[u8]>,
        index: &ReferenceIndex,
        reader: DiffReader,
        text: &mut String,
    ) -> Option<RewrittenInput> {
        let name = if is_stdin(&input.path) {
            "<stdin>".into()
        } else {
            charts.shown(input.path.display().to_string())
        };
        let options = self.options();
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
                InputContent::Text(old, encoding) => {
                    if mode == RewriteMode::Stdout && encoding != TextEncoding::Utf8 {
                        return Err(RewriteError::utf16_output());
                    }
                    let new = rewrite::rewrite(&old, TextSyntax::of(&input.path), index, options);
                    write(&encoding.encode(&old), &encoding.encode(&new.text))?;
                    vec![RewrittenText {
                        path: name.clone(),
                        old,
                        new,
                    }]
                }
                InputContent::Archive(old) => match rewrite::rewrite_chart(&old, index, options) {
                    // A folder may contain archives that are not charts.
                    Err(ChartError::NoChart(_)) if !input.named => return Ok(None),
                    done => {
                        let done = done?;
                        write(&old, &done.bytes)?;
                        done.members
                            .into_iter()
                            .map(|member| RewrittenText {
                                path: format!("{name}/{}", member.path),
                                ..member
                            })
                            .collect()
                    }
                },
            };
            for member in &mut members {
                // Bounds the memory: only the parts of large files that are printed later are
                // kept.
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

/// Whether a rewritten reference has the digest.
fn is_pinned_to(digest: &Digest, done: &[RewrittenInput]) -> bool {
    let hex = digest.hex();
    let members = done.iter().filter_map(|done| done.result.as_ref().ok());
    let mut found = members.flatten().flat_map(|member| &member.new.scan.found);
    found.any(|occurrence| match &occurrence.meaning {
        ReferenceMeaning::Known { to, .. } => to.contains(&hex),
        ReferenceMeaning::Settled(_) => occurrence.written.contains(&hex),
        _ => false,
    })
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn read(input: &InputFile, stdin: Option<&[u8]>) -> Result<InputContent, RewriteError> {
    let Some(bytes) = stdin else {
        return rewrite::read(input);
    };
    let (text, encoding) = rewrite::decode(bytes.to_vec())?;
    Ok(InputContent::Text(text, encoding))
}

fn read_stdin() -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let read = Blocking(std::io::stdin().lock()).read_to_end(&mut bytes);
    read.map_err(|error| CliError::failed(format!("cannot read <stdin>: {error}")))?;
    Ok(bytes)
}
