//! Files of allowed signers (ssh-keygen(1), ALLOWED SIGNERS).

use super::file_key::FileKey;
use super::openpgp_rules::SignatureTime;
use super::public_key::{PublicKey, is_kind};
use crate::document::{Diagnostic, read_text_input};
use crate::{Failure, Wildcards, split_optional};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::ops::Range;
use std::path::Path;

/// The content of a file of allowed signers. Files with equal lines are equal.
#[derive(Debug, Clone)]
pub struct AllowedSigners {
    file: String,
    lines: Vec<AllowedSigner>,
}

impl PartialEq for AllowedSigners {
    fn eq(&self, other: &AllowedSigners) -> bool {
        self.lines == other.lines
    }
}

impl Eq for AllowedSigners {}

/// One line of the file: a key, its principals, and the times and namespaces for which it may sign.
#[derive(Debug, Clone)]
struct AllowedSigner {
    /// For messages.
    line_number: usize,
    principals: String,
    key: PublicKey,
    options: SignerOptions,
}

impl PartialEq for AllowedSigner {
    fn eq(&self, other: &AllowedSigner) -> bool {
        (&self.principals, &self.key, &self.options)
            == (&other.principals, &other.key, &other.options)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SignerOptions {
    is_authority: bool,
    namespaces: Option<String>,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
}

impl AllowedSigners {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// Fails if the file cannot be read or parsed.
    pub fn load(path: &Path) -> Result<AllowedSigners, Failure> {
        let text = read_text_input(path).map_err(|error| {
            let path = path.display();
            Failure::usage(format!("cannot read the allowed signers {path}: {error}"))
        })?;
        Ok(AllowedSigners::parse(
            &path.display().to_string(),
            &text,
            &TimeZone::system(),
        )?)
    }

    /// Parses the text of a file of allowed signers. `file` is its name in messages, `zone` the
    /// time zone of times without `Z` or `UTC`.
    ///
    /// # Errors
    /// Fails if a line does not have the form that ssh-keygen(1) describes.
    pub fn parse(
        file: &str,
        text: &str,
        zone: &TimeZone,
    ) -> Result<AllowedSigners, Box<Diagnostic>> {
        // editors on Windows write a byte order mark
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = Vec::new();
        let mut offset = 0;
        for (index, line) in text.split('\n').enumerate() {
            match parse_line(index + 1, line.trim_end(), zone) {
                Ok(signer) => lines.extend(signer),
                Err(error) => {
                    let span = offset + error.span.start..offset + error.span.end;
                    let (message, help) = (error.message, Some(error.help));
                    return Err(Diagnostic::new(file, text, span, message, help));
                }
            }
            offset += line.len() + 1;
        }
        Ok(AllowedSigners {
            file: file.into(),
            lines,
        })
    }

    /// Returns the principals, without quotes, of the first line that allows `key` to sign in
    /// `namespace` at the time `now`.
    ///
    /// # Errors
    /// Fails if no line allows this. The error says for each line with the key why, or that no line
    /// has the key.
    pub fn principals(
        &self,
        key: &PublicKey,
        namespace: &str,
        now: Timestamp,
    ) -> Result<&str, Failure> {
        let mut why = Vec::new();
        for line in self.lines.iter().filter(|line| line.key == *key) {
            match line.options.refusal(namespace, now) {
                None => return Ok(&line.principals),
                Some(refusal) => why.push(format!("line {} {refusal}", line.line_number)),
            }
        }
        if why.is_empty() {
            why.push("no line has this key".into());
        }
        Err(Failure::usage(format!(
            "{key} signed it, but {} does not allow that: {}",
            self.file,
            why.join("; ")
        )))
    }

    /// Whether a line allows the key with the name `name` to sign in `namespace`, at whatever time.
    pub(super) fn has(&self, name: &str, namespace: &str) -> bool {
        self.lines.iter().any(|line| {
            line.options.refused_use(namespace).is_none() && line.key.to_string() == name
        })
    }

    /// The keys of all lines, regardless of the options of the lines.
    pub(super) fn keys(&self) -> impl Iterator<Item = &PublicKey> {
        self.lines.iter().map(|line| &line.key)
    }

    /// A warning for each line with `cert-authority`, an option that landfall does not support.
    pub fn warnings(&self) -> Vec<String> {
        let lines = self.lines.iter().filter(|line| line.options.is_authority);
        let warning = |line: &AllowedSigner| {
            format!(
                "{}:{}: cert-authority is not supported; this line is ignored",
                self.file, line.line_number
            )
        };
        lines.map(warning).collect()
    }
}

impl SignerOptions {
    /// Why the line does not allow a signature in `namespace` at the time `now`.
    fn refusal(&self, namespace: &str, now: Timestamp) -> Option<String> {
        self.refused_use(namespace)
            .or(match (self.after, self.before) {
                (Some(after), _) if now < after => Some(format!("allows it from {after} on")),
                (_, Some(before)) if now > before => Some(format!("allowed it until {before}")),
                _ => None,
            })
    }

    /// Why the line does not allow signatures in `namespace` at any time.
    fn refused_use(&self, namespace: &str) -> Option<String> {
        if self.is_authority {
            let why = "allows certificates of this key, which landfall does not support";
            return Some(why.into());
        }
        let allowed = self.namespaces.as_ref()?;
        (!matches_pattern_list(allowed, namespace))
            .then(|| format!("allows it for the namespaces \"{allowed}\" only"))
    }
}

/// An error in a line, with its position in the line.
struct LineError {
    span: Range<usize>,
    message: String,
    help: &'static str,
}

impl LineError {
    fn new(span: Range<usize>, message: &str) -> LineError {
        LineError {
            span,
            message: message.into(),
            help: LINE_FORM,
        }
    }
}

const LINE_FORM: &str = "a line is PRINCIPALS [OPTIONS] TYPE BASE64, as in: \
                    board@example.com namespaces=\"landfall-bundle-v1\" ssh-ed25519 AAAA…";

/// Parses a line; returns `None` for an empty line or a comment.
fn parse_line(
    line_number: usize,
    line: &str,
    zone: &TimeZone,
) -> Result<Option<AllowedSigner>, LineError> {
    let mut position = 0;
    // the range of the next word, or an empty range at the end; blanks in double quotes do not
    // separate words
    let mut next_word = || {
        let rest = &line[position..];
        let start = position + rest.len() - rest.trim_start_matches([' ', '\t']).len();
        position = start + find_unquoted(&line[start..], |c| matches!(c, ' ' | '\t'));
        start..position
    };
    let principals = next_word();
    if principals.is_empty() || line[principals.clone()].starts_with('#') {
        return Ok(None);
    }
    let mut options = SignerOptions::default();
    let mut kind = next_word();
    // a line of authorized_keys has the same form, except that it lacks the principals
    if is_kind(&line[principals.clone()])
        && PublicKey::from_words(&line[principals.clone()], &line[kind.clone()]).is_some()
    {
        return Err(LineError::new(
            principals,
            "the principal is missing: write the name of the signer before the key",
        ));
    }
    if !kind.is_empty() && !is_kind(&line[kind.clone()]) {
        options.parse(line, kind, zone)?;
        kind = next_word();
    }
    if kind.is_empty() || !is_kind(&line[kind.clone()]) {
        return Err(LineError::new(kind, "expected a key"));
    }
    let text = next_word();
    let key = PublicKey::from_words(&line[kind.clone()], &line[text.clone()]).ok_or_else(|| {
        LineError::new(
            kind.start..text.end,
            "this is not an OpenSSH key, or not a complete one",
        )
    })?;
    if let (Some(after), Some(before)) = (options.after, options.before)
        && before <= after
    {
        return Err(LineError::new(
            0..line.len(),
            "valid-before is not later than valid-after",
        ));
    }
    Ok(Some(AllowedSigner {
        line_number,
        principals: unquoted(&line[principals]),
        key,
        options,
    }))
}

impl SignerOptions {
    /// Parses the options in `span` of `line`, separated by commas.
    fn parse(&mut self, line: &str, span: Range<usize>, zone: &TimeZone) -> Result<(), LineError> {
        let mut start = span.start;
        while start < span.end {
            let end = start + find_unquoted(&line[start..span.end], |c| c == ',');
            let option = &line[start..end];
            let error = |message: &str, help| LineError {
                span: start..end,
                message: message.into(),
                help,
            };
            let (name, value) = split_optional(option, '=');
            let value = value.map(unquoted);
            let time = |value: &str| {
                let help = "write a day or a time as 20270131, 202701311200 or 20270131120000; \
                            with Z at the end for UTC";
                parse_time(value, zone).ok_or_else(|| error("this is not a time", help))
            };
            let is_repeated = match (name.to_ascii_lowercase().as_str(), value) {
                ("cert-authority", None) => std::mem::replace(&mut self.is_authority, true),
                ("namespaces", Some(value)) => self.namespaces.replace(value).is_some(),
                ("valid-after", Some(value)) => self.after.replace(time(&value)?).is_some(),
                ("valid-before", Some(value)) => self.before.replace(time(&value)?).is_some(),
                _ => {
                    let help = "the options are namespaces=\"…\", valid-after=\"…\", \
                                valid-before=\"…\" and cert-authority";
                    return Err(error("this is neither a key nor a known option", help));
                }
            };
            if is_repeated {
                return Err(error("the option is repeated", "remove one of them"));
            }
            start = end + 1;
        }
        Ok(())
    }
}

/// The position of the first character outside double quotes for which `ends` is true, or the
/// length of the text.
fn find_unquoted(text: &str, ends: impl Fn(char) -> bool) -> usize {
    let mut quoted = false;
    let mut escaped = false;
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
    let inner = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    match inner {
        Some(inner) => inner.replace("\\\"", "\""),
        None => text.into(),
    }
}

/// Parses `YYYYMMDD`, `YYYYMMDDHHMM` or `YYYYMMDDHHMMSS`, in UTC if it ends in `Z` or `UTC`.
fn parse_time(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let upper = text.to_ascii_uppercase();
    let utc = upper
        .strip_suffix('Z')
        .or_else(|| upper.strip_suffix("UTC"));
    let (digits, zone) = match utc {
        Some(digits) => (digits, TimeZone::UTC),
        None => (upper.as_str(), zone.clone()),
    };
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
    Some(time.ok()?.to_zoned(zone).ok()?.timestamp())
}

// Lists of patterns, as in options of allowed signers.

/// Whether a pattern of the list matches `text`, and no pattern with a leading `!` does
/// (`ssh_config(5)`, PATTERNS).
pub(super) fn matches_pattern_list(list: &str, text: &str) -> bool {
    let matches = |pattern: &str| Wildcards::SHELL.matches(pattern, text);
    let (negated, plain): (Vec<&str>, Vec<&str>) = list
        .split(',')
        .partition(|pattern| pattern.starts_with('!'));
    plain.into_iter().any(matches) && !negated.into_iter().any(|pattern| matches(&pattern[1..]))
}

/// The namespace of OpenSSH signatures of git (git-config(1), `gpg.format`).
const NAMESPACE: &str = "git";

/// The keys, all from one file, that may sign commits and tags.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
pub struct GitSigners(FileKey);

impl GitSigners {
    /// Parses a file: OpenPGP keys, armored or binary; OpenSSH keys, one a line; or allowed signers
    /// (ssh-keygen(1)), whose times without `Z` are UTC. `file` is its name in messages.
    ///
    /// # Errors
    /// Fails if the file is none of these, or contains a private key.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<GitSigners, Failure> {
        let keys = FileKey::parse(file, bytes)?;
        if keys.may_check(b"untrusted comment:") {
            return Err(Failure::usage(
                "git does not sign with minisign; name a key of OpenPGP or OpenSSH",
            ));
        }
        Ok(GitSigners(keys))
    }

    /// Whether `name` is the name of one of these keys, as [`GitSigners::verify`] returns it.
    pub fn has(&self, name: &str) -> bool {
        self.0.has_in(NAMESPACE, name)
    }

    /// Returns the name of the key that made the armored `signature` of `payload`. `made` is the
    /// time in the payload: an allowed signer must be valid at that time, an OpenPGP key at
    /// `time`.
    ///
    /// # Errors
    /// Fails if none of the keys made the signature, or the key may not sign at that time.
    pub fn verify(
        &self,
        signature: &[u8],
        payload: &[u8],
        made: Timestamp,
        time: SignatureTime,
    ) -> Result<String, Failure> {
        self.0
            .verify_in(NAMESPACE, signature, time, made, || Ok(payload))
    }

    /// Whether `signature` has the format of the signatures that these keys make.
    pub fn may_check(&self, signature: &[u8]) -> bool {
        self.0.may_check(signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = concat!(
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
        " release"
    );

    #[test]
    fn the_content_of_the_file_determines_the_kind_of_keys() {
        let plain = GitSigners::parse("k", format!("# us\n{KEY}\n").as_bytes()).unwrap();
        let marked = GitSigners::parse("k", format!("\u{feff}{KEY}\n").as_bytes()).unwrap();
        assert_eq!(marked, plain);
        let allowed = format!("a@example.com namespaces=\"git\" {KEY}\n");
        let allowed = GitSigners::parse("k", allowed.as_bytes()).unwrap();
        assert_ne!(allowed, plain);
        assert!(allowed.has(&plain.to_string()) && !plain.has("ssh-ed25519 SHA256:"));
        assert_eq!(allowed.to_string(), plain.to_string());
        let files = format!("a@example.com namespaces=\"file\" {KEY}\n");
        let files = GitSigners::parse("k", files.as_bytes()).unwrap();
        assert!(!files.has(&plain.to_string()));
        let mixed = format!("a@example.com {KEY}\n{KEY}\n");
        let error = GitSigners::parse("k", mixed.as_bytes()).unwrap_err();
        assert!(
            error.to_string().starts_with("line 2: the principal"),
            "{error}"
        );
        let minisign =
            "untrusted comment: x\nRWQAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYn\n";
        let error = GitSigners::parse("k", minisign.as_bytes()).unwrap_err();
        assert!(error.message.starts_with("git does not sign with minisign"));
        assert!(GitSigners::parse("k", b"text").is_err());
    }
}
