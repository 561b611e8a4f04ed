//! The unified diff of a file that configuration was merged into. Values of Secrets are masked;
//! their keys are shown.

use crate::cli::shared::unified_diff::{DiffReader, MASK, TextEdit, unified};
use landfall_render::MergedFile;
use landfall_rewrite::secret_values;
use std::ops::Range;

/// The top-level keys of a Secret whose values are shown.
const SHOWN: [&str; 3] = ["apiVersion", "kind", "type"];

/// The keys in the `metadata` of a Secret whose own lines are shown. Lines below them are masked:
/// kubectl keeps a copy of the whole Secret in an annotation.
const SHOWN_METADATA: [&str; 4] = ["annotations", "labels", "name", "namespace"];

/// The maximum number of pairs of lines that are compared, with four bytes of memory for each. In
/// larger texts, everything from the first to the last difference is one change.
const MAX_PAIRS: usize = 16_000_000;

/// Returns the diff between `old` and `merged`, and the diffs of the texts that the file contains
/// in base64. All values of these texts are masked; if credentials were merged, all values of the
/// file are masked too.
pub(crate) fn merge_diff(path: &str, old: &str, merged: &MergedFile, reader: DiffReader) -> String {
    let path = path.trim_start_matches("./").trim_start_matches('/');
    let mut diff = diff_texts(
        path,
        old,
        &merged.text,
        |text| masks(text, merged.secret),
        reader,
    );
    for text in &merged.decoded {
        let path = format!("{path} ({}, decoded)", text.path);
        diff += &diff_texts(
            &path,
            &text.old,
            &text.new,
            |text| vec![true; text.lines().count()],
            reader,
        );
    }
    diff
}

/// The diff of two texts. `masks` returns for each line of a text whether its value is masked.
fn diff_texts(
    path: &str,
    old: &str,
    new: &str,
    masks: impl Fn(&str) -> Vec<bool>,
    reader: DiffReader,
) -> String {
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) = (
        old.split_inclusive('\n').collect(),
        new.split_inclusive('\n').collect(),
    );
    let old_masks = masks(old);
    let new_masks = masks(new);
    let mut text = String::new();
    let mut starts = Vec::new();
    for (at, line) in old_lines.iter().enumerate() {
        starts.push(text.len());
        text += &if is_masked(&old_masks, at) {
            masked(line, MASK)
        } else {
            (*line).to_owned()
        };
    }
    starts.push(text.len());
    let edit = |(before, after): (Range<usize>, Range<usize>)| -> TextEdit {
        let lines = after.map(|at| {
            if is_masked(&new_masks, at) {
                masked(new_lines[at], "*** (changed)")
            } else {
                new_lines[at].to_owned()
            }
        });
        (starts[before.start]..starts[before.end], lines.collect())
    };
    unified(
        path,
        &text,
        changes(&old_lines, &new_lines)
            .into_iter()
            .map(edit)
            .collect(),
        reader,
    )
}

fn is_masked(masks: &[bool], at: usize) -> bool {
    masks.get(at).copied().unwrap_or_default()
}

/// Returns for each line of `text` whether its value is masked: in Secrets, or everywhere if `all`.
fn masks(text: &str, all: bool) -> Vec<bool> {
    // a merged file is YAML, not a template: a value such as `{{ x }}` must be masked too
    let secrets = secret_values(&text.replace("{{", "[["));
    let mut at = 0;
    let mut top = "";
    // the indentation of the keys in `metadata`
    let mut metadata_indent = None;
    let mut masks = Vec::new();
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        let is_secret = secrets
            .iter()
            .any(|range| range.start < end && range.end > at);
        if !line.starts_with([' ', '#', '\n', '\r']) {
            top = line.split(':').next().unwrap_or_default().trim_end();
            metadata_indent = None;
        }
        let key = line.split(':').next().unwrap_or_default().trim();
        let is_shown = match top {
            "metadata" if key == top => true,
            "metadata" => {
                let indent = line.len() - line.trim_start().len();
                *metadata_indent.get_or_insert(indent) == indent && SHOWN_METADATA.contains(&key)
            }
            // a comment line below one of these keys may quote a value
            _ => SHOWN.contains(&top) && !line.trim_start().starts_with('#'),
        };
        // In flow style (`{`), the line of a shown key may contain the data too.
        masks.push(all || (is_secret && (!is_shown || line.contains('{'))));
        at = end;
    }
    masks
}

/// Replaces the value in `line` by `mask`. Keys and document markers are kept. Comments are masked:
/// in a block scalar, a line with `#` is a part of the value.
fn masked(line: &str, mask: &str) -> String {
    let body = line.trim_end_matches(['\n', '\r']);
    let content = body.trim_start();
    let indent = &body[..body.len() - content.len()];
    let end = &line[body.len()..];
    if content.is_empty() || content == "---" {
        return line.to_owned();
    }
    let shown = key_len(content);
    let value = content[shown..].trim();
    if value.is_empty() || ["|", "|-", "|+", ">", ">-", ">+", "{}", "[]"].contains(&value) {
        return line.to_owned();
    }
    let blank = if content[..shown].ends_with(':') {
        " "
    } else {
        ""
    };
    format!("{indent}{}{blank}{mask}{end}", &content[..shown])
}

/// The length of the key at the start of a line, including list dashes and the colon; or of the
/// environment variable in a line of a systemd unit.
fn key_len(content: &str) -> usize {
    let key = content.trim_start_matches(['-', ' ']);
    let dashes = content.len() - key.len();
    if let Some(assignment) = key.strip_prefix("Environment=\"")
        && let Some((name, _)) = assignment.split_once('=').filter(|(name, _)| is_name(name))
    {
        return dashes + "Environment=\"".len() + name.len() + 1;
    }
    match key
        .find(':')
        .filter(|colon| matches!(key.as_bytes().get(colon + 1), None | Some(b' ')))
        .filter(|colon| is_name(&key[..*colon]))
    {
        Some(colon) => dashes + colon + 1,
        None => 0,
    }
}

fn is_name(name: &str) -> bool {
    let name = name.trim_matches(['"', '\'']);
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
}

/// The ranges of lines in `old` that differ, each with the range of lines in `new` that replaces
/// it. Computed from a longest common subsequence. A rewrite needs no such comparison, because it
/// knows the positions of its edits.
fn changes(old: &[&str], new: &[&str]) -> Vec<(Range<usize>, Range<usize>)> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let ends = old[start..].iter().rev().zip(new[start..].iter().rev());
    let same = ends.take_while(|(a, b)| a == b).count();
    let a = &old[start..old.len() - same];
    let b = &new[start..new.len() - same];
    if a.is_empty() && b.is_empty() {
        return Vec::new();
    }
    if a.len().saturating_mul(b.len()) > MAX_PAIRS {
        return vec![(start..start + a.len(), start..start + b.len())];
    }
    // common[i][j] is the length of the longest common subsequence of a[i..] and b[j..].
    let mut common = vec![vec![0_u32; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] = if a[i] == b[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let mut i = 0;
    let mut j = 0;
    let mut found = Vec::new();
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let from_i = i;
        let from_j = j;
        while (i < a.len() || j < b.len()) && !(i < a.len() && j < b.len() && a[i] == b[j]) {
            if j == b.len() || (i < a.len() && common[i + 1][j] >= common[i][j + 1]) {
                i += 1;
            } else {
                j += 1;
            }
        }
        found.push((start + from_i..start + i, start + from_j..start + j));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::document::DecodedText;

    fn merged(text: &str) -> MergedFile {
        MergedFile {
            text: text.into(),
            ..MergedFile::default()
        }
    }

    #[test]
    fn the_diff_shows_changed_lines_with_their_context() {
        let old = "a: 1\nb: 2\nc: 3\nd: 4\n";
        let diff = merge_diff(
            "./x.yaml",
            old,
            &merged("a: 1\nb: 2\nnew: 1\nc: 3\nd: 5\n"),
            DiffReader::Program,
        );
        assert_eq!(
            diff,
            "--- a/x.yaml\n+++ b/x.yaml\n@@ -1,4 +1,5 @@\n a: 1\n b: 2\n+new: 1\n c: 3\n-d: \
             4\n+d: 5\n"
        );
        assert_eq!(merge_diff("x", old, &merged(old), DiffReader::Program), "");
    }

    #[test]
    fn keys_of_secrets_are_shown_and_values_are_not() {
        let old = "kind: Secret\n# password: hush\nmetadata:\n  name: a\nstringData:\n  values.yaml: |\n    #@data/values\n    ---\n    x:\n      \
                   password: hush\n      http: old-hush\n    Zm9v=\n  unit: |\n    Environment=\"A=hush\"\ndata:\n  y: aHVzaA==\n";
        let new = old
            .replace("old-hush", "new-hush")
            .replace("name: a", "name: b")
            .replace("aHVzaA==", "aHVzaGg=");
        let decoded = DecodedText {
            path: "data.y".into(),
            old: "p: hush\n".into(),
            new: "p: hush2\n".into(),
        };
        let merged = MergedFile {
            decoded: vec![decoded],
            ..merged(&new)
        };
        let diff = merge_diff("x", old, &merged, DiffReader::Program);
        assert!(
            !diff.contains("hush") && !diff.contains("aHVz") && !diff.contains("Zm9v"),
            "{diff}"
        );
        for line in [
            "-  name: a\n+  name: b\n",
            "-      http: ***\n+      http: *** (changed)\n",
            "       password: ***\n",
            "-  y: ***\n+  y: *** (changed)\n",
            "     Environment=\"A=***\n",
            "+++ b/x (data.y, decoded)\n@@ -1 +1 @@\n-p: ***\n+p: *** (changed)\n",
        ] {
            assert!(diff.contains(line), "{line}\n{diff}");
        }
    }

    #[test]
    fn lines_that_look_like_comments_or_template_calls_are_masked() {
        let old =
            "kind: Secret\nstringData:\n  password: |\n    #hush\n    #@hush\n    {{ hush }}\n";
        let new = old.replace("#hush", "#hush2");
        let diff = merge_diff("x", old, &merged(&new), DiffReader::Program);
        assert!(!diff.contains("hush"), "{diff}");
        assert!(diff.contains("-    ***\n+    *** (changed)\n"), "{diff}");
    }

    #[test]
    fn annotations_of_secrets_are_masked() {
        let old = "kind: Secret\nmetadata:\n  name: shown\n  annotations:\n    note: hush\n    copy: |\n      \
                   [\"hush\",\n      name: hush\n  labels:\n    name: hush\ndata: {}\n";
        let new = old.replace("data: {}", "data:\n  x: aHVzaA==");
        let diff = merge_diff("x", old, &merged(&new), DiffReader::Program);
        assert!(!diff.contains("hush"), "{diff}");
        let diff = merge_diff("x", "kind: Secret\n", &merged(&new), DiffReader::Program);
        assert!(
            !diff.contains("hush") && diff.contains("+  name: shown\n"),
            "{diff}"
        );
    }

    #[test]
    fn all_values_are_masked_if_credentials_were_merged() {
        let merged = MergedFile {
            secret: true,
            ..merged("a: hush\nproxy: {http: \"http://u:hush@p\"}\n")
        };
        let diff = merge_diff("x", "a: hush\n", &merged, DiffReader::Program);
        assert_eq!(
            diff,
            "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n a: ***\n+proxy: *** (changed)\n"
        );
    }
}
