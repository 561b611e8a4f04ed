//! Finds the images of Dockerfiles.

use crate::walk::{ImageCandidate, ImageClaim};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::path::Path;

/// A word of a Dockerfile that is an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageWord {
    /// The bytes of the word, without quotes.
    pub(crate) span: Range<usize>,
    /// The bytes to change: the word or, if the word is only an argument, the default of the
    /// argument.
    pub(crate) origin: Range<usize>,
    /// The word with the defaults of arguments filled in.
    pub(crate) name: String,
}

/// The images of a Dockerfile: of `# syntax=`, `FROM`, `COPY --from=` and `RUN --mount=…,from=`.
/// Arguments are replaced by their defaults; stages and `scratch` are not images. An Earthfile also
/// has `WITH DOCKER --pull`, and its targets (`+build`) are not images.
pub(crate) fn images(text: &str) -> Vec<ImageWord> {
    let mut arguments = BTreeMap::new();
    let mut stages = BTreeSet::new();
    let mut found = Vec::new();
    for words in instructions(text.trim_start_matches('\u{feff}')) {
        let add = |word: &str| {
            let word = unquoted(word);
            let name = filled(word, &arguments);
            // a number names a stage by its index
            let own = ["scratch", "DOCKERFILE"].contains(&&*name)
                || name.contains('+')
                || name.parse::<usize>().is_ok()
                || stages.contains(&name.to_lowercase());
            let span = span(text, word);
            let origin = argument(word).and_then(|name| arguments.get(name));
            let origin = origin.map_or_else(|| span.clone(), |(_, origin)| origin.clone());
            found.extend((!own && !word.is_empty()).then_some(ImageWord { span, origin, name }));
        };
        let is_trigger = |word: &&str| word.eq_ignore_ascii_case("ONBUILD");
        let mut words = words.into_iter().skip_while(is_trigger);
        let Some(first) = words.next() else {
            continue;
        };
        if let Some((name, value)) = directive(first) {
            let frontend = value.split_whitespace().next();
            frontend
                .filter(|_| name == "syntax")
                .into_iter()
                .for_each(add);
            continue;
        }
        match first.to_ascii_uppercase().as_str() {
            "ARG" => {
                for (name, value) in words.filter_map(|word| word.split_once('=')) {
                    let value = unquoted(value);
                    let default = (filled(value, &arguments), span(text, value));
                    arguments.insert(name, default);
                }
            }
            "FROM" => {
                let mut plain = words.filter(|word| !word.starts_with("--"));
                plain.next().into_iter().for_each(add);
                let name = plain
                    .next()
                    .filter(|word| word.eq_ignore_ascii_case("as"))
                    .and(plain.next());
                // later instructions may write the name of the stage in another case
                stages.extend(name.map(str::to_lowercase));
            }
            "COPY" | "ADD" | "RUN" => {
                // flags precede the arguments; `--from=` after the first argument is not a flag
                words
                    .take_while(|word| word.starts_with("--"))
                    .filter_map(source_image)
                    .for_each(add);
            }
            "WITH" => pulled_images(words.collect()).into_iter().for_each(add),
            _ => {}
        }
    }
    found
}

/// The image in a flag `--from=IMAGE` or `--mount=type=bind,from=IMAGE`.
fn source_image(flag: &str) -> Option<&str> {
    if let Some(image) = flag.strip_prefix("--from=") {
        return Some(image);
    }
    let (_, options) = flag.split_once('=')?;
    options
        .split(',')
        .find_map(|option| option.strip_prefix("from="))
}

/// The images in the flags `--pull IMAGE` and `--pull=IMAGE` of `WITH DOCKER`.
fn pulled_images(words: Vec<&str>) -> Vec<&str> {
    let after = words.iter().zip(words.iter().skip(1));
    let after = after.filter(|(flag, _)| **flag == "--pull");
    let within = words.iter().filter_map(|word| word.strip_prefix("--pull="));
    after.map(|(_, image)| *image).chain(within).collect()
}

/// The parts of `text` that are Dockerfiles: the whole text, here-documents of a shell (`<<EOF`),
/// or texts between triple quotes, as in a Tiltfile.
pub(super) fn dockerfiles(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open = None;
    // the offset at which a Dockerfile can begin; `None` after a line that cannot precede one
    let mut start = Some(0);
    // the delimiter of the last here-document; `None` before the first one
    let mut end = None;
    for line in text.split_inclusive('\n') {
        let at = span(text, line);
        let body = line.trim_start_matches('\u{feff}').trim();
        if let Some(from) = open {
            let is_end = |end: &str| body == end || (end == QUOTES && body.starts_with(end));
            if end.is_some_and(is_end) {
                found.push(from..at.start);
                open = None;
            }
            continue;
        }
        if let Some(from) = start.filter(|_| begins_dockerfile(body)) {
            (open, start) = (Some(from), None);
        } else if let Some(word) = delimiter(body) {
            (start, end) = (Some(at.end), Some(word));
        } else if !body.is_empty() && !body.starts_with('#') {
            start = None;
        }
    }
    found.extend(open.map(|from| from..text.len()));
    found
}

/// Whether a line can be the first instruction of a Dockerfile, and is not a sentence or SQL.
fn begins_dockerfile(line: &str) -> bool {
    let words: Vec<&str> = line
        .split_whitespace()
        .filter(|word| !word.starts_with("--"))
        .collect();
    match words.as_slice() {
        ["FROM", _] | ["ARG", _, ..] => true,
        // an Earthfile
        ["VERSION", version] => version.starts_with(|c: char| c.is_ascii_digit()),
        ["FROM", _, word, _] => word.eq_ignore_ascii_case("as"),
        _ => false,
    }
}

/// The quotes around a text of several lines in Starlark.
const QUOTES: &str = "\"\"\"";

/// The word that ends a here-document: `EOF` in `cat > Dockerfile <<'EOF'`; or the quotes that end
/// the text that begins after `line`.
fn delimiter(line: &str) -> Option<&str> {
    let Some((_, word)) = line.split_once("<<") else {
        return line.ends_with(QUOTES).then_some(QUOTES);
    };
    let word = word.trim_start_matches('-').trim_start();
    let word = word.trim_start_matches(['"', '\'', '\\']);
    let len = word
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(word.len());
    Some(&word[..len]).filter(|word| !word.is_empty())
}

/// The name of the argument, if `word` is `$NAME` or `${NAME}`.
fn argument(word: &str) -> Option<&str> {
    let name = word.strip_prefix('$')?;
    Some(
        name.strip_prefix('{')
            .and_then(|name| name.strip_suffix('}'))
            .unwrap_or(name),
    )
}

/// The bytes of `part`, which must be a slice of `text`.
fn span(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

/// The maximum length of a word with the defaults of its arguments. Without it, a few kilobytes of
/// arguments could become gigabytes.
const MAX_FILLED: usize = 1 << 10;

/// Replaces `$NAME`, `${NAME}` and `${NAME:-default}` in `word`, if a value is known.
fn filled(word: &str, arguments: &BTreeMap<&str, (String, Range<usize>)>) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some((head, tail)) = rest.split_once('$') {
        out.push_str(head);
        let (name, default, after) =
            match tail.strip_prefix('{').and_then(|tail| tail.split_once('}')) {
                Some((inside, after)) => {
                    let (name, default) = inside
                        .split_once(":-")
                        .map_or((inside, None), |(n, d)| (n, Some(d)));
                    (name, default, after)
                }
                None => {
                    let end = tail
                        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                        .unwrap_or(tail.len());
                    (&tail[..end], None, &tail[end..])
                }
            };
        match arguments
            .get(name)
            .map(|(value, _)| value.as_str())
            .or(default)
        {
            Some(value) if out.len() + value.len() <= MAX_FILLED => out.push_str(value),
            _ => out.push_str(&format!("${{{name}}}")),
        }
        rest = after;
    }
    out + rest
}

// Splits a Dockerfile into its instructions (docs.docker.com/reference/dockerfile).

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

/// Whether `name` is the name of a Dockerfile, or of an Earthfile or a Kubefile (Sealos), which
/// have the same instructions.
pub(crate) fn is_dockerfile(name: &Path) -> bool {
    let name = name
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
        .to_ascii_lowercase();
    ["dockerfile", "containerfile", "earthfile", "kubefile"]
        .iter()
        .any(|word| {
            name == *word
                || name.starts_with(&format!("{word}."))
                || name.ends_with(&format!(".{word}"))
        })
}

/// The images of a Dockerfile, at the words that name them.
pub(crate) fn candidates(text: &str) -> Vec<ImageCandidate> {
    let candidates = |word: &ImageWord| {
        ImageCandidate::all(word.span.start, ImageClaim::of_container(&word.name))
    };
    images(text).iter().flat_map(candidates).collect()
}

#[cfg(test)]
mod tests {
    use super::{dockerfiles, images, instructions};

    #[test]
    fn images_are_found_in_directives_and_instructions_but_stages_are_not_images() {
        let text = "\u{feff}# syntax=docker/dockerfile:1\nARG A=nginx B=\"x:${C}\"\nFROM --platform=linux/amd64 $A AS one\n\
            FROM one\nFROM 'a/b:1' as Two\nCOPY --chown=1 --from=two /x /y\nCOPY --from=0 x y\n\
            RUN --mount=type=bind,from=c:2,source=/x true\nFROM scratch\nFROM ${B}\nFROM a:${A}\nfrom z\n\
            ONBUILD copy --from=o:1 x y\n";
        let found: Vec<_> = images(text)
            .into_iter()
            .map(|image| {
                (
                    text[image.span].to_owned(),
                    text[image.origin].to_owned(),
                    image.name,
                )
            })
            .collect();
        let found: Vec<_> = found
            .iter()
            .map(|(span, origin, name)| (span.as_str(), origin.as_str(), name.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (
                    "docker/dockerfile:1",
                    "docker/dockerfile:1",
                    "docker/dockerfile:1"
                ),
                ("$A", "nginx", "nginx"),
                ("a/b:1", "a/b:1", "a/b:1"),
                ("c:2", "c:2", "c:2"),
                ("${B}", "x:${C}", "x:${C}"),
                ("a:${A}", "a:${A}", "a:nginx"),
                ("z", "z", "z"),
                ("o:1", "o:1", "o:1"),
            ]
        );
    }

    #[test]
    fn targets_of_an_earthfile_are_not_images() {
        let text = "VERSION --try 0.8\nFROM a:1\nx:\n  FROM +y\n  FROM ./d+z\n  COPY (+x/f --A=1) .\n  \
            WITH DOCKER --pull b:2 --pull=c:3 \\\n    --load d:4=+y\n    RUN true\n  END\ny:\n  \
            FROM DOCKERFILE -f e .\n  FROM f\n  SAVE IMAGE g:5\n";
        let found: Vec<String> = images(text).into_iter().map(|image| image.name).collect();
        assert_eq!(found, ["a:1", "b:2", "c:3", "f"]);
        assert_eq!(dockerfiles(text), std::slice::from_ref(&(0..text.len())));
        assert!(dockerfiles("VERSION of it\nFROM a\n").is_empty());
    }

    #[test]
    fn dockerfiles_are_whole_texts_or_here_documents() {
        let parts = |text: &str| -> Vec<String> {
            dockerfiles(text)
                .into_iter()
                .map(|part| text[part].to_owned())
                .collect()
        };
        for text in [
            "FROM a\nRUN x\n",
            "\u{feff}FROM a",
            "# x\n\nARG A=1\nFROM $A\n",
            "FROM a AS b",
        ] {
            assert_eq!(parts(text), [text]);
        }
        assert_eq!(
            parts(
                "x\ncat <<'EOF' > D\nFROM a\nRUN y\nEOF\nFROM b\ncat <<-X\nno\nFROM c\nX\ndocker build - <<E\nARG d\n"
            ),
            ["FROM a\nRUN y\n", "ARG d\n"]
        );
        assert_eq!(
            parts("x = \"\"\"\n# y\nFROM a as b\nRUN y\n\"\"\" + z\nFROM c\n"),
            ["# y\nFROM a as b\nRUN y\n"]
        );
        for text in [
            "From the beginning",
            "FROM a b",
            "x\nFROM a\n",
            "SELECT *\nFROM nginx\n",
            "",
        ] {
            assert_eq!(parts(text), [""; 0], "{text}");
        }
    }

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
