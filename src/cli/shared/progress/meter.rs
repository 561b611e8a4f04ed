//! Measures a phase: how much is done, the rate, and the remaining time.

use landfall_model::human_size;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The time over which the rate is averaged: long enough to be steady, short enough to follow
/// changes of the network.
const WINDOW: Duration = Duration::from_secs(30);
/// The duration of a phase before its rate is shown.
const WARM_UP: Duration = Duration::from_secs(3);
/// The cost of a request, as a number of bytes: about what a connection transfers in one round
/// trip. With it, the remaining time takes thousands of small manifests into account.
const REQUEST_COST: u64 = 64 << 10;
/// The pause after which "nothing for …" is shown instead of a rate.
const SILENCE: Duration = Duration::from_secs(10);

/// The figures of one phase.
pub(super) struct PhaseMeter {
    pub(super) what: String,
    /// The number of finished items, and of all items.
    pub(super) items: (u64, u64),
    /// The number of transferred bytes, and of all bytes (0 if unknown).
    bytes: (u64, u64),
    /// The number of finished parts, such as blobs and manifests, and of all parts.
    pub(super) parts: (u64, u64),
    began: Instant,
    last: Instant,
    /// Samples from the last [`WINDOW`], at least one second apart.
    samples: VecDeque<MeterSample>,
}

/// The state at one point in time.
struct MeterSample {
    at: Instant,
    bytes: u64,
    /// Bytes, plus [`REQUEST_COST`] for each part.
    work: u64,
}

impl PhaseMeter {
    pub(super) fn new(what: &str, items: u64, bytes: u64, now: Instant) -> PhaseMeter {
        let start = MeterSample {
            at: now,
            bytes: 0,
            work: 0,
        };
        PhaseMeter {
            what: what.into(),
            items: (0, items),
            bytes: (0, bytes),
            parts: (0, 0),
            began: now,
            last: now,
            samples: [start].into(),
        }
    }

    pub(super) fn add(&mut self, bytes: u64, now: Instant) {
        self.bytes.0 = self.bytes.0.saturating_add(bytes);
        self.sample(now);
    }

    pub(super) fn add_parts(&mut self, parts: u64, now: Instant) {
        self.parts.0 += parts;
        self.sample(now);
    }

    fn sample(&mut self, now: Instant) {
        self.last = now;
        let is_due = |sample: &MeterSample| now.duration_since(sample.at) >= Duration::from_secs(1);
        // At most one sample per second, however often bytes arrive.
        if self.samples.back().is_none_or(is_due) {
            let bytes = self.bytes.0;
            let work = self.work().0;
            self.samples.push_back(MeterSample {
                at: now,
                bytes,
                work,
            });
        }
        // The first sample stays until the second one is old enough to be the start of the window.
        while self
            .samples
            .get(1)
            .is_some_and(|sample| now.duration_since(sample.at) >= WINDOW)
        {
            self.samples.pop_front();
        }
    }

    /// The work done, and all work: bytes plus the cost of requests.
    fn work(&self) -> (u64, u64) {
        (
            self.bytes.0.saturating_add(self.parts.0 * REQUEST_COST),
            self.bytes.1.saturating_add(self.parts.1 * REQUEST_COST),
        )
    }

    /// Adds bytes that must be transferred again.
    pub(super) fn more(&mut self, bytes: u64) {
        if self.bytes.1 > 0 {
            self.bytes.1 = self.bytes.1.saturating_add(bytes);
        }
    }

    /// Counts a finished item. A phase may find more items than it expected.
    pub(super) fn finish_item(&mut self) {
        self.items.0 += 1;
        self.items.1 = self.items.1.max(self.items.0);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.items.0 == 0 && self.bytes.0 == 0
    }

    /// `13.8 MB of 2.2 GB`, the rate and the remaining time. `of` separates the finished bytes from
    /// all bytes, and `and` separates the figures.
    pub(super) fn figures(&self, of: &str, and: &str, now: Instant) -> String {
        let (done, all) = self.bytes;
        let done = match all {
            0 if done == 0 => return String::new(),
            0 => human_size(done),
            _ => format!("{}{of}{}", human_size(done), human_size(all)),
        };
        [vec![done], self.pace(now)].concat().join(and)
    }

    /// The longest form of the bar that fits `columns`, or the shortest form if none fits.
    pub(super) fn bar(&self, columns: usize, now: Instant) -> String {
        let (what, (done, all), pace) = (&self.what, self.bytes, self.pace(now));
        let of = |width: f64| (done.min(all) as f64 / all.max(1) as f64 * width) as usize;
        let filled = "=".repeat(of(10.0));
        let tip = if done < all { ">" } else { "" };
        let whole = format!(
            "{what} [{:10}] {}",
            filled + tip,
            self.figures("/", " ", now)
        );
        let percent = format!("{what} {}%", of(100.0));
        let last = pace
            .last()
            .map_or_else(|| percent.clone(), |last| format!("{percent} {last}"));
        let shorter = [[vec![percent.clone()], pace].concat().join(" "), last];
        let mut forms = std::iter::once(whole).chain(shorter);
        forms
            .find(|form| form.chars().count() <= columns)
            .unwrap_or(percent)
    }

    /// The rate and the remaining time, or how long nothing was received.
    fn pace(&self, now: Instant) -> Vec<String> {
        let work = self.work();
        let silent = now.duration_since(self.last);
        if self.bytes.1 > 0 && work.0 >= work.1 {
            return Vec::new();
        }
        if silent >= SILENCE {
            return vec![format!("nothing for {}", short(silent))];
        }
        let Some((bytes, rate)) = self.rates(now) else {
            return Vec::new();
        };
        let mut pace = Vec::new();
        if bytes >= 1.0 {
            pace.push(format!("{}/s", human_size(bytes as u64)));
        }
        if self.bytes.1 > 0 && rate >= 1.0 {
            // Bounded, since `from_secs_f64` panics on overflow and the sizes come from a lock.
            let left = ((work.1 - work.0) as f64 / rate).min(1e9);
            pace.push(format!("{} left", short(Duration::from_secs_f64(left))));
        }
        pace
    }

    /// Bytes and work per second, after the warm-up.
    fn rates(&self, now: Instant) -> Option<(f64, f64)> {
        let since = self.samples.front()?;
        let seconds = now.duration_since(since.at).as_secs_f64().max(0.001);
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let rates = (
            rate(self.bytes.0, since.bytes),
            rate(self.work().0, since.work),
        );
        (now.duration_since(self.began) >= WARM_UP).then_some(rates)
    }
}

/// A duration in at most six characters, as in `42s`, `12m`, `2h05m`, `47h59m` or `3d`.
fn short(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..172_800 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    fn shown(meter: &PhaseMeter, now: Instant) -> String {
        meter.figures("/", " ", now)
    }

    #[test]
    fn the_time_left_follows_the_rate_of_the_last_half_minute() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut meter = PhaseMeter::new("pull", 3, 1000 * MB, began);
        assert_eq!(shown(&meter, at(1)), "0 B/1.0 GB", "nothing is known yet");
        for second in 1..=40 {
            meter.add(10 * MB, at(second));
        }
        assert_eq!(shown(&meter, at(40)), "400 MB/1.0 GB 10.0 MB/s 1m left");
        // The network becomes ten times slower: half a minute later the remaining time shows it.
        for second in 41..=75 {
            meter.add(MB, at(second));
        }
        assert_eq!(shown(&meter, at(75)), "435 MB/1.0 GB 1.0 MB/s 9m left");
        assert_eq!(shown(&meter, at(120)), "435 MB/1.0 GB nothing for 45s");
        // Half of the bytes must be transferred again.
        meter.more(500 * MB);
        meter.add(1065 * MB, at(121));
        assert_eq!(shown(&meter, at(121)), "1.5 GB/1.5 GB");
    }

    #[test]
    fn manifests_count_in_the_time_that_is_left() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut meter = PhaseMeter::new("pull", 3, 10 * MB, began);
        meter.parts.1 = 1001;
        // Nearly all bytes are transferred, but after the loop 901 of 1001 manifests are missing.
        meter.add(10 * MB - 1000, at(4));
        for second in 5..=14 {
            meter.add_parts(10, at(second));
        }
        assert_eq!(shown(&meter, at(14)), "10.0 MB/10.0 MB 714 kB/s 49s left");
        meter.add(1000, at(15));
        assert!(
            shown(&meter, at(20)).ends_with(" left"),
            "{}",
            shown(&meter, at(20))
        );
        meter.add_parts(901, at(21));
        assert_eq!(shown(&meter, at(21)), "10.0 MB/10.0 MB");
    }

    #[test]
    fn sizes_beyond_64_bits_in_total_are_measured() {
        let began = Instant::now();
        let mut meter = PhaseMeter::new("pull", 3, u64::MAX, began);
        meter.parts.1 = 3;
        meter.more(MB);
        meter.add(40 * MB, began + Duration::from_secs(4));
        assert_eq!(
            shown(&meter, began + Duration::from_secs(4)),
            "40.0 MB/18.4 EB 10.0 MB/s 11574d left"
        );
    }

    #[test]
    fn a_bar_takes_the_longest_form_that_fits() {
        let began = Instant::now();
        let now = began + Duration::from_secs(4);
        let mut meter = PhaseMeter::new("pull", 3, 1000 * MB, began);
        meter.add(400 * MB, now);
        for (columns, form) in [
            (80, "pull [====>     ] 400 MB/1.0 GB 100 MB/s 6s left"),
            (48, "pull [====>     ] 400 MB/1.0 GB 100 MB/s 6s left"),
            (47, "pull 40% 100 MB/s 6s left"),
            (25, "pull 40% 100 MB/s 6s left"),
            (24, "pull 40% 6s left"),
            (15, "pull 40%"),
        ] {
            assert_eq!(meter.bar(columns, now), form, "{columns}");
        }
        meter.add(600 * MB, now);
        assert_eq!(meter.bar(80, now), "pull [==========] 1.0 GB/1.0 GB");
        assert_eq!(meter.bar(20, now), "pull 100%");
    }

    #[test]
    fn the_longest_figures_leave_room_in_60_columns() {
        let began = Instant::now();
        let mut meter = PhaseMeter::new("verify", 1, 99_900_000_000, began);
        meter.add(99_900_000 * 9, began + Duration::from_secs(9));
        meter.bytes.0 = 99_800_000_000 - 99_800_000_000 / 3;
        let longest = shown(&meter, began + Duration::from_secs(9));
        assert!(longest.len() <= 36, "{longest}");
        let now = began + Duration::from_secs(9);
        assert!(meter.bar(59, now).starts_with("verify [") && meter.bar(39, now).len() < 39);
        for (seconds, words) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (7500, "2h05m"),
            (200_000, "2d"),
        ] {
            assert_eq!(short(Duration::from_secs(seconds)), words);
        }
    }
}
