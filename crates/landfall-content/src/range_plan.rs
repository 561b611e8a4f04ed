//! Which of several connections fetches which range of a blob.

use super::{ByteRange, merge_ranges};
use std::collections::BTreeMap;

/// Which connection fetches which range.
#[derive(Debug)]
pub(super) struct RangePlan {
    size: u64,
    /// The least that a helper takes, in bytes.
    least: u64,
    /// The work of the first connection: from where it stands, which everything is hashed up to, to
    /// its end.
    pub(super) first: ByteRange,
    /// The work of each helper.
    pub(super) helpers: BTreeMap<u64, Work>,
    /// What is there behind the first connection.
    done: Vec<ByteRange>,
    /// How many helpers there were.
    count: u64,
}

/// The work of a helper. Its end comes nearer when another takes the second half.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    from: u64,
    at: u64,
    pub(super) end: u64,
}

/// What the first connection does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Take in what is there, up to this offset.
    Absorb(u64),
    /// Wait for a helper.
    Wait,
    /// Fetch its work.
    Fetch,
}

impl RangePlan {
    pub(super) fn new(size: u64, at: u64, done: Vec<ByteRange>, least: u64) -> RangePlan {
        RangePlan {
            size,
            least,
            first: (at, at),
            helpers: BTreeMap::new(),
            done,
            count: 0,
        }
    }

    /// What the first connection does at `at`. Where that is fetching, its work is set.
    pub(super) fn next(&mut self, at: u64) -> Next {
        self.first = (at, at);
        if let Some((_, to)) = self.done.iter().find(|(from, to)| *from <= at && at < *to) {
            return Next::Absorb(*to);
        }
        match self
            .helpers
            .values()
            .find(|work| work.from <= at && at < work.end)
        {
            Some(work) if work.at > at => Next::Absorb(work.at),
            Some(_) => Next::Wait,
            None => {
                let taken = self.taken().into_iter().map(|(from, _)| from);
                self.first.1 = taken.filter(|from| *from > at).min().unwrap_or(self.size);
                Next::Fetch
            }
        }
    }

    /// What is there or somebody's work, the first connection's apart.
    fn taken(&self) -> Vec<ByteRange> {
        let helpers = self.helpers.values().map(|work| (work.from, work.end));
        self.done.iter().copied().chain(helpers).collect()
    }

    /// The largest of the ranges that no connection has and of the second halves of those that
    /// others still have to read, if it is worth a connection.
    pub(super) fn share(&self) -> Option<ByteRange> {
        let half = |(at, end): ByteRange| (at + (end - at).div_ceil(2), end);
        let halves = self
            .helpers
            .values()
            .map(|work| (work.at, work.end))
            .chain([self.first])
            .map(half);
        let mut taken = self.taken();
        taken.push((0, self.first.1));
        let taken = merge_ranges(taken);
        let ends = taken
            .iter()
            .skip(1)
            .map(|(from, _)| *from)
            .chain([self.size]);
        let gaps = taken.iter().map(|(_, to)| *to).zip(ends);
        halves
            .chain(gaps)
            .max_by_key(|(from, end)| end - from)
            .filter(|(from, end)| end - from >= self.least)
    }

    /// Gives a helper a number and its share: from where to begin.
    pub(super) fn take(&mut self) -> Option<(u64, u64)> {
        let (from, end) = self.share()?;
        if self.first.0 < from && self.first.1 == end {
            self.first.1 = from;
        }
        if let Some(work) = self
            .helpers
            .values_mut()
            .find(|work| work.at < from && work.end == end)
        {
            work.end = from;
        }
        self.count += 1;
        self.helpers.insert(
            self.count,
            Work {
                from,
                at: from,
                end,
            },
        );
        Some((self.count, from))
    }

    /// The first connection came to `at`. Where another took the second half meanwhile, `at` may
    /// lie past the end.
    pub(super) fn first_at(&mut self, at: u64) {
        self.first.0 = at.min(self.first.1);
    }

    /// A helper came to `at`, past its end maybe, as above.
    pub(super) fn helper_at(&mut self, helper: u64, at: u64) {
        if let Some(work) = self.helpers.get_mut(&helper) {
            work.at = at.min(work.end);
        }
    }

    /// A helper reached its end, or broke off: what it brought is there, and no connection has the
    /// rest.
    pub(super) fn end(&mut self, helper: u64) {
        if let Some(work) = self.helpers.remove(&helper) {
            self.done.push((work.from, work.at));
            self.done = merge_ranges(std::mem::take(&mut self.done));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = 1 << 20;

    #[test]
    fn helpers_take_second_halves_and_what_nobody_does() {
        let mut plan = RangePlan::new(128 * M, 0, vec![(96 * M, 112 * M)], 8 * M);
        assert_eq!(plan.next(0), Next::Fetch);
        assert_eq!(plan.first, (0, 96 * M));
        assert_eq!(plan.take(), Some((1, 48 * M)));
        assert_eq!(plan.first, (0, 48 * M));
        // half of 48 MiB twice, and 16 MiB at the end
        assert_eq!(plan.share().map(|(from, end)| end - from), Some(24 * M));
        let shares: Vec<u64> = std::iter::from_fn(|| plan.take())
            .map(|(_, from)| from / M)
            .collect();
        assert!(shares.contains(&112), "{shares:?}");
        assert!(plan.share().is_none_or(|(from, end)| end - from >= 8 * M));
        let mut all: Vec<ByteRange> = plan.taken();
        all.push(plan.first);
        assert_eq!(merge_ranges(all), [(0, 128 * M)]);
    }

    #[test]
    fn the_first_connection_takes_in_what_helpers_brought() {
        let mut plan = RangePlan::new(64 * M, 0, vec![], 8 * M);
        plan.next(0);
        let (helper, from) = plan.take().unwrap();
        assert_eq!((from, plan.first.1), (32 * M, 32 * M));
        assert_eq!(plan.next(from), Next::Wait);
        plan.helper_at(helper, 40 * M);
        assert_eq!(plan.next(from), Next::Absorb(40 * M));
        // it breaks off: what it brought stays, the rest is fetched
        plan.end(helper);
        assert_eq!(plan.next(from), Next::Absorb(40 * M));
        assert_eq!(
            (plan.next(40 * M), plan.first),
            (Next::Fetch, (40 * M, 64 * M))
        );
    }

    /// A piece under way when another took the second half ends behind the new end.
    #[test]
    fn what_comes_after_the_end_was_moved_is_not_counted() {
        let mut plan = RangePlan::new(64 * M, 0, vec![], 4 * M);
        plan.next(0);
        let (helper, from) = plan.take().unwrap();
        let shares = [from, plan.take().unwrap().1, plan.take().unwrap().1];
        assert_eq!(shares, [32 * M, 16 * M, 48 * M]);
        plan.first_at(17 * M);
        plan.helper_at(helper, 50 * M);
        assert_eq!(plan.first, (16 * M, 16 * M));
        assert_eq!(plan.share(), Some((56 * M, 64 * M)));
        plan.end(helper);
        assert_eq!(plan.next(32 * M), Next::Absorb(48 * M));
    }
}
