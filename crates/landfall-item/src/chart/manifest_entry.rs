//! A chart in a manifest, and how it expands to requests.

use super::images::Discovery;
use super::metadata::{chart_yaml, files_of, plain};
use super::name::ChartName;
use super::request::ChartRequest;
use crate::image::{platforms, tag_of};
use crate::item_kind::digest_of;
use crate::local::local_place;
use crate::text::{check_ref_digest, update_rule};
use crate::version_selector::{
    SelectKeys, SelectRule, VersionSelector, VersionSource, check_select,
};
use crate::{
    EntryFields, EntryPathStep, EntryReader, LocalPlace, ManifestEntry, ManifestResult,
    MovableVersion,
};
use landfall_content::LocalForm;
use landfall_model::document::{ArchiveBudget, SourceSpan, UpdateRule, read_input};
use landfall_model::{Digest, Limits, text_or_mapping};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::num::NonZeroUsize;

/// A Helm chart in a manifest.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum ChartEntry {
    /// Only a reference: `oci://registry/path/name:version`, or with a digest,
    /// `oci://registry/path/name:version@sha256:…`.
    Short(String),
    /// A mapping with more fields.
    Full(Box<FullChart>),
}

/// A chart with more fields. Either `ref` names the chart, or `repo`, `name` and `version` do, or
/// `path`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FullChart {
    /// The chart in a registry: `oci://registry/path/name:version`. A digest may follow, as in
    /// `name:version@sha256:…`.
    pub r#ref: Option<String>,
    /// A chart next to the manifest: a folder, or a `.tgz`.
    pub path: Option<String>,
    /// The URL of an HTTP repository, or `oci://` and the path of the charts in a registry.
    pub repo: Option<String>,
    /// The name of the chart in the repository.
    pub name: Option<String>,
    /// The version of the chart in the repository.
    pub version: Option<String>,
    /// With `repo` and `name`: a rule by which `landfall update` selects versions: a range as in
    /// `">=1.8 <2"`, or a pattern. Or a mapping with one of these as `policy` and, optionally,
    /// `minAge`.
    pub select: Option<UpdateRule>,
    /// How many of the newest selected versions are mirrored. Without it, all of them.
    pub newest: Option<NonZeroUsize>,
    /// Versions that are not selected, or patterns of such versions with a leading `^`.
    pub except: Vec<String>,
    /// With `select`: the selected versions. `landfall update` writes them.
    pub versions: Vec<String>,
    /// The digest that the chart must have. For a chart in a registry, it is that of the manifest;
    /// for a chart in an HTTP repository, that of the archive.
    pub digest: Option<String>,
    /// The versions that `landfall update` may move to: `patch`, `minor`, a range as in `~1.9`, a
    /// pattern, `digest`, or `never`. Or a mapping with one of these as `policy` and, optionally,
    /// `minAge` and `keep`.
    pub update: Option<UpdateRule>,
    /// A file with OpenPGP public keys, one of which must have signed the provenance.
    pub key: Option<String>,
    /// `discover` also locks the images that are found in the chart.
    pub images: Option<Discover>,
    /// Values for the discovery, which override those of the chart: files, or inline values. Later
    /// ones win.
    pub values: Vec<ValuesEntry>,
    /// The version of Kubernetes that helm renders for.
    pub kubernetes: Option<String>,
    /// The version of helm on PATH that renders the chart for the discovery, as in `v3.18.4`.
    pub helm: Option<String>,
    /// Platforms of the discovered images. Overrides those of the manifest.
    pub platforms: Option<Vec<String>>,
    /// Whether referrers of the discovered images are carried. Overrides the manifest's setting.
    pub referrers: Option<bool>,
}

/// Where the images of a chart come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Discover {
    /// The chart is searched for images.
    Discover,
}

/// Values with which the images of a chart are discovered.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ValuesEntry {
    /// A file, relative to the manifest.
    File(String),
    /// The values, written in the manifest.
    Here(Map<String, Value>),
}

impl<'de> Deserialize<'de> for ChartEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ChartEntry, D::Error> {
        let expected = "oci://registry/path/name:version, or a mapping with `ref` or `repo`";
        let full = |full| ChartEntry::Full(Box::new(full));
        text_or_mapping(deserializer, expected, ChartEntry::Short, full)
    }
}

impl ManifestEntry for ChartEntry {
    type Request = ChartRequest;

    fn check(&self, reader: EntryReader<'_>) -> ManifestResult<()> {
        let ChartEntry::Full(full) = self else {
            return Ok(());
        };
        let sources = [&full.r#ref, &full.repo, &full.path];
        if sources.into_iter().flatten().count() != 1 {
            let help = "write `ref: oci://…:1.2.3`; `repo`, `name` and `version`; or `path`";
            return Err(reader
                .here()
                .fault("a chart needs one of `ref`, `repo` and `path`", Some(help)));
        }
        check_select(full.select.as_ref(), SELECT_KEYS, reader)?;
        check_discovery(full, reader)
    }

    fn selector(&self, reader: EntryReader<'_>) -> ManifestResult<Option<VersionSelector>> {
        let ChartEntry::Full(full) = self else {
            return Ok(None);
        };
        let (Some(repo), Some(rule)) = (&full.repo, &full.select) else {
            return Ok(None);
        };
        let at = reader.at("repo");
        // any version, to check the other parts of the name
        let chart = full_name(&full.at_version("0.0.0"), None, &at)?;
        let source = VersionSource::of_chart(&chart);
        let name = full.name.as_deref().unwrap_or_default();
        let name = format!("{}/{name}", repo.trim_end_matches('/'));
        let rule = SelectRule {
            rule,
            newest: full.newest,
            except: &full.except,
            versions: &full.versions,
        };
        rule.selector(name, source, SELECT_KEYS.versions, reader)
            .map(Some)
    }

    fn add_fields<'e>(&'e mut self, fields: &mut EntryFields<'_, 'e>) {
        let full = match self {
            ChartEntry::Short(text) => return fields.add_at(fields.node, [text]),
            ChartEntry::Full(full) => full,
        };
        fields.add("ref", &mut full.r#ref);
        fields.add("path", &mut full.path);
        fields.add("repo", &mut full.repo);
        fields.add("name", &mut full.name);
        fields.add("version", &mut full.version);
        fields.add("digest", &mut full.digest);
        fields.add("key", &mut full.key);
        fields.add("kubernetes", &mut full.kubernetes);
        fields.add("helm", &mut full.helm);
        fields.add_policy("update", &mut full.update);
        fields.add_policy("select", &mut full.select);
        fields.add_list("platforms", full.platforms.iter_mut().flatten());
        for (index, values) in full.values.iter_mut().enumerate() {
            fields.add_at(fields.node.get("values").item(index), values.texts());
        }
    }

    fn requests(
        &self,
        written: &ChartEntry,
        reader: EntryReader<'_>,
    ) -> ManifestResult<Vec<(ChartRequest, SourceSpan)>> {
        let short;
        let full: &FullChart = match self {
            ChartEntry::Full(full) => full,
            ChartEntry::Short(text) => {
                short = FullChart {
                    r#ref: Some(text.clone()),
                    ..FullChart::default()
                };
                &short
            }
        };
        if full.select.is_some() {
            let versions = full.versions.iter().enumerate();
            let selected = versions.map(|(index, version)| {
                let at = reader.item_at(SELECT_KEYS.versions, index);
                let full = full.at_version(version);
                Ok((request(&full, written, &at, reader)?, at))
            });
            return selected.collect();
        }
        // a short entry is a scalar: a look-up of any key returns the position of the scalar itself
        let key = match (&full.r#ref, &full.path) {
            (Some(_), _) => "ref",
            (None, Some(_)) => "path",
            (None, None) => "repo",
        };
        let at = reader.at(key);
        Ok(vec![(request(full, written, &at, reader)?, at)])
    }

    fn movable_versions(&self) -> Vec<MovableVersion<'_>> {
        movable_version(self).into_iter().collect()
    }
}

impl FullChart {
    /// An entry with `select` for one of its versions.
    fn at_version(&self, version: &str) -> FullChart {
        FullChart {
            version: Some(version.to_owned()),
            select: None,
            newest: None,
            except: Vec::new(),
            versions: Vec::new(),
            ..self.clone()
        }
    }
}

/// The keys of a chart with `select`.
const SELECT_KEYS: SelectKeys = SelectKeys {
    versions: "versions",
    others: &["ref", "path", "version", "digest", "update"],
};

/// The request of an entry, in which variables are filled in. `written` is the entry before that,
/// and `at` the position of the chart's name.
fn request(
    full: &FullChart,
    written: &ChartEntry,
    at: &SourceSpan,
    reader: EntryReader<'_>,
) -> ManifestResult<ChartRequest> {
    let digest_at = reader.at("digest");
    let digest = full.digest.as_ref();
    let digest = digest.map(|text| digest_of(text, &digest_at)).transpose()?;
    let (name, pin, local) = match &full.path {
        Some(path) => {
            let (name, place) = local_chart(full, path, reader)?;
            (name, digest, Some(place))
        }
        None => {
            let (name, pin) = pinned(full, digest, at, &digest_at)?;
            (name, pin, None)
        }
    };
    let keys = full.key.as_ref();
    let keys = keys
        .map(|path| reader.read_keys(path, &reader.at("key")))
        .transpose()?;
    let version = movable_version(written).map(|movable| &movable.text[movable.version]);
    let rule = full.update.as_ref();
    let update = update_rule(rule, version, "a chart", reader.below("update"))?;
    let discover = match full.images {
        None => None,
        Some(Discover::Discover) => Some(Discovery {
            values: values(full, reader)?,
            kubernetes: full.kubernetes.clone(),
            helm: full
                .helm
                .as_ref()
                .map(|version| version.trim_start_matches('v').to_owned()),
        }),
    };
    let platforms = match &full.platforms {
        None => reader.context.platforms.clone(),
        Some(texts) => platforms(texts, |index| reader.item_at("platforms", index))?,
    };
    let request = ChartRequest {
        name,
        local,
        pin,
        update,
        keys,
        discover,
        platforms,
        referrers: full.referrers.unwrap_or(reader.context.referrers),
        at: at.location(),
        named_by: None,
    };
    Ok(request)
}

/// The name and place of the chart at `path`. Its Chart.yaml has the name and version.
fn local_chart(
    full: &FullChart,
    path: &str,
    reader: EntryReader<'_>,
) -> ManifestResult<(ChartName, LocalPlace)> {
    for (key, is_set) in [
        ("name", full.name.is_some()),
        ("version", full.version.is_some()),
        ("update", full.update.is_some()),
        ("key", full.key.is_some()),
    ] {
        if is_set {
            let message = format!("`{key}` does not apply to a local chart");
            let help = "remove it; Chart.yaml has the name and the version";
            let at = reader.at(key);
            return Err(at.fault(message, Some(help)));
        }
    }
    let at = reader.at("path");
    let fault = |why: String| {
        let help = "name the folder of a chart, or a .tgz of `helm package`";
        at.fault(format!("{path} is not a chart: {why}"), Some(help))
    };
    let (below, mut place) = local_place(path, LocalForm::File, &at, reader)?;
    let files = if place.path.is_dir() {
        let file = read_input(place.path.join("Chart.yaml"));
        let file = file.map_err(|error| fault(format!("Chart.yaml: {error}")))?;
        [("Chart.yaml".to_owned(), file)].into()
    } else {
        let limits = Limits::default();
        let archive = read_input(&place.path).map_err(|error| fault(error.to_string()))?;
        files_of(&archive, &mut ArchiveBudget::new(&limits)).map_err(fault)?
    };
    let yaml = chart_yaml(&files).map_err(fault)?;
    let version = plain(&yaml.version).unwrap_or_default();
    let folder = below.rsplit_once('/').map_or("", |(folder, _)| folder);
    let name = ChartName::in_folder(folder, &yaml.name, &version);
    let name = name.map_err(fault)?;
    place.form = LocalForm::Chart(name.chart.clone());
    Ok((name, place))
}

/// The name of the chart in `full`, and the digest that it must have: the one after the version in
/// `ref`, or `digest`, the value of the key `digest`.
fn pinned(
    full: &FullChart,
    digest: Option<Digest>,
    at: &SourceSpan,
    digest_at: &SourceSpan,
) -> ManifestResult<(ChartName, Option<Digest>)> {
    let text = full.r#ref.as_deref();
    let (text, written) = match text.map(|text| (text, text.split_once('@'))) {
        Some((_, Some((name, written)))) => (Some(name), Some(digest_of(written, at)?)),
        Some((text, None)) => (Some(text), None),
        None => (None, None),
    };
    check_ref_digest(written.as_ref(), digest.as_ref(), digest_at)?;
    Ok((full_name(full, text, at)?, written.or(digest)))
}

/// The name of the chart in `full`: `reference`, which is `ref` without a digest; or `repo`, `name`
/// and `version`.
fn full_name(
    full: &FullChart,
    reference: Option<&str>,
    at: &SourceSpan,
) -> ManifestResult<ChartName> {
    match (reference, &full.repo, &full.name, &full.version) {
        (Some(text), None, None, None) => name_of(text, at),
        (None, Some(repo), Some(name), Some(version)) => {
            if repo.starts_with("oci://") {
                // Helm, Flux and Hauler name charts in registries in this form
                return name_of(
                    &format!("{}/{name}:{version}", repo.trim_end_matches('/')),
                    at,
                );
            }
            ChartName::in_repository(repo, name, version).map_err(|error| at.fault(error, None))
        }
        (Some(_), ..) => Err(at.fault(
            "`ref` cannot be combined with `repo`, `name` or `version`",
            Some("write the version into `ref`, as in oci://…/name:1.2.3"),
        )),
        _ => Err(at.fault(
            "a chart with `repo` needs `name` and `version`",
            Some("write `name: app` and `version: 1.2.3`"),
        )),
    }
}

/// The version of `entry` that its update policy may change.
fn movable_version(entry: &ChartEntry) -> Option<MovableVersion<'_>> {
    let ChartEntry::Full(full) = entry else {
        return None;
    };
    let rule = full.update.as_ref()?;
    if let Some(text) = &full.r#ref {
        let version = tag_of(text)?;
        // a digest may follow the version
        let end = text.find('@').unwrap_or(text.len());
        let start = end - version.len();
        return Some(MovableVersion {
            rule,
            name: text[..start - 1].to_owned(),
            item_key: "ref",
            path: vec![EntryPathStep::Key("ref")],
            text,
            version: start..end,
        });
    }
    let repo = full.repo.as_ref()?;
    let name = full.name.as_ref()?;
    let text = full.version.as_ref()?;
    Some(MovableVersion {
        rule,
        name: format!("{}/{name}", repo.trim_end_matches('/')),
        item_key: "repo",
        path: vec![EntryPathStep::Key("version")],
        text,
        version: 0..text.len(),
    })
}

/// Parses the name of a chart.
pub(crate) fn name_of(text: &str, span: &SourceSpan) -> ManifestResult<ChartName> {
    text.to_owned()
        .try_into()
        .map_err(|error: String| span.fault(error, None))
}

/// Rejects keys of the discovery that have no effect.
fn check_discovery(full: &FullChart, reader: EntryReader<'_>) -> ManifestResult<()> {
    if full.images.is_none() {
        let keys = ["values", "kubernetes", "helm", "platforms", "referrers"];
        return match keys
            .into_iter()
            .find(|key| reader.node.key_span(key).is_some())
        {
            Some(key) => Err(reader.at(key).fault(
                format!("`{key}` has no effect without `images: discover`"),
                Some(&format!("add `images: discover`, or remove `{key}`")),
            )),
            None => Ok(()),
        };
    }
    if full.kubernetes.is_some() && full.helm.is_none() {
        return Err(reader.at("kubernetes").fault(
            "`kubernetes` needs `helm`, which renders the chart for that version",
            Some("add the version of helm, as in `helm: v3.18.4`"),
        ));
    }
    Ok(())
}

/// The values for the discovery, as YAML documents.
fn values(full: &FullChart, reader: EntryReader<'_>) -> ManifestResult<Vec<String>> {
    let mut documents = Vec::new();
    for (index, entry) in full.values.iter().enumerate() {
        let at = reader.item_at("values", index);
        documents.push(match entry {
            ValuesEntry::File(path) => String::from_utf8(reader.read_file(path, &at)?)
                .map_err(|_| at.fault(format!("{path} is not UTF-8 text"), None))?,
            // JSON is valid YAML
            ValuesEntry::Here(values) => Value::from(values.clone()).to_string(),
        });
    }
    Ok(documents)
}

impl ValuesEntry {
    /// The texts that may use variables: the path, or all strings of inline values.
    fn texts(&mut self) -> Vec<&mut String> {
        match self {
            ValuesEntry::File(path) => vec![path],
            ValuesEntry::Here(values) => values.values_mut().flat_map(strings).collect(),
        }
    }
}

/// All strings in `value`, without the keys of mappings.
fn strings(value: &mut Value) -> Vec<&mut String> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter_mut().flat_map(strings).collect(),
        Value::Object(fields) => fields.values_mut().flat_map(strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
