//! The YAML engine: a walk over the documents of a text that asks each shape of reference what it sees, and the
//! proof that a change of bytes is the change of values that was meant.

use super::findings::{Finding, Findings, Meaning, ReadAs, Splice, apply, stays_plain};
use super::known::{Position, Verdict};
use super::scan::{Engine, Lines};
use super::shapes::{encoded, prefix, seeming, split};
use super::spelling::Spelling;
use super::yaml::{self, Document, Node, Scalar, Trace};
use super::{text, written};
use granit_parser::ScalarStyle;
use std::collections::BTreeMap;
use std::ops::Range;

/// Keys of lists whose items are containers, or are treated as such by what reads them.
pub(super) const CONTAINERS: [&str; 5] =
    ["containers", "initContainers", "ephemeralContainers", "steps", "sidecars"];
/// Keys of mappings that are containers.
pub(super) const CONTAINER: [&str; 2] = ["container", "script"];
/// Keys of mappings whose values are containers (Compose).
pub(super) const SERVICES: &str = "services";

const APART: &str = "it is spelled in a way that cannot be taken apart";

/// The members of a mapping.
pub(super) type Entries<'s> = [(Node<'s>, Node<'s>)];

/// Where a node stands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Context<'n> {
    /// The key of the mapping entry that it is the value of.
    pub(super) key: Option<&'n str>,
    /// The key above that.
    pub(super) above: Option<&'n str>,
    /// Whether it is a container, if it is a mapping.
    container: bool,
    /// Whether the values below are those of a Secret.
    secret: bool,
    /// Whether the values below are base64.
    encoded: bool,
    /// Why nothing below is to be changed, where that is so.
    seeming: Option<&'static str>,
}

/// The walk over the documents of one text.
pub(super) struct Walk<'e, 's> {
    pub(super) engine: &'e Engine<'e>,
    pub(super) source: &'s str,
    pub(super) document: &'s Document<'s>,
    /// In how many texts this one stands.
    depth: usize,
    found: Vec<Finding>,
    secrets: Vec<Range<usize>>,
    /// Parts of values that change, by the first byte of the scalar.
    changed: BTreeMap<usize, String>,
}

/// Everything in `source`, which stands in `depth` other texts; `None` where it is no YAML with a mapping or list
/// in it. Parts of it in which nothing that is known may stand are not read.
pub(super) fn walk(engine: &Engine<'_>, source: &str, depth: usize) -> Option<Findings> {
    let mut findings = Findings { found: Vec::new(), read_as: ReadAs::Yaml, secrets: Vec::new() };
    let parts = yaml::parts(source);
    let (mut structured, mut passed) = (false, Vec::new());
    for part in &parts {
        let text = &source[part.clone()];
        // escapes may hide any word
        if parts.len() > 1 && !engine.may_stand_in(text) && !text.contains('\\') {
            passed.push(part);
            continue;
        }
        structured |= walk_part(engine, source, part, depth, &mut findings)?;
    }
    for document in passed.into_iter().flat_map(|part| yaml::documents_in(source, part.clone())) {
        if structured {
            break;
        }
        structured = document.ok()?.is_structured();
    }
    structured.then_some(findings)
}

/// Adds everything in a part of `source`, and says whether there is a mapping or list in it.
fn walk_part(
    engine: &Engine<'_>,
    source: &str,
    part: &Range<usize>,
    depth: usize,
    findings: &mut Findings,
) -> Option<bool> {
    let mut secrets = std::mem::take(&mut findings.secrets);
    let (mut found, mut structured, mut changed) = (Vec::new(), false, BTreeMap::new());
    for document in yaml::documents_in(source, part.clone()) {
        let document = document.ok()?;
        structured |= document.is_structured();
        let mut walk = Walk { engine, source, document: &document, depth, found, secrets, changed };
        if let Some(root) = document.root.as_ref().filter(|root| !seeming::is_our_own(root)) {
            walk.node(root, Context::default());
        }
        Walk { found, secrets, changed, .. } = walk;
    }
    findings.secrets = secrets;
    if engine.options.comments {
        for span in yaml::comments(source, part) {
            found.extend(text::scan(engine, &source[span.clone()], Lines::One).into_iter().map(
                |mut finding| {
                    finding.at += span.start;
                    for splice in &mut finding.splices {
                        splice.span = splice.span.start + span.start..splice.span.end + span.start;
                    }
                    finding
                },
            ));
        }
    }
    // reading the part once more takes longer than reading it did
    let doubtful = found.iter().flat_map(|finding| &finding.splices).any(|splice| !splice.is_literal(source));
    if doubtful && !is_as_meant(source, part, &found, &changed) {
        let changes = found.iter_mut().filter(|finding| finding.is_change());
        changes.for_each(|finding| finding.leave("with it, the text around it would read differently"));
    }
    findings.found.extend(found);
    Some(structured)
}

/// Whether a part of `source`, with everything changed that was found, reads as it did with the values of these
/// scalars changed.
fn is_as_meant(
    source: &str,
    part: &Range<usize>,
    found: &[Finding],
    changed: &BTreeMap<usize, String>,
) -> bool {
    let mut trace = Trace::default();
    yaml::documents_in(source, part.clone()).flatten().for_each(|document| trace.add(&document, changed));
    let mut new = apply(found, source, part.clone());
    let end = new.len();
    // what follows must still begin on a line of its own
    new.push_str(&source[part.end..source.len().min(part.end + "---".len())]);
    trace.is_of(&new, end)
}

impl<'s> Walk<'_, 's> {
    fn node(&mut self, node: &'s Node<'s>, context: Context<'s>) {
        match node {
            Node::Scalar(scalar) => self.scalar(scalar, Position::Value, context),
            // it follows its anchor
            Node::Alias(..) => {}
            Node::Sequence(items, _) => {
                let container = context.key.is_some_and(|key| CONTAINERS.contains(&key));
                for item in items {
                    self.node(item, Context { key: None, above: context.key, container, ..context });
                }
            }
            Node::Mapping(entries, _) => self.mapping(entries, context),
        }
    }

    fn mapping(&mut self, entries: &'s Entries<'s>, context: Context<'s>) {
        let kind = value(entries, "kind").unwrap_or_default();
        let context = Context { seeming: context.seeming.or(seeming::kind(kind, entries)), ..context };
        let mut taken = Vec::new();
        if context.seeming.is_none() {
            taken.extend(seeming::matchers(self, entries, context));
            taken.extend(prefix::prefixes(self, entries, context, &taken));
            taken.extend(split::split(self, entries, context, &taken));
        }
        for (at, (key, node)) in entries.iter().enumerate() {
            match key.scalar() {
                Some(key) => self.key(key),
                None => self.node(key, Context { key: None, above: context.key, ..context }),
            }
            if taken.contains(&at) {
                continue;
            }
            let key = key.scalar().map(|key| &*key.value);
            let mut below = Context { key, above: context.key, container: false, ..context };
            if let Some(key) = key {
                below.secret |= kind == "Secret" && matches!(key, "data" | "stringData");
                below.encoded |= encoded::is_encoded(kind, key, entries);
                below.seeming = below.seeming.or(seeming::below(key, context.key, entries));
            }
            match node {
                Node::Scalar(scalar) => {
                    let position = position(key, context);
                    self.scalar(scalar, position, below);
                }
                node => {
                    below.container = context.key == Some(SERVICES)
                        || key.is_some_and(|key| CONTAINER.contains(&key) && !context.container);
                    self.node(node, below);
                }
            }
        }
    }

    /// A scalar that may be a reference as a whole, or hold some.
    fn scalar(&mut self, scalar: &'s Scalar<'s>, position: Position, context: Context<'s>) {
        if context.secret {
            self.secrets.push(scalar.span.clone());
        }
        let value = &*scalar.value;
        let trimmed = value.trim();
        let at = value.len() - value.trim_start().len();
        let finding = |meaning| Finding::new(at, trimmed, position, meaning);
        let verdict = match context.encoded {
            true => Verdict::Unknown,
            false => self.engine.known.lookup(trimmed, position, self.engine.options.pin),
        };
        let found = match verdict {
            Verdict::Unknown => match self.inside(scalar, position, context) {
                found if found.is_empty() && self.engine.all && position.is_image() => {
                    seeming::unknown(trimmed).into_iter().map(finding).collect()
                }
                found => found,
            },
            Verdict::Settled(item) => vec![finding(Meaning::Settled { item })],
            Verdict::Left(why) => vec![finding(Meaning::Left { why })],
            Verdict::Known(meant) => {
                let new = written(trimmed, &meant);
                let splices = vec![Splice { span: at..at + trimmed.len(), bytes: new.clone() }];
                let meaning = Meaning::Known { item: meant.item, to: new, reaches: vec![] };
                vec![Finding { splices, ..finding(meaning) }]
            }
        };
        self.lift(scalar, found, context.seeming);
    }

    /// What is inside of a value that is no reference as a whole.
    fn inside(&mut self, scalar: &'s Scalar<'s>, position: Position, context: Context<'s>) -> Vec<Finding> {
        let value = &*scalar.value;
        if scalar.style == ScalarStyle::Plain
            && !value.bytes().any(|byte| b" =:\"'/{".contains(&byte))
            && !(context.encoded || scalar.is_binary())
        {
            return Vec::new();
        }
        if (context.encoded || scalar.is_binary() || value.starts_with("data:"))
            && let Some(found) = encoded::scan(self.engine, value, self.depth)
        {
            return found;
        }
        let block = matches!(scalar.style, ScalarStyle::Literal | ScalarStyle::Folded);
        let inner = self.engine.embedded(value, block, self.depth + 1);
        if !inner.secrets.is_empty() && !context.secret {
            self.secrets.push(scalar.span.clone());
        }
        let mut found = inner.found;
        // the value of an image key that is no reference as a whole has its words told as its own
        if inner.read_as == ReadAs::Text && position.is_image() {
            found.iter_mut().for_each(|finding| finding.position = position);
        }
        found
    }

    /// Findings in the value of `scalar` as findings in the text: their places, and the bytes to change.
    pub(super) fn lift(&mut self, scalar: &Scalar<'_>, found: Vec<Finding>, seeming: Option<&str>) {
        if found.is_empty() {
            return;
        }
        let spelling = Spelling::of(self.source, scalar);
        let mut changes: Vec<(Range<usize>, String)> = Vec::new();
        let mut lifted = Vec::with_capacity(found.len());
        for mut finding in found {
            let place = spelling.as_ref().and_then(|spelling| spelling.place(finding.at));
            finding.at = place.unwrap_or(scalar.span.start);
            let splices = std::mem::take(&mut finding.splices);
            let mapped: Result<Vec<Splice>, &str> = splices
                .iter()
                .map(|splice| match (&spelling, seeming) {
                    (_, Some(why)) => Err(why),
                    (None, None) => Err(APART),
                    (Some(spelling), None) => spelling.splice(self.source, &splice.span, &splice.bytes),
                })
                .collect();
            match mapped {
                Ok(mapped) => {
                    finding.splices = mapped;
                    changes.extend(splices.into_iter().map(|splice| (splice.span, splice.bytes)));
                }
                Err(why) => finding.leave(why),
            }
            if let Some(why) = seeming.filter(|_| finding.is_change()) {
                finding.leave(why);
            }
            lifted.push(finding);
        }
        self.change(scalar, &changes, &mut lifted);
        self.found.extend(lifted);
    }

    /// Notes the new value of `scalar`, and quotes it where it needs that.
    fn change(&mut self, scalar: &Scalar<'_>, changes: &[(Range<usize>, String)], found: &mut [Finding]) {
        if changes.is_empty() {
            return;
        }
        match self.quoted(scalar, changes) {
            Ok((new, splice)) => {
                if let Some(splice) = splice {
                    let mut splices = vec![splice];
                    let changed = found.iter_mut().filter(|finding| !finding.splices.is_empty());
                    changed.for_each(|finding| finding.splices = std::mem::take(&mut splices));
                }
                self.changed.insert(scalar.span.start, new);
            }
            Err(why) => found.iter_mut().filter(|finding| finding.is_change()).for_each(|f| f.leave(why)),
        }
    }

    /// The new value of `scalar`, and the one splice for all changes where it needs quotes that it has not.
    fn quoted(
        &self,
        scalar: &Scalar<'_>,
        changes: &[(Range<usize>, String)],
    ) -> Result<(String, Option<Splice>), &'static str> {
        let mut new = scalar.value.to_string();
        for (range, bytes) in changes.iter().rev() {
            new.replace_range(range.clone(), bytes);
        }
        if scalar.style != ScalarStyle::Plain || stays_plain(&scalar.value, &new) {
            return Ok((new, None));
        }
        if self.source.get(scalar.span.clone()) != Some(&*scalar.value) || new.contains(['"', '\\']) {
            return Err("with it, the value would need quotes");
        }
        let bytes = format!("\"{new}\"");
        Ok((new, Some(Splice { span: scalar.span.clone(), bytes })))
    }

    /// Adds `finding`, whose change is the new text of each of `parts`; or says why that cannot be.
    pub(super) fn change_parts(
        &mut self,
        mut finding: Finding,
        parts: Vec<(&'s Scalar<'s>, String)>,
    ) -> Result<(), &'static str> {
        let mut changed = Vec::new();
        for (scalar, new) in parts {
            let spelling = Spelling::of(self.source, scalar).ok_or(APART)?;
            let start = scalar.value.len() - scalar.value.trim_start().len();
            let range = start..start + scalar.value.trim().len();
            let splice = spelling.splice(self.source, &range, &new)?;
            let (value, quoted) = self.quoted(scalar, &[(range, new)])?;
            finding.splices.push(quoted.unwrap_or(splice));
            changed.push((scalar.span.start, value));
        }
        self.changed.extend(changed);
        self.found.push(finding);
        Ok(())
    }

    /// A key is never changed: others may ask for it by its name.
    fn key(&mut self, key: &'s Scalar<'s>) {
        if let Verdict::Known(_) = self.engine.known.lookup(&key.value, Position::Value, false) {
            let why = "it is the key of a mapping".into();
            let meaning = Meaning::Left { why };
            self.found.push(Finding::new(key.span.start, &*key.value, Position::Value, meaning));
        }
    }

    /// Adds a reference that stands at `node`.
    pub(super) fn add(&mut self, node: &Node<'_>, reference: &str, position: Position, meaning: Meaning) {
        self.found.push(Finding::new(node.start(), reference, position, meaning));
    }
}

/// The text under `key`, where it is a scalar.
pub(super) fn value<'s>(entries: &'s Entries<'s>, key: &str) -> Option<&'s str> {
    let (_, value) = entries.iter().find(|(name, _)| name.scalar().is_some_and(|name| name.value == key))?;
    value.scalar().map(|scalar| &*scalar.value)
}

/// What the key says about a scalar that may be a reference.
fn position(key: Option<&str>, context: Context<'_>) -> Position {
    match key {
        Some("image") if context.container => Position::Container,
        // the image of an image volume
        Some("reference") if context.key == Some("image") => Position::Container,
        Some("dockerRepository") => Position::Repository,
        Some(key) if key.to_ascii_lowercase().ends_with("image") => Position::Image,
        _ => Position::Value,
    }
}
