//! The phases on stderr: one bar over all bytes, with the rate, the remaining time and the last
//! finished item, or a line every few seconds.

use super::meter::PhaseMeter;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use landfall_model::report::{Progress, escape_lines, one_line};
use landfall_model::{locked, redact_urls};
use landfall_os::Blocking;
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Shows one phase at a time, with a bar or in lines.
pub(super) struct PhaseProgress {
    has_bar: bool,
    phase: Mutex<Option<ShownPhase>>,
}

struct ShownPhase {
    /// Drawing the bar locks the meter.
    meter: Arc<Mutex<PhaseMeter>>,
    bar: Option<ProgressBar>,
    /// When the last line was printed.
    printed: Instant,
}

impl ShownPhase {
    fn say(&self, now: Instant) {
        let meter = locked(&self.meter);
        let (done, all) = meter.items;
        let figures = meter.figures(" of ", ", ", now);
        let and = if figures.is_empty() { "" } else { ", " };
        say(&format!("{}: {done}/{all} items{and}{figures}", meter.what));
    }
}

// The item name uses the space after the figures.
const KNOWN: &str = "{figures} {wide_msg}";
const UNKNOWN: &str = "{prefix} {spinner} {figures} {wide_msg}";

/// The width of the terminal.
fn columns() -> usize {
    let size = terminal_size::terminal_size_of(std::io::stderr());
    size.map_or(80, |(columns, _)| columns.0.into())
}

/// The bar of a phase, which draws the figures of `meter`.
fn bar(meter: Arc<Mutex<PhaseMeter>>, what: &str, items: u64, bytes: u64) -> ProgressBar {
    let figures = move |_: &ProgressState, to: &mut dyn Write| {
        let meter = locked(&meter);
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
    let bar = ProgressBar::with_draw_target((bytes > 0).then_some(bytes), target)
        .with_style(style.with_key("figures", figures))
        .with_prefix(what.to_owned())
        .with_message(format!("0/{items}"));
    // Without a tick, the bar would be drawn only when an item is finished.
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

impl PhaseProgress {
    pub(super) fn new(has_bar: bool) -> PhaseProgress {
        PhaseProgress {
            has_bar,
            phase: Mutex::default(),
        }
    }

    /// Changes the meter. Without a bar, prints at most one line every five seconds.
    fn update(&self, change: impl FnOnce(&mut PhaseMeter, Instant)) {
        if let Some(phase) = locked(&self.phase).as_mut() {
            let now = Instant::now();
            change(&mut locked(&phase.meter), now);
            if phase.bar.is_none() && now.duration_since(phase.printed) >= Duration::from_secs(5) {
                phase.printed = now;
                phase.say(now);
            }
        }
    }
}

impl Progress for PhaseProgress {
    fn begin(&self, what: &str, items: u64, bytes: u64) {
        let before = locked(&self.phase).take();
        if let Some(bar) = before.and_then(|phase| phase.bar) {
            bar.finish_and_clear();
        }
        let printed = Instant::now();
        let meter = Arc::new(Mutex::new(PhaseMeter::new(what, items, bytes, printed)));
        let bar = self.has_bar.then(|| bar(meter.clone(), what, items, bytes));
        *locked(&self.phase) = Some(ShownPhase {
            meter,
            bar,
            printed,
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

    fn item(&self, name: &str) {
        self.update(|meter, _| meter.finish_item());
        if let Some(ShownPhase {
            meter,
            bar: Some(bar),
            ..
        }) = &*locked(&self.phase)
        {
            let (done, all) = locked(meter).items;
            bar.set_message(format!("{done}/{all} · {}", one_line(name)));
        }
    }

    fn tell(&self, line: &str) {
        self.note(line);
    }

    fn note(&self, line: &str) {
        let phase = locked(&self.phase);
        match phase.as_ref().and_then(|phase| phase.bar.as_ref()) {
            Some(bar) => bar.suspend(|| say(line)),
            None => say(line),
        }
    }

    /// Removes the bar, or prints the last line.
    fn end(&self) {
        let Some(phase) = locked(&self.phase).take() else {
            return;
        };
        let is_idle = locked(&phase.meter).is_idle();
        match &phase.bar {
            Some(bar) => bar.finish_and_clear(),
            None if is_idle => {}
            None => phase.say(Instant::now()),
        }
    }
}

pub(super) fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(
        Blocking(std::io::stderr().lock()),
        "{}",
        escape_lines(&redact_urls(line))
    );
}
