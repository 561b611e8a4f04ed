//! Lists of images that other tools wrote: one reader a format. Each reference comes with its place.

use super::schema::ListFormat;
use crate::document::{Diagnostic, Spot, Text};
use std::rc::Rc;

/// The references in `text`, in its order.
pub(super) fn read(format: ListFormat, text: &Rc<Text>) -> Result<Vec<(String, Spot)>, Box<Diagnostic>> {
    let found = match format {
        ListFormat::ImagesTxt => images_txt(text),
        ListFormat::Kkp => kkp(text)?,
    };
    if found.is_empty() {
        let (message, help) = match format {
            ListFormat::ImagesTxt => ("there is no image in this list", "write one reference a line"),
            ListFormat::Kkp => (
                "there is no `Image found` line in this log",
                "write it with `kubermatic-installer mirror-images --dry-run -o json REGISTRY 2> FILE`; \
                 REGISTRY must not be a local:// archive",
            ),
        };
        return Err(Spot::new(text, 0..0).fault(message, Some(help.into())));
    }
    Ok(found)
}

/// The lines of `text` without white space around them, each with its first byte.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut next = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = next;
        next += line.len();
        let begin = line.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        (start + line.len() - begin.len(), begin.trim_end())
    })
}

/// One reference a line; a `#` at the start of a line or after a blank begins a comment.
fn images_txt(text: &Rc<Text>) -> Vec<(String, Spot)> {
    let reference = |(start, line): (usize, &str)| {
        let comment = line.match_indices('#').map(|(at, _)| at);
        let mut comment = comment.filter(|&at| at == 0 || line[..at].ends_with(char::is_whitespace));
        let line = line[..comment.next().unwrap_or(line.len())].trim_end();
        (!line.is_empty()).then(|| (line.to_owned(), Spot::new(text, start..start + line.len())))
    };
    lines(&text.text).filter_map(reference).collect()
}

/// The log of `kubermatic-installer mirror-images`: logrus writes one JSON object a line, and
/// `RewriteImage` in kubermatic's pkg/install/images/images.go gives each image as
/// `{"msg": "Image found", "source-image": …, "target-image": …}`.
fn kkp(text: &Rc<Text>) -> Result<Vec<(String, Spot)>, Box<Diagnostic>> {
    let mut found = Vec::new();
    for (start, line) in lines(&text.text) {
        let Ok(entry) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let spot = Spot::new(text, start..start + line.len());
        let message = entry["msg"].as_str().unwrap_or_default();
        if message.contains("Operation failed") {
            let help = Some("mend what it complains of, and write the log again".into());
            return Err(spot.fault("kubermatic-installer failed, so this list may be incomplete", help));
        }
        if message == "Image found" {
            let source = entry["source-image"].as_str();
            let source = source.ok_or_else(|| {
                let help = Some("landfall reads the logs of KKP 2.21 and newer".into());
                spot.fault("this `Image found` line has no `source-image`", help)
            })?;
            found.push((source.to_owned(), spot.narrowed(source)));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(format: ListFormat, text: &str) -> Result<Vec<String>, String> {
        let text = Text::plain("list".into(), text.into());
        let show = |(reference, spot): (String, Spot)| {
            let place = spot.place();
            format!("{}:{} {reference} [{}]", place.line, place.column, spot.written())
        };
        read(format, &text).map(|found| found.into_iter().map(show).collect()).map_err(|e| e.to_string())
    }

    #[test]
    fn one_reference_a_line() {
        let text = "\u{feff}# RKE2\r\n\r\n  docker.io/rancher/a:v1\r\nb:1 # why\n#c:1\nd@sha256:00#x";
        assert_eq!(
            read_text(ListFormat::ImagesTxt, text).unwrap(),
            [
                "3:3 docker.io/rancher/a:v1 [docker.io/rancher/a:v1]",
                "4:1 b:1 [b:1]",
                "6:1 d@sha256:00#x [d@sha256:00#x]"
            ]
        );
        let empty = read_text(ListFormat::ImagesTxt, "# nothing\n").unwrap_err();
        assert!(empty.starts_with("list:1:1: error: there is no image in this list"), "{empty}");
    }

    #[test]
    fn the_installers_log() {
        let text = concat!(
            "{\"level\":\"info\",\"msg\":\"🚀 Collecting images…\",\"time\":\"2026-08-21T09:00:00Z\"}\n",
            "warning: no JSON\n",
            "{\"level\":\"info\",\"msg\":\"Image found\",\"source-image\":\"quay.io/a/b:v1\",",
            "\"target-image\":\"172.20.0.2:5000/a/b:v1\",\"time\":\"2026-08-21T09:00:01Z\"}\n",
            "{\"all-image-count\":1,\"copied-image-count\":0,\"level\":\"info\",\"msg\":\"✅ Finished.\"}\n",
        );
        let found = read_text(ListFormat::Kkp, text).unwrap();
        assert_eq!(found, ["3:53 quay.io/a/b:v1 [quay.io/a/b:v1]"]);
        let console = "INFO[09:00:01] Image found  source-image=\"quay.io/a/b:v1\"\n";
        assert!(read_text(ListFormat::Kkp, console).unwrap_err().contains("-o json"));
        let failed = format!("{text}{{\"level\":\"error\",\"msg\":\"❌ Operation failed: no helm.\"}}\n");
        assert!(read_text(ListFormat::Kkp, &failed).unwrap_err().starts_with("list:5:1: error: kubermatic"));
        let strange = "{\"msg\":\"Image found\",\"image\":\"a:1\"}";
        assert!(read_text(ListFormat::Kkp, strange).unwrap_err().contains("no `source-image`"));
    }
}
