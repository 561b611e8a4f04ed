//! `landfall render`: configuration that makes a platform use the registry. The platforms are those
//! of the table in `landfall-render`.

mod merge_diff;

use crate::cli::shared::lock_flags::LockFlags;
use crate::cli::shared::locked_charts::{LockedCharts, locked_charts};
use crate::cli::shared::output_file::write_result;
use crate::cli::shared::unified_diff::DiffReader;
use crate::cli::shared::{CliError, Context, Exit, VerbOutcome};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use landfall_content::replace_file;
use landfall_item::lockfile::{Lock, collision};
use landfall_model::document::{documents, read_text_input};
use landfall_model::report::{RunReport, TransferSide, one_line};
use landfall_model::{DestinationMap, DestinationRules, TargetRegistry, today};
use landfall_render::{
    self as render, InputFlag, OutputForm, PLATFORMS, PlatformInput, PlatformSettings,
    PlatformSpec, RenderPlatform, RenderRequest, RenderedFile, RenderedOutput,
};
use merge_diff::merge_diff;
use serde_json::{Map, json};
use serde_yaml::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The arguments of `landfall render`.
pub(crate) enum RenderCommand {
    List,
    Run(Box<PlatformRun>),
}

/// A platform to render, and the arguments.
pub(crate) struct PlatformRun {
    platform: &'static dyn RenderPlatform,
    inputs: BTreeMap<&'static str, Vec<PathBuf>>,
    common: RenderFlags,
}

/// The flags of every platform.
#[derive(Args)]
struct RenderFlags {
    /// The registry to point to [default: registry.address of the site]
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    to: Option<TargetRegistry>,
    #[command(flatten)]
    locked: LockFlags,
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Merge into this YAML file instead of writing -o: sets or adds keys, and changes no other
    /// byte
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    into: Option<PathBuf>,
    #[command(flatten)]
    merging: MergeFlags,
}

#[derive(Args, Clone, Copy)]
struct MergeFlags {
    /// With --into: change nothing, and print a unified diff in which values of Secrets are masked
    #[arg(long, requires = "into", conflicts_with = "out")]
    diff: bool,
    /// With --into: replace texts that cannot be merged, instead of failing
    #[arg(long, requires = "into", conflicts_with = "out")]
    replace: bool,
}

impl Args for RenderCommand {
    fn augment_args(command: Command) -> Command {
        let list = Arg::new("list")
            .long("list")
            .action(ArgAction::SetTrue)
            .help("List the platforms, one per line");
        let command = command
            .about("Write configuration that makes a platform use the registry")
            .arg(list)
            .arg_required_else_help(true);
        PLATFORMS.iter().fold(command, |command, platform| {
            command.subcommand(subcommand(platform.spec()))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        RenderCommand::augment_args(command)
    }
}

/// Builds the subcommand of a platform. It is not derived, so that a new platform needs no change
/// here.
fn subcommand(spec: &'static PlatformSpec) -> Command {
    let command = Command::new(spec.name).args(spec.inputs.iter().map(argument));
    let command = RenderFlags::augment_args(command)
        .about(spec.about)
        .long_about(format!("{}\n\n{}", spec.about, spec.details))
        .mut_arg("set", |set| match spec.settings {
            [] => set.hide(true),
            _ => set.help(settings_help(spec)),
        });
    match spec.writes {
        OutputForm::Text { out } => without_into(command.mut_arg("out", |arg| arg.help(out))),
        OutputForm::Files { not_into } => {
            let command = command.mut_arg("out", |arg| {
                let help = "The folder to write to; other files in it are kept";
                arg.value_name("DIR")
                    .help(help)
                    .required_unless_present("into")
            });
            if not_into.is_some() {
                without_into(command)
            } else {
                command
            }
        }
    }
}

/// Hides `--into` and its flags for a platform whose files cannot be merged.
fn without_into(command: Command) -> Command {
    ["into", "diff", "replace"]
        .into_iter()
        .fold(command, |command, arg| {
            command.mut_arg(arg, |arg| arg.hide(true))
        })
}

fn settings_help(spec: &PlatformSpec) -> String {
    let mut help = "A setting of this platform (may be repeated):".to_owned();
    for setting in spec.settings {
        let _ = write!(
            help,
            "\n{}={}: {}",
            setting.key, setting.value_name, setting.help
        );
        if !setting.choices.is_empty() {
            let _ = write!(help, " [{}]", setting.choices.join(", "));
        }
        if let Some(default) = setting.default {
            let _ = write!(help, " [default: {default}]");
        }
    }
    help
}

fn argument(input: &'static PlatformInput) -> Arg {
    let argument = Arg::new(input.name)
        .value_name(input.value_name)
        .help(input.help)
        .value_parser(value_parser!(PathBuf))
        .action(ArgAction::Append);
    match input.flag {
        InputFlag::Short(flag) => argument.short(flag).long(input.name),
        InputFlag::Long => argument.long(input.name),
        InputFlag::Arguments => argument.num_args(1..).required(true),
    }
}

impl FromArgMatches for RenderCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<RenderCommand, clap::Error> {
        if matches.get_flag("list") {
            return Ok(RenderCommand::List);
        }
        let chosen = matches.subcommand().and_then(|(name, matches)| {
            Some((
                PLATFORMS
                    .iter()
                    .find(|platform| platform.spec().name == name)?,
                matches,
            ))
        });
        let (platform, matches) =
            chosen.ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        let paths = |input: &PlatformInput| {
            matches
                .get_many(input.name)
                .into_iter()
                .flatten()
                .cloned()
                .collect()
        };
        let inputs = platform
            .spec()
            .inputs
            .iter()
            .map(|input| (input.name, paths(input)));
        let (inputs, common) = (inputs.collect(), RenderFlags::from_arg_matches(matches)?);
        Ok(RenderCommand::Run(Box::new(PlatformRun {
            platform: *platform,
            inputs,
            common,
        })))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = RenderCommand::from_arg_matches(matches)?;
        Ok(())
    }
}

impl RenderCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        match self {
            RenderCommand::List => Ok(list()),
            RenderCommand::Run(run) => run.run(context),
        }
    }
}

fn list() -> VerbOutcome {
    let specs = || PLATFORMS.iter().map(|platform| platform.spec());
    let width = specs()
        .map(|spec| spec.name.len())
        .max()
        .unwrap_or_default();
    let text = specs().fold(String::new(), |text, spec| {
        text + &format!("{:width$}  {}\n", spec.name, spec.about)
    });
    let platforms: Map<_, _> = specs()
        .map(|spec| (spec.name.to_owned(), json!(spec.about)))
        .collect();
    let mut report = RunReport::default();
    report.extra.insert("platforms".into(), platforms.into());
    VerbOutcome::of(report, text)
}

impl PlatformRun {
    fn run(mut self, context: &Context) -> Result<VerbOutcome, CliError> {
        let spec = self.platform.spec();
        let mut notes = Vec::new();
        // `_charts` keeps temporary archives of charts until the platform has read them.
        let (lock, _charts) = self.lock(context, &mut notes)?;
        let RenderFlags {
            to, set, out, into, ..
        } = &self.common;
        if let Some(why) = into.as_ref().and(spec.writes.not_into()) {
            return Err(CliError::usage(format!("--into: {why}")));
        }
        let settings = PlatformSettings::parse(spec.settings, set)?;
        let target = match to {
            Some(target) => Some(target.clone()),
            None => context.site_target()?,
        };
        let mapping = match (&target, self.platform.needs_registry()) {
            // This platform can do without a registry, and then does not use the mapping.
            (None, false) => {
                let nowhere = TargetRegistry {
                    registry: String::new(),
                    prefix: String::new(),
                };
                DestinationMap::new(nowhere, &DestinationRules::default())
            }
            _ => context.mapping(to.as_ref())?,
        };
        let existing = into
            .as_deref()
            .map(documents_of)
            .transpose()?
            .unwrap_or_default();
        if let Some(collision) = collision(&mapping, &lock) {
            return Err(CliError::usage(collision.to_string()));
        }
        let today = today().to_string();
        let request = RenderRequest {
            lock: &lock,
            mapping: &mapping,
            target: target.as_ref(),
            existing: &existing,
            site: context.site.as_ref(),
            plain_http: &context.global.plain_http,
            environment: |name| std::env::var(name).ok(),
            today: &today,
            limits: &context.limits,
            inputs: &self.inputs,
            settings,
        };
        let rendered = render::render(self.platform, &request)?;

        let mut report = RunReport {
            items: rendered.items,
            ..RunReport::default()
        };
        report.extra.extend(
            rendered
                .members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value)),
        );
        let mut lines = if out.is_some() {
            rendered.changes
        } else {
            Vec::new()
        };
        lines.extend(rendered.notes.into_iter().chain(notes));
        if let Some(why) = rendered.failure {
            let failure = CliError::of_lines(
                Exit::Failed,
                [&[why.to_owned()][..], &lines].concat().iter(),
            )
            .on(TransferSide::Input);
            return Err(failure.with_report(report));
        }
        let text = match (rendered.output, out) {
            (RenderedOutput::Text(text), out) => {
                return write_result(
                    VerbOutcome::of(report, text),
                    out.as_deref(),
                    &lines,
                    context,
                );
            }
            (RenderedOutput::Files(files), Some(folder)) => {
                let written = write_files(spec, &files, folder, &mut report)?;
                written
                    .into_iter()
                    .chain(lines)
                    .map(|line| one_line(&line) + "\n")
                    .collect()
            }
            (RenderedOutput::Files(files), None) => {
                let path = into
                    .as_deref()
                    .ok_or_else(|| CliError::usage("no folder is named").with_help("add -o DIR"))?;
                merge_into(
                    path,
                    &files,
                    self.common.merging,
                    lines,
                    context,
                    &mut report,
                )?
            }
        };
        // The lines are escaped above, and a diff by its reader.
        Ok(VerbOutcome::of(report, text).document())
    }

    /// The lock, if the platform reads one. A bundle among the inputs is removed from them, and
    /// charts that are given by their name in the lock are replaced by their archives.
    fn lock(
        &mut self,
        context: &Context,
        notes: &mut Vec<String>,
    ) -> Result<(Lock, Option<LockedCharts>), CliError> {
        if !self.platform.spec().reads_lock {
            return Ok((Lock::default(), None));
        }
        if self.platform.works_without_lock() && !self.common.locked.is_named() {
            notes.push(
                "no lock was read, so landfall did not check that the registry has the images"
                    .into(),
            );
            return Ok((Lock::default(), None));
        }
        let given: Vec<PathBuf> = self.inputs.values().flatten().cloned().collect();
        let (lock, paths) = self.common.locked.load_with_paths(context, &given)?;
        self.inputs
            .values_mut()
            .for_each(|given| given.retain(|path| paths.contains(path)));
        let Some(charts) = self.inputs.get_mut("charts") else {
            return Ok((lock, None));
        };
        let named = std::mem::take(charts);
        let found = locked_charts(named, &lock, &self.common.locked, &given, context)?;
        charts.clone_from(&found.paths);
        Ok((lock, Some(found)))
    }
}

/// Writes the files. Returns a line for each, and for files of an earlier run that were not written
/// again.
fn write_files(
    spec: &PlatformSpec,
    files: &[RenderedFile],
    folder: &Path,
    report: &mut RunReport,
) -> Result<Vec<String>, CliError> {
    let left = render::stale_files(folder, spec.name, files);
    render::write_files(folder, files)?;
    let mut lines = Vec::new();
    for file in files {
        let secret = if file.secret {
            ", holds credentials"
        } else {
            ""
        };
        lines.push(format!(
            "{} ({:04o}{secret})",
            folder.join(&file.path).display(),
            file.mode
        ));
    }
    for path in &left {
        lines.push(format!(
            "{} is from an earlier run and was not written again; delete it if nothing needs it",
            path.display()
        ));
    }
    let files = files.iter().map(|file| {
        let path = folder.join(&file.path).display().to_string();
        json!({"file": path, "mode": format!("{:04o}", file.mode), "secret": file.secret})
    });
    report.extra.insert("files".into(), files.collect());
    report.extra.insert(
        "stale".into(),
        left.iter().map(|path| path.display().to_string()).collect(),
    );
    Ok(lines)
}

/// The documents of the file at `path`.
fn documents_of(path: &Path) -> Result<Vec<Value>, CliError> {
    let shown = path.display();
    let text = read_text_input(path)
        .map_err(|error| CliError::usage(format!("cannot read {shown}: {error}")))?;
    documents(&text).map_err(|error| CliError::usage(format!("{shown}: {error}")))
}

/// Merges the files into the one at `path`. Returns the text for stdout: the keys that were set, or
/// a diff.
fn merge_into(
    path: &Path,
    files: &[RenderedFile],
    merging: MergeFlags,
    notes: Vec<String>,
    context: &Context,
    report: &mut RunReport,
) -> Result<String, CliError> {
    let shown = path.display();
    let text = read_text_input(path)
        .map_err(|error| CliError::usage(format!("cannot read {shown}: {error}")))?;
    let merged = render::merge_into(path, &text, files, merging.replace)?;
    let failed = |error: &dyn std::fmt::Display| {
        CliError::new(Exit::Failed, format!("cannot write {shown}: {error}"))
            .on(TransferSide::Destination)
    };
    let old_mode = std::fs::metadata(path)
        .map_err(|error| failed(&error))?
        .permissions()
        .mode()
        & 0o7777;
    // Only the owner may read credentials.
    let mode = if merged.secret {
        old_mode & 0o700
    } else {
        old_mode
    };
    let file =
        json!({"file": shown.to_string(), "mode": format!("{mode:04o}"), "secret": merged.secret});
    report.extra.insert("files".into(), vec![file].into());
    report
        .extra
        .insert("changes".into(), merged.changes.clone().into());
    let notes = merged.notes.iter().cloned().chain(notes);
    if merging.diff {
        notes.for_each(|note| context.progress.note(&note));
        let diff = merge_diff(
            &shown.to_string(),
            &text,
            &merged,
            DiffReader::of_stdout(context),
        );
        report.extra.insert("diff".into(), diff.clone().into());
        return Ok(diff);
    }
    let mut lines: Vec<String> = merged
        .changes
        .iter()
        .map(|key| format!("{shown}: {key}"))
        .collect();
    if merged.text == text {
        lines.push(format!("{shown} is up to date"));
    } else {
        if merged.secret {
            // First the permissions, then the content: others must not read credentials in between.
            std::fs::set_permissions(path, Permissions::from_mode(mode))
                .map_err(|error| failed(&error))?;
            lines.push(format!("{shown} ({mode:04o}, holds credentials)"));
        }
        let lost = replace_file(path, |now| now == text.as_bytes(), merged.text.as_bytes())
            .map_err(|error| failed(&error))?;
        lines.extend(lost.into_iter().map(|lost| format!("{shown}: lost {lost}")));
    }
    Ok(lines
        .into_iter()
        .chain(notes)
        .map(|line| one_line(&line) + "\n")
        .collect())
}
