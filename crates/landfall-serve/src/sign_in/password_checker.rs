//! Remembers which passwords matched their bcrypt hashes and which did not. bcrypt is slow on
//! purpose, and a push makes hundreds of requests. No password is kept: only an HMAC of it, with a
//! key of this process.

use landfall_model::locked;
use ring::hmac;
use ring::rand::SystemRandom;
use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

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
            let mut outcomes = locked(&self.outcomes);
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
        let mut outcomes = locked(&self.outcomes);
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
}

// The queue for bcrypt comparisons. Only a few passwords are compared at a time, and client
// addresses take turns, so an address that sends many wrong passwords delays only itself.

/// The number of simultaneous bcrypt comparisons: wrong passwords must not use up all cores.
const AT_ONCE: usize = 2;

/// The sign-ins that wait for a bcrypt comparison.
pub(crate) struct SignInQueue {
    max_waiting: usize,
    max_per_address: usize,
    turns: Arc<Semaphore>,
    waiting: Mutex<HashMap<IpAddr, AddressQueue>>,
}

/// The sign-ins of one address.
struct AddressQueue {
    count: usize,
    turn: Arc<Semaphore>,
}

/// A sign-in that waits or has its turn. Dropping it leaves the queue.
pub(super) struct SignIn {
    queue: Arc<SignInQueue>,
    address: IpAddr,
    turn: Arc<Semaphore>,
}

impl SignInQueue {
    /// A queue for a server with this many connections. Each sign-in occupies a connection, so the
    /// queue has room for a quarter of the connections, or for 4 sign-ins if a quarter is less.
    pub(crate) fn new(connections: usize) -> SignInQueue {
        // other clients must still be able to connect while many wait for their turn
        let max_waiting = (connections / 4).max(4);
        SignInQueue {
            max_waiting,
            // one address must not fill the queue
            max_per_address: (max_waiting / 8).max(4),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            waiting: Mutex::default(),
        }
    }

    /// The number of sign-ins that wait or have their turn.
    pub(crate) fn count(&self) -> usize {
        locked(&self.waiting)
            .values()
            .map(|queue| queue.count)
            .sum()
    }

    /// Joins the queue; `None` if too many sign-ins of this address or of all addresses wait.
    pub(super) fn join(self: &Arc<SignInQueue>, address: IpAddr) -> Option<SignIn> {
        let address = network(address);
        let mut waiting = locked(&self.waiting);
        let all: usize = waiting.values().map(|queue| queue.count).sum();
        // looked up without an insertion, because a refused address must not stay in the map
        let count = waiting.get(&address).map_or(0, |queue| queue.count);
        // refused at once: clients give up after a while, so a longer wait would only occupy
        // connections
        if all >= self.max_waiting || count >= self.max_per_address {
            return None;
        }
        let queue = waiting.entry(address).or_insert_with(|| AddressQueue {
            count: 0,
            turn: Arc::new(Semaphore::new(1)),
        });
        queue.count += 1;
        Some(SignIn {
            queue: self.clone(),
            address,
            turn: queue.turn.clone(),
        })
    }
}

impl SignIn {
    /// Waits for its turn. At most one sign-in of each address waits for the shared semaphore, so
    /// addresses take turns there, however many sign-ins each of them has.
    pub(super) async fn turn(&self) -> Option<[OwnedSemaphorePermit; 2]> {
        let address = self.turn.clone().acquire_owned().await.ok()?;
        let queue = self.queue.turns.clone().acquire_owned().await.ok()?;
        Some([address, queue])
    }
}

impl Drop for SignIn {
    fn drop(&mut self) {
        let mut waiting = locked(&self.queue.waiting);
        if let Some(queue) = waiting.get_mut(&self.address) {
            queue.count -= 1;
            if queue.count == 0 {
                // otherwise the map would grow with every address that ever signed in
                waiting.remove(&self.address);
            }
        }
    }
}

/// The address, or for IPv6 its /64 network: one client may have a whole /64 to itself.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(
            address.to_bits() & !u128::from(u64::MAX),
        )),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use std::sync::mpsc::channel;

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
        let outcomes = locked(&passwords.outcomes);
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
        let outcomes = locked(&passwords.outcomes);
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

    #[tokio::test]
    async fn addresses_take_turns_regardless_of_their_number_of_sign_ins() {
        let queue = Arc::new(SignInQueue::new(4096));
        let other: IpAddr = [10, 0, 0, 9].into();
        let held = (
            queue.turns.clone().acquire_owned().await,
            queue.turns.clone().acquire_owned().await,
        );
        let (report, results) = channel();
        let tasks: Vec<_> = (0..20)
            .map(|_| IpAddr::from([10, 0, 0, 1]))
            .chain([other])
            .map(|address| {
                let sign_in = queue.join(address).unwrap();
                let report = report.clone();
                tokio::spawn(async move {
                    let turn = sign_in.turn().await;
                    report.send(address).unwrap();
                    drop(turn);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        assert_eq!(queue.count(), 21);
        drop(held);
        for task in tasks {
            task.await.unwrap();
        }
        let order: Vec<IpAddr> = results.try_iter().collect();
        let at = order.iter().position(|address| *address == other);
        assert!(at.is_some_and(|at| at < 3), "{at:?} of {}", order.len());
        assert_eq!((queue.count(), locked(&queue.waiting).len()), (0, 0));
    }

    #[test]
    fn the_queue_is_bounded_for_each_address_and_for_all() {
        let queue = Arc::new(SignInQueue::new(256));
        let join = |count: usize, address: IpAddr| -> Vec<SignIn> {
            (0..count).map_while(|_| queue.join(address)).collect()
        };
        let first = join(100, [10, 0, 0, 1].into());
        assert_eq!(first.len(), 8);
        let all: Vec<Vec<SignIn>> = (2..100)
            .map(|last| join(100, [10, 0, 0, last].into()))
            .collect();
        assert_eq!(first.len() + all.iter().map(Vec::len).sum::<usize>(), 64);
        drop(first);
        assert_eq!(join(100, [10, 1, 0, 0].into()).len(), 8);
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }
}
