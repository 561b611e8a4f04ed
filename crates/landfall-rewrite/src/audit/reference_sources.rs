//! Finds the values from which a template composes a reference. If each of them is empty or has an
//! image that was found already, the template adds no other image; otherwise the image depends on
//! the values of the user.

use super::AuditFinding;
use super::template_defaults::{
    actions, assignments, calls, field_keys, is_value_alone, literals, value_paths, variables,
    without_comments, words,
};
use crate::chart::ChartTemplate;
use crate::inventory::LockCoverage;
use crate::split_reference::{PartKind, part};
use landfall_model::Limits;
use serde_yaml::{Mapping, Value};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// The values and helpers from which the templates of a chart compose references.
pub(super) struct ReferenceSources<'a> {
    values: &'a Mapping,
    /// The paths of the values in which images were found, [`joined`].
    named: BTreeSet<String>,
    /// The same paths, each from its last key to its first.
    named_backwards: BTreeSet<String>,
    /// The keys that lead to the values of each chart, subcharts included.
    charts: BTreeSet<&'a [String]>,
    /// The bodies of the helpers by their names.
    helpers: BTreeMap<String, String>,
    /// The number of bytes of helpers and templates that may still be read. Each reference reads
    /// the helpers that it calls, so without a limit a hostile chart would take quadratic time.
    unread: Cell<usize>,
}

/// The state of a search for the sources of a reference.
#[derive(Default)]
struct SourceSearch<'a> {
    /// Whether a source is a value that has a known image or is empty.
    known: bool,
    /// Whether a source is something else.
    open: bool,
    /// The helpers and variables that were read already.
    read: BTreeSet<&'a str>,
    /// The actions that are still to be read. With recursion instead of a list, a chart with
    /// 100,000 helpers that call each other would overflow the stack.
    pending: Vec<PendingAction<'a>>,
}

impl<'a> SourceSearch<'a> {
    /// Adds `actions` to those that are still to be read.
    fn add(
        &mut self,
        actions: impl Iterator<Item = &'a str>,
        scope: ActionScope<'a>,
        in_helper: bool,
    ) {
        let pending = actions.map(|action| PendingAction {
            action,
            scope,
            in_helper,
        });
        self.pending.extend(pending);
    }
}

/// An action that is still to be read, or the value of a variable.
struct PendingAction<'a> {
    action: &'a str,
    scope: ActionScope<'a>,
    in_helper: bool,
}

/// The surroundings of a template action.
#[derive(Clone, Copy)]
struct ActionScope<'a> {
    /// The text that contains the action, for its variables.
    text: &'a str,
    /// Whether one action is the whole reference.
    is_whole: bool,
    /// The keys that lead to the values of the chart that renders the action, if that chart is
    /// known.
    values_path: Option<&'a [String]>,
}

impl<'a> ReferenceSources<'a> {
    /// Reads the sources of a chart with the effective `values` and these templates. Images were
    /// found at the paths `named`. `helpers` are the texts of all helpers, also of disabled
    /// subcharts.
    pub(super) fn new(
        values: &'a Mapping,
        named: Vec<Vec<String>>,
        templates: &'a [ChartTemplate<'a>],
        helpers: impl Iterator<Item = &'a str>,
    ) -> ReferenceSources<'a> {
        let charts = templates
            .iter()
            .map(|template| &*template.values_path)
            .collect();
        let texts: Vec<String> = helpers.map(without_comments).collect();
        let mut helpers = BTreeMap::new();
        for definition in texts.iter().flat_map(|text| text.split("define ").skip(1)) {
            let mut words = definition.splitn(3, '"');
            if let (Some(""), Some(name), Some(body)) = (words.next(), words.next(), words.next()) {
                helpers.insert(name.to_owned(), body.to_owned());
            }
        }
        let keys = |path: &Vec<String>| joined(path.iter().map(String::as_str));
        let backwards = |path: &Vec<String>| joined(path.iter().rev().map(String::as_str));
        ReferenceSources {
            values,
            named: named.iter().map(keys).collect(),
            named_backwards: named.iter().map(backwards).collect(),
            charts,
            helpers,
            unread: Cell::new(Limits::default().template_source_bytes),
        }
    }

    /// Whether all sources of the reference `finding` in a template are known, so that it need not
    /// be reported.
    pub(super) fn are_known(&self, finding: &AuditFinding, template: &ChartTemplate<'_>) -> bool {
        let LockCoverage::Undecided { .. } = finding.coverage else {
            return false;
        };
        if !finding.reference.contains("{{") {
            return false;
        }
        // templates of any chart may call a helper
        let values_path = (!template.is_helper()).then_some(&*template.values_path);
        let written = &finding.reference;
        let is_whole = written.starts_with("{{") && written.find("}}") == Some(written.len() - 2);
        let scope = ActionScope {
            text: template.text,
            is_whole,
            values_path,
        };
        let mut seen = SourceSearch::default();
        seen.add(actions(written), scope, false);
        while !seen.open
            && let Some(next) = seen.pending.pop()
        {
            self.read_action(&next, &mut seen);
        }
        seen.known && !seen.open
    }

    /// Reads one action, or the value of a variable. In a helper, paths that do not begin at the
    /// values are arguments of the call, which were read at the call.
    fn read_action<'t>(&'t self, pending: &PendingAction<'t>, seen: &mut SourceSearch<'t>) {
        let PendingAction {
            action,
            scope,
            in_helper,
        } = *pending;
        let paths: Vec<Vec<&str>> = value_paths(action)
            .map(|path| path.split('.').collect())
            .collect();
        let is_alone = is_value_alone(action);
        let whole = scope.is_whole && is_alone && !in_helper;
        let is_source =
            |path: &&Vec<&str>| whole || is_of_image(path) || self.has_known_image(path, scope);
        let images: Vec<&Vec<&str>> = paths.iter().filter(is_source).collect();
        if images.iter().any(|path| self.has_known_image(path, scope)) {
            seen.known = true;
        } else if let Some(first) = images.first() {
            // an action that only inserts an empty value adds no image
            let is_repository = matches!(
                part(first.last().unwrap_or(&"")),
                Some((_, PartKind::Repository))
            );
            let adds_nothing = is_alone && (whole || is_repository) && self.is_empty(first, scope);
            seen.known |= adds_nothing;
            seen.open |= !adds_nothing;
        }
        // with a suffix, the reference is not the image in the values, but a variant of it
        seen.open |= literals(action)
            .any(|text| text.contains("%s-") || (text.len() > 1 && text.starts_with('-')));
        for name in calls(action) {
            match self.helpers.get(name) {
                // each helper is read once, because helpers may call each other
                Some(body) if seen.read.insert(name) => {
                    seen.open |= !self.may_read(body);
                    let scope = ActionScope {
                        text: body,
                        ..scope
                    };
                    seen.add(actions(body), scope, true);
                }
                Some(_) => {}
                None => seen.open = true,
            }
        }
        if in_helper {
            return;
        }
        for variable in variables(action) {
            if !seen.read.insert(variable) {
                continue;
            }
            if !self.may_read(scope.text) {
                seen.open = true;
                return;
            }
            let before = seen.pending.len();
            seen.add(assignments(scope.text, variable), scope, false);
            seen.open |= seen.pending.len() == before;
        }
        // `.image` within `range` or `with`: if an image was found at a path that ends with the
        // same keys, the reference names that image
        for keys in words(action).filter_map(field_keys) {
            let backwards = joined(keys.iter().rev().copied());
            if begins_with(&self.named_backwards, &backwards) {
                seen.known = true;
            } else {
                let is_other = part(keys.last().unwrap_or(&""))
                    .is_some_and(|(_, part)| part != PartKind::Repository);
                seen.open |= !is_other;
            }
        }
    }

    /// Whether `text` may be read without exceeding the limit for the chart.
    fn may_read(&self, text: &str) -> bool {
        let left = self.unread.get().checked_sub(text.len());
        self.unread.set(left.unwrap_or_default());
        left.is_some()
    }

    /// Whether an image was found at the value, below it or in a mapping that contains it.
    fn has_known_image(&self, path: &[&str], scope: ActionScope<'_>) -> bool {
        let overlaps = |root: &[String]| {
            let mut keys = joined(root.iter().map(String::as_str));
            if self.named.contains(&keys) {
                return true;
            }
            for key in path {
                keys += &joined([*key]);
                if self.named.contains(&keys) {
                    return true;
                }
            }
            begins_with(&self.named, &keys)
        };
        match root_of_path(path, scope) {
            Some(root) => overlaps(root),
            None => self.charts.iter().any(|root| overlaps(root)),
        }
    }

    /// Whether the value is known to exist and to be empty.
    fn is_empty(&self, path: &[&str], scope: ActionScope<'_>) -> bool {
        // if it is not known which chart has the value, it may be set
        let Some(root) = root_of_path(path, scope) else {
            return false;
        };
        let mut keys = root.iter().map(String::as_str).chain(path.iter().copied());
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

/// The keys of a path as one text, each with a null character at its end. Paths in a set are looked
/// up by this text: a chart may have 100,000 images and as many references.
fn joined<'k>(keys: impl IntoIterator<Item = &'k str>) -> String {
    keys.into_iter().flat_map(|key| [key, "\0"]).collect()
}

/// Whether one of `paths` begins with the path `start`.
fn begins_with(paths: &BTreeSet<String>, start: &str) -> bool {
    let mut from = paths.range(start.to_owned()..);
    from.next().is_some_and(|path| path.starts_with(start))
}

/// The keys that lead from the values of the top chart to the values that contain `path`, if they
/// are known. All charts share the globals.
fn root_of_path<'a>(path: &[&str], scope: ActionScope<'a>) -> Option<&'a [String]> {
    if path.first() == Some(&"global") {
        Some(&[])
    } else {
        scope.values_path
    }
}

/// Whether the key at the end of a path is that of an image or of its repository.
pub(super) fn is_of_image(path: &[&str]) -> bool {
    let key = path.last().copied().unwrap_or_default();
    match part(key) {
        Some((_, part)) => part == PartKind::Repository,
        None => {
            let lower = key.to_ascii_lowercase();
            let above = path
                .iter()
                .rev()
                .nth(1)
                .is_some_and(|key| key.to_ascii_lowercase().contains("image"));
            // `imagePullPolicy` and `imagePullSecrets` do not name images
            (lower.contains("image") && !lower.contains("pull")) || (lower == "name" && above)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::document::growth::assert_linear;

    /// The references of `template` that are undecided, in a chart with these values and helpers.
    /// Each path of `named` has an image.
    fn open(values: &str, named: &[&str], helpers: &str, template: &str) -> Vec<String> {
        let limit = Limits::default().template_source_bytes;
        open_within(limit, values, named, helpers, template)
    }

    /// Like `open`, but reads at most `limit` bytes of helpers and templates.
    fn open_within(
        limit: usize,
        values: &str,
        named: &[&str],
        helpers: &str,
        template: &str,
    ) -> Vec<String> {
        let values: Mapping = serde_yaml::from_str(values).unwrap();
        let named = named
            .iter()
            .map(|path| path.split('.').map(str::to_owned).collect())
            .collect();
        let installed = [ChartTemplate {
            values_path: Vec::new(),
            file: "a/templates/d.yaml",
            text: template,
        }];
        let sources = ReferenceSources::new(&values, named, &installed, std::iter::once(helpers));
        sources.unread.set(limit);
        let references = template
            .lines()
            .filter_map(|line| line.split_once("image: "));
        let undecided = |(_, reference): (&str, &str)| {
            let coverage = LockCoverage::Undecided { why: String::new() };
            let reference = reference.to_owned();
            AuditFinding::new((1, 1), reference, coverage)
        };
        let open = references
            .map(undecided)
            .filter(|finding| !sources.are_known(finding, &installed[0]));
        open.map(|finding| finding.reference).collect()
    }

    #[test]
    fn references_from_values_with_known_images_are_decided() {
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
            // an empty value adds nothing
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
    fn many_images_and_references_take_linear_time() {
        assert_linear(500, |count| {
            let names: Vec<String> = (0..count).map(|n| format!("a{n}.image")).collect();
            let named: Vec<&str> = names.iter().map(String::as_str).collect();
            let template: String = (0..count)
                .map(|n| format!("image: {{{{ .Values.b{n}.image }}}}\nimage: {{{{ .other }}}}\n"))
                .collect();
            assert_eq!(open("{}", &named, "", &template).len(), 2 * count);
        });
    }

    #[test]
    fn references_from_other_values_are_undecided() {
        // as in Traefik's chart: the helper composes `image`, but only `other.image` was found
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

    #[test]
    fn long_chains_of_helpers_and_variables_are_read_without_recursion() {
        let chain = |link: &dyn Fn(usize) -> String| (0..100_000).map(link).collect::<String>();
        let mut helpers = chain(&|number| {
            let next = number + 1;
            format!("{{{{define \"a{number}\"}}}}{{{{include \"a{next}\" .}}}}{{{{end}}}}\n")
        });
        helpers += "{{define \"a100000\"}}{{ .Values.image }}{{end}}";
        let template = "image: {{ include \"a0\" . }}\n";
        assert_eq!(open("image: x/y", &["image"], &helpers, template), [""; 0]);

        // a shorter chain, because the whole text is searched for each variable
        let mut template = (0..1_000).fold(String::new(), |text, number| {
            text + &format!("{{{{ $v{number}x := $v{}x }}}}\n", number + 1)
        });
        template += "{{ $v1000x := .Values.image }}\nimage: {{ $v0x }}\n";
        assert_eq!(open("image: x/y", &["image"], "", &template), [""; 0]);
    }

    #[test]
    fn a_reference_is_undecided_if_the_limit_of_the_chart_is_used_up() {
        let helpers = "{{define \"a\"}}{{ .Values.image }}{{end}}";
        let template = "image: {{ include \"a\" . }}\nimage: {{ include \"a\" . }}\n";
        let body = helpers.len() - "{{define \"a\"".len();
        let undecided = |limit| open_within(limit, "image: x/y", &["image"], helpers, template);
        assert_eq!(undecided(body * 2), [""; 0]);
        assert_eq!(undecided(body * 2 - 1).len(), 1);
        assert_eq!(undecided(body - 1).len(), 2);
        let template = "{{ $image := .Values.image }}\nimage: {{ $image }}\n";
        let undecided = |limit| open_within(limit, "image: x/y", &["image"], "", template);
        assert_eq!(undecided(template.len()), [""; 0]);
        assert_eq!(undecided(template.len() - 1).len(), 1);
    }
}
