//! Parses checksum files: a bare digest, `<digest>  <name>` lines as `sha256sum` writes them, BSD
//! lines `SHA256 (<name>) = <digest>`, those of `openssl dgst` (`SHA2-256(<name>)= <digest>`), or
//! the columns of PowerShell's `Get-FileHash`.

use landfall_model::Digest;
use percent_encoding::percent_decode_str;

/// The text of a checksum file. PowerShell writes UTF-16.
pub(super) fn text_of(bytes: &[u8]) -> String {
    let decode = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        String::from_utf16_lossy(&units.collect::<Vec<u16>>())
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => decode(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => decode(rest, u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
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
    let lines: Vec<(Digest, Option<&str>)> = text
        .trim_start_matches('\u{feff}')
        .lines()
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
            let matches: Vec<(PathMatch, &Digest)> = matches.collect();
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

/// How well the path in a line matches a URL. A better match is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PathMatch {
    /// The number of equal components at the end of both paths.
    common: usize,
    /// Whether the path in the line has no further components.
    is_whole: bool,
}

/// Compares the path in a line with the path of a URL. `None` if the names of the files differ.
fn common_components(path: &str, url_path: &str) -> Option<PathMatch> {
    // `sha256sum` of a Windows machine may write backslashes
    let path = &*path.replace('\\', "/");
    let path = path.strip_prefix("./").unwrap_or(path);
    let pairs = path.rsplit('/').zip(url_path.rsplit('/'));
    let common = pairs.take_while(|(one, other)| one == other).count();
    let is_whole = common == path.split('/').count();
    (common > 0).then_some(PathMatch { common, is_whole })
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
    // `sha256sum` marks files that it read in binary mode with an asterisk
    let name = name.trim_start().trim_start_matches('*');
    Some((digest(hex)?, (!name.is_empty()).then_some(name)))
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
