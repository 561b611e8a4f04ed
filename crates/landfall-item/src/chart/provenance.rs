//! Verifies the provenance file of a chart, a signed description of its archive (helm.sh, "Helm
//! Provenance and Integrity").

use super::metadata::{ChartYaml, plain};
use super::name::{ChartName, bare};
use landfall_model::Digest;
use landfall_model::document::yaml;
use landfall_model::sign::{OpenPgpKeys, SignatureTime};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct ProvenanceSums {
    #[serde(default)]
    files: BTreeMap<String, String>,
}

/// Verifies `provenance` and returns the fingerprint of the key that signed it. The key and the
/// signature must be valid at `time`. A key signs many charts, so the signed text must name this
/// chart in its Chart.yaml, and this archive by `digest`. Otherwise a valid provenance of another
/// chart would be accepted.
pub(super) fn check(
    provenance: &[u8],
    digest: &Digest,
    name: &ChartName,
    keys: &OpenPgpKeys,
    time: SignatureTime,
) -> Result<String, String> {
    let text = std::str::from_utf8(provenance).map_err(|_| "its provenance is not UTF-8 text")?;
    let (signed, key) = keys
        .verify(text, time)
        .map_err(|error| format!("its provenance: {error}"))?;
    check_subject(&signed, digest, name)?;
    Ok(key)
}

/// Checks that the signed text is about the chart `name` and its archive with `digest`.
fn check_subject(signed: &str, digest: &Digest, name: &ChartName) -> Result<(), String> {
    // the text is Chart.yaml, followed by a second YAML document with the checksums
    let (chart, sums) = signed
        .rsplit_once("\n...\n")
        .ok_or("its provenance contains no list of files")?;
    let sums: Option<ProvenanceSums> = yaml::from_str(sums).ok();
    let files = sums
        .ok_or("its provenance contains no list of files")?
        .files;
    let expected = digest.to_string();
    if !files.values().any(|sum| *sum == expected) {
        return Err(format!(
            "its provenance is signed for another archive: it lists {}, but the archive is \
             {expected}",
            files
                .iter()
                .map(|(name, sum)| format!("{name} ({sum})"))
                .collect::<Vec<_>>()
                .join(", ")
        ));
    }
    let chart: ChartYaml = yaml::from_str(chart)
        .map_err(|error| format!("the Chart.yaml in its provenance cannot be read: {error}"))?;
    let version = plain(&chart.version).unwrap_or_default();
    if chart.name != name.chart || bare(&version) != bare(&name.version) {
        return Err(format!(
            "its provenance is signed for another chart: {} {version}",
            chart.name
        ));
    }
    // the checksum is signed for a file name, which must be that of this chart
    let file = format!("{}-{version}.tgz", chart.name);
    if files.get(&file) == Some(&expected) {
        Ok(())
    } else {
        Err(format!(
            "its provenance is signed for an archive with another name than {file}: {}",
            files.into_keys().collect::<Vec<_>>().join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signed_text_must_name_the_chart_and_its_file() {
        let digest = Digest::sha256(b"archive");
        let name = ChartName::in_repository("https://h/charts", "app", "1.2.3").unwrap();
        let check = |chart: &str, file: &str, sum: &Digest| {
            check_subject(
                &format!("apiVersion: v2\n{chart}\n...\nfiles:\n  {file}: {sum}\n"),
                &digest,
                &name,
            )
        };
        assert_eq!(
            check("name: app\nversion: 1.2.3", "app-1.2.3.tgz", &digest),
            Ok(())
        );
        assert_eq!(
            check("name: app\nversion: v1.2.3", "app-v1.2.3.tgz", &digest),
            Ok(())
        );
        for (chart, file, sum, why) in [
            (
                "name: other\nversion: 1.2.3",
                "other-1.2.3.tgz",
                &digest,
                "another chart: other 1.2.3",
            ),
            (
                "name: app\nversion: 1.2.2",
                "app-1.2.2.tgz",
                &digest,
                "another chart: app 1.2.2",
            ),
            (
                "name: app\nversion: 1.2.3",
                "app-1.2.2.tgz",
                &digest,
                "another name than app-1.2.3.tgz: app-1.2.2",
            ),
            (
                "name: app\nversion: 1.2.3",
                "app-1.2.3.tgz",
                &Digest::sha256(b"x"),
                "for another archive",
            ),
            (
                "version: 1.2.3",
                "app-1.2.3.tgz",
                &digest,
                "the Chart.yaml in its provenance cannot be read",
            ),
        ] {
            let error = check(chart, file, sum).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
