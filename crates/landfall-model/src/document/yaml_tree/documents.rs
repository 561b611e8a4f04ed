//! The documents of a stream, read from the parser's events.

use super::{YamlAlias, YamlDocument, YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence};
use crate::document::yaml::is_bounded;
use granit_parser::{Event, Parser, StrInput, StructureStyle, options};
use std::ops::Range;

/// The error for a text that is not YAML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotYaml;

/// Reads the documents of a text one after the other, so that only one is held at a time. After an
/// error there is no further document.
pub struct YamlDocuments<'a> {
    parser: Parser<'a, StrInput<'a>>,
    /// The offset in the text at which the part to read begins. The parser's positions are relative
    /// to this offset.
    offset: usize,
    /// The length of that part. The parser gets the part and the marker after it.
    len: usize,
    builder: TreeBuilder<'a>,
    failed: bool,
}

impl<'a> YamlDocuments<'a> {
    /// The documents in the bytes `part` of `source`. `part` must end before a marker `---` at the
    /// beginning of a line, or at the end of `source`.
    pub fn new(source: &'a str, part: Range<usize>) -> YamlDocuments<'a> {
        YamlDocuments {
            parser: parser(with_marker(source, &part)),
            offset: part.start,
            len: part.len(),
            builder: TreeBuilder::default(),
            failed: false,
        }
    }
}

impl<'a> Iterator for YamlDocuments<'a> {
    type Item = Result<YamlDocument<'a>, NotYaml>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            let Ok((event, span)) = self.parser.next_event()? else {
                self.failed = true;
                return Some(Err(NotYaml));
            };
            let span = span.byte_range().unwrap_or_default();
            match event {
                Event::DocumentStart(true, _) if span.start >= self.len => return None,
                Event::DocumentEnd => return Some(Ok(std::mem::take(&mut self.builder.document))),
                event => {
                    let in_source = span.start + self.offset..span.end + self.offset;
                    self.builder.event(event, in_source);
                }
            }
        }
        None
    }
}

impl<'a> YamlNode<'a> {
    /// The root of the first document in `text`. `None` if there is no document, if it is not YAML,
    /// or if the text is too large for a tree.
    pub fn parse(text: &'a str) -> Option<YamlNode<'a>> {
        if !is_bounded(text) {
            return None;
        }
        let mut builder = TreeBuilder::default();
        // The text after the root is not parsed. It may be invalid, and a message about that needs
        // the root.
        for event in parser(text) {
            let (event, span) = event.ok()?;
            builder.event(event, span.byte_range()?);
            if let Some(root) = builder.document.root {
                return Some(root);
            }
        }
        None
    }
}

/// The root of every document in `text`. `None` if it is not YAML, or too large for trees. The root
/// of an empty document is an empty scalar.
pub(in crate::document) fn document_roots(text: &str) -> Option<Vec<YamlNode<'_>>> {
    if !is_bounded(text) {
        return None;
    }
    let mut roots = Vec::new();
    for document in YamlDocuments::new(text, 0..text.len()) {
        roots.extend(document.ok()?.root);
    }
    Some(roots)
}

/// The bytes of the comments in the bytes `part` of `source`; `None` if that part is not YAML.
pub fn comment_spans(source: &str, part: &Range<usize>) -> Option<Vec<Range<usize>>> {
    let mut spans = Vec::new();
    for event in Parser::new_from_str(with_marker(source, part)) {
        let (event, span) = event.ok()?;
        if let (Event::Comment(..), Some(span)) = (event, span.byte_range()) {
            spans.push(span.start + part.start..span.end + part.start);
        }
    }
    Some(spans)
}

fn parser(text: &str) -> Parser<'_, StrInput<'_>> {
    Parser::new_from_str_with_options(text, options! { emit_comments: false })
}

/// The part with the document marker that follows it: a scalar is parsed differently if it ends at
/// a marker instead of the end of the text.
fn with_marker<'a>(source: &'a str, part: &Range<usize>) -> &'a str {
    &source[part.start..source.len().min(part.end + "---".len())]
}

/// Builds one document after the other from events.
#[derive(Default)]
struct TreeBuilder<'a> {
    /// The collections that have begun and not ended, outermost first.
    open: Vec<OpenCollection<'a>>,
    document: YamlDocument<'a>,
}

/// A collection that has begun and not ended.
enum OpenCollection<'a> {
    Sequence(YamlSequence<'a>),
    /// A mapping, and the key whose value is read next.
    Mapping(YamlMapping<'a>, Option<YamlNode<'a>>),
}

impl<'a> TreeBuilder<'a> {
    fn event(&mut self, event: Event<'a>, span: Range<usize>) {
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                let scalar = YamlScalar {
                    value,
                    style,
                    span,
                    anchor,
                    tag: tag.map(|tag| Box::new(tag.into_owned())),
                };
                if let Some(text) = scalar.text().filter(|_| anchor != 0) {
                    self.document.anchored_texts.insert(anchor, text.into());
                }
                self.add(YamlNode::Scalar(scalar));
            }
            Event::Alias(anchor) => {
                self.document.aliased.insert(anchor);
                self.add(YamlNode::Alias(YamlAlias { anchor, span }));
            }
            Event::SequenceStart(style, anchor, _) => {
                self.open.push(OpenCollection::Sequence(YamlSequence {
                    items: Vec::new(),
                    span,
                    flow: style == StructureStyle::Flow,
                    anchor,
                }));
            }
            Event::MappingStart(style, anchor, _) => {
                let mapping = YamlMapping {
                    entries: Vec::new(),
                    span,
                    flow: style == StructureStyle::Flow,
                    anchor,
                };
                self.open.push(OpenCollection::Mapping(mapping, None));
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span.end),
            _ => {}
        }
    }

    /// Adds a complete node to the innermost open collection.
    fn add(&mut self, node: YamlNode<'a>) {
        match self.open.last_mut() {
            None => self.document.root = Some(node),
            Some(OpenCollection::Sequence(sequence)) => sequence.items.push(node),
            Some(OpenCollection::Mapping(mapping, key)) => match key.take() {
                None => *key = Some(node),
                Some(key) => mapping.entries.push(YamlEntry { key, value: node }),
            },
        }
    }

    /// Ends the innermost open collection at the byte `end`.
    fn close(&mut self, end: usize) {
        let node = match self.open.pop() {
            // free the spare capacity of the vectors: a file may have a million collections
            Some(OpenCollection::Sequence(mut sequence)) => {
                sequence.items.shrink_to_fit();
                sequence.span.end = end.max(sequence.span.start);
                YamlNode::Sequence(sequence)
            }
            Some(OpenCollection::Mapping(mut mapping, _)) => {
                mapping.entries.shrink_to_fit();
                mapping.span.end = end.max(mapping.span.start);
                YamlNode::Mapping(mapping)
            }
            None => return,
        };
        self.add(node);
    }
}
