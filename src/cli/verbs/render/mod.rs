//! `landfall render`: configuration that makes a platform use the registry. The platforms are those
//! in `PLATFORMS` of `landfall-render`.

mod arguments;
mod merge_diff;

use self::arguments::{MergeFlags, PlatformRun, RenderFlags};
use self::merge_diff::merge_diff;
use crate::cli::shared::listing::text_of;
use crate::cli::shared::locked_charts::{LockedCharts, locked_charts};
use crate::cli::shared::output_file::{OutputFile, OutputMark, text_file, write_result};
use crate::cli::shared::unified_diff::DiffReader;
use crate::cli::shared::verb_report::{FileRow, ReportChange};
use crate::cli::shared::{
    CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport, input_file,
};
use landfall_content::replace_file;
use landfall_item::lockfile::{Lock, collision};
use landfall_model::document::{MergeRules, SiteFacts, objects};
use landfall_model::report::{TransferSide, aligned_columns};
use landfall_model::{DestinationMap, Failure, TargetRegistry, today};
use landfall_os::{mode_of, set_mode};
use landfall_render as render;
use landfall_render::{
    PLATFORMS, PlatformSettings, RenderPlatform, RenderRequest, RenderedFile, RenderedOutput,
};
use serde_json::{Map, json};
use serde_yaml::Value;
use std::path::{Path, PathBuf};

pub(crate) use self::arguments::RenderCommand;

impl RenderCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        match self {
            RenderCommand::List => Ok(list()),
            RenderCommand::Run(run) => run.run(context),
        }
    }
}

fn list() -> VerbOutcome {
    let specs = || PLATFORMS.iter();
    let rows = specs().map(|spec| [spec.name.to_owned(), spec.about.to_owned()]);
    let text = aligned_columns(&rows.collect::<Vec<_>>());
    let platforms: Map<_, _> = specs()
        .map(|spec| (spec.name.to_owned(), json!(spec.about)))
        .collect();
    let mut report = VerbReport::default();
    report.add(ReportMember::Platforms(platforms));
    VerbOutcome::of(report, text)
}

impl PlatformRun {
    fn run(mut self, context: &Context) -> Result<VerbOutcome, CliError> {
        let spec = self.platform;
        let mut notes = Vec::new();
        let target = match &self.common.to {
            Some(target) => Some(target.clone()),
            None => context.site_target()?,
        };
        let is_proxy_only = target.is_none() && self.platform.has_proxy_part && has_proxy(context);
        // `_charts` keeps temporary archives of charts until the platform has read them.
        let (lock, _charts) = if is_proxy_only {
            notes.push(
                "no registry is named, so only the proxy is configured; add registry.address to \
                 the site for the images"
                    .into(),
            );
            (Lock::default(), None)
        } else {
            self.lock(context, &mut notes)?
        };
        let RenderFlags {
            to, set, out, into, ..
        } = &self.common;
        if let Some(why) = into.as_ref().and(spec.writes.not_into()) {
            return Err(CliError::usage(format!("--into: {why}")));
        }
        let settings = PlatformSettings::parse(spec.settings, set)?;
        let needs_registry = self.platform.needs_registry && !is_proxy_only;
        let mapping = match (&target, needs_registry) {
            // This platform can do without a registry, and then does not use the mapping.
            (None, false) => {
                let nowhere = TargetRegistry {
                    registry: String::new(),
                    prefix: String::new(),
                };
                DestinationMap::to(nowhere)
            }
            _ => context.mapping(to.as_ref())?,
        };
        let existing = into
            .as_deref()
            .map(objects_of)
            .transpose()?
            .unwrap_or_default();
        if let Some(collision) = collision(&mapping, &lock) {
            return Err(CliError::usage(collision));
        }
        let today = today().to_string();
        let request = RenderRequest {
            lock: &lock,
            mapping: &mapping,
            target: target.as_ref(),
            existing: &existing,
            site: context.site.as_ref(),
            plain_http: &context.global.plain_http,
            environment: |name| std::env::var(name).ok(),
            today: &today,
            limits: &context.limits,
            inputs: &self.inputs,
            settings,
        };
        let rendered = render::render(self.platform, &request)?;
        let facts = match into {
            Some(_) => render::site_facts(&request)?,
            None => SiteFacts::default(),
        };

        let mut report = VerbReport::of(rendered.items);
        if let Some(text) = rendered.text {
            report.add(ReportMember::Text(text));
        }
        if let Some(overlay) = rendered.overlay {
            report.add(ReportMember::Keys(overlay.keys));
            report.add(ReportMember::Missing(overlay.missing));
            report.add(ReportMember::Undecided(overlay.undecided));
            report.add(ReportMember::Values(json!(overlay.values)));
        }
        let out = text_file(out.as_deref());
        let mut lines = if out.is_some() {
            rendered.changes
        } else {
            Vec::new()
        };
        lines.extend(rendered.notes.into_iter().chain(notes));
        if let Some(why) = rendered.failure {
            let failure = CliError::of_lines(
                Exit::Failed,
                [&[why.to_owned()][..], &lines].concat().iter(),
            )
            .on(TransferSide::Input);
            return Err(failure.with_report(report));
        }
        let text = match (rendered.output, out) {
            (RenderedOutput::Text(text), out) => {
                // A text without a header is a plain value.
                let is_own = |present: &str| render::has_header_of(present, spec.name);
                let command = format!("render {}", spec.name);
                let mark = if text.is_empty() || is_own(&text) {
                    OutputMark::Content(&is_own)
                } else {
                    OutputMark::Record(&command)
                };
                let file = out.map(|path| OutputFile {
                    path,
                    replaces: self.common.merging.replace,
                    mark,
                });
                return write_result(VerbOutcome::of(report, text), file, &lines, context);
            }
            (RenderedOutput::Files(files), Some(folder)) => {
                let written = write_files(
                    spec,
                    &files,
                    folder,
                    self.common.merging.replace,
                    &mut report,
                )?;
                text_of(written.into_iter().chain(lines))
            }
            (RenderedOutput::Files(files), None) => {
                let path = into
                    .as_deref()
                    .ok_or_else(|| CliError::usage("no folder is named").with_help("add -o DIR"))?;
                merge_into(
                    path,
                    &files,
                    self.common.merging,
                    &facts,
                    lines,
                    context,
                    &mut report,
                )?
            }
        };
        // The lines were escaped above, and a diff is already formatted for its reader.
        Ok(VerbOutcome::of(report, text).document())
    }

    /// The lock, if the platform reads one. A bundle among the inputs is removed from them, and
    /// charts that are given by their name in the lock are replaced by their archives.
    fn lock(
        &mut self,
        context: &Context,
        notes: &mut Vec<String>,
    ) -> Result<(Lock, Option<LockedCharts>), CliError> {
        if !self.platform.reads_lock {
            return Ok((Lock::default(), None));
        }
        if self.platform.works_without_lock && !self.common.locked.is_named() {
            notes.push(
                "no lock was read, so landfall did not check that the registry has the images"
                    .into(),
            );
            return Ok((Lock::default(), None));
        }
        let given: Vec<PathBuf> = self.inputs.values().flatten().cloned().collect();
        let (lock, paths) = self.common.locked.load_with_paths(context, &given)?;
        self.inputs
            .values_mut()
            .for_each(|given| given.retain(|path| paths.contains(path)));
        let Some(charts) = self.inputs.get_mut("charts") else {
            return Ok((lock, None));
        };
        let named = std::mem::take(charts);
        let found = locked_charts(named, &lock, &self.common.locked, &given, context)?;
        charts.clone_from(&found.paths);
        Ok((lock, Some(found)))
    }
}

/// Whether the site has a proxy.
fn has_proxy(context: &Context) -> bool {
    let proxy = context.site.as_ref().and_then(|site| site.proxy.as_ref());
    proxy.is_some_and(|proxy| proxy.http.is_some() || proxy.https.is_some())
}

/// Writes the files. Returns a line for each, and a line for each file of an earlier run that was
/// not written again.
fn write_files(
    spec: &RenderPlatform,
    files: &[RenderedFile],
    folder: &Path,
    replaces: bool,
    report: &mut VerbReport,
) -> Result<Vec<String>, CliError> {
    let left = render::stale_files(folder, spec.name, files);
    render::write_files(folder, spec.name, files, replaces)?;
    let mut lines = Vec::new();
    for file in files {
        let secret = if file.secret {
            ", holds credentials"
        } else {
            ""
        };
        lines.push(format!(
            "{} ({:04o}{secret})",
            folder.join(&file.path).display(),
            file.mode
        ));
    }
    for path in &left {
        lines.push(format!(
            "{} is from an earlier run and was not written again; delete it if nothing needs it",
            path.display()
        ));
    }
    let files = files.iter().map(|file| FileRow::Rendered {
        file: folder.join(&file.path).display().to_string(),
        mode: format!("{:04o}", file.mode),
        secret: file.secret,
    });
    report.add(ReportMember::Files(files.collect()));
    report.add(ReportMember::Stale(
        left.iter().map(|path| path.display().to_string()).collect(),
    ));
    Ok(lines)
}

/// The documents of the file at `path`, and the items of its lists.
fn objects_of(path: &Path) -> Result<Vec<Value>, CliError> {
    let shown = path.display();
    let text = input_file::text(path)?;
    let objects = objects(&text).map_err(|error| CliError::usage(format!("{shown}: {error}")))?;
    Ok(objects.into_iter().map(|(_, object)| object).collect())
}

/// Merges `files` into the file at `path`. Returns the text for stdout: the keys that were set, or
/// a diff.
fn merge_into(
    path: &Path,
    files: &[RenderedFile],
    merging: MergeFlags,
    facts: &SiteFacts,
    notes: Vec<String>,
    context: &Context,
    report: &mut VerbReport,
) -> Result<String, CliError> {
    let shown = path.display();
    let text = input_file::text(path)?;
    let rules = MergeRules {
        replace: merging.replace,
        facts,
        ..MergeRules::default()
    };
    let clusters = context.site.as_ref().map(|site| site.clusters.as_slice());
    let merged = render::merge_into(path, &text, files, clusters.unwrap_or_default(), rules)?;
    let old_mode = std::fs::metadata(path).map_err(|error| Failure::write(path, error))?;
    let old_mode = mode_of(&old_mode);
    let is_written = !merging.diff && merged.text != text;
    // Only the owner may read credentials.
    let mode = if merged.secret && is_written {
        old_mode & 0o700
    } else {
        old_mode
    };
    report.add(ReportMember::Files(vec![FileRow::Rendered {
        file: shown.to_string(),
        mode: format!("{mode:04o}"),
        secret: merged.secret,
    }]));
    let keys = merged.changes.iter().cloned().map(ReportChange::Key);
    report.add(ReportMember::Changes(keys.collect()));
    let notes = merged.notes.iter().cloned().chain(notes);
    if merging.diff {
        notes.for_each(|note| context.progress.note(&note));
        let diff = merge_diff(
            &shown.to_string(),
            &text,
            &merged,
            DiffReader::of_stdout(context),
        );
        report.add(ReportMember::Diff(diff.clone()));
        return Ok(diff);
    }
    let mut lines: Vec<String> = merged
        .changes
        .iter()
        .map(|key| format!("{shown}: {key}"))
        .collect();
    if is_written {
        if merged.secret {
            // First the permissions, then the content: others must not read credentials in between.
            set_mode(path, mode).map_err(|error| Failure::write(path, error))?;
            lines.push(format!("{shown} ({mode:04o}, holds credentials)"));
        }
        let lost = replace_file(path, |now| now == text.as_bytes(), merged.text.as_bytes())
            .map_err(|error| Failure::write(path, error))?;
        lines.extend(lost.into_iter().map(|lost| format!("{shown}: lost {lost}")));
    } else {
        lines.push(format!("{shown} is up to date"));
    }
    Ok(text_of(lines.into_iter().chain(notes)))
}
