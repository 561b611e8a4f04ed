//! Remembers which passwords matched their bcrypt hashes and which did not. bcrypt is slow on
//! purpose, and a push makes hundreds of requests. No password is kept: only an HMAC of it, with a
//! key of this process.

use super::queue::SignInQueue;
use landfall_model::locked;
use ring::hmac;
use ring::rand::SystemRandom;
use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// The number of wrong passwords that are remembered.
const WRONG: usize = 4096;

/// The HMAC of a user and a password.
type PasswordKey = [u8; 32];

/// The outcomes of earlier comparisons, and the comparisons in progress.
pub(super) struct PasswordChecker {
    secret: hmac::Key,
    outcomes: Mutex<PasswordOutcomes>,
    /// The number of bcrypt comparisons.
    pub(super) compared: AtomicU64,
}

#[derive(Default)]
struct PasswordOutcomes {
    /// For each user who has signed in, the key of the right password. Wrong passwords have a set
    /// of their own, so that guessing cannot evict the right ones.
    right: HashMap<String, PasswordKey>,
    wrong: HashSet<PasswordKey>,
    /// The keys in `wrong`, oldest first.
    wrong_in_order: VecDeque<PasswordKey>,
    in_progress: HashMap<PasswordKey, watch::Receiver<Option<bool>>>,
}

/// The bcrypt hash with which a password is compared.
#[derive(Clone, Copy)]
pub(super) enum PasswordHash<'h> {
    OfUser(&'h str),
    /// The user does not exist: the comparison takes as long, but no password is right.
    OfAnother(&'h str),
}

/// The error if too many sign-ins are waiting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooManySignIns;

impl PasswordChecker {
    /// A checker that remembers nothing yet. Fails if the system provides no random numbers.
    pub(super) fn new() -> Result<Arc<PasswordChecker>, ring::error::Unspecified> {
        let secret = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())?;
        Ok(Arc::new(PasswordChecker {
            secret,
            outcomes: Mutex::default(),
            compared: AtomicU64::new(0),
        }))
    }

    /// Whether `password` matches `hash` and `hash` belongs to `user`. If the same comparison is
    /// already in progress, this call waits for its outcome. Fails if too many sign-ins wait in
    /// `queue`.
    pub(super) async fn is_right(
        self: &Arc<PasswordChecker>,
        user: &str,
        password: Vec<u8>,
        hash: PasswordHash<'_>,
        queue: &Arc<SignInQueue>,
        address: IpAddr,
    ) -> Result<bool, TooManySignIns> {
        let key = self.key(user, &password);
        let (mut outcome, _waiting) = {
            let mut outcomes = self.outcomes();
            if outcomes.right.get(user) == Some(&key) {
                return Ok(true);
            }
            if outcomes.wrong.contains(&key) {
                return Ok(false);
            }
            let sign_in = queue.join(address).ok_or(TooManySignIns)?;
            match outcomes.in_progress.get(&key) {
                // this request counts as waiting, too: each waiting request holds a connection
                Some(outcome) => (outcome.clone(), Some(sign_in)),
                None => {
                    let (sender, outcome) = watch::channel(None);
                    outcomes.in_progress.insert(key, outcome.clone());
                    let checker = self.clone();
                    let user = user.to_owned();
                    let (hash, exists) = match hash {
                        PasswordHash::OfUser(hash) => (hash.to_owned(), true),
                        PasswordHash::OfAnother(hash) => (hash.to_owned(), false),
                    };
                    // in its own task, which holds its turn to the end: if the client disconnects,
                    // the bcrypt comparison still runs and must still count
                    tokio::spawn(async move {
                        let turn = sign_in.turn().await;
                        checker.compared.fetch_add(1, Ordering::Relaxed);
                        let comparing = tokio::task::spawn_blocking(move || {
                            bcrypt::verify(password, &hash).unwrap_or(false)
                        });
                        // without `exists`, the password of another user would be remembered as
                        // right for any number of invented names, and fill the memory
                        let is_right = comparing.await.unwrap_or(false) && exists;
                        // released first: the waiting requests may sign in again as soon as they
                        // continue
                        drop((turn, sign_in));
                        checker.remember(user, key, is_right);
                        let _ = sender.send(Some(is_right));
                    });
                    (outcome, None)
                }
            }
        };
        let outcome = outcome.wait_for(Option::is_some).await;
        Ok(outcome.is_ok_and(|outcome| *outcome == Some(true)))
    }

    fn key(&self, user: &str, password: &[u8]) -> PasswordKey {
        let mut context = hmac::Context::with_key(&self.secret);
        // the length first, so that ("ab", "c") and ("a", "bc") have different keys
        context.update(&(user.len() as u64).to_le_bytes());
        context.update(user.as_bytes());
        context.update(password);
        let mut key = PasswordKey::default();
        key.copy_from_slice(context.sign().as_ref());
        key
    }

    fn remember(&self, user: String, key: PasswordKey, is_right: bool) {
        let mut outcomes = self.outcomes();
        outcomes.in_progress.remove(&key);
        if is_right {
            outcomes.right.insert(user, key);
        } else if outcomes.wrong.insert(key) {
            outcomes.wrong_in_order.push_back(key);
            if outcomes.wrong_in_order.len() > WRONG
                && let Some(oldest) = outcomes.wrong_in_order.pop_front()
            {
                outcomes.wrong.remove(&oldest);
            }
        }
    }

    fn outcomes(&self) -> MutexGuard<'_, PasswordOutcomes> {
        locked(&self.outcomes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn hash(password: &str) -> String {
        bcrypt::hash_with_salt(password, 4, *b"0123456789abcdef")
            .unwrap()
            .to_string()
    }

    async fn ask(
        passwords: &Arc<PasswordChecker>,
        queue: &Arc<SignInQueue>,
        password: &str,
    ) -> Result<bool, TooManySignIns> {
        passwords
            .is_right(
                "anna",
                password.into(),
                PasswordHash::OfUser(&hash("secret")),
                queue,
                HERE,
            )
            .await
    }

    #[tokio::test]
    async fn invented_user_names_are_not_remembered_with_the_password_of_another_user() {
        let passwords = PasswordChecker::new().unwrap();
        let queue = Arc::new(SignInQueue::new(4096));
        let hash = hash("secret");
        for user in ["otto", "hugo"] {
            let hash = PasswordHash::OfAnother(&hash);
            let password = b"secret".to_vec();
            let is_right = passwords.is_right(user, password, hash, &queue, HERE);
            assert_eq!(is_right.await, Ok(false));
        }
        let outcomes = passwords.outcomes();
        assert!(outcomes.right.is_empty());
        assert_eq!(
            (outcomes.wrong.len(), outcomes.wrong_in_order.len()),
            (2, 2)
        );
    }

    #[tokio::test]
    async fn concurrent_checks_of_one_password_compute_its_hash_once() {
        let passwords = PasswordChecker::new().unwrap();
        let queue = Arc::new(SignInQueue::new(4096));
        for (password, is_right, compared) in [("secret", true, 1), ("wrong", false, 2)] {
            for _ in 0..2 {
                let requests = (0..50).map(|_| ask(&passwords, &queue, password));
                assert!(
                    join_all(requests)
                        .await
                        .iter()
                        .all(|found| *found == Ok(is_right))
                );
                assert_eq!(
                    passwords.compared.load(Ordering::Relaxed),
                    compared,
                    "{password}"
                );
            }
        }
        assert_eq!(queue.count(), 0);
    }

    #[tokio::test]
    async fn wrong_passwords_do_not_evict_right_ones_and_are_bounded() {
        let passwords = PasswordChecker::new().unwrap();
        let queue = Arc::new(SignInQueue::new(4096));
        assert_eq!(ask(&passwords, &queue, "secret").await, Ok(true));
        for number in 0..=WRONG {
            let key = passwords.key("anna", number.to_string().as_bytes());
            passwords.remember("anna".into(), key, false);
        }
        assert_eq!(ask(&passwords, &queue, "secret").await, Ok(true));
        assert_eq!(passwords.compared.load(Ordering::Relaxed), 1);
        let outcomes = passwords.outcomes();
        assert_eq!(
            (outcomes.wrong.len(), outcomes.wrong_in_order.len()),
            (WRONG, WRONG)
        );
    }

    #[tokio::test]
    async fn known_passwords_skip_the_queue_and_a_full_queue_refuses_unknown_ones() {
        let passwords = PasswordChecker::new().unwrap();
        let queue = Arc::new(SignInQueue::new(4096));
        assert_eq!(ask(&passwords, &queue, "secret").await, Ok(true));
        let held: Vec<_> = std::iter::from_fn(|| queue.join(HERE)).collect();
        assert_eq!(ask(&passwords, &queue, "other").await, Err(TooManySignIns));
        assert_eq!(ask(&passwords, &queue, "secret").await, Ok(true));
        drop(held);
        assert_eq!(ask(&passwords, &queue, "other").await, Ok(false));
    }
}
