//! Templates that are not YAML by themselves, read by their `image:` lines.

use super::candidate::Candidate;
use super::location::Location;

/// `image:` lines of a text that is not YAML by itself, such as a template.
pub(super) fn candidates(text: &str) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let start = line.trim_start().trim_start_matches("- ").trim_start();
        let Some((key, value)) = start.split_once(':') else { continue };
        let key = key.trim_matches(['"', '\'']);
        let fits = key.to_ascii_lowercase().ends_with("image") && !key.contains([' ', '{', '#']);
        if !fits || !value.starts_with([' ', '\t']) {
            continue;
        }
        let value = value.trim();
        let value = match value.chars().next().filter(|quote| ['"', '\''].contains(quote)) {
            Some(quote) => value[1..].rsplit_once(quote).map_or(value, |(inside, _)| inside),
            None => value.split(" #").next().unwrap_or_default().trim_end_matches(','),
        };
        let column = line.find(value).map_or(1, |at| line[..at].chars().count() + 1);
        let location = Location { line: number + 1, column };
        found.extend(
            Some(value)
                .filter(|value| !value.is_empty())
                .and_then(|value| Candidate::new(location, Vec::new(), value, false, key == "image")),
        );
    }
    found
}
