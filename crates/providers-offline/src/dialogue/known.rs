//! What a result that is there already answers: "Is that more than 100 euros?"

use super::{Dialogue, Moment, is_too_long};
use crate::{answer::compared, comparison::Comparison, extract::Reading, history::Call};

impl Dialogue {
    /// The answer to a question that compares what was found out last with a number; `None` if it is no such question, or if
    /// the results do not tell.
    pub(super) fn known(&self, reading: &Reading<'_>, moment: Moment) -> Option<String> {
        let comparison = Comparison::of(reading)?;
        let earlier = self.history.calls_between(0, moment.asked);
        let last = *earlier.last()?;
        let tool = self
            .index
            .tools
            .iter()
            .find(|tool| tool.id() == last.name)?;
        let mut asked = self.history.asked.iter().rev();
        let (at, before) = asked.find(|(at, _)| *at < last.at)?;
        // "That" is what was spoken of last, and without a call that is no result.
        let between = |(other, text): &&(usize, String)| {
            *other > *at
                && *other < moment.asked
                && (is_too_long(text) || Comparison::of(&Reading::new(text, self.today)).is_none())
        };
        if is_too_long(before) || self.history.asked.iter().any(|asked| between(&asked)) {
            return None;
        }
        let before = Reading::new(before, self.today);
        let of_turn: Vec<&Call> = earlier
            .iter()
            .copied()
            .filter(|call| call.at > *at && call.name == last.name)
            .collect();
        let told: Option<Vec<String>> = of_turn
            .iter()
            .map(|call| compared(&comparison, reading, &before, tool, call, &earlier))
            .collect();
        told.map(|told| told.join("\n"))
    }
}
