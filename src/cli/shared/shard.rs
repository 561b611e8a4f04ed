//! `--shard`: several runners share a lock, each with a part of it.

use super::{CliError, ReportMember, VerbReport};
use clap::Args;
use landfall_model::{Failure, Limits, Shard};
use std::collections::BTreeMap;

const HELP: &str = "Process only part I of N, as in 3/8; other runners with the same lock process \
    the rest. `auto` reads the part from LANDFALL_SHARD=I/N, LANDFALL_SHARD_INDEX (from 0) and \
    LANDFALL_SHARDS, a Kubernetes Indexed Job (JOB_COMPLETION_INDEX and LANDFALL_SHARDS) or GitLab \
    (CI_NODE_INDEX and CI_NODE_TOTAL)";

#[derive(Args)]
pub(crate) struct ShardFlag {
    #[arg(id = "shard", long = "shard", value_name = "I/N|auto", help = HELP,
        value_parser = ShardChoice::parse)]
    choice: Option<ShardChoice>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShardChoice {
    Fixed(Shard),
    Auto,
}

impl ShardChoice {
    fn parse(text: &str) -> Result<ShardChoice, Failure> {
        match text {
            "auto" => Ok(ShardChoice::Auto),
            _ => text.parse().map(ShardChoice::Fixed),
        }
    }
}

/// The environment variable with the shard as `I/N`.
const SHARD_VARIABLE: &str = "LANDFALL_SHARD";

/// Pairs of environment variables with the index of a runner and the number of runners, and the
/// index of the first runner: Kubernetes counts from 0, GitLab from 1.
const INDEX_VARIABLES: [(&str, &str, usize); 3] = [
    ("LANDFALL_SHARD_INDEX", "LANDFALL_SHARDS", 0),
    ("JOB_COMPLETION_INDEX", "LANDFALL_SHARDS", 0),
    ("CI_NODE_INDEX", "CI_NODE_TOTAL", 1),
];

impl ShardFlag {
    /// The shard of this runner; without the flag, the whole lock.
    pub(crate) fn get(&self) -> Result<Shard, CliError> {
        match self.choice {
            None => Ok(Shard::default()),
            Some(ShardChoice::Fixed(shard)) => Ok(shard),
            Some(ShardChoice::Auto) => shard_from_environment(|name| {
                std::env::var(name).ok().filter(|value| !value.is_empty())
            }),
        }
    }

    pub(crate) fn is_given(&self) -> bool {
        self.choice.is_some()
    }
}

/// The shard that the environment variables name.
fn shard_from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Shard, CliError> {
    if let Some(text) = variable(SHARD_VARIABLE) {
        return text
            .parse()
            .map_err(|error| CliError::usage(format!("--shard auto: {SHARD_VARIABLE}: {error}")));
    }
    let mut found = BTreeMap::new();
    for (index, count, first) in INDEX_VARIABLES {
        let Some(at) = variable(index) else { continue };
        let Some(of) = variable(count) else {
            return Err(CliError::usage(format!(
                "--shard auto: {index} is {at}, but {count} is not set; set it to the number of \
                 runners (the completions of a Kubernetes Job)"
            )));
        };
        let number = |text: &str| text.parse::<usize>().ok();
        let shard = number(&at).zip(number(&of)).and_then(|(at, of)| {
            let number = at.checked_sub(first)?.checked_add(1)?;
            Shard::new(number, of).ok()
        });
        let shard = shard.ok_or_else(|| {
            CliError::usage(format!(
                "--shard auto: {index} is '{at}' and {count} is '{of}', which is not a valid \
                 shard: the first runner has index {first}, and at most {most} runners are allowed",
                most = Limits::DEFAULT.shards
            ))
        })?;
        found.insert(index, shard);
    }
    // Variables that disagree are an error: otherwise two runners could process the same part, and
    // another part would be left out.
    let mut all = found.iter();
    match (
        all.next(),
        all.find(|(_, shard)| found.values().next() != Some(shard)),
    ) {
        (None, _) => Err(CliError::usage(format!(
            "--shard auto: no environment variable names the shard; use --shard I/N, or set \
             {SHARD_VARIABLE}=I/N, or LANDFALL_SHARD_INDEX (from 0) and LANDFALL_SHARDS"
        ))),
        (Some((first, one)), Some((second, other))) => Err(CliError::usage(format!(
            "--shard auto: {first} names shard {one}, but {second} names {other}; use --shard I/N"
        ))),
        (Some((_, shard)), None) => Ok(*shard),
    }
}

/// Adds the shard to the report. Returns the start of the closing line, empty without `--shard`.
pub(crate) fn report_shard(flag: &ShardFlag, shard: Shard, report: &mut VerbReport) -> String {
    if !flag.is_given() {
        return String::new();
    }
    report.add(ReportMember::Shard {
        number: shard.number(),
        of: shard.count(),
    });
    format!("shard {shard}: ")
}

/// The words before a count of items; empty if one shard has the whole lock.
pub(crate) fn part_prefix(shard: Shard) -> &'static str {
    if shard.is_only() { "" } else { "its part of " }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shard that these variables give, or the error.
    fn auto(variables: &[(&str, &str)]) -> String {
        let of = |name: &str| {
            variables
                .iter()
                .find(|(own, _)| *own == name)
                .map(|(_, value)| (*value).to_owned())
        };
        shard_from_environment(of)
            .map_or_else(|failure| failure.message.clone(), |shard| shard.to_string())
    }

    #[test]
    fn each_ci_system_has_its_own_variables() {
        assert_eq!(
            auto(&[
                ("LANDFALL_SHARD", "3/8"),
                ("CI_NODE_INDEX", "1"),
                ("CI_NODE_TOTAL", "2")
            ]),
            "3/8"
        );
        assert_eq!(
            auto(&[("JOB_COMPLETION_INDEX", "0"), ("LANDFALL_SHARDS", "8")]),
            "1/8"
        );
        assert_eq!(
            auto(&[("JOB_COMPLETION_INDEX", "7"), ("LANDFALL_SHARDS", "8")]),
            "8/8"
        );
        assert_eq!(
            auto(&[("LANDFALL_SHARD_INDEX", "2"), ("LANDFALL_SHARDS", "4")]),
            "3/4"
        );
        assert_eq!(
            auto(&[("CI_NODE_INDEX", "1"), ("CI_NODE_TOTAL", "5")]),
            "1/5"
        );
        let same = [
            ("CI_NODE_INDEX", "2"),
            ("CI_NODE_TOTAL", "5"),
            ("LANDFALL_SHARD_INDEX", "1"),
            ("LANDFALL_SHARDS", "5"),
        ];
        assert_eq!(auto(&same), "2/5");
    }

    #[test]
    fn an_invalid_shard_is_an_error_that_names_the_fix() {
        for (variables, words) in [
            (
                &[][..],
                "no environment variable names the shard; use --shard I/N",
            ),
            (
                &[("LANDFALL_SHARD", "0/8")],
                "LANDFALL_SHARD: '0/8' is not a shard: write I/N",
            ),
            (
                &[("JOB_COMPLETION_INDEX", "0")],
                "but LANDFALL_SHARDS is not set",
            ),
            (
                &[("JOB_COMPLETION_INDEX", "8"), ("LANDFALL_SHARDS", "8")],
                "not a valid shard: the first runner has index 0, and at most 10000 runners",
            ),
            (
                &[("CI_NODE_INDEX", "0"), ("CI_NODE_TOTAL", "8")],
                "not a valid shard: the first runner has index 1, and at most 10000 runners",
            ),
            (
                &[("CI_NODE_INDEX", "x"), ("CI_NODE_TOTAL", "8")],
                "CI_NODE_INDEX is 'x'",
            ),
            (
                &[
                    ("CI_NODE_INDEX", "1"),
                    ("CI_NODE_TOTAL", "8"),
                    ("JOB_COMPLETION_INDEX", "3"),
                    ("LANDFALL_SHARDS", "8"),
                ],
                "CI_NODE_INDEX names shard 1/8, but JOB_COMPLETION_INDEX names 4/8",
            ),
        ] {
            let message = auto(variables);
            assert!(message.contains(words), "{variables:?}: {message}");
        }
    }
}
