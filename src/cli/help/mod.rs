//! The overview that `landfall --help` prints, the examples, the manual pages, and the tips of
//! usage errors.

mod examples;
pub(super) mod man;
pub(super) mod pages;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Help texts are at most this wide, also on a wider terminal.
pub(super) const MAX_WIDTH: usize = 80;

/// The verbs in groups. The first group is in the order in which a newcomer needs them.
const GROUPS: &str = "\
Getting started: init lock pull pack verify push serve rewrite render
Manifests and locks: discover import update refresh diff
Bundles: sign ls report sbom export
Registries and stores: mirror status publish gc
Checks and documentation: audit egress doctor log schema help man completions";

const DATA_FLOW: &str = "  \
  manifest --lock--> lock --pull--> store --pack--> bundle --push--> registry
                                                      |----serve--> nodes
                                                      `----rewrite--> your YAML";

const EXIT_CODES: &str = "\
0 success
1 failure: nothing succeeded
2 wrong usage, or an input file that is missing or invalid
3 partial success: something succeeded, and something failed or is missing
4 a check failed: drift, or a bundle that is damaged, unsigned or not approved
130 interrupted by Ctrl-C";

/// The exit codes, each with its meaning.
fn exit_codes() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXIT_CODES.lines().filter_map(|line| line.split_once(' '))
}

/// `command` with its verbs in groups, with examples, and with the exit codes at the end.
pub(super) fn complete(command: Command) -> Command {
    let command = examples::add_examples(command);
    let template = format!(
        "{{about-with-newline}}\n{DATA_FLOW}\n\n{{usage-heading}} \
         {{usage}}\n{}\n{{options}}{{after-help}}",
        overview(&command)
    );
    let mut closing = format!(
        "Pages of the manual (landfall help PAGE):\n{}\n  If a verb has the same name: landfall help \
         --page PAGE\n\nExit codes:\n",
        pages::listing(MAX_WIDTH - 1)
    );
    for (code, meaning) in exit_codes() {
        let _ = writeln!(closing, "  {code:<3}  {}", wrapped(meaning, 7));
    }
    command
        .help_template(template)
        .after_help(closing.trim_end().to_owned())
}

/// The verbs of all groups, a line each.
fn overview(command: &Command) -> String {
    let mut text = String::new();
    let mut grouped: BTreeSet<&str> = BTreeSet::new();
    for (title, names) in GROUPS.lines().filter_map(|line| line.split_once(": ")) {
        let verbs = names
            .split(' ')
            .filter_map(|name| command.find_subcommand(name));
        add_group(&mut text, title, verbs);
        grouped.extend(names.split(' '));
    }
    // A verb without a group is shown too.
    let others = command
        .get_subcommands()
        .filter(|verb| !grouped.contains(verb.get_name()));
    add_group(&mut text, "Other", others);
    text
}

fn add_group<'c>(text: &mut String, title: &str, verbs: impl Iterator<Item = &'c Command>) {
    let mut verbs = verbs.peekable();
    if verbs.peek().is_none() {
        return;
    }
    let _ = writeln!(text, "\n{title}:");
    for verb in verbs {
        let about = verb.get_about().map(ToString::to_string);
        let _ = writeln!(
            text,
            "  {:<11}  {}",
            verb.get_name(),
            about.unwrap_or_default()
        );
    }
}

/// Wraps `text` at [`MAX_WIDTH`], with `indent` columns before each line but the first.
fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut column = indent;
    for word in text.split(' ') {
        if column + word.len() > MAX_WIDTH {
            lines = format!("{}\n{:indent$}", lines.trim_end(), "");
            column = indent;
        }
        lines += word;
        lines.push(' ');
        column += word.len() + 1;
    }
    lines.trim_end().to_owned()
}

/// Removes the suggested flag from a usage error if the given flag is too different from it to be a
/// misspelling.
pub(super) fn without_far_tips(mut error: Error) -> Error {
    if error.kind() == ErrorKind::UnknownArgument
        && let (Some(ContextValue::String(given)), Some(ContextValue::String(tip))) = (
            error.get(ContextKind::InvalidArg),
            error.get(ContextKind::SuggestedArg),
        )
        // Allows one typing error in a short flag, and two in a long one.
        && strsim::damerau_levenshtein(given, tip)
            > if tip.len() > "--report".len() { 2 } else { 1 }
    {
        error.remove(ContextKind::SuggestedArg);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::{Arg, CommandFactory};

    /// All commands and subcommands, each with its full name.
    fn all_commands() -> Vec<(String, Command)> {
        fn add(to: &mut Vec<(String, Command)>, name: &str, command: &Command) {
            to.push((name.to_owned(), command.clone()));
            for verb in command.get_subcommands() {
                add(to, &format!("{name} {}", verb.get_name()), verb);
            }
        }
        let mut command = complete(Cli::command());
        command.build();
        let mut all = Vec::new();
        add(&mut all, "landfall", &command);
        all
    }

    fn words(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    #[test]
    fn help_fits_80_columns_without_a_broken_word() {
        let commands = all_commands();
        assert!(commands.len() > 60, "{}", commands.len());
        let mut faults = Vec::new();
        for (name, command) in commands {
            for is_long in [false, true] {
                let help = |width: usize| {
                    let mut command = command.clone().term_width(width);
                    if is_long {
                        command.render_long_help().to_string()
                    } else {
                        command.render_help().to_string()
                    }
                };
                let narrow = help(MAX_WIDTH);
                let too_long = |line: &&str| line.chars().count() > MAX_WIDTH;
                let long_lines = narrow.lines().filter(too_long);
                faults.extend(long_lines.map(|line| format!("{name}: {line}")));
                if words(&narrow) != words(&help(0)) {
                    faults.push(format!("{name}: a word is broken"));
                }
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn every_verb_is_in_a_group_and_has_an_example() {
        let command = complete(Cli::command());
        let overview = overview(&command);
        assert!(!overview.contains("Other:"), "{overview}");
        for verb in command.get_subcommands() {
            let name = verb.get_name();
            let line = format!("\n  {name:<11}  ");
            assert_eq!(overview.matches(&line).count(), 1, "{name}");
            let help = verb.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            let mut lines = help.lines().filter(|line| !line.starts_with("  #"));
            assert_eq!(lines.next(), Some("Examples:"), "{name}");
            let examples: Vec<&str> = lines.collect();
            let command = format!("landfall {name}");
            assert!(
                !examples.is_empty() && examples.iter().all(|line| line.contains(&command)),
                "{name}: {help}"
            );
        }
        assert!(overview.lines().count() < 42, "one screen:\n{overview}");
    }

    #[test]
    fn only_misspellings_get_a_tip() {
        let command = Command::new("x")
            .arg(Arg::new("idle").long("idle"))
            .arg(Arg::new("store").long("store"));
        let printed = |flag| {
            let refused = command.clone().try_get_matches_from(["x", flag]);
            without_far_tips(refused.unwrap_err()).to_string()
        };
        let typo_message = printed("--stroe=x");
        assert!(typo_message.contains("'--store'"), "{typo_message}");
        for flag in ["--bundle=b", "--file=b", "--title", "--image"] {
            assert!(!printed(flag).contains("--idle'"), "{}", printed(flag));
        }
    }
}
