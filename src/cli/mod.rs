//! The command line: one file or folder per verb. Only this module prints.

mod error;
mod help;
#[cfg(test)]
mod hostile;
mod shared;
mod verbs;

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches, Id, Parser, Subcommand};
use landfall_model::{locked, redact_urls, redact_userinfo};
use shared::command_log::Invocation;
use shared::finish::check_report;
use shared::logging::start_logging;
use shared::page_recorder::PageRecorder;
use shared::{CliError, Context, Exit, GlobalFlags, ResultPrinter, VerbOutcome};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Carry pinned software across an air gap: pin, pull, pack, carry, push, rewrite.
#[derive(Parser)]
#[command(
    name = "landfall",
    version,
    propagate_version = true,
    max_term_width = help::MAX_WIDTH,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalFlags,
}

/// The verbs. [`help`] groups them for the overview.
#[derive(Subcommand)]
enum Verb {
    Init(verbs::init::InitCommand),
    Lock(verbs::lock::LockCommand),
    Pull(verbs::pull::PullCommand),
    Pack(verbs::pack::PackCommand),
    Publish(verbs::publish::PublishCommand),
    Sign(verbs::sign::SignCommand),
    Verify(verbs::verify::VerifyCommand),
    Push(verbs::push::PushCommand),
    Status(verbs::status::StatusCommand),
    Serve(Box<verbs::serve::ServeCommand>),
    Rewrite(verbs::rewrite::RewriteCommand),
    Audit(verbs::audit::AuditCommand),
    Render(verbs::render::RenderCommand),
    Discover(verbs::discover::DiscoverCommand),
    Import(verbs::import::ImportCommand),
    Mirror(verbs::mirror::MirrorCommand),
    Update(verbs::update::UpdateCommand),
    Refresh(verbs::refresh::RefreshCommand),
    Export(verbs::export::ExportCommand),
    Egress(verbs::egress::EgressCommand),
    Doctor(verbs::doctor::DoctorCommand),
    Diff(verbs::diff::DiffCommand),
    Ls(verbs::ls::LsCommand),
    Report(verbs::report::ReportCommand),
    Log(verbs::log::EvidenceCommand),
    Sbom(verbs::sbom::SbomCommand),
    Gc(verbs::gc::GcCommand),
    Completions(verbs::completions::CompletionsCommand),
    Man(verbs::completions::ManCommand),
    Help(verbs::help::HelpCommand),
    Schema(verbs::schema::SchemaCommand),
}

impl Verb {
    /// Whether the verb reads the site. The others show or write what a user needs to correct a
    /// site that is named by the environment.
    fn reads_site(&self) -> bool {
        !matches!(
            self,
            Verb::Init(_)
                | Verb::Import(_)
                | Verb::Completions(_)
                | Verb::Man(_)
                | Verb::Help(_)
                | Verb::Schema(_)
        )
    }

    fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
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
            Verb::Log(verb) => verb.run(context),
            Verb::Sbom(verb) => verb.run(context),
            Verb::Gc(verb) => verb.run(context),
            Verb::Completions(verb) => verb.run(Cli::command()),
            Verb::Man(verb) => verb.run(Cli::command()),
            Verb::Help(verb) => verb.run(help::complete(Cli::command())),
            Verb::Schema(verb) => verb.run(),
        }
    }
}

/// The flags that have a default in the environment.
const VARIABLES: [(&str, &str); 3] = [
    ("store", "LANDFALL_STORE"),
    ("site", "LANDFALL_SITE"),
    ("log", "LANDFALL_LOG_FILE"),
];

/// The command line. An empty environment variable counts as unset: scripts and CI systems often
/// cannot remove a variable.
fn command() -> Command {
    let mut command = help::complete(Cli::command());
    for (flag, variable) in VARIABLES {
        if std::env::var_os(variable).is_some_and(|value| value.is_empty()) {
            command = command.mut_arg(flag, |flag| flag.env(None::<&str>));
        }
    }
    command
}

/// Lets temporary files be in `/tmp` if `TMPDIR` is empty: it counts as unset.
fn ignore_empty_tmpdir() {
    if std::env::var_os("TMPDIR").is_some_and(|folder| folder.is_empty()) {
        // only a second call fails
        let _ = tempfile::env::override_temp_dir(Path::new("/tmp"));
    }
}

/// Returns the first argument or value of a variable whose `~` no shell expanded, as in
/// `--store=~/store`. It would create a folder called `~`, which people then remove with a command
/// that removes their home.
fn unexpanded_home(given: impl Iterator<Item = OsString>) -> Option<String> {
    let mut texts = given.filter_map(|one| one.into_string().ok());
    texts.find_map(|text| {
        let value = match text.strip_prefix('-') {
            Some(flag) => match flag.strip_prefix('-') {
                Some(flag) => flag.split_once('=')?.1,
                // `-o~/store` and `-o=~/store`
                None => flag.get(1..)?.trim_start_matches('='),
            },
            None => text.as_str(),
        };
        let is_home = value == "~" || value.starts_with("~/");
        (is_home && !Path::new("~").exists()).then(|| value.to_owned())
    })
}

/// Masks user names and passwords in the arguments that clap refused and would print.
fn without_passwords(mut error: clap::Error) -> clap::Error {
    let kinds = [
        ContextKind::InvalidValue,
        ContextKind::InvalidArg,
        ContextKind::InvalidSubcommand,
    ];
    for kind in kinds {
        let Some(ContextValue::String(text)) = error.get(kind) else {
            continue;
        };
        // a value may be a registry, which has no scheme
        let masked = if kind == ContextKind::InvalidValue && !text.contains("://") {
            redact_userinfo(text)
        } else {
            redact_urls(text)
        };
        if masked != *text {
            // tips repeat the argument
            error.remove(ContextKind::Suggested);
        }
        error.insert(kind, ContextValue::String(masked));
    }
    error
}

/// The verb and the flags on the command line, for the evidence log.
fn invocation(command: &Command, matches: &ArgMatches) -> Invocation {
    let Some((name, given)) = matches.subcommand() else {
        return Invocation::default();
    };
    let is_given = |id: &Id| given.value_source(id.as_str()) == Some(ValueSource::CommandLine);
    let arguments = command.find_subcommand(name).into_iter();
    let flags = arguments
        .flat_map(Command::get_arguments)
        .filter(|argument| is_given(argument.get_id()))
        .filter_map(|argument| Some(format!("--{}", argument.get_long()?)));
    Invocation {
        command: name.to_owned(),
        flags: flags.collect(),
    }
}

/// Parses the command line, runs the verb and prints its result.
pub fn main() -> ExitCode {
    ignore_empty_tmpdir();
    // many systems begin with a low limit, which programs may raise: macOS with 256
    landfall_os::raise_open_files();
    let mut command = command();
    let matches = command
        .try_get_matches_from_mut(std::env::args_os())
        .unwrap_or_else(|error| help::without_far_tips(without_passwords(error)).exit());
    let invocation = invocation(&command, &matches);
    let cli =
        Cli::from_arg_matches(&matches).unwrap_or_else(|error| without_passwords(error).exit());
    let mut printer = ResultPrinter {
        command: invocation.command.clone(),
        global: cli.global.clone(),
        page: Arc::new(PageRecorder::new(&cli.global)),
        log: None,
    };
    let variables = VARIABLES.map(|(_, variable)| std::env::var_os(variable));
    let given = std::env::args_os().chain(variables.into_iter().flatten());
    if let Some(value) = unexpanded_home(given) {
        printer.global.report = None;
        let message = format!("'{value}': the shell did not expand ~");
        let help = "write a space in place of = after the flag, or $HOME or the path of the home \
                    folder in place of ~";
        return printer.finish(Err(CliError::usage(message).with_help(help)));
    }
    let mut global = cli.global.clone();
    global.site = global.site.filter(|_| cli.verb.reads_site());
    let context = match Context::new(global) {
        Ok(context) => context,
        Err(failure) => return printer.finish(Err(failure)),
    };
    printer.page = context.page.clone();
    // Events are written through the progress display, so the display must exist first.
    if let Err(error) = start_logging(cli.global.verbose, &context.progress) {
        return printer.finish(Err(error));
    }
    // A verb may run for hours, so an unwritable report must be found before the verb starts.
    if let Some(report) = &cli.global.report
        && let Err(error) = check_report(report)
    {
        // Otherwise `finish` would try to write the report, and fail a second time.
        printer.global.report = None;
        return printer.finish(Err(error));
    }
    match context.begin_log(&invocation) {
        Ok(log) => printer.log = log.map(Arc::new),
        Err(error) => return printer.finish(Err(error)),
    }
    let at_interrupt = printer.clone();
    let progress = context.progress.clone();
    let sessions = context.shared_sessions();
    let watched = context.interrupts.watch(move || {
        // A bar that is still drawn would overwrite the message.
        progress.end();
        let mut result = Err(CliError::interrupted());
        locked(&sessions).add_hosts(&mut result);
        at_interrupt.finish(result);
        std::process::exit(Exit::Interrupted as i32)
    });
    if let Err(error) = watched {
        context
            .progress
            .note(&format!("Ctrl-C will not be handled: {error}"));
    }
    let mut result = cli.verb.run(&context);
    if !context.interrupts.begin_end() {
        // The thread that watches for Ctrl-C reports the interruption and ends the process.
        loop {
            std::thread::park();
        }
    }
    context.add_hosts(&mut result);
    context.progress.end();
    printer.finish(result)
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
            let message = without_passwords(refused.err().unwrap()).to_string();
            assert!(
                message.contains("***@r:5000") && !message.contains("hunter2"),
                "{message}"
            );
        }
    }

    #[test]
    fn a_tilde_that_no_shell_expanded_is_found() {
        for (argument, expected) in [
            ("--store=~/store", Some("~/store")),
            ("-o~/new", Some("~/new")),
            ("-o=~/new", Some("~/new")),
            ("-", None),
            ("-v", None),
            ("~/b.tar.zst", Some("~/b.tar.zst")),
            ("~", Some("~")),
            ("--store=/home/a", None),
            ("--only=quay.io/a", None),
            ("b~", None),
            ("~1.7", None),
        ] {
            let found = unexpanded_home(std::iter::once(OsString::from(argument)));
            assert_eq!(found.as_deref(), expected, "{argument}");
        }
    }

    #[test]
    fn timeouts_are_set_by_flags() {
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
