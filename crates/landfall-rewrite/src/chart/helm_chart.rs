//! A chart with its subcharts: their effective values, and where a value is written.

use super::values::coalesce;
use landfall_model::document::{LineIndex, Node};
use serde_yaml::{Mapping, Value};

/// A chart with its subcharts.
#[derive(Debug, Clone)]
pub struct Chart {
    /// Its name in Chart.yaml.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `appVersion`: what most charts take as the tag where their values name none.
    pub app_version: Option<String>,
    /// The key of its values in its parent's: its alias, or its name.
    pub key: String,
    /// The `condition` of the dependency: paths in the parent's values, comma-separated.
    pub(super) condition: Option<String>,
    /// Its Chart.yaml, for messages.
    pub(super) file: String,
    /// The images that its Chart.yaml says it has.
    pub(super) images: Vec<String>,
    /// The file of its defaults, for messages.
    pub(super) values_file: String,
    /// The text of its defaults.
    pub(super) values_text: String,
    pub(super) values: Mapping,
    /// Its other documents, by name and text: of an archive all, of a folder its templates and
    /// files.
    pub(super) documents: Vec<(String, String)>,
    /// Its helpers (`.tpl`), by name and text.
    pub(super) helpers: Vec<(String, String)>,
    /// Its subcharts, in the order of their keys.
    pub subcharts: Vec<Chart>,
}

/// A document or helper of a chart that is installed.
#[derive(Debug, Clone)]
pub struct Installed<'c> {
    /// The keys that lead to the values of its chart.
    pub below: Vec<String>,
    /// The file, for messages.
    pub file: &'c str,
    pub text: &'c str,
}

impl Installed<'_> {
    /// Whether it has what templates of any chart may call.
    pub fn is_helper(&self) -> bool {
        self.file.ends_with(".tpl")
    }
}

impl Chart {
    /// Its defaults with those of its subcharts under their keys, as Helm puts them together, and
    /// with `over` laid over them.
    pub fn effective(&self, over: &Mapping) -> Mapping {
        let mut values = over.clone();
        coalesce(&mut values, &self.values);
        for chart in &self.subcharts {
            let mut own = match values.get(&chart.key) {
                Some(Value::Mapping(own)) => own.clone(),
                None | Some(Value::Null) => Mapping::new(),
                // Helm refuses this; what it says about images is nothing
                Some(_) => continue,
            };
            own = chart.effective(&own);
            values.insert(chart.key.as_str().into(), own.into());
        }
        values
    }

    /// The condition by which `values`, its effective ones, switch off the subchart that `path`
    /// leads into.
    pub fn off(&self, path: &[String], values: &Mapping) -> Option<&str> {
        let (first, rest) = path.split_first()?;
        let chart = self.subcharts.iter().find(|chart| chart.key == *first)?;
        chart
            .is_off(values)
            .or_else(|| chart.off(rest, values.get(first)?.as_mapping()?))
    }

    /// The condition that the values of its parent make `false`: the first that they have counts.
    fn is_off(&self, parent: &Mapping) -> Option<&str> {
        let at = |path: &str| {
            let (first, rest) = path.split_once('.').unwrap_or((path, ""));
            let rest = rest.split('.').filter(|key| !key.is_empty());
            rest.fold(parent.get(first), |value, key| value?.get(key))?
                .as_bool()
        };
        let mut conditions = self.condition.as_deref()?.split(',').map(str::trim);
        conditions
            .find_map(|path| Some((path, at(path)?)))
            .filter(|(_, on)| !on)
            .map(|(path, _)| path)
    }

    /// Its documents and those of its subcharts that are not values.
    pub fn documents(&self) -> Vec<&(String, String)> {
        let below = self.subcharts.iter().flat_map(Chart::documents);
        self.documents.iter().chain(below).collect()
    }

    /// The images that it and its subcharts say they have, each with its file. `values`, its
    /// effective ones, may switch subcharts off.
    pub fn said_images(&self, values: &Mapping) -> Vec<(String, String)> {
        let mut said = Vec::new();
        self.each_on(values, &mut Vec::new(), &mut |chart, _| {
            said.extend(
                chart
                    .images
                    .iter()
                    .map(|image| (chart.file.clone(), image.clone())),
            );
        });
        said
    }

    /// Its documents and helpers and those of its subcharts, but for subcharts that `values`, its
    /// effective ones, switch off.
    pub fn installed(&self, values: &Mapping) -> Vec<Installed<'_>> {
        let mut all = Vec::new();
        self.each_on(values, &mut Vec::new(), &mut |chart, below| {
            let texts = chart.documents.iter().chain(&chart.helpers);
            all.extend(texts.map(|(file, text)| Installed {
                below: below.to_vec(),
                file,
                text,
            }));
        });
        all
    }

    /// Its helpers and those of its subcharts.
    pub fn helpers(&self) -> Vec<&(String, String)> {
        self.helpers
            .iter()
            .chain(self.subcharts.iter().flat_map(Chart::helpers))
            .collect()
    }

    /// Calls `see` for it and for each subchart that is not switched off, with the keys that lead
    /// to the chart's values.
    fn each_on<'c>(
        &'c self,
        values: &Mapping,
        below: &mut Vec<String>,
        see: &mut impl FnMut(&'c Chart, &[String]),
    ) {
        see(self, below);
        let nothing = Mapping::new();
        for chart in self
            .subcharts
            .iter()
            .filter(|chart| chart.is_off(values).is_none())
        {
            let own = values
                .get(&chart.key)
                .and_then(Value::as_mapping)
                .unwrap_or(&nothing);
            below.push(chart.key.clone());
            chart.each_on(own, below, see);
            below.pop();
        }
    }

    /// Writes `appVersion` as its templates make a tag of it: with a `v` before it, or without one.
    pub fn take_tags_from_templates(&mut self) {
        self.subcharts
            .iter_mut()
            .for_each(Chart::take_tags_from_templates);
        let Some(version) = &self.app_version else {
            return;
        };
        let texts = || {
            self.documents
                .iter()
                .chain(&self.helpers)
                .map(|(_, text)| text)
        };
        let says =
            |words: &[&str]| texts().any(|text| words.iter().any(|words| text.contains(words)));
        let with = [
            "\"v%s\" .Chart.AppVersion",
            "\"v%s\" $.Chart.AppVersion",
            "v{{ .Chart.AppVersion",
            "v{{.Chart.AppVersion",
        ];
        let without = [
            "trimPrefix \"v\" .Chart.AppVersion",
            ".Chart.AppVersion | trimPrefix \"v\"",
        ];
        self.app_version = Some(match version.strip_prefix('v') {
            None if says(&with) => format!("v{version}"),
            Some(bare) if says(&without) => bare.to_owned(),
            _ => version.clone(),
        });
    }

    /// Where the values file, or that of a subchart, says what stands at `path`: file, line and
    /// column. Where it does not stand in so many words, the place of what it would stand in.
    pub fn place(&self, path: &[String]) -> (String, usize, usize) {
        let root = Node::parse(&self.values_text).unwrap_or_default();
        let (mut node, mut depth) = (&root, 0);
        for key in path {
            if node.key_span(key).is_none() {
                break;
            }
            (node, depth) = (node.get(key), depth + 1);
        }
        let below = path.split_first().and_then(|(first, rest)| {
            let chart = self.subcharts.iter().find(|chart| chart.key == *first)?;
            (depth < path.len()).then(|| chart.place(rest))
        });
        below.unwrap_or_else(|| {
            let (line, column) = LineIndex::new(&*self.values_text).line_column(node.span().start);
            (self.values_file.clone(), line, column)
        })
    }
}
