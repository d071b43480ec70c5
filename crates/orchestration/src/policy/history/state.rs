//! What is left out of a growing conversation.

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

/// Which messages of a conversation are left out, and which are shortened. It belongs to one
/// conversation, which may only grow at its end, and is stored beside it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// Indices of messages, in order, none twice.
    left_out: Vec<Range<usize>>,
    /// Messages of tool results, with the tokens that each of their results keeps.
    shortened: BTreeMap<usize, u64>,
    pinned: BTreeSet<usize>,
    summary: Option<Summary>,
    /// Made anew from the messages where a stored history is taken up.
    #[serde(skip)]
    seen: Seen,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Summary {
    text: String,
    /// It covers what is left out before this index.
    covers: usize,
}

/// What is known of the messages so far.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// Tokens of each message as it is sent if it is.
    tokens: Vec<u64>,
    /// Tokens of those that are not left out.
    kept: u64,
    /// Where the turns begin. What stands before the first message of the person is a turn too.
    turns: Vec<usize>,
    /// The first message of the person.
    first: Option<usize>,
    /// The last message that is not the system's is one of the person.
    asking: bool,
    /// The turn that is left out next, if it may be.
    next_turn: usize,
    /// The message that is shortened next, if it can be; and the one that is shortened to nothing.
    next_result: [usize; 2],
    /// Shortened messages.
    replaced: BTreeMap<usize, Arc<Message>>,
    summary: Option<Arc<Message>>,
}

impl History {
    /// Keeps a message for good. A pinned message of the model or of tools keeps its whole turn. What
    /// has been left out already stays out.
    pub fn pin(&mut self, index: usize) {
        self.pinned.insert(index);
    }

    /// Makes the conversation fit, before each call of the model. `overhead_tokens` is what else is in
    /// the request, such as the tools.
    ///
    /// The time it takes is that of the messages that it has not seen before. If there are fewer than it
    /// has seen, it is another conversation, and all is forgotten but the pins.
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

    /// The messages of the request, as [`History::fit`] left them: the same `Arc`s but for shortened
    /// results and the summary. Messages behind those that it has seen are all in it.
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

    /// Tokens of what [`History::messages`] gives, as far as [`History::fit`] has seen it.
    pub fn tokens(&self) -> u64 {
        let summary = self.seen.summary.as_deref().map_or(0, estimate_message);
        self.seen.kept.saturating_add(summary)
    }

    /// The messages that are left out, by their indices, in order.
    pub fn left_out(&self) -> &[Range<usize>] {
        &self.left_out
    }

    /// The messages whose tool results are shortened, by their indices, in order.
    pub fn shortened(&self) -> impl Iterator<Item = usize> {
        self.shortened.keys().copied()
    }

    /// What a summary has to cover that is made now: the summary there is, and what was left out since.
    /// Empty if nothing was, so that there is nothing to summarise. For [`summary_request`](super::summary_request).
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

    /// A summary that stands, as a marked message of the person, where messages are left out: in the
    /// place of all of them and of an earlier summary. Without anything left out it is not used.
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
                self.seen.kept = self.seen.kept.saturating_add(tokens);
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

    /// Leaves the next turn out, but for what is kept of it; returns how many messages that are.
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
            self.seen.kept = self.seen.kept.saturating_sub(self.seen.tokens[at]);
            // A turn is left out as it was said.
            self.shortened.remove(&at);
            self.seen.replaced.remove(&at);
            match self.left_out.last_mut() {
                Some(range) if range.end == at => range.end += 1,
                _ => self.left_out.push(at..at + 1),
            }
        }
        count
    }

    /// Shortens the results of the current turn, the oldest first and the last ones not at all, to `keep`
    /// tokens, as long as `more` says so; returns how many messages were. `pass` counts from 0 and is for
    /// knowing where the last time ended.
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

    /// Shortens the last results as much as the limit makes it necessary.
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

    /// The last message with tool results, of the current turn.
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
        self.seen.kept = self.seen.kept.saturating_sub(old).saturating_add(tokens);
        self.seen.tokens[at] = tokens;
        self.seen.replaced.insert(at, Arc::new(message));
        self.shortened.insert(at, keep);
        true
    }
}

/// Room for the marker and what else a result has beside its content, in tokens.
const MARKER: u64 = 60;

impl Seen {
    /// Sees in which turn a message is.
    fn place(&mut self, at: usize, message: &Message) {
        if message.role == Role::System {
            return;
        }
        // Results that stand in a message of the person belong to the calls before them.
        let is_result = |part: &Part| matches!(part, Part::ToolResult(_));
        let asks = message.role == Role::User && !message.parts.iter().any(is_result);
        // Who says two things in a row has said one.
        let begins = asks && !self.asking;
        if begins || self.turns.is_empty() {
            self.turns.push(at);
        }
        if asks {
            self.first.get_or_insert(at);
        }
        self.asking = asks;
    }
}

fn shorter(message: &Arc<Message>, keep: u64) -> Arc<Message> {
    shortened(message, keep).map_or_else(|| Arc::clone(message), Arc::new)
}
