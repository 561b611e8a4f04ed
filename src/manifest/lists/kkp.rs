//! `kkp`: the log of `kubermatic-installer mirror-images`.

use super::format::{Format, Listed};
use super::lines::lines;
use crate::document::Diagnostic;
use crate::document::{SourceSpan, SourceText};
use std::rc::Rc;

pub(super) const FORMAT: Format = Format {
    name: "kkp",
    about: "The stderr of `kubermatic-installer mirror-images --dry-run -o json REGISTRY`.",
    references,
    if_empty: (
        "there is no `Image found` line in this log",
        "write it with `kubermatic-installer mirror-images --dry-run -o json REGISTRY 2> FILE`; \
         REGISTRY must not be a local:// archive",
    ),
};

/// logrus writes one JSON object a line. `RewriteImage` in kubermatic's pkg/install/images/images.go writes each
/// image as `{"msg": "Image found", "source-image": …, "target-image": …}`.
fn references(text: &Rc<SourceText>) -> Result<Listed, Box<Diagnostic>> {
    let mut found = Vec::new();
    for (start, line) in lines(&text.text) {
        let Ok(entry) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let span = SourceSpan::new(text, start..start + line.len());
        let message = entry["msg"].as_str().unwrap_or_default();
        if message.contains("Operation failed") {
            let help = Some("fix what it complains of, and write the log again".into());
            return Err(span.fault("kubermatic-installer failed, so this list may be incomplete", help));
        }
        if message == "Image found" {
            let source = entry["source-image"].as_str();
            let source = source.ok_or_else(|| {
                let help = Some("landfall reads the logs of KKP 2.21 and newer".into());
                span.fault("this `Image found` line has no `source-image`", help)
            })?;
            found.push((source.to_owned(), span.narrowed(source)));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::testing::read_text;
    use super::*;

    #[test]
    fn the_installers_log() {
        let text = concat!(
            "{\"level\":\"info\",\"msg\":\"🚀 Collecting images…\",\"time\":\"2026-08-21T09:00:00Z\"}\n",
            "warning: no JSON\n",
            "{\"level\":\"info\",\"msg\":\"Image found\",\"source-image\":\"quay.io/a/b:v1\",",
            "\"target-image\":\"172.20.0.2:5000/a/b:v1\",\"time\":\"2026-08-21T09:00:01Z\"}\n",
            "{\"all-image-count\":1,\"copied-image-count\":0,\"level\":\"info\",\"msg\":\"✅ Finished.\"}\n",
        );
        let found = read_text(&FORMAT, text).unwrap();
        assert_eq!(found, ["3:53 quay.io/a/b:v1 [quay.io/a/b:v1]"]);
        let console = "INFO[09:00:01] Image found  source-image=\"quay.io/a/b:v1\"\n";
        assert!(read_text(&FORMAT, console).unwrap_err().contains("-o json"));
        let failed = format!("{text}{{\"level\":\"error\",\"msg\":\"❌ Operation failed: no helm.\"}}\n");
        assert!(read_text(&FORMAT, &failed).unwrap_err().starts_with("list:5:1: error: kubermatic"));
        let strange = "{\"msg\":\"Image found\",\"image\":\"a:1\"}";
        assert!(read_text(&FORMAT, strange).unwrap_err().contains("no `source-image`"));
    }
}
