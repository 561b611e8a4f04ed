//! What a template makes a reference of: whether each of its sources is a value in which an image
//! was found, or one that is empty. Whatever else goes into it is decided by whoever renders the
//! chart.

use super::finding::{Coverage, Finding};
use crate::chart::Installed;
use crate::reference_parts::{Part, part};
use serde_yaml::{Mapping, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What the values of a chart say, and how its helpers put references together.
pub(super) struct Sources<'a> {
    values: &'a Mapping,
    /// The paths of the values that name images.
    named: Vec<Vec<String>>,
    /// The keys that lead to the values of each chart.
    charts: BTreeSet<&'a [String]>,
    /// The bodies of helpers by their names.
    helpers: BTreeMap<String, String>,
}

/// What was seen in an expression.
#[derive(Default)]
struct Seen<'a> {
    /// Whether a source is known, and whether one is not.
    known: bool,
    open: bool,
    /// Helpers and variables that were read already.
    read: BTreeSet<&'a str>,
}

/// The text that an expression stands in, for its variables; and the keys that lead to the values
/// of its chart, where it is known which chart renders it.
#[derive(Clone, Copy)]
struct Scope<'a> {
    text: &'a str,
    /// Whether one action is the whole reference.
    is_whole: bool,
    below: Option<&'a [String]>,
}

impl<'a> Sources<'a> {
    /// The sources of a chart with these effective `values` and templates; at the paths `named`
    /// stands an image. `helpers` are the texts of all its helpers, of charts that are switched off
    /// too.
    pub(super) fn new(
        values: &'a Mapping,
        named: Vec<Vec<String>>,
        templates: &'a [Installed<'a>],
        helpers: impl Iterator<Item = &'a str>,
    ) -> Sources<'a> {
        let charts = templates.iter().map(|template| &*template.below).collect();
        let texts: Vec<String> = helpers.map(without_comments).collect();
        let mut helpers = BTreeMap::new();
        for definition in texts.iter().flat_map(|text| text.split("define ").skip(1)) {
            let mut words = definition.splitn(3, '"');
            if let (Some(""), Some(name), Some(body)) = (words.next(), words.next(), words.next()) {
                helpers.insert(name.to_owned(), body.to_owned());
            }
        }
        Sources {
            values,
            named,
            charts,
            helpers,
        }
    }

    /// Whether nothing about the reference `finding` of a template is open but what stands
    /// elsewhere.
    pub(super) fn decide(&self, finding: &Finding, template: &Installed<'_>) -> bool {
        let Coverage::Undecided { .. } = finding.coverage else {
            return false;
        };
        if !finding.reference.contains("{{") {
            return false;
        }
        // a helper may be called for any chart
        let below = (!template.is_helper()).then_some(&*template.below);
        let written = &finding.reference;
        let is_whole = written.starts_with("{{") && written.find("}}") == Some(written.len() - 2);
        let (scope, mut seen) = (
            Scope {
                text: template.text,
                is_whole,
                below,
            },
            Seen::default(),
        );
        for action in actions(written) {
            self.look(action, scope, false, &mut seen);
        }
        seen.known && !seen.open
    }

    /// Looks at one action, or at what is assigned to a variable. In a helper, what does not begin
    /// at the values is what it was called with.
    fn look<'t>(&'t self, action: &'t str, scope: Scope<'t>, in_helper: bool, seen: &mut Seen<'t>) {
        let paths: Vec<Vec<&str>> = values_in(action)
            .map(|path| path.split('.').collect())
            .collect();
        let is_alone = is_value_alone(action);
        let whole = scope.is_whole && is_alone && !in_helper;
        let is_source =
            |path: &&Vec<&str>| whole || is_of_image(path) || self.is_known(path, scope);
        let images: Vec<&Vec<&str>> = paths.iter().filter(is_source).collect();
        if images.iter().any(|path| self.is_known(path, scope)) {
            seen.known = true;
        } else if let Some(first) = images.first() {
            // a value alone that is empty makes no reference
            let is_repository = matches!(
                part(first.last().unwrap_or(&"")),
                Some((_, Part::Repository))
            );
            let is_nothing = is_alone && (whole || is_repository) && self.is_empty(first, scope);
            seen.known |= is_nothing;
            seen.open |= !is_nothing;
        }
        // another variant of the image than the values name
        seen.open |= literals(action)
            .any(|text| text.contains("%s-") || (text.len() > 1 && text.starts_with('-')));
        for name in calls(action) {
            match self.helpers.get(name) {
                Some(body) if seen.read.insert(name) => {
                    for action in actions(body) {
                        self.look(
                            action,
                            Scope {
                                text: body,
                                ..scope
                            },
                            true,
                            seen,
                        );
                    }
                }
                Some(_) => {}
                None => seen.open = true,
            }
        }
        if in_helper {
            return;
        }
        for variable in variables(action) {
            let assigned: Vec<&str> = assignments(scope.text, variable).collect();
            seen.open |= assigned.is_empty();
            if seen.read.insert(variable) {
                for action in assigned {
                    self.look(action, scope, false, seen);
                }
            }
        }
        // `.image` of what a `range` or `with` goes through: where the values have such a key, it
        // was read there
        for keys in words(action).filter_map(relative) {
            let is_at_end = |known: &Vec<String>| {
                known
                    .iter()
                    .rev()
                    .zip(keys.iter().rev())
                    .all(|(a, b)| a == b)
            };
            if self
                .named
                .iter()
                .any(|known| known.len() >= keys.len() && is_at_end(known))
            {
                seen.known = true;
            } else {
                let is_other = part(keys.last().unwrap_or(&""))
                    .is_some_and(|(_, part)| part != Part::Repository);
                seen.open |= !is_other;
            }
        }
    }

    /// Whether an image was found at the value, in it or around it.
    fn is_known(&self, path: &[&str], scope: Scope<'_>) -> bool {
        let meets = |known: &[String]| known.iter().zip(path).all(|(a, b)| a == b);
        self.named.iter().any(|known| match below(path, scope) {
            Some(below) => known.strip_prefix(below).is_some_and(meets),
            None => self
                .charts
                .iter()
                .any(|below| known.strip_prefix(*below).is_some_and(meets)),
        })
    }

    /// Whether the value is there, and is empty.
    fn is_empty(&self, path: &[&str], scope: Scope<'_>) -> bool {
        // whose values they are is not known
        let Some(below) = below(path, scope) else {
            return false;
        };
        let mut keys = below.iter().map(String::as_str).chain(path.iter().copied());
        let first = keys.next().and_then(|key| self.values.get(key));
        match keys.fold(first, |value, key| value?.get(key)) {
            Some(Value::Null) => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Sequence(items)) => items.is_empty(),
            Some(Value::Mapping(items)) => items.is_empty(),
            _ => false,
        }
    }
}

/// The keys before `path` in the values of all charts. The globals of a subchart are those of all.
fn below<'a>(path: &[&str], scope: Scope<'a>) -> Option<&'a [String]> {
    if path.first() == Some(&"global") {
        Some(&[])
    } else {
        scope.below
    }
}

/// Whether the key at the end of a path is that of an image or of its repository.
pub(super) fn is_of_image(path: &[&str]) -> bool {
    let key = path.last().copied().unwrap_or_default();
    match part(key) {
        Some((_, part)) => part == Part::Repository,
        None => {
            let lower = key.to_ascii_lowercase();
            let above = path
                .iter()
                .rev()
                .nth(1)
                .is_some_and(|key| key.to_ascii_lowercase().contains("image"));
            (lower.contains("image") && !lower.contains("pull")) || (lower == "name" && above)
        }
    }
}

/// What stands between `{{` and `}}`, without what begins a branch or ends one.
fn actions(text: &str) -> impl Iterator<Item = &str> {
    let inside = text
        .split("{{")
        .skip(1)
        .map(|rest| rest.split("}}").next().unwrap_or(rest));
    let inside = inside.map(|action| action.trim_matches(['-', ' ', '\t', '\n']));
    inside.filter(|action| {
        !["if ", "else", "end", "/*"]
            .iter()
            .any(|word| action.starts_with(word))
    })
}

/// The paths behind `.Values.`
fn values_in(action: &str) -> impl Iterator<Item = &str> {
    action.split(".Values.").skip(1).map(|rest| {
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c)))
            .unwrap_or(rest.len());
        rest[..end].trim_end_matches('.')
    })
}

/// Whether an action writes one value and nothing in its place.
fn is_value_alone(action: &str) -> bool {
    const HARMLESS: [&str; 8] = ["|", "quote", "trim", "toString", "tpl", ".", "$", "toYaml"];
    let is_value = |word: &str| word.starts_with(".Values.") || word.starts_with("$.Values.");
    words(action).all(|word| is_value(word) || HARMLESS.contains(&word))
}

/// The names of the helpers that are called.
fn calls(action: &str) -> impl Iterator<Item = &str> {
    let of = |word| {
        action
            .split(word)
            .skip(1)
            .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
    };
    of("include ").chain(of("template "))
}

/// What stands in quotes.
fn literals(action: &str) -> impl Iterator<Item = &str> {
    action.split('"').skip(1).step_by(2)
}

/// The variables that are read: `$image` of `$image.tag`.
fn variables(action: &str) -> impl Iterator<Item = &str> {
    words(action).filter_map(|word| {
        let name = word.strip_prefix('$')?.split('.').next()?;
        (!name.is_empty()).then(|| &word[..=name.len()])
    })
}

/// What `text` assigns to a variable.
fn assignments<'t>(text: &'t str, variable: &str) -> impl Iterator<Item = &'t str> {
    text.match_indices(variable).filter_map(move |(at, _)| {
        let rest = text[at + variable.len()..].trim_start();
        let value = rest.strip_prefix(":=").or_else(|| rest.strip_prefix('='))?;
        value.split("}}").next()
    })
}

fn words(action: &str) -> impl Iterator<Item = &str> {
    action
        .split(|c: char| c.is_whitespace() || "()".contains(c))
        .filter(|word| !word.is_empty())
}

/// The keys of a word that is a field of what is looked at now: not of the values, the chart or the
/// release.
fn relative(word: &str) -> Option<Vec<&str>> {
    const OF_ALL: [&str; 6] = [
        "Values",
        "Chart",
        "Release",
        "Capabilities",
        "Template",
        "Files",
    ];
    let keys: Vec<&str> = word.strip_prefix('.')?.split('.').collect();
    (!keys[0].is_empty() && !OF_ALL.contains(&keys[0])).then_some(keys)
}

/// The text without its comments, which show how helpers are called.
fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once("*/").map_or("", |(_, rest)| rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The references of `template` that are open, in a chart with these values and helpers. An
    /// image stands at each path of `named`.
    fn open(values: &str, named: &[&str], helpers: &str, template: &str) -> Vec<String> {
        let values: Mapping = serde_yaml::from_str(values).unwrap();
        let named = named
            .iter()
            .map(|path| path.split('.').map(str::to_owned).collect())
            .collect();
        let installed = [Installed {
            below: Vec::new(),
            file: "a/templates/d.yaml",
            text: template,
        }];
        let sources = Sources::new(&values, named, &installed, std::iter::once(helpers));
        let references = template
            .lines()
            .filter_map(|line| line.split_once("image: "));
        let undecided = |(_, reference): (&str, &str)| {
            let coverage = Coverage::Undecided { why: String::new() };
            let reference = reference.to_owned();
            Finding {
                line: 1,
                column: 1,
                path: Vec::new(),
                manager: None,
                reference,
                coverage,
            }
        };
        let open = references
            .map(undecided)
            .filter(|finding| !sources.decide(finding, &installed[0]));
        open.map(|finding| finding.reference).collect()
    }

    #[test]
    fn what_is_made_of_a_value_with_an_image_is_decided() {
        let values = "image: {repository: x/y, tag: v1}\nother: {image: x/z}\nnone: ''\n";
        let named = ["image.repository", "other.image"];
        let helpers = "{{ define \"a.image\" }}{{ printf \"%s:%s\" .Values.image.repository .Values.image.tag }}{{ end }}\
            {{/* it is called so: {{ include \"b.image\" .Values.my.image }} */}}\
            {{ define \"common.image\" }}{{ .root.repository }}{{ end }}";
        for reference in [
            "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}",
            "{{ .Values.global.registry }}/{{ $.Values.other.image | quote }}",
            "{{ include \"a.image\" . }}",
            "{{ template \"common.image\" (dict \"root\" .Values.image \"global\" .Values.global) }}",
            "{{ default .Values.none .Values.other.image }}",
            // an empty value makes nothing
            "{{ .Values.none }}",
        ] {
            let template = format!("image: {reference}\n");
            assert_eq!(
                open(values, &named, helpers, &template),
                [""; 0],
                "{reference}"
            );
        }
        let template = "{{ range .Values.all }}\nimage: {{ .image }}:{{ .tag }}\n{{ end }}";
        assert_eq!(open(values, &named, helpers, template), [""; 0]);
        let template =
            "{{ $image := .Values.image }}\nimage: {{ $image.repository }}:{{ $image.tag }}\n";
        assert_eq!(open(values, &named, helpers, template), [""; 0]);
    }

    #[test]
    fn whatever_else_goes_into_it_stays_open() {
        // as Traefik's: another image was found, and this one is made by the helper
        let values = "image: {repository: null}\nother: {image: x/z}\n";
        let helpers = "{{ define \"a.repository\" }}{{ .Values.image.repository | default (ternary \"x/a\" \"x/b\" .Values.on) }}\
            {{ end }}{{ define \"a.image\" }}{{ if .Values.old }}{{ .Values.other.image }}{{ else }}\
            {{ printf \"%s:%s\" (include \"a.repository\" .) .Values.image.tag }}{{ end }}{{ end }}";
        for reference in [
            "{{ template \"a.image\" . }}",
            "{{ .Values.image.repository | default \"x/a\" }}:{{ .Values.image.tag }}",
            "{{ include \"unknown\" . }}",
            "{{ .Values.other.image }}-{{ include \"unknown\" .Values.image }}",
            "{{ .sidecar }}",
            "{{ (.override).image | default .sidecar.image }}",
            "{{ .Values.other.image }}{{ ternary \"-slim\" \"\" .Values.slim }}",
            "{{ printf \"%s-%s\" .Values.other.image .Chart.Name }}",
            "{{ .Values.absent }}",
            "{{ $image }}",
            "{{ .Values.hub }}/pilot:{{ .Values.tag }}",
        ] {
            let template = format!("image: {reference}\n");
            assert_eq!(
                open(values, &["other.image"], helpers, &template),
                [reference],
                "{reference}"
            );
        }
    }
}
