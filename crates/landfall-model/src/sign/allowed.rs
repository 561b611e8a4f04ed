//! Who may sign: a file of allowed signers (ssh-keygen(1), ALLOWED SIGNERS).

use super::SignatureError;
use super::key::{PublicKey, is_kind};
use crate::document::{Diagnostic, read_text_input};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::fmt;
use std::ops::Range;
use std::path::Path;

/// The content of a file of allowed signers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedSigners {
    file: String,
    lines: Vec<Line>,
}

/// One line: a key, its principals, and when and for what it may sign.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    number: usize,
    principals: String,
    key: PublicKey,
    options: Options,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Options {
    is_authority: bool,
    namespaces: Option<String>,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
}

/// Why a line does not allow a signature.
enum Not {
    Authority,
    Namespace(String),
    Yet(Timestamp),
    Since(Timestamp),
}

impl fmt::Display for Not {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Not::Authority => write!(
                f,
                "allows certificates of this key, which landfall does not support"
            ),
            Not::Namespace(allowed) => write!(f, "allows it for the namespaces \"{allowed}\" only"),
            Not::Yet(from) => write!(f, "allows it from {from} on"),
            Not::Since(until) => write!(f, "allowed it until {until}"),
        }
    }
}

impl AllowedSigners {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// When it cannot be read, or as [`AllowedSigners::parse`].
    pub fn load(path: &Path) -> Result<AllowedSigners, SignatureError> {
        let text = read_text_input(path).map_err(|source| SignatureError::AllowedSigners {
            path: path.into(),
            source,
        })?;
        Ok(AllowedSigners::parse(
            &path.display().to_string(),
            &text,
            &TimeZone::system(),
        )?)
    }

    /// Reads a file of allowed signers from text. `file` names it in messages; `zone` is the time
    /// zone of times without `Z`.
    ///
    /// # Errors
    /// When a line does not have the form that ssh-keygen(1) describes.
    pub fn parse(
        file: &str,
        text: &str,
        zone: &TimeZone,
    ) -> Result<AllowedSigners, Box<Diagnostic>> {
        let mut lines = Vec::new();
        let mut at = 0;
        for (index, line) in text.split('\n').enumerate() {
            let read = read_line(index + 1, line.trim_end(), zone).map_err(|fault| {
                let span = at + fault.span.start..at + fault.span.end;
                let (message, help) = (fault.message, Some(fault.help.into()));
                Box::new(Diagnostic {
                    file: file.into(),
                    text: text.into(),
                    span,
                    message,
                    help,
                })
            })?;
            lines.extend(read);
            at += line.len() + 1;
        }
        Ok(AllowedSigners {
            file: file.into(),
            lines,
        })
    }

    /// The principals, as the file writes them, for which `key` may sign in `namespace` at the time
    /// `now`.
    ///
    /// # Errors
    /// [`SignatureError::NotAllowed`] with the reason of each line that has the key.
    pub fn principals(
        &self,
        key: &PublicKey,
        namespace: &str,
        now: Timestamp,
    ) -> Result<&str, SignatureError> {
        let mut why = Vec::new();
        for line in self.lines.iter().filter(|line| line.key == *key) {
            match line.options.refusal(namespace, now) {
                None => return Ok(&line.principals),
                Some(not) => why.push(format!("line {} {not}", line.number)),
            }
        }
        if why.is_empty() {
            why.push("no line of it has this key".into());
        }
        Err(SignatureError::NotAllowed {
            key: key.clone(),
            file: self.file.clone(),
            why: why.join("; "),
        })
    }

    /// The options of the file that landfall ignores, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let lines = self.lines.iter().filter(|line| line.options.is_authority);
        let note = |line: &Line| {
            let (file, number) = (&self.file, line.number);
            format!("{file}:{number}: cert-authority is not supported; this line allows nobody")
        };
        lines.map(note).collect()
    }
}

impl Options {
    fn refusal(&self, namespace: &str, now: Timestamp) -> Option<Not> {
        if self.is_authority {
            return Some(Not::Authority);
        }
        if let Some(allowed) = self
            .namespaces
            .as_ref()
            .filter(|allowed| !in_list(allowed, namespace))
        {
            return Some(Not::Namespace(allowed.clone()));
        }
        match (self.after, self.before) {
            (Some(after), _) if now < after => Some(Not::Yet(after)),
            (_, Some(before)) if now > before => Some(Not::Since(before)),
            _ => None,
        }
    }
}

/// What is wrong, where in the line, and what to write.
struct Wrong {
    span: Range<usize>,
    message: String,
    help: &'static str,
}

const FORM: &str = "a line is PRINCIPALS [OPTIONS] TYPE BASE64, as in: \
                    board@example.com namespaces=\"landfall-bundle-v1\" ssh-ed25519 AAAA…";

fn read_line(number: usize, line: &str, zone: &TimeZone) -> Result<Option<Line>, Wrong> {
    let mut words = Words { line, at: 0 };
    let principals = words.next();
    if principals.is_empty() || line[principals.clone()].starts_with('#') {
        return Ok(None);
    }
    let wrong = |span: Range<usize>, message: &str| Wrong {
        span,
        message: message.into(),
        help: FORM,
    };
    let mut options = Options::default();
    let mut kind = words.next();
    if is_kind(&line[principals.clone()])
        && PublicKey::from_words(&line[principals.clone()], &line[kind.clone()]).is_some()
    {
        return Err(wrong(
            principals,
            "the principal is missing: write before the key who signs with it",
        ));
    }
    if !kind.is_empty() && !is_kind(&line[kind.clone()]) {
        options.read(line, kind, zone)?;
        kind = words.next();
    }
    if kind.is_empty() || !is_kind(&line[kind.clone()]) {
        return Err(wrong(kind, "a key should stand here"));
    }
    let text = words.next();
    let key = PublicKey::from_words(&line[kind.clone()], &line[text.clone()]).ok_or_else(|| {
        wrong(
            kind.start..text.end,
            "this is no key of OpenSSH's, or not all of one",
        )
    })?;
    if options
        .before
        .zip(options.after)
        .is_some_and(|(before, after)| before <= after)
    {
        return Err(wrong(0..line.len(), "it ends before it begins"));
    }
    Ok(Some(Line {
        number,
        principals: unquoted(&line[principals]),
        key,
        options,
    }))
}

impl Options {
    fn read(&mut self, line: &str, span: Range<usize>, zone: &TimeZone) -> Result<(), Wrong> {
        let mut start = span.start;
        while start < span.end {
            let end = start + end_of(&line[start..span.end], |c| c == ',');
            let option = &line[start..end];
            let wrong = |message: &str, help| Wrong {
                span: start..end,
                message: message.into(),
                help,
            };
            let (name, value) = option
                .split_once('=')
                .map_or((option, None), |(name, value)| {
                    (name, Some(unquoted(value)))
                });
            let time = |value: &str| {
                let help = "write a day or a time as 20270131, 202701311200 or 20270131120000; with Z at its end in UTC";
                moment(value, zone).ok_or_else(|| wrong("this is no time", help))
            };
            let twice = match (name.to_ascii_lowercase().as_str(), value) {
                ("cert-authority", None) => std::mem::replace(&mut self.is_authority, true),
                ("namespaces", Some(value)) => self.namespaces.replace(value).is_some(),
                ("valid-after", Some(value)) => self.after.replace(time(&value)?).is_some(),
                ("valid-before", Some(value)) => self.before.replace(time(&value)?).is_some(),
                _ => {
                    let help = "known are namespaces=\"…\", valid-after=\"…\", valid-before=\"…\" and cert-authority";
                    return Err(wrong("this is neither a key nor a known option", help));
                }
            };
            if twice {
                return Err(wrong("this stands here twice", "leave one of them away"));
            }
            start = end + 1;
        }
        Ok(())
    }
}

/// The words of a line. Blanks in double quotes do not separate words.
struct Words<'a> {
    line: &'a str,
    at: usize,
}

impl Words<'_> {
    /// The range of the next word; an empty range at the end.
    fn next(&mut self) -> Range<usize> {
        let rest = &self.line[self.at..];
        let start = self.at + rest.len() - rest.trim_start_matches([' ', '\t']).len();
        self.at = start + end_of(&self.line[start..], |c| matches!(c, ' ' | '\t'));
        start..self.at
    }
}

/// The position of the first character outside of double quotes for which `ends` is true.
fn end_of(text: &str, ends: impl Fn(char) -> bool) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        if !quoted && ends(c) {
            return at;
        }
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

fn unquoted(text: &str) -> String {
    let inside = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    inside.map_or_else(|| text.into(), |inside| inside.replace("\\\"", "\""))
}

/// `YYYYMMDD`, `YYYYMMDDHHMM` or `YYYYMMDDHHMMSS`, in UTC if it ends in `Z` or `UTC`.
fn moment(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let upper = text.to_ascii_uppercase();
    let utc = upper
        .strip_suffix('Z')
        .or_else(|| upper.strip_suffix("UTC"));
    let (digits, zone) = utc.map_or((upper.as_str(), zone.clone()), |digits| {
        (digits, TimeZone::UTC)
    });
    if !matches!(digits.len(), 8 | 12 | 14) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |range: Range<usize>| {
        digits
            .get(range)
            .map_or(Some(0), |part| part.parse::<i8>().ok())
    };
    let time = DateTime::new(
        digits[..4].parse().ok()?,
        part(4..6)?,
        part(6..8)?,
        part(8..10)?,
        part(10..12)?,
        part(12..14)?,
        0,
    );
    time.ok()?
        .to_zoned(zone)
        .ok()
        .map(|zoned| zoned.timestamp())
}

/// Whether a pattern of the list matches, and none that begins with `!` (`ssh_config(5)`,
/// PATTERNS).
fn in_list(list: &str, text: &str) -> bool {
    let fits = |pattern: &str| fits(pattern.as_bytes(), text.as_bytes());
    let (not, yes): (Vec<&str>, Vec<&str>) = list
        .split(',')
        .partition(|pattern| pattern.starts_with('!'));
    yes.into_iter().any(fits) && !not.into_iter().any(|pattern| fits(&pattern[1..]))
}

/// `*` stands for any characters, `?` for one.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut pattern_at, mut text_at, mut star) = (0, 0, None);
    while text_at < text.len() {
        match pattern.get(pattern_at) {
            Some(b'*') => {
                star = Some((pattern_at, text_at));
                pattern_at += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[text_at] => {
                (pattern_at, text_at) = (pattern_at + 1, text_at + 1);
            }
            _ => {
                // the last star matches one character more
                let Some((at, taken)) = star else {
                    return false;
                };
                star = Some((at, taken + 1));
                (pattern_at, text_at) = (at + 1, taken + 1);
            }
        }
    }
    pattern[pattern_at..].iter().all(|&byte| byte == b'*')
}
