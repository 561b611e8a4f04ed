//! The queue for bcrypt comparisons. Only a few passwords are compared at a time, and client
//! addresses take turns, so an address that sends many wrong passwords delays only itself.

use landfall_model::locked;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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

/// Permission to compare a password now.
pub(super) struct PasswordTurn {
    _address: OwnedSemaphorePermit,
    _queue: OwnedSemaphorePermit,
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
        self.waiting().values().map(|queue| queue.count).sum()
    }

    /// Joins the queue; `None` if too many sign-ins of this address or of all addresses wait.
    pub(super) fn join(self: &Arc<SignInQueue>, address: IpAddr) -> Option<SignIn> {
        let address = network(address);
        let mut waiting = self.waiting();
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

    fn waiting(&self) -> MutexGuard<'_, HashMap<IpAddr, AddressQueue>> {
        locked(&self.waiting)
    }
}

impl SignIn {
    /// Waits for its turn. At most one sign-in of each address waits for the shared semaphore, so
    /// addresses take turns there, however many sign-ins each of them has.
    pub(super) async fn turn(&self) -> Option<PasswordTurn> {
        let address = self.turn.clone().acquire_owned().await.ok()?;
        let queue = self.queue.turns.clone().acquire_owned().await.ok()?;
        Some(PasswordTurn {
            _address: address,
            _queue: queue,
        })
    }
}

impl Drop for SignIn {
    fn drop(&mut self) {
        let mut waiting = self.queue.waiting();
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
    use std::sync::mpsc::channel;

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
        assert_eq!((queue.count(), queue.waiting().len()), (0, 0));
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
