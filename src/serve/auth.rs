//! Who may use the API: the users of an `htpasswd -B` file, by Basic authentication.

use super::ServeError;
use crate::model::Digest;
use axum::http::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Semaphore;

/// How many verified headers are remembered.
const REMEMBERED: usize = 1024;

/// The users of a password file.
pub(crate) struct Users {
    /// User -> bcrypt hash.
    hashes: BTreeMap<String, String>,
    /// Digests of verified headers: bcrypt is slow on purpose, and a push makes hundreds of requests.
    known: Mutex<HashSet<Digest>>,
    /// Bounds verifications at one time, so that wrong passwords cannot take all processors.
    gate: Semaphore,
}

impl Users {
    /// Reads a file of `user:hash` lines. Only bcrypt is accepted, as by other registries.
    ///
    /// # Errors
    /// When it cannot be read, names no user, or has another kind of hash.
    pub(crate) fn load(path: &Path) -> Result<Users, ServeError> {
        let wrong = |why: String| ServeError::Users { path: path.into(), why };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let mut hashes = BTreeMap::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bcrypt = |hash: &&str| ["$2y$", "$2a$", "$2b$"].iter().any(|mark| hash.starts_with(mark));
            let Some((user, hash)) = line.split_once(':').filter(|(_, hash)| bcrypt(hash)) else {
                let fix = "write it with `htpasswd -B` (bcrypt is the only kind taken)";
                return Err(wrong(format!("line {} has no bcrypt hash; {fix}", at + 1)));
            };
            hashes.insert(user.to_owned(), hash.to_owned());
        }
        if hashes.is_empty() {
            return Err(wrong("it names no user".into()));
        }
        Ok(Users { hashes, known: Mutex::default(), gate: Semaphore::new(2) })
    }

    /// Whether `header`, an `Authorization`, has the name and password of a user.
    pub(super) async fn know(&self, header: Option<&HeaderValue>) -> bool {
        let Some(header) = header else { return false };
        let key = Digest::sha256(header.as_bytes());
        if self.remembered().contains(&key) {
            return true;
        }
        let Some((user, password)) = read(header) else { return false };
        // a hash is computed for an unknown user too, so that time does not tell who is known
        let known = self.hashes.contains_key(&user);
        let Some(hash) = self.hashes.get(&user).or_else(|| self.hashes.values().next()).cloned() else {
            return false;
        };
        let Ok(_turn) = self.gate.acquire().await else { return false };
        let verify = move || bcrypt::verify(password, &hash).unwrap_or(false);
        let good = tokio::task::spawn_blocking(verify).await.unwrap_or(false) && known;
        if good {
            let mut remembered = self.remembered();
            if remembered.len() >= REMEMBERED {
                remembered.clear();
            }
            remembered.insert(key);
        }
        good
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, HashSet<Digest>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// User name and password of `Basic <base64>`.
fn read(header: &HeaderValue) -> Option<(String, Vec<u8>)> {
    let (scheme, value) = header.to_str().ok()?.split_once(' ')?;
    let text = STANDARD.decode(value.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let colon = text.iter().position(|&byte| byte == b':')?;
    Some((String::from_utf8(text[..colon].to_vec()).ok()?, text[colon + 1..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `htpasswd -nbB -C 4 anna secret`
    const ANNA: &str = "anna:$2b$04$";

    fn users(text: &str) -> Result<Users, ServeError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Users::load(file.path())
    }

    fn basic(text: &str) -> HeaderValue {
        format!("Basic {}", STANDARD.encode(text)).parse().unwrap()
    }

    #[tokio::test]
    async fn only_the_right_password_of_a_known_user_counts() {
        let hash = bcrypt::hash_with_salt("secret", 4, *b"0123456789abcdef").unwrap().to_string();
        assert!(format!("anna:{hash}").starts_with(ANNA));
        let users = users(&format!("# people\nanna:{hash}\n")).unwrap();
        for _ in 0..2 {
            assert!(users.know(Some(&basic("anna:secret"))).await);
            assert!(!users.know(Some(&basic("anna:secreT"))).await);
            assert!(!users.know(Some(&basic("otto:secret"))).await);
            assert!(!users.know(Some(&"Bearer x".parse().unwrap())).await);
            assert!(!users.know(None).await);
        }
    }

    #[test]
    fn other_kinds_of_hashes_are_refused_with_the_fix() {
        let message = users("anna:$apr1$x$y\n").err().unwrap().to_string();
        assert!(message.contains("line 1") && message.contains("htpasswd -B"), "{message}");
        assert!(!message.contains("apr1"), "hashes are not shown: {message}");
        assert!(users("").is_err());
    }
}
