//! Finds the URLs of locked files, and similar URLs.

use super::AuditFinding;
use crate::inventory::{Inventory, LockCoverage};
use crate::text::{JoinedText, ShellVariables, UrlWord, is_assigned, url_at};
use landfall_item::schema_urls;
use landfall_model::document::LineIndex;
use landfall_model::report::count_of;
use landfall_model::{Limits, redact_urls};
use std::collections::HashMap;

/// Characters that end a URL in a text.
const ENDS: [char; 14] = [
    '"', '\'', '`', '<', '>', '|', '\\', ')', ']', '}', ',', ';', '{', '$',
];

/// The number of URLs within a URL that are looked up. Without a limit, a text that repeats
/// `http://` would take quadratic time.
const MAX_WITHIN: usize = 8;

/// Finds every URL of `text` that concerns a locked file. The URL of another version of a locked
/// file is reported as missing, and so is a URL at the site's file server that no locked file has.
/// In a URL with placeholders, the variables that the text assigns are filled in. If they have
/// several values, the URL is locked if it is locked with each; if values are not known, a URL that
/// may become a locked one is undecided, and so is a folder of locked files. All other URLs are
/// considered links.
pub(super) fn findings(
    text: &str,
    lines: &LineIndex<'_>,
    inventory: &Inventory<'_>,
) -> Vec<AuditFinding> {
    if inventory.urls.is_empty() {
        return Vec::new();
    }
    let joined = JoinedText::of(text);
    let text = joined.as_ref().map_or(text, JoinedText::text);
    let variables = ShellVariables::of(text);
    let max_bytes = Limits::default().reference_bytes;
    let starts = text.match_indices("://").filter_map(|(at, _)| {
        ["https", "http"]
            .iter()
            .find(|scheme| text[..at].ends_with(*scheme))
            .map(|scheme| at - scheme.len())
    });
    // the end of the last URL that is not within another one, and the number of URLs within it
    let (mut covered, mut within) = (0, 0);
    let finding = |start: usize| {
        within = if start < covered { within + 1 } else { 0 };
        if within > MAX_WITHIN {
            return None;
        }
        let end = text[start..].find(|c: char| c.is_whitespace() || ENDS.contains(&c));
        let end = end.map_or(text.len(), |end| start + end);
        let is_head = text[end..].starts_with("${")
            || text[end..].starts_with("$(")
            || text[end..].starts_with("{{")
            || text[end..]
                .strip_prefix('$')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
        let pattern = url_at(text, &(start..text.len()), max_bytes).filter(|_| is_head);
        let whole_end = pattern.as_ref().map_or(end, |url| url.end);
        covered = covered.max(end).max(whole_end);
        let (written, coverage) = match pattern.filter(|url| !url.pattern.rest.is_empty()) {
            Some(url) => {
                let written = &text[start..url.end];
                let is_variable = is_assigned(text, start);
                let coverage = match variables.filled(written) {
                    Some(value) => whole(&value, is_variable, inventory)?,
                    None => match held_by_all(&variables, written, inventory) {
                        Some(held) => held,
                        None => open_url(&url, inventory)?,
                    },
                };
                (written, coverage)
            }
            // a dot or colon at the end of a complete URL is punctuation of the sentence
            None => {
                let written = text[start..end].trim_end_matches(['.', ':']);
                let is_variable = is_assigned(text, start);
                (written, whole(written, is_variable, inventory)?)
            }
        };
        let at = joined.as_ref().map_or(start, |joined| joined.offset(start));
        let (line, column) = lines.line_column(at);
        Some(AuditFinding::new(
            (line, column),
            redact_urls(written),
            coverage,
        ))
    };
    starts.filter_map(finding).collect()
}

/// Finds the URLs to which a `values.schema.json` refers. helm requests them, so behind the gap it
/// fails unless it does not validate.
pub(super) fn schema_findings(text: &str, inventory: &Inventory<'_>) -> Vec<AuditFinding> {
    let lines = LineIndex::new(text);
    let urls = schema_urls(text);
    // found together: a search for each of many URLs would take quadratic time
    let mut starts: HashMap<&str, usize> = HashMap::new();
    let mut start = 0;
    for string in text.split('"') {
        let url = string.split('#').next().unwrap_or_default();
        if urls.contains(url) {
            starts.entry(url).or_insert(start);
        }
        start += string.len() + 1;
    }
    let findings = urls.into_iter().map(|url| {
        // a relative reference, or one in other letters, is not in the text
        let start = starts.get(&*url);
        let (line, column) = start.map_or((1, 1), |at| lines.line_column(*at));
        let coverage = match inventory.urls.item(&url) {
            Some(item) => LockCoverage::Held {
                item: item.to_owned(),
            },
            None => LockCoverage::missing_url(
                &url,
                "helm requests this schema when it validates values; without access to it, use \
                 `helm --skip-schema-validation`"
                    .into(),
            ),
        };
        AuditFinding::new((line, column), redact_urls(&url), coverage)
    });
    findings.collect()
}

/// The coverage of a complete URL. `None` if it is considered a link. If it is the value of a
/// variable, it may be the beginning of locked URLs.
pub(super) fn whole(
    url: &str,
    is_variable: bool,
    inventory: &Inventory<'_>,
) -> Option<LockCoverage> {
    let known = &inventory.urls;
    let upstream = inventory.file_at_site(url);
    let at_upstream = upstream.as_deref().unwrap_or(url);
    let item = if upstream.is_some() {
        // paths of the file server do not contain the scheme
        known.item_at_location(at_upstream)
    } else {
        known.item(at_upstream)
    };
    if let Some(item) = item {
        return Some(LockCoverage::Held {
            item: item.to_owned(),
        });
    }
    // a host alone is not a folder
    let path = at_upstream.split('/').nth(3).unwrap_or_default();
    let is_folder = is_variable || (at_upstream.ends_with('/') && !path.is_empty());
    let folder = inventory.index().folder_of(url).filter(|_| is_folder);
    if let Some(why) = folder {
        return Some(LockCoverage::Undecided { why: why.into() });
    }
    let why = match (known.similar(at_upstream), upstream.is_some()) {
        (Some(similar), _) => format!("the lock has {similar}"),
        (None, true) => "no locked file has this URL at the file server".into(),
        (None, false) => return None,
    };
    Some(LockCoverage::missing_url(at_upstream, why))
}

/// The coverage of a URL whose variables have several values, if all URLs that it can become are
/// locked.
fn held_by_all(
    variables: &ShellVariables<'_>,
    written: &str,
    inventory: &Inventory<'_>,
) -> Option<LockCoverage> {
    let urls = variables.expansions(written)?;
    let mut held = urls
        .iter()
        .map(|url| whole(url, false, inventory))
        .collect::<Option<Vec<_>>>()?;
    let is_held = |coverage: &LockCoverage| matches!(coverage, LockCoverage::Held { .. });
    held.iter().all(is_held).then(|| held.pop())?
}

/// The coverage of a URL with placeholders that are not filled in.
fn open_url(url: &UrlWord<'_>, inventory: &Inventory<'_>) -> Option<LockCoverage> {
    let why = match inventory.index().reached_urls(&url.pattern)? {
        Ok(reached) => {
            let more = match reached.len() {
                1 => String::new(),
                count => format!(", or {}", count_of(count - 1, "other locked URL")),
            };
            let first = reached.first()?;
            format!("this file does not set all of its variables; it can become {first}{more}")
        }
        Err(why) => why.into(),
    };
    Some(LockCoverage::Undecided { why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_item::lockfile::Lock;
    use landfall_model::Digest;
    use landfall_model::document::growth::assert_linear;

    /// A lock with one file.
    fn lock() -> Lock {
        let digest = Digest::sha256(b"x");
        let file = format!("{{name: 'https://dl.example.com/f/x', digest: {digest}, size: 1}}");
        Lock::parse("l", &format!("version: 1\nfiles:\n- {file}\n")).unwrap()
    }

    #[test]
    fn urls_within_a_url_are_found_in_linear_time() {
        let lock = lock();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let found = |text: &str| findings(text, &LineIndex::new(text), &inventory);
        let text = "curl https://proxy.example.com/https://dl.example.com/f/x\n";
        let found_in_proxy = found(text);
        assert_eq!(found_in_proxy.len(), 1);
        assert_eq!(found_in_proxy[0].column, 32);
        for one in ["https://", "https://a/$B/"] {
            assert_linear(2_000, |count| drop(found(&one.repeat(count))));
        }
    }

    #[test]
    fn the_urls_of_a_schema_are_found_in_linear_time() {
        let lock = lock();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let found = |text: &str| schema_findings(text, &inventory);
        let text = "{\"title\": \"of https://a.test/x\",\n\
                    \"$ref\": \"https://a.test/x#/y\", \"$schema\": \"https://A.test\"}";
        let found_at: Vec<_> = found(text)
            .into_iter()
            .map(|one| (one.reference, one.line, one.column))
            .collect();
        // the URL in other letters is not in the text
        let expected = [("https://a.test/", 1, 1), ("https://a.test/x", 2, 10)];
        assert_eq!(
            found_at,
            expected.map(|(url, line, column)| (url.to_owned(), line, column))
        );
        assert_linear(2_000, |count| {
            let references = (0..count).map(|at| format!("{{\"$ref\": \"https://{at}.test/x\"}}"));
            let references: Vec<_> = references.collect();
            drop(found(&format!("{{\"allOf\": [{}]}}", references.join(","))));
        });
    }

    #[test]
    fn a_url_over_several_lines_is_found() {
        let lock = lock();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let text = "a: 1\nurl: \"https://dl.example.com/\\\n  f/x\"\n";
        let found = findings(text, &LineIndex::new(text), &inventory);
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.line, one.column, &*one.reference, &one.coverage))
            .collect();
        let item = "https://dl.example.com/f/x".to_owned();
        let held = LockCoverage::Held { item };
        assert_eq!(found, [(2, 7, "https://dl.example.com/f/x", &held)]);
    }
}
