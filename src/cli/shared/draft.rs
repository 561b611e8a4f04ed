//! Drafts a manifest from the references in Kubernetes manifests, charts, Dockerfiles and lists.

use super::verb_report::InstalledRow;
use super::{CliError, Context, Exit, ReportMember, VerbReport};
use landfall_item::lockfile::Lock;
use landfall_item::manifest::{DraftEntry, DraftItem, DraftManifest, draft, platforms_line};
use landfall_model::document::open_input;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem, and_more, count_of, one_line};
use landfall_model::{Failure, PlatformRequest, has_userinfo, redact_urls, today};
use landfall_os::Blocking;
use landfall_rewrite::audit::{
    FileFinding, HelmCommand, Inventory, LockCoverage, MachineInstall, MachineInstalls,
    NamedRepository, access_log_misses, audit_text, discover, machine_installs, node_platforms,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use url::Url;

/// The sources and settings of a draft.
pub(crate) struct DraftRequest<'a> {
    pub paths: &'a [PathBuf],
    /// Logs of what nodes asked for in vain.
    pub access_logs: &'a [PathBuf],
    /// Renders the charts, if helm is available.
    pub helm: Option<&'a HelmCommand>,
    /// The platforms; if empty, those in node selectors.
    pub platforms: &'a [PlatformRequest],
    /// `metadata.name` of the manifest.
    pub name: &'a str,
    /// The comment at the top.
    pub title: &'a str,
}

/// The drafted manifest, with what to print and report about it.
pub(crate) struct DraftResult {
    pub text: String,
    /// The number of entries that are not commented out.
    pub entries: usize,
    /// The lines to print: undecided references, unread files, images that are commented out, and
    /// the number of entries.
    pub lines: Vec<String>,
    /// One item for each image and chart.
    pub report: VerbReport,
    /// 3 if a file could not be read, otherwise 0.
    pub exit: Exit,
}

/// Whether `c` may be in the name of a manifest, a repository or a tag.
pub(crate) fn is_name_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.".contains(c)
}

/// Parses the name of a manifest. The allowed characters need no quotes in YAML.
pub(crate) fn parse_manifest_name(text: &str) -> Result<String, String> {
    if text.chars().all(is_name_part) && text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        Ok(text.to_owned())
    } else {
        Err("must begin with a letter and contain only letters, digits, - _ and .".into())
    }
}

/// Drafts a manifest. It is an error if nothing could be read.
pub(crate) fn draft_manifest(
    request: &DraftRequest<'_>,
    context: &Context,
) -> Result<DraftResult, CliError> {
    // Compared with an empty lock, every reference is missing, so all of them are drafted.
    let nothing = Lock::default();
    let today = today().to_string();
    let inventory = Inventory::new(&nothing, None, None, &today);
    let (stdin, paths): (Vec<PathBuf>, Vec<PathBuf>) = request
        .paths
        .iter()
        .cloned()
        .partition(|path| path.as_path() == Path::new("-"));
    let mut found = discover(&paths, &inventory, &context.limits, request.helm)?;
    let stdin = (!stdin.is_empty()).then(read_stdin).transpose()?;
    if let Some(text) = &stdin {
        found.found.extend(audit_text("<stdin>", text, &inventory));
        found.read += 1;
    }
    for log in request.access_logs {
        found.found.extend(audit_access_log(log, None, &inventory)?);
        found.read += 1;
    }
    let installs = machine_installs(&paths, stdin.as_deref())?;
    if found.read == 0 && found.unread.is_empty() {
        return Err(CliError::usage(
            "nothing to read was found: no YAML, JSON, Dockerfile or chart",
        ));
    }
    let mut draft_entries = draft_entries(found.found.iter());
    draft_entries.extend(install_entries(&installs));
    let DraftManifest {
        mut text,
        entries,
        comments,
        unpinned,
    } = draft(
        request.name,
        request.title,
        &platforms(request, &paths)?,
        &draft_entries,
    );
    text += &packages_comment(&installs);

    let undecided = found.found.iter();
    let undecided = undecided
        .filter(|placed| matches!(placed.finding.coverage, LockCoverage::Undecided { .. }));
    let mut lines: Vec<String> = undecided
        .clone()
        .map(|placed| placed.line("undecided"))
        .collect();
    lines.extend(
        found
            .unread
            .iter()
            .map(|unread| format!("{}: {}", unread.file, unread.why)),
    );
    lines.extend(
        unpinned
            .iter()
            .map(|image| format!("commented out: {image}")),
    );
    let commented = match comments {
        0 => String::new(),
        count => format!(", {count} commented out"),
    };
    let read = if found.read == 1 {
        "1 file or chart".to_owned()
    } else {
        format!("{} files and charts", found.read)
    };
    lines.push(format!(
        "{} from {read}{commented}",
        count_of(entries, "entry")
    ));
    let named = draft_entries.iter().filter_map(|entry| match &entry.what {
        DraftItem::Image(image) => Some((EntryKind::Image, image.to_string())),
        DraftItem::Chart(chart) => Some((EntryKind::Chart, chart.as_str().to_owned())),
        _ => None,
    });
    let named: BTreeSet<(EntryKind, String)> = named.collect();
    let items = named
        .into_iter()
        .map(|(kind, name)| ReportItem::new(kind, name, ItemStatus::Done, None));
    let mut report = VerbReport::of(items.collect());
    let packages = installs.0.iter().filter_map(|(install, at)| match install {
        MachineInstall::Package(by, name) => Some(InstalledRow {
            manager: by,
            name: redact_urls(name),
            at: at.clone(),
        }),
        _ => None,
    });
    report.add(ReportMember::Packages(packages.collect()));
    report.add(ReportMember::Manifest(text.clone()));
    report.add(ReportMember::Undecided(undecided.cloned().collect()));
    report.add(ReportMember::Unread(found.unread.clone()));
    report.add(ReportMember::Unpinned(unpinned));
    let helm = request.helm.map(|helm| helm.program.display().to_string());
    report.add(ReportMember::Helm(helm));
    let exit = match (found.unread.is_empty(), found.read) {
        (true, _) => Exit::Done,
        // An empty draft would look as if there were no references.
        (false, 0) => {
            let failure = CliError::of_lines(Exit::Failed, &lines);
            return Err(failure.with_report(report));
        }
        (false, _) => Exit::Partial,
    };
    Ok(DraftResult {
        text,
        entries,
        lines,
        report,
        exit,
    })
}

/// Compares what the log `path` says that nodes asked for in vain with the lock. Names without a
/// host belong to `registry`.
pub(crate) fn audit_access_log(
    path: &Path,
    registry: Option<&str>,
    inventory: &Inventory<'_>,
) -> Result<Vec<FileFinding>, CliError> {
    let file = path.display().to_string();
    let misses = open_input(path)
        .and_then(|log| access_log_misses(BufReader::new(log), registry))
        .map_err(|error| Failure::read(path, error))?;
    if misses.recognized == 0 {
        let help = "it may be the access log of nginx, Harbor, docker-registry or `landfall \
            serve`, its /misses.json, or the log of containerd or kubelet";
        return Err(
            CliError::usage(format!("{file} has no line of an access log")).with_help(help),
        );
    }
    if misses.is_cut {
        return Err(
            CliError::usage(format!("{file} has too many names")).with_help("split the log")
        );
    }
    Ok(misses.audit(&file, inventory))
}

/// Reads a text from stdin.
pub(crate) fn read_stdin() -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let read = Blocking(std::io::stdin().lock()).read_to_end(&mut bytes);
    read.map_err(|error| CliError::usage(format!("cannot read stdin: {error}")))?;
    let decoded = landfall_rewrite::decode(bytes);
    let (text, _) = decoded.map_err(|_| CliError::usage("stdin is not UTF-8 text"))?;
    Ok(text)
}

/// The `platforms` line of the manifest.
fn platforms(request: &DraftRequest<'_>, paths: &[PathBuf]) -> Result<String, CliError> {
    if !request.platforms.is_empty() {
        return Ok(platforms_line(request.platforms, "of all images here"));
    }
    let found = node_platforms(paths)?;
    let places: Vec<&String> = found.iter().flat_map(|(_, places)| places).collect();
    let more = and_more(places.len().saturating_sub(1));
    let why = format!(
        "from node selectors in {}{more}",
        places.first().map_or("", |place| place.as_str())
    );
    let found: Vec<PlatformRequest> = found.into_iter().map(|(platform, _)| platform).collect();
    Ok(platforms_line(&found, &why))
}

// The entries of a drafted manifest, from the findings of an audit.

/// The entries for the references that the lock lacks, and for the undecided references.
pub(crate) fn draft_entries<'p>(found: impl Iterator<Item = &'p FileFinding>) -> Vec<DraftEntry> {
    found.filter_map(draft_entry).collect()
}

fn draft_entry(file_finding: &FileFinding) -> Option<DraftEntry> {
    let finding = &file_finding.finding;
    let at = format!("{}:{}", file_finding.file, finding.line);
    let is_held = matches!(finding.coverage, LockCoverage::Held { .. });
    if let Some(repository) = finding.repository.as_ref().filter(|_| !is_held) {
        let what = git_item(repository);
        return Some(DraftEntry { what, at });
    }
    if let Some(chart) = finding.chart.clone() {
        let what = DraftItem::Chart(chart);
        return Some(DraftEntry { what, at });
    }
    let what = match &finding.coverage {
        LockCoverage::Held { .. } | LockCoverage::Ambiguous { .. } => return None,
        LockCoverage::Missing {
            name: Some(name), ..
        } => DraftItem::Image(name.clone()),
        LockCoverage::Missing { url: Some(url), .. } => DraftItem::Url(url.clone()),
        LockCoverage::Missing { why, .. } | LockCoverage::Undecided { why }
            if finding.manager.is_some() =>
        {
            let help = "add it to `install` of an entry of `packages`: an install command names \
                no repository";
            DraftItem::Unclear {
                text: finding.reference.clone(),
                why: format!("{why}; {help}"),
            }
        }
        LockCoverage::Missing { why, .. } => DraftItem::Unclear {
            text: finding.reference.clone(),
            why: format!("{why}; write the upstream name"),
        },
        LockCoverage::Undecided { why } => DraftItem::Unclear {
            text: finding.reference.clone(),
            why: why.clone(),
        },
    };
    Some(DraftEntry { what, at })
}

/// The item for a git repository that the lock lacks or may lack.
fn git_item(repository: &NamedRepository) -> DraftItem {
    let NamedRepository {
        url,
        revision,
        is_range,
    } = repository;
    let unclear = |why: &str| DraftItem::Unclear {
        text: format!("git+{url}"),
        why: format!("{why}: add the URL to `git` with the branch or tag"),
    };
    match revision.as_deref() {
        None | Some("HEAD") => unclear("a git repository without a version"),
        // a range, or a placeholder
        Some(revision)
            if *is_range || revision.contains(|c: char| " *<>~^|{}$\"\\".contains(c)) =>
        {
            unclear(&format!("a git repository with the versions {revision}"))
        }
        Some(revision) => DraftItem::Git {
            url: url.clone(),
            revision: revision.to_owned(),
        },
    }
}

/// The entries for files that machines download, as in cloud-init and Dockerfiles.
pub(crate) fn install_entries(installs: &MachineInstalls) -> Vec<DraftEntry> {
    installs
        .0
        .iter()
        .filter_map(|(install, at)| install_entry(install, at))
        .collect()
}

fn install_entry(install: &MachineInstall, at: &str) -> Option<DraftEntry> {
    let what = match install {
        // a manifest is not secret, so it must not contain credentials
        MachineInstall::File(url) if Url::parse(url).is_ok_and(|url| has_userinfo(&url)) => {
            DraftItem::Unclear {
                text: redact_urls(url),
                why: "it has a user name or password: write the URL without them under `files:`, \
                      and configure credentials in the site file (`upstreams`)"
                    .into(),
            }
        }
        MachineInstall::File(url) => DraftItem::Url(url.clone()),
        MachineInstall::Unclear(url) => DraftItem::Unclear {
            text: redact_urls(url),
            why: format!(
                "{}: write the whole URL under `files:`",
                MachineInstall::why_unclear(url)
            ),
        },
        MachineInstall::Package(..) | MachineInstall::OpenPackage(..) => return None,
    };
    Some(DraftEntry {
        what,
        at: at.to_owned(),
    })
}

/// The comment that lists the packages that machines install. They are not entries, because their
/// repositories are unknown.
pub(crate) fn packages_comment(installs: &MachineInstalls) -> String {
    let mut found: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (install, at) in &installs.0 {
        if let MachineInstall::Package(by, name) | MachineInstall::OpenPackage(by, name) = install {
            found.entry((by, name)).or_default().push(at);
        }
    }
    if found.is_empty() {
        return String::new();
    }
    let mut text =
        "\n# Packages that are installed from repositories and are not mirrored:\n".to_owned();
    for ((by, name), places) in found {
        let more = and_more(places.len().saturating_sub(1));
        let pin = if name.contains(['$', '`', '{']) {
            "; its name is composed elsewhere"
        } else if MachineInstall::has_version(by, name) {
            ""
        } else {
            "; no version"
        };
        let place = one_line(places.first().unwrap_or(&""));
        let name = redact_urls(name);
        let _ = writeln!(text, "#   {by}: {name}  # {place}{more}{pin}");
    }
    text
}
