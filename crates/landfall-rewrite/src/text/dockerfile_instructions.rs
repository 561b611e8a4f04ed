//! Splits a Dockerfile into its instructions (docs.docker.com/reference/dockerfile).

use std::collections::{HashMap, VecDeque};

/// The words of each instruction, and each comment as one word. An instruction continues after a
/// backslash at the end of a line; the lines of a here-document belong to no instruction.
pub(super) fn instructions(text: &str) -> Vec<Vec<&str>> {
    let escape = escape_character(text);
    let lines: Vec<&str> = text.lines().collect();
    // `<<EOF` without a later line `EOF` is not a here-document: the operator is then in quotes
    let last: HashMap<&str, usize> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (line.trim_start_matches('\t'), at))
        .collect();
    let mut found = Vec::new();
    let mut words: Vec<&str> = Vec::new();
    let mut open: VecDeque<&str> = VecDeque::new();
    for (at, line) in lines.into_iter().enumerate() {
        if let Some(end) = open.front() {
            if line.trim_start_matches('\t') == *end {
                open.pop_front();
            }
            continue;
        }
        let content = line.trim();
        if content.starts_with('#') {
            // comments within an instruction are removed from it
            if words.is_empty() {
                found.push(vec![content]);
            }
            continue;
        }
        let continued = content.strip_suffix(escape);
        words.extend(continued.unwrap_or(content).split_whitespace());
        if continued.is_some() || (content.is_empty() && !words.is_empty()) {
            continue;
        }
        let instruction = words.first().map(|word| word.to_ascii_uppercase());
        if let Some("RUN" | "COPY" | "ADD") = instruction.as_deref() {
            let ends = words.iter().filter_map(|word| here_document(word));
            open.extend(ends.filter(|end| last.get(end).is_some_and(|last| *last > at)));
        }
        found.push(std::mem::take(&mut words));
    }
    found.push(words);
    found.retain(|words| !words.is_empty());
    found
}

/// The line that ends the here-document of a word such as `<<EOF`, `<<-EOF` and `3<<'EOF'`.
fn here_document(word: &str) -> Option<&str> {
    let (number, end) = word.split_once("<<")?;
    let end = unquoted(end.strip_prefix('-').unwrap_or(end));
    let is_operator = number.bytes().all(|byte| byte.is_ascii_digit());
    Some(end).filter(|end| is_operator && !end.is_empty() && !end.contains('<'))
}

/// The character that continues an instruction at the end of a line: a backslash, unless the first
/// comments contain the directive `escape`.
fn escape_character(text: &str) -> char {
    let directives = text.lines().map_while(|line| line.trim().strip_prefix('#'));
    let escape = directives.filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        let is_escape = name.trim().eq_ignore_ascii_case("escape");
        value.trim().chars().next().filter(|_| is_escape)
    });
    escape.last().unwrap_or('\\')
}

pub(super) fn unquoted(word: &str) -> &str {
    word.trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::instructions;

    #[test]
    fn instructions_continue_on_the_next_line_and_here_documents_are_not_instructions() {
        let text = "FROM \\\n  --platform=linux/amd64 \\\n  # of the base\n\n  a:1 \\\n  AS one\n\
                    COPY \\\n  --from=b:1 x\nRUN <<EOF cat > f && <<-'E' sh\nFROM no:1\nEOF\n\
                    FROM no:2\n\tE\nCOPY <<A 3<<\"B\" /\nFROM no:3\nA\nFROM no:4\nB\nFROM c:1\n\
                    RUN echo '<<EOF' <<X\nFROM d:1\nRUN x \\\nFROM e:1\n";
        let found: Vec<String> = instructions(text)
            .iter()
            .map(|words| words.join(" "))
            .collect();
        assert_eq!(
            found,
            [
                "FROM --platform=linux/amd64 a:1 AS one",
                "COPY --from=b:1 x",
                "RUN <<EOF cat > f && <<-'E' sh",
                "COPY <<A 3<<\"B\" /",
                "FROM c:1",
                "RUN echo '<<EOF' <<X",
                "FROM d:1",
                "RUN x FROM e:1",
            ]
        );
        let text = "# escape=`\nFROM `\n  a:1\nRUN dir c:\\\n";
        let words = [
            vec!["# escape=`"],
            vec!["FROM", "a:1"],
            vec!["RUN", "dir", "c:\\"],
        ];
        assert_eq!(instructions(text), words);
    }
}
