//! All of YAML, by a parser of events.

use super::node::{Document, Entry, Node, NotYaml, Scalar};
use granit_parser::{Event, Options, Parser, StrInput};
use std::ops::Range;

/// The documents of one part of a stream.
pub(super) struct Granit<'a> {
    parser: Parser<'a, StrInput<'a>>,
    /// What is read, and where the part that was asked for ends in it.
    offset: usize,
    end: usize,
    open: Vec<Open<'a>>,
    document: Document<'a>,
}

/// Collections that have begun and not ended.
enum Open<'a> {
    Sequence(Vec<Node<'a>>, usize),
    /// With the key whose value is awaited.
    Mapping(Vec<Entry<'a>>, Option<Node<'a>>, usize),
}

impl<'a> Granit<'a> {
    pub(super) fn new(source: &'a str, part: Range<usize>) -> Granit<'a> {
        // comments are not needed: no byte outside the scalars is touched
        let options: Options = granit_parser::options! { emit_comments: false };
        Granit {
            parser: Parser::new_from_str_with_options(with_end(source, &part), options),
            offset: part.start,
            end: part.len(),
            open: Vec::new(),
            document: Document::default(),
        }
    }

    fn add(&mut self, node: Node<'a>) {
        match self.open.last_mut() {
            None => self.document.root = Some(node),
            Some(Open::Sequence(items, _)) => items.push(node),
            Some(Open::Mapping(entries, key, _)) => match key.take() {
                None => *key = Some(node),
                Some(key) => entries.push((key, node)),
            },
        }
    }

    fn close(&mut self) {
        match self.open.pop() {
            Some(Open::Sequence(items, anchor)) => self.add(Node::sequence(items, anchor)),
            Some(Open::Mapping(entries, _, anchor)) => self.add(Node::mapping(entries, anchor)),
            None => {}
        }
    }
}

/// The part with the marker that follows it: what ends at a marker ends otherwise than at the end
/// of a text.
fn with_end<'a>(source: &'a str, part: &Range<usize>) -> &'a str {
    &source[part.start..source.len().min(part.end + "---".len())]
}

impl<'a> Iterator for Granit<'a> {
    type Item = Result<Document<'a>, NotYaml>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Ok((event, span)) = self.parser.next_event()? else {
                return Some(Err(NotYaml));
            };
            let span = span.byte_range().unwrap_or_default();
            let in_source = span.start + self.offset..span.end + self.offset;
            match event {
                Event::Scalar(value, style, anchor, tag) => {
                    let tag = tag.map(|tag| Box::new(tag.into_owned()));
                    let scalar = Scalar {
                        value,
                        style,
                        span: in_source,
                        anchor,
                        tag,
                    };
                    if let Some(text) = scalar.text().filter(|_| anchor != 0) {
                        self.document.anchors.insert(anchor, text.into());
                    }
                    self.add(Node::Scalar(scalar));
                }
                Event::Alias(id) => {
                    self.document.aliased.insert(id);
                    self.add(Node::Alias(id, in_source.start));
                }
                Event::SequenceStart(_, anchor, _) => {
                    self.open.push(Open::Sequence(Vec::new(), anchor))
                }
                Event::MappingStart(_, anchor, _) => {
                    self.open.push(Open::Mapping(Vec::new(), None, anchor))
                }
                Event::SequenceEnd | Event::MappingEnd => self.close(),
                Event::DocumentStart(true, _) if span.start >= self.end => return None,
                Event::DocumentEnd => return Some(Ok(std::mem::take(&mut self.document))),
                _ => {}
            }
        }
    }
}

/// The bytes of the comments of a part of `source`; `None` where this parser does not take it.
pub(crate) fn comments(source: &str, part: &Range<usize>) -> Option<Vec<Range<usize>>> {
    let mut found = Vec::new();
    for event in Parser::new_from_str(with_end(source, part)) {
        let (event, span) = event.ok()?;
        if let (Event::Comment(..), Some(span)) = (event, span.byte_range()) {
            found.push(span.start + part.start..span.end + part.start);
        }
    }
    Some(found)
}
