//! Reads the lock file of OpenTofu and Terraform, `.terraform.lock.hcl`.
//!
//! The two programs write a small part of HCL: `provider` blocks with texts and lists of texts. The
//! reader accepts that part, with comments, and rejects everything else.

use super::address::{ProviderAddress, ProviderName};
use std::collections::BTreeSet;
use std::ops::Range;

/// A provider in a lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockFileProvider {
    /// The source address and the version.
    pub(super) name: ProviderName,
    /// The hashes of its packages, with their schemes.
    pub(super) hashes: BTreeSet<String>,
    /// The bytes of the source address.
    pub(super) at: Range<usize>,
}

/// Why a text is not a lock file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockFileFault {
    /// The bytes that are wrong.
    pub(super) at: Range<usize>,
    /// The reason, as messages show it.
    pub(super) why: String,
}

/// The providers in the order of the lock file.
pub(super) fn read_lock_file(text: &str) -> Result<Vec<LockFileProvider>, LockFileFault> {
    let mut reader = LockFileReader { text, at: 0 };
    let mut providers = Vec::new();
    let mut addresses = BTreeSet::new();
    loop {
        let (token, at) = reader.token()?;
        match token {
            LockFileToken::End => return Ok(providers),
            LockFileToken::Word("provider") => {}
            _ => return Err(fault(at, "expected `provider`")),
        }
        let (address, at) = reader.text()?;
        let address: ProviderAddress = address.parse().map_err(|()| {
            let why = "this is not the source address of a provider, `<host>/<namespace>/<type>`";
            fault(at.clone(), why)
        })?;
        if !addresses.insert(address.clone()) {
            return Err(fault(at, "this provider is already in the file"));
        }
        providers.push(reader.provider(address, at)?);
    }
}

/// Reads any bytes as a lock file.
///
/// # Panics
/// If the position of an error is not in the text.
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub fn fuzz(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(fault) = read_lock_file(&text) {
        assert!(
            text.get(fault.at).is_some(),
            "a fault has a position in the text"
        );
    }
}

#[derive(Debug, PartialEq, Eq)]
enum LockFileToken<'t> {
    Word(&'t str),
    Text(String),
    Sign(char),
    End,
}

struct LockFileReader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> LockFileReader<'t> {
    /// Reads the body of a provider's block. `of` is the position of the provider's address.
    fn provider(
        &mut self,
        address: ProviderAddress,
        of: Range<usize>,
    ) -> Result<LockFileProvider, LockFileFault> {
        self.sign('{')?;
        let mut version: Option<(String, Range<usize>)> = None;
        let mut hashes: Option<BTreeSet<String>> = None;
        let mut has_constraints = false;
        loop {
            let (token, at) = self.token()?;
            let key = match token {
                LockFileToken::Sign('}') => break,
                LockFileToken::Word(key) => key,
                _ => {
                    return Err(fault(
                        at,
                        "expected `version`, `constraints`, `hashes` or `}`",
                    ));
                }
            };
            self.sign('=')?;
            let is_repeated = match key {
                "version" => version.replace(self.text()?).is_some(),
                "constraints" => {
                    self.text()?;
                    std::mem::replace(&mut has_constraints, true)
                }
                "hashes" => hashes.replace(self.texts()?).is_some(),
                _ => return Err(fault(at, "a provider has no such argument")),
            };
            if is_repeated {
                return Err(fault(at, "this argument is already set"));
            }
        }
        let (version, at) =
            version.ok_or_else(|| fault(of.clone(), "this provider has no version"))?;
        let name = ProviderName::new(address, &version)
            .ok_or_else(|| fault(at, "this is not a version such as 5.1.0"))?;
        Ok(LockFileProvider {
            name,
            hashes: hashes.unwrap_or_default(),
            at: of,
        })
    }

    /// A list of texts, with or without a comma at its end.
    fn texts(&mut self) -> Result<BTreeSet<String>, LockFileFault> {
        self.sign('[')?;
        let mut texts = BTreeSet::new();
        loop {
            let (token, at) = self.token()?;
            match token {
                LockFileToken::Sign(']') => return Ok(texts),
                LockFileToken::Text(text) => texts.insert(text),
                _ => return Err(fault(at, "expected a text in quotes or `]`")),
            };
            let (token, at) = self.token()?;
            match token {
                LockFileToken::Sign(']') => return Ok(texts),
                LockFileToken::Sign(',') => {}
                _ => return Err(fault(at, "expected `,` or `]`")),
            }
        }
    }

    fn text(&mut self) -> Result<(String, Range<usize>), LockFileFault> {
        match self.token()? {
            (LockFileToken::Text(text), at) => Ok((text, at)),
            (_, at) => Err(fault(at, "expected a text in quotes")),
        }
    }

    fn sign(&mut self, sign: char) -> Result<(), LockFileFault> {
        match self.token()? {
            (LockFileToken::Sign(found), _) if found == sign => Ok(()),
            (_, at) => Err(fault(at, &format!("expected `{sign}`"))),
        }
    }

    /// The next token, with its bytes.
    fn token(&mut self) -> Result<(LockFileToken<'t>, Range<usize>), LockFileFault> {
        self.skip_blanks()?;
        let start = self.at;
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else {
            return Ok((LockFileToken::End, start..start));
        };
        let token = match first {
            '"' => LockFileToken::Text(self.quoted()?),
            '{' | '}' | '[' | ']' | '=' | ',' => {
                self.at += 1;
                LockFileToken::Sign(first)
            }
            _ if first.is_ascii_alphabetic() => {
                let len = rest
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')
                    .unwrap_or(rest.len());
                self.at += len;
                LockFileToken::Word(&rest[..len])
            }
            _ => {
                let at = start..start + first.len_utf8();
                return Err(fault(at, "lock files do not contain this character here"));
            }
        };
        Ok((token, start..self.at))
    }

    /// Skips white space and comments.
    fn skip_blanks(&mut self) -> Result<(), LockFileFault> {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{feff}']);
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with('#') || trimmed.starts_with("//") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                let end = trimmed.find("*/").ok_or_else(|| {
                    fault(self.at..self.at + "/*".len(), "this comment does not end")
                })?;
                self.at += end + "*/".len();
            } else {
                return Ok(());
            }
        }
    }

    /// Reads a text whose opening quote is the next character.
    fn quoted(&mut self) -> Result<String, LockFileFault> {
        let start = self.at;
        let rest = &self.text[start + 1..];
        let len = rest.find(['"', '\\', '\n', '$', '%']).unwrap_or(rest.len());
        self.at = start + 1 + len;
        if !rest[len..].starts_with('"') {
            // no version, address or hash contains an escape or a template
            let at = start..self.at;
            return Err(fault(
                at,
                "this text has no end, or contains an escape or a template",
            ));
        }
        self.at += 1;
        Ok(rest[..len].to_owned())
    }
}

fn fault(at: Range<usize>, why: &str) -> LockFileFault {
    LockFileFault {
        at,
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"# This file is maintained automatically by "tofu init".
// another comment
provider "registry.opentofu.org/hashicorp/random" {
  version     = "3.6.0"
  constraints = "~> 3.5, < 4.0.0" /* both */
  hashes = [
    "h1:R5Ucn26riKIEijcsiOMBR3uOAjuOMfI1x7XvH4P6B1w=",
    "zh:03360ed3ecd31e8c5dac9c95fe0858be50f3e9a0d0c654b5e504109c2159287d",
  ]
}

provider "registry.opentofu.org/hashicorp/null" {
  version = "3.2.2"
}
"#;

    #[test]
    fn the_file_of_tofu_init_is_read() {
        let providers = read_lock_file(FILE).unwrap();
        let names: Vec<&str> = providers.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "provider:registry.opentofu.org/hashicorp/random:3.6.0",
                "provider:registry.opentofu.org/hashicorp/null:3.2.2"
            ]
        );
        assert_eq!(
            (providers[0].hashes.len(), providers[1].hashes.len()),
            (2, 0)
        );
        assert_eq!(read_lock_file("").unwrap(), []);
    }

    #[test]
    fn an_invalid_file_is_an_error_with_a_position() {
        for (from, to, at, why) in [
            ("provider \"", "module \"", "module", "expected `provider`"),
            (
                "version     = \"3.6.0\"",
                "",
                "\"registry.opentofu.org/hashicorp/random\"",
                "no version",
            ),
            (
                "version     = \"3.6.0\"",
                "version = \"3\"",
                "\"3\"",
                "not a version",
            ),
            ("version     =", "source =", "source", "no such argument"),
            ("constraints =", "version =", "version", "already set"),
            (
                "hashicorp/null",
                "hashicorp/random",
                "\"registry.opentofu.org/hashicorp/random\"",
                "already in",
            ),
            (
                "registry.opentofu.org/hashicorp/null",
                "null",
                "\"null\"",
                "source address",
            ),
            ("\"3.2.2\"", "\"${x}\"", "\"", "template"),
            ("\"3.2.2\"", "\"3.2.2", "\"3.2.2", "no end"),
            ("\"3.2.2\"", "322", "3", "character"),
            ("/* both */", "/* both", "/*", "does not end"),
            ("    \"h1", "    [\"h1", "[", "in quotes"),
        ] {
            let text = FILE.replace(from, to);
            let fault = read_lock_file(&text).unwrap_err();
            assert!(fault.why.contains(why), "{to}: {fault:?}");
            assert_eq!(text.get(fault.at), Some(at), "{to}");
        }
    }
}
