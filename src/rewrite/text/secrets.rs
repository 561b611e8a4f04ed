//! Values of Secrets in texts that do not parse, so that a diff can mask them.

use std::ops::Range;

/// What may be the value of a Secret in a text that cannot be read: all that follows a key, in the documents that
/// say they are one.
pub(in crate::rewrite) fn secrets(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    for document in text.split_inclusive("\n---") {
        let is_secret = document.lines().any(|line| {
            let said: String = line.chars().filter(|c| !c.is_whitespace() && !"\"',".contains(*c)).collect();
            said == "kind:Secret"
        });
        let mut start = at;
        for line in document.split_inclusive('\n').filter(|_| is_secret) {
            let body = line.trim_end_matches(['\n', '\r']);
            let indent = body.len() - body.trim_start().len();
            let from = body.find(": ").map_or(indent, |colon| colon + 2);
            if !body.trim_start().starts_with("{{") && from < body.len() {
                found.push(start + from..start + body.len());
            }
            start += line.len();
        }
        at += document.len();
    }
    found
}
