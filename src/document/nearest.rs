//! The known word that a misspelt one stands for.

/// The one of `known` that `word` most likely stands for, where one is near enough.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let near = |name: &str| strsim::normalized_damerau_levenshtein(&word, &name.to_lowercase());
    let best = known.into_iter().map(|name| (near(name), name)).max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(score, _)| *score >= 0.65).map(|(_, name)| name)
}
