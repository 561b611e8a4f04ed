//! The command line: one file a verb, and the only place that prints.

mod audit;
mod carried;
mod completions;
mod context;
mod delivery;
mod diff;
mod discover;
mod doctor;
mod exit;
mod export;
mod findings;
mod gc;
mod like;
mod listing;
mod lock;
mod locked;
mod ls;
mod mirror;
mod pack;
mod pull;
mod push;
mod render;
mod rewrite;
mod rewritten;
mod schema;
mod serve;
mod together;
mod verify;

pub use context::Context;
pub use exit::{Exit, Failure, Outcome};

use crate::report::ProgressMode;
use clap::{Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;

/// Carry pinned software across an air gap: pin, pull, pack, carry, push, rewrite.
#[derive(Parser)]
#[command(name = "landfall", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: Global,
}

/// One variant a verb, in the order of the data's way.
#[derive(Subcommand)]
enum Verb {
    Lock(lock::LockVerb),
    Pull(pull::Pull),
    Pack(pack::Pack),
    Verify(verify::Verify),
    Push(push::Push),
    Serve(serve::Serve),
    Rewrite(rewrite::Rewrite),
    Audit(audit::Audit),
    Render(render::Render),
    Discover(discover::Discover),
    Mirror(mirror::Mirror),
    Export(export::Export),
    Doctor(doctor::Doctor),
    Diff(diff::Diff),
    Ls(ls::Ls),
    Gc(gc::Gc),
    Completions(completions::Completions),
    Man(completions::Man),
    Schema(schema::Schema),
}

impl Verb {
    /// The verb and how it is named in reports.
    fn run(self, context: &Context) -> (&'static str, Result<Outcome, Failure>) {
        match self {
            Verb::Lock(verb) => ("lock", verb.run(context)),
            Verb::Pull(verb) => ("pull", verb.run(context)),
            Verb::Pack(verb) => ("pack", verb.run(context)),
            Verb::Verify(verb) => ("verify", verb.run(context)),
            Verb::Push(verb) => ("push", verb.run(context)),
            Verb::Serve(verb) => ("serve", verb.run(context)),
            Verb::Rewrite(verb) => ("rewrite", verb.run(context)),
            Verb::Audit(verb) => ("audit", verb.run(context)),
            Verb::Discover(verb) => ("discover", verb.run(context)),
            Verb::Render(verb) => ("render", verb.run(context)),
            Verb::Mirror(verb) => ("mirror", verb.run(context)),
            Verb::Export(verb) => ("export", verb.run(context)),
            Verb::Doctor(verb) => ("doctor", verb.run(context)),
            Verb::Diff(verb) => ("diff", verb.run()),
            Verb::Ls(verb) => ("ls", verb.run()),
            Verb::Gc(verb) => ("gc", verb.run(context)),
            Verb::Completions(verb) => ("completions", verb.run()),
            Verb::Man(verb) => ("man", verb.run()),
            Verb::Schema(verb) => ("schema", verb.run()),
        }
    }
}

/// Flags that every verb takes.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Everywhere")]
pub struct Global {
    /// The store [default: landfall/store in the user's cache folder]
    #[arg(long, global = true, env = "LANDFALL_STORE", value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// The site file: registry, destination paths, proxy, upstreams
    #[arg(long, global = true, env = "LANDFALL_SITE", value_name = "FILE")]
    pub site: Option<PathBuf>,
    /// Speak plain http with this host (may be repeated)
    #[arg(long, global = true, value_name = "HOST[:PORT]")]
    pub plain_http: Vec<String>,
    /// Transfers in flight
    #[arg(long, global = true, value_name = "N", default_value_t = 12, value_parser = jobs)]
    pub jobs: usize,
    /// Longest wait that a server may ask for, as in 90s, 15m or 2h
    #[arg(long, global = true, value_name = "TIME", default_value = "15m", value_parser = seconds)]
    pub max_wait: u64,
    /// Longest wait for the first byte of an answer [default: 2m, or 10m through a proxy]
    #[arg(long, global = true, value_name = "TIME", value_parser = patience)]
    pub first_byte: Option<u64>,
    /// Longest wait for the next byte in the middle of a transfer
    #[arg(long, global = true, value_name = "TIME", default_value = "60s", value_parser = patience)]
    pub idle: u64,
    /// How progress is shown on stderr
    #[arg(long, global = true, value_enum, default_value_t)]
    pub progress: ProgressMode,
    /// What stdout carries
    #[arg(long, global = true, value_enum, default_value_t)]
    pub output: OutputMode,
    /// Write the JSON report to this file too
    #[arg(long, global = true, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// The choice of `--output`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputMode {
    /// Text for people.
    #[default]
    Text,
    /// One JSON document.
    Json,
}

fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(jobs @ 1..=256) => Ok(jobs),
        _ => Err("a number from 1 to 256 is needed".into()),
    }
}

fn patience(text: &str) -> Result<u64, String> {
    match seconds(text)? {
        0 => Err("at least 1s is needed".into()),
        seconds => Ok(seconds),
    }
}

fn seconds(text: &str) -> Result<u64, String> {
    let (number, factor) = match text.as_bytes().last() {
        Some(b's') => (&text[..text.len() - 1], 1),
        Some(b'm') => (&text[..text.len() - 1], 60),
        Some(b'h') => (&text[..text.len() - 1], 3600),
        _ => (text, 1),
    };
    let number: u64 = number.parse().map_err(|_| "write a number with s, m or h, as in 15m".to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "that is too long".into())
}

/// The command line; variables that are set to nothing count as unset, as scripts and CI leave them.
fn command() -> Command {
    let is_empty = |name: &str| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let flags = [("store", "LANDFALL_STORE"), ("site", "LANDFALL_SITE")];
    let empty = flags.into_iter().filter(|(_, name)| is_empty(name));
    empty.fold(Cli::command(), |command, (flag, _)| command.mut_arg(flag, |flag| flag.env(None::<&str>)))
}

/// Parses, runs, prints, and gives the exit code.
pub fn main() -> ExitCode {
    let cli = Cli::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit());
    let context = match Context::new(cli.global.clone()) {
        Ok(context) => context,
        Err(failure) => return exit::finish("landfall", &cli.global, Err(failure)),
    };
    let (name, result) = cli.verb.run(&context);
    exit::finish(name, &cli.global, result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Limits;
    use std::time::Duration;

    fn limits(flags: &[&str]) -> Result<Limits, String> {
        let line = ["landfall", "ls", "b"].iter().chain(flags);
        let cli = Cli::try_parse_from(line).map_err(|error| error.to_string())?;
        Ok(Context::new(cli.global).unwrap().limits)
    }

    #[test]
    fn patience_is_set_by_flags() {
        let default = limits(&[]).unwrap();
        assert_eq!(default.first_byte_proxied, Duration::from_secs(600));
        assert_eq!((default.idle, default.max_wait_secs), (Limits::default().idle, 900));
        let set = limits(&["--idle", "5s", "--first-byte", "3m", "--max-wait", "1h"]).unwrap();
        assert_eq!((set.idle, set.max_wait_secs), (Duration::from_secs(5), 3600));
        assert_eq!([set.first_byte, set.first_byte_proxied], [Duration::from_secs(180); 2]);
        assert!(limits(&["--idle", "0s"]).unwrap_err().contains("at least 1s"));
    }
}
