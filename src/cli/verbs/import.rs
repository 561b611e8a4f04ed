//! `landfall import`: converts files of other tools to a manifest or a site.

use crate::cli::shared::draft::parse_manifest_name;
use crate::cli::shared::listing::text_of;
use crate::cli::shared::output_file::{refuse_present, write_new, written_folder};
use crate::cli::shared::{CliError, Exit, ReportMember, VerbOutcome, VerbReport, input_file};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use landfall_http::bypasses_proxy;
use landfall_item::manifest::{IMPORT_FORMATS, ImportSource, ImportedItems, manifest_of};
use landfall_model::config::{TkgSite, read_tkg_site};
use landfall_model::document::read_text_input;
use landfall_model::report::{count_of, shell_word};
use landfall_os::Blocking;
use std::path::{Path, PathBuf};

/// The format that is converted to a site, not to a manifest.
const TKG: &str = "tkg";

/// Write a manifest or site from files of another tool
///
/// Existing files are not replaced, and credentials are not imported. Items and settings that a
/// manifest cannot express are reported and added as comments. Exits with 3 if an item could not be
/// imported.
#[derive(Args)]
pub(crate) struct ImportCommand {
    /// The format of the files
    #[arg(value_parser = PossibleValuesParser::new(formats()))]
    format: String,
    /// The files, or - for stdin
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The folder to write to: manifest.yaml, or site.yaml with its certificates
    #[arg(short, long, value_name = "DIR", default_value = ".", value_parser = written_folder())]
    out: PathBuf,
    /// The metadata.name of the manifest
    #[arg(long, value_name = "NAME", default_value = "imported",
        value_parser = parse_manifest_name)]
    name: String,
    /// Print what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

fn formats() -> Vec<PossibleValue> {
    let manifests = IMPORT_FORMATS
        .iter()
        .map(|format| PossibleValue::new(format.name).help(format.about));
    let site = PossibleValue::new(TKG)
        .help("a TKG cluster configuration, or the Secret that contains one: writes a site");
    manifests.chain([site]).collect()
}

impl ImportCommand {
    pub(crate) fn run(self) -> Result<VerbOutcome, CliError> {
        if self.format == TKG {
            return self.site();
        }
        let format = IMPORT_FORMATS
            .iter()
            .find(|format| format.name == self.format);
        let Some(format) = format else {
            return Err(CliError::usage(format!("unknown format {}", self.format)));
        };
        let mut imported = ImportedItems::for_folder(&self.out);
        for file in &self.files {
            (format.read)(&read(file)?, &mut imported)?;
        }
        let from: Vec<String> = self
            .files
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        let from = from.join(", ");
        let title = format!(
            "Written by `landfall import {}` from {from}. Keep this file in git.",
            self.format
        );
        let manifest = manifest_of(&imported, &self.name, &title);
        let mut report = VerbReport::default();
        report.add(ReportMember::NotCarried(imported.not_imported.clone()));
        report.add(ReportMember::Notes(imported.notes.clone()));
        report.add(ReportMember::Manifest(manifest.clone()));
        let mut lines: Vec<String> = imported
            .not_imported
            .iter()
            .map(|line| format!("not imported: {line}"))
            .collect();
        lines.extend(imported.notes.iter().map(|line| format!("note: {line}")));
        if imported.entries() == 0 {
            lines.push(format!(
                "{from} contains nothing that a manifest can express, so nothing was written"
            ));
            return Err(CliError::of_lines(Exit::Failed, &lines).with_report(report));
        }
        let exit = if imported.not_imported.is_empty() {
            Exit::Done
        } else {
            Exit::Partial
        };
        if self.dry_run {
            return Ok(VerbOutcome::new(report, manifest, exit).document());
        }
        let file = self.out.join("manifest.yaml");
        refuse_present(&[&file])?;
        // Reads the manifest as `lock` would. If that fails, the new file is removed again.
        write_new(&self.out, &[(&file, &manifest)], || {
            input_file::manifests(std::slice::from_ref(&file), &[]).map(drop)
        })?;
        lines.push(format!(
            "wrote {} with {}",
            file.display(),
            count_of(imported.entries(), "entry")
        ));
        lines.push(format!(
            "next: landfall {} -f {}",
            // `lock` refuses rules that `update` has not applied yet
            if imported.has_rules() {
                "update"
            } else {
                "lock"
            },
            shell_word(&file.display().to_string())
        ));
        Ok(VerbOutcome::new(report, text_of(lines), exit))
    }

    fn site(self) -> Result<VerbOutcome, CliError> {
        let [file] = &self.files[..] else {
            return Err(CliError::usage("a site is imported from exactly one file"));
        };
        let ImportSource { file, text } = read(file)?;
        let TkgSite {
            site,
            certificates,
            notes,
        } = read_tkg_site(&file, &text, bypasses_proxy)?;
        let mut files = vec![(self.out.join("site.yaml"), site.as_str())];
        let certificates = certificates.iter();
        files.extend(certificates.map(|(name, pem)| (self.out.join(name), pem.as_str())));
        let mut report = VerbReport::default();
        report.add(ReportMember::Site(site.clone()));
        report.add(ReportMember::Notes(notes.clone()));
        if self.dry_run {
            return Ok(VerbOutcome::of(report, site).document());
        }
        let paths: Vec<&PathBuf> = files.iter().map(|(path, _)| path).collect();
        refuse_present(&paths)?;
        write_new(&self.out, &files, || Ok(()))?;
        let wrote = files
            .iter()
            .map(|(path, _)| format!("wrote {}", path.display()));
        Ok(VerbOutcome::of(report, text_of(wrote.chain(notes))))
    }
}

/// Reads a file, or stdin. A byte order mark, which Windows tools write, is removed.
fn read(file: &Path) -> Result<ImportSource, CliError> {
    let is_stdin = file == Path::new("-");
    let name = if is_stdin {
        "stdin".to_owned()
    } else {
        file.display().to_string()
    };
    let read = if is_stdin {
        std::io::read_to_string(Blocking(std::io::stdin()))
    } else {
        read_text_input(file)
    };
    let text = read.map_err(|error| CliError::usage(format!("cannot read {name}: {error}")))?;
    let text = text.trim_start_matches('\u{feff}').to_owned();
    Ok(ImportSource { file: name, text })
}
