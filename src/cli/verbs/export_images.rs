//! `landfall export images`.

use crate::cli::shared::carried::Carried;
use crate::cli::shared::listing::count_of;
use crate::cli::shared::stdout::result_stdout;
use crate::cli::shared::summary::item_line;
use crate::cli::shared::{Context, Exit, Failure, Outcome};
use crate::content::{BlobRead, FileUnderWay};
use crate::image_archive::{Archive, ArchiveError, Asked, Format};
use crate::lockfile::{Lock, collision, losses};
use crate::model::{Mapping, Platform, Target, human_size};
use crate::report::{Item, Kind, Progress, Report, Side, Status, escape};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the archive in a folder.
const ARCHIVE: &str = "landfall-images.tar";
/// Endings of compressed files. What loads archives may decide by them.
const COMPRESSED: [&str; 8] = ["gz", "tgz", "zst", "tzst", "xz", "txz", "bz2", "lz4"];

/// Write the images as one archive that ctr, nerdctl, docker, podman, k3s and RKE2 load
#[derive(Args)]
pub(crate) struct Images {
    #[command(flatten)]
    carried: Carried,
    /// The archive, a tar; in a folder it is landfall-images.tar, and - is stdout
    #[arg(short, long, value_name = "FILE|DIR|-")]
    out: PathBuf,
    /// The form of the archive
    #[arg(long, value_enum, default_value_t = Form::Oci)]
    format: Form,
    /// Only this platform of each image, as in linux/amd64 (for oci may be repeated) [default: all that are carried]
    #[arg(long, value_name = "PLATFORM")]
    platform: Vec<Platform>,
    /// Add the names that images have at this registry [default: registry.address of the site]
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    to: Option<Target>,
    /// Say what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// The choice of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// An OCI image layout, several platforms an image: ctr, nerdctl, k3s, RKE2, skopeo
    Oci,
    /// As `docker save` writes it, one platform an image: docker, podman, and all the others
    Docker,
}

/// Where the archive goes.
enum Place {
    Stdout(File),
    File(PathBuf),
}

impl Images {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        if self.format == Form::Docker && self.platform.len() > 1 {
            return Err(Failure::usage(
                "a docker archive holds one platform; give one --platform, or take --format oci",
            ));
        }
        let place = self.place(context)?;
        let mapping = self.mapping(context)?;
        let (lock, blobs) = self.carried.open(context, |entry| entry.kind == Kind::Image)?;
        if let Some(collision) = mapping.as_ref().and_then(|mapping| collision(mapping, &lock)) {
            return Err(Failure::usage(collision.to_string()));
        }
        let progress = Arc::clone(&context.progress);
        context.run(async move {
            let work =
                tokio::task::spawn_blocking(move || self.export(&lock, &*blobs, mapping, place, &*progress));
            work.await.map_err(|error| Failure::new(Exit::Failed, format!("exporting stopped: {error}")))?
        })
    }

    fn place(&self, context: &Context) -> Result<Place, Failure> {
        if self.out == Path::new("-") {
            return match self.dry_run {
                true => Ok(Place::File("-".into())),
                false => Ok(Place::Stdout(result_stdout(context, "the archive")?)),
            };
        }
        if self.out.is_dir() {
            return Ok(Place::File(self.out.join(ARCHIVE)));
        }
        let ending = self.out.extension().and_then(|ending| ending.to_str());
        if let Some(ending) = ending.filter(|ending| COMPRESSED.contains(ending)) {
            return Err(Failure::usage(format!(
                "{}: the archive is a plain tar, as its layers are compressed already, and some programs take the .{ending} for \
                 true; call it .tar, or compress what -o - gives",
                self.out.display()
            )));
        }
        Ok(Place::File(self.out.clone()))
    }

    /// Whose destinations are names too: that of `--to`, or the site's registry where it has one.
    fn mapping(&self, context: &Context) -> Result<Option<Mapping>, Failure> {
        let is_known = self.to.is_some() || context.site_target()?.is_some();
        is_known.then(|| context.mapping(self.to.as_ref())).transpose()
    }

    fn export(
        &self,
        lock: &Lock,
        blobs: &dyn BlobRead,
        mapping: Option<Mapping>,
        place: Place,
        progress: &dyn Progress,
    ) -> Result<Outcome, Failure> {
        let format = match self.format {
            Form::Oci => Format::Oci,
            Form::Docker => Format::Docker,
        };
        let asked = Asked { format, platforms: &self.platform, mapping: mapping.as_ref() };
        let archive = Archive::plan(lock, blobs, &asked)?;
        let lost: Vec<Item> = losses(lock).into_iter().filter(|item| item.kind == Kind::Image).collect();
        let lost = [lost, archive.lost.clone()].concat();
        let mut report = self.report(&archive, &lost, &place);
        if archive.images.is_empty() && lost.is_empty() {
            return Err(Failure::usage("the lock names no image"));
        }
        let bad = || lost.iter().filter(|item| item.status != Status::Skipped);
        if archive.images.is_empty() || (bad().next().is_some() && !self.carried.allow_partial) {
            let lines: String = bad().map(|item| format!("\n  {}", item_line(item))).collect();
            let message = format!(
                "nothing was written, as {} not here; `landfall pull` fetches into the store, and --allow-partial \
                 takes the others:{lines}",
                if bad().count() == 1 { "an image is" } else { "images are" }
            );
            report.items.iter_mut().for_each(|item| {
                if item.status == Status::Done {
                    item.status = Status::Skipped;
                }
            });
            return Err(
                Failure { report: Box::new(report), ..Failure::new(Exit::Failed, message) }.on(Side::Source)
            );
        }
        if !self.dry_run {
            progress.begin("export", archive.images.len() as u64, archive.blob_bytes());
            let written = write(&archive, blobs, &place, progress);
            progress.end();
            written?;
            report.bytes_transferred = archive.size();
        }
        let text = self.text(&archive, &lost, &place, lock);
        let mut outcome = Outcome::of(report, text);
        if let Place::Stdout(_) = place {
            progress.note(std::mem::take(&mut outcome.text).trim_end());
        }
        Ok(outcome)
    }

    fn report(&self, archive: &Archive, lost: &[Item], place: &Place) -> Report {
        let status = if self.dry_run { Status::Skipped } else { Status::Done };
        let items = archive.images.iter().map(|image| Item {
            kind: Kind::Image,
            name: image.name.clone(),
            digest: Some(image.digest.clone()),
            bytes: Some(image.bytes),
            status,
            reason: self.dry_run.then(|| "would be written".to_owned()),
        });
        let mut report = Report { items: items.chain(lost.iter().cloned()).collect(), ..Report::default() };
        let named = archive
            .images
            .iter()
            .map(|image| json!({"name": image.name, "digest": image.top.digest, "names": image.names}));
        let format = self.format.to_possible_value();
        report.extra.insert(
            "archive".into(),
            json!({
                "path": place.name(), "format": format.as_ref().map(|value| value.get_name()), "bytes": archive.size(),
                "images": named.collect::<Vec<_>>(),
            }),
        );
        report.extra.insert("trimmed".into(), json!(archive.trimmed));
        report
    }

    fn text(&self, archive: &Archive, lost: &[Item], place: &Place, lock: &Lock) -> String {
        let mut text: String = lost.iter().map(|item| item_line(item) + "\n").collect();
        let names: usize = archive.images.iter().map(|image| image.names.len()).sum();
        let _ = writeln!(
            text,
            "{} {} under {} to {} ({})",
            if self.dry_run { "would export" } else { "exported" },
            count_of(archive.images.len(), "image"),
            count_of(names, "name"),
            escape(&place.name()),
            human_size(archive.size())
        );
        if !archive.trimmed.is_empty() {
            let _ = writeln!(
                text,
                "  trimmed           to the platforms inside: {}; --report lists the new digests",
                count_of(archive.trimmed.len(), "image")
            );
        }
        let referrers: usize =
            lock.images.iter().filter_map(|image| image.referrers.as_ref()).map(Vec::len).sum();
        if referrers > 0 {
            let _ = writeln!(
                text,
                "  left behind       {} (signatures, SBOMs, attestations), which no runtime loads; `push` delivers them",
                count_of(referrers, "referrer")
            );
        }
        text
    }
}

impl Place {
    fn name(&self) -> String {
        match self {
            Place::Stdout(_) => "-".into(),
            Place::File(path) => path.display().to_string(),
        }
    }
}

fn write(
    archive: &Archive,
    blobs: &dyn BlobRead,
    place: &Place,
    progress: &dyn Progress,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let message = format!("cannot write {}: {error}", place.name());
        Failure::new(Exit::Failed, message).on(Side::Destination)
    };
    let told = |error| match error {
        ArchiveError::Write(error) => failed(error),
        other => other.into(),
    };
    match place {
        Place::Stdout(file) => archive.write(blobs, &mut &*file, progress).map_err(told)?,
        Place::File(path) => {
            let under_way = FileUnderWay::begin(path).map_err(failed)?;
            archive.write(blobs, &mut under_way.file(), progress).map_err(told)?;
            under_way.finish().map_err(failed)?;
        }
    }
    archive.images.iter().for_each(|image| progress.item(&image.name));
    Ok(())
}
