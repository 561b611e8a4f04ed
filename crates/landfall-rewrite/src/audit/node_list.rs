//! Reads tables of the images on a node: the output of `ctr images ls`, `crictl images` or
//! `docker images`.

use crate::walk::ImageCandidate;
use landfall_model::Digest;

/// The first columns of each table.
const CTR: [&str; 3] = ["REF", "TYPE", "DIGEST"];
const CRICTL: [&str; 2] = ["IMAGE", "TAG"];
const DOCKER: [&str; 2] = ["REPOSITORY", "TAG"];

/// The images of a table, with their digests if the table has them. `None` if `text` is not such a
/// table.
pub(super) fn candidates(text: &str) -> Option<Vec<ImageCandidate>> {
    let head: Vec<&str> = text.lines().next()?.split_whitespace().collect();
    let read_row: fn(&[&str], Option<usize>) -> Option<NodeListRow> = if head.starts_with(&CTR) {
        ctr_row
    } else if head.starts_with(&CRICTL) || head.starts_with(&DOCKER) {
        row_by_columns
    } else {
        return None;
    };
    let digest_at = head.iter().position(|column| *column == "DIGEST");
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let cells: Vec<&str> = line.split_whitespace().collect();
        // the first line is the head of the table
        match read_row(&cells, digest_at).filter(|_| start > 0) {
            Some(NodeListRow::Image(written)) => {
                found.extend(ImageCandidate::all(start, &[], &written, true, true))
            }
            Some(NodeListRow::Nameless(shown)) => found.push(ImageCandidate {
                at: start,
                path: Vec::new(),
                written: shown,
                sure: true,
                in_container: true,
                is_chart: false,
                why_not: Some("the node has it without a tag: list it with its digest".into()),
            }),
            None => {}
        }
    }
    Some(found)
}

/// A row of a table.
enum NodeListRow {
    Image(String),
    /// The name of an image whose row has neither a tag nor a digest, so that it cannot be looked
    /// up.
    Nameless(String),
}

/// Reads `REF TYPE DIGEST …`. A row whose reference is only a digest repeats an image of another
/// row.
fn ctr_row(cells: &[&str], _: Option<usize>) -> Option<NodeListRow> {
    let [reference, _, digest, ..] = cells else {
        return None;
    };
    if reference.parse::<Digest>().is_ok() {
        return None;
    }
    let is_pinned = reference.contains('@') || digest.parse::<Digest>().is_err();
    Some(NodeListRow::Image(if is_pinned {
        (*reference).to_owned()
    } else {
        format!("{reference}@{digest}")
    }))
}

/// Reads `IMAGE TAG [DIGEST] …`. crictl prints a part of the digest, docker all of it.
fn row_by_columns(cells: &[&str], digest_at: Option<usize>) -> Option<NodeListRow> {
    let [name, tag, ..] = cells else { return None };
    let digest = digest_at
        .and_then(|at| cells.get(at))
        .filter(|digest| digest.parse::<Digest>().is_ok());
    Some(match (*tag, digest) {
        ("<none>", None) => NodeListRow::Nameless((*name).to_owned()),
        ("<none>", Some(digest)) => NodeListRow::Image(format!("{name}@{digest}")),
        (tag, Some(digest)) => NodeListRow::Image(format!("{name}:{tag}@{digest}")),
        (tag, None) => NodeListRow::Image(format!("{name}:{tag}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Option<Vec<String>> {
        Some(
            candidates(text)?
                .into_iter()
                .map(|one| one.written)
                .collect(),
        )
    }

    #[test]
    fn the_table_of_each_tool_is_read() {
        let a = Digest::sha256(b"a");
        let b = Digest::sha256(b"b");
        let ctr = format!(
            "REF                 TYPE      DIGEST   SIZE  PLATFORMS LABELS\n\
             docker.io/library/busybox:1.36 application/x {a} 2.1 MiB linux/amd64 -\n\
             registry.k8s.io/pause@{b} application/x {b} 314.0 KiB linux/amd64 -\n{b} application/x {b} 1.0 KiB - -\n"
        );
        let expected = [
            format!("docker.io/library/busybox:1.36@{a}"),
            format!("registry.k8s.io/pause@{b}"),
        ];
        assert_eq!(written(&ctr).unwrap(), expected);
        let crictl = "IMAGE                  TAG      IMAGE ID        SIZE\nquay.io/x/y  v1  0123456789abc  1MB\nquay.io/x/z  <none>  0123  1MB\n";
        assert_eq!(written(crictl).unwrap(), ["quay.io/x/y:v1", "quay.io/x/z"]);
        let docker = format!(
            "REPOSITORY  TAG  DIGEST  IMAGE ID  CREATED  SIZE\nbusybox  1.36  {a}  01  2 weeks ago  4MB\nx/y <none> {b} 02 - 1MB\n"
        );
        assert_eq!(
            written(&docker).unwrap(),
            [format!("busybox:1.36@{a}"), format!("x/y@{b}")]
        );
        assert_eq!(written("quay.io/x/y:v1\n"), None);
    }
}
