//! `images-txt`: one reference on each line, as in the image lists of RKE2 and others.

use super::{ImageListFormat, ListedImages, lines};
use crate::image::undecorated;
use landfall_model::ImageRef;
use landfall_model::document::{SourceSpan, SourceText};
use std::rc::Rc;

pub(super) const FORMAT: ImageListFormat = ImageListFormat {
    name: "images-txt",
    about: "One reference per line; `#` begins a comment.",
    is,
    references: |text| Ok(references(text)),
    if_empty: (
        "this list contains no images",
        "write one reference on each line",
    ),
};

/// The lines that are not blank, without their comments. A comment starts with `#` at the start of
/// a line or after white space.
fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    lines(text)
        .map(|(start, line)| {
            let comment = line
                .match_indices('#')
                .map(|(at, _)| at)
                .find(|&at| at == 0 || line[..at].ends_with(char::is_whitespace));
            (start, line[..comment.unwrap_or(line.len())].trim_end())
        })
        .filter(|(_, line)| !line.is_empty())
}

/// Whether at least half of the lines are references with a path or tag. A list with mistakes in
/// some lines is still recognized, so that they are reported, and so is a list with bullets or
/// quotes, unless it is a list in a YAML document.
fn is(text: &str) -> bool {
    let lines: Vec<&str> = entries(text).map(|(_, line)| line).collect();
    let has_keys = lines.iter().any(|line| line.ends_with(':'));
    let references = lines
        .iter()
        // without a path or tag, any word is a valid reference, so any text would look like a list
        .filter(|line| {
            (line.contains(['/', ':']) && line.parse::<ImageRef>().is_ok())
                || (!has_keys && undecorated(line).is_some())
        })
        .count();
    references > 0 && 2 * references >= lines.len()
}

fn references(text: &Rc<SourceText>) -> ListedImages {
    entries(&text.text)
        .map(|(start, line)| {
            let span = SourceSpan::new(text, start..start + line.len());
            (line.to_owned(), span)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::read_text;
    use super::*;

    #[test]
    fn a_list_with_bullets_quotes_or_commands_is_recognized() {
        for text in [
            "- nginx:1.27\n- redis:7\n",
            "\"quay.io/a/b:1\",\n'c:2',\n",
            "docker pull a/b:1\ndocker://c:2\n",
        ] {
            assert!(is(text), "{text}");
        }
        for text in [
            "images:\n- nginx:1.27\n- redis:7\n",
            "- name: nginx:1.27\n",
            "https://h/a.tar\nhttps://h/b.tar\n",
            "- one\n- two\n",
        ] {
            assert!(!is(text), "{text}");
        }
    }

    #[test]
    fn one_reference_per_line_is_read() {
        let text =
            "\u{feff}# RKE2\r\n\r\n  docker.io/rancher/a:v1\r\nb:1 # why\n#c:1\nd@sha256:00#x";
        assert_eq!(
            read_text(&FORMAT, text).unwrap(),
            [
                "3:3 docker.io/rancher/a:v1 [docker.io/rancher/a:v1]",
                "4:1 b:1 [b:1]",
                "6:1 d@sha256:00#x [d@sha256:00#x]"
            ]
        );
        let empty = read_text(&FORMAT, "# nothing\n").unwrap_err();
        assert!(
            empty.starts_with("list:1:1: error: this list contains no images"),
            "{empty}"
        );
    }
}
