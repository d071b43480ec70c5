//! Where a parameter's value comes from when the question does not hold it.

use serde_json::Value;
use switchboard_domain::JsonObject;

use super::{Dialogue, Moment, goal::Target};
use crate::{
    act::may_change,
    catalog::Tool,
    chain::{Lookup, Selection, Selector, look_up, producer, selection},
    extract::Reading,
    fill::Filling,
    history::Call,
    records::Record,
    schema::Param,
    validate::fits,
    wording,
};

/// What there is for a parameter.
pub(super) enum Supply {
    /// These values, from results.
    Values(Vec<Value>),
    /// This tool gives it.
    Call(String, JsonObject),
    /// The person must say which.
    Ask(String),
    /// What should have given it did not.
    Failed(String),
    /// Nothing gives it.
    Nothing,
}

impl Dialogue {
    /// The places of a text that say which thing is meant, if results or tools can give it.
    /// Decided from before the turn only, so that it does not change within the turn.
    pub(super) fn reach(
        &self,
        reading: &Reading<'_>,
        tool: &Tool,
        param: &Param,
        filling: &Filling,
        moment: Moment,
    ) -> Option<Vec<(usize, usize)>> {
        let selection = selection(reading, param, filling)?;
        let earlier = self.earlier(moment);
        let found = self.look(&earlier, tool, param, &selection);
        let reachable = !matches!(found, Lookup::Nothing)
            || (selection.selector != Selector::Only
                && producer(
                    &self.index.tools,
                    &self.allowed,
                    tool,
                    param,
                    reading,
                    &selection,
                )
                .is_some());
        reachable.then_some(selection.spans)
    }

    /// The value of a parameter that the text of a target does not hold.
    pub(super) fn supply(
        &self,
        target: &Target,
        tool: &Tool,
        param: &Param,
        moment: Moment,
    ) -> Supply {
        let reading = Reading::new(&target.text, self.today);
        let selection = match selection(&reading, param, &target.filling) {
            Some(selection) => selection,
            // A name alone, in answer to a question for it.
            None if target.reply => Selection {
                selector: Selector::Named(vec![
                    target
                        .text
                        .trim_matches(|c: char| !c.is_alphanumeric())
                        .to_owned(),
                ]),
                back: true,
                spans: Vec::new(),
            },
            None => return Supply::Nothing,
        };
        // "Cancel the last order" may mean the newest or the one at the end: nothing is changed for a guess.
        let says_last = |&(start, end): &(usize, usize)| {
            reading.slice(start, end).to_lowercase().starts_with("last")
        };
        if may_change(&reading, tool)
            && !selection.back
            && selection.selector == Selector::Nth(0)
            && selection.spans.first().is_some_and(says_last)
        {
            return Supply::Ask(wording::ask_for(tool, &[param], target.again));
        }
        let turn = self.turn(moment);
        let of_turn: Vec<&Call> = turn
            .iter()
            .copied()
            .filter(|call| call.name != tool.id())
            .collect();
        let earlier = self.earlier(moment);
        let source = if selection.selector == Selector::Only || (target.reply && selection.back) {
            None
        } else {
            producer(
                &self.index.tools,
                &self.allowed,
                tool,
                param,
                &reading,
                &selection,
            )
        };
        let mut found = self.look(&of_turn, tool, param, &selection);
        // "The most recent customer" is found out anew, "the first one" is not.
        let by_name = matches!(selection.selector, Selector::Named(_));
        if found == Lookup::Nothing && (selection.back || by_name || source.is_none()) {
            found = self.look(&earlier, tool, param, &selection);
        }
        let called = source.map(|(source, filling)| {
            let made = turn
                .iter()
                .find(|call| call.name == source.id() && call.input == filling.input)
                .copied();
            (source, filling, made)
        });
        match (found, called) {
            (Lookup::Found(records), _) => {
                Supply::Values(records.into_iter().map(|record| record.value).collect())
            }
            (Lookup::Several(records), _) => Supply::Ask(wording::ask_which(param, &records)),
            (Lookup::NoneNamed(_) | Lookup::Nothing, Some((source, filling, None))) => {
                Supply::Call(source.id().to_owned(), filling.input)
            }
            (_, Some((source, _, Some(call))))
                if call.result.as_ref().is_none_or(|r| r.is_error) =>
            {
                Supply::Failed(crate::answer::write(&reading, source, &[call], &[]))
            }
            (Lookup::NoneNamed(name), _) if !target.reply => {
                Supply::Ask(wording::none_named(&name, param))
            }
            (_, Some((source, ..))) => Supply::Failed(wording::nothing_found(tool, source, param)),
            _ => Supply::Nothing,
        }
    }

    fn earlier(&self, moment: Moment) -> Vec<&Call> {
        self.history.calls_between(0, moment.asked)
    }

    /// What calls hold for a parameter: their results, and for "it" what they were called with.
    fn look(&self, calls: &[&Call], tool: &Tool, param: &Param, selection: &Selection) -> Lookup {
        let root = &tool.definition.input_schema;
        if let (Selector::Only, Some(last)) = (&selection.selector, calls.last()) {
            let mut spoken: Vec<Record> = Vec::new();
            let failed = |call: &Call| call.result.as_ref().is_some_and(|result| result.is_error);
            for call in calls
                .iter()
                .filter(|call| call.at == last.at && !failed(call))
            {
                let value = call
                    .input
                    .get(&param.name)
                    .filter(|value| fits(value, &param.schema, root));
                if let Some(value) = value
                    && !spoken.iter().any(|record| record.value == *value)
                {
                    spoken.push(Record {
                        value: value.clone(),
                        fields: JsonObject::new(),
                    });
                }
            }
            match spoken.len() {
                0 => {}
                1 => return Lookup::Found(spoken),
                _ => return Lookup::Several(spoken),
            }
        }
        look_up(calls, &self.index.tools, param, root, Some(selection))
    }
}
