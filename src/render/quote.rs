//! Values as the formats of nodes write them.

/// `Environment=` of a systemd unit. A `%` would begin a specifier, and systemd drops the variable then.
pub(crate) fn systemd_environment(name: &str, value: &str) -> String {
    let value = value.replace('\\', r"\\").replace('"', "\\\"").replace('%', "%%");
    format!("Environment=\"{name}={value}\"\n")
}

/// A string of TOML or JSON, which are alike for texts of one line; YAML takes it too.
pub(crate) fn string(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_escapes_what_it_would_read_otherwise() {
        assert_eq!(systemd_environment("A", r#"p%40s"\x"#), "Environment=\"A=p%%40s\\\"\\\\x\"\n");
        assert_eq!(string("a\"b\\c"), r#""a\"b\\c""#);
    }
}
