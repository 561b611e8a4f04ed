//! `landfall export`: writes the content of a bundle or the store for other tools.

mod folder;
mod images;
mod referrers;

use self::folder::{ExportGit, ExportPackages, FolderExport};
use self::images::{ExportImages, licences};
use self::referrers::ExportReferrers;
use crate::cli::shared::bundle_flags::LockFlags;
use crate::cli::shared::failed_items::item_line;
use crate::cli::shared::output_file::{OutputMark, ReplaceFlag, text_file, write_result};
use crate::cli::shared::{CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport};
use clap::{Args, Subcommand};
use landfall_item::has_files;
use landfall_item::lockfile::{EXPORT_FORMATS, ExportInput, accepted_losses};
use landfall_model::TargetRegistry;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_serve::{export_charts, export_files, export_providers};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Export images, files, charts, packages, git or providers
#[derive(Args)]
pub(crate) struct ExportCommand {
    #[command(subcommand)]
    what: ExportSubcommand,
}

#[derive(Subcommand)]
enum ExportSubcommand {
    Images(ExportImages),
    /// Write the files to a folder as HOST/PATH, for a web server
    Files(FolderExport),
    Referrers(ExportReferrers),
    /// Write a chart repository: a folder with charts and an index.yaml
    ///
    /// Any web server can serve it to helm.
    Charts(FolderExport),
    /// Write the apt repositories to a folder as HOST/PATH, for a web server
    Apt(ExportPackages),
    /// Write the yum and dnf repositories to a folder as HOST/PATH, for a web server
    Yum(ExportPackages),
    Git(ExportGit),
    /// Write providers of OpenTofu and Terraform to a folder, as a mirror
    ///
    /// The folder is a filesystem mirror, and any https server can serve it as a network mirror.
    Providers(FolderExport),
    #[command(flatten)]
    List(ExportList),
}

impl ExportCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        match self.what {
            ExportSubcommand::Images(images) => images.run(context),
            ExportSubcommand::Files(files) => files.run(context, has_files, Box::new(export_files)),
            ExportSubcommand::Referrers(referrers) => referrers.run(context),
            ExportSubcommand::Charts(charts) => {
                let is_chart = |kind| kind == EntryKind::Chart;
                charts.run(context, is_chart, Box::new(export_charts))
            }
            ExportSubcommand::Apt(apt) => apt.run(context, "apt:"),
            ExportSubcommand::Yum(yum) => yum.run(context, "yum:"),
            ExportSubcommand::Git(git) => git.run(context),
            ExportSubcommand::Providers(providers) => {
                let is_provider = |kind| kind == EntryKind::Provider;
                providers.run(context, is_provider, Box::new(export_providers))
            }
            ExportSubcommand::List(list) => list.run(context),
        }
    }
}

/// The start of the first line of a written list, if its format has comments.
const HEAD: &str = "# Written by `landfall ";

/// One subcommand for each format in `EXPORT_FORMATS`.
#[derive(Subcommand)]
pub(crate) enum ExportList {
    /// Write the list as Hauler Images and Files
    Hauler(ListFlags),
    /// Write the images, one reference per line
    ImagesTxt(ListFlags),
    /// Write the images as a YAML file for `skopeo sync`
    SkopeoSync(ListFlags),
    /// Write the images as a configuration for regsync
    Regsync(ListFlags),
    /// Write the list as zarf.yaml
    Zarf(ListFlags),
    /// Write the images as an ImagesLock for imgpkg
    ImgpkgLock(ListFlags),
    /// Write a table for approval: kind, name, digest, bytes, origin, licence
    Sources(ListFlags),
}

#[derive(Args)]
pub(crate) struct ListFlags {
    /// The bundle or the lock [default: landfall.lock]
    #[arg(value_name = "BUNDLE|LOCK", conflicts_with_all = ["lock", "bundle"])]
    place: Option<PathBuf>,
    #[command(flatten)]
    locked: LockFlags,
    /// The file to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    replace: ReplaceFlag,
    /// Add the locked digest to each image, not only to those that the manifest pins
    #[arg(long)]
    digests: bool,
    /// The target registry, for regsync [default: registry.address of the site]
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    to: Option<TargetRegistry>,
}

impl ExportList {
    fn parts(self) -> (&'static str, ListFlags) {
        match self {
            ExportList::Hauler(flags) => ("hauler", flags),
            ExportList::ImagesTxt(flags) => ("images-txt", flags),
            ExportList::SkopeoSync(flags) => ("skopeo-sync", flags),
            ExportList::Regsync(flags) => ("regsync", flags),
            ExportList::Zarf(flags) => ("zarf", flags),
            ExportList::ImgpkgLock(flags) => ("imgpkg-lock", flags),
            ExportList::Sources(flags) => ("sources", flags),
        }
    }

    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        let (name, flags) = self.parts();
        let Some(form) = EXPORT_FORMATS.iter().find(|form| form.name == name) else {
            return Err(CliError::usage(format!(
                "{name} is not a list that landfall writes"
            )));
        };
        let locked = flags.locked.with_argument(flags.place);
        let lock = locked.load(context)?;
        let mapping = match name {
            "regsync" => Some(context.mapping(flags.to.as_ref())?),
            _ => None,
        };
        // Only `sources` lists licences. They are read from the content of the items.
        let licences = match name {
            "sources" if locked.has_content(context) => {
                licences(&lock, &*locked.content(context, &[])?)
            }
            _ => BTreeMap::new(),
        };
        let input = ExportInput {
            lock: &lock,
            mapping: mapping.as_ref(),
            digests: flags.digests,
            licences,
        };
        let listed = (form.write)(&input);
        let mut report = VerbReport::default();
        report.add(ReportMember::List(listed.text.clone()));
        report.add(ReportMember::NotCarried(listed.left.clone()));
        let accepted = accepted_losses(&lock);
        let is_expired = |loss: &ReportItem| loss.status == ItemStatus::Missing;
        let exit = if listed.left.is_empty() && !accepted.iter().any(is_expired) {
            Exit::Done
        } else {
            Exit::Partial
        };
        let mut lines: Vec<String> = listed
            .left
            .iter()
            .map(|line| format!("not in the list: {line}"))
            .collect();
        // `sources` has a row for each accepted loss
        if name != "sources" {
            let lost = accepted.iter().map(item_line);
            lines.extend(lost.map(|line| format!("not in the list: {line}")));
        }
        report.items.extend(accepted);
        let out = text_file(flags.out.as_deref());
        lines.extend(out.iter().map(|path| format!("wrote {}", path.display())));
        let text = match (&out, form.has_comments) {
            (Some(_), true) => format!("{HEAD}export {name}`.\n{}", listed.text),
            _ => listed.text,
        };
        // comments and the table of `sources` have a first line that no other command writes
        let first_line = text.lines().next().map(str::to_owned);
        let is_own = |present: &str| present.lines().next() == first_line.as_deref();
        let command = format!("export {name}");
        let mark = match name {
            "images-txt" => OutputMark::Record(&command),
            _ => OutputMark::Content(&is_own),
        };
        write_result(
            VerbOutcome::new(report, text, exit),
            flags.replace.file(out, mark),
            &lines,
            context,
        )
    }
}
