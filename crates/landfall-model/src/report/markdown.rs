//! A result as Markdown for a pull request: a summary and folded tables, bounded in size.

use super::escape::{escape_html, is_hidden};

/// The maximum size of a document in bytes. GitHub accepts 65,536 characters for a pull request, so
/// there is space for other text.
const MAX_BYTES: usize = 60_000;

/// The maximum size of a table without its head and rows: the note about omitted rows, and the end.
const TABLE_OVERHEAD: usize = 160;

/// A Markdown document that is being put together.
#[derive(Debug, Default)]
pub struct Markdown {
    summary: String,
    /// The head of each table, and its rows.
    tables: Vec<(String, Vec<String>)>,
    /// The lines after the tables, which are never shortened.
    footer: String,
}

impl Markdown {
    /// Starts a document with the line `summary`, which is Markdown.
    pub fn new(summary: impl Into<String>) -> Markdown {
        Markdown {
            summary: summary.into(),
            ..Markdown::default()
        }
    }

    /// Adds a folded table, unless it has no rows. Its cells are Markdown, made by
    /// [`markdown_text`] and [`markdown_code`].
    pub fn table(
        &mut self,
        title: &str,
        columns: &[&str],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) {
        let rows: Vec<String> = rows.into_iter().map(|cells| markdown_row(&cells)).collect();
        if rows.is_empty() {
            return;
        }
        let head = format!(
            "\n<details><summary>{}: {}</summary>\n\n{}|{}\n",
            escape_html(title),
            rows.len(),
            markdown_row(columns),
            "---|".repeat(columns.len())
        );
        self.tables.push((head, rows));
    }

    /// Adds a line of Markdown after the tables.
    pub fn line(&mut self, line: &str) {
        self.footer += &format!("\n{line}\n");
    }

    /// Returns the document. If it would be too long for a pull request, the longest tables lose
    /// their last rows and state how many were omitted.
    pub fn finish(self) -> String {
        let heads = self.tables.iter().map(|(head, _)| head.len());
        let overhead = heads.sum::<usize>() + self.tables.len() * TABLE_OVERHEAD;
        let fixed = self.summary.len() + self.footer.len() + overhead;
        let lengths = self.tables.iter();
        let lengths: Vec<usize> = lengths
            .map(|(_, rows)| rows.iter().map(String::len).sum())
            .collect();
        let budgets = fair_shares(MAX_BYTES.saturating_sub(fixed), &lengths);
        let mut text = self.summary + "\n";
        for ((head, rows), budget) in self.tables.iter().zip(budgets) {
            text += head;
            let mut remaining = budget;
            let mut shown = 0;
            for row in rows {
                if row.len() > remaining {
                    break;
                }
                remaining -= row.len();
                text += row;
                shown += 1;
            }
            let omitted = rows.len() - shown;
            if omitted > 0 {
                text += &format!("\n… and {omitted} more; `--output json` lists all of them\n");
            }
            text += "\n</details>\n";
        }
        text + &self.footer
    }
}

/// A row of a table. Its cells are Markdown.
pub fn markdown_row(cells: &[impl AsRef<str>]) -> String {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Formats rows as aligned columns for people, one line a row.
pub fn aligned_columns(rows: &[impl AsRef<[String]>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        let row = row.as_ref();
        widths.resize(widths.len().max(row.len()), 0);
        for (cell, width) in row.iter().zip(&mut widths) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[String]| {
        let cells = row.iter().zip(&widths);
        let padded: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(|row| line(row.as_ref())).collect()
}

/// Divides `budget` fairly: small requests are granted in full, large ones get equal shares.
fn fair_shares(budget: usize, wanted: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&index| wanted[index]);
    let mut remaining = budget;
    let mut shares = vec![0; wanted.len()];
    for (done, index) in order.into_iter().enumerate() {
        shares[index] = wanted[index].min(remaining / (wanted.len() - done));
        remaining -= shares[index];
    }
    shares
}

/// Escapes `plain` for a table cell: no character of it is markup, and it stays on one line.
pub fn markdown_text(plain: &str) -> String {
    let mut out = String::with_capacity(plain.len());
    for (at, c) in plain.char_indices() {
        match c {
            // otherwise GitHub would make links of URLs and of names such as `www.example.com`
            ':' if plain[at..].starts_with("://") => out += "&#58;",
            '.' if plain[..at].ends_with("www") => out += "&#46;",
            // GitHub and GitLab read `$x$` as a formula
            '$' => out += "&#36;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            // Otherwise a user would be notified or an issue linked. GitLab regards the backslash;
            // GitHub looks at the text after escapes and entities are read, but not across a
            // comment.
            '@' | '#' => out.extend(["\\", &plain[at..=at], "<!-- -->"]),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' => out.extend(['\\', c]),
            c if is_hidden(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// Formats `plain` as a code span in a table cell, or as text if it contains a backquote, a
/// backslash or a hidden character.
pub fn markdown_code(plain: &str) -> String {
    if plain.chars().any(|c| c == '`' || c == '\\' || is_hidden(c)) {
        markdown_text(plain)
    } else {
        format!("`{}`", plain.replace('|', "\\|"))
    }
}

/// Formats `plain` as a fenced code block, with a fence longer than any run of backquotes in
/// the text. If the block would be too long for a pull request, the text loses its last lines, and
/// a note states how many were omitted.
pub fn markdown_block(plain: &str) -> String {
    let plain = plain.trim_end_matches('\n');
    let (shown, omitted) = first_lines(plain, MAX_BYTES - TABLE_OVERHEAD);
    let longest = shown
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let note = match omitted {
        0 => String::new(),
        _ => format!("\n… and {omitted} more lines; `--output text` shows all of them\n"),
    };
    format!("{fence}text\n{shown}\n{fence}\n{note}")
}

/// The first lines of `text`, at most `limit` bytes, and the number of the other lines.
fn first_lines(text: &str, limit: usize) -> (&str, usize) {
    let Some(longest) = text.as_bytes().get(..=limit) else {
        return (text, 0);
    };
    let end = longest.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let (shown, rest) = text.split_at(end);
    let rest = rest.strip_prefix('\n').unwrap_or(rest);
    (shown, rest.lines().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_tables_are_shortened_to_the_bound_and_state_how_much_is_omitted() {
        let mut document = Markdown::new("**5,003 changes**");
        document.table(
            "moved",
            &["name", "to"],
            (0..3).map(|at| vec![markdown_code(&format!("m{at}")), "x".into()]),
        );
        let row = |at| {
            vec![
                markdown_code(&format!("registry.test/some/longer/repository-{at}:v1")),
                "12 MB".into(),
            ]
        };
        document.table("added", &["name", "new"], (0..5000).map(row));
        document.table("removed", &["name", "new"], (0..5000).map(row));
        document.line("the end");
        let text = document.finish();
        assert!(
            text.len() <= MAX_BYTES && text.len() > MAX_BYTES - 1000,
            "{}",
            text.len()
        );
        assert!(text.starts_with("**5,003 changes**\n") && text.ends_with("\nthe end\n"));
        for part in [
            "m2",
            "<summary>added: 5000</summary>",
            " more; `--output json`",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert_eq!(
            text.matches("<details>").count(),
            text.matches("</details>").count()
        );
        // both long tables are shortened equally
        let rows: Vec<usize> = text
            .split("<details>")
            .map(|part| part.matches("\n| `").count())
            .collect();
        assert!(rows[2].abs_diff(rows[3]) < 3 && rows[1] == 3, "{rows:?}");
    }

    #[test]
    fn a_long_block_loses_its_last_lines_and_states_how_many() {
        let text = markdown_block(&"0123456789\n".repeat(10_000));
        assert!(
            text.len() <= MAX_BYTES && text.len() > MAX_BYTES - 1000,
            "{}",
            text.len()
        );
        let omitted = 10_000 - text.matches("0123456789\n").count();
        let end = format!(
            "0123456789\n```\n\n… and {omitted} more lines; `--output text` shows all of them\n"
        );
        assert!(text.ends_with(&end), "{}", &text[text.len() - 120..]);
        let line = "x".repeat(2 * MAX_BYTES);
        let text = markdown_block(&format!("{line}\n{line}"));
        assert!(text.contains("… and 2 more lines"), "{text}");
    }

    #[test]
    fn nothing_from_servers_is_markup() {
        assert_eq!(
            markdown_text("a|b\n<b>@joe #1 [x](y) `c`"),
            "a\\|b\\n&lt;b&gt;\\@<!-- -->joe \\#<!-- -->1 \\[x\\](y) \\`c\\`"
        );
        assert_eq!(
            markdown_text("at https://h.test/x, www.h.test: $x$"),
            "at https&#58;//h.test/x, www&#46;h.test: &#36;x&#36;"
        );
        assert_eq!(markdown_code("a|b"), "`a\\|b`");
        assert_eq!(markdown_code("a`<b>`"), "a\\`&lt;b&gt;\\`");
        assert_eq!(markdown_block("x\n```\ny"), "````text\nx\n```\ny\n````\n");
    }
}
