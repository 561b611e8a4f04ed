//! Finds the images of texts that are not YAML, such as templates and TOML, by lines whose key ends
//! in `image`.

use super::candidate::{ImageCandidate, is_list};
use crate::text::JoinedText;

/// The images in lines such as `image: REF` and `sandbox_image = "REF"` of a text that is not YAML.
pub(crate) fn candidates(text: &str) -> Vec<ImageCandidate> {
    let Some(joined) = JoinedText::of(text) else {
        return in_lines(text);
    };
    let mut found = in_lines(joined.text());
    found
        .iter_mut()
        .for_each(|one| one.at = joined.offset(one.at));
    found
}

/// The images in the lines of `text`, whose quoted lines are joined.
fn in_lines(text: &str) -> Vec<ImageCandidate> {
    let mut found = Vec::new();
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let start = end;
        end += line.len();
        let Some((key, value, assigned)) = entry(line) else {
            continue;
        };
        let value = match value
            .chars()
            .next()
            .filter(|quote| ['"', '\''].contains(quote))
        {
            Some(quote) => unquoted(&value[1..], quote).unwrap_or(value),
            None => value
                .split(" #")
                .next()
                .unwrap_or_default()
                .trim_end_matches(','),
        };
        let at = start + (value.as_ptr() as usize - line.as_ptr() as usize);
        // a script may assign any text to such a variable
        if !value.is_empty() && (!assigned || is_list(value)) {
            found.extend(ImageCandidate::all(at, &[], value, false, key == "image"));
        }
    }
    found
}

/// The text before the closing quote: the first one that a comment follows, or else the last one,
/// since expressions of a template can contain quotes.
fn unquoted(text: &str, quote: char) -> Option<&str> {
    let mut quotes = text.match_indices(quote);
    let before_comment = quotes.find(|(at, _)| {
        let after = &text[at + 1..];
        after.starts_with([' ', '\t']) && after.trim_start().starts_with('#')
    });
    match before_comment {
        Some((at, _)) => Some(&text[..at]),
        None => text.rsplit_once(quote).map(|(inside, _)| inside),
    }
}

/// The key and value of a line whose key ends in `image`, and whether they are separated by `=`.
fn entry(line: &str) -> Option<(&str, &str, bool)> {
    let line = line.trim_start().trim_start_matches("- ").trim();
    let (key, value) = line.split_once([':', '='])?;
    let assigned = line[key.len()..].starts_with('=');
    let name = key.trim_end().trim_matches(['"', '\'']);
    let is_key = name.to_ascii_lowercase().ends_with("image") && !name.contains([' ', '{', '#']);
    (is_key && (assigned || value.starts_with([' ', '\t']))).then_some((
        name,
        value.trim(),
        assigned,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_is_that_of_the_value_even_if_the_key_contains_its_text() {
        let text = "image: image\n- image: ge\n  agent-image: 'agent:1' # it's x\n\
                    image: \"quay.io/\\\n  a:1\"\nimage: b:2\n";
        let found: Vec<(usize, String)> = candidates(text)
            .into_iter()
            .map(|one| (one.at, one.written))
            .collect();
        let expected = [
            (7, "image"),
            (22, "ge"),
            (41, "agent:1"),
            (67, "quay.io/a:1"),
            (91, "b:2"),
        ];
        assert_eq!(found, expected.map(|(at, text)| (at, text.to_owned())));
    }
}
