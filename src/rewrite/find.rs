//! References in YAML documents: which scalars to change, and which to leave and tell about.

use super::known::{Known, Position, Verdict};
use super::split;
use super::yaml::{Document, Node, Place, Scalar};
use super::{Edit, Left};

/// Keys of lists whose items are containers, or are treated as such by what reads them.
pub(super) const CONTAINERS: [&str; 5] =
    ["containers", "initContainers", "ephemeralContainers", "steps", "sidecars"];
/// Keys of mappings that are containers.
pub(super) const CONTAINER: [&str; 2] = ["container", "script"];
/// Keys of mappings whose values are containers (Compose).
pub(super) const SERVICES: &str = "services";

/// What was found in a text.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) edits: Vec<Edit>,
    pub(super) left: Vec<Left>,
    pub(super) settled: usize,
}

/// Everything in `documents` that `known` has to do with, in the order of the text.
pub(super) fn find(source: &str, documents: &[Document<'_>], known: &Known) -> Found {
    let mut found = Found::default();
    for document in documents {
        let mut finder = Finder { source, document, known, found: &mut found };
        if let Some(root) = document.root.as_ref().filter(|root| !is_our_own(root)) {
            finder.node(root, Context::default());
        }
    }
    found.edits.sort_by_key(|edit| edit.span.start);
    found.left.sort_by_key(|left| (left.line, left.column));
    found
}

/// Whether a document is a manifest, site or other input of landfall: these name things as they are
/// named upstream, and must go on doing so.
pub(super) fn is_our_own(root: &Node<'_>) -> bool {
    let Node::Mapping(entries, _) = root else { return false };
    entries.iter().any(|(key, value)| {
        let value = value.scalar().map(|scalar| &*scalar.value);
        key.scalar().is_some_and(|key| key.value == "apiVersion")
            && value.is_some_and(|value| value.starts_with("landfall/"))
    })
}

/// Where a node stands.
#[derive(Debug, Clone, Copy, Default)]
struct Context<'n> {
    /// The key of the mapping entry that it is the value of.
    key: Option<&'n str>,
    /// Whether it is a container, if it is a mapping.
    container: bool,
}

/// The walk over one document.
pub(super) struct Finder<'s, 'f> {
    pub(super) source: &'s str,
    pub(super) document: &'s Document<'s>,
    pub(super) known: &'s Known,
    pub(super) found: &'f mut Found,
}

impl<'s> Finder<'s, '_> {
    fn node(&mut self, node: &'s Node<'s>, context: Context<'s>) {
        match node {
            Node::Scalar(scalar) => self.whole(scalar, Position::Other),
            // it follows its anchor
            Node::Alias(..) => {}
            Node::Sequence(items, _) => {
                let container = context.key.is_some_and(|key| CONTAINERS.contains(&key));
                for item in items {
                    self.node(item, Context { key: None, container });
                }
            }
            Node::Mapping(entries, _) => self.mapping(entries, context),
        }
    }

    fn mapping(&mut self, entries: &'s [(Node<'s>, Node<'s>)], context: Context<'s>) {
        let parts = split::split(self, entries);
        for (at, (key, value)) in entries.iter().enumerate() {
            match key.scalar() {
                Some(key) => self.key(key),
                None => self.node(key, Context::default()),
            }
            let key = key.scalar().map(|key| &*key.value);
            match value {
                _ if parts.contains(&at) => {}
                Node::Scalar(scalar) => self.whole(scalar, position(key, context)),
                value => {
                    let container = context.key == Some(SERVICES)
                        || key.is_some_and(|key| CONTAINER.contains(&key) && !context.container);
                    self.node(value, Context { key, container });
                }
            }
        }
    }

    /// A scalar that may be a reference as a whole.
    fn whole(&mut self, scalar: &'s Scalar<'s>, position: Position) {
        // block scalars end with a line break that belongs to no reference
        let written = scalar.value.trim();
        match self.known.lookup(written, position) {
            Verdict::Unknown => {}
            Verdict::Settled => self.found.settled += 1,
            Verdict::Left(why) => self.leave(scalar.place, written, why),
            Verdict::Known { item, to } => {
                let new = format!("{to}{}", pin(written));
                match self.edit(scalar, new, &item) {
                    Ok(edit) => self.found.edits.push(edit),
                    Err(why) => self.leave(scalar.place, written, why),
                }
            }
        }
    }

    /// A key is never changed: others may ask for it by its name.
    fn key(&mut self, key: &'s Scalar<'s>) {
        if let Verdict::Known { .. } = self.known.lookup(&key.value, Position::Other) {
            self.leave(key.place, &key.value, "it is the key of a mapping");
        }
    }

    pub(super) fn edit(&self, scalar: &Scalar<'_>, to: String, item: &str) -> Result<Edit, &'static str> {
        let (span, bytes) = scalar.replacement(self.source, &to)?;
        let Place { line, column } = scalar.place;
        let (from, item) = (scalar.value.to_string(), item.to_owned());
        Ok(Edit { line, column, from, to, item, span, bytes, scalar: scalar.span.start })
    }

    pub(super) fn leave(&mut self, place: Place, reference: &str, why: impl Into<String>) {
        let Place { line, column } = place;
        self.found.left.push(Left { line, column, reference: reference.into(), why: why.into() });
    }
}

/// What the key says about a scalar that may be a reference.
fn position(key: Option<&str>, context: Context<'_>) -> Position {
    match key {
        Some("image") if context.container => Position::Container,
        // the image of an image volume
        Some("reference") if context.key == Some("image") => Position::Container,
        Some(key) if key.to_ascii_lowercase().ends_with("image") => Position::Image,
        _ => Position::Other,
    }
}

/// What stands behind the repository in a reference: `:tag`, `@digest`, both or nothing.
pub(super) fn pin(text: &str) -> &str {
    let last = text.rfind('/').map_or(0, |slash| slash + 1);
    let at = text[last..].find([':', '@']).map_or(text.len(), |at| last + at);
    &text[at..]
}
