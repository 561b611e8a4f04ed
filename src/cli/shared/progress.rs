//! Progress for people: bars on a terminal, plain lines elsewhere, or nothing. It goes to stderr.

use crate::model::human_size;
use crate::report::{Progress, escape};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The choice of `--progress`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ProgressMode {
    /// Bars if stderr is a terminal, else plain lines.
    #[default]
    Auto,
    /// Bars.
    Bar,
    /// A line now and then.
    Plain,
    /// Nothing but warnings.
    None,
}

/// The progress of the chosen kind.
pub(crate) fn progress(mode: ProgressMode) -> Arc<dyn Progress> {
    match mode {
        ProgressMode::Auto if std::io::stderr().is_terminal() => Arc::new(Bars::new()),
        ProgressMode::Bar => Arc::new(Bars::new()),
        ProgressMode::Auto | ProgressMode::Plain => Arc::new(Plain::default()),
        ProgressMode::None => Arc::new(Warnings),
    }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", escape(line));
}

/// Warnings and nothing else.
struct Warnings;

impl Progress for Warnings {
    fn begin(&self, _what: &str, _items: u64, _bytes: u64) {}
    fn bytes(&self, _count: u64) {}
    fn item(&self, _name: &str) {}
    fn note(&self, line: &str) {
        say(line);
    }
    fn end(&self) {}
}

/// One bar over all bytes, with items, rate and time left.
struct Bars {
    bar: Mutex<Option<ProgressBar>>,
    items: AtomicU64,
    total: AtomicU64,
}

impl Bars {
    fn new() -> Bars {
        Bars { bar: Mutex::new(None), items: AtomicU64::new(0), total: AtomicU64::new(0) }
    }

    fn with(&self, act: impl FnOnce(&ProgressBar)) {
        if let Some(bar) = self.bar.lock().ok().as_ref().and_then(|bar| bar.as_ref()) {
            act(bar);
        }
    }
}

impl Progress for Bars {
    fn begin(&self, what: &str, items: u64, bytes: u64) {
        self.items.store(0, Ordering::Relaxed);
        self.total.store(items, Ordering::Relaxed);
        let known = "{prefix:>8} [{bar:28}] {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta} left · {msg}";
        let unknown = "{prefix:>8} {spinner} {decimal_bytes} {decimal_bytes_per_sec} · {msg}";
        let template = if bytes > 0 { known } else { unknown };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(
            (bytes > 0).then_some(bytes),
            ProgressDrawTarget::stderr_with_hz(8),
        )
        .with_style(style.progress_chars("=> "))
        .with_prefix(what.to_owned())
        .with_message(format!("0/{items} items"));
        bar.enable_steady_tick(Duration::from_millis(200));
        if let Ok(mut slot) = self.bar.lock() {
            *slot = Some(bar);
        }
    }

    fn bytes(&self, count: u64) {
        self.with(|bar| bar.inc(count));
    }

    fn item(&self, name: &str) {
        let done = self.items.fetch_add(1, Ordering::Relaxed) + 1;
        let total = self.total.load(Ordering::Relaxed);
        self.with(|bar| bar.set_message(format!("{done}/{total} items · {}", escape(name))));
    }

    fn note(&self, line: &str) {
        let shown = self.bar.lock().is_ok_and(|bar| bar.is_some());
        if shown { self.with(|bar| bar.suspend(|| say(line))) } else { say(line) }
    }

    fn end(&self) {
        if let Ok(mut slot) = self.bar.lock()
            && let Some(bar) = slot.take()
        {
            bar.finish_and_clear();
        }
    }
}

/// A line every five seconds at the most, and one at the end.
#[derive(Default)]
struct Plain {
    state: Mutex<Option<PlainState>>,
}

struct PlainState {
    what: String,
    items: (u64, u64),
    bytes: (u64, u64),
    began: Instant,
    said: Instant,
}

impl PlainState {
    fn line(&self) -> String {
        let mut line = format!("{}: {}/{} items", self.what, self.items.0, self.items.1);
        if self.bytes == (0, 0) {
            return line;
        }
        let seconds = self.began.elapsed().as_secs_f64().max(0.001);
        let rate = self.bytes.0 as f64 / seconds;
        line += &format!(", {}", human_size(self.bytes.0));
        if self.bytes.1 > 0 {
            line += &format!(" of {}", human_size(self.bytes.1));
        }
        line += &format!(", {}/s", human_size(rate as u64));
        if self.bytes.1 > self.bytes.0 && rate > 0.0 {
            line += &format!(", {:.0} s left", (self.bytes.1 - self.bytes.0) as f64 / rate);
        }
        line
    }
}

impl Plain {
    fn update(&self, act: impl FnOnce(&mut PlainState)) {
        if let Ok(mut slot) = self.state.lock()
            && let Some(state) = slot.as_mut()
        {
            act(state);
            if state.said.elapsed() >= Duration::from_secs(5) {
                state.said = Instant::now();
                say(&state.line());
            }
        }
    }
}

impl Progress for Plain {
    fn begin(&self, what: &str, items: u64, bytes: u64) {
        let now = Instant::now();
        let state =
            PlainState { what: what.into(), items: (0, items), bytes: (0, bytes), began: now, said: now };
        if let Ok(mut slot) = self.state.lock() {
            *slot = Some(state);
        }
    }

    fn bytes(&self, count: u64) {
        self.update(|state| state.bytes.0 += count);
    }

    fn item(&self, _name: &str) {
        self.update(|state| state.items.0 += 1);
    }

    fn note(&self, line: &str) {
        say(line);
    }

    fn end(&self) {
        if let Ok(mut slot) = self.state.lock()
            && let Some(state) = slot.take()
            && (state.items.0 > 0 || state.bytes.0 > 0)
        {
            say(&state.line());
        }
    }
}
