//! The flag by which several runners share a lock, and what a CI says of itself.

use crate::cli::shared::CliError;
use clap::Args;
use landfall_model::Shard;
use landfall_model::report::RunReport;
use serde_json::json;
use std::collections::BTreeMap;

const HELP: &str = "Do only part I of N, as in 3/8; other runners do the rest, all with the same lock. `auto` takes it from \
    LANDFALL_SHARD=I/N, a Kubernetes Indexed Job (JOB_COMPLETION_INDEX and LANDFALL_SHARDS) or GitLab (CI_NODE_INDEX and \
    CI_NODE_TOTAL)";

/// The flag.
#[derive(Args)]
pub(crate) struct ShardFlag {
    #[arg(id = "shard", long = "shard", value_name = "I/N|auto", value_parser = ShardChoice::parse, help = HELP)]
    choice: Option<ShardChoice>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShardChoice {
    OpenedFile(Shard),
    Auto,
}

impl ShardChoice {
    fn parse(text: &str) -> Result<ShardChoice, String> {
        match text {
            "auto" => Ok(ShardChoice::Auto),
            _ => text
                .parse()
                .map(ShardChoice::OpenedFile)
                .map_err(|error: landfall_model::ShardError| error.to_string()),
        }
    }
}

/// The variable that has the shard as the flag does.
const WHOLE: &str = "LANDFALL_SHARD";

/// Who tells the number of a runner, and how many there are: the two variables, and the number of
/// the first runner.
const TOLD: [(&str, &str, usize); 3] = [
    ("LANDFALL_SHARD_INDEX", "LANDFALL_SHARDS", 0),
    ("JOB_COMPLETION_INDEX", "LANDFALL_SHARDS", 0),
    ("CI_NODE_INDEX", "CI_NODE_TOTAL", 1),
];

impl ShardFlag {
    /// The shard that this runner does; without the flag, all.
    ///
    /// # Errors
    /// `auto` where the environment tells none, or a wrong one (exit 2).
    pub(crate) fn get(&self) -> Result<Shard, CliError> {
        match self.choice {
            None => Ok(Shard::default()),
            Some(ShardChoice::OpenedFile(shard)) => Ok(shard),
            Some(ShardChoice::Auto) => {
                told(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
            }
        }
    }

    /// Whether the flag is given.
    pub(crate) fn is_given(&self) -> bool {
        self.choice.is_some()
    }
}

/// The shard that the environment tells.
fn told(variable: impl Fn(&str) -> Option<String>) -> Result<Shard, CliError> {
    if let Some(text) = variable(WHOLE) {
        return text
            .parse()
            .map_err(|error| CliError::usage(format!("--shard auto: {WHOLE}: {error}")));
    }
    let mut found = BTreeMap::new();
    for (index, count, first) in TOLD {
        let Some(at) = variable(index) else { continue };
        let Some(of) = variable(count) else {
            return Err(CliError::usage(format!(
                "--shard auto: {index} is {at}, and {count} does not say how many there are; set it to the number of \
                 runners (of a Kubernetes Job, its completions)"
            )));
        };
        let number = |text: &str| text.parse::<usize>().ok();
        let shard = number(&at).zip(number(&of)).and_then(|(at, of)| {
            let number = at.checked_sub(first)?.checked_add(1)?;
            Shard::new(number, of).ok()
        });
        let wrong = || {
            CliError::usage(format!(
                "--shard auto: {index} is '{at}' and {count} is '{of}', which is no runner of so many: the first one has \
                 {first}"
            ))
        };
        found.insert(index, shard.ok_or_else(wrong)?);
    }
    let mut all = found.iter();
    match (
        all.next(),
        all.find(|(_, shard)| found.values().next() != Some(shard)),
    ) {
        (None, _) => Err(CliError::usage(format!(
            "--shard auto: nothing in the environment says which shard this is; give --shard I/N, or set {WHOLE}=I/N, or \
             LANDFALL_SHARD_INDEX (from 0) and LANDFALL_SHARDS"
        ))),
        (Some((first, one)), Some((second, other))) => Err(CliError::usage(format!(
            "--shard auto: {first} says that this is {one}, and {second} says {other}; give --shard I/N"
        ))),
        (Some((_, shard)), None) => Ok(*shard),
    }
}

/// Says which shard this is: in the report, and in front of the closing line.
pub(crate) fn report_shard(flag: &ShardFlag, shard: Shard, report: &mut RunReport) -> String {
    if !flag.is_given() {
        return String::new();
    }
    report.extra.insert(
        "shard".into(),
        json!({"number": shard.number(), "of": shard.count()}),
    );
    format!("shard {shard}: ")
}

/// Words before a count of items of which the shard has a part.
pub(crate) fn its_part(shard: Shard) -> &'static str {
    if shard.is_only() { "" } else { "its part of " }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `auto` makes of these variables: the shard, or what it tells.
    fn auto(variables: &[(&str, &str)]) -> String {
        let of = |name: &str| {
            variables
                .iter()
                .find(|(own, _)| *own == name)
                .map(|(_, value)| (*value).to_owned())
        };
        told(of).map_or_else(|failure| failure.message, |shard| shard.to_string())
    }

    #[test]
    fn each_ci_counts_as_it_does() {
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
    fn what_is_no_shard_is_told_with_what_to_do() {
        for (variables, words) in [
            (
                &[][..],
                "nothing in the environment says which shard this is; give --shard I/N",
            ),
            (
                &[("LANDFALL_SHARD", "0/8")],
                "LANDFALL_SHARD: '0/8' is not a shard: write I/N",
            ),
            (
                &[("JOB_COMPLETION_INDEX", "0")],
                "LANDFALL_SHARDS does not say how many there are",
            ),
            (
                &[("JOB_COMPLETION_INDEX", "8"), ("LANDFALL_SHARDS", "8")],
                "no runner of so many: the first one has 0",
            ),
            (
                &[("CI_NODE_INDEX", "0"), ("CI_NODE_TOTAL", "8")],
                "no runner of so many: the first one has 1",
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
                "CI_NODE_INDEX says that this is 1/8, and JOB_COMPLETION_INDEX says 4/8",
            ),
        ] {
            let told = auto(variables);
            assert!(told.contains(words), "{variables:?}: {told}");
        }
    }
}
