//! Annotations that a CI service shows at a line of a file, as GitHub workflow commands.

use super::escape::escape_lines;

/// The severity of an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnotationLevel {
    /// Something changed, but no action is needed.
    Notice,
    /// Something needs attention, but nothing failed.
    Warning,
    /// Something failed: the command or one of its items.
    Error,
}

/// A message that a CI service shows, if possible at its position in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CiAnnotation {
    /// The severity, by which the CI service colours the message.
    pub level: AnnotationLevel,
    /// File, line and column, if the message belongs to a position in a file.
    pub place: Option<(String, usize, usize)>,
    /// The subject of the message, such as the name of an item.
    pub title: String,
    /// The message, which may have several lines.
    pub message: String,
}

impl CiAnnotation {
    /// The annotation as a workflow command of GitHub Actions, one line.
    pub fn command(&self) -> String {
        let level = match self.level {
            AnnotationLevel::Notice => "notice",
            AnnotationLevel::Warning => "warning",
            AnnotationLevel::Error => "error",
        };
        let mut position = String::new();
        if let Some((file, line, column)) = &self.place {
            position = format!("file={},line={line},col={column},", escape_property(file));
        }
        format!(
            "::{level} {position}title={}::{}\n",
            escape_property(&self.title),
            escape_message(&self.message)
        )
    }
}

/// Escapes the message of a workflow command. The message ends at the end of the line.
fn escape_message(text: &str) -> String {
    escape_lines(text)
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a property of a workflow command. The property also ends at a comma or `::`.
fn escape_property(text: &str) -> String {
    escape_message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_message_is_a_command() {
        let place = Some(("a,b.yaml".to_owned(), 3, 7));
        let annotation = CiAnnotation {
            level: AnnotationLevel::Warning,
            place,
            title: "x: y".into(),
            message: "50%\n::error::z\u{1b}".into(),
        };
        let command = "::warning file=a%2Cb.yaml,line=3,col=7,title=x%3A \
                       y::50%25%0A\\u{3a}:error::z\\u{1b}\n";
        assert_eq!(annotation.command(), command);
    }
}
