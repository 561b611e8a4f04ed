//! Quotes values for systemd units, TOML and JSON.

/// Returns the `Environment=` line of a systemd unit, with C escapes (systemd.syntax(7),
/// "Quoting").
///
/// An unescaped `%` would start a specifier: systemd expands the specifier, or drops the variable
/// if it cannot expand it. A line feed would start another line of the unit.
pub(crate) fn systemd_environment(name: &str, value: &str) -> String {
    let mut quoted = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' | '"' => quoted.extend(['\\', c]),
            '%' => quoted.push_str("%%"),
            c if c.is_control() => quoted += &format!("\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    format!("Environment=\"{name}={quoted}\"\n")
}

/// Returns `value` as a JSON string literal. If `value` is a single line, the literal is valid in
/// TOML and YAML too.
pub(crate) fn quoted_string(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_with_a_meaning_are_escaped() {
        assert_eq!(
            systemd_environment("A", r#"p%40s"\x"#),
            "Environment=\"A=p%%40s\\\"\\\\x\"\n"
        );
        let broken = systemd_environment("A", "x\"\nExecStartPre=/bin/sh\r\u{85}");
        assert_eq!(
            broken,
            "Environment=\"A=x\\\"\\u000aExecStartPre=/bin/sh\\u000d\\u0085\"\n"
        );
        assert_eq!(quoted_string("a\"b\\c"), r#""a\"b\\c""#);
    }
}
