//! Writes and parses the text of the lock: sorted, one value on each line, so that diffs are small.

use super::document::Lock;
use crate::quoted;
use landfall_model::document::yaml;
use std::cmp::Ordering;
use std::fmt::{self, Write};

/// The first lines of every lock.
const HEAD: &str = "# landfall.lock, written by `landfall lock`\nversion: 1\n";

/// The last line of every lock: YAML's end-of-document marker. A lock without it was cut off.
const END: &str = "...\n";

/// How much text is parsed at once, in bytes. The YAML parser needs ten times as much memory.
const PIECE: usize = 16 << 10;

/// Writes the lock. Equal locks give equal text.
pub(super) fn write(lock: &Lock, out: &mut dyn Write) -> fmt::Result {
    out.write_str(HEAD)?;
    if let Some(name) = &lock.name {
        writeln!(out, "name: {}", quoted(name))?;
    }
    lock.write_sections(out)?;
    section(
        out,
        "endpoints",
        sorted(&lock.endpoints, Ord::cmp),
        |out, end| {
            let (host, why) = (quoted(&end.host), quoted(&end.why));
            write!(out, "- {{host: {host}, port: {}, why: {why}", end.port)?;
            if !end.from.is_empty() {
                let from: Vec<_> = end.from.iter().map(|role| quoted(role)).collect();
                write!(out, ", from: [{}]", from.join(", "))?;
            }
            out.write_str("}\n")
        },
    )?;
    let missing = sorted(&lock.missing, |a, b| {
        (a.kind, &a.name).cmp(&(b.kind, &b.name))
    });
    section(out, "missing", missing, |out, lost| {
        let (name, reason, until) = (
            quoted(&lost.name),
            quoted(&lost.reason),
            quoted(&lost.until),
        );
        writeln!(
            out,
            "- {{kind: {}, name: {name}, reason: {reason}, until: {until}}}",
            lost.kind
        )
    })?;
    let unresolved = sorted(&lock.unresolved, |a, b| {
        (a.kind, &a.name).cmp(&(b.kind, &b.name))
    });
    section(out, "unresolved", unresolved, |out, item| {
        let (name, cause) = (quoted(&item.name), quoted(&item.cause));
        writeln!(
            out,
            "- {{kind: {}, name: {name}, cause: {cause}}}",
            item.kind
        )
    })?;
    out.write_str(END)
}

/// Whether `text` begins like a lock but lacks the last line.
pub(super) fn is_cut(text: &str) -> bool {
    let first = HEAD.lines().next().unwrap_or_default();
    text.starts_with(first) && text.trim_end().lines().next_back() != Some(END.trim_end())
}

/// Parses a lock exactly as [`write()`] writes it, a few items at a time to save memory. Returns
/// `None` for any other text, valid or not.
pub(super) fn read(text: &str) -> Option<Lock> {
    let mut lock = Lock {
        version: 1,
        ..Lock::default()
    };
    let (mut title, mut rest) = ("", text.strip_prefix(HEAD)?.strip_suffix(END)?);
    while !rest.is_empty() {
        if !rest.starts_with("- ") {
            (title, rest) = rest.split_once('\n')?;
        }
        let few: &str;
        (few, rest) = rest.split_at(few_items(rest));
        let part: Lock = yaml::from_str(&format!("version: 1\n{title}\n{few}")).ok()?;
        lock.append(part);
    }
    lock.shrink();
    let mut same = ExpectedText(text);
    (write(&lock, &mut same).is_ok() && same.0.is_empty()).then_some(lock)
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

fn sorted<T>(items: &[T], order: impl Fn(&T, &T) -> Ordering) -> Vec<&T> {
    let mut items: Vec<&T> = items.iter().collect();
    items.sort_by(|a, b| order(a, b));
    items
}

fn section<T>(
    out: &mut dyn Write,
    title: &str,
    items: Vec<&T>,
    write: impl Fn(&mut dyn Write, &T) -> fmt::Result,
) -> fmt::Result {
    if !items.is_empty() {
        writeln!(out, "{title}:")?;
    }
    items.into_iter().try_for_each(|item| write(out, item))
}
