//! The last path components of known names. Comparing them rules out nearly every scalar of a
//! document before it is parsed as a reference.

use std::collections::HashSet;

/// A set of last path components with a fast negative answer.
#[derive(Debug, Clone)]
pub(super) struct BasenameSet {
    names: HashSet<String>,
    /// The lengths of the names by their first byte: one bit for each length. The last bit is set
    /// for all longer names, too.
    lengths: Vec<u64>,
}

impl BasenameSet {
    pub(super) fn new<'n>(names: impl Iterator<Item = &'n String>) -> BasenameSet {
        let mut known = BasenameSet {
            names: HashSet::new(),
            lengths: vec![0; 256],
        };
        for name in names.map(|name| basename(name)) {
            if let Some(first) = name.bytes().next() {
                known.lengths[usize::from(first)] |= length(name);
                known.names.insert(name.to_owned());
            }
        }
        known
    }

    /// Whether the last path component of the reference `text` is in the set.
    pub(super) fn has(&self, text: &str) -> bool {
        let name = basename(text);
        let first = name
            .bytes()
            .next()
            .map_or(0, |first| self.lengths[usize::from(first)]);
        first & length(name) != 0 && self.names.contains(name)
    }
}

fn length(name: &str) -> u64 {
    1 << name.len().min(63)
}

/// The last path component of a reference, without tag and digest.
pub(super) fn basename(text: &str) -> &str {
    let mut start = 0;
    let mut end = None;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'/' => (start, end) = (at + 1, None),
            b':' => end = end.or(Some(at)),
            b'@' => {
                end = end.or(Some(at));
                break;
            }
            _ => {}
        }
    }
    &text[start..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_component_ends_at_the_tag_or_digest() {
        let names = [
            "a",
            "h/a",
            "h:5/a",
            "h:5/x/a:1",
            "h/a@b/c:d",
            "a:1@b",
            "a:1:2",
            "x@/a",
        ];
        assert_eq!(
            names.map(basename),
            ["a", "a", "a", "a", "a", "a", "a", "x"]
        );
        assert_eq!(["", "/", "a/", "@a", ":a"].map(basename), [""; 5]);
        let long = "é".repeat(70);
        let known = BasenameSet::new(["h/x/abc".to_owned(), format!("h/{long}")].iter());
        assert!(known.has("abc:1") && known.has("y/abc@z") && known.has(&long));
        assert!(!known.has("abd") && !known.has("ab") && !known.has("") && !known.has(&long[2..]));
    }
}
