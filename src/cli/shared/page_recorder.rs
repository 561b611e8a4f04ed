//! Records the parts of an HTML page that are not in the report: the content that a verb processed,
//! and the duration of its phases. Says which content is older than the age of `--older-than`.

use super::VerbReport;
use super::verb_report::{BundleMember, SerialMember};
use crate::cli::shared::GlobalFlags;
use crate::cli::shared::image_facts::ImageFacts;
use crate::cli::shared::listing::referrer_counts;
use jiff::civil::Date;
use landfall_bundle::BaseName;
use landfall_content::{BlobRead, LockEntry};
use landfall_item::LockedItem;
use landfall_item::lockfile::Lock;
use landfall_model::report::page::{ItemContent, PackageRow, ReportPage, RunPhase, render};
use landfall_model::report::{
    EntryKind, ErrorInfo, Notice, NoticeKind, Progress, RunStatus, count_of,
};
use landfall_model::{ImageRef, locked, without_scheme};
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Records the parts of an HTML page that are not in the report.
pub(crate) struct PageRecorder {
    /// Whether a page is written: collecting its content takes time.
    pub(crate) is_wanted: bool,
    /// When the verb began; `None` for a page about a bundle.
    started: Option<Instant>,
    content: Mutex<Vec<ItemContent>>,
    phases: Mutex<Vec<(RunPhase, Instant)>>,
}

/// Whether a report file with this name is an HTML page.
pub(crate) fn is_page(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("html") || end.eq_ignore_ascii_case("htm"))
}

/// Whether `html` is a page that landfall wrote.
pub(crate) fn is_own_page(html: &str) -> bool {
    let mut head = html.lines().take_while(|line| !line.starts_with("<body"));
    head.any(|line| line == "<meta name=\"generator\" content=\"landfall\">")
}

impl PageRecorder {
    pub(crate) fn new(global: &GlobalFlags) -> PageRecorder {
        PageRecorder {
            is_wanted: global.report.as_deref().is_some_and(is_page),
            started: Some(Instant::now()),
            content: Mutex::default(),
            phases: Mutex::default(),
        }
    }

    /// A recorder for a page about a bundle instead of the run of a verb.
    pub(crate) fn of_bundle() -> PageRecorder {
        PageRecorder {
            is_wanted: true,
            started: None,
            content: Mutex::default(),
            phases: Mutex::default(),
        }
    }

    /// A notice for each item that was built longer ago than `age`.
    pub(crate) fn older_than(&self, age: &Age, today: Date) -> Vec<Notice> {
        let content = locked(&self.content);
        let dated = content
            .iter()
            .filter_map(|one| Some((one, one.created.as_deref()?)));
        let old = dated.filter(|(_, created)| age.is_exceeded(created, today));
        old.map(|(one, created)| {
            let day = created.get(..10).unwrap_or(created);
            Notice::new(
                NoticeKind::Old,
                &one.name,
                format!("built on {day}, more than {age} ago"),
            )
        })
        .collect()
    }

    /// Records the content that `lock` names. If `blobs` is given, details of images are read from
    /// it.
    pub(crate) fn set_content(&self, lock: &Lock, blobs: Option<&dyn BlobRead>) {
        if self.is_wanted {
            *locked(&self.content) = content_of(lock, blobs);
        }
    }

    /// Renders the page of a verb that ended.
    pub(crate) fn page(
        &self,
        command: &str,
        status: RunStatus,
        error: Option<&ErrorInfo>,
        report: &VerbReport,
    ) -> String {
        let contents = locked(&self.content).clone();
        let phases = locked(&self.phases);
        render(&ReportPage {
            command: command.to_owned(),
            bundle: self.started.is_none().then(|| name_of_bundle(report)),
            status,
            error: error.cloned(),
            report: (**report).clone(),
            members: report.members(),
            contents,
            facts: facts(report),
            phases: phases.iter().map(|(phase, _)| phase.clone()).collect(),
            seconds: self.started.map(|started| started.elapsed().as_secs_f64()),
        })
    }

    /// Wraps `inner`, to record the phases that are reported to it.
    pub(crate) fn watch(self: &Arc<PageRecorder>, inner: Arc<dyn Progress>) -> Arc<dyn Progress> {
        if !self.is_wanted {
            return inner;
        }
        Arc::new(PhaseRecorder {
            inner,
            page: self.clone(),
        })
    }
}

/// Describes everything that `lock` names.
fn content_of(lock: &Lock, blobs: Option<&dyn BlobRead>) -> Vec<ItemContent> {
    let of_item = |item: LockedItem<'_>| {
        let entry: LockEntry = item.entry();
        let sizes: BTreeMap<_, _> = entry
            .parts
            .iter()
            .map(|part| (part.descriptor.digest.clone(), part.descriptor.size))
            .collect();
        let facts = match blobs.filter(|_| entry.kind == EntryKind::Image) {
            Some(blobs) => ImageFacts::of(&entry, blobs),
            None => ImageFacts::default(),
        };
        let attached = referrer_counts(&entry, blobs).into_iter();
        let signers = item.recorded_signatures().iter();
        let packages = item.packages().into_iter().map(|package| PackageRow {
            name: package.name.to_owned(),
            version: package.version.to_owned(),
            arch: package.arch.to_owned(),
            size: package.size,
        });
        ItemContent {
            kind: entry.kind,
            group: group(item.reference(), &entry.name),
            blobs: sizes.into_iter().collect(),
            platforms: item.platforms().unwrap_or_default().into_iter().collect(),
            attached: attached
                .map(|(what, count)| (what.to_owned(), count))
                .collect(),
            signed_by: signers.map(ToString::to_string).collect(),
            licences: facts.licences,
            created: facts.created,
            packages: packages.collect(),
            name: entry.name,
        }
    };
    lock.items().map(of_item).collect()
}

/// The group of an item on the page: the host and namespace of an image, or the host of a URL.
fn group(image: Option<&ImageRef>, name: &str) -> String {
    match image {
        Some(image) => match image.repository.split_once('/') {
            Some((first, _)) => format!("{}/{first}", image.registry),
            None => image.registry.clone(),
        },
        None => {
            let host = without_scheme(name);
            host.split('/').next().unwrap_or(host).to_owned()
        }
    }
}

/// The title of a page about a bundle: its series and number, or else its file name.
fn name_of_bundle(report: &VerbReport) -> String {
    let Some(bundle) = report.bundle() else {
        return String::new();
    };
    match &bundle.serial {
        SerialMember {
            series: Some(series),
            number: Some(number),
        } => format!("{series} {number}"),
        _ => {
            let name = Path::new(&bundle.path).file_name();
            name.map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default()
        }
    }
}

/// The facts at the top of the page, each with its label.
fn facts(report: &VerbReport) -> Vec<(String, String)> {
    let bundle = report.bundle();
    let lock = bundle.map(|bundle| &bundle.lock).or(report.lock());
    let counted = |count, what| (count > 0).then(|| count_of(count, what));
    let facts = [
        ("bundle", bundle.map(|bundle| bundle.path.clone())),
        (
            "bundle digest",
            bundle.map(|bundle| bundle.digest.to_string()),
        ),
        ("lock fingerprint", lock.map(ToString::to_string)),
        (
            "series",
            bundle.and_then(|bundle| bundle.serial.series.clone()),
        ),
        ("signed by", bundle.and_then(checked_signers)),
        ("signature", bundle.and_then(signatures)),
        ("delivered to", report.destination().cloned()),
        (
            "left out",
            bundle.and_then(|bundle| counted(bundle.omitted.len(), "blob")),
        ),
        ("needs", bundle.and_then(bases)),
        (
            "missing",
            bundle.and_then(|bundle| counted(bundle.partial.len(), "item")),
        ),
    ];
    facts
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// The bases of a delta.
fn bases(bundle: &BundleMember) -> Option<String> {
    let words = bundle.bases.iter().map(|base| match base {
        BaseName::Bundle { digest, .. } => format!("bundle {digest}"),
        BaseName::Lock { lock } => format!("lock {lock}"),
        BaseName::Receipt { lock, .. } => format!("receipt {lock}"),
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(", or "))
}

/// The keys of signatures that were checked.
fn checked_signers(bundle: &BundleMember) -> Option<String> {
    let signers = bundle.signers.iter().flatten();
    let words: Vec<&str> = signers.map(|signer| signer.key.as_str()).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The keys of signatures that were not checked, or a text that says that there are none.
fn signatures(bundle: &BundleMember) -> Option<String> {
    if checked_signers(bundle).is_some() {
        return None;
    }
    Some(match &bundle.signatures.as_ref()?[..] {
        [] => "none".into(),
        keys => format!(
            "{} (not checked; use landfall verify --allowed-signers FILE)",
            keys.join(", ")
        ),
    })
}

/// Records when phases begin and end, and passes all calls to `inner`.
struct PhaseRecorder {
    inner: Arc<dyn Progress>,
    page: Arc<PageRecorder>,
}

impl Progress for PhaseRecorder {
    fn begin(&self, what: &str, items: u64, bytes: u64) {
        let phase = RunPhase {
            name: what.to_owned(),
            items,
            bytes,
            seconds: 0.0,
        };
        let mut phases = locked(&self.page.phases);
        phases.push((phase, Instant::now()));
        drop(phases);
        self.inner.begin(what, items, bytes);
    }

    fn bytes(&self, count: u64) {
        self.inner.bytes(count);
    }

    fn more(&self, bytes: u64) {
        self.inner.more(bytes);
    }

    fn parts(&self, count: u64) {
        self.inner.parts(count);
    }

    fn parts_done(&self, count: u64) {
        self.inner.parts_done(count);
    }

    fn item(&self, name: &str) {
        self.inner.item(name);
    }

    fn tell(&self, line: &str) {
        self.inner.tell(line);
    }

    fn note(&self, line: &str) {
        self.inner.note(line);
    }

    fn end(&self) {
        let mut phases = locked(&self.page.phases);
        // The duration 0 marks a running phase, so a finished phase must have a greater duration.
        if let Some((phase, begun)) = phases.last_mut().filter(|(phase, _)| phase.seconds == 0.0) {
            phase.seconds = begun.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        }
        drop(phases);
        self.inner.end();
    }
}

// Ages such as `90d`, for `report --older-than`.

/// A number of days. A year has 365.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("{text}")]
pub(crate) struct Age {
    days: i32,
    text: String,
}

impl Age {
    /// Whether the date at the beginning of `created` is more than this age before `today`. An
    /// unreadable date counts as recent.
    fn is_exceeded(&self, created: &str, today: Date) -> bool {
        let day = created.get(..10).and_then(|day| day.parse::<Date>().ok());
        day.and_then(|day| day.until(today).ok())
            .is_some_and(|span| span.get_days() > self.days)
    }
}

/// The help for a text that is not an age.
const EXPECTED_AGE: &str = "write a number with d, w or y, as in 90d, 26w or 1y";

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Age, String> {
        let factor = match text.as_bytes().last() {
            Some(b'd') => 1,
            Some(b'w') => 7,
            Some(b'y') => 365,
            _ => return Err(EXPECTED_AGE.to_owned()),
        };
        let number: i32 = text[..text.len() - 1].parse().map_err(|_| EXPECTED_AGE)?;
        let days = number
            .checked_mul(factor)
            .filter(|days| *days > 0)
            .ok_or(EXPECTED_AGE)?;
        Ok(Age {
            days,
            text: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_days_weeks_or_years() {
        let today = "2026-11-22".parse().unwrap();
        let age = |text: &str| text.parse::<Age>().unwrap();
        assert!(age("90d").is_exceeded("2026-08-01T00:00:00Z", today));
        assert!(!age("26w").is_exceeded("2026-08-01T00:00:00Z", today));
        assert!(
            age("1y").is_exceeded("2025-11-21", today)
                && !age("1y").is_exceeded("2025-11-23", today)
        );
        assert!(
            !age("1d").is_exceeded("yesterday", today)
                && !age("1d").is_exceeded("2027-01-01", today)
        );
        for bad in ["", "1", "y", "-1d", "0d", "1m", "999999999y", "ä"] {
            assert!(bad.parse::<Age>().is_err(), "{bad}");
        }
    }
}
