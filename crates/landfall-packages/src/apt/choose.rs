//! Which packages apt would install for what is asked for.

pub use super::marking::AptSettings;
use super::marking::Marking;
use super::of_suite::SuitePreference;
use super::offer::{AptPackageId, AptVersionId};
use super::reason::{broken, shown, written};
use super::request::InstallRequest;
use super::universe::Universe;
use std::collections::BTreeSet;

/// The packages that apt would install for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AptSelection {
    /// What is new on the machine.
    pub versions: Vec<AptVersionId>,
    /// What the machine must have besides, as no source offers it: relations as they are written.
    pub expected: BTreeSet<String>,
    /// What is installed and would go, or be another version: names with versions.
    pub replaced: Vec<String>,
}

/// The stack for the choice: packages need each other hundreds deep.
const STACK: usize = 256 << 20;

/// Chooses for `install`, in its order: what comes first is marked first with all that it needs,
/// and decides for what follows. `suites` says by which names each source is known.
///
/// # Errors
/// The chain of reasons why it cannot be installed.
pub fn choose(
    universe: &Universe<'_>,
    suites: &[Vec<String>],
    install: &[String],
    settings: AptSettings,
) -> Result<AptSelection, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let thread =
            thread.spawn_scoped(scope, || choose_here(universe, suites, install, settings));
        let joined = thread
            .map_err(|error| format!("the choice of packages cannot begin: {error}"))?
            .join();
        joined.unwrap_or_else(|_| Err("the choice of packages stopped".into()))
    })
}

fn choose_here(
    universe: &Universe<'_>,
    suites: &[Vec<String>],
    install: &[String],
    settings: AptSettings,
) -> Result<AptSelection, String> {
    let mut marking = Marking::new(universe, settings);
    let (mut asked, mut of_suite) = (Vec::new(), Vec::new());
    for text in install {
        let request = InstallRequest::of(text);
        let meant = request.find(universe, suites)?;
        meant
            .version
            .into_iter()
            .for_each(|version| marking.prefer(version));
        of_suite.extend(
            meant
                .version
                .filter(|_| meant.is_of_suite)
                .map(|version| (request, version)),
        );
        if !asked.contains(&meant.package) {
            asked.push(meant.package);
        }
    }
    for (request, version) in of_suite {
        let has = |version| request.is_of_suite(universe, suites, version);
        marking.prefer_of_suite(version, &mut SuitePreference::new(&has));
    }
    asked.iter().for_each(|package| marking.ask(*package));
    asked.iter().for_each(|package| marking.complete(*package));
    if let Some(bad) = marking.broken().first() {
        // what marking found out is told, whatever is tried then
        let why = why(universe, &marking, &asked, *bad);
        if !marking.can_resolve() {
            return Err(why);
        }
        marking.resolve();
        if !marking.broken().is_empty() {
            return Err(why);
        }
    }
    let versions = marking.needed();
    let expected = versions
        .iter()
        .flat_map(|version| marking.expected(*version));
    let expected = expected.map(|group| written(universe, group)).collect();
    let had = universe
        .packages
        .iter()
        .enumerate()
        .filter_map(|(at, known)| Some((at as AptPackageId, known.current?)));
    let replaced = had.filter(|(package, current)| marking.installed(*package) != Some(*current));
    let replaced = replaced.map(|(package, current)| match marking.installed(package) {
        Some(new) => format!(
            "{} → {}",
            shown(universe, current),
            universe.offer_of(new).version
        ),
        None => format!("{} would be removed", shown(universe, current)),
    });
    Ok(AptSelection {
        versions,
        expected,
        replaced: replaced.collect(),
    })
}

/// Why `bad`, which is there in the end, cannot be: by the chain from what was asked for where
/// there is one.
fn why(
    universe: &Universe<'_>,
    marking: &Marking<'_, '_>,
    asked: &[AptPackageId],
    bad: AptPackageId,
) -> String {
    let chains = asked
        .iter()
        .chain([&bad])
        .map(|package| marking.reasons.chain(universe, *package));
    let chain = chains
        .into_iter()
        .find(|chain| !chain.is_empty())
        .unwrap_or_else(|| {
            let group = marking.installed(bad).zip(marking.unmet(bad));
            group
                .map(|(version, group)| broken(universe, version, group))
                .into_iter()
                .collect()
        });
    if chain.is_empty() {
        "what is asked for cannot be installed together".into()
    } else {
        chain.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(index: &str, install: &[&str]) -> Result<usize, String> {
        let mut universe = Universe::new(&["amd64".to_owned()]);
        let source = universe.source(500);
        universe.add(source, index);
        let install: Vec<String> = install.iter().map(|name| (*name).to_owned()).collect();
        let settings = AptSettings {
            recommends: false,
            expects_rest: false,
        };
        choose(&universe, &[], &install, settings).map(|choice| choice.versions.len())
    }

    fn package(name: &str, fields: &str) -> String {
        format!(
            "Package: {name}\nVersion: 1\nArchitecture: amd64\nFilename: {name}.deb\nSize: 1\nSHA256: {:064}\n{fields}\n",
            0
        )
    }

    fn names(count: usize, name: impl Fn(usize) -> String, between: &str) -> String {
        (0..count).map(name).collect::<Vec<_>>().join(between)
    }

    /// Pigeons that need a hole each, one hole fewer than there are. apt takes back no choice, so
    /// it gives up soon, and so must this.
    #[test]
    fn packages_that_exclude_each_other_are_given_up_soon() {
        let count = 20;
        let mut index = String::new();
        for pigeon in 0..count {
            let holes = names(count - 1, |hole| format!("p{pigeon}h{hole}"), " | ");
            index += &package(&format!("p{pigeon}"), &format!("Depends: {holes}\n"));
            for hole in 0..count - 1 {
                let others = names(count, |other| format!("p{other}h{hole}"), ", ");
                index += &package(
                    &format!("p{pigeon}h{hole}"),
                    &format!("Conflicts: {others}\n"),
                );
            }
        }
        let all: Vec<String> = (0..count).map(|pigeon| format!("p{pigeon}")).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        outcome(&index, &all).unwrap_err();
    }

    /// Two ways at each of 40 steps, all of which end in what cannot be installed.
    #[test]
    fn ways_that_all_end_in_a_conflict_are_given_up_soon() {
        let depth = 40;
        for end in ["Conflicts: root\n", "Depends: nothing\n", "Breaks: root\n"] {
            let mut index = package("root", "Depends: s0a | s0b\n");
            for step in 0..depth {
                let needs = format!("Depends: s{0}a | s{0}b\n", step + 1);
                let needs = if step + 1 == depth { end } else { &needs };
                index += &package(&format!("s{step}a"), needs);
                index += &package(&format!("s{step}b"), needs);
            }
            outcome(&index, &["root"]).unwrap_err();
        }
    }
}
