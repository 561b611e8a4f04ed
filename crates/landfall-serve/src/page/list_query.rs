//! The query of the list: search words, a kind, and the first item to show.

use crate::route::query_value;
use landfall_model::report::EntryKind;

/// The query of the list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ListQuery {
    /// The search words, as the reader typed them.
    pub(super) words: String,
    /// The word for a kind, such as `image`.
    pub(super) kind: Option<String>,
    /// The number of items to skip.
    pub(super) from: usize,
}

impl ListQuery {
    /// Parses a query string. An empty kind, and a number that is not valid, are ignored: a reader
    /// may edit the URL.
    pub(super) fn parse(query: Option<&str>) -> ListQuery {
        ListQuery {
            words: query_value(query, "q").unwrap_or_default(),
            kind: query_value(query, "kind").filter(|kind| !kind.is_empty()),
            from: query_value(query, "from")
                .and_then(|from| from.parse().ok())
                .unwrap_or_default(),
        }
    }

    /// Whether the query asks for items of this kind.
    pub(super) fn wants(&self, kind: EntryKind) -> bool {
        match &self.kind {
            Some(wanted) => *wanted == kind.to_string(),
            None => true,
        }
    }

    /// The URL of the list with the same words, for this kind and from this item on.
    pub(super) fn link(&self, kind: Option<&str>, from: usize) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        if !self.words.is_empty() {
            query.append_pair("q", &self.words);
        }
        if let Some(kind) = kind {
            query.append_pair("kind", kind);
        }
        // the shortest URL for each page, so that links and bookmarks agree
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
    fn a_link_parses_back_to_its_query() {
        let query = ListQuery {
            words: "a&b \"c\"".into(),
            kind: Some("file".into()),
            from: 50,
        };
        let link = query.link(Some("file"), 50);
        assert_eq!(ListQuery::parse(link.strip_prefix("/?")), query);
        assert_eq!(ListQuery::default().link(None, 0), "/");
        assert_eq!(
            ListQuery::parse(Some("from=-1&kind=")),
            ListQuery::default()
        );
    }
}
