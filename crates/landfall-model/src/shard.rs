//! Sharding: several runners handle one lock, each a part of it. The split depends only on the
//! parts and their sizes, so all machines compute the same one without coordination.

use super::{Failure, Limits};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::str::FromStr;

/// The cost of a request besides its bytes, in bytes: about 40 ms at 25 MB/s.
const REQUEST_BYTES: u64 = 1 << 20;

/// One of several runners that share a lock. [`Shard::default`] is a single runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
#[display("{number}/{count}")]
pub struct Shard {
    number: usize,
    count: usize,
}

impl Default for Shard {
    fn default() -> Shard {
        Shard {
            number: 1,
            count: 1,
        }
    }
}

/// The failure for a text, or a pair of numbers, that is not a shard.
fn not_a_shard(text: &str) -> Failure {
    let limit = Limits::default().shards;
    Failure::usage(format!(
        "'{text}' is not a shard: write I/N, as in 1/8 for the first of eight (I from 1 to N, N at \
         most {limit})"
    ))
}

impl Shard {
    /// Creates shard `number`, counted from 1, of `count`.
    ///
    /// # Errors
    /// Fails if `number` is not from 1 to `count`, or `count` exceeds [`Limits::shards`].
    pub fn new(number: usize, count: usize) -> Result<Shard, Failure> {
        if !(1..=count).contains(&number) || count > Limits::default().shards {
            return Err(not_a_shard(&format!("{number}/{count}")));
        }
        Ok(Shard { number, count })
    }

    /// The number of this shard, counted from 1.
    pub fn number(self) -> usize {
        self.number
    }

    /// The number of shards that share the lock.
    pub fn count(self) -> usize {
        self.count
    }

    /// Whether this is the only shard.
    pub fn is_only(self) -> bool {
        self.count == 1
    }

    /// Whether this shard does the work that is done once for all shards.
    pub fn is_first(self) -> bool {
        self.number == 1
    }

    /// Returns this shard's equal share of a limit for all shards; at least 1.
    pub fn share(self, limit: usize) -> usize {
        (limit / self.count).max(1)
    }

    /// Selects the parts of this shard from `costs`, which has all parts, each with its
    /// [`transfer_cost`].
    pub fn own<T: Ord>(self, costs: impl IntoIterator<Item = (T, u64)>) -> BTreeSet<T> {
        let assigned = assign_shards(costs, self.count).into_iter();
        assigned
            .filter(|(_, shard)| *shard == self.number)
            .map(|(part, _)| part)
            .collect()
    }
}

impl FromStr for Shard {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Shard, Failure> {
        let parse = || {
            let (number, count) = text.split_once('/')?;
            Shard::new(parse_digits(number)?, parse_digits(count)?).ok()
        };
        parse().ok_or_else(|| not_a_shard(text))
    }
}

/// Parses a number that consists only of digits: `usize` would also accept a sign.
fn parse_digits(text: &str) -> Option<usize> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// The cost of transferring content of this size: its bytes and a constant for its request.
pub fn transfer_cost(size: u64) -> u64 {
    size.saturating_add(REQUEST_BYTES)
}

/// Assigns each part to a shard, counted from 1, by "longest processing time first": in order of
/// falling cost, each to the shard with the least cost so far. Parts of equal cost are ordered by
/// their values, so the order of `costs` does not matter.
pub fn assign_shards<T: Ord>(
    costs: impl IntoIterator<Item = (T, u64)>,
    shards: usize,
) -> Vec<(T, usize)> {
    let mut costs: Vec<(T, u64)> = costs.into_iter().collect();
    costs.sort_by(|(a, a_cost), (b, b_cost)| b_cost.cmp(a_cost).then_with(|| a.cmp(b)));
    let mut loads: BinaryHeap<Reverse<(u64, usize)>> =
        (1..=shards).map(|shard| Reverse((0, shard))).collect();
    let mut assigned = Vec::with_capacity(costs.len());
    for (part, cost) in costs {
        let Some(mut least) = loads.peek_mut() else {
            break;
        };
        let Reverse((load, shard)) = *least;
        *least = Reverse((load.saturating_add(cost), shard));
        assigned.push((part, shard));
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn shards_are_parsed_and_share_a_limit() {
        for good in ["1/1", "1/8", "8/8", "10000/10000"] {
            assert_eq!(good.parse::<Shard>().unwrap().to_string(), good);
        }
        for bad in [
            "", "1", "/", "0/8", "9/8", "1/0", "+1/8", "-1/8", " 1/8", "1/8/2", "1/x", "1/10001",
            "a/8",
        ] {
            let message = bad.parse::<Shard>().unwrap_err().to_string();
            assert!(
                message.contains(&format!("'{bad}' is not a shard: write I/N")),
                "{message}"
            );
        }
        let eighth: Shard = "3/8".parse().unwrap();
        assert_eq!(
            [0, 5, 8, 12, 96].map(|limit| eighth.share(limit)),
            [1, 1, 1, 1, 12]
        );
        assert_eq!(Shard::default().share(12), 12);
    }

    #[test]
    fn each_part_is_in_one_shard_and_the_order_does_not_matter() {
        let costs: Vec<(u32, u64)> = (0..500)
            .map(|at| (at, u64::from(at % 7) * 100 + 1))
            .collect();
        let mut turned = costs.clone();
        turned.reverse();
        for count in [1, 2, 7, 499, 700] {
            let shard = |number| Shard::new(number, count).unwrap();
            let parts: Vec<BTreeSet<u32>> = (1..=count)
                .map(|number| shard(number).own(costs.iter().copied()))
                .collect();
            assert_eq!(
                parts.iter().map(BTreeSet::len).sum::<usize>(),
                costs.len(),
                "{count}"
            );
            assert_eq!(
                parts.iter().flatten().collect::<BTreeSet<_>>().len(),
                costs.len(),
                "{count}"
            );
            assert_eq!(parts[0], shard(1).own(turned.iter().copied()), "{count}");
        }
        // the largest part is in the first shard, and large parts are in different shards
        assert_eq!(
            assign_shards([("a", 1), ("b", 9), ("c", 8), ("d", 3)], 2),
            [("b", 1), ("c", 2), ("d", 2), ("a", 1)]
        );
        assert_eq!(assign_shards([("a", 1)], 0), []);
    }

    /// The cost of the most expensive shard, divided by the ideal: the greater of an equal share of
    /// the total cost and the largest single cost.
    fn makespan(costs: &[u64], shards: usize) -> f64 {
        let mut loads: BTreeMap<usize, u64> = BTreeMap::new();
        for (at, shard) in assign_shards(costs.iter().copied().enumerate(), shards) {
            *loads.entry(shard).or_default() += costs[at];
        }
        let ideal = costs
            .iter()
            .sum::<u64>()
            .div_ceil(shards as u64)
            .max(costs.iter().copied().max().unwrap());
        *loads.values().max().unwrap() as f64 / ideal as f64
    }

    /// The sizes in bytes of the unique blobs of `images` images. Layer sizes are log-normal with a
    /// median of 4 MB and a sigma of 2, so their mean is 30 MB. 2.4 layers for each image give 71
    /// MB for each image, as in carvel-dev/imgpkg#231 (942 images, 67 GB). Each image also has a
    /// manifest and a config of a few kB.
    fn catalogue(images: usize) -> Vec<u64> {
        let mut random = fastrand::Rng::with_seed(17);
        let layers: Vec<u64> = (0..images * 12 / 5)
            .map(|_| {
                // the Box-Muller transform
                let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
                let angle = std::f64::consts::TAU * random.f64();
                (4e6 * (2.0 * radius * angle.cos()).exp()) as u64
            })
            .collect();
        layers
            .into_iter()
            .chain((0..images * 2).map(|at| 1000 + at as u64 % 7000))
            .collect()
    }

    #[test]
    fn the_most_expensive_shard_is_close_to_the_ideal() {
        for images in [215, 942, 4000] {
            let sizes = catalogue(images);
            assert!(
                (30..150).contains(&(sizes.iter().sum::<u64>() / images as u64 / 1_000_000)),
                "{images}"
            );
            let costs: Vec<u64> = sizes.into_iter().map(transfer_cost).collect();
            for shards in [1, 2, 3, 8, 10, 32, 100, 256] {
                let ratio = makespan(&costs, shards);
                assert!(ratio <= 1.15, "{images} images, {shards} shards: {ratio}");
            }
        }
    }
}
