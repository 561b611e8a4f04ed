//! Reads Helm charts (folders and `.tgz`) without helm: metadata, default values, subcharts.
//!
//! The rules are those of Helm's loader, `ProcessDependencies` and `CoalesceValues`: subcharts are
//! folders and archives in `charts/`, a dependency may give a subchart an alias, and the values of
//! a parent override those of a subchart.

mod load;

pub use self::load::ChartError;

use self::load::read;
use landfall_model::document::yaml::YamlBudget;
use landfall_model::document::{Diagnostic, LineIndex, YamlNode, key_text, with_quoted_words};
use serde_yaml::{Mapping, Number, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

// A chart with its subcharts: the effective values, and the positions of values in files.

/// A chart with its subcharts.
#[derive(Debug, Clone)]
pub struct HelmChart {
    /// The `name` in Chart.yaml, which messages show.
    pub name: String,
    /// The `version` in Chart.yaml; empty if it has none.
    pub version: String,
    /// The `appVersion`, which most charts use as the default tag.
    pub app_version: Option<String>,
    /// The key under which the values of the parent contain those of this chart: the alias or name.
    pub key: String,
    /// The `condition` of the dependency: comma-separated paths in the values of the parent.
    pub(super) condition: Option<String>,
    /// The path of its Chart.yaml, for messages.
    pub(super) file: String,
    /// The images that its Chart.yaml lists.
    pub(super) images: Vec<String>,
    /// The path of its values file, for messages.
    pub(super) values_file: String,
    /// The text of its values file.
    pub(super) values_text: String,
    /// The positions in this text, after their first use.
    pub(super) positions: OnceLock<ValuePositions>,
    pub(super) values: Mapping,
    /// The names and texts of its other documents: from an archive, all of them; from a folder,
    /// those in `templates` and `files`.
    pub(super) documents: Vec<(String, String)>,
    /// The names and texts of its helpers (`.tpl`) from an archive; empty for a folder.
    pub(super) helpers: Vec<(String, String)>,
    /// The subcharts, in the order of their keys.
    pub subcharts: Vec<HelmChart>,
    /// The dependencies that are not among the subcharts.
    pub(super) missing: Vec<MissingDependency>,
}

/// A chart that another chart depends on and does not contain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MissingDependency {
    /// The path that it would have in the other chart, for messages.
    pub(crate) path: String,
    /// Its repository: a URL, or `file://` and a path relative to the other chart.
    pub(super) repository: String,
    /// The `condition` of the dependency.
    pub(super) condition: Option<String>,
    /// The `tags` of the dependency: keys below `tags` in the values of the outermost chart.
    pub(super) tags: Vec<String>,
}

impl MissingDependency {
    /// The folder with the chart, if its repository is a path.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let relative = self.repository.strip_prefix("file://")?;
        // the path is `<chart>/charts/<name>`
        let chart = Path::new(&self.path).ancestors().nth(2)?;
        Some(chart.join(relative))
    }

    /// The size of its texts in bytes.
    pub(super) fn text_bytes(&self) -> usize {
        self.path.len()
            + self.repository.len()
            + self.condition.as_ref().map_or(0, String::len)
            + self.tags.iter().map(String::len).sum::<usize>()
    }

    /// Whether the `values` of the other chart, or the values `top` of the outermost chart, disable
    /// it. As in Helm, tags decide if no condition does: one must be `false`, and none `true`.
    fn is_disabled(&self, values: &Mapping, top: &Mapping) -> bool {
        let conditions = self.condition.as_deref();
        let decision = conditions.and_then(|conditions| deciding_condition(conditions, values));
        if let Some((_, is_enabled)) = decision {
            return !is_enabled;
        }
        let switches = top.get("tags");
        let mut set = self
            .tags
            .iter()
            .filter_map(|tag| switches?.get(tag.as_str())?.as_bool())
            .peekable();
        set.peek().is_some() && set.all(|is_enabled| !is_enabled)
    }
}

/// A document or helper of a chart that is not disabled.
#[derive(Debug, Clone)]
pub(crate) struct ChartTemplate<'c> {
    /// The keys that lead to the values of its chart.
    pub values_path: Vec<String>,
    /// The path of the file, for messages.
    pub file: &'c str,
    /// The content of the file.
    pub text: &'c str,
}

impl ChartTemplate<'_> {
    /// Whether it defines helpers, which templates of any chart may call.
    pub(crate) fn is_helper(&self) -> bool {
        self.file.ends_with(".tpl")
    }
}

/// The key of all default values in Istio's charts, whose templates merge them into the values of
/// the user.
const ISTIO_DEFAULTS: &str = "_internal_defaults_do_not_set";

impl HelmChart {
    /// The effective values: the default values with those of the subcharts under their keys,
    /// combined as Helm does it and overridden by `over`.
    pub fn effective(&self, over: &Mapping) -> Mapping {
        let mut values = over.clone();
        if let Some(Value::Mapping(defaults)) = self.values.get(ISTIO_DEFAULTS) {
            coalesce(&mut values, defaults);
        }
        coalesce(&mut values, &self.values);
        values.remove(ISTIO_DEFAULTS);
        values.values_mut().for_each(convert_whole_floats);
        for chart in &self.subcharts {
            let mut own = match values.get(&chart.key) {
                Some(Value::Mapping(own)) => own.clone(),
                None | Some(Value::Null) => Mapping::new(),
                // Helm refuses values of a subchart that are not a mapping (`type mismatch on …`)
                Some(_) => continue,
            };
            own = chart.effective(&own);
            values.insert(chart.key.as_str().into(), own.into());
        }
        values
    }

    /// The condition that disables the subchart that `path` leads into, or a chart around that
    /// subchart, if the effective `values` make the condition `false`.
    pub fn disabled_by(&self, path: &[String], values: &Mapping) -> Option<&str> {
        let (first, rest) = path.split_first()?;
        let chart = self.subcharts.iter().find(|chart| chart.key == *first)?;
        chart
            .disabling_condition(values)
            .or_else(|| chart.disabled_by(rest, values.get(first)?.as_mapping()?))
    }

    /// The condition that the values of the parent make `false`.
    fn disabling_condition(&self, parent: &Mapping) -> Option<&str> {
        deciding_condition(self.condition.as_deref()?, parent)
            .filter(|(_, on)| !on)
            .map(|(path, _)| path)
    }

    /// The dependencies that the chart and its subcharts do not contain, sorted. Those that the
    /// effective `values` disable are omitted.
    pub(crate) fn missing_dependencies(&self, values: &Mapping) -> Vec<&MissingDependency> {
        let mut missing = Vec::new();
        self.for_each_enabled(values, &mut Vec::new(), &mut |chart, path| {
            let own = path
                .iter()
                .try_fold(values, |values, key| values.get(key)?.as_mapping());
            let enabled = chart
                .missing
                .iter()
                .filter(|one| own.is_none_or(|own| !one.is_disabled(own, values)));
            missing.extend(enabled);
        });
        missing.sort();
        missing.dedup();
        missing
    }

    /// The dependencies that the chart and its subcharts do not contain, as `app/charts/redis`,
    /// without those that the effective `values` disable.
    pub fn missing_charts(&self, values: &Mapping) -> BTreeSet<String> {
        let folder = self.file.trim_end_matches("Chart.yaml");
        let missing = self.missing_dependencies(values).into_iter();
        let below = missing.map(|dependency| {
            let path = dependency.path.strip_prefix(folder);
            path.unwrap_or(&dependency.path)
        });
        below.map(|path| format!("{}/{path}", self.name)).collect()
    }

    /// The documents of the chart and its subcharts, except metadata and values.
    pub fn documents(&self) -> Vec<&(String, String)> {
        let of_subcharts = self.subcharts.iter().flat_map(HelmChart::documents);
        self.documents.iter().chain(of_subcharts).collect()
    }

    /// The images that the chart and its subcharts list in Chart.yaml, each with its file.
    /// Subcharts that the effective `values` disable are omitted.
    pub fn listed_images(&self, values: &Mapping) -> Vec<(String, String)> {
        let mut images = Vec::new();
        self.for_each_enabled(values, &mut Vec::new(), &mut |chart, _| {
            images.extend(
                chart
                    .images
                    .iter()
                    .map(|image| (chart.file.clone(), image.clone())),
            );
        });
        images
    }

    /// The documents and helpers of the chart and of the subcharts that the effective `values` do
    /// not disable.
    pub(crate) fn templates(&self, values: &Mapping) -> Vec<ChartTemplate<'_>> {
        let mut all = Vec::new();
        self.for_each_enabled(values, &mut Vec::new(), &mut |chart, values_path| {
            let texts = chart.documents.iter().chain(&chart.helpers);
            all.extend(texts.map(|(file, text)| ChartTemplate {
                values_path: values_path.to_vec(),
                file,
                text,
            }));
        });
        all
    }

    /// The helpers of the chart and all its subcharts.
    pub fn helpers(&self) -> Vec<&(String, String)> {
        self.helpers
            .iter()
            .chain(self.subcharts.iter().flat_map(HelmChart::helpers))
            .collect()
    }

    /// Calls `visit` for the chart and each subchart that is not disabled, with the keys that lead
    /// to the values of that chart.
    fn for_each_enabled<'c>(
        &'c self,
        values: &Mapping,
        values_path: &mut Vec<String>,
        visit: &mut impl FnMut(&'c HelmChart, &[String]),
    ) {
        visit(self, values_path);
        let nothing = Mapping::new();
        for chart in self
            .subcharts
            .iter()
            .filter(|chart| chart.disabling_condition(values).is_none())
        {
            let own = values
                .get(&chart.key)
                .and_then(Value::as_mapping)
                .unwrap_or(&nothing);
            values_path.push(chart.key.clone());
            chart.for_each_enabled(own, values_path, visit);
            values_path.pop();
        }
    }

    /// The tag of images without one: `appVersion`, with the prefix `v` added or removed if the
    /// templates do so. `None` without `appVersion`.
    pub(crate) fn default_tag(&self) -> Option<String> {
        let version = self.app_version.as_deref()?;
        let mut texts = self.texts();
        Some(match version.strip_prefix('v') {
            None if texts.any(|text| uses_of_version(text).any(is_prefixed)) => {
                format!("v{version}")
            }
            Some(bare) if texts.any(|text| uses_of_version(text).any(is_stripped)) => {
                bare.to_owned()
            }
            _ => version.to_owned(),
        })
    }

    /// Whether a template contains `word`.
    pub(crate) fn uses(&self, word: &str) -> bool {
        self.texts().any(|text| text.contains(word))
    }

    /// Its own templates, helpers and other documents.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let files = self.documents.iter().chain(&self.helpers);
        files.map(|(_, text)| text.as_str())
    }

    /// The file, line and column of the value at `path` in the values file, or in that of a
    /// subchart. If the value is not written, the position of the mapping that would contain it.
    pub fn value_position(&self, path: &[String]) -> (String, usize, usize) {
        let positions = &self.positions;
        let mut found = positions.get_or_init(|| ValuePositions::of_text(&self.values_text));
        found = found.below.get(ISTIO_DEFAULTS).unwrap_or(found);
        let mut depth = 0;
        for key in path {
            let Some(below) = found.below.get(key) else {
                break;
            };
            found = below;
            depth += 1;
        }
        // the default values of a subchart are in a file of its own
        let in_subchart = path.split_first().and_then(|(first, rest)| {
            let chart = self.subcharts.iter().find(|chart| chart.key == *first)?;
            (depth < path.len()).then(|| chart.value_position(rest))
        });
        in_subchart.unwrap_or_else(|| {
            let (line, column) = found.at;
            (self.values_file.clone(), line, column)
        })
    }
}

/// The positions of the values in a text, which is parsed once for all of them.
#[derive(Debug, Clone)]
pub(super) struct ValuePositions {
    /// The line and the column, both counted from 1.
    at: (usize, usize),
    /// The values in a mapping, by their keys as Helm reads them.
    below: BTreeMap<String, ValuePositions>,
}

impl ValuePositions {
    fn of_text(text: &str) -> ValuePositions {
        let root = YamlNode::parse(text).unwrap_or_default();
        ValuePositions::of_node(&root, &LineIndex::new(text))
    }

    fn of_node(node: &YamlNode<'_>, lines: &LineIndex<'_>) -> ValuePositions {
        let mut below = BTreeMap::new();
        for entry in node.entries() {
            if let Some(key) = key_text(&entry.key) {
                below
                    .entry(key)
                    .or_insert_with(|| ValuePositions::of_node(&entry.value, lines));
            }
        }
        ValuePositions {
            at: lines.line_column(node.span().start),
            below,
        }
    }
}

/// The condition among the comma-separated `conditions` that decides, and its value. As in Helm,
/// that is the first condition that the values set to `true` or `false`.
fn deciding_condition<'c>(conditions: &'c str, values: &Mapping) -> Option<(&'c str, bool)> {
    let at = |path: &str| {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let rest = rest.split('.').filter(|key| !key.is_empty());
        rest.fold(values.get(first), |value, key| value?.get(key))?
            .as_bool()
    };
    let mut conditions = conditions.split(',').map(str::trim);
    conditions.find_map(|path| Some((path, at(path)?)))
}

// Reads values of charts, and merges them as Helm does.

/// Merges the defaults `under` into `over` as Helm does: mappings are merged, and a null in `over`
/// overrides the default.
pub fn coalesce(over: &mut Mapping, under: &Mapping) {
    for (key, default) in under {
        match (over.get_mut(key), default) {
            (None, _) => drop(over.insert(key.clone(), default.clone())),
            (Some(Value::Mapping(over)), Value::Mapping(under)) => coalesce(over, under),
            _ => {}
        }
    }
}

/// Reads the values in `text`, and applies merge keys (`<<`).
///
/// # Errors
/// If `text` is not YAML, or not a mapping.
pub fn values_of(file: &str, text: &str) -> Result<Mapping, Box<Diagnostic>> {
    values_within(file, text, &mut YamlBudget::default())
}

/// Like [`values_of`], for one of several texts that share a budget.
pub(super) fn values_within(
    file: &str,
    text: &str,
    budget: &mut YamlBudget,
) -> Result<Mapping, Box<Diagnostic>> {
    let fault = |message: String| Diagnostic {
        file: file.into(),
        text: text.into(),
        span: 0..0,
        message,
        help: Some("write the values as one YAML mapping".into()),
    };
    // serde_yaml keeps merge keys as entries unless it is asked to apply them
    let mut values: Value = read(file, text, budget)?;
    values
        .apply_merge()
        .map_err(|error| fault(error.to_string()))?;
    match values {
        Value::Mapping(values) => Ok(values),
        Value::Null => Ok(Mapping::new()),
        _ => Err(Box::new(fault(
            "the values of a chart must be a mapping".into(),
        ))),
    }
}

/// Returns `values` as YAML that Helm reads back as they are: texts such as `off` are quoted.
///
/// # Errors
/// If the values cannot be written as YAML.
pub fn values_text(values: &Mapping) -> Result<String, serde_yaml::Error> {
    Ok(with_quoted_words(&serde_yaml::to_string(values)?).into_owned())
}

/// The text of a string or number; `None` for an empty string and for any other value.
pub(super) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number_text(number)),
        _ => None,
    }
}

/// Replaces floating-point numbers without a fraction by integers. Helm converts YAML to JSON, so
/// templates print `1.0` as `1`.
pub(super) fn convert_whole_floats(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if number.is_f64()
                && let Ok(whole) = number_text(number).parse::<i64>()
            {
                *number = whole.into();
            }
        }
        Value::Sequence(items) => items.iter_mut().for_each(convert_whole_floats),
        Value::Mapping(values) => values.values_mut().for_each(convert_whole_floats),
        _ => {}
    }
}

const VERSION: &str = ".Chart.AppVersion";

/// The number of bytes that are searched before a use of the version. Without a limit, a text that
/// repeats it would take quadratic time.
const BEFORE_VERSION: usize = 256;

/// The texts before and after each use of the version in a template. The text before it ends with
/// the function or the braces: `$`, `$root` and `(` are removed.
fn uses_of_version(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices(VERSION).map(|(at, _)| {
        let of_root = |c: char| c.is_ascii_alphanumeric() || "$_.(".contains(c);
        let near = text.ceil_char_boundary(at.saturating_sub(BEFORE_VERSION));
        let before = text[near..at].trim_end_matches(of_root).trim_end();
        (before, &text[at + VERSION.len()..])
    })
}

/// Whether a template writes `v` before the version.
fn is_prefixed((before, _): (&str, &str)) -> bool {
    ["\"v%s\"", "\"v%v\"", "print \"v\"", "v{{", "v{{-"]
        .iter()
        .any(|end| before.ends_with(end))
}

/// Whether a template removes the prefix `v` from the version.
fn is_stripped((before, after): (&str, &str)) -> bool {
    before.ends_with("trimPrefix \"v\"") || after.trim_start().starts_with("| trimPrefix \"v\"")
}

/// The text that Helm makes of a number: `1` for `1.0`.
fn number_text(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        // unlike `Number`, `f64` is displayed without a fraction that is zero
        Some(float) => float.to_string(),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::Limits;
    use landfall_model::document::growth::assert_linear;
    use std::fs;

    #[test]
    fn the_positions_of_values_take_linear_time() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("Chart.yaml"),
            "name: c\nversion: 1.0.0\n",
        )
        .unwrap();
        assert_linear(200, |count| {
            let values = (0..count).map(|n| format!("a{n}: {{image: x}}\n"));
            let values = "off: 1\n".to_owned() + &values.collect::<String>();
            fs::write(folder.path().join("values.yaml"), values).unwrap();
            let chart = HelmChart::load(folder.path(), &Limits::default()).unwrap();
            let position = |path: [&str; 2]| {
                let (_, line, column) = chart.value_position(&path.map(str::to_owned));
                (line, column)
            };
            for n in 0..count {
                let key = format!("a{n}");
                assert_eq!(position([key.as_str(), "image"]).0, n + 2);
            }
            assert_eq!(position(["a0", "image"]), (2, 13));
            // the mapping that would contain the value
            assert_eq!(position(["a0", "tag"]), (2, 5));
            assert_eq!(position(["false", "x"]), (1, 6));
        });
    }

    #[test]
    fn templates_show_the_prefix_of_the_version() {
        for text in [
            "{{ .Values.tag | default (printf \"v%s\" .Chart.AppVersion) }}",
            "{{ printf \"v%s\" $.Chart.AppVersion }}",
            "{{ printf \"v%v\" (.context.Chart.AppVersion | toString) }}",
            "{{- print \"v\" .Chart.AppVersion -}}",
            "image: a/b:v{{ .Chart.AppVersion }}",
            "image: a/b:v{{- $root.Chart.AppVersion }}",
        ] {
            assert!(uses_of_version(text).any(is_prefixed), "{text}");
            assert!(!uses_of_version(text).any(is_stripped), "{text}");
        }
        for text in [
            "{{ trimPrefix \"v\" .Chart.AppVersion }}",
            "{{ .Chart.AppVersion | trimPrefix \"v\" }}",
        ] {
            assert!(uses_of_version(text).any(is_stripped), "{text}");
            assert!(!uses_of_version(text).any(is_prefixed), "{text}");
        }
        for text in ["image: a/b:{{ .Chart.AppVersion }}", "version: v1", ""] {
            assert!(!uses_of_version(text).any(is_prefixed), "{text}");
            assert!(!uses_of_version(text).any(is_stripped), "{text}");
        }
        assert_linear(5_000, |count| {
            let text = VERSION.repeat(count);
            assert!(!uses_of_version(&text).any(is_prefixed));
        });
    }

    /// Compared with `helm template` of Helm 3.18.
    #[test]
    fn numbers_have_the_text_that_templates_print() {
        let values = "a: 1.0\nb: 1.10\nc: [{d: 10.0}, 2, '1.0']\n";
        let mut values = Value::from(values_of("values", values).unwrap());
        convert_whole_floats(&mut values);
        assert_eq!(
            serde_yaml::to_string(&values).unwrap(),
            "a: 1\nb: 1.1\nc:\n- d: 10\n- 2\n- '1.0'\n"
        );
        for (number, text) in [(1.0, "1"), (1.1, "1.1"), (-0.5, "-0.5")] {
            assert_eq!(plain(&Value::from(number)).as_deref(), Some(text));
        }
        assert_eq!(plain(&Value::from(7)).as_deref(), Some("7"));
    }
}
