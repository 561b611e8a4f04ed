//! `landfall init --from SYSTEM` and `--list`: the manifests that landfall ships.

use crate::cli::shared::listing::text_of;
use crate::cli::shared::output_file::{refuse_present, write_new};
use crate::cli::shared::verb_report::SystemRow;
use crate::cli::shared::{CliError, Exit, ReportMember, VerbOutcome, VerbReport};
use landfall_item::manifest::{CATALOGUE, CatalogueManifest};
use landfall_model::TargetRegistry;
use landfall_model::config::Site;
use landfall_model::report::{aligned_columns, command_word};
use std::path::{Path, PathBuf};

/// The name of the site file.
const SITE: &str = "site.yaml";

/// Lists the systems that have a shipped manifest.
pub(crate) fn listing() -> VerbOutcome {
    let rows = CATALOGUE
        .iter()
        .map(|shipped| [shipped.name.to_owned(), shipped.about.to_owned()]);
    let mut text = aligned_columns(&rows.collect::<Vec<_>>());
    let systems = CATALOGUE.iter().map(|shipped| SystemRow {
        name: shipped.name,
        about: shipped.about,
        files: shipped.files.iter().map(|(path, _)| *path).collect(),
        edit: shipped.edit,
        platform: shipped.platform,
    });
    text += "landfall init --from SYSTEM -o DIR writes the files of a system\n";
    let mut report = VerbReport::default();
    report.add(ReportMember::Systems(systems.collect()));
    VerbOutcome::of(report, text)
}

/// Writes the files that are shipped for `system` to the folder `out`. `to` replaces the address of
/// the registry in the site file.
pub(crate) fn written(
    system: &str,
    out: &Path,
    to: Option<&TargetRegistry>,
    dry_run: bool,
) -> Result<VerbOutcome, CliError> {
    let Some(shipped) = CatalogueManifest::of(system) else {
        let message = format!("landfall ships no manifest for {system}");
        return Err(CliError::usage(message).with_help("`landfall init --list` lists all systems"));
    };
    let mut files: Vec<(PathBuf, String)> = shipped
        .standalone_files()
        .map(|(name, text)| (out.join(name), text))
        .collect();
    if let Some(to) = to {
        for (path, text) in files.iter_mut().filter(|(path, _)| path.ends_with(SITE)) {
            *text = with_address(path, text, &to.to_string())?;
        }
    }
    refuse_present(&files.iter().map(|(path, _)| path).collect::<Vec<_>>())?;
    let mut report = VerbReport::default();
    let next = next_step(out, &out.join(SITE));
    let names: Vec<String> = files
        .iter()
        .map(|(path, _)| path.display().to_string())
        .collect();
    report.add(ReportMember::Written(names.clone()));
    report.add(ReportMember::Edit(shipped.edit));
    report.add(ReportMember::Next(next.clone()));
    if dry_run {
        let texts = files.iter();
        let texts = texts.map(|(path, content)| format!("--- {}\n{content}", path.display()));
        let text: String = texts.collect();
        return Ok(VerbOutcome::new(report, text, Exit::Done).document());
    }
    write_new(out, &files, || Ok(()))?;
    let written = names.iter().map(|name| format!("wrote {name}"));
    let edit = shipped.edit.iter().map(|line| format!("edit {line}"));
    let lines = written.chain(edit).chain([format!("next: {next}")]);
    Ok(VerbOutcome::new(report, text_of(lines), Exit::Done))
}

/// The command that follows: it needs the site too, which may have the proxy.
pub(crate) fn next_step(manifests: &Path, site: &Path) -> String {
    let [manifests, site] = [manifests, site].map(|path| command_word(&path.display().to_string()));
    format!("landfall lock -f {manifests} --site {site}")
}

/// Replaces the address of the registry in the `text` of a site file.
fn with_address(path: &Path, text: &str, address: &str) -> Result<String, CliError> {
    let old = Site::parse(path, text)?
        .registry
        .map(|registry| registry.address)
        .unwrap_or_default();
    let Some(at) = text.find("address:").filter(|_| !old.is_empty()) else {
        return Ok(text.to_owned());
    };
    // Replaced only after the key, because a comment above it may contain the address too.
    let (before, after) = text.split_at(at);
    Ok(before.to_owned() + &after.replacen(&old, address, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::ChangedName;

    #[test]
    fn the_address_of_every_shipped_site_can_be_replaced() {
        for shipped in CATALOGUE {
            let (name, text) = shipped.standalone_files().last().unwrap();
            assert_eq!(name, SITE, "{}", shipped.name);
            let moved = with_address(Path::new(name), &text, "mirror.test/p").unwrap();
            let site = Site::parse(Path::new(name), &moved).unwrap();
            assert_eq!(site.registry.unwrap().address, "mirror.test/p", "{moved}");
            assert_eq!(moved.lines().count(), text.lines().count());
            assert!(!text.contains("manifests/"), "{text}");
        }
    }
    #[test]
    fn shipped_files_with_old_names_name_the_new_ones() {
        let mut old = 0;
        for (name, text) in CATALOGUE
            .iter()
            .flat_map(CatalogueManifest::standalone_files)
        {
            // a value begins after a blank, a bracket or a quote
            let written = text
                .lines()
                .filter(|line| !line.trim_start().starts_with('#'))
                .flat_map(|line| line.split([' ', '[', '{', '"', '\'', ',']));
            for row in written.filter_map(ChangedName::of) {
                old += 1;
                let says = row.replacement.unwrap_or("landfall help changed-names");
                let head = text.split("apiVersion:").next().unwrap();
                assert!(head.contains(says), "{name} uses {}: {says}", row.name);
            }
        }
        assert!(old > 5, "{old}");
    }
}
