//! Edits applied to a text, and the proof that nothing else changed.

use super::{Edit, RewriteError, yaml};

/// `source` with `edits` made; they are in the order of the text and do not overlap. The result is
/// read again: its values must be those of `documents` with the edits made.
///
/// # Errors
/// When the result does not read so.
pub(super) fn apply(
    source: &str,
    documents: &[yaml::Document<'_>],
    edits: &[Edit],
) -> Result<String, RewriteError> {
    let mut text = source.to_owned();
    for edit in edits.iter().rev() {
        text.replace_range(edit.span.clone(), &edit.bytes);
    }
    if edits.is_empty() {
        return Ok(text);
    }
    let again = yaml::parse(&text).map_err(|_| RewriteError::Unsound)?;
    let changed = edits.iter().map(|edit| (edit.scalar, edit.to.as_str())).collect();
    match yaml::is_mapped(documents, &again, &changed) {
        true => Ok(text),
        false => Err(RewriteError::Unsound),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_reads_otherwise_is_refused() {
        let source = "a: [b, b]\nc: d\n";
        let documents = yaml::parse(source).unwrap();
        let attempt = |bytes: &str, to: &str| {
            let (from, item, bytes, to) = ("b".into(), String::new(), bytes.into(), to.into());
            let edit = Edit { line: 1, column: 5, from, to, item, span: 4..5, bytes, scalar: 4 };
            apply(source, &documents, &[edit])
        };
        assert_eq!(attempt("'x:1'", "x:1").unwrap(), "a: ['x:1', b]\nc: d\n");
        for (bytes, to) in
            [("x, y", "x, y"), ("x]\nz: [", "x"), ("[x", "[x"), ("", ""), ("x", "y"), ("&b x", "x")]
        {
            assert!(matches!(attempt(bytes, to), Err(RewriteError::Unsound)), "{bytes}");
        }
    }
}
