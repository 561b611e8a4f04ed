//! References in parts whose repository gets a suffix: `repository`, `tag` and a digest for each
//! suffix.

use super::yaml::{Document, Entry};

/// What the keys of one mapping say about a repository that gets a suffix.
pub(crate) struct SuffixedReference<'s> {
    /// The entry of the repository, and its text.
    pub(crate) repository: (usize, &'s str),
    /// The entries that say so.
    pub(crate) parts: Vec<usize>,
    pub(crate) references: Vec<Suffixed>,
}

/// One of the references.
pub(crate) struct Suffixed {
    /// `-generic`
    pub(crate) suffix: String,
    /// The reference with suffix, tag and digest.
    pub(crate) whole: String,
}

impl<'s> SuffixedReference<'s> {
    /// `None` where the mapping is none.
    pub(crate) fn of(
        entries: &'s [Entry<'s>],
        document: &'s Document<'s>,
    ) -> Option<SuffixedReference<'s>> {
        let find = |name: &str| {
            let at = entries
                .iter()
                .position(|(key, _)| key.scalar().is_some_and(|key| key.value == name))?;
            Some((at, document.text(&entries[at].1)?.trim()))
        };
        let (repository, tag) = (find("repository")?, find("tag")?);
        let digest = |(at, (key, value)): (usize, &'s Entry<'s>)| {
            let name = key
                .scalar()?
                .value
                .strip_suffix("Digest")
                .filter(|name| !name.is_empty())?;
            let digest = document.text(value).filter(|digest| digest.contains(':'))?;
            let suffix = format!("-{name}");
            let whole = format!("{}{suffix}:{}@{}", repository.1, tag.1, digest.trim());
            Some((at, Suffixed { suffix, whole }))
        };
        let (mut parts, references): (Vec<usize>, Vec<Suffixed>) =
            entries.iter().enumerate().filter_map(digest).unzip();
        parts.extend([repository.0, tag.0]);
        (!references.is_empty()).then_some(SuffixedReference {
            repository,
            parts,
            references,
        })
    }
}
