//! The arguments of `landfall render`: a subcommand for each platform in `PLATFORMS`.

use crate::cli::help::pages;
use crate::cli::shared::bundle_flags::LockFlags;
use crate::cli::shared::output_file::written_folder;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use landfall_model::TargetRegistry;
use landfall_render::{InputFlag, OutputForm, PLATFORMS, PlatformInput, RenderPlatform};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// The arguments of `landfall render`.
pub(crate) enum RenderCommand {
    List,
    Run(Box<PlatformRun>),
}

/// A platform to render, and its arguments.
pub(crate) struct PlatformRun {
    pub(super) platform: &'static RenderPlatform,
    pub(super) inputs: BTreeMap<&'static str, Vec<PathBuf>>,
    pub(super) common: RenderFlags,
}

/// The flags of every platform.
#[derive(Args)]
pub(super) struct RenderFlags {
    /// The registry to point to [default: registry.address of the site]
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    pub(super) to: Option<TargetRegistry>,
    #[command(flatten)]
    pub(super) locked: LockFlags,
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
    #[arg(short, long, value_name = "FILE", group = "written")]
    pub(super) out: Option<PathBuf>,
    /// Merge into this YAML file instead of writing -o: sets or adds keys, and changes no other
    /// byte
    #[arg(long, value_name = "FILE", conflicts_with = "out", group = "written")]
    pub(super) into: Option<PathBuf>,
    #[command(flatten)]
    pub(super) merging: MergeFlags,
}

#[derive(Args, Clone, Copy)]
pub(super) struct MergeFlags {
    /// With --into: change nothing, and print a unified diff in which values of Secrets are masked
    #[arg(long, requires = "into", conflicts_with = "out")]
    pub(super) diff: bool,
    /// With -o: also replace files that this command did not write. With --into: also replace
    /// values that are not facts of the site, such as names, folders, commands and texts that
    /// cannot be merged, instead of failing
    #[arg(long, requires = "written")]
    pub(super) replace: bool,
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
            let command_of_platform = subcommand(platform);
            command
                .subcommand(command_of_platform.visible_aliases(platform.aliases.iter().copied()))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        RenderCommand::augment_args(command)
    }
}

/// Builds the subcommand of a platform from its specification. The subcommands are not derived, so
/// that a new platform needs no change here.
fn subcommand(spec: &'static RenderPlatform) -> Command {
    let command = Command::new(spec.name).args(spec.inputs.iter().map(argument));
    let command = RenderFlags::augment_args(command)
        .about(spec.about)
        .long_about(format!("{}\n\n{}", spec.about, spec.details))
        .mut_arg("set", |set| match spec.settings {
            [] => set.hide(true),
            _ => set.help(settings_help(spec)),
        });
    let page = format!("how-to/platforms/{}.md", spec.name);
    let command = match pages::name_of(&page) {
        Some(name) => command.after_help(format!(
            "The manual has a page on this: landfall help {name}"
        )),
        None => command,
    };
    match spec.writes {
        OutputForm::Text { out } => without_into(command.mut_arg("out", |arg| arg.help(out))),
        OutputForm::Files { not_into } => {
            let command = command.mut_arg("out", |arg| {
                let help = "The folder to write to; other files in it are kept";
                arg.value_name("DIR")
                    .value_parser(written_folder())
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

/// Hides `--into` and its flags, for a platform whose output cannot be merged into a file.
fn without_into(command: Command) -> Command {
    let command = command.mut_arg("replace", |arg| {
        arg.help("Also replace files that this command did not write")
    });
    ["into", "diff"].into_iter().fold(command, |command, arg| {
        command.mut_arg(arg, |arg| arg.hide(true))
    })
}

fn settings_help(spec: &RenderPlatform) -> String {
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
                PLATFORMS.iter().find(|platform| platform.name == name)?,
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
            .inputs
            .iter()
            .map(|input| (input.name, paths(input)));
        let inputs = inputs.collect();
        let common = RenderFlags::from_arg_matches(matches)?;
        Ok(RenderCommand::Run(Box::new(PlatformRun {
            platform,
            inputs,
            common,
        })))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = RenderCommand::from_arg_matches(matches)?;
        Ok(())
    }
}
