//! Walks over the documents of a text and asks each shape of reference what it sees.

use super::collector::{Collected, Collector};
use super::proof::reads_as_meant;
use super::shape::Shape;
use super::surroundings::{Members, Surroundings};
use crate::edit::Edit;
use crate::index::Lookup;
use crate::notation::replaced;
use crate::occurrence::{Meaning, Occurrence};
use crate::role::Role;
use crate::scan_result::{ReadAs, ScanResult};
use crate::scanner::Scanner;
use crate::text::{self, Lines};
use crate::yaml::{self, Entry, Node, Scalar};
use granit_parser::ScalarStyle;
use std::ops::Range;

type Shapes = [&'static dyn Shape];

/// The walk over one document.
struct Walker<'e, 's> {
    scanner: &'e Scanner<'e>,
    shapes: &'e Shapes,
    /// In how many texts this one is nested.
    depth: usize,
    collector: Collector<'e, 's>,
}

/// Every reference in `source`, which is nested in `depth` other texts; `None` where it is not YAML
/// with a mapping or list in it. Parts of it that contain nothing to report are not read.
pub(crate) fn read(
    scanner: &Scanner<'_>,
    shapes: &Shapes,
    source: &str,
    depth: usize,
) -> Option<ScanResult> {
    let mut result = ScanResult {
        found: Vec::new(),
        read_as: ReadAs::Yaml,
        secrets: Vec::new(),
    };
    let parts = yaml::parts(source);
    let (mut structured, mut skipped) = (false, Vec::new());
    for part in &parts {
        let text = &source[part.clone()];
        // escapes may hide any word
        if parts.len() > 1 && !scanner.settings.may_report(text) && !text.contains('\\') {
            skipped.push(part);
            continue;
        }
        structured |= read_part(scanner, shapes, source, part, depth, &mut result)?;
    }
    for document in skipped
        .into_iter()
        .flat_map(|part| yaml::documents_in(source, part.clone()))
    {
        if structured {
            break;
        }
        structured = document.ok()?.is_structured();
    }
    structured.then_some(result)
}

/// Adds everything in a part of `source`. Returns whether there is a mapping or list in it.
fn read_part(
    scanner: &Scanner<'_>,
    shapes: &Shapes,
    source: &str,
    part: &Range<usize>,
    depth: usize,
    result: &mut ScanResult,
) -> Option<bool> {
    let mut structured = false;
    let mut collected = Collected::default();
    for document in yaml::documents_in(source, part.clone()) {
        let document = document.ok()?;
        structured |= document.is_structured();
        let Some(root) = &document.root else { continue };
        if shapes.iter().any(|shape| shape.skips(root)) {
            continue;
        }
        let settings = &scanner.settings;
        let collector = Collector {
            settings,
            document: &document,
            source,
            collected: &mut collected,
        };
        Walker {
            scanner,
            shapes,
            depth,
            collector,
        }
        .node(root, Surroundings::default());
    }
    let Collected {
        mut found,
        mut secrets,
        has_secret,
        has_shared_secret,
        changed,
    } = collected;
    if has_shared_secret {
        secrets.push(part.clone());
    } else if has_secret {
        secrets.extend(yaml::comments(source, part).unwrap_or_else(|| vec![part.clone()]));
    }
    if scanner.settings.options.comments {
        for span in yaml::comments(source, part).unwrap_or_default() {
            let words = text::scan(
                &scanner.settings,
                &source[span.clone()],
                Lines::One,
                Role::Text,
            );
            found.extend(
                words
                    .into_iter()
                    .map(|occurrence| occurrence.shifted(span.start)),
            );
        }
    }
    // reading the part once more takes longer than reading it did
    let doubtful = found
        .iter()
        .flat_map(|occurrence| &occurrence.edits)
        .any(|edit| !edit.is_literal(source));
    if doubtful && !reads_as_meant(source, part, &found, &changed) {
        let changes = found.iter_mut().filter(|occurrence| occurrence.is_change());
        changes.for_each(|occurrence| {
            occurrence.leave("with it, the text around it would read differently")
        });
    }
    result.found.extend(found);
    result.secrets.extend(secrets);
    Some(structured)
}

impl<'s> Walker<'_, 's> {
    fn node(&mut self, node: &'s Node<'s>, around: Surroundings<'s>) {
        match node {
            Node::Scalar(scalar) => self.scalar(scalar, around),
            // it follows its anchor
            Node::Alias(..) => self.collector.collected.has_shared_secret |= around.secret,
            Node::Sequence(items, _) => {
                let mut below = around.below(None);
                self.shapes
                    .iter()
                    .for_each(|shape| shape.items(&around, &mut below));
                items.iter().for_each(|item| self.node(item, below));
            }
            Node::Mapping(entries, _) => self.mapping(entries, around),
        }
    }

    fn mapping(&mut self, entries: &'s [Entry<'s>], around: Surroundings<'s>) {
        let kind =
            yaml::member(entries, "kind").and_then(|kind| self.collector.document.text(kind));
        let mut members = Members {
            entries,
            kind: kind.unwrap_or_default(),
            around,
        };
        self.collector.collected.has_secret |=
            self.shapes.iter().any(|shape| shape.is_secret(&members));
        if around.keep.is_none() {
            members.around.keep = self.shapes.iter().find_map(|shape| shape.keeps(&members));
        }
        let mut taken = Vec::new();
        if members.around.keep.is_none() {
            for shape in self.shapes {
                let more = shape.references(&mut self.collector, &members, &taken);
                taken.extend(more);
            }
        }
        taken.sort_unstable();
        for (at, (key, value)) in entries.iter().enumerate() {
            match key.scalar() {
                Some(key) => self.key(key),
                None if self.call(key, &members.around) => {}
                None => {
                    let container = around.container;
                    self.node(
                        key,
                        Surroundings {
                            container,
                            ..members.around.below(None)
                        },
                    );
                }
            }
            if taken.binary_search(&at).is_ok() {
                // it is read already, but not masked
                self.collector.collected.secrets.extend(
                    value
                        .scalar()
                        .filter(|_| around.secret)
                        .map(|value| value.span.clone()),
                );
                continue;
            }
            let mut below = members.around.below(key.scalar().map(|key| &*key.value));
            self.shapes
                .iter()
                .for_each(|shape| shape.entry(&members, value, &mut below));
            self.node(value, below);
        }
    }

    /// A scalar that may be a reference as a whole, or hold some.
    fn scalar(&mut self, scalar: &'s Scalar<'s>, around: Surroundings<'s>) {
        if around.secret {
            self.collector.collected.secrets.push(scalar.span.clone());
        }
        let settings = &self.scanner.settings;
        let (value, role) = (&*scalar.value, around.role);
        let trimmed = value.trim();
        let at = value.len() - value.trim_start().len();
        let occurrence = |meaning| Occurrence::new(at, trimmed, role, meaning);
        let lookup = match around.encoded {
            true => Lookup::Unknown,
            false => settings.index.lookup(trimmed, role, settings.options.pin),
        };
        let found = match lookup {
            Lookup::Unknown => match self.inside(scalar, around) {
                found if found.is_empty() && settings.report_unknown && role.is_image() => {
                    Meaning::of_unknown(trimmed)
                        .into_iter()
                        .map(occurrence)
                        .collect()
                }
                found => found,
            },
            Lookup::Settled(item) => vec![occurrence(Meaning::Settled { item })],
            Lookup::Left(why) => vec![occurrence(Meaning::Left { why })],
            Lookup::Known(replacement) => {
                let to = replaced(trimmed, &replacement);
                let edits = vec![Edit {
                    span: at..at + trimmed.len(),
                    bytes: to.clone(),
                }];
                let meaning = Meaning::Known {
                    item: replacement.item,
                    to,
                    reaches: vec![],
                };
                vec![Occurrence {
                    edits,
                    ..occurrence(meaning)
                }]
            }
        };
        self.collector.add_in_value(scalar, found, around.keep);
    }

    /// The references inside a value that is not a reference as a whole.
    fn inside(&mut self, scalar: &'s Scalar<'s>, around: Surroundings<'s>) -> Vec<Occurrence> {
        let value = &*scalar.value;
        let encoded = around.encoded || scalar.is_binary();
        if scalar.style == ScalarStyle::Plain
            && !encoded
            && !value.bytes().any(|byte| b" =:\"'/{".contains(&byte))
        {
            return Vec::new();
        }
        let decode = |shape: &&dyn Shape| shape.decode(self.scanner, value, encoded, self.depth);
        let block = matches!(scalar.style, ScalarStyle::Literal | ScalarStyle::Folded);
        let decoded = self.shapes.iter().find_map(decode);
        let is_decoded = decoded.is_some();
        let inner = decoded.unwrap_or_else(|| {
            self.scanner
                .scan_value(value, block, around.role, self.depth + 1)
        });
        if !inner.secrets.is_empty() && !around.secret {
            self.collector.collected.secrets.push(scalar.span.clone());
        }
        let mut found = inner.found;
        // words in the value of an image key have its role
        if !is_decoded && inner.read_as == ReadAs::Text && around.role.is_image() {
            found
                .iter_mut()
                .for_each(|occurrence| occurrence.role = around.role);
        }
        found
    }

    /// Reads `{{ call "a/b:1" }}` word by word: to YAML, a call of a template is a mapping that is
    /// the key of a mapping. Returns `false` for any other key.
    fn call(&mut self, key: &Node<'_>, around: &Surroundings<'_>) -> bool {
        let source = self.collector.source;
        let Some(span) = call_span(source, key) else {
            return false;
        };
        if around.secret {
            self.collector.collected.secrets.push(span.clone());
        }
        let words = text::scan(
            &self.scanner.settings,
            &source[span.clone()],
            Lines::Many,
            around.role,
        );
        self.collector
            .collected
            .found
            .extend(words.into_iter().map(|mut occurrence| {
                if let Some(why) = around.keep.filter(|_| occurrence.is_change()) {
                    occurrence.leave(why);
                }
                occurrence.shifted(span.start)
            }));
        true
    }

    /// A key is never changed: others may ask for it by its name.
    fn key(&mut self, key: &'s Scalar<'s>) {
        if let Lookup::Known(_) = self
            .scanner
            .settings
            .index
            .lookup(&key.value, Role::Value, false)
        {
            let meaning = Meaning::left("it is the key of a mapping");
            let occurrence = Occurrence::new(key.span.start, &*key.value, Role::Value, meaning);
            self.collector.collected.found.push(occurrence);
        }
    }
}

/// Where the call of a template stands that YAML reads as the key `key`, if it is one.
fn call_span(source: &str, key: &Node<'_>) -> Option<Range<usize>> {
    let Node::Mapping(entries, _) = key else {
        return None;
    };
    let mut words = entries.iter().filter_map(|(key, _)| key.scalar());
    let first = words.next()?;
    let last = words.next_back().unwrap_or(first);
    let start = source[..first.span.start]
        .trim_end()
        .strip_suffix("{{")?
        .len();
    let end = last.span.end + source[last.span.end..].find("}}")?;
    Some(start..end)
}
