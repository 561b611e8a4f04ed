//! One progress bar over all bytes, with the rate, the remaining time and the last finished item.

use super::meter::PhaseMeter;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use landfall_model::report::{Progress, escape_lines, one_line};
use landfall_model::{locked, redact_urls};
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Draws one progress bar at a time.
#[derive(Default)]
pub(super) struct BarProgress(Mutex<Option<(ProgressBar, Arc<Mutex<PhaseMeter>>)>>);

// The item name uses the space after the figures.
const KNOWN: &str = "{figures} {wide_msg}";
const UNKNOWN: &str = "{prefix} {spinner} {figures} {wide_msg}";

/// The width of the terminal.
fn columns() -> usize {
    let size = terminal_size::terminal_size_of(std::io::stderr());
    size.map_or(80, |(columns, _)| columns.0.into())
}

impl BarProgress {
    /// Changes the meter, then draws. Drawing locks the meter again, so the first lock must be
    /// released first.
    fn update<T>(
        &self,
        change: impl FnOnce(&mut PhaseMeter) -> T,
        draw: impl FnOnce(&ProgressBar, T),
    ) {
        if let Some((drawn, meter)) = &*locked(&self.0) {
            let changed = change(&mut locked(meter));
            draw(drawn, changed);
        }
    }
}

impl Progress for BarProgress {
    fn begin(&self, what: &str, items: u64, bytes: u64) {
        self.end();
        let meter = Arc::new(Mutex::new(PhaseMeter::new(
            what,
            items,
            bytes,
            Instant::now(),
        )));
        let shown = meter.clone();
        let figures = move |_: &ProgressState, to: &mut dyn Write| {
            let meter = locked(&shown);
            let now = Instant::now();
            let _ = to.write_str(&match bytes {
                0 => meter.figures("/", " ", now),
                // One column is a blank before the item name.
                _ => meter.bar(columns() - 1, now),
            });
        };
        let template = if bytes > 0 { KNOWN } else { UNKNOWN };
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let target = ProgressDrawTarget::stderr_with_hz(8);
        let drawn = ProgressBar::with_draw_target((bytes > 0).then_some(bytes), target)
            .with_style(style.with_key("figures", figures))
            .with_prefix(what.to_owned())
            .with_message(format!("0/{items}"));
        // Without a tick, the bar would not be redrawn during a stall, and so could not show how
        // long nothing was received.
        drawn.enable_steady_tick(Duration::from_millis(200));
        *locked(&self.0) = Some((drawn, meter));
    }

    fn bytes(&self, count: u64) {
        self.update(
            |meter| meter.add(count, Instant::now()),
            |drawn, ()| drawn.inc(count),
        );
    }

    fn more(&self, bytes: u64) {
        self.update(
            |meter| meter.more(bytes),
            |drawn, ()| drawn.inc_length(bytes),
        );
    }

    fn parts(&self, count: u64) {
        self.update(|meter| meter.parts.1 += count, |_, ()| ());
    }

    fn parts_done(&self, count: u64) {
        self.update(|meter| meter.add_parts(count, Instant::now()), |_, ()| ());
    }

    fn item(&self, name: &str) {
        let count = |meter: &mut PhaseMeter| {
            meter.finish_item();
            meter.items
        };
        self.update(count, |drawn, (done, all)| {
            drawn.set_message(format!("{done}/{all} · {}", one_line(name)));
        });
    }

    fn tell(&self, line: &str) {
        self.note(line);
    }

    fn note(&self, line: &str) {
        match &*locked(&self.0) {
            Some((drawn, _)) => drawn.suspend(|| say(line)),
            None => say(line),
        }
    }

    fn end(&self) {
        if let Some((drawn, _)) = locked(&self.0).take() {
            drawn.finish_and_clear();
        }
    }
}

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
        if let Some(phase) = locked(&self.0).as_mut() {
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
        *locked(&self.0) = Some(PlainPhase {
            meter: PhaseMeter::new(what, items, bytes, now),
            printed: now,
        });
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
        self.update(|meter, _| meter.finish_item());
    }

    fn tell(&self, line: &str) {
        say(line);
    }

    fn note(&self, line: &str) {
        say(line);
    }

    fn end(&self) {
        if let Some(phase) = locked(&self.0).take()
            && !phase.meter.is_idle()
        {
            phase.say(Instant::now());
        }
    }
}

pub(super) fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(
        std::io::stderr().lock(),
        "{}",
        escape_lines(&redact_urls(line))
    );
}
