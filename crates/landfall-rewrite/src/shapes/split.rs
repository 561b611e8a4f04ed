//! References in parts, as Helm values have them: `registry`, `repository`, `tag` and `digest` as
//! keys of one mapping, also with a shared beginning (`imageRepository`, `imageTag`) and in other
//! words (`hub`, `sha`).

use crate::index::{Lookup, Replacement};
use crate::notation::{pin, replaced};
use crate::occurrence::{Meaning, Occurrence};
use crate::role::Role;
use crate::settings::Settings;
use crate::split_reference::{SplitReference, Value};
use crate::walk::{Collector, Members, Shape, Surroundings};
use crate::yaml::{Document, Node, Scalar};
use landfall_model::{Destination, Digest, ImageRef, has_host};

pub(super) struct Split;

impl Shape for Split {
    fn references<'s>(
        &self,
        collector: &mut Collector<'_, 's>,
        members: &Members<'s>,
        taken: &[usize],
    ) -> Vec<usize> {
        let Members {
            entries, around, ..
        } = members;
        let mut found = Vec::new();
        for (group, reference) in SplitReference::all(entries, around.key, collector.document) {
            if group.values().any(|at| taken.contains(at)) {
                continue;
            }
            if decide(&reference, collector, around) {
                found.extend(group.values());
            }
        }
        found
    }
}

/// Rewrites or leaves `reference`. Returns `false` where the lock has nothing like it and no
/// registry stands in it, so that its parts may be something else.
fn decide<'s>(
    reference: &SplitReference<'s>,
    collector: &mut Collector<'_, 's>,
    around: &Surroundings<'s>,
) -> bool {
    let settings = collector.settings;
    let lookup = settings
        .index
        .lookup(&reference.whole, Role::Repository, settings.options.pin);
    let meaning = match lookup {
        Lookup::Unknown => match unknown(reference, settings, around) {
            Some(meaning) => meaning,
            // behind its registry, a name without a host means nothing of the lock
            None => return reference.registry.is_some() && is_short(reference.repository.1),
        },
        Lookup::Settled(item) => Meaning::Settled { item },
        Lookup::Left(why) => Meaning::Left { why },
        Lookup::Known(_) if reference.merged => {
            Meaning::left("a merged mapping (<<) may bring its registry or its tag")
        }
        Lookup::Known(replacement) => match rewrite(reference, collector, replacement) {
            Ok(()) => return true,
            Err(why) => Meaning::left(why),
        },
    };
    collector.add(
        reference.repository.0,
        &reference.whole,
        Role::Repository,
        meaning,
    );
    true
}

/// Whether `text` is a reference without a host.
fn is_short(text: &str) -> bool {
    !has_host(text) && text.parse::<ImageRef>().is_ok()
}

/// Writes `replacement` into the parts of `reference`, or says why that is impossible.
fn rewrite<'s>(
    reference: &SplitReference<'s>,
    collector: &mut Collector<'_, 's>,
    replacement: Replacement,
) -> Result<(), &'static str> {
    let edits = edits(reference, &replacement, collector.document)?;
    let to = replaced(&reference.whole, &replacement);
    let meaning = Meaning::Known {
        item: replacement.item,
        to,
        reaches: vec![],
    };
    let start = reference.repository.0.start();
    let occurrence = Occurrence::new(start, &*reference.whole, Role::Repository, meaning);
    collector.add_in_parts(occurrence, edits)
}

/// Each scalar that changes, and its new text.
fn edits<'s>(
    reference: &SplitReference<'s>,
    replacement: &Replacement,
    document: &Document<'_>,
) -> Result<Vec<(&'s Scalar<'s>, String)>, &'static str> {
    let SplitReference {
        registry,
        repository,
        tag,
        digest,
        room,
        ..
    } = *reference;
    let mut parts: Vec<(Value<'s>, String)> = Vec::new();
    if let Some(to) = &replacement.to {
        let pin = pin(repository.1);
        match registry {
            Some((node, old)) => {
                let slash = if old.ends_with('/') { "/" } else { "" };
                let (host, path) = apart(to, old, &repository.1[..repository.1.len() - pin.len()]);
                parts.push(((node, old), format!("{host}{slash}")));
                parts.push((repository, format!("{path}{pin}")));
            }
            None => parts.push((repository, format!("{to}{pin}"))),
        }
    }
    let mut edits = Vec::new();
    if let Some(new) = &replacement.digest {
        match (digest, tag, room) {
            (Some(value), ..) => parts.push((value, in_style_of(value.1, new))),
            (None, Some(_), Some(room)) => edits.push((room, new.to_string())),
            (None, Some(tag), None) => parts.push((tag, format!("{}@{new}", tag.1))),
            (None, None, _) => {
                let name = parts
                    .pop()
                    .map_or_else(|| repository.1.to_owned(), |(_, name)| name);
                let name = name.split('@').next().unwrap_or_default();
                parts.push((repository, format!("{name}@{new}")));
            }
        }
    }
    for ((node, _), new) in parts.into_iter().filter(|((_, old), new)| old != new) {
        edits.push((editable(node, document)?, new));
    }
    Ok(edits)
}

/// `to` in two parts, for a `registry` and a `repository`. Where the registry has a path, a
/// repository of one component stays one: Istio takes an image with a slash for all of a reference.
fn apart(to: &Destination, registry: &str, repository: &str) -> (String, String) {
    if registry.trim_end_matches('/').contains('/')
        && let Some(path) = to.repository.strip_suffix(repository)
        && let Some(path) = path.strip_suffix('/')
    {
        return (format!("{}/{path}", to.registry), repository.to_owned());
    }
    (to.registry.clone(), to.repository.clone())
}

/// What to say of a reference that the index does not know; `None` where that is nothing.
fn unknown(
    reference: &SplitReference<'_>,
    settings: &Settings<'_>,
    around: &Surroundings<'_>,
) -> Option<Meaning> {
    let SplitReference {
        registry,
        repository,
        tag,
        digest,
        base,
        whole,
        ..
    } = reference;
    let is_known = |text: &str| {
        !matches!(
            settings.index.lookup(text, Role::Repository, false),
            Lookup::Unknown | Lookup::Settled(_)
        )
    };
    let is_reference = whole.parse::<ImageRef>().is_ok();
    if whole != base && !is_reference && is_known(base) {
        return Some(Meaning::left("its tag or digest is none"));
    }
    if registry.is_some() && has_host(repository.1) && is_known(repository.1) {
        return Some(Meaning::left(
            "its registry and its repository both name a host",
        ));
    }
    let in_image = around
        .key
        .is_some_and(|key| key.to_ascii_lowercase().contains("image"));
    let is_image = registry.is_some() || tag.is_some() || digest.is_some() || in_image;
    if !settings.report_unknown || !is_image || whole.contains("://") {
        return None;
    }
    Some(if is_reference {
        Meaning::Unknown
    } else {
        Meaning::unreadable()
    })
}

/// `digest` written as `old` was: with or without its algorithm.
fn in_style_of(old: &str, digest: &Digest) -> String {
    if old.contains(':') {
        digest.to_string()
    } else {
        digest.hex()
    }
}

/// The scalar of a part, if nothing else has its value from it.
fn editable<'s>(
    node: &'s Node<'s>,
    document: &Document<'_>,
) -> Result<&'s Scalar<'s>, &'static str> {
    match node.scalar() {
        Some(scalar) if !document.is_shared(scalar) => Ok(scalar),
        _ => Err("a part of it is shared with other places by an anchor"),
    }
}
