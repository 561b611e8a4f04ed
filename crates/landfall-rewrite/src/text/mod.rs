//! Finds references and URLs in texts without structure. A word is a reference only if nothing
//! before or after it could belong to the reference.

mod dockerfile;
#[cfg(test)]
mod dockerfile_tests;
mod image_command;
mod meaning;
#[cfg(test)]
mod pattern_tests;
mod secrets;
mod shell;
mod terraform;
#[cfg(test)]
mod tests;
mod url;
mod variables;

use self::dockerfile::dockerfiles;
use self::meaning::{NeighbouringRegistry, decide, untagged_container_images};
use self::terraform::AddressedChart;
use crate::index::pin;
use crate::occurrence::{Occurrence, ReferenceRole};
use crate::scan_result::ScanSettings;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

pub(super) use self::dockerfile::{candidates as dockerfile_candidates, images, is_dockerfile};
pub(crate) use self::image_command::engine_images;
pub(crate) use self::meaning::template_comments;
pub use self::secrets::secrets;
pub(crate) use self::shell::{git_clones, helm_charts, is_separator, words};
pub(super) use self::terraform::{TerraformResource, resources};
pub(super) use self::url::{UrlWord, at as url_at, is_assigned};
pub(crate) use self::variables::ShellVariables;
pub(super) use self::variables::{has_placeholder, reference_at};

/// Whether a text can have comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextComments {
    /// For example, because it has several lines.
    Possible,
    /// It is a value or a comment itself.
    None,
}

/// Finds every reference in `text`. `role` is the role of the whole text.
pub(super) fn scan(
    settings: &ScanSettings<'_>,
    text: &str,
    comments: TextComments,
    role: ReferenceRole,
) -> Vec<Occurrence> {
    let Some(joined) = JoinedText::of(text) else {
        return scan_words(settings, text, comments, role);
    };
    scan_words(settings, joined.text(), comments, role)
        .into_iter()
        .map(|occurrence| joined.restored(occurrence))
        .collect()
}

/// Finds every reference in `text`, whose quoted lines are joined.
fn scan_words(
    settings: &ScanSettings<'_>,
    text: &str,
    comments: TextComments,
    role: ReferenceRole,
) -> Vec<Occurrence> {
    let mut found = Vec::new();
    let unread = if comments == TextComments::Possible && !settings.options.comments {
        meaning::comments(text)
    } else {
        Vec::new()
    };
    let mut marks = TextMarks::of(text);
    let mut words = WordIter { text, at: 0 };
    let mut comment = unread.iter().peekable();
    while let Some(word) = words.next() {
        while comment
            .next_if(|comment| comment.end <= word.start)
            .is_some()
        {}
        if comment
            .peek()
            .is_some_and(|comment| comment.start <= word.start)
        {
            continue;
        }
        let occurrence = match url::at(text, &word, settings.limits.reference_bytes) {
            Some(url) => {
                // a URL with placeholders is longer than its first word
                words.at = words.at.max(url.end);
                url::decide(settings, text, &url)
            }
            None => url::without_scheme(settings, text, word.clone()).or_else(|| {
                decide(
                    settings,
                    text,
                    &ReferenceWord::of(text, word),
                    role,
                    &mut marks,
                )
            }),
        };
        found.extend(occurrence.map(|mut occurrence| {
            if let Some(why) = marks
                .keeps(occurrence.at)
                .filter(|_| occurrence.is_change())
            {
                occurrence.leave(why);
            }
            occurrence
        }));
    }
    found
}

/// The scheme of charts and artifacts in a registry.
pub(crate) const OCI: &str = "oci://";

/// Schemes that may precede a reference.
pub(super) const SCHEMES: [&str; 4] = ["docker", "oci", "docker-image", "container"];

/// Those of them that precede images only, whose missing tag means `latest`.
const IMAGE_SCHEMES: [&str; 2] = ["docker", "docker-image"];

/// Operators between the name of a shell variable and its default.
const OPERATORS: [&str; 3] = [":-", ":=", "-"];

/// Iterates over the runs of bytes that may be in references.
pub(super) struct WordIter<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
}

impl Iterator for WordIter<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let start = self.at + bytes[self.at..].iter().position(|byte| is_inner(*byte))?;
        let len = bytes[start..]
            .iter()
            .position(|byte| !is_inner(*byte))
            .unwrap_or(bytes.len() - start);
        self.at = start + len;
        Some(start..self.at)
    }
}

/// Whether references may contain `byte`.
fn is_inner(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._/:@-".contains(&byte)
}

/// A word without the scheme or variable that may precede a reference in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReferenceWord {
    /// The bytes of the word.
    pub(super) span: Range<usize>,
    /// The offset of the placeholder `${IMAGE:-…}`, if the word is its default.
    pub(super) placeholder: Option<usize>,
    /// Whether a scheme of images precedes the word, such as `docker://`.
    pub(super) is_image: bool,
}

impl ReferenceWord {
    /// The word at `span` of `text`, without a scheme, and without the name and operator of a shell
    /// variable.
    pub(super) fn of(text: &str, mut span: Range<usize>) -> ReferenceWord {
        let mut placeholder = None;
        if text[..span.start].ends_with("${") {
            let operators = OPERATORS.iter();
            let ends =
                operators.filter_map(|sign| Some(text[span.clone()].find(sign)? + sign.len()));
            if let Some(len) = ends.min() {
                placeholder = Some(span.start - "${".len());
                span.start += len;
            }
        }
        let word = &text[span.clone()];
        let before = word.split_once("://").map(|(before, _)| before);
        // a label may precede the scheme, as in the labels of Gitea's runners
        let scheme = before.and_then(|before| before.rsplit(':').next());
        let scheme = scheme.filter(|scheme| SCHEMES.contains(scheme));
        let of_scheme = scheme.and(before).map(|before| before.len() + "://".len());
        let of_ostree = of_scheme.is_none().then(|| ostree_prefix(word)).flatten();
        span.start += of_scheme.or(of_ostree).unwrap_or(0);
        ReferenceWord {
            span,
            placeholder,
            is_image: of_ostree.is_some()
                || scheme.is_some_and(|scheme| IMAGE_SCHEMES.contains(&scheme)),
        }
    }
}

/// The length of what rpm-ostree writes before the name of an image in a registry, such as
/// `ostree-unverified-registry:`, `ostree-remote-registry:REMOTE:` or
/// `ostree-image-signed:registry:`.
fn ostree_prefix(word: &str) -> Option<usize> {
    let rest = word.strip_prefix("ostree-")?;
    let of_remote = || rest.strip_prefix("remote-registry:")?.split_once(':');
    let name = rest
        .strip_prefix("unverified-registry:")
        .or_else(|| of_remote().map(|(_, name)| name))
        .or_else(|| rest.split_once(":registry:").map(|(_, name)| name))?;
    Some(word.len() - name.len())
}

/// Whether a reference may begin after `before`.
pub(super) fn begins(before: &str) -> bool {
    let Some(last) = before.chars().next_back() else {
        return true;
    };
    match last {
        // the operator of a shell variable's default
        '-' | '=' => true,
        // a scheme
        '/' => before.ends_with("://"),
        _ => {
            last.is_whitespace()
                || "\"'`([,;|&<>\u{feff}{".contains(last) && !before.ends_with("\\{")
        }
    }
}

/// The end of a word that begins like a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WordEnd {
    /// It is a reference up to this offset.
    At(usize),
    /// A placeholder follows, which completes the reference.
    Placeholder,
    /// It is a pattern, or a part of a longer word.
    Pattern,
    /// It is the key of a mapping.
    Key,
}

/// The end of the word at `span` of `text`.
pub(super) fn end(text: &str, span: &Range<usize>) -> WordEnd {
    let word = &text[span.clone()];
    let before = &text[..span.start];
    let after = &text[span.end..];
    let mut rest = after.chars();
    let next = rest.next();
    let then = rest.next();
    match next {
        Some('{' | '%' | '<') => return WordEnd::Placeholder,
        Some('$')
            if then.is_some_and(|then| then.is_ascii_alphanumeric() || "_{(".contains(then)) =>
        {
            return WordEnd::Placeholder;
        }
        Some('$' | '*' | '(' | '[' | '+' | '?' | '^') => return WordEnd::Pattern,
        Some('\\') if !ends(after) => return WordEnd::Pattern,
        _ => {}
    }
    if word.ends_with([':', '@']) {
        match next {
            Some(next) if next.is_whitespace() && begins_entry(before, &['{', '\n']) => {
                return WordEnd::Key;
            }
            // a colon in a sentence
            Some(' ' | '\t' | ',' | ';' | '|' | '&' | '>') => {}
            _ => return WordEnd::Placeholder,
        }
    }
    // punctuation at the end belongs to the sentence
    let len = word
        .trim_end_matches(['.', '-', '_'])
        .trim_end_matches(':')
        .len();
    let word = &word[..len];
    let after = &text[span.start + len..];
    if let Some(end) = quoted(before, word, after) {
        return end;
    }
    // a name without a slash gets one by a change, so it must not decide about its neighbour alone
    let has_alternative = |beside: &str| {
        let are_paths = word.contains('/') && beside.contains('/');
        !beside.is_empty() && (pin(word).is_empty() || !are_paths)
    };
    let right = after
        .strip_prefix('|')
        .and_then(|side| side.split(is_outer).next());
    let left = before
        .strip_suffix('|')
        .and_then(|side| side.rsplit(is_outer).next());
    if [left, right].into_iter().flatten().any(has_alternative) || !ends(after) {
        return WordEnd::Pattern;
    }
    WordEnd::At(span.start + len)
}

fn is_outer(c: char) -> bool {
    !u8::try_from(c).is_ok_and(is_inner)
}

/// The end of `word` if a closing quote or bracket and then a colon or `@` follow: `"name": …`,
/// `"name":$TAG`.
fn quoted(before: &str, word: &str, after: &str) -> Option<WordEnd> {
    let escaped = after
        .strip_prefix('\\')
        .filter(|rest| rest.starts_with(['"', '\'']));
    let mut rest = escaped.unwrap_or(after).chars();
    let close = rest.next().filter(|close| "\"'`})]".contains(*close))?;
    let sign = rest.next().filter(|sign| matches!(sign, ':' | '@'))?;
    let following = rest.next().filter(|next| !next.is_whitespace());
    let opening = before
        .strip_suffix(['"', '\''])
        .filter(|_| matches!(close, '"' | '\'') && sign == ':');
    let is_key = opening.is_some_and(|before| {
        begins_entry(
            before.strip_suffix('\\').unwrap_or(before),
            &['{', '\n', ','],
        )
    });
    match following {
        Some(next) if is_key && (!pin(word).is_empty() || "\"'{[\\".contains(next)) => {
            Some(WordEnd::Key)
        }
        None if is_key => Some(WordEnd::Key),
        Some(next)
            if next.is_ascii_alphanumeric() || "_${%<\"'(*[".contains(next) || sign == '@' =>
        {
            Some(WordEnd::Placeholder)
        }
        _ => None,
    }
}

/// Whether an entry of a mapping may begin after `before`: at the beginning, or after one of
/// `signs`.
fn begins_entry(before: &str, signs: &[char]) -> bool {
    let before = before.trim_end_matches([' ', '\t', '-', '?', '\u{feff}']);
    before.is_empty() || before.ends_with(signs)
}

/// Whether a reference may end before `after`.
fn ends(after: &str) -> bool {
    let mut rest = after.chars();
    let Some(next) = rest.next() else { return true };
    let then = rest.next();
    let is_joined =
        then.is_some_and(|then| then.is_ascii_alphanumeric() || "./:@-_${".contains(then));
    match next {
        '\\' => matches!(
            then,
            Some('"' | '\'' | 'n' | 'r' | 't' | '\\' | '\n' | '\r')
        ),
        // in `"name"tag`, the reference continues after the quote
        '"' | '\'' | '`' | '}' | ')' | ']' => {
            !is_joined
                || (matches!(then, Some(':' | '.'))
                    && !rest.next().is_some_and(|next| next.is_ascii_alphanumeric()))
        }
        '.' | ':' | '-' | '_' => !is_joined,
        _ => next.is_whitespace() || ",;|&<>".contains(next),
    }
}

/// The positions with a special meaning in a text.
pub(super) struct TextMarks {
    /// The offsets of the images of Dockerfiles, and of the untagged images of containers.
    images: BTreeSet<usize>,
    /// The charts of Terraform and of helm's commands, by the offset of their address.
    charts: BTreeMap<usize, AddressedChart>,
    kept: Vec<(Range<usize>, &'static str)>,
    registry: NeighbouringRegistry,
}

impl TextMarks {
    pub(super) fn of(text: &str) -> TextMarks {
        let mut offsets = BTreeSet::from_iter(untagged_container_images(text));
        for part in dockerfiles(text) {
            let images = images(&text[part.clone()]).into_iter();
            offsets.extend(images.map(|image| part.start + image.origin.start));
        }
        let mut charts = terraform::chart_addresses(text);
        charts.extend(shell::chart_addresses(text));
        TextMarks {
            images: offsets,
            charts,
            kept: kept(text),
            registry: NeighbouringRegistry::default(),
        }
    }

    /// The reason why nothing at the byte `at` may be changed, if there is one.
    pub(super) fn keeps(&self, at: usize) -> Option<&'static str> {
        let next = self.kept.partition_point(|(range, _)| range.end <= at);
        self.kept
            .get(next)
            .filter(|(range, _)| range.start <= at)
            .map(|(_, why)| *why)
    }
}

/// The lines of `text` with their ends, each with the offset of its first byte.
pub(crate) fn lines_at(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut next = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = next;
        next += line.len();
        (start, line)
    })
}

// Finds the `kind` of documents in texts that are not YAML.

/// The number of bytes after `kind:` that are searched. Without a limit, a text that repeats the
/// word would take quadratic time.
const KIND_BYTES: usize = 256;

/// The documents of a stream, split at their markers.
pub(super) fn documents(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let mut at = 0;
    text.split_inclusive("\n---").map(move |document| {
        let start = at;
        at += document.len();
        (start..at, document)
    })
}

/// Whether the value of a `kind` in `document` contains one of the words `kinds`. The value may be
/// a template call, so each word of it is compared.
pub(super) fn is_of_kind(document: &str, kinds: &[&str]) -> bool {
    document.match_indices("kind").any(|(at, key)| {
        let value = kind_value(&document[at + key.len()..]);
        let mut words = value.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| kinds.contains(&word))
    })
}

/// The first line of the value in `rest`, the text after a `kind`. Empty if the `kind` is not a
/// key.
fn kind_value(rest: &str) -> &str {
    let Some(value) = rest
        .trim_start_matches(['"', '\'', ' ', '\t'])
        .strip_prefix(':')
    else {
        return "";
    };
    let value = value.trim_start();
    let value = &value[..value.floor_char_boundary(KIND_BYTES)];
    value.lines().next().unwrap_or_default()
}

// Finds documents in which nothing may be changed, in texts that are not YAML.

/// The reason why nothing in the schema of a CustomResourceDefinition is changed.
pub(super) const CRD_SCHEMA: &str = "it is in the schema of a CustomResourceDefinition";

/// The reason why nothing in a mirror set is changed.
pub(super) const MIRROR_SET: &str = "it names the source of a mirror";

/// Kinds of documents in which nothing is changed, with the reason.
const KINDS: [(&str, &str); 4] = [
    ("CustomResourceDefinition", CRD_SCHEMA),
    ("ImageDigestMirrorSet", MIRROR_SET),
    ("ImageTagMirrorSet", MIRROR_SET),
    ("ImageContentSourcePolicy", MIRROR_SET),
];

/// The parts of `text` in which nothing may be changed, with the reason: whole documents, and lines
/// of registries.conf.
pub(super) fn kept(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let parts = documents(text).map(|(range, document)| match reason_to_keep(document) {
        Some(why) => vec![(range, why)],
        None => mirrored(document, range.start),
    });
    parts.flatten().collect()
}

/// The lines of a registries.conf that name a repository with mirrors. `document` begins at the
/// byte `start`.
fn mirrored(document: &str, start: usize) -> Vec<(Range<usize>, &'static str)> {
    let mut found = Vec::new();
    if !document.contains("[[registry]]") {
        return found;
    }
    let mut end = start;
    for line in document.split_inclusive('\n') {
        let range = end..end + line.len();
        end = range.end;
        let key = line.split_once('=').map(|(key, _)| key.trim());
        if let Some("prefix" | "location") = key {
            found.push((range, MIRROR_SET));
        }
    }
    found
}

fn reason_to_keep(document: &str) -> Option<&'static str> {
    // a template may contain the schema without the `kind`
    if document.contains("openAPIV3Schema") {
        return Some(CRD_SCHEMA);
    }
    // searching for the word is faster than reading the `kind`, and most documents lack the word
    let (_, reason) = KINDS
        .iter()
        .find(|(kind, _)| document.contains(kind) && is_of_kind(document, &[kind]))?;
    Some(reason)
}

// Joins the lines of double-quoted values. In YAML, a backslash at the end of a line joins the
// line with the text of the next one (YAML 1.2.2, 7.3.1), so a reference can have several lines.

/// A text without the escaped line breaks in its double quotes.
pub(super) struct JoinedText {
    text: String,
    /// For each line break that was removed, its offset in `text`, and the offset in the original
    /// text of what follows it.
    cuts: Vec<(usize, usize)>,
}

impl JoinedText {
    /// Joins the lines of `text`. `None` if it has no such line breaks.
    pub(crate) fn of(text: &str) -> Option<JoinedText> {
        let breaks = escaped_breaks(text);
        if breaks.is_empty() {
            return None;
        }
        let mut joined = JoinedText {
            text: String::with_capacity(text.len()),
            cuts: Vec::with_capacity(breaks.len()),
        };
        let mut done = 0;
        for span in breaks {
            joined.text.push_str(&text[done..span.start]);
            joined.cuts.push((joined.text.len(), span.end));
            done = span.end;
        }
        joined.text.push_str(&text[done..]);
        Some(joined)
    }

    /// The joined text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The offset in the original text of the byte `at` of the joined text.
    pub(crate) fn offset(&self, at: usize) -> usize {
        let after = self.cuts.partition_point(|(cut, _)| *cut <= at);
        let cut = after.checked_sub(1).map(|last| self.cuts[last]);
        cut.map_or(at, |(cut, original)| original + (at - cut))
    }

    /// Whether a line break was removed from the part `span` of the joined text.
    fn has_cut_in(&self, span: &Range<usize>) -> bool {
        let next = self.cuts.partition_point(|(cut, _)| *cut <= span.start);
        self.cuts.get(next).is_some_and(|(cut, _)| *cut < span.end)
    }

    /// The occurrence in the original text. A reference that has several lines there is not
    /// changed.
    pub(super) fn restored(&self, mut occurrence: Occurrence) -> Occurrence {
        let edits = &occurrence.edits;
        if edits.iter().any(|edit| self.has_cut_in(&edit.span)) {
            occurrence.leave("it is written over several lines");
        }
        for edit in &mut occurrence.edits {
            let start = self.offset(edit.span.start);
            edit.span = start..start + edit.span.len();
        }
        occurrence.at = self.offset(occurrence.at);
        occurrence
    }
}

/// The escaped line breaks in the double quotes of `text`, each from its backslash to the text of
/// the next line.
fn escaped_breaks(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if !text.contains("\\\n") && !text.contains("\\\r\n") {
        return found;
    }
    let mut quote = None;
    for (at, line) in lines_at(text) {
        let next = at + line.len();
        let body = line.trim_end_matches(['\r', '\n']);
        let content = body.trim_end_matches('\\');
        // of two backslashes, the first one escapes the other
        let is_escaped = (body.len() - content.len()) % 2 == 1;
        if !is_escaped {
            quote = None;
            continue;
        }
        quote = open_quote(content, quote);
        let rest = text[next..].trim_start_matches([' ', '\t']);
        let is_indented = rest.len() < text.len() - next;
        // in a shell, the indentation of the next line separates words
        let is_joined = match quote {
            Some(OpenQuote::Yaml) => true,
            Some(OpenQuote::Other) => !is_indented,
            None => false,
        };
        if is_joined && !rest.starts_with(['\r', '\n']) {
            found.push(at + body.len() - 1..text.len() - rest.len());
        }
    }
    found
}

/// What an open double quote begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenQuote {
    /// A scalar of YAML.
    Yaml,
    /// Another value, as in a shell.
    Other,
}

/// The double quote that is open at the end of `line`. `open` is the one before the line.
fn open_quote(line: &str, mut open: Option<OpenQuote>) -> Option<OpenQuote> {
    let mut is_escaped = false;
    for (at, c) in line.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' if open.is_some() => open = None,
            '"' => {
                let before = line[..at].trim_end();
                let is_yaml = before.is_empty() || before.ends_with([':', '-', ',', '[', '{']);
                open = Some(if is_yaml {
                    OpenQuote::Yaml
                } else {
                    OpenQuote::Other
                });
            }
            _ => {}
        }
    }
    open
}
