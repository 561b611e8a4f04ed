//! Which passwords were compared with their bcrypt hashes before, and how that ended. bcrypt is
//! slow on purpose, and a push makes hundreds of requests. No password is kept: only a keyed hash,
//! whose key is that of this process.

use super::sign_in_queue::SignInQueue;
use ring::hmac;
use ring::rand::SystemRandom;
use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// How many wrong passwords are remembered.
const WRONG: usize = 4096;

/// A user and a password.
type Key = [u8; 32];

/// The outcomes of earlier comparisons, and those under way.
pub(super) struct Passwords {
    secret: hmac::Key,
    outcomes: Mutex<Outcomes>,
    /// How many passwords were compared by bcrypt.
    pub(super) compared: AtomicU64,
}

#[derive(Default)]
struct Outcomes {
    /// The password of each user that has signed in: wrong ones cannot drive these out.
    right: HashMap<String, Key>,
    wrong: HashSet<Key>,
    /// The same, the oldest first.
    wrong_in_order: VecDeque<Key>,
    under_way: HashMap<Key, watch::Receiver<Option<bool>>>,
}

/// Too many sign-ins wait already.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl Passwords {
    /// Nothing is known.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub(super) fn new() -> Result<Arc<Passwords>, ring::error::Unspecified> {
        let secret = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())?;
        let (outcomes, compared) = (Mutex::default(), AtomicU64::new(0));
        Ok(Arc::new(Passwords {
            secret,
            outcomes,
            compared,
        }))
    }

    /// Whether `password` has the bcrypt hash `hash`, which is that of `user`, or of somebody else
    /// if nobody is called so. Who asks for one that is being compared waits for that.
    ///
    /// # Errors
    /// When too many wait in `queue` to ask for a new one.
    pub(super) async fn is_right(
        self: &Arc<Passwords>,
        user: &str,
        password: Vec<u8>,
        hash: &str,
        queue: &Arc<SignInQueue>,
        address: IpAddr,
    ) -> Result<bool, TooMany> {
        let key = self.key(user, &password);
        let (mut outcome, _waits) = {
            let mut outcomes = self.outcomes();
            if outcomes.right.get(user) == Some(&key) {
                return Ok(true);
            }
            if outcomes.wrong.contains(&key) {
                return Ok(false);
            }
            let sign_in = queue.join(address).ok_or(TooMany)?;
            match outcomes.under_way.get(&key) {
                Some(outcome) => (outcome.clone(), Some(sign_in)),
                None => {
                    let (tell, outcome) = watch::channel(None);
                    outcomes.under_way.insert(key, outcome.clone());
                    let (passwords, user, hash) = (self.clone(), user.to_owned(), hash.to_owned());
                    // a task of its own: a client that hangs up must not leave bcrypt running
                    // uncounted
                    tokio::spawn(async move {
                        let turn = sign_in.turn().await;
                        passwords.compared.fetch_add(1, Ordering::Relaxed);
                        let compare = move || bcrypt::verify(password, &hash).unwrap_or(false);
                        let is_right = tokio::task::spawn_blocking(compare).await.unwrap_or(false);
                        drop((turn, sign_in));
                        passwords.remember(user, key, is_right);
                        let _ = tell.send(Some(is_right));
                    });
                    (outcome, None)
                }
            }
        };
        let found = outcome.wait_for(Option::is_some).await;
        Ok(found.is_ok_and(|found| *found == Some(true)))
    }

    fn key(&self, user: &str, password: &[u8]) -> Key {
        let mut context = hmac::Context::with_key(&self.secret);
        context.update(&(user.len() as u64).to_le_bytes());
        context.update(user.as_bytes());
        context.update(password);
        let mut key = Key::default();
        key.copy_from_slice(context.sign().as_ref());
        key
    }

    fn remember(&self, user: String, key: Key, is_right: bool) {
        let mut outcomes = self.outcomes();
        outcomes.under_way.remove(&key);
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

    fn outcomes(&self) -> MutexGuard<'_, Outcomes> {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner)
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
        passwords: &Arc<Passwords>,
        queue: &Arc<SignInQueue>,
        password: &str,
    ) -> Result<bool, TooMany> {
        passwords
            .is_right("anna", password.into(), &hash("secret"), queue, HERE)
            .await
    }

    #[tokio::test]
    async fn each_password_is_compared_once_right_or_wrong_however_many_ask_at_once() {
        let (passwords, queue) = (Passwords::new().unwrap(), Arc::new(SignInQueue::new(4096)));
        for (password, is_right, compared) in [("secret", true, 1), ("wrong", false, 2)] {
            for _ in 0..2 {
                let asked = (0..50).map(|_| ask(&passwords, &queue, password));
                assert!(
                    join_all(asked)
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
    async fn wrong_passwords_neither_drive_out_the_right_one_nor_grow_without_bound() {
        let (passwords, queue) = (Passwords::new().unwrap(), Arc::new(SignInQueue::new(4096)));
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
    async fn who_has_signed_in_does_not_wait_for_others_and_too_many_others_are_sent_away() {
        let (passwords, queue) = (Passwords::new().unwrap(), Arc::new(SignInQueue::new(4096)));
        assert_eq!(ask(&passwords, &queue, "secret").await, Ok(true));
        let held: Vec<_> = std::iter::from_fn(|| queue.join(HERE)).collect();
        assert_eq!(ask(&passwords, &queue, "other").await, Err(TooMany));
        assert_eq!(ask(&passwords, &queue, "secret").await, Ok(true));
        drop(held);
        assert_eq!(ask(&passwords, &queue, "other").await, Ok(false));
    }
}
