//! Writes and parses the text of the lock: sorted, with short lines, so that diffs are small.

use super::document::Lock;
use crate::lock_yaml::write_line;
use crate::quoted;
use landfall_model::document::yaml;
use serde::Serialize;
use std::cmp::Ordering;
use std::fmt::{self, Write};

/// The first lines of every lock.
const HEAD: &str = "# landfall.lock, written by `landfall lock`\nversion: 1\n";

/// The last line of every lock: YAML's end-of-document marker. A lock without it is truncated.
const END: &str = "...\n";

/// How much text is parsed at once, in bytes. The YAML parser needs ten times as much memory.
const PIECE: usize = 16 << 10;

/// The maximum length of the line before the first item of a section, in bytes. It is parsed again
/// with each piece of the section. The longest that landfall writes is `unresolved:`.
const MAX_TITLE: usize = 64;

/// Writes the lock. Equal locks give equal text.
pub(super) fn write(lock: &Lock, out: &mut dyn Write) -> fmt::Result {
    out.write_str(HEAD)?;
    if let Some(name) = &lock.name {
        writeln!(out, "name: {}", quoted(name))?;
    }
    lock.write_sections(out)?;
    section(out, "endpoints", sorted(&lock.endpoints, Ord::cmp))?;
    let missing = sorted(&lock.missing, |a, b| {
        (a.kind, &a.name).cmp(&(b.kind, &b.name))
    });
    section(out, "missing", missing)?;
    let unresolved = sorted(&lock.unresolved, |a, b| {
        (a.kind, &a.name).cmp(&(b.kind, &b.name))
    });
    section(out, "unresolved", unresolved)?;
    out.write_str(END)
}

/// Whether `text` begins like a lock but lacks the last line.
pub(super) fn is_truncated(text: &str) -> bool {
    let first = HEAD.lines().next().unwrap_or_default();
    text.starts_with(first) && text.trim_end().lines().next_back() != Some(END.trim_end())
}

/// Parses a lock that has exactly the form of [`write()`], a few items at a time to save memory.
/// Returns `None` for any other text, valid or not.
pub(super) fn read(text: &str) -> Option<Lock> {
    let mut lock = Lock {
        version: 1,
        ..Lock::default()
    };
    let mut title = "";
    let mut rest = text.strip_prefix(HEAD)?.strip_suffix(END)?;
    while !rest.is_empty() {
        // a section continues unless the next line is a key at the left margin
        if !rest.starts_with("- ") {
            (title, rest) = rest.split_once('\n')?;
        }
        let items: &str;
        (items, rest) = rest.split_at(few_items(rest));
        if !items.is_empty() && title.len() > MAX_TITLE {
            return None;
        }
        let part: Lock = yaml::from_str(&format!("version: 1\n{title}\n{items}")).ok()?;
        lock.append(part);
    }
    lock.shrink();
    // The pieces were parsed one by one, so a repeated section or key would go unnoticed. Comparing
    // `text` with the lock written again finds every repetition.
    let mut expected = ExpectedText(text);
    (write(&lock, &mut expected).is_ok() && expected.0.is_empty()).then_some(lock)
}

/// The length of the first few items of a section, about `PIECE` bytes.
fn few_items(text: &str) -> usize {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let is_item = line.starts_with("- ");
        if !is_item && !line.starts_with(' ') || is_item && end >= PIECE {
            break;
        }
        end += line.len();
    }
    end
}

/// A writer that fails unless exactly the expected text is written.
struct ExpectedText<'a>(&'a str);

impl Write for ExpectedText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(text).ok_or(fmt::Error)?;
        Ok(())
    }
}

/// `items` in the order `order`.
fn sorted<T>(items: &[T], order: impl Fn(&T, &T) -> Ordering) -> Vec<&T> {
    let mut items: Vec<&T> = items.iter().collect();
    items.sort_by(|a, b| order(a, b));
    items
}

/// Writes the section `title`, unless it has no items.
fn section<T: Serialize>(out: &mut dyn Write, title: &str, items: Vec<&T>) -> fmt::Result {
    if !items.is_empty() {
        writeln!(out, "{title}:")?;
    }
    items.into_iter().try_for_each(|item| write_line(item, out))
}
