//! Progress as lines: at most one every five seconds, and one at the end.

use super::meter::PhaseMeter;
use super::say::say;
use landfall_model::report::Progress;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Prints at most one line every five seconds, and one at the end.
#[derive(Default)]
pub(super) struct PlainProgress(Mutex<Option<PlainPhase>>);

struct PlainPhase {
    meter: PhaseMeter,
    /// When the last line was printed.
    printed: Instant,
}

impl PlainPhase {
    fn say(&self, now: Instant) {
        let PhaseMeter {
            what,
            items: (done, all),
            ..
        } = &self.meter;
        let figures = self.meter.figures(" of ", ", ", now);
        let and = if figures.is_empty() { "" } else { ", " };
        say(&format!("{what}: {done}/{all} items{and}{figures}"));
    }
}

impl PlainProgress {
    fn update(&self, act: impl FnOnce(&mut PhaseMeter, Instant)) {
        if let Ok(mut slot) = self.0.lock()
            && let Some(phase) = slot.as_mut()
        {
            let now = Instant::now();
            act(&mut phase.meter, now);
            if now.duration_since(phase.printed) >= Duration::from_secs(5) {
                phase.printed = now;
                phase.say(now);
            }
        }
    }
}

impl Progress for PlainProgress {
    fn begin(&self, what: &str, items: u64, bytes: u64) {
        let now = Instant::now();
        if let Ok(mut slot) = self.0.lock() {
            *slot = Some(PlainPhase {
                meter: PhaseMeter::new(what, items, bytes, now),
                printed: now,
            });
        }
    }

    fn bytes(&self, count: u64) {
        self.update(|meter, now| meter.add(count, now));
    }

    fn more(&self, bytes: u64) {
        self.update(|meter, _| meter.more(bytes));
    }

    fn parts(&self, count: u64) {
        self.update(|meter, _| meter.parts.1 += count);
    }

    fn parts_done(&self, count: u64) {
        self.update(|meter, now| meter.add_parts(count, now));
    }

    fn item(&self, _name: &str) {
        self.update(|meter, _| meter.items.0 += 1);
    }

    fn tell(&self, line: &str) {
        say(line);
    }

    fn note(&self, line: &str) {
        say(line);
    }

    fn end(&self) {
        if let Ok(mut slot) = self.0.lock()
            && let Some(phase) = slot.take()
            && !phase.meter.is_idle()
        {
            phase.say(Instant::now());
        }
    }
}
