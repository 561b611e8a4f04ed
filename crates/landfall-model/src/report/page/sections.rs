//! Makes all sections of the page.

use super::blob_usage::BlobUsage;
use super::content::{ItemContent, ReportPage, RunPhase};
use super::report_lists::{list_sections, pruned_section};
use super::section::{Section, SectionBody};
use super::table::{Table, TableCell, number_column, text_column};
use super::treemap::Treemap;
use crate::report::{EntryKind, HostUse, ItemStatus, ReportItem};
use std::collections::{BTreeMap, HashMap};

/// The sections that are not empty. Failed, missing and skipped items are first, because they need
/// attention.
pub(super) fn sections(page: &ReportPage, usage: &BlobUsage<'_>) -> Vec<Section> {
    let treemap = Treemap::new(&page.contents, usage);
    let mut sections = vec![
        losses(&page.report.items),
        Section {
            heading: "Sizes".into(),
            body: SectionBody::Treemap(treemap),
        },
    ];
    sections.extend(list_sections(&page.report.extra));
    sections.extend(pruned_section(&page.report.extra));
    sections.extend([
        items(page, usage),
        packages(&page.contents),
        shared_layers(&page.contents, usage),
        licences(&page.contents),
        hosts(&page.report.hosts),
        timings(&page.phases),
    ]);
    sections.retain(|section| !section.is_empty());
    sections
}

fn losses(items: &[ReportItem]) -> Section {
    let columns = ["status", "kind", "name", "reason"].map(text_column);
    let rows = items
        .iter()
        .filter(|item| !matches!(item.status, ItemStatus::Done | ItemStatus::Present))
        .map(|item| {
            vec![
                TableCell::status(item.status),
                TableCell::text(item.kind.to_string()),
                TableCell::code(&item.name),
                TableCell::text(item.reason.clone().unwrap_or_default()),
            ]
        });
    let table = Table::new(&columns, rows.collect());
    Section::table("Failed, missing or skipped", table)
}

fn items(page: &ReportPage, usage: &BlobUsage<'_>) -> Section {
    let columns = [
        text_column("name"),
        text_column("digest"),
        number_column("size"),
        number_column("unique"),
        text_column("platforms"),
        text_column("attached"),
        text_column("licences"),
        text_column("status"),
    ];
    let contents: HashMap<(EntryKind, &str), &ItemContent> = page
        .contents
        .iter()
        .map(|content| ((content.kind, content.name.as_str()), content))
        .collect();
    let rows = page.report.items.iter().map(|item| {
        let content = contents.get(&(item.kind, item.name.as_str())).copied();
        item_row(item, content, usage)
    });
    Section::table("Items", Table::new(&columns, rows.collect()))
}

fn item_row(
    item: &ReportItem,
    content: Option<&ItemContent>,
    usage: &BlobUsage<'_>,
) -> Vec<TableCell> {
    let digest = item.digest.as_ref().map(|digest| digest.short(12));
    let platforms = content.map(|content| content.platforms.join(", "));
    let attached = content.map(attached_documents);
    let licences = content.and_then(|content| content.licences.clone());
    vec![
        TableCell::code(&item.name),
        TableCell::digest(digest.unwrap_or_default()),
        TableCell::size(item.bytes),
        TableCell::size(content.map(|content| usage.unshared_bytes(content))),
        TableCell::text(platforms.unwrap_or_default()),
        TableCell::text(attached.unwrap_or_default()),
        TableCell::text(licences.unwrap_or_default()),
        TableCell::status(item.status),
    ]
}

/// The kinds of artifacts that refer to the item, and its verified signers.
fn attached_documents(content: &ItemContent) -> String {
    let counts = content.attached.iter().map(|(kind, count)| match count {
        1 => kind.clone(),
        count => format!("{count} {kind}s"),
    });
    let signers = content
        .signed_by
        .iter()
        .map(|signer| format!("signed by {signer}"));
    counts.chain(signers).collect::<Vec<_>>().join(", ")
}

fn packages(contents: &[ItemContent]) -> Section {
    let columns = [
        text_column("name"),
        text_column("version"),
        text_column("architecture"),
        number_column("size"),
        text_column("package set"),
    ];
    let mut rows = Vec::new();
    for set in contents {
        rows.extend(set.packages.iter().map(|package| {
            vec![
                TableCell::code(&package.name),
                TableCell::code(&package.version),
                TableCell::text(&package.arch),
                TableCell::size(package.size),
                TableCell::code(&set.name),
            ]
        }));
    }
    Section::table("Packages", Table::new(&columns, rows))
}

fn shared_layers(contents: &[ItemContent], usage: &BlobUsage<'_>) -> Section {
    const MAX_ROWS: usize = 50;
    const MAX_NAMES: usize = 4;
    let columns = [
        text_column("digest"),
        number_column("size"),
        number_column("items"),
        number_column("saved"),
        text_column("used by"),
    ];
    let blobs = usage.shared();
    let rows = blobs.iter().take(MAX_ROWS).map(|blob| {
        let named = blob.items.iter().take(MAX_NAMES);
        let names: Vec<&str> = named.map(|index| contents[*index].name.as_str()).collect();
        let mut users = names.join(", ");
        if blob.items.len() > MAX_NAMES {
            users += &format!(" and {} more", blob.items.len() - MAX_NAMES);
        }
        vec![
            TableCell::digest(blob.digest.short(12)),
            TableCell::size(blob.size),
            TableCell::number(blob.items.len()),
            TableCell::size(blob.saved()),
            TableCell::text(users),
        ]
    });
    let table = Table::new(&columns, rows.collect());
    if blobs.len() > MAX_ROWS {
        let count = blobs.len();
        let heading = format!("Shared layers: the {MAX_ROWS} of {count} that save most");
        return Section::table(heading, table);
    }
    Section::table("Shared layers", table)
}

fn licences(contents: &[ItemContent]) -> Section {
    let columns = [text_column("licence"), number_column("images")];
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for licences in contents.iter().filter_map(|item| item.licences.as_deref()) {
        *counts.entry(licences).or_default() += 1;
    }
    let undeclared = contents
        .iter()
        .filter(|item| item.kind == EntryKind::Image && item.licences.is_none())
        .count();
    let mut rows: Vec<Vec<TableCell>> = counts
        .into_iter()
        .map(|(licence, count)| vec![TableCell::text(licence), TableCell::number(count)])
        .collect();
    if !rows.is_empty() && undeclared > 0 {
        rows.push(vec![
            TableCell::text("(not declared)"),
            TableCell::number(undeclared),
        ]);
    }
    Section::table(
        "Licences declared by the images",
        Table::new(&columns, rows),
    )
}

fn hosts(hosts: &[HostUse]) -> Section {
    let columns = [
        text_column("host"),
        text_column("purpose"),
        text_column("mirror of"),
        text_column("proxy"),
        number_column("requests"),
        number_column("bytes"),
    ];
    let rows = hosts.iter().map(|host| {
        vec![
            TableCell::code(format!("{}://{}:{}", host.scheme, host.host, host.port)),
            TableCell::text(&host.why),
            TableCell::text(host.origin.clone().unwrap_or_default()),
            TableCell::code(host.via.clone().unwrap_or_default()),
            TableCell::number(host.requests),
            TableCell::size(host.bytes),
        ]
    });
    Section::table("Hosts contacted", Table::new(&columns, rows.collect()))
}

fn timings(phases: &[RunPhase]) -> Section {
    let columns = [
        text_column("phase"),
        number_column("items"),
        number_column("bytes"),
        number_column("time"),
        number_column("rate"),
    ];
    let rows = phases.iter().map(|phase| {
        let bytes = (phase.bytes > 0).then_some(phase.bytes);
        // a phase may end within the resolution of the clock
        let rate = bytes.map(|bytes| bytes as f64 / phase.seconds.max(0.001));
        let mut rate = TableCell::size(rate.map(|rate| rate as u64));
        if bytes.is_some() {
            rate.text += "/s";
        }
        vec![
            TableCell::text(&phase.name),
            TableCell::number(phase.items),
            TableCell::size(bytes),
            TableCell::number(format!("{:.1} s", phase.seconds)),
            rate,
        ]
    });
    Section::table("Timings", Table::new(&columns, rows.collect()))
}
