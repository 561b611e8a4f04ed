//! The names of a suite and its vendor in a `Release` file, for documents such as SBOMs.

use super::paragraph::{Paragraph, paragraphs};

/// The names in a `Release` file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReleaseNames {
    /// The field `Origin`, such as `Debian`.
    pub origin: Option<String>,
    /// `Codename`, such as `bookworm`, or `Suite` if the release has no code name.
    pub distro: Option<String>,
}

impl ReleaseNames {
    /// Reads the names from the text of a `Release` file. Missing fields are `None`.
    pub fn parse(text: &str) -> ReleaseNames {
        let Some(paragraph) = paragraphs(text).next() else {
            return ReleaseNames::default();
        };
        ReleaseNames {
            origin: non_empty(paragraph, "Origin"),
            distro: non_empty(paragraph, "Codename").or_else(|| non_empty(paragraph, "Suite")),
        }
    }
}

fn non_empty(paragraph: Paragraph<'_>, name: &str) -> Option<String> {
    paragraph
        .field(name)
        .filter(|value| !value.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_name_is_preferred_to_the_suite() {
        let names = |text| {
            let ReleaseNames { origin, distro } = ReleaseNames::parse(text);
            (origin.unwrap_or_default(), distro.unwrap_or_default())
        };
        let own = |origin: &str, distro: &str| (origin.to_owned(), distro.to_owned());
        assert_eq!(
            names("Origin: Debian\nSuite: stable\nCodename: bookworm\n"),
            own("Debian", "bookworm")
        );
        assert_eq!(names("Suite: stable\nCodename:\n"), own("", "stable"));
        assert_eq!(names(""), own("", ""));
    }
}
