//! `kkp`: the log of `kubermatic-installer mirror-images`.

use super::{ImageListFormat, ListedImages, lines};
use landfall_model::document::{Diagnostic, SourceSpan, SourceText};
use serde_json::Value;
use std::rc::Rc;

pub(super) const FORMAT: ImageListFormat = ImageListFormat {
    name: "kkp",
    about: "The stderr of `kubermatic-installer mirror-images --dry-run -o json REGISTRY`.",
    is: |text| {
        lines(text).any(|(_, line)| entry(line).is_some_and(|entry| entry["msg"].is_string()))
    },
    references,
    if_empty: (
        "this log contains no `Image found` line in JSON",
        "write it with `kubermatic-installer mirror-images --dry-run -o json REGISTRY 2> FILE`; \
         REGISTRY must not be a local:// archive",
    ),
};

/// The help for a log that is incomplete.
const AGAIN: &str = "write the complete log again; other output of the installer is ignored";

/// Reads the images in the log, and rejects an incomplete log: one with an error or a truncated
/// line, with fewer images than its last line says, or without that line.
///
/// logrus writes one JSON object on each line. `RewriteImage` in kubermatic's
/// pkg/install/images/images.go writes each image as `{"msg": "Image found", "source-image": …,
/// "target-image": …}`; the last line has the number of images (`all-image-count`, "Finished").
fn references(text: &Rc<SourceText>) -> Result<ListedImages, Box<Diagnostic>> {
    let mut found = ListedImages::new();
    let mut closing = None;
    for (start, line) in lines(&text.text) {
        let span = SourceSpan::new(text, start..start + line.len());
        let Some(entry) = entry(line) else {
            if line.starts_with('{') {
                return Err(span.fault("this line of the log is truncated", Some(AGAIN)));
            }
            continue;
        };
        let message = entry["msg"].as_str().unwrap_or_default();
        if matches!(entry["level"].as_str(), Some("error" | "fatal" | "panic")) {
            let help = Some("fix the reported problem, and write the log again");
            return Err(span.fault(
                "kubermatic-installer failed, so this list may be incomplete",
                help,
            ));
        }
        if message == "Image found" {
            let source = entry["source-image"].as_str();
            let source = source.ok_or_else(|| {
                let help = Some("landfall reads the logs of KKP 2.21 and newer");
                span.fault("this `Image found` line has no `source-image`", help)
            })?;
            found.push((source.to_owned(), span.narrowed(source)));
        } else if message.contains("Finished") || entry.get("all-image-count").is_some() {
            closing = Some((entry["all-image-count"].as_u64(), span));
        }
    }
    match closing {
        Some((Some(count), span)) if count > found.len() as u64 => {
            let message = format!(
                "the installer found {count} images, but this log has {}",
                found.len()
            );
            Err(span.fault(message, Some(AGAIN)))
        }
        None if !found.is_empty() => {
            let end = text.text.trim_end().len();
            let end = SourceSpan::new(text, end..end);
            Err(end.fault(
                "the log ends without the installer's last line (\"Finished\")",
                Some(AGAIN),
            ))
        }
        _ => Ok(found),
    }
}

/// The JSON object in a line of the log.
fn entry(line: &str) -> Option<Value> {
    serde_json::from_str(line).ok().filter(Value::is_object)
}

#[cfg(test)]
mod tests {
    use super::super::testing::read_text;
    use super::*;

    const LOG: &str = concat!(
        "{\"level\":\"info\",\"msg\":\"🚀 Collecting images…\",\"time\":\"2026-08-21T09:00:00Z\"}\n",
        "warning: no JSON\n",
        "{\"level\":\"info\",\"msg\":\"Image found\",\"source-image\":\"quay.io/a/b:v1\",",
        "\"target-image\":\"172.20.0.2:5000/a/b:v1\",\"time\":\"2026-08-21T09:00:01Z\"}\n",
        "{\"all-image-count\":1,\"copied-image-count\":0,\"level\":\"info\",\"msg\":\"✅ Finished.\"}\n",
    );

    #[test]
    fn the_log_of_the_installer_is_read() {
        assert_eq!(
            read_text(&FORMAT, LOG).unwrap(),
            ["3:53 quay.io/a/b:v1 [quay.io/a/b:v1]"]
        );
        let console = "INFO[09:00:01] Image found  source-image=\"quay.io/a/b:v1\"\n";
        assert!(read_text(&FORMAT, console).unwrap_err().contains("-o json"));
        let failed =
            format!("{LOG}{{\"level\":\"error\",\"msg\":\"❌ Operation failed: no helm.\"}}\n");
        assert!(
            read_text(&FORMAT, &failed)
                .unwrap_err()
                .starts_with("list:5:1: error: kubermatic")
        );
        let strange = "{\"msg\":\"Image found\",\"image\":\"a:1\"}";
        assert!(
            read_text(&FORMAT, strange)
                .unwrap_err()
                .contains("no `source-image`")
        );
    }

    #[test]
    fn an_incomplete_log_is_rejected() {
        let whole = LOG.trim_end().len();
        // every cut from the first image's reference to the end of the last line
        for at in LOG.find("b:v1").unwrap()..whole {
            assert!(
                !LOG.is_char_boundary(at) || read_text(&FORMAT, &LOG[..at]).is_err(),
                "{}",
                &LOG[..at]
            );
        }
        let fewer = LOG.replace("\"all-image-count\":1", "\"all-image-count\":2");
        assert!(
            read_text(&FORMAT, &fewer)
                .unwrap_err()
                .contains("the installer found 2 images, but this log has 1")
        );
        let error = LOG.replacen("info", "error", 1);
        assert!(
            read_text(&FORMAT, &error)
                .unwrap_err()
                .contains("kubermatic-installer failed")
        );
    }
}
