//! Splits a Dockerfile into its instructions (docs.docker.com/reference/dockerfile).

use std::collections::{HashMap, VecDeque};

/// The names of parser directives.
const DIRECTIVES: [&str; 3] = ["syntax", "escape", "check"];

/// The words of each instruction, and each parser directive as one word. An instruction continues
/// after a backslash at the end of a line; the lines of a here-document belong to no instruction.
pub(super) fn instructions(text: &str) -> Vec<Vec<&str>> {
    let directives = directives(text);
    let escape = escape_character(&directives);
    let lines: Vec<&str> = text.lines().collect();
    // `<<EOF` without a later line `EOF` is not a here-document: the operator is then in quotes
    let last: HashMap<&str, usize> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (line.trim_start_matches('\t'), at))
        .collect();
    let mut found: Vec<Vec<&str>> = directives.into_iter().map(|line| vec![line]).collect();
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
        // comments within an instruction are removed from it
        if content.starts_with('#') {
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

/// The parser directives of a Dockerfile. After any other comment, an empty line or an instruction,
/// a line of the same form is a comment. A shebang may precede them.
fn directives(text: &str) -> Vec<&str> {
    let lines = text.lines().skip(usize::from(text.starts_with("#!")));
    lines
        .map(str::trim)
        .take_while(|line| directive(line).is_some())
        .collect()
}

/// The name and value of the parser directive `line`.
pub(super) fn directive(line: &str) -> Option<(&'static str, &str)> {
    let (name, value) = line.strip_prefix('#')?.split_once('=')?;
    let name = DIRECTIVES
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(name.trim()))?;
    Some((name, value.trim())).filter(|(_, value)| !value.is_empty())
}

/// The character that continues an instruction at the end of a line: a backslash, unless one of
/// `directives` sets another one.
fn escape_character(directives: &[&str]) -> char {
    directives
        .iter()
        .filter_map(|line| directive(line))
        .find(|(name, _)| *name == "escape")
        .and_then(|(_, value)| value.chars().next())
        .unwrap_or('\\')
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

    #[test]
    fn directives_precede_all_other_lines() {
        for text in [
            "# syntax=a:1\n# Escape = `\nFROM `\n  b:1\n",
            "#!/usr/bin/env x\n#check=skip=all\n#escape=`\nFROM b`\n:1\n",
        ] {
            let found = instructions(text);
            assert_eq!(found.len(), 3, "{text}");
        }
        for before in ["# a comment\n", "\n", "# x=y\n", "ARG A\n"] {
            let text = format!("{before}# syntax=a:1\n# escape=`\nFROM \\\n  b:1\n");
            let found = instructions(&text);
            assert_eq!(found.last().unwrap(), &["FROM", "b:1"], "{text}");
            assert!(!found.concat().contains(&"# syntax=a:1"), "{text}");
        }
    }
}
