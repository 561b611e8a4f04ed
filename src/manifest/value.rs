//! Single values of a manifest: references, URLs, platforms, digests, modes.

use super::Checksum;
use super::items::Exclude;
use super::source_text::SourceSpan;
use crate::document::Diagnostic;
use crate::model::{Digest, DigestError, ImageRef, Platform, ReferenceError};
use url::Url;

type Checked<T> = Result<T, Box<Diagnostic>>;

/// Name and pin of a reference that stands alone.
pub(super) fn reference_of(text: &str, span: &SourceSpan) -> Checked<(ImageRef, Option<Digest>)> {
    pinned(text, None, span, span)
}

/// Name and pin of a reference with the `digest` key beside it.
pub(super) fn pinned(
    text: &str,
    digest: Option<Digest>,
    at: &SourceSpan,
    digest_at: &SourceSpan,
) -> Checked<(ImageRef, Option<Digest>)> {
    let reference: ImageRef = text.parse().map_err(|error: ReferenceError| {
        let help = match text.contains("://") {
            true => "write an image without a scheme, as in registry.k8s.io/pause:3.10.1".into(),
            false => "write registry/repository:tag, as in registry.k8s.io/pause:3.10.1".into(),
        };
        at.fault(error.to_string(), Some(help))
    })?;
    if let (Some(written), Some(digest)) = (&reference.digest, &digest)
        && written != digest
    {
        let message = format!("this digest is not the one in `ref` ({written})");
        return Err(digest_at.fault(message, Some("keep the right one of the two".into())));
    }
    match (reference.tag.is_some(), reference.digest.clone().or(digest)) {
        (true, pin) => Ok((ImageRef { digest: None, ..reference }, pin)),
        (false, Some(digest)) => Ok((reference.at_digest(&digest), None)),
        (false, None) => {
            let help = format!("add the tag or digest, as in {text}:v1.2.3");
            Err(at.fault(format!("`{text}` names no version"), Some(help)))
        }
    }
}

pub(super) fn exclude_of(text: &str, span: &SourceSpan) -> Checked<Exclude> {
    if text.contains("://") {
        return Ok(Exclude::Url(url_of(text, span)?));
    }
    text.parse().map(Exclude::Image).map_err(|error: ReferenceError| {
        let help = "write a repository, as in quay.io/example/app, a full reference, or a file's URL";
        span.fault(error.to_string(), Some(help.into()))
    })
}

/// The platforms, sorted. `span` gives the place of the nth.
pub(super) fn platforms(texts: &[String], span: impl Fn(usize) -> SourceSpan) -> Checked<Vec<Platform>> {
    let parse = |(index, text): (usize, &String)| {
        text.parse::<Platform>().map_err(|error| span(index).fault(error.to_string(), None))
    };
    let mut platforms = texts.iter().enumerate().map(parse).collect::<Result<Vec<_>, _>>()?;
    platforms.sort();
    platforms.dedup();
    Ok(platforms)
}

/// `text` as a URL in its normal form.
pub(super) fn url_of(text: &str, span: &SourceSpan) -> Checked<String> {
    let refuse = |message: String, help: &str| Err(span.fault(message, Some(help.into())));
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return refuse("there is white space in this URL".into(), "write a blank as %20");
    }
    let url = match Url::parse(text) {
        Ok(url) if text.contains("://") => url,
        Ok(_) => return refuse("this is no URL".into(), "begin it with https://"),
        Err(error) => return refuse(format!("this is no URL: {error}"), "write it as https://host/path"),
    };
    if !matches!(url.scheme(), "http" | "https") {
        return refuse(
            format!("files come over http and https, not over {}", url.scheme()),
            "list images under `images`",
        );
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refuse(
            "a URL must not hold a user name or password: manifest and lock are for everybody".into(),
            "take it out of the URL, and name the source of credentials in the site file (`upstreams`)",
        );
    }
    if url.fragment().is_some() {
        return refuse("a URL of a file has no `#` part".into(), "take it out");
    }
    if url.path().ends_with('/') {
        return refuse("this URL names a folder".into(), "name each file that is wanted");
    }
    Ok(url.into())
}

pub(super) fn digest_of(text: &str, span: &SourceSpan) -> Checked<Digest> {
    text.parse().map_err(|error: DigestError| span.fault(error.to_string(), None))
}

pub(super) fn checksum_of(text: &str, span: &SourceSpan) -> Checked<Checksum> {
    if text.contains("://") {
        return url_of(text, span).map(Checksum::Sidecar);
    }
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match text.len() {
        64 if is_hex => Err(span.fault("the algorithm is missing", Some(format!("write sha256:{text}")))),
        128 if is_hex => Err(span.fault("the algorithm is missing", Some(format!("write sha512:{text}")))),
        _ if text.contains(':') => digest_of(text, span).map(Checksum::Digest),
        _ => {
            let help = "write sha256:<hex>, sha512:<hex>, or the URL of a checksum file, as in ${url}.sha256";
            Err(span.fault(format!("`{text}` is no checksum"), Some(help.into())))
        }
    }
}

/// The mode as four octal digits.
pub(super) fn mode_of(text: &str, span: &SourceSpan) -> Checked<String> {
    let is_octal = (3..=4).contains(&text.len()) && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    if !is_octal {
        let help = Some("write octal permission bits, as in \"0755\"".into());
        return Err(span.fault(format!("`{text}` is no mode"), help));
    }
    Ok(format!("{text:0>4}"))
}
