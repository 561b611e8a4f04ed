//! Lists of the mirrors of a repository: a text with one URL per line, or a metalink.

use super::error::YumError;
use super::primary::digest;
use super::xml::{XmlEvent, walk};
use landfall_model::{Digest, is_web_url, without_bom};

const WHAT: &str = "metalink";

/// The mirrors of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorList {
    /// URLs of the repository, with a slash at the end, the preferred one first.
    pub urls: Vec<String>,
    /// The accepted digests of `repomd.xml`; empty if the list contains none.
    pub repomd: Vec<Digest>,
}

/// Parses a list of mirrors. URLs with dnf variables, and URLs of protocols other than http and
/// https, are skipped.
///
/// # Errors
/// If no URL is left, or a metalink is malformed, or has only weak checksums of `repomd.xml`.
pub fn read_mirrors(bytes: &[u8]) -> Result<MirrorList, YumError> {
    let bytes = without_bom(bytes);
    let text = std::str::from_utf8(bytes)
        .map_err(|error| YumError::malformed("list of mirrors", error))?;
    let mirrors = if text.trim_start().starts_with('<') {
        parse_metalink(bytes)?
    } else {
        let lines = text.lines().map(str::trim).filter(|line| is_url(line));
        MirrorList {
            urls: lines
                .map(|line| format!("{}/", line.trim_end_matches('/')))
                .collect(),
            repomd: Vec::new(),
        }
    };
    if mirrors.urls.is_empty() {
        return Err(YumError::malformed(
            "list of mirrors",
            "it has no http or https URL without variables",
        ));
    }
    Ok(mirrors)
}

fn is_url(text: &str) -> bool {
    is_web_url(text) && !text.contains('$')
}

fn parse_metalink(bytes: &[u8]) -> Result<MirrorList, YumError> {
    let mut is_repomd = false;
    let mut kind = String::new();
    let mut preference = 0_u32;
    let mut urls = Vec::new();
    let mut found = Vec::new();
    let mut is_hashed = false;
    walk(bytes, WHAT, &mut |step| {
        match step {
            XmlEvent::Start(element) => match element.name() {
                "file" => is_repomd = element.attribute("name")?.as_deref() == Some("repomd.xml"),
                "hash" => kind = element.attribute("type")?.unwrap_or_default(),
                "url" => {
                    preference = element
                        .attribute("preference")?
                        .and_then(|text| text.parse().ok())
                        .unwrap_or(0);
                }
                _ => {}
            },
            // a metalink also has the digests of earlier versions (`mm0:alternates`)
            XmlEvent::End("hash", text) if is_repomd => {
                is_hashed = true;
                found.extend(digest(&kind, text));
            }
            XmlEvent::End("url", text) if is_repomd && is_url(text) => {
                if let Some(base) = text.strip_suffix("repodata/repomd.xml") {
                    urls.push((preference, base.to_owned()));
                }
            }
            XmlEvent::End(..) => {}
        }
        Ok(())
    })?;
    // ignoring weak hashes would turn a verified list into an unverified one
    if is_hashed && found.is_empty() {
        return Err(YumError::Weak {
            name: "repomd.xml".into(),
            kind,
        });
    }
    urls.sort_by_key(|(preference, _)| std::cmp::Reverse(*preference));
    Ok(MirrorList {
        urls: urls.into_iter().map(|(_, url)| url).collect(),
        repomd: found,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_one_mirror_per_line() {
        let text = "# region = EU\nrsync://a.example/x\nhttps://a.example/$releasever/os\nhttps://b.example/9/os\n\nhttp://c.example/9/os/\n";
        let mirrors = read_mirrors(text.as_bytes()).unwrap();
        assert_eq!(
            mirrors.urls,
            ["https://b.example/9/os/", "http://c.example/9/os/"]
        );
        assert!(mirrors.repomd.is_empty());
        assert!(read_mirrors(b"# no mirrors\n").is_err());
    }

    #[test]
    fn a_metalink_has_current_and_earlier_digests_of_repomd() {
        let hash = |kind, fill: &str, n| format!("<hash type=\"{kind}\">{}</hash>", fill.repeat(n));
        let text = format!(
            r#"<?xml version="1.0"?><metalink version="3.0" xmlns:mm0="http://fedorahosted.org/mirrormanager"><files>
            <file name="repomd.xml"><mm0:timestamp>1</mm0:timestamp><size>1</size>
            <verification>{}{}</verification>
            <mm0:alternates><mm0:alternate><verification>{}</verification></mm0:alternate></mm0:alternates>
            <resources>
              <url protocol="https" type="https" preference="50">https://b.example/9/repodata/repomd.xml</url>
              <url protocol="rsync" preference="100">rsync://c.example/9/repodata/repomd.xml</url>
              <url protocol="http" preference="99">http://a.example/9/repodata/repomd.xml</url>
            </resources></file></files></metalink>"#,
            hash("md5", "a", 32),
            hash("sha256", "b", 64),
            hash("sha512", "c", 128),
        );
        let mirrors = read_mirrors(text.as_bytes()).unwrap();
        assert_eq!(
            mirrors.urls,
            ["http://a.example/9/", "https://b.example/9/"]
        );
        let digests: Vec<String> = mirrors.repomd.iter().map(Digest::to_string).collect();
        assert_eq!(
            digests,
            [
                format!("sha256:{}", "b".repeat(64)),
                format!("sha512:{}", "c".repeat(128))
            ]
        );
        let weak = text.replace("sha256", "sha1").replace("sha512", "md5");
        assert!(matches!(
            read_mirrors(weak.as_bytes()),
            Err(YumError::Weak { .. })
        ));
        assert!(read_mirrors(&text.as_bytes()[..text.len() - 11]).is_err());
    }
}
