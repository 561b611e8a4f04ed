//! The page at `/`: a search over everything, and an entry for each item.

use super::asked::Asked;
use super::commands::Here;
use super::row::row;
use crate::bundles::{BundleListing, ItemListing};
use crate::response::ApiError;
use crate::state::State;
use landfall_item::item_kinds;
use landfall_model::report::escape_html;
use landfall_model::report::{EntryCount, EntryKind, count_of};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Most items of one page.
const ITEMS: usize = 50;
/// How long the entries of one page may be, in bytes; with what is around them it stays below 100
/// kB.
const ROOM: usize = 80_000;
/// How many bundles, and missing items of each, are named.
const NAMED: usize = 20;

/// The body of the page.
///
/// # Errors
/// When what was pushed cannot be listed.
pub(super) fn body(state: &State, here: Here<'_>, asked: &Asked) -> Result<String, ApiError> {
    let pushed = pushed(state)?;
    let all = newest(&state.bundles.listings, &pushed);
    let mut out = String::new();
    bundles(&mut out, &state.bundles.listings, pushed.len());
    let (kind, words) = (
        asked.kind.as_deref().unwrap_or_default(),
        escape_html(&asked.words),
    );
    let _ = writeln!(
        out,
        "<form role=\"search\" action=\"/\" method=\"get\"><label for=\"q\">Search names, hosts, digests, platforms and \
         bundles</label><input type=\"search\" id=\"q\" name=\"q\" value=\"{words}\" autocomplete=\"off\">\
         <input type=\"hidden\" name=\"kind\" value=\"{}\"><button>Search</button></form>",
        escape_html(kind)
    );
    let words: Vec<String> = asked
        .words
        .split_whitespace()
        .map(str::to_lowercase)
        .collect();
    let matching: Vec<_> = all
        .into_iter()
        .filter(|(item, bundle)| has(item, bundle, &words))
        .collect();
    let mut found: Vec<_> = matching
        .iter()
        .filter(|(item, _)| asked.wants(item.kind))
        .collect();
    let total = found.len();
    found.drain(..asked.from.min(total));
    let told = format!("{} found", count_of(total, "item"));
    let _ = writeln!(out, "<div id=\"results\" data-found=\"{told}\">");
    kinds(&mut out, asked, &matching);
    if !words.is_empty() {
        let _ = writeln!(out, "<p class=\"dim\">{told}</p>");
    }
    let (start, mut shown) = (out.len(), 0);
    if !found.is_empty() {
        out += "<ul class=\"items\">\n";
        for (item, bundle) in found.iter().take(ITEMS) {
            out += &row(item, bundle, here, &state.blobs);
            shown += 1;
            if out.len() - start > ROOM {
                break;
            }
        }
        out += "</ul>\n";
    }
    pages(&mut out, asked, shown, total);
    out += "</div>\n";
    Ok(out)
}

/// Every item by name; of one that two bundles have, what the later one has. With the name of its
/// bundle.
fn newest<'a>(
    bundles: &'a [BundleListing],
    pushed: &'a [ItemListing],
) -> Vec<(&'a ItemListing, &'a str)> {
    let of_bundles = bundles
        .iter()
        .flat_map(|bundle| bundle.items.iter().map(|item| (item, &*bundle.name)));
    let all = of_bundles.chain(pushed.iter().map(|item| (item, "pushed here")));
    let place = |kind: EntryKind| item_kinds().position(|known| known == kind);
    let named: BTreeMap<_, _> = all
        .map(|found| ((place(found.0.kind), &*found.0.name), found))
        .collect();
    named.into_values().collect()
}

/// What was pushed, as items.
fn pushed(state: &State) -> Result<Vec<ItemListing>, ApiError> {
    let mut items = Vec::new();
    let Some(store) = &state.writable else {
        return Ok(items);
    };
    for name in store.repositories().map_err(ApiError::disk)? {
        for tag in store
            .tags(&name)
            .map_err(ApiError::disk)?
            .unwrap_or_default()
        {
            if let Some(digest) = store.tag(&name, &tag).map_err(ApiError::disk)? {
                let place = format!("{name}:{tag}");
                items.push(ItemListing::new(
                    EntryKind::Image,
                    place.clone(),
                    place,
                    digest,
                ));
            }
        }
    }
    Ok(items)
}

fn has(item: &ItemListing, bundle: &str, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let mut text = format!(
        "{} {} {} {} {bundle}",
        item.kind, item.name, item.repository_tag, item.digest
    );
    item.platforms
        .iter()
        .chain(&item.urls)
        .for_each(|more| text = format!("{text} {more}"));
    let text = text.to_lowercase();
    words.iter().all(|word| text.contains(word.as_str()))
}

/// The keys that signed a bundle.
fn signed(bundle: &BundleListing) -> String {
    match &bundle.signatures[..] {
        [] => String::new(),
        keys => format!(
            "<br><span class=\"dim\">signature {}</span>",
            escape_html(&keys.join(", "))
        ),
    }
}

/// The bundles, and what the partial ones lack.
fn bundles(out: &mut String, bundles: &[BundleListing], pushed: usize) {
    if bundles.is_empty() && pushed == 0 {
        *out += "<p>Nothing is here yet.</p>\n";
        return;
    }
    *out += "<table>\n<tr><th scope=\"col\">From</th><th scope=\"col\">Holds</th><th scope=\"col\">Digest</th></tr>\n";
    for bundle in bundles.iter().rev().take(NAMED) {
        let counts = item_kinds()
            .map(|kind| EntryCount::new(kind, bundle.items.iter().map(ItemListing::counted)));
        let holds: Vec<String> = counts
            .filter(|count| count.entries > 0)
            .map(|count| count.to_string())
            .collect();
        let digest = bundle
            .digest
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let name = escape_html(&bundle.name);
        let holds = if holds.is_empty() {
            "nothing".into()
        } else {
            holds.join(", ")
        };
        let _ = writeln!(
            out,
            "<tr><td>{name}</td><td>{holds}</td><td><code>{digest}</code>{}</td></tr>",
            signed(bundle)
        );
    }
    if pushed > 0 {
        let _ = writeln!(
            out,
            "<tr><td>pushed here</td><td>{}</td><td></td></tr>",
            count_of(pushed, "tag")
        );
    }
    *out += "</table>\n";
    if bundles.len() > NAMED {
        let _ = writeln!(
            out,
            "<p class=\"dim\">and {} older</p>",
            bundles.len() - NAMED
        );
    }
    for bundle in bundles
        .iter()
        .filter(|bundle| !bundle.missing.is_empty())
        .take(NAMED)
    {
        let name = escape_html(&bundle.name);
        let _ = writeln!(
            out,
            "<div class=\"warn\"><b>{name} is partial.</b> It lacks\n<ul>"
        );
        for item in bundle.missing.iter().take(NAMED) {
            let _ = writeln!(out, "<li>{}</li>", escape_html(item));
        }
        if bundle.missing.len() > NAMED {
            let _ = writeln!(out, "<li>and {} more</li>", bundle.missing.len() - NAMED);
        }
        *out += "</ul></div>\n";
    }
}

/// A link for each kind, with the number of items that have the words.
fn kinds(out: &mut String, asked: &Asked, matching: &[(&ItemListing, &str)]) {
    *out += "<ul class=\"kinds\">";
    let mut link = |word: &str, kind: Option<&str>, number: usize| {
        let current = if asked.kind.as_deref() == kind {
            " aria-current=\"true\""
        } else {
            ""
        };
        let href = escape_html(&asked.link(kind, 0));
        let _ = write!(
            out,
            "<li><a href=\"{href}\"{current}>{word}</a> {number}</li>"
        );
    };
    link("everything", None, matching.len());
    for kind in item_kinds().map(|kind| kind.to_string()) {
        let number = matching
            .iter()
            .filter(|(item, _)| item.kind.to_string() == kind)
            .count();
        if number > 0 {
            link(&format!("{kind}s"), Some(&kind), number);
        }
    }
    *out += "</ul>\n";
}

/// Where the page stands, and links to the next ones.
fn pages(out: &mut String, asked: &Asked, shown: usize, total: usize) {
    if shown == total {
        return;
    }
    let (from, kind) = (asked.from.min(total), asked.kind.as_deref());
    let _ = write!(
        out,
        "<p class=\"pages\"><span>{} to {} of {total}</span>",
        from + 1,
        from + shown
    );
    if from > 0 {
        let href = escape_html(&asked.link(kind, from.saturating_sub(ITEMS)));
        let _ = write!(out, "<a href=\"{href}\" rel=\"prev\">Back</a>");
    }
    if from + shown < total {
        let href = escape_html(&asked.link(kind, from + shown));
        let _ = write!(out, "<a href=\"{href}\" rel=\"next\">More</a>");
    }
    *out += "</p>\n";
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn of_two_bundles_the_later_ones_item_is_shown_once() {
        let bundles = [
            listing(
                "old",
                vec![item("https://h/a", b"1"), item("https://h/b", b"1")],
            ),
            listing("new", vec![item("https://h/a", b"2")]),
        ];
        let shown: Vec<_> = newest(&bundles, &[])
            .iter()
            .map(|(item, bundle)| (&*item.name, *bundle))
            .collect();
        assert_eq!(shown, [("https://h/a", "new"), ("https://h/b", "old")]);
    }

    #[test]
    fn all_words_must_be_there_whatever_their_case() {
        let one = item("https://dl.k8s.io/Kubelet", b"1");
        let has = |words: &[&str]| {
            has(
                &one,
                "b",
                &words.iter().map(ToString::to_string).collect::<Vec<_>>(),
            )
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
    fn a_partial_bundle_names_what_it_lacks_and_no_name_is_markup() {
        let mut partial = listing("<b>.tar.zst", vec![]);
        partial.missing = (0..=NAMED).map(|at| format!("image <x>{at}")).collect();
        let mut out = String::new();
        bundles(&mut out, &[partial], 0);
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
}
