//! The model of tokens: which token follows, given the matches that the window offers.

use super::coder::{BitCoder, NumberModel, Probability, code_tree};
use super::matcher::{MatchSearch, WindowMatch};
use crate::error::DeflateError;
use crate::inflate::DecodedToken;
use crate::symbols::{LONGEST_MATCH, SHORTEST_MATCH, WINDOW};

/// The number of classes of match lengths. Class 0 means that there is no match.
const LENGTH_CLASSES: usize = 15;
const CLASS_OF_LENGTH: [u8; LONGEST_MATCH + 1] = {
    let starts = [3, 4, 5, 6, 7, 8, 10, 13, 17, 25, 33, 65, 129, 258];
    let mut classes = [0; LONGEST_MATCH + 1];
    let mut length = SHORTEST_MATCH;
    while length <= LONGEST_MATCH {
        let mut class = 0;
        while class < starts.len() && starts[class] <= length {
            class += 1;
        }
        classes[length] = class as u8;
        length += 1;
    }
    classes
};

/// The number of classes of the match one byte later, compared with the match here: none or
/// shorter, equal, longer by 1, longer by more.
const COMPARISONS: usize = 4;
/// The number of kinds of the previous token.
const BEFORE_CLASSES: usize = 3;
/// The number of classes of distances: up to 256, 4096 and 16,384, and longer ones.
const DISTANCE_CLASSES: usize = 4;

/// The previous token, reduced to the properties that the model uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PreviousToken {
    Match,
    /// A literal although there was a match.
    SkippedMatch,
    Literal,
}

/// The adaptive model of tokens.
#[derive(Debug, Clone)]
pub(super) struct TokenModel {
    before: PreviousToken,
    /// The match at the current position, if it was searched already.
    found: Option<WindowMatch>,
    is_match: Vec<Probability>,
    is_longest: Vec<Probability>,
    lengths: Vec<[Probability; 256]>,
    is_long_form: Probability,
    is_nearest: [[Probability; LENGTH_CLASSES]; 2],
    is_ranked: Probability,
    ranks: NumberModel,
    distances: NumberModel,
}

impl TokenModel {
    pub(super) fn new() -> Self {
        Self {
            before: PreviousToken::Literal,
            found: None,
            is_match: vec![
                Probability::EVEN;
                LENGTH_CLASSES * COMPARISONS * BEFORE_CLASSES * DISTANCE_CLASSES
            ],
            is_longest: vec![Probability::EVEN; LENGTH_CLASSES * BEFORE_CLASSES * DISTANCE_CLASSES],
            lengths: vec![[Probability::EVEN; 256]; LENGTH_CLASSES],
            is_long_form: Probability::EVEN,
            is_nearest: [[Probability::EVEN; LENGTH_CLASSES]; 2],
            is_ranked: Probability::EVEN,
            ranks: NumberModel::new(),
            distances: NumberModel::new(),
        }
    }

    /// Resets the state that does not apply to the next token, because that token is in another
    /// stream or follows a stored block.
    pub(super) fn interrupt(&mut self) {
        self.before = PreviousToken::Literal;
        self.found = None;
    }

    /// Codes the token at the current position of `matcher`. From there, `matcher` must have
    /// `LOOKAHEAD` plain bytes or, if the stream ends earlier, all remaining bytes, at least one. A
    /// decoder ignores `actual`.
    pub(super) fn code<C: BitCoder>(
        &mut self,
        coder: &mut C,
        matcher: &mut MatchSearch,
        actual: DecodedToken,
    ) -> Result<DecodedToken, DeflateError> {
        let here = match self.found.take() {
            Some(found) => found,
            None => matcher.search(),
        };
        let mut next = WindowMatch::default();
        if here.length > 0 {
            next = matcher.search_next(here.length);
        }
        let class = class_of(here.length);
        let shared = (class * BEFORE_CLASSES + self.before as usize) * DISTANCE_CLASSES
            + distance_class(here.distance);
        let context = shared * COMPARISONS + comparison(here, next);
        let is_match = coder.code(actual.as_match().is_some(), &mut self.is_match[context]);
        if !is_match {
            self.found = (next.length > 0).then_some(next);
            self.before = if here.length > 0 {
                PreviousToken::SkippedMatch
            } else {
                PreviousToken::Literal
            };
            return Ok(DecodedToken::literal(matcher.ahead()[0]));
        }
        self.before = PreviousToken::Match;
        let (length, distance) = actual.as_match().unwrap_or((SHORTEST_MATCH, 1));
        let mut coded_length = here.length;
        if here.length == 0 || !coder.code(length == here.length, &mut self.is_longest[shared]) {
            let tree = &mut self.lengths[class];
            coded_length = SHORTEST_MATCH + code_tree(coder, length - SHORTEST_MATCH, 8, tree);
        }
        if coded_length > matcher.ahead().len() {
            return Err(DeflateError::Recipe("a match is longer than the stream"));
        }
        let is_long_form = coded_length == LONGEST_MATCH
            && coder.code(actual.is_long_form(), &mut self.is_long_form);
        let distance = self.code_distance(coder, matcher, here, coded_length, distance)?;
        if distance > matcher.longest_distance() {
            return Err(DeflateError::Recipe("a match begins before the stream"));
        }
        Ok(if is_long_form {
            DecodedToken::matched_in_long_form(distance)
        } else {
            DecodedToken::matched(coded_length, distance)
        })
    }

    /// Codes the distance of a match: as the nearest match of this length, as the number of nearer
    /// matches, or as the distance itself.
    fn code_distance<C: BitCoder>(
        &mut self,
        coder: &mut C,
        matcher: &mut MatchSearch,
        here: WindowMatch,
        length: usize,
        distance: usize,
    ) -> Result<usize, DeflateError> {
        let is_longest = length == here.length;
        let nearest = if is_longest {
            Some(here.distance)
        } else {
            matcher.distances(length).next()
        };
        let Some(nearest) = nearest else {
            return Ok(self.distances.code(coder, distance - 1) % WINDOW + 1);
        };
        let probability = &mut self.is_nearest[usize::from(is_longest)][class_of(length)];
        if coder.code(distance == nearest, probability) {
            return Ok(nearest);
        }
        let rank = matcher
            .distances(length)
            .position(|other| other == distance);
        if coder.code(rank.is_some(), &mut self.is_ranked) {
            let rank = self.ranks.code(coder, rank.unwrap_or(0));
            return matcher
                .distances(length)
                .nth(rank)
                .ok_or(DeflateError::Recipe("a match does not exist"));
        }
        Ok(self.distances.code(coder, distance - 1) % WINDOW + 1)
    }
}

fn class_of(length: usize) -> usize {
    usize::from(CLASS_OF_LENGTH[length])
}

fn distance_class(distance: usize) -> usize {
    usize::from(distance > 256) + usize::from(distance > 4096) + usize::from(distance > 16384)
}

fn comparison(here: WindowMatch, next: WindowMatch) -> usize {
    match next.length {
        0 => 0,
        length => 1 + (length - here.length).min(2),
    }
}
