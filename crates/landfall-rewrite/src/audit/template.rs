//! Finds the images of texts that are not YAML, such as templates and TOML, by lines whose key ends
//! in `image`.

use super::candidate::{ImageCandidate, is_list};

/// The images in lines such as `image: REF` and `sandbox_image = "REF"` of a text that is not YAML.
pub(super) fn candidates(text: &str) -> Vec<ImageCandidate> {
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
            Some(quote) => value[1..]
                .rsplit_once(quote)
                .map_or(value, |(inside, _)| inside),
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
    fn a_value_whose_text_is_also_in_its_key_has_its_own_position() {
        let text = "image: image\n- image: ge\n  agent-image: 'agent:1' # x\n";
        let found: Vec<(usize, String)> = candidates(text)
            .into_iter()
            .map(|one| (one.at, one.written))
            .collect();
        let expected = [(7, "image"), (22, "ge"), (41, "agent:1")];
        assert_eq!(found, expected.map(|(at, text)| (at, text.to_owned())));
    }
}
