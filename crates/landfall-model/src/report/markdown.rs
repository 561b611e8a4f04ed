//! A result as Markdown for a pull request: a summary, then folded tables, in a bounded number of
//! bytes.

use super::escape::is_hidden;
use super::html::escape_html;
use std::fmt::Write as _;

/// The most bytes of a document: forges take 65,536 characters for a pull request, and people write
/// too.
const MOST: usize = 60_000;

/// What a document needs besides its rows: what says how many were left out, and the end.
const SPARE: usize = 160;

/// A document under way.
#[derive(Debug, Default)]
pub struct Markdown {
    summary: String,
    tables: Vec<Table>,
    /// Lines after the tables.
    end: String,
}

#[derive(Debug)]
struct Table {
    head: String,
    rows: Vec<String>,
}

impl Markdown {
    /// A document that begins with the line `summary`, which is Markdown.
    pub fn new(summary: impl Into<String>) -> Markdown {
        Markdown {
            summary: summary.into(),
            ..Markdown::default()
        }
    }

    /// Adds a folded table. Its cells are Markdown, made by [`text`] and [`code`]. Without rows it
    /// is left out.
    pub fn table(
        &mut self,
        title: &str,
        columns: &[&str],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) {
        let rows: Vec<String> = rows
            .into_iter()
            .map(|cells| format!("| {} |\n", cells.join(" | ")))
            .collect();
        if rows.is_empty() {
            return;
        }
        let head = format!(
            "\n<details><summary>{}: {}</summary>\n\n| {} |\n|{}\n",
            escape_html(title),
            rows.len(),
            columns.join(" | "),
            "---|".repeat(columns.len())
        );
        self.tables.push(Table { head, rows });
    }

    /// Adds a line of Markdown after the tables.
    pub fn line(&mut self, line: &str) {
        let _ = write!(self.end, "\n{line}\n");
    }

    /// The document. Where it would be longer than a pull request takes, the longest tables lose
    /// their last rows and say how many.
    pub fn finish(self) -> String {
        let fixed = |table: &Table| table.head.len() + SPARE;
        let taken =
            self.summary.len() + self.end.len() + self.tables.iter().map(fixed).sum::<usize>();
        let mut budgets = shares(
            MOST.saturating_sub(taken),
            &self
                .tables
                .iter()
                .map(|table| table.rows.iter().map(String::len).sum())
                .collect::<Vec<_>>(),
        )
        .into_iter();
        let mut text = self.summary + "\n";
        for Table { head, rows } in self.tables {
            text += &head;
            let (mut left, all, mut shown) = (budgets.next().unwrap_or_default(), rows.len(), 0);
            for row in rows {
                match left.checked_sub(row.len()) {
                    Some(rest) => left = rest,
                    None => break,
                }
                text += &row;
                shown += 1;
            }
            if shown < all {
                let _ = write!(
                    text,
                    "\n… and {} more; `--output json` has all of them\n",
                    all - shown
                );
            }
            text += "\n</details>\n";
        }
        text + &self.end
    }
}

/// How much of `budget` each of the `wanted` gets: the small ones all, the large ones as much as
/// each other.
fn shares(budget: usize, wanted: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&at| wanted[at]);
    let (mut left, mut shares) = (budget, vec![0; wanted.len()]);
    for (done, at) in order.into_iter().enumerate() {
        shares[at] = wanted[at].min(left / (wanted.len() - done));
        left -= shares[at];
    }
    shares
}

/// `plain` as the text of a cell: nothing in it is markup, and it stays on one line.
pub fn text(plain: &str) -> String {
    let mut out = String::with_capacity(plain.len());
    for c in plain.chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            // neither a person is called nor an issue linked
            '@' => out += "&#64;",
            '#' => out += "&#35;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' => out.extend(['\\', c]),
            c if is_hidden(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// `plain` as code in a cell.
pub fn code(plain: &str) -> String {
    match plain.chars().any(|c| c == '`' || c == '\\' || is_hidden(c)) {
        true => text(plain),
        false => format!("`{}`", plain.replace('|', "\\|")),
    }
}

/// `plain` as a block of code, whatever fences stand in it.
pub fn block(plain: &str) -> String {
    let longest = plain
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", plain.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_any_size_stays_within_its_bound_and_says_what_it_left_out() {
        let mut document = Markdown::new("**5,003 changes**");
        document.table(
            "moved",
            &["name", "to"],
            (0..3).map(|at| vec![code(&format!("m{at}")), "x".into()]),
        );
        let row = |at| {
            vec![
                code(&format!("registry.test/some/longer/repository-{at}:v1")),
                "12 MB".into(),
            ]
        };
        document.table("added", &["name", "new"], (0..5000).map(row));
        document.table("removed", &["name", "new"], (0..5000).map(row));
        document.line("the end");
        let text = document.finish();
        assert!(
            text.len() <= MOST && text.len() > MOST - 1000,
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
        // the two long ones are cut alike
        let rows: Vec<usize> = text
            .split("<details>")
            .map(|part| part.matches("\n| `").count())
            .collect();
        assert!(rows[2].abs_diff(rows[3]) < 3 && rows[1] == 3, "{rows:?}");
    }

    #[test]
    fn nothing_from_servers_is_markup() {
        assert_eq!(
            text("a|b\n<b>@joe #1 [x](y) `c`"),
            "a\\|b\\n&lt;b&gt;&#64;joe &#35;1 \\[x\\](y) \\`c\\`"
        );
        assert_eq!(code("a|b"), "`a\\|b`");
        assert_eq!(code("a`<b>`"), "a\\`&lt;b&gt;\\`");
        assert_eq!(block("x\n```\ny"), "````text\nx\n```\ny\n````\n");
    }
}
