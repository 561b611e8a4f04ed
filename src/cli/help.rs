//! What `landfall help` shows, and the tips of usage errors.

use super::shared::pages;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The verbs by the way of the data, those that one learns first before all others.
const GROUPS: [(&str, &[&str]); 7] = [
    ("First", &["lock", "pull", "pack", "push", "rewrite"]),
    (
        "Say what is wanted",
        &["init", "discover", "import", "update", "diff"],
    ),
    ("Get it", &["refresh", "mirror", "egress", "gc"]),
    ("Carry it", &["sign", "verify", "ls", "report", "sbom"]),
    ("Deliver it", &["serve", "publish", "export", "status"]),
    ("Point to it", &["audit", "render"]),
    (
        "Find out",
        &["doctor", "schema", "man", "completions", "help"],
    ),
];

const WAY: &str = "\
    manifest ──lock──▶ lock ──pull──▶ store ──pack──▶ bundle ──push──▶ private registry
    (people)         (digests)      (blobs)         (one file)  └serve─▶ nodes pull from it
                                                       └rewrite─▶ manifests that point there";

/// `command` with its verbs in groups.
pub(super) fn grouped(command: Command) -> Command {
    let mut verbs = String::new();
    let mut named: BTreeSet<&str> = BTreeSet::new();
    let about = |name: &str| {
        let verb = command.find_subcommand(name)?;
        Some(
            verb.get_about()
                .map(ToString::to_string)
                .unwrap_or_default(),
        )
    };
    for (group, names) in GROUPS {
        let lines: Vec<_> = names
            .iter()
            .filter_map(|name| Some((*name, about(name)?)))
            .collect();
        list(&mut verbs, group, &lines);
        named.extend(names);
    }
    let others = command
        .get_subcommands()
        .map(Command::get_name)
        .filter(|name| !named.contains(name));
    let others: Vec<_> = others
        .filter_map(|name| Some((name, about(name)?)))
        .collect();
    list(&mut verbs, "Besides", &others);
    let template = format!(
        "{{about-with-newline}}\n{WAY}\n\n{{usage-heading}} {{usage}}\n{verbs}\n{{options}}{{after-help}}"
    );
    let pages = format!(
        "Pages of the manual (landfall help PAGE):\n{}",
        pages::listing(96)
    );
    command.help_template(template).after_help(pages)
}

fn list(to: &mut String, group: &str, verbs: &[(&str, String)]) {
    if verbs.is_empty() {
        return;
    }
    let _ = writeln!(to, "\n{group}:");
    for (name, about) in verbs {
        let _ = writeln!(to, "  {name:<11}  {about}");
    }
}

/// A usage error without a tip that leads astray: what is only a little alike is no misspelling.
pub(super) fn without_far_tips(mut error: Error) -> Error {
    if error.kind() == ErrorKind::UnknownArgument
        && let (Some(ContextValue::String(given)), Some(ContextValue::String(tip))) = (
            error.get(ContextKind::InvalidArg),
            error.get(ContextKind::SuggestedArg),
        )
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
    use clap::Arg;

    #[test]
    fn a_tip_is_a_misspelling_mended_and_nothing_else() {
        let command = Command::new("x")
            .arg(Arg::new("idle").long("idle"))
            .arg(Arg::new("store").long("store"));
        let said = |flag| {
            without_far_tips(
                command
                    .clone()
                    .try_get_matches_from(["x", flag])
                    .unwrap_err(),
            )
            .to_string()
        };
        assert!(
            said("--stroe=x").contains("'--store'"),
            "{}",
            said("--stroe=x")
        );
        for flag in ["--bundle=b", "--file=b", "--title", "--image"] {
            assert!(!said(flag).contains("--idle'"), "{}", said(flag));
        }
    }
}
