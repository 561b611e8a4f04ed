//! Conditions of rules: on identities in certificates, and on the provenance.

use crate::statement::Provenance;
use landfall_model::TextPattern;
use landfall_model::document::ProvenanceRule;
use std::fmt;

/// Patterns for the issuer and the identity in a certificate of Fulcio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignerIdentity {
    pub(crate) issuer: TextPattern,
    pub(crate) identity: TextPattern,
}

impl SignerIdentity {
    pub(crate) fn matches(&self, issuer: &str, identity: &str) -> bool {
        self.issuer.matches(issuer) && self.identity.matches(identity)
    }
}

/// Conditions on the provenance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProvenanceConditions {
    builder: Option<TextPattern>,
    source: Option<TextPattern>,
}

impl ProvenanceConditions {
    pub(crate) fn new(rule: &ProvenanceRule) -> ProvenanceConditions {
        let pattern = |text: &Option<String>| text.as_deref().map(TextPattern::new);
        ProvenanceConditions {
            builder: pattern(&rule.builder),
            source: pattern(&rule.source),
        }
    }

    /// Fails with a description of `provenance` if it does not meet the conditions, or names
    /// neither builder nor source: SLSA requires a builder, and a lock records a provenance by
    /// these names.
    pub(crate) fn check(&self, provenance: &Provenance) -> Result<(), String> {
        for (what, pattern, found) in [
            ("builder", &self.builder, &provenance.builder),
            ("source", &self.source, &provenance.source),
        ] {
            let Some(pattern) = pattern else { continue };
            let Some(found) = found else {
                return Err(format!("a provenance without a {what}"));
            };
            if !pattern.matches(found) {
                return Err(format!("a provenance with the {what} {found}"));
            }
        }
        if provenance.builder.is_none() && provenance.source.is_none() {
            return Err("a provenance without a builder".into());
        }
        Ok(())
    }
}

impl fmt::Display for ProvenanceConditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(", and the signed statement must be a provenance")?;
        if let Some(builder) = &self.builder {
            write!(f, " with the builder {builder}")?;
        }
        if let Some(source) = &self.source {
            let word = if self.builder.is_some() {
                "and"
            } else {
                "with"
            };
            write!(f, " {word} the source {source}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_for_any_builder_still_requires_a_builder() {
        let conditions = ProvenanceConditions {
            builder: Some(TextPattern::new("*")),
            source: None,
        };
        let provenance = |builder: Option<&str>| Provenance {
            builder: builder.map(Into::into),
            source: None,
        };
        assert_eq!(
            conditions.check(&provenance(Some("https://b.example"))),
            Ok(())
        );
        let any = ProvenanceConditions {
            builder: None,
            source: None,
        };
        assert_eq!(any.check(&provenance(Some("https://b.example"))), Ok(()));
        for conditions in [conditions, any] {
            let refused = conditions.check(&provenance(None));
            assert_eq!(refused, Err("a provenance without a builder".into()));
        }
    }

    #[test]
    fn the_description_contains_the_required_builder_and_source() {
        let described = |builder: Option<&str>, source: Option<&str>| {
            let conditions = ProvenanceConditions {
                builder: builder.map(TextPattern::new),
                source: source.map(TextPattern::new),
            };
            conditions.to_string()
        };
        let start = ", and the signed statement must be a provenance with the";
        assert_eq!(described(Some("b"), None), format!("{start} builder b"));
        assert_eq!(described(None, Some("s")), format!("{start} source s"));
        assert_eq!(
            described(Some("b"), Some("s")),
            format!("{start} builder b and the source s")
        );
    }
}
