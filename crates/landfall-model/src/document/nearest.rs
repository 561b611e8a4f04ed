//! The known word that a misspelt one probably means.

/// The word of `known` that is most like `word`; `None` where none is similar enough.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let near = |name: &str| strsim::normalized_damerau_levenshtein(&word, &name.to_lowercase());
    let best = known
        .into_iter()
        .map(|name| (near(name), name))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(score, _)| *score >= 0.65)
        .map(|(_, name)| name)
}
