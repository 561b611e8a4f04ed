//! Suggestions for misspelt keys, names and flags.

/// The word of `known` that is most similar to `word`; `None` if no word is similar enough.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let scored = known.into_iter().map(|name| {
        let score = strsim::normalized_damerau_levenshtein(&word, &name.to_lowercase());
        (score, name)
    });
    let (score, name) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (score >= 0.65).then_some(name)
}
