//! Where images are named in YAML and JSON documents, whether a lock knows them or not.

use super::super::shapes::seeming::is_our_own;
use super::super::shapes::split::{self, Part, Reference};
use super::super::walk::{CONTAINER, CONTAINERS, Entries, SERVICES};
use super::super::yaml::{self, Document, Node, Scalar};
use super::{Inventory, Lines, Mention, Place};
use crate::model::{Digest, ImageRef, names_host};
use granit_parser::ScalarStyle;
use std::collections::BTreeSet;

/// Keys of lists in the status of a pod.
const STATUSES: [&str; 3] = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];

/// What was there before an object was changed; nobody pulls it.
const OUTDATED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Every mention of an image in `documents`, in the order of the text. `depth` is how many more texts inside
/// of texts are read.
pub(super) fn mentions(
    documents: &[Document<'_>],
    lines: &Lines<'_>,
    inventory: &Inventory<'_>,
    depth: usize,
) -> Vec<Mention> {
    let mut found = Vec::new();
    for document in documents {
        let Some(root) = document.root.as_ref().filter(|root| !is_our_own(root) && !is_schema(root)) else {
            continue;
        };
        let mut reader = Reader { document, lines, inventory, depth, path: Vec::new(), found: &mut found };
        reader.node(root, Around::default());
    }
    found
}

/// Whether it is a CustomResourceDefinition: what looks like images there are names of fields.
fn is_schema(root: &Node<'_>) -> bool {
    text_of(root, "kind") == Some("CustomResourceDefinition")
}

/// The scalar under `key` of a mapping.
fn member<'n>(node: &'n Node<'_>, key: &str) -> Option<&'n Scalar<'n>> {
    let Node::Mapping(entries, _) = node else { return None };
    let is_it = |name: &Node<'_>| name.scalar().is_some_and(|name| name.value == key);
    entries.iter().find(|(name, _)| is_it(name))?.1.scalar()
}

/// The text under `key` of a mapping.
fn text_of<'n>(node: &'n Node<'_>, key: &str) -> Option<&'n str> {
    member(node, key)?.text()
}

/// What a node stands in.
#[derive(Debug, Clone, Copy, Default)]
struct Around<'n> {
    key: Option<&'n str>,
    container: bool,
    status: bool,
}

struct Reader<'d, 'f> {
    document: &'d Document<'d>,
    lines: &'d Lines<'d>,
    inventory: &'d Inventory<'d>,
    depth: usize,
    path: Vec<String>,
    found: &'f mut Vec<Mention>,
}

impl<'d> Reader<'d, '_> {
    fn node(&mut self, node: &'d Node<'d>, around: Around<'d>) {
        match node {
            Node::Scalar(scalar) => self.scalar(scalar, around),
            // it was read at its anchor
            Node::Alias(..) => {}
            Node::Sequence(items, _) => self.sequence(items, around),
            Node::Mapping(entries, _) => self.mapping(node, entries, around),
        }
    }

    fn below(&mut self, key: String, node: &'d Node<'d>, around: Around<'d>) {
        self.path.push(key);
        self.node(node, around);
        self.path.pop();
    }

    fn sequence(&mut self, items: &'d [Node<'d>], around: Around<'d>) {
        let key = around.key.unwrap_or_default();
        let inside =
            Around { key: None, container: CONTAINERS.contains(&key), status: STATUSES.contains(&key) };
        let mut flag = false;
        for (at, item) in items.iter().enumerate() {
            // `--some-image` and its value as an item of its own
            let value = std::mem::replace(&mut flag, is_image_flag(item));
            let inside = if value { Around { key: Some("image"), ..inside } } else { inside };
            self.below(format!("[{at}]"), item, inside);
        }
    }

    fn mapping(&mut self, node: &'d Node<'d>, entries: &'d Entries<'d>, around: Around<'d>) {
        if around.status {
            return self.status(node);
        }
        let mut done = self.kustomized(node, around);
        done.extend(self.split(entries, around, &done));
        let variable = text_of(node, "name").is_some_and(is_image_name);
        for (at, (key, value)) in entries.iter().enumerate() {
            let Some(key) = key.scalar().map(|key| &*key.value).filter(|_| !done.contains(&at)) else {
                continue;
            };
            let in_container = around.container && key == "image";
            let around = Around {
                key: Some(
                    match (variable && key == "value", around.key == Some("image") && key == "reference") {
                        (true, _) | (_, true) => "image",
                        _ => key,
                    },
                ),
                container: match value {
                    Node::Scalar(_) => in_container || around.key == Some("image") && key == "reference",
                    _ => around.key == Some(SERVICES) || (CONTAINER.contains(&key) && !around.container),
                },
                status: false,
            };
            self.below(key.to_owned(), value, around);
        }
    }

    /// A container in the status of a pod: what runs, by digest.
    fn status(&mut self, node: &'d Node<'d>) {
        let Some(id) = text_of(node, "imageID") else { return };
        let id =
            ["docker-pullable://", "docker://"].iter().find_map(|head| id.strip_prefix(head)).unwrap_or(id);
        let image = text_of(node, "image").unwrap_or_default();
        let Some(place) = member(node, "imageID").map(|id| self.lines.place(text_start(id))) else { return };
        if let Ok(config) = id.parse::<Digest>() {
            let (written, why) = match self.inventory.with_config(&config) {
                Some(image) => (image.name.to_string(), None),
                None => {
                    let why = "the runtime tells the digest of its configuration only, which the lock does not have";
                    (format!("{image} ({id})"), Some(why.to_owned()))
                }
            };
            let why_not = why;
            return self.found.push(Mention {
                place,
                path: self.path.clone(),
                written,
                sure: true,
                in_container: true,
                why_not,
            });
        }
        let Ok(ran) = id.parse::<ImageRef>() else { return };
        // the digest is what runs; the tag is what it was asked for by
        let asked = image.parse::<ImageRef>().ok().filter(|asked| asked.name() == ran.name());
        let tag = asked.and_then(|asked| asked.tag);
        let written = ImageRef { tag: tag.or(ran.tag.clone()), ..ran }.to_string();
        self.mention(place, &written, true, true);
    }

    /// The `images` of a kustomization: what takes the place of what. Gives the entries that were read.
    fn kustomized(&mut self, node: &'d Node<'d>, around: Around<'d>) -> BTreeSet<usize> {
        let in_images =
            self.path.len() >= 2 && self.path[self.path.len() - 2] == "images" && around.key.is_none();
        let part = |key: &str| text_of(node, key);
        let (name, new_name) = (part("name"), part("newName"));
        if !in_images || name.is_none() || [new_name, part("newTag"), part("digest")] == [None; 3] {
            return BTreeSet::new();
        }
        let mut written = new_name.or(name).unwrap_or_default().to_owned();
        written.extend(part("newTag").map(|tag| format!(":{tag}")));
        written.extend(part("digest").map(|digest| format!("@{digest}")));
        if let Some(place) = start_of(node).map(|at| self.lines.place(at)) {
            self.mention(place, &written, true, false);
        }
        let Node::Mapping(entries, _) = node else { return BTreeSet::new() };
        (0..entries.len()).collect()
    }

    /// References in parts. Gives the entries that belong to one.
    fn split(
        &mut self,
        entries: &'d Entries<'d>,
        around: Around<'d>,
        taken: &BTreeSet<usize>,
    ) -> BTreeSet<usize> {
        let mut done = BTreeSet::new();
        for group in split::groups(entries, around.key, self.document) {
            if group.values().any(|at| taken.contains(at)) {
                continue;
            }
            let Some(reference) = Reference::new(entries, &group, self.document) else { continue };
            let under_image =
                |key: Option<&str>| key.is_some_and(|key| key.to_ascii_lowercase().contains("image"));
            let key = group.get(&Part::Repository).and_then(|at| entries[*at].0.scalar());
            let parts = [Part::Registry, Part::Tag, Part::Digest].iter().any(|part| group.contains_key(part));
            let sure = parts || under_image(around.key) || under_image(key.map(|key| &*key.value));
            let host = names_host(&reference.whole);
            if !(sure || host) {
                continue;
            }
            if let Some(place) = start_of(reference.repository.0).map(|at| self.lines.place(at)) {
                let key = key.map(|key| key.value.to_string());
                self.path.extend(key.clone());
                self.mention(place, &reference.whole, sure, false);
                self.path.truncate(self.path.len() - usize::from(key.is_some()));
            }
            done.extend(group.values());
        }
        done
    }

    fn scalar(&mut self, scalar: &Scalar<'_>, around: Around<'_>) {
        let Some(text) = scalar.text().map(str::trim) else { return };
        let place = self.lines.place(text_start(scalar));
        let flow = text.starts_with(['{', '[']) && !text.starts_with("{{") && text.ends_with(['}', ']']);
        if text.contains('\n') || flow {
            return self.document(scalar, around);
        }
        if around.key.is_some_and(is_image_name) {
            return self.mention(place, text, around.container, around.container);
        }
        let text = match text.split_once('=') {
            Some((flag, value)) if flag.starts_with('-') => {
                if flag.to_ascii_lowercase().contains("image") {
                    return self.mention(place, value, false, false);
                }
                value
            }
            _ => text,
        };
        // anywhere else: a full name with a tag or digest at what is a registry beyond doubt
        let full =
            text.parse::<ImageRef>().ok().filter(|reference| reference.is_pinned() && names_host(text));
        if full.is_some_and(|reference| self.inventory.is_registry(&reference.registry)) {
            self.mention(place, text, true, false);
        }
    }

    /// A document as the text of a scalar: in a ConfigMap, an annotation.
    fn document(&mut self, scalar: &Scalar<'_>, around: Around<'_>) {
        let is_document = |one: &Document<'_>| !matches!(one.root, None | Some(Node::Scalar(_)));
        if around.key == Some(OUTDATED) || self.depth == 0 {
            return;
        }
        let Ok(documents) = yaml::documents(&scalar.value).collect::<Result<Vec<_>, _>>() else { return };
        if !documents.iter().all(is_document) {
            return;
        }
        let place = self.lines.place(text_start(scalar));
        self.found.extend(
            mentions(&documents, self.lines, self.inventory, self.depth - 1)
                .into_iter()
                .map(|inner| Mention { place, path: [&self.path[..], &inner.path].concat(), ..inner }),
        );
    }

    /// `sure` says that it is an image by where it stands, whatever it looks like.
    fn mention(&mut self, place: Place, written: &str, sure: bool, in_container: bool) {
        let path = self.path.clone();
        self.found.extend(Mention::new(place, path, written, sure, in_container));
    }
}

/// Whether a key, variable or flag is named after an image: `image`, `sandboxImage`, `RELATED_IMAGE_X`.
fn is_image_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("image") || name.starts_with("related_image_") || name.contains("_image_ref")
}

/// Whether an argument is a flag whose value comes next.
fn is_image_flag(node: &Node<'_>) -> bool {
    let text = node.scalar().map(|scalar| scalar.value.trim());
    text.is_some_and(|text| text.starts_with('-') && !text.contains('=') && is_image_name(text))
}

/// The first byte of a scalar's text, behind its quote.
fn text_start(scalar: &Scalar<'_>) -> usize {
    let quoted = matches!(scalar.style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
    scalar.span.start + usize::from(quoted)
}

/// The first byte of a node.
fn start_of(node: &Node<'_>) -> Option<usize> {
    match node {
        Node::Scalar(scalar) => Some(text_start(scalar)),
        Node::Alias(..) => Some(node.start()),
        Node::Sequence(items, _) => items.first().and_then(start_of),
        Node::Mapping(entries, _) => entries.first().and_then(|(key, _)| start_of(key)),
    }
}
