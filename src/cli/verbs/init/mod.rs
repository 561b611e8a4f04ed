//! `landfall init`: the first manifest and the first site of somebody who has none.

mod catalogue;

use crate::cli::shared::draft::{DraftRequest, DraftResult, drafted, name};
use crate::cli::shared::new_files::{refuse_present, write_new};
use crate::cli::shared::{CliError, Context, Exit, VerbOutcome, input_file};
use catalogue::{listing, written};
use clap::Args;
use clap::builder::PossibleValuesParser;
use landfall_item::manifest::{CATALOGUE, MORE, from_list, of_nothing, platforms_line};
use landfall_model::config::starter_site;
use landfall_model::report::{RunReport, one_line, shell_word};
use landfall_model::{Platform, TargetRegistry};
use landfall_rewrite::audit::HelmCommand;
use serde_json::json;
use std::fs;
use std::path::{Component, Path, PathBuf};

const MANIFEST: &str = "manifest.yaml";
const SITE: &str = "site.yaml";

/// Write a first manifest and a first site, with comments, from a list, a tree of YAML, the
/// catalogue or nothing
///
/// It replaces no file. Charts are rendered by `helm template` where a helm is on PATH, and read as
/// they are where not.
#[derive(Args)]
pub(crate) struct InitCommand {
    /// A plain list of images, the log of kubermatic-installer mirror-images, or a folder, chart or
    /// file of YAML
    from: Option<PathBuf>,
    /// Write what landfall ships for this system: pinned manifests and a site
    #[arg(
        long = "from",
        value_name = "SYSTEM",
        conflicts_with_all = ["from", "name", "platforms"],
        value_parser = PossibleValuesParser::new(CATALOGUE.iter().map(|shipped| shipped.name))
    )]
    system: Option<String>,
    /// Show what landfall ships, and write nothing
    #[arg(long, conflicts_with_all = ["from", "system", "name", "platforms", "out", "to", "dry_run"])]
    list: bool,
    /// The folder to write to
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// The private registry, for the site
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    to: Option<TargetRegistry>,
    /// A platform for all images, as in linux/amd64 [default: those that node selectors name] (may
    /// be repeated)
    #[arg(long = "platform", value_name = "OS/ARCH")]
    platforms: Vec<Platform>,
    /// The manifest's metadata.name
    #[arg(long, value_name = "NAME", default_value = "first", value_parser = name)]
    name: String,
    /// Print what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// What is to be written.
struct FirstFiles {
    manifest: String,
    site: String,
    lines: Vec<String>,
    report: RunReport,
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
        let next = format!(
            "landfall lock -f {}",
            shell_word(&manifest_file.display().to_string())
        );
        report.extra.insert("manifest".into(), json!(manifest));
        report.extra.insert("site".into(), json!(site));
        report.extra.insert("next".into(), json!(next));
        if self.dry_run {
            let (manifest_name, site_name) = (manifest_file.display(), site_file.display());
            let text = format!("--- {manifest_name}\n{manifest}--- {site_name}\n{site}");
            return Ok(VerbOutcome::new(report, text, exit).document());
        }
        let new = [
            (manifest_file.clone(), manifest.as_str()),
            (site_file.clone(), site.as_str()),
        ];
        // the manifest is read as `lock` will read it
        write_new(&self.out, &new, || {
            input_file::manifests(std::slice::from_ref(manifest_file), &[]).map(drop)
        })?;
        lines.push(format!(
            "wrote {} and {}",
            manifest_file.display(),
            site_file.display()
        ));
        lines.push(format!("next: {next}"));
        let text: String = lines.iter().map(|line| one_line(line) + "\n").collect();
        Ok(VerbOutcome::new(report, text, exit))
    }

    fn first(&self, context: &Context) -> Result<FirstFiles, CliError> {
        let address = self.to.as_ref().map(ToString::to_string);
        let site = starter_site(address.as_deref());
        let by_flag = platforms_line(&self.platforms, "of all images here");
        let written = |manifest| FirstFiles {
            manifest,
            site: site.clone(),
            lines: Vec::new(),
            report: RunReport::default(),
            exit: Exit::Done,
        };
        let Some(from) = &self.from else {
            let title = "Written by `landfall init`. Say here what you want, and keep it in git.";
            return Ok(written(of_nothing(&self.name, title, &by_flag)));
        };
        fs::metadata(from)
            .map_err(|error| CliError::usage(format!("cannot read {}: {error}", from.display())))?;
        let title = format!(
            "Written by `landfall init` from {}. Keep it in git.",
            from.display()
        );
        if let Some(format) = if from.is_dir() {
            None
        } else {
            input_file::list_format(from)?
        } {
            // its faults are told by its own lines
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
        let (paths, helm, platforms) = (std::slice::from_ref(from), helm.as_ref(), &self.platforms);
        let title = format!("{title} Read it, and pin what is commented.");
        let asked = DraftRequest {
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
        } = drafted(&asked, context)?;
        if entries == 0 {
            let message = format!(
                "nothing in {} names an image with a version, so nothing was written; `landfall discover` shows what it \
                 names",
                from.display()
            );
            return Err(CliError::new(Exit::Failed, message).with_report(report));
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

/// The way to `file` from `folder`, which need not be there yet.
fn relative(file: &Path, folder: &Path) -> PathBuf {
    let real = |path: &Path| {
        let absolute = std::path::absolute(path).ok()?;
        absolute.ancestors().find_map(|up| {
            Some(
                up.canonicalize()
                    .ok()?
                    .join(absolute.strip_prefix(up).ok()?),
            )
        })
    };
    let (Some(file_at), Some(folder_at)) = (real(file), real(folder)) else {
        return file.into();
    };
    let parts = |path: &Path| {
        path.components()
            .map(|part| part.as_os_str().to_owned())
            .collect::<Vec<_>>()
    };
    let (to, from) = (parts(&file_at), parts(&folder_at));
    let same = to.iter().zip(&from).take_while(|(a, b)| a == b).count();
    let up = from[same..]
        .iter()
        .map(|_| Component::ParentDir.as_os_str().to_owned());
    up.chain(to[same..].iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_named_from_the_folder_of_the_manifest() {
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
