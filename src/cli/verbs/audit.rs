//! `landfall audit`: compares the references in manifests, charts and clusters with the lock.

use crate::cli::shared::bundle_flags::LockFlags;
use crate::cli::shared::draft::{audit_access_log, draft_entries, read_stdin};
use crate::cli::shared::listing::text_of;
use crate::cli::shared::locked_charts::locked_charts;
use crate::cli::shared::output_file::{
    OutputFile, OutputMark, check_output, is_sealed, sealed, written_path,
};
use crate::cli::shared::{CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport};
use crate::push::{MissingParts, missing};
use clap::Args;
use landfall_item::lockfile::Lock;
use landfall_item::{ChartName, LockedImage, kind_named, manifest};
use landfall_model::report::{EntryKind, ItemStatus, ReportItem, TransferSide, count_of};
use landfall_model::{DestinationMap, Platform, TargetRegistry, today};
use landfall_rewrite::audit::{
    AuditResult, FileFinding, Inventory, LockCoverage, audit_text, audit_tree,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// List references that the lock or bundle lacks
///
/// Exits with 4 if an image, a mirrored URL, a git repository or a package is missing, if the name
/// of an image is ambiguous, or if the registry of --registry lacks content. Reads Kubernetes
/// manifests, charts, kustomizations, Dockerfiles, scripts, cloud-init, plain lists, and the output
/// of `kubectl get pods -A -o json`.
///
/// Rewritten files refer to the private registry: add --to REGISTRY or --site FILE, so that
/// its names are matched with the locked items.
#[derive(Args)]
pub(crate) struct AuditCommand {
    /// Files, folders, charts (a folder, a .tgz, or the name of a locked chart), or - for stdin
    #[arg(required_unless_present_any = ["registry", "access_logs"], value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// A log of what nodes asked for and did not get: the access log of a registry or file server,
    /// /misses.json of `landfall serve`, or the log of containerd or kubelet (may be repeated)
    #[arg(long = "access-log", value_name = "FILE")]
    access_logs: Vec<PathBuf>,
    #[command(flatten)]
    locked: LockFlags,
    /// The registry whose names are matched with locked items [default: registry.address of the
    /// site]
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    to: Option<TargetRegistry>,
    /// Also check that this registry has every locked digest at its destination
    #[arg(long, value_name = "REGISTRY[/PREFIX]", conflicts_with = "to")]
    registry: Option<TargetRegistry>,
    /// Also check that the registry has every blob: it may have lost some
    #[arg(long, requires = "registry")]
    blobs: bool,
    /// The platform of a node: images that the lock has without it are missing (may be repeated)
    #[arg(long = "platform", value_name = "OS/ARCH")]
    platforms: Vec<Platform>,
    /// Write a manifest with the missing items
    #[arg(long, value_name = "FILE", value_parser = written_path())]
    missing: Option<PathBuf>,
    /// With --missing: also replace a file that this command did not write, or that was edited
    /// since
    #[arg(long = "replace", requires = "missing")]
    replaces: bool,
}

impl AuditCommand {
    pub(crate) fn run(mut self, context: &Context) -> Result<VerbOutcome, CliError> {
        let (lock, paths) = self.locked.load_with_paths(context, &self.paths)?;
        if paths.is_empty() && self.registry.is_none() && self.access_logs.is_empty() {
            return Err(CliError::usage("no files to audit are named")
                .with_help("name files or folders in addition to the bundle"));
        }
        let charts = locked_charts(paths, &lock, &self.locked, &self.paths, context)?;
        self.paths.clone_from(&charts.paths);
        if let Some(path) = &self.missing {
            check_output("the manifest", path)?;
        }
        let mapping = self.mapping(context)?;
        let today = today().to_string();
        let files = context.site.as_ref().and_then(|site| site.files.as_deref());
        let inventory = Inventory::new(&lock, mapping.as_ref(), files, &today).with_packages(&lock);
        let registry = mapping.as_ref().map(|mapping| &*mapping.target().registry);
        let mut audited = self.read(context, &inventory, registry)?;
        let found = audited.found.iter_mut().map(|found| &mut found.file);
        let unread = audited.unread.iter_mut().map(|unread| &mut unread.file);
        for file in found.chain(unread) {
            *file = charts.shown(std::mem::take(file));
        }
        if let Some(path) = &self.missing {
            self.write_missing(path, &audited)?;
        }
        self.check_platforms(&lock, &mut audited);
        match (&self.registry, mapping) {
            (Some(_), Some(mapping)) => {
                context.run(self.compare_registry(context, &lock, &mapping, &audited, &inventory))
            }
            _ => self.outcome(&audited, None, &inventory, VerbReport::default()),
        }
    }

    fn write_missing(&self, path: &Path, audited: &AuditResult) -> Result<(), CliError> {
        let missing = audited.found.iter();
        let missing = missing
            .filter(|placed| matches!(placed.finding.coverage, LockCoverage::Missing { .. }));
        let title = "References that the lock lacks, found by `landfall audit`. Lock this \
            manifest too, or merge it into yours.";
        let drafted = manifest::draft("missing", title, "", &draft_entries(missing));
        let file = OutputFile {
            path,
            replaces: self.replaces,
            mark: OutputMark::Content(&is_sealed),
        };
        file.write(&sealed(&drafted.text))
    }

    /// Counts images as missing that the lock has without one of the platforms.
    fn check_platforms(&self, lock: &Lock, audited: &mut AuditResult) {
        let images = lock.images.iter();
        let images: BTreeMap<String, &LockedImage> = images
            .map(|image| (image.name.to_string(), image))
            .collect();
        for placed in &mut audited.found {
            let LockCoverage::Held { item } = &placed.finding.coverage else {
                continue;
            };
            let Some(image) = images.get(item) else {
                continue;
            };
            let lacking = self.platforms.iter().find_map(|platform| {
                let has = image.platforms_without(platform)?;
                let has: Vec<String> = has.iter().map(ToString::to_string).collect();
                Some(format!(
                    "the lock has it for {}, not for {platform}",
                    has.join(", ")
                ))
            });
            if let Some(why) = lacking {
                placed.finding.coverage = LockCoverage::Missing {
                    name: Some(image.name.clone()),
                    url: None,
                    why,
                };
            }
        }
    }

    /// The mapping whose destinations are matched with locked items; `None` without a registry.
    fn mapping(&self, context: &Context) -> Result<Option<DestinationMap>, CliError> {
        let to = self.registry.as_ref().or(self.to.as_ref());
        if to.is_none() && context.site_target()?.is_none() {
            return Ok(None);
        }
        context.mapping(to).map(Some)
    }

    /// Audits the files and the logs; `registry` is the one that wrote the logs.
    fn read(
        &self,
        context: &Context,
        inventory: &Inventory<'_>,
        registry: Option<&str>,
    ) -> Result<AuditResult, CliError> {
        let paths: Vec<PathBuf> = self
            .paths
            .iter()
            .filter(|path| path.as_path() != Path::new("-"))
            .cloned()
            .collect();
        let mut audited = audit_tree(&paths, inventory, &context.limits)?;
        if self
            .paths
            .iter()
            .any(|path| path.as_path() == Path::new("-"))
        {
            let text = read_stdin()?;
            audited.read += 1;
            audited
                .found
                .extend(audit_text("<stdin>", &text, inventory));
        }
        for log in &self.access_logs {
            let found = audit_access_log(log, registry, inventory)?;
            audited.found.extend(found);
            audited.read += 1;
        }
        // With only --registry, no files are read.
        if !self.paths.is_empty() && audited.read == 0 && audited.unread.is_empty() {
            return Err(CliError::usage(
                "nothing to audit was found: no YAML, JSON, Dockerfile or chart",
            ));
        }
        Ok(audited)
    }

    /// Also checks that the registry has the content of the lock.
    async fn compare_registry(
        &self,
        context: &Context,
        lock: &Lock,
        mapping: &DestinationMap,
        audited: &AuditResult,
        inventory: &Inventory<'_>,
    ) -> Result<VerbOutcome, CliError> {
        let client = context.client()?;
        let result = missing(lock, mapping, client.sessions(), self.blobs).await;
        // Also after a failure, the report lists the contacted hosts.
        let report = client.report(Vec::new());
        let lacking = result.map_err(|error| {
            let failure = CliError::from(error).on(TransferSide::Destination);
            failure.with_report(report.clone())
        })?;
        self.outcome(audited, Some(&lacking), inventory, report.into())
    }

    fn outcome(
        &self,
        audited: &AuditResult,
        lacking: Option<&MissingParts>,
        inventory: &Inventory<'_>,
        mut report: VerbReport,
    ) -> Result<VerbOutcome, CliError> {
        let [held, missing, undecided] = by_coverage(audited);
        let mut lines: Vec<String> = grouped("missing", &missing);
        lines.extend(grouped("undecided", &undecided));
        lines.extend(
            audited
                .unread
                .iter()
                .map(|unread| format!("{}: not read: {}", unread.file, unread.why)),
        );
        for lack in lacking.iter().flat_map(|lacking| &lacking.parts) {
            lines.push(format!(
                "{}: lacks {} of {}: {}",
                lack.at, lack.digest, lack.item, lack.why
            ));
        }
        if audited.read > 0 || !self.paths.is_empty() {
            lines.push(format!(
                "audited {}: {} held, {} missing, {} undecided",
                count_of(audited.read, "file"),
                held.len(),
                missing.len(),
                undecided.len()
            ));
        }
        let others = other_registries(&missing, inventory);
        lines.extend(others.iter().map(|(target, count)| {
            let (references, is) = match count {
                1 => ("missing reference", "is the name of a locked image"),
                _ => ("missing references", "are names of locked images"),
            };
            format!(
                "{count} {references} {is} at {target}; if the images were pushed there, add \
                 --to {target}"
            )
        }));
        if let Some(lacking) = lacking {
            lines.push(format!(
                "checked {} at the registry: {} missing",
                count_of(lacking.destinations, "destination"),
                lacking.parts.len()
            ));
        }
        report.items = items(&held, &missing);
        let owned = |found: &[&FileFinding]| found.iter().copied().cloned().collect();
        report.add(ReportMember::Held(owned(&held)));
        report.add(ReportMember::Missing(owned(&missing)));
        report.add(ReportMember::Undecided(owned(&undecided)));
        report.add(ReportMember::Unread(audited.unread.clone()));
        let parts = lacking.map(|lacking| lacking.parts.clone());
        report.add(ReportMember::Lacking(parts));
        let others = others.into_iter().map(|(target, _)| target);
        report.add(ReportMember::OtherRegistries(others.collect()));
        let lacks = lacking.is_some_and(|lacking| !lacking.parts.is_empty());
        // A node may pull an ambiguous name from the wrong registry. Other undecided references are
        // only listed.
        let is_ambiguous = undecided
            .iter()
            .any(|found| found.finding.coverage.is_ambiguous());
        let refuses = !missing.is_empty() || is_ambiguous || lacks;
        let exit = match (refuses, audited.unread.is_empty()) {
            (true, _) => Exit::Refused,
            (false, true) => Exit::Done,
            (false, false) if audited.read > 0 => Exit::Partial,
            (false, false) => {
                let failure = CliError::of_lines(Exit::Failed, &lines);
                return Err(failure.with_report(report));
            }
        };
        Ok(VerbOutcome::new(report, text_of(lines), exit))
    }
}

/// Registries at which missing references would be names of locked images, each with the number of
/// references: probably `--to` was forgotten.
fn other_registries(found: &[&FileFinding], inventory: &Inventory<'_>) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for target in found
        .iter()
        .filter_map(|one| inventory.other_target(&one.finding.reference))
    {
        *counts.entry(target).or_default() += 1;
    }
    counts.into_iter().collect()
}

/// The findings in three groups: references that the lock has, missing ones, and undecided ones.
fn by_coverage(audited: &AuditResult) -> [Vec<&FileFinding>; 3] {
    let mut groups: [Vec<&FileFinding>; 3] = Default::default();
    for placed in &audited.found {
        groups[match placed.finding.coverage {
            LockCoverage::Held { .. } => 0,
            LockCoverage::Missing { .. } => 1,
            LockCoverage::Ambiguous { .. } | LockCoverage::Undecided { .. } => 2,
        }]
        .push(placed);
    }
    groups
}

/// One line per reference, with its first location: a cluster runs many pods with the same image.
fn grouped(word: &str, found: &[&FileFinding]) -> Vec<String> {
    let mut groups: BTreeMap<(&str, &LockCoverage), Vec<&FileFinding>> = BTreeMap::new();
    let mut order = Vec::new();
    for placed in found {
        let key = (placed.finding.reference.as_str(), &placed.finding.coverage);
        let group = groups.entry(key).or_default();
        if group.is_empty() {
            order.push(key);
        }
        group.push(placed);
    }
    order
        .iter()
        .map(|key| {
            let group: &Vec<&FileFinding> = &groups[key];
            let more = match group.len() {
                1 => String::new(),
                count => format!(" (and in {} more)", count_of(count - 1, "place")),
            };
            group[0].line(word) + &more
        })
        .collect()
}

/// One report item for each locked item that is referenced, and for each missing name.
fn items(held: &[&FileFinding], missing: &[&FileFinding]) -> Vec<ReportItem> {
    let mut items: BTreeMap<(EntryKind, String, bool), ReportItem> = BTreeMap::new();
    for placed in held.iter().chain(missing) {
        let (name, reason) = match &placed.finding.coverage {
            LockCoverage::Held { item } => (item.clone(), None),
            _ => {
                let chart = placed.finding.chart.as_ref().map(ChartName::as_str);
                let name = chart.unwrap_or(&placed.finding.reference).to_owned();
                (name, Some(placed.line("missing")))
            }
        };
        let status = if reason.is_some() {
            ItemStatus::Missing
        } else {
            ItemStatus::Present
        };
        let kind = match (placed.finding.manager, &placed.finding.repository) {
            (Some(_), _) => EntryKind::Package,
            (None, Some(_)) => EntryKind::Git,
            (None, None) => kind_named(&name),
        };
        let key = (kind, name.clone(), reason.is_some());
        items
            .entry(key)
            .or_insert(ReportItem::new(kind, name, status, reason));
    }
    items.into_values().collect()
}
