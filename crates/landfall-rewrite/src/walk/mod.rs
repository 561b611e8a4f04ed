//! Walks over YAML documents: calls each rule about references at every node, and proves that edits
//! change the intended values and nothing else.

mod collector;
mod walker;

use crate::index::is_pinned;
use crate::inventory::Inventory;
use crate::occurrence::ReferenceRole;
use crate::scan_result::{ReadAs, ScanResult, ScanSettings, TextSyntax};
use crate::text::{self, JoinedText, ShellVariables, TextComments, lines_at, template_comments};
use crate::yaml::{YamlDocument, YamlEntry, YamlNode, position_of, scalar_of, text_of, value_of};
use std::cell::{LazyCell, RefCell};
use std::collections::BTreeMap;

pub(super) use self::collector::{
    DistantParts, HAS_PLACEHOLDER, ImageCandidate, ImageClaim, ReferenceCollector, is_list,
    start_of, text_start,
};
pub(super) use self::walker::DocumentScan;

// The scanner decides how a text is read, and how deeply texts within texts are read.

const OCCURRENCES: Collects = Collects {
    occurrences: true,
    candidates: false,
};

/// Scans texts, and the texts within their values.
#[derive(Clone, Copy)]
pub(super) struct ReferenceScanner<'i> {
    pub settings: ScanSettings<'i>,
    pub rules: &'static ReferenceRules,
}

impl ReferenceScanner<'_> {
    /// Finds the occurrences in `text`, which is nested in `depth` other texts. With the edits
    /// applied, the text still has the same meaning, except for the changed references.
    pub(crate) fn scan(&self, text: &str, syntax: TextSyntax, depth: usize) -> ScanResult {
        match syntax {
            TextSyntax::Document => self.read(text, depth, OCCURRENCES).0,
            TextSyntax::Text if self.settings.may_report(text) => self.words(text),
            TextSyntax::Text => ScanResult::nothing(),
        }
    }

    /// Finds what `collects` says in `text`, which is nested in `depth` other texts: as documents,
    /// or else the occurrences word by word. The second value is `None` if the text is not YAML or
    /// was not read as YAML.
    pub(crate) fn read(
        &self,
        text: &str,
        depth: usize,
        collects: Collects,
    ) -> (ScanResult, Option<DocumentScan>) {
        let searched = collects.occurrences && self.settings.may_report(text);
        let collects = Collects {
            // each level of texts within texts is parsed again, so deeper texts are read word by
            // word
            occurrences: searched && depth < self.settings.limits.embedded_depth,
            ..collects
        };
        let mut documents = None;
        if collects.occurrences || collects.candidates {
            documents = walker::read(self, text, depth, collects);
        }
        let occurrences = documents
            .as_mut()
            .and_then(|documents| documents.occurrences.take());
        let result = match occurrences {
            Some(result) => result,
            None if searched => self.words(text),
            None => ScanResult::nothing(),
        };
        (result, documents)
    }

    /// Finds the occurrences in `text` word by word.
    fn words(&self, text: &str) -> ScanResult {
        let secrets = text::secrets(text);
        ScanResult {
            found: text::scan(
                &self.settings,
                text,
                TextComments::Possible,
                ReferenceRole::Text,
            ),
            read_as: ReadAs::Text,
            secrets,
        }
    }

    /// Scans the value of a scalar, which is nested in `depth` texts: as a document if it is a
    /// text of lines (`block`) or looks like a document, else word by word. `role` is that of the
    /// whole value.
    pub(crate) fn scan_value(
        &self,
        value: &str,
        block: bool,
        role: ReferenceRole,
        depth: usize,
    ) -> ScanResult {
        let trimmed = value.trim();
        // `{{ call }}` is a template, not JSON
        let flow = trimmed.starts_with(['{', '[']) && !trimmed.starts_with("{{");
        if block || flow || trimmed.contains('\n') {
            return self.scan(value, TextSyntax::Document, depth);
        }
        // most values are prose, which need not be split into words
        if !self.settings.may_report(value) {
            return ScanResult::nothing();
        }
        let found = text::scan(&self.settings, value, TextComments::None, role);
        ScanResult {
            found,
            read_as: ReadAs::Text,
            secrets: Vec::new(),
        }
    }
}

// Finds the images of texts that are not YAML, such as templates and TOML, by lines whose key ends
// in `image`.

/// The images in lines such as `image: REF` and `sandbox_image = "REF"` of a text that is not YAML.
pub(super) fn candidates_in_lines(text: &str) -> Vec<ImageCandidate> {
    let Some(joined) = JoinedText::of(text) else {
        return in_lines(text);
    };
    let mut found = in_lines(joined.text());
    found
        .iter_mut()
        .for_each(|one| one.at = joined.offset(one.at));
    found
}

/// The images in the lines of `text`, whose quoted lines are joined.
fn in_lines(text: &str) -> Vec<ImageCandidate> {
    let variables = LazyCell::new(|| ShellVariables::of(text));
    let mut found = Vec::new();
    for (start, line) in lines_at(text) {
        let Some((key, value, kind)) = entry(line) else {
            continue;
        };
        let quote = value.chars().next();
        let quote = quote.filter(|quote| ['"', '\''].contains(quote));
        let is_quoted = quote.is_some();
        let value = match quote {
            Some(quote) => unquoted(&value[1..], quote).unwrap_or(value),
            None => value
                .split(" #")
                .next()
                .unwrap_or_default()
                .trim_end_matches(','),
        };
        if value.is_empty() {
            continue;
        }
        let at = start + (value.as_ptr() as usize - line.as_ptr() as usize);
        let has_variable = value.contains('$');
        let filled = has_variable.then(|| variables.references(value)).flatten();
        let value = match filled.as_deref() {
            Some([reference]) if is_pinned(reference) => reference.as_str(),
            _ => value,
        };
        match kind {
            // the tag of a container's image, but not the name of that of a machine, is a variable
            LineKind::Setting if is_quoted && value.contains(":${") => {
                found.extend(ImageCandidate::all(at, ImageClaim::new(value, false)));
            }
            // a script may assign any text to such a variable
            LineKind::Setting | LineKind::Variable if !is_list(value) && !is_pinned(value) => {}
            // in a script, it may be the name of an image that the script builds
            LineKind::Variable if !is_list(value) => {
                found.push(ImageCandidate {
                    sure: false,
                    ..ImageCandidate::certain(at, value.to_owned())
                });
            }
            _ => {
                let claim = ImageClaim {
                    in_container: key == "image",
                    ..ImageClaim::new(value, false)
                };
                found.extend(ImageCandidate::all(at, claim));
            }
        }
    }
    found.extend(in_assigned_lists(text));
    let comments = template_comments(text);
    found.retain(|one| {
        let next = comments.partition_point(|comment| comment.end <= one.at);
        comments
            .get(next)
            .is_none_or(|comment| one.at < comment.start)
    });
    found
}

/// The images in the lists of a shell, HCL or TOML, also over several lines: `IMAGES=(redis:7 …)`,
/// `images="redis:7 …"`, `images = ["redis:7", …]` and `images = { web = "redis:7", … }`. A script
/// may build them as well.
fn in_assigned_lists(text: &str) -> Vec<ImageCandidate> {
    let mut found = Vec::new();
    let mut open = None;
    for (start, line) in lines_at(text) {
        let mut list = line;
        if open.is_none() {
            let Some((end, rest)) = list_start(line) else {
                continue;
            };
            (open, list) = (Some(end), rest);
        }
        if list.trim_start().starts_with('#') {
            continue;
        }
        list = list.split(" #").next().unwrap_or_default();
        if let Some((last, _)) = open.and_then(|end| list.split_once(end)) {
            (open, list) = (None, last);
        }
        for word in list.split(|c: char| c.is_whitespace() || c == ',') {
            let word = word.trim_matches(['"', '\'']);
            if is_pinned(word) {
                let at = start + (word.as_ptr() as usize - line.as_ptr() as usize);
                found.push(ImageCandidate {
                    sure: false,
                    ..ImageCandidate::certain(at, word.to_owned())
                });
            }
        }
    }
    found
}

/// The sign that ends the list that `line` assigns to a variable named after several images, and
/// the line after the sign that begins it.
fn list_start(line: &str) -> Option<(char, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end().trim_end_matches('+');
    let name = name.rsplit([' ', '\t']).next()?;
    let is_variable = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_variable || !name.to_ascii_lowercase().ends_with("images") {
        return None;
    }
    let mut rest = value.trim_start().chars();
    let end = match rest.next()? {
        '(' => ')',
        '[' => ']',
        '{' => '}',
        quote @ ('"' | '\'') => quote,
        _ => return None,
    };
    Some((end, rest.as_str()))
}

/// The text before the closing quote: the first one that a comment follows, or else the last one,
/// since expressions of a template can contain quotes.
fn unquoted(text: &str, quote: char) -> Option<&str> {
    let mut quotes = text.match_indices(quote);
    let before_comment = quotes.find(|(at, _)| {
        let after = &text[at + 1..];
        after.starts_with([' ', '\t']) && after.trim_start().starts_with('#')
    });
    match before_comment {
        Some((at, _)) => Some(&text[..at]),
        None => text.rsplit_once(quote).map(|(inside, _)| inside),
    }
}

/// What a line with a key and a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// An entry, with a colon after its key.
    Entry,
    /// A setting of HCL, TOML or a unit, with `=` after its key.
    Setting,
    /// An assignment to a variable of a shell or of make.
    Variable,
}

/// Texts before an assignment in a shell, a makefile or a unit.
const EXPORTS: [&str; 5] = [
    "export ",
    "readonly ",
    "local ",
    "override ",
    "Environment=",
];

/// The key and the value of a line whose key ends in `image`.
fn entry(line: &str) -> Option<(&str, &str, LineKind)> {
    let line = line.trim_start().trim_start_matches("- ").trim();
    let line = EXPORTS
        .iter()
        .find_map(|word| line.strip_prefix(word))
        .unwrap_or(line);
    let (key, value) = line.split_once([':', '='])?;
    let is_assigned = line[key.len()..].starts_with('=');
    // `?=`, `:=` and `::=` of makefiles
    let unset = key.strip_suffix('?').filter(|_| is_assigned);
    let expanded = value.trim_start_matches(':').strip_prefix('=');
    let expanded = expanded.filter(|_| !is_assigned);
    let is_of_make = unset.is_some() || expanded.is_some();
    let (key, value) = (unset.unwrap_or(key), expanded.unwrap_or(value));
    let is_assigned = is_assigned || is_of_make;
    let name = key.trim_end().trim_matches(['"', '\'']);
    if !name.to_ascii_lowercase().ends_with("image") || name.contains([' ', '{', '#']) {
        return None;
    }
    // JSON needs no blank after the colon
    let is_json = key.ends_with('"') && value.starts_with('"');
    (is_assigned || is_json || value.starts_with([' ', '\t'])).then(|| {
        let kind = if !is_assigned {
            LineKind::Entry
        } else if !is_of_make && (name == "Image" || key.ends_with(' ')) {
            // a key of HCL, TOML or a unit has blanks around `=`, or is `Image`
            LineKind::Setting
        } else {
            LineKind::Variable
        };
        (name, value.trim(), kind)
    })
}

// The rules about the references of documents.

/// Collects from a mapping the references that several of its entries form, and returns the indexes
/// of these entries, so that their values are not read again.
pub(super) type CollectReferences =
    for<'s> fn(&mut ReferenceCollector<'_, 's>, &MappingContext<'s>) -> Vec<usize>;

/// Like [`CollectReferences`], for candidates.
pub(super) type CollectCandidates =
    for<'s> fn(&mut ReferenceCollector<'_, 's>, &Inventory<'_>, &MappingContext<'s>) -> Vec<usize>;

/// The rules about the references of documents: shapes in which they are written, positions at
/// which images are named, and values that are left alone. `rules/` has their functions and the
/// table. The walk calls the functions of a list in their order.
pub(super) struct ReferenceRules {
    /// Returns what is not collected in the document with this root.
    pub skips: fn(&YamlNode<'_>) -> Collects,
    /// Whether a mapping is a Secret.
    pub is_secret: fn(&MappingContext<'_>) -> bool,
    /// Returns the reason why nothing in a mapping may be changed, if there is one.
    pub keeps: fn(&MappingContext<'_>) -> Option<&'static str>,
    /// The known references whose meaning depends on several entries of a mapping: split references
    /// and prefixes.
    pub references: &'static [CollectReferences],
    /// The images whose parts are several entries of a mapping, whether the lock contains them or
    /// not.
    pub candidates: &'static [CollectCandidates],
    /// Set properties in the context of a value. Its key in the mapping is the `key` of the
    /// context.
    pub entry: &'static [fn(&MappingContext<'_>, &YamlNode<'_>, &mut NodeContext<'_>)],
    /// Set properties in the context of an item of a list, after the item of the second argument.
    pub item: &'static [fn(&NodeContext<'_>, Option<&YamlNode<'_>>, &mut NodeContext<'_>)],
    /// Return the candidate that the text of a scalar is. The first one counts.
    pub claim: &'static [ClaimCandidate],
    /// Decodes and scans a value. The arguments say whether the document declares the value as
    /// encoded, and in how many texts the document is nested. `None` if the value cannot be
    /// decoded.
    pub decode: fn(&ReferenceScanner<'_>, &str, bool, usize) -> Option<ScanResult>,
}

/// Returns the candidate that the text of a scalar is.
pub(super) type ClaimCandidate =
    for<'t> fn(&'t str, &NodeContext<'_>, &Inventory<'_>) -> Option<ImageClaim<'t>>;

// The context of a node in its document.

/// The maximum length of a key or a name that rules compare. They do so at each entry and item
/// below it, so a longer one would take quadratic time.
pub(super) const MAX_NAME_BYTES: usize = 1 << 10;

/// The keys above a node, and the properties that the rules gave it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NodeContext<'n> {
    /// The key that has the node as its value. `None` for the root, a list item or a key.
    pub(crate) key: Option<&'n str>,
    /// The key as whose value a candidate is read, if it differs from `key`.
    pub(crate) read_as: Option<&'n str>,
    /// The key of the mapping or list that contains the node.
    pub(crate) above: Option<&'n str>,
    /// The role of the node if it is a reference as a whole.
    pub(crate) role: ReferenceRole,
    /// Whether the node is a container of a pod, a workflow or a Compose file.
    pub(crate) container: bool,
    /// Whether the node is a container in the status of a pod.
    pub(crate) status: bool,
    /// Whether the mappings here and below are Secrets, regardless of their `kind`.
    pub(crate) in_secrets: bool,
    /// Whether the values here and below are values of a Secret.
    pub(crate) secret: bool,
    /// Whether the values here and below are encoded, so that a rule must decode them.
    pub(crate) encoded: bool,
    /// The reason why nothing here and below may be changed, if there is one.
    pub(crate) keep: Option<&'static str>,
    /// What is collected here and below.
    pub(crate) collects: Collects,
}

/// What a walk collects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Collects {
    /// References that the index knows, each with its edits.
    pub(crate) occurrences: bool,
    /// Values that name an image, known or not.
    pub(crate) candidates: bool,
}

impl Collects {
    pub(super) fn nothing(self) -> bool {
        self == Collects::default()
    }
}

impl<'n> NodeContext<'n> {
    /// The context of the value of `key` in this node. Without `key`, the context of an item of
    /// this list, or of a key of this mapping.
    pub(super) fn child(self, key: Option<&'n str>) -> NodeContext<'n> {
        // the names that rules know are short
        let known = |key: &'n str| if key.len() <= MAX_NAME_BYTES { key } else { "" };
        NodeContext {
            key: key.map(known),
            read_as: None,
            above: self.key,
            role: ReferenceRole::Value,
            container: false,
            status: false,
            ..self
        }
    }

    /// The key that says what a candidate is.
    pub(crate) fn name(&self) -> Option<&'n str> {
        self.read_as.or(self.key)
    }

    /// Whether a container uses the image that is the value of the node.
    pub(crate) fn is_of_container(&self) -> bool {
        self.container || self.role == ReferenceRole::Container
    }
}

/// The entries of a mapping, and its context.
#[derive(Debug, Clone)]
pub(super) struct MappingContext<'s> {
    pub(crate) entries: &'s [YamlEntry<'s>],
    /// The value of `kind`; empty if there is none.
    pub(crate) kind: &'s str,
    /// The value of `encoding`.
    pub(crate) encoding: Option<&'s str>,
    /// The value of `name`.
    pub(crate) name: Option<&'s str>,
    /// Whether the mapping has the key `mirrors`.
    pub(crate) has_mirrors: bool,
    pub(crate) around: NodeContext<'s>,
    /// The indexes that earlier functions of the same list returned, sorted: a mapping may have a
    /// million entries.
    pub(super) taken: Vec<usize>,
    /// The positions of the keys that rules looked up by [`MappingContext::value`].
    positions: RefCell<BTreeMap<&'static str, Option<usize>>>,
}

impl<'s> MappingContext<'s> {
    /// The context of a mapping. Keys that the rules need at each entry are looked up here, once:
    /// a mapping may have a million entries.
    pub(super) fn new(
        entries: &'s [YamlEntry<'s>],
        around: NodeContext<'s>,
        document: &'s YamlDocument<'s>,
    ) -> MappingContext<'s> {
        let kind = value_of(entries, "kind").and_then(|kind| document.text(kind));
        MappingContext {
            entries,
            kind: kind.unwrap_or_default(),
            encoding: scalar_of(entries, "encoding"),
            name: text_of(entries, "name").filter(|name| name.len() <= MAX_NAME_BYTES),
            has_mirrors: position_of(entries, "mirrors").is_some(),
            around,
            taken: Vec::new(),
            positions: RefCell::default(),
        }
    }

    /// Whether an earlier function of the list returned the index `at`.
    pub(crate) fn is_taken(&self, at: usize) -> bool {
        self.taken.binary_search(&at).is_ok()
    }

    /// Records the indexes that a function returned.
    pub(super) fn take(&mut self, indexes: Vec<usize>) {
        self.taken.extend(indexes);
        self.taken.sort_unstable();
    }

    /// The value of `key`. A rule that looks keys up at each entry uses this function, which
    /// searches the entries once for each key.
    pub(crate) fn value(&self, key: &'static str) -> Option<&'s YamlNode<'s>> {
        let mut positions = self.positions.borrow_mut();
        let position = positions
            .entry(key)
            .or_insert_with(|| position_of(self.entries, key));
        position.map(|at| &self.entries[at].value)
    }
}

/// A step from a node to one below it. Every node is visited, so the steps become texts only where
/// something is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
pub(super) enum NodeStep<'n> {
    Key(&'n str),
    #[display("[{_0}]")]
    Item(usize),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::audit;
    use crate::tests::becomes;
    use landfall_item::lockfile::Lock;
    use landfall_model::document::growth::assert_linear;
    use std::path::Path;

    #[test]
    fn entries_below_a_long_key_or_next_to_a_long_name_take_linear_time() {
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        assert_linear(500, |count| {
            let long = "x".repeat(1_000 * count);
            for text in [
                format!("name: {long}\n{}", "value: a\n".repeat(count)),
                format!("? {long}images\n:\n{}", "- a\n".repeat(count)),
            ] {
                assert_eq!(audit(Path::new("x.yaml"), &text, &inventory), []);
            }
        });
    }

    #[test]
    fn a_string_of_one_line_is_a_document_if_it_ends_with_a_line_feed() {
        for text in [
            "a: \"containers: [{image: IMAGE}]\\n\"\n",
            "{\"a\": \"- image: IMAGE\\n\"}\n",
        ] {
            becomes(
                &text.replace("IMAGE", "nginx"),
                &text.replace("IMAGE", "r:5/p/library/nginx"),
            );
        }
    }

    #[test]
    fn the_position_is_that_of_the_value_even_if_the_key_contains_its_text() {
        let text = "image: image\n- image: ge\n  agent-image: 'agent:1' # it's x\n\
            image: \"quay.io/\\\n  a:1\"\nimage: b:2\n";
        let found: Vec<(usize, String)> = candidates_in_lines(text)
            .into_iter()
            .map(|one| (one.at, one.written))
            .collect();
        let expected = [
            (7, "image"),
            (22, "ge"),
            (41, "agent:1"),
            (67, "quay.io/a:1"),
            (91, "b:2"),
        ];
        assert_eq!(found, expected.map(|(at, text)| (at, text.to_owned())));
    }

    #[test]
    fn images_in_lists_of_scripts_and_settings_are_found() {
        let text = "IMAGES=(\n  redis:7 # why\n  \"quay.io/a:1\"\n  # no:1 (x)\n)\nX=(no:2)\n\
                    declare -a MORE_IMAGES=(c:1 d)\nimages='e:1,f:1'\necho no:3\n\
                    images = {\n  web = \"g:1\"\n}\nimages = [\"h:1\"]\nx = \"no:4\"\n";
        let found = candidates_in_lines(text).into_iter();
        let found: Vec<(String, bool)> = found.map(|one| (one.written, one.sure)).collect();
        let expected = ["redis:7", "quay.io/a:1", "c:1", "e:1", "f:1", "g:1", "h:1"];
        assert_eq!(found, expected.map(|name| (name.to_owned(), false)));
    }

    #[test]
    fn images_in_comments_of_templates_are_not_found() {
        let text = "image: a:1\n{{- /* why\nimage: b:1\n*/ -}}\nimage: c:1\n{{/*\nimage: d:1\n";
        let found = candidates_in_lines(text).into_iter();
        let found: Vec<String> = found.map(|one| one.written).collect();
        assert_eq!(found, ["a:1", "c:1"]);
    }

    #[test]
    fn the_path_of_an_image_has_a_bounded_length() {
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let text = format!("? \"{}\"\n:\n- image: a/b:1\n", "k".repeat(100_000));
        let found = audit(Path::new("x.yaml"), &text, &inventory);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path[1..], ["[0]", "image"]);
        assert_eq!(found[0].path[0].len(), 1 << 10);
    }

    #[test]
    fn an_alias_at_the_key_of_an_image_is_an_image() {
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let text = "x: &x redis:8\nservices: {a: {image: *x}}\n";
        let found = audit(Path::new("x.yaml"), text, &inventory);
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.line, one.column, &*one.reference))
            .collect();
        assert_eq!(found, [(2, 23, "redis:8")]);
    }

    #[test]
    fn assignments_name_images_by_their_form() {
        for (line, expected) in [
            ("image = \"redis:7\"", Some(("redis:7", true))),
            ("Image=redis:7", Some(("redis:7", true))),
            ("\"image\":\"redis:7\",", Some(("redis:7", true))),
            ("IMAGE=redis:7", Some(("redis:7", false))),
            ("IMAGE=quay.io/a/b:1", Some(("quay.io/a/b:1", true))),
            ("image = \"debian-cloud/debian-11\"", None),
            ("IMAGE=$(make image)", None),
            ("A_IMAGE ?= redis:7 # x", Some(("redis:7", false))),
            ("A_IMAGE := redis:7", Some(("redis:7", false))),
            ("A_IMAGE::=quay.io/a/b:1", Some(("quay.io/a/b:1", true))),
            ("export A_IMAGE=redis:7", Some(("redis:7", false))),
            ("Environment=A_IMAGE=redis:7", Some(("redis:7", false))),
            ("image?: string", None),
            ("image = \"a/b:${v}\"", Some(("a/b:${v}", false))),
            ("image = \"projects/${v}/images/x\"", None),
            ("image:x", None),
        ] {
            let found = candidates_in_lines(line);
            let found = found.first().map(|one| (&*one.written, one.sure));
            assert_eq!(found, expected, "{line}");
        }
    }
}
