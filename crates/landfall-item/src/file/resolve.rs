//! Resolves a file: finds its digest and size, and verifies checksum and signature.

use super::locked::{LockedFile, LockedSidecar};
use super::resolvable::{Checksum, FileRequest};
use super::signature_lookup::descriptor;
use crate::LocalPlace;
use crate::resolver::{ResolveError, Resolver};
use bytes::Bytes;
use futures_util::StreamExt;
use landfall_content::upstream::{expect_file, expect_whole_file, get_current_file, head_file};
use landfall_content::{BlobRead, LocalForm};
use landfall_http::{BodyFailure, ErrorKind, HttpError, HttpResponse};
use landfall_model::document::utf16_units;
use landfall_model::sign::{FileKey, SignatureTime};
use landfall_model::{Algorithm, Digest, Hasher, digest_of};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::io::Write;

/// Resolves `request`. If the SHA-256 of the file is known and the server reports the size, the
/// file is downloaded here only to verify a signature: `pull` verifies the digest.
pub(super) async fn resolve(
    resolver: &Resolver,
    request: &FileRequest,
) -> Result<LockedFile, ResolveError> {
    let mut file = requested_file(request, Digest::sha256(b""), 0);
    let expected = match &request.checksum {
        None => None,
        Some(Checksum::Digest(digest)) => Some(digest.clone()),
        Some(Checksum::Sidecar(url)) => {
            let (sidecar, bytes) = download_sidecar(resolver, url)
                .await
                .map_err(|error| ResolveError::from(error).about("its checksum file"))?;
            file.sidecars.push(sidecar);
            let text = text_of(&bytes);
            let found = find(&text, &request.url).or_else(|why| {
                // a signed checksum file must name the file
                let is_own = request.key.is_none() && is_next_to(&request.url, url);
                only_digest(&text).filter(|_| is_own).ok_or(why)
            });
            let digest =
                found.map_err(|why| ResolveError::from(format!("its checksum file {why}")))?;
            Some(digest)
        }
    };
    let mut signatures = Vec::new();
    for url in &request.signatures {
        let (sidecar, bytes) = download_sidecar(resolver, url)
            .await
            .map_err(|error| ResolveError::from(error).about("its signature"))?;
        file.sidecars.push(sidecar);
        signatures.push((url, bytes));
    }
    // the lock names files by SHA-256, so a file with a SHA-512 checksum must be downloaded and
    // hashed
    let known = expected
        .as_ref()
        .filter(|digest| digest.algorithm() == Algorithm::Sha256);
    let size = match known {
        Some(_) => size_of(resolver, &request.url).await?,
        None => None,
    };
    (file.digest, file.size) = match (known, size) {
        (Some(digest), Some(size)) => (digest.clone(), size),
        _ => download(resolver, &request.url, expected.as_ref()).await?,
    };
    if let Some(key) = &request.key {
        file.signed_by = Some(verify_signatures(resolver, &file, key, &signatures).await?);
    }
    Ok(file)
}

/// Resolves `request` for a file next to the manifest, which is read into the store.
pub(super) async fn resolve_local(
    resolver: &Resolver,
    request: &FileRequest,
    place: &LocalPlace,
) -> Result<LockedFile, ResolveError> {
    let (digest, size) = place.store(resolver).await?;
    if let Some(Checksum::Digest(expected)) = &request.checksum {
        let disk = resolver.disk.clone();
        let (content, expected) = (digest.clone(), expected.clone());
        let checking = tokio::task::spawn_blocking(move || {
            let found = digest_of(&mut disk.open(&content, 0)?, expected.algorithm());
            let found = found.map_err(|error| ResolveError::local(error.to_string()))?;
            if found == expected {
                return Ok::<(), ResolveError>(());
            }
            Err(format!("its checksum is {expected}, but the file is {found}").into())
        });
        checking.await??;
    }
    Ok(LockedFile {
        path: place.path_in_lock(&resolver.lock_folder),
        packing: match place.form {
            LocalForm::Folder(packing) => Some(packing),
            LocalForm::File | LocalForm::Chart(_) | LocalForm::Image(_) | LocalForm::Repository => {
                None
            }
        },
        mode: Some(match &request.mode {
            Some(mode) => mode.clone(),
            None => place.mode()?,
        }),
        ..requested_file(request, digest, size)
    })
}

/// A file with this content and what `request` states.
fn requested_file(request: &FileRequest, digest: Digest, size: u64) -> LockedFile {
    LockedFile {
        checksum: request.checksum.as_ref().map(Checksum::to_string),
        also: request.also.clone(),
        mode: request.mode.clone(),
        unpack: request.unpack.clone(),
        ..LockedFile::new(&request.url, digest, size)
    }
}

/// Verifies the signatures with `key` and returns the name of the key that made one. A signature
/// whose URL begins with the URL of the checksum file signs the checksum file; any other signs the
/// file, which must then be downloaded.
async fn verify_signatures(
    resolver: &Resolver,
    file: &LockedFile,
    key: &FileKey,
    signatures: &[(&String, Bytes)],
) -> Result<String, ResolveError> {
    let checksum = file.checksum_sidecar();
    let mut failures = Vec::new();
    for (url, signature) in signatures {
        // certificates and signatures of other formats are carried without being verified
        if !key.may_check(signature) {
            continue;
        }
        let signed = match checksum.filter(|sidecar| url.starts_with(&sidecar.url)) {
            Some(sidecar) => sidecar.digest.clone(),
            None => {
                ensure_downloaded(resolver, file).await?;
                file.digest.clone()
            }
        };
        // one valid signature is enough
        match verify_stored(resolver, signed, key, signature).await? {
            Ok(name) => return Ok(name),
            Err(why) => failures.push(format!("{url}: {why}")),
        }
    }
    if failures.is_empty() {
        failures.push(format!("none of its signatures has the format of {key}"));
    }
    Err(format!("its signature is not valid: {}", failures.join("; ")).into())
}

/// Downloads `file` unless the store has it.
pub(super) async fn ensure_downloaded(
    resolver: &Resolver,
    file: &LockedFile,
) -> Result<(), ResolveError> {
    let disk = resolver.disk.clone();
    let digest = file.digest.clone();
    let size = file.size;
    let has_file = tokio::task::spawn_blocking(move || disk.has(&digest, size)).await;
    if !has_file.is_ok_and(|has| has.unwrap_or(false)) {
        download(resolver, &file.name, Some(&file.digest)).await?;
    }
    Ok(())
}

/// Verifies `signature` of the stored blob `signed`. Returns the name of the key, or why the
/// signature is not valid.
async fn verify_stored(
    resolver: &Resolver,
    signed: Digest,
    key: &FileKey,
    signature: &Bytes,
) -> Result<Result<String, String>, ResolveError> {
    let disk = resolver.disk.clone();
    let key = key.clone();
    let signature = signature.clone();
    let verifying = tokio::task::spawn_blocking(move || {
        let open = || disk.open(&signed, 0).map_err(std::io::Error::other);
        key.verify(&signature, SignatureTime::Now, open)
            .map_err(|error| error.to_string())
    });
    Ok(verifying.await?)
}

/// Downloads a sidecar and stores it for `pull`.
pub(crate) async fn download_sidecar(
    resolver: &Resolver,
    url: &str,
) -> Result<(LockedSidecar, Bytes), HttpError> {
    let bytes = resolver.document(url).await?;
    let sidecar = LockedSidecar {
        url: url.to_owned(),
        digest: Digest::sha256(&bytes),
        size: bytes.len() as u64,
    };
    resolver.keep(descriptor(&sidecar), bytes.clone()).await;
    Ok((sidecar, bytes))
}

/// The size that the server reports: by HEAD, or by GET if HEAD fails or reports no size. `None` if
/// GET reports none either, or the server compresses the body.
pub(super) async fn size_of(resolver: &Resolver, url: &str) -> Result<Option<u64>, ResolveError> {
    let sessions = &resolver.sessions;
    // Signed URLs of object stores allow GET only, and some servers close the connection on HEAD,
    // so such failures of HEAD say nothing about the file.
    match head_file(sessions, url).await {
        Ok(head) if head.status.is_success() => {
            let size = reported_size(&head);
            // only the body shows whether a file that is declared as HTML is a page
            if size.is_some() && expect_file(head, url).await.is_ok() {
                return Ok(size);
            }
        }
        Ok(_) => {}
        Err(error) if error.is_transient() => {}
        Err(error) => return Err(error.into()),
    }
    let full = expect_whole_file(get_current_file(sessions, url).await?, url).await?;
    Ok(reported_size(&full))
}

/// The size of the file according to the header of `response`. `None` if the body is compressed,
/// since the header then counts compressed bytes, or if the size is 0, as some servers report for
/// HEAD.
fn reported_size(response: &HttpResponse) -> Option<u64> {
    if response.compression_error("the file").is_some() {
        return None;
    }
    response.content_length().filter(|size| *size > 0)
}

/// Downloads the file into the store and hashes it meanwhile. Returns its SHA-256 and size.
pub(crate) async fn download(
    resolver: &Resolver,
    url: &str,
    expected: Option<&Digest>,
) -> Result<(Digest, u64), ResolveError> {
    let policy = resolver.sessions.transport().retry_policy();
    policy
        .read_body(|| download_once(resolver, url, expected))
        .await
}

async fn download_once(
    resolver: &Resolver,
    url: &str,
    expected: Option<&Digest>,
) -> Result<(Digest, u64), BodyFailure<ResolveError>> {
    let local = |error: String| BodyFailure::Final(ResolveError::local(error));
    let response = get_current_file(&resolver.sessions, url).await?;
    let response = expect_whole_file(response, url).await?;
    // With a checksum, a declared compression is accepted, since the bytes are verified. Some
    // servers declare a .tgz as a compressed encoding of its content, but send it unchanged.
    let compressed = response.compression_error("the file");
    if let Some(error) = compressed.clone().filter(|_| expected.is_none()) {
        return Err(error
            .hint("; add a `checksum` to the manifest so that the bytes can be verified")
            .into());
    }
    let length = response.content_length();
    let temporary = resolver
        .disk
        .temporary_file()
        .map_err(|error| local(error.to_string()))?;
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let mut check = expected.map(|digest| Hasher::new(digest.algorithm()));
    let mut size = 0;
    let mut stream = response.stream();
    let is_expected = |check: Option<&Hasher>| match (check.cloned(), expected) {
        (Some(check), Some(expected)) => check.finish() == *expected,
        _ => false,
    };
    while let Some(bytes) = stream.next().await {
        let bytes = match bytes {
            Ok(bytes) => bytes,
            // if the response has no length, TLS must announce its end, which some servers do not
            Err(_) if is_expected(check.as_ref()) => break,
            Err(error) => return Err(BodyFailure::reading(error)),
        };
        hasher.update(&bytes);
        if let Some(check) = &mut check {
            check.update(&bytes);
        }
        size += bytes.len() as u64;
        temporary
            .as_file()
            .write_all(&bytes)
            .map_err(|error| local(format!("cannot write to the store: {error}")))?;
        resolver.progress.bytes(bytes.len() as u64);
    }
    if let Some(length) = length.filter(|length| *length != size) {
        let why = format!("{url}: the response ended after {size} of {length} bytes");
        return Err(BodyFailure::reading(HttpError::new(
            ErrorKind::Network,
            why,
        )));
    }
    if let (Some(expected), Some(check)) = (expected, check) {
        let found = check.finish();
        if found != *expected {
            let why = format!("its checksum is {expected}, but the downloaded file is {found}");
            return Err(
                compressed.map_or_else(|| BodyFailure::Wrong(why.into()), BodyFailure::from)
            );
        }
    }
    let digest = hasher.finish();
    let disk = resolver.disk.clone();
    let adopted = digest.clone();
    // flushing a large file to disk may block for long
    let adopting = tokio::task::spawn_blocking(move || disk.adopt(temporary, &adopted)).await;
    adopting
        .map_err(|error| local(error.to_string()))?
        .map_err(|error| local(error.to_string()))?;
    Ok((digest, size))
}

// Parses checksum files: a bare digest, `<digest>  <name>` lines as `sha256sum` writes them, BSD
// lines `SHA256 (<name>) = <digest>`, those of `openssl dgst` (`SHA2-256(<name>)= <digest>`), the
// columns of PowerShell's `Get-FileHash`, groups of digits as `gpg --print-md` writes them, or
// `<name> <digest>` lines.

/// The text of a checksum file. PowerShell writes UTF-16.
pub(super) fn text_of(bytes: &[u8]) -> String {
    match utf16_units(bytes) {
        Some(units) => String::from_utf16_lossy(&units),
        None => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Finds the digest of the file at `url` in a checksum file.
///
/// A bare digest applies to a file of any name if the checksum file contains no other digest.
/// Otherwise, the line with the file's name applies. If there are several, the line whose path has
/// the most folders in common with the URL applies. If several have the same number of folders in
/// common, a line whose whole path matches applies.
pub(super) fn find(text: &str, url: &str) -> Result<Digest, String> {
    let url_path = url.split(['?', '#']).next().unwrap_or(url);
    // names in checksum files are not percent-encoded
    let url_path = &*percent_decode_str(url_path).decode_utf8_lossy();
    let name = url_path.rsplit('/').next().unwrap_or(url);
    // lines that are not checksums are skipped, since checksum files may contain other text
    let lines = with_joined_groups(text.trim_start_matches('\u{feff}'));
    let lines: Vec<(Digest, Option<&str>)> = lines
        .iter()
        .filter_map(|line| read_line(line.trim()))
        .collect();
    match &lines[..] {
        [] => Err("contains no SHA-256 or SHA-512 digest".into()),
        [(digest, None)] => Ok(digest.clone()),
        lines => {
            let matches = lines.iter().filter_map(|(digest, path)| {
                let common = common_components((*path)?, url_path)?;
                Some((common, digest))
            });
            let matches: Vec<_> = matches.collect();
            let best = matches.iter().map(|(common, _)| *common).max();
            let mut best = matches
                .iter()
                .filter(|(common, _)| Some(*common) == best)
                .map(|(_, digest)| *digest);
            match (best.next(), lines) {
                // a file may have a digest of each algorithm
                (Some(digest), _)
                    if best.any(|other| {
                        other != digest && other.algorithm() == digest.algorithm()
                    }) =>
                {
                    Err(format!("has several digests for '{name}'"))
                }
                (Some(digest), _) => Ok(digest.clone()),
                (None, [(_, Some(other))]) => Err(format!(
                    "is for '{}', not '{name}'",
                    landfall_model::report::escape_lines(other)
                )),
                (None, _) => Err(format!("has no line for '{name}'")),
            }
        }
    }
}

/// Whether the URL of a checksum file is that of its file with an ending, as in `<url>.sha256`.
fn is_next_to(url: &str, checksum: &str) -> bool {
    let ending = checksum.strip_prefix(url);
    ending.is_some_and(|ending| ending.starts_with('.') && !ending.contains('/'))
}

/// The digest in a checksum file that has no other. It applies to the file next to it even if the
/// line has another name, because some publishers rename files after they hash them.
fn only_digest(text: &str) -> Option<Digest> {
    let lines = with_joined_groups(text.trim_start_matches('\u{feff}'));
    let mut digests = lines.iter().filter_map(|line| read_line(line.trim()));
    let (digest, _) = digests.next()?;
    digests.next().is_none().then_some(digest)
}

/// Compares the path in a line with the path of a URL: the number of equal components at the end of
/// both, and whether the path in the line has no further ones. A better match is greater. `None` if
/// the names of the files differ.
fn common_components(path: &str, url_path: &str) -> Option<(usize, bool)> {
    // `sha256sum` of a Windows machine may write backslashes
    let path = &*path.replace('\\', "/");
    let path = path.strip_prefix("./").unwrap_or(path);
    let pairs = path.rsplit('/').zip(url_path.rsplit('/'));
    let common = pairs.take_while(|(one, other)| one == other).count();
    let is_whole = common == path.split('/').count();
    (common > 0).then_some((common, is_whole))
}

/// The lines of `text`. Lines with the remaining digits of a digest, as `gpg --print-md` writes
/// them, are part of the line before.
fn with_joined_groups(text: &str) -> Vec<Cow<'_, str>> {
    let mut lines: Vec<Cow<'_, str>> = Vec::new();
    for line in text.lines() {
        let is_continued = line.starts_with([' ', '\t']) && line.split_whitespace().all(is_group);
        let last = lines.last_mut();
        match last
            .filter(|last| is_continued && last.split_whitespace().last().is_some_and(is_group))
        {
            Some(last) => last.to_mut().push_str(line),
            None => lines.push(line.into()),
        }
    }
    lines
}

/// Whether a word is a group of digits as `gpg --print-md` writes them.
fn is_group(word: &str) -> bool {
    matches!(word.len(), 2 | 4 | 8)
        && word
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'))
}

/// The digest in a line `<name>: <groups>` or `<name>: SHA256 = <groups>`, with the name.
fn read_groups(line: &str) -> Option<(Digest, Option<&str>)> {
    let (name, rest) = line.rsplit_once(':')?;
    let (label, groups) = match rest.split_once('=') {
        Some((label, groups)) => (Some(label), groups),
        None => (None, rest),
    };
    if !groups.split_whitespace().all(is_group) {
        return None;
    }
    let hex: String = groups.split_whitespace().collect();
    let digest = digest(&hex)?;
    let is_other = label.is_some_and(|label| !is_label(label, &digest));
    (!is_other).then_some((digest, Some(name)))
}

/// The digest in a line, with the path of its file if that is written.
fn read_line<'t>(line: &'t str) -> Option<(Digest, Option<&'t str>)> {
    if let Some((label, rest)) = line.split_once('(')
        && let Some((name, hex)) = rest.rsplit_once(") = ").or_else(|| rest.rsplit_once(")= "))
    {
        let digest = digest(hex.trim())?;
        return is_label(label, &digest).then_some((digest, Some(name)));
    }
    let words = |line: &'t str| line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let (mut hex, mut name) = words(line);
    // the columns of `Get-FileHash`
    let (next, path) = words(name.trim_start());
    if digest(next).is_some_and(|digest| is_label(hex, &digest)) {
        (hex, name) = (next, path);
    }
    let hex = hex.strip_prefix("sha256:").unwrap_or(hex);
    let Some(first) = digest(hex) else {
        return read_groups(line).or_else(|| read_name_first(line));
    };
    // `sha256sum` marks files that it read in binary mode with an asterisk, and stdin with a dash
    let name = name.trim_start().trim_start_matches('*');
    Some((first, (!matches!(name, "" | "-")).then_some(name)))
}

/// The digest at the end of a line, after the path of its file or the name of the algorithm.
fn read_name_first(line: &str) -> Option<(Digest, Option<&str>)> {
    let (name, hex) = line.rsplit_once(char::is_whitespace)?;
    let name = name.trim_end().trim_end_matches([':', '=']).trim_end();
    let digest = digest(hex)?;
    let path = (!is_label(name, &digest)).then_some(name);
    Some((digest, path))
}

/// Whether `label` is the name of the digest's algorithm. Other algorithms, such as `BLAKE2b` and
/// SHA3-256, have digests of the same lengths.
fn is_label(label: &str, digest: &Digest) -> bool {
    let label = label.trim().to_ascii_lowercase().replace("sha2-", "sha");
    label.replace('-', "") == digest.algorithm().as_str()
}

fn digest(hex: &str) -> Option<Digest> {
    let hex = hex.to_ascii_lowercase();
    let algorithm = match hex.len() {
        64 => "sha256",
        128 => "sha512",
        _ => return None,
    };
    format!("{algorithm}:{hex}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_checksum_files_are_parsed() {
        let a = "a".repeat(64);
        let b = "b".repeat(64);
        let url = "https://x.test/d/cni.tgz?sig=1";
        let of = |text: &str| find(text, url).map(|digest| digest.hex());
        assert_eq!(of(&a), Ok(a.clone()));
        assert_eq!(of(&format!("{}\r\n", a.to_uppercase())), Ok(a.clone()));
        assert_eq!(of(&format!("{a}  cni.tgz\n")), Ok(a.clone()));
        assert_eq!(
            of(&format!("{b}  other.tgz\n{a} *./cni.tgz\n")),
            Ok(a.clone())
        );
        for line in [
            format!("SHA256 (cni.tgz) = {a}\r\n"),
            format!("SHA2-256(cni.tgz)= {a}\n"),
            format!("SHA256(d/cni.tgz)= {}\n", a.to_uppercase()),
            format!("sha256:{a} *cni.tgz"),
            format!("{a}\t.\\d\\cni.tgz"),
            format!("{a}  -\n"),
            format!("cni.tgz {a}\nother.tgz {b}\n"),
            format!("cni.tgz:  {a}\n"),
            format!("SHA256: {a}\n"),
            format!(
                "\r\nAlgorithm       Hash       Path\r\n---------       ----       ----\r\n\
             SHA256          {}       C:\\d\\cni.tgz   \r\n\r\n",
                a.to_uppercase()
            ),
        ] {
            assert_eq!(of(&line), Ok(a.clone()), "{line}");
            for bom in ["\u{feff}", "\u{feff}\r\n"] {
                let units: Vec<u16> = format!("{bom}{line}").encode_utf16().collect();
                let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
                let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
                assert_eq!(of(&text_of(&big)), Ok(a.clone()));
                assert_eq!(of(&text_of(&little)), Ok(a.clone()));
            }
        }
        let plus = find(
            &format!("{b}  x\n{a}  a+b.tgz\n"),
            "https://x.test/a%2Bb.tgz",
        );
        assert_eq!(plus.map(|digest| digest.hex()), Ok(a));
        assert!(
            of(&format!("{b}  other.tgz\n"))
                .unwrap_err()
                .contains("is for 'other.tgz'")
        );
        assert!(
            of(&format!("{b}  x\n{b}  y\n"))
                .unwrap_err()
                .contains("no line for")
        );
        assert!(of("<html>404</html>").unwrap_err().contains("no SHA-256"));
        assert!(
            find(&"c".repeat(128), url)
                .unwrap()
                .to_string()
                .starts_with("sha512:")
        );
    }

    #[test]
    fn groups_of_gpg_are_joined() {
        let url = "https://x.test/d/cni 1.tgz";
        let wide = "5891B5B5 22D5DF08 6D0FF0B1 10FBD9D2 1BB4FC71 63AF34D0 8286A2E8 46F6BE03";
        let hex = wide.replace(' ', "").to_lowercase();
        let long = "E7C22B99 4C59D9CF 2B48E549 B1E24666 63604593 0D3DA7C1\n   ACB299D1 C3B7F931 F94AAE41 EDDA2C2B \
                    207A36E1 0F8BCB8D\n   45223E54 878F5B31 6E7CE3B6 BC019629";
        for text in [
            format!("cni 1.tgz: {wide}\n"),
            format!("cni 1.tgz: {}\n\t{}\r\n", &wide[..35], &wide[36..]),
            format!(
                "cni 1.tgz:    MD5 = B1 94 6A C9 24 92 D2 34  7C 62 35 B4 D2 61 11 84\ncni 1.tgz: SHA256 = {wide}\n"
            ),
        ] {
            assert_eq!(
                find(&text, url).map(|found| found.hex()),
                Ok(hex.clone()),
                "{text}"
            );
        }
        let found = find(&format!("cni 1.tgz: {long}\n"), url).unwrap();
        assert!(found.to_string().starts_with("sha512:e7c22b99"), "{found}");
        assert!(found.to_string().ends_with("bc019629"), "{found}");
        for (text, why) in [
            (format!("other.tgz: {wide}\n"), "is for 'other.tgz'"),
            (format!("cni 1.tgz: BLAKE2 = {wide}\n"), "no SHA-256"),
            (format!("cni 1.tgz: {}\n", &wide[..62]), "no SHA-256"),
            (format!("cni 1.tgz: {wide}\n  0000\n"), "no SHA-256"),
            (format!("BLAKE2b: {hex}\n"), "is for 'BLAKE2b'"),
        ] {
            let error = find(&text, url).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn the_line_with_the_longest_matching_path_applies() {
        let [a, b, c] = ["a", "b", "c"].map(|digit| digit.repeat(64));
        let of = |text: &str, url: &str| find(text, url).map(|digest| digest.hex());
        let text = format!("{a}  amd64/tool\n{b}  ./arm64/tool\n");
        assert_eq!(of(&text, "https://x.test/v1/arm64/tool"), Ok(b.clone()));
        assert_eq!(of(&text, "https://x.test/v1/amd64/tool?a=1"), Ok(a.clone()));
        assert!(
            of(&text, "https://x.test/v1/tool")
                .unwrap_err()
                .contains("has several digests for 'tool'")
        );
        // the file beside the checksum file, not that in a folder
        let text = format!("{a}  windows/tool\n{b}  tool\n");
        assert_eq!(of(&text, "https://x.test/v1/tool"), Ok(b.clone()));
        // a line for a file in a folder, and a digest of each algorithm
        let text = format!("{c}  dist/tool\n{c}  tool\n{}  tool\n", "d".repeat(128));
        assert_eq!(of(&text, "https://x.test/tool"), Ok(c));
        let text = format!("{a}  tool\n{b}  tool\n");
        assert!(of(&text, "https://x.test/tool").is_err());
    }

    #[test]
    fn the_label_of_a_bsd_line_must_match_the_digest() {
        let url = "https://x.test/d/f";
        let short = "a".repeat(64);
        let long = "b".repeat(128);
        for (label, hex) in [
            ("SHA3-256", &short),
            ("SHA512/256", &short),
            ("SHA512", &short),
            ("BLAKE2b", &long),
            ("SHA3-512", &long),
        ] {
            let found = find(&format!("{label} (f) = {hex}\n"), url);
            assert!(found.unwrap_err().contains("no SHA-256"), "{label}");
        }
        let text = format!("BLAKE2b (f) = {}\nSHA-512 (f) = {long}\n", "c".repeat(128));
        assert_eq!(
            find(&text, url).unwrap().to_string(),
            format!("sha512:{long}")
        );
    }
}
