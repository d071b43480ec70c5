//! What the last question wants.

use switchboard_domain::JsonObject;

use super::files::{leaves_alone, without_content};
use super::{Dialogue, Moment, Pending, Step, is_too_long};
use crate::{
    act::may_change,
    catalog::Tool,
    chain::{gives, selection},
    extract::{Found, Reading},
    fill::{Filling, answer, fill},
    history::Call,
    intent::is_request,
    mood::{asks_for, only_forbids, takes_back},
    rank::{Index, Match},
    schema::{Kind, Param, TextKind},
    wording::Opening,
};

/// Questions of the planner that are followed back.
const MAX_DEPTH: usize = 6;

/// What a question wants.
#[derive(Debug)]
pub(super) enum Goal {
    /// These tools.
    Use(Vec<Target>),
    /// Nothing more: results that are there tell the answer.
    Known(String),
    /// What was asked for is not wanted any more.
    Cancelled,
    /// This tool is spoken of, and not asked for.
    SpokenOf(usize),
    /// No tool.
    Nothing {
        /// All tools, the likeliest first.
        order: Vec<usize>,
        opening: Opening,
    },
}

/// A tool that is wanted.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// Its place in the catalog.
    pub(super) tool: usize,
    /// What is known of its input.
    pub(super) filling: Filling,
    /// The text that says which things are meant.
    pub(super) text: String,
    /// All that was said for it, for the answer.
    pub(super) said: String,
    /// It completes what was asked for.
    pub(super) reply: bool,
    /// The reply did not help.
    pub(super) again: bool,
    /// What it gives is not the answer, but what the answer is in.
    pub(super) quotes: bool,
}

impl Target {
    fn of(found: &Match, text: &str) -> Self {
        Self {
            tool: found.tool,
            filling: found.filling.clone(),
            text: text.to_owned(),
            said: text.to_owned(),
            reply: false,
            again: false,
            quotes: false,
        }
    }
}

impl Dialogue {
    /// What the last question wants, judged by what stood before it.
    pub(super) fn goal(&self, reading: &Reading<'_>, index: &Index, moment: Moment) -> Goal {
        let goal = self.wanted(reading, index, moment);
        match goal {
            Goal::Use(targets) if !self.must_call => self.asked_for(targets, reading),
            goal => goal,
        }
    }

    /// The same without those tools that a text only speaks of: what is forbidden, told of, asked about or taken back.
    fn asked_for(&self, mut targets: Vec<Target>, reading: &Reading<'_>) -> Goal {
        let several = targets.len() > 1;
        let first = targets.first().map(|target| target.tool);
        targets.retain(|target| {
            let Some(tool) = self.index.tools.get(target.tool) else {
                return true;
            };
            // A reply says a value, whatever its form.
            if target.reply {
                return true;
            }
            let own = Reading::new(&target.text, self.today);
            if may_change(&own, tool) {
                asks_for(&own, tool) && !(several && takes_back(reading))
            } else {
                !only_forbids(&own) && (target.said != target.text || !leaves_alone(tool, &own))
            }
        });
        for target in &mut targets {
            let tool = self.index.tools.get(target.tool).filter(|_| !target.reply);
            if let Some(param) = tool.and_then(|tool| without_content(tool, &target.filling)) {
                target.filling.missing.push(param.name.clone());
            }
        }
        match first {
            Some(tool) if targets.is_empty() => Goal::SpokenOf(tool),
            _ => Goal::Use(targets),
        }
    }

    fn wanted(&self, reading: &Reading<'_>, index: &Index, moment: Moment) -> Goal {
        let matches = self.matches(reading, index, moment, false);
        let best = matches.iter().find(|found| found.accepted);
        if let Some(pending) = self.pending(moment) {
            if cancels(reading) {
                return Goal::Cancelled;
            }
            let other = best.filter(|found| is_another_topic(found, &pending, reading));
            if other.is_none() {
                return Goal::Use(vec![self.completed(&pending, reading)]);
            }
        }
        if !self.must_call
            && let Some(text) = self.known(reading, moment)
        {
            return Goal::Known(text);
        }
        if let Some(target) = self.elliptic(reading, best, moment) {
            return Goal::Use(vec![target]);
        }
        if let Some(targets) = self.clauses(reading, index, moment) {
            return Goal::Use(targets);
        }
        let file = self.named_file(reading).filter(|file| {
            best.is_none_or(|best| {
                !best.explicit && self.leaves_out_the_file(best.tool, &best.filling, file)
            })
        });
        if let Some(file) = file {
            return Goal::Use(vec![file]);
        }
        if let Some(best) = best {
            return Goal::Use(vec![Target::of(best, reading.text)]);
        }
        if self.must_call {
            let mut forced = self.matches(reading, index, moment, true);
            // Forced to do something, rather look than change.
            forced.sort_by_key(|found| {
                (
                    !found.is_callable(),
                    self.index
                        .tools
                        .get(found.tool)
                        .is_some_and(|tool| tool.writes),
                )
            });
            if let Some(found) = forced.first() {
                return Goal::Use(vec![Target::of(found, reading.text)]);
            }
        }
        let mut order: Vec<usize> = matches.iter().map(|found| found.tool).collect();
        // The first tool of each server, then the second of each: so all servers show.
        let server = |i: usize| self.index.tools.get(i).map(|tool| &tool.server);
        let mut others: Vec<(usize, usize)> = (0..self.index.tools.len())
            .filter(|i| !matches.iter().any(|found| found.tool == *i))
            .map(|i| ((0..i).filter(|&j| server(j) == server(i)).count(), i))
            .collect();
        others.sort_by_key(|&(nth, i)| {
            (
                self.index.tools.get(i).is_some_and(|tool| tool.deprecated),
                nth,
                i,
            )
        });
        order.extend(others.into_iter().map(|(_, i)| i));
        Goal::Nothing {
            order,
            opening: opening(reading),
        }
    }

    fn matches(
        &self,
        reading: &Reading<'_>,
        index: &Index,
        moment: Moment,
        all: bool,
    ) -> Vec<Match> {
        index.rank(
            reading,
            &self.allowed,
            &|reading, tool, param, filling| self.reach(reading, tool, param, filling, moment),
            all,
        )
    }

    /// What the planner asked right before, if the person's message may be the reply.
    fn pending(&self, moment: Moment) -> Option<Pending> {
        let before = |at: usize| at < moment.asked;
        let (at, said) = self.history.said.iter().rev().find(|(at, _)| before(*at))?;
        let between = self
            .history
            .asked
            .iter()
            .any(|(asked, _)| at < asked && before(*asked));
        let called = self
            .history
            .calls
            .iter()
            .any(|call| *at <= call.at && before(call.at));
        if between || called || !said.contains('?') || moment.depth >= MAX_DEPTH {
            return None;
        }
        // It was the planner's question if the planner would ask it there again.
        match self.step(*at, moment.depth + 1) {
            Step::Ask(pending, text) if text.trim() == said.trim() => Some(pending),
            _ => None,
        }
    }

    /// The reply taken together with what was known.
    fn completed(&self, pending: &Pending, reading: &Reading<'_>) -> Target {
        let said = format!("{}\n{}", pending.said, reading.text);
        let mut filling = Filling {
            input: pending.input.clone(),
            ..Filling::default()
        };
        let mut missing = pending.params.clone();
        if let Some(tool) = self.index.tools.get(pending.tool) {
            let own = fill(tool, reading);
            filling.refused = own.refused;
            filling.further = own.further.filter(|(name, _)| missing.contains(name));
            for param in &tool.params {
                let free = matches!(
                    param.kind,
                    Kind::Text(
                        TextKind::Body | TextKind::Title | TextKind::Plain | TextKind::Query
                    )
                );
                let Some(value) = own.input.get(&param.name) else {
                    continue;
                };
                let asked = missing.contains(&param.name);
                if asked || (!free && !filling.input.contains_key(&param.name)) {
                    filling.input.insert(param.name.clone(), value.clone());
                    missing.retain(|name| *name != param.name);
                }
            }
            if (missing.len() == pending.params.len() || missing.len() == 1)
                && let Some(name) = missing.first().cloned()
            {
                let value = if missing.len() == pending.params.len() {
                    answer(tool, &name, reading)
                } else {
                    rest(reading, &own.spans)
                        .and_then(|rest| answer(tool, &name, &Reading::new(rest, self.today)))
                };
                if let Some(value) = value {
                    filling.refused.retain(|refusal| refusal.param != name);
                    filling.input.insert(name.clone(), value);
                    missing.retain(|other| *other != name);
                }
            }
            filling.input = in_order(tool, &filling.input);
        }
        let again = missing.len() == pending.params.len();
        missing.retain(|name| !filling.refused.iter().any(|refusal| refusal.param == *name));
        filling.missing = missing;
        Target {
            tool: pending.tool,
            filling,
            text: reading.text.to_owned(),
            said,
            reply: true,
            again,
            quotes: false,
        }
    }

    /// "And customer 7?": the last call with another value.
    fn elliptic(
        &self,
        reading: &Reading<'_>,
        best: Option<&Match>,
        moment: Moment,
    ) -> Option<Target> {
        let words: Vec<&str> = reading
            .words
            .iter()
            .take(2)
            .map(|word| word.lower.as_str())
            .collect();
        let opens = matches!(words[..], ["and" | "same", ..] | ["what" | "how", "about"]);
        let last: &Call = self
            .history
            .calls_between(0, moment.asked)
            .into_iter()
            .next_back()?;
        let (i, tool) = self
            .index
            .tools
            .iter()
            .enumerate()
            .find(|(_, tool)| tool.id() == last.name)?;
        if !opens || !self.allowed.contains(&i) || tool.writes {
            return None;
        }
        let mut filling = fill(tool, reading);
        let other = best.is_some_and(|best| {
            // "And the weight of the first two of them?": the number says which, and stands in no argument.
            let uses_all = best.filling.unused <= filling.unused || !best.reachable.is_empty();
            best.tool != i && best.is_callable() && uses_all
        });
        if other {
            return None;
        }
        if filling.spans.is_empty() || !filling.refused.is_empty() || filling.input.is_empty() {
            return None;
        }
        for (name, value) in &last.input {
            filling
                .input
                .entry(name.clone())
                .or_insert_with(|| value.clone());
        }
        filling.input = in_order(tool, &filling.input);
        filling
            .missing
            .retain(|name| !filling.input.contains_key(name));
        // The words of the question before tell what is asked of the new thing.
        let before = self
            .history
            .asked
            .iter()
            .rev()
            .find(|(at, _)| *at < moment.asked)
            .filter(|(_, question)| !is_too_long(question));
        let said = before.map_or_else(
            || reading.text.to_owned(),
            |(_, question)| format!("{question}\n{}", reading.text),
        );
        Some(Target {
            tool: i,
            filling,
            text: reading.text.to_owned(),
            said,
            reply: false,
            again: false,
            quotes: false,
        })
    }

    /// Several requests in one message, each of which can be met by itself.
    fn clauses(&self, reading: &Reading<'_>, index: &Index, moment: Moment) -> Option<Vec<Target>> {
        let pieces = pieces(reading);
        if pieces.len() < 2 {
            return None;
        }
        let mut targets: Vec<Target> = Vec::new();
        for piece in pieces {
            let reading = Reading::new(piece, self.today);
            let matches = self.matches(&reading, index, moment, false);
            let best = matches.iter().find(|found| found.accepted)?;
            let possible = best.is_callable() || self.follows(best, &reading, &targets);
            if !possible || !is_request(&reading) {
                return None;
            }
            targets.push(Target::of(best, piece));
        }
        Some(targets)
    }

    /// Whether what a clause leaves unsaid points back at a clause before it: "… and open a ticket
    /// for them".
    fn follows(&self, found: &Match, reading: &Reading<'_>, before: &[Target]) -> bool {
        let Some(tool) = self.index.tools.get(found.tool) else {
            return false;
        };
        let known = |param: &Param| {
            before
                .iter()
                .filter_map(|target| self.index.tools.get(target.tool))
                .any(|other| {
                    other
                        .params
                        .iter()
                        .any(|own| own.required && own.words == param.words)
                        || gives(other, param).is_some()
                })
        };
        let mut missing = found
            .filling
            .missing
            .iter()
            .filter(|name| !found.reachable.contains(name));
        found.filling.refused.is_empty()
            && missing.all(|name| {
                tool.param(name).is_some_and(|param| {
                    let back = selection(reading, param, &found.filling).is_some_and(|it| it.back);
                    back && known(param)
                })
            })
    }
}

/// The input in the order of the schema; what the schema does not know stays behind it.
pub(super) fn in_order(tool: &Tool, input: &JsonObject) -> JsonObject {
    let names = tool.params.iter().map(|param| param.name.as_str());
    let mut ordered: JsonObject = names
        .filter_map(|name| input.get_key_value(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (name, value) in input {
        ordered.entry(name.clone()).or_insert_with(|| value.clone());
    }
    ordered
}

/// The parts of a message at which a new request begins.
fn pieces<'t>(reading: &Reading<'t>) -> Vec<&'t str> {
    let mut cuts = vec![(0, 0)];
    for (i, word) in reading.words.iter().enumerate().skip(1) {
        if reading.is_quoted(word.start) {
            continue;
        }
        let Some(before) = reading.words.get(i - 1) else {
            continue;
        };
        let gap = reading.slice(before.end, word.start);
        let ends = gap.trim_end().ends_with(['.', '?', '!', ';', '\n']);
        let joined = matches!(word.lower.as_str(), "and" | "then")
            && reading.words.get(i + 1).is_some_and(|next| {
                is_request(&Reading::new(
                    reading.slice(next.start, next.end),
                    reading.today,
                )) || next.lower == "then"
            });
        if ends {
            cuts.push((word.start, word.start));
        } else if joined && cuts.last().is_some_and(|cut| cut.1 != word.start) {
            cuts.push((word.start, word.end));
        }
    }
    let ends: Vec<usize> = cuts
        .iter()
        .skip(1)
        .map(|cut| cut.0)
        .chain([reading.text.len()])
        .collect();
    cuts.into_iter()
        .zip(ends)
        .map(|((_, start), end)| {
            reading
                .slice(start, end)
                .trim()
                .trim_end_matches([',', ';'])
        })
        .filter(|piece| !piece.is_empty())
        .collect()
}

/// The longest stretch of a reply that no argument has used.
fn rest<'t>(reading: &Reading<'t>, spans: &[(usize, usize)]) -> Option<&'t str> {
    let mut edges: Vec<(usize, usize)> = spans.to_vec();
    edges.sort_unstable();
    edges.push((reading.text.len(), reading.text.len()));
    let mut from = 0;
    let mut best = "";
    for (start, end) in edges {
        let stretch = reading
            .slice(from, start)
            .trim_matches(|c: char| c.is_whitespace() || ",;:.".contains(c));
        if stretch.len() > best.len() {
            best = stretch;
        }
        from = from.max(end);
    }
    let best = best.strip_prefix("and ").unwrap_or(best);
    best.chars().any(char::is_alphanumeric).then_some(best)
}

fn cancels(reading: &Reading<'_>) -> bool {
    let words: Vec<&str> = reading
        .words
        .iter()
        .map(|word| word.lower.as_str())
        .collect();
    matches!(
        words[..],
        [
            "cancel" | "stop" | "abort" | "nothing" | "none" | "never" | "nevermind",
            ..
        ] | ["forget", "it" | "that", ..]
            | ["no", "thanks" | "thank", ..]
    ) && words.len() <= 5
}

/// Whether a reply is none, but asks for something else.
fn is_another_topic(found: &Match, pending: &Pending, reading: &Reading<'_>) -> bool {
    let asks = is_request(reading) && found.strength >= 1.0;
    if found.tool == pending.tool {
        // The whole question again.
        return asks && found.filling.is_complete() && !found.filling.input.is_empty();
    }
    found.explicit || (asks && found.is_callable() && !is_short_value(reading))
}

/// A reply such as `42`, `"late delivery"` or `customer 42`.
fn is_short_value(reading: &Reading<'_>) -> bool {
    let quoted = reading
        .mentions
        .iter()
        .any(|mention| matches!(mention.found, Found::Quoted(_)));
    reading.words.len() <= 2 || (quoted && reading.words.len() <= 4)
}

fn opening(reading: &Reading<'_>) -> Opening {
    // What somebody else is to say is not said to the planner.
    let words: Vec<&str> = reading
        .words
        .iter()
        .filter(|word| !reading.is_quoted(word.start))
        .map(|word| word.lower.as_str())
        .collect();
    let thanks = |word: &&str| matches!(*word, "thanks" | "thank" | "thx");
    let greeting =
        matches!(words.first(), Some(&("hello" | "hi" | "hey" | "help"))) && words.len() <= 4;
    // "How do I thank somebody?" thanks nobody, and "What is it? Thanks!" asks.
    if words.iter().any(thanks) && !reading.text.contains('?') {
        Opening::Thanks
    } else if greeting
        || words.iter().any(|word| matches!(*word, "tools" | "help"))
        || reading.text.to_lowercase().contains("can you do")
    {
        Opening::Help
    } else {
        Opening::NothingFits
    }
}
