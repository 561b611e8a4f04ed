//! Repositories to which a suffix is appended, with one digest for each suffix: `genericDigest`
//! next to `repository` is the digest of `<repository>-generic` (Cilium's operator).

use crate::edit::replaced;
use crate::index::{ReferenceIndex, ReferenceLookup};
use crate::inventory::Inventory;
use crate::occurrence::{Occurrence, ReferenceMeaning, ReferenceRole};
use crate::split_reference::{SuffixedImage, SuffixedReference};
use crate::walk::{
    ImageClaim, MappingContext, NodeStep, ReferenceCollector, ReferenceRule, start_of,
};
use landfall_model::Destination;

pub(super) struct SuffixedRule;

/// The meaning of a repository with suffixes, and each entry that changes: its position and its new
/// text.
type SuffixedChange = (ReferenceMeaning, Vec<(usize, String)>);

impl ReferenceRule for SuffixedRule {
    fn references<'s>(
        &self,
        collector: &mut ReferenceCollector<'_, 's>,
        members: &MappingContext<'s>,
        taken: &[usize],
    ) -> Vec<usize> {
        let Some(found) = SuffixedReference::of(members.entries, collector.document) else {
            return Vec::new();
        };
        if found.parts.iter().any(|at| taken.binary_search(at).is_ok()) {
            return Vec::new();
        }
        let Some((meaning, changes)) = change(&found, collector.settings.index) else {
            return Vec::new();
        };
        let (repository_at, repository) = found.repository;
        let node = &members.entries[repository_at].value;
        let role = ReferenceRole::Repository;
        let scalars = changes.into_iter().map(|(at, text)| {
            let scalar = members.entries[at].value.scalar();
            let scalar = scalar.filter(|scalar| !collector.document.is_shared(scalar))?;
            Some((scalar, text))
        });
        let written = match scalars.collect::<Option<Vec<_>>>() {
            None => Err("other values share it by an anchor"),
            Some(scalars) => {
                let start = node.span().start;
                let occurrence = Occurrence::new(start, repository, role, meaning);
                collector.add_in_parts(occurrence, scalars)
            }
        };
        if let Err(why) = written {
            collector.add(node, repository, role, ReferenceMeaning::left(why));
        }
        found.parts
    }

    // only one of the images is used, so only those in the lock are reported; if the lock has none
    // of them, all are reported
    fn candidates<'s>(
        &self,
        collector: &mut ReferenceCollector<'_, 's>,
        inventory: &Inventory<'_>,
        members: &MappingContext<'s>,
        _taken: &[usize],
    ) -> Vec<usize> {
        let Some(found) = SuffixedReference::of(members.entries, collector.document) else {
            return Vec::new();
        };
        let Some(at) = start_of(&members.entries[found.repository.0].value) else {
            return Vec::new();
        };
        let all: Vec<&SuffixedImage> = found.references.iter().collect();
        let mut reported = all.clone();
        reported.retain(|image| inventory.has_image(&image.whole));
        if reported.is_empty() {
            reported = all;
        }
        collector.path.push(NodeStep::Key("repository"));
        for image in reported {
            let claim = ImageClaim {
                written: &image.whole,
                sure: true,
                in_container: false,
            };
            collector.add_claim(at, claim);
        }
        collector.path.pop();
        found.parts
    }
}

/// Looks up all images of the repository. The repository is changed if the destinations of the
/// images are the same without the suffixes. The digest of each image whose index was trimmed is
/// changed too. `None` if the lock has none of the images.
fn change(found: &SuffixedReference<'_>, index: &ReferenceIndex) -> Option<SuffixedChange> {
    let (repository_at, repository) = found.repository;
    let mut bases: Vec<String> = Vec::new();
    let mut changes = Vec::new();
    let mut settled = None;
    let mut first_known = None;
    for SuffixedImage {
        suffix,
        whole,
        digest_at,
    } in &found.references
    {
        match index.lookup(whole, ReferenceRole::Repository, false) {
            ReferenceLookup::Unknown => {}
            ReferenceLookup::Settled(item) => {
                settled = settled.or(Some(ReferenceMeaning::Settled { item }));
                bases.push(repository.to_owned());
            }
            ReferenceLookup::Left(why) => return Some((ReferenceMeaning::Left { why }, vec![])),
            ReferenceLookup::Known(replacement) => {
                let to = replacement.to.as_ref().map(Destination::to_string);
                let base = match &to {
                    None => Some(repository),
                    Some(to) => to.strip_suffix(suffix.as_str()),
                };
                let Some(base) = base else {
                    let why = format!(
                        "the destination of {} is {}, which does not end in {suffix}",
                        replacement.item,
                        to.unwrap_or_default()
                    );
                    return Some((ReferenceMeaning::Left { why }, vec![]));
                };
                bases.push(base.to_owned());
                let digest = replacement.digest.as_ref();
                changes.extend(digest.map(|digest| (*digest_at, digest.to_string())));
                first_known = first_known.or(Some((
                    replacement.item.clone(),
                    match &to {
                        Some(_) => base.to_owned(),
                        None => replaced(whole, &replacement),
                    },
                )));
            }
        }
    }
    let base = bases.first()?;
    if bases.iter().any(|other| other != base) {
        let why = "its images have different destinations";
        return Some((ReferenceMeaning::left(why), vec![]));
    }
    let Some((item, to)) = first_known else {
        return settled.map(|settled| (settled, vec![]));
    };
    if base != repository {
        changes.push((repository_at, base.clone()));
    }
    let reaches = Vec::new();
    Some((ReferenceMeaning::Known { item, to, reaches }, changes))
}

#[cfg(test)]
mod tests {
    use crate::{ReferenceIndex, ReferenceMeaning, RewriteOptions, TextSyntax, rewrite};
    use landfall_item::lockfile::Lock;
    use landfall_model::{DestinationMap, Digest};

    #[test]
    fn the_digest_of_a_trimmed_index_is_written_under_the_key_of_its_suffix() {
        let digest = |name: &str| Digest::sha256(name.as_bytes());
        let images = ["aws", "generic"].map(|suffix| {
            let digest = digest(suffix);
            format!(
                "- {{name: 'quay.io/c/operator-{suffix}:v1', digest: {digest}, mediaType: m, size: \
                 1}}\n"
            )
        });
        let lock = Lock::parse("l", &format!("version: 1\nimages:\n{}", images.concat())).unwrap();
        let mapping = DestinationMap::to("r:5/p".parse().unwrap());
        let index = ReferenceIndex::new(&lock, &mapping)
            .with_replaced([(digest("generic"), digest("trimmed"))]);
        let values = |repository: &str, generic: &str| {
            format!(
                "repository: {repository}\ntag: v1\nawsDigest: {}\ngenericDigest: {}\n",
                digest("aws"),
                digest(generic)
            )
        };
        let expected = values("r:5/p/c/operator", "trimmed");
        for (repository, generic, changes) in [
            ("quay.io/c/operator", "generic", 1),
            ("r:5/p/c/operator", "generic", 1),
            ("r:5/p/c/operator", "trimmed", 0),
        ] {
            let source = values(repository, generic);
            let options = RewriteOptions::default();
            let result = rewrite(&source, TextSyntax::Document, &index, options);
            assert_eq!(result.text, expected);
            let found = &result.scan.found;
            let changed = found.iter().filter(|one| one.is_change()).count();
            assert_eq!(changed, changes, "{found:?}");
            let is_left = |meaning: &_| matches!(meaning, ReferenceMeaning::Left { .. });
            assert!(!found.iter().any(|one| is_left(&one.meaning)), "{found:?}");
        }
    }
}
