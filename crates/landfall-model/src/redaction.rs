//! Masks credentials and signatures in URLs, for messages and records.

/// A query parameter is secret if its name contains one of these words.
const SECRET_WORDS: [&str; 6] = ["sig", "token", "secret", "password", "credential", "key"];

/// Redacts the user name and password before a host, for messages.
pub fn redact_userinfo(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, host)) => format!("***@{host}"),
        None => text.to_owned(),
    }
}

/// Finds the user names and passwords of the URLs in a text. The text may be one long run of
/// `://`, so each run of characters that a URL may have is searched only once.
pub(crate) struct UserinfoSearch<'t> {
    text: &'t str,
    /// The end of the run that was searched last.
    run_end: usize,
    /// The last `@` in that run.
    last_at: Option<usize>,
}

impl<'t> UserinfoSearch<'t> {
    /// Nothing of `text` has been searched yet.
    pub(crate) fn new(text: &'t str) -> UserinfoSearch<'t> {
        UserinfoSearch {
            text,
            run_end: 0,
            last_at: None,
        }
    }

    /// The length in bytes of the user name and password at `start`, the position after `://`.
    /// `None` if there are none. Each call needs a `start` after that of the last one.
    ///
    /// A single quote may quote the URL, but it does not end them, because RFC 3986 (3.2.1) allows
    /// it in both. `?`, `#` and `/` do not end them either, because a password may contain them
    /// unencoded. A `/` may belong to a password only after a `:` that no port follows: otherwise
    /// the `@` after the `/` may be part of a path.
    pub(crate) fn length(&mut self, start: usize) -> Option<usize> {
        if start >= self.run_end {
            let rest = &self.text[start..];
            let run = &rest[..rest.find(cannot_be_in_url).unwrap_or(rest.len())];
            self.run_end = start + run.len();
            self.last_at = run.rfind('@').map(|at| start + at);
        }
        self.last_at.filter(|at| *at >= start)?;
        userinfo_length_in_url(&self.text[start..self.run_end])
    }
}

/// Like [`UserinfoSearch::length`], for a text that is a URL without its scheme.
fn userinfo_length_in_url(url: &str) -> Option<usize> {
    let authority = &url[..url.find('/').unwrap_or(url.len())];
    let has_port = authority.rsplit_once(':').is_none_or(|(_, port)| {
        // a colon before `]` belongs to an IPv6 address, and a colon directly before `/` to a
        // password
        port.contains(']') || !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    let end = if has_port { authority.len() } else { url.len() };
    authority.rfind('@').or_else(|| url[..end].rfind('@'))
}

fn cannot_be_in_url(c: char) -> bool {
    c.is_whitespace() || "\"`<>".contains(c)
}

/// Masks the credentials and the secret query values in all URLs of `text`. Other query values are
/// kept, because they may be part of the name of a file.
pub fn redact_urls(text: &str) -> String {
    redact(text, |_, _| false)
}

/// Like [`redact_urls`], for documents: keeps the user name of an SSH URL without a password, such
/// as `git`.
pub fn redact_document(text: &str) -> String {
    redact(text, |before, userinfo| {
        before.ends_with("ssh") && !userinfo.contains(':')
    })
}

/// Masks the credentials and the secret query values of the URLs in `text`. `is_public` gets the
/// text before `://`, and the user name and password; if it returns true, user name and password
/// are kept.
fn redact(text: &str, is_public: impl Fn(&str, &str) -> bool) -> String {
    let mut redacted = String::new();
    let mut search = UserinfoSearch::new(text);
    let mut done = 0;
    while let Some(at) = text[done..].find("://") {
        redacted += &text[done..done + at];
        let start = done + at + "://".len();
        let host = search
            .length(start)
            .filter(|host| !is_public(&redacted, &text[start..start + *host]))
            .unwrap_or(0);
        redacted += "://";
        if host > 0 {
            redacted += "***";
        }
        let after = &text[start + host..];
        // another `://` may follow without a blank
        let next = after.find("://").unwrap_or(after.len());
        let end = after[..next].find(cannot_be_in_url).unwrap_or(next);
        let url = &after[..end];
        let (address, query) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
        redacted += address;
        let values: Vec<String> = query.split('&').map(redact_value).collect();
        redacted += &values.join("&");
        done = start + host + end;
    }
    redacted += &text[done..];
    redacted
}

/// Like [`redact_urls`], for one reference: also masks the user name and password of a reference
/// without a scheme, as in `user:password@host/repository`.
pub fn redact_reference(reference: &str) -> String {
    if reference.contains("://") {
        return redact_urls(reference);
    }
    // an `@` may also precede a digest or a placeholder for one, after which there is no path
    let name = match reference.rsplit_once('@') {
        Some((name, pin)) if is_digest_or_placeholder(pin) => name,
        _ => reference,
    };
    match userinfo_length_in_url(name) {
        // neither `git@host:path` nor `name@version` has a password
        Some(end)
            if !reference.starts_with("git@")
                && (name[..end].contains(':') || reference.contains('/')) =>
        {
            format!("***{}", &reference[end..])
        }
        _ => reference.to_owned(),
    }
}

fn is_digest_or_placeholder(text: &str) -> bool {
    let is_digest = ["sha256:", "sha512:"]
        .iter()
        .any(|algorithm| text.starts_with(algorithm));
    !text.contains('/') && (is_digest || text.contains(['$', '{', '*']))
}

/// Returns a query parameter. If its name contains one of [`SECRET_WORDS`], its value is masked.
/// Otherwise, `;` and `#` in it begin another parameter.
fn redact_value(parameter: &str) -> String {
    let mut start = 0;
    loop {
        let rest = &parameter[start..];
        // not at the beginning, where `#` begins the fragment
        let mut separators = rest.char_indices().skip(1);
        let next = separators.find(|(_, c)| matches!(c, ';' | '#'));
        let piece = &rest[..next.map_or(rest.len(), |(at, _)| at)];
        let name = piece.split_once('=').map(|(name, _)| name);
        if let Some(name) = name.filter(|name| is_secret(name)) {
            let value = &rest[name.len() + 1..];
            // punctuation at the end belongs to the sentence
            let end = value
                .trim_end_matches([':', ',', ';', '.', ')', ']', '}', '\''])
                .len();
            return format!("{}{name}=***{}", &parameter[..start], &value[end..]);
        }
        match next {
            Some((at, _)) => start += at + 1,
            None => return parameter.to_owned(),
        }
    }
}

/// Whether a parameter with this name has a secret value.
fn is_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::growth::assert_linear;

    #[test]
    fn secrets_in_the_urls_of_a_text_are_masked() {
        for (text, shown) in [
            ("no URL: a@b?token=x", "no URL: a@b?token=x"),
            (
                "cannot read http://joe:pw@h.test:8080/l: no such file",
                "cannot read http://***@h.test:8080/l: no such file",
            ),
            (
                "(`git clone https://token@h/r@v1` and 'ssh://git@h/r')",
                "(`git clone https://***@h/r@v1` and 'ssh://***@h/r')",
            ),
            (
                "https://h/get?v=1&X-Amz-Signature=abc&X-Amz-Credential=k/1: not found",
                "https://h/get?v=1&X-Amz-Signature=***&X-Amz-Credential=***: not found",
            ),
            ("a://b:c@d,e://f:g@h", "a://***@d,e://***@h"),
            (
                "'http://joe:p'w@h.test/x' and 'http://h.test/?token=a'b', 'http://h.test'",
                "'http://***@h.test/x' and 'http://h.test/?token=***', 'http://h.test'",
            ),
            (
                "http://h.test/x?a=1;token=s&b=2;c#access_token=t http://h.test/#token=s",
                "http://h.test/x?a=1;token=***&b=2;c#access_token=*** http://h.test/#token=***",
            ),
            (
                "http://joe:p?w#@h.test/x http://h.test/x?y=1#@z",
                "http://***@h.test/x http://h.test/x?y=1#@z",
            ),
            (
                "http://joe:pa/ss@proxy:3128/x https://h.test:443/x@y http://[::1]:5000/x@y",
                "http://***@proxy:3128/x https://h.test:443/x@y http://[::1]:5000/x@y",
            ),
            (
                "http://joe:a://b@h http://h:5000/x",
                "http://***@h http://h:5000/x",
            ),
            (
                "http://joe:pa/s@s@proxy http://h/x@y",
                "http://***@proxy http://h/x@y",
            ),
            ("://", "://"),
        ] {
            assert_eq!(redact_urls(text), shown);
        }
    }

    #[test]
    fn many_schemes_without_a_blank_take_linear_time() {
        for end in ["", "@h", "x@"] {
            assert_linear(20_000, |count| {
                drop(redact_urls(&format!("{}{end}", "://".repeat(count))));
            });
            assert_linear(20_000, |count| {
                drop(redact_document(&format!("{}{end}", "ssh://".repeat(count))));
            });
        }
    }

    #[test]
    fn user_names_and_passwords_of_references_are_masked() {
        for (reference, shown) in [
            ("joe:pw@h.test:5000/a/b:v1", "***@h.test:5000/a/b:v1"),
            ("docker://joe:pw@h.test/a", "docker://***@h.test/a"),
            ("h.test/a/b:v1@sha256:00", "h.test/a/b:v1@sha256:00"),
            ("joe:pw@h.test", "***@h.test"),
            ("nginx@sha256:00", "nginx@sha256:00"),
            ("nginx:1@sha256:00", "nginx:1@sha256:00"),
            ("nginx:1@$DIGEST", "nginx:1@$DIGEST"),
            ("git@h.test:a/b.git", "git@h.test:a/b.git"),
            ("nginx@v1", "nginx@v1"),
            ("joe:pw@shared.test", "***@shared.test"),
            // a password may contain slashes and blanks
            ("joe:p/w@h.test/a", "***@h.test/a"),
            ("joe:p w/@h.test/a", "***@h.test/a"),
            ("joe:p/w@h.test/a:v1@sha256:00", "***@h.test/a:v1@sha256:00"),
            ("quay.io/a/b@sha256:00", "quay.io/a/b@sha256:00"),
            ("h.test:5000/a@sha256:00", "h.test:5000/a@sha256:00"),
            ("h.test:5000/a:v1@sha256:00", "h.test:5000/a:v1@sha256:00"),
            ("h.test:5000/a@v1", "h.test:5000/a@v1"),
            ("$HOST:$PORT/a:v1@$DIGEST", "$HOST:$PORT/a:v1@$DIGEST"),
        ] {
            assert_eq!(redact_reference(reference), shown);
        }
    }

    #[test]
    fn a_document_keeps_its_text_except_secrets() {
        for (text, shown) in [
            (
                "a: https://joe:pw@h/x?v=1&token=t # ssh://git@h/r\nb: oci://tok@h\n",
                "a: https://***@h/x?v=1&token=*** # ssh://git@h/r\nb: oci://***@h\n",
            ),
            ("a: {b: ssh://joe:secret@h/r}", "a: {b: ssh://***@h/r}"),
            ("a: {b: https://h/x?sig=s}", "a: {b: https://h/x?sig=***}"),
            ("p: http://h, j@h.test", "p: http://h, j@h.test"),
        ] {
            assert_eq!(redact_document(text), shown);
        }
    }
}
