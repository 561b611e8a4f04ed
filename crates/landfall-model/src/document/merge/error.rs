//! Why values cannot be set in a text.

/// Why values cannot be set in a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// The text does not parse.
    #[error("it is no YAML that can be merged into: {0}")]
    NotYaml(String),
    /// Two kinds of values meet.
    #[error("{path} is {there} in it, and would become {wanted}; change it by hand first")]
    Kind {
        /// The dotted path of the value.
        path: String,
        /// The kind of the value in the text.
        there: &'static str,
        /// The kind of the new value.
        wanted: &'static str,
    },
    /// The notation of the text is not understood.
    #[error("its form at {0} is one that cannot be edited; write the values there by hand")]
    Form(String),
    /// Content of the text would be removed, one line for each place.
    #[error("content of it would be removed:\n{}\nhelp: keep a copy and add --replace; with --diff nothing is \
             written, and the change is shown", .0.join("\n"))]
    Lost(Vec<String>),
    /// A list has common items in another order than the new values need.
    #[error(
        "{path} has some of these items in another order, and the order matters; put them there by hand:\n{items}"
    )]
    Order {
        /// The dotted path of the list.
        path: String,
        /// The items as a list of YAML, without accounts.
        items: String,
    },
}
