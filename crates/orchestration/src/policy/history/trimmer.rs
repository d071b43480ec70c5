//! Selection of the messages that requests omit or shorten.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use switchboard_domain::{Message, Part, Role};

use super::{
    HistoryPolicy, HistoryTrimResult, TrimEffect, shorten::shorten_tool_results,
    summary::summary_message,
};
use crate::tools::tokens::estimate_message;

/// The trimmer of one conversation. It records the messages that model requests omit, and the
/// messages whose tool results they shorten.
///
/// Messages are identified by their index, so the conversation may only grow at its end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryTrimmer {
    /// Index ranges of the omitted messages, in order and without overlaps.
    left_out: Vec<Range<usize>>,
    /// Messages whose tool results are shortened: the index of each message, and the number of
    /// tokens that are kept of each result.
    pub(super) shortened: BTreeMap<usize, u64>,
    pinned: BTreeSet<usize>,
    summary: Option<HistorySummary>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct HistorySummary {
    text: String,
    /// Index in the conversation. The summary covers the omitted messages before this index.
    covers: usize,
}

/// Estimated token counts of the messages of a conversation, and the indices at which its turns
/// start.
#[derive(Debug, Default)]
struct ConversationTokenCounts {
    /// Estimated number of tokens of each message, by message index. A message with shortened tool
    /// results has its shortened size.
    tokens: Vec<u64>,
    /// Estimated number of tokens of the model request: its messages, the summary, and other parts
    /// such as tool definitions.
    total: u64,
    /// Index of the first message of each turn. A turn starts at a user message. Messages before
    /// the first user message form a turn too.
    turns: Vec<usize>,
    /// Index of the first user message, which is always sent. `None` if there is no user message.
    first: Option<usize>,
}

impl HistoryTrimmer {
    /// Pins the message at this index of the conversation, so that every request contains it.
    ///
    /// A pinned assistant or tool message pins its whole turn. A message that is already omitted
    /// stays omitted.
    pub fn pin_message(&mut self, index: usize) {
        self.pinned.insert(index);
    }

    /// Omits and shortens messages until the request has at most [`HistoryPolicy::max_tokens`]
    /// tokens.
    ///
    /// `overhead_tokens` is the estimated size of the other parts of the request, such as tool
    /// definitions. If the request is still too large, [`HistoryTrimResult::is_over`] is `true`.
    pub fn trim_to_token_limit(
        &mut self,
        policy: &HistoryPolicy,
        messages: &[Arc<Message>],
        overhead_tokens: u64,
    ) -> HistoryTrimResult {
        let mut measured = self.estimate_conversation_tokens(messages, overhead_tokens);
        let before = measured.total;
        let Some(max) = policy.max_tokens.filter(|max| before > *max) else {
            return HistoryTrimResult {
                tokens: before,
                ..HistoryTrimResult::default()
            };
        };
        let percent = u64::from(policy.low_water_percent.min(100));
        let target = max / 100 * percent + max % 100 * percent / 100;

        let mut dropped = 0;
        for at in 1..measured.turns.len() {
            if measured.total <= target {
                break;
            }
            let turn = measured.turns[at - 1]..measured.turns[at];
            dropped += self.omit_turn(turn, messages, &mut measured);
        }
        if measured.total > max {
            self.shorten_turn(policy, messages, (target, max), &mut measured);
        }
        let tokens = measured.total;
        HistoryTrimResult {
            tokens,
            trimmed: (tokens < before).then_some(TrimEffect {
                messages: dropped,
                tokens_before: before,
                tokens_after: tokens,
            }),
            is_over: tokens > max,
        }
    }

    /// Estimates the number of tokens of a request. The request consists of the messages that
    /// [`HistoryTrimmer::messages_to_send`] returns, and of other parts with `overhead_tokens`
    /// tokens.
    pub(crate) fn estimate_request_tokens(
        &self,
        messages: &[Arc<Message>],
        overhead_tokens: u64,
    ) -> u64 {
        let measured = self.estimate_conversation_tokens(messages, overhead_tokens);
        measured.total
    }

    /// Returns the messages for the next request, as [`HistoryTrimmer::trim_to_token_limit`]
    /// selected them. Unchanged messages share their `Arc` with `messages`; only shortened messages
    /// and the summary are new.
    pub fn messages_to_send(&self, messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
        let first_gap = self.left_out.first().map(|range| range.start);
        let mut sent = Vec::with_capacity(messages.len() + 1);
        for (at, message) in messages.iter().enumerate() {
            if first_gap == Some(at) {
                sent.extend(self.summary_message());
            }
            if !self.is_message_omitted(at) {
                sent.push(self.message_with_shortened_results(at, message));
            }
        }
        sent
    }

    /// Returns the messages that a new summary must cover: the current summary, and the messages
    /// that were omitted after the current summary was set. The list is empty if no further message
    /// was omitted.
    ///
    /// Pass the list to [`summary_request`](super::summary_request).
    pub fn messages_to_summarize(&self, messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
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
        self.summary_message().into_iter().chain(new).collect()
    }

    /// Sets the summary of the omitted messages, replacing an earlier summary. Has no effect if no
    /// message is omitted.
    ///
    /// Requests contain the summary in the place of the omitted messages, as a user message that is
    /// marked as a summary.
    pub fn set_summary(&mut self, text: impl Into<String>) {
        if let Some(last) = self.left_out.last() {
            self.summary = Some(HistorySummary {
                text: text.into(),
                covers: last.end,
            });
        }
    }

    fn summary_message(&self) -> Option<Arc<Message>> {
        let summary = self.summary.as_ref()?;
        Some(Arc::new(summary_message(&summary.text)))
    }

    fn message_with_shortened_results(&self, at: usize, message: &Arc<Message>) -> Arc<Message> {
        let keep = self.shortened.get(&at);
        let shorter = keep.and_then(|keep| shorten_tool_results(message, *keep));
        shorter.map_or_else(|| Arc::clone(message), Arc::new)
    }

    fn is_message_omitted(&self, at: usize) -> bool {
        let after = self.left_out.partition_point(|range| range.end <= at);
        let range = self.left_out.get(after);
        range.is_some_and(|range| range.contains(&at))
    }

    fn estimate_conversation_tokens(
        &self,
        messages: &[Arc<Message>],
        overhead_tokens: u64,
    ) -> ConversationTokenCounts {
        let summary = self.summary_message();
        let mut measured = ConversationTokenCounts {
            total: summary.map_or(0, |summary| estimate_message(&summary)) + overhead_tokens,
            ..ConversationTokenCounts::default()
        };
        // Whether the previous message, ignoring system messages, is a user message without tool
        // results.
        let mut follows_question = false;
        for (at, message) in messages.iter().enumerate() {
            let tokens = estimate_message(&self.message_with_shortened_results(at, message));
            measured.tokens.push(tokens);
            if !self.is_message_omitted(at) {
                measured.total += tokens;
            }
            if message.role == Role::System {
                continue;
            }
            // A user message with tool results does not start a turn, because it belongs to the
            // calls before it.
            let is_result = |part: &Part| matches!(part, Part::ToolResult(_));
            let is_question = message.role == Role::User && !message.parts.iter().any(is_result);
            // Consecutive user messages form one turn.
            if is_question && !follows_question || measured.turns.is_empty() {
                measured.turns.push(at);
            }
            if is_question {
                measured.first.get_or_insert(at);
            }
            follows_question = is_question;
        }
        measured
    }

    /// Omits the messages of a turn and returns how many were omitted. System messages, pinned
    /// messages and the first user message stay. A pinned assistant or tool message keeps the whole
    /// turn.
    fn omit_turn(
        &mut self,
        turn: Range<usize>,
        messages: &[Arc<Message>],
        measured: &mut ConversationTokenCounts,
    ) -> usize {
        let holds_turn = |at: &usize| !matches!(messages[*at].role, Role::System | Role::User);
        if self.pinned.range(turn.clone()).any(holds_turn) {
            return 0;
        }
        let mut count = 0;
        for at in turn {
            let is_kept = messages[at].role == Role::System
                || self.pinned.contains(&at)
                || measured.first == Some(at);
            if is_kept || self.is_message_omitted(at) {
                continue;
            }
            count += 1;
            measured.total -= measured.tokens[at];
            // An omitted message does not count as shortened.
            self.shortened.remove(&at);
            match self.left_out.last_mut() {
                Some(range) if range.end == at => range.end += 1,
                _ => self.left_out.push(at..at + 1),
            }
        }
        count
    }

    /// Shortens tool results of the current turn until the request has at most `max` tokens.
    ///
    /// The last message with tool results is shortened last. First, earlier results are shortened,
    /// oldest first, until the request has at most `target` tokens. If the request still exceeds
    /// `max` tokens, the content of these earlier results is removed. If that is not sufficient,
    /// the results of the last message are shortened.
    fn shorten_turn(
        &mut self,
        policy: &HistoryPolicy,
        messages: &[Arc<Message>],
        (target, max): (u64, u64),
        measured: &mut ConversationTokenCounts,
    ) {
        let has_result = |at: &usize| messages[*at].tool_results().next().is_some();
        let turn_start = measured.turns.last().copied();
        let turn = turn_start.unwrap_or(measured.tokens.len())..messages.len();
        let Some(last) = turn.clone().rfind(has_result) else {
            return;
        };
        for keep in [policy.shortened_tokens, 0] {
            for at in turn.start..last {
                if measured.total <= target {
                    break;
                }
                self.shorten_message(messages, at, keep, measured);
            }
            if measured.total <= max {
                return;
            }
        }
        let results = u64::try_from(messages[last].tool_results().count()).unwrap_or(u64::MAX);
        let others = measured.total - measured.tokens[last];
        let markers = results.saturating_mul(MARKER_TOKENS);
        let share = max.saturating_sub(others).saturating_sub(markers) / results.max(1);
        let keep = share.max(policy.shortened_tokens);
        self.shorten_message(messages, last, keep, measured);
    }

    fn shorten_message(
        &mut self,
        messages: &[Arc<Message>],
        at: usize,
        keep: u64,
        measured: &mut ConversationTokenCounts,
    ) {
        let before = self.shortened.get(&at);
        if before.is_some_and(|tokens| *tokens <= keep) {
            return;
        }
        let Some(message) = shorten_tool_results(&messages[at], keep) else {
            return;
        };
        let (tokens, before) = (estimate_message(&message), measured.tokens[at]);
        if tokens < before {
            measured.total = measured.total - before + tokens;
            measured.tokens[at] = tokens;
            self.shortened.insert(at, keep);
        }
    }
}

/// Estimated number of tokens that a shortened tool result needs besides its remaining content: for
/// the marker text, the type and the ids.
const MARKER_TOKENS: u64 = 60;
