//! The omitted and shortened messages of a growing conversation.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use switchboard_domain::{Message, Part, Role};

use super::{
    Fit, HistoryPolicy, OverBudget, Trimmed, shorten::shortened, summary::summary_message,
};
use crate::tools::tokens::estimate_message;

/// The omitted and shortened messages of one conversation. The conversation may only grow at its
/// end. The history is stored beside it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// Indices of omitted messages, in order and without duplicates.
    left_out: Vec<Range<usize>>,
    /// Shortened tool result messages, with the tokens that each result keeps.
    shortened: BTreeMap<usize, u64>,
    pinned: BTreeSet<usize>,
    summary: Option<Summary>,
    /// Rebuilt from the messages of a restored run.
    #[serde(skip)]
    seen: Seen,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Summary {
    text: String,
    /// The summary covers the omitted messages before this index.
    covers: usize,
}

/// Data about the observed messages.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// Estimated tokens of each message, shortened or not.
    tokens: Vec<u64>,
    /// Estimated tokens of the messages that are sent.
    retained: u64,
    /// First indices of the turns. Messages before the first message of the person form a turn too.
    turns: Vec<usize>,
    /// Index of the first message of the person.
    first: Option<usize>,
    /// Whether the last message, without system messages, is from the person.
    in_question: bool,
    /// The next turn that may be omitted.
    next_turn: usize,
    /// The next message to shorten, for each of the two passes.
    next_result: [usize; 2],
    /// The shortened messages.
    replaced: BTreeMap<usize, Arc<Message>>,
    summary: Option<Arc<Message>>,
}

impl History {
    /// Pins a message, so that it is always sent. A pinned message of the model or of tools pins
    /// its whole turn. Messages that are already omitted stay omitted.
    pub fn pin(&mut self, index: usize) {
        self.pinned.insert(index);
    }

    /// Fits the conversation before a model call. `overhead_tokens` is the size of the other parts
    /// of the request, such as tools.
    ///
    /// The cost is proportional to the new messages. Fewer messages than before mean another
    /// conversation: everything but the pins is reset.
    pub fn fit(
        &mut self,
        policy: &HistoryPolicy,
        messages: &[Arc<Message>],
        overhead_tokens: u64,
    ) -> Fit {
        self.observe(messages);
        let total = |history: &Self| history.tokens().saturating_add(overhead_tokens);
        let before = total(self);
        let Some(max) = policy.max_tokens.filter(|max| before > *max) else {
            return Fit {
                tokens: before,
                trimmed: None,
                over: None,
            };
        };
        let percent = u64::from(policy.low_water_percent.min(100));
        let target = max / 100 * percent + max % 100 * percent / 100;

        let mut dropped = 0;
        while total(self) > target && self.seen.next_turn + 1 < self.seen.turns.len() {
            dropped += self.leave_out_next_turn(messages);
        }
        let mut cut = 0;
        if total(self) > max {
            let keep = policy.shortened_tokens;
            cut = self.shorten_results(0, keep, messages, &|history| total(history) > target);
            if total(self) > max {
                cut += self.shorten_results(1, 0, messages, &|history| total(history) > target);
            }
            if total(self) > max {
                let room = max.saturating_sub(overhead_tokens);
                cut += usize::from(self.shorten_last(policy, messages, room));
            }
        }
        let tokens = total(self);
        Fit {
            tokens,
            trimmed: (dropped + cut > 0).then_some(Trimmed {
                messages: dropped,
                shortened: cut,
                tokens_before: before,
                tokens_after: tokens,
            }),
            over: (tokens > max).then(|| OverBudget {
                tokens,
                max_tokens: max,
                overhead_tokens,
                current_turn_tokens: self.seen.tokens[self.current_turn()..].iter().sum(),
            }),
        }
    }

    /// Returns the messages of the request after [`History::fit`]: the same `Arc`s except for
    /// shortened results and the summary. Messages that were not observed yet are included.
    pub fn messages(&self, messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
        let mut sent = Vec::with_capacity(messages.len() + 1);
        let mut from = 0;
        for (n, range) in self.left_out.iter().enumerate() {
            self.copy(messages, from..range.start, &mut sent);
            if n == 0 {
                sent.extend(self.summary_now());
            }
            from = range.end;
        }
        self.copy(messages, from..messages.len(), &mut sent);
        sent
    }

    fn copy(&self, messages: &[Arc<Message>], range: Range<usize>, sent: &mut Vec<Arc<Message>>) {
        let range = range.start.min(messages.len())..range.end.min(messages.len());
        let mut from = range.start;
        for (&at, keep) in self.shortened.range(range.clone()) {
            sent.extend_from_slice(&messages[from..at]);
            let made = self.seen.replaced.get(&at).cloned();
            sent.push(made.unwrap_or_else(|| shorter(&messages[at], *keep)));
            from = at + 1;
        }
        sent.extend_from_slice(&messages[from..range.end.max(from)]);
    }

    /// Returns the estimated tokens of the observed messages of the request.
    pub fn tokens(&self) -> u64 {
        let summary = self.seen.summary.as_deref().map_or(0, estimate_message);
        self.seen.retained.saturating_add(summary)
    }

    /// Returns the indices of omitted messages, in order.
    pub fn left_out(&self) -> &[Range<usize>] {
        &self.left_out
    }

    /// Returns the indices of messages with shortened tool results, in order.
    pub fn shortened(&self) -> impl Iterator<Item = usize> {
        self.shortened.keys().copied()
    }

    /// Returns the messages for a new summary: the earlier summary, and the messages omitted since.
    /// Empty if there are none. Input of [`summary_request`](super::summary_request).
    pub fn summary_source(&self, messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
        let covered = self.summary.as_ref().map_or(0, |summary| summary.covers);
        let new: Vec<Arc<Message>> = self
            .left_out
            .iter()
            .flat_map(|range| range.start.max(covered)..range.end)
            .filter_map(|at| messages.get(at).cloned())
            .collect();
        if new.is_empty() {
            return new;
        }
        self.summary_now().into_iter().chain(new).collect()
    }

    /// Sets the summary. It is sent as a marked message of the person in the place of the omitted
    /// messages and of an earlier summary. It has no effect if nothing is omitted.
    pub fn with_summary(&mut self, text: impl Into<String>) {
        let Some(last) = self.left_out.last() else {
            return;
        };
        let text = text.into();
        self.seen.summary = Some(Arc::new(summary_message(&text)));
        self.summary = Some(Summary {
            text,
            covers: last.end,
        });
    }

    fn summary_now(&self) -> Option<Arc<Message>> {
        let made = self.seen.summary.clone();
        made.or_else(|| {
            let summary = self.summary.as_ref()?;
            Some(Arc::new(summary_message(&summary.text)))
        })
    }

    fn observe(&mut self, messages: &[Arc<Message>]) {
        let beyond = |range: &Range<usize>| range.end > messages.len();
        if messages.len() < self.seen.tokens.len() || self.left_out.last().is_some_and(beyond) {
            *self = Self {
                pinned: std::mem::take(&mut self.pinned),
                ..Self::default()
            };
        }
        if self.seen.tokens.is_empty() {
            self.seen.summary = self.summary_now();
        }
        let known = self.seen.tokens.len();
        for (at, message) in messages.iter().enumerate().skip(known) {
            let tokens = match self.shortened.get(&at) {
                None => estimate_message(message),
                Some(keep) => {
                    let message = shorter(message, *keep);
                    let tokens = estimate_message(&message);
                    self.seen.replaced.insert(at, message);
                    tokens
                }
            };
            self.seen.tokens.push(tokens);
            if !self.is_left_out(at) {
                self.seen.retained = self.seen.retained.saturating_add(tokens);
            }
            self.seen.place(at, message);
        }
        if known == 0 {
            let end = self.left_out.last().map_or(0, |range| range.end);
            self.seen.next_turn = self.seen.turns.partition_point(|start| *start < end);
        }
    }

    fn is_left_out(&self, at: usize) -> bool {
        let after = self.left_out.partition_point(|range| range.end <= at);
        self.left_out
            .get(after)
            .is_some_and(|range| range.contains(&at))
    }

    fn current_turn(&self) -> usize {
        let turns = &self.seen.turns;
        turns.last().copied().unwrap_or(self.seen.tokens.len())
    }

    /// Omits the next turn except for its pinned messages. Returns the number of omitted messages.
    fn leave_out_next_turn(&mut self, messages: &[Arc<Message>]) -> usize {
        let (Some(&start), Some(&end)) = (
            self.seen.turns.get(self.seen.next_turn),
            self.seen.turns.get(self.seen.next_turn + 1),
        ) else {
            return 0;
        };
        self.seen.next_turn += 1;
        let holds_turn = |at: &usize| !matches!(messages[*at].role, Role::System | Role::User);
        if self.pinned.range(start..end).any(holds_turn) {
            return 0;
        }
        let mut count = 0;
        for (at, message) in messages.iter().enumerate().take(end).skip(start) {
            let is_kept = message.role == Role::System
                || self.pinned.contains(&at)
                || self.seen.first == Some(at);
            if is_kept {
                continue;
            }
            count += 1;
            self.seen.retained = self.seen.retained.saturating_sub(self.seen.tokens[at]);
            // An omitted turn is counted without shortening.
            self.shortened.remove(&at);
            self.seen.replaced.remove(&at);
            match self.left_out.last_mut() {
                Some(range) if range.end == at => range.end += 1,
                _ => self.left_out.push(at..at + 1),
            }
        }
        count
    }

    /// Shortens results of the current turn to `keep` tokens while `more` returns `true`, oldest
    /// first and without the last results. Returns the number of shortened messages. `pass` counts
    /// from 0 and selects the position of the previous call.
    fn shorten_results(
        &mut self,
        pass: usize,
        keep: u64,
        messages: &[Arc<Message>],
        more: &dyn Fn(&Self) -> bool,
    ) -> usize {
        let mut count = 0;
        let mut at = self.seen.next_result[pass].max(self.current_turn());
        let last = self.last_results(messages).unwrap_or(0);
        while at < last && more(self) {
            count += usize::from(self.shorten(messages, at, keep));
            at += 1;
        }
        self.seen.next_result[pass] = at;
        count
    }

    /// Shortens the last results as far as the limit requires.
    fn shorten_last(
        &mut self,
        policy: &HistoryPolicy,
        messages: &[Arc<Message>],
        room: u64,
    ) -> bool {
        let Some(at) = self.last_results(messages) else {
            return false;
        };
        let results = u64::try_from(messages[at].results().count()).unwrap_or(u64::MAX);
        let others = self.tokens().saturating_sub(self.seen.tokens[at]);
        let bare = results.saturating_mul(MARKER);
        let share = room.saturating_sub(others).saturating_sub(bare) / results.max(1);
        self.shorten(messages, at, share.max(policy.shortened_tokens))
    }

    /// Returns the last message with tool results of the current turn.
    fn last_results(&self, messages: &[Arc<Message>]) -> Option<usize> {
        let start = self.current_turn();
        messages[start..]
            .iter()
            .rposition(|message| message.results().next().is_some())
            .map(|at| start + at)
    }

    fn shorten(&mut self, messages: &[Arc<Message>], at: usize, keep: u64) -> bool {
        let before = self.shortened.get(&at).copied();
        if before.is_some_and(|before| before <= keep) {
            return false;
        }
        let Some(message) = shortened(&messages[at], keep) else {
            return false;
        };
        let tokens = estimate_message(&message);
        let old = self.seen.tokens[at];
        if tokens >= old {
            return false;
        }
        self.seen.retained = self
            .seen
            .retained
            .saturating_sub(old)
            .saturating_add(tokens);
        self.seen.tokens[at] = tokens;
        self.seen.replaced.insert(at, Arc::new(message));
        self.shortened.insert(at, keep);
        true
    }
}

/// Tokens for the marker and for the parts of a result beside its content.
const MARKER: u64 = 60;

impl Seen {
    /// Records the turn of a message.
    fn place(&mut self, at: usize, message: &Message) {
        if message.role == Role::System {
            return;
        }
        // Tool results in a message of the person belong to the calls before them.
        let is_result = |part: &Part| matches!(part, Part::ToolResult(_));
        let is_question = message.role == Role::User && !message.parts.iter().any(is_result);
        // Consecutive messages of the person form one turn.
        let starts_turn = is_question && !self.in_question;
        if starts_turn || self.turns.is_empty() {
            self.turns.push(at);
        }
        if is_question {
            self.first.get_or_insert(at);
        }
        self.in_question = is_question;
    }
}

fn shorter(message: &Arc<Message>, keep: u64) -> Arc<Message> {
    shortened(message, keep).map_or_else(|| Arc::clone(message), Arc::new)
}
