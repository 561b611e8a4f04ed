//! What only seems to be a reference, or must not be changed where it stands: told, and left.

use crate::model::ImageRef;
use crate::rewrite::findings::Meaning;
use crate::rewrite::known::{Position, Verdict};
use crate::rewrite::walk::{Context, Entries, Walk, value};
use crate::rewrite::yaml::Node;

/// Whether a document is a manifest, lock, site or other input of landfall: these name things as they are
/// named upstream, and must go on doing so.
pub(in crate::rewrite) fn is_our_own(root: &Node<'_>) -> bool {
    let Node::Mapping(entries, _) = root else { return false };
    let has = |name: &str| entries.iter().any(|(key, _)| key.scalar().is_some_and(|key| key.value == name));
    let lock = || {
        let Some(Node::Sequence(items, _)) = member(entries, "images").or_else(|| member(entries, "files"))
        else {
            return false;
        };
        let Some(Node::Mapping(item, _)) = items.first() else { return false };
        ["name", "digest", "size"].iter().all(|key| value(item, key).is_some())
    };
    value(entries, "apiVersion").is_some_and(|value| value.starts_with("landfall/"))
        || (has("version") && lock())
}

fn member<'s>(entries: &'s Entries<'s>, name: &str) -> Option<&'s Node<'s>> {
    entries.iter().find(|(key, _)| key.scalar().is_some_and(|key| key.value == name)).map(|(_, value)| value)
}

/// Why nothing in a mapping of this `kind` is to be changed.
pub(in crate::rewrite) fn kind(kind: &str, entries: &Entries<'_>) -> Option<&'static str> {
    match kind {
        "CustomResourceDefinition" => Some("it stands in the schema of a CustomResourceDefinition"),
        "ImageStreamTag" | "ImageStream" | "ImageStreamImage" | "ImageStreamMapping"
            if member(entries, "spec").is_none() =>
        {
            Some("it is the name of an OpenShift image stream")
        }
        _ => value(entries, "$schema")
            .filter(|_| member(entries, "properties").is_some())
            .map(|_| "it stands in a JSON schema"),
    }
}

/// Why nothing under `key` of a mapping with `entries`, itself under `above`, is to be changed.
pub(in crate::rewrite) fn below(
    key: &str,
    above: Option<&str>,
    entries: &Entries<'_>,
) -> Option<&'static str> {
    match (key, above) {
        ("openAPIV3Schema", _) => Some("it stands in the schema of a CustomResourceDefinition"),
        // a checksum in an annotation guards it (Knative)
        ("_example", Some("data")) => Some("it is an example that an annotation has the checksum of"),
        ("imageContentSources" | "imageDigestMirrors" | "imageTagMirrors" | "repositoryDigestMirrors", _) => {
            Some("it says what a mirror stands in for")
        }
        ("source", _) if member(entries, "mirrors").is_some() => Some("it says what a mirror stands in for"),
        _ => None,
    }
}

/// The entries of a kustomization's `images` transformer that are no references: `name` is what the bases
/// call the image. Gives the places of what is dealt with.
pub(in crate::rewrite) fn matchers<'s>(
    walk: &mut Walk<'_, 's>,
    entries: &'s Entries<'s>,
    context: Context<'s>,
) -> Vec<usize> {
    if context.above != Some("images") || context.key.is_some() {
        return Vec::new();
    }
    let has = |name: &str| member(entries, name).is_some();
    let Some(at) = entries.iter().position(|(key, _)| key.scalar().is_some_and(|key| key.value == "name"))
    else {
        return Vec::new();
    };
    if !(has("newName") || has("newTag") || has("digest")) {
        return Vec::new();
    }
    let name = &entries[at].1;
    let text = name.scalar().map(|scalar| &*scalar.value).unwrap_or_default();
    let known = walk.engine.known.lookup(text, Position::Repository, false);
    if !has("newName") && !matches!(known, Verdict::Unknown | Verdict::Settled(_)) {
        let why = "kustomize finds images of the bases by this name; rewrite what `kustomize build` prints";
        walk.add(name, text, Position::Repository, Meaning::Left { why: why.into() });
    }
    vec![at]
}

/// What to say of `text`, which stands where an image does and is not known to the lock.
pub(in crate::rewrite) fn unknown(text: &str) -> Option<Meaning> {
    if text.is_empty() {
        return None;
    }
    let placeholder = ["{{", "${", "$(", "__", "://"].iter().any(|sign| text.contains(sign));
    match text.parse::<ImageRef>() {
        Ok(_) if !placeholder => Some(Meaning::Unknown),
        _ => Some(Meaning::Undecided { why: "it cannot be read as an image reference".into() }),
    }
}
