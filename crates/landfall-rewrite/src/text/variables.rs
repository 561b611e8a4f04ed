//! Placeholders in references and URLs, and the shell variables that fill them in.

use std::collections::{BTreeMap, BTreeSet};

// Recognizes placeholders in references and URLs. Another program replaces them later.

/// The beginning and the end of a placeholder, and the beginning of a nested one. `${{` must
/// precede `${`.
const BRACKETS: [(&str, &str, Option<&str>); 4] = [
    ("{{", "}}", None),
    ("${{", "}}", None),
    ("${", "}", Some("${")),
    ("$(", ")", Some("(")),
];

/// The length of the placeholder at the beginning of `text`: `$NAME`, `${…}`, `$(…)`, `{{…}}` or
/// `${{…}}`, on one line and at most `max_bytes` bytes long.
pub(super) fn placeholder(text: &str, max_bytes: usize) -> Option<usize> {
    // without the limit, a text of unclosed brackets would take quadratic time
    let text = &text[..text.floor_char_boundary(max_bytes)];
    if let Some((open, close, inner)) = BRACKETS.iter().find(|(open, ..)| text.starts_with(open)) {
        let line = text.split('\n').next()?;
        return Some(open.len() + closed(&line[open.len()..], close, *inner)?);
    }
    let name = text.strip_prefix('$')?;
    let len = name
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(name.len());
    (len > 0).then_some(1 + len)
}

/// The offset after the `close` that matches the bracket before `text`. Nested brackets begin with
/// `open`, and each has a `close` of its own.
fn closed(text: &str, close: &str, open: Option<&str>) -> Option<usize> {
    let mut depth = 1;
    let mut at = 0;
    while depth > 0 {
        let end = at + text[at..].find(close)?;
        depth += open.map_or(0, |open| text[at..end].matches(open).count());
        depth -= 1;
        at = end + close.len();
    }
    Some(at)
}

/// The reference with placeholders, or the pattern, that `text` begins with, as it is printed. It
/// has at most `max_bytes` bytes. Outside of `{{…}}`, it ends before a blank, a quote, a separator
/// of commands or an unmatched closing bracket. The text after it may be a password.
pub(crate) fn reference_at(text: &str, max_bytes: usize) -> &str {
    let text = &text[..text.floor_char_boundary(max_bytes)];
    let mut end = 0;
    let mut open = Vec::new();
    while let Some(next) = text[end..].chars().next() {
        if text[end..].starts_with("{{") {
            let Some(len) = placeholder(&text[end..], max_bytes) else {
                return &text[..end + 2];
            };
            end += len;
            continue;
        }
        let is_alternative = next == '|' && open.contains(&')');
        if (ends(next) && !is_alternative) || text[end..].starts_with("</") {
            break;
        }
        match next {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            '<' => open.push('>'),
            ')' | ']' | '}' | '>' if open.pop() != Some(next) => break,
            _ => {}
        }
        end += next.len_utf8();
    }
    text[..end].trim_end_matches('.')
}

fn ends(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "\"'`\\,;|&".contains(c)
}

/// Whether `text` contains the beginning of a placeholder of a template or a shell, or a
/// placeholder such as `__TAG__`.
pub(crate) fn has_placeholder(text: &str) -> bool {
    ["{{", "${", "$("].iter().any(|mark| text.contains(mark)) || has_underscored(text)
}

/// Whether `text` contains `__` in a position other than between two lower-case letters or digits.
/// Between these, `__` may be part of a repository or a tag.
fn has_underscored(text: &str) -> bool {
    let is_word = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    text.match_indices("__").any(|(at, mark)| {
        let bytes = text.as_bytes();
        !(is_word(bytes[..at].last()) && is_word(bytes.get(at + mark.len())))
    })
}

// Finds the variables that the shell commands of a text assign, and fills in their values.

/// Words before an assignment: builtins of shells, keywords, and instructions of Dockerfiles.
const BEFORE: [&str; 12] = [
    "export", "readonly", "local", "declare", "typeset", "env", "then", "do", "else", "ARG", "ENV",
    "RUN",
];

/// The maximum number of placeholders that are filled in for one text, and the maximum length of
/// the result. Values may contain further placeholders.
const MAX_PLACEHOLDERS: usize = 256;

const MAX_BYTES: usize = 4 << 10;

/// The maximum length of a placeholder. Without it, unclosed brackets would take quadratic time.
pub(super) const MAX_PLACEHOLDER_BYTES: usize = 256;

const MAX_DEPTH: usize = 16;

/// The maximum number of texts that variables with several values give.
const MAX_EXPANSIONS: usize = 64;

/// The variables that a text assigns.
#[derive(Debug, Default)]
pub(crate) struct ShellVariables<'t> {
    values: BTreeMap<&'t str, AssignedValues<'t>>,
    /// Whether the text is a makefile, in which `$(NAME)` is a variable, too.
    is_makefile: bool,
}

/// The values that the commands of a text assign to a variable.
#[derive(Debug, Default)]
struct AssignedValues<'t> {
    literals: BTreeSet<&'t str>,
    /// Whether a command computes a value.
    is_computed: bool,
}

impl<'t> AssignedValues<'t> {
    /// The value, if it is always the same.
    fn single(&self) -> Option<&'t str> {
        let is_single = !self.is_computed && self.literals.len() == 1;
        self.literals.first().copied().filter(|_| is_single)
    }
}

impl<'t> ShellVariables<'t> {
    /// Reads the assignments of `text`: `NAME=VALUE` at the beginning of a command, in
    /// `Environment=` of a unit, `${NAME:=VALUE}`, and those of a makefile. A variable that is also
    /// a key of a mapping has a value that is not known.
    pub(crate) fn of(text: &'t str) -> ShellVariables<'t> {
        let mut variables = ShellVariables::default();
        // only references and URLs with placeholders need the values
        if !text.contains('$') {
            return variables;
        }
        let is_of_make = |line: &str| {
            let assignment = make_assignment(line);
            assignment.is_some_and(|(_, operator, _)| MAKE_OPERATORS.contains(&operator))
        };
        variables.is_makefile = text.lines().any(is_of_make);
        for line in text.lines() {
            // a target may have a value of its own: `release: V := v2`
            let target = line.split_once(": ");
            let target = target.filter(|(target, _)| !target.starts_with(['\t', '#']));
            let of_target = || make_assignment(target?.1);
            if variables.is_makefile
                && let Some((name, operator, value)) = make_assignment(line).or_else(of_target)
            {
                let is_literal = operator != "+=" && !value.contains(['"', '\'', '`', '\\']);
                variables.add(name, is_literal.then_some(value));
                continue;
            }
            let line = line.trim_start_matches([' ', '\t', '-', '"', '\'']);
            if !line.starts_with('#') {
                variables.read_commands(line);
                variables.read_defaults(line);
                variables.read_entry(line);
            }
        }
        variables
    }

    /// Returns `text` with its placeholders filled in. `None` if a value is not known.
    pub(crate) fn filled(&self, text: &str) -> Option<String> {
        let mut filling = Filling {
            left: MAX_PLACEHOLDERS,
            ..Filling::default()
        };
        self.fill(text, &mut filling)?;
        Some(filling.text)
    }

    /// Returns `text` with its placeholders filled in, or as it is if a value is not known.
    pub(crate) fn filled_or_written(&self, text: &str) -> String {
        self.filled(text).unwrap_or_else(|| text.to_owned())
    }

    /// Returns `text` with each combination of the values of its variables, as a `case` or a loop
    /// assigns them. An empty value is a default that another value replaces. `None` if a value is
    /// not known, or if there are too many combinations.
    pub(crate) fn expansions(&self, text: &str) -> Option<Vec<String>> {
        let mut done = Vec::new();
        let mut open = vec![BTreeMap::new()];
        while let Some(chosen) = open.pop() {
            let mut filling = Filling {
                left: MAX_PLACEHOLDERS,
                chosen,
                ..Filling::default()
            };
            if self.fill(text, &mut filling).is_some() {
                done.push(filling.text);
            } else {
                let name = filling.undecided?;
                let literals = self.values.get(name)?.literals.iter();
                let literals = literals.filter(|value| !value.is_empty());
                // one more than can be used, because each reference in a text expands its variables
                for value in literals.take(MAX_EXPANSIONS + 1) {
                    let mut chosen = filling.chosen.clone();
                    chosen.insert(name, *value);
                    open.push(chosen);
                }
            }
            if done.len() + open.len() > MAX_EXPANSIONS {
                return None;
            }
        }
        Some(done)
    }

    /// Returns the references that `text` is with each combination of the values of its variables.
    /// `None` if it has no variable, if a value is not known, or if `text` has a default for one:
    /// the environment may replace it.
    pub(crate) fn references(&self, text: &str) -> Option<Vec<String>> {
        let mut braces = text.split("${").skip(1);
        let has_default = braces.any(|inner| {
            let name = inner.split('}').next().unwrap_or_default();
            name.contains(['-', '='])
        });
        if has_default || !text.contains('$') {
            return None;
        }
        self.expansions(text)
    }

    fn fill<'v>(&'v self, text: &'v str, filling: &mut Filling<'v>) -> Option<()> {
        let mut rest = text;
        while let Some(at) = rest.find(['$', '`', '{', '\\']) {
            filling.text.push_str(&rest[..at]);
            filling.left = filling.left.checked_sub(1)?;
            rest = &rest[at..];
            let len = placeholder(rest, MAX_PLACEHOLDER_BYTES)?;
            let in_make = self.make_variable(&rest[..len]).map(|name| (name, None));
            let (name, default) = in_make.or_else(|| variable(&rest[..len]))?;
            rest = &rest[len..];
            match self.values.get_key_value(name) {
                // `VERSION=${VERSION:-v1}` reads the variable before it is assigned
                Some((name, value)) if !filling.open.contains(name) => {
                    filling.open.push(name);
                    (filling.open.len() <= MAX_DEPTH).then_some(())?;
                    let chosen = filling.chosen.get(name).copied();
                    let Some(value) = chosen.or_else(|| value.single()) else {
                        filling.undecided = (!value.is_computed).then_some(*name);
                        return None;
                    };
                    self.fill(value, filling)?;
                    filling.open.pop();
                }
                _ => self.fill(default?, filling)?,
            }
        }
        filling.text.push_str(rest);
        (filling.text.len() <= MAX_BYTES).then_some(())
    }

    /// The name in the placeholder `$(NAME)` of a makefile.
    fn make_variable<'p>(&self, placeholder: &'p str) -> Option<&'p str> {
        let name = placeholder.strip_prefix("$(")?.strip_suffix(')')?;
        (self.is_makefile && !name.is_empty() && name_len(name) == name.len()).then_some(name)
    }

    fn read_commands(&mut self, line: &'t str) {
        let mut rest = line;
        let mut has_read = false;
        loop {
            rest = rest.trim_start_matches([' ', '\t', ';', '&', '|', '{', '(', ')']);
            let (word, after) = rest.split_at(name_len(rest));
            if let Some(value) = after.strip_prefix('=').filter(|_| !word.is_empty()) {
                // a unit: `Environment="NAME=VALUE"`
                if word == "Environment" {
                    rest = value.trim_start_matches(['"', '\'']);
                    continue;
                }
                let (value, after) = assigned(value);
                self.add(word, value);
                rest = after;
            } else if BEFORE.contains(&word) && after.starts_with(' ') {
                rest = after.trim_start();
                while rest.starts_with('-') {
                    rest = rest.find(' ').map_or("", |end| rest[end..].trim_start());
                }
            } else {
                // `((i++))` counts
                if after.starts_with("+=") || after.starts_with("++") {
                    self.add(word, None);
                }
                // a bracket ends the pattern of a `case`
                let end = rest.find([';', '&', '|', ')']);
                match word {
                    // the operator is included: within a list, it is part of a computed value
                    "for" => self.read_loop(end.map_or(after, |end| &rest[word.len()..=end])),
                    // the command assigns its arguments; those of a later one on this line are
                    // among the words after the first one
                    "read" | "let" if !has_read => {
                        has_read = true;
                        for name in after.split([' ', ';', '"', '\'']) {
                            self.add(&name[..name_len(name)], None);
                        }
                    }
                    _ => {}
                }
                match end {
                    Some(end) => rest = &rest[end..],
                    None => return,
                }
            }
        }
    }

    /// Reads `NAME in WORD...`, which follows `for`.
    fn read_loop(&mut self, text: &'t str) {
        let head = text.split(';').next().unwrap_or_default().trim();
        let (name, words) = head.split_once(" in ").unwrap_or((head, "$"));
        let name = &name[..name_len(name)];
        let is_computed = |word: &str| {
            word.contains(|c: char| !(c.is_ascii_alphanumeric() || "-_.:/+".contains(c)))
        };
        for word in words.split_whitespace() {
            self.add(name, (!is_computed(word)).then_some(word));
        }
    }

    fn read_defaults(&mut self, line: &'t str) {
        for (at, mark) in line.match_indices("${") {
            let rest = &line[at + mark.len()..];
            let near = &rest[..rest.floor_char_boundary(MAX_PLACEHOLDER_BYTES)];
            let closed = near.split_once('}').map(|(inner, _)| inner);
            if let Some((name, value)) = closed.unwrap_or(near).split_once(":=")
                && name_len(name) == name.len()
            {
                self.add(name, closed.map(|_| value));
            }
        }
    }

    /// Reads `NAME: VALUE`, an entry with which a pipeline sets a variable of its scripts. The
    /// value is not used, since not every script of the file gets it.
    fn read_entry(&mut self, line: &'t str) {
        let (name, after) = line.split_at(name_len(line));
        // keys such as `image` have the names of variables in lower case
        let is_variable = !name.contains(|c: char| c.is_ascii_lowercase());
        let value = after.trim_start_matches(['"', '\'']).strip_prefix(':');
        if is_variable && value.is_some_and(|value| value.is_empty() || value.starts_with(' ')) {
            self.add(name, None);
        }
    }

    fn add(&mut self, name: &'t str, value: Option<&'t str>) {
        if name.is_empty() {
            return;
        }
        // a longer value makes every text too long, and would be copied for each URL
        let value = value.filter(|value| value.len() <= MAX_BYTES);
        let known = self.values.entry(name).or_default();
        known.literals.extend(value);
        known.is_computed |= value.is_none();
    }
}

/// A text whose placeholders are being filled in.
#[derive(Default)]
struct Filling<'v> {
    text: String,
    /// The variables whose values are being filled in.
    open: Vec<&'v str>,
    /// The number of placeholders that may still be filled in.
    left: usize,
    /// The value that is used of each variable with several values.
    chosen: BTreeMap<&'v str, &'v str>,
    /// The variable with several values of which none is chosen.
    undecided: Option<&'v str>,
}

/// The length of the name of a variable at the beginning of `text`.
fn name_len(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(text.len())
}

/// The operators of makefiles that a shell does not have.
const MAKE_OPERATORS: [&str; 3] = ["?=", ":=", "::="];

/// The name, the operator and the value of the assignment that `line` is in a makefile.
fn make_assignment(line: &str) -> Option<(&str, &str, &str)> {
    let line = line.trim_start_matches(' ');
    let line = ["export ", "override "]
        .iter()
        .find_map(|word| line.strip_prefix(word))
        .unwrap_or(line);
    let (name, rest) = line.split_at(name_len(line));
    let rest = rest.trim_start_matches([' ', '\t']);
    let mut operators = MAKE_OPERATORS.into_iter().chain(["+=", "="]);
    let operator = operators.find(|operator| rest.starts_with(operator))?;
    let value = rest[operator.len()..].split('#').next()?;
    (!name.is_empty()).then_some((name, operator, value.trim()))
}

/// The value that begins `text`, which follows `NAME=`, and the text after it. `None` if a shell
/// computes the value.
fn assigned(text: &str) -> (Option<&str>, &str) {
    let ends = |c: char| c.is_whitespace() || ";&|)\"'`,]".contains(c);
    let quote = text.chars().next().filter(|c| "\"'".contains(*c));
    let (value, rest) = match quote {
        Some(quote) => match text[1..].split_once(quote) {
            Some(parts) => parts,
            None => return (None, ""),
        },
        None => text.split_at(value_len(text, ends)),
    };
    let after = rest.trim_start_matches(['"', '\'']);
    let is_whole = after.is_empty() || after.starts_with(ends);
    let is_literal = quote != Some('\'') || !value.contains('$');
    let is_computed = value.contains(['`', '\\']) || value.contains("$(");
    (
        (is_whole && is_literal && !is_computed).then_some(value),
        rest,
    )
}

/// The length of an unquoted value. A character in `${…}` or `$(…)` does not end it.
fn value_len(text: &str, ends: impl Fn(char) -> bool) -> usize {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let is_placeholder = c == '$';
        let len = is_placeholder.then(|| placeholder(&text[at..], MAX_PLACEHOLDER_BYTES));
        match len.flatten() {
            Some(len) => at += len,
            None if ends(c) => break,
            None => at += c.len_utf8(),
        }
    }
    at
}

/// The name in the placeholder `$NAME` or `${NAME}`, and the default in `${NAME:-DEFAULT}`. `None`
/// for all other placeholders.
fn variable(placeholder: &str) -> Option<(&str, Option<&str>)> {
    let rest = placeholder.strip_prefix('$')?;
    let inner = match rest.strip_prefix('{') {
        Some(inner) => inner.strip_suffix('}')?,
        None => rest,
    };
    let (name, operator) = inner.split_at(name_len(inner));
    let default = operator.strip_prefix(':').unwrap_or(operator);
    let default = default.strip_prefix(['-', '=']);
    (!name.is_empty() && (operator.is_empty() || default.is_some())).then_some((name, default))
}

#[cfg(test)]
mod tests {
    use super::{has_placeholder, placeholder, reference_at, *};
    use landfall_model::document::growth::assert_linear;

    #[test]
    fn two_underscores_between_words_are_a_separator() {
        for text in ["quay.io/a/b__c:v1", "a:v1__2", "a_b"] {
            assert!(!has_placeholder(text), "{text}");
        }
        for text in [
            "a:__TAG__",
            "a:__tag__",
            "__HOST__/a",
            "a:v__TAG__",
            "a:v1___2",
        ] {
            assert!(has_placeholder(text), "{text}");
        }
    }

    #[test]
    fn a_placeholder_ends_at_the_matching_bracket() {
        for (text, expected) in [
            ("$NAME/x", "$NAME"),
            ("${NAME}/x}", "${NAME}"),
            ("${{ github.ref }}/x", "${{ github.ref }}"),
            ("${{ a }}-${{ b }}/x", "${{ a }}"),
            ("${A:-${B}}/x", "${A:-${B}}"),
            ("$(uname -m | sed s/(x)/y/)/x", "$(uname -m | sed s/(x)/y/)"),
            ("{{ .a }}/{{ .b }}", "{{ .a }}"),
        ] {
            assert_eq!(placeholder(text, 100), Some(expected.len()), "{text}");
        }
        for text in ["${{ a }", "${A:-${B}", "$(a", "{{ a\n}}", "$", "$/x", "x"] {
            assert_eq!(placeholder(text, 100), None, "{text}");
        }
    }

    #[test]
    fn a_reference_ends_at_a_blank_and_at_the_limit() {
        for (text, expected) in [
            ("a/b:$TAG --password x", "a/b:$TAG"),
            ("a/b:$TAG;x=y", "a/b:$TAG"),
            (
                "a/b:{{ .Values.tag }}-{{ .x }} y",
                "a/b:{{ .Values.tag }}-{{ .x }}",
            ),
            ("a/b:{{ tag \"x y\" }} z", "a/b:{{ tag \"x y\" }}"),
            ("a/b:{{ .x }}\" {{ .y }}", "a/b:{{ .x }}"),
            ("a/b:{{ .x", "a/b:{{"),
            ("a/b:${TAG}\nx", "a/b:${TAG}"),
            ("a/b:<TAG>", "a/b:<TAG>"),
            ("a/b:$(cat /x)", "a/b:$(cat"),
            ("a/b:$T) x", "a/b:$T"),
            ("a/b:$T</b>", "a/b:$T"),
            ("a/b:$T.", "a/b:$T"),
            ("a/b:(1|[2-3])|x", "a/b:(1|[2-3])"),
        ] {
            assert_eq!(reference_at(text, 100), expected);
        }
        let long = format!("a/b:$T{}", "é".repeat(100));
        assert_eq!(reference_at(&long, 101).len(), 100);
    }

    fn filled(script: &str, text: &str) -> Option<String> {
        let script = format!("{script}\n# https://x $\n");
        ShellVariables::of(&script).filled(text)
    }

    #[test]
    fn values_of_variables_are_filled_in() {
        for (script, expected) in [
            ("V=v1", Some("v1")),
            ("export V=\"v1\" # why", Some("v1")),
            ("  - 'V=v1; curl x'", Some("v1")),
            ("declare -r V='v1'", Some("v1")),
            ("set -e; A=x V=v1 && curl y", Some("v1")),
            ("ARG V=v1", Some("v1")),
            ("Environment=\"A=b\" \"V=v1\"", None),
            ("Environment=V=v1", Some("v1")),
            ("Environment=\"V=v1\"", Some("v1")),
            (": \"${V:=v1}\"", Some("v1")),
            ("V=${V:-v1}", Some("v1")),
            ("V=${1:-v1}", None),
            ("M=1\nV=\"v${M}\"", Some("v1")),
            ("V=v1\nif x; then V=v1; fi", Some("v1")),
            ("V=v1\nif x; then V=v2; fi", None),
            ("V=v1\ncase x in\n*) V=v2 ;;\nesac", None),
            ("case x in a | \"b\") V=v1 ;; esac", Some("v1")),
            ("V=v1\nV+=2", None),
            ("V=v1\nfor V in a b; do curl x; done", None),
            ("V=v1\nfor V in $(a | b) c; do curl x; done", None),
            ("V=v1\nread -p 'one (of two)' V", None),
            ("V=v1\nread A; read V", None),
            ("V=1\nwhile x; do curl $V; ((V++)); done", None),
            ("V=1\nlet A=2 V+=1", None),
            ("V=1\nlet \"V = V + 1\"", None),
            ("  V: v2\n- V=v1", None),
            ("V=v1\n\"V\":", None),
            ("V=v1\nv: 2\nV:2", Some("v1")),
            (": ${V:=v1", None),
            ("V=$(cat version)", None),
            ("V='$M'", None),
            ("V=\"v1\"$M", None),
            ("V=$V", None),
            ("A=$V\nV=$A", None),
            ("echo V=v1", None),
            ("# V=v1", None),
            ("W=v1", None),
        ] {
            assert_eq!(filled(script, "$V").as_deref(), expected, "{script}");
        }
        let all = filled("A=1\nB=2", "https://h/$A/${B}/${C:-3}/x");
        assert_eq!(all.as_deref(), Some("https://h/1/2/3/x"));
        for text in ["{{ .V }}", "a/$(x)", "a/{b,c}", "${V#v}", "a/$"] {
            assert_eq!(filled("V=v1", text), None, "{text}");
        }
    }

    #[test]
    fn variables_of_makefiles_are_filled_in() {
        for (makefile, expected) in [
            ("V := v1", Some("v1")),
            ("V ?= v1 # why", Some("v1")),
            ("export V::=v1", Some("v1")),
            ("A := 1\nV = v$(A)", Some("v1")),
            ("A := 1\nV=v$(A)", Some("v1")),
            ("A := 1\nV = $(shell cat v)", None),
            ("V := v1\nV += v2", None),
            ("W+=v2\nV = v1", None),
            ("V ?= v1\nV := v2", None),
            ("V := v1\noverride V := v2", None),
            ("V := v1\nrelease dev: V := v2", None),
            ("V := v1\n# V: V=v2\na: b\n\techo a: V=v2", Some("v1")),
            ("A := 1\n\tV := v1", None),
            // a shell calls the command `V`
            ("V=v1", None),
        ] {
            assert_eq!(filled(makefile, "$(V)").as_deref(), expected, "{makefile}");
        }
        let all = filled("A := 1\nB = 2\n", "quay.io/$(A)/${B}:$A");
        assert_eq!(all.as_deref(), Some("quay.io/1/2:1"));
        for text in ["$()", "$(V", "$(V A)", "$(W)"] {
            assert_eq!(filled("V := v1", text), None, "{text}");
        }
    }

    #[test]
    fn variables_with_several_values_give_all_combinations() {
        let expanded = |script: &str| {
            let script = format!("{script}\n# https://x $\n");
            ShellVariables::of(&script).expansions("$A/$B")
        };
        let script = "A=\ncase x in\na) A=1 ;;\nb) A=2 ;;\nesac\nfor B in x y; do curl; done";
        let mut all = expanded(script).unwrap();
        all.sort();
        assert_eq!(all, ["1/x", "1/y", "2/x", "2/y"]);
        for script in [
            "A=1",
            "A=1\nfor B in $C x; do curl; done",
            "A=1\nB=x\nB=$(y)",
        ] {
            assert_eq!(expanded(script), None, "{script}");
        }
        let many = |name: &str| {
            let values: String = (0..9).map(|at| format!(" v{at}")).collect();
            format!("for {name} in{values}; do x; done\n")
        };
        assert_eq!(expanded(&(many("A") + &many("B"))), None);
    }

    #[test]
    fn many_references_with_a_variable_of_many_values_take_linear_time() {
        assert_linear(1_000, |count| {
            let values: String = (0..count).map(|at| format!("V=v{at}\n")).collect();
            let script = values + "x $V\n";
            let variables = ShellVariables::of(&script);
            assert!((0..count).all(|_| variables.expansions("quay.io/a/b:$V").is_none()));
        });
    }

    #[test]
    fn values_that_repeat_each_other_are_bounded() {
        let bomb = |value: &str| {
            let lines = (0..40).map(|at| format!("A{at}=$A{0}$A{0}\n", at + 1));
            filled(&(lines.collect::<String>() + "A40=" + value), "$A0")
        };
        assert_eq!((bomb("x"), bomb("")), (None, None));
    }
}
