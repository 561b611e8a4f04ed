//! Every image and mirrored URL that a text names: held by a lock, missing from it, or undecided.
//!
//! Rewriting looks for what the lock knows; an audit must also see what it does not. So it reads values
//! where images are named (`positions`), lines where a document is a template (`lines`), and URLs
//! anywhere (`urls`).

mod helm;
mod inventory;
mod lines;
mod positions;
mod tree;
mod urls;

pub use helm::Helm;
pub use inventory::Inventory;
pub use tree::{Audited, Unread, audit_text, audit_tree, discover, in_chart};

use super::scan::{Kind, scan};
use super::{Meaning, Position, yaml};
use crate::model::{ImageRef, Limits, names_host};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// What a text names at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Line, from 1.
    pub line: usize,
    /// Column, in characters from 1.
    pub column: usize,
    /// The keys that lead there, `[n]` for items of lists. Empty where the text is no document.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "serialize_path")]
    pub path: Vec<String>,
    /// The reference or URL as written; the parts of a split one put together.
    pub reference: String,
    /// What the lock says to it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// A [`Finding`] with the file that it is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// The file; of an archive, its path and the path inside.
    pub file: String,
    /// What was found there.
    #[serde(flatten)]
    pub finding: Finding,
}

/// A path of keys as `helm --set` takes it.
pub fn dotted(path: &[String]) -> String {
    path.iter().enumerate().fold(String::new(), |out, (at, key)| {
        let item = key.starts_with('[') && key.ends_with(']');
        let dot = if at == 0 || item { "" } else { "." };
        out + dot + &key.replace('.', "\\.")
    })
}

fn serialize_path<S: serde::Serializer>(path: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&dotted(path))
}

/// What a lock says to a reference or URL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Verdict {
    /// It is this locked item.
    Held {
        /// Its name in the lock.
        item: String,
    },
    /// It is not in the lock.
    Missing {
        /// The image that would have to be carried, with its own host; `None` for a URL, and where the site's
        /// name for it could stand for anything.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<ImageRef>,
        /// The file that would have to be carried.
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// Why.
        why: String,
    },
    /// It could not be decided whether it names something, or what.
    Undecided {
        /// Why.
        why: String,
    },
}

/// Line and column, both from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    line: usize,
    column: usize,
}

/// The lines of a text, to find places by offset.
struct Lines<'t> {
    text: &'t str,
    /// The first byte of each.
    starts: Vec<usize>,
}

impl Lines<'_> {
    fn new(text: &str) -> Lines<'_> {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        Lines { text, starts: std::iter::once(0).chain(starts).collect() }
    }

    fn place(&self, at: usize) -> Place {
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let before = self.text.get(start..at).unwrap_or_default().trim_start_matches('\u{feff}');
        Place { line, column: before.chars().count() + 1 }
    }
}

/// A value that names an image, or may.
#[derive(Debug)]
struct Mention {
    place: Place,
    path: Vec<String>,
    written: String,
    /// It is an image beyond doubt: by where it stands, or by how it looks.
    sure: bool,
    /// Without a tag it means `latest`.
    in_container: bool,
    /// Why it is not to be looked up.
    why_not: Option<String>,
}

/// What stands in place of a value that is made elsewhere.
const PLACEHOLDERS: [&str; 5] = ["{{", "${", "$(", "__", "<<"];

impl Mention {
    /// `None` where the value is surely no image.
    fn new(
        place: Place,
        path: Vec<String>,
        written: &str,
        sure: bool,
        in_container: bool,
    ) -> Option<Mention> {
        let mention = |sure, why_not: Option<&str>| {
            let (written, why_not) = (written.to_owned(), why_not.map(str::to_owned));
            Some(Mention { place, path, written, sure, in_container, why_not })
        };
        if PLACEHOLDERS.iter().any(|mark| written.contains(mark)) || written.starts_with('$') {
            return mention(sure, Some("it is made of a placeholder; audit what comes out of it"));
        }
        match written.parse::<ImageRef>() {
            Ok(reference) => mention(sure || reference.is_pinned() || names_host(written), None),
            Err(error) if sure => mention(true, Some(&error.to_string())),
            Err(_) => None,
        }
    }

    fn decide(self, inventory: &Inventory<'_>) -> Finding {
        let verdict = match (self.why_not, self.written.parse::<ImageRef>()) {
            (Some(why), _) => Verdict::Undecided { why },
            (None, Err(error)) => Verdict::Undecided { why: error.to_string() },
            (None, Ok(reference)) => match inventory.decide(&reference, self.in_container) {
                Verdict::Missing { .. } if !self.sure => Verdict::Undecided {
                    why: "it has neither a host nor a tag, so it may be any word".into(),
                },
                verdict => verdict,
            },
        };
        let Place { line, column } = self.place;
        Finding { line, column, path: self.path, reference: self.written, verdict }
    }
}

/// Everything that `text` names, in its order. `name` is the file's: it says how it is read.
pub fn audit(name: &Path, text: &str, inventory: &Inventory<'_>) -> Vec<Finding> {
    let places = Lines::new(text);
    let depth = Limits::default().embedded_depth;
    let mentions = match lines::is_dockerfile(name) {
        true => lines::dockerfile(text),
        false => match lines::list(text) {
            Some(list) => list,
            None if Kind::of(name) == Kind::Text => lines::template(text),
            None => match yaml::documents(text).collect::<Result<Vec<_>, _>>() {
                Ok(documents) => positions::mentions(&documents, &places, inventory, depth),
                Err(_) => lines::template(text),
            },
        },
    };
    let mut found: Vec<Finding> = mentions.into_iter().map(|mention| mention.decide(inventory)).collect();
    found.extend(urls::urls(text, &places, inventory));
    let places: BTreeSet<_> = found.iter().map(|one| (one.line, one.column)).collect();
    let written: BTreeSet<_> = found.iter().map(|one| (one.line, one.reference.clone())).collect();
    let scanned = scan(text, Kind::of(name), inventory.known()).found;
    let rest = scanned.into_iter().filter(|one| {
        !places.contains(&(one.line, one.column)) && !written.contains(&(one.line, one.written.clone()))
    });
    found.extend(rest.filter_map(|one| of_scan(one, inventory)));
    found.sort_by_key(|finding| (finding.line, finding.column));
    found
}

/// What a scan found where no image is looked for: what the lock has to do with, and whatever is encoded.
fn of_scan(scanned: super::Finding, inventory: &Inventory<'_>) -> Option<Finding> {
    let super::Finding { line, column, inside, written, position, meaning, .. } = scanned;
    let reference = written.parse::<ImageRef>().ok();
    let decided = || Some(inventory.decide(reference.as_ref()?, position == Position::Container));
    let verdict = match meaning {
        // URLs are looked for in all of the text; a prefix is none of the items
        _ if matches!(position, Position::Url) && inside.is_none() => return None,
        Meaning::Known { item, .. } | Meaning::Settled { item: Some(item) } => Verdict::Held { item },
        Meaning::Settled { item: None } => decided()?,
        Meaning::Left { why } => decided().unwrap_or(Verdict::Undecided { why }),
        Meaning::Unknown if inside.is_some() && position.is_image() => decided()?,
        Meaning::Unknown | Meaning::Undecided { .. } => return None,
    };
    let reference = inside.map_or(written.clone(), |inside| format!("{written} ({inside})"));
    Some(Finding { line, column, path: Vec::new(), reference, verdict })
}
