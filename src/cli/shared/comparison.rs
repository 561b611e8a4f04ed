//! The differences between two locks, bundles or receipts, for `diff` and `report --since`.

use super::input_file::OpenedFile;
use super::listing::{change_line, endpoint_line, markdown_digest, unique, unique_bytes};
use super::package_changes::{add_changelogs, package_lines, package_tables};
use super::store_location::StoreLocation;
use super::verb_report::ReportChange;
use super::{CliError, Context, ReportMember, VerbReport};
use crate::egress::{self, ContactRecord, EgressHost, EgressQuery, needed};
use crate::lock::{self, DiffSide, EndpointChange, LockChange, diff_sides};
use crate::push::Receipt;
use landfall_bundle::Bundle;
use landfall_content::LockEntry;
use landfall_item::lockfile::Lock;
use landfall_model::report::{EntryKind, Markdown, count_of, markdown_code, markdown_text};
use landfall_model::{Digest, human_size, sum_sizes};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// The differences between two sides.
pub(crate) struct LockComparison {
    /// Each change, and how many bytes it adds; `None` for a removal, or if the new side is a
    /// receipt.
    pub(crate) changes: Vec<(LockChange, Option<u64>)>,
    pub(crate) endpoints: Vec<EndpointChange>,
    /// Hosts that only one side needs, as far as they are known.
    pub(crate) hosts: Vec<EgressHost>,
    /// The new content of the newer side, if known.
    pub(crate) news: Option<NewContent>,
    /// For each side, the old one first: `lock` or `receipt`, and the fingerprint of the lock.
    sides: [(&'static str, Digest); 2],
}

/// The content that only the newer side has, and that a delta would contain.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NewContent {
    pub(crate) blobs: usize,
    pub(crate) bytes: u64,
    /// The size of the whole newer side, in bytes.
    pub(crate) all_bytes: u64,
}

impl LockComparison {
    /// Compares `old` with `new`. Hosts that redirects led to are added from the record of
    /// contacted hosts.
    pub(crate) fn new(
        context: &Context,
        old: &ComparedSide,
        new: &ComparedSide,
    ) -> Result<LockComparison, CliError> {
        let entries = new.lock().map(Lock::entries);
        let old_entries = old.lock().map(Lock::entries).unwrap_or_default();
        let had: HashSet<&Digest> = match old {
            ComparedSide::Lock { .. } => unique(&old_entries).into_keys().collect(),
            ComparedSide::Receipt(receipt) => receipt.blobs.keys().collect(),
        };
        // The number and the bytes of the blobs that a delta would contain.
        let news = |entries: &[LockEntry]| {
            let unique = unique(entries)
                .into_iter()
                .filter(|(digest, _)| !had.contains(digest));
            let sizes: Vec<u64> = unique.map(|(_, size)| size).collect();
            (sizes.len(), sum_sizes(sizes))
        };
        let by_name: BTreeMap<(EntryKind, &str), &LockEntry> = entries
            .iter()
            .flatten()
            .map(|entry| ((entry.kind, &*entry.name), entry))
            .collect();
        let new_bytes = |change: &LockChange| {
            let entry = by_name.get(&(change.kind, &*change.name))?;
            Some(news(std::slice::from_ref(*entry)).1)
        };
        let mut changes = diff_sides(&old.side(), &new.side());
        // Adding changelogs reads the packages themselves, so it is done only if packages changed.
        if changes.iter().any(|change| !change.packages.is_empty()) {
            new.add_changelogs(context, &mut changes)?;
        }
        let changes: Vec<_> = changes
            .into_iter()
            .map(|change| {
                let bytes = new_bytes(&change);
                (change, bytes)
            })
            .collect();
        let both = old.lock().zip(new.lock());
        let endpoints = both
            .map(|(old, new)| lock::diff_endpoints(old, new))
            .unwrap_or_default();
        let hosts = both
            .map(|(old, new)| hosts(context, old, new))
            .transpose()?
            .unwrap_or_default();
        let news = entries.as_deref().map(|entries| {
            let (blobs, bytes) = news(entries);
            NewContent {
                blobs,
                bytes,
                all_bytes: unique_bytes(entries),
            }
        });
        let sides = [old, new].map(|side| (side.word(), side.fingerprint().clone()));
        Ok(LockComparison {
            changes,
            endpoints,
            hosts,
            news,
            sides,
        })
    }

    /// The lines of text mode.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (change, bytes) in self.shown() {
            let new = bytes
                .map(|bytes| format!("  {} new", human_size(bytes)))
                .unwrap_or_default();
            text += &format!(
                "{}{new}\n",
                version_line(change).unwrap_or_else(|| change_line(change))
            );
            text.extend(package_lines(change).map(|line| line + "\n"));
        }
        text.extend(
            self.endpoints
                .iter()
                .map(|change| format!("{}\n", endpoint_line(change))),
        );
        for host in &self.hosts {
            text += &format!(
                "{:8} host {}: {} ({})\n",
                host.change_word(),
                host.address(),
                host.why.join(", "),
                host.known
            );
        }
        let signed = self.newly_signed().count();
        if signed > 0 {
            text += &format!(
                "{} with new signatures or other referrers\n",
                count_of(signed, "item")
            );
        }
        let [(_, from), (_, to)] = &self.sides;
        text + &format!(
            "{}\nold lock fingerprint  {from}\nnew lock fingerprint  {to}\n",
            self.summary()
        )
    }

    /// The Markdown for a pull request. The caller may add to it.
    pub(crate) fn markdown(&self) -> Markdown {
        let mut document = Markdown::new(format!("**{}**", markdown_text(&self.summary())));
        let rows = |is: &dyn Fn(&LockChange) -> bool,
                    row: &dyn Fn(&LockChange, &Option<u64>) -> Vec<String>| {
            let rows = self.shown().filter(|(change, _)| is(change));
            rows.map(|(change, bytes)| row(change, bytes))
                .collect::<Vec<_>>()
        };
        let moved = rows(&|change| change.change == "moved", &|change, bytes| {
            vec![
                markdown_code(&change.name),
                markdown_digest(change.from.as_ref()),
                markdown_digest(change.to.as_ref()),
                optional_size(*bytes),
            ]
        });
        document.table(
            "Moved: the same name, another digest",
            &["name", "from", "to", "new"],
            moved,
        );
        for (word, title) in [("up", "Newer versions"), ("down", "Older versions")] {
            let versions = rows(&|change| change.version == Some(word), &|change, bytes| {
                vec![
                    change
                        .replaces
                        .as_deref()
                        .map(markdown_code)
                        .unwrap_or_default(),
                    markdown_code(&change.name),
                    optional_size(*bytes),
                ]
            });
            document.table(title, &["from", "to", "new"], versions);
        }
        package_tables(&mut document, self.shown().map(|(change, _)| change));
        let alone = |word: &'static str| {
            rows(
                &|change| change.change == word && change.version.is_none(),
                &|change, bytes| {
                    vec![
                        change.kind.to_string(),
                        markdown_code(&change.name),
                        optional_size(*bytes),
                    ]
                },
            )
        };
        document.table("Added", &["kind", "name", "new"], alone("added"));
        document.table("Removed", &["kind", "name", ""], alone("removed"));
        let changed = rows(&|change| change.change == "changed", &|change, bytes| {
            vec![
                markdown_code(&change.name),
                change.new_referrers.len().to_string(),
                change.gone_referrers.len().to_string(),
                optional_size(*bytes),
            ]
        });
        let columns = ["name", "new referrers", "gone referrers", "new"];
        document.table(
            "The same digest, with other parts, platforms or referrers",
            &columns,
            changed,
        );
        let signed = self.newly_signed().map(|change| {
            vec![
                markdown_code(&change.name),
                change.new_referrers.len().to_string(),
            ]
        });
        document.table(
            "New signatures and other referrers",
            &["name", "new"],
            signed,
        );
        let hosts = self.hosts.iter().map(|host| {
            vec![
                host.change_word(),
                markdown_code(&host.address()),
                markdown_text(&host.why.join(", ")),
                host.known.to_string(),
            ]
        });
        document.table(
            "Hosts for the firewall",
            &["change", "host", "what for", "known"],
            hosts,
        );
        let endpoints = self
            .endpoints
            .iter()
            .map(|EndpointChange { change, endpoint }| {
                vec![
                    (*change).to_owned(),
                    markdown_code(&endpoint.to_string()),
                    markdown_text(&endpoint.why),
                ]
            });
        document.table("Endpoints", &["change", "endpoint", "what for"], endpoints);
        document
    }

    /// Adds the differences to a report.
    pub(crate) fn add_to(self, report: &mut VerbReport) {
        let changes = self.changes.into_iter().map(|(change, bytes)| {
            // A removal adds nothing. The size is unknown if the newer side is a receipt.
            let bytes = bytes.or((change.change == "removed").then_some(0));
            ReportChange::new(change, bytes)
        });
        report.add(ReportMember::Changes(changes.collect()));
        report.add(ReportMember::EndpointChanges(self.endpoints));
        report.add(ReportMember::HostChanges(self.hosts));
        let [(old_word, from), (new_word, to)] = self.sides;
        report.add(ReportMember::Old {
            lock: from,
            of: old_word,
        });
        report.add(ReportMember::New {
            lock: to,
            of: new_word,
            content: self.news,
        });
    }

    /// The counts, as in `4 changes: 1 moved, 3 up; 12 blobs with 45 MB are new, of 1.2 GB in all`.
    pub(crate) fn summary(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (change, _) in self.shown() {
            *counts
                .entry(change.version.unwrap_or(change.change))
                .or_default() += 1;
        }
        let order = ["moved", "up", "down", "added", "removed", "changed", "gone"];
        let counted: Vec<String> = order
            .iter()
            .filter_map(|word| Some(format!("{} {word}", counts.get(word)?)))
            .chain((!self.endpoints.is_empty()).then(|| count_of(self.endpoints.len(), "endpoint")))
            .collect();
        let all = count_of(self.shown().count() + self.endpoints.len(), "change");
        let summary = if counted.is_empty() {
            all
        } else {
            format!("{all}: {}", counted.join(", "))
        };
        match &self.news {
            Some(news) => format!(
                "{summary}; {} with {} are new, of {} in all",
                count_of(news.blobs, "blob"),
                human_size(news.bytes),
                human_size(news.all_bytes)
            ),
            None => summary,
        }
    }

    /// The changes to print. A version and the version that it replaces are one line, so removals
    /// of replaced versions are left out.
    fn shown(&self) -> impl Iterator<Item = &(LockChange, Option<u64>)> {
        self.changes
            .iter()
            .filter(|(change, _)| change.replaced_by.is_none())
    }

    /// The changes that add signatures or other referrers.
    fn newly_signed(&self) -> impl Iterator<Item = &LockChange> {
        self.changes
            .iter()
            .map(|(change, _)| change)
            .filter(|change| !change.new_referrers.is_empty())
    }
}

fn optional_size(bytes: Option<u64>) -> String {
    bytes.map(human_size).unwrap_or_default()
}

/// The line for a version that replaces another one.
fn version_line(change: &LockChange) -> Option<String> {
    let version = change.version?;
    let replaces = change.replaces.as_deref()?;
    Some(format!("{version:8} {replaces} -> {}", change.name))
}

/// Hosts that only one of the two locks needs.
fn hosts(context: &Context, old: &Lock, new: &Lock) -> Result<Vec<EgressHost>, CliError> {
    let sessions = context.client()?.shared_sessions();
    let record = ContactRecord::load(&context.memory_dir()?)?;
    let [old, new] = [old, new].map(|lock| needed(EgressQuery::of_lock(lock), &record, &sessions));
    Ok(egress::diff(
        without_declared(old?.hosts),
        without_declared(new?.hosts),
    ))
}

/// Removes hosts that are known only as endpoints: endpoints have lines of their own.
fn without_declared(hosts: Vec<EgressHost>) -> Vec<EgressHost> {
    hosts
        .into_iter()
        .filter(|host| host.known != egress::HostEvidence::Declared)
        .collect()
}

/// One side of a comparison.
pub(crate) enum ComparedSide {
    /// A lock file, or the lock of a bundle without the items that the bundle lacks.
    Lock {
        lock: Box<Lock>,
        /// The fingerprint of the complete lock.
        fingerprint: Digest,
        /// The bundle that contains the lock; `None` for a lock file.
        bundle: Option<Bundle>,
    },
    /// The content of a registry after a push.
    Receipt(Receipt),
}

impl ComparedSide {
    /// Opens a lock, bundle or receipt.
    pub(crate) fn open(context: &Context, path: &Path) -> Result<ComparedSide, CliError> {
        Ok(match OpenedFile::open(context, path)? {
            OpenedFile::Bundle(bundle) => ComparedSide::bundle(&bundle)?,
            OpenedFile::Lock(lock) => ComparedSide::Lock {
                fingerprint: lock.fingerprint(),
                lock: lock.into(),
                bundle: None,
            },
            OpenedFile::Receipt(receipt) => ComparedSide::Receipt(receipt),
        })
    }

    /// One side from an open bundle, whose signatures the caller has checked.
    pub(crate) fn bundle(bundle: &Bundle) -> Result<ComparedSide, CliError> {
        Ok(ComparedSide::Lock {
            lock: bundle.available_lock()?.into(),
            fingerprint: bundle.fingerprint().clone(),
            bundle: Some(bundle.clone()),
        })
    }

    /// Adds changelogs of packages to `changes`, if the packages are in the bundle or, for a lock,
    /// in the store on disk.
    pub(super) fn add_changelogs(
        &self,
        context: &Context,
        changes: &mut [LockChange],
    ) -> Result<(), CliError> {
        let ComparedSide::Lock { lock, bundle, .. } = self else {
            return Ok(());
        };
        match (bundle, context.store_location()?) {
            (Some(bundle), _) => add_changelogs(context, changes, lock, bundle),
            // Not from an object store: each package would be a download.
            (None, StoreLocation::Folder(_)) if context.has_store() => {
                add_changelogs(context, changes, lock, &*context.served_store()?);
            }
            _ => {}
        }
        Ok(())
    }

    /// The names and digests to compare.
    pub(super) fn side(&self) -> DiffSide<'_> {
        match self {
            ComparedSide::Lock { lock, .. } => DiffSide::lock(lock),
            // A trimmed index has another digest at the registry, so the locked digest is compared.
            ComparedSide::Receipt(receipt) => DiffSide::named(receipt.items.iter().map(|item| {
                (
                    &*item.name,
                    item.trimmed_from.as_ref().unwrap_or(&item.digest),
                )
            })),
        }
    }

    /// The fingerprint of the complete lock.
    pub(super) fn fingerprint(&self) -> &Digest {
        match self {
            ComparedSide::Lock { fingerprint, .. } => fingerprint,
            ComparedSide::Receipt(receipt) => &receipt.lock,
        }
    }

    /// The lock; a receipt has none.
    pub(super) fn lock(&self) -> Option<&Lock> {
        match self {
            ComparedSide::Lock { lock, .. } => Some(lock),
            ComparedSide::Receipt(_) => None,
        }
    }

    /// `lock` or `receipt`.
    pub(super) fn word(&self) -> &'static str {
        match self {
            ComparedSide::Lock { .. } => "lock",
            ComparedSide::Receipt(_) => "receipt",
        }
    }
}
