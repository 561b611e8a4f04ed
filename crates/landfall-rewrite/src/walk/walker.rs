//! Walks over the documents of a text, and calls each rule at every node.

use super::collector::{
    CollectedReferences, ImageCandidate, ImageClaim, ReferenceCollector, reads_as_intended,
};
use super::{Collects, MappingContext, NodeContext, NodeStep, ReferenceScanner};
use crate::git_source::GitUse;
use crate::index::{ReferenceLookup, replaced};
use crate::inventory::Inventory;
use crate::occurrence::{Occurrence, ReferenceMeaning, ReferenceRole};
use crate::scan_result::{ReadAs, ScanResult};
use crate::text::{self, TextComments};
use crate::walk;
use crate::yaml::{
    self, ScalarStyle, YamlDocument, YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence,
};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Range;

/// The annotation with a copy of the object as it was last applied. Only the images of the object
/// itself are pulled.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The findings in the documents of a text.
pub(crate) struct DocumentScan {
    /// The occurrences. `None` if they are not collected, or if the text has neither a mapping nor
    /// a list.
    pub(crate) occurrences: Option<ScanResult>,
    /// The candidates; empty if they are not collected.
    pub(crate) candidates: Vec<ImageCandidate>,
    /// The git repositories that the documents use, except documents within texts.
    pub(crate) git_uses: Vec<GitUse>,
    /// Whether every document is a mapping or a list.
    pub(crate) is_structured: bool,
    /// Whether a document is a mapping or a list. HCL may be read as one scalar.
    pub(crate) has_structure: bool,
}

/// Finds the references in `source`, which is nested in `depth` other texts. `None` if `source` is
/// not YAML. If only occurrences are collected, parts that contain nothing to report are not read.
pub(crate) fn read(
    scanner: &ReferenceScanner<'_>,
    source: &str,
    depth: usize,
    collects: Collects,
) -> Option<DocumentScan> {
    let mut stream = StreamWalker {
        scanner,
        source,
        depth,
        collects,
        result: ScanResult {
            read_as: ReadAs::Yaml,
            ..ScanResult::nothing()
        },
        documents: DocumentScan {
            occurrences: None,
            candidates: Vec::new(),
            git_uses: Vec::new(),
            is_structured: true,
            has_structure: false,
        },
    };
    let parts = yaml::stream_parts(source);
    let mut skipped = Vec::new();
    for part in &parts {
        let text = &source[part.clone()];
        // a text with a single part was already searched by the scanner; a part with a backslash is
        // always read, because an escape may hide a word of the lock: `\u0071uay.io`
        if parts.len() > 1
            && !collects.candidates
            && !scanner.settings.may_report(text)
            && !text.contains('\\')
        {
            skipped.push(part);
            continue;
        }
        stream.part(part)?;
    }
    // a text without any mapping or list is read word by word; a mapping or list in a skipped part
    // counts, too
    let mut documents = stream.documents;
    for document in skipped
        .into_iter()
        .flat_map(|part| yaml::documents_in(source, part.clone()))
    {
        if documents.has_structure {
            break;
        }
        documents.has_structure = document.ok()?.is_structured();
    }
    if documents.has_structure && collects.occurrences {
        documents.occurrences = Some(stream.result);
    }
    Some(documents)
}

/// The walk over the documents of a stream.
struct StreamWalker<'e> {
    scanner: &'e ReferenceScanner<'e>,
    source: &'e str,
    /// The number of texts in which the stream is nested.
    depth: usize,
    collects: Collects,
    result: ScanResult,
    /// All findings but the occurrences, which are in `result`.
    documents: DocumentScan,
}

impl StreamWalker<'_> {
    /// Adds the findings in a part of the stream. `None` if the part is not YAML.
    fn part(&mut self, part: &Range<usize>) -> Option<()> {
        let mut collected = CollectedReferences::default();
        for document in yaml::documents_in(self.source, part.clone()) {
            let document = document.ok()?;
            self.documents.has_structure |= document.is_structured();
            self.documents.is_structured &= document.is_structured();
            self.document(&document, &mut collected);
        }
        let CollectedReferences {
            mut found,
            candidates,
            git_uses,
            mut secrets,
            has_secret,
            has_shared_secret,
            changed,
        } = collected;
        self.documents.candidates.extend(candidates);
        self.documents.git_uses.extend(git_uses);
        if !self.collects.occurrences {
            return Some(());
        }
        let source = self.source;
        if has_shared_secret {
            // the alias may refer to any anchored node of the part, so all of it is masked
            secrets.push(part.clone());
        } else if has_secret {
            secrets.extend(yaml::comment_spans(source, part).unwrap_or_else(|| vec![part.clone()]));
        }
        if self.scanner.settings.options.comments {
            // a comment in a template call was read with the call
            let known: BTreeSet<usize> = found.iter().map(|occurrence| occurrence.at).collect();
            for span in yaml::comment_spans(source, part).unwrap_or_default() {
                let words = text::scan(
                    &self.scanner.settings,
                    &source[span.clone()],
                    TextComments::None,
                    ReferenceRole::Text,
                );
                let words = words
                    .into_iter()
                    .map(|occurrence| occurrence.shifted(span.start));
                found.extend(words.filter(|occurrence| !known.contains(&occurrence.at)));
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
        self.result.found.extend(found);
        self.result.secrets.extend(secrets);
        Some(())
    }

    fn document(&self, document: &YamlDocument<'_>, collected: &mut CollectedReferences) {
        let Some(root) = &document.root else { return };
        let mut collects = self.collects;
        let skipped = (self.scanner.rules.skips)(root);
        collects.occurrences &= !skipped.occurrences;
        collects.candidates &= !skipped.candidates;
        if collects.nothing() {
            return;
        }
        let collector = ReferenceCollector {
            settings: &self.scanner.settings,
            document,
            source: self.source,
            file: self.scanner.settings.file.filter(|_| self.depth == 0),
            path: Vec::new(),
            distant_parts: OnceCell::new(),
            head: OnceCell::new(),
            collected,
        };
        let mut walker = DocumentWalker {
            scanner: self.scanner,
            depth: self.depth,
            collector,
            changed_anchors: BTreeSet::new(),
            other_uses: OnceCell::new(),
        };
        walker.node(
            root,
            NodeContext {
                collects,
                ..NodeContext::default()
            },
        );
    }
}

/// The walk over one document.
struct DocumentWalker<'e, 's> {
    scanner: &'e ReferenceScanner<'e>,
    /// The number of texts in which the document is nested.
    depth: usize,
    collector: ReferenceCollector<'e, 's>,
    /// The anchors of the values that change.
    changed_anchors: BTreeSet<usize>,
    /// The anchors with an alias that is not the value of a key of an image, after their first use.
    other_uses: OnceCell<BTreeSet<usize>>,
}

impl<'s> DocumentWalker<'_, 's> {
    fn node(&mut self, node: &'s YamlNode<'s>, around: NodeContext<'s>) {
        match node {
            YamlNode::Scalar(scalar) => self.scalar(scalar, around),
            YamlNode::Alias(alias) => self.alias(node, alias.anchor, around),
            YamlNode::Sequence(YamlSequence { items, .. }) => {
                let rules = self.scanner.rules;
                let mut previous = None;
                for (at, item) in items.iter().enumerate() {
                    let mut child = around.child(None);
                    for set_properties in rules.item {
                        set_properties(&around, previous, &mut child);
                    }
                    self.child(NodeStep::Item(at), item, child);
                    previous = Some(item);
                }
            }
            YamlNode::Mapping(YamlMapping { entries, .. }) => self.mapping(entries, around),
        }
    }

    /// Reads an alias. The anchored node is changed instead, if it is an image, too.
    fn alias(&mut self, node: &'s YamlNode<'s>, anchor: usize, around: NodeContext<'s>) {
        self.collector.collected.has_shared_secret |= around.secret;
        let settings = &self.scanner.settings;
        let text = self.collector.document.text(node).map(str::trim);
        // many aliases may repeat a long text
        let is_short = |text: &&str| text.len() <= settings.limits.reference_bytes;
        let Some(text) = text.filter(is_short) else {
            return;
        };
        // a full name is found at the anchor
        let is_found = |inventory: &Inventory<'_>| inventory.is_full_name(text);
        if around.collects.candidates
            && !settings.inventory.is_some_and(is_found)
            && !text.contains('\n')
            && let Some(claim) = self.claim(text, &around)
        {
            self.collector.add_claim(node.span().start, claim);
        }
        if around.collects.occurrences
            && around.keep.is_none()
            && self.is_only_known_as(around.role, text)
            && !self.changed_anchors.contains(&anchor)
        {
            let why =
                "it repeats a value that is not an image; write the image instead of the alias";
            let meaning = ReferenceMeaning::left(why);
            self.collector.add(node, text, around.role, meaning);
        }
    }

    /// Whether `text` is a known reference in this `role`, but not as any value: `nginx` without a
    /// tag.
    fn is_only_known_as(&self, role: ReferenceRole, text: &str) -> bool {
        let index = self.scanner.settings.index;
        let is_known = |role| matches!(index.lookup(text, role, false), ReferenceLookup::Known(_));
        role.is_image() && is_known(role) && !is_known(ReferenceRole::Value)
    }

    /// Whether an alias of `anchor` is not the value of a key of an image.
    fn has_other_use(&self, anchor: usize) -> bool {
        let uses = self.other_uses.get_or_init(|| {
            let mut uses = BTreeSet::new();
            if let Some(root) = &self.collector.document.root {
                add_other_uses(root, &mut uses);
            }
            uses
        });
        uses.contains(&anchor)
    }

    fn child(&mut self, step: NodeStep<'s>, node: &'s YamlNode<'s>, around: NodeContext<'s>) {
        self.collector.path.push(step);
        self.node(node, around);
        self.collector.path.pop();
    }

    fn mapping(&mut self, entries: &'s [YamlEntry<'s>], around: NodeContext<'s>) {
        let rules = self.scanner.rules;
        let mut members = MappingContext::new(entries, around, self.collector.document);
        let Collects {
            occurrences,
            candidates,
        } = around.collects;
        if occurrences {
            self.collector.collected.has_secret |= (rules.is_secret)(&members);
            if around.keep.is_none() {
                members.around.keep = (rules.keeps)(&members);
            }
            if members.around.keep.is_none() {
                for collect in rules.references {
                    let found = collect(&mut self.collector, &members);
                    members.take(found);
                }
            }
        }
        let taken = std::mem::take(&mut members.taken);
        if let Some(inventory) = self.scanner.settings.inventory.filter(|_| candidates) {
            for collect in rules.candidates {
                let found = collect(&mut self.collector, inventory, &members);
                members.take(found);
            }
        }
        let claimed = std::mem::take(&mut members.taken);
        for (at, YamlEntry { key, value }) in entries.iter().enumerate() {
            if occurrences {
                self.key(key, &members.around);
            }
            let step = key.scalar().map(|key| &*key.value);
            let mut child = members.around.child(step);
            if taken.binary_search(&at).is_ok() {
                // a rule has read the value, but in a Secret it still has to be masked
                let secret = value.scalar().filter(|_| around.secret);
                let secret = secret.map(|value| value.span.clone());
                self.collector.collected.secrets.extend(secret);
                child.collects.occurrences = false;
            }
            child.collects.candidates &= step.is_some() && claimed.binary_search(&at).is_err();
            if child.collects.nothing() {
                continue;
            }
            for set_properties in rules.entry {
                set_properties(&members, value, &mut child);
            }
            self.child(NodeStep::Key(step.unwrap_or_default()), value, child);
        }
    }

    /// Reads the key of an entry.
    fn key(&mut self, key: &'s YamlNode<'s>, around: &NodeContext<'s>) {
        match key.scalar() {
            Some(key) => self.known_key(key),
            None if self.call(key, around) => {}
            None => {
                let collects = Collects {
                    candidates: false,
                    ..around.collects
                };
                let around = NodeContext {
                    container: around.container,
                    collects,
                    ..around.child(None)
                };
                self.node(key, around);
            }
        }
    }

    /// Reads a scalar, which may be a reference as a whole or contain references.
    fn scalar(&mut self, scalar: &'s YamlScalar<'s>, around: NodeContext<'s>) {
        // a text in the value is read once for both
        let is_encoded = around.encoded || scalar.is_binary() || scalar.value.starts_with("data:");
        let mut inner = None;
        if around.collects.candidates {
            inner = self.candidates(scalar, around, around.collects.occurrences && !is_encoded);
        }
        if around.collects.occurrences {
            self.occurrences(scalar, around, inner);
        }
    }

    /// Collects the candidates in a scalar. If the scalar is a text itself, returns the occurrences
    /// in it, too, if `occurrences` are collected.
    fn candidates(
        &mut self,
        scalar: &'s YamlScalar<'s>,
        around: NodeContext<'s>,
        occurrences: bool,
    ) -> Option<ScanResult> {
        let text = scalar.text()?.trim();
        // `{{ call }}` is a template, not JSON
        let flow =
            text.starts_with(['{', '[']) && !text.starts_with("{{") && text.ends_with(['}', ']']);
        // a document of one line, such as the values of a chart
        let entry = text.trim_start_matches("- ").split_once(": ");
        let is_document = has_lines(scalar) && entry.is_some_and(|(key, _)| !key.contains(' '));
        if text.contains('\n') || flow || is_document {
            return self.text(scalar, around, occurrences);
        }
        if let Some(claim) = self.claim(text, &around) {
            // the claim may be a part of the text: the value of a flag, which is at the end
            let at = scalar.value.trim_end().len() - claim.written.len();
            let found = ImageCandidate::all(at, claim);
            self.collector.add_inner(scalar, found);
        }
        None
    }

    /// The candidate that the first matching rule reads in the text of a scalar.
    fn claim<'t>(&self, text: &'t str, around: &NodeContext<'_>) -> Option<ImageClaim<'t>> {
        let inventory = self.scanner.settings.inventory?;
        let mut claims = self.scanner.rules.claim.iter();
        claims.find_map(|claim| claim(text, around, inventory))
    }

    /// Reads a scalar that is a text itself: a document in a ConfigMap or annotation, a list of
    /// images, or a template.
    fn text(
        &mut self,
        scalar: &'s YamlScalar<'s>,
        around: NodeContext<'s>,
        occurrences: bool,
    ) -> Option<ScanResult> {
        if around.key == Some(LAST_APPLIED)
            || self.depth >= self.scanner.settings.limits.embedded_depth
        {
            return None;
        }
        let value = &*scalar.value;
        let collects = Collects {
            occurrences,
            candidates: true,
        };
        let (scan, candidates) = self.scanner.read(value, self.depth + 1, collects);
        let candidates = candidates.filter(|found| found.is_structured);
        let found = match candidates {
            Some(found) => found.candidates,
            None => match self
                .claim(value, &around)
                .and_then(|claim| ImageCandidate::of_list(claim.written))
            {
                Some(list) => list,
                None => walk::candidates_in_lines(value),
            },
        };
        self.collector.add_inner(scalar, found);
        occurrences.then_some(scan)
    }

    /// Collects the occurrences in a scalar. `inner` are those in the text that the scalar is, if
    /// they were collected already.
    fn occurrences(
        &mut self,
        scalar: &'s YamlScalar<'s>,
        around: NodeContext<'s>,
        inner: Option<ScanResult>,
    ) {
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
            ReferenceLookup::Unknown => match self.inside(scalar, around, inner) {
                found if found.is_empty() && settings.report_unknown && role.is_image() => {
                    ReferenceMeaning::of_unknown(trimmed)
                        .into_iter()
                        .map(occurrence)
                        .collect()
                }
                found => found,
            },
            ReferenceLookup::Settled(item) => vec![occurrence(ReferenceMeaning::Settled(item))],
            ReferenceLookup::Left(why) => vec![occurrence(ReferenceMeaning::Left(why))],
            ReferenceLookup::Known(_)
                if self.collector.document.is_shared(scalar)
                    && self.is_only_known_as(role, trimmed)
                    && self.has_other_use(scalar.anchor) =>
            {
                let why = "other values, which are no images, share it by an anchor";
                vec![occurrence(ReferenceMeaning::left(why))]
            }
            ReferenceLookup::Known(replacement) => {
                self.changed_anchors.insert(scalar.anchor);
                let to = replaced(trimmed, &replacement);
                let meaning = ReferenceMeaning::known(replacement.item, &*to);
                vec![occurrence(meaning).with_edit(at..at + trimmed.len(), to)]
            }
        };
        self.collector.add_in_value(scalar, found, around.keep);
    }

    /// Finds the references inside a value that is not a reference as a whole.
    fn inside(
        &mut self,
        scalar: &'s YamlScalar<'s>,
        around: NodeContext<'s>,
        inner: Option<ScanResult>,
    ) -> Vec<Occurrence> {
        let value = &*scalar.value;
        let encoded = around.encoded || scalar.is_binary();
        // most plain scalars are single words, in which there is no room for a further reference
        if scalar.style == ScalarStyle::Plain
            && !encoded
            && !value.bytes().any(|byte| b" =:\"'/{".contains(&byte))
        {
            return Vec::new();
        }
        let decoded = (self.scanner.rules.decode)(self.scanner, value, encoded, self.depth);
        let is_decoded = decoded.is_some();
        let inner = decoded.or(inner).unwrap_or_else(|| {
            self.scanner
                .scan_value(value, has_lines(scalar), around.role, self.depth + 1)
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
            TextComments::Possible,
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
    fn known_key(&mut self, key: &'s YamlScalar<'s>) {
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

/// Whether the value of `scalar` is a text of lines, even if it has only one: a block, or a string
/// that ends with a line feed.
fn has_lines(scalar: &YamlScalar<'_>) -> bool {
    matches!(scalar.style, ScalarStyle::Literal | ScalarStyle::Folded)
        || scalar.value.ends_with('\n')
}

/// Adds the anchors of the aliases in `node` that are not the value of a key of an image.
fn add_other_uses(node: &YamlNode<'_>, uses: &mut BTreeSet<usize>) {
    if let YamlNode::Alias(alias) = node {
        uses.insert(alias.anchor);
    }
    node.items()
        .iter()
        .for_each(|item| add_other_uses(item, uses));
    for YamlEntry { key, value } in node.entries() {
        let key = key.scalar().map(|key| key.value.to_ascii_lowercase());
        let is_image = key.is_some_and(|key| key.ends_with("image"));
        if !(is_image && matches!(value, YamlNode::Alias(_))) {
            add_other_uses(value, uses);
        }
    }
}

/// The bytes of the template call that YAML reads as `key`, if it is one.
fn call_span(source: &str, key: &YamlNode<'_>) -> Option<Range<usize>> {
    let YamlNode::Mapping(YamlMapping { entries, span, .. }) = key else {
        return None;
    };
    let first = entries
        .iter()
        .find_map(|YamlEntry { key, .. }| key.scalar())?;
    let start = source[..first.span.start]
        .trim_end()
        .strip_suffix("{{")?
        .len();
    // the mapping around the key must end where the key ends: in `{{a}: x}`, nothing is called
    let end = span.end.checked_sub(1)?;
    source.get(end..)?.starts_with("}}").then_some(start..end)
}
