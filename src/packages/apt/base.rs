//! What a machine has after its system was installed, by the priorities of a suite (Debian Policy 2.5).

use super::choose::choose;
use super::marking::Settings;
use super::universe::Universe;

/// Name and version of what a machine has whose system was installed from the indexes `texts`: all that is essential, all
/// up to the priority `least` (1 is required, 3 standard), apt, and what these need.
///
/// # Errors
/// When these cannot be installed.
pub(crate) fn suite_packages(
    architectures: &[String],
    texts: &[&str],
    least: u8,
) -> Result<Vec<(String, String)>, String> {
    let mut universe = Universe::new(architectures);
    let source = universe.source(500);
    texts.iter().for_each(|text| universe.add(source, text));
    let is_wanted = |name: &str, version: u32| {
        let offer = universe.offer_of(version);
        offer.is_essential || (1..=least).contains(&offer.priority) || name == "apt"
    };
    let native = universe.packages.iter().filter(|known| known.arch == 0);
    let names: Vec<String> = native
        .filter_map(|known| Some((universe.text(known.name), *known.versions.first()?)))
        .filter(|(name, version)| is_wanted(name, *version))
        .map(|(name, _)| name.to_owned())
        .collect();
    let settings = Settings { recommends: false, expects_rest: true };
    let choice = choose(&universe, &[], &names, settings)?;
    Ok(choice
        .versions
        .iter()
        .map(|version| {
            let offer = universe.offer_of(*version);
            let name = universe.text(universe.packages[offer.package as usize].name);
            (name.to_owned(), offer.version.to_owned())
        })
        .collect())
}
