//! What a reader asks the list for: words, a kind, and where to begin.

use crate::route::query;
use landfall_model::report::EntryKind;

/// What a reader asks the list for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) words: String,
    /// The word for a kind.
    pub(super) kind: Option<String>,
    /// How many items stand before the first one that is shown.
    pub(super) from: usize,
}

impl Asked {
    pub(super) fn read(text: Option<&str>) -> Asked {
        let from = query(text, "from")
            .and_then(|from| from.parse().ok())
            .unwrap_or_default();
        Asked {
            words: query(text, "q").unwrap_or_default(),
            kind: query(text, "kind").filter(|kind| !kind.is_empty()),
            from,
        }
    }

    /// Whether items of this kind are asked for.
    pub(super) fn wants(&self, kind: EntryKind) -> bool {
        self.kind
            .as_ref()
            .is_none_or(|wanted| *wanted == kind.to_string())
    }

    /// The address of the list with these words, and with another kind and beginning.
    pub(super) fn link(&self, kind: Option<&str>, from: usize) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        if !self.words.is_empty() {
            query.append_pair("q", &self.words);
        }
        if let Some(kind) = kind {
            query.append_pair("kind", kind);
        }
        if from > 0 {
            query.append_pair("from", &from.to_string());
        }
        match query.finish().as_str() {
            "" => "/".into(),
            query => format!("/?{query}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_asks_for_what_it_says() {
        let asked = Asked {
            words: "a&b \"c\"".into(),
            kind: Some("file".into()),
            from: 50,
        };
        let link = asked.link(Some("file"), 50);
        assert_eq!(Asked::read(link.strip_prefix("/?")), asked);
        assert_eq!(Asked::default().link(None, 0), "/");
        assert_eq!(Asked::read(Some("from=-1&kind=")), Asked::default());
    }
}
