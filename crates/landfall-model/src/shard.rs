//! Shards: one lock, several runners, each with a part of its own. What is whose follows from names
//! and sizes alone, so that every machine comes to the same split and nobody asks anybody.

use super::Limits;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::fmt;
use std::str::FromStr;

/// What a request costs beside its bytes, in bytes that could have come meanwhile: some 40 ms at 25
/// MB/s.
const REQUEST_BYTES: u64 = 1 << 20;

/// One of several runners that do a lock together. [`Shard::default`] is the only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    number: usize,
    of: usize,
}

impl Default for Shard {
    fn default() -> Shard {
        Shard { number: 1, of: 1 }
    }
}

/// Why a text or two numbers are no shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no shard: write I/N, as in 1/8 for the first of eight (I from 1 to N, N at most {most})", most = Limits::default().shards)]
pub struct ShardError(String);

impl Shard {
    /// The shard with this number, from 1, of so many.
    ///
    /// # Errors
    /// When there is no such shard, or more of them than [`Limits::shards`].
    pub fn new(number: usize, of: usize) -> Result<Shard, ShardError> {
        match (1..=of).contains(&number) && of <= Limits::default().shards {
            true => Ok(Shard { number, of }),
            false => Err(ShardError(format!("{number}/{of}"))),
        }
    }

    /// Its number, from 1.
    pub fn number(self) -> usize {
        self.number
    }

    /// How many shards there are.
    pub fn count(self) -> usize {
        self.of
    }

    /// Whether it is the only one.
    pub fn is_only(self) -> bool {
        self.of == 1
    }

    /// Whether it does what is done once for all of them.
    pub fn is_first(self) -> bool {
        self.number == 1
    }

    /// Its share of what all of them may do at once: an equal one, and one at the least.
    pub fn share(self, limit: usize) -> usize {
        (limit / self.of).max(1)
    }

    /// Which of these it does, each with its [`transfer_cost`].
    pub fn own<T: Ord>(self, costs: impl IntoIterator<Item = (T, u64)>) -> BTreeSet<T> {
        let split = assign_shards(costs, self.of).into_iter();
        split
            .filter(|(_, shard)| *shard == self.number)
            .map(|(one, _)| one)
            .collect()
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Shard, ShardError> {
        let wrong = || ShardError(text.into());
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let read = |digits: &str| {
            let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|_| is_plain)
        };
        Shard::new(read(number).ok_or_else(wrong)?, read(of).ok_or_else(wrong)?)
            .map_err(|_| wrong())
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// What content of this size costs: its bytes, and those of its request.
pub fn transfer_cost(size: u64) -> u64 {
    size.saturating_add(REQUEST_BYTES)
}

/// The number of the shard, from 1, that each of these goes to: the dearest first, each to the
/// shard that has least so far (longest processing time first). Of equal ones the lesser comes
/// first, so the order of `costs` does not matter.
pub fn assign_shards<T: Ord>(
    costs: impl IntoIterator<Item = (T, u64)>,
    shards: usize,
) -> Vec<(T, usize)> {
    let mut costs: Vec<(T, u64)> = costs.into_iter().collect();
    costs.sort_by(|(a, dear), (b, dearer)| dearer.cmp(dear).then_with(|| a.cmp(b)));
    let mut loads: BinaryHeap<Reverse<(u64, usize)>> =
        (1..=shards).map(|shard| Reverse((0, shard))).collect();
    let mut to_least = |cost: u64| {
        let mut least = loads.peek_mut()?;
        let Reverse((load, shard)) = *least;
        *least = Reverse((load.saturating_add(cost), shard));
        Some(shard)
    };
    costs
        .into_iter()
        .filter_map(|(one, cost)| Some((one, to_least(cost)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_shard_is_read_as_it_is_written() {
        for good in ["1/1", "1/8", "8/8", "10000/10000"] {
            assert_eq!(good.parse::<Shard>().unwrap().to_string(), good);
        }
        for bad in [
            "", "1", "/", "0/8", "9/8", "1/0", "+1/8", "-1/8", " 1/8", "1/8/2", "1/x", "1/10001",
            "a/8",
        ] {
            let told = bad.parse::<Shard>().unwrap_err().to_string();
            assert!(
                told.contains(&format!("'{bad}' is no shard: write I/N")),
                "{told}"
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
    fn everything_is_done_once_and_the_order_does_not_matter() {
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
        // the biggest goes to the first, and what is big is not together
        assert_eq!(
            assign_shards([("a", 1), ("b", 9), ("c", 8), ("d", 3)], 2),
            [("b", 1), ("c", 2), ("d", 2), ("a", 1)]
        );
        assert_eq!(assign_shards([("a", 1)], 0), []);
    }

    /// The dearest shard, in parts of the ideal: an equal share of all, or the dearest single one.
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

    /// Unique blobs of so many images, sizes in bytes: layers with a log-normal size of median 4 MB
    /// and sigma 2, so 30 MB in the mean, of which 2.4 an image come to the 71 MB an image that 942
    /// images with 67 GB have (carvel-dev/imgpkg#231); beside them a manifest and a config an
    /// image, of a few kB.
    fn catalogue(images: usize) -> Vec<u64> {
        let mut random = fastrand::Rng::with_seed(17);
        let layers: Vec<u64> = (0..images * 12 / 5)
            .map(|_| {
                // Box and Muller
                let (radius, angle) = (
                    (-2.0 * (1.0 - random.f64()).ln()).sqrt(),
                    std::f64::consts::TAU * random.f64(),
                );
                (4e6 * (2.0 * radius * angle.cos()).exp()) as u64
            })
            .collect();
        layers
            .into_iter()
            .chain((0..images * 2).map(|at| 1000 + at as u64 % 7000))
            .collect()
    }

    #[test]
    fn the_last_shard_ends_soon_after_the_ideal() {
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
