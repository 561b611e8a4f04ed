//! Decides the meaning of a word of a text, by the text around it.

use super::dockerfile::directive;
use super::image_command::{CommandImage, image_after};
use super::terraform::AddressedChart;
use super::variables::reference_at;
use super::{ReferenceWord, TextMarks, WordEnd, begins, end, lines_at};
use crate::index::{ReferenceLookup, ReferenceReplacement, is_pinned, pin, replaced};
use crate::occurrence::{Occurrence, ReferenceMeaning, ReferenceRole};
use crate::scan_result::ScanSettings;
use landfall_model::{ImageRef, has_host};
use std::ops::Range;

/// The number of bytes that are searched before a literal for the beginning of its call. Without a
/// limit, a text of literals would take quadratic time.
const CALL_BYTES: usize = 512;

/// The meaning of `word`. `role` is the role of the whole text.
pub(super) fn decide(
    settings: &ScanSettings<'_>,
    text: &str,
    word: &ReferenceWord,
    role: ReferenceRole,
    marks: &mut TextMarks,
) -> Option<Occurrence> {
    let ReferenceWord {
        span,
        placeholder,
        is_image,
    } = word;
    let before = &text[..span.start];
    if let Some(path) = path_after_host(text, span) {
        return default_host(settings, text, &path)
            .or_else(|| host_in_variable(settings, text, path.start))
            .or_else(|| headless(settings, text, &path));
    }
    let key = key(&text[..placeholder.unwrap_or(span.start)]);
    let role_of_text = role;
    let role = match key {
        _ if *is_image || marks.images.contains(&placeholder.unwrap_or(span.start)) => {
            ReferenceRole::Container
        }
        Some(key) if is_image_key(key) => ReferenceRole::Image,
        // only the default of a placeholder has the role of the text: any other word need not be
        // the image
        _ if placeholder.is_some() && role.is_image() => role,
        _ => ReferenceRole::Text,
    };
    let is_pattern = before.ends_with(['^', '*', '~', '!']);
    match end(text, span) {
        _ if is_pattern => incomplete(settings, text, span, role, &WordEnd::Pattern),
        _ if before.ends_with('}') => appended(settings, text, span),
        // a prefix of rpm-ostree ends with a colon
        _ if !is_image && !begins(before) => None,
        WordEnd::At(end) => whole(settings, text, span.start..end, role, key, marks),
        // a name at the beginning of the text is that of its image: `nginx:${TAG}`
        end if role_of_text.is_image() && before.trim_start().is_empty() => {
            incomplete(settings, text, span, role_of_text, &end)
        }
        end => incomplete(settings, text, span, role, &end),
    }
}

/// The meaning of the word at `span`, which is a complete reference. `key` is its key on the line.
fn whole(
    settings: &ScanSettings<'_>,
    text: &str,
    span: Range<usize>,
    role: ReferenceRole,
    key: Option<&str>,
    marks: &mut TextMarks,
) -> Option<Occurrence> {
    let word = &text[span.clone()];
    if word.is_empty() {
        return None;
    }
    if let Some(chart) = marks.charts.get(&span.start) {
        return chart_at_address(settings, word, span, chart);
    }
    let occurrence = |meaning| Occurrence::new(span.start, word, role, meaning);
    // in a template, the tag may be the value of another key
    let untagged =
        pin(word).is_empty() && role != ReferenceRole::Container && key.is_some_and(has_tag_beside);
    match settings.index.lookup(word, role, settings.options.pin) {
        ReferenceLookup::Unknown => {
            let before = &text[..span.start];
            let is_candidate = settings.report_unknown && is_pinned(word);
            let command = is_candidate.then(|| image_after(before)).flatten();
            // `image = "a/b:1"` within a line; a variable in capitals may have any value
            let is_named = is_candidate
                && before.ends_with(['"', '\''])
                && key.is_some_and(|key| key.ends_with("image") || key.ends_with("Image"));
            let meaning = unknown(settings, word, role, command.is_some() || is_named)?;
            let is_certain = key.is_some_and(is_image_key)
                || role == ReferenceRole::Container
                || command == Some(CommandImage::OfFlag)
                || is_in_call(before);
            let role = match meaning {
                ReferenceMeaning::Unknown if is_certain => ReferenceRole::Literal,
                _ => role,
            };
            Some(Occurrence::new(span.start, word, role, meaning))
        }
        ReferenceLookup::Settled(item) => Some(occurrence(ReferenceMeaning::Settled(item))),
        ReferenceLookup::Known(_) | ReferenceLookup::Left(_) if untagged => {
            Some(occurrence(ReferenceMeaning::left(
                "the text is not YAML, so its tag may be the value of another key",
            )))
        }
        ReferenceLookup::Known(_) | ReferenceLookup::Left(_)
            if !has_host(word) && marks.registry.is_beside(text, span.start) =>
        {
            let why = "it has a registry on another line, and the text is not YAML";
            Some(occurrence(ReferenceMeaning::left(why)))
        }
        ReferenceLookup::Left(why) => Some(occurrence(ReferenceMeaning::Left(why))),
        ReferenceLookup::Known(replacement) => {
            let new = replaced(word, &replacement);
            let meaning = ReferenceMeaning::known(replacement.item, &*new);
            Some(occurrence(meaning).with_edit(span.clone(), new))
        }
    }
}

/// The meaning of the address `word` of a chart, to which Helm appends the name of the chart.
fn chart_at_address(
    settings: &ScanSettings<'_>,
    word: &str,
    span: Range<usize>,
    chart: &AddressedChart,
) -> Option<Occurrence> {
    let AddressedChart { name, version } = chart;
    let name = name
        .as_ref()
        .map(|name| format!("/{name}"))
        .unwrap_or_default();
    // a tag cannot contain the `+` of a version
    let tag = version
        .as_ref()
        .map(|version| format!(":{}", version.replace('+', "_")));
    let whole = format!(
        "{}{name}{}",
        word.trim_end_matches('/'),
        tag.unwrap_or_default()
    );
    let role = ReferenceRole::Repository;
    let occurrence = |meaning| Occurrence::new(span.start, &*whole, role, meaning);
    Some(match settings.index.lookup(&whole, role, false) {
        ReferenceLookup::Unknown => return None,
        ReferenceLookup::Settled(item) => occurrence(ReferenceMeaning::Settled(item)),
        ReferenceLookup::Left(why) => occurrence(ReferenceMeaning::Left(why)),
        ReferenceLookup::Known(replacement) => {
            let to = replacement.to.as_ref()?.to_string();
            match replacement.without_end(&to, &name) {
                Ok(base) => {
                    let new = replaced(&whole, &replacement);
                    let base = base.to_owned();
                    let meaning = ReferenceMeaning::known(replacement.item, new);
                    occurrence(meaning).with_edit(span, base)
                }
                Err(why) => occurrence(ReferenceMeaning::Left(why)),
            }
        }
    })
}

/// Whether `before` ends in an opening quote within a template call: `{{ image "`.
fn is_in_call(before: &str) -> bool {
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(CALL_BYTES))..];
    near.ends_with(['"', '\'', '`'])
        && near
            .rfind("{{")
            .is_some_and(|open| !near[open..].contains("}}"))
}

/// The meaning of a word that the index does not know. `is_named` says whether it is an image by
/// the command in which it is, or by its key.
fn unknown(
    settings: &ScanSettings<'_>,
    word: &str,
    role: ReferenceRole,
    is_named: bool,
) -> Option<ReferenceMeaning> {
    let name = &word[..word.len() - pin(word).len()];
    if word.parse::<ImageRef>().is_err() && settings.index.tags(name, role).is_some() {
        return Some(ReferenceMeaning::left("its tag or digest is not valid"));
    }
    let is_reference = match role {
        ReferenceRole::Container => word.parse::<ImageRef>().is_ok() && !is_id_or_version(word),
        _ => is_named || looks_like_reference(word),
    };
    (settings.report_unknown && is_reference).then_some(ReferenceMeaning::Unknown)
}

/// Whether a word after `docker://` is the id of a container, the id of an image without a name, or
/// the version of the runtime of a node (`containerRuntimeVersion: docker://20.10.7`).
fn is_id_or_version(word: &str) -> bool {
    let digits = word.strip_prefix("sha256:").unwrap_or(word);
    let is_id = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut numbers = word.split(['.', '-']);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_version = word.contains('.') && numbers.next().is_some_and(is_number);
    is_id || (is_version && !word.contains(['/', ':']))
}

/// The meaning of the word at `span`, which is a pattern, a mapping key, or only a part of a
/// reference: `repository:${TAG}`.
fn incomplete(
    settings: &ScanSettings<'_>,
    text: &str,
    span: &Range<usize>,
    role: ReferenceRole,
    end: &WordEnd,
) -> Option<Occurrence> {
    let word = text[span.clone()].trim_end_matches([':', '@', '.']);
    let name = &word[..word.len() - pin(word).len()];
    if let Some(prefix) = name.strip_suffix('/').filter(|_| has_host(name)) {
        let what = match end {
            // a policy about the images of a registry: `quay.io/a/*`
            WordEnd::Pattern if text[span.end..].starts_with('*') => "it is a pattern",
            // the host alone could precede the name of any image, such as that of a pipeline
            WordEnd::Placeholder if prefix.contains('/') => "its name has a placeholder",
            _ => return None,
        };
        return match settings.index.lookup_prefix(prefix, &[]) {
            ReferenceLookup::Unknown | ReferenceLookup::Settled(_) => None,
            ReferenceLookup::Known(_) | ReferenceLookup::Left(_) => {
                let why = format!("{what}; the lock has images below {prefix}");
                Some(left(settings, text, span, why))
            }
        };
    }
    let is_variable = *end == WordEnd::Placeholder && text[span.end..].starts_with('$');
    if is_variable && let Some(found) = with_variables(settings, text, span.start, name, role) {
        return Some(found);
    }
    let tags = settings.index.tags(name, role)?;
    let max_bytes = settings.limits.reference_bytes;
    let (written, why) = match end {
        WordEnd::Placeholder => {
            let why = format!("its tag or digest is a placeholder; the lock has {tags}");
            (reference_at(&text[span.start..], max_bytes), why)
        }
        WordEnd::Pattern => {
            let why = format!("it is a pattern, or part of a longer word; the lock has {tags}");
            (reference_at(&text[span.start..], max_bytes), why)
        }
        WordEnd::Key | WordEnd::At(_) => (word, "it is the key of a mapping".to_owned()),
    };
    Some(Occurrence::new(
        span.start,
        written,
        role,
        ReferenceMeaning::Left(why),
    ))
}

/// The meaning of the reference at the byte `at`, whose tag or digest is a variable, with the
/// values that the file gives its variables. If the lock has all of them at one destination, the
/// repository `name` is changed, and the variable stays. If the name has a variable, too, it is not
/// changed. `None` if a value is not known or has another meaning.
fn with_variables(
    settings: &ScanSettings<'_>,
    text: &str,
    at: usize,
    name: &str,
    role: ReferenceRole,
) -> Option<Occurrence> {
    let written = reference_at(&text[at..], settings.limits.reference_bytes);
    let values = settings.variables.references(written)?;
    let lookup = |value: &String| settings.index.lookup(value, role, false);
    let lookups: Vec<ReferenceLookup> = values.iter().map(lookup).collect();
    // one value that the lock lacks counts more than those that it has
    let mut all = values.iter().zip(&lookups);
    let unknown = all.find(|(_, lookup)| **lookup == ReferenceLookup::Unknown);
    let (value, lookup) = unknown.or_else(|| values.iter().zip(&lookups).next())?;
    let ReferenceLookup::Known(ReferenceReplacement {
        item,
        to: Some(to),
        digest: None,
    }) = lookup
    else {
        return unchanged_value(settings, at, value, lookup);
    };
    // `a/b-$ARCH:1`: the new name would contain the value, and the variable would repeat it
    let is_named = |value: &String| value[..value.len() - pin(value).len()] == *name;
    if !values.iter().all(is_named) {
        let why = format!("its name has a placeholder; the lock has {item}");
        let role = ReferenceRole::Text;
        return Some(Occurrence::new(
            at,
            value,
            role,
            ReferenceMeaning::Left(why),
        ));
    }
    let is_there = |lookup: &ReferenceLookup| match lookup {
        ReferenceLookup::Known(other) => other.to.as_ref() == Some(to) && other.digest.is_none(),
        _ => false,
    };
    if !lookups.iter().all(is_there) {
        return None;
    }
    let to = to.to_string();
    let new = format!("{to}{}", &written[name.len()..]);
    let meaning = ReferenceMeaning::known(item.clone(), new);
    let occurrence = Occurrence::new(at, written, role, meaning);
    Some(occurrence.with_edit(at..at + name.len(), to))
}

/// The meaning of the reference whose host is the variable before the byte `path_start`. `None` if
/// the file does not give it a value that is the destination, or that the lock lacks.
fn host_in_variable(
    settings: &ScanSettings<'_>,
    text: &str,
    path_start: usize,
) -> Option<Occurrence> {
    let before = &text[..path_start];
    let near = before.ceil_char_boundary(before.len().saturating_sub(CALL_BYTES));
    let at = near + before[near..].rfind('$')?;
    let written = reference_at(&text[at..], settings.limits.reference_bytes);
    if !begins(&text[..at]) || !written.starts_with(&text[at..path_start]) {
        return None;
    }
    let values = settings.variables.references(written)?;
    let value = values.first()?;
    let lookup = settings.index.lookup(value, ReferenceRole::Text, false);
    unchanged_value(settings, at, value, &lookup)
}

/// The meaning of a reference with variables at the byte `at`, whose `value` has the result
/// `lookup`: it names the destination already, or it is an image that the lock lacks.
fn unchanged_value(
    settings: &ScanSettings<'_>,
    at: usize,
    value: &str,
    lookup: &ReferenceLookup,
) -> Option<Occurrence> {
    let meaning = match lookup {
        ReferenceLookup::Settled(item) => ReferenceMeaning::Settled(item.clone()),
        ReferenceLookup::Unknown if settings.report_unknown && looks_like_reference(value) => {
            ReferenceMeaning::Unknown
        }
        _ => return None,
    };
    Some(Occurrence::new(at, value, ReferenceRole::Text, meaning))
}

/// The bytes of the path in `span`, which follows a host in a placeholder: `${REGISTRY}/a/b:1`,
/// `$REGISTRY/a/b:1`, `{{ .registry }}/a/b:1`.
fn path_after_host(text: &str, span: &Range<usize>) -> Option<Range<usize>> {
    let before = &text[..span.start];
    let path_at = match text[span.clone()].find('/')? {
        0 if before.ends_with(['}', ')']) => 0,
        slash if slash > 0 && before.ends_with('$') => slash,
        _ => return None,
    };
    Some(span.start + path_at..span.end)
}

/// The meaning of the path in `{{ default "docker.io" .Values.registry }}/repository:tag`: if the
/// literal and the path are a locked image, the literal is changed, and the path stays.
fn default_host(
    settings: &ScanSettings<'_>,
    text: &str,
    span: &Range<usize>,
) -> Option<Occurrence> {
    let WordEnd::At(end) = end(text, span) else {
        return None;
    };
    let path = &text[span.start..end];
    let name = &path[..path.len() - pin(path).len()];
    let before = &text[..span.start];
    let near = before.ceil_char_boundary(before.len().saturating_sub(CALL_BYTES));
    let inside = before.strip_suffix("}}")?;
    let call = near + before[near..].rfind("{{")?;
    // another path may follow: `{{ default "docker.io" .r }}/a:1}}/a:1`
    if inside.get(call..)?.contains("}}") {
        return None;
    }
    let mut start = call;
    // each quote ends a piece, which is a literal if the same quote precedes it
    for (at, quote) in before[call..].match_indices(['"', '\'', '`']) {
        let literal = start..call + at;
        start = literal.end + quote.len();
        if !before[..literal.start].ends_with(quote) {
            continue;
        }
        let whole = format!("{}{path}", &before[literal.clone()]);
        let role = ReferenceRole::Container;
        let occurrence =
            |meaning| Occurrence::new(literal.start, &whole, ReferenceRole::Text, meaning);
        match settings.index.lookup(&whole, role, false) {
            ReferenceLookup::Known(replacement) => {
                let to = replacement.to.as_ref()?.to_string();
                let host = to.strip_suffix(name)?.to_owned();
                let new = replaced(&whole, &replacement);
                let meaning = ReferenceMeaning::known(replacement.item, new);
                return Some(occurrence(meaning).with_edit(literal.clone(), host));
            }
            ReferenceLookup::Settled(item) => {
                return Some(occurrence(ReferenceMeaning::Settled(item)));
            }
            ReferenceLookup::Unknown | ReferenceLookup::Left(_) => {}
        }
    }
    None
}

/// The meaning of the path in `{{ registry }}/repository:tag`: a locked repository whose host is a
/// placeholder.
fn headless(settings: &ScanSettings<'_>, text: &str, span: &Range<usize>) -> Option<Occurrence> {
    let path = text[span.clone()]
        .trim_start_matches('/')
        .trim_end_matches([':', '.']);
    let name = &path[..path.len() - pin(path).len()];
    let full = settings.index.by_path(name)?;
    let why = format!("its host is a placeholder; the lock has {full}");
    Some(left(settings, text, span, why))
}

/// The meaning of a name after a placeholder: `${MIRROR}quay.io/repository:tag`.
fn appended(settings: &ScanSettings<'_>, text: &str, span: &Range<usize>) -> Option<Occurrence> {
    let word = text[span.clone()].trim_end_matches([':', '@', '.']);
    let name = &word[..word.len() - pin(word).len()];
    let tags = settings.index.tags(name, ReferenceRole::Text)?;
    let why = format!("a placeholder precedes it; the lock has {tags}");
    Some(left(settings, text, span, why))
}

/// The reference that begins at `span`, which is not changed for the reason `why`.
fn left(settings: &ScanSettings<'_>, text: &str, span: &Range<usize>, why: String) -> Occurrence {
    let written = reference_at(&text[span.start..], settings.limits.reference_bytes);
    let meaning = ReferenceMeaning::Left(why);
    Occurrence::new(span.start, written, ReferenceRole::Text, meaning)
}

/// Whether a word that the lock does not contain is almost certainly a reference: it has a host and
/// a tag or digest.
fn looks_like_reference(word: &str) -> bool {
    word.contains('/') && has_host(word) && is_pinned(word)
}

// Finds the comments of texts.

/// The comments of a text, in the notation of most scripts, configuration files and templates: `;`
/// and `//` at the beginning of a line, `#` at the beginning of a line or after white space outside
/// of quotes, and `{{/* */}}`.
pub(super) fn comments(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = text.len() - text.trim_start_matches('\u{feff}').len();
    for line in text[at..].split_inclusive('\n') {
        let start = line.len() - line.trim_start().len();
        let body = &line[start..];
        // `# syntax=` is not a comment: it names the image of BuildKit's frontend
        let directive = directive(body.trim_end()).is_some_and(|(name, _)| name == "syntax");
        let whole = body.starts_with(['#', ';']) || body.starts_with("//");
        let from = if whole {
            Some(start).filter(|_| !directive)
        } else {
            comment_start(line)
        };
        found.extend(from.map(|from| at + from..at + line.len()));
        at += line.len();
    }
    found.extend(template_comments(text));
    found.sort_by_key(|range| range.start);
    found
}

/// The comments of a template, `{{/* */}}`, in the order of the text.
pub(crate) fn template_comments(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find("/*").map(|len| at + len) {
        at = start + 2;
        if text[..start].trim_end_matches(['-', ' ']).ends_with("{{") {
            at = text[at..].find("*/").map_or(text.len(), |len| at + len);
            found.push(start..at);
        }
    }
    found
}

/// The offset of a comment in the middle of a line.
fn comment_start(line: &str) -> Option<usize> {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') if before.is_whitespace() => return Some(at),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open && before != '\\' => quote = None,
            _ => {}
        }
        before = c;
    }
    None
}

// Finds the key of a value on its line, in texts that are not YAML.

/// The key at the end of `before`, the text before a value: `image` in `  - image: "`. `None` if
/// no `:` or `=` precedes the value, as after `FROM`.
pub(super) fn key(before: &str) -> Option<&str> {
    let before = before.trim_end_matches(['"', '\'', ' ', '\t']);
    let key = before
        .strip_suffix([':', '='])?
        .trim_end_matches(['"', '\'', ' ']);
    key.rsplit(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)))
        .next()
        .filter(|key| !key.is_empty())
}

/// Whether the name of `key` says that its value is an image.
pub(super) fn is_image_key(key: &str) -> bool {
    key.to_ascii_lowercase().ends_with("image")
}

/// Whether the tag of the image at `key` may be the value of another key.
pub(super) fn has_tag_beside(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    // the tag of KKP's dockerRepository is KKP's own version
    key != "dockerrepository"
        && ["image", "repository", "repo", "name"]
            .iter()
            .any(|end| key.ends_with(end))
}

// Looks at the neighbouring lines in a text that is YAML except for its placeholders.

/// The number of lines before and after a line that are searched.
const LINES: usize = 20;

/// The last line whose neighbours were searched for a registry, and the result. One line may
/// contain all references of a text, so the neighbours of a line are searched only once.
#[derive(Default)]
pub(super) struct NeighbouringRegistry {
    line: Range<usize>,
    is_found: bool,
}

impl NeighbouringRegistry {
    /// Whether another line of the same mapping, judged by indentation, has the registry of the
    /// reference at the byte `at` of `text`, which must be the same text in every call.
    pub(super) fn is_beside(&mut self, text: &str, at: usize) -> bool {
        if !self.line.contains(&at) {
            let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
            let end = text[at..].find('\n');
            self.line = start..end.map_or(text.len(), |len| at + len + 1);
            self.is_found = has_registry_beside(text, &self.line);
        }
        self.is_found
    }
}

/// Whether another line of the mapping of `line` has a registry.
fn has_registry_beside(text: &str, line: &Range<usize>) -> bool {
    let Some(own) = KeyLine::of(&text[line.clone()]) else {
        return false;
    };
    let before = text[..line.start]
        .lines()
        .rev()
        .take(LINES)
        .filter_map(KeyLine::of);
    let after = text[line.end..].lines().take(LINES).filter_map(KeyLine::of);
    // the line that begins a list item is the first line of the item's mapping
    let mut begun = own.is_item;
    let before = before.take_while(|line| {
        line.column >= own.column && !begun && {
            begun = line.is_item && line.column == own.column;
            true
        }
    });
    let after = after.take_while(|line| {
        line.column > own.column || (line.column == own.column && !line.is_item)
    });
    before
        .chain(after)
        .any(|line| line.column == own.column && line.is_registry())
}

/// The offsets of the untagged images of containers in a text that is YAML except for its
/// placeholders: `busybox` in `image: busybox`.
pub(super) fn untagged_container_images(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    // most texts have no containers
    if !text.contains("ontainers:") {
        return found;
    }
    // the keys around the current line: the column of each, and whether its value is containers
    let mut around: Vec<(usize, bool)> = Vec::new();
    for (start, line) in lines_at(text) {
        let Some(KeyLine {
            column,
            is_item,
            content,
        }) = KeyLine::of(line)
        else {
            continue;
        };
        // a list may begin in the column of its key
        let dash = line.find('-').filter(|_| is_item);
        around.retain(|(other, _)| dash.map_or(*other < column, |dash| *other <= dash));
        let Some((key, value)) = content.split_once(':') else {
            continue;
        };
        let image = value.trim_start().trim_start_matches(['"', '\'']);
        let name = image.trim_end().trim_end_matches(['"', '\'']);
        let is_image = key == "image" && around.last().is_some_and(|(_, containers)| *containers);
        if is_image
            && name
                .parse::<ImageRef>()
                .is_ok_and(|image| !image.is_pinned())
        {
            found.push(start + column + content.len() - image.len());
        }
        let containers = value.trim().is_empty()
            && ["containers", "initContainers", "ephemeralContainers"].contains(&key);
        around.push((column, containers));
    }
    found
}

/// A line with a key, or the first line of a list item.
struct KeyLine<'t> {
    /// The column of the key, after the dashes of lists.
    column: usize,
    /// Whether the line begins a list item.
    is_item: bool,
    content: &'t str,
}

impl KeyLine<'_> {
    /// Reads a line. `None` for a blank line, a comment and a template call, unless the line begins
    /// a list item.
    fn of(line: &str) -> Option<KeyLine<'_>> {
        let line = line.lines().next()?;
        let content = line.trim_start_matches([' ', '-']);
        let column = line.len() - content.len();
        let is_item = line[..column].contains('-');
        let is_key =
            !content.is_empty() && !content.starts_with(['#', '\t']) && !content.starts_with("{{");
        (is_key || is_item).then_some(KeyLine {
            column,
            is_item,
            content,
        })
    }

    fn is_registry(&self) -> bool {
        let Some((key, value)) = self.content.split_once(':') else {
            return false;
        };
        // in `FROM registry:2` and `docker pull registry:2`, it is the name of an image
        if !(value.starts_with([' ', '\t']) || key.ends_with(['"', '\''])) {
            return false;
        }
        let key = key.trim_matches(['"', '\'', ' ']).to_ascii_lowercase();
        let value = value.trim().trim_matches(['"', '\'']);
        (key.ends_with("registry") || key == "hub") && !value.is_empty() && !value.starts_with('#')
    }
}
