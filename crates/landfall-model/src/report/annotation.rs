//! What a CI shows at a line of a file, as GitHub's workflow commands have it.

use super::escape::escape;

/// How urgent an annotation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnotationLevel {
    /// Something changed.
    Notice,
    /// Somebody should look.
    Warning,
    /// Something failed.
    Error,
}

/// A message about a place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CiAnnotation {
    /// How urgent it is.
    pub level: AnnotationLevel,
    /// File, line and column, where there is a place.
    pub place: Option<(String, usize, usize)>,
    /// What it is about.
    pub title: String,
    /// What there is to say.
    pub message: String,
}

impl CiAnnotation {
    /// The workflow command, one line.
    pub fn command(&self) -> String {
        let word = match self.level {
            AnnotationLevel::Notice => "notice",
            AnnotationLevel::Warning => "warning",
            AnnotationLevel::Error => "error",
        };
        let place = self
            .place
            .as_ref()
            .map_or_else(String::new, |(file, line, column)| {
                format!("file={},line={line},col={column},", property(file))
            });
        format!(
            "::{word} {place}title={}::{}\n",
            property(&self.title),
            data(&self.message)
        )
    }
}

/// A message of a workflow command: it stays on its line.
fn data(text: &str) -> String {
    escape(text)
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// A property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_message_is_a_command() {
        let place = Some(("a,b.yaml".to_owned(), 3, 7));
        let (title, message) = ("x: y".into(), "50%\n::error::z\u{1b}".into());
        let annotation = CiAnnotation {
            level: AnnotationLevel::Warning,
            place,
            title,
            message,
        };
        let command = "::warning file=a%2Cb.yaml,line=3,col=7,title=x%3A y::50%25%0A\\u{3a}:error::z\\u{1b}\n";
        assert_eq!(annotation.command(), command);
    }
}
