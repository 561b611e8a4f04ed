//! What clients asked for and did not get, so that the next bundle can have it.

use jiff::Timestamp;
use landfall_item::RequestedName;
use landfall_model::locked;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The maximum number of names in the list. A name has at most 1 KiB.
const MAX_NAMES: usize = 500;

/// The maximum number of addresses that are kept for a name.
const MAX_CLIENTS: usize = 8;

/// A name that clients asked for and that the server did not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Miss {
    /// The path of the first request, to look it up again.
    pub(crate) path: String,
    pub(crate) count: u64,
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    /// The first [`MAX_CLIENTS`] addresses that asked for it.
    pub(crate) clients: BTreeSet<IpAddr>,
}

/// The misses since the start of the server. Its memory is bounded: the name that was asked for
/// least recently makes room for a new one.
#[derive(Default)]
pub(crate) struct MissList {
    by_name: Mutex<BTreeMap<RequestedName, Miss>>,
    /// The number of names that made room for others.
    dropped: AtomicU64,
}

impl MissList {
    /// Records that `client` asked for `requested` at `now`, by `path`.
    pub(crate) fn record(
        &self,
        requested: RequestedName,
        path: &str,
        client: IpAddr,
        now: Timestamp,
    ) {
        let mut misses = locked(&self.by_name);
        if !misses.contains_key(&requested) && misses.len() >= MAX_NAMES {
            let oldest = misses.iter().min_by_key(|(_, miss)| miss.last);
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                misses.remove(&name);
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
        let miss = misses.entry(requested).or_insert_with(|| Miss {
            path: path.to_owned(),
            count: 0,
            first: now,
            last: now,
            clients: BTreeSet::new(),
        });
        miss.count += 1;
        miss.last = now;
        if miss.clients.len() < MAX_CLIENTS {
            // an IPv4 client of an IPv6 socket is shown by its IPv4 address
            miss.clients.insert(client.to_canonical());
        }
    }

    /// Returns the misses, those with most requests first, and the number of names that were
    /// dropped.
    pub(crate) fn list(&self) -> (Vec<(RequestedName, Miss)>, u64) {
        let misses = locked(&self.by_name);
        let mut list: Vec<_> = misses.clone().into_iter().collect();
        // stable: equal counts stay in the order of names
        list.sort_by_key(|(_, miss)| Reverse(miss.count));
        (list, self.dropped.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::report::EntryKind;

    #[test]
    fn the_list_is_bounded_and_keeps_what_was_asked_for_last() {
        let list = MissList::default();
        let ask = |name: &str, client: u8, second: i64| {
            let requested = RequestedName {
                kind: EntryKind::Image,
                name: name.into(),
                host: None,
            };
            let client = IpAddr::from([10, 0, 0, client]);
            let now = Timestamp::from_second(second).unwrap();
            list.record(requested, name, client, now);
        };
        for client in 0..20 {
            ask("often", client, 1_000_000);
        }
        for number in 0..MAX_NAMES {
            ask(&format!("n{number}"), 1, number as i64);
        }
        let (misses, dropped) = list.list();
        assert_eq!((misses.len(), dropped), (MAX_NAMES, 1));
        let (requested, miss) = &misses[0];
        assert_eq!(requested.name, "often");
        assert_eq!((miss.count, miss.clients.len()), (20, MAX_CLIENTS));
        assert!(!misses.iter().any(|(requested, _)| requested.name == "n0"));
    }
}
