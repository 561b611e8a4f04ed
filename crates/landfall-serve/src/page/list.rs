//! The page at `/`: the bundles, a search, and an entry for each item.

use super::commands::{FetchCommand, ReaderAddress, fetch_commands};
use super::{MAX_CONTENT, PageFrame};
use crate::catalog::{AttachedManifest, BundleListing, ItemListing};
use crate::route::query_value;
use askama::Template;
use landfall_content::BlobRead;
use landfall_item::item_kinds;
use landfall_model::report::{EntryCount, EntryKind, count_of, escape_html};
use landfall_model::{Descriptor, human_size, media_type, read_referrer};
use std::collections::BTreeMap;

/// The number of items on one page.
const MAX_ITEMS: usize = 50;
/// The maximum number of listed bundles, and of listed missing items per bundle.
const MAX_LISTED: usize = 20;
/// The source of pushed images, as the page names it.
const PUSHED: &str = "pushed";

#[derive(Template)]
#[template(path = "list.html")]
struct ContentsPage<'a> {
    frame: PageFrame<'a>,
    query: &'a ListQuery,
    /// The newest bundles, the newest first.
    bundles: Vec<BundleRow<'a>>,
    older_bundles: usize,
    /// The name of each partial bundle, its missing items, and the number of further ones.
    partial_bundles: Vec<(&'a str, &'a [String], usize)>,
    /// The number of partial bundles that are not listed.
    more_partial_bundles: usize,
    pushed_here: &'static str,
    pushed_count: usize,
    pushed_tags: String,
    kind: &'a str,
    found: String,
    kinds: Vec<KindLink>,
    rows: Vec<String>,
    /// The number of items that match, on all pages.
    total: usize,
    /// The number of the first item on this page, counted from 1.
    first: usize,
    last: usize,
    previous: Option<String>,
    next: Option<String>,
}

struct BundleRow<'a> {
    name: &'a str,
    contents: String,
    digest: String,
    signatures: String,
}

/// A link to the list of one kind, or of all kinds.
struct KindLink {
    text: String,
    href: String,
    is_current: bool,
    count: usize,
}

/// Renders the page. `pushed` are the images that were pushed to this server.
pub(super) fn render_list(
    frame: PageFrame<'_>,
    listings: &[BundleListing],
    pushed: &[ItemListing],
    blobs: &dyn BlobRead,
    query: &ListQuery,
) -> askama::Result<String> {
    let words: Vec<String> = query
        .words
        .split_whitespace()
        .map(str::to_lowercase)
        .collect();
    let mut matching = newest_items(listings, pushed);
    matching.retain(|(item, source)| matches_words(item, source, &words));
    let kinds = kind_links(query, &matching);
    // filtered by kind only after `kind_links`, which counts the matching items of every kind
    matching.retain(|(item, _)| query.wants(item.kind));
    let total = matching.len();
    // a bookmark may be from a time when there were more items
    let from = if query.from < total { query.from } else { 0 };
    let mut rows = Vec::new();
    let mut length = 0;
    for (item, source) in matching[from..].iter().take(MAX_ITEMS) {
        let row = render_row(item, source, frame.address, blobs)?;
        length += row.len();
        rows.push(row);
        // the next page begins with the first item that was not rendered
        if length > MAX_CONTENT {
            break;
        }
    }
    let end = from + rows.len();
    let kind = query.kind.as_deref();
    let previous = (from > 0).then(|| query.link(kind, from.saturating_sub(MAX_ITEMS)));
    let next = (end < total).then(|| query.link(kind, end));
    let newest_first = listings.iter().rev();
    let partial_bundles = newest_first.filter(|bundle| !bundle.missing.is_empty());
    let page = ContentsPage {
        frame,
        query,
        bundles: listings
            .iter()
            .rev()
            .take(MAX_LISTED)
            .map(BundleRow::new)
            .collect(),
        older_bundles: listings.len().saturating_sub(MAX_LISTED),
        partial_bundles: partial_bundles
            .clone()
            .take(MAX_LISTED)
            .map(|bundle| {
                let listed = bundle.missing.len().min(MAX_LISTED);
                let (missing, more) = bundle.missing.split_at(listed);
                (&*bundle.name, missing, more.len())
            })
            .collect(),
        more_partial_bundles: partial_bundles.count().saturating_sub(MAX_LISTED),
        pushed_here: PUSHED,
        pushed_count: pushed.len(),
        pushed_tags: count_of(pushed.len(), "tag"),
        kind: kind.unwrap_or_default(),
        found: format!("{} found", count_of(total, "item")),
        kinds,
        rows,
        total,
        first: from + 1,
        last: end,
        previous,
        next,
    };
    page.render()
}

impl BundleRow<'_> {
    fn new(bundle: &BundleListing) -> BundleRow<'_> {
        let counts: Vec<String> = item_kinds()
            .map(|kind| {
                let items = bundle.items.iter();
                EntryCount::new(kind, items.map(ItemListing::kind_and_packages))
            })
            .filter(|count| count.entries > 0)
            .map(|count| count.to_string())
            .collect();
        BundleRow {
            name: &bundle.name,
            contents: if counts.is_empty() {
                "nothing".into()
            } else {
                counts.join(", ")
            },
            digest: bundle
                .digest
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            signatures: bundle.signatures.join(", "),
        }
    }
}

/// All items with their source, sorted by kind and name. If several sources have an item with the
/// same kind and name, the last one is listed: the bundles in their order, then the pushed images.
fn newest_items<'a>(
    listings: &'a [BundleListing],
    pushed: &'a [ItemListing],
) -> Vec<(&'a ItemListing, &'a str)> {
    let mut newest = BTreeMap::new();
    for bundle in listings {
        for item in &bundle.items {
            newest.insert((kind_order(item.kind), &*item.name), (item, &*bundle.name));
        }
    }
    for item in pushed {
        newest.insert((kind_order(item.kind), &*item.name), (item, PUSHED));
    }
    newest.into_values().collect()
}

/// The position of a kind in the list.
fn kind_order(kind: EntryKind) -> Option<usize> {
    item_kinds().position(|known| known == kind)
}

/// Whether the texts of the item contain all `words`, which are in lower case.
fn matches_words(item: &ItemListing, source: &str, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let mut text = format!(
        "{} {} {} {} {source}",
        item.kind, item.name, item.repository_tag, item.digest
    );
    for more in item.platforms.iter().chain(&item.urls) {
        text += " ";
        text += more;
    }
    let text = text.to_lowercase();
    words.iter().all(|word| text.contains(word.as_str()))
}

impl KindLink {
    fn new(query: &ListQuery, text: String, kind: Option<&str>, count: usize) -> KindLink {
        KindLink {
            text,
            // the list of another kind begins with its first item
            href: query.link(kind, 0),
            is_current: query.kind.as_deref() == kind,
            count,
        }
    }
}

/// A link for all items, and one for each kind that has matching items.
fn kind_links(query: &ListQuery, matching: &[(&ItemListing, &str)]) -> Vec<KindLink> {
    let everything = "everything".to_owned();
    let mut links = vec![KindLink::new(query, everything, None, matching.len())];
    for kind in item_kinds() {
        let count = matching
            .iter()
            .filter(|(item, _)| item.kind == kind)
            .count();
        if count > 0 {
            let word = kind.to_string();
            links.push(KindLink::new(query, format!("{word}s"), Some(&word), count));
        }
    }
    links
}

/// The query of the list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ListQuery {
    /// The search words, as the reader typed them.
    pub(super) words: String,
    /// The word for a kind, such as `image`.
    pub(super) kind: Option<String>,
    /// The number of items to skip.
    pub(super) from: usize,
}

impl ListQuery {
    /// Parses a query string. An empty kind, and a number that is not valid, are ignored: a reader
    /// may edit the URL.
    pub(super) fn parse(query: Option<&str>) -> ListQuery {
        ListQuery {
            words: query_value(query, "q").unwrap_or_default(),
            kind: query_value(query, "kind").filter(|kind| !kind.is_empty()),
            from: query_value(query, "from")
                .and_then(|from| from.parse().ok())
                .unwrap_or_default(),
        }
    }

    /// Whether the query asks for items of this kind.
    pub(super) fn wants(&self, kind: EntryKind) -> bool {
        match &self.kind {
            Some(wanted) => *wanted == kind.to_string(),
            None => true,
        }
    }

    /// The URL of the list with the same words, for this kind and from this item on.
    pub(super) fn link(&self, kind: Option<&str>, from: usize) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        if !self.words.is_empty() {
            query.append_pair("q", &self.words);
        }
        if let Some(kind) = kind {
            query.append_pair("kind", kind);
        }
        // the shortest URL for each page, so that links and bookmarks agree
        if from > 0 {
            query.append_pair("from", &from.to_string());
        }
        match query.finish().as_str() {
            "" => "/".into(),
            query => format!("/?{query}"),
        }
    }
}

// One item of the list: a summary, which opens to details and the commands that fetch the item.

/// The maximum length of a row in bytes. A longer row shows only the digest and the beginning of
/// the name, so that hostile names cannot fill the page.
const MAX_ROW: usize = 12_000;
/// The number of characters of a long name that are shown.
const MAX_NAME: usize = 300;

#[derive(Template)]
#[template(path = "item_row.html")]
struct ItemRow<'a> {
    item: &'a ItemListing,
    source: &'a str,
    /// `host/repository:tag` of the image, or of the artifact that contains the file.
    image_name: String,
    about: String,
    size: String,
    platforms: String,
    attached: String,
    commands: Vec<FetchCommand>,
}

/// Renders the row of `item`, which is in the bundle `source`.
pub(super) fn render_row(
    item: &ItemListing,
    source: &str,
    address: ReaderAddress<'_>,
    blobs: &dyn BlobRead,
) -> askama::Result<String> {
    let counts = attachment_counts(&item.attached, blobs);
    let attached: Vec<String> = counts
        .iter()
        .map(|(word, count)| count_of(*count, word))
        .collect();
    let attached = attached.join(", ");
    let platforms: Vec<&str> = item.platforms.iter().map(String::as_str).collect();
    let platforms = platforms.join(", ");
    let kind = match item.kind {
        // for a set of packages, the number of its packages is shown
        EntryKind::Package => {
            EntryCount::new(EntryKind::Package, [item.kind_and_packages()]).to_string()
        }
        kind => kind.to_string(),
    };
    let about: Vec<&str> = [&*kind, &*platforms, &*attached]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect();
    let host = item.registry.as_deref().unwrap_or(address.host);
    let row = ItemRow {
        item,
        source,
        image_name: format!("{host}/{}", item.repository_tag),
        about: about.join(" · "),
        size: item.size.map(human_size).unwrap_or_default(),
        platforms,
        attached,
        commands: fetch_commands(item, address),
    };
    let row = row.render()?;
    // measured after rendering, because escaping may make a text several times longer
    if row.len() <= MAX_ROW {
        return Ok(row);
    }
    let name: String = item.name.chars().take(MAX_NAME).collect();
    Ok(format!(
        "<li><p><code>{}</code>… is too long to be shown; <code>{}</code></p></li>",
        escape_html(&name),
        item.digest
    ))
}

// The numbers of signatures, attestations and SBOMs that are attached to an image.

/// The maximum size in bytes of a manifest that is read for its artifact type. Manifests of
/// signatures are small.
const MAX_MANIFEST: u64 = 256 << 10;

/// The number of attached manifests of each kind. Keys are words for kinds, such as `signature`.
pub(super) fn attachment_counts(
    attached: &[AttachedManifest],
    blobs: &dyn BlobRead,
) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for manifest in attached {
        // an index only groups other manifests, which are listed themselves
        if !media_type::is_index(&manifest.descriptor.media_type) {
            *counts.entry(attachment_word(manifest, blobs)).or_default() += 1;
        }
    }
    counts
}

fn attachment_word(manifest: &AttachedManifest, blobs: &dyn BlobRead) -> String {
    let suffix = manifest
        .tag
        .as_deref()
        .and_then(|tag| tag.rsplit_once('.'))
        .map(|(_, suffix)| suffix);
    match suffix {
        Some("sig") => "signature".into(),
        Some("att") => "attestation".into(),
        Some("sbom") => "SBOM".into(),
        _ => {
            let artifact_type = artifact_type(&manifest.descriptor, blobs);
            word_for_type(artifact_type.as_deref().unwrap_or_default())
        }
    }
}

/// The artifact type of a manifest, if it can be read.
fn artifact_type(descriptor: &Descriptor, blobs: &dyn BlobRead) -> Option<String> {
    if descriptor.size > MAX_MANIFEST {
        return None;
    }
    let bytes = blobs.read(descriptor).ok()?;
    let referrer = read_referrer(&bytes, descriptor)?;
    referrer.entry["artifactType"].as_str().map(str::to_owned)
}

fn word_for_type(artifact_type: &str) -> String {
    let known = TYPE_WORDS
        .iter()
        .find(|(_, parts)| parts.iter().any(|part| artifact_type.contains(part)));
    match known {
        Some((word, _)) => (*word).into(),
        None if artifact_type.is_empty() => "referrer".into(),
        None => artifact_type.into(),
    }
}

/// The words of the page, each with the parts of artifact types that select it. The first match
/// wins.
const TYPE_WORDS: [(&str, &[&str]); 4] = [
    ("SBOM", &["spdx", "cyclonedx", "sbom"]),
    (
        "signature",
        &["notary.signature", "cosign.simplesigning", "signature"],
    ),
    // a Sigstore bundle contains a signature or an attestation, and its type does not say which
    ("signature or attestation", &["sigstore.bundle"]),
    (
        "attestation",
        &["in-toto", "dsse", "attestation", "provenance"],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::file_link;
    use crate::page::PAGES;
    use crate::page::commands::ReaderAddress;
    use landfall_content::BlobChain;
    use landfall_model::Digest;

    fn item(name: &str, content: &[u8]) -> ItemListing {
        ItemListing::new(
            EntryKind::File,
            name.into(),
            "files/h/0:1".into(),
            Digest::sha256(content),
        )
    }

    fn listing(name: &str, items: Vec<ItemListing>) -> BundleListing {
        BundleListing {
            name: name.into(),
            digest: None,
            missing: vec![],
            signatures: vec![],
            items,
            changes: None,
        }
    }

    #[test]
    fn an_item_of_two_bundles_is_shown_once_from_the_later_one() {
        let bundles = [
            listing(
                "old",
                vec![item("https://h/a", b"1"), item("https://h/b", b"1")],
            ),
            listing("new", vec![item("https://h/a", b"2")]),
        ];
        let shown: Vec<_> = newest_items(&bundles, &[])
            .iter()
            .map(|(item, bundle)| (&*item.name, *bundle))
            .collect();
        assert_eq!(shown, [("https://h/a", "new"), ("https://h/b", "old")]);
    }

    #[test]
    fn a_search_matches_all_words_in_any_case() {
        let one = item("https://dl.k8s.io/Kubelet", b"1");
        let has = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            matches_words(&one, "b", &words)
        };
        assert!(
            has(&[])
                && has(&["kubelet", "dl.k8s"])
                && has(&["file"])
                && !has(&["kubelet", "kubectl"])
        );
        assert!(has(&[one.digest.short(12).as_str()]));
    }

    #[test]
    fn a_partial_bundle_lists_missing_items_and_escapes_names() {
        let mut partial = listing("<b>.tar.zst", vec![]);
        partial.missing = (0..=MAX_LISTED)
            .map(|at| format!("image <x>{at}"))
            .collect();
        let address = ReaderAddress {
            host: "127.0.0.1:5000",
            is_tls: false,
        };
        let frame = PageFrame {
            page: &PAGES[0],
            address,
        };
        let query = ListQuery::default();
        let out = render_list(frame, &[partial], &[], &BlobChain(vec![]), &query).unwrap();
        assert!(
            out.contains("&lt;b&gt;.tar.zst is partial")
                && out.contains("<li>image &lt;x&gt;0</li>"),
            "{out}"
        );
        assert!(
            out.contains("and 1 more") && !out.contains("<x>") && !out.contains("<b>."),
            "{out}"
        );
    }

    #[test]
    fn a_link_parses_back_to_its_query() {
        let query = ListQuery {
            words: "a&b \"c\"".into(),
            kind: Some("file".into()),
            from: 50,
        };
        let link = query.link(Some("file"), 50);
        assert_eq!(ListQuery::parse(link.strip_prefix("/?")), query);
        assert_eq!(ListQuery::default().link(None, 0), "/");
        assert_eq!(
            ListQuery::parse(Some("from=-1&kind=")),
            ListQuery::default()
        );
    }

    fn rendered(name: &str) -> String {
        let mut item = ItemListing::new(
            EntryKind::File,
            name.into(),
            "files/h/00:11".into(),
            Digest::sha256(b"x"),
        );
        item.link = file_link(name);
        item.urls = vec![name.into()];
        item.incomplete = true;
        render_row(
            &item,
            "<b>",
            ReaderAddress {
                host: "127.0.0.1:5000",
                is_tls: false,
            },
            &BlobChain(vec![]),
        )
        .unwrap()
    }

    #[test]
    fn names_cannot_become_markup() {
        let out = rendered("https://h/a?x='\"><script>&");
        assert!(
            !out.contains("<script>") && !out.contains("<b>") && out.contains("incomplete"),
            "{out}"
        );
    }

    #[test]
    fn a_long_name_does_not_lengthen_the_page() {
        let out = rendered(&format!("https://h/{}", "<".repeat(1 << 20)));
        assert!(
            out.len() < MAX_ROW && out.contains("too long"),
            "{} bytes",
            out.len()
        );
    }

    #[test]
    fn artifact_types_are_described() {
        for (kind, word) in [
            ("application/vnd.cncf.notary.signature", "signature"),
            ("application/spdx+json", "SBOM"),
            ("application/vnd.cyclonedx+json", "SBOM"),
            ("application/vnd.in-toto+json", "attestation"),
            (
                "application/vnd.dev.sigstore.bundle.v0.3+json",
                "signature or attestation",
            ),
            ("application/x.other", "application/x.other"),
            ("", "referrer"),
        ] {
            assert_eq!(word_for_type(kind), word, "{kind}");
        }
    }
}
