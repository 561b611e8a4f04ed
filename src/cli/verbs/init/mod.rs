//! `landfall init`: writes a first manifest and a first site.

mod catalogue;

use self::catalogue::{listing, next_step, written};
use crate::cli::shared::draft::{DraftRequest, DraftResult, draft_manifest, parse_manifest_name};
use crate::cli::shared::listing::text_of;
use crate::cli::shared::output_file::{refuse_present, write_new, written_folder};
use crate::cli::shared::{
    CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport, input_file,
};
use clap::Args;
use clap::builder::PossibleValuesParser;
use landfall_item::manifest::{
    CATALOGUE, MORE, example_manifest, from_list, import_format_of, platforms_line,
};
use landfall_model::config::starter_site;
use landfall_model::document::read_text_input;
use landfall_model::report::shell_word;
use landfall_model::{Failure, PlatformRequest, TargetRegistry};
use landfall_rewrite::audit::HelmCommand;
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

const MANIFEST: &str = "manifest.yaml";
const SITE: &str = "site.yaml";

/// Write a first manifest and site file, with comments
///
/// Starts from a list of images, a tree of YAML, a manifest that landfall ships, or nothing.
/// Existing files are not replaced. Charts are rendered by `helm template` if helm is on PATH, and
/// otherwise read without rendering.
#[derive(Args)]
pub(crate) struct InitCommand {
    /// A list of images, the log of kubermatic-installer mirror-images, or a folder, a chart or a
    /// YAML file
    from: Option<PathBuf>,
    /// Write the manifests and the site that landfall ships for this system
    #[arg(
        long = "from",
        value_name = "SYSTEM",
        conflicts_with_all = ["from", "name", "platforms"],
        value_parser = PossibleValuesParser::new(CATALOGUE.iter().map(|shipped| shipped.name))
    )]
    system: Option<String>,
    /// List what landfall ships, and write nothing
    #[arg(long,
        conflicts_with_all = ["from", "system", "name", "platforms", "out", "to", "dry_run"])]
    list: bool,
    /// The folder to write to
    #[arg(short, long, value_name = "DIR", default_value = ".", value_parser = written_folder())]
    out: PathBuf,
    /// The address of the private registry, for the site file
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    to: Option<TargetRegistry>,
    /// A platform for all images, as in linux/amd64 [default: those in node selectors] (may be
    /// repeated)
    #[arg(long = "platform", value_name = "OS/ARCH")]
    platforms: Vec<PlatformRequest>,
    /// The metadata.name of the manifest
    #[arg(long, value_name = "NAME", default_value = "first", value_parser = parse_manifest_name)]
    name: String,
    /// Print what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// The files to write, and what is printed about them.
struct FirstFiles {
    manifest: String,
    site: String,
    lines: Vec<String>,
    report: VerbReport,
    exit: Exit,
}

impl InitCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        if self.list {
            return Ok(listing());
        }
        if let Some(system) = &self.system {
            return written(system, &self.out, self.to.as_ref(), self.dry_run);
        }
        let files = [MANIFEST, SITE].map(|name| self.out.join(name));
        refuse_present(&files)?;
        let FirstFiles {
            manifest,
            site,
            mut lines,
            mut report,
            exit,
        } = self.first(context)?;
        let [manifest_file, site_file] = &files;
        let next = next_step(manifest_file, site_file);
        report.add(ReportMember::Manifest(manifest.clone()));
        report.add(ReportMember::Site(site.clone()));
        report.add(ReportMember::Next(next.clone()));
        if self.dry_run {
            let manifest_name = manifest_file.display();
            let site_name = site_file.display();
            let text = format!("--- {manifest_name}\n{manifest}--- {site_name}\n{site}");
            return Ok(VerbOutcome::new(report, text, exit).document());
        }
        let new = [(manifest_file, &manifest), (site_file, &site)];
        // Reads the manifest as `lock` would. If that fails, the new files are removed again.
        write_new(&self.out, &new, || {
            input_file::manifests(std::slice::from_ref(manifest_file), &[]).map(drop)
        })?;
        lines.push(format!(
            "wrote {} and {}",
            manifest_file.display(),
            site_file.display()
        ));
        lines.push(format!("next: {next}"));
        Ok(VerbOutcome::new(report, text_of(lines), exit))
    }

    fn first(&self, context: &Context) -> Result<FirstFiles, CliError> {
        let address = self.to.as_ref().map(ToString::to_string);
        let site = starter_site(address.as_deref());
        let by_flag = platforms_line(&self.platforms, "of all images here");
        let written = |manifest| FirstFiles {
            manifest,
            site: site.clone(),
            lines: Vec::new(),
            report: VerbReport::default(),
            exit: Exit::Done,
        };
        let Some(from) = &self.from else {
            let title =
                "Written by `landfall init`. List here what to mirror, and keep this file in git.";
            return Ok(written(example_manifest(&self.name, title, &by_flag)));
        };
        fs::metadata(from).map_err(|error| {
            let failure = Failure::read(from, &error);
            if error.kind() != std::io::ErrorKind::NotFound {
                return failure;
            }
            failure.with_help("`landfall init --list` lists what --from SYSTEM can name")
        })?;
        let title = format!(
            "Written by `landfall init` from {}. Keep this file in git.",
            from.display()
        );
        if let Some(format) = if from.is_dir() {
            None
        } else {
            input_file::list_format(from)?
        } {
            // Reports errors with the lines of the list, not of the manifest that includes it.
            input_file::manifests(std::slice::from_ref(from), &self.platforms)?;
            let list = relative(from, &self.out);
            return Ok(written(from_list(
                &self.name,
                &title,
                &by_flag,
                format,
                &list.display().to_string(),
            )));
        }
        let helm = HelmCommand::find(std::env::var_os("PATH").as_deref(), &[]);
        let paths = std::slice::from_ref(from);
        let helm = helm.as_ref();
        let platforms = &self.platforms;
        let title = format!("{title} Review it, and pin commented-out entries.");
        let request = DraftRequest {
            access_logs: &[],
            paths,
            helm,
            platforms,
            name: &self.name,
            title: &title,
        };
        let DraftResult {
            text,
            entries,
            lines,
            report,
            exit,
        } = draft_manifest(&request, context)?;
        if entries == 0 {
            let message = format!(
                "{} names no image with a version, so nothing was written",
                from.display()
            );
            let error = CliError::failed(message).with_report(report);
            let text = read_text_input(from).unwrap_or_default();
            return Err(match import_format_of(&text) {
                Some(format) => {
                    let file = shell_word(&from.display().to_string());
                    error.with_help(format!("landfall import {format} {file}"))
                }
                None => error,
            });
        }
        Ok(FirstFiles {
            manifest: text + MORE,
            site,
            lines,
            report,
            exit,
        })
    }
}

/// The absolute path of `path`. Symbolic links are resolved in the part of the path that exists.
fn resolved(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    absolute.ancestors().find_map(|existing| {
        let rest = absolute.strip_prefix(existing).ok()?;
        Some(existing.canonicalize().ok()?.join(rest))
    })
}

/// The path of `file` relative to `folder`, which need not exist yet.
fn relative(file: &Path, folder: &Path) -> PathBuf {
    let (Some(file_at), Some(folder_at)) = (resolved(file), resolved(folder)) else {
        return file.into();
    };
    let to: Vec<&OsStr> = file_at.iter().collect();
    let from: Vec<&OsStr> = folder_at.iter().collect();
    let same = to.iter().zip(&from).take_while(|(a, b)| a == b).count();
    let up = from[same..]
        .iter()
        .map(|_| Component::ParentDir.as_os_str());
    up.chain(to[same..].iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_list_is_relative_to_the_manifest() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("lists")).unwrap();
        fs::write(at("lists/a.txt"), "").unwrap();
        for (folder, way) in [
            ("", "lists/a.txt"),
            ("lists", "a.txt"),
            ("new/below", "../../lists/a.txt"),
        ] {
            assert_eq!(relative(&at("lists/a.txt"), &at(folder)), Path::new(way));
        }
    }
}
