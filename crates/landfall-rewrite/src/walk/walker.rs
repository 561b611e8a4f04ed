//! Walks over the documents of a text, and calls each shape of reference at every node.

use super::collector::{CollectedOccurrences, OccurrenceCollector};
use super::node_context::{MappingContext, NodeContext};
use super::proof::reads_as_intended;
use super::shape::ReferenceShape;
use crate::edit::SpanEdit;
use crate::index::ReferenceLookup;
use crate::notation::replaced;
use crate::occurrence::{Occurrence, ReferenceMeaning};
use crate::role::ReferenceRole;
use crate::scan_result::{ReadAs, ScanResult};
use crate::scanner::ReferenceScanner;
use crate::text::{self, TextLines};
use crate::yaml::{self, ScalarStyle, YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence};
use std::ops::Range;

type ShapeTable = [&'static dyn ReferenceShape];

/// The walk over one document.
struct DocumentWalker<'e, 's> {
    scanner: &'e ReferenceScanner<'e>,
    shapes: &'e ShapeTable,
    /// The number of texts in which the document is nested.
    depth: usize,
    collector: OccurrenceCollector<'e, 's>,
}

/// Finds every reference in `source`, which is nested in `depth` other texts. `None` if `source` is
/// not YAML, or has no mapping or list. Parts that contain nothing to report are not read.
pub(crate) fn read(
    scanner: &ReferenceScanner<'_>,
    shapes: &ShapeTable,
    source: &str,
    depth: usize,
) -> Option<ScanResult> {
    let mut result = ScanResult {
        found: Vec::new(),
        read_as: ReadAs::Yaml,
        secrets: Vec::new(),
    };
    let parts = yaml::stream_parts(source);
    let mut structured = false;
    let mut skipped = Vec::new();
    for part in &parts {
        let text = &source[part.clone()];
        // a text with a single part was already searched by the scanner; a part with a backslash is
        // always read, because an escape may hide a word of the lock: `\u0071uay.io`
        if parts.len() > 1 && !scanner.settings.may_report(text) && !text.contains('\\') {
            skipped.push(part);
            continue;
        }
        structured |= read_part(scanner, shapes, source, part, depth, &mut result)?;
    }
    // a text without any mapping or list is read word by word; a mapping or list in a skipped part
    // counts, too
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

/// Adds the findings in a part of `source` to `result`. Returns whether the part has a mapping or
/// list; `None` if the part is not YAML.
fn read_part(
    scanner: &ReferenceScanner<'_>,
    shapes: &ShapeTable,
    source: &str,
    part: &Range<usize>,
    depth: usize,
    result: &mut ScanResult,
) -> Option<bool> {
    let mut structured = false;
    let mut collected = CollectedOccurrences::default();
    for document in yaml::documents_in(source, part.clone()) {
        let document = document.ok()?;
        structured |= document.is_structured();
        let Some(root) = &document.root else { continue };
        // landfall's own documents keep upstream names on purpose
        if shapes.iter().any(|shape| shape.skips(root)) {
            continue;
        }
        let settings = &scanner.settings;
        let collector = OccurrenceCollector {
            settings,
            document: &document,
            source,
            collected: &mut collected,
        };
        DocumentWalker {
            scanner,
            shapes,
            depth,
            collector,
        }
        .node(root, NodeContext::default());
    }
    let CollectedOccurrences {
        mut found,
        mut secrets,
        has_secret,
        has_shared_secret,
        changed,
    } = collected;
    if has_shared_secret {
        // the alias may refer to any anchored node of the part, so all of it is masked
        secrets.push(part.clone());
    } else if has_secret {
        secrets.extend(yaml::comment_spans(source, part).unwrap_or_else(|| vec![part.clone()]));
    }
    if scanner.settings.options.comments {
        for span in yaml::comment_spans(source, part).unwrap_or_default() {
            let words = text::scan(
                &scanner.settings,
                &source[span.clone()],
                TextLines::One,
                ReferenceRole::Text,
            );
            found.extend(
                words
                    .into_iter()
                    .map(|occurrence| occurrence.shifted(span.start)),
            );
        }
    }
    // the check parses the part again with the slower parser, and most edits do not need it
    let doubtful = found
        .iter()
        .flat_map(|occurrence| &occurrence.edits)
        .any(|edit| !edit.is_literal(source));
    if doubtful && !reads_as_intended(source, part, &found, &changed) {
        let changes = found.iter_mut().filter(|occurrence| occurrence.is_change());
        changes.for_each(|occurrence| {
            occurrence.leave("the change would alter how the text around it is parsed")
        });
    }
    result.found.extend(found);
    result.secrets.extend(secrets);
    Some(structured)
}

impl<'s> DocumentWalker<'_, 's> {
    fn node(&mut self, node: &'s YamlNode<'s>, around: NodeContext<'s>) {
        match node {
            YamlNode::Scalar(scalar) => self.scalar(scalar, around),
            // the anchored node is changed instead
            YamlNode::Alias(_) => self.collector.collected.has_shared_secret |= around.secret,
            YamlNode::Sequence(YamlSequence { items, .. }) => {
                let mut child = around.child(None);
                self.shapes
                    .iter()
                    .for_each(|shape| shape.items(&around, &mut child));
                items.iter().for_each(|item| self.node(item, child));
            }
            YamlNode::Mapping(YamlMapping { entries, .. }) => self.mapping(entries, around),
        }
    }

    fn mapping(&mut self, entries: &'s [YamlEntry<'s>], around: NodeContext<'s>) {
        let mut members = MappingContext::new(entries, around, self.collector.document);
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
                // sorted for binary searches: a mapping may have a million entries
                taken.sort_unstable();
            }
        }
        for (at, YamlEntry { key, value }) in entries.iter().enumerate() {
            match key.scalar() {
                Some(key) => self.key(key),
                None if self.call(key, &members.around) => {}
                None => {
                    let container = around.container;
                    self.node(
                        key,
                        NodeContext {
                            container,
                            ..members.around.child(None)
                        },
                    );
                }
            }
            if taken.binary_search(&at).is_ok() {
                // a shape has read the value, but in a Secret it still has to be masked
                self.collector.collected.secrets.extend(
                    value
                        .scalar()
                        .filter(|_| around.secret)
                        .map(|value| value.span.clone()),
                );
                continue;
            }
            let mut child = members.around.child(key.scalar().map(|key| &*key.value));
            self.shapes
                .iter()
                .for_each(|shape| shape.entry(&members, value, &mut child));
            self.node(value, child);
        }
    }

    /// Reads a scalar, which may be a reference as a whole or contain references.
    fn scalar(&mut self, scalar: &'s YamlScalar<'s>, around: NodeContext<'s>) {
        if around.secret {
            self.collector.collected.secrets.push(scalar.span.clone());
        }
        let settings = &self.scanner.settings;
        let value = &*scalar.value;
        let role = around.role;
        let trimmed = value.trim();
        let at = value.len() - value.trim_start().len();
        let occurrence = |meaning| Occurrence::new(at, trimmed, role, meaning);
        let lookup = if around.encoded {
            ReferenceLookup::Unknown
        } else {
            settings.index.lookup(trimmed, role, settings.options.pin)
        };
        let found = match lookup {
            ReferenceLookup::Unknown => match self.inside(scalar, around) {
                found if found.is_empty() && settings.report_unknown && role.is_image() => {
                    ReferenceMeaning::of_unknown(trimmed)
                        .into_iter()
                        .map(occurrence)
                        .collect()
                }
                found => found,
            },
            ReferenceLookup::Settled(item) => vec![occurrence(ReferenceMeaning::Settled { item })],
            ReferenceLookup::Left(why) => vec![occurrence(ReferenceMeaning::Left { why })],
            ReferenceLookup::Known(replacement) => {
                let to = replaced(trimmed, &replacement);
                let edits = vec![SpanEdit {
                    span: at..at + trimmed.len(),
                    bytes: to.clone(),
                }];
                let meaning = ReferenceMeaning::Known {
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

    /// Finds the references inside a value that is not a reference as a whole.
    fn inside(&mut self, scalar: &'s YamlScalar<'s>, around: NodeContext<'s>) -> Vec<Occurrence> {
        let value = &*scalar.value;
        let encoded = around.encoded || scalar.is_binary();
        // most plain scalars are single words, in which there is no room for a further reference
        if scalar.style == ScalarStyle::Plain
            && !encoded
            && !value.bytes().any(|byte| b" =:\"'/{".contains(&byte))
        {
            return Vec::new();
        }
        let decode =
            |shape: &&dyn ReferenceShape| shape.decode(self.scanner, value, encoded, self.depth);
        let block = matches!(scalar.style, ScalarStyle::Literal | ScalarStyle::Folded);
        let decoded = self.shapes.iter().find_map(decode);
        let is_decoded = decoded.is_some();
        let inner = decoded.unwrap_or_else(|| {
            self.scanner
                .scan_value(value, block, around.role, self.depth + 1)
        });
        // a Secret within the value of a ConfigMap must be masked, too
        if !inner.secrets.is_empty() && !around.secret {
            self.collector.collected.secrets.push(scalar.span.clone());
        }
        let mut found = inner.found;
        // words in the value of an image key have the role of the value
        if !is_decoded && inner.read_as == ReadAs::Text && around.role.is_image() {
            found
                .iter_mut()
                .for_each(|occurrence| occurrence.role = around.role);
        }
        found
    }

    /// Reads the template call `{{ call "a/b:1" }}` word by word. In YAML, it is a mapping that is
    /// the key of a mapping. Returns `false` for any other key.
    fn call(&mut self, key: &YamlNode<'_>, around: &NodeContext<'_>) -> bool {
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
            TextLines::Many,
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

    /// Reports a key that is a known reference. It is never changed, because programs look up keys
    /// by name.
    fn key(&mut self, key: &'s YamlScalar<'s>) {
        if let ReferenceLookup::Known(_) =
            self.scanner
                .settings
                .index
                .lookup(&key.value, ReferenceRole::Value, false)
        {
            let meaning = ReferenceMeaning::left("it is the key of a mapping");
            let occurrence =
                Occurrence::new(key.span.start, &*key.value, ReferenceRole::Value, meaning);
            self.collector.collected.found.push(occurrence);
        }
    }
}

/// The bytes of the template call that YAML reads as `key`, if it is one.
fn call_span(source: &str, key: &YamlNode<'_>) -> Option<Range<usize>> {
    let YamlNode::Mapping(YamlMapping { entries, .. }) = key else {
        return None;
    };
    let mut words = entries
        .iter()
        .filter_map(|YamlEntry { key, .. }| key.scalar());
    let first = words.next()?;
    let last = words.next_back().unwrap_or(first);
    let start = source[..first.span.start]
        .trim_end()
        .strip_suffix("{{")?
        .len();
    let end = last.span.end + source[last.span.end..].find("}}")?;
    Some(start..end)
}
