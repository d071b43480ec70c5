//! Numbers of what stands in a recording already.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Weak},
};

use switchboard_domain::Message;

/// As many texts, and as many again, are known to be written. A conversation that is at work has far fewer messages.
const MOST: usize = 1 << 16;

/// What was written, by its number. It holds neither messages nor their texts, and forgets what was not named for
/// long: a server records for days. What was forgotten is written again, under another number.
pub(super) struct Numbers {
    /// By the place of a message in memory: one that is looked at again need not be read again. It is held weakly, so
    /// that no other one gets its place.
    messages: HashMap<usize, (usize, Weak<Message>)>,
    /// When those that are gone are looked for next.
    sweep_at: usize,
    /// By the digest of a text: those that were named lately, and those before them.
    recent: HashMap<Digest, usize>,
    older: HashMap<Digest, usize>,
    keys: [RandomState; 2],
    most: usize,
    next: usize,
}

/// Two texts have the same one as rarely as no matter: 128 bits, by keys that nobody knows.
type Digest = [u64; 2];

impl Default for Numbers {
    fn default() -> Self {
        Self::of_at_most(MOST)
    }
}

impl Numbers {
    fn of_at_most(most: usize) -> Self {
        Self {
            messages: HashMap::new(),
            sweep_at: most,
            recent: HashMap::new(),
            older: HashMap::new(),
            keys: [RandomState::new(), RandomState::new()],
            most,
            next: 0,
        }
    }

    /// The number of this very message, if it has one.
    pub(super) fn of_message(&self, message: &Arc<Message>) -> Option<usize> {
        let found = self.messages.get(&(Arc::as_ptr(message) as usize));
        found.map(|(number, _)| *number)
    }

    pub(super) fn keep_message(&mut self, message: &Arc<Message>, number: usize) {
        if self.messages.len() >= self.sweep_at {
            self.messages.retain(|_, (_, it)| it.strong_count() > 0);
            // Not before as many have come as there are: each is looked at a few times at most.
            self.sweep_at = self.most.max(self.messages.len() * 2);
        }
        let place = Arc::as_ptr(message) as usize;
        let weak = Arc::downgrade(message);
        self.messages.insert(place, (number, weak));
    }

    /// The number of a text, if it is known to be written; it counts as named now.
    pub(super) fn of_text(&mut self, text: &str) -> Option<usize> {
        let digest = self.digest(text);
        if let Some(number) = self.recent.get(&digest) {
            return Some(*number);
        }
        let number = self.older.remove(&digest)?;
        self.insert(digest, number);
        Some(number)
    }

    /// The number for a text that is written next.
    pub(super) fn next(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    pub(super) fn keep_text(&mut self, text: &str, number: usize) {
        let digest = self.digest(text);
        self.insert(digest, number);
    }

    fn insert(&mut self, digest: Digest, number: usize) {
        if self.recent.len() >= self.most {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(digest, number);
    }

    fn digest(&self, text: &str) -> Digest {
        self.keys.each_ref().map(|key| key.hash_one(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_again_and_again_is_known_and_the_rest_is_forgotten() {
        let mut numbers = Numbers::of_at_most(10);
        numbers.keep_text("tools", 7);
        for number in 0..1_000 {
            numbers.keep_text(&format!("text {number}"), number);
            assert_eq!(numbers.of_text("tools"), Some(7), "{number}");
        }
        assert!(numbers.recent.len() + numbers.older.len() <= 21);
        assert_eq!(numbers.of_text("text 999"), Some(999));
        assert_eq!(numbers.of_text("text 1"), None);
    }

    #[test]
    fn messages_that_are_gone_are_not_kept() {
        let mut numbers = Numbers::of_at_most(10);
        let stays = Arc::new(Message::user("stays"));
        numbers.keep_message(&stays, 1);
        for number in 2..1_000 {
            let message = Arc::new(Message::user("goes"));
            assert_eq!(numbers.of_message(&message), None, "another one's place");
            numbers.keep_message(&message, number);
            assert_eq!(Arc::strong_count(&message), 1);
        }
        assert!(numbers.messages.len() <= 21, "{}", numbers.messages.len());
        assert_eq!(numbers.of_message(&stays), Some(1));
    }
}
