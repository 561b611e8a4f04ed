//! The day on which a command runs.

/// Today, `YYYY-MM-DD`, in UTC: what `until` days are compared with.
pub fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}
