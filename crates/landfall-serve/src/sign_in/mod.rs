//! Authentication of API clients: the users of password files and their rights, and the queue for
//! comparing passwords.

mod password_checker;

use self::password_checker::{PasswordChecker, PasswordHash, TooManySignIns};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use landfall_model::Failure;
use landfall_model::document::read_text_input;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) use self::password_checker::SignInQueue;

/// The right of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessRight {
    /// Pull images and other content.
    Read,
    /// Pull, push and delete content.
    Push,
}

/// The user of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuthenticatedUser {
    /// The user name; `None` for an anonymous request.
    pub(crate) user: Option<String>,
    pub(crate) right: AccessRight,
}

/// The users of one or more password files.
pub struct HtpasswdUsers {
    accounts: BTreeMap<String, (AccessRight, String)>,
    /// The right of requests without credentials.
    anonymous: Option<AccessRight>,
    passwords: Arc<PasswordChecker>,
}

impl HtpasswdUsers {
    /// Reads files of `user:hash` lines; each file grants its right to all its users. Only bcrypt
    /// hashes are accepted, as in other registries.
    ///
    /// # Errors
    /// Fails if a file cannot be read, contains no user, contains a user twice, contains a user of
    /// another file, or contains a hash that is not bcrypt; or if the system provides no random
    /// numbers.
    pub fn load(
        files: &[(&Path, AccessRight)],
        anonymous: Option<AccessRight>,
    ) -> Result<HtpasswdUsers, Failure> {
        let mut accounts: BTreeMap<String, (AccessRight, String)> = BTreeMap::new();
        for &(path, right) in files {
            let text =
                read_text_input(path).map_err(|error| invalid_file(path, error.to_string()))?;
            for (user, hash) in parse_accounts(&text).map_err(|why| invalid_file(path, why))? {
                let other = accounts.insert(user.clone(), (right, hash));
                // it is not known which of the two passwords and rights is meant
                if other.is_some() {
                    let why = format!("the user {user} is in another password file too");
                    return Err(invalid_file(path, why));
                }
            }
        }
        Ok(HtpasswdUsers {
            accounts,
            anonymous,
            passwords: PasswordChecker::new().map_err(|_| {
                let why = "the system provides no random numbers";
                Failure::failed(format!("cannot start with --htpasswd: {why}"))
            })?,
        })
    }

    /// The user that an `Authorization` header from `address` authenticates; `None` if it grants
    /// no access. Fails if too many sign-ins wait in `queue`.
    pub(crate) async fn authenticate(
        &self,
        header: Option<&HeaderValue>,
        queue: &Arc<SignInQueue>,
        address: IpAddr,
    ) -> Result<Option<AuthenticatedUser>, TooManySignIns> {
        let Some(header) = header else {
            return Ok(self.anonymous_user());
        };
        let Some((user, password)) = parse_credentials(header) else {
            return Ok(None);
        };
        if user.is_empty() && password.is_empty() {
            // some clients answer a challenge with empty credentials if they have no account
            return Ok(self.anonymous_user());
        }
        let account = self.accounts.get(&user);
        // a hash is computed for an unknown user too, at the highest cost: otherwise the response
        // time would show which user names exist
        let costliest = self
            .accounts
            .values()
            .max_by_key(|(_, hash)| bcrypt_cost(hash));
        let hash = match (account, costliest) {
            (Some((_, hash)), _) => PasswordHash::OfUser(hash),
            (None, Some((_, hash))) => PasswordHash::OfAnother(hash),
            (None, None) => return Ok(None),
        };
        let is_right = self
            .passwords
            .is_right(&user, password, hash, queue, address)
            .await?;
        let Some(&(right, _)) = account.filter(|_| is_right) else {
            return Ok(None);
        };
        Ok(Some(AuthenticatedUser {
            user: Some(user),
            right,
        }))
    }

    /// Whether requests without credentials are allowed.
    pub(crate) fn allows_anonymous(&self) -> bool {
        self.anonymous.is_some()
    }

    /// The number of bcrypt comparisons so far.
    pub(crate) fn passwords_compared(&self) -> u64 {
        self.passwords.compared.load(Ordering::Relaxed)
    }

    fn anonymous_user(&self) -> Option<AuthenticatedUser> {
        Some(AuthenticatedUser {
            user: None,
            right: self.anonymous?,
        })
    }
}

/// The cost of a bcrypt hash such as `$2y$10$…`, two digits.
fn bcrypt_cost(hash: &str) -> Option<&str> {
    hash.split('$').nth(2)
}

fn invalid_file(path: &Path, why: String) -> Failure {
    let path = path.display();
    Failure::usage(format!("cannot use the password file {path}: {why}"))
}

/// User name and bcrypt hash of each line.
fn parse_accounts(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut accounts = Vec::new();
    let mut known = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((user, hash)) = line.split_once(':').filter(|(_, hash)| is_bcrypt(hash)) else {
            return Err(format!(
                "line {} has no bcrypt hash; create it with `htpasswd -B` (no other hash is \
                 accepted)",
                index + 1
            ));
        };
        if !known.insert(user) {
            return Err(format!(
                "line {} has the user {user} again; keep one",
                index + 1
            ));
        }
        accounts.push((user.to_owned(), hash.to_owned()));
    }
    if accounts.is_empty() {
        return Err("it contains no user".into());
    }
    Ok(accounts)
}

/// Whether `hash` is a complete bcrypt hash: `$2y$`, `$2a$` or `$2b$`, two digits for the cost,
/// `$`, 22 characters of salt and 31 of the hash. With a truncated hash, its user could never sign
/// in.
fn is_bcrypt(hash: &str) -> bool {
    let prefixes = ["$2y$", "$2a$", "$2b$"];
    let rest = prefixes.iter().find_map(|one| hash.strip_prefix(one));
    let Some((cost, value)) = rest.and_then(|rest| rest.split_once('$')) else {
        return false;
    };
    let is_cost = cost.len() == 2 && matches!(cost.parse::<u8>(), Ok(4..=31));
    let is_value = |c: char| c.is_ascii_alphanumeric() || "./".contains(c);
    is_cost && value.len() == 53 && value.chars().all(is_value)
}

/// Parses `bytes` as a password file and as an `Authorization` header, for fuzzing.
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub fn fuzz(bytes: &[u8]) {
    let _ = parse_accounts(&String::from_utf8_lossy(bytes));
    let _ = HeaderValue::from_bytes(bytes)
        .ok()
        .and_then(|header| parse_credentials(&header));
}

/// User name and password of `Basic <base64>`, or of a token of this server, `Bearer <base64>`.
fn parse_credentials(header: &HeaderValue) -> Option<(String, Vec<u8>)> {
    let (scheme, value) = header.to_str().ok()?.split_once(' ')?;
    if !["basic", "bearer"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
    {
        return None;
    }
    let text = STANDARD.decode(value.trim()).ok()?;
    // the first colon: a user name has none, a password may (RFC 7617, section 2)
    let colon = text.iter().position(|&byte| byte == b':')?;
    let user = String::from_utf8(text[..colon].to_vec()).ok()?;
    Some((user, text[colon + 1..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How the line of the user anna begins if her password is hashed with cost 4.
    const ANNA: &str = "anna:$2b$04$";

    fn users(
        texts: &[(&str, AccessRight)],
        anonymous: Option<AccessRight>,
    ) -> Result<HtpasswdUsers, Failure> {
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

    async fn authenticate(
        users: &HtpasswdUsers,
        header: Option<&HeaderValue>,
    ) -> Option<AuthenticatedUser> {
        let queue = Arc::new(SignInQueue::new(100));
        users
            .authenticate(header, &queue, IpAddr::from([127, 0, 0, 1]))
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

    #[test]
    fn a_user_with_two_passwords_is_refused() {
        let first = hash("first");
        let second = hash("second");
        let text = format!("anna:{first}\n\nanna:{second}\n");
        let twice = users(&[(&text, AccessRight::Push)], None).err().unwrap();
        assert!(
            twice.to_string().contains("line 3 has the user anna again"),
            "{twice}"
        );
        let one = format!("anna:{first}\n");
        let other = format!("anna:{second}\n");
        let files = [(&*one, AccessRight::Push), (&*other, AccessRight::Push)];
        assert!(users(&files, None).is_err());
    }

    #[tokio::test]
    async fn only_the_right_password_of_a_known_user_is_accepted() {
        let hash = hash("secret");
        assert!(format!("anna:{hash}").starts_with(ANNA));
        let users = users(
            &[(&format!("# people\nanna:{hash}\n"), AccessRight::Push)],
            None,
        )
        .unwrap();
        for _ in 0..2 {
            let anna = authenticate(&users, Some(&basic("anna:secret")))
                .await
                .unwrap();
            assert_eq!(
                anna,
                AuthenticatedUser {
                    user: Some("anna".into()),
                    right: AccessRight::Push
                }
            );
            for wrong in ["anna:secreT", "otto:secret", ":"] {
                assert_eq!(authenticate(&users, Some(&basic(wrong))).await, None);
            }
            assert_eq!(
                authenticate(&users, Some(&"Bearer x".parse().unwrap())).await,
                None
            );
            assert_eq!(authenticate(&users, None).await, None);
        }
    }

    #[tokio::test]
    async fn anonymous_clients_may_read_if_allowed_and_wrong_passwords_are_refused() {
        let pushers = format!("anna:{}", hash("a"));
        let readers = format!("otto:{}", hash("o"));
        let files = [
            (&*pushers, AccessRight::Push),
            (&*readers, AccessRight::Read),
        ];
        let users = users(&files, Some(AccessRight::Read)).unwrap();
        let right = async |header: Option<HeaderValue>| {
            Some(authenticate(&users, header.as_ref()).await?.right)
        };
        assert_eq!(right(None).await, Some(AccessRight::Read));
        assert_eq!(right(Some(basic(":"))).await, Some(AccessRight::Read));
        let token = |text: &str| format!("Bearer {}", STANDARD.encode(text)).parse().unwrap();
        assert_eq!(right(Some(token(":"))).await, Some(AccessRight::Read));
        assert_eq!(right(Some(token("anna:a"))).await, Some(AccessRight::Push));
        assert_eq!(right(Some(token("anna:b"))).await, None);
        assert_eq!(right(Some(basic("anna:a"))).await, Some(AccessRight::Push));
        assert_eq!(right(Some(basic("otto:o"))).await, Some(AccessRight::Read));
        assert_eq!(right(Some(basic("otto:a"))).await, None);
    }

    #[test]
    fn hashes_that_are_not_bcrypt_are_refused_with_advice() {
        let of = |text: &str| users(&[(text, AccessRight::Push)], None);
        let message = of("anna:$apr1$x$y\n").err().unwrap().to_string();
        assert!(
            message.contains("line 1") && message.contains("htpasswd -B"),
            "{message}"
        );
        assert!(!message.contains("apr1"), "hashes are not shown: {message}");
        assert!(of("").is_err());
        let whole = format!("anna:{}", hash("a"));
        assert!(of(&whole).is_ok());
        let truncated = &whole[..whole.len() - 1];
        let cost = whole.replace("$04$", "$4x$");
        for text in ["anna:$2y$", truncated, &format!("{truncated}!"), &cost] {
            let message = of(text).err().unwrap().to_string();
            assert!(message.contains("line 1 has no bcrypt hash"), "{message}");
        }
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
