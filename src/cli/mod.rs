//! The command line: one file a verb, and the only place that prints.

mod help;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod new_kind;
mod shared;
#[cfg(test)]
mod testing;
mod verbs;

use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use landfall_model::without_userinfo;
use shared::room::check_output;
use shared::shown::Shown;
use shared::{Context, Exit, Failure, Global, Outcome, finish};
use std::process::ExitCode;

/// Carry pinned software across an air gap: pin, pull, pack, carry, push, rewrite.
#[derive(Parser)]
#[command(
    name = "landfall",
    version,
    propagate_version = true,
    max_term_width = 100,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: Global,
}

/// One variant a verb, in the order of the data's way.
#[derive(Subcommand)]
enum Verb {
    Init(verbs::init::Init),
    Lock(verbs::lock::LockVerb),
    Pull(verbs::pull::Pull),
    Pack(verbs::pack::Pack),
    Publish(verbs::publish::Publish),
    Sign(verbs::sign::Sign),
    Verify(verbs::verify::Verify),
    Push(verbs::push::Push),
    Status(verbs::status::Status),
    Serve(Box<verbs::serve::Serve>),
    Rewrite(verbs::rewrite::Rewrite),
    Audit(verbs::audit::Audit),
    Render(verbs::render::Render),
    Discover(verbs::discover::Discover),
    Import(verbs::import::Import),
    Mirror(verbs::mirror::Mirror),
    Update(verbs::update::Update),
    Refresh(verbs::refresh::Refresh),
    Export(verbs::export::Export),
    Egress(verbs::egress::Egress),
    Doctor(verbs::doctor::Doctor),
    Diff(verbs::diff::Diff),
    Ls(verbs::ls::Ls),
    Report(verbs::report::ReportVerb),
    Sbom(verbs::sbom::Sbom),
    Gc(verbs::gc::Gc),
    Completions(verbs::completions::Completions),
    Man(verbs::completions::Man),
    Help(verbs::help::Help),
    Schema(verbs::schema::Schema),
}

impl Verb {
    fn run(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Verb::Init(verb) => verb.run(context),
            Verb::Lock(verb) => verb.run(context),
            Verb::Pull(verb) => verb.run(context),
            Verb::Pack(verb) => verb.run(context, Cli::command),
            Verb::Publish(verb) => verb.run(context),
            Verb::Sign(verb) => verb.run(context),
            Verb::Verify(verb) => verb.run(context),
            Verb::Push(verb) => verb.run(context),
            Verb::Status(verb) => verb.run(context),
            Verb::Serve(verb) => verb.run(context),
            Verb::Rewrite(verb) => verb.run(context),
            Verb::Audit(verb) => verb.run(context),
            Verb::Discover(verb) => verb.run(context),
            Verb::Render(verb) => verb.run(context),
            Verb::Import(verb) => verb.run(),
            Verb::Mirror(verb) => verb.run(context),
            Verb::Update(verb) => verb.run(context),
            Verb::Refresh(verb) => verb.run(context),
            Verb::Export(verb) => verb.run(context),
            Verb::Egress(verb) => verb.run(context),
            Verb::Doctor(verb) => verb.run(context),
            Verb::Diff(verb) => verb.run(context),
            Verb::Ls(verb) => verb.run(context),
            Verb::Report(verb) => verb.run(context),
            Verb::Sbom(verb) => verb.run(context),
            Verb::Gc(verb) => verb.run(context),
            Verb::Completions(verb) => verb.run(Cli::command()),
            Verb::Man(verb) => verb.run(Cli::command()),
            Verb::Help(verb) => verb.run(help::grouped(Cli::command())),
            Verb::Schema(verb) => verb.run(),
        }
    }
}

/// The command line; variables that are set to nothing count as unset, as scripts and CI leave
/// them.
fn command() -> Command {
    let is_empty = |name: &str| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let flags = [("store", "LANDFALL_STORE"), ("site", "LANDFALL_SITE")];
    let empty = flags.into_iter().filter(|(_, name)| is_empty(name));
    empty.fold(help::grouped(Cli::command()), |command, (flag, _)| {
        command.mut_arg(flag, |flag| flag.env(None::<&str>))
    })
}

/// Masks the value that is refused, as it may be `user:password@host`.
fn without_passwords(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) {
        let value = without_userinfo(value);
        error.insert(ContextKind::InvalidValue, ContextValue::String(value));
    }
    error
}

/// Parses, runs, prints, and gives the exit code.
pub fn main() -> ExitCode {
    let told = |error| help::without_far_tips(without_passwords(error));
    let matches = command()
        .try_get_matches()
        .unwrap_or_else(|error| told(error).exit());
    let name = matches.subcommand_name().unwrap_or("landfall").to_owned();
    let cli =
        Cli::from_arg_matches(&matches).unwrap_or_else(|error| without_passwords(error).exit());
    let context = match Context::new(cli.global.clone()) {
        Ok(context) => context,
        Err(failure) => return finish(&name, &cli.global, &Shown::new(&cli.global), Err(failure)),
    };
    if let Some(Err(failure)) = cli
        .global
        .report
        .as_ref()
        .map(|report| check_output("the report", report))
    {
        return finish(
            &name,
            &Global {
                report: None,
                ..cli.global
            },
            &context.shown,
            Err(failure),
        );
    }
    let (interrupted, global, shown) = (name.clone(), cli.global.clone(), context.shown.clone());
    let progress = context.progress.clone();
    let watched = context.interrupts.watch(move || {
        // a bar that is still drawn would wipe the message
        progress.end();
        finish(&interrupted, &global, &shown, Err(Failure::interrupted()));
        std::process::exit(Exit::Interrupted as i32)
    });
    if let Err(error) = watched {
        context
            .progress
            .note(&format!("Ctrl-C is not waited for: {error}"));
    }
    let mut result = cli.verb.run(&context);
    if !context.interrupts.begin_end() {
        // the process ends as soon as the interruption is reported
        loop {
            std::thread::park();
        }
    }
    context.add_hosts(&mut result);
    context.progress.end();
    finish(&name, &cli.global, &context.shown, result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::Limits;
    use std::time::Duration;

    fn limits(flags: &[&str]) -> Result<Limits, String> {
        let line = ["landfall", "ls", "b"].iter().chain(flags);
        let cli = Cli::try_parse_from(line).map_err(|error| error.to_string())?;
        Ok(Context::new(cli.global).unwrap().limits)
    }

    #[test]
    fn a_refused_value_is_shown_without_a_password() {
        for flag in ["--to", "--registry"] {
            let refused =
                Cli::try_parse_from(["landfall", "audit", "x", flag, "joe:hunter2@r:5000"]);
            let told = without_passwords(refused.err().unwrap()).to_string();
            assert!(
                told.contains("***@r:5000") && !told.contains("hunter2"),
                "{told}"
            );
        }
    }

    #[test]
    fn patience_is_set_by_flags() {
        let default = limits(&[]).unwrap();
        assert_eq!(default.first_byte_proxied, Duration::from_mins(10));
        assert_eq!(
            (default.idle, default.max_wait_secs),
            (Limits::default().idle, 900)
        );
        let set = limits(&["--idle", "5s", "--first-byte", "3m", "--max-wait", "1h"]).unwrap();
        assert_eq!(
            (set.idle, set.max_wait_secs),
            (Duration::from_secs(5), 3600)
        );
        assert_eq!(
            [set.first_byte, set.first_byte_proxied],
            [Duration::from_mins(3); 2]
        );
        assert!(
            limits(&["--idle", "0s"])
                .unwrap_err()
                .contains("at least 1s")
        );
    }
}
