//! Names of charts: `oci://registry/path/app:1.2.3`, `helm+https://host/path/app:1.2.3` for an HTTP
//! repository, or `helm+local:path/app:1.2.3` for a chart next to the manifest.

use crate::text::in_folder;
use landfall_model::{
    ChartVersion, ImageRef, LOCAL_PREFIX, has_userinfo, is_path_below, is_repository_component,
    local_path,
};
use landfall_signature::RuleSubject;
use serde::{Deserialize, Serialize};
use url::Url;

const OCI: &str = "oci://";
const HELM: &str = "helm+";

/// The name of a chart: its repository, name and version.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, derive_more::Display,
)]
#[serde(try_from = "String", into = "String")]
#[display("{text}")]
pub struct ChartName {
    text: String,
    /// The name as an image reference: `+` in the version becomes `_` in the tag.
    pub reference: ImageRef,
    /// The name of the chart, without repository and version.
    pub chart: String,
    /// The version as Chart.yaml writes it: with `+`, which becomes `_` in the tag.
    pub version: String,
    /// The URL of the HTTP repository without a trailing slash, or `local:` and the folder of a
    /// chart next to the manifest; `None` for a chart of a registry.
    pub repository: Option<String>,
}

/// The message for a text that is not a valid chart name.
fn not_a_chart(text: &str, why: &str) -> String {
    format!("'{text}' is not a chart: {why}")
}

impl ChartName {
    /// The names by which rules of `verify:` match the chart. In a registry, they are those of an
    /// image; in an HTTP repository, the repository's URL with the chart's name, with and without
    /// the version.
    pub fn rule_subject(&self) -> RuleSubject {
        match &self.repository {
            Some(repository) => {
                let name = format!("{repository}/{}", self.chart);
                RuleSubject::Urls(vec![format!("{name}:{}", self.version), name])
            }
            None => RuleSubject::from(&self.reference),
        }
    }

    /// Whether `text` starts like a chart name.
    pub(crate) fn is_named(text: &str) -> bool {
        text.starts_with(OCI) || text.starts_with(HELM)
    }

    /// The name of `chart` in the HTTP repository at `repository`.
    ///
    /// # Errors
    /// If a part of the name is invalid.
    pub fn in_repository(
        repository: &str,
        chart: &str,
        version: &str,
    ) -> Result<ChartName, String> {
        let text = format!(
            "{HELM}{}/{chart}:{version}",
            repository.trim_end_matches('/')
        );
        let url: Url = repository
            .parse()
            .map_err(|_| not_a_chart(&text, "its repository is not a URL"))?;
        let host = url.host_str().filter(|host| !host.is_empty());
        let (true, Some(host)) = (matches!(url.scheme(), "http" | "https"), host) else {
            let why = "its repository is not an http or https URL";
            return Err(not_a_chart(&text, why));
        };
        if has_userinfo(&url) {
            // the message must not repeat the password
            let why = "a URL must not contain a user name or password; configure credentials in \
                       the site file";
            let text = format!("{HELM}…/{chart}:{version}");
            return Err(not_a_chart(&text, why));
        }
        if url.query().is_some() || url.fragment().is_some() {
            let why = "the URL of its repository contains `?` or `#`";
            return Err(not_a_chart(&text, why));
        }
        check(chart, version).map_err(|why| not_a_chart(&text, why))?;
        let repository = url.as_str().trim_end_matches('/').to_owned();
        let port = url
            .port()
            .map(|port| format!(":{port}"))
            .unwrap_or_default();
        let path = url.path_segments().into_iter().flatten().chain([chart]);
        Ok(ChartName {
            text: format!("{HELM}{repository}/{chart}:{version}"),
            reference: reference(format!("{host}{port}"), path, version),
            chart: chart.into(),
            version: version.into(),
            repository: Some(repository),
        })
    }

    /// The name of `chart` in `folder`, which is relative to the manifest and empty for the folder
    /// of the manifest itself.
    ///
    /// # Errors
    /// If a part of the name is invalid.
    pub fn in_folder(folder: &str, chart: &str, version: &str) -> Result<ChartName, String> {
        let path = in_folder(folder, chart);
        let text = format!("{HELM}{LOCAL_PREFIX}{path}:{version}");
        check(chart, version).map_err(|why| not_a_chart(&text, why))?;
        if !is_path_below(&path) {
            return Err(not_a_chart(&text, "its path is not one below a folder"));
        }
        Ok(ChartName {
            reference: reference("local".into(), path.split('/'), version),
            chart: chart.into(),
            version: version.into(),
            repository: Some(format!("{LOCAL_PREFIX}{folder}")),
            text,
        })
    }

    /// The name of a chart next to a manifest with the `metadata.name` of the manifest in front of
    /// its path. `None` for other charts, or if the result is not valid.
    pub(crate) fn in_series(&self, series: &str) -> Option<ChartName> {
        let folder = self.folder()?;
        let folder = if folder.is_empty() {
            series.to_owned()
        } else {
            format!("{series}/{folder}")
        };
        ChartName::in_folder(&folder, &self.chart, &self.version).ok()
    }

    /// The folder of a chart next to the manifest; `None` for other charts.
    pub fn folder(&self) -> Option<&str> {
        local_path(self.repository.as_deref()?)
    }

    /// Parses `text` as the name of a chart in a registry.
    fn in_registry(text: &str) -> Result<ChartName, String> {
        let rest = text.strip_prefix(OCI).unwrap_or_default();
        let version = rest
            .rsplit_once('/')
            .and_then(|(_, last)| last.split_once(':'));
        let (_, version) =
            version.ok_or_else(|| not_a_chart(text, "its version is missing: add :1.2.3"))?;
        // people may copy the tag, in which Helm writes `+` as `_`
        let version = version.replace('_', "+");
        let repository = &rest[..rest.len() - version.len() - 1];
        let name: ImageRef = format!("{repository}:{}", version.replace('+', "_"))
            .parse()
            .map_err(|_| {
                let why = "write oci://registry/path/name:version, with the chart's version as \
                           Helm lists it";
                not_a_chart(text, why)
            })?;
        let chart = name
            .repository
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned();
        check(&chart, &version).map_err(|why| not_a_chart(text, why))?;
        Ok(ChartName {
            text: format!("{OCI}{}:{version}", name.name()),
            reference: name,
            chart,
            version,
            repository: None,
        })
    }

    /// The repository of the chart: the URL of an HTTP repository, or `oci://registry/path` without
    /// the last component.
    pub fn repository_url(&self) -> String {
        match (&self.repository, self.reference.repository.rsplit_once('/')) {
            (Some(url), _) => url.clone(),
            (None, Some((path, _))) => format!("{OCI}{}/{path}", self.reference.registry),
            (None, None) => format!("{OCI}{}", self.reference.registry),
        }
    }

    /// The name as manifests and the lock write it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The file name of the archive, as in `app-1.2.3.tgz`.
    pub fn archive(&self) -> String {
        format!("{}-{}.tgz", self.chart, self.version)
    }
}

/// The version without a leading `v`, which some repositories add.
pub(super) fn bare(version: &str) -> &str {
    version.trim_start_matches('v')
}

/// The reference of a chart that is not in a registry. Components of its path that are not allowed
/// in a repository path are omitted.
fn reference<'p>(registry: String, path: impl Iterator<Item = &'p str>, version: &str) -> ImageRef {
    let path = path.map(str::to_ascii_lowercase);
    let path: Vec<String> = path.filter(|part| is_repository_component(part)).collect();
    ImageRef {
        registry,
        repository: if path.is_empty() {
            "chart".into()
        } else {
            path.join("/")
        },
        tag: Some(version.replace('+', "_")),
        digest: None,
    }
}

/// Chart name and version become part of file paths, so they must not contain separators.
fn check(chart: &str, version: &str) -> Result<(), &'static str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if chart.is_empty() || chart.starts_with(['.', '-']) || !chart.chars().all(is_word) {
        return Err(
            "its name must consist of letters, digits, - _ and ., and not begin with - or .",
        );
    }
    let is_version = |c: char| c.is_ascii_alphanumeric() || "-.+".contains(c);
    if !version.chars().all(is_version)
        || version.len() > 100
        || version.parse::<ChartVersion>().is_err()
    {
        return Err("its version must be exact, as in 1.2.3, and not a range or another word");
    }
    Ok(())
}

impl TryFrom<String> for ChartName {
    type Error = String;

    fn try_from(text: String) -> Result<ChartName, String> {
        if text.starts_with(OCI) {
            return ChartName::in_registry(&text);
        }
        let local = text.strip_prefix(HELM).and_then(local_path);
        if let Some((path, version)) = local.and_then(|rest| rest.rsplit_once(':')) {
            let (folder, chart) = path.rsplit_once('/').unwrap_or(("", path));
            return ChartName::in_folder(folder, chart, version);
        }
        let parts = text.strip_prefix(HELM).and_then(|rest| {
            let (repository, last) = rest.rsplit_once('/')?;
            let (chart, version) = last.split_once(':')?;
            Some((repository, chart, version))
        });
        match parts {
            Some((repository, chart, version)) => {
                ChartName::in_repository(repository, chart, version)
            }
            None => Err(not_a_chart(
                &text,
                "write oci://registry/path/name:version or helm+https://host/path/name:version",
            )),
        }
    }
}

impl From<ChartName> for String {
    fn from(name: ChartName) -> String {
        name.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Result<ChartName, String> {
        text.to_owned().try_into()
    }

    #[test]
    fn names_are_parsed_into_references_and_repositories() {
        let oci = name("oci://Quay.io/a/charts/app:1.2.3+b").unwrap();
        assert_eq!(oci.to_string(), "oci://quay.io/a/charts/app:1.2.3+b");
        assert_eq!(oci.reference.to_string(), "quay.io/a/charts/app:1.2.3_b");
        assert_eq!(
            (&*oci.chart, &*oci.version, &*oci.archive()),
            ("app", "1.2.3+b", "app-1.2.3+b.tgz")
        );
        assert_eq!(name("oci://quay.io/a/charts/app:1.2.3_b").unwrap(), oci);
        let http = name("helm+https://charts.example.com:8443/Stable/app:v1.2").unwrap();
        assert_eq!(
            http.repository.as_deref(),
            Some("https://charts.example.com:8443/Stable")
        );
        assert_eq!(
            http.reference.to_string(),
            "charts.example.com:8443/stable/app:v1.2"
        );
        assert_eq!(name(http.as_str()).unwrap(), http);
        let again =
            ChartName::in_repository("https://charts.example.com:8443/Stable/", "app", "v1.2");
        assert_eq!(again.unwrap(), http);
        let local = name("helm+local:charts/App:1.2.3+b").unwrap();
        assert_eq!(local.reference.to_string(), "local/charts/app:1.2.3_b");
        assert_eq!((&*local.chart, local.folder()), ("App", Some("charts")));
        assert_eq!(
            ChartName::in_folder("charts", "App", "1.2.3+b").unwrap(),
            local
        );
        let top = name("helm+local:app:1.2.3").unwrap();
        assert_eq!((&*top.chart, top.folder()), ("app", Some("")));
    }

    #[test]
    fn names_without_an_exact_version_or_a_valid_repository_are_rejected() {
        for (text, why) in [
            ("oci://quay.io/a/app", "version is missing"),
            ("oci://quay.io/a/app:latest", "must be exact"),
            ("oci://quay.io/a/app:1.2.3@sha256:00", "write oci://"),
            ("oci://quay.io/A/app:1.2.3", "write oci://"),
            ("helm+https://h/app:^1.2", "must be exact"),
            ("helm+https://h/..:1.2.3", "must consist of"),
            ("helm+file:///x/app:1.2.3", "not an http"),
            ("helm+https://u:p@h/app:1.2.3", "user name"),
            ("helm+https://h/?a=b/app:1.2.3", "`?`"),
            ("helm+local:../app:1.2.3", "below a folder"),
            ("app:1.2.3", "write oci://"),
        ] {
            let error = name(text).unwrap_err();
            assert!(
                error.contains(why) && !error.contains("u:p"),
                "{text}: {error}"
            );
        }
    }
}
