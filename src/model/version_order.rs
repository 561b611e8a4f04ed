//! The order of versions that look alike, by their numbers.

use std::cmp::Ordering;

/// A text with numbers in it, by which it is ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VersionOrder {
    shape: String,
    numbers: Vec<String>,
}

impl VersionOrder {
    /// Takes `text` apart; `None` where it has no number.
    pub(crate) fn parse(text: &str) -> Option<VersionOrder> {
        let (mut shape, mut numbers) = (String::new(), Vec::new());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let is_number = first.is_ascii_digit();
            let end = rest.find(|c: char| c.is_ascii_digit() != is_number).unwrap_or(rest.len());
            let (piece, behind) = rest.split_at(end);
            if is_number {
                shape.push('#');
                numbers.push(piece.trim_start_matches('0').to_owned());
            } else {
                shape += piece;
            }
            rest = behind;
        }
        (!numbers.is_empty()).then_some(VersionOrder { shape, numbers })
    }

    /// What is around the numbers: only versions of one shape are compared.
    pub(crate) fn shape(&self) -> &str {
        &self.shape
    }

    /// How it stands to another one of its shape.
    pub(crate) fn order(&self, other: &VersionOrder) -> Ordering {
        let key = |version: &VersionOrder| -> Vec<(usize, String)> {
            version.numbers.iter().map(|number| (number.len(), number.clone())).collect()
        };
        key(self).cmp(&key(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_as_numbers() {
        let version = |text: &str| VersionOrder::parse(text).unwrap();
        for (a, b) in
            [("v1.9.0", "v1.10.0"), ("1.27.3-alpine3.9", "1.27.3-alpine3.20"), ("2024.08", "2024.11")]
        {
            assert_eq!(version(a).order(&version(b)), Ordering::Less, "{a} {b}");
            assert_eq!(version(a).shape(), version(b).shape());
        }
        assert_ne!(version("1.2").shape(), version("1.2.0").shape());
        assert_eq!(VersionOrder::parse("latest"), None);
    }
}
