//! Reads the actions `{{ … }}` of Go templates: the values, variables, helpers and texts in them.

/// The content of each `{{ … }}`, except `if`, `else`, `end` and comments.
pub(super) fn actions(text: &str) -> impl Iterator<Item = &str> {
    let inside = text
        .split("{{")
        .skip(1)
        .map(|rest| rest.split("}}").next().unwrap_or(rest));
    let inside = inside.map(|action| action.trim_matches(['-', ' ', '\t', '\n']));
    inside.filter(|action| {
        !["if ", "else", "end", "/*"]
            .iter()
            .any(|word| action.starts_with(word))
    })
}

/// The paths after each `.Values.`.
pub(super) fn value_paths(action: &str) -> impl Iterator<Item = &str> {
    action.split(".Values.").skip(1).map(|rest| {
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c)))
            .unwrap_or(rest.len());
        rest[..end].trim_end_matches('.')
    })
}

/// Whether an action only inserts values, without a default or a helper.
pub(super) fn is_value_alone(action: &str) -> bool {
    const HARMLESS: [&str; 8] = ["|", "quote", "trim", "toString", "tpl", ".", "$", "toYaml"];
    words(action).all(|word| {
        word.starts_with(".Values.") || word.starts_with("$.Values.") || HARMLESS.contains(&word)
    })
}

/// The names of the helpers that an action calls.
pub(super) fn calls(action: &str) -> impl Iterator<Item = &str> {
    let included = action.split("include ").skip(1);
    let called = action.split("template ").skip(1);
    included
        .chain(called)
        .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
}

/// The quoted texts of an action.
pub(super) fn literals(action: &str) -> impl Iterator<Item = &str> {
    action.split('"').skip(1).step_by(2)
}

/// The variables that an action reads: `$image` in `$image.tag`.
pub(super) fn variables(action: &str) -> impl Iterator<Item = &str> {
    words(action).filter_map(|word| {
        let name = word.strip_prefix('$')?.split('.').next()?;
        (!name.is_empty()).then(|| &word[..=name.len()])
    })
}

/// The expressions that `text` assigns to a variable.
pub(super) fn assignments<'t>(text: &'t str, variable: &str) -> impl Iterator<Item = &'t str> {
    text.match_indices(variable).filter_map(move |(at, _)| {
        let rest = text[at + variable.len()..].trim_start();
        let value = rest.strip_prefix(":=").or_else(|| rest.strip_prefix('='))?;
        value.split("}}").next()
    })
}

/// The words of an action, without parentheses.
pub(super) fn words(action: &str) -> impl Iterator<Item = &str> {
    action
        .split(|c: char| c.is_whitespace() || "()".contains(c))
        .filter(|word| !word.is_empty())
}

/// The keys of a word that is a field of the current object (`.`), not of the values, the chart or
/// the release.
pub(super) fn field_keys(word: &str) -> Option<Vec<&str>> {
    const ROOT_OBJECTS: [&str; 6] = [
        "Values",
        "Chart",
        "Release",
        "Capabilities",
        "Template",
        "Files",
    ];
    let keys: Vec<&str> = word.strip_prefix('.')?.split('.').collect();
    (!keys[0].is_empty() && !ROOT_OBJECTS.contains(&keys[0])).then_some(keys)
}

/// The text without its comments, which may contain example calls of helpers.
pub(super) fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once("*/").map_or("", |(_, rest)| rest)
    })
}
