//! Who may use the API, and for what: the users of `htpasswd -B` files, by Basic authentication.

use super::ServeError;
use super::passwords::{Passwords, TooMany};
use super::sign_in_queue::SignInQueue;
use axum::http::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landfall_model::document::read_text_input;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessRight {
    /// Read.
    Read,
    /// Read, push and delete.
    Push,
}

/// Somebody who may use the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    /// The name; `None` for somebody who did not sign in.
    pub(super) user: Option<String>,
    pub(super) right: AccessRight,
}

/// The users of password files.
pub struct HtpasswdUsers {
    users: BTreeMap<String, (AccessRight, String)>,
    /// What somebody may do who does not sign in.
    anonymous: Option<AccessRight>,
    passwords: Arc<Passwords>,
}

impl HtpasswdUsers {
    /// Reads files of `user:hash` lines, each with what its users may do. Only bcrypt is accepted,
    /// as by other registries.
    ///
    /// # Errors
    /// When a file cannot be read, names no user or one of another file, or has another kind of
    /// hash.
    pub fn load(
        files: &[(&Path, AccessRight)],
        anonymous: Option<AccessRight>,
    ) -> Result<HtpasswdUsers, ServeError> {
        let passwords = Passwords::new().map_err(|_| ServeError::Random)?;
        let mut users = HtpasswdUsers {
            users: BTreeMap::new(),
            anonymous,
            passwords,
        };
        for (path, right) in files {
            let wrong = |why: String| ServeError::PasswordFile {
                path: (*path).into(),
                why,
            };
            let text = read_text_input(path).map_err(|error| wrong(error.to_string()))?;
            let found = hashes(&text).map_err(wrong)?;
            for (user, hash) in found {
                if let Some((other, _)) = users.users.insert(user.clone(), (*right, hash))
                    && other != *right
                {
                    return Err(wrong(format!(
                        "the user {user} is in another password file too"
                    )));
                }
            }
        }
        Ok(users)
    }

    /// The user that an `Authorization` header from `address` authenticates; `None` if it is
    /// nobody's who may use the API.
    ///
    /// # Errors
    /// When too many wait in `queue` for the comparison of a password that was not compared before.
    pub(super) async fn find(
        &self,
        header: Option<&HeaderValue>,
        queue: &Arc<SignInQueue>,
        address: IpAddr,
    ) -> Result<Option<Known>, TooMany> {
        let Some(header) = header else {
            return Ok(self.anonymous());
        };
        let Some((user, password)) = read(header) else {
            return Ok(None);
        };
        if user.is_empty() && password.is_empty() {
            // how some clients answer a challenge when they have no account
            return Ok(self.anonymous());
        }
        // a hash is computed for an unknown user too, so that time does not tell who is known
        let known = self.users.get(&user);
        let Some((_, hash)) = known.or_else(|| self.users.values().next()) else {
            return Ok(None);
        };
        let is_right = self
            .passwords
            .is_right(&user, password, hash, queue, address)
            .await?;
        let right = known.filter(|_| is_right).map(|(right, _)| *right);
        Ok(right.map(|right| Known {
            user: Some(user),
            right,
        }))
    }

    /// How many passwords were compared by bcrypt.
    pub(super) fn compared(&self) -> u64 {
        self.passwords.compared.load(Ordering::Relaxed)
    }

    fn anonymous(&self) -> Option<Known> {
        Some(Known {
            user: None,
            right: self.anonymous?,
        })
    }
}

/// User and bcrypt hash of each line.
fn hashes(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut hashes = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bcrypt = |hash: &&str| {
            ["$2y$", "$2a$", "$2b$"]
                .iter()
                .any(|mark| hash.starts_with(mark))
        };
        let Some((user, hash)) = line.split_once(':').filter(|(_, hash)| bcrypt(hash)) else {
            let fix = "write it with `htpasswd -B` (bcrypt is the only kind taken)";
            return Err(format!("line {} has no bcrypt hash; {fix}", at + 1));
        };
        hashes.push((user.to_owned(), hash.to_owned()));
    }
    if hashes.is_empty() {
        Err("it names no user".into())
    } else {
        Ok(hashes)
    }
}

/// Reads `bytes` as a file of passwords, and as a header with one.
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub fn fuzz(bytes: &[u8]) {
    let _ = hashes(&String::from_utf8_lossy(bytes));
    let _ = HeaderValue::from_bytes(bytes)
        .ok()
        .and_then(|header| read(&header));
}

/// User name and password of `Basic <base64>`.
fn read(header: &HeaderValue) -> Option<(String, Vec<u8>)> {
    let (scheme, value) = header.to_str().ok()?.split_once(' ')?;
    let text = STANDARD
        .decode(value.trim())
        .ok()
        .filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let colon = text.iter().position(|&byte| byte == b':')?;
    Some((
        String::from_utf8(text[..colon].to_vec()).ok()?,
        text[colon + 1..].to_vec(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `htpasswd -nbB -C 4 anna secret`
    const ANNA: &str = "anna:$2b$04$";

    fn users(
        texts: &[(&str, AccessRight)],
        anonymous: Option<AccessRight>,
    ) -> Result<HtpasswdUsers, ServeError> {
        let dir = tempfile::tempdir().unwrap();
        let paths: Vec<_> = (0..texts.len())
            .map(|at| dir.path().join(at.to_string()))
            .collect();
        paths
            .iter()
            .zip(texts)
            .for_each(|(path, (text, _))| std::fs::write(path, text).unwrap());
        let files: Vec<_> = paths
            .iter()
            .zip(texts)
            .map(|(path, (_, right))| (path.as_path(), *right))
            .collect();
        HtpasswdUsers::load(&files, anonymous)
    }

    async fn find(users: &HtpasswdUsers, header: Option<&HeaderValue>) -> Option<Known> {
        let queue = Arc::new(SignInQueue::new(100));
        users
            .find(header, &queue, IpAddr::from([127, 0, 0, 1]))
            .await
            .unwrap()
    }

    fn basic(text: &str) -> HeaderValue {
        format!("Basic {}", STANDARD.encode(text)).parse().unwrap()
    }

    fn hash(password: &str) -> String {
        bcrypt::hash_with_salt(password, 4, *b"0123456789abcdef")
            .unwrap()
            .to_string()
    }

    #[tokio::test]
    async fn only_the_right_password_of_a_known_user_counts() {
        let hash = hash("secret");
        assert!(format!("anna:{hash}").starts_with(ANNA));
        let users = users(
            &[(&format!("# people\nanna:{hash}\n"), AccessRight::Push)],
            None,
        )
        .unwrap();
        for _ in 0..2 {
            let anna = find(&users, Some(&basic("anna:secret"))).await.unwrap();
            assert_eq!(
                anna,
                Known {
                    user: Some("anna".into()),
                    right: AccessRight::Push
                }
            );
            for wrong in ["anna:secreT", "otto:secret", ":"] {
                assert_eq!(find(&users, Some(&basic(wrong))).await, None);
            }
            assert_eq!(find(&users, Some(&"Bearer x".parse().unwrap())).await, None);
            assert_eq!(find(&users, None).await, None);
        }
    }

    #[tokio::test]
    async fn who_does_not_sign_in_may_read_where_that_is_said_and_a_wrong_password_may_not() {
        let (pushers, readers) = (format!("anna:{}", hash("a")), format!("otto:{}", hash("o")));
        let files = [
            (&*pushers, AccessRight::Push),
            (&*readers, AccessRight::Read),
        ];
        let users = users(&files, Some(AccessRight::Read)).unwrap();
        let right =
            async |header: Option<HeaderValue>| Some(find(&users, header.as_ref()).await?.right);
        assert_eq!(right(None).await, Some(AccessRight::Read));
        assert_eq!(right(Some(basic(":"))).await, Some(AccessRight::Read));
        assert_eq!(right(Some(basic("anna:a"))).await, Some(AccessRight::Push));
        assert_eq!(right(Some(basic("otto:o"))).await, Some(AccessRight::Read));
        assert_eq!(right(Some(basic("otto:a"))).await, None);
    }

    #[test]
    fn other_kinds_of_hashes_are_refused_with_the_fix() {
        let of = |text: &str| users(&[(text, AccessRight::Push)], None);
        let message = of("anna:$apr1$x$y\n").err().unwrap().to_string();
        assert!(
            message.contains("line 1") && message.contains("htpasswd -B"),
            "{message}"
        );
        assert!(!message.contains("apr1"), "hashes are not shown: {message}");
        assert!(of("").is_err());
        let anna = format!("anna:{}", hash("a"));
        let twice = users(
            &[(&*anna, AccessRight::Push), (&*anna, AccessRight::Read)],
            None,
        )
        .err()
        .unwrap();
        assert!(twice.to_string().contains("anna is in another"), "{twice}");
    }
}
