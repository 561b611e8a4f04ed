//! `landfall status`: compares a registry with a lock.

use crate::cli::shared::bundle_flags::LockFlags;
use crate::cli::shared::bundle_with_bases::base_lines;
use crate::cli::shared::failed_items::loss_lines;
use crate::cli::shared::image_facts::ImageSignatures;
use crate::cli::shared::listing::markdown_digest;
use crate::cli::shared::{
    CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport, input_file,
};
use crate::push::{RegistryTag, TagStatus, status};
use clap::Args;
use landfall_item::lockfile::{Lock, losses};
use landfall_model::report::{
    ItemStatus, Markdown, ReportItem, TransferSide, count_of, markdown_code, markdown_text,
    shell_word,
};
use landfall_model::{DestinationMap, TargetRegistry};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Compare a registry with a lock
///
/// Exits with 4 if an item is missing, incomplete or different, else with 3 if an item could not be
/// looked up, or could not be locked or packed. Sends one request per item and destination, and
/// further ones for signatures. `push` uploads missing items, and with --move-tags also different
/// ones.
#[derive(Args)]
pub(crate) struct StatusCommand {
    /// The bundle or the lock, instead of --bundle or --lock
    #[arg(value_name = "BUNDLE|LOCK", conflicts_with_all = ["lock", "bundle"])]
    path: Option<PathBuf>,
    /// The registry, instead of --registry
    #[arg(value_name = "REGISTRY", conflicts_with = "registry")]
    place: Option<TargetRegistry>,
    #[command(flatten)]
    locked: LockFlags,
    /// The registry [default: registry.address of the site]
    #[arg(long, visible_alias = "to", value_name = "REGISTRY[/PREFIX]")]
    registry: Option<TargetRegistry>,
    /// Also check every manifest and blob: the registry may have lost some
    #[arg(long)]
    recheck: bool,
    /// Also show tags that are in the lock's repositories but not in the lock (one request per
    /// repository)
    #[arg(long)]
    foreign: bool,
}

/// The states that are printed, in this order, each with the word for it.
const STATES: [(TagStatus, &str); 5] = [
    (TagStatus::Different, "different"),
    (TagStatus::Missing, "missing"),
    (TagStatus::Incomplete, "incomplete"),
    (TagStatus::Unknown, "unknown"),
    (TagStatus::Foreign, "foreign"),
];

impl StatusCommand {
    pub(crate) fn run(mut self, context: &Context) -> Result<VerbOutcome, CliError> {
        let mut place = self.path.take();
        if self.place.is_none() {
            // `landfall status REGISTRY` with the default lock.
            self.place = place.as_deref().and_then(input_file::registry);
            place = place.filter(|_| self.place.is_none());
        }
        self.locked = self.locked.with_argument(place);
        let bundle = self.locked.bundle(context)?;
        let lock = match &bundle {
            Some(bundle) => bundle.available_lock()?,
            None => self.locked.load(context)?,
        };
        let bases = bundle.as_ref().map(base_lines).unwrap_or_default();
        let mapping = context.mapping(self.registry.as_ref().or(self.place.as_ref()))?;
        let push = self.push_line(context, &mapping);
        context.run(async {
            let client = context.client()?;
            let result = status(
                &lock,
                &mapping,
                client.sessions(),
                self.recheck,
                self.foreign,
            )
            .await;
            // Also after a failure, the report lists the contacted hosts.
            let report = client.report(Vec::new());
            let tags = result.map_err(|error| {
                let failure = CliError::from(error).on(TransferSide::Destination);
                failure.with_report(report.clone())
            })?;
            context.page.set_content(&lock, None);
            let mut outcome = outcome(report.into(), &lock, &tags, &mapping, &push);
            if outcome.exit == Exit::Refused {
                // the bases that the push needs besides the bundle
                outcome.text += &bases;
            }
            let signatures = ImageSignatures::recorded(&lock);
            outcome.text += &signatures.lines();
            signatures.add_to(&mut outcome.report);
            Ok(outcome)
        })
    }

    /// The `landfall push` command that uploads missing items, without `--move-tags`.
    fn push_line(&self, context: &Context, mapping: &DestinationMap) -> String {
        let mut words: Vec<String> = vec!["landfall".into(), "push".into()];
        words.extend(self.locked.as_arguments(&[]));
        words.extend(["--to".into(), mapping.target().to_string()]);
        // its paths, certificates and account
        if let Some(site) = &context.global.site {
            words.extend(["--site".into(), site.display().to_string()]);
        }
        words.extend(self.recheck.then(|| "--recheck".into()));
        words
            .iter()
            .map(|word| shell_word(word))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

fn outcome(
    mut report: VerbReport,
    lock: &Lock,
    tags: &[RegistryTag],
    mapping: &DestinationMap,
    push: &str,
) -> VerbOutcome {
    report.items = items(lock, tags);
    report.add(ReportMember::To(mapping.target().to_string()));
    report.add(ReportMember::Standings(tags.to_vec()));
    let count = |state| tags.iter().filter(|one| one.state == state).count();
    // Foreign tags have no kind.
    let locked = tags.iter().filter(|one| one.kind.is_some()).count();
    let mut counts: Vec<String> = STATES
        .iter()
        .filter(|(state, _)| count(*state) > 0)
        .map(|(state, word)| format!("{} {word}", count(*state)))
        .collect();
    // Nothing is known about these items, so they have no tag to compare.
    let lost = losses(lock);
    let absent = lost
        .iter()
        .filter(|item| item.status == ItemStatus::Missing)
        .count();
    if absent > 0 {
        counts.push(format!("{absent} not locked or packed"));
    }
    let summary = format!(
        "{}: {} of {locked} there{}{}",
        mapping.target(),
        count(TagStatus::There),
        if counts.is_empty() { "" } else { ", " },
        counts.join(", ")
    );
    let differs = [
        TagStatus::Missing,
        TagStatus::Different,
        TagStatus::Incomplete,
    ]
    .map(count);
    let fix_command = differs.iter().any(|count| *count > 0).then(|| {
        let moving = if count(TagStatus::Different) > 0 {
            " --move-tags"
        } else {
            ""
        };
        format!("{push}{moving}")
    });
    let exit = match (&fix_command, count(TagStatus::Unknown) + absent) {
        (Some(_), _) => Exit::Refused,
        (None, 0) => Exit::Done,
        (None, _) => Exit::Partial,
    };
    let mut lines = String::new();
    for (state, word) in STATES {
        let printed = tags.iter().filter(|one| one.state == state);
        lines.extend(printed.map(|one| line(word, one)));
    }
    lines += &loss_lines(&lost);
    let markdown = markdown(&summary, tags, &lost, fix_command.as_deref());
    report.items.extend(lost);
    lines += &format!(
        "{summary}; {}\n",
        count_of(report.requests as usize, "request")
    );
    lines.extend(
        fix_command
            .iter()
            .map(|fix_command| format!("  to fix it         {fix_command}\n")),
    );
    VerbOutcome::new(report, lines, exit).with_markdown(markdown)
}

fn line(word: &str, one: &RegistryTag) -> String {
    let name = one
        .name
        .as_ref()
        .map(|name| format!("  {name}"))
        .unwrap_or_default();
    format!(
        "{word:<10} {}{name}{}\n",
        one.at,
        why(one).map(|why| format!(": {why}")).unwrap_or_default()
    )
}

fn why(one: &RegistryTag) -> Option<String> {
    match (one.state, &one.stands, &one.wanted) {
        (TagStatus::Different, Some(found), Some(wanted)) => {
            Some(format!("the tag points to {found}, not to {wanted}"))
        }
        (TagStatus::Incomplete, ..) => Some("a manifest, blob or referrer of it is missing".into()),
        _ => one.why.clone(),
    }
}

fn markdown(
    summary: &str,
    tags: &[RegistryTag],
    lost: &[ReportItem],
    fix_command: Option<&str>,
) -> String {
    let mut document = Markdown::new(format!("**{}**", markdown_text(summary)));
    for (state, word) in STATES {
        let of_state = tags.iter().filter(|one| one.state == state);
        document.table(
            word,
            &[
                "at the registry",
                "in the lock",
                "points to",
                "expected",
                "why",
            ],
            of_state.map(|one| {
                let name = one.name.as_deref().map(markdown_code).unwrap_or_default();
                // the columns before it already show a different digest
                let why = match one.state {
                    TagStatus::Different => None,
                    _ => why(one),
                };
                let why = why.as_deref().map(markdown_text).unwrap_or_default();
                vec![
                    markdown_code(&one.at),
                    name,
                    markdown_digest(one.stands.as_ref()),
                    markdown_digest(one.wanted.as_ref()),
                    why,
                ]
            }),
        );
    }
    let absent = lost
        .iter()
        .filter(|item| item.status == ItemStatus::Missing);
    document.table(
        "not locked or packed",
        &["in the lock", "why"],
        absent.map(|item| {
            let why = item.reason.as_deref().map(markdown_text);
            vec![markdown_code(&item.name), why.unwrap_or_default()]
        }),
    );
    if let Some(fix_command) = fix_command {
        document.line(&format!("To fix it: {}", markdown_code(fix_command)));
    }
    document.finish()
}

/// One item per lock entry, present if it is complete at all of its destinations.
fn items(lock: &Lock, tags: &[RegistryTag]) -> Vec<ReportItem> {
    let mut of_item: BTreeMap<_, Vec<&RegistryTag>> = BTreeMap::new();
    for one in tags {
        of_item
            .entry((one.kind, one.name.as_deref()))
            .or_default()
            .push(one);
    }
    lock.each_entry()
        .map(|entry| {
            let own = of_item
                .get(&(Some(entry.kind), Some(&*entry.name)))
                .map_or(&[][..], Vec::as_slice);
            // A tag that could not be looked up takes precedence: it may have any state.
            let worst = own.iter().find(|one| one.state == TagStatus::Unknown);
            let worst = worst.or_else(|| own.iter().find(|one| one.state != TagStatus::There));
            let status = match worst.map(|one| one.state) {
                None => ItemStatus::Present,
                Some(TagStatus::Unknown) => ItemStatus::Failed,
                Some(_) => ItemStatus::Missing,
            };
            let reason = worst.map(|one| line(word(one.state), one).trim_end().to_owned());
            ReportItem {
                status,
                reason,
                ..entry.item()
            }
        })
        .collect()
}

fn word(state: TagStatus) -> &'static str {
    STATES
        .iter()
        .find(|(one, _)| *one == state)
        .map_or("", |(_, word)| word)
}
