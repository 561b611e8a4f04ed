//! Lists of patterns, as in options of allowed signers.

/// Whether a pattern of the list matches `text`, and no pattern with a leading `!` does
/// (`ssh_config(5)`, PATTERNS).
pub(super) fn matches_pattern_list(list: &str, text: &str) -> bool {
    let matches = |pattern: &str| matches_pattern(pattern.as_bytes(), text.as_bytes());
    let (negated, plain): (Vec<&str>, Vec<&str>) = list
        .split(',')
        .partition(|pattern| pattern.starts_with('!'));
    plain.into_iter().any(matches) && !negated.into_iter().any(|pattern| matches(&pattern[1..]))
}

/// Whether the whole text matches: `*` matches any bytes, `?` one byte.
///
/// It backtracks only to the last `*`, so it takes quadratic time at most.
fn matches_pattern(pattern: &[u8], text: &[u8]) -> bool {
    let mut pattern_at = 0;
    let mut text_at = 0;
    let mut star = None;
    while text_at < text.len() {
        match pattern.get(pattern_at) {
            Some(b'*') => {
                star = Some((pattern_at, text_at));
                pattern_at += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[text_at] => {
                pattern_at += 1;
                text_at += 1;
            }
            _ => {
                // let the last star match one more byte
                let Some((star_at, matched)) = star else {
                    return false;
                };
                star = Some((star_at, matched + 1));
                pattern_at = star_at + 1;
                text_at = matched + 1;
            }
        }
    }
    pattern[pattern_at..].iter().all(|&byte| byte == b'*')
}
