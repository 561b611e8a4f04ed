//! `landfall render`: configuration that makes others use the site. Its platforms are those of the table in `render`.

use crate::cli::shared::lock_flags::Locked;
use crate::cli::shared::result_file::write_result;
use crate::cli::shared::{Context, Exit, Failure, Outcome};
use crate::lockfile::collision;
use crate::model::{Target, today};
use crate::render::{Input, PLATFORMS, Platform, Request};
use crate::report::{Report, Side};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One run of a platform.
pub(crate) struct Render {
    platform: &'static dyn Platform,
    inputs: BTreeMap<&'static str, Vec<PathBuf>>,
    common: Common,
}

/// Flags of every platform.
#[derive(Args)]
struct Common {
    /// The registry to point to [default: registry.address of the site]
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    to: Option<Target>,
    #[command(flatten)]
    locked: Locked,
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Args for Render {
    fn augment_args(command: Command) -> Command {
        let command = command
            .about("Write configuration that makes others use the site's registry")
            .subcommand_required(true)
            .arg_required_else_help(true);
        PLATFORMS.iter().fold(command, |command, platform| command.subcommand(subcommand(*platform)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Render::augment_args(command)
    }
}

/// The subcommand of a platform.
fn subcommand(platform: &'static dyn Platform) -> Command {
    let spec = platform.spec();
    let command = Command::new(spec.name)
        .about(spec.about)
        .long_about(format!("{}\n\n{}", spec.about, spec.details))
        .args(spec.inputs.iter().map(argument));
    Common::augment_args(command)
        .about(spec.about)
        .long_about(format!("{}\n\n{}", spec.about, spec.details))
        .mut_arg("out", |out| out.help(spec.out))
}

fn argument(input: &'static Input) -> Arg {
    let argument = Arg::new(input.name)
        .value_name(input.value_name)
        .help(input.help)
        .value_parser(value_parser!(PathBuf))
        .action(ArgAction::Append);
    match input.flag {
        Some(flag) => argument.short(flag).long(input.name),
        None => argument.num_args(1..).required(true),
    }
}

impl FromArgMatches for Render {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Render, clap::Error> {
        let chosen = matches.subcommand().and_then(|(name, matches)| {
            Some((PLATFORMS.iter().find(|platform| platform.spec().name == name)?, matches))
        });
        let (platform, matches) = chosen.ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        let paths = |input: &Input| matches.get_many(input.name).into_iter().flatten().cloned().collect();
        let inputs = platform.spec().inputs.iter().map(|input| (input.name, paths(input)));
        Ok(Render {
            platform: *platform,
            inputs: inputs.collect(),
            common: Common::from_arg_matches(matches)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Render::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Render {
    pub(crate) fn run(mut self, context: &Context) -> Result<Outcome, Failure> {
        let Common { to, locked, out } = &self.common;
        let given: Vec<PathBuf> = self.inputs.values().flatten().cloned().collect();
        let (lock, paths) = locked.load_beside(context, &given)?;
        self.inputs.iter_mut().for_each(|(_, given)| given.retain(|path| paths.contains(path)));
        let mapping = context.mapping(to.as_ref())?;
        if let Some(collision) = collision(&mapping, &lock) {
            return Err(Failure::usage(collision.to_string()));
        }
        let today = today().to_string();
        let (limits, inputs) = (&context.limits, &self.inputs);
        let request = Request { lock: &lock, mapping: &mapping, today: &today, limits, inputs };
        let rendered = self.platform.render(&request)?;

        let mut lines = if out.is_some() { rendered.changes } else { Vec::new() };
        lines.extend(rendered.notes);
        let mut report = Report { items: rendered.items, ..Report::default() };
        report.extra.extend(rendered.members.into_iter().map(|(name, value)| (name.to_owned(), value)));
        if let Some(why) = rendered.failure {
            let failure = Failure::new(Exit::Failed, format!("{why}\n{}", lines.join("\n"))).on(Side::Input);
            return Err(Failure { report: report.into(), ..failure });
        }
        let text = write_result(rendered.text, out.as_deref(), &lines, context)?;
        Ok(Outcome::of(report, text))
    }
}
