//! Whether the calls of a model are those that were expected.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use switchboard_orchestration::{ToolCallRecord, ToolFailure};

use crate::{
    recording::is_redacted,
    suite::{ExpectedCall, Fit, Forbidden, Matcher, Turn, pairs},
};

pub(crate) mod bfcl;
pub(crate) mod first_response;

/// How a call ended, whatever was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallEnd {
    /// The tool ran and says that it did its work.
    Successful,
    /// The tool or its server failed, or did not answer.
    Failed,
    /// The model asked for a tool that does not exist, or with arguments that do not fit.
    Hallucinated,
    /// It was denied, skipped, over a limit or cancelled before it began.
    NotExecuted,
}

/// What a call is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Worth {
    /// The right tool with the right arguments at the right place. Whether it ran says its end.
    Right,
    /// The right tool with the right arguments, but not in the order that was expected.
    WrongOrder,
    /// A tool that was needed with other arguments than expected: the model made them up.
    WrongInput,
    /// A tool or arguments that do not exist.
    Hallucinated,
    /// The tool must not be called.
    Forbidden,
    /// Where it is said which calls are right, nobody expected it, or its result was there already.
    Unnecessary,
    /// What was expected of it cannot be told: a secret was struck out of its arguments when it was recorded. Neither
    /// right nor wrong.
    Unknown,
    /// Nothing was said about it.
    Unjudged,
}

/// A call and what it is worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgedCall {
    /// The server; `None` for a tool of the program itself.
    pub server: Option<String>,
    /// The tool's own name.
    pub tool: String,
    /// The input that the tool got: what the model wrote, after the loop mended what did not fit the schema and could
    /// be mended, such as a number in quotes. Where [`Scoring::Bfcl`](crate::suite::Scoring::Bfcl) judges, what it wrote.
    pub input: Value,
    /// How it ended.
    pub end: CallEnd,
    /// What it is worth.
    pub worth: Worth,
    /// Why it is not right, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The beginning of what the model read.
    pub result: String,
}

/// Whether secrets were struck out of a call's input when it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// They were not: what stands there is what the model wrote.
    Nothing,
    /// They were, and what is left fits the tool's schema, as it is or as the loop mends it. Then it is mended.
    Fitting,
    /// They were, and what is left does not fit it, whatever they were.
    Refused,
}

/// What is to be said of the calls of one turn.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Judgement {
    /// The calls, in the order in which the model asked.
    pub calls: Vec<JudgedCall>,
    /// Expected calls that were not made, for people.
    pub missing: Vec<String>,
    /// Of those that are missing, how many were made with other arguments, also such as the tool refuses, or in the wrong
    /// order: they are no further faults.
    #[serde(default)]
    pub attempted: usize,
    /// Needed calls that were made at their place and did not run, and why, for people: the model did right, and
    /// nothing was done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_executed: Vec<String>,
}

/// Bytes of a result that a report shows.
const RESULT: usize = 2_000;

/// What the model's calls are worth, in the order in which it asked. `earlier` are calls of the turns before:
/// what was learnt there need not be asked again. `cut` tells of calls that come from a recording whether secrets were
/// struck out of them, so that some of what was expected of them cannot be told.
pub fn judge(
    turn: &Turn,
    calls: &[ToolCallRecord],
    earlier: &[ToolCallRecord],
    cut: &dyn Fn(&ToolCallRecord) -> Cut,
) -> Judgement {
    let expected = turn.calls.as_deref().unwrap_or_default();
    let wanted: Vec<Wanted<'_>> = expected.iter().map(Wanted::of).collect();
    let cut: Vec<Cut> = calls.iter().map(cut).collect();
    let ends: Vec<CallEnd> = calls
        .iter()
        .zip(&cut)
        .map(|(call, cut)| end_in(call, *cut))
        .collect();
    let Assigned {
        taken,
        strays,
        left,
        mut unmet,
        mut attempted,
    } = assign(turn, &wanted, calls, &cut, &ends);
    let is_open = |call: &usize| {
        let is_taken = taken.contains_key(call) || strays.contains(call);
        cut[*call] != Cut::Nothing && ends[*call] != CallEnd::Hallucinated && !is_taken
    };
    let open: Vec<usize> = (0..calls.len()).filter(is_open).collect();
    let optional = left.iter().filter(|one| expected[**one].optional);
    // Needed ones first, of which no other call is one.
    let ones: Vec<usize> = unmet.iter().chain(optional).copied().collect();
    let unknown = unknown(&ones, &open, |one, call| {
        wanted[one].fit(&calls[call], cut[call]) == Fit::Unknown
    });
    unmet.retain(|one| !unknown.values().any(|it| it == one));
    let not_executed = not_executed(expected, &wanted, &taken, calls, &cut, &ends);
    let forbidden: Vec<Forbidden> = turn.forbidden.iter().map(|it| Forbidden::of(it)).collect();
    let earlier = earlier.iter().filter(|call| !call.is_error);
    let mut seen: HashSet<Key<'_>> = earlier.map(Key::of).collect();
    let mut failed = HashSet::new();
    let mut judged = Vec::with_capacity(calls.len());
    for (at, call) in calls.iter().enumerate() {
        let key = Key::of(call);
        // Two secrets look alike when both are struck out.
        let is_repeated = cut[at] == Cut::Nothing
            && (seen.contains(&key) || call.failure == Some(ToolFailure::Repeated));
        // What failed may be tried again.
        let is_retry = failed.contains(&key);
        if call.is_error {
            failed.insert(key);
        } else {
            seen.insert(key);
        }
        let is_forbidden = |it: &Forbidden| it.names(call.server.as_deref(), &call.tool);
        let (worth, why) = if forbidden.iter().any(is_forbidden) {
            (
                Worth::Forbidden,
                Some("this tool must not be called here".to_owned()),
            )
        } else if ends[at] == CallEnd::Hallucinated {
            (
                Worth::Hallucinated,
                call.failure
                    .map(|failure| failure.as_str().replace('_', " ")),
            )
        } else if taken.contains_key(&at) {
            (Worth::Right, None)
        } else if strays.contains(&at) {
            (
                Worth::WrongOrder,
                Some("it is expected at another place".to_owned()),
            )
        } else if unknown.contains_key(&at) {
            (Worth::Unknown, not_known(call))
        } else if let Some(place) = unmet.iter().position(|one| wanted[*one].is_of(call)) {
            let one = unmet.remove(place);
            attempted += 1;
            (Worth::WrongInput, wanted[one].difference(call, cut[at]))
        } else if turn.calls.is_none() {
            // Whether it was needed is not said, and who asks for the time twice is told two times.
            (Worth::Unjudged, None)
        } else if is_repeated {
            (
                Worth::Unnecessary,
                Some("its result was there already".to_owned()),
            )
        } else if !is_own(call) && !is_retry {
            (
                Worth::Unnecessary,
                Some("no such call is expected".to_owned()),
            )
        } else {
            (Worth::Unjudged, None)
        };
        judged.push(JudgedCall {
            server: call.server.clone(),
            tool: call.tool.clone(),
            input: (*call.input).clone(),
            end: ends[at],
            worth,
            why,
            duration_ms: call.duration_ms,
            result: excerpt(call),
        });
    }
    attempted += refused(&unmet, calls, &ends, |one, call| wanted[one].is_of(call));
    Judgement {
        calls: judged,
        missing: missing(&left, expected, &unknown),
        attempted,
        not_executed,
    }
}

/// The needed ones of these expected calls that nobody made, for people.
fn missing(
    left: &[usize],
    expected: &[ExpectedCall],
    unknown: &HashMap<usize, usize>,
) -> Vec<String> {
    let missing = left.iter().filter(|one| {
        let may_be_made = unknown.values().any(|it| it == *one);
        !expected[**one].optional && !may_be_made
    });
    missing.map(|one| in_words(&expected[*one])).collect()
}

/// How a call ended. What stands in the place of a secret need not fit the schema; what stood there did or did not.
pub(crate) fn end_in(call: &ToolCallRecord, cut: Cut) -> CallEnd {
    if cut == Cut::Fitting && has_unfit_input(call) {
        CallEnd::NotExecuted
    } else {
        end_of(call)
    }
}

/// Whether its input was refused before any tool saw it.
fn has_unfit_input(call: &ToolCallRecord) -> bool {
    matches!(
        call.failure,
        Some(ToolFailure::InvalidInput | ToolFailure::MalformedInput)
    )
}

/// How many of these expected calls were attempted with input that the tool refuses: made and missing at once, they would
/// weigh twice.
fn refused(
    unmet: &[usize],
    calls: &[ToolCallRecord],
    ends: &[CallEnd],
    is_of: impl Fn(usize, &ToolCallRecord) -> bool,
) -> usize {
    let calls: Vec<&ToolCallRecord> = calls
        .iter()
        .zip(ends)
        .filter(|(_, end)| **end == CallEnd::Hallucinated)
        .map(|(call, _)| call)
        .collect();
    let found = pairs(unmet.len(), calls.len(), |one, call| {
        is_of(unmet[one], calls[call])
    });
    found.iter().flatten().count()
}

/// Which of the calls out of which something was struck may be which of these expected ones.
fn unknown(
    ones: &[usize],
    calls: &[usize],
    may_fit: impl Fn(usize, usize) -> bool,
) -> HashMap<usize, usize> {
    let mut unknown: HashMap<usize, usize> = HashMap::new();
    for &call in calls {
        let mut free = ones
            .iter()
            .filter(|one| !unknown.values().any(|it| it == *one));
        let found = free.find(|one| may_fit(**one, call)).copied();
        unknown.extend(found.map(|one| (call, one)));
    }
    unknown
}

/// Needed calls that were made and did not run, and why. One that was made again and ran then is done.
fn not_executed(
    expected: &[ExpectedCall],
    wanted: &[Wanted<'_>],
    taken: &HashMap<usize, usize>,
    calls: &[ToolCallRecord],
    cut: &[Cut],
    ends: &[CallEnd],
) -> Vec<String> {
    let ran = |call: usize| matches!(ends[call], CallEnd::Successful | CallEnd::Failed);
    let mut others: Vec<usize> = (0..calls.len())
        .filter(|call| ran(*call) && !taken.contains_key(call))
        .collect();
    let mut found = Vec::new();
    for (call, record) in calls.iter().enumerate() {
        let Some(&one) = taken.get(&call) else {
            continue;
        };
        if ends[call] != CallEnd::NotExecuted || expected[one].optional {
            continue;
        }
        // It is what was struck out that did not fit.
        if has_unfit_input(record) {
            continue;
        }
        if let Some(place) = others
            .iter()
            .position(|it| wanted[one].fits(&calls[*it], cut[*it]))
        {
            others.remove(place);
            continue;
        }
        let why = record.failure.map_or_else(
            || "it never began".to_owned(),
            |it| it.as_str().replace('_', " "),
        );
        let way_out = match record.failure {
            Some(ToolFailure::NotApproved | ToolFailure::Denied) => ": `approve` says what may run",
            _ => "",
        };
        found.push(format!("{} ({why}{way_out})", in_words(&expected[one])));
    }
    found
}

/// Which calls are the expected ones.
struct Assigned {
    /// Calls at their place, and which of those that were expected they are.
    taken: HashMap<usize, usize>,
    /// Calls that are expected elsewhere.
    strays: HashSet<usize>,
    /// Expected calls without one at their place.
    left: Vec<usize>,
    /// Of these, the needed ones without any: a call with other arguments was meant for one of them.
    unmet: Vec<usize>,
    /// Needed calls that were made elsewhere.
    attempted: usize,
}

fn assign(
    turn: &Turn,
    wanted: &[Wanted<'_>],
    calls: &[ToolCallRecord],
    cut: &[Cut],
    ends: &[CallEnd],
) -> Assigned {
    let expected = turn.calls.as_deref().unwrap_or_default();
    let fits = |one: usize, call: usize| {
        ends[call] != CallEnd::Hallucinated && wanted[one].fits(&calls[call], cut[call])
    };
    let all: Vec<usize> = (0..wanted.len()).collect();
    let in_order = if turn.any_order {
        paired(&all, expected, calls.len(), fits)
    } else {
        aligned(
            wanted.len(),
            calls.len(),
            |one| expected[one].optional,
            fits,
        )
    };
    // What is left may have been made, but not at its place.
    let left: Vec<usize> = (0..wanted.len())
        .filter(|one| in_order[*one].is_none())
        .collect();
    let pairs = in_order.iter().enumerate();
    let taken: HashMap<usize, usize> = pairs
        .filter_map(|(one, call)| Some(((*call)?, one)))
        .collect();
    let out_of_order = paired(&left, expected, calls.len(), |one, call| {
        !taken.contains_key(&call) && fits(one, call)
    });
    let strays: HashSet<usize> = out_of_order.iter().flatten().copied().collect();

    let unmet = left
        .iter()
        .zip(&out_of_order)
        .filter(|(one, call)| call.is_none() && !expected[**one].optional)
        .map(|(one, _)| *one)
        .collect();
    let found = left.iter().zip(&out_of_order);
    let attempted = found
        .filter(|(one, call)| call.is_some() && !expected[**one].optional)
        .count();
    Assigned {
        taken,
        strays,
        left,
        unmet,
        attempted,
    }
}

/// How a call ended.
pub(crate) fn end_of(call: &ToolCallRecord) -> CallEnd {
    match call.failure {
        Some(failure) if failure.is_hallucination() => CallEnd::Hallucinated,
        Some(ToolFailure::Repeated) if !call.is_error => CallEnd::Successful,
        Some(
            ToolFailure::Denied
            | ToolFailure::NotApproved
            | ToolFailure::Skipped
            | ToolFailure::LimitReached
            | ToolFailure::Repeated
            | ToolFailure::Withheld,
        ) => CallEnd::NotExecuted,
        Some(ToolFailure::Cancelled) if call.attempts == 0 => CallEnd::NotExecuted,
        Some(_) => CallEnd::Failed,
        None if call.is_error => CallEnd::Failed,
        None => CallEnd::Successful,
    }
}

/// Tools with which the program helps the model, such as the search for tools and reading on in a long
/// result: whether they are needed is not for a scenario to know.
fn is_own(call: &ToolCallRecord) -> bool {
    call.server.is_none()
}

/// What is the same of a call that is made again.
#[derive(PartialEq, Eq, Hash)]
struct Key<'a> {
    server: Option<&'a str>,
    tool: &'a str,
    input: String,
}

impl<'a> Key<'a> {
    fn of(call: &'a ToolCallRecord) -> Self {
        let mut input = String::new();
        match &*call.input {
            Value::Null => input.push_str("{}"),
            value => write_same(value, &mut input),
        }
        Self {
            server: call.server.as_deref(),
            tool: &call.tool,
            input,
        }
    }
}

/// Writes a value so that two that mean the same are the same text: names in their order, and `1` for `1.0`.
fn write_same(value: &Value, text: &mut String) {
    // Above this a fraction stands for several whole numbers.
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    // Writing to a `String` does not fail.
    let _ = match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in fields {
                let _ = write!(text, "{name:?}:");
                write_same(value, text);
                text.push(',');
            }
            text.write_char('}')
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_same(item, text);
                text.push(',');
            }
            text.write_char(']')
        }
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            // Added to nothing, since there is a zero with a sign.
            Some(it) if it.fract() == 0.0 && it.abs() < WHOLE => write!(text, "{:.0}", it + 0.0),
            _ => write!(text, "{number}"),
        },
        other => write!(text, "{other}"),
    };
}

pub(crate) fn excerpt(call: &ToolCallRecord) -> String {
    let texts = call
        .result
        .content
        .iter()
        .map(switchboard_domain::ToolContent::as_text);
    let mut text = texts.collect::<Vec<_>>().join("\n");
    if text.len() > RESULT {
        text.truncate(text.floor_char_boundary(RESULT));
        text.push('…');
    }
    text
}

pub(crate) fn in_words(call: &ExpectedCall) -> String {
    let arguments = call.input.iter();
    let input: Map<String, Value> = arguments
        .map(|(name, wanted)| (name.clone(), readable(wanted)))
        .collect();
    let input = Value::Object(input);
    let mut words = format!("{} {input}", call.name());
    for other in &call.or {
        words.push_str(", or ");
        words.push_str(&in_words(other));
    }
    words
}

/// What is expected of an argument, as a person would write it.
fn readable(wanted: &Value) -> Value {
    match wanted.pointer("/$bfcl/allowed") {
        Some(Value::Array(allowed)) => match allowed.as_slice() {
            [one] => one.clone(),
            several => serde_json::json!({ "$one_of": several }),
        },
        _ => wanted.clone(),
    }
}

/// An expected call that is ready to be compared.
pub(crate) struct Wanted<'a> {
    call: &'a ExpectedCall,
    arguments: Vec<(&'a str, Matcher)>,
    /// Whether an argument that is null is there.
    counts_null: bool,
    /// What is as right in its place.
    others: Vec<Self>,
}

impl<'a> Wanted<'a> {
    fn of(call: &'a ExpectedCall) -> Self {
        // Checked when the suite was read; what cannot be read fits nothing.
        let read = |value: &Value| Matcher::read(value).unwrap_or(Matcher::OneOf(Vec::new()));
        let arguments = call
            .input
            .iter()
            .map(|(name, value)| (name.as_str(), read(value)));
        Self {
            call,
            arguments: arguments.collect(),
            counts_null: false,
            others: call.or.iter().map(Self::of).collect(),
        }
    }

    /// The same, where null is a value like any other.
    pub(crate) fn with_null(call: &'a ExpectedCall) -> Self {
        Self {
            counts_null: true,
            ..Self::of(call)
        }
    }

    /// Whether it is the tool, or one of those that are as right.
    pub(crate) fn is_of(&self, call: &ToolCallRecord) -> bool {
        self.is_itself(call) || self.others.iter().any(|other| other.is_itself(call))
    }

    fn is_itself(&self, call: &ToolCallRecord) -> bool {
        self.call.tool == call.tool
            && (self.call.server.is_none() || self.call.server == call.server)
    }

    /// Whether it fits, whatever was struck out of it.
    pub(crate) fn fits(&self, call: &ToolCallRecord, cut: Cut) -> bool {
        self.fit(call, cut) == Fit::Yes
    }

    /// Whether it fits, as far as that is known.
    pub(crate) fn fit(&self, call: &ToolCallRecord, cut: Cut) -> Fit {
        let all = std::iter::once(self).chain(&self.others);
        let own = all.filter(|it| it.is_itself(call)).map(|it| {
            let is_at_least = |least: Fit| {
                let fits = |one: &Matcher, found: Option<&Value>| fit(one, found, cut) >= least;
                it.difference_by(call, fits).is_none()
            };
            let mut best = [Fit::Yes, Fit::Unknown].into_iter();
            best.find(|least| is_at_least(*least)).unwrap_or(Fit::No)
        });
        own.max().unwrap_or(Fit::No)
    }

    /// The first argument that is not as expected, in words: expected of this tool, if it is one of several.
    pub(crate) fn difference(&self, call: &ToolCallRecord, cut: Cut) -> Option<String> {
        let mut all = std::iter::once(self).chain(&self.others);
        let of = all.find(|it| it.is_itself(call)).unwrap_or(self);
        // What may be as expected is no difference, as long as there is another one.
        let differs_by =
            |least: Fit| of.difference_by(call, |one, found| fit(one, found, cut) >= least);
        differs_by(Fit::Unknown).or_else(|| differs_by(Fit::Yes))
    }

    fn difference_by(
        &self,
        call: &ToolCallRecord,
        fits: impl Fn(&Matcher, Option<&Value>) -> bool,
    ) -> Option<String> {
        let nothing = Map::new();
        let Some(input) = call
            .input
            .as_object()
            .or(call.input.is_null().then_some(&nothing))
        else {
            return Some("the input is no object".to_owned());
        };
        for (name, matcher) in &self.arguments {
            if !fits(matcher, input.get(*name)) {
                let wanted = readable(&self.call.input[*name]);
                return Some(match input.get(*name) {
                    Some(found) => format!("`{name}` is {found}, expected {wanted}"),
                    None => format!("`{name}` is missing, expected {wanted}"),
                });
            }
        }
        let further = || {
            let mut there = input
                .iter()
                .filter(|(_, value)| self.counts_null || !value.is_null());
            there.find(|(name, _)| !self.call.input.contains_key(*name))
        };
        let further = self.call.exactly.then(further).flatten();
        further.map(|(name, _)| format!("`{name}` is not expected"))
    }
}

/// Whether an argument is as expected. Where nothing was struck out, a mark is a text like any other.
fn fit(one: &Matcher, found: Option<&Value>, cut: Cut) -> Fit {
    match cut {
        Cut::Nothing if one.fits(found) => Fit::Yes,
        Cut::Nothing => Fit::No,
        Cut::Fitting | Cut::Refused => one.fit(found),
    }
}

/// Pairs as many of these expected calls as can be, the needed ones before the optional ones: what each is paired
/// with, in the order of `ones`.
fn paired(
    ones: &[usize],
    expected: &[ExpectedCall],
    calls: usize,
    fits: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..ones.len()).collect();
    order.sort_by_key(|at| expected[ones[*at]].optional);
    let found = pairs(ones.len(), calls, |at, call| fits(ones[order[at]], call));
    let mut paired = vec![None; ones.len()];
    for (at, call) in order.into_iter().zip(found) {
        paired[at] = call;
    }
    paired
}

/// What of a call is not known after secrets were struck out of it, in words.
pub(crate) fn not_known(call: &ToolCallRecord) -> Option<String> {
    let fields = call.input.as_object()?.iter();
    let names = fields.filter(|(_, value)| is_redacted(value));
    let names: Vec<String> = names.map(|(name, _)| format!("`{name}`")).collect();
    Some(format!(
        "what {} was is not known: a secret was struck out when it was recorded",
        names.join(" and ")
    ))
}

/// Calls that must be made in this turn, for people.
pub(crate) fn needed(turn: &Turn) -> impl Iterator<Item = String> {
    let calls = turn.calls.iter().flatten();
    calls.filter(|call| !call.optional).map(in_words)
}

/// The same, where both stand in their order; of two ways the one that leaves fewer out which are not optional.
fn aligned(
    ones: usize,
    others: usize,
    is_optional: impl Fn(usize) -> bool,
    fits: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    // The best that can be had of what begins here: needed ones, and all.
    let mut best = vec![vec![(0_usize, 0_usize); others + 1]; ones + 1];
    let with =
        |one: usize, rest: (usize, usize)| (rest.0 + usize::from(!is_optional(one)), rest.1 + 1);
    for one in (0..ones).rev() {
        for other in (0..others).rev() {
            let mut found = best[one + 1][other].max(best[one][other + 1]);
            if fits(one, other) {
                found = found.max(with(one, best[one + 1][other + 1]));
            }
            best[one][other] = found;
        }
    }
    let mut paired = vec![None; ones];
    let (mut one, mut other) = (0, 0);
    while one < ones && other < others {
        if fits(one, other) && best[one][other] == with(one, best[one + 1][other + 1]) {
            paired[one] = Some(other);
            one += 1;
            other += 1;
        } else if best[one][other] == best[one + 1][other] {
            one += 1;
        } else {
            other += 1;
        }
    }
    paired
}

#[cfg(test)]
#[path = "scoring_tests.rs"]
mod tests;
