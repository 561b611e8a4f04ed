//! Split references with suffixes: `repository`, `tag` and one digest for each suffix. Each suffix
//! is appended to the repository.

use super::yaml::{YamlDocument, YamlEntry, position_of};

/// A repository to which suffixes are appended, from the keys of one mapping.
pub(crate) struct SuffixedReference<'s> {
    /// The position of the entry with the repository, and its text.
    pub(crate) repository: (usize, &'s str),
    /// The positions of all entries that are parts of the references.
    pub(crate) parts: Vec<usize>,
    pub(crate) references: Vec<SuffixedImage>,
}

/// A reference with one of the suffixes.
pub(crate) struct SuffixedImage {
    /// The suffix with its separator, such as `-generic`.
    pub(crate) suffix: String,
    /// The reference with suffix, tag and digest.
    pub(crate) whole: String,
    /// The position of the entry with its digest.
    pub(crate) digest_at: usize,
}

impl<'s> SuffixedReference<'s> {
    /// Reads the entries of a mapping. `None` if it has no repository, no tag or no digest with a
    /// suffix.
    pub(crate) fn of(
        entries: &'s [YamlEntry<'s>],
        document: &'s YamlDocument<'s>,
    ) -> Option<SuffixedReference<'s>> {
        let repository_at = position_of(entries, "repository")?;
        let repository = document.text(&entries[repository_at].value)?.trim();
        let tag_at = position_of(entries, "tag")?;
        let tag = document.text(&entries[tag_at].value)?.trim();
        let mut parts = vec![repository_at, tag_at];
        let mut references = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            if let Some((name, digest)) = suffix_digest(entry, document) {
                let suffix = format!("-{name}");
                let whole = format!("{repository}{suffix}:{tag}@{digest}");
                references.push(SuffixedImage {
                    suffix,
                    whole,
                    digest_at: at,
                });
                parts.push(at);
            }
        }
        (!references.is_empty()).then_some(SuffixedReference {
            repository: (repository_at, repository),
            parts,
            references,
        })
    }
}

/// The suffix and the digest of an entry such as `genericDigest: sha256:…`.
fn suffix_digest<'s>(
    entry: &'s YamlEntry<'s>,
    document: &'s YamlDocument<'s>,
) -> Option<(&'s str, &'s str)> {
    let name = entry.key.scalar()?.value.strip_suffix("Digest")?;
    let digest = document.text(&entry.value)?.trim();
    (!name.is_empty() && digest.contains(':')).then_some((name, digest))
}
