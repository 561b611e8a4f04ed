//! Runs a verb in the process of a unit test.

use super::Cli;
use crate::cli::shared::{CliError, Context, VerbOutcome};
use clap::Parser;
use std::path::Path;

/// Runs a command line, in which `DIR` is replaced by the folder, and returns its result.
pub(super) fn run(dir: &Path, line: &str) -> Result<VerbOutcome, CliError> {
    let store = dir.join("store").display().to_string();
    let words = ["landfall", "--store", &store, "--progress", "none"]
        .map(str::to_owned)
        .into_iter();
    let path = |word: &str| word.replace("DIR", &dir.display().to_string());
    let cli = Cli::try_parse_from(words.chain(line.split(' ').map(path))).unwrap();
    let context = Context::new(cli.global).unwrap();
    cli.verb.run(&context)
}
