//! Findings of an audit: a reference or URL, its place, and whether the lock covers it.

use landfall_model::ImageRef;
use serde::Serialize;

/// What a text names at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Line, from 1.
    pub line: usize,
    /// Column, in characters from 1.
    pub column: usize,
    /// The keys that lead there, `[n]` for items of lists. Empty where the text is not a document.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "serialize_path"
    )]
    pub path: Vec<String>,
    /// The package manager, where it is a package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manager: Option<&'static str>,
    /// The reference or URL as written; the parts of a split one put together.
    pub reference: String,
    /// What the lock says about it.
    #[serde(flatten)]
    pub coverage: Coverage,
}

/// A [`Finding`] and its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileFinding {
    /// The file; of an archive, its path and the path inside.
    pub file: String,
    /// What was found there.
    #[serde(flatten)]
    pub finding: Finding,
}

impl FileFinding {
    /// One line for people: place, `word`, reference, why.
    pub fn line(&self, word: &str) -> String {
        let Finding {
            line,
            column,
            path,
            manager,
            reference,
            coverage,
        } = &self.finding;
        let why = match coverage {
            Coverage::Missing { why, .. }
            | Coverage::Ambiguous { why, .. }
            | Coverage::Undecided { why } => why,
            Coverage::Held { item } => item,
        };
        let path = if path.is_empty() {
            String::new()
        } else {
            format!("{}: ", dotted(path))
        };
        let manager = manager.map(|by| format!("{by} ")).unwrap_or_default();
        format!(
            "{}:{line}:{column}: {word} {path}{manager}{reference}: {why}",
            self.file
        )
    }
}

impl Coverage {
    /// Whether a node may pull it from the internet although the lock has its repository.
    pub fn is_ambiguous(&self) -> bool {
        matches!(self, Coverage::Ambiguous { .. })
    }
}

/// A path of keys as `helm --set` takes it.
pub fn dotted(path: &[String]) -> String {
    path.iter()
        .enumerate()
        .fold(String::new(), |out, (at, key)| {
            let item = key.starts_with('[') && key.ends_with(']');
            let dot = if at == 0 || item { "" } else { "." };
            out + dot + &key.replace('.', "\\.")
        })
}

fn serialize_path<S: serde::Serializer>(path: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&dotted(path))
}

/// What a lock says about a reference or URL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Coverage {
    /// It is this locked item.
    Held {
        /// Its name in the lock.
        item: String,
    },
    /// It is not in the lock.
    Missing {
        /// The image that would have to be carried, with its own host; `None` for a URL, and where
        /// the site's name for it could stand for anything.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<ImageRef>,
        /// The file that would have to be carried.
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// Why.
        why: String,
    },
    /// The lock has this repository, but the reference names neither a host nor a tag: it is left
    /// as it is by a rewrite, and a node pulls what it becomes from its default registry.
    #[serde(rename = "undecided")]
    Ambiguous {
        /// The locked item.
        item: String,
        /// Why, and what to write.
        why: String,
    },
    /// It cannot be decided whether it names something, or what.
    Undecided {
        /// Why.
        why: String,
    },
}
